"""Tests of pairs of tables from a schema.

The pairs are neighbours with one schema, at edges where mistakes occur.
"""

from __future__ import annotations

import sys
from math import inf, isinf, isnan, nan
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpaudit import NeighborPair, Outcomes, PureDP, Relation, audit
from dpaudit.neighbors import Choice, Integer, Interval, Portfolio, Schema, portfolio

SCHEMA: dict[str, Any] = {"age": (0, 120), "income": (0.0, 1e5), "city": ["Aix", "Brest", "Caen"]}
FRAMES = ["pandas", "polars", "dicts"]


def rows(
    columns: Any,
    *,
    relation: Relation | None = None,
    n_users: int | None = None,
    m: int | None = None,
    **options: Any,
) -> Portfolio:
    found = portfolio(schema=Schema(columns, **options), n_users=n_users, m=m)
    return found if relation is None else found.under(relation)


def members(found: Portfolio) -> list[NeighborPair]:
    """Return all pairs, and some pairs of each space."""
    rng = np.random.default_rng(1)
    drawn = [
        space.pair(space.at(rng.random(len(space.ranges))), rng=rng)
        for space in found.spaces
        for _ in range(5)
    ]
    return [*found.pairs, *drawn]


@pytest.mark.sampled
@pytest.mark.parametrize("frame", FRAMES)
def test_all_members_are_neighbours_that_differ_with_the_dtypes_of_the_schema(frame: str) -> None:
    found = rows(SCHEMA, special=(nan, inf), frame=frame)
    for pair in members(found):
        assert not pair.is_null
        if frame == "pandas":
            assert dict(pair.left.dtypes) == dict(found.pairs[0].left.dtypes)
            assert dict(pair.right.dtypes) == dict(pair.left.dtypes)
        elif frame == "polars":
            assert pair.right.schema == pair.left.schema == found.pairs[0].left.schema


@pytest.mark.slow
def test_both_relations_are_there_and_either_alone_where_it_is_named() -> None:
    both = rows(SCHEMA)
    assert set(both.relations) == {Relation.ADD_REMOVE_USER, Relation.REPLACE_USER}
    for relation in both.relations:
        alone = rows(SCHEMA, relation=relation)
        assert alone.relations == (relation,)
        filtered = both.under(relation)
        assert len(filtered.pairs) == len(alone.pairs)
        assert len(filtered.spaces) == len(alone.spaces)


def test_the_edges_of_the_field_are_there() -> None:
    found = rows(SCHEMA, special=(nan, inf), m=3)
    frames = [side for pair in found.pairs for side in (pair.left, pair.right)]
    incomes = [value for frame in frames for value in frame["income"]]
    assert any(map(isnan, incomes))
    assert any(map(isinf, incomes))
    assert any(len(frame) == 0 for frame in frames)  # no user
    assert any(frame["user"].nunique() == 1 for frame in frames)  # one user
    lone = [pair for pair in found.pairs if "alone with city = Caen" in pair.recipe]
    assert {(pair.left["city"] == "Caen").sum() for pair in lone} == {3}
    assert any(pair.left.groupby("user").size().max() == 3 for pair in found.pairs)


