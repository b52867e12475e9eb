"""The parameters that the paper prints, for all inputs at which these parameters are defined."""

from __future__ import annotations

import math
from dataclasses import replace

from algorithms.common import _validate
from algorithms.zeroth_order import bounds
from algorithms.zeroth_order.plans import Naive, Plan, VarianceReduced


def corollary_4_4_sigma(
    rounds: int, batch: int, dimension: int, *, rho: float, lipschitz: float
) -> float:
    """Return sigma = sqrt(2 ln T) 4 d L / (B_2 T rho) of zeroth_order, Corollary 4.4.

    **Guarantee** With B_1 >= T B_2 / 2 and D = delta / T, the output of Algorithm 3 is (alpha,
    alpha rho**2 / 2)-RDP. All noisy gradients together have this guarantee for T = 3 and T >= 5. At
    T = 2, the parameter of all noisy gradients is up to 1.2011 rho. At T = 4, this parameter is up
    to 1.0402 rho (audits/zeroth_order).

    Parameters
    ----------
    rounds : int
        Number of rounds T, at least 2. At T = 1, the printed noise is 0.
    batch : int
        Batch size B_2.
    dimension : int
        Dimension d.
    rho, lipschitz : float
        Positive values of rho and L.

    Returns
    -------
    float
    """
    T = _validate.integer("rounds", rounds, at_least=1)
    if T == 1:
        raise ValueError(
            "rounds must be at least 2, got 1. For T = 1, the noise scale sqrt(2 ln T) is 0."
        )
    B = _validate.integer("batch", batch, at_least=1)
    d = _validate.integer("dimension", dimension, at_least=1)
    L = _validate.positive("lipschitz", lipschitz)
    return math.sqrt(2 * math.log(T)) * 4 * d * L / (B * T * _validate.positive("rho", rho))


def theorem_4_9(
    n_points: int, dimension: int, *, radius: float, rho: float, lipschitz: float, gap: float
) -> Plan:
    """Return the parameters of zeroth_order, Theorem 4.9.

    The parameters are

    | B_1 = T + 1, B_2 = 1, D = delta / T, K = M / (2 T), sigma as in Corollary 4.4, and
    | T = min{(sqrt(d) L delta M / (F* + L delta))^(2/3),
    | (d^(3/2) L delta M / ((F* + L delta) rho))^(1/2)}.

    **Guarantee** (alpha, alpha rho**2 / 2)-RDP of the output. The rate that the theorem claims is
    not reached, because min should be max (see `scaled.variance_reduced`).

    **Departs** (1) T and K are rounded down. (2) The paper does not print eta. In this function,
    eta is D / (sqrt(T) G), where G**2 is the bound on E norm(g~)**2 in the proof.

    **Symbols** M = `n_points`, F* = `gap`, delta = `radius`.

    Parameters
    ----------
    n_points, dimension : int
        The numbers M and d.
    radius, rho, lipschitz, gap : float
        Positive values of delta, rho, L and F*.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        If M is too small for T >= 2 and K >= 1.
    """
    M = _validate.integer("n_points", n_points, at_least=1)
    d, delta, rho, L, gain = _problem(dimension, radius, rho, lipschitz, gap)
    balance = L * delta * M / gain
    T = _rounds(
        min((math.sqrt(d) * balance) ** (2 / 3), math.sqrt(d**1.5 * balance / rho)), 2, M // 2
    )
    sigma = corollary_4_4_sigma(T, 1, d, rho=rho, lipschitz=L)
    plan = Plan(T, M // (2 * T), delta, delta / T, 1.0, VarianceReduced(T + 1, 1, sigma), d, L)
    return with_learning_step(plan, d, lipschitz=L, constants="printed")


def appendix_e(
    n_points: int, dimension: int, *, radius: float, rho: float, lipschitz: float, gap: float
) -> Plan:
    """Return the parameters of the naive oracle, zeroth_order, Appendix E.

    The parameters are

    | B = 1, K = M / T, D = delta / T, sigma = d L / (B rho), and
    | T = min{(sqrt(d) L delta M / (F* + L delta))^(2/3),
    | (d^(3/2) L delta M / ((F* + L delta) rho))^(2/3)}.

    **Guarantee** At the given rho, we prove no guarantee. The sensitivity is 2 d L / B, so the
    output is (alpha, alpha (2 rho)**2 / 2)-RDP. As in Theorem 4.9, min should be max. The batch
    size B = 1 is not the best (`scaled.naive`).

    **Departs** in the same way as `theorem_4_9`.

    Parameters
    ----------
    n_points, dimension, radius, rho, lipschitz, gap
        As for `theorem_4_9`.

    Returns
    -------
    Plan
    """
    M = _validate.integer("n_points", n_points, at_least=1)
    d, delta, rho, L, gain = _problem(dimension, radius, rho, lipschitz, gap)
    balance = L * delta * M / gain
    T = _rounds(min(math.sqrt(d) * balance, d**1.5 * balance / rho) ** (2 / 3), 1, M)
    plan = Plan(T, M // T, delta, delta / T, 1.0, Naive(1, d * L / rho), d, L)
    return with_learning_step(plan, d, lipschitz=L, constants="printed")


def with_learning_step(plan: Plan, dimension: int, *, lipschitz: float, constants: str) -> Plan:
    """Return the plan with eta tuned to the bound on the noisy gradients of the plan."""
    moment = bounds.gradient_moment(plan, dimension, lipschitz=lipschitz, constants=constants)
    return replace(plan, step=bounds.learning_step(plan.domain, plan.rounds, moment))


def _problem(
    dimension: int, radius: float, rho: float, lipschitz: float, gap: float
) -> tuple[int, float, float, float, float]:
    """Return d, delta, rho, L and F* + L delta."""
    d = _validate.integer("dimension", dimension, at_least=1)
    delta = _validate.positive("radius", radius)
    rho = _validate.positive("rho", rho)
    L = _validate.positive("lipschitz", lipschitz)
    return d, delta, rho, L, _validate.positive("gap", gap) + L * delta


def _rounds(printed: float, least: int, most: int) -> int:
    T = math.floor(printed)
    if not least <= T <= most:
        raise ValueError(
            f"n_points must be larger: T >= {least} and K >= 1 must hold, got T = "
            f"{printed:.3g}. K >= 1 requires T <= {most}."
        )
    return T
