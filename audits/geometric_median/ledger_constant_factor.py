"""Private geometric median: Theorem 3 and its remark."""

from __future__ import annotations

import math
from functools import partial
from unittest import mock

import numpy as np
from scipy.stats import chi2

from algorithms.geometric_median import _points
from algorithms.geometric_median.baselines import radius_finder_queries
from algorithms.geometric_median.center import fast_center, fast_center_samples
from algorithms.geometric_median.composed import warm_start, warm_start_parameters
from algorithms.geometric_median.radius import fast_radius_samples
from algorithms.geometric_median.reference import geometric_median, quantile_radius
from audits.geometric_median import transcribed
from audits.geometric_median.audit_algorithms import CROWD
from audits.geometric_median.conventions import ANY_DELTA, DELTA, EPSILON, NOISE, UNIT, noise_option
from dpaudit import ApproxDP, Relation
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array, Method
from mutants import geometric_median as mutants

DIMENSIONS = Interval(1.0, 1e6, log=True)
DOUBLINGS = Interval(2.0, 300.0)  # log2(R / r)
CLOUDS = {
    "places": Array(Interval(-4.0, 4.0), ("m", "d")),
    "copies": Array(Interval(0.0, 1.0), ("m",)),
    "m": Choice((3, 4, 6)),
    "d": Choice((1, 2)),
}


# --- the requirements and the cost of the warm start ---


