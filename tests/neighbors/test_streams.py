"""Pairs of streams differ only within their window, at every important place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit import NeighborPair, Relation, neighbors
from dpaudit.errors import ArgumentError, PairError


@pytest.mark.parametrize(("steps", "window"), [(2, 1), (8, 1), (8, 3), (5, 5), (33, 2)])
@pytest.mark.parametrize("dim", [None, 2])
def test_pairs_differ_only_within_the_window(steps: int, window: int, dim: int | None) -> None:
    made = neighbors.streams(steps, window=window, dim=dim, low=-1.0, high=2.0)
    relation = Relation.REPLACE_USER if window == 1 else Relation.REPLACE_USER.of_window(window)
    for pair in made.pairs:
        assert pair.relation == relation
        assert pair.left.shape == ((steps,) if dim is None else (steps, dim))
        assert max(pair.users) - min(pair.users) < window
        assert set(np.unique([pair.left, pair.right])) <= {-1.0, 2.0}
    starts = {min(pair.users) for pair in made.pairs}
    assert {0, steps - window} <= starts


def test_windows_begin_where_the_blocks_of_a_tree_begin() -> None:
    starts = {min(pair.users) for pair in neighbors.streams(32).pairs}
    assert {0, 1, 3, 4, 7, 8, 15, 16, 31} <= starts


def test_whole_numbers_stay_whole() -> None:
    assert neighbors.streams(4, low=0, high=3).pairs[0].left.dtype == np.int64


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"steps": 1}, "steps"),
        ({"steps": 4, "window": 5}, "window must be an integer from 1 to steps = 4, got 5"),
        ({"steps": 4, "window": 0}, "window"),
        ({"steps": 4, "dim": 0}, "dim"),
        ({"steps": 4, "low": 1.0, "high": 0.0}, "low"),
        ({"steps": 4, "low": float("nan")}, "low"),
        ({"steps": 10**9}, "steps"),
    ],
)
def test_bad_arguments_are_refused_by_name(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        neighbors.streams(**given)


def test_rows_outside_the_window_are_refused() -> None:
    left, right = np.zeros(6), np.zeros(6)
    right[[1, 4]] = 1.0
    within = Relation.REPLACE_USER.of_window(3)
    with pytest.raises(PairError, match="within 3 consecutive rows, got differences from row 1"):
        NeighborPair(left, right, relation=within)
    right[4], right[3] = 0.0, 1.0
    assert NeighborPair(left, right, relation=within).users == (1, 3)


def test_more_rows_than_the_window_are_refused() -> None:
    left, right = np.zeros(6), np.ones(6)
    with pytest.raises(PairError, match="differ in up to 3 users only"):
        NeighborPair(left, right, relation=Relation.REPLACE_USER.of_window(3))


def test_names_of_users_are_no_rows() -> None:
    left = pd.DataFrame({"id": [5, 9, 1, 6], "x": [0.0, 0.0, 0.0, 0.0]})
    right = left.assign(x=[1.0, 0.0, 0.0, 1.0])
    with pytest.raises(PairError, match="must be an array or a list with one row for each time"):
        NeighborPair(left, right, by="id", relation=Relation.REPLACE_USER.of_window(2))
