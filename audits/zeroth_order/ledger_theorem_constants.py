"""Zeroth-order optimization: the explicit constants of Theorem 4.9."""

from __future__ import annotations

import math

import numpy as np

from algorithms.zeroth_order import scaled
from algorithms.zeroth_order.bounds import stationarity_bound
from algorithms.zeroth_order.plans import Plan, VarianceReduced
from algorithms.zeroth_order.printed import corollary_4_4_sigma, with_learning_step
from algorithms.zeroth_order.scaled import vacuity_threshold
from audits.zeroth_order.conventions import DIMENSION, RHO, ROUNDS
from dpaudit.ledger import statement
from dpaudit.neighbors import Integer, Interval
from dpaudit.properties import Method

ROUNDING = 1e-9


def display(M, d, rho, T, g=1.0, delta=0.5):
    """Return the display with L = 1."""
    N = 8 * np.log(T) * d**1.5 / (T * rho)
    regret = np.sqrt((240 * d / T + 3 + 3 * N**2) / T)
    return 2 * (g + 2 * delta) * T / (delta * M) + regret + 2 * (np.sqrt(80 * d / T) + N)


SMALLEST = {
    (1, 0.5): 35_470, (1, 1.0): 28_390, (1, 2.0): 24_730,
    (5, 0.5): 277_900, (5, 1.0): 190_100, (5, 2.0): 144_100,
    (10, 0.5): 723_600, (10, 1.0): 466_600, (10, 2.0): 331_700,
    (20, 0.5): 1_941_000, (20, 1.0): 1_189_000, (20, 2.0): 795_900,
}  # fmt: skip
"""M from which the display is below L for some T, by d and rho; F* = L = 1, delta = 1/2."""


PROVED = {
    (5, 0.5): 60_100, (5, 1.0): 30_400, (5, 2.0): 16_400,
    (10, 0.5): 183_000, (10, 1.0): 92_200, (10, 2.0): 47_600,
    (20, 0.5): 581_000, (20, 1.0): 287_000, (20, 2.0): 146_000,
}  # fmt: skip
"""M as above, with the constants and the noise that can be proved."""

PRINTED = {0.5: 15.2e6, 1.0: 11.2e6, 2.0: 10.0e6}
"""M from which the display is below L at the printed T, by rho, for d = 10."""


