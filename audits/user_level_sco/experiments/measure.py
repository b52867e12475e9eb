"""Excess risk of both algorithms and the baselines, and the cost and benefit of the filter."""

from __future__ import annotations

import copy
import functools
import math
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from algorithms.common.charging import largest_mu
from algorithms.user_level_sco import baselines, coordinatewise, euclidean, printed, scaled
from algorithms.user_level_sco.domains import Ball, Box
from algorithms.user_level_sco.losses import Linear
from algorithms.user_level_sco.plans import Plan, PlanWarning
from algorithms.user_level_sco.problems import Problem, linear, pulled
from dpaudit.mechanisms import generator

FILTER, ROBUST = "filter (v2)", "robust (v1)"
DPSGD, OUTPUT, PUBLIC = "DP-SGD on users", "output perturbation", "no privacy"
WINSOR, WEIGHTED = "SGD on winsorized means", "SGD on weighted means"
METHODS = (FILTER, ROBUST, DPSGD, WINSOR, WEIGHTED, OUTPUT, PUBLIC)
MEANS = {DPSGD: ("clipped", 32), WINSOR: ("winsorized", 8), WEIGHTED: ("concentrated", 8)}
"""Rule for the mean and number of batches. The last two rules need large batches."""
EPSILON, DELTA, BIAS = 4.0, 1e-3, 0.2
PRINTED_USERS = 12_000_000
SAMPLING, PRIVACY, MANY = "sampling", "privacy", "privacy with many items"
"""The term that dominates the error, and the number of items. `MANY` lets the filter act."""

SIGNALS = {SAMPLING: (1.0, 4.0, 16.0, 64.0)}
SIGNALS |= dict.fromkeys((PRIVACY, MANY), (16.0, 32.0, 64.0, 128.0))
"""Multiples of the term for the size of the gradient of F. The results use the hardest multiple."""

OMITTED = {
    SAMPLING: (WINSOR, WEIGHTED),  # their privacy terms need not be small
    PRIVACY: (ROBUST,),  # its norm of the items is sqrt(d)
    MANY: (ROBUST, OUTPUT),  # users are averages of their items
}


@dataclass(frozen=True)
class Setting:
    """Parameters of one point of an experiment.

    Attributes
    ----------
    n, m, d : int
        Number of users, number of items of each user, and dimension.
    epsilon : float
        Epsilon at delta = 1e-3.
    signal : float
        One of `SIGNALS`.
    term : str
        `SAMPLING`, `PRIVACY` or `MANY`.
    """

    n: int = 32_000
    m: int = 4
    d: int = 4
    epsilon: float = EPSILON
    signal: float = 1.0
    term: str = SAMPLING


@dataclass(frozen=True)
class Grid:
    """Values of the parameters, which vary in turn around one setting."""

    around: Setting
    trials: int
    n: tuple[int, ...]
    m: tuple[int, ...]
    d: tuple[int, ...]
    epsilon: tuple[float, ...]


@dataclass(frozen=True)
class Size:
    """The size of a run."""

    name: str
    trials: int
    n: tuple[int, ...]
    grids: tuple[Grid, ...]


USERS = (8_000, 16_000, 32_000, 64_000, 128_000, 256_000)
QUICK = Size("quick", 3, USERS[:4], (
    Grid(Setting(), 3, USERS[:4], (1, 4, 16), (1, 4, 16), (2.0, 4.0, 8.0)),
    Grid(Setting(16_000, 4, 256, 2.0, term=PRIVACY), 2, USERS[:3], (4, 8, 16), (128, 256, 512),
         (2.0, 3.0, 4.0)),
    Grid(Setting(16_000, 16_384, 64, 2.0, term=MANY), 1, (16_000, 24_000, 32_000),
         (4_096, 16_384, 65_536), (32, 64, 128), (2.0, 3.0, 4.0)),
))  # fmt: skip
FULL = Size("full", 10, USERS, (
    Grid(Setting(), 10, USERS, (1, 2, 4, 8, 16, 32, 64), (1, 2, 4, 8, 16, 32),
         (1.0, 2.0, 4.0, 8.0, 16.0)),
    Grid(Setting(16_000, 4, 1024, 2.0, term=PRIVACY), 3, (8_000, 12_000, 16_000, 24_000, 32_000),
         (4, 6, 8, 12, 16), (256, 512, 1024, 1536, 2048), (1.5, 2.0, 3.0, 4.0, 6.0)),
    Grid(Setting(32_000, 16_384, 256, 2.0, term=MANY), 2,
         (16_000, 24_000, 32_000, 48_000, 64_000), (4_096, 8_192, 16_384, 32_768, 65_536),
         (64, 128, 256, 512), (1.5, 2.0, 3.0, 4.0, 6.0)),
))  # fmt: skip


