"""Deterministic centres, whose whole privacy profile is computed in closed form."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.additive.plan import extended
from dpaudit.engine.certificate import Bound, Certificate
from dpaudit.engine.exact import SMALLEST_CLAIM, FrozenPairs
from dpaudit.engine.explore import explore
from dpaudit.engine.task import EXPLORE_SHARE, Run, Task
from dpaudit.errors import MechanismError
from dpaudit.mechanisms import AdditiveNoise
from dpaudit.neighbors import AllPairs, NeighborPair, PairFamily, family
from dpaudit.results import Histogram, LongProfile, Witness
from dpaudit.search import SearchRecord
from dpaudit.stats import Noise, RateBounds, oracles
from dpaudit.stats.oracles import Oracle

Floats = NDArray[np.float64]

METHOD = "computed from the centres"
_NEAREST = 1e-99  # In noise scales. The square of a smaller distance is not a double.
_MOVING = 12
_MAX_LOSS = 1000.0
_BINS = 48
_SHOWN_DRAWS = 10**6
_EVENTS = 60


_FARTHEST = 16  # pairs of values that are computed exactly


@dataclass(frozen=True)
class _Computed:
    """One pair with its centres and the distribution of its privacy loss."""

    pair: NeighborPair
    left: Floats
    right: Floats
    oracle: Oracle
    method: str


class ByClosedForm:
    """Computation of the privacy profile for deterministic centres, pair by pair."""

    def explore(self, run: Run) -> FrozenPairs:
        """Search a space or a portfolio with noisy draws, in the same way as for any mechanism."""
        start, space = time.perf_counter(), run.task.space
        if isinstance(space, AllPairs):
            return FrozenPairs(_farthest(run, space), start)
        search = search_with_noise(run)
        return FrozenPairs(run.task.pairs, start, search)

    def certify(self, frozen: FrozenPairs, run: Run) -> Certificate:
        """Compute the profile of each pair and return the worst pair's certificate."""
        mechanism = run.mechanism
        return frozen.worst(
            lambda pair: _certify(
                run.task.at(pair), _of_pair(mechanism, pair), mechanism.noise, frozen.start
            )
        )


def _farthest(run: Run, space: AllPairs) -> PairFamily:
    """Return the pairs of values whose centres are farthest apart for what is claimed."""
    mechanism: AdditiveNoise = run.mechanism
    centers = [np.ravel(mechanism.center(value)) for value in space.values]
    sizes = {one.size for one in centers}
    if len(sizes) > 1:
        raise MechanismError(
            f"{mechanism.name} must return centres of equal length, got lengths {sorted(sizes)}"
        )
    stacked, order = np.stack(centers), 2 if mechanism.noise.kind == "gaussian" else 1
    gaps = [np.linalg.norm(stacked - one, ord=order, axis=1) for one in stacked]
    best = space.ranked(np.stack(gaps), space.of_pairs(run.task.allowed))[:_FARTHEST]
    return family([space.pair(*at) for at in best])


def search_with_noise(run: Run) -> SearchRecord | None:
    """If no pair is given, search with noisy draws, and switch the run to the best pair."""
    if run.task.space is None:
        return None
    part = run.part("search")
    exploration = explore(part, part.sampler(), share=EXPLORE_SHARE)
    run.turn_to(exploration.pair, exploration.explored)
    return exploration.search


def _of_pair(mechanism: AdditiveNoise, pair: NeighborPair) -> _Computed:
    left, right = mechanism.center(pair.left), mechanism.center(pair.right)
    if left.shape != right.shape:
        raise MechanismError(
            f"{mechanism.name} must return centres of equal length, got {left.size} on "
            f"the left and {right.size} on the right"
        )
    scale, shift = mechanism.noise.scale, left - right
    apart = float(np.abs(shift).max()) / scale
    if 0 < apart < _NEAREST:
        raise MechanismError(
            f"{mechanism.name} must return two centres that are equal or at least "
            f"{_NEAREST:g} noise scales apart, got a distance of {apart:g} noise scales"
        )
    if mechanism.noise.kind == "gaussian":
        oracle = oracles.gaussian(float(np.linalg.norm(shift)), scale)
        return _Computed(pair, left, right, oracle, METHOD)
    try:
        return _Computed(pair, left, right, oracles.laplace_vector(shift, scale), METHOD)
    except ValueError:
        # There are too many different shifts for a closed form. Releasing only some coordinates is
        # post-processing. So the largest coordinates give a lower bound.
        moving = np.sort(np.abs(shift))[-_MOVING:]
        moving = moving[moving > 1e-6 * moving[-1]]
        moving = moving if moving.sum() < _MAX_LOSS * scale else moving[-1:]
        moving = np.minimum(moving, _MAX_LOSS * scale)  # a smaller shift is harder to detect
        method = f"{METHOD}, of the {len(moving)} coordinates that move most"
        return _Computed(pair, left, right, oracles.laplace_vector(moving, scale), method)


