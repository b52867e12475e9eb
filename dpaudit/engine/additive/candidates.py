"""Candidate events, learnt from exploration centres, and their expected certified values."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from dpaudit.engine.additive.events import (
    SIDES,
    BallOrNone,
    Candidate,
    IntegratedEvent,
    LikelihoodRatio,
    RatioEvent,
    RegionEvent,
    direction_words,
)
from dpaudit.stats import Ball, Box, HalfSpace, Noise, Slab, Target

Floats = NDArray[np.float64]
Sides = dict[str, Floats]

MAX_COORDINATES = 48
MIXTURE = 256
"""Largest number of exploration centres per side from which a likelihood ratio is learnt."""

CAUTION = 2.0
"""Standard errors by which candidates are moved against the audit before they are compared."""

_MAX_LDA = 1000
_MAX_SPREADS = 200
_SLAB_DIRECTIONS = 4
_TAILS = {"gaussian": 8.5, "laplace": 30.0}
_FAR_BALL = 1e4  # in noise scales; from this distance on, a half-space is as good as a ball
_RATIO_CUTS = 60
_DISTANCE_GRID = 60
_LARGEST_FACTOR = 1e154  # the square of this number is a double


@dataclass(frozen=True, eq=False)
class Screening:
    """Moments of all candidate events on exploration centres.

    Each array has shape (k,) per side. `unseen` allows for values that the auxiliary noise missed.
    `unseen` is 0 if the event is exact.
    """

    makers: list[Callable[[], IntegratedEvent]]
    mean: Sides
    variance: Sides
    largest: Sides
    unseen: Floats
    draws: int

    def expected(self, target: Target, draws: int, cost: float) -> Sides:
        """Return the expected certified value of each event, if either side is the likelier one.

        A negative value means that nothing is expected. The value is a second-order approximation
        of the bound by the paired bet. Means are moved by two standard errors in the conservative
        direction. The reason is that the best of many candidates looks better than it is. `cost` is
        ``log(2 / failure_prob)``.
        """
        return {
            side: _expected(
                *self._moved(side, other), self.largest[other], target, draws, max(cost, 1e-9)
            )
            for side, other in (SIDES, SIDES[::-1])
        }

    def _moved(self, side: str, other: str) -> tuple[Floats, Floats, Floats, Floats]:
        vx, vy = self.variance[side], self.variance[other]
        p = self.mean[side] - CAUTION * np.sqrt(vx / self.draws)
        q = self.mean[other] + CAUTION * np.sqrt(vy / self.draws) + self.unseen
        return p, vx, q, vy

    def excess(self, epsilon: float, caution: float = CAUTION) -> Sides:
        """Return the estimated ``mean X - e^epsilon mean Y`` minus `caution` standard errors."""
        factor = np.exp(min(epsilon, 700.0))
        found = {}
        for side, other in (SIDES, SIDES[::-1]):
            spread = joint_variance(self.variance[side], self.variance[other], factor)
            mean = self.mean[side] - factor * (self.mean[other] + self.unseen)
            found[side] = mean - caution * np.sqrt(spread / self.draws)
        return found

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Whether each event has a closed form."""
        return np.asarray(self.unseen == 0)

    def candidate(self, side: str, index: int, other: int | None = None) -> Candidate:
        """Return an event assumed likelier on `side`, and an event for the other side or None."""
        return Candidate(
            self.makers[index](), side, None if other is None else self.makers[other]()
        )


def joint_variance(vx: Any, vy: Any, factor: Any) -> Any:
    """Return the variance of ``X - factor Y`` for independent X and Y, finite for every factor.

    The variance is too small if epsilon exceeds 354. At such epsilons, only values of Y near 0
    matter.
    """
    return vx + np.minimum(factor, _LARGEST_FACTOR) ** 2 * vy


