"""Joint confidence region of the rates of one event on two sides, from two binomial counts.

Suppose that an event fired in ``a ~ Bin(n, p)`` of n draws on its likelier side, and in ``b ~
Bin(m, q)`` of m draws on the other side. Two Clopper-Pearson bounds at half the failure probability
allow for bad luck in both counts at the same time. A joint test needs to allow only for bad luck in
the difference of the counts.

**The bound.** Order all outcomes (a, b) by their evidence with respect to a *target*. A target is
an epsilon at a given delta, or a delta at a given epsilon. The order uses S(a, b), the largest
target value at which the likelihood-ratio test of "p <= e^epsilon q + delta" rejects. The test
rejects if ``inf_{null} n kl(a/n, p) + m kl(b/m, q) >= z^2 / 2``. For an observed outcome, let R be
the set of all outcomes whose S is at least the S of the observed outcome. Then (p, q) is *excluded*
if P_{p,q}(R) <= alpha (Buehler 1957). The sets R are nested, so the true rates, whatever they are,
are excluded with probability at most alpha. This statement is not asymptotic. The choice of S only
determines how tight the region is. With this S, P(R) is nearly constant along the boundary of the
null hypothesis.

**The nuisance parameter.** The curve P_{p,q}(R) = alpha need not be followed over all rates. A
confidence interval for p or for q shortens this curve (Berger and Boos 1994). The counts decide
which of the two intervals is used, so failure probability is spent on both intervals. The two
intervals together get alpha / 200, and the test gets the rest.

**Between grid points.** P_{p,q}(R) increases with p and decreases with q. The reason is that if R
contains (a, b), R also contains (a + 1, b) and (a, b - 1). Use the natural parameters eta = (logit
p, logit q), and let A be the log-partition function. Then log P_eta(R) + A(eta) is the logarithm of
a Laplace transform, and is therefore convex. Consider two points of the curve, and the chord
between them in eta. On the chord, log P exceeds the larger of its two end values by at most the
convexity gap of A, which is ``(n v_p d_p^2 + m v_q d_q^2) / 8``. Here d is the distance between the
ends in each coordinate, and v is the largest p (1 - p) on the chord. The points are computed for a
level that is lower than the required level by the allowed gap. Where the convexity gap exceeds the
allowed gap, monotonicity alone bounds the curve by a corner.

**Large counts.** Neighbouring values of b are pooled into blocks. All values of a block get the
critical `a` of the first value of the block, so that P(R) is bounded from above. The width of a
block is a twentieth of a standard deviation where most of P(R) lies, and much larger elsewhere.

References
----------
Buehler (1957), "Confidence intervals for the product of two binomial parameters".
Berger and Boos (1994), "P values maximized over a confidence set for the nuisance parameter".
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import special

from dpaudit import _validate
from dpaudit.errors import ArgumentError

# --- Clopper-Pearson bounds of one proportion, and the counts of one event on two sides --------

_LEVEL = 1 - 1e-9
"""Factor of the failure probability for which bounds of a proportion are computed.

At 1e-30, the inverse of the incomplete beta function is wrong by 1e-11 of the failure probability.
"""

_OUTWARDS = 8 * np.finfo(float).eps
"""Relative distance by which bounds of a proportion are moved outwards, beyond any rounding error.

