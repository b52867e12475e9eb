"""Smaller steps between the two datasets of a pair."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from dpaudit import NeighborPair, Relation, within_sensitivity
from dpaudit.neighbors import item_steps, removal_steps

VALUES = st.sampled_from([0.0, 1.0, -1.0, 2.5])


@given(npst.arrays(float, (3, 4), elements=VALUES), npst.arrays(float, 4, elements=VALUES))
def test_item_steps_lead_from_left_to_right(left: Any, user: Any) -> None:
    right = left.copy()
    right[1] = user
    pair = NeighborPair(left, right)
    steps = item_steps(pair)
    differing = int((left != right).sum())
    if differing < 2:
        assert steps == []
        return
    assert len(steps) == differing
    np.testing.assert_array_equal(steps[0].left, left)
    np.testing.assert_array_equal(steps[-1].right, right)
    for one, other in itertools.pairwise(steps):
        np.testing.assert_array_equal(one.right, other.left)
    assert all((step.left != step.right).sum() == 1 for step in steps)


def test_rows_of_a_frame_leave_and_come_one_by_one() -> None:
    left = pd.DataFrame({"user": [1, 2, 2, 2], "x": [0.0, 1.0, 2.0, 3.0]})
    right = pd.DataFrame({"user": [1, 2], "x": [0.0, 1.0]})
    pair = NeighborPair(left, right, by="user")
    assert [(len(step.left), len(step.right)) for step in item_steps(pair)] == [(4, 3), (3, 2)]
    absent = NeighborPair(left, right[:1], by="user", relation=Relation.ADD_REMOVE_USER)
    steps = item_steps(absent)
    assert [len(step.right) for step in steps] == [3, 2, 1]
    assert steps[-1].relation is Relation.ADD_REMOVE_USER


@pytest.mark.parametrize("is_left", [True, False])
def test_items_of_an_absent_user_become_zero_before_the_user_leaves(is_left: bool) -> None:
    held, rest = np.array([[1.0, 1.0], [2.0, 3.0]]), np.array([[1.0, 1.0]])
    sides = (held, rest) if is_left else (rest, held)
    steps = item_steps(NeighborPair(*sides, relation=Relation.ADD_REMOVE_USER))
    seen = [steps[0].left.tolist(), *(step.right.tolist() for step in steps)]
    way = [held.tolist(), [[1, 1], [0, 3]], [[1, 1], [0, 0]], rest.tolist()]
    assert seen == (way if is_left else way[::-1])


def test_items_of_lists_are_steps() -> None:
    steps = item_steps(NeighborPair([[1, 2], [3]], [[1, 2], [4, 5]]))
    assert len(steps) == 2


@pytest.mark.parametrize(
    "pair",
    [
        NeighborPair([0.0, 1.0], [0.0, 0.0], relation=within_sensitivity()),
        NeighborPair(np.ones((2, 1)), np.ones((1, 1)), relation=Relation.ADD_REMOVE_USER),
        NeighborPair({"a": 1}, {"a": 2}, differ=lambda left, right: ["a"]),
    ],
    ids=["query values", "one item", "object"],
)
def test_other_pairs_have_no_item_steps(pair: NeighborPair) -> None:
    assert item_steps(pair) == []


def test_removal_steps_go_by_way_of_an_absent_user_and_of_zeros() -> None:
    pair = NeighborPair([[1.0], [5.0]], [[1.0], [-5.0]])
    absent, zeros = removal_steps(pair)
    assert [step.relation for step in absent] == [Relation.ADD_REMOVE_USER] * 2
    assert absent[0].right.tolist() == absent[1].left.tolist() == [[1.0]]
    assert zeros[0].right.tolist() == zeros[1].left.tolist() == [[1.0], [0.0]]


def test_a_way_over_equal_data_has_one_step() -> None:
    """Check a user who has only zeros on one side."""
    _, zeros = removal_steps(NeighborPair([[1.0], [0.0]], [[1.0], [-5.0]]))
    assert len(zeros) == 1


def test_only_replaced_users_have_removal_steps() -> None:
    leaves = NeighborPair(np.zeros((2, 3)), np.zeros((1, 3)), relation=Relation.ADD_REMOVE_USER)
    assert removal_steps(leaves) == []
