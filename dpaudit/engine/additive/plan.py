"""The choices of events, epsilons and bets, which are made before the certifying draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.additive.candidates import (
    CAUTION,
    MIXTURE,
    Screening,
    joint_variance,
    screen,
)
from dpaudit.engine.additive.events import (
    SIDES,
    BallOrNone,
    Candidate,
    IntegratedEvent,
    RatioEvent,
)
from dpaudit.engine.task import Task, divide
from dpaudit.stats import Noise, PairedBet, Target, expected_bound

Floats = NDArray[np.float64]

FIRST_SHARE = 0.8
"""Part of failure_prob that the first question gets; the others share the rest."""

PROFILE_EPSILONS = 6
ESTIMATE_EVENTS = 32
_LEARN_SHARE = 1 / 3
_SCREENING_DRAWS = 2000
_JUDGING_DRAWS = 20_000
_FINALISTS = 6
_RATIO_CELLS = 1.5e8
_AUXILIARY_CELLS = 2**23
_MIN_MIXTURE = 32
_MAX_RATIO_DIMENSION = 500


NEGLIGIBLE = 1e-9
MAX_EPSILON = 50.0
_POINTS = 40


def extended(grid: Floats, delta: Callable[[Any], Any]) -> Floats:
    """Continue a grid of epsilons until `delta` is negligible, or epsilon is 50."""
    end = float(grid[-1])
    if end >= MAX_EPSILON or float(delta(end)) < NEGLIGIBLE:
        return grid
    low, high = end, min(2 * max(end, 0.5), MAX_EPSILON)
    while high < MAX_EPSILON and float(delta(high)) >= NEGLIGIBLE:
        low, high = high, min(2 * high, MAX_EPSILON)
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if float(delta(middle)) >= NEGLIGIBLE else (low, middle)
    return np.concatenate([grid, np.linspace(end, max(high, end), _POINTS + 1)[1:]])


@dataclass(frozen=True, eq=False)
class Centers:
    """Exploration centres ``[size, d]`` of both sides, and the balls declared to contain them."""

    left: Floats
    right: Floats
    balls: dict[str, BallOrNone]

    def __getitem__(self, side: str) -> Floats:
        return self.left if side == "left" else self.right

    def joined(self, other: Centers) -> Centers:
        """Return the union of these centres and other centres of the same pair."""
        left = np.concatenate([self.left, other.left])
        return Centers(left, np.concatenate([self.right, other.right]), self.balls)


@dataclass(frozen=True)
class Budget:
    """Numbers of certifying draws, and sizes of the likelihood ratios."""

    draws: int
    mixture: int
    auxiliary: int

    @classmethod
    def of(cls, noise: Noise, draws: int, d: int) -> Budget:
        """Choose the sizes of likelihood ratios so that certifying an event takes only seconds."""
        cost = draws * 4 * (4 * d if noise.kind == "laplace" else 1 + d / 50)
        affordable = int(_RATIO_CELLS / cost)
        mixture = min(affordable, MIXTURE)
        if mixture < _MIN_MIXTURE or d > _MAX_RATIO_DIMENSION:
            return cls(draws, 0, 1)
        return cls(draws, mixture, int(np.clip(min(affordable // mixture, 200 // d), 1, 4)))


@dataclass(frozen=True)
class Question:
    """One number to certify, with its event, its target and its bet."""

    candidate: Candidate
    target: Target
    bet: PairedBet


@dataclass(frozen=True)
class Plan:
    """All choices that are made before the certifying draws.

    Parameters
    ----------
    questions : tuple of Question
        Questions: the epsilon at the claimed delta, the delta at the claimed epsilon, and the
        profile.
    weights : list of float
        Weight of each question in the division of failure_prob.
    estimates : tuple of Candidate
        Events that are used only for the estimated profile.
    point : tuple of float
        Point (epsilon, delta) of the claim that is tested.
    long : ndarray
        Grid of the estimated profile.
    objective : float
        Value that the first question is expected to certify. The value is used to compare pairs.
    """

    noise: Noise
    centers: Centers = field(repr=False)
    budget: Budget
    questions: tuple[Question, ...]
    weights: list[float]
    estimates: tuple[Candidate, ...]
    point: tuple[float, float]
    long: Floats
    objective: float

    @classmethod
    def make(
        cls,
        noise: Noise,
        centers: Centers,
        budget: Budget,
        task: Task,
        *,
        rng: np.random.Generator,
    ) -> Plan:
        """Learn events and make all choices on exploration centres."""
        judged = _judge(noise, centers, budget, rng)
        grid = task.grid
        least = divide(task.failure_prob, [(1 - FIRST_SHARE) / (1 + PROFILE_EPSILONS)])[0]
        cost = math.log(2 / least)
        point = task.claim.point
        best = np.zeros(len(grid))
        if point is None or not task.is_brief:
            best = np.array([judged.best(Target(epsilon=float(e)), cost) for e in grid])
        point = point or task.worst_point(best)
        targets = [Target(delta=point[1]), Target(epsilon=point[0])]
        certifiable = grid[(best > 0) & (grid != point[0])]
        if len(certifiable) and not task.is_brief:
            picks = np.linspace(0, len(certifiable) - 1, PROFILE_EPSILONS).round().astype(int)
            targets += [Target(epsilon=float(e)) for e in certifiable[np.unique(picks)]]
        weights = [FIRST_SHARE] + [(1 - FIRST_SHARE) / (len(targets) - 1)] * (len(targets) - 1)
        shares = divide(task.failure_prob, weights)
        asked = list(map(judged.question, targets, shares))
        questions, objective = tuple(question for question, _ in asked), asked[0][1]
        long = grid if task.is_brief else extended(grid, judged.best_excess)
        estimates = () if task.is_brief else judged.estimating(long)
        return cls(noise, centers, budget, questions, weights, estimates, point, long, objective)


@dataclass(frozen=True, eq=False)
class _Judge:
    """Candidates, and their estimates from exploration.

    The centres `judging` were not used to learn directions and mixtures. So the estimates for
    ratios are not biased upwards.
    """

    noise: Noise
    balls: dict[str, BallOrNone]
    judging: dict[str, Floats]
    auxiliary: Floats
    draws: int
    screening: Screening

    def best(self, target: Target, cost: float) -> float:
        """Return the largest expected certified value of all events."""
        return max(
            float(v.max()) for v in self.screening.expected(target, self.draws, cost).values()
        )

    def best_excess(self, epsilon: float) -> float:
        """Return the largest estimated excess, which gives the range of the estimated profile."""
        found = self.screening.excess(float(epsilon), caution=1.0)
        return max(float(v[self.screening.exact].max()) for v in found.values())

    def question(self, target: Target, failure_prob: float) -> tuple[Question, float]:
        """Choose an event and plan its bets.

        Also return a cautious estimate of the bound.
        """
        cost = math.log(2 / failure_prob)
        expected = self.screening.expected(target, self.draws, cost)
        if not any(np.isfinite(v).any() for v in expected.values()):
            expected = self.screening.expected(Target(epsilon=0.0), self.draws, cost)
        ranked = [(-value, side, at) for side in SIDES for at, value in _top(expected[side])]
        finalists = [self.screening.candidate(side, at) for _, side, at in sorted(ranked)]
        finalists = [*finalists[:_FINALISTS], *self._guesses(target, cost)]
        objectives = [
            self._expected_bound(candidate, target, failure_prob) for candidate in finalists
        ]
        best = int(np.argmax(objectives))
        chosen = finalists[best]
        bet = PairedBet.plan(
            *self._values(chosen),
            draws=self.draws * len(chosen.events),
            failure_prob=failure_prob,
            target=target,
            largest=chosen.largest(self.noise, self.balls),
        )
        return Question(chosen, target, bet), objectives[best]

    def _guesses(self, target: Target, cost: float) -> list[Candidate]:
        """Pair the best events for the two sides, as for randomised draws.

        For each side, the best event with a closed form and the best ratio are tried. The event and
        the ratio are both tried, because their estimates are not equally cautious.
        """
        expected = self.screening.expected(target, 2 * self.draws, cost)
        exact = self.screening.exact
        left, right = (
            [
                int(best.argmax())
                for kind in (exact, ~exact)
                if np.isfinite(best := np.where(kind, expected[side], -np.inf)).any()
            ]
            for side in SIDES
        )
        return [self.screening.candidate("left", a, b) for a in left for b in right]

    def _expected_bound(self, candidate: Candidate, target: Target, failure_prob: float) -> float:
        x, y = self._values(candidate)
        bound = expected_bound(
            x,
            y,
            draws=self.draws * len(candidate.events),
            failure_prob=failure_prob,
            target=target,
            largest=candidate.largest(self.noise, self.balls),
        )
        p, q, vx, vy = x.mean(), y.mean(), x.var() / len(x), y.var() / len(y)
        if target.delta is None:
            factor = math.exp(min(target.epsilon or 0.0, 700.0))
            return bound - CAUTION * math.sqrt(joint_variance(vx, vy, factor))
        top, bottom = max(p - target.delta, 1e-300), max(q, 1e-300)
        return bound - CAUTION * math.hypot(math.sqrt(vx) / top, math.sqrt(vy) / bottom)

    def _values(self, candidate: Candidate) -> tuple[Floats, Floats]:
        def value(event: IntegratedEvent, side: str, _: float) -> Floats:
            return event.values(self.noise, self.judging[side], self.auxiliary)

        return candidate.pairs(value)

    def estimating(self, long: Floats) -> tuple[Candidate, ...]:
        """Return the closed-form event that has the best estimate at each of some epsilons."""
        picks = np.unique(np.linspace(0, len(long) - 1, ESTIMATE_EVENTS).round().astype(int))
        chosen = []
        for epsilon in long[picks]:
            found = self.screening.excess(float(epsilon))
            excess = {s: np.where(self.screening.exact, found[s], -np.inf) for s in SIDES}
            side = max(SIDES, key=lambda s: float(excess[s].max()))
            chosen.append((side, int(excess[side].argmax())))
        return tuple(self.screening.candidate(*key) for key in dict.fromkeys(chosen))


def _top(values: Floats) -> list[tuple[int, float]]:
    order = np.argsort(-values, kind="stable")[:_FINALISTS]
    return [(int(i), float(values[i])) for i in order]


def _judge(noise: Noise, centers: Centers, budget: Budget, rng: np.random.Generator) -> _Judge:
    split = max(int(len(centers.left) * _LEARN_SHARE), 1)
    learn = {side: centers[side][:split] for side in SIDES}
    judging = {side: centers[side][split:][:_JUDGING_DRAWS] for side in SIDES}
    size, d = judging["left"].shape
    if budget.mixture > 0:
        size = min(size, max(_AUXILIARY_CELLS // (d * budget.auxiliary), 1))
        judging = {side: judging[side][:size] for side in SIDES}
        auxiliary = noise.sample((budget.auxiliary, size, d), rng=rng)
    else:
        auxiliary = np.empty((0, size, d))
    head = {side: judging[side][:_SCREENING_DRAWS] for side in SIDES}
    some = auxiliary[:, :_SCREENING_DRAWS]
    screening = screen(noise, learn, head, centers.balls, some, budget.mixture)
    return _Judge(noise, centers.balls, judging, auxiliary, budget.draws, screening)


def auxiliary_noise(
    noise: Noise,
    candidates: Iterable[Candidate],
    centers: Floats,
    budget: Budget,
    rng: np.random.Generator,
) -> Floats:
    """Return noise ``[k, size, d]`` for centres or pairs of centres.

    The array is empty if no noise is needed.
    """
    if any(isinstance(event, RatioEvent) for c in candidates for event in c.events):
        return noise.sample((budget.auxiliary, *centers.shape), rng=rng)
    return np.empty((0, *centers.shape))
