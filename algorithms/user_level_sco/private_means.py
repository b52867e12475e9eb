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
_HUGE = 1e100  # coordinates of gradients are clipped to this number, so that no sum overflows


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

    Random signs and a Hadamard matrix rotate the gradients. This spreads the distance of a gradient
    from the mean over P coordinates, where P is the smallest power of two that is at least d. With
    probability 1 - `miss`, all coordinates are within w of the mean's coordinates. Intervals of
    width w divide [-G, G]. In every coordinate, the exponential mechanism chooses an interval with
    about as many users below it as above it. Then the coordinate is clipped to the interval of
    width 5 w with the same midpoint. The mean is rotated back.

    **Guarantee** The choice of an interval is epsilon0-DP. Replacing one user changes the number of
    users below an interval by at most 1, and the number above it too. So the larger of the two
    changes by at most 1. Given the intervals, one user moves a coordinate of the mean by at most 5
    w / B, and so the mean by at most 5 w sqrt(P) / B.

    **Requires** nothing for privacy. If all coordinates are within w of a common point, an interval
    that holds one of them has its midpoint within 3 w / 2 of this point. Then nothing is clipped.

    **Departs** from the winsorized mean of Levy et al. (1) The mean gets Gaussian noise and not
    Laplace noise. (2) P is a power of two, and gradients are padded with zeros. (3) w is spread
    sqrt(2 log(2 P B / miss) / P), which follows from Hoeffding's inequality for the signs, and is
    at most `spread`. The widths w and 5 w are ours. (4) The account takes the choices for arbitrary
    epsilon0-DP answers. A tighter account for the exponential mechanism would allow an epsilon0
    about 1.7 times as large.

    **Symbols** G = `bound`, tau = `spread`, w = `width`.

    Parameters
    ----------
    spread : float
        Assumed largest distance of a gradient from the mean, positive.
    bound : float
        Assumed largest length of a gradient, positive.
    epsilon0 : float
        Parameter of the choice in one coordinate, positive.
    miss : float, default 0.01
        Bound on the probability that any coordinate of any gradient is farther than w from the
        mean's, if all gradients are within `spread` of the mean. In (0, 1).
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
        within = np.clip(gradients, -_HUGE, _HUGE)
        rotated = (within * signs[:, :, :d]) @ rotation[:d]
        rotated = np.clip(rotated, -self.bound - 3 * width, self.bound + 3 * width)
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
    log(1 / (2 `failure`)). If N < L on both of two neighbouring batches, each passes the test with
    probability at most `failure`. Otherwise one user moves the mean by at most 4 (c + 1) tau / L.

    Proof of the last sentence. Let N' be at least N. Then N' >= L > 4 >= c for B >= 4, so N is
    positive too. (For B = 3, L is below 4.) Take two gradients that have positive weights, on the
    same or on different batches. Both have more than B / 2 neighbours among the B - 1 users in
    common. So they share one of these, and are at most 4 tau apart. So they are all within 4 tau of
    the mean mu. Then mu' - mu is the sum of p'(q' - mu) - p (q - mu), divided by N'. The weights of
    the users in common change by at most c - 1 in total. The user that differs contributes its old
    and its new term, each with a weight of at most 1.

    The bound is not tight. The largest move that we found is .21 times the bound.

    **Requires** nothing for privacy. The mean is the plain mean if all gradients are within
    `spread` of a common point and the test passes.

    **Departs** from the outlier removal of Asi & Liu and of Lowy et al. (1) A gradient has a weight
    between 0 and 1. They keep it at random, with a probability that depends on f. Our bound on the
    moved mean always holds. Theirs holds with high probability. (2) The weight grows from f = B/2 +
    1 to B, and not from B/2 to 2 B / 3. This makes the bound smaller. (3) Every batch tests its
    total weight with noise of its own. They test the number of close pairs, by AboveThreshold over
    all batches. (4) A batch that fails is skipped, and the next one is tested again. They stop.

    **Symbols** tau = `spread`, L = `least`.

    Parameters
    ----------
    spread : float
        Assumed largest distance of a gradient from the mean, positive.
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

    def weights(self, gradients: FloatArray) -> FloatArray:
        """Return the weights ``[B]`` of gradients ``[B, d]``."""
        half = len(gradients) / 2
        close = _neighbour_counts(gradients, 2 * self.spread)
        return np.maximum(0.0, (close - half - 1) / (half - 1))

    def means(self, gradients: FloatArray, size: int, *, rng: np.random.Generator) -> FloatArray:
        """Return the weighted means, and NaN for draws that fail the test."""
        batch = gradients.shape[1]
        self.least(batch)
        weights = np.stack([self.weights(q) for q in gradients])
        total = weights.sum(axis=1, keepdims=True)
        found = np.einsum("sb,sbd->sd", weights / np.maximum(total, 1e-300), gradients)
        noise = rng.laplace(scale=_weight_change(batch) / self.epsilon0, size=(size, 1))
        return np.where(total + noise >= self.share * batch, found, np.nan)


def _weight_change(batch_size: int) -> float:
    """Return c, by which one user changes the total weight of a batch."""
    return 3 + 2 / (batch_size - 2)


def _rotated(dimension: int) -> int:
    """Return P, the smallest power of two that is at least the dimension."""
    return 1 << (dimension - 1).bit_length()


def _neighbour_counts(points: FloatArray, radius: float) -> FloatArray:
    """Return how many of the points ``[B, d]`` are within the radius of each point.

    Whether two points are neighbours must not depend on a third point. So a pair with a long point
    uses exact differences, and each other pair uses its inner product.
    """
    with np.errstate(over="ignore"):
        squares = np.einsum("bd,bd->b", points, points)
    error = 8 * np.finfo(np.float64).eps * points.shape[1] * squares
    long = error > _ROUNDING * radius**2
    short = np.where(long[:, None], 0.0, points)
    squares = np.where(long, 0.0, squares)
    near = squares[:, None] + squares - 2 * short @ short.T <= radius**2
    if long.any():
        near[long] = cdist(points[long], points) <= radius
        near[:, long] = near[long].T
    return np.asarray(near.sum(axis=1), dtype=np.float64)
