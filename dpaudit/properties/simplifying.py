"""Making a case that breaks a claim readable: simpler numbers, as long as it still breaks it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties.domains import Array, Domain
from dpaudit.properties.judging import Judge

_DIGITS = (0, 1, 2, 3, 4, 6)
_PLAIN = (0.0, 1.0, -1.0, 2.0, 0.5)
_MOST_ENTRIES = 64  # of an array whose entries are made simple one by one


def simplify(judge: Judge, domains: Sequence[Domain], budget: int) -> None:
    """Replace the breaking case of a judge by a simpler one of the same domain that breaks it too.

    Only what lies in a domain is tried: where none tells what belongs to the case, it stays.

    Parameters
    ----------
    judge : Judge
        With a counterexample.
    domains : sequence of Domain
        Where cases may lie.
    budget : int
        Cases to try at most.
    """
    case = judge.breaking
    domain = next((d for d in domains if isinstance(case, dict) and case in d), None)
    if domain is None:
        return
    scratch = Judge(judge.inequality, judge.tolerance, judge.exact)  # these cases are not examples
    changed = True
    while changed and budget > 0:
        changed = False
        for key, part in domain.parts.items():
            for simpler in _simpler(part, judge.breaking[key]):
                if budget <= 0:
                    break
                trial = {**judge.breaking, key: simpler}
                if trial not in domain:
                    continue
                budget -= 1
                scratch(trial)
                if scratch.breaking is trial:
                    judge.breaking, judge.counterexample = trial, scratch.counterexample
                    changed = True
                    break


def _simpler(part: Any, value: Any) -> Iterator[Any]:
    """Yield simpler values than one, the simplest first."""
    if isinstance(part, Integer):
        low = int(part.low)
        tried = [low, low + 1, low + 2, low + (int(value) - low) // 2, int(value) - 1]
        yield from (n for n in dict.fromkeys(tried) if n < value)
    elif isinstance(part, Choice):
        yield from part.values[: _place(part, value)]
    elif isinstance(part, Interval):
        yield from _simpler_numbers(part, float(value))
    elif isinstance(part, Array):
        yield from _simpler_arrays(part, np.asarray(value, dtype=float))


def _place(part: Choice, value: Any) -> int:
    return next((i for i, known in enumerate(part.values) if known is value or known == value), 0)


def _simpler_numbers(part: Interval, value: float) -> Iterator[float]:
    tried = [*_PLAIN, part.low, part.high, *(float(np.round(value, d)) for d in _DIGITS)]
    tried += [float(f"{value:.{digits}g}") for digits in (1, 2, 3)]
    yield from sorted(
        (x for x in dict.fromkeys(tried) if math.isfinite(x) and _size(x) < _size(value)),
        key=_size,
    )


def _size(value: float) -> tuple[int, float]:
    """How much there is to read in a number: its letters, then its size."""
    return len(f"{value:.17g}".rstrip("0").rstrip(".") or "0"), abs(value)


def _simpler_arrays(part: Array, value: Any) -> Iterator[Any]:
    total = _total(value)
    whole = [np.full(part.lengths, x) for x in (*_PLAIN, part.entries.low, part.entries.high)]
    whole += [np.round(value, digits) for digits in _DIGITS]
    yield from (x for x in whole if _total(x) < total)
    if value.size <= _MOST_ENTRIES:
        for index in np.ndindex(part.lengths):
            for simpler in _simpler_numbers(part.entries, float(value[index])):
                changed = value.copy()
                changed[index] = simpler
                yield changed


def _total(value: Any) -> tuple[int, float]:
    sizes = [_size(float(x)) for x in np.ravel(value)]
    return sum(letters for letters, _ in sizes), sum(size for _, size in sizes)
