"""What a verdict means where it was reached: one table for terminal, pytest and page."""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit.results.result import AuditResult
from dpaudit.results.verdicts import Expectation, Verdict


@dataclass(frozen=True)
class Outcome:
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


OUTCOMES = {
    outcome.key: outcome
    for outcome in (
        Outcome(
            "refuted",
            "REFUTED",
            "refuted",
            "R",
            "bold red",
            "A violation of the claim is certified.",
            common=True,
        ),
        Outcome(
            "lost",
            "VIOLATION NOT FOUND AGAIN",
            "lost violations",
            "L",
            "bold red",
            "A known violation is no longer found: look into it.",
        ),
        Outcome(
            "no_power",
            "NO POWER",
            "without power",
            "P",
            "bold yellow",
            "Nothing was found, but the broken twin escaped too: silence means nothing.",
            common=True,
        ),
        Outcome(
            "powerless",
            "NO POWER (no twin)",
            "no verdict",
            "p",
            "yellow",
            "Nothing was found, and no broken twin was given: silence means nothing.",
        ),
        Outcome(
            "open",
            "OPEN (needs a larger profile)",
            "open",
            "o",
            "yellow",
            "A known violation that this budget need not show.",
        ),
        Outcome(
            "known",
            "REFUTED (known)",
            "known violations",
            "k",
            "magenta",
            "A known violation, kept as a demonstration, found again.",
            common=True,
        ),
        Outcome(
            "not_refuted",
            "NOT REFUTED",
            "not refuted",
            ".",
            "green",
            "Nothing was found by an audit that caught the broken twin. This proves no privacy.",
            common=True,
        ),
    )
}
"""By key, in the order in which a reader should look at them."""


def outcome_of(result: AuditResult) -> Outcome:
    """Return what became of an audit, beside what was expected of it."""
    refuted = result.verdict is Verdict.REFUTED
    if result.expected in (Expectation.REFUTED, Expectation.EITHER):
        missed = "lost" if result.expected == Expectation.REFUTED else "open"
        key = "known" if refuted else missed
    elif result.verdict is Verdict.NO_POWER and result.twin is None:
        key = "powerless"
    else:
        key = result.verdict.value
    return OUTCOMES[key]


def worst(results: list[AuditResult]) -> Outcome:
    """Return the outcome of an audit function that made several checks: the first to look at."""
    keys = {outcome_of(result).key for result in results}
    return next(outcome for key, outcome in OUTCOMES.items() if key in keys)


def surprise(result: AuditResult) -> str | None:
    """Say in one sentence why a result fails a run; None when it does not."""
    key = outcome_of(result).key
    if key == "refuted":
        return f"the claim is refuted: {result.reason}"
    if key == "no_power":
        return f"the audit has no power: {result.reason}"
    if key == "lost":
        return (
            "a known violation was not found again: fix the audit, or take the mark away if the "
            "mechanism was mended"
        )
    return None
