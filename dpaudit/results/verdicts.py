"""Verdicts and what was expected of them; and what the pictures of a result need to know of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Protocol

from dpaudit.results.estimates import (
    Histogram,
    LongProfile,
    Profile,
    SequentialPath,
    Slack,
)
from dpaudit.results.mutants import MutantResult
from dpaudit.search import SearchRecord
from dpaudit.stats import Curves


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


class Shown(Protocol):
    """What pictures show of an audit; :class:`~dpaudit.results.AuditResult` is one."""

    @property
    def id(self) -> str:
        """Name of the audit."""

    @property
    def claim(self) -> dict[str, Any]:
        """As stored."""

    @property
    def verdict(self) -> Verdict:
        """What was concluded."""

    @property
    def failure_prob(self) -> float:
        """Of all certified numbers together."""

    @property
    def claimed_epsilon(self) -> float:
        """At the point of comparison."""

    @property
    def claimed_delta(self) -> float:
        """At the point of comparison."""

    @property
    def certified_epsilon(self) -> float:
        """At the claimed delta."""

    @property
    def profile(self) -> Profile:
        """Over the grid of the audit."""

    @property
    def long_profile(self) -> LongProfile | None:
        """Beyond it."""

    @property
    def curves(self) -> Curves | None:
        """In other languages."""

    @property
    def histogram(self) -> Histogram:
        """Along the witness."""

    @property
    def mutants(self) -> tuple[MutantResult, ...]:
        """Of the same audit."""

    @property
    def sequential(self) -> SequentialPath | None:
        """Of a sequential audit."""

    @property
    def slack(self) -> Slack | None:
        """Of a slack frontier."""

    @property
    def search(self) -> SearchRecord | None:
        """Of a search."""
