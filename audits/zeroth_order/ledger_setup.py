"""Zeroth-order optimization: definitions of stationarity and privacy, and introductory claims."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betainc

from algorithms.common.tree import node
from algorithms.zeroth_order.estimators import difference_estimate
from algorithms.zeroth_order.losses import CappedAbsolute, Linear, Loss
from algorithms.zeroth_order.printed import corollary_4_4_sigma
from algorithms.zeroth_order.stationarity import (
    stationarity_estimate,
    stationarity_in_one_dimension,
)
from audits.zeroth_order.conventions import DIMENSION, ORDER, RADIUS, RHO, ROUNDS, SHARE, UNIT
from dpaudit import NeighborPair, Relation
from dpaudit.errors import PairError
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array, Method
from dpaudit.stats import hockey_stick

ROUNDING = 1e-12
SLOPES = Array(UNIT, (4,))
KINKS = Array(Interval(-3.0, 3.0), (3,))


# --- stationary points ---


def hull_value(slopes):
    """Return the least absolute value in the convex hull of numbers."""
    return max(0.0, np.min(slopes), -np.max(slopes))


def cells(items, x, radius, cap):
    """Return the value for the mean of 3 min(abs(a y - b), cap), from unit cells of the ball."""
    slopes = []
    for y in np.arange(x - radius, x + radius) + 0.5:
        errors = [a * y - b for a, b in items]
        slopes.append(np.mean([3 * a * np.sign(e) * (abs(e) < cap)
                               for (a, _), e in zip(items, errors, strict=True)]))  # fmt: skip
    return hull_value(np.array(slopes))


class Norm(Loss):
    """The norm of y."""

    def dimension(self, n_columns):
        """Return d."""
        return n_columns

    def values(self, points, items):
        """Return norm(y)."""
        return np.linalg.norm(points - 0 * items, axis=-1)

    def gradients(self, points, items):
        """Return y / norm(y)."""
        y = points - 0 * items
        return y / np.linalg.norm(y, axis=-1, keepdims=True)


def met(kinks, slopes, x, r):
    """Return the slopes of a piecewise linear function on all pieces that meet the ball B(x, r)."""
    ends = np.concatenate([[-np.inf], np.sort(kinks), [np.inf]])
    return slopes[(ends[:-1] < x + r) & (ends[1:] > x - r) & (ends[:-1] < ends[1:])]


def smoothed(kinks, slopes, y, delta, d=1):
    """Return slopes at y of the smoothing of F(<e, x>) over balls of R^d.

    The function F is piecewise linear.
    """
    above = 0.5 - (np.sort(kinks) - np.asarray(y)[..., None]) / (2 * delta)
    share = betainc((d + 1) / 2, (d + 1) / 2, np.clip(above, 0, 1))  # of the ball beyond a kink
    return slopes[0] + share @ np.diff(slopes)


def tangents(delta, r, slack=1e-9):
    """Return gradients of the norm at the two points of B(x, delta) at the widest angle from 0."""
    sine = delta / r * (1 - slack)
    return np.array([[math.sqrt(1 - sine**2), sine], [math.sqrt(1 - sine**2), -sine]])


def units(points):
    return points / np.linalg.norm(points, axis=-1, keepdims=True)


@statement("zoo.sec1.stat")
def stationary(ledger):
    """A point x is a (delta, epsilon)-stationary point of F if there exists a subset S in the ball
    of radius delta centered at x such that norm(E[grad F(y)]) <= epsilon, where y is uniformly
    distributed over S.

    The statement is a paraphrase of Definition 2.1. For n points on pieces of a line, the best mean
    is never below Goldstein's value. The best mean is at most (largest - least slope) / (2 n) above
    this value. This bound is attained at n = 1. The two definitions differ if an infimum is not
    attained. For x^2 / 2 at x = delta + epsilon, every mean over an open ball exceeds epsilon, but
    the value is epsilon. "Uniformly distributed over S" makes sense for finite sets and for sets of
    positive volume. The infimum is the same for both kinds of sets.
    """

    @ledger.identity("the absolute value: stationary within delta of 0, nowhere else",
                     x=Interval(-3.0, 3.0), reach=1.0, mutant={"reach": 2.0})  # fmt: skip
    def absolute(x, reach):
        """Use delta = 1 and two points.

        If the ball contains both sides of 0, put one point on each side.
        """
        left, right = x - 0.999999 * reach, x + 0.999999 * reach
        least = abs(np.sign(left) + np.sign(right)) / 2
        if abs(abs(x) - 1) < 1e-5:
            return None
        return 1 + least, 1 + float(abs(x) >= 1)

    @ledger.falsify("piecewise linear functions, S of n points", slopes=SLOPES, n=Integer(1, 200),
                    half=0.5, mutant={"half": 0.45}, extremal=[
                        {"slopes": np.array([-1.0, 1, 1, 1]), "n": 1},
                    ])  # fmt: skip
    def finite(slopes, n, half):
        """Count the points on the pieces with the least and the largest slope."""
        low, high, count = slopes.min(), slopes.max(), np.arange(n + 1)
        best = np.abs((count * low + (n - count) * high) / n).min()
        return best, hull_value(slopes) + half * (high - low) / n + ROUNDING


@statement("zoo.def2.1")
def goldstein(ledger):
    """Let delta > 0 and h: R^d -> R be differentiable. The Goldstein delta-subdifferential of h at
    x is the convex hull of all grad h(y) with y in the open ball B(x, delta), and norm(grad
    h(x))_delta is the infimum of norm(g) over g in it. A point x* is a Goldstein (delta,
    epsilon)-stationary point of h if norm(grad h(x*))_delta <= epsilon.

    For the norm at a distance r >= delta from its minimum, the value is sqrt(1 - (delta/r)^2). This
    value is less than 1, although every gradient has norm 1. So the convex hull matters. On a line,
    the value is the distance of 0 from an interval of slopes. The ball B(x, delta) is open. So for
    abs(x) at x = delta, the value is 1. If the gradient is continuous, the open and the closed ball
    give the same value. The definition should be a union of the one-point sets {grad h(y)}, but the
    printed definition omits the braces.
    """
    outer = {"delta": Interval(0.01, 0.99), "reach": 1.0}

    @ledger.falsify("the norm: no vector of the hull is shorter", **outer, mutant={"reach": 1.2},
                    angle=Interval(0.0, math.pi), share=SHARE,
                    extremal=[{"delta": s, "angle": math.acos(-s), "share": 1 - 1e-9}
                              for s in (0.1, 0.5, 0.9)])  # fmt: skip
    def supported(delta, angle, share, reach):
        """Return a bound on the value at x = (1, 0), from a gradient in the ball."""
        y = np.array([1.0, 0.0]) + delta * share * reach * np.array([np.cos(angle), np.sin(angle)])
        return math.sqrt(1 - delta**2), y[0] / math.hypot(*y) + ROUNDING

    @ledger.identity("the norm: two gradients of the hull attain it", tolerance=1e-7,
                     delta=Interval(0.01, 0.9), two=True, mutant={"two": False})  # fmt: skip
    def attained(delta, two):
        gradients = tangents(delta, 1.0)
        return math.sqrt(1 - delta**2), np.linalg.norm(gradients.mean(axis=0) if two else
                                                       gradients[0])  # fmt: skip

    line = {"places": Array(Interval(-6, 6), (3,)), "signs": Array(UNIT, (3,)), "x": Integer(-6, 6)}
    line |= {"radius": Integer(1, 6), "cap": Choice((2, 4, math.inf)), "floor": 1.0, "shift": 0}
    line |= {"mutant": {"shift": 1}, "tolerance": 1e-9, "examples": 100}

    @ledger.identity("on a line, by `stationarity`: three items with rounded kinks", **line)
    def exact_on_a_line(places, signs, x, radius, cap, shift):
        """All kinks are integers, so the slope at the middle of each unit interval is enough."""
        items = np.stack([np.where(signs < 0, -1.0, 1.0), np.round(places)], axis=1)
        found = stationarity_in_one_dimension(
            items, loss=CappedAbsolute(3.0, cap), radius=radius, points=[float(x)]
        )
        return found[0], cells(items, x + shift, radius, cap)

    @ledger.identity("on a line, by gradients at random points of the ball", **line)
    def sampled_on_a_line(places, signs, x, radius, cap, shift):
        """Each of at most 12 intervals is missed with probability (11/12)^400 < 1e-15."""
        items = np.stack([np.where(signs < 0, -1.0, 1.0), np.round(places)], axis=1)
        found = stationarity_estimate(
            items, 1, loss=CappedAbsolute(3.0, cap), radius=radius, point=[float(x)],
            n_gradients=400, rng=np.random.default_rng(0),
        )  # fmt: skip
        return found[0], cells(items, x + shift, radius, cap)

    for share, words in ((1.0, "at least the value"), (-1.0, "at most 1.2 times the value")):

        @ledger.sweep(f"the norm, by gradients at random points: {words}", sign=share,
                      delta=[0.3, 0.6, 0.9], times=1.0, mutant={"times": 1.2})  # fmt: skip
        def sampled(delta, sign, times):
            """norm(y) has its minimum at 0; x is at distance 1 from it."""
            found = stationarity_estimate(
                np.zeros((1, 2)), 2, loss=Norm(), radius=delta, point=[1.0, 0.0],
                n_gradients=400, rng=np.random.default_rng(0),
            )  # fmt: skip
            value = math.sqrt(1 - delta**2)
            if sign > 0:
                return times * times * value, found.min() * (1 + ROUNDING)
            return times * found.max(), 1.2 * value

    @ledger.falsify("on a line: the distance of 0 from the slopes in the ball", kinks=KINKS,
                    slopes=SLOPES, weights=Array(SHARE, (4,)), hull=True, mutant={"hull": False},
                    extremal=[{"kinks": np.array([-0.5, 0.0, 0.5]), "weights": np.ones(4),
                               "slopes": np.array([-1.0, 1, -1, 1])}])  # fmt: skip
    def interval(kinks, slopes, weights, hull):
        found = met(kinks, slopes, 0.0, 1.0)
        weights = weights[: found.size] + 1e-3
        value = hull_value(found) if hull else np.abs(found).min()
        return value, abs(weights @ found) / weights.sum() + ROUNDING


@statement("zoo.def2.1.note")
def means_bound_the_value(ledger):
    """For a differentiable h, norm(grad h(x))_delta is at most the infimum over subsets S of B(x,
    delta) of norm((1/card S) sum_(y in S) grad h(y)).

    A mean is a convex combination, so the bound holds exactly, even for sets of positive volume.
    Over finite sets, the bound is an equality if the gradient is continuous. In this case, points
    that lie close together can approximate any weights. For the norm in the plane, two points
    attain the bound in the limit.
    """

    @ledger.falsify("the norm in the plane, S of four points", delta=Interval(0.01, 0.99),
                    moves=Array(UNIT, (4, 2)), hull=True, mutant={"hull": False})  # fmt: skip
    def four(delta, moves, hull):
        inside = moves / np.maximum(1, np.linalg.norm(moves, axis=1, keepdims=True))
        mean = units(np.array([1.0, 0.0]) + delta * (1 - 1e-9) * inside).mean(axis=0)
        value = math.sqrt(1 - delta**2) if hull else 1.0
        return value, np.linalg.norm(mean) + ROUNDING

    ledger.falsify("the two points at the widest angle", delta=Interval(0.01, 0.9), least=1.0,
                   mutant={"least": 1.001}, extremal=[{"delta": 0.9}])(widest)  # fmt: skip


def widest(delta, least):
    return least * math.sqrt(1 - delta**2), np.linalg.norm(tangents(delta, 1.0).mean(axis=0))


@statement("zoo.cor2.3")
def smoothing_keeps_stationary_points(ledger):
    """Suppose F: R^d -> R is L-Lipschitz. Then for any epsilon, delta > 0, norm(grad
    Fhat_delta(x))_delta <= epsilon implies norm(grad F(x))_(2 delta) <= epsilon.

    On a line, the value is the distance of 0 from an interval of slopes. So the check is exact.
    Every linear F attains the bound. The radius 2 delta cannot be smaller. For s below 2, the
    function abs(x - s delta) has only the gradient -1 within s delta of 0. The smoothing of this
    function has a value of s - 1 at 0. The proof needs the fact that the mean of gradients over the
    ball B(y, delta) lies in the hull of these gradients. For the open ball, this fact also holds.
    The proof also needs norm(y - x) < delta. In place of norm(y - x) < delta, the proof writes
    norm(y - x) <= delta.
    """
    bent = {"kinks": np.array([1.99, 2.5, 3.0]), "slopes": np.array([-1.0, 1, 1, 1])}
    flat = {"kinks": np.array([1.0, 2.0, 3.0]), "slopes": np.full(4, 0.5)}
    domain = {"kinks": KINKS, "slopes": SLOPES, "factor": 2.0, "mutant": {"factor": 1.9}}

    @ledger.falsify("on a line", d=1, extremal=[bent, flat], **domain)
    @ledger.falsify("F(<e, x>) in R^2", d=2, extremal=[bent, flat], **domain)
    def corollary(kinks, slopes, d, factor):
        """Use delta = 1 and x = 0. On a line, slopes of a smoothing are extreme at breakpoints."""
        at = np.concatenate([kinks - 1, kinks + 1, [-1, 1], [] if d == 1 else
                             np.linspace(-1, 1, 41)]).clip(-1, 1)  # fmt: skip
        near = hull_value(smoothed(kinks, slopes, at, 1.0, d))
        return hull_value(met(kinks, slopes, 0.0, factor)), near + ROUNDING

    @ledger.step("the gradient of the smoothing is a difference of two values").identity(
        "on a line", y=Interval(-3.0, 3.0), delta=Interval(0.1, 3.0), kinks=KINKS, slopes=SLOPES,
        tolerance=1e-9, floor=1e-3, width=2.0, mutant={"width": 1.0},
    )  # fmt: skip
    def difference(y, delta, kinks, slopes, width):
        def whole(t):
            bends = np.maximum(t - np.sort(kinks), 0)
            return slopes[0] * t + np.diff(slopes) @ bends

        found = (whole(y + delta) - whole(y - delta)) / (width * delta)
        return found, smoothed(kinks, slopes, y, delta)

    @ledger.step("grad Fhat_delta(y) lies in the subdifferential of F at y").falsify(
        "on a line and in R^5", y=Interval(-3.0, 3.0), delta=Interval(0.1, 3.0), kinks=KINKS,
        slopes=SLOPES, d=Choice((1, 5)), reach=1.0, mutant={"reach": 0.5},
        extremal=[{"y": 0.0, "delta": 1.0, "d": 1, "kinks": np.array([0.8, 0.9, 3.0]),
                   "slopes": np.array([-1.0, 0, 1, 1])}],
    )  # fmt: skip
    def averaged(y, delta, kinks, slopes, d, reach):
        """Compare the slope's distance from the middle of the slopes with half their spread."""
        found = met(kinks, slopes, y, reach * delta)
        middle, half = (found.max() + found.min()) / 2, (found.max() - found.min()) / 2
        return abs(smoothed(kinks, slopes, y, delta, d) - middle), half + ROUNDING

    @ledger.step("the subdifferential at y with radius delta lies in that at x with 2 delta").sweep(
        "the farthest point of one ball from the center of the other", factor=2.0,
        share=[i / 100 for i in range(100)], mutant={"factor": 1.9},
    )  # fmt: skip
    def included(share, factor):
        return share + 1.0, factor


