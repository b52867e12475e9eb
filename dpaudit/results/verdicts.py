"""Verdicts, and what was expected of them."""

from __future__ import annotations

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
