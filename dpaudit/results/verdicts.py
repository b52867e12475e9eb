"""Verdicts, what was expected of them, and what both mean: one table for terminal, pytest, page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What may be said after an audit. There is no "passed": a lower bound proves no privacy."""

    REFUTED = "refuted"
    """A violation of the claim is certified."""

    NOT_REFUTED = "not_refuted"
    """No violation was found, by an audit that killed mutants; the reason names what of the
    mechanism's noise it would not miss."""

    NO_POWER = "no_power"
    """No violation was found, but no mutant was killed, or one that was given survived: silence
    means nothing."""

    @property
    def words(self) -> str:
        """The verdict as people read it."""
        return self.value.replace("_", " ").upper()

    @classmethod
    def _missing_(cls, value: object) -> Verdict | None:
        """Read a verdict however it is spelt: ``Verdict("NOT REFUTED")``."""
        word = str(value).strip().lower().replace(" ", "_").replace("-", "_")
        return next((verdict for verdict in cls if verdict.value == word), None)


class Expectation(StrEnum):
    """What was declared about an audit before it ran."""

    NOT_REFUTED = "not_refuted"
    """The usual case: a refutation fails the run."""

    POWER = "power"
    """The usual case of a strict run: silence without power fails it too, whatever the reason."""

    REFUTED = "refuted"
    """A known violation kept as a demonstration: not finding it fails the run."""

    EITHER = "either"
    """A known violation that needs a larger budget than this run has."""


@dataclass(frozen=True)
class Status:
    """A verdict beside what was expected.

    Parameters
    ----------
    key : str
        Name in files and in the page's markup.
    word : str
        The verdict as people read it.
    category, letter : str
        In pytest's summary line, and among its dots.
    style : str
        Of rich, for the terminal.
    meaning : str
        One sentence for a reader who is new to it.
    """

    key: str
    word: str
    category: str
    letter: str
    style: str
    meaning: str


STATUSES = {
    key: Status(key, *words)
    for key, *words in (
        # key, word, category, letter, style, meaning
        ("refuted", "REFUTED", "refuted", "R", "bold red",
         "A violation of the claim is certified."),
        ("lost", "VIOLATION NOT FOUND AGAIN", "lost violations", "L", "bold red",
         "A known violation is no longer found: look into it."),
        ("no_power", "NO POWER", "without power", "P", "bold yellow",
         "Nothing was found, but a mutant that was given survived: silence means nothing."),
        ("powerless", "NO POWER (none killed)", "no verdict", "p", "yellow",
         "Nothing was found, and no mutant was killed: silence means nothing."),
        ("open", "OPEN (needs a larger profile)", "open", "o", "yellow",
         "A known violation that this budget need not show."),
        ("known", "REFUTED (known)", "known violations", "k", "magenta",
         "A known violation, kept as a demonstration, found again."),
        ("not_refuted", "NOT REFUTED", "not refuted", ".", "green",
         "Nothing was found by an audit that killed mutants. This proves no privacy."),
    )
}  # fmt: skip
"""By key, in the order in which a reader should look at them."""


def status_of(verdict: Verdict, expected: Expectation | None, *, has_given: bool) -> Status:
    """Return what became of an audit, beside what was expected of it.

    Silence without power fails a plain run where somebody gave a mutant, and a strict one always.
    """
    refuted = verdict is Verdict.REFUTED
    if expected in (Expectation.REFUTED, Expectation.EITHER):
        missed = "lost" if expected == Expectation.REFUTED else "open"
        key = "known" if refuted else missed
    elif verdict is Verdict.NO_POWER and not has_given and expected is not Expectation.POWER:
        key = "powerless"
    else:
        key = verdict.value
    return STATUSES[key]


def worst(statuses: Iterable[Status]) -> Status:
    """Return the status of an audit function that made several checks: the first to look at.

    Of statuses that are no audit's, as of a statement, the first one given.
    """
    order = {key: rank for rank, key in enumerate(STATUSES)}
    return min(statuses, key=lambda status: order.get(status.key, len(order)))