@statement("zoo.sec4.1.equiv", expected="refuted")
def equivalence(ledger):
    """Finding a (2 delta, epsilon)-stationary point of a nonsmooth objective F is equivalent to
    finding a (delta, epsilon)-stationary point of its uniform smoothing Fhat_delta.

    Only one direction of the equivalence holds. This direction is Corollary 2.3, and the paper uses
    only this direction. Section 2 says "sufficient". The other direction fails. For example, the
    function abs(y - s delta) has 0 in its subdifferential of radius 2 delta at x = 0. At 0, the
    smoothing of this function has the value s - 1, which may be as large as L. The remaining
    statement is trivial. The remaining statement says that (2 delta, epsilon) for F follows from
    (delta, epsilon) for the smoothing.
    """

    @ledger.falsify(
        "F(y) = abs(y - s delta) at x = 0", s=Interval(1.0, 1.999), delta=RADIUS,
        extremal=[{"s": 1.9, "delta": 1.0}],
        lhs="norm(grad Fhat(x))_delta", rhs="norm(grad F(x))_(2 delta)",
    )  # fmt: skip
    def converse(s, delta):
        """Use slopes of the smoothing on (-delta, delta), from -1 to (y - s delta)/delta."""
        ends = np.clip((np.array([-delta, delta]) - s * delta) / delta, -1, 1)
        slopes = [-1, 1] if s < 2 else [-1]  # of F on (-2 delta, 2 delta)
        return max(0, ends[0], -ends[1]), max(0, min(slopes), -max(slopes))

    repair = ledger.repair(
        "a (delta, epsilon)-stationary point of Fhat_delta is a (2 delta, epsilon)-stationary "
        "point of F; the converse does not hold"
    )

    @repair.falsify("on a line", kinks=KINKS, slopes=SLOPES, factor=2.0, mutant={"factor": 1.9},
                    extremal=[{"kinks": np.array([1.99, 2.5, 3.0]),
                               "slopes": np.array([-1.0, 1, 1, 1])}])  # fmt: skip
    def sufficient(kinks, slopes, factor):
        at = np.concatenate([kinks - 1, kinks + 1, [-1, 1]]).clip(-1, 1)
        near = hull_value(smoothed(kinks, slopes, at, 1.0))
        return hull_value(met(kinks, slopes, 0.0, factor)), near + ROUNDING

    ledger.consequence(
        "The proofs do not use the direction that fails. But a lower bound for the smoothing "
        "would not carry over to F.",
        harm="the wording",
    )


