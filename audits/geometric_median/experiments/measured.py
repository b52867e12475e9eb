"""Everything that the experiments measure, in one record."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from audits.geometric_median.experiments.descent import (
    Curves,
    Wall,
    WhatIf,
    curves_of,
    descents,
    settings_of,
    wall_clock,
    what_if,
)
from audits.geometric_median.experiments.radius import Ratios, radius_ratios, seconds
from audits.geometric_median.experiments.setup import (
    BETAS,
    CLUSTER,
    DEGREES,
    FINDER,
    FULL,
    HEAVY,
    MIDDLE,
    RADII,
    Size,
)


@dataclass
class Results:
    """All that was measured."""

    size: Size
    seed: int
    ratios: list[Ratios] = field(default_factory=list)
    trend: list[Ratios] = field(default_factory=list)
    betas: dict[float, list[Ratios]] = field(default_factory=dict)
    table: dict[str, dict[str, float]] = field(default_factory=dict)
    """Family to way to seconds, averaged over the settings of Figure 1."""
    times: dict[int, dict[str, float]] = field(default_factory=dict)
    """n to way to seconds, GaussianCluster with R = 4."""
    curves: list[Curves] = field(default_factory=list)
    what_if: list[WhatIf] = field(default_factory=list)
    walls: list[Wall] = field(default_factory=list)
    took: dict[str, float] = field(default_factory=dict)


def measure(size: Size, *, seed: int, say: Callable[[str], None]) -> Results:
    """Run everything."""
    found = Results(size, seed)

    def part(name: str, run: Callable[[], None]) -> None:
        began = time.perf_counter()
        run()
        found.took[name] = time.perf_counter() - began
        say(f"{name}: {found.took[name]:.0f} s")

    part("Figure 1", lambda: measure_ratios(found))
    part("radius for other n, d and beta", lambda: measure_trend(found))
    part("Table 1", lambda: measure_times(found))
    for n in sorted(size.longest):
        part(
            f"Figures 2 to 5, n = {n}",
            lambda n=n: found.curves.extend(descents(settings_of(n), size, seed=seed)),
        )
    part("other choices", lambda: found.what_if.extend(what_if(found.curves, size, seed=seed)))
    part("time at equal error", lambda: measure_walls(found))
    return found


def measure_ratios(found: Results) -> None:
    """Figure 1."""
    for family, scales in ((CLUSTER, RADII), (HEAVY, DEGREES)):
        for scale in scales:
            found.ratios += radius_ratios(
                family, scale, 1000, 10, trials=found.size.ratio_trials, seed=found.seed
            )


def measure_trend(found: Results) -> None:
    """Other n and d, and other beta of RadiusFinder for n = 500 and 1000."""
    options = {"trials": found.size.trend_trials, "seed": found.seed}
    for family, scales in found.size.trend_scales.items():
        for scale in scales:
            for n in (500, 1000, 2000):
                for d in (5, 10, 20):
                    found.trend += radius_ratios(family, scale, n, d, **options)
    options["trials"] = 2 * found.size.ratio_trials
    for beta in BETAS:
        cells = [
            radius_ratios(CLUSTER, 4.0, n, 10, failure_prob=beta, **options) for n in (500, 1000)
        ]
        found.betas[beta] = [r for cell in cells for r in cell if r.method == FINDER]


def measure_times(found: Results) -> None:
    """Table 1, and the growth with n."""
    full = found.size is FULL
    for family, scales in ((CLUSTER, RADII), (HEAVY, DEGREES)):
        chosen = scales if full else scales[:: len(scales) // 3]
        took = [seconds(family, s, 1000, 10, repeats=3, seed=found.seed) for s in chosen]
        found.table[family] = {w: float(np.mean([t[w] for t in took])) for w in took[0]}
    for n in found.size.timed:
        repeats = 3 if n <= 2000 else 1
        found.times[n] = seconds(CLUSTER, 4.0, n, 10, repeats=repeats, seed=found.seed)


def measure_walls(found: Results) -> None:
    """Time at equal error, where the curves are."""
    for n in sorted(found.size.longest):
        for family in MIDDLE:
            curve = curves_of(found.curves, family, MIDDLE[family], n)
            found.walls.append(wall_clock(curve, seed=found.seed))
