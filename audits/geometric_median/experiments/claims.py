"""Verdicts on the claims of Section 5, based on 95 % intervals of the measurements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import NamedTuple

import pandas as pd

from audits.common.intervals import (
    Interval,
    growth,
    least,
    most,
    power,
    ratio,
    short,
)
from audits.geometric_median.experiments import radius, setup
from audits.geometric_median.experiments.descent import AROUND_0, advantage, changes, chosen
from audits.geometric_median.experiments.setup import CLUSTER, DPGD, HEAVY, STABLE

YES, WITH, NO = "reproduces", "reproduces with a choice", "does not reproduce"
UNDECIDED = "undecided: too few trials"
DECIDED_BY = {
    "gm.fig1": "60 trials for each R and nu",
    "gm.table1": "3 repeats on an idle machine",
    "gm.exp.trend": "12 trials for each n and d",
    "gm.fig2": "40 trials at n = 100 and 5 at n = 10000",
    "gm.fig3": "5 trials at n = 10000",
    "gm.fig4": "40 trials at n = 1000",
    "gm.fig5": "200 trials at n = 1000",
    "gm.exp.ablate": "40, 12 and 5 trials at n = 100, 1000 and 10000",
}
"""For each claim, trials that decide the claim at the default seed."""

CELL = ["family", "scale", "n", "d", "beta", "method"]  # the keys of one average of Figure 1


Results = SimpleNamespace
"""All measurements: `size`, `seed`, `took`, and tables with one row for each run."""


class Claim(NamedTuple):
    """A claim of Section 5 and its verdict."""

    id: str
    words: str
    verdict: str
    choice: str
    numbers: str


def decided(found: Interval, most_allowed: float, yes: str = YES) -> str:
    """Decide from the whole interval of a number whether the number is at most `most_allowed`."""
    return NO if found.low > most_allowed else yes if found.high <= most_allowed else UNDECIDED


# --- the radius ---


def averages(ratios: pd.DataFrame) -> pd.Series:
    """Return the interval of each average, with simultaneous coverage of all averages."""
    cells = ratios.groupby(CELL).ratio
    return cells.apply(lambda values: ratio(values, among=cells.ngroups))


def misses(average: Interval) -> Interval:
    """Return the factor by which an average misses the range 1.2 to 3.

    Inside this range, the factor is at most 1.
    """
    low, high = setup.BOUNDS
    return most([average.times(1 / high), average.inverse().times(low)])


def spans(found: pd.Series, *by: str) -> str:
    """Return the range of the averages for each value of the columns."""
    ends = found.map(lambda x: short(x.value)).groupby(list(by))
    return "; ".join(
        f"{', '.join(map(str, name))}: {min(x, key=float)} to {max(x, key=float)}"
        for name, x in ends
    )


def judge_figure_1(found: Results) -> Claim:
    """Decide whether both methods stay roughly between 1.2 and 3 times the true radius."""
    mean, keys = averages(found.ratios), found.ratios[["family", "scale", "d"]]
    factor = [setup.true_radius(*k) / setup.other_radius(*k) for k in keys.itertuples(index=False)]
    other = averages(found.ratios.assign(ratio=found.ratios.ratio * factor))
    worst = most(map(misses, mean))
    return Claim(
        "gm.fig1",
        "both methods stay between roughly 1.2 and 3 times the true radius",
        decided(worst, setup.ROUGHLY, WITH),
        "F^-1 for F in r_true of HeavyTailed",
        f"averages on {spans(mean, 'family', 'method')}; with the radius that contains .75 of the "
        f"data, or the CDF as printed: {spans(other, 'family', 'method')}; the worst misses 1.2 to "
        f"3 by a factor {worst}; single trials go up to {short(found.ratios.ratio.max())}",
    )


def judge_table_1(found: Results) -> Claim:
    """Decide whether FastRadius is 29 times as fast as RadiusFinder at n = 1000."""
    table = found.table.pivot(index=["family", "scale"], columns="way", values="seconds")
    over = {way: ratio(table[way], table[radius.SAMPLES]) for way in (*radius.WAYS, radius.COUNTS)}
    closest = min(radius.WAYS, key=lambda way: abs(math.log(over[way].value / 29)))
    apart = most([over[closest].times(1 / 29), over[closest].inverse().times(29)])
    told = "; ".join(f"{way} {found}" for way, found in over.items())
    own = found.times[found.times.way == radius.SAMPLES]
    return Claim(
        "gm.table1",
        "FastRadius is 29 times faster than RadiusFinder at n = 1000, d = 10",
        decided(apart, setup.SIGNIFICANT, WITH),
        f"neighbours counted {closest}",
        f"time over that of FastRadius, which grows like {power(growth(own.n, own.seconds))}: "
        f"{told}",
    )


def judge_trend(found: Results) -> Claim:
    """Decide whether the trends of Figure 1 hold for other n and d."""
    mean = averages(found.trend)
    outside = mean[mean.map(lambda x: misses(x).value > setup.ROUGHLY)]
    others = averages(found.betas[(found.betas.method == setup.FINDER) & (found.betas.n == 500)])
    return Claim(
        "gm.exp.trend",
        "similar trends for n in {500, 1000, 2000}, d in {5, 10, 20}",
        decided(most(map(misses, mean)), setup.ROUGHLY),
        f"beta = {setup.FAILURE_PROB:g} in RadiusFinder",
        f"{len(mean) - len(outside)} of {len(mean)} averages are roughly within 1.2 to 3; the "
        f"others: {spans(outside, 'method', 'family', 'n') or '-'}; RadiusFinder at n = 500, "
        f"d = 10, R = 4 for other beta: {spans(others, 'beta')}",
    )


# --- the descent ---


def told(by: Mapping[float, Iterable[Interval]], name: str = "n") -> str:
    """Return "n = 100: 0.1 [0.05, 0.2] to 0.2 [0.1, 0.4]; ..."."""
    return "; ".join(f"{name} = {key:g}: {least(v)} to {most(v)}" for key, v in by.items())


def judge_sizes(found: Results, id: str, family: str, words: str, factor: float) -> Claim:
    """Decide how FixedOrderDPSGD's errors compare with the errors of DPGD and StableDPSGD.

    At the largest n, DPGD's error must be at least `factor` times FixedOrderDPSGD's error.
    StableDPSGD is judged only on GaussianCluster.
    """

    def of(over: str, eta: str = setup.TUNED) -> dict[int, list[Interval]]:
        sizes = {n: chosen(found.errors, family, n) for n in sorted(found.size.longest)}
        return {n: list(advantage(errors, over, eta).values()) for n, errors in sizes.items()}

    over, stable = of(DPGD), of(STABLE)
    verdicts = [decided(least(over[max(over)]).inverse(), 1 / factor, WITH)]
    if family == CLUSTER:
        verdicts.append(decided(least(map(least, stable.values())).inverse(), 1.0, WITH))
    sizes = ", ".join(str(n) for n, values in over.items() if least(values).low >= factor)
    return Claim(
        id,
        words,
        max(verdicts, key=[WITH, UNDECIDED, NO].index),
        f"eta tuned, and only at n = {sizes}",
        f"over all passes, StableDPSGD's error over FixedOrderDPSGD's: {told(stable)}. DPGD's: "
        f"{told(over)}; with eta from the error bound: {told(of(DPGD, setup.OF_BOUND))}",
    )


def judge_scales(found: Results, id: str, family: str) -> Claim:
    """Decide whether relative performance is independent of the scale of the data."""
    scales, name = setup.SCALES[family], setup.NAME[family]
    settings = {s: chosen(found.errors, family, 1000, s) for s in scales}
    over = {s: advantage(errors, DPGD).values() for s, errors in settings.items()}
    change, other = (most(changes(list(settings.values()), m)) for m in (DPGD, STABLE))
    away = [chosen(found.errors, family, 1000, s, AROUND_0) for s in scales]
    return Claim(
        id,
        f"{family}, n = 1000: relative performance unchanged for {name} in {scales}",
        decided(most([change, other]), setup.SIGNIFICANT),
        "",
        f"DPGD's error over FixedOrderDPSGD's: {told(over, name)}; it changes by at most a factor "
        f"{change}, and StableDPSGD's by {other}; with starts around 0, at the most passes, DPGD's "
        f"by {most(changes(away, DPGD))}",
    )


def compared(
    errors: pd.DataFrame, pairs: Sequence[tuple[tuple[str, float], tuple[str, float]]]
) -> dict[tuple[object, ...], list[Interval]]:
    """Return the error with one step size divided by the error with another, paired by trial.

    A step size is a base and a multiplier. The result has one key for each data set and number of
    steps, and one interval for each of the `pairs`. All intervals hold simultaneously.
    """
    cells = errors.groupby(["family", "scale", "n", "steps"])
    found = {}
    for cell, runs in cells:
        table = runs.pivot(index="trial", columns=["base", "multiplier"], values="error")
        among = cells.ngroups * len(pairs)
        found[cell] = [ratio(table[over], table[under], among=among) for over, under in pairs]
    return found


def best_multipliers(errors: pd.DataFrame) -> str:
    """Return the multipliers of r_hat / sqrt(T) with the smallest errors, by family and T."""
    own = errors[errors.base == setup.BEST]
    means = own.groupby(["family", "steps", "scale", "n", "multiplier"]).error.mean().unstack()
    return "; ".join(
        f"{family}, T = {steps}: {', '.join(f'{x:g}' for x in sorted(set(best)))}"
        for (family, steps), best in means.idxmin(axis=1).groupby(["family", "steps"])
    )


def judge_ablation(found: Results) -> Claim:
    """Decide whether DPGD's step size behaves as in the ablation of the paper.

    On every data set and for every T, r_hat / sqrt(T) must be similar to or better than HSU24's
    base at equal multipliers. On GaussianCluster, a multiplier above 1 must have a smaller error
    than 1. On HeavyTailed, the multipliers 1.5 and 1.75 must have larger errors than 1, by a
    significant margin, at the smallest T.
    """
    one, (*_, larger, largest) = (setup.BEST, 1.0), setup.OF_DPGD
    of = dict(list(found.ablation.groupby("family")))
    bases = [((setup.HSU24, m), (setup.BEST, m)) for m in setup.OF_DPGD]
    base = least(map(least, compared(found.ablation, bases).values()))
    above = [(one, (setup.BEST, m)) for m in setup.OF_DPGD if m > 1]
    gain = least(map(most, compared(of[CLUSTER], above).values()))
    worse = [((setup.BEST, m), one) for m in (larger, largest)]
    loss = {
        steps: list(itertools.chain(*compared(errors, worse).values()))
        for steps, errors in of[HEAVY].groupby("steps")
    }
    verdicts = [
        decided(base.inverse(), setup.ROUGHLY),
        decided(gain.inverse(), 1.0),
        decided(least(loss[setup.FEW]).inverse(), 1 / setup.SIGNIFICANT, WITH),
    ]
    return Claim(
        "gm.exp.ablate",
        "DPGD: the base r_hat / sqrt(T) is better than HSU24's; multipliers above 1 are better on "
        "GaussianCluster, and unstable on HeavyTailed",
        max(verdicts, key=[YES, WITH, UNDECIDED, NO].index),
        f"unstable with T = {setup.FEW}",
        f"errors with HSU24's base, at equal multipliers, are at least {base} times those with "
        f"r_hat / sqrt(T). On GaussianCluster the multiplier 1 has at least {gain} times the error "
        f"of a larger one. On HeavyTailed {larger:g} and {largest:g} have, times the error of 1, "
        f"{told(loss, 'T')}. The best multipliers are: {best_multipliers(found.ablation)}",
    )


def judge_wall(found: Results) -> Claim:
    """Decide whether DPGD often takes less time at the same error."""
    walls = found.walls
    faster = walls[walls.reached & walls.faster.map(lambda x: x.low > 1)]
    slower = [f"{w.family} at n = {w.n}" for w in walls.drop(faster.index).itertuples()]
    return Claim(
        "gm.exp.wall",
        "DPGD often takes less wall-clock time than FixedOrderDPSGD for the same error",
        YES if 2 * len(faster) > len(walls) else NO,
        "",
        f"in {len(faster)} of {len(walls)} settings, by a factor of "
        f"{', '.join(map(str, faster.faster))}; not on {', '.join(slower) or '-'}",
    )


WORDS = (
    "GaussianCluster: FixedOrderDPSGD consistently beats StableDPSGD, and DPGD by a significant "
    "margin once n is large enough",
    "HeavyTailed: FixedOrderDPSGD is similar to or better than DPGD for larger n",
)
CLAIMS: dict[str, Callable[[Results], Claim]] = {
    "gm.fig1": judge_figure_1,
    "gm.table1": judge_table_1,
    "gm.exp.trend": judge_trend,
    "gm.fig2": lambda found: judge_sizes(found, "gm.fig2", CLUSTER, WORDS[0], setup.SIGNIFICANT),
    "gm.fig3": lambda found: judge_sizes(found, "gm.fig3", HEAVY, WORDS[1], 1 / setup.ROUGHLY),
    "gm.fig4": lambda found: judge_scales(found, "gm.fig4", CLUSTER),
    "gm.fig5": lambda found: judge_scales(found, "gm.fig5", HEAVY),
    "gm.exp.ablate": judge_ablation,
    "gm.exp.wall": judge_wall,
}
