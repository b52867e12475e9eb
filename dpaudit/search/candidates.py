"""Candidates of a search: given pairs, points of spaces, and steps from other candidates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import ArgumentError, MechanismError, MechanismTimeout
from dpaudit.mechanisms import LateFailure, joined
from dpaudit.neighbors import (
    Choice,
    NeighborPair,
    Point,
    Portfolio,
    SearchSpace,
    design_points,
    in_words,
    no_valid_pair,
)
from dpaudit.search.record import NO_ANSWER, SearchRecord, Trial

Array = NDArray[Any]
Where = SearchSpace | Portfolio

CENTRES = 3
"""Largest number of candidates around which a local round makes steps."""

_WHOLE = 0.3
"""Share of the room for a portfolio's spaces up to which one space is tried completely."""

_KEPT = 2**20
"""Largest size in bytes of a pair that is kept while others are tried."""

_TRIES = 20
FATAL = (MechanismTimeout, LateFailure)
_FIXED = -1


@dataclass(eq=False)
class Candidate:
    """A trial in progress.

    Parameters
    ----------
    index : int
        Number of the trial among all trials.
    arm : int
        Index of the trial's space. The index is negative for a given pair.
    point : ndarray
        Point in the unit cube of the space. The point is empty for a given pair.
    parameters : dict
        Plain values of the parameters, by name.
    make : callable
        Function that returns the pair to draw on. A large pair is built again for each call.
    stage : str
        The last stage that the trial reached.
    name : str
        Description of the pair or space.
    samples : list of two arrays
        Draws on both sides, in the order in which they were made.
    score : (float, float)
        Result of the judgement of the trial.
    """

    index: int
    arm: int
    point: Point
    parameters: dict[str, Any]
    make: Callable[[], NeighborPair]
    stage: str
    name: str
    samples: list[tuple[Array, Array]] = field(default_factory=list)
    score: tuple[float, float] = (0.0, 0.0)

    @property
    def draws(self) -> int:
        """Number of draws per dataset so far."""
        return sum(len(left) for left, _ in self.samples)

    def drawn(self) -> tuple[Array, Array]:
        """Return all draws so far."""
        left, right = zip(*self.samples, strict=True)
        return joined(left), joined(right)

    def trial(self) -> Trial:
        """Return the trial as plain data."""
        expected, separation = self.score
        return Trial(
            self.parameters, expected, self.draws, self.stage, "", separation, arm=self.name
        )


