r"""Guesses of one run whose number depends on their success, for (epsilon, delta)-DP.

The setting, the budget b and the notation are those of `one_run`. The guesses are taken in an order
that the output fixed, most confident first. The walk is tested at several numbers of guesses, fixed
beforehand, and stops at the test that shows most. This choice costs almost nothing, because the
results of neighbouring tests are nearly the same.

Theorem
-------
Let pi = e^eps / (1 + e^eps), lam >= 0, and h_k heights at tests after k <= n guesses. Consider a
walk in which each step either succeeds with probability pi, or succeeds surely at the price lam.
The walk earns 1 at the first test at which it is at its height. Let G be the value of this walk
under the best choices: G(k, c) = 1 where c >= h_k, else G(n, c) = 0, else

    max(pi G(k+1, c+1) + (1 - pi) G(k+1, c), G(k+1, c+1) - lam).

Then ``P(C_k >= h_k at some test) <= G(0, 0) + lam b(epsilon)`` for every mechanism that is
(epsilon, delta)-DP. Here b is m delta, or half of m delta if no guess is "excluded".

Proof. Let q_j = P(R_j = 1 | Y, R_1 .. R_{j-1}) and f_j = (q_j - pi)_+ / (1 - pi), in [0, 1]. Since
``(q - pi) / (1 - pi) = q - e^eps (1 - q)``, summing the budget's terms over r_{j+1}, .. inside the
positive part gives E sum_j f_j <= b(epsilon). Let M_j = G(j, C_j) until a height was reached, and 1
from then on. G does not fall in c and its steps are at most 1. A step has rate
q_j <= pi + (1 - pi) f_j. So it is worth at most 1 - f_j times the free step plus f_j times the sure
step. Hence ``E[M_j | Y, R_1 .. R_{j-1}] <= M_{j-1} + lam f_j``. Sum over j, and note that
M_n = 1 on the event.

At lam = 1 - pi no sure step pays. The bound is then the crossing probability of the Bernoulli walk
plus b(epsilon) (1 - pi). Without delta, only the crossing probability is left, and randomised
response of each coin attains it.

The test and the certified epsilon
----------------------------------
At each epsilon the event is "the least of P(Bin(k, pi) >= C_k) / weight_k is at most gamma". Its
probability under the claim is at most the bound of the theorem, with the heights that gamma gives.
It is also at most ``gamma sum_k weight_k + b (1 - pi)``. The p-value is the smaller of these two
bounds at the observed gamma: both rise in gamma, which takes finitely many values. Heights of two
epsilons need not be ordered, so the certified epsilon is found on a fixed grid. It is the last grid
point below the first that is not refused. It is above the true epsilon only if the first grid point
at or above the true epsilon is refused. This single test errs with probability at most
failure_prob.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit import _validate
from dpaudit.stats.walks import (
    LARGEST_EPSILON,
    Stages,
    checked_counts,
    heights_of,
    least_tail,
    rounded_up,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STEPS_PER_EPSILON = 100
"""Grid steps per unit of epsilon: k / 100 prints as hundredths, k * 0.01 may not."""

_PRICES = np.geomspace(1e-3, 1.0, 13)


def crossing_bound(heights: Sequence[int], stages: Stages, epsilon: float, budget: float) -> float:
    """Bound the probability that the correct guesses reach their height at some test.

    Parameters
    ----------
    heights : sequence of int
        Height of each test, at least 1. A height above the number of guesses is never reached.
    stages : Stages
        Numbers of guesses at which the walk is tested.
    epsilon : float
        Finite, >= 0.
    budget : float
        The budget b of the module's theorem, >= 0. The result is exact for 0.

    Examples
    --------
    >>> round(crossing_bound([2, 2], Stages((2, 3), (1.0, 1.0)), 0.0, 0.0), 6)  # fair coins
    0.5
    """
    pi = float(special.expit(epsilon))
    prices = (1 - pi) * (_PRICES if budget > 0 else _PRICES[-1:])
    # The state counts misses, of which only a few are allowed. A wrong guess adds a miss, and a
    # correct guess adds none.
    allowed = {k: k - h for k, h in zip(stages.guesses, heights, strict=True)}
    most = max(allowed.values())
    if most < 0:
        return 0.0
    worth = np.zeros((len(prices), most + 2))
    for k in range(stages.guesses[-1], -1, -1):
        sure = worth[:, :-1]
        mixed = pi * sure + (1 - pi) * worth[:, 1:]
        worth[:, :-1] = np.maximum(mixed, sure - prices[:, None]) if budget > 0 else mixed
        worth[:, : max(allowed.get(k, -1) + 1, 0)] = 1.0
    bound = float((worth[:, 0] + prices * budget).min())
    return rounded_up(bound)


def walk_p_value(
    correct: Sequence[int],
    stages: Stages,
    canaries: int,
    *,
    epsilon: float,
    delta: float,
    one_sided: bool = False,
) -> float:
    """Return the p-value of (epsilon, delta)-DP from the correct guesses at each test.

    Parameters
    ----------
    correct : sequence of int
        Number of correct guesses among the first guesses, at each test.
    stages : Stages
        Fixed before the coins were seen.
    canaries : int
        Number of coins that were tossed, at least the number of guesses of the last test.
    epsilon, delta : float
        The claim.
    one_sided : bool, optional
        Whether every guess is "included". Default False.

    Examples
    --------
    >>> stages = Stages((10, 20), (1.0, 1.0))
    >>> round(walk_p_value([10, 17], stages, 100, epsilon=1.0, delta=0.0), 4)
    0.0506
    """
    counts = checked_counts(correct, stages, canaries)
    budget = (0.5 if one_sided else 1.0) * canaries * _validate.delta(delta=delta)
    return _p_value(counts, stages, _validate.nonnegative(epsilon=epsilon), budget)


def walk_epsilon(
    correct: Sequence[int],
    stages: Stages,
    canaries: int,
    *,
    delta: float,
    failure_prob: float,
    one_sided: bool = False,
    claimed: float = 0.0,
) -> float:
    """Certify epsilon at `delta` from the correct guesses at each test.

    Parameters
    ----------
    correct, stages, canaries, one_sided
        As in :func:`walk_p_value`.
    delta : float
        In [0, 1].
    failure_prob : float
        In (0, 1).
    claimed : float, optional
        An epsilon of interest, fixed beforehand, that becomes a point of the grid.

    Returns
    -------
    float
        A point of the grid 0, .01, .. 30; 0 if nothing is certified.

    Examples
    --------
    >>> stages = Stages((10, 20), (1.0, 1.0))
    >>> walk_epsilon([10, 20], stages, 100, delta=0.0, failure_prob=0.05)
    1.82
    """
    counts = checked_counts(correct, stages, canaries)
    budget = (0.5 if one_sided else 1.0) * canaries * _validate.delta(delta=delta)
    alpha = _validate.failure_prob(failure_prob=failure_prob)
    steps = np.arange(round(LARGEST_EPSILON * STEPS_PER_EPSILON) + 1) / STEPS_PER_EPSILON
    grid = np.unique(np.append(steps, min(claimed, LARGEST_EPSILON)))
    rough = _union(least_tail(counts, stages, grid), stages, grid, budget)
    certified = 0.0
    for epsilon, bound in zip(grid.tolist(), rough.tolist(), strict=True):
        if bound > alpha and _p_value(counts, stages, epsilon, budget) > alpha:
            break
        certified = epsilon
    return certified


def heights_refused(
    stages: Stages,
    canaries: int,
    *,
    epsilon: float,
    delta: float,
    failure_prob: float,
    one_sided: bool = False,
) -> Ints:
    """Return the least correct guesses at each test that refute (epsilon, delta)-DP.

    Parameters as in :func:`walk_epsilon`. If no count refutes at a test, the entry of this test is
    its number of guesses plus one.

    Examples
    --------
    >>> stages = Stages((10, 20), (1.0, 1.0))
    >>> heights_refused(stages, 100, epsilon=1.0, delta=0.0, failure_prob=0.05).tolist()
    [11, 19]
    """
    budget = (0.5 if one_sided else 1.0) * canaries * delta
    pi = float(special.expit(epsilon))
    low, high = math.log(failure_prob) - 60.0, math.log(failure_prob) + 1.0
    best = np.array(stages.guesses) + 1
    while high - low > 0.01:
        middle = (low + high) / 2
        gamma = math.exp(middle)
        heights = heights_of(gamma, stages, pi)
        union = float(_union(np.array([gamma]), stages, np.array([epsilon]), budget)[0])
        bound = min(union, crossing_bound(heights.tolist(), stages, epsilon, budget))
        if heights.min() >= 1 and bound <= failure_prob:
            low, best = middle, heights
        else:
            high = middle
    return best


def _p_value(counts: Ints, stages: Stages, epsilon: float, budget: float) -> float:
    at = np.array([epsilon])
    gamma = least_tail(counts, stages, at)
    union = float(_union(gamma, stages, at, budget)[0])
    heights = heights_of(float(gamma[0]), stages, float(special.expit(epsilon)))
    if heights.min() < 1:
        return min(union, 1.0)
    return min(union, crossing_bound(heights.tolist(), stages, epsilon, budget))


def _union(gamma: Floats, stages: Stages, epsilons: Floats, budget: float) -> Floats:
    """Return the sum over the tests, plus the largest contribution of delta."""
    return np.asarray(gamma * math.fsum(stages.weights) + budget * special.expit(-epsilons))
