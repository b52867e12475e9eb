"""Tests of histograms.

The tests cover the noise of every bin, the sensitivity by enumeration, and the mutants.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from algorithms.common.histogram import noisy_histogram
from mutants import histogram as mutants
from tests.algorithms import distributions
from tests.statistical import assert_distribution, assert_frequencies

DATA = np.array([[0, 0, 2], [1, 2, 2]])
COUNTS = [2, 1, 3, 0]


@pytest.mark.statistical
def test_counts_plus_laplace_noise_of_the_replaced_user() -> None:
    draws = noisy_histogram(DATA, 40_000, n_bins=4, epsilon=2.0, rng=np.random.default_rng(31))
    for column, count in enumerate(COUNTS):
        assert_distribution(
            draws[:, column] - count, lambda x: distributions.laplace_cdf(x, 3.0)
        )  # the scale is 2 m / epsilon
    orthants = ((draws > COUNTS) * [1, 2, 4, 8]).sum(axis=1)
    assert_frequencies(np.bincount(orthants, minlength=16), np.full(16, 1 / 16))
    with pytest.raises(AssertionError, match="rejected"):
        assert_distribution(draws[:, 0] - 2, lambda x: distributions.laplace_cdf(x, 3.3))


def test_one_item_for_each_user_may_be_flat() -> None:
    flat = noisy_histogram([0, 1, 1], 5, n_bins=2, epsilon=1.0, rng=np.random.default_rng(32))
    column = noisy_histogram(
        [[0], [1], [1]], 5, n_bins=2, epsilon=1.0, rng=np.random.default_rng(32)
    )
    np.testing.assert_array_equal(column, flat)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_two_m_is_the_exact_sensitivity(m: int) -> None:
    users = [np.bincount(u, minlength=3) for u in itertools.product(range(3), repeat=m)]
    assert max(np.abs(a - b).sum() for a, b in itertools.product(users, users)) == 2 * m


@pytest.mark.parametrize(("scale", "expected"), [(3.0, 2.0), (2.0, 3.0), (6.0, 1.0)])
def test_loss_of_moving_a_user_of_three_items(scale: float, expected: float) -> None:
    """Compare the loss of moving a user of three items with its exact value.

    The scale is m / epsilon for the add_remove mutant, 2 / epsilon for the item_level mutant, and 2
    m / epsilon for the mechanism.
    """
    left, right = (
        0.5 * 0.5,
        float(distributions.laplace_tail(3.0, scale) * distributions.laplace_cdf(-3.0, scale)),
    )
    assert math.log(left / right) == pytest.approx(expected)


@pytest.mark.statistical
def test_mutants_draw_the_noise_of_their_mistake() -> None:
    rng = np.random.default_rng(33)
    kwargs = {"n_bins": 4, "epsilon": 1.0, "rng": rng}
    draws = mutants.noisy_histogram_add_remove(DATA, 40_000, **kwargs)
    assert_distribution(draws[:, 0] - 2, lambda x: distributions.laplace_cdf(x, 3.0))
    draws = mutants.noisy_histogram_item_level(DATA, 40_000, **kwargs)
    assert_distribution(draws[:, 0] - 2, lambda x: distributions.laplace_cdf(x, 2.0))
    with pytest.raises(AssertionError, match="rejected"):
        assert_distribution(draws[:, 0] - 2, lambda x: distributions.laplace_cdf(x, 6.0))
