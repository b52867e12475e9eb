"""Uniform smoothing, h^_delta(x) = E h(x + delta v) for v uniform in the unit ball.

For losses that are a function of one direction (`losses.Ridge`), smoothing is exact. For such
losses, smoothing is an integral over one coordinate of v. For other losses, smoothing is estimated.
Lemma 2.2 of zeroth_order states the properties of smoothing.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, gammaln

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.zeroth_order.estimators import items_of, on_sphere, points_of
from algorithms.zeroth_order.losses import Linear, Loss, Ridge, evaluated, shortened


def smoothness_constant(dimension: int) -> float:
    """Return the best c_d such that smoothed L-Lipschitz functions are c_d L / delta-smooth.

    ``c_d = 2 Gamma(d / 2 + 1) / (sqrt(pi) Gamma((d + 1) / 2))``. The constant is twice the density
    of a coordinate of v at 0. The function L abs(<e, x>) attains the constant. Lemma 2.2 (iii) has
    sqrt(d). For d = 1, sqrt(d) is equal to c_d. For large d, sqrt(d) is about sqrt(pi / 2) times
    c_d.

    Examples
    --------
    >>> smoothness_constant(1), round(smoothness_constant(10_000) / 100, 3)
    (1.0, 0.798)
    """
    d = _validate.integer("dimension", dimension, at_least=1)
    return 2 * math.exp(gammaln(d / 2 + 1) - gammaln((d + 1) / 2)) / math.sqrt(math.pi)


def smoothed_absolute(s: FloatArray, width: FloatArray, dimension: int) -> FloatArray:
    """Return E abs(s + width v_1), where v_1 is a coordinate of v uniform in the unit ball.

    Parameters
    ----------
    s : ndarray
    width : ndarray
        At least 0. The array broadcasts with s.
    dimension : int
        Dimension d.

    Returns
    -------
    ndarray
    """
    place = _place(s, width)
    outer = (1 - place**2) ** ((dimension + 1) / 2) * smoothness_constant(dimension)
    inside = s * _two_sided(place, dimension) + width * outer / (dimension + 1)
    return np.where(np.abs(s) >= width, np.abs(s), inside)


def smoothed_sign(s: FloatArray, width: FloatArray, dimension: int) -> FloatArray:
    """Return the derivative of `smoothed_absolute` in s.

    The derivative is P(v_1 > -s / width) - P(v_1 < -s / width).
    """
    return np.where(np.abs(s) >= width, np.sign(s), _two_sided(_place(s, width), dimension))


def smoothed_values(
    data: ArrayLike, *, loss: Linear | Ridge, radius: float, points: ArrayLike
) -> FloatArray:
    """Return the exact smoothed loss of each item at each point.

    The source is zeroth_order, Lemma 2.2.

    Parameters
    ----------
    data : array_like, [n, p]
    loss : Linear or Ridge
    radius : float
        Positive radius delta.
    points : array_like, [S, d]

    Returns
    -------
    ndarray, [S, n]
    """
    items, x, delta = _checked(data, loss, radius, points)
    if isinstance(loss, Linear):
        return loss.values(x, items)
    s, width, _, constant, weights = _profile(items, loss, delta, x)
    smooth = smoothed_absolute(s, width, x.shape[-1]) @ weights
    return loss.lipschitz * (constant + smooth)


def smoothed_gradients(
    data: ArrayLike, *, loss: Linear | Ridge, radius: float, points: ArrayLike
) -> FloatArray:
    """Return the exact gradient of the smoothed loss of each item at each point ``[S, n, d]``.

    The parameters are those of `smoothed_values`.
    """
    items, x, delta = _checked(data, loss, radius, points)
    if isinstance(loss, Linear):
        return np.array(loss.gradients(x, items))
    s, width, features, _, weights = _profile(items, loss, delta, x)
    slopes = smoothed_sign(s, width, x.shape[-1]) @ weights
    return np.asarray(loss.lipschitz * slopes[..., None] * features)


def estimated_smoothing(
    data: ArrayLike,
    size: int,
    *,
    loss: Loss,
    radius: float,
    point: ArrayLike,
    rng: np.random.Generator,
) -> FloatArray:
    """Return draws whose mean is the smoothed mean loss of the items at a point.

    The source is zeroth_order, Section 2.

    **Guarantee** The draws are unbiased, and within L delta of the mean loss at the point. The
    draws are not private.

    **Requires** only a finite loss.

    **Departs** Section 2 defines only the expectation of one function.

    **Symbols** h = mean loss of the items, x = `point`, delta = `radius`, v = a point of the ball.

    Parameters
    ----------
    data : array_like, [n, p]
    size : int
        Number of points drawn in the ball.
    loss : Loss
    radius : float
        Positive radius delta.
    point : array_like, [d]
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, [size]
    """
    items = items_of(data, loss)
    delta = _validate.positive("radius", radius)
    x = points_of("point", point, 1, loss.dimension(items.shape[1]))[0]
    v = uniform_in_ball(_validate.draws(size), x.size, rng=_validate.generator(rng))
    return np.asarray(evaluated(loss, (x + delta * v)[:, None], items).mean(axis=1))


def uniform_in_ball(size: int, dimension: int, *, rng: np.random.Generator) -> FloatArray:
    """Return points ``[size, dimension]`` that are uniform in the unit ball."""
    u = on_sphere((size, dimension), rng)
    return u * rng.random((size, 1)) ** (1 / dimension)


def _two_sided(place: FloatArray, dimension: int) -> FloatArray:
    """Return 2 F(place) - 1 for the distribution function F of v_1."""
    half = betainc(0.5, (dimension + 1) / 2, place**2)  # P(abs(v_1) <= place)
    return np.asarray(np.sign(place) * half)


def _place(s: FloatArray, width: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.clip(np.nan_to_num(np.divide(s, width)), -1.0, 1.0))


def _checked(
    data: ArrayLike, loss: Linear | Ridge, radius: float, points: ArrayLike
) -> tuple[FloatArray, FloatArray, float]:
    if not isinstance(loss, Linear | Ridge):
        raise TypeError(
            "loss must be a Linear or a Ridge, whose smoothed values are known exactly, "
            f"got {loss!r}. Use estimated_smoothing for other losses."
        )
    items = items_of(data, loss)
    x = _validate.floats("points", points, ndims=(2,))
    if x.shape[1] != loss.dimension(items.shape[1]):
        raise ValueError(
            f"points must have {loss.dimension(items.shape[1])} columns, got {x.shape[1]}"
        )
    return items, x[:, None], _validate.positive("radius", radius)


def _profile(
    items: FloatArray, loss: Ridge, delta: float, x: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return distances to knots ``[S, n, k]``, widths ``[n, 1]``, features, constant, weights."""
    features = shortened(items[:, :-1])
    constant, places, weights = loss.knots(items[:, -1])
    s = np.einsum("snd,nd->sn", np.broadcast_to(x, (len(x), *features.shape)), features)
    width = delta * np.linalg.norm(features, axis=1)[:, None]
    return s[..., None] - places, width, features, constant, weights
