"""Private zeroth-order optimization: the conversion in Remark 4.1, Lemma 4.6 and Corollary 4.7."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
from scipy.special import roots_legendre

from algorithms.zeroth_order.bounds import stationarity_bound
from algorithms.zeroth_order.plans import Naive, Plan, VarianceReduced
from audits.zeroth_order import transcribed
from audits.zeroth_order.conventions import FEW, SHARE, UNIT
from dpaudit.ledger import statement
from dpaudit.neighbors import Integer, Interval
from dpaudit.properties import Array

ROUNDING = 1e-9
SIZE = Interval(0.1, 10.0, log=True)

# --- Remark 4.1 ---


def projected(step, domain):
    return step * min(1.0, domain / max(np.linalg.norm(step), 1e-300))


WALK = {"raw": Array(UNIT, (5, "d")), "s": Array(SHARE, (5,)), "d": FEW}


def walk(raw, s, domain=1.0):
    """Return w_1, ..., w_5 and the steps, for x_1 = 0 and steps of length at most D."""
    steps = np.array([projected(step, 1.0) for step in raw]) * domain
    x = np.cumsum(steps, axis=0) - steps
    return x + s[:, None] * steps, steps


def straight(s):
    return {"raw": np.ones((5, 1)), "s": np.array(s, dtype=float)}


@statement("zoo.rem4.1")
def distance_moved(ledger):
    """In Algorithm 3, w_(t+1)^k = w_t^k + (1 - s_t^k) Delta_t^k + s_(t+1)^k Delta_(t+1)^k.
    Therefore, if norm(Delta_t^k) <= D for all t, k, then norm(w_(t+1)^k - w_t^k) <= 2 D, and in
    general norm(w_t^k - w_(t')^k) <= 2 abs(t - t') D for all t, t' in [T].

    For successive rounds, the bound 2 D is attained by s_t = 0 and s_(t+1) = 1 on a straight path.
    For all t != t', the bound (abs(t - t') + 1) D is enough. For distant rounds, this bound is
    about half of the printed bound. The mean of norm(w_(t+1) - w_t)^2 over s is at most 7/6 D^2,
    not 4 D^2. Epochs are separate, because w_1 of an epoch is never compared with w_T of the
    previous epoch.
    """

    @ledger.identity("random steps", late=0, mutant={"late": 1}, floor=1.0, **WALK)
    def recursion(raw, s, late):
        w, steps = walk(raw, s)
        t = np.arange(4)
        own = (1 - s[:-1, None]) * steps[:-1]
        return w[1:], w[t] + own + s[1:, None] * steps[t + 1 - late]

    far = {**WALK, "extremal": [straight([0, 1, 0, 0, 1]), straight([0, 0, 0, 0, 1])]}

    @ledger.sharper("(abs(t - t') + 1) D for t != t'").falsify(
        "all pairs of five rounds", one=1.0, slope=1.0, mutant={"one": 0.9}, **far
    )
    @ledger.falsify("all pairs of five rounds", one=0.0, slope=2.0, mutant={"slope": 1.9}, **far)
    def pairs(raw, s, one, slope):
        w, _ = walk(raw, s)
        gaps = [(np.linalg.norm(w[j] - w[i]), slope * (j - i) + one)
                for i, j in itertools.combinations(range(5), 2)]  # fmt: skip
        return max(gap / bound for gap, bound in gaps), 1 + ROUNDING

    @ledger.sharper("E norm(w_(t+1) - w_t)^2 <= 7/6 D^2 over uniform s").falsify(
        "two steps, of which the second may depend on s_t", most=7 / 6, mutant={"most": 1.1},
        first=Array(UNIT, ("d",)), then=Array(UNIT, (3, "d")), d=FEW,
        extremal=[{"first": np.ones(1), "then": np.ones((3, 1))}],
    )  # fmt: skip
    def squares(first, then, most):
        """Use three Gauss-Legendre nodes, for which the mean and the variance of s are exact."""
        s, weights = uniform_nodes(3)
        first, total = projected(first, 1.0), 0.0
        for i, j in itertools.product(range(3), repeat=2):
            move = (1 - s[i]) * first + s[j] * projected(then[i], 1.0)
            total += weights[i] * weights[j] * (move @ move)
        return total, most + ROUNDING


@functools.cache
def uniform_nodes(n):
    nodes, weights = roots_legendre(n)
    return (1 + nodes) / 2, weights / 2


# --- Lemma 4.6 and Corollary 4.7, exactly, on a line ---

KNOTS = np.linspace(-4, 4, 17)


def slope(v, x):
    return np.interp(x, KNOTS, v)


def value(v, x):
    """Return F exactly, as the integral of a piecewise linear slope with F(-4) = 0."""
    at = np.concatenate([[0.0], np.cumsum((v[1:] + v[:-1]) / 2 * 0.5)])
    k = np.clip(((x + 4) / 0.5).astype(int), 0, 15)
    rest = x - KNOTS[k]
    inside = at[k] + v[k] * rest + (v[k + 1] - v[k]) * rest**2
    beyond = np.where(x < -4, v[0] * (x + 4), at[-1] + v[-1] * (x - 4))
    return np.where(np.abs(x) <= 4, inside, beyond)


def least(v):
    """Return inf F, which is attained at a knot or at a point with slope 0."""
    left, right = v[:-1], v[1:]
    cross = (left < 0) & (right > 0)
    zeros = KNOTS[:-1][cross] + 0.5 * left[cross] / (left[cross] - right[cross])
    return value(v, np.concatenate([KNOTS, zeros])).min()


def stationarity(v, x, radius):
    """Return the slope closest to 0 in the interval of slopes.

    See Definition 2.1.
    """
    inside = np.abs(KNOTS - x[..., None]) < radius
    low, high = slope(v, x - radius), slope(v, x + radius)
    most = np.maximum(np.maximum(low, high), np.where(inside, v, -np.inf).max(axis=-1))
    fewest = np.minimum(np.minimum(low, high), np.where(inside, v, np.inf).min(axis=-1))
    return np.maximum(0.0, np.maximum(fewest, -most))


@functools.cache
def shares(count):
    """Return nodes for s_1, ..., s_count, and their weights."""
    n = {1: 64, 2: 24, 3: 12, 4: 7}.get(count, 1)
    s, weights = uniform_nodes(n)
    if n == 1:
        return np.full((1, count), 0.5), np.ones(1)
    grids = np.meshgrid(*[s] * count, indexing="ij")
    both = np.meshgrid(*[weights] * count, indexing="ij")
    return np.stack(grids, -1).reshape(-1, count), np.prod(both, axis=0).ravel()


def converted(v, errors, T, K, radius, first, step, honest, gap, frozen, smooth, extra):
    """Return both sides of Lemma 4.6, or of Corollary 4.7 if F is smoothed.

    In each epoch, the learner starts with `first` D. After this start, the learner steps against
    the true gradient plus the error.
    """
    if K * T > 4 and K < 10:
        return None
    v = np.concatenate([[-abs(v[0])], v[1:-1], [abs(v[-1])]])
    s, weights = shares(K * T)
    s = 0 * s if frozen else s
    domain, x = radius / T, np.zeros(len(s))

    def grad(w):
        if not smooth:
            return slope(v, w)
        return (value(v, w + radius) - value(v, w - radius)) / (2 * radius)

    total, found = np.zeros(len(s)), np.zeros(len(s))
    for k in range(K):
        delta, rows = np.full(len(s), first * domain), []
        for t in range(T):
            w = x + s[:, k * T + t] * delta
            noisy = honest * grad(w) + errors[t]
            rows.append((w, delta, grad(w), noisy))
            x = x + delta
            delta = np.clip(delta - step * noisy, -domain, domain)
        w, steps, exact, noisy = (np.array(part) for part in zip(*rows, strict=True))
        u = -domain * np.sign(exact.sum(axis=0))
        total += (noisy * (steps - u)).sum(axis=0)  # Reg_T(u)
        total += ((exact - noisy) * (steps - u)).sum(axis=0)
        found += stationarity(v, w.mean(axis=0), (1 + smooth) * radius) / K
    most = np.abs(v).max()
    optimal = value(v, np.zeros(1))[0] - least(v) + extra * most * radius
    bound = (gap * optimal + weights @ total) / (domain * K * T)
    return weights @ found, bound + 0.01 * most * (K * T < 10) + ROUNDING


LINE = {"v": Array(UNIT, (17,)), "errors": Array(Interval(-3.0, 3.0), (3,)), "T": Integer(1, 3)}
LINE |= {"K": Integer(1, 3), "radius": Interval(0.1, 1.0), "first": UNIT, "honest": UNIT}
LINE |= {"step": Interval(0.01, 10.0, log=True), "gap": 1.0, "frozen": False}
SLIDE = {"errors": np.zeros(3), "T": 2, "first": 1.0, "honest": 1.0, "step": 1.0}
LONG = {**SLIDE, "v": np.where(KNOTS < 3.3, -1.0, 0.0), "K": 60, "radius": 0.05}
SHORT = {**SLIDE, "v": np.where(KNOTS < 3.3, -1.0, 0.0), "K": 2, "radius": 1.0}
VALLEY = {**SLIDE, "v": np.clip(8 * (KNOTS - 0.25), -1, 1), "K": 1, "radius": 1.0, "step": 9.0}
VALLEY["errors"] = np.array([3.0, 0.0, 0.0])


@statement("zoo.lem4.6")
def conversion(ledger):
    """For any F: R^d -> R that is differentiable with F(x_1) - inf F <= F*, if the domain of A is
    bounded by D = delta/T, then the output wbar of Algorithm 3 satisfies E norm(grad F(wbar))_delta
    <= F*/(DKT) + sum_(k=1..K) E Reg_T(u^k)/(DKT) + sum_(k=1..K) sum_(t=1..T) E <grad F(w_t^k) -
    gtilde_t^k, Delta_t^k - u^k>/(DKT), where u^k = -D sum_t grad F(w_t^k)/norm(sum_t grad
    F(w_t^k)).

    On a line, the check is exact. The check uses differentiable F with piecewise linear slopes. The
    errors of gtilde are arbitrary, because the lemma assumes nothing about these errors. A
    quadrature computes means over uniform s. As K grows, the bound is tight for a path that moves
    down a long slope. The proof holds in every dimension. There are three misprints. In F(x_(T+1))
    - F(x_1) <= F*, the left side should be the opposite difference. The printed u_t^k should be
    u^k. The first sum should be over i. If the gradients sum to 0, any u^k of length at most D is
    suitable. The proof needs three facts that the paper does not state. Delta_t must be independent
    of s_t. F must be integrable along segments. The function x^2 sin(1/x^2) is not integrable along
    segments. For this function, E <grad F(w_t), Delta_t> does not exist. For OSD, the regret is
    defined with the comparator u^k, which depends on all gradients.
    """
    ledger.misprint("F(x_(T+1)) - F(x_1) <= F*", "F(x_1) - F(x_(T+1)) <= F*")
    case = {**LINE, "smooth": False, "extra": 0.0, "extremal": [LONG, SHORT, VALLEY]}
    ledger.falsify("piecewise quadratic F, arbitrary errors", mutant={"gap": 0.5}, **case)(
        converted
    )
    ledger.falsify("the same, with s not 0", mutant={"frozen": True}, **case)(converted)

    @ledger.step("the fundamental theorem of calculus over uniform s").identity(
        "waves in d dimensions, by quadrature", x=Array(UNIT, ("d",)), delta=Array(UNIT, ("d",)),
        k=Array(Interval(-2.0, 2.0), ("d",)), d=FEW, n=24, tolerance=1e-9, floor=1.0,
        mutant={"n": 1},
    )  # fmt: skip
    def calculus(x, delta, k, n):
        s, weights = uniform_nodes(n)
        w = x + s[:, None] * delta
        along = (np.cos(3 * w @ k) * (3 * k @ delta)) @ weights
        return np.sin(3 * (x + delta) @ k) - np.sin(3 * x @ k), along

    @ledger.step("the decomposition, and <sum of gradients, u> = -D norm(sum)").identity(
        "random vectors", g=Array(UNIT, (3, "d")), noisy=Array(UNIT, (3, "d")), d=FEW, size=1.0,
        steps=Array(UNIT, (3, "d")), tolerance=1e-9, floor=1.0, mutant={"size": 0.9},
    )  # fmt: skip
    def decomposed(g, noisy, steps, size):
        total = g.sum(axis=0)
        if np.linalg.norm(total) < 1e-6:
            return None
        u = -size * total / np.linalg.norm(total)
        parts = (noisy * (steps - u)).sum() + ((g - noisy) * (steps - u)).sum()
        return (g * steps).sum(), -np.linalg.norm(total) + parts


@statement("zoo.cor4.7")
def conversion_of_the_smoothing(ledger):
    """Suppose F: R^d -> R is differentiable and L-Lipschitz with F(x_1) - inf F <= F*, and the
    domain of A is bounded by D = delta/T. Then E norm(grad F(wbar))_(2 delta) <= (F* + 2 L
    delta)/(DKT) + sum_(k=1..K) E Reg_T(uhat^k)/(DKT) + sum_(k=1..K) sum_(t=1..T) E <grad
    Fhat_delta(w_t^k) - gtilde_t^k, Delta_t^k - uhat^k>/(DKT), where uhat^k = -D sum_t grad
    Fhat_delta(w_t^k)/norm(sum_t grad Fhat_delta(w_t^k)).

    The claim follows from Lemma 4.6 for Fhat and then from Corollary 2.3. On a line, the check is
    exact, like the check of the lemma. As K grows, the bound is tight. The term 2 L delta is larger
    than necessary. Because inf Fhat >= inf F, F* + L delta d/(d + 1) is enough. At d = 1, the added
    term is then a quarter of 2 L delta. The proof omits gradient signs in its last displays.
    """
    case = {**LINE, "smooth": True, "extremal": [LONG, SHORT]}
    words = "piecewise quadratic F, arbitrary errors"
    ledger.falsify(words, extra=2.0, mutant={"gap": 0.5}, **case)(converted)
    sharper = ledger.sharper("F* + L delta d/(d + 1) for F* + 2 L delta")
    sharper.falsify(words, extra=0.5, mutant={"gap": 0.8}, **case)(converted)

    sizes = {"d": Integer(1, 50), "T": Integer(1, 40), "K": Integer(1, 9), "eta": SIZE, "F": SIZE}
    sizes |= {"L": SIZE, "delta": SIZE, "sigma": SIZE, "more": 1.0, "mutant": {"more": 1.1}}
    sizes |= {"tolerance": 1e-9, "examples": 100}

    @ledger.identity("the three terms, by `bounds`", **sizes)
    def by_bounds(d, T, K, eta, F, L, delta, sigma, more):
        plan = Plan(T, K, delta, delta / T, eta, VarianceReduced(T + 1, 2, sigma))
        found = stationarity_bound(plan, d, lipschitz=L, gap=F, constants="printed")
        square = transcribed.squared_error(d, L, T, delta / T, delta, T + 1, 2)
        tree = transcribed.tree_variance(d, T, more * sigma)
        moment, roots = 3 * (square + L**2 + tree), (math.sqrt(square), math.sqrt(tree))
        lines = transcribed.corollary_4_7(F, L, delta, delta / T, K, T, eta, moment, *roots)
        terms = [found.optimality, found.regret, found.error + found.noise]
        return [*terms, found.total], [*lines, sum(lines)]

    @sharper.identity("the naive oracle: fresh errors add up in squares, by `bounds`", **sizes)
    def naive_by_bounds(d, T, K, eta, F, L, delta, sigma, more):
        """See zoo.appE.inner: D sqrt(T E norm(error)^2) in place of 2 D T E norm(error)."""
        plan = Plan(T, K, delta, delta / T, eta, Naive(3, sigma))
        found = stationarity_bound(plan, d, lipschitz=L, gap=F)
        D, single = delta / T, d * d / (d - 1) if d > 1 else 1.0
        errors = [L * math.sqrt(single / 3), more * sigma * math.sqrt(d)]
        moment = errors[0] ** 2 + L**2 + errors[1] ** 2
        lines = [
            (F + L * delta * d / (d + 1)) / (D * K * T),
            (D**2 / (2 * eta) + eta / 2 * T * moment) / (D * T),
            *(D * math.sqrt(T) * error / (D * T) for error in errors),
        ]
        return [found.optimality, found.regret, found.error, found.noise], lines

    @ledger.step("Fhat(x_1) - inf Fhat <= F* + 2 L delta").falsify(
        "piecewise quadratic F", v=LINE["v"], radius=LINE["radius"], extra=2.0,
        mutant={"extra": 0.0},
        extremal=[{"v": np.sign(KNOTS), "radius": 1.0}],
    )  # fmt: skip
    @sharper.falsify(
        "Fhat(x_1) - inf Fhat, against F* + L delta / 2", v=LINE["v"], radius=LINE["radius"],
        extra=0.5, mutant={"extra": 0.2}, extremal=[{"v": comb(), "radius": 1.0}],
    )  # fmt: skip
    def gaps(v, radius, extra):
        """Average Fhat over the interval.

        A grid gives an upper bound of the infimum of Fhat.
        """
        v = np.concatenate([[-abs(v[0])], v[1:-1], [abs(v[-1])]])
        s, weights = uniform_nodes(20)
        x = np.linspace(-4, 4, 65)
        smooth = value(v, x[:, None] + radius * (2 * s - 1)) @ weights
        gap = value(v, np.zeros(1))[0] - least(v)
        return smooth[32] - smooth.min(), gap + extra * np.abs(v).max() * radius + 1e-3


def comb():
    """Return a function with a valley at 0 and a flat, wide valley of equal depth on the left."""
    v = np.where(KNOTS > 0, 1.0, 0.0)
    v[5], v[7] = 1.0, -1.0
    return v


@statement("zoo.lem4.6.rad")
def within_the_ball(ledger):
    """norm(w_t^k - wbar^k) <= D T = delta for all t in [T], so norm(grad F(wbar^k))_delta <=
    norm((1/T) sum_(t=1..T) grad F(w_t^k)).

    The distance of w_t^k from wbar^k is at most ((T + 1)/2 - 1/T) D. A straight path with s_1 = 0
    and s_t = 1 for all other t attains this distance. This distance is below delta, as the open
    ball requires. For large T, the distance is about half of delta. The choice D = 2 delta/(T + 1)
    would also be enough. With this choice, the steps would be nearly twice as long. If two points
    are equal, the mean of the gradients is still a convex combination.
    """
    ends = [{**straight([0, 1, 1, 1, 1]), "radius": 1.0}]
    domain = {**WALK, "radius": Interval(0.1, 5.0), "extremal": ends}

    @ledger.sharper("norm(w_t - wbar) <= ((T + 1)/2 - 1/T) D").falsify(
        "T = 5", longer=1.0, room=2.8 / 5, mutant={"room": 0.55}, **domain
    )
    @ledger.sharper("below delta for D = 2 delta/(T + 1)").falsify(
        "T = 5", longer=10 / 6, room=1 - 2 / 30, mutant={"longer": 2.0}, **domain
    )
    @ledger.falsify("T = 5, below delta", longer=1.0, room=1 - 1e-9, mutant={"longer": 2.0},
                    **domain)  # fmt: skip
    def distances(raw, s, radius, longer, room):
        w, _ = walk(raw, s, longer * radius / len(s))
        far = np.linalg.norm(w - w.mean(axis=0), axis=1).max()
        return far, room * radius * (1 + ROUNDING)

    @ledger.sweep("every T, straight path", T=range(1, 400), longer=1, mutant={"longer": 2})
    def every(T, longer):
        """Return both sides in units of delta, for s_1 = 0 and all other s_t equal to 1."""
        w = [Fraction(longer * t, T) for t in range(2, T + 1)]
        return sum(w, Fraction(0)) / T, Fraction(T - 1, T) if T > 1 else Fraction(0)

    cut = {"raw": np.ones((5, 1)), "s": np.array([0.0, 1, 1, 1, 1]), "radius": 1.0}
    cut["v"] = np.where(KNOTS < 0.25, 1.0, -1.0)

    @ledger.falsify("the stationarity on a line, exactly", ball=1.0, mutant={"ball": 0.1},
                    v=LINE["v"], extremal=[cut], **{**WALK, "d": 1, "radius": SHARE})  # fmt: skip
    def stationary(v, raw, s, radius, ball):
        if radius < 1e-3:
            return None
        w = walk(raw, s, radius / len(s))[0][:, 0]
        found = stationarity(v, np.array([w.mean()]), ball * radius)[0]
        return found, abs(slope(v, w).mean()) + ROUNDING
