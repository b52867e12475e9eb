"""Private geometric median: Section 5, figures and table, in a reduced size.

The whole of it, with all choices and pictures, is `python -m audits.experiments_geometric_median`.
"""

from __future__ import annotations

import functools
import math

from algorithms.geometric_median.radius import fast_radius_samples
from audits.experiments_geometric_median__claims import advantage, changes
from audits.experiments_geometric_median__descent import Setting, descents
from audits.experiments_geometric_median__radius import radius_ratios
from audits.experiments_geometric_median__setup import (
    BOUNDS,
    CLUSTER,
    DPGD,
    FAST,
    FINDER,
    HEAVY,
    MIDDLE,
    QUICK,
    ROUGHLY,
    SCALES,
    SIGNIFICANT,
    STABLE,
    TUNED,
)
from dpaudit.ledger import LedgerVerdict, Method, statement

SEED = 1


def opposite(sides):
    """The other way round: the twin of a comparison is the claim that it goes against."""
    return lambda **case: sides(**case)[::-1]


@functools.cache
def ratios(family, scale, n, d, trials=10):
    return {r.method: r.mean for r in radius_ratios(family, scale, n, d, trials=trials, seed=SEED)}


@functools.cache
def curves(n):
    scales = SCALES if n == 1000 else {f: (MIDDLE[f],) for f in MIDDLE}
    settings = [Setting(family, scale, n) for family in scales for scale in scales[family]]
    return {(c.setting.family, c.setting.scale): c for c in descents(settings, QUICK, seed=SEED)}


def outside(family, scale, n, d, method):
    """By which factor an average misses 1.2 to 3; "roughly" grants 1.25."""
    low, high = BOUNDS
    mean = ratios(family, scale, n, d)[method]
    return max(mean / high, low / mean), ROUGHLY


@statement("gm.fig1")
def radius_estimates(ledger):
    cases = [
        {"family": family, "scale": scale, "n": 1000, "d": 10, "method": method}
        for family, scales in ((CLUSTER, (0.5, 2.0, 8.0)), (HEAVY, (2.0, 8.0, 20.0)))
        for scale in scales
        for method in (FAST, FINDER)
    ]
    ledger.sweep(
        cases, outside, method=Method.MONTE_CARLO, claim="averages lie between 1.2 and 3, roughly"
    )
    ledger.note(
        "With F^-1 for F in r_true of HeavyTailed (gm.exp.rtrueF): with the CDF as printed the "
        "averages are 4 to 9. Single trials reach 8; sigma sqrt(d) is no .75 quantile either."
    )


def distances(n, steps, delta):
    """Computed by FastRadius, by RadiusFinder for every radius anew, and by it once for all."""
    samples = fast_radius_samples(steps, delta)
    return n * samples * steps, n * n * steps, n * n


@statement("gm.table1", expected=LedgerVerdict.AMBIGUOUS)
def time_ratio(ledger):
    """In distances computed, which no machine changes: the paper's 29 is of seconds."""

    def within(ratio, reading):
        fast, again, once = distances(1000, math.ceil(math.log2(ratio)), 1e-5)
        found = {"again": again, "once": once}[reading] / fast
        return max(found / 29, 29 / found), 2.0

    shown = [{"ratio": r, "reading": "again"} for r in (25.0, 80.0, 320.0, 800.0)]
    ledger.sweep(
        shown, within, claim="within a factor 2 of 29, distances computed again for each radius"
    )
    ledger.sweep(
        [{"ratio": 320.0, "reading": "once"}],
        opposite(within),
        claim="not so where RadiusFinder keeps its distances: about 2",
        twin=within,
    )
    ledger.conclude(
        LedgerVerdict.AMBIGUOUS,
        "29 depends on how RadiusFinder is written: distances anew for each radius give about 20, "
        "kept in memory about 2, counted row by row in Python about 30 in seconds.",
    )


