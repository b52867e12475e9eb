"""Zeroth-order optimization: the data size of the naive oracle, Appendix E."""

from __future__ import annotations

import math

import numpy as np

from algorithms.zeroth_order import scaled
from algorithms.zeroth_order.bounds import stationarity_bound
from algorithms.zeroth_order.printed import appendix_e
from algorithms.zeroth_order.smoothing import smoothness_constant
from audits.zeroth_order import transcribed
from audits.zeroth_order.conventions import DIMENSION, SHARE
from audits.zeroth_order.ledger_theorem import PLANNED
from dpaudit.ledger import statement
from dpaudit.neighbors import Integer, Interval
from dpaudit.properties import Method

ROUNDING = 1e-9
SMALL = Interval(1e-6, 1.0, log=True)
"""epsilon, in units of L."""
BUDGET = Interval(1e-4, 1e4, log=True)


def bound(M, T, B, d, rho):
    """Return the display of Appendix E before T is set.

    The parameters are F* + L delta = L = delta = 1.
    """
    spread = (d / B) ** 0.5 + 1 + d**1.5 / (B * rho)
    return B * T / M + spread / T**0.5


def shortest(M, d, rho, times):
    """Return the display at B = 1 and the best T, where spread / sqrt(T) = 2 T / M."""
    T = (M * (d**0.5 + 1 + d**1.5 / rho) / 2) ** (2 / 3)
    left = T / M + (d**0.5 + 1 + d**1.5 / rho) / T**0.5
    return left, times * ((d / M) ** (1 / 3) + (d**1.5 / (rho * M)) ** (1 / 3))


@statement("zoo.appE.rate", expected="refuted")
def naive_rate(ledger):
    """With B = 1 and T = min{(sqrt(d) L delta M/(F* + L delta))^(2/3), (d^(3/2) L delta M/((F* + L
    delta) rho))^(2/3)}, the bound (F* + L delta) B T/(delta M) + sqrt(d) L/sqrt(BT) + L/sqrt(T) +
    d^(3/2) L/(B sqrt(T) rho) on E norm(grad F(wbar))_(2 delta) is <~ ((F* + L delta) d L^2/(delta
    M))^(1/3) + ((F* + L delta) d^(3/2) L^2/(rho delta M))^(1/3). Equivalently, E norm(grad
    F(wbar))_(2 delta) <= epsilon if M = Omega(d (F* L^2/(delta epsilon^3) + L^3/epsilon^3) +
    d^(3/2) (F* L^2/(rho delta epsilon^3) + L^3/(rho epsilon^3))).

    The display is false for every constant and every T. At B = 1, let c = sqrt(d) + d^(3/2)/rho.
    The least value of the left side is of order ((F* + L delta) c^2 L^2/(delta M))^(1/3). The right
    side has d^(3/2)/rho instead of d^3/rho^2. At rho = 1, the ratio grows like d^(1/2) as d ->
    infinity. As rho -> 0, the ratio grows like rho^(-1/3). The printed minimum also fails as rho ->
    infinity, because the ratio grows like rho^(1/3). The minimum must be a maximum. If the display
    is repaired at B = 1, M is of order d^3/(rho^2 delta epsilon^3). The printed M is correct with
    another batch size, B = max{1, d^(3/2)/rho}. With the 2 L delta of Corollary 4.7
    and sigma = 2 d L/(B rho), only constants change.
    """

    @ledger.step("the parameters of the display").identity(
        "the plan of `printed.appendix_e`", M=Integer(10, 10**9), **PLANNED
    )
    def planned(M, d, delta, rho, L, F, more):
        lines = transcribed.appendix_e(M, d, more * delta, rho, L, F)
        if lines is None:
            return None
        plan = appendix_e(M, d, radius=delta, rho=rho, lipschitz=L, gap=F)
        found = [plan.rounds, plan.epochs, plan.domain, plan.oracle.sigma, plan.oracle.batch]
        return [*found, plan.radius], [*lines[:-1], *lines.batches, more * delta]

    words = {"rhs": "1000 times the right side"}
    ledger.sweep("B = 1, rho = 1, the best T", M=1e100, d=1e8, rho=1.0, times=1000.0,
                 lhs="least value of the left side", **words)(shortest)  # fmt: skip
    ledger.sweep("B = 1, d = 1, rho = 1e-12, the best T", M=1e60, d=1.0, rho=1e-12, times=1000.0,
                 lhs="least value of the left side", **words)(shortest)  # fmt: skip

    @ledger.sweep("the printed T, d = 1", M=1e60, rho=[1e12, 1e-12], times=1000.0,
                  lhs="left side at the printed T", **words)  # fmt: skip
    def printed(M, rho, times):
        T = min(M, M / rho) ** (2 / 3)
        left = T / M + (2 + 1 / rho) / T**0.5
        return left, times * ((1 / M) ** (1 / 3) + (1 / (rho * M)) ** (1 / 3))

    repair = ledger.repair(
        "with T = max{...}: at B = 1 <~ ((F* + L delta) d L^2/(delta M))^(1/3) + ((F* + L delta) "
        "d^3 L^2/(rho^2 delta M))^(1/3), and with B = max{1, d^(3/2)/rho} and T = (M delta L/((F* "
        "+ L delta) B) max{sqrt(d/B), 1})^(2/3) the printed right side; constants 3 and 7"
    )
    domain = {"d": DIMENSION, "rho": BUDGET, "M": Interval(1.0, 1e12, log=True)}

    @repair.falsify("B = 1", most=3.0, mutant={"most": 1.5}, extremal=[
        {"d": 1, "rho": 1e4, "M": 1e6}, {"d": 1, "rho": 1.0, "M": 1e6},
    ], **domain)  # fmt: skip
    def one(d, rho, M, most):
        T = max(math.sqrt(d) * M, d**1.5 * M / rho) ** (2 / 3)
        right = (d / M) ** (1 / 3) + (d**3 / (rho**2 * M)) ** (1 / 3)
        return bound(M, T, 1, d, rho), most * right * (1 + ROUNDING)

    @repair.falsify("B = max{1, d^1.5/rho}, rounded up", most=7.0, best=True,
                    mutant={"best": False},
                    extremal=[{"d": 1, "rho": 1e-4, "M": 1e6}], **domain)  # fmt: skip
    def larger(d, rho, M, most, best):
        B = max(1, math.ceil(d**1.5 / rho)) if best else 1
        T = (M / B * max(math.sqrt(d / B), 1.0)) ** (2 / 3)
        right = (d / M) ** (1 / 3) + (d**1.5 / (rho * M)) ** (1 / 3)
        return bound(M, T, B, d, rho), most * right

    ledger.consequence(
        "With B = 1, the naive oracle needs d^(3/2)/rho times as many data as printed.", "accuracy"
    )


