"""Directions of different spread, compared with known facts about Gaussians."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.events.features import spreads

Floats = NDArray[np.float64]


def _found(left: Floats, right: Floats) -> dict[str, object]:
    columns = np.arange(left.shape[1])
    return {column.name: read for column, read in spreads(columns, left, right)}


def test_the_direction_of_larger_variance_is_found() -> None:
    rng = np.random.default_rng(0)
    u = np.array([0.6, 0.0, 0.8, 0.0])
    left, right = rng.normal(size=(2, 6000, 4)) * [1, 2, 1, 5] + 3.0
    left += ((left - 3.0) @ u)[:, None] * u
    ((name, read),) = _found(left, right).items()
    assert name == "distance along the direction of different spread"
    along = read(3.0 + np.outer([1.0, -1.0, 2.0, 0.0], u))  # type: ignore[operator]
    assert along[1] == pytest.approx(along[0], rel=0.1)
    assert along[2] == pytest.approx(2 * along[0], rel=0.1)
    assert along[3] < 0.1 * along[0]
    across = read(3.0 + np.array([[0.8, 0.0, -0.6, 0.0], [0.0, 1.0, 0.0, 0.0]]))  # type: ignore[operator]
    assert np.all(across < 0.1 * along[0])


def test_the_quadratic_score_is_the_log_likelihood_ratio_of_two_gaussians() -> None:
    rng = np.random.default_rng(0)
    spread, shift = np.array([3.0, 0.5, 1.0]), np.array([0.0, 0.0, 1.0])
    right = rng.normal(size=(40_000, 3))
    left = spread * rng.normal(size=(40_000, 3)) + shift
    read = _found(left, right)["quadratic score in 3 directions"]
    x = rng.normal(size=(200, 3))
    exact = (x**2 / 2 - ((x - shift) / spread) ** 2 / 2).sum(axis=1)
    score = read(x)  # type: ignore[operator]
    assert np.corrcoef(score, exact)[0, 1] > 0.999
    assert np.polyfit(score, exact, 1)[0] == pytest.approx(1.0, rel=0.05)


def test_values_do_not_depend_on_the_batch() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, 3000, 20))
    left[:, :6] *= np.arange(2, 8)
    gappy = np.where(rng.random((50, 20)) < 0.1, np.nan, rng.normal(size=(50, 20)) * 1e3)
    found = _found(left, right)
    assert len(found) == 3
    for read in found.values():
        whole = read(gappy)  # type: ignore[operator]
        assert np.all(np.isfinite(whole))
        alone = np.concatenate([read(row[None]) for row in gappy])  # type: ignore[operator]
        np.testing.assert_array_equal(alone, whole)


@pytest.mark.parametrize("k", [2, 20, 100])
def test_equal_spreads_have_no_directions(k: int) -> None:
    """Check that equal spreads give no directions.

    The limit is far beyond the fluctuations of the extreme eigenvalues, and the seed is fixed.
    """
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(k, k))
    for size in (4 * k + 50, 6000):
        left, right = (rng.normal(size=(size, k)) @ mixing for _ in range(2))
        assert _found(left + 1.0, right) == {}


def test_degenerate_coordinates_are_no_trouble() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 500, 3))
    x[:, :, 1] = x[:, :, 0]  # equal coordinates
    x[:, :, 2] = 7.0
    assert _found(x[0], x[1]) == {}
    assert _found(np.full((500, 2), np.nan), np.zeros((500, 2))) == {}
    assert _found(x[0][:30], x[1][:30]) == {}
