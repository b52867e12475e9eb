"""Audits that stop as soon as the evidence is in, and may be watched all the while.

The null is ``p <= e^epsilon q + delta`` for every event, p and q being its probabilities on the
likelier side and on the other. Draws come in batches. Before a batch, events are learnt on *all
earlier* draws and a bet is laid: rates (p1, q1) that the earlier draws suggest. With (p0, q0) the
point of the null that is closest to them in ``kl(p1, p) + kl(q1, q)``, the likelihood ratio

    S = prod over left draws  p1(x) / p0(x)  *  prod over right draws  q1(y) / q0(y)

is a bet against the null. For one draw of each side, with
``A = (p1 - p0) / (p0 (1 - p0))`` and ``B = (q0 - q1) / (q0 (1 - q0))``,

    E S = (1 + A (p - p0)) (1 - B (q - q0)) <= (1 + A theta t) (1 - B t) = 1 - (B t)^2 <= 1

for every (p, q) of the null, with ``theta = e^epsilon`` and ``t = q - q0``: the first step is the
null, the second the condition ``A theta = B`` that makes (p0, q0) the closest point. So the wealth,
the product of S over all batches, is a non-negative supermartingale under the null, and Ville's
inequality bounds the probability that it *ever* reaches ``1 / failure_prob`` by failure_prob,
whatever the rule by which we stop (Turner, Ly and Grunwald 2024 prove the same for any convex
null).

A wealth is kept for each of a few levels of epsilon. The nulls are nested, so the certified epsilon
is the largest level that, with all levels below it, was ever refused: it is wrong only if the
smallest level at or above the truth was refused, which is one event of probability failure_prob.

References
----------
Turner, Ly and Grunwald (2024), "Generic E-variables for exact sequential k-sample tests that allow
for optional stopping".
"Sequentially auditing differential privacy" (2025), arXiv:2509.07055, bets with kernels instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from dpaudit.engine.certificate import Bound, Certificate
from dpaudit.engine.counts import no_floats_note, rates_seen
from dpaudit.engine.explore import Draws, Exploration, explore
from dpaudit.engine.pictures import OutputHistogram
from dpaudit.engine.task import EXPLORE_SHARE, Task
from dpaudit.events import Event, approximate_lower, approximate_upper, learn
from dpaudit.mechanisms import SUSPICION, IndependenceCheck, Sampler
from dpaudit.results import SequentialPath, Witness
from dpaudit.stats import Counts, RateBounds

Floats = NDArray[np.float64]

SIDES = ("left", "right")

FIRST_BATCH = 64
GROWTH = 1.5
"""Each batch may be this much larger than the one before."""

LOOKS = 16
"""Calls of a batch, at most; the wealth is looked at after each."""

LEAST_CALL = 16
"""Draws of a call at least: enough to see that the draws of a call go together."""

LEAST_DRAWS = 128
"""Draws per dataset that were bet on before which nothing is refuted, so that their independence
can be judged."""

FUTILE_AFTER = 0.3
"""Share of the budget before which no audit gives up."""

_PAIR_SHARE = 0.03  # of the budget, to choose among several pairs
_LEARN_SHARE = 0.6  # few draws are more needed by a score than by its cut
_MARGIN = 1e-6  # how far above the claim lies the level whose refusal refutes it
_CAREFUL = 0.15  # one-sided level of the limits on which a careful bet is laid
# How boldly, and with which share of the wealth: the best event carefully, the best event as it
# looks, the second best carefully.
_STAKES = ((1.0, 0.5), (0.85, 0.25), (1.0, 0.25))
_POOL = 6  # events that are remembered
_OPTIMISM = 0.025
_SAMPLE = 2500


@dataclass(frozen=True)
class Bet:
    """Rates suggested by earlier draws against the closest rates of the null.

    Parameters
    ----------
    event : Event
        Frozen before the draws of its batch.
    p1, q1, p0, q0 : ndarray, shape (levels,)
        For each level of epsilon; a level without a bet has ``p1 == p0`` and ``q1 == q0``.
    """

    event: Event
    p1: Floats
    q1: Floats
    p0: Floats
    q0: Floats

    @classmethod
    def lay(
        cls, event: Event, p: float, q: float, levels: Floats, delta: float, bold: float
    ) -> Bet:
        """Bet on rates between the null and (p, q): at (p, q) itself for ``bold = 1``."""
        p1, q1, p0, q0 = (np.full(len(levels), 0.5) for _ in range(4))
        for i, epsilon in enumerate(levels):
            near_p, near_q = closest_null(p, q, float(epsilon), delta)
            if near_p >= p:
                continue
            middle_p, middle_q = near_p + bold * (p - near_p), near_q + bold * (q - near_q)
            p1[i], q1[i] = middle_p, middle_q
            p0[i], q0[i] = closest_null(middle_p, middle_q, float(epsilon), delta)
        return cls(event, p1, q1, p0, q0)

    def log_growth(self, hits: tuple[int, int], draws: int) -> Floats:
        """Logarithm of the factor by which the wealth of each level grows.

        Parameters
        ----------
        hits : (int, int)
            On the likelier side and on the other.
        draws : int
            On either side.
        """
        a, b = hits
        return np.asarray(
            a * np.log(self.p1 / self.p0)
            + (draws - a) * np.log((1 - self.p1) / (1 - self.p0))
            + b * np.log(self.q1 / self.q0)
            + (draws - b) * np.log((1 - self.q1) / (1 - self.q0))
        )


def closest_null(p: float, q: float, epsilon: float, delta: float) -> tuple[float, float]:
    """Return the point of ``p' <= e^epsilon q' + delta`` closest to (p, q).

    Closest in ``kl(p, p') + kl(q, q')``, the rate at which the best bet grows.

    Parameters
    ----------
    p, q : float
        Strictly between 0 and 1.
    epsilon, delta : float
        The null.

    Returns
    -------
    (float, float)
        (p, q) itself when it lies in the null.

    Examples
    --------
    >>> p, q = closest_null(0.5, 0.1, 1.0, 0.0)
    >>> round(p, 4), round(p / q, 4)  # on the boundary p = e q
    (0.4558, 2.7183)
    """
    theta = math.exp(min(epsilon, 600.0))
    if p <= theta * q + delta:
        return p, q

    def slope(x: float) -> float:
        y = theta * x + delta
        return (x - q) / (x * (1 - x)) - theta * (p - y) / (y * (1 - y))

    high = min((p - delta) / theta, 1.0)
    # The slope is negative at q and positive where p' reaches p.
    x = float(optimize.brentq(slope, q, high, xtol=1e-300, rtol=1e-14))
    # A rate that is rounded downwards would favour the bet; a little beyond the null costs nothing.
    return (theta * x + delta) * (1 + 1e-13), x


class Game:
    """One mechanism bet on, batch by batch.

    Parameters
    ----------
    task : Task
        What is asked.
    sampler : Sampler
        Draws from the mechanism.
    role : str
        Names the streams of random numbers.
    """

    def __init__(self, task: Task, sampler: Sampler, role: str) -> None:
        self.task, self.sampler, self.role = task, sampler, role
        self.exploration = explore(
            task, sampler, role, share=_first_share(task), learn_share=_LEARN_SHARE
        )
        self.point = task.claim.point or self.exploration.selection.point
        epsilon = self.point[0]
        level = epsilon * (1 + _MARGIN) + 1e-9
        self.levels = np.unique(np.append(task.grid[task.grid != epsilon], level))
        self.claim_level = int(np.searchsorted(self.levels, level))
        self.refuted_at = -math.log(task.failure_prob)
        self.past: dict[str, list[NDArray[Any]]] = {
            side: [drawn] for side, drawn in zip(SIDES, self.exploration.draws, strict=True)
        }
        self.log_wealth = np.zeros(len(self.levels))
        self.most = np.zeros(len(self.levels))
        self.checks = {side: IndependenceCheck(sampler.name) for side in SIDES}
        self.explored = self.spent = self.exploration.explored
        self.pool: list[tuple[Event, int]] = []
        self.best_growth = math.inf
        self.path: list[tuple[int, float]] = []
        self.event = self.exploration.selection.primary
        self.last = _counts(self.event, *self.exploration.draws)
        self.stopped = "the budget is spent"

    def play(self) -> None:
        """Bet until the claim falls, nothing worth the rest is left, or the budget is spent."""
        rng = self.task.rng(self.role, "learn again")
        batch, learnt_on, budget = 0, self.spent, self.task.draws
        while self.spent < budget:
            batch += 1
            # Batches grow with the draws that were bet on: a long search must not end in a leap.
            size = max(FIRST_BATCH, int((self.spent - self.explored) * (GROWTH - 1)))
            size = min(size, budget - self.spent)
            if self.spent >= learnt_on * (1 + (GROWTH - 1) / 2):
                self._learn_again(rng)
                learnt_on = self.spent
            self._play_batch(self._bets(), size, f"batch {batch}")
            for check in self.checks.values():
                check.judge()
            if self.refuted:
                self.stopped = "the claim is refuted"
                return
            waiting = self.refused > self.claim_level  # for draws that look independent
            if self.spent >= FUTILE_AFTER * budget and not waiting and self._is_futile():
                self.stopped = "no violation worth the rest of the budget is left"
                return

    @property
    def refused(self) -> int:
        """How many levels are refused, counted from below without a gap."""
        refused = self.most >= self.refuted_at
        return len(refused) if refused.all() else int(refused.argmin())

    @property
    def refuted(self) -> bool:
        """Whether the claim fell, on draws that look independent, or on the last of the budget.

        Draws that look dependent are followed by more, which end in a refusal of the mechanism or
        show it to be honest. Waiting only puts a refutation off, so it needs no argument.
        """
        if self.refused <= self.claim_level or self.spent - self.explored < LEAST_DRAWS:
            return False
        suspicion = max(check.log_evidence for check in self.checks.values())
        return suspicion < SUSPICION or self.spent >= self.task.draws

    # --- learning ---

    def _everything(self) -> Draws:
        """All draws so far."""
        left, right = (np.concatenate(self.past[side]) for side in SIDES)
        self.past = {"left": [left], "right": [right]}
        return left, right

    def _learn_again(self, rng: np.random.Generator) -> None:
        draws = self._everything()
        pair = self.exploration.pair
        goal = self.task.goal(max(self.task.draws - self.spent, len(draws[0])), _LEARN_SHARE)
        selection = learn(*draws, goal, rng=rng, float_attack=self.task.attack_on(pair))
        self.exploration = Exploration(
            pair, selection, draws, self.explored, self.exploration.search
        )

    def _bets(self) -> list[Bet]:
        """Bet on the events that should grow fastest at the claimed level, new or known.

        Their rates are told by draws from which they were not learnt: an event of earlier batches
        has more of those. What is bet on are rates moved against us, less and less as draws come
        in: early in an audit, a bold bet on a lucky find loses more than it wins.
        """
        left, right = self._everything()
        epsilon, delta = float(self.levels[self.claim_level]), self.point[1]
        selection = self.exploration.selection
        fresh = [selection.primary, *selection.profile]
        known = [(event, int(len(left) * event.learnt_share)) for event in fresh] + self.pool
        judged, growths = [], []
        for event, start in known:
            draws = len(left) - start
            p, q = _rates(event, left[start:], right[start:])
            careful = _moved(p, q, draws, _CAREFUL)
            # Where nothing speaks against the claim, certify at least the levels below it.
            objective = (
                _growth(*careful, epsilon, delta),
                sum(_growth(*careful, float(level), delta) for level in self.levels[::4]),
            )
            judged.append((objective, event, start, (p, q), careful))
            growths.append(_growth(*_spread(p, q, draws, _OPTIMISM), epsilon, delta))
        judged.sort(key=lambda j: j[0], reverse=True)
        self.best_growth = max(growths)
        self.pool = [(event, start) for _, event, start, _, _ in judged[:_POOL]]
        best, second = judged[0], judged[min(1, len(judged) - 1)]
        laid = ((best[1], best[4]), (best[1], best[3]), (second[1], second[4]))
        return [
            Bet.lay(event, *rates, self.levels, delta, bold)
            for (event, rates), (bold, _) in zip(laid, _STAKES, strict=True)
        ]

    # --- betting ---

    def _play_batch(self, bets: list[Bet], size: int, role: str) -> None:
        """Draw one batch and settle the bets after each call; stop where the claim falls."""
        pair = self.exploration.pair
        calls = min(LOOKS, max(size // LEAST_CALL, 1), self.task.calls(size))
        streams = [
            self.sampler.chunks(data, size, role, side, calls=calls)
            for side, data in (("left", pair.left), ("right", pair.right))
        ]
        events = {id(bet.event): bet.event for bet in bets}
        self.event = bets[0].event
        start = self.log_wealth.copy()
        grown = np.zeros((len(bets), len(self.levels)))
        shares = np.log([share for _, share in _STAKES])[:, None]
        total = np.zeros(4, dtype=int)
        for outputs in zip(*streams, strict=True):
            draws = len(outputs[0])
            hits: dict[str, dict[int, int]] = {}
            for side, drawn in zip(SIDES, outputs, strict=True):
                self.past[side].append(drawn)
                fired = {key: event(drawn) for key, event in events.items()}
                self.checks[side].add(drawn, np.array(list(fired.values())), tuple(events.values()))
                hits[side] = {key: int(inside.sum()) for key, inside in fired.items()}
            for row, bet in enumerate(bets):
                likelier = bet.event.likelier
                other = "right" if likelier == "left" else "left"
                key = id(bet.event)
                grown[row] += bet.log_growth((hits[likelier][key], hits[other][key]), draws)
            first = id(self.event)
            total += (hits["left"][first], draws, hits["right"][first], draws)
            self.spent += draws
            self.log_wealth = start + special.logsumexp(grown + shares, axis=0)
            self.most = np.maximum(self.most, self.log_wealth)
            self.path.append((self.spent, float(self.log_wealth[self.claim_level])))
            if self.refuted:
                break
        self.last = Counts(*(int(count) for count in total))

    def _is_futile(self) -> bool:
        """Whether even an optimistic reading of the best event would not refute in time."""
        wealth = float(self.log_wealth[self.claim_level])
        return wealth + self.best_growth * (self.task.draws - self.spent) < self.refuted_at


def look(task: Task, mechanism: Any, role: str) -> Certificate:
    """Bet on a mechanism that draws its outputs; parameters as of :func:`counts.look`."""
    sampler = task.sampler(mechanism, role)
    game = Game(task, sampler, role)
    game.play()
    return _certify(game)


def _first_share(task: Task) -> float:
    """Share of the budget on which the pair and the first events are chosen."""
    pairs = len(task.pairs)
    # What a pair is good for must be seen before it is bet on, also where its event is rare.
    family = max(4 * FIRST_BATCH * pairs, int(_PAIR_SHARE * task.draws))
    first = FIRST_BATCH if pairs == 1 else family
    return min(first / task.draws, EXPLORE_SHARE)


def _certify(game: Game) -> Certificate:
    task, event, seen = game.task, game.event, game.last
    epsilon, delta = game.point
    refused = game.refused
    certified = float(game.levels[refused - 1]) if refused else 0.0
    bounds = RateBounds.from_excess(certified, delta, task.failure_prob)
    guess = rates_seen(seen, event.likelier)
    left, right = game._everything()
    everything = rates_seen(_counts(event, left, right), event.likelier)
    picture = OutputHistogram.plan(event, np.concatenate([left[:_SAMPLE], right[:_SAMPLE]]))
    for side, drawn in (("left", left), ("right", right)):
        encoded = event.encoder(drawn)
        picture.add(side, encoded, event.score(encoded))
    return Certificate.of(
        task,
        game.exploration.pair,
        game.point,
        epsilon=Bound(everything.lower_epsilon(delta), certified, seen),
        delta=Bound(
            everything.lower_delta(epsilon),
            delta if refused > 0 and certified >= epsilon else 0.0,
            seen,
        ),
        certified=np.where((task.grid <= certified) & (refused > 0), delta, 0.0),
        estimated=[everything.lower_delta(float(e)) for e in task.grid],
        method="wealth of a bet against the claim",
        refuted=game.refuted,
        explored=game.explored,
        certifying=game.spent - game.explored,
        witness=Witness(event.description, event.likelier, seen, *guess.worst_case(delta)),
        histogram=picture.done(),
        mechanism_seconds=game.sampler.seconds,
        # Ville's inequality, at the level of the claim.
        p_value=math.exp(-float(game.most[game.claim_level])) if game.refuted else 1.0,
        event=event,
        bounds=(bounds,) if refused > 0 else (),
        search=game.exploration.search,
        notes=no_floats_note(task, game.sampler)
        + tuple(check.note for check in game.checks.values() if check.note),
        sequential=SequentialPath(
            game.stopped,
            task.draws,
            game.refuted_at,
            tuple(draws for draws, _ in game.path),
            tuple(wealth for _, wealth in game.path),
        ),
    )


def _counts(event: Event, left: NDArray[Any], right: NDArray[Any]) -> Counts:
    return Counts(int(event(left).sum()), len(left), int(event(right).sum()), len(right))


def _rates(event: Event, left: NDArray[Any], right: NDArray[Any]) -> tuple[float, float]:
    """Rates seen on the likelier side and on the other, half a draw away from 0 and 1."""
    seen = rates_seen(_counts(event, left, right), event.likelier)
    return float(seen.likely[0]), float(seen.rare[0])


def _moved(p: float, q: float, draws: int, level: float) -> tuple[float, float]:
    """Rates moved towards each other by their one-sided limits at `level`."""
    low = float(approximate_lower(p * draws, draws, level))
    high = float(approximate_upper(q * draws, draws, level))
    return min(max(low, 1e-9), 1 - 1e-9), min(max(high, 1e-9), 1 - 1e-9)


def _spread(p: float, q: float, draws: int, level: float) -> tuple[float, float]:
    """Rates moved apart by their one-sided limits at `level`."""
    high = float(approximate_upper(p * draws, draws, level))
    return high, float(approximate_lower(q * draws, draws, level))


def _growth(p: float, q: float, epsilon: float, delta: float) -> float:
    """Return the expected growth of the log wealth, per draw of each side."""
    p, q = min(max(p, 1e-12), 1 - 1e-12), min(max(q, 1e-12), 1 - 1e-12)
    near_p, near_q = closest_null(p, q, epsilon, delta)
    terms = ((p, near_p), (1 - p, 1 - near_p), (q, near_q), (1 - q, 1 - near_q))
    return float(sum(special.rel_entr(x, y) for x, y in terms))
