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
inequality bounds the probability that it *ever* reaches ``1 / failure_prob`` by failure_prob, whatever
the rule by which we stop (Turner, Ly and Grunwald 2024 prove the same for any convex null).

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
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from dpaudit.engine.certificate import Certificate
from dpaudit.engine.counts import EXPLORE_SHARE, Choice, SampledAudit, Sides, rates_seen
from dpaudit.engine.pictures import OutputHistogram
from dpaudit.events import Event, Goal, approximate_lower, approximate_upper
from dpaudit.mechanisms import IndependenceCheck, Sampler, generator
from dpaudit.neighbors import NeighborPair
from dpaudit.results import Estimate, Profile, SequentialPath, Witness
from dpaudit.stats import Counts, RateBounds

Floats = NDArray[np.float64]

FIRST_BATCH = 64
GROWTH = 1.5
"""Each batch may be this much larger than the one before."""

LOOKS = 16
"""Calls of a batch; the wealth is looked at after each."""

MIN_CALLS = 32
"""Betting calls before which nothing is refuted, so that their independence can be judged."""

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


@dataclass
class _State:
    """What is known so far: draws to learn from, wealth, and the path that it took."""

    levels: Floats
    claim_level: int
    past: dict[str, list[NDArray[Any]]]
    log_wealth: Floats
    best: Floats
    spent: int = 0
    calls: int = 0
    pool: list[tuple[Event, int]] = field(default_factory=list)
    hope: float = math.inf
    path: list[tuple[int, float]] = field(default_factory=list)

    def refused(self, evidence: float) -> int:
        """Return how many levels are refused, counted from below without a gap."""
        refused = self.best >= evidence
        return len(refused) if refused.all() else int(refused.argmin())


