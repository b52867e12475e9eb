"""The power of an audit for outputs of a known distribution.

The power is computed, and simulated only where that is not accurate:

- For an event, two binomials give the probability that the joint bound exceeds the claim.

- For guesses, learnt or by rank, the computation uses that a fair coin chooses the side of each
  draw.

- For bets, the log wealth is approximated by a Brownian motion.

- For guesses by rank, it is assumed that guesses between two tested counts are correct
  independently, at their mean rate. In fact, ranks depend on each other, which changes the power by
  the order of 1 / draws. So the power of few draws is simulated instead, with a fixed seed.

Only the cost of learning is measured, not derived. Compared with the best threshold, a learnt
threshold loses about the same number of standard deviations of the test for any number of draws.
The table on detectable epsilons in docs/measured.md tests this rule.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit.engine.certificate import RANKED_SHARE
from dpaudit.engine.task import EXPLORE_SHARE, PRIMARY_SHARE, RANKED_DRAWS
from dpaudit.stats import (
    Stages,
    crossing_prob,
    guess_refutation_prob,
    ranked_heights,
    ranked_stages,
    refutation_prob,
    wager,
)
from dpaudit.stats.oracles import (
    DiscreteOracle,
    GaussianOracle,
    LaplaceOracle,
    LaplaceVectorOracle,
    Oracle,
)

Floats = NDArray[np.float64]

BY_EVENT, BY_GUESS, BY_RANK = "counts of one event", "guesses in two tails", "guesses by rank"
BY_BET = "bets on guesses"
"""Names of instruments in a plan."""

USUAL_POWER = 0.9
"""Power at which a violation counts as detectable."""

MAX_DRAWS = 10**10

_TRIED = 3  # number of events and guesses that are tried
_USUAL = float(special.ndtri(USUAL_POWER))
# Cost of learning in standard deviations of the test, for a threshold and for a choice among a few
# outcomes. Bets learn while they bet. Bets also lose some nats because of bet sizes and early
# stops.
_COST, _COST_OF_GAUSSIAN, _COST_OF_OUTCOMES = 0.95, 0.82, 0.3
_COST_OF_EVEN, _COST_OF_UNEVEN, _SHARE_OF_UNEVEN = 1.5, 1.75, 0.56
_COST_OF_BETS, _COST_OF_BETS_ON_OUTCOMES, _COST_OF_BETS_ON_VECTORS, _NATS = 1.1, 0.25, 2.2, 3.0
_LEAST_SHARE = 0.05
_THRESHOLDS = 401
_KINDS: dict[type[Oracle], str] = {
    DiscreteOracle: "outcomes",
    GaussianOracle: "gaussian",
    LaplaceVectorOracle: "vector",
}


@dataclass(frozen=True)
class Chance:
    """The power of one instrument.

    Parameters
    ----------
    power : float
        Probability of a refutation.
    likely, rare : float
        Rates of the event. For guesses, the probabilities of a correct and of a wrong guess.
    instrument : str
        `BY_EVENT`, `BY_GUESS`, `BY_RANK` or `BY_BET`.
    """

    power: float
    likely: float
    rare: float
    instrument: str


@dataclass(frozen=True)
class Chances:
    """Rates of the events and guesses that may refute a claim.

    Parameters
    ----------
    curve, events, guesses : (ndarray, ndarray)
        Rates along the curve of the distribution, rates of events on the likelier side and on the
        other side, and rates of correct and wrong guesses.
    is_number : bool
        Whether the audit guesses by rank if there are few draws.
    kind : {"outcomes", "gaussian", "even", "vector", ""}
        The kind of outputs, which decides the cost of learning. For a few outcomes, no threshold is
        learnt. With Gaussian noise, a slightly wrong threshold loses less than with other noise.
        For vectors with Laplace noise, the audit must find a rare corner. If all numbers of the
        vector shift by the same amount ("even"), a simple feature such as the mean finds it.
        Otherwise, the audit learns each number, which also costs 44% of the draws.
    epsilon, delta, failure_prob : float
        The claim, and the failure probability of the audit.
    is_sequential : bool
        Whether the audit is sequential.
    """

    curve: tuple[Floats, Floats]
    events: tuple[Floats, Floats]
    guesses: tuple[Floats, Floats]
    is_number: bool
    kind: str
    epsilon: float
    delta: float
    failure_prob: float
    is_sequential: bool = False

    @classmethod
    def of(
        cls,
        distribution: Oracle,
        point: tuple[float, float],
        failure_prob: float,
        *,
        is_number: bool | None = None,
        is_even: bool = False,
        is_sequential: bool = False,
    ) -> Chances:
        """Return the rates of events and guesses for outputs of a known distribution.

        Parameters
        ----------
        distribution : Oracle
            The distribution on both sides. A discrete distribution is assumed to have a few
            outcomes.
        point : (float, float)
            The claim.
        failure_prob : float
            Failure probability of the audit.
        is_number : bool, optional
            Whether the audit guesses by rank if there are few draws. The default is True for
            Laplace and Gaussian noise.
        is_even : bool, optional
            Whether all numbers of a vector shift by the same amount. The default is False.
        is_sequential : bool, optional
            Whether the audit is sequential.
        """
        if is_number is None:
            is_number = isinstance(distribution, LaplaceOracle | GaussianOracle)
        curve, kind = _curve_of(distribution), _KINDS.get(type(distribution), "")
        return cls(
            curve,
            events_of(*curve),
            guesses_of(*curve),
            is_number,
            "even" if is_even and kind == "vector" else kind,
            *point,
            failure_prob,
            is_sequential,
        )

    @classmethod
    def of_rates(
        cls,
        rates: tuple[float, float],
        point: tuple[float, float],
        failure_prob: float,
        *,
        is_guess: bool = False,
        is_sequential: bool = False,
    ) -> Chances:
        """Return the chances of a single event or guess with known rates."""
        p, q = (np.array([rate]) for rate in rates)
        guesses = (p, q) if is_guess else ((p + 1 - q) / 2, (q + 1 - p) / 2)
        curve = tuple(np.array([0.0, rate, 1.0]) for rate in rates)
        return cls(
            (curve[0], curve[1]),
            (p, q),
            guesses,
            False,
            "",
            *point,
            failure_prob,
            is_sequential,
        )

    def draws_for(self, power: float) -> int | None:
        """Return the smallest number of draws with this power; None if above `MAX_DRAWS`."""

        def enough(draws: int) -> bool:
            return self.best(draws).power >= power

        draws_by_rank = smallest(enough, most=RANKED_DRAWS[1]) if self.is_number else None
        least = RANKED_DRAWS[1] if self.is_number else 1  # beyond this number, ranks get no share
        return draws_by_rank or smallest(enough, least=least)

    def best(self, draws: int) -> Chance:
        """Return the power of the best instrument for this number of draws."""
        point = self.epsilon, self.delta
        useful = _SHARE_OF_UNEVEN if self.kind == "vector" else 1.0
        if self.is_sequential:
            draws = max(int(useful * draws), 1)
            return by_bet(self.events, self.guesses, draws, *point, self.failure_prob, self.cost)
        ranks = self.is_number and RANKED_DRAWS[0] <= draws <= RANKED_DRAWS[1]
        share = self.failure_prob * PRIMARY_SHARE * (1 - RANKED_SHARE if ranks else 1.0)
        certify = learning_share(share, self.cost) * useful * draws * (1 - EXPLORE_SHARE)
        certify = max(int(certify), 1)
        found = [
            by_event(*self.events, certify, *point, share),
            by_guess(*self.guesses, 2 * certify, *point, share),
        ]
        if ranks:
            one_direction = self.failure_prob * RANKED_SHARE / 2
            found.append(by_rank(*self.curve, 2 * draws, *point, one_direction))
        return max(found, key=lambda chance: chance.power)

    @property
    def cost(self) -> float:
        """Cost of learning in standard deviations of the test."""
        if self.is_sequential:
            bets = {
                "outcomes": _COST_OF_BETS_ON_OUTCOMES,
                "even": _COST_OF_BETS_ON_VECTORS,
                "vector": _COST_OF_BETS_ON_VECTORS,
            }
            return bets.get(self.kind, _COST_OF_BETS)
        costs = {
            "outcomes": _COST_OF_OUTCOMES,
            "gaussian": _COST_OF_GAUSSIAN,
            "even": _COST_OF_EVEN,
            "vector": _COST_OF_UNEVEN,
        }
        return costs.get(self.kind, _COST)


def learning_share(failure_prob: float, cost: float = _COST) -> float:
    """Return the share of the certifying draws that would suffice if the best event were known.

    A test with power 0.9 needs a distance of `needed` standard deviations from the null hypothesis.
    Learning costs `cost` of these standard deviations.
    """
    needed = -float(special.ndtri(failure_prob)) + _USUAL
    return _share_of(needed, cost)


def _share_of(needed: float, cost: float) -> float:
    return max(1 - cost / max(needed, 1e-9), 0.0) ** 2 or _LEAST_SHARE


def smallest(enough: Callable[[int], bool], *, least: int = 1, most: int = MAX_DRAWS) -> int | None:
    """Return the smallest sufficient number above `least`, to 0.5%; None if above `most`."""
    low, high = least, max(64, 2 * least)
    while not enough(high):
        if high >= most:
            return None
        low, high = high, min(high * 4, most)
    while high - low > max(low // 200, 1):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def events_of(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    """Return the rates of the best events along a curve, and of their swapped complements."""
    inner = (p > 0) & (q < 1)
    p, q = p[inner], q[inner]
    return np.concatenate([p, 1 - q]), np.concatenate([q, 1 - p])


def _curve_of(distribution: Oracle) -> tuple[Floats, Floats]:
    """Return the rates of the best events.

    Only a few thresholds are tried if many would be slow.
    """
    if not isinstance(distribution, LaplaceVectorOracle):
        return distribution.curve()
    most = distribution.max_loss
    return distribution.rates(np.linspace(most, -most, _THRESHOLDS), closed=True)


def guesses_of(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    """Return the rates of correct and wrong guesses in two tails along the curve of a distribution.

    Parameters
    ----------
    p, q : ndarray, shape (points,)
        The curve of an oracle, from (0, 0) to (1, 1).

    Returns
    -------
    right, wrong : ndarray
        Among all events of a given mass, left is guessed in the event that is likeliest on the
        left. Right is guessed outside another event, which contains the first event. The outputs
        outside the second event have at most the mass of the first event.
    """
    mass = (p + q) / 2
    top = np.flatnonzero((mass > 0) & (mass <= 0.5 + 1e-12))
    rest = np.searchsorted(mass, 1 - mass[top] - 1e-12)
    return (p[top] + 1 - q[rest]) / 2, (q[top] + 1 - p[rest]) / 2


def by_event(
    p: Floats, q: Floats, draws: int, epsilon: float, delta: float, failure_prob: float
) -> Chance:
    """Return the power of the best event for this number of certifying draws per side."""
    at = _standing_out(p, q, 0.5 / draws, epsilon, delta)
    probabilities = refutation_prob(p[at], q[at], draws, draws, epsilon, delta, failure_prob)
    best = int(probabilities.argmax())
    return Chance(float(probabilities[best]), float(p[at][best]), float(q[at][best]), BY_EVENT)


def _standing_out(p: Floats, q: Floats, half: float, epsilon: float, delta: float) -> Floats:
    """Return the indices of a few events with the largest excess relative to its noise.

    `half` is half a hit divided by the number of draws. It keeps the noise positive at rate 0.
    """
    factor = math.exp(min(epsilon, 300.0))  # the square of this number must be finite
    noise = np.sqrt(p * (1 - p) + factor**2 * (q * (1 - q) + half) + half)
    excess = p - factor * q - delta
    return np.asarray(np.argsort(-excess / noise, kind="stable")[:_TRIED])


def by_bet(
    events: tuple[Floats, Floats],
    guesses: tuple[Floats, Floats],
    draws: int,
    epsilon: float,
    delta: float,
    failure_prob: float,
    cost: float,
) -> Chance:
    """Return the power of bets on the best event or guess.

    The log wealth of a bet has a drift and a variance. The probability that the log wealth ever
    reaches a height is that of a Brownian motion.

    Parameters
    ----------
    events, guesses : (ndarray, ndarray)
        Rates of events on each side, and rates of correct and of wrong guesses.
    draws : int
        Largest number of draws per side.
    epsilon, delta, failure_prob : float
        The claim and the failure probability.
    cost : float
        Cost of learning in standard deviations of the test.
    """
    height = _NATS - math.log(failure_prob)
    needed = _USUAL + math.sqrt(_USUAL**2 + 2 * height)
    pairs = draws * _share_of(needed, cost)
    at = _standing_out(*events, 0.5 / draws, epsilon, delta)
    of_guesses = _standing_out(*guesses, 0.5 / draws, epsilon, delta)
    p, q = (np.concatenate([x[at], y[of_guesses]]) for x, y in zip(events, guesses, strict=True))
    # A bet on an event also uses the complement of the event. A guess may abstain.
    wrong_left = np.concatenate([1 - events[0][at], guesses[1][of_guesses]])
    wrong_right = np.concatenate([1 - events[1][at], guesses[0][of_guesses]])
    left, right = (
        np.stack([a, b, np.maximum(1 - a - b, 0.0)], axis=1)
        for a, b in ((p, wrong_left), (q, wrong_right))
    )
    best = Chance(0.0, 0.0, 0.0, BY_BET)
    for one, other in zip(left, right, strict=True):
        bet = wager(one, other, np.array([epsilon]), delta)
        drift, a, b = float(bet.growth[0]), bet.log_left[0], bet.log_right[0]
        if drift <= 0:
            continue
        spread = one @ a**2 - (one @ a) ** 2 + other @ b**2 - (other @ b) ** 2
        if spread <= 0:  # the answers are certain
            if drift * pairs >= height:
                return Chance(1.0, float(one[0]), float(other[0]), BY_BET)
            continue
        deviation = math.sqrt(spread * pairs)
        reached = special.ndtr((drift * pairs - height) / deviation)
        passed = special.log_ndtr((-drift * pairs - height) / deviation)
        passed += 2 * drift * height / spread
        power = float(reached + math.exp(min(passed, 0.0)))
        if power > best.power:
            best = Chance(min(power, 1.0), float(one[0]), float(other[0]), BY_BET)
    return best


def by_guess(
    right: Floats, wrong: Floats, draws: int, epsilon: float, delta: float, failure_prob: float
) -> Chance:
    """Return the power of the best guess.

    Parameters
    ----------
    right, wrong : ndarray, shape (guesses,)
        Rates of correct and of wrong guesses.
    draws : int
        Certifying draws on both sides together.
    epsilon, delta, failure_prob : float
        The claim and the failure probability.
    """
    best = Chance(0.0, 0.0, 0.0, BY_GUESS)
    for at in _standing_out(right, wrong, 0.5 / draws, epsilon, delta).tolist():
        c, w = float(right[at]), float(wrong[at])
        power = guess_refutation_prob(
            c / (c + w),
            min(c + w, 1.0),
            draws,
            epsilon=epsilon,
            delta=delta,
            failure_prob=failure_prob,
        )
        if power > best.power:
            best = Chance(power, c, w, BY_GUESS)
    return best


@functools.lru_cache(maxsize=32)
def _ranked_heights(
    stages: Stages, draws: int, epsilon: float, delta: float, failure_prob: float
) -> tuple[int, ...]:
    """Return the heights that refute a claim.

    The heights are cached, because a search often needs them.
    """
    heights = ranked_heights(stages, draws, epsilon=epsilon, delta=delta, failure_prob=failure_prob)
    return tuple(heights.tolist())


_LARGEST_SIMULATED = 500
"""Number of draws up to which guesses by rank are simulated."""

_AUDITS, _CELLS = 2000, 8192
"""Number of simulated audits, and number of cells of equal probability in which draws fall. The
power has a standard error of at most 0.012."""


@functools.lru_cache(maxsize=2)
def _simulated_ranks(draws: int) -> tuple[NDArray[np.int16], NDArray[np.float32]]:
    """Return the cells of ordered draws, and numbers that decide the side of each draw.

    Both have shape (audits, draws). They do not depend on the mechanism, so a search for a number
    of draws simulates each number once.
    """
    rng = np.random.default_rng(0)
    gaps = np.cumsum(rng.standard_exponential((_AUDITS, draws + 1)), axis=1)
    cells = (gaps[:, :-1] / gaps[:, -1:] * _CELLS).astype(np.int16)
    return cells, rng.random(cells.shape, dtype=np.float32)


def _power_of_ranks(
    heights: tuple[int, ...], guesses: tuple[int, ...], p: Floats, q: Floats, draws: int
) -> float:
    """Return the share of simulated audits that reach a height."""
    cells, sides = _simulated_ranks(draws)
    grid = np.arange(_CELLS + 1) / _CELLS
    share_left = np.diff(np.interp(grid, (p + q) / 2, p / 2)) * _CELLS
    is_left = sides < share_left.astype(np.float32)[cells]
    correct = np.empty_like(is_left)
    correct[:, 0::2] = is_left[:, : (draws + 1) // 2]
    correct[:, 1::2] = ~is_left[:, ::-1][:, : draws // 2]
    counts = np.cumsum(correct, axis=1, dtype=np.int16)[:, np.array(guesses) - 1]
    return float((counts >= np.array(heights)).any(axis=1).mean())


def by_rank(
    p: Floats, q: Floats, draws: int, epsilon: float, delta: float, failure_prob: float
) -> Chance:
    """Return the power of guesses by rank.

    Parameters
    ----------
    p, q : ndarray, shape (points,)
        The curve of an oracle that outputs one number. The likelihood ratio must rise with this
        number.
    draws : int
        All draws, on both sides together.
    epsilon, delta, failure_prob : float
        The claim, and the failure probability for guesses in this direction.
    """
    stages = ranked_stages(draws)
    heights = _ranked_heights(stages, draws, epsilon, delta, failure_prob)
    shares = np.array(stages.guesses) / draws
    mass = (p + q) / 2
    right = np.interp(shares / 2, mass, p / 2) + 0.5 - np.interp(1 - shares / 2, mass, q / 2)
    rates = np.clip(np.diff(right, prepend=0.0) / np.diff(shares, prepend=0.0), 0.0, 1.0)
    # The reported rates are the rates at the count with the largest excess.
    excess = (right - math.exp(min(epsilon, 600.0)) * (shares - right) - delta) / np.sqrt(shares)
    at = int(excess.argmax())
    power = (
        _power_of_ranks(heights, stages.guesses, p, q, draws)
        if draws <= _LARGEST_SIMULATED
        else crossing_prob(heights, stages.guesses, rates)
    )
    return Chance(power, float(right[at]), float(shares[at] - right[at]), BY_RANK)
