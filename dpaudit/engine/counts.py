"""Certification by the number of fresh draws in which frozen events fire.

Guesses, by rank or by a frozen rule, need draws whose side was chosen by a fair coin. Joint regions
of events need no coins. A joint region holds if the numbers of draws of the two sides depend only
on chance and on the sizes of both sides. If outputs are stored, one side may have more outputs than
the other side. An event counts all outputs that were not used to explore, with or without a coin. A
guess counts only the outputs with a coin. This design is sound for the following reasons:

- Outputs are shuffled. Each output is used once, in this order: to explore, with a coin, without a
  coin. Only the coins and the sizes determine how many outputs of each side are explored and how
  many get a coin. Given the coins and the exploration, an event counts outputs that are fresh,
  independent and of a fixed number. So the event's region is wrong with probability at most its
  share of failure_prob.

- A guess ignores outputs without a coin, so its bound is wrong with probability at most its own
  share.

- Two bounds may use the same draws. The union bound over the shares holds for any dependence
  between the bounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit.engine.certificate import (
    RANKED_SHARE,
    Bound,
    Certificate,
    RankedTally,
    Tally,
    is_number,
    parts_of,
    ranked,
)
from dpaudit.engine.evidence import Evidence
from dpaudit.engine.explore import Draws, Exploration, all_draws, explore
from dpaudit.engine.notes import (
    not_covered,
    notes_on_draws,
    notes_on_outputs,
    suspiciously_constant,
)
from dpaudit.engine.pictures import picture
from dpaudit.engine.task import EXPLORE_SHARE, PRIMARY_SHARE, Run, Task, divide
from dpaudit.events import Event, Guess
from dpaudit.mechanisms import Call, IndependenceCheck, Sampler, joined
from dpaudit.results import Witness
from dpaudit.stats import Counts, RateBounds

_LEAST_LOG_PROB = math.log(1e-30)
_LUCK = 2.0
"""Stored outputs for which no coin is tossed, in square roots of their number. Fair coins then
seldom need more outputs of a side than are available. If they do, or if one side gets none, the
coins are tossed again. A bound is then wrong with at most its probability before, divided by the
probability of coins that fit."""

_SIDES = ("left", "right")

_PICTURE_BYTES = 4 * 10**6  # bytes of one side (500,000 numbers); a picture needs no more


@dataclass(frozen=True)
class FrozenCounts:
    """The events and guesses to count, and the numbers of certifying draws.

    Parameters
    ----------
    sampler : Sampler
        Draws from the mechanism.
    exploration : Exploration
        The pair, the events and the exploration draws.
    fresh : _Fresh
        The numbers of certifying draws.
    by_rank : bool
        Whether all draws, including exploration draws, are also guessed by rank.
    evidence : Evidence, optional
        Bets on the primary event.
    """

    sampler: Sampler
    exploration: Exploration
    fresh: _Fresh
    by_rank: bool
    evidence: Evidence | None = None

    @property
    def chosen(self) -> list[Event | Guess]:
        """Return the events and guesses to count, with the primary one first."""
        return [self.exploration.selection.primary, *self.exploration.selection.profile]

    @property
    def weights(self) -> list[float]:
        """Return the weights of events and guesses, and then of guesses by rank in two directions.

        Each weight is multiplied by the probability that the coins fit (see `_LUCK`).
        """
        profile = len(self.chosen) - 1
        left = 1 - RANKED_SHARE * self.by_rank
        primary = left * (PRIMARY_SHARE if profile else 1.0)
        weights = [primary] + [left * (1 - PRIMARY_SHARE) / max(profile, 1)] * profile
        weights += [RANKED_SHARE / 2] * (2 * self.by_rank)
        return [weight * self.fresh.fit for weight in weights]


class ByCounts:
    """Counts of the fresh draws in which frozen events fire."""

    def explore(self, run: Run) -> FrozenCounts:
        """Choose the pair and the events, and toss the coins for the certifying draws."""
        task, sampler = run.task, run.sampler()
        coins = order = None
        if task.is_small:
            most = task.draws if task.stored is None else min(task.stored.values())
            coins = _Coins.toss(most, run)
            order = coins.in_order(run.rng("order of coins"))
        exploration = explore(run, sampler, share=EXPLORE_SHARE, coins=order)
        fresh = _Fresh.of(run, exploration, coins)
        by_rank = coins is not None and is_number(exploration.selection.primary.encoder)
        evidence = Evidence.of(run, exploration)
        return FrozenCounts(sampler, exploration, fresh, by_rank, evidence)

    def certify(self, frozen: FrozenCounts, run: Run) -> Certificate:
        """Count on fresh draws and bound the rates."""
        return _certify(run, frozen, *_count(run, frozen))


@dataclass(frozen=True)
class _Coins:
    """Number of fair coins, number of coins that chose left, and probability that the coins fit."""

    tossed: int
    left: int
    fit: float

    @classmethod
    def toss(cls, most: int, run: Run) -> _Coins:
        """Toss coins for `most` draws of each side.

        For stored outputs, toss at most as many coins as outputs are available.
        """
        tossed, limit = 2 * most, 2 * most
        if run.task.stored is not None:
            tossed = max(2 * most - math.ceil(_LUCK * math.sqrt(2 * most)), 2)
            limit = most
        # P(left <= k). scipy.special.bdtr returns NaN from 2^31 coins on.
        ends = [max(tossed - limit, 1) - 1, min(limit, tossed - 1)]
        too_few, not_too_many = (float(special.betainc(tossed - k, k + 1, 0.5)) for k in ends)
        fit = not_too_many - too_few
        rng = run.rng("coins")
        while True:
            left = int(rng.binomial(tossed, 0.5))
            if 0 < left < tossed and max(left, tossed - left) <= limit:
                return cls(tossed, left, fit)

    def in_order(self, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Return whether each draw, in order, is from the left side."""
        return rng.permutation(np.arange(self.tossed) < self.left)


