"""Functions of numpy's and Python's global generators, drawn by a generator that is handed over."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

_SHARED = tuple(
    name
    for name in dir(np.random)
    if not name.startswith("_") and callable(getattr(np.random.Generator, name, None))
)
"""Functions of ``numpy.random`` that a Generator has as methods, with the same arguments."""


@contextmanager
def global_functions_of(rng: np.random.Generator) -> Iterator[None]:
    """Let the functions of ``numpy.random`` and ``random`` draw by the methods of a generator.

    So the noise of code that draws from global generators can be seen, and changed: mutants are
    handed a generator that records. Only the names in the modules are replaced: a function that
    was imported by its name, or a RandomState, draws from where it always does.
    """
    with ExitStack() as stack:
        for name in _SHARED:
            stack.enter_context(patch.object(np.random, name, getattr(rng, name)))
        for name, function in _other_names(rng).items():
            stack.enter_context(patch.object(np.random, name, function))
        for name, function in _of_python(rng).items():
            stack.enter_context(patch.object(random, name, function))
        yield


def _other_names(rng: np.random.Generator) -> dict[str, Callable[..., Any]]:
    """Return what ``numpy.random`` calls by names that a Generator does not have."""

    def randint(low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64) -> Any:
        return rng.integers(low, high, size, dtype)

    return {
        "rand": lambda *shape: rng.random(shape or None),
        "randn": lambda *shape: rng.standard_normal(shape or None),
        "randint": randint,
        **dict.fromkeys(("random_sample", "ranf", "sample"), rng.random),
    }


def _of_python(rng: np.random.Generator) -> dict[str, Callable[..., Any]]:
    """Return the functions of ``random`` that mechanisms draw noise and choices from."""

    def normal(mu: float = 0.0, sigma: float = 1.0) -> float:
        return rng.normal(mu, sigma)

    def randrange(start: int, stop: int | None = None, step: int = 1) -> int:
        numbers = range(start) if stop is None else range(start, stop, step)
        return numbers[rng.integers(len(numbers))]

    return {
        "random": rng.random,
        "uniform": rng.uniform,
        "gauss": normal,
        "normalvariate": normal,
        "expovariate": lambda lambd=1.0: rng.exponential(1 / lambd),
        "randint": lambda a, b: int(rng.integers(a, b, endpoint=True)),
        "randrange": randrange,
        "choice": lambda seq: seq[rng.integers(len(seq))],
        "shuffle": rng.shuffle,
    }
