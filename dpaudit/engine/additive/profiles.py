"""Privacy profiles that reach beyond the grid of an audit, down to negligible deltas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NEGLIGIBLE = 1e-9
MAX_EPSILON = 50.0
_POINTS = 40


def extended(grid: Floats, delta: Callable[[Any], Any]) -> Floats:
    """Continue a grid of epsilons until `delta` is negligible, or epsilon is 50."""
    end = float(grid[-1])
    if end >= MAX_EPSILON or float(delta(end)) < NEGLIGIBLE:
        return grid
    low, high = end, min(2 * max(end, 0.5), MAX_EPSILON)
    while high < MAX_EPSILON and float(delta(high)) >= NEGLIGIBLE:
        low, high = high, min(2 * high, MAX_EPSILON)
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if float(delta(middle)) >= NEGLIGIBLE else (low, middle)
    return np.concatenate([grid, np.linspace(end, max(high, end), _POINTS + 1)[1:]])
