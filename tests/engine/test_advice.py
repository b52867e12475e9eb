"""Silence that means nothing says what to try next: the one thing that is likeliest to help."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit import AdditiveNoise, NeighborPair, PureDP, audit, neighbors, search

FAR = neighbors.far_user(n_users=5, distance=1.0)
MANY = neighbors.far_user(n_users=5, m=4, distance=0.25)


def total(data, size, *, rng, scale=1.0):
    return data.sum() + rng.laplace(scale=scale, size=size)


def slightly_less(data, size, *, rng):
    return total(data, size, rng=rng, scale=0.5)


def advised(mechanism, pairs, **options) -> str:
    return audit(mechanism, PureDP(1.0), pairs, seed=1, **{"mutants": None, **options}).advice


def test_without_a_mutant_a_mutant() -> None:
    assert advised(total, FAR, draws=2000).startswith("leave mutants=None out")

    def constant(data, size, *, rng):
        return np.zeros(size)

    assert advised(constant, FAR, draws=2000, mutants=()).startswith("give a mutant")


def test_where_the_mutant_shows_it_by_eye_more_draws() -> None:
    """The draws named do refute it."""
    advice = advised(total, FAR, draws=60, mutants=[slightly_less])
    assert advice.startswith("more draws: ")
    draws = int(advice.partition("(draws=")[2].rstrip(")"))
    assert 60 < draws < 5000
    assert audit(total, PureDP(1.0), FAR, seed=1, draws=draws, mutants=[slightly_less]).advice == ""


def test_where_each_user_has_one_item_more_items() -> None:
    assert advised(total, FAR, draws=2000, mutants=[total]).startswith("more items per user (m=8")


def test_then_a_search_and_after_it_a_larger_mistake() -> None:
    assert advised(total, MANY, draws=2000, mutants=[total]).startswith("another pair: search")
    space = search.outlier(n_users=5, m=2, high=0.5)
    assert advised(total, space, draws=20_000, mutants=[total]).startswith("a larger mistake")


def test_equal_datasets_are_told() -> None:
    result = audit(
        total, PureDP(1.0), NeighborPair([[1.0]], [[1.0]]), draws=2000, seed=1, mutants=None
    )
    assert result.advice == "another pair: the two datasets of this one are equal"
    assert "no mechanism shows anything" in result.notes[0]


@pytest.mark.parametrize("mutants", [None, [slightly_less]])
def test_a_verdict_that_means_something_needs_no_advice(mutants) -> None:
    pair = NeighborPair([[0.0]], [[5.0]]) if mutants is None else FAR
    assert advised(total, pair, draws=20_000, mutants=mutants) == ""


def test_what_is_computed_is_advised_on_too() -> None:
    def centre(data):
        return data.sum(axis=0)

    noisy = AdditiveNoise(centre, "laplace", 1.0)
    assert advised(noisy, MANY, mutants=[noisy]).startswith("another pair: search")


def test_advice_stands_in_the_summary() -> None:
    result = audit(total, PureDP(1.0), FAR, draws=2000, seed=1, mutants=None)
    assert f"\n  next       {result.advice}" in str(result)
    assert np.isfinite(result.certified_epsilon)
