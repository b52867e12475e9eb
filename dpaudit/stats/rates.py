"""Lower bounds of epsilon, delta and whole curves from the rates of one event.

Toss a fair coin for each of N draws. According to the coin, make the draw on the left dataset or on
the right dataset. A rule that was fixed before the draws reads each output and guesses its side, or
abstains. Let ``c = (p_L + q_R) / 2`` be the probability of a correct guess, and let ``w = (q_L +
p_R) / 2`` be the probability of a wrong guess. Here, p and q are the probabilities on the left and
on the right side, for the guesses left (L) and right (R).

**The bound that privacy implies.** If the mechanism satisfies (epsilon, delta), then ``p_L <=
e^epsilon q_L + delta`` and ``q_R <= e^epsilon p_R + delta``, so ``c <= e^epsilon w + delta``. A
stronger statement holds: c and w are the probabilities of one event, "the guess is correct", under
two distributions P* and Q*. P* is the distribution of (coin, output), and Q* is the distribution of
(flipped coin, output). The hockey-stick divergences of P* and Q* are averages of the mechanism's
divergences in the two directions. The functionals whose logarithms are Renyi divergences are such
averages, too. A convex trade-off curve that lies below the curves of both directions also lies
below the curve of P* and Q*. Therefore everything that :class:`~dpaudit.stats.RateBounds` derives
from the rates of an event can be derived from (c, w).

**The bound from counts.** Among N draws, r = C + W are guessed, and C of these r guesses are
correct. Then r ~ Bin(N, s) with ``s = c + w``. Given r, C ~ Bin(r, rho) with ``rho = c / s``. At
delta = 0, only rho matters: the condition is ``rho <= e^epsilon / (1 + e^epsilon)``. One
Clopper-Pearson bound of rho is enough, and it uses both tails of the outputs. For delta > 0, ``c -
e^epsilon w = s (rho (1 + e^epsilon) - e^epsilon)``. For delta > 0, a lower bound of s is also
needed. This lower bound gets a hundredth of the failure probability.

References
----------
Steinke, Nasr and Jagielski (2023), "Privacy auditing with one (1) training run", introduced guesses
and abstention. Here, every draw is a separate run, so delta costs almost nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpaudit import _validate
from dpaudit.errors import ArgumentError
from dpaudit.stats.joint import Counts, Target, joint_region, lower_rates

# --- guesses of the side that an output was drawn from, in randomised draws --------------------


SHARE_OF_GUESSING = 0.01
"""Part of the failure probability that the rate of guessing gets, for delta > 0."""

_QUANTILES = 64  # number of quantiles of the number of guesses, in planning


@dataclass(frozen=True)
class GuessCounts:
    """Numbers of correct and wrong guesses among N randomised draws.

    Parameters
    ----------
    correct, wrong : int
        Each number is at least 0, and their sum is at most `draws`.
    draws : int
        Number of draws on both sides together, at least 1. The coins decide how many draws are on
        each side.

    Raises
    ------
    TypeError
        If a count is not an integer.
    ValueError
        If a count is out of range.
    """

    correct: int
    wrong: int
    draws: int

    def __post_init__(self) -> None:
        _validate.integer(1, draws=self.draws)
        _validate.integer(0, correct=self.correct)
        _validate.integer(0, wrong=self.wrong)
        if self.correct + self.wrong > self.draws:
            raise ArgumentError(
                f"correct + wrong must be at most draws = {self.draws}, got {self.correct!r} "
                f"+ {self.wrong!r}"
            )

    @property
    def guesses(self) -> int:
        """Number of draws in which a side was guessed."""
        return self.correct + self.wrong

    def as_counts(self) -> Counts:
        """Return correct and wrong guesses as counts of an event, each out of all draws."""
        return Counts(self.correct, self.draws, self.wrong, self.draws)


def guess_bounds(counts: GuessCounts, failure_prob: float) -> RateBounds:
    """Bound the probabilities of correct and wrong guesses.

    Parameters
    ----------
    counts : GuessCounts
        Counts of independent randomised draws. The rule that made the guesses must not depend on
        these draws.
    failure_prob : float
        Failure probability, strictly between 0 and 1.

    Returns
    -------
    RateBounds
        Bounds of c and w, where c is assumed to be the larger rate. All derived bounds hold
        together, except with probability `failure_prob`. No target needs to be declared.

    Examples
    --------
    >>> seen = GuessCounts(1462, 538, 2000)  # randomised response with epsilon = 1
    >>> round(guess_bounds(seen, 0.05).lower_epsilon(0.0), 3)
    0.916
    """
    alpha = _validate.failure_prob(failure_prob=failure_prob)
    rho = float(lower_rates(counts.correct, counts.guesses, alpha * (1 - SHARE_OF_GUESSING)))
    s = float(lower_rates(counts.guesses, counts.draws, alpha * SHARE_OF_GUESSING))
    # The inequalities c >= rho s' and w <= (1 - rho) s' hold for the true s', which lies in [s, 1].
    ends = np.array([s, 1.0])
    return RateBounds(rho * ends, (1 - rho) * ends, failure_prob, lines=True)


def guess_refutation_prob(
    share: float, rate: float, draws: int, *, epsilon: float, delta: float, failure_prob: float
) -> float:
    """Return the probability that guesses refute (epsilon, delta), for planning.

    The result is a mean over quantiles of the number of guesses. For each number of guesses, the
    critical number of correct guesses is the number that :func:`guess_bounds` requires, up to
    rounding if the failure probability is below 1e-12.

    Parameters
    ----------
    share : float
        Share of correct guesses among all guesses, in [0, 1].
    rate : float
        Probability that a side is guessed, in (0, 1].
    draws : int
        Number of draws on both sides together.
    epsilon, delta : float
        The claimed epsilon and delta.
    failure_prob : float
        Failure probability, strictly between 0 and 1.

    Examples
    --------
    >>> round(guess_refutation_prob(0.8, 1.0, 500, epsilon=1.0, delta=0.0, failure_prob=0.05), 3)
    0.973
    """
    alpha = _validate.failure_prob(failure_prob=failure_prob)
    if rate <= 0:
        return 0.0
    guesses = np.ceil(special.bdtrik((np.arange(_QUANTILES) + 0.5) / _QUANTILES, draws, rate))
    s = lower_rates(guesses, draws, alpha * SHARE_OF_GUESSING)
    with np.errstate(divide="ignore"):
        excess = delta / s if delta > 0 else np.zeros_like(s)
    # The rho that is required by c - e^epsilon w = delta.
    rho = special.expit(epsilon) + excess * special.expit(-epsilon)
    can = (rho < 1) & (guesses > 0)
    quantile = 1 - alpha * (1 - SHARE_OF_GUESSING)
    critical = np.ceil(special.bdtrik(quantile, guesses[can], rho[can]))
    rest = guesses[can] - critical
    # P(C > critical). scipy.special.bdtrc returns NaN from 2^31 guesses on.
    tails = special.betainc(critical[rest > 0] + 1, rest[rest > 0], share)
    return float(tails.sum() / _QUANTILES)


_LINE_STEPS = 2000
_ROUNDING = 2.0**-51
_LEAST_RATE = 5e-324


@dataclass(frozen=True, eq=False)
class RateBounds:
    """Certified bounds of the two rates of one event, from which bounds of the privacy loss follow.

    The event fires with probability p on the side where it is likelier, and with probability q on
    the other side. The bounds are a list of corners. Except with probability `failure_prob`, ``p >=
    likely[i]`` and ``q <= rare[i]`` hold for some i. Every result is the smallest value over the
    corners. So all results hold together, for every epsilon, delta and order, and for the
    complementary event with exchanged sides.

    Parameters
    ----------
    likely, rare : float or array_like, shape (k,)
        Rates in [0, 1]. A single corner is a pair of separate bounds.
    failure_prob : float
        Probability that the true rates do not satisfy the bounds.
    lines : bool, optional
        If True, ``p >= likely`` and ``q <= rare`` hold for some point of the straight lines between
        neighbouring corners. The default is False.

    Examples
    --------
    >>> seen = Counts(500, 1000, 184, 1000)
    >>> bounds = RateBounds.from_counts(seen, "left", 0.05, Target(delta=0.0))
    >>> 0.87 < bounds.lower_epsilon(0.0) < 0.88
    True
    """

    likely: NDArray[np.float64]
    rare: NDArray[np.float64]
    failure_prob: float
    lines: bool = False

    def __post_init__(self) -> None:
        for name in ("likely", "rare"):
            value = np.array(getattr(self, name), dtype=float, ndmin=1)
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    @classmethod
    def from_counts(
        cls, counts: Counts, likelier: str, failure_prob: float, target: Target
    ) -> RateBounds:
        """Bound the two rates jointly, by :func:`dpaudit.stats.joint_region`.

        Parameters
        ----------
        counts : Counts
            Counts of draws that were not used to choose the event.
        likelier : {"left", "right"}
            The side that was *declared* to be likelier before these draws.
        failure_prob : float
            Failure probability, strictly between 0 and 1.
        target : Target
            Target at which the bound should be sharpest, declared before these draws.
        """
        _validate.choice(("left", "right"), likelier=likelier)
        ordered = counts if likelier == "left" else counts.swapped()
        return cls(*joint_region(ordered, failure_prob, target), failure_prob)

    @classmethod
    def from_excess(cls, epsilon: float, delta: float, failure_prob: float) -> RateBounds:
        """Convert a bound ``p - e^epsilon q >= delta``, for rates in [0, 1].

        Parameters
        ----------
        epsilon : float
            Epsilon, finite and >= 0.
        delta : float
            Delta, in [0, 1].
        failure_prob : float
            Failure probability, in [0, 1).
        """
        epsilon = _validate.nonnegative(epsilon=epsilon)
        delta = _validate.delta(delta=delta)
        largest_rare = (1 - delta) * math.exp(-epsilon)
        ends = np.array([delta, 1.0]), np.array([0.0, largest_rare])
        return cls(*ends, failure_prob, lines=True)

    def lower_epsilon(self, delta: float) -> float:
        """Return a lower bound >= 0 of the epsilon that the mechanism needs at `delta`."""
        delta = _validate.delta(delta=delta)
        direct, mirrored = _losses(self.likely, self.rare, delta)
        return float(max(direct.min(), mirrored.min(), 0.0))

    def lower_delta(self, epsilon: float) -> float:
        """Return a lower bound in [0, 1] of the delta that the mechanism needs at `epsilon`."""
        epsilon = _validate.nonnegative(epsilon=epsilon)
        direct, mirrored = _excesses(self.likely, self.rare, epsilon)
        return float(max(direct.min(), mirrored.min(), 0.0)) + 0.0  # never -0.0

    def worst_case(self, delta: float) -> tuple[float, float]:
        """Return the rates (p, q) on the curve that are easiest to reconcile with privacy.

        The loss of these rates at `delta` is :meth:`lower_epsilon`. The loss belongs to the event,
        or to its complement with exchanged sides. The function uses whichever of the two gives more
        for the whole curve.
        """
        delta = _validate.delta(delta=delta)
        direct, mirrored = _losses(self.likely, self.rare, delta)
        at = int((direct if direct.min() >= mirrored.min() else mirrored).argmin())
        return float(self.likely[at]), float(self.rare[at])

    def lower_mu(self) -> float:
        """Return a lower bound >= 0 of every mu for which the mechanism is mu-Gaussian-DP.

        The bound is ``Phi^-1(p) - Phi^-1(q)`` (Dong, Roth and Su 2022).
        """
        p, q = self._corners()
        with np.errstate(invalid="ignore"):
            mu = special.ndtri(p) - special.ndtri(q)
        return float(max(np.where(np.isnan(mu), 0.0, mu).min(), 0.0))

    def lower_renyi(self, alpha: float) -> float:
        """Return a lower bound >= 0 of the Renyi divergence of order `alpha` (worse direction).

        The bound is the divergence of the outcomes "fired" and "did not fire". By data processing,
        the bound is no larger than the divergence of the outputs.
        """
        if _validate.positive(alpha=alpha) <= 1:
            raise ArgumentError(f"alpha must be a finite number > 1, got {alpha!r}")
        p, q = self._corners()
        q = np.minimum(
            q, p
        )  # if p < q at a corner, the two distributions may be equal, so the divergence is 0
        return float(max(_binary_renyi(p, q, alpha).min(), _binary_renyi(q, p, alpha).min()))

    def upper_tradeoff(self, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return an upper bound, at type I errors `alphas`, of every f for which f-DP is possible.

        f-DP bounds the errors of tests for either role of the two datasets. Therefore f lies below
        the errors of the test "the event fired", which has the point (q, 1 - p). This curve also
        lies below the errors of the test "it did not fire" with exchanged roles, which has the
        point (1 - p, q). Each test is mixed with a coin flip. The bound is not a curve of type II
        errors of tests with fixed roles. For example, suppose that outputs are uniform on (0, 1)
        for one dataset and on (0, 0.5) for the other dataset. Then the two directions have
        different type II errors.
        """
        p, q = (side[:, None] for side in self._corners())
        tests = [(q, 1 - p), (1 - p, q)]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            bounds = [
                np.where(alphas <= a, 1 - alphas * (1 - b) / a, b * (1 - alphas) / (1 - a))
                for a, b in tests
            ]
        known = [np.nan_to_num(bound, nan=1.0).max(axis=0) for bound in bounds]
        return np.asarray(np.min([*known, 1 - alphas], axis=0))  # a coin flip has errors 1 - alpha

    def _corners(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return corners below the curve.

        If the corners are joined by lines, the lines are followed from 0 to 1 in small steps.
        """
        if not self.lines:
            return _unrounded(self.likely, self.rare)
        p, q = [], []
        share = np.concatenate([[0.0], np.geomspace(1e-12, 1.0, _LINE_STEPS)])
        for i in range(len(self.likely) - 1):
            p.append(self.likely[i] + share[:-1] * (self.likely[i + 1] - self.likely[i]))
            q.append(self.rare[i] + share[1:] * (self.rare[i + 1] - self.rare[i]))
        return _unrounded(np.concatenate(p), np.concatenate(q))


def _unrounded(
    p: NDArray[np.float64], q: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Move rates that may have been rounded to 1 or 0, because divergences are infinite there."""
    return np.where(p > 0.5, p - _ROUNDING, p), np.maximum(q, _LEAST_RATE)


def _binary_renyi(
    p: NDArray[np.float64], q: NDArray[np.float64], alpha: float
) -> NDArray[np.float64]:
    """Return the Renyi divergences of pairs of Bernoulli distributions, elementwise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [
            np.where(x > 0, alpha * np.log(x) + (1 - alpha) * np.log(y), -math.inf)
            for x, y in ((p, q), (1 - p, 1 - q))
        ]
    return np.asarray(np.maximum(np.logaddexp(*terms) / (alpha - 1), 0.0))


def loss_of_rates(likely: ArrayLike, rare: ArrayLike, delta: float) -> NDArray[np.float64]:
    """Return the larger of the epsilons implied by rates of an event and its swapped complement.

    The value is ``max(log((likely - delta) / rare), log((1 - rare - delta) / (1 - likely)), 0)``,
    elementwise. A term whose numerator is not positive is omitted. A denominator is 0 only if its
    rate is exactly 0 or 1, which no count can show. In this case, the term is ``inf``.
    """
    direct, mirrored = _losses(likely, rare, delta)
    return np.asarray(np.maximum(np.maximum(direct, mirrored), 0.0))


def excess_of_rates(likely: ArrayLike, rare: ArrayLike, epsilon: ArrayLike) -> NDArray[np.float64]:
    """Return the larger of the deltas implied by the rates of an event and its swapped complement.

    The result is elementwise, and at least 0.
    """
    direct, mirrored = _excesses(likely, rare, epsilon)
    return np.asarray(np.maximum(np.maximum(direct, mirrored), 0.0))


def _losses(
    likely: ArrayLike, rare: ArrayLike, delta: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the losses of the event and its swapped complement; -inf if a numerator is <= 0."""
    p, q = np.broadcast_arrays(np.asarray(likely, dtype=float), np.asarray(rare, dtype=float))
    losses = []
    for top, bottom in ((p - delta, q), (1 - q - delta, 1 - p)):
        known = (top > 0) & (bottom > 0)
        loss = np.where(top > 0, math.inf, -math.inf)
        loss[known] = np.log(top[known]) - np.log(bottom[known])
        losses.append(loss)
    return losses[0], losses[1]


def _excesses(
    likely: ArrayLike, rare: ArrayLike, epsilon: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    p, q = np.asarray(likely, dtype=float), np.asarray(rare, dtype=float)
    with np.errstate(over="ignore", invalid="ignore"):
        factor = np.exp(np.asarray(epsilon, dtype=float))  # inf if it exceeds every double
        return _above(p, factor, q), _above(1 - q, factor, 1 - p)


def _above(
    top: NDArray[np.float64], factor: NDArray[np.float64], bottom: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return ``top - factor bottom``, where 0 times infinity is defined as 0."""
    return np.where(bottom > 0, top - factor * bottom, top)
