"""Certify by counts: how often frozen events fire on fresh draws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dpaudit.engine.certificate import Bound, Certificate
from dpaudit.engine.explore import Draws, Exploration, explore
from dpaudit.engine.few import RANKED_SHARE, RankedTally, is_number, ranked
from dpaudit.engine.pictures import Pictures
from dpaudit.engine.tally import Tally, parts_of
from dpaudit.engine.task import EXPLORE_SHARE, PRIMARY_SHARE, Task
from dpaudit.events import Event, Guess
from dpaudit.mechanisms import IndependenceCheck, Sampler, joined
from dpaudit.results import Histogram, Witness
from dpaudit.stats import Counts, RateBounds

NO_FLOATS = (
    "The floating-point attack did nothing: all outputs were whole numbers, booleans or labels, "
    "and no floating-point output was found whose bits could be read."
)

_LEAST_LOG_PROB = math.log(1e-30)
_LUCK = 2.0
"""Of stored outputs so many square roots are kept back: then fair coins seldom ask for more of a
side than there is. Where they do, or forget a side, they are tossed again, and what is certified is
wrong with at most its probability before, divided by that of coins that fit."""

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
    return look_at(task, task.sampler(mechanism, role), role)


def look_at(task: Task, sampler: Sampler, role: str) -> Certificate:
    """Explore, freeze, draw afresh, certify, with what draws the outputs, or hands them out."""
    coins = order = None
    if task.is_small:
        most = task.draws if task.stored is None else min(task.stored.values())
        coins = _Coins.toss(most, role, task)
        order = coins.in_order(task.rng(role, "order of coins"))
    exploration = explore(task, sampler, role, share=EXPLORE_SHARE, coins=order)
    certifying, fit = _certifying_draws(task, exploration, role, coins, order)
    counted = replace(_count(task, sampler, exploration, certifying), fit=fit)
    if coins is not None and is_number(exploration.selection.primary.encoder):
        drawn = exploration.draws, counted.outputs
        left, right = (joined([part[side] for part in drawn]) for side in (0, 1))
        encoder = exploration.selection.primary.encoder
        by_rank = ranked(task, encoder, left, right, role)
        counted = counted.beside(by_rank, drawn)
    found = _certify(task, sampler, exploration, counted)
    return replace(found, notes=(*found.notes, *counted.doubts))


def no_floats_note(task: Task, sampler: Sampler) -> tuple[str, ...]:
    """Say that the floating-point attack had nothing to look at, where that is so."""
    return (NO_FLOATS,) if task.float_attack and not sampler.saw_reals else ()


def _chosen(exploration: Exploration) -> list[Event | Guess]:
    return [exploration.selection.primary, *exploration.selection.profile]


@dataclass(frozen=True)
class _Counted:
    """What the certifying draws gave.

    Parameters
    ----------
    tallies : tuple of Tally or RankedTally
        Primary first, then the profile's, then guesses by rank.
    histograms : tuple of Histogram
        One for each.
    doubts : tuple of str
        About the independence of the draws.
    outputs : (ndarray, ndarray), optional
        The draws themselves, where there are few.
    fit : float
        Probability of coins that did not have to be tossed again.
    """

    tallies: tuple[Tally | RankedTally, ...]
    histograms: tuple[Histogram, ...]
    doubts: tuple[str, ...]
    outputs: Draws
    fit: float = 1.0

    @property
    def certifying(self) -> int:
        """Draws per dataset that certified, on the average of both."""
        first = self.tallies[0].counts
        return (first.draws_left + first.draws_right) // 2

    def beside(self, by_rank: Sequence[RankedTally], drawn: Sequence[Draws]) -> _Counted:
        """Return the same with guesses by rank, whose picture is of all draws."""
        histograms: list[Histogram] = []
        for tally in by_rank:
            event = tally.chosen.left
            picture = Pictures([event], joined([x for d in drawn for x in d]))
            for side, at in (("left", 0), ("right", 1)):
                picture.add(side, event.encoder(joined([d[at] for d in drawn])))
            histograms += picture.done()
        return replace(
            self,
            tallies=(*self.tallies, *by_rank),
            histograms=(*self.histograms, *histograms),
        )


@dataclass(frozen=True)
class _Coins:
    """Fair coins: how many there are, how many say left, and how probable coins are that fit."""

    tossed: int
    left: int
    fit: float

    @classmethod
    def toss(cls, most: int, role: str, task: Task) -> _Coins:
        """Toss for so many draws, or, where outputs are stored, for as many of `most` a side."""
        tossed, limit = 2 * most, 2 * most
        if task.stored is not None:
            tossed = max(2 * most - math.ceil(_LUCK * math.sqrt(2 * most)), 2)
            limit = most
        fit = float(stats.binom.cdf(min(limit, tossed - 1), tossed, 0.5))
        fit -= float(stats.binom.cdf(max(tossed - limit, 1) - 1, tossed, 0.5))
        rng = task.rng(role, "coins")
        while True:
            left = int(rng.binomial(tossed, 0.5))
            if 0 < left < tossed and max(left, tossed - left) <= limit:
                return cls(tossed, left, fit)

    def in_order(self, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Say of each draw whether it is of the left side."""
        return rng.permutation(np.arange(self.tossed) < self.left)


