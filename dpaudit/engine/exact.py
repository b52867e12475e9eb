"""Certification by computation: a known pmf needs no draws and no failure probability."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.claims import Claim
from dpaudit.data import handed, words_of_data
from dpaudit.engine.certificate import Bound, Certificate, severity
from dpaudit.engine.explore import asking_for_data
from dpaudit.engine.task import Run, Task
from dpaudit.errors import MechanismError, MechanismTimeout, place
from dpaudit.mechanisms import ExactMechanism, mechanism_name
from dpaudit.neighbors import AllPairs, NeighborPair, PairFamily, family
from dpaudit.results import Histogram, Witness
from dpaudit.search import SearchRecord, search_computed
from dpaudit.stats import RateBounds, hockey_stick, hockey_stick_inverse

Floats = NDArray[np.float64]

SMALLEST_CLAIM = 1e-9
"""Delta below which claimed curves are not known accurately."""

_SHOWN_DRAWS = 10**6
_ROUNDING = 1e-15  # total of the probabilities that may be rounding errors of a pmf
_MOST = 1e6  # replaces an infinite epsilon in charts


@dataclass(frozen=True)
class FrozenPairs:
    """Pairs whose privacy loss is computed without any randomness.

    Parameters
    ----------
    pairs : PairFamily
        The given pairs, or the pair that a search chose.
    start : float
        Time at which the exploration began, by ``time.perf_counter``.
    search : SearchRecord, optional
        Record of the search for the pair.
    """

    pairs: PairFamily
    start: float
    search: SearchRecord | None = None

    weights = ()

    def worst(self, certify: Callable[[NeighborPair], Certificate]) -> Certificate:
        """Return the worst certificate of all pairs, and the first among equal ones."""
        return replace(max(map(certify, self.pairs), key=severity), search=self.search)


class ByComputation:
    """Computation of the privacy loss from a pmf, in both directions of each pair."""

    def explore(self, run: Run) -> FrozenPairs:
        """Search a space or a portfolio by computing every candidate."""
        start, task = time.perf_counter(), run.task
        if task.space is None:
            return FrozenPairs(task.pairs, start)
        if isinstance(task.space, AllPairs):
            return FrozenPairs(_worst(run, task.space), start)

        def judge(pair: NeighborPair) -> tuple[float, float]:
            with refusing(run.mechanism):
                return _needed(task, task.claim, _pmf(run, pair.left), _pmf(run, pair.right))

        with asking_for_data(task.space):
            pair, record = search_computed(task.space, judge, rng=run.rng("search"))
        return FrozenPairs(family(pair), start, record)

    def certify(self, frozen: FrozenPairs, run: Run) -> Certificate:
        """Compute the profile of each pair and return the worst pair's certificate."""
        return frozen.worst(lambda pair: _certify(run, pair, frozen.start))


def _worst(run: Run, space: AllPairs) -> PairFamily:
    """Return the pair of values on which the claim is exceeded most."""
    task, values = run.task, space.values
    allowed = space.of_pairs(task.allowed)
    pmfs = [_pmf(run, value) for value in values]

    def exceeded(at: tuple[int, int]) -> tuple[float, float]:
        (x, y), (p, q) = ([held[k] for k in at] for held in (values, pmfs))
        with refusing(run.mechanism):
            epsilon, delta = _needed(task, task.claim.between(x, y), p, q)
        return epsilon / allowed[at], delta

    claimed = (at for at in itertools.combinations(range(len(values)), 2) if allowed[at] < np.inf)
    return family(space.pair(*max(claimed, key=exceeded)))


def _needed(task: Task, claim: Claim, left: Floats, right: Floats) -> tuple[float, float]:
    """Return the sort key of a pair: the needed epsilon (or worst ratio), and then delta."""
    both, point = ((left, right), (right, left)), claim.point
    if point is not None:
        epsilon, delta = point
        return (
            min(max(hockey_stick_inverse(p, q, delta) for p, q in both), _MOST),
            max(hockey_stick(p, q, epsilon) for p, q in both),
        )
    profile = [max(hockey_stick(p, q, float(e)) for p, q in both) for e in task.grid]
    ratio = np.array(profile) / np.maximum(task.claimed, SMALLEST_CLAIM)
    return min(float(ratio[1:].max()), _MOST), max(profile)


@contextmanager
def refusing(mechanism: ExactMechanism) -> Iterator[None]:
    """If a pmf is invalid, raise a `MechanismError` with the mechanism's name."""
    try:
        yield
    except ValueError as error:
        raise MechanismError(f"{mechanism_name(mechanism)}.pmf: {error}") from None


