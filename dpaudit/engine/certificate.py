"""Certificates: the bounds that an instrument computes, and the counts behind the bounds.

*Guesses by rank.* An audit of a training run has one number per run, a score, and at most hundreds
of runs. Learning a threshold would cost most of these draws, but guesses by rank need no threshold.
The side of each output is guessed by its rank among all outputs, in both directions.
:mod:`dpaudit.stats.ranked` bounds epsilon from the number of correct guesses. Guesses by rank get
half of `failure_prob`. The other half is for learnt events, which detect differences that do not
change the order of outputs. Whether guesses by rank are possible is decided from the outputs alone,
without their sides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.task import Run, Task
from dpaudit.events import Encoder, Event, Guess, scalar_score
from dpaudit.mechanisms import joined
from dpaudit.neighbors import NeighborPair
from dpaudit.results import (
    BY_RANK,
    CanaryGuesses,
    Estimate,
    Histogram,
    LongProfile,
    Profile,
    SequentialPath,
    Witness,
)
from dpaudit.search import SearchRecord
from dpaudit.stats import (
    LEFT,
    RIGHT,
    Counts,
    GuessCounts,
    RateBounds,
    Stages,
    Target,
    guess_bounds,
    ranked_epsilon,
    ranked_p_value,
    ranked_stages,
)

Answers = NDArray[np.int64]
"""Numbers of guesses of left, right and neither, shape (3,)."""

# --- counts of an event or a guess, and the bounds that follow from them -----------------------


_METHODS = (
    "exact joint bound of two binomials, on fresh draws",
    "exact bound of right guesses among all guesses, on fresh randomised draws",
)


@dataclass(frozen=True)
class Tally:
    """Counts of a frozen event, or of a frozen guess, in the certifying draws.

    Parameters
    ----------
    chosen : Event or Guess
        The event or the guess that is counted.
    counts : Counts
        Counts of the event; for a guess, counts of the draws guessed left.
    right : Counts, optional
        For a guess, counts of the draws guessed right; None for an event.
    """

    chosen: Event | Guess
    counts: Counts
    right: Counts | None = None

    @property
    def likelier(self) -> str:
        """The side on which `pair_counts` assumes the larger rate."""
        return "left" if isinstance(self.chosen, Guess) else self.chosen.likelier

    @property
    def guesses(self) -> GuessCounts | None:
        """Numbers of correct and wrong guesses; None for an event."""
        if self.right is None:
            return None
        c, d = self.counts, self.right
        return GuessCounts(
            c.hits_left + d.hits_right, c.hits_right + d.hits_left, c.draws_left + c.draws_right
        )

    @property
    def answers(self) -> tuple[Answers, Answers]:
        """Numbers of "left", "right" and no guess on each side, from which :func:`tally_of` counts.

        Outside an event, the guess is its other side.
        """
        c, d = self.counts, self.right
        if d is None:
            d = Counts(c.draws_left - c.hits_left, c.draws_left, c.draws_right - c.hits_right,
                       c.draws_right)  # fmt: skip
            c, d = (c, d) if self.likelier == "left" else (d, c)
        left = [c.hits_left, d.hits_left, c.draws_left - c.hits_left - d.hits_left]
        right = [c.hits_right, d.hits_right, c.draws_right - c.hits_right - d.hits_right]
        return np.array(left, dtype=np.int64), np.array(right, dtype=np.int64)

    @property
    def pair_counts(self) -> Counts:
        """Two counts whose rates bound epsilon: of an event, or of correct and wrong guesses."""
        seen = self.guesses
        return self.counts if seen is None else seen.as_counts()

    def bounds(self, failure_prob: float) -> RateBounds:
        """Return bounds of the rates that are wrong with probability at most `failure_prob`."""
        seen = self.guesses
        if seen is not None:
            return guess_bounds(seen, failure_prob)
        assert isinstance(self.chosen, Event)
        return RateBounds.from_counts(
            self.counts, self.chosen.likelier, failure_prob, self.chosen.target
        )

    def seen(self) -> RateBounds:
        """Return the observed rates, which carry no guarantee."""
        return rates_seen(self.pair_counts, self.likelier)

    @property
    def method(self) -> str:
        """Name of the method that computes the bounds."""
        return _METHODS[isinstance(self.chosen, Guess)]


def tally_of(chosen: Event | Guess, left: Answers, right: Answers) -> Tally:
    """Return the tally for the numbers of "left", "right" and no guess on either side.

    An event is treated like a guess. Where the event fires, the guess is its likelier side.
    Elsewhere, the guess is the other side.
    """
    n, m = int(left.sum()), int(right.sum())
    guessed = [Counts(int(left[at]), n, int(right[at]), m) for at in (LEFT, RIGHT)]
    if isinstance(chosen, Guess):
        return Tally(chosen, *guessed)
    return Tally(chosen, guessed[0 if chosen.likelier == "left" else 1])


def answers_of(sides: NDArray[np.int8]) -> Answers:
    """Return the number of guesses "left", guesses "right" and abstentions."""
    left, right = int((sides == 1).sum()), int((sides == -1).sum())
    return np.array([left, right, len(sides) - left - right])


def tally_on(chosen: Event | Guess, left: NDArray[Any], right: NDArray[Any]) -> Tally:
    """Return the tally of an event or a guess on draws of both sides."""
    guess = Guess.of(chosen)
    return tally_of(chosen, answers_of(guess(left)), answers_of(guess(right)))


def parts_of(chosen: Event | Guess) -> tuple[Event, ...]:
    """Return the events to count: one event, or the two events of a guess."""
    return (chosen.left, chosen.right) if isinstance(chosen, Guess) else (chosen,)


def rates_seen(counts: Counts, likelier: str) -> RateBounds:
    """Return the observed rates, moved by half a draw so that estimates are finite."""
    c = counts if likelier == "left" else counts.swapped()
    likely = np.array([(c.hits_left + 0.5) / (c.draws_left + 1)])
    rare = np.array([(c.hits_right + 0.5) / (c.draws_right + 1)])
    return RateBounds(likely, rare, 1.0)


# --- few draws of a number: guesses by rank on all draws at once, in addition to learnt events --


Floats = NDArray[np.float64]

RANKED_SHARE = 0.5
"""Part of failure_prob that guesses by rank get, in both directions together."""


@dataclass(frozen=True)
class Excess:
    """A certified point: the mechanism needs more than `epsilon` at `delta`.

    Parameters
    ----------
    epsilon, delta : float
        The point (epsilon, delta). The epsilon is 0 if nothing is certified.
    """

    epsilon: float
    delta: float

    def lower_epsilon(self, delta: float) -> float:
        """Return a lower bound of the epsilon that the mechanism needs at `delta`."""
        return self.epsilon if delta <= self.delta else 0.0

    def lower_delta(self, epsilon: float) -> float:
        """Return a lower bound of the delta that the mechanism needs at `epsilon`."""
        return self.delta if epsilon < self.epsilon else 0.0


@dataclass(frozen=True)
class RankedTally:
    """Guesses by rank in one direction, with the number of correct guesses.

    Parameters
    ----------
    chosen : Guess
        The guess at the test with the strongest evidence, written as thresholds of the output.
    counts, right : Counts
        Counts at the test with the strongest evidence, of the draws guessed left and of the draws
        guessed right.
    correct : tuple of int
        Number of correct guesses at each test.
    stages : Stages
        Numbers of guesses at which the number of correct guesses is tested.
    draws : int
        Total number of draws on both sides.
    point : (float, float)
        The claim.
    """

    chosen: Guess
    counts: Counts
    right: Counts
    correct: tuple[int, ...]
    stages: Stages
    draws: int
    point: tuple[float, float]

    likelier = "left"
    method = BY_RANK

    @property
    def pair_counts(self) -> Counts:
        """Numbers of correct and of wrong guesses at the strongest test, each out of all draws."""
        c, d = self.counts, self.right
        correct, wrong = c.hits_left + d.hits_right, c.hits_right + d.hits_left
        return GuessCounts(correct, wrong, self.draws).as_counts()

    def bounds(self, failure_prob: float) -> Excess:
        """Return the certified bounds, which are wrong with probability at most `failure_prob`."""
        delta = self.point[1]
        found = ranked_epsilon(
            self.correct, self.stages, self.draws, delta=delta, failure_prob=failure_prob
        )
        return Excess(found, delta)

    def p_value(self) -> float:
        """Return the p-value of the claim."""
        epsilon, delta = self.point
        return ranked_p_value(self.correct, self.stages, self.draws, epsilon=epsilon, delta=delta)

    def seen(self) -> RateBounds:
        """Return the observed rates of correct and wrong guesses at the best test."""
        c = self.pair_counts
        return RateBounds(
            np.array([(c.hits_left + 0.5) / (c.draws_left + 1)]),
            np.array([(c.hits_right + 0.5) / (c.draws_right + 1)]),
            1.0,
        )


def is_number(encoder: Encoder) -> bool:
    """Return whether each output is one number, so that outputs have an order."""
    return len(encoder.columns) == 1 and encoder.columns[0].labels is None


def ranked(
    run: Run, encoder: Encoder, left: NDArray[Any], right: NDArray[Any]
) -> list[RankedTally]:
    """Guess the side of each draw by the rank of the draw, in both directions.

    Parameters
    ----------
    run : Run
        The run of the audit. The claim of the run is a point, and the generator of the run breaks
        ties.
    encoder : Encoder
        The encoder of outputs that are one number each.
    left, right : ndarray
        All draws of the pair. Fair coins decided how many of the draws are on each side.
    """
    point = run.task.claim.point
    assert point is not None
    outputs = joined([left, right])
    encoded = encoder(outputs)
    score = scalar_score(encoder, encoded)
    scores = score(encoded)
    is_left = np.arange(len(outputs)) < len(left)
    # The draws are shuffled, because the order of equal scores must not reveal the coins.
    order = run.rng("ties").permutation(len(outputs))
    order = order[np.argsort(scores[order], kind="stable")]
    n = len(order)
    stages = ranked_stages(n)
    # The order of ranks is the highest, the lowest, the second highest, ...
    place = np.where(np.arange(n) % 2 == 0, n - 1 - np.arange(n) // 2, np.arange(n) // 2)
    high = np.arange(n) % 2 == 0
    at = np.array(stages.guesses)
    found = []
    ordered = scores[order]
    # An output at which both ends meet is not guessed. From this number on, no guess counts as
    # correct.
    met = (ordered[place] == ordered[n - 1 - place]) & (place != n - 1 - place)
    guessed = int(met.argmax()) if met.any() else n
    for rising in (True, False):
        guessed_left = high if rising else ~high
        is_right = (is_left[order[place]] == guessed_left) & (np.arange(n) < guessed)
        correct = np.cumsum(is_right)[at - 1]
        best = min(int(at[np.argmax(_surprise(correct, at))]), guessed)
        sides = is_left[order[place[:best]]]
        counts = [
            Counts(
                int((sides & where).sum()),
                len(left),
                int((~sides & where).sum()),
                len(right),
            )
            for where in (guessed_left[:best], ~guessed_left[:best])
        ]
        top = float(ordered[min(n - (best + 1) // 2, n - 1)])
        bottom = float(ordered[min(best // 2, n - 1)])
        left_from, right_from = (top, bottom) if rising else (bottom, top)
        cuts = (
            Event(score, left_from, rising, "left", encoder, _AIM),
            Event(score, right_from, not rising, "right", encoder, _AIM),
        )
        found.append(
            RankedTally(
                Guess(*cuts),
                counts[0],
                counts[1],
                tuple(correct.tolist()),
                stages,
                n,
                point,
            )
        )
    return found


_AIM = Target(delta=0.0)


def _surprise(correct: NDArray[np.intp], guesses: NDArray[np.intp]) -> Floats:
    """Return by how many standard deviations the correct guesses exceed half of all guesses."""
    return np.asarray((2 * correct - guesses) / np.sqrt(guesses))


class Bound(NamedTuple):
    """An epsilon or delta that the mechanism needs: its estimate, certified value and counts."""

    estimated: float
    lower: float
    counts: Counts | None = None


@dataclass(frozen=True)
class Certificate:
    """Bounds for one mechanism on one pair, from draws or from a computation.

    Fields with the names of fields of :class:`dpaudit.results.AuditResult` and of its `diagnostics`
    hold the same.

    Parameters
    ----------
    point : (float, float)
        The epsilon and delta of the claim at which it was tested.
    refuted : bool
        Whether a certified bound exceeds the claim.
    draws : dict
        Draws per dataset, for "explore" and "certify".
    p_value : float
        P-value of the claim; 1 if it is not refuted.
    event : Event or Guess, optional
        The event that `epsilon` is certified from.
    bounds : tuple of RateBounds
        Bounds that hold simultaneously, except with the failure probability of `epsilon`. Certified
        curves follow from them.
    constant : str
        "outputs" or "scores" if these were all equal on both datasets, and "" otherwise.
    reason, advice : str
        Sentences that replace those that are made from the other fields.
    mu : float
        A certified mu of Gaussian DP, if it is larger than the mu that follows from the bounds.
    """

    pair: NeighborPair
    point: tuple[float, float]
    refuted: bool
    epsilon: Estimate
    delta: Estimate
    profile: Profile
    witness: Witness
    histogram: Histogram
    draws: dict[str, int]
    mechanism_seconds: float
    p_value: float = 1.0
    event: Event | None = None
    bounds: tuple[RateBounds, ...] = ()
    sequential: SequentialPath | None = None
    long_profile: LongProfile | None = None
    search: SearchRecord | None = None
    notes: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    constant: str = ""
    reason: str = ""
    advice: str = ""
    mu: float = 0.0
    canaries: CanaryGuesses | None = None
    log_e_values: tuple[float, ...] = ()

    @classmethod
    def of(
        cls,
        task: Task,
        pair: NeighborPair,
        point: tuple[float, float],
        *,
        epsilon: Bound,
        delta: Bound,
        certified: Iterable[float],
        estimated: Iterable[float],
        method: str,
        refuted: bool | None = None,
        explored: int = 0,
        certifying: int = 0,
        computed: bool = False,
        whole: bool = False,
        **rest: Any,
    ) -> Certificate:
        """Build a certificate from the bounds of any instrument.

        Parameters
        ----------
        task : Task
            The task of the audit.
        pair, point
            The pair of the certificate, and the tested point (epsilon, delta) of the claim.
        epsilon, delta : Bound
            Epsilon that is needed at the claimed delta, and delta that is needed at the claimed
            epsilon.
        certified, estimated : iterable of float
            Deltas that are needed on the grid of the task.
        method : str
            Name of the method that computed the bounds.
        refuted : bool, optional
            Whether the claim is refuted. By default, the claim is refuted if a bound exceeds it.
        explored, certifying : int
            Draws per dataset.
        computed : bool
            Whether the bounds were computed without draws, so that they cannot be wrong.
        whole : bool
            Whether the computed bounds are exact. If False, the bounds are lower bounds.
        **rest
            Other fields of the certificate.
        """
        if refuted is None:
            refuted = epsilon.lower > point[0] or delta.lower > point[1]

        def estimate(bound: Bound, most: float) -> Estimate:
            return Estimate(
                value=bound.estimated,
                lower=bound.lower,
                upper=bound.lower if whole else most,
                failure_prob=0.0 if computed else task.failure_prob,
                method=method,
                counts=bound.counts,
                certified=True,
            )

        return cls(
            pair=pair,
            point=point,
            refuted=bool(refuted),
            epsilon=estimate(epsilon, math.inf),
            delta=estimate(delta, 1.0),
            profile=Profile(
                tuple(task.grid.tolist()),
                tuple(map(float, certified)),
                tuple(map(float, estimated)),
                tuple(task.claimed.tolist()),
            ),
            draws={"explore": explored, "certify": certifying},
            **rest,
        )


def severity(found: Certificate) -> tuple[bool, float, float]:
    """Return the sort key of a certificate: violations, then epsilon, then the excess of delta.

    For a curve, epsilons at different deltas cannot be compared, but excesses of delta can.
    """
    claimed_epsilon, claimed_delta = found.point
    ratio = found.delta.lower / max(claimed_delta, 1e-300)
    excess = (found.epsilon.lower - claimed_epsilon) / max(claimed_epsilon, 1e-9)
    return found.refuted, excess, ratio
