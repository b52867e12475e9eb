"""The runs of Figures 2 to 5: three methods, with the default choices and with other choices."""

from __future__ import annotations

import itertools
import math
import timeit
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from algorithms.geometric_median import _sgd, baselines, schedule
from audits.common.intervals import Interval, quotient, ratio
from audits.geometric_median.experiments import setup
from audits.geometric_median.experiments.setup import CLUSTER, DPGD, FIXED, HEAVY, STABLE, TUNED
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
"""Other choices that are tried: their changes to the setting, or to one method."""


def sgd_steps(n: int, longest: int) -> list[int]:
    """Return the numbers of steps 2**K - 1 that are at least n, for K up to `longest`."""
    return [2**k - 1 for k in range(n.bit_length(), longest + 1)]


def sgd_schedule(
    method: str, n: int, n_steps: int, *, step: float = 1.0, delta: float = setup.DELTA, **options
) -> schedule.Schedule:
    """Return the schedule of an SGD method in units of r_hat."""
    made = schedule.stable_dpsgd_schedule if method == STABLE else schedule.fixed_order_schedule
    plan = {"radius": 1.0, "rho": setup.RHO, "delta": delta, "step": step, "n_steps": n_steps}
    return made(n, setup.DIMENSION, **plan, **options)


def sgd_errors(
    method: str, trials: Sequence[setup.Problem], n_steps: int, *,
    multipliers: Sequence[float] = setup.MULTIPLIERS, rng: np.random.Generator, **options,
) -> np.ndarray:  # fmt: skip
    """Run an SGD method on problems of one n, with all multipliers, and return the errors.

    The result has shape ``[trials, multipliers]``. All runs proceed in parallel in
    `_sgd.run_phases`, the loop of `boosting`. The data of all runs are concatenated, and each run
    reads its own rows. The step sizes, noise scales and radii are the values from `boosting` times
    the step size of the run. Only the first radius stays unchanged.
    """
    n = len(trials[0].points)
    plan = sgd_schedule(method, n, n_steps, **options)
    etas = [schedule.tuned_step(plan, multiplier=multiplier) for multiplier in multipliers]
    steps = np.tile(etas, len(trials))
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
    found = (centers[-1] + noise[-1]).reshape(len(trials), len(multipliers), setup.DIMENSION)
    return np.array([trial.error(x) for trial, x in zip(trials, found, strict=True)])


def dpgd_errors(
    trials: Sequence[setup.Problem],
    n_steps: int,
    *,
    multiplier: float = 1.0,
    base: str = setup.BEST,
    rng: np.random.Generator,
) -> np.ndarray:
    """Run DPGD on problems of one n and return an array with one error for each trial."""
    step = baselines.dpgd_step(n_steps, radius=1.0, multiplier=multiplier)
    if base == setup.HSU24:
        n, known = len(trials[0].points), {"radius": 1.0, "rho": setup.RHO, "step_rule": "hsu"}
        step = multiplier * baselines.dpgd_parameters(n, setup.DIMENSION, **known).step
    options = {"radius": 1.0, "rho": setup.RHO, "step": step, "rng": rng, "max_seconds": math.inf}
    runs = [
        trial.error(baselines.dpgd(trial.points, 1, center=trial.start, n_steps=n_steps, **options))
        for trial in trials
    ]
    return np.concatenate(runs)


# --- errors of many runs ---


def method_table(
    method: str, settings: Sequence[setup.Setting], size: setup.Size, steps: Iterable[int],
    seed: int, **options,
) -> pd.DataFrame:  # fmt: skip
    """Run one method on settings of one n and family.

    For SGD methods, eta is tuned on separate data.
    """
    family, n, tables, etas = settings[0].family, settings[0].n, [], [TUNED]
    each = size.trials_of(family, n)
    trials = [p for s in settings for p in setup.problems(s, each, seed=seed, role="trial")]
    if method != DPGD:
        etas = [*(f"{m:g}" for m in setup.MULTIPLIERS), TUNED]
        middle = setup.Setting(family, setup.MIDDLE[family], n, settings[0].around)
        trials += setup.problems(middle, size.tuning, seed=seed, role="tuning")
    for n_steps in steps:
        rng = generator(seed, method, str(settings[0]), n_steps, str(options))
        if method == DPGD:
            errors = dpgd_errors(trials, n_steps, rng=rng, **options)[:, None]
        else:
            errors = sgd_errors(method, trials, n_steps, rng=rng, **options)
            tuned = int(errors[-size.tuning :].mean(axis=0).argmin())
            errors = np.column_stack([errors, errors[:, tuned]])
        for i, setting in enumerate(settings):
            own = pd.DataFrame(errors[i * each :][:each], columns=etas)
            own = own.rename_axis("trial").reset_index()
            own = own.melt("trial", var_name="eta", value_name="error")
            passes = float(n_steps if method == DPGD else n_steps / n)
            tables.append(own.assign(scale=setting.scale, passes=passes))
    return pd.concat(tables).assign(family=family, n=n, method=method)


