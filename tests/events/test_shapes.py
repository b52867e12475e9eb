"""Tests that outputs of several shapes become columns, and that rows keep their contents."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpaudit import NeighborPair, PureDP, audit
from dpaudit.events.encoding import Encoder, Form, row_words
from dpaudit.events.features import all_features
from dpaudit.mechanisms.outcomes import as_rows, joined, to_rows

NAN = math.nan


def _rows(*rows: list[float]) -> np.ndarray:
    found = as_rows(list(rows))
    assert found is not None
    return found


def test_arrays_of_two_shapes_get_a_length() -> None:
    left, right = np.arange(6.0).reshape(2, 3), np.arange(8.0).reshape(2, 4)
    encoder = Encoder.learn(left, right)
    assert [c.name for c in encoder.columns] == ["length", *(f"coordinate {j}" for j in range(4))]
    np.testing.assert_array_equal(encoder(left)[1], [3, 3, 4, 5, NAN])
    np.testing.assert_array_equal(encoder(right)[1], [4, 4, 5, 6, 7])
    assert row_words(encoder, encoder(left)[0]) == "(0, 1, 2, -)"
    assert encoder.own.tolist() == [1, 2, 3, 4]


def test_shapes_of_as_many_cells_are_told_apart() -> None:
    left, right = np.zeros((2, 2, 3)), np.zeros((2, 3, 2))
    encoder = Encoder.learn(left, right)
    assert [c.name for c in encoder.columns][:2] == ["length", "shape"]
    assert encoder.columns[1].labels == ("(2, 3)", "(3, 2)")
    assert [encoder(x)[0, :2].tolist() for x in (left, right)] == [[6.0, 0.0], [6.0, 1.0]]
    assert encoder(np.zeros((1, 6)))[0, :2].tolist() == [6.0, -1.0]


def test_rows_are_padded_and_what_lies_beyond_is_left_out() -> None:
    rows = _rows([1.0, 2.0], [], [3.0])
    encoder = Encoder.learn(rows)
    np.testing.assert_array_equal(encoder(rows), [[2, 1, 2], [0, NAN, NAN], [1, 3, NAN]])
    np.testing.assert_array_equal(encoder(_rows([7.0, 8.0, 9.0]))[0], [3, 7, 8])
    np.testing.assert_array_equal(encoder(np.array([[4.0, 5.0]]))[0], [2, 4, 5])


def test_texts_of_two_shapes_are_padded_with_no_text() -> None:
    left, right = np.array([["a", "b"]]), np.array([["a", "b", "c"]])
    encoder = Encoder.learn(left, right)
    assert encoder(left)[0].tolist() == [2.0, 0.0, 0.0, 0.0]
    assert encoder.columns[-1].labels == ("", "c")


def test_values_of_rows_do_not_depend_on_the_others() -> None:
    rng = np.random.default_rng(0)
    rows = _rows(*(rng.normal(size=n).tolist() for n in rng.integers(0, 6, 40)))
    encoder = Encoder.learn(rows)
    together = encoder(rows)
    for at in range(40):
        np.testing.assert_array_equal(encoder(rows[at : at + 1])[0], together[at])


def test_the_length_is_a_feature_of_its_own() -> None:
    left, right = np.zeros((5, 3)), np.zeros((5, 4))
    encoder = Encoder.learn(left, right)
    first = all_features(encoder, encoder(left), encoder(right))[0]
    assert (first.name, first.ordered, first.learnt, first.coordinate) == (
        "length",
        True,
        False,
        False,
    )


@pytest.mark.parametrize("bad", [[["a"], ["b", "c"]], [[None]], [[[1.0], [1.0, 2.0]]], [[1j]]])
def test_only_rows_of_numbers_are_rows(bad: list[object]) -> None:
    assert as_rows(bad) is None


def test_joining_keeps_one_shape_an_array() -> None:
    assert joined([np.zeros((2, 3)), np.ones((1, 3))]).shape == (3, 3)
    mixed = joined([np.zeros((1, 3)), _rows([1.0]), np.ones(2)])
    assert [row.tolist() for row in mixed] == [[0, 0, 0], [1], 1, 1]
    assert to_rows(mixed) is mixed


@pytest.mark.parametrize("shape", [(), (1,), (2, 2)])
def test_a_shape_that_turns_up_late_is_read_by_its_first_cells(shape: tuple[int, ...]) -> None:
    form = Form.of([np.ones((5, *shape)), np.zeros((4, *shape))])
    late = to_rows(np.arange(3.0)[None] + 7)
    columns = [coordinate.values for coordinate in form.coordinates(late)]
    first = [7.0, 8.0, 9.0, np.nan][: max(int(np.prod(shape, dtype=int)), 1)]
    assert np.array_equal(np.concatenate(columns), first, equal_nan=True)


@pytest.mark.sampled
@pytest.mark.parametrize("sequential", [False, True])
def test_a_rare_second_number_ends_no_audit(sequential: bool) -> None:
    def mechanism(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        second = rng.random(size) < 1e-3
        noise = data.sum() + rng.laplace(size=size)
        return [[x, x] if two else [x] for x, two in zip(noise, second, strict=True)]

    pair = NeighborPair(np.array([[1.0]]), np.array([[0.0]]))
    for seed in range(3):
        audit(
            mechanism,
            PureDP(1.0),
            pair,
            draws=2000,
            seed=seed,
            method="sequential" if sequential else "fixed",
            mutants=None,
        )
