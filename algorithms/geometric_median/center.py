"""FastCenter, the noisy mean of the points whose neighbourhood contains most other points."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.common import _validate
from algorithms.common._validate import FloatArray, IntArray
from algorithms.common.noise import bounded_laplace_mechanism
from algorithms.geometric_median import _cost, _pairs, _points

THRESHOLD = 0.55
"""FastCenter fails if the noisy sum of the weights is at most this fraction of n."""

_CELLS = 2**21  # number of weights that are in memory at once
_SAMPLE_COST = 40.0  # measured time of a sampled pair, relative to a pair of `_pairs`


def fast_center_samples(n_users: int, delta: float) -> int:
    """Return k = ceil(600 log(18n / delta)), the number of samples of FastCenter per point."""
    n_users = _validate.integer("n_users", n_users, at_least=1)
    return math.ceil(600 * math.log(18 * n_users / _validate.probability("delta", delta)))


def fast_center_sigma(n_users: int, radius: float, epsilon: float, delta: float) -> float:
    """Return the standard deviation of FastCenter's Gaussian noise (line 13).

    The standard deviation is 1600 radius / (n epsilon) sqrt(log(12 / delta)). This value follows
    from Fact 2 at sensitivity 400 radius / n, for (epsilon / 2, delta / 6).
    """
    n_users = _validate.integer("n_users", n_users, at_least=1)
    radius = _validate.positive("radius", radius)
    epsilon = _validate.positive("epsilon", epsilon)
    delta = _validate.probability("delta", delta)
    return _validate.scale(1600 * radius / n_users * math.sqrt(math.log(12 / delta)), epsilon)


def center_weights(data: ArrayLike, samples: ArrayLike, radius: float) -> FloatArray:
    """Return the weights of FastCenter for given sampled indices.

    The source is geometric_median, Algorithm 3, lines 2 to 6, without randomness. The weight is 0
    if at most half of the samples lie within twice the radius. The weight is 1 if at least three
    quarters of the samples lie within twice the radius. Between these shares, the weight is linear.

    **Guarantee** Suppose that index j occurs at most 2k times in the rows of `samples` other than
    row j. In this case, replacing point j moves the weights by at most 9 in L1 norm. The weight of
    point j moves by at most 1, and each occurrence moves the other weights by 4/k. (The proof of
    Lemma 9 has 12, because the proof takes 4 for the weight of point j.)

    **Requires** No condition on the data.

    **Departs** Nothing.

    **Symbols** S_i = `samples[i]`, r-hat = `radius`, p = the returned value.

    Parameters
    ----------
    data : array_like, [n, d]
        Finite values.
    samples : array_like of int, [n, k]
        Indices from 0 to n - 1.
    radius : float
        Positive.

    Returns
    -------
    ndarray, [n]
    """
    points = _points.cloud(data)
    table = _points.sample_table(len(points), samples)
    hits = _points.hits_of(points, table, 2 * _validate.positive("radius", radius))
    return _weights(hits, table.shape[1])


def fast_center(
    data: ArrayLike,
    size: int,
    *,
    radius: float,
    epsilon: float,
    delta: float,
    noise_multiplier: float = 1.0,
    route: str = "auto",
    max_seconds: float = _cost.MAX_SECONDS,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the noisy weighted mean of points with many neighbours.

    The result is 0 if such points are too few. The source is geometric_median, Algorithm 3
    (FastCenter), after FriendlyCore (Tsfadia et al. 2022).

    **Guarantee** (epsilon, delta)-DP for epsilon <= 1 and n >= 20 (Lemma 9). The radius is public.
    For the utility (Lemma 7), let radius >= r^(.75). With these assumptions, two facts hold with
    probability 1 - delta / 18. All points of positive weight lie within 3 radius of the geometric
    median, and the weights sum to 0.6 n or more.

    **Requires** No condition on the data. The paper's proof needs two points of positive weight
    that both datasets share. For the existence of two such points, n >= 10 would be enough. The
    proof conditions on (8), which is an event of the data. After this conditioning, the weights of
    the two datasets have different distributions. A proof without conditioning uses the event that
    (8) holds for both datasets. With the same constants, this proof gives (epsilon, 11 delta /
      18)-DP.

    **Departs** (1) k = 600 log(18n / delta) is rounded up. (2) The samples are drawn as in
    `algorithms.geometric_median.radius.fast_radius`. The samples are binomials from exact counts,
    or sampled indices. The faster route is used. The two routes have the same distribution. (For n
    >= 4096, matrix products decide most of the pairs, and the counts are still exact.) In this
    function, every point has its own binomial. (3) An epsilon above 1 and an n below 20 are
    accepted, but no privacy is guaranteed for these values. (4) `noise_multiplier` is not in the
    paper. `noise_multiplier` multiplies the scale and the bound of the bounded Laplace noise, the
    offset of line 9, and sigma. If `noise_multiplier` is below 1, no privacy is guaranteed.

    **Symbols** r-hat = `radius`, k = `fast_center_samples`, sigma = `fast_center_sigma`.

    Parameters
    ----------
    data : array_like, [n, d]
        Finite values.
    size : int
        Number of independent draws.
    radius : float
        Positive, public.
    epsilon : float
        Privacy parameter, positive.
    delta : float
        In (0, 1).
    noise_multiplier : float, default 1
        Factor on all noise scales, positive.
    route : {"auto", "counts", "samples"}, default "auto"
        How the subsampling is drawn.
    max_seconds : float, default 60
        Largest estimated time. Slower runs are refused before they start.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size, d]
        Exactly 0 if the test of line 9 fails.
    """
    refuse_slow(data, size, delta, route, max_seconds)
    centers, passed = _centers(data, size, radius, epsilon, delta, noise_multiplier, route, rng)
    # lines 13-14: sigma = 1600 r-hat / (n epsilon) sqrt(log(12 / delta)), return x-bar + xi
    sigma = noise_multiplier * fast_center_sigma(np.shape(data)[0], radius, epsilon, delta)
    centers += rng.normal(scale=sigma, size=centers.shape)
    centers[~passed] = 0.0  # line 10
    return centers


