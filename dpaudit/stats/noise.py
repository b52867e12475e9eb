"""Final noise of known distribution, and the exact probability that an output lies in a region.

All probabilities keep their relative accuracy far into the tails, where auditing takes place. Every
tail probability is computed directly, never as one minus the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpaudit import _validate
from dpaudit.errors import ArgumentError

Floats: TypeAlias = NDArray[np.float64]

KINDS = ("gaussian", "laplace")

LARGEST_SCALE = 1e50
"""Scales lie between its inverse and it, so that squares of distances stay doubles."""

_THIN = 1e-4  # width of a slab, in scales, below which the difference of its tails would cancel
_FAR_BALL = 1e4
_UNREACHABLE = 40.0


@dataclass(frozen=True, eq=False)
class HalfSpace:
    """``{x : direction . x > threshold}``, where the direction has length 1."""

    direction: Floats
    threshold: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "direction", _unit(self.direction))
        _validate.finite(threshold=self.threshold)


@dataclass(frozen=True, eq=False)
class Slab:
    """``{x : low < direction . x <= high}``, or the complement of this set if `outside`."""

    direction: Floats
    low: float
    high: float
    outside: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "direction", _unit(self.direction))
        _validate.finite(low=self.low)
        if _validate.finite(high=self.high) <= self.low:
            raise ArgumentError(f"high must be a number > low={self.low!r}, got {self.high!r}")


@dataclass(frozen=True, eq=False)
class Ball:
    """``{x : |x - center| <= radius}`` (Euclidean), or the complement of this ball if `outside`."""

    center: Floats
    radius: float
    outside: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", _vector(center=self.center))
        _validate.positive(radius=self.radius)


@dataclass(frozen=True, eq=False)
class Box:
    """``{x : low_j < x_j <= high_j for all j}``, where ends may be infinite."""

    low: Floats
    high: Floats

    def __post_init__(self) -> None:
        low, high = np.array(self.low, dtype=float), np.array(self.high, dtype=float)
        if low.ndim != 1 or low.size == 0 or low.shape != high.shape:
            raise ArgumentError(
                "low and high must be nonempty one-dimensional arrays of equal length, got "
                f"shapes {low.shape} and {high.shape}"
            )
        if not (low < high).all():
            raise ArgumentError(f"high must exceed low in every coordinate, got {low} and {high}")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)


Region: TypeAlias = HalfSpace | Slab | Ball | Box


@dataclass(frozen=True)
class Noise:
    """Independent noise with the same scale on every coordinate.

    Parameters
    ----------
    kind : {"gaussian", "laplace"}
        Distribution of the noise.
    scale : float
        Standard deviation of Gaussian noise, or b in the Laplace density ``exp(-|x| / b) / (2 b)``.
        The scale lies between 1e-50 and 1e50. A scale of 0 is refused, because without noise
        nothing can be integrated out.

    Examples
    --------
    >>> noise = Noise("gaussian", 2.0)
    >>> noise.probability(HalfSpace([1.0], 4.0), [[0.0]]).round(6).tolist()  # two deviations out
    [0.02275]
    """

    kind: str
    scale: float

    def __post_init__(self) -> None:
        _validate.choice(KINDS, noise=self.kind)
        if isinstance(self.scale, (int, float)) and self.scale == 0:
            raise ArgumentError(
                "scale must be a finite number > 0, got 0. Audit the function as a sampled "
                "mechanism, because it has no final noise to integrate out"
            )
        object.__setattr__(self, "scale", _validate.positive(scale=self.scale))
        if not 1 / LARGEST_SCALE <= self.scale <= LARGEST_SCALE:
            raise ArgumentError(
                f"scale must be a number from {1 / LARGEST_SCALE:g} to {LARGEST_SCALE:g}, "
                f"got {self.scale!r}"
            )

    def __str__(self) -> str:
        return f"{self.kind} noise of scale {self.scale:g}"

    def sample(self, shape: int | tuple[int, ...], *, rng: np.random.Generator) -> Floats:
        """Return independent noise of the given shape."""
        if self.kind == "gaussian":
            return rng.normal(scale=self.scale, size=shape)
        return rng.laplace(scale=self.scale, size=shape)

    # --- one coordinate, elementwise over arrays ---

    def above(self, location: ArrayLike, threshold: ArrayLike) -> Floats:
        """Return P(location + noise > threshold)."""
        return self._tail((np.asarray(threshold, float) - np.asarray(location, float)) / self.scale)

    def between(self, location: ArrayLike, low: ArrayLike, high: ArrayLike) -> Floats:
        """Return P(low < location + noise <= high)."""
        a = (np.asarray(low, float) - np.asarray(location, float)) / self.scale
        b = (np.asarray(high, float) - np.asarray(location, float)) / self.scale
        # Reflect the slab so that its nearer end lies on the side of the upper tail.
        flip = b < -a
        a, b = np.where(flip, -b, a), np.where(flip, -a, b)
        if self.kind == "laplace":
            near = np.maximum(a, 0.0)
            with np.errstate(under="ignore"):
                beyond = -0.5 * np.exp(-near) * np.expm1(np.minimum(near - b, 0.0))
                return np.asarray(beyond - 0.5 * np.expm1(np.minimum(a, 0.0)))
        with np.errstate(under="ignore", invalid="ignore"):
            wide = np.where(a > 0, self._tail(a) - self._tail(b), special.ndtr(b) - special.ndtr(a))
            # For a thin slab, the difference loses accuracy. For such a slab, the density is
            # integrated.
            width, middle = b - a, a / 2 + b / 2
            thin = width * np.maximum(np.abs(middle), 1.0) < _THIN
            middle = np.where(thin, middle, 0.0)
            density = np.exp(-(middle**2) / 2) / math.sqrt(2 * math.pi)
            curved = 1 + (middle**2 - 1) * width**2 / 24
            return np.where(thin, density * np.where(thin, width * curved, 0.0), wide)

    def _tail(self, z: Floats) -> Floats:
        """Return P(noise / scale > z)."""
        with np.errstate(under="ignore"):
            if self.kind == "gaussian":
                return np.asarray(special.ndtr(-z))
            far = 0.5 * np.exp(-np.abs(z))
            return np.asarray(np.where(z > 0, far, 1.0 - far))

    # --- regions ---

    def probability(self, region: Region, centers: ArrayLike) -> Floats:
        """Return P(center + noise in region) for every centre.

        Parameters
        ----------
        region : HalfSpace, Slab, Ball or Box
            For Laplace noise, directions must be along an axis, and balls are refused. Other
            probabilities have no closed form.
        centers : array_like, shape [size, d]
            Finite centres.

        Returns
        -------
        ndarray, shape [size]
            The probabilities are exact up to rounding. The relative error is below about 1e-9 for
            probabilities down to 1e-300.
        """
        self._check(region)
        points = np.asarray(centers, dtype=float)
        d = _dimension(region)
        if points.ndim != 2 or points.shape[1] != d:
            raise ArgumentError(f"centers must be [size, {d}], got shape {points.shape}")
        if isinstance(region, Ball):
            return self._ball(region, np.linalg.norm(points - region.center, axis=1))
        if isinstance(region, Box):
            product = np.ones(len(points))
            for j in np.flatnonzero(np.isfinite(region.low) | np.isfinite(region.high)):
                product *= self.between(points[:, j], region.low[j], region.high[j])
            return product
        return self._along(region, points @ region.direction)

    def largest(self, region: Region, center: ArrayLike, radius: float) -> float:
        """Return the supremum of :meth:`probability` over all centres in a Euclidean ball.

        For half-spaces, slabs and balls, the supremum is exact, because the extreme centre is known
        by monotonicity. For boxes, the function returns the product of the suprema of the
        coordinates, which is an upper bound.

        Parameters
        ----------
        region : HalfSpace, Slab, Ball or Box
            The region, as in :meth:`probability`.
        center : array_like, shape [d]
            Centre of the ball.
        radius : float
            Radius of the ball, >= 0.
        """
        self._check(region)
        middle = _vector(center=center)
        radius = _validate.nonnegative(radius=radius)
        if len(middle) != _dimension(region):
            raise ArgumentError(
                f"center must have {_dimension(region)} coordinates, got {len(middle)}"
            )
        if isinstance(region, Ball):
            distance = float(np.linalg.norm(middle - region.center))
            at = distance + radius if region.outside else max(distance - radius, 0.0)
            return float(self._ball(region, np.array([at]))[0])
        if isinstance(region, Box):
            best = np.clip(_middle(region.low, region.high), middle - radius, middle + radius)
            return float(np.prod(self.between(best, region.low, region.high)))
        at = float(middle @ region.direction)
        ends = np.array([at - radius, at + radius])
        if isinstance(region, Slab) and not region.outside:
            ends = np.clip([(region.low + region.high) / 2], *ends)
        return float(self._along(region, ends).max())

    def _along(self, region: HalfSpace | Slab, location: Floats) -> Floats:
        if isinstance(region, HalfSpace):
            return self.above(location, region.threshold)
        if region.outside:
            return self.above(location, region.high) + self.above(-location, -region.low)
        return self.between(location, region.low, region.high)

    def _ball(self, region: Ball, distance: Floats) -> Floats:
        from scipy.stats import ncx2  # slow to import, and needed only by a few audits

        # scipy.special.chndtr has no upper tail. The function used here is from Boost. This
        # function is accurate in both tails.
        probability = ncx2.sf if region.outside else ncx2.cdf
        reach = region.radius / self.scale
        if reach > _FAR_BALL:
            raise ArgumentError(
                f"radius must be at most {_FAR_BALL:g} noise scales, got {reach:g} noise "
                "scales. Use a half-space, which is as good at this distance"
            )
        away = distance / self.scale
        # Beyond this distance, the probability is too small for a double in any dimension.
        beyond = away > reach + _UNREACHABLE
        with np.errstate(under="ignore"):
            value = probability(reach**2, len(region.center), np.where(beyond, 0.0, away) ** 2)
        value = np.where(beyond, float(region.outside), np.asarray(value, dtype=float))
        return np.clip(value, 0.0, 1.0)

    def _check(self, region: Any) -> None:
        if not isinstance(region, Region):
            raise TypeError(f"region must be a HalfSpace, Slab, Ball or Box, got {region!r}")
        if self.kind == "gaussian" or isinstance(region, Box):
            return
        if isinstance(region, Ball) or np.count_nonzero(region.direction) != 1:
            raise ArgumentError(
                "region must be a box, or a half-space or slab along an axis, for Laplace "
                f"noise, got {region!r}. Other regions have no closed form"
            )


def _dimension(region: Region) -> int:
    if isinstance(region, Ball):
        return len(region.center)
    return len(region.low) if isinstance(region, Box) else len(region.direction)


def _middle(low: Floats, high: Floats) -> Floats:
    """Return the most favourable centre in every coordinate.

    A coordinate is infinite if one of its two ends is infinite.
    """
    with np.errstate(invalid="ignore"):
        middle = low / 2 + high / 2
    return np.where(np.isnan(middle), 0.0, middle)


def _vector(**named: Any) -> Floats:
    ((name, value),) = named.items()
    vector = np.array(value, dtype=float, ndmin=1)
    if vector.ndim != 1 or vector.size == 0 or not np.isfinite(vector).all():
        raise ArgumentError(
            f"{name} must be a nonempty one-dimensional array of finite numbers, got {value!r}"
        )
    return vector


def _unit(direction: Any) -> Floats:
    vector = _vector(direction=direction)
    length = float(np.linalg.norm(vector))
    if abs(length - 1) > 1e-9:
        raise ArgumentError(f"direction must have length 1, got a direction of length {length!r}")
    return vector / length