def distances_computed(run):
    """Return how many distances a function computes."""
    seen = []

    def counting(exact):
        def wrapped(vectors):
            seen.append(vectors.size // vectors.shape[-1])
            return exact(vectors)

        return wrapped

    with (
        mock.patch.object(_points, "norms", counting(_points.norms)),
        mock.patch.object(_points, "directed", counting(_points.directed)),
    ):
        run()
    return sum(seen)


HITS = {
    "samples": {"total_hits": transcribed.sampled, "hits": transcribed.sampled},
    "counts": {"total_hits": transcribed.counted_together, "hits": transcribed.counted},
}
"""How the transcription draws numbers of neighbours, by the route of the implementation."""


def started(n, d, epsilon, delta, doublings):
    """Return C' by the lemmas behind Theorem 3, or infinity if these lemmas give no bound."""
    try:
        return warm_start_parameters(
            n, math.ceil(d), min_radius=1.0, max_radius=2.0**doublings, epsilon=epsilon,
            delta=delta,
        ).radius_factor  # fmt: skip
    except ValueError:
        return math.inf


def warm_start_distances(n, delta, doublings):
    """Count the distances of FastRadius and FastCenter at delta each, if no query halts."""
    n, radii = math.ceil(n), math.ceil(doublings)
    each = fast_center_samples(n, delta)
    if radii > 0:
        each += radii * fast_radius_samples(radii, delta)
    return n * each


# --- Theorem 3 ---


def counted(points, radius):
    return _points.neighbour_counts(points, np.array([radius]))[:, 0]


def cloud(places, copies, n=60):
    """Return about n points in a few places."""
    times = np.maximum(np.round(copies / max(copies.sum(), 1e-9) * n).astype(int), 1)
    return np.repeat(places, times, axis=0)


def lemma7_too_early(shares):
    points = np.repeat([[0.0], [1.0]], [shares, 100 - shares], axis=0)
    middle = geometric_median(points).point
    r_hat = quantile_radius(points, 0.75, middle) / 4
    assert counted(points, 2 * r_hat)[0] > 0.45 * 100
    return float(np.linalg.norm(points[0] - middle)) / r_hat, 3.0


LEMMA7 = {
    "shares": 49,
    "lhs": "distance from x_star = 1 of a point with p_i > 0, in units of r_hat",
    "rhs": "3",
    "snippet": """
        import numpy as np
        x = np.repeat([0.0, 1.0], [49, 51])
        x_star, r_75 = np.median(x), 1.0  # only 75 points within 1 of x_star = 1
        r_hat = r_75 / 4  # as small as (11) allows
        near = (np.abs(x[0] - x) <= 2 * r_hat).mean()  # .49 > .45: p_0 > 0 may be
        lhs, rhs = abs(x[0] - x_star) / r_hat, 3.0
        print(lhs, ">", rhs)
    """,
}


@statement("gm.thm3", expected="holds_proof_broken")
def warm_start_theorem(ledger):
    """There are universal C, C' such that for D in B(R), 0 < r <= 4 r^(0.9) and n >= C (sqrt(d)
    log(1/delta) + log(log(R/r) / delta)) / epsilon, Algorithms 2 and 3 together are (epsilon,
    delta)-DP and, with probability at least 1 - delta, return (x_hat, r_hat) with f(x_hat) <= (40C'
    + 1) f(x_star), r_hat <= 4 r^(0.9) and norm(x_star - x_hat) <= C' r_hat.

    The theorem holds with n >= 20000 (sqrt(d) log(4 / delta) + log(4 (1 + log2(R / r)) / delta)) /
    epsilon and C' = 7. The proof applies Lemma 7, which needs r_hat >= r^(.75). But Lemma 6 gives
    only r_hat >= r^(.75) / 4. 'Lemma 6' and 'Algorithm 2' near the end of the proof should be Lemma
    7 and Algorithm 3. Our conventions exclude two limits: delta near 1, and R near r. In both
    limits, the condition on n requires almost nothing. In addition, noise of length n^-1 sqrt(d
    log(24 / delta) log(8 / delta)) is not O(sqrt(d) log(1 / delta) / n).
    """

    @ledger.identity(
        "the algorithm, for runs with several radii", points=Array(UNIT, ("n", "d")), d=2,
        n=Choice((4, 6)), r=Interval(0.1, 1.0), epsilon=Interval(20.0, 3e3, log=True),
        delta=ANY_DELTA, seed=Integer(0, 2**32), noise=NOISE,
        route=Choice(("samples", "counts")), parts=2, mutant={"parts": 1}, examples=40,
        end_to_end=True,
    )  # fmt: skip
    def algorithm(points, r, epsilon, delta, seed, noise, route, parts):
        found = warm_start(
            points, 4, min_radius=r, max_radius=1.5, epsilon=epsilon, delta=delta, route=route,
            **noise_option(noise), rng=np.random.default_rng(seed),
        )  # fmt: skip
        lines = transcribed.warm_start(
            points, 4, r, 1.5, epsilon, delta, np.random.default_rng(seed), **HITS[route],
            noise=noise or 1.0, parts=parts,
        )  # fmt: skip
        return found, lines

    @ledger.identity(
        "the least n, and C' at this n and above", d=Integer(1, 10_000), epsilon=EPSILON,
        delta=ANY_DELTA, doublings=Integer(0, 300), more=Interval(1.0, 100.0, log=True), beyond=0,
        extremal=[{"d": 1, "epsilon": e, "delta": 0.999, "doublings": 0, "more": 1.0}
                  for e in (1.0, 1e-3)],
        mutant={"beyond": 1}, examples=60,
    )  # fmt: skip
    def least_users(d, epsilon, delta, doublings, more, beyond):
        """Return which of n - 1 and n users are enough, and C' for n users and for more users."""
        radii = max(1, doublings)
        n = beyond + transcribed.least(
            lambda n: transcribed.is_enough_for_theorem_3(n, radii, epsilon, delta)
        )
        sizes = (n - 1, n, math.ceil(more * n))
        found = [started(size, d, epsilon, delta, doublings) for size in sizes]
        factors = [transcribed.c_prime(size, d, epsilon, delta) for size in sizes[1:]]
        return found, [math.inf, *factors]

    search = {"min_radius": 1.0, "max_radius": 2.0, "epsilon": 1.0, "delta": 1e-6}
    ledger.audit(
        partial(warm_start, **search),
        ApproxDP(1.0, 1e-6, Relation.REPLACE_USER),
        CROWD,
        draws=4_000,
        mutants=[partial(mutants.warm_start_subsampling_is_noise, **search)],
        survivors="With 40 users nothing passes line 9 of FastCenter, so its noise is never "
        "visible, and half of the noise of FastRadius is enough here. The noise that each of them "
        "needs is measured at gm.lemma5 and gm.lemma9, at sizes where it matters.",
    )

    @ledger.falsify(
        "the conditions of Lemmas 6 to 9 and the noise: C = 20000, C' = 7", power=0.5,
        d=DIMENSIONS, epsilon=EPSILON, delta=DELTA, doublings=DOUBLINGS, mutant={"power": 0.0},
        extremal=[{"d": 1e6, "epsilon": 1.0, "delta": 0.5, "doublings": 2.0}],
    )  # fmt: skip
    def conditions(d, epsilon, delta, doublings, power):
        n = d**power * math.log(4 / delta) + math.log(4 * (1 + doublings) / delta)
        return started(math.ceil(20_000 * n / epsilon), d, epsilon, delta, doublings), 7.0

    def success(n, d, delta, log_log, c, c_prime):
        """Bound the success probability if 85 % of the data lie at one place, and 15 % at another.

        The parameter epsilon is 1. Line 9 passes for every value of its noise. So the probability
        is at most the probability that the Gaussian noise is within C' r_hat.
        """
        assert n >= c * (math.sqrt(d) * math.log(1 / delta) + log_log - math.log(delta))
        assert 0.3 * n > 2 * 48 * math.log(48 / delta)
        sigma = 3200 / n * math.sqrt(math.log(24 / delta))
        return 1 - delta, chi2.cdf((c_prime / sigma) ** 2, d)

    words = {"lhs": "1 - delta", "rhs": "P[norm(x_star - x_hat) <= C' r_hat], at most"}
    near_one = {"n": 21_000, "d": 10_000, "delta": 0.99, "log_log": 1.0, "c": 1e4, "c_prime": 10.0}
    near_r = {"n": 10_000, "d": 400, "delta": 0.01, "log_log": -105.0, "c": 1e4, "c_prime": 10.0}
    numeric = {"method": Method.NUMERIC, **words}
    ledger.edge("delta <= 1/2").sweep(
        "n = 21000, d = 10^4, C = 10^4, C' = 10; log_log is log log(R / r)",
        cases=[near_one],
        **numeric,
    )(success)
    ledger.edge("R >= 4 r").sweep("log(log(R / r) / delta) < 0", cases=[near_r], **numeric)(success)

    lemma7 = ledger.step(
        "'Conditioned on (11) holding, Lemma 6 [7] guarantees' all p_i > 0 within 3 r_hat",
        fix="FastRadius does not halt at such a radius, although FastCenter would fail there. If "
        "FastRadius halts, some data point has .75 n points within r_hat, and Lemma 7 holds "
        "around this point. So survivors are within 6 r_hat of x_star, and Z >= .6 n",
    )

    lemma7.sweep(
        "49 points at 0, 51 at 1, r_hat = r^(.75) / 4 = 1/4: the 49 have .49 k neighbours", **LEMMA7
    )(lemma7_too_early)

    tight = {"places": np.array([[0.0], [1.0], [3.0]]), "copies": np.array([0.52, 0.44, 0.04])}
    row = {"places": np.array([[-1.0], [0.0], [1.0]]), "copies": np.array([0.3, 0.4, 0.3])}

    @ledger.step("FastCenter passes line 9, which the proof does not mention").falsify(
        "Z >= .6 n is enough, at half the budget", epsilon=EPSILON, delta=DELTA, constant=20_000,
        mutant={"constant": 1_000},
    )  # fmt: skip
    def passes(epsilon, delta, constant):
        n = constant * (math.log(4 / delta) + math.log(12 / delta)) / epsilon
        return 2 * 48 / epsilon * math.log(48 / delta), 0.05 * n

    mended = ledger.step("its repaired form, if FastRadius halts")

    @mended.falsify("within 6 r_hat", extremal=[tight], allowed=6.0, mutant={"allowed": 2.0},
                    **CLOUDS)  # fmt: skip
    def survivors(places, copies, allowed):
        points = cloud(places, copies)
        if counted(points, 1.0).mean() < 0.75 * len(points):
            return None
        away = np.linalg.norm(points - geometric_median(points).point, axis=1)
        return float(away[counted(points, 2.0) > 0.45 * len(points)].max()), allowed

    @mended.falsify("three quarters score .75 k", extremal=[row], reach=2.0, mutant={"reach": 1.0},
                    **CLOUDS)  # fmt: skip
    def total(places, copies, reach):
        points = cloud(places, copies)
        if counted(points, 1.0).mean() < 0.75 * len(points):
            return None
        return 0.75, float((counted(points, reach) >= 0.75 * len(points)).mean())

    ledger.consequence(
        "No user is affected, because C' is 7 with the repaired step.",
        harm="the wording",
    )


@statement("gm.thm3.tail")
def gaussian_tail(ledger):
    """The noise xi ~ N(0, sigma^2 I_d) of Algorithm 3 satisfies norm(xi) <= 3 sigma sqrt(d
    log(4/delta)) with probability at least 1 - delta/4.

    The constant sqrt 2 is enough instead of 3. For d = 1, the constant sqrt 2 is sharp. The sigma
    belongs to Algorithm 3, not to Algorithm 2.
    """
    domain = {"d": Integer(1, 10_000), "delta": ANY_DELTA, "extremal": [{"d": 1, "delta": 0.999}]}

    @ledger.sharper().falsify("sqrt 2 for 3", c=math.sqrt(2), mutant={"c": 1.0}, **domain)
    @ledger.falsify("exact chi-square tail", c=3.0, mutant={"c": 1.0}, **domain)
    def tail(d, delta, c):
        return chi2.sf(c**2 * d * math.log(4 / delta), d), delta / 4


@statement("gm.thm3.useful")
def sizes_at_which_it_is_useful(ledger):
    """Algorithm 3 goes beyond line 9 whatever its noise only if Z - 0.55 n > 2 (24/epsilon)
    log(24/delta), and its Gaussian noise has a root mean square length of at most r_hat only if n
    >= (1600/epsilon) sqrt(d log(12/delta)).

    Let epsilon = 1 and delta = 1e-6. If Z = n, line 9 passes in half of the runs at n = 907. If Z =
    n and n >= 1813, line 9 passes in all runs. In Theorem 3, Algorithm 3 has half the budget, so
    1813 becomes 3773. If Z = .6 n, the number 1813 becomes 16314. The noise has the length r_hat at
    n = 20428 for d = 10, and at n = 45678 for d = 50. Within Theorem 3, more than twice these
    numbers of users are needed. Within the theorem, Lemma 6 also requires 4800 log(8 T / delta)
    users. For T = 10, these are 87349 users.
    """
    log = math.log(24 / 1e-6)

    @ledger.monte_carlo("n = 907 = half of what is surely enough: no more often", allowed=0.52,
                        draws=4_000, n=907, passes=True, mutant={"n": 1260})  # fmt: skip
    @ledger.monte_carlo("n = 907: no less often", allowed=0.52, draws=4_000, n=907, passes=False,
                        mutant={"n": 560})  # fmt: skip
    def line_9(size, *, rng, n, passes):
        """Return whether line 9 passes, if all points are in one place, so that Z = n."""
        out = fast_center(np.ones((n, 1)), size, radius=1.0, epsilon=1.0, delta=1e-6, rng=rng)
        return (out != 0).any(axis=1) == passes

    @ledger.monte_carlo("n = 1814: it passes for all noise", allowed=1e-9, draws=2_000, n=1814,
                        mutant={"n": 1000})  # fmt: skip
    def stops(size, *, rng, n):
        return ~line_9(size, rng=rng, n=n, passes=True)

    @ledger.sweep("noise of length r_hat: d = 10 and 50", cases=[{"d": 10, "n": 20_427},
                  {"d": 50, "n": 45_677}], mutant={"more": 2})  # fmt: skip
    def spread(d, n, more=1):
        return more * n, 1600 * math.sqrt(d * math.log(12 / 1e-6))

    assert math.ceil(48 / 0.45 * log) == 1813


@statement("gm.thm3.time")
def running_time(ledger):
    """The algorithm of Theorem 3, Algorithm 2 and then Algorithm 3, runs in time O(n d log(R/r)
    log(n log(R/r) / delta)).

    A constant of 1400 in the printed number of distances is enough. FastCenter draws 600 log(36 n /
    delta) samples for each point, a number that does not depend on R / r. As R / r falls to 1, the
    printed bound falls below 0 for every constant. By our convention, R is far from r.
    """
    sizes = [{"n": 20, "log_ratio": math.log(4), "delta": 0.5},
             {"n": 60, "log_ratio": 3.0, "delta": 0.01}]  # fmt: skip

    @ledger.sweep("distances that the implementation computes", cases=sizes, logs=True,
                  mutant={"logs": False}, end_to_end=True)  # fmt: skip
    def measured(n, log_ratio, delta, logs):
        """Put half of the points at -1 and half at 1, for r = d = epsilon = 1."""
        points = np.repeat([[-1.0], [1.0]], n // 2, axis=0)
        found = distances_computed(
            partial(
                warm_start, points, 1, min_radius=1.0, max_radius=math.exp(log_ratio),
                epsilon=1.0, delta=delta, route="samples", rng=np.random.default_rng(0),
            )
        )  # fmt: skip
        more = math.log(n * log_ratio / delta) if logs else 1.0
        return found, 1400 * n * log_ratio * more

    @ledger.falsify(
        "if no query halts", n=Interval(20.0, 1e280, log=True), doublings=DOUBLINGS, delta=DELTA,
        logs=True, extremal=[{"n": n, "doublings": 2.0, "delta": 0.5} for n in (20.0, 1e280)],
        mutant={"logs": False},
    )  # fmt: skip
    def counted_out(n, doublings, delta, logs):
        ratio = math.log(2) * doublings
        allowed = 1400 * n * ratio * (math.log(n * ratio / delta) if logs else 1.0)
        return warm_start_distances(n, delta / 2, doublings), allowed

    @ledger.edge("R >= 4 r").sweep(
        "R = 1.001 r, n = 1000, d = 1, delta = 1/2", n=1000, log_ratio=1e-3,
        lhs="distances that FastCenter computes", rhs="1400 times the printed bound",
    )  # fmt: skip
    def near(n, log_ratio):
        bound = 1400 * n * log_ratio * math.log(n * log_ratio / 0.5)
        return n * 600 * math.log(18 * n / 0.25), bound


# --- other quantiles ---


def apart(sizes, places, spread):
    """Return clusters of points on circles of radius `spread` around far places."""
    parts = []
    for size, place in zip(sizes, places, strict=True):
        angles = 2 * math.pi * np.arange(size) / max(size, 1)
        ring = spread * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        parts.append(np.asarray(place) + ring)
    return np.concatenate(parts)


def one_cluster(beta, n=200):
    """Return a share beta in one cluster, and the other points far from everything."""
    core = math.ceil(beta * n)
    lonely = [[100.0 * i, 1e4] for i in range(n - core)]
    return apart([core, *[1] * (n - core)], [[0.0, 0.0], *lonely], 1e-3)


def two_clusters(n=200):
    """Return 48 % of the points in each of two clusters at distance 2.

    The other 4 % of the points lie off the line through the clusters.
    """
    return apart([12 * n // 25, 12 * n // 25, n // 25], [[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 1e-3)


def averages(data, beta):
    del beta
    return float(counted(data, 0.01).mean())


def largest(data, beta):
    return float(radius_finder_queries(data, [0.01], beta)[0])


TWO_RUNS = "the claim compares queries of one algorithm on two datasets"


@statement("gm.rem.quant", expected="refuted")
def other_quantiles(ledger):
    """For datasets with more a priori information on the number of outliers, the quantile 0.9 in
    Theorem 3 can be adjusted to any quantile above 0.5 by adjusting constants.

    The query of Algorithm 2 is an average over all points. If a share beta of the points is in one
    cluster and the other points are apart, the query reaches only beta^2 n. Two clusters of 48 %
    reach .46 n at an arbitrarily small radius, although the median is far from almost all points.
    For all constants, a threshold that separates too small radii from large enough radii exists
    only if beta^2 > 1/2. RadiusFinder of HSU24 averages only the largest counts
    (gm.hsu.radiusfinder). If a query averages only the largest counts, a threshold exists for any
    beta > 1/2. Section 1 also claims the error alpha r^(tau) for any tau > 1/2.
    """

    @ledger.sweep(
        "quantiles .55, .6 and .65: some threshold separates the radii", beta=[0.6, 0.55, 0.65],
        shared=TWO_RUNS,
        lhs="largest query at a radius 100 times too small", mutant=None,
        rhs="query at one 100 times too large", snippet="""
            import numpy as np
            beta, n = 0.6, 200
            # Two clusters of 48 % are around -1 and 1, and 4 % are at distance 1 from both. The
            # median is 1 away from almost all points. At a hundredth of this radius each point of
            # a cluster has 96 neighbours. Compare one cluster of 60 % and 80 points far from
            # everything: at all radii up to their distances, 120 points have 120 and 80 have 1.
            lhs = (96 * 96 + 96 * 96 + 8 * 8) / n
            rhs = (120 * 120 + 80 * 1) / n
            print(lhs, ">", rhs)
        """,
    )  # fmt: skip
    def queries(beta):
        small, large = two_clusters(), one_cluster(beta)
        too_small = quantile_radius(small, beta) / 100
        enough = 100 * quantile_radius(large, beta)
        return float(counted(small, too_small).mean()), float(counted(large, enough).mean())

    repair = ledger.repair(
        "any quantile above 1 / sqrt 2 by adjusting constants; and above 1/2 if the query averages "
        "only the largest counts, as RadiusFinder does"
    )

    @repair.sweep(
        "largest counts: the same data on different sides of a threshold", beta=[0.55, 0.6, 0.7],
        query=largest, method=Method.NUMERIC, mutant={"query": averages}, shared=TWO_RUNS,
    )  # fmt: skip
    def told_apart(beta, query):
        return query(two_clusters(), beta), 0.999 * query(one_cluster(beta), beta)

    ledger.consequence(
        "A user who expects up to 45 % outliers cannot adjust a constant. The query has to change.",
        harm="accuracy",
    )
    corners = 2 * np.pi * np.arange(3) / 3
    triangle = np.stack([np.cos(corners), np.sin(corners)], axis=1)
    far = np.array([[-40.0, 0.0], [40.0, 0.0], [0.0, 1.0]])
    betas = Interval(0.715, 0.9)

    @repair.falsify(
        "a query between n / 2 and beta^2 n gives a lower bound on the radius", beta=betas,
        least=None,
        extremal=[{"places": far, "copies": np.array([0.48, 0.48, 0.04]), "beta": 0.8}],
        mutant={"least": 0.45}, **CLOUDS,
    )  # fmt: skip
    def bounded(places, copies, beta, least):
        points = cloud(places, copies)
        share = (0.5 + beta**2) / 2
        if counted(points, 1.0).mean() < (least or share) * len(points):
            return None
        return quantile_radius(points, share), 1 + 2 * share / (2 * share - 1)

    @repair.falsify(
        "and 2 r^(beta) reaches beta^2 n", beta=betas, reach=2, mutant={"reach": 1},
        extremal=[{"places": triangle, "copies": np.ones(3), "beta": 0.8}], **CLOUDS,
    )  # fmt: skip
    def reached(places, copies, beta, reach):
        points = cloud(places, copies)
        radius = reach * quantile_radius(points, beta) * (1 + 1e-12)
        return (beta**2, counted(points, radius).mean() / len(points)) if radius else None
