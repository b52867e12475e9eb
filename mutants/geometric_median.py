"""Mutants of `algorithms.geometric_median` and of its parts in `algorithms.common`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.geometric_median import (
    _points,
    baselines,
    boosting,
    center,
    composed,
    radius,
    reference,
)

Floats = NDArray[np.float64]


def first_above_threshold_exact_threshold(
    queries: ArrayLike,
    size: int,
    *,
    threshold: float,
    epsilon: float,
    sensitivity: float = 1.0,
    rng: np.random.Generator,
) -> Floats:
    """Compare noisy queries with the exact threshold.

    **Mistake** The noise of the threshold is never drawn, so every no costs privacy again. Without
    noise of the threshold, T answers of no cost T epsilon / 4.

    **Breaks at** eight queries at 0, compared with eight queries at 1, at sensitivity 1 and
    threshold 0. At the event "all no", the true epsilon is 2 epsilon.
    """
    values = np.asarray(queries, dtype=float)
    nu = rng.laplace(scale=4 * sensitivity / epsilon, size=(size, values.size))
    above = values + nu >= threshold
    answers = above.astype(float)
    answers[np.cumsum(above, axis=1) - above >= 1] = np.nan
    return answers


def bounded_laplace_one_scale(
    values: ArrayLike,
    size: int,
    *,
    sensitivity: float,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
) -> Floats:
    """Condition Laplace noise on one scale, for every delta.

    **Mistake** The bound lambda log(4 / delta) is replaced by lambda, because most of the noise is
    below lambda.

    **Breaks at** values 0 and `sensitivity` at epsilon 1. At the event ``output < 0``, the true
    epsilon is infinite (probabilities 1/2 and 0).
    """
    exact = np.asarray(values, dtype=float)
    shape = (size, *exact.shape)
    lengths = -np.log1p(rng.random(shape) * math.expm1(-1))
    return exact + (1 - 2 * rng.integers(2, size=shape)) * lengths * sensitivity / epsilon


def fast_radius_of_a_fraction(
    data: ArrayLike, size: int, *, noise_multiplier: float = 1.0, **arguments: Any
) -> Floats:
    """Add the noise for a fraction to a count.

    **Mistake** The query is an average over n points, so the programmer assumes that one point
    moves the query by 3 / n. However, the query averages counts up to n. All noise is n times too
    small.

    **Breaks at** 36 points at 0 and 4 points at 2, compared with 35 points at 0 and 5 points at 2.
    The parameters are r = 1, R = 2, epsilon 1, delta 1e-6. The event "output 2" has epsilon 4.8
    (probabilities 0.0026 and 0.31). The original has probabilities 0.45 and 0.49.
    """
    return radius.fast_radius(
        data, size, noise_multiplier=noise_multiplier / len(np.asarray(data)), **arguments
    )


def fast_center_untested(
    data: ArrayLike,
    size: int,
    *,
    radius: float,
    epsilon: float,
    delta: float,
    noise_multiplier: float = 1.0,
    rng: np.random.Generator,
) -> Floats:
    """Average the survivors, even if their number is small.

    **Mistake** Line 9 is omitted. The programmer assumes "a mean of few points is still a mean".
    Two halves of the data that are far apart then compete for all of the weight.

    **Breaks at** 11 points at 0 and 10 points at 1e5 `radius`, compared with 10 points at 0 and 11
    points at 1e5 `radius`. The parameters are epsilon 1 and delta 1e-6. The event ``output[0] > 5e4
    radius`` has infinite epsilon (probabilities below 1e-5 and above 1 - 1e-5).
    """
    points = np.asarray(data, dtype=float)
    n = len(points)
    k = center.fast_center_samples(n, delta)
    counts = _points.neighbour_counts(points, np.array([2 * radius]))[:, 0]
    hits = rng.binomial(k, counts / n, size=(size, n))
    weights = np.clip((hits - 0.5 * k) / (0.25 * k), 0, 1)
    total = weights.sum(axis=1, keepdims=True)
    means = weights @ points / np.where(total > 0, total, 1)
    sigma = noise_multiplier * center.fast_center_sigma(n, radius, epsilon, delta)
    return means + rng.normal(scale=sigma, size=means.shape)


def fast_center_one_point(
    data: ArrayLike,
    size: int,
    *,
    radius: float,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    **arguments: Any,
) -> Floats:
    """Calibrate the noise to the mean of n points in a ball of the given radius.

    **Mistake** sigma is 2 radius / (n epsilon). Three quantities are missing. The missing
    quantities are delta, the copies of a point in the samples of other points, and the distance
    between survivors. This distance is up to 8 radius.

    **Breaks at** 399 points at 0 and one point at 2 `radius`, compared with the same data with this
    point at -2 `radius`. The parameters are epsilon 1 and delta 0.01. The event ``output > 0`` has
    delta(1) = 0.19 (the probability of passing line 9 is 0.38).
    """
    points = np.asarray(data, dtype=float)
    far = np.full(points.shape[1], 1e140)
    centers = center.fast_center_centers(
        points, size, radius=radius, epsilon=epsilon, delta=delta, failed_at=far, rng=rng,
        **arguments,
    )  # fmt: skip
    failed = (centers == far).all(axis=1)
    centers += rng.normal(scale=2 * radius / (len(points) * epsilon), size=centers.shape)
    centers[failed] = 0.0
    return centers


def stable_dpsgd_forgetting_m(
    data: ArrayLike,
    size: int,
    *,
    delta: float,
    n_steps: int,
    noise_multiplier: float = 1.0,
    **arguments: Any,
) -> Floats:
    """Calibrate the noise to 3 eta^(k) instead of (2m + 1) eta^(k).

    **Mistake** Lemma 11 is treated as the whole sensitivity, although the index of one user is
    drawn many times.

    **Breaks at** 2 points at 1e6, 2 points at -1e6, and one more point at 1e6 or at -1e6 (d = 1).
    The parameters are T = 1023, step 1, epsilon 1 and delta 1e-6. The event "output of phase 1
    above 5" has delta(1) = 0.78.
    """
    m = 3 * (n_steps / len(np.asarray(data)) + math.log(8 / delta))
    return boosting.stable_dpsgd(
        data, size, delta=delta, n_steps=n_steps,
        noise_multiplier=noise_multiplier * 3 / (2 * m + 1), **arguments,
    )  # fmt: skip


def fixed_order_dpsgd_one_access(
    data: ArrayLike, size: int, *, n_steps: int, noise_multiplier: float = 1.0, **arguments: Any
) -> Floats:
    """Calibrate the noise to one access of each row.

    **Mistake** The programmer assumes that every row is used once in a pass, but there are ceil(T /
    n) passes.

    **Breaks at** 2 points at 1e6, 2 points at -1e6, and one more point at 1e6 or at -1e6 (d = 1).
    The parameters are T = 1023, step 1 and rho 0.5. The output of phase 1 moves by 18 standard
    deviations, which is zCDP 161.
    """
    m = -(-n_steps // len(np.asarray(data)))
    return boosting.fixed_order_dpsgd(
        data, size, n_steps=n_steps, noise_multiplier=noise_multiplier * 3 / (2 * m + 1),
        **arguments,
    )  # fmt: skip


def warm_start_subsampling_is_noise(
    data: ArrayLike,
    size: int,
    *,
    min_radius: float,
    max_radius: float,
    epsilon: float,
    delta: float,
    noise_multiplier: float = 1.0,
    rng: np.random.Generator,
) -> Floats:
    """Find the radius without Laplace noise, and spend the whole budget on the center.

    **Mistake** The subsampling of FastRadius is treated as its noise.

    **Breaks at** 36 points at 0 and 4 points at 2, compared with 35 points at 0 and 5 points at 2.
    The parameters are r = 1, R = 2, epsilon 1, delta 1e-6. The event "radius 2" has epsilon 20
    (probabilities 4e-10 and 0.21).
    """
    points = np.asarray(data, dtype=float)
    radii = radius.fast_radius(
        points, size, min_radius=min_radius, max_radius=max_radius, epsilon=1.0, delta=delta,
        noise_multiplier=1e-9, rng=rng,
    )  # fmt: skip
    released = np.empty((size, points.shape[1] + 1))
    released[:, -1] = radii
    for value in np.unique(radii):
        same = np.flatnonzero(radii == value)
        released[same, :-1] = center.fast_center(
            points, same.size, radius=float(value), epsilon=epsilon, delta=delta,
            noise_multiplier=noise_multiplier, rng=rng,
        )  # fmt: skip
    return released


def private_geometric_median_exact_start(
    data: ArrayLike,
    size: int,
    *,
    min_radius: float,
    max_radius: float,
    epsilon: float,
    delta: float,
    n_steps: int,
    step_factor: float,
    radius_factor: float = composed.RADIUS_FACTOR,
    noise_multiplier: float = 1.0,
    rng: np.random.Generator,
) -> Floats:
    """Descend from the exact geometric median, in a ball of an exact quantile radius.

    **Mistake** The warm start is treated as a hint that need not be private, because "all gradients
    are protected".

    **Breaks at** 3 points at -1 and 2 points at 1, compared with 2 points at -1 and 3 points at 1
    (d = 1). The parameters are r = 0.1, R = 1, T = 7, step_factor 1e-4, epsilon 1, delta 1e-6. The
    event ``output > 0`` has infinite epsilon (probabilities below 1e-8 and above 1 - 1e-8).
    """
    median = reference.geometric_median(data)
    reach = float(np.clip(reference.quantile_radius(data, 0.75), min_radius, max_radius))
    plan = composed.boosting_schedule(
        len(np.asarray(data)), median.point.size, epsilon=epsilon, delta=delta,
        radius=radius_factor, step=step_factor, n_steps=n_steps,
    )  # fmt: skip
    return boosting.stable_dpsgd(
        data, size, center=median.point, radius=radius_factor * reach, rho=plan.rho,
        delta=delta / 2, step=step_factor * reach, n_steps=n_steps,
        noise_multiplier=noise_multiplier, rng=rng,
    )  # fmt: skip


def radius_finder_one_count(
    data: ArrayLike,
    size: int,
    *,
    gamma: float = 0.75,
    noise_multiplier: float = 1.0,
    **arguments: Any,
) -> Floats:
    """Calibrate the noise as if only one of the m averaged counts moved, by 1.

    **Mistake** The code accounts for a point's own count, but not for the counts of its neighbours,
    in which the point appears too. The noise is 3m times too small.

    **Breaks at** 354 points at 0 and 46 points at 10, compared with 353 points at 0 and 47 points
    at 10. The parameters are r = 1, R = 10, epsilon 1, failure_prob 0.5. The event "output above 1"
    has epsilon 6.2 (probabilities 0.0021 and 1).
    """
    m = math.ceil(gamma * len(np.asarray(data)))
    return baselines.radius_finder(
        data, size, gamma=gamma, noise_multiplier=noise_multiplier / (3 * m), **arguments
    )


def dpgd_one_step(
    data: ArrayLike, size: int, *, n_steps: int, noise_multiplier: float = 1.0, **arguments: Any
) -> Floats:
    """Give every step the noise of a single step, for sensitivity 1 / n.

    **Mistake** Replacing a row is treated as removing a row, and the T steps are not composed. The
    noise is 2 sqrt(T) times too small.

    **Breaks at** 2 points at 1e6, 2 points at -1e6, and one more point at 1e6 or at -1e6 (d = 1).
    The parameters are T = 100, step 1 and rho 0.1. The output moves by 7.8 standard deviations,
    which is zCDP 30.
    """
    return baselines.dpgd(
        data, size, n_steps=n_steps,
        noise_multiplier=noise_multiplier / (2 * math.sqrt(n_steps)), **arguments,
    )  # fmt: skip
