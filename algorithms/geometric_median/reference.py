"""Exact geometric median, without privacy but with a certificate of optimality."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.geometric_median import _points

_ROWS = 2**16  # Number of data rows whose differences are in memory at once.
_COLLINEAR = 1e-13  # Relative distance below which points are on a line.
_GRID = 2.0**-50  # Spacing of the grid, relative to the extent of the data.
_STALLED = 500  # If the gap does not shrink in this many iterations, only rounding moves the point.


@dataclass(frozen=True, eq=False)
class GeometricMedian:
    """A point, with a bound on its distance from the optimum.

    `gap` is certified. The objective at `point` exceeds the minimum of the objective by at most
    `gap`. Rounding may add about 1e-16 of the objective. The gap is the product of two factors. The
    first factor, `subgradient_norm`, is the norm of the smallest subgradient at `point`. The second
    factor is a bound on the distance to the nearest minimiser.
    """

    point: FloatArray
    objective: float
    subgradient_norm: float
    gap: float
    iterations: int
    converged: bool


def objective(data: ArrayLike, points: ArrayLike) -> FloatArray:
    """Return the average distance from each of `points` to the data.

    The source is geometric_median, equations (1) and (3).

    Parameters
    ----------
    data : array_like, [n, d]
        Finite values.
    points : array_like, [d] or [size, d]
        Finite values.

    Returns
    -------
    ndarray, [] or [size]

    Examples
    --------
    >>> float(objective([[0.0, 0.0], [3.0, 4.0]], [0.0, 0.0]))
    2.5
    """
    cloud = _points.cloud(data)
    where = _validate.floats("points", points, ndims=(1, 2))
    if where.shape[-1] != cloud.shape[1]:
        raise ValueError(f"points must have {cloud.shape[1]} coordinates, got shape {where.shape}")
    targets = np.atleast_2d(where)
    values = np.empty(len(targets))
    for index, target in enumerate(targets):
        values[index] = _objective(cloud, target)
    return values.reshape(where.shape[:-1])


def geometric_median(
    data: ArrayLike, *, tolerance: float = 1e-10, max_iterations: int = 10_000
) -> GeometricMedian:
    """Minimise the average distance to the data.

    The function uses Weiszfeld's iteration, with the step of Vardi & Zhang (2000) at data points.

    **Guarantee** The result's `gap` is certified in every case. `converged` says whether the gap is
    at most `tolerance` times the objective. A data point that is optimal is returned exactly.

    **Requires** No condition on the data.

    **Departs** (1) Newton's step replaces Weiszfeld's step if Newton's step reaches a lower value.
    Weiszfeld's step alone converges very slowly if the median is at a data point or close to a data
    point.
    (2) The function also tries the data point nearest to the iterate. If this data point is
    optimal, the function returns this data point. (3) If all points are on one line, the problem is
    solved by sorting. Points on one line are the only case in which the median may not be unique.
    If n is even, every point between the two middle points is optimal. In this case, the midpoint
    of the two middle points is returned. In one dimension, this result is numpy's median.

    **Symbols** f_D = `objective`, x_star = the returned `point`.

    Parameters
    ----------
    data : array_like, [n, d]
        Finite values.
    tolerance : float, default 1e-10
        Relative gap at which the iteration stops, positive.
    max_iterations : int, default 10000
        At least 1.

    Returns
    -------
    GeometricMedian

    Examples
    --------
    >>> geometric_median([[0.0], [1.0], [5.0]]).point
    array([1.])
    """
    points = _points.cloud(data)
    tolerance = _validate.positive("tolerance", tolerance)
    max_iterations = _validate.integer("max_iterations", max_iterations, at_least=1)
    # Coordinates are relative to a central row, and the unit is about the extent of the data. The
    # unit is an exact power of two, so nothing overflows.
    origin = points[len(points) // 2].copy()
    moved = points - origin
    scale = 2.0 ** math.frexp(float(np.abs(moved).max()))[1]
    if not np.any(moved):
        return GeometricMedian(origin, 0.0, 0.0, 0.0, 0, True)
    moved /= scale
    line = _on_a_line(moved)
    # Points that almost coincide are merged, because the pull between them would slow down every
    # step.
    grid = np.round(moved / _GRID) * _GRID
    best, iterations = (line, 0) if line is not None else _iterate(grid, tolerance, max_iterations)
    # A data point is returned with exactly the bits of the input.
    nearest = int(np.argmin(_points.norms(moved - best)))
    same = float(np.abs(moved[nearest] - best).max()) <= (_GRID if line is None else 0.0)
    answer = points[nearest].copy() if same else origin + scale * best
    best = moved[nearest] if same else best
    value, slope, gap = _certificate(moved, best)
    return GeometricMedian(
        answer, value * scale, slope, gap * scale, iterations, gap <= tolerance * value
    )


def quantile_radius(data: ArrayLike, fraction: float, center: ArrayLike | None = None) -> float:
    """Return the radius of the smallest ball around `center` that holds a fraction of the data.

    The source is geometric_median, equations (2) and (4): r^(tau)(D; center).

    **Departs** The paper writes an argmin over r, although a condition cannot be minimised. The
    result is the smallest r that satisfies the condition. This r is the ceil(tau n)-th smallest
    distance, or 0 for tau = 0. If tau n is within a relative distance of 1e-12 of an integer, that
    integer is taken. For example, 0.07 of 100 points is 7 points, although 0.07 * 100 is above 7 in
    floats.

    Parameters
    ----------
    data : array_like, [n, d]
        Finite values.
    fraction : float
        tau, from 0 to 1.
    center : array_like, [d], optional
        Default: the geometric median of the data.

    Returns
    -------
    float

    Examples
    --------
    >>> quantile_radius([[float(i)] for i in range(10)], 0.9, [0.0])
    8.0
    """
    points = _points.cloud(data)
    fraction = _validate.real("fraction", fraction)
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction must be from 0 to 1, got {fraction!r}")
    if center is None:
        middle = geometric_median(points).point
    else:
        middle = _points.point("center", center, points.shape[1])
    needed = _points.ceiling(fraction * len(points))
    if needed == 0:
        return 0.0
    distances = _points.norms(points - middle)
    return float(np.partition(distances, needed - 1)[needed - 1])


def _objective(points: FloatArray, z: FloatArray) -> float:
    total = 0.0
    for start in range(0, len(points), _ROWS):
        total += float(_points.norms(points[start : start + _ROWS] - z).sum())
    return total / len(points)


def _on_a_line(moved: FloatArray) -> FloatArray | None:
    """Return a median of the points if they are on one line through 0, or None."""
    if moved.shape[1] == 1:
        return np.array([np.median(moved[:, 0])])
    farthest = moved[int(np.argmax(_points.norms(moved)))]
    direction = farthest / float(_points.norms(farthest))
    along = moved @ direction
    across = float(_points.norms(moved - along[:, None] * direction).max())
    if across > _COLLINEAR * float(np.abs(along).max()):
        return None
    order = np.argsort(along, kind="stable")
    low, high = moved[order[(len(moved) - 1) // 2]], moved[order[len(moved) // 2]]
    return np.array(low if np.array_equal(low, high) else (low + high) / 2)


def _slopes(points: FloatArray, z: FloatArray) -> tuple[FloatArray, FloatArray, int]:
    """Return the gradient without the rows at z, all distances, and the number of rows at z."""
    differences = z - points
    lengths = _points.norms(differences)
    there = lengths == 0
    units = differences / np.where(there, 1.0, lengths)[:, None]
    return units.sum(axis=0) / len(points), lengths, int(there.sum())


def _certificate(points: FloatArray, z: FloatArray) -> tuple[float, float, float]:
    """Return the objective, the norm of the smallest subgradient and the certified gap at z.

    f(z) - f(x) <= |g| |z - x| for a minimiser x, which lies in the convex hull of the data. Also,
    |z - x| <= f(z) + f(x) <= 2 f(z). If c data points are at z, any vector of norm up to c / n may
    be added to the gradient of the other points.
    """
    gradient, lengths, at_z = _slopes(points, z)
    value = float(lengths.mean())
    slope = max(0.0, float(_points.norms(gradient)) - at_z / len(points))
    return value, slope, slope * min(float(lengths.max()), 2 * value)


def _iterate(points: FloatArray, tolerance: float, max_iterations: int) -> tuple[FloatArray, int]:
    z = np.median(points, axis=0)
    best, best_gap, enough, since = z, math.inf, 0.0, 0
    for iteration in range(1, max_iterations + 1):
        for candidate in (z, points[int(np.argmin(_points.norms(points - z)))]):
            value, _, gap = _certificate(points, candidate)
            if gap < best_gap:
                best, best_gap, enough, since = candidate, gap, tolerance * value, iteration
        if best_gap <= enough or iteration - since > _STALLED:
            return best, iteration
        z = _step(points, z)
    return best, max_iterations


def _step(points: FloatArray, z: FloatArray) -> FloatArray:
    """Return the end of a Vardi-Zhang step from z, or a better point.

    The step from z is short if any data point is near, even if this data point is not optimal. So
    the function also tries a step from that data point, and Newton's step.
    """
    ends = [_vardi_zhang(points, z)]
    gradient, lengths, at_z = _slopes(points, z)
    if at_z == 0:
        ends.append(_vardi_zhang(points, points[int(np.argmin(lengths))]))
        inverse = 1.0 / lengths
        units = (z - points) * inverse[:, None]
        pull = np.diag(np.full(z.size, inverse.sum()))
        hessian = (pull - (units * inverse[:, None]).T @ units) / len(points)
        ends.append(z - np.linalg.lstsq(hessian, gradient, rcond=1e-14)[0])
    return min(ends, key=lambda end: _objective(points, end))


def _vardi_zhang(points: FloatArray, z: FloatArray) -> FloatArray:
    """Return the end of Weiszfeld's step, shortened by the weight of the data points at z."""
    gradient, lengths, at_z = _slopes(points, z)
    away = lengths > 0
    slope = float(_points.norms(gradient))
    if not away.any() or slope == 0:
        return z
    held = min(1.0, at_z / len(points) / slope)
    return np.asarray(
        z - (1.0 - held) * gradient * len(points) / float((1.0 / lengths[away]).sum())
    )
