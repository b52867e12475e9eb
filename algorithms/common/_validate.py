"""Checks of arguments.

Every error message contains the name of the argument, the allowed values and the given value.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LARGEST_INTEGER = 2**53
"""Integers up to this absolute value are exact as floats."""


def draws(size: int) -> int:
    """Return the number of draws, a non-negative integer."""
    return integer("size", size, at_least=0)


def generator(rng: np.random.Generator) -> np.random.Generator:
    """Return the generator, which must be a numpy Generator (not a seed, not RandomState)."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(
            f"rng must be a numpy.random.Generator, got {rng!r}. "
            "Make one with numpy.random.default_rng(seed)."
        )
    return rng


def integer(name: str, value: int, *, at_least: int) -> int:
    """Return an integer that is at least `at_least`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {value!r}")
    return int(value)


def real(name: str, value: float) -> float:
    """Return a finite real number."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value!r}")
    return float(value)


def positive(name: str, value: float) -> float:
    """Return a finite real number above 0."""
    number = real(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be positive, got {value!r}")
    return number


def nonnegative(name: str, value: float) -> float:
    """Return a finite real number that is at least 0."""
    number = real(name, value)
    if number < 0:
        raise ValueError(f"{name} must be at least 0, got {value!r}")
    return number


def probability(name: str, value: float) -> float:
    """Return a real number strictly between 0 and 1."""
    number = real(name, value)
    if not 0 < number < 1:
        raise ValueError(f"{name} must be strictly between 0 and 1, got {value!r}")
    return number


def scale(numerator: float, epsilon: float) -> float:
    """Return ``numerator / epsilon`` as a noise scale whose multiples do not overflow."""
    quotient = numerator / epsilon
    if not 1e-300 < quotient < 1e300:
        raise ValueError(
            "the noise scale sensitivity / epsilon must be between 1e-300 and 1e300, got "
            f"{numerator!r} / {epsilon!r} = {quotient!r}"
        )
    return quotient


def _array(name: str, value: ArrayLike, ndims: tuple[int, ...]) -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(
            f"{name} must be an array whose rows have equal length ({error})"
        ) from None
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if array.ndim not in ndims:
        allowed = " or ".join(str(ndim) for ndim in ndims)
        raise ValueError(
            f"{name} must have {allowed} dimensions, got an array of shape {array.shape}"
        )
    if array.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}")
    return array


def floats(name: str, value: ArrayLike, *, ndims: tuple[int, ...]) -> FloatArray:
    """Return a non-empty array of finite floats with one of the allowed ranks."""
    array = _array(name, value, ndims).astype(np.float64, copy=False)
    if not np.isfinite(array).all():
        bad = array[~np.isfinite(array)].flat[0]
        raise ValueError(f"{name} must hold only finite values, got {bad}")
    return array


def integers(
    name: str,
    value: ArrayLike,
    *,
    ndims: tuple[int, ...],
    low: int = -LARGEST_INTEGER,
    high: int = LARGEST_INTEGER,
) -> IntArray:
    """Return a non-empty array of integers in [low, high] with one of the allowed ranks."""
    array = _array(name, value, ndims)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, got dtype {array.dtype}")
    outside = (array < low) | (array > high)
    if outside.any():
        bad = array[outside].flat[0]
        raise ValueError(f"{name} must hold only values from {low} to {high}, got {bad}")
    return array.astype(np.int64, copy=False)


def per_query(name: str, value: ArrayLike, n_queries: int) -> FloatArray:
    """Return finite values ``[n_queries]`` from one value for each query, or from one scalar."""
    array = floats(name, value, ndims=(0, 1))
    if array.ndim == 1 and array.size != n_queries:
        raise ValueError(
            f"{name} must be one number, or one number for each of the {n_queries} "
            f"queries, got shape {array.shape}"
        )
    return np.broadcast_to(array, (n_queries,))


def keep(frozen: object, **values: object) -> None:
    """Set the checked values as attributes of a frozen dataclass that is being constructed."""
    for name, value in values.items():
        object.__setattr__(frozen, name, value)
