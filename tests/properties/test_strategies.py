"""Tests that the strategies draw from the named classes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.errors import InvalidArgument

from dpaudit import ArgumentError, Relation
from dpaudit.properties import strategies


@given(strategies.user_data(n_users=(2, 4), m=3, d=2, bound=5.0))
def test_datasets_have_the_shape_and_the_bound(data):
    assert data.shape[1:] == (3, 2)
    assert 2 <= len(data) <= 4
    assert np.abs(data).max() <= 5


def test_special_values_and_repeated_users_occur():
    seen = {"nan": 0, "inf": 0, "twice": 0}

    @settings(max_examples=300, database=None)
    @given(strategies.user_data(n_users=3, special=True))
    def look(data):
        seen["nan"] += bool(np.isnan(data).any())
        seen["inf"] += bool(np.isinf(data).any())
        seen["twice"] += len(np.unique(data)) < 3

    look()
    assert min(seen.values()) > 10


@pytest.mark.slow
def test_users_may_lack_items_and_be_empty():
    seen = {"empty": 0, "some": 0, "full": 0}

    @settings(max_examples=300, database=None)
    @given(strategies.neighbor_pairs(n_users=(1, 3), m=(1, 4), d=2, missing=True))
    def look(pair):
        for data in (pair.left, pair.right):
            lost = np.isnan(data)
            assert (
                lost.all(axis=2) == lost.any(axis=2)
            ).all()  # an item is present or missing as a whole
            assert (
                np.diff(lost[..., 0].astype(int), axis=1) >= 0
            ).all()  # the last items are missing
            counts = (~lost[..., 0]).sum(axis=1)
            seen["empty"] += bool((counts == 0).any())
            seen["full"] += bool((counts == data.shape[1]).any())
            seen["some"] += bool(((counts > 0) & (counts < data.shape[1])).any())

    look()
    assert min(seen.values()) > 30


@pytest.mark.parametrize("relation", [Relation.REPLACE_USER, Relation.ADD_REMOVE_USER])
def test_pairs_differ_in_one_user(relation):
    @given(strategies.neighbor_pairs(n_users=(1, 4), m=2, relation=relation))
    def look(pair):
        assert pair.relation == relation
        if relation is Relation.REPLACE_USER:
            others = np.arange(len(pair.left)) != pair.user
            assert (pair.left[others] == pair.right[others]).all()
        else:
            assert abs(len(pair.left) - len(pair.right)) == 1

    look()


@pytest.mark.parametrize(
    "make",
    [
        lambda: strategies.user_data(n_users=0),
        lambda: strategies.user_data(n_users=(3, 2)),
        lambda: strategies.user_data(bound=0.0),
        lambda: strategies.user_data(m=0),
        lambda: strategies.neighbor_pairs(relation=Relation.WITHIN_SENSITIVITY),
    ],
)
def test_bad_arguments_are_refused_when_drawn(make):
    @given(make())
    def draw(_):
        pass

    with pytest.raises((ArgumentError, InvalidArgument)):
        draw()
