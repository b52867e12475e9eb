"""The experiments of geometric_median, Section 5, once more; one command makes all of them.

    python -m audits.experiments_geometric_median [--quick|--full] [--out reports/experiments]

writes the figures, `experiments.json` and `experiments.html`, which begins with what became of
each claim of that section.  Where the paper does not say how something was done, `RULES` says how
it is done here, and `what_if` repeats the comparison with every other choice.

Times are taken within this process and compared with one another; seconds are for information.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path

import numpy as np
from scipy import stats

from algorithms.geometric_median import _points, _sgd, baselines, datasets, schedule
from algorithms.geometric_median.radius import fast_radius
from algorithms.geometric_median.reference import geometric_median, objective
from dpaudit.mechanisms import generator

CLUSTER, HEAVY = "GaussianCluster", "HeavyTailed"
FAST, FINDER = "FastRadius", "RadiusFinder"
DPGD, STABLE, FIXED = "DPGD", "StableDPSGD", "FixedOrderDPSGD"

# --- what the paper says, and what it does not ---

SIGMA, GAMMA, EPSILON, DELTA, RHO = 0.1, 0.75, 1.0, 1e-5, 0.5
INLIERS, FAILURE_PROB, BETAS = 0.9, 0.05, (0.001, 0.5, 0.999)
RADII = (0.5, 1.0, 2.0, 4.0, 8.0, 10.0)  # Figure 1 (a)
DEGREES = (2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0)  # Figure 1 (b)
SCALES = {CLUSTER: (25.0, 50.0, 100.0), HEAVY: (2.5, 5.0, 10.0)}  # Figures 4 and 5
MIDDLE = {CLUSTER: 50.0, HEAVY: 5.0}  # Figures 2 and 3
DIMENSION = 50  # Section 5.2
BOUNDS = (1.2, 3.0)  # of r_hat / r_true, "roughly"

ROUGHLY = 1.25  # factor by which "roughly" may miss, and "similar" differ
SIGNIFICANT = 2.0  # factor in error that is "a significant margin"
MULTIPLIERS = (
    0.25,
    1.0,
    4.0,
    8.0,
    16.0,
    32.0,
    64.0,
)  # on the step size that minimises the error bound
TUNED, AS_TAKEN = "tuned", "as in the rules"


@dataclass(frozen=True)
class Rule:
    """One parameter: what the paper says of it, what is taken, and what else is tried."""

    parameter: str
    paper: str
    taken: str
    also: str = "-"


RULES = (
    Rule("trials", "100; 20 for Figures 2 to 5", "--full: the same; --quick: 20 and 5"),
    Rule("data", "fresh for every experiment", "fresh for every trial"),
    Rule(
        "r_true, GaussianCluster", "sigma sqrt(d), for gamma = .75",
        "as printed; it holds half of the data",
        "the radius around the mean that holds .75 of the data",
    ),
    Rule(
        "r_true, HeavyTailed", "sqrt(d F(gamma)), F the CDF",
        "sqrt(d F^-1(gamma)), the quantile function", "as printed: it holds 7 % at nu = 4",
    ),
    Rule(
        "R of the radius search", "R of the data; none for HeavyTailed",
        "the largest norm, rounded up to an integer, or R if that is larger (not private)",
    ),
    Rule("gamma in FastRadius", "gamma = .75", "Algorithm 2 has no gamma; its threshold is .775 n"),
    Rule("beta of RadiusFinder", "-", ".05, as in the code of HSU24", ".001, .5 and .999"),
    Rule(
        "time of RadiusFinder", "wall-clock, code not at hand",
        "three ways to count the neighbours, each up to the radius at which it halts",
    ),
    Rule("frac_in, Section 5.2", "-", ".9, as in Section 5.1", ".5"),
    Rule("order of the rows", "-", "shuffled once, before anything else", "inliers first"),
    Rule(
        "centre of the start", "a random point of the sphere of B(.75 r_hat)",
        "the sphere around x_star", "around 0",
    ),
    Rule(
        "domain", "K^(1) = B(start, r_hat) in Algorithm 4", "that ball for all three methods",
    ),
    Rule("delta, in m and in the balls", "-", "1e-5, as in Section 5.1", "1e-2 in StableDPSGD"),
    Rule(
        "eta of the SGD methods", "-",
        "the minimiser of Schedule.error_bound times a multiplier from {1/4, 1, 4, 8, 16, 32, 64}: "
        "the best one for each method, n, T, family and centre, on data of their own (not "
        "private; the paper tuned DPGD only)",
        "every multiplier alone; 1 is the minimiser itself",
    ),
    Rule("eta of DPGD", "r_hat / sqrt(T), multiplier 1", "the same", "multiplier 1.5"),
    Rule(
        "points of a curve", "passes over the data",
        "each is a run of its own that spends all of rho; T = 2^K - 1 >= n for the SGD methods",
    ),
    Rule(
        "visits in FixedOrderDPSGD", "m = ceil(T / n)", "the same",
        "ceil(T^(k) / n) in phase k, as private and less noisy",
    ),
    Rule("error", "(f(xhat) - f(xhat)) / r_hat", "(f(xhat) - f(x_star)) / r_hat"),
)  # fmt: skip


# --- how much of it is run ---


@dataclass(frozen=True)
class Size:
    """How much is run."""

    name: str
    ratio_trials: int
    trend_trials: int
    trend_scales: dict[str, tuple[float, ...]]
    timed: tuple[int, ...]
    trials: int
    tuning: int
    longest: dict[int, int]
    """For each n: SGD runs have T = 2**K - 1 >= n steps, for K up to this one."""
    passes: dict[int, int]
    """For each n: DPGD runs have 1, 2, 4, ... passes, up to these."""


QUICK = Size(
    "quick", 20, 20, {CLUSTER: (4.0,), HEAVY: (8.0,)}, (500, 1000, 2000, 4000), 5, 4,
    {100: 11, 1000: 14, 10_000: 16}, {100: 32, 1000: 64, 10_000: 64},
)  # fmt: skip
FULL = Size(
    "full", 100, 50, {CLUSTER: (1.0, 4.0, 10.0), HEAVY: (4.0, 8.0, 20.0)},
    (500, 1000, 2000, 4000, 8000, 16_000), 20, 5,
    {100: 12, 1000: 15, 10_000: 17}, {100: 64, 1000: 256, 10_000: 512},
)  # fmt: skip


# --- Figure 1: the radius ---


@dataclass(frozen=True, eq=False)
class Ratios:
    """Estimated over true radii, one for each trial."""

    family: str
    scale: float
    n: int
    d: int
    method: str
    values: np.ndarray

    @property
    def mean(self) -> float:
        """Their average."""
        return float(self.values.mean())

    @property
    def std(self) -> float:
        """Their standard deviation."""
        return float(self.values.std())


def cloud(family: str, scale: float, n: int, d: int, rng, fraction: float = INLIERS) -> np.ndarray:
    """Draw GaussianCluster with R = `scale`, or HeavyTailed with nu = `scale`."""
    if family == HEAVY:
        return datasets.heavy_tailed(n, d, degrees=scale, rng=rng)
    return datasets.gaussian_cluster(
        n, d, max_radius=scale, sigma=SIGMA, inlier_fraction=fraction, rng=rng
    )


def true_radii(family: str, scale: float, d: int) -> dict[str, float]:
    """Return r_true as it is taken for Figure 1, and in its other reading."""
    if family == HEAVY:
        printed = math.sqrt(d * float(stats.f.cdf(GAMMA, d, scale)))
        return {"taken": datasets.heavy_tailed_radius(d, scale, GAMMA), "other": printed}
    holds = SIGMA * math.sqrt(float(stats.chi2.ppf(GAMMA / INLIERS, d)))
    return {"taken": datasets.gaussian_cluster_radius(SIGMA, d), "other": holds}


def search_radius(family: str, scale: float, points: np.ndarray) -> float:
    """Return R of the radius search: the largest norm rounded up, and no less than R."""
    farthest = math.ceil(float(np.linalg.norm(points, axis=1).max()))
    return float(farthest if family == HEAVY else max(farthest, scale))


def radius_ratios(
    family: str, scale: float, n: int, d: int, *, trials: int, seed: int,
    failure_prob: float = FAILURE_PROB,
) -> list[Ratios]:  # fmt: skip
    """Run both methods on `trials` data sets; return r_hat / r_true of each."""
    rng = generator(seed, "radius", family, str(scale), n, d)
    found: dict[str, list[float]] = {FAST: [], FINDER: []}
    for _ in range(trials):
        points = cloud(family, scale, n, d, rng)
        bounds = {
            "min_radius": float(rng.uniform(0.005, 0.02)),
            "max_radius": search_radius(family, scale, points),
        }
        fast = fast_radius(points, 1, **bounds, epsilon=EPSILON, delta=DELTA, rng=rng)
        found[FAST].append(float(fast[0]))
        finder = baselines.radius_finder(
            points, 1, **bounds, epsilon=EPSILON, failure_prob=failure_prob, gamma=GAMMA, rng=rng
        )
        found[FINDER].append(float(finder[0]))
    true = true_radii(family, scale, d)["taken"]
    return [Ratios(family, scale, n, d, m, np.array(values) / true) for m, values in found.items()]


# --- Table 1: the time ---


def rows_in_python(points: np.ndarray, radius: float) -> np.ndarray:
    """Count the neighbours of one point after the other, as a plain implementation would."""
    counts = [np.count_nonzero(np.linalg.norm(points - x, axis=1) <= radius) for x in points]
    return np.array(counts)


def once_for_each_radius(points: np.ndarray, radius: float) -> np.ndarray:
    """Count the neighbours of blocks of points; the distances are not kept."""
    return _points.neighbour_counts(points, np.array([radius]))[:, 0]


ONCE, AGAIN, PLAIN = "distances once for all radii", "distances again for each", "row by row"
SAMPLES, COUNTS = "FastRadius, sampled", "FastRadius, exact counts"
WAYS = (PLAIN, AGAIN, ONCE)


def finder_seconds(points: np.ndarray, radii: np.ndarray, way: str) -> float:
    """Time RadiusFinder's queries, up to the first that passes its threshold without noise."""
    kept = math.ceil(GAMMA * len(points))
    needed = kept + 18 / EPSILON * math.log(2 * len(radii) / FAILURE_PROB)
    began = time.perf_counter()
    if way == ONCE:
        baselines.radius_finder_queries(points, radii, GAMMA)
        return time.perf_counter() - began
    count = rows_in_python if way == PLAIN else once_for_each_radius
    for radius in radii:
        if np.sort(count(points, radius))[-kept:].mean() >= needed:
            break
    return time.perf_counter() - began


