"""Private geometric median: Section 3.1, utility and running time of FastRadius."""

from __future__ import annotations

import math
from functools import partial
from unittest import mock

import numpy as np
from scipy.stats import binom

from algorithms.geometric_median import _points
from algorithms.geometric_median.radius import fast_radius, fast_radius_samples, radius_grid
from algorithms.geometric_median.reference import quantile_radius
from audits.geometric_median.ledger_privacy import laplace_rule, laplace_tail
from audits.geometric_median.ledger_warm_start import log_tail
from dpaudit.ledger import Array, Domain, LedgerVerdict, statement
from dpaudit.search import Integer, Interval

EPSILONS = Interval(1e-3, 1.0, log=True)
DELTAS = Interval(1e-12, 0.999, log=True)
RADII = Integer(1, 400)  # of the grid: R / r up to 2^400


# --- subsampled queries ---


def sizes(t, epsilon, delta, constant=2400.0):
    """Return n and k of Lemma 6."""
    level = math.log(4 * t / delta)
    return math.ceil(constant / epsilon * level), math.ceil(3 * level)


SAMPLING = Domain(t=RADII, epsilon=EPSILONS, delta=DELTAS)


@statement("gm.eq5")
def queries_are_accurate(ledger):
    def too_low(t, epsilon, delta, constant=2400.0, samples=None):
        n, k = sizes(t, epsilon, delta, constant)
        draws = n * (samples or k)
        return t * binom.cdf(math.floor(0.79 * draws), draws, 0.8), delta / 2

    def too_high(t, epsilon, delta, constant=2400.0, samples=None, share=0.0):
        """A share of the points has all as neighbours, so that only the others are random."""
        n, k = sizes(t, epsilon, delta, constant)
        k, certain = samples or k, math.floor(share * n)
        least, rate = math.ceil(0.76 * n * k), (0.75 * n - certain) / (n - certain)
        return t * binom.sf(least - 1 - certain * k, (n - certain) * k, rate), delta / 2

    edges = [{"t": 1, "epsilon": 1.0, "delta": delta} for delta in (0.999, 1e-12)]
    for inequality, claim in ((too_low, "q* > .8 n"), (too_high, "q* < .75 n")):
        ledger.falsify(
            SAMPLING,
            inequality,
            claim=f"{claim}: exact binomial tail, over all radii; the mutant has k = 1",
            extremal=edges,
            mutant=partial(inequality, samples=1),
        )
        ledger.falsify(
            SAMPLING,
            partial(inequality, constant=140.0),
            claim=f"{claim}: even for n >= (140 / epsilon) log(4 T / delta)",
            extremal=edges,
            mutant=partial(inequality, constant=80.0),
        )
    ledger.falsify(
        Domain(**SAMPLING.parts, share=Interval(0.0, 0.74)),
        too_high,
        claim="points with different numbers of neighbours",
        extremal=[{**edge, "share": 0.3} for edge in edges],
        mutant=partial(too_high, samples=1),
    )
    ledger.note(
        "True, with n >= (140 / epsilon) log(4 T / delta) in place of 2400, but not for the "
        "printed reason: see gm.eq6. Equal numbers of neighbours are the worst case (Hoeffding "
        "1956). The proof's log(delta / 4 T) is negative: 4 T / delta is meant."
    )


