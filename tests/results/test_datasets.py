"""Tests of the short description of a pair, with the differing user and the other users."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from dpaudit import NeighborPair, neighbors
from dpaudit.claims import Relation, within_sensitivity
from dpaudit.results.datasets import ITEMS, ItemRow, datasets, who_differs, words_of


def test_a_number_each_is_shown_side_by_side():
    shown = datasets(NeighborPair([[0.0], [1.0], [0.0], [0.0]], [[0.0], [0.25], [0.0], [0.0]]))
    assert shown.title == "User 1 differs"
    assert shown.items == (ItemRow("item", "1", "0.25", differs=True),)
    assert shown.left_out == ""
    assert shown.others == (
        "The datasets hold 4x1; all other users are the same, values from 0 to 0, 0 on average."
    )


def test_users_of_one_value_need_no_second_axis():
    shown = datasets(NeighborPair(np.array([1.0, 5.0]), np.array([1.0, 7.0])))
    assert shown.items == (ItemRow("item", "5", "7", differs=True),)


def test_items_that_differ_come_before_others_and_the_rest_is_counted():
    left = np.zeros((2, 100))
    right = left.copy()
    right[1, [3, 50, 99]] = [1.0, -2.5, math.inf]
    shown = datasets(NeighborPair(left, right))
    assert len(shown.items) == ITEMS
    differ = {row.name: row.right for row in shown.items if row.differs}
    assert differ == {"item 3": "1", "item 50": "-2.5", "item 99": "inf"}
    assert shown.left_out == "and 92 more items, of which 0 differ"
    right = left + np.array([[0.0], [1.0]])
    assert datasets(NeighborPair(left, right)).left_out.endswith("92 differ")


def test_an_absent_user_is_said_to_be_absent():
    data = np.array([["a"], ["b"], ["<b>&"]])
    pair = NeighborPair(data, data[:2], relation=Relation.ADD_REMOVE_USER)
    shown = datasets(pair)
    assert shown.title == "User 2 differs, absent on the right"
    assert shown.items == (ItemRow("item", "'<b>&'", "absent", differs=True),)
    assert datasets(pair.swapped()).title == "User 2 differs, absent on the left"
    assert shown.others == (
        "The datasets hold 3x1 against 2x1; all other users are the same, 2 distinct values."
    )
    first = datasets(NeighborPair(data, data[1:], relation=Relation.ADD_REMOVE_USER))
    assert first.items == (ItemRow("item", "'a'", "absent", differs=True),)


def test_records_are_shown_by_field_and_summarised_by_field():
    kind = np.dtype([("age", "i4"), ("city", "U8")])
    data = np.array([[(30 + i, f"city {i}")] for i in range(9)], dtype=kind)
    other = data.copy()
    other[4, 0] = (99, "city 4")
    shown = datasets(NeighborPair(data, other))
    assert shown.items[0].left == "(age=34, city='city 4')"
    assert shown.items[0].right == "(age=99, city='city 4')"
    assert shown.others == (
        "The datasets hold 9x1; all other users are the same (age, values from 30 to 38, 34 on "
        "average; city, 8 distinct values)."
    )


def test_query_values_have_no_others():
    near = within_sensitivity(1.0, norm="l1")
    pair = NeighborPair(np.zeros(3), np.array([0.0, 1.0, 0.0]), relation=near)
    shown = datasets(pair)
    assert shown.title == "Query values on both sides"
    assert [row.name for row in shown.items if row.differs] == ["value 1"]
    assert shown.others == ""


def test_equal_datasets_are_said_to_be_equal():
    data = np.zeros((3, 1))
    shown = datasets(NeighborPair(data, data))
    assert shown.title == "The two datasets"
    assert shown.items == ()
    assert shown.others == "Both hold 3x1."


def test_a_lonely_user_has_no_others():
    shown = datasets(NeighborPair([[0.0]], [[1.0]]))
    assert shown.others == "The datasets hold 1x1; all other users are the same."


def test_huge_datasets_are_summarised():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(20_000, 30, 2))
    other = data.copy()
    other[7] += 1
    shown = datasets(NeighborPair(data, other))
    assert "The datasets hold 20000x30x2" in shown.others
    assert "on average" in shown.others
    assert len(shown.items) == ITEMS
    assert shown.left_out == "and 22 more items, of which 22 differ"


def test_negative_zero_and_nan_are_told_apart_bit_by_bit():
    data = np.array([[0.0, math.nan], [1.0, 1.0]])
    assert not any(row.differs for row in datasets(NeighborPair(data, data)).items)
    assert words_of(np.float64(-0.0)) == "-0.0"
    assert words_of(np.float64("nan")) == "nan"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.float64(0.1) + 0.2, "0.30000000000000004"),
        (np.bool_(True), "True"),
        (np.int64(-3), "-3"),
        (np.zeros((2, 3)), "(0, 0, 0, 0, 0, 0), 2×3"),
        (np.zeros((20, 3)), "(0, 0, 0, 0, 0, 0, …, 0), 20×3 values"),
        (np.str_("x" * 500), "'" + "x" * 158 + "…"),
        (np.bytes_(b"<&>"), "b'<&>'"),
    ],
)
def test_items_are_written_in_few_words(value, words):
    assert words_of(value) == words


@given(npst.arrays(npst.scalar_dtypes(), st.integers(1, 5)))
def test_every_value_has_words(array):
    assert all(isinstance(words_of(value), str) for value in array)


@pytest.mark.parametrize("name", ["far_user", "two_clusters", "majority_flip"])
def test_recipes_of_the_house_can_be_shown(name):
    found = neighbors.pairs_from_words(f"{name}:n_users=9", rng=np.random.default_rng(0))
    for pair in neighbors.family(found):
        assert "differs" in datasets(pair).title


def test_who_differs_is_said_in_one_line():
    left = np.zeros((2, 20))
    right = left.copy()
    right[1] = 1.0
    assert who_differs(NeighborPair(left, right)) == "user 1: left 0, right 1 in item 0 and others"
    assert who_differs(NeighborPair(left[:, :3], right[:, :3])) == (
        "user 1: left 0, right 1 in all 3 items"
    )
    assert who_differs(NeighborPair(left, left)) == ""
    frame = pd.DataFrame({"who": ["v", "u differs", "a"], "paid": [1.0, 2.0, 3.0]})
    gone = NeighborPair.from_frame(frame, user="who", drop="u differs")
    assert who_differs(gone).startswith("user u differs, absent on the right: left (who='u dif")
    two = NeighborPair.from_frame(frame, user="who", drop=["v", "a"])
    assert who_differs(two).startswith("user v, one of 2, absent on the right: left ")


def test_a_rare_value_among_many_items_is_shown():
    user = np.zeros((1, 30))
    user[0, 20] = 7.0
    pair = NeighborPair(user, np.ones((1, 30)))
    assert [row.name for row in datasets(pair).items] == [f"item {i}" for i in (*range(7), 20)]
    assert "left 7, right 1 in item 20" in who_differs(pair)