def seconds(family: str, scale: float, n: int, d: int, *, repeats: int, seed: int) -> dict:
    """Return the least seconds of each way to estimate the radius, in turns, on one data set."""
    rng = generator(seed, "time", family, str(scale), n, d)
    points = cloud(family, scale, n, d, rng)
    smallest, largest = 0.01, search_radius(family, scale, points)
    radii = baselines.radius_finder_radii(smallest, largest)
    search = {"min_radius": smallest, "max_radius": largest, "epsilon": EPSILON, "delta": DELTA}
    took: dict[str, list[float]] = {way: [] for way in (SAMPLES, COUNTS, *WAYS)}
    for _ in range(repeats):
        for name, route in ((SAMPLES, "samples"), (COUNTS, "counts")):
            began = time.perf_counter()
            fast_radius(points, 1, **search, route=route, rng=rng)
            took[name].append(time.perf_counter() - began)
        for way in WAYS:
            took[way].append(finder_seconds(points, radii, way))
    return {way: min(values) for way, values in took.items()}


def growth_exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """Return the least-squares slope of log time over log size.

    Examples
    --------
    >>> round(growth_exponent([1, 10, 100], [3, 300, 30_000]), 12)
    2.0
    """
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


# --- Figures 2 to 5: the descent ---


