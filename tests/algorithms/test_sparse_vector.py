"""Tests of the sparse vector.

The tests compute every pattern of answers by quadrature, and check the worst ratio and the draws.
"""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

from algorithms.common import sparse_vector as sv
from algorithms.common import sparse_vector_variants as variants
from mutants import sparse_vector as mutants
from tests.algorithms import distributions
from tests.statistical import assert_distribution, assert_frequencies

N = 40_000
MANY = 1_000_000  # enough to reveal a few per cent of the noise scale


def patterns_and_distribution(queries, cutoff, *, halting_answer=1, **scales):
    patterns = distributions.halting_patterns(len(queries), cutoff, halting_answer)
    distribution = np.array(
        [distributions.pattern_probability(queries, p, **scales) for p in patterns]
    )
    assert distribution.sum() == pytest.approx(1.0, abs=1e-11)
    return patterns, distribution


def loss(left, right, pattern, **scales) -> tuple[float, float, float]:
    """Return the probability of a pattern on each side, and the log of the ratio of both."""
    p = distributions.pattern_probability(left, pattern, **scales)
    q = distributions.pattern_probability(right, pattern, **scales)
    return p, q, math.log(p / q)


def worst_loss(queries, cutoff, **settings) -> float:
    """Return the largest log ratio over all patterns if each query moves by -1, 0 or 1."""
    _, base = patterns_and_distribution(queries, cutoff, **settings)
    worst = 0.0
    for signs in itertools.product([-1.0, 0.0, 1.0], repeat=len(queries)):
        _, moved = patterns_and_distribution(np.asarray(queries) + signs, cutoff, **settings)
        worst = max(worst, float(np.abs(np.log(base / moved)).max()))
    return worst


# Scales at epsilon 1, sensitivity 1, cutoff c, copied from the papers.
SCALES = {
    "svt1": lambda c: {"threshold_scale": 2.0, "query_scale": 4.0 * c},
    "svt2": lambda c: {"threshold_scale": 2.0 * c, "query_scale": 4.0 * c, "redraw": True},
    "svt4": lambda c: {"threshold_scale": 4.0, "query_scale": 4 / 3},
    "svt5": lambda c: {"threshold_scale": 2.0, "query_scale": 0.0},
    "svt6": lambda c: {"threshold_scale": 2.0, "query_scale": 2.0},
}


def test_the_pattern_law_in_closed_form() -> None:
    """Compare pattern probabilities with closed forms.

    For two independent Laplace draws of unit scale, P(difference >= x) is (2 + x) exp(-x) / 4.
    """
    p = distributions.pattern_probability([-1.5], (1,), threshold_scale=1.0, query_scale=1.0)
    assert p == pytest.approx(3.5 * math.exp(-1.5) / 4, abs=1e-14)
    assert distributions.pattern_probability(
        [0.0] * 3, (0, 0, 1), threshold_scale=1.0, query_scale=1.0
    ) == pytest.approx(1 / 12, abs=1e-13)  # the third value is the largest, the threshold is next


@pytest.mark.statistical
def test_above_threshold_follows_its_distribution() -> None:
    queries = [4.0, -2.0, 5.0, -3.0]
    answers = sv.above_threshold(
        2 * np.array(queries), MANY, threshold=0.4, epsilon=1.0, sensitivity=2.0,
        rng=np.random.default_rng(51),
    )  # fmt: skip
    scales = {"threshold": 0.2, "threshold_scale": 2.0, "query_scale": 4.0}
    patterns, distribution = patterns_and_distribution(queries, 1, halting_answer=0, **scales)
    assert patterns == [(0,), (1, 0), (1, 1, 0), (1, 1, 1, 0), (1, 1, 1, 1)]
    counts = distributions.pattern_counts(answers, patterns)
    assert_frequencies(counts, distribution)
    _, wrong = patterns_and_distribution(
        queries, 1, halting_answer=0, **(scales | {"query_scale": 2.0})
    )
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies(counts, wrong)