@statement("zoo.thm4.9.vac")
def explicit_constants(ledger):
    """With the constants that the proof of Theorem 4.9 prints, E norm(grad F(wbar))_(2 delta) <= 2
    (F* + 2 L delta) T/(delta M) + sqrt((240 d L^2/T + 3 L^2 + 3 N^2)/T) + 2 (sqrt(80 d L^2/T) + N)
    with N = 8 ln(T) d^(3/2) L/(T rho); it says more than the trivial bound L only where the right
    side is below L.

    Take F* = L = 1, delta = 1/2 and the best T. Consider the smallest M for which the display is
    below L. For rho = 1/2, this M is 35,500 (d = 1), 278,000 (d = 5), 724,000 (d = 10) or 1.94
    million (d = 20). For rho = 1, the smallest such M is 28,400 (d = 1), 190,000 (d = 5), 467,000
    (d = 10) or 1.19 million (d = 20). For rho = 2, the smallest such M is 24,700 (d = 1), 144,000
    (d = 5), 332,000 (d = 10) or 796,000 (d = 20). The following values use the provable constants
    and the provable noise. For rho = 1/2, the smallest M is 60,100 (d = 5), 183,000 (d = 10) or
    581,000 (d = 20). For rho = 1, the smallest M is 30,400 (d = 5), 92,200 (d = 10) or 287,000 (d =
    20). For rho = 2, the smallest M is 16,400 (d = 5), 47,600 (d = 10) or 146,000 (d = 20). For the
    printed T and d = 10, the smallest M is 15.2 million (rho = 1/2), 11.2 million (rho = 1) or 10.0
    million (rho = 2). Below these M, the bound exceeds L and gives no information. Above these M,
    the bound gives information. Datasets of these sizes are used in practice.
    """

    @ledger.falsify(
        "at least the sum of Corollary 4.7, with Lemma 4.8 and exact noise", d=DIMENSION, T=ROUNDS,
        K=Integer(1, 1000), rho=RHO, g=Interval(1e-3, 1e3, log=True), more=1.0,
        delta=Interval(1e-3, 1e3, log=True), mutant={"more": 1.5},
        extremal=[{"d": 10, "T": 1000, "K": 10, "rho": 1e2, "g": 1.0, "delta": 1.0}],
    )  # fmt: skip
    def covers(d, T, K, rho, g, delta, more):
        sigma = corollary_4_4_sigma(T, 1, d, rho=rho, lipschitz=1.0)
        plan = Plan(T, K, delta, delta / T, 1.0, VarianceReduced(T + 1, 1, sigma))
        plan = with_learning_step(plan, d, lipschitz=1.0, constants="printed")
        found = stationarity_bound(plan, d, lipschitz=1.0, gap=g, constants="printed").total
        return more * found, display(2 * K * T, d, rho, T, g, delta) * (1 + ROUNDING)

    @ledger.sweep(
        "the best T", cases=[{"d": d, "rho": rho} for d, rho in SMALLEST], factor=1.0,
        mutant={"factor": 1.01},
    )  # fmt: skip
    def smallest(d, rho, factor):
        """Compare with the M above which the display is below 1 at T."""
        T = np.unique(np.geomspace(100, 1e6, 1000).round())
        rest = display(math.inf, d, rho, T)
        M = 2 * 2 * T[rest < 1] / (0.5 * (1 - rest[rest < 1]))
        return factor * SMALLEST[d, rho], M.min() * 1.001

    @ledger.identity(
        "with the constants that can be proved", cases=[{"d": d, "rho": rho} for d, rho in PROVED],
        method=Method.NUMERIC, tolerance=1e-2, constants="sharp", mutant={"constants": "printed"},
    )  # fmt: skip
    def proved(d, rho, constants):
        sizes = {"radius": 0.5, "rho": rho, "lipschitz": 1.0, "gap": 1.0}
        return PROVED[d, rho], vacuity_threshold(d, constants=constants, **sizes)

    @ledger.falsify(
        "no T is much better than the T of `scaled.variance_reduced`", M=Integer(50, 400),
        d=Integer(1, 10), rho=RHO, gap=Interval(0.1, 10.0), times=1.0, mutant={"times": 1.2},
        examples=4, extremal=[{"M": 20, "d": 1, "rho": 1.0, "gap": 100.0}],
    )  # fmt: skip
    def best(M, d, rho, gap, times):
        sizes = {"radius": 0.5, "rho": rho, "lipschitz": 1.0, "gap": gap}
        plans = [scaled.variance_reduced(M, d, rounds=T, **sizes) for T in range(2, M // 2 + 1)]
        totals = [stationarity_bound(p, d, lipschitz=1.0, gap=gap).total for p in plans]
        found = scaled.variance_reduced(M, d, **sizes)
        made = [(plan.rounds, plan.epochs) for plan in [*plans, found]]
        lines = [*range(2, M // 2 + 1), found.rounds]
        alike = made == [(T, M // (2 * T)) for T in lines]
        total = stationarity_bound(found, d, lipschitz=1.0, gap=gap).total
        return times * total if alike else math.inf, 1.05 * min(totals)

    @ledger.falsify(
        "no T and B are much better than those of `scaled.naive`", M=Integer(10, 40),
        d=Integer(1, 10), rho=RHO, gap=Interval(0.1, 10.0), times=1.0, mutant={"times": 1.2},
        examples=4, extremal=[{"M": 24, "d": 1, "rho": 1e2, "gap": 0.1}],
    )  # fmt: skip
    def best_naive(M, d, rho, gap, times):
        sizes = {"radius": 0.5, "rho": rho, "lipschitz": 1.0, "gap": gap}
        pairs = [(T, B) for B in range(1, M + 1) for T in range(1, M // B + 1)]
        plans = [scaled.naive(M, d, rounds=T, batch=B, **sizes) for T, B in pairs]
        made = [(p.rounds, p.oracle.batch, p.epochs, p.oracle.sigma * B) for p, (_, B) in
                zip(plans, pairs, strict=True)]  # fmt: skip
        if not np.allclose(made, [(T, B, M // (B * T), 2 * d / rho) for T, B in pairs]):
            return math.inf, 1.0
        totals = [stationarity_bound(p, d, lipschitz=1.0, gap=gap).total for p in plans]
        three = [total for total, (T, _) in zip(totals, pairs, strict=True) if T == 3]
        found = [scaled.naive(M, d, **sizes), scaled.naive(M, d, rounds=3, **sizes)]
        bounds = [stationarity_bound(p, d, lipschitz=1.0, gap=gap).total for p in found]
        worst = max(bounds[0] / min(totals), bounds[1] / min(three))
        return times * worst, 1.05

    @ledger.identity(
        "with the printed T, d = 10", cases=[{"rho": rho} for rho in PRINTED],
        method=Method.NUMERIC, tolerance=1e-2, longer=False, mutant={"longer": True},
    )  # fmt: skip
    def printed(rho, longer):
        M = np.geomspace(1e4, 1e8, 10_001)
        both = (10**0.5 * M / 3) ** (2 / 3), (10**1.5 * M / (3 * rho)) ** 0.5
        below = display(M, 10, rho, np.maximum(*both) if longer else np.minimum(*both)) < 1
        return PRINTED[rho], M[below].min()
