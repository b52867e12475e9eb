"""Private geometric median: the informal Theorems 1 and 2 of the introduction."""

from __future__ import annotations

import math

import numpy as np

from algorithms.geometric_median.composed import warm_start
from algorithms.geometric_median.reference import geometric_median, quantile_radius
from audits.geometric_median.conventions import DELTA, EPSILON
from audits.geometric_median.ledger_constant_factor import (
    LEMMA7,
    lemma7_too_early,
    started,
    warm_start_distances,
)
from audits.geometric_median.ledger_theorem4 import (
    BALLS,
    DOUBLINGS,
    EASIEST,
    PARAMETERS,
    excess_error,
    level_of,
    outside,
    parameters,
    users,
)
from dpaudit.ledger import statement
from dpaudit.neighbors import Interval

SMALL = {**EASIEST, "delta": 0.5, "doublings": 2.0}
TIMES = {"lhs": "distances computed by the warm start", "rhs": "10^3 n log^3(16 d / delta)"}


def large(n, share):
    """Return both sides for large n.

    The other parameters are d = alpha = epsilon = 1, delta = 1/2 and R = 4 r.
    """
    each = 600 * math.log(18 * n * 2 * share) + 2 * 3 * math.log(8 * 2 * share)
    return n * each, 1e3 * n * math.log(32) ** 3


@statement("gm.thm1", expected="holds_proof_broken")
def approximation_in_the_introduction(ledger):
    """Let D lie in B(R), 0 < r <= r^(0.9), and alpha, epsilon, delta in [0, 1]. If n >=
    sqrt(d)/(alpha epsilon) up to logarithms, there is an (epsilon, delta)-DP algorithm that returns
    x_hat with f(x_hat) <= (1 + alpha) f(x_star) with probability at least 1 - delta, in time n d +
    d/alpha^2 up to logarithms.

    The theorem holds after two changes. The balls and constants come from the repaired Lemma 14
    (gm.lemma14), and the logarithms are at least 1 (gm.thm4). The notation Otilde and the relation
    sign in the condition on n allow both changes. The paper's list of the quantities that Otilde
    hides does not contain n. But the running time has a factor log n (gm.thm4.time). If sizes are
    polynomial, log n is a logarithm of the listed quantities. The proof requires 30000 sqrt(d)
    log^2.5 / (alpha epsilon) users, which is not practical. At d = alpha = epsilon = 1 and delta =
    1/2, the proof requires at least 1.5 million users.
    """
    ledger.falsify(
        "n of the repaired Theorem 4 is enough for alpha f(x_star)", constant=30_000,
        doublings=DOUBLINGS, extremal=[SMALL, {**SMALL, "d": 10_000}],
        mutant={"constant": 20_000}, **PARAMETERS,
    )(excess_error)  # fmt: skip

    @ledger.falsify(
        "time, at that n", power=2, mutant={"power": 1}, doublings=DOUBLINGS,
        extremal=[SMALL, {**SMALL, "alpha": 1e-3}], **PARAMETERS,
    )  # fmt: skip
    def time(d, alpha, epsilon, delta, doublings, power):
        """Compare all distances and steps with n and 1 / alpha^2 times logarithms."""
        n = users(d, alpha, epsilon, delta, doublings)
        found = parameters(n, d, alpha, epsilon, delta, doublings)
        took = warm_start_distances(n, delta / 4, doublings) + found.n_steps
        first = 300 * n * (1 + doublings) * math.log(n * (1 + doublings) / delta)
        return took, first + 2e8 * level_of(d, alpha, epsilon, delta) / alpha**power

    ledger.step(
        "'informal, see Theorem 4', whose log log(R / r) is hidden here, with its T and eta",
        fix="balls of radius 2 sigma^(k-1) sqrt(d log(4 K / delta)) in Algorithm 4",
    ).sweep("uniform data on [-1, 1], C = 10, alpha = 1e-10, delta = 1e-6", **BALLS)(outside)
    ledger.consequence("The consequence is the same as for gm.lemma14.", harm="accuracy")
    ledger.edge("sizes are polynomial").sweep(
        "n = 10^100, and delta is split in 4", n=1e100, share=4, **TIMES
    )(large)


