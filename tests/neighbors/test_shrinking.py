"""The reduction of a pair: exact results for known properties, and invariants for random pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit import NeighborPair, Relation, custom_relation, within_sensitivity
from dpaudit.data import form_of
from dpaudit.neighbors import shrink

Array = np.ndarray
UNIFORM = np.random.default_rng(1).uniform(0, 1, (50, 8))
LEAVES = Relation.ADD_REMOVE_USER


def replaced(user: int = 49, value: float = 0.0) -> NeighborPair:
    right = UNIFORM.copy()
    right[user] = value
    return NeighborPair(UNIFORM, right)


def total(data: Any) -> float:
    return float(sum(np.sum(user) for user in data))


def difference(pair: NeighborPair) -> float:
    return abs(total(pair.left) - total(pair.right))


# --- the smallest pair for a known property ---


def test_one_item_of_two_users_is_left_if_one_item_suffices() -> None:
    found = shrink(replaced(), lambda pair: difference(pair) > 0.4)
    assert found.left.shape == (2, 1)
    np.testing.assert_array_equal(found.left[0], 0.0)
    np.testing.assert_array_equal(found.right, 0.0)
    assert 0.4 < found.left[1, 0] <= UNIFORM.max()


def test_as_many_items_stay_as_are_needed() -> None:
    found = shrink(replaced(), lambda pair: difference(pair) > 2.5)
    assert found.left.shape == (2, 3)
    assert found.users == (1,)


def test_columns_leave_too() -> None:
    left = np.ones((4, 3, 5))
    right = left.copy()
    right[2] = 7.0
    found = shrink(NeighborPair(left, right), lambda pair: pair.right.max() == 7.0)
    assert found.left.shape == (2, 1, 1)
    assert sorted(found.right.ravel()) == [1.0, 7.0]


def test_a_user_who_leaves_an_array_stays_absent_on_one_side() -> None:
    pair = NeighborPair(UNIFORM, np.delete(UNIFORM, 7, axis=0), relation=LEAVES)
    found = shrink(pair, lambda pair: difference(pair) > 2.5)
    assert (found.left.shape, found.right.shape) == ((2, 3), (1, 3))
    assert found.relation == LEAVES
    mirrored = shrink(pair.swapped(), lambda pair: difference(pair) > 2.5)
    assert (mirrored.left.shape, mirrored.right.shape) == ((1, 3), (2, 3))


def test_the_difference_is_confined_to_the_items_that_matter() -> None:
    pair = replaced()
    found = shrink(pair, lambda pair: len(pair.left) == 50 and abs(pair.left[49, 3]) > 0.1
                   and pair.left.shape == (50, 8) and pair.right[49, 3] == 0)  # fmt: skip
    differ = found.left != found.right
    assert differ.sum() == 1
    assert differ[49, 3]


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_lose_rows_columns_and_users(library: Any) -> None:
    frame = library.DataFrame(
        {"id": [1, 2, 1, 3, 3, 4], "paid": [1.0, 2.0, 3.0, 5.5, 6.0, 7.0], "city": list("abcabc")}
    )
    pair = NeighborPair.from_frame(frame, user="id", drop=3)
    found = shrink(pair, lambda pair: "paid" in pair.left.columns
                   and abs(pair.left["paid"].sum() - pair.right["paid"].sum()) > 6.5)  # fmt: skip
    assert list(found.left.columns) == ["id", "paid"]
    assert found.left["id"].to_list() == [found.right["id"].to_list()[0], 3]
    assert found.left["paid"].to_list()[1] == 7.0  # the largest value of the column


def test_lists_lose_users_and_items_one_by_one() -> None:
    left = [[1.0, 2.0, 3.25], [3.0], [0.5, 0.5]]
    right = [[1.0, 2.0, 3.25], [3.0], [0.75, 9.5, 0.5]]
    found = shrink(NeighborPair(left, right), lambda pair: difference(pair) > 4)
    assert [len(user) for user in found.left] == [1, 1]
    assert [len(user) for user in found.right] == [1, 1]
    assert difference(found) > 4


def test_records_of_dicts_lose_entries() -> None:
    left = [[{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], [{"a": 3, "b": "z"}]]
    right = [[{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], [{"a": 0, "b": "z"}]]
    found = shrink(NeighborPair(left, right), lambda pair: pair.left[-1][0].get("a", 0) == 3)
    assert found.left[-1] == [{"a": 3}]
    assert [len(user) for user in found.left] == [1, 1]


def test_dicts_of_tables_shrink_table_by_table() -> None:
    labels = np.arange(50)
    pair = NeighborPair({"x": UNIFORM, "y": labels, "k": 3},
                        {"x": replaced().right, "y": labels, "k": 3})  # fmt: skip
    found = shrink(pair, lambda pair: abs(pair.left["x"].sum() - pair.right["x"].sum()) > 1.5)
    assert found.left["x"].shape == (2, 2)
    assert found.left["y"].tolist() == [0, 0]
    assert found.left["k"] == 3


def test_query_values_keep_within_the_sensitivity() -> None:
    relation = within_sensitivity(2.0, norm="l1")
    pair = NeighborPair(np.full(5, 3.0), np.array([2.0, 4.0, 3.0, 3.0, 3.0]), relation=relation)
    found = shrink(pair, lambda pair: np.abs(pair.left - pair.right).max() >= 1)
    assert found.left.shape == (1,)
    assert abs(found.left[0] - found.right[0]) in (1.0, 2.0)


def test_an_object_that_dpaudit_cannot_read_stays_as_it_is() -> None:
    pair = NeighborPair(object(), object(), differ=lambda left, right: [0])
    assert shrink(pair, lambda pair: True) is pair


# --- limits ---


def test_one_other_user_and_one_item_of_each_user_stay() -> None:
    found = shrink(replaced(), lambda pair: True)
    assert found.left.shape == (2, 1)
    ragged = NeighborPair([[1.0], [2.0, 5.0], [3.0]], [[1.0], [4.0], [3.0]])
    found = shrink(ragged, lambda pair: True)
    assert [len(user) for user in found.left] == [1, 1]
    alone = NeighborPair([[1.0, 2.0]], [[3.0, 4.0]])
    assert shrink(alone, lambda pair: True).left.shape == (1, 1)


def test_values_stay_in_the_range_of_their_column() -> None:
    left = np.array([[[18, 2000], [70, 3000]]])
    right = np.array([[[35, 2500], [70, 3000]]])
    seen: list[NeighborPair] = []

    def holds(pair: NeighborPair) -> bool:
        seen.append(pair)
        return bool((pair.left[..., 0] != pair.right[..., 0]).any())

    shrink(NeighborPair(left, right), holds)
    wide = [pair for pair in seen if pair.left.shape[-1] == 2]
    assert wide
    for pair in wide:
        both = np.concatenate([pair.left, pair.right])
        assert both.dtype == left.dtype
        assert both[..., 0].min() >= 18
        assert both[..., 0].max() <= 70
        assert both[..., 1].min() >= 2000
    wider = NeighborPair(np.zeros((1, 2, 2), dtype=int), right)
    found = shrink(NeighborPair(left, right), holds, domain=[wider])
    assert 0 in found.left


def test_the_reduction_ends_when_the_property_says_so() -> None:
    answers = iter([True, False, True])

    def holds(pair: NeighborPair) -> bool:
        return next(answers)  # raises StopIteration at the fourth question

    found = shrink(replaced(), holds)
    assert found.left.shape < UNIFORM.shape
    assert next(answers, None) is None


def test_a_pair_whose_sides_are_equal_is_not_asked_about() -> None:
    shrink(replaced(), lambda pair: not pair.is_null or pytest.fail("equal sides"))


@given(st.data())
def test_no_single_user_or_item_can_leave_the_smallest_pair(data: st.DataObject) -> None:
    """Check the result by trying all single removals."""
    n, m = data.draw(st.integers(2, 6)), data.draw(st.integers(1, 4))
    cells = st.integers(-3, 3)
    left = np.array(data.draw(st.lists(st.lists(cells, min_size=m, max_size=m),
                                       min_size=n, max_size=n)))  # fmt: skip
    right = left.copy()
    user = data.draw(st.integers(0, n - 1))
    right[user] = data.draw(st.lists(cells, min_size=m, max_size=m))
    pair = NeighborPair(left, right)
    limit = data.draw(st.integers(0, 8))

    def holds(pair: NeighborPair) -> bool:
        return np.abs(pair.left).sum() >= limit and difference(pair) > 0

    if not holds(pair):
        return
    found = shrink(pair, holds)
    assert holds(found)
    assert found.left.size <= left.size
    others = [at for at in range(len(found.left)) if at not in found.users]
    if len(others) > 1:
        for gone in others:
            sides = (np.delete(side, gone, axis=0) for side in (found.left, found.right))
            assert not holds(NeighborPair(*sides))
    if found.left.shape[1] > 1:
        for gone in range(found.left.shape[1]):
            sides = (np.delete(side, gone, axis=1) for side in (found.left, found.right))
            smaller = NeighborPair(*sides)
            assert smaller.is_null or not holds(smaller)


# --- parts of datasets ---

DATASETS = {
    "cube": (np.arange(12.0).reshape(2, 3, 2), None),
    "row": (np.arange(3), None),
    "texts": (np.array([["a", "b"], ["c", "d"]]), None),
    "records": (np.array([[(1, 2.0)], [(3, 4.0)]], dtype=[("k", int), ("v", float)]), None),
    "lists": ([[1.0, 2.0], [3.0], []], None),
    "scalars": ([1.0, 2.0], None),
    "tuples": (([[1, 2], [3, 4]], [[5, 6]]), None),
    "dicts": ([[{"a": 1, "b": "x"}], [{"a": 3, "b": "z"}, {"a": 4, "b": "z"}]], None),
    "pandas": (pd.DataFrame({"id": [1, 2, 1], "x": [1.0, 2.0, 3.0], "c": list("aba")}), "id"),
    "polars": (pl.DataFrame({"id": ["u", "v", "u"], "x": [1, 2, 3]}), "id"),
    "tables": ({"x": np.arange(6.0).reshape(3, 2), "y": np.array([0, 1, 0]), "k": 3}, None),
    "training": ({"X": np.zeros((2, 3, 2)), "y": np.ones((2, 3)), "age": np.ones(2)}, None),
    "frames": ({"x": pd.DataFrame({"id": [1, 2, 1], "v": [1.0, 2.0, 3.0]}),
                "y": pd.DataFrame({"id": [2, 3], "v": [5, 6]})}, "id"),
}  # fmt: skip


@pytest.mark.parametrize("name", DATASETS)
def test_parts_leave_and_cells_change_one_by_one(name: str) -> None:
    data, by = DATASETS[name]
    form = form_of(data, by=by)
    value = form.frozen(data, "left")
    before = form.digest(value)
    cells = form.cells(value)
    for part in ("users", "items", "columns"):
        labels = form.labels(value, part)
        assert len(labels) == len(set(labels))
        for label in labels:
            rest = form.without(value, [label])
            if part == "users":
                assert len(form.labels(rest, "users")) == len(labels) - 1
            is_empty = part == "users" and form.items(value, label[0]) == []
            assert len(form.cells(rest)) < len(cells) + is_empty
        assert form.digest(form.without(value, [])) == before
    for label, cell in cells.items():
        other = next(one for one in cells.values() if isinstance(one, type(cell)))
        changed = form.cells(form.filled(value, {label: other}))
        assert changed == cells | {label: other}
    assert form.digest(value) == before


def test_features_and_labels_lose_an_item_together() -> None:
    data, _ = DATASETS["training"]
    form = form_of(data)
    items = form.labels(data, "items")
    assert len(items) == 3
    rest = form.without(data, items[1:])
    assert {name: one.shape for name, one in rest.items()} == {
        "X": (2, 1, 2),
        "y": (2, 1),
        "age": (2,),
    }
    words = form.items(data, 0)
    assert words is not None
    assert [sorted(item) for item in words] == [["X", "y"]] * 3 + [["age"]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"pair": [[0.0], [1.0]]}, "pair must be a NeighborPair, got"),
        ({"holds": 3}, r"holds must be a function holds\(pair\) that returns a bool, got 3"),
        ({"domain": []}, "domain must be a list of NeighborPair objects with at least one"),
        ({"domain": [3]}, "domain must be a list of NeighborPair objects, got 3"),
        ({"domain": "pairs"}, "domain must be a list of NeighborPair objects, got"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"pair": replaced(), "holds": lambda pair: True, **arguments}
    with pytest.raises((TypeError, ValueError), match=words):
        shrink(**given)


def test_a_relation_that_fails_on_smaller_data_refuses_them() -> None:
    def check(left: Array, right: Array) -> bool:
        if len(left) < 3:
            raise RuntimeError("too few rows")
        return True

    pair = NeighborPair(UNIFORM, replaced().right, relation=custom_relation("rows", check))
    assert len(shrink(pair, lambda pair: True).left) == 3
