"""The order of two binomial counts by evidence against privacy, on which joint regions rest.

S(a, b) is the largest target at which the likelihood-ratio test of ``p <= e^epsilon q + delta``
still rejects a of n hits on one side and b of m on the other; see :mod:`dpaudit.stats.joint`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from dpaudit.stats.target import Target

Floats = NDArray[np.float64]

BLOCK = 0.05
"""Width of a block of b, in standard deviations."""

REACH = 4.0
"""Resolved beyond the test's own quantile, in standard deviations of b."""

_LEAST_EVIDENCE = 0.05  # at levels near 1/2 the ordering would degenerate


def evidence_of(alpha: float) -> float:
    """Evidence at which outcomes are ordered; any fixed number is sound, z^2 / 2 is sharp."""
    return max(float(special.ndtri(alpha)) ** 2 / 2, _LEAST_EVIDENCE)


def _kl(x: float, y: float) -> float:
    """Kullback-Leibler divergence of two Bernoulli distributions."""
    return float(special.rel_entr(x, y) + special.rel_entr(1 - x, 1 - y))


def divergences(x: Floats, y: Floats) -> Floats:
    """Kullback-Leibler divergences of Bernoulli distributions, by logarithms: to find a place."""
    tiny = 1e-300
    return np.asarray(
        x * (np.log(np.maximum(x, tiny)) - np.log(np.maximum(y, tiny)))
        + (1 - x) * (np.log(np.maximum(1 - x, tiny)) - np.log(np.maximum(1 - y, tiny)))
    )


def null_at(
    x: float, n: int, y: float, m: int, evidence: float, target: Target
) -> tuple[float, float, float] | None:
    """Return (e^epsilon, delta, q) of the boundary point at which the evidence is just reached.

    The chain of nested nulls that orders the outcomes: for a given delta, e^epsilon grows from 0;
    for a given epsilon, e^epsilon grows from 0 at delta = 0 and then delta grows from 0.
    """

    def fit(theta: float, delta: float) -> tuple[float, float]:
        """Evidence against p <= theta q + delta, and the q of the closest point of the null."""
        if x <= theta * y + delta:
            return 0.0, y
        low, high = y, min((x - delta) / theta, 1.0)

        def slope(q: float) -> float:
            p = theta * q + delta
            pull = 1 / p if x == 1 else (x - p) / (p * (1 - p))
            return m * (q - y) / (q * (1 - q)) - n * theta * pull

        inner_low, inner_high = low + 1e-13 * (high - low), high - 1e-13 * (high - low)
        if not 0 < inner_low < inner_high < 1 or slope(inner_low) >= 0:
            q = low
        elif slope(inner_high) <= 0:
            q = high
        else:
            q = float(optimize.brentq(slope, inner_low, inner_high, xtol=1e-300, rtol=1e-14))
        return n * _kl(x, min(theta * q + delta, 1.0)) + m * _kl(y, q), q

    def root(excess: Callable[[float], float], low: float, high: float) -> float:
        return float(optimize.brentq(excess, low, high, xtol=1e-14, rtol=1e-13))

    delta = 0.0 if target.delta is None else target.delta
    if target.epsilon is not None:
        theta = math.exp(min(target.epsilon, 600.0))
        if fit(theta, 0.0)[0] >= evidence:
            top = max(x - theta * y, 0.0)
            delta = root(lambda d: fit(theta, d)[0] - evidence, 0.0, top)
            return theta, delta, fit(theta, delta)[1]
    if x <= delta or n * _kl(x, delta) <= evidence:
        return None  # even p <= delta is not rejected, whatever q
    low, high = -20.0, 20.0
    while fit(math.exp(low), delta)[0] <= evidence:
        low -= 20.0
        if low < -600:
            return None
    while fit(math.exp(high), delta)[0] >= evidence:
        high += 20.0
    theta = math.exp(root(lambda t: fit(math.exp(t), delta)[0] - evidence, low, high))
    return theta, delta, fit(theta, delta)[1]


@functools.lru_cache(maxsize=8)  # plans ask for the power of many rates at one boundary
def critical_counts(
    n: int,
    m: int,
    theta: float,
    delta: float,
    evidence: float,
    spread: tuple[float, float],
) -> tuple[Floats, Floats]:
    """Cut 0..m into blocks: the first b of each, and the least a that lies in R beside it.

    Both read-only.
    """
    low, high = np.arcsin(np.sqrt(np.clip(spread, 0.0, 1.0)))
    unit = 0.5 / math.sqrt(m)
    reach = (REACH + math.sqrt(2 * evidence)) * unit
    angles = np.arange(max(low - reach, 0.0), min(high + reach, math.pi / 2), BLOCK * unit)
    first = np.unique(np.concatenate([[0.0], np.ceil(m * np.sin(angles) ** 2)]))
    y = first / m
    # On the boundary of R, where the evidence is just reached, the closest point q of the null
    # determines a: solve for q, between b / m and the q at which a reaches n.
    below, above = y.copy(), np.full_like(y, min((1 - delta) / theta, 1.0))
    for _ in range(64):
        q = (below + above) / 2
        x, found = _stationary(q, y, n, m, theta, delta)
        too_much = (x > 1) | (found > evidence)
        above = np.where(too_much, q, above)
        below = np.where(too_much, below, q)
    x, found = _stationary(below, y, n, m, theta, delta)
    # Not even a = n is enough, and not by rounding: when in doubt, an outcome stays in R.
    x = np.where(found < evidence * (1 - 1e-7) - 1e-14 * (n + m), math.inf, x)
    # The search cannot see closest points with q = 0 (beside b = 0) or q = 1 (beside b = m).
    corner = min(delta + delta * (1 - delta) * m / (n * theta), 1.0)
    if delta > 0 and n * _kl(corner, delta) > evidence:
        x[0] = _share_with_evidence(delta, corner, evidence / n)
    if y[-1] == 1:
        p = min(theta + delta, 1.0)
        enough = p < 1 and n * _kl(1.0, p) > evidence
        x[-1] = _share_with_evidence(p, 1.0, evidence / n) if enough else math.inf
    # Outcomes within rounding of the boundary count as inside, which is the safe side.
    critical = np.minimum(np.ceil(n * x - 1e-9 * n - 1e-7), n + 1.0)
    critical = np.maximum.accumulate(np.maximum(critical, 0.0))
    first.flags.writeable = critical.flags.writeable = False
    return first, critical


def _share_with_evidence(p: float, high: float, evidence: float) -> float:
    """Share x between p and `high` with ``kl(x, p) = evidence``."""
    return float(optimize.brentq(lambda x: _kl(x, p) - evidence, p, high))


def _stationary(
    q: Floats, y: Floats, n: int, m: int, theta: float, delta: float
) -> tuple[Floats, Floats]:
    """Return the share x to which (theta q + delta, q) is the closest null point, and its evidence.

    ``n theta (x - p) / (p (1 - p)) = m (q - y) / (q (1 - q))`` is linear in x.
    """
    p = np.minimum(theta * q + delta, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        x = p + p * (1 - p) * m * (q - y) / (n * theta * q * (1 - q))
    x = np.where(np.isnan(x), p, x)
    inside = np.minimum(x, 1.0)
    evidence = n * (special.rel_entr(inside, p) + special.rel_entr(1 - inside, 1 - p))
    evidence += m * (special.rel_entr(y, q) + special.rel_entr(1 - y, 1 - q))
    return x, evidence
