"""Confidence bounds of means of bounded draws, by betting.

A gambler bets on every draw at odds that are fair under the hypothesis, so that the expected wealth
stays at most 1. Markov's inequality does the rest: wealth of ``1 / failure_prob`` comes up with
probability at most `failure_prob`. Bets are settled before the draws, which makes the wealth a
product over independent draws: the order of the draws does not matter, and nothing is asymptotic.
A mixture of several bets is a bet, so no single one has to be right.

References
----------
Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting".
Maurer and Pontil (2009), "Empirical Bernstein bounds and sample variance penalization".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import _validate
from dpaudit.errors import ArgumentError

Floats = NDArray[np.float64]

_ROUNDING = 1e-12  # a draw may lie this far outside its range, relative to the largest
MARGIN = 1e-9
"""Of log wealth, for the rounding of a sum of a million logarithms."""

_CHUNK = 2**16
_BLOCK = 64


# --- one mean -------------------------------------------------------------------------------------


def lower_mean(
    x: ArrayLike, failure_prob: float, *, largest: float = 1.0, guess: float | None = None
) -> float:
    """Lower bound of the mean of independent draws from a distribution on [0, largest].

    The true mean lies below the bound with probability at most `failure_prob`, for every distribution.

    Parameters
    ----------
    x : array_like, shape (n,)
        Draws, at least one.
    failure_prob : float
        Strictly between 0 and 1.
    largest : float, optional
        Known upper end of the distribution, > 0. Default 1.
    guess : float, optional
        Fraction of the wealth to bet, in (0, 1], chosen without these draws; it gets half of the
        weight. Default: the fixed grid only.

    Returns
    -------
    float
        In [0, mean of `x`].

    Raises
    ------
    ValueError
        For NaN, or a draw outside [0, largest] by more than rounding.

    Notes
    -----
    Against the mean m, the wealth of the fractions c_j with weights w_j is
    ``K(m) = sum_j w_j prod_i (1 - c_j + c_j x_i / m)``. It is never negative, its expectation is at
    most 1 where the true mean is at most m, and it falls as m grows. The bound is the largest m
    that was found with ``K(m) >= 1 / failure_prob``; were the true mean smaller, its own wealth
    would be as large.

    Examples
    --------
    >>> round(lower_mean([0.5] * 100, 0.05), 3)  # close to 0.5 * 0.05 ** (1 / 100)
    0.479
    """
    draws = bounded_draws(x=x, largest=largest)
    alpha = _validate.failure_prob(failure_prob=failure_prob)
    mean = float(draws.mean())
    if mean < 1e-290 * largest:  # nothing to bet on; below that, x / m overflows
        return 0.0
    fractions, log_weights = _fractions(len(draws), guess)
    goal = -math.log(alpha) + MARGIN

    def excess(log_m: float) -> float:
        growth = draws / math.exp(log_m) - 1.0
        return log_sum(log_wealth(growth, fractions) + log_weights) - goal

    high, step = math.log(mean), 0.05
    low = high - step
    while excess(low) < 0:
        step *= 2
        high, low = low, low - step
        if low < math.log(mean) - 40.0:
            return 0.0
    return min(math.exp(last_nonnegative(excess, low, high, 1e-7)), mean)


def upper_mean(
    x: ArrayLike, failure_prob: float, *, largest: float = 1.0, guess: float | None = None
) -> float:
    """Upper bound of the mean of independent draws from a distribution on [0, largest].

    ``largest - lower_mean(largest - x)``; parameters as in :func:`lower_mean`.

    Examples
    --------
    >>> round(upper_mean([0.0] * 100, 0.05), 3)  # Clopper-Pearson gives 0.03 for no success
    0.041
    """
    draws = bounded_draws(x=x, largest=largest)
    return largest - lower_mean(largest - draws, failure_prob, largest=largest, guess=guess)


def empirical_bernstein_lower(x: ArrayLike, failure_prob: float, *, largest: float = 1.0) -> float:
    """Lower bound of a mean by the empirical Bernstein inequality; a check of :func:`lower_mean`.

    ``mean - sqrt(2 V L / n) - 7 L / (3 (n - 1))`` for draws in [0, 1], with V the sample variance
    and ``L = log(2 / failure_prob)`` (Maurer and Pontil 2009, Theorem 4). Valid for every distribution, and
    looser than betting. Parameters as in :func:`lower_mean`; at least 2 draws.
    """
    draws = bounded_draws(x=x, largest=largest)
    n = len(draws)
    if n < 2:
        raise ArgumentError(f"x must hold at least 2 draws for a sample variance, got {n}")
    cost = math.log(2 / _validate.failure_prob(failure_prob=failure_prob))
    spread = math.sqrt(2 * float(draws.var(ddof=1)) * cost / n)
    return max(float(draws.mean()) - spread - 7 * largest * cost / (3 * (n - 1)), 0.0)


def empirical_bernstein_upper(x: ArrayLike, failure_prob: float, *, largest: float = 1.0) -> float:
    """Upper bound of a mean by the empirical Bernstein inequality; a check of :func:`upper_mean`.

    ``largest - empirical_bernstein_lower(largest - x)``.
    """
    draws = bounded_draws(x=x, largest=largest)
    return largest - empirical_bernstein_lower(largest - draws, failure_prob, largest=largest)


def _fractions(n: int, guess: float | None) -> tuple[Floats, Floats]:
    """Fractions of the wealth and logarithms of their weights; they depend on n only.

    The best fraction lies between about 1 / n, for a handful of hits, and 1, for draws that hardly
    vary; a factor of 2 between neighbours costs at most an eighth of the logarithm of the wealth.
    """
    inner = 0.5 ** np.arange(1, max(math.ceil(math.log2(n)) + 3, 4))
    grid = np.concatenate([[1.0, 0.999, 0.97, 0.9, 0.75], inner])
    weights = np.full(len(grid), 1 / len(grid))
    if guess is not None:
        if _validate.positive(guess=guess) > 1:
            raise ArgumentError(f"guess must be a number in (0, 1], got {guess!r}")
        grid, weights = np.append(grid, guess), np.append(weights / 2, 0.5)
    return grid, np.log(weights)


# --- arithmetic -----------------------------------------------------------------------------------


def log_wealth(growth: Floats, bets: Floats) -> Floats:
    """``sum_i log(1 + bet * growth_i)`` of every bet, for factors that cannot be negative.

    Factors are multiplied in blocks before the logarithm, which is several times faster; should a
    block fall below what a double can hold, its wealth is taken as 0, which is the safe side.
    """
    total = np.zeros(len(bets))
    top = 1.0 + float(bets.max()) * max(float(growth.max()), 0.0)
    block = max(min(_BLOCK, int(690.0 / math.log(max(top, 2.0)))), 1)
    chunk = _CHUNK // block * block
    with np.errstate(under="ignore", divide="ignore"):
        for start in range(0, len(growth), chunk):
            part = growth[start : start + chunk]
            padded = np.zeros(-(-len(part) // block) * block)  # a growth of 0 is a factor of 1
            padded[: len(part)] = part
            for j, bet in enumerate(bets):
                # At the largest admissible bet a factor may be 0, and below it by rounding.
                factors = np.maximum(bet * padded + 1.0, 0.0).reshape(-1, block)
                total[j] += np.log(factors.prod(axis=1)).sum()
    return total


def log_sum(logs: Floats) -> float:
    """``log sum exp``, for at least one number; ``-inf`` is allowed."""
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum())) if math.isfinite(top) else top


def last_nonnegative(
    excess: Callable[[float], float], low: float, high: float, tolerance: float
) -> float:
    """Return the last point found at which a falling function is still >= 0, or else `low`.

    The answer was evaluated itself, so an error of the search can only make it too small.
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


# --- checks ---------------------------------------------------------------------------------------


def bounded_draws(*, largest: float | None, **named: Any) -> Floats:
    """Return the one named argument as draws in [0, largest], or finite and >= 0; or refuse it."""
    ((name, value),) = named.items()
    draws = np.asarray(value, dtype=float)
    if draws.ndim != 1 or draws.size == 0:
        raise ArgumentError(
            f"{name} must be one-dimensional and not empty, got shape {draws.shape}"
        )
    low, high = float(draws.min()), float(draws.max())  # NaN if there is one
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