@statement("gm.eq6", expected=LedgerVerdict.REFUTED)
def exponents(ledger):
    def ratio_of(mean):
        return (mean + 0.01) / mean - 1

    def first(mean, divisor=151):
        e = ratio_of(mean)
        return math.exp(-e * e / (2 + e)), math.exp(-e / divisor)

    ledger.falsify(
        Domain(mean=Interval(1e-3, 0.75)),
        first,
        claim="exp(-e^2 mu / (2 + e)) <= exp(-e mu / 151), for mu = mean n^2 and e mu = n^2 / 100",
        mutant=partial(first, divisor=150),
        extremal=[{"mean": 0.75}],
        tolerance=1e-12,
    )

    def last(t, epsilon, delta, power=2):
        n, _ = sizes(t, epsilon, delta)
        return math.log(2 * t / delta), n**power / 15100

    ledger.falsify(
        SAMPLING,
        last,
        claim="exp(-n^2 / 15100) <= delta / (2 T), by logarithms",
        mutant=partial(last, power=1),
    )

    def too_high(t, epsilon, delta, exponent):
        """Probability that q_t > .76 n where q*_t = .75 n against exp(-exponent), both as -log."""
        n, k = sizes(t, epsilon, delta)
        return exponent(n, k) / 15100, -log_tail(math.ceil(0.76 * n * k) - 1, n * k, 0.75)

    ledger.falsify(
        SAMPLING,
        partial(too_high, exponent=lambda n, k: n * n),
        claim="the premise beside (6), a sum of n^2 variables: P[q_t > .76 n] <= exp(-n^2 / 15100)",
        extremal=[{"t": 1, "epsilon": 1.0, "delta": 0.5}],
    )
    with ledger.repair(
        "(n k / n) q_t = k q_t is a sum of n k Bernoulli variables: exp(-n k / 15100), which is "
        "at most delta / (2 T) as well"
    ):
        ledger.falsify(
            SAMPLING,
            partial(too_high, exponent=lambda n, k: n * k),
            claim="P[q_t > .76 n] <= exp(-n k / 15100)",
            mutant=partial(too_high, exponent=lambda n, k: n * n),
        )
        ledger.falsify(
            SAMPLING,
            lambda t, epsilon, delta: (
                math.log(2 * t / delta),
                math.prod(sizes(t, epsilon, delta)) / 15100,
            ),
            claim="n k / 15100 >= log(2 T / delta)",
            extremal=[{"t": 1, "epsilon": 1.0, "delta": 0.999}],
            mutant=lambda t, epsilon, delta: (
                math.log(2 * t / delta),
                sizes(t, epsilon, delta)[0] / 15100,
            ),
        )
    ledger.note(
        "The inequalities of (6) hold; refuted is the premise beside them, that n q_t is a sum of "
        "n^2 Bernoulli variables: it is n / k times a sum of n k, and Fact 1 gives n k in the "
        "exponents. (.7 and .71 before (6) are .75 and .76.)"
    )


# --- utility ---


def counted(points, radius):
    """Ideal query: the average over the points of how many points are near."""
    return float(_points.neighbour_counts(points, np.array([radius])).mean())


def clouds(low=-4.0, high=4.0):
    return [
        Domain(places=Array(Interval(low, high), (m, d)), copies=Array(Interval(0.0, 1.0), (m,)))
        for m in (3, 4, 6)
        for d in (1, 2)
    ]


def multiplicities(copies, n):
    """Share about n points out; at least one each."""
    return np.maximum(np.round(copies / max(copies.sum(), 1e-9) * n).astype(int), 1)


def cloud(places, copies, n=60):
    """About n points in a few places."""
    return np.repeat(places, multiplicities(copies, n), axis=0)


def bent_chain(core, middle, angle):
    """Return `core` points at 0, `middle` at distance 1, as many within 1 of those, far from 0."""
    turn = (1 - 1e-9) * np.array([[0.0, 0.0], [math.cos(angle), math.sin(angle)]])
    ends = np.vstack([turn, [(1 - 1e-9) * 2 * math.cos(angle), 0.0]])
    return {"places": ends, "copies": np.array([core, middle, middle]), "n": core + 2 * middle}


SYMMETRIC = {
    "places": np.array([[-1.48], [-0.49], [0.49], [1.48]]),
    "copies": np.array([0.13, 0.37, 0.37, 0.13]),
}


