"""Walks of correct guesses: when to test them, and which counts are improbably large.

Guesses are taken in an order that was fixed in advance, and C_k of the first k guesses are correct.
The statistic of this walk is the smallest value of P(Bin(k, pi) >= C_k) / weight_k over its tests.
The statistic is at most gamma if and only if some C_k reaches its height.

:mod:`dpaudit.stats.ranked` proves a bound of the probability that a height is reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import special

from dpaudit import _validate
from dpaudit.errors import ArgumentError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LARGEST_EPSILON = 30.0
"""Largest certified epsilon: beyond it no number of coins distinguishes a rate from 1."""

# Relative and absolute error of sums of thousands of doubles. Binomial tails of millions of
# guesses have relative errors of 5e-9.
_ROUNDING = 1e-8, 1e-13


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
        alive = np.convolve(alive, scipy.stats.binom.pmf(np.arange(step + 1), step, rate))
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
