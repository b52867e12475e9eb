"""Few examples per user: adjusted random variables and their martingales, Appendix C.3.1."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linprog
from scipy.stats import binom

from algorithms.few_examples.couplings import adjusted_variable, clip_to_mean
from audits.few_examples.bounded_ratios import (
    DELTA,
    EPSILON,
    ROUNDING,
    SHARE,
    SMALL,
    VALUE,
    WEIGHT,
    excess,
    worst,
)
from dpaudit.ledger import statement
from dpaudit.neighbors import Integer, Interval
from dpaudit.properties import Array, Method

# --- Lemma 33 ---


LAWS = {"law": Array(WEIGHT, (4,)), "z": Array(VALUE, (4,)), "epsilon": EPSILON}
RARE = {"law": np.array([1 - 1e-6, 1e-6, 0, 0]), "z": np.array([0.0, 1, 0, 0])}
"""Distribution that is almost always 0."""


@statement("few.eq2")
def clipping(ledger):
    """For a random variable Z >= 0 with mean mu, l = e^(-epsilon) mu, r = e^epsilon mu, Zhat =
    clip_(l, r)(Z) and an i.i.d. copy Z~ of Z, E[abs(Z - Zhat)] <= (1 + e^(-epsilon)) E_(Z, Z~)[Z -
    e^epsilon Z~]_+.

    For every epsilon, take Z = 1 with probability q, and Z = 0 otherwise. This Z attains the bound
    as q -> 0. For this Z, E[Z - r]_+ is q, and E[l - Z]_+ is e^(-epsilon) q. For epsilon = 0, the
    two sides are E abs(Z - mu) and E abs(Z - Z~).
    """

    @ledger.falsify("distributions on four values", factor=1.0, mutant={"factor": 0.9}, extremal=[
                        {**RARE, "epsilon": e} for e in (0.0, 0.1, 2.0)
                    ], end_to_end=True, **LAWS)  # fmt: skip
    def moved_by_clipping(law, z, epsilon, factor):
        law = law / law.sum()
        moves = law @ np.abs(z - clip_to_mean(z, law, epsilon=epsilon))
        return moves, factor * (1 + math.exp(-epsilon)) * excess(law, z, epsilon) + 1e-15

    @ledger.step("E[e^(-epsilon) Z~ - Z]_+ = e^(-epsilon) E[Z - e^epsilon Z~]_+").identity(
        "distributions on four values",
        tolerance=1e-6, floor=1e-9, sign=-1.0, mutant={"sign": 1.0}, **LAWS
    )  # fmt: skip
    def exchanged(law, z, epsilon, sign):
        law = law / law.sum()
        below = law @ np.maximum(math.exp(-epsilon) * z[None] - z[:, None], 0) @ law
        return below, math.exp(sign * epsilon) * excess(law, z, epsilon)


@statement("few.eq3")
def mean_of_clipped(ledger):
    """For muhat = E[Zhat], abs(muhat - mu) <= E[abs(Z - Zhat)].

    The claim is Jensen's inequality. The bound is attained if only one side is clipped.
    """

    @ledger.falsify("distributions on four values", factor=1.0, mutant={"factor": 0.9}, extremal=[
                        {"law": np.ones(4), "z": np.array([1.0, 1.0, 1.0, 1.5]), "epsilon": 0.2},
                    ], end_to_end=True, **LAWS)  # fmt: skip
    def shifted(law, z, epsilon, factor):
        law = law / law.sum()
        hat = clip_to_mean(z, law, epsilon=epsilon)
        return abs(law @ (hat - z)), factor * (law @ np.abs(z - hat)) * (1 + ROUNDING) + 1e-12


@statement("few.lemma33")
def adjusted(ledger):
    """Let epsilon, mu* >= 0. Let Z be any R_(>= 0)-valued random variable and mu := E[Z]. Then,
    there exists a random variable Z' which is a post-processing of Z such that (i) Z' ~_(2 epsilon)
    mu*, (ii) E[Z'] = mu*, and (iii) E_(Z, Z')[abs(Z - Z')] <= abs(mu - mu*) + 2 (1 + e^(-epsilon))
    E_(Z, Z~)[Z - e^epsilon Z~]_+, where (Z, Z') is the canonical coupling between Z, Z' (from
    post-processing) and Z~ is an i.i.d. copy of Z. Here z ~_epsilon z' denotes z in [e^(-epsilon)
    z', e^epsilon z'].

    No counterexample was found for the Z' of the proof, in both cases and their mirror images,
    including mu = 0 and epsilon = 0. For mu* = 0, Z' is 0. With the same Z', the constant can be 2
    instead of 2 (1 + e^(-epsilon)). The mean E abs(Z - Z') equals abs(mu - mu*) + 2 E[Z' - Z]_+.
    The mean also equals abs(mu - mu*) + 2 E[Z - Z']_+, if the mean of Z has to move in the other
    direction. At Zhat, Z' lies on that side, so only one of the two terms of (2) is needed. For
    every Z', the constant 2 is needed. An example is Z = 1 with probability q -> 0, Z = 0
    otherwise, and mu* = mu. In the limit of large epsilon, 2 (1 + e^(-epsilon)) is attained too.
    The variable Z' is a function of Z, and is not random given Z. So g in the proof of Lemma 32 is
    a function.
    """
    cases = [
        {**RARE, "epsilon": 3.0, "share": 0.0}, {**RARE, "epsilon": 0.1, "share": 0.0},
        {"law": np.ones(4), "z": np.zeros(4), "epsilon": 0.5, "share": 0.3},
        {"law": np.ones(4), "z": np.ones(4), "epsilon": 0.5, "share": -0.6},
        {"law": np.ones(4), "z": np.ones(4), "epsilon": 0.5, "share": 0.6},
        *({"law": np.ones(4), "z": np.array([0.1, 1, 2, 9]), "epsilon": e, "share": s}
          for e in (0.0, 0.3) for s in (-1.0, -0.2, 0.0, 0.2, 1.0)),
    ]  # fmt: skip
    domain = {**LAWS, "share": Interval(-1.5, 1.5), "extremal": cases, "end_to_end": True}

    def target(law, z, epsilon, share):
        """Return the mean mu*.

        At share = -1 or share = 1, the two cases agree. At mu = 0, any number is possible for mu*.
        """
        return (law @ z or 1.0) * math.exp(share * max(epsilon, 0.5))

    @ledger.falsify("(iii), the Z' of the proof", best=False, mutant={"best": 0.3}, **domain)
    @ledger.sharper("2 for 2 (1 + e^(-epsilon))").falsify(
        "(iii), the Z' of the proof", best=2.0, mutant={"best": 1.9}, **domain
    )  # fmt: skip
    def near(law, z, epsilon, share, best):
        law = law / law.sum()
        to = target(law, z, epsilon, share)
        constant = best or 2 * (1 + math.exp(-epsilon))
        moves = law @ np.abs(z - adjusted_variable(z, law, epsilon=epsilon, mean=to))
        allowed = abs(law @ z - to) + constant * excess(law, z, epsilon)
        return moves, allowed * (1 + ROUNDING) + 1e-15

    @ledger.falsify("(i)", width=2.0, mutant={"width": 1.5}, **domain)
    def within(law, z, epsilon, share, width):
        law = law / law.sum()
        to = target(law, z, epsilon, share)
        ratio = adjusted_variable(z, law, epsilon=epsilon, mean=to) / to
        return np.abs(np.log(ratio)).max(), width * epsilon + ROUNDING

    @ledger.identity("(ii)", tolerance=1e-8, again=True, mutant={"again": False}, **domain)
    def mean(law, z, epsilon, share, again):
        """Compare the means.

        The mutant stops at Zhat.
        """
        law = law / law.sum()
        to = target(law, z, epsilon, share)
        found = (
            adjusted_variable(z, law, epsilon=epsilon, mean=to)
            if again
            else clip_to_mean(z, law, epsilon=epsilon)
        )
        return 1 + law @ found / to, 2.0

    @ledger.sharper("no Z' has a constant below 2").sweep(
        "the best Z', by linear programs", epsilon=[0.0, 0.1, 1.0], q=1e-6, constant=2.0,
        method=Method.NUMERIC, mutant={"constant": 2.01},
    )  # fmt: skip
    def best_of_all(epsilon, q, constant):
        """Use Z' on a grid of [e^(-2 eps) mu, e^(2 eps) mu], for each value of Z, with mu* = mu."""
        law, z, grid = np.array([1 - q, q]), np.array([0.0, 1.0]), 51
        values = q * np.exp(np.linspace(-2 * epsilon, 2 * epsilon, grid))
        cost = (law[:, None] * np.abs(z[:, None] - values[None])).ravel()
        rows = np.vstack([np.repeat(np.eye(2), grid, axis=1), np.outer(law, values).ravel() / q])
        found = linprog(cost / q, A_eq=rows, b_eq=np.ones(3))
        return (constant - 1e-3) * excess(law, z, epsilon) / q, found.fun

    step = ledger.step("Case II: [l, r] lies in [e^(-2 eps) mu*, e^(2 eps) mu*] and contains mu*")

    @step.falsify("mu* = e^s mu, abs(s) <= eps", epsilon=EPSILON, s=Interval(-1.0, 1.0), width=2.0,
                  mutant={"width": 1.9}, extremal=[{"epsilon": 1.0, "s": 1.0}])  # fmt: skip
    def ends(epsilon, s, width):
        left, right = -epsilon - s * epsilon, epsilon - s * epsilon  # logarithms of l/mu*, r/mu*
        return max(-left, right, left + epsilon, epsilon - right), width * epsilon * (1 + ROUNDING)


# --- martingales with bounded ratios ---


@statement("few.lemma34")
def mean_logarithm(ledger):
    """Let Z be any R_(> 0)-valued random variable such that E[Z] = 1. For any sufficiently small
    epsilon > 0, if Z ~_epsilon 1, then -8 epsilon^2 <= E[ln Z] <= 0.

    The lemma is true for every epsilon > 0, and the constant is 1/2. Distributions of mean 1 are
    mixtures of distributions of mean 1 on two points. The worst points are e^epsilon and
    e^(-epsilon), with E[ln Z] = -epsilon tanh(epsilon/2) >= -epsilon^2/2. The steps of the proof
    need only epsilon <= 1.25.
    """
    points = {"low": SHARE, "high": SHARE}
    far = [{"epsilon": e, "low": 1.0, "high": 1.0} for e in (0.01, 1.0, 5.0)]

    @ledger.falsify("all distributions on two points",
        epsilon=Interval(1e-3, 5.0, log=True), factor=8.0,
                    extremal=far, mutant={"factor": 0.4}, end_to_end=True, **points)  # fmt: skip
    @ledger.sharper("1/2 for 8, every epsilon").falsify(
        "all distributions on two points", epsilon=Interval(1e-3, 20.0, log=True), factor=0.5,
        extremal=far, mutant={"factor": 0.49}, **points,
    )  # fmt: skip
    def lower(epsilon, low, high, factor):
        return -mean_of_log(epsilon, low, high), factor * epsilon**2 + 1e-15

    @ledger.falsify("not above 0", epsilon=Interval(1e-3, 5.0, log=True), shift=0.0,
                    mutant={"shift": -0.1}, end_to_end=True, **points)  # fmt: skip
    def upper(epsilon, low, high, shift):
        return 1 + mean_of_log(epsilon, low, high), 1 + shift + 1e-12

    @ledger.step("ln x >= x - 1 - 2 (x - 1)^2 for x within e^(+-eps), eps <= 1").sweep(
        "on a grid", u=[i / 500 for i in range(-500, 501)], two=2.0, method=Method.NUMERIC,
        mutant={"two": 0.5},
    )  # fmt: skip
    def parabola(u, two):
        return math.expm1(u) - two * math.expm1(u) ** 2 + 10, u + 10

    @ledger.step("2 (e^eps - 1)^2 <= 8 eps^2 for eps <= 1").sweep(
        "on a grid", epsilon=[i / 500 for i in range(1, 501)], eight=8.0, method=Method.NUMERIC,
        mutant={"eight": 5.0},
    )  # fmt: skip
    def linearized(epsilon, eight):
        return 2 * math.expm1(epsilon) ** 2, eight * epsilon**2


def mean_of_log(epsilon, low, high):
    """Return E[ln Z] for a Z with mean 1 on two points.

    The arguments give the positions of the points between 1 and e^(-+eps).
    """
    a, b = low * math.expm1(-epsilon), high * math.expm1(epsilon)
    p = -a / (b - a) if b > a else 0.0
    return p * math.log1p(b) + (1 - p) * math.log1p(a)


def escape(n, epsilon, G, drift, fine=3):
    """Return the largest probability that ln(Y_n/mu) leaves the interval of (4).

    The probability is computed by dynamic programming. Each step is a multiple of eps/fine, goes up
    or down by at most eps, and keeps the mean.
    """
    moves = [(a, b) for a in range(1, fine + 1) for b in range(1, fine + 1)]
    x = np.arange(-(n + 1) * fine, (n + 1) * fine + 1) * epsilon / fine
    root = epsilon * math.sqrt(n * G)
    value = ((x > root + ROUNDING) | (x < -drift * n * epsilon**2 - root - ROUNDING)).astype(float)
    for _ in range(n):
        options = [value[fine:-fine]]
        for a, b in moves:
            down, up = -math.expm1(-a * epsilon / fine), math.expm1(b * epsilon / fine)
            p = down / (up + down)
            size = len(value)
            options.append(p * value[fine + b : size - fine + b]
                           + (1 - p) * value[fine - a : size - fine - a])  # fmt: skip
        value = np.pad(np.max(options, axis=0), fine, mode="edge")
    return value[len(value) // 2]


@statement("few.eq4")
def ratio_concentration(ledger):
    """For a martingale Y_1, ..., Y_n as in Lemma 35, gamma := -8 epsilon^2 and all G > 0, Pr[e^(n
    gamma - epsilon sqrt(n G)) mu <= Y_n <= e^(epsilon sqrt(n G)) mu] >= 1 - 2 exp(-G/2).

    The paper prints Y_k in the proof of a bound for Y_n. For k < n, the bound is also true, because
    the interval for n contains the interval for k. The bound was tested for long walks, and for the
    worst of all martingales whose logarithms move by multiples of eps/3. Dynamic programming finds
    the worst martingale, which stops after leaving the interval. The largest probability is 0.82
    times 2 exp(-G/2), which occurs at n = 1 and G close to 1. By Lemma 34, the drift -8 epsilon^2
    can be replaced by -epsilon^2/2.
    """
    known = [{"n": n, "epsilon": 0.1 / n, "G": g} for n, g in ((1, 0.99), (12, 2.0), (12, 4.0))]

    @ledger.falsify("all martingales on a lattice", n=Integer(1, 12), epsilon=Interval(1e-3, 1.0),
                    G=Interval(0.1, 12.0), rate=0.5, drift=8.0, extremal=known, examples=60,
                    mutant={"rate": 1.0}, end_to_end=True)  # fmt: skip
    @ledger.sharper("drift -eps^2/2").falsify(
        "all martingales on a lattice", n=Integer(1, 12), epsilon=Interval(1e-3, 1.0),
        G=Interval(0.1, 12.0), rate=0.5, drift=0.5, extremal=known, examples=60,
        mutant={"rate": 1.0},
    )  # fmt: skip
    def leaves(n, epsilon, G, rate, drift):
        return escape(n, epsilon, G, drift), 2 * math.exp(-rate * G)

    @ledger.falsify("the walk on e^(+-eps), long, at any k <= n", n=Integer(1, 2000), share=SHARE,
                    epsilon=Interval(1e-3, 1.0, log=True), G=Interval(0.1, 30.0), rate=0.5,
                    mutant={"rate": 1.5}, end_to_end=True, extremal=[
                        {"n": 2000, "share": 1.0, "epsilon": 1e-3, "G": g} for g in (1.0, 2.0, 4.0)
                    ])  # fmt: skip
    def walk(n, share, epsilon, G, rate):
        k = max(round(share * n), 1)
        root = math.sqrt(n * G)  # after k steps with `ups` ups, ups - downs = 2 ups - k
        ups, p = (k + root) / 2, 1 / (1 + math.exp(epsilon))
        downs = (k - 8 * n * epsilon - root) / 2
        outside = binom.sf(math.floor(ups + ROUNDING), k, p)
        outside += binom.cdf(math.ceil(downs - ROUNDING) - 1, k, p)
        return outside, 2 * math.exp(-rate * G)


@statement("few.lemma35")
def expected_deviation(ledger):
    """Assume that epsilon, delta > 0 and epsilon sqrt(n log(1/delta)) > 0 are sufficiently small.
    Let Y_1, ..., Y_n be an R_(>= 0)-valued martingale such that Y_i ~_epsilon Y_(i-1) almost
    surely, and mu := E[Y_1]. Then E[[Y_n - e^epsilon' mu]_+ + [mu - e^epsilon' Y_n]_+] <= O(mu
    delta), where epsilon' = O(epsilon sqrt(n log(1/delta))).

    The result is exact for all martingales. In each step, the worst martingale moves to e^(+-eps)
    Y_(i-1), because the mean of a convex function is maximised. If eps sqrt(n log(1/delta)) <= 1,
    no counterexample was found with eps' = sqrt(2) eps sqrt(n log(1/delta)) and mu delta. The proof
    has the constants 10 (from tau = 100 log(1/delta)) and 2 mu delta. At delta = 1e-8, the constant
    1.23 is needed. At delta = 1e-200, the constant 1.39 is needed. In the limit delta -> 0, the
    constant sqrt(2) is needed. The formula of the worst case is the formula of a binomial option
    price. The proof prints E[Y_i | ...] instead of E[C_i | ...]. The variable Y_1 has to be close
    to mu. The paper requires this only in the proof (Y_0 := mu). All steps of the integral hold if
    delta <= 0.9 and eps sqrt(n) <= 0.6 sqrt(log(1/delta)).
    """
    ledger.misprint("E[Y_i | ...] and k, in the proof", "E[C_i | ...] and n")
    domain = {"n": Integer(1, 2000), "small": SMALL, "delta": DELTA}
    known = [{"n": 2000, "small": 1.0, "delta": d} for d in (0.01, 1e-8, 1e-12)]

    @ledger.falsify("the worst of all martingales", c=math.sqrt(2), extremal=known,
                    mutant={"c": 1.0},
                    end_to_end=True, **domain)  # fmt: skip
    def deviation(n, small, delta, c):
        epsilon = small / math.sqrt(n * math.log(1 / delta))
        return worst(n, epsilon, c * small), delta

    @ledger.falsify("random martingales of three steps stay below the worst", steps=Integer(1, 3),
                    downs=Array(SHARE, (7,)), ups=Array(SHARE, (7,)), larger=Interval(0.0, 1.0),
                    epsilon=Interval(0.01, 1.0), part=1.0, mutant={"part": 0.8}, extremal=[
                        {"steps": 3, "downs": np.ones(7), "ups": np.ones(7), "larger": 0.2,
                         "epsilon": 0.5},
                    ])  # fmt: skip
    def some(steps, downs, ups, larger, epsilon, part):
        y, law = np.ones(1), np.ones(1)
        for i in range(steps):
            at = slice(2**i - 1, 2 ** (i + 1) - 1)
            down, up = downs[at] * -math.expm1(-epsilon), ups[at] * math.expm1(epsilon)
            p = down / np.maximum(up + down, 1e-300)
            y = np.r_[y * (1 + up), y * (1 - down)]
            law = np.r_[law * p, law * (1 - p)]
        e = math.exp(larger)
        found = law @ np.maximum(y - e, 0) + law @ np.maximum(1 - e * y, 0)
        return found, part * worst(steps, epsilon, larger) + 1e-12

    taus = {"delta": [10.0**-i for i in range(1, 100)] + [0.9], "hundred": 100.0}
    ledger.step("the lower tail: (4) at G = tau/4 gives at most delta").sweep(
        "2 exp(-tau/8)", mutant={"hundred": 8.0}, eighth=8.0, times=2.0, **taus
    )(tail)  # fmt: skip
    ledger.step("the upper tail: 8 exp(-tau/4) <= delta").sweep(
        "8 exp(-tau/4)", mutant={"hundred": 4.0}, eighth=4.0, times=8.0, **taus
    )(tail)  # fmt: skip
    roots = {"delta": [0.9, 0.5, 0.1, 1e-3, 1e-9], "hundred": 100.0, "method": Method.NUMERIC}

    @ledger.step("8 n eps^2 <= eps sqrt(n tau)/2, as eps sqrt(n log(1/delta)) is small").sweep(
        "eps sqrt(n) = r sqrt(log(1/delta))", r=[0.01, 0.1, 0.3, 0.6], mutant={"hundred": 50.0},
        **roots,
    )  # fmt: skip
    def drift(r, delta, hundred):
        log = math.log(1 / delta)
        return 8 * r * r * log, r * math.sqrt(log) * math.sqrt(hundred * log) / 2

    @ledger.step("the integrand is at most 2 exp(-G/4) for G >= tau").sweep(
        "logarithms", r=[0.01, 0.1, 0.3, 0.6], g=[1.0, 1.5, 3.0, 10.0, 1e3],
        mutant={"hundred": 0.5}, **roots,
    )  # fmt: skip
    def integrand(r, g, delta, hundred):
        G, root = g * hundred * math.log(1 / delta), r * math.sqrt(math.log(1 / delta))
        return math.exp(-G / 4 + root * math.sqrt(G)) * root / (2 * math.sqrt(G)), 1.0

    ledger.edge("Y_0 = mu in Lemma 35").sweep(
        "n = 1, Y_1 = 0 or 2 mu", small=[0.1, 0.01], c=10.0, delta=0.01, lhs="E/mu",
        rhs="2 delta",
    )(doubled)  # fmt: skip


def tail(delta, hundred, eighth, times):
    return times * math.exp(-hundred * math.log(1 / delta) / eighth), delta


def doubled(small, c, delta):
    """Return both sides for two values of probability 1/2 each."""
    return (max(2 - math.exp(c * small), 0) + 1) / 2, 2 * delta
