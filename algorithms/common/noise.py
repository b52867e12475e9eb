"""Additive noise and randomised response, with the calibration of their scales."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import erfcx, expit, ndtr

from algorithms.common import _validate
from algorithms.common._validate import FloatArray, IntArray

# brentq stops within a few 1e-15 of the root in log sigma. This factor covers the error of brentq
# and the rounding of the profile. So the returned sigma is never too small for the guarantee.
_SIGMA_SAFETY = 1.0 + 1e-9


def laplace_mechanism(
    values: ArrayLike, size: int, *, sensitivity: float, epsilon: float, rng: np.random.Generator
) -> FloatArray:
    """Add Laplace noise of scale ``sensitivity / epsilon`` to every value.

    The sources are Dwork, McSherry, Nissim & Smith (2006), and Dwork & Roth (2014), Definition 3.3.

    **Guarantee** epsilon-DP (Dwork & Roth, Theorem 3.6).

    **Requires** that `values` moves by at most `sensitivity` in L1 norm between neighbours.

    **Departs** The only departure is floating point.

    **Symbols** f(x) = `values`, Delta f = `sensitivity`.

    Parameters
    ----------
    values : array_like, scalar or [k]
        The exact answers, finite.
    size : int
        Number of independent draws.
    sensitivity : float
        L1 sensitivity, positive.
    epsilon : float
        Privacy parameter, positive.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size] for a scalar, [size, k] for a vector
    """
    rng = _validate.generator(rng)
    exact = _validate.floats("values", values, ndims=(0, 1))
    scale = _validate.scale(
        _validate.positive("sensitivity", sensitivity), _validate.positive("epsilon", epsilon)
    )
    return exact + rng.laplace(scale=scale, size=(_validate.draws(size), *exact.shape))


def bounded_laplace_mechanism(
    values: ArrayLike,
    size: int,
    *,
    sensitivity: float,
    epsilon: float,
    delta: float,
    noise_multiplier: float = 1.0,
    rng: np.random.Generator,
) -> FloatArray:
    """Add Laplace noise of scale lambda, conditioned on an absolute value of at most a bound tau.

    The source is geometric_median, Fact 3, after Asi, Liu & Tian (2024), Lemma 9. In the paper,
    lambda = Delta / epsilon and tau = lambda log(4 / delta).

    **Guarantee** (epsilon, delta)-DP for epsilon <= 1 (Fact 3), for one value. Only outputs at the
    edge of the support violate pure epsilon-DP. Outputs within Delta of the left endpoint of one
    support lie outside of the other support. At all other outputs, the densities stay within a
    factor e**epsilon.

    So the exact delta is the probability of the interval of length Delta at one endpoint
    (`bounded_laplace_delta`). For Delta <= tau, the exact delta is ``(delta / 4) (e**epsilon - 1) /
    (2 (1 - delta / 4))``. At epsilon = 1, the exact delta is about a fifth of delta. If delta <=
    1/2, the exact delta exceeds delta for epsilon > log(9 - 2 delta). So Fact 3 fails for these
    epsilon. If delta > 1/2, Fact 3 fails above a somewhat larger epsilon.

    **Requires** that the value moves by at most `sensitivity` between neighbours. If the input is a
    vector of k values that moves by at most `sensitivity` in L1 norm, the guarantee is (epsilon, k
    delta)-DP.

    **Departs** (1) An epsilon above 1 is allowed. For an epsilon above 1, the guarantee uses the
    exact delta instead of Fact 3. (2) The noise is drawn by inverting the distribution function of
    the noise, which is exact up to rounding. In exact arithmetic, the value tau has probability 0,
    but this function may draw the value tau.
    (3) `noise_multiplier` is not in the paper. `noise_multiplier` multiplies lambda and tau. If
    `noise_multiplier` is below 1, no privacy is guaranteed.

    **Symbols** s(D) = `values`, Delta = `sensitivity`, lambda = `sensitivity` / `epsilon`.

    Parameters
    ----------
    values : array_like, scalar or [k]
        The exact answers, finite.
    size : int
        Number of independent draws.
    sensitivity : float
        Largest change of the value, positive.
    epsilon : float
        Privacy parameter, positive.
    delta : float
        In (0, 1).
    noise_multiplier : float, default 1
        Factor on the scale and on the bound of the noise, positive.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size] for a scalar, [size, k] for a vector
    """
    rng = _validate.generator(rng)
    exact = _validate.floats("values", values, ndims=(0, 1))
    sensitivity = _validate.positive("sensitivity", sensitivity)
    multiplier = _validate.positive("noise_multiplier", noise_multiplier)
    scale = _validate.scale(sensitivity * multiplier, _validate.positive("epsilon", epsilon))
    tail = _validate.probability("delta", delta) / 4  # e**(-tau / lambda)
    shape = (_validate.draws(size), *exact.shape)
    signs = 1.0 - 2.0 * rng.integers(2, size=shape)
    lengths = -scale * np.log1p(-rng.random(shape) * (1.0 - tail))
    return exact + signs * np.minimum(lengths, -scale * math.log(tail))


def bounded_laplace_delta(epsilon: float, bound: float) -> float:
    """Return the exact delta, at `epsilon`, of Laplace noise that is conditioned on a bound.

    **Guarantee** Let noise of scale Delta / epsilon be conditioned on an absolute value of at most
    tau. This noise is (epsilon, delta)-DP for the returned delta, but not for any smaller delta. At
    shift Delta, the ratio of the densities is at most e**epsilon where both densities are positive.
    So the hockey-stick divergence is the mass that leaves the support, P(X < Delta - tau).

    **Requires** Nothing.

    **Departs** geometric_median, Fact 3, states only an upper bound.

    **Symbols** tau = `bound` times Delta / `epsilon`. Fact 3 has `bound` = log(4 / delta).

    Parameters
    ----------
    epsilon : float
        Positive.
    bound : float
        Bound in units of the scale of the noise, positive.

    Returns
    -------
    float

    Examples
    --------
    >>> round(bounded_laplace_delta(1.0, math.log(4 / 1e-6)) / 1e-6, 4)
    0.2148
    """
    epsilon = _validate.positive("epsilon", epsilon)
    bound = _validate.positive("bound", bound)
    if epsilon >= 2 * bound:  # the supports do not meet
        return 1.0
    if epsilon <= bound:
        edge = math.exp(epsilon - bound) * -math.expm1(-epsilon)  # e**-bound (e**epsilon - 1)
        return edge / (2 * -math.expm1(-bound))
    return 0.5 + math.expm1(bound - epsilon) / (2 * math.expm1(-bound))


def gaussian_mechanism(
    values: ArrayLike, size: int, *, sigma: float, rng: np.random.Generator
) -> FloatArray:
    """Add Gaussian noise of standard deviation `sigma` to every value.

    The source is Dwork & Roth (2014), Appendix A.

    **Guarantee** (epsilon, delta)-DP with `sigma` from `analytic_gaussian_sigma` (any epsilon) or
    `classic_gaussian_sigma` (epsilon at most 1). The noise is also Delta**2 / (2 sigma**2)-zCDP and
    Delta / sigma-Gaussian DP.

    **Requires** that `values` moves by at most Delta in L2 norm between neighbours. Delta is the
    sensitivity for which `sigma` was calibrated.

    **Departs** The only departure is floating point.

    **Symbols** f(x) = `values`. The argument `sigma` is the standard deviation, not the variance.

    Parameters
    ----------
    values : array_like, scalar or [k]
        The exact answers, finite.
    size : int
        Number of independent draws.
    sigma : float
        Standard deviation of the noise, positive.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size] for a scalar, [size, k] for a vector
    """
    rng = _validate.generator(rng)
    exact = _validate.floats("values", values, ndims=(0, 1))
    deviation = _validate.positive("sigma", sigma)
    return exact + rng.normal(scale=deviation, size=(_validate.draws(size), *exact.shape))


def classic_gaussian_sigma(sensitivity: float, epsilon: float, delta: float) -> float:
    """Return the textbook sigma, ``sensitivity * sqrt(2 ln(1.25 / delta)) / epsilon``.

    The sources are Dwork & Roth (2014), Theorem A.1, and user_level_sco v2, Proposition 16.

    **Guarantee** Gaussian noise of this standard deviation is (epsilon, delta)-DP.

    **Requires** L2 sensitivity at most `sensitivity` and epsilon at most 1. The proof uses epsilon
    <= 1. Larger values are refused, because the statement itself fails for large epsilon.

    **Departs** Dwork & Roth require epsilon in (0, 1). This function also allows epsilon = 1, as in
    Proposition 16.

    **Symbols** Delta_2 f = `sensitivity`.

    Parameters
    ----------
    sensitivity : float
        L2 sensitivity, positive.
    epsilon : float
        In (0, 1].
    delta : float
        In (0, 1).

    Returns
    -------
    float
    """
    sensitivity = _validate.positive("sensitivity", sensitivity)
    delta = _validate.probability("delta", delta)
    if _validate.positive("epsilon", epsilon) > 1:
        raise ValueError(
            f"epsilon must be at most 1, got {epsilon!r}. The classic calibration is not proved "
            "above 1. Use analytic_gaussian_sigma for larger values."
        )
    return _validate.scale(sensitivity * math.sqrt(2 * math.log(1.25 / delta)), epsilon)


def analytic_gaussian_sigma(sensitivity: float, epsilon: float, delta: float) -> float:
    """Return the smallest sigma at which Gaussian noise is (epsilon, delta)-DP.

    The source is Balle & Wang (2018), Theorem 8. The function finds the root of the exact privacy
    profile numerically.

    **Guarantee** Gaussian noise of this standard deviation is (epsilon, delta)-DP.

    **Requires** L2 sensitivity at most `sensitivity`.

    **Departs** Balle & Wang's Algorithm 1 splits the search by the sign of their alpha. This
    function finds the same root by one bracketed search. The search is over log sigma and uses the
    log of the profile. The root is increased by one part in 1e9, so that rounding never makes sigma
    too small.

    **Symbols** Delta = `sensitivity`.

    Parameters
    ----------
    sensitivity : float
        L2 sensitivity, positive.
    epsilon : float
        Positive.
    delta : float
        In (0, 1).

    Returns
    -------
    float
    """
    sensitivity = _validate.positive("sensitivity", sensitivity)
    epsilon = _validate.positive("epsilon", epsilon)
    target = math.log(_validate.probability("delta", delta))

    def excess(log_sigma: float) -> float:
        return _log_gaussian_delta(math.exp(log_sigma), epsilon) - target

    low, high = -1.0, 1.0  # the profile decreases as sigma grows
    while excess(low) < 0:
        low -= 1.0
    while excess(high) > 0:
        high += 1.0
    root = brentq(excess, low, high, xtol=1e-14, rtol=1e-14)
    return _validate.scale(sensitivity * math.exp(root) * _SIGMA_SAFETY, 1.0)


def _log_gaussian_delta(sigma: float, epsilon: float) -> float:
    """Return log delta(epsilon) of Gaussian noise at sensitivity 1, by Mills ratios.

    The formula is delta = Phi(a) - e**epsilon Phi(b), where a = 1/(2 sigma) - epsilon sigma and b =
    -1/(2 sigma) - epsilon sigma. The normal densities satisfy phi(a) = e**epsilon phi(b). So delta
    = phi(a) (R(-a) - R(-b)), where R(x) = (1 - Phi(x)) / phi(x). This form neither underflows nor
    cancels badly.
    """
    upper = 0.5 / sigma - epsilon * sigma
    lower = -0.5 / sigma - epsilon * sigma
    log_density = -0.5 * upper * upper - 0.5 * math.log(2 * math.pi)
    mills_lower = _mills(-lower)
    if upper > 0:
        return math.log(float(ndtr(upper)) - math.exp(log_density) * mills_lower)
    difference = _mills(-upper) - mills_lower
    return log_density + math.log(difference) if difference > 0 else -math.inf


def _mills(x: float) -> float:
    return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))


def discrete_laplace_mechanism(
    values: ArrayLike, size: int, *, sensitivity: int, epsilon: float, rng: np.random.Generator
) -> IntArray:
    """Add two-sided geometric noise, P(z) proportional to exp(-epsilon |z| / sensitivity).

    The source is Ghosh, Roughgarden & Sundararajan (2009).

    **Guarantee** epsilon-DP.

    **Requires** that `values` moves by at most `sensitivity` in L1 norm between neighbours.

    **Departs** The noise is the difference of two geometric draws. ``epsilon / sensitivity`` must
    be at least 1e-9, so that the noise and the sum fit in 64 bits. If this ratio is above about 36,
    the true probability of nonzero noise is below 1e-15, and nonzero noise may never be drawn in
    floating point.

    **Symbols** alpha = exp(-`epsilon` / `sensitivity`).

    Parameters
    ----------
    values : array_like of int, scalar or [k]
        The exact answers, at most 2**53 in absolute value.
    size : int
        Number of independent draws.
    sensitivity : int
        L1 sensitivity, at least 1.
    epsilon : float
        Privacy parameter, positive.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of int64, [size] for a scalar, [size, k] for a vector
    """
    rng = _validate.generator(rng)
    exact = _validate.integers("values", values, ndims=(0, 1))
    sensitivity = _validate.integer("sensitivity", sensitivity, at_least=1)
    rate = _validate.positive("epsilon", epsilon) / sensitivity
    if rate < 1e-9:
        raise ValueError(
            f"epsilon / sensitivity must be at least 1e-9, got {epsilon!r} / {sensitivity!r}"
        )
    shape = (_validate.draws(size), *exact.shape)
    success = -math.expm1(-rate)
    return exact + (rng.geometric(success, size=shape) - rng.geometric(success, size=shape))


def randomized_response(
    bits: ArrayLike, size: int, *, epsilon: float, rng: np.random.Generator
) -> IntArray:
    """Report each bit truthfully with probability e**epsilon / (1 + e**epsilon).

    Otherwise, the bit is flipped. The source is Warner (1965). Dwork & Roth (2014), Section 3.2,
    describe randomised response. The probabilities in this function give epsilon-DP.

    **Guarantee** epsilon-DP for neighbours that differ in one bit (local DP for the owner of the
    bit).

    **Requires** that every user owns one bit. For a user who owns k bits, the guarantee is k
    epsilon.

    **Departs** The only departure is floating point.

    **Symbols** x = `bits`.

    Parameters
    ----------
    bits : array_like of int, scalar or [k]
        Values 0 and 1.
    size : int
        Number of independent draws.
    epsilon : float
        Privacy parameter, positive.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of int64, [size] for a scalar, [size, k] for a vector
        Values 0 and 1.
    """
    rng = _validate.generator(rng)
    truth = _validate.integers("bits", bits, ndims=(0, 1), low=0, high=1)
    kept = float(expit(_validate.positive("epsilon", epsilon)))
    flipped = rng.random((_validate.draws(size), *truth.shape)) >= kept
    return truth ^ flipped.astype(np.int64)
