"""Means over users.

The functions clip the mean of each user, average the clipped means, and add noise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.common.noise import analytic_gaussian_sigma


def clipped_user_mean(
    data: ArrayLike, size: int, *, clip_norm: float, epsilon: float, rng: np.random.Generator
) -> FloatArray:
    """Average the users' clipped means and add Laplace noise calibrated to one replaced user.

    The mechanism is the user-level mean by clipping, in one dimension. The noise has scale ``2 *
    clip_norm / (n_users * epsilon)``.

    **Guarantee** epsilon-DP for REPLACE_USER. A user's clipped mean lies in [-clip_norm,
    clip_norm], so the average moves by at most 2 clip_norm / n_users.

    **Requires** No condition on the data. The number of users is public.

    **Departs** There is no published pseudocode. Each user's mean is clipped. The single items are
    not clipped.

    **Symbols** C = `clip_norm`, n = `data.shape[0]`, m = `data.shape[1]`.

    Parameters
    ----------
    data : array_like, [n_users, m]
        Finite values.
    size : int
        Number of independent draws.
    clip_norm : float
        Positive bound on the absolute value of a user's clipped mean.
    epsilon : float
        Privacy parameter, positive.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size]
    """
    rng = _validate.generator(rng)
    items = _validate.floats("data", data, ndims=(2,))
    clip_norm = _validate.positive("clip_norm", clip_norm)
    epsilon = _validate.positive("epsilon", epsilon)
    center = float(_clipped_average(items[:, :, None], clip_norm)[0])
    scale = _validate.scale(2 * clip_norm / items.shape[0], epsilon)
    return rng.laplace(loc=center, scale=scale, size=_validate.draws(size))


def clipped_user_mean_gaussian(
    data: ArrayLike,
    size: int,
    *,
    clip_norm: float,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Clip the users' means to an L2 ball, average the means, and add calibrated Gaussian noise.

    The mechanism is the user-level mean by clipping, in d dimensions.

    **Guarantee** (epsilon, delta)-DP for REPLACE_USER. A user's clipped mean lies in the ball of
    radius clip_norm, so the average moves by at most 2 clip_norm / n_users in L2 norm. The standard
    deviation is the analytic standard deviation for this sensitivity (Balle & Wang 2018).

    **Requires** No condition on the data. The number of users is public.

    **Departs** There is no published pseudocode. Each user's mean is clipped. The single items are
    not clipped.

    **Symbols** C = `clip_norm`, and (n, m, d) = `data.shape`.

    Parameters
    ----------
    data : array_like, [n_users, m, d]
        Finite values.
    size : int
        Number of independent draws.
    clip_norm : float
        Radius of the L2 ball, positive.
    epsilon : float
        Privacy parameter, positive.
    delta : float
        In (0, 1).
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size, d]
    """
    rng = _validate.generator(rng)
    items = _validate.floats("data", data, ndims=(3,))
    clip_norm = _validate.positive("clip_norm", clip_norm)
    center = _clipped_average(items, clip_norm)
    sigma = analytic_gaussian_sigma(2 * clip_norm / items.shape[0], epsilon, delta)
    return center + rng.normal(scale=sigma, size=(_validate.draws(size), center.size))


def _clipped_average(items: FloatArray, radius: float) -> FloatArray:
    """Return the average ``[d]`` of the users' means, each clipped to the ball."""
    means = (items / items.shape[1]).sum(axis=1)  # divide first, or the sum may overflow
    clipped = clip_to_ball(means, radius)
    return np.asarray((clipped / len(clipped)).sum(axis=0))


def clip_to_ball(means: FloatArray, radius: float) -> FloatArray:
    """Scale rows ``[n_users, d]`` outside of the L2 ball of `radius` back onto the ball."""
    # The rows are divided by the largest coordinate before the norms are computed, so that no
    # square overflows.
    largest = np.abs(means).max(axis=1, keepdims=True)
    directions = means / np.where(largest > 0, largest, 1.0)
    norms = np.linalg.norm(directions, axis=1, keepdims=True)
    limits = radius / np.where(norms > 0, norms, 1.0)
    return np.where(largest > limits, directions * limits, means)
