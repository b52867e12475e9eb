"""Mutants of `algorithms.common.selection`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.common import selection


def exponential_pmf_monotone(
    scores: ArrayLike, *, sensitivity: float, epsilon: float
) -> NDArray[np.float64]:
    """Return the distribution of `exponential_mechanism_monotone`."""
    return selection.exponential_pmf(scores, sensitivity=sensitivity / 2, epsilon=epsilon)


def exponential_mechanism_monotone(
    scores: ArrayLike, size: int, *, sensitivity: float, epsilon: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Choose with probability proportional to exp(epsilon * scores / sensitivity).

    **Mistake** The factor 2 is dropped, which is correct only if all scores move in the same
    direction.

    **Breaks at** scores (-2, 0), compared with (-3, 1), at sensitivity 1. The event is ``output ==
    0``. At epsilon 1, the true epsilon is 1.89 (probabilities 0.119 and 0.018). In the limit of a
    wide gap, the true epsilon is 2 epsilon.
    """
    return selection.exponential_mechanism(
        scores, size, sensitivity=sensitivity / 2, epsilon=epsilon, rng=rng
    )


def report_noisy_max_monotone(
    scores: ArrayLike, size: int, *, sensitivity: float, epsilon: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Add Laplace noise of scale ``sensitivity / epsilon``.

    **Mistake** The scale for counting queries is used for scores that move in both directions.

    **Breaks at** scores (-2, 0), compared with (-3, 1), at sensitivity 1. The event is ``output ==
    0``. At epsilon 1, the true epsilon is 1.59 (probabilities 0.135 and 0.027). In the limit of a
    wide gap, the true epsilon is 2 epsilon.
    """
    return selection.report_noisy_max(
        scores, size, sensitivity=sensitivity / 2, epsilon=epsilon, rng=rng
    )


def report_noisy_max_shared_noise(
    scores: ArrayLike, size: int, *, sensitivity: float, epsilon: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Add the same Laplace draw to all scores.

    **Mistake** The noise is drawn once per run and broadcast, so the largest score always wins.

    **Breaks at** scores (0, 1), compared with (1, 0), at sensitivity 1. At the event ``output ==
    0``, the true epsilon is infinite (probabilities 0 and 1).
    """
    exact = np.asarray(scores, dtype=float)
    noisy = exact + rng.laplace(scale=2 * sensitivity / epsilon, size=(size, 1))
    return np.argmax(noisy, axis=1).astype(np.int64)
