"""The search among all pairs of many values: draws belong to values, and not to pairs.

K values have K (K - 1) / 2 pairs, but the draws of a value serve all its pairs. Each round draws on
the remaining values, ranks all their pairs by one comparison, and drops the values that belong to
no good pair. The last pairs are judged by frozen events on fresh draws, as in any search.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import MechanismError
from dpaudit.events import Goal, separations
from dpaudit.mechanisms import Sampler, joined
from dpaudit.neighbors import AllPairs, NeighborPair
from dpaudit.search.candidates import FATAL, Candidate, best_first
from dpaudit.search.halving import FINALISTS, SearchResult, judged
from dpaudit.search.record import FINAL, SearchRecord

Floats = NDArray[np.float64]

FEWEST_DRAWS = 8
"""Least number of draws of a value in one round."""

_FEW = 6  # Number of values at which the rounds end.
_DROPPED = 4  # Each round keeps one value in this many.
_LAST_SHARE = 0.3  # Share of the budget for the last pairs.


def least_budget(values: int) -> int:
    """Return the smallest number of draws per dataset that searches all pairs of some values."""
    rounds, last = FEWEST_DRAWS * values / 2, FEWEST_DRAWS * FINALISTS
    return math.ceil(max(rounds / (1 - _LAST_SHARE), last / _LAST_SHARE))


def search_values(
    where: AllPairs,
    sampler: Sampler,
    budget: int,
    goal_at: Callable[[NeighborPair], Goal],
    allowed: Callable[[Any, Any], float],
    *,
    delta: float | None,
    rng: np.random.Generator,
) -> SearchResult:
    """Search for the pair of values on which a claim is exceeded most.

    Parameters
    ----------
    where : AllPairs
        The values.
    sampler : Sampler
        Source of draws.
    budget : int
        Draws per dataset, at least :func:`least_budget`. Two draws, on any values, are one draw
        per dataset.
    goal_at : callable
        ``goal_at(pair)`` returns the goal of an audit of a pair.
    allowed : callable
        ``allowed(x, y) > 0`` returns the number by which the expected epsilon at a pair of values
        is divided, such as the claimed epsilon. It is ``inf`` if nothing is claimed.
    delta : float or None
        The claimed delta; None for a curve.
    rng : numpy.random.Generator
        Seed of the learner of events.
    """
    return _Values(where, sampler, budget, goal_at, allowed, delta, rng).run()


@dataclass(eq=False)
class _Values:
    """State of one search."""

    where: AllPairs
    sampler: Sampler
    budget: int
    goal_at: Callable[[NeighborPair], Goal]
    allowed: Callable[[Any, Any], float]
    delta: float | None
    rng: np.random.Generator
    spent: int = 0
    drawn: dict[int, list[NDArray[Any]]] = field(init=False)

    def __post_init__(self) -> None:
        self.drawn = {at: [] for at in range(len(self.where.values))}

    def run(self) -> SearchResult:
        alive, draws = list(self.drawn), int(2 * self.budget * (1 - _LAST_SHARE))
        rounds = max(math.ceil(math.log(len(alive) / _FEW, _DROPPED)), 0) + 1
        rounds = min(rounds, max(draws // (FEWEST_DRAWS * len(alive)), 1))
        allowed = self.where.of_pairs(self.allowed)
        pairs: list[tuple[int, int]] = []
        for number in range(rounds):
            each = max((draws - self.spent) // ((rounds - number) * len(alive)), FEWEST_DRAWS)
            for at in alive:
                self.drawn[at].append(self._draw(at, each, f"round {number}", "left"))
            seen, claimed = self._separations(alive), allowed[np.ix_(alive, alive)]
            pairs = [(alive[i], alive[j]) for i, j in self.where.ranked(seen, claimed)]
            if number < rounds - 1:
                kept = [alive[at] for at in _kept(seen, claimed)]
                alive = kept if np.isfinite(_off_diagonal(allowed, kept)).any() else alive
        return self._final(pairs[:FINALISTS])

    def _draw(self, at: int, draws: int, role: str, side: str) -> NDArray[Any]:
        self.spent += draws
        self.sampler.turn()
        value = self.where.values[at]
        try:
            return self.sampler.draw(value, draws, f"value {at} {role}", side)
        except FATAL:
            raise
        except MechanismError as error:
            raise MechanismError(f"{error}. The value is {self.where.words(at)}") from error

    def _separations(self, alive: list[int]) -> Floats:
        try:
            return separations([joined(self.drawn[at]) for at in alive], self.delta)
        except (ValueError, TypeError, IndexError) as error:
            raise MechanismError(
                f"{self.sampler.name} must return outputs of one kind for all values, or a pair "
                f"must be named: the outputs of {self.where.name} cannot be compared ({error})"
            ) from error

    def _final(self, pairs: list[tuple[int, int]]) -> SearchResult:
        """Judge the last pairs on fresh draws of their values, and return the best pair."""
        values = dict.fromkeys(itertools.chain(*pairs))
        each = max((2 * self.budget - self.spent) // len(values), FEWEST_DRAWS)
        fresh = {at: self._draw(at, each, "final", "left") for at in values}
        finalists = []
        for index, (i, j) in enumerate(pairs):
            pair = self.where.pair(i, j)
            words = pair.describe().removeprefix(f"{pair.recipe}: ")
            nowhere = np.empty(0)
            finalist = Candidate(index, -1, nowhere, {}, _returning(pair), FINAL, words)
            finalist.samples = [
                (joined(self.drawn[i]), joined(self.drawn[j])),
                (fresh[i], fresh[j]),
            ]
            goal = replace(self.goal_at(pair), careful=True)
            expected, separation = judged(finalist, goal, self.rng)
            finalist.score = expected / self.allowed(pair.left, pair.right), separation
            finalists.append(finalist)
        best = best_first(finalists)[0]
        pair = best.make()
        self.sampler.begin(pair.left, pair.right)
        spent = -(-self.spent // 2)
        count = len(self.where.values)
        record = SearchRecord(
            f"{count:,} values",
            (),
            tuple(one.trial() for one in finalists),
            spent,
            pairs=count * (count - 1) // 2,
            spaces=0,
        )
        return SearchResult(pair, record, best.drawn())


def _returning(pair: NeighborPair) -> Callable[[], NeighborPair]:
    return lambda: pair


def _off_diagonal(numbers: Floats, places: list[int]) -> Floats:
    some = numbers[np.ix_(places, places)]
    return np.asarray(some[np.triu_indices(len(some), 1)])


def _kept(seen: Floats, allowed: Floats) -> list[int]:
    """Return a part of the values: in turn, the best on the likelier and on the other side.

    A value may stand out on one side only. On the other side, many values may be equal.
    """
    ratios = np.where(allowed < np.inf, seen / np.where(allowed < np.inf, allowed, 1), -np.inf)
    likelier, other = (np.argsort(-ratios.max(axis=axis), kind="stable") for axis in (1, 0))
    turns = itertools.chain.from_iterable(zip(likelier.tolist(), other.tolist(), strict=True))
    return list(itertools.islice(dict.fromkeys(turns), max(len(ratios) // _DROPPED, _FEW)))
