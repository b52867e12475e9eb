"""Tables of a result: of its numbers, for a notebook or as text, and of the search for its pair."""

from __future__ import annotations

import collections
import html
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpaudit.results import charts, severity
from dpaudit.results.mutants import score_words
from dpaudit.results.svg import neutral, svg_of
from dpaudit.results.words import beside, count, duration, least, number, plain_value, short
from dpaudit.search import SearchRecord, ranking

if TYPE_CHECKING:
    from dpaudit.results import AuditResult

MAX_TRIALS = 10
_TONES = {"refuted": "#c4302b", "known": "#a0558c", "not_refuted": "#5f7890"}
_WAITING = "#b07800"
_ASCII = str.maketrans({"ε": "epsilon", "δ": "delta", "≥": ">=", "∞": "inf", "\u202f": " "})


def html_of(result: AuditResult) -> str:
    """Return a small table and the privacy profile, for a notebook.

    The element stands alone: no script, no style sheet, no plotting library. It can be read on
    light and on dark ground. Words of users are escaped.
    """
    tone = _TONES.get(result.status.key, _WAITING)
    name_style = "text-align:left;vertical-align:top;font-weight:normal;opacity:.75"
    cells = "".join(
        f'<tr><th scope="row" style="{name_style};white-space:nowrap">{html.escape(name)}</th>'
        f'<td style="text-align:left">{html.escape(short(words, 240))}</td></tr>'
        for name, words in _rows(result)
    )
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:1.2em;align-items:flex-start;max-width:64em">'
        f'<div style="flex:1 1 26em;min-width:0"><p style="margin:0 0 .4em">'
        f'<strong style="color:{tone}">{html.escape(result.status.word)}</strong> '
        f"<strong>{html.escape(result.id)}</strong></p>"
        f'<div style="max-width:25em">{severity.scale(result, neutral)}</div>'
        f'<table style="color:inherit;font-size:inherit;margin:0">{cells}</table></div>'
        '<div style="flex:0 1 25em;min-width:0">'
        f"{svg_of(replace(charts.profile(result), height=230.0), neutral)}</div></div>"
    )


def text_of(result: AuditResult) -> str:
    """Return one screen of text: at most fifteen lines of at most a hundred letters."""
    lines = [f"AuditResult: {result.status.word}  {result.id}"]
    notes = 0
    for name, words in _rows(result):
        notes += name == "Note"
        if name != "Note" or notes <= 2:
            lines.append(f"  {name.lower().translate(_ASCII):<17}  {' '.join(words.split())}")
    return "\n".join(short(line.translate(_ASCII), 100) for line in lines)


def _rows(result: AuditResult) -> Iterator[tuple[str, str]]:
    """Yield name and words of the numbers that matter."""
    claimed, source = result.claimed_epsilon, result.claim.get("source")
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
    mutants = "not needed" if result.status.key in ("refuted", "known") else "none"
    if result.mutants:
        left = [mutant.name for mutant in result.mutants if not mutant.killed]
        mutants = score_words(result.mutants) + (f"; not {'; '.join(left)}" if left else "")
    yield "Mutants", mutants
    yield "Event", result.witness.sentence()
    yield "Pair", result.pair_words
    yield "Draws", _draws(result)
    for note in result.notes:
        yield "Note", note
    if result.advice:
        yield "Next", result.advice


def _draws(result: AuditResult) -> str:
    total = sum(result.draws.values())
    if not total:
        return f"none, the probabilities were computed; {duration(result.seconds)}"
    words = " and ".join(f"{n:,} to {role}" for role, n in result.draws.items() if n)
    if by_rank := result.draws_by_rank:
        every = "all " * (by_rank == total)
        words = f"{every}{by_rank:,} to certify by rank, beside events with {words}"
    return (
        f"{words}, per dataset; wrong with probability at most {number(result.failure_prob)}; "
        f"{duration(result.seconds)}"
    )


def search_table(record: SearchRecord) -> dict[str, Any]:
    """Return what the page writes about a search: what it cost, its best trials, its failures."""
    failed = [trial.note for trial in record.trials if not trial.valid]
    spent = count(record.draws_spent)
    cost = f"{len(record.trials)} trial{'s' * (len(record.trials) != 1)}, "
    cost += f"{spent} draws per dataset" if record.draws_spent else "computed"
    rows = []
    for rank, trial in enumerate(ranking(record, MAX_TRIALS), 1):
        values = [plain_value(trial.parameters.get(name, "")) for name in record.parameters]
        if record.is_portfolio:
            own = ", ".join(f"{k}={plain_value(value)}" for k, value in trial.parameters.items())
            values = [f"{trial.arm}: {own}" if own else trial.arm]
        expected, draws = number(trial.expected_epsilon), count(trial.draws)
        row = {"rank": rank, "parameters": values, "expected": expected, "draws": draws}
        rows.append({**row, "stage": trial.stage, "note": trial.note})
    return {
        "kind": "portfolio" if record.is_portfolio else "space",
        "space": record.space,
        "parameters": ["pair"] if record.is_portfolio else list(record.parameters),
        "cost": cost + f"; {len(failed)} gave no valid pair" * bool(failed),
        "draws": spent,
        "rows": rows,
        "notes": [f"{n}\u202f× {why}" for why, n in collections.Counter(failed).most_common(3)],
    }