def without_noise(d, B, epsilon):
    """Return M at which the noiseless display at the best T is epsilon.

    The parameters are F* + L delta = L = 1.
    """
    spread = math.sqrt(d / B) + 1
    # the best T of B T / M + s / sqrt(T) gives (6.75 B s^2 / M)^(1/3)
    return 6.75 * B * spread**2 / epsilon**3


@statement("zoo.appE.needB1", expected="refuted")
def batch_of_one(ledger):
    """To achieve the optimal non-private rate O(d/(delta epsilon^3)), Algorithm 6 needs B = 1.

    Every B <= d achieves the rate, because M grows by a factor of at most 4. Up to a constant, M is
    (sqrt(d) + sqrt(B))^2 (F* + L delta) L^2/(delta epsilon^3). With noise, a large B is needed. For
    B = 1, the privacy term is d^3/rho^2. For B = d^(3/2)/rho, the privacy term is only d^(3/2)/rho.
    For B > d, the rate is B/(delta epsilon^3).
    """

    @ledger.sweep("B = d", d=[10**8, 10**4, 100], epsilon=[0.01, 0.1], times=10.0,
                  lhs="10 times the data at B = 1, without noise", rhs="data at B = d")  # fmt: skip
    def only_one(d, epsilon, times):
        one, many = ((np.sqrt(d / B) + 1) ** 2 * B / epsilon**3 for B in (1, d))
        return times * one, many

    repair = ledger.repair(
        "any B of order at most d gives the optimal non-private rate (B <= d with at most 4 "
        "times the data of B = 1), and no larger B does"
    )

    @repair.falsify("B = 1, ..., d", d=DIMENSION, share=SHARE, epsilon=SMALL, more=1.0,
                    mutant={"more": 8.0},
                    extremal=[{"d": 1000, "share": 1.0, "epsilon": 0.1}])  # fmt: skip
    def up_to(d, share, epsilon, more):
        B = max(1, math.floor(share * more * d))
        return without_noise(d, B, epsilon), 4 * without_noise(d, 1, epsilon)

    @repair.falsify("B > d: at least B/(4 d) times the data", d=DIMENSION, part=4.0, epsilon=SMALL,
                    B=Integer(1, 10**6), mutant={"part": 0.2})  # fmt: skip
    def beyond(d, B, epsilon, part):
        return B / (part * d) * without_noise(d, 1, epsilon), without_noise(d, B, epsilon) * (
            1 + ROUNDING
        )

    ledger.consequence(
        "The remark leads to B = 1, where the privacy cost is larger.", harm="accuracy"
    )


