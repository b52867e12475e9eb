"""Tests of bounds of trade-off curves, Gaussian DP and Renyi divergences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm

from dpaudit import ApproxDP, GaussianDP, NeighborPair, PureDP, audit
from dpaudit.stats import oracles
from dpaudit.stats.curves import ORDERS, TYPE_I_ERRORS, curves_of, tradeoff_of_profile
from dpaudit.stats.divergence import renyi_divergence
from dpaudit.stats.joint import Counts, Target
from dpaudit.stats.rates import RateBounds

Floats = NDArray[np.float64]
DRAWS = 10**6


def bounds_of(distribution: oracles.Oracle, thresholds: list[float]) -> list[RateBounds]:
    """Return bounds from the expected counts of the events at these thresholds."""
    found = []
    for threshold in thresholds:
        p, q = distribution.rates(threshold)
        counts = Counts(round(p * DRAWS), DRAWS, round(q * DRAWS), DRAWS)
        target = Target(epsilon=max(threshold, 0.0))
        found.append(RateBounds.from_counts(counts, "left", 1e-3, target))
    return found


def gaussian_tradeoff(mu: float) -> Floats:
    return np.asarray(norm.cdf(norm.ppf(1 - TYPE_I_ERRORS) - mu))


@pytest.mark.sampled
@pytest.mark.parametrize("mu", [0.5, 1.0, 3.0])
def test_the_curves_of_a_gaussian_are_bounded_and_nearly_reached(mu: float) -> None:
    distribution = oracles.gaussian(mu, 1.0)
    grid = np.linspace(0, 4, 30)
    thresholds = (np.linspace(-2, 2, 25) * mu).tolist()
    found = curves_of(bounds_of(distribution, thresholds), grid, distribution.delta(grid), 1e-5)
    exact = gaussian_tradeoff(mu)
    band = np.array(found.certified_beta)
    assert np.all(band >= exact - 1e-12)
    assert np.max((band - exact)[TYPE_I_ERRORS >= 0.01]) < 0.04  # rarer events have few hits
    assert 0.97 * mu < found.certified_mu < mu
    for order, renyi in zip(found.order, found.certified_renyi, strict=True):
        assert 0 < renyi <= order * mu**2 / 2
    assert found.conditional_epsilon is not None
    true = distribution.epsilon(1e-5)
    assert 0.95 * true < found.conditional_epsilon < true
    claimed = np.array(found.claimed_beta)
    assert np.all(claimed <= exact + 1e-9)


@pytest.mark.parametrize(
    ("claim", "exact"),
    [
        (PureDP(1.0), lambda a: np.maximum(1 - math.e * a, (1 - a) / math.e)),
        (
            ApproxDP(0.5, 0.1),
            lambda a: np.maximum(0.9 - math.exp(0.5) * a, (0.9 - a) / math.exp(0.5)),
        ),
    ],
)
def test_the_claimed_curve_is_the_textbook_one(claim: PureDP, exact: object) -> None:
    grid = np.linspace(0, 3, 31)
    deltas = [claim.delta(float(e)) for e in grid]
    found = tradeoff_of_profile(grid, deltas, TYPE_I_ERRORS)
    assert found == pytest.approx(np.maximum(exact(TYPE_I_ERRORS), 0), abs=0.02)  # type: ignore[operator]
    assert np.all(found >= np.maximum(exact(TYPE_I_ERRORS), 0) - 1e-12)  # type: ignore[operator]


unit = st.floats(0, 1)


@settings(max_examples=150)
@given(unit, unit)
def test_one_exact_corner_gives_the_two_point_distribution(p: float, q: float) -> None:
    bounds = RateBounds(np.array([p]), np.array([q]), 0.1)
    curve = bounds.upper_tradeoff(TYPE_I_ERRORS)
    assert np.all((curve >= -1e-12) & (curve <= 1))
    assert curve[-1] == pytest.approx(0.0, abs=1e-12)
    assert np.all(np.diff(curve) <= 1e-12)
    for order in (2.0, 16.0):
        renyi = bounds.lower_renyi(order)
        if p <= q:
            assert renyi == pytest.approx(0.0, abs=1e-9)
        elif 0.001 < q < p < 0.999:
            sides = ([p, 1 - p], [q, 1 - q])
            worse = max(renyi_divergence(*sides, order), renyi_divergence(*reversed(sides), order))
            assert renyi == pytest.approx(worse, rel=1e-9)
    if 1e-9 < q < p < 1 - 1e-9:  # outside, rounding changes the rates
        assert bounds.lower_mu() == pytest.approx(norm.ppf(p) - norm.ppf(q))


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("share", [0.3, 0.99])
def test_an_excess_at_one_epsilon_bounds_every_law_that_has_it(
    epsilon: float, share: float
) -> None:
    distribution = oracles.gaussian(1.5, 1.0)
    delta = float(distribution.delta(epsilon)) * share
    bounds = RateBounds.from_excess(epsilon, delta, 0.01)
    assert bounds.lower_delta(epsilon) == pytest.approx(delta, rel=1e-9)
    assert bounds.lower_delta(epsilon / 2) >= delta * (1 - 1e-9)
    assert bounds.lower_delta(epsilon + 0.1) <= float(distribution.delta(epsilon + 0.1))
    assert 0 < bounds.lower_mu() <= 1.5
    for order in ORDERS:
        assert 0 <= bounds.lower_renyi(order) <= order * 1.5**2 / 2
    assert np.all(bounds.upper_tradeoff(TYPE_I_ERRORS) >= gaussian_tradeoff(1.5) - 1e-9)


def test_a_conditional_epsilon_that_says_no_more_than_is_certified_is_left_out() -> None:
    distribution = oracles.laplace(1.0, 1.0)  # this distribution is unlike a Gaussian
    grid = np.linspace(0, 2, 9)
    bounds = bounds_of(distribution, [0.0, 0.9])
    free = curves_of(bounds, grid, distribution.delta(grid), 1e-2)
    assert free.conditional_epsilon is not None
    for certified in (free.conditional_epsilon, free.conditional_epsilon + 0.1):
        found = curves_of(bounds, grid, distribution.delta(grid), 1e-2, certified)
        assert found.conditional_epsilon is None
    less = curves_of(bounds, grid, distribution.delta(grid), 1e-2, free.conditional_epsilon - 0.1)
    assert less == free


def test_an_order_must_exceed_one() -> None:
    bounds = RateBounds(np.array([0.5]), np.array([0.1]), 0.1)
    with pytest.raises(ValueError, match="alpha must be a finite number > 1, got 1.0"):
        bounds.lower_renyi(1.0)


@pytest.mark.slow
def test_audits_carry_their_curves() -> None:
    def noisy(data: Floats, size: int, *, rng: np.random.Generator) -> Floats:
        return data.sum() + rng.standard_normal(size)

    pair = NeighborPair([[0.0]], [[1.0]])
    result = audit(noisy, GaussianDP(0.5), pair, draws=20_000, seed=1, mutants=None)
    assert result.diagnostics.curves is not None
    assert 0.7 < result.diagnostics.curves.certified_mu < 1.0
    beyond = np.array(result.diagnostics.curves.certified_beta) < np.array(
        result.diagnostics.curves.claimed_beta
    )
    assert beyond.any()  # the trade-off curve refutes the claim too


def test_what_is_computed_has_exact_curves() -> None:
    class Flip:
        def pmf(self, data: Floats) -> Floats:
            return np.array([0.75, 0.25] if data.sum() > 0 else [0.25, 0.75])

    pair = NeighborPair([[1.0]], [[0.0]])
    result = audit(Flip(), PureDP(1.0), pair, seed=1, mutants=None)
    assert result.diagnostics.curves is not None
    assert result.detectable_epsilon is None
    at = list(TYPE_I_ERRORS).index(min(TYPE_I_ERRORS, key=lambda a: abs(a - 0.25)))
    assert result.diagnostics.curves.certified_beta[at] == pytest.approx(0.25, abs=0.05)