The nearest number to a bound may be on its wrong side. Close to 1, the tail at that number may
exceed the failure probability by a part in ten thousand.
"""


@dataclass(frozen=True)
class Counts:
    """Number of draws in which one event fired, on either side.

    Parameters
    ----------
    hits_left, hits_right : int
        Number of draws in which the event fired, from 0 to the number of draws of the side.
    draws_left, draws_right : int
        Number of draws of each side, at least 1.

    Raises
    ------
    TypeError
        If a count is not an integer.
    ValueError
        If a count is out of range.
    """

    hits_left: int
    draws_left: int
    hits_right: int
    draws_right: int

    def __post_init__(self) -> None:
        for side in ("left", "right"):
            hits, draws = getattr(self, f"hits_{side}"), getattr(self, f"draws_{side}")
            _check_counts(hits, draws, f"hits_{side}", f"draws_{side}")

    def swapped(self) -> Counts:
        """Return the counts with the two sides exchanged."""
        return Counts(self.hits_right, self.draws_right, self.hits_left, self.draws_left)

    def complement(self) -> Counts:
        """Return the counts of the complementary event."""
        return Counts(
            self.draws_left - self.hits_left,
            self.draws_left,
            self.draws_right - self.hits_right,
            self.draws_right,
        )


def lower_proportion(successes: int, trials: int, failure_prob: float) -> float:
    """Return the lower Clopper-Pearson bound of a success probability.

    The bound exceeds the true probability with probability at most `failure_prob`, for every true
    value and every number of trials.

    Parameters
    ----------
    successes : int
        Number of successes, 0 <= successes <= trials.
    trials : int
        Number of independent trials, >= 1.
    failure_prob : float
        Probability of error, strictly between 0 and 1.

    Returns
    -------
    float
        The bound, in [0, 1]. The bound is 0 if and only if there is no success.

    References
    ----------
    Clopper and Pearson (1934), "The use of confidence or fiducial limits".

    Examples
    --------
    >>> round(lower_proportion(10, 10, 0.05), 6)  # 0.05 ** (1 / 10)
    0.741134
    """
    _check_counts(successes, trials, "successes", "trials")
    alpha = _validate.failure_prob(failure_prob=failure_prob)
    return float(lower_rates(successes, trials, alpha))


def lower_rates(successes: Any, trials: Any, failure_prob: float) -> Any:
    """Return Clopper-Pearson lower bounds for arrays of counts, without checking the arguments.

    Planning calls this function with expected counts, which are fractional. Certification uses the
    functions with checked arguments.
    """
    a = np.asarray(successes, dtype=float)
    b = np.asarray(trials, dtype=float) - a + 1.0
    bound = special.betaincinv(np.maximum(a, 1e-300), b, failure_prob * _LEVEL) * (1 - _OUTWARDS)
    return np.where(a > 0, bound, 0.0)


def upper_rates(successes: Any, trials: Any, failure_prob: float) -> Any:
    """Return Clopper-Pearson upper bounds for arrays of counts, without checking the arguments."""
    a = np.asarray(successes, dtype=float) + 1.0
    b = np.asarray(trials, dtype=float) - a + 1.0
    bound = special.betainccinv(a, np.maximum(b, 1e-300), failure_prob * _LEVEL) * (1 + _OUTWARDS)
    return np.where(b > 0, np.minimum(bound, 1.0), 1.0)


def _check_counts(successes: Any, trials: Any, name: str, trials_name: str) -> None:
    _validate.integer(1, **{trials_name: trials})
    _validate.integer(0, **{name: successes})
    if successes > trials:
        raise ArgumentError(
            f"{name} must be an integer from 0 to {trials_name} = {trials}, got {successes!r}"
        )


# --- the target of a joint bound ---------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """Point at which a joint bound is sharpest: an epsilon at a given delta, or the reverse.

    Exactly one of epsilon and delta is given. With any target, the region holds for every epsilon
    and delta. The target must be fixed before the counts are known.

    Examples
    --------
    >>> Target(delta=1e-6)
    Target(epsilon=None, delta=1e-06)
    """

    epsilon: float | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.delta is None):
            raise ArgumentError(
                "exactly one of epsilon and delta must be given, got "
                f"epsilon={self.epsilon!r} and delta={self.delta!r}"
            )
        if self.epsilon is not None:
            _validate.nonnegative(epsilon=self.epsilon)
        if self.delta is not None:
            _validate.delta(delta=self.delta)


# --- the order of two binomial counts by evidence against privacy, for joint regions ------------


Floats = NDArray[np.float64]

BLOCK = 0.05
"""Width of a block of b, in standard deviations."""

WIDTH = 4.0
"""Range resolved beyond the test's own quantile, in standard deviations of b."""

_LEAST_EVIDENCE = 0.05  # at levels near 1/2, the order would degenerate


def evidence_of(alpha: float) -> float:
    """Return the evidence at which the test that orders the outcomes rejects.

    Any fixed number is valid, and z^2 / 2 gives sharp bounds.
    """
    return max(float(special.ndtri(alpha)) ** 2 / 2, _LEAST_EVIDENCE)


