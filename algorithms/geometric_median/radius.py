"""FastRadius, which finds a scale at which most points are near most other points."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.geometric_median import _cost, _pairs, _points

THRESHOLD = 0.775
"""The fraction of neighbours at which FastRadius halts: tau / n."""

SENSITIVITY = 3.0
"""The largest change of a query if one point is replaced and is sampled at most 2k times."""

_FINEST = 2.0**400  # largest R / r at which every radius and its square are normal floats


def radius_grid(min_radius: float, max_radius: float) -> FloatArray:
    """Return the radii r, 2r, ..., 2**(T-1) r that FastRadius tries, where T = ceil(log2(R / r)).

    T is the smallest number of doublings after which r is at least R. T is found by exact doubling,
    because a rounded logarithm may end up on the wrong side of an integer. T is 0 if r equals R.
    """
    small = _validate.positive("min_radius", min_radius)
    large = _validate.positive("max_radius", max_radius)
    if small > large:
        raise ValueError(f"min_radius must be at most max_radius = {large!r}, got {small!r}")
    if small < large / _FINEST:
        raise ValueError(
            f"min_radius must be at least 2**-400 times max_radius = {large!r}, got {small!r}"
        )
    radii = []
    while small < large:
        radii.append(small)
        small *= 2
    return np.array(radii)


def fast_radius_samples(n_radii: int, delta: float) -> int:
    """Return k = ceil(3 log(4T / delta)), the number of samples that FastRadius draws per point."""
    n_radii = _validate.integer("n_radii", n_radii, at_least=1)
    return math.ceil(3 * math.log(4 * n_radii / _validate.probability("delta", delta)))


def radius_query(data: ArrayLike, samples: ArrayLike, radius: float) -> float:
    """Return the query of FastRadius for given sampled indices.

    The source is geometric_median, Algorithm 2, lines 7 to 11, without randomness.

    **Guarantee** Suppose that index j occurs at most 2k times in the rows of `samples` other than
    row j. In this case, replacing point j moves the query by at most 3 (proof of Lemma 5). The
    query moves by c/k for c occurrences of point j, and by 1 for the row of point j.

    **Requires** No condition on the data.

    **Departs** The paper's N_i is n/k times a number of hits, and the query is the average of the
    N_i over n. Because n cancels, the query is the number of all hits divided by k.

    **Symbols** S^(i) = `samples[i]`, r_t = `radius`, q_t = the returned value.

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
    float
        Between 0 and n.
    """
    points = _points.cloud(data)
    table = _points.sample_table(len(points), samples)
    hits = _points.hits_of(points, table, _validate.positive("radius", radius))
    return int(hits.sum()) / int(table.shape[1])


def fast_radius(
    data: ArrayLike,
    size: int,
    *,
    min_radius: float,
    max_radius: float,
    epsilon: float,
    delta: float,
    noise_multiplier: float = 1.0,
    route: str = "auto",
    max_seconds: float = _cost.MAX_SECONDS,
    rng: np.random.Generator,
) -> FloatArray:
    """Double a radius until most points have three quarters of all points as neighbours.

    The source is geometric_median, Algorithm 2 (FastRadius). The algorithm is AboveThreshold on
    subsampled queries. For sensitivity 3, the noise scales are 6 / epsilon and 12 / epsilon.

    **Guarantee** (epsilon, delta)-DP for epsilon <= 1 (Lemma 5). For any epsilon, the algorithm is
    (epsilon, delta / 4)-DP. The only exceptional event is that the replaced index is sampled too
    often, and this event does not depend on the data. So the probability of this event, which is at
    most delta / 4, is the whole delta. Lemma 1, which multiplies this probability by 4, is not
    needed.

    Let n >= (2400 / epsilon) log(4T / delta) and r <= 4 r^(.9). With these assumptions, r^(.75) / 4
    <= output <= 4 r^(.9) holds with probability 1 - delta (Lemma 6).

    **Requires** that all points lie in the ball of radius `max_radius` around 0. Privacy does not
    need this condition, but points outside are refused.

    **Departs** (1) k = 3 log(4T / delta) is rounded up. (2) If exact counts are faster than
    samples, the samples are not drawn. Let c_i be the number of neighbours of i, including i. Given
    i, each sample is a neighbour with probability c_i / n, independently of the other samples. So
    N_i is n/k times a binomial, independent over i and t. With `route` "counts", the function
    computes the c_i from all n**2 pairs and draws binomials. All draws share these c_i. With
    `route` "samples", the function draws nk indices for every draw and radius. The time and memory
    are linear in n. The two routes have the same distribution. With `route` "auto", the function
    uses the faster route, which depends only on n, `size` and k. (3) If r = R, there is no radius
    to try. In this case, k is undefined, because the logarithm of k contains delta / 0. In this
    case, the function returns R, as in line 17.
    (4) An epsilon above 1 is allowed. (5) `noise_multiplier` is not in the paper.
    `noise_multiplier` multiplies the scales of the Laplace noise. If `noise_multiplier` is below 1,
    no privacy is guaranteed.

    **Symbols** r = `min_radius`, R = `max_radius`, T = the size of `radius_grid`, k =
    `fast_radius_samples`, tau = 0.775 n.

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
    ndarray, [size]
        min_radius * 2**t for t < T, or max_radius.
    """
    rng = _validate.generator(rng)
    points = _points.cloud(data)
    # lines 1 and 6: T = ceil(log2(R / r)), r_t = r 2**(t - 1)
    radii = radius_grid(min_radius, max_radius)
    _points.inside(points, float(max_radius))
    multiplier = _validate.positive("noise_multiplier", noise_multiplier)
    scale = _validate.scale(SENSITIVITY * multiplier, _validate.positive("epsilon", epsilon))
    delta = _validate.probability("delta", delta)
    size = _validate.draws(size)
    n, dimension = points.shape
    found = np.full(size, float(max_radius))  # line 17: return R
    k = fast_radius_samples(max(1, radii.size), delta)  # line 2

    def seconds(n: int) -> float:
        if _points.route_of(route, n, size, k) == "samples":
            return size * radii.size * _cost.sample_seconds(n, dimension, k)
        return _cost.count_seconds(n, dimension, radii.size)

    _cost.refuse_slow(seconds, n, max_seconds, name="the number of points of data")
    route = _points.route_of(route, n, size, k)
    if radii.size == 0 or size == 0:
        return found
    counts = _pairs.neighbour_counts(points, radii) if route == "counts" else None
    # lines 3-4: tau = 0.775 n, tau-hat = tau + Lap(6 / epsilon)
    noisy_threshold = THRESHOLD * n + rng.laplace(scale=2 * scale, size=size)
    running = np.arange(size)
    for t, radius in enumerate(radii):  # line 5
        # lines 7-11: N_i = (n / k) sum over j in S_i of 1[|x_i - x_j| <= r_t], q_t = sum N_i / n
        if counts is not None:
            hits = _points.binomial_total(counts[:, t], k, running.size, rng)
        else:
            hits = np.array([_points.sampled_hits(points, radius, k, rng).sum() for _ in running])
        # lines 12-14: nu_t ~ Lap(12 / epsilon); if q_t + nu_t >= tau-hat return r_t
        nu = rng.laplace(scale=4 * scale, size=running.size)
        above = hits / k + nu >= noisy_threshold[running]
        found[running[above]] = radius
        running = running[~above]
        if running.size == 0:
            break
    return found
