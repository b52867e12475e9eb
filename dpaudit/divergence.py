"""Hockey-stick divergence and its inverse, from pmfs, densities and counts.

The hockey-stick divergence of order ``e^epsilon`` is
``H(P || Q) = sup_S P(S) - e^epsilon Q(S) = integral of max(p - e^epsilon q, 0)``; a mechanism is
(epsilon, delta)-DP exactly when it is at most delta for all neighbours, in both directions.
From pmfs and densities it is *computed*; from counts it is *certified from below*.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import integrate, optimize, special

from dpaudit import _validate
from dpaudit.bounds import Aim, Counts, joint_region
from dpaudit.errors import ArgumentError

Density = Callable[[float], float]

_LINE_STEPS = 2000
_ROUNDING = 2.0**-51
_LEAST_RATE = 5e-324


def hockey_stick(left: ArrayLike, right: ArrayLike, epsilon: float) -> float:
    """Hockey-stick divergence of two probability mass functions, left over right.

    Parameters
    ----------
    left, right : array_like, shape (k,)
        Probabilities of the same k outcomes; each sums to 1.
    epsilon : float
        Finite, >= 0.

    Returns
    -------
    float
        ``sum(max(left - e^epsilon right, 0))``, in [0, 1].

    Examples
    --------
    >>> hockey_stick([0.75, 0.25], [0.25, 0.75], 0.0)
    0.5
    """
    p, q = _pmfs(left, right)
    epsilon = _validate.nonnegative(epsilon=epsilon)
    with np.errstate(divide="ignore", over="ignore"):
        scaled_q = np.exp(epsilon + np.log(q))  # may be inf where q is far from 0
    return float(np.maximum(p - scaled_q, 0.0).sum())


def hockey_stick_inverse(left: ArrayLike, right: ArrayLike, delta: float) -> float:
    """Smallest epsilon >= 0 at which the hockey-stick divergence of two pmfs is at most delta.

    Returns
    -------
    float
        Exact up to rounding; ``inf`` when the left side puts more than `delta` where the right
        side puts nothing.

    Examples
    --------
    >>> round(hockey_stick_inverse([0.75, 0.25], [0.25, 0.75], 0.0), 6)  # log 3
    1.098612
    >>> hockey_stick_inverse([1.0, 0.0], [0.0, 1.0], 0.5)
    inf
    """
    p, q = _pmfs(left, right)
    delta = _validate.delta(delta=delta)
    keep = p > 0
    p, q = p[keep], q[keep]
    with np.errstate(divide="ignore"):
        loss = np.log(p) - np.log(q)
    order = np.argsort(-loss, kind="stable")
    p, q, loss = p[order], q[order], loss[order]
    # The divergence is piecewise linear in e^epsilon, with its kinks at the privacy losses: walk
    # down from the largest loss until the divergence at the next kink exceeds delta.
    p_above, q_above = np.cumsum(p), np.cumsum(q)
    next_loss = np.append(loss[1:], -np.inf)
    for p_sum, q_sum, kink in zip(p_above, q_above, next_loss, strict=True):
        if p_sum <= delta:
            continue
        if q_sum == 0.0:
            return math.inf
        root = math.log((p_sum - delta) / q_sum)
        if root >= kink:
            return max(root, 0.0)
    return 0.0


def hockey_stick_density(
    left: Density, right: Density, epsilon: float, *, breakpoints: Sequence[float]
) -> float:
    """Hockey-stick divergence of two densities on the real line, by adaptive quadrature.

    Parameters
    ----------
    left, right : callable
        Densities, ``float -> float``.
    epsilon : float
        Finite, >= 0.
    breakpoints : sequence of float
        Finite, increasing; between two of them both densities are smooth. The integral runs from
        -inf over all of them to inf, so they must surround the mass.

    Returns
    -------
    float
        Accurate to about 1e-10.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> h = hockey_stick_density(norm(0, 1).pdf, norm(1, 1).pdf, 0.0, breakpoints=[0.0, 0.5, 1.0])
    >>> round(h, 6)  # total variation distance of two unit Gaussians one apart
    0.382925
    """
    epsilon = _validate.nonnegative(epsilon=epsilon)
    points = [float(x) for x in breakpoints]
    if not points or not all(map(math.isfinite, points)) or sorted(set(points)) != points:
        raise ArgumentError(
            f"breakpoints must be finite, strictly increasing and not empty, got {breakpoints!r}"
        )

    factor = math.exp(min(epsilon, 700.0))

    def excess(x: float) -> float:
        return max(left(x) - factor * right(x), 0.0)

    edges = [-math.inf, *points, math.inf]
    pieces = [
        integrate.quad(excess, low, high, epsabs=1e-12, epsrel=1e-10, limit=400)[0]
        for low, high in itertools.pairwise(edges)
    ]
    return float(min(sum(pieces), 1.0))


def hockey_stick_density_inverse(
    left: Density, right: Density, delta: float, *, breakpoints: Sequence[float]
) -> float:
    """Smallest epsilon >= 0 at which the divergence of two densities is at most `delta`.

    Parameters as in :func:`hockey_stick_density`; `delta` in (0, 1], because the divergence is
    known up to about 1e-10 only. ``inf`` when it stays above `delta` up to epsilon = 100.

    Examples
    --------
    >>> from scipy.stats import laplace
    >>> points = [0.0, 0.5, 1.0]
    >>> epsilon = hockey_stick_density_inverse(
    ...     laplace(0, 1).pdf, laplace(1, 1).pdf, 0.1, breakpoints=points
    ... )
    >>> round(epsilon, 4)  # 1 + 2 log(1 - 0.1)
    0.7893
    """
    delta = _validate.delta(delta=delta)
    if delta == 0.0:
        raise ArgumentError("delta must be a number in (0, 1], got 0.0")

    def excess(epsilon: float) -> float:
        return hockey_stick_density(left, right, epsilon, breakpoints=breakpoints) - delta

    if excess(0.0) <= 0:
        return 0.0
    high = 1.0
    while excess(high) > 0:
        high *= 2
        if high > 100:
            return math.inf
    return float(optimize.brentq(excess, 0.0, high, xtol=1e-12))


def renyi_divergence(left: ArrayLike, right: ArrayLike, alpha: float) -> float:
    """Renyi divergence of order `alpha` of two probability mass functions, left over right.

    Parameters
    ----------
    left, right : array_like, shape (k,)
        Probabilities of the same k outcomes; each sums to 1.
    alpha : float
        Order, finite and > 1.

    Returns
    -------
    float
        In nats; ``inf`` when the left side has an outcome that the right side lacks.

    Examples
    --------
    >>> round(renyi_divergence([0.75, 0.25], [0.25, 0.75], 2.0), 6)  # log(9/4 + 1/12)
    0.847298
    """
    p, q = _pmfs(left, right)
    if _validate.positive(alpha=alpha) <= 1:
        raise ArgumentError(f"alpha must be a finite number > 1, got {alpha!r}")
    if np.any((q == 0) & (p > 0)):
        return math.inf
    keep = p > 0
    log_terms = alpha * np.log(p[keep]) + (1 - alpha) * np.log(q[keep])
    return float(np.logaddexp.reduce(log_terms) / (alpha - 1))


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
    >>> bounds = RateBounds.from_counts(Counts(500, 1000, 184, 1000), "left", 0.05, Aim(delta=0.0))
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
        cls, counts: Counts, likelier: str, failure_prob: float, aim: Aim
    ) -> RateBounds:
        """Bound the two rates jointly; see :func:`dpaudit.bounds.joint_region`.

        Parameters
        ----------
        counts : Counts
            Of draws that had no part in choosing the event.
        likelier : {"left", "right"}
            The side on which the event was *declared* to be likelier, before these draws.
        failure_prob : float
            Strictly between 0 and 1.
        aim : Aim
            Where the bound should be sharpest, declared before these draws.
        """
        _validate.choice(("left", "right"), likelier=likelier)
        ordered = counts if likelier == "left" else counts.swapped()
        return cls(*joint_region(ordered, failure_prob, aim), failure_prob)

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
        q = np.minimum(q, p)  # equal laws are the least that a corner with p < q leaves possible
        return float(max(_binary_renyi(p, q, alpha).min(), _binary_renyi(q, p, alpha).min()))

    def upper_tradeoff(self, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Upper bound of the trade-off curve: the least type II errors at type I errors `alphas`.

        Of the tests "the event fired" and "it did not", with the sides in either role, mixed with
        a coin where that is better; a convex curve from (0, 1) to (1, 0) through (q, 1 - p).
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
    """Renyi divergence of two Bernoulli laws, elementwise."""
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
    factor = np.exp(np.minimum(np.asarray(epsilon, dtype=float), 700.0))
    return p - factor * q, (1 - q) - factor * (1 - p)


def _pmfs(left: ArrayLike, right: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    p, q = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
    if p.ndim != 1 or p.shape != q.shape or p.size == 0:
        raise ArgumentError(
            "left and right must be one-dimensional, not empty and of one length, "
            f"got shapes {p.shape} and {q.shape}"
        )
    for name, pmf in (("left", p), ("right", q)):
        if not np.all(np.isfinite(pmf)) or np.any(pmf < 0) or abs(pmf.sum() - 1) > 1e-9:
            raise ArgumentError(
                f"{name} must hold probabilities >= 0 that sum to 1, got {pmf!r} "
                f"with sum {pmf.sum()!r}"
            )
    return p / p.sum(), q / q.sum()