@dataclass(frozen=True)
class _Fresh:
    """Numbers of certifying draws of each side.

    Parameters
    ----------
    at_coins : dict of str to int
        Draws that both events and guesses count. If there is a guess, coins decide the numbers of
        these draws.
    beyond : dict of str to int
        Draws that only events count, which are stored outputs without a coin.
    fit : float
        Probability that the coins fit and need not be tossed again.
    by_coins : bool
        Whether coins chose the side of each draw that an event counts. A guess needs coins.
    """

    at_coins: dict[str, int]
    beyond: dict[str, int]
    fit: float
    by_coins: bool = True

    @classmethod
    def of(cls, run: Run, exploration: Exploration, coins: _Coins | None) -> _Fresh:
        """Return the numbers of draws, from coins that were tossed before or are tossed here."""
        task, selection = run.task, exploration.selection
        explored, none = exploration.explored, dict.fromkeys(_SIDES, 0)
        there = dict.fromkeys(_SIDES, task.draws - explored)
        seen = dict(zip(_SIDES, map(len, exploration.draws), strict=True))
        if task.stored is not None:  # in this case there is one pair, with no other exploration
            there = {side: task.stored[side] - seen[side] for side in _SIDES}
        if coins is not None:
            left, tossed = coins.left - seen["left"], coins.tossed - 2 * explored
        elif isinstance(selection.primary, Guess):
            coins = _Coins.toss(min(there.values()), run)
            left, tossed = coins.left, coins.tossed
        else:
            return cls(there, none, 1.0, by_coins=False)
        at_coins = {"left": left, "right": tossed - left}
        chosen = selection.primary, *selection.profile
        if task.stored is None or not any(isinstance(x, Event) for x in chosen):
            return cls(at_coins, none, coins.fit)
        beyond = {side: there[side] - at_coins[side] for side in _SIDES}
        return cls(at_coins, beyond, coins.fit, by_coins=False)

    def seen(
        self, task: Task, sampler: Sampler, data: Any, side: str, reading: _Reading
    ) -> Iterator[tuple[_Seen, bool]]:
        """Yield the counts of one side for each call, and whether its draws have no coin."""
        parts = ("certify", self.at_coins[side]), ("certify beyond coins", self.beyond[side])
        for is_beyond, (role, draws) in enumerate(parts):
            calls = task.calls(draws)
            before = self.at_coins[side] if is_beyond else 0
            current = replace(reading, before=before)
            for seen in sampler.mapped(data, draws, role, side, current, calls=calls):
                yield seen, bool(is_beyond)

    def tossed(self, chosen: Event | Guess) -> bool:
        """Return whether coins chose the side of each draw that an event or a guess counts."""
        return self.by_coins or isinstance(chosen, Guess)

    def counted_by(self, chosen: Event | Guess) -> list[int]:
        """Return the number of draws of each side that an event or a guess counts."""
        rest = isinstance(chosen, Event)
        return [self.at_coins[side] + rest * self.beyond[side] for side in _SIDES]


