"""Tests that bets on guesses are fair and optimal.

Linear programs show that the bets are fair against all mechanisms of the null hypothesis.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize
from scipy.stats import binom

import dpaudit.stats.wagers
from dpaudit.stats import NEITHER, wager
from dpaudit.stats.wagers import Wager

Floats = NDArray[np.float64]

LEVELS = np.array([0.0, 0.1, 0.7, 2.0, 5.0])
HALF = np.array([0.5, 0.5, 0.0])

weights = st.tuples(*[st.floats(0.001, 1.0)] * 3).map(lambda w: np.array(w) / sum(w))
deltas = st.sampled_from([0.0, 1e-6, 0.01, 0.3])


def without_abstention(rates: Floats) -> Floats:
    return np.array([rates[0], 1 - rates[0], 0.0])


def most_to_expect(bet: Wager, at: int, delta: float, answers: int = 3) -> float:
    """Return the largest mean of F and G over the null hypothesis, after the price.

    The maximum is computed by linear programming.
    """
    theta = math.exp(LEVELS[at])
    a, b = np.exp(bet.log_left[at, :answers]), np.exp(bet.log_right[at, :answers])
    none = [0.0] * answers
    keeps: Any = np.zeros((2, 2 * answers))
    keeps[0, 0], keeps[0, answers] = 1, -theta
    keeps[1, answers + 1], keeps[1, 1] = 1, -theta
    sums: Any = [[1.0] * answers + none, none + [1.0] * answers]
    best = linprog(-np.concatenate([a, b]), A_ub=keeps, b_ub=[delta] * 2, A_eq=sums, b_eq=[1, 1])
    assert best.success
    return float(-best.fun / 2 * math.exp(-bet.log_price[at] / 2))


@settings(max_examples=150, deadline=None)
@given(weights, weights, deltas, st.floats(0.2, 1.0), st.booleans())
def test_no_mechanism_of_the_null_can_expect_to_win(
    left: Floats, right: Floats, delta: float, bold: float, abstains: bool
) -> None:
    if not abstains:
        left, right = without_abstention(left), without_abstention(right)
    bet = wager(left, right, LEVELS, delta, bold)
    for at in np.flatnonzero(bet.growth):
        assert most_to_expect(bet, int(at), delta, 3 if abstains else 2) <= 1 + 1e-9


@settings(max_examples=60, deadline=None)
@given(weights, weights, deltas, st.booleans())
def test_the_price_of_rounding_is_nothing(
    left: Floats, right: Floats, delta: float, abstains: bool
) -> None:
    if not abstains:
        left, right = without_abstention(left), without_abstention(right)
    bet = wager(left, right, LEVELS, delta)
    large = bet.growth > 1e-5
    assert np.all(bet.log_price[large] <= 1e-3 * bet.growth[large])


def kl(x: Floats, y: Floats) -> float:
    inside = x > 0
    return float((x[inside] * np.log(x[inside] / np.maximum(y[inside], 1e-300))).sum())


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")  # scipy before 1.16
@settings(max_examples=25, deadline=None)
@given(weights, weights, st.sampled_from([0.0, 0.02]), st.integers(0, len(LEVELS) - 1))
def test_it_grows_as_fast_as_the_distance_to_the_null(
    left: Floats, right: Floats, delta: float, at: int
) -> None:
    """Check that a bet grows as fast as the distance to the null hypothesis.

    Another solver confirms that no bet can grow faster against all mechanisms of the null
    hypothesis.
    """
    bet = wager(left, right, LEVELS, delta)
    assume(bet.growth[at] > 1e-4)
    theta = math.exp(LEVELS[at])

    def distance(free: Floats) -> float:
        p = np.array([free[0], free[1], max(1 - free[0] - free[1], 1e-12)])
        q = np.array([free[2], free[3], max(1 - free[2] - free[3], 1e-12)])
        return kl(left, p) + kl(right, q)

    keeps: Any = [
        {"type": "ineq", "fun": lambda x: theta * x[2] + delta - x[0]},
        {"type": "ineq", "fun": lambda x: theta * x[1] + delta - x[3]},
        {"type": "ineq", "fun": lambda x: 1 - x[0] - x[1] - 1e-9},
        {"type": "ineq", "fun": lambda x: 1 - x[2] - x[3] - 1e-9},
    ]
    rare = 0.3 / (1 + theta)
    start = np.array([theta * rare / 2, rare, rare, theta * rare / 2])
    bounds = [(1e-9, 1.0)] * 4
    found = minimize(distance, start, method="SLSQP", bounds=bounds, constraints=keeps, tol=1e-12)
    assume(found.success)
    assert bet.growth[at] <= found.fun * (1 + 1e-4) + 1e-7
    assert bet.growth[at] >= found.fun * (1 - 1e-3) - 1e-6


def test_randomised_response_is_bet_on_at_both_ends() -> None:
    """Check that a bet on randomised response uses both ends.

    The distance to the null hypothesis is the distance of two coins, which is twice what one event
    alone allows.
    """
    coin = np.array([0.8, 0.2, 0.0])
    rate = math.e / (1 + math.e)
    best = 2 * kl(coin[:2], np.array([rate, 1 - rate]))
    bet = wager(coin, coin[[1, 0, 2]], np.array([1.0]), 0.0)
    assert bet.growth[0] == pytest.approx(best, rel=1e-6)


def test_levels_that_the_rates_keep_are_left_alone() -> None:
    bet = wager(np.array([0.5, 0.5, 0.0]), np.array([0.4, 0.6, 0.0]), LEVELS, 0.0)
    counts = np.array([60, 40, 0]), np.array([40, 60, 0])
    assert bet.log_growth(*counts)[0] > bet.log_growth(*counts)[1] > 0
    assert not bet.log_growth(*counts)[2:].any()


@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_an_error_of_the_solver_costs_growth_and_not_soundness(
    monkeypatch: pytest.MonkeyPatch, factor: float
) -> None:
    left, right = np.array([0.5, 0.1, 0.4]), np.array([0.1, 0.4, 0.5])
    honest = wager(left, right, LEVELS, 0.01)
    solve = dpaudit.stats.wagers._closest

    def wrong(*args: Any) -> Any:
        p, q, k, m = solve(*args)
        q = q * np.array([factor, 1.0, 1.0])
        return p, q / q.sum(axis=1, keepdims=True), factor * k, m

    monkeypatch.setattr(dpaudit.stats.wagers, "_closest", wrong)
    bet = wager(left, right, LEVELS, 0.01)
    assert bet.growth[0] < honest.growth[0]
    for at in np.flatnonzero(bet.growth):
        assert most_to_expect(bet, int(at), 0.01) <= 1 + 1e-9
    unpaid = Wager(bet.log_left, bet.log_right, np.zeros(len(LEVELS)), bet.growth)
    assert max(most_to_expect(unpaid, int(at), 0.01) for at in np.flatnonzero(bet.growth)) > 1.001


@pytest.mark.slow
def test_a_batch_is_worth_what_its_draws_are() -> None:
    """Check that a batch is worth what its draws are worth.

    The test computes the exact expectation of the factor of three pairs of draws, on the boundary.
    """
    left, right = np.array([0.6, 0.1, 0.3]), np.array([0.15, 0.45, 0.4])
    bet = wager(left, right, np.array([0.5]), 0.05)
    theta, draws = math.exp(0.5), 3
    for q_left, p_right in itertools.product(np.linspace(0.01, 0.3, 8), repeat=2):
        p = np.array([theta * q_left + 0.05, p_right])
        q = np.array([q_left, theta * p_right + 0.05])
        if p.sum() > 1 or q.sum() > 1:
            continue
        assert _expected(bet, np.append(p, 1 - p.sum()), np.append(q, 1 - q.sum()), draws) < 1.0001
    assert _expected(bet, left, right, draws) > 1.2


def _expected(bet: Wager, p: Floats, q: Floats, draws: int) -> float:
    total = 0.0
    splits = [(i, j, draws - i - j) for i in range(draws + 1) for j in range(draws + 1 - i)]
    for x, y in itertools.product(splits, repeat=2):
        growth = bet.log_growth(np.array(x), np.array(y))[0]
        total += math.exp(growth) * _multinomial(x, p) * _multinomial(y, q)
    return total


def _multinomial(counts: tuple[int, ...], rates: Floats) -> float:
    i, j, _ = counts
    n = sum(counts)
    rest = rates[1] / max(1 - rates[0], 1e-300)
    return float(binom.pmf(i, n, rates[0]) * binom.pmf(j, n - i, min(rest, 1.0)))


@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_bets_of_one_call_are_the_bets_of_separate_calls(delta: float) -> None:
    left = np.array([[0.6, 0.1, 0.3], [0.7, 0.3, 0.0], [0.9, 0.1, 0.0], [0.5, 0.5, 0.0]])
    right = np.array([[0.2, 0.4, 0.4], [0.2, 0.8, 0.0], [0.001, 0.999, 0.0], [0.5, 0.5, 0.0]])
    epsilon, sizes = np.array([0.3, 0.0, 2.0, 1.0]), np.array([1.0, 0.4, 0.9, 1.0])
    together = wager(left, right, epsilon, delta, sizes)
    for i in range(4):
        alone = wager(left[i], right[i], epsilon[i : i + 1], delta, float(sizes[i]))
        for name in ("log_left", "log_right", "log_price", "growth"):
            found = getattr(together.part(i, i + 1), name)
            assert found == pytest.approx(getattr(alone, name), rel=1e-9, abs=1e-12)


def test_an_answer_that_cannot_be_given_is_not_paid_for() -> None:
    bet = wager(HALF, np.array([0.1, 0.9, 0.0]), LEVELS, 0.0)
    assert not bet.log_left[:, NEITHER].any()
    assert not bet.log_right[:, NEITHER].any()
