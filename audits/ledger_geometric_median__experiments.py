"""Private geometric median: what Section 5 reports, on reduced runs of the experiments."""

from __future__ import annotations

import functools

from audits import experiments_geometric_median as experiments
from audits.experiments_geometric_median import (
    BOUNDS,
    CLUSTER,
    DPGD,
    FAST,
    FINDER,
    HEAVY,
    MIDDLE,
    PLAIN,
    ROUGHLY,
    SAMPLES,
    SCALES,
    SIGNIFICANT,
    STABLE,
    TUNED,
    WAYS,
    Setting,
)
from dpaudit.ledger import LedgerVerdict, Method, statement

SEED = 1
REDUCED = experiments.Size(
    "ledger", 20, 20, {}, (), 5, 4, {100: 9, 1000: 12, 10_000: 14}, {100: 4, 1000: 4, 10_000: 4}
)
LOW, HIGH = BOUNDS[0] / ROUGHLY, BOUNDS[1] * ROUGHLY


# --- Figure 1 and Table 1 ---


@functools.cache
def averages(family, scale, n, d, beta=experiments.FAILURE_PROB):
    found = experiments.radius_ratios(family, scale, n, d, trials=20, seed=SEED, failure_prob=beta)
    return {ratios.method: ratios.mean for ratios in found}


@statement("gm.fig1")
def radius_over_true_radius(ledger):
    cases = [
        {"family": family, "scale": scale, "method": method}
        for family, scales in ((CLUSTER, (0.5, 2.0, 10.0)), (HEAVY, (2.0, 8.0, 20.0)))
        for scale in scales
        for method in (FAST, FINDER)
    ]

    def average(family, scale, method):
        return averages(family, scale, 1000, 10)[method]

    ledger.sweep(
        cases,
        lambda **case: (average(**case), HIGH),
        method=Method.MONTE_CARLO,
        claim="averages of 20 trials are at most 3, and a quarter more",
    )
    ledger.sweep(
        cases,
        lambda **case: (LOW, average(**case)),
        method=Method.MONTE_CARLO,
        claim="they are at least 1.2, and a quarter less",
        twin=0.4,
    )
    ledger.note(
        "With F^-1 for F in the true radius of HeavyTailed (gm.exp.rtrueF); with the CDF as "
        "printed its ratios are 4 to 9. R of the search is the largest norm rounded up. Averages "
        "are 1.9 to 3.2; single trials reach 8, where FastRadius, whose threshold is .035 n below "
        "the most that GaussianCluster has, misses a radius."
    )


@statement("gm.exp.trend", expected=LedgerVerdict.AMBIGUOUS)
def other_sizes(ledger):
    def average(family, scale, n, d, beta=experiments.FAILURE_PROB):
        found = averages(family, scale, n, d, beta)
        return max(found[FAST], found[FINDER]), HIGH

    ledger.sweep(
        [
            {"family": HEAVY, "scale": 8.0, "n": n, "d": d}
            for n, d in ((500, 5), (500, 20), (2000, 10))
        ],
        average,
        method=Method.MONTE_CARLO,
        claim="HeavyTailed: both methods stay below 3, and a quarter more",
    )
    ledger.sweep(
        [{"family": CLUSTER, "scale": 4.0, "n": n, "d": 10} for n in (1000, 2000, 500)],
        average,
        method=Method.MONTE_CARLO,
        claim="GaussianCluster, R = 4: both methods stay below 3, and a quarter more",
    )
    ledger.sweep(
        [{"family": CLUSTER, "scale": 4.0, "n": 500, "d": 20, "beta": 0.999}],
        average,
        method=Method.MONTE_CARLO,
        claim="the same at n = 500, with beta = .999 in RadiusFinder",
    )
    ledger.conclude(
        LedgerVerdict.AMBIGUOUS,
        "It depends on beta in RadiusFinder, which is not told. With .05, of HSU24's code, it "
        "asks for 375 + 110 neighbours at n = 500, where a cluster has 450 points: it returns 12 "
        "to 60 times the true radius for R from 4 to 10. With beta near 1 it is 3 to 6.",
    )


@functools.cache
def timed(n):
    return experiments.seconds(CLUSTER, 4.0, n, 10, repeats=3, seed=SEED)


@statement("gm.table1", expected=LedgerVerdict.AMBIGUOUS)
def time_of_the_radius(ledger):
    def faster(way):
        return 29 / SIGNIFICANT, timed(1000)[way] / timed(1000)[SAMPLES]

    for way in WAYS:
        ledger.sweep(
            [{"way": way}],
            faster,
            method=Method.MONTE_CARLO,
            claim=f"RadiusFinder, {way}: 29 times the time of FastRadius, or half of that",
            twin=0.3,
        )

    def growth(way, numerator=4000, denominator=500):
        times = timed(numerator)[way], timed(denominator)[way]
        return times[0] / times[1], (numerator / denominator) ** 1.5

    with ledger.repair("FastRadius's time grows linearly in n, RadiusFinder's with its square"):
        ledger.sweep(
            [{"way": SAMPLES}],
            growth,
            method=Method.MONTE_CARLO,
            claim="from n = 500 to 4000 it grows by less than a factor 8^1.5",
            twin=lambda way: growth(PLAIN),
        )
    ledger.conclude(
        LedgerVerdict.AMBIGUOUS,
        "It depends on how RadiusFinder counts neighbours, and the code was not at hand. At "
        "n = 1000 row by row in Python takes 30 times as long as FastRadius, blocks of rows for "
        "every radius 15 times, distances computed once for all radii 2 to 3 times.",
    )


