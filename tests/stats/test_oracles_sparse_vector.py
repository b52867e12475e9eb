"""Tests of answer patterns of sparse vector algorithms by closed forms, mpmath and simulation."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.stats import oracles
from dpaudit.stats.oracles._sparse_vector import PatternDistribution, sparse_vector_patterns
from tests.statistical import assert_frequencies


def _cdf(x: float) -> float:
    return math.exp(x) / 2 if x < 0 else 1 - math.exp(-x) / 2


def _as_dict(distribution: PatternDistribution) -> dict[tuple[int, ...], float]:
    return dict(zip(distribution.patterns, distribution.probabilities.tolist(), strict=True))


def _tail_of_difference(gap: float, a: float, b: float) -> float:
    """Return P(Lap(a) - Lap(b) > gap) for gap >= 0."""
    if a == b:
        return math.exp(-gap / a) * (0.5 + gap / (4 * a))
    return (a * a * math.exp(-gap / a) - b * b * math.exp(-gap / b)) / (2 * (a * a - b * b))


@pytest.mark.parametrize("gap", [0.0, 0.3, 2.0, 30.0, 300.0])
@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (2.0, 4.0), (3.0, 0.5), (50.0, 0.01)])
def test_one_query_has_a_closed_form(gap: float, a: float, b: float) -> None:
    distribution = _as_dict(
        sparse_vector_patterns([gap], thresholds=0, threshold_scale=a, query_scale=b)
    )
    assert distribution[(0,)] == pytest.approx(_tail_of_difference(gap, a, b), rel=1e-11)
    low = _as_dict(sparse_vector_patterns([0.0], thresholds=gap, threshold_scale=a, query_scale=b))
    assert low[(1,)] == pytest.approx(_tail_of_difference(gap, a, b), rel=1e-11)


def test_two_equal_queries_have_a_closed_form() -> None:
    # The queries are on the threshold, and all scales are equal. The three noises are exchangeable
    # and symmetric.
    distribution = sparse_vector_patterns([0, 0], thresholds=0, threshold_scale=1, query_scale=1)
    expected = {(0, 0): 1 / 3, (0, 1): 1 / 6, (1, 0): 1 / 6, (1, 1): 1 / 3}
    assert _as_dict(distribution) == pytest.approx(expected, rel=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gaps", "a", "b"),
    [([0.5, -1.0], 1.0, 2.0), ([0.0, 9.0], 1.0, 0.3), ([3.0, -8.0], 0.3, 1.0), ([-6, 6], 2.0, 2.0)],
)
def test_two_queries_agree_with_mpmath(gaps: list[float], a: float, b: float) -> None:
    distribution = _as_dict(
        sparse_vector_patterns(gaps, thresholds=0, threshold_scale=a, query_scale=b)
    )
    kinks = sorted({0.0, *gaps})
    fine, wide = min(a, b), max(a, b)
    ends = {mpmath.mpf(k) for k in kinks}
    for low, high in itertools.pairwise(kinks):
        count = math.ceil((high - low) / fine)
        ends |= {low + (high - low) * mpmath.mpf(i) / count for i in range(count)}
    for i in range(1, 31):
        for step in (fine * i, fine * 30 + wide * 2 * i):
            ends |= {kinks[0] - mpmath.mpf(step), kinks[-1] + mpmath.mpf(step)}

    def cdf(x: mpmath.mpf) -> mpmath.mpf:
        return mpmath.exp(x) / 2 if x < 0 else 1 - mpmath.exp(-x) / 2

    for pattern, actual in distribution.items():

        def integrand(r: mpmath.mpf, pattern: tuple[int, ...] = pattern) -> mpmath.mpf:
            value = mpmath.exp(-abs(r) / a) / (2 * a)
            for gap, answer in zip(gaps, pattern, strict=True):
                value *= cdf((gap - r) / b if answer else (r - gap) / b)
            return value

        assert actual == pytest.approx(float(mpmath.quad(integrand, sorted(ends))), rel=1e-11)


@pytest.mark.parametrize("halt_on", ["yes", "no"])
@pytest.mark.parametrize("cutoff", [1, 2, 4, None])
def test_patterns_follow_the_halting_rule(cutoff: int | None, halt_on: str) -> None:
    q, t = [0.3, -1.0, 2.0, 0.0], [0.0, 0.5, 1.0, -1.0]
    scales = {"threshold_scale": 1.5, "query_scale": 0.8}
    distribution = sparse_vector_patterns(q, thresholds=t, cutoff=cutoff, halt_on=halt_on, **scales)
    full = _as_dict(sparse_vector_patterns(q, thresholds=t, **scales))
    expected: dict[tuple[int, ...], float] = {}
    counted = int(halt_on == "yes")
    for answers, probability in full.items():
        hits = np.cumsum(np.array(answers) == counted)
        asked = 4 if cutoff is None or hits[-1] < cutoff else int(np.argmax(hits == cutoff)) + 1
        key = answers[:asked] + (-1,) * (4 - asked)
        expected[key] = expected.get(key, 0.0) + probability
    assert _as_dict(distribution) == pytest.approx(expected, rel=1e-12)
    assert len(set(distribution.patterns)) == len(distribution.patterns)
    assert math.fsum(distribution.probabilities) == pytest.approx(1.0, abs=1e-12)


def test_without_threshold_noise_answers_are_independent() -> None:
    q, b = np.array([0.3, -1.0, 2.0]), 0.8
    distribution = sparse_vector_patterns(q, thresholds=0.5, threshold_scale=0, query_scale=b)
    for pattern, actual in _as_dict(distribution).items():
        signs = [1 if answer else -1 for answer in pattern]
        expected = math.prod(_cdf(s * (x - 0.5) / b) for s, x in zip(signs, q, strict=True))
        assert actual == pytest.approx(expected, rel=1e-13)


def test_without_query_noise_one_number_decides() -> None:
    distribution = _as_dict(
        sparse_vector_patterns([1.0, -2.0, 1.0], thresholds=0, threshold_scale=2, query_scale=0)
    )
    assert distribution[(1, 1, 1)] == pytest.approx(_cdf(-1.0), rel=1e-14)
    assert distribution[(1, 0, 1)] == pytest.approx(_cdf(0.5) - _cdf(-1.0), rel=1e-14)
    assert distribution[(0, 0, 0)] == pytest.approx(_cdf(-0.5), rel=1e-14)
    assert sum(probability > 0 for probability in distribution.values()) == 3
    tiny = _as_dict(
        sparse_vector_patterns([60.0, 61.0], thresholds=0, threshold_scale=1, query_scale=0)
    )
    assert tiny[(0, 1)] == pytest.approx(0.5 * (math.exp(-60) - math.exp(-61)), rel=1e-14)


def test_without_any_noise_the_answers_are_certain() -> None:
    distribution = sparse_vector_patterns(
        [1.0, -2.0, 0.0], thresholds=0, threshold_scale=0, query_scale=0, cutoff=2
    )
    assert _as_dict(distribution)[(1, 0, 1)] == 1.0
    assert distribution.probabilities.sum() == 1.0


@pytest.mark.parametrize("ratio", [1e-9, 1e-5, 1e-2])
def test_vanishing_noise_tends_to_no_noise(ratio: float) -> None:
    def patterns(a: float, b: float) -> np.ndarray:
        distribution = sparse_vector_patterns(
            [1.0, -2.0, 0.4], thresholds=0, threshold_scale=a, query_scale=b
        )
        assert distribution.probabilities.sum() == pytest.approx(1.0, abs=1e-10)
        return distribution.probabilities

    np.testing.assert_allclose(patterns(1.0, ratio), patterns(1.0, 0.0), atol=2 * ratio + 1e-12)
    np.testing.assert_allclose(patterns(ratio, 1.0), patterns(0.0, 1.0), atol=2 * ratio + 1e-12)


@settings(derandomize=True, database=None, deadline=None, max_examples=60)
@given(
    st.lists(st.floats(-50, 50), min_size=1, max_size=6),
    st.floats(0.01, 100.0),
    st.floats(0.01, 100.0),
    st.integers(1, 3),
)
def test_probabilities_sum_to_one(q: list[float], a: float, b: float, cutoff: int) -> None:
    distribution = sparse_vector_patterns(
        q, thresholds=0, threshold_scale=a, query_scale=b, cutoff=cutoff, halt_on="no"
    )
    assert math.fsum(distribution.probabilities) == pytest.approx(1.0, abs=1e-11)
    assert (distribution.probabilities >= 0).all()


@settings(derandomize=True, database=None, deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.floats(-20, 20), st.floats(-1, 1)), min_size=1, max_size=8),
    st.floats(0.05, 3.0),
)
def test_above_threshold_keeps_its_promise(moves: list[tuple[float, float]], eps: float) -> None:
    left = [q for q, _ in moves]
    right = [q + step for q, step in moves]
    oracle = oracles.above_threshold(left, right, threshold=0.0, epsilon=eps)
    assert oracle.epsilon(0.0) <= eps * (1 + 1e-9) + 1e-12


def test_above_threshold_outcomes_and_scales() -> None:
    oracle = oracles.above_threshold([1, 2], [0, 3], threshold=0.5, epsilon=0.5, sensitivity=3)
    assert oracle.outcomes == ((0, -1), (1, 0), (1, 1))
    first_no = _tail_of_difference(0.5, 12.0, 24.0)  # q - T = 0.5, and the scales are 12 and 24
    assert oracle.pmf_left[0] == pytest.approx(first_no, rel=1e-12)
    # Half of the noise everywhere is the same as half of the sensitivity.
    half = oracles.above_threshold([1, 2], [0, 3], threshold=0.5, epsilon=1.0, sensitivity=3)
    same = oracles.above_threshold([1, 2], [0, 3], threshold=0.5, epsilon=0.5, sensitivity=1.5)
    np.testing.assert_allclose(half.pmf_left, same.pmf_left, rtol=1e-14)


def test_fixed_threshold_sparse_vector_is_a_product() -> None:
    oracle = oracles.fixed_threshold_sparse_vector(
        [0.0, 1.0, -1.0], [1.0, 0.0, 0.0], thresholds=0.5, cutoff=1, epsilon=2.0
    )
    assert oracle.outcomes == ((0, 0, 0), (0, 0, 1), (0, 1, -1), (1, -1, -1))
    no = [_cdf(2.0 * (0.5 - q)) for q in (0.0, 1.0, -1.0)]
    expected = [no[0] * no[1] * no[2], no[0] * no[1] * (1 - no[2]), no[0] * (1 - no[1]), 1 - no[0]]
    np.testing.assert_allclose(oracle.pmf_left, expected, rtol=1e-13)


def _counts(query_scale: float, patterns: tuple[tuple[int, ...], ...]) -> list[int]:
    """Count the answer patterns of 400,000 simulated runs."""
    size = 400_000
    rng = np.random.default_rng(714025)
    queries, thresholds = np.array([0.3, -1.0, 1.5, 0.2]), np.array([0.0, 0.5, 1.0, -0.5])
    rho = rng.laplace(scale=1.0, size=(size, 1))
    noisy = queries + rng.laplace(scale=query_scale, size=(size, 4))
    answers = (noisy >= thresholds + rho).astype(int)
    halted = np.cumsum(answers, axis=1) - answers >= 2
    drawn = Counter(map(tuple, np.where(halted, -1, answers).tolist()))
    assert set(drawn) <= set(patterns)
    return [drawn[pattern] for pattern in patterns]


@pytest.mark.slow
@pytest.mark.statistical
def test_simulated_patterns_have_the_distribution() -> None:
    distribution = sparse_vector_patterns(
        [0.3, -1.0, 1.5, 0.2],
        thresholds=[0.0, 0.5, 1.0, -0.5],
        threshold_scale=1.0,
        query_scale=2.0,
        cutoff=2,
    )
    assert_frequencies(_counts(2.0, distribution.patterns), distribution.probabilities)
    with pytest.raises(AssertionError, match="rejected at false-alarm rate"):
        assert_frequencies(
            _counts(2.15, distribution.patterns), distribution.probabilities
        )  # the control


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"queries": []}, "queries must be a nonempty"),
        ({"queries": [math.nan, 0]}, "queries must be"),
        ({"thresholds": [0.0]}, "thresholds must have as many entries as queries"),
        ({"thresholds": math.inf}, "thresholds must be"),
        ({"threshold_scale": -1.0}, "threshold_scale must be a finite number >= 0"),
        ({"query_scale": math.nan}, "query_scale must be a finite number >= 0"),
        ({"cutoff": 0}, "cutoff must be an integer >= 1"),
        ({"halt_on": "maybe"}, "halt_on must be one of yes, no"),
        ({"queries": np.zeros(17), "cutoff": None}, "at most 65536 answer patterns"),
        ({"queries": np.zeros(400), "cutoff": 3}, "at most 65536 answer patterns"),
    ],
)
def test_bad_arguments_are_refused(change: dict[str, object], match: str) -> None:
    good: dict[str, object] = {
        "queries": [0.0, 1.0],
        "thresholds": 0.0,
        "threshold_scale": 1.0,
        "query_scale": 1.0,
        "cutoff": 1,
    }
    with pytest.raises(ValueError, match=match):
        sparse_vector_patterns(**(good | change))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (
            lambda: oracles.above_threshold([0.0], [0.0, 1.0], threshold=0, epsilon=1),
            "queries_right must have as many entries as queries_left",
        ),
        (
            lambda: oracles.above_threshold([0.0], [0.0], threshold=math.nan, epsilon=1),
            "threshold must be",
        ),
        (
            lambda: oracles.above_threshold([0.0], [0.0], threshold=0, epsilon=0.0),
            "epsilon must be a finite number > 0",
        ),
        (
            lambda: oracles.above_threshold([0.0], [0.0], threshold=0, epsilon=1, sensitivity=-1),
            "sensitivity must be",
        ),
        (
            lambda: oracles.fixed_threshold_sparse_vector(
                [0.0], [math.inf], thresholds=0, cutoff=1, epsilon=1
            ),
            "queries_right must be",
        ),
    ],
)
def test_bad_pairs_are_refused(call: object, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        call()  # type: ignore[operator]
