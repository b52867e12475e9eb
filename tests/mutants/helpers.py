"""Functions for the tests of patches.

The functions are defined in this module, and one function has two names.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np


def clip(data: Any, low: float = 0.0, high: float = 1.0) -> Any:
    """Clip."""
    return np.clip(data, low, high)


also_clip = clip


def held_by_a_partial(data: Any) -> Any:
    """Clip at 2."""
    return data


def held_by_a_default(data: Any) -> Any:
    """Return the data."""
    return data


def held_by_a_dict(data: Any) -> Any:
    """Return the data."""
    return data


def held_by_a_closure(data: Any) -> Any:
    """Return the data."""
    return data


def held_by_a_list(data: Any) -> Any:
    """Return the data."""
    return data


@functools.cache
def cached(data: int) -> int:
    """Return the square."""
    return data * data


def with_a_default(data: Any, function: Any = held_by_a_default) -> Any:
    """Call the function that the object holds."""
    return function(data)


def closing_over(function: Any) -> Any:
    """Return a function that calls another."""

    def inner(data: Any) -> Any:
        return function(data)

    return inner


PARTIAL = functools.partial(held_by_a_partial)
REGISTRY = {"held": held_by_a_dict}
LIST = [held_by_a_list]
CLOSURE = closing_over(held_by_a_closure)


class Clipper:
    """A class with a method and a static method."""

    def __init__(self, high: float) -> None:
        self.high = high

    def clip(self, data: Any) -> Any:
        """Clip from above."""
        return np.minimum(data, self.high)

    @staticmethod
    def floor(data: Any) -> Any:
        """Clip from below."""
        return np.maximum(data, 0.0)


constant = 3


def with_noise(value, size, *, rng):
    """Draw noise by inversion, in two draws."""
    return value + rng.choice([-1.0, 1.0], size) * -np.log1p(-rng.random(size))
