"""Certification of compositions by numerics: a lower bound of the composed privacy loss."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.claims import Claim
from dpaudit.data import handed
from dpaudit.engine.additive.plan import extended
from dpaudit.engine.certificate import Bound, Certificate
from dpaudit.engine.exact import SMALLEST_CLAIM, FrozenPairs
from dpaudit.engine.explore import asking_for_data
from dpaudit.engine.task import Run, Task
from dpaudit.errors import MechanismError
from dpaudit.mechanisms import Composition
from dpaudit.neighbors import AllPairs, NeighborPair, family
from dpaudit.results import Histogram, LongProfile, Witness
from dpaudit.search import search_computed
from dpaudit.stats import ComposedLoss, RateBounds

Floats = NDArray[np.float64]

_SEARCH_BINS, _TRIAL_BINS = 2**13, 2**15
_MOST = 1e6  # replaces an infinite epsilon in charts
_SHOWN_BINS = 48
_SHOWN_DRAWS = 10**6
_EVENTS = 30


class BySteps:
    """Computation of a lower bound of the privacy loss of all steps together, pair by pair."""

    def explore(self, run: Run) -> FrozenPairs:
        """Search a space or a portfolio by computing every candidate with few bins."""
        start, space = time.perf_counter(), run.task.space
        if space is None:
            return FrozenPairs(run.task.pairs, start)
        judge = _judge(run)
        if isinstance(space, AllPairs):
            return FrozenPairs(family(_worst(run, space, judge)), start)
        with asking_for_data(space):
            pair, record = search_computed(
                space, lambda pair: judge(run.task.claim, pair), rng=run.rng("search")
            )
        return FrozenPairs(family(pair), start, record)

    def certify(self, frozen: FrozenPairs, run: Run) -> Certificate:
        """Compute the bounds of each pair and return the worst pair's certificate."""
        return frozen.worst(
            lambda pair: _certify(run.task.at(pair), run.mechanism, pair, frozen.start)
        )


Judge = Callable[[Claim, NeighborPair], tuple[float, float]]


def _judge(run: Run) -> Judge:
    """Return the function that computes the needed epsilon (or worst ratio), and then delta."""
    task = run.task

    def judge(claim: Claim, pair: NeighborPair) -> tuple[float, float]:
        loss = _loss(run.mechanism, pair, _SEARCH_BINS)
        if claim.point is not None:
            epsilon, delta = claim.point
            return min(loss.lower_epsilon(delta), _MOST), loss.lower_delta(epsilon)
        profile = loss.lower_deltas(task.grid)
        ratio = profile / np.maximum(task.claimed, SMALLEST_CLAIM)
        return min(float(ratio[1:].max()), _MOST), float(profile.max())

    return judge


def _worst(run: Run, space: AllPairs, judge: Judge) -> NeighborPair:
    """Return the pair of values on which the claim is exceeded most."""
    allowed = space.of_pairs(run.task.allowed)

    def exceeded(at: tuple[int, int]) -> tuple[float, float]:
        claim = run.task.claim.between(*(space.values[k] for k in at))
        epsilon, delta = judge(claim, space.pair(*at))
        return epsilon / allowed[at], delta

    every = itertools.combinations(range(len(space.values)), 2)
    return space.pair(*max((at for at in every if allowed[at] < np.inf), key=exceeded))


def _loss(mechanism: Composition, pair: NeighborPair, bins: int | None = None) -> ComposedLoss:
    steps = mechanism.pairs(handed(pair.left), handed(pair.right))
    try:
        return ComposedLoss(steps) if bins is None else ComposedLoss(steps, bins=bins)
    except ValueError as error:
        raise MechanismError(f"{mechanism!r}: {error}") from None


def _certify(task: Task, mechanism: Composition, pair: NeighborPair, start: float) -> Certificate:
    brief = task.is_brief or task.is_trial
    loss = _loss(mechanism, pair, _TRIAL_BINS if brief else None)
    claim, grid = task.claim, task.grid
    if brief and claim.point is not None:  # delta does not increase with epsilon
        profile = np.where(grid <= claim.point[0], loss.lower_delta(claim.point[0]), 0.0)
    else:
        profile = loss.lower_deltas(grid)
    point = claim.point or task.worst_point(profile, SMALLEST_CLAIM)
    epsilon, delta = loss.lower_epsilon(point[1]), loss.lower_delta(point[0])
    # The bounds are sound, but claimed curves are known only to about 1e-10.
    slack = 0.0 if claim.point is not None else 1e-9
    relative = 1e-9 if claim.point is not None else 1e-8
    # If delta = 0 is claimed, only epsilon decides, because delta itself may be below all doubles.
    above = delta > point[1] * (1 + relative) + slack or claim.point == (point[0], 0.0)
    refuted = above and epsilon > point[0] * (1 + 1e-9) + 1e-12
    long = grid if brief else extended(grid, loss.lower_delta)
    likelier = loss.likelier(point[0])
    steps = sum(step.times for step in mechanism.steps)
    return Certificate.of(
        task,
        pair,
        point,
        epsilon=Bound(epsilon, epsilon),
        delta=Bound(delta, delta),
        certified=profile,
        estimated=profile,
        method=f"computed from the composition of {steps:,} step{'s' * (steps > 1)}",
        refuted=refuted,
        p_value=0.0 if refuted else 1.0,
        computed=True,
        witness=_witness(loss, epsilon if math.isfinite(epsilon) else point[0], likelier),
        histogram=_histogram(loss, point[0]),
        mechanism_seconds=time.perf_counter() - start,
        bounds=_bounds(loss, float(long[-1]), 2 if brief else _EVENTS),
        long_profile=LongProfile(
            tuple(long.tolist()), tuple(loss.lower_deltas(long).tolist()), (0.0,) * len(long)
        ),
    )


def _bounds(loss: ComposedLoss, end: float, events: int) -> tuple[RateBounds, ...]:
    """Return bounds of events "the loss exceeds t", for t from 0 to a negligible delta."""
    if loss.max_loss <= 0:
        return ()
    found: list[tuple[Any, Any]] = []
    for side in ("left", "right"):
        for threshold in np.linspace(0.0, min(end, loss.max_loss), events):
            found.append(loss.rates(float(threshold), side))
    return tuple(RateBounds(np.array([p]), np.array([q]), 0.0) for p, q in found if p > q)


def _witness(loss: ComposedLoss, threshold: float, likelier: str) -> Witness:
    if loss.max_loss <= 0:
        return Witness("any output: both sides have the same outputs", likelier, None, 1.0, 1.0)
    threshold = min(threshold, loss.max_loss * (1 - 1e-9))
    likely, rare = loss.rates(threshold, likelier)
    words = f"privacy loss of all steps > {threshold:.3g}, computed from the composition"
    return Witness(words, likelier, None, likely, rare)


def _histogram(loss: ComposedLoss, epsilon: float) -> Histogram:
    """Return expected counts of the privacy loss of all steps."""
    edges, left, right = loss.masses(_SHOWN_BINS)
    return Histogram(
        "privacy loss, left over right (expected counts of 1,000,000 draws)",
        tuple(f"up to {edge:.3g}" for edge in edges[1:]),
        tuple(edges.tolist()),
        tuple(round(_SHOWN_DRAWS * x) for x in left.tolist()),
        tuple(round(_SHOWN_DRAWS * x) for x in right.tolist()),
        tuple((edges[:-1] > epsilon).tolist()),
    )
