"""Tests of bounds for guesses of one run.

The tests cover all mechanisms, by linear programs and by enumeration.
"""

from __future__ import annotations

import itertools
import math
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, sparse, special
from scipy.optimize import linprog
from scipy.stats import binom, norm

from dpaudit.claims import ApproxDP, GaussianDP, PureDP
from dpaudit.stats import (
    Allowance,
    Stages,
    crossing_bound,
    guess_epsilon,
    guess_mu,
    guess_p_value,
    heights_refused,
    lower_proportion,
    one_run_walk,
    tail_bound,
    walk_epsilon,
    walk_p_value,
)

# --- against every mechanism -----------------------------------------------------------------


def most_likely(m, guesses, wanted, curve, *, sides=(0, 1), ordered=False):
    """Return the largest probability of `wanted` over all mechanisms with a curve {t: delta}.

    Without loss of generality, the output consists of the guesses, which are ordered pairs (canary,
    guess). `wanted` is a function of the pattern of correct guesses. The linear program has one
    variable for each probability p(y | s) and one variable for each positive part.
    """
    coins = list(itertools.product((0, 1), repeat=m))
    outputs = [
        tuple(zip(canaries, answer, strict=True))
        for canaries in (itertools.permutations if ordered else itertools.combinations)(
            range(m), guesses
        )
        for answer in itertools.product(sides, repeat=guesses)
    ]
    n, k = len(coins), len(outputs)
    gain = [float(wanted([s[i] == g for i, g in y])) / n for s in coins for y in outputs]
    neighbours = [
        (a, b)
        for a, b in itertools.permutations(range(n), 2)
        if sum(x != y for x, y in zip(coins[a], coins[b], strict=True)) == 1
    ]
    parts = [(a, b, t) for a, b in neighbours for t in curve]
    rows, columns, values = [], [], []
    for q, (a, b, t) in enumerate(parts):
        for j in range(k):
            rows += [q * k + j] * 3
            columns += [a * k + j, b * k + j, n * k + q * k + j]
            values += [1.0, -math.exp(t), -1.0]
    n_parts, n_all = len(parts) * k, (n + len(parts)) * k
    positive = sparse.csr_matrix((values, (rows, columns)), shape=(n_parts, n_all))
    each = np.ones((1, k))
    sums = sparse.hstack(
        [sparse.csr_matrix((len(parts), n * k)), sparse.kron(sparse.eye(len(parts)), each)]
    )
    whole = sparse.hstack([sparse.kron(sparse.eye(n), each), sparse.csr_matrix((n, n_parts))])
    found = linprog(
        -np.array(gain + [0.0] * n_parts),
        A_ub=sparse.vstack([positive, sums]),
        b_ub=[0.0] * n_parts + [curve[t] for _, _, t in parts],
        A_eq=whole,
        b_eq=np.ones(n),
        bounds=(0, None),
        method="highs",
    )
    return -found.fun


def at_least(v):
    return lambda right: sum(right) >= v


