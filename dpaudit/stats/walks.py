"""Walks of correct guesses: when to test them, and which counts are improbably large.

Guesses are taken in an order that was fixed in advance, and C_k of the first k guesses are correct.
The statistic of this walk is the smallest value of P(Bin(k, pi) >= C_k) / weight_k over its tests.
The statistic is at most gamma if and only if some C_k reaches its height.

The module contains the parts that the walk of one run and the walk of many draws share. Each of the
two modules :mod:`dpaudit.stats.one_run_walk` and :mod:`dpaudit.stats.ranked` proves its own bound
of the probability that a height is reached.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from dpaudit import _validate
from dpaudit.errors import ArgumentError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LARGEST_EPSILON = 30.0
"""Largest certified epsilon: beyond it no number of coins distinguishes a rate from 1."""

FIXED_STAGES = {16: 0.1, 8: 0.2, 4: 0.5, 2: 0.2}
"""Tests of :meth:`Stages.sparse`: inverse fraction of guessed canaries, and the test's share."""

_ROUNDING = 1e-9, 1e-13  # relative and absolute, of sums of thousands of doubles
_RATIO = 1.15  # ratio of neighbouring numbers of guesses
_LATE = 0.25  # weight of tests beyond half of the canaries, where guesses are mostly of no use


@dataclass(frozen=True)
class Stages:
    """Numbers of guesses at which a walk is tested.

    The numbers are fixed before the coins are seen.

    Parameters
    ----------
    guesses : tuple of int
        Numbers of guesses, in increasing order, at least 1.
    weights : tuple of float
        Positive weights of the tests. A test with half the weight needs a result that is twice as
        improbable.
    """

    guesses: tuple[int, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.guesses or sorted({*self.guesses}) != list(self.guesses) or self.guesses[0] < 1:
            raise ArgumentError(f"guesses must be increasing integers >= 1, got {self.guesses!r}")
        if len(self.weights) != len(self.guesses) or not min(self.weights) > 0:
            raise ArgumentError(
                f"weights must hold one number > 0 for each test, got {self.weights}"
            )

    @classmethod
    def of(cls, canaries: int, failure_prob: float) -> Stages:
        """Return tests from the first informative number of guesses up to all canaries.

        Examples
        --------
        >>> Stages.of(30, 0.05).guesses
        (5, 6, 7, 9, 10, 11, 13, 15, 22, 30)
        """
        first = max(math.ceil(math.log2(1 / failure_prob)), canaries // 50, 1)
        stages = {canaries, max((3 * canaries) // 4, 1), max(canaries // 2, 1)}
        at = float(first)
        while at < canaries / 2:
            stages.add(math.ceil(at))
            at = max(at * _RATIO, at + 1)
        guesses = tuple(sorted(stages))
        return cls(guesses, tuple(1.0 if 2 * k <= canaries + 1 else _LATE for k in guesses))

    @classmethod
    def sparse(cls, canaries: int, failure_prob: float) -> Stages:
        """Return a few tests that are far apart.

        The weights of the tests are shares of failure_prob that sum to 1. The test at a quarter of
        the canaries gets the largest share of failure_prob. By computation, a quarter is near the
        number that certifies most if scores are Gaussian and their means differ by 1 to 3 standard
        deviations.

        Examples
        --------
        >>> Stages.sparse(1000, 0.05)
        Stages(guesses=(62, 125, 250, 500), weights=(0.1, 0.2, 0.5, 0.2))
        """
        first = 2 * math.ceil(math.log2(1 / failure_prob))  # fewer show nothing, or need luck
        shares = {canaries // part: share for part, share in FIXED_STAGES.items()}
        kept = {k: share for k, share in shares.items() if k >= first} or {canaries: 1.0}
        total = math.fsum(kept.values())
        return cls(tuple(kept), tuple(share / total for share in kept.values()))


def least_tail(counts: Ints, stages: Stages, epsilons: Floats) -> Floats:
    """Return the smallest binomial tail divided by its weight, for each epsilon."""
    k, weight = np.array(stages.guesses), np.array(stages.weights)
    tails = _tails(counts, k, special.expit(epsilons)[:, None])
    return np.asarray((tails / weight).min(axis=1))


def heights_of(gamma: float, stages: Stages, pi: float) -> Ints:
    """Return the least count at each test whose binomial tail divided by the weight is <= gamma."""
    k = np.array(stages.guesses)
    level = gamma * np.array(stages.weights) * (1 + 1e-12)
    low, high = np.zeros(len(k), dtype=np.int64), k + 1  # the tail of k + 1 successes is 0
    while np.any(high - low > 1):
        middle = (low + high) // 2
        small = _tails(middle, k, pi) <= level
        low, high = np.where(small, low, middle), np.where(small, middle, high)
    return np.where(_tails(low, k, pi) <= level, low, high)


def crossing_prob(heights: Sequence[int], guesses: Sequence[int], rates: Floats) -> float:
    """Return the probability that independent guesses reach a height at some test.

    Parameters
    ----------
    heights : sequence of int
        Height of each test, at least 0. A height above the number of guesses is never reached.
    guesses : sequence of int
        Number of guesses at each test, in increasing order.
    rates : ndarray, shape (stages,)
        Probability that a guess between the previous test and this test is correct.

    Examples
    --------
    >>> round(crossing_prob([2, 2], (2, 3), np.array([0.5, 0.5])), 6)
    0.5
    """
    alive, before, crossed = np.ones(1), 0, 0.0  # alive: masses of counts with no height reached
    for k, rate, height in zip(guesses, rates.tolist(), heights, strict=True):
        step = k - before
        alive = np.convolve(alive, stats.binom.pmf(np.arange(step + 1), step, rate))
        crossed += float(alive[height:].sum())
        alive, before = alive[:height], k
        if not len(alive):
            break
    return min(crossed, 1.0)


def _tails(counts: Ints, trials: Ints, rate: float | Floats) -> Floats:
    """Return the tail probabilities P(Bin(trials, rate) >= counts)."""
    below = np.minimum(counts, trials) - 1
    tails = special.bdtrc(np.maximum(below, 0), trials, rate)
    return np.asarray(np.where(counts > trials, 0.0, np.where(below < 0, 1.0, tails)))


def checked_counts(correct: Sequence[int], stages: Stages, canaries: int) -> Ints:
    """Return the numbers of correct guesses at each test as an array, or raise an error."""
    counts = np.asarray(correct)
    k = np.array(stages.guesses)
    if counts.shape != k.shape or counts.dtype.kind not in "iu":
        raise ArgumentError(
            f"correct must hold one integer for each of the {len(k)} tests, got {correct}"
        )
    if counts.min() < 0 or np.any(counts > k) or np.any(np.diff(counts) < 0):
        raise ArgumentError(
            "correct must not decrease and must be at most the numbers of guesses "
            f"{k.tolist()}, got {correct}"
        )
    if _validate.integer(1, canaries=canaries) < k[-1]:
        raise ArgumentError(
            f"canaries must be at least {k[-1]}, the largest number of guesses, got {canaries}"
        )
    return counts.astype(np.int64)


def rounded_up(bound: float) -> float:
    """Return a bound of a probability, increased to allow for rounding errors in its sum."""
    relative, absolute = _ROUNDING
    return min(bound * (1 + relative) + absolute, 1.0)
