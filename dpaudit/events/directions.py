"""Directions along which the two sides differ: in their means, in their spreads, in both.

The spreads are compared by the generalised eigenvectors of the two covariance matrices: among all
directions u, the ratio ``u' S_left u / u' S_right u`` is largest and smallest along them. Taken as
coordinates they make both matrices diagonal, so that the log-likelihood ratio of two Gaussians with
these moments is a sum over them,

    sum_i  z_i^2 (1 - 1 / v_i) / 2 + z_i m_i / v_i  +  constant,

with z measured from the right mean in right standard deviations, and v_i and m_i the variance and
the mean of the left side in these units. Directions in which the two do not differ by more than
chance are left out: they would add noise only. What chance does is known well enough: the ratios of
two sample covariances of equal distributions lie, up to fluctuations, between
``((1 - h) / (1 - s))^2`` and ``((1 + h) / (1 - s))^2``, with ``s = k / n`` and ``h`` the root of
``2 s - s^2`` (Wachter 1980, "The limiting empirical measure of multiple discriminant ratios").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from dpaudit.events.encoding import Column

Floats = NDArray[np.float64]
Read = Callable[[Floats], Floats]

MAX_SPREADS = 200
"""Coordinates up to which covariance matrices are compared."""

_SHOWN = 2  # directions of different spread that are looked at by themselves
_QUADRATIC = 16  # directions in a quadratic score
_REACH = 8.0  # standard deviations to which draws are moved in while spreads are learnt
_SLACK = 1.15  # beyond what chance does to the ratio of two variances


def filled(x: Floats) -> Floats:
    """Return encoded outputs with 0 for "no answer"."""
    return np.where(np.isnan(x), 0.0, x)


def difference_of_means(left: Floats, right: Floats, numeric: NDArray[np.bool_]) -> Read | None:
    """Projection on the difference of means, each coordinate in units of its spread."""
    spread = np.concatenate([filled(left), filled(right)]).std(axis=0)
    gap = filled(left).mean(axis=0) - filled(right).mean(axis=0)
    use = numeric & (spread > 0)
    weights = np.zeros(len(spread))
    weights[use] = gap[use] / spread[use] ** 2
    size = np.linalg.norm(weights)
    if not size > 0:
        return None
    weights /= size
    # Not a matrix product, whose last digits depend on the number of rows.
    return lambda x: np.asarray((filled(x) * weights).sum(axis=1))


def spreads(
    columns: NDArray[np.intp], left: Floats, right: Floats
) -> Iterator[tuple[Column, Read]]:
    """Yield distances along directions of different spread, and the quadratic score.

    Parameters
    ----------
    columns : ndarray of int
        Those that hold numbers, at least two.
    left, right : ndarray, shape (n, k)
        Encoded draws from which to learn.

    Yields
    ------
    Column
        Words.
    callable
        ``[size, k] -> [size]``.
    """
    k, n = len(columns), min(len(left), len(right))
    if k > MAX_SPREADS or n < 4 * k + 50:
        return
    sides = [filled(np.take(x, columns, axis=1)) for x in (left, right)]
    pooled = np.concatenate(sides)
    center, unit = np.median(pooled, axis=0), pooled.std(axis=0)
    moving = unit > 0
    if moving.sum() < 2:
        return
    columns, center, unit = columns[moving], center[moving], unit[moving]
    sides = [np.clip((x[:, moving] - center) / unit, -_REACH, _REACH) for x in sides]
    means = [x.mean(axis=0) for x in sides]
    covariances = [np.cov(x, rowvar=False) for x in sides]
    ridge = 1e-9 * np.eye(len(unit))
    try:
        ratios, vectors = linalg.eigh(covariances[0] + ridge, covariances[1] + ridge)
    except linalg.LinAlgError:
        return
    shift = (means[0] - means[1]) @ vectors
    differ = np.abs(np.log(np.maximum(ratios, 1e-12))) > _chance(len(unit), n)
    if not differ.any():
        return
    order = np.argsort(-np.abs(np.log(np.maximum(ratios, 1e-12))), kind="stable")
    middle = center + unit * (means[0] + means[1]) / 2
    weights = vectors / unit[:, None]
    shown = [i for i in order[:_SHOWN].tolist() if differ[i]]
    for rank, i in enumerate(shown, 1):
        name = "distance along the direction of different spread"
        name += f" {rank}" if len(shown) > 1 else ""
        yield Column(name), _distance(columns, middle, weights[:, i])
    use = [i for i in order.tolist() if differ[i] or abs(shift[i]) > 5 * math.sqrt(2 / n)]
    use = use[:_QUADRATIC]
    if len(use) == 1:
        return  # the distance says it all, but for a shift that the linear scores see
    start = center + unit * means[1]
    bend = (1 - 1 / np.maximum(ratios[use], 1e-12)) / 2
    slope = shift[use] / np.maximum(ratios[use], 1e-12)
    name = f"quadratic score in {len(use)} direction{'s' * (len(use) > 1)}"
    yield Column(name), _quadratic(columns, start, weights[:, use], bend, slope)


def _chance(k: int, n: int) -> float:
    """Logarithm of the ratio of spreads that chance alone does not reach."""
    share = k / n
    h = math.sqrt(2 * share - share**2)
    edge = 2 * math.log((1 + h) / (1 - share))
    return _SLACK * edge + 6 / math.sqrt(n)


def _project(x: Floats, weights: Floats) -> Floats:
    """Rows times weights, one column after the other: row by row the same in any batch."""
    total = np.zeros((len(x), weights.shape[1]))
    for j, row in enumerate(weights):
        total += x[:, j, None] * row
    return total


def _distance(columns: NDArray[np.intp], middle: Floats, weights: Floats) -> Read:
    return lambda x: np.abs(((filled(np.take(x, columns, axis=1)) - middle) * weights).sum(axis=1))


def _quadratic(
    columns: NDArray[np.intp], start: Floats, weights: Floats, bend: Floats, slope: Floats
) -> Read:
    def read(x: Floats) -> Floats:
        z = _project(filled(np.take(x, columns, axis=1)) - start, weights)
        return np.asarray((z * (bend * z + slope)).sum(axis=1))

    return read
