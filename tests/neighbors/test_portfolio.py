"""Tests of the portfolio.

The tests check its contents, its refusals, and that its pairs are neighbours in the domain.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from dpaudit import (
    ArgumentError,
    NeighborPair,
    PairError,
    PureDP,
    Relation,
    audit,
    neighbors,
    within_sensitivity,
)
from dpaudit.neighbors import Magnitude, Portfolio, Schema, portfolio

Array = NDArray[Any]

WORDS = np.array([["bus", "car"], ["car", "car"], ["foot", "bus"], ["car", "foot"]])
RECORDS = np.array([[(1, 2.0)], [(2, 3.0)], [(1, 2.0)]], dtype=[("a", "i4"), ("b", "f8")])
NUMBERS = np.random.default_rng(1).normal(size=(6, 3))
BOTH = (Relation.REPLACE_USER, Relation.ADD_REMOVE_USER)


def members(held: Portfolio, points: int = 40) -> list[NeighborPair]:
    """Return the pairs, and some pairs of each space."""
    rng = np.random.default_rng(7)
    found = list(held.pairs)
    for space in held.spaces:
        for point in rng.random((points, len(space.ranges))):
            try:
                found.append(space.pair(space.at(point), rng=rng))
            except PairError:  # the two sides are equal
                continue
    return found


SHAPES: list[tuple[dict[str, Any], tuple[int, ...], str]] = [
    ({}, (20, 8), "float64"),
    ({"n_users": 2, "m": 1}, (2, 1), "float64"),
    ({"n_users": 5, "m": 3, "dim": 2}, (5, 3, 2), "float64"),
    ({"low": 0, "high": 9}, (20, 8), "int64"),
    ({"low": 0, "high": 1}, (20, 8), "int64"),
    ({"low": 0.0, "high": 1}, (20, 8), "float64"),
    ({"low": -3.0, "high": -1.0, "m": 2}, (20, 2), "float64"),
    ({"missing": True}, (20, 8), "float64"),
    ({"like": NUMBERS}, (6, 3), "float64"),
    ({"like": NUMBERS.astype("f4")}, (6, 3), "float32"),
    ({"like": NUMBERS[:, 0]}, (6,), "float64"),
    ({"like": np.zeros((4, 2))}, (4, 2), "float64"),
    ({"like": np.zeros((4, 2, 2, 3))}, (4, 2, 2, 3), "float64"),
    ({"like": np.full((4, 2), 7, dtype="u1")}, (4, 2), "uint8"),
    ({"like": np.arange(24).reshape(4, 3, 2)}, (4, 3, 2), "int64"),
    ({"like": np.full((4, 200), 7, dtype="i1")}, (4, 200), "int8"),
    ({"like": np.array([[2**62, 5], [7, -(2**62)]])}, (2, 2), "int64"),
    ({"like": NUMBERS > 0}, (6, 3), "bool"),
    ({"like": WORDS}, (4, 2), "<U4"),
    ({"like": RECORDS}, (3, 1), str(RECORDS.dtype)),
]


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize(("arguments", "shape", "dtype"), SHAPES)
def test_all_members_are_neighbours_of_one_shape_and_dtype(
    arguments: dict[str, Any], shape: tuple[int, ...], dtype: str, relation: Relation
) -> None:
    held = portfolio(**arguments).under(relation)
    found = members(held)
    gone = relation == Relation.ADD_REMOVE_USER
    for pair in found:
        n_users = len(pair.left) if pair in held.small else shape[0]
        assert pair.relation == relation
        assert pair.left.shape == (n_users, *shape[1:])
        assert pair.right.shape == (n_users - gone, *shape[1:])
        assert str(pair.left.dtype) == str(pair.right.dtype) == dtype
        assert not pair.is_null
        assert pair.user is not None
        assert not pair.shifts_others
    if shape[0] > 2 and not gone:
        assert {0, shape[0] - 1} <= {pair.user for pair in found}, "first and last in the order"
    sizes = [len(pair.left) for pair in held.small]
    of_data = [2] * gone if "like" in arguments else [1, 2, 3, 4]
    assert sizes == ([] if "n_users" in arguments else of_data)


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize(
    ("arguments", "low", "high"),
    [
        ({"low": 0.0, "high": 1.0}, 0.0, 1.0),
        ({"low": -3.5, "high": -1.0, "dim": 2}, -3.5, -1.0),
        ({"low": 0, "high": 1}, 0, 1),
        ({"like": NUMBERS}, NUMBERS.min(), NUMBERS.max()),
        ({"like": np.arange(12).reshape(4, 3)}, 0, 11),
        ({"like": NUMBERS, "low": -9.0, "high": 9.0}, -9.0, 9.0),
    ],
)
def test_a_declared_domain_is_kept_and_used_up(
    arguments: Any, low: float, high: float, relation: Relation
) -> None:
    found = members(portfolio(**arguments).under(relation))
    both = [side for pair in found for side in (pair.left, pair.right) if side.size]
    assert min(side.min() for side in both) == low
    assert max(side.max() for side in both) == high


def test_an_open_domain_has_many_magnitudes_of_both_signs() -> None:
    found = members(portfolio())
    users = np.concatenate([np.abs(pair.left[pair.user]).ravel() for pair in found])
    sizes = np.floor(np.log10(users[users > 0]))
    assert {-2, -1, 0, 1, 2, 6} <= set(sizes.astype(int).tolist())
    assert min(pair.left.min() for pair in found) == -100


def recipes(held: Portfolio) -> set[str]:
    return {pair.recipe.partition("(")[0] for pair in held.pairs}


def test_every_idea_is_there() -> None:
    usual = {"across", "lone_user", "halves", "leaves_crowd", "one_item", "mixed_items", "place"}
    usual |= {"rare_value", "many_values", "spread", "few_users", "opposite_items"}
    assert recipes(portfolio()) == usual
    assert recipes(portfolio(missing=True)) == usual | {"empty_user", "missing_item", "only_user"}
    assert recipes(portfolio(dim=2)) == usual | {"one_axis", "opposite_axes"}
    assert recipes(portfolio(m=1)) == usual - {
        "one_item", "mixed_items", "opposite_items", "many_values",
    }  # fmt: skip
    ready = [space.name.partition("(")[0] for space in portfolio().spaces]
    assert ready == [
        "holders", "edge", "outlier", "clusters", "some_items", "which_user", "which_batch"
    ]  # fmt: skip
    around = [space.name for space in portfolio(NUMBERS).spaces[:3]]
    assert around == ["extreme", "copied", "placed"]
    of_words = [space.name for space in portfolio(WORDS).spaces]
    assert of_words == ["extreme", "copied", "seen", "holders"]
    guide = Path(__file__).parents[2] / "docs" / "guides" / "search.md"
    rows = [line for line in guide.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    explained = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    every = recipes(portfolio(missing=True)) | recipes(portfolio(dim=2)) | {*ready, *around}
    assert explained == every | {*of_words}


def test_items_move_in_opposite_directions() -> None:
    """Check for the pairs that show too little noise of a selection: one item gains, others lose.

    The report of a noisy maximum of m columns leaks twice as much on such a pair as on a pair in
    which all columns move in one direction.
    """
    held = portfolio(m=5, low=0.0, high=1.0).under(Relation.REPLACE_USER)
    moves = {tuple(p.left[-1] - p.right[-1]) for p in held.pairs if p.left.shape == p.right.shape}
    assert {(1, -1, -1, -1, -1), (1, 1, -1, -1, -1)} <= moves


def test_halves_leave_the_balance_to_the_user() -> None:
    """Check that one user decides the median in pairs of halves.

    One user decides the median for even and odd numbers of users, however ties are broken.
    """
    for n_users in (9, 10):
        held = portfolio(n_users=n_users, m=1).under(Relation.REPLACE_USER)
        halves = [p for p in held.pairs if p.recipe.startswith("halv")]
        gaps = {int((p.left > 0).sum() - (p.right > 0).sum()) for p in halves}
        assert gaps == {1}
        for at in ((n_users - 1) // 2, n_users // 2):  # the lower and the upper median
            medians = {tuple(np.sort(s[:, 0])[at] for s in (p.left, p.right)) for p in halves}
            assert any(left != right for left, right in medians)


@pytest.mark.parametrize("relation", BOTH)
def test_around_given_data_all_others_stay_as_they_are(relation: Relation) -> None:
    held = portfolio(NUMBERS).under(relation)
    users = set()
    for space in held.spaces[:3]:
        for point in np.random.default_rng(3).random((60, len(space.ranges))):
            try:
                pair = space.pair(space.at(point), rng=np.random.default_rng(0))
            except PairError:  # the item is the lowest already
                continue
            others = np.delete(pair.left, pair.user, axis=0)
            kept = [np.array_equal(others, np.delete(NUMBERS, at, axis=0)) for at in range(6)]
            assert sum(kept) == 1
            users.add(kept.index(True))
    assert users == set(range(len(NUMBERS)))


def test_plain_removal_is_among_the_pairs_around_data() -> None:
    copied = portfolio(NUMBERS).under(Relation.ADD_REMOVE_USER).spaces[1]
    pair = copied.pair({"user": 2, "offset": 0}, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(pair.left, NUMBERS[[0, 1, 3, 4, 5, 2]])


def test_rows_of_words_are_made_of_the_words_that_were_seen() -> None:
    for pair in members(portfolio(WORDS)):
        assert set(np.unique(pair.left)) <= {"bus", "car", "foot"}


def test_numbers_that_are_names_are_handled_as_names() -> None:
    ids = np.array([[2**62 + 1, 5], [7, -(2**62) - 1]])
    for pair in members(portfolio(ids)):
        assert set(np.unique(pair.left).tolist()) <= set(ids.ravel().tolist())


def test_users_are_empty_only_where_items_may_be_missing() -> None:
    gaps = np.where(NUMBERS > 0.5, np.nan, NUMBERS)
    for arguments, expected in (
        ({}, False),
        ({"missing": True}, True),
        ({"like": NUMBERS}, False),
        ({"like": gaps}, True),
    ):
        pairs = members(portfolio(**arguments))
        assert any(np.isnan(p.left).any() for p in pairs) is expected
        empty = any(np.isnan(p.left[p.user]).all() for p in pairs)
        assert empty is expected


def test_every_threshold_on_a_count_is_crossed() -> None:
    """Check that some pair crosses every threshold on a count.

    For each t, a pair has t holders of a category on one side and t - 1 holders on the other side.
    """
    space = portfolio(n_users=6, m=2).spaces[0]
    crossed = set()
    for count in range(1, 7):
        pair = space.pair({"count": count, "held": "1.0 against 0.0"}, rng=np.random.default_rng(0))
        crossed.add(tuple(int((side[:, 0] == 1).sum()) for side in (pair.left, pair.right)))
    assert crossed == {(t, t - 1) for t in range(1, 7)}


def test_query_values_get_their_patterns() -> None:
    relation = within_sensitivity(2.0, norm="l1")
    held = portfolio(dim=4).under(relation)
    assert {pair.relation for pair in held.pairs} == {relation}
    assert [space.name for space in held.spaces] == ["query_values(dim=4)"]
    values = np.array([5.0, 7.0, 9.0])
    around = portfolio(values).under(relation)
    assert np.abs(around.pairs[0].left - values).sum() == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"low": math.nan, "high": 1.0}, ArgumentError, "low must be a finite number, got nan"),
        ({"low": 0.0, "high": math.inf}, ArgumentError, "high must be a finite number, got inf"),
        ({"low": "a", "high": 1.0}, TypeError, "low must be a finite number, got 'a'"),
        ({"low": 1.0, "high": 1.0}, ArgumentError, "low must be below high = 1.0, got 1.0"),
        ({"low": 2, "high": 1}, ArgumentError, "low must be below high = 1, got 2"),
        ({"low": -1e308, "high": 1e308}, ArgumentError, "high - low must be a finite number"),
        ({"low": 1.0}, ArgumentError, "low and high must both be given, got low=1.0"),
        ({"n_users": 1}, ArgumentError, "n_users must be an integer >= 2, got 1"),
        ({"n_users": 5.0}, TypeError, "n_users must be an integer >= 2, got 5.0"),
        ({"m": 0}, ArgumentError, "m must be an integer >= 1, got 0"),
        ({"dim": 0}, ArgumentError, "dim must be an integer >= 1, got 0"),
        ({"n_users": 10**5, "m": 100}, ArgumentError, "dataset of at most 1,000,000 values"),
        ({"missing": 1}, TypeError, "missing must be True or False, got 1"),
        (
            {"low": 0, "high": 5, "missing": True},
            ArgumentError,
            "missing must be False for data of int64",
        ),
        ({"like": []}, ArgumentError, "at least 2 users .* got shape \\(0,\\)"),
        ({"like": np.zeros((3, 0))}, ArgumentError, "at least 1 item each"),
        ({"like": [[1.0, 2.0]]}, ArgumentError, "at least 2 users"),
        ({"like": 3.0}, ArgumentError, "at least 2 users"),
        ({"like": [[1.0], [1.0, 2.0]]}, PairError, "like must be a rectangular array"),
        ({"like": [[{}], [None]]}, PairError, "like must be an array of numbers"),
        ({"like": [[1j], [2.0]]}, ArgumentError, "numbers, booleans, strings or records"),
        ({"like": np.full((3, 2), np.nan)}, ArgumentError, "at least one finite number"),
        ({"like": [[1.0], [math.inf]]}, ArgumentError, "NaN for missing ones, got inf"),
        ({"like": NUMBERS, "low": 0.0, "high": 9.0}, ArgumentError, "must lie within low = 0"),
        ({"like": [[1], [2]], "low": 0.5, "high": 9}, ArgumentError, "must be whole numbers"),
        (
            {"like": np.ones((2, 2), "u1"), "low": -1, "high": 9},
            ArgumentError,
            "from 0 to 255 for data of uint8, got -1 and 9",
        ),
        ({"low": 0, "high": 2**60}, ArgumentError, "for data of int64, got 0 and 11529"),
        ({"like": [["a"], ["a"]]}, ArgumentError, "at least two different values"),
        ({"like": WORDS, "low": 0, "high": 1}, ArgumentError, "unless the data are numbers"),
        ({"like": NUMBERS, "m": 4}, ArgumentError, r"m must agree with the data in the.*got m=4"),
        ({"like": NUMBERS, "n_users": 4}, ArgumentError, "n_users must agree with the data in the"),
        ({"like": NUMBERS, "dim": 4}, ArgumentError, "dim must agree with the data in the"),
        (
            {"relation": Relation.WITHIN_SENSITIVITY},
            ArgumentError,
            "dim must be the number of queries",
        ),
        (
            {"relation": Relation.WITHIN_SENSITIVITY, "like": NUMBERS},
            ArgumentError,
            r"like must be query values \[dim\]",
        ),
    ],
)
def test_bad_input_is_refused_in_words(arguments: Any, error: Any, words: str) -> None:
    given = {key: value for key, value in arguments.items() if key != "relation"}
    relation = arguments.get("relation")
    with pytest.raises(error, match=words):
        portfolio(**given) if relation is None else portfolio(**given).under(relation)


def test_portfolios_of_ones_own_are_checked() -> None:
    pair, space = neighbors.far_user(n_users=3), neighbors.edge(n_users=5)
    values = neighbors.value_pattern("one_above", 1)
    same = NeighborPair([[1.0]], [[1.0]])
    assert repr(Portfolio("mine", [pair], (space,))) == "Portfolio(mine: 1 pairs, 1 spaces)"  # type: ignore[arg-type]
    for arguments, error, words in (
        (("mine", ()), ArgumentError, "must hold at least one pair or space"),
        (("", (pair,)), (TypeError, ValueError), "name must be a text"),
        (("mine", (space,)), TypeError, "pairs must be a list of NeighborPair"),
        (("mine", (), (pair,)), TypeError, "spaces must be a list of SearchSpace"),
        (("mine", (pair, values)), ArgumentError, "have one relation"),
        (("mine", (same,)), ArgumentError, "must differ"),
    ):
        with pytest.raises(error, match=words):
            Portfolio(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("least", "most", "words"),
    [
        (0.0, 1.0, "least must be"),
        (1.0, math.inf, "most must be"),
        (2.0, 1.0, "must be below most"),
    ],
)
def test_magnitudes_refuse_bad_ends(least: float, most: float, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        Magnitude(least, most)


def test_magnitudes_are_odd_and_rise_over_all_sizes() -> None:
    sizes = Magnitude(1e-3, 100.0)
    u = np.linspace(0, 1, 101)
    values = np.array([sizes.at(x) for x in u])
    assert (np.diff(values) > 0).all()
    np.testing.assert_allclose(values, -values[::-1], atol=1e-12)
    assert (values[0], values[50], values[-1]) == (-100.0, 0.0, 100.0)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("portfolio:m=4", "portfolio(n_users=20, m=4) and removals"),
        ("outlier:n_users=20,m=8", "outlier(n_users=20)"),
        ("which_batch:n_users=9,batch_size=3", "which_batch(n_users=9, size=3)"),
        ("clusters:n_users=9,most=3", "clusters(n_users=9)"),
        ("far_user:n_users=5,high=1..2", "far_user:n_users=5,high=1..2"),
    ],
)
def test_spaces_have_words(words: str, name: str) -> None:
    found = neighbors.pairs_from_words(words, rng=np.random.default_rng(0))
    assert isinstance(found, Portfolio | neighbors.SearchSpace)
    assert found.name == name


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        ("outlyer:n_users=3", ArgumentError, "Did you mean outlier?"),
        ("outlier", ArgumentError, "the recipe outlier also needs n_users"),
        ("outlier:n_users=3,speed=2", ArgumentError, "name is one of n_users, m, dim, low"),
        ("portfolio:like=x", ArgumentError, "name is one of n_users, m, dim"),
        ("portfolio:m=2,m=3", ArgumentError, "m must be given only once"),
        ("portfolio:m=x", TypeError, "m must be an integer"),
    ],
)  # fmt: skip
def test_bad_words_are_refused(words: str, error: Any, message: str) -> None:
    with pytest.raises(error, match=message.replace("?", r"\?")):
        neighbors.pairs_from_words(words, rng=np.random.default_rng(0))


def test_ends_are_some_of_the_pairs_and_follow_the_relation() -> None:
    held = portfolio().under(Relation.REPLACE_USER)
    assert [pair.recipe for pair in held.ends] == [
        "lone_user(others=0, 1e+06 to 0)",
        "across(others=0, 1e+06 to -1e+06)",
    ]
    gone = portfolio().under(Relation.ADD_REMOVE_USER)
    assert [pair.recipe.partition("(")[0] for pair in gone.ends] == ["lone_user", "few_users"]
    both = replace(
        held, pairs=held.pairs + gone.pairs, ends=held.ends + gone.ends, small=(), variant=None
    )
    assert both.under(Relation.ADD_REMOVE_USER).ends == gone.ends
    assert both.under(Relation.REPLACE_USER).ends == held.ends
    assert portfolio(n_users=9, low=0.0, high=1.0).ends == ()
    words = "other numbers of users than 9 (omit n_users=)"
    of_nine = portfolio(n_users=9)
    assert of_nine.under(Relation.ADD_REMOVE_USER).beyond == words
    assert of_nine.under(Relation.REPLACE_USER).beyond == ""
    (doubled,) = portfolio(np.eye(3)).ends
    assert doubled.relation == Relation.ADD_REMOVE_USER
    assert (len(doubled.left), len(doubled.right)) == (2, 1)


def test_missing_items_among_whole_numbers_are_told_how_to_be_floats() -> None:
    with pytest.raises(ArgumentError, match=r"low=0\.0 and high=1\.0 for data of floats"):
        portfolio(low=0, high=1, missing=True)


@pytest.mark.slow
def test_a_portfolio_says_which_values_no_pair_holds() -> None:
    table = portfolio(schema={"paid": (0, 10), "city": ["Aix", "Caen"]})
    assert portfolio().beyond == portfolio(WORDS).beyond == ""
    assert portfolio(low=0, high=60).beyond == "values outside 0 to 60, if data can hold them"
    assert "low= and high=" in portfolio(NUMBERS).beyond
    assert portfolio(np.zeros((5, 2))).beyond == ""
    assert portfolio(schema=Schema(columns={"paid": (0.0, 10.0)}, special=(1e300,))).beyond == ""
    assert portfolio(schema={"city": ["Aix", "Caen"]}).beyond == ""
    with pytest.raises(TypeError, match="beyond"):
        replace(table, beyond=3)
    assert "ranges of the columns" in table.under(Relation.REPLACE_USER).beyond

    def unclipped(data: Array, size: int, *, rng: np.random.Generator) -> Array:
        return data.sum() + rng.laplace(scale=60.0, size=size)

    claim = PureDP(1.0, relation=Relation.ADD_REMOVE_USER)
    declared = audit(unclipped, claim, portfolio(m=1, low=0, high=60), draws=2000, seed=1)
    assert "values outside 0 to 60, if data can hold them" in declared.not_covered


@pytest.mark.parametrize("data", [np.zeros((3, 2)), pd.DataFrame({"user": [1, 2]})])
def test_one_dataset_in_place_of_pairs_is_refused_with_the_way_out(data: Any) -> None:
    with pytest.raises(TypeError, match=r"(?s)got one dataset.*portfolio\(data\) searches"):
        audit(len, PureDP(1.0), data)
