"""Hockey-stick divergence and its inverse, from pmfs, densities and counts.

The hockey-stick divergence of order ``e^epsilon`` is ``H(P || Q) = sup_S P(S) - e^epsilon Q(S) =
integral of max(p - e^epsilon q, 0)``. A mechanism is (epsilon, delta)-DP if and only if this
divergence is at most delta for all neighbours, in both directions. From pmfs and densities, the
divergence is *computed*. From counts, the divergence is *certified from below*.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dpaudit import _validate
from dpaudit.errors import ArgumentError

Density = Callable[[float], float]

_LARGEST_EXPONENT = 709.0  # about the largest exponent whose exponential is a double


def hockey_stick(left: ArrayLike, right: ArrayLike, epsilon: float) -> float:
    """Return the hockey-stick divergence of the pmf `left` over the pmf `right`.

    Parameters
    ----------
    left, right : array_like, shape (k,)
        Probabilities of the same k outcomes. The probabilities of each side sum to 1.
    epsilon : float
        Epsilon, finite and >= 0.

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
        scaled_q = np.exp(epsilon + np.log(q))  # may be inf if q is far from 0
    return float(np.maximum(p - scaled_q, 0.0).sum())


def hockey_stick_inverse(left: ArrayLike, right: ArrayLike, delta: float) -> float:
    """Return the smallest epsilon >= 0 at which the divergence of two pmfs is at most delta.

    Returns
    -------
    float
        The value is exact up to rounding. The value is ``inf`` if the left side gives more than
        `delta` to outcomes that have probability 0 on the right side.

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
    # The divergence is piecewise linear in e^epsilon, with its kinks at the privacy losses. Start
    # at the largest loss, go down, and stop when the divergence at the next kink exceeds delta.
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
    """Return the hockey-stick divergence of two densities on the real line.

    The integral is computed by adaptive quadrature.

    Parameters
    ----------
    left, right : callable
        Densities as functions ``float -> float``.
    epsilon : float
        Epsilon, finite and >= 0.
    breakpoints : sequence of float
        Finite and increasing. Between two neighbouring points, both densities are smooth. The
        integral runs from -inf through all these points to inf, so the points must surround the
        probability mass.

    Returns
    -------
    float
        The result is accurate to about 1e-10.

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

    factor = math.exp(epsilon) if epsilon < _LARGEST_EXPONENT else math.inf

    def excess(x: float) -> float:
        p, q = left(x), right(x)
        return max(p - factor * q, 0.0) if q > 0 else max(p, 0.0)

    edges = [-math.inf, *points, math.inf]
    pieces = [
        scipy.integrate.quad(excess, low, high, epsabs=1e-12, epsrel=1e-10, limit=400)[0]
        for low, high in itertools.pairwise(edges)
    ]
    return float(min(sum(pieces), 1.0))


def renyi_divergence(left: ArrayLike, right: ArrayLike, alpha: float) -> float:
    """Return the Renyi divergence of order `alpha` of the pmf `left` over the pmf `right`.

    Parameters
    ----------
    left, right : array_like, shape (k,)
        Probabilities of the same k outcomes. The probabilities of each side sum to 1.
    alpha : float
        Order of the divergence, finite and > 1.

    Returns
    -------
    float
        The divergence in nats. The value is ``inf`` if the left side has an outcome that the right
        side lacks.

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


def _pmfs(left: ArrayLike, right: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    p, q = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
    if p.ndim != 1 or p.shape != q.shape or p.size == 0:
        raise ArgumentError(
            "left and right must be nonempty one-dimensional arrays of equal length, got "
            f"shapes {p.shape} and {q.shape}"
        )
    for name, pmf in (("left", p), ("right", q)):
        if not np.all(np.isfinite(pmf)) or np.any(pmf < 0) or abs(pmf.sum() - 1) > 1e-9:
            raise ArgumentError(
                f"{name} must hold probabilities >= 0 that sum to 1, got {pmf!r} "
                f"with sum {pmf.sum()!r}"
            )
    return p / p.sum(), q / q.sum()
