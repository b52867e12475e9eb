r"""Guesses by rank for a small number of independent randomised draws.

All draws are used to certify. Toss a fair coin for each of N draws. According to the coin, make the
draw on the left dataset or on the right dataset. Order the outputs by confidence without knowing
the coins, and guess the side of each output. The order, the guesses and the outputs are fixed
before any coin is known. So no draw is needed to choose a threshold.

Theorem
-------
*Theorem.* Let the mechanism be (epsilon, delta)-DP on the pair, and let pi = e^eps / (1 + e^eps).
Let C_k be the number of correct guesses among the first k guesses. Let h_k be the height of the
test after k guesses. Consider a walk whose first d steps succeed surely, and whose other steps each
succeed with probability pi. Let W(d) be the probability that this walk reaches its height at some
test. Then, with D ~ Bin(N, delta),

    P(C_k >= h_k at some test) <= E W(D).

Proof of the theorem. By Kairouz, Oh and Viswanath (2015), the output is a randomised function of a
symbol with four values. The function is the same on both sides. On either side, the symbol reveals
the side with probability delta. Otherwise, the symbol is the output of randomised response with
rate pi. So the set of revealed draws is independent of the coins, and its size is D. Given this set
and all outputs, every other guess is correct with probability at most pi, independently of all
other guesses. The crossing probability does not decrease if all these guesses are correct with
probability exactly pi. The crossing probability also does not decrease if the revealed draws come
first. To prove the second statement, fix the successes of the other draws in their order. Suppose
that j of the first k guesses are revealed. Then the number of successes in these k guesses is j
plus the successes of the first k - j other draws. For j <= d, this sum is at most d plus the
successes of the first k - d other draws. If k < d, the number of successes is at most k.

The p-value uses the statistic of `walks`, which is the smallest binomial tail over the tests. The
p-value is the bound of the theorem at the heights of this statistic. The certified epsilon uses
another order of the outcomes. One run (`one_run`) is the same setting, with users in place of
draws. In one run, only the mean of D is bounded, because one output reveals something about all
coins.

References
----------
Kairouz, Oh and Viswanath (2015), "The composition theorem for differential privacy".
Buehler (1957), "Confidence intervals for the product of two binomial parameters".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import special

from dpaudit import _validate
from dpaudit.stats.betting import last_nonnegative
from dpaudit.stats.joint import lower_rates
from dpaudit.stats.walks import (
    LARGEST_EPSILON,
    Stages,
    checked_counts,
    heights_of,
    least_tail,
    rounded_up,
)

Floats = NDArray[np.float64]

_NEGLIGIBLE = 1e-15  # Probability of more revealed draws than the computation enumerates.
_TOLERANCE = 1e-4  # Tolerance of the certified epsilon.
_LEVEL_SHARE = 0.16  # Approximate level of one test, as a fraction of failure_prob.
_SHARE = 1e-5  # Precision of the smallest share of correct guesses that refutes.
_STAGES = 25
_FIRST = 1 / 20  # the smallest number of guesses that is tested, as a fraction of the draws


def ranked_stages(draws: int) -> Stages:
    """Return tests for a few draws, from a twentieth of them to all of them, evenly on a log scale.

    Examples
    --------
    >>> ranked_stages(40).guesses[:5]
    (4, 5, 6, 7, 8)
    """
    first = min(max(4, round(_FIRST * draws)), draws)
    guesses = np.unique(np.geomspace(first, draws, _STAGES).round().astype(int))
    return Stages(tuple(guesses.tolist()), (1.0,) * len(guesses))


def ranked_p_value(
    correct: Sequence[int], stages: Stages, draws: int, *, epsilon: float, delta: float
) -> float:
    """Return the p-value of (epsilon, delta)-DP from the correct guesses at each test.

    Parameters
    ----------
    correct : sequence of int
        Number of correct guesses among the first guesses, for each test.
    stages : Stages
        The tests, fixed before the coins were seen.
    draws : int
        Number of draws on both sides together, at least the number of guesses of the last test.
    epsilon, delta : float
        The claimed epsilon and delta.

    Examples
    --------
    >>> stages = Stages((10, 20), (1.0, 1.0))
    >>> round(ranked_p_value([10, 17], stages, 100, epsilon=1.0, delta=0.0), 4)
    0.0506
    >>> round(ranked_p_value([10, 17], stages, 100, epsilon=1.0, delta=1e-3), 4)
    0.0524
    """
    counts = checked_counts(correct, stages, draws)
    return _p_value(
        counts,
        stages,
        draws,
        _validate.nonnegative(epsilon=epsilon),
        _validate.delta(delta=delta),
    )


def ranked_epsilon(
    correct: Sequence[int],
    stages: Stages,
    draws: int,
    *,
    delta: float,
    failure_prob: float,
) -> float:
    """Certify epsilon at `delta` from the number of correct guesses at each test.

    Parameters
    ----------
    correct, stages, draws
        Counts, as in :func:`ranked_p_value`.
    delta : float
        Delta, in [0, 1].
    failure_prob : float
        Failure probability, in (0, 1).

    Returns
    -------
    float
        The bound is 0 if nothing is certified, and at most 30.

    Notes
    -----
    Outcomes are ordered by the largest Clopper-Pearson bound of all tests. The level of these
    bounds allows for the choice of the largest. The observed outcome, together with all outcomes
    that are ordered above it, is a set of heights. The certified epsilon is the last epsilon at
    which this set has probability at most failure_prob (Buehler 1957). The sets are nested, and
    their probability increases with epsilon.

    Examples
    --------
    >>> stages = Stages((10, 20), (1.0, 1.0))
    >>> round(ranked_epsilon([10, 20], stages, 100, delta=0.0, failure_prob=0.05), 3)
    1.823
    """
    counts = checked_counts(correct, stages, draws)
    delta = _validate.delta(delta=delta)
    alpha = _validate.failure_prob(failure_prob=failure_prob)
    level = alpha * _LEVEL_SHARE
    guesses = np.array(stages.guesses)
    shares = lower_rates(counts, guesses, level)
    best = int(shares.argmax())
    share = float(shares[best])
    if share <= 0.5:
        return 0.0
    heights = _from_here_on(stages, best, int(counts[best]), share, level)
    top = math.log(share / (1 - share))
    # A single test has this probability at its Clopper-Pearson bound for failure_prob itself.
    most = float(lower_rates(counts[best], guesses[best], alpha))
    high = min(math.log(most / (1 - most)), LARGEST_EPSILON)

    def excess(epsilon: float) -> float:
        return alpha - _bound(heights, stages, draws, epsilon, delta)

    if excess(0.0) < 0:
        return 0.0
    return last_nonnegative(excess, 0.0, max(high, min(top, LARGEST_EPSILON)), _TOLERANCE)


def ranked_heights(
    stages: Stages, draws: int, *, epsilon: float, delta: float, failure_prob: float
) -> NDArray[np.int64]:
    """Return the smallest number of correct guesses that refutes a claim, for each test.

    The claim is refuted if this number is reached at any one test.

    Parameters
    ----------
    stages, draws
        Tests and draws, as in :func:`ranked_p_value`.
    epsilon, delta, failure_prob : float
        The claim, and the largest probability of refuting it if the mechanism keeps it.

    Returns
    -------
    ndarray of int, shape (stages,)
        If no count refutes at a test, the entry of the test is the number of guesses plus one.

    Examples
    --------
    >>> stages = Stages((10, 20), (1.0, 1.0))
    >>> ranked_heights(stages, 100, epsilon=1.0, delta=0.0, failure_prob=0.05).tolist()
    [11, 19]
    """
    alpha = _validate.failure_prob(failure_prob=failure_prob)
    level = alpha * _LEVEL_SHARE
    refusing = np.array(stages.guesses) + 1
    low, high = 0.5, 1.0
    while high - low > _SHARE:
        middle = (low + high) / 2
        heights = heights_of(level, stages, middle)
        if np.array_equal(heights, refusing):
            high = middle
        elif _bound(heights, stages, draws, epsilon + _TOLERANCE, delta) <= alpha:
            high, refusing = middle, heights
        else:
            low = middle
    return refusing


def _from_here_on(
    stages: Stages, at: int, correct: int, share: float, level: float
) -> NDArray[np.int64]:
    """Return the heights of all outcomes that are ordered at or above one count at one test."""
    heights = heights_of(level, Stages(stages.guesses, (1.0,) * len(stages.guesses)), share)
    heights[at] = min(int(heights[at]), correct)  # this holds for any rounding error
    return heights


def _p_value(
    counts: NDArray[np.int64], stages: Stages, draws: int, epsilon: float, delta: float
) -> float:
    gamma = float(least_tail(counts, stages, np.array([epsilon]))[0])
    pi = float(special.expit(epsilon))
    heights = heights_of(gamma, stages, pi)
    if heights.min() < 1:
        return 1.0
    return _bound(heights, stages, draws, epsilon, delta)


def _bound(
    heights: NDArray[np.int64], stages: Stages, draws: int, epsilon: float, delta: float
) -> float:
    """Return the bound of the theorem."""
    most = int(scipy.stats.binom.isf(_NEGLIGIBLE, draws, delta)) if delta > 0 else 0
    revealed = scipy.stats.binom.pmf(np.arange(most + 1), draws, delta)
    bound = _crossing(heights, stages, float(special.expit(epsilon)), revealed)
    bound += _NEGLIGIBLE if delta > 0 else 0.0
    return rounded_up(bound)


def _crossing(heights: NDArray[np.int64], stages: Stages, pi: float, revealed: Floats) -> float:
    """Return the probability that the walk reaches its height at some test, given the masses of D.

    Tests whose height exceeds their number of guesses are skipped. At the first remaining test, the
    height is reached if all guesses are correct. So the walk reaches the height of this test if all
    these guesses are revealed.
    """
    reached = [
        (k, height)
        for k, height in zip(stages.guesses, heights.tolist(), strict=True)
        if height <= k
    ]
    if not reached:
        return 0.0
    before = reached[0][0]
    mass = np.zeros(before + 1)  # of each count at a test, if no height was reached before
    for sure, weight in enumerate(revealed[:before].tolist()):
        mass[sure:] += weight * _steps(before - sure, pi)
    crossed = float(revealed[before:].sum())
    for k, height in reached:
        mass = np.convolve(mass, _steps(k - before, pi))
        crossed += float(mass[height:].sum())
        mass, before = mass[:height], k
    return crossed


def _steps(count: int, pi: float) -> Floats:
    return np.asarray(scipy.stats.binom.pmf(np.arange(count + 1), count, pi))