class _Seen(NamedTuple):
    """The counts of one call of the mechanism.

    Parameters
    ----------
    hits : ndarray of int, shape (events,)
        Number of draws in which each event fires.
    call : Call
        Statistics for the check of independence.
    outputs : ndarray
        Draws that are kept for a picture or for guesses by rank.
    """

    hits: NDArray[np.int64]
    call: Call
    outputs: NDArray[Any]


@dataclass(frozen=True)
class _Reading:
    """Function that counts the draws of one call, in a worker or in this process.

    Parameters
    ----------
    events : tuple of Event
        The frozen events that are counted.
    before : int
        Number of draws of the same side in earlier parts.
    """

    events: tuple[Event, ...]
    before: int = 0

    def __call__(self, outputs: NDArray[Any], start: int) -> _Seen:
        """Count draws.

        The first draw has the number `start`.
        """
        encoded = self.events[0].encoder(outputs)
        scores = {id(event.score): event.score for event in self.events}
        values = {key: score(encoded) for key, score in scores.items()}
        fired = np.array([event.fires(values[id(event.score)]) for event in self.events])
        most = _PICTURE_BYTES // max(outputs.nbytes // len(outputs), 1)
        kept = outputs[: max(most - self.before - start, 0)]
        if len(kept) < len(outputs):
            kept = kept.copy()  # a view would keep all outputs in memory
        return _Seen(fired.sum(axis=1), IndependenceCheck.call(outputs, fired), kept)


def _count(
    run: Run, frozen: FrozenCounts
) -> tuple[list[Tally | RankedTally], list[Draws], tuple[str, ...]]:
    """Count the frozen events and guesses on fresh draws, call by call.

    Given the coins, the draws of each side are independent, and the number of draws is fixed.
    Therefore joint regions of events hold together with a guess, even if the two sides have
    different sizes.

    Returns
    -------
    tallies : list of Tally or RankedTally
        The primary tally comes first, then the tallies of the profile, and then the tallies of
        guesses by rank.
    drawn : list of (ndarray, ndarray)
        Outputs for a picture, of the left and right side. Outputs with coins come first.
    doubts : tuple of str
        Doubts about the independence of the draws.
    """
    task, sampler, fresh = run.task, frozen.sampler, frozen.fresh
    exploration, chosen = frozen.exploration, frozen.chosen
    pair = exploration.pair
    events = [event for one in chosen for event in parts_of(one)]
    needs_coins = np.array([isinstance(one, Guess) for one in chosen for _ in parts_of(one)])
    reading = _Reading(tuple(events))
    hits = {side: np.zeros(len(events), dtype=np.int64) for side in _SIDES}
    doubts: list[str] = []
    kept: list[list[NDArray[Any]]] = []
    for at, (side, data) in enumerate(zip(_SIDES, (pair.left, pair.right), strict=True)):
        check = IndependenceCheck(sampler.name)
        drawn: tuple[list[NDArray[Any]], list[NDArray[Any]]] = ([], [])
        for seen, is_beyond in fresh.seen(task, sampler, data, side, reading):
            hits[side] += np.where(is_beyond & needs_coins, 0, seen.hits)
            check.take(seen.call)
            drawn[is_beyond].append(seen.outputs)
        check.judge()
        doubts += [check.note] * bool(check.note)
        kept.append([joined(calls or [exploration.draws[at][:0]]) for calls in drawn])
    both = iter(zip(hits["left"], hits["right"], strict=True))
    tallies: list[Tally | RankedTally] = []
    for one in chosen:
        n, m = fresh.counted_by(one)
        of_one = [
            Counts(int(a), n, int(b), m) for a, b in itertools.islice(both, len(parts_of(one)))
        ]
        tallies.append(Tally(one, *of_one))
    by_coins, beyond = zip(*kept, strict=True)
    if frozen.by_rank:
        # Guesses by rank must use all draws, because the failure probability of all draws is spent
        # on them.
        assert [len(side) for side in by_coins] == [fresh.at_coins[side] for side in _SIDES]
        by_coins = all_draws(exploration.draws, by_coins)
        tallies += ranked(run, events[0].encoder, *by_coins)
    return tallies, [by_coins, beyond], tuple(doubts)