@statement("gm.lemma6")
def utility_of_fast_radius(ledger):
    def not_too_small(places, copies, n=100):
        times = multiplicities(copies, n)
        near = np.linalg.norm(places[:, None] - places[None], axis=2) <= 1.0
        if 4 * int(times @ near @ times) < 3 * int(times.sum()) ** 2:
            return None
        return quantile_radius(np.repeat(places, times, axis=0), 0.75), 4.0

    ledger.falsify(
        clouds(),
        not_too_small,
        claim="q* >= .75 n at a radius implies r^(.75) <= 4 times it",
        extremal=[SYMMETRIC, bent_chain(5994, 3003, 0.12645)],
        mutant=0.25,
    )

    def not_too_large(places, copies):
        points = cloud(places, copies)
        radius = 2 * quantile_radius(points, 0.9) * (1 + 1e-12)
        return (0.81 * len(points), counted(points, radius)) if radius > 0 else None

    ledger.falsify(
        clouds(),
        not_too_large,
        claim="q* >= .81 n at 2 r^(.9)",
        mutant=0.9,
        extremal=[
            {
                "places": np.array([[0.0, 1], [1, 0], [-1, 0], [0, -1], [99, 0], [0, 99]]),
                "copies": np.array([0.225] * 4 + [0.05] * 2),
            }
        ],
    )

    nodes, weights = laplace_rule(-25, 40, order=4)

    def fails(t, epsilon, delta, constant=2400.0, loud=None):
        """At most: it halts at one of t queries of .75 n, or not at the one of .81 n."""
        n, k = sizes(t, loud or epsilon, delta, constant)
        threshold = 0.775 * n + 6 / epsilon * nodes
        at = (np.arange(20) + 0.5) / 20
        low, high = (binom.ppf(at, n * k, rate) / k for rate in (0.75, 0.81))
        halts = laplace_tail(threshold[:, None] - low, 12 / epsilon).mean(axis=1)
        misses = 1 - laplace_tail(threshold[:, None] - high, 12 / epsilon).mean(axis=1)
        return float(weights @ (1 - (1 - halts) ** t + misses)), delta

    domain = Domain(t=RADII, epsilon=EPSILONS, delta=Interval(0.01, 0.9, log=True))
    edges = [
        {"t": t, "epsilon": epsilon, "delta": delta}
        for t, epsilon, delta in ((1, 1.0, 0.9), (400, 1.0, 0.01), (1, 0.1, 0.1))
    ]
    ledger.falsify(
        domain,
        fails,
        claim="probability to halt too early or too late, for the worst data",
        examples=ledger.examples // 3,
        extremal=edges,
        mutant=partial(fails, loud=1.0),
    )
    ledger.falsify(
        domain,
        partial(fails, constant=600.0),
        claim="even for n >= (600 / epsilon) log(4 T / delta)",
        examples=ledger.examples // 3,
        extremal=edges,
        mutant=partial(fails, constant=300.0),
    )
    search = {"min_radius": 1.02, "max_radius": 4.08, "epsilon": 1.0, "delta": 0.8}
    n, _ = sizes(2, 1.0, 0.8)
    angles = 2 * math.pi / 36 * np.arange(n)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    circle[: n // 11] *= 3.9
    low, high = (quantile_radius(circle, tau) for tau in (0.75, 0.9))

    def outside(size, *, rng, low=low / 4, high=4 * high):
        found = fast_radius(circle, size, **search, rng=rng)
        return (found < low) | (found > high)

    ledger.monte_carlo(
        outside,
        0.8,
        draws=100,
        claim="a circle with outliers, at the least n that it asks for",
        where={"n": n},
        mutant=partial(outside, low=low, high=2 * high),
    )
    ledger.note(
        "n >= (600 / epsilon) log(4 T / delta) is enough. Its proof cites 'Lemma 6' for Lemma 2. "
        "The lower bound is loose: r^(.75) = 1.984 r_hat is the worst found, for 4 r_hat, on a "
        "bent chain of half of the points, a quarter and a quarter; it tends to 2 as bend and "
        "rounding vanish, and a search found no more than 2. But r_hat >= r^(.75), which Lemma 7 "
        "asks for, fails there, and on a line with 37 % at each of -.49 and .49, 13 % at each of "
        "-1.48 and 1.48."
    )


@statement("gm.lemma6.edge")
def edges_of_the_search(ledger):
    def lower(places, copies):
        points = cloud(places, copies)
        radius = float(_points.norms(points).max())
        return quantile_radius(points, 0.75), 4 * radius

    ledger.falsify(
        clouds(),
        lower,
        claim="R >= r^(.75) / 4 where all points lie in B(R)",
        extremal=[
            {"places": np.array([[-1.0], [1.0], [1.0]]), "copies": np.array([0.7, 0.15, 0.15])}
        ],
        mutant=0.25,
    )
    ledger.falsify(
        Domain(ratio=Interval(1.0 + 1e-12, 1e60, log=True)),
        lambda ratio: (ratio, 2 * radius_grid(1.0, ratio)[-1]),
        claim="R <= 2 r_T, so that q*_T <= .8 n gives R <= 4 r^(.9)",
        extremal=[{"ratio": 2.0}, {"ratio": 2.0**50}],
    )
    ledger.sweep(
        [{"ratio": 1.0}, {"ratio": 1.0 + 2**-52}],
        lambda ratio: (radius_grid(1.0, ratio).size, 1 if ratio > 1 else 0),
        claim="r = R leaves no radius to try",
        mutant=lambda ratio: (1, radius_grid(1.0, ratio).size),
    )
    ledger.note(
        "For t = 1 the upper bound is the hypothesis r <= 4 r^(.9). A third edge is left out: for "
        "r = R, T is 0 and log(4 T / delta) is undefined; R is returned, and is right."
    )


@statement("gm.lemma6.time", expected=LedgerVerdict.REFUTED)
def running_time(ledger):
    def distances(n, t, delta):
        return n * fast_radius_samples(t, delta) * t

    def counted_distances(n, t, delta):
        seen = []

        def norms(vectors, exact=_points.norms):
            seen.append(vectors.size // vectors.shape[-1])
            return exact(vectors)

        with mock.patch.object(_points, "norms", norms):
            fast_radius(
                np.arange(n)[:, None] * 1.0, 1, min_radius=n * 2.0**-t, max_radius=1.0 * n,
                epsilon=1e9, delta=delta, route="samples", rng=np.random.default_rng(1),
            )  # fmt: skip
        return sum(seen) - n, distances(n, t, delta)

    ledger.identity(
        [{"n": n, "t": 1, "delta": d} for n in (10, 1000) for d in (0.9, 1e-6)],
        counted_distances,
        claim="n k distances are computed for a radius",
        mutant=lambda **case: (counted_distances(**case)[0], case["n"] ** 2),
    )

    def work(ratio, delta):
        """Return k T, the distances for a point."""
        t = math.ceil(math.log2(ratio))
        return fast_radius_samples(t, delta) * t

    def printed(ratio, delta, constant):
        return work(ratio, delta), constant * math.log(ratio) * math.log(math.log(ratio) / delta)

    domain = Domain(ratio=Interval(1.0 + 1e-9, 1e120, log=True), delta=DELTAS)
    ledger.falsify(
        domain,
        partial(printed, constant=1e9),
        claim="n k T <= 10^9 n log(R / r) log(log(R / r) / delta)",
        extremal=[{"ratio": 2.0, "delta": 0.9}, {"ratio": 1.01, "delta": 0.5}],
    )
    with ledger.repair(
        "O(n d (1 + log(R / r)) log(4 (1 + log(R / r)) / delta)); and as printed for R >= 16 r"
    ):

        def repaired(ratio, delta, constant=4.0):
            radii = 1 + math.log2(ratio)
            return work(ratio, delta), constant * radii * math.log(4 * radii / delta)

        ledger.falsify(
            domain,
            repaired,
            claim="n k T <= 4 n (1 + log2(R / r)) log(4 (1 + log2(R / r)) / delta)",
            extremal=[{"ratio": 1.0 + 1e-9, "delta": 0.999}],
            mutant=lambda **case: repaired(**case, constant=3.0),
        )
        ledger.falsify(
            Domain(ratio=Interval(16.0, 1e120, log=True), delta=DELTAS),
            partial(printed, constant=20.0),
            claim="as printed, with the constant 20, for R >= 16 r",
            extremal=[{"ratio": 16.01, "delta": 0.996}],
            mutant=partial(printed, constant=4.0),
        )
    ledger.note(
        "As R / r falls to e^delta the printed bound falls to 0, and below: at R = 2 r and delta = "
        ".9 it is -.18 C n, for 5 n distances, so that no C helps. For R >= 16 r it holds with C = "
        "20; what is needed tends to 3 / log 2 = 4.3 as R / r grows. Constant 4 is enough for the "
        "repair with logarithms to base 2; 3 is not, as k and T are rounded up."
    )
