"""Frozen dataclasses to strict JSON and back, by their annotations.

JSON has no infinity, so in a field of type float ``inf`` is written as the word "inf"; the
annotation tells such a word from a text that happens to read "inf". Inside mappings, whose values
may be anything, it is written as ``{"float": "inf"}``. NaN is refused on either side.

All fields must be there, but those that are marked :data:`LATER`: what was stored before there
was such a field is read with its default.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

LATER = types.MappingProxyType({"later": True})
"""Metadata of a field with a default that old files lack."""


def encode(value: Any, *, typed: bool = True) -> Any:
    """Return plain data for strict JSON; raise ``ValueError`` for NaN.

    `typed` tells whether an annotation will be at hand to read the value again.
    """
    if isinstance(value, float):
        if math.isnan(value):
            raise ValueError("NaN cannot be stored")
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
    """Rebuild a value of the annotated type; raise ``ValueError`` for anything else."""
    if annotation is Any:
        return _untyped(value)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        (annotation,) = (a for a in arguments if a is not type(None))
        return decode(annotation, value)
    if origin is tuple and isinstance(value, list):
        return tuple(decode(arguments[0], item) for item in value)
    if origin is dict and isinstance(value, dict):
        return {str(key): decode(arguments[1], item) for key, item in value.items()}
    if dataclasses.is_dataclass(annotation) and isinstance(value, dict):
        return _record(typing.cast("type[Any]", annotation), value)
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return annotation(value)
    if annotation is float and value in ("inf", "-inf"):
        return float(value)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if annotation is float and number and math.isfinite(value):
        return float(value)
    if annotation in (int, str, bool) and type(value) is annotation:
        return value
    raise ValueError(f"expected {getattr(annotation, '__name__', annotation)}, got {value!r}")


def _untyped(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"float"} and value["float"] in ("inf", "-inf"):
            return float(value["float"])
        return {key: _untyped(item) for key, item in value.items()}
    return [_untyped(item) for item in value] if isinstance(value, list) else value


def _record(record: type[Any], value: dict[str, Any]) -> Any:
    fields, hints = dataclasses.fields(record), typing.get_type_hints(record)
    later = {field.name for field in fields if "later" in field.metadata}
    names = [field.name for field in fields if field.name in value or field.name not in later]
    if set(value) != set(names):
        odd = sorted(set(value) ^ set(names))
        raise ValueError(f"{record.__name__} lacks or does not know {', '.join(odd)}")
    decoded = {}
    for name in names:
        try:
            decoded[name] = decode(hints[name], value[name])
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return record(**decoded)
