"""A result where it is first looked at: a table and a picture in a notebook, or one screen."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Protocol

from dpaudit.results import charts, severity
from dpaudit.results.estimates import Witness
from dpaudit.results.mutants import score_words
from dpaudit.results.rounding import at_least, beyond
from dpaudit.results.status import Status
from dpaudit.results.svg import neutral
from dpaudit.results.verdicts import Shown
from dpaudit.results.words import beside, duration, least, number, short

_TONES = {"refuted": "#c4302b", "known": "#a0558c", "not_refuted": "#5f7890"}
_WAITING = "#b07800"
_LINE = 100
_CELL = 240
_HEIGHT = 230.0


class Told(Shown, Protocol):
    """What is told of an audit; :class:`~dpaudit.results.AuditResult` is one."""

    @property
    def mechanism(self) -> str:
        """Name of the audited function."""

    @property
    def status(self) -> Status:
        """What became of it."""

    @property
    def reason(self) -> str:
        """One sentence behind the verdict."""

    @property
    def pair_words(self) -> str:
        """The pair."""

    @property
    def witness(self) -> Witness:
        """The event."""

    @property
    def certified_delta(self) -> float:
        """At the claimed epsilon."""

    @property
    def estimated_epsilon(self) -> float:
        """Without guarantee."""

    @property
    def detectable_epsilon(self) -> float | None:
        """What this event would have shown."""

    @property
    def draws(self) -> dict[str, int]:
        """For each dataset."""

    @property
    def draws_by_rank(self) -> int:
        """Of them, those on which guesses by rank certify."""

    @property
    def seconds(self) -> float:
        """Of the audit with its mutants."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What else a reader should know."""

    @property
    def advice(self) -> str:
        """What to try next."""


def html_of(result: Told) -> str:
    """Return a small table and the privacy profile, for a notebook.

    Nothing but the element itself is needed: no script, no style sheet, no plotting library; and
    it can be read on light and on dark ground. What a user wrote is escaped.
    """
    tone = _TONES.get(result.status.key, _WAITING)
    left, top = "text-align:left", "vertical-align:top"
    cells = "".join(
        f'<tr><th scope="row" style="{left};{top};font-weight:normal;opacity:.75;'
        f'white-space:nowrap">{html.escape(name)}</th>'
        f'<td style="{left}">{html.escape(short(words, _CELL))}</td></tr>'
        for name, words in _rows(result)
    )
    head = (
        f'<p style="margin:0 0 .4em"><strong style="color:{tone}">'
        f"{html.escape(result.status.word)}</strong> <strong>{html.escape(result.id)}</strong></p>"
    )
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:1.2em;align-items:flex-start;max-width:64em">'
        f'<div style="flex:1 1 26em;min-width:0">{head}'
        f'<div style="max-width:25em">{severity.scale(result, neutral)}</div>'
        f'<table style="color:inherit;font-size:inherit;margin:0">{cells}</table></div>'
        f'<div style="flex:0 1 25em;min-width:0">'
        f"{charts.profile(result, neutral, _HEIGHT)}</div></div>"
    )


def _rows(result: Told) -> Iterator[tuple[str, str]]:
    """Yield name and words of the numbers that matter."""
    claimed = result.claimed_epsilon
    source = result.claim.get("source")
    yield "Claim", f"{result.claim['words']}{f' ({source})' if source else ''}"
    yield "Mechanism", result.mechanism
    yield (
        "Certified ε" if result.failure_prob else "Computed ε",
        f"{beside(result.certified_epsilon, claimed, sign='≥ ')} at δ = "
        f"{number(result.claimed_delta)}: {severity.closeness(result)}",
    )
    yield "Certified δ", f"≥ {least(result.certified_delta)} at ε = {number(claimed)}"
    if result.failure_prob:
        yield "Estimated ε", f"{number(result.estimated_epsilon)} (no guarantee)"
    if reach := severity.reach(result):
        yield "Reach", f"this event {reach}"
    yield "Mutants", _mutants(result)
    yield "Event", result.witness.sentence()
    yield "Pair", result.pair_words
    yield "Draws", _draws(result)
    for note in result.notes:
        yield "Note", note
    if result.advice:
        yield "Next", result.advice


def _mutants(result: Told) -> str:
    if not result.mutants:
        return "not needed" if result.status.key in ("refuted", "known") else "none"
    left = [mutant.name for mutant in result.mutants if not mutant.killed]
    return score_words(result.mutants) + (f"; not {'; '.join(left)}" if left else "")


def _draws(result: Told) -> str:
    if not sum(result.draws.values()):
        return f"none, the probabilities were computed; {duration(result.seconds)}"
    parts = [f"{count:,} to {role}" for role, count in result.draws.items() if count]
    said = " and ".join(parts)
    if by_rank := result.draws_by_rank:
        every = "all " if by_rank == sum(result.draws.values()) else ""
        said = f"{every}{by_rank:,} to certify by rank, beside events with {said}"
    return (
        f"{said}, per dataset; wrong with probability at most "
        f"{number(result.failure_prob)}; {duration(result.seconds)}"
    )


def text_of(result: Told) -> str:
    """Return one screen of text: at most fifteen lines of at most a hundred letters."""
    claimed, source = result.claimed_epsilon, result.claim.get("source")
    certified = (
        f"epsilon {beyond(result.certified_epsilon, claimed)} of {claimed:.4g} claimed, delta >= "
        f"{at_least(result.certified_delta, 3)} of {result.claimed_delta:g}"
    )
    lines = [
        ("mechanism", result.mechanism),
        ("claim", f"{result.claim['words']}{f' ({source})' if source else ''}"),
        ("certified", f"{certified}: {severity.closeness(result)}"),
        ("estimated", f"epsilon {result.estimated_epsilon:.4g}, without guarantee"),
        ("event", result.witness.sentence()),
        ("pair", result.pair_words),
        ("mutants", _mutants(result)),
        ("draws", _draws(result)),
        *(("note", note) for note in result.notes[:2]),
        *([("next", result.advice)] if result.advice else []),
    ]
    told = [short(f"  {name:<10} {' '.join(words.split())}", _LINE) for name, words in lines]
    return "\n".join([short(f"AuditResult: {result.status.word}  {result.id}", _LINE), *told])
