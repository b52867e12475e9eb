"""Explore, freeze, draw afresh, certify.

One audit looks at one claim. Everything that is chosen (pair, events, sides, thresholds, the point
of a curve at which it is challenged) is chosen on exploration draws; the certifying draws are
fresh, and ``failure_prob`` is divided over every bound that they are used for. So all certified
numbers of a result hold together, except with probability `failure_prob`, whatever the mechanism.
"""

from __future__ import annotations

import hashlib
import math
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.bounds import Counts
from dpaudit.claims import Claim
from dpaudit.computed import Finding, compute
from dpaudit.divergence import RateBounds, loss_of_rates
from dpaudit.errors import MechanismError, PairError
from dpaudit.events import Goal, Selection, learn
from dpaudit.events.drawing import OutputHistogram
from dpaudit.mechanisms import (
    CALLS,
    CallCheck,
    ExactMechanism,
    Sampler,
    generator,
    mechanism_name,
)
from dpaudit.neighbors import NeighborPair, PairFamily, family
from dpaudit.results import (
    AuditResult,
    Estimate,
    Histogram,
    Profile,
    TwinResult,
    Verdict,
    Witness,
)

DEFAULT_DRAWS = 100_000
DEFAULT_FAILURE_PROB = 1e-5

EXPLORE_SHARE = 0.3
MAX_EXPLORE_CELLS = 2e7
HEADLINE_SHARE = 0.9
"""Part of failure_prob that the headline event gets; the events of the profile share the rest."""
_EXPECTED_PROFILE_EVENTS = 8
_GRID = 25
MIN_DRAWS = 20
MIN_PILOT = 8
_PICTURE_SAMPLE = 5000


def audit(
    mechanism: Any,
    claim: Claim,
    pairs: NeighborPair | PairFamily | Sequence[NeighborPair],
    *,
    draws: int = DEFAULT_DRAWS,
    failure_prob: float = DEFAULT_FAILURE_PROB,
    seed: int,
    twin: Any = None,
    id: str | None = None,
) -> AuditResult:
    """Look for a certified violation of a claim.

    Parameters
    ----------
    mechanism : callable or ExactMechanism
        ``f(data, size, *, rng) -> array [size, ...]``, or an object with ``pmf(data) -> [k]``,
        whose divergence is computed instead of estimated.
    claim : Claim
        What the mechanism promises.
    pairs : NeighborPair, sequence of NeighborPair or PairFamily
        Where to look. Of several pairs, all are explored and the most promising is certified.
    draws : int, optional
        Draws a side in all, exploration included; at least 20. Default 100,000.
    failure_prob : float, optional
        Probability that any certified number of the result is wrong, in (0, 1). Default 1e-5.
    seed : int
        Root seed, >= 0: with `id` it fixes every random number.
    twin : callable, optional
        A broken twin: the same mechanism with one realistic mistake. The audit proves its power
        by refuting it on the same claim, pairs and budget. Without one the verdict of an audit
        that finds nothing is NO_POWER.
    id : str, optional
        Name of the audit; the mechanism's name when omitted.

    Returns
    -------
    AuditResult
        Verdict, certified and estimated numbers, profile, witness, and what it takes to replay.

    Raises
    ------
    ValueError, TypeError
        For an argument out of range.
    MechanismError
        When the mechanism breaks its contract: wrong shape, objects, inf, changed input, ignored
        `rng`, or an exception of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import NeighborPair, PureDP, audit
    >>> def noisy_sum(data, size, *, rng):  # the sensitivity of a sum in [0, 1] is 1
    ...     return data.sum() + rng.laplace(scale=1 / 2.0, size=size)
    >>> pair = NeighborPair(np.array([[0.0], [1.0]]), np.array([[0.0], [0.0]]))
    >>> result = audit(noisy_sum, PureDP(1.0), pair, draws=20_000, seed=1)
    >>> result.verdict.words
    'REFUTED'
    >>> 1.8 < result.certified_epsilon < 2.0
    True
    """
    if not isinstance(claim, Claim):
        raise TypeError(f"claim must be a claim such as PureDP(1.0), got {claim!r}")
    draws = _validate.integer(MIN_DRAWS, draws=draws)
    failure_prob = _validate.failure_prob(failure_prob=failure_prob)
    seed = _validate.integer(0, seed=seed)
    candidates = family(pairs)
    least = math.ceil(2 * MIN_PILOT * len(candidates) / EXPLORE_SHARE)
    if len(candidates) > 1 and draws < least:
        raise ValueError(
            f"draws must be an integer >= {least} to explore {len(candidates)} pairs, got {draws}"
        )
    _check_relation(claim, candidates)
    name = mechanism_name(mechanism) if id is None else id
    if not isinstance(name, str) or not name:
        raise TypeError(f"id must be a text that is not empty, got {id!r}")
    start = time.perf_counter()
    grid = epsilon_grid(claim)
    task = _Task(
        claim, candidates, draws, failure_prob, seed, name, grid, claimed_curve(claim, grid)
    )
    finding = task.run(mechanism, "mechanism")
    broken = None
    caught = None
    if twin is not None:
        twin_start = time.perf_counter()
        caught = task.run(twin, "twin")
        broken = TwinResult(
            name=mechanism_name(twin),
            verdict=Verdict.REFUTED if caught.refuted else Verdict.NOT_REFUTED,
            certified_epsilon=caught.epsilon.lower,
            failure_prob=caught.epsilon.failure_prob,
            witness=caught.witness,
            seconds=time.perf_counter() - twin_start,
        )
    verdict, reason = _judge(finding, broken)
    relation = claim.relation or finding.pair.relation
    epsilon, delta = finding.point
    return AuditResult(
        id=name,
        mechanism=mechanism_name(mechanism),
        claim={
            "notion": claim.notion,
            "epsilon": epsilon,
            "delta": delta,
            "relation": str(relation),
            "source": claim.source,
            "words": str(claim),
            "parameters": claim.to_json(),
        },
        pair=finding.pair.describe(),
        verdict=verdict,
        reason=reason,
        epsilon=finding.epsilon,
        delta=finding.delta,
        profile=finding.profile,
        witness=finding.witness,
        histogram=finding.histogram,
        failure_prob=finding.epsilon.failure_prob,
        draws=finding.draws,
        twin=broken,
        expected=None,
        seed=seed,
        seconds=time.perf_counter() - start,
        mechanism_seconds=finding.mechanism_seconds + (caught.mechanism_seconds if caught else 0.0),
        versions=versions(),
        event=finding.event,
    )


