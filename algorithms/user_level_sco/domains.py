"""Domains of the losses (balls and boxes), and the projection onto the domains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.common import _validate
from algorithms.common._validate import FloatArray

NORMS = ("l2", "linf")


def norm_name(norm: str) -> str:
    """Return the norm if `NORMS` contains the norm."""
    if norm not in NORMS:
        raise ValueError(f"norm must be one of {', '.join(NORMS)}, got {norm!r}")
    return norm


def lengths(vectors: FloatArray, norm: str) -> FloatArray:
    """Return the norms of the rows ``[..., d]`` of an array."""
    if norm == "linf":
        return np.asarray(np.abs(vectors).max(axis=-1))
    return np.asarray(np.sqrt(np.einsum("...i,...i->...", vectors, vectors)))


@dataclass(frozen=True)
class Ball:
    """Euclidean ball of a given radius around 0.

    Parameters
    ----------
    radius : float
        D, positive.
    """

    radius: float

    def __post_init__(self) -> None:
        _validate.positive("radius", self.radius)

    def project(self, points: FloatArray) -> FloatArray:
        """Return the nearest points ``[..., d]`` of the domain, in Euclidean norm."""
        sizes = lengths(points, "l2")
        outside = sizes > self.radius
        if not outside.any():
            return points
        shrink = np.divide(self.radius, sizes, out=np.ones_like(sizes), where=outside)
        return np.asarray(shrink[..., None] * points)

    def farthest(self, points: FloatArray, norm: str) -> FloatArray:
        """Return the largest distance from each of the points ``[..., d]`` to the domain."""
        return lengths(points, norm) + self.radius


@dataclass(frozen=True)
class Box:
    """Ball of a given radius around 0 in l-infinity norm.

    Parameters
    ----------
    radius : float
        D, positive.
    """

    radius: float

    def __post_init__(self) -> None:
        _validate.positive("radius", self.radius)

    def project(self, points: FloatArray) -> FloatArray:
        """Return the nearest points ``[..., d]`` of the domain, in Euclidean norm."""
        return np.clip(points, -self.radius, self.radius)

    def farthest(self, points: FloatArray, norm: str) -> FloatArray:
        """Return the largest distance from each of the points ``[..., d]`` to the domain."""
        return lengths(np.abs(points) + self.radius, norm)


Domain = Ball | Box
