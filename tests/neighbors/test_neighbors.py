"""Pairs that differ in exactly one user, the recipes for these pairs, and families."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit import NeighborPair, PairError, PairFamily, Relation, neighbors, within_sensitivity
from dpaudit.neighbors import RECIPES, pairs_from_words
from dpaudit.neighbors.pairs import family

ADD_REMOVE = Relation.ADD_REMOVE_USER
RECORD = np.dtype([("a", float), ("b", "U3")])


# --- pairs of datasets ------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3,), (3, 2), (3, 2, 4), (1, 1), (5, 0)])
def test_the_differing_user_is_found(shape: tuple[int, ...]) -> None:
    left = np.zeros(shape)
    if left.size == 0:
        assert NeighborPair(left, left).user is None
        return
    for user in range(shape[0]):
        right = left.copy()
        right[user].flat[-1] = 1.0 if right[user].ndim else 0.0
        if not right[user].ndim:
            right[user] = 1.0
        assert NeighborPair(left, right).user == user
        assert NeighborPair(left, right).user == user
        assert NeighborPair(left, right).swapped().user == user


def test_equal_datasets_are_a_pair() -> None:
    assert NeighborPair([[1.0], [2.0]], [[1.0], [2.0]]).user is None


def test_users_who_differ_are_listed() -> None:
    with pytest.raises(PairError, match="differences in 2: 0, 2. Use"):
        NeighborPair([[0.0], [0.0], [0.0]], [[1.0], [0.0], [1.0]])
    with pytest.raises(PairError, match=r"in 9: 0, 1, 2, 3, 4 \.\.\.\. Use"):
        NeighborPair(np.zeros((9, 1)), np.ones((9, 1)))


def test_a_pair_error_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="differ in one user"):
        NeighborPair([[0.0], [0.0]], [[1.0], [1.0]])


BAD_PAIRS: list[tuple[Any, Any, dict[str, Any], str]] = [
    (
        np.zeros((2, 1)),
        np.zeros((2, 2)),
        {},
        r"equal shape, got shape \(2, 1\) on the left and \(2, 2\)",
    ),
    (
        np.zeros((2, 1)),
        np.zeros((3, 1)),
        {},
        "equally many users for replace_user, got 2 on the left and 3",
    ),
    (1.0, 2.0, {}, "left must be a dataset"),
    (np.zeros((0, 1)), np.zeros((0, 1)), {}, "at least one user"),
    (np.zeros((2, 1)), np.zeros((2, 1)), {"relation": ADD_REMOVE}, "differ by one user"),
    (np.zeros((4, 1)), np.zeros((2, 1)), {"relation": ADD_REMOVE}, "differ by one user"),
    (np.zeros((3, 1)), np.zeros((2, 2)), {"relation": ADD_REMOVE}, "of equal shape"),
    ([[1.0], [2.0], [3.0]], [[1.0], [9.0]], {"relation": ADD_REMOVE}, "apart from one user"),
    ([["a"], ["b"]], [[1.0], [2.0]], {}, "user|kind|dtype"),
    (np.zeros((2, 1), RECORD), np.zeros((2, 1), [("c", float)]), {}, "dtype|record|field"),
]


@pytest.mark.parametrize(("left", "right", "arguments", "words"), BAD_PAIRS)
def test_bad_pairs_are_refused_with_the_reason(
    left: Any, right: Any, arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(PairError, match=words):
        NeighborPair(left, right, **arguments)


def test_a_relation_of_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match="relation must be a Relation"):
        NeighborPair([[0.0]], [[1.0]], relation="replace_user")  # type: ignore[arg-type]


def test_missing_values_equal_missing_values() -> None:
    left = np.array([[math.nan, 1.0], [math.nan, 2.0]])
    right = np.array([[math.nan, 1.0], [3.0, 2.0]])
    assert NeighborPair(left, right).user == 1
    assert NeighborPair(left, left).user is None
    assert NeighborPair(left, left[:1], relation=ADD_REMOVE).user == 1


def test_missing_values_equal_missing_values_in_records() -> None:
    left = np.array([[(math.nan, "x")], [(0.0, "y")]], RECORD)
    right = np.array([[(math.nan, "x")], [(0.0, "z")]], RECORD)
    assert NeighborPair(left, right).user == 1


def test_strings_records_and_booleans_are_data() -> None:
    assert NeighborPair([["a"], ["b"]], [["a"], ["longer"]]).user == 1
    assert NeighborPair([[True], [False]], [[True], [True]]).user == 1
    records = np.array([(0.0, "x"), (1.0, "y")], RECORD)
    other = records.copy()
    other["b"][0] = "z"
    assert NeighborPair(records, other).user == 0


def test_both_sides_have_one_dtype_so_that_no_other_user_changes_type() -> None:
    """Check that both sides have one dtype, so that no other user changes type.

    With two dtypes, ``~data`` or an 8-bit overflow would separate the sides even for equal users.
    """
    pair = NeighborPair(np.array([[200], [1]], np.uint8), np.array([[200], [300]]))
    assert pair.left.dtype == pair.right.dtype


def test_data_are_copied_and_read_only() -> None:
    source = np.zeros((2, 1))
    pair = NeighborPair(source, source)
    source[0] = 7.0
    assert pair.left[0, 0] == 0.0
    for side in (pair.left, pair.right):
        with pytest.raises(ValueError, match="read-only"):
            side[0] = 1.0


def test_pairs_describe_themselves() -> None:
    pair = NeighborPair(np.zeros((3, 2)), np.zeros((2, 2)), relation=ADD_REMOVE, recipe="mine")
    assert pair.describe() == "mine: add_remove_user, shape 3x2 against 2x2, user 2 differs"
    assert repr(pair) == f"NeighborPair({pair.describe()})"
    values = NeighborPair(0.0, 1.0, relation=Relation.WITHIN_SENSITIVITY)
    assert values.describe().endswith("scalar")


# --- add and remove ---------------------------------------------------------------------------


@given(st.lists(st.integers(0, 2), min_size=2, max_size=7), st.data())
def test_the_added_user_is_found_among_duplicates(rows: list[int], data: st.DataObject) -> None:
    large = np.array(rows)[:, None]
    removed = data.draw(st.integers(0, len(rows) - 1))
    small = np.delete(large, removed, axis=0)
    for pair in (
        NeighborPair(large, small, relation=ADD_REMOVE),
        NeighborPair(small, large, relation=ADD_REMOVE),
        NeighborPair(large, small, relation=ADD_REMOVE).swapped(),
    ):
        assert pair.user is not None
        assert (np.delete(large, pair.user, axis=0) == small).all()
        assert large[pair.user] == large[removed]


def test_the_first_user_may_join_an_empty_dataset() -> None:
    pair = NeighborPair(np.zeros((1, 2)), np.zeros((0, 2)), relation=ADD_REMOVE)
    assert pair.user == 0


# --- query values -----------------------------------------------------------------------------


@pytest.mark.parametrize(("norm", "distance"), [("l1", 7.0), ("l2", 5.0), ("linf", 4.0)])
def test_query_values_keep_their_distance_in_their_norm(norm: str, distance: float) -> None:
    left, right = [[3.0], [0.0]], [[0.0], [4.0]]
    pair = NeighborPair(left, right, relation=within_sensitivity(distance, norm=norm))
    assert pair.user is None
    with pytest.raises(PairError, match=f"the {norm} distance .* got {distance:g}"):
        NeighborPair(left, right, relation=within_sensitivity(distance * (1 - 1e-6), norm=norm))


BAD_VALUES: list[tuple[Any, Any, dict[str, Any], str]] = [
    ([0.0], [0.0, 1.0], {}, "equal shape"),
    ([], [], {}, "nonempty"),
    (["a"], ["b"], {}, "must be numbers"),
    ([1j], [0.0], {}, "must be numbers"),
    ([math.nan], [0.0], {}, "finite"),
    ([0.0], [math.inf], {}, "finite"),
    (np.array([2**60]), np.array([2**60 + 100]), {}, "distance"),
]


@pytest.mark.parametrize(("left", "right", "arguments", "words"), BAD_VALUES)
def test_bad_query_values_are_refused(
    left: Any, right: Any, arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(PairError, match=words):
        NeighborPair(left, right, relation=Relation.WITHIN_SENSITIVITY, **arguments)


def test_unsigned_query_values_do_not_wrap_around() -> None:
    zero, one = np.array([0], np.uint8), np.array([1], np.uint8)
    NeighborPair(zero, one, relation=Relation.WITHIN_SENSITIVITY)
    with pytest.raises(PairError, match="distance"):
        NeighborPair(zero, np.array([255], np.uint8), relation=Relation.WITHIN_SENSITIVITY)


# --- recipes ----------------------------------------------------------------------------------


def test_far_user_stands_at_his_distance_from_the_origin() -> None:
    pair = neighbors.far_user(n_users=5, m=2, dim=3, high=7.0)
    assert pair.left.shape == (5, 2, 3)
    assert pair.user == 4
    assert (pair.left[:4] == 0).all()
    assert (pair.right == 0).all()
    assert pair.left[4].tolist() == [[7.0, 0.0, 0.0]] * 2
    assert neighbors.far_user(n_users=5, relation=ADD_REMOVE).right.shape == (4, 1)


def test_clip_boundary_user_crosses_the_ball() -> None:
    pair = neighbors.clip_boundary_user(n_users=3, m=2, low=-1.5, high=1.5)
    assert (pair.left[2] == 1.5).all()
    assert (pair.right[2] == -1.5).all()
    assert (pair.left[:2] == 0).all()


def test_far_user_leaves_no_spread_on_the_right() -> None:
    pair = neighbors.far_user(n_users=4, low=2.0, high=5.0)
    assert np.ptp(pair.right) == 0
    assert (pair.right[0, 0], pair.left[3, 0]) == (2.0, 5.0)
    vector = neighbors.far_user(n_users=4, dim=2, low=-2.0)
    assert vector.right[0, 0].tolist() == [-2.0, 0.0]


def test_two_clusters_tip_with_one_user() -> None:
    pair = neighbors.two_clusters(n_users=5, high=2.0)
    assert ((pair.left == 2.0).sum(), (pair.right == 2.0).sum()) == (3, 2)
    without = neighbors.two_clusters(n_users=5, relation=ADD_REMOVE).right
    assert (without == 0).sum() == (without == 2.0).sum() == 2


def test_majority_flip_flips_the_majority() -> None:
    pair = neighbors.majority_flip(n_users=7, m=2)
    assert pair.left.dtype == np.int64
    assert pair.left.mean() > 0.5 > pair.right.mean()
    for even in (2, 4):
        with pytest.raises(ValueError, match="n_users must be"):
            neighbors.majority_flip(n_users=even)


def test_constant_against_random_draws_from_its_generator_only() -> None:
    def pair(seed: int) -> NeighborPair:
        rng = np.random.default_rng(seed)
        return neighbors.constant_against_random(n_users=4, m=6, low=-1.0, high=3.0, rng=rng)

    assert (pair(1).left == pair(1).left).all()
    assert not (pair(1).right == pair(2).right).all()
    assert (pair(1).left[3] == 1.0).all()
    assert len(np.unique(pair(1).right)) == 24
    assert (pair(1).left[:3] == pair(1).right[:3]).all()


def test_threshold_decider_stands_at_the_threshold() -> None:
    for threshold in (1, 3, 5):
        pair = neighbors.threshold_decider(n_users=5, threshold=threshold)
        assert (pair.left.sum(), pair.right.sum()) == (threshold, threshold - 1)
    with pytest.raises(ValueError, match="threshold must be at most n_users = 5, got 6"):
        neighbors.threshold_decider(n_users=5, threshold=6)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_value_patterns_use_up_the_sensitivity(k: int, norm: str) -> None:
    relation = within_sensitivity(2.5, norm=norm)
    pairs = neighbors.value_patterns(k, relation=relation, center=3.0)
    assert len(pairs) == 8
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    for pair in pairs:
        assert np.linalg.norm(pair.left - pair.right, ord=order) == pytest.approx(2.5)
    assert len({pair.recipe for pair in pairs}) == 8


def test_value_patterns_move_as_they_are_called() -> None:
    def step(name: str) -> list[float]:
        pair = neighbors.value_pattern(name, 3)
        return (pair.left - pair.right).tolist()

    assert step("one_above") == [1, 0, 0]
    assert step("one_below") == [-1, 0, 0]
    assert step("one_above_rest_below") == [1, -1, -1]
    assert step("one_below_rest_above") == [-1, 1, 1]
    assert step("half_half") == [-1, 1, 1]
    assert step("all_above") == [1, 1, 1]
    assert step("all_below") == [-1, -1, -1]
    assert step("crossing") == [1, -1, -1]


BAD_RECIPES: list[tuple[Any, dict[str, Any], str]] = [
    (neighbors.far_user, {"n_users": 1}, "n_users"),
    (neighbors.far_user, {"n_users": 2.0}, "n_users"),
    (neighbors.far_user, {"n_users": 3, "m": 0}, "m must"),
    (neighbors.far_user, {"n_users": 3, "dim": 0}, "dim must"),
    (neighbors.far_user, {"n_users": 3, "high": 0.0}, "low must be below high"),
    (neighbors.far_user, {"n_users": 3, "high": math.inf}, "high must"),
    (neighbors.clip_boundary_user, {"n_users": 3, "high": -1.0}, "low must be below"),
    (neighbors.majority_flip, {"n_users": 3, "high": 1.5}, "high must be"),
    (neighbors.two_clusters, {"n_users": 3, "high": -1}, "low must be below"),
    (neighbors.threshold_decider, {"n_users": 3, "threshold": 0}, "threshold"),
    (neighbors.value_pattern, {"pattern": "sideways", "dim": 2}, "pattern"),
    (neighbors.value_pattern, {"pattern": "one_above", "dim": 0}, "dim must"),
    (
        neighbors.value_pattern,
        {"pattern": "one_above", "dim": 2, "relation": Relation.REPLACE_USER},
        "within_sensitivity",
    ),
    (
        neighbors.far_user,
        {"n_users": 3, "relation": Relation.WITHIN_SENSITIVITY},
        "relation must be",
    ),
]


@pytest.mark.parametrize(("recipe", "arguments", "words"), BAD_RECIPES)
def test_recipes_refuse_bad_arguments(recipe: Any, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        recipe(**arguments)


# --- recipes in words -------------------------------------------------------------------------


def test_recipes_are_built_from_words() -> None:
    rng = np.random.default_rng(0)
    pair = pairs_from_words("far_user:n_users=5,dim=2,high=1e1,relation=add_remove_user", rng=rng)
    assert isinstance(pair, NeighborPair)
    assert pair.left.shape == (5, 1, 2)
    assert pair.left[4, 0, 0] == 10.0
    assert pair.relation == ADD_REMOVE
    assert len(pairs_from_words("value_patterns:dim=2", rng=rng)) == 8  # type: ignore[arg-type]
    assert isinstance(
        pairs_from_words("constant_against_random:n_users=3,m=2", rng=rng), NeighborPair
    )
    assert set(RECIPES) <= set(neighbors.__all__)


BAD_WORDS: list[tuple[str, str]] = [
    ("far_usr:n_users=5", r"got 'far_usr'. Did you mean far_user\?"),
    ("", "pair must begin with a recipe"),
    ("far_user", "also needs n_users. Pass far_user:n_users="),
    ("far_user:", "also needs n_users"),
    (
        "far_user:n_user=5",
        "name is one of n_users, m, dim, low, high, relation, got 'n_user=5'",
    ),
    ("far_user:n_users", "takes name=value, where"),
    ("constant_against_random:n_users=3,m=2,rng=1", "takes name=value, where"),
    ("far_user:n_users=5,relation=other", "relation must be one of"),
    ("far_user:n_users=many", "n_users must be an integer"),
    ("far_user:n_users=5.0", "n_users must be an integer"),
    ("far_user:n_users=5,high=nan", "high must be"),
    ("value_pattern:pattern=one_above,dim=2,center=abc", "center must be"),
    ("far_user:n_users=3,low=abc", "low must be"),
]


@pytest.mark.parametrize(("text", "words"), BAD_WORDS)
def test_bad_words_are_refused_with_what_is_allowed(text: str, words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        pairs_from_words(text, rng=np.random.default_rng(0))


# --- families ---------------------------------------------------------------------------------


def test_one_pair_a_sequence_and_a_family_are_families() -> None:
    pair = NeighborPair([[0.0]], [[1.0]], recipe="mine")
    assert family(pair).name == "mine"
    assert list(family([pair, pair])) == [pair, pair]
    assert family(x for x in [pair]).name == "1 pairs"
    assert family(family(pair)) == family(pair) or len(family(family(pair))) == 1


def test_bad_families_are_refused() -> None:
    pair = NeighborPair([[0.0]], [[1.0]])
    other = NeighborPair([0.0], [1.0], relation=Relation.WITHIN_SENSITIVITY)
    with pytest.raises(ValueError, match="pairs must be .* at least one entry"):
        family([])
    with pytest.raises(ValueError, match="have one relation"):
        family([pair, other])
    with pytest.raises(ValueError, match="have one relation"):
        PairFamily("radii", (other, NeighborPair([0.0], [1.0], relation=within_sensitivity(2.0))))
    with pytest.raises(TypeError, match="list of NeighborPair objects"):
        family([pair, "far_user"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="pairs must be a NeighborPair"):
        family(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="pairs must be a NeighborPair, .*, got 'far_user'"):
        family("far_user")  # type: ignore[arg-type]


@pytest.mark.parametrize("relation", ["add_remove_user", None])
@pytest.mark.parametrize(
    "recipe",
    [
        lambda relation: neighbors.far_user(n_users=5, relation=relation),
        lambda relation: neighbors.value_pattern("all_above", 3, relation=relation),
        lambda relation: NeighborPair(np.zeros(2), np.ones(2), relation=relation),
    ],
)
def test_a_relation_is_no_text(recipe: Any, relation: Any) -> None:
    with pytest.raises(TypeError, match="relation must be a Relation, such as .*, got "):
        recipe(relation)


# --- mistakes that once gave no error ---


def test_tables_whose_rows_may_be_items_are_refused() -> None:
    frame = pandas.DataFrame({"user": [1, 1, 2], "value": [0.0, 1.0, 2.0]})
    with pytest.raises(PairError, match="by must be given for data of type DataFrame: the column"):
        NeighborPair(frame, frame)
    with pytest.raises(PairError, match=r"left must be an array.*groupby\('user'\)"):
        NeighborPair(frame["value"], frame["value"])


def test_the_array_that_the_refusal_proposes_is_one() -> None:
    frame = pandas.DataFrame({"user": [1, 1, 2, 2], "value": [0.0, 1.0, 2.0, 3.0]})
    data = np.stack(list(frame.groupby("user")["value"].apply(np.array)))
    assert NeighborPair(data, data * [[1.0], [2.0]]).user == 1


def test_pairs_of_unlike_sizes_are_a_family() -> None:
    pairs = [
        neighbors.far_user(n_users=3, high=d, relation=Relation.ADD_REMOVE_USER) for d in (1.0, 2.0)
    ]
    assert len(PairFamily("two", pairs)) == 2
    assert not pairs[0].is_null


def test_a_recipe_refuses_what_no_memory_holds_and_what_is_given_twice() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="at most 1,000,000,000 numbers, got n_users=99999999999"):
        pairs_from_words("far_user:n_users=99999999999", rng=rng)
    with pytest.raises(
        ValueError, match="n_users must be given only once, got a second value 'n_users=30'"
    ):
        pairs_from_words("far_user:n_users=20,n_users=30", rng=rng)
