"""Private geometric median: the baselines, Appendix A, and the set-up of Section 5."""

from __future__ import annotations

import math
import time
from unittest import mock

import numpy as np
from scipy.stats import chi2, f, ncx2

from algorithms.geometric_median import _points, baselines, boosting, datasets, schedule
from algorithms.geometric_median.reference import geometric_median, objective, quantile_radius
from dpaudit import NeighborPair, ZeroConcentratedDP, oracles
from dpaudit.ledger import Array, Box, LedgerVerdict, Method, statement
from dpaudit.search import Choice, Interval, Whole

SIGMA, DIMENSION, RHO = 0.1, 50, 0.5  # of Section 5.2
CLUSTER_RADIUS = 20 * SIGMA * math.sqrt(DIMENSION)  # its r-hat for GaussianCluster
NOT_TOLD = {"delta": 1e-5, "inlier_fraction": 0.9}  # in Section 5.2; taken from Section 5.1


# --- HSU24 ---


def distances_computed(run):
    """How many distances a function computes."""
    seen = []

    def norms(vectors, exact=_points.norms):
        seen.append(vectors.size // vectors.shape[-1])
        return exact(vectors)

    with mock.patch.object(_points, "norms", norms):
        run()
    return sum(seen)


@statement("gm.appA")
def running_times_of_hsu24(ledger):
    def pairs(n, steps):
        points = np.random.default_rng(0).normal(size=(n, 3))
        radii = 2.0 ** np.arange(steps)
        found = distances_computed(lambda: baselines.radius_finder_queries(points, radii))
        return found, n * n * steps

    ledger.sweep(
        [{"n": n, "steps": t} for n in (10, 200) for t in (1, 8)],
        pairs,
        claim="radius: at most n^2 distances, of time d, for each of log(R / r) radii",
        twin=lambda n, steps: (pairs(n, steps)[0], n * steps * 9),
    )

    def descent(n, steps):
        points = np.random.default_rng(0).normal(size=(n, 3))
        found = distances_computed(
            lambda: baselines.dpgd(
                points, 1, center=np.zeros(3), radius=1.0, rho=1.0, step=0.1, n_steps=steps,
                rng=np.random.default_rng(1),
            )
        )  # fmt: skip
        return found, (n + 1) * steps  # and one distance for the projection

    ledger.identity(
        [{"n": n, "steps": t} for n in (10, 200) for t in (1, 8)],
        descent,
        claim="gradient descent: n distances for each step",
    )

    def total(n, d, rho):
        steps = baselines.dpgd_parameters(n, d, radius=1.0, rho=rho).n_steps
        return steps * n * d, n**3 * rho / 256 + n * d

    ledger.falsify(
        Box(n=Whole(1, 100_000), d=Whole(1, 1000), rho=Interval(1e-4, 1.0, log=True)),
        total,
        claim="n^2 rho / (256 d) steps of time n d are n^3 rho / 256, and one step at least",
        extremal=[{"n": 16_000, "d": 1, "rho": 1.0}],
        twin=lambda n, d, rho: (total(n, d, rho)[0], 10 * n * n * d),
    )
    ledger.note(
        "rho is of the order of epsilon^2, so n^3 epsilon^2 is right, and n^2 d is exceeded from "
        "n epsilon^2 > 256 d on. The radius step needs n^2 (d + log(R / r)) only, as distances "
        "serve all radii. The cutting-plane and centre times are quoted, and were not run."
    )


def star(n):
    """All others around the one that leaves, and none of them near another."""
    points = np.vstack([np.eye(n - 1), np.zeros(n - 1)])
    return {"points": points, "other": np.full(n - 1, 9.0), "gamma": 0.75}


@statement("gm.hsu.radiusfinder")
def radius_finder(ledger):
    radii = np.array([0.5, 1.0, 2.0])

    def queries(points, other, gamma):
        moved = np.concatenate([points[:-1], other[None]])
        return [baselines.radius_finder_queries(x, radii, gamma) for x in (points, moved)]

    def sensitivity(points, other, gamma):
        here, there = queries(points, other, gamma)
        n = len(points)
        return float(np.abs(here - there).max()), 1 + (n - 2) / math.ceil(gamma * n - 1e-9)

    boxes = [
        Box(
            points=Array(Interval(-1.5, 1.5), (n, d)),
            other=Array(Interval(-3.0, 3.0), (d,)),
            gamma=Choice((0.55, 0.75, 1.0)),
        )
        for n, d in ((2, 1), (5, 1), (6, 3))
    ]
    stars = [star(n) for n in (3, 8, 21)]
    ledger.falsify(
        boxes,
        sensitivity,
        claim="a query moves by at most 1 + (n - 2) / m, which is below 3",
        extremal=stars,
        tolerance=1e-9,
        twin=lambda **case: (sensitivity(**case)[0], 2.0),
    )

    def loss(points, other, gamma, noise=1.0, epsilon=1.0):
        kept = math.ceil(gamma * len(points) - 1e-9)
        laws = [
            oracles.sparse_vector_patterns(
                found,
                thresholds=kept + 18 / epsilon * math.log(2 * len(radii) / 0.05),
                threshold_scale=6 * noise / epsilon,
                query_scale=12 * noise / epsilon,
                cutoff=1,
            ).probabilities
            for found in queries(points, other, gamma)
        ]
        return float(np.abs(np.log(laws[0]) - np.log(laws[1])).max()), epsilon

    ledger.falsify(
        boxes,
        loss,
        claim="epsilon-DP, from exact laws",
        examples=100,
        extremal=stars,
        tolerance=1e-6,
        twin=lambda **case: loss(**case, noise=0.1),
    )
    ledger.note(
        "1 + (n - 2) / m is sharp, reached by a star in dimension n - 1; the noise is that of "
        "sensitivity 3. After the published code and not the text of HSU24, which was not at "
        "hand: its beta (.05 there), and what it returns where no query passes, are not in this "
        "paper. Its last radius may be up to 2 R."
    )


@statement("gm.hsu.dpgd")
def gradient_descent(ledger):
    def spent(n, rho, steps):
        sigma = baselines.dpgd_sigma(n, rho, steps)
        return steps * (2 / n) ** 2 / (2 * sigma**2), rho

    ledger.identity(
        Box(n=Whole(1, 10_000), rho=Interval(1e-4, 10.0, log=True), steps=Whole(1, 10_000)),
        spent,
        claim="T (2 / n)^2 / (2 s^2) = rho",
        tolerance=1e-9,
    )

    def moved(points, other, start):
        """One step without noise, on neighbours."""
        replaced = np.concatenate([points[:-1], other[None]])
        a, b = (
            baselines.dpgd(
                x, 1, center=start, radius=10.0, rho=1.0, step=1.0, n_steps=1,
                noise_multiplier=1e-12, rng=np.random.default_rng(0),
            )
            for x in (points, replaced)
        )  # fmt: skip
        return float(np.linalg.norm(a - b)), 2 / len(points) + 1e-9

    ledger.falsify(
        [
            Box(
                points=Array(Interval(-1.0, 1.0), (n, d)),
                other=Array(Interval(-1.0, 1.0), (d,)),
                start=Array(Interval(-1.0, 1.0), (d,)),
            )
            for n in (1, 2, 5)
            for d in (1, 2)
        ],
        moved,
        claim="one point moves the gradient by at most 2 / n",
    )

    def mechanism(data, size, *, rng, noise=1.0):
        return baselines.dpgd(
            data, size, center=[0.0], radius=1e5, rho=0.5, step=1.0, n_steps=16,
            noise_multiplier=noise, rng=rng,
        )[:, 0]  # fmt: skip

    ledger.audit(
        mechanism,
        ZeroConcentratedDP(0.5),
        NeighborPair([[1e6], [-1e6], [1e6]], [[1e6], [-1e6], [-1e6]]),
        twin=lambda data, size, *, rng: mechanism(data, size, rng=rng, noise=0.25),
        draws=10_000,
    )
    ledger.note("After the published code and not the text of HSU24, which was not at hand.")


# --- the true radius ---


@statement("gm.exp.rtrue", expected=LedgerVerdict.REFUTED)
def true_radius_of_a_cluster(ledger):
    def held(dimension, fraction, square=None):
        """Share of the data within the radius of the mean; outliers count as outside."""
        square = dimension if square is None else square
        return 0.75, fraction * float(chi2.cdf(square, dimension))

    cases = [{"dimension": d, "fraction": 0.9} for d in (10, 5, 20, 50)]
    ledger.sweep(cases, held, claim="at least .75 of the data lie within sigma sqrt(d)")

    def quantile(dimension, fraction):
        return float(chi2.ppf(0.75 / fraction, dimension))

    with ledger.repair("r_true = sigma sqrt(q), q the .75 / frac_in quantile of chi-square, d"):
        ledger.sweep(
            cases,
            lambda dimension, fraction: held(dimension, fraction, quantile(dimension, fraction)),
            claim="share of the data",
            tolerance=1e-9,
            twin=0.9,
        )
        points = datasets.gaussian_cluster(
            20_000, 10, max_radius=10.0, sigma=SIGMA, inlier_fraction=0.9,
            rng=np.random.default_rng(1),
        )  # fmt: skip
        ledger.identity(
            [{"dimension": 10, "fraction": 0.9}],
            lambda dimension, fraction: (
                quantile_radius(points, 0.75),
                SIGMA * math.sqrt(quantile(dimension, fraction)),
            ),
            claim="r^(.75) of a sample of 20000",
            method=Method.MONTE_CARLO,
            tolerance=0.02,
            twin=lambda dimension, fraction: (
                quantile_radius(points, 0.75),
                SIGMA * math.sqrt(dimension),
            ),
        )
    ledger.note(
        "At d = 10 it holds 56 % of the inliers, half of the data; the quantile radius is 1.19 "
        "times larger, which lowers all ratios of Figure 1 (a) by as much."
    )


@statement("gm.exp.rtrueF", expected=LedgerVerdict.REFUTED)
def true_radius_of_heavy_tails(ledger):
    def held(dimension, degrees, ratio):
        """Share within sqrt(d ratio): the squared norm over d has the law F(d, nu)."""
        return 0.75, float(f.cdf(ratio, dimension, degrees))

    cases = [
        {"dimension": d, "degrees": float(nu)} for d, nu in ((10, 4), (10, 2), (10, 20), (50, 5))
    ]
    ledger.sweep(
        cases,
        lambda dimension, degrees: held(dimension, degrees, f.cdf(0.75, dimension, degrees)),
        claim="at least .75 of the data lie within sqrt(d F(.75)), F the CDF",
    )
    with ledger.repair("F is the quantile function, F^-1(gamma)"):
        ledger.sweep(
            cases,
            lambda dimension, degrees: held(dimension, degrees, f.ppf(0.75, dimension, degrees)),
            tolerance=1e-9,
            twin=0.9,
        )
        points = datasets.heavy_tailed(20_000, 10, degrees=4.0, rng=np.random.default_rng(1))
        ledger.identity(
            [{"dimension": 10, "degrees": 4.0}],
            lambda dimension, degrees: (
                quantile_radius(points, 0.75),
                datasets.heavy_tailed_radius(dimension, degrees, 0.75),
            ),
            claim="r^(.75) of a sample of 20000",
            method=Method.MONTE_CARLO,
            tolerance=0.03,
            twin=lambda dimension, degrees: (
                quantile_radius(points, 0.75),
                math.sqrt(dimension * f.cdf(0.75, dimension, degrees)),
            ),
        )
    ledger.note("At d = 10, nu = 4 the printed radius holds 7 % of the data.")


# --- the set-up of Section 5 ---


@statement("gm.exp.domain", expected=LedgerVerdict.REFUTED)
def data_in_the_ball(ledger):
    def outside(max_radius, dimension):
        """Of 900 inliers of GaussianCluster, how many are expected outside of B(R)."""
        away = (max_radius / 2 / SIGMA) ** 2
        return 900 * float(ncx2.sf((max_radius / SIGMA) ** 2, dimension, away)), 1.0

    ledger.sweep(
        [{"max_radius": r, "dimension": 10} for r in (10.0, 4.0, 1.0, 0.5)],
        outside,
        method=Method.NUMERIC,
        claim="GaussianCluster, as in Figure 1 (a): less than one inlier outside",
    )

    def beyond(degrees, max_radius):
        """Of 1000 points of HeavyTailed, how many are expected outside of B(R); d = 10."""
        return 1000 * float(f.sf(max_radius**2 / 10, 10, degrees)), 1.0

    ledger.sweep(
        [{"degrees": nu, "max_radius": 10.0} for nu in (2.0, 20.0)],
        beyond,
        method=Method.NUMERIC,
        claim="HeavyTailed, for which no R is told: with the largest R of the first experiment",
    )
    with ledger.repair(
        "the data are projected on B(R); or R >= 2 sigma (sqrt(d) + sqrt(2 log(n / eta))), for "
        "GaussianCluster with probability 1 - eta"
    ):

        def any_outside(n, dimension, eta):
            length = math.sqrt(dimension) + math.sqrt(2 * math.log(n / eta))
            return n * float(chi2.sf(length**2, dimension)), eta

        ledger.falsify(
            Box(n=Whole(1, 10_000), dimension=Whole(1, 100), eta=Interval(1e-9, 0.5, log=True)),
            any_outside,
            claim="no inlier is farther from its mean than R / 2",
            twin=lambda n, dimension, eta: (
                n * float(chi2.sf(dimension + math.log(n / eta), dimension)),
                eta,
            ),
        )
    ledger.note(
        "At R = .5 one inlier in ten lies outside; HeavyTailed lies in no ball. FastRadius stays "
        "private; its utility, and that of a search that stops at R, is not covered there. R = 25 "
        "to 100 is safe."
    )


def cluster(n, seed, max_radius=50.0, fraction=NOT_TOLD["inlier_fraction"]):
    return datasets.gaussian_cluster(
        n, DIMENSION, max_radius=max_radius, sigma=SIGMA, inlier_fraction=fraction,
        rng=np.random.default_rng(seed),
    )  # fmt: skip


def heavy(n, seed, degrees=5.0):
    return datasets.heavy_tailed(n, DIMENSION, degrees=degrees, rng=np.random.default_rng(seed))


def heavy_radius(degrees=5.0):
    return 20 * datasets.heavy_tailed_radius(DIMENSION, degrees, 0.75)


@statement("gm.exp.fge", expected=LedgerVerdict.REFUTED)
def objective_and_radius(ledger):
    def least(points):
        return geometric_median(points, tolerance=1e-6).objective

    ledger.sweep(
        [{"degrees": nu} for nu in (5.0, 2.5, 10.0)],
        lambda degrees: (heavy_radius(degrees), least(heavy(1000, 3, degrees))),
        method=Method.MONTE_CARLO,
        claim="HeavyTailed: r_hat <= f(x_star)",
    )
    ledger.sweep(
        [{"max_radius": r} for r in (50.0, 25.0, 100.0)],
        lambda max_radius: (CLUSTER_RADIUS, least(cluster(1000, 3, max_radius))),
        method=Method.MONTE_CARLO,
        claim="GaussianCluster with nine tenths of inliers: r_hat <= f(x_star)",
    )
    with ledger.repair(
        "on GaussianCluster sigma sqrt(d), a twentieth of r_hat, is below f(x_star)"
    ):
        ledger.sweep(
            [{"max_radius": r} for r in (25.0, 50.0, 100.0)],
            lambda max_radius: (CLUSTER_RADIUS / 20, least(cluster(1000, 3, max_radius))),
            method=Method.MONTE_CARLO,
            twin=0.2,
        )
    ledger.note(
        "f(x_star) / r_hat is .24, .43 and .82 for R = 25, 50 and 100, and .04 for HeavyTailed, "
        "which has no outliers but its tails (.11 with the printed CDF in r_hat). With half of the "
        "points outliers, frac_in is not told, it would hold for R >= 50."
    )


@statement("gm.exp.metric", expected=LedgerVerdict.REFUTED)
def error_metric(ledger):
    boxes = [
        Box(points=Array(Interval(-1.0, 1.0), (n, d)), z=Array(Interval(-1.0, 1.0), (d,)))
        for n in (1, 3, 5)
        for d in (1, 2)
    ]

    def printed(points, z):
        value = float(objective(points, z))
        excess = value - geometric_median(points).objective
        return (excess, value - value) if excess > 1e-6 else None

    ledger.falsify(boxes, printed, claim="the printed metric is no less than the excess error")
    with ledger.repair("(f(xhat) - f(x_star)) / r_hat"):
        ledger.falsify(
            boxes,
            lambda points, z: (
                geometric_median(points).objective,
                float(objective(points, z)) + 1e-9,
            ),
            claim="it is never negative",
            extremal=[{"points": np.ones((1, 1)), "z": np.zeros(1)}],
        )
    ledger.note("f(xhat) - f(xhat) is 0 for every xhat.")


@statement("gm.exp.init", expected=LedgerVerdict.AMBIGUOUS)
def initial_point(ledger):
    ledger.sweep(
        [{"max_radius": r} for r in (50.0, 100.0)],
        lambda max_radius: (max_radius / 2 - 0.75 * CLUSTER_RADIUS, CLUSTER_RADIUS),
        claim="ball around 0: the cluster lies in K^(1) for some direction of the start",
    )
    ledger.sweep(
        [{"max_radius": r} for r in (25.0, 50.0, 100.0)],
        lambda max_radius: (
            0.75 * CLUSTER_RADIUS + float(np.linalg.norm(away(max_radius))),
            CLUSTER_RADIUS,
        ),
        method=Method.MONTE_CARLO,
        claim="ball around the mean of the inliers: x_star lies in K^(1) for every direction",
    )
    ledger.conclude(
        LedgerVerdict.AMBIGUOUS,
        "B(.75 r_hat) has no centre; by Section 2.1 that is 0. Then the cluster, at R / 2 = 25, is "
        "farther than r_hat = 14.1 from every start, and K^(1) cannot hold x_star, for R = 50 and "
        "100; at R = 25 it does for few directions. Around the cluster or x_star, which must be "
        "meant, it always does. For HeavyTailed both agree.",
    )


def away(max_radius):
    """From the mean of the inliers to the median."""
    points = cluster(1000, 4, max_radius)
    return points[:900].mean(axis=0) - geometric_median(points, tolerance=1e-6).point


@statement("gm.exp.missing", expected=LedgerVerdict.AMBIGUOUS)
def what_the_protocol_leaves_out(ledger):
    def noise(delta, other):
        """Of StableDPSGD at T = 1023, n = 1000, in units of eta."""
        plan = {"radius": 1.0, "rho": RHO, "step": 1.0, "n_steps": 1023}
        first, second = (
            schedule.stable_dpsgd_parameters(1000, DIMENSION, delta=x, **plan).sigmas[0]
            for x in (delta, other)
        )
        return first, second

    ledger.sweep(
        [{"delta": 1e-6, "other": 1e-2}], noise, claim="delta in m does not change the noise"
    )

    def offset(beta, other):
        return tuple(18 * math.log(2 * 12 / x) for x in (beta, other))

    ledger.sweep(
        [{"beta": 0.001, "other": 0.05}], offset, claim="beta does not change RadiusFinder"
    )

    def scaled(fraction, other):
        values = (
            geometric_median(cluster(1000, 5, 50.0, x), tolerance=1e-6).objective
            for x in (fraction, other)
        )
        return tuple(values)

    ledger.sweep(
        [{"fraction": 0.5, "other": 0.9}],
        scaled,
        method=Method.MONTE_CARLO,
        claim="frac_in does not change f(x_star)",
    )
    ledger.conclude(
        LedgerVerdict.AMBIGUOUS,
        "Section 5 leaves open the step sizes of both SGD methods, delta in m (a factor 2 of noise "
        "between .01 and 1e-6), frac_in in 5.2 (a factor 4.5 of f(x_star) between .5 and .9), R "
        "for HeavyTailed, RadiusFinder's beta (a factor 1.6 of its offset between .05 and .001), "
        "and how gamma = .75 enters FastRadius, whose threshold is .775 n. Figures can be redone "
        "in several ways, and they differ.",
    )


def starting_point(points, radius, seed):
    """At .75 r-hat of the median, which is taken to be the centre that is not told."""
    direction = np.random.default_rng(seed).normal(size=DIMENSION)
    middle = geometric_median(points, tolerance=1e-6)
    return middle, middle.point + 0.75 * radius * direction / np.linalg.norm(direction)


def mean_excess(points, found, radius, middle):
    return float((objective(points, found) - middle.objective).mean()) / radius


@statement("gm.exp.stable")
def stable_dpsgd_at_their_sizes(ledger):
    def walked_back(n, delta, rho=RHO):
        """All later phases together against the noise of the first; in units of eta."""
        steps = 2 ** n.bit_length() - 1
        plan = schedule.stable_dpsgd_parameters(
            n, DIMENSION, radius=1.0, rho=rho, delta=delta, step=1.0, n_steps=steps
        )
        later = sum(a * b for a, b in zip(plan.steps[1:], plan.lengths[1:], strict=True))
        return later, plan.sigmas[0] * math.sqrt(DIMENSION)

    ledger.falsify(
        Box(n=Whole(1, 1000), delta=Interval(1e-9, 0.5, log=True)),
        walked_back,
        claim="T >= n just: phases 2 to K cannot walk back the noise of phase 1",
        extremal=[{"n": 512, "delta": 0.5}],
        twin=lambda **case: walked_back(**case, rho=10.0),
    )

    def gain(n, noise=1.0):
        """Nine tenths of the error at the start, and the least error over step sizes."""
        points = cluster(n, 6)
        middle, start = starting_point(points, CLUSTER_RADIUS, 7)
        errors = []
        for step in (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 1e-1):
            found = boosting.stable_dpsgd(
                points, 20, center=start, radius=CLUSTER_RADIUS, rho=RHO, delta=NOT_TOLD["delta"],
                step=step * CLUSTER_RADIUS, n_steps=2 ** n.bit_length() - 1,
                noise_multiplier=noise, rng=np.random.default_rng(8),
            )  # fmt: skip
            errors.append(mean_excess(points, found, CLUSTER_RADIUS, middle))
        before = (float(objective(points, start)) - middle.objective) / CLUSTER_RADIUS
        return 0.9 * before, min(errors)

    ledger.sweep(
        [{"n": 100}, {"n": 1000}],
        gain,
        method=Method.MONTE_CARLO,
        claim="GaussianCluster, one pass: it gains less than a tenth of the error at the start",
        twin=lambda n: gain(n, noise=0.05),
    )
    ledger.note(
        "At d = 50, rho = .5 and one pass the noise of phase 1 is at least twice what all later "
        "phases can walk, whatever eta; a small eta leaves the start where it is, a large one "
        "drowns it. With delta = 1e-5 the best of all step sizes gains 3 % at n = 1000."
    )


@statement("gm.exp.wall")
def wall_clock(ledger):
    points = cluster(1000, 9)
    middle, start = starting_point(points, CLUSTER_RADIUS, 10)
    shared = {"center": start, "radius": CLUSTER_RADIUS, "rho": RHO}

    def least_time(run):
        """Shortest of three runs, and the mean error of ten."""
        took = []
        for _ in range(3):
            began = time.perf_counter()
            run(1)
            took.append(time.perf_counter() - began)
        return min(took), mean_excess(points, run(10), CLUSTER_RADIUS, middle)

    def descent(steps):
        return lambda size: baselines.dpgd(
            points, size, **shared, step=CLUSTER_RADIUS / math.sqrt(steps), n_steps=steps,
            rng=np.random.default_rng(11),
        )  # fmt: skip

    def passes(size):
        """Eight passes with about the best step size."""
        return boosting.fixed_order_dpsgd(
            points, size, **shared, delta=NOT_TOLD["delta"], step=0.003 * CLUSTER_RADIUS,
            n_steps=2**13 - 1, rng=np.random.default_rng(12),
        )  # fmt: skip

    def sides(steps):
        (full, full_error), (fixed, fixed_error) = least_time(descent(steps)), least_time(passes)
        return (full, fixed) if full_error <= fixed_error else (math.inf, fixed)

    ledger.sweep(
        [{"steps": 16}],
        sides,
        method=Method.MONTE_CARLO,
        claim="DPGD takes less time than FixedOrderDPSGD, at an error no larger",
        twin=lambda steps: sides(4000),
    )
    ledger.note(
        "Seconds of one machine. 16 passes of DPGD take about a hundredth of the time of 8 passes "
        "of FixedOrderDPSGD, and end at half its error."
    )


@statement("gm.exp.ablate", expected=LedgerVerdict.REFUTED)
def step_size_of_dpgd(ledger):
    n = 1000
    steps = baselines.dpgd_parameters(n, DIMENSION, radius=1.0, rho=RHO).n_steps
    bases = {
        "best": 1 / math.sqrt(steps),
        "hsu": 2 * math.sqrt(DIMENSION / (6 * RHO * n**2)),
    }
    clouds = {"cluster": (cluster(n, 13), CLUSTER_RADIUS), "heavy": (heavy(n, 13), heavy_radius())}
    starts = {name: starting_point(*clouds[name], 14) for name in clouds}

    def error(data, base, multiplier):
        (points, radius), (middle, start) = clouds[data], starts[data]
        found = baselines.dpgd(
            points, 10, center=start, radius=radius, rho=RHO,
            step=multiplier * bases[base] * radius, n_steps=steps, rng=np.random.default_rng(15),
        )  # fmt: skip
        return mean_excess(points, found, radius, middle)

    ledger.sweep(
        [{"data": data, "other": m} for m in (1.5, 0.5, 1.75, 1.25) for data in clouds],
        lambda data, other: (error(data, "best", 1.0), 1.2 * error(data, "best", other)),
        method=Method.MONTE_CARLO,
        claim="no other multiplier has an error that is a fifth smaller",
    )
    with ledger.repair("r_hat / sqrt(T) is the better base; larger multipliers, to 1.75, help"):
        ledger.sweep(
            [{"data": data, "multiplier": m} for m in (0.25, 1.0, 1.75) for data in clouds],
            lambda data, multiplier: (
                error(data, "best", multiplier),
                error(data, "hsu", multiplier),
            ),
            method=Method.MONTE_CARLO,
            claim="the error with r_hat / sqrt(T) is below that with HSU24's base",
            twin=0.15,
        )
        ledger.sweep(
            [{"data": data} for data in clouds],
            lambda data: (error(data, "best", 1.5), error(data, "best", 1.0)),
            method=Method.MONTE_CARLO,
            claim="1.5 is better than 1, on HeavyTailed as well",
            twin=0.3,
        )
    ledger.note(
        "At n = 1000, d = 50, rho = .5 and T = 39, HSU24's number of steps; the paper tells no T. "
        "It says itself that larger multipliers did better on GaussianCluster. The instability on "
        "HeavyTailed was not seen: 1.5 has about two fifths of the error of 1 on both."
    )
