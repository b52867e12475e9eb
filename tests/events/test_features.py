"""Features compared with plain Python, row by row, including gaps."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpaudit.events.encoding import Encoder
from dpaudit.events.features import MAX_COORDINATES, all_features

Floats = NDArray[np.float64]
Row = list[float]
NAN = math.nan


def _seen(row: Row) -> Row:
    return [x for x in row if not math.isnan(x)]


def _zeroed(row: Row) -> Row:
    return [0.0 if math.isnan(x) else x for x in row]


def _find(row: Row, wanted: Callable[[float], bool]) -> float:
    return next((float(i) for i, x in enumerate(row) if wanted(x)), NAN)


def _rfind(row: Row, wanted: Callable[[float], bool]) -> float:
    return len(row) - 1 - _find(row[::-1], wanted)


def _rank(row: Row, rank: int) -> float:
    ordered = sorted(_seen(row))
    return ordered[rank] if rank < len(ordered) else NAN


VECTORS: dict[str, Callable[[Row], float]] = {
    "mean of coordinates": lambda r: sum(_zeroed(r)) / len(r),
    "L1 norm": lambda r: sum(map(abs, _zeroed(r))),
    "L2 norm": lambda r: math.hypot(*_zeroed(r)),
    "largest absolute coordinate": lambda r: max(map(abs, _zeroed(r))),
    "position of the largest coordinate": lambda r: (
        float(r.index(max(_seen(r)))) if _seen(r) else 0.0
    ),
    "number of missing answers": lambda r: float(len(r) - len(_seen(r))),
    "position of the first value": lambda r: _find(r, lambda x: not math.isnan(x)),
    "first value": lambda r: next(iter(_seen(r)), NAN),
    **{
        f"order statistic {k + 1} of 4": lambda r, k=k: _rank(r, k)  # type: ignore[misc]
        for k in range(4)
    },
    **{f"coordinate {j}": lambda r, j=j: r[j] for j in range(4)},  # type: ignore[misc]
}
STREAMS: dict[str, Callable[[Row], float]] = {
    "number of yes": lambda r: float(r.count(1.0)),
    "position of the first yes": lambda r: _find(r, lambda x: x == 1),
    "position of the last yes": lambda r: _rfind(r, lambda x: x == 1),
    "position of the first no": lambda r: _find(r, lambda x: x == 0),
    "position of the last no": lambda r: _rfind(r, lambda x: x == 0),
    "number of missing answers": lambda r: float(len(r) - len(_seen(r))),
    **{f"coordinate {j}": lambda r, j=j: r[j] for j in range(4)},  # type: ignore[misc]
}


def _compare(rows: list[Row], expected: dict[str, Callable[[Row], float]]) -> set[str]:
    encoded = np.array(rows)
    names = set()
    for feature in all_features(Encoder.learn(encoded), encoded, encoded[::-1] + 0.0):
        if feature.name in expected:
            names.add(feature.name)
            np.testing.assert_allclose(
                feature(encoded),
                [expected[feature.name](row) for row in rows],
                rtol=1e-12,
                atol=1e-12,
                err_msg=feature.name,
            )
    return names


values = st.floats(-5, 5).map(lambda x: round(x, 3))
gappy = st.one_of(values, st.just(NAN))


@given(st.lists(st.lists(gappy, min_size=4, max_size=4), min_size=1, max_size=6))
def test_vector_features_are_those_of_plain_loops(rows: list[Row]) -> None:
    fixed = [[1.5, 2.5, 3.5, NAN], [NAN] * 4, [-1.5, 2.0, NAN, 7.0], [0.5, 0.25, 2.0, 3.0]]
    assert _compare([*rows, *fixed], VECTORS) == set(VECTORS)


@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 1.0, NAN]), min_size=4, max_size=4), min_size=1, max_size=6
    )
)
def test_stream_features_are_those_of_plain_loops(rows: list[Row]) -> None:
    assert _compare([*rows, [NAN] * 4, [1.0, 0.0, 1.0, NAN]], STREAMS) == set(STREAMS)


def test_the_direction_of_the_difference_of_means_points_from_right_to_left() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.normal([1, 0, 0], [1, 2, 1], (4000, 3)), rng.normal(0, [1, 2, 1], (4000, 3))
    direction = next(
        f
        for f in all_features(Encoder.learn(left), left, right)
        if f.name == "difference-of-means direction"
    )
    axes = direction(np.eye(3))
    assert axes[0] > 0.99
    assert np.linalg.norm(axes) == pytest.approx(1.0)
    assert direction(np.array([[NAN, 1.0, 0.0]])).tolist() == [pytest.approx(axes[1])]


def test_wide_outputs_keep_the_coordinates_that_differ() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(400, 200)), rng.normal(size=(400, 200))
    left[:, 150] += 2.0
    right[:, 7] = np.nan
    features = all_features(Encoder.learn(left), left, right)
    names = [f.name for f in features if f.coordinate]
    assert len(names) == MAX_COORDINATES
    assert {"coordinate 150", "coordinate 7"} <= set(names)


def test_single_and_categorical_columns_have_no_summaries() -> None:
    one = np.zeros((3, 1))
    assert [f.name for f in all_features(Encoder.learn(np.zeros(3)), one, one)] == ["output"]
    labels = np.array([["a", "x"], ["b", "y"]])
    encoder = Encoder.learn(labels)
    features = all_features(encoder, encoder(labels), encoder(labels))
    assert [(f.name, f.ordered) for f in features] == [
        ("coordinate 0", False),
        ("coordinate 1", False),
    ]


@pytest.mark.parametrize("scale", [1e160, 1e307, 1.7e308])
def test_huge_finite_outputs_give_features_without_warnings(scale: float) -> None:
    rng = np.random.default_rng(0)
    outputs = scale * rng.uniform(-1, 1, size=(50, 3))
    for feature in all_features(Encoder.learn(outputs), outputs, outputs[::-1]):
        assert feature(outputs).shape == (50,)
