"""The shapes that a mechanism may have, and what it is called.

A *sampled* mechanism is ``f(data, size, *, rng) -> array [size, ...]``: `size` independent draws
in one call. An *exact* mechanism has a method ``pmf(data) -> [k]`` over a finite range, so that
its divergences are computed instead of estimated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate

Array = NDArray[Any]


@runtime_checkable
class SampledMechanism(Protocol):
    """A function that draws.

    ``f(data, size, *, rng)`` returns `size` independent draws, first axis the draw; numbers,
    booleans, strings or records; NaN marks "no answer", inf is refused.
    """

    def __call__(self, data: Array, size: int, *, rng: np.random.Generator) -> Array:
        """Return `size` independent draws."""


@runtime_checkable
class ExactMechanism(Protocol):
    """A mechanism over a finite range whose probabilities are known."""

    def pmf(self, data: Array) -> NDArray[np.float64]:
        """Return the probability of each of the k outcomes, in a fixed order, shape (k,)."""


def unseeded(mechanism: Callable[..., Array]) -> Callable[..., Array]:
    """Mark a mechanism that draws from an entropy source of its own and cannot be seeded.

    Its audits are as sound as any other, but `dpaudit replay` compares verdicts and not counts.

    Examples
    --------
    >>> import secrets
    >>> @unseeded
    ... def coin(data, size, *, rng):
    ...     return np.array([secrets.randbelow(2) for _ in range(size)])
    >>> is_seeded(coin)
    False
    """
    _validate.function("a function f(data, size, *, rng)", mechanism=mechanism)

    @functools.wraps(mechanism)
    def marked(data: Array, size: int, **arguments: Any) -> Array:
        return mechanism(data, size, **arguments)

    marked.__dict__["dpaudit_unseeded"] = True
    marked.__name__ = mechanism_name(mechanism)
    return marked


def is_seeded(mechanism: Any) -> bool:
    """Whether the mechanism's draws are determined by the generator that it is handed."""
    while isinstance(mechanism, functools.partial):
        mechanism = mechanism.func
    return not getattr(mechanism, "dpaudit_unseeded", False)


def counts_changes(mechanism: Any) -> Any:
    """Return the part of a mechanism that counts its changes in ``changed``, if it is a mutant."""
    return getattr(mechanism, "centers", mechanism)


def mechanism_name(mechanism: Any) -> str:
    """Words for a mechanism: its function's name and the keywords bound by ``partial``.

    Examples
    --------
    >>> mechanism_name(functools.partial(sorted, reverse=True))
    'sorted(reverse=True)'
    """
    bound: dict[str, Any] = {}
    while isinstance(mechanism, functools.partial):
        bound = {**mechanism.keywords, **bound}
        mechanism = mechanism.func
    name = getattr(mechanism, "__name__", None) or type(mechanism).__name__
    if not bound:
        return str(name)
    words = ", ".join(f"{key}={_short(value)}" for key, value in bound.items())
    return f"{name}({words})"


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = " ".join(str(value).split()) if isinstance(value, np.ndarray) else repr(value)
    if " at 0x" in text:  # an address would give every process another name, and another seed
        text = getattr(value, "__qualname__", type(value).__qualname__)
    return text if len(text) <= 60 else text[:57] + "..."
