"""Geometric median: claims in the introduction, the footnotes and the remarks."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln, hyp1f1

from algorithms.geometric_median import schedule
from audits.geometric_median import transcribed
from audits.geometric_median.conventions import DELTA, EPSILON, UNIT
from dpaudit.ledger import statement
from dpaudit.neighbors import Integer, Interval
from dpaudit.properties import Array, Method


@statement("gm.def1.large", expected="refuted")
def large_epsilon(ledger):
    """In this paper, sample complexities are unaffected up to constants for any epsilon >= 1 if we
    simply obtain (1, delta)-DP guarantees rather than (epsilon, delta)-DP guarantees.

    The sample complexity sqrt(d)/(alpha epsilon) falls as epsilon grows, but the guarantee (1,
    delta) keeps it at sqrt(d)/alpha. Algorithm 4 needs a number of users that is proportional to
    1/sqrt(rho). With the best conversion from rho-CDP, the quotient of the two numbers is 9 at
    epsilon = 10 and 53 at epsilon = 100, for delta = 1e-6. It grows without limit. The claim holds
    for epsilon = O(1), with the constant of the repair.
    """

    def root(epsilon, delta):
        """Return sqrt(rho) for epsilon = rho + 2 sqrt(rho log(1/delta))."""
        log = math.log(1 / delta)
        return math.sqrt(log + epsilon) - math.sqrt(log)

    @ledger.sweep(
        "the users of Algorithm 4 at epsilon = 1, against ten times those at a larger epsilon",
        epsilon=[100.0, 1000.0], delta=1e-6, lhs="n for (1, delta)-DP",
        rhs="10 n for (epsilon, delta)-DP",
    )  # fmt: skip
    def users(epsilon, delta):
        return 1 / root(1.0, delta), 10 / root(epsilon, delta)

    repair = ledger.repair("for 1 <= epsilon <= c, up to the constant c")

    @repair.falsify(
        "at most epsilon times as many users", epsilon=Interval(1.0, 1e3, log=True), delta=DELTA,
        power=1.0, mutant={"power": 0.5}, extremal=[{"epsilon": 3.0, "delta": 1e-12}],
    )  # fmt: skip
    def bounded(epsilon, delta, power):
        return root(epsilon, delta) / root(1.0, delta), epsilon**power * (1 + 1e-9)

    ledger.consequence(
        "A user who may spend epsilon = 10 needs 9 times fewer users than the remark says.",
        harm="accuracy",
    )


@statement("gm.fn3", expected="ambiguous")
def gaussian_mean(ledger):
    """Intuitively, we require alpha of order d^(-1/2) to obtain nontrivial mean estimation when D
    consists of i.i.d. Gaussian data (as a typical radius is of order sqrt(d)), matching known
    sample complexity lower bounds of order d/epsilon for Gaussian mean estimation.

    For N(0, I) and a point at distance s of the mean, f = sqrt(d) + s^2/(2 sqrt(d)), up to lower
    order. So alpha = d^(-1/2) gives f an excess of 1, which allows a distance of 1.4 d^(1/4). This
    distance grows with d. For a distance of order 1, alpha must be of order 1/d, and sqrt(d)/(alpha
    epsilon) is then d^(3/2)/epsilon, which does not match d/epsilon. The footnote takes alpha times
    the radius, an excess of f, for a distance.
    """

    def mean_distance(s, d):
        """Return E norm(X - x) for X ~ N(0, I) in R^d and norm(x) = s, exactly."""
        chi = math.sqrt(2) * math.exp(gammaln((d + 1) / 2) - gammaln(d / 2))
        return chi * hyp1f1(-0.5, d / 2, -(s**2) / 2)

    @ledger.reading("nontrivial: within a distance of order 1 of the mean", fails=True).sweep(
        "at a distance of d^(1/4), alpha = d^(-1/2) is reached", d=[10**5, 10**6],
        method=Method.NUMERIC, lhs="a distance that (1 + alpha) f allows", rhs="10",
    )  # fmt: skip
    def distance(d):
        s = d**0.25
        allowed = mean_distance(s, d) <= (1 + d**-0.5) * mean_distance(0.0, d)
        return (s if allowed else 0.0), 10.0

    @ledger.reading("nontrivial: an excess of f of order 1").sweep(
        "the excess at a distance of 1.4 d^(1/4) is at most that of alpha = d^(-1/2)",
        d=[10, 100, 1000, 10**5], factor=1.4, mutant={"factor": 1.6}, method=Method.NUMERIC,
    )  # fmt: skip
    def excess(d, factor):
        centre = mean_distance(0.0, d)
        return mean_distance(factor * d**0.25, d) - centre, d**-0.5 * centre * (1 + 1e-3)

    ledger.consequence(
        "The footnote does not support the lower bound; the proof of [HSU24] is not affected.",
        harm="the wording",
    )


@statement("gm.intro.contract")
def contractive_unless_close(ledger):
    """Updating z <- z - eta u and z' <- z' - eta u' is always contractive, unless z, z' were both
    already very close to x_i (and hence, each other) to begin with.

    "Very close" is eta: if the distance grows, both points lie within eta of x_i, and their sum of
    distances is below eta. After the step, they are at most 2 eta apart (gm.lemma11).
    """

    @ledger.falsify(
        "the distance of the farther point to x_i where a step increases the distance",
        z=Array(UNIT, (2,)), other=Array(UNIT, (2,)), eta=Interval(0.1, 3.0), within=1.0,
        mutant={"within": 0.5},
        extremal=[{"z": np.array([0.99, 0.0]), "other": np.array([0.0, 0.001]), "eta": 1.0}],
    )  # fmt: skip
    def close(z, other, eta, within):
        a, b = math.hypot(*z), math.hypot(*other)
        if min(a, b) < 1e-9:
            return None
        moved = [z * (1 - eta / a), other * (1 - eta / b)]
        grows = math.dist(*moved) > math.dist(z, other) * (1 + 1e-9)
        return (max(a, b) if grows else 0.0), within * eta


@statement("gm.intro.regime")
def nearly_linear_regime(ledger):
    """The runtime of Theorem 1 is nearly-linear in the regime n >= 1/alpha^2, e.g., if sqrt(d)/
    epsilon >= 1/alpha.

    The example is right because Theorem 1 asks for n >= sqrt(d)/(alpha epsilon).
    """

    @ledger.falsify(
        "d/alpha^2 against n d", d=Integer(1, 10**6), epsilon=EPSILON, n_factor=Interval(1.0, 10.0),
        alpha=Interval(1e-4, 1.0, log=True), power=2, mutant={"power": 3},
        extremal=[{"d": 1, "epsilon": 0.01, "alpha": 0.01, "n_factor": 1.0}],
    )  # fmt: skip
    def overhead(d, epsilon, alpha, n_factor, power):
        if math.sqrt(d) / epsilon < 1 / alpha:
            return None
        n = n_factor * math.sqrt(d) / (alpha * epsilon)
        return d / alpha**power, n * d * (1 + 1e-9)


@statement("gm.rem1.factor")
def tightened_noise(ledger):
    """With passes in a fixed order, any single element is accessed m = ceil(T/n) times. This
    tightens the noise level sigma^(k) by a fairly significant constant factor.

    The factor is (6 (T/n + log(8/delta)) + 1)/(2 ceil(T/n) + 1). For one pass and delta = 1e-6, it
    is 34. It falls to 3 as T/n grows.
    """

    @ledger.identity(
        "noise of all phases in both schedules", n=Integer(2, 1000), phases=Integer(1, 12),
        delta=DELTA, rounds=1, mutant={"rounds": 2}, tolerance=1e-9,
    )  # fmt: skip
    def quotient(n, phases, delta, rounds):
        T = 2**phases - 1
        if n > T:
            return None
        shared = {"n_steps": T, "radius": 1.0, "rho": 0.5, "step": 0.1}
        random = schedule.stable_dpsgd_schedule(n, 3, delta=delta, **shared)
        fixed = schedule.fixed_order_schedule(n, 3, delta=delta, **shared)
        m = transcribed.accesses(n, phases, delta)[0]
        once = rounds * math.ceil(T / n)
        factor = (2 * m + 1) / (2 * once + 1)
        return np.divide(random.sigmas, fixed.sigmas), [factor] * phases
