"""Tests of the probability that guesses refute a claim.

The tests use closed forms and simulated ranks.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit, ndtr

from dpaudit import PureDP, plan
from dpaudit.engine.certificate import RANKED_SHARE
from dpaudit.engine.chances import (
    BY_EVENT,
    BY_GUESS,
    BY_RANK,
    Chances,
    by_bet,
    by_guess,
    by_rank,
    events_of,
    guesses_of,
    learning_share,
)
from dpaudit.engine.task import RANKED_DRAWS
from dpaudit.stats import oracles, ranked_heights, ranked_stages, wager


def test_guesses_of_gaussian_noise_are_those_beyond_a_distance_from_the_middle() -> None:
    mu = 1.3
    right, wrong = guesses_of(*oracles.gaussian(1.0, 1 / mu).curve())
    t = np.linspace(0.05, 3.0, 7)
    expected = ndtr(mu / 2 - t)
    assert np.interp(ndtr(-mu / 2 - t), wrong, right) == pytest.approx(expected, abs=1e-4)
    assert np.all(right + wrong <= 1 + 1e-12)


def test_no_guess_of_laplace_noise_is_right_more_often_than_its_epsilon_allows() -> None:
    right, wrong = guesses_of(*oracles.laplace(1.0, 1 / 1.7).curve())
    shares = right / (right + wrong)
    assert shares.max() == pytest.approx(expit(1.7), abs=1e-9)


def test_of_randomised_response_one_guess_is_known() -> None:
    right, wrong = guesses_of(*oracles.randomized_response(1.5).curve())
    assert right == pytest.approx(expit(1.5))
    assert wrong == pytest.approx(expit(-1.5))


@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_a_claim_that_is_kept_is_refuted_with_probability_failure_prob_at_most(
    delta: float,
) -> None:
    known = oracles.laplace(1.0, 1.0) if delta == 0 else oracles.gaussian(1.0, 1.0)
    claim = (1.0 if delta == 0 else float(known.epsilon(delta)), delta, 0.05)
    curve = known.curve()
    assert by_rank(*curve, 300, *claim).power <= 0.05
    assert by_guess(*guesses_of(*curve), 300, *claim).power <= 0.05
    beyond = (claim[0] / 3, delta, 0.05)
    assert by_rank(*curve, 300, *beyond).power > 0.05
    assert by_guess(*guesses_of(*curve), 300, *beyond).power > 0.05


@pytest.mark.statistical
@pytest.mark.parametrize("draws", [120, 500])
def test_ranks_refute_as_often_as_they_do_when_simulated(draws: int) -> None:
    """Compare the predicted probability of a refutation with simulated orders.

    The limit is five standard deviations of 2,000 orders, which is a two-sided false alarm of 6e-7.
    """
    claim = {"epsilon": 0.5, "delta": 0.0, "failure_prob": 0.01}
    true_epsilon = {120: 1.4, 500: 0.9}[draws]
    found = by_rank(*oracles.laplace(1.0, 1 / true_epsilon).curve(), draws, *claim.values())
    stages, rng, often = ranked_stages(draws), np.random.default_rng(3), 0
    heights = ranked_heights(stages, draws, **claim)
    place = np.arange(draws)
    place = np.where(place % 2 == 0, draws - 1 - place // 2, place // 2)
    for _ in range(2000):
        is_left = rng.random(draws) < 0.5
        order = np.argsort(is_left + rng.laplace(scale=1 / true_epsilon, size=draws))
        right = np.cumsum(is_left[order[place]] == (np.arange(draws) % 2 == 0))
        often += bool(np.any(right[np.array(stages.guesses) - 1] >= heights))
    assert 0.3 < found.power < 0.99
    spread = 5 * math.sqrt(found.power * (1 - found.power) / 2000)
    assert abs(often / 2000 - found.power) < spread + 1 / draws


def test_few_draws_of_a_number_are_planned_by_rank() -> None:
    found = plan(PureDP(1.0), true_epsilon=2.5, failure_prob=1e-3)
    assert found.instrument == BY_RANK
    assert RANKED_DRAWS[0] <= found.draws <= RANKED_DRAWS[1]
    assert found.draws_without_ranks is not None
    assert found.draws < found.draws_without_ranks
    assert f"Otherwise, {found.draws_without_ranks:,} draws are needed" in str(found)
    assert "no draws are used to explore" in str(found)
    curve = oracles.laplace(1.0, 1 / 2.5).curve()
    share = 1e-3 * RANKED_SHARE / 2
    assert by_rank(*curve, 2 * found.draws, 1.0, 0.0, share).power >= 0.9
    assert by_rank(*curve, 2 * (found.draws - 2), 1.0, 0.0, share).power < 0.9


def test_ranks_are_not_counted_on_where_nothing_says_that_outputs_have_an_order() -> None:
    vectors = oracles.laplace_vector(np.array([1.0, 1.0]), 1.0)
    for known in (vectors, oracles.randomized_response(2.0)):
        found = plan(PureDP(1.0), true_epsilon=2.0, failure_prob=0.05, oracle=known)
        assert found.instrument == BY_GUESS
        assert found.draws < RANKED_DRAWS[1]
    found = plan(PureDP(1.0), true_epsilon=2.5, rates=(0.3, 0.03))
    assert (found.instrument, found.draws_without_ranks) == (BY_EVENT, None)


@pytest.mark.slow
def test_beyond_few_draws_nothing_is_planned_by_rank() -> None:
    found = plan(PureDP(1.0), true_epsilon=1.2)
    assert found.draws > RANKED_DRAWS[1]
    assert found.instrument == BY_GUESS
    assert "30% of the draws are used to explore" in str(found)


# --- bets, and the cost of learning ---


@pytest.mark.statistical
def test_the_wealth_of_a_bet_reaches_its_height_as_often_as_a_brownian_motion() -> None:
    """Compare the predicted power of a bet with simulated walks.

    The limit is five standard deviations of 1,000 walks, plus 0.05 for the normal approximation.
    """
    needed, draws, failure_prob = 1.35, 400, 0.05
    flip = oracles.randomized_response(needed)
    events = events_of(*flip.curve())
    guesses = guesses_of(*flip.curve())
    found = by_bet(events, guesses, draws, 1.0, 0.0, failure_prob, 0.0)
    assert 0.3 < found.power < 0.99
    right = float(expit(needed))
    rates = np.array([right, 1 - right, 0.0])
    bet = wager(rates, rates[[1, 0, 2]], np.array([1.0]), 0.0)
    rng = np.random.default_rng(3)
    is_right = rng.random((1000, draws, 2)) < right
    a, b = bet.log_left[0], bet.log_right[0]
    steps = np.where(is_right[..., 0], a[0], a[1]) + np.where(is_right[..., 1], b[1], b[0])
    height = 3.0 - math.log(failure_prob)
    often = float((np.cumsum(steps, axis=1).max(axis=1) >= height).mean())
    assert abs(often - found.power) < 5 * math.sqrt(0.25 / 1000) + 0.05


def test_bets_take_more_draws_where_draws_are_few_and_fewer_with_less_certainty() -> None:
    flip = oracles.randomized_response(1.5)

    def draws(failure_prob: float, *, sequential: bool) -> int:
        chances = Chances.of(flip, (1.0, 0.0), failure_prob, is_sequential=sequential)
        found = chances.draws_for(0.9)
        assert found is not None
        return found

    assert draws(0.05, sequential=False) < draws(0.05, sequential=True)
    assert draws(0.05, sequential=True) < draws(1e-6, sequential=True)


def test_learning_costs_a_part_that_falls_as_certainty_rises() -> None:
    shares = [learning_share(failure_prob) for failure_prob in (0.3, 0.05, 1e-3, 1e-6, 1e-9)]
    assert shares == sorted(shares)
    assert shares[0] > 0.1
    assert shares[-1] < 0.9
    assert learning_share(0.05, 0.0) == 1.0


@pytest.mark.parametrize(
    "known", [oracles.laplace(1.0, 0.7), oracles.discrete([0.5, 0.3, 0.2], [0.1, 0.3, 0.6])]
)
def test_events_are_those_of_both_directions(known: oracles.Oracle) -> None:
    """Check that the events cover both directions of a curve.

    For each point of the swapped curve, some event has the rates of this point.
    """
    p, q = events_of(*known.curve())
    swapped = known.swapped().curve()
    for a, b in zip(*swapped, strict=True):
        if a > 0 and b < 1:
            assert (abs(p - a) + abs(q - b)).min() < 1e-2


@pytest.mark.parametrize("draws", [28, 79, 312])
def test_the_power_of_few_draws_by_rank_is_that_of_audits_of_outputs(draws) -> None:
    """False-alarm rate 1e-6: 4.9 standard errors of the difference of two shares."""
    pair, claim, repeats = oracles.gaussian(1.0, 0.4), (1.0, 0.0, 1e-4), 4000
    stages = ranked_stages(draws)
    heights = ranked_heights(stages, draws, epsilon=1.0, delta=0.0, failure_prob=1e-4)
    rng = np.random.default_rng(5)
    refuted = 0
    for _ in range(repeats):
        is_left = rng.random(draws) < 0.5
        order = np.argsort(-(rng.normal(0, 0.4, draws) + is_left))  # the largest output first
        correct = np.empty(draws, dtype=bool)
        correct[0::2] = is_left[order][: (draws + 1) // 2]
        correct[1::2] = ~is_left[order][::-1][: draws // 2]
        counts = np.cumsum(correct)[np.array(stages.guesses) - 1]
        refuted += bool((counts >= heights).any())
    power = by_rank(*pair.curve(), draws, *claim).power
    error = math.sqrt(power * (1 - power) * (1 / repeats + 1 / 2000))
    assert abs(power - refuted / repeats) <= 4.9 * error
