"""Mutants of `algorithms.common.noise`."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.common import noise


def laplace_half_scale(
    values: ArrayLike, size: int, *, sensitivity: float, epsilon: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Add Laplace noise for half the sensitivity.

    **Mistake** The sensitivity of replacing a user is twice the sensitivity of adding a user. The
    factor 2 is forgotten.

    **Breaks at** values 0 and `sensitivity`. At the event ``output <= 0``, the true epsilon is 2
    epsilon.
    """
    return noise.laplace_mechanism(
        values, size, sensitivity=sensitivity / 2, epsilon=epsilon, rng=rng
    )


def laplace_reused_noise(
    values: ArrayLike, size: int, *, sensitivity: float, epsilon: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Add the same Laplace draw to all k values.

    **Mistake** The noise is drawn once and broadcast over the coordinates.

    **Breaks at** values (0, 0) and (`sensitivity`, 0). At the event ``output[0] - output[1] <
    sensitivity / 2``, the true epsilon is infinite (probabilities 1 and 0).
    """
    exact = np.asarray(values, dtype=float)
    shape = (size,) + (1,) * exact.ndim
    return exact + rng.laplace(scale=sensitivity / epsilon, size=shape)


def gaussian_variance_as_deviation(
    values: ArrayLike, size: int, *, sigma: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Add Gaussian noise of variance `sigma`.

    **Mistake** The library function expects a variance, but receives the standard deviation. If
    sigma is above 1, this mistake reduces the noise.

    **Breaks at** values 0 and 1 with `sigma` = 3.73, which is calibrated for (1, 1e-5). The true
    epsilon(1e-5) is 2.07. The true delta(1) is 0.0085, at the event ``output > 4.23``.
    """
    return noise.gaussian_mechanism(values, size, sigma=math.sqrt(sigma), rng=rng)


def classic_gaussian_sigma_no_log(sensitivity: float, epsilon: float, delta: float) -> float:
    """Return ``sensitivity / epsilon``, for every delta.

    **Mistake** The scale of the Laplace mechanism is used for the Gaussian mechanism.

    **Breaks at** values 0 and 1 with sigma 1, for the claim (1, 1e-5). The true epsilon(1e-5) is
    4.38.
    """
    noise.classic_gaussian_sigma(sensitivity, epsilon, delta)  # refuse what the original refuses
    return sensitivity / epsilon


def discrete_laplace_half_scale(
    values: ArrayLike, size: int, *, sensitivity: int, epsilon: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Add two-sided geometric noise with the ratio exp(-2 epsilon / sensitivity).

    The correct ratio is exp(-epsilon / sensitivity). **Mistake** The factor 2 of a two-sided
    distribution is moved into its rate.

    **Breaks at** values 0 and `sensitivity`. At the event ``output <= 0``, the true epsilon is 2
    epsilon.
    """
    return noise.discrete_laplace_mechanism(
        values, size, sensitivity=sensitivity, epsilon=2 * epsilon, rng=rng
    )


def randomized_response_doubled(
    bits: ArrayLike, size: int, *, epsilon: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Keep every bit with probability e**(2 epsilon) / (1 + e**(2 epsilon)).

    **Mistake** The log-odds are doubled, as if keeping and flipping each had a separate epsilon.

    **Breaks at** bits 1 and 0. At the event ``output == 1``, the true epsilon is 2 epsilon.
    """
    return noise.randomized_response(bits, size, epsilon=2 * epsilon, rng=rng)
