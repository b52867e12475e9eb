"""Tests of the encoding of outputs as numbers, for labels, gaps, records and arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpaudit.data import object_array
from dpaudit.events.encoding import Column, Encoder, number_words


def _encode(outputs: Any, *, learn: Any = None) -> list[list[float]]:
    array = np.asarray(outputs)
    encoder = Encoder.learn(array if learn is None else np.asarray(learn))
    return encoder(array).tolist()  # type: ignore[no-any-return]


def test_numbers_booleans_and_gaps_stay_what_they_are() -> None:
    assert _encode([1, 2]) == [[1.0], [2.0]]
    assert _encode([True, False]) == [[1.0], [0.0]]
    encoded = _encode([math.nan, -0.0, 5e-324])
    assert math.isnan(encoded[0][0])
    assert encoded[1:] == [[0.0], [5e-324]]


def test_unseen_labels_share_a_code_of_their_own() -> None:
    encoded = _encode(["a", "zz", "b", "", "aa"], learn=["b", "a", "b"])
    assert encoded == [[0.0], [-1.0], [1.0], [-1.0], [-1.0]]
    assert _encode(["longer than any seen"], learn=["b"]) == [[-1.0]]
    assert _encode(["", "b"], learn=["", "b"]) == [[0.0], [1.0]]


@pytest.mark.parametrize("labels", [[b"x", b"y"], [b"\xff", b"a"], ["é", "漢"]])
def test_bytes_and_unicode_are_labels(labels: list[Any]) -> None:
    assert {row[0] for row in _encode(np.array(labels))} == {0.0, 1.0}


def test_records_become_columns_with_the_names_of_their_fields() -> None:
    records = np.array(
        [(1.5, "no", [1, 2]), (2.5, "yes", [3, 4])],
        [("x", float), ("answer", "U3"), ("pair", int, (2,))],
    )
    encoder = Encoder.learn(records)
    assert [c.name for c in encoder.columns] == ["x", "answer", "pair 0", "pair 1"]
    assert encoder(records).tolist() == [[1.5, 0, 1, 2], [2.5, 1, 3, 4]]


def test_axes_become_columns_in_order() -> None:
    outputs = np.arange(12.0).reshape(2, 2, 3)
    encoder = Encoder.learn(outputs)
    assert [c.name for c in encoder.columns][:4] == [
        "coordinate (0, 0)",
        "coordinate (0, 1)",
        "coordinate (0, 2)",
        "coordinate (1, 0)",
    ]
    assert encoder(outputs).tolist() == outputs.reshape(2, 6).tolist()
    assert [c.name for c in Encoder.learn(np.zeros((2, 2))).columns] == [
        "coordinate 0",
        "coordinate 1",
    ]
    assert [c.name for c in Encoder.learn(np.zeros(2)).columns] == ["output"]


def test_values_in_words() -> None:
    column = Column("output", ("no", "yes"))
    assert [column.words(v) for v in (0.0, 1.0, -1.0, math.nan)] == [
        "'no'",
        "'yes'",
        "any other label",
        "no answer",
    ]
    assert [number_words(v) for v in (3.0, -0.0, 0.123456, 1e20, 2.0**53)] == [
        "3",
        "0",
        "0.123",
        "1e+20",
        "9.01e+15",
    ]


def test_infinite_numbers_have_words_too() -> None:
    assert number_words(math.inf) == "inf"
    assert number_words(-math.inf) == "-inf"


@pytest.mark.parametrize("dtype", [bool, np.int16, np.uint64, np.float32, float])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3)])
def test_numbers_of_one_shape_are_encoded_as_cell_by_cell(dtype: Any, shape: Any) -> None:
    outputs = np.random.default_rng(0).integers(0, 2, size=(4, *shape)).astype(dtype)
    encoder = Encoder.learn(outputs)
    rows = object_array([np.array(row, dtype=float) for row in outputs])  # forces the slow path
    assert np.array_equal(encoder(outputs), encoder(rows))
    assert encoder(outputs).dtype == np.float64
