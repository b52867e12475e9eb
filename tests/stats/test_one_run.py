"""Tests of bounds for guesses of one run.

The tests cover all mechanisms, by linear programs and by enumeration.
"""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, special
from scipy.optimize import linprog
from scipy.stats import binom, norm

from dpaudit.claims import ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP
from dpaudit.stats import (
    Allowance,
    GuessPlan,
    GuessPlanner,
    Stages,
    guess_p_value,
    lower_proportion,
    one_run,
    planned_guesses,
    sum_bound,
    tail_bound,
    wrong_sums,
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
@pytest.mark.parametrize(("numbers", "wrong"), [((1, 3), 1), ((2, 3), 1), ((1, 2, 3), 2)], ids=str)
def test_no_mechanism_has_a_small_sum_more_often_than_its_bound(delta, numbers, wrong):
    def small(right):
        return sum(n - sum(right[:n]) for n in numbers) <= wrong

    best = most_likely(3, 3, small, {0.5: delta}, ordered=True)
    allowance = Allowance.of_claim(ApproxDP(0.5, delta), 3)
    bound = sum_bound(wrong, numbers, allowance)
    assert best - 1e-7 < bound
    if delta == 0:  # randomised response attains the bound
        assert bound == pytest.approx(best, abs=1e-7)


def test_a_sum_that_ignores_delta_is_exceeded_by_some_mechanism():
    def small(right):
        return sum(n - sum(right[:n]) for n in (1, 3)) <= 1

    best = most_likely(3, 3, small, {0.5: 0.1}, ordered=True)
    assert sum_bound(1, (1, 3), Allowance.of_claim(PureDP(0.5), 3)) < best - 0.05


# --- closed forms and older bounds -----------------------------------------------------------


@given(st.integers(1, 60), st.data(), st.floats(0.0, 4.0))
def test_without_delta_it_is_a_binomial_tail(n, data, epsilon):
    v = data.draw(st.integers(0, n))
    assert guess_p_value(v, n, 100, PureDP(epsilon)) == pytest.approx(
        binom.sf(v - 1, n, special.expit(epsilon)), abs=1e-11, rel=2e-8
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
    assert bound <= min(1.0, steinke(m, n, v, epsilon, delta)) + 2e-8
    assert bound <= binom.sf(v - 1, n, rate) + m * delta * (1 - rate) + 2e-8


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


# --- sums over numbers of guesses: full enumeration -------------------------------------------


def patterns(n, rate):
    """Yield every pattern of correct guesses under randomised response, with its probability."""
    for right in itertools.product((0, 1), repeat=n):
        yield np.array(right), rate ** sum(right) * (1 - rate) ** (n - sum(right))


@given(st.data(), st.floats(0.0, 3.0))
def test_the_distribution_of_sums_is_that_of_all_patterns(data, epsilon):
    numbers = sorted(data.draw(st.lists(st.integers(1, 8), min_size=1, max_size=4)))
    most = data.draw(st.integers(0, sum(numbers) + 2))
    exact = np.zeros(most + 1)
    for right, p in patterns(8, special.expit(epsilon)):
        wrong = sum(n - int(right[:n].sum()) for n in numbers)
        if wrong <= most:
            exact[wrong] += p
    found = wrong_sums(numbers, np.full(len(numbers), special.expit(epsilon)), most)
    assert found == pytest.approx(exact, abs=1e-13)


def test_rates_of_sums_belong_to_the_guesses_between_the_numbers():
    found = wrong_sums([1, 3], np.array([0.9, 0.6]), 4)
    # The first guess counts twice. The other two guesses count once.
    last = np.array([0.36, 0.48, 0.16])
    assert found == pytest.approx(0.9 * np.append(last, [0, 0]) + 0.1 * np.append([0, 0], last))


@pytest.mark.parametrize("claim", [PureDP(0.1), ApproxDP(0.1, 1e-6), GaussianDP(0.1)], ids=str)
def test_a_recursion_that_starts_late_gives_the_full_bound(claim, monkeypatch):
    guesses, canaries = 3000, 9000
    allowance = Allowance.of_claim(claim, canaries)
    first, started = one_run._first_count, []

    def late(*arguments):
        started.append(first(*arguments))
        return started[-1]

    for correct in (1610, 1700, 1800):
        monkeypatch.setattr(one_run, "_first_count", late)
        fast = tail_bound(correct, guesses, allowance)
        monkeypatch.setattr(one_run, "_first_count", lambda v, n, rate: n)
        assert fast == pytest.approx(tail_bound(correct, guesses, allowance), rel=1e-6)
    assert claim == PureDP(0.1) or min(started) < guesses  # otherwise, nothing is tested


# --- planned numbers of guesses: full enumeration ---------------------------------------------

GRID = (0.0, 0.03, 0.3, 0.5, 0.75, 1.0, 1.37, 2.0, 3.0)


@cache
def counts_of_patterns(epsilon, m=10):
    """Return the probabilities of all paths of correct guesses under randomised response."""
    return {
        (0, *np.cumsum(right).tolist()): p for right, p in patterns(m, 1 / (1 + math.exp(-epsilon)))
    }


def false_p_values(epsilon, alpha):
    planner = GuessPlanner(10, alpha)
    return sum(
        p
        for right, p in counts_of_patterns(epsilon).items()
        if planner.p_value(np.array(right), PureDP(epsilon)) <= alpha
    )


@pytest.mark.sampled
@pytest.mark.parametrize("alpha", [0.3, 0.05])
@pytest.mark.parametrize("epsilon", GRID)
def test_the_extremal_mechanism_is_refuted_no_more_often_than_stated(epsilon, alpha):
    assert false_p_values(epsilon, alpha) <= alpha


def test_the_level_is_used():
    assert any(false_p_values(epsilon, 0.3) > 0.2 for epsilon in GRID)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_a_certified_epsilon_exceeds_the_truth_no_more_often_than_stated(delta):
    planner, alpha = GuessPlanner(10, 0.3), 0.3
    certified = {
        right: planner.epsilon(np.array(right), delta) for right in counts_of_patterns(1.0)
    }
    assert len(set(certified.values())) > 4
    largest = 0.0
    for epsilon in GRID:
        law = counts_of_patterns(epsilon)
        wrong = sum(p for right, p in law.items() if certified[right] > epsilon + 1e-12)
        largest = max(largest, wrong)
    assert largest <= alpha
    assert delta > 0 or largest > 0.15


@pytest.mark.slow
@pytest.mark.parametrize("mutant", ["count", "rate", "shares"])
def test_enumeration_sees_a_wrong_count_a_wrong_rate_and_shares_that_are_not_paid(
    mutant, monkeypatch
):
    bound, plan = planned_guesses.sum_bound, planned_guesses._plan
    planned_guesses._plan_of_epsilon.cache_clear()
    if mutant == "count":
        monkeypatch.setattr(
            planned_guesses, "sum_bound", lambda w, n, a: bound(max(w - 1, 0), n, a)
        )
    elif mutant == "rate":
        monkeypatch.setattr(
            planned_guesses,
            "sum_bound",
            lambda w, n, a: bound(w, n, Allowance(a.slopes / 1.7, a.budgets)),
        )
    else:

        class Unpaid(GuessPlan):
            def __post_init__(self):
                object.__setattr__(self, "shares", (1.0,) * len(self.tests))

        monkeypatch.setattr(
            planned_guesses,
            "_plan",
            lambda *a: Unpaid((*plan(*a).tests, (3,), (5,), (7,)), (1.0,) * 9),
        )
    is_seen = any(false_p_values(epsilon, 0.3) > 0.3 for epsilon in GRID)
    planned_guesses._plan_of_epsilon.cache_clear()
    assert is_seen


def test_a_search_does_not_skip_an_edge_that_is_not_refuted():
    """Check the search of the theorem with a test that refutes some larger values again."""
    edges = (1.0, 2.0, 4.0)
    found = planned_guesses._certified(lambda x, cell: x <= 1.5 or x > 2.5, edges, 0.0)
    assert found == pytest.approx(1.5, abs=1e-3)
    assert planned_guesses._certified(lambda x, cell: True, edges, 0.0) == 4.0
    visited: list[float] = []
    assert planned_guesses._certified(lambda x, cell: bool(visited.append(x)), edges, 0.0) == 0.0
    assert min(visited) > 1e-5  # a search of nothing ends, and never tests 0


@pytest.mark.parametrize("mu", [4.0, 6.0, 9.0])
def test_curves_with_huge_slopes_have_a_useful_plan(mu):
    main = GuessPlanner(1000, 0.05).plan(GaussianDP(mu)).tests[0]
    assert main[0] > 50  # fewer guesses cannot show such a mu


def test_random_guesses_certify_nothing():
    right = (np.arange(101) + 1) // 2
    planner = GuessPlanner(100, 0.05)
    assert planner.epsilon(right, 0.0) == planner.epsilon(right, 1e-3) == planner.mu(right) == 0.0


@given(st.floats(0.0, 40.0))
def test_a_cell_contains_its_right_edge(value):
    edges = planned_guesses._EPSILONS
    cell = planned_guesses._cell(edges, value)
    assert cell == len(edges) - 1 or value <= edges[cell]
    assert cell == 0 or edges[cell - 1] < value


@pytest.mark.slow
def test_claims_of_one_cell_have_one_plan_and_a_plan_ignores_the_data():
    planner = GuessPlanner(1000, 0.05)
    edges = planned_guesses._EPSILONS
    low, high = edges[20], edges[21]
    inside = {planner.plan(ApproxDP(e, 1e-4)) for e in (low * 1.0001, (low + high) / 2, high)}
    assert len(inside) == 1
    assert planner.plan(ApproxDP(low, 1e-4)) not in inside
    for claim in (PureDP(1.0), ApproxDP(1.0, 1e-3), GaussianDP(1.0), ZeroConcentratedDP(0.1)):
        plan = planner.plan(claim)
        assert math.fsum(plan.shares) == pytest.approx(1.0)
        assert plan.numbers[-1] <= 1000


@pytest.mark.parametrize("m", [1, 2, 3, 5, 10, 31])
@pytest.mark.parametrize("one_sided", [False, True])
def test_few_canaries_have_a_plan(m, one_sided):
    planner, right = GuessPlanner(m, 0.05, one_sided), np.arange(m + 1)
    for claim in (PureDP(0.5), ApproxDP(0.5, 1e-3), GaussianDP(0.5)):
        assert 0 < planner.p_value(right, claim) <= 1
    assert planner.epsilon(right, 0.0) <= special.logit(0.05 ** (1 / m)) or m < 5


def expected_path(m, mu):
    """Return expected numbers of correct guesses of Gaussian scores, rounded."""
    numbers, cuts = np.arange(m + 1), np.linspace(mu / 2 + 9, 0, 20001)
    right = norm.sf(cuts - mu / 2)
    expected = m * np.interp(numbers / m, right + norm.sf(cuts + mu / 2), right)
    wrong = numbers - np.minimum(np.floor(expected + 0.5), numbers)
    return (numbers - np.maximum.accumulate(wrong)).astype(np.int64)


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0])
def test_a_plan_certifies_nearly_as_much_as_the_best_number_in_hindsight(mu):
    right, planner = expected_path(1000, mu), GuessPlanner(1000, 0.05)
    tried = np.unique(np.geomspace(20, 600, 10).astype(int)).tolist()
    fixed = [GuessPlanner(1000, 0.05, guesses=n) for n in tried]
    for delta in (0.0, 1e-4):
        best = max(planner.epsilon(right, delta) for planner in fixed)
        assert planner.epsilon(right, delta) > 0.94 * best
    assert planner.mu(right) > 0.94 * max(planner.mu(right) for planner in fixed)


