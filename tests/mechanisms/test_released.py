"""Tests of releases that are tables: their features, and audits of synthetic data."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpaudit import (
    MechanismError,
    NeighborPair,
    Outcomes,
    PureDP,
    Relation,
    Released,
    audit,
    neighbors,
    one_draw,
)
from dpaudit.data import Interaction
from dpaudit.mechanisms.released import View, columns_in

CITIES = ["Aix", "Brest", "Caen"]
PEOPLE = pd.DataFrame(
    {
        "user": [1, 2, 3, 4],
        "city": ["Aix", "Aix", "Brest", "Caen"],
        "paid": [0.5, 40.0, 100.5, 60.0],
    }
)
WITHOUT_CAEN = NeighborPair.from_frame(PEOPLE, user="user", drop=4)


def view(pair: NeighborPair = WITHOUT_CAEN) -> View:
    return Released.view(pair.left, pair.right, pair.by)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": [1, 2], "b": ["x", None]}),
        pl.DataFrame({"a": [1, 2], "b": ["x", None]}),
        [{"a": 1, "b": "x"}, {"a": 2, "b": None}],
        [[{"a": 1, "b": "x"}], [{"a": 2}]],
    ],
    ids=["pandas", "polars", "rows", "users"],
)
def test_tables_of_every_kind_have_columns(table: Any) -> None:
    assert columns_in(table) == {"a": [1, 2], "b": ["x", None]}


def test_arrays_have_numbered_columns() -> None:
    assert columns_in(np.array([[[1, 2]], [[3, 4]]])) == {"column 0": [1, 3], "column 1": [2, 4]}
    assert columns_in(np.array([5.0, 6.0])) == {"value": [5.0, 6.0]}
    assert columns_in([5, 6]) == {"value": [5, 6]}
    assert columns_in(np.array([(1, 2)], dtype=[("a", int), ("b", int)])) == {"a": [1], "b": [2]}
    assert columns_in([]) == {}


@pytest.mark.parametrize("table", [3.0, "text", {"a": 1}, None])
def test_other_releases_are_refused(table: Any) -> None:
    with pytest.raises(MechanismError, match="a released table must be a frame, an array or a"):
        columns_in(table)


def test_features_count_what_the_user_holds() -> None:
    table = pd.DataFrame(
        {"city": ["Caen", "Caen", "Aix", "Nice"], "paid": [61.0, 10.0, 60.0, None]}
    )
    assert view().features(table) == {
        "rows": 4,
        "missing columns": 0,
        "cells of city that no other row holds": 3,
        "mean paid": pytest.approx(131 / 3),
        "smallest paid": 10.0,
        "largest paid": 61.0,
        "rows with city = Caen": 2,
        "rows with paid = 60 within 5": 2,
        "rows with city = Caen and paid = 60 within 5": 1,
        "rows that agree with the left user's row": 1,
        "distance from the left user's row to the nearest row": pytest.approx(0.01),
    }


def test_features_of_an_empty_release_are_missing() -> None:
    found = view().features(pd.DataFrame({"city": [], "paid": []}))
    assert found["rows"] == 0
    assert np.isnan(found["mean paid"])
    assert np.isnan(found["distance from the left user's row to the nearest row"])
    assert set(found) == set(view().features(PEOPLE))


def test_a_missing_column_is_a_feature() -> None:
    found = view().features(pd.DataFrame({"paid": [60.0]}))
    assert found["missing columns"] == 1
    assert found["rows with city = Caen"] == 0
    assert found["rows with paid = 60 within 5"] == 1


def test_both_rows_of_a_replaced_user_are_looked_for() -> None:
    pair = NeighborPair.from_frame(
        PEOPLE, user="user", replace={4: {"city": "Brest", "paid": float("nan")}}
    )
    found = view(pair).features(PEOPLE)
    assert found["rows that agree with the left user's row"] == 1
    assert found["rows that agree with the right user's row"] == 0
    assert found["rows with paid = missing"] == 0


def test_few_whole_numbers_are_compared_exactly() -> None:
    people = np.array([[0, 5], [1, 5], [2, 5], [3, 9]])
    pair = NeighborPair(people, np.array([[0, 5], [1, 5], [2, 5], [2, 5]]))
    found = view(pair).features(np.array([[3, 8], [3, 9]]))
    assert found["rows with column 1 = 9"] == 1
    assert found["rows with column 0 = 3 and column 1 = 9"] == 1


def test_views_of_different_pairs_differ() -> None:
    other = NeighborPair.from_frame(PEOPLE, user="user", drop=3)
    assert repr(view()) == repr(view())
    assert repr(view()) != repr(view(other))
    assert str(view()) == ""


# --- audits: a table with Laplace noise, of which rows are sampled -----------------------------


def synthesized(frame: Any, size: int, *, rng: Any, scale: float = 1.0, known: bool = True) -> Any:
    """Return rows that are sampled from a noisy histogram of cities."""
    cities = CITIES if known else sorted(set(frame["city"]))
    counts = np.array([(frame["city"] == city).sum() for city in cities])
    noisy = np.maximum(counts + rng.laplace(scale=scale, size=(size, len(cities))), 1e-9)
    shares = noisy / noisy.sum(axis=1, keepdims=True)
    counts = rng.multinomial(20, shares)
    return [
        [{"city": c} for c, n in zip(cities, row, strict=True) for _ in range(n)] for row in counts
    ]


def halved(frame: Any, size: int, *, rng: Any) -> Any:
    return synthesized(frame, size, rng=rng, scale=0.1)


def of_the_data(frame: Any, size: int, *, rng: Any) -> Any:
    return synthesized(frame, size, rng=rng, known=False)


@one_draw
def one_of_the_data(frame: Any, *, rng: Any) -> Any:
    return of_the_data(frame, 1, rng=rng)[0]


CLAIM = PureDP(1.0, Relation.ADD_REMOVE_USER)


@pytest.mark.slow
def test_a_right_synthesizer_is_not_refuted() -> None:
    """The false-alarm rate is 1e-6."""
    result = audit(
        Released(synthesized),
        CLAIM,
        WITHOUT_CAEN,
        draws=3000,
        mutants=[Released(halved), "noise"],
    )
    assert result.verdict.words == "NOT REFUTED"
    assert 0.1 < result.certified_epsilon < 1.0


@pytest.mark.slow
def test_too_little_noise_is_refuted_by_counts_of_the_users_cells() -> None:
    result = audit(Released(halved), CLAIM, WITHOUT_CAEN, draws=2000)
    assert result.verdict.words == "REFUTED"
    again = audit(Released(halved), CLAIM, result.pair, draws=2000)
    assert again.witness == result.witness
    assert "city" in result.witness.event or "user's row" in result.witness.event


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [of_the_data, one_of_the_data], ids=["many", "one"])
def test_categories_of_the_data_are_found_by_a_search(mechanism: Any) -> None:
    people = pd.DataFrame({"user": range(12), "city": ["Aix", "Brest"] * 5 + ["Aix", "Caen"]})
    pairs = neighbors.portfolio(people, schema=neighbors.Schema(user="user"))
    result = audit(Released(mechanism), CLAIM, pairs, draws=1500, seed=2)
    assert result.verdict.words == "REFUTED"
    assert result.certified_epsilon > 2.5


@pytest.mark.slow
def test_a_canary_row_shows_a_leak_of_pairs_of_cells() -> None:
    """Each column of the release is private, but the pairs of cells are those of the data."""
    people = pd.DataFrame({"user": range(20), "a": ["x", "y"] * 10, "b": ["u", "v"] * 10})

    def shuffled_pairs(frame: Any, size: int, *, rng: Any) -> Any:
        pairs = sorted(set(zip(frame["a"], frame["b"], strict=True)))
        picks = rng.integers(len(pairs), size=(size, 30))
        return [[dict(zip("ab", pairs[i], strict=True)) for i in row] for row in picks]

    known = neighbors.portfolio(people, schema=neighbors.Schema(user="user")).pairs
    (pair,) = [one for one in known if one.recipe == "alone with a = y and b = u"]
    result = audit(Released(shuffled_pairs), PureDP(1.0), pair, draws=400, seed=1, mutants=None)
    assert result.verdict.words == "REFUTED"
    assert "a = y and b = u" in result.witness.event or "user's row" in result.witness.event


@pytest.mark.parametrize("errors", ["raise", "outcome"])
def test_arguments_of_one_draw_may_be_bound(errors: str) -> None:
    @one_draw
    def one(frame: Any, *, rng: Any, halves: bool) -> Any:
        return (halved if halves else synthesized)(frame, 1, rng=rng)[0]

    mechanism = Outcomes(Released(functools.partial(one, halves=True)), errors=errors)
    data = Interaction(WITHOUT_CAEN.left, view())
    bound = Outcomes(
        Released(one_draw(functools.partial(one.function, halves=True))), errors=errors
    )
    rows, expected = (f(data, 3, rng=np.random.default_rng(0)) for f in (mechanism, bound))
    assert repr(rows) == repr(expected)


@pytest.mark.slow
def test_exceptions_may_be_outcomes() -> None:
    @one_draw
    def refuses_caen(frame: Any, *, rng: Any) -> Any:
        if "Caen" in set(frame["city"]):
            raise ValueError("unknown city")
        return synthesized(frame, 1, rng=rng)[0]

    def many(frame: Any, size: int, *, rng: Any) -> Any:
        return [refuses_caen.function(frame, rng=rng) for _ in range(size)]

    for mechanism in (refuses_caen, many):
        outcomes = Outcomes(Released(mechanism), errors="outcome")
        result = audit(outcomes, CLAIM, WITHOUT_CAEN, draws=600)
        assert result.verdict.words == "REFUTED"


def test_bad_use_gives_one_clear_error() -> None:
    with pytest.raises(TypeError, match="mechanism must be a function"):
        Released(3)  # type: ignore[arg-type]
    with pytest.raises(MechanismError, match="must get both datasets of a pair"):
        Released(synthesized)(PEOPLE, 2, rng=np.random.default_rng(0))
    data = Interaction(WITHOUT_CAEN.left, view())
    with pytest.raises(MechanismError, match="must return size=3 tables, got 1"):
        Released(lambda data, size, *, rng: [data])(data, 3, rng=np.random.default_rng(0))
