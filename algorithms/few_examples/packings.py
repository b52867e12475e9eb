"""The codes and hard-to-distinguish distributions of the lower bounds."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._validate import FloatArray, IntArray

MOST_BITS = 16


def greedy_code(length: int, distance: int) -> IntArray:
    """Return a lexicode of binary words that differ pairwise in at least `distance` places.

    The source is few_examples, Theorem 24. The code has at least 2^length / sum_(i < distance)
    C(length, i) words (Gilbert & Varshamov).

    Parameters
    ----------
    length : int
        From 1 to `MOST_BITS`.
    distance : int
        From 1 to `length`.

    Returns
    -------
    ndarray of int64, [W, length]
    """
    length = _validate.integer("length", length, at_least=1)
    distance = _validate.integer("distance", distance, at_least=1)
    if length > MOST_BITS or distance > length:
        raise ValueError(
            f"length must be at most {MOST_BITS}, and distance must be at most length, "
            f"got length = {length} and distance = {distance}"
        )
    words = np.arange(2**length)
    chosen = []
    while words.size:
        chosen.append(words[0])
        words = words[np.bitwise_count(words ^ words[0]) >= distance]
    return (np.array(chosen)[:, None] >> np.arange(length)) & 1


def labelled_packing(code: ArrayLike, bias: float) -> FloatArray:
    """Return distributions of labelled points, where the bits of a word bias the labels.

    The points are uniform. The source is few_examples, lower bound of Theorem 40. The masses are
    D_i((x_l, y)) = (1 + bias (2 1[(u_i)_l = y] - 1)) / (2 d), where `bias` is 4 alpha / kappa.

    Parameters
    ----------
    code : array_like of int, [W, d]
        Words u_i.
    bias : float
        In [0, 1).

    Returns
    -------
    ndarray, [W, d, 2]
        Masses of (x_l, y).
    """
    words, bias = _words(code), _bias(bias)
    agrees = words[:, :, None] == np.arange(2)
    return np.asarray((1 + bias * (2.0 * agrees - 1)) / (2 * words.shape[1]))


def discrete_packing(code: ArrayLike, bias: float) -> FloatArray:
    """Return distributions on k points, where k is twice the length of a word.

    The source is few_examples, lower bound of Theorem 43. The masses are D_i(2l - 1), D_i(2l) = (1
    +- bias 1[(u_i)_l = 0]) / k. In this formula, bias is 8 alpha / kappa, and k is twice the
    length.

    **Departs** The paper prints a factor 1 / (2 k). With this factor, the masses would sum to 1/2.

    Parameters
    ----------
    code : array_like of int, [W, k / 2]
        Words u_i.
    bias : float
        In [0, 1).

    Returns
    -------
    ndarray, [W, k]
    """
    words, bias = _words(code), _bias(bias)
    moved = bias * (words == 0)
    pairs = np.stack([1 + moved, 1 - moved], axis=-1) / (2 * words.shape[1])
    return np.asarray(pairs.reshape(len(words), -1))


def product_packing(code: ArrayLike, bias: float) -> FloatArray:
    """Return product distributions over [k]^d, as the distributions of their d coordinates.

    The source is few_examples, lower bound of Theorem 44, which cites Acharya et al. for a family.

    **Departs** The paper gives no construction. In this function, each coordinate has k/2 pairs of
    symbols, and each bit of a word moves the masses of one pair: D_ij(2l - 1), D_ij(2l) = (1 +-
    bias (2 (u_i)_jl - 1)) / k. With bias = 24 alpha / sqrt(d) and a code whose words differ in an
    eighth of the places, the family is a (3 alpha)-packing. For alpha <= 1/48, its divergences are
    at most 1270 alpha^2.

    Parameters
    ----------
    code : array_like of int, [W, d, k / 2]
        Words u_i, with a row for each coordinate.
    bias : float
        In [0, 1).

    Returns
    -------
    ndarray, [W, d, k]
        Masses of the symbols of each coordinate.
    """
    words = _validate.integers("code", code, ndims=(3,), low=0, high=1)
    moved = _bias(bias) * (2.0 * words - 1)
    pairs = np.stack([1 + moved, 1 - moved], axis=-1) / (2 * words.shape[2])
    return np.asarray(pairs.reshape(*words.shape[:2], -1))


def covariance_packing(code: ArrayLike, spread: float) -> FloatArray:
    """Return covariance matrices of centred Gaussians between I and (1 + 2 spread) I.

    The source is few_examples, lower bound of Theorem 46, which cites Devroye et al. for a family.

    **Departs** The paper gives no construction. In this function, Sigma = (1 + spread) I +
    (spread/d) U, where the bits of a word are the signs of U off the diagonal. By diagonal
    dominance, I <= Sigma <= (1 + 2 spread) I. With spread = 40 alpha, the divergences are at most
    1600 alpha^2. Words that differ in an eighth of the places have a distance d_tv of at least 3
    alpha.

    Parameters
    ----------
    code : array_like of int, [W, d (d - 1) / 2]
        Words, for d >= 2.
    spread : float
        At least 0.

    Returns
    -------
    ndarray, [W, d, d]
    """
    words, spread = _words(code), _validate.nonnegative("spread", spread)
    d = round((1 + math.sqrt(1 + 8 * words.shape[1])) / 2)
    if d * (d - 1) // 2 != words.shape[1]:
        raise ValueError(
            "code must have words of length d (d - 1) / 2 for a dimension d >= 2, got length "
            f"{words.shape[1]}"
        )
    signs = np.zeros((len(words), d, d))
    signs[:, *np.triu_indices(d, 1)] = 2.0 * words - 1
    return np.asarray((1 + spread) * np.eye(d) + spread / d * (signs + signs.swapaxes(1, 2)))


def gaussian_packing(code: ArrayLike, scale: float) -> FloatArray:
    """Return the means of isotropic Gaussians, which are corners of a cube of diameter 2 * scale.

    The source is few_examples, lower bound of Theorem 45.

    **Departs** The packing that the paper cites has means of norm up to O(sqrt(log(1/alpha))). For
    small alpha, a ball of fixed radius R does not contain these means. The means that this function
    returns have the norm `scale`, which is of order alpha.

    Parameters
    ----------
    code : array_like of int, [W, d]
        Words.
    scale : float
        Norm of each mean, at least 0.

    Returns
    -------
    ndarray, [W, d]
    """
    words, scale = _words(code), _validate.nonnegative("scale", scale)
    return np.asarray((2.0 * words - 1) * (scale / math.sqrt(words.shape[1])), dtype=np.float64)


def _words(code: ArrayLike) -> IntArray:
    return _validate.integers("code", code, ndims=(2,), low=0, high=1)


def _bias(bias: float) -> float:
    bias = _validate.nonnegative("bias", bias)
    if bias >= 1:
        raise ValueError(f"bias must be below 1, got {bias!r}")
    return bias
