"""Code that the algorithms of both versions share, for validation, phases and noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.user_level_sco.domains import Domain
from algorithms.user_level_sco.losses import Loss, users_of
from algorithms.user_level_sco.plans import Phase, Plan

BLOCK = 2**16  # largest number of coordinates of gradients that are in memory at once

Averages = Callable[[FloatArray, FloatArray, Phase, int], FloatArray]
"""A function that returns the average iterates ``[size, d]`` of a phase.

The arguments of the function are the users, the starting points ``[1 or size, d]``, the phase and
the size.
"""


def admitted(
    data: Any, loss: Loss, domain: Domain, plan: Plan, norm: str, unsafe: bool
) -> FloatArray:
    """Return the users ``[n, m, p]``, or raise an error if the proof does not cover these users."""
    users = users_of(data, loss)
    if plan.batch_size > len(users):
        raise ValueError(
            f"batch_size must be at most n_users = {len(users)}, got {plan.batch_size}"
        )
    if len(users) < plan.n_users:
        raise ValueError(
            f"data must hold at least {plan.n_users} users, the number in the plan, got "
            f"{len(users)}"
        )
    longest = loss.longest_gradient(users, domain, norm)
    if not longest <= plan.lipschitz * (1 + 1e-12):
        raise ValueError(
            f"lipschitz must be at least {longest!r}, the length of a gradient of these "
            f"data, got {plan.lipschitz!r}. The privacy proof needs gradients of at most "
            "this length."
        )
    if unsafe:
        return users
    smoothness = loss.smoothness(norm)
    if smoothness > plan.smoothness * (1 + 1e-12):
        raise ValueError(
            f"smoothness must be at least {smoothness!r}, got {plan.smoothness!r}. "
            "The loss is less smooth than the plan assumes. Pass unsafe=True to run it anyway."
        )
    for phase in plan.phases:
        if phase.step * smoothness > 2 * (1 + 1e-12):
            raise ValueError(
                f"step must be at most 2 / smoothness = {2 / smoothness!r}, got {phase.step!r}. "
                "Larger steps need not contract. Pass unsafe=True to run it anyway."
            )
    return users


def starting_point(
    start: ArrayLike, loss: Loss, users: FloatArray, domain: Domain, plan: Plan | None = None
) -> FloatArray:
    """Return x_0 as one row, and check the dimension of x_0.

    The point x_0 must be in the domain and must have the dimension of the plan.
    """
    point = _validate.floats("start", start, ndims=(1,))
    dimension = loss.dimension(users.shape[-1])
    if point.size != dimension:
        raise ValueError(f"start must have {dimension} coordinates, got {point.size}")
    if plan is not None and plan.dimension not in (None, dimension):
        raise ValueError(
            f"dimension must be {plan.dimension}, got {dimension}. The plan's noise "
            "was made for another dimension."
        )
    if not np.allclose(domain.project(point[None]), point, rtol=1e-12, atol=0):
        raise ValueError(f"start must be in the domain {domain!r}, got {start!r}")
    return point[None]


def localised(
    users: FloatArray,
    start: FloatArray,
    plan: Plan,
    domain: Domain,
    averages: Averages,
    *,
    last: int,
    size: int,
    project: bool,
    unsafe: bool,
    noise_multiplier: float,
    rng: np.random.Generator,
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield the average iterate and the noisy iterate of phases 1 to `last`, each ``[size, d]``."""
    if not project and last > 1 and not unsafe:
        raise ValueError(
            "project must be True if there are several phases, got False. Outside of the "
            "domain, gradients are not bounded. Pass unsafe=True to run it anyway."
        )
    x = start
    used = 0
    for phase in plan.phases[:last]:
        own = users[used : used + phase.n_users]
        used += phase.n_users
        centers = averages(own, x, phase, size)
        x = centers + rng.normal(scale=noise_multiplier * phase.sigma, size=centers.shape)
        if project:
            x = domain.project(x)
        yield centers, x


def chunks(size: int, per_draw: int) -> Iterator[slice]:
    """Yield slices of the draws that fit in memory.

    Each draw needs `per_draw` numbers.
    """
    block = max(1, BLOCK // per_draw)
    for first in range(0, size, block):
        yield slice(first, min(size, first + block))


def phase_number(phase: int, plan: Plan) -> int:
    """Return the number of a phase, from 1."""
    number = _validate.integer("phase", phase, at_least=1)
    if number > len(plan.phases):
        raise ValueError(f"phase must be at most {len(plan.phases)}, got {phase!r}")
    return number


def finite_parts(loss: Loss, x: FloatArray, users: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the two parts of the users' mean gradients (`Loss.parts`).

    The function refuses NaN and infinity.
    """
    shared, own = loss.parts(x, users)
    if not (np.isfinite(shared).all() and np.isfinite(own).all()):
        raise ValueError("gradients must be finite, got NaN or inf from the loss")
    return shared, own


def finite_gradients(loss: Loss, x: FloatArray, users: FloatArray) -> FloatArray:
    """Return the users' mean gradients ``[S or 1, B, d]``, and refuse NaN and infinity."""
    shared, own = finite_parts(loss, x, users)
    return shared + own
