"""Tests of FastRadius.

The tests cover exact distributions, both routes of the subsampling, the sensitivity and the
mutants.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binom

from algorithms.geometric_median import _points, radius
from mutants import geometric_median as mutants
from tests.algorithms import distributions
from tests.statistical import assert_frequencies

PAIR = np.array([[0.0], [1.5]])
TRIPLE = np.array([[0.0], [0.9], [2.7]])
TWO_PLACES = np.array([[0.0]] * 36 + [[2.0]] * 4)


def neighbours(data: np.ndarray, reach: float) -> list[int]:
    """Return the number of neighbours of each point, one distance at a time."""
    return [sum(math.dist(x, y) <= reach for y in data) for x in data]


def query_distribution(data: np.ndarray, reach: float, k: int) -> np.ndarray:
    """Return the probabilities of 0, ..., nk hits.

    The number of hits is a sum of one independent binomial for each point.
    """
    distribution = np.ones(1)
    for count in neighbours(data, reach):
        distribution = np.convolve(distribution, binom.pmf(np.arange(k + 1), k, count / len(data)))
    return distribution


def output_distribution(
    data: np.ndarray, radii: list[float], k: int, scale: float, *, subsampled: bool = True
) -> np.ndarray:
    """Return the probability of each radius and of R.

    The hits are enumerated, and the noise is integrated by quadrature.
    """
    noise = {"threshold": 0.775 * len(data), "threshold_scale": 2 * scale, "query_scale": 4 * scale}
    choices = []
    for reach in radii:
        distribution = query_distribution(data, reach, k)
        support = np.flatnonzero(distribution > 1e-12)
        if subsampled:
            choices.append([(hits / k, distribution[hits]) for hits in support])
        else:
            choices.append([(sum(neighbours(data, reach)) / len(data), 1.0)])
    probabilities = np.zeros(len(radii) + 1)
    for t in range(len(radii)):
        for combination in itertools.product(*choices[: t + 1]):
            queries = [q for q, _ in combination]
            weight = math.prod(w for _, w in combination)
            probabilities[t] += weight * distributions.pattern_probability(
                queries, (0,) * t + (1,), **noise
            )
    probabilities[-1] = 1 - probabilities.sum()
    return probabilities


def yes_probability(data: np.ndarray, reach: float, k: int, scale: float) -> float:
    """Return the probability that the first query passes.

    The difference nu_1 - nu_thresh has a tail in closed form.
    """
    a, b = 2 * scale, 4 * scale
    distribution = query_distribution(data, reach, k)
    gaps = 0.775 * len(data) - np.arange(distribution.size) / k
    lengths = np.abs(gaps)
    tails = (b * b * np.exp(-lengths / b) - a * a * np.exp(-lengths / a)) / (2 * (b * b - a * a))
    return float((distribution * np.where(gaps > 0, tails, 1 - tails)).sum())


def counts_of(outputs: np.ndarray, radii: list[float], largest: float) -> list[int]:
    counts = [int((outputs == value).sum()) for value in [*radii, largest]]
    assert sum(counts) == len(outputs)
    return counts


@given(
    small=st.floats(1e-3, 1e3),
    ratio=st.one_of(st.floats(1, 1e6), st.integers(0, 40).map(lambda k: 2.0**k)),
)
def test_the_grid_has_ceil_log2_radii(small: float, ratio: float) -> None:
    large = max(small, small * ratio)
    radii = radius.radius_grid(small, large)
    n = len(radii)
    assert Fraction(small) * 2**n >= Fraction(large)
    assert n == 0 or Fraction(small) * 2 ** (n - 1) < Fraction(large)
    np.testing.assert_array_equal(radii, small * 2.0 ** np.arange(n))


def test_the_grid_at_its_edges() -> None:
    assert radius.radius_grid(1.0, 8.0).tolist() == [1.0, 2.0, 4.0]  # R itself is not tried
    assert radius.radius_grid(1.0, 8.000001).tolist() == [1.0, 2.0, 4.0, 8.0]
    assert radius.radius_grid(3.0, 3.0).size == 0
    with pytest.raises(ValueError, match="min_radius must be at most max_radius"):
        radius.radius_grid(2.0, 1.0)


def test_constants() -> None:
    assert radius.fast_radius_samples(10, 1e-6) == math.ceil(3 * math.log(4e7)) == 53
    assert radius.fast_radius_samples(1, 0.999) == 5
    with pytest.raises(ValueError, match="n_radii must be at least 1"):
        radius.fast_radius_samples(0, 0.1)


def test_r_equal_to_its_bound_asks_nothing() -> None:
    draws = radius.fast_radius(
        PAIR, 5, min_radius=2.0, max_radius=2.0, epsilon=1.0, delta=0.1,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    np.testing.assert_array_equal(draws, np.full(5, 2.0))


@given(
    arrays(float, st.tuples(st.integers(1, 5), st.integers(1, 4)), elements=st.floats(-1, 1)),
    st.integers(-1070, 490),
)
def test_norms_and_directions_at_every_scale(vectors: np.ndarray, exponent: int) -> None:
    scaled = np.ldexp(vectors, exponent)
    norms = _points.norms(scaled)
    assert norms == pytest.approx([math.hypot(*v) for v in scaled], rel=1e-14, abs=5e-324)
    pulls, lengths = _points.directed(scaled)
    zero = ~scaled.any(axis=1)
    assert (lengths == 0).tolist() == zero.tolist()
    units = pulls[~zero] / lengths[~zero, None]
    assert np.linalg.norm(units, axis=1) == pytest.approx(np.ones(len(units)), rel=1e-14)
    whole = scaled[~zero] / np.abs(scaled[~zero]).max(axis=1, keepdims=True)
    assert units == pytest.approx(whole / np.linalg.norm(whole, axis=1, keepdims=True), rel=1e-13)
    assert _points.norms(scaled[0]) == norms[0]


@given(
    data=arrays(
        float, st.tuples(st.integers(1, 6), st.integers(1, 3)), elements=st.integers(-4, 4)
    ),
    reach=st.sampled_from([0.5, 1.0, math.sqrt(2), 3.0, 5.0]),
    seed=st.integers(0, 1000),
)
def test_hits_and_counts_by_hand(data: np.ndarray, reach: float, seed: int) -> None:
    n = len(data)
    counts = _points.neighbour_counts(data, np.array([reach, 2 * reach]))
    assert counts[:, 0].tolist() == neighbours(data, reach)
    assert counts[:, 1].tolist() == neighbours(data, 2 * reach)
    samples = np.random.default_rng(seed).integers(n, size=(n, 7))
    by_hand = [sum(math.dist(data[i], data[j]) <= reach for j in samples[i]) for i in range(n)]
    assert _points.hits_of(data, samples, reach).tolist() == by_hand
    assert radius.radius_query(data, samples, reach) == sum(by_hand) / 7


def test_blocks_change_nothing(monkeypatch) -> None:
    rng = np.random.default_rng(3)
    data = rng.normal(size=(50, 3))
    samples = rng.integers(50, size=(50, 9))
    counts = _points.neighbour_counts(data, np.array([1.0, 2.0]))
    hits = _points.hits_of(data, samples, 1.5)
    monkeypatch.setattr(_points, "_BATCH", 16)
    monkeypatch.setattr(_points, "_SORTED", 64)
    np.testing.assert_array_equal(_points.neighbour_counts(data, np.array([1.0, 2.0])), counts)
    np.testing.assert_array_equal(_points.hits_of(data, samples, 1.5), hits)


def test_the_query_refuses_bad_samples() -> None:
    with pytest.raises(ValueError, match="samples must hold only values from 0 to 1"):
        radius.radius_query(PAIR, [[2], [0]], 1.0)
    with pytest.raises(ValueError, match="samples must have one row"):
        radius.radius_query(PAIR, [[0]], 1.0)
    with pytest.raises(TypeError, match="samples must hold integers"):
        radius.radius_query(PAIR, [[0.0], [1.0]], 1.0)


@given(
    data=arrays(float, (6, 2), elements=st.floats(-3, 3)),
    other=arrays(float, 2, elements=st.floats(-3, 3)),
    samples=arrays(np.int64, (6, 4), elements=st.integers(0, 5)),
    reach=st.floats(0.1, 5),
)
def test_sensitivity_with_the_samples_held_fixed(data, other, samples, reach) -> None:
    """Check the sensitivity of the query if the samples are held fixed.

    If the moved row occurs c times in the samples of other rows, the query moves by at most c / k +
    1. For c <= 2k, the query moves by at most 3.
    """
    moved = np.concatenate([data[:-1], other[None]])
    occurrences = int((samples[:-1] == 5).sum())
    change = radius.radius_query(data, samples, reach) - radius.radius_query(moved, samples, reach)
    assert abs(change) <= occurrences / 4 + 1 + 1e-12


def test_sensitivity_three_is_reached() -> None:
    """Check that the query can move by 3.

    There are fifty points and k = 7. Other rows draw the last index 14 times, and the last row
    never draws its own index.
    """
    samples = np.tile(np.arange(7), (50, 1))
    samples[:14, 0] = 49
    here, there = np.zeros((50, 1)), np.zeros((50, 1))
    there[-1] = 9.0
    difference = radius.radius_query(here, samples, 1.0) - radius.radius_query(there, samples, 1.0)
    assert difference == pytest.approx(3.0, abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 10, 1000])
@pytest.mark.parametrize("n_radii", [1, 10, 400])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1, 0.9])
def test_an_index_is_drawn_too_often_with_probability_delta(n, n_radii, delta) -> None:
    """Check that Lemma 5 holds exactly.

    In T rounds, more than 2k copies among (n - 1) k draws have probability at most delta / 4.
    """
    k = radius.fast_radius_samples(n_radii, delta)
    assert n_radii * binom.sf(2 * k, (n - 1) * k, 1 / n) <= delta / 4


@pytest.mark.slow
@pytest.mark.parametrize("data", [PAIR, TRIPLE], ids=["pair", "triple"])
@pytest.mark.parametrize(("route", "size"), [("counts", 200_000), ("samples", 20_000)])
@pytest.mark.statistical
def test_the_output_follows_its_distribution(data: np.ndarray, route: str, size: int) -> None:
    draws = radius.fast_radius(
        data, size, min_radius=1.0, max_radius=4.0, epsilon=20.0, delta=0.9,
        noise_multiplier=0.5, route=route, rng=np.random.default_rng(91),
    )  # fmt: skip
    k = math.ceil(3 * math.log(8 / 0.9))
    distribution = output_distribution(data, [1.0, 2.0], k, 3 * 0.5 / 20)
    counts = counts_of(draws, [1.0, 2.0], 4.0)
    assert_frequencies(counts, distribution)
    wrong = output_distribution(data, [1.0, 2.0], k, 3 * 0.5 / 20, subsampled=False)
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies(counts, wrong)


@pytest.mark.statistical
def test_a_single_point_is_its_own_neighbour() -> None:
    draws = radius.fast_radius(
        [[0.3]], 100_000, min_radius=1.0, max_radius=2.0, epsilon=6.0, delta=0.5,
        rng=np.random.default_rng(92),
    )  # fmt: skip
    yes = distributions.pattern_probability(
        [1.0], (1,), threshold=0.775, threshold_scale=1.0, query_scale=2.0
    )
    counts = counts_of(draws, [1.0], 2.0)
    assert_frequencies(counts, [yes, 1 - yes])
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies(counts, [yes + 0.02, 0.98 - yes])


@pytest.mark.parametrize(("route", "size"), [("counts", 40_000), ("samples", 4000)])
@pytest.mark.statistical
def test_many_points(route: str, size: int) -> None:
    """Compare the draws with a closed form, for forty points in two places.

    For these points, one query has a closed form.
    """
    draws = radius.fast_radius(
        TWO_PLACES[::-1], size, min_radius=1.0, max_radius=2.0, epsilon=8.0, delta=1e-3,
        route=route, rng=np.random.default_rng(93),
    )  # fmt: skip
    yes = yes_probability(TWO_PLACES, 1.0, 25, 3 / 8)
    counts = counts_of(draws, [1.0], 2.0)
    assert_frequencies(counts, [yes, 1 - yes])
    low = yes_probability(TWO_PLACES, 1.0, 25, 12 / 8)
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies(counts, [low, 1 - low])


@pytest.mark.statistical
def test_routes_draw_the_same_hits() -> None:
    """Check that both routes of the subsampling have the same joint distribution of hits.

    There are three points with five samples each, so there are 216 outcomes.
    """
    counts = np.array(neighbours(TRIPLE, 1.0))
    single = [binom.pmf(np.arange(6), 5, count / 3) for count in counts]
    distribution = np.einsum("a,b,c->abc", *single).ravel()
    rng = np.random.default_rng(94)
    exact = _points.binomial_hits(counts, 5, 40_000, rng)
    sampled = np.stack([_points.sampled_hits(TRIPLE, 1.0, 5, rng) for _ in range(20_000)], axis=1)
    for hits in (exact, sampled):
        seen = np.bincount(np.ravel_multi_index(tuple(hits), (6, 6, 6)), minlength=216)
        assert_frequencies(seen, distribution)
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies(seen, distribution[::-1])
    totals = _points.binomial_total(counts, 5, 40_000, rng)
    total_distribution = query_distribution(TRIPLE, 1.0, 5)
    assert_frequencies(np.bincount(totals, minlength=16), total_distribution)


def test_the_route_follows_the_cost() -> None:
    assert _points.route_of("auto", 400, 10_000, 50) == "counts"
    assert _points.route_of("auto", 10**6, 1, 53) == "samples"
    assert _points.route_of("samples", 1, 10**6, 53) == "samples"


def test_an_early_stop_leaves_the_other_radii_alone(monkeypatch) -> None:
    """Check that an early stop draws only the queries of the pseudocode."""
    asked: list[tuple[int, int]] = []
    honest = _points.binomial_total

    def spy(counts, n_samples, size, rng):
        asked.append((int(counts[0]), size))
        return honest(counts, n_samples, size, rng)

    monkeypatch.setattr(_points, "binomial_total", spy)
    draws = radius.fast_radius(
        np.zeros((400, 1)), 50, min_radius=1.0, max_radius=1024.0, epsilon=1.0, delta=0.1,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    sizes = [size for _, size in asked]
    assert sizes[0] == 50
    assert len(sizes) < 10
    left = [int((draws > 2.0**t).sum()) for t in range(len(sizes) - 1)]
    assert sizes[1:] == left


def test_the_mutant_breaks_where_it_says() -> None:
    left, right = TWO_PLACES, TWO_PLACES.copy()
    right[0] = 2.0
    k = radius.fast_radius_samples(1, 1e-6)
    probabilities = [1 - yes_probability(d, 1.0, k, 3 / 40) for d in (left, right)]
    assert probabilities == pytest.approx([0.0026, 0.3134], abs=1e-4)
    assert math.log((probabilities[1] - 1e-6) / probabilities[0]) == pytest.approx(4.8, abs=0.05)
    honest = [1 - yes_probability(d, 1.0, k, 3.0) for d in (left, right)]
    assert honest == pytest.approx([0.450, 0.493], abs=1e-3)


@pytest.mark.statistical
def test_the_mutant_follows_its_broken_distribution() -> None:
    draws = mutants.fast_radius_of_a_fraction(
        TWO_PLACES, 20_000, min_radius=1.0, max_radius=2.0, epsilon=1.0, delta=1e-6,
        rng=np.random.default_rng(95),
    )  # fmt: skip
    yes = yes_probability(TWO_PLACES, 1.0, 46, 3 / 40)
    assert_frequencies(counts_of(draws, [1.0], 2.0), [yes, 1 - yes])
