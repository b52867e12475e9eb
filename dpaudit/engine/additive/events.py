"""Events whose probability, given the centre, needs no noise draws or only a few."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpaudit.mechanisms import slack
from dpaudit.stats import Ball, Box, HalfSpace, Noise, Region, Slab

Floats = NDArray[np.float64]
BallOrNone = tuple[Floats, float] | None
SIDES = ("left", "right")

_KEPT = 3  # Number of arrays that are kept: left, right, and right with separate noise.
_SCORE_CELLS = 2**17  # Number of cells of one block, which stays in the cache.
_ROUNDINGS = 64  # Roundings in the ratio of one coordinate; this bound is generous.
_WIDE = 1e12
"""Spread of centres, in squared noise scales, from which differences are taken before squaring."""

_NAMED_COORDINATES = 3
_NAMED_SIDES = 4


class IntegratedEvent(Protocol):
    """A set of outputs, given by the probability that a centre leads to an output in the set."""

    def values(
        self, noise: Noise, centers: Floats, auxiliary: Floats, *, rounded: float = 0.0
    ) -> Floats:
        """Return the probability of the event given each centre, ``[size]`` for ``[size, d]``.

        The value is exact, or it is an average over the auxiliary noise ``[k, size, d]``. The
        expectation of such an average is the exact probability. If rounding leaves open whether an
        output is in the event, the output counts as inside for `rounded` = 1 and as outside for
        `rounded` = -1. Therefore no bound depends on the rounding of a sum of doubles.
        """

    def largest(self, noise: Noise, ball: tuple[Floats, float] | None) -> float:
        """Return an upper bound of the values of all centres in the ball.

        Without a ball, return 1.
        """

    def axis(self, centers: Floats) -> Floats:
        """Return the number along which centres are shown."""

    def inside(self, along: Floats) -> NDArray[np.bool_]:
        """Return whether outputs with these numbers are in the event."""

    @property
    def label(self) -> str:
        """Name of the axis."""

    @property
    def words(self) -> str:
        """The event in words."""


@dataclass(frozen=True, eq=False)
class RegionEvent:
    """A region of closed-form probability.

    Parameters
    ----------
    region : HalfSpace, Slab, Ball or Box
        The region of outputs.
    place : str
        Quantity along or around which the region is measured, such as "coordinate 0".
    """

    region: Region
    place: str

    def values(
        self, noise: Noise, centers: Floats, auxiliary: Floats, *, rounded: float = 0.0
    ) -> Floats:
        """Return exact probabilities."""
        return noise.probability(self.region, centers)

    def largest(self, noise: Noise, ball: tuple[Floats, float] | None) -> float:
        """Return the supremum over the ball.

        For boxes, return an upper bound of the supremum.
        """
        if ball is None:
            return 1.0
        # A centre may lie outside the ball by this distance without being refused. The distance
        # also allows for rounding.
        middle, radius = ball
        radius += slack(middle, radius)
        return min(noise.largest(self.region, middle, radius) * (1 + 1e-7), 1.0)

    def axis(self, centers: Floats) -> Floats:
        """Return the projection, the distance, or the first coordinate that the box limits."""
        if isinstance(self.region, Ball):
            return np.asarray(np.linalg.norm(centers - self.region.center, axis=1))
        if isinstance(self.region, Box):
            return centers[:, self._sides()[0]]
        return np.asarray(centers @ self.region.direction)

    def inside(self, along: Floats) -> NDArray[np.bool_]:
        """Compare the numbers with the ends of the region."""
        region = self.region
        if isinstance(region, HalfSpace):
            return np.asarray(along > region.threshold)
        if isinstance(region, Ball):
            return np.asarray((along <= region.radius) != region.outside)
        if isinstance(region, Slab):
            return np.asarray(((along > region.low) & (along <= region.high)) != region.outside)
        j = self._sides()[0]
        return np.asarray((along > region.low[j]) & (along <= region.high[j]))

    def _sides(self) -> list[int]:
        assert isinstance(self.region, Box)
        limited = np.isfinite(self.region.low) | np.isfinite(self.region.high)
        return [int(j) for j in np.flatnonzero(limited)] or [0]

    @property
    def label(self) -> str:
        """Name of the axis."""
        if isinstance(self.region, Box):
            return f"coordinate {self._sides()[0]}"
        return self.place

    @property
    def words(self) -> str:
        """Description of the event, such as "coordinate 0 + noise > 4.31"."""
        region = self.region
        if isinstance(region, HalfSpace):
            return f"{self.place} + noise > {region.threshold:.3g}"
        if isinstance(region, Slab):
            where = "outside" if region.outside else "in"
            return f"{self.place} + noise {where} ({region.low:.3g}, {region.high:.3g}]"
        if isinstance(region, Ball):
            return f"{self.place} + noise {'>' if region.outside else '<='} {region.radius:.3g}"
        sides = [
            f"coordinate {j} + noise in ({region.low[j]:.3g}, {region.high[j]:.3g}]"
            for j in self._sides()[:_NAMED_SIDES]
        ]
        more = len(self._sides()) - len(sides)
        return " and ".join(sides) + (f" and {more} more" if more else "")


class LikelihoodRatio:
    """Log-likelihood ratio of two mixtures that are learnt from exploration centres.

    Parameters
    ----------
    noise : Noise
        Noise of the mixture components.
    left, right : ndarray, shape [m, d]
        Centres of the mixture components.
    """

    def __init__(self, noise: Noise, left: Floats, right: Floats) -> None:
        self.noise, self.left, self.right = noise, left, right
        self._kept: list[tuple[Floats, Floats, Floats, Floats]] = []

    def __call__(self, points: Floats) -> tuple[Floats, Floats]:
        """Return left over right at points ``[size, d]``, and a bound of the rounding error.

        For Laplace noise, the ratio is constant over whole regions. For Gaussian noise, the ratio
        is also constant between clusters of centres. If an event has its threshold at such a
        constant, the last bits of a sum of doubles decide the event. These bits do not come from
        the mechanism.

        Returns
        -------
        ratio, room : ndarray, shape [size]
        """
        d = points.shape[1]
        cells = max(len(self.left), len(self.right)) * (d if self.noise.kind == "laplace" else 1)
        step = max(_SCORE_CELLS // cells, 1)
        parts = [points[i : i + step] for i in range(0, len(points), step)]
        found = [
            [_log_mixture(self.noise, mixture, x) for mixture in (self.left, self.right)]
            for x in parts
        ]
        ratio = np.concatenate([left - right for (left, _), (right, _) in found])
        return ratio, np.concatenate([left + right for (_, left), (_, right) in found])

    def scores(self, centers: Floats, auxiliary: Floats) -> tuple[Floats, Floats]:
        """Return and cache the ratio and its tolerance at ``centers + auxiliary``, ``[k, size]``.

        The cache helps because several events use the same ratio, alternately for both sides.
        """
        for kept in self._kept:
            if kept[0] is centers and kept[1] is auxiliary:
                return kept[2], kept[3]
        found = [self(centers + draw) for draw in auxiliary]
        ratio, tolerance = (np.array(part) for part in zip(*found, strict=True))
        self._kept = [*self._kept[1 - _KEPT :], (centers, auxiliary, ratio, tolerance)]
        return ratio, tolerance


@dataclass(frozen=True, eq=False)
class RatioEvent:
    """The event ``{sign * log-likelihood ratio > threshold}``.

    The probability of the event has no closed form, so it is averaged over a few auxiliary noise
    vectors. The i-th left centre and the i-th right centre get the *same* vectors. So the two
    values of a pair depend on each other. The paired bet allows this dependence. The shared noise
    cancels in the difference of the values. The pairs for different i stay independent and
    identically distributed. If two events each guess one side, the right centres get separate noise
    (see :meth:`Candidate.pairs`).

    Parameters
    ----------
    ratio : LikelihoodRatio
        The ratio of left to right.
    sign : float
        1 for left over right, or -1 for right over left.
    threshold : float
        Threshold of the ratio.
    """

    ratio: LikelihoodRatio = field(repr=False)
    sign: float
    threshold: float

    def values(
        self, noise: Noise, centers: Floats, auxiliary: Floats, *, rounded: float = 0.0
    ) -> Floats:
        """Return the share of auxiliary noise vectors that lead into the event."""
        ratio, tolerance = self.ratio.scores(centers, auxiliary)
        scores = self.sign * ratio + rounded * tolerance
        return np.asarray((scores > self.threshold).mean(axis=0))

    def largest(self, noise: Noise, ball: tuple[Floats, float] | None) -> float:
        """Return 1, because a share of a few draws may be 1."""
        return 1.0

    def axis(self, centers: Floats) -> Floats:
        """Return how much nearer the centre is to one mixture's mean than to the other's."""
        to_left, to_right = (
            np.linalg.norm(centers - mixture.mean(axis=0), axis=1)
            for mixture in (self.ratio.left, self.ratio.right)
        )
        return np.asarray(self.sign * (to_right - to_left))

    def inside(self, along: Floats) -> NDArray[np.bool_]:
        """Return whether the centre is nearer to the mean of the mixture that the event favours.

        This only serves a picture.
        """
        return np.asarray(along > 0)

    @property
    def label(self) -> str:
        """Name of the axis."""
        near, far = ("left", "right") if self.sign > 0 else ("right", "left")
        return f"how much nearer to the {near} than to the {far} mean"

    @property
    def words(self) -> str:
        """The event in words."""
        against = "left against right" if self.sign > 0 else "right against left"
        return (
            f"log-likelihood ratio ({against}, of mixtures learnt from {len(self.ratio.left)} "
            f"and {len(self.ratio.right)} centres) > {self.threshold:.3g}"
        )


@dataclass(frozen=True, eq=False)
class Candidate:
    """An event that is assumed likelier on one side; or two events, one for each side.

    Parameters
    ----------
    event : IntegratedEvent
        Event that is assumed to be likelier on the side `likelier`.
    likelier : str
        "left" or "right".
    other : IntegratedEvent, optional
        Event that is assumed to be likelier on the other side, if there are two events. If there
        are two events, `event` guesses one side, and `other` guesses the other side. The two events
        may overlap.
    """

    event: IntegratedEvent
    likelier: str
    other: IntegratedEvent | None = None

    @property
    def events(self) -> tuple[IntegratedEvent, ...]:
        """The one event, or both events."""
        return (self.event,) if self.other is None else (self.event, self.other)

    @property
    def words(self) -> str:
        """The event or the guess in words."""
        if self.other is None:
            return self.event.words
        other = SIDES[SIDES[0] == self.likelier]
        return f"guess {self.likelier} if {self.event.words}, {other} if {self.other.words}"

    def largest(self, noise: Noise, balls: dict[str, BallOrNone]) -> float:
        """Return an upper bound of the values on the side where they should be small."""
        sides = SIDES if self.likelier == "left" else SIDES[::-1]
        ends = [
            event.largest(noise, balls[side])
            for event, side in zip(self.events, sides[::-1], strict=False)
        ]
        return max(*ends, 1e-300)

    def pairs(
        self, value: Callable[[IntegratedEvent, str, float], Floats]
    ) -> tuple[Floats, Floats]:
        """Return the values X and Y of a paired bet, shape (n,), or shape (2n,) for two events.

        Parameters
        ----------
        value : callable
            Function that returns an event's values on the n centres of a side. The third argument
            decides values that rounding leaves open. This argument is -1 (downwards) where large
            values help the bound, and 1 (upwards) where small values help the bound.

        Notes
        -----
        For one event A that is likelier on the left, X_i = A(l_i) and Y_i = A(r_i). Here l_i and
        r_i are the i-th centres of the left and the right side. For two events, A for the left and
        B for the right, every centre gives one pair: (A(l_i), B(l_i)) for the left centre and
        (B(r_i), A(r_i)) for the right centre. Under (epsilon, delta), each of ``a = E[A(l) -
        e^epsilon B(l) - delta]`` and ``b = E[B(r) - e^epsilon A(r) - delta]`` may be positive. The
        sum a + b cannot be positive. In the sum, E[A(l)] is compared with E[A(r)], and E[B(r)] with
        E[B(l)]. The centres of either side are independent of the centres of the other side. The
        auxiliary noise of ratios is also independent, because two events share no noise across
        sides. Therefore the factors of a bet with the i-th centres have the expected product ``(1 +
        lam a) (1 + lam b) <= (1 + lam (a + b) / 2)^2 <= 1``. So the wealth is valid, like the
        wealth of a bet on 2n pairs, and no coins need to be tossed.
        """
        here, there = SIDES if self.likelier == "left" else SIDES[::-1]
        x, y = value(self.event, here, -1.0), value(self.event, there, 1.0)
        if self.other is None:
            return x, y
        x_there, y_here = value(self.other, there, -1.0), value(self.other, here, 1.0)
        # The two sides alternate, so that a part of the values also contains both sides.
        return np.stack([x, x_there], axis=1).ravel(), np.stack([y_here, y], axis=1).ravel()


def _log_mixture(noise: Noise, centers: Floats, points: Floats) -> tuple[Floats, Floats]:
    """Return the log density of a mixture at some points, and a bound of the rounding error."""
    d = points.shape[1]
    steps = _ROUNDINGS * d * float(np.finfo(float).eps)
    size = np.abs(points).max(axis=1) / noise.scale  # a point is itself a rounded sum
    spread = 0.0
    if noise.kind == "laplace":
        apart = np.abs(points[:, None, :] - centers[None, :, :]).sum(axis=2) / noise.scale
    else:
        middle = centers.mean(axis=0)
        x, c = (points - middle) / noise.scale, (centers - middle) / noise.scale
        spread = float((c**2).sum(axis=1).max())
        if spread < _WIDE:
            # A common middle is subtracted, so that the squares do not cancel.
            apart = (c**2).sum(axis=1) / 2 - x @ c.T + ((x**2).sum(axis=1) / 2)[:, None]
        else:
            spread = 0.0
            apart = (((points[:, None, :] - centers[None, :, :]) / noise.scale) ** 2).sum(
                axis=2
            ) / 2
    near = apart.min(axis=1)
    with np.errstate(under="ignore"):
        total = np.exp(near[:, None] - apart).sum(axis=1)
    slope = 1.0 if noise.kind == "laplace" else 1.0 + np.sqrt(2 * np.maximum(near, 0.0))
    tolerance = steps * ((1.0 + size) * slope + np.abs(near) + spread)
    return np.asarray(np.log(total) - near - math.log(len(centers))), np.asarray(tolerance)


def direction_words(direction: Floats, name: str) -> str:
    """Return words for a projection: the coordinate, or `name` with the largest weights."""
    moved = np.flatnonzero(direction)
    if len(moved) == 1:
        sign = "" if direction[moved[0]] > 0 else "minus "
        return f"{sign}coordinate {moved[0]}"
    largest = np.argsort(-np.abs(direction), kind="stable")[:_NAMED_COORDINATES]
    weights = " ".join(f"{direction[j]:+.3g} x{j}" for j in largest)
    more = " ..." if len(moved) > _NAMED_COORDINATES else ""
    return f"{name} ({weights}{more})"
