r"""Guesses of one run whose number depends on their success, for claims of (epsilon, delta)-DP.

The setting, the budget b and the notation are the same as in `one_run`. The guesses are taken in an
order that the output determines, with the most confident guess first. The walk is tested at several
fixed numbers of guesses, and stops at the test with the strongest evidence. Choosing the strongest
test costs almost nothing, because neighbouring tests have nearly the same results.

Theorem
-------
*Theorem.* Let pi = e^eps / (1 + e^eps) and lam >= 0, and let h_k be the height of the test after k
<= n guesses. Consider a walk in which each step either succeeds with probability pi, or succeeds
surely at the price lam. The walk earns 1 at the first test at which it has reached the height of
the test. Let G be the value of this walk under the best choices of its steps: G(k, c) = 1 where c
>= h_k, else G(n, c) = 0, else

    max(pi G(k+1, c+1) + (1 - pi) G(k+1, c), G(k+1, c+1) - lam).

Then ``P(C_k >= h_k at some test) <= G(0, 0) + lam b(epsilon)`` for every mechanism that is
(epsilon, delta)-DP. Here b is m delta, or half of m delta if no guess is "excluded".

Proof of the theorem. Let q_j = P(R_j = 1 | Y, R_1 .. R_{j-1}) and f_j = (q_j - pi)_+ / (1 - pi), in
[0, 1]. Since ``(q - pi) / (1 - pi) = q - e^eps (1 - q)``, summing the terms of the budget over
r_{j+1}, .. inside the positive part gives E sum_j f_j <= b(epsilon). Let M_j = G(j, C_j) until a
height is reached, and let M_j = 1 from then on. G does not decrease in c, and G increases by at
most 1 if c increases by 1. The j-th step succeeds with probability q_j <= pi + (1 - pi) f_j. So the
value of this step is at most (1 - f_j) times the value of the free step, plus f_j times the value
of the sure step. Therefore ``E[M_j | Y, R_1 .. R_{j-1}] <= M_{j-1} + lam f_j``. Summing over j
proves the theorem, because M_n = 1 on the event.

At lam = 1 - pi, no sure step is worth its price. In this case, the bound is the crossing
probability of the Bernoulli walk plus b(epsilon) (1 - pi). If delta = 0, only the crossing
probability remains, and randomised response of each coin attains it.

The test and the certified epsilon
----------------------------------
At each epsilon, the event of the test is "the least of P(Bin(k, pi) >= C_k) / weight_k is at most
gamma". Under the claim, the probability of this event is at most the bound of the theorem, with the
heights that belong to gamma. This probability is also at most ``gamma sum_k weight_k + b (1 -
pi)``. The p-value is the smaller of these two bounds at the observed gamma. The p-value is valid
because both bounds increase with gamma, which has finitely many values. The heights for two
epsilons need not be ordered, so the certified epsilon is found on a fixed grid. The certified
epsilon is the last grid point before the first grid point that is not refuted. The certified
epsilon exceeds the true epsilon only if the first grid point at or above the true epsilon is
refuted. The test at this grid point is wrong with probability at most failure_prob.
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
    """Bound the probability that the number of correct guesses reaches its height at some test.

    Parameters
    ----------
    heights : sequence of int
        Height of each test, at least 1. A height above the number of guesses is never reached.
    stages : Stages
        Numbers of guesses at which the walk is tested.
    epsilon : float
        Epsilon, finite and >= 0.
    budget : float
        The budget b of the module's theorem, >= 0. The result is exact for a budget of 0.

    Examples
    --------
    >>> round(crossing_bound([2, 2], Stages((2, 3), (1.0, 1.0)), 0.0, 0.0), 6)  # fair coins
    0.5
    """
    pi = float(special.expit(epsilon))
    prices = (1 - pi) * (_PRICES if budget > 0 else _PRICES[-1:])
    # The state is the number of wrong guesses, of which only a few are allowed. A wrong guess adds
    # one to the state, and a correct guess adds nothing.
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
        Number of correct guesses among the first guesses, for each test.
    stages : Stages
        The tests, fixed before the coins were seen.
    canaries : int
        Number of coins that were tossed, at least the number of guesses of the last test.
    epsilon, delta : float
        The claimed epsilon and delta.
    one_sided : bool, optional
        Whether every guess is "included". The default is False.

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
    """Certify epsilon at `delta` from the number of correct guesses at each test.

    Parameters
    ----------
    correct, stages, canaries, one_sided
        Counts, as in :func:`walk_p_value`.
    delta : float
        Delta, in [0, 1].
    failure_prob : float
        Failure probability, in (0, 1).
    claimed : float, optional
        An epsilon of interest, fixed in advance, which becomes a point of the grid.

    Returns
    -------
    float
        A point of the grid 0, 0.01, .., 30. The value is 0 if nothing is certified.

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
    """Return the smallest number of correct guesses at each test that refutes (epsilon, delta)-DP.

    The parameters are those of :func:`walk_epsilon`. If no number refutes at a test, the entry of
    this test is the number of guesses plus one.

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
    """Return the sum over the tests plus the largest contribution of delta."""
    return np.asarray(gamma * math.fsum(stages.weights) + budget * special.expit(-epsilons))