@statement("gm.thm2", expected="holds_proof_broken")
def warm_start_in_the_introduction(ledger):
    """Let D lie in B(R), 0 < r <= r^(0.9), and epsilon, delta in [0, 1]. If n >= sqrt(d)/epsilon up
    to logarithms, there is an (epsilon, delta)-DP algorithm that returns x_hat with f(x_hat) =
    O(f(x_star)) with probability at least 1 - delta, in time n d up to logarithms.

    At epsilon = 1, delta = 1/2 and R = 20 r, the lemmas require 21034 users. With 21034 users, the
    algorithm never fails, because the constants of the lemmas are loose. With 200 users, most runs
    fail. As in gm.thm1, the time has a factor log n, and Otilde does not hide n. The condition r >
    0 excludes data in which nine tenths of the points coincide.
    """
    least = 21_100  # at least as many users as the lemmas require
    search = {"min_radius": 1.0, "max_radius": 20.0, "epsilon": 1.0, "delta": 0.5}

    @ledger.monte_carlo(
        "the whole algorithm, a far cluster with as many outliers as r^(.9) allows",
        allowed=0.5, draws=100, n=least, mutant={"n": 200},
    )  # fmt: skip
    def fails(size, *, rng, n):
        points = 18 + np.linspace(-0.45, 0.45, n)[:, None]
        points[: n // 11] = -20.0
        factor = started(least, 1, 1.0, 0.5, math.log2(20))
        middle = geometric_median(points).point
        out = warm_start(points, size, **search, rng=rng)
        away = np.linalg.norm(out[:, :1] - middle, axis=1)
        return (away > factor * out[:, 1]) | (out[:, 1] > 4 * quantile_radius(points, 0.9, middle))

    easiest = {"epsilon": 1.0, "delta": 0.5, "doublings": 2.0}

    @ledger.falsify(
        "n >= 40000 sqrt(d) / epsilon log: within 7 r_hat of the median", power=0.5,
        d=Interval(1.0, 1e6, log=True), epsilon=EPSILON, delta=DELTA, doublings=DOUBLINGS,
        extremal=[{"d": d, **easiest} for d in (1.0, 1e6)], mutant={"power": 0.0},
    )  # fmt: skip
    def near(d, epsilon, delta, doublings, power):
        level = math.log(16 * d * (1 + doublings) / (epsilon * delta))
        n = math.ceil(40_000 * d**power / epsilon * level)
        return started(n, d, epsilon, delta, doublings), 7.0

    @ledger.falsify(
        "time", n=Interval(20.0, 1e12, log=True), delta=DELTA,
        doublings=Interval(2.0, 1e6, log=True), radii=1, mutant={"radii": 0},
        extremal=[{"n": 20.0, "delta": 0.5, "doublings": x} for x in (2.0, 1e6)],
    )  # fmt: skip
    def time(n, delta, doublings, radii):
        inner = n * (1 + doublings) / delta
        allowed = 1400 * n * (1 + doublings) ** radii * math.log(inner)
        return warm_start_distances(n, delta / 2, doublings), allowed

    ledger.step("'informal, see Theorem 3'", fix="the same as for gm.thm3").sweep(
        "Lemma 7 if r_hat is r^(.75) / 4: 49 points at 0, 51 at 1", **LEMMA7
    )(lemma7_too_early)
    ledger.consequence("As for gm.thm3, no user is affected.", harm="the wording")
    ledger.edge("sizes are polynomial").sweep(
        "n = 10^100, and delta is split in 2", n=1e100, share=2, **TIMES
    )(large)