@pytest.mark.statistical
def test_fixed_threshold_follows_its_distribution() -> None:
    """Compare the answers with a product distribution.

    The answers are independent, and each query has its own threshold.
    """
    gaps = np.array([1.5, -1.0, 2.0, -3.0])
    thresholds = np.array([1.0, 2.0, 3.0, 4.0])
    answers = sv.fixed_threshold_sparse_vector(
        gaps + thresholds, MANY, thresholds=thresholds, cutoff=2, epsilon=0.5,
        rng=np.random.default_rng(52),
    )  # fmt: skip
    yes = distributions.laplace_tail(-gaps, 2.0)
    patterns = distributions.halting_patterns(4, 2)
    distribution = np.array(
        [np.prod([y if a else 1 - y for a, y in zip(p, yes, strict=False)]) for p in patterns]
    )
    counts = distributions.pattern_counts(answers, patterns)
    assert_frequencies(counts, distribution)
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies(counts, distribution[::-1])


@pytest.mark.parametrize("name", ["svt1", "svt2", "svt4"])
@pytest.mark.parametrize("cutoff", [1, 2, 3])
@pytest.mark.statistical
def test_variants_with_a_cutoff_follow_their_distribution(name: str, cutoff: int) -> None:
    queries = [0.5, -0.3, 1.0, -2.0]
    run = partial(getattr(variants, name), cutoff=cutoff, epsilon=1.0)
    answers = run(
        3 * np.array(queries), N, thresholds=0.6, sensitivity=3.0, rng=np.random.default_rng(53)
    )
    scales = SCALES[name](cutoff)
    patterns, distribution = patterns_and_distribution(queries, cutoff, threshold=0.2, **scales)
    counts = distributions.pattern_counts(answers, patterns)
    assert_frequencies(counts, distribution)
    wrong = scales | {"query_scale": 2.5 * scales["query_scale"]}
    _, wrong_distribution = patterns_and_distribution(queries, cutoff, threshold=0.2, **wrong)
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies(counts, wrong_distribution)


@pytest.mark.parametrize("name", ["svt5", "svt6"])
@pytest.mark.statistical
def test_variants_without_a_cutoff_follow_their_distribution(name: str) -> None:
    queries = np.array([0.5, -0.3, 1.0])
    thresholds = np.array([0.0, 5.0, -1.0])
    answers = getattr(variants, name)(
        queries + thresholds, N, thresholds=thresholds, epsilon=1.0, sensitivity=1.0,
        rng=np.random.default_rng(54),
    )  # fmt: skip
    patterns, distribution = patterns_and_distribution(queries, None, **SCALES[name](0))
    counts = distributions.pattern_counts(answers, patterns)
    assert_frequencies(counts, distribution)
    _, wrong = patterns_and_distribution(queries, None, threshold_scale=2.0, query_scale=1.0)
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies(counts, wrong)


@pytest.mark.statistical
def test_svt3_releases_the_value_that_it_compared() -> None:
    draws = variants.svt3(
        [0.0, 1.0, -1.0], N, thresholds=0.5, cutoff=1, epsilon=1.0, sensitivity=1.0,
        rng=np.random.default_rng(55),
    )  # fmt: skip
    answers, released = draws[..., 0], draws[..., 1]
    np.testing.assert_array_equal(np.isnan(released), answers != 1.0)
    scales = {"threshold": 0.5, "threshold_scale": 2.0, "query_scale": 2.0}
    patterns, distribution = patterns_and_distribution([0.0, 1.0, -1.0], 1, **scales)
    assert_frequencies(distributions.pattern_counts(answers, patterns), distribution)
    cuts = [-math.inf, -1.0, 1.0, 3.0, math.inf]
    at_two = [
        distributions.release_probability([0.0, 1.0], low=a, high=b, **scales)
        for a, b in itertools.pairwise(cuts)
    ]
    assert sum(at_two) == pytest.approx(distribution[patterns.index((0, 1))], abs=1e-11)
    counts = np.histogram(released[answers[:, 1] == 1.0, 1], bins=[-1e9, -1, 1, 3, 1e9])[0]
    whole = np.append(counts, N - counts.sum())
    assert_frequencies(whole, [*at_two, 1 - sum(at_two)])
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies(whole, [*at_two[::-1], 1 - sum(at_two)])


