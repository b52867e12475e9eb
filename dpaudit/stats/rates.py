"""Lower bounds of epsilon, delta and whole curves from the rates of one event.

Toss a fair coin for each of N draws. According to the coin, draw from the left dataset or from the
right dataset. A rule that was fixed before reads the output and guesses the side, or abstains. Let
``c = (p_L + q_R) / 2`` be the probability of a correct guess, and let ``w = (q_L + p_R) / 2`` be
the probability of a wrong guess. Here p and q are the probabilities, on the left and on the right
side, of guessing left (L) and right (R).

**The bound that privacy implies.** For every (epsilon, delta) that the mechanism satisfies, ``p_L
<= e^epsilon q_L + delta`` and ``q_R <= e^epsilon p_R + delta``, and so ``c <= e^epsilon w +
delta``. A stronger statement holds: c and w are the probabilities of a single event, "the guess is
correct", under a pair of distributions P*, Q*. P* is the distribution of (coin, output), and Q*
that of (turned coin, output). The hockey-stick divergences of P*, Q* are the averages of the
mechanism's divergences in both directions. So are the functionals whose logarithms are Renyi
divergences. A trade-off curve that lies below both directions is convex, so it also lies below the
curve of P*, Q*. So everything that :class:`~dpaudit.stats.RateBounds` derives from the rates of an
event can be derived from (c, w).

**The bound from counts.** Among N draws, r = C + W are guessed, and C of these guesses are correct.
Then r ~ Bin(N, s) with ``s = c + w``. Given r, C ~ Bin(r, rho) with ``rho = c / s``. At delta = 0
only rho matters: ``rho <= e^epsilon / (1 + e^epsilon)``. One Clopper-Pearson bound is enough, and
it uses both tails of the outputs. For delta > 0, ``c - e^epsilon w = s (rho (1 + e^epsilon) -
e^epsilon)``. This also needs a lower bound of s, which gets a hundredth of the failure probability.

References
----------
Steinke, Nasr and Jagielski (2023), "Privacy auditing with one (1) training run", for guesses and
abstention. Here every draw is a separate run, so delta costs almost nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from dpaudit import _validate
from dpaudit.errors import ArgumentError
from dpaudit.stats.joint import Counts, Target, joint_region, lower_rates

# --- guesses of the side that an output was drawn from, in randomised draws --------------------


SHARE_OF_GUESSING = 0.01
"""Part of the failure probability that the rate of guessing gets, for delta > 0."""

_QUANTILES = 64  # quantiles of the number of guesses, in planning


@dataclass(frozen=True)
class GuessCounts:
    """Numbers of right and wrong guesses among N randomised draws.

    Parameters
    ----------
    correct, wrong : int
        At least 0, and together at most `draws`.
    draws : int
        Draws on both sides together, at least 1. The coins decide how many fall on each side.

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
                f"correct and wrong must be at most draws = {self.draws} together, got "
                f"{self.correct!r} and {self.wrong!r}"
            )

    @property
    def guesses(self) -> int:
        """Draws in which a side was guessed."""
        return self.correct + self.wrong

    def as_counts(self) -> Counts:
        """Return correct and wrong guesses, each out of all draws, as counts of an event."""
        return Counts(self.correct, self.draws, self.wrong, self.draws)


def guess_bounds(counts: GuessCounts, failure_prob: float) -> RateBounds:
    """Bound the probabilities of right and wrong guesses.

    Parameters
    ----------
    counts : GuessCounts
        Counts of independent randomised draws. The rule that guessed must not depend on them.
    failure_prob : float
        Strictly between 0 and 1.

    Returns
    -------
    RateBounds
        Bounds of c, the likelier rate, and of w. Everything derived from them holds together,
        except with probability `failure_prob`. The target need not be declared.

    Examples
    --------
    >>> seen = GuessCounts(1462, 538, 2000)  # randomised response with epsilon = 1
    >>> round(guess_bounds(seen, 0.05).lower_epsilon(0.0), 3)
    0.916
    """
    alpha = _validate.failure_prob(failure_prob=failure_prob)
    rho = float(lower_rates(counts.correct, counts.guesses, alpha * (1 - SHARE_OF_GUESSING)))
    s = float(lower_rates(counts.guesses, counts.draws, alpha * SHARE_OF_GUESSING))
    # Known: c >= rho s' and w <= (1 - rho) s' for the true s', which lies somewhere in [s, 1].
    ends = np.array([s, 1.0])
    return RateBounds(rho * ends, (1 - rho) * ends, failure_prob, lines=True)