def proposed(d, epsilon, rho):
    """Return M at which each term of Theorem 4.9, with T = max{...}, is at most epsilon / 3."""
    T = max(9 * d / epsilon**2, 3 * d**1.5 / (rho * epsilon))
    return 3 * T / epsilon


def naive(d, epsilon, rho, B):
    spread = math.sqrt(d / B) + 1 + d**1.5 / (B * rho)
    return 6.75 * B * spread**2 / epsilon**3


def batch_one(d, epsilon, rho):
    return naive(d, epsilon, rho, 1), 1000 / epsilon * proposed(d, epsilon, rho)


def weak_privacy(d, epsilon, rho):
    """The value B = 1 is no better than the best B."""
    return proposed(d, epsilon, rho) / epsilon, 1000 * naive(d, epsilon, rho, 1)


LIMIT = {5: 1.91, 10: 3.17, 20: 5.03}
"""Values of rho below which the variance-reduced bound is smaller for large M, by d."""

CROSSED = {
    (5, 0.5): 2.2e8, (5, 1.0): 7.5e8, (10, 0.5): 3.8e8, (10, 1.0): 5.5e8, (10, 2.0): 3.0e9,
    (20, 0.5): 9e8, (20, 1.0): 9e8, (20, 2.0): 1.6e9,
}  # fmt: skip
"""Values of M at which the variance-reduced bound is smaller, by d and rho."""


def best_batch(d, rho):
    """Return the cube of the naive bound at its best real T and B, over 6.75 gain/(delta M)."""
    B, single = np.arange(1, 3000), d * d / (d - 1)
    noise = 2 * d**1.5 / (B * rho)
    return (B * (np.sqrt(single / B) + noise + np.sqrt(single / B + 1 + noise**2)) ** 2).min()


def in_the_limit(d, more):
    """Return the scaled cubes of both bounds, where the naive bound is taken at more * LIMIT."""
    curved = d + (1 - 1 / d) * smoothness_constant(d) ** 2
    reduced = 2 * math.sqrt(d / (d - 1) + 1 - 1 / d + 7 / 6 * curved) + 1
    return 2 * reduced**2, best_batch(d, more * LIMIT[d])


def explicit(M, d, rho):
    """Return the variance-reduced bound and the naive bound, at the best integers T and B."""
    plan = scaled.variance_reduced(M, d, radius=0.5, rho=rho, lipschitz=1.0, gap=1.0)
    reduced = stationarity_bound(plan, d, lipschitz=1.0, gap=1.0).total
    return reduced, (6.75 * (2 + d / (d + 1)) / M * best_batch(d, rho)) ** (1 / 3)