@dataclass(frozen=True)
class SequentialAudit(SampledAudit):
    """One claim audited draw by draw; fields as in :class:`dpaudit.engine.counts.SampledAudit`."""

    def _look(self, sampler: Sampler, role: str) -> Certificate:
        rng = generator(self.seed, self.name, role, "learn again")
        choice, drawn = self._explore(sampler, role, self._first_share())
        point = self.claim.point or choice.selection.point
        state = self._start(choice.explored, drawn, point)
        evidence = -math.log(self.failure_prob)
        stopped = "the budget is spent"
        batch, learnt_on = 0, state.spent
        while state.spent < self.draws:
            batch += 1
            # Batches grow with the draws that were bet on: a long search must not end in a leap.
            betting = state.spent - choice.explored
            size = max(FIRST_BATCH, int(betting * (GROWTH - 1)))
            size = min(size, self.draws - state.spent)
            if state.spent >= learnt_on * (1 + (GROWTH - 1) / 2):
                choice, learnt_on = self._learn_again(choice, state, rng), state.spent
            bets = self._bets(choice, state, point[1])
            seen = self._play(sampler, choice, bets, state, size, f"batch {batch}", evidence)
            if state.refused(evidence) > state.claim_level and state.calls >= MIN_CALLS:
                stopped = "the claim is refuted"
                break
            if state.spent >= FUTILE_AFTER * self.draws and self._futile(state, evidence):
                stopped = "no violation worth the rest of the budget is left"
                break
        return self._report(sampler, choice, state, bets[0].event, seen, point, stopped)

    # --- learning ---

    def _first_share(self) -> float:
        """Share of the budget on which the pair and the first events are chosen."""
        pairs = len(self.candidates)
        # What a pair is worth must be seen before it is bet on, also where its event is rare.
        family = max(4 * FIRST_BATCH * pairs, int(_PAIR_SHARE * self.draws))
        first = FIRST_BATCH if pairs == 1 else family
        return min(first / self.draws, EXPLORE_SHARE)

    def _goal(self, certify: int) -> Goal:
        return replace(super()._goal(certify), learn_share=_LEARN_SHARE)

    def _start(self, explored: int, drawn: Sides, point: tuple[float, float]) -> _State:
        epsilon = point[0]
        claim_level = epsilon * (1 + _MARGIN) + 1e-9
        levels = np.unique(np.append(self.grid[self.grid != epsilon], claim_level))
        return _State(
            levels,
            int(np.searchsorted(levels, claim_level)),
            {"left": [drawn[0]], "right": [drawn[1]]},
            np.zeros(len(levels)),
            np.zeros(len(levels)),
            spent=explored,
        )

    def _learn_again(self, choice: Choice, state: _State, rng: np.random.Generator) -> Choice:
        left, right = (np.concatenate(state.past[side]) for side in ("left", "right"))
        state.past = {"left": [left], "right": [right]}
        goal = self._goal(max(self.draws - state.spent, len(left)))
        again = Choice.of(
            choice.pair, (left, right), goal, choice.explored, rng, self._attack(choice.pair)
        )
        return replace(again, search=choice.search)

    def _bets(self, choice: Choice, state: _State, delta: float) -> list[Bet]:
        """Bet on the events that promise most growth at the claimed level, new or known.

        Their rates are told by draws from which they were not learnt: an event of earlier batches
        has more of those. What is bet on are rates moved against us, less and less as draws come
        in: early in an audit, a bold bet on a chance find loses more than it wins.
        """
        left, right = (np.concatenate(state.past[side]) for side in ("left", "right"))
        epsilon = float(state.levels[state.claim_level])
        fresh = [choice.selection.primary, *choice.selection.profile]
        known = [(event, int(len(left) * event.learnt_share)) for event in fresh] + state.pool
        judged, hopes = [], []
        for event, start in known:
            draws = len(left) - start
            p, q = _rates(event, left[start:], right[start:])
            careful = _moved(p, q, draws, _CAREFUL)
            # Where nothing speaks against the claim, certify at least the levels below it.
            worth = (
                _growth(*careful, epsilon, delta),
                sum(_growth(*careful, float(level), delta) for level in state.levels[::4]),
            )
            judged.append((worth, event, start, (p, q), careful))
            hopes.append(_growth(*_spread(p, q, draws, _OPTIMISM), epsilon, delta))
        judged.sort(key=lambda j: j[0], reverse=True)
        state.hope = max(hopes)
        state.pool = [(event, start) for _, event, start, _, _ in judged[:_POOL]]
        best, second = judged[0], judged[min(1, len(judged) - 1)]
        laid = ((best[1], best[4]), (best[1], best[3]), (second[1], second[4]))
        return [
            Bet.lay(event, *rates, state.levels, delta, bold)
            for (event, rates), (bold, _) in zip(laid, _STAKES, strict=True)
        ]

    # --- betting ---

    def _play(
        self,
        sampler: Sampler,
        choice: Choice,
        bets: list[Bet],
        state: _State,
        size: int,
        role: str,
        evidence: float,
    ) -> Counts:
        """Draw one batch and settle the bets after each call; stop where the claim falls."""
        pair: NeighborPair = choice.pair
        streams = [
            sampler.chunks(data, size, role, side, calls=LOOKS)
            for side, data in (("left", pair.left), ("right", pair.right))
        ]
        checks = {side: IndependenceCheck(sampler.name) for side in ("left", "right")}
        start = state.log_wealth.copy()
        grown = np.zeros((len(bets), len(state.levels)))
        shares = np.log([share for _, share in _STAKES])[:, None]
        total = np.zeros(4, dtype=int)
        for outputs in zip(*streams, strict=True):
            draws = len(outputs[0])
            hits: dict[int, dict[str, int]] = {}
            for side, drawn in zip(("left", "right"), outputs, strict=True):
                state.past[side].append(drawn)
                events = {id(bet.event): bet.event for bet in bets}
                fired = {key: int(event(drawn).sum()) for key, event in events.items()}
                checks[side].add(drawn, list(fired.values()))
                for key, number in fired.items():
                    hits.setdefault(key, {})[side] = number
            for row, bet in enumerate(bets):
                count = hits[id(bet.event)]
                likelier = bet.event.likelier
                other = "right" if likelier == "left" else "left"
                grown[row] += bet.log_growth((count[likelier], count[other]), draws)
            first = hits[id(bets[0].event)]
            total += (first["left"], draws, first["right"], draws)
            state.spent += draws
            state.calls += 1
            state.log_wealth = start + special.logsumexp(grown + shares, axis=0)
            state.best = np.maximum(state.best, state.log_wealth)
            state.path.append((state.spent, float(state.log_wealth[state.claim_level])))
            if state.refused(evidence) > state.claim_level and state.calls >= MIN_CALLS:
                break
        for check in checks.values():
            check.judge()
        return Counts(*(int(count) for count in total))

    def _futile(self, state: _State, evidence: float) -> bool:
        """Whether even an optimistic reading of the best event would not refute in time."""
        wealth = float(state.log_wealth[state.claim_level])
        return wealth + state.hope * (self.draws - state.spent) < evidence

    # --- reporting ---

    def _report(
        self,
        sampler: Sampler,
        choice: Choice,
        state: _State,
        event: Event,
        seen: Counts,
        point: tuple[float, float],
        stopped: str,
    ) -> Certificate:
        evidence = -math.log(self.failure_prob)
        refused = state.refused(evidence)
        certified = float(state.levels[refused - 1]) if refused else 0.0
        bounds = RateBounds.from_excess(certified, point[1], self.failure_prob)
        deltas = np.where((self.grid <= certified) & (refused > 0), point[1], 0.0)
        guess = rates_seen(seen, event.likelier)
        left, right = (np.concatenate(state.past[side]) for side in ("left", "right"))
        everything = rates_seen(_counts(event, left, right), event.likelier)
        picture = OutputHistogram.plan(event, np.concatenate([left[:_SAMPLE], right[:_SAMPLE]]))
        for side, drawn in (("left", left), ("right", right)):
            encoded = event.encoder(drawn)
            picture.add(side, encoded, event.score(encoded))
        method = "wealth of a bet against the claim"
        likely, rare = guess.worst_case(point[1])
        return Certificate(
            pair=choice.pair,
            point=point,
            refuted=refused > state.claim_level,
            epsilon=Estimate(
                everything.lower_epsilon(point[1]),
                certified,
                math.inf,
                self.failure_prob,
                method,
                seen,
                True,
            ),
            delta=Estimate(
                everything.lower_delta(point[0]),
                point[1] if refused > 0 and certified >= point[0] else 0.0,
                1.0,
                self.failure_prob,
                method,
                seen,
                True,
            ),
            profile=Profile(
                tuple(self.grid.tolist()),
                tuple(deltas.tolist()),
                tuple(everything.lower_delta(float(e)) for e in self.grid),
                tuple(self.claimed.tolist()),
            ),
            witness=Witness(event.description, event.likelier, seen, likely, rare),
            histogram=picture.done(),
            draws={"explore": choice.explored, "certify": state.spent - choice.explored},
            mechanism_seconds=sampler.seconds,
            event=event,
            bounds=(bounds,) if refused > 0 else (),
            search=choice.search,
            sequential=SequentialPath(
                stopped,
                self.draws,
                evidence,
                tuple(draws for draws, _ in state.path),
                tuple(wealth for _, wealth in state.path),
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
