"""Private geometric median: the baselines of HSU24, and what Section 5 says of them."""

from __future__ import annotations

import functools
import math
import time

import numpy as np

from algorithms.geometric_median import baselines, boosting, schedule
from algorithms.geometric_median.reference import geometric_median, objective
from audits.geometric_median.ledger_constant_factor import distances_computed
from audits.geometric_median.ledger_setup import (
    CLUSTER_RADIUS,
    DIMENSION,
    NOT_TOLD,
    RHO,
    cluster,
    heavy,
    heavy_radius,
)
from dpaudit import NeighborPair, ZeroConcentratedDP
from dpaudit.ledger import Array, Domain, LedgerVerdict, Method, statement
from dpaudit.mechanisms import generator
from dpaudit.search import Choice, Integer, Interval
from dpaudit.stats import oracles

# --- HSU24 ---


@statement("gm.appA")
def running_times_of_hsu24(ledger):
    def pairs(n, steps):
        points = np.random.default_rng(0).normal(size=(n, 3))
        radii = 2.0 ** np.arange(steps)
        found = distances_computed(lambda: baselines.radius_finder_queries(points, radii))
        return found, n * n * steps

    def subsampled(n, steps):
        """The nine neighbours of FastRadius for all others."""
        return pairs(n, steps)[0], 9 * n * steps

    ledger.sweep(
        [{"n": n, "steps": t} for n in (10, 200) for t in (1, 8)],
        pairs,
        claim="radius: at most n^2 distances, of time d, for each of log(R / r) radii",
        mutant=subsampled,
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
        Domain(n=Integer(1, 100_000), d=Integer(1, 1000), rho=Interval(1e-4, 1.0, log=True)),
        total,
        claim="n^2 rho / (256 d) steps of time n d are n^3 rho / 256, and one step at least",
        extremal=[{"n": 16_000, "d": 1, "rho": 1.0}],
        mutant=lambda n, d, rho: (total(n, d, rho)[0], 10 * n * n * d),
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

    domains = [
        Domain(
            points=Array(Interval(-1.5, 1.5), (n, d)),
            other=Array(Interval(-3.0, 3.0), (d,)),
            gamma=Choice((0.55, 0.75, 1.0)),
        )
        for n, d in ((2, 1), (5, 1), (6, 3))
    ]
    stars = [star(n) for n in (3, 8, 21, 60)]
    # 353 or 354 of 400 in one place: a query that the threshold, 386, is in reach of
    crowd = {
        "points": np.repeat([[0.0], [10.0]], [353, 47], axis=0),
        "other": np.zeros(1),
        "gamma": 0.75,
    }
    ledger.falsify(
        domains,
        sensitivity,
        claim="a query moves by at most 1 + (n - 2) / m, which is below 3",
        extremal=stars,
        tolerance=1e-9,
        mutant=lambda **case: (sensitivity(**case)[0], 2.0),
    )

    def loss(points, other, gamma, noise=1.0, epsilon=1.0):
        kept = math.ceil(gamma * len(points) - 1e-9)
        distributions = [
            oracles.sparse_vector_patterns(
                found,
                thresholds=kept + 18 / epsilon * math.log(2 * len(radii) / 0.05),
                threshold_scale=6 * noise / epsilon,
                query_scale=12 * noise / epsilon,
                cutoff=1,
            ).probabilities
            for found in queries(points, other, gamma)
        ]
        return float(np.abs(np.log(distributions[0]) - np.log(distributions[1])).max()), epsilon

    ledger.falsify(
        domains,
        loss,
        claim="epsilon-DP, from exact distributions",
        examples=100,
        extremal=[*stars, crowd],
        tolerance=1e-6,
        # noise for an average of shares, which one point of n moves by 3 / n
        mutant=lambda **case: loss(**case, noise=1 / len(case["points"])),
    )
    ledger.note(
        "1 + (n - 2) / m is sharp, reached by a star in dimension n - 1; the noise is that of "
        "sensitivity 3. The noise is generous: at a third of it, as for sensitivity 1, no loss "
        "above .7 epsilon was found. Up to n = 191 the threshold is above n; genuine halts are "
        "examined at n = 400 only. After the published code and not the text of HSU24, which was "
        "not at hand: its beta (.05 there), and what it returns where no query passes, are not in "
        "this paper. Its last radius may be up to 2 R."
    )


@statement("gm.hsu.dpgd")
def gradient_descent(ledger):
    def spent(n, rho, steps):
        sigma = baselines.dpgd_sigma(n, rho, steps)
        return steps * (2 / n) ** 2 / (2 * sigma**2), rho

    ledger.identity(
        Domain(n=Integer(1, 10_000), rho=Interval(1e-4, 10.0, log=True), steps=Integer(1, 10_000)),
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

    small = np.array([2.7e-162, 1.57e-162])
    ledger.falsify(
        [
            Domain(
                points=Array(Interval(-1.0, 1.0), (n, d)),
                other=Array(Interval(-1.0, 1.0), (d,)),
                start=Array(Interval(-1.0, 1.0), (d,)),
            )
            for n in (1, 2, 5)
            for d in (1, 2)
        ],
        moved,
        claim="one point moves the gradient by at most 2 / n",
        # so close to the start that the squares of the distances underflow
        extremal=[{"points": small[None], "other": -small, "start": np.zeros(2)}],
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
        # the noise of one step for all 16
        mutants=[
            lambda data, size, *, rng: mechanism(data, size, rng=rng, noise=1 / math.sqrt(16))
        ],
        draws=10_000,
    )
    ledger.note("After the published code and not the text of HSU24, which was not at hand.")


# --- what is compared with them ---


def starting_point(points, radius, seed):
    """At .75 r-hat of the median, which is taken to be the centre that is not told."""
    direction = generator(*seed).normal(size=DIMENSION)
    middle = geometric_median(points, tolerance=1e-6)
    return middle, middle.point + 0.75 * radius * direction / np.linalg.norm(direction)


def mean_excess(points, found, radius, middle):
    return float((objective(points, found) - middle.objective).mean()) / radius


@statement("gm.exp.stable")
def stable_dpsgd_at_their_sizes(ledger):
    def walked_back(n, delta, parameters=schedule.stable_dpsgd_parameters):
        """All later phases together against the noise of the first; in units of eta."""
        steps = 2 ** n.bit_length() - 1
        plan = parameters(n, DIMENSION, radius=1.0, rho=RHO, delta=delta, step=1.0, n_steps=steps)
        later = sum(a * b for a, b in zip(plan.steps[1:], plan.lengths[1:], strict=True))
        return later, plan.sigmas[0] * math.sqrt(DIMENSION)

    ledger.falsify(
        Domain(n=Integer(1, 1000), delta=Interval(1e-9, 0.5, log=True)),
        walked_back,
        claim="T >= n just: phases 2 to K cannot walk back the noise of phase 1",
        extremal=[{"n": n, "delta": 0.5} for n in (511, 512)],
        mutant=lambda **case: walked_back(**case, parameters=schedule.fixed_order_dpsgd_parameters),
    )
    seed = (ledger.seed, "stable")

    def gain(n, method=boosting.stable_dpsgd):
        """Nine tenths of the error at the start, and the least error over step sizes."""
        points = generator(*seed, "order").permutation(cluster(n, seed))
        middle, start = starting_point(points, CLUSTER_RADIUS, (*seed, "start"))
        errors = []
        for step in (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 1e-1):
            found = method(
                points, 20, center=start, radius=CLUSTER_RADIUS, rho=RHO, delta=NOT_TOLD["delta"],
                step=step * CLUSTER_RADIUS, n_steps=2 ** n.bit_length() - 1,
                rng=generator(*seed, "noise"),
            )  # fmt: skip
            errors.append(mean_excess(points, found, CLUSTER_RADIUS, middle))
        before = (float(objective(points, start)) - middle.objective) / CLUSTER_RADIUS
        return 0.9 * before, min(errors)

    ledger.sweep(
        [{"n": 100}, {"n": 1000}],
        gain,
        method=Method.MONTE_CARLO,
        claim="GaussianCluster, one pass: it gains less than a tenth of the error at the start",
        mutant=lambda n: gain(n, boosting.fixed_order_dpsgd),
    )
    ledger.note(
        "At d = 50, rho = .5 and one pass the noise of phase 1 is four times what all later "
        "phases can walk, whatever eta; a small eta leaves the start where it is, a large one "
        "drowns it. With delta = 1e-5 the best of all step sizes gains 2 % at n = 1000, "
        "that of FixedOrderDPSGD 75 %."
    )


@statement("gm.exp.wall", replays=False)
def wall_clock(ledger):
    seed = (ledger.seed, "wall")
    points = cluster(1000, seed)
    middle, start = starting_point(points, CLUSTER_RADIUS, (*seed, "start"))
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
            rng=generator(*seed, "dpgd"),
        )  # fmt: skip

    def passes(size):
        """Eight passes with about the best step size."""
        return boosting.fixed_order_dpsgd(
            points, size, **shared, delta=NOT_TOLD["delta"], step=0.003 * CLUSTER_RADIUS,
            n_steps=2**13 - 1, rng=generator(*seed, "fixed"),
        )  # fmt: skip

    fixed, fixed_error = least_time(passes)

    @functools.cache  # measured once: another measurement would be another inequality
    def inequality(steps):
        full, full_error = least_time(descent(steps))
        return (full, fixed) if full_error <= fixed_error else (math.inf, fixed)

    ledger.sweep(
        [{"steps": 16}],
        inequality,
        method=Method.MONTE_CARLO,
        claim="DPGD takes less time than FixedOrderDPSGD, at an error no larger",
        mutant=lambda steps: inequality(4000),
    )
    ledger.note(
        "Seconds of one machine. 16 passes of DPGD take about a hundredth of the time of 8 passes "
        "of FixedOrderDPSGD, and end at .55 of its error."
    )


@statement("gm.exp.ablate", expected=LedgerVerdict.AMBIGUOUS)
def step_size_of_dpgd(ledger):
    seed = (ledger.seed, "ablate")

    @functools.cache
    def data(name, n):
        points = cluster(n, seed) if name == "cluster" else heavy(n, seed)
        radius = CLUSTER_RADIUS if name == "cluster" else heavy_radius()
        return points, radius, *starting_point(points, radius, (*seed, "start"))

    @functools.cache
    def error(name, n, steps, multiplier, base="best"):
        points, radius, middle, start = data(name, n)
        step = 1 / math.sqrt(steps) if base == "best" else 2 * math.sqrt(DIMENSION / (6 * RHO)) / n
        found = baselines.dpgd(
            points, 10, center=start, radius=radius, rho=RHO, step=multiplier * step * radius,
            n_steps=steps, rng=generator(*seed, "noise"),
        )  # fmt: skip
        return mean_excess(points, found, radius, middle)

    def best(name, n, steps, other):
        return error(name, n, steps, 1.0), error(name, n, steps, other)

    def opposite(inequality):
        return lambda **case: inequality(**case)[::-1]

    few = [{"name": "heavy", "n": n, "steps": t} for n, t in ((100, 4), (1000, 4), (100, 400))]
    ledger.sweep(
        [{**case, "other": other} for case in few for other in (1.5, 1.75)],
        best,
        method=Method.MONTE_CARLO,
        claim="4 steps, and n = 100 with 400: larger multipliers err more on HeavyTailed",
        mutant=opposite(best),
    )

    def worse(name, n, steps, other):
        """By a factor 1.5."""
        one, larger = best(name, n, steps, other)
        return 1.5 * larger, one

    many = baselines.dpgd_parameters(1000, DIMENSION, radius=1.0, rho=RHO).n_steps
    ledger.sweep(
        [
            {"name": name, "n": 1000, "steps": many, "other": other}
            for name in ("heavy", "cluster")
            for other in (1.5, 1.75)
        ],
        worse,
        method=Method.MONTE_CARLO,
        claim="39 steps, as HSU24 has it at n = 1000: larger multipliers err less by a factor 1.5",
        mutant=opposite(worse),
    )

    def bases(name, multiplier):
        return tuple(error(name, 1000, many, multiplier, base) for base in ("best", "hsu"))

    ledger.sweep(
        [
            {"name": name, "multiplier": x}
            for name in ("heavy", "cluster")
            for x in (0.25, 1.0, 1.75)
        ],
        bases,
        method=Method.MONTE_CARLO,
        claim="r_hat / sqrt(T) is the better base at n = 1000, with equal multipliers",
        mutant=opposite(bases),
    )
    ledger.conclude(
        LedgerVerdict.AMBIGUOUS,
        "The paper tells no T. On HeavyTailed multiplier 1 is best after 4 steps (errors .0007, "
        ".03 and .23 at n = 1000 for 1, 1.5 and 1.75) and at n = 100 after 400, as the paper has "
        "it; after 39 steps 1.5 and 1.75 have about a third of its error. That larger ones do "
        "better on GaussianCluster its footnote 9 says.",
    )


FORMER = True
