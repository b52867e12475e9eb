"""Tests of pairs around a frame.

The neighbours have the dtypes of the frame, and the users have values of its columns.
"""

from __future__ import annotations

import functools
from math import inf, isnan, nan
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit import (
    MechanismError,
    NeighborPair,
    Outcomes,
    PureDP,
    Relation,
    audit,
    neighbors,
    one_draw,
)
from dpaudit.neighbors import Portfolio
from dpaudit.neighbors.frames import Column, new_together

CITIES = ["Aix", "Brest", "Caen"]


def visits(n_users: int = 30) -> pd.DataFrame:
    """Return a frame with whole numbers, floats with a gap, texts, booleans and days.

    Each user has four rows.
    """
    rng = np.random.default_rng(1)
    rows = 4 * n_users
    return pd.DataFrame(
        {
            "id": np.repeat([f"u{i}" for i in range(n_users)], 4),
            "age": rng.integers(18, 90, rows),
            "paid": np.where(np.arange(rows) == 5, nan, rng.uniform(0, 100, rows)),
            "city": pd.Categorical(rng.choice(CITIES, rows, p=[0.7, 0.25, 0.05])),
            "new": rng.random(rows) < 0.1,
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 9, rows), "D"),
        }
    )


VISITS = visits()


@functools.cache
def around_visits() -> Portfolio:
    """Return all pairs around the frame, under both relations.

    Creating these pairs takes seconds.
    """
    return neighbors.portfolio(VISITS, schema=neighbors.Schema(user="id"))


def members(found: Portfolio) -> list[NeighborPair]:
    """Return all pairs, and some pairs of each space."""
    rng = np.random.default_rng(1)
    drawn = [
        space.pair(space.at(rng.random(len(space.ranges))), rng=rng)
        for space in found.spaces
        for _ in range(5)
    ]
    return [*found.pairs, *drawn]


def cells_of(pair: NeighborPair, column: str) -> list[Any]:
    """Return the values of the differing user in a column, on the left side."""
    return list(pair.left[pair.left["id"] == pair.user][column])


@pytest.mark.slow
def test_all_members_are_neighbours_that_differ_with_the_dtypes_of_the_frame() -> None:
    found = neighbors.portfolio(VISITS, schema=neighbors.Schema(special=(inf,), user="id"))
    assert len(found.pairs) == len({pair.describe() + str(pair.relation) for pair in found.pairs})
    for pair in members(found):
        assert not pair.is_null
        for side in (pair.left, pair.right):
            assert dict(side.dtypes) == dict(VISITS.dtypes)


@pytest.mark.slow
def test_polars_frames_stay_polars_frames() -> None:
    frame = pl.DataFrame(VISITS.astype({"city": str}).to_dict(orient="list"))
    for pair in members(neighbors.portfolio(frame, schema=neighbors.Schema(user="id"))):
        assert pair.left.schema == pair.right.schema == frame.schema


@pytest.mark.slow
def test_users_hold_the_ends_of_columns_in_each_category() -> None:
    found = around_visits().under(Relation.REPLACE_USER)
    high = [pair for pair in found.pairs if pair.recipe.startswith("high against low")]
    assert {cells_of(pair, "city")[0] for pair in high} == set(CITIES)
    assert {cells_of(pair, "age")[0] for pair in high} == {VISITS["age"].max()}
    assert {len(cells_of(pair, "paid")) for pair in high} == {4}
    alone = next(pair for pair in found.pairs if pair.recipe == "alone with city = Caen")
    assert list(alone.left.loc[alone.left["city"] == "Caen", "id"]) == [alone.user] * 4
    assert "Caen" not in set(alone.right["city"])
    two = next(pair for pair in found.pairs if pair.recipe == "one of two, city = Caen")
    assert [(side["city"] == "Caen").sum() for side in (two.left, two.right)] == [2, 1]


@pytest.mark.slow
def test_gaps_are_tried_where_the_frame_has_some() -> None:
    found = around_visits().under(Relation.ADD_REMOVE_USER)
    assert any(all(map(isnan, cells_of(pair, "paid"))) for pair in found.pairs)
    without = neighbors.portfolio(VISITS.dropna(), schema=neighbors.Schema(user="id")).under(
        Relation.ADD_REMOVE_USER
    )
    assert not any(any(map(isnan, cells_of(pair, "paid"))) for pair in without.pairs)


@pytest.mark.slow
def test_columns_that_are_declared_go_further_than_the_frame() -> None:
    found = neighbors.portfolio(
        VISITS, schema=neighbors.Schema(columns={"age": (0, 150), "city": [*CITIES]}, user="id")
    )
    assert max(max(cells_of(pair, "age")) for pair in members(found)) == 150
    with pytest.raises(ValueError, match="must list all categories of the frame"):
        neighbors.portfolio(
            VISITS, schema=neighbors.Schema(columns={"city": ["Aix", "Dax"]}, user="id")
        )


