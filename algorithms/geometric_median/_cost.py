"""Estimated running times, and the refusal of runs that would take too long.

An estimate depends on sizes only (n, d, the number of draws and of steps), never on the values of
the data. So the refusal of a run reveals nothing about the data. The constants were measured on one
core of an AMD EPYC processor in 2026. They are upper bounds within a factor of about 2.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real

import numpy as np

from algorithms.geometric_median import _pairs

MAX_SECONDS = 60.0
"""Default of `max_seconds`, the largest estimated time of a run."""

_NS = 1e-9
_UNITS = ((86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


def count_seconds(n: int, dimension: int, n_radii: int) -> float:
    """Return the time of `_pairs.neighbour_counts`, if the distances from a center do not help."""
    if n < _pairs.SMALL:
        return n**2 * (4 + 0.6 * dimension + 0.6 * n_radii) * _NS
    return n**2 / 2 * (0.25 + 0.02 * dimension + 0.25 * n_radii) * _NS


def sample_seconds(n: int, dimension: int, n_samples: int) -> float:
    """Return the time of `n_samples` sampled distances for each of the n points."""
    return n * n_samples * (20 + 0.7 * dimension) * _NS


def draw_seconds(n: int, dimension: int, size: int) -> float:
    """Return the time of `size` draws of n binomials, and of weighted means of the points."""
    return n * size * (100 + dimension) * _NS


def sgd_seconds(n_steps: int, dimension: int, size: int) -> float:
    """Return the time of `_sgd.run_phases`, which takes one step after the other."""
    return n_steps * (13e-6 + size * (15 + 10 * dimension) * _NS)


def gradient_seconds(n: int, dimension: int, size: int) -> float:
    """Return the time of `size` full gradients, each over n points."""
    return 4e-5 + size * n * (20 + 1.7 * dimension) * _NS


def refuse_slow(
    seconds: Callable[[int], float],
    value: int,
    max_seconds: float,
    *,
    name: str,
    allowed: Callable[[int], int] = int,
) -> None:
    """Refuse a value for which the estimated time exceeds `max_seconds`.

    Parameters
    ----------
    seconds : callable
        The estimated time, which increases with the value.
    value : int
        The number of points or steps.
    max_seconds : float
        Positive. The value infinity allows every run.
    name : str
        What the value is called in the message.
    allowed : callable, default int
        Rounds a value down to a valid value.
    """
    if isinstance(max_seconds, bool | np.bool_) or not isinstance(max_seconds, Real):
        raise TypeError(f"max_seconds must be a real number, got {max_seconds!r}")
    if not max_seconds > 0:
        raise ValueError(f"max_seconds must be positive, got {max_seconds!r}")
    needed = seconds(value)
    if needed <= max_seconds:
        return
    low, high = 0, value
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if seconds(middle) <= max_seconds else (low, middle)
    raise ValueError(
        f"{name} must be at most {allowed(low)} for max_seconds = {max_seconds:g}, got {value}. "
        f"This run may take about {duration(needed)}. Pass a larger max_seconds to run it anyway."
    )


def duration(seconds: float) -> str:
    """Return a time in the largest unit that fits, with two digits."""
    for length, unit in _UNITS:
        if seconds >= 2 * length:
            amount = seconds / length
            return f"{amount:.2g} {unit}" if amount < 99.5 else f"{amount:.0f} {unit}"
    return f"{seconds:.2g} seconds"
