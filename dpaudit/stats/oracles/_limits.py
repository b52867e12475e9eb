"""The fewest draws with which any test can refute a claim on a pair of known distributions.

**The nearest private pair.** A claim (epsilon, delta) allows all pairs (P', Q') whose hockey-stick
divergences are at most delta in both directions. Take a sound test with n draws of each side. It
refutes the claim on an allowed pair with probability at most alpha. By the lemma of Neyman and
Pearson, its power on (P, Q) is then at most that of the likelihood-ratio test of the two products.
So each allowed pair bounds the power of all sound tests. As n grows, the best bound is that of the
pair that minimises KL(P, P') + KL(Q, Q'), up to lower-order terms (Stein's lemma).

**Its form.** Let R = e^epsilon. With multipliers x and y of the two total masses, and s and t of
the two divergences, the Lagrange function splits into outcomes. An outcome of masses (p, q) gets
(p / x, q / y) if this ratio is between 1 / R and R. Above R, it gets the edge (R, 1) (p + q) / (x R
+ y). It gets (p / (x + s), q / (y - R s)) if even this ratio is above R. Below 1 / R, the sides are
exchanged, and t replaces s.

If delta = 0, there is nothing beyond the edges, and x + y = 2, so one unknown is left. Otherwise,
the concave dual function of four multipliers is maximised numerically. Its solution is moved
towards a pair of equal distributions until it satisfies the claim. So rounding makes the bound
weaker but not wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from dpaudit import _validate
from dpaudit.errors import ArgumentError
from dpaudit.stats.oracles._core import Floats, Oracle

_FREQUENCIES = 4096  # of the characteristic function
_REACH = (
    200.0  # log likelihood ratios beyond this wrap around, which needs error rates below e^-200
)
_FLOOR = 1e-7  # share of the other distribution that is mixed in before the projection
_ROUNDING = 1e-12  # less mass of a slice, or less divergence, is an error of rounding
_CHUNK = 1000
_MOST_DRAWS = 2**60


@dataclass(frozen=True, eq=False)
class NearestPrivatePair:
    """The pair of distributions that satisfies a claim and is hardest to tell from a given pair.

    Attributes
    ----------
    pmf_left, pmf_right : ndarray, shape (k,)
        The given pair, in slices of similar privacy loss.
    null_left, null_right : ndarray, shape (k,)
        The pair that satisfies the claim.
    """

    pmf_left: Floats
    pmf_right: Floats
    null_left: Floats
    null_right: Floats

    @property
    def divergence(self) -> float:
        """KL(P, P') + KL(Q, Q') in nats: the evidence of one draw of each side, on average."""
        return sum(float(weights @ ratios) for weights, ratios in self._ratios)

    @property
    def _ratios(self) -> list[tuple[Floats, Floats]]:
        pairs = (self.pmf_left, self.null_left), (self.pmf_right, self.null_right)
        kept = ((one[one > 0], null[one > 0]) for one, null in pairs)
        return [(one, np.log(one / null)) for one, null in kept]

    def draws(self, *, power: float, failure_prob: float) -> int:
        """Return the fewest draws of each side with which any test has a power.

        The number is that of the likelihood-ratio test. No test needs fewer draws if it refutes
        each allowed pair with probability at most `failure_prob`. The computed number is accurate
        within about 1%, if it is at least 100.

        Parameters
        ----------
        power : float
            Probability of refuting the claim on the given pair, above `failure_prob` and below 1.
        failure_prob : float
            Probability of refuting the claim on an allowed pair, in (1e-60, 1).
        """
        alpha = _rates(power, failure_prob)
        low, high = 0, 1
        while self._power(high, alpha) < power:
            low, high = high, 2 * high
            if high > _MOST_DRAWS:
                raise ArgumentError("the pair satisfies the claim or nearly so: no test has power")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._power(middle, alpha) < power else (low, middle)
        return high

    def expected_draws(self, *, power: float = 1.0, failure_prob: float) -> float:
        """Return the smallest expected number of draws of each side of any sequential test.

        By Wald's inequality, it is kl(power, failure_prob) / `divergence`, where kl is the
        divergence of two coins.
        """
        alpha = _rates(power, failure_prob)
        coin = power * math.log(power / alpha)
        if power < 1:
            coin += (1 - power) * math.log((1 - power) / (1 - alpha))
        return coin / self.divergence

    @cached_property
    def _log_characteristic(self) -> NDArray[np.complex128]:
        """Logarithm of the characteristic function of the log likelihood ratio of one draw."""
        at = np.arange(_FREQUENCIES) * (math.pi / _REACH)
        found = np.zeros(_FREQUENCIES, dtype=np.complex128)
        for weights, ratios in self._ratios:
            one = np.zeros(_FREQUENCIES, dtype=np.complex128)
            for first in range(0, len(ratios), _CHUNK):
                block = slice(first, first + _CHUNK)
                one += np.expm1(1j * np.outer(at, ratios[block])) @ weights[block]
            found += np.log1p(one)
        return found

    def _power(self, draws: int, failure_prob: float) -> float:
        """Return the power of the likelihood-ratio test.

        The log likelihood ratio is smoothed by one step of its grid. Atoms are shared between the
        two decisions, as by a randomised test.
        """
        size, step = 2 * _FREQUENCIES, _REACH / _FREQUENCIES
        smooth = np.exp(-0.5 * (np.arange(_FREQUENCIES) * (math.pi / _FREQUENCIES)) ** 2)
        half = np.exp(draws * self._log_characteristic) * smooth
        whole = np.concatenate([half, [0.0], np.conj(half[:0:-1])])
        masses = np.maximum(np.roll(np.fft.fft(whole).real / size, _FREQUENCIES), 0.0)
        ratio = (np.arange(size) - _FREQUENCIES) * step
        null = np.cumsum((masses * np.exp(-np.maximum(ratio, -50.0)))[::-1])
        given = np.cumsum(masses[::-1])
        return float(np.interp(failure_prob, null, given))


def nearest_private_pair(
    oracle: Oracle, *, epsilon: float, delta: float = 0.0
) -> NearestPrivatePair:
    """Return the pair that satisfies a claim and is hardest to tell from the pair of an oracle.

    It says how many draws every test of the claim needs (see :class:`NearestPrivatePair`).

    Parameters
    ----------
    oracle : Oracle
        The pair. Its trade-off curve is cut into slices, which are exact if the loss takes finitely
        many values.
    epsilon : float
        Claimed epsilon, finite and >= 0.
    delta : float, default 0
        Claimed delta, in [0, 1).

    Raises
    ------
    ArgumentError
        If the pair satisfies the claim.

    References
    ----------
    .. [1] P. J. Huber, V. Strassen, "Minimax tests and the Neyman-Pearson lemma for capacities",
       Annals of Statistics 1 (1973).
    .. [2] A. Wald, "Sequential analysis", 1947.

    Examples
    --------
    >>> from dpaudit.stats.oracles import randomized_response
    >>> nearest = nearest_private_pair(randomized_response(2.0), epsilon=1.0)
    >>> nearest.null_left.round(4).tolist()
    [0.7311, 0.2689]
    >>> nearest.draws(power=0.9, failure_prob=0.05)
    30
    >>> round(nearest.expected_draws(failure_prob=0.05), 1)
    22.3
    """
    if not isinstance(oracle, Oracle):
        raise TypeError(f"oracle must be an Oracle, got {_validate.describe(oracle)}")
    epsilon, delta = _validate.nonnegative(epsilon=epsilon), _validate.delta(delta=delta)
    if oracle.delta(epsilon) <= delta:
        raise ArgumentError(
            f"epsilon must be below that of the pair, which satisfies epsilon = {epsilon:g} at "
            f"delta = {delta:g}"
        )
    p, q = (np.diff(side) for side in oracle.curve())
    kept = p + q > _ROUNDING
    p, q = p[kept] / p[kept].sum(), q[kept] / q[kept].sum()
    find = _pure if delta == 0 else _approximate
    left, right = find(p, q, math.exp(epsilon), delta)
    return NearestPrivatePair(p, q, *_allowed(left, right, math.exp(epsilon), delta))


def _pure(p: Floats, q: Floats, bound: float, delta: float) -> tuple[Floats, Floats]:
    def excess(x: float) -> float:
        left, right = _null(p, q, bound, x, 2 - x)
        return float(left.sum() - right.sum())

    x: float = optimize.brentq(excess, 1e-9, 2 - 1e-9, xtol=1e-15, rtol=1e-14)
    return _null(p, q, bound, x, 2 - x)


def _approximate(p: Floats, q: Floats, bound: float, delta: float) -> tuple[Floats, Floats]:
    # Outcomes of only one side would make the dual function not differentiable at its maximum.
    p, q = (1 - _FLOOR) * p + _FLOOR * q, (1 - _FLOOR) * q + _FLOOR * p

    def dual(multipliers: Floats) -> tuple[float, Floats]:
        left, right = _null(p, q, bound, *multipliers)
        slope = np.array(
            [
                left.sum() - 1,
                right.sum() - 1,
                np.maximum(left - bound * right, 0).sum() - delta,
                np.maximum(right - bound * left, 0).sum() - delta,
            ]
        )
        value = p @ np.log(p / left) + q @ np.log(q / right) + multipliers @ slope
        return -float(value), -slope

    positive, any_size = (1e-9, None), (0.0, None)
    found = optimize.minimize(
        dual,
        np.array([1.0, 1.0, 0.1, 0.1]),
        jac=True,
        bounds=[positive, positive, any_size, any_size],
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-16},
    )
    return _null(p, q, bound, *found.x)


def _null(
    p: Floats, q: Floats, bound: float, x: float, y: float, s: float = math.inf, t: float = math.inf
) -> tuple[Floats, Floats]:
    """Return the minimisers of the Lagrange function, for multipliers x, y, s and t."""
    left, right = p / x, q / y
    for is_left, beyond in ((True, s), (False, t)):
        high, low, u, v, one, other = (
            (left, right, x, y, p, q) if is_left else (right, left, y, x, q, p)
        )
        over = high > bound * low
        edge = (p + q) / (u * bound + v)
        new_high, new_low = bound * edge, edge
        if v > bound * beyond:
            far_high, far_low = one / (u + beyond), other / (v - bound * beyond)
            far = far_high > bound * far_low
            new_high, new_low = np.where(far, far_high, new_high), np.where(far, far_low, new_low)
        high, low = np.where(over, new_high, high), np.where(over, new_low, low)
        left, right = (high, low) if is_left else (low, high)
    return left, right


def _allowed(left: Floats, right: Floats, bound: float, delta: float) -> tuple[Floats, Floats]:
    """Return a pair that satisfies the claim, which is closest on the way to equal distributions.

    A hockey-stick divergence is convex, and 0 for equal distributions.
    """
    left, right = left / left.sum(), right / right.sum()
    excess = max(
        float(np.maximum(one - bound * other, 0).sum())
        for one, other in ((left, right), (right, left))
    )
    share = 1 - delta / excess if excess > delta + _ROUNDING else 0.0
    middle = (left + right) / 2
    return (1 - share) * left + share * middle, (1 - share) * right + share * middle


def _rates(power: float, failure_prob: float) -> float:
    alpha = _validate.failure_prob(failure_prob=failure_prob)
    if not 1e-60 < alpha < power <= 1:
        raise ArgumentError(
            f"power must be above failure_prob={failure_prob!r} and at most 1, got {power!r}"
        )
    return alpha
