"""What the rates of one event say of privacy: epsilon, delta, and whole curves, from below."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpaudit import _validate
from dpaudit.errors import ArgumentError
from dpaudit.stats.joint import joint_region
from dpaudit.stats.proportions import Counts
from dpaudit.stats.target import Target

_LINE_STEPS = 2000
_ROUNDING = 2.0**-51
_LEAST_RATE = 5e-324


@dataclass(frozen=True, eq=False)
class RateBounds:
    """What is known of the two rates of one event, and so of the privacy loss.

    The event fires with probability p on the side where it is the likelier one, and q on the
    other. Known are corners: except with probability `failure_prob`, ``p >= likely[i]`` and
    ``q <= rare[i]`` for some i. Every answer is the least over the corners, so all of them hold
    together: the complementary event with the sides exchanged, every epsilon, delta and order.

    Parameters
    ----------
    likely, rare : float or array_like, shape (k,)
        In [0, 1]; one corner is a pair of separate bounds.
    failure_prob : float
        Probability that the true rates are not as described.
    lines : bool, optional
        Whether, instead, some point of the straight lines between neighbouring corners has
        ``p >= likely`` and ``q <= rare``. Default False.

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
            Of draws that had no part in choosing the event.
        likelier : {"left", "right"}
            The side on which the event was *declared* to be likelier, before these draws.
        failure_prob : float
            Strictly between 0 and 1.
        target : Target
            Where the bound should be sharpest, declared before these draws.
        """
        _validate.choice(("left", "right"), likelier=likelier)
        ordered = counts if likelier == "left" else counts.swapped()
        return cls(*joint_region(ordered, failure_prob, target), failure_prob)

    @classmethod
    def from_excess(cls, epsilon: float, delta: float, failure_prob: float) -> RateBounds:
        """Take over what a bound of ``p - e^epsilon q >= delta`` says, for rates in [0, 1].

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
        """Lower bound of the epsilon that the mechanism needs at `delta`; >= 0."""
        delta = _validate.delta(delta=delta)
        direct, mirrored = _losses(self.likely, self.rare, delta)
        return float(max(direct.min(), mirrored.min(), 0.0))

    def lower_delta(self, epsilon: float) -> float:
        """Lower bound of the delta that the mechanism needs at `epsilon`; in [0, 1]."""
        epsilon = _validate.nonnegative(epsilon=epsilon)
        direct, mirrored = _excesses(self.likely, self.rare, epsilon)
        return float(max(direct.min(), mirrored.min(), 0.0)) + 0.0  # never -0.0

    def worst_case(self, delta: float) -> tuple[float, float]:
        """Return the rates (p, q) of the curve that are easiest to reconcile with privacy.

        Their loss at `delta` is :meth:`lower_epsilon`: of the event, or of its complement with the
        sides exchanged, whichever says more of the curve as a whole.
        """
        delta = _validate.delta(delta=delta)
        direct, mirrored = _losses(self.likely, self.rare, delta)
        at = int((direct if direct.min() >= mirrored.min() else mirrored).argmin())
        return float(self.likely[at]), float(self.rare[at])

    def lower_mu(self) -> float:
        """Lower bound of the mu for which the mechanism may be mu-Gaussian-DP; >= 0.

        ``Phi^-1(p) - Phi^-1(q)`` (Dong, Roth and Su 2022).
        """
        p, q = self._corners()
        with np.errstate(invalid="ignore"):
            mu = special.ndtri(p) - special.ndtri(q)
        return float(max(np.where(np.isnan(mu), 0.0, mu).min(), 0.0))

    def lower_renyi(self, alpha: float) -> float:
        """Lower bound of the Renyi divergence of order `alpha`, in its worse direction; >= 0.

        The divergence of the outcomes "fired" and "did not", which is no larger (data processing).
        """
        if _validate.positive(alpha=alpha) <= 1:
            raise ArgumentError(f"alpha must be a finite number > 1, got {alpha!r}")
        p, q = self._corners()
        q = np.minimum(
            q, p
        )  # equal distributions are the least that a corner with p < q leaves possible
        return float(max(_binary_renyi(p, q, alpha).min(), _binary_renyi(q, p, alpha).min()))

    def upper_tradeoff(self, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Upper bound, at type I errors `alphas`, of every curve f for which f-DP may hold.

        f-DP bounds the errors of tests with the datasets in either role, so f lies below the
        errors of "the event fired", through (q, 1 - p), and below those of "it did not" with the
        roles exchanged, through (1 - p, q), each mixed with a coin. The curve is not one of type
        II errors of the tests in one role: of two datasets that differ as (0, 1) and (0, 0.5) do,
        one direction may be harder to tell than the other.
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
        """Corners below the curve; those of a line follow it from 0 to 1 in small steps."""
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
    """Move rates that may have been rounded to 1 or to 0, where divergences are infinite."""
    return np.where(p > 0.5, p - _ROUNDING, p), np.maximum(q, _LEAST_RATE)


def _binary_renyi(
    p: NDArray[np.float64], q: NDArray[np.float64], alpha: float
) -> NDArray[np.float64]:
    """Renyi divergence of two Bernoulli distributions, elementwise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [
            np.where(x > 0, alpha * np.log(x) + (1 - alpha) * np.log(y), -math.inf)
            for x, y in ((p, q), (1 - p, 1 - q))
        ]
    return np.asarray(np.maximum(np.logaddexp(*terms) / (alpha - 1), 0.0))


def loss_of_rates(likely: ArrayLike, rare: ArrayLike, delta: float) -> NDArray[np.float64]:
    """Epsilon implied by event rates: the event, or its complement with the sides exchanged.

    ``max(log((likely - delta) / rare), log((1 - rare - delta) / (1 - likely)), 0)``, elementwise;
    0 where a numerator is not positive. Where a denominator is 0 the rate was given as exactly 0,
    which no count can show, and the answer is ``inf``.
    """
    direct, mirrored = _losses(likely, rare, delta)
    return np.asarray(np.maximum(np.maximum(direct, mirrored), 0.0))


def excess_of_rates(likely: ArrayLike, rare: ArrayLike, epsilon: ArrayLike) -> NDArray[np.float64]:
    """Delta implied by event rates, elementwise, the better of event and swapped complement."""
    direct, mirrored = _excesses(likely, rare, epsilon)
    return np.asarray(np.maximum(np.maximum(direct, mirrored), 0.0))


def _losses(
    likely: ArrayLike, rare: ArrayLike, delta: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Losses of the event and of its swapped complement; -inf where a numerator is not positive."""
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
        factor = np.exp(np.asarray(epsilon, dtype=float))  # inf, where it is beyond every double
        return _above(p, factor, q), _above(1 - q, factor, 1 - p)


def _above(
    top: NDArray[np.float64], factor: NDArray[np.float64], bottom: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return ``top - factor bottom``, in which 0 times infinity is 0."""
    return np.where(bottom > 0, top - factor * bottom, top)
