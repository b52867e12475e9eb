"""Audits of smoothed mechanisms: explore centres, freeze events and bets, certify on fresh ones."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.claims import Claim
from dpaudit.engine.additive import exact
from dpaudit.engine.additive.plan import Budget, Centers, Plan, Question
from dpaudit.engine.additive.values import Tally
from dpaudit.engine.certificate import Certificate
from dpaudit.engine.counts import EXPLORE_SHARE, MAX_EXPLORE_CELLS, MIN_PILOT
from dpaudit.errors import MechanismError
from dpaudit.mechanisms import AdditiveNoise, IndependenceCheck, Sampler, generator
from dpaudit.neighbors import NeighborPair, PairFamily
from dpaudit.results import Estimate, LongProfile, Profile, Witness
from dpaudit.stats import RateBounds

Floats = NDArray[np.float64]

MAX_EXPLORE = 30_000
"""Exploration draws per dataset; values are smooth, and more would not find better events."""

MAX_DRAWS = 4 * 10**6
"""Certifying draws per dataset, whose values are kept in memory."""


@dataclass(frozen=True)
class AdditiveNoiseAudit:
    """One claim on one family of pairs with one budget, for a smoothed mechanism and its mutant.

    Parameters as of :class:`dpaudit.engine.counts.SampledAudit`.

    Notes
    -----
    Three cases, from strong to weak:

    - *Deterministic centres.* The profile is computed in closed form, without draws.
    - *Random centres in a declared ball.* The probability X of an event, given the centre, is at
      most its supremum over the ball, which is what the bets are limited by. Deltas far below
      ``1 / draws`` can be certified.
    - *Random centres.* X lies in [0, 1] and nothing else is known. Then n draws cannot exclude that
      centres of probability ``log(1 / failure_prob) / n`` went unseen in which the event is sure:
      no event is certified to be rarer than that, and deltas cannot be certified far below it.

    The i-th centre of the left is paired with the i-th of the right, and
    :class:`dpaudit.bounds.paired.PairedBet` certifies. ``PRIMARY_SHARE`` of `failure_prob` goes to
    the epsilon at the claimed delta; the delta at the claimed epsilon and the events of the profile
    share the rest. Events, sides, epsilons and bets are frozen before the certifying draws.
    """

    claim: Claim
    candidates: PairFamily
    draws: int
    failure_prob: float
    seed: int
    name: str
    grid: Floats
    claimed: Floats

    def run(self, mechanism: Any, role: str) -> Certificate:
        """Audit the mechanism, or its mutant under a `role` of its own.

        Raises
        ------
        MechanismError
            When the centres break their contract: NaN or inf, unequal lengths, outside the
            declared ball, changed input, ignored `rng`, dependent draws.
        """
        if not isinstance(mechanism, AdditiveNoise):
            raise TypeError(f"mechanism must be a dpaudit.AdditiveNoise, got {mechanism!r}")
        before = self._fingerprint()
        if mechanism.is_random:
            finding, long = replace(self, draws=min(self.draws, MAX_DRAWS))._draw(mechanism, role)
        else:
            finding, long = exact.compute(
                mechanism, self.claim, self.candidates, self.grid, self.claimed
            )
        if self._fingerprint() != before:
            raise MechanismError(
                f"{mechanism.name} changes its input: the data are not what they were before the "
                "audit; a mechanism must leave them alone"
            )
        return replace(finding, long_profile=long)

    def _fingerprint(self) -> list[bytes]:
        both = ((pair.left, pair.right) for pair in self.candidates)
        return [hashlib.sha256(data.tobytes()).digest() for pair in both for data in pair]

    def _draw(self, mechanism: AdditiveNoise, role: str) -> tuple[Certificate, LongProfile]:
        # `AdditiveNoise.checked` refuses inf, in words of centres.
        labels = (self.name, role)
        sampler = Sampler(_CentersOnly(mechanism), seed=self.seed, labels=labels, finite=False)
        pair, explored, plan = self._explore(mechanism, sampler, role)
        tally = self._certify(mechanism, sampler, role, pair, plan)
        return self._finding(sampler, pair, explored, plan, tally)

    # --- explore ---

    def _explore(
        self, mechanism: AdditiveNoise, sampler: Sampler, role: str
    ) -> tuple[NeighborPair, int, Plan]:
        """Choose pair, events, epsilons and bets; nothing that is drawn here is used to certify."""
        pairs = self.candidates.pairs
        sampler.begin(pairs[0].left, pairs[0].right)
        explore = int(min(self.draws * EXPLORE_SHARE, MAX_EXPLORE))
        explore = min(max(explore, 8), self.draws - 1)
        explore = max(min(explore, int(MAX_EXPLORE_CELLS / sampler.width)), 8)
        rng = generator(self.seed, self.name, role, "learn")
        if len(pairs) == 1:
            drawn = _centers(mechanism, sampler, pairs[0], explore, "explore")
            return pairs[0], explore, self._plan(mechanism, drawn, explore, rng)
        # Half of the exploration draws are shared by all pairs, half go to the best of them.
        pilot = max(explore // 2 // len(pairs), MIN_PILOT)
        pilots = []
        for index, pair in enumerate(pairs):
            if index > 0:
                sampler.begin(pair.left, pair.right)
            pilots.append(_centers(mechanism, sampler, pair, pilot, f"pilot {index}"))
        more = max(explore - pilot * len(pairs), MIN_PILOT)
        explored = pilot * len(pairs) + more
        promises = [self._plan(mechanism, drawn, explored, rng).promise for drawn in pilots]
        best = max(range(len(pairs)), key=lambda index: (promises[index], -index))
        sampler.turn()
        fresh = _centers(mechanism, sampler, pairs[best], more, "explore")
        drawn = pilots[best].joined(fresh)
        return pairs[best], explored, self._plan(mechanism, drawn, explored, rng)

    def _plan(
        self, mechanism: AdditiveNoise, drawn: Centers, explored: int, rng: np.random.Generator
    ) -> Plan:
        budget = Budget.of(mechanism.noise, self.draws - explored, drawn.left.shape[1])
        return Plan.make(
            mechanism.noise,
            drawn,
            budget,
            self.failure_prob,
            self.claim.point,
            (self.grid, self.claimed),
            rng=rng,
        )

    # --- certify ---

    def _certify(
        self, mechanism: AdditiveNoise, sampler: Sampler, role: str, pair: NeighborPair, plan: Plan
    ) -> Tally:
        """Evaluate the frozen events on fresh centres, chunk by chunk."""
        certify = plan.budget.draws
        tally = Tally(plan)
        checks = {side: IndependenceCheck(sampler.name) for side in ("left", "right")}
        balls = plan.centers.balls
        chunks = zip(
            sampler.chunks(pair.left, certify, "certify", "left"),
            sampler.chunks(pair.right, certify, "certify", "right"),
            strict=True,
        )
        for index, outputs in enumerate(chunks):
            left, right = (
                mechanism.checked(drawn, balls[side])
                for side, drawn in zip(("left", "right"), outputs, strict=True)
            )
            rng = generator(self.seed, self.name, role, "auxiliary", index)
            hits = tally.add({"left": left, "right": right}, rng=rng)
            for side, drawn in zip(("left", "right"), outputs, strict=True):
                checks[side].add(drawn, hits[side])
        for check in checks.values():
            check.judge()
        return tally

    def _finding(
        self, sampler: Sampler, pair: NeighborPair, explored: int, plan: Plan, tally: Tally
    ) -> tuple[Certificate, LongProfile]:
        point = plan.point
        bounds: list[RateBounds] = []
        epsilons: list[float] = []
        for i, question in enumerate(plan.questions):
            epsilon, delta = _answer(question, *tally.pair(i))
            bound = RateBounds.from_excess(epsilon, delta, question.failure_prob)
            bounds.append(bound)
            # At its own delta an excess says all of epsilon, which its rates alone do not.
            own = epsilon if delta >= point[1] else 0.0
            epsilons.append(max(bound.lower_epsilon(point[1]), own))
        # All bounds hold together, so the best may be picked, and shown, after the fact.
        deltas = [b.lower_delta(point[0]) for b in bounds]
        for_epsilon, for_delta = int(np.argmax(epsilons)), int(np.argmax(deltas))
        certified = [max(b.lower_delta(float(e)) for b in bounds) for e in self.grid]
        long = tally.profile()
        event = plan.questions[for_epsilon].candidate
        p, q = tally.means(for_epsilon)
        method = f"betting on event probabilities with the {plan.noise} integrated out"
        finding = Certificate(
            pair=pair,
            point=point,
            refuted=epsilons[for_epsilon] > point[0] or deltas[for_delta] > point[1],
            epsilon=Estimate(
                _loss(p, q, point[1]),
                epsilons[for_epsilon],
                math.inf,
                self.failure_prob,
                method,
                None,
                True,
            ),
            delta=Estimate(
                _excess(*tally.means(for_delta), point[0]),
                deltas[for_delta],
                1.0,
                self.failure_prob,
                method,
                None,
                True,
            ),
            profile=Profile(
                tuple(self.grid.tolist()),
                tuple(certified),
                long.estimated_delta[: len(self.grid)],
                tuple(self.claimed.tolist()),
            ),
            witness=Witness(
                f"{event.event.words}, averaged over the noise (probabilities are estimates)",
                event.likelier,
                None,
                p,
                q,
            ),
            histogram=tally.histogram(for_epsilon),
            draws={"explore": explored, "certify": plan.budget.draws},
            mechanism_seconds=sampler.seconds,
            event=None,
            bounds=tuple(bounds),
        )
        return finding, long


class _CentersOnly:
    """The centre function as a sampled mechanism, for the checks of :class:`Sampler`."""

    def __init__(self, mechanism: AdditiveNoise) -> None:
        self._mechanism = mechanism
        self.__name__ = mechanism.name
        self.dpaudit_unseeded = mechanism.dpaudit_unseeded

    def __call__(self, data: NDArray[Any], size: int, *, rng: np.random.Generator) -> Any:
        return self._mechanism.centers(data, size, rng=rng)


def _centers(
    mechanism: AdditiveNoise, sampler: Sampler, pair: NeighborPair, draws: int, role: str
) -> Centers:
    balls = {"left": mechanism.ball(pair.left), "right": mechanism.ball(pair.right)}
    left = mechanism.checked(sampler.draw(pair.left, draws, role, "left"), balls["left"])
    right = mechanism.checked(sampler.draw(pair.right, draws, role, "right"), balls["right"])
    return Centers(left, right, balls)


def _answer(question: Question, x: Floats, y: Floats) -> tuple[float, float]:
    """Return (epsilon, delta) with ``E[X] - e^epsilon E[Y] > delta`` certified; (0, 0) if none.

    A bound of 0 says that nothing was certified, not even the other half of its pair.
    """
    target, bet, failure_prob = question.target, question.bet, question.failure_prob
    if target.delta is not None:
        epsilon = bet.lower_epsilon(x, y, target.delta, failure_prob)
        return (epsilon, target.delta) if epsilon > 0 else (0.0, 0.0)
    assert target.epsilon is not None
    delta = bet.lower_delta(x, y, target.epsilon, failure_prob)
    return (target.epsilon, min(delta, 1.0)) if delta > 0 else (0.0, 0.0)


def _loss(p: float, q: float, delta: float) -> float:
    return max(math.log((p - delta) / max(q, 1e-300)), 0.0) if p > delta else 0.0


def _excess(p: float, q: float, epsilon: float) -> float:
    return max(p - math.exp(min(epsilon, 700.0)) * q, 0.0)
