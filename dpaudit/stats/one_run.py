r"""Claims tested by the number of correct guesses of many coins, in one run of a mechanism.

Each of m canary users is included by a separate fair coin, and the mechanism runs once. The output
y of the run determines which coins are guessed, in which order, and how. The question is how many
guesses can be correct if the mechanism keeps a claim.

Setting
-------
The claim implies (t, delta(t))-DP for every t in some set T. For (epsilon, delta)-DP, T is
{epsilon}; for a curve, T is a grid. Let R in {0, 1}^n say which of the n guesses are correct, in
the order of the guesses. Let ``w_y(r) = P(R = r | Y = y)``. Here, "r with j unset" is r with its
j-th entry replaced by 0.

*Budget.* Let b(t) = m delta(t). If no guess is "excluded", let b(t) = m delta(t) / 2. For every t
in T,

    E sum_j sum_{r: r_j = 1} (w_Y(r) - e^t w_Y(r with j unset))_+ <= b(t).

Proof of the budget. Write p(y | s) for the density of the output given the coins s. Then w_y(r)
times the density of y is the sum of ``2^-m p(y | s)`` over all s that agree with r on the guessed
coins. By convexity of the positive part, the left side is at most a sum. The sum is over canaries
i, over coins s' of the other canaries, and over g = 1 and g = 0. Each term is ``2^-m`` times an
integral over all y that guess g for canary i. The integrand is (p(y | s', g) - e^t p(y | s', 1 -
g))_+. The two inputs differ in one user, so each integral is at most delta(t). There are 2^(m-1)
values of s', m canaries, and one or two values of g. This proves the budget.

Theorem (n fixed beforehand)
----------------------------
Let C be the number of correct guesses, let v be in 1 .. n, and let T be a set as above. Let U(t, c)
be numbers in [0, L(t)] for c = 1 .. n, and let U(t, n+1) = 0. *Theorem.* If for every c = 0 .. n

    [c >= v] - c sum_t U(t, c) + (n - c) sum_t e^t U(t, c+1) <= theta,

then ``P(C >= v) <= theta + sum_t L(t) b(t)``.

Proof of the theorem. Let a_c = P(C = c). Sum the budget over all r with c ones, and over y. The
result is ``sum_c (c a_c - e^t (n - c + 1) a_{c-1})_+ <= b(t)``. The reason is that each such r
occurs c times as r. Each r with c - 1 ones occurs n - c + 1 times as "r with j unset". By
convexity, the sums may be moved inside the positive part. Multiply the conditions by a_c and add
them: ``P(C >= v)`` is at most theta plus ``sum_t sum_c U(t, c) (c a_c - e^t (n - c + 1) a_{c-1})``,
and therefore at most theta + sum_t L(t) b(t).

Minimising this bound over theta, U and L is the dual of a linear program. The optimal value of this
program is the largest probability that the budget allows. For T = {epsilon}, the bound is sharp. A
mechanism that outputs a uniformly random guess of all coins attains the bound. The pattern of the
mechanism's correct guesses is drawn from the optimal a. The bound is attained if the optimal a is
private in the other direction, too. The unit tests solve the linear program over all mechanisms. If
delta = 0, the bound is the binomial tail of rate e^eps / (1 + e^eps), as in Steinke, Nasr and
Jagielski (2023, Theorem 5.1). If delta > 0, the bound replaces the second term of their Theorem
5.2, ``2 m delta max_i P[v > Bin >= v - i] / i``. That second term is larger by a factor of about 2
/ (1 - rate) if v is far above the mean. For a curve, if U does not depend on c for c >= v, the
conditions give the recursion of Mahloujifar, Melis and Chaudhuri (2025). Here, this recursion is
stretched and then followed from c = n downwards. The result is never worse than the result of their
recursion.

From tests to a certified epsilon
---------------------------------
The tests of all epsilons refute if C is large. So a set of tests together refutes exactly what the
test with the smallest critical value refutes. If a certified epsilon exceeds the true epsilon, this
test refutes at some epsilon above the true epsilon. The mechanism is private at every epsilon above
the true epsilon, too. So this false refutation has probability at most failure_prob. It does not
matter which epsilons a search visits, or whether the bound is monotone in epsilon. The same
argument holds for mu. The argument also holds for several tests at fixed numbers of guesses, if the
levels of the tests sum to at most failure_prob.

`planned_guesses` chooses different numbers of guesses for different epsilons, and proves its own
version of this argument.

Theorem (several numbers of guesses that are added)
---------------------------------------------------
Let n_1 <= .. <= n_K be numbers that are fixed beforehand. Let W be the sum of the numbers of wrong
guesses among the first n_1, .., n_K guesses. So the wrong guess j counts as often as there are
numbers n_k >= j. Let pi = e^eps / (1 + e^eps), and let W* be the value of W if all guesses are
independently correct with probability pi.

*Theorem.* For every (epsilon, delta)-DP mechanism,

    P(W <= w) <= P(W* <= w) + (1 - pi) b(epsilon).

Proof. Let q_j = P(R_j = 1 | Y, R_1 .. R_{j-1}) and f_j = (q_j - pi)_+ / (1 - pi). Since ``(q - pi)
/ (1 - pi) = q - e^eps (1 - q)``, summing the terms of the budget over r_{j+1}, .. inside the
positive part gives E sum_j f_j <= b(epsilon). Let G(j, s) be the probability that guesses after
the j-th, correct independently with probability pi, add at most s to W. G is in [0, 1] and does not
decrease in s. Let M_j = G(j, w - S_j), where S_j is what the first j guesses contribute to W. The
j-th guess is correct with probability q_j <= pi + (1 - pi) f_j. One unit more of this probability
adds at most 1 to M_j. So ``E[M_j | Y, R_1 .. R_{j-1}] <= M_{j-1} + (1 - pi) f_j``. Summing over j
proves the theorem, because M_n = 1 if W <= w, and M_0 = P(W* <= w).

If delta = 0, randomised response of each coin attains the bound.

References
----------
Steinke, Nasr and Jagielski (2023), "Privacy auditing with one (1) training run".
Mahloujifar, Melis and Chaudhuri (2025), "Auditing f-differential privacy in one run".
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import special

from dpaudit import _validate
from dpaudit.claims import Claim
from dpaudit.errors import ArgumentError
from dpaudit.stats.walks import LARGEST_EPSILON, rounded_up

Floats = NDArray[np.float64]

_NEGLIGIBLE = 1e-13  # delta at which the grid ends, because larger slopes would not be used
_SLOPES = 128
_STRETCHES = np.append(np.geomspace(0.5, 1.0, 10), [1.1, 1.25])
_POINTS = 33
_ROUNDS = 3
_HOPELESS = 3.0  # multiple of a level; if the tails allow it, no price is tried
_NEGLIGIBLE_MASS = 1e-19
"""Omitted probability; thousands of such masses are below the rounding of `rounded_up`."""

_DEVIATIONS = 6.0
"""Standard deviations of a count beyond which prices are nearly constant."""


@dataclass(frozen=True)
class Allowance:
    """The budget b(t) of the module: how much a claim allows the output to reveal about the coins.

    Parameters
    ----------
    slopes : ndarray, shape (k,)
        ``e^t``, in increasing order.
    budgets : ndarray, shape (k,)
        ``b(t)``, in decreasing order.
    """

    slopes: Floats
    budgets: Floats

    @classmethod
    def of_claim(cls, claim: Claim, canaries: int, *, one_sided: bool = False) -> Allowance:
        """Return the budget of a claim at its point; for a curve, return the budget on a grid."""
        sides = 0.5 if one_sided else 1.0
        if claim.point is not None:
            epsilon, delta = claim.point
            return cls(
                np.array([math.exp(min(epsilon, 700.0))]), np.array([sides * canaries * delta])
            )
        slopes, deltas = _known_curve(claim) if isinstance(claim, Hashable) else _curve(claim)
        return cls(slopes, sides * canaries * deltas)


def _curve(claim: Claim) -> tuple[Floats, Floats]:
    """Return the slopes and deltas of a claim on a grid.

    The computation is slow for some claims.
    """
    top = 1.0
    while claim.delta(top) > _NEGLIGIBLE and top < 2 * LARGEST_EPSILON:
        top *= 1.25
    grid = np.linspace(0.0, top, _SLOPES)
    slopes, deltas = np.exp(grid), np.array([claim.delta(float(t)) for t in grid])
    slopes.flags.writeable = deltas.flags.writeable = False
    return slopes, deltas


@functools.lru_cache(maxsize=64)
def _known_curve(claim: Any) -> tuple[Floats, Floats]:
    return _curve(claim)


def half_probability(canaries: int) -> float:
    r"""Return the probability that fair coins include exactly half of the canaries.

    This probability is the price of a design that includes a fixed number k of m canaries, where
    every set of k canaries is equally probable. All bounds of this module hold
    in this design after division by ``p = C(m, k) / 2^m``. For an odd m, half is either of the
    two integers next to m / 2.

    Theorem
    -------
    Suppose that coins are fair and independent. Suppose that, by some bound, an event of coins and
    output has probability at most beta for every mechanism that keeps the claim. If the coins are
    instead uniform among those with k ones, the event has probability at most beta / p.

    Proof. Suppose that k of the independent fair coins fell on "included". Then every set of k
    canaries is equally probable, and the mechanism is the same function of the coins. So the
    probability of the event in the fixed design is the conditional probability P(event, k) / p, and
    P(event, k) is at most beta. The proof uses the claim for all values of the coins, where
    neighbours differ in one coin.

    The division cannot be omitted. The reason is that a mechanism may answer well if k canaries are
    included, and badly otherwise. Only independent fair coins reveal such a mechanism. Linear
    programs give the worst epsilon-DP mechanisms up to m = 16. These mechanisms reach beta / p
    within a factor of 1.2 if all canaries are guessed and all guesses are correct. In the other
    cases of `tests/stats/test_half.py`, they reach beta / p within a factor of 3.5.

    Parameters
    ----------
    canaries : int
        Number m of canaries, at least 1.

    Examples
    --------
    >>> round(half_probability(2), 5), round(half_probability(1000), 5)
    (0.5, 0.02523)
    """
    m = _validate.integer(1, canaries=canaries)
    return float(scipy.stats.binom.pmf(m // 2, m, 0.5)) * (1 - 1e-9)  # rounded down


def guess_p_value(
    correct: int, guesses: int, canaries: int, claim: Claim, *, one_sided: bool = False
) -> float:
    """Bound the probability of at least `correct` correct guesses, for a fixed number of guesses.

    Parameters
    ----------
    correct : int
        Number of correct guesses, from 0 to `guesses`.
    guesses : int
        Number of coins that were guessed, from 1 to `canaries`. The choice of the guessed coins and
        of the guesses may depend on the output of the mechanism. The number of guesses must not
        depend on the output.
    canaries : int
        Number of coins that were tossed.
    claim : Claim
        The claim, of any kind. A curve is used at many epsilons together, so the bound uses the
        curve where it is tightest.
    one_sided : bool, optional
        Whether every guess is "included". If so, the smaller, one-sided budget applies. The default
        is False.

    Returns
    -------
    float
        Upper bound of ``P(C >= correct)`` for every mechanism that keeps the claim. By the theorem
        of the module, this bound is a p-value.

    Examples
    --------
    >>> from dpaudit.claims import ApproxDP, PureDP
    >>> round(guess_p_value(90, 100, 1000, PureDP(1.5)), 6)  # a binomial tail
    0.017336
    >>> round(guess_p_value(90, 100, 1000, ApproxDP(1.5, 1e-5)), 6)
    0.017536
    """
    _check(correct, guesses, canaries)
    return tail_bound(correct, guesses, Allowance.of_claim(claim, canaries, one_sided=one_sided))


def tail_bound(correct: int, guesses: int, allowance: Allowance) -> float:
    """Bound the probability of at least `correct` correct guesses; arguments are not checked."""
    if correct == 0:
        return 1.0
    if len(allowance.slopes) == 1:
        slope, budget = float(allowance.slopes[0]), float(allowance.budgets[0])
        bound = _bound_of_point(correct, guesses, slope, budget)
    else:
        point = best_point(correct, guesses, allowance)
        bound = min(
            _bound_of_curve(correct, guesses, allowance),
            _bound_of_point(correct, guesses, float(point.slopes[0]), float(point.budgets[0])),
        )
    return rounded_up(bound)


def sum_bound(wrong: int, numbers: Sequence[int], allowance: Allowance) -> float:
    """Bound the probability of at most `wrong` wrong guesses, added over numbers of guesses.

    Parameters
    ----------
    wrong : int
        Sum of the numbers of wrong guesses among the first guesses, over `numbers`. At least 0.
    numbers : sequence of int
        Numbers of guesses that do not decrease, at least 1. For a single number, the bound is that
        of :func:`tail_bound`.
    allowance : Allowance
        The budget of the claim.

    Examples
    --------
    >>> from dpaudit.claims import PureDP
    >>> allowance = Allowance.of_claim(PureDP(0.0), 3)
    >>> round(sum_bound(1, [2, 3], allowance), 6)  # no wrong guess, or only the third
    0.25
    """
    if len(numbers) == 1:
        return tail_bound(numbers[0] - wrong, numbers[0], allowance)
    rates = allowance.slopes / (1 + allowance.slopes)
    bounds = [
        float(wrong_sums(numbers, np.full(len(numbers), rate), wrong).sum()) + (1 - rate) * budget
        for rate, budget in zip(rates.tolist(), allowance.budgets.tolist(), strict=True)
    ]
    return rounded_up(min(bounds))


def wrong_sums(numbers: Sequence[int], rates: Floats, most: int) -> Floats:
    """Return the probabilities of sums 0 .. `most` of wrong guesses that are independent.

    Parameters
    ----------
    numbers : sequence of int
        Numbers of guesses that do not decrease.
    rates : ndarray, shape (numbers,)
        Probability that a guess is correct, between the previous number and each number.
    most : int
        Largest sum, at least 0.

    Examples
    --------
    >>> wrong_sums([1, 2], np.array([0.5, 0.5]), 3)
    array([0.25, 0.25, 0.25, 0.25])
    """
    masses = np.zeros(most + 1)
    masses[0] = 1.0
    for k, (number, before) in enumerate(zip(numbers, [0, *numbers[:-1]], strict=True)):
        weight, trials = len(numbers) - k, number - before
        if trials == 0:
            continue
        own = scipy.stats.binom.pmf(
            np.arange(min(most // weight, trials) + 1), trials, 1.0 - float(rates[k])
        )
        used = np.flatnonzero(own > _NEGLIGIBLE_MASS)
        if not len(used):
            return np.zeros(most + 1)
        spread = np.zeros(int(used[-1] - used[0]) * weight + 1)
        spread[::weight] = own[used[0] : used[-1] + 1]
        first = int(used[0]) * weight
        added = np.convolve(masses, spread)[: most + 1 - first]
        masses = np.concatenate([np.zeros(first), added])
    return np.pad(masses, (0, most + 1 - len(masses)))


def refutes(wrong: int, numbers: Sequence[int], allowance: Allowance, level: float) -> bool:
    """Return whether `sum_bound` is at most a level; a point of a curve is tried first."""
    if len(numbers) > 1:
        return sum_bound(wrong, numbers, allowance) <= level
    guesses = numbers[0]
    correct = guesses - wrong
    if correct == 0:
        return False
    point = best_point(correct, guesses, allowance)
    slope, budget = float(point.slopes[0]), float(point.budgets[0])
    least = float(special.bdtrc(correct - 1, guesses, allowance.slopes / (1 + allowance.slopes))[0])
    if len(allowance.slopes) == 1 and least > level:
        return False  # the bound of a point is never below the binomial tail
    most = np.array([_HOPELESS * level])
    if most[0] < 1 and _mass(correct, guesses, allowance, most)[0] <= guesses:
        return False  # the tails allow much more than the level
    if rounded_up(_bound_of_point(correct, guesses, slope, budget)) <= level:
        return True
    if len(allowance.slopes) == 1:
        return False
    return tail_bound(correct, guesses, allowance) <= level


def _bound_of_point(v: int, n: int, slope: float, budget: float) -> float:
    """Minimise theta + L b.

    Solving from c = n downwards gives the smallest L for each theta. The condition for c = 0 has no
    U to solve for, but it holds automatically. In units of binomial probabilities of `rate`, the
    conditions telescope. So the condition for c = 0 says that theta is at least `least`. If a U was
    cut off at 0 and all U with smaller c are 0, the condition says that theta is at least 0.
    """
    rate = slope / (1 + slope)
    least = float(special.bdtrc(v - 1, n, rate))
    if budget == 0.0 or least >= 1.0:
        return least
    low, high = least, min(least + budget * (1 - rate), 1.0)  # L = 1 - rate is always enough
    best = high
    top = _first_count(v, n, rate)
    for _ in range(_ROUNDS):
        theta = np.linspace(low, high, _POINTS)
        u = (1 - theta) / (top - slope * (n - top)) if top < n else np.zeros(_POINTS)
        largest = u
        with np.errstate(over="ignore"):  # a price of inf is never the smallest
            for c in range(top, 0, -1):
                if c < top or top == n:
                    u = np.maximum(((c >= v) - theta + slope * (n - c) * u) / c, 0.0)
                largest = np.maximum(largest, u)
                if c < v and u[0] == 0.0:  # the first theta is the least and needs the most
                    break
        bounds = theta + budget * largest
        at = int(bounds.argmin())
        best = min(best, float(bounds[at]))
        low, high = float(theta[max(at - 1, 0)]), float(theta[min(at + 1, _POINTS - 1)])
    return best


def _first_count(v: int, n: int, rate: float) -> int:
    """Return the count at which the recursion over U may start, instead of at n.

    Let u solve ``c u = 1 - theta + (n - c) e^t u`` at c = `top` > v. By induction from n downwards,
    no U(c) with c >= top exceeds u, because the right side of the condition decreases in c. So the
    recursion may start at U(top) = u. Its prices are never too small.
    """
    top = v + math.ceil(_DEVIATIONS * math.sqrt(n * rate * (1 - rate))) + 20
    return top if v > rate * n and top < n else n


def best_point(v: int, n: int, allowance: Allowance) -> Allowance:
    """Return the point of a curve that alone refutes best, by an approximation of its bound."""
    rates = allowance.slopes / (1 + allowance.slopes)
    beyond = np.maximum(v - rates * n, 1.0)
    sizes = special.bdtrc(v - 1, n, rates) + allowance.budgets * (1 - rates) / beyond
    at = int(sizes.argmin())
    return Allowance(allowance.slopes[at : at + 1], allowance.budgets[at : at + 1])


def _bound_of_curve(v: int, n: int, allowance: Allowance) -> float:
    """Stretch the prices of the recursion over tails, and return the least theta they need."""
    tail = _probability_of_tails(v, n, allowance)
    if tail >= 1.0:
        return 1.0
    prices = _prices_of_tails(v, n, allowance, tail)
    used = np.flatnonzero(prices)
    lengths, slopes = prices[used], allowance.slopes[used]
    cost = float(lengths @ allowance.budgets[used])
    # U uses prices in increasing order of slope, because sum_t e^t U(t, c) is convex in sum_t U(t,
    # c)
    along = np.concatenate([[0.0], np.cumsum(lengths)])
    gains = np.concatenate([[0.0], np.cumsum(lengths * slopes)])
    low = np.zeros(len(_STRETCHES))
    high = np.full(len(_STRETCHES), tail)
    fits = np.ones(len(_STRETCHES), dtype=bool)
    for _ in range(_ROUNDS):
        theta = np.linspace(low, high, _POINTS)  # [points, stretches]
        enough = _enough(v, n, theta, along, gains)
        fits &= enough[-1]
        first = np.where(fits, enough.argmax(axis=0), _POINTS - 1)
        columns = np.arange(len(_STRETCHES))
        low, high = theta[np.maximum(first - 1, 0), columns], theta[first, columns]
    return float(np.where(fits, high + _STRETCHES * cost, 1.0).min())


def _enough(v: int, n: int, theta: Floats, along: Floats, gains: Floats) -> NDArray[np.bool_]:
    """Return whether stretched prices satisfy every condition of the theorem, for each theta."""
    enough = np.ones(theta.shape, dtype=bool)
    gain, top = np.zeros_like(theta), _first_count(v, n, 0.5)
    if top < n:  # solve c u = 1 - theta + (n - c) gain(u) at c = top; see `_first_count`
        excess = top * along - (n - top) * gains
        rising = slice(0, int(excess.argmax()) + 1)
        wanted = (1 - theta) / _STRETCHES
        enough = wanted <= excess[rising][-1]
        u = np.interp(wanted, excess[rising], along[rising])
        gain = np.interp(u, along, gains) * _STRETCHES
    for c in range(top - (top < n), 0, -1):
        u = np.maximum(((c >= v) - theta + (n - c) * gain) / c, 0.0) / _STRETCHES
        enough &= u <= along[-1]
        gain = np.interp(u, along, gains) * _STRETCHES
        if c < v and not gain.any():
            break
    return enough & ((c > 1) | (n * gain <= theta))


def _probability_of_tails(v: int, n: int, allowance: Allowance) -> float:
    """Return the largest P(C >= v), up to 1, that the budgets of all tails {C >= c} allow."""
    low, high = -14.0, 0.0
    if _mass(v, n, allowance, np.ones(1))[0] <= n:
        return 1.0
    for _ in range(_ROUNDS):
        exponents = np.linspace(low, high, _POINTS)
        over = _mass(v, n, allowance, 10.0**exponents) > n
        first = int(over.argmax())
        low, high = float(exponents[max(first - 1, 0)]), float(exponents[first])
    return float(10.0**high)


def _mass(v: int, n: int, allowance: Allowance, p: Floats) -> Floats:
    """Return n times the probability that 0 .. v must have if P(C = v) = p, for each p."""
    right, wrong = p * v, p * (n - v)
    for k in range(v, 0, -1):
        forced = ((right[:, None] - allowance.budgets) / allowance.slopes).max(axis=1)
        added = np.clip(forced - wrong, 0.0, n)  # more than n is neither needed nor possible
        added[right + wrong > n] = 0.0
        if not added.any():
            break
        right, wrong = right + (k - 1) / (n - k + 1) * added, wrong + added
    return right + wrong


def _prices_of_tails(v: int, n: int, allowance: Allowance, p: float) -> Floats:
    """Return L(t), up to a factor, that makes the conditions at the binding slopes equalities."""
    right, wrong = p * v, p * (n - v)
    binding: list[int] = []
    for k in range(v, 0, -1):
        forced = (right - allowance.budgets) / allowance.slopes
        at = int(forced.argmax())
        added = float(forced[at]) - wrong
        if added <= 0:
            break
        binding.append(at)
        right, wrong = right + (k - 1) / (n - k + 1) * added, wrong + added
    prices = np.zeros(len(allowance.slopes))
    total = gain = 0.0
    for c, at in enumerate(reversed(binding), v - len(binding)):
        more = max((1 + c * total) / (n - c) - gain, 0.0) / float(allowance.slopes[at])
        prices[at] += more
        total, gain = total + more, gain + more * float(allowance.slopes[at])
    return prices / (1 + v * total - (n - v) * gain)


def _check(correct: int, guesses: int, canaries: int) -> None:
    _validate.integer(1, canaries=canaries)
    _validate.integer(1, guesses=guesses)
    _validate.integer(0, correct=correct)
    if not correct <= guesses <= canaries:
        raise ArgumentError(
            f"correct must be at most guesses, and guesses at most canaries = {canaries}, got "
            f"correct={correct} and guesses={guesses}"
        )
