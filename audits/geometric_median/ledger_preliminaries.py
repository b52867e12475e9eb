"""Private geometric median: introduction, Sections 2.1 and 2.3."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.stats import binom

from algorithms.geometric_median.reference import geometric_median, objective, quantile_radius
from dpaudit.ledger import Array, Domain, LedgerVerdict, Method, statement
from dpaudit.search import Choice, Integer, Interval

EPSILONS = Interval(1e-3, 1.0, log=True)
DELTAS = Interval(1e-12, 0.999, log=True)


def clouds(low=1, high=6):
    return [
        Domain(points=Array(Interval(-1.0, 1.0), (n, d)), z=Array(Interval(-1.0, 1.0), (d,)))
        for n in range(low, high)
        for d in (1, 2)
    ]


# --- Section 1 ---


@statement("gm.eq1")
def objective_and_median(ledger):
    def inequality(points, z):
        return objective(points, geometric_median(points).point), float(objective(points, z))

    def mean_for_median(points, z):
        return float(objective(points, points.mean(axis=0))), float(objective(points, z))

    ledger.falsify(
        clouds(),
        inequality,
        claim="no point beats the reference solver",
        extremal=[
            {"points": np.array([[0.0], [0.0], [1.0]]), "z": np.array([0.0])},
            {"points": np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.1]]), "z": np.array([0.5, 0.1])},
        ],
        mutant=mean_for_median,
    )

    def optimality(points, z, median=lambda points: geometric_median(points).point):
        """Vardi and Zhang: the pull of the others at a data point is at most its multiplicity."""
        del z
        away = median(points) - points
        length = np.linalg.norm(away, axis=1)
        here = length < 1e-9
        pull = (away[~here] / length[~here, None]).sum(axis=0)
        return float(np.linalg.norm(pull)), here.sum() + 1e-4

    ledger.falsify(
        clouds(2),
        optimality,
        claim="the sum of unit vectors is at most the number of points that lie there",
        mutant=lambda **case: optimality(**case, median=lambda points: points.mean(axis=0)),
    )
    ledger.note("The minimiser is not unique on a line with n even; the paper's argmin is a set.")


@statement("gm.eq2")
def quantile_radii(ledger):
    def brute(points, tau, z):
        distances = [0.0, *(math.dist(point, z) for point in points)]  # no square underflows
        need = Fraction(tau).limit_denominator(1000) * len(points)
        return min(r for r in distances if sum(x <= r for x in distances[1:]) >= need)

    def values(points, z, tau):
        return quantile_radius(points, tau, z), brute(points, tau, z)

    def rounded_down(points, z, tau):
        need = math.floor(tau * len(points))
        ordered = np.sort(np.linalg.norm(points - z, axis=1))
        return quantile_radius(points, tau, z), ordered[need - 1] if need else 0.0

    taus = Choice((0.0, 0.1, 0.25, 0.3, 0.5, 0.6, 0.75, 0.9, 1.0))
    domains = [Domain(**domain.parts, tau=taus) for domain in clouds()]
    ledger.identity(domains, values, claim="order statistic ceil(tau n)", mutant=rounded_down)
    ledger.note("argmin over r of a condition means the smallest such r.")


def required_n(ratio, epsilon, delta):
    """What Lemma 6 asks of n, for R / r = ratio."""
    t = math.ceil(math.log2(ratio))
    return 2400 / epsilon * math.log(4 * t / delta)


@statement("gm.intro.rindep", expected=LedgerVerdict.AMBIGUOUS)
def sample_complexity_and_aspect_ratio(ledger):
    domain = Domain(ratio=Interval(2.0, 1e12, log=True), epsilon=EPSILONS, delta=DELTAS)
    ledger.falsify(
        domain,
        lambda ratio, epsilon, delta: (
            required_n(ratio, epsilon, delta),
            required_n(2.0, epsilon, delta),
        ),
        claim="the n that Lemma 6 asks for is the same for all R / r",
    )
    with ledger.repair("the sample complexity grows with log log(R / r) / epsilon, and no faster"):
        ledger.falsify(
            domain,
            lambda ratio, epsilon, delta: (
                required_n(ratio, epsilon, delta) - required_n(2.0, epsilon, delta),
                2400 / epsilon * math.log(math.log2(ratio) + 1),
            ),
            mutant=0.5,
        )
    ledger.conclude(
        LedgerVerdict.AMBIGUOUS,
        "The introduction hides polylogarithms of R / r in n as well, so that it says 'up to "
        "those'; Theorem 4, as printed, has no R / r in its n. Literally it fails: Lemma 6 and "
        "Theorem 3, which Theorem 4 needs, ask for an n that grows with log log(R / r).",
    )


def sharp(share):
    """How far the median can be from c, in units of r, where that share lies within r of c."""
    return share / math.sqrt(2 * share - 1)


def tangent(k):
    """Return k + 1 points on the unit circle, k odd, and k far to the left: they move it most.

    From the median, at distance `sharp` to the left of the origin, the k + 1 are seen along the
    two tangents to the circle.
    """
    x = -1 / sharp((k + 1) / (2 * k + 1))
    inside = np.repeat(
        [[x, math.sqrt(1 - x * x)], [x, -math.sqrt(1 - x * x)]], (k + 1) // 2, axis=0
    )
    return {"inside": inside, "outside": np.tile([-1e3, 0.0], (k, 1))}


TANGENT = [tangent(k) for k in (1, 3, 9, 33, 99, 301, 999)]


def capped_clouds():
    return [
        Domain(
            inside=Array(Interval(-1.0, 1.0), (a, 2)),
            outside=Array(Interval(-50.0, 50.0), (b, 2)),
        )
        for a, b in ((2, 1), (3, 1), (3, 2), (4, 3), (5, 2))
    ]


def moved(inside, outside):
    """How far the median is from the origin."""
    return float(np.linalg.norm(geometric_median(np.concatenate([inside, outside])).point))


def farthest(points):
    return float(np.linalg.norm(points, axis=1).max())


def share_of(inside, outside):
    return len(inside) / (len(inside) + len(outside))


@statement("gm.intro.lem4use", expected=LedgerVerdict.REFUTED)
def majority_in_a_ball(ledger):
    ledger.sweep(
        TANGENT,
        lambda inside, outside: (moved(inside, outside), 10.0),
        method=Method.NUMERIC,
        claim="norm(x_star - c) <= 10 r whenever more than half of the data is within r of c",
    )

    def inequality(inside, outside):
        return moved(inside, outside), farthest(inside) * sharp(share_of(inside, outside))

    with ledger.repair(
        "norm(x_star - c) <= r s / sqrt(2 s - 1) where the share s > 1/2 lies within r of c: the "
        "constant depends on the excess over one half, and no constant does for all"
    ):
        ledger.sweep(TANGENT, inequality, method=Method.NUMERIC, claim="on the extremal data")
        ledger.falsify(
            capped_clouds(),
            inequality,
            tolerance=1e-6,
            claim="on random data",
            extremal=TANGENT[:2],
        )
    ledger.note(
        "With k + 1 of 2 k + 1 points in the ball the median moves by up to (k + 1) r / "
        "sqrt(2 k + 1), reached where it sees those k + 1 along two tangents."
    )


# --- Section 2.1 ---


@statement("gm.fact1")
def chernoff(ledger):
    def upper(n, p, e):
        mu = n * p
        # Every threshold between two integers has the same tail, and the bound is largest at
        # its lower end, where sum > (1 + e) mu just fails to hold with equality.
        return float(binom.sf(math.floor((1 + e) * mu), n, p)), math.exp(-e * e * mu / (2 + e))

    def lower(n, p, e):
        mu = n * p
        count = math.ceil((1 - e) * mu) - 1
        return float(binom.cdf(count, n, p)), math.exp(-e * e * mu / 2)

    size, rate = Integer(1, 1000), Interval(1e-6, 1.0, log=True)
    ledger.falsify(
        Domain(n=size, p=rate, e=Interval(0.0, 20.0)),
        upper,
        claim="upper tail",
        extremal=[{"n": 1, "p": 1.0, "e": 0.0}, {"n": 1000, "p": 1e-6, "e": 0.5}],
    )
    ledger.falsify(
        Domain(n=size, p=rate, e=Interval(1e-6, 1 - 1e-6)),
        lower,
        claim="lower tail",
        extremal=[{"n": 1, "p": 1.0, "e": 0.5}],
    )

    def unequal(p, e):
        distribution = np.array([1.0])
        for probability in p:
            distribution = np.convolve(distribution, [1 - probability, probability])
        mu = float(np.sum(p))
        return float(distribution[np.arange(len(distribution)) > (1 + e) * mu].sum()), math.exp(
            -e * e * mu / (2 + e)
        )

    ledger.falsify(
        [Domain(p=Array(Interval(0.0, 1.0), (n,)), e=Interval(0.0, 5.0)) for n in (2, 3, 6)],
        unequal,
        claim="unequal rates, by convolution",
    )


# --- Section 2.3 ---


@statement("gm.lemma3")
def objective_and_quantiles(ledger):
    def inequality(points, z, tau):
        del z
        found = geometric_median(points)
        return (1 - tau) * quantile_radius(points, tau, found.point), found.objective

    domains = [Domain(**domain.parts, tau=Interval(0.0, 1.0)) for domain in clouds()]
    split = np.array([[0.0], [0.0], [1.0], [-1.0]])
    ledger.falsify(
        domains,
        inequality,
        extremal=[{"points": split, "z": np.zeros(1), "tau": 0.5 + 1e-9}],
        tolerance=1e-6,
    )
    ledger.note("Tight: two points at the median and two at distance 1, just above tau = 1/2.")


@statement("gm.lemma4")
def robustness(ledger):
    def inequality(inside, outside):
        n, outliers = len(inside) + len(outside), len(outside)
        bound = 2 * (n - outliers) / (n - 2 * outliers)
        return moved(inside, outside), bound * farthest(inside)

    def all_in_the_denominator(inside, outside):
        return moved(inside, outside), 2 * share_of(inside, outside) * farthest(inside)

    ledger.falsify(
        capped_clouds(),
        inequality,
        claim="random data",
        extremal=[*TANGENT[:2], {"inside": np.array([[1.0, 0.0]]), "outside": np.zeros((0, 2))}],
        mutant=all_in_the_denominator,
    )
    ledger.sweep(
        TANGENT,
        inequality,
        method=Method.NUMERIC,
        claim="the data on which the median moves most",
        mutant=all_in_the_denominator,
    )
    ledger.note(
        "Never tight: with the share s = 1 - |S|/n the sharp constant is s / sqrt(2 s - 1) against "
        "2 s / (2 s - 1), half of it at best (see gm.intro.lem4use): where |S| = 0. Mutant: n "
        "for n - 2 |S|."
    )


FORMER = True
