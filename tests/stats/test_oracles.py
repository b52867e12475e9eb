"""Oracles compared with closed forms, mpmath, dp-accounting and properties of divergences."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from dp_accounting import get_epsilon_gaussian
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.stats import oracles
from dpaudit.stats.oracles._core import Oracle

EPSILONS = np.array([0.0, 1e-3, 0.1, 0.5, 1.0, 1.7, 3.0, 8.0])

EXAMPLES: dict[str, Oracle] = {
    "gaussian": oracles.gaussian(1.0, 1.3),
    "gaussian far": oracles.gaussian(12.0, 1.0),
    "gaussian near": oracles.gaussian(0.01, 1.0),
    "laplace": oracles.laplace(2.0, 1.5),
    "laplace far": oracles.laplace(60.0, 1.0),
    "discrete laplace": oracles.discrete_laplace(3, 1.5),
    "randomized response": oracles.randomized_response(1.2),
    "exponential": oracles.exponential_mechanism([0.0, 1, 2], [1.0, 0.5, 3], 1.0, 1.5),
    "noisy max": oracles.report_noisy_max([0.0, 1, 2, 2], [1.0, 0.5, 3, 1], 1.0, 1.5),
    "two bins": oracles.laplace_vector([1.0, -1.0], 0.8),
    "uneven vector": oracles.laplace_vector([0.3, -1.1, 0.0, 2.0], 0.7),
    "ten": oracles.laplace_vector([1.0] * 10, 4.0),
    "above threshold": oracles.above_threshold([1, 0, 2], [0, 1, 1], threshold=0.5, epsilon=1),
    "fixed threshold": oracles.fixed_threshold_sparse_vector(
        [1, 0, 2], [0, 1, 1], thresholds=[0, 1, 2], cutoff=2, epsilon=0.7
    ),
    "skewed": oracles.discrete([0.9, 0.1, 0.0], [0.5, 0.3, 0.2]),
    "disjoint": oracles.discrete([1.0, 0.0], [0.0, 1.0]),
    "same": oracles.laplace(0.0, 1.0),
}
every_example = pytest.mark.parametrize("oracle", EXAMPLES.values(), ids=EXAMPLES.keys())


# --- one suite for every oracle ---------------------------------------------------------------


@every_example
def test_delta_decreases_and_is_convex_in_exp_epsilon(oracle: Oracle) -> None:
    x = np.linspace(1.0, 60.0, 400)
    for delta in (oracle.delta_left(np.log(x)), oracle.delta_right(np.log(x))):
        assert (np.diff(delta) <= 1e-15).all()
        assert (np.diff(delta, 2) >= -1e-13).all()
        assert ((delta >= 0) & (delta <= 1)).all()


@every_example
def test_delta_is_the_worse_direction_and_swapping_exchanges_them(oracle: Oracle) -> None:
    left, right = oracle.delta_left(EPSILONS), oracle.delta_right(EPSILONS)
    assert (oracle.delta(EPSILONS) == np.maximum(left, right)).all()
    swapped = oracle.swapped()
    assert (swapped.delta_left(EPSILONS) == right).all()
    assert (swapped.swapped().delta_left(EPSILONS) == left).all()
    assert oracle.delta(0.5) == oracle.delta([0.5])[0]
    assert isinstance(oracle.delta(0.5), float)
    assert oracle.delta(EPSILONS.reshape(2, 4)).shape == (2, 4)
    assert left[0] == pytest.approx(right[0], abs=1e-13)  # total variation


@every_example
def test_epsilon_inverts_delta(oracle: Oracle) -> None:
    for epsilon in EPSILONS:
        delta = oracle.delta(float(epsilon))
        if 1e-14 < delta < min(0.999, oracle.delta(0.0)):  # beyond, delta rounds to 1
            back = oracle.epsilon(delta)
            if delta < oracle.delta(epsilon * (1 - 1e-6)):  # otherwise the curve is flat here
                assert back == pytest.approx(epsilon, rel=1e-9, abs=1e-11)
    for delta in (0.0, 1e-300, 1e-12, 1e-6, 0.01, 0.3, 0.999, 1.0):
        epsilon = oracle.epsilon(delta)
        assert epsilon >= 0.0
        if epsilon < math.inf:
            assert oracle.delta(epsilon) <= delta * (1 + 1e-9) + 1e-15
        else:
            assert oracle.delta(800.0) > delta or oracle.max_loss == math.inf
        if 0 < epsilon < math.inf and delta > 1e-12:
            assert oracle.delta(epsilon * (1 - 1e-6)) > delta
    assert oracle.epsilon(1.0) == 0.0
    assert oracle.epsilon(oracle.delta(0.0)) == 0.0
    assert oracle.epsilon(0.0) == pytest.approx(oracle.max_loss, rel=1e-12)


@every_example
def test_rates_obey_neyman_pearson(oracle: Oracle) -> None:
    for closed in (False, True):
        p, q = oracle.rates(EPSILONS, closed=closed)
        # The event {L > eps} attains the hockey-stick divergence, and adding {L = eps} changes
        # nothing.
        excess = p - np.exp(EPSILONS) * q
        np.testing.assert_allclose(excess, oracle.delta_left(EPSILONS), rtol=0, atol=2e-12)
        # If the roles are exchanged, L becomes -L, and the complement of {L' > -t} is {L >= t}.
        other_q, other_p = oracle.swapped().rates(-EPSILONS, closed=not closed)
        np.testing.assert_allclose(p, 1 - other_p, rtol=0, atol=1e-12)
        np.testing.assert_allclose(q, 1 - other_q, rtol=0, atol=1e-12)
    assert oracle.rates(-math.inf, closed=True) == pytest.approx((1.0, 1.0), abs=1e-12)
    assert oracle.rates(math.inf)[0] == 0.0
    strict, wide = oracle.rates(EPSILONS)[0], oracle.rates(EPSILONS, closed=True)[0]
    assert (strict <= wide).all()


@every_example
def test_curve_is_concave_and_its_best_line_is_delta(oracle: Oracle) -> None:
    p, q = oracle.curve()
    assert (p[0], q[0], p[-1], q[-1]) == (0.0, 0.0, 1.0, 1.0)
    assert (np.diff(p) >= 0).all()
    assert (np.diff(q) >= 0).all()
    lines = (p[:, None] - np.exp(EPSILONS) * q[:, None]).max(axis=0)
    delta = oracle.delta_left(EPSILONS)
    assert (lines <= delta + 1e-12).all()
    np.testing.assert_allclose(lines, delta, rtol=0, atol=1e-5)
    if isinstance(oracle, oracles.DiscreteOracle):
        np.testing.assert_allclose(lines, delta, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ["gaussian", "gaussian far", "gaussian near"])
def test_curve_reaches_rare_events(name: str) -> None:
    p, q = EXAMPLES[name].curve()
    for side in (p, q, 1 - p, 1 - q):
        assert side[(side > 0)].min() < 1e-12
        for target in (1e-9, 1e-6, 1e-3):
            assert np.min(np.abs(np.log(np.maximum(side, 1e-300) / target))) < 0.05


def test_curve_holds_both_events_at_an_atom() -> None:
    oracle = oracles.laplace_vector([1.0, 2.0], 1.0)
    p, _ = oracle.curve()
    for atom in (3.0, 1.0, -1.0, -3.0):
        strict, closed = oracle.rates(atom)[0], oracle.rates(atom, closed=True)[0]
        assert closed > strict
        assert np.abs(p - strict).min() < 1e-15
        assert np.abs(p - closed).min() < 1e-15


@every_example
def test_no_floating_point_trap_is_sprung(oracle: Oracle) -> None:
    with np.errstate(over="raise", invalid="raise", divide="raise", under="raise"):
        oracle.delta([0.0, 1.0, 1e3, 1e6, 1e300])
        oracle.rates([-math.inf, -1e300, -1e3, 0.0, 1e3, 1e300, math.inf])
        oracle.epsilon(1e-250)


# --- each distribution against an independent source
# ---------------------------------------------------


@pytest.mark.parametrize("sigma", [0.3, 1.0, 7.0, 80.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3])
def test_gaussian_epsilon_agrees_with_dp_accounting(sigma: float, delta: float) -> None:
    expected = get_epsilon_gaussian(sigma, delta)
    assert oracles.gaussian(1.0, sigma).epsilon(delta) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("mu", [0.01, 0.5, 1.0, 6.0, 30.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 20.0, 600.0])
def test_gaussian_delta_agrees_with_mpmath(mu: float, epsilon: float) -> None:
    with mpmath.workdps(1200):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        high = mpmath.ncdf(m / 2 - e / m)
        expected = float(high - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m))
    actual = oracles.gaussian(mu, 1.0).delta(epsilon)
    assert actual == pytest.approx(expected, rel=1e-12, abs=1e-305)


def _brackets(oracle: Oracle, make: object, epsilons: list[float], width: float) -> None:
    """Check that the exact delta lies between the two discretisations of dp-accounting."""
    for epsilon in epsilons:
        low = make(pessimistic=False).get_delta_for_epsilon(epsilon)  # type: ignore[operator]
        high = make(pessimistic=True).get_delta_for_epsilon(epsilon)  # type: ignore[operator]
        assert low - 1e-9 <= oracle.delta(epsilon) <= high + 1e-9
        assert high - low < width


@pytest.mark.parametrize("scale", [0.4, 1.0, 5.0])
def test_laplace_lies_between_discretisations(scale: float) -> None:
    def make(pessimistic: bool) -> pld.PrivacyLossDistribution:
        return pld.from_laplace_mechanism(
            scale, pessimistic_estimate=pessimistic, value_discretization_interval=1e-4
        )

    _brackets(oracles.laplace(1.0, scale), make, [0.0, 0.1, 1.0, 2.0], 1e-4)


@pytest.mark.parametrize("count", [2, 3, 10])
def test_laplace_vector_lies_between_composed_discretisations(count: int) -> None:
    def make(pessimistic: bool) -> pld.PrivacyLossDistribution:
        one = pld.from_laplace_mechanism(
            3.0, pessimistic_estimate=pessimistic, value_discretization_interval=1e-4
        )
        return one.self_compose(count, tail_mass_truncation=0)

    _brackets(oracles.laplace_vector([1.0] * count, 3.0), make, [0.0, 0.1, 0.5], 1e-3)


@pytest.mark.parametrize(("shift", "scale"), [(1, 1.0), (2, 0.7), (5, 4.0)])
def test_discrete_laplace_lies_between_discretisations(shift: int, scale: float) -> None:
    def make(pessimistic: bool) -> pld.PrivacyLossDistribution:
        return pld.from_discrete_laplace_mechanism(
            1 / scale,
            sensitivity=shift,
            pessimistic_estimate=pessimistic,
            value_discretization_interval=1e-5,
        )

    _brackets(oracles.discrete_laplace(shift, scale), make, [0.0, 0.1, 1.0, 2.0], 1e-4)


def test_randomized_response_lies_between_discretisations() -> None:
    def make(pessimistic: bool) -> pld.PrivacyLossDistribution:
        noise = 2 / (1 + math.exp(1.2))  # dp-accounting replaces the bit by a uniform bit
        return pld.from_randomized_response(
            noise, 2, pessimistic_estimate=pessimistic, value_discretization_interval=1e-5
        )

    _brackets(oracles.randomized_response(1.2), make, [0.0, 0.1, 1.0, 1.3], 1e-4)


def test_discrete_laplace_against_a_truncated_sum() -> None:
    a, shift = math.exp(-1 / 2.5), 4
    x = np.arange(-400, 405)
    p = (1 - a) / (1 + a) * a ** np.abs(x)
    q = (1 - a) / (1 + a) * a ** np.abs(x - shift)
    oracle = oracles.discrete_laplace(shift, 2.5)
    for epsilon in (0.0, 0.3, 1.0, 1.5):
        expected = np.maximum(p - math.exp(epsilon) * q, 0).sum()
        assert oracle.delta(epsilon) == pytest.approx(expected, rel=1e-12)
    assert oracle.epsilon(0.0) == pytest.approx(4 / 2.5, rel=1e-14)


def test_discrete_delta_is_the_maximum_over_all_events() -> None:
    rng = np.random.default_rng(20240601)
    p, q = rng.dirichlet(np.full(9, 0.4)), rng.dirichlet(np.full(9, 0.4))
    events = np.array(list(itertools.product([0.0, 1.0], repeat=9)))
    oracle = oracles.discrete(p, q)
    for epsilon in (0.0, 0.4, 1.0, 3.0):
        for pair, actual in (((p, q), oracle.delta_left), ((q, p), oracle.delta_right)):
            expected = (events @ pair[0] - math.exp(epsilon) * (events @ pair[1])).max()
            assert actual(epsilon) == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_discrete_knows_impossible_outcomes() -> None:
    oracle = oracles.discrete([0.5, 0.5, 0.0, 0.0], [0.25, 0.5, 0.25, 0.0], outcomes="abcd")
    assert oracle.outcomes == ("a", "b", "c", "d")
    assert oracle.max_loss == math.inf
    assert oracle.epsilon(0.2) == math.inf
    assert oracle.epsilon(0.25) == 0.0
    assert oracle.swapped().delta_left(50.0) == 0.25
    assert oracle.rates(math.inf, closed=True) == (0.0, 0.0)
    assert oracle.swapped().rates(math.inf, closed=True) == (0.25, 0.0)


def test_ties_of_the_loss_are_one_atom() -> None:
    oracle = oracles.discrete([0.3, 0.3, 0.4], [0.1, 0.1, 0.8])
    strict, closed = oracle.rates(math.log(3)), oracle.rates(math.log(3), closed=True)
    assert strict == (0.0, 0.0)
    assert closed == pytest.approx((0.6, 0.2))


def test_exponential_mechanism_against_the_definition() -> None:
    left, right = np.array([0.0, 1.0, 2.5]), np.array([0.5, 0.0, 3.0])
    oracle = oracles.exponential_mechanism(left, right, 2.0, 3.0)
    for scores, pmf in ((left, oracle.pmf_left), (right, oracle.pmf_right)):
        weights = np.exp(3.0 * scores / 4.0)
        np.testing.assert_allclose(pmf, weights / weights.sum(), rtol=1e-14)
    far = oracles.exponential_mechanism([0.0, 1e6], [1e6, 0.0], 1.0, 1.0)
    assert far.pmf_left.tolist() == [0.0, 1.0]


# --- Laplace vectors --------------------------------------------------------------------------


def _mp_vector_cdf(ratios: list[float], y: mpmath.mpf) -> mpmath.mpf:
    """Return P(S <= y), where S is the sum of clipped distances from the left value.

    The Laplace transform of one coordinate is ``((1 + w) + u (1 - w)) / 2`` with ``w = 1 / (1 +
    s)`` and ``u = exp(-(1 + s) r)``. The product is expanded and inverted term by term.
    """
    total, k = mpmath.mpf(0), len(ratios)
    for chosen in itertools.product([0, 1], repeat=k):
        b = sum(chosen)
        start = sum(
            (mpmath.mpf(r) for r, c in zip(ratios, chosen, strict=True) if c), mpmath.mpf(0)
        )
        if y < start:
            continue
        inner = mpmath.mpf(1)
        for j in range(1, k + 1):
            coefficient = sum(
                (-1) ** i * mpmath.binomial(b, i) * mpmath.binomial(k - b, j - i)
                for i in range(j + 1)
            )
            inner += coefficient * mpmath.gammainc(j, 0, y - start, regularized=True)
        total += mpmath.exp(-start) * inner
    return total / mpmath.mpf(2) ** k


@pytest.mark.sampled
@pytest.mark.parametrize(
    "ratios",
    [[1.0, 1.0], [0.5, 3.0], [40.0, 40.0], [0.3, 0.3, 2.0], [0.01, 0.7, 1.3, 2.9], [1.0] * 6],
    ids=str,
)
def test_laplace_vector_agrees_with_mpmath(ratios: list[float]) -> None:
    oracle, total = oracles.laplace_vector(ratios, 1.0), sum(ratios)
    with mpmath.workdps(80):
        for share in (0.003, 0.1, 0.31, 0.4999, 0.77, 0.97):
            threshold = total - 2 * total * share
            y = (mpmath.mpf(total) - mpmath.mpf(threshold)) / 2
            p = _mp_vector_cdf(ratios, y)
            q = 1 - _mp_vector_cdf(ratios, mpmath.mpf(total) - y)
            actual = oracle.rates(threshold)
            assert actual == pytest.approx((float(p), float(q)), rel=1e-12)
            if threshold >= 0:
                delta = float(p - mpmath.exp(threshold) * q)
                assert oracle.delta(threshold) == pytest.approx(delta, rel=1e-11)


def test_laplace_vector_ends_and_atoms() -> None:
    oracle = oracles.laplace_vector([1.0, 1.0], 1.0)
    assert oracle.rates(2.0) == (0.0, 0.0)
    assert oracle.rates(2.0, closed=True) == pytest.approx((0.25, 0.25 * math.exp(-2)), rel=1e-13)
    # The loss is 0 with probability e^-1 / 2. The mass comes from atoms, where one coordinate is at
    # either end.
    jump = oracle.rates(0.0, closed=True)[0] - oracle.rates(0.0)[0]
    assert jump == pytest.approx(0.5 * math.exp(-1), rel=1e-13)
    assert oracle.epsilon(0.0) == oracle.max_loss == 2.0


def test_laplace_vector_with_one_shift_is_laplace() -> None:
    one = oracles.laplace_vector([0.0, -3.0], 2.0)
    assert one == oracles.laplace(3.0, 2.0)
    direct = oracles.LaplaceVectorOracle((1.5,))
    np.testing.assert_allclose(direct.delta(EPSILONS), one.delta(EPSILONS), rtol=1e-13, atol=0)
    t = np.linspace(-1.6, 1.6, 41)
    np.testing.assert_allclose(direct.rates(t), one.rates(t), rtol=1e-13, atol=0)


def test_report_noisy_max_agrees_with_mpmath() -> None:
    def cdf(x: mpmath.mpf) -> mpmath.mpf:
        return mpmath.exp(x) / 2 if x < 0 else 1 - mpmath.exp(-x) / 2

    scores = [0.0, 3.0, -2.5, 9.0]
    pmf = oracles.report_noisy_max(scores, scores, 1.0, 2.0).pmf_left
    ends = [-90, -40, -20, -10, -5, -2.5, -1, 0, 1.5, 3, 5, 7, 9, 11, 15, 20, 30, 50, 100]
    for i, score in enumerate(scores):

        def integrand(x: mpmath.mpf, i: int = i, score: float = score) -> mpmath.mpf:
            others = mpmath.fprod(cdf(x - s) for j, s in enumerate(scores) if j != i)
            return mpmath.exp(-abs(x - score)) / 2 * others

        assert pmf[i] == pytest.approx(float(mpmath.quad(integrand, ends)), rel=1e-12)


def test_report_noisy_max_closed_form_and_shapes() -> None:
    # For two candidates at distance s, the loser wins with e^-s (1/2 + s/4).
    for s in (0.0, 0.1, 2.0, 40.0, 600.0):
        pmf = oracles.report_noisy_max([s, 0.0], [0.0, s], 1.0, 2.0).pmf_left
        assert pmf[1] == pytest.approx(math.exp(-s) * (0.5 + s / 4), rel=1e-12)
    for k in (1, 3, 40, 300):
        pmf = oracles.report_noisy_max([5.0] * k, [1.0] * k, 1.0, 2.0).pmf_left
        np.testing.assert_allclose(pmf, 1 / k, rtol=1e-12)
    spread = np.random.default_rng(3).normal(size=60) * 30
    pmf = oracles.report_noisy_max(spread, spread, 1.0, 2.0).pmf_left
    assert pmf.sum() == pytest.approx(1.0, abs=1e-12)
    pmf = oracles.report_noisy_max([0.0, 5e3], [0.0, 5e3], 1.0, 2.0).pmf_left
    assert pmf == pytest.approx([0.0, 1.0], rel=1e-13)


# --- properties -------------------------------------------------------------------------------

_weights = st.lists(st.floats(0.0, 1.0), min_size=2, max_size=7).filter(lambda w: sum(w) > 0.01)


@st.composite
def _finite_pairs(draw: st.DrawFn) -> oracles.DiscreteOracle:
    left = draw(_weights)
    fresh = st.lists(st.floats(0.0, 1.0), min_size=len(left), max_size=len(left))
    right = draw(fresh.filter(lambda w: sum(w) > 0.01))
    return oracles.discrete(np.array(left) / sum(left), np.array(right) / sum(right))


@settings(derandomize=True, database=None, deadline=None)
@given(_finite_pairs(), st.floats(0.0, 1.0), st.floats(0.0, 5.0))
def test_finite_laws_invert_exactly(
    oracle: oracles.DiscreteOracle, delta: float, epsilon: float
) -> None:
    found = oracle.epsilon(delta)
    if found < math.inf:
        assert oracle.delta(found) <= delta + 1e-13
    back = oracle.epsilon(oracle.delta(epsilon))  # if delta is flat, epsilon is ill-conditioned
    assert back <= epsilon + 1e-6 or oracle.delta(epsilon) - oracle.delta(back) < 1e-12
    p, q = oracle.curve()
    best = (p - math.exp(epsilon) * q).max()
    assert oracle.delta_left(epsilon) == pytest.approx(best, abs=1e-13)
    assert oracle.delta(0.0) == pytest.approx(
        0.5 * np.abs(oracle.pmf_left - oracle.pmf_right).sum(), abs=1e-14
    )


@settings(derandomize=True, database=None, deadline=None, max_examples=40)
@given(st.lists(st.floats(0.05, 6.0), min_size=2, max_size=4), st.floats(0.0, 8.0))
def test_laplace_vector_keeps_the_total_and_composes(ratios: list[float], epsilon: float) -> None:
    oracle = oracles.laplace_vector(ratios, 1.0)
    assert oracle.rates(-1e9) == pytest.approx((1.0, 1.0), abs=1e-12)
    assert oracle.epsilon(0.0) == pytest.approx(sum(ratios), rel=1e-12)
    p, q = oracle.rates(epsilon)
    assert oracle.delta(epsilon) == pytest.approx(p - math.exp(epsilon) * q, abs=1e-12)
    one = oracles.laplace(max(ratios), 1.0).delta(epsilon)
    assert one - 1e-14 <= oracle.delta(epsilon)
    assert oracle.delta(epsilon) <= oracles.laplace(sum(ratios), 1.0).delta(epsilon) + 1e-14


# --- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: oracles.gaussian(-1.0, 1.0), "shift must be a finite number >= 0, got -1.0"),
        (lambda: oracles.gaussian(1.0, 0.0), "sigma must be a finite number > 0, got 0.0"),
        (lambda: oracles.gaussian(math.nan, 1.0), "shift must be"),
        (lambda: oracles.gaussian(1e-200, 1e200), "shift / sigma must be 0 or"),
        (lambda: oracles.laplace(math.inf, 1.0), "shift must be"),
        (lambda: oracles.laplace(1.0, -2.0), "scale must be a finite number > 0, got -2.0"),
        (lambda: oracles.discrete_laplace(-1, 1.0), "shift must be an integer >= 0"),
        (lambda: oracles.discrete_laplace(10**7, 1.0), "shift must be an integer <= 1000000"),
        (lambda: oracles.randomized_response(-0.1), "epsilon must be"),
        (lambda: oracles.exponential_mechanism([], [], 1, 1), "left_scores must be a nonempty"),
        (lambda: oracles.exponential_mechanism([1.0], [1.0, 2], 1, 1), "right_scores must have"),
        (lambda: oracles.exponential_mechanism([1.0], [1.0], 0, 1), "sensitivity must be"),
        (lambda: oracles.report_noisy_max([1.0], [math.nan], 1, 1), "right_scores must be"),
        (lambda: oracles.report_noisy_max([1.0], [1.0], 1, -1), "epsilon must be"),
        (lambda: oracles.report_noisy_max([1.0] * 1001, [1.0] * 1001, 1, 1), "at most 1000"),
        (lambda: oracles.laplace_vector([[1.0]], 1.0), "shifts must be a nonempty one-dim"),
        (lambda: oracles.laplace_vector([1.0, math.inf], 1.0), "shifts must be"),
        (lambda: oracles.laplace_vector([1.0], 0.0), "scale must be"),
        (lambda: oracles.laplace_vector([1.0] * 501, 1.0), "at most 500 entries other than 0"),
        (lambda: oracles.laplace_vector([1e4, 1.0], 1.0), "at most 2000 noise scales"),
        (lambda: oracles.laplace_vector([1e-12, 1.0], 1.0), "0 or at least 1e-9"),
        (lambda: oracles.laplace_vector(np.sqrt(np.arange(2, 16)), 1.0), "subset sums"),
        (lambda: oracles.discrete([0.5, 0.5], [1.0]), "pmf_right must have as many"),
        (lambda: oracles.discrete([0.5, 0.6], [0.5, 0.5]), "pmf_left must be probabilities"),
        (lambda: oracles.discrete([1.5, -0.5], [0.5, 0.5]), "pmf_left must be probabilities"),
        (lambda: oracles.discrete([0.5, math.nan], [0.5, 0.5]), "pmf_left must be"),
        (lambda: oracles.discrete([1.0], [1.0], outcomes="ab"), "outcomes must have"),
        (lambda: oracles.laplace(1.0, 1.0).delta(-0.1), "epsilon must be finite and >= 0"),
        (lambda: oracles.laplace(1.0, 1.0).delta([0.0, math.nan]), "epsilon must be finite"),
        (lambda: oracles.laplace(1.0, 1.0).delta_right(math.inf), "epsilon must be finite"),
        (lambda: oracles.laplace(1.0, 1.0).epsilon(1.1), r"delta must be a number in \[0, 1\]"),
        (lambda: oracles.laplace(1.0, 1.0).epsilon(math.nan), "delta must be"),
        (lambda: oracles.laplace(1.0, 1.0).rates(math.nan), "loss_threshold must not contain NaN"),
    ],
)
def test_bad_arguments_are_refused(call: object, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        call()  # type: ignore[operator]


def test_oracles_are_frozen_and_their_arrays_read_only() -> None:
    oracle = oracles.discrete([0.5, 0.5], [0.25, 0.75])
    with pytest.raises(ValueError, match="read-only"):
        oracle.pmf_left[0] = 1.0
    with pytest.raises(AttributeError):
        oracles.laplace(1.0, 1.0).ratio = 2.0  # type: ignore[attr-defined]
    assert "2 outcomes" in repr(oracle)
    assert repr(oracles.laplace(1.0, 2.0)) == "LaplaceOracle(ratio=0.5)"
