"""Likelihood-ratio bets against (epsilon, delta)-privacy, whose fairness is verified.

A rule answers left, right or neither for every output. Let p = (p_L, p_R, p_0) be the probabilities
of the three answers on the left side. Let q be the same probabilities on the right side. The claim
says that

    p_L <= e^epsilon q_L + delta    and    q_R <= e^epsilon p_R + delta.

The pairs (p, q) that satisfy both constraints form a convex set, the null hypothesis. Let (p1, q1)
be rates that earlier draws suggest. Let (p0, q0) be the point of the null hypothesis that minimises
``KL(p1, p) + KL(q1, q)``. One draw of each side multiplies the wealth by ``p1(x) / p0(x) * q1(y) /
q0(y)``.

**Why the bet is fair.** Let ``F(p) = sum_x p(x) p1(x) / p0(x)``, and define G(q) in the same way.
For any multipliers ``k, l >= 0`` and every (p, q) of the null hypothesis, with ``t = e^epsilon``,
::

    F(p) + G(q) <= F(p) + G(q) - k (p_L - t q_L - delta) - l (q_R - t p_R - delta) <= B,

    B = max(a_L - k, a_R + t l, a_0) + max(b_L + t k, b_R - l, b_0) + (k + l) delta,

where a and b are the ratios whose averages are F and G. The draws are independent, so the expected
factor is ``F(p) G(q) <= ((F(p) + G(q)) / 2)^2 <= (B / 2)^2``. At the closest point, with the
multipliers of its constraints, B is 2. In this case, the bet is fair, and its growth is the largest
that two independent counts allow. For each pair of draws, the wealth is divided by ``max(B / 2,
1)^2``, for any result of the solver. So an error of the solver reduces the growth, but the bet
stays sound.

**A fixed number of draws.** Suppose that rates and bets are fixed before the draws. If n draws are
made on each side, the wealth is a product of n factors of independent pairs. So its expectation is
at most 1, and it is a function of the counts of answers. Suppose instead that a fair coin chooses
the side of each of N draws. Then one draw multiplies the wealth by ``(F(p) + G(q)) / 2 <= B / 2``
on average. So the price of each draw is ``max(B / 2, 1)``, which is half of the price of a pair on
the log scale. The numbers of draws of the two sides may then differ, because the coins decide them.

An event is treated as a guess: "left" where it fires, and "right" elsewhere. Therefore the bet also
uses the complement of the event with exchanged sides.

References
----------
Turner, Ly and Grunwald (2024), "Generic E-variables for exact sequential k-sample tests that allow
for optional stopping", treat one such constraint.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import ArgumentError

Floats = NDArray[np.float64]

LEFT, RIGHT, NEITHER = 0, 1, 2
"""Positions of the three answers."""

_LEAST = 1e-9  # smallest rate of an answer that can be given
_STEPS, _NEWTON, _BACKTRACKS = 64, 40, 12
_CLOSE = 1e-14  # relative step at which a search ends
_FLAT = 1e-11  # gain, relative to the loss, below which rounding hides whether a step helps
_LARGEST_EPSILON = 600.0
_ROUNDING = 1e-12  # relative rounding error of the bound B
_SLACK = 1e-13  # slack within which a constraint counts as satisfied; B accounts for it


@dataclass(frozen=True)
class Wager:
    """Factors by which answers multiply the wealth, for each of n null hypotheses.

    Parameters
    ----------
    log_left, log_right : ndarray, shape (n, 3)
        Logarithm of the factor by which each answer to a draw of this side multiplies the wealth.
    log_price : ndarray, shape (n,)
        Price of each pair of draws, which is ``2 log max(B / 2, 1)``.
    growth : ndarray, shape (n,)
        Expected growth of the log wealth per pair of draws, at the rates of the bet.
    """

    log_left: Floats
    log_right: Floats
    log_price: Floats
    growth: Floats

    def log_growth(
        self, left: NDArray[np.int64], right: NDArray[np.int64], *, coins: bool = False
    ) -> Floats:
        """Return the logarithm of the factor by which the wealth grows, for each null hypothesis.

        Parameters
        ----------
        left, right : ndarray of int, shape (3,)
            Counts of the answers. Without coins, the two sides have equally many draws.
        coins : bool, optional
            Whether a fair coin chose the side of each draw. The default is False.

        Raises
        ------
        ValueError
            If the numbers of draws differ, and no coins decided them.
        """
        n, m = int(left.sum()), int(right.sum())
        if n != m and not coins:
            raise ArgumentError(
                f"left and right must be answers to equally many draws, got {n} answers "
                f"on the left and {m} on the right"
            )
        pairs = (n + m) / 2
        return np.asarray(self.log_left @ left + self.log_right @ right - pairs * self.log_price)

    def part(self, first: int, last: int) -> Wager:
        """Return the bets against the null hypotheses from `first` on, and before `last`."""
        at = slice(first, last)
        return Wager(self.log_left[at], self.log_right[at], self.log_price[at], self.growth[at])


def wager(
    left: Floats, right: Floats, epsilon: Floats, delta: float, bet_size: float | Floats = 1.0
) -> Wager:
    """Return a bet on given rates against several null hypotheses.

    Parameters
    ----------
    left, right : ndarray, shape (3,) or (n, 3)
        Rates of the answers on the two sides, as suggested by earlier draws. An answer whose rate
        is 0 on both sides of a row cannot be given.
    epsilon : ndarray, shape (n,)
        Claimed epsilon of each null hypothesis, >= 0.
    delta : float
        Claimed delta of the null hypotheses, in [0, 1].
    bet_size : float or ndarray, shape (n,)
        Bet size, in (0, 1]. The bet is on rates at this fraction of the way from the null
        hypothesis to the given rates.

    Returns
    -------
    Wager
        If the rates do not violate a null hypothesis, the bet against it is empty.

    Examples
    --------
    >>> import numpy as np
    >>> coin = np.array([0.8, 0.2, 0.0]), np.array([0.2, 0.8, 0.0])
    >>> bet = wager(*coin, np.array([1.0, 2.0]), 0.0)
    >>> bet.growth.round(3)  # 2 KL(0.8, e / (1 + e)); no bet where the claim holds
    array([0.026, 0.   ])
    """
    epsilon = np.asarray(epsilon, dtype=float)
    p1, q1 = (np.broadcast_to(side, (len(epsilon), 3)).astype(float) for side in (left, right))
    possible = p1 + q1 > 0
    p1, q1 = (_inside(side, possible) for side in (p1, q1))
    theta = np.exp(np.minimum(epsilon, _LARGEST_EPSILON))
    may_abstain = possible[:, NEITHER]
    p0, q0, k, m = _closest(p1, q1, theta, delta, may_abstain)
    sizes = np.broadcast_to(np.asarray(bet_size, dtype=float), epsilon.shape)
    small = np.flatnonzero(sizes < 1)
    if len(small):
        for rates, nearest in ((p1, p0), (q1, q0)):
            rates[small] = nearest[small] + sizes[small, None] * (rates[small] - nearest[small])
        p0[small], q0[small], k[small], m[small] = _closest(
            p1[small], q1[small], theta[small], delta, may_abstain[small]
        )
    a, b = _ratio(p1, p0), _ratio(q1, q0)
    none = np.zeros_like(k)
    most = [
        np.where(possible, ratios + np.stack(pulls, axis=1), -np.inf).max(axis=1)
        for ratios, pulls in ((a, (-k, theta * m, none)), (b, (theta * k, -m, none)))
    ]
    bound = (most[0] + most[1] + (k + m) * delta) * (1 + _ROUNDING)
    price = 2 * np.log(np.maximum(bound / 2, 1.0))
    log_a, log_b = np.log(a), np.log(b)
    growth = (p1 * log_a).sum(axis=1) + (q1 * log_b).sum(axis=1) - price
    idle = ~(growth > 0)
    log_a[idle], log_b[idle], price[idle], growth[idle] = 0.0, 0.0, 0.0, 0.0
    return Wager(log_a, log_b, price, growth)


def rates_at(left: Floats, right: Floats, epsilon: Floats, delta: float) -> tuple[Floats, Floats]:
    """Return rates that need a given epsilon at `delta`, near to rates that earlier draws suggest.

    The mean of the two sides is kept, and their difference is scaled until the larger of the two
    losses is epsilon. A difference in the wrong direction counts as a small one in the right
    direction. The result is a proposal for a bet, so no certified number relies on its accuracy.

    Parameters
    ----------
    left, right : ndarray, shape (3,)
        Rates of the answers on the two sides.
    epsilon : ndarray, shape (n,)
        Epsilon of each proposal, >= 0.
    delta : float
        Delta, in [0, 1].

    Returns
    -------
    left, right : ndarray, shape (n, 3)

    Examples
    --------
    >>> import numpy as np
    >>> coin = np.array([0.6, 0.4, 0.0]), np.array([0.4, 0.6, 0.0])
    >>> p, q = rates_at(*coin, np.array([1.0, 2.0]), 0.0)
    >>> np.log(p[:, 0] / q[:, 0]).round(3)
    array([1., 2.])
    """
    theta = np.exp(np.minimum(epsilon, _LARGEST_EPSILON))
    mean = (left + right) / 2
    half = np.maximum([left[LEFT] - mean[LEFT], right[RIGHT] - mean[RIGHT]], _LEAST)
    # The constraint of an answer binds if its rates are the mean plus and minus this number.
    limits = [(mean[at] * (theta - 1) + delta) / (1 + theta) for at in (LEFT, RIGHT)]
    scale = np.minimum(limits[LEFT] / half[LEFT], limits[RIGHT] / half[RIGHT])
    move = np.stack([scale * half[LEFT], -scale * half[RIGHT], np.zeros_like(scale)], axis=1)
    if mean[NEITHER] > 0:
        move[:, NEITHER] = -move.sum(axis=1)
    return np.clip(mean + move, 0.0, 1.0), np.clip(mean - move, 0.0, 1.0)


def _ratio(above: Floats, below: Floats) -> Floats:
    """Return the ratio of two rates, or 1 for an answer that cannot be given."""
    return np.divide(above, below, out=np.ones_like(above), where=below > 0)


def _inside(rates: Floats, possible: NDArray[np.bool_]) -> Floats:
    """Move the rates of possible answers strictly between 0 and 1, and make the rates sum to 1."""
    inside = np.where(possible, np.maximum(rates, _LEAST), 0.0)
    return np.asarray(inside / inside.sum(axis=1, keepdims=True))


# --- the closest point of the null --------------------------------------------------------------


def _closest(
    p1: Floats, q1: Floats, theta: Floats, delta: float, may_abstain: NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the closest points (p, q) of the null, and the multipliers of the constraints.

    The cases are ordered by the number of active constraints at the closest point. If the closest
    point for one constraint also satisfies the other constraint, this point is the closest point
    for both constraints.
    """
    p, q = p1.copy(), q1.copy()
    k, m = np.zeros(len(theta)), np.zeros(len(theta))
    left_breaks = p1[:, LEFT] > theta * q1[:, LEFT] + delta
    right_breaks = q1[:, RIGHT] > theta * p1[:, RIGHT] + delta
    open_ = left_breaks | right_breaks
    rows = np.flatnonzero(left_breaks)
    x, y, multiplier = _one_binds(p1[rows], q1[rows], theta[rows], delta, LEFT)
    good = y[:, RIGHT] <= theta[rows] * x[:, RIGHT] + delta + _SLACK
    done = rows[good]
    p[done], q[done], k[done], open_[done] = x[good], y[good], multiplier[good], False
    rows = np.flatnonzero(right_breaks & open_)
    x, y, multiplier = _one_binds(q1[rows], p1[rows], theta[rows], delta, RIGHT)
    good = y[:, LEFT] <= theta[rows] * x[:, LEFT] + delta + _SLACK
    done = rows[good]
    q[done], p[done], m[done], open_[done] = x[good], y[good], multiplier[good], False
    for both, of_some, abstains in (
        (_both_bind, may_abstain, True),
        (_corner, ~may_abstain, False),
    ):
        rows = np.flatnonzero(open_ & of_some)
        if len(rows) == 0:
            continue
        p[rows], q[rows] = both(p1[rows], q1[rows], theta[rows], delta)
        k[rows], m[rows] = _multipliers(
            p1[rows] / np.maximum(p[rows], 1e-300),
            q1[rows] / np.maximum(q[rows], 1e-300),
            theta[rows],
            abstains,
        )
    return p, q, k, m


