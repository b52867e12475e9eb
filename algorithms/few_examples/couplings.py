"""The couplings of Lemmas 32 and 33, which give a variable bounded ratios to its mean."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._validate import FloatArray

_LARGEST = 700  # a larger epsilon has no e^epsilon in double precision


def clip_to_mean(values: ArrayLike, probabilities: ArrayLike, *, epsilon: float) -> FloatArray:
    """Clip a variable Z to the range from e^-epsilon to e^epsilon times its mean.

    The source is few_examples, proof of Lemma 33 (the variable Zhat).

    Parameters
    ----------
    values : array_like, [k]
        The values of Z, at least 0.
    probabilities : array_like, [k]
        Their probabilities, which sum to one.
    epsilon : float
        From 0 to 700.

    Returns
    -------
    ndarray, [k]
        The value of Zhat for each value of Z. Its mean need not be the mean of Z.
    """
    z, p, epsilon = _checked(values, probabilities, epsilon)
    mean = p @ z
    return np.clip(z, math.exp(-epsilon) * mean, math.exp(epsilon) * mean)


def adjusted_variable(
    values: ArrayLike, probabilities: ArrayLike, *, epsilon: float, mean: float
) -> FloatArray:
    """Move a variable Z to a variable Z' of a given mean, with bounded ratios to this mean.

    The source is few_examples, proof of Lemma 33. If `mean` is more than a factor e^epsilon away
    from the mean of Z, then Z' is constant. Otherwise, Z is clipped to the range around its own
    mean, and clipped again, from above or from below, until the mean is `mean`.

    **Guarantee** All values of Z' are within e^(2 epsilon) of `mean`. The mean of Z' is `mean`. Let
    Z~ be an independent copy of Z. The mean of abs(Z - Z') is at most abs(E Z - mean) + 2 E[Z -
    e^epsilon Z~]_+. The paper has the larger constant 2 (1 + e^-epsilon).

    Parameters
    ----------
    values, probabilities, epsilon
        As for `clip_to_mean`.
    mean : float
        The mean of Z', at least 0.

    Returns
    -------
    ndarray, [k]
        The value of Z' for each value of Z.
    """
    z, p, epsilon = _checked(values, probabilities, epsilon)
    mean = _validate.nonnegative("mean", mean)
    own, e = p @ z, math.exp(epsilon)
    if not own / e <= mean <= own * e:
        return np.full_like(z, mean)
    hat = np.clip(z, own / e, own * e)
    ends = np.sort(np.r_[hat, own / e, own * e])
    clip = np.minimum if p @ hat >= mean else np.maximum
    end = np.interp(mean, clip(hat, ends[:, None]) @ p, ends)
    return np.asarray(clip(hat, end), dtype=np.float64)


def adjusted_function(
    function: ArrayLike, probabilities: ArrayLike, *, epsilon: float
) -> FloatArray:
    """Change a function of n items such that its consecutive prefix means have bounded ratios.

    The source is few_examples, proof of Lemma 32 (the function g).

    **Departs** The printed loop ends at n - 1. This function ends at n, because g is otherwise not
    defined on whole inputs.

    Parameters
    ----------
    function : array_like, [k, ..., k]
        The values of f, at least 0, with one axis for each item.
    probabilities : array_like, [k]
        Probabilities of the k kinds of items, which sum to one.
    epsilon : float
        From 0 to 700.

    Returns
    -------
    ndarray, [k, ..., k]
        The values of g.
    """
    f = _validate.floats("function", function, ndims=tuple(range(1, 33)))
    p = _validate.floats("probabilities", probabilities, ndims=(1,))
    if set(f.shape) != {p.size}:
        raise ValueError(
            f"function must have {p.size} values along each axis, one for each probability, got "
            f"shape {f.shape}"
        )
    means = [f]
    while means[0].ndim:
        means.insert(0, np.asarray(means[0] @ p))
    g = means[0]
    for mean in means[1:]:
        rows = zip(mean.reshape(-1, p.size), np.ravel(g), strict=True)
        moved = [adjusted_variable(z, p, epsilon=epsilon, mean=float(to)) for z, to in rows]
        g = np.array(moved).reshape(mean.shape)
    return g


def _checked(
    values: ArrayLike, probabilities: ArrayLike, epsilon: float
) -> tuple[FloatArray, FloatArray, float]:
    z = _validate.floats("values", values, ndims=(1,))
    p = _validate.floats("probabilities", probabilities, ndims=(1,))
    if (z < 0).any():
        raise ValueError(f"values must be at least 0, got {z.min()!r}")
    if p.shape != z.shape or (p < 0).any() or abs(p.sum() - 1) > 1e-9:
        raise ValueError(
            f"probabilities must be {z.size} numbers that are at least 0 and sum to one, got {p}"
        )
    epsilon = _validate.nonnegative("epsilon", epsilon)
    if epsilon > _LARGEST:
        raise ValueError(f"epsilon must be at most {_LARGEST}, got {epsilon!r}")
    return z, p, epsilon
