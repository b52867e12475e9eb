"""Tests of selection.

The tests compare exact pmfs, their worst-case ratios and the draws.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.common import selection
from mutants import selection as mutants
from tests.algorithms import distributions
from tests.statistical import assert_frequencies


def noisy_max_pmf(scores: list[float], scale: float) -> np.ndarray:
    """Return the probability that each option is the largest, by quadrature.

    For option r, the probability is E[product of P(score_j + noise < score_r + z)].
    """
    values = np.asarray(scores, dtype=float)
    pmf = []
    for r, value in enumerate(values):
        others = np.delete(values, r)
        z, weights = distributions.laplace_panels(others - value, scale, scale)
        below = distributions.laplace_cdf(value + z[:, None] - others, scale)
        pmf.append(float((weights * below.prod(axis=1)).sum()))
    return np.array(pmf)


def worst_log_ratio(distribution, scores: list[float], sensitivity: float) -> float:
    """Return the largest log ratio if each score moves by -1, 0 or 1 times the sensitivity."""
    base = distribution(scores)
    worst = 0.0
    for signs in itertools.product([-1.0, 0.0, 1.0], repeat=len(scores)):
        moved = distribution(
            [s + sensitivity * sign for s, sign in zip(scores, signs, strict=True)]
        )
        worst = max(worst, float(np.abs(np.log(base) - np.log(moved)).max()))
    return worst


def test_exponential_pmf_of_two_options() -> None:
    pmf = selection.exponential_pmf([0.0, 2.0], sensitivity=1.0, epsilon=3.0)
    assert pmf[1] == pytest.approx(1 / (1 + math.exp(-3.0)))
    assert pmf.sum() == pytest.approx(1.0)


def test_exponential_pmf_survives_gaps_no_float_holds() -> None:
    pmf = selection.exponential_pmf([-1e308, 1e308], sensitivity=1e-9, epsilon=10.0)
    assert pmf.tolist() == [0.0, 1.0]


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    scores=st.lists(st.floats(-5, 5), min_size=2, max_size=4),
    sensitivity=st.floats(0.1, 2),
    epsilon=st.floats(0.1, 3),
)
def test_exponential_pmf_keeps_its_guarantee(
    scores: list[float], sensitivity: float, epsilon: float
) -> None:
    def distribution(s: list[float]) -> np.ndarray:
        return selection.exponential_pmf(s, sensitivity=sensitivity, epsilon=epsilon)

    assert worst_log_ratio(distribution, scores, sensitivity) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("scores", [[-2.0, 0.0], [0.0, 0.0, 0.0], [-9.0, 0.0, 1.0]])
def test_noisy_max_keeps_its_guarantee(scores: list[float]) -> None:
    epsilon = 1.0
    distribution = lambda s: noisy_max_pmf(s, 2 / epsilon)  # noqa: E731
    assert distribution(scores).sum() == pytest.approx(1.0, abs=1e-10)
    assert worst_log_ratio(distribution, scores, 1.0) <= epsilon * (1 + 1e-9)


@pytest.mark.statistical
def test_exponential_draws_follow_the_pmf() -> None:
    scores = [0.0, 1.0, -3.0, 1.0]
    draws = selection.exponential_mechanism(
        scores, 40_000, sensitivity=2.0, epsilon=3.0, rng=np.random.default_rng(21)
    )
    counts = np.bincount(draws, minlength=4)
    weights = np.exp(0.75 * np.array(scores))
    assert_frequencies(counts, weights / weights.sum())
    wrong = np.exp(1.5 * np.array(scores))  # the factor 2 is forgotten
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies(counts, wrong / wrong.sum())


@pytest.mark.statistical
def test_noisy_max_draws_follow_the_quadrature() -> None:
    scores = [0.0, 1.0, -1.0]
    draws = selection.report_noisy_max(
        scores, 40_000, sensitivity=1.5, epsilon=2.0, rng=np.random.default_rng(22)
    )
    counts = np.bincount(draws, minlength=3)
    assert_frequencies(counts, noisy_max_pmf(scores, 1.5))
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies(counts, noisy_max_pmf(scores, 0.75))


def test_monotone_mutants_break_at_their_pair() -> None:
    left = mutants.exponential_pmf_monotone([-2.0, 0.0], sensitivity=1.0, epsilon=1.0)[0]
    right = mutants.exponential_pmf_monotone([-3.0, 1.0], sensitivity=1.0, epsilon=1.0)[0]
    assert (left, right) == pytest.approx((0.119, 0.018), abs=1e-3)
    assert math.log(left / right) == pytest.approx(1.89, abs=0.01)
    left, right = noisy_max_pmf([-2.0, 0.0], 1.0)[0], noisy_max_pmf([-3.0, 1.0], 1.0)[0]
    assert left == pytest.approx(math.exp(-2.0))  # (2 + x) exp(-x) / 4 at gap x = 2
    assert right == pytest.approx(1.5 * math.exp(-4.0))
    assert math.log(left / right) == pytest.approx(1.59, abs=0.01)


@pytest.mark.statistical
def test_monotone_mutants_follow_their_broken_distribution() -> None:
    kwargs = {"sensitivity": 1.0, "epsilon": 1.0}
    rng = np.random.default_rng(23)
    chosen = mutants.exponential_mechanism_monotone([-2.0, 0.0], 40_000, **kwargs, rng=rng)
    assert_frequencies(
        np.bincount(chosen, minlength=2), mutants.exponential_pmf_monotone([-2.0, 0.0], **kwargs)
    )
    named = mutants.report_noisy_max_monotone([-2.0, 0.0], 40_000, **kwargs, rng=rng)
    assert_frequencies(np.bincount(named, minlength=2), noisy_max_pmf([-2.0, 0.0], 1.0))
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies(np.bincount(named, minlength=2), noisy_max_pmf([-2.0, 0.0], 2.0))


def test_shared_noise_mutant_is_deterministic() -> None:
    for scores, winner in [([0.0, 1.0], 1), ([1.0, 0.0], 0)]:
        draws = mutants.report_noisy_max_shared_noise(
            scores, 1000, sensitivity=1.0, epsilon=1.0, rng=np.random.default_rng(24)
        )
        assert (draws == winner).all()
