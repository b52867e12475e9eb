from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, multinomial

from dpaudit.stats.betting import last_nonnegative, log_wealth
from dpaudit.stats.joint import Target
from dpaudit.stats.paired import PairedBet, expected_bound

ALPHA = 0.05
VALUES = np.array([0.0, 0.3, 1.0])
LAWS = [(0.9, 0.08, 0.02), (0.5, 0.3, 0.2), (0.2, 0.7, 0.1), (0.05, 0.05, 0.9), (0.0, 0.5, 0.5)]


def outcomes(n):
    for a in range(n + 1):
        for b in range(n + 1 - a):
            yield np.array([a, b, n - a - b])


# --- one mean: exact ---


# --- two means: exact ---

BETS = PairedBet((0.4, 0.1, 0.25, 0.9), (0.5, 0.2, 0.2, 0.1))


class Clipping(PairedBet):
    """A broken rule that keeps bets with possibly negative factors and sets these factors to 0."""

    def _log_wealth(self, x, y, epsilon, delta):
        wealth = log_wealth(x - math.exp(epsilon) * y - delta, np.array(self.bets))
        return float(np.logaddexp.reduce(wealth + np.log(self.weights)))


def chance_of_a_lie(bet, n, x, q, largest_seen=1.0, delta=0.0):
    """Return the exact probability that a bet certifies more than the truth.

    X is constant. Y is `largest_seen` with probability q, else 0. The hits of Y are enumerated.
    """
    truth = math.log((x - delta) / (q * largest_seen))
    lies = 0.0
    for hits in range(n + 1):
        y = np.repeat([largest_seen, 0.0], [hits, n - hits])
        certified = bet.lower_epsilon(np.full(n, x), y, delta, ALPHA)
        lies += binom.pmf(hits, n, q) * (certified > truth + 1e-12)
    return lies


@pytest.mark.parametrize("q", [0.003, 0.01, 0.03, 0.1, 0.3])
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_certified_epsilons_are_wrong_no_more_often_than_they_say(q, delta):
    for n, x in itertools.product([5, 60], [0.35, 0.9]):
        assert chance_of_a_lie(BETS, n, x, q, delta=delta) <= ALPHA


def test_both_sides_random_and_dependent_enumerated():
    # The values (X, Y) in {(1, 1), (1, 0), (0, 0)} share their randomness, as common random numbers
    # do.
    n, distribution = 12, (0.1, 0.5, 0.4)
    counts = list(outcomes(n))
    probability = multinomial.pmf(counts, n, distribution)
    pairs = [(np.repeat([1.0, 1, 0], c), np.repeat([1.0, 0, 0], c)) for c in counts]
    epsilons = np.array([BETS.lower_epsilon(x, y, 0.0, ALPHA) for x, y in pairs])
    assert probability[epsilons > math.log(6)].sum() <= ALPHA
    for epsilon in (0.0, 0.7):
        deltas = np.array([BETS.lower_delta(x, y, epsilon, ALPHA) for x, y in pairs])
        assert probability[deltas > 0.6 - math.exp(epsilon) * 0.1].sum() <= ALPHA
        assert (deltas > 0).any()


def test_clipping_negative_factors_is_found_out():
    bets, weights = (0.9, 0.1, 1e-3), (0.4, 0.3, 0.3)
    assert chance_of_a_lie(PairedBet(bets, weights), 60, 0.9, 0.01) <= ALPHA
    assert chance_of_a_lie(Clipping(bets, weights), 60, 0.9, 0.01) > 0.5


@pytest.mark.slow
def test_an_understated_largest_value_is_found_out():
    # Y is 1 with probability 0.01, but the promise is that Y stays below 0.01.
    honest, broken = (
        PairedBet.plan(
            np.full(50, 0.3),
            np.zeros(50),
            draws=60,
            failure_prob=ALPHA,
            target=Target(delta=0.0),
            largest=largest,
        )
        for largest in (1.0, 0.01)
    )
    assert chance_of_a_lie(honest, 60, 0.3, 0.01) <= ALPHA
    unchecked = Unchecked(broken.bets, broken.weights, broken.largest)
    assert chance_of_a_lie(unchecked, 60, 0.3, 0.01) > ALPHA
    with pytest.raises(ValueError, match="rare must lie in"):
        broken.lower_epsilon([0.3], [1.0], 0.0, ALPHA)