def _certify(run: Run, pair: NeighborPair, start: float) -> Certificate:
    task, left, right = run.task.at(pair), _pmf(run, pair.left), _pmf(run, pair.right)
    directions = {"left": (left, right), "right": (right, left)}
    with refusing(run.mechanism):
        deltas = {
            side: np.array([hockey_stick(p, q, float(e)) for e in task.grid])
            for side, (p, q) in directions.items()
        }
    profile = np.maximum(deltas["left"], deltas["right"])
    point = task.claim.point or task.worst_point(profile, SMALLEST_CLAIM)

    def needed(allowed: float) -> dict[str, tuple[float, float]]:
        """Return epsilon at this delta, and delta at the claimed epsilon, in each direction."""
        return {
            side: (hockey_stick_inverse(p, q, allowed), hockey_stick(p, q, point[0]))
            for side, (p, q) in directions.items()
        }

    needs, allowed = needed(point[1]), _most_delta(task.claim, point[1])
    epsilon, delta = (max(both) for both in zip(*needs.values(), strict=True))
    refuted = exceeds = epsilon > point[0] * (1 + 1e-9) + 1e-12
    if refuted and delta <= allowed:  # outcomes exceed it that may be rounding errors
        refuted, needs = False, needed(allowed)
        epsilon = max(at for at, _ in needs.values())
    if not refuted:  # what exceeds the claim may be a rounding error
        epsilon, delta = min(epsilon, point[0]), min(delta, point[1])
        profile = np.minimum(profile, task.claimed)
    likelier = max(needs, key=lambda side: needs[side])
    p, q = directions[likelier]
    level = needs[likelier][0] * (1 - 1e-9)  # of the outcomes that need the largest epsilon
    inside = p > np.exp(min(level, 700.0)) * q
    return Certificate.of(
        task,
        pair,
        point,
        epsilon=Bound(epsilon, epsilon),
        delta=Bound(delta, delta),
        certified=profile,
        estimated=profile,
        method="computed from the pmf",
        refuted=refuted,
        p_value=0.0 if refuted else 1.0,
        computed=True,
        whole=exceeds == refuted,  # possible rounding errors are in no lower bound
        witness=_witness(p, q, inside, likelier),
        histogram=Histogram(
            "outcome (expected counts of 1,000,000 draws)",
            tuple(str(i) for i in range(len(p))),
            None,
            tuple(round(x * _SHOWN_DRAWS) for x in left),
            tuple(round(x * _SHOWN_DRAWS) for x in right),
            tuple(inside.tolist()),
        ),
        mechanism_seconds=time.perf_counter() - start,
        bounds=_best_events(left, right) + _best_events(right, left),
    )


def _best_events(p: Floats, q: Floats) -> tuple[RateBounds, ...]:
    """Return exact rates of the sets of outcomes with the largest losses, for at most 200 sets."""
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.where(p > 0, p / q, 0.0), kind="stable")
    above, below = np.cumsum(p[order]), np.cumsum(q[order])
    chosen = np.unique(np.linspace(0, len(p) - 1, min(len(p), 200)).astype(int))
    chosen = chosen[below[chosen] < 1 - 1e-12]  # all outcomes together contain no information
    return tuple(
        RateBounds(np.minimum(above[i : i + 1], 1.0), np.minimum(below[i : i + 1], 1.0), 0.0)
        for i in chosen
    )


def _most_delta(claim: Claim, delta: float) -> float:
    """Return a delta that the claim allows, with a margin for rounding errors.

    Curves are computed numerically, to about 1e-10, so the margin is larger for curves than for
    points.
    """
    is_point = claim.point is not None
    most = delta * (1 + (1e-9 if is_point else 1e-8)) + (_ROUNDING if is_point else 1e-9)
    return min(most, 1.0)


def _witness(p: Floats, q: Floats, inside: NDArray[np.bool_], likelier: str) -> Witness:
    outcomes = [str(i) for i in np.flatnonzero(inside)]
    if not outcomes:
        return Witness("any outcome", likelier, None, 1.0, 1.0)
    shown = outcomes[:8] + ["..."] * (len(outcomes) > 8)
    words = f"outcome = {shown[0]}" if len(shown) == 1 else f"outcome in {{{', '.join(shown)}}}"
    return Witness(words, likelier, None, float(p[inside].sum()), float(q[inside].sum()))


def _pmf(run: Run, data: NDArray[Any]) -> Floats:
    name, watch = mechanism_name(run.mechanism), run.task.watch
    try:
        with watch.call(name):
            return np.asarray(run.mechanism.pmf(handed(data)), dtype=float)
    except MechanismTimeout:
        raise
    except BaseException as error:
        if watch.interrupted:
            raise
        raise MechanismError(
            f"{name}.pmf raised {type(error).__name__}: {error} "
            f"({place(error)}called with {words_of_data(data)})"
        ) from error
