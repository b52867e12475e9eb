"""Mutants of `algorithms.common.histogram`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def noisy_histogram_add_remove(
    data: ArrayLike, size: int, *, n_bins: int, epsilon: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Add Laplace noise of scale ``m / epsilon``.

    **Mistake** The noise is calibrated for adding or removing a user, but the claim is for
    replacing a user.

    **Breaks at** one user who moves all m items from bin 0 to bin 1. The event is "bin 0 at or
    above its left count and bin 1 at or below its left count". At this event, the true epsilon is 2
    epsilon (probability 1/4 on the left).
    """
    bins = np.asarray(data)
    items_per_user = bins.size // len(bins)
    return _noisy_counts(bins, size, n_bins, items_per_user / epsilon, rng)


def noisy_histogram_item_level(
    data: ArrayLike, size: int, *, n_bins: int, epsilon: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Add Laplace noise of scale ``2 / epsilon``.

    **Mistake** The noise is calibrated for replacing one item, but the claim is for replacing a
    user with m items.

    **Breaks at** one user who moves all m items from bin 0 to bin 1. The event is "bin 0 at or
    above its left count and bin 1 at or below its left count". At this event, the true epsilon is m
    epsilon (probability 1/4 on the left).
    """
    return _noisy_counts(np.asarray(data), size, n_bins, 2 / epsilon, rng)


def _noisy_counts(
    bins: NDArray[np.int64], size: int, n_bins: int, scale: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    counts = np.bincount(bins.ravel(), minlength=n_bins)
    return counts + rng.laplace(scale=scale, size=(size, n_bins))