def guess_refutation_prob(
    share: float, rate: float, draws: int, *, epsilon: float, delta: float, failure_prob: float
) -> float:
    """Return the probability that guesses refute (epsilon, delta), for planning.

    It is the mean over quantiles of the number of guesses. Given this number, the critical number
    of correct guesses is exactly the one of :func:`guess_bounds`.

    Parameters
    ----------
    share : float
        Share of correct guesses among all guesses, in [0, 1].
    rate : float
        Probability that a side is guessed, in (0, 1].
    draws : int
        Draws on both sides together.
    epsilon, delta : float
        The claim.
    failure_prob : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> round(guess_refutation_prob(0.8, 1.0, 500, epsilon=1.0, delta=0.0, failure_prob=0.05), 3)
    0.973
    """
    alpha = _validate.failure_prob(failure_prob=failure_prob)
    guesses = stats.binom.ppf((np.arange(_QUANTILES) + 0.5) / _QUANTILES, draws, rate)
    s = lower_rates(guesses, draws, alpha * SHARE_OF_GUESSING)
    with np.errstate(divide="ignore"):
        excess = delta / s if delta > 0 else np.zeros_like(s)
    # The rho that c - e^epsilon w = delta requires.
    rho = special.expit(epsilon) + excess * special.expit(-epsilon)
    can = rho < 1
    critical = stats.binom.isf(alpha * (1 - SHARE_OF_GUESSING), guesses, np.where(can, rho, 0.5))
    tail = stats.binom.sf(critical, guesses, share)
    return float(np.where(can & (guesses > 0), tail, 0.0).mean())


_LINE_STEPS = 2000
_ROUNDING = 2.0**-51
_LEAST_RATE = 5e-324


