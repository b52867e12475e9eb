"""The fewest draws of any test: closed forms, feasibility, optimality, and the tests of dpaudit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom, norm

from dpaudit.engine import draws_to_refute
from dpaudit.errors import ArgumentError
from dpaudit.stats import oracles

COIN = oracles.randomized_response(2.0)


def divergences(left, right, epsilon):
    return [
        float(np.maximum(one - math.exp(epsilon) * other, 0).sum())
        for one, other in ((left, right), (right, left))
    ]


def kl(p, q):
    kept = p > 0
    return float(p[kept] @ np.log(p[kept] / q[kept]))


def test_the_nearest_coin_is_the_coin_of_the_claim() -> None:
    nearest = oracles.nearest_private_pair(COIN, epsilon=1.0)
    true, claimed = (1 / (1 + math.exp(-x)) for x in (2.0, 1.0))
    assert nearest.null_left == pytest.approx([claimed, 1 - claimed], abs=1e-12)
    divergence = 2 * kl(np.array([true, 1 - true]), np.array([claimed, 1 - claimed]))
    assert nearest.divergence == pytest.approx(divergence, rel=1e-12)
    assert nearest.expected_draws(failure_prob=0.05) == pytest.approx(-math.log(0.05) / divergence)


@pytest.mark.parametrize("failure_prob", [0.05, 1e-6, 1e-20])
@pytest.mark.parametrize("true", [1.1, 1.5])
def test_draws_are_those_of_the_best_randomised_test_of_two_coins(true, failure_prob) -> None:
    """The number of right answers of both sides is sufficient, and binomial."""

    def power(n: int) -> float:
        tails = binom.sf(np.arange(2 * n + 1), 2 * n, 1 / (1 + math.exp(-1.0)))
        at = int(np.argmax(tails <= failure_prob))
        null = [binom.sf(k, 2 * n, 1 / (1 + math.exp(-1.0))) for k in (at, at - 1)]
        given = [binom.sf(k, 2 * n, 1 / (1 + math.exp(-true))) for k in (at, at - 1)]
        return float(np.interp(failure_prob, null, given))

    coin = oracles.randomized_response(true)
    n = oracles.nearest_private_pair(coin, epsilon=1.0).draws(power=0.9, failure_prob=failure_prob)
    assert power(int(0.98 * n)) < 0.9 < power(math.ceil(1.02 * n))


masses = st.lists(st.integers(0, 20), min_size=4, max_size=4)


def test_draws_where_one_outcome_betrays_a_side() -> None:
    """The likelihood ratio of the nearest pair orders the counts of the left side."""
    oracle = oracles.discrete([0.01, 0.99], [0.0, 1.0])
    nearest = oracles.nearest_private_pair(oracle, epsilon=1.0, delta=1e-3)
    at = nearest.pmf_left.argmin()
    left, right = nearest.null_left[at], nearest.null_right[at]

    def power(n: int) -> float:
        k = np.arange(n + 2)
        null = (1 - right) ** n * binom.sf(k - 1, n, left)
        return float(np.interp(0.05, null[::-1], binom.sf(k - 1, n, 0.01)[::-1]))

    n = nearest.draws(power=0.9, failure_prob=0.05)
    assert power(int(0.98 * n)) < 0.9 < power(math.ceil(1.02 * n))


@given(masses, masses, st.floats(0.1, 2.0), st.sampled_from([0.0, 1e-3, 0.05]))
@settings(max_examples=80, deadline=None)
def test_the_pair_satisfies_the_claim_and_no_other_is_nearer(p, q, epsilon, delta) -> None:
    left, right = (np.array(side) / max(1, sum(side)) for side in (p, q))
    if not sum(p) or not sum(q):
        return
    oracle = oracles.discrete(left, right)
    if oracle.delta(epsilon) <= delta + 1e-6:
        return
    nearest = oracles.nearest_private_pair(oracle, epsilon=epsilon, delta=delta)
    null = nearest.null_left, nearest.null_right
    assert [side.sum() for side in null] == pytest.approx([1.0, 1.0], abs=1e-9)
    assert max(divergences(*null, epsilon)) <= delta + 1e-9
    # Mixtures of the nearest pair and others that satisfy the claim satisfy it, too.
    rng = np.random.default_rng(0)
    for _ in range(40):
        common = rng.dirichlet(np.ones(len(null[0])), size=1)[0]
        tilt = np.exp(rng.uniform(-epsilon / 2, epsilon / 2, size=len(common)))
        other = common * tilt / (common @ tilt)
        for share in (0.01, 0.3, 1.0):
            mixed = [
                (1 - share) * a + share * b for a, b in zip(null, (common, other), strict=True)
            ]
            if max(divergences(*mixed, epsilon)) > delta + 1e-12:
                continue
            sides = zip((nearest.pmf_left, nearest.pmf_right), mixed, strict=True)
            there = sum(kl(side, one) for side, one in sides)
            assert there >= nearest.divergence * (1 - 1e-4) - 1e-6


MONOTONE = [
    (oracles.discrete([1, 0], [0, 1]), 3.0),
    (oracles.discrete([0, 1], [0.5, 0.5]), 1.0),
    (oracles.exponential_mechanism([1, 0, 0], [0, 1, 1], 1.0, 2.0), 0.5),
    (oracles.laplace(1.0, 0.2), 3.0),
]


@pytest.mark.parametrize(("oracle", "epsilon"), MONOTONE, ids=repr)
def test_a_larger_delta_allows_nearer_pairs(oracle, epsilon) -> None:
    """Outcomes of one side only make the maximum of the dual function a kink."""
    found = [
        oracles.nearest_private_pair(oracle, epsilon=epsilon, delta=delta)
        for delta in (0.0, 1e-12, 1e-9, 1e-6, 1e-5, 1e-3)
    ]
    divergences = [nearest.divergence for nearest in found]
    assert divergences == pytest.approx(sorted(divergences, reverse=True), rel=1e-9)
    assert max(nearest.gap for nearest in found) < 1e-3


CASES = [
    (oracles.laplace(1.0, 0.5), 0.0),
    (oracles.laplace(1.0, 0.9), 0.0),
    (oracles.gaussian(1.0, 1.0), 0.05),
    (oracles.gaussian(1.0, 1.8), 1e-5),
    (oracles.discrete([0.4, 0.6], [0.1, 0.9]), 1e-3),
    (oracles.exponential_mechanism([1, 0, 0], [0, 1, 1], 1.0, 2.0), 0.0),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("oracle", "delta"), CASES, ids=repr)
@pytest.mark.parametrize("failure_prob", [0.05, 1e-6])
def test_the_best_event_needs_more_draws_but_not_many(oracle, delta, failure_prob) -> None:
    nearest = oracles.nearest_private_pair(oracle, epsilon=1.0, delta=delta)
    least = nearest.draws(power=0.9, failure_prob=failure_prob)
    event = draws_to_refute(oracle, epsilon=1.0, delta=delta, power=0.9, failure_prob=failure_prob)
    assert least < 1.02 * event < 4 * least
    # Wald's bound is for a sequential test that always refutes in the end.
    assert nearest.expected_draws(failure_prob=failure_prob) < 1.3 * least


def test_a_smaller_failure_prob_and_more_power_need_more_draws() -> None:
    nearest = oracles.nearest_private_pair(oracles.laplace(1.0, 0.8), epsilon=1.0)
    draws = [
        nearest.draws(power=power, failure_prob=alpha)
        for power, alpha in ((0.5, 0.05), (0.9, 0.05), (0.9, 1e-6), (0.9, 1e-12))
    ]
    assert draws == sorted(set(draws))
    sequential = nearest.expected_draws(power=0.9, failure_prob=0.05)
    assert sequential < nearest.expected_draws(failure_prob=0.05)


def test_a_claim_that_holds_has_no_limit() -> None:
    with pytest.raises(ArgumentError, match="epsilon .*satisfies"):
        oracles.nearest_private_pair(COIN, epsilon=2.0)
    with pytest.raises(ArgumentError, match="epsilon"):
        oracles.nearest_private_pair(COIN, epsilon=math.nan)
    nearest = oracles.nearest_private_pair(COIN, epsilon=1.0)
    with pytest.raises(ArgumentError, match="power"):
        nearest.draws(power=0.01, failure_prob=0.05)
    with pytest.raises(ArgumentError, match="power"):
        nearest.draws(power=1.0, failure_prob=0.05)  # log likelihood ratios have tails
    for failure_prob in (0.0, 1e-21):
        with pytest.raises(ArgumentError, match="failure_prob"):
            nearest.expected_draws(failure_prob=failure_prob)
    with pytest.raises(ArgumentError, match="epsilon"):
        oracles.nearest_private_pair(oracles.discrete([1, 0], [0, 1]), epsilon=31.0)


# --- audits that choose the noise ---------------------------------------------------------------


def private_twin(p, q, epsilon, delta):
    """Move the mass of the theorem's cell, and return (p, q').

    The cell lies where the outcome is the likeliest on the right side, as far as possible. So its
    outputs are as visible as outputs can be.
    """
    bound = math.exp(epsilon)
    excess = float(np.maximum(p - bound * q, 0).sum())
    mass = (excess - delta) / (bound - 1)
    free = np.where(p <= q, q, 0)
    lost = np.minimum(mass * np.eye(len(p))[int(np.argmax(free))], free)
    lost += (mass - lost.sum()) * (free - lost) / (free - lost).sum()
    short = np.maximum(p - bound * (q - lost), 0) / bound
    filled = short * min(mass / short.sum(), 1)
    back = lost * (1 - filled.sum() / mass)
    return p, q - lost + filled + back


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(st.floats(0.05, 1), min_size=4, max_size=9),
    st.floats(0.3, 1.5),
    st.floats(0.05, 0.9),
    st.sampled_from([0.0, 0.01]),
)
def test_the_cell_of_the_theorem_makes_the_pair_private(weights, tilt, share, delta) -> None:
    q = np.array(weights) / sum(weights)
    p = q * np.exp(tilt * np.linspace(1, -1, len(q)))
    p /= p.sum()
    epsilon = share * float(np.log(p / q).max())
    if divergences(p, q, epsilon)[0] <= delta:
        return
    left, right = private_twin(p, q, epsilon, delta)
    assert right.sum() == pytest.approx(1)
    assert divergences(left, right, epsilon)[0] <= delta + 1e-12
    assert divergences(left, right, epsilon)[1] <= divergences(p, q, epsilon)[1] + 1e-12


def test_reachable_epsilon_spends_the_power_on_both_sides() -> None:
    pair, draws, power, alpha = oracles.gaussian(1.0, 1.0), 10**5, 0.5, 0.05
    epsilon = oracles.reachable_epsilon(
        pair, delta=1e-6, draws=draws, power=power, failure_prob=alpha
    )
    free = float(norm.cdf(0.5))  # Q(loss <= 0) = P(loss >= 0)
    cell = (pair.delta(epsilon) - 1e-6) / math.expm1(epsilon) / free
    assert 2 * draws * cell == pytest.approx(power - alpha, rel=1e-6)


@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0])
def test_audits_of_calls_stay_below_the_reachable_epsilon(mu) -> None:
    """The best event, known in advance and counted without error, stays below, too."""
    pair, draws, alpha = oracles.gaussian(mu, 1.0), 10**5, 0.05
    reached = oracles.reachable_epsilon(
        pair, delta=1e-6, draws=draws, power=0.5, failure_prob=alpha
    )
    p, q = pair.rates(np.linspace(0, 12, 400))
    counted = beta.ppf(1 - alpha / 2, np.floor(draws * q) + 1, draws - np.floor(draws * q))
    best = float(np.max(np.log(np.maximum(p - 1e-6, 1e-300) / counted)))
    assert best < reached < pair.epsilon(1e-6)


def test_reachable_epsilon_grows_with_the_draws_up_to_the_truth() -> None:
    pair = oracles.gaussian(1.0, 1.0)
    reached = [
        oracles.reachable_epsilon(pair, delta=1e-6, draws=n, power=0.9, failure_prob=1e-6)
        for n in (1, 10**3, 10**5, 10**7, 10**12)
    ]
    assert reached == sorted(set(reached))
    assert reached[-1] == pytest.approx(pair.epsilon(1e-6), rel=1e-3)
    same = oracles.reachable_epsilon(
        oracles.laplace(0.0, 1.0), delta=0.0, draws=10, power=0.9, failure_prob=0.05
    )
    assert same == 0