def _certifying_draws(
    task: Task,
    exploration: Exploration,
    role: str,
    coins: _Coins | None,
    order: NDArray[np.bool_] | None,
) -> tuple[dict[str, int], float]:
    """Return the draws of each side, as coins fall or alike, and the probability that coins fit."""
    explored = exploration.explored
    sides = dict.fromkeys(("left", "right"), task.draws - explored)
    if task.stored is not None:
        sides = {side: there - explored for side, there in task.stored.items()}
    if coins is not None and order is not None:
        left, tossed = int(order[2 * explored :].sum()), coins.tossed - 2 * explored
    elif isinstance(exploration.selection.primary, Guess):
        coins = _Coins.toss(min(sides.values()), role, task)
        left, tossed = coins.left, coins.tossed
    else:
        return sides, 1.0
    return {"left": left, "right": tossed - left}, coins.fit


def _count(
    task: Task, sampler: Sampler, exploration: Exploration, certifying: Mapping[str, int]
) -> _Counted:
    """Count what is frozen on fresh draws, call by call.

    Given how the coins fell, the draws of either side are independent and as many as these say; so
    joint regions of events hold beside a guess, with other draws on either side.
    """
    pair, chosen = exploration.pair, _chosen(exploration)
    sample = exploration.sample
    pictures = Pictures([parts_of(one)[0] for one in chosen], sample)
    events = [event for one in chosen for event in parts_of(one)]
    hits = {side: np.zeros(len(events), dtype=np.int64) for side in certifying}
    doubts: list[str] = []
    kept: list[NDArray[Any]] = []
    for side, data in (("left", pair.left), ("right", pair.right)):
        check, drawn = IndependenceCheck(sampler.name), 0
        calls = task.calls(certifying[side])
        few: list[NDArray[Any]] = []
        for outputs in sampler.chunks(data, certifying[side], "certify", side, calls=calls):
            encoded = events[0].encoder(outputs)
            scores = {id(event.score): event.score for event in events}
            values = {key: score(encoded) for key, score in scores.items()}
            fired = np.array([event.fires(values[id(event.score)]) for event in events])
            hits[side] += fired.sum(axis=1)
            check.add(outputs, fired)
            if drawn < _PICTURE_DRAWS:
                pictures.add(side, encoded, values)
            drawn += len(outputs)
            if task.is_small:
                few.append(outputs)
        check.judge()
        doubts += [check.note] * bool(check.note)
        kept.append(joined(few) if few else np.empty(0))
    counts = iter(
        Counts(int(left), certifying["left"], int(right), certifying["right"])
        for left, right in zip(hits["left"], hits["right"], strict=True)
    )
    tallies = (Tally(one, *(next(counts) for _ in parts_of(one))) for one in chosen)
    return _Counted(tuple(tallies), pictures.done(), tuple(doubts), (kept[0], kept[1]))


def _certify(
    task: Task, sampler: Sampler, exploration: Exploration, counted: _Counted
) -> Certificate:
    grid, tallies = task.grid, counted.tallies
    shares = _shares(tallies)
    failure_prob = task.failure_prob * counted.fit
    bounds = [
        tally.bounds(failure_prob * share) for tally, share in zip(tallies, shares, strict=True)
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
    tally, bound = tallies[for_epsilon], bounds[for_epsilon]
    best = for_epsilon if epsilons[for_epsilon] > point[0] else for_delta
    refuted = epsilons[for_epsilon] > point[0] or deltas[for_delta] > point[1]
    share = shares[best] * counted.fit
    rates = bound if isinstance(bound, RateBounds) else seen[for_epsilon]
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
        method=tally.method,
        explored=exploration.explored,
        certifying=counted.certifying,
        witness=Witness(
            tally.chosen.description,
            tally.likelier,
            tally.counts,
            *rates.worst_case(point[1]),
            right=tally.right,
        ),
        histogram=counted.histograms[for_epsilon],
        mechanism_seconds=sampler.seconds,
        refuted=refuted,
        p_value=_p_value(task, tallies[best], share, point) if refuted else 1.0,
        event=tally.chosen,
        bounds=tuple(bound for bound in bounds if isinstance(bound, RateBounds)),
        search=exploration.search,
        notes=no_floats_note(task, sampler),
    )


def _p_value(
    task: Task, tally: Tally | RankedTally, share: float, point: tuple[float, float]
) -> float:
    """Return a failure probability, shared as ever, at which these counts refute the claim.

    Looked for to a fifth of its logarithm, and not below 1e-30. Of a claim that is refuted. Joint
    regions order the outcomes anew for each failure probability, so that they are nested nearly
    always and not by proof; that this is a p-value is looked at by enumeration in the tests.
    """
    if isinstance(tally, RankedTally):
        return min(max(tally.p_value() / share, math.exp(_LEAST_LOG_PROB)), task.failure_prob)

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


def _shares(tallies: Sequence[Tally | RankedTally]) -> list[float]:
    """Part of failure_prob that each event gets, settled before the certifying draws."""
    by_rank = sum(isinstance(tally, RankedTally) for tally in tallies)
    events = len(tallies) - by_rank
    left = 1.0 - RANKED_SHARE * (by_rank > 0)
    few = [RANKED_SHARE / by_rank] * by_rank if by_rank else []
    if events == 1:
        return [left, *few]
    return [left * PRIMARY_SHARE] + [left * (1 - PRIMARY_SHARE) / (events - 1)] * (events - 1) + few