# --- privacy ---


def renyi(p, q, alpha):
    return math.log(p**alpha * q ** (1 - alpha) + q**alpha * p ** (1 - alpha)) / (alpha - 1)


@statement("zoo.sec2.dp")
def privacy(ledger):
    """Two datasets of size M are neighbouring if they differ only in one data point. A randomized
    algorithm A is (epsilon, delta)-DP for epsilon, delta > 0 if P{A(Z) in E} <= e^epsilon P{A(Z')
    in E} + delta for all neighbouring Z, Z' and measurable E. It is (alpha, rho)-RDP for alpha > 1
    and rho > 0 if D_alpha(A(Z) || A(Z')) <= rho for all neighbouring Z, Z', where D_alpha is the
    Renyi divergence.

    These statements are definitions. Other rows use the divergences. For example, randomized
    response is exactly (epsilon, 0)-DP. The Renyi divergence of randomized response is at most
    alpha epsilon^2 / 2. For small epsilon, the Renyi divergence is close to alpha epsilon^2 / 2.
    "RDP" in the results means (alpha, alpha rho^2 / 2) for all alpha > 1. In this statement, delta
    and epsilon describe privacy. In other statements, delta and epsilon describe stationarity.
    """
    words = [a + b for a in "xyz" for b in "xyz"]
    events = np.array([[i >> j & 1 for j in range(4)] for i in range(16)])

    @ledger.identity("the largest P(E) - exp(epsilon) P'(E) over all events", epsilon=SHARE,
                     weights=Array(SHARE, (2, 4)), base=math.e, mutant={"base": 2.0},
                     tolerance=1e-11)  # fmt: skip
    def largest(weights, epsilon, base):
        p, q = (weights + 1e-9) / (weights + 1e-9).sum(axis=1, keepdims=True)
        return 1 + (events @ (p - base**epsilon * q)).max(), 1 + hockey_stick(p, q, epsilon)

    @ledger.identity("randomized response is exactly (epsilon, 0)-DP", epsilon=Interval(0.01, 5.0),
                     floor=1.0, share=1.0, mutant={"share": 0.9})  # fmt: skip
    def response(epsilon, share):
        p = np.array([math.exp(epsilon), 1]) / (1 + math.exp(epsilon))
        return hockey_stick(p, p[::-1], share * epsilon), 0.0

    @ledger.falsify("and (alpha, alpha epsilon^2 / 2)-RDP", epsilon=Interval(1e-2, 5.0, log=True),
                    alpha=ORDER, half=0.5, mutant={"half": 0.45},
                    extremal=[{"epsilon": 0.01, "alpha": 2.0}])  # fmt: skip
    def divergence(epsilon, alpha, half):
        p = 1 / (1 + math.exp(-epsilon))
        return renyi(p, 1 - p, alpha), half * alpha * epsilon**2

    @ledger.identity("neighbours replace one data point", most=1, mutant={"most": 2},
                     cases=[{"left": a, "right": b} for a in words for b in words])  # fmt: skip
    def admitted(left, right, most):
        data = [[[float(ord(x))] for x in word] for word in (left, right)]
        differ = sum(x != y for x, y in zip(left, right, strict=True))
        try:
            NeighborPair(*data, relation=Relation.REPLACE_USER)
        except PairError:
            return 0, differ <= most
        return 1, differ <= most


