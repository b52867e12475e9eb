"""Datasets of each kind are copied, compared, kept, and protected from mechanisms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpaudit import NeighborPair, PairError, PureDP, Relation, audit
from dpaudit.claims import custom_relation, replace_label
from dpaudit.data import content, digest, form_of, handed, unpacked, words_of_data
from dpaudit.data.frames import is_missing
from dpaudit.errors import MechanismError
from dpaudit.results.datasets import datasets
from dpaudit.store.records import _pairs_from, pair_bytes

ADD_REMOVE = Relation.ADD_REMOVE_USER
FRAMES = [pd.DataFrame, pl.DataFrame]
COLUMNS = {"id": [7, 7, 8, 9], "paid": [1.5, math.nan, 9.0, 2.0], "who": ["a", "b", "c", None]}


@pytest.fixture(params=FRAMES, ids=["pandas", "polars"])
def visits(request: pytest.FixtureRequest) -> Any:
    return request.param(COLUMNS)


def dtypes(frame: Any) -> list[str]:
    return [str(dtype) for dtype in frame.dtypes]


# --- frames ---


def test_a_user_is_dropped_from_a_frame_and_dtypes_stay(visits: Any) -> None:
    pair = NeighborPair.from_frame(visits, user="id", drop=7)
    assert pair.relation == ADD_REMOVE
    assert (pair.user, pair.users) == (7, (7,))
    assert list(pair.right["id"]) == [8, 9]
    assert dtypes(pair.right) == dtypes(visits)
    assert "4 rows of 3 users (by id), 3 columns against 2 rows of 2 users" in pair.describe()


def test_a_user_is_replaced_in_a_frame_by_rows_of_the_same_dtypes(visits: Any) -> None:
    rows = {7: {"paid": [1, 2, 3], "who": "z"}}
    pair = NeighborPair.from_frame(visits, user="id", replace=rows)
    assert pair.relation == Relation.REPLACE_USER
    assert list(pair.left["id"]) == [7, 7, 8, 9]
    assert list(pair.right["id"]) == [7, 7, 8, 9, 7]
    assert dtypes(pair.right) == dtypes(visits)
    other = type(visits)({"id": [99], "paid": [0.5], "who": ["q"]})
    pair = NeighborPair.from_frame(visits, user="id", replace={7: other})
    assert pair.users == (7, 99)  # another person replaces user 7


def test_a_group_of_users_is_dropped(visits: Any) -> None:
    pair = NeighborPair.from_frame(visits, user="id", drop=[7, 9])
    assert str(pair.relation) == "add_remove_user(users=2)"
    assert pair.users == (7, 9)
    with pytest.raises(PairError, match="differ by one user"):
        NeighborPair(pair.left, pair.right, relation=ADD_REMOVE, by="id")


def test_the_label_of_a_user_is_replaced_and_nothing_else(visits: Any) -> None:
    other = visits.copy() if isinstance(visits, pd.DataFrame) else visits.clone()
    if isinstance(visits, pd.DataFrame):
        other.loc[2, "who"] = "x"
    else:
        other = visits.with_columns(who=pl.Series(["a", "b", "x", None]))
    pair = NeighborPair(visits, other, relation=replace_label("who"), by="id")
    assert pair.user == 8
    with pytest.raises(PairError, match="differ only in the label 'paid', got user 8"):
        NeighborPair(visits, other, relation=replace_label("paid"), by="id")
    with pytest.raises(PairError, match="label must be a column of the frame other than 'id'"):
        NeighborPair(visits, other, relation=replace_label("nothing"), by="id")


BAD_FRAMES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (
        {**COLUMNS, "id": [7, 7, None, 9]},
        {"drop": 7},
        "'id' of frame must identify the user of every",
    ),
    (COLUMNS, {"drop": 70}, "got 70. The users in the column 'id' are 7, 8, 9"),
    (
        COLUMNS,
        {"user": "name", "drop": 7},
        "must have a column 'name'.* got the columns id, paid, who",
    ),
    (COLUMNS, {"replace": {7: {"paid": [1.0]}}}, "must have the columns id, paid, who, got id"),
    (COLUMNS, {"replace": {7: {"paid": ["x"], "who": "y"}}}, "values of the columns' dtypes"),
    (COLUMNS, {"replace": {7: {"paid": [1, 2], "who": ["y"]}}}, "columns of equal lengths"),
    (COLUMNS, {}, "drop or replace must be given, got drop=None"),
    (
        COLUMNS,
        {"drop": 8, "replace": {7: {"paid": 1.0}}},
        "must hold the same users if both are given, got drop=8",
    ),
]


@pytest.mark.parametrize("make", FRAMES)
def test_a_user_who_holds_other_rows_leaves(make: Any) -> None:
    pair = NeighborPair.from_frame(
        make(COLUMNS), user="id", drop=7, replace={7: {"paid": [1e6], "who": "rich"}}
    )
    gone = NeighborPair.from_frame(make(COLUMNS), user="id", drop=7)
    assert digest(pair.right) == digest(gone.right)
    assert (pair.user, pair.relation) == (7, Relation.ADD_REMOVE_USER)
    assert list(pair.left["id"])[-1] == 7
    assert list(pair.left["paid"])[-1] == 1e6
    assert len(pair.left) == len(pair.right) + 1


@pytest.mark.parametrize("make", FRAMES)
def test_texts_that_are_missing_are_kept_as_missing(make: Any) -> None:
    """Check that missing texts are still missing after storage.

    In pandas 2, a cast would turn the missing values into texts.
    """
    frame = make({"id": [1, 2, 2], "who": ["a", None, "None"], "none": [None, None, "x"]})
    pair = NeighborPair.from_frame(frame, user="id", drop=1)
    again, _ = _pairs_from(pair_bytes(pair))
    held = [[is_missing(cell) for cell in pair.left["who"]] for pair in (pair, again)]
    assert held == [[True, False, False]] * 2


@pytest.mark.parametrize("make", FRAMES)
@pytest.mark.parametrize(("columns", "arguments", "words"), BAD_FRAMES)
def test_bad_frames_are_refused_with_the_reason(
    make: Any, columns: dict[str, Any], arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        NeighborPair.from_frame(make(columns), **{"user": "id", **arguments})


def test_a_category_that_a_column_does_not_have_is_refused() -> None:
    city = pd.Categorical(["a", "b"])
    with pytest.raises(PairError, match="got 'z' in 'city'|categor"):
        NeighborPair.from_frame(
            pd.DataFrame({"id": [1, 2], "city": city}), user="id", replace={1: {"city": "z"}}
        )
    frame = pl.DataFrame(
        {"id": [1, 2], "city": ["a", "b"]}, {"id": pl.Int64, "city": pl.Enum("ab")}
    )
    with pytest.raises(PairError, match="values of the columns' dtypes.*conversion"):
        NeighborPair.from_frame(frame, user="id", replace={1: {"city": "z"}})


def test_frames_that_differ_elsewhere_are_refused(visits: Any) -> None:
    two = NeighborPair.from_frame(visits, user="id", drop=[7, 9]).right
    with pytest.raises(
        PairError, match="equally many users for replace_user, got 3 on the left and 1 on the right"
    ):
        NeighborPair(visits, two, by="id")
    shuffled = (
        visits.iloc[[2, 0, 1, 3]] if isinstance(visits, pd.DataFrame) else visits[[2, 0, 1, 3]]
    )
    with pytest.raises(PairError, match="the same order on both sides"):
        NeighborPair(visits, shuffled, by="id")
    cast = (
        visits.astype({"paid": "float32"})
        if isinstance(visits, pd.DataFrame)
        else visits.with_columns(paid=pl.col("paid").cast(pl.Float32))
    )
    with pytest.raises(PairError, match="same columns, dtypes and constants"):
        NeighborPair(visits, cast, by="id")


# --- lists, dicts and others ---


def test_users_of_a_list_hold_as_many_items_as_they_like() -> None:
    left = [[1.0, 2.0], [3.0], []]
    assert NeighborPair(left, [[1.0, 2.0], [4.0, 5.0], []]).user == 1
    assert NeighborPair(left, [[1.0, 2.0], []], relation=ADD_REMOVE).user == 1
    assert NeighborPair(left, [[], [3.0], []]).describe().endswith("user 0 differs")
    with pytest.raises(PairError, match="must differ in one user only, got differences in 2: 0, 1"):
        NeighborPair(left, [[1.0], [4.0], []])
    with pytest.raises(PairError, match="apart from one user"):
        NeighborPair(left, [[1.0], []], relation=ADD_REMOVE)


def test_a_list_beside_an_array_is_a_list() -> None:
    pair = NeighborPair([[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0]])
    assert isinstance(pair.left, list)
    assert pair.user == 1


def test_a_group_of_rows_is_found_wherever_it_stands() -> None:
    data = np.arange(12.0).reshape(6, 2)
    group = ADD_REMOVE.of_group(3)
    assert NeighborPair(data, np.delete(data, [0, 3], axis=0), relation=group).users == (0, 3)
    moved = data.copy()
    moved[[1, 4]] = -1
    assert NeighborPair(data, moved, relation=Relation.REPLACE_USER.of_group(2)).users == (1, 4)
    with pytest.raises(PairError, match="must differ in one user only, got differences in 2: 1, 4"):
        NeighborPair(data, moved)


def test_tables_of_a_dict_share_their_users(visits: Any) -> None:
    left = {"X": np.ones((3, 2)), "y": [0, 1, 0], "classes": 2}
    pair = NeighborPair(left, {**left, "y": [0, 1, 1]})
    assert pair.user == 2
    assert NeighborPair(left, {**left, "y": [0, 1, 1]}, relation=replace_label("y")).user == 2
    with pytest.raises(PairError, match="only in the label 'X'"):
        NeighborPair(left, {**left, "y": [0, 1, 1]}, relation=replace_label("X"))
    with pytest.raises(PairError, match="columns, dtypes and constants"):
        NeighborPair(left, {**left, "classes": 3})
    with pytest.raises(PairError, match="different numbers of rows: X: 3, y: 2"):
        NeighborPair({**left, "y": [0, 1]}, left)
    with pytest.raises(PairError, match="the same tables in the same order"):
        NeighborPair(left, {"X": left["X"]})
    other = NeighborPair.from_frame(visits, user="id", drop=8).right
    both = NeighborPair(
        {"visits": visits, "again": visits},
        {"visits": other, "again": other},
        relation=ADD_REMOVE,
        by="id",
    )
    assert both.user == 8


def test_of_other_objects_differ_tells_the_users() -> None:
    left, right = {1, 2, 3}, {1, 2}
    with pytest.raises(PairError, match="data of type set. Pass differ=function"):
        NeighborPair(left, right, relation=ADD_REMOVE)
    pair = NeighborPair(left, right, relation=ADD_REMOVE, differ=lambda a, b: sorted(a ^ b))
    assert pair.users == (3,)
    assert pair.swapped().left == right
    with pytest.raises(PairError, match="must differ in one user only, got differences in 2: 2, 3"):
        NeighborPair(left, {1}, differ=lambda a, b: sorted(a ^ b))
    with pytest.raises(TypeError, match="differ must return a list of the users"):
        NeighborPair(left, right, differ=lambda a, b: 3)


def test_a_relation_of_ones_own_is_checked() -> None:
    def near(a: Any, b: Any) -> Any:
        return True if abs(a.sum() - b.sum()) <= 1 else "sums differ by more than 1"

    relation = custom_relation("sums differ by at most 1", near)
    left = np.zeros((3, 1))
    pair = NeighborPair(left, left + 0.25, relation=relation)
    assert "sums differ by at most 1" in pair.describe()
    with pytest.raises(PairError, match="not neighbours by .*: sums differ by more than 1"):
        NeighborPair(left, left + 1, relation=relation)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "replace_user", "users": 0}, "users must be an integer >= 1"),
        (
            {"name": "within_sensitivity", "norm": "l1", "radius": 1.0, "users": 2},
            "users must be 1",
        ),
        ({"name": "replace_label"}, "must have a label"),
        ({"name": "replace_user", "label": "y"}, "must have no label"),
        ({"name": "custom"}, "words must be given only for a custom relation"),
        ({"name": "replace_user", "words": "x"}, "words must be given only for a custom relation"),
    ],
)
def test_relations_that_say_too_much_or_too_little_are_refused(
    arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        Relation(**arguments)


# --- what a mechanism receives ---

KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "array": (np.arange(6.0).reshape(3, 2), {}),
    "list": ([[1.0, 2.0], [3.0], []], {}),
    "tuple": (([1.0], [3.0, 4.0]), {}),
    "objects": ([{"a": 1}, {"b": [2]}], {}),
    "pandas": (pd.DataFrame(COLUMNS), {"by": "id"}),
    "polars": (pl.DataFrame(COLUMNS), {"by": "id"}),
    "dict": ({"X": np.ones((3, 2)), "y": [0, 1, 0], "k": 3}, {}),
    "set": ({1, 2}, {"differ": lambda a, b: []}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_given_is_equal_and_what_is_done_to_it_is_seen_and_reaches_nobody(
    kind: str,
) -> None:
    value, arguments = KINDS[kind]
    pair = NeighborPair(value, value, **arguments)
    assert pair.is_null
    before = digest(pair.left)
    given = handed(pair.left)
    assert digest(given) == before
    _change(given)
    assert kind in ("array", "tuple") or digest(given) != before
    assert digest(pair.left) == before
    assert words_of_data(pair.left)
    assert datasets(pair).title


def _change(given: Any) -> None:
    if isinstance(given, np.ndarray):
        with pytest.raises(ValueError, match="read-only"):
            given += 1
    elif isinstance(given, pd.DataFrame):
        given.loc[0, "paid"] = -1.0
    elif isinstance(given, pl.DataFrame):
        given[0, "paid"] = -1.0
    elif isinstance(given, dict):
        given["k"] = 4
    elif isinstance(given, set):
        given.add(5)
    elif isinstance(given, tuple):
        with pytest.raises(ValueError, match="read-only"):
            given[0][0] = 9.0
    elif isinstance(given[0], dict):
        given[0]["a"] = 2
    else:
        given.pop()


@pytest.mark.parametrize("kind", ["array", "list", "pandas", "polars", "dict"])
def test_a_pair_is_kept_without_running_code_and_read_again(kind: str) -> None:
    value, arguments = KINDS[kind]
    pair = NeighborPair(value, value, recipe="kept", **arguments)
    again, _ = _pairs_from(pair_bytes(pair))
    assert digest(again.left) == digest(pair.left)
    assert again.describe() == pair.describe()
    packed = form_of(value, **arguments).packed(pair.left)
    assert packed is not None
    assert digest(unpacked(packed)) == digest(pair.left)


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("rows", [0, 1])
def test_a_pair_with_an_empty_frame_or_only_missing_texts_is_read_again(
    library: Any, rows: int
) -> None:
    held = {"id": [7, 7], "who": ["a", None], "paid": [1.5, 2.0], "is_new": [True, False]}
    frame = library(held)
    some = frame[:0] if rows == 0 else frame[1:]  # an empty one, or one without a text
    relation = Relation.REPLACE_USER if rows else ADD_REMOVE
    pair = NeighborPair(frame, some, relation=relation, by="id")
    again, _ = _pairs_from(pair_bytes(pair))
    assert again.describe() == pair.describe()
    for side in ("left", "right"):
        read, known = getattr(again, side), getattr(pair, side)
        assert digest(read) == digest(known)
        assert list(map(str, read.dtypes)) == list(map(str, known.dtypes))


@pytest.mark.parametrize("texts", [["a", None], [None, None], ["a", "b"]])
def test_a_pair_with_objects_of_pandas_is_read_again(texts: list[Any]) -> None:
    who = pd.Series(texts, dtype=object)
    frame = pd.DataFrame({"id": [7, 8], "who": who})
    pair = NeighborPair.from_frame(frame, user="id", drop=7)
    again, _ = _pairs_from(pair_bytes(pair))
    assert digest(again.left) == digest(pair.left)
    assert list(again.left.dtypes) == list(pair.left.dtypes)
    assert list(again.right["who"]) == list(pair.right["who"])


def test_equal_content_is_told_apart_from_other() -> None:
    assert content([math.nan, -0.0]) == content([math.nan, 0.0])
    assert content({"a": [1, 2]}) != content({"a": [2, 1]})
    assert content([1]) != content((1,))
    with pytest.raises(PairError, match="cannot compare objects of type"):
        content([{1: [_Unhashable()]}])


class _Unhashable:
    __hash__ = None  # type: ignore[assignment]


# --- whole audits ---


def mean_paid(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    """Release a sum of clipped rows with Laplace noise of scale 1.

    The scale is enough only if each user has one row.
    """
    paid = np.nan_to_num(np.asarray(data["paid"], dtype=float))
    return np.clip(paid, 0, 1).sum() + rng.laplace(size=size)


@pytest.mark.slow
def test_a_frame_is_audited_as_it_is(visits: Any) -> None:
    rows = type(visits)({"id": [1, 2, 2, 2], "paid": [0.0, 1.0, 1.0, 1.0]})
    pair = NeighborPair.from_frame(rows, user="id", drop=2)
    result = audit(mean_paid, PureDP(1.0), pair, draws=5000, seed=1)
    assert result.verdict.words == "REFUTED"
    assert result.certified_epsilon > 2


@pytest.mark.slow
def test_a_list_of_users_is_audited_as_it_is() -> None:
    def longest(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return max(map(len, data)) + rng.laplace(size=size)

    pair = NeighborPair([[1.0], [2.0]], [[1.0], [2.0] * 5])
    result = audit(longest, PureDP(1.0), pair, draws=5000, seed=1)
    assert result.certified_epsilon > 2


@pytest.mark.parametrize("kind", ["list", "pandas", "dict"])
def test_a_mechanism_that_changes_its_input_is_refused(kind: str) -> None:
    def careless(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        if isinstance(data, pd.DataFrame):
            data["paid"] = 0.0
        elif isinstance(data, dict):
            data["k"] = 0
        else:
            data.append([1.0])
        return rng.laplace(size=size)

    value, arguments = KINDS[kind]
    with pytest.raises(MechanismError, match="must not change its input"):
        audit(careless, PureDP(1.0), NeighborPair(value, value, **arguments), draws=100, seed=1)


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_categories_stay_categories_when_kept(library: Any) -> None:
    kind = "category" if library is pd else pl.Categorical
    series = library.Series(["a", "b", "a"], dtype=kind)
    frame = library.DataFrame({"id": [1, 2, 2], "city": series, "who": ["x", "y", "z"]})
    pair = NeighborPair.from_frame(frame, user="id", drop=1)
    again, _ = _pairs_from(pair_bytes(pair))
    assert digest(again.left) == digest(pair.left)
    assert list(map(str, again.left.dtypes)) == list(map(str, pair.left.dtypes))