@pytest.mark.parametrize("queries", [[0.0, 0.0, 0.0], [-6.0, 0.0, 6.0], [9.0, 9.0, -9.0]])
def test_the_correct_ones_keep_their_guarantee(queries: list[float]) -> None:
    """Check that the correct algorithms satisfy their claim at epsilon = 1 and sensitivity 1.

    The test is exact over all patterns and all neighbours whose queries move by -1, 0 or 1.
    """
    above = {"threshold_scale": 2.0, "query_scale": 4.0, "halting_answer": 0}
    assert worst_loss(queries, 1, **above) <= 1 + 1e-9
    for name, cutoff in itertools.product(["svt1", "svt2"], [1, 2, 3]):
        assert worst_loss(queries, cutoff, **SCALES[name](cutoff)) <= 1 + 1e-9


@pytest.mark.parametrize("cutoff", [1, 2, 3])
def test_svt4_keeps_the_level_that_lyu_su_and_li_give_it(cutoff: int) -> None:
    true_level = (1 + 6 * cutoff) / 4
    worst = max(
        worst_loss(q, cutoff, **SCALES["svt4"](cutoff))
        for q in ([0.0, 0.0, 0.0], [-6.0, 0.0, 6.0], [-9.0, -9.0, -9.0])
    )
    assert 1.0 < worst <= true_level + 1e-9


def test_svt3_breaks() -> None:
    scales = {"threshold_scale": 2.0, "query_scale": 2.0}  # the cutoff is 1
    p = distributions.release_probability([-1.0] * 8 + [0.0], high=1.0, **scales)
    q = distributions.release_probability([0.0] * 8 + [-1.0], high=1.0, **scales)
    assert math.log(p / q) == pytest.approx(2.823, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "cutoff", "left", "right", "pattern", "expected"),
    [
        ("svt4", 5, [-1.0] * 5 + [1.0] * 5, [0.0] * 10, (0,) * 5 + (1,) * 5, 4.376),
        ("svt6", 0, [-1.0] * 5 + [1.0] * 5, [0.0] * 10, (0,) * 5 + (1,) * 5, 3.313),
        ("svt6", 0, [-0.5] * 3 + [0.5] * 3, [0.5] * 3 + [-0.5] * 3, (0,) * 3 + (1,) * 3, 2.369),
    ],
)
def test_svt4_and_svt6_break(name, cutoff, left, right, pattern, expected) -> None:
    assert loss(left, right, pattern, **SCALES[name](cutoff))[2] == pytest.approx(
        expected, abs=1e-3
    )


def test_svt5_breaks_without_bound() -> None:
    p = distributions.pattern_probability([0.0, 1.0], (0, 1), **SCALES["svt5"](0))
    q = distributions.pattern_probability([1.0, 0.0], (0, 1), **SCALES["svt5"](0))
    assert p == pytest.approx((1 - math.exp(-0.5)) / 2)
    assert q == 0.0


# Mutants


def test_mutants_break_at_their_pair() -> None:
    left, right = [-1.0] * 5 + [1.0] * 5, [0.0] * 10
    unhalted = {"threshold_scale": 2.0, "query_scale": 4.0}
    p, q, epsilon = loss(left, right, (0,) * 5 + (1,) * 5, **unhalted)
    assert (p, q, epsilon) == pytest.approx((0.00377, 0.00056, 1.908), abs=1e-3)
    p, q, epsilon = loss([0.0] * 8, [-1.0] * 8, (1,) * 8, threshold_scale=0.0, query_scale=4.0)
    assert (p, epsilon) == pytest.approx((0.5**8, 2.0))
    p, q, epsilon = loss(
        [-2.0, -2.0, 2.0] * 4, [-1.0, -1.0, 1.0] * 4, (0, 0, 1) * 4, **unhalted, redraw=True
    )
    assert (p, q, epsilon) == pytest.approx((0.0051, 0.00098, 1.661), abs=1e-3)