@dataclass(frozen=True)
class Setting:
    """A data set and a start, but for chance."""

    family: str
    scale: float
    n: int
    around: str = "x_star"
    fraction: float = INLIERS
    shuffled: bool = True


@dataclass(frozen=True, eq=False)
class Problem:
    """One trial, in units of r_hat."""

    points: np.ndarray
    start: np.ndarray
    least: float

    def error(self, found: np.ndarray) -> np.ndarray:
        """Return (f(xhat) - f(x_star)) / r_hat, ``[size]``."""
        return objective(self.points, found) - self.least


def effective_radius(setting: Setting) -> float:
    """Return r_hat of Section 5.2, with the quantile function for HeavyTailed."""
    return 20 * true_radii(setting.family, setting.scale, DIMENSION)["taken"]


def problem(setting: Setting, rng: np.random.Generator) -> Problem:
    """Draw data and a start."""
    points = cloud(setting.family, setting.scale, setting.n, DIMENSION, rng, setting.fraction)
    if setting.shuffled:
        points = rng.permutation(points)
    points = points / effective_radius(setting)
    median = geometric_median(points, tolerance=1e-6)
    direction = rng.normal(size=DIMENSION)
    middle = median.point if setting.around == "x_star" else np.zeros(DIMENSION)
    start = middle + 0.75 * direction / np.linalg.norm(direction)
    return Problem(points, start, median.objective)


