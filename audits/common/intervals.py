"""95 % confidence intervals for averages, for ratios of averages, and for exponents of growth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

LEVEL = 0.95


class Interval(NamedTuple):
    """A number with the ends of its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{short(self.value)} [{short(self.low)}, {short(self.high)}]"

    def times(self, factor: float) -> Interval:
        """Return the interval of `factor` times the number.

        The factor must be positive.
        """
        return Interval(*(factor * x for x in self))

    def inverse(self) -> Interval:
        """Return the interval of the reciprocal."""
        return Interval(1 / self.value, 1 / self.high, 1 / self.low)


def short(value: float) -> str:
    """Return the number with at most three digits, without an exponent if the text stays short."""
    return f"{float(f'{value:.3g}'):g}"


def ratio(over: ArrayLike, under: ArrayLike = 1.0, *, among: int = 1) -> Interval:
    """Return the average of `over` divided by the average of `under`.

    The trials of the two arguments are paired. The result is a t interval for the logarithm of the
    ratio. The variance uses the linear terms of the logarithm. Trial i contributes the linear term
    over_i / mean(over) - under_i / mean(under). If `among` intervals are computed, all these
    intervals hold simultaneously with confidence 95 %.

    Examples
    --------
    >>> print(ratio([2.0, 4.0, 6.0], [1.0, 2.0, 3.0]))
    2 [2, 2]
    """
    from scipy import stats

    over, under = np.broadcast_arrays(np.asarray(over, float), np.asarray(under, float))
    value, moved = over.mean() / under.mean(), over / over.mean() - under / under.mean()
    quantile = stats.t.ppf(1 - (1 - LEVEL) / (2 * among), len(over) - 1)
    room = math.exp(quantile * moved.std(ddof=1) / math.sqrt(len(over)))
    return Interval(float(value), float(value / room), float(value * room))


def quotient(one: Interval, other: Interval) -> Interval:
    """Divide two independent numbers.

    On the log scale, the errors of the two numbers add in squares.
    """
    value = one.value / other.value
    room = math.exp(math.hypot(*(math.log(x.high / x.value) for x in (one, other))))
    return Interval(value, value / room, value * room)


def least(intervals: Iterable[Interval]) -> Interval:
    """Return the interval of the smallest number, if all intervals hold simultaneously."""
    return Interval(*map(min, zip(*intervals, strict=True)))


def most(intervals: Iterable[Interval]) -> Interval:
    """Return the interval of the largest number, if all intervals hold simultaneously."""
    return Interval(*map(max, zip(*intervals, strict=True)))


def growth(sizes: Sequence[float], values: Sequence[float]) -> Interval:
    """Return the exponent p of values ~ sizes^p, by least squares on logs and robust errors (HC3).

    Examples
    --------
    >>> found = growth([1, 10, 100, 1000], [3, 290, 31_000, 3_000_000])
    >>> round(found.value, 2), found.low < 2 < found.high
    (2.0, True)
    """
    from statsmodels.api import OLS, add_constant

    if len(sizes) < 3:
        raise ValueError(f"sizes must have at least 3 values for an interval, got {len(sizes)}")
    x, y = np.log(np.asarray(sizes, float)), np.log(np.asarray(values, float))
    fit = OLS(y, add_constant(x)).fit(cov_type="HC3", use_t=True)
    return Interval(float(fit.params[1]), *map(float, fit.conf_int(1 - LEVEL)[1]))


def power(found: Interval) -> str:
    """Return "n^1.01, 95 % interval [0.97, 1.05]"."""
    return f"n^{found.value:.2f}, 95 % interval [{found.low:.2f}, {found.high:.2f}]"
