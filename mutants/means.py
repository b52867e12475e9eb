"""Mutants of `algorithms.common.means`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.common.noise import analytic_gaussian_sigma


def clipped_user_mean_item_level(
    data: ArrayLike, size: int, *, clip_norm: float, epsilon: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Calibrate the noise to one replaced item, so that the noise is divided by m.

    **Mistake** The average over all n m items is assumed to move by 2 C / (n m), as if a user owned
    a single item.

    **Breaks at** one user with every item at C, compared with every item at -C. The event is
    ``output`` at or above its left center. At this event, the true epsilon is m epsilon
    (probability 1/2 on the left).
    """
    items = np.asarray(data, dtype=float)
    average = np.clip(items.mean(axis=1), -clip_norm, clip_norm).mean()
    return average + rng.laplace(scale=2 * clip_norm / (items.size * epsilon), size=size)


def clipped_user_mean_add_remove(
    data: ArrayLike, size: int, *, clip_norm: float, epsilon: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Calibrate to a move of C / n.

    **Mistake** A user is assumed to move the average by its norm C, but a replaced user moves the
    average by the diameter 2 C.

    **Breaks at** one user with every item at C, compared with every item at -C. The event is
    ``output`` at or above its left center. At this event, the true epsilon is 2 epsilon
    (probability 1/2 on the left).
    """
    items = np.asarray(data, dtype=float)
    average = np.clip(items.mean(axis=1), -clip_norm, clip_norm).mean()
    return average + rng.laplace(scale=clip_norm / (len(items) * epsilon), size=size)


def user_mean_unclipped(
    data: ArrayLike, size: int, *, clip_norm: float, epsilon: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Average the users' means without clipping.

    **Mistake** The clipping is forgotten. The clipping norm only sets the noise.

    **Breaks at** one user with every item at r C, compared with every item at -r C. The event is
    ``output`` at or above its left center. At this event, the true epsilon is r epsilon, for every
    r (probability 1/2 on the left).
    """
    items = np.asarray(data, dtype=float)
    scale = 2 * clip_norm / (len(items) * epsilon)
    return items.mean(axis=1).mean() + rng.laplace(scale=scale, size=size)


def clipped_user_mean_gaussian_by_coordinate(
    data: ArrayLike,
    size: int,
    *,
    clip_norm: float,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Clip every coordinate to [-C, C] instead of the vector to the ball.

    **Mistake** The sensitivity of one coordinate is used. In L2 norm, the sensitivity is sqrt(d)
    times larger.

    **Breaks at** d = 10 and one user with every coordinate at C, compared with every coordinate at
    -C. The claim is (1, 1e-5). The scaled shift is sqrt(10) times the calibrated shift. The true
    epsilon(1e-5) is 3.62. The true delta(1) is 0.077, at the event that the sum of the coordinates
    is large.
    """
    items = np.asarray(data, dtype=float)
    center = np.clip(items.mean(axis=1), -clip_norm, clip_norm).mean(axis=0)
    sigma = analytic_gaussian_sigma(2 * clip_norm / len(items), epsilon, delta)
    return center + rng.normal(scale=sigma, size=(size, center.size))
