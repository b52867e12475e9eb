"""Certify by counts: how often frozen events fire on fresh draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpaudit.engine.certificate import Bound, Certificate
from dpaudit.engine.explore import Exploration, explore
from dpaudit.engine.pictures import OutputHistogram
from dpaudit.engine.task import EXPLORE_SHARE, PRIMARY_SHARE, Task
from dpaudit.events import Event
from dpaudit.mechanisms import IndependenceCheck, Sampler
from dpaudit.results import Histogram, Witness
from dpaudit.stats import Counts, RateBounds

NO_FLOATS = (
    "The floating-point attack did nothing: all outputs were whole numbers, booleans or labels, "
    "and no floating-point output was found whose bits could be read."
)

_LEAST_LOG_PROB = math.log(1e-30)
_PICTURE_DRAWS = 10**6  # per dataset; a picture gains nothing from more


def look(task: Task, mechanism: Any, role: str) -> Certificate:
    """Explore, freeze, draw afresh, certify.

    Parameters
    ----------
    task : Task
        What is asked.
    mechanism : callable
        See :class:`dpaudit.mechanisms.SampledMechanism`.
    role : str
        Names the streams of random numbers.
    """
    sampler = task.sampler(mechanism, role)
    exploration = explore(task, sampler, role, share=EXPLORE_SHARE)
    counts, histograms, doubts = _count(task, sampler, exploration)
    found = _certify(task, sampler, exploration, counts, histograms)
    return replace(found, notes=(*found.notes, *doubts))


def no_floats_note(task: Task, sampler: Sampler) -> tuple[str, ...]:
    """Say that the floating-point attack had nothing to look at, where that is so."""
    return (NO_FLOATS,) if task.float_attack and not sampler.saw_reals else ()


def _events(exploration: Exploration) -> list[Event]:
    return [exploration.selection.primary, *exploration.selection.profile]


def _count(
    task: Task, sampler: Sampler, exploration: Exploration
) -> tuple[list[Counts], list[Histogram], list[str]]:
    """Count the frozen events on fresh draws, call by call; also return doubts about these."""
    pair, events = exploration.pair, _events(exploration)
    certifying = task.draws - exploration.explored
    sample = exploration.sample
    pictures = [OutputHistogram.plan(event, sample) for event in events]
    hits = {side: np.zeros(len(events), dtype=np.int64) for side in ("left", "right")}
    doubts = []
    for side, data in (("left", pair.left), ("right", pair.right)):
        check, drawn = IndependenceCheck(sampler.name), 0
        calls = task.calls(certifying)
        for outputs in sampler.chunks(data, certifying, "certify", side, calls=calls):
            encoded = events[0].encoder(outputs)
            scores = {id(event.score): event.score for event in events}
            values = {key: score(encoded) for key, score in scores.items()}
            fired = np.array([event.fires(values[id(event.score)]) for event in events])
            hits[side] += fired.sum(axis=1)
            check.add(outputs, fired)
            if drawn < _PICTURE_DRAWS:
                for event, picture in zip(events, pictures, strict=True):
                    picture.add(side, encoded, values[id(event.score)])
            drawn += len(outputs)
        check.judge()
        doubts += [check.note] * bool(check.note)
    counts = [
        Counts(int(left), certifying, int(right), certifying)
        for left, right in zip(hits["left"], hits["right"], strict=True)
    ]
    return counts, [picture.done() for picture in pictures], doubts


def _certify(
    task: Task,
    sampler: Sampler,
    exploration: Exploration,
    counts: Sequence[Counts],
    histograms: Sequence[Histogram],
) -> Certificate:
    events, grid = _events(exploration), task.grid
    shares = _shares(len(events))
    bounds = [
        RateBounds.from_counts(seen, event.likelier, task.failure_prob * share, event.target)
        for seen, event, share in zip(counts, events, shares, strict=True)
    ]
    guesses = [rates_seen(c, event.likelier) for c, event in zip(counts, events, strict=True)]
    certified = np.array([max(b.lower_delta(e) for b in bounds) for e in grid])
    estimated = np.array([max(g.lower_delta(e) for g in guesses) for e in grid])
    # Of a curve the point may be chosen after the fact, because the certified profile holds
    # everywhere at once.
    point = task.claim.point or exploration.selection.point
    if task.claim.point is None and certified.any():
        point = task.worst_point(certified)
    # The witness, estimates and counts belong to the event that gives the bound beside them; all
    # bounds hold together, so it may be picked after the fact too.
    epsilons = [b.lower_epsilon(point[1]) for b in bounds]
    deltas = [b.lower_delta(point[0]) for b in bounds]
    for_epsilon, for_delta = int(np.argmax(epsilons)), int(np.argmax(deltas))
    event = events[for_epsilon]
    best = for_epsilon if epsilons[for_epsilon] > point[0] else for_delta
    refuted = epsilons[for_epsilon] > point[0] or deltas[for_delta] > point[1]
    return Certificate.of(
        task,
        exploration.pair,
        point,
        epsilon=Bound(
            guesses[for_epsilon].lower_epsilon(point[1]),
            epsilons[for_epsilon],
            counts[for_epsilon],
        ),
        delta=Bound(guesses[for_delta].lower_delta(point[0]), deltas[for_delta], counts[for_delta]),
        certified=certified,
        estimated=estimated,
        method="exact joint bound of two binomials, on fresh draws",
        explored=exploration.explored,
        certifying=task.draws - exploration.explored,
        witness=Witness(
            event.description,
            event.likelier,
            counts[for_epsilon],
            *bounds[for_epsilon].worst_case(point[1]),
        ),
        histogram=histograms[for_epsilon],
        mechanism_seconds=sampler.seconds,
        refuted=refuted,
        p_value=_p_value(task, counts[best], events[best], shares[best], point) if refuted else 1.0,
        event=event,
        bounds=tuple(bounds),
        search=exploration.search,
        notes=no_floats_note(task, sampler),
    )


def _p_value(
    task: Task, counts: Counts, event: Event, share: float, point: tuple[float, float]
) -> float:
    """Return a failure probability, shared as ever, at which this event refutes the claim.

    The regions of falling failure probability are nested, so that the smallest is a p-value; it is
    looked for to a fifth of its logarithm, and not below 1e-30. Of a claim that is refuted.
    """

    def falls(log_prob: float) -> bool:
        failure_prob = math.exp(log_prob) * share
        bound = RateBounds.from_counts(counts, event.likelier, failure_prob, event.target)
        return bound.lower_epsilon(point[1]) > point[0] or bound.lower_delta(point[0]) > point[1]

    low, high = _LEAST_LOG_PROB, math.log(task.failure_prob)
    if falls(low):
        return math.exp(low)
    while high - low > 0.2 * abs(high):
        middle = (low + high) / 2
        low, high = (low, middle) if falls(middle) else (middle, high)
    return math.exp(high)


def _shares(events: int) -> list[float]:
    """Part of failure_prob that each event gets, settled before the certifying draws."""
    if events == 1:
        return [1.0]
    return [PRIMARY_SHARE] + [(1 - PRIMARY_SHARE) / (events - 1)] * (events - 1)


def rates_seen(counts: Counts, likelier: str) -> RateBounds:
    """Rates as observed, half a draw away from 0 and 1 so that estimates stay finite."""
    c = counts if likelier == "left" else counts.swapped()
    likely = np.array([(c.hits_left + 0.5) / (c.draws_left + 1)])
    rare = np.array([(c.hits_right + 0.5) / (c.draws_right + 1)])
    return RateBounds(likely, rare, 1.0)
