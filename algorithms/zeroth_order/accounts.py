"""Gaussian DP of the oracles and of the whole algorithm, computed from sensitivities.

An item is in one batch of one epoch. Condition on the hidden directions, which do not depend on the
data. Given these directions, the noisy gradients of the epoch are Gaussian. The item moves these
gradients by at most the following amounts (Lemmas 3.1 and 3.2):

- In Algorithm 4, the amount is s_1 = 2 d L / B_1 in round 1. In round t, the amount is s_t = 2 d L
  norm(w_t - w_{t-1}) / (B_2 delta). The item enters through all nodes of the tree that contain t
  (`tree.tree_gdp`).

- In Algorithm 6, the amount is 2 d L / B in the item's own round.

The pair of outputs and directions is mu-GDP. For each value of the directions, the trade-off curve
lies above G_mu. Jensen's inequality applies, because G_mu is convex in alpha. Removing the
directions is post-processing. The s_t of Algorithm 3 are hidden coins too, so the same argument
applies. Later epochs depend only on released values. All values that are computed from released
gradients are at least as private. No step is longer than D, so norm(w_t - w_{t-1}) <= 2 D (Remark
4.1). For t = 2, norm(w_t - w_{t-1}) is at most D if Delta_1 = 0.

mu-Gaussian DP implies (alpha, alpha mu**2 / 2)-RDP for all alpha > 1. The paper uses this measure
and calls its parameter rho.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.common.tree import nodes_of, tree_gdp
from algorithms.zeroth_order.plans import Naive, Plan, VarianceReduced


def path_gdp(
    oracle: VarianceReduced | Naive, *, points: ArrayLike, radius: float, lipschitz: float
) -> float:
    """Return mu of the noisy gradients along a path ``[T, d]`` (`oracles.oracle_gradients`)."""
    path = _validate.floats("points", points, ndims=(2,))
    moves = np.linalg.norm(np.diff(path, axis=0), axis=1)
    s = _sensitivities(oracle, moves, path.shape[1], radius, lipschitz)
    if oracle.sigma == 0:
        return math.inf
    if isinstance(oracle, Naive):
        return float(s.max()) / oracle.sigma
    return tree_gdp(s, oracle.sigma)


def transcript_gdp(plan: Plan, dimension: int, lipschitz: float) -> float:
    """Return mu of all noisy gradients of a run, including the last gradient of each epoch."""
    return _run_gdp(plan, dimension, lipschitz, plan.rounds)


def output_gdp(plan: Plan, dimension: int, lipschitz: float) -> float:
    """Return mu of all noisy gradients except the last gradient of each epoch.

    The output ignores the last gradients. A learner is restarted in each epoch and does not receive
    the epoch's last gradient. At T = 1, nothing depends on the data, and mu is 0.
    """
    return _run_gdp(plan, dimension, lipschitz, plan.rounds - 1)


def epoch_sensitivities(plan: Plan, dimension: int, lipschitz: float) -> FloatArray:
    """Return s_1, ..., s_T, where s_t is the largest change of the estimate of round t.

    The estimate changes if an item of the round changes.
    """
    d = _validate.integer("dimension", dimension, at_least=1)
    moves = np.full(plan.rounds - 1, 2 * plan.domain)
    if plan.first_step_is_zero:
        moves[:1] = plan.domain
    return _sensitivities(plan.oracle, moves, d, plan.radius, lipschitz)


def _run_gdp(plan: Plan, dimension: int, lipschitz: float, rounds: int) -> float:
    for name, planned, given in (
        ("dimension", plan.dimension, _validate.integer("dimension", dimension, at_least=1)),
        ("lipschitz", plan.lipschitz, _validate.positive("lipschitz", lipschitz)),
    ):
        if planned is not None and given > planned:
            raise ValueError(
                f"{name} must be at most {planned!r}, the value in the plan, got {given!r}"
            )
    if not rounds:
        return 0.0
    # From round 3 on, the sensitivities are equal, and no later round is in more nodes than round
    # 3.
    first = replace(plan, rounds=min(plan.rounds, 3))
    s = epoch_sensitivities(first, dimension, lipschitz)
    s = s[: min(rounds, 3)]
    if isinstance(plan.oracle, VarianceReduced):
        s = s * np.sqrt([len(nodes_of(q, rounds)) for q in range(1, len(s) + 1)])
    return float(s.max()) / plan.oracle.sigma if plan.oracle.sigma else math.inf


def _sensitivities(
    oracle: VarianceReduced | Naive, moves: FloatArray, d: int, radius: float, lipschitz: float
) -> FloatArray:
    unit = 2 * d * _validate.positive("lipschitz", lipschitz)
    radius = _validate.positive("radius", radius)
    if isinstance(oracle, Naive):
        return np.full(len(moves) + 1, unit / oracle.batch)
    return np.concatenate([[unit / oracle.first_batch], unit * moves / (oracle.batch * radius)])