@statement("zoo.appE.gap", expected="ambiguous")
def gap(ledger):
    """The dominating term of the naive algorithm's data size is Omega(d^(3/2)/(rho delta
    epsilon^3)). In contrast, the proposed algorithm only requires Omegatilde(d/(delta epsilon^3) +
    d^(3/2)/(rho delta epsilon^2)) samples, as proved in Theorem 4.9: the naive algorithm suffers an
    additional cost of 1/epsilon for privacy.

    There are three readings. The first reading assumes rho <= sqrt(d) epsilon and the best B of the
    naive oracle, d^(3/2)/rho. In this reading, the cost is exactly 1/epsilon, because no B is
    better. The second reading assumes B = 1, as Appendix E prints. For small rho, the naive data
    size at B = 1 is of order d^3/(rho^2 delta epsilon^3). The cost is d^(3/2)/(rho epsilon). The
    third reading allows all rho. For rho > sqrt(d) epsilon, the naive oracle needs 1 + sqrt(d)/rho
    times as much data as the proposed algorithm. For rho >= sqrt(d), the named term does not
    dominate, and the cost is not 1/epsilon. We use the provable constants, F* = L = 1, delta = 1/2
    and the best T and B. For large M, the variance-reduced bound is smaller than the naive bound if
    rho is below a limit. This limit is 1.91 at d = 5, 3.17 at d = 10, and 5.03 at d = 20. For d =
    5, the variance-reduced bound is smaller than the naive bound at M = 2.2e8 if rho = .5, and at M
    = 7.5e8 if rho = 1. For d = 10, such an M is 3.8e8 if rho = .5, 5.5e8 if rho = 1, and 3e9 if rho
    = 2. For d = 20, such an M is 9e8 if rho = .5, 9e8 if rho = 1, and 1.6e9 if rho = 2. At these M,
    the two bounds lie between .012 L and .04 L. At half of these M, the naive bound is smaller than
    the variance-reduced bound. At M = 1e5, d = 10 and rho = 1, the variance-reduced bound is .96 L,
    while the naive bound is .46 L. This comparison concerns the bounds, not the algorithms.
    """
    best = ledger.reading("rho <= sqrt(d) epsilon, the naive oracle with its best B")

    @best.falsify(
        "at least 1/epsilon apart, for every B", d=DIMENSION, epsilon=SMALL,
        less=Interval(1e-6, 1.0, log=True), B=Integer(1, 10**6), power=1.0, mutant={"power": 1.2},
    )  # fmt: skip
    def apart(d, epsilon, less, B, power):
        rho = less * math.sqrt(d) * epsilon
        return proposed(d, epsilon, rho) / epsilon**power, naive(d, epsilon, rho, B)

    @best.falsify(
        "and at most 10/epsilon apart with the best B", d=DIMENSION, epsilon=SMALL, best=True,
        less=Interval(1e-6, 1.0, log=True), mutant={"best": False},
    )  # fmt: skip
    def together(d, epsilon, less, best):
        rho = less * math.sqrt(d) * epsilon
        B = max(1, math.ceil(d**1.5 / rho)) if best else 1
        return naive(d, epsilon, rho, B), 10 * proposed(d, epsilon, rho) / epsilon

    @ledger.sharper("rho >= sqrt(d) epsilon: at most 5 (1 + sqrt(d)/rho) apart").falsify(
        "the best B", d=DIMENSION, epsilon=SMALL, more=Interval(1.0, 1e6, log=True), best=True,
        mutant={"best": False}, extremal=[{"d": 1000, "epsilon": 1e-6, "more": 1.0}],
    )  # fmt: skip
    def near(d, epsilon, more, best):
        rho = more * math.sqrt(d) * epsilon
        B = max(1, math.ceil(d**1.5 / rho)) if best else 1
        apart = 5 * (1 + math.sqrt(d) / rho)
        return naive(d, epsilon, rho, B), apart * proposed(d, epsilon, rho)

    ledger.reading("B = 1, as printed", fails=True).sweep(
        "d = 1, rho = 1e-6", d=1, epsilon=0.1, rho=1e-6, lhs="the data of Appendix E with B = 1",
        rhs="1000/epsilon times the data of the proposed algorithm",
    )(batch_one)  # fmt: skip
    ledger.reading("all rho", fails=True).sweep(
        "d = rho = 1, epsilon = 1e-6, B = 1 (the best B is no worse)", d=1, epsilon=1e-6, rho=1,
        lhs="1/epsilon times the data of the proposed algorithm",
        rhs="1000 times the data of the naive algorithm",
    )(weak_privacy)  # fmt: skip
    ledger.step(
        "the data size of the proposed algorithm is proved in Theorem 4.9",
        fix="T = max{...} for T = min{...}, see zoo.thm4.9.T",
    ).sweep("sqrt(d) L/sqrt(T_2) <= epsilon, d = rho = 1", epsilon=1e-12,
            lhs="M that the printed T requires at least",
            rhs="1e6 times the M that is printed")(too_short)  # fmt: skip

    sharp = ledger.sharper("with explicit constants, for rho < 1.91, 3.17, 5.03 at d = 5, 10, 20")
    sharp.sweep("for large M", d=[5, 10, 20], more=1.0, mutant={"more": 1.02})(in_the_limit)

    @sharp.sweep("at the smallest such M, but not at half of it", method=Method.NUMERIC, part=0.5,
                 cases=[{"d": d, "rho": rho} for d, rho in CROSSED], mutant={"part": 1.0},
                 )  # fmt: skip
    def crossed(d, rho, part):
        """Return the larger ratio.

        At half of M, the naive bound is at most 0.3 per cent too small.
        """
        there = explicit(int(CROSSED[d, rho]), d, rho)
        half = explicit(int(part * CROSSED[d, rho]), d, rho)
        return max(there[0] / there[1], half[1] * 1.003 / half[0]), 1.0

    @ledger.sharper("and below").identity("M = 1e5, d = 10", M=10**5, rho=1.0, tolerance=5e-3,
                                          mutant={"rho": 2.0}, method=Method.NUMERIC)  # fmt: skip
    def below(M, rho):
        return explicit(M, 10, rho), (0.963, 0.456)

    ledger.consequence(
        "For rho >= sqrt(d) epsilon, the naive oracle with its best B needs 1 + sqrt(d)/rho "
        "times as much data, not 1/epsilon times.",
        harm="the wording",
    )


def too_short(epsilon):
    """The parameters are F* + L delta = 2 and L = delta = 1.

    The value T_2 = sqrt(M / 2) must be at least epsilon^-2.
    """
    return 2 * epsilon**-4, 1e6 * 2 * (epsilon**-3 + epsilon**-2)
