"""The search itself: a design, successive halving, local rounds, finalists judged afresh.

A candidate is judged by what its best event is expected to certify
(:attr:`dpaudit.events.portfolio.Selection.objective`), from its own draws. Only exploration draws
are used, so however long the search, it costs nothing of `failure_prob`: the pair that it returns
is certified on draws that it never saw.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.errors import ArgumentError, MechanismError
from dpaudit.events import Goal, learn
from dpaudit.mechanisms import Sampler
from dpaudit.neighbors import NeighborPair
from dpaudit.search.record import FINAL, SearchRecord, Trial
from dpaudit.search.spaces import (
    Choice,
    Point,
    SearchSpace,
    design_points,
    in_words,
    no_valid_pair,
    plain,
)

Array = NDArray[Any]

DESIGN_SHARE, LOCAL_SHARE = 0.6, 0.25
"""Parts of the budget for the design and for the local rounds; the finalists get the rest."""

FIRST_DRAWS = 16
"""First look at a candidate, where the budget allows; it decides how many there are."""

LEAST_FIRST_DRAWS = 8
LEAST_CANDIDATES, MOST_CANDIDATES = 8, 256
SURVIVORS = 4
LOCAL_ROUNDS = 4
LOCAL_CANDIDATES = 4
CENTRES = 3
FINALISTS = 4

_LEAST_FINAL = 32
_TRIES = 20


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The most promising pair, how it was found, and the draws that it was given on the way.

    Parameters
    ----------
    pair : NeighborPair
        The winner.
    record : SearchRecord
        All trials, as plain data.
    drawn : tuple of two arrays, shape [draws, ...]
        Draws of the winner, left and right: exploration draws, which no bound may be based on.
    """

    pair: NeighborPair
    record: SearchRecord
    drawn: tuple[Array, Array]


@dataclass(eq=False)
class Candidate:
    """A trial under way."""

    index: int
    point: Point
    parameters: dict[str, Any]
    pair: NeighborPair
    stage: str
    looks: list[tuple[Array, Array]] = field(default_factory=list)
    score: tuple[float, float] = (0.0, 0.0)

    @property
    def draws(self) -> int:
        """Draws per dataset so far."""
        return sum(len(left) for left, _ in self.looks)

    def drawn(self) -> tuple[Array, Array]:
        """All draws so far."""
        left, right = zip(*self.looks, strict=True)
        return np.concatenate(left), np.concatenate(right)


def halvings(candidates: int, keep: int) -> Iterator[tuple[int, int]]:
    """Yield each round's number of candidates, and what it adds to each, in first looks.

    Every round halves the candidates and doubles the draws of those that are left, down to `keep`
    of them, or a few more than that where numbers are odd.

    Examples
    --------
    >>> list(halvings(17, keep=4))
    [(17, 1), (8, 1), (4, 2)]
    """
    yield candidates, 1
    looks = 1
    while candidates >= 2 * keep:
        candidates //= 2
        yield candidates, looks
        looks *= 2


def halving_looks(candidates: int, keep: int) -> int:
    """Return how many first looks a halving of so many candidates costs."""
    return sum(alive * looks for alive, looks in halvings(candidates, keep))


def _affordable(budget: int, keep: int, least: int, most: int) -> int:
    """Return the largest power of two of candidates that can be halved from `FIRST_DRAWS` each."""
    count = least
    while 2 * count <= most and halving_looks(2 * count, keep) * FIRST_DRAWS <= budget:
        count *= 2
    return count


def _extra_points(dimension: int, count: int) -> Iterator[Point]:
    """Yield the centre and as many corners as `count` leaves room for."""
    yield np.full(dimension, 0.5)
    for corner in itertools.islice(itertools.product((0.0, 1.0), repeat=dimension), count - 1):
        yield np.array(corner)