# --- what each component is for ---


@statement("zoo.sec1.omit", expected="ambiguous")
def without_a_component(ledger):
    """Neither utilizing the O2NC technique nor sampling d i.i.d. estimators for each data point
    results in an additional dimension dependence of sqrt(d).

    Use one direction for each item instead of d directions. For linear losses, the estimates of
    gradient differences always have the length d L norm(x - y)/delta. With d directions, the error
    of the mean is sqrt(d) times smaller than with one direction. So with one direction, the error
    grows by sqrt(d). But the data complexity is proportional to the square of the error, so the
    data complexity grows by d. The paper does not say which of these two quantities "dimension
    dependence" describes. The number of values of f is the same for one direction and for d
    directions. The claim that O2NC saves sqrt(d) is a comparison with Chen et al. (2023), which is
    not judged here.
    """
    ledger.reading("the error of an estimate").identity(
        "standard deviation with one direction over that with d of them", d=[2, 5, 50], power=0.5,
        mutant={"power": 1.0}, tolerance=1e-9,
    )(one_for_each)  # fmt: skip

    @ledger.reading("the data complexity", fails=True).sweep(
        "M at which a T + b/sqrt(T) is epsilon, a = 2/M, over that with d directions", d=[10**4],
        epsilon=0.01, lhs="growth of M", rhs="ten times sqrt(d)",
    )  # fmt: skip
    def data(d, epsilon):
        grown = []
        for b in (d**0.5, d):
            T = (2 * b / epsilon) ** 2
            grown.append(4 * T / epsilon)
        return grown[1] / grown[0], 10 * d**0.5

    ledger.consequence("Sampling d directions is worth more than stated.", harm="the wording")


