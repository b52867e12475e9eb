"""Baselines of the paper.

The baselines are RadiusFinder and DPGD of Haghifam, Steinke & Ullman (2024). HSU24 denotes "Private
Geometric Median", NeurIPS 2024, arXiv 2406.07407. The text of HSU24 was not available. The
functions follow the authors' published research code and the description in geometric_median.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.common.sparse_vector import first_above_threshold
from algorithms.geometric_median import _cost, _pairs, _points
from algorithms.geometric_median.radius import radius_grid

_CELLS = 2**21  # number of coordinates of gradients that are in memory at once


@dataclass(frozen=True)
class DPGDParameters:
    """Steps, step size and noise of HSU24's gradient descent."""

    n_steps: int
    step: float
    sigma: float


def radius_finder_radii(min_radius: float, max_radius: float) -> FloatArray:
    """Return the radii r, 2r, 4r, ... up to 2R that RadiusFinder tries.

    FastRadius stops below R. In RadiusFinder, the last radius exceeds R.
    """
    radii = list(radius_grid(min_radius, max_radius)) or [float(min_radius)]
    while 2 * radii[-1] <= 2 * max_radius:
        radii.append(2 * radii[-1])
    return np.array(radii)


def radius_finder_queries(data: ArrayLike, radii: ArrayLike, gamma: float = 0.75) -> FloatArray:
    """Return the queries of RadiusFinder ``[T]``, which average the ceil(gamma n) largest counts.

    **Guarantee** Replacing one point moves each query by at most 1 + (n - 2) / m, where m =
    ceil(gamma n). The count of every other point moves by at most 1. At most m - 1 counts of other
    points enter the average along with the replaced point's own count. The replaced point's own
    count moves by at most n - 1.

    A star attains this bound, in dimension n - 2. The star consists of n - 1 points around the
    point that is replaced. All n - 1 points are within the radius of the replaced point. No two of
    these points are within the radius of each other. The bound is below 1 + 1 / gamma. For gamma >
    1/2, the bound is below 3.

    **Requires** No condition on the data.
    """
    points = _points.cloud(data)
    kept = _kept(len(points), gamma)
    counts = _pairs.neighbour_counts(points, _validate.floats("radii", radii, ndims=(1,)))
    return np.asarray(np.sort(counts, axis=0)[-kept:].mean(axis=0))


def radius_finder(
    data: ArrayLike,
    size: int,
    *,
    min_radius: float,
    max_radius: float,
    epsilon: float,
    failure_prob: float = 0.05,
    gamma: float = 0.75,
    noise_multiplier: float = 1.0,
    max_seconds: float = _cost.MAX_SECONDS,
    rng: np.random.Generator,
) -> FloatArray:
    """Double a radius until the best-connected points have gamma n neighbours on average.

    The source is HSU24, Algorithm 1 (RadiusFinder). The algorithm is AboveThreshold with the noise
    scales 6 / epsilon and 12 / epsilon. The threshold is m + (18 / epsilon) log(2 T / beta), where
    m = ceil(gamma n).

    **Guarantee** epsilon-DP. Under replacement, the queries have sensitivity 1 + (n - 2) / m < 3
    (`radius_finder_queries`). The noise is scaled for sensitivity 3.

    **Requires** that all points lie in the ball of radius `max_radius` around 0. Only the utility
    needs this condition, but points outside are refused.

    **Departs** These departures are from the published code. (1) The code takes a zCDP parameter
    rho, and uses epsilon = sqrt(rho) in this algorithm. In this function, epsilon is an argument.
    (2) If no query reaches the threshold, the code returns one of the radii at random. This
    function returns `max_radius`, as FastRadius does. Both choices are private. (3) gamma <= 1/2 is
    refused, because the sensitivity could exceed 3 for such a gamma. (4) The paper's Section 5
    gives no beta. The code has 0.05. (5) `noise_multiplier` is not in the code. `noise_multiplier`
    multiplies the noise scales, but not the offset of the threshold. If `noise_multiplier` is below
    1, no privacy is guaranteed.

    **Symbols** r = `min_radius`, R = `max_radius`, beta = `failure_prob`.

    Parameters
    ----------
    data : array_like, [n, d]
        Finite values.
    size : int
        Number of independent draws.
    min_radius, max_radius : float
        Bounds of the search, positive, public.
    epsilon : float
        Privacy parameter, positive.
    failure_prob : float, default 0.05
        Failure probability of the utility, in (0, 1).
    gamma : float, default 3/4
        Fraction of the data, above 1/2 and at most 1.
    noise_multiplier : float, default 1
        Factor on all noise scales, positive.
    max_seconds : float, default 60
        Largest estimated time. Slower runs are refused before they start.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size]
        A radius of `radius_finder_radii`, or max_radius.
    """
    rng = _validate.generator(rng)
    points = _points.cloud(data)
    radii = radius_finder_radii(min_radius, max_radius)
    _points.inside(points, float(max_radius))
    epsilon = _validate.positive("epsilon", epsilon)
    failure_prob = _validate.probability("failure_prob", failure_prob)
    kept = _kept(len(points), gamma)
    offset = _validate.scale(18 * math.log(2 * radii.size / failure_prob), epsilon)
    _cost.refuse_slow(
        lambda n: _cost.count_seconds(n, points.shape[1], radii.size),
        len(points), max_seconds, name="the number of points of data",
    )  # fmt: skip
    answers = first_above_threshold(
        radius_finder_queries(points, radii, gamma), size, threshold=kept + offset,
        epsilon=epsilon, sensitivity=3.0, noise_multiplier=noise_multiplier, rng=rng,
    )  # fmt: skip
    yes = answers == 1.0
    return np.where(yes.any(axis=1), radii[yes.argmax(axis=1)], float(max_radius))


