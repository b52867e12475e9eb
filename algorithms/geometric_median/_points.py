"""Validation of clouds of points, and exact or subsampled counts of neighbours of the points.

All memory in addition to the input is linear in n. Every distance is computed from differences of
coordinates and never from inner products. So points far from the origin lose no precision.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.common import _validate
from algorithms.common._validate import FloatArray, IntArray

ROUTES = ("auto", "counts", "samples")

_FARTHEST = 1e150  # Largest coordinate for which squares of differences stay finite.
_TINY = 1e-280  # Sums of squares below this value have lost digits.
_ROUNDING = 1.0 + 1e-9  # Tolerance for the rounding of points on the sphere of radius R.
_BATCH = 2**14  # Number of pairs whose differences are in memory at once.
_SORTED = 2**20  # Number of samples that are sorted together.
_SAMPLE_COST = 3.0  # Measured time of a sampled pair, relative to a pair of `neighbour_counts`.


def cloud(data: ArrayLike, name: str = "data") -> FloatArray:
    """Return points ``[n, d]``, contiguous, whose squared distances are finite floats."""
    points = np.ascontiguousarray(_validate.floats(name, data, ndims=(2,)))
    largest = float(np.abs(points).max())
    if largest > _FARTHEST:
        raise ValueError(
            f"{name} must have coordinates of size at most {_FARTHEST:g}, got {largest:g}"
        )
    return points


def inside(points: FloatArray, max_radius: float) -> None:
    """Refuse points outside of the ball of radius `max_radius` around 0."""
    farthest = 0.0
    for start in range(0, len(points), _BATCH):
        farthest = max(farthest, float(norms(points[start : start + _BATCH]).max()))
    if farthest > max_radius * _ROUNDING:
        raise ValueError(
            f"data must lie in the ball of radius max_radius = {max_radius!r} around 0, "
            f"got a point of norm {farthest!r}"
        )


def point(name: str, value: ArrayLike, dimension: int) -> FloatArray:
    """Return one point ``[d]``."""
    array = _validate.floats(name, value, ndims=(1,))
    if array.size != dimension:
        raise ValueError(f"{name} must have {dimension} coordinates, got shape {array.shape}")
    if float(np.abs(array).max()) > _FARTHEST:
        raise ValueError(f"{name} must have coordinates of size at most {_FARTHEST:g}")
    return array


def route_of(
    name: str, n: int, size: int, n_samples: int, *, sample_cost: float = _SAMPLE_COST
) -> str:
    """Return the faster of "counts" and "samples", unless the caller has chosen a route.

    A sampled pair takes `sample_cost` times as long as a pair of the exact counts.
    """
    if name not in ROUTES:
        raise ValueError(f"route must be one of {', '.join(ROUTES)}, got {name!r}")
    if name != "auto":
        return name
    return "counts" if n <= sample_cost * size * n_samples else "samples"


def ceiling(product: float) -> int:
    """Return the ceiling of a product, or an integer at a relative distance of at most 1e-12."""
    nearest = round(product)
    return nearest if abs(product - nearest) <= 1e-12 * nearest else math.ceil(product)


def norms(vectors: FloatArray) -> FloatArray:
    """Return Euclidean norms over the last axis, to full precision down to the smallest float."""
    squares = np.asarray(np.einsum("...i,...i->...", vectors, vectors))
    lengths = np.asarray(np.sqrt(squares))
    if (small := squares < _TINY).any():
        large, largest = _magnified(vectors[small])
        lengths[small] = largest * np.sqrt(np.einsum("ij,ij->i", large, large))
    return lengths


def directed(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return vectors with unchanged directions, and the lengths of the returned vectors.

    Only the vector 0 has length 0. A nonzero vector divided by its length has norm 1. If the
    squares of a vector underflow (length near 1e-162), naive code returns a "unit" vector of the
    wrong length. With such vectors, the sensitivity of a noisy gradient has no bound.
    """
    squares = np.asarray(np.einsum("...i,...i->...", vectors, vectors))
    if (small := squares < _TINY).any():
        large, _ = _magnified(vectors[small])
        vectors = vectors.copy()
        vectors[small] = large
        squares[small] = np.einsum("ij,ij->i", large, large)
    return vectors, np.sqrt(squares)


