"""Tests of divergences by brute force over all events.

The soundness of their bounds is tested by enumeration.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom, norm

from dpaudit.stats import oracles
from dpaudit.stats.divergence import (
    hockey_stick,
    hockey_stick_density,
    hockey_stick_inverse,
    renyi_divergence,
)
from dpaudit.stats.joint import Counts, Target
from dpaudit.stats.rates import RateBounds, excess_of_rates, loss_of_rates

Floats = NDArray[np.float64]
AIM = Target(delta=0.0)


def _pmf(weights: list[int]) -> Floats:
    return np.array(weights) / sum(weights)


@st.composite
def pmf_pairs(draw: st.DrawFn) -> tuple[Floats, Floats]:
    k = draw(st.integers(1, 6))
    weights = st.lists(st.integers(0, 20), min_size=k, max_size=k).filter(any)
    return _pmf(draw(weights)), _pmf(draw(weights))


def _event_rates(p: Floats, q: Floats) -> list[tuple[float, float]]:
    subsets = itertools.product([False, True], repeat=len(p))
    return [(float(p[list(s)].sum()), float(q[list(s)].sum())) for s in subsets]


# --- hockey-stick -----------------------------------------------------------------------------


@settings(max_examples=150)
@given(pmf_pairs(), st.floats(0, 5))
def test_hockey_stick_is_the_best_event_of_all(pair: tuple[Floats, Floats], epsilon: float) -> None:
    p, q = pair
    best = max(a - math.exp(epsilon) * b for a, b in _event_rates(p, q))
    assert hockey_stick(p, q, epsilon) == pytest.approx(best, abs=1e-12)


@settings(max_examples=150)
@given(pmf_pairs(), st.floats(0, 1))
def test_inverse_is_the_best_event_of_all(pair: tuple[Floats, Floats], delta: float) -> None:
    p, q = pair
    losses = [0.0]
    for a, b in _event_rates(p, q):
        if a - delta > 1e-12:
            losses.append(math.log((a - delta) / b) if b > 0 else math.inf)
        elif a - delta > -1e-12:  # a tie up to rounding, where either answer is correct
            return
    assert hockey_stick_inverse(p, q, delta) == pytest.approx(max(losses), abs=1e-9)


@settings(max_examples=100)
@given(pmf_pairs(), st.floats(1e-6, 1))
def test_inverse_is_the_smallest_epsilon_that_does(
    pair: tuple[Floats, Floats], delta: float
) -> None:
    p, q = pair
    epsilon = hockey_stick_inverse(p, q, delta)
    if epsilon == math.inf:
        assert p[q == 0].sum() > delta - 1e-12
        return
    assert hockey_stick(p, q, epsilon) <= delta + 1e-12
    if epsilon > 1e-3:
        assert hockey_stick(p, q, epsilon - 1e-3) > delta - 1e-12


@settings(max_examples=100)
@given(pmf_pairs(), st.floats(0, 3))
def test_merging_outcomes_never_helps_the_adversary(
    pair: tuple[Floats, Floats], epsilon: float
) -> None:
    p, q = pair
    if len(p) == 1:
        assert hockey_stick(p, q, epsilon) == 0.0
        return
    merged = hockey_stick(np.append(p[2:], p[:2].sum()), np.append(q[2:], q[:2].sum()), epsilon)
    assert merged <= hockey_stick(p, q, epsilon) + 1e-12


@settings(max_examples=100)
@given(pmf_pairs())
def test_both_directions_agree_at_epsilon_0_and_exchange_elsewhere(
    pair: tuple[Floats, Floats],
) -> None:
    p, q = pair
    assert hockey_stick(p, q, 0.0) == pytest.approx(hockey_stick(q, p, 0.0), abs=1e-12)
    # The mirrored excess satisfies H_eps(P||Q) = 1 - e^eps + e^eps H_{-eps}(Q||P), at eps = 1
    mirrored = np.maximum(q - math.exp(-1) * p, 0).sum()
    expected = 1 - math.e + math.e * mirrored
    assert hockey_stick(p, q, 1.0) == pytest.approx(expected, abs=1e-12)


def test_hockey_stick_beyond_the_largest_loss_is_zero() -> None:
    assert hockey_stick([0.5, 0.5], [1e-200, 1 - 1e-200], 500.0) == 0.0
    assert hockey_stick([1.0, 0.0], [0.0, 1.0], 1e300) == 1.0
    assert hockey_stick([1.0, 0.0], [1e-310, 1 - 1e-310], 1000.0) == 0.0  # the only loss is 713.8


def test_densities_agree_with_the_oracles() -> None:
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        computed = hockey_stick_density(
            norm(1, 2).pdf, norm(0, 2).pdf, epsilon, breakpoints=[-6.0, 0.0, 0.5, 1.0, 8.0]
        )
        assert computed == pytest.approx(oracles.gaussian(1.0, 2.0).delta_left(epsilon), abs=1e-9)
    computed = hockey_stick_density(
        lambda x: 0.5 * math.exp(-abs(x - 1)),
        lambda x: 0.5 * math.exp(-abs(x)),
        0.5,
        breakpoints=[0.0, 0.75, 1.0],
    )
    assert computed == pytest.approx(oracles.laplace(1.0, 1.0).delta(0.5), abs=1e-9)


@settings(max_examples=60)
@given(pmf_pairs(), st.floats(1.01, 20))
def test_renyi_divergence_is_its_sum_and_grows_with_the_order(
    pair: tuple[Floats, Floats], alpha: float
) -> None:
    p, q = pair
    value = renyi_divergence(p, q, alpha)
    if np.any((q == 0) & (p > 0)):
        assert value == math.inf
        return
    keep = p > 0
    direct = math.log(float((p[keep] ** alpha * q[keep] ** (1 - alpha)).sum())) / (alpha - 1)
    assert value == pytest.approx(direct, abs=1e-9)
    assert value >= -1e-12
    assert renyi_divergence(p, q, alpha + 0.5) >= value - 1e-9


def test_renyi_divergence_tends_to_the_largest_loss() -> None:
    assert renyi_divergence([0.75, 0.25], [0.25, 0.75], 1e6) == pytest.approx(math.log(3), rel=1e-5)


BAD_PMFS: list[tuple[Any, Any]] = [
    ([0.5, 0.5], [1.0]),
    ([], []),
    ([[0.5, 0.5]], [[0.5, 0.5]]),
    ([0.5, 0.4], [0.5, 0.5]),
    ([1.5, -0.5], [0.5, 0.5]),
    ([0.5, 0.5], [math.nan, 0.5]),
    ([math.inf, 0.5], [0.5, 0.5]),
    (1.0, 1.0),
]


@pytest.mark.parametrize(("left", "right"), BAD_PMFS)
def test_bad_pmfs_are_refused(left: Any, right: Any) -> None:
    with pytest.raises(ValueError, match="left|right"):
        hockey_stick(left, right, 1.0)
    with pytest.raises(ValueError, match="left|right"):
        hockey_stick_inverse(left, right, 0.1)
    with pytest.raises(ValueError, match="left|right"):
        renyi_divergence(left, right, 2.0)


def test_bad_epsilons_deltas_orders_and_breakpoints_are_refused() -> None:
    p = [0.5, 0.5]
    for epsilon in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="^epsilon must be"):
            hockey_stick(p, p, epsilon)
    for delta in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="^delta must be"):
            hockey_stick_inverse(p, p, delta)
    for alpha in (1.0, 0.5, math.nan, math.inf):
        with pytest.raises(ValueError, match="^alpha must be"):
            renyi_divergence(p, p, alpha)
    for points in ([], [1.0, 0.0], [0.0, 0.0], [math.inf], [math.nan]):
        with pytest.raises(ValueError, match="^breakpoints must be"):
            hockey_stick_density(norm.pdf, norm.pdf, 1.0, breakpoints=points)


# --- from rates -------------------------------------------------------------------------------


@settings(max_examples=200)
@given(st.floats(0.001, 0.999), st.floats(0.001, 0.999), st.floats(0, 1), st.floats(0, 5))
def test_rates_say_what_the_two_point_laws_say(
    likely: float, rare: float, delta: float, epsilon: float
) -> None:
    p, q = [likely, 1 - likely], [rare, 1 - rare]
    # The event is {S} in one direction, and the complement of S in the other direction.
    direct = max(likely - math.exp(epsilon) * rare, 0.0)
    mirrored = max((1 - rare) - math.exp(epsilon) * (1 - likely), 0.0)
    assert excess_of_rates(likely, rare, epsilon) == pytest.approx(max(direct, mirrored), abs=1e-12)
    assert (
        max(direct, mirrored)
        <= max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)) + 1e-12
    )
    loss = float(loss_of_rates(likely, rare, delta))
    assert loss <= max(hockey_stick_inverse(p, q, delta), hockey_stick_inverse(q, p, delta)) + 1e-9
    if loss > 1e-9:
        assert excess_of_rates(likely, rare, loss) == pytest.approx(delta, abs=1e-12)


def test_rates_given_as_exactly_zero_mean_infinite_loss() -> None:
    assert loss_of_rates(0.5, 0.0, 0.1) == math.inf
    assert loss_of_rates(1.0, 0.5, 0.1) == math.inf
    assert loss_of_rates(0.1, 0.0, 0.1) == 0.0
    assert loss_of_rates([0.5, 0.2], [0.1, 0.2], 0.0).tolist() == pytest.approx([math.log(5), 0.0])


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(1, 60), st.integers(1, 60), st.data())
def test_swapping_the_sides_swaps_their_roles(
    draws_left: int, draws_right: int, data: st.DataObject
) -> None:
    counts = Counts(
        data.draw(st.integers(0, draws_left)),
        draws_left,
        data.draw(st.integers(0, draws_right)),
        draws_right,
    )
    for side, other in (("left", "right"), ("right", "left")):
        bounds = RateBounds.from_counts(counts, side, 1e-3, AIM)
        swapped = RateBounds.from_counts(counts.swapped(), other, 1e-3, AIM)
        assert np.array_equal(bounds.likely, swapped.likely)
        assert np.array_equal(bounds.rare, swapped.rare)


@settings(max_examples=60)
@given(st.integers(0, 100), st.integers(0, 100), st.floats(0, 1))
def test_bounds_from_counts_are_finite_and_no_larger_than_the_plain_ratio(
    hits_left: int, hits_right: int, delta: float
) -> None:
    counts = Counts(hits_left, 100, hits_right, 100)
    bounds = RateBounds.from_counts(counts, "left", 1e-3, Target(delta=delta))
    epsilon = bounds.lower_epsilon(delta)
    assert 0 <= epsilon < math.inf
    assert epsilon <= loss_of_rates(hits_left / 100, hits_right / 100, delta) + 1e-12
    assert 0 <= bounds.lower_delta(1.0) <= 1


@pytest.mark.parametrize("likelier", ["both", "", None, 0, "LEFT"])
def test_unknown_sides_are_refused(likelier: Any) -> None:
    with pytest.raises(ValueError, match="^likelier must be one of left, right"):
        RateBounds.from_counts(Counts(1, 2, 1, 2), likelier, 0.1, AIM)


# --- soundness by enumeration -----------------------------------------------------------------


@functools.cache
def _bounds(
    hits: int, draws: int, other_hits: int, other_draws: int, failure_prob: float, target: Target
) -> RateBounds:
    counts = Counts(hits, draws, other_hits, other_draws)
    return RateBounds.from_counts(counts, "left", failure_prob, target)


def _certified(
    draws: tuple[int, int], likelier: str, failure_prob: float, target: Target, *, broken: bool
) -> list[list[RateBounds]]:
    """Return the bounds of every pair of counts.

    The mutant uses the observed rates as bounds.
    """

    def bounds(k: int, n: int) -> RateBounds:
        if broken:
            likely, rare = k / draws[0], n / draws[1]
            if likelier == "right":
                likely, rare = rare, likely
            return RateBounds(likely, rare, failure_prob)
        # The bound for the right side equals the bound of the swapped counts for the left side, bit
        # by bit (test_swapping_the_sides_swaps_their_roles). The bound is therefore computed only
        # once.
        if likelier == "left":
            return _bounds(k, draws[0], n, draws[1], failure_prob, target)
        return _bounds(n, draws[1], k, draws[0], failure_prob, target)

    return [[bounds(k, n) for n in range(draws[1] + 1)] for k in range(draws[0] + 1)]


def _worst_error(
    draws: tuple[int, int],
    likelier: str,
    failure_prob: float,
    target: Target = AIM,
    *,
    broken: bool = False,
) -> float:
    """Return the largest exact probability that a pair on the edge of the claim is refuted."""
    table = _certified(draws, likelier, failure_prob, target, broken=broken)
    worst, epsilons, deltas = 0.0, [0.0, 0.2, 1.0, 2.5], [0.0, 1e-3, 0.2]
    at_deltas = {x: np.array([[b.lower_epsilon(x) for b in row] for row in table]) for x in deltas}
    at_epsilons = {
        x: np.array([[b.lower_delta(x) for b in row] for row in table]) for x in epsilons
    }
    for epsilon, delta in itertools.product(epsilons, deltas):
        wrong = at_deltas[delta] > epsilon + 1e-12
        wrong |= at_epsilons[epsilon] > delta + 1e-12
        # Beyond this q, the complementary event would violate the guarantee.
        q = np.linspace(0, (1 - delta) / (1 + math.exp(epsilon)), 41)
        p = np.minimum(math.exp(epsilon) * q + delta, 1.0)
        for left, right in ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p)):
            mass_left = binom.pmf(np.arange(draws[0] + 1)[:, None], draws[0], left)
            mass_right = binom.pmf(np.arange(draws[1] + 1)[:, None], draws[1], right)
            errors = np.einsum("kg,kn,ng->g", mass_left, wrong.astype(float), mass_right)
            worst = max(worst, float(errors.max()))
    return worst


@pytest.mark.sampled
@pytest.mark.parametrize("draws", [(1, 1), (6, 6), (25, 25), (4, 12)], ids=str)
@pytest.mark.parametrize(
    "target", [Target(delta=0.0), Target(delta=0.2), Target(epsilon=1.0)], ids=str
)
def test_certified_numbers_are_wrong_at_most_as_often_as_promised(
    draws: tuple[int, int], target: Target
) -> None:
    for failure_prob, likelier in itertools.product((0.3, 0.02), ("left", "right")):
        assert _worst_error(draws, likelier, failure_prob, target) <= failure_prob


@pytest.mark.parametrize("likelier", ["left", "right"])
def test_the_enumeration_rejects_ratios_without_bounds(likelier: str) -> None:
    assert _worst_error((12, 12), likelier, 0.3, broken=True) > 0.3
