"""The fewest draws with which any test can refute a claim on a pair of known distributions.

**The nearest private pair.** A claim (epsilon, delta) allows all pairs (P', Q') whose hockey-stick
divergences are at most delta in both directions. Take a sound test with n draws of each side. It
refutes the claim on an allowed pair with probability at most alpha. By the lemma of Neyman and
Pearson, its power on (P, Q) is then at most that of the likelihood-ratio test of the two products.
So each allowed pair bounds the power of all sound tests. As alpha goes to 0, the best bound is that
of the pair that minimises KL(P, P') + KL(Q, Q'), up to lower-order terms (Stein's lemma).

**Its form.** Let R = e^epsilon. With multipliers x and y of the two total masses, and s and t of
the two divergences, the Lagrange function splits into outcomes. An outcome of masses (p, q) gets
(p / x, q / y) if this ratio is between 1 / R and R. Above R, it gets the edge (R, 1) (p + q) / (x R
+ y). It gets (p / (x + s), q / (y - R s)) if even this ratio is above R. Below 1 / R, the sides are
exchanged, and t replaces s.

If delta = 0, there is nothing beyond the edges, and x + y = 2, so one unknown is left. Otherwise,
the concave dual function of four multipliers is maximised numerically. Where an outcome belongs to
one side only, its maximum may be a kink, at which the pair does not follow from the multipliers. So
several pairs are tried. Each is moved towards a pair of equal distributions until it satisfies the
claim, and the nearest is kept. Every value of the dual function is at most the smallest divergence,
so the gap to its maximum says how near the pair is.

**Noise that the audit chooses.** Suppose that an audit sees all noise of a mechanism, and even
chooses it (importance sampling). The output is then a function of the noise, which the audit knows
only where it called the mechanism. This helps less than it seems, because a private mechanism can
differ from the given one at noise that no call used.

*Theorem.* Let l and r be the densities on the two sides. Let h be the integral of (l - R r)_+, and
h' that of (r - R l)_+, with R = e^epsilon > 1. Let no value of the noise be more likely than the
cells below. If a sound audit with n calls of each side refutes (epsilon, delta) with probability
beta, then

    beta - alpha <= n / (R - 1) ((h - delta)_+ / Q(l <= r) + (h' - delta)_+ / P(r <= l)).

*Proof.* Let rho = (h - delta)_+ / (R - 1). Cut the noise of the right side whose output satisfies l
<= r into K cells of mass rho. Choose one at random. At noise in this cell, replace the output by a
draw from a density that is chosen now. Let m be the density that the outputs of the cell have lost,
so m <= r. Then (l - R (r - m))_+ is convex in m, 0 at m = 0 where l <= r, and l at m = r. So its
integral over {l <= r} is at most that of m l / r, and at most rho. Elsewhere, its integral is at
most h. The new outputs have mass rho. To make (l, r') satisfy one direction of the claim, r' needs
an additional mass of (h + rho - delta) / R, which equals rho. It gets this mass where l > R (r -
m), up to r' = l / R. Any mass that is left goes back to the outputs of the cell. So the other
direction is not harmed. The left side is treated in the same way, with r' in place of r. A call
meets the chosen cell with probability 1 / K, whatever noise it uses. Here, 1 / K is at most rho /
Q(l <= r) up to rounding of K. A random union of many smaller cells has no rounding. If no call
meets a cell, the audit sees the given mechanism. So it refutes the private mechanism with
probability at least beta - n (1 / K + 1 / K'), and this is at most alpha. Other datasets may be
mapped onto the two of the pair, so the mechanism is private everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import special

from dpaudit import _validate
from dpaudit.errors import ArgumentError
from dpaudit.stats.oracles._core import Floats, Oracle

_FREQUENCIES = 8192  # of the characteristic function
_BLOCK = 128  # of neighbouring frequencies
# Log likelihood ratios beyond this wrap around. The limits of the arguments make them negligible.
_REACH = 400.0
_SURE = 250.0  # mean log likelihood ratio from which the power counts as 1

_FLOORS = 1e-7, 1e-5, 1e-3  # shares of the other distribution, mixed in before the projection
_BLENDS = 0.25, 0.5, 0.75

_ROUNDING = 1e-12  # a divergence that is larger by less is an error of rounding
_SLIVER = 1e-15  # a slice of less mass is one, too
_MOST_DRAWS = 10**13
_LARGEST_EPSILON, _LEAST_EPSILON = 30.0, 1e-6
_LEAST_FAILURE_PROB, _LARGEST_POWER = 1e-20, 0.999


@dataclass(frozen=True, eq=False)
class NearestPrivatePair:
    """The pair of distributions that satisfies a claim and is hardest to tell from a given pair.

    Attributes
    ----------
    pmf_left, pmf_right : ndarray, shape (k,)
        The given pair, in slices of similar privacy loss.
    null_left, null_right : ndarray, shape (k,)
        The pair that satisfies the claim.
    gap : float
        Upper bound of the share by which `divergence` exceeds the smallest possible one. If it is
        not small, the numbers of draws are valid lower bounds, but larger ones may hold.
    """

    pmf_left: Floats
    pmf_right: Floats
    null_left: Floats
    null_right: Floats
    gap: float

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
        """Return the fewest draws of each side with which any test reaches a power.

        The number is that of the likelihood-ratio test. No test needs fewer draws if it refutes
        each allowed pair with probability at most `failure_prob`. The computed number is at most
        0.5% or one draw too large, and 5% too small, if it is at least 100.

        Parameters
        ----------
        power : float
            Probability of refuting the claim on the given pair, above `failure_prob` and at most
            0.999.
        failure_prob : float
            Probability of refuting the claim on an allowed pair, at least 1e-20 and below 1.
        """
        alpha = _rates(power, failure_prob, _LARGEST_POWER)
        low, high = 0, 1
        while self._power(high, alpha) < power:
            low, high = high, 2 * high
            if high > _MOST_DRAWS:
                raise ArgumentError(
                    f"power must be within reach: {power!r} needs more than {_MOST_DRAWS:,} draws"
                )
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._power(middle, alpha) < power else (low, middle)
        return high

    def expected_draws(self, *, power: float = 1.0, failure_prob: float) -> float:
        """Return a lower bound of the expected draws of each side of any sequential test.

        By Wald's inequality, the bound is kl(power, failure_prob) / `divergence`, where kl is the
        divergence of two coins.
        """
        alpha = _rates(power, failure_prob, 1.0)
        coin = power * math.log(power / alpha)
        if power < 1:
            coin += (1 - power) * math.log((1 - power) / (1 - alpha))
        return coin / self.divergence

    @cached_property
    def _log_characteristic(self) -> NDArray[np.complex128]:
        """Logarithm of the characteristic function of the log likelihood ratio of one draw."""
        step, found = math.pi / _REACH, np.zeros(_FREQUENCIES, dtype=np.complex128)
        fine = step * np.arange(_BLOCK)
        coarse = step * np.arange(0, _FREQUENCIES, _BLOCK)
        for weights, ratios in self._ratios:
            # With X = exp(x) - 1 and Y = exp(y) - 1, exp(x + y) - 1 is X Y + X + Y, also near 0.
            x, y = (np.expm1(1j * np.outer(at, ratios)) for at in (coarse, fine))
            one = (x * weights) @ y.T + (x @ weights)[:, None] + y @ weights
            found += np.log1p(one).ravel()
        return found

    def _power(self, draws: int, failure_prob: float) -> float:
        """Return the power of the likelihood-ratio test.

        The log likelihood ratio is smoothed by one step of its grid. Atoms are shared between the
        two decisions, as by a randomised test.
        """
        if draws * self.divergence > _SURE:
            return 1.0
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
        Claimed epsilon, from 0 to 30.
    delta : float, default 0
        Claimed delta, in [0, 1).

    Raises
    ------
    ArgumentError
        If the pair satisfies the claim, or violates it by less than rounding errors.

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
    if epsilon > _LARGEST_EPSILON:
        raise ArgumentError(f"epsilon must be at most {_LARGEST_EPSILON:g}, got {epsilon!r}")
    p, q = (np.diff(side) for side in oracle.curve())
    kept = p + q > _SLIVER
    p, q = p[kept] / p[kept].sum(), q[kept] / q[kept].sum()
    bound = math.exp(epsilon)
    best = NearestPrivatePair(p, q, *_allowed(*_pure(p, q, bound), bound, delta), 0.0)
    least = best.divergence
    if delta > 0:
        least = 0.0
        for floor in _FLOORS:
            null, value = _approximate(p, q, bound, delta, floor)
            least = max(least, value)
            for share in (1.0, *_BLENDS):
                left = share * null[0] + (1 - share) * best.null_left
                right = share * null[1] + (1 - share) * best.null_right
                pair = NearestPrivatePair(p, q, *_allowed(left, right, bound, delta), 0.0)
                best = pair if pair.divergence < best.divergence else best
    if oracle.delta(epsilon) <= delta or best.divergence <= _ROUNDING:
        raise ArgumentError(
            f"epsilon must be below that of the pair, which satisfies epsilon = {epsilon:g} at "
            f"delta = {delta:g}"
        )
    gap = best.divergence / least - 1 if least > 0 else math.inf
    return replace(best, gap=max(gap, 0.0))


def reachable_epsilon(
    oracle: Oracle, *, delta: float, draws: int, power: float, failure_prob: float
) -> float:
    """Return an epsilon that no audit of calls exceeds with a given probability.

    This holds even if the audit chooses the noise.

    Importance sampling cannot exceed it either. Only knowledge of the code can, such as the
    declared noise of `AdditiveNoise`. The noise of the mechanism must be continuous.

    Parameters
    ----------
    oracle : Oracle
        The pair.
    delta : float
        Delta at which epsilon is certified, in [0, 1).
    draws : int
        Calls of the mechanism on each side, at least 1.
    power : float
        Probability of certifying a larger epsilon, above `failure_prob` and at most 1.
    failure_prob : float
        Probability of certifying an epsilon that the mechanism satisfies, at least 1e-20.

    Returns
    -------
    float
        Epsilon, at most ``oracle.epsilon(delta)``. A limit above 30 is not computed, and
        ``oracle.epsilon(delta)`` is returned instead.

    Examples
    --------
    >>> from dpaudit.stats.oracles import gaussian
    >>> pair = gaussian(1.0, 1.0)
    >>> round(pair.epsilon(1e-6), 2)
    4.89
    >>> round(reachable_epsilon(pair, delta=1e-6, draws=100_000, power=0.5, failure_prob=0.05), 2)
    3.88
    """
    if not isinstance(oracle, Oracle):
        raise TypeError(f"oracle must be an Oracle, got {_validate.describe(oracle)}")
    delta, draws = _validate.delta(delta=delta), _validate.integer(1, draws=draws)
    power = _validate.positive(power=power)
    allowed = power - _rates(power, failure_prob, 1.0)
    (_, right), (left, _) = oracle.rates(0.0), oracle.rates(0.0, closed=True)

    def spare(epsilon: float) -> float:
        """Return what is left of the power if each call meets a cell as often as it can."""
        excess_left = max(oracle.delta_left(epsilon) - delta, 0.0)
        excess_right = max(oracle.delta_right(epsilon) - delta, 0.0)
        cells = (excess_left / (1 - right) if excess_left > 0 else 0.0) + (
            excess_right / left if excess_right > 0 else 0.0
        )
        return allowed - draws * cells / math.expm1(epsilon)

    largest = oracle.epsilon(delta)
    if largest > _LARGEST_EPSILON:
        if spare(_LARGEST_EPSILON) < 0:
            return largest
        largest = _LARGEST_EPSILON
    if largest <= _LEAST_EPSILON or spare(largest) < 0:
        return largest
    if spare(_LEAST_EPSILON) >= 0:
        return _LEAST_EPSILON
    root: float = scipy.optimize.brentq(spare, _LEAST_EPSILON, largest, rtol=1e-12)
    return root


def _pure(p: Floats, q: Floats, bound: float) -> tuple[Floats, Floats]:
    def excess(x: float) -> float:
        left, right = _null(p, q, bound, x, 2 - x)
        return float(left.sum() - right.sum())

    try:
        x: float = scipy.optimize.brentq(excess, 1e-9, 2 - 1e-9, xtol=1e-15, rtol=1e-14)
    except ValueError:  # rounding hides the sign, because bound is nearly 1
        x = 1.0
    return _null(p, q, bound, x, 2 - x)


def _approximate(
    p: Floats, q: Floats, bound: float, delta: float, floor: float
) -> tuple[tuple[Floats, Floats], float]:
    """Return a pair near the nearest one, and a lower bound of the smallest divergence."""
    mixed_p, mixed_q = (1 - floor) * p + floor * q, (1 - floor) * q + floor * p

    def dual(multipliers: Floats, p: Floats, q: Floats) -> tuple[float, Floats]:
        left, right = _null(p, q, bound, *multipliers)
        slope = np.array(
            [
                left.sum() - 1,
                right.sum() - 1,
                np.maximum(left - bound * right, 0).sum() - delta,
                np.maximum(right - bound * left, 0).sum() - delta,
            ]
        )
        value = float(multipliers @ slope)
        for one, null in ((p, left), (q, right)):
            value += float(special.rel_entr(one, null).sum())
        return -value, -slope

    positive, any_size = (1e-9, None), (0.0, None)
    found = scipy.optimize.minimize(
        dual,
        np.array([1.0, 1.0, 0.1, 0.1]),
        args=(mixed_p, mixed_q),
        jac=True,
        bounds=[positive, positive, any_size, any_size],
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-16},
    )
    value = -dual(found.x, p, q)[0]
    return _null(mixed_p, mixed_q, bound, *found.x), value if math.isfinite(value) else 0.0


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
    """Move a pair towards equal distributions until it satisfies the claim.

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


def _rates(power: float, failure_prob: float, most: float) -> float:
    alpha = _validate.failure_prob(failure_prob=failure_prob)
    if alpha < _LEAST_FAILURE_PROB:
        raise ArgumentError(
            f"failure_prob must be at least {_LEAST_FAILURE_PROB:g}, got {failure_prob!r}"
        )
    if not alpha < power <= most:
        raise ArgumentError(
            f"power must be above failure_prob={failure_prob!r} and at most {most:g}, got {power!r}"
        )
    return alpha
