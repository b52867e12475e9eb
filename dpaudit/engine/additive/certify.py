"""Certify by probabilities: explore centres, freeze events and bets, and certify on fresh centres.

There are three cases, from the strongest to the weakest:

- *Deterministic centres.* The profile is computed in closed form, without draws.

- *Random centres in a declared ball.* Given the centre, the probability X of an event is at most
  its supremum over the ball. This supremum limits the bets. Such a limit allows certified deltas
  far below ``1 / draws``.

- *Random centres without a ball.* X lies in [0, 1], and nothing else is known. In this case, n
  draws cannot exclude rare centres that make the event certain. All n draws may miss a set of
  centres of total probability ``log(1 / failure_prob) / n``. So no event can be certified to be
  rarer than this probability, and no delta far below it can be certified. Two events that guess
  either side cannot be certified to be rarer than half of this probability.

The i-th centre of the left side is paired with the i-th centre of the right side. Then
:class:`dpaudit.stats.PairedBet` certifies bounds for one event, or for two events that guess either
side (see :meth:`~dpaudit.engine.additive.events.Candidate.pairs`). The epsilon at the claimed delta
gets the share ``FIRST_SHARE`` of `failure_prob`. The delta at the claimed epsilon and the events
of the profile share the rest. Events, sides, epsilons and bets are frozen before the certifying
draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit.engine.additive.exact import search_with_noise
from dpaudit.engine.additive.plan import Budget, Centers, Plan, Question
from dpaudit.engine.additive.values import CentreValues
from dpaudit.engine.certificate import Bound, Certificate
from dpaudit.engine.explore import explore_budget, most_promising
from dpaudit.engine.task import Run, Task
from dpaudit.mechanisms import AdditiveNoise, IndependenceCheck, Sampler
from dpaudit.neighbors import NeighborPair
from dpaudit.results import Witness
from dpaudit.search import SearchRecord
from dpaudit.stats import RateBounds

Floats = NDArray[np.float64]

Pair = tuple[Floats, Floats]
"""Probabilities of a question's events at the centres: of the likelier side, and of the other."""

MAX_EXPLORE = 30_000
"""Exploration draws per dataset; values are smooth, and more would not find better events."""

_LEAST_LOG = -1e12
"""Least logarithm of an e-value. It replaces -inf, because a file holds finite numbers."""

MAX_DRAWS = 4 * 10**6
"""Certifying draws per dataset, whose values are kept in memory."""


@dataclass(frozen=True)
class FrozenCentres:
    """The choices that are made before the certifying centres are drawn.

    Parameters
    ----------
    sampler : Sampler
        Sampler of the centres.
    pair : NeighborPair
        The pair that is audited.
    explored : int
        Number of draws per dataset spent on exploration.
    plan : Plan
        Events, epsilons and bets that were chosen.
    search : SearchRecord, optional
        Record of the search for the pair.
    """

    sampler: Sampler
    pair: NeighborPair
    explored: int
    plan: Plan
    search: SearchRecord | None

    @property
    def weights(self) -> list[float]:
        """Return the weight of each question in `failure_prob`."""
        return self.plan.weights


class ByCentres:
    """Bets on the probabilities of events, given random centres, with the noise integrated out."""

    def explore(self, run: Run) -> FrozenCentres:
        """Choose pair, events, epsilons and bets.

        Raises
        ------
        MechanismError
            If the centres violate the contract of a mechanism: NaN or inf, unequal lengths, a
            centre outside the declared ball, changed input, ignored `rng`, or dependent draws.
        """
        search = search_with_noise(run)
        task = run.task = replace(run.task, draws=min(run.task.draws, MAX_DRAWS))
        mechanism: AdditiveNoise = run.mechanism
        # `AdditiveNoise.checked` refuses inf with a message about centres.
        sampler = run.sampler(_CentersOnly(mechanism), finite=False)
        first = next(iter(task.pairs))
        sampler.begin(first.left, first.right)
        budget = explore_budget(task, sampler, most=MAX_EXPLORE)

        def plan(pair: NeighborPair, centers: Centers, explored: int, label: str) -> Plan:
            return Plan.make(
                mechanism.noise,
                centers,
                Budget.of(mechanism.noise, task.draws - explored, centers.left.shape[1]),
                task.at(pair),
                rng=task.rng(label, "learn"),
            )

        pair, centers, explored = most_promising(
            task.pairs,
            sampler,
            budget,
            draw=lambda pair, draws, label: _draw(mechanism, sampler, pair, draws, label),
            join=Centers.joined,
            objective=lambda pair, seen: (
                plan(pair, seen, budget, f"{run.role} pilot").objective
                / task.allowed(pair.left, pair.right)
            ),
        )
        run.task = task.at(pair)
        chosen = plan(pair, centers, explored, run.role)
        return FrozenCentres(sampler, pair, explored, chosen, search)

    def certify(self, frozen: FrozenCentres, run: Run) -> Certificate:
        """Evaluate the frozen events on fresh centres, call by call, and compute the bounds."""
        mechanism, sampler, pair, plan = run.mechanism, frozen.sampler, frozen.pair, frozen.plan
        certifying = plan.budget.draws
        values = CentreValues(plan)
        checks = {side: IndependenceCheck(sampler.name) for side in ("left", "right")}
        balls = plan.centers.balls
        calls = run.task.calls(certifying)
        chunks = zip(
            sampler.chunks(pair.left, certifying, "certify", "left", calls=calls),
            sampler.chunks(pair.right, certifying, "certify", "right", calls=calls),
            strict=True,
        )
        for index, outputs in enumerate(chunks):
            left, right = (
                mechanism.checked(drawn, balls[side])
                for side, drawn in zip(("left", "right"), outputs, strict=True)
            )
            rng = run.rng("auxiliary", index)
            above = values.add({"left": left, "right": right}, rng=rng)
            for side, drawn in zip(("left", "right"), outputs, strict=True):
                checks[side].add(drawn, above[side])
        for check in checks.values():
            check.judge()
        return replace(_certify(run, frozen, values), search=frozen.search)