def test_correct_ones_hold_at_the_pairs_of_their_mutants() -> None:
    left, right, pattern = [-1.0] * 5 + [1.0] * 5, [0.0] * 10, (0,) * 5 + (1,) * 5
    assert loss(left, right, pattern, **SCALES["svt1"](5))[2] <= 1
    left, right, pattern = [-2.0, -2.0, 2.0] * 4, [-1.0, -1.0, 1.0] * 4, (0, 0, 1) * 4
    assert loss(left, right, pattern, **SCALES["svt2"](4))[2] <= 1
    above = {"threshold_scale": 2.0, "query_scale": 4.0}
    assert loss([0.0] * 8, [-1.0] * 8, (1,) * 8, **above)[2] <= 1


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return max(float(np.maximum(a - math.exp(epsilon) * b, 0).sum()) for a, b in [(p, q), (q, p)])


def halting_time_distribution(yes: float, n_queries: int, cutoff: int) -> np.ndarray:
    """Return the distribution of the halting time, or of the number of yes without a halt.

    The halting time, or else the number of yes, is a sufficient statistic.
    """
    times = np.arange(cutoff, n_queries + 1)
    halted = binom.pmf(cutoff - 1, times - 1, yes) * yes
    return np.concatenate([halted, binom.pmf(np.arange(cutoff), n_queries, yes)])


def test_fixed_threshold_mutant_breaks_where_the_original_holds() -> None:
    cutoff, n_queries, epsilon, delta = 8, 200, 0.5, 1e-3
    allowed = math.sqrt(cutoff * math.log(1 / delta)) * epsilon, 2.0**-cutoff + delta
    left, right = (float(distributions.laplace_tail(-x, 1 / epsilon)) for x in (2.0, 1.0))
    original = hockey_stick(
        halting_time_distribution(left, n_queries, cutoff),
        halting_time_distribution(right, n_queries, cutoff),
        allowed[0],
    )
    k = np.arange(n_queries + 1)
    mutant = hockey_stick(binom.pmf(k, n_queries, left), binom.pmf(k, n_queries, right), allowed[0])
    assert original == pytest.approx(0.0038, abs=1e-4)
    assert original <= allowed[1]
    assert mutant == pytest.approx(0.793, abs=1e-3)


def test_lemma_18_needs_hidden_constants_above_one() -> None:
    """Check that Lemma 18 fails if both constants are 1 and the queries are on the threshold.

    The exact delta is 0.16, and the lemma gives 0.0049.
    """
    epsilon, cutoff, delta = 0.5, 8, 1e-3
    laws_ = [
        halting_time_distribution(float(distributions.laplace_tail(x, 2.0)), 200, cutoff)
        for x in (0.0, 1.0)
    ]
    exact = hockey_stick(*laws_, math.sqrt(cutoff * math.log(1 / delta)) * epsilon)
    assert exact == pytest.approx(0.164, abs=1e-3)
    assert exact > 2.0**-cutoff + delta


@pytest.mark.parametrize("cutoff", [64, 256, 1024])
def test_lemma_18_fails_for_every_hidden_constant(cutoff: int) -> None:
    """Check that Lemma 18 fails for every hidden constant.

    At fixed epsilon and delta, the true epsilon grows like c. The epsilon of the lemma grows like
    sqrt(c). The expected loss of c rounds is c times a relative entropy. Advanced composition
    contains a term c epsilon**2, but the lemma does not. A constant K is refuted for all c >= (K /
    0.5)**2.
    """
    epsilon, delta = 0.5, 0.5
    near, far = (
        halting_time_distribution(
            float(distributions.laplace_tail(x, 1 / epsilon)), 12 * cutoff, cutoff
        )
        for x in (0.0, 1.0)
    )
    lemma = (
        math.sqrt(cutoff * math.log(1 / delta)) * epsilon
    )  # to be multiplied by the hidden constant
    assert hockey_stick(near, far, 0.5 * math.sqrt(cutoff) * lemma) > delta + 0.1