def dpgd(
    data: ArrayLike,
    size: int,
    *,
    center: ArrayLike,
    radius: float,
    rho: float,
    step: float,
    n_steps: int,
    start: ArrayLike | None = None,
    noise_multiplier: float = 1.0,
    max_seconds: float = _cost.MAX_SECONDS,
    rng: np.random.Generator,
) -> FloatArray:
    """Descend along noisy full gradients in a ball, and return the average iterate.

    The source is HSU24, Algorithms 3 and 6 (DPGD).

    **Guarantee** rho-zCDP. Replacing one row moves the gradient, an average of n unit vectors, by
    at most 2 / n. If the noise has standard deviation s, T steps are T (2 / n)**2 / (2 s**2)-zCDP.
    For s = (2 / n) sqrt(T / (2 rho)), this value is rho.

    **Requires** that `center`, `radius` and `start` are public, or released privately on the same
    data at a separate privacy cost.

    **Departs** (1) In the published code, the start is the center of the ball. The experiments of
    geometric_median start elsewhere, so this function has the argument `start`. (2) The average is
    over theta_1 to theta_T, as in the published code. This average is not an average over the T
    points at which gradients are computed. (3) The published code shortens directions with norm
    below 1e-10. In this function, the gradient is 0 only if z = x_i. (4) `noise_multiplier` is not
    in the code. If `noise_multiplier` is below 1, no privacy is guaranteed.

    **Symbols** theta_0 = `start`, eta = `step`, T = `n_steps`, s = the standard deviation of the
    noise of one gradient.

    Parameters
    ----------
    data : array_like, [n, d]
        Finite values.
    size : int
        Number of independent draws.
    center : array_like, [d]
        Center of the domain.
    radius : float
        Radius of the domain, positive.
    rho : float
        Privacy parameter, positive.
    step : float
        Step size, positive.
    n_steps : int
        At least 1.
    start : array_like, [d], optional
        First iterate. The default is `center`.
    noise_multiplier : float, default 1
        Factor on the noise, positive.
    max_seconds : float, default 60
        Largest estimated time. Slower runs are refused before they start.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size, d]
    """
    rng = _validate.generator(rng)
    points = _points.cloud(data)
    n, dimension = points.shape
    middle = _points.point("center", center, dimension)
    first = middle if start is None else _points.point("start", start, dimension)
    radius = _validate.positive("radius", radius)
    step = _validate.positive("step", step)
    multiplier = _validate.positive("noise_multiplier", noise_multiplier)
    sigma = multiplier * dpgd_sigma(n, rho, n_steps)
    size = _validate.draws(size)
    each = _cost.gradient_seconds(n, dimension, size)
    _cost.refuse_slow(lambda steps: steps * each, n_steps, max_seconds, name="n_steps")
    theta = np.broadcast_to(first, (size, dimension)).copy()
    total = np.zeros_like(theta)
    for _ in range(n_steps):
        noisy = _gradients(points, theta) + rng.normal(scale=sigma, size=theta.shape)
        offset = theta - step * noisy - middle
        distances = _points.norms(offset)
        outside = distances > radius
        offset[outside] *= (radius / distances[outside])[:, None]
        total += offset
        theta = middle + offset
    return middle + total / n_steps


