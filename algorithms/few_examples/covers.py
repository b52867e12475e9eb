"""Covers of families of distributions in total variation, with a proof that they are covers."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.few_examples.hypotheses import distributions
from algorithms.few_examples.populations import compositions

MOST_CANDIDATES = 10**5


def printed_parts(k: int, alpha: float) -> int:
    """Return floor(10 k / alpha).

    In few_examples, Theorem 43, masses are multiples of 1 / floor(10 k / alpha).

    **Departs** The paper prints "a multiple of floor(10 k / alpha)".
    """
    k = _validate.integer("k", k, at_least=1)
    return math.floor(10 * k / _validate.probability("alpha", alpha))


def sufficient_parts(k: int, radius: float) -> int:
    """Return ceil(k / (4 radius)), the number of parts with which `simplex_grid` is a cover.

    Round all products of a mass and `parts` down. Then round up the products with the largest
    fractional parts until the sum is `parts`. Let r be the number of products that are rounded up,
    among k products. The r largest fractions have a mean of at least r / k. So the total variation
    is at most r (k - r) / (k parts) <= k / (4 parts).

    Parameters
    ----------
    k : int
        Size of the universe, at least 1.
    radius : float
        In (0, 1).

    Returns
    -------
    int
    """
    k = _validate.integer("k", k, at_least=1)
    return max(1, math.ceil(k / (4 * _validate.probability("radius", radius))))


def simplex_grid(k: int, parts: int) -> FloatArray:
    """Return all distributions on k points whose masses are multiples of 1 / parts.

    The source is few_examples, proof of Theorem 43. With `printed_parts` parts, the grid is a 0.1
    alpha-cover of all distributions. A number of `sufficient_parts(k, 0.1 * alpha)` parts is also
    enough.

    Parameters
    ----------
    k, parts : int
        At least 1.

    Returns
    -------
    ndarray, [C(parts + k - 1, k - 1), k]
    """
    k = _validate.integer("k", k, at_least=1)
    parts = _validate.integer("parts", parts, at_least=1)
    _few(math.comb(parts + k - 1, k - 1))
    return compositions(parts, np.full(k, parts)) / parts


def nearest_in_grid(distribution: ArrayLike, parts: int) -> FloatArray:
    """Return a point of `simplex_grid` within k / (4 parts) of a given distribution, [k].

    Parameters
    ----------
    distribution : array_like, [k]
        Sums to one.
    parts : int
        At least 1.
    """
    masses = distributions("distribution", np.asarray(distribution)[None])[0]
    parts = _validate.integer("parts", parts, at_least=1)
    rounded = np.floor(masses * parts)
    missing = round(parts - rounded.sum())
    rounded[np.argsort(rounded - masses * parts)[:missing]] += 1
    return np.asarray(rounded / parts)


def product_cover(k: int, d: int, parts: int) -> FloatArray:
    """Return all products of d points of `simplex_grid`, over the k^d items of [k]^d.

    The source is few_examples, proof of Theorem 44 (Bun, Kamath, Steinke & Wu, Lemma 6.2). The
    total variation is at most the sum over the coordinates. So `sufficient_parts(k, radius / d)`
    parts give a cover.

    Parameters
    ----------
    k, d, parts : int
        At least 1.

    Returns
    -------
    ndarray, [grid ** d, k ** d]
        Items have the same numbers as in `hypotheses.flat_items`.
    """
    d = _validate.integer("d", d, at_least=1)
    grid = simplex_grid(k, parts)
    _few(len(grid) ** d)
    found = np.ones((1, 1))
    for _ in range(d):
        found = np.einsum("aj,bi->abji", found, grid).reshape(
            len(found) * len(grid), found.shape[1] * k
        )
    return found


def gaussian_cover(bound: float, d: int, radius: float) -> FloatArray:
    """Return the means of a cover of N(mu, I), where norm(mu) <= bound.

    The source is few_examples, proof of Theorem 45 (Bun, Kamath, Steinke & Wu, Lemma 6.7). The
    cover is a cubic grid. The total variation of two such Gaussians is exactly 2 Phi(distance / 2)
    - 1.

    Parameters
    ----------
    bound : float
        Bound R, at least 0.
    d : int
        At least 1.
    radius : float
        Radius in total variation, in (0, 1).

    Returns
    -------
    ndarray, [Q, d]
    """
    bound, d = _validate.nonnegative("bound", bound), _validate.integer("d", d, at_least=1)
    radius = _validate.probability("radius", radius)
    if radius < 1e-9:
        raise ValueError(f"radius must be at least 1e-9, got {radius!r}")
    reach = 2 * float(norm.ppf((1 + radius) / 2))
    return _ball_grid(bound, d, reach)


def bounded_gaussian_cover(
    bound: float, d: int, condition: float, radius: float
) -> tuple[FloatArray, FloatArray]:
    """Return means and covariances that cover N(mu, Sigma) for I <= Sigma <= condition * I.

    The source is few_examples, proof of Theorem 46 (Bun, Kamath, Steinke & Wu, Lemma 6.8). Let I <=
    Sigma and I <= Sigma'. For different means, the total variation is at most 2 Phi(norm(mu - mu')
    / 2) -
    1. For different covariances, the total variation is at most norm(Sigma - Sigma')_F / 2 if this
    norm is at most 1/2. The second bound follows from Pinsker's inequality and x - ln(1 + x) <= x^2
    for x >= -1/2. Half of the radius is used for the means, and half is used for the covariances.

    The entries of Sigma lie on a grid. A matrix that is not between I and condition * I is
    projected to this range. The projection does not increase the distance of the matrix to any
    matrix in this range.

    Parameters
    ----------
    bound : float
        Bound R, at least 0.
    d : int
        At least 1.
    condition : float
        Condition number kappa, at least 1.
    radius : float
        Radius in total variation, in (0, 1/2].

    Returns
    -------
    ndarray, [Q, d]
        Means.
    ndarray, [Q, d, d]
        Covariances.
    """
    radius = _validate.probability("radius", radius)
    condition = _validate.real("condition", condition)
    if radius > 0.5 or condition < 1:
        raise ValueError(
            "radius must be at most 1/2 and condition must be at least 1, got radius = "
            f"{radius!r} and condition = {condition!r}"
        )
    means = gaussian_cover(bound, d, radius / 2)
    matrices = _covariance_grid(d, condition, radius)
    _few(len(means) * len(matrices))
    return (
        np.repeat(means, len(matrices), axis=0),
        np.tile(matrices, (len(means), 1, 1)),
    )


def _covariance_grid(d: int, condition: float, reach: float) -> FloatArray:
    """Return a cover of the matrices between I and condition * I, with Frobenius radius `reach`."""
    steps = math.ceil((condition - 1) * d / (2 * reach))  # d^2 entries, each half a step off
    if steps == 0:
        return np.eye(d)[None]
    step = (condition - 1) / steps
    diagonal = np.linspace(1, condition, steps + 1)
    most = math.ceil((condition - 1) / 2 / step)  # off-diagonal entries are at most half the range
    others = np.arange(-most, most + 1) * step
    above = np.triu_indices(d, 1)
    _few((steps + 1) ** d * len(others) ** len(above[0]))
    found = []
    for entries in itertools.product(*[diagonal] * d, *[others] * len(above[0])):
        matrix = np.diag(entries[:d])
        matrix[above] = entries[d:]
        values, vectors = np.linalg.eigh(matrix + np.triu(matrix, 1).T)
        inside = np.clip(values, 1, condition)
        if np.linalg.norm(inside - values) <= reach * (1 + 1e-12):  # else no rounding is needed
            found.append(vectors * inside @ vectors.T)
    return np.unique(np.round(found, 12), axis=0)


def _ball_grid(bound: float, d: int, reach: float) -> FloatArray:
    """Return points of a cubic grid that come within `reach` of every point of a ball around 0."""
    step = 2 * reach / math.sqrt(d)
    most = math.ceil(max(bound - step / 2, 0) / step)
    _few((2 * most + 1) ** d)
    axis = np.arange(-most, most + 1) * step
    points = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
    return np.asarray(points[np.linalg.norm(points, axis=1) <= bound + reach * (1 + 1e-12)])


def _few(candidates: int) -> None:
    if candidates > MOST_CANDIDATES:
        raise ValueError(
            f"the cover must have at most {MOST_CANDIDATES} candidates, got {candidates}. "
            "Use a larger radius."
        )