# --- certified numbers -----------------------------------------------------------------------


def path(correct, canaries):
    """Return a walk whose first `correct` guesses are correct, and no others."""
    return np.minimum(np.arange(canaries + 1), correct)


def test_certified_epsilon_is_the_clopper_pearson_bound_without_delta():
    planner = GuessPlanner(300, 0.05, guesses=100)
    found = planner.epsilon(path(90, 300), 0.0)
    assert found == pytest.approx(special.logit(lower_proportion(90, 100, 0.05)), rel=1e-4)
    assert planner.epsilon(path(50, 300), 0.0) == 0.0


@pytest.mark.parametrize("one_sided", [False, True])
def test_certified_numbers_are_where_their_p_values_pass_the_level(one_sided):
    planner = GuessPlanner(300, 0.01, one_sided=one_sided, guesses=100)
    found = planner.epsilon(path(97, 300), 1e-4)
    for epsilon, refuted in ((found - 1e-3, True), (found + 1e-3, False)):
        claim = ApproxDP(epsilon, 1e-4)
        assert (guess_p_value(97, 100, 300, claim, one_sided=one_sided) <= 0.01) == refuted
    planner = GuessPlanner(200, 0.05, one_sided=one_sided, guesses=60)
    mu = planner.mu(path(57, 200))
    for value, refuted in ((mu * 0.999, True), (mu * 1.01, False)):
        claim = GaussianDP(value)
        assert (guess_p_value(57, 60, 200, claim, one_sided=one_sided) <= 0.05) == refuted
    assert planner.mu(path(30, 200)) == 0.0


