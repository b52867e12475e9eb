"""Private geometric median: introduction, Sections 2.1 and 2.3."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import binom

from algorithms.geometric_median.reference import (
    geometric_median,
    objective,
    quantile_radius,
)
from audits.geometric_median import transcribed
from audits.geometric_median.conventions import EPSILON, UNIT
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array, Method

CLOUDS = {"points": Array(UNIT, ("n", "d")), "z": Array(UNIT, ("d",))}
CLOUDS |= {"n": Integer(1, 5), "d": Choice((1, 2))}


def median_of(points):
    return geometric_median(points).point


def mean_of(points):
    return points.mean(axis=0)


def distances(points, z):
    return np.linalg.norm(points - z, axis=1)


# --- Section 1 ---


@statement("gm.eq1")
def objective_and_median(ledger):
    """The geometric median x_star of a dataset D = {x_1, ..., x_n} in R^d is a minimiser over x in
    R^d of f(x) = (1/n) sum_i norm(x - x_i), the average Euclidean distance to the dataset.

    This statement is a definition. The check compares the definition with the solver that other
    ledger rows use. Display (3) has "=", although the minimiser need not be unique. For an even
    number of points on a line, every point between the middle two is a minimiser.
    """
    flat = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.1]])
    right_angle = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])  # its median is (.211, .211)

    @ledger.falsify(
        "no point beats the reference solver", median=median_of, mutant={"median": mean_of},
        extremal=[{"points": flat, "z": flat[2]}], **CLOUDS,
    )  # fmt: skip
    def least(points, z, median):
        return distances(points, median(points)).mean(), distances(points, z).mean()

    scales = {"scale": Choice((1.0, 1e-150, 1e-165, 1e100)), **CLOUDS}

    @ledger.identity("f at several points", power=1, mutant={"power": 2}, **scales)
    def values(points, z, scale, power):
        points, targets = scale * points, scale * np.array([z, 2 * z, points[0]])
        return objective(points, targets), [
            transcribed.objective(points, target) ** power for target in targets
        ]

    @ledger.identity("f for many points", n=[70_000], seed=[0, 1])
    def many(n, seed):
        points = np.random.default_rng(seed).normal(size=(n, 2))
        return objective(points, [0.5, 0.1]), transcribed.objective(points, [0.5, 0.1])

    @ledger.identity(
        "the bound on the error, also if the solver stops early", before=Integer(1, 3), others=0,
        floor=1e-6, mutant={"others": 1}, **CLOUDS | {"n": Choice((3, 4, 9))},
    )  # fmt: skip
    def certified(points, z, before, others):
        found = geometric_median(np.vstack([points, points[:1], [z]]), max_iterations=before)
        data = np.vstack([points, points[:1], [z + others]])
        values = found.objective, found.subgradient_norm, found.gap
        return values, transcribed.certificate(data, found.point)

    @ledger.falsify("no point is better by more than this bound", share=1.0, mutant={"share": 0.0},
                    extremal=[{"points": right_angle, "z": np.array([0.21, 0.21]), "before": 1}],
                    before=Integer(1, 3), **CLOUDS | {"n": Choice((3, 4, 5))})  # fmt: skip
    def bounded(points, z, before, share):
        found = geometric_median(points, max_iterations=before)
        better = transcribed.objective(points, z)
        return transcribed.objective(points, found.point) - share * found.gap, better

    @ledger.identity("the solver ends, and says so", wanted=1e-10, mutant={"wanted": 1e-30},
                     **CLOUDS | {"n": Choice((3, 4, 9, 40))})  # fmt: skip
    def ends(points, z, wanted):
        data = np.vstack([points, [z]])
        found, early = geometric_median(data), geometric_median(data, max_iterations=1)
        reached = early.gap <= 1e-10 * early.objective
        return [found.converged, found.gap <= wanted * found.objective, early.converged], [
            True, True, reached
        ]  # fmt: skip

    @ledger.identity(
        "points on a line: the middle of the middle two", places=Array(Interval(-9, 9), ("n",)),
        n=Integer(1, 8), axis=Choice(((1.0,), (3.0, 4.0), (2.0, 0.0, -1.0))), shift=0,
        mutant={"shift": 1}, tolerance=0.0,
    )  # fmt: skip
    def line(places, axis, shift):
        places = np.round(places)
        found = geometric_median(np.outer(places, axis) + 7.0).point
        return found, (transcribed.middle(places) + shift) * np.array(axis) + 7.0

    @ledger.identity("a data point with more than half of the points is returned exactly", copies=1,
                     tolerance=0.0, mutant={"copies": -4}, **CLOUDS)  # fmt: skip
    def majority(points, z, copies):
        found = geometric_median(np.vstack([points, np.tile(z, (max(len(points) + copies, 1), 1))]))
        return found.point, z

    @ledger.edge("x_star is any minimiser").sweep(
        "two points on a line", gap=1.0, lhs="distance between two minimisers", rhs="0 if unique"
    )
    def apart(gap):
        places = np.linspace(0.0, gap, 5)
        values = np.abs(places[:, None] - [0.0, gap]).mean(axis=1)
        return np.ptp(places[values == values.min()]), 0.0


@statement("gm.eq2")
def quantile_radii(ledger):
    """For tau in [0, 1] the quantile radius r^(tau)(D; c) is the smallest r >= 0 such that at least
    tau n points of D lie within distance r of c. Where c is not named it is x_star.

    This statement is a definition. The argmin over r of a condition is the least r that satisfies
    the condition. For tau = 0, this least r is 0. For tau > 0, this least r is the distance of rank
    ceil(tau n). If several points x_star exist, every x_star has its own quantile radius.
    """
    small = {"points": np.array([[1e-165], [1.0]]), "z": np.zeros(1), "tau": 0.5}

    @ledger.identity(
        "the reference implementation", rounded=math.ceil, extremal=[small],
        mutant={"rounded": math.floor}, **CLOUDS,
        tau=Choice((0.0, 0.1, 0.25, 0.3, 0.5, 0.6, 0.75, 0.9, 1.0)),
    )  # fmt: skip
    def radius(points, z, tau, rounded):
        share = Fraction(tau).limit_denominator(1000)
        return quantile_radius(points, tau, z), transcribed.quantile_radius(
            points, share, z, rounded
        )

    @ledger.identity("all hundredths, about the median", n=[1, 7, 51, 101], percent=range(101),
                     rounded=math.ceil, mutant={"rounded": math.floor})  # fmt: skip
    def hundredths(n, percent, rounded):
        """Take distances that are different. A product of floats may exceed a whole number."""
        points = np.append(np.arange(1.0, n), 0.0)[:, None] ** 2
        z = [transcribed.middle(points[:, 0])]
        return quantile_radius(points, percent / 100), transcribed.quantile_radius(
            points, Fraction(percent, 100), z, rounded
        )

    @ledger.identity("all hundredths, of many points", percent=range(101), n=[100, 20_000],
                     start=0.5, mutant={"start": 0.0})  # fmt: skip
    def many(n, percent, start):
        """Take the distances .5, 1.5, 2.5, ..."""
        points, rank = np.arange(n)[:, None] + 0.5, percent * n // 100
        return quantile_radius(points, percent / 100, [0.0]), rank - start if percent else 0.0


@statement("gm.intro.rindep", expected="refuted")
def sample_complexity_and_aspect_ratio(ledger):
    """The sample complexity of the algorithm of Theorem 1, n of the order of sqrt(d)/(alpha
    epsilon), is independent of R/r.

    Algorithm 2 needs a number of users that grows with log log(R/r) / epsilon, as in Lemma 6 and
    Theorem 3. For any constant, no single n is enough for all R/r. Take points that are far apart,
    so that Algorithm 2 should reject all radii except the last radius. For every n, at least one of
    sufficiently many noises is so large that another radius passes. The relation sign in Theorem
    1's condition on n hides polylogarithms of R/r. But the same sentence of the paper distinguishes
    "polylogarithmic" from "independent". In addition, Theorem 4's condition on n contains no R/r.
    """
    words = {
        "lhs": "a lower bound on the probability that Algorithm 2 stops within T radii, if all "
        "queries are 0"
    }
    words |= {"rhs": "delta", "constant": 24.0}

    @ledger.repair("it grows with log log(R/r) / epsilon, and no faster").falsify(
        "n = (24 / epsilon) log(4 T / delta)", grows=True, mutant={"constant": 14.0},
        t=Integer(1, 10**6), epsilon=EPSILON, delta=Interval(1e-9, 0.5, log=True),
        extremal=[{"t": 10**6, "epsilon": 1.0, "delta": delta} for delta in (0.5, 1e-9)], **words,
    )  # fmt: skip
    @ledger.sweep(
        "n = (24 / epsilon) log(4 / delta), and T = log2(R/r) = 10^4", grows=False,
        t=10_000, epsilon=1.0, delta=0.1, **words,
    )  # fmt: skip
    def stops(t, epsilon, delta, grows, constant):
        n = constant / epsilon * math.log(4 * (t if grows else 1) / delta)
        nu = np.linspace(-40, 40, 8001)  # of the threshold, in units of 6 / epsilon
        gap = (0.775 * n * epsilon + 6 * nu) / 12  # of all queries, in units of 12 / epsilon
        passes = np.where(gap > 0, np.exp(-abs(gap)) / 2, 1 - np.exp(-abs(gap)) / 2)
        stopped = -np.expm1(t * np.log1p(-passes)) * np.exp(-abs(nu)) / 2
        return 0.01 * stopped.sum(), delta

    ledger.consequence("The same as for gm.thm4, where n also omits R/r.", harm="accuracy")


def tangent(k):
    """Return k + 1 points on tangents from the median to the unit circle, and k far points."""
    x = -math.sqrt(2 * k + 1) / (k + 1)
    inside = [[x, math.sqrt(1 - x * x)], [x, -math.sqrt(1 - x * x)]]
    inside = np.repeat(inside, (k + 1) // 2, axis=0)
    return {"inside": inside, "outside": np.tile([-1e3, 0.0], (k, 1))}


TANGENTS = [tangent(k) for k in (1, 3, 9, 99, 301)]
ALONE = {"inside": np.array([[1.0, 0.0]]), "outside": np.zeros((0, 2))}
CAPPED = {"inside": Array(UNIT, ("a", 2)), "outside": Array(Interval(-50.0, 50.0), ("b", 2))}
CAPPED |= {"a": Choice((3, 4, 5)), "b": Choice((1, 2)), "extremal": [*TANGENTS[:2], ALONE]}


def attack_displacement(attack, **bound):
    """Test norm(x_star) <= factor s r / (2 s - 1)^power, if a share s lies within r of 0."""
    bound["tolerance"] = 1e-6

    @attack.falsify("random data", **CAPPED, **bound)
    @attack.sweep("tangents", cases=TANGENTS, method=Method.NUMERIC, **bound)
    def displacement(inside, outside, factor, power):
        share = len(inside) / (len(inside) + len(outside))
        radius = np.linalg.norm(inside, axis=1).max()
        found = np.linalg.norm(median_of(np.concatenate([inside, outside])))
        return float(found), factor * share * radius / (2 * share - 1) ** power


@statement("gm.intro.lem4use", expected="ambiguous")
def majority_in_a_ball(ledger):
    """If more than half of D lies within a distance r of some point c, then the geometric median
    lies within O(r) of c.

    If a share s > 1/2 lies within r of c, the median lies within r s / sqrt(2 s - 1) of c. The
    bound r s / sqrt(2 s - 1) is sharp. Let k + 1 of 2 k + 1 points be in the ball. If these k + 1
    points lie on two tangents from the median to the ball, the median moves by (k + 1) r / sqrt(2 k
    + 1). So O(r) holds with a constant that depends on s, as in Lemma 4. But no single constant in
    O(r) is enough for all shares "greater than half". Only the proof of Lemma 6 uses the statement,
    and that proof has s >= 3/4.
    """
    excess = ledger.reading("the constant depends on the excess over one half")
    attack_displacement(excess, factor=2.0, power=1.0, mutant={"power": 0.0})

    @ledger.reading("a universal constant for any excess over one half", fails=True).sweep(
        "k + 1 points in the unit ball, k far to the left; any constant, k = 2 constant^2 + 1",
        constant=10.0, method=Method.NUMERIC, lhs="norm(x_star), on the axis", rhs="constant r",
    )  # fmt: skip
    def universal(constant):
        k = 2 * round(constant**2) + 1
        x = -math.sqrt(2 * k + 1) / (k + 1)  # position of the k + 1, half of them above the axis

        def total(z):
            return (k + 1) * math.hypot(x - z, math.sqrt(1 - x * x)) + k * (z + 1e3)

        return -minimize_scalar(total, bounds=(-1e3, 1), method="bounded").x, constant


# --- Section 2.1 ---


@statement("gm.fact1")
def chernoff(ledger):
    """For X_i ~ Bern(p_i), i in [n], mu = sum_i p_i and mu_hat = sum_i X_i: P[mu_hat > (1 + e) mu]
    <= exp(-e^2 mu / (2 + e)) for all e >= 0, and P[mu_hat < (1 - e) mu] <= exp(-e^2 mu / 2) for all
    e in (0, 1).

    Both bounds hold for independent X_i. Exact tails confirm both bounds. In both bounds, the
    exponent 2 cannot be replaced by 1.7. The paper does not state independence. But the bounds need
    independence, because 100 copies of one coin violate the bounds. The paper draws its indices
    independently.
    """
    of = {"n": Integer(1, 10**6), "p": Interval(1e-6, 1.0, log=True), "weight": 2.0}
    of |= {"extremal": [{"n": 1, "p": 1.0, "e": 0.5}, {"n": 10**6, "p": 0.01, "e": 0.08}]}
    of |= {"mutant": {"weight": 1.7}}
    rising = Interval(0.0, 20.0)

    @ledger.falsify("upper tail", upper=True, e=rising, **of)
    @ledger.falsify("lower tail", upper=False, e=Interval(1e-6, 1 - 1e-6), **of)
    def tail(n, p, e, upper, weight):
        mu = n * p
        if upper:
            found = binom.sf(math.floor((1 + e) * mu), n, p)
            return float(found), math.exp(-e * e * mu / (weight + e))
        return float(binom.cdf(math.ceil((1 - e) * mu) - 1, n, p)), math.exp(-e * e * mu / weight)

    rates = {"p": Array(Interval(0.0, 1.0), ("n",)), "n": Choice((2, 3, 6))}

    @ledger.falsify("unequal rates, by convolution", e=rising, **rates)
    def unequal(p, e):
        law = np.array([1.0])
        for rate in p:
            law = np.convolve(law, [1 - rate, rate])
        mu = float(np.sum(p))
        above = np.arange(len(law)) > (1 + e) * mu
        return float(law[above].sum()), math.exp(-e * e * mu / (2 + e))

    @ledger.edge("summands of a Chernoff bound are independent").sweep(
        "n copies of one fair coin", n=100, e=0.5, lhs="P[mu_hat > (1 + e) mu]", rhs="the bound"
    )
    def copies(n, e):
        mu = n / 2
        return 0.5 * (n > (1 + e) * mu), math.exp(-e * e * mu / (2 + e))


# --- Section 2.3 ---


@statement("gm.lemma3")
def objective_and_quantiles(ledger):
    """For every dataset D in R^d: f(x_star) >= (1 - tau) r^(tau) for all tau in [0, 1].

    The bound is tight. To see that the bound is tight, take tau just above 1/2, two points at the
    median and two points at distance 1. The bound holds for any point instead of x_star, so the
    bound holds for every minimiser.
    """
    tight = {"points": np.array([[0.0], [0.0], [1.0], [-1.0]]), "z": np.zeros(1), "tau": 0.5 + 1e-9}
    case = {**CLOUDS, "tau": Interval(0.0, 1.0), "extremal": [tight], "tolerance": 1e-6}
    median = {"factor": 1.0, "mutant": {"factor": 1.05}}

    @ledger.falsify("about the median", median=True, **median, **case)
    @ledger.sharper("about any point").falsify(median=False, **median, **case)
    def inequality(points, z, tau, median, factor):
        center = median_of(points) if median else z
        least = factor * (1 - tau) * quantile_radius(points, tau, center)
        return least, distances(points, center).mean()

    step = ledger.step("at least (1 - tau) n summands are r^(tau) or more")

    @step.falsify(strict=False, mutant={"strict": True}, **case)
    def far(points, z, tau, strict):
        away, radius = distances(points, z), quantile_radius(points, tau, z)
        return (1 - tau) * len(points), np.sum(away > radius if strict else away >= radius - 1e-12)


@statement("gm.lemma4")
def robustness(ledger):
    """Let D lie in R^d, and S be a set of fewer than n/2 indices. Then, for all x in R^d,
    norm(x_star - x) is at most (2n - 2 |S|) / (n - 2 |S|) times the largest norm(x_i - x) over i
    not in S.

    The bound is taken from Cohen et al. (2016), without a proof. The bound is loose by a factor of
    at least 2. At |S| = 0, the factor is exactly 2. Let s = 1 - |S| / n be the share of the points
    outside S. The factor s / sqrt(2 s - 1) is then sharp, but Lemma 4 has the factor 2 s / (2 s -
    1).
    """
    attack_displacement(ledger, factor=2.0, power=1.0, mutant={"power": 0.0})
    attack_displacement(
        ledger.sharper("s / sqrt(2 s - 1) for 2 s / (2 s - 1)"),
        factor=1.0,
        power=0.5,
        mutant={"factor": 0.95},
    )
