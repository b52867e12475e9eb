"""Tests of noise.

The tests cover exact calibrations, the distributions of the draws, and the leaks of the mutants.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from algorithms.common import noise
from mutants import noise as mutants
from tests.algorithms import distributions
from tests.statistical import assert_distribution, assert_frequencies


def gaussian_delta(shift: float, sigma: float, epsilon: float) -> float:
    """Return the profile of Balle & Wang in 60 digits, written independently of the package."""
    with mpmath.workdps(60):
        a = mpmath.mpf(shift) / (2 * mpmath.mpf(sigma))
        b = mpmath.mpf(epsilon) * mpmath.mpf(sigma) / mpmath.mpf(shift)
        return float(mpmath.ncdf(a - b) - mpmath.e**epsilon * mpmath.ncdf(-a - b))


def gaussian_epsilon(shift: float, sigma: float, delta: float) -> float:
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if gaussian_delta(shift, sigma, middle) > delta else (low, middle)
        )
    return low


def geometric_pmf(z: np.ndarray, rate: float) -> np.ndarray:
    alpha = math.exp(-rate)
    return (1 - alpha) / (1 + alpha) * alpha ** np.abs(z)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1, 0.9])
def test_analytic_sigma_meets_the_profile_exactly(epsilon: float, delta: float) -> None:
    sigma = noise.analytic_gaussian_sigma(3.0, epsilon, delta)
    assert gaussian_delta(3.0, sigma, epsilon) <= delta
    assert gaussian_delta(3.0, sigma * (1 - 1e-8), epsilon) > delta


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    sensitivity=st.floats(1e-3, 1e3),
    epsilon=st.floats(0.01, 20),
    log_delta=st.floats(math.log(1e-12), -1e-3),
)
def test_analytic_sigma_is_private_and_tight(
    sensitivity: float, epsilon: float, log_delta: float
) -> None:
    delta = math.exp(log_delta)
    sigma = noise.analytic_gaussian_sigma(sensitivity, epsilon, delta)
    assert gaussian_delta(sensitivity, sigma, epsilon) <= delta
    assert gaussian_delta(sensitivity, 0.999999 * sigma, epsilon) > delta


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.4])
def test_classic_sigma_is_private_and_wasteful(epsilon: float, delta: float) -> None:
    classic = noise.classic_gaussian_sigma(2.0, epsilon, delta)
    assert classic == pytest.approx(2 * math.sqrt(2 * math.log(1.25 / delta)) / epsilon)
    assert gaussian_delta(2.0, classic, epsilon) <= delta
    assert classic >= noise.analytic_gaussian_sigma(2.0, epsilon, delta)


def test_classic_formula_fails_at_large_epsilon_and_is_refused_there() -> None:
    """Check that the classic formula is refused at epsilon = 100.

    The refusal is needed because the printed formula is not private at epsilon = 100.
    """
    formula = math.sqrt(2 * math.log(1.25 / 0.1)) / 100
    assert gaussian_delta(1.0, formula, 100.0) > 0.1
    with pytest.raises(ValueError, match=r"epsilon must be at most 1, got 100.0"):
        noise.classic_gaussian_sigma(1.0, 100.0, 0.1)


@pytest.mark.parametrize("delta", [0.0, 1.0, math.nan, -0.1])
@pytest.mark.parametrize("calibrate", [noise.classic_gaussian_sigma, noise.analytic_gaussian_sigma])
def test_calibrations_refuse_deltas_outside_the_open_interval(calibrate, delta: float) -> None:
    with pytest.raises(ValueError, match="delta must be"):
        calibrate(1.0, 0.5, delta)


@pytest.mark.statistical
def test_laplace_distribution() -> None:
    draws = noise.laplace_mechanism(
        [3.0, -1.0], 40_000, sensitivity=2.0, epsilon=0.5, rng=np.random.default_rng(11)
    )
    assert_distribution(draws[:, 0] - 3, lambda x: distributions.laplace_cdf(x, 4.0))
    assert_distribution(draws[:, 1] + 1, lambda x: distributions.laplace_cdf(x, 4.0))
    signs = 2 * (draws[:, 0] > 3).astype(int) + (draws[:, 1] > -1)
    assert_frequencies(np.bincount(signs, minlength=4), np.full(4, 0.25))  # independent
    with pytest.raises(AssertionError, match="rejected"):
        assert_distribution(draws[:, 0] - 3, lambda x: distributions.laplace_cdf(x, 4.4))


@pytest.mark.statistical
def test_gaussian_distribution() -> None:
    draws = noise.gaussian_mechanism(5.0, 40_000, sigma=3.0, rng=np.random.default_rng(12))
    assert_distribution(draws, norm(5, 3).cdf)
    with pytest.raises(AssertionError, match="rejected"):
        assert_distribution(draws, norm(5, 3.3).cdf)


def geometric_cells(rate: float, reach: int) -> np.ndarray:
    """Return P(X <= -reach), P(X = i) for each integer i between, and P(X >= reach)."""
    inner = geometric_pmf(np.arange(-reach + 1, reach), rate)
    tail = math.exp(-rate * reach) / (1 + math.exp(-rate))
    return np.concatenate([[tail], inner, [tail]])


@pytest.mark.statistical
def test_discrete_laplace_distribution() -> None:
    draws = noise.discrete_laplace_mechanism(
        7, 40_000, sensitivity=3, epsilon=1.5, rng=np.random.default_rng(13)
    )
    counts = np.bincount(np.clip(draws - 7, -6, 6) + 6, minlength=13)
    assert_frequencies(counts, geometric_cells(0.5, 6))
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies(counts, geometric_cells(0.55, 6))


@pytest.mark.statistical
def test_randomized_response_distribution() -> None:
    draws = noise.randomized_response([1, 0], 400_000, epsilon=1.2, rng=np.random.default_rng(14))
    kept = math.exp(1.2) / (1 + math.exp(1.2))
    distribution = np.array([kept * (1 - kept), (1 - kept) ** 2, kept**2, kept * (1 - kept)])
    cells = np.bincount(2 * draws[:, 0] + draws[:, 1], minlength=4)  # 00, 01, 10, 11
    assert_frequencies(cells, distribution)
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies(cells, distribution[::-1])


def test_discrete_noise_stays_integral_at_the_edges() -> None:
    """Check discrete noise at extreme values.

    The largest value and the smallest rate cause no overflow. At a huge epsilon, there is no noise.
    """
    rng = np.random.default_rng(15)
    wide = noise.discrete_laplace_mechanism(2**53, 1000, sensitivity=1, epsilon=1e-9, rng=rng)
    assert np.abs(wide - 2**53).max() < 10**12
    still = noise.discrete_laplace_mechanism(3, 1000, sensitivity=1, epsilon=1e3, rng=rng)
    assert (still == 3).all()


# For the mutants, the true epsilon is known in closed form. The draws of each mutant follow the
# distribution that the closed form assumes.


def test_laplace_half_scale_spends_twice() -> None:
    left, right = distributions.laplace_cdf(0.0, 0.5), distributions.laplace_cdf(-1.0, 0.5)
    assert math.log(left / right) == pytest.approx(2.0)


def test_discrete_laplace_half_scale_spends_twice() -> None:
    below = geometric_pmf(np.arange(-400, 1), 2.0)
    assert math.log(below.sum() / below[:-1].sum()) == pytest.approx(2.0)


def test_randomized_response_doubled_spends_twice() -> None:
    kept = math.exp(2.0) / (1 + math.exp(2.0))
    assert math.log(kept / (1 - kept)) == pytest.approx(2.0)


def test_gaussian_mutants_break_their_claim() -> None:
    sigma = noise.analytic_gaussian_sigma(1.0, 1.0, 1e-5)
    assert gaussian_epsilon(1.0, math.sqrt(sigma), 1e-5) == pytest.approx(2.07, abs=0.01)
    assert gaussian_delta(1.0, math.sqrt(sigma), 1.0) == pytest.approx(0.0085, abs=1e-4)
    assert 0.5 + sigma == pytest.approx(4.23, abs=0.01)  # the optimal event of the docstring
    no_log = mutants.classic_gaussian_sigma_no_log(1.0, 1.0, 1e-5)
    assert gaussian_epsilon(1.0, no_log, 1e-5) == pytest.approx(4.38, abs=0.01)


@pytest.mark.statistical
def test_mutants_follow_their_broken_distribution() -> None:
    rng = np.random.default_rng(16)
    n = 40_000
    half = mutants.laplace_half_scale(0.0, n, sensitivity=1.0, epsilon=1.0, rng=rng)
    assert_distribution(half, lambda x: distributions.laplace_cdf(x, 0.5))
    narrow = mutants.gaussian_variance_as_deviation(0.0, n, sigma=4.0, rng=rng)
    assert_distribution(narrow, norm(0, 2).cdf)
    steps = mutants.discrete_laplace_half_scale(0, n, sensitivity=1, epsilon=0.5, rng=rng)
    counts = np.bincount(np.clip(steps, -4, 4) + 4, minlength=9)
    assert_frequencies(counts, geometric_cells(1.0, 4))
    kept = math.exp(1) / (1 + math.exp(1))
    bits = mutants.randomized_response_doubled(1, n, epsilon=0.5, rng=rng)
    assert_frequencies(np.bincount(bits, minlength=2), [1 - kept, kept])
    with pytest.raises(
        AssertionError, match="rejected"
    ):  # the distribution is not that of the original
        assert_distribution(half, lambda x: distributions.laplace_cdf(x, 1.0))


def test_laplace_reused_noise_is_no_noise_for_differences() -> None:
    kwargs = {"sensitivity": 2.0, "epsilon": 1.0}
    for left, expected in [(0.0, True), (2.0, False)]:
        draws = mutants.laplace_reused_noise(
            [left, 0.0], 1000, **kwargs, rng=np.random.default_rng(17)
        )
        assert ((draws[:, 0] - draws[:, 1] < 1.0) == expected).all()