CASES = [
    (1, 1, 1, 0.5, 0.1),
    (2, 2, 2, 1.0, 0.05),
    (3, 3, 3, 0.5, 0.1),
    (3, 3, 2, 0.5, 0.02),
    (3, 2, 2, 0.5, 0.05),
    (3, 2, 1, 0.5, 0.05),
    (4, 4, 3, 0.2, 0.1),
    (3, 3, 2, 1.0, 0.0),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_bound_is_the_best_that_any_mechanism_can_do(case):
    m, n, v, epsilon, delta = case
    best = most_likely(m, n, at_least(v), {epsilon: delta})
    assert guess_p_value(v, n, m, ApproxDP(epsilon, delta)) == pytest.approx(best, abs=2e-6)
    assert guess_p_value(v, n, m, ApproxDP(epsilon, delta)) > best - 1e-7


@pytest.mark.parametrize("case", CASES[1:6], ids=str)
def test_guesses_of_one_kind_get_along_with_half_of_delta(case):
    m, n, v, epsilon, delta = case
    best = most_likely(m, n, at_least(v), {epsilon: delta}, sides=(1,))
    half = guess_p_value(v, n, m, ApproxDP(epsilon, delta), one_sided=True)
    assert best - 1e-7 < half < guess_p_value(v, n, m, ApproxDP(epsilon, delta))


def test_half_of_delta_is_not_enough_for_guesses_of_both_kinds():
    best = most_likely(2, 2, at_least(2), {1.0: 0.05})
    assert guess_p_value(2, 2, 2, ApproxDP(1.0, 0.05), one_sided=True) < best - 0.005


def test_one_canary_of_two_guessed_top_is_sharp():
    """Check that the bound is sharp for one guess at the top of two canaries.

    The revealed canary is the guessed canary, so none of the budget is lost.
    """
    best = most_likely(2, 1, at_least(1), {0.5: 0.05}, sides=(1,))
    assert guess_p_value(1, 1, 2, ApproxDP(0.5, 0.05), one_sided=True) >= best - 1e-7


@pytest.mark.parametrize(("m", "n", "v", "mu"), [(2, 2, 2, 1.0), (2, 1, 1, 0.5), (3, 3, 3, 0.7)])
def test_no_mechanism_that_keeps_a_curve_beats_its_bound(m, n, v, mu):
    claim = GaussianDP(mu)
    curve = {t: claim.delta(t) for t in (0.0, 0.3, 0.8, 1.5)}
    best = most_likely(m, n, at_least(v), curve)
    bound = tail_bound(v, n, Allowance(np.exp([*curve]), m * np.array([*curve.values()])))
    assert best - 1e-7 < bound < best + 0.08
    assert guess_p_value(v, n, m, claim) < bound + 1e-4  # a finer grid gives more


@pytest.mark.parametrize("delta", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("heights", [(1, 2), (2, 2), (2, 3)], ids=str)
def test_no_mechanism_crosses_more_often_than_the_walk(delta, heights):
    stages = Stages((heights[0], 3), (1.0, 1.0))

    def crossed(right):
        return sum(right[: heights[0]]) >= heights[0] or sum(right) >= heights[1]

    best = most_likely(3, 3, crossed, {0.5: delta}, ordered=True)
    bound = crossing_bound(heights, stages, 0.5, 3 * delta)
    assert best - 1e-7 < bound < best + delta + 1e-6


# --- closed forms and older bounds -----------------------------------------------------------


@given(st.integers(1, 60), st.data(), st.floats(0.0, 4.0))
def test_without_delta_it_is_a_binomial_tail(n, data, epsilon):
    v = data.draw(st.integers(0, n))
    assert guess_p_value(v, n, 100, PureDP(epsilon)) == pytest.approx(
        binom.sf(v - 1, n, special.expit(epsilon)), abs=1e-11, rel=1e-8
    )


def steinke(m, n, v, epsilon, delta):
    """Return the bound of Theorem 5.2 of Steinke, Nasr and Jagielski (2023), as printed."""
    rate = special.expit(epsilon)
    beta = binom.sf(v - 1, n, rate)
    i = np.arange(1, v + 1)
    return beta + 2 * m * delta * float(np.max((binom.sf(v - i - 1, n, rate) - beta) / i))


@given(st.integers(2, 40), st.data(), st.floats(0.0, 3.0), st.floats(1e-6, 0.02))
def test_it_is_never_above_the_bounds_it_replaces(n, data, epsilon, delta):
    rate = special.expit(epsilon)
    v, m = data.draw(st.integers(math.ceil(n * rate), n)), data.draw(st.integers(n, 3 * n))
    bound = guess_p_value(v, n, m, ApproxDP(epsilon, delta))
    assert bound <= min(1.0, steinke(m, n, v, epsilon, delta)) + 1e-9
    assert bound <= binom.sf(v - 1, n, rate) + m * delta * (1 - rate) + 1e-9


def refuted_by_the_recursion(m, n, v, mu, p):
    """Return whether the recursion of Mahloujifar, Melis and Chaudhuri (2025) refutes.

    The recursion is for Gaussian DP.
    """
    right, wrong = p * v / m, p * (n - v) / m
    for i in range(v - 1, -1, -1):
        more = max(wrong, norm.cdf(norm.ppf(right) - mu))
        right, wrong = min(right + i / (n - i) * (more - wrong), 1.0), more
    return right + wrong > n / m


@pytest.mark.parametrize("case", [(60, 30, 29, 1.0), (200, 50, 46, 1.0), (100, 100, 90, 1.0)])
def test_for_curves_it_is_below_the_published_recursion(case):
    m, n, v, mu = case
    bound = guess_p_value(v, n, m, GaussianDP(mu))
    assert refuted_by_the_recursion(m, n, v, mu, bound * 1.3)
    assert not refuted_by_the_recursion(m, n, v, mu, bound)  # the recursion certifies less


# --- the walk: full enumeration --------------------------------------------------------------


def patterns(n, rate):
    """Yield every pattern of correct guesses under randomised response, with its probability."""
    for right in itertools.product((0, 1), repeat=n):
        yield np.array(right), rate ** sum(right) * (1 - rate) ** (n - sum(right))


@given(st.data(), st.floats(0.0, 3.0))
def test_the_crossing_probability_is_that_of_all_patterns(data, epsilon):
    chosen = tuple(sorted(data.draw(st.sets(st.integers(1, 8), min_size=1, max_size=4))))
    stages = Stages(chosen, (1.0,) * len(chosen))
    heights = [data.draw(st.integers(1, k + 1)) for k in chosen]
    exact = sum(
        p
        for right, p in patterns(8, special.expit(epsilon))
        if any(right[:k].sum() >= h for k, h in zip(chosen, heights, strict=True))
    )
    assert crossing_bound(heights, stages, epsilon, 0.0) == pytest.approx(exact, rel=3e-9)


STAGES = Stages((3, 4, 6, 8, 10), (1.0, 1.0, 1.0, 1.0, 0.25))
GRID = (0.0, 0.3, 0.5, 0.75, 1.0, 1.37, 2.0, 3.0)


def false_refutations(epsilon, alpha):
    """Return the exact probabilities of a wrong refutation and of a wrong certified epsilon.

    The mechanism is randomised response.
    """
    above = 0.0
    for counts, p in counts_of_patterns(epsilon).items():
        if walk_epsilon(counts, STAGES, 10, delta=0.0, failure_prob=alpha) > epsilon + 1e-12:
            above += p
    return false_p_values(epsilon, alpha), above


def false_p_values(epsilon, alpha):
    return sum(
        p
        for counts, p in counts_of_patterns(epsilon).items()
        if walk_p_value(counts, STAGES, 10, epsilon=epsilon, delta=0.0) <= alpha
    )


@cache
def counts_of_patterns(epsilon):
    seen = {}
    for right, p in patterns(10, 1 / (1 + math.exp(-epsilon))):
        counts = tuple(int(right[:k].sum()) for k in STAGES.guesses)
        seen[counts] = seen.get(counts, 0.0) + p
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", GRID[::2])
def test_the_extremal_mechanism_is_refuted_no_more_often_than_stated(epsilon):
    for alpha in (0.3, 0.05):
        refuted, above = false_refutations(epsilon, alpha)
        assert max(refuted, above) <= alpha


def test_the_level_is_used():
    assert max(false_p_values(epsilon, 0.3) for epsilon in GRID) > 0.2


@pytest.mark.parametrize("mutant", ["height", "rate", "paid"])
def test_enumeration_sees_a_wrong_boundary_a_wrong_rate_and_looks_not_paid_for(mutant, monkeypatch):
    if mutant == "height":
        right = one_run_walk.heights_of
        monkeypatch.setattr(one_run_walk, "heights_of", lambda *a: right(*a) + 1)
    elif mutant == "rate":
        lower = SimpleNamespace(expit=lambda e: special.expit(e - 0.5), bdtrc=special.bdtrc)
        monkeypatch.setattr(one_run_walk, "special", lower)
    else:
        monkeypatch.setattr(one_run_walk, "crossing_bound", lambda *a: 0.0)
        union = one_run_walk._union
        monkeypatch.setattr(one_run_walk, "_union", lambda *a: union(*a) / 3.25)
    assert max(false_p_values(epsilon, 0.3) for epsilon in GRID) > 0.3


@pytest.mark.parametrize("delta", [0.0, 1e-4, 1e-2])
def test_heights_are_the_least_counts_that_are_refuted(delta):
    stages = Stages.of(40, 0.05)
    heights = heights_refused(stages, 40, epsilon=0.7, delta=delta, failure_prob=0.05)
    for i, (k, height) in enumerate(zip(stages.guesses, heights.tolist(), strict=True)):
        for right, refuted in ((height, True), (height - 1, False)):
            if right > k:
                continue
            # At this test, `right` guesses are correct. All other tests have as few correct guesses
            # as possible.
            counts = [
                max(right - (k - j), 0) if j < k else right if i <= at else 0
                for at, j in enumerate(stages.guesses)
            ]
            p = walk_p_value(counts, stages, 40, epsilon=0.7, delta=delta)
            assert (p <= 0.05) == refuted


# --- certified numbers -----------------------------------------------------------------------


def test_certified_epsilon_is_the_clopper_pearson_bound_without_delta():
    rate = lower_proportion(90, 100, 0.05)
    found = guess_epsilon(90, 100, 300, delta=0.0, failure_prob=0.05)
    assert found == pytest.approx(special.logit(rate), rel=1e-6)
    assert guess_epsilon(50, 100, 300, delta=0.0, failure_prob=0.05) == 0.0


@pytest.mark.parametrize("one_sided", [False, True])
def test_certified_numbers_are_where_their_p_values_pass_the_level(one_sided):
    found = guess_epsilon(97, 100, 300, delta=1e-4, failure_prob=0.01, one_sided=one_sided)
    for epsilon, refuted in ((found - 1e-3, True), (found + 1e-3, False)):
        claim = ApproxDP(epsilon, 1e-4)
        assert (guess_p_value(97, 100, 300, claim, one_sided=one_sided) <= 0.01) == refuted
    mu = guess_mu(57, 60, 200, failure_prob=0.05, one_sided=one_sided)
    for value, refuted in ((mu * 0.999, True), (mu * 1.01, False)):
        claim = GaussianDP(value)
        assert (guess_p_value(57, 60, 200, claim, one_sided=one_sided) <= 0.05) == refuted
    assert guess_mu(30, 60, 200, failure_prob=0.05) == 0.0


def test_the_grid_of_the_walk_reads_as_it_was_tested():
    """Check that the walk returns exact hundredths.

    Each returned value is refused, and the next hundredth is not refused.
    """
    found = []
    for wrong in range(30):
        stages, counts = Stages((200,), (1.0,)), [200 - wrong]
        epsilon = walk_epsilon(counts, stages, 200, delta=0.0, failure_prob=0.05)
        assert walk_p_value(counts, stages, 200, epsilon=epsilon, delta=0.0) <= 0.05
        assert walk_p_value(counts, stages, 200, epsilon=epsilon + 0.01, delta=0.0) > 0.05
        assert repr(epsilon) == repr(round(epsilon, 2))
        found.append(round(100 * epsilon))
    assert any(
        hundredths * 0.01 != hundredths / 100 for hundredths in found
    )  # otherwise nothing is tested


def test_more_delta_certifies_less():
    stages = Stages.of(300, 0.05)
    counts = [k - k // 20 for k in stages.guesses]
    walked = [
        walk_epsilon(counts, stages, 300, delta=d, failure_prob=0.05) for d in (0, 1e-4, 1e-2)
    ]
    fixed = [guess_epsilon(97, 100, 300, delta=d, failure_prob=0.05) for d in (0.0, 1e-4, 1e-2)]
    assert walked == sorted(walked, reverse=True)
    assert fixed == sorted(fixed, reverse=True)
    assert walked[1] > 0.9 * walked[0] > 0


def test_the_walk_costs_little_beside_the_best_number_of_guesses():
    """Check that the walk costs little compared with the best number of guesses.

    The best number is fixed in hindsight, at counts of Gaussian scores.
    """
    m = 1000
    stages = Stages.of(m, 0.05)

    def right(k):
        cut = optimize.brentq(lambda t: norm.sf(t - 1) + norm.sf(t + 1) - k / m, 0, 9)
        return round(m * norm.sf(cut - 1))

    best = max(
        guess_epsilon(right(k), k, m, delta=0.0, failure_prob=0.05) for k in range(50, 500, 10)
    )
    counts = np.array([right(min(k, 999)) for k in stages.guesses])
    assert walk_epsilon(counts.tolist(), stages, m, delta=0.0, failure_prob=0.05) > 0.93 * best


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: guess_p_value(5, 4, 10, PureDP(1.0)), "correct must be at most guesses"),
        (lambda: guess_p_value(3, 11, 10, PureDP(1.0)), "guesses at most canaries"),
        (lambda: guess_epsilon(1, 1, 1, delta=-1.0, failure_prob=0.1), "delta must be"),
        (
            lambda: walk_p_value([3], Stages((2,), (1.0,)), 9, epsilon=1.0, delta=0.0),
            "correct",
        ),
        (
            lambda: walk_p_value([1, 0], Stages((1, 2), (1, 1)), 9, epsilon=1.0, delta=0.0),
            "not decrease",
        ),
        (
            lambda: walk_p_value([1], Stages((2,), (1.0,)), 1, epsilon=1.0, delta=0.0),
            "canaries",
        ),
        (lambda: Stages((2, 1), (1.0, 1.0)), "increasing"),
        (lambda: Stages((1,), (0.0,)), "weights"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
