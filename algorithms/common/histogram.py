"""Histograms of data in which each user owns several items."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._validate import FloatArray


def noisy_histogram(
    data: ArrayLike, size: int, *, n_bins: int, epsilon: float, rng: np.random.Generator
) -> FloatArray:
    """Count the items in each bin and add Laplace noise of scale ``2 * m / epsilon``.

    The source is Dwork & Roth (2014), Example 3.2, with users instead of rows.

    **Guarantee** epsilon-DP for REPLACE_USER. One user may change all m items, so the counts move
    by at most 2m in L1 norm.

    **Requires** No condition on the data. The number of users and m are public.

    **Departs** Dwork & Roth count neighbours by adding or removing a row, where the L1
    sensitivity is m.  Counts are not rounded and may be negative.

    **Symbols** m = `data.shape[1]`.

    Parameters
    ----------
    data : array_like of int, [n_users] or [n_users, m]
        Bin indices from 0 to ``n_bins - 1``.
    size : int
        Number of independent draws.
    n_bins : int
        Number of bins, at least 1.
    epsilon : float
        Privacy parameter, positive.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size, n_bins]
    """
    rng = _validate.generator(rng)
    n_bins = _validate.integer("n_bins", n_bins, at_least=1)
    bins = _validate.integers("data", data, ndims=(1, 2), low=0, high=n_bins - 1)
    items_per_user = bins.size // bins.shape[0]
    scale = _validate.scale(2.0 * items_per_user, _validate.positive("epsilon", epsilon))
    counts = np.bincount(bins.ravel(), minlength=n_bins)
    return counts + rng.laplace(scale=scale, size=(_validate.draws(size), n_bins))
