"""Verdicts, expectations and statuses.

A status is a verdict compared with its expectation. The terminal, the pytest summary and the page
all use the words in `STATUSES`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """Verdict of an audit. There is no "passed", because a lower bound cannot prove privacy."""

    REFUTED = "refuted"
    """The audit certified a violation of the claim."""

    NOT_REFUTED = "not_refuted"
    """The audit found no violation of the claim, but it did refute the claim for mutants."""

    NO_POWER = "no_power"
    """The audit found no violation, and it killed no mutant or missed a mutant given by the user.
    The result says nothing about the mechanism."""

    @property
    def words(self) -> str:
        """The verdict in capitals, such as "NOT REFUTED"."""
        return self.value.replace("_", " ").upper()

    @classmethod
    def _missing_(cls, value: object) -> Verdict | None:
        """Accept other spellings, such as ``Verdict("NOT REFUTED")``."""
        word = str(value).strip().lower().replace(" ", "_").replace("-", "_")
        return next((verdict for verdict in cls if verdict.value == word), None)


class Expectation(StrEnum):
    """Expected verdict, which is declared before the audit runs."""

    NOT_REFUTED = "not_refuted"
    """Default: a refutation fails the run."""

    POWER = "power"
    """Default of a strict run: a refutation fails the run, and so does NO POWER."""

    REFUTED = "refuted"
    """A known violation, kept as a demonstration. The run fails if the audit does not find it."""

    EITHER = "either"
    """A known violation that may need more draws than this run has; any verdict is accepted."""


@dataclass(frozen=True)
class Status:
    """A verdict compared with the expected verdict.

    Parameters
    ----------
    key : str
        Name of the status in files and in the markup of the page.
    word : str
        Label of the status in reports.
    category, letter : str
        Label in pytest's summary line, and character in pytest's line of dots.
    style : str
        Style of the label on a terminal, in the notation of rich.
    meaning : str
        One sentence of explanation.
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
         "The audit certified a violation of the claim."),
        ("history", "REFUTED (history)", "refuted by history", "H", "bold red",
         "The runs of the history together certified a violation, although this run did not."),
        ("lost", "VIOLATION NOT FOUND AGAIN", "lost violations", "L", "bold red",
         "The audit no longer finds a known violation."),
        ("no_power", "NO POWER", "without power", "P", "bold yellow",
         "No violation found, but a mutant that you gave, or every mutant (--strict), was missed. "
         "The result says nothing."),
        ("powerless", "NO POWER (allowed)", "no verdict", "p", "yellow",
         "No violation and no planted mistake found. This says nothing, and --strict fails it."),
        ("open", "OPEN (needs a larger profile)", "open", "o", "yellow",
         "The audit did not find a known violation that may need more draws."),
        ("not_refuted", "NOT REFUTED", "not refuted", ".", "green",
         "No violation found, although planted mistakes were found. This does not prove privacy."),
        ("known", "REFUTED (known)", "known violations", "k", "magenta",
         "The audit found a known violation again."),
    )
}  # fmt: skip
"""Statuses by key, the most urgent first."""


def status_of(
    verdict: Verdict,
    expected: Expectation | None,
    *,
    has_given: bool,
    by_history: bool = False,
) -> Status:
    """Return the status of an audit: its verdict compared with the expected verdict.

    NO POWER makes every strict run fail. NO POWER makes any other run fail if the user gave a
    mutant (`has_given`). `by_history` says that all runs of a history together refute the claim.
    """
    refuted = verdict is Verdict.REFUTED
    if expected in (Expectation.REFUTED, Expectation.EITHER):
        missed = "lost" if expected == Expectation.REFUTED else "open"
        key = "known" if refuted else missed
    elif by_history and not refuted:
        key = "history"
    elif verdict is Verdict.NO_POWER and not has_given and expected is not Expectation.POWER:
        key = "powerless"
    else:
        key = verdict.value
    return STATUSES[key]


def worst(statuses: Iterable[Status]) -> Status:
    """Return the most urgent status of several.

    Statuses of records other than audits, such as statements, come last and keep their order.
    """
    order = {key: rank for rank, key in enumerate(STATUSES)}
    return min(statuses, key=lambda status: order.get(status.key, len(order)))
