r"""Between which numbers of canaries one run can refute a claim at all: where a search may look.

Guesses are right independently, at rates r(s) that fall with their share s of the ranks, as
:mod:`dpaudit.engine.one_run_planning` takes them to be. The bounds of `stats.one_run` and
`stats.one_run_walk` are at least the probability of any law of right guesses that keeps the budget,

    E sum_j (q_j - e^t (1 - q_j))_+ <= b(t) = m delta(t), half of it for one side, for every t of T,

q_j being the rate of guess j given those before (weak duality; the walk's proof asks no more). So a
law that keeps it crosses the heights of the test with probability failure_prob at most, and a look
of share w of failure_prob refutes by itself with probability w failure_prob at most. Two such laws:

*Few canaries.* Guesses right at rates min(r(s), u(s)), where u(s) is expit(epsilon) for a point,
and for a curve the rate of Gaussian scores mu apart whose delta(t) is at most the claimed one:
theirs sums up to that, m times, and halved for one side. They cross with probability failure_prob
at most, and those of rates r with probability `power` only if kl(power, failure_prob) <= m D, with
D the mean over s of kl(r, min(r, u)): data processing. Means over stretches of ranks only make D
smaller (joint convexity).

*Many canaries.* At a look at n of m canaries, of share w: with probability p = 2 w failure_prob all
guesses are right at rate v, else at 1/2, where p (n/m) (v - e^t (1 - v))_+ <= b(t) / m for every t.
As Bin(n, v) is at least floor(n v) with probability 1/2, floor(n v) right guesses do not refute. If
the mean rate of the first n guesses is below v, then more are right with probability exp(-n kl(v,
mean)) at most (Hoeffding 1963), which falls with m, as n / m and v stay what they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit.claims import Claim
from dpaudit.stats import Allowance

Floats = NDArray[np.float64]
Beyond = Callable[[float], tuple[float, float]]

_FAR = 40.0
_CELLS = 600
_HEIGHTS = 1500
_SLACK = 1.001  # in p: what refutes has probability w failure_prob or less


def right_by_share(beyond: Beyond, shares: Floats, one_sided: bool) -> Floats:
    """Return the share of canaries that is guessed rightly, when such shares are guessed."""
    t = np.linspace(-_FAR if one_sided else 0.0, _FAR, _HEIGHTS)
    t = np.unique(np.concatenate([t, np.linspace(t[0] / 5, 8.0, _HEIGHTS)]))[::-1]
    right, wrong = np.array([beyond(float(x)) for x in t]).T
    part = 0.5 if one_sided else 1.0
    total = np.concatenate([[0.0], part * (right + wrong)])
    return np.asarray(np.interp(shares, total, np.concatenate([[0.0], part * right])))


def least_canaries(
    claim: Claim, beyond: Beyond, *, one_sided: bool, power: float, failure_prob: float
) -> float:
    """Return a number of canaries below which the claim is refuted less often than `power`.

    Parameters
    ----------
    claim : Claim
        To be refuted.
    beyond : callable
        Chances that a score of either kind is more than t beyond the middle.
    one_sided : bool
        Whether all guesses are "included".
    power, failure_prob : float
        In (0, 1).

    Returns
    -------
    float
        ``inf`` where no number does.
    """
    if power <= failure_prob:
        return 0.0
    shares = np.concatenate([[0.0], np.geomspace(1e-7, 1.0, _CELLS)])
    widths = np.diff(shares)
    rates = np.clip(np.diff(right_by_share(beyond, shares, one_sided)) / widths, 0.0, 1.0)
    if claim.point is not None:
        allowed = np.full(_CELLS, special.expit(claim.point[0]))
    else:
        mu = _gaussian_within(claim)

        def of_claim(t: float) -> tuple[float, float]:
            return float(special.ndtr(mu / 2 - t)), float(special.ndtr(-mu / 2 - t))

        allowed = np.diff(right_by_share(of_claim, shares, one_sided)) / widths
    # Rates fall: those at the ends of a cell are at most, and at least, those of its neighbours.
    above = np.concatenate([[1.0], rates[:-1]])
    below = np.minimum(np.append(allowed[1:], allowed[-1]), above)
    most = float((widths * _kl(above, below))[above > below * (1 + 1e-9)].sum())
    needed = float(_kl(np.array(power), np.array(failure_prob)))
    return needed / most if most > 0 else math.inf


def most_canaries(
    claim: Claim,
    beyond: Beyond,
    parts: dict[float, float],
    *,
    one_sided: bool,
    power: float,
    failure_prob: float,
    start: int,
    limit: int,
) -> int:
    """Return a number of canaries from which on the claim is refuted less often than `power`.

    Parameters
    ----------
    claim, beyond, one_sided, power, failure_prob
        As in :func:`least_canaries`.
    parts : dict of float to float
        Shares of the canaries that are looked at, from `start` on, and their shares of
        failure_prob.
    start, limit : int
        Where to begin, and the largest number of interest.
    """
    unit = Allowance.of_claim(claim, 1, one_sided=one_sided)
    m = start
    while m < limit:
        total = 0.0
        for part, weight in parts.items():
            told = 2 * weight * failure_prob * _SLACK * part
            v = float(((unit.budgets / told + unit.slopes) / (1 + unit.slopes)).min())
            if v >= 1.0:
                continue
            share = part - 1 / m  # numbers of guesses are rounded down
            mean = float(right_by_share(beyond, np.array([share]), one_sided)[0]) / share
            if mean >= v:
                return limit
            n = math.floor(share * m)
            total += math.exp(-n * float(_kl(np.array(v), np.array(mean))))
        if total < power:
            return m
        m *= 2
    return limit


def _gaussian_within(claim: Claim) -> float:
    """Return mu of Gaussian DP whose delta is at most the claimed one, wherever a bound looks."""
    unit = Allowance.of_claim(claim, 1)
    t = np.log(unit.slopes)
    low, high = 0.0, _FAR
    while high - low > 1e-6:
        mu = (low + high) / 2
        delta = special.ndtr(mu / 2 - t / mu) - unit.slopes * special.ndtr(-mu / 2 - t / mu)
        low, high = (mu, high) if np.all(delta <= unit.budgets) else (low, mu)
    return low


def _kl(a: Floats, b: Floats) -> Floats:
    """Divergence of coins of rates a and b."""
    return np.asarray(special.rel_entr(a, b) + special.rel_entr(1 - a, 1 - b))