@dataclass(frozen=True, eq=False)
class RateBounds:
    """Certified knowledge about the two rates of one event, and so about the privacy loss.

    The event fires with probability p on the side where it is likelier, and with probability q on
    the other side. The knowledge is a list of corners: except with probability `failure_prob`, ``p
    >= likely[i]`` and ``q <= rare[i]`` for some i. Every result is the least over the corners, so
    all results hold together: for the complementary event with the sides exchanged, and for every
    epsilon, delta and order.

    Parameters
    ----------
    likely, rare : float or array_like, shape (k,)
        In [0, 1]; one corner is a pair of separate bounds.
    failure_prob : float
        Probability that the true rates are not as described.
    lines : bool, optional
        If True, the knowledge is instead that some point of the straight lines between neighbouring
        corners has ``p >= likely`` and ``q <= rare``. Default False.

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
        """Bound the two rates jointly; see :func:`dpaudit.stats.joint_region`.

        Parameters
        ----------
        counts : Counts
            Counts of draws that were not used to choose the event.
        likelier : {"left", "right"}
            The side on which the event was *declared* to be likelier, before these draws.
        failure_prob : float
            Strictly between 0 and 1.
        target : Target
            Target at which the bound should be sharpest, declared before these draws.
        """
        _validate.choice(("left", "right"), likelier=likelier)
        ordered = counts if likelier == "left" else counts.swapped()
        return cls(*joint_region(ordered, failure_prob, target), failure_prob)

    @classmethod
    def from_excess(cls, epsilon: float, delta: float, failure_prob: float) -> RateBounds:
        """Convert the bound ``p - e^epsilon q >= delta``, for rates in [0, 1].

        Parameters
        ----------
        epsilon : float
            Finite, >= 0.
        delta : float
            In [0, 1].
        failure_prob : float
            In [0, 1).
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
        """Return the rates (p, q) of the curve that are easiest to reconcile with privacy.

        Their loss at `delta` is :meth:`lower_epsilon`. This is the loss of the event, or of its
        complement with the sides exchanged. The loss that gives more for the curve as a whole is
        taken.
        """
        delta = _validate.delta(delta=delta)
        direct, mirrored = _losses(self.likely, self.rare, delta)
        at = int((direct if direct.min() >= mirrored.min() else mirrored).argmin())
        return float(self.likely[at]), float(self.rare[at])

    def lower_mu(self) -> float:
        """Return a lower bound >= 0 of the mu for which the mechanism may be mu-Gaussian-DP.

        ``Phi^-1(p) - Phi^-1(q)`` (Dong, Roth and Su 2022).
        """
        p, q = self._corners()
        with np.errstate(invalid="ignore"):
            mu = special.ndtri(p) - special.ndtri(q)
        return float(max(np.where(np.isnan(mu), 0.0, mu).min(), 0.0))

    def lower_renyi(self, alpha: float) -> float:
        """Return a lower bound >= 0 of the Renyi divergence of order `alpha`, worse direction.

        It is the divergence of the outcomes "fired" and "did not fire", which is no larger than
        that of the outputs (data processing).
        """
        if _validate.positive(alpha=alpha) <= 1:
            raise ArgumentError(f"alpha must be a finite number > 1, got {alpha!r}")
        p, q = self._corners()
        q = np.minimum(
            q, p
        )  # a corner with p < q leaves equal distributions possible, the least divergence
        return float(max(_binary_renyi(p, q, alpha).min(), _binary_renyi(q, p, alpha).min()))

    def upper_tradeoff(self, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return an upper bound, at type I errors `alphas`, of every curve f of a possible f-DP.

        f-DP bounds the errors of tests, whichever dataset has which role. So f lies below the
        errors of "the event fired", through (q, 1 - p). It also lies below those of "it did not
        fire" with the roles exchanged, through (1 - p, q). Each test is mixed with a coin. The
        curve is not a curve of type II errors of the tests in one role. For example, if two
        datasets differ as (0, 1) and (0, 0.5) do, one direction may be harder to distinguish than
        the other.
        """
        p, q = (side[:, None] for side in self._corners())
        tests = [(q, 1 - p), (1 - p, q)]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            bounds = [
                np.where(alphas <= a, 1 - alphas * (1 - b) / a, b * (1 - alphas) / (1 - a))
                for a, b in tests
            ]
        known = [np.nan_to_num(bound, nan=1.0).max(axis=0) for bound in bounds]
        return np.asarray(np.min([*known, 1 - alphas], axis=0))  # a coin has errors 1 - alpha

    def _corners(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return corners below the curve.

        The corners of a line follow the line from 0 to 1 in small steps.
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
    """Move rates that may have been rounded to 1 or 0, at which divergences are infinite."""
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
    """Return the epsilon that rates imply: the larger of those of event and swapped complement.

    ``max(log((likely - delta) / rare), log((1 - rare - delta) / (1 - likely)), 0)``, elementwise;
    a term whose numerator is not positive is left out. A denominator is 0 only if its rate was
    given as exactly 0 or 1, which no count can show. Then the term is ``inf``.
    """
    direct, mirrored = _losses(likely, rare, delta)
    return np.asarray(np.maximum(np.maximum(direct, mirrored), 0.0))


def excess_of_rates(likely: ArrayLike, rare: ArrayLike, epsilon: ArrayLike) -> NDArray[np.float64]:
    """Return the delta that rates imply: the larger value of the event and its swapped complement.

    The result is elementwise, and at least 0.
    """
    direct, mirrored = _excesses(likely, rare, epsilon)
    return np.asarray(np.maximum(np.maximum(direct, mirrored), 0.0))


def _losses(
    likely: ArrayLike, rare: ArrayLike, delta: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the losses of event and swapped complement; -inf if a numerator is not positive."""
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
    """Return ``top - factor bottom``, where 0 times infinity is 0."""
    return np.where(bottom > 0, top - factor * bottom, top)