def test_columns_are_declared_in_any_of_four_ways() -> None:
    columns = {
        "a": Interval(0.5, 2.0),
        "b": Integer(3, 9),
        "c": Choice(("x", "y")),
        "d": [True, False],
    }
    frame = rows(columns).pairs[0].left
    assert [str(frame[name].dtype) for name in "abd"] == ["float64", "int64", "bool"]


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ({}, {}, "columns must be a dict"),
        ({"a": 3}, {}, r"columns\['a'\] must be \(low, high\) or a list"),
        ({"a": (2, 1)}, {}, "low < high"),
        ({"a": ["x"]}, {}, "at least two categories"),
        ({"a": "xyz"}, {}, "or a list of categories"),
        (SCHEMA, {"user": "age"}, "user must be a column that is not in columns"),
        (SCHEMA, {"special": (None,)}, "special must hold only numbers"),
        (SCHEMA, {"special": nan}, "special must be a list"),
        ({"a": (0, 3)}, {"special": (nan,)}, "need a column of real numbers"),
        (SCHEMA, {"frame": "spark"}, "frame must be one of"),
        (SCHEMA, {"relation": Relation.WITHIN_SENSITIVITY}, "relation must be"),
        (SCHEMA, {"n_users": 1}, "n_users must be an integer >= 2"),
    ],
)
def test_a_schema_that_says_nothing_is_refused(
    columns: Any, options: dict[str, Any], words: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        rows(columns, **options)


# --- whole audits: mistakes that it should detect ---


def mean_income(data: pd.DataFrame, size: int, *, rng: np.random.Generator) -> Any:
    """Release a clipped mean. Clipping keeps a NaN, so one user turns the answer into NaN."""
    return np.clip(data["income"].to_numpy(), 0, 1e5).sum() / 4e5 + rng.laplace(size=size)


@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_a_frame_of_a_package_that_is_missing_is_refused_at_once(
    frame: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, frame, None)
    with pytest.raises(ValueError, match=f"frame='{frame}' needs the package {frame}"):
        rows(SCHEMA, frame=frame)


@pytest.mark.slow
def test_a_nan_that_clipping_lets_through_is_found() -> None:
    claim = PureDP(1.0)
    fine = audit(mean_income, claim, rows(SCHEMA), draws=3000, seed=1)
    assert fine.verdict.words != "REFUTED"
    found = audit(mean_income, claim, rows(SCHEMA, special=(nan, inf)), draws=3000, seed=1)
    assert found.verdict.words == "REFUTED"
    assert "income = nan" in found.pair.recipe
    assert "give this relation to the claim" in found.advice


def test_a_noise_scale_that_counts_users_is_found_and_an_error_without_users_is_left_out() -> None:
    def mean(users: Any, size: int, *, rng: np.random.Generator) -> Any:
        scale = 1 / len(users)  # fails without users
        paid = [min(max(user[0]["paid"], 0.0), 1.0) for user in users]
        return np.mean(paid) + rng.laplace(scale=scale, size=size)

    claim = PureDP(1.0, relation=Relation.ADD_REMOVE_USER)
    pairs = rows({"paid": (0.0, 1.0)}, frame="dicts")
    result = audit(mean, claim, pairs, draws=16_000, seed=1)
    assert result.verdict == "refuted"
    assert result.pair_words.startswith("one other user: ")
    assert result.causes[0].kind == "scale"


def test_a_user_may_hold_different_values_in_each_row() -> None:
    found = rows(SCHEMA, relation=Relation.ADD_REMOVE_USER, m=3, frame="dicts")
    (pair,) = [pair for pair in found.pairs if pair.recipe == "all rows different"]
    assert pair.left[-1] == [
        {"age": 0, "income": 0.0, "city": "Aix"},
        {"age": 60, "income": 5e4, "city": "Brest"},
        {"age": 120, "income": 1e5, "city": "Caen"},
    ]
    frame = pd.DataFrame({"user": [1, 1, 2], "day": [0, 3, 6]})
    like = portfolio(frame, schema=Schema(user="user")).under(Relation.ADD_REMOVE_USER)
    (pair,) = [pair for pair in like.pairs if pair.recipe == "all rows different"]
    assert pair.left["day"].tolist() == [6, 0, 6]
    assert all(one.recipe != "all rows different" for one in rows(SCHEMA, m=1).pairs)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((0, 1), [0, 0, 1, 1]),
        ((-(2**63) + 1, 2**63 - 1), None),
        ((-1e308, 1e308), None),
        ((-1e16, 3.0), None),
    ],
)
def test_different_values_stay_within_the_range(ends: Any, expected: list[int] | None) -> None:
    found = rows({"x": ends}, relation=Relation.ADD_REMOVE_USER, m=4, frame="dicts")
    (pair,) = [pair for pair in found.pairs if pair.recipe == "all rows different"]
    values = [row["x"] for row in pair.left[-1]]
    assert [values[0], values[-1]] == list(ends)
    assert all(ends[0] <= value <= ends[1] for value in values)
    assert expected is None or values == expected


def test_a_given_number_of_users_is_kept() -> None:
    known = rows({"x": (0.0, 1.0)}, n_users=9, frame="dicts")
    assert {len(pair.left) for pair in known.pairs} == {9}
    assert known.beyond.startswith("datasets of one or two users (omit n_users=)")
    assert known.under(Relation.REPLACE_USER).beyond == known.beyond
    (pair,) = [p for p in rows({"x": (0.0, 1.0)}).pairs if p.recipe == "one other user"]
    assert pair.relation == Relation.ADD_REMOVE_USER


@pytest.mark.slow
def test_a_city_that_one_user_alone_names_is_found() -> None:
    def per_city(data: pd.DataFrame, size: int, *, rng: np.random.Generator) -> Any:
        counts = data.groupby("city")["user"].nunique()
        return [{city: n + rng.laplace() for city, n in counts.items()} for _ in range(size)]

    claim = PureDP(2.0, relation=Relation.ADD_REMOVE_USER)
    found = audit(Outcomes(per_city, keys=SCHEMA["city"]), claim, rows(SCHEMA), draws=1400, seed=1)
    assert found.verdict.words == "REFUTED"
    assert "Caen has an answer" in found.witness.event


@pytest.mark.slow
def test_polars_frames_arrive_as_polars_frames() -> None:
    def total(data: pl.DataFrame, size: int, *, rng: np.random.Generator) -> Any:
        users = data.group_by("user").agg(pl.col("income").sum().clip(0, 1e5))
        return float(users["income"].sum()) / 1e5 + rng.laplace(size=size)

    result = audit(total, PureDP(1.2), rows(SCHEMA, frame="polars"), draws=2000, seed=1)
    assert result.verdict.words != "REFUTED"
