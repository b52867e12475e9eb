"""Tests of one run with exactly half of its canaries, over all mechanisms and by enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import expit

from dpaudit import PureDP
from dpaudit.engine.one_run import GuessTest, right_guesses
from dpaudit.stats import guess_p_value, half_probability


def worst(m: int, included: int, excluded: int, v: int, epsilon: float, k: int) -> float:
    """Return the largest probability of v correct guesses over all epsilon-DP mechanisms.

    In each run, k of m canaries are included. The guesses say that `included` canaries are included
    and `excluded` canaries are excluded. An output y of this kind is averaged over all
    permutations. The probability of the output then depends only on three numbers. The three
    numbers count the included canaries: those guessed to be included, those guessed to be excluded,
    and all others. The linear program has one variable for each case. The probabilities add up to 1
    for each number of inclusions. If one coin is turned, the probabilities satisfy epsilon-DP.
    """
    sizes = (included, excluded, m - included - excluded)
    states = list(itertools.product(*(range(size + 1) for size in sizes)))
    at = {state: i for i, state in enumerate(states)}
    ways = [math.prod(map(math.comb, sizes, state)) for state in states]
    bounds = []
    for state, axis in itertools.product(states, range(3)):
        more = tuple(x + (j == axis) for j, x in enumerate(state))
        if more in at:
            for a, b in ((at[state], at[more]), (at[more], at[state])):
                row = np.zeros(len(states))
                row[[a, b]] = 1.0, -math.exp(epsilon)
                bounds.append(row)
    sums, gain = np.zeros((m + 1, len(states))), np.zeros(len(states))
    for state, i in at.items():
        total = sum(state)
        sums[total, i] = ways[i] / math.comb(m, total)
        if total == k and state[0] + excluded - state[1] >= v:
            gain[i] = sums[total, i]
    zeros, ones = np.zeros(len(bounds)), np.ones(m + 1)
    return float(-linprog(-gain, np.array(bounds), zeros, sums, ones).fun)


CASES = [  # canaries, guessed included, guessed excluded, right guesses, epsilon
    (4, 2, 2, 4, 1.0),
    (8, 4, 4, 8, 1.0),
    (12, 6, 6, 12, 0.5),
    (16, 8, 8, 16, 1.0),
    (12, 3, 3, 6, 1.0),
    (16, 8, 8, 14, 1.0),
    (16, 6, 6, 11, 0.3),
    (16, 4, 4, 8, 1.0),
    (15, 7, 5, 12, 1.0),
    (10, 2, 0, 2, 2.0),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_mechanism_exceeds_the_bound_of_half_and_some_come_near_it(case):
    m, included, excluded, v, epsilon = case
    guesses = included + excluded
    beta = guess_p_value(v, guesses, m, PureDP(epsilon))
    bound = min(beta / half_probability(m), 1.0)
    most = worst(*case, m // 2)
    assert most <= bound * (1 + 1e-6)
    near = 1.25 if v == guesses == m else 3.6
    assert most > bound / near


GROWTH = [(16, 1.0, 4.0), (24, 0.5, 5.5), (24, 0.2, 6.0)]


@pytest.mark.parametrize(("m", "epsilon", "least"), GROWTH)
def test_the_bound_of_fair_coins_is_exceeded_four_to_sevenfold(m, epsilon, least):
    """Check that the bound for fair coins is exceeded, by a factor below 7.

    The test is a negative control, because `coins="fair"` is not sound if exactly half are
    included.
    """
    fair = guess_p_value(m, m, m, PureDP(epsilon))
    assert least < worst(m, m // 2, m // 2, m, epsilon, m // 2) / fair < 7


def test_other_numbers_of_inclusions_cost_what_fair_coins_pay_for_them():
    m, k, epsilon = 12, 4, 1.0
    price = math.comb(m, k) / 2**m
    beta = guess_p_value(m, m, m, PureDP(epsilon))
    most = worst(m, k, m - k, m, epsilon, k)
    assert beta < most <= beta / price


def errors(m: int, epsilon: float, alpha: float, coins: str, guesses: int | None = None) -> float:
    """Return the probability that randomised response of each coin is wrongly refuted.

    A guesser computes the scores from the answers. All outputs and sets are enumerated.
    """
    claim = PureDP(epsilon)
    tool = GuessTest.of(m, guesses=guesses, failure_prob=alpha, coins=coins)
    numbers = list(tool.planner.plan(claim).numbers)
    sets = [np.isin(np.arange(m), s) for s in itertools.combinations(range(m), m // 2)]
    rate, wrong = expit(epsilon), 0.0
    refuted = {}
    for truth, answer in itertools.product(sets, itertools.product((False, True), repeat=m)):
        said = np.array(answer)
        # ties go to the first canaries, so that all scores differ
        scores = said + np.arange(m, 0, -1) / (2 * m)
        correct = right_guesses(scores, truth, one_sided=False)
        key = tuple(correct[numbers].tolist())
        if key not in refuted:
            refuted[key] = tool.p_value(correct, claim) <= alpha
        if refuted[key]:
            agree = int((said == truth).sum())
            wrong += rate**agree * (1 - rate) ** (m - agree)
    return wrong / len(sets)


@pytest.mark.sampled
@pytest.mark.parametrize(("m", "epsilon"), [(6, 0.1), (6, 1.0), (8, 1.0)])
def test_randomised_response_of_every_coin_keeps_its_level_by_enumeration(m, epsilon):
    for alpha in (1e-3, 0.01, 0.05, 0.2, 0.5):
        assert errors(m, epsilon, alpha, "half") <= alpha


def test_enumeration_sees_that_fair_coins_do_not_keep_it():
    """Check that fair coins give too many errors if half of the canaries are included.

    The test is a negative control at a small alpha and a small number of canaries.
    """
    alpha = 1.001 * guess_p_value(8, 8, 8, PureDP(0.1))
    assert errors(8, 0.1, alpha, "fair", guesses=8) > 2 * alpha
