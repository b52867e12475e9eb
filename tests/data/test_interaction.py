"""Datasets of every form together with the strategy of an adversary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit import NeighborPair, Relation, Strategy
from dpaudit.data import Interaction, digest, handed, unpacked, words_of_data
from dpaudit.errors import PairError
from dpaudit.neighbors import shrink

ONE, OTHER = Strategy("one", len), Strategy("other", len)
FRAME = pd.DataFrame({"id": [7, 7, 8], "paid": [1.5, 2.0, 9.0]})
PAIRS = {
    "array": NeighborPair([[0.0], [1.0]], [[0.0], [5.0]]),
    "removed": NeighborPair([[0.0], [1.0]], [[0.0]], relation=Relation.ADD_REMOVE_USER),
    "list": NeighborPair([[1, 2], [3]], [[1, 2], [4]]),
    "frame": NeighborPair.from_frame(FRAME, user="id", drop=7),
    "dict": NeighborPair({"a": [[0.0]], "b": 3}, {"a": [[1.0]], "b": 3}),
    "value": NeighborPair("yes", "no", relation=Relation.LOCAL),
    "object": NeighborPair({1, 2}, {1, 3}, differ=lambda left, right: [2]),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_strategy_changes_nothing_but_the_data_that_a_mechanism_gets(name: str) -> None:
    plain = PAIRS[name]
    pair = plain.facing(ONE)
    assert isinstance(pair.left, Interaction)
    assert pair.left.strategy is ONE
    assert digest(pair.left.data) == digest(plain.left)
    facts = ("users", "user", "relation", "is_null", "shifts_others")
    assert [getattr(pair, fact) for fact in facts] == [getattr(plain, fact) for fact in facts]
    assert pair.recipe == f"one ({plain.recipe})"
    assert pair.describe() == plain.describe().replace(plain.recipe, pair.recipe, 1)
    assert pair.form.words(pair.left) == plain.form.words(plain.left)
    assert words_of_data(pair.left) == words_of_data(plain.left)
    assert digest(pair.swapped().left) == digest(pair.right)


@pytest.mark.parametrize("name", PAIRS)
def test_a_mechanism_cannot_change_the_data_of_an_interaction(name: str) -> None:
    pair = PAIRS[name].facing(ONE)
    given = handed(pair.left)
    assert given.strategy is ONE
    assert type(given.data) is type(handed(PAIRS[name].left))
    if isinstance(given.data, list | set | dict):
        given.data.clear()
        assert digest(pair.left.data) == digest(PAIRS[name].left)


def test_digests_depend_on_the_strategy_and_the_data() -> None:
    pair = PAIRS["array"]
    sides = {digest(pair.facing(s).left) for s in (ONE, OTHER)}
    assert len(sides | {digest(pair.left), digest(pair.facing(ONE).right)}) == 4


def test_both_sides_need_the_same_strategy() -> None:
    left, right = np.zeros((2, 1)), np.ones((2, 1))
    for other in (Interaction(right, OTHER), right):
        with pytest.raises(PairError, match="must be interactions with the same strategy"):
            NeighborPair(Interaction(left, ONE), other)
    with pytest.raises(PairError):  # two users differ
        NeighborPair(Interaction(left, ONE), Interaction(right, ONE))


def test_a_smaller_pair_keeps_the_strategy() -> None:
    left = np.arange(12.0).reshape(4, 3)
    right = np.vstack([left[:3], [[9.0, 9.0, 5.0]]])
    pair = NeighborPair(left, right)
    found = shrink(pair.facing(ONE), lambda one: bool(one.left.data.sum() != one.right.data.sum()))
    assert found.left.strategy is ONE
    assert found.right.strategy is ONE
    assert found.left.data.shape == found.right.data.shape == (2, 1)


@pytest.mark.parametrize("name", ["array", "removed", "list", "frame", "dict", "value"])
def test_the_data_of_an_interaction_can_be_stored(name: str) -> None:
    pair: Any = PAIRS[name].facing(ONE)
    packed = pair.form.packed(pair.left)
    assert digest(unpacked(packed)) == digest(PAIRS[name].left)


def test_data_without_a_digest_have_none_in_an_interaction() -> None:
    class Opaque:
        def __init__(self, value: int) -> None:
            self.value, self.function = value, lambda: value

    pair = NeighborPair(Opaque(0), Opaque(1), differ=lambda left, right: [0]).facing(ONE)
    assert digest(pair.left) == b""
    assert not pair.is_null
