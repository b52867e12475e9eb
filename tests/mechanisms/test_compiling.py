"""A mechanism that is compiled at every call is told of, once; others are not."""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpaudit import NeighborPair, PureDP, audit
from dpaudit.errors import SlowAuditWarning
from dpaudit.mechanisms import sampler

PAIR = NeighborPair([[0.0]], [[1.0]])


@pytest.fixture
def compile_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A JAX that only tells that it compiled."""
    listeners: list[Callable[..., None]] = []
    jax = types.ModuleType("jax")
    jax.Array = type("Array", (), {})  # type: ignore[attr-defined]  # scipy asks for it
    jax.monitoring = types.SimpleNamespace(  # type: ignore[attr-defined]
        register_event_duration_secs_listener=listeners.append
    )
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setattr(sampler, "_COUNTER", sampler._Counter())

    def tell() -> None:
        for listener in listeners:
            listener("/jax/core/compile/backend_compile_duration", 0.5)

    return tell


def test_compiling_at_every_call_is_told_once(compile_once: Callable[[], None]) -> None:
    def compiles(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        compile_once()
        return rng.laplace(size=size)

    with pytest.warns(
        SlowAuditWarning, match=r"compiled anew in 12 of 1\d calls.*vmap=True"
    ) as told:
        audit(compiles, PureDP(1.0), PAIR, draws=1000, seed=1, mutants=None)
    assert len(told) == 1


def test_few_compilations_are_not_told(compile_once: Callable[[], None]) -> None:
    sizes: set[int] = set()

    def compiles(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        if size not in sizes:
            sizes.add(size)
            compile_once()
        return rng.laplace(size=size)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        audit(compiles, PureDP(1.0), PAIR, draws=1000, seed=1, mutants=None)
