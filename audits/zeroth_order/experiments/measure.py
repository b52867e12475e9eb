"""Comparison of both oracles at equal privacy, of methods without noise, and of bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from algorithms.zeroth_order import baselines, bounds, conversion, problems, scaled, stationarity
from algorithms.zeroth_order.plans import Naive, Plan, VarianceReduced
from algorithms.zeroth_order.printed import with_learning_step
from dpaudit.mechanisms import generator

TREE, NAIVE, PUBLIC = "variance-reduced, tree", "naive, best batch", "variance-reduced, no noise"
GFM = "Chen et al. (2023), no noise"
METHODS = (TREE, NAIVE, PUBLIC, GFM)
RADIUS = 0.25
"""delta; stationarity is measured at twice this radius, as in the bound."""

OBJECTIVES = {
    "robust regression": problems.robust_regression,
    "phase retrieval": problems.phase_retrieval,
    "ReLU network": problems.relu_network,
}


@dataclass(frozen=True)
class Setting:
    """One point of an experiment.

    Attributes
    ----------
    objective : str
        One of `OBJECTIVES`.
    d : int
    rho : float
        Exact Gaussian DP parameter of the output, for every oracle.
    n_points : int
        Number of items M.
    """

    objective: str
    d: int = 10
    rho: float = 1.0
    n_points: int = 10_000


@dataclass(frozen=True)
class Size:
    """Extent of a run.

    Attributes
    ----------
    factorial : bool
        Whether all values of d and rho are combined. Otherwise, only d or only rho changes, from d
        = 10 and rho = 1.
    """

    name: str
    trials: int
    n_points: tuple[int, ...]
    d: tuple[int, ...]
    rho: tuple[float, ...]
    epochs: tuple[int, ...]
    rounds: tuple[int, ...]
    factorial: bool


QUICK = Size(
    "quick", 5, (1_000, 10_000, 100_000), (5, 10, 20), (0.5, 1.0, 2.0), (4, 32), (8, 32), False
)
FULL = Size(
    "full", 8, (1_000, 3_000, 10_000, 30_000, 100_000, 300_000), (5, 10, 20), (0.5, 1.0, 2.0),
    (4, 16, 64), (8, 32, 128), True,
)  # fmt: skip
STEPS = (1.0, 4.0)
"""Multiples of the step size that the bound requires."""
DESCENTS = (0.03, 0.1, 0.3, 1.0)
"""Step sizes of the method of Chen et al."""
JUDGED = 32
"""Number of points that are evaluated. The output of this method is a random point of its run."""


@dataclass(frozen=True)
class Descent:
    """Parameters of `baselines.gradient_free_descent`."""

    step: float
    period: int
    large_batch: int
    small_batch: int


def settings_of(size: Size) -> list[Setting]:
    """Return all settings of a size."""
    pairs = [(d, rho) for d in size.d for rho in size.rho]
    if not size.factorial:
        pairs = [(d, rho) for d, rho in pairs if d == 10 or rho == 1.0]
    return [Setting(name, d, rho, M) for name in OBJECTIVES for d, rho in pairs
            for M in size.n_points]  # fmt: skip


def plans_of(method: str, setting: Setting, size: Size) -> Iterator[Plan | Descent]:
    """Yield the plans that are tried, which differ in epochs, rounds and step sizes.

    The batches use all M items.
    """
    d, M = setting.d, setting.n_points
    if method == GFM:
        for step in DESCENTS:
            for period, small in ((1, 10), (1, 100), (8, 10), (8, 100), (32, 10), (32, 100)):
                if small * period <= M:
                    yield Descent(step, period, small * period, small)
        return
    for epochs in size.epochs:
        for rounds in size.rounds:
            batch = M // (epochs * rounds * (1 if method == NAIVE else 2))
            if not batch:
                continue
            oracle = (
                Naive(batch, 0.0)
                if method == NAIVE
                else VarianceReduced(batch * (rounds + 1), batch, 0.0)
            )
            plan = Plan(rounds, epochs, RADIUS, RADIUS / rounds, 1.0, oracle)
            if method != PUBLIC:
                plan = scaled.calibrated(plan, d, rho=setting.rho, lipschitz=1.0)
            plan = with_learning_step(plan, d, lipschitz=1.0, constants="sharp")
            for factor in STEPS:
                yield replace(plan, step=factor * plan.step)


def judged(setting: Setting, found: np.ndarray, *, rng: np.random.Generator) -> dict[str, float]:
    """Return the averages of two values over the points ``[k, d]``.

    The values are the objective, and an upper estimate of stationarity. The algorithm returns one
    of the averages of all epochs, chosen at random. The function evaluates all these averages,
    which averages out the randomness.
    """
    problem = OBJECTIVES[setting.objective](setting.d)
    items = problem.items(1_000, rng=rng)
    estimates = stationarity.stationarity_estimate(
        items, len(found), loss=problem.loss, radius=2 * RADIUS, point=found, n_gradients=48,
        rng=rng,
    )  # fmt: skip
    return {
        "objective": float(problem.loss.values(found[:, None], items).mean()),
        "stationarity": float(estimates.mean()),
    }


def run(
    setting: Setting, plan: Plan | Descent, size: int, *, rng: np.random.Generator
) -> np.ndarray:
    """Return points ``[k, d]`` of `size` runs on fresh items, one of which is the output.

    These points are the averages of all epochs, or points of a descent at equal distances.
    """
    problem = OBJECTIVES[setting.objective](setting.d)
    items = problem.items(setting.n_points, rng=rng)
    given = {"loss": problem.loss, "start": problem.start, "transcript": True, "rng": rng}
    if isinstance(plan, Plan):
        found = conversion.private_zeroth_order(items, size, plan=plan, **given)
    else:
        found = baselines.gradient_free_descent(items, size, radius=RADIUS, **vars(plan), **given)
        steps = found.shape[1]
        found = found[:, np.unique(np.linspace(0, steps - 1, min(steps, JUDGED)).astype(int))]
    return found.reshape(-1, setting.d)


def compared(setting: Setting, size: Size, seed: int) -> list[dict[str, Any]]:
    """Return one row for each method and trial.

    Each method uses the plan with the best objective on other data. The choice is not private. The
    choice favours all methods equally.
    """
    rows = []
    for method in METHODS:
        place = (seed, "zeroth_order", repr(setting), method)
        plans = list(plans_of(method, setting, size))
        tried = []
        for i, plan in enumerate(plans):
            rng = generator(*place, "choice", str(i))
            ends = run(setting, plan, 1, rng=rng)
            tried.append(judged(setting, ends, rng=rng)["objective"])
        best = plans[int(np.argmin(tried))]
        for trial in range(size.trials):
            rng = generator(*place, str(trial))
            found = judged(setting, run(setting, best, 2, rng=rng), rng=rng)
            rows.append(
                {"objective_name": setting.objective, **vars(setting), "method": method,
                 "trial": trial, **found, **_shape(best, setting)}
            )  # fmt: skip
    return rows


def _shape(plan: Plan | Descent, setting: Setting) -> dict[str, float]:
    """Return the rounds, epochs, batch size and noise of a plan.

    For a descent, a round is a step, and an epoch is a period.
    """
    if isinstance(plan, Plan):
        oracle = plan.oracle
        return {"T": plan.rounds, "K": plan.epochs, "batch": oracle.batch, "sigma": oracle.sigma}
    each = plan.large_batch + (plan.period - 1) * plan.small_batch
    return {
        "T": plan.period,
        "K": -(-setting.n_points // each),
        "batch": plan.small_batch,
        "sigma": 0.0,
    }


def promised(d: int, rho: float) -> dict[str, Any]:
    """Return the least M for which the bounds are below L, and ratios of the bounds.

    The parameters are delta = L = F* = 1. The bounds have sharp constants, and each bound has its
    best plan. One column has the printed constants instead.
    """
    given = {"radius": 1.0, "rho": rho, "lipschitz": 1.0, "gap": 1.0}
    row = {
        "d": d, "rho": rho,
        "says something from M": _short(scaled.vacuity_threshold(d, **given)),
        "with printed constants": _short(scaled.vacuity_threshold(d, constants="printed", **given)),
        "naive oracle": _short(_first(lambda M: _bound(scaled.naive, M, d, given) < 1)),
        "noise costs under 10 % from": _short(_first(
            lambda M: _bound(scaled.variance_reduced, M, d, given)
            < 1.1 * _bound(scaled.variance_reduced, M, d, given | {"rho": 1e9})
        )),
    }  # fmt: skip
    for M in (10**6, 10**9, 10**12):
        ratio = _bound(scaled.variance_reduced, M, d, given) / _bound(scaled.naive, M, d, given)
        row[f"tree / naive at {M:.0e}".replace("+", "")] = f"{ratio:.2f}"
    return row


def _bound(make: Callable[..., Plan], n_points: int, d: int, given: dict[str, float]) -> float:
    plan = make(n_points, d, **given)
    return bounds.stationarity_bound(plan, d, lipschitz=1.0, gap=1.0).total


def _first(holds: Callable[[int], bool]) -> int:
    """Return the least M at which a condition holds, to 2 per cent."""
    low, high = 4.0, 64.0
    while not holds(round(high)):
        low, high = high, 16 * high
    while high / low > 1.02:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(round(middle)) else (middle, high)
    return round(high)


def _short(n: int) -> str:
    return f"{float(f'{n:.2g}'):,.0f}"
