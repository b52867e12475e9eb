"""Domains of cases: named numbers and arrays between bounds, for both searches of a falsifier.

The library hypothesis draws cases from a domain and shrinks cases within the domain. The numeric
search moves in the unit cube of the domain.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.errors import ArgumentError
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties.generating import hnp, st

Range = Interval | Integer | Choice

_MOST_LENGTHS = 8  # largest number of lengths of one axis that are tried


@dataclass(frozen=True)
class Array:
    """An array whose entries lie in one range.

    Parameters
    ----------
    entries : Interval or Integer
        Range of every entry. With an Integer, the array holds whole numbers.
    shape : tuple of int or str
        Shape of the array. No axis is empty. A name in the shape refers to another part of the
        domain, which is an Integer or a Choice of integers. An example is
        ``Domain(points=Array(UNIT, ("n", "d")), n=Integer(1, 6), d=2)``.
    """

    entries: Interval | Integer
    shape: tuple[int | str, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.entries, Interval | Integer):
            raise TypeError(
                "entries must be an Interval or an Integer, such as Integer(0, 1), got "
                f"{_validate.describe(self.entries)}"
            )
        axes = self.shape if isinstance(self.shape, tuple) else ()
        if not axes or any(not isinstance(s, str) and not _is_length(s) for s in axes):
            raise ArgumentError(
                "shape must hold integers >= 1 and names of other parts, got "
                f"{_validate.describe(self.shape)}"
            )

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes whose length is given by another part of the domain."""
        return tuple(axis for axis in self.shape if isinstance(axis, str))

    @property
    def lengths(self) -> tuple[int, ...]:
        """The shape, if no axis is named."""
        return tuple(axis for axis in self.shape if not isinstance(axis, str))

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.lengths)

    def sized(self, lengths: Mapping[str, int]) -> Array:
        """Return the array with lengths in place of the names of axes."""
        return Array(
            self.entries, tuple(lengths[s] if isinstance(s, str) else s for s in self.shape)
        )

    def at(self, u: NDArray[np.float64]) -> NDArray[Any]:
        """Return the array at `u` in the unit cube, shape ``[size]``."""
        return np.array([self.entries.at(float(x)) for x in u]).reshape(self.lengths)