def problems(setting: Setting, size: int, *, seed: int, role: str) -> list[Problem]:
    """Draw the trials of a setting; each `role` has data of its own, other choices the same."""
    words = (role, setting.family, str(setting.scale), setting.n)
    return [problem(setting, generator(seed, *words, trial)) for trial in range(size)]


def sgd_steps(n: int, longest: int) -> list[int]:
    """Return the numbers of steps that are run: 2**K - 1 >= n, K up to `longest`."""
    return [2**k - 1 for k in range(n.bit_length(), longest + 1)]


def sgd_schedule(
    method: str, n: int, n_steps: int, *, step: float = 1.0, delta: float = DELTA,
    accesses: str = "total",
) -> schedule.Schedule:  # fmt: skip
    """Return the schedule of an SGD method in units of r_hat."""
    plan = {"radius": 1.0, "rho": RHO, "delta": delta, "step": step, "n_steps": n_steps}
    if method == STABLE:
        return schedule.stable_dpsgd_schedule(n, DIMENSION, **plan)
    return schedule.fixed_order_schedule(n, DIMENSION, **plan, accesses=accesses)


def best_step(plan: schedule.Schedule) -> float:
    """Return the step size that minimises the error bound, from a schedule of step size 1."""
    inverse, linear, _ = plan.error_terms
    return math.sqrt(inverse / linear)


def sgd_errors(
    method: str,
    trials: Sequence[Problem],
    n_steps: int,
    *,
    multipliers: Sequence[float] = MULTIPLIERS,
    rng: np.random.Generator,
    **options,
) -> np.ndarray:
    """Run an SGD method on problems of one n, with all multipliers: ``[trials, multipliers]``.

    All runs go side by side through `_sgd.run_phases`, the loop of `boosting`: their data are laid
    end to end, and each reads rows of its own.  Step sizes, noise and balls are those of
    `boosting`, times the step size of the run.
    """
    n = len(trials[0].points)
    plan = sgd_schedule(method, n, n_steps, **options)
    steps = best_step(plan) * np.tile(multipliers, len(trials))
    side_by_side = replace(
        plan,
        steps=tuple(step * steps for step in plan.steps),
        sigmas=tuple(sigma * steps[:, None] for sigma in plan.sigmas),
        radii=(plan.radii[0], *(radius * steps for radius in plan.radii[1:])),
    )
    own = np.repeat(np.arange(len(trials)) * n, len(multipliers))
    draw = _sgd.random_rows(n, rng) if method == STABLE else _sgd.fixed_rows(n, None)
    centers, noise = _sgd.run_phases(
        np.concatenate([trial.points for trial in trials]),
        np.repeat([trial.start for trial in trials], len(multipliers), axis=0),
        side_by_side,
        lambda first, length, size: draw(first, length, size) + own,
        plan.n_phases,
        "all",
        1.0,
        rng,
    )
    found = (centers[-1] + noise[-1]).reshape(len(trials), len(multipliers), DIMENSION)
    return np.array([trial.error(x) for trial, x in zip(trials, found, strict=True)])


def dpgd_errors(
    trials: Sequence[Problem], n_steps: int, *, multiplier: float = 1.0, rng: np.random.Generator
) -> np.ndarray:
    """Run DPGD on problems: ``[trials]``."""
    runs = [
        trial.error(
            baselines.dpgd(
                trial.points, 1, center=trial.start, radius=1.0, rho=RHO,
                step=multiplier / math.sqrt(n_steps), n_steps=n_steps, rng=rng,
            )
        )
        for trial in trials
    ]  # fmt: skip
    return np.concatenate(runs)


@dataclass(frozen=True, eq=False)
class Curves:
    """Errors of one setting: for each method and passes, one for each trial."""

    setting: Setting
    dpgd: dict[int, np.ndarray]
    """Passes to ``[trials]``."""
    sgd: dict[str, dict[float, dict[float | str, np.ndarray]]]
    """Method to passes to multiplier, or TUNED, to ``[trials]``."""

    def mean(self, method: str, passes: float, eta: float | str = TUNED) -> float:
        """Average error of one point of a curve."""
        if method == DPGD:
            return float(self.dpgd[int(passes)].mean())
        return float(self.sgd[method][passes][eta].mean())

    @property
    def passes(self) -> list[float]:
        """Of the SGD methods; DPGD has their integer parts, and more."""
        return sorted(self.sgd[FIXED])


