"""The plain data that a result is made of: numbers with their bounds, curves, counts, pictures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypedDict

from dpaudit._json import LATER, Count, Name, Nonnegative, Probability
from dpaudit._validate import same_length
from dpaudit.stats import Counts

BY_RANK = "exact test of guesses by rank, on all draws at fair coins"
"""Method of an estimate whose guesses needed no draws to learn from."""


@dataclass(frozen=True)
class Estimate:
    """A number with the bounds that belong to it.

    Parameters
    ----------
    value : float
        Point estimate from the certifying draws; never a guarantee.
    lower, upper : float
        One-sided bounds; ``upper`` is ``inf`` or 1 where nothing is known, as in a black-box audit.
    failure_prob : float
        Probability that a bound is wrong; 0 when computed exactly.
    method : str
        How the bounds were obtained.
    counts : Counts or None
        The integers behind them; None when computed exactly. Of a guess, right guesses and wrong
        ones, each of all draws.
    certified : bool
        Whether `lower` may be quoted as certified; False for estimates that lean on assumptions.
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
    """Privacy profiles over one grid of epsilons; the certified one holds everywhere at once."""

    epsilon: tuple[Nonnegative, ...]
    certified_delta: tuple[Probability, ...]
    estimated_delta: tuple[Probability, ...]
    claimed_delta: tuple[Probability, ...]

    def __post_init__(self) -> None:
        same_length(self, "epsilon", "certified_delta", "estimated_delta", "claimed_delta")


@dataclass(frozen=True)
class LongProfile:
    """An estimated privacy profile, from epsilon = 0 until delta is below 1e-9; no guarantee.

    Parameters
    ----------
    epsilon : tuple of float
        The grid of the audit, continued.
    estimated_delta : tuple of float
        ``max(mean X - e^epsilon mean Y, 0)`` of the event that is largest there, among events that
        were chosen on other draws; exact for deterministic centres.
    standard_error : tuple of float
        Asymptotic, of that event; 0 for deterministic centres.
    """

    epsilon: tuple[Nonnegative, ...]
    estimated_delta: tuple[Probability, ...]
    standard_error: tuple[Nonnegative, ...]

    def __post_init__(self) -> None:
        same_length(self, "epsilon", "estimated_delta", "standard_error")