def _one_binds(
    x1: Floats, y1: Floats, theta: Floats, delta: float, answer: int
) -> tuple[Floats, Floats, Floats]:
    """Find the closest point with ``x = theta y + delta`` in one answer; the others keep shares."""
    u, v = x1[:, answer], y1[:, answer]
    low, high = v.copy(), np.minimum((u - delta) / theta, 1.0)
    at = (low + high) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_STEPS):
            # Newton's method is applied to the slope, which increases. If a step leaves the
            # interval, the interval is halved.
            x = theta * at + delta
            of_y, of_x = (at - v) / (at * (1 - at)), (u - x) / (x * (1 - x))
            slope = of_y - theta * of_x
            curvature = (1 - of_y * (1 - 2 * at)) / (at * (1 - at)) + theta**2 * (
                1 + of_x * (1 - 2 * x)
            ) / (x * (1 - x))
            low, high = np.where(slope < 0, at, low), np.where(slope < 0, high, at)
            step = at - slope / curvature
            step = np.where((step >= low) & (step <= high), step, (low + high) / 2)
            near = np.abs(step - at) <= _CLOSE * at
            at = step
            if near.all():
                break
        y_at = at
        x_at = theta * y_at + delta
        x, y = x1 * ((1 - x_at) / (1 - u))[:, None], y1 * ((1 - y_at) / (1 - v))[:, None]
        x[:, answer], y[:, answer] = x_at, y_at
        multiplier = u / x_at - (1 - u) / (1 - x_at)
    return x, y, np.maximum(multiplier, 0.0)


