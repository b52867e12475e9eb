"""The method without privacy that the paper compares its rates with."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.zeroth_order.estimators import gradient_estimate, items_of, on_sphere, points_of
from algorithms.zeroth_order.losses import Loss


def gradient_free_descent(
    data: ArrayLike,
    size: int,
    *,
    loss: Loss,
    start: ArrayLike,
    radius: float,
    step: float,
    period: int,
    large_batch: int,
    small_batch: int,
    transcript: bool = False,
    rng: np.random.Generator,
) -> FloatArray:
    """Descend along recursive estimates of the smoothed gradient, in one pass over the items.

    The source is Chen, Xu & Luo (2023), "Faster Gradient-Free Algorithms for Nonsmooth Nonconvex
    Stochastic Optimization" (GFM+).

    **Guarantee** none. The method is not private.

    **Requires** `large_batch` <= M.

    **Departs** (1) The paper draws an item for every estimate. This function takes the items in
    their order, each once, and stops when they are used up. (2) The differences of values are
    clipped as in `gradient_estimate`. (3) The pseudo-code was not at hand. The lines follow the
    program that the authors published. (4) The program stores the previous point after the step,
    so both ends of its differences are equal, and the differences are 0. This function stores the
    previous point before the step, as the recursion of the paper requires. (5) The program
    evaluates all items of a batch along each direction. Here each item has its own direction, as
    in Grad of the audited paper.

    **Symbols** x_0 = `start`, delta = `radius`, eta = `step`, m = `period`, b' = `large_batch` and
    b = `small_batch`.

    Parameters
    ----------
    data : array_like, [M, p] or [M, 1, p]
        Items.
    size : int
        Number of independent draws.
    loss : Loss
    start : array_like, [d]
    radius, step : float
        Positive.
    period : int
        A large batch replaces the estimate in every `period`-th step.
    large_batch, small_batch : int
        Number of items of an estimate, and of a change of the estimate.
    transcript : bool, default False
        Whether to return all points that the output is chosen from.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size, d] or [size, steps, d]
        One of the points x_0, x_1, ... before each step, uniformly at random, or all of them.
    """
    items = items_of(data, loss)
    size, rng = _validate.draws(size), _validate.generator(rng)
    d = loss.dimension(items.shape[1])
    x = points_of("start", start, 1, d)
    radius, step = _validate.positive("radius", radius), _validate.positive("step", step)
    period, large_batch, small_batch = (
        _validate.integer(name, value, at_least=1)
        for name, value in (
            ("period", period), ("large_batch", large_batch), ("small_batch", small_batch),
        )
    )  # fmt: skip
    if len(items) < large_batch:
        raise ValueError(
            f"large_batch must be at most the number of items {len(items)}, got {large_batch}"
        )
    parts = list(_parts(len(items), period, large_batch, small_batch))
    paths = np.empty((size, len(parts), d))
    for path in paths:
        here, v = x[0], np.zeros(d)
        for t, part in enumerate(parts):
            path[t] = here
            u = on_sphere((part.stop - part.start, 1, d), rng)
            ends = [here] if t % period == 0 else [here, path[t - 1]]
            found = [
                gradient_estimate(
                    items[part], 1, loss=loss, radius=radius, point=end, directions=u, rng=rng
                )[0]
                for end in ends
            ]
            v = found[0] if t % period == 0 else v + found[0] - found[1]
            here = here - step * v
    if transcript:
        return paths
    return paths[np.arange(size), rng.integers(len(parts), size=size)]


def _parts(n_items: int, period: int, large_batch: int, small_batch: int) -> Iterator[slice]:
    """Yield the items of each step: a large batch, and then small batches."""
    first = t = 0
    while first + (batch := small_batch if t % period else large_batch) <= n_items:
        yield slice(first, first + batch)
        first, t = first + batch, t + 1