@dataclass(frozen=True)
class Histogram:
    """Where the outputs of both sides fell, along the score of the event or the guess.

    Parameters
    ----------
    label : str
        What the axis shows.
    bins : tuple of str
        Words of each bin, k of them.
    edges : tuple of float, optional
        k + 1 edges when the axis is numeric.
    left, right : tuple of int
        Certifying draws in each bin, of the first million a side.
    inside : tuple of bool
        Whether the event fires in the bin; of a guess, whether left is guessed there.
    inside_right : tuple of bool
        Of a guess, whether right is guessed in the bin; empty for an event, and in what was stored
        before there was this field.
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
            raise ValueError(f"edges must hold 2 to {len(self.bins) + 1} values")


@dataclass(frozen=True)
class Witness:
    """The event that certifies the epsilon of a result, in words and counts.

    Parameters
    ----------
    event : str
        The event in words, such as "coordinate 0 > 1.73".
    likelier : {"left", "right"}
        Side on which it was declared to be likelier.
    counts : Counts or None
        Certifying draws; None where probabilities were computed or averaged instead. Of a guess,
        where left is guessed.
    likely, rare : float
        Where counts certify: of all rates of the event, on the likelier side and on the other,
        that the draws leave possible, the ones that are easiest to reconcile with privacy. Exact
        where they were computed; observed rates, without guarantee, where bets certify. Of a
        guess, of its being right and of its being wrong.
    right : Counts or None
        Of a guess, where right is guessed; None for an event.
    """

    event: str
    likelier: str
    counts: Counts | None
    likely: Probability
    rare: Probability
    right: Counts | None = None

    def sentence(self, unit: str = "draws at fair coins") -> str:
        """Return the witness in words; `unit` names what is guessed."""
        if self.counts is not None and self.right is not None:
            c, d = self.counts, self.right
            of_left, of_right = c.hits_left + c.hits_right, d.hits_left + d.hits_right
            return (
                f"guessing {self.event}: {c.hits_left + d.hits_right:,} of {of_left + of_right:,} "
                f"guesses right, in {c.draws_left + c.draws_right:,} {unit} "
                f"(left {c.hits_left:,} of {of_left:,}, right {d.hits_right:,} of {of_right:,})"
            )
        other = "right" if self.likelier == "left" else "left"
        if self.counts is None:
            seen = f"{self.likely:.4g} on the {self.likelier}, {self.rare:.4g} on the {other}"
            return f"outputs with {self.event}: probability {seen}"
        c = self.counts if self.likelier == "left" else self.counts.swapped()
        return (
            f"outputs with {self.event}: {c.hits_left:,} of {c.draws_left:,} draws on the "
            f"{self.likelier}, {c.hits_right:,} of {c.draws_right:,} on the {other}"
        )


@dataclass(frozen=True)
class SequentialPath:
    """How the wealth of a sequential audit grew.

    Parameters
    ----------
    stopped : str
        Why it stopped, in words.
    budget : int
        Draws per dataset that it might have taken.
    refuted_at : float
        Logarithm of the wealth at which the claim is refuted, ``log(1 / failure_prob)``.
    draws : tuple of int
        Draws per dataset taken at each look.
    log_wealth : tuple of float
        Logarithm of the wealth of the bet against the claim at each look.
    """

    stopped: str
    budget: Count
    refuted_at: float
    draws: tuple[Count, ...]
    log_wealth: tuple[float, ...]

    def __post_init__(self) -> None:
        same_length(self, "draws", "log_wealth")


@dataclass(frozen=True)
class CanaryGuesses:
    """The guesses of an audit in one run, and epsilon at further deltas.

    Parameters
    ----------
    canaries, included : int
        Coins that were thrown, and how many came up "included".
    chosen : str
        How the number of guesses was chosen, in words.
    looks, correct : tuple of int
        Numbers of guesses at which right ones were counted, and how many were right by then.
    guesses, guessed_right : int
        At the look that shows most.
    deltas, certified_epsilons : tuple of float
        Certified epsilon at each delta; all hold together with the other numbers of the result.
    """

    canaries: Count
    included: Count
    chosen: str
    looks: tuple[Count, ...]
    correct: tuple[Count, ...]
    guesses: Count
    guessed_right: Count
    deltas: tuple[Probability, ...]
    certified_epsilons: tuple[Nonnegative, ...]

    def __post_init__(self) -> None:
        same_length(self, "looks", "correct")
        same_length(self, "deltas", "certified_epsilons")


@dataclass(frozen=True)
class MarginPoint:
    """What an audit certifies of the same mechanism with less noise, or more.

    Parameters
    ----------
    multiplier : float
        Of the noise.
    certified_epsilon : float
        At the claimed delta.
    refuted : bool
        Whether the claim falls there.
    """

    multiplier: Nonnegative
    certified_epsilon: Nonnegative
    refuted: bool


@dataclass(frozen=True)
class NoiseMargin:
    """By how much the noise could shrink before an audit refutes the claim: an upper bound.

    Parameters
    ----------
    points : tuple of MarginPoint
        By falling multiplier; each number is wrong with probability at most `failure_prob`.
    pair : str
        The pair on which all were audited.
    failure_prob : float
        Of each point.
    """

    points: tuple[MarginPoint, ...]
    pair: str
    failure_prob: Probability

    def __post_init__(self) -> None:
        if not self.points:
            raise ValueError("points must not be empty")

    @property
    def refuted_from(self) -> float | None:
        """Largest multiplier at which the claim is refuted; None where it never is."""
        return max((p.multiplier for p in self.points if p.refuted), default=None)

    def words(self) -> str:
        """Return the margin in one clause."""
        least, largest = self.points[-1].multiplier, self.refuted_from
        if largest is None:
            return f"not refuted even with {least:g} times the noise"
        return f"refuted with {largest:g} times the noise, as far as {least:g} was tried"


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
    """How a record was made, as far as a replay needs it."""

    kind: str
    path: Name
    item: str
    profile: str
    failure_prob: Probability
    sequential: bool
    versions: dict[str, str]
    sources: dict[str, str]
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
    like: Name | None
    users: int | None
    m: int | None
    dim: int | None
    range: tuple[int | float, ...] | None
    mutants: tuple[Name, ...] | None
    score: Name | None
    errors: str
    float_attack: bool