def _kl(x: float, y: float) -> float:
    """Return the Kullback-Leibler divergence of two Bernoulli distributions."""
    return float(special.rel_entr(x, y) + special.rel_entr(1 - x, 1 - y))


def divergences(x: Floats, y: Floats) -> Floats:
    """Return Kullback-Leibler divergences of Bernoulli distributions, only to locate a point."""
    tiny = 1e-300
    return np.asarray(
        x * (np.log(np.maximum(x, tiny)) - np.log(np.maximum(y, tiny)))
        + (1 - x) * (np.log(np.maximum(1 - x, tiny)) - np.log(np.maximum(1 - y, tiny)))
    )


def null_at(
    x: float, n: int, y: float, m: int, evidence: float, target: Target
) -> tuple[float, float, float] | None:
    """Return (e^epsilon, delta, q) of the boundary point whose evidence equals the threshold.

    The outcomes are ordered by a chain of nested null hypotheses. If delta is given, e^epsilon
    increases from 0. If epsilon is given, e^epsilon first increases from 0 at delta = 0, and then
    delta increases from 0.
    """

    def fit(theta: float, delta: float) -> tuple[float, float]:
        """Return the evidence against p <= theta q + delta, and q of the closest null point."""
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
            q = float(scipy.optimize.brentq(slope, inner_low, inner_high, xtol=1e-300, rtol=1e-14))
        return n * _kl(x, min(theta * q + delta, 1.0)) + m * _kl(y, q), q

    def root(excess: Callable[[float], float], low: float, high: float) -> float:
        return float(scipy.optimize.brentq(excess, low, high, xtol=1e-14, rtol=1e-13))

    delta = 0.0 if target.delta is None else target.delta
    if target.epsilon is not None:
        theta = math.exp(min(target.epsilon, 600.0))
        if fit(theta, 0.0)[0] >= evidence:
            top = max(x - theta * y, 0.0)
            delta = root(lambda d: fit(theta, d)[0] - evidence, 0.0, top)
            return theta, delta, fit(theta, delta)[1]
    if x <= delta or n * _kl(x, delta) <= evidence:
        return None  # not even p <= delta is rejected, for any q
    low, high = -20.0, 20.0
    while fit(math.exp(low), delta)[0] <= evidence:
        low -= 20.0
        if low < -600:
            return None
    while fit(math.exp(high), delta)[0] >= evidence:
        high += 20.0
    theta = math.exp(root(lambda t: fit(math.exp(t), delta)[0] - evidence, low, high))
    return theta, delta, fit(theta, delta)[1]


@functools.lru_cache(maxsize=8)  # planning computes the power of many rates at the same boundary
def critical_counts(
    n: int,
    m: int,
    theta: float,
    delta: float,
    evidence: float,
    spread: tuple[float, float],
) -> tuple[Floats, Floats]:
    """Divide 0..m into blocks.

    Return the first `b` of each block, and the smallest `a` with (a, b) in R. Both arrays are
    read-only.
    """
    low, high = np.arcsin(np.sqrt(np.clip(spread, 0.0, 1.0)))
    unit = 0.5 / math.sqrt(m)
    half_width = (WIDTH + math.sqrt(2 * evidence)) * unit
    angles = np.arange(
        max(low - half_width, 0.0), min(high + half_width, math.pi / 2), BLOCK * unit
    )
    first = np.unique(np.concatenate([[0.0], np.ceil(m * np.sin(angles) ** 2)]))
    y = first / m
    # On the boundary of R, the evidence equals the threshold, and the closest point `q` of the null
    # determines `a`. Solve for q between b / m and the q at which `a` reaches n.
    below, above = y.copy(), np.full_like(y, min((1 - delta) / theta, 1.0))
    for _ in range(64):
        q = (below + above) / 2
        x, found = _stationary(q, y, n, m, theta, delta)
        too_much = (x > 1) | (found > evidence)
        above = np.where(too_much, q, above)
        below = np.where(too_much, below, q)
    x, found = _stationary(below, y, n, m, theta, delta)
    # If not even a = n is enough (beyond rounding), x is inf. In case of doubt, an outcome stays in
    # R.
    x = np.where(found < evidence * (1 - 1e-7) - 1e-14 * (n + m), math.inf, x)
    # The search cannot find closest points with q = 0 (for b = 0) or q = 1 (for b = m).
    corner = min(delta + delta * (1 - delta) * m / (n * theta), 1.0)
    if delta > 0 and n * _kl(corner, delta) > evidence:
        x[0] = _share_with_evidence(delta, corner, evidence / n)
    if y[-1] == 1:
        p = min(theta + delta, 1.0)
        enough = p < 1 and n * _kl(1.0, p) > evidence
        x[-1] = _share_with_evidence(p, 1.0, evidence / n) if enough else math.inf
    # Outcomes within rounding of the boundary count as elements of R, which is conservative.
    critical = np.minimum(np.ceil(n * x - 1e-9 * n - 1e-7), n + 1.0)
    critical = np.maximum.accumulate(np.maximum(critical, 0.0))
    first.flags.writeable = critical.flags.writeable = False
    return first, critical


