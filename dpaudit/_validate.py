"""Checks of arguments, in one place so that every refusal reads alike.

Each check takes the argument as a keyword, ``positive(sigma=sigma)``, so the message can name it:
``sigma must be a finite number > 0, got -1.0``.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

from dpaudit.errors import ArgumentError

DEFAULT_FAILURE_PROB = 1e-6
"""Of one audit, so that a run of hundreds, mutants included, errs with probability below 1e-3."""


def _number(allowed: str, accept: Callable[[float], bool], named: dict[str, Any]) -> float:
    ((name, value),) = named.items()
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be {allowed}, got {value!r} of type {type(value).__name__}")
    number = float(value)
    if not accept(number):
        raise ArgumentError(f"{name} must be {allowed}, got {value!r}")
    return number


def positive(**named: Any) -> float:
    """Return the one keyword argument as a float; refuse anything but a finite number > 0."""
    return _number("a finite number > 0", lambda x: math.isfinite(x) and x > 0, named)


def nonnegative(**named: Any) -> float:
    """Return the one keyword argument as a float; refuse anything but a finite number >= 0."""
    return _number("a finite number >= 0", lambda x: math.isfinite(x) and x >= 0, named)


def finite(**named: Any) -> float:
    """Return the one keyword argument as a float; refuse anything but a finite number."""
    return _number("a finite number", math.isfinite, named)


def delta(**named: Any) -> float:
    """Return the one keyword argument as a float; refuse anything outside [0, 1]."""
    return _number("a number in [0, 1]", lambda x: 0 <= x <= 1, named)


def failure_prob(**named: Any) -> float:
    """Return the one keyword argument as a float; refuse anything outside the open (0, 1)."""
    return _number("a number strictly between 0 and 1", lambda x: 0 < x < 1, named)


def integer(minimum: int, **named: Any) -> int:
    """Return the one keyword argument as an int; refuse other types and values below `minimum`."""
    ((name, value),) = named.items()
    allowed = f"an integer >= {minimum}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be {allowed}, got {value!r} of type {type(value).__name__}")
    if value < minimum:
        raise ArgumentError(f"{name} must be {allowed}, got {value!r}")
    return int(value)


def choice(options: tuple[str, ...], **named: Any) -> str:
    """Return the one keyword argument; refuse anything that is not one of `options`."""
    ((name, value),) = named.items()
    if value not in options:
        raise ArgumentError(f"{name} must be one of {', '.join(options)}; got {value!r}")
    return str(value)
