r"""Tests of guesses in one run, at numbers of guesses that are planned for each claim.

Too few guesses leave much to chance, and the last of many guesses are little better than random. So
the best number of guesses depends on the mechanism. If a number is fixed for all claims, or if
several numbers share failure_prob equally, the certified number is up to 23% smaller than it could
be. This module plans the numbers for each claim that is tested. Every bound of a fixed number is
the theorem of `one_run`.

The plan
--------
A plan holds tests and shares w_k that sum to 1. A test holds one or several numbers of guesses. Its
statistic W_k is the sum, over its numbers, of the wrong guesses among so many first guesses. The
plan is a function of the claim, of the number of canaries, of failure_prob and of the side, but not
of the coins and scores.

The plan gives 0.9 of failure_prob to a main test with one number. This number refutes the claim
for the least distance mu between Gaussian scores of included and excluded canaries, at expected
counts. Suppose that the scores are Gaussian, and that x is the largest certified value. Then the
scores just refute x. So the planned number is about the number that certifies most, which is
otherwise known only in hindsight. If the budget of delta is small beside failure_prob, eight
numbers replace the one number. They give wrong guess j about the weight ``logit(q_j) - epsilon``
of the most powerful test, where q_j is the probability that guess j is correct.

The rest of failure_prob is divided among all canaries and half of them. These two tests protect
against other distributions of the scores: all canaries are best for randomised response, and about
half are best for Laplace noise.

Validity for one claim
----------------------
A plan refutes a claim if, for some test k, the bound of P(W_k <= w) at the observed w is at most
w_k failure_prob.

*Proposition.* A true claim is refuted with probability at most failure_prob.

Proof. The numbers of each test are fixed beforehand, so the theorems of `one_run` hold for each
test. The union bound adds the shares.

Theorem (certified values)
--------------------------
Let x be epsilon at a fixed delta, or mu. Let a mechanism that satisfies the claim for x also
satisfy the claim for every larger x. Cut the values of x into cells by fixed edges, and use the
same plan for all x of a cell. A cell contains its right edge, but not its left edge. A search
starts at the first cell. It proceeds to the next cell if the right edge of its cell is refuted.
Otherwise, it tests values within the cell, in any order, and returns a refuted value of the cell,
or the left edge of the cell.

*Theorem.* With probability at least 1 - failure_prob, the returned value is at most the true value.

Proof of the theorem. Let x* be the true value, and let B be the cell of x*. Suppose that the
returned value exceeds x*. Then some value x >= x* of the cell B was refuted. This is the returned
value if it lies in B, and the right edge of B otherwise. So it is enough to bound the probability
that any x >= x* of B is refuted. All these x share the same tests and shares. Let v_k be the
largest value of W_k that refutes any of them by the k-th test, and let x_k be a value that it
refutes. The mechanism satisfies the claim for x_k, so ``P(W_k <= v_k) <= w_k failure_prob`` by the
theorems of `one_run`. The union bound over k proves the theorem. The proof does not need that
bounds or critical counts are monotone in x. It does not matter which values the search visits
within a cell.

A claim for x is reported as refuted only if its p-value is at most failure_prob, and if the
returned value is at least x. For mu, at least min(x, 8) is enough. So the event of the proof also
contains a false refutation. The verdict and the certified value share one failure probability.

References
----------
Steinke, Nasr and Jagielski (2023), "Privacy auditing with one (1) training run".
Mahloujifar, Melis and Chaudhuri (2025), "Auditing f-differential privacy in one run".
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit import _validate
from dpaudit.claims import Claim, GaussianDP
from dpaudit.errors import ArgumentError
from dpaudit.stats.one_run import Allowance, refutes, sum_bound
from dpaudit.stats.walks import LARGEST_EPSILON

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LARGEST_MU = 8.0
"""Largest certified mu."""

_MAIN_SHARE = 0.9
_PARTS = (2, 1)
"""Inverse fractions of the canaries that the other tests guess."""

_LEVELS = 8
"""Numbers of guesses of the main test if the budget is small."""

_SMALL_BUDGET = 0.1
"""Largest contribution of a small budget, as a multiple of the level of the main test."""

_FACTOR_OF_CURVES = 0.7
_RATIO = 1.1  # ratio of neighbouring edges, and of neighbouring candidates of the main number
_FIRST_EPSILON, _FIRST_MU = 0.05, 0.01  # right edges of the first cells
_TOLERANCE = 1e-4
_EVERY = 4  # a plan uses every fourth point of a curve
_MUS = np.geomspace(0.005, 20.0, 160)  # distances of the scores that a plan considers
_CUTS = 800
_HALVES = 40


@dataclass(frozen=True)
class GuessPlan:
    """Tests of one claim, and their shares of failure_prob.

    Parameters
    ----------
    tests : tuple of tuple of int
        Numbers of guesses of each test, which do not decrease and are at least 1.
    shares : tuple of float
        Positive share of failure_prob of each test. The shares sum to at most 1.

    Examples
    --------
    >>> GuessPlan(((10,), (20, 30)), (0.9, 0.1)).numbers
    (10, 20, 30)
    """

    tests: tuple[tuple[int, ...], ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        for numbers in self.tests:
            if not numbers or sorted(numbers) != list(numbers) or numbers[0] < 1:
                raise ArgumentError(
                    "tests must hold nonempty tuples of integers >= 1 that do not decrease, got "
                    f"{self.tests!r}"
                )
        if not self.tests or len(self.shares) != len(self.tests) or not min(self.shares) > 0:
            raise ArgumentError(
                f"shares must hold one number > 0 for each test, got {self.shares!r}"
            )
        if math.fsum(self.shares) > 1 + 1e-12:
            raise ArgumentError(f"shares must sum to at most 1, got {self.shares!r}")

    @property
    def numbers(self) -> tuple[int, ...]:
        """All numbers of guesses of the tests, in increasing order."""
        return tuple(sorted({number for numbers in self.tests for number in numbers}))

    def wrong(self, right: Ints) -> list[int]:
        """Return the statistic of each test from the number of correct guesses at each number."""
        return [sum(n - int(right[n]) for n in numbers) for numbers in self.tests]


@dataclass(frozen=True)
class GuessPlanner:
    """Rule that plans numbers of guesses from everything except the coins and scores.

    Parameters
    ----------
    canaries : int
        Number of coins, at least 1.
    failure_prob : float
        Failure probability of the claim, in (0, 1).
    one_sided : bool, optional
        Whether every guess is "included". The default is False.
    guesses : int, optional
        Number of guesses of every plan, if it is fixed.

    Examples
    --------
    >>> from dpaudit.claims import ApproxDP, GaussianDP
    >>> planner = GuessPlanner(1000, 0.05)
    >>> planner.plan(ApproxDP(2.0, 1e-4)).numbers
    (103, 500, 1000)
    >>> GuessPlanner(1000, 0.05, guesses=200).plan(GaussianDP(1.0))
    GuessPlan(tests=((200,),), shares=(1.0,))
    """

    canaries: int
    failure_prob: float
    one_sided: bool = False
    guesses: int | None = None

    def __post_init__(self) -> None:
        m = _validate.integer(1, canaries=self.canaries)
        _validate.failure_prob(failure_prob=self.failure_prob)
        if self.guesses is not None:
            _validate.integer(1, m, guesses=self.guesses)

    def allowance(self, claim: Claim) -> Allowance:
        """Return the budget of a claim."""
        return Allowance.of_claim(claim, self.canaries, one_sided=self.one_sided)

    def plan(self, claim: Claim) -> GuessPlan:
        """Return the plan of a claim; claims of the same cell get the same plan."""
        if self.guesses is not None:
            return self._fixed
        if claim.point is not None:
            epsilon, delta = claim.point
            return _plan_of_epsilon(self, delta, _cell(_EPSILONS, epsilon))
        if isinstance(claim, GaussianDP):
            return _plan_of_mu(self, _cell(_EDGES_OF_MU, claim.mu))
        return _plan(self, self.allowance(claim))

    def p_value(self, right: Ints, claim: Claim) -> float:
        """Return the p-value of a claim.

        Parameters
        ----------
        right : ndarray of int, shape (canaries + 1,)
            Number of correct guesses among the first 0, 1, .. guesses.
        claim : Claim
            The claim, of any kind.
        """
        counts = _checked(right, self.canaries)
        plan, allowance = self.plan(claim), self.allowance(claim)
        found = (
            sum_bound(wrong, numbers, allowance) / share
            for wrong, numbers, share in zip(
                plan.wrong(counts), plan.tests, plan.shares, strict=True
            )
        )
        return min(1.0, *found)

    def epsilon(self, right: Ints, delta: float, claimed: float = 0.0) -> float:
        """Return the certified epsilon at a delta.

        Parameters
        ----------
        right : ndarray of int, shape (canaries + 1,)
            Number of correct guesses among the first 0, 1, .. guesses.
        delta : float
            Delta, in [0, 1].
        claimed : float, optional
            An epsilon of interest, which the search tests. It is certified if it is refuted in its
            cell and if the search reaches this cell.

        Returns
        -------
        float
            The bound is 0 if nothing is certified, and at most 30.

        Examples
        --------
        >>> right = np.minimum(np.arange(101), 60)  # the first 60 guesses are correct
        >>> round(GuessPlanner(100, 0.05).epsilon(right, 0.0), 2)
        2.3
        """
        counts = _checked(right, self.canaries)
        budget = np.array([self._sides * self.canaries * _validate.delta(delta=delta)])

        def refuted(epsilon: float, cell: int) -> bool:
            plan = self._fixed if self.guesses is not None else _plan_of_epsilon(self, delta, cell)
            return self._refuted(counts, plan, Allowance(np.array([math.exp(epsilon)]), budget))

        if not refuted(0.0, 0):
            return 0.0
        return _certified(refuted, _EPSILONS, claimed)

    def mu(self, right: Ints, claimed: float = 0.0) -> float:
        """Return the certified mu, if the mechanism is mu-Gaussian-DP for some mu.

        The parameters are those of :meth:`epsilon`. The bound is 0 if nothing is certified, and at
        most 8. If the mechanism is not Gaussian-DP, the bound says nothing about epsilon.

        Examples
        --------
        >>> right = np.minimum(np.arange(201), 60)  # the first 60 guesses are correct
        >>> round(GuessPlanner(200, 0.05).mu(right), 2)
        0.88
        """
        counts = _checked(right, self.canaries)

        def refuted(mu: float, cell: int) -> bool:
            plan = self._fixed if self.guesses is not None else _plan_of_mu(self, cell)
            return self._refuted(counts, plan, self.allowance(GaussianDP(mu)))

        return _certified(refuted, _EDGES_OF_MU, claimed)

    @property
    def _fixed(self) -> GuessPlan:
        assert self.guesses is not None
        return GuessPlan(((self.guesses,),), (1.0,))

    @property
    def _sides(self) -> float:
        return 0.5 if self.one_sided else 1.0

    def _refuted(self, counts: Ints, plan: GuessPlan, allowance: Allowance) -> bool:
        return any(
            refutes(wrong, numbers, allowance, share * self.failure_prob)
            for wrong, numbers, share in zip(
                plan.wrong(counts), plan.tests, plan.shares, strict=True
            )
        )


def _edges(first: float, last: float) -> tuple[float, ...]:
    edges = [first]
    while edges[-1] * _RATIO < last:
        edges.append(edges[-1] * _RATIO)
    return (*edges, last)


_EPSILONS = _edges(_FIRST_EPSILON, LARGEST_EPSILON)
_EDGES_OF_MU = _edges(_FIRST_MU, LARGEST_MU)


def _cell(edges: tuple[float, ...], value: float) -> int:
    """Return the index of the cell of a value; the last cell contains all larger values."""
    return min(int(np.searchsorted(edges, value)), len(edges) - 1)


def _certified(
    refuted: Callable[[float, int], bool], edges: tuple[float, ...], claimed: float
) -> float:
    """Search as the theorem of the module describes."""
    low = 0.0
    for cell, high in enumerate(edges):
        if refuted(high, cell):
            low = high
            continue
        if low < claimed < high:
            low, high = (claimed, high) if refuted(claimed, cell) else (low, claimed)
        while high - low > _TOLERANCE * max(high, edges[0]):
            middle = (low + high) / 2
            low, high = (middle, high) if refuted(middle, cell) else (low, middle)
        break
    return low


def _middle(edges: tuple[float, ...], cell: int) -> float:
    return edges[0] / 2 if cell == 0 else math.sqrt(edges[cell - 1] * edges[cell])


@functools.lru_cache(maxsize=1024)
def _plan_of_epsilon(planner: GuessPlanner, delta: float, cell: int) -> GuessPlan:
    slope = math.exp(_middle(_EPSILONS, cell))
    budget = planner._sides * planner.canaries * delta
    return _plan(planner, Allowance(np.array([slope]), np.array([budget])))


@functools.lru_cache(maxsize=1024)
def _plan_of_mu(planner: GuessPlanner, cell: int) -> GuessPlan:
    return _plan(planner, planner.allowance(GaussianDP(_middle(_EDGES_OF_MU, cell))))


def _plan(planner: GuessPlanner, allowance: Allowance) -> GuessPlan:
    m, alpha = planner.canaries, planner.failure_prob
    least = min(math.ceil(math.log2(1 / alpha)) + 1, m)  # fewer guesses refute nothing
    level = _MAIN_SHARE * alpha
    number, mu = _best_number(m, least, allowance, level, planner.one_sided)
    main: tuple[int, ...] = (number,)
    slope, budget = float(allowance.slopes[0]), float(allowance.budgets[0])
    if len(allowance.slopes) == 1 and budget / (1 + slope) <= _SMALL_BUDGET * level:
        main = _weighted(m, math.log(slope), mu, one_sided=planner.one_sided) or main
    others = sorted({m // part for part in _PARTS if m // part >= least} or {m})
    rest = (1 - _MAIN_SHARE) / len(others)
    return GuessPlan(
        (main, *((number,) for number in others)), (_MAIN_SHARE, *[rest] * len(others))
    )


def _weighted(canaries: int, epsilon: float, mu: float, *, one_sided: bool) -> tuple[int, ...]:
    """Return numbers of guesses whose sum has about the most powerful weights.

    A score at t standard deviations from the middle between two Gaussian distributions is guessed
    correctly with ``logit(q) = mu t``.
    """
    if not math.isfinite(mu):
        return ()
    far = mu / 2 + 8
    cuts = np.linspace(far, -far if one_sided else 0.0, _CUTS)
    guessed = _beyond(mu, cuts, one_sided)[1]
    top = mu * float(np.interp(0.5 / canaries, guessed, cuts))
    if top <= epsilon:
        return ()
    logits = epsilon + (top - epsilon) * np.arange(_LEVELS) / _LEVELS
    numbers = canaries * np.interp(-logits / mu, -cuts, guessed)
    return tuple(sorted(int(number) for number in numbers.tolist() if number >= 1))


def _beyond(mu: float, cuts: Floats, one_sided: bool) -> tuple[Floats, Floats]:
    """Return the shares of canaries guessed correctly beyond cuts, and guessed in all."""
    right, wrong = special.ndtr(mu / 2 - cuts), special.ndtr(-mu / 2 - cuts)
    sides = 2 if one_sided else 1
    return np.asarray(right / sides), np.asarray((right + wrong) / sides)


def _best_number(
    canaries: int, least: int, allowance: Allowance, level: float, one_sided: bool
) -> tuple[int, float]:
    """Return the number that refutes the claim for the least distance of Gaussian scores.

    The second value is this distance. The critical rate of each number is an approximation. It is
    the least over the points of a curve, and the largest that chance and the budget together allow.
    A whole curve refutes more than its best point, and with fewer guesses, so the number is
    multiplied by 0.7 for a curve. This factor was found by computation. Validity does not depend on
    the approximation.
    """
    numbers, rates = _rates_of_gaussians(canaries, least, one_sided)
    slopes, budgets = allowance.slopes[::_EVERY, None], allowance.budgets[::_EVERY, None]
    rate, rest = slopes / (1 + slopes), 1 / (1 + slopes)  # 1 - rate may round to 0
    deviation = np.sqrt(numbers * rate * rest)
    budget = budgets * rest / deviation
    low, high = np.full(deviation.shape, 0.01), np.full(deviation.shape, 1e4)
    for _ in range(_HALVES):
        middle = np.sqrt(low * high)
        likely = special.ndtr(-middle) + budget / middle > level
        low, high = np.where(likely, middle, low), np.where(likely, high, middle)
    critical = (rate + high * deviation / numbers).min(axis=0)
    rounded = np.minimum(critical + 0.5 / numbers, 1.0)
    critical = np.where(critical <= 1, rounded, critical)
    distances = [
        np.interp(at, own, _MUS, right=math.inf)
        for at, own in zip(critical.tolist(), rates.T, strict=True)
    ]
    at = int(np.argmin(distances if min(distances) < math.inf else critical))
    factor = 1.0 if len(allowance.slopes) == 1 else _FACTOR_OF_CURVES
    return max(round(factor * int(numbers[at])), least), float(distances[at])


@functools.lru_cache(maxsize=64)
def _rates_of_gaussians(canaries: int, least: int, one_sided: bool) -> tuple[Ints, Floats]:
    """Return candidates of the number, and the rates of correct guesses for Gaussian scores.

    Returns
    -------
    ndarray, shape (k,)
        Numbers of guesses.
    ndarray, shape (distances, k)
        Share of correct guesses for each distance of the scores and each number.
    """
    steps = max(math.ceil(math.log(canaries / least) / math.log(_RATIO)), 1) + 1
    numbers = np.unique(np.geomspace(least, canaries, steps).round().astype(np.int64))
    rates = []
    for mu in _MUS.tolist():
        far = mu / 2 + 8
        cuts = np.linspace(far, -far if one_sided else 0.0, _CUTS)
        right, guessed = _beyond(mu, cuts, one_sided)
        rates.append(np.interp(numbers / canaries, guessed, right / guessed))
    return numbers, np.array(rates)


def _checked(right: Ints, canaries: int) -> Ints:
    if right.shape != (canaries + 1,) or right.dtype.kind not in "iu":
        raise ArgumentError(
            f"right must hold one integer for each of 0 .. {canaries} guesses, got shape "
            f"{right.shape} of {right.dtype}"
        )
    steps = np.diff(right)
    if right[0] != 0 or steps.min() < 0 or steps.max() > 1:
        raise ArgumentError(
            "right must start at 0 and increase by 0 or 1 with each guess, got steps from "
            f"{steps.min()} to {steps.max()} after {right[0]}"
        )
    return right