def _share_with_evidence(p: float, high: float, evidence: float) -> float:
    """Return the share x between p and `high` with ``kl(x, p) = evidence``."""
    return float(scipy.optimize.brentq(lambda x: _kl(x, p) - evidence, p, high))


def _stationary(
    q: Floats, y: Floats, n: int, m: int, theta: float, delta: float
) -> tuple[Floats, Floats]:
    """Return x whose closest null point is (theta q + delta, q), and the evidence of x.

    The condition ``n theta (x - p) / (p (1 - p)) = m (q - y) / (q (1 - q))`` is linear in x.
    """
    p = np.minimum(theta * q + delta, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        x = p + p * (1 - p) * m * (q - y) / (n * theta * q * (1 - q))
    x = np.where(np.isnan(x), p, x)
    inside = np.minimum(x, 1.0)
    evidence = n * (special.rel_entr(inside, p) + special.rel_entr(1 - inside, 1 - p))
    evidence += m * (special.rel_entr(y, q) + special.rel_entr(1 - y, 1 - q))
    return x, evidence


NUISANCE_SHARE = 1 / 200
"""Part of the failure probability that the confidence intervals of both nuisances get."""

# Each pair holds the step of the grid and an allowed convexity gap. The step is in standard
# deviations of the rate on the grid. The gap is between the points of the grid, in log probability.
# Both numbers are larger for small alpha, because log P is steeper there.
_COARSE, _FINE = (0.4, 0.045), (0.28, 0.025)
_STEEP = 0.1  # Largest failure probability for which the coarse grid is sufficient.
_WIDE = 10  # Number of blocks that are pooled where little of P(R) lies.
_RIDGE = 2.2  # Within this many standard deviations around most of P(R), blocks are not pooled.
_CLOSE = 0.03  # A point is solved to this distance from the level, in log probability.
_STRIDE = 4  # Every fourth node is solved first.
_PIECES = 24  # Number of pieces into which each chord is cut.
_NEGLIGIBLE = 1e-9  # Fraction of the level. Blocks with less mass count as lying entirely in R.
_ROUNDING = 1e-9  # This is a relative error. The incomplete beta function is much more accurate.


def joint_region(counts: Counts, failure_prob: float, target: Target) -> tuple[Floats, Floats]:
    """Return a confidence region of the two rates of an event that is likelier on the left.

    Parameters
    ----------
    counts : Counts
        Counts of independent draws that were not used to choose the event. The left side is the
        side on which the event was declared to be likelier.
    failure_prob : float
        Strictly between 0 and 1.
    target : Target
        Target at which the region should be sharpest.

    Returns
    -------
    likely, rare : ndarray, shape (k,)
        Except with probability `failure_prob`, the true rates (p, q) satisfy ``p >= likely[i]``
        and ``q <= rare[i]`` for at least one i.

    Examples
    --------
    >>> likely, rare = joint_region(Counts(500, 1000, 184, 1000), 0.05, Target(delta=0.0))
    >>> round(float(np.log(likely / rare).min()), 2)  # two Clopper-Pearson bounds give 0.81
    0.88
    """
    alpha = _validate.failure_prob(failure_prob=failure_prob)
    a, n, b, m = counts.hits_left, counts.draws_left, counts.hits_right, counts.draws_right
    evidence = evidence_of(alpha)
    null = null_at(a / n, n, b / m, m, evidence, target)
    if null is None:
        return np.zeros(1), np.ones(1)
    theta, delta, q0 = null
    p0 = min(theta * q0 + delta, 1.0)
    level = math.log(alpha * (1 - NUISANCE_SHARE)) - _ROUNDING
    # The grid holds the rate along which the curve is shorter, measured in standard deviations.
    grid_p = theta**2 * q0 * (1 - q0) * n > p0 * (1 - p0) * m
    hits, draws = (a, n) if grid_p else (b, m)
    tail_prob = alpha * NUISANCE_SHARE / 4  # two intervals, each for two sides
    low, high = (float(limit(hits, draws, tail_prob)) for limit in (lower_rates, upper_rates))
    step, gap = _COARSE if alpha <= _STEEP else _FINE
    nodes = _nodes(low, high, draws, step)
    guesses = (nodes - delta) / theta if grid_p else nodes * theta + delta
    spread = (guesses.min(), guesses.max()) if grid_p else (nodes[0], nodes[-1])
    first, critical = critical_counts(n, m, theta, delta, evidence, spread)
    home = int(np.searchsorted(first, b, side="right")) - 1  # R must hold (a, b) despite rounding
    critical = np.concatenate([np.minimum(critical[: home + 1], a), critical[home + 1 :]])
    tail = _Tail(n, m, first, critical, WIDTH + math.sqrt(2 * evidence), _NEGLIGIBLE * alpha)
    solved = tail.solve(nodes, guesses, level - gap, grid_p)
    p, q = (nodes, solved) if grid_p else (solved, nodes)
    return _corners(p, q, n, m, gap)


def refutation_prob(
    likely: Floats,
    rare: Floats,
    draws_likely: int,
    draws_rare: int,
    epsilon: float,
    delta: float,
    failure_prob: float,
    *,
    evidence: float | None = None,
) -> Floats:
    """Return the probability that events refute (epsilon, delta), for planning.

    The returned value is the probability of all outcomes whose evidence exceeds the quantile of the
    test. The joint bound itself allows for every nuisance parameter, so the joint bound refutes
    slightly less often than this test.

    Parameters
    ----------
    likely, rare : ndarray, shape (k,)
        Rates of the events on the likelier side and on the other side.
    draws_likely, draws_rare : int
        Draws on the two sides.
    epsilon, delta : float
        The claimed epsilon and delta.
    failure_prob : float
        Strictly between 0 and 1.
    evidence : float, optional
        Evidence, in nats, from which the claim is refuted. By default, the evidence that belongs to
        `failure_prob`.

    Returns
    -------
    ndarray, shape (k,)
    """
    alpha = _validate.failure_prob(failure_prob=failure_prob)
    needed = evidence_of(alpha) if evidence is None else evidence
    theta = math.exp(min(_validate.nonnegative(epsilon=epsilon), 600.0))
    p, q = np.atleast_1d(likely).astype(float), np.atleast_1d(rare).astype(float)
    spread = (float(q.min()), float(q.max()))
    blocks = critical_counts(draws_likely, draws_rare, theta, delta, needed, spread)
    half_width = WIDTH + math.sqrt(2 * needed)
    tail = _Tail(draws_likely, draws_rare, *blocks, half_width, _NEGLIGIBLE * alpha)
    return np.asarray(np.exp(np.minimum(tail.log_prob(p, q), 0.0)))


def _nodes(low: float, high: float, draws: int, step: float) -> Floats:
    """Return a grid from `low` to `high`, even on a scale where the binomial spread is constant."""
    first, last = math.asin(math.sqrt(low)), math.asin(math.sqrt(high))
    steps = max(math.ceil((last - first) * 2 * math.sqrt(draws) / step), 1)
    nodes = np.sin(np.linspace(first, last, steps + 1)) ** 2
    nodes[[0, -1]] = low, high
    return np.asarray(nodes)


@dataclass(frozen=True)
class _Tail:
    """Upper bound of P_{p,q}(R), where R holds all outcomes with at least the observed evidence.

    The bound uses the blocks of `b` from `first` on, and each block has one critical `a`. For a
    given q, only the blocks within `half_width` standard deviations are distinguished. Blocks with
    a probability below `negligible` are assumed to lie in R.
    """

    n: int
    m: int
    first: Floats
    critical: Floats
    half_width: float
    negligible: float

    def log_prob(self, p: Floats, q: Floats) -> Floats:
        """Return the logarithm of the bound for pairs of rates, elementwise, shape (k,)."""
        at = self._blocks(p, q)
        edge, critical = self.first[at], self.critical[at]
        q = q[:, None]
        upper = edge > self.m * q
        outside = np.zeros_like(edge)  # P(B >= edge) above the mean, and P(B < edge) below the mean
        rate = np.broadcast_to(q, edge.shape)
        for side, tail in (
            (upper, special.betainc),
            (~upper & (edge > 0), special.betaincc),
        ):
            outside[side] = tail(edge[side], self.m - edge[side] + 1, rate[side])
        mass = np.empty_like(outside)  # for the block from each edge on; the last block ends at m
        mass[:, :-1] = np.where(
            upper[:, :-1],
            outside[:, :-1] - outside[:, 1:],
            np.where(
                upper[:, 1:],
                1 - outside[:, :-1] - outside[:, 1:],
                outside[:, 1:] - outside[:, :-1],
            ),
        )
        mass[:, -1] = np.where(upper[:, -1], outside[:, -1], 1 - outside[:, -1])
        lump = np.where(upper[:, 0], 1 - outside[:, 0], outside[:, 0])  # below the window
        upper_tail = np.ones_like(mass)
        upper_tail[critical > self.n] = 0.0
        known = (mass > self.negligible) & (critical > 0) & (critical <= self.n)
        least = critical[known]
        row = np.nonzero(known)[0]
        upper_tail[known] = special.betainc(least, self.n - least + 1, p[row])
        with np.errstate(divide="ignore"):
            return np.asarray(np.log((np.maximum(mass, 0.0) * upper_tail).sum(axis=1) + lump))

    def _window(self, q: Floats) -> tuple[NDArray[np.intp], int]:
        """Return the first block of the window of each `q`, and the number of blocks per window."""
        angle = np.arcsin(np.sqrt(q)) - self.half_width * 0.5 / math.sqrt(self.m)
        low = self.m * np.sin(np.maximum(angle, 0.0)) ** 2
        start = np.searchsorted(self.first, low, side="right") - 1
        width = min(int(2 * self.half_width / BLOCK) + 2, len(self.first))
        return np.minimum(start, len(self.first) - width), width

    def _blocks(self, p: Floats, q: Floats) -> NDArray[np.intp]:
        """Return the blocks of each window: all near the likeliest block of R, and a few others."""
        start, width = self._window(q)
        near = int(_RIDGE / BLOCK)
        if width <= 3 * near:
            return np.asarray(start[:, None] + np.arange(width))
        coarse = start[:, None] + np.arange(0, width, _WIDE)
        y, x = self.first[coarse] / self.m, np.minimum(self.critical[coarse] / self.n, 1.0)
        above = np.maximum(x, p[:, None])  # a critical `a` above p n reduces the probability
        distance = self.m * divergences(y, q[:, None]) + self.n * divergences(above, p[:, None])
        distance[self.critical[coarse] > self.n] = math.inf
        ridge = coarse[np.arange(len(coarse)), distance.argmin(axis=1)]
        last = start + width - 1
        fine = np.clip(ridge[:, None] + np.arange(-near, near), start[:, None], last[:, None])
        return np.sort(np.concatenate([coarse, fine, last[:, None]], axis=1), axis=1)

    def solve(self, nodes: Floats, guesses: Floats, level: float, grid_p: bool) -> Floats:
        """For each node of one rate, find the extreme value of the other rate with log P <= level.

        The extreme value is the largest p for a given q. If `grid_p` is True, the extreme value is
        the smallest q for a given p. The code checks that the value satisfies the condition. The
        value is accurate to a hundredth of a standard deviation. The value is 0 or 1 if no value
        between 0 and 1 satisfies the condition.

        Some of the nodes are solved first. These nodes give starting points for the other nodes,
        most of which then need only one evaluation.
        """
        coarse = np.unique(np.append(np.arange(0, len(nodes), _STRIDE), len(nodes) - 1))
        solved = self._solve(nodes[coarse], guesses[coarse], level, grid_p)
        if len(coarse) == len(nodes):
            return solved
        place, angles = np.arcsin(np.sqrt(nodes)), np.arcsin(np.sqrt(np.clip(guesses, 0.0, 1.0)))
        offset = np.arcsin(np.sqrt(solved)) - angles[coarse]
        at = np.clip(angles + np.interp(place, place[coarse], offset), 0.0, math.pi / 2)
        rest = np.setdiff1d(np.arange(len(nodes)), coarse)
        found = np.empty(len(nodes))
        found[coarse] = solved
        found[rest] = self._solve(nodes[rest], np.sin(at[rest]) ** 2, level, grid_p)
        return found

    def _solve(self, nodes: Floats, guesses: Floats, level: float, grid_p: bool) -> Floats:
        unit = 0.5 / math.sqrt(self.m if grid_p else self.n)
        # Angles run from a value that satisfies the condition to a value that does not.
        good = np.full(len(nodes), math.pi / 2 if grid_p else 0.0)
        bad = math.pi / 2 - good
        at = np.arcsin(np.sqrt(np.clip(guesses, 1e-12, 1 - 1e-12)))
        good_excess = np.full(len(nodes), -math.inf)
        slope = np.full(len(nodes), -4.0 if grid_p else 4.0)  # of log P, per standard deviation
        last_at, last_excess = at.copy(), np.full(len(nodes), math.nan)
        active = np.arange(len(nodes))
        for _ in range(60):
            rate = np.sin(at[active]) ** 2
            pair = (nodes[active], rate) if grid_p else (rate, nodes[active])
            excess = self.log_prob(*pair) - level
            enough = excess <= 0
            good[active] = np.where(enough, at[active], good[active])
            good_excess[active] = np.where(enough, excess, good_excess[active])
            bad[active] = np.where(enough, bad[active], at[active])
            moved = (at[active] - last_at[active]) / unit
            with np.errstate(divide="ignore", invalid="ignore"):
                measured = (excess - last_excess[active]) / moved
            sensible = np.isfinite(measured) & (np.abs(measured) > 0.05)
            sensible &= np.sign(measured) == np.sign(slope[active])
            slope[active] = np.where(sensible, measured, slope[active])
            last_at[active], last_excess[active] = at[active], excess
            step = -(excess + _CLOSE / 2) / slope[active] * unit
            step = np.where(np.isfinite(step), np.clip(step, -4 * unit, 4 * unit), math.nan)
            proposal = at[active] + step
            low = np.minimum(good[active], bad[active])
            high = np.maximum(good[active], bad[active])
            inside = (proposal > low) & (proposal < high)  # False for NaN
            at[active] = np.where(inside, proposal, (low + high) / 2)
            open_ = (good_excess[active] < -_CLOSE) & (high - low > 0.01 * unit)
            active = active[open_]
            if len(active) == 0:
                break
        return np.asarray(np.sin(good) ** 2)


def _corners(p: Floats, q: Floats, n: int, m: int, allowed: float) -> tuple[Floats, Floats]:
    """Return a staircase below the curve through the excluded points (p, q)."""
    p = np.maximum.accumulate(p)
    q = np.minimum.accumulate(q[::-1])[::-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        eta_p, eta_q = special.logit(p), special.logit(q)
        gap = (
            n * _largest_variance(p) * np.diff(eta_p) ** 2
            + m * _largest_variance(q) * np.diff(eta_q) ** 2
        ) / 8
    chord = np.isfinite(gap) & (gap <= allowed)
    share = np.linspace(0.0, 1.0, _PIECES + 1)
    likely, rare = [p[:-1][~chord]], [q[1:][~chord]]
    i = np.flatnonzero(chord)
    for eta, into, part in ((eta_p, likely, share[:-1]), (eta_q, rare, share[1:])):
        on_chord = eta[i, None] + part * (eta[i + 1] - eta[i])[:, None]
        into.append(special.expit(on_chord).ravel())
    return np.concatenate(likely), np.concatenate(rare)


def _largest_variance(rates: Floats) -> Floats:
    """Return the largest r (1 - r) between each rate and the next rate."""
    nearest = np.clip(0.5, np.minimum(rates[:-1], rates[1:]), np.maximum(rates[:-1], rates[1:]))
    return np.asarray(nearest * (1 - nearest))