def _expected(
    p: Floats,
    vx: Floats,
    q: Floats,
    vy: Floats,
    largest: Floats,
    target: Target,
    draws: int,
    cost: float,
) -> Floats:
    """Solve ``p - S q - delta = sqrt(2 cost (vx + S^2 vy) / n) + (S largest + delta) cost / n``.

    S is ``e^epsilon``. The last term is the cost of the largest allowed bet size.
    """
    share = cost / draws
    if target.epsilon is not None:
        factor = np.exp(min(target.epsilon, 700.0))
        noise = np.sqrt(2 * share * joint_variance(vx, vy, factor))
        return np.asarray((p - factor * (q + largest * share) - noise) / (1 + share))
    a, b = p - (target.delta or 0.0) * (1 + share), q + largest * share
    top = a**2 - 2 * share * vx
    root = (a * b) ** 2 - (b**2 - 2 * share * vy) * top
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = top / (a * b + np.sqrt(np.maximum(root, 0.0)))
        epsilon = np.log(factor)
    return np.where((a > 0) & (top > 0) & (b > 0), epsilon, -np.inf)


def screen(
    noise: Noise,
    learn: Sides,
    judge: Sides,
    balls: dict[str, BallOrNone],
    auxiliary: Floats,
    mixture: int,
) -> Screening:
    """Learn events on one part of the exploration centres, and compute moments on the other part.

    Parameters
    ----------
    noise : Noise
        Noise that is integrated out.
    learn, judge : dict of ndarray, shape [size, d]
        Exploration centres of both sides.
    balls : dict of (center, radius) or None
        Declared balls of both sides.
    auxiliary : ndarray, shape [k, size of judge, d]
        Auxiliary noise for likelihood-ratio sets.
    mixture : int
        Number of centres per side from which likelihood ratios are learnt. If this number is 0, no
        likelihood ratios are learnt.
    """
    makers: list[Callable[[], IntegratedEvent]] = []
    mean: dict[str, list[Floats]] = {side: [] for side in SIDES}
    variance: dict[str, list[Floats]] = {side: [] for side in SIDES}
    unseen: list[Floats] = []
    for family, values in _families(noise, learn, judge, auxiliary, mixture):
        makers += family
        missed = 3 / auxiliary[..., 0].size if isinstance(family[0](), RatioEvent) else 0.0
        unseen.append(np.full(len(family), missed))
        for side in SIDES:
            mean[side].append(values[side].mean(axis=1))
            variance[side].append(values[side].var(axis=1))
    largest = {
        side: np.array([make().largest(noise, balls[side]) for make in makers])
        if balls[side] is not None
        else np.ones(len(makers))
        for side in SIDES
    }
    return Screening(
        makers,
        {side: np.concatenate(mean[side]) for side in SIDES},
        {side: np.concatenate(variance[side]) for side in SIDES},
        largest,
        np.concatenate(unseen),
        len(judge["left"]),
    )


Family = tuple[list[Callable[[], IntegratedEvent]], Sides]


def _families(
    noise: Noise,
    learn: Sides,
    judge: Sides,
    auxiliary: Floats,
    mixture: int,
) -> Iterator[Family]:
    """Yield functions that make events, and the values ``[k, size]`` on the judging centres."""
    directions = _directions(noise, learn)
    for u, name in directions:
        for sign in (1.0, -1.0):
            yield _half_spaces(noise, sign * u, name, learn, judge)
    for u, name in directions[:_SLAB_DIRECTIONS]:
        family = _slabs(noise, u, name, learn, judge)
        if family[0]:
            yield family
    d = learn["left"].shape[1]
    if noise.kind == "gaussian" and d > 1:
        yield from _balls(noise, learn, judge)
    if noise.kind == "laplace" and d > 1:
        yield from _orthants(noise, learn, judge)
    if mixture > 0:
        yield from _ratios(noise, learn, judge, auxiliary, mixture)


