"""Checks of arguments.

The checks are in one module so that all messages have the same form. Each check takes the argument
as a keyword, ``positive(sigma=sigma)``, so the message can name it: ``sigma must be a finite number
> 0, got -1.0``.
"""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dpaudit.errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

DEFAULT_FAILURE_PROB = 1e-6
"""Of one audit. A run of hundreds, including mutants, then errs with probability below 1e-3."""

DEFAULT_SEED = 0

LARGEST_INTEGER = 2**63 - 1
"""Largest size or count, which numpy and stored files must be able to hold."""

LARGEST_SEED = 2**128 - 1

_MAX_LENGTH = 100
"""Largest number of characters of a value in a message."""


def describe(value: Any) -> str:
    """Return the text of a value for an error message, on one line and shortened."""
    try:
        words = " ".join(ascii(value).split()) if isinstance(value, str) else repr(value)
    except Exception:  # an integer with too many digits, or any error of an object
        words = f"a {type(value).__name__}"
    return words if len(words) <= _MAX_LENGTH else f"{words[: _MAX_LENGTH - 3]}..."


def _typed(value: Any) -> str:
    return f"{describe(value)} of type {type(value).__name__}"


def _number(allowed: str, accept: Callable[[float], bool], named: dict[str, Any]) -> float:
    ((name, value),) = named.items()
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be {allowed}, got {_typed(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not accept(number):
        raise ArgumentError(f"{name} must be {allowed}, got {describe(value)}")
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
    """Return the one keyword argument as a float; refuse anything outside the interval (0, 1)."""
    return _number("a number strictly between 0 and 1", lambda x: 0 < x < 1, named)


def integer(minimum: int, maximum: int = LARGEST_INTEGER, /, **named: Any) -> int:
    """Return the one keyword argument as an int; refuse other types and values out of range."""
    ((name, value),) = named.items()
    allowed = "a whole number" if minimum < -1 else f"an integer >= {minimum}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be {allowed}, got {_typed(value)}")
    value = int(value)
    if value < minimum:
        raise ArgumentError(f"{name} must be {allowed}, got {describe(value)}")
    if value > maximum:
        raise ArgumentError(f"{name} must be an integer <= {maximum}, got {describe(value)}")
    return value


def seed(**named: Any) -> int:
    """Return the one keyword argument as an int; refuse anything but an integer in [0, 2**128)."""
    return integer(0, LARGEST_SEED, **named)


def choice(options: tuple[str, ...], **named: Any) -> str:
    """Return the one keyword argument; refuse anything that is not one of `options`."""
    ((name, value),) = named.items()
    if not isinstance(value, str) or value not in options:
        raise ArgumentError(f"{name} must be one of {', '.join(options)}, got {describe(value)}")
    return str(value)


def flag(**named: Any) -> bool:
    """Return the one keyword argument; refuse anything but True and False."""
    ((name, value),) = named.items()
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {describe(value)}")
    return value


def text(*, empty: Any = False, **named: Any) -> str:
    """Return the one keyword argument; refuse anything but a text in valid Unicode."""
    ((name, value),) = named.items()
    allowed = "a text" if empty else "a text that is not empty"
    if not isinstance(value, str):
        raise TypeError(f"{name} must be {allowed}, got {_typed(value)}")
    if not (value.strip() or empty):
        raise ArgumentError(f"{name} must be {allowed}, got {describe(value)}")
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ArgumentError(
            f"{name} must be {allowed}, without surrogate characters, got {describe(value)}"
        )
    return value


def function(allowed: str = "a function", /, **named: Any) -> Callable[..., Any]:
    """Return the one keyword argument; refuse anything that cannot be called."""
    ((name, value),) = named.items()
    if not callable(value):
        raise TypeError(f"{name} must be {allowed}, got {describe(value)}")
    return value  # type: ignore[no-any-return]


def instance(kind: type[T], allowed: str, /, **named: Any) -> T:
    """Return the one keyword argument; refuse anything but an object of the given class."""
    ((name, value),) = named.items()
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {allowed}, got {describe(value)}")
    return value


def generator(**named: Any) -> np.random.Generator:
    """Return the one keyword argument; refuse anything but a ``numpy.random.Generator``."""
    import numpy as np  # imported late, because the pytest plugin does not need it

    return instance(np.random.Generator, "a numpy.random.Generator", **named)


def path(**named: Any) -> Path:
    """Return the one keyword argument as a path; refuse anything else."""
    ((name, value),) = named.items()
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} must be a path, got {_typed(value)}")
    return Path(text(**{name: os.fspath(value)}))


def items(allowed: str, /, **named: Any) -> tuple[Any, ...]:
    """Return the one keyword argument as a tuple; refuse texts and empty collections."""
    ((name, value),) = named.items()
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"{name} must be {allowed}, got {describe(value)}")
    if not (held := tuple(value)):
        raise ArgumentError(f"{name} must be {allowed} with at least one entry, got none")
    return held


def vector(**named: Any) -> NDArray[np.float64]:
    """Return the one keyword argument as a vector of floats; refuse empty and other values."""
    import numpy as np  # imported late, as above

    ((name, value),) = named.items()
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.empty(0)
    if array.ndim != 1 or not array.size or not np.isfinite(array).all():
        raise ArgumentError(
            f"{name} must be a nonempty one-dimensional array of finite numbers, got "
            f"{describe(value)}"
        )
    return array


def same_length(record: Any, *names: str) -> None:
    """Raise ``ValueError`` unless the fields of a dataclass have equal lengths."""
    lengths = {name: len(getattr(record, name)) for name in names}
    if len(set(lengths.values())) > 1:
        words = ", ".join(f"{length} in {name}" for name, length in lengths.items())
        raise ValueError(f"{', '.join(names)} must have equal lengths, got {words}")


def exact_keys(record: Any, name: str, *keys: str) -> None:
    """Raise ``ValueError`` unless a field of a dataclass is a mapping with exactly these keys."""
    if set(getattr(record, name)) != set(keys):
        held = ", ".join(map(repr, getattr(record, name))) or "none"
        raise ValueError(f"{name} must have the keys {', '.join(keys)}, got {held}")
