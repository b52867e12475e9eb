"""Datasets as counts of kinds of users, which determine the output of every symmetric algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from algorithms.common import _validate
from algorithms.common._validate import FloatArray, IntArray

MOST_VECTORS = 2 * 10**6
"""Largest number of vectors of counts that are enumerated."""


def items_of(data: Any, universe: int) -> IntArray:
    """Return users' items, [n, m] integers in 0, ..., universe - 1, with m items for each user."""
    return _validate.integers("data", data, ndims=(2,), low=0, high=universe - 1)


def user_kinds(items: IntArray, universe: int) -> tuple[IntArray, IntArray]:
    """Return the kinds of users, [T, universe] counts of items, and the number of each kind, [T].

    Two users are of one kind if they have the same items, in any order.
    """
    histograms = (items[:, :, None] == np.arange(universe)).sum(axis=1)
    kinds, numbers = np.unique(histograms, axis=0, return_counts=True)
    return kinds.astype(np.int64), numbers.astype(np.int64)


def compositions(total: int, caps: ArrayLike) -> IntArray:
    """Return all vectors of integers v with 0 <= v <= caps and sum(v) = total, [count, T].

    Raises
    ------
    ValueError
        If there are more than `MOST_VECTORS`.
    """
    limits = np.minimum(np.asarray(caps, dtype=np.int64), total)
    after = np.append(np.cumsum(limits[::-1])[::-1][1:], 0)  # how much the later parts can hold
    found, left = np.zeros((1, 0), dtype=np.int64), np.array([total], dtype=np.int64)
    for limit, rest in zip(limits, after, strict=True):
        low, high = np.maximum(0, left - rest), np.minimum(limit, left)
        lengths = np.maximum(high - low + 1, 0)
        if lengths.sum() > MOST_VECTORS:
            raise ValueError(
                f"data must have at most {MOST_VECTORS} ways to choose {total} users of their "
                f"{limits.size} kinds, got more ways"
            )
        rows = np.repeat(np.arange(len(left)), lengths)
        firsts = np.repeat(np.cumsum(lengths) - lengths, lengths)
        values = low[rows] + np.arange(lengths.sum()) - firsts
        found = np.concatenate([found[rows], values[:, None]], axis=1)
        left = left[rows] - values
    return found


def log_ways(numbers: ArrayLike, chosen: ArrayLike) -> FloatArray:
    """Return the logarithm of the number of ways to choose `chosen` of `numbers`, for each kind.

    Parameters
    ----------
    numbers, chosen : array_like of int, [..., T]
        Counts that are at least 0 and broadcast with each other. If `chosen` exceeds `numbers`, the
        number of ways is 0.

    Returns
    -------
    ndarray, [...]
        Sum over the kinds. The sum is -inf if the number of ways is 0.
    """
    n, k = np.asarray(numbers), np.asarray(chosen)
    factorials = gammaln(np.arange(max(n.max(initial=0), k.max(initial=0)) + 1) + 1)
    rest = n - k
    logs = factorials[n] - factorials[k] - factorials[rest]  # meaningless if `rest` is negative
    return np.asarray(np.where(rest >= 0, logs, -np.inf).sum(axis=-1))
