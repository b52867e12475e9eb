"""Tests of AboveThreshold as used in geometric_median, and of the bounded Laplace mechanism."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad

from algorithms.common import noise
from algorithms.common import sparse_vector as sv
from mutants import geometric_median as mutants
from tests.algorithms import distributions
from tests.statistical import assert_distribution, assert_frequencies

N = 400_000
SCALES = {"threshold_scale": 2.0, "query_scale": 4.0}


def bounded_cdf(x, scale: float, bound: float):
    """Return P(X <= x given |X| <= bound) for X with the distribution Lap(scale)."""
    x = np.clip(x, -bound, bound)
    below = distributions.laplace_cdf(-bound, scale)
    return (distributions.laplace_cdf(x, scale) - below) / (1 - 2 * below)


def hockey_stick(epsilon: float, bound: float, shift: float) -> float:
    """Return delta of Laplace noise that is bounded at `bound` times its scale 1 / epsilon.

    The value is computed by quadrature on both sides.
    """
    scale, edge = 1 / epsilon, bound / epsilon
    mass = 2 * (1 - math.exp(-bound)) * scale

    def density(x: float) -> float:
        return math.exp(-abs(x) / scale) / mass if abs(x) <= edge else 0.0

    def excess(x: float) -> float:
        return max(0.0, density(x) - math.exp(epsilon) * density(x - shift))

    kinks = sorted({-edge, 0.0, edge, shift - edge, shift, shift + edge})
    return sum(quad(excess, a, b, epsabs=1e-14)[0] for a, b in itertools.pairwise(kinks))


@pytest.mark.statistical
def test_first_above_threshold_follows_its_distribution() -> None:
    queries = [-4.0, 2.0, -5.0, 3.0]
    answers = sv.first_above_threshold(
        2 * np.array(queries), N, threshold=0.4, epsilon=0.5, sensitivity=2.0,
        noise_multiplier=0.5, rng=np.random.default_rng(81),
    )  # fmt: skip
    patterns = distributions.halting_patterns(4, 1)
    assert patterns[:3] == [(0, 0, 0, 0), (0, 0, 0, 1), (0, 0, 1)]
    scales = {"threshold": 0.2, **SCALES}  # sensitivity 2 * multiplier 0.5 / epsilon 0.5 = 2
    distribution = [distributions.pattern_probability(queries, p, **scales) for p in patterns]
    counts = distributions.pattern_counts(answers, patterns)
    assert_frequencies(counts, distribution)
    wrong = [distributions.pattern_probability(queries, p, **SCALES) for p in patterns]
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies(counts, wrong)


def test_a_yes_is_the_last_answer() -> None:
    answers = sv.first_above_threshold(
        [0.3, -1.0, 2.0], 500, threshold=1.0, epsilon=1.0, rng=np.random.default_rng(0)
    )
    for row in answers:
        stream = row[~np.isnan(row)]
        assert (stream[:-1] == 0).all()
        assert stream[-1] == 1 or stream.size == 3
        assert np.isnan(row[stream.size :]).all()


@pytest.mark.parametrize("signs", list(itertools.product([-1.0, 1.0], repeat=3)))
def test_first_above_threshold_is_private(signs: tuple[float, ...]) -> None:
    base = np.array([0.0, -3.0, 1.0])
    for pattern in distributions.halting_patterns(3, 1):
        p = distributions.pattern_probability(base, pattern, **SCALES)
        q = distributions.pattern_probability(base + signs, pattern, **SCALES)
        assert abs(math.log(p / q)) <= 1 + 1e-9


@pytest.mark.statistical
def test_bounded_laplace_follows_its_distribution() -> None:
    draws = noise.bounded_laplace_mechanism(
        [1.0, -2.0], 50_000, sensitivity=3.0, epsilon=2.0, delta=0.5, noise_multiplier=2.0,
        rng=np.random.default_rng(82),
    )  # fmt: skip
    bound = 3.0 * math.log(8.0)  # the scale is 2 * 3 / 2
    for column, value in enumerate([1.0, -2.0]):
        moved = draws[:, column] - value
        assert np.abs(moved).max() <= bound
        assert_distribution(moved, lambda x: bounded_cdf(x, 3.0, bound))
        with pytest.raises(AssertionError, match="rejected"):
            assert_distribution(moved, lambda x: distributions.laplace_cdf(x, 3.0))
    assert_distribution(
        np.abs(draws[:, 0] - 1) + 2 * bound * (draws[:, 1] > -2), lambda x: independent(x, bound)
    )


def independent(x, bound: float):
    """Return the cdf of |X| + 2 bound 1[Y > 0] for independent X and Y."""
    x = np.asarray(x)
    lengths = np.where(x > 1.5 * bound, x - 2 * bound, x)
    half = bounded_cdf(lengths, 3.0, bound) - 0.5
    return np.where(x > 1.5 * bound, 0.5 + half, half)


@pytest.mark.parametrize(
    ("epsilon", "bound"), [(1.0, math.log(4e6)), (0.1, 2.0), (2.0, 1.5), (3.0, 1.6), (5.0, 2.0)]
)
def test_exact_delta_of_bounded_laplace(epsilon: float, bound: float) -> None:
    exact = noise.bounded_laplace_delta(epsilon, bound)
    assert hockey_stick(epsilon, bound, 1.0) == pytest.approx(exact, abs=1e-9, rel=1e-6)
    for shift in (0.01, 0.3, 0.9):
        assert hockey_stick(epsilon, bound, shift) <= exact * (1 + 1e-9)


def test_fact_3_holds_up_to_epsilon_one_and_breaks_at_log_nine() -> None:
    for delta in (1e-9, 1e-3, 0.5):
        bound = math.log(4 / delta)
        closed = delta / 4 * (math.e - 1) / (2 * (1 - delta / 4))
        assert noise.bounded_laplace_delta(1.0, bound) == pytest.approx(closed, rel=1e-12)
        assert closed < 0.29 * delta
        edge = math.log(9 - 2 * delta)
        assert noise.bounded_laplace_delta(edge, bound) == pytest.approx(delta, rel=1e-9)
        assert noise.bounded_laplace_delta(1.001 * edge, bound) > delta


def test_edges_of_the_exact_delta() -> None:
    assert noise.bounded_laplace_delta(4.0, 2.0) == 1.0
    assert noise.bounded_laplace_delta(3.999, 2.0) == pytest.approx(1.0, abs=1e-3)
    assert noise.bounded_laplace_delta(2.0, 2.0) == pytest.approx(0.5, abs=1e-12)
    assert noise.bounded_laplace_delta(800.0, 2000.0) == 0.0
    for bad in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="epsilon must be"):
            noise.bounded_laplace_delta(bad, 1.0)
        with pytest.raises(ValueError, match="bound must be"):
            noise.bounded_laplace_delta(1.0, bad)


def test_mutants_break_where_they_say() -> None:
    p, q = (
        distributions.pattern_probability([x] * 8, (0,) * 8, threshold_scale=0.0, query_scale=4.0)
        for x in (0.0, 1.0)
    )
    assert math.log(p / q) == pytest.approx(2.0)
    assert noise.bounded_laplace_delta(1.0, 1.0) == pytest.approx(0.5)


@pytest.mark.statistical
def test_mutants_follow_their_broken_distribution() -> None:
    rng = np.random.default_rng(83)
    answers = mutants.first_above_threshold_exact_threshold(
        [1.0] * 8, N, threshold=0.0, epsilon=1.0, rng=rng
    )
    no = distributions.pattern_probability(
        [1.0] * 8, (0,) * 8, threshold_scale=0.0, query_scale=4.0
    )
    hits = int((answers == 0).all(axis=1).sum())
    assert_frequencies([hits, N - hits], [no, 1 - no])
    draws = mutants.bounded_laplace_one_scale(
        0.0, 50_000, sensitivity=2.0, epsilon=1.0, delta=1e-6, rng=rng
    )
    assert_distribution(draws, lambda x: bounded_cdf(x, 2.0, 2.0))
    shifted = mutants.bounded_laplace_one_scale(
        2.0, 1000, sensitivity=2.0, epsilon=1.0, delta=1e-6, rng=rng
    )
    assert shifted.min() >= 0
