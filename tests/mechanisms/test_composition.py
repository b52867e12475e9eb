"""Compositions: subsamples, their probabilities, and outcomes of steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpaudit import AdditiveNoise, ArgumentError, Composition, MechanismError
from dpaudit.mechanisms import is_computed
from dpaudit.mechanisms.composition import Subsampling
from dpaudit.stats import ComposedLoss, oracles


def total(data: Any) -> float:
    return float(data.sum())


STEP = AdditiveNoise(total, "gaussian", scale=1.0)


class Flip:
    """Answer whether the sum is positive, wrong with probability 1/4."""

    def pmf(self, data: Any) -> np.ndarray[Any, Any]:
        return np.array([0.25, 0.75] if data.sum() > 0 else [0.75, 0.25])


def subsamples(sampling: Subsampling, data: Any) -> dict[tuple[float, ...], float]:
    held, weights, _ = sampling.subsamples(np.array(data))
    found: dict[tuple[float, ...], float] = {}
    for one, weight in zip(held, weights, strict=True):
        key = tuple(np.sort(np.ravel(one)).tolist())
        found[key] = found.get(key, 0.0) + float(weight)
    return found


def test_poisson_subsamples() -> None:
    found = subsamples(Subsampling("poisson", q=0.25), [[1.0], [2.0]])
    assert found == pytest.approx({(): 9 / 16, (1.0,): 3 / 16, (2.0,): 3 / 16, (1.0, 2.0): 1 / 16})


def test_equal_rows_count_once() -> None:
    sampling = Subsampling("poisson", q=0.5)
    held, weights, exchanged = sampling.subsamples(np.zeros((1000, 1)))
    assert len(held) == 1001
    assert exchanged
    assert weights.sum() == pytest.approx(1.0)
    assert weights[500] == pytest.approx(0.0252250, rel=1e-5)


def test_fixed_size_subsamples_and_subsamples_with_replacement() -> None:
    data = [[1.0], [2.0], [2.0]]
    found = subsamples(Subsampling("fixed", batch_size=2), data)
    assert found == pytest.approx({(1.0, 2.0): 2 / 3, (2.0, 2.0): 1 / 3})
    found = subsamples(Subsampling("replacement", batch_size=2), data)
    assert found == pytest.approx({(1.0, 1.0): 1 / 9, (1.0, 2.0): 4 / 9, (2.0, 2.0): 4 / 9})


@pytest.mark.parametrize("kind", ["poisson", "fixed", "replacement"])
def test_computed_weights_agree_with_draws(kind: str) -> None:
    rng = np.random.default_rng(0)
    data = np.array([[1.0], [2.0], [4.0]])
    q, batch_size = (0.3, None) if kind == "poisson" else (None, 2)
    mechanism = Composition(
        AdditiveNoise(total, "gaussian", scale=1e-3), q=q, batch_size=batch_size, sampling=kind
    )
    drawn = np.round(mechanism(data, 4000, rng=rng)[:, 0])
    values, weights = mechanism.steps[0].values(data)
    for value, weight in zip(values[:, 0], weights, strict=True):
        assert (drawn == value).mean() == pytest.approx(weight, abs=0.04)


@pytest.mark.slow
def test_a_replaced_user_moves_a_sum_twice_as_far() -> None:
    ten = Composition(AdditiveNoise(total, "gaussian", scale=2.0), 10)
    one, none = np.array([[1.0]]), np.zeros((0, 1))
    for left, right, moved in ((one, none, 1.0), (one, -one, 2.0)):
        exact = oracles.gaussian(moved * math.sqrt(10) / 2, 1.0).epsilon(1e-5)
        found = ComposedLoss(ten.pairs(left, right)).lower_epsilon(1e-5)
        assert found == pytest.approx(exact, rel=1e-3)
        assert found <= exact


def test_pmfs_are_mixed_over_subsamples() -> None:
    (pair,) = Composition(Flip(), 3, q=0.5).pairs(np.array([1.0]), np.array([-1.0]))
    assert pair.left == pytest.approx([0.5, 0.5])
    assert pair.right == pytest.approx([0.75, 0.25])
    assert pair.times == 3


def test_compositions_nest_and_draw() -> None:
    mechanism = Composition([Composition(STEP, 2, q=0.5), Flip()], 3)
    assert [step.times for step in mechanism.steps] == [6, 3]
    draws = mechanism(np.ones((2, 1)), 5, rng=np.random.default_rng(0))
    assert draws.shape == (5, 9)
    assert set(draws[:, 6:].ravel()) <= {0.0, 1.0}
    assert repr(mechanism).startswith("Composition(AdditiveNoise(total, gaussian noise of scale 1)")
    assert is_computed(mechanism)
    assert not is_computed(total)


def test_centres_on_a_line_are_projected() -> None:
    def along(data: Any) -> Any:
        return data.sum() * np.array([3.0, 4.0]) + 7.0

    mechanism = Composition(AdditiveNoise(along, "gaussian", scale=5.0), q=1.0)
    found = ComposedLoss(mechanism.pairs(np.array([[1.0]]), np.array([[0.0]])))
    exact = oracles.gaussian(1.0, 1.0).epsilon(1e-5)
    assert found.lower_epsilon(1e-5) == pytest.approx(exact, rel=1e-3)


def identity(data: Any) -> Any:
    return data[:2].sum(axis=0) if len(data) else np.zeros(2)


SQUARE = np.array([[1.0, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("mechanism", "data", "words"),
    [
        (
            Composition(AdditiveNoise(identity, scale=1.0), q=0.5),
            SQUARE,
            "^identity .* must return centres that lie on one line",
        ),
        (
            Composition(AdditiveNoise(identity, "laplace", scale=1.0), q=0.5),
            SQUARE,
            "^identity .* must return centres that differ in one coordinate only",
        ),
        (Composition(STEP, q=0.5), np.arange(13.0), "^data must have at most 4096 different subs"),
        (
            Composition(STEP, batch_size=3, sampling="fixed"),
            np.zeros(2),
            "^batch_size must be at most 2, the number of rows, got 3",
        ),
        (
            Composition(STEP, batch_size=3, sampling="replacement"),
            np.zeros(0),
            "^data must have at least one row",
        ),
        (Composition(STEP, q=0.5), np.array(1.0), "^data must be an array whose first axis is"),
        (
            Composition(
                AdditiveNoise(lambda data: data[0] if len(data) else 0.0, scale=1.0), q=0.5
            ),
            np.array([1.0, 2.0, 2.0]),
            "must not depend on the order of the rows",
        ),
        (
            Composition(AdditiveNoise(lambda data: np.ones(1 + len(data)), scale=1.0), q=0.5),
            np.array([1.0]),
            "must return arrays of equal length for all subsamples",
        ),
    ],
)
def test_data_that_cannot_be_enumerated_are_refused(
    mechanism: Composition, data: Any, words: str
) -> None:
    with pytest.raises(MechanismError, match=words):
        mechanism.pairs(data, data)


def drawn_centers(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    return rng.random(size)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Composition(total), TypeError, "^step must be an AdditiveNoise, a mechanism with"),
        (lambda: Composition(5), TypeError, "^step must be a mechanism or a list"),
        (lambda: Composition([]), ArgumentError, "^step must be a mechanism or a list"),
        (
            lambda: Composition(AdditiveNoise(drawn_centers, scale=1.0)),
            TypeError,
            "^step must have deterministic centres",
        ),
        (
            lambda: Composition(Composition(STEP), q=0.5),
            TypeError,
            "^step must be .* without q and batch_size$",
        ),
        (lambda: Composition(STEP, 0), ArgumentError, "^times must be an integer >= 1, got 0"),
        (lambda: Composition(STEP, 10**9), ArgumentError, "^times must be an integer <= "),
        (lambda: Composition([STEP] * 2, 10**8), ArgumentError, "^times must give at most"),
        (lambda: Composition(STEP, q=0.0), ArgumentError, "^q must be a finite number > 0, got 0"),
        (lambda: Composition(STEP, q=1.5), ArgumentError, r"^q must be a number in \(0, 1\], got"),
        (lambda: Composition(STEP, q=math.nan), ArgumentError, "^q must be a finite number > 0"),
        (lambda: Composition(STEP, batch_size=3), ArgumentError, "^q must be given for poisson"),
        (
            lambda: Composition(STEP, q=0.5, sampling="fixed"),
            ArgumentError,
            "^batch_size must be given for fixed",
        ),
        (lambda: Composition(STEP, sampling="shuffle"), ArgumentError, "^sampling must be one of"),
    ],
)
def test_bad_arguments_are_refused(
    make: Callable[[], Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        make()