# --- Figures 2 to 5 ---


@functools.cache
def curves(n):
    """Both families at their middle scale; all scales for n = 1000."""
    scales = SCALES if n == 1000 else {family: (MIDDLE[family],) for family in MIDDLE}
    settings = [Setting(family, scale, n) for family in scales for scale in scales[family]]
    if n == 1000:
        settings.append(Setting(CLUSTER, MIDDLE[CLUSTER], n, "0"))
    return experiments.descents(settings, REDUCED, seed=SEED)


def curve(family, n, scale=None):
    return experiments.curves_of(curves(n), family, scale or MIDDLE[family], n)


def least(family, n, over, eta=TUNED):
    """Error of another method over FixedOrder's: the least over all numbers of passes."""
    return min(experiments.advantage(curve(family, n), over, eta))


@statement("gm.fig2", expected=LedgerVerdict.AMBIGUOUS)
def gaussian_cluster(ledger):
    ledger.sweep(
        [{"n": n} for n in (100, 1000, 10_000)],
        lambda n: (1.0, least(CLUSTER, n, STABLE)),
        method=Method.MONTE_CARLO,
        claim="FixedOrderDPSGD beats StableDPSGD, both with a tuned eta, after all passes",
        twin=0.8,
    )
    ledger.sweep(
        [{"n": 10_000}],
        lambda n: (SIGNIFICANT, least(CLUSTER, n, DPGD)),
        method=Method.MONTE_CARLO,
        claim="n = 10000, tuned eta: FixedOrderDPSGD has at most half of the error of DPGD",
        twin=lambda n: (SIGNIFICANT, least(CLUSTER, 1000, DPGD)),
    )
    ledger.sweep(
        [{"n": 10_000}],
        lambda n: (SIGNIFICANT, least(CLUSTER, n, DPGD, 1.0)),
        method=Method.MONTE_CARLO,
        claim="the same with the eta that minimises the error bound",
    )
    ledger.conclude(
        LedgerVerdict.AMBIGUOUS,
        "It depends on eta of the SGD methods, which is not told. At n = 10000, 1.6 passes of "
        "FixedOrderDPSGD have a hundredth of the error of DPGD if eta is tuned, and about the same "
        "error with the minimiser of the error bound, which is several times too small. "
        "At n = 1000 DPGD is better for every eta, if the start is around x_star; around 0, where "
        "DPGD's ball does not reach x_star, FixedOrderDPSGD is. It beats StableDPSGD always.",
    )


@statement("gm.fig3")
def heavy_tailed(ledger):
    ledger.sweep(
        [{"n": 10_000}],
        lambda n: (1 / ROUGHLY, least(HEAVY, n, DPGD)),
        method=Method.MONTE_CARLO,
        claim="n = 10000, tuned eta: FixedOrderDPSGD's error is at most a quarter above DPGD's",
        twin=lambda n: (1 / ROUGHLY, least(HEAVY, 1000, DPGD)),
    )
    ledger.note(
        "With a tuned eta, which is not told. At n = 1000 DPGD is better from 2 passes on. Its "
        "error after 4 passes is luck: from .75 r_hat, steps of r_hat / 2 end at .25, -.25, .25 "
        "and -.25 r_hat from the median, and it returns their average."
    )


def change(family, over):
    return experiments.changes([curve(family, 1000, s) for s in SCALES[family]], over)


def unchanged(ledger, family, other):
    ledger.sweep(
        [{"over": over} for over in (DPGD, STABLE)],
        lambda over: (change(family, over), SIGNIFICANT),
        method=Method.MONTE_CARLO,
        claim="n = 1000: its error over FixedOrder's, at equal passes, changes by less than 2",
        twin=lambda over: (experiments.changes(other, over), SIGNIFICANT),
    )


@statement("gm.fig4")
def scale_of_the_cluster(ledger):
    unchanged(ledger, CLUSTER, [curve(CLUSTER, 1000), around_0()])
    ledger.note(
        "With a tuned eta and a start around x_star. Around 0 the domain of DPGD cuts off x_star "
        "for R = 50 and 100, and relative performance changes by up to 2. DPGD is the best of the "
        "three from 2 passes on."
    )


def around_0():
    return next(found for found in curves(1000) if found.setting.around == "0")


@statement("gm.fig5")
def degrees_of_freedom(ledger):
    unchanged(ledger, HEAVY, [curve(CLUSTER, 1000), around_0()])
    ledger.note("With a tuned eta. DPGD is the best of the three from 2 passes on.")