@pytest.mark.slow
def test_a_claimed_epsilon_is_certified_exactly_if_its_p_value_passes_the_level():
    verdicts = set()
    for wrong in range(0, 60, 3):
        right = np.maximum(np.arange(201) - wrong, 0)[np.r_[0:201]]
        right = np.minimum(right, np.arange(201))
        for claim in (PureDP(1.0), ApproxDP(1.0, 1e-3)):
            planner = GuessPlanner(200, 0.05)
            refuted = planner.p_value(right, claim) <= 0.05
            assert (planner.epsilon(right, claim.point[1], 1.0) >= 1.0) == refuted
            verdicts.add(refuted)
    assert verdicts == {True, False}


def test_more_delta_certifies_less():
    right = np.arange(301) - np.arange(301) // 20
    for planner in (GuessPlanner(300, 0.05), GuessPlanner(300, 0.05, guesses=100)):
        certified = [planner.epsilon(right, delta) for delta in (0.0, 1e-4, 1e-2, 0.1)]
        assert certified == sorted(certified, reverse=True)
        assert certified[0] > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: guess_p_value(5, 4, 10, PureDP(1.0)), "correct must be at most guesses"),
        (lambda: guess_p_value(3, 11, 10, PureDP(1.0)), "guesses at most canaries"),
        (lambda: GuessPlanner(0, 0.05), "canaries must be an integer >= 1, got 0"),
        (lambda: GuessPlanner(10, 1.0), "failure_prob must be"),
        (lambda: GuessPlanner(10, 0.05, guesses=11), "guesses must be an integer <= 10, got 11"),
        (lambda: GuessPlanner(2, 0.05).p_value(np.arange(2), PureDP(1.0)), "0 .. 2 guesses"),
        (lambda: GuessPlanner(2, 0.05).mu(np.array([0, 2, 2])), "increase by 0 or 1"),
        (lambda: GuessPlanner(2, 0.05).epsilon(np.arange(3), -1.0), "delta must be"),
        (lambda: GuessPlan(((2, 1),), (1.0,)), "do not decrease"),
        (lambda: GuessPlan(((1,),), (0.0,)), "shares must hold one number > 0"),
        (lambda: GuessPlan(((1,), (2,)), (0.9, 0.2)), "shares must sum to at most 1"),
        (lambda: Stages((2, 1), (1.0, 1.0)), "increasing"),
        (lambda: Stages((1,), (0.0,)), "weights"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
