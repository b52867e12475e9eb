"""The keywords of an attempt: domains, grids, constants, and the changes of a mutant."""

from __future__ import annotations

import inspect
import itertools
import numbers
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array, Domain, Inequality, Range, st

Changed = Mapping[str, Any]
"""Keywords of an inequality with other values, by which a mutant is defined."""


class Cases:
    """The cases of one function, as described by the keywords of an attempt.

    Parameters
    ----------
    domain : mapping
        Ranges, lists and constants by keyword.
    function : callable
        The function that takes the keywords.
    listed : iterable of mapping, optional
        Cases that are combined with each point of a grid.
    """

    def __init__(
        self,
        domain: Mapping[str, Any],
        function: Callable[..., Any],
        listed: Iterable[Changed] | None = None,
    ) -> None:
        self._domain = domain
        self._listed = None if listed is None else list(listed)
        arrays = {name: part for name, part in domain.items() if isinstance(part, Array)}
        self._arrays = arrays
        axes = {axis for array in arrays.values() for axis in array.axes}
        self._silent = axes - _parameters(function)
        unknown = set(domain) - self._silent - _parameters(function)
        if unknown and not _takes_all(function):
            raise TypeError(
                f"{getattr(function, '__name__', function)} has no parameter "
                f"{', '.join(sorted(unknown))}. Use only parameters of the function as "
                "keywords of the attempt"
            )

    @property
    def searched(self) -> Any:
        """The domain, or one hypothesis strategy."""
        if any(isinstance(part, st.SearchStrategy) for part in self._domain.values()):
            parts = {
                name: part if isinstance(part, st.SearchStrategy) else st.just(part)
                for name, part in self._domain.items()
                if not isinstance(part, Range | Array)
            }
            rest = {n: p for n, p in self._domain.items() if isinstance(p, Range | Array)}
            if rest:
                raise TypeError(
                    "the keywords must be all strategies or all ranges, got both, with the ranges "
                    f"{', '.join(rest)}"
                )
            return st.fixed_dictionaries(parts)
        return Domain(**self._domain)

    @property
    def points(self) -> list[dict[str, Any]]:
        """Every combination of the listed values and the listed cases."""
        return [{**p, **case} for p in _grid(self._domain) for case in self._listed or ({},)]

    @property
    def words(self) -> str:
        """The numbers and ranges of the cases, as text."""
        parts = [
            words for name, part in self._domain.items() if (words := _range_words(name, part))
        ]
        if self._listed is not None:
            parts.append(f"{len(self._listed)} listed case{'s' * (len(self._listed) != 1)}")
        return ", ".join(parts) or "the inputs of the check"

    @property
    def constants(self) -> dict[str, Any]:
        """The keywords that have the same value in every case."""
        varied = (Range, Array, st.SearchStrategy, range, list, tuple)
        return {n: p for n, p in self._domain.items() if not isinstance(p, varied)}

    def of(self, function: Callable[..., Any]) -> Inequality:
        """Return the function for whole cases, without axes that are not its parameters."""

        def sides(**case: Any) -> Any:
            return function(**{k: v for k, v in case.items() if k not in self._silent})

        return sides if self._silent else function

    def completed(self, case: Changed) -> dict[str, Any]:
        """Return a hand-built case with the constants of the domain and the lengths of arrays."""
        constants = {
            name: part
            for name, part in self._domain.items()
            if not isinstance(part, Range | Array | st.SearchStrategy)
        }
        lengths = {
            axis: length
            for name, array in self._arrays.items()
            if name in case
            for axis, length in zip(array.shape, np.shape(case[name]), strict=True)
            if isinstance(axis, str)
        }
        whole = {**constants, **lengths, **case}
        if missing := set(self._domain) - set(whole):
            raise TypeError(f"extremal cases must give {', '.join(sorted(missing))}, got {case!r}")
        return whole

    def changed(
        self, function: Callable[..., Any], other: Changed | Inequality | None
    ) -> Inequality | None:
        """Return a function with some keywords changed, or another function if one is given."""
        if other is None or callable(other):
            return other if other is None else self.of(other)
        if (unknown := set(other) - _parameters(function)) and not _takes_all(function):
            raise TypeError(f"the function has no parameter {', '.join(sorted(unknown))}")
        known = dict(other)
        return self.of(lambda **case: function(**{**case, **known}))

    def mutant(
        self, function: Callable[..., Any], mutant: Changed | Inequality | float | None
    ) -> Inequality | float | None:
        """Return a mutant in the form that :func:`falsify` accepts."""
        if mutant is None or isinstance(mutant, (int, float)):
            return mutant
        return self.changed(function, mutant)


def _parameters(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters)


def _takes_all(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(p.kind is p.VAR_KEYWORD for p in parameters)


def is_domain(parts: Mapping[str, Any]) -> bool:
    """Return whether keywords describe a search.

    Otherwise, the keywords are only lists and constants.
    """
    return any(isinstance(p, Range | Array | st.SearchStrategy) for p in parts.values())


def _grid(parts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return every combination of the listed values.

    A value that is no list is a constant.
    """
    listed = [p if isinstance(p, range | list | tuple) else (p,) for p in parts.values()]
    return [dict(zip(parts, values, strict=True)) for values in itertools.product(*listed)]


def _range_words(name: str, part: Any) -> str:
    """Return the range of one keyword as text, or "" if it is no number."""
    if isinstance(part, Integer | Interval):
        return f"{name} from {part.low:g} to {part.high:g}"
    if isinstance(part, Array):
        return f"{name} of shape {' x '.join(map(str, part.shape))}"
    if isinstance(part, Choice):
        part = part.values
    if isinstance(part, range | list | tuple) and len(part) > _MOST_LISTED and _numbers(part):
        return f"{name} from {min(part):g} to {max(part):g}"
    if isinstance(part, range | list | tuple) and _numbers(part):
        return f"{name} = {', '.join(f'{value:g}' for value in part)}"
    return f"{name} = {part:g}" if _numbers([part]) else ""


_MOST_LISTED = 6


def _numbers(values: Iterable[Any]) -> bool:
    return all(
        isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
        for value in values
    )