@pytest.mark.slow
def test_the_relation_may_be_named() -> None:
    both = around_visits()
    assert set(both.relations) == {Relation.ADD_REMOVE_USER, Relation.REPLACE_USER}
    for relation in both.relations:
        assert both.under(relation).relations == (relation,)


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (VISITS, {"user": "who"}, "must have a column 'who'"),
        (VISITS[VISITS["id"] == "u1"], {"user": "id"}, "at least two users"),
        (VISITS[["id"]], {"user": "id"}, "a column in addition to 'id'"),
        (
            VISITS,
            {"user": "id", "columns": {"town": (0, 1)}},
            "columns must be a dict whose keys are among",
        ),
        (VISITS, {"user": "id", "columns": ["age"]}, "columns must be a dict"),
        (VISITS.assign(tags=[[1]] * 120), {"user": "id"}, "'tags' holds lists"),
        (VISITS.assign(id=[None, *VISITS["id"][1:]]), {"user": "id"}, "must identify the user"),
    ],
)
def test_frames_that_say_too_little_are_refused(
    frame: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        neighbors.portfolio(frame, schema=neighbors.Schema(**options))


def test_a_schema_beside_an_array_is_refused() -> None:
    with pytest.raises(TypeError, match="frame must be a DataFrame"):
        neighbors.portfolio(np.zeros((3, 2)), schema=neighbors.Schema(user="id"))
    with pytest.raises(ValueError, match="n_users must be None for tables"):
        neighbors.portfolio(VISITS, schema=neighbors.Schema(user="id"), n_users=3)


def test_invented_users_may_have_more_rows_than_all_users_of_the_frame() -> None:
    schema, most = neighbors.Schema(user="id"), VISITS["id"].value_counts().max()

    def longest(**options: int) -> int:
        held = neighbors.portfolio(VISITS, schema=schema, **options)
        assert f"users with more than {max(options.get('m', most), most)} rows" in held.beyond
        sides = [side for pair in held.pairs for side in (pair.left, pair.right)]
        return max(side["id"].value_counts().max() for side in sides)

    assert longest() == most
    assert longest(m=most + 5) == most + 5
    assert longest(m=1) == most  # the frame's own users
    with pytest.raises(ValueError, match="m must be"):
        neighbors.portfolio(VISITS, schema=schema, m=0)


@one_draw
def mean_of_each_city(frame: Any, *, rng: np.random.Generator) -> dict[str, float]:
    """Release the mean of each city with noise for one row.

    A user with four rows in one city needs four times as much noise.
    """
    paid, city = np.nan_to_num(frame["paid"].to_numpy(), nan=50.0), frame["city"].to_numpy()
    return {
        name: paid[city == name].mean() + rng.laplace(scale=100 / sum(city == name))
        for name in CITIES
        if name in city
    }


@pytest.mark.slow
def test_a_mistake_that_users_of_the_frame_hide_is_found() -> None:
    calm = NeighborPair.from_frame(VISITS, user="id", drop="u7")
    claim, options = PureDP(2.0), {"draws": 1400, "seed": 1, "mutants": None}
    mechanism = Outcomes(mean_of_each_city, keys=CITIES)
    silent = audit(mechanism, claim, calm, **options)
    assert silent.verdict.words != "REFUTED"
    assert any(
        "neighbors.portfolio(frame, schema=neighbors.Schema(user='id'))" in note
        for note in silent.notes
    )
    found = audit(mechanism, claim, around_visits(), **options)
    assert found.verdict.words == "REFUTED"
    assert not any("Schema" in note for note in found.notes)


@pytest.mark.slow
def test_keys_that_come_and_go_are_asked_for() -> None:
    with pytest.raises(
        MechanismError, match=r"Declare every possible key: Outcomes\(f, keys=\["
    ) as raised:
        audit(mean_of_each_city, PureDP(2.0), around_visits(), draws=1400, seed=1)
    assert "by Schema(columns" not in str(raised.value)  # columns= would change nothing


@pytest.mark.slow
def test_a_mechanism_that_fails_on_a_frame_is_told_how_to_declare_columns() -> None:
    def strict(frame: Any, size: int, *, rng: np.random.Generator) -> Any:
        if frame["age"].max() > 120:
            raise ValueError("nobody is so old")
        return rng.laplace(size=size)

    old = neighbors.portfolio(VISITS, schema=neighbors.Schema(columns={"age": (0, 150)}, user="id"))
    with pytest.raises(MechanismError, match="nobody is so old.*Schema"):
        audit(strict, PureDP(2.0), old, draws=1400, seed=1)


# --- categories that occur, but not together ----------------------------------------------------

CELLS = {"a": st.sampled_from("xyz"), "b": st.booleans()}
ROWS = st.lists(st.fixed_dictionaries(CELLS), max_size=8)


@given(ROWS)
def test_categories_that_occur_but_not_together(rows: list[dict[str, Any]]) -> None:
    columns = [Column("a", neighbors.Choice(tuple("xyz")), "x")]
    columns.append(Column("b", neighbors.Choice((True, False)), True))
    found = new_together(rows, columns)
    known = {(row["a"], row["b"]) for row in rows}
    if found is None:
        several = [c.name for c in columns if len({row[c.name] for row in rows}) > 1]
        firsts = {row["a"] for row in rows}
        absent = [(a, b) for a in firsts for b in (True, False) if (a, b) not in known]
        # The search is greedy, so it may miss a combination, but not the last cell of a row.
        assert len(several) < 2 or len(absent) < len(firsts)
        return
    assert tuple(found.values()) not in known or len(found) == 1
    assert all(any(row[name] == value for row in rows) for name, value in found.items())


def test_an_absent_combination_is_found() -> None:
    rows = [{"a": a, "b": b} for a in "xyz" for b in (True, False)][:-1]
    columns = [Column("a", neighbors.Choice(tuple("xyz")), "x")]
    columns.append(Column("b", neighbors.Choice((True, False)), True))
    assert new_together([{"a": "x", "b": True}, {"a": "y", "b": False}], columns) == {
        "a": "x",
        "b": False,
    }
    assert new_together(rows, columns[:1]) is None
    assert new_together([], columns) is None
