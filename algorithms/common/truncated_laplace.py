"""Shifted and truncated discrete Laplace noise, which is never negative and has a known range."""

from __future__ import annotations

import math

import numpy as np

from algorithms.common import _validate
from algorithms.common._validate import FloatArray, IntArray

_LARGEST_RANGE = 10**7


def truncation(epsilon: float, delta: float) -> int:
    """Return kappa = 1 + ceil(ln(1/delta) / epsilon), the middle of the range of the noise.

    The source is few_examples, Definition 8.

    **Departs** The paper's "any epsilon, delta > 0" includes delta > 1. If delta exceeds 1, kappa
    may be below 1, and kappa is negative for large delta. In this function, delta lies in (0, 1),
    so that kappa >= 2.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1).

    Returns
    -------
    int
    """
    epsilon, delta = _validate.positive("epsilon", epsilon), _validate.probability("delta", delta)
    reach = -math.log(delta) / epsilon
    if reach > _LARGEST_RANGE:
        raise ValueError(
            f"ln(1/delta) / epsilon must be at most {_LARGEST_RANGE}, got {reach:.3g} for "
            f"epsilon = {epsilon!r} and delta = {delta!r}"
        )
    return 1 + max(1, math.ceil(reach))


def truncated_laplace_pmf(epsilon: float, delta: float) -> FloatArray:
    """Return the distribution of TDLap, as the probabilities of 0, ..., 2 kappa.

    The source is few_examples, Definition 8 (Shifted Truncated Discrete Laplace).

    **Guarantee** The probabilities of adjacent values differ by a factor of at most exp(epsilon).
    The probabilities of 0 and of 2 kappa are at most delta. So a count that moves by 1 between
    neighbours is (epsilon, delta)-DP after this noise has been added.

    **Departs** Nothing.

    **Symbols** kappa = `truncation(epsilon, delta)`.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1).

    Returns
    -------
    ndarray, [2 * kappa + 1]
        Proportional to exp(-epsilon * abs(x - kappa)).
    """
    kappa = truncation(epsilon, delta)
    weights = np.exp(-epsilon * np.abs(np.arange(-kappa, kappa + 1)))
    return np.asarray(weights / weights.sum())


def truncated_laplace(
    size: int, *, epsilon: float, delta: float, rng: np.random.Generator
) -> IntArray:
    """Draw from TDLap (few_examples, Definition 8).

    **Guarantee**, **Departs**, **Symbols** see `truncated_laplace_pmf`.

    Parameters
    ----------
    size : int
        Number of independent draws.
    epsilon : float
        Positive.
    delta : float
        In (0, 1).
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of int64, [size]
        In 0, ..., 2 kappa.
    """
    rng = _validate.generator(rng)
    pmf = truncated_laplace_pmf(epsilon, delta)
    return rng.choice(pmf.size, size=_validate.draws(size), p=pmf)
