"""Relations between coordinates, compared with plain Python, row by row."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.events.encoding import Column
from dpaudit.events.features import YesNo, relations

Floats = NDArray[np.float64]
NAN = math.nan
K = 5
ROWS = [
    [1.0, 2.0, 3.0, 4.0, 5.0],
    [5.0, 1.0, 5.0, 1.0, 5.0],
    [NAN, 3.0, NAN, 3.5, 2.0],
    [NAN] * 5,
    [0.0, -1.0, -1.0, 7.0, NAN],
]


def _found(left: Floats, right: Floats, columns: list[int] | None = None) -> dict[str, list[float]]:
    every = [Column(f"x{j}") for j in range(K)]
    chosen = np.arange(K) if columns is None else np.array(columns)
    rows = np.array(ROWS)
    return {c.name: read(rows).tolist() for c, read, _ in relations(every, chosen, left, right)}


def _noise(seed: int) -> Floats:
    return np.random.default_rng(seed).normal(size=(3000, K))


def test_equality_is_found_and_counted() -> None:
    left = _noise(0)
    left[::3, 4] = left[::3, 1]
    found = _found(left, _noise(1))
    assert found["number of coordinates equal to another"] == [0, 3, 0, 0, 1]
    assert found["x1 equals x4"] == [0, 0, 0, 0, 0]
    assert found["smallest gap between two coordinates"][:3] == [1.0, 0.0, 0.5]
    assert not {"x0 equals x1", "x2 equals x3"} & set(found)


def test_order_is_found() -> None:
    found = _found(np.sort(_noise(0), axis=1), _noise(1))
    ascents = [sum(b > a for a, b in itertools.pairwise(row)) for row in ROWS]
    assert found["number of coordinates above the one before"] == ascents
    smallest = [0, 1, 4, 0, 1]  # the first of equal values, or 0 without values
    assert found["position of the smallest coordinate"] == smallest


def test_correlated_pairs_are_found_by_their_difference_and_sum() -> None:
    left = _noise(0)
    left[:, 3] = 0.9 * left[:, 0] + 0.4 * left[:, 3]
    found = _found(left, _noise(1))
    np.testing.assert_array_equal(found["x0 - x3"], [a - d for a, _, _, d, _ in ROWS])
    np.testing.assert_array_equal(found["x0 + x3"], [a + d for a, _, _, d, _ in ROWS])


def test_other_columns_are_left_alone() -> None:
    left = _noise(0)
    left[:, 4] = left[:, 1]
    assert _found(left, _noise(1), columns=[0, 2, 3]) == {}


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_independent_coordinates_have_no_relations(shift: float) -> None:
    """Check that independent coordinates have no relations.

    Each of about 20 tests gives a false alarm with probability below 1e-4. The seeds are fixed.
    """
    assert _found(_noise(0) + shift, _noise(1)) == {}


def test_few_draws_are_not_looked_at() -> None:
    left = np.repeat(_noise(0)[:50, :1], K, axis=1)
    assert _found(left, _noise(1)[:50]) == {}


def test_words_of_yes_and_no() -> None:
    assert [YesNo("a").words(v) for v in (1.0, 0.0, NAN)] == ["yes", "no", "no answer"]