def _directions(noise: Noise, learn: Sides) -> list[tuple[Floats, str]]:
    left, right = learn["left"], learn["right"]
    d = left.shape[1]
    shift = left.mean(axis=0) - right.mean(axis=0)
    spread = left.var(axis=0) + right.var(axis=0) + 2 * noise.scale**2
    order = np.argsort(-np.abs(shift) / np.sqrt(spread), kind="stable")[:MAX_COORDINATES]
    axes = [(np.eye(1, d, int(j))[0], "") for j in order]
    if noise.kind == "laplace" or d == 1:
        return [(u, direction_words(u, name)) for u, name in axes]
    raw = [(shift, "difference of means")]
    if d <= _MAX_LDA:
        spreads = [_covariance(x) + noise.scale**2 * np.eye(d) for x in (left, right)]
        # If centres vary together by far more than the noise, the matrix is singular up to
        # rounding. In that case, these directions cannot be learnt, and the other directions must
        # suffice.
        with contextlib.suppress(linalg.LinAlgError), warnings.catch_warnings():
            warnings.simplefilter("ignore", linalg.LinAlgWarning)  # poor directions are not chosen
            lda = linalg.solve(spreads[0] + spreads[1], shift, assume_a="pos")
            raw.append((lda, "LDA direction"))
        if d <= _MAX_SPREADS and min(len(left), len(right)) > 2 * d:
            with contextlib.suppress(linalg.LinAlgError):
                _, vectors = linalg.eigh(*spreads)
                raw += [(vectors[:, j], "direction of different spread") for j in (0, -1)]
    learnt = [(u / np.linalg.norm(u), name) for u, name in raw if np.linalg.norm(u) > 0]
    return [(u, direction_words(u, name)) for u, name in learnt + axes]


def _covariance(x: Floats) -> Floats:
    centered = x - x.mean(axis=0)
    return np.asarray(centered.T @ centered / len(x))


def _pooled(learn: Sides) -> Floats:
    return np.concatenate([learn["left"], learn["right"]])


def _half_spaces(noise: Noise, u: Floats, name: str, learn: Sides, judge: Sides) -> Family:
    """Return half-spaces that end among the centres, or some noise scales beyond the centres."""
    along = _pooled(learn) @ u
    bases = np.quantile(along, [0.5, 0.9, 0.99, 1.0])
    steps = np.linspace(-2.0, _TAILS[noise.kind], 32) * noise.scale
    cuts = np.concatenate(
        [np.quantile(along, np.linspace(0.02, 1, 25)), *(b + steps for b in bases)]
    )
    cuts = np.unique(cuts)
    words = direction_words(u, name.partition(" (")[0])
    makers = [partial(_half_space, u, float(t), words) for t in cuts]
    return list(makers), {s: noise.above(judge[s] @ u, cuts[:, None]) for s in SIDES}


def _half_space(u: Floats, threshold: float, words: str) -> IntegratedEvent:
    return RegionEvent(HalfSpace(u, threshold), words)


def _slabs(noise: Noise, u: Floats, name: str, learn: Sides, judge: Sides) -> Family:
    middles = [float((learn[s] @ u).mean()) for s in SIDES]
    middles.append(sum(middles) / 2)
    along = _pooled(learn) @ u
    half_width = float(np.ptp(along)) / 2 + 6 * noise.scale
    halves = np.geomspace(noise.scale / 4, half_width, 24)
    low = np.concatenate([m - halves for m in middles])
    high = np.concatenate([m + halves for m in middles])
    wide = low < high  # far from 0, narrower slabs vanish by rounding
    low, high = low[wide], high[wide]
    makers, values = [], {}
    for outside in (False, True):
        makers += [
            partial(_slab, u, a, b, outside, name)
            for a, b in zip(low.tolist(), high.tolist(), strict=True)
        ]
    for s in SIDES:
        at = judge[s] @ u
        beyond = noise.above(at, high[:, None]) + noise.above(-at, -low[:, None])
        values[s] = np.concatenate([noise.between(at, low[:, None], high[:, None]), beyond])
    return list(makers), values


def _slab(u: Floats, low: float, high: float, outside: bool, words: str) -> IntegratedEvent:
    return RegionEvent(Slab(u, low, high, outside), words)


def _balls(noise: Noise, learn: Sides, judge: Sides) -> Iterator[Family]:
    means = {s: learn[s].mean(axis=0) for s in SIDES}
    places = [
        (means["left"], "distance from the left mean"),
        (means["right"], "distance from the right mean"),
        ((means["left"] + means["right"]) / 2, "distance from the midpoint of the means"),
    ]
    d = learn["left"].shape[1]
    for middle, words in places:
        distance = np.linalg.norm(_pooled(learn) - middle, axis=1)
        typical = np.sqrt(np.quantile(distance, [0.1, 0.5, 0.9, 1.0]) ** 2 + d * noise.scale**2)
        radii = np.unique(
            np.concatenate([t + noise.scale * np.linspace(-3, 6, 13) for t in typical])
        )
        radii = radii[(radii > 1e-3 * noise.scale) & (radii < _FAR_BALL * noise.scale)]
        for outside in (False, True):
            makers = [partial(_ball, middle, float(r), outside, words) for r in radii]
            if makers:
                values = {s: _ball_values(noise, makers, middle, judge[s]) for s in SIDES}
                yield list(makers), values


