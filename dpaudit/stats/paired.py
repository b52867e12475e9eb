"""Joint bounds of two means: the smallest epsilon or delta that is possible for the means.

The method is betting (:mod:`dpaudit.stats.betting`) on pairs of draws, against a line in the plane
of the two means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import _validate
from dpaudit.errors import ArgumentError
from dpaudit.stats.betting import MARGIN, bounded_draws, last_nonnegative, log_sum, log_wealth
from dpaudit.stats.joint import Target

Floats = NDArray[np.float64]

_MAX_EPSILON = 700.0
_LARGEST_EXCESS = 1e150  # keeps squares and their sums within the range of doubles
_RESERVE = 1.15  # ratio of the planned growth to the growth that suffices
_MULTIPLES = (0.1, 0.25, 0.5, 0.8, 1.25, 1.6, 2.5)
_PLANNING_DRAWS = 20_000


@dataclass(frozen=True)
class PairedBet:
    """Bets against ``E[X] <= e^epsilon E[Y] + delta`` that are fixed before the draws.

    Parameters
    ----------
    bets : tuple of float
        Bet sizes ``lam_j >= 0``.
    weights : tuple of float
        Share of the wealth that belongs to each bet. Shares are positive and sum to at most 1.
    largest : float, optional
        Known upper bound of Y, > 0. The default is 1. The certificate is sound only if this bound
        is correct. X needs no upper bound. The values of X only have to be >= 0.

    Notes
    -----
    The pairs (X_i, Y_i) are independent, but X_i and Y_i may depend on each other. The wealth is ::

        K(epsilon, delta) = sum_j w_j prod_i (1 + lam_j (X_i - e^epsilon Y_i - delta)),

    Only *admissible* bets are summed, which satisfy ``lam_j (e^epsilon largest + delta) <= 1``. No
    factor of an admissible bet can be negative. Under the hypothesis, each factor has an
    expectation of at most 1, so the expectation of K is at most 1. The bets depend neither on the
    draws nor on epsilon or delta. Therefore K decreases as epsilon or delta grows, because the
    factors decrease and bets are dropped. A bet that is not admissible is dropped completely.
    Setting the negative factors of such a bet to 0 instead would increase the expectation, which
    would be unsound.

    The certified epsilon satisfies ``K(epsilon, delta) >= 1 / failure_prob``. Let epsilon* be the
    true epsilon, that is, the smallest epsilon with ``E[X] <= e^epsilon* E[Y] + delta``. If a
    certified epsilon exceeds epsilon*, then ``K(epsilon*, delta) >= K(certified, delta) >= 1 /
    failure_prob`` by monotonicity. By Markov's inequality, this event has probability at most
    `failure_prob`. Therefore *one* test is enough for the search over all epsilons. The same
    argument holds for delta at a given epsilon. However, a second question is a second test. This
    second test needs its own share of the failure probability.

    Examples
    --------
    >>> bet = PairedBet.plan(
    ...     [0.5, 0.4], [0.1, 0.2], draws=1000, failure_prob=0.05, target=Target(delta=0.0)
    ... )
    >>> x, y = np.tile([0.5, 0.4], 500), np.tile([0.1, 0.2], 500)
    >>> 1.05 < bet.lower_epsilon(x, y, 0.0, 0.05) < math.log(3)
    True
    """

    bets: tuple[float, ...]
    weights: tuple[float, ...]
    largest: float = 1.0

    def __post_init__(self) -> None:
        _validate.positive(largest=self.largest)
        if not self.bets or len(self.bets) != len(self.weights):
            raise ArgumentError(
                "bets and weights must be nonempty and have equal lengths, got lengths "
                f"{len(self.bets)} and {len(self.weights)}"
            )
        for bet in self.bets:
            _validate.nonnegative(bet=bet)
        for weight in self.weights:
            _validate.positive(weight=weight)
        if math.fsum(self.weights) > 1 + 1e-12:
            raise ArgumentError(f"weights must sum to at most 1, got {math.fsum(self.weights)!r}")

    @classmethod
    def plan(
        cls,
        likely: ArrayLike,
        rare: ArrayLike,
        *,
        draws: int,
        failure_prob: float,
        target: Target,
        largest: float = 1.0,
    ) -> PairedBet:
        """Choose bets on exploration draws.

        Half of the weight is on one bet size. At the epsilon (or delta) that is expected to be
        certified with a small reserve, this bet size would make the wealth grow fastest. The other
        half is on multiples of this bet size, because the exploration may be inaccurate.

        Parameters
        ----------
        likely, rare : array_like, shape (k,)
            Exploration values of X and Y, which must not be used again.
        draws : int
            Number of pairs that will certify, >= 1.
        failure_prob : float
            Failure probability of the bound that these pairs will certify.
        target : Target
            The delta at which epsilon will be bounded, or the epsilon at which delta will be
            bounded.
        largest : float, optional
            Known upper bound of Y, as in the class.
        """
        x, y = _planning(likely, rare, largest)
        need = _needed_growth(draws, failure_prob)
        at = _attainable(x, y, need, target, largest)
        if at is None:  # no bound is expected: prepare for the smallest that could be certified
            at = (target.epsilon or 0.0, target.delta or 0.0)
            excess, cap = _excesses(x, y, at, largest)
            excess = np.clip(excess, -_LARGEST_EXCESS, _LARGEST_EXCESS)
            bet_size = min(math.sqrt(2 * need / max(float((excess**2).mean()), 1e-300)), cap)
        else:
            bet_size = _kelly_bet(*_excesses(x, y, at, largest))
        bet_size = min(max(bet_size, 1e-300), 1e300)
        bets = (bet_size, *(bet_size * multiple for multiple in _MULTIPLES))
        return cls(bets, (0.5, *(0.5 / len(_MULTIPLES) for _ in _MULTIPLES)), largest)

    def log_wealth(self, likely: ArrayLike, rare: ArrayLike, epsilon: float, delta: float) -> float:
        """Return the logarithm of K(epsilon, delta), or ``-inf`` if no bet is admissible."""
        x, y = _pair(likely, rare, self.largest)
        epsilon, delta = _validate.nonnegative(epsilon=epsilon), _validate.delta(delta=delta)
        return self._log_wealth(x, y, epsilon, delta)

    def _log_wealth(self, x: Floats, y: Floats, epsilon: float, delta: float) -> float:
        factor = math.exp(min(epsilon, _MAX_EPSILON))
        worst = factor * self.largest + delta if epsilon <= _MAX_EPSILON else math.inf
        bets, weights = np.array(self.bets), np.array(self.weights)
        with np.errstate(over="ignore", invalid="ignore"):  # 0 * inf: a bet of size 0 cannot lose
            admissible = (bets == 0) | (bets * worst <= 1.0)
        if not admissible.any():
            return -math.inf
        wealth = log_wealth(x - factor * y - delta, bets[admissible])
        return log_sum(wealth + np.log(weights[admissible]))

    def lower_epsilon(
        self, likely: ArrayLike, rare: ArrayLike, delta: float, failure_prob: float
    ) -> float:
        """Return a lower bound of the smallest epsilon with ``E[X] <= e^epsilon E[Y] + delta``.

        Parameters
        ----------
        likely, rare : array_like, shape (n,)
            Certifying pairs (X_i, Y_i), independent of each other and of the bets, with X >= 0 and
            Y in [0, largest].
        delta : float
            Delta, in [0, 1].
        failure_prob : float
            Failure probability, strictly between 0 and 1.

        Returns
        -------
        float
            The bound, finite and >= 0. The bound is 0 if nothing is certified.
        """
        x, y = _pair(likely, rare, self.largest)
        delta = _validate.delta(delta=delta)
        goal = MARGIN - math.log(_validate.failure_prob(failure_prob=failure_prob))
        # K <= 1 if the averages satisfy the hypothesis, or if no bet size is admissible.
        top, bottom = float(x.mean()) - delta, float(y.mean())
        stakes = [bet for bet in self.bets if bet > 0]
        if top <= 0 or not stakes:
            return 0.0
        most = -math.log(min(stakes)) - math.log(self.largest)
        if bottom > 0:
            most = min(most, math.log(top) - math.log(bottom))
        if most <= 0:
            return 0.0
        most = min(most * (1 + 1e-12), _MAX_EPSILON)
        return last_nonnegative(
            lambda epsilon: self._log_wealth(x, y, epsilon, delta) - goal, 0.0, most, 1e-7
        )

    def lower_delta(
        self, likely: ArrayLike, rare: ArrayLike, epsilon: float, failure_prob: float
    ) -> float:
        """Return a lower bound of ``E[X] - e^epsilon E[Y]``, or 0 if no positive bound holds.

        The parameters are as in `lower_epsilon`.
        """
        x, y = _pair(likely, rare, self.largest)
        epsilon = _validate.nonnegative(epsilon=epsilon)
        goal = MARGIN - math.log(_validate.failure_prob(failure_prob=failure_prob))
        most = float(x.mean()) - math.exp(min(epsilon, _MAX_EPSILON)) * float(y.mean())
        if most <= 0:
            return 0.0
        return last_nonnegative(
            lambda delta: self._log_wealth(x, y, epsilon, delta) - goal, 0.0, most, 1e-6 * most
        )


# --- planning -----------------------------------------------------------------------------------


def expected_bound(
    likely: ArrayLike,
    rare: ArrayLike,
    *,
    draws: int,
    failure_prob: float,
    target: Target,
    largest: float = 1.0,
) -> float:
    """Return the epsilon (or delta) that :meth:`PairedBet.plan` is expected to certify, or 0.

    The value is estimated from the exploration values, without any guarantee. The parameters are
    those of `plan`.
    """
    x, y = _planning(likely, rare, largest)
    at = _attainable(x, y, _needed_growth(draws, failure_prob), target, largest)
    return 0.0 if at is None else at[1 if target.delta is None else 0]


def _planning(likely: ArrayLike, rare: ArrayLike, largest: float) -> tuple[Floats, Floats]:
    x, y = _pair(likely, rare, largest)
    return x[:_PLANNING_DRAWS], y[:_PLANNING_DRAWS]


def _needed_growth(draws: int, failure_prob: float) -> float:
    """Return the log growth per draw to plan for, which suffices for a bet with half the weight."""
    draws = _validate.integer(1, draws=draws)
    alpha = _validate.failure_prob(failure_prob=failure_prob)
    return _RESERVE * (math.log(2.0) - math.log(alpha)) / draws


def _excesses(
    x: Floats, y: Floats, at: tuple[float, float], largest: float
) -> tuple[Floats, float]:
    """Return the excess of each pair at (epsilon, delta), and the largest admissible bet size."""
    factor, delta = math.exp(min(at[0], _MAX_EPSILON)), at[1]
    return x - factor * y - delta, 1 / (factor * largest + delta)


def _kelly_bet(excess: Floats, cap: float) -> float:
    """Return Kelly's bet size, which maximises ``mean log(1 + bet_size * excess)`` on [0, cap]."""

    def slope(bet_size: float) -> float:
        return float((excess / np.maximum(1.0 + bet_size * excess, 1e-12)).mean())

    if slope(0.0) <= 0:
        return 0.0
    if slope(cap) >= 0:
        return cap
    low, high = 0.0, cap
    for _ in range(60):
        if high - low <= 1e-3 * high:
            break
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return low