def epsilon_grid(claim: Claim) -> NDArray[np.float64]:
    """Epsilons at which the profile is reported: from 0 to beyond the claim, the claim included."""
    if claim.point is not None:
        claimed = claim.point[0]
        half = _GRID // 2
        beyond = np.linspace(claimed, max(2 * claimed, claimed + 1.0), half + 1)
        return np.unique(np.concatenate([np.linspace(0.0, claimed, half + 1), beyond]))
    return np.linspace(0.0, min(max(claim.epsilon(1e-6), 0.1), 30.0), _GRID)


def claimed_curve(claim: Claim, grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what the claim allows on a grid of epsilons."""
    return np.array([claim.delta(float(e)) for e in grid])


def versions() -> dict[str, str]:
    """Versions of everything that the numbers of an audit depend on."""
    packages = ("dpaudit", "numpy", "scipy", "scikit-learn")
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


@dataclass(frozen=True)
class _Choice:
    """What exploration settled: the pair, the events, and a sample to lay out their picture."""

    pair: NeighborPair
    selection: Selection
    sample: NDArray[Any]
    explored: int

    @classmethod
    def of(
        cls,
        pair: NeighborPair,
        sides: tuple[NDArray[Any], NDArray[Any]],
        goal: Goal,
        explored: int,
        rng: np.random.Generator,
    ) -> _Choice:
        sample = np.concatenate([side[:_PICTURE_SAMPLE] for side in sides])
        return cls(pair, learn(*sides, goal, rng=rng), sample, explored)


@dataclass(frozen=True)
class _Task:
    """One claim on one family of pairs with one budget, for the mechanism and for its twin."""

    claim: Claim
    candidates: PairFamily
    draws: int
    failure_prob: float
    seed: int
    name: str
    grid: NDArray[np.float64]
    claimed: NDArray[np.float64]

    def run(self, mechanism: Any, role: str) -> Finding:
        if isinstance(mechanism, ExactMechanism):
            return compute(mechanism, self.claim, self.candidates, self.grid, self.claimed)
        sampler = Sampler(mechanism, seed=self.seed, labels=(self.name, role))
        before = self._fingerprint()
        finding = self._certify(sampler, self._explore(sampler, role))
        if self._fingerprint() != before:
            raise MechanismError(
                f"{sampler.name} changes its input: the data are not what they were before the "
                "audit; a mechanism must leave them alone"
            )
        return finding

    def _fingerprint(self) -> list[bytes]:
        both = ((pair.left, pair.right) for pair in self.candidates)
        return [hashlib.sha256(data.tobytes()).digest() for pair in both for data in pair]

    # --- explore ---

    def _explore(self, sampler: Sampler, role: str) -> _Choice:
        """Choose the pair, the events and the bins; nothing of this is used to certify."""
        pairs = self.candidates.pairs
        sampler.begin(pairs[0].left, pairs[0].right)
        explore = int(min(self.draws * EXPLORE_SHARE, MAX_EXPLORE_CELLS / sampler.width))
        explore = min(max(explore, 8), self.draws - 1)
        goal = self._goal(self.draws - explore)
        rng = generator(self.seed, self.name, role, "learn")
        if len(pairs) == 1:
            sides = self._exploration_draws(sampler, pairs[0], explore, "explore")
            return _Choice.of(pairs[0], sides, goal, explore, rng)
        # Half of the exploration draws are shared by all pairs, half go to the best of them.
        pilot = max(explore // 2 // len(pairs), MIN_PILOT)
        drawn = []
        for index, pair in enumerate(pairs):
            if index > 0:
                sampler.begin(pair.left, pair.right)
            drawn.append(self._exploration_draws(sampler, pair, pilot, f"pilot {index}"))
        promises = [learn(*sides, goal, rng=rng).promise for sides in drawn]
        best = max(range(len(pairs)), key=lambda index: (promises[index], -index))
        sampler.turn()
        more = max(explore - pilot * len(pairs), MIN_PILOT)
        explored = pilot * len(pairs) + more
        fresh = self._exploration_draws(sampler, pairs[best], more, "explore")
        left, right = (np.concatenate(both) for both in zip(drawn[best], fresh, strict=True))
        goal = self._goal(self.draws - explored)
        return _Choice.of(pairs[best], (left, right), goal, explored, rng)

    def _goal(self, certify: int) -> Goal:
        share = (1 - HEADLINE_SHARE) / _EXPECTED_PROFILE_EVENTS
        return Goal(
            delta=None if self.claim.point is None else self.claim.point[1],
            epsilons=self.grid,
            claimed_deltas=self.claimed,
            draws=certify,
            headline_failure_prob=self.failure_prob * HEADLINE_SHARE,
            profile_failure_prob=self.failure_prob * share,
        )

    def _exploration_draws(
        self, sampler: Sampler, pair: NeighborPair, draws: int, role: str
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        left = sampler.draw(pair.left, draws, role, "left")
        right = sampler.draw(pair.right, draws, role, "right")
        return left, right

    # --- certify ---

    def _certify(self, sampler: Sampler, choice: _Choice) -> Finding:
        """Count the frozen events on fresh draws, chunk by chunk, and bound them together."""
        pair, selection = choice.pair, choice.selection
        certify = self.draws - choice.explored
        events = [selection.headline, *selection.profile]
        picture = OutputHistogram.plan(selection.headline, choice.sample)
        hits = {side: np.zeros(len(events), dtype=np.int64) for side in ("left", "right")}
        for side, data in (("left", pair.left), ("right", pair.right)):
            calls = CallCheck(sampler.name)
            for outputs in sampler.chunks(data, certify, "certify", side, least=CALLS):
                encoded = selection.headline.encoder(outputs)
                scores = {id(event.score): event.score for event in events}
                values = {key: score(encoded) for key, score in scores.items()}
                fired = [int(event.fires(values[id(event.score)]).sum()) for event in events]
                hits[side] += fired
                calls.add(outputs, fired[0])
                picture.add(side, encoded, values[id(selection.headline.score)])
            calls.judge()
        counts = [
            Counts(int(left), certify, int(right), certify)
            for left, right in zip(hits["left"], hits["right"], strict=True)
        ]
        headline_share = HEADLINE_SHARE if selection.profile else 1.0
        shares = [headline_share] + [
            (1 - headline_share) / len(selection.profile) for _ in selection.profile
        ]
        bounds = [
            RateBounds.from_counts(c, event.likelier, self.failure_prob * share)
            for c, event, share in zip(counts, events, shares, strict=True)
        ]
        return self._finding(sampler, choice, counts, bounds, picture.done())

    def _finding(
        self,
        sampler: Sampler,
        choice: _Choice,
        counts: list[Counts],
        bounds: list[RateBounds],
        histogram: Histogram,
    ) -> Finding:
        selection = choice.selection
        events = [selection.headline, *selection.profile]
        guesses = [_guess(c, event.likelier) for c, event in zip(counts, events, strict=True)]
        certified = np.array([max(b.lower_delta(e) for b in bounds) for e in self.grid])
        estimated = np.array([max(g.lower_delta(e) for g in guesses) for e in self.grid])
        point = self.claim.point or self._worst_point(certified) or selection.point
        lower_epsilon = max(b.lower_epsilon(point[1]) for b in bounds)
        lower_delta = max(b.lower_delta(point[0]) for b in bounds)
        refuted = lower_epsilon > point[0] or lower_delta > point[1]
        method = "Clopper-Pearson, two-sided union, fresh draws"
        c = counts[0]
        return Finding(
            pair=choice.pair,
            point=point,
            refuted=refuted,
            epsilon=Estimate(
                float(loss_of_rates(guesses[0].likely, guesses[0].rare, point[1])),
                lower_epsilon,
                math.inf,
                self.failure_prob,
                method,
                c,
                True,
            ),
            delta=Estimate(
                guesses[0].lower_delta(point[0]),
                lower_delta,
                1.0,
                self.failure_prob,
                method,
                c,
                True,
            ),
            profile=Profile(
                tuple(self.grid.tolist()),
                tuple(certified.tolist()),
                tuple(estimated.tolist()),
                tuple(self.claimed.tolist()),
            ),
            witness=Witness(
                selection.headline.description,
                selection.headline.likelier,
                c,
                bounds[0].likely,
                bounds[0].rare,
            ),
            histogram=histogram,
            draws={"explore": choice.explored, "certify": self.draws - choice.explored},
            mechanism_seconds=sampler.seconds,
            event=selection.headline,
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


def _guess(counts: Counts, likelier: str) -> RateBounds:
    """Rates as observed, half a draw away from 0 and 1 so that estimates stay finite."""
    c = counts if likelier == "left" else counts.swapped()
    return RateBounds(
        (c.hits_left + 0.5) / (c.draws_left + 1), (c.hits_right + 0.5) / (c.draws_right + 1), 1.0
    )


def _judge(finding: Finding, twin: TwinResult | None) -> tuple[Verdict, str]:
    epsilon, delta = finding.point
    if finding.refuted:
        needed = finding.epsilon.lower
        digits = next(d for d in (4, 8, 17) if f"{needed:.{d}g}" != f"{epsilon:.{d}g}" or d == 17)
        return Verdict.REFUTED, (
            f"epsilon is at least {needed:.{digits}g} at delta = {delta:g}, "
            f"where {epsilon:.{digits}g} was claimed"
        )
    if twin is None:
        return Verdict.NO_POWER, "no violation found, and no broken twin was given to show power"
    if twin.verdict is Verdict.REFUTED:
        return Verdict.NOT_REFUTED, (
            f"no violation found; the broken twin {twin.name} was caught with "
            f"epsilon >= {twin.certified_epsilon:.4g}"
        )
    return Verdict.NO_POWER, (
        f"no violation found, but the broken twin {twin.name} escaped too "
        f"(epsilon >= {twin.certified_epsilon:.4g})"
    )


def _check_relation(claim: Claim, pairs: PairFamily) -> None:
    relation = next(iter(pairs)).relation
    if claim.relation is not None and claim.relation != relation:
        raise PairError(
            f"the claim speaks of {claim.relation}, but the pair is of {relation}: "
            "a claim is audited under its own relation"
        )