def _certify(run: Run, frozen: FrozenCentres, values: CentreValues) -> Certificate:
    task, plan = run.task, frozen.plan
    point = plan.point
    bounds: list[RateBounds] = []
    epsilons: list[float] = []
    for i, (question, share) in enumerate(zip(plan.questions, run.failure_probs, strict=True)):
        epsilon, delta = _answer(question, share, *values.pair(i))
        bound = RateBounds.from_excess(epsilon, delta, share)
        bounds.append(bound)
        # At its own delta, an excess determines epsilon. The rates of the excess alone do not
        # determine epsilon.
        own = epsilon if delta >= point[1] else 0.0
        epsilons.append(max(bound.lower_epsilon(point[1]), own))
    # All bounds hold together, so the best bound may be selected and shown afterwards.
    deltas = [b.lower_delta(point[0]) for b in bounds]
    for_epsilon, for_delta = int(np.argmax(epsilons)), int(np.argmax(deltas))
    refuted = epsilons[for_epsilon] > point[0] or deltas[for_delta] > point[1]
    long = values.profile()
    pairs = [values.pair(i) for i in range(len(plan.questions))]
    event = plan.questions[for_epsilon].candidate
    p, q = values.means(for_epsilon)
    return Certificate.of(
        task,
        frozen.pair,
        point,
        epsilon=Bound(_loss(p, q, point[1]), epsilons[for_epsilon]),
        delta=Bound(_excess(*values.means(for_delta), point[0]), deltas[for_delta]),
        certified=[max(b.lower_delta(float(e)) for b in bounds) for e in task.grid],
        estimated=long.estimated_delta[: len(task.grid)],
        method=f"betting on event probabilities with the {plan.noise} integrated out",
        explored=frozen.explored,
        certifying=plan.budget.draws,
        witness=Witness(
            f"{event.words}, averaged over the noise (probabilities are estimates)",
            event.likelier,
            None,
            p,
            q,
        ),
        histogram=values.histogram(for_epsilon),
        mechanism_seconds=frozen.sampler.seconds,
        refuted=refuted,
        p_value=_p_value(task, plan, pairs) if refuted else 1.0,
        log_e_values=(_log_e_value(plan, pairs),),
        bounds=tuple(bounds),
        long_profile=long,
    )


def _p_value(task: Task, plan: Plan, x: list[Pair]) -> float:
    """Return the smallest failure probability at which the claim is refuted with these weights.

    By Markov's inequality for each of the wealths, the result is a p-value.
    """
    return math.exp(min(-max(_log_wealths(plan, x)), math.log(task.failure_prob)))


def _log_wealths(plan: Plan, x: list[Pair]) -> list[float]:
    """Return the logarithm of each wealth against the claim, times its weight."""
    return [
        question.bet.log_wealth(*pair, *plan.point) + math.log(weight)
        for question, weight, pair in zip(plan.questions, plan.weights, x, strict=True)
    ]


def _log_e_value(plan: Plan, x: list[Pair]) -> float:
    """Return the logarithm of the total wealth, which is an e-value.

    The weights sum to at most 1, and each wealth is at most 1 on average if the claim holds. Some
    questions have no bet that the claim admits, whatever the draws are. These questions keep their
    wealth.
    """
    none = np.zeros(1), np.zeros(1)
    logs = [
        log if question.bet.log_wealth(*none, *plan.point) > -math.inf else math.log(weight)
        for log, question, weight in zip(
            _log_wealths(plan, x), plan.questions, plan.weights, strict=True
        )
    ]
    return max(float(special.logsumexp(logs)), _LEAST_LOG)


class _CentersOnly:
    """The centre function as a sampled mechanism, which the checks of :class:`Sampler` need."""

    def __init__(self, mechanism: AdditiveNoise) -> None:
        self.centers = mechanism.centers
        self.__name__ = mechanism.name
        self.dpaudit_unseeded = mechanism.dpaudit_unseeded

    def __call__(self, data: NDArray[Any], size: int, *, rng: np.random.Generator) -> Any:
        return self.centers(data, size, rng=rng)


def _draw(
    mechanism: AdditiveNoise, sampler: Sampler, pair: NeighborPair, draws: int, role: str
) -> Centers:
    balls = {"left": mechanism.ball(pair.left), "right": mechanism.ball(pair.right)}
    left = mechanism.checked(sampler.draw(pair.left, draws, role, "left"), balls["left"])
    right = mechanism.checked(sampler.draw(pair.right, draws, role, "right"), balls["right"])
    return Centers(left, right, balls)


def _answer(question: Question, failure_prob: float, x: Floats, y: Floats) -> tuple[float, float]:
    """Return a certified point (epsilon, delta), or (0, 0) if nothing is certified.

    If a bound is 0, nothing is certified, and the other number of the pair is 0, too.
    """
    target, bet = question.target, question.bet
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