class Unchecked(PairedBet):
    """A broken rule that never checks the promised largest value."""

    def lower_epsilon(self, likely, rare, delta, failure_prob):
        excess = [
            (e, self._log_wealth(likely, rare, e, delta) + math.log(failure_prob))
            for e in np.linspace(0, 12, 241)
        ]
        return max((e for e, value in excess if value >= 0), default=0.0)


# --- two means: properties ---


def test_the_wealth_is_a_weighted_mean_of_that_of_the_bets():
    """Check that the wealth is a weighted mean of the wealths of the single bets.

    The wealth begins with the sum of the weights, which is at most 1. An unweighted sum would begin
    with more.
    """
    assert BETS.log_wealth([0.5], [0.5], 0.0, 0.0) == pytest.approx(0.0)
    one, other = ((1 + bet * 0.6) * (1 - bet * 0.1) for bet in (0.4, 0.1))
    bet = PairedBet((0.4, 0.1), (0.5, 0.2))
    expected = math.log(0.5 * one + 0.2 * other)
    assert bet.log_wealth([0.7, 0.1], [0.1, 0.2], 0.0, 0.0) == pytest.approx(expected)


@given(st.floats(0, 1), st.floats(0.01, 3), st.floats(1e-6, 0.5))
def test_a_search_returns_a_point_that_it_has_seen_to_be_safe(root, slope, tolerance):
    def excess(x):
        return slope * (root - x) - 1e-9 * x**3

    found = last_nonnegative(excess, 0.0, 1.0, tolerance)
    assert excess(found) >= 0
    assert root - found <= tolerance + 1e-6


def falls(values):
    return all(a >= b for a, b in itertools.pairwise(values))


def test_wealth_falls_with_epsilon_and_delta():
    rng = np.random.default_rng(4)
    x, y = rng.beta(2, 3, 300), rng.beta(1, 9, 300)
    grid = np.linspace(0, 3, 61)
    for at in (0.0, 0.1):
        assert falls(BETS.log_wealth(x, y, e, at) for e in grid)
    deltas = np.linspace(0, 1, 61)
    for at in (0.0, 0.5):
        assert falls(BETS.log_wealth(x, y, at, d) for d in deltas)
    assert BETS.log_wealth(x, y, 800.0, 0.0) == -math.inf


def test_a_bet_counts_up_to_the_epsilon_at_which_a_factor_could_be_zero():
    bet = PairedBet((0.25,), (1.0,))
    x, y = np.ones(4), np.array([0.0, 0.0, 0.0, 0.0])
    assert bet.log_wealth(x, y, math.log(4.0), 0.0) == pytest.approx(4 * math.log(1.25))
    assert bet.log_wealth(x, y, math.log(4.0) + 1e-9, 0.0) == -math.inf
    # At the limit, one factor is 0, so all wealth is lost without a warning.
    assert bet.log_wealth(np.zeros(1), np.ones(1), math.log(4.0), 0.0) == -math.inf


def test_no_stake_no_gain():
    idle = PairedBet((0.0,), (1.0,))
    assert idle.log_wealth([1.0], [0.0], 900.0, 0.0) == 0.0
    assert idle.lower_epsilon([1.0], [0.0], 0.0, ALPHA) == 0.0
    assert idle.lower_delta([1.0], [0.0], 0.0, ALPHA) == 0.0


