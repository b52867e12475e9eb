"""Tests of the geometric median against closed forms, scipy and its own certificate."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from algorithms.geometric_median import reference
from algorithms.geometric_median.reference import geometric_median, objective, quantile_radius

TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(0.75)]])


def small_clouds(max_points: int = 8, max_dimension: int = 3):
    return st.tuples(st.integers(1, max_points), st.integers(1, max_dimension)).flatmap(
        lambda shape: arrays(float, shape, elements=st.integers(-3, 3).map(float))
    )


def test_objective_is_the_average_distance() -> None:
    data = np.array([[0.0, 0.0], [3.0, 4.0]])
    assert objective(data, [0.0, 0.0]) == 2.5
    np.testing.assert_allclose(objective(data, [[0.0, 0.0], [3.0, 0.0]]), [2.5, 3.5])
    with pytest.raises(ValueError, match="points must have 2 coordinates"):
        objective(data, [0.0])


def test_closed_forms() -> None:
    np.testing.assert_allclose(
        geometric_median(TRIANGLE).point, [0.5, math.sqrt(0.75) / 3], atol=1e-9
    )
    square = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    np.testing.assert_allclose(geometric_median(square).point, [0.5, 0.5], atol=1e-9)
    # At an angle of 120 degrees or more, the median is exactly the vertex.
    obtuse = np.array([[0.1, 0.2], [5.0, 1.0], [-5.0, 1.2]])
    found = geometric_median(obtuse)
    np.testing.assert_array_equal(found.point, obtuse[0])
    assert found.gap == 0


@pytest.mark.parametrize("copies", [1, 2, 3, 7])
def test_one_point_and_its_copies(copies: int) -> None:
    found = geometric_median(np.full((copies, 3), 0.1))
    np.testing.assert_array_equal(found.point, np.full(3, 0.1))
    assert (found.objective, found.gap, found.converged) == (0.0, 0.0, True)


def test_a_majority_in_one_place_is_the_median() -> None:
    rng = np.random.default_rng(0)
    data = np.concatenate([np.full((51, 4), 0.3), 1e6 * rng.standard_cauchy((50, 4))])
    np.testing.assert_array_equal(geometric_median(data).point, np.full(4, 0.3))


@given(values=st.lists(st.integers(-20, 20), min_size=1, max_size=9))
def test_one_dimension_is_the_median_of_numpy(values: list[int]) -> None:
    """Check that the median in one dimension is the median of numpy.

    For even n, all points between the middle two are optimal, and the midpoint is returned.
    """
    data = np.array(values, dtype=float)[:, None]
    assert geometric_median(data).point[0] == pytest.approx(np.median(values), abs=1e-12)


@given(
    values=st.lists(st.integers(-20, 20), min_size=1, max_size=9),
    direction=st.sampled_from([(3.0, 4.0), (1.0, 0.0), (-0.3, 0.7), (1e-3, 5.0)]),
)
def test_points_on_a_line(values: list[int], direction: tuple[float, float]) -> None:
    data = np.array(values, dtype=float)[:, None] * np.array(direction) + [0.5, -2.0]
    found = geometric_median(data)
    assert found.converged
    expected = np.median(values) * np.array(direction) + [0.5, -2.0]
    np.testing.assert_allclose(found.point, expected, atol=1e-9)


@given(data=small_clouds())
def test_the_certificate_is_kept(data: np.ndarray) -> None:
    found = geometric_median(data)
    assert found.converged
    assert found.gap <= 1e-10 * found.objective
    assert found.objective == pytest.approx(float(objective(data, found.point)), abs=1e-12)
    candidates = np.concatenate([data, data.mean(axis=0, keepdims=True)])
    assert found.objective - found.gap <= objective(data, candidates).min() + 1e-12


@pytest.mark.parametrize("seed", range(6))
def test_against_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = rng.standard_t(2.0, size=(rng.integers(3, 40), rng.integers(2, 6)))
    best = min(
        minimize(
            lambda x: float(objective(data, x)), start, method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 20_000, "maxfev": 20_000},
        ).fun
        for start in (data.mean(axis=0), np.median(data, axis=0))
    )  # fmt: skip
    found = geometric_median(data)
    assert found.converged
    assert found.objective <= best + 1e-9


@pytest.mark.parametrize(("scale", "shift"), [(1e100, 0.0), (1e-100, 0.0), (1.0, 1e6)])
def test_scales_and_shifts(scale: float, shift: float) -> None:
    found = geometric_median(scale * TRIANGLE + shift)
    np.testing.assert_allclose((found.point - shift) / scale, [0.5, math.sqrt(0.75) / 3], atol=1e-9)


def test_hard_cases_converge() -> None:
    """Check that hard cases converge.

    In these cases, the median is next to a data point, where plain Weiszfeld is slow.
    """
    for push in (1e-2, 1e-4, 1e-6):
        corner = math.radians(120) - push
        data = np.array([[0.0, 0.0], [1.0, 0.0], [math.cos(corner), math.sin(corner)]])
        found = geometric_median(data)
        assert found.converged
        assert found.iterations < 200
        assert np.linalg.norm(found.point) > 0


def test_the_certificate_is_honest_when_time_is_up() -> None:
    data = np.random.default_rng(1).normal(size=(30, 3))
    early = geometric_median(data, tolerance=1e-15, max_iterations=1)
    best = geometric_median(data)
    assert not early.converged
    assert early.objective - best.objective <= early.gap


def test_bad_arguments() -> None:
    for bad in ([], [[]], [1.0], [[math.nan]]):
        with pytest.raises(ValueError, match="data must"):
            geometric_median(bad)
    with pytest.raises(ValueError, match="tolerance must be positive"):
        geometric_median([[0.0]], tolerance=0.0)
    with pytest.raises(ValueError, match="max_iterations must be at least 1"):
        geometric_median([[0.0]], max_iterations=0)
    with pytest.raises(ValueError, match="fraction must be from 0 to 1"):
        quantile_radius([[0.0]], 1.1)
    with pytest.raises(ValueError, match="center must have 1 coordinates"):
        quantile_radius([[0.0]], 0.5, [0.0, 1.0])


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 100, 1000])
def test_quantile_radius_counts_exactly(n: int) -> None:
    """Check that the quantile radius counts points exactly.

    Fractions are exact as written, so 0.9 of 10 is 9 despite floating point.
    """
    data = np.arange(n, dtype=float)[:, None]
    for percent in range(101):
        needed = math.ceil(Fraction(percent, 100) * n)
        expected = 0.0 if needed == 0 else needed - 1.0
        assert quantile_radius(data, percent / 100, [0.0]) == expected
        assert quantile_radius(data, 0.01 * percent, [0.0]) == expected


def test_quantile_radius_around_the_median() -> None:
    data = np.array([[0.0], [1.0], [5.0], [6.0], [20.0]])
    assert quantile_radius(data, 0.0) == 0.0
    assert quantile_radius(data, 0.2) == 0.0
    assert quantile_radius(data, 0.4) == 1.0
    assert quantile_radius(data, 1.0) == 15.0


def test_large_data_in_blocks(monkeypatch) -> None:
    data = np.random.default_rng(2).normal(size=(50, 2))
    whole = objective(data, [0.3, 0.1])
    monkeypatch.setattr(reference, "_ROWS", 7)
    assert objective(data, [0.3, 0.1]) == pytest.approx(float(whole), rel=1e-14)


def test_points_that_are_almost_one_do_not_hold_the_iteration_back():
    """Check that the iteration converges for points that are almost equal.

    The ledger found this case. At a distance of 1e-134, every Weiszfeld step has length 1e-134.
    """
    for tiny in (1e-134, 1e-30, 1e-16):
        corner = np.array([[1.0, tiny], [0.0, 0.0], [0.0, 1.0]])
        assert reference.geometric_median(corner).converged
        twice = np.array([[1.0, 0.0], [1.0, 0.0], [tiny, 0.0], [0.0, 1.0], [0.0, 0.0]])
        found = reference.geometric_median(twice)
        assert found.converged
        assert found.point == pytest.approx([0.15819889, 0.07090056], abs=1e-6)
