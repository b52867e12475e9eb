# ruff: noqa: NPY002
"""Tests that functions with global generators draw only from a generator that records."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.random import laplace as by_its_name

from dpaudit import NeighborPair, PureDP, audit, mutants, one_draw
from dpaudit.errors import MechanismError
from dpaudit.mechanisms import generator
from dpaudit.mechanisms.one_draw import global_functions_of

PAIR = NeighborPair([[0.0]], [[1.0]])
DATA = [np.zeros((3, 1))]


def methods(draw: Any) -> list[str]:
    """Return the methods through which the noise of a function is drawn."""
    found = mutants.record(one_draw(lambda data: draw(), randomness="legacy"), DATA, seed=1)
    assert not found.unseen
    return [site.method for site in found.sites]


@pytest.mark.parametrize(
    ("draw", "method"),
    [
        (lambda: np.random.laplace(0.0, 2.0), "laplace"),
        (lambda: np.random.normal(size=3), "normal"),
        (lambda: np.random.randn(2, 3), "standard_normal"),
        (lambda: np.random.rand(), "random"),
        (lambda: np.random.random_sample(4), "random"),
        (lambda: np.random.randint(10), "integers"),
        (lambda: np.random.randint(2, 10, 3), "integers"),
        (lambda: np.random.choice(5, p=[0.2] * 5), "choice"),
        (lambda: np.random.permutation(4), "permutation"),
        (lambda: random.random() / 2, "random"),
        (lambda: random.uniform(1, 2), "uniform"),
        (lambda: random.gauss(0.0, 3.0), "normal"),
        (lambda: random.normalvariate(1.0, 2.0), "normal"),
        (lambda: random.expovariate(2.0), "exponential"),
        (lambda: random.randint(1, 6), "integers"),
        (lambda: random.randrange(6), "integers"),
        (lambda: random.randrange(2, 12, 3), "integers"),
        (lambda: random.choice("ab") == "a", "integers"),
    ],
)
def test_what_global_functions_draw_is_seen(draw: Any, method: str) -> None:
    assert methods(draw) == [method]


def test_values_are_those_that_the_names_promise() -> None:
    with global_functions_of(np.random.default_rng(1)):
        assert {np.random.randint(2, 4) for _ in range(60)} == {2, 3}
        assert {np.random.randint(2) for _ in range(60)} == {0, 1}
        assert {random.randint(1, 3) for _ in range(60)} == {1, 2, 3}
        assert {random.randrange(2, 9, 3) for _ in range(60)} == {2, 5, 8}
        assert {random.randrange(2) for _ in range(60)} == {0, 1}
        assert {random.choice("ab") for _ in range(60)} == {"a", "b"}
        assert np.random.rand(2, 3).shape == (2, 3)
        assert isinstance(np.random.randn(), float)
        letters = list("abcdefgh")
        random.shuffle(letters)
        assert sorted(letters) == list("abcdefgh")
        assert 0.8 < np.mean([random.expovariate(0.5) for _ in range(4000)]) / 2 < 1.2


def test_global_functions_are_themselves_again_after_an_error() -> None:
    before = np.random.laplace, random.gauss
    with pytest.raises(ZeroDivisionError), global_functions_of(np.random.default_rng(1)):
        raise ZeroDivisionError
    assert (np.random.laplace, random.gauss) == before


@pytest.mark.slow
def test_mutants_are_made_of_legacy_noise() -> None:
    @one_draw(randomness="legacy")
    def noisy(data: Any) -> float:
        return float(np.sum(data)) + np.random.laplace()

    result = audit(noisy, PureDP(1.0), PAIR, draws=2000, seed=1)
    assert result.verdict.words == "NOT REFUTED"
    assert [m.status.name for m in result.mutants] == ["KILLED", "KILLED"]


def test_a_function_imported_by_its_name_is_said_to_be_unseen() -> None:
    mechanism = one_draw(lambda data: by_its_name(), randomness="legacy")
    found = mutants.record(mechanism, DATA, seed=1)
    assert not found.sites
    assert "no noise is recorded" in found.unseen


def test_threads_take_turns_at_global_generators() -> None:
    mechanism = one_draw(lambda data: np.random.laplace(size=50), randomness="legacy")

    def drawn(index: int) -> Any:
        return mechanism(DATA[0], 40, rng=generator(1, index))

    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(drawn, range(40)))
    assert all((drawn(index) == together[index]).all() for index in range(40))


def test_an_error_inside_the_function_gets_no_advice_on_its_parameters() -> None:
    @one_draw(randomness="legacy")
    def broken(data: Any) -> float:
        raise ValueError("batch norm")

    with pytest.raises(MechanismError, match="raised ValueError: batch norm") as caught:
        audit(broken, PureDP(1.0), NeighborPair([[0.0]], [[1.0]]), draws=100, seed=1)
    assert "one_draw(f" not in str(caught.value)
