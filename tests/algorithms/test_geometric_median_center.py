"""Tests of FastCenter.

The tests cover the weights, the check of line 9, the noise, the sensitivity and the mutants.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binom, norm

from algorithms.common.noise import analytic_gaussian_sigma
from algorithms.geometric_median import center
from mutants import geometric_median as mutants
from tests.algorithms import distributions
from tests.algorithms.test_noise import gaussian_delta
from tests.statistical import assert_distribution, assert_frequencies

ONE_PLACE = np.full((30, 2), 0.5)
PASSING = {"radius": 1.0, "epsilon": 9.0, "delta": 0.1}  # at 30 points, a third of the runs pass


def pass_probability(n: int, total: float, epsilon: float, delta: float) -> float:
    """Return P(Z + xi - offset > 0.55 n) for a known Z and bounded Laplace noise xi."""
    scale = 24 / epsilon
    offset = scale * math.log(24 / delta)
    needed = float(np.clip(0.55 * n + offset - total, -offset, offset))
    below, edge = (float(distributions.laplace_cdf(x, scale)) for x in (needed, -offset))
    return 1 - (below - edge) / (1 - 2 * edge)


def test_constants() -> None:
    assert center.fast_center_samples(400, 1e-6) == math.ceil(600 * math.log(7.2e9)) == 13619
    sigma = center.fast_center_sigma(1000, 2.0, 0.5, 1e-3)
    assert sigma == pytest.approx(1600 * 2 / (1000 * 0.5) * math.sqrt(math.log(12e3)), rel=1e-14)
    # Fact 2 gives this formula at sensitivity 400 r / n for (epsilon / 2, delta / 6). The analytic
    # sigma is smaller.
    sensitivity = 400 * 2 / 1000
    assert sigma == pytest.approx(2 * sensitivity / 0.25 * math.sqrt(math.log(2 / (1e-3 / 6))))
    assert sigma > 1.3 * analytic_gaussian_sigma(sensitivity, 0.25, 1e-3 / 6)


def test_weights_by_hand() -> None:
    """Check the weights of points by hand.

    Among 8 samples, a point with at most 4 neighbours has weight 0. A point with 5 neighbours has
    weight 1/2, and a point with at least 6 neighbours has weight 1.
    """
    data = np.array([[0.0], [2.0], [4.5]])
    for hits, weight in [(0, 0), (4, 0), (5, 0.5), (6, 1), (8, 1)]:
        samples = np.array([[1] * hits + [2] * (8 - hits)] * 3)
        weights = center.center_weights(data, samples, 1.0)  # 1 is within 2 of 0, but 2 is not
        assert weights[0] == weight
    alone = center.center_weights(data, np.array([[2] * 8] * 3), 1.0)
    assert alone.tolist() == [0.0, 0.0, 1.0]


@given(
    data=arrays(float, (7, 2), elements=st.floats(-3, 3)),
    other=arrays(float, 2, elements=st.floats(-3, 3)),
    samples=arrays(np.int64, (7, 8), elements=st.integers(0, 6)),
    radius=st.floats(0.1, 3),
)
def test_weights_move_by_nine_at_most(data, other, samples, radius) -> None:
    moved = np.concatenate([data[:-1], other[None]])
    occurrences = int((samples[:-1] == 6).sum())
    change = np.abs(
        center.center_weights(data, samples, radius) - center.center_weights(moved, samples, radius)
    ).sum()
    assert change <= 1 + occurrences / (0.25 * 8) + 1e-12
    if occurrences <= 16:  # 2k
        assert change <= 9 + 1e-12


@pytest.mark.parametrize("n", [20, 100, 10_000, 10**6])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1, 0.9])
def test_the_bad_events_are_as_rare_as_the_proof_says(n: int, delta: float) -> None:
    """Check that the exact probabilities of the bad events are as small as in the proof.

    The test computes the tails of (8) over all counts, and the tail of the number of copies. Each
    tail is at most delta / 18.
    """
    k = center.fast_center_samples(n, delta)
    low = n * binom.sf(math.floor(0.5 * k), k, math.floor(0.45 * n) / n)
    middle = n * binom.sf(math.floor(0.6 * k), k, math.floor(0.55 * n) / n)
    assert max(low, middle) <= delta / 18
    high = n * binom.cdf(math.ceil(0.7 * k) - 1, k, math.ceil(0.75 * n) / n)
    assert high <= delta / 18
    assert binom.sf(2 * k, (n - 1) * k, 1 / n) <= delta / 18


@pytest.mark.parametrize("route", ["counts", "samples"])
def test_the_center_is_the_mean_of_the_survivors(route: str) -> None:
    rng = np.random.default_rng(0)
    cluster = rng.normal(size=(90, 3), scale=0.1)
    data = np.concatenate([cluster, 50 + 10 * rng.normal(size=(10, 3))])
    centers = center.fast_center_centers(
        data, 3, radius=1.0, epsilon=100.0, delta=0.1, failed_at=np.full(3, 1e6), route=route,
        rng=rng,
    )  # fmt: skip
    np.testing.assert_allclose(centers, np.tile(cluster.mean(axis=0), (3, 1)), atol=1e-12)


@pytest.mark.parametrize(("route", "size"), [("counts", 20_000), ("samples", 200)])
@pytest.mark.statistical
def test_partial_weights_follow_their_distribution(route: str, size: int) -> None:
    """Check the distribution of the weights of five points that coincide.

    The weight of each of these points is near 1/2, because k samples hit at rate 5/8. The sum of
    the weights stays near 2.5. Line 9 requires 4.4, so every run fails even without the noise of
    line 9.
    """
    data = np.array([[0.0]] * 5 + [[10.0], [20.0], [30.0]])
    k = center.fast_center_samples(8, 0.9)
    draws = center._centers(data, size, 1.0, 50.0, 0.9, 1e-9, route, np.random.default_rng(71))
    assert (draws[0] == 0).all()
    assert not draws[1].any()
    spread = np.sqrt(5 * k * 5 / 8 * 3 / 8) / (0.25 * k)
    above = binom.sf(np.floor(5 * k * 0.625), 5 * k, 0.625)
    hits = center._hits(
        data, center._points.neighbour_counts(data, np.array([2.0]))[:, 0]
        if route == "counts" else None, k, size, 2.0, np.random.default_rng(72),
    )  # fmt: skip
    total = center._weights(hits, k).sum(axis=0)
    assert np.abs(total - 2.5).max() < 7 * spread
    high = int((hits[:5].sum(axis=0) > 5 * k * 0.625).sum())
    assert_frequencies([high, size - high], [above, 1 - above])


@pytest.mark.statistical
def test_line_9_and_the_noise_follow_their_distribution() -> None:
    draws = center.fast_center(ONE_PLACE, 40_000, **PASSING, rng=np.random.default_rng(73))
    failed = (draws == 0).all(axis=1)
    probability = pass_probability(30, 30.0, 9.0, 0.1)
    assert 0.3 < probability < 0.4
    counts = [int((~failed).sum()), int(failed.sum())]
    assert_frequencies(counts, [probability, 1 - probability])
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies(counts, [probability + 0.03, 0.97 - probability])
    passed = draws[~failed]
    sigma = 1600 / (30 * 9) * math.sqrt(math.log(120))
    for column in range(2):
        assert_distribution(passed[:, column], norm(0.5, sigma).cdf)
        with pytest.raises(AssertionError, match="rejected"):
            assert_distribution(passed[:, column], norm(0.5, 1.1 * sigma).cdf)
    assert_distribution(passed.sum(axis=1), norm(1.0, math.sqrt(2) * sigma).cdf)


@pytest.mark.statistical
def test_the_noise_multiplier_scales_all_three_noises() -> None:
    kwargs = PASSING | {"noise_multiplier": 0.9}
    draws = center.fast_center(ONE_PLACE, 20_000, **kwargs, rng=np.random.default_rng(74))
    passed = draws[(draws != 0).any(axis=1)]
    probability = pass_probability(
        30, 30.0, 9.0 / 0.9, 0.1
    )  # scale, bound and offset depend on epsilon
    assert_frequencies([len(passed), 20_000 - len(passed)], [probability, 1 - probability])
    sigma = 0.9 * center.fast_center_sigma(30, 1.0, 9.0, 0.1)
    assert_distribution(passed[:, 0], norm(0.5, sigma).cdf)


def test_centers_and_draws_tell_the_same_story() -> None:
    """Check that the centers and the draws agree if the generator is the same.

    The same runs fail, and the draws are centers plus noise.
    """
    far = np.array([7.0, -7.0])
    draws = center.fast_center(ONE_PLACE, 300, **PASSING, rng=np.random.default_rng(5))
    centers = center.fast_center_centers(
        ONE_PLACE, 300, **PASSING, failed_at=far, rng=np.random.default_rng(5)
    )
    failed = (centers == far).all(axis=1)
    np.testing.assert_array_equal(failed, (draws == 0).all(axis=1))
    assert 0 < failed.sum() < 300
    np.testing.assert_array_equal(centers[~failed], np.full((300 - failed.sum(), 2), 0.5))


def test_no_survivors_is_a_failure() -> None:
    data = np.arange(25.0)[:, None] * 10
    draws = center.fast_center(
        data, 50, radius=1.0, epsilon=1000.0, delta=0.5, rng=np.random.default_rng(6)
    )
    assert (draws == 0).all()


def test_blocks_of_draws_change_the_law_in_nothing(monkeypatch) -> None:
    monkeypatch.setattr(center, "_CELLS", 90)  # three draws at a time
    draws = center.fast_center(ONE_PLACE, 10, **PASSING, rng=np.random.default_rng(8))
    assert draws.shape == (10, 2)
    assert len(np.unique(draws[(draws != 0).any(axis=1)], axis=0)) > 1


def test_two_survivors_are_shared_from_ten_points_on() -> None:
    """Check that at least two survivors are shared for n >= 10.

    Lemma 9 requires n >= 20. For n = 9, only one survivor is shared.
    """
    common = {n: 2 * (math.floor(0.55 * n) + 1) - n for n in range(1, 400)}
    assert min(common[n] for n in range(10, 400)) == 2
    assert common[9] == 1


# Mutants.


def test_the_untested_mutant_breaks_where_it_says() -> None:
    """Check that the output of the untested mutant is almost never near the smaller group.

    A bad event is a weight of a point of the smaller group, no weight in the larger group, or a
    noise above 5e4.
    """
    k = center.fast_center_samples(21, 1e-6)
    stray = 11 * binom.sf(math.floor(0.5 * k), k, 10 / 21)
    missing = binom.cdf(math.floor(0.5 * k), k, 11 / 21) ** 10
    sigma = center.fast_center_sigma(21, 1.0, 1.0, 1e-6)
    wrong = stray + missing + norm.sf(5e4 / sigma)
    assert wrong < 1e-5


def test_the_untested_mutant_jumps() -> None:
    kwargs = {"radius": 1.0, "epsilon": 1.0, "delta": 1e-6}
    left = np.array([[0.0]] * 11 + [[1e5]] * 10)
    right = np.array([[0.0]] * 10 + [[1e5]] * 11)
    low = mutants.fast_center_untested(left, 500, **kwargs, rng=np.random.default_rng(75))
    high = mutants.fast_center_untested(right, 500, **kwargs, rng=np.random.default_rng(76))
    assert low.max() < 5e4 < high.min()
    honest = center.fast_center(left, 500, **kwargs, rng=np.random.default_rng(77))
    assert (honest == 0).all()


@pytest.mark.statistical
def test_the_one_point_mutant_breaks_where_it_says() -> None:
    data = np.array([[0.0]] * 399 + [[2.0]])
    kwargs = {"radius": 1.0, "epsilon": 1.0, "delta": 0.01}
    probability = pass_probability(400, 400.0, 1.0, 0.01)
    assert probability == pytest.approx(0.3766, abs=1e-4)
    shift, sigma = 4 / 400, 2 / 400
    exact = probability * gaussian_delta(shift, sigma, 1.0)
    assert exact == pytest.approx(0.192, abs=1e-3)
    assert probability * gaussian_delta(shift, center.fast_center_sigma(400, **kwargs), 1.0) < 1e-12
    draws = mutants.fast_center_one_point(data, 20_000, **kwargs, rng=np.random.default_rng(78))
    passed = draws[draws != 0]
    assert_frequencies([passed.size, 20_000 - passed.size], [probability, 1 - probability])
    assert_distribution(passed, norm(2 / 400, sigma).cdf)
