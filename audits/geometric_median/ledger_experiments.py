"""Private geometric median: Section 5, figures and table, in a reduced size.

The whole of it, with all choices and pictures, is `python -m audits.geometric_median.experiments`.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace

from threadpoolctl import threadpool_limits

from algorithms.geometric_median.radius import fast_radius_samples
from audits.geometric_median.experiments.claims import advantage, changes
from audits.geometric_median.experiments.descent import (
    Setting,
    descents,
    dpgd_errors,
    problems,
)
from audits.geometric_median.experiments.radius import radius_ratios
from audits.geometric_median.experiments.setup import (
    BOUNDS,
    CLUSTER,
    DPGD,
    FAILURE_PROB,
    FAST,
    FINDER,
    HEAVY,
    MIDDLE,
    ROUGHLY,
    SCALES,
    SIGNIFICANT,
    STABLE,
    TUNED,
    Size,
    true_radii,
)
from dpaudit.ledger import LedgerVerdict, Method, statement
from dpaudit.mechanisms import generator

LONGEST = {100: 10, 1000: 12, 10_000: 15}  # SGD runs have 2^K - 1 >= n steps, for K up to this
TRIALS = {100: 40, 1000: 20, 10_000: 3}
TUNING = 5
ONE_THREAD = functools.partial(threadpool_limits, limits=1)
SCALED, DPGD_TRIALS = 30, 200  # at all scales; DPGD's smallest errors vary most, and are cheap


def opposite(inequality):
    """The other way round: the mutant of a comparison is the claim that it goes against."""
    return lambda **case: inequality(**case)[::-1]


@functools.cache
def ratios(seed, family, scale, n, d, beta=FAILURE_PROB):
    """Averages by method; of GaussianCluster over more trials, as some of them are far off."""
    trials = 30 if family == CLUSTER else 10
    found = radius_ratios(family, scale, n, d, trials=trials, seed=seed, failure_prob=beta)
    return {r.method: r.mean for r in found}


def run(seed, family, n, scales, trials):
    size = Size("ledger", 0, 0, {}, (), trials, TUNING, LONGEST, dict.fromkeys(LONGEST, 1))
    with ONE_THREAD():  # small matrices, for which several only wait for each other
        return descents([Setting(family, scale, n) for scale in scales], size, seed=seed)


@functools.cache
def curve(seed, family, n):
    """Errors at the middle scale."""
    return run(seed, family, n, (MIDDLE[family],), TRIALS[n])[0]


@functools.cache
def all_scales(seed, family):
    """Errors at all scales, n = 1000."""
    rng, found = generator(seed, "dpgd", family), []
    for c in run(seed, family, 1000, SCALES[family], SCALED):
        with ONE_THREAD():
            trials = problems(c.setting, DPGD_TRIALS, seed=seed, role="trial")
        found.append(replace(c, dpgd={p: dpgd_errors(trials, p, rng=rng) for p in c.dpgd}))
    return found


def misses(mean):
    """By which factor an average misses 1.2 to 3; "roughly" grants 1.25."""
    low, high = BOUNDS
    return max(mean / high, low / mean), ROUGHLY


def outside(seed):
    """Return the inequality of one average."""
    return lambda method, **case: misses(ratios(seed, **case)[method])


@statement("gm.fig1")
def radius_estimates(ledger):
    cases = [
        {"family": family, "scale": scale, "n": 1000, "d": 10, "method": method}
        for family, scales in ((CLUSTER, (0.5, 2.0, 8.0)), (HEAVY, (2.0, 8.0, 20.0)))
        for scale in scales
        for method in (FAST, FINDER)
    ]

    def with_printed_radius(family, scale, d, method, **case):
        if family != HEAVY:
            return None
        true = true_radii(family, scale, d)
        mean = ratios(ledger.seed, family=family, scale=scale, d=d, **case)[method]
        return misses(mean * true["taken"] / true["other"])

    ledger.sweep(
        cases,
        outside(ledger.seed),
        method=Method.MONTE_CARLO,
        claim="averages lie between 1.2 and 3, roughly",
        mutant=with_printed_radius,
    )
    ledger.note(
        "With F^-1 for F in r_true of HeavyTailed (gm.exp.rtrueF): with the CDF as printed the "
        "averages are 4 to 8. Single trials reach 10 and more; sigma sqrt(d) is no .75 quantile "
        "either."
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
        shown,
        within,
        claim="within a factor 2 of 29, distances computed again for each radius",
        mutant=lambda ratio, reading: within(ratio, "once"),
    )
    ledger.sweep(
        [{"ratio": 320.0, "reading": "once"}],
        opposite(within),
        claim="not so where RadiusFinder keeps its distances: about 2",
        mutant=within,
    )
    ledger.conclude(
        LedgerVerdict.AMBIGUOUS,
        "29 depends on how RadiusFinder is written: distances anew for each radius give about 20, "
        "kept in memory about 2, counted row by row in Python about 30 in seconds.",
    )


@statement("gm.exp.trend", expected=LedgerVerdict.REFUTED)
def other_sizes(ledger):
    lenient = {"family": CLUSTER, "scale": 4.0, "n": 500, "d": 10, "beta": 0.2}
    ledger.sweep(
        [{**lenient, "method": FINDER}],
        outside(ledger.seed),
        method=Method.MONTE_CARLO,
        claim="averages lie between 1.2 and 3, roughly; RadiusFinder with a large beta, n = 500",
    )
    cases = [
        {"family": family, "scale": scale, "n": n, "d": d, "method": method}
        for n in (500, 1000, 2000)
        for d in (5, 10, 20)
        for family, scale in ((CLUSTER, 4.0), (HEAVY, 8.0))
        for method in (FINDER, FAST)
    ]
    ledger.sweep(
        cases,
        outside(ledger.seed),
        method=Method.MONTE_CARLO,
        claim="with the beta of HSU24's code, all n and d",
    )
    with ledger.repair("similar trends for n = 1000 and d in {5, 10, 20}"):
        ledger.sweep(
            [c for c in cases if c["n"] == 1000],
            outside(ledger.seed),
            method=Method.MONTE_CARLO,
            claim="n = 1000",
            mutant=lambda **case: outside(ledger.seed)(**{**case, "n": 500}),
        )
    ledger.note(
        "RadiusFinder asks for .75 n + 18 log(2 T / beta) / epsilon neighbours, more than the .9 n "
        "inliers of GaussianCluster at n = 500: at d = 10 its averages are about 16 with beta = "
        ".05, as in HSU24's code, 11 with .2, 4 to 5.7 with .5, and within bounds only with .999; "
        "the paper names none. FastRadius, which has no beta, is on the border: 3.71 at d = 5 over "
        "400 trials, of which 30 % are above 3.75."
    )


def least_advantage(seed, family, n, over, eta):
    """Smallest error of another method over that of FixedOrderDPSGD, over all passes."""
    return min(advantage(curve(seed, family, n), over, eta))


@statement("gm.fig2", expected=LedgerVerdict.AMBIGUOUS)
def gaussian_cluster(ledger):
    def beaten(n, over, factor, eta=TUNED):
        return factor, least_advantage(ledger.seed, CLUSTER, n, over, eta)

    ledger.sweep(
        [{"n": n, "over": STABLE, "factor": 1.0} for n in (100, 1000, 10_000)],
        beaten,
        method=Method.MONTE_CARLO,
        claim="FixedOrderDPSGD beats StableDPSGD at every number of passes",
        mutant=opposite(beaten),
    )
    ledger.sweep(
        [{"n": 10_000, "over": DPGD, "factor": SIGNIFICANT}],
        beaten,
        method=Method.MONTE_CARLO,
        claim="and DPGD by a factor 2 at n = 10000, with eta tuned on data of its own",
        mutant=opposite(beaten),
    )
    ledger.sweep(
        [{"n": 10_000, "over": DPGD, "factor": SIGNIFICANT}],
        opposite(functools.partial(beaten, eta=1.0)),
        method=Method.MONTE_CARLO,
        claim="but not with the eta that the error bound of Lemma 14 is smallest at",
        mutant=functools.partial(beaten, eta=1.0),
    )
    ledger.conclude(
        LedgerVerdict.AMBIGUOUS,
        "The paper does not say how eta was chosen: tuned, FixedOrderDPSGD wins by far at n = "
        "10000 (and loses at 100 and 1000); with the eta of its own analysis it does not.",
    )
    ledger.note("At n = 100 StableDPSGD has 1.1 to 1.4 times its error.")


@statement("gm.fig3", expected=LedgerVerdict.AMBIGUOUS)
def heavy_tailed(ledger):
    def similar(n, eta):
        return 1 / ROUGHLY, least_advantage(ledger.seed, HEAVY, n, DPGD, eta)

    ledger.sweep(
        [{"n": 10_000, "eta": TUNED}],
        similar,
        method=Method.MONTE_CARLO,
        claim="similar or better than DPGD at n = 10000, with eta tuned",
        mutant=opposite(similar),
    )
    ledger.sweep(
        [{"n": 1000, "eta": TUNED}, {"n": 1000, "eta": 1.0}],
        opposite(similar),
        method=Method.MONTE_CARLO,
        claim="but not at n = 1000, at every number of passes",
        mutant=similar,
    )
    ledger.conclude(
        LedgerVerdict.AMBIGUOUS,
        "'Larger n' and eta are not told: so at n = 10000 with eta tuned, not so at n = 1000, "
        "where DPGD with steps r_hat / sqrt T is luckily near the median after a few passes.",
    )


def change(seed, family):
    """By which factor the comparison with FixedOrderDPSGD changes between the scales."""
    return lambda over: (changes(all_scales(seed, family), over), SIGNIFICANT)


def with_size(seed, family):
    """The same between n = 100 and 1000, at the fewest passes: there it does change."""

    def inequality(over):
        few, more = (advantage(curve(seed, family, n), over)[0] for n in (100, 1000))
        return max(few / more, more / few), SIGNIFICANT

    return inequality


@statement("gm.fig4")
def scale_of_the_cluster(ledger):
    ledger.sweep(
        [{"over": over} for over in (DPGD, STABLE)],
        change(ledger.seed, CLUSTER),
        method=Method.MONTE_CARLO,
        claim="relative errors change by less than a factor 2 between R = 25, 50 and 100",
        mutant=with_size(ledger.seed, CLUSTER),
    )


@statement("gm.fig5")
def degrees_of_freedom(ledger):
    ledger.sweep(
        [{"over": over} for over in (DPGD, STABLE)],
        change(ledger.seed, HEAVY),
        method=Method.MONTE_CARLO,
        claim="relative errors change by less than a factor 2 between nu = 2.5, 5 and 10",
        mutant=with_size(ledger.seed, HEAVY),
    )
    ledger.note(
        "By 1.5 to 1.8 over ten seeds, at most after 4 passes, where DPGD's error is .001 r_hat "
        "for nu = 2.5 and .0006 for 10. With 20 trials, as in the paper, one run in ten says 2."
    )


FORMER = True
