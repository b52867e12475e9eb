"""Plain data in a result: numbers with their bounds, curves, counts and histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

from dpaudit._json import LATER, Count, Name, Nonnegative, Probability, Range
from dpaudit._validate import same_length
from dpaudit.stats import Counts

BY_RANK = "exact test of guesses by rank, on all randomised draws"
"""Method of an estimate whose guesses were fixed beforehand, without exploration."""


@dataclass(frozen=True)
class Estimate:
    """A number with its bounds.

    Parameters
    ----------
    value : float
        Point estimate from the certifying draws, without guarantee.
    lower, upper : float
        One-sided bounds of the number. ``upper`` is ``inf`` or 1 if no upper bound is known, as in
        a black-box audit.
    failure_prob : float
        Probability that a bound is wrong. The probability is 0 if the bound was computed exactly.
    method : str
        Method that computed the bounds.
    counts : Counts or None
        Counts from which the bounds were computed; None if the bounds were computed exactly. For a
        guess, the numbers of correct and of wrong guesses, each among all draws.
    certified : bool
        Whether `lower` may be quoted as certified. False for an estimate that depends on
        assumptions.
    """

    value: float
    lower: float
    upper: float
    failure_prob: Probability
    method: str
    counts: Counts | None
    certified: bool


@dataclass(frozen=True)
class Profile:
    """Privacy profiles on one grid of epsilons.

    All certified deltas hold simultaneously.
    """

    epsilon: tuple[Nonnegative, ...]
    certified_delta: tuple[Probability, ...]
    estimated_delta: tuple[Probability, ...]
    claimed_delta: tuple[Probability, ...]

    def __post_init__(self) -> None:
        same_length(self, "epsilon", "certified_delta", "estimated_delta", "claimed_delta")


@dataclass(frozen=True)
class LongProfile:
    """Estimated privacy profile from epsilon = 0 until delta is below 1e-9, without guarantee.

    Parameters
    ----------
    epsilon : tuple of float
        The grid starts with the grid of the audit and continues to larger epsilons.
    estimated_delta : tuple of float
        For each epsilon, ``max(mean X - e^epsilon mean Y, 0)`` of the event with the largest value.
        The events were chosen on other draws. For deterministic centres, the values are exact.
    standard_error : tuple of float
        Asymptotic standard error for the event of each epsilon; 0 for deterministic centres.
    """

    epsilon: tuple[Nonnegative, ...]
    estimated_delta: tuple[Probability, ...]
    standard_error: tuple[Nonnegative, ...]

    def __post_init__(self) -> None:
        same_length(self, "epsilon", "estimated_delta", "standard_error")


@dataclass(frozen=True)
class Histogram:
    """Histogram of the outputs of both sides along the score of the event or of the guess.

    Parameters
    ----------
    label : str
        Label of the axis.
    bins : tuple of str
        Label of each of the k bins.
    edges : tuple of float, optional
        The k + 1 edges of a numeric axis.
    left, right : tuple of int
        Draws in each bin, of a part of the draws of each side.
    inside : tuple of bool
        Whether the event contains the bin. For a guess, whether left is guessed in the bin.
    inside_right : tuple of bool
        Whether right is guessed in the bin. Empty for an event, and in older files.
    """

    label: str
    bins: tuple[str, ...]
    edges: tuple[float, ...] | None
    left: tuple[Count, ...]
    right: tuple[Count, ...]
    inside: tuple[bool, ...]
    inside_right: tuple[bool, ...] = field(default=(), metadata=LATER)

    def __post_init__(self) -> None:
        same_length(self, "bins", "left", "right", "inside")
        if self.inside_right:
            same_length(self, "bins", "inside_right")
        if self.edges is not None and not 1 < len(self.edges) <= len(self.bins) + 1:
            raise ValueError(f"edges must hold from 2 to {len(self.bins) + 1} values")


@dataclass(frozen=True)
class Witness:
    """The event or guess that certifies the epsilon of a result, and its counts.

    Parameters
    ----------
    event : str
        The event in words, such as "coordinate 0 > 1.73". An event of more than two intervals is
        summarised, and `definition` has its complete form.
    likelier : {"left", "right"}
        Side on which the event was declared more likely.
    counts : Counts or None
        Counts of the certifying draws. None if probabilities were computed or averaged. For a
        guess, counts of the outputs at which left is guessed.
    likely, rare : float
        Rates of the event, first on the likelier side and then on the other side. If counts
        certify, the rates are the point of the confidence region that comes closest to satisfying
        the claim. If the probabilities were computed, the rates are exact. If bets certify, the
        rates are observed and carry no guarantee. For a guess, the rates are the rates of correct
        and of wrong guesses.
    right : Counts or None
        Counts of the outputs at which right is guessed. None for an event.
    definition : str
        The event with up to 1,000 parts and all digits of its thresholds. Empty if `event` is
        already complete. For a learnt score, the definition contains only the name of the score. No
        definition is stored for computed probabilities, averages over noise, and runs of canaries.
    """

    event: str
    likelier: str
    counts: Counts | None
    likely: Probability
    rare: Probability
    right: Counts | None = None
    definition: str = field(default="", metadata=LATER)

    def sentence(self, unit: str = "randomised draws") -> str:
        """Return the witness and its counts in words.

        `unit` says what is guessed.
        """
        if self.counts is not None and self.right is not None:
            c, d = self.counts, self.right
            of_left, of_right = c.hits_left + c.hits_right, d.hits_left + d.hits_right
            return (
                f"guess {self.event}: {c.hits_left + d.hits_right:,} of {of_left + of_right:,} "
                f"guesses are right, in {c.draws_left + c.draws_right:,} {unit} (left: "
                f"{c.hits_left:,} of {of_left:,}; right: {d.hits_right:,} of {of_right:,})"
            )
        other = "right" if self.likelier == "left" else "left"
        if self.counts is None:
            rates = f"{self.likely:.3g} on the {self.likelier}, {self.rare:.3g} on the {other}"
            return f"outputs with {self.event}: probability {rates}"
        c = self.counts if self.likelier == "left" else self.counts.swapped()
        return (
            f"outputs with {self.event}: {c.hits_left:,} of {c.draws_left:,} draws on the "
            f"{self.likelier}, {c.hits_right:,} of {c.draws_right:,} on the {other}"
        )


@dataclass(frozen=True)
class SequentialPath:
    """The wealth of a sequential audit at its interim analyses.

    Parameters
    ----------
    stopped : str
        Reason why the audit stopped, in words.
    budget : int
        Largest number of draws per dataset.
    refuted_at : float
        Logarithm of the wealth at which the claim is refuted, ``log(1 / failure_prob)``.
    draws : tuple of int
        Draws per dataset at each interim analysis.
    log_wealth : tuple of float
        Logarithm of the wealth of the bets against the claim at each interim analysis.
    """

    stopped: str
    budget: Count
    refuted_at: float
    draws: tuple[Count, ...]
    log_wealth: tuple[float, ...]

    def __post_init__(self) -> None:
        same_length(self, "draws", "log_wealth")


LogEValue = Annotated[float, Range(-1e15, 1e15)]
"""Logarithm of an e-value in a file."""


def log_mean(logs: Sequence[float]) -> float:
    """Return the logarithm of the mean of numbers that are given by their logarithms."""
    largest = max(logs)
    return largest + math.log(math.fsum(math.exp(log - largest) for log in logs) / len(logs))


@dataclass(frozen=True)
class Accumulated:
    """The evidence of all runs of one audit with the same claim and the same code.

    Parameters
    ----------
    runs : int
        Number of runs whose e-values are multiplied.
    version : int
        Number of this claim and code in the life of the audit, from 1.
    log_e_value : float
        Logarithm of the product of the e-values, at the run after which it was largest.
    refuted_at : float
        Logarithm of the product at which the claim is refuted, which is ``log(v (v + 1) /
        failure_prob)`` for version v.
    counts : bool
        Whether this run is one of `runs`. A run adds nothing if an earlier run of the audit had
        the same seed.
    """

    runs: Count
    version: Count
    log_e_value: LogEValue
    refuted_at: LogEValue
    counts: bool

    @property
    def refuted(self) -> bool:
        """Whether the runs together refute the claim."""
        return self.log_e_value >= self.refuted_at

    def words(self) -> str:
        """Return the evidence in a few words."""
        many = "1 run" if self.runs == 1 else f"{self.runs} runs"
        # Decimal logarithms are rounded in the conservative direction.
        digits = math.log(10)
        found = math.floor(self.log_e_value / digits * 10) / 10
        needed = math.ceil(self.refuted_at / digits * 10) / 10
        enough = "which is enough" if self.refuted else f"and 10^{needed:.1f} refutes the claim"
        which = f" (version {self.version})" * (self.version > 1)
        have = "has" if self.runs == 1 else "have"
        return f"{many} of this claim and code{which} {have} the e-value 10^{found:.1f}, {enough}"


@dataclass(frozen=True)
class CanaryGuesses:
    """The guesses of an audit in one run, and the certified epsilons at further deltas.

    Parameters
    ----------
    canaries, included : int
        Number of canaries, and number of included canaries.
    chosen : str
        How the number of guesses was chosen, in words.
    stages, correct : tuple of int
        Tested numbers of guesses, with the number of correct guesses at each tested number.
    guesses, guessed_right : int
        Guesses and correct guesses at the test with the strongest evidence.
    deltas, certified_epsilons : tuple of float
        Certified epsilon at each delta. These epsilons and the other certified numbers of the
        result all hold simultaneously.
    """

    canaries: Count
    included: Count
    chosen: str
    stages: tuple[Count, ...]
    correct: tuple[Count, ...]
    guesses: Count
    guessed_right: Count
    deltas: tuple[Probability, ...]
    certified_epsilons: tuple[Nonnegative, ...]

    def __post_init__(self) -> None:
        same_length(self, "stages", "correct")
        same_length(self, "deltas", "certified_epsilons")


@dataclass(frozen=True)
class MarginPoint:
    """Result for the same mechanism with its noise multiplied by a factor.

    Parameters
    ----------
    multiplier : float
        Factor by which the noise is multiplied.
    certified_epsilon : float
        Certified lower bound of epsilon at the claimed delta.
    refuted : bool
        Whether the claim is refuted at this factor.
    """

    multiplier: Nonnegative
    certified_epsilon: Nonnegative
    refuted: bool


@dataclass(frozen=True)
class NoiseMargin:
    """Audits of the mechanism with less noise, which show how far its noise can be reduced.

    Parameters
    ----------
    points : tuple of MarginPoint
        Results in decreasing order of the multiplier.
    pair : str
        The pair on which all points were audited.
    failure_prob : float
        Probability that the certified number of one point is wrong.
    """

    points: tuple[MarginPoint, ...]
    pair: str
    failure_prob: Probability

    def __post_init__(self) -> None:
        if not self.points:
            raise ValueError("points must hold at least one result, got none")

    @property
    def refuted_from(self) -> float | None:
        """Largest multiplier at which the claim is refuted; None if it is never refuted."""
        return max((p.multiplier for p in self.points if p.refuted), default=None)

    def words(self) -> str:
        """Return the margin in a few words."""
        least, largest = self.points[-1].multiplier, self.refuted_from
        if largest is None:
            return f"not refuted even with {least:g} times the noise"
        return f"refuted with {largest:g} times the noise (factors down to {least:g} were tried)"


class _Claim(TypedDict):
    notion: str
    epsilon: Nonnegative
    delta: Probability
    relation: str
    source: str
    words: str


class ClaimFacts(_Claim, total=False):
    """The claim of an audit as plain data."""

    parameters: dict[str, Any]


class Origin(TypedDict, total=False):
    """How a record was made, as data for a replay."""

    kind: str
    path: Name
    item: str
    profile: str
    failure_prob: Probability
    sequential: bool
    versions: dict[str, str]
    sources: dict[str, str]
    code: str
    records: Count
    replays: bool
    reason: str
    target: Name
    draws: Count
    method: str
    epsilon: float | None
    delta: float | None
    mu: float | None
    rho: float | None
    relation: str | None
    pair: str | None
    local: str | None
    like: Name | None
    users: int | None
    m: int | None
    dim: int | None
    range: tuple[int | float, ...] | None
    mutants: tuple[Name, ...] | None
    score: Name | None
    errors: str
    float_attack: bool