def _corner(p1: Floats, q1: Floats, theta: Floats, delta: float) -> tuple[Floats, Floats]:
    """Return the point at which both constraints are active and nobody abstains."""
    rare = (1 - delta) / (1 + theta)
    none = np.zeros_like(rare)
    return np.stack([1 - rare, rare, none], axis=1), np.stack([rare, 1 - rare, none], axis=1)


def _both_bind(p1: Floats, q1: Floats, theta: Floats, delta: float) -> tuple[Floats, Floats]:
    """Find the closest point with both constraints active, by Newton's method in (q_L, p_R)."""

    def points(u: Floats, v: Floats) -> tuple[Floats, Floats]:
        p_left, q_right = theta * u + delta, theta * v + delta
        return (
            np.stack([p_left, v, 1 - p_left - v], axis=1),
            np.stack([u, q_right, 1 - u - q_right], axis=1),
        )

    def loss(u: Floats, v: Floats) -> Floats:
        p, q = points(u, v)
        inside = (p > 0).all(axis=1) & (q > 0).all(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = -(p1 * np.log(p)).sum(axis=1) - (q1 * np.log(q)).sum(axis=1)
        return np.where(inside, value, np.inf)

    u = 0.5 * (1 - delta) / (1 + theta)
    v = u.copy()
    value = loss(u, v)
    for _ in range(_NEWTON):
        p, q = points(u, v)
        a, b = p1 / p, q1 / q
        c, d = a / p, b / q  # second derivatives
        slope_u = -theta * (a[:, LEFT] - a[:, NEITHER]) - (b[:, LEFT] - b[:, NEITHER])
        slope_v = -(a[:, RIGHT] - a[:, NEITHER]) - theta * (b[:, RIGHT] - b[:, NEITHER])
        uu = theta**2 * (c[:, LEFT] + c[:, NEITHER]) + d[:, LEFT] + d[:, NEITHER]
        vv = c[:, RIGHT] + c[:, NEITHER] + theta**2 * (d[:, RIGHT] + d[:, NEITHER])
        uv = theta * (c[:, NEITHER] + d[:, NEITHER])
        det = np.maximum(uu * vv - uv**2, 1e-300)
        step_u, step_v = (uv * slope_v - vv * slope_u) / det, (uv * slope_u - uu * slope_v) / det
        if np.all((np.abs(step_u) <= _CLOSE * u) & (np.abs(step_v) <= _CLOSE * v)):
            break
        # This near to the minimum, the loss is flat up to rounding, so the whole step is taken.
        near = -(slope_u * step_u + slope_v * step_v) <= _FLAT * np.abs(value)
        length = np.ones_like(u)
        new = loss(u + step_u, v + step_v)
        for _ in range(_BACKTRACKS):
            worse = ~(new <= value) & ~(near & np.isfinite(new))
            if not worse.any():
                break
            length = np.where(worse, length / 4, length)
            new = loss(u + length * step_u, v + length * step_v)
        taken = (new < value) | (near & np.isfinite(new))
        if not taken.any():
            break
        u, v = np.where(taken, u + length * step_u, u), np.where(taken, v + length * step_v, v)
        value = np.where(taken, new, value)
    return points(u, v)


def _multipliers(a: Floats, b: Floats, theta: Floats, may_abstain: bool) -> tuple[Floats, Floats]:
    """Return the multipliers of both constraints at the closest point, computed from its ratios."""
    if may_abstain:
        k, m = a[:, LEFT] - a[:, NEITHER], b[:, RIGHT] - b[:, NEITHER]
    else:
        # k + theta m = a_L - a_R and theta k + m = b_R - b_L. At theta = 1, one of the two
        # equations is enough.
        x, y = a[:, LEFT] - a[:, RIGHT], b[:, RIGHT] - b[:, LEFT]
        square = theta**2 - 1
        half = x / (1 + theta)
        with np.errstate(divide="ignore", invalid="ignore"):
            k = np.where(square > 1e-9, (theta * y - x) / square, half)
            m = np.where(square > 1e-9, (theta * x - y) / square, half)
    return np.maximum(k, 0.0), np.maximum(m, 0.0)