def _attainable(
    x: Floats, y: Floats, need: float, target: Target, largest: float
) -> tuple[float, float] | None:
    """Return the largest target (epsilon, delta) at which the log wealth grows by `need` per draw.

    Return None if the wealth grows by less than `need` even at epsilon = 0 or delta = 0.
    """

    def surplus(at: tuple[float, float]) -> float:
        excess, cap = _excesses(x, y, at, largest)
        bet_size = _kelly_bet(excess, cap)
        return float(np.log(np.maximum(1.0 + bet_size * excess, 1e-12)).mean()) - need

    mean_x, mean_y = float(x.mean()), float(y.mean())
    if target.delta is not None:
        delta = target.delta
        # The search is bounded by log(1 + size * excess) <= size * x <= x / (e^epsilon largest).
        most = [math.log(mean_x) - math.log(largest * need)] if mean_x > 0 else [0.0]
        if mean_y > 0 and mean_x > delta:
            most.append(math.log(mean_x - delta) - math.log(mean_y))
        if min(most) <= 0 or surplus((0.0, delta)) < 0:
            return None
        found = last_nonnegative(lambda s: surplus((s, delta)), 0.0, min(most), 1e-3)
        return found, delta
    epsilon = target.epsilon or 0.0
    top = mean_x - math.exp(min(epsilon, _MAX_EPSILON)) * mean_y
    if top <= 0 or surplus((epsilon, 0.0)) < 0:
        return None
    return epsilon, last_nonnegative(lambda s: surplus((epsilon, s)), 0.0, top, 1e-3 * top)


def _pair(likely: ArrayLike, rare: ArrayLike, largest: float) -> tuple[Floats, Floats]:
    x = bounded_draws(likely=likely, largest=None)
    y = bounded_draws(rare=rare, largest=largest)
    if x.shape != y.shape:
        raise ArgumentError(
            f"likely and rare must be paired draws of equal number, got {len(x)} and {len(y)}"
        )
    return x, y
