"""Mutants of `algorithms.common.sparse_vector` and of its correct variants."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.common import sparse_vector


def _until_first_no(below: NDArray[np.bool_]) -> NDArray[np.float64]:
    answers = np.where(below, 0.0, 1.0)
    answers[np.cumsum(below, axis=1) - below >= 1] = np.nan
    return answers


def _until_cutoff(above: NDArray[np.bool_], cutoff: int) -> NDArray[np.float64]:
    answers = above.astype(float)
    answers[np.cumsum(above, axis=1) - above >= cutoff] = np.nan
    return answers


def above_threshold_exact_threshold(
    queries: ArrayLike,
    size: int,
    *,
    threshold: float,
    epsilon: float,
    sensitivity: float = 1.0,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Compare noisy queries with the exact threshold.

    **Mistake** The noise of the threshold is never drawn, so every yes costs privacy again. Without
    noise of the threshold, T answers of yes cost T epsilon / 4.

    **Breaks at** eight queries at 0, compared with eight queries at -1, at sensitivity 1 and
    threshold 0. At the event "all yes", the true epsilon is 2 epsilon. At epsilon 1, the
    probabilities are 0.0039 and 0.00053.
    """
    values = np.asarray(queries, dtype=float)
    nu = rng.laplace(scale=4 * sensitivity / epsilon, size=(size, values.size))
    return _until_first_no(values + nu < threshold)


def above_threshold_shared_query_noise(
    queries: ArrayLike,
    size: int,
    *,
    threshold: float,
    epsilon: float,
    sensitivity: float = 1.0,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Draw the noise of the queries once, before the loop.

    **Mistake** The noise nu is drawn outside the loop, so the order of the queries is visible in
    the answers.

    **Breaks at** queries (1, 0), compared with (0, 1), at sensitivity 1 and threshold 0.5. At the
    event "yes, no", the true epsilon is infinite. At epsilon 1, the probabilities are 0.083 and 0.
    """
    values = np.asarray(queries, dtype=float)
    rho = rng.laplace(scale=2 * sensitivity / epsilon, size=(size, 1))
    nu = rng.laplace(scale=4 * sensitivity / epsilon, size=(size, 1))
    return _until_first_no(values + nu < threshold - rho)


def above_threshold_never_halts(
    queries: ArrayLike,
    size: int,
    *,
    threshold: float,
    epsilon: float,
    sensitivity: float = 1.0,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Continue to answer after the first no.

    **Mistake** The halt is missing, so the budget for one no is used for all answers of no.

    **Breaks at** queries (-1 five times, 1 five times), compared with (0 ten times), at sensitivity
    1 and threshold 0. The event is "five times no, then five times yes". At epsilon 1, the true
    epsilon is 1.91 (probabilities 0.0038 and 0.00056).
    """
    values = np.asarray(queries, dtype=float)
    rho = rng.laplace(scale=2 * sensitivity / epsilon, size=(size, 1))
    nu = rng.laplace(scale=4 * sensitivity / epsilon, size=(size, values.size))
    return np.where(values + nu < threshold - rho, 0.0, 1.0)


def fixed_threshold_sparse_vector_without_cutoff(
    queries: ArrayLike,
    size: int,
    *,
    thresholds: ArrayLike,
    cutoff: int,
    epsilon: float,
    sensitivity: float = 1.0,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Answer all queries.

    **Mistake** The number of yes answers is never compared with the cutoff.

    **Breaks at** 200 queries at 2, compared with 200 queries at 1, at sensitivity 1, threshold 0,
    epsilon 0.5 and cutoff 8. With both hidden constants equal to 1 and delta = 1e-3, Lemma 18
    allows (3.72, 0.0049). At these queries, the original has delta(3.72) = 0.0038, but the mutant
    has delta(3.72) = 0.79. The event is "many answers yes".
    """
    n_queries = np.size(queries)
    return sparse_vector.fixed_threshold_sparse_vector(
        queries,
        size,
        thresholds=thresholds,
        cutoff=n_queries + 1,
        epsilon=epsilon,
        sensitivity=sensitivity,
        rng=rng,
    )


def svt1_cutoff_not_in_noise(
    queries: ArrayLike,
    size: int,
    *,
    thresholds: ArrayLike,
    cutoff: int,
    epsilon: float,
    sensitivity: float,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Draw the noise of the queries for a single yes, Lap(2 D / epsilon2), and stop after c yes.

    **Mistake** The cutoff is missing in the scale of the noise. The true epsilon is ((1 + c) / 2)
    epsilon.

    **Breaks at** queries (-1 five times, 1 five times), compared with (0 ten times), at sensitivity
    1, thresholds 0 and cutoff 5. The event is "five times no, then five times yes". At epsilon 1,
    the true epsilon is 1.91 (probabilities 0.0038 and 0.00056).
    """
    values = np.asarray(queries, dtype=float)
    rho = rng.laplace(scale=2 * sensitivity / epsilon, size=(size, 1))
    nu = rng.laplace(scale=4 * sensitivity / epsilon, size=(size, values.size))
    return _until_cutoff(values + nu >= np.asarray(thresholds) + rho, cutoff)


def svt2_cutoff_not_in_noise(
    queries: ArrayLike,
    size: int,
    *,
    thresholds: ArrayLike,
    cutoff: int,
    epsilon: float,
    sensitivity: float,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Restart the mechanism for one yes c times, each time at its full epsilon.

    **Mistake** The budget is not divided by the cutoff, so the true epsilon is c epsilon.

    **Breaks at** queries (-2, -2, 2), compared with (-1, -1, 1), each repeated four times, at
    sensitivity 1, thresholds 0 and cutoff 4. The event is "no, no, yes" four times. At epsilon 1,
    the true epsilon is 1.66 (probabilities 0.0051 and 0.00098).
    """
    values = np.asarray(queries, dtype=float)
    levels = np.broadcast_to(np.asarray(thresholds, dtype=float), values.shape)
    above = np.empty((size, values.size), dtype=bool)
    rho = rng.laplace(scale=2 * sensitivity / epsilon, size=size)
    for step, (value, level) in enumerate(zip(values, levels, strict=True)):
        nu = rng.laplace(scale=4 * sensitivity / epsilon, size=size)
        above[:, step] = value + nu >= level + rho
        fresh = rng.laplace(scale=2 * sensitivity / epsilon, size=size)
        rho = np.where(above[:, step], fresh, rho)
    return _until_cutoff(above, cutoff)
