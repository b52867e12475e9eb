"""Tests of whether two samples differ by more than chance, to skip useless features.

Screening a feature that has no leak costs a few hundred microseconds. Screening saves the learning
of a table, the cuts of the table, and their part of the selection bias. No certificate depends on
screening.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SCREENED = 8192
"""Largest number of draws of each side on which features are screened. A difference that they do
not show is worth little with ten times as many draws."""

_PAIRED = 16  # number of features that are examined in pairs
_LEAST_VARIANCE = 5.0  # variance of a count from which its square is nearly chi-square


def chi_square_excess(a: NDArray[np.intp], b: NDArray[np.intp]) -> float:
    """Return by how much counts differ beyond chance.

    A positive value means that the counts differ. The first candidate is the chi-square statistic
    of "one distribution", minus roughly its 99.99% quantile. The second candidate is the same value
    for the single cell that differs most, because hundreds of other cells could hide this
    difference. The function returns the larger candidate.

    Parameters
    ----------
    a, b : ndarray, shape (cells,)
        Counts of each side.
    """
    total = a + b
    used = total > 0
    n_left, n_right = a.sum(), b.sum()
    if n_left == 0 or n_right == 0 or used.sum() < 2:
        return -np.inf
    expected = total[used] * (n_left / (n_left + n_right))
    variance = expected * (n_right / (n_left + n_right))
    freedom = used.sum() - 1
    return _excess((a[used] - expected) ** 2 / variance, freedom)


def _excess(cells: Floats, freedom: int) -> float:
    together = cells.sum() - (freedom + 3.1 * np.sqrt(2 * freedom) + 6)
    return float(max(together, cells.max() - (18 + 2 * np.log(len(cells)))))


def binned_excess(left: Floats, right: Floats, bins: int = 32) -> float:
    """Return :func:`chi_square_excess` of bins with about equal counts. "No answer" is a bin."""
    pooled = np.concatenate([left, right])
    known = np.sort(pooled[~np.isnan(pooled)])
    if len(known) == 0:
        return -np.inf
    edges = np.unique(known[np.linspace(0, len(known) - 1, bins + 1).astype(np.intp)[1:-1]])
    a, b = (
        np.bincount(
            np.where(np.isnan(side), len(edges) + 1, np.searchsorted(edges, side)),
            minlength=len(edges) + 2,
        )
        for side in (left, right)
    )
    return chi_square_excess(a, b)


def atoms_excess(left: NDArray[Any], right: NDArray[Any]) -> float:
    """Return :func:`chi_square_excess` of single values. "No answer" counts as a value."""
    values, index = np.unique(np.concatenate([left, right]), return_inverse=True)
    a, b = (np.bincount(side, minlength=len(values)) for side in np.split(index, [len(left)]))
    return chi_square_excess(a, b)


def share_gap(a: NDArray[np.intp], b: NDArray[np.intp], n_left: int, n_right: int) -> Floats:
    """Return differences of rates ``a / n_left - b / n_right`` in units of standard errors."""
    pooled = (a + b) / (n_left + n_right)
    variance = pooled * (1 - pooled) * (1 / n_left + 1 / n_right)
    return np.asarray((a / n_left - b / n_right) / np.sqrt(np.maximum(variance, 1e-12)))


def left_over(scores: Sequence[Floats], cells: Sequence[Sequence[NDArray[np.intp]]]) -> set[int]:
    """Return the features that reveal, alone or in pairs, what a logistic score does not explain.

    A cell is a cell of one feature, or a combination of quarters of two features. In each cell, the
    number of draws of the left side is compared with an expected number. The expected number is the
    sum of the probabilities that the score gives to the left side.

    Parameters
    ----------
    scores : two ndarrays
        Log odds of the left side, for draws of the left side and of the right side.
    cells : sequence of two ndarrays of int
        Cell of each draw of both sides, for each feature.

    Returns
    -------
    set of int
        Indices of the features.
    """
    sides = np.repeat([1.0, 0.0], [len(side) for side in scores])
    chance = 1 / (1 + np.exp(-np.clip(np.concatenate(scores), -30, 30)))
    missed, variance = sides - chance, chance * (1 - chance)

    def shows(index: NDArray[np.intp]) -> bool:
        total = np.bincount(index, missed)
        spread = np.bincount(index, variance)
        used = spread >= _LEAST_VARIANCE
        if not used.any():
            return False
        return _excess(total[used] ** 2 / spread[used], int(used.sum())) > 0

    joined = [np.concatenate(pair) for pair in cells]
    found = {i for i, index in enumerate(joined) if shows(index)}
    quarters = [_quarters(index) for index in joined[:_PAIRED]]
    for i, a in enumerate(quarters):
        for j, b in enumerate(quarters[:i]):
            if not found >= {i, j} and shows(4 * a + b):
                found |= {i, j}
    return found


def _quarters(index: NDArray[np.intp]) -> NDArray[np.intp]:
    """Join neighbouring cells into four cells of about equal counts."""
    counts = np.bincount(index)
    below = np.cumsum(counts) - counts / 2
    return np.minimum((4 * below / len(index)).astype(np.intp), 3)[index]
