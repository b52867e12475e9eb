"""Rules that limit how much one user moves the mean of a batch of gradients.

`baselines.user_level_dp_sgd` adds Gaussian noise to such a mean at every step. Table 1 of
user_level_sco v2 compares the algorithm of the paper with SGD on private means:

- `ClippedMean` clips every user's mean gradient, as in DP-SGD.

- `WinsorizedMean` clips the coordinates to intervals around private medians (Levy et al. 2021).

- `ConcentratedMean` gives less weight to users who are far from most others, after a private test
  (Asi & Liu 2024, Lowy et al. 2024).

The mean of Bassily & Sun (2023) is missing, because its pseudocode was not at hand. The algorithm
of Ghazi et al. (2023) is missing, because its time is super-polynomial.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import hadamard
from scipy.spatial.distance import cdist

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.user_level_sco.domains import lengths

_ROUNDING = 1e-9  # relative error that is allowed in a squared distance


@dataclass(frozen=True)
class Selection:
    """What a rule reveals next to the noisy mean of one batch.

    Parameters
    ----------
    calls : int
        Number of adaptive epsilon0-DP answers.
    epsilon0 : float
        Parameter of one answer.
    failure : float
        Probability that the noisy mean is released, although one user moves it too far.
    """

    calls: int = 0
    epsilon0: float = 0.0
    failure: float = 0.0


class PrivateMean(Protocol):
    """A rule for the mean of a batch."""

    def selection(self, dimension: int) -> Selection:
        """Return what the rule reveals next to the noisy mean."""
        ...

    def sensitivity(self, batch_size: int, dimension: int) -> float:
        """Return the largest distance by which one user moves the mean, in Euclidean norm."""
        ...

    def means(self, gradients: FloatArray, size: int, *, rng: np.random.Generator) -> FloatArray:
        """Return means ``[1 or size, d]`` without their noise, for gradients ``[1 or size, B, d]``.

        Rows of NaN mean that the rule releases no mean.
        """
        ...


@dataclass(frozen=True)
class ClippedMean:
    """Clip every gradient to a ball around 0 (Abadi et al. 2016).

    Parameters
    ----------
    clip_norm : float
        Radius C of the ball, positive. One user moves the mean by at most 2 C / B.
    """

    clip_norm: float

    def __post_init__(self) -> None:
        _validate.positive("clip_norm", self.clip_norm)

    def selection(self, dimension: int) -> Selection:
        """Return that nothing else is revealed."""
        return Selection()

    def sensitivity(self, batch_size: int, dimension: int) -> float:
        """Return 2 C / B."""
        return 2 * self.clip_norm / batch_size

    def means(self, gradients: FloatArray, size: int, *, rng: np.random.Generator) -> FloatArray:
        """Return the means of the clipped gradients."""
        shrink = self.clip_norm / np.maximum(lengths(gradients, "l2"), self.clip_norm)
        return np.asarray(np.einsum("sb,sbd->sd", shrink, gradients) / gradients.shape[1])


@dataclass(frozen=True)
class WinsorizedMean:
    """Clip rotated coordinates to intervals around private medians (Levy et al. 2021).

    A random rotation spreads the distance of a gradient from the mean over P coordinates, where P
    is the smallest power of two that is at least d. So each coordinate is within w of the mean's
    coordinate. Intervals of width w divide [-G, G]. In every coordinate, the exponential
    mechanism chooses an interval with about as many users below it as above it. Then the coordinate
    is clipped to the interval of width 5 w with the same midpoint. The mean is rotated back.

    **Guarantee** The choice of an interval is epsilon0-DP, because one user changes the larger
    number of users on a side by at most 1. Given the intervals, one user moves a coordinate of the
    mean by at most 5 w / B, and so the mean by at most 5 w sqrt(P) / B.

    **Requires** nothing for privacy. If all coordinates are within w of a common point, the median
    is within w of it, and the midpoint of its interval within w / 2 of the median. Then nothing is
    clipped.

    **Departs** from the winsorized mean of Levy et al. (1) The mean gets Gaussian noise and not
    Laplace noise, and the composition over coordinates is exact. (2) The rotation is a Hadamard
    matrix with random signs, and P is a power of two. (3) w is spread sqrt(2 log(2 P B / miss) /
    P), which follows from Hoeffding's inequality for the signs, and is at most `spread`. (4) The
    widths w and 5 w are ours, so that nothing is clipped as above.

    **Symbols** G = `bound`, tau = `spread`, w = `width`.

    Parameters
    ----------
    spread : float
        Assumed distance of a gradient from the mean, positive.
    bound : float
        Assumed length of a gradient, positive.
    epsilon0 : float
        Parameter of the choice in one coordinate, positive.
    miss : float, default 0.01
        Probability that a coordinate of a gradient within `spread` is farther than w. In (0, 1).
    """

    spread: float
    bound: float
    epsilon0: float
    miss: float = 0.01

    def __post_init__(self) -> None:
        for name in ("spread", "bound", "epsilon0"):
            _validate.positive(name, getattr(self, name))
        _validate.probability("miss", self.miss)

    def width(self, batch_size: int, dimension: int) -> float:
        """Return w, the width of an interval."""
        size = _rotated(dimension)
        share = 2 * math.log(2 * size * batch_size / self.miss) / size
        return self.spread * min(1.0, math.sqrt(share))

    def selection(self, dimension: int) -> Selection:
        """Return one choice for each rotated coordinate."""
        return Selection(_rotated(dimension), self.epsilon0)

    def sensitivity(self, batch_size: int, dimension: int) -> float:
        """Return 5 w sqrt(P) / B."""
        width = self.width(batch_size, dimension)
        return 5 * width * math.sqrt(_rotated(dimension)) / batch_size

    def means(self, gradients: FloatArray, size: int, *, rng: np.random.Generator) -> FloatArray:
        """Return the means of the clipped coordinates, one for each draw of signs and intervals."""
        batch, d = gradients.shape[1:]
        width, padded = self.width(batch, d), _rotated(d)
        rotation = hadamard(padded, dtype=np.float64) / math.sqrt(padded)
        signs = rng.choice((-1.0, 1.0), size=(size, 1, padded))
        rotated = (gradients * signs[:, :, :d]) @ rotation[:d]
        n_intervals = max(1, math.ceil(2 * self.bound / width))
        places = np.clip((rotated + self.bound) // width, 0, n_intervals - 1).astype(np.int64)
        rows = np.arange(size * padded).reshape(size, 1, padded) * n_intervals
        counts = np.bincount((places + rows).ravel(), minlength=size * padded * n_intervals)
        counts = counts.reshape(size, padded, n_intervals)
        up_to = counts.cumsum(axis=2)
        worse = np.maximum(up_to - counts, batch - up_to)  # users below, users above
        noise = rng.gumbel(size=worse.shape)
        chosen = (noise - self.epsilon0 / 2 * worse).argmax(axis=2)[:, None]
        middle = -self.bound + (chosen + 0.5) * width
        clipped = np.clip(rotated, middle - 2.5 * width, middle + 2.5 * width).mean(axis=1)
        return np.asarray((clipped @ rotation.T)[:, :d] * signs[:, 0, :d])


@dataclass(frozen=True)
class ConcentratedMean:
    """Weight gradients by the number of their neighbours, if most of them are concentrated.

    Let f be the number of gradients within 2 tau of a gradient, which counts itself. Its weight p
    is (f - B/2 - 1) / (B/2 - 1), or 0 if this number is negative. The mean is the sum of p q
    divided by the total weight N. It is released if N plus Laplace noise of scale c / epsilon0
    reaches the threshold `share` times B. In this scale, c is 3 + 2 / (B - 2).

    **Guarantee** The test is epsilon0-DP. One user changes the f of each other user by at most 1,
    so N changes by at most (B - 1) 2 / (B - 2) + 1 = c. Let L be the threshold less (c / epsilon0)
    log(1 / (2 `failure`)). If N < L for two neighbours, each passes the test with probability at
    most `failure`. Otherwise one user moves the mean by at most 4 (c + 1) tau / L.

    Proof of the last sentence. Take two gradients that have positive weights, on the same or on
    different neighbours. Both have more than B / 2 neighbours among the B - 1 users in common. So
    they share one of these, and are at most 4 tau apart. So they are all within 4 tau of the mean
    mu. Let N' be at least N. Then mu' - mu is the sum of p'(q' - mu) - p (q - mu), divided by N'.
    The weights of the users in common change by at most c - 1 in total. The user that differs has
    two weights of at most 1.

    **Requires** nothing for privacy. The mean is the plain mean if all gradients are within
    `spread` of a common point and the test passes.

    **Departs** from the outlier removal of Asi & Liu and of Lowy et al. (1) A gradient has a weight
    between 0 and 1. They keep it at random, with a probability that depends on f. So here the bound
    on the moved mean always holds, and there only with high probability. (2) The weight reaches 1
    at f = B, and not at 2 B / 3, which makes the bound smaller. (3) A batch that fails the test is
    skipped, and the next one is tested again. They stop.

    **Symbols** tau = `spread`, L = `least`.

    Parameters
    ----------
    spread : float
        Assumed distance of a gradient from the mean, positive.
    epsilon0 : float
        Parameter of the test, positive.
    failure : float
        In (0, 1/2).
    share : float, default 0.9
        Share of B that the total weight must reach, in (0, 1).
    """

    spread: float
    epsilon0: float
    failure: float
    share: float = 0.9

    def __post_init__(self) -> None:
        _validate.positive("spread", self.spread)
        _validate.positive("epsilon0", self.epsilon0)
        if not _validate.probability("failure", self.failure) < 0.5:
            raise ValueError(f"failure must be less than 1/2, got {self.failure!r}")
        _validate.probability("share", self.share)

    def least(self, batch_size: int) -> float:
        """Return the total weight L, below which the test passes with probability `failure`.

        Raises
        ------
        ValueError
            If L is at most 4. Then the weights of a neighbour could all be 0.
        """
        found = -math.inf
        if batch_size > 2:
            scale = _weight_change(batch_size) / self.epsilon0
            found = self.share * batch_size + scale * math.log(2 * self.failure)
        if found <= 4:
            raise ValueError(
                f"batch_size must be larger for a test with epsilon0 = {self.epsilon0!r} and "
                f"failure = {self.failure!r}, got {batch_size!r}"
            )
        return found

    def selection(self, dimension: int) -> Selection:
        """Return the test of the batch."""
        return Selection(1, self.epsilon0, self.failure)

    def sensitivity(self, batch_size: int, dimension: int) -> float:
        """Return 4 (c + 1) tau / L."""
        least = self.least(batch_size)
        return 4 * self.spread * (1 + _ROUNDING) * (_weight_change(batch_size) + 1) / least

    def means(self, gradients: FloatArray, size: int, *, rng: np.random.Generator) -> FloatArray:
        """Return the weighted means, and NaN for draws that fail the test."""
        batch = gradients.shape[1]
        self.least(batch)
        close = np.stack([_neighbour_counts(q, 2 * self.spread) for q in gradients])
        weights = np.maximum(0.0, (close - batch / 2 - 1) / (batch / 2 - 1))
        total = weights.sum(axis=1, keepdims=True)
        found = np.einsum("sb,sbd->sd", weights, gradients) / np.maximum(total, 1e-300)
        noise = rng.laplace(scale=_weight_change(batch) / self.epsilon0, size=(size, 1))
        return np.where(total + noise >= self.share * batch, found, np.nan)


def _weight_change(batch_size: int) -> float:
    """Return c, by which one user changes the total weight of a batch."""
    return 3 + 2 / (batch_size - 2)


def _rotated(dimension: int) -> int:
    """Return P, the smallest power of two that is at least the dimension."""
    return 1 << (dimension - 1).bit_length()


def _neighbour_counts(points: FloatArray, radius: float) -> FloatArray:
    """Return how many of the points ``[B, d]`` are within the radius of each point."""
    squares = np.einsum("bd,bd->b", points, points)
    error = 4 * np.finfo(np.float64).eps * points.shape[1] * float(squares.max())
    if error > _ROUNDING * radius**2:  # differences of large squares would be wrong
        return np.asarray((cdist(points, points) <= radius).sum(axis=1), dtype=np.float64)
    apart = squares[:, None] + squares - 2 * points @ points.T
    return np.asarray((apart <= radius**2).sum(axis=1), dtype=np.float64)
