"""Figures 2 to 5: the descent from a start in three ways, and every other choice."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from algorithms.geometric_median import _sgd, baselines, schedule
from algorithms.geometric_median.reference import geometric_median, objective
from audits.geometric_median.experiments.setup import (
    AS_TAKEN,
    CLUSTER,
    DELTA,
    DIMENSION,
    DPGD,
    FIXED,
    HEAVY,
    INLIERS,
    MIDDLE,
    MULTIPLIERS,
    RHO,
    SCALES,
    STABLE,
    TUNED,
    Size,
    cloud,
    true_radii,
)
from dpaudit.mechanisms import generator


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
