"""Wealth of bets on bounded draws.

The bets test a hypothesis. A gambler bets on every draw at odds that are fair under the hypothesis,
so the expected wealth stays at most 1. By Markov's inequality, the wealth reaches ``1 /
failure_prob`` with probability at most `failure_prob`. The bets are fixed before the draws, so the
wealth is a product over independent draws. Therefore the order of the draws does not matter, and
the bound is not asymptotic. A mixture of several bets is also a bet, so no single bet has to be the
best one.

References
----------
Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.errors import ArgumentError

Floats = NDArray[np.float64]

_ROUNDING = 1e-12  # a draw may lie outside its range by this fraction of `largest`
MARGIN = 1e-9
"""Margin of the log wealth, for the rounding of a sum of a million logarithms."""

_CHUNK = 2**16
_BLOCK = 64


def log_wealth(growth: Floats, bets: Floats) -> Floats:
    """Return ``sum_i log(1 + bet * growth_i)`` for every bet, if no factor is negative.

    Factors are multiplied in blocks before the logarithm is taken, which is several times faster
    than one logarithm per factor. If the product of a block is too small for a double, the wealth
    of the bet is taken as 0, which is conservative.
    """
    total = np.zeros(len(bets))
    top = 1.0 + float(bets.max()) * max(float(growth.max()), 0.0)
    block = max(min(_BLOCK, int(690.0 / math.log(max(top, 2.0)))), 1)
    chunk = _CHUNK // block * block
    with np.errstate(under="ignore", divide="ignore"):
        for start in range(0, len(growth), chunk):
            part = growth[start : start + chunk]
            padded = np.zeros(-(-len(part) // block) * block)  # a growth of 0 means a factor of 1
            padded[: len(part)] = part
            for j, bet in enumerate(bets):
                # At the largest allowed bet, a factor can be 0, or slightly negative by rounding.
                factors = np.maximum(bet * padded + 1.0, 0.0).reshape(-1, block)
                total[j] += np.log(factors.prod(axis=1)).sum()
    return total


def log_sum(logs: Floats) -> float:
    """Return ``log sum exp`` of one or more numbers, which may be ``-inf``."""
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum())) if math.isfinite(top) else top


def last_nonnegative(
    excess: Callable[[float], float], low: float, high: float, tolerance: float
) -> float:
    """Return the last point of a search at which a falling function is still >= 0, or `low`.

    The function was evaluated at the returned point, so a search error can only make this point
    smaller.
    """
    at_low = excess(low)
    if at_low < 0:
        return low
    at_high = excess(high)
    if at_high >= 0:
        return high
    for step in range(200):
        width = high - low
        if width <= tolerance:
            break
        share = 0.5
        if math.isfinite(at_high) and step % 3 < 2:
            share = min(max(at_low / (at_low - at_high), 0.02), 0.98)
        middle = low + share * width
        if not low < middle < high:
            break
        value = excess(middle)
        if value >= 0:
            low, at_low = middle, value
        else:
            high, at_high = middle, value
    return low


# --- checks -------------------------------------------------------------------------------------


def bounded_draws(*, largest: float | None, **named: Any) -> Floats:
    """Validate one named argument as draws in [0, largest], or as finite draws >= 0."""
    ((name, value),) = named.items()
    draws = np.asarray(value, dtype=float)
    if draws.ndim != 1 or draws.size == 0:
        raise ArgumentError(
            f"{name} must be one-dimensional and not empty, got shape {draws.shape}"
        )
    low, high = float(draws.min()), float(draws.max())  # NaN if any draw is NaN
    if largest is None:
        if not (low >= 0 and high < math.inf):
            wrong = high if low >= 0 else low
            raise ArgumentError(f"{name} must be finite and >= 0, got {wrong!r}")
        return draws
    slack = _ROUNDING * _validate.positive(largest=largest)
    if not (low >= -slack and high <= largest + slack):
        wrong = high if low >= -slack else low
        raise ArgumentError(f"{name} must lie in [0, largest={largest!r}], got {wrong!r}")
    return np.clip(draws, 0.0, largest) if low < 0 or high > largest else draws
