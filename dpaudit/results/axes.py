"""Axes of pictures: where values lie, round ticks, how wide words are; and where curves cross."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TEXT = 10.5
"""Size of letters in a picture."""

_NARROW = frozenset("ijlftr.,:;'|!()[]{}/ \u202f-")
_WIDE = frozenset("mwMW—%@≥≤−")

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Axis:
    """One axis: limits in data coordinates, scale, ticks with their words, and its name.

    Parameters
    ----------
    low, high : float
        Where it begins, at the left or at the bottom, and where it ends; it may fall.
    ticks : sequence of (float, str)
        Values and their words.
    label : str
        Its name.
    log : bool
        Whether the scale is logarithmic.
    bare : bool
        Whether ticks are words without marks, as of categories.
    """

    low: float
    high: float
    ticks: Sequence[tuple[float, str]] = ()
    label: str = ""
    log: bool = False
    bare: bool = False

    def part(self, value: float) -> float:
        """Return where a value lies, from 0 to 1; what lies beyond an end lies at the end."""
        low, high = self.low, self.high
        if self.log:
            low, high = math.log(low), math.log(high)
            value = math.log(value) if value > 0 else min(low, high)
        if value == high or low == high:
            return 1.0
        return min(max((value - low) / (high - low), 0.0), 1.0)


def steps(low: float, high: float, most: int = 5) -> list[float]:
    """Return round numbers between two limits, at most so many.

    Examples
    --------
    >>> steps(0.0, 1.0), steps(-4.2, 5.7)
    ([0.0, 0.25, 0.5, 0.75, 1.0], [-4.0, -2.0, 0.0, 2.0, 4.0])
    """
    if not high > low or not math.isfinite(high - low):
        return [low]
    unit = 10.0 ** math.floor(math.log10((high - low) / most))
    for factor in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0, 25.0, 50.0):
        step = factor * unit
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            return [
                round(index * step, 12 - math.floor(math.log10(step)))
                for index in range(first, last + 1)
            ]
    return [low, high]


def text_width(text: str, size: float = TEXT) -> float:
    """Estimate how wide a text is; rather too wide, since the font is the reader's own."""
    widths = (
        0.38 if c in _NARROW else 1.0 if c in _WIDE or ord(c) > 0x2E80 else 0.63 for c in text
    )
    return size * sum(widths)


def between(
    x: Sequence[float], low: Sequence[float], high: Sequence[float], *, log: bool = False
) -> tuple[_Floats, _Floats, _Floats]:
    """Return x, `low`, and whatever is higher, with the crossings as they are drawn."""
    grid = np.array(x)
    curves = [np.log(curve) if log else np.array(curve) for curve in (low, high)]
    gap = curves[1] - curves[0]
    flips = np.flatnonzero(gap[:-1] * gap[1:] < 0)
    crossings = grid[flips] + np.diff(grid)[flips] * gap[flips] / (gap[flips] - gap[flips + 1])
    fine = np.union1d(grid, crossings)
    first, second = (np.interp(fine, grid, curve) for curve in curves)
    second = np.maximum(first, second)
    return (fine, np.exp(first), np.exp(second)) if log else (fine, first, second)