def _certify(task: Task, case: _Computed, noise: Noise, start: float) -> Certificate:
    claim, grid = task.claim, task.grid
    profile = case.oracle.delta(grid)
    point = claim.point or task.worst_point(profile, SMALLEST_CLAIM)
    epsilon, delta = case.oracle.epsilon(point[1]), case.oracle.delta(point[0])
    # Closed forms keep their relative accuracy for any small delta, but claimed curves do not.
    slack = 0.0 if claim.point is not None else 1e-9
    relative = 1e-9 if claim.point is not None else 1e-8
    # If delta = 0 is claimed, only epsilon decides, because delta itself may be below all doubles.
    above = delta > point[1] * (1 + relative) + slack or claim.point == (point[0], 0.0)
    refuted = above and epsilon > point[0] * (1 + 1e-9) + 1e-12
    long = extended(grid, lambda e: case.oracle.delta(e))
    return Certificate.of(
        task,
        case.pair,
        point,
        epsilon=Bound(epsilon, epsilon),
        delta=Bound(delta, delta),
        certified=profile,
        estimated=profile,
        method=case.method,
        refuted=refuted,
        p_value=0.0 if refuted else 1.0,
        computed=True,
        whole=case.method == METHOD,
        witness=_witness(case, point),
        histogram=_histogram(case, noise, point),
        mechanism_seconds=time.perf_counter() - start,
        bounds=_bounds(case.oracle, float(long[-1])),
        long_profile=LongProfile(
            tuple(long.tolist()), tuple(case.oracle.delta(long).tolist()), (0.0,) * len(long)
        ),
    )


def _bounds(oracle: Oracle, end: float) -> tuple[RateBounds, ...]:
    """Return exact rates of events "the loss exceeds t", for t from 0 to a negligible delta."""
    if oracle.max_loss == 0:
        return ()
    losses = np.linspace(0.0, min(end, oracle.max_loss), _EVENTS)
    p, q = oracle.rates(losses, closed=True)
    return tuple(RateBounds(p[i : i + 1], q[i : i + 1], 0.0) for i in range(len(losses)))


def _witness(case: _Computed, point: tuple[float, float]) -> Witness:
    if np.array_equal(case.left, case.right):
        return Witness("any output: the centres of both sides are equal", "left", None, 1.0, 1.0)
    needed = case.oracle.epsilon(point[1])
    loss = min(needed, case.oracle.max_loss) if math.isfinite(needed) else point[0]
    likely, rare = case.oracle.rates(loss, closed=True)
    words = f"log-likelihood ratio >= {loss:.3g}, computed from the centres"
    return Witness(words, "left", None, float(likely), float(rare))


def _histogram(case: _Computed, noise: Noise, point: tuple[float, float]) -> Histogram:
    """Return expected counts along the line through both centres, or the axis that moves most."""
    shift = case.left - case.right
    if noise.kind == "gaussian" and (length := float(np.linalg.norm(shift))) > 0:
        direction, label = shift / length, "projection on the difference of the centres"
    else:
        at = int(np.abs(shift).argmax())
        direction = np.zeros(len(shift))
        direction[at] = 1.0 if shift[at] >= 0 else -1.0
        label = f"coordinate {at}" if direction[at] > 0 else f"minus coordinate {at}"
    a, b = float(case.left @ direction), float(case.right @ direction)
    edges = np.linspace(min(a, b) - 6 * noise.scale, max(a, b) + 6 * noise.scale, _BINS + 1)
    probabilities = [noise.between(c, edges[:-1], edges[1:]) for c in (a, b)]
    loss = np.log(np.maximum(probabilities[0], 1e-300)) - np.log(
        np.maximum(probabilities[1], 1e-300)
    )
    return Histogram(
        f"{label} (expected counts of 1,000,000 draws)",
        tuple(f"up to {edge:.3g}" for edge in edges[1:]),
        tuple(edges.tolist()),
        tuple(round(_SHOWN_DRAWS * x) for x in probabilities[0].tolist()),
        tuple(round(_SHOWN_DRAWS * x) for x in probabilities[1].tolist()),
        tuple((loss > point[0]).tolist()),
    )