class Domain:
    """Cases with named parts, such as ``Domain(epsilon=Interval(0.01, 1), n=Integer(2, 50), d=3)``.

    Parameters
    ----------
    **parts
        Each part is an Interval, Integer, Choice or Array. Anything else is a constant of every
        case. A part that gives the length of an axis is also a part of the case.
    """

    def __init__(self, **parts: Any) -> None:
        self.parts: Mapping[str, Any] = parts
        if not any(isinstance(part, Range | Array) for part in parts.values()):
            raise ArgumentError(
                f"parts ({', '.join(parts)}) of a domain must hold at least one Interval, Integer, "
                "Choice or Array"
            )

        for name, part in parts.items():
            for axis in part.axes if isinstance(part, Array) else ():
                if not all(map(_is_length, _values(parts.get(axis)))):
                    raise ArgumentError(
                        f"axis {axis!r} of {name} must be an integer >= 1, or another part of the "
                        "domain that is an Integer or a Choice of integers, got "
                        f"{parts.get(axis)!r}"
                    )

    def sized(self) -> list[Domain]:
        """Return domains with a fixed length of every axis; those of extreme lengths come first."""
        arrays = {key: part for key, part in self.parts.items() if isinstance(part, Array)}
        axes = list(dict.fromkeys(axis for array in arrays.values() for axis in array.axes))
        if not axes:
            return [self]
        choices = [_representatives(sorted(set(_values(self.parts[axis])))) for axis in axes]
        some = []
        inner = [set(lengths[1:-1]) for lengths in choices]
        for lengths in sorted(
            itertools.product(*choices),
            key=lambda one: sum(n in few for n, few in zip(one, inner, strict=True)),
        ):
            given = dict(zip(axes, lengths, strict=True))
            parts = {**self.parts, **given}
            some.append(
                Domain(
                    **{k: arrays[k].sized(given) if k in arrays else p for k, p in parts.items()}
                )
            )
        return some

    def __repr__(self) -> str:
        return f"Domain({', '.join(f'{key}={part!r}' for key, part in self.parts.items())})"

    def _spans(self) -> Iterator[tuple[str, Any, int]]:
        for key, part in self.parts.items():
            yield key, part, part.size if isinstance(part, Array) else int(isinstance(part, Range))

    @property
    def dimension(self) -> int:
        """Dimension of the unit cube."""
        return sum(span for _, _, span in self._spans())

    def corners(self) -> Iterator[NDArray[np.float64]]:
        """Yield the middle of the unit cube, and then corners.

        First, all numbers of a part are equal: at one end for all parts, or for all parts but one.
        Then, in turns, more parts lie at the other end, or one number of an array does.
        """
        spans = [span for _, _, span in self._spans() if span]
        yield np.full(self.dimension, 0.5)
        moved = range(len(spans) // 2 + 1)  # more at one end are fewer at the other end
        yield from itertools.chain.from_iterable(_at_ends(spans, n) for n in moved[:2])
        further = itertools.chain.from_iterable(_at_ends(spans, n) for n in moved[2:])
        for both in itertools.zip_longest(further, self._single(spans)):
            yield from (u for u in both if u is not None)

    def _single(self, spans: Sequence[int]) -> Iterator[NDArray[np.float64]]:
        """Yield corners in which only one number of an array lies at the other end."""
        for end in (np.zeros(self.dimension), np.ones(self.dimension)):
            for j in np.flatnonzero(np.repeat(np.array(spans) > 1, spans)):
                other = end.copy()
                other[j] = 1.0 - end[j]
                yield other

    def at(self, u: NDArray[np.float64]) -> dict[str, Any]:
        """Return the case at a point of the unit cube."""
        case, start = {}, 0
        for key, part, span in self._spans():
            if isinstance(part, Array):
                case[key] = part.at(u[start : start + span])
            else:
                case[key] = part.at(float(u[start])) if span else part
            start += span
        return case

    def __contains__(self, case: Any) -> bool:
        """Return whether a case lies in the domain, including its constants."""
        if not isinstance(case, Mapping) or set(case) != set(self.parts):
            return False
        return all(_holds(part, case[key]) for key, part in self.parts.items())

    def strategy(self) -> st.SearchStrategy[dict[str, Any]]:
        """Return the hypothesis strategy of the cases, which shrinks towards simple numbers."""
        return st.fixed_dictionaries({key: _strategy(part) for key, part in self.parts.items()})


def _at_ends(spans: Sequence[int], moved: int) -> Iterator[NDArray[np.float64]]:
    """Yield corners with equal numbers in each part, of which `moved` lie at the other end."""
    for parts in itertools.combinations(range(len(spans)), moved):
        end = np.zeros(len(spans))
        end[list(parts)] = 1.0
        yield np.repeat(end, spans)
        if 2 * moved != len(spans):  # otherwise another combination
            yield np.repeat(1.0 - end, spans)


def _is_length(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _values(part: Any) -> tuple[Any, ...]:
    """Return the lengths that a part allows, or the part itself if it is not a range."""
    if isinstance(part, Integer):
        return tuple(range(part.low, part.high + 1))
    return tuple(part.values) if isinstance(part, Choice) else (part,)


def _representatives(values: Sequence[int]) -> list[int]:
    """Return all values, or only both ends and more values near the lower end."""
    if len(values) <= _MOST_LENGTHS:
        return list(values)
    at = np.geomspace(1, len(values), _MOST_LENGTHS).round().astype(int) - 1
    return [values[i] for i in np.unique(at)]


def _holds(part: Any, value: Any) -> bool:
    if isinstance(part, Array):
        is_whole = isinstance(part.entries, Interval) or np.asarray(value).dtype.kind in "iu"
        return is_whole and np.shape(value) == part.lengths and _between(part.entries, value)
    if isinstance(part, Interval):
        return _between(part, value)
    if isinstance(part, Integer):
        return isinstance(value, int | np.integer) and bool(part.low <= value <= part.high)
    if isinstance(part, Choice):
        return any(value is known or value == known for known in part.values)
    return value is part or bool(np.array_equal(value, part))


def _between(interval: Interval | Integer, value: Any) -> bool:
    return bool(np.all((np.asarray(value) >= interval.low) & (np.asarray(value) <= interval.high)))


def _strategy(part: Any) -> st.SearchStrategy[Any]:
    if isinstance(part, Integer):
        return st.integers(part.low, part.high)
    if isinstance(part, Choice):
        return st.sampled_from(part.values)
    if isinstance(part, Interval):
        return _floats(part)
    if isinstance(part, Array):
        dtype = np.int64 if isinstance(part.entries, Integer) else np.float64
        return hnp.arrays(dtype, part.lengths, elements=_strategy(part.entries))
    return st.just(part)


def _floats(interval: Interval) -> st.SearchStrategy[float]:
    plain = st.floats(interval.low, interval.high, allow_subnormal=False)
    if not interval.log:
        return plain
    return plain | st.floats(0, 1, allow_subnormal=False).map(interval.at)