def _magnified(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return vectors ``[k, d]`` divided by their largest coordinates, and these coordinates."""
    largest = np.abs(vectors).max(axis=1)
    whole = np.where(largest > 0, largest, 1.0)
    return vectors / whole[:, None], largest


def neighbour_counts(points: FloatArray, radii: FloatArray) -> IntArray:
    """Return the number of points ``[n, T]`` within radii[t] of point i, including point i.

    The running time is n**2 (d + T).
    """
    n, dimension = points.shape
    counts = np.empty((n, radii.size), dtype=np.int64)
    rows = max(1, _BATCH // n)
    for start in range(0, n, rows):
        block = points[start : start + rows]
        distances = np.empty((len(block), n))
        for first in range(0, n, _BATCH):  # splits a single row that has many points
            others = points[first : first + _BATCH]
            differences = (block[:, None, :] - others[None, :, :]).reshape(-1, dimension)
            distances[:, first : first + _BATCH] = norms(differences).reshape(len(block), -1)
        for t, radius in enumerate(radii):
            counts[start : start + rows, t] = np.count_nonzero(distances <= radius, axis=1)
    return counts


def sampled_hits(
    points: FloatArray, radius: float, n_samples: int, rng: np.random.Generator
) -> IntArray:
    """Return how many of `n_samples` uniform indices are neighbours of i, for each i ``[n]``."""
    n = len(points)
    rows = _rows(n_samples)
    hits = np.empty(n, dtype=np.int64)
    kind = np.int32 if n < 2**31 else np.int64
    for start in range(0, n, rows):
        stop = min(start + rows, n)
        samples = rng.integers(n, size=(stop - start, n_samples), dtype=kind)
        hits[start:stop] = _hits(points, start, samples, radius)
    return hits


def hits_of(points: FloatArray, samples: IntArray, radius: float) -> IntArray:
    """Return how many of the indices ``samples[i]`` are neighbours of i, for each i ``[n]``."""
    rows = _rows(samples.shape[1])
    parts = [
        _hits(points, start, samples[start : start + rows], radius)
        for start in range(0, len(points), rows)
    ]
    return np.concatenate(parts)


def binomial_hits(
    counts: IntArray, n_samples: int, size: int, rng: np.random.Generator
) -> IntArray:
    """Return `size` draws of `sampled_hits` from the exact counts ``[n]``, as ``[n, size]``.

    Given i, each sample is a neighbour with probability counts[i] / n, independently. Points with
    equal counts are drawn together, so that numpy sets up each binomial only once.
    """
    n = len(counts)
    hits = np.empty((n, size), dtype=np.int64)
    for count in np.unique(counts):
        equal = np.flatnonzero(counts == count)
        hits[equal] = rng.binomial(n_samples, count / n, size=(equal.size, size))
    return hits


def binomial_total(
    counts: IntArray, n_samples: int, size: int, rng: np.random.Generator
) -> IntArray:
    """Return sums over i of `binomial_hits` ``[size]``, with one binomial for each count."""
    n = len(counts)
    total = np.zeros(size, dtype=np.int64)
    for count, points in zip(*np.unique(counts, return_counts=True), strict=True):
        total += rng.binomial(points * n_samples, count / n, size=size)
    return total


def sample_table(data_size: int, samples: ArrayLike) -> IntArray:
    """Return the validated indices ``[n, k]`` of points."""
    table = _validate.integers("samples", samples, ndims=(2,), low=0, high=data_size - 1)
    if len(table) != data_size:
        raise ValueError(
            f"samples must have one row for each of the {data_size} points, got shape {table.shape}"
        )
    return table


def _rows(n_samples: int) -> int:
    """Return the number of points whose samples are processed together, a power of two."""
    return int(2 ** max(0, int(np.log2(_SORTED / n_samples)))) if n_samples < _SORTED else 1


def _hits(points: FloatArray, start: int, samples: NDArray[np.integer], radius: float) -> IntArray:
    """Count the samples ``[rows, k]`` that are neighbours of the points from index `start` on.

    The pairs are visited in the order of the sampled index. So the points are fetched in the order
    in which memory holds these points. Fetching points of a large array at uniform indices would
    miss every cache.
    """
    n_rows = len(samples)
    shift = max(1, int(n_rows - 1).bit_length())
    keys = samples.astype(np.int64) << shift
    keys |= np.arange(n_rows)[:, None]
    flat = keys.ravel()
    flat.sort()
    own = points[start : start + n_rows]
    mask = (1 << shift) - 1
    hits = np.zeros(n_rows, dtype=np.int64)
    for first in range(0, flat.size, _BATCH):
        batch = flat[first : first + _BATCH]
        rows = batch & mask
        differences = np.take(points, batch >> shift, axis=0)
        differences -= np.take(own, rows, axis=0)
        near = norms(differences) <= radius
        hits += np.bincount(rows[near], minlength=n_rows)
    return hits