def sgd_curves(
    method: str, settings: Sequence[Setting], size: Size, *, seed: int,
    steps: Iterable[int] | None = None, **options,
) -> list[dict[float, dict[float | str, np.ndarray]]]:  # fmt: skip
    """Run one SGD method on settings of one n; return passes to multiplier to errors of each."""
    n = settings[0].n
    trials = [p for s in settings for p in problems(s, size.trials, seed=seed, role="trial")]
    tuning = sorted({(setting.family, setting.around) for setting in settings})
    for family, around in tuning:
        setting = Setting(family, MIDDLE[family], n, around)
        trials += problems(setting, size.tuning, seed=seed, role="tuning")
    curves: list[dict[float, dict[float | str, np.ndarray]]] = [{} for _ in settings]
    for n_steps in steps or sgd_steps(n, size.longest[n]):
        rng = generator(seed, "sgd", method, n, n_steps, str(options))
        errors = sgd_errors(method, trials, n_steps, rng=rng, **options)
        own, other = np.split(errors, [len(settings) * size.trials])
        own = own.reshape(len(settings), size.trials, -1)
        tuned = other.reshape(len(tuning), size.tuning, -1).mean(axis=1).argmin(axis=1)
        for setting, curve, values in zip(settings, curves, own, strict=True):
            best = tuned[tuning.index((setting.family, setting.around))]
            point: dict[float | str, np.ndarray] = dict(zip(MULTIPLIERS, values.T, strict=True))
            curve[n_steps / n] = point | {TUNED: values[:, best]}
    return curves


def descents(settings: Sequence[Setting], size: Size, *, seed: int) -> list[Curves]:
    """Run all three methods on settings of one n."""
    n = settings[0].n
    sgd = {m: sgd_curves(m, settings, size, seed=seed) for m in (STABLE, FIXED)}
    counts = {int(steps / n) for steps in sgd_steps(n, size.longest[n])}
    counts |= {2**k for k in range(size.passes[n].bit_length())}
    found = []
    for i, setting in enumerate(settings):
        trials = problems(setting, size.trials, seed=seed, role="trial")
        rng = generator(seed, "dpgd", str(setting))
        dpgd = {count: dpgd_errors(trials, count, rng=rng) for count in sorted(counts)}
        found.append(Curves(setting, dpgd, {method: sgd[method][i] for method in sgd}))
    return found


def settings_of(n: int) -> list[Setting]:
    """Return what is run for one n; all scales and all other choices for n = 1000 only."""
    scales = SCALES if n == 1000 else {family: (MIDDLE[family],) for family in MIDDLE}
    found = [Setting(family, scale, n) for family in scales for scale in scales[family]]
    cluster = Setting(CLUSTER, MIDDLE[CLUSTER], n)
    found.append(replace(cluster, around="0"))
    if n == 1000:
        found += [replace(cluster, around="0", scale=scale) for scale in (25.0, 100.0)]
        found.append(replace(Setting(HEAVY, MIDDLE[HEAVY], n), around="0"))
    if n <= 1000:
        found += [replace(cluster, fraction=0.5), replace(cluster, shuffled=False)]
    return found


# --- what else might have been meant ---


@dataclass(frozen=True)
class WhatIf:
    """Errors under another choice, on GaussianCluster with R = 50."""

    choice: str
    n: int
    passes: float
    dpgd: float
    stable: float
    fixed: float


def what_if(curves: Sequence[Curves], size: Size, *, seed: int) -> list[WhatIf]:
    """Return the errors at the most passes that all methods have, one choice after the other."""
    rows = []
    for n in sorted(size.longest):
        base = curves_of(curves, CLUSTER, MIDDLE[CLUSTER], n)
        most = base.passes[-1]

        def row(choice, found=base, eta=TUNED, n=n, most=most, **other):
            values = {
                "dpgd": found.mean(DPGD, most),
                "stable": found.mean(STABLE, most, eta),
                "fixed": found.mean(FIXED, most, eta),
            }
            rows.append(WhatIf(choice, n, most, **(values | other)))

        row(AS_TAKEN)
        for multiplier in MULTIPLIERS:
            row(f"eta of the SGD methods: {multiplier:g} times the minimiser", eta=multiplier)
        for curve in curves:
            setting = curve.setting
            if (setting.family, setting.scale, setting.n) != (CLUSTER, MIDDLE[CLUSTER], n):
                continue
            if setting.around == "0":
                row("start around 0", curve)
            if setting.fraction != INLIERS:
                row(f"frac_in = {setting.fraction:g}", curve)
            if not setting.shuffled:
                row("inliers first", curve)
        steps = [round(most * n)]
        again = {"seed": seed, "steps": steps}
        (other,) = sgd_curves(STABLE, [base.setting], size, **again, delta=1e-2)
        row("delta = 1e-2 in StableDPSGD", stable=float(other[most][TUNED].mean()))
        (other,) = sgd_curves(FIXED, [base.setting], size, **again, accesses="phase")
        row("m = ceil(T^(k) / n) in phase k", fixed=float(other[most][TUNED].mean()))
        trials = problems(base.setting, size.trials, seed=seed, role="trial")
        rng = generator(seed, "dpgd", "1.5", n)
        larger = dpgd_errors(trials, int(most), multiplier=1.5, rng=rng)
        row("eta of DPGD: 1.5 r_hat / sqrt(T)", dpgd=float(larger.mean()))
    return rows


