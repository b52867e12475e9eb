"""Oracles of a choice among candidates: randomised response, exponential mechanism, noisy max."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpaudit import _validate
from dpaudit.errors import ArgumentError
from dpaudit.stats.oracles._core import DiscreteOracle, Floats, discrete, same_length, vector
from dpaudit.stats.oracles._quadrature import ORDER, STEEPNESS, on_panels

_STEPS = 760.0  # a double cannot represent e^-760


def randomized_response(epsilon: float) -> DiscreteOracle:
    """Return the oracle of a bit that is flipped with probability ``1 / (1 + e^epsilon)``.

    The bit is 0 on the left input and 1 on the right input.

    The formula is ``delta(eps) = max(0, (e^epsilon - e^eps) / (1 + e^epsilon))``.

    References
    ----------
    .. [1] C. Dwork, A. Roth, "The algorithmic foundations of differential privacy", 2014,
       section 3.2.

    Examples
    --------
    >>> round(randomized_response(1.0).delta(0.0), 12)
    0.46211715726
    """
    epsilon = _validate.nonnegative(epsilon=epsilon)
    keep, flip = float(special.expit(epsilon)), float(special.expit(-epsilon))
    return discrete([keep, flip], [flip, keep])


def exponential_mechanism(
    left_scores: ArrayLike, right_scores: ArrayLike, sensitivity: float, epsilon: float
) -> DiscreteOracle:
    """Return the oracle of the exponential mechanism on two vectors of scores.

    Candidate i is chosen with probability proportional to
    ``exp(epsilon * score_i / (2 * sensitivity))``.

    Parameters
    ----------
    left_scores, right_scores : array_like, shape (k,)
        Scores of the same k candidates on either input. The caller promises that the scores of the
        two sides differ by at most `sensitivity`. This promise is not checked, because oracles are
        also needed for pairs that break it.
    sensitivity, epsilon : float
        Epsilon and sensitivity, finite and > 0.

    References
    ----------
    .. [1] F. McSherry, K. Talwar, "Mechanism design via differential privacy", FOCS 2007.

    Examples
    --------
    >>> oracle = exponential_mechanism([0.0, 1.0], [1.0, 0.0], sensitivity=1.0, epsilon=1.0)
    >>> round(oracle.epsilon(0.0), 12)
    0.5
    """
    left, right, unit = _scores(left_scores, right_scores, sensitivity, epsilon)
    with np.errstate(under="ignore"):
        return discrete(special.softmax(left / unit), special.softmax(right / unit))


def report_noisy_max(
    left_scores: ArrayLike, right_scores: ArrayLike, sensitivity: float, epsilon: float
) -> DiscreteOracle:
    """Return the oracle of the argmax of scores with Laplace noise ``2 * sensitivity / epsilon``.

    With the noise density f and its distribution function F, in units of the noise scale, ``P(i) =
    integral f(x - s_i) prod_{j != i} F(x - s_j) dx``. Below the smallest score, the integral has a
    closed form. Above the largest score, the integrand is a polynomial in ``e^-x``. Between the
    scores, the integral uses Gauss-Legendre panels between the kinks. The relative error is about
    1e-12 on every outcome whose probability a double can hold.

    Parameters
    ----------
    left_scores, right_scores : array_like, shape (k,)
        Scores of the same k candidates on either input, for k <= 1,000.
    sensitivity, epsilon : float
        Epsilon and sensitivity, finite and > 0.

    References
    ----------
    .. [1] C. Dwork, A. Roth, "The algorithmic foundations of differential privacy", 2014, Claim 3.9
       (scale ``1 / epsilon`` for monotone counts, and twice this scale for general scores).

    Examples
    --------
    >>> oracle = report_noisy_max([1.0, 0.0], [0.0, 1.0], sensitivity=1.0, epsilon=1.0)
    >>> round(float(oracle.pmf_left[0]), 12), oracle.epsilon(0.0) < 1.0
    (0.62091833768, True)
    """
    left, right, unit = _scores(left_scores, right_scores, sensitivity, epsilon)
    if left.size > 1_000:
        raise ArgumentError(f"left_scores must have at most 1000 entries, got {left.size}")
    return discrete(_noisy_max(left / unit), _noisy_max(right / unit))


def _scores(
    left_scores: ArrayLike, right_scores: ArrayLike, sensitivity: float, epsilon: float
) -> tuple[Floats, Floats, float]:
    left, right = vector("left_scores", left_scores), vector("right_scores", right_scores)
    same_length("right_scores", right, "left_scores", left)
    unit = 2.0 * _validate.positive(sensitivity=sensitivity) / _validate.positive(epsilon=epsilon)
    return left, right, unit


def _noisy_max(scores: Floats) -> Floats:
    """Return the distribution of the argmax of scores plus standard Laplace noise."""
    k = scores.size
    if k == 1:
        return np.ones(1)
    s = scores - scores.max()
    # Above the largest score, substitute u = e^-x. The integrand becomes a polynomial of degree k -
    # 1 in u.
    u, weights = on_panels(np.linspace(0.0, 1.0, 1 + math.ceil(k / ORDER)))
    scaled = 0.5 * np.exp(s)
    log_others = _log_others(np.log1p(-u[:, None] * scaled))
    with np.errstate(under="ignore"):
        distribution: Floats = scaled * (weights @ np.exp(log_others))
        floor = max(float(s.min()), -_STEPS)
        if s.min() >= -_STEPS:  # Below the smallest score, integrate 2^-k e^(k x - sum s).
            distribution += np.exp(k * (floor - math.log(2.0)) - s.sum()) / k
        if floor < 0.0:
            distribution += _noisy_max_between(s, floor)
    return distribution


def _noisy_max_between(s: Floats, floor: float) -> Floats:
    """Return the part of the distribution in which the noisy maximum is between `floor` and 0."""
    k, width = s.size, STEEPNESS / (s.size + 1)
    kinks = np.unique(np.append(s[s >= floor], floor))
    pieces = [
        np.linspace(a, b, 1 + math.ceil((b - a) / width))[1:] for a, b in itertools.pairwise(kinks)
    ]
    x, weights = on_panels(np.concatenate([[floor], *pieces]))
    distribution = np.zeros(k)
    step = max(1, 250_000 // k)
    for start in range(0, x.size, step):
        y = x[start : start + step, None] - s
        decay = -np.abs(y)
        log_cdf = np.where(y < 0, decay - math.log(2.0), np.log1p(-0.5 * np.exp(decay)))
        terms = np.exp(_log_others(log_cdf) + decay)
        distribution += 0.5 * (weights[start : start + step] @ terms)
    return distribution


def _log_others(log_factors: Floats) -> Floats:
    """Return, for each column, the log of the product of all other columns, without subtracting."""
    before = np.zeros_like(log_factors)
    after = np.zeros_like(log_factors)
    np.cumsum(log_factors[:, :-1], axis=1, out=before[:, 1:])
    after[:, :-1] = np.cumsum(log_factors[:, :0:-1], axis=1)[:, ::-1]
    total: Floats = before + after
    return total