@statement("gm.exp.trend", expected=LedgerVerdict.REFUTED)
def other_sizes(ledger):
    cases = [
        {"family": family, "scale": scale, "n": n, "d": d, "method": method}
        for n in (1000, 500)
        for d in (5, 10, 20)
        for family, scale in ((CLUSTER, 4.0), (HEAVY, 8.0))
        for method in (FAST, FINDER)
    ]
    ledger.sweep(
        cases, outside, method=Method.MONTE_CARLO, claim="averages lie between 1.2 and 3, roughly"
    )
    with ledger.repair("similar trends for n = 1000 and d in {5, 10, 20}"):
        ledger.sweep([c for c in cases if c["n"] == 1000], outside, method=Method.MONTE_CARLO)
    ledger.note(
        "RadiusFinder asks for .75 n + 18 log(2 T / beta) / epsilon neighbours, which is more than "
        "the .9 n inliers of GaussianCluster at n = 500 for every usual beta; the paper names none."
    )


def least_advantage(family, n, over, eta):
    """Smallest error of another method over that of FixedOrderDPSGD, over all passes."""
    return min(advantage(curves(n)[family, MIDDLE[family]], over, eta))


@statement("gm.fig2", expected=LedgerVerdict.AMBIGUOUS)
def gaussian_cluster(ledger):
    def beaten(n, over, factor, eta=TUNED):
        return factor, least_advantage(CLUSTER, n, over, eta)

    ledger.sweep(
        [{"n": n, "over": STABLE, "factor": 1.0} for n in (1000, 10_000)],
        beaten,
        method=Method.MONTE_CARLO,
        claim="FixedOrderDPSGD beats StableDPSGD at every number of passes",
        twin=opposite(beaten),
    )
    ledger.sweep(
        [{"n": 10_000, "over": DPGD, "factor": SIGNIFICANT}],
        beaten,
        method=Method.MONTE_CARLO,
        claim="and DPGD by a factor 2 at n = 10000, with eta tuned on data of its own",
        twin=opposite(beaten),
    )
    ledger.sweep(
        [{"n": 10_000, "over": DPGD, "factor": SIGNIFICANT}],
        opposite(functools.partial(beaten, eta=1.0)),
        method=Method.MONTE_CARLO,
        claim="but not with the eta that the error bound of Lemma 14 is smallest at",
        twin=functools.partial(beaten, eta=1.0),
    )
    ledger.conclude(
        LedgerVerdict.AMBIGUOUS,
        "The paper does not say how eta was chosen: tuned, FixedOrderDPSGD wins by far at n = "
        "10000 (and loses at 100 and 1000); with the eta of its own analysis it does not.",
    )


@statement("gm.fig3", expected=LedgerVerdict.AMBIGUOUS)
def heavy_tailed(ledger):
    def similar(n, eta):
        return 1 / ROUGHLY, least_advantage(HEAVY, n, DPGD, eta)

    ledger.sweep(
        [{"n": 10_000, "eta": TUNED}],
        similar,
        method=Method.MONTE_CARLO,
        claim="similar or better than DPGD at n = 10000, with eta tuned",
        twin=opposite(similar),
    )
    ledger.sweep(
        [{"n": 1000, "eta": TUNED}, {"n": 1000, "eta": 1.0}],
        opposite(similar),
        method=Method.MONTE_CARLO,
        claim="but not at n = 1000, at every number of passes",
        twin=similar,
    )
    ledger.conclude(
        LedgerVerdict.AMBIGUOUS,
        "'Larger n' and eta are not told: so at n = 10000 with eta tuned, not so at n = 1000, "
        "where DPGD with steps r_hat / sqrt T is luckily near the median after a few passes.",
    )


def change(family, over):
    """By which factor the comparison with FixedOrderDPSGD changes between the scales."""
    found = [curves(1000)[family, scale] for scale in SCALES[family]]
    return changes(found, over), SIGNIFICANT


@statement("gm.fig4")
def scale_of_the_cluster(ledger):
    ledger.sweep(
        [{"family": CLUSTER, "over": over} for over in (DPGD, STABLE)],
        change,
        method=Method.MONTE_CARLO,
        claim="relative errors change by less than a factor 2 between R = 25, 50 and 100",
    )


@statement("gm.fig5")
def degrees_of_freedom(ledger):
    ledger.sweep(
        [{"family": HEAVY, "over": over} for over in (DPGD, STABLE)],
        change,
        method=Method.MONTE_CARLO,
        claim="relative errors change by less than a factor 2 between nu = 2.5, 5 and 10",
    )