def _certify(
    run: Run,
    frozen: FrozenCounts,
    tallies: list[Tally | RankedTally],
    drawn: list[Draws],
    doubts: tuple[str, ...],
) -> Certificate:
    task, sampler, exploration = run.task, frozen.sampler, frozen.exploration
    grid = task.grid
    bounds = [
        tally.bounds(failure_prob)
        for tally, failure_prob in zip(tallies, run.failure_probs, strict=True)
    ]
    seen = [tally.seen() for tally in tallies]
    certified = np.array([max(b.lower_delta(e) for b in bounds) for e in grid])
    estimated = np.array([max(g.lower_delta(e) for g in seen) for e in grid])
    # The point of a curve may be chosen afterwards, because the certified profile holds at every
    # epsilon at the same time.
    point = task.claim.point or exploration.selection.point
    if task.claim.point is None and certified.any():
        point = task.worst_point(certified)
    # The witness, estimates and counts belong to the event of the reported bound. All bounds hold
    # together, so this event may be chosen afterwards, too.
    epsilons = [b.lower_epsilon(point[1]) for b in bounds]
    deltas = [b.lower_delta(point[0]) for b in bounds]
    for_epsilon, for_delta = int(np.argmax(epsilons)), int(np.argmax(deltas))
    tally, bound = tallies[for_epsilon], bounds[for_epsilon]
    best = for_epsilon if epsilons[for_epsilon] > point[0] else for_delta
    refuted = epsilons[for_epsilon] > point[0] or deltas[for_delta] > point[1]
    weights = frozen.weights
    rates = bound if isinstance(bound, RateBounds) else seen[for_epsilon]
    pictured = all_draws(*drawn) if isinstance(tally.chosen, Event) else drawn[0]
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
        certifying=(sum(frozen.fresh.at_coins.values()) + sum(frozen.fresh.beyond.values())) // 2,
        witness=Witness(
            tally.chosen.description,
            tally.likelier,
            tally.counts,
            *rates.worst_case(point[1]),
            right=tally.right,
            definition=tally.chosen.definition,
        ),
        histogram=picture(tally.chosen, *pictured),
        mechanism_seconds=sampler.seconds,
        refuted=refuted,
        p_value=_p_value(task, tallies[best], weights[best], point) if refuted else 1.0,
        event=tally.chosen,
        log_e_values=_log_e_values(run, frozen, tallies[0]),
        bounds=tuple(bound for bound in bounds if isinstance(bound, RateBounds)),
        search=exploration.search,
        notes=notes_on_draws(task, sampler) + notes_on_outputs(sampler, exploration.draws) + doubts,
        not_covered=not_covered(task, sampler, exploration.search),
        constant=suspiciously_constant(sampler, joined(exploration.draws))
        if all(_is_certain(tally) for tally in tallies if isinstance(tally, Tally))
        else "",
    )


def _log_e_values(
    run: Run, frozen: FrozenCounts, primary: Tally | RankedTally
) -> tuple[float, ...]:
    """Return the logarithms of the e-values of the bets on the primary event."""
    if frozen.evidence is None:
        return ()
    assert isinstance(primary, Tally)
    coins, fit = frozen.fresh.tossed(primary.chosen), frozen.fresh.fit
    return frozen.evidence.log_e_values(primary, run, coins=coins, fit=fit)


def _is_certain(tally: Tally) -> bool:
    """Return whether each event fires in all draws of both sides, or in no draw."""
    return all(
        counts.hits_left + counts.hits_right in (0, counts.draws_left + counts.draws_right)
        for counts in (tally.counts, tally.right)
        if counts is not None
    )


def _p_value(
    task: Task, tally: Tally | RankedTally, weight: float, point: tuple[float, float]
) -> float:
    """Return a failure probability, divided as usual between bounds, at which the claim is refuted.

    Use this function only for a refuted claim. The search stops at a relative accuracy of 1/5 in
    the logarithm, and at 1e-30. Joint regions order the outcomes separately at each failure
    probability. So the regions are nested in nearly all cases, but the nesting is not proved. The
    tests check by enumeration that the result is a p-value.
    """
    if isinstance(tally, RankedTally):
        return min(max(tally.p_value() / weight, math.exp(_LEAST_LOG_PROB)), task.failure_prob)

    def falls(log_prob: float) -> bool:
        bound = tally.bounds(divide(math.exp(log_prob), [weight])[0])
        return bound.lower_epsilon(point[1]) > point[0] or bound.lower_delta(point[0]) > point[1]

    low, high = _LEAST_LOG_PROB, math.log(task.failure_prob)
    if falls(low):
        return math.exp(low)
    while high - low > 0.2 * abs(high):
        middle = (low + high) / 2
        low, high = (low, middle) if falls(middle) else (middle, high)
    return math.exp(high)