def _ball(middle: Floats, radius: float, outside: bool, words: str) -> RegionEvent:
    return RegionEvent(Ball(middle, radius, outside), words)


def _ball_values(
    noise: Noise, makers: list[partial[RegionEvent]], middle: Floats, centers: Floats
) -> Floats:
    """Return values that are interpolated over the distance from the middle, for choosing only."""
    away = np.linalg.norm(centers - middle, axis=1)
    nodes = np.linspace(float(away.min()), float(away.max()), _DISTANCE_GRID)
    points = np.tile(middle, (len(nodes), 1))
    points[:, 0] += nodes
    none = np.empty((0, 0, 0))
    rows = [np.interp(away, nodes, make().values(noise, points, none)) for make in makers]
    return np.array(rows)


def _orthants(noise: Noise, learn: Sides, judge: Sides) -> Iterator[Family]:
    """Yield boxes open on one side, for Laplace noise, in the coordinates that move most."""
    left, right = learn["left"], learn["right"]
    d = left.shape[1]
    shift = left.mean(axis=0) - right.mean(axis=0)
    order = np.argsort(-np.abs(shift), kind="stable")
    sizes = [k for k in (2, 3, 4, 6, 8, 12, 16, 24, 32, MAX_COORDINATES) if k < d]
    pooled = _pooled(learn)
    makers: list[Callable[[], IntegratedEvent]] = []
    values: dict[str, list[Floats]] = {s: [] for s in SIDES}
    for k in [*sizes, d] if d <= MAX_COORDINATES else sizes:
        chosen = order[:k]
        sign = np.where(shift[chosen] < 0, -1.0, 1.0)
        for toward in (sign, -sign):
            for quantile in (0.5, 0.9, 1.0):
                ends = np.quantile(pooled[:, chosen] * toward, quantile, axis=0)
                for offset in (-2.0, -1.0, 0.0, 1.0, 3.0):
                    cut = (ends + offset * noise.scale) * toward
                    low, high = np.full(d, -np.inf), np.full(d, np.inf)
                    low[chosen[toward > 0]] = cut[toward > 0]
                    high[chosen[toward < 0]] = cut[toward < 0]
                    event = RegionEvent(Box(low, high), "box")
                    makers.append(partial(_same, event))
                    for s in SIDES:
                        values[s].append(noise.probability(event.region, judge[s]))
    if makers:
        yield makers, {s: np.array(values[s]) for s in SIDES}


def _same(event: IntegratedEvent) -> IntegratedEvent:
    return event


def _ratios(
    noise: Noise,
    learn: Sides,
    judge: Sides,
    auxiliary: Floats,
    mixture: int,
) -> Iterator[Family]:
    """Yield likelihood-ratio sets in both directions, cut at quantiles of the ratio."""
    ratio = LikelihoodRatio(noise, learn["left"][:mixture], learn["right"][:mixture])
    found = {s: ratio.scores(judge[s], auxiliary) for s in SIDES}
    scores, slack = ({s: found[s][part] for s in SIDES} for part in (0, 1))
    for sign in (1.0, -1.0):
        # Round in the same way as in certification, that is, against the side that the ratio
        # favours.
        rounded = {"left": -sign * slack["left"], "right": sign * slack["right"]}
        both = sign * np.concatenate([scores[s].ravel() for s in SIDES])
        tail = np.geomspace(0.05, 1 / len(both), _RATIO_CUTS // 2)
        levels = np.concatenate([np.linspace(0.05, 0.95, _RATIO_CUTS // 2), 1 - tail])
        cuts = np.unique(np.quantile(both, levels))
        makers = [partial(RatioEvent, ratio, sign, float(t)) for t in cuts]
        yield (
            list(makers),
            {
                s: np.array([(sign * scores[s] + rounded[s] > t).mean(axis=0) for t in cuts])
                for s in SIDES
            },
        )
