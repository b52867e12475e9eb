"""Private selection of one of k options by their scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from algorithms.common import _validate
from algorithms.common._validate import FloatArray, IntArray


def exponential_pmf(scores: ArrayLike, *, sensitivity: float, epsilon: float) -> FloatArray:
    """Return the distribution of `exponential_mechanism`, which is the probability of each option.

    The sources are McSherry & Talwar (2007), and Dwork & Roth (2014), Definition 3.4.

    **Guarantee** A draw from this distribution is epsilon-DP.

    **Requires** that every score moves by at most `sensitivity` between neighbours, in either
    direction.

    **Departs** The only departure is floating point.

    **Symbols** u(x, r) = `scores[r]`, Delta u = `sensitivity`.

    Parameters
    ----------
    scores : array_like, [k]
        Finite scores.
    sensitivity : float
        Largest change of one score, positive.
    epsilon : float
        Privacy parameter, positive.

    Returns
    -------
    ndarray, [k]
        Probabilities proportional to exp(epsilon * scores / (2 * sensitivity)).
    """
    quality = _validate.floats("scores", scores, ndims=(1,))
    half_scale = _validate.scale(
        _validate.positive("sensitivity", sensitivity), _validate.positive("epsilon", epsilon)
    )
    with np.errstate(over="ignore"):  # a gap too large for a float gives probability 0
        exponents = (quality - quality.max()) / (2 * half_scale)
    return np.asarray(softmax(exponents), dtype=np.float64)


def exponential_mechanism(
    scores: ArrayLike, size: int, *, sensitivity: float, epsilon: float, rng: np.random.Generator
) -> IntArray:
    """Choose r with probability proportional to exp(epsilon * scores[r] / (2 * sensitivity)).

    The sources are McSherry & Talwar (2007), and Dwork & Roth (2014), Definition 3.4.

    **Guarantee** epsilon-DP (Dwork & Roth, Theorem 3.10).

    **Requires** that every score moves by at most `sensitivity` between neighbours, in either
    direction.

    **Departs** The option is sampled by inverting the distribution function.

    **Symbols** u(x, r) = `scores[r]`, Delta u = `sensitivity`.

    Parameters
    ----------
    scores : array_like, [k]
        Finite scores.
    size : int
        Number of independent draws.
    sensitivity : float
        Largest change of one score, positive.
    epsilon : float
        Privacy parameter, positive.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of int64, [size]
        Indices into `scores`.
    """
    rng = _validate.generator(rng)
    cumulative = np.cumsum(exponential_pmf(scores, sensitivity=sensitivity, epsilon=epsilon))
    cumulative /= cumulative[-1]
    uniforms = rng.random(_validate.draws(size))
    return np.searchsorted(cumulative, uniforms, side="right").astype(np.int64)


def report_noisy_max(
    scores: ArrayLike, size: int, *, sensitivity: float, epsilon: float, rng: np.random.Generator
) -> IntArray:
    """Add Laplace noise to each score, and return the argmax.

    The scale of the noise is ``2 * sensitivity / epsilon``. The source is Dwork & Roth (2014),
    Section 3.3.

    **Guarantee** epsilon-DP.

    **Requires** that every score moves by at most `sensitivity` between neighbours, in either
    direction.

    **Departs** Dwork & Roth's Claim 3.9 uses noise of scale 1 / epsilon, for counting queries.
    Counting queries are monotone, which means that all scores move in the same direction. In this
    function, scores may move in opposite directions, so the factor 2 is needed.

    **Symbols** Delta = `sensitivity`.

    Parameters
    ----------
    scores : array_like, [k]
        Finite scores.
    size : int
        Number of independent draws.
    sensitivity : float
        Largest change of one score, positive.
    epsilon : float
        Privacy parameter, positive.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of int64, [size]
        Indices into `scores`.
    """
    rng = _validate.generator(rng)
    quality = _validate.floats("scores", scores, ndims=(1,))
    scale = _validate.scale(
        2 * _validate.positive("sensitivity", sensitivity), _validate.positive("epsilon", epsilon)
    )
    noisy = quality + rng.laplace(scale=scale, size=(_validate.draws(size), quality.size))
    return np.asarray(np.argmax(noisy, axis=1), dtype=np.int64)