def curves_of(curves: Sequence[Curves], family: str, scale: float, n: int) -> Curves:
    """Return the curves of a setting as in the rules."""
    return next(c for c in curves if c.setting == Setting(family, scale, n))


# --- time at equal error ---


@dataclass(frozen=True)
class Wall:
    """Seconds of one run of DPGD and of FixedOrderDPSGD at about the same error."""

    family: str
    n: int
    dpgd_passes: int | None
    """The fewest with an error no larger; None where all that were run have a larger one."""
    dpgd_seconds: float
    fixed_passes: float
    fixed_seconds: float
    fixed_error: float


def shortest(run: Callable[[], object], repeats: int = 3) -> float:
    """Return the least seconds of several runs."""
    took = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        took.append(time.perf_counter() - began)
    return min(took)


def wall_clock(curve: Curves, *, seed: int) -> Wall:
    """Time both methods at the smallest error that FixedOrderDPSGD reached."""
    setting = curve.setting
    best = min(curve.passes, key=lambda passes: curve.mean(FIXED, passes))
    error = curve.mean(FIXED, best)
    enough = [passes for passes in sorted(curve.dpgd) if curve.mean(DPGD, passes) <= error]
    trials = problems(setting, 1, seed=seed, role="wall")
    rng = generator(seed, "wall", str(setting))
    steps = round(best * setting.n)
    fixed = shortest(lambda: sgd_errors(FIXED, trials, steps, multipliers=(1.0,), rng=rng))
    count = enough[0] if enough else max(curve.dpgd)
    dpgd = shortest(lambda: dpgd_errors(trials, count, rng=rng))
    return Wall(setting.family, setting.n, enough[0] if enough else None, dpgd, best, fixed, error)


# --- everything ---


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


# --- what became of the claims ---

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
    exponents = {
        way: growth_exponent(list(found.times), [took[way] for took in found.times.values()])
        for way in (SAMPLES, *WAYS)
    }
    numbers = "RadiusFinder over FastRadius: " + "; ".join(
        f"{way} {span(ratios[way], 2)}" for way in WAYS
    )
    numbers += f"; exact counts instead of samples in FastRadius: {span(ratios[COUNTS], 2)}"
    numbers += f". Time grows like n^{exponents[SAMPLES]:.2f} for FastRadius and like "
    numbers += f"n^{span((exponents[way] for way in WAYS), 3)} for RadiusFinder"
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


def plain(value: object) -> object:
    """Return what json cannot write by itself as plain data."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"{value!r} is not plain data")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run everything and write the page."""
    from audits import experiments_geometric_median__figures as figures

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--quick", action="store_true", help="minutes (the default)")
    group.add_argument("--full", action="store_true", help="the sizes of the paper, half an hour")
    parser.add_argument("--out", type=Path, default=Path("reports/experiments"))
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)

    def say(words: str) -> None:
        sys.stdout.write(words + "\n")
        sys.stdout.flush()

    found = measure(FULL if asked.full else QUICK, seed=asked.seed, say=say)
    claims = [judge(found) for judge in CLAIMS.values()]
    asked.out.mkdir(parents=True, exist_ok=True)
    record = {"claims": claims, "rules": RULES, "results": found}
    (asked.out / "experiments.json").write_text(json.dumps(record, default=plain, indent=1))
    page = figures.write(found, claims, RULES, asked.out)
    for claim in claims:
        say(
            f"\n{claim.id}: {claim.verdict}{claim.choice and f' ({claim.choice})'}\n{claim.numbers}"
        )
    say(f"wrote {page}")


if __name__ == "__main__":
    from audits import experiments_geometric_median as named  # the one that the figures import

    named.main()