def best_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return candidates sorted by their scores.

    Equal candidates keep their order.
    """
    return sorted(candidates, key=lambda c: (-c.score[0], -c.score[1], c.index))


class Candidates:
    """Factory of the candidates of one search.

    The factory makes each candidate once and stores all trials.

    Parameters
    ----------
    where : SearchSpace or Portfolio
        Pairs and spaces to search. A single space counts as a portfolio.
    rng : numpy.random.Generator
        Seed that determines all points.
    """

    def __init__(self, where: Where, rng: np.random.Generator) -> None:
        self.where, self.rng = where, rng
        self.pairs: tuple[NeighborPair, ...]
        self.spaces: tuple[SearchSpace, ...]
        self.pairs, self.spaces = (
            ((), (where,)) if isinstance(where, SearchSpace) else (where.pairs, where.spaces)
        )
        # Every build gets a generator in the same state, so that trials differ only in their
        # parameters.
        self.entropy = int(rng.integers(2**63))
        self.example = where.example(rng=rng)
        self.trials: list[Trial | Candidate] = []
        self._of_pair: dict[int, Candidate] = {}
        self._unanswered: list[Candidate] = []
        self._seen: set[tuple[float, ...]] = set()
        self._designs: list[int] = []
        self._fill: Iterator[tuple[int, Point]] = iter(())

    # --- the design ---

    def design(self, count: int, rounds: int) -> list[Candidate]:
        """Return the first candidates: the given pairs, and designs of the spaces.

        Parameters
        ----------
        count : int
            Number of candidates that the budget allows. A quarter more candidates are made. Given
            pairs keep their order and take at most half of the places. The spaces share the other
            places equally.
        rounds : int
            Number of later local rounds. Local rounds later add points to the designs. These points
            lie between the first points.
        """
        if isinstance(self.where, SearchSpace):
            candidates, sizes = [], [count]
        else:
            places = count + count // 4
            most = places // 2 if self.spaces else places
            candidates = [self.given(pair) for pair in self.pairs[:most]]
            sizes = self._sizes(places - len(candidates)) if self.spaces else []
        fills = []
        for arm, size in enumerate(sizes):
            dimension = len(self.spaces[arm].ranges)
            points = design_points(dimension, size * (1 + rounds), rng=self.rng)
            fills.append([(arm, point) for point in points[size:]])
            candidates += self._designed(arm, points[:size])
        self._designs = sizes
        turns = itertools.zip_longest(*fills)
        self._fill = (at for turn in turns for at in turn if at is not None)
        return candidates

    def _sizes(self, places: int) -> list[int]:
        """Return the number of points of each space.

        A small space is tried completely. The other spaces share the remaining places equally. If
        there are too few places, only the first spaces get points.
        """
        whole = [space.size <= places * _WHOLE for space in self.spaces]
        left = places - sum(int(s.size) for s, fits in zip(self.spaces, whole, strict=True) if fits)
        each = max(int(0.8 * left / max(whole.count(False), 1)), 1)
        sizes = [
            int(space.size) if fits else each
            for space, fits in zip(self.spaces, whole, strict=True)
        ]
        return sizes[: max(places, 1)]

    def given(self, pair: NeighborPair) -> Candidate:
        """Return a given pair as a candidate that belongs to no space."""
        nowhere: Point = np.empty(0)
        index = len(self.trials)
        candidate = Candidate(index, _FIXED, nowhere, {}, lambda: pair, "design", pair.recipe)
        self.trials.append(candidate)
        self._of_pair[id(pair)] = candidate
        return candidate

    def needs_no_answer(self, candidate: Candidate) -> bool:
        """Return whether a candidate has only a few users, so that a mechanism may fail on it."""
        small = self.where.small if isinstance(self.where, Portfolio) else ()
        return any(self._of_pair.get(id(pair)) is candidate for pair in small)

    def leave_out(self, candidate: Candidate, error: MechanismError) -> None:
        """Record that a mechanism failed on a candidate.

        Raise an error if an answer is needed.
        """
        if not self.needs_no_answer(candidate) or isinstance(error, FATAL):
            where = candidate.name or self.where.name
            where += f", {in_words(candidate.parameters)}" if candidate.parameters else ""
            # A timeout stays a timeout, and the limit may be one of the whole audit.
            late = isinstance(error, MechanismTimeout)
            place = "The search was at" if late else "The search found this error at"
            raise type(error)(f"{error}. {place} {where}") from error
        trial = replace(candidate.trial(), note=f"{NO_ANSWER}: {error}", draws=0)
        self.trials[candidate.index] = trial
        self._unanswered.append(candidate)

    def is_left_out(self, candidate: Candidate) -> bool:
        """Return whether the mechanism failed on a candidate."""
        return candidate in self._unanswered

    def ends(self, most: int) -> list[Candidate]:
        """Return pairs of a portfolio that are always finalists."""
        pairs = self.where.ends[:most] if isinstance(self.where, Portfolio) else ()
        found = [self._of_pair.get(id(pair)) or self.given(pair) for pair in pairs]
        return [candidate for candidate in found if not self.is_left_out(candidate)]

    def all_given(self) -> list[Candidate]:
        """Return the given pairs on which the mechanism did not fail."""
        return [c for c in self._of_pair.values() if not self.is_left_out(c)]

    def _designed(self, arm: int, points: Array) -> list[Candidate]:
        space = self.spaces[arm]
        dimension, extra = len(space.ranges), max(len(points) // 4, 1)
        corners = itertools.islice(itertools.product((0.0, 1.0), repeat=dimension), extra - 1)
        # A design of one point consists of the centre.
        chosen: Iterator[Point] = itertools.chain(
            [np.full(dimension, 0.5)], map(np.array, corners), points[len(points) == 1 :]
        )
        if space.size <= len(points):
            cells = [(np.arange(n) + 0.5) / n for n in (r.steps or 1 for r in space.ranges)]
            chosen = (np.array(cell) for cell in itertools.product(*cells))
        candidates = (self._candidate(arm, point, "design") for point in chosen)
        return [c for c in candidates if c is not None]

    def _candidate(self, arm: int, point: Point, stage: str) -> Candidate | None:
        """Build the pair at a point.

        Return None for an invalid pair, or for a pair that was built before.
        """
        space = self.spaces[arm]
        point = space.snapped(point)
        key = (arm, *point.tolist())
        if key in self._seen:
            return None
        self._seen.add(key)
        parameters = space.at(point)
        values_of = {name: _plain(value) for name, value in parameters.items()}
        name = "" if isinstance(self.where, SearchSpace) else space.name

        def build() -> NeighborPair:
            return space.pair(parameters, rng=np.random.default_rng(self.entropy))

        try:
            pair = build()
        except ArgumentError as error:
            self.trials.append(Trial(values_of, 0.0, 0, stage, f"no valid pair: {error}", arm=name))
            return None
        if pair.relation.is_of_users != self.example.relation.is_of_users:
            raise ArgumentError(
                "pairs of a search must all be of datasets or all of query values, got "
                f"{self.example.relation}, and {pair.relation} at {in_words(parameters)}"
            )
        # Hundreds of large pairs would not fit into memory, so large pairs are built again when
        # needed.
        large = pair.form.size(pair.left) + pair.form.size(pair.right) > _KEPT
        make = build if large else (lambda: pair)
        candidate = Candidate(len(self.trials), arm, point, values_of, make, stage, name)
        self.trials.append(candidate)
        return candidate

    # --- local rounds ---

    def proposals(
        self, candidates: list[Candidate], count: int, halvings: int, stage: str
    ) -> list[Candidate]:
        """Return new candidates: steps from the best candidates, and further points of the designs.

        Parameters
        ----------
        candidates : list of Candidate
            Candidates from which the best are chosen. There are no steps around given pairs.
        count : int
            Number of new candidates.
        halvings : int
            Number of times that the radius of the steps was halved.
        stage : str
            Name of the stage of the new candidates.
        """
        centres = self._centres(candidates, halvings)
        new: list[Candidate] = []
        around = itertools.cycle(centres)
        for attempt in range(_TRIES * count):
            if len(new) == count:
                break
            at = next(self._fill, None) if attempt % 4 == 3 or not centres else None
            if at is None:
                if not centres:
                    break
                centre = next(around)
                at = centre.arm, self._near(centre, self._radius(centre.arm, halvings))
            candidate = self._candidate(*at, stage)
            if candidate is not None:
                new.append(candidate)
        return new

    def _radius(self, arm: int, halvings: int) -> float:
        dimension = len(self.spaces[arm].ranges)
        return float(self._designs[arm] ** (-1.0 / dimension) / 2**halvings)

    def _near(self, centre: Candidate, radius: float) -> Point:
        """Return a step in some parameters, by at most `radius` or to another choice."""
        ranges = self.spaces[centre.arm].ranges
        point = centre.point.copy()
        moved = self.rng.random(len(ranges)) < 0.5
        moved[self.rng.integers(len(ranges))] = True
        for j in np.flatnonzero(moved):
            values = ranges[j]
            if isinstance(values, Choice):
                point[j] = self.rng.random()
            else:
                step = max(radius, 1.0 / values.steps if values.steps else 0.0)
                point[j] += self.rng.uniform(-step, step)
        return np.clip(point, 0.0, 1.0)

    def _centres(self, candidates: list[Candidate], halvings: int) -> list[Candidate]:
        """Return a small number of the best candidates, at distances of more than a radius."""
        centres: list[Candidate] = []
        for candidate in best_first(c for c in candidates if c.arm != _FIXED):
            radius = self._radius(candidate.arm, halvings)
            if all(
                candidate.arm != c.arm or np.abs(candidate.point - c.point).max() > radius
                for c in centres
            ):
                centres.append(candidate)
            if len(centres) == CENTRES:
                break
        return centres

    # --- the record ---

    def record(self, draws_spent: int) -> SearchRecord:
        """Return all trials as plain data."""
        names = [name for space in self.spaces for name in space.parameters]
        return SearchRecord(
            self.where.name,
            tuple(dict.fromkeys(names)),
            tuple(t if isinstance(t, Trial) else t.trial() for t in self.trials),
            draws_spent,
            pairs=len(self.pairs),
            spaces=len(self.spaces),
            untried=tuple(p.recipe for p in self.pairs if id(p) not in self._of_pair),
        )

    def none_left(self) -> ArgumentError | MechanismError:
        """Return the error for a search without a valid pair on which the mechanism answers."""
        failed = [trial for trial in self.trials if isinstance(trial, Trial)]
        if self._unanswered:
            first = next(trial for trial in failed if trial.note.startswith(NO_ANSWER))
            return MechanismError(
                f"the search has no pair of {self.where.name} left, because the mechanism failed "
                f"on {len(self._unanswered)}. On {first.arm}, {first.note}"
            )
        reasons = [f"{in_words(t.parameters)}: {t.note}" for t in failed]
        return no_valid_pair(self.where.name, reasons)


def _plain(value: Any) -> Any:
    """Return a parameter as a number, text or boolean of JSON, or else as words."""
    value = value.item() if isinstance(value, np.generic) else value
    is_plain = value is None or isinstance(value, bool | int | str)
    return value if is_plain or (isinstance(value, float) and math.isfinite(value)) else str(value)
