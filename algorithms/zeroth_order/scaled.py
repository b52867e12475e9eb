"""Parameters with derived constants, the least noise that is enough, and the best T."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from algorithms.common import _validate
from algorithms.zeroth_order import accounts
from algorithms.zeroth_order.bounds import stationarity_bound
from algorithms.zeroth_order.plans import Naive, Plan, VarianceReduced
from algorithms.zeroth_order.printed import with_learning_step

COVERS = ("output", "transcript")


def calibrated(
    plan: Plan, dimension: int, *, rho: float, lipschitz: float, covers: str = "output"
) -> Plan:
    """Return a plan with the least noise at which the plan is rho-Gaussian-DP.

    The function applies zeroth_order, Corollary 4.4, with exact constants (`accounts`).

    **Guarantee** rho-Gaussian DP with learners that start at 0. This guarantee implies (alpha,
    alpha rho**2 / 2)-RDP for all alpha > 1. The guarantee covers the output of
    `conversion.private_zeroth_order`. If `covers` is "transcript", the guarantee covers all noisy
    gradients. At d = 1, the covered noisy gradients attain rho.

    Parameters
    ----------
    plan : Plan
        Plan whose sigma is replaced.
    dimension : int
        Dimension d.
    rho, lipschitz : float
        Positive.
    covers : {"output", "transcript"}
        The values that are released.

    Returns
    -------
    Plan
    """
    rho = _validate.positive("rho", rho)
    if covers not in COVERS:
        raise ValueError(f"covers must be one of {', '.join(COVERS)}, got {covers!r}")
    account = accounts.output_gdp if covers == "output" else accounts.transcript_gdp
    unit = replace(plan, oracle=replace(plan.oracle, sigma=1.0))
    sigma = account(unit, dimension, lipschitz) / rho
    return replace(plan, oracle=replace(plan.oracle, sigma=sigma), dimension=dimension,
                   lipschitz=lipschitz)  # fmt: skip


def variance_reduced(
    n_points: int,
    dimension: int,
    *,
    radius: float,
    rho: float,
    lipschitz: float,
    gap: float,
    rounds: int | None = None,
    covers: str = "output",
) -> Plan:
    """Return the plan of Theorem 4.9 with derived noise, and the best T for its bound.

    The values of the theorem are B_1 = T + 1, B_2 = 1, D = delta / T and K = M / (2 T).

    **Guarantee** rho-Gaussian DP, as for `calibrated`. The stationarity at 2 delta is within
    ``bounds.stationarity_bound(plan, ...)``. The total of the bound is within a few per cent of the
    total at the best T.

    **Departs** Theorem 4.9 takes the smaller of two values of T. The first value balances the error
    of the estimates, and the second value balances the noise. One term of the bound grows with T
    and two terms fall with T, so the larger value is correct. This function finds the best T by a
    search. K is rounded down.

    Parameters
    ----------
    n_points, dimension, radius, rho, lipschitz, gap
        As for `printed.theorem_4_9`.
    rounds : int or None, default None
        Number of rounds T, to override the best value.
    covers : {"output", "transcript"}
        Values that must be private.

    Returns
    -------
    Plan
    """
    M = _validate.integer("n_points", n_points, at_least=4)
    d = _validate.integer("dimension", dimension, at_least=1)
    delta = _validate.positive("radius", radius)

    def made(T: int) -> Plan:
        plan = Plan(T, M // (2 * T), delta, delta / T, 1.0, VarianceReduced(T + 1, 1, 0.0))
        plan = calibrated(plan, d, rho=rho, lipschitz=lipschitz, covers=covers)
        return with_learning_step(plan, d, lipschitz=lipschitz, constants="sharp")

    _validate.nonnegative("gap", gap)
    if rounds is not None:
        return made(_at_most("rounds", rounds, M // 2))
    return _best(made, 2, M // 2, d, lipschitz, gap)


def naive(
    n_points: int,
    dimension: int,
    *,
    radius: float,
    rho: float,
    lipschitz: float,
    gap: float,
    rounds: int | None = None,
    batch: int | None = None,
) -> Plan:
    """Return the plan of Appendix E with the best T and B.

    The noise is chosen for the true sensitivity. The plan has D = delta / T, K = M / (B T) and
    sigma = 2 d L / (B rho).

    **Guarantee** rho-Gaussian DP. The stationarity at 2 delta is within
    ``bounds.stationarity_bound(plan, ...)``. The total of the bound is within a few per cent of the
    total at the best T and B.

    **Departs** Appendix E has B = 1 and sigma = d L / (B rho).

    Parameters
    ----------
    n_points, dimension, radius, rho, lipschitz, gap, rounds
        As for `variance_reduced`.
    batch : int or None, default None
        Batch size B, to override the best value.

    Returns
    -------
    Plan
    """
    M = _validate.integer("n_points", n_points, at_least=2)
    d = _validate.integer("dimension", dimension, at_least=1)
    delta = _validate.positive("radius", radius)

    def made(T: int, B: int) -> Plan:
        plan = Plan(T, M // (B * T), delta, delta / T, 1.0, Naive(B, 0.0))
        plan = calibrated(plan, d, rho=rho, lipschitz=lipschitz, covers="transcript")
        return with_learning_step(plan, d, lipschitz=lipschitz, constants="sharp")

    def best_rounds(B: int) -> Plan:
        if rounds is not None:
            return made(rounds, B)
        return _best(lambda T: made(T, B), 1, M // B, d, lipschitz, gap)

    _validate.nonnegative("gap", gap)
    most = M // (1 if rounds is None else _at_most("rounds", rounds, M))
    if batch is not None:
        return best_rounds(_at_most("batch", batch, most))
    plans = [best_rounds(B) for B in _grid(1, max(1, most), 60)]
    return min(plans, key=lambda plan: _total(plan, d, lipschitz, gap))


def vacuity_threshold(
    dimension: int,
    *,
    radius: float,
    rho: float,
    lipschitz: float,
    gap: float,
    constants: str = "sharp",
) -> int:
    """Return the smallest M, to 1 per cent, for which some T makes the bound smaller than L.

    Every point has a stationarity of at most L. So for M below the returned value, the bound gives
    no information for any T.

    Parameters
    ----------
    dimension, radius, rho, lipschitz, gap
        As for `printed.theorem_4_9`.
    constants : {"sharp", "printed"}
        Constants of `bounds.stationarity_bound`. "printed" also uses the sigma of Corollary 4.4.

    Returns
    -------
    int
    """
    d = _validate.integer("dimension", dimension, at_least=1)
    L = _validate.positive("lipschitz", lipschitz)
    delta, rho = _validate.positive("radius", radius), _validate.positive("rho", rho)

    def total(M: float, T: int) -> float:
        sigma = 0.0
        if constants == "printed":
            sigma = math.sqrt(2 * math.log(T)) * 4 * d * L / (T * rho)
        plan = Plan(T, 1, delta, delta / T, 1.0, VarianceReduced(T + 1, 1, sigma))
        if constants != "printed":
            plan = calibrated(plan, d, rho=rho, lipschitz=L)
        plan = with_learning_step(plan, d, lipschitz=L, constants=constants)
        bound = stationarity_bound(plan, d, lipschitz=L, gap=gap, constants=constants)
        return bound.total - bound.optimality * (1 - 2 * T / M)  # K = M / (2 T), not rounded

    low, high = math.log(4.0), math.log(4.0)

    def says_something(log_m: float) -> bool:
        M = math.exp(log_m)
        most = min(M / 2, 2.0**22)
        return any(total(M, T) < L for T in _grid(2, int(most), 200))

    if not says_something(600.0):  # a larger number of items never makes the bound worse
        raise ValueError(
            f"rho must be larger, because no T up to 2**22 is large enough, got {rho!r}"
        )
    while not says_something(high):
        low, high = high, high + math.log(4.0)
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (low, middle) if says_something(middle) else (middle, high)
    return math.ceil(math.exp(high))


def _best(
    made: Callable[[int], Plan], low: int, high: int, dimension: int, lipschitz: float, gap: float
) -> Plan:
    """Return the plan with the smallest bound.

    The values of T are on a grid that is refined around the best T.
    """

    def total(T: int) -> float:
        return _total(made(T), dimension, lipschitz, gap)

    while True:
        grid = _grid(low, high, 25)
        best = min(range(len(grid)), key=lambda i: total(grid[i]))
        if grid[-1] - grid[0] < 25:
            return made(grid[best])
        low, high = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]


def _at_most(name: str, value: int, most: int) -> int:
    """Return a positive integer that is at most the number of items that the data allow."""
    number = _validate.integer(name, value, at_least=1)
    if number > most:
        raise ValueError(f"{name} must be at most {most}, the number of items, got {number}")
    return number


def _total(plan: Plan, dimension: int, lipschitz: float, gap: float) -> float:
    return stationarity_bound(plan, dimension, lipschitz=lipschitz, gap=gap).total


def _grid(low: int, high: int, n: int) -> list[int]:
    """Return about n distinct integers from low to high, in nearly constant ratios."""
    if high <= low:
        return [low]
    return [int(x) for x in np.unique(np.round(np.geomspace(low, high, n)).astype(np.int64))]