LEAST_BUDGET = math.ceil(
    halving_looks(LEAST_CANDIDATES + LEAST_CANDIDATES // 4, SURVIVORS)
    * LEAST_FIRST_DRAWS
    / DESIGN_SHARE
)
"""Draws per dataset of the smallest search."""


def search(
    space: SearchSpace,
    sampler: Sampler,
    budget: int,
    goal: Goal,
    *,
    rng: np.random.Generator,
) -> SearchResult:
    """Look for the pair on which most can be certified.

    Parameters
    ----------
    space : SearchSpace
        Where to look. When it holds fewer parameters than the design has room for, all of them
        are tried.
    sampler : Sampler
        Draws from the mechanism; trial 17 draws under the roles "search 17 look 0", ...
    budget : int
        Draws per dataset in all, at least ``LEAST_BUDGET``; all are spent.
    goal : Goal
        What the audit is going to certify.
    rng : numpy.random.Generator
        Fixes all trials.

    Raises
    ------
    ArgumentError
        For a budget that is too small, or a space without valid pairs.

    Notes
    -----
    1. A shifted Sobol design with the centre and some corners. The candidates get one look of
       `FIRST_DRAWS` draws or more, then the better half twice as many in all, and so on.
    2. Local rounds: around the best few distinct candidates, steps in some of the parameters, by a
       radius that shrinks; a quarter of the new candidates continue the design instead. Each
       round is halved like the design, so that nobody competes on draws much fewer than the
       others.
    3. The best are judged once more, on fresh draws alone, since the winner of hundreds of
       comparisons looks better than it is.
    """
    if _validate.integer(1, budget=budget) < LEAST_BUDGET:
        raise ArgumentError(
            f"budget must be an integer >= {LEAST_BUDGET} draws per dataset, for one round of the "
            f"smallest search, got {budget}"
        )
    return _Search(space, sampler, budget, _primary_only(goal), rng).run()


def _primary_only(goal: Goal) -> Goal:
    """Drop the profile where the objective does not depend on it: most of the work of `learn`."""
    if goal.delta is None:
        return goal
    return replace(goal, epsilons=goal.epsilons[:1], claimed_deltas=goal.claimed_deltas[:1])


def _score(left: Array, right: Array, goal: Goal, rng: np.random.Generator) -> tuple[float, float]:
    """Judge a candidate: the epsilon it is expected to certify; of equals, its separation."""
    expected, separation = learn(left, right, goal, rng=rng).objective
    return max(expected, 0.0), max(separation, -1.0)


class _Search:
    """State of one search."""

    def __init__(
        self,
        space: SearchSpace,
        sampler: Sampler,
        budget: int,
        goal: Goal,
        rng: np.random.Generator,
    ) -> None:
        self.space, self.sampler, self.goal, self.rng = space, sampler, goal, rng
        self.dimension = len(space.ranges)
        self.left_over = budget
        self.budget = budget
        # The same state for every build: trials differ by their parameters alone.
        self.entropy = int(rng.integers(2**63))
        example = space.example(rng=rng)
        self.relation = example.relation
        sampler.begin(example.left, example.right)
        self.trials: list[Trial | Candidate] = []
        self.seen: set[tuple[float, ...]] = set()

    def run(self) -> SearchResult:
        design_budget = int(self.budget * DESIGN_SHARE)
        count = _affordable(design_budget, SURVIVORS, LEAST_CANDIDATES, MOST_CANDIDATES)
        # Continued by the local rounds, so that what they add of it falls between the first.
        points = design_points(self.dimension, count * (1 + LOCAL_ROUNDS), rng=self.rng)
        fill = iter(points[count:])
        survivors = self._halve(self._design(points[:count]), design_budget, SURVIVORS, "design")
        survivors += self._local(survivors, fill, count)
        if not survivors:
            failed = [trial for trial in self.trials if isinstance(trial, Trial)]
            raise no_valid_pair(self.space, [f"{in_words(t.parameters)}: {t.note}" for t in failed])
        best = self._final(survivors)
        self.sampler.begin(best.pair.left, best.pair.right)
        trials = tuple(t if isinstance(t, Trial) else _as_trial(t) for t in self.trials)
        spent = self.budget - self.left_over
        record = SearchRecord(self.space.name, tuple(self.space.parameters), trials, spent)
        return SearchResult(best.pair, record, best.drawn())

    # --- candidates ---

    def _design(self, points: Array) -> list[Candidate]:
        extra = _extra_points(self.dimension, len(points) // 4)
        chosen: Iterator[Point] = itertools.chain(extra, points)
        if self.space.size <= len(points):
            cells = [(np.arange(n) + 0.5) / n for n in (r.steps or 1 for r in self.space.ranges)]
            chosen = (np.array(cell) for cell in itertools.product(*cells))
        candidates = (self._candidate(point, "design") for point in chosen)
        return [c for c in candidates if c is not None]

    def _candidate(self, point: Point, stage: str) -> Candidate | None:
        """Build the pair at a point; None, on record, if there is none, or it was seen before."""
        point = self.space.snapped(point)
        key = tuple(point.tolist())
        if key in self.seen:
            return None
        self.seen.add(key)
        parameters = self.space.at(point)
        shown = {name: plain(value) for name, value in parameters.items()}
        try:
            pair = self.space.pair(parameters, rng=np.random.default_rng(self.entropy))
        except ArgumentError as error:
            self.trials.append(Trial(shown, 0.0, 0, stage, f"no valid pair: {error}"))
            return None
        if pair.relation != self.relation:
            raise ArgumentError(
                f"the pairs of a search share one relation, got {self.relation}, and "
                f"{pair.relation} at {in_words(parameters)}"
            )
        candidate = Candidate(len(self.trials), point, shown, pair, stage)
        self.trials.append(candidate)
        return candidate

    def _near(self, centre: Point, radius: float) -> Point:
        """Step in some of the parameters: by `radius` at most, or to any other choice."""
        point = centre.copy()
        moved = self.rng.random(self.dimension) < 0.5
        moved[self.rng.integers(self.dimension)] = True
        for j in np.flatnonzero(moved):
            values = self.space.ranges[j]
            if isinstance(values, Choice):
                point[j] = self.rng.random()
            else:
                reach = max(radius, 1.0 / values.steps if values.steps else 0.0)
                point[j] += self.rng.uniform(-reach, reach)
        return np.clip(point, 0.0, 1.0)

    # --- stages ---

    def _halve(
        self, candidates: list[Candidate], budget: int, keep: int, stage: str
    ) -> list[Candidate]:
        """Draw, judge, drop the worse half, and again with twice the draws."""
        if not candidates:
            return []
        first = budget // halving_looks(len(candidates), keep)
        for alive, looks in halvings(len(candidates), keep):
            candidates = self._best(candidates)[:alive]
            for candidate in candidates:
                self._look(candidate, first * looks, stage)
                candidate.score = _score(*candidate.drawn(), self.goal, self.rng)
        return self._best(candidates)

    def _local(
        self, survivors: list[Candidate], fill: Iterator[Point], designed: int
    ) -> list[Candidate]:
        budget = int(self.budget * LOCAL_SHARE)
        least = halving_looks(LOCAL_CANDIDATES, 1) * LEAST_FIRST_DRAWS
        rounds = min(LOCAL_ROUNDS, budget // least)
        radius = designed ** (-1.0 / self.dimension)
        found: list[Candidate] = []
        for _ in range(rounds):
            count = _affordable(budget // rounds, 1, LOCAL_CANDIDATES, designed)
            centres = self._centres(survivors + found, radius)
            candidates = self._proposals(centres, fill, radius, count)
            found += self._halve(candidates, budget // rounds, 1, "local")
            radius /= 2
        return found

    def _proposals(
        self, centres: list[Candidate], fill: Iterator[Point], radius: float, count: int
    ) -> list[Candidate]:
        candidates: list[Candidate] = []
        around = itertools.cycle(centres)
        for attempt in range(_TRIES * count):
            if len(candidates) == count:
                break
            new = next(fill, None) if attempt % 4 == 3 or not centres else None
            if new is None:
                if not centres:
                    break
                new = self._near(next(around).point, radius)
            candidate = self._candidate(new, "local")
            if candidate is not None:
                candidates.append(candidate)
        return candidates

    def _centres(self, candidates: list[Candidate], radius: float) -> list[Candidate]:
        """Return the best few that are more than a radius apart."""
        centres: list[Candidate] = []
        for candidate in self._best(candidates):
            if all(np.abs(candidate.point - c.point).max() > radius for c in centres):
                centres.append(candidate)
        return centres[:CENTRES]

    def _final(self, survivors: list[Candidate]) -> Candidate:
        """Spend what is left on the best few; the best on these fresh draws alone wins."""
        finalists = self._best(survivors)[: max(min(FINALISTS, self.left_over // _LEAST_FINAL), 1)]
        each, rest = divmod(self.left_over, len(finalists))
        for place, candidate in enumerate(finalists):
            self._look(candidate, each + (place < rest), FINAL)
            candidate.score = _score(*candidate.looks[-1], self.goal, self.rng)
        return self._best(finalists)[0]

    # --- draws and judgements ---

    @staticmethod
    def _best(candidates: list[Candidate]) -> list[Candidate]:
        return sorted(candidates, key=_by_score)

    def _look(self, candidate: Candidate, draws: int, stage: str) -> None:
        role = f"search {candidate.index} look {len(candidate.looks)}"
        self.sampler.turn()
        try:
            left = self.sampler.draw(candidate.pair.left, draws, role, "left")
            right = self.sampler.draw(candidate.pair.right, draws, role, "right")
        except MechanismError as error:
            where = f"{self.space.name}, {in_words(candidate.parameters)}"
            raise MechanismError(f"{error}; found by the search at {where}") from error
        if candidate.looks and left.shape[1:] != candidate.looks[0][0].shape[1:]:
            raise MechanismError(
                f"{self.sampler.name} must return draws of one shape for the same data, got "
                f"{left.shape[1:]} after {candidate.looks[0][0].shape[1:]}"
            )
        candidate.looks.append((left, right))
        candidate.stage = stage
        self.left_over -= draws


def _by_score(candidate: Candidate) -> tuple[float, float, int]:
    expected, separation = candidate.score
    return -expected, -separation, candidate.index


def _as_trial(candidate: Candidate) -> Trial:
    expected, separation = candidate.score
    return Trial(candidate.parameters, expected, candidate.draws, candidate.stage, "", separation)