def problem_of(setting: Setting, method: str) -> Problem:
    """Return linear losses with a small gradient, for which G = 1 and D = 1.

    The function F is linear, so curvature does not help. If sampling dominates, each item is a
    signed unit vector, and G is 1 in both norms. If privacy dominates, see `problems.pulled`.
    """
    if setting.term != SAMPLING:
        term = math.sqrt(setting.d) / (setting.n * setting.epsilon * math.sqrt(setting.m))
        return pulled(Ball(1.0), share=min(0.9, setting.signal * term), dimension=setting.d)
    domain = Box(1.0) if method == ROBUST else Ball(1.0)
    bias = min(0.9, setting.signal * math.sqrt(setting.d / (setting.n * setting.m)))
    return linear(domain, bias=bias, dimension=setting.d)


def shift_of(epsilon: float) -> float:
    """Return the largest mu of a Gaussian mechanism that is (epsilon, delta)-DP."""
    return largest_mu(epsilon, DELTA, calls=0, epsilon0=0.0, epsilon1=0.0)


def users_of(setting: Setting, *, rng: np.random.Generator) -> np.ndarray:
    """Draw users ``[n, m, d]``, or ``[n, 1, d]`` with the averages of many items.

    The mean gradient of a user depends on the average of the items only, because losses are linear.
    """
    problem = problem_of(setting, FILTER)
    if setting.term != MANY:
        return problem.sample(setting.n, setting.m, rng=rng)
    counts = rng.multinomial(setting.m, problem.probabilities, size=setting.n)
    return (counts @ problem.items / setting.m)[:, None]


@functools.cache
def filter_plan(setting: Setting) -> Plan:
    """Return parameters of `scaled`, assuming that honest users are 4 G / sqrt(m) apart."""
    return scaled.scaled_euclidean(
        setting.n, setting.m, setting.d, epsilon=setting.epsilon, delta=DELTA, lipschitz=1.0,
        radius=1.0, filter_share=0.6, cutoff_share=0.2,
    )  # fmt: skip


@functools.cache
def robust_plan(setting: Setting) -> Plan:
    """Return parameters of `scaled`, assuming that honest users are 4 sqrt(log(2 d) / m) apart."""
    return scaled.scaled_coordinatewise(
        setting.n, setting.m, setting.d, epsilon=setting.epsilon, delta=DELTA, lipschitz=1.0,
        radius=1.0,
    )  # fmt: skip


def one_run(method: str, setting: Setting, data: Any, *, rng: np.random.Generator) -> np.ndarray:
    """Run one method and return one answer ``[d]``."""
    problem = problem_of(setting, method)
    options = {"loss": problem.loss, "domain": problem.domain, "start": np.zeros(setting.d)}
    budget = {"epsilon": setting.epsilon, "delta": DELTA}
    n, m, d = setting.n, setting.m, setting.d
    if method == FILTER:
        plan = filter_plan(replace(setting, signal=1.0))
        return euclidean.user_level_sco(data, 1, plan=plan, **options, rng=rng)[0]
    if method == ROBUST:
        plan = robust_plan(replace(setting, signal=1.0))
        return coordinatewise.user_level_sco_linf(data, 1, plan=plan, **options, rng=rng)[0]
    tuned = {**budget, "lipschitz": 1.0, "radius": 1.0}
    if method in MEANS:
        mean, n_batches = MEANS[method]
        chosen = vars(baselines.dp_sgd_parameters(n, m, d, **tuned, mean=mean, n_batches=n_batches))
        return baselines.user_level_dp_sgd(data, 1, **chosen, **options, **budget, rng=rng)[0]
    if method == OUTPUT:
        chosen = vars(baselines.output_perturbation_parameters(n, m, d, **tuned))
        return baselines.output_perturbation(
            data, 1, lipschitz=1.0, **chosen, **options, **budget, rng=rng
        )[0]
    return empirical_minimiser(problem, data)


