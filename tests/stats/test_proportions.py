"""Tests of Clopper-Pearson bounds against scipy and binomial tails, and of their coverage.

The coverage is enumerated.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from dpaudit.stats.joint import (
    Counts,
    lower_proportion,
    lower_rates,
    upper_rates,
)


def upper_proportion(successes: int, trials: int, failure_prob: float) -> float:
    return float(upper_rates(successes, trials, failure_prob))


LEVELS = [0.4, 0.05, 1e-5, 1e-12]


@pytest.mark.parametrize("failure_prob", LEVELS)
@pytest.mark.parametrize("trials", [1, 2, 10, 137, 100_000])
def test_bounds_are_those_of_scipy_binomtest(trials: int, failure_prob: float) -> None:
    for successes in sorted({0, 1, trials // 3, trials - 1, trials}):
        # proportion_ci is two-sided, so each of its ends is a one-sided bound at half the level.
        interval = binomtest(successes, trials).proportion_ci(1 - 2 * failure_prob, method="exact")
        if failure_prob >= 1e-5:  # for smaller values, 1 - 2 alpha has too few digits
            assert lower_proportion(successes, trials, failure_prob) == pytest.approx(
                interval.low, rel=1e-7, abs=1e-15
            )
            assert upper_proportion(successes, trials, failure_prob) == pytest.approx(
                interval.high, rel=1e-7
            )


@settings(max_examples=200)
@given(
    st.integers(1, 10**7),
    st.floats(0, 1),
    st.sampled_from([0.7, 0.3, 1e-3, 1e-5, 1e-9, 1e-30]),
)
def test_the_tail_beyond_the_bound_is_the_failure_probability(
    trials: int, share: float, failure_prob: float
) -> None:
    successes = round(share * trials)
    lower = lower_proportion(successes, trials, failure_prob)
    upper = upper_proportion(successes, trials, failure_prob)
    if successes == 0:
        assert lower == 0.0
    else:
        assert binom.sf(successes - 1, trials, lower) == pytest.approx(failure_prob, rel=1e-6)
    if successes == trials:
        assert upper == 1.0
    elif upper < 1 - 1e-9:
        assert binom.cdf(successes, trials, upper) == pytest.approx(failure_prob, rel=1e-6)


@pytest.mark.parametrize("failure_prob", LEVELS)
def test_bounds_at_the_ends_have_closed_forms(failure_prob: float) -> None:
    for n in (1, 7, 1000, 10**8):
        log_root = math.log(failure_prob) / n
        assert lower_proportion(n, n, failure_prob) == pytest.approx(math.exp(log_root), rel=2e-9)
        assert upper_proportion(0, n, failure_prob) == pytest.approx(
            -math.expm1(log_root), rel=2e-9
        )


def _worst_miss(trials: int, failure_prob: float, lower: Any, upper: Any) -> tuple[float, float]:
    """Return the largest probabilities that p lies below `lower` and that p lies above `upper`.

    The maxima are over a fine grid of p.
    """
    k = np.arange(trials + 1)
    low = np.array([lower(int(i), trials, failure_prob) for i in k])
    high = np.array([upper(int(i), trials, failure_prob) for i in k])
    edges = np.concatenate([low, high])
    grid = np.concatenate(
        [np.linspace(0, 1, 1001), edges, np.nextafter(edges, 0), np.nextafter(edges, 1)]
    )
    grid = np.clip(grid, 0, 1)
    mass = binom.pmf(k[:, None], trials, grid)
    return (
        float((mass * (low[:, None] > grid)).sum(axis=0).max()),
        float((mass * (high[:, None] < grid)).sum(axis=0).max()),
    )


@pytest.mark.parametrize("failure_prob", [0.4, 0.05, 1e-5])
@pytest.mark.parametrize("trials", [1, 2, 3, 8, 25, 60])
def test_coverage_by_enumeration_never_exceeds_the_failure_probability(
    trials: int, failure_prob: float
) -> None:
    for missed in _worst_miss(trials, failure_prob, lower_proportion, upper_proportion):
        assert missed <= failure_prob * (1 + 1e-9)


def test_the_enumeration_rejects_the_normal_approximation() -> None:
    def wald_lower(k: int, n: int, failure_prob: float) -> float:
        return k / n - 1.645 * math.sqrt(k * (n - k) / n**3)

    below, above = _worst_miss(25, 0.05, wald_lower, upper_proportion)
    assert below > 0.05
    assert above <= 0.05 * (1 + 1e-9)


@settings(max_examples=50)
@given(st.integers(1, 500), st.data())
def test_mirrored_counts_give_mirrored_bounds(trials: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, trials))
    assert lower_proportion(k, trials, 1e-4) == pytest.approx(
        1 - upper_proportion(trials - k, trials, 1e-4), abs=1e-14
    )
    assert lower_proportion(k, trials, 1e-4) <= k / trials <= upper_proportion(k, trials, 1e-4)


def test_whole_arrays_agree_with_single_counts() -> None:
    k = np.arange(41)
    assert lower_rates(k, 40, 1e-3).tolist() == [lower_proportion(int(i), 40, 1e-3) for i in k]
    assert upper_rates(k, 40, 1e-3).tolist() == [upper_proportion(int(i), 40, 1e-3) for i in k]


def test_numpy_integers_are_counts() -> None:
    counts = Counts(np.int64(1), np.int32(2), np.uint8(0), np.int64(5))
    assert counts == Counts(1, 2, 0, 5)
    assert lower_proportion(np.int64(3), np.int64(9), 0.1) == lower_proportion(3, 9, 0.1)


BAD_COUNTS: list[tuple[Any, Any, type[Exception], str]] = [
    (1.0, 2, TypeError, "successes"),
    (1, 2.0, TypeError, "trials"),
    (True, 2, TypeError, "successes"),
    (1, True, TypeError, "trials"),
    (np.True_, 2, TypeError, "successes"),
    ("1", 2, TypeError, "successes"),
    (None, 2, TypeError, "successes"),
    (-1, 2, ValueError, "successes"),
    (3, 2, ValueError, "successes"),
    (0, 0, ValueError, "trials"),
    (0, -1, ValueError, "trials"),
]


@pytest.mark.parametrize(("successes", "trials", "error", "name"), BAD_COUNTS)
def test_bad_counts_are_refused_by_name(
    successes: Any, trials: Any, error: type[Exception], name: str
) -> None:
    with pytest.raises(error, match=f"^{name} must be an integer"):
        lower_proportion(successes, trials, 0.1)
    side = {"successes": "hits", "trials": "draws"}[name]
    with pytest.raises(error, match=f"^{side}_left must be an integer"):
        Counts(successes, trials, 1, 2)
    with pytest.raises(error, match=f"^{side}_right must be an integer"):
        Counts(1, 2, successes, trials)


@pytest.mark.parametrize("failure_prob", [0, 1, 0.0, 1.0, -0.1, 1.5, math.nan, math.inf])
def test_failure_probabilities_outside_the_open_interval_are_refused(failure_prob: float) -> None:
    with pytest.raises(ValueError, match="^failure_prob must be"):
        lower_proportion(1, 2, failure_prob)


@pytest.mark.parametrize("failure_prob", [True, "0.1", None])
def test_failure_probabilities_that_are_no_numbers_are_refused(failure_prob: Any) -> None:
    with pytest.raises(TypeError, match="^failure_prob must be"):
        lower_proportion(1, 2, failure_prob)


def test_swapping_and_complementing_are_involutions_that_commute() -> None:
    counts = Counts(1, 5, 7, 9)
    assert counts.swapped() == Counts(7, 9, 1, 5)
    assert counts.complement() == Counts(4, 5, 2, 9)
    assert counts.swapped().swapped() == counts == counts.complement().complement()
    assert counts.swapped().complement() == counts.complement().swapped()
