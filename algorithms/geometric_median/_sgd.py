"""The phases of noisy SGD that StableDPSGD and FixedOrderDPSGD share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._validate import FloatArray, IntArray
from algorithms.geometric_median import _cost, _points
from algorithms.geometric_median.schedule import Schedule

PROJECTIONS = ("all", "first", "none")

_DRAWN = 2**20  # number of indices that are drawn at once


def projection(project: str) -> str:
    """Return the name of the phases that project, if the name is one of `PROJECTIONS`."""
    if project not in PROJECTIONS:
        raise ValueError(f"project must be one of {', '.join(PROJECTIONS)}, got {project!r}")
    return project


def random_rows(n: int, rng: np.random.Generator) -> Callable[[int, int, int], IntArray]:
    """Return a source of independent uniform indices, ``rows(first, length, size)``."""

    def rows(first: int, length: int, size: int) -> IntArray:
        return rng.integers(n, size=(length, size))

    return rows


def fixed_rows(n: int, order: ArrayLike | None) -> Callable[[int, int, int], IntArray]:
    """Return a source of indices in repeated passes over one order."""
    fixed = np.arange(n)
    if order is not None:
        fixed = _validate.integers("order", order, ndims=(1,), low=0, high=n - 1)
        if not np.array_equal(np.sort(fixed), np.arange(n)):
            raise ValueError(f"order must be a permutation of 0 to {n - 1}, got {order!r}")

    def rows(first: int, length: int, size: int) -> IntArray:
        return np.broadcast_to(fixed[np.arange(first, first + length) % n, None], (length, size))

    return rows


def refuse_slow(plan: Schedule, size: int, max_seconds: float) -> None:
    """Refuse `size` runs of a schedule whose estimated time exceeds `max_seconds`."""
    _cost.refuse_slow(
        lambda n_steps: _cost.sgd_seconds(n_steps, plan.dimension, size),
        plan.n_steps, max_seconds, name="n_steps",
        allowed=lambda n_steps: 2 ** ((n_steps + 1).bit_length() - 1) - 1,
    )  # fmt: skip


def run_phases(
    points: FloatArray,
    starts: FloatArray,
    plan: Schedule,
    rows: Callable[[int, int, int], IntArray],
    last: int,
    project: str,
    noise_multiplier: float,
    rng: np.random.Generator,
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Run phases 1 to `last`, and return each phase's average iterate and noise, ``[size, d]``."""
    project = projection(project)
    multiplier = _validate.positive("noise_multiplier", noise_multiplier)
    size = len(starts)
    z = starts
    centers: list[FloatArray] = []
    noise: list[FloatArray] = []
    first = 0
    for k in range(last):  # lines 2-3; k counts from 0
        # lines 4-10: z_0 = xbar in a ball of radius r-hat, then xhat^(k-1) in smaller balls
        origin = z
        projects = project == "all" or (project == "first" and k == 0)
        reach = plan.radii[k] if projects else None
        total = np.zeros_like(z)
        block = max(1, _DRAWN // max(1, size))
        for begin in range(0, plan.lengths[k], block):  # lines 11-14
            length = min(block, plan.lengths[k] - begin)
            for row in rows(first + begin, length, size):
                total += z - origin
                z = advance(z, points[row], plan.steps[k], origin, reach)
        first += plan.lengths[k]
        centers.append(origin + total / plan.lengths[k])  # line 15
        # lines 16-17: xi ~ N(0, sigma^(k)**2 I), xhat = xbar + xi
        noise.append(rng.normal(scale=multiplier * plan.sigmas[k], size=z.shape))
        z = centers[-1] + noise[-1]
    return centers, noise


def advance(
    z: FloatArray, x: FloatArray, step: float, center: FloatArray, radius: float | None
) -> FloatArray:
    """Return the projection of z - step (z - x) / |z - x| onto the ball (lines 12 and 13)."""
    pull, lengths = _points.directed(z - x)
    if lengths.all():
        rates = step / lengths
    else:
        rates = np.divide(step, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    moved = z - rates[..., None] * pull
    if radius is None:
        return moved
    offset = moved - center
    distances = _points.norms(offset)
    outside = distances > radius
    if not outside.any():
        return moved
    shrink = np.divide(radius, distances, out=np.ones_like(distances), where=outside)
    inside = center + shrink[..., None] * offset
    return np.where(outside[..., None], inside, moved)