def empirical_minimiser(problem: Problem, data: np.ndarray) -> np.ndarray:
    """Return the point of the ball with the least average loss -<x, z> over all items."""
    mean = data.mean(axis=(0, 1))
    return problem.domain.radius * mean / max(float(np.linalg.norm(mean)), 1e-300)


def excesses(setting: Setting, trials: int, seed: int, what: str) -> Iterator[dict[str, Any]]:
    """Yield the excess risk of every method in every trial.

    In each trial, all methods use the same data.
    """
    for trial in range(trials):
        rng = generator(seed, "user_level_sco", what, repr(setting), str(trial))
        data = users_of(setting, rng=rng)
        for method in METHODS:
            if method in OMITTED[setting.term]:
                continue
            try:
                found = one_run(method, setting, data, rng=rng)
            except ValueError as error:  # there are fewer users than two batches need
                if "n_users must be at least 2 batch_size" not in str(error):
                    raise
                continue
            problem = problem_of(setting, method)
            inside = problem.domain.project(found[None])
            yield {
                "what": what, **vars(setting), "method": method, "trial": trial,
                "excess": float(problem.excess(inside)[0]),
            }  # fmt: skip


def all_excesses(size: Size, seed: int) -> Iterator[dict[str, Any]]:
    """Yield all excess risks.

    The parameters n, m, d and epsilon vary in turn.
    """
    for grid in size.grids:
        for what in ("n", "m", "d", "epsilon"):
            for value in getattr(grid, what):
                for signal in SIGNALS[grid.around.term]:
                    setting = replace(grid.around, signal=signal, **{what: value})
                    yield from excesses(setting, grid.trials, seed, what)


# --- the filter -----------------------------------------------------------------------------------


