"""Stationarity of a point in the sense of Goldstein (zeroth_order, Definition 2.1).

The stationarity of F at x within delta is the length of the shortest convex combination of
gradients. These gradients are the gradients of F in the open ball of radius delta around x.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.zeroth_order.estimators import items_of, points_of
from algorithms.zeroth_order.losses import Loss, Ridge, shortened
from algorithms.zeroth_order.smoothing import uniform_in_ball


def shortest_in_hull(vectors: ArrayLike) -> FloatArray:
    """Return the point of the convex hull of the given vectors that is closest to 0.

    The function uses non-negative least squares (Lawson & Hanson 1974). The weights that minimise
    norm(sum w_i v_i)**2 + (sum w_i - 1)**2 are a multiple of the weights of the closest point.

    Parameters
    ----------
    vectors : array_like, [k, d]

    Returns
    -------
    ndarray, [d]
    """
    points = _validate.floats("vectors", vectors, ndims=(2,))
    scale = max(float(np.abs(points).max()), 1e-300)
    system = np.vstack([points.T / scale, np.ones(len(points))])
    weights, _ = nnls(system, np.append(np.zeros(points.shape[1]), 1.0))
    return np.asarray(weights / weights.sum() @ points)


def stationarity_estimate(
    data: ArrayLike,
    size: int,
    *,
    loss: Loss,
    radius: float,
    point: ArrayLike,
    n_gradients: int = 64,
    rng: np.random.Generator,
) -> FloatArray:
    """Return upper bounds on the stationarity of the mean loss, from gradients in the ball.

    The source is zeroth_order, Definition 2.1.

    **Guarantee** Each draw is an upper bound on the stationarity at `point` of F, the mean of the
    items' losses. Every convex combination of gradients belongs to the set whose shortest element
    defines the stationarity, so the bound holds. The difference between the bound and the true
    value is not known.

    **Requires** a loss with `gradients`.

    **Departs** If F has no gradient at a drawn point, the function uses one of the limits of
    gradients. Such points have probability 0.

    **Symbols** h = mean loss of the items, x = `point`, delta = `radius`.

    Parameters
    ----------
    data : array_like, [n, p]
    size : int
        Number of independent draws.
    loss : Loss
    radius : float
        Positive radius delta.
    point : array_like, [d] or [size, d]
    n_gradients : int, default 64
        Number of gradients for each draw, at points uniform in the ball.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, [size]
    """
    items = items_of(data, loss)
    size = _validate.draws(size)
    delta = _validate.positive("radius", radius)
    k = _validate.integer("n_gradients", n_gradients, at_least=1)
    d = loss.dimension(items.shape[1])
    x = points_of("point", point, size, d)
    rng = _validate.generator(rng)
    found = np.empty(size)
    for i, center in enumerate(x):
        ball = center + delta * uniform_in_ball(k, d, rng=rng)
        gradients = np.array([loss.gradients(y[None], items).mean(axis=0) for y in ball])
        found[i] = np.linalg.norm(shortest_in_hull(gradients))
    return found


def stationarity_in_one_dimension(
    data: ArrayLike, *, loss: Ridge, radius: float, points: ArrayLike
) -> FloatArray:
    """Return the exact stationarity of the mean loss of the items, for d = 1.

    The source is zeroth_order, Definition 2.1. F is piecewise linear. The slopes of F in the open
    interval of radius delta are the slopes between the knots of F. The hull of these slopes is an
    interval.

    Parameters
    ----------
    data : array_like, [n, 2]
        Items (a, b).
    loss : Ridge
    radius : float
        Positive radius delta.
    points : array_like, [S]

    Returns
    -------
    ndarray, [S]
    """
    if not isinstance(loss, Ridge):
        raise TypeError(f"loss must be a Ridge with known knots, got {loss!r}")
    items = items_of(data, loss)
    if items.shape[1] != 2:
        raise ValueError(f"data must have 2 columns (d = 1), got {items.shape[1]} columns")
    delta = _validate.positive("radius", radius)
    x = _validate.floats("points", points, ndims=(1,))
    features = shortened(items[:, :1])[:, 0]
    _, places, _ = loss.knots(items[:, 1])
    used = features != 0
    knots = np.unique(places[used] / features[used, None])
    found = np.empty(len(x))
    for i, center in enumerate(x):
        low, high = center - delta, center + delta
        inside = knots[(knots > low) & (knots < high)]
        edges = np.concatenate([[low], inside, [high]])
        middles = (edges[:-1] + edges[1:]) / 2
        slopes = loss.gradients(middles[:, None, None], items)[..., 0].mean(axis=1)
        found[i] = max(0.0, slopes.min(), -slopes.max())
    return found