@pytest.mark.statistical
def test_mutants_follow_their_broken_distribution() -> None:
    rng = np.random.default_rng(56)
    queries = np.array([0.5, -0.3, 1.0, -2.0])
    exact = mutants.above_threshold_exact_threshold(queries, N, threshold=0.0, epsilon=1.0, rng=rng)
    patterns, distribution = patterns_and_distribution(
        queries, 1, halting_answer=0, threshold_scale=0.0, query_scale=4.0
    )
    assert_frequencies(distributions.pattern_counts(exact, patterns), distribution)
    unhalted = {"threshold_scale": 2.0, "query_scale": 4.0}
    never = mutants.above_threshold_never_halts(queries, N, threshold=0.0, epsilon=1.0, rng=rng)
    patterns, distribution = patterns_and_distribution(queries, None, **unhalted)
    assert_frequencies(distributions.pattern_counts(never, patterns), distribution)
    kwargs = {"thresholds": 0.0, "cutoff": 2, "epsilon": 1.0, "sensitivity": 1.0, "rng": rng}
    one = mutants.svt1_cutoff_not_in_noise(queries, N, **kwargs)
    patterns, distribution = patterns_and_distribution(queries, 2, **unhalted)
    assert_frequencies(distributions.pattern_counts(one, patterns), distribution)
    two = mutants.svt2_cutoff_not_in_noise(queries, N, **kwargs)
    _, distribution = patterns_and_distribution(queries, 2, **unhalted, redraw=True)
    assert_frequencies(distributions.pattern_counts(two, patterns), distribution)
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies(distributions.pattern_counts(one, patterns), distribution)
    free = mutants.fixed_threshold_sparse_vector_without_cutoff(
        queries, N, thresholds=0.0, cutoff=1, epsilon=1.0, rng=rng
    )
    patterns, distribution = patterns_and_distribution(
        queries, None, threshold_scale=0.0, query_scale=1.0
    )
    assert_frequencies(distributions.pattern_counts(free, patterns), distribution)


@pytest.mark.statistical
def test_shared_query_noise_mutant_shows_the_order() -> None:
    z, weights = distributions.laplace_panels([-0.5, 0.5], 2.0, 2.0)
    probability = float(
        (
            weights
            * (distributions.laplace_cdf(0.5 - z, 4) - distributions.laplace_cdf(-0.5 - z, 4))
        ).sum()
    )
    assert probability == pytest.approx(0.083, abs=1e-3)
    for queries, p in [([1.0, 0.0], probability), ([0.0, 1.0], 0.0)]:
        answers = mutants.above_threshold_shared_query_noise(
            queries, N, threshold=0.5, epsilon=1.0, rng=np.random.default_rng(57)
        )
        hits = int((answers == [1.0, 0.0]).all(axis=1).sum())
        assert_frequencies([hits, N - hits], [p, 1 - p])
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies([hits, N - hits], [probability, 1 - probability])


@pytest.mark.statistical
def test_the_helpers_themselves() -> None:
    """Check the assertions of the test helpers.

    A category of probability 0 admits no count. A distribution is judged by its quantiles.
    """
    assert_frequencies([0, 5], [0.0, 1.0])
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies([1, 10**6], [0.0, 1.0])
    with pytest.raises(AssertionError, match="rejected"):
        assert_distribution(np.full(100, 0.5), lambda x: x)
    with pytest.raises(ValueError, match="sum to 1"):
        assert_frequencies([1, 2], [0.5, 0.6])
