"""What became of the claims of Section 5, from what was measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from audits.geometric_median.experiments.descent import Curves, Setting, curves_of
from audits.geometric_median.experiments.measured import Results
from audits.geometric_median.experiments.radius import (
    COUNTS,
    SAMPLES,
    WAYS,
    Ratios,
    growth,
)
from audits.geometric_median.experiments.setup import (
    BOUNDS,
    CLUSTER,
    DPGD,
    FAILURE_PROB,
    FIXED,
    HEAVY,
    MIDDLE,
    ROUGHLY,
    SCALES,
    SIGNIFICANT,
    STABLE,
    TUNED,
    true_radii,
)

YES, WITH, NO = "reproduces", "reproduces with a choice", "does not reproduce"


@dataclass(frozen=True)
class Claim:
    """A claim of Section 5 and what became of it."""

    id: str
    words: str
    verdict: str
    choice: str
    numbers: str


def span(values: Iterable[float], digits: int = 3) -> str:
    """Return "low to high".

    Examples
    --------
    >>> span([177.6, 1.234567])
    '1.23 to 178'
    """
    values = list(values)
    low, high = (f"{float(f'{edge:.{digits}g}'):g}" for edge in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def outside(ratios: Iterable[Ratios]) -> list[Ratios]:
    """Return the averages that are not "roughly 1.2 to 3"."""
    low, high = BOUNDS
    return [r for r in ratios if not low / ROUGHLY <= r.mean <= high * ROUGHLY]


def judge_figure_1(found: Results) -> Claim:
    """Both methods stay roughly between 1.2 and 3 times the true radius."""
    by_family = {f: [r for r in found.ratios if r.family == f] for f in (CLUSTER, HEAVY)}

    def other(r: Ratios) -> float:
        true = true_radii(r.family, r.scale, r.d)
        return r.mean * true["taken"] / true["other"]

    above = sum(r.mean > BOUNDS[1] for r in found.ratios)
    single = max(float(r.values.max()) for r in found.ratios)
    numbers = (
        f"averages of {span((r.mean for r in by_family[CLUSTER]), 2)} on {CLUSTER}, "
        f"{span((other(r) for r in by_family[CLUSTER]), 2)} with the radius that does hold .75 of "
        f"the data; {span((r.mean for r in by_family[HEAVY]), 2)} on {HEAVY}, "
        f"{span((other(r) for r in by_family[HEAVY]), 2)} with the CDF as printed; {above} of "
        f"{len(found.ratios)} averages are above 3, single trials go up to {single:.2g}"
    )
    return Claim(
        "gm.fig1",
        "both methods stay between roughly 1.2 and 3 times the true radius",
        NO if outside(found.ratios) else WITH,
        "F^-1 for F in r_true of HeavyTailed",
        numbers,
    )


def time_ratios(table: dict[str, dict[str, float]], way: str) -> list[float]:
    """Return how many times longer a way takes than FastRadius, for each family."""
    return [took[way] / took[SAMPLES] for took in table.values()]


def judge_table_1(found: Results) -> Claim:
    """FastRadius is 29 times faster at n = 1000."""
    ratios = {way: time_ratios(found.table, way) for way in (*WAYS, COUNTS)}
    close = {way: max(abs(math.log(x / 29)) for x in ratios[way]) for way in WAYS}
    grown = {
        way: growth(list(found.times), [took[way] for took in found.times.values()])
        for way in (SAMPLES, *WAYS)
    }
    numbers = "RadiusFinder over FastRadius: " + "; ".join(
        f"{way} {span(ratios[way], 2)}" for way in WAYS
    )
    numbers += f"; exact counts instead of samples in FastRadius: {span(ratios[COUNTS], 2)}"
    numbers += f". Time grows like {grown[SAMPLES]} for FastRadius and like "
    numbers += f"n^{span((grown[way].exponent for way in WAYS), 3)} for RadiusFinder"
    return Claim(
        "gm.table1",
        "FastRadius is 29 times faster than RadiusFinder at n = 1000, d = 10",
        WITH if min(close.values()) <= math.log(SIGNIFICANT) else NO,
        "neighbours counted row by row in Python",
        numbers,
    )


def judge_trend(found: Results) -> Claim:
    """The trends of Figure 1 for other n and d."""
    bad = outside(found.trend)
    names: dict[str, list[float]] = {}
    for r in sorted(bad, key=lambda r: -r.mean):
        names.setdefault(f"{r.method} on {r.family} at n = {r.n}", []).append(r.mean)
    others = ", ".join(f"{name}: {span(means, 2)}" for name, means in names.items())
    beta = "; ".join(
        f"{b:g}: {span((r.mean for r in rs if r.n == 500), 2)}" for b, rs in found.betas.items()
    )
    good = [r.mean for r in found.trend if r not in bad]
    numbers = (
        f"{len(found.trend) - len(bad)} of {len(found.trend)} averages are {span(good, 2)}; "
        + (f"the others are {others}; " if bad else "")
        + f"RadiusFinder at n = 500, d = 10, R = 4 for other beta: {beta}"
    )
    return Claim(
        "gm.exp.trend",
        "similar trends for n in {500, 1000, 2000}, d in {5, 10, 20}",
        NO if bad else YES,
        f"beta = {FAILURE_PROB:g} in RadiusFinder" if bad else "",
        numbers,
    )


def advantage(curve: Curves, over: str, eta: float | str = TUNED) -> list[float]:
    """Return the error of `over` divided by that of FixedOrderDPSGD, for each number of passes."""
    return [curve.mean(over, p, eta) / curve.mean(FIXED, p, eta) for p in curve.passes]


def advantages(found: Results, family: str, over: str, eta: float | str = TUNED):
    """Return `advantage` for each n, at the middle scale."""
    return {
        n: advantage(curves_of(found.curves, family, MIDDLE[family], n), over, eta)
        for n in sorted(found.size.longest)
    }


def told(by_n: dict[int, list[float]]) -> str:
    """Return "n = 100: 0.1 to 0.2; ..."."""
    return "; ".join(f"n = {n}: {span(values, 2)}" for n, values in by_n.items())


def tuned_at(by_n: dict[int, list[float]], least: float) -> str:
    """Say at which n every ratio is at least this large."""
    sizes = [str(n) for n, values in by_n.items() if min(values) >= least]
    return f"eta tuned, and at n = {', '.join(sizes)} only"


def judge_figure_2(found: Results) -> Claim:
    """FixedOrder beats Stable always, and DPGD by far for large n."""
    stable = advantages(found, CLUSTER, STABLE)
    over = advantages(found, CLUSTER, DPGD)
    bound = advantages(found, CLUSTER, DPGD, 1.0)
    always = min(min(values) for values in stable.values()) > 1
    large = min(over[max(over)]) >= SIGNIFICANT
    around_0 = {
        c.setting.n: advantage(c, DPGD)
        for c in found.curves
        if c.setting == Setting(CLUSTER, MIDDLE[CLUSTER], c.setting.n, "0")
    }
    return Claim(
        "gm.fig2",
        "GaussianCluster: FixedOrderDPSGD consistently beats StableDPSGD, and DPGD by a "
        "significant margin once n is large enough",
        WITH if always and large else NO,
        tuned_at(over, SIGNIFICANT),
        f"StableDPSGD's error over FixedOrder's, over all passes: {told(stable)}. DPGD's over "
        f"FixedOrder's: {told(over)}; with eta from the error bound: {told(bound)}; tuned, start "
        f"around 0, where DPGD's ball does not reach x_star: {told(around_0)}",
    )


def judge_figure_3(found: Results) -> Claim:
    """HeavyTailed: similar or better for larger n."""
    over = advantages(found, HEAVY, DPGD)
    bound = advantages(found, HEAVY, DPGD, 1.0)
    return Claim(
        "gm.fig3",
        "HeavyTailed: FixedOrderDPSGD is similar to or better than DPGD for larger n",
        WITH if min(over[max(over)]) >= 1 / ROUGHLY else NO,
        tuned_at(over, 1 / ROUGHLY),
        f"DPGD's error over FixedOrder's: {told(over)}; with eta from the error bound: "
        f"{told(bound)}",
    )


def changes(curves: Sequence[Curves], over: str, eta: float | str = TUNED) -> float:
    """Return by which factor `advantage` changes at most between settings, at equal passes."""
    table = np.log([advantage(curve, over, eta) for curve in curves])
    return float(np.exp(np.ptp(table, axis=0).max()))


def judge_scales(found: Results, id: str, family: str) -> Claim:
    """Relative performance does not depend on the scale."""
    name = "R" if family == CLUSTER else "nu"
    scales = SCALES[family]
    curves = [curves_of(found.curves, family, scale, 1000) for scale in scales]
    over = {scale: advantage(c, DPGD) for scale, c in zip(scales, curves, strict=True)}
    change = [changes(curves, over) for over in (DPGD, STABLE)]
    numbers = "DPGD's error over FixedOrder's: " + "; ".join(
        f"{name} = {scale:g}: {span(values, 2)}" for scale, values in over.items()
    )
    numbers += f"; it changes by a factor {change[0]:.2g} at most, and StableDPSGD's over "
    numbers += f"FixedOrder's by {change[1]:.2g}"
    away = [
        c
        for c in found.curves
        if c.setting.family == family and c.setting.n == 1000 and c.setting.around == "0"
    ]
    if len(away) == len(scales):
        away.sort(key=lambda c: c.setting.scale)
        numbers += ". Start around 0: " + "; ".join(
            f"{name} = {c.setting.scale:g}: {span(advantage(c, DPGD), 2)}" for c in away
        )
        numbers += f"; by {changes(away, DPGD):.2g} at most"
    return Claim(
        id,
        f"{family}, n = 1000: relative performance unchanged for {name} in "
        f"{{{', '.join(f'{scale:g}' for scale in scales)}}}",
        YES if max(change) < SIGNIFICANT else NO,
        "",
        numbers,
    )


def judge_wall(found: Results) -> Claim:
    """DPGD often takes less time at the same error."""
    faster = [w for w in found.walls if w.dpgd_passes and w.dpgd_seconds < w.fixed_seconds]
    ratios = [w.fixed_seconds / w.dpgd_seconds for w in faster]
    slower = [f"{w.family} at n = {w.n}" for w in found.walls if w not in faster]
    numbers = f"in {len(faster)} of {len(found.walls)} settings"
    if faster:
        numbers += f", by a factor {span(ratios, 2)}, one run each"
    if slower:
        passes = max(found.size.passes.values())
        numbers += (
            f"; not on {', '.join(slower)}, whose error it has not reached in {passes} passes"
        )
    return Claim(
        "gm.exp.wall",
        "DPGD often takes less wall-clock time than FixedOrderDPSGD for the same error",
        YES if 2 * len(faster) > len(found.walls) else NO,
        "",
        numbers,
    )


CLAIMS: dict[str, Callable[[Results], Claim]] = {
    "gm.fig1": judge_figure_1,
    "gm.table1": judge_table_1,
    "gm.exp.trend": judge_trend,
    "gm.fig2": judge_figure_2,
    "gm.fig3": judge_figure_3,
    "gm.fig4": lambda found: judge_scales(found, "gm.fig4", CLUSTER),
    "gm.fig5": lambda found: judge_scales(found, "gm.fig5", HEAVY),
    "gm.exp.wall": judge_wall,
}