def one_for_each(d, power):
    """Return the length of one Diff of <e, x> along e, divided by sqrt(d) L norm(x - y)/delta.

    The length does not depend on the direction, and the mean over directions is 0. So d directions
    make the error sqrt(d) times smaller.
    """
    e, u = np.eye(d)[:1], np.full((1, 1, d), d**-0.5)
    found = difference_estimate(
        e, 1, loss=Linear(), radius=2.0, point=0.1 * e[0], previous=np.zeros(d), directions=u,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    return np.linalg.norm(found) / (math.sqrt(d) * 0.1 / 2.0), d**power


@statement("zoo.sec4.1.noise")
def noise_of_the_tree(ledger):
    """With B_1 = T and B_2 = 1 the tree mechanism adds noise of order Otilde(d^2 L^2/(rho^2 T^2))
    to each gtilde_t^k: compared to the naive approach, of variance O(d^2 L^2/rho^2), it reduces
    noise by a factor of T^2.

    In each coordinate, the variance is card Node(t) sigma^2. For T >= 2, this variance is at most 2
    ln(T) * 2 ln(T) s^2/rho^2 with s = 4 d L/T. So the factor is T^2, up to 64 ln(T)^2. As for the
    naive oracle, the square of the norm is d times the variance. Section 4.1 uses B_1 = T, while
    Theorem 4.9 uses B_1 = T + 1.
    """

    @ledger.falsify(
        "the largest variance of a coordinate", T=ROUNDS, d=DIMENSION, rho=RHO, factor=64.0,
        mutant={"factor": 30.0}, extremal=[{"T": 3, "d": 1, "rho": 1.0}],
    )  # fmt: skip
    def variance(T, d, rho, factor):
        sigma = corollary_4_4_sigma(T, 1, d, rho=rho, lipschitz=1.0)
        noises = max(len(node(t)) for t in {T, 2 ** ((T + 1).bit_length() - 1) - 1})
        return noises * sigma**2, factor * math.log(T) ** 2 * (d / (rho * T)) ** 2

    @ledger.sharper("the variance for all T, against the naive 4 d^2 L^2/rho^2").sweep(
        "smaller by a factor of T^2 / (16 ln(T)^2)", T=[8, 64, 1024, 10**5], method=Method.NUMERIC,
        mutant=0.5,
    )  # fmt: skip
    def against(T):
        noises = (T + 1).bit_length() - 1
        sigma = corollary_4_4_sigma(T, 1, 10, rho=1.0, lipschitz=1.0)
        return noises * sigma**2, 16 * math.log(T) ** 2 / T**2 * 4 * 100
