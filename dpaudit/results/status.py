"""What a verdict means where it was reached: one table for terminal, pytest and page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dpaudit.results.verdicts import Expectation, Verdict


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
    common : bool
        Whether the page shows it even where no audit ended so.
    """

    key: str
    word: str
    category: str
    letter: str
    style: str
    meaning: str
    common: bool = False


STATUSES = {
    status.key: status
    for status in (
        Status(
            "refuted",
            "REFUTED",
            "refuted",
            "R",
            "bold red",
            "A violation of the claim is certified.",
            common=True,
        ),
        Status(
            "lost",
            "VIOLATION NOT FOUND AGAIN",
            "lost violations",
            "L",
            "bold red",
            "A known violation is no longer found: look into it.",
        ),
        Status(
            "no_power",
            "NO POWER",
            "without power",
            "P",
            "bold yellow",
            "Nothing was found, but a mutant that was given survived: silence means nothing.",
            common=True,
        ),
        Status(
            "powerless",
            "NO POWER (none killed)",
            "no verdict",
            "p",
            "yellow",
            "Nothing was found, and no mutant was killed: silence means nothing.",
        ),
        Status(
            "open",
            "OPEN (needs a larger profile)",
            "open",
            "o",
            "yellow",
            "A known violation that this budget need not show.",
        ),
        Status(
            "known",
            "REFUTED (known)",
            "known violations",
            "k",
            "magenta",
            "A known violation, kept as a demonstration, found again.",
            common=True,
        ),
        Status(
            "not_refuted",
            "NOT REFUTED",
            "not refuted",
            ".",
            "green",
            "Nothing was found by an audit that killed mutants. This proves no privacy.",
            common=True,
        ),
    )
}
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
