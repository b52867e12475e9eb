"""Certify by counts: how often frozen events fire on fresh draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.certificate import Bound, Certificate
from dpaudit.engine.explore import Exploration, explore
from dpaudit.engine.pictures import OutputHistogram
from dpaudit.engine.task import EXPLORE_SHARE, PRIMARY_SHARE, Task
from dpaudit.events import Event, Guess
from dpaudit.mechanisms import IndependenceCheck, Sampler
from dpaudit.results import Histogram, Witness
from dpaudit.stats import LEFT, RIGHT, Counts, GuessCounts, RateBounds, guess_bounds

NO_FLOATS = (
    "The floating-point attack did nothing: all outputs were whole numbers, booleans or labels, "
    "and no floating-point output was found whose bits could be read."
)

_METHODS = (
    "exact joint bound of two binomials, on fresh draws",
    "exact bound of right guesses among all guesses, on fresh draws at fair coins",
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
    tallies, histograms, doubts = _count(task, sampler, exploration, role)
    found = _certify(task, sampler, exploration, tallies, histograms)
    return replace(found, notes=(*found.notes, *doubts))


def no_floats_note(task: Task, sampler: Sampler) -> tuple[str, ...]:
    """Say that the floating-point attack had nothing to look at, where that is so."""
    return (NO_FLOATS,) if task.float_attack and not sampler.saw_reals else ()


@dataclass(frozen=True)
class Tally:
    """How often a frozen event fired, or where a guess was made, in the certifying draws.

    Parameters
    ----------
    chosen : Event or Guess
        What was counted.
    counts : Counts
        Of the event; of a guess, where left is guessed.
    right : Counts, optional
        Of a guess, where right is guessed.
    """

    chosen: Event | Guess
    counts: Counts
    right: Counts | None = None

    @property
    def likelier(self) -> str:
        """The side on which `pair_counts` calls it likelier."""
        return "left" if isinstance(self.chosen, Guess) else self.chosen.likelier

    @property
    def guesses(self) -> GuessCounts | None:
        """Right and wrong guesses, of a guess."""
        if self.right is None:
            return None
        c, d = self.counts, self.right
        return GuessCounts(
            c.hits_left + d.hits_right, c.hits_right + d.hits_left, c.draws_left + c.draws_right
        )

    @property
    def pair_counts(self) -> Counts:
        """Two counts whose rates bound privacy: of the event, or of right and wrong guesses."""
        seen = self.guesses
        return self.counts if seen is None else seen.as_counts()

    def bounds(self, failure_prob: float) -> RateBounds:
        """Bound the rates, except with probability `failure_prob`."""
        seen = self.guesses
        if seen is not None:
            return guess_bounds(seen, failure_prob)
        assert isinstance(self.chosen, Event)
        return RateBounds.from_counts(
            self.counts, self.chosen.likelier, failure_prob, self.chosen.target
        )

    def seen(self) -> RateBounds:
        """Rates as observed; no guarantee."""
        return rates_seen(self.pair_counts, self.likelier)


def tally_of(chosen: Event | Guess, left: NDArray[np.int64], right: NDArray[np.int64]) -> Tally:
    """Return the tally of how often left, right and neither was guessed on either side.

    Of an event, the guess is its likelier side where it fires, and the other one elsewhere.
    """
    n, m = int(left.sum()), int(right.sum())
    guessed = [Counts(int(left[at]), n, int(right[at]), m) for at in (LEFT, RIGHT)]
    if isinstance(chosen, Guess):
        return Tally(chosen, *guessed)
    return Tally(chosen, guessed[0 if chosen.likelier == "left" else 1])


def parts_of(chosen: Event | Guess) -> tuple[Event, ...]:
    """Return the events whose counts tell what there is to know."""
    return (chosen.left, chosen.right) if isinstance(chosen, Guess) else (chosen,)


def _chosen(exploration: Exploration) -> list[Event | Guess]:
    return [exploration.selection.primary, *exploration.selection.profile]


def _certifying_draws(task: Task, exploration: Exploration, role: str) -> dict[str, int]:
    """Return the draws of each side: as many on both, or for guesses as fair coins fall."""
    each = task.draws - exploration.explored
    if not isinstance(exploration.selection.primary, Guess):
        return {"left": each, "right": each}
    left = int(task.rng(role, "coins").binomial(2 * each, 0.5))
    return {"left": left, "right": 2 * each - left}


def _count(
    task: Task, sampler: Sampler, exploration: Exploration, role: str
) -> tuple[list[Tally], list[Histogram], list[str]]:
    """Count what is frozen on fresh draws, call by call; also return doubts about these.

    Given how the coins fell, the draws of either side are independent and as many as these say; so
    joint regions of events hold beside a guess, with other draws on either side.
    """
    pair, chosen = exploration.pair, _chosen(exploration)
    certifying = _certifying_draws(task, exploration, role)
    sample = exploration.sample
    pictures = [OutputHistogram.plan(parts_of(one)[0], sample) for one in chosen]
    events = [event for one in chosen for event in parts_of(one)]
    hits = {side: np.zeros(len(events), dtype=np.int64) for side in certifying}
    doubts = []
    for side, data in (("left", pair.left), ("right", pair.right)):
        check, drawn = IndependenceCheck(sampler.name), 0
        calls = task.calls(certifying[side])
        for outputs in sampler.chunks(data, certifying[side], "certify", side, calls=calls):
            encoded = events[0].encoder(outputs)
            scores = {id(event.score): event.score for event in events}
            values = {key: score(encoded) for key, score in scores.items()}
            fired = np.array([event.fires(values[id(event.score)]) for event in events])
            hits[side] += fired.sum(axis=1)
            check.add(outputs, fired)
            if drawn < _PICTURE_DRAWS:
                for one, picture in zip(chosen, pictures, strict=True):
                    picture.add(side, encoded, values[id(one.score)])
            drawn += len(outputs)
        check.judge()
        doubts += [check.note] * bool(check.note)
    counts = iter(
        Counts(int(left), certifying["left"], int(right), certifying["right"])
        for left, right in zip(hits["left"], hits["right"], strict=True)
    )
    tallies = [Tally(one, *(next(counts) for _ in parts_of(one))) for one in chosen]
    return tallies, [picture.done() for picture in pictures], doubts


def _certify(
    task: Task,
    sampler: Sampler,
    exploration: Exploration,
    tallies: Sequence[Tally],
    histograms: Sequence[Histogram],
) -> Certificate:
    grid = task.grid
    shares = _shares(len(tallies))
    bounds = [
        tally.bounds(task.failure_prob * share)
        for tally, share in zip(tallies, shares, strict=True)
    ]
    seen = [tally.seen() for tally in tallies]
    certified = np.array([max(b.lower_delta(e) for b in bounds) for e in grid])
    estimated = np.array([max(g.lower_delta(e) for g in seen) for e in grid])
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
    tally = tallies[for_epsilon]
    best = for_epsilon if epsilons[for_epsilon] > point[0] else for_delta
    refuted = epsilons[for_epsilon] > point[0] or deltas[for_delta] > point[1]
    return Certificate.of(
        task,
        exploration.pair,
        point,
        epsilon=Bound(
            seen[for_epsilon].lower_epsilon(point[1]), epsilons[for_epsilon], tally.pair_counts
        ),
        delta=Bound(
            seen[for_delta].lower_delta(point[0]),
            deltas[for_delta],
            tallies[for_delta].pair_counts,
        ),
        certified=certified,
        estimated=estimated,
        method=_METHODS[isinstance(tally.chosen, Guess)],
        explored=exploration.explored,
        certifying=task.draws - exploration.explored,
        witness=Witness(
            tally.chosen.description,
            tally.likelier,
            tally.counts,
            *bounds[for_epsilon].worst_case(point[1]),
            right=tally.right,
        ),
        histogram=histograms[for_epsilon],
        mechanism_seconds=sampler.seconds,
        refuted=refuted,
        p_value=_p_value(task, tallies[best], shares[best], point) if refuted else 1.0,
        event=tally.chosen,
        bounds=tuple(bounds),
        search=exploration.search,
        notes=no_floats_note(task, sampler),
    )


def _p_value(task: Task, tally: Tally, share: float, point: tuple[float, float]) -> float:
    """Return a failure probability, shared as ever, at which these counts refute the claim.

    The regions of falling failure probability are nested, so that the smallest is a p-value; it is
    looked for to a fifth of its logarithm, and not below 1e-30. Of a claim that is refuted.
    """

    def falls(log_prob: float) -> bool:
        failure_prob = math.exp(log_prob) * share
        bound = tally.bounds(failure_prob)
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
