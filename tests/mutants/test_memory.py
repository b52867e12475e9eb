"""Values that a mechanism keeps between calls are noticed, and values of libraries are not."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from dpaudit import Outcomes, one_draw
from dpaudit.mutants import Memory

Array = NDArray[Any]

known: dict[Any, Any] = {}
last: float | None = None


def keeps_in_a_dict(data: Array, size: int, *, rng: Generator) -> Array:
    known[data.tobytes()] = data.sum()
    return known[data.tobytes()] + rng.normal(size=size)


def keeps_in_a_helper(data: Array, size: int, *, rng: Generator) -> Array:
    return keeps_in_a_dict(data, size, rng=rng)


def keeps_in_a_variable(data: Array, size: int, *, rng: Generator) -> Array:
    global last
    last = float(data.sum()) + 1e6
    return last + rng.normal(size=size)


def keeps_in_a_default(
    data: Array,
    size: int,
    *,
    rng: Generator,
    memo: dict[Any, Any] = {},  # noqa: B006
) -> Array:
    memo[data.tobytes()] = data.sum()
    return data.sum() + rng.normal(size=size)


def keeps_in_its_attribute(data: Array, size: int, *, rng: Generator) -> Array:
    keeps_in_its_attribute.seen.add(data.tobytes())  # type: ignore[attr-defined]
    return data.sum() + rng.normal(size=size)


keeps_in_its_attribute.seen = set()  # type: ignore[attr-defined]


def keeps_in_a_closure() -> Any:
    kept: dict[Any, Any] = {}

    def inside(data: Array, size: int, *, rng: Generator) -> Array:
        kept[data.tobytes()] = 1
        return data.sum() + rng.normal(size=size)

    return inside


class Keeps:
    """A mechanism with attributes."""

    of_all: ClassVar[dict[Any, Any]] = {}

    def __init__(self) -> None:
        self.calls = 1000

    def in_an_attribute(self, data: Array, size: int, *, rng: Generator) -> Array:
        self.calls += 1
        return data.sum() + rng.normal(size=size)

    def in_the_class(self, data: Array, size: int, *, rng: Generator) -> Array:
        self.of_all[data.tobytes()] = 1
        return data.sum() + rng.normal(size=size)

    __call__ = in_an_attribute


@one_draw
def keeps_one_draw(data: Array, *, rng: Generator) -> float:
    known[data.tobytes()] = 1
    return float(data.sum() + rng.normal())


def pure(data: Array, size: int, *, rng: Generator) -> Array:
    return np.clip(data, 0, 1).sum() + rng.normal(size=size)


class Pure:
    """A mechanism with a constant attribute."""

    def __init__(self) -> None:
        self.bounds = {"low": 0, "high": 1}

    def __call__(self, data: Array, size: int, *, rng: Generator) -> Array:
        return pure(data, size, rng=rng) + self.bounds["low"]


def after_a_call(mechanism: Any) -> str:
    known.clear()
    memory = Memory(mechanism)
    assert memory.changed() == ""
    mechanism(np.arange(3.0), 2, rng=np.random.default_rng(0))
    return memory.changed()


@pytest.mark.parametrize(
    ("mechanism", "place"),
    [
        (keeps_in_a_dict, "known"),
        (keeps_in_a_helper, "known"),
        (keeps_in_a_variable, "last"),
        (keeps_in_a_default, "a default of keeps_in_a_default"),
        (keeps_in_its_attribute, "seen"),
        (keeps_in_a_closure(), "kept"),
        (Keeps(), "the attributes of Keeps"),
        (Keeps().in_an_attribute, "the attributes of Keeps"),
        (Keeps().in_the_class, "of_all"),
        (keeps_one_draw, "known"),
        (functools.partial(keeps_in_a_dict), "known"),
        (Outcomes(keeps_in_a_dict), "known"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_kept_value_is_noticed(mechanism: Any, place: str) -> None:
    assert after_a_call(mechanism) == place


def fails_on_large_data(data: Array, *, rng: Generator) -> float:
    if data.sum() > 2:
        raise ValueError
    return float(rng.normal())


@pytest.mark.parametrize(
    "kind", ["function", "object", "one draw", "partial", "outcomes", "failures"]
)
def test_a_mechanism_without_memory_changes_nothing(kind: str) -> None:
    mechanism = {
        "function": pure,
        "object": Pure(),
        "one draw": one_draw(lambda data, *, rng: float(rng.normal())),
        "partial": functools.partial(pure),
        "outcomes": Outcomes(pure),
        "failures": Outcomes(one_draw(fails_on_large_data), errors="outcome"),
    }[kind]
    assert after_a_call(mechanism) == ""


def test_replaced_entries_are_noticed() -> None:
    """Check that a full cache of fixed size changes, although it does not grow."""
    known.clear()
    known["a"] = object()
    memory = Memory(keeps_in_a_dict)
    known["a"] = object()
    assert memory.changed() == "known"
