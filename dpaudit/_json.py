"""Conversion of frozen dataclasses to strict JSON and back, by their annotations.

JSON has no infinity, so ``inf`` in a field of type float is written as the word "inf". The
annotation distinguishes this word from a text "inf". Values inside mappings may have any type, so
``inf`` inside a mapping is written as ``{"float": "inf"}``. NaN is refused in writing and in
reading.

All fields must be present, except the fields that are marked :data:`LATER`. If an old file lacks
such a field, the field gets its default. Only :func:`loads` and :func:`decode` check a stored file
against its schema. The annotations of the dataclasses are the schema. A constructor may refuse
contradictory values. :func:`decode` then adds the names of the fields to the constructor's message.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import math
import types
import typing
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

LATER = types.MappingProxyType({"later": True})
"""Metadata of a field with a default that old files lack."""


@dataclasses.dataclass(frozen=True)
class Range:
    """Annotation of a number between two bounds, with both bounds allowed."""

    low: float
    high: float = math.inf


@dataclasses.dataclass(frozen=True)
class Printable:
    """Annotation of a text without control characters, such as a path."""


Name = typing.Annotated[str, Printable()]
Probability = typing.Annotated[float, Range(0.0, 1.0)]
Nonnegative = typing.Annotated[float, Range(0.0)]
Seconds = typing.Annotated[float, Range(0.0, 1e12)]
Count = typing.Annotated[int, Range(0, 1e18)]

DEEPEST = 64
"""Largest depth of nested objects and lists in a file."""

LONGEST_INTEGER = 100
"""Largest number of digits of an integer in a file."""


def loads(text: str | bytes, *, finite: bool = True) -> Any:
    """Read strict JSON; raise ``ValueError`` for text that :func:`encode` cannot have written.

    Refuse NaN, infinities, numbers that overflow to infinity, and integers of more than a hundred
    digits. Refuse also text with lone surrogates, and data nested more than 64 levels deep. With
    ``finite=False``, numbers may be NaN or infinite, because the cells of a frame may be NaN or
    infinite.
    """
    constant, number = (_no_constant, _finite) if finite else (float, float)
    try:
        data = json.loads(text, parse_constant=constant, parse_float=number, parse_int=_integer)
    except RecursionError:
        raise ValueError(f"the data must be nested at most {DEEPEST} levels deep") from None
    _check(data, DEEPEST)
    return data


def _no_constant(word: str) -> float:
    raise ValueError(f"numbers must be finite, got {word}")


def _finite(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise ValueError(f"the number {word[:20]} is too large")
    return value


def _integer(word: str) -> int:
    if len(word) > LONGEST_INTEGER:
        raise ValueError(f"an integer must have at most {LONGEST_INTEGER} digits, got {len(word)}")
    return int(word)


def _check(value: Any, levels: int) -> None:
    if isinstance(value, str):
        if not value.isascii():
            value.encode("utf-8")  # a UnicodeEncodeError is a ValueError
    elif isinstance(value, dict | list):
        if not levels:
            raise ValueError(f"the data must be nested at most {DEEPEST} levels deep")
        for key in value if isinstance(value, dict) else ():
            _check(key, 0)
        for item in value.values() if isinstance(value, dict) else value:
            _check(item, levels - 1)


def encode(value: Any, *, typed: bool = True) -> Any:
    """Return plain data for strict JSON; raise ``ValueError`` for NaN.

    `typed` says whether the reader of the value knows the annotation of the value.
    """
    if isinstance(value, float):
        if math.isnan(value):
            raise ValueError("values must not be NaN")
        if math.isfinite(value):
            return value
        word = "inf" if value > 0 else "-inf"
        return word if typed else {"float": word}
    if isinstance(value, StrEnum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item, typed=False) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item, typed=typed) for item in value]
    return value


def decode(annotation: Any, value: Any) -> Any:
    """Return a value of the annotated type; raise a ``ValueError`` with the name of the field."""
    if annotation is Any:
        return _untyped(value)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _annotated(arguments[0], arguments[1], value)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        *others, last = (a for a in arguments if a is not type(None))
        for other in others:
            with contextlib.suppress(ValueError):
                return decode(other, value)
        return decode(last, value)
    if origin is tuple and isinstance(value, list):
        if arguments[-1] is not Ellipsis and len(value) != len(arguments):
            raise ValueError(f"there must be {len(arguments)} values, got {len(value)}")
        if _are_plain(arguments[0], value):
            return tuple(value)
        return tuple(_named(i, decode, arguments[0], item) for i, item in enumerate(value))
    if origin is dict and isinstance(value, dict):
        return {str(key): _named(key, decode, arguments[1], v) for key, v in value.items()}
    if typing.is_typeddict(annotation) and isinstance(value, dict):
        return _typed_dict(annotation, value)
    if dataclasses.is_dataclass(annotation) and isinstance(value, dict):
        return _record(annotation, value)
    if isinstance(annotation, type) and issubclass(annotation, StrEnum) and isinstance(value, str):
        return annotation(value)
    if annotation is float:
        if isinstance(value, dict) and set(value) == {"float"}:
            value = value["float"]  # the form in which :func:`encode` writes infinities in mappings
        if value in ("inf", "-inf") or (type(value) in (int, float) and math.isfinite(value)):
            return float(value)
    if annotation in (int, str, bool) and type(value) is annotation:
        return value
    words = repr(value)
    got = words if len(words) <= _QUOTED else f"{words[:_QUOTED]}..."
    raise ValueError(f"the type must be {getattr(annotation, '__name__', annotation)}, got {got}")


def _are_plain(annotation: Any, values: list[Any]) -> bool:
    """Return whether values are scalars of the annotated type, so that no decoding is needed."""
    more = None
    if typing.get_origin(annotation) is typing.Annotated:
        annotation, more = typing.get_args(annotation)
    if annotation not in (float, int, str, bool) or any(type(v) is not annotation for v in values):
        return False
    if not values or more is None:
        return annotation is not float or all(map(math.isfinite, values))
    return isinstance(more, Range) and more.low <= min(values) <= max(values) <= more.high


_QUOTED = 60  # characters


def _annotated(type: Any, more: Any, value: Any) -> Any:
    """Decode a number in a range, a printable text, or a mapping with known keys."""
    if not isinstance(more, Range | Printable):
        return decode(more, value)
    found = decode(type, value)
    if isinstance(more, Printable):
        if not found.isprintable():
            raise ValueError(f"expected a text without control characters, got {found!r}"[:120])
        return found
    if not more.low <= found <= more.high:
        raise ValueError(f"expected a number in [{more.low:g}, {more.high:g}], got {found!r}"[:120])
    return found


def _named(name: Any, function: Any, *arguments: Any) -> Any:
    """Call a function, and prefix the message of its error with the name of a field."""
    try:
        return function(*arguments)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _untyped(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"float"} and value["float"] in ("inf", "-inf"):
            return float(value["float"])
        return {key: _untyped(item) for key, item in value.items()}
    return [_untyped(item) for item in value] if isinstance(value, list) else value


@functools.cache
def _hints(annotation: Any) -> dict[str, Any]:
    return typing.get_type_hints(annotation, include_extras=True)


def _typed_dict(annotation: Any, value: dict[str, Any]) -> dict[str, Any]:
    """Decode a mapping in which only some keys are known; other keys may hold anything."""
    hints = _hints(annotation)
    if missing := sorted(annotation.__required_keys__ - set(value)):
        raise ValueError(f"the data have no field {', '.join(missing)}")
    return {key: _named(key, decode, hints.get(key, Any), item) for key, item in value.items()}


def _record(record: Any, value: dict[str, Any]) -> Any:
    fields, hints = dataclasses.fields(record), _hints(record)
    later = {field.name for field in fields if "later" in field.metadata}
    names = [field.name for field in fields if field.name in value or field.name not in later]
    if set(value) != set(names):
        odd = sorted(set(value) ^ set(names))
        raise ValueError(f"{record.__name__} lacks or does not know {', '.join(odd)}")
    return record(**{name: _named(name, decode, hints[name], value[name]) for name in names})
