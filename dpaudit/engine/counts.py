"""Audits by draws: explore, freeze, draw afresh, certify."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.claims import Claim
from dpaudit.engine.certificate import Certificate
from dpaudit.engine.pictures import OutputHistogram
from dpaudit.errors import ArgumentError, MechanismError
from dpaudit.events import FloatAttack, Goal, Selection, learn
from dpaudit.mechanisms import IndependenceCheck, Sampler, generator
from dpaudit.neighbors import NeighborPair, PairFamily
from dpaudit.results import Estimate, Histogram, Profile, Witness
from dpaudit.search import LEAST_BUDGET, SearchRecord, SearchSpace, search
from dpaudit.stats import Counts, RateBounds

Sides = tuple[NDArray[Any], NDArray[Any]]

EXPLORE_SHARE = 0.3
MAX_EXPLORE_CELLS = 2e7
MIN_PILOT = 8
PRIMARY_SHARE = 0.9
"""Part of failure_prob that the primary event gets; the events of the profile share the rest."""

NO_FLOATS = (
    "The floating-point attack did nothing: all outputs were whole numbers, booleans or labels, "
    "and no floating-point output was found whose bits could be read."
)

_EXPECTED_PROFILE_EVENTS = 8
_PICTURE_SAMPLE = 5000
_PICTURE_DRAWS = 10**6  # a side; a picture gains nothing from more


@dataclass(frozen=True)
class Choice:
    """What exploration settled: the pair, the events, and a sample to lay out their picture."""

    pair: NeighborPair
    selection: Selection
    sample: NDArray[Any]
    explored: int
    search: SearchRecord | None = None

    @classmethod
    def of(
        cls,
        pair: NeighborPair,
        sides: Sides,
        goal: Goal,
        explored: int,
        rng: np.random.Generator,
        float_attack: FloatAttack | None,
    ) -> Choice:
        """Learn the events of a pair from draws of its two sides."""
        sample = np.concatenate([side[:_PICTURE_SAMPLE] for side in sides])
        selection = learn(*sides, goal, rng=rng, float_attack=float_attack)
        return cls(pair, selection, sample, explored)


@dataclass(frozen=True)
class SampledAudit:
    """One claim on one family of pairs with one budget, for the mechanism and for its mutant.

    With a `space` the pair is searched there; `candidates` then holds an example of it.
    """

    claim: Claim
    candidates: PairFamily
    draws: int
    failure_prob: float
    seed: int
    name: str
    grid: NDArray[np.float64]
    claimed: NDArray[np.float64]
    float_attack: bool | FloatAttack = False
    space: SearchSpace | None = None

    def run(self, mechanism: Any, role: str) -> Certificate:
        """Audit the mechanism, or its mutant under a `role` of its own."""
        sampler = Sampler(mechanism, seed=self.seed, labels=(self.name, role))
        before = self._fingerprint()
        finding = self._look(sampler, role)
        if self.float_attack and not sampler.saw_reals:
            finding = replace(finding, notes=(*finding.notes, NO_FLOATS))
        if self._fingerprint() != before:
            raise MechanismError(
                f"{sampler.name} changes its input: the data are not what they were before the "
                "audit; a mechanism must leave them alone"
            )
        return finding

    def find_pair(self, mechanism: Any, role: str) -> Choice:
        """Explore only: return the pair that an audit of this mechanism would certify on."""
        sampler = Sampler(mechanism, seed=self.seed, labels=(self.name, role))
        return self._explore(sampler, role, EXPLORE_SHARE)[0]

    def _fingerprint(self) -> list[bytes]:
        both = ((pair.left, pair.right) for pair in self.candidates)
        return [hashlib.sha256(data.tobytes()).digest() for pair in both for data in pair]

    def _look(self, sampler: Sampler, role: str) -> Certificate:
        choice, _ = self._explore(sampler, role, EXPLORE_SHARE)
        return self._certify(sampler, choice)

    # --- explore ---

    def _explore(self, sampler: Sampler, role: str, share: float) -> tuple[Choice, Sides]:
        """Choose the pair, the events and the bins; nothing of this is used to certify.

        Returns the choice, and the draws of its pair on which it rests.
        """
        if self.space is not None:
            return self._search(self.space, sampler, role)
        pairs = self.candidates.pairs
        sampler.begin(pairs[0].left, pairs[0].right)
        explore = int(min(self.draws * share, MAX_EXPLORE_CELLS / sampler.width))
        explore = min(max(explore, 8), self.draws - 1)
        goal = self._goal(self.draws - explore)
        rng = generator(self.seed, self.name, role, "learn")
        if len(pairs) == 1:
            sides = self._exploration_draws(sampler, pairs[0], explore, "explore")
            attack = self._attack(pairs[0])
            return Choice.of(pairs[0], sides, goal, explore, rng, attack), sides
        # Half of the exploration draws are shared by all pairs, half go to the best of them.
        pilot = max(explore // 2 // len(pairs), MIN_PILOT)
        drawn = []
        for index, pair in enumerate(pairs):
            if index > 0:
                sampler.begin(pair.left, pair.right)
            drawn.append(self._exploration_draws(sampler, pair, pilot, f"pilot {index}"))
        promises = [
            learn(*sides, goal, rng=rng, float_attack=self._attack(pair)).promise
            for pair, sides in zip(pairs, drawn, strict=True)
        ]
        best = max(range(len(pairs)), key=lambda index: (promises[index], -index))
        sampler.turn()
        more = max(explore - pilot * len(pairs), MIN_PILOT)
        explored = pilot * len(pairs) + more
        fresh = self._exploration_draws(sampler, pairs[best], more, "explore")
        left, right = (np.concatenate(both) for both in zip(drawn[best], fresh, strict=True))
        sides = left, right
        goal = self._goal(self.draws - explored)
        pair = pairs[best]
        return Choice.of(pair, sides, goal, explored, rng, self._attack(pair)), sides

    def _search(self, space: SearchSpace, sampler: Sampler, role: str) -> tuple[Choice, Sides]:
        """Search with half of the exploration draws, and spend the rest on the pair found."""
        least = math.ceil((2 * LEAST_BUDGET + 1) / EXPLORE_SHARE)
        if self.draws < least:
            raise ArgumentError(
                f"draws must be an integer >= {least} to search {space.name}, got {self.draws}"
            )
        example = self.candidates.pairs[0]
        sampler.begin(example.left, example.right)
        explore = int(min(self.draws * EXPLORE_SHARE, MAX_EXPLORE_CELLS / sampler.width))
        goal = self._goal(self.draws - explore)
        rng = generator(self.seed, self.name, role, "search")
        found = search(space, sampler, explore // 2, goal, rng=rng)
        sampler.turn()
        more = explore - explore // 2
        fresh = self._exploration_draws(sampler, found.pair, more, "explore")
        left, right = (np.concatenate(both) for both in zip(found.drawn, fresh, strict=True))
        rng = generator(self.seed, self.name, role, "learn")
        attack = self._attack(found.pair)
        choice = Choice.of(found.pair, (left, right), goal, explore, rng, attack)
        return replace(choice, search=found.record), (left, right)

    def _attack(self, pair: NeighborPair) -> FloatAttack | None:
        if isinstance(self.float_attack, FloatAttack):
            return self.float_attack
        return FloatAttack.for_pair(pair, self.claim) if self.float_attack else None

    def _goal(self, certify: int) -> Goal:
        share = (1 - PRIMARY_SHARE) / _EXPECTED_PROFILE_EVENTS
        return Goal(
            delta=None if self.claim.point is None else self.claim.point[1],
            epsilons=self.grid,
            claimed_deltas=self.claimed,
            draws=certify,
            primary_failure_prob=self.failure_prob * PRIMARY_SHARE,
            profile_failure_prob=self.failure_prob * share,
        )

    def _exploration_draws(
        self, sampler: Sampler, pair: NeighborPair, draws: int, role: str
    ) -> Sides:
        left = sampler.draw(pair.left, draws, role, "left")
        right = sampler.draw(pair.right, draws, role, "right")
        return left, right

    # --- certify ---

    def _certify(self, sampler: Sampler, choice: Choice) -> Certificate:
        """Count the frozen events on fresh draws, chunk by chunk, and bound them together."""
        pair, selection = choice.pair, choice.selection
        certify = self.draws - choice.explored
        events = [selection.primary, *selection.profile]
        pictures = [OutputHistogram.plan(event, choice.sample) for event in events]
        hits = {side: np.zeros(len(events), dtype=np.int64) for side in ("left", "right")}
        for side, data in (("left", pair.left), ("right", pair.right)):
            calls, drawn = IndependenceCheck(sampler.name), 0
            for outputs in sampler.chunks(data, certify, "certify", side):
                encoded = selection.primary.encoder(outputs)
                scores = {id(event.score): event.score for event in events}
                values = {key: score(encoded) for key, score in scores.items()}
                fired = [int(event.fires(values[id(event.score)]).sum()) for event in events]
                hits[side] += fired
                calls.add(outputs, fired)
                if drawn < _PICTURE_DRAWS:
                    for event, picture in zip(events, pictures, strict=True):
                        picture.add(side, encoded, values[id(event.score)])
                drawn += len(outputs)
            calls.judge()
        counts = [
            Counts(int(left), certify, int(right), certify)
            for left, right in zip(hits["left"], hits["right"], strict=True)
        ]
        primary_share = PRIMARY_SHARE if selection.profile else 1.0
        shares = [primary_share] + [
            (1 - primary_share) / len(selection.profile) for _ in selection.profile
        ]
        bounds = [
            RateBounds.from_counts(c, event.likelier, self.failure_prob * share, event.target)
            for c, event, share in zip(counts, events, shares, strict=True)
        ]
        return self._finding(sampler, choice, counts, bounds, [p.done() for p in pictures])

    def _finding(
        self,
        sampler: Sampler,
        choice: Choice,
        counts: list[Counts],
        bounds: list[RateBounds],
        histograms: list[Histogram],
    ) -> Certificate:
        selection = choice.selection
        events = [selection.primary, *selection.profile]
        guesses = [rates_seen(c, event.likelier) for c, event in zip(counts, events, strict=True)]
        certified = np.array([max(b.lower_delta(e) for b in bounds) for e in self.grid])
        estimated = np.array([max(g.lower_delta(e) for g in guesses) for e in self.grid])
        point = self.claim.point or self._worst_point(certified) or selection.point
        epsilons = [b.lower_epsilon(point[1]) for b in bounds]
        deltas = [b.lower_delta(point[0]) for b in bounds]
        # The witness, estimates and counts belong to the event that gives the bound beside them;
        # all bounds hold together, so it may be picked after the fact.
        for_epsilon, for_delta = int(np.argmax(epsilons)), int(np.argmax(deltas))
        lower_epsilon, lower_delta = epsilons[for_epsilon], deltas[for_delta]
        refuted = lower_epsilon > point[0] or lower_delta > point[1]
        method = "exact joint bound of two binomials, on fresh draws"
        return Certificate(
            pair=choice.pair,
            point=point,
            refuted=refuted,
            epsilon=Estimate(
                guesses[for_epsilon].lower_epsilon(point[1]),
                lower_epsilon,
                math.inf,
                self.failure_prob,
                method,
                counts[for_epsilon],
                True,
            ),
            delta=Estimate(
                guesses[for_delta].lower_delta(point[0]),
                lower_delta,
                1.0,
                self.failure_prob,
                method,
                counts[for_delta],
                True,
            ),
            profile=Profile(
                tuple(self.grid.tolist()),
                tuple(certified.tolist()),
                tuple(estimated.tolist()),
                tuple(self.claimed.tolist()),
            ),
            witness=Witness(
                events[for_epsilon].description,
                events[for_epsilon].likelier,
                counts[for_epsilon],
                *bounds[for_epsilon].worst_case(point[1]),
            ),
            histogram=histograms[for_epsilon],
            draws={"explore": choice.explored, "certify": self.draws - choice.explored},
            mechanism_seconds=sampler.seconds,
            event=events[for_epsilon],
            bounds=tuple(bounds),
            search=choice.search,
        )

    def _worst_point(self, certified: NDArray[np.float64]) -> tuple[float, float] | None:
        """Where a curve is exceeded most, or approached most; None when nothing is certified.

        Chosen after the fact, which is sound because the certified profile holds everywhere at
        once. Epsilon = 0 counts only if the claim is exceeded there: else it says little.
        """
        ratio = certified / np.maximum(self.claimed, 1e-300)
        if ratio[0] <= 1:
            ratio[0] = 0.0
        at = int(ratio.argmax())
        return (float(self.grid[at]), float(self.claimed[at])) if certified[at] > 0 else None


def rates_seen(counts: Counts, likelier: str) -> RateBounds:
    """Rates as observed, half a draw away from 0 and 1 so that estimates stay finite."""
    c = counts if likelier == "left" else counts.swapped()
    likely = np.array([(c.hits_left + 0.5) / (c.draws_left + 1)])
    rare = np.array([(c.hits_right + 0.5) / (c.draws_right + 1)])
    return RateBounds(likely, rare, 1.0)
