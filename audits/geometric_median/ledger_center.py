"""Private geometric median: Section 3.2, FastCenter and its survivors."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import binom, chi2

from algorithms.geometric_median import _points
from algorithms.geometric_median.center import (
    center_weights,
    fast_center,
    fast_center_centers,
    fast_center_samples,
    fast_center_sigma,
)
from algorithms.geometric_median.reference import geometric_median, quantile_radius
from audits.geometric_median import transcribed
from audits.geometric_median.conventions import ANY_DELTA, EPSILON, NOISE, UNIT, noise_option
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array

SCORES = {"n": Interval(1.0, 1e9, log=True), "delta": ANY_DELTA}
SCORES["extremal"] = [
    {"n": n, "delta": delta} for n, delta in ((1.0, 0.999), (1e9, 0.999), (1e9, 1e-12))
]
CLOUDS = {
    "places": Array(Interval(-6.0, 6.0), ("m", "d")),
    "copies": Array(Interval(0.0, 1.0), ("m",)),
    "m": Choice((3, 4, 6)),
    "d": Choice((1, 2)),
}


def samples(n, delta, constant=600.0, union=True):
    """Return k.

    A mutant omits the union bound over the n points.
    """
    return math.ceil(constant * math.log(18 * (n if union else 1) / delta))


def bounded_laplace_tail(x, scale, delta):
    """Return P[xi > x] for x >= 0, where the noise is bounded by scale log(24 / delta)."""
    end = delta / 24
    return max(math.exp(-x / scale) - end, 0.0) / (2 * (1 - end))


# --- the algorithm ---


@statement("gm.alg3")
def fast_center_as_printed(ledger):
    """FastCenter counts in f_i how many of k = 600 log(18n/delta) random points lie within 2 r_hat
    of x_i, and clips p_i = (f_i - 0.5k) / (0.25k) to [0, 1]. With b = (24/epsilon) log(24/delta)
    and Z = sum_i p_i, it returns 0 if Z + Laplace(24/epsilon), bounded by b, is <= 0.55 n + b; else
    sum_i p_i x_i / Z + N(0, sigma^2 I), sigma = (1600 r_hat / (n epsilon)) sqrt(log(12/delta)).

    The number k need not be an integer, so the implementation rounds k up. On line 4, S^(i) denotes
    the S_i of line 3. The constants come from Facts 2 and 3 at (epsilon / 2, delta / 6), for the
    sensitivities 12 and 400 r_hat / n. Section 1.2 names another paper for FriendlyCore.
    """
    ledger.misprint("the FriendlyCore algorithm of [HSU24], in Section 1.2", "of [TCK+22]")

    @ledger.identity(
        "k and sigma, compared with Facts 2 and 3", n=Integer(1, 10**9), epsilon=EPSILON,
        delta=ANY_DELTA, moved=400, mutant={"moved": 216 / 0.55},
    )  # fmt: skip
    def constants(n, epsilon, delta, moved):
        half, sixth = epsilon / 2, delta / 6
        printed = [
            math.ceil(600 * math.log(18 * n / delta)),
            2 * (moved / n) / half * math.sqrt(math.log(2 / sixth)),
        ]
        return [fast_center_samples(n, delta), fast_center_sigma(n, 1.0, epsilon, delta)], printed

    @ledger.identity(
        "lines 4 to 6 for given samples",
        points=Array(UNIT, ("n", 2)), table=Array(Interval(0.0, 1.0), ("n", 8)), n=Integer(1, 9),
        reach=2.0, mutant={"reach": 1.0},
    )  # fmt: skip
    def weights(points, table, reach):
        chosen = np.minimum((table * len(points)).astype(int), len(points) - 1)
        printed = []
        for x, row in zip(points, chosen, strict=True):
            f = sum(math.dist(x, points[j]) <= reach * 0.4 for j in row)
            printed.append(transcribed.weight(f, 8))
        return center_weights(points, chosen, 0.4), np.array(printed)

    domain = {
        "points": Array(UNIT, ("n", "d")), "n": Choice((3, 5, 8)), "d": Choice((1, 2)),
        "r_hat": Interval(0.1, 1.0), "epsilon": Interval(30.0, 3e4, log=True), "delta": ANY_DELTA,
        "seed": Integer(0, 2**32), "noise": NOISE, "end_to_end": True,
        "examples": 40,
    }  # fmt: skip
    row = {"seed": 0, "noise": 1.0, "delta": 0.1, "r_hat": 0.25}
    five = np.array([[0.0], [0.0], [0.5], [0.5], [1.5]])  # distances of exactly 2 r_hat
    seven = np.repeat([[1.0], [3.0], [5.0], [7.0]], [7, 1, 1, 1], axis=0)  # Z is near .56 n
    domain["extremal"] = [{**row, "points": five, "epsilon": e} for e in (1e4, 30.0)]
    domain["extremal"] += [{**row, "points": seven, "epsilon": 1e4, "seed": s} for s in range(5)]

    @ledger.identity("all lines, with the same samples", route="samples",
                     mutant={"least": 0.57}, **domain)  # fmt: skip
    @ledger.identity("all lines, with the same binomials", route="counts",
                     mutant={"constant": 1601.0}, **domain)  # fmt: skip
    def three_runs(points, r_hat, epsilon, delta, seed, noise, route, least=0.55, constant=1600):
        """Return the outputs of three runs, and the values before the Gaussian noise.

        If line 9 fails, the second value is a public point.
        """
        options = {"radius": r_hat, "epsilon": epsilon, "delta": delta, **noise_option(noise)}
        public = np.full(points.shape[1], 9.0)
        found = [
            fast_center(points, 3, route=route, **options, rng=np.random.default_rng(seed)),
            fast_center_centers(points, 3, failed_at=public, route=route, **options,
                                rng=np.random.default_rng(seed)),
        ]  # fmt: skip
        printed = {"hits": {"samples": transcribed.sampled, "counts": transcribed.counted}[route]}
        printed |= {"noise": noise or 1.0, "least": least}
        given = points, 3, r_hat, epsilon, delta
        lines = transcribed.fast_center(
            *given, np.random.default_rng(seed), constant=constant, **printed
        )
        before = transcribed.centers(*given, np.random.default_rng(seed), **printed)
        return found, [lines, [public if center is None else center for center in before]]

    @ledger.identity("more given samples than are in memory at once", n=[257], k=[4096], reach=2.0,
                     mutant={"reach": 1.9})  # fmt: skip
    def many_given(n, k, reach):
        points = np.random.default_rng(0).uniform(-1.0, 1.0, size=(n, 1))
        table = np.random.default_rng(1).integers(n, size=(n, k))
        near = transcribed.near(points, reach * 0.4)
        printed = [transcribed.weight(near[i, table[i]].sum(), k) for i in range(n)]
        return center_weights(points, table, 0.4), np.array(printed)

    @ledger.identity("more samples than are in memory at once", n=[257], seed=[0, 1], reach=2.0,
                     mutant={"reach": 1.99}, end_to_end=True)  # fmt: skip
    def many_points(n, seed, reach):
        points = np.random.default_rng(seed).uniform(-1.0, 1.0, size=(n, 1))
        found = fast_center_centers(
            points, 1, radius=0.5, epsilon=1e3, delta=0.5, failed_at=[9.0], route="samples",
            rng=np.random.default_rng(seed),
        )  # fmt: skip
        rng = np.random.default_rng(seed)
        return found, transcribed.centers(points, 1, 0.5, 1e3, 0.5, rng, reach=reach)

    @ledger.identity("more runs than are in memory at once", n=[2000], size=[1060], seed=[0, 1],
                     least=0.55, mutant={"least": 0.57}, end_to_end=True)  # fmt: skip
    def many_runs(n, size, seed, least):
        """Return which runs fail and where the others end, for all points in one place: Z = n."""
        found = fast_center(np.ones((n, 1)), size, radius=1.0, epsilon=0.1, delta=0.5,
                            rng=np.random.default_rng(seed))  # fmt: skip
        rng, b = np.random.default_rng(seed), 24 / 0.1 * math.log(24 / 0.5)
        xi = transcribed.bounded_laplace(24 / 0.1, b, size, rng)
        rng.binomial(math.ceil(600 * math.log(18 * n / 0.5)), 1.0, size=(n, size))  # all are k
        outputs = 1 + rng.normal(0.0, transcribed.center_sigma(n, 1.0, 0.1, 0.5), size=size)
        return found[:, 0], np.where(n + xi - b <= least * n, 0.0, outputs)

    # All points are in one place, so Z = n and only the noise is random.
    place, n, delta = np.array([1.0, -2.0, 5.0]), 200, 0.5
    passes = bounded_laplace_tail(24 * math.log(48) - 0.45 * n, 24.0, delta)
    middle = fast_center_sigma(n, 1.0, 1.0, delta) ** 2 * chi2.ppf(0.5, 3)

    def ends(size, *, rng, event, noise):
        out = fast_center(
            np.tile(place, (n, 1)), size, radius=1.0, epsilon=1.0, delta=delta,
            noise_multiplier=noise, rng=rng,
        )  # fmt: skip
        gave_up = (out == 0).all(axis=1)
        near = ((out - place) ** 2).sum(axis=1) <= middle
        return {"gives up": gave_up, "goes on": ~gave_up, "near": near & ~gave_up}[event]

    for event, allowed in (("gives up", 1 - passes), ("goes on", passes), ("near", passes / 2)):
        ledger.monte_carlo(
            f"lines 8 to 14: the event '{event}' is no more frequent than allowed",
            allowed=allowed, draws=20_000, event=event, noise=1.0,
            mutant={"noise": 2.0 if event == "gives up" else 0.5},
        )(ends)  # fmt: skip


# --- subsampled scores ---


def tails(n, delta, **options):
    """Return the probabilities that a score violates (7) or (8).

    The score falls from .75 k to below .7 k, rises from .45 k to above .5 k, or rises from .55 k to
    above .6 k.
    """
    k = samples(n, delta, **options)
    return (
        binom.cdf(math.ceil(0.7 * k) - 1, k, 0.75),
        binom.sf(math.floor(0.5 * k), k, 0.45),
        binom.sf(math.floor(0.6 * k), k, 0.55),
    )


def inaccurate(n, delta, constant=600.0, union=True):
    """Return the probability that (7) fails for some point, if every point is at its worst."""
    return n * max(tails(n, delta, constant=constant, union=union)[:2]), delta / 18


@statement("gm.eq7")
def scores_are_accurate(ledger):
    """Let f_star_i be the mean of f_i over the samples of Algorithm 3. With probability at least 1
    - delta/18, for all i in [n], f_star_i >= 0.75 k implies f_i >= 0.7 k, and f_star_i <= 0.45 k
    implies f_i <= 0.5 k.

    The value k = 200 log(18 n / delta) is enough. As n / delta grows, the constant 200 is sharp.
    The printed chain for the second implication is correct. The epsilon of Fact 1 is at least 1/9,
    and epsilon mu is at least k / 20. So the bound of Fact 1 is exp(-k / 400), which equals (delta
    / (18 n))^1.5 for this k.
    """
    exact = {"union": True, **SCORES}
    ledger.falsify("exact tails", mutant={"union": False}, **exact)(inaccurate)
    ledger.sharper().falsify("200 for 600 in k", constant=200.0,
                             mutant={"constant": 180.0}, **exact)(inaccurate)  # fmt: skip

    @ledger.step("Fact 1 with epsilon = 1/9, for scores up to .45 k").falsify(
        share=Interval(0.05, 0.45), over=0.05, mutant={"over": 0.02}, **SCORES | {"extremal": ()}
    )
    def chain(n, delta, share, over):
        """Return -log of both sides, for exp(-e^2 mu / (2 + e)) at (1 + e) mu = .5 k."""
        k = 600 * math.log(18 * n / delta)
        e = (0.45 + over) / share - 1
        return math.log(18 * n / delta), e * e * share * k / (2 + e)


def split(places, copies, n):
    """Return the distinct places, and how many of n points lie in each place."""
    times = np.floor(copies / max(float(copies.sum()), 1e-9) * n).astype(int)
    times[int(np.argmax(times))] += n - times.sum()
    return places[times > 0], times[times > 0]


def adjacent(places, radius=2.0):
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    return apart <= radius * (1 + 1e-12)


def around_median(places, copies):
    """Return places, multiplicities and distances from the median, in units of r_hat = r^(.75)."""
    places, times = split(places, copies, 100)
    points = np.repeat(places, times, axis=0)
    middle = geometric_median(points).point
    radius = quantile_radius(points, 0.75, middle)
    if radius < 1e-6:
        return None
    return places / radius, times, np.linalg.norm(places - middle, axis=1) / radius


@statement("gm.lemma7")
def survivors_are_near(ledger):
    """Assume r_hat >= r^(0.75) in Algorithm 3. With probability at least 1 - delta/18, every i with
    p_i > 0 satisfies norm(x_i - x_star) <= 3 r_hat, and Z >= 0.6 n.

    The constant 3 is sharp. The bound Z >= .6 n is loose. The worst data have Z = .74 n. The worst
    data have 54 % of the points at 0, 21 % at 1 and 25 % at 3. The proof prints f* >= .7 k, but the
    proof means and uses .75 k.
    """
    worst = {"places": np.array([[0.0], [1.0], [3.0]]), "copies": np.array([0.54, 0.21, 0.25])}
    delta, places, times = 0.9, *split(worst["places"], worst["copies"], 400)
    copies = np.repeat(adjacent(places) @ times, times)
    far = np.repeat(places, times, axis=0)[:, 0] > 3 + 1e-9

    @ledger.monte_carlo(
        "on the data for which both are tight",
        allowed=delta / 18, draws=1_000, least=0.6, mutant={"least": 0.75},
    )  # fmt: skip
    def fails(size, *, rng, least):
        k = samples(400, delta)
        hits = _points.binomial_hits(copies, k, size, rng)
        p = np.clip((hits - 0.5 * k) / (0.25 * k), 0.0, 1.0)
        return (p.sum(axis=0) < least * 400) | (p[far] > 0).any(axis=0)

    step, tight = ledger.step("a score above .45 k only near x_star"), [worst]

    @step.falsify("within 3 r_hat", extremal=tight, bound=3.0, mutant={"bound": 2.7}, **CLOUDS)
    def distance(places, copies, bound):
        if (found := around_median(places, copies)) is None:
            return None
        places, times, away = found
        score = adjacent(places) @ times / times.sum()
        return float(away[score > 0.45].max()), bound

    step = ledger.step("a score of .75 k within r^(.75) of x_star")

    @step.falsify("at least", extremal=tight, share=0.75, mutant={"share": 0.8}, **CLOUDS)
    def score(places, copies, share):
        if (found := around_median(places, copies)) is None:
            return None
        places, times, away = found
        least = (adjacent(places) @ times)[away <= 1 + 1e-9].min()
        return share * times.sum(), float(least)


# --- survivors in one ball ---


def largest_weights(places, times):
    """Return the weights that (8) allows: 0 for f* <= .45 k, .4 for f* <= .55 k, and 1 above."""
    score = adjacent(places) @ times / times.sum()
    return np.where(score <= 0.45, 0.0, np.where(score <= 0.55, 0.4, 1.0)), score


def chain_of(*shares):
    """Return the given shares of points at 0, 2, 4, ..."""
    places = 2.0 * np.arange(len(shares))[:, None]
    return {"places": places, "copies": np.array(shares)}


CHAIN = chain_of(0.02, 0.431, 0.549)
WEAK_CHAIN = chain_of(0.005, 0.455, 0.08, 0.455, 0.005)  # in this chain, Z is only .45 n
LONG_CHAIN = chain_of(0.289, 0.249, 0.343, 0.119)


@statement("gm.lemma8")
def survivors_lie_in_a_ball(ledger):
    """Let (8) be that for all i in [n], f_star_i <= 0.45 k implies f_i <= 0.5 k, and f_star_i <=
    0.55 k implies f_i <= 0.6 k, where f_star_i is the mean of f_i. If (8) and Z > 0.55 n, then some
    ball of radius 4 r_hat contains all x_i with p_i > 0. Moreover, (8) occurs with probability at
    least 1 - delta/9.

    If the ball must be around a data point, as in the proof, the constant 4 is sharp. In units of
    r_hat, 29 % of the points of the example lie at 0, 25 % at 2, 34 % at 4 and 12 % at 6. All
    points of the example survive. The points at 2 and 4 have scores above .55 k. From the place 2
    and from the place 4, the distance to some survivor is 4. No two survivors are more than 6
    apart. The constant 6 for the distance between survivors is sharp too. For a proof by
    contradiction, suppose that two survivors are more than 6 apart. Balls of radius 2 around the
    two survivors leave less than .1 n points outside. But more than .25 n points have a score above
    .55 k. So at least one point with a score above .55 k is in one of the two balls. This point is
    within 4 of the center of the other ball, which is a contradiction. On a line, survivors within
    6 of each other lie in a ball of radius 3. In the proof, (7) holds 'with probability delta /
    18', but the probability should be 1
    - delta / 18.
    """

    @ledger.falsify("(8) by exact binomial tails", union=True, mutant={"union": False}, **SCORES)
    def accurate(n, delta, union):
        return n * sum(tails(n, delta, union=union)[1:]), delta / 9

    some = {**CLOUDS, "extremal": [CHAIN, LONG_CHAIN, WEAK_CHAIN], "least": 0.55}

    def survivors(places, copies, least):
        """Return two tables of distances to survivors.

        The first table starts from survivors, and the second table starts from points with scores
        above .55 k.
        """
        places, times = split(places, copies, 1000)
        top, score = largest_weights(places, times)
        if top @ times <= least * 1000:
            return None
        apart = np.linalg.norm(places[:, None] - places[None], axis=2)
        return apart[top > 0][:, top > 0], apart[score > 0.55][:, top > 0]

    @ledger.falsify(
        "around a point with a score above .55 k", radius=4.0, mutant={"radius": 3.0}, **some
    )
    def ball(places, copies, least, radius):
        found = survivors(places, copies, least)
        return None if found is None else (float(found[1].max(axis=1).min()), radius)

    @ledger.sharper().falsify(
        "no two survivors are more than 6 apart", mutant={"least": 0.0}, **some
    )
    def diameter(places, copies, least):
        found = survivors(places, copies, least)
        return None if found is None else (float(found[0].max()), 6.0)
