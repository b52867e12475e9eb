"""Tests that pairs keep all other users in place, so the order of rows alone reveals nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from dpaudit import NeighborPair, PureDP, Relation, Verdict, audit, neighbors, one_draw
from dpaudit.neighbors import Schema, SearchSpace

Array = NDArray[Any]
REMOVE = Relation.ADD_REMOVE_USER
BOTH = (REMOVE, Relation.REPLACE_USER)
COLUMNS = {"id": [1, 2, 2, 3, 4], "paid": [0.1, 0.9, 0.2, 0.8, 0.5]}


def rows_released(frame: Any, *, rng: Generator) -> Array:
    """Release eight rows with noise that makes each row 1-DP.

    Missing rows are 0.
    """
    values = np.clip(np.asarray(frame["paid"], dtype=float), 0, 1)
    released = np.zeros(8)
    released[: len(values)] = values[:8]
    return np.asarray(released + rng.laplace(size=8))


def users_released(data: Any, size: int, *, rng: Generator) -> Array:
    """Release one number for each of eight users, with noise that makes each number 1-DP."""
    released = np.zeros(8)
    values = [float(np.clip(np.mean(held), 0, 1)) if len(held) else 0.0 for held in data]
    released[: len(values)] = values[:8]
    return np.asarray(released + rng.laplace(size=(size, 8)))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(
    ("change", "left", "right"),
    [
        ({"replace": {1: {"paid": 0.7}}}, COLUMNS["paid"], [0.7, 0.9, 0.2, 0.8, 0.5]),
        ({"replace": {2: {"paid": [0.3, 0.4]}}}, COLUMNS["paid"], [0.1, 0.3, 0.4, 0.8, 0.5]),
        ({"replace": {2: {"paid": 0.3}}}, [0.1, 0.9, 0.8, 0.5, 0.2], [0.1, 0.3, 0.8, 0.5]),
        ({"replace": {1: {"paid": [0.3, 0.4]}}}, COLUMNS["paid"], [0.3, 0.9, 0.2, 0.8, 0.5, 0.4]),
        ({"drop": 2}, [0.1, 0.8, 0.5, 0.9, 0.2], [0.1, 0.8, 0.5]),
        ({"drop": 4}, COLUMNS["paid"], [0.1, 0.9, 0.2, 0.8]),
        ({"drop": [1, 3]}, [0.9, 0.2, 0.5, 0.1, 0.8], [0.9, 0.2, 0.5]),
        (
            {"drop": 1, "replace": {1: {"paid": [0.3, 0.4]}}},
            [0.9, 0.2, 0.8, 0.5, 0.3, 0.4],
            [0.9, 0.2, 0.8, 0.5],
        ),
    ],
)
def test_other_rows_of_a_frame_keep_their_places(
    make: Any, change: dict[str, Any], left: list[float], right: list[float]
) -> None:
    pair = NeighborPair.from_frame(make(COLUMNS), user="id", **change)
    assert (list(pair.left["paid"]), list(pair.right["paid"])) == (left, right)
    assert not pair.shifts_others
    moved = left != COLUMNS["paid"] and len(change) == 1
    assert pair.recipe.endswith(", rows without a counterpart last") is moved


@pytest.mark.slow
def test_a_correct_release_of_rows_is_not_refuted() -> None:
    frame = pd.DataFrame({"id": range(8), "paid": [0.0, 1.0] * 4})
    mechanism = one_draw(rows_released)
    for change in ({"replace": {0: {"paid": 1.0}}}, {"drop": 0}, {"drop": 3}):
        pair = NeighborPair.from_frame(frame, user="id", **change)
        found = audit(mechanism, PureDP(1.0), pair, draws=500, seed=1, mutants=None)
        assert found.verdict is not Verdict.REFUTED
    shifted = NeighborPair(frame, frame[frame["id"] != 0], relation=REMOVE, by="id")
    found = audit(mechanism, PureDP(1.0), shifted, draws=500, seed=1, mutants=None)
    assert found.verdict is Verdict.REFUTED  # the shifted pair is the control
    assert any("other positions on the two sides" in note for note in found.notes)


def spaces(relation: Relation) -> list[SearchSpace]:
    ready = neighbors.outlier, neighbors.clusters, neighbors.edge, neighbors.which_user
    made = [space(n_users=9, relation=relation) for space in ready]
    return [*made, neighbors.which_batch(n_users=9, batch_size=4, relation=relation)]


def pairs_of(where: Any) -> list[NeighborPair]:
    rng = np.random.default_rng(3)
    found = list(getattr(where, "pairs", ()))
    for space in getattr(where, "spaces", (where,)):
        for point in rng.random((30, len(space.ranges))):
            try:
                found.append(space.pair(space.at(point), rng=rng))
            except ValueError:  # there is no pair at this point
                continue
    return found


WORDS = np.array(["a", "b", "a", "c"])
FRAME = pd.DataFrame(
    {"id": [1, 1, 2, 3, 1], "paid": [0.1, 0.9, 0.2, 0.8, 0.4], "shop": list("abaca")}
)
SCHEMA = {"age": (0, 90), "shop": ["a", "b", "c"]}


@pytest.mark.sampled
@pytest.mark.parametrize("relation", BOTH)
def test_no_pair_that_dpaudit_makes_shifts_other_users(relation: Relation) -> None:
    held: list[Any] = spaces(relation)
    for data in (None, WORDS, np.arange(12.0).reshape(4, 3), np.eye(3)[:, :, None]):
        held.append(neighbors.portfolio(data).under(relation))
    held.append(neighbors.portfolio(FRAME, schema=neighbors.Schema(user="id")).under(relation))
    for kind in ("pandas", "polars", "dicts"):
        held.append(neighbors.portfolio(schema=Schema(SCHEMA, frame=kind)).under(relation))
    recipes = neighbors.far_user, neighbors.clip_boundary_user, neighbors.two_clusters
    found = [recipe(n_users=5, relation=relation) for recipe in recipes]
    found.append(neighbors.threshold_decider(n_users=5, threshold=2, relation=relation))
    found.append(neighbors.majority_flip(n_users=5, relation=relation))
    found += [pair for where in held for pair in pairs_of(where)]
    assert len(found) > 500
    assert not [pair for pair in found if pair.shifts_others]


def test_pairs_that_shift_other_users_are_known() -> None:
    lists = [[1.0], [2.0, 3.0], [4.0]]
    arrays = np.array(lists[0] + lists[2] + [7.0])
    held: list[tuple[Any, Any]] = [
        (lists, lambda at: lists[:at] + lists[at + 1 :]),
        (arrays, lambda at: np.delete(arrays, at)),
        ({"x": arrays}, lambda at: {"x": np.delete(arrays, at)}),
    ]
    for data, without in held:
        assert NeighborPair(data, without(0), relation=REMOVE).shifts_others
        assert not NeighborPair(data, without(2), relation=REMOVE).shifts_others
    assert not NeighborPair(lists, [[1.0], [9.0], [4.0]]).shifts_others


@pytest.mark.slow
@pytest.mark.parametrize("relation", BOTH)
def test_a_correct_release_by_place_is_not_refuted_by_any_search(relation: Relation) -> None:
    held = neighbors.portfolio(n_users=8, m=1, low=0.0, high=1.0)
    found = audit(users_released, PureDP(1.0, relation), held, draws=3000, seed=1, mutants=None)
    assert found.verdict is not Verdict.REFUTED


def test_the_differing_rows_are_put_at_every_place() -> None:
    arrays = NeighborPair(np.arange(5.0), np.array([0.0, 9.0, 2.0, 3.0, 4.0]))
    assert [pair.user for pair in arrays.places()] == [0, 2, 3, 4]
    lists = NeighborPair([["a"], ["b"], ["c"]], [["a"], ["b"], ["d"]])
    assert [pair.user for pair in lists.places()] == [0, 1]
    frame = pd.DataFrame({"id": [1, 2, 2, 3, 4], "shop": list("abbcd")})
    two = NeighborPair.from_frame(frame, user="id", replace={2: {"shop": ["x", "y"]}})
    covered = {
        at
        for pair in [two, *two.places()]
        for at in np.flatnonzero(np.asarray(pair.left["shop"]) != np.asarray(pair.right["shop"]))
    }
    assert covered == set(range(5))
    gone = NeighborPair.from_frame(frame, user="id", drop=2)
    assert list(gone.places()) == []