def descents(
    settings: Sequence[setup.Setting], size: setup.Size, *, seed: int, choice: str = AS_TAKEN
) -> pd.DataFrame:
    """Run the methods on settings of one n and family.

    A choice other than the default runs only at the largest number of passes. If a choice changes
    only one method, only this method runs. Other choices have `size.trials` trials.
    """
    n, change = settings[0].n, CHOICES.get(choice, {})
    settings = [replace(setting, **change.get("setting", {})) for setting in settings]
    steps = sgd_steps(n, size.longest[n])
    counts = {t // n for t in steps} | {2**k for k in range(size.passes[n].bit_length())}
    if choice != AS_TAKEN:
        size = replace(size, more_trials={})
        steps, counts = steps[-1:], {steps[-1] // n}
    of = {STABLE: steps, FIXED: steps, DPGD: sorted(counts)}
    tables = [
        method_table(method, settings, size, of[method], seed, **change.get(method, {}))
        for method in of
        if method in change or "setting" in change or not change
    ]
    return pd.concat(tables).assign(choice=choice)


def all_descents(n: int, size: setup.Size, *, seed: int) -> pd.DataFrame:
    """Run all settings of one n.

    Several scales are used only at n = 1000.
    """
    tables = []
    for family in (CLUSTER, HEAVY):
        scales = setup.SCALES[family] if n == 1000 else (setup.MIDDLE[family],)
        settings = [setup.Setting(family, scale, n) for scale in scales]
        tables.append(descents(settings, size, seed=seed))
        if n == 1000 or family == CLUSTER:
            tables.append(descents(settings, size, seed=seed, choice=AROUND_0))
    others = [
        choice
        for choice, change in CHOICES.items()
        if choice != AROUND_0 and (n <= 1000 or "setting" not in change)
    ]
    middle = [setup.Setting(CLUSTER, setup.MIDDLE[CLUSTER], n)]
    tables += [descents(middle, size, seed=seed, choice=choice) for choice in others]
    return pd.concat(tables, ignore_index=True)


def chosen(
    errors: pd.DataFrame, family: str, n: int, scale: float | None = None, choice: str = AS_TAKEN
) -> pd.DataFrame:
    """Return the errors of one setting, by default at the middle scale."""
    where = {"family": family, "n": n, "scale": scale or setup.MIDDLE[family], "choice": choice}
    return errors[(errors[list(where)] == pd.Series(where)).all(axis=1)]


def advantage(
    errors: pd.DataFrame, over: str, eta: str = TUNED, *, among: int | None = None
) -> dict[float, Interval]:
    """Return the error of `over` divided by FixedOrderDPSGD's error, for each number of passes.

    The argument `errors` holds the errors of one setting. By default, the returned intervals hold
    simultaneously. A larger `among` extends this guarantee to `among` intervals in total.
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
    """Return the factors by which `advantage` changes, for all pairs of settings and passes."""
    among = len(advantage(settings[0], over)) * len(settings) * (len(settings) - 1) // 2
    found = [advantage(errors, over, eta, among=among).values() for errors in settings]
    pairs = (zip(one, two, strict=False) for one, two in itertools.combinations(found, 2))
    changed = [quotient(one, two) for pair in pairs for one, two in pair]
    either = [x if x.value >= 1 else x.inverse() for x in changed]
    return [Interval(x.value, max(1.0, x.low), max(x.high, 1 / x.low)) for x in either]


# --- the step size of DPGD ---


def ablation(family: str, scale: float, n: int, *, trials: int, seed: int) -> pd.DataFrame:
    """Run DPGD with both bases of its step size and all multipliers of the paper.

    In one trial, all step sizes use the same data and, for each number of steps, the same noise.
    """
    drawn = setup.problems(setup.Setting(family, scale, n), trials, seed=seed, role="ablation")
    rows = []
    for trial, problem in enumerate(drawn):
        for n_steps, multiplier in itertools.product(setup.ABLATION_STEPS, setup.OF_DPGD):
            for base in (setup.BEST, setup.HSU24):
                rng = generator(seed, "ablation", family, str(scale), n, n_steps, trial)
                (error,) = dpgd_errors(
                    [problem], n_steps, multiplier=multiplier, base=base, rng=rng
                )
                rows.append((family, scale, n, n_steps, base, multiplier, trial, error))
    names = ["family", "scale", "n", "steps", "base", "multiplier", "trial", "error"]
    return pd.DataFrame(rows, columns=names)


# --- time at equal error ---


def wall_clock(errors: pd.DataFrame, *, seed: int) -> dict[str, object]:
    """Time DPGD and FixedOrderDPSGD for the errors of one setting.

    FixedOrderDPSGD takes the number of passes with its smallest error. DPGD takes the smallest
    number of passes whose error is at most FixedOrderDPSGD's smallest error. If all errors of DPGD
    exceed this smallest error, DPGD takes the largest number of passes that was run.
    """
    means = errors[errors.eta == TUNED].groupby(["method", "passes"]).error.mean()
    passes, least = means[FIXED].idxmin(), means[FIXED].min()
    enough = means[DPGD].index[means[DPGD] <= least]
    count = int(enough.min() if len(enough) else means[DPGD].index.max())
    family, scale, n = errors[["family", "scale", "n"]].iloc[0]
    trials = setup.problems(setup.Setting(family, scale, int(n)), 1, seed=seed, role="wall")
    rng, steps = generator(seed, "wall", family, int(n)), round(passes * n)

    def fixed() -> None:
        sgd_errors(FIXED, trials, steps, multipliers=(1.0,), rng=rng)

    fixed_seconds = timeit.repeat(fixed, number=1, repeat=3)
    dpgd_seconds = timeit.repeat(lambda: dpgd_errors(trials, count, rng=rng), number=1, repeat=3)
    return {
        "family": family, "n": int(n), "error": least, "fixed_passes": passes,
        "fixed_seconds": min(fixed_seconds), "dpgd_passes": count,
        "dpgd_seconds": min(dpgd_seconds), "reached": bool(len(enough)),
        "faster": ratio(fixed_seconds, dpgd_seconds),
    }  # fmt: skip