def filtered(size: Size, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the number of filtered users, and the excess risk, on data with outliers.

    Each outlier holds the item that pulls the iterate away from the minimiser the most. If data are
    drawn as the papers assume, no user is an outlier.
    """
    setting = Setting(m=64, d=1)
    problem = linear(Ball(1.0), bias=BIAS)
    plan = scaled.scaled_euclidean(
        setting.n, setting.m, 1, epsilon=setting.epsilon, delta=DELTA, lipschitz=1.0, radius=1.0,
        spread=0.4, filter_share=0.6, cutoff_share=0.2,
    )  # fmt: skip
    loose = replace(plan, rule=replace(plan.rule, threshold=1e-9, scale=1e-9))
    for fraction in (0.0, 0.0001, 0.0005, 0.002, 0.01, 0.05):
        for trial in range(size.trials):
            rng = generator(seed, "user_level_sco", "outliers", str(fraction), str(trial))
            data = problem.sample(setting.n, setting.m, rng=rng)
            data = problem.with_outliers(data, fraction, [-1.0], rng=rng)
            options = {"loss": Linear(), "domain": problem.domain, "start": [0.0]}
            phase = generator(seed, "user_level_sco", "outliers", str(fraction), f"{trial}/phase")
            again = copy.deepcopy(phase)  # for the decisions and the result of one phase
            made = euclidean.filter_decisions(data, 1, plan=plan, **options, rng=phase)[0]
            average = euclidean.filtered_sgd(data, 1, plan=plan, **options, rng=again)[0]
            x, y = (
                euclidean.user_level_sco(data, 1, plan=p, **options, rng=rng) for p in (plan, loose)
            )
            yield {
                "fraction": fraction, "trial": trial, "cutoff": plan.rule.cutoff,
                "filtered": int((made == 0).sum()), "halted": bool((average == 0).all()),
                "excess": float(problem.excess(x)[0]),
                "excess without": float(problem.excess(y)[0]),
            }  # fmt: skip


def mixed(size: Size, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the excess risk if each user has a distribution of its own.

    The papers assume that all items are drawn from one distribution. See `Problem.sample`.
    """
    setting = Setting(m=64, signal=16.0)
    problem = problem_of(setting, FILTER)
    plan = filter_plan(replace(setting, signal=1.0))
    options = {"loss": problem.loss, "domain": problem.domain, "start": np.zeros(setting.d)}
    for heterogeneity in (0.0, 0.01, 0.1, 1.0, 10.0):
        for trial in range(size.trials):
            rng = generator(seed, "user_level_sco", "mixed", str(heterogeneity), str(trial))
            data = problem.sample(setting.n, setting.m, heterogeneity=heterogeneity, rng=rng)
            made = euclidean.filter_decisions(data, 1, plan=plan, **options, rng=rng)[0]
            spread = np.linalg.norm(data.mean(axis=1) - data.mean(axis=(0, 1)), axis=1)
            yield {
                "heterogeneity": heterogeneity, "trial": trial,
                "distance from the mean": float(spread.mean()),
                "filtered in phase 1": int((made == 0).sum()),
                **{
                    method: float(problem.excess(one_run(method, setting, data, rng=rng)[None])[0])
                    for method in (FILTER, DPSGD, WINSOR, WEIGHTED, PUBLIC)
                },
            }  # fmt: skip


def counted(size: Size, seed: int) -> Iterator[dict[str, Any]]:
    """Yield how many of the n m gradients are evaluated, how many distances, and the time.

    Each phase evaluates every gradient of its users once. The filter of v2 computes the distances
    between all users of a batch, and v1 those in its test. See footnote 3 of v2.
    """
    settings = [Setting(n=n) for n in size.n]
    settings += [Setting(epsilon=epsilon) for epsilon in (0.5, 1.0, 2.0, 8.0)]
    for setting in settings:
        rng = generator(seed, "user_level_sco", "counted", repr(setting))
        data = users_of(setting, rng=rng)
        for method, plan in ((FILTER, filter_plan(setting)), (ROBUST, robust_plan(setting))):
            steps = sum(phase.n_steps for phase in plan.phases)
            began = time.perf_counter()
            one_run(method, setting, data, rng=rng)
            yield {
                "method": method, "n": setting.n, "epsilon": setting.epsilon,
                "batch": plan.batch_size, "phases": len(plan.phases), "steps": steps,
                "gradients": plan.n_users * setting.m, "of n m": plan.n_users / setting.n,
                "distances": steps * plan.batch_size**2,
                "seconds": time.perf_counter() - began,
            }  # fmt: skip


def at_printed_constants(seed: int, n: int = PRINTED_USERS) -> dict[str, Any]:
    """Run Algorithm 1 once at the constants of Section 3, for d = 1, m = 4 and epsilon = 1."""
    m, delta = 4, 1e-6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlanWarning)  # the table reports that the filter is idle
        plan = printed.euclidean(n, m, 1, epsilon=1.0, delta=delta, lipschitz=1.0, radius=1.0)
    problem = linear(Ball(1.0), bias=BIAS)
    rng = generator(seed, "user_level_sco", "printed")
    data = problem.sample(n, m, rng=rng)
    options = {"loss": problem.loss, "domain": problem.domain, "plan": plan, "start": [0.0]}
    began = time.perf_counter()
    decisions = euclidean.filter_decisions(data, 1, **options, rng=rng)
    found = euclidean.user_level_sco(data, 1, **options, rng=rng)
    return {
        "users": n, "batch": plan.batch_size, "phases": len(plan.phases),
        "steps": sum(phase.n_steps for phase in plan.phases),
        "step of phase 1": f"{plan.phases[0].step:.3g}",
        "noise of phase 1": f"{plan.phases[0].sigma:.3g}",
        "1 / tau": f"{1 / plan.rule.temperature:.3g}",
        "least score / B": f"{plan.least_score / plan.batch_size:.3f}",
        "filtered in phase 1": int((decisions == 0).sum()),
        "excess": f"{float(problem.excess(problem.domain.project(found))[0]):.3g}",
        "seconds": f"{time.perf_counter() - began:.0f}",
    }  # fmt: skip


def least_users() -> Iterator[dict[str, Any]]:
    """Yield the smallest n at which the theorems' parameters are defined, at delta = 1e-6."""
    for epsilon in (0.1, 1.0):
        for m in (1, 2, 10, 100):
            least = printed.euclidean_least_users(m, epsilon, 1e-6)
            size = math.log(least * m)
            yield {
                "epsilon": epsilon, "m": m, "n of Section 3 (v2)": f"{least:,}",
                "defined": "no: log m = 0" if m == 1 else "yes",
                "users that n >= 2 B requires (v1)": f"{_least_of_v1(m, epsilon, 1e-6):,}",
                "m from which the filter can act": math.ceil((10 * math.log(4 / 3) * size) ** 2),
            }  # fmt: skip


def _least_of_v1(m: int, epsilon: float, delta: float) -> int:
    """Return the smallest n with n >= 200 log(m n / delta) / epsilon, at d = 1."""
    n = 1.0
    for _ in range(100):
        n = 200 * math.log(m * n / delta) / epsilon
    return math.ceil(n)