@pytest.mark.parametrize("x", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("y", [0.0, 0.4, 1.0])
def test_draws_that_never_vary_give_plain_answers(x, y):
    xs, ys = np.full(2000, x), np.full(2000, y)
    for target in (Target(delta=0.01), Target(epsilon=0.2)):
        bet = PairedBet.plan(xs[:100], ys[:100], draws=2000, failure_prob=ALPHA, target=target)
        epsilon = bet.lower_epsilon(xs, ys, 0.01, ALPHA)
        delta = bet.lower_delta(xs, ys, 0.2, ALPHA)
        truth = math.inf if y == 0 < x else math.log(max(x - 0.01, 1e-300) / max(y, 1e-300))
        assert 0 <= epsilon <= max(truth, 0.0)
        assert 0 <= delta <= max(x - math.exp(0.2) * y, 0.0)
        assert math.isfinite(epsilon)
        if x > 2 * y and target.delta is not None:
            assert epsilon > 0.5


def test_planned_bets_certify_what_they_promise_and_come_near_the_normal_bound():
    rng = np.random.default_rng(5)
    n = 100_000
    x, y = rng.beta(2, 5, n), rng.beta(1, 30, n)
    target = Target(delta=0.001)
    bound = expected_bound(x[:5000], y[:5000], draws=n, failure_prob=1e-5, target=target)
    bet = PairedBet.plan(x[:5000], y[:5000], draws=n, failure_prob=1e-5, target=target)
    certified = bet.lower_epsilon(x, y, 0.001, 1e-5)
    p, q = x.mean() - 0.001, y.mean()
    error = math.hypot(x.std() / p, y.std() / q) / math.sqrt(n)
    assert math.log(p / q) - 6 * error < certified < math.log(p / q) - 4.2 * error
    assert certified == pytest.approx(bound, abs=4 * error * math.sqrt(20))
    assert expected_bound(y, x, draws=n, failure_prob=1e-5, target=target) == 0.0


def test_tiny_probabilities_with_a_tiny_upper_end_are_as_good_as_large_ones():
    rng = np.random.default_rng(6)
    x, y = rng.random(3000), rng.random(3000) / 20
    plan = {"draws": 2000, "failure_prob": 1e-4, "target": Target(delta=0.0)}
    found = []
    for unit in (1.0, 1e-200):
        bet = PairedBet.plan(x[:1000] * unit, y[:1000] * unit, largest=unit / 20, **plan)
        found.append(bet.lower_epsilon(x[1000:] * unit, y[1000:] * unit, 0.0, 1e-4))
    assert found[0] == pytest.approx(found[1], rel=1e-6)
    assert 2.8 < found[0] < math.log(20)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (((), ()), "bets and weights"),
        (((0.1,), (0.5, 0.5)), "bets and weights"),
        (((-0.1,), (1.0,)), "bet must be"),
        (((math.inf,), (1.0,)), "bet must be"),
        (((0.1,), (0.0,)), "weight must be"),
        (((0.1, 0.2), (0.6, 0.6)), "sum to at most 1"),
        (((0.1,), (1.0,), 0.0), "largest must be"),
    ],
)
def test_bad_bets_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        PairedBet(*arguments)


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([0.5, math.nan], [0.1, 0.1], "likely must be finite"),
        ([0.5, -0.2], [0.1, 0.1], "likely must be finite and >= 0, got -0.2"),
        ([0.5, 0.5], [0.1, math.nan], "rare must lie in .*nan"),
        ([0.5, 0.5], [0.1, 1.5], "rare must lie in"),
        ([0.5, 0.5], [0.1], "of equal number, got 2 and 1"),
        ([], [], "not empty"),
    ],
)
def test_bad_pairs_are_refused(x, y, words):
    with pytest.raises(ValueError, match=words):
        BETS.lower_epsilon(x, y, 0.0, ALPHA)
    with pytest.raises(ValueError, match=words):
        PairedBet.plan(x, y, draws=10, failure_prob=ALPHA, target=Target(delta=0.0))


def test_bad_questions_are_refused():
    with pytest.raises(ValueError, match="delta must be"):
        BETS.lower_epsilon([0.5], [0.1], 1.5, ALPHA)
    with pytest.raises(ValueError, match="epsilon must be"):
        BETS.lower_delta([0.5], [0.1], -1.0, ALPHA)
    with pytest.raises(ValueError, match="failure_prob must be"):
        BETS.lower_delta([0.5], [0.1], 1.0, 1.0)


def test_bets_at_absurd_epsilons_are_finite():
    x, y = np.full(100, 0.9), np.full(100, 1e-3)
    for target in (Target(epsilon=800.0), Target(epsilon=1e100)):
        bet = PairedBet.plan(x, y, draws=1000, failure_prob=0.05, target=target)
        assert all(0 < stake < math.inf for stake in bet.bets)
        assert bet.lower_delta(x, y, target.epsilon, 0.05) == 0.0
