"""Figures 2 to 5: the descent from a start in three ways, and every other choice."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from algorithms.geometric_median import _sgd, baselines, schedule
from audits.geometric_median.experiments.intervals import Interval, quotient, ratio
from audits.geometric_median.experiments.setup import (
    CLUSTER,
    DELTA,
    DIMENSION,
    DPGD,
    FIXED,
    HEAVY,
    MIDDLE,
    MULTIPLIERS,
    RHO,
    SCALES,
    STABLE,
    TUNED,
    Problem,
    Setting,
    Size,
    problems,
)
from dpaudit.mechanisms import generator

AS_TAKEN, AROUND_0 = "as in the rules", "start around 0"
CHOICES: dict[str, dict[str, dict[str, object]]] = {
    AROUND_0: {"setting": {"around": "0"}},
    "frac_in = 0.5": {"setting": {"fraction": 0.5}},
    "inliers first": {"setting": {"shuffled": False}},
    "delta = 1e-2 in StableDPSGD": {STABLE: {"delta": 1e-2}},
    "m = ceil(T^(k) / n) in phase k": {FIXED: {"accesses": "phase"}},
    "eta of DPGD: 1.5 r_hat / sqrt(T)": {DPGD: {"multiplier": 1.5}},
}
"""What else is tried: what it changes of the setting, or of one method."""


def sgd_steps(n: int, longest: int) -> list[int]:
    """Return the numbers of steps that are run: 2**K - 1 >= n, K up to `longest`."""
    return [2**k - 1 for k in range(n.bit_length(), longest + 1)]


def sgd_schedule(
    method: str, n: int, n_steps: int, *, step: float = 1.0, delta: float = DELTA, **options
) -> schedule.Schedule:
    """Return the schedule of an SGD method in units of r_hat."""
    made = schedule.stable_dpsgd_schedule if method == STABLE else schedule.fixed_order_schedule
    plan = {"radius": 1.0, "rho": RHO, "delta": delta, "step": step, "n_steps": n_steps}
    return made(n, DIMENSION, **plan, **options)


def best_step(plan: schedule.Schedule) -> float:
    """Return the step size that minimises the error bound, from a schedule of step size 1."""
    inverse, linear, _ = plan.error_terms
    return math.sqrt(inverse / linear)


def sgd_errors(
    method: str, trials: Sequence[Problem], n_steps: int, *,
    multipliers: Sequence[float] = MULTIPLIERS, rng: np.random.Generator, **options,
) -> np.ndarray:  # fmt: skip
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
    options = {"radius": 1.0, "rho": RHO, "step": multiplier / math.sqrt(n_steps), "rng": rng}
    runs = [
        trial.error(baselines.dpgd(trial.points, 1, center=trial.start, n_steps=n_steps, **options))
        for trial in trials
    ]
    return np.concatenate(runs)


# --- errors of many runs ---


def _table(errors: np.ndarray, setting: Setting, method: str, passes: float, etas) -> pd.DataFrame:
    found = pd.DataFrame(errors, columns=list(etas)).rename_axis("trial").reset_index()
    where = {"family": setting.family, "scale": setting.scale, "n": setting.n}
    found = found.melt("trial", var_name="eta", value_name="error")
    return found.assign(**where, method=method, passes=float(passes))


def sgd_table(
    method: str, settings: Sequence[Setting], size: Size, steps: Sequence[int], seed: int, **options
) -> pd.DataFrame:
    """Run one SGD method on settings of one n and family, with eta tuned on data of their own."""
    family, n = settings[0].family, settings[0].n
    middle = Setting(family, MIDDLE[family], n, settings[0].around)
    trials = [p for s in settings for p in problems(s, size.trials, seed=seed, role="trial")]
    trials += problems(middle, size.tuning, seed=seed, role="tuning")
    etas, tables = [f"{m:g}" for m in MULTIPLIERS], []
    for n_steps in steps:
        rng = generator(seed, "sgd", method, str(middle), n_steps, str(options))
        errors = sgd_errors(method, trials, n_steps, rng=rng, **options)
        tuned = int(errors[-size.tuning :].mean(axis=0).argmin())
        errors = np.column_stack([errors, errors[:, tuned]])
        for i, setting in enumerate(settings):
            own = errors[i * size.trials : (i + 1) * size.trials]
            tables.append(_table(own, setting, method, n_steps / n, [*etas, TUNED]))
    return pd.concat(tables)


def dpgd_table(
    settings: Sequence[Setting], size: Size, counts: Iterable[int], seed: int, **options
) -> pd.DataFrame:
    """Run DPGD on settings."""
    tables = []
    for setting in settings:
        trials = problems(setting, size.trials, seed=seed, role="trial")
        for count in sorted(counts):
            rng = generator(seed, "dpgd", str(setting), count, str(options))
            errors = dpgd_errors(trials, count, rng=rng, **options)
            tables.append(_table(errors[:, None], setting, DPGD, count, [TUNED]))
    return pd.concat(tables)


def descents(
    settings: Sequence[Setting], size: Size, *, seed: int, choice: str = AS_TAKEN
) -> pd.DataFrame:
    """Run the methods on settings of one n and family; other choices at the most passes only.

    Of another choice, only the methods that it changes.
    """
    n, change = settings[0].n, CHOICES.get(choice, {})
    settings = [replace(setting, **change.get("setting", {})) for setting in settings]
    steps = sgd_steps(n, size.longest[n])
    counts = {t // n for t in steps} | {2**k for k in range(size.passes[n].bit_length())}
    if choice != AS_TAKEN:
        steps, counts = steps[-1:], {steps[-1] // n}
    moved = [m for m in (STABLE, FIXED, DPGD) if m in change or "setting" in change or not change]
    tables = [
        dpgd_table(settings, size, counts, seed, **change.get(m, {}))
        if m == DPGD
        else sgd_table(m, settings, size, steps, seed, **change.get(m, {}))
        for m in moved
    ]
    return pd.concat(tables).assign(choice=choice)


def all_descents(n: int, size: Size, *, seed: int) -> pd.DataFrame:
    """Run what is run for one n; all scales for n = 1000 only."""
    tables = []
    for family in (CLUSTER, HEAVY):
        scales = SCALES[family] if n == 1000 else (MIDDLE[family],)
        settings = [Setting(family, scale, n) for scale in scales]
        tables.append(descents(settings, size, seed=seed))
        if n == 1000 or family == CLUSTER:
            tables.append(descents(settings, size, seed=seed, choice=AROUND_0))
    others = [
        choice
        for choice, change in CHOICES.items()
        if choice != AROUND_0 and (n <= 1000 or "setting" not in change)
    ]
    middle = [Setting(CLUSTER, MIDDLE[CLUSTER], n)]
    tables += [descents(middle, size, seed=seed, choice=choice) for choice in others]
    return pd.concat(tables, ignore_index=True)


def chosen(
    errors: pd.DataFrame, family: str, n: int, scale: float | None = None, choice: str = AS_TAKEN
) -> pd.DataFrame:
    """Return the errors of one setting, by default at the middle scale."""
    where = {"family": family, "n": n, "scale": scale or MIDDLE[family], "choice": choice}
    return errors[(errors[list(where)] == pd.Series(where)).all(axis=1)]


def advantage(
    errors: pd.DataFrame, over: str, eta: str = TUNED, *, among: int | None = None
) -> dict[float, Interval]:
    """Return the error of `over` divided by that of FixedOrderDPSGD, by passes of the latter.

    `errors` are of one setting. All intervals are right at once, by default of this comparison.
    """
    kept = errors[(errors.eta == eta) | (errors.method == DPGD)]
    table = kept.pivot(index="trial", columns=["method", "passes"], values="error")
    passes = sorted(table[FIXED].columns)
    return {
        p: ratio(
            table[over, float(int(p)) if over == DPGD else p], table[FIXED, p],
            among=among or len(passes),
        )
        for p in passes
    }  # fmt: skip


def changes(settings: Sequence[pd.DataFrame], over: str, eta: str = TUNED) -> list[Interval]:
    """Return by which factor `advantage` changes between each two settings, at equal passes."""
    among = len(advantage(settings[0], over)) * len(settings) * (len(settings) - 1) // 2
    found = [advantage(errors, over, eta, among=among) for errors in settings]
    changed = [
        quotient(one[p], other[p])
        for i, one in enumerate(found)
        for other in found[:i]
        for p in one
    ]
    return [x if x.value >= 1 else x.inverse() for x in changed]


# --- time at equal error ---


def times_of(run: Callable[[], object], repeats: int = 3) -> list[float]:
    """Return the seconds of several runs."""
    took = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        took.append(time.perf_counter() - began)
    return took


def wall_clock(errors: pd.DataFrame, *, seed: int) -> dict[str, object]:
    """Time DPGD, and FixedOrderDPSGD at its smallest error; errors of one setting.

    DPGD takes the fewest passes with an error no larger; as many as were run, if all are larger.
    """
    means = errors[errors.eta == TUNED].groupby(["method", "passes"]).error.mean()
    passes, least = means[FIXED].idxmin(), means[FIXED].min()
    enough = means[DPGD].index[means[DPGD] <= least]
    count = int(enough.min() if len(enough) else means[DPGD].index.max())
    family, scale, n = errors[["family", "scale", "n"]].iloc[0]
    trials = problems(Setting(family, scale, int(n)), 1, seed=seed, role="wall")
    rng, steps = generator(seed, "wall", family, int(n)), round(passes * n)
    fixed = times_of(lambda: sgd_errors(FIXED, trials, steps, multipliers=(1.0,), rng=rng))
    dpgd = times_of(lambda: dpgd_errors(trials, count, rng=rng))
    return {
        "family": family, "n": int(n), "error": least, "fixed_passes": passes,
        "fixed_seconds": min(fixed), "dpgd_passes": count, "dpgd_seconds": min(dpgd),
        "reached": bool(len(enough)), "faster": ratio(fixed, dpgd),
    }  # fmt: skip
