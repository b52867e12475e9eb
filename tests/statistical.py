"""Exact tests by which the suite judges random draws. No test may judge draws in another way.

Each call is one exact test. The test rejects a true distribution with probability at most
`FALSE_ALARM` (1e-6). Draw with a literal seed, call once and never retry. Next to the call, show
that a wrong distribution is rejected.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

FALSE_ALARM = 1e-6


def assert_frequencies(
    counts: ArrayLike, probabilities: ArrayLike, *, false_alarm: float = FALSE_ALARM
) -> None:
    """Assert that `counts` ``[k]`` are compatible with a multinomial of `probabilities` ``[k]``.

    The test is an exact two-sided binomial test for each category. The level is divided over all 2k
    tails, so that the false-alarm rate holds at every sample size.
    """
    observed = np.asarray(counts)
    expected = np.asarray(probabilities, dtype=float)
    if observed.dtype.kind not in "iu" or observed.shape != expected.shape or observed.ndim != 1:
        raise ValueError(f"counts and probabilities must be [k], got {counts!r}, {probabilities!r}")
    if np.any(expected < 0) or not np.isclose(expected.sum(), 1, rtol=0, atol=1e-9):
        raise ValueError(f"probabilities must sum to 1, got {expected.sum()!r}")
    total = int(observed.sum())
    expected = np.minimum(expected, 1.0)
    upper = binom.sf(observed - 1, total, expected)
    lower = binom.cdf(observed, total, expected)
    level = false_alarm / (2 * observed.size)
    bad = np.flatnonzero(np.minimum(upper, lower) < level)
    if bad.size:
        lines = [
            f"  category {i}: {observed[i]} of {total}, expected {total * expected[i]:.1f}, "
            f"tail {min(upper[i], lower[i]):.2g} < {level:.2g}"
            for i in bad
        ]
        raise AssertionError("\n".join([f"rejected at false-alarm rate {false_alarm}:", *lines]))


def assert_distribution(
    draws: ArrayLike,
    cdf: Callable[[NDArray[np.float64]], ArrayLike],
    *,
    n_bins: int = 20,
    false_alarm: float = FALSE_ALARM,
) -> None:
    """Assert that `draws` ``[size]`` follow a continuous distribution, by testing its quantiles."""
    levels = np.asarray(cdf(np.asarray(draws, dtype=float)), dtype=float)
    counts = np.bincount(
        np.minimum((levels * n_bins).astype(np.int64), n_bins - 1), minlength=n_bins
    )
    assert_frequencies(counts, np.full(n_bins, 1 / n_bins), false_alarm=false_alarm)
