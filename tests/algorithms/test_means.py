"""Tests of clipped means.

The tests cover exact centers and noise scales, the sensitivity as a property, and the mutants.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm

from algorithms.common import means
from algorithms.common.noise import analytic_gaussian_sigma
from mutants import means as mutants
from tests.algorithms import distributions
from tests.algorithms.test_noise import gaussian_delta, gaussian_epsilon
from tests.statistical import assert_distribution

SILENT = 1e12  # an epsilon at which the noise is below 1e-9, so a draw equals the center
DATA = np.array([[4.0, 6.0], [-1.0, 0.0], [-0.2, 0.6]])  # users' means 5, -0.5, 0.2


def center(data: np.ndarray, clip_norm: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    if data.ndim == 2:
        return means.clipped_user_mean(data, 1, clip_norm=clip_norm, epsilon=SILENT, rng=rng)
    return means.clipped_user_mean_gaussian(
        data, 1, clip_norm=clip_norm, epsilon=SILENT, delta=0.5, rng=rng
    )[0]


def test_each_user_is_averaged_then_clipped() -> None:
    assert center(DATA, 1.0) == pytest.approx((1.0 - 0.5 + 0.2) / 3)
    assert center(DATA, 10.0) == pytest.approx(4.7 / 3)


def test_vectors_are_scaled_back_onto_the_ball() -> None:
    data = np.array([[[3.0, 4.0]], [[0.3, 0.4]], [[0.0, 0.0]]])
    np.testing.assert_allclose(center(data, 1.0), np.array([0.9, 1.2]) / 3, atol=1e-5)


def test_huge_values_do_not_overflow() -> None:
    data = np.full((2, 2, 2), 1e308)
    np.testing.assert_allclose(center(data, 1.0), np.sqrt([0.5, 0.5]), atol=1e-5)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    users=arrays(float, (4, 2, 3), elements=st.floats(-100, 100)),
    other=arrays(float, (2, 3), elements=st.floats(-100, 100)),
    clip_norm=st.floats(0.1, 10),
)
def test_a_replaced_user_moves_the_center_by_the_diameter_at_most(
    users: np.ndarray, other: np.ndarray, clip_norm: float
) -> None:
    replaced = np.concatenate([[other], users[1:]])
    moved = means._clipped_average(users, clip_norm) - means._clipped_average(replaced, clip_norm)
    assert np.linalg.norm(moved) <= 2 * clip_norm / 4 * (1 + 1e-12)


@pytest.mark.statistical
def test_scalar_noise_is_laplace() -> None:
    draws = means.clipped_user_mean(
        DATA, 40_000, clip_norm=1.0, epsilon=2.0, rng=np.random.default_rng(41)
    )
    assert_distribution(
        draws - 0.7 / 3, lambda x: distributions.laplace_cdf(x, 1 / 3)
    )  # the scale is 2 C / (n epsilon)
    with pytest.raises(AssertionError, match="rejected"):
        assert_distribution(draws - 0.7 / 3, lambda x: distributions.laplace_cdf(x, 0.37))


@pytest.mark.statistical
def test_vector_noise_is_the_analytic_gaussian() -> None:
    data = np.zeros((5, 2, 3))
    draws = means.clipped_user_mean_gaussian(
        data, 40_000, clip_norm=2.0, epsilon=1.0, delta=1e-5, rng=np.random.default_rng(42)
    )
    sigma = analytic_gaussian_sigma(0.8, 1.0, 1e-5)
    for column in range(3):
        assert_distribution(draws[:, column], norm(0, sigma).cdf)
    assert_distribution(
        draws.sum(axis=1), norm(0, math.sqrt(3) * sigma).cdf
    )  # the coordinates are independent
    with pytest.raises(AssertionError, match="rejected"):
        assert_distribution(draws[:, 0], norm(0, 1.1 * sigma).cdf)


# Mutants. One user has every item at C, or every item at -C. The event is "at or above the left
# center". The log ratio is the shift of the center divided by the scale of the noise.


@pytest.mark.parametrize(
    ("mutant", "value", "expected"),
    [
        (mutants.clipped_user_mean_item_level, 1.0, 4.0),  # m epsilon
        (mutants.clipped_user_mean_add_remove, 1.0, 2.0),  # 2 epsilon
        (mutants.user_mean_unclipped, 3.0, 3.0),  # r epsilon
        (means.clipped_user_mean, 3.0, 1.0),
    ],
)
@pytest.mark.statistical
def test_scalar_mutants_break_at_their_pair(mutant, value: float, expected: float) -> None:
    left, right = np.zeros((5, 4)), np.zeros((5, 4))
    left[0], right[0] = value, -value
    shift = float(
        mutant(left, 1, clip_norm=1.0, epsilon=SILENT, rng=np.random.default_rng(0))[0]
        - mutant(right, 1, clip_norm=1.0, epsilon=SILENT, rng=np.random.default_rng(0))[0]
    )
    scale = shift / expected
    assert math.log(0.5 / distributions.laplace_tail(shift, scale)) == pytest.approx(expected)
    draws = mutant(left, 40_000, clip_norm=1.0, epsilon=1.0, rng=np.random.default_rng(43))
    assert_distribution(draws - shift / 2, lambda x: distributions.laplace_cdf(x, scale))
    with pytest.raises(AssertionError, match="rejected"):
        assert_distribution(draws - shift / 2, lambda x: distributions.laplace_cdf(x, 1.1 * scale))


@pytest.mark.statistical
def test_gaussian_mutant_breaks_in_ten_dimensions() -> None:
    data = np.zeros((5, 2, 10))
    data[0] = 1.0
    draws = mutants.clipped_user_mean_gaussian_by_coordinate(
        data, 40_000, clip_norm=1.0, epsilon=1.0, delta=1e-5, rng=np.random.default_rng(44)
    )
    sigma = analytic_gaussian_sigma(0.4, 1.0, 1e-5)
    total, deviation = draws.sum(axis=1), math.sqrt(10) * sigma
    assert_distribution(total, norm(10 / 5, deviation).cdf)  # the other side is -10 / 5
    assert gaussian_epsilon(4.0, deviation, 1e-5) == pytest.approx(3.62, abs=0.01)
    assert gaussian_delta(4.0, deviation, 1.0) == pytest.approx(0.077, abs=1e-3)
    with pytest.raises(AssertionError, match="rejected"):
        assert_distribution(total, norm(10 / 5, 1.1 * deviation).cdf)
