"""Tests of guesses by rank.

The tests enumerate all outcomes of extremal mechanisms for exact coverage.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

import dpaudit.stats.ranked
from dpaudit.stats import (
    Stages,
    crossing_prob,
    ranked_epsilon,
    ranked_heights,
    ranked_p_value,
    ranked_stages,
)

DRAWS = 9
STAGES = Stages((4, 6, 9), (1.0, 1.0, 1.0))

Order = Callable[[tuple[int, ...]], list[int]]


def told_first(told: tuple[int, ...]) -> list[int]:
    return sorted(range(len(told)), key=lambda i: -told[i])


def told_last(told: tuple[int, ...]) -> list[int]:
    return sorted(range(len(told)), key=lambda i: told[i])


def as_drawn(told: tuple[int, ...]) -> list[int]:
    return list(range(len(told)))


@functools.cache
def p_value(correct: tuple[int, ...], epsilon: float, delta: float) -> float:
    return ranked_p_value(correct, STAGES, DRAWS, epsilon=epsilon, delta=delta)


def probability(
    order: Order, epsilon: float, delta: float, rejects: Callable[[tuple[int, ...]], bool]
) -> float:
    """Return the probability of a rejection for the extremal mechanism.

    The mechanism reveals its coin at rate delta, and uses randomised response otherwise.
    """
    pi, total = float(expit(epsilon)), 0.0
    for told in itertools.product((0, 1), repeat=DRAWS) if delta > 0 else [(0,) * DRAWS]:
        weight = delta ** sum(told) * (1 - delta) ** (DRAWS - sum(told))
        places = order(told)
        free = [i for i in places if not told[i]]
        for luck in itertools.product((0, 1), repeat=len(free)):
            fell = dict(zip(free, luck, strict=True))
            right = np.cumsum([fell.get(i, 1) for i in places])
            if rejects(tuple(int(right[k - 1]) for k in STAGES.guesses)):
                total += weight * pi ** sum(luck) * (1 - pi) ** (len(free) - sum(luck))
    return total


@pytest.mark.sampled
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.7])
@pytest.mark.parametrize("order", [told_first, told_last, as_drawn])
def test_p_values_are_small_no_more_often_than_they_say(epsilon: float, order: Order) -> None:
    for delta, alphas in ((0.0, (0.05, 0.2, 0.5)), (0.15, (0.05, 0.4))):
        if delta > 0 and order is as_drawn:
            continue  # this order has many patterns, and its result lies between the other two
        for alpha in alphas:
            found = probability(
                order, epsilon, delta, lambda c, a=alpha, d=delta: p_value(c, epsilon, d) <= a
            )
            assert found <= alpha + 1e-9


def test_told_first_is_the_worst_and_the_bound_is_exact_there() -> None:
    epsilon, delta = 0.5, 0.15
    levels = sorted({p_value(c, epsilon, delta) for c in outcomes()})[:4]
    for level in levels:
        found = probability(
            told_first, epsilon, delta, lambda c, a=level: p_value(c, epsilon, delta) <= a
        )
        assert found == pytest.approx(level, rel=1e-6)


def outcomes() -> list[tuple[int, ...]]:
    return [
        c
        for c in itertools.product(*(range(k + 1) for k in STAGES.guesses))
        if all(0 <= c[i + 1] - c[i] <= STAGES.guesses[i + 1] - STAGES.guesses[i] for i in (0, 1))
    ]


@pytest.mark.parametrize("alpha", [0.05, 0.4])
def test_the_certified_epsilon_is_above_the_truth_with_probability_alpha_at_most(
    alpha: float,
) -> None:
    certified = {
        c: ranked_epsilon(c, STAGES, DRAWS, delta=0.0, failure_prob=alpha) for c in outcomes()
    }
    worst = 0.0
    for epsilon in np.linspace(0.0, 1.5, 31).tolist():
        found = probability(as_drawn, epsilon, 0.0, lambda c, e=epsilon: certified[c] > e)
        assert found <= alpha + 1e-9
        worst = max(worst, found)
    assert worst > 0.3 * alpha


@pytest.mark.sampled
@pytest.mark.parametrize(
    "broken",
    [
        lambda heights, stages, pi, told: binom.sf(heights[0] - 1, stages.guesses[0], pi),
        lambda heights, stages, pi, told: crossing(heights + 1, stages, pi, told),
        lambda heights, stages, pi, told: crossing(heights, stages, pi, np.ones(1)),
    ],
    ids=["one look", "off by one", "nobody is told"],
)
def test_the_enumeration_catches_mutants(monkeypatch: pytest.MonkeyPatch, broken: Any) -> None:
    monkeypatch.setattr(dpaudit.stats.ranked, "_crossing", broken)
    epsilon, delta = 0.5, 0.15
    found = {c: ranked_p_value(c, STAGES, DRAWS, epsilon=epsilon, delta=delta) for c in outcomes()}
    worst = max(
        probability(told_first, epsilon, delta, lambda c, a=alpha: found[c] <= a) - alpha
        for alpha in (0.05, 0.1, 0.2, 0.3)
    )
    assert worst > 0.005


crossing = dpaudit.stats.ranked._crossing


def test_delta_costs_next_to_nothing_where_it_is_small() -> None:
    stages = ranked_stages(400)
    right = [min(k, round(0.85 * k) + 3) for k in stages.guesses]
    pure, approximate = (
        ranked_epsilon(right, stages, 400, delta=delta, failure_prob=1e-6) for delta in (0.0, 1e-5)
    )
    assert 0.9 < approximate <= pure
    assert pure - approximate <= 0.021


def test_looks_are_few_and_end_with_all() -> None:
    for draws in (1, 4, 30, 4000):
        stages = ranked_stages(draws)
        assert stages.guesses[-1] == draws
        assert len(stages.guesses) <= 25


@pytest.mark.parametrize(
    ("correct", "words"),
    [
        ([1, 2], "correct must hold one integer for each of the 3 tests"),
        ([5, 5, 5], "correct must not decrease"),
    ],
)
def test_impossible_counts_are_refused(correct: list[int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ranked_p_value(correct, STAGES, DRAWS, epsilon=1.0, delta=0.0)


@pytest.mark.parametrize("delta", [0.0, 0.1])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_heights_are_exactly_where_the_claim_falls(epsilon: float, delta: float) -> None:
    """Check which outcomes certify more than the claim.

    An outcome certifies more than the claim if and only if it reaches its height at some test.
    """
    alpha = 0.3
    claim: dict[str, float] = {"epsilon": epsilon, "delta": delta, "failure_prob": alpha}
    heights = ranked_heights(STAGES, DRAWS, **claim).tolist()
    assert any(height <= k for height, k in zip(heights, STAGES.guesses, strict=True))
    for seen in outcomes():
        found = ranked_epsilon(seen, STAGES, DRAWS, delta=delta, failure_prob=alpha)
        reached = any(c >= height for c, height in zip(seen, heights, strict=True))
        if abs(found - epsilon) > 2e-4 or epsilon == 0.0:
            assert reached == (found > epsilon), seen


@pytest.mark.parametrize("heights", [[4, 4, 9], [5, 6, 8], [3, 7, 10], [0, 7, 10]])
def test_a_walk_reaches_its_heights_as_often_as_all_patterns_do(heights: list[int]) -> None:
    rates = np.array([0.8, 0.6, 0.3])
    steps = np.repeat(rates, np.diff(STAGES.guesses, prepend=0))
    exact = 0.0
    for fell in itertools.product((0, 1), repeat=STAGES.guesses[-1]):
        right = np.cumsum(fell)
        if any(right[k - 1] >= h for k, h in zip(STAGES.guesses, heights, strict=True)):
            exact += float(np.prod(np.where(fell, steps, 1 - steps)))
    assert crossing_prob(heights, STAGES.guesses, rates) == pytest.approx(exact, abs=1e-12)