def dpgd_sigma(n_users: int, rho: float, n_steps: int) -> float:
    """Return the standard deviation of the noise of one gradient, (2 / n) sqrt(T / (2 rho))."""
    n_users = _validate.integer("n_users", n_users, at_least=1)
    n_steps = _validate.integer("n_steps", n_steps, at_least=1)
    rho = _validate.positive("rho", rho)
    return _validate.scale(2 / n_users * math.sqrt(n_steps / 2), math.sqrt(rho))


def dpgd_parameters(
    n_users: int, dimension: int, *, radius: float, rho: float, step_rule: str = "best"
) -> DPGDParameters:
    """Return the number of steps and the step size of DPGD.

    In HSU24, T is n**2 rho / (256 d). In this function, T is rounded down and is at least 1. With
    `step_rule` "hsu", the step size is 2 radius sqrt(d / (6 rho n**2)), as in HSU24. With
    `step_rule` "best", the step size is radius / sqrt(T), which was best in the ablation of
    geometric_median.
    """
    dimension = _validate.integer("dimension", dimension, at_least=1)
    n_users = _validate.integer("n_users", n_users, at_least=1)
    radius = _validate.positive("radius", radius)
    rho = _validate.positive("rho", rho)
    n_steps = max(1, int(n_users**2 * rho / (256 * dimension)))
    rules = {
        "hsu": 2 * radius * math.sqrt(dimension / (6 * rho)) / n_users,
        "best": dpgd_step(n_steps, radius=radius),
    }
    if step_rule not in rules:
        raise ValueError(f"step_rule must be one of {', '.join(rules)}, got {step_rule!r}")
    return DPGDParameters(n_steps, rules[step_rule], dpgd_sigma(n_users, rho, n_steps))


def dpgd_step(n_steps: int, *, radius: float, multiplier: float = 1.0) -> float:
    """Return the step size `multiplier` times radius / sqrt(T) of DPGD.

    **Guarantee** Privacy does not depend on the step size, because the noise is added to gradients.
    The multiplier must be public.

    **Departs** HSU24 prints 2 radius sqrt(d / (6 rho n**2)), which does not depend on T. In the
    ablation of geometric_median (Section 5), radius / sqrt(T) with the multiplier 1 had
    consistently the smallest error. The largest multiplier of this ablation is 1.75.
    """
    n_steps = _validate.integer("n_steps", n_steps, at_least=1)
    radius = _validate.positive("radius", radius)
    return radius * _validate.positive("multiplier", multiplier) / math.sqrt(n_steps)


def _gradients(points: FloatArray, theta: FloatArray) -> FloatArray:
    """Return the average over the data of (theta - x) / |theta - x|, ``[size, d]``."""
    total = np.zeros_like(theta)
    rows = max(1, _CELLS // max(1, theta.size))
    for start in range(0, len(points), rows):
        differences = theta[:, None, :] - points[None, start : start + rows, :]
        pulls, lengths = _points.directed(differences)
        rates = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        total += np.einsum("sn,snd->sd", rates, pulls)
    return total / len(points)


def _kept(n: int, gamma: float) -> int:
    """Return m = ceil(gamma n), protected against rounding of the product."""
    gamma = _validate.real("gamma", gamma)
    if not 0.5 < gamma <= 1:
        raise ValueError(f"gamma must be above 1/2 and at most 1, got {gamma!r}")
    return _points.ceiling(gamma * n)
