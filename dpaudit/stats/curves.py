"""Certified bounds of whole curves from one audit: trade-off, Gaussian DP and Renyi divergences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit._json import Nonnegative, Probability
from dpaudit._validate import same_length
from dpaudit.claims import GaussianDP
from dpaudit.stats.rates import RateBounds

Floats = NDArray[np.float64]

_LARGEST_MU = 60.0  # beyond this epsilon, the rates underflow

ORDERS = (1.5, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)

_TAIL = np.geomspace(1e-6, 0.1, 31)
TYPE_I_ERRORS = np.concatenate([[0.0], _TAIL, np.linspace(0.12, 0.88, 39), 1 - _TAIL[::-1], [1.0]])
"""Type I errors at which trade-off curves are evaluated."""


@dataclass(frozen=True)
class Curves:
    """Certified bounds in terms other than (epsilon, delta).

    All these bounds hold together.

    Parameters
    ----------
    alpha : tuple of float
        Type I errors, increasing from 0 to 1.
    certified_beta : tuple of float
        Upper band of the trade-off curve. f-DP cannot hold for a convex f that lies above the band
        at any point. The band combines the certified bounds of tests with either role of the two
        datasets. If the roles of the datasets are fixed, the type II errors may be larger than this
        band.
    claimed_beta : tuple of float
        The trade-off curve that the claim promises. The claim is refuted if this curve lies above
        the band at any point.
    certified_mu : float
        The mechanism is not mu-Gaussian-DP for any mu below this value.
    order : tuple of float
        Orders of Renyi divergences.
    certified_renyi : tuple of float
        Lower bounds of the Renyi divergences of these orders, in nats.
    conditional_epsilon : float or None
        *Conditional, not certified*: a lower bound of epsilon at the claimed delta if the trade-off
        curve is Gaussian. The bound is the epsilon that follows from the certified mu. The bound is
        None at delta = 0, where it would be infinite. The bound is also None if the epsilon that is
        certified without the condition is at least as large.
    """

    alpha: tuple[Probability, ...] = field(repr=False)
    certified_beta: tuple[Probability, ...] = field(repr=False)
    claimed_beta: tuple[Probability, ...] = field(repr=False)
    certified_mu: Nonnegative
    order: tuple[float, ...]
    certified_renyi: tuple[float, ...]
    conditional_epsilon: float | None

    def __post_init__(self) -> None:
        same_length(self, "alpha", "certified_beta", "claimed_beta")
        same_length(self, "order", "certified_renyi")
        if (self.alpha[:1], self.alpha[-1:]) != ((0.0,), (1.0,)):
            raise ValueError("alpha must increase from 0 to 1")


def curves_of(
    bounds: Sequence[RateBounds],
    epsilons: Floats,
    claimed_deltas: Floats,
    delta: float,
    certified: float = 0.0,
    *,
    least_mu: float = 0.0,
) -> Curves:
    """Derive the curves from bounds that hold together.

    Parameters
    ----------
    bounds : sequence of RateBounds
        At least one bound.
    epsilons, claimed_deltas : ndarray, shape (e,)
        The claimed privacy profile on a grid.
    delta : float
        Delta at which the conditional epsilon is computed.
    certified : float, optional
        Certified epsilon at this delta. A conditional epsilon that is no larger than this epsilon
        is omitted. The default is 0.
    least_mu : float, optional
        A certified mu that holds together with the bounds. The default is 0.
    """
    bands = [b.upper_tradeoff(TYPE_I_ERRORS) for b in bounds]
    mu = max(least_mu, *(b.lower_mu() for b in bounds))
    conditional = _gaussian_epsilon(mu, delta) if delta > 0 else 0.0
    return Curves(
        alpha=tuple(TYPE_I_ERRORS.tolist()),
        certified_beta=tuple(_convex(TYPE_I_ERRORS, np.min(bands, axis=0)).tolist()),
        claimed_beta=tuple(tradeoff_of_profile(epsilons, claimed_deltas, TYPE_I_ERRORS).tolist()),
        certified_mu=mu,
        order=ORDERS,
        certified_renyi=tuple(max(b.lower_renyi(a) for b in bounds) for a in ORDERS),
        conditional_epsilon=conditional if conditional > certified else None,
    )


def tradeoff_of_profile(epsilons: ArrayLike, deltas: ArrayLike, alphas: Floats) -> Floats:
    """Return the trade-off curve of a privacy profile that is known at some epsilons.

    The curve is the pointwise maximum of ``max(0, 1 - delta - e^epsilon alpha, e^-epsilon (1 -
    delta - alpha))``, by the duality of profiles and f-DP of Dong, Roth and Su (2022).

    Examples
    --------
    >>> tradeoff_of_profile([np.log(3.0)], [0.0], np.array([0.0, 0.25, 1.0])).round(6).tolist()
    [1.0, 0.25, 0.0]
    """
    epsilon, delta = (np.asarray(x, dtype=float)[:, None] for x in (epsilons, deltas))
    factor = np.exp(np.minimum(epsilon, 700.0))
    lines = np.maximum(1 - delta - factor * alphas, (1 - delta - alphas) / factor)
    return np.asarray(np.maximum(lines.max(axis=0), 0.0))


def _convex(x: Floats, y: Floats) -> Floats:
    """Return the lower convex envelope on the grid.

    Every convex curve below the values `y` lies below this envelope.
    """
    hull: list[int] = []
    for i in range(len(x)):
        while len(hull) >= 2:
            a, b = hull[-2], hull[-1]
            if (y[b] - y[a]) * (x[i] - x[a]) < (y[i] - y[a]) * (x[b] - x[a]):
                break
            hull.pop()
        hull.append(i)
    return np.asarray(np.interp(x, x[hull], y[hull]))


def _gaussian_epsilon(mu: float, delta: float) -> float:
    if not 0 < mu < _LARGEST_MU:
        return 0.0 if mu == 0 else math.inf
    return GaussianDP(mu).epsilon(delta)