def fast_center_centers(
    data: ArrayLike,
    size: int,
    *,
    radius: float,
    epsilon: float,
    delta: float,
    failed_at: ArrayLike,
    noise_multiplier: float = 1.0,
    route: str = "auto",
    max_seconds: float = _cost.MAX_SECONDS,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the value to which FastCenter adds Gaussian noise.

    If a run fails, the value is a public point. The source is geometric_median, Algorithm 3, up to
    line 12. Audits use this function to integrate out the last noise.

    **Guarantee** This value alone has no guarantee. If Gaussian noise of ``noise_multiplier *
    fast_center_sigma(...)`` is added to this value, the sum is a function of the output of
    `fast_center`. An output of exactly 0 is mapped to `failed_at` plus noise. So a certified bound
    for this value holds for `fast_center` too.

    **Requires** that `failed_at` is public. The farther `failed_at` is from the data, the less
    power is lost.

    **Departs** Line 10 returns 0, and this function returns `failed_at`. All other departures are
    those of `fast_center`.

    **Symbols** x-bar = the returned value if line 9 passes.

    Parameters
    ----------
    data, size, radius, epsilon, delta, noise_multiplier, route, max_seconds, rng
        As in `fast_center`.
    failed_at : array_like, [d]
        The point to return, exactly, if the test of line 9 fails.

    Returns
    -------
    ndarray, [size, d]
    """
    rng = _validate.generator(rng)
    marker = _points.point("failed_at", failed_at, _points.cloud(data).shape[1])
    refuse_slow(data, size, delta, route, max_seconds)
    centers, passed = _centers(data, size, radius, epsilon, delta, noise_multiplier, route, rng)
    centers[~passed] = marker
    return centers


def refuse_slow(data: ArrayLike, size: int, delta: float, route: str, max_seconds: float) -> None:
    """Refuse draws of `fast_center` whose estimated time exceeds `max_seconds`."""
    n, dimension = _points.cloud(data).shape
    size, delta = _validate.draws(size), _validate.probability("delta", delta)

    def seconds(n: int) -> float:
        k = fast_center_samples(n, delta)
        if _points.route_of(route, n, size, k, sample_cost=_SAMPLE_COST) == "samples":
            return size * _cost.sample_seconds(n, dimension, k)
        counted = _cost.count_seconds(n, dimension, 1)
        return counted + _cost.draw_seconds(n, dimension, size)

    _cost.refuse_slow(seconds, n, max_seconds, name="the number of points of data")


def _centers(
    data: ArrayLike,
    size: int,
    radius: float,
    epsilon: float,
    delta: float,
    noise_multiplier: float,
    route: str,
    rng: np.random.Generator,
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return centers ``[size, d]`` before the noise, and which runs ``[size]`` pass line 9."""
    rng = _validate.generator(rng)
    points = _points.cloud(data)
    radius = _validate.positive("radius", radius)
    multiplier = _validate.positive("noise_multiplier", noise_multiplier)
    scale = _validate.scale(24 * multiplier, _validate.positive("epsilon", epsilon))
    n, dimension = points.shape
    fast_center_sigma(n, radius, epsilon, delta)  # refuses values that do not give a valid scale
    size = _validate.draws(size)
    k = fast_center_samples(n, delta)  # line 1
    route = _points.route_of(route, n, size, k, sample_cost=_SAMPLE_COST)
    # line 8: xi ~ BoundedLaplace(24 / epsilon, (24 / epsilon) log(24 / delta))
    offset = scale * math.log(24 / delta)
    xi = bounded_laplace_mechanism(
        0.0, size, sensitivity=12.0, epsilon=epsilon / 2, delta=delta / 6,
        noise_multiplier=multiplier, rng=rng,
    )  # fmt: skip
    centers = np.zeros((size, dimension))
    passed = np.zeros(size, dtype=np.bool_)
    counts = None
    if route == "counts" and size > 0:
        counts = _pairs.neighbour_counts(points, np.array([2 * radius]))[:, 0]
    draws = max(1, _CELLS // n)
    for first in range(0, size, draws):
        some = slice(first, min(first + draws, size))
        # lines 2-6: f_i = sum over j in S_i of 1[|x_i - x_j| <= 2 r-hat], p_i
        weights = _weights(_hits(points, counts, k, some.stop - first, 2 * radius, rng), k)
        total = weights.sum(axis=0)  # line 7
        # line 9: if Z + xi - (24 / epsilon) log(24 / delta) <= 0.55 n
        passed[some] = total + xi[some] - offset > THRESHOLD * n
        # line 12: x-bar = sum p_i x_i / Z
        mean = weights.T @ points / np.where(total > 0, total, 1.0)[:, None]
        centers[some] = np.where(passed[some, None], mean, 0.0)
    return centers, passed


def _hits(
    points: FloatArray,
    counts: IntArray | None,
    k: int,
    size: int,
    reach: float,
    rng: np.random.Generator,
) -> IntArray:
    """Return f ``[n, size]``."""
    if counts is not None:
        return _points.binomial_hits(counts, k, size, rng)
    columns = [_points.sampled_hits(points, reach, k, rng) for _ in range(size)]
    return np.stack(columns, axis=1)


def _weights(hits: IntArray, k: int) -> FloatArray:
    """Return p = min(max(0, (f - 0.5 k) / (0.25 k)), 1)."""
    return np.clip((hits - 0.5 * k) / (0.25 * k), 0.0, 1.0)
