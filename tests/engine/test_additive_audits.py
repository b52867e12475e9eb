"""Audits of random centres without a ball, and the soundness of whole audits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from dpaudit import ApproxDP, GaussianDP, PureDP
from dpaudit.engine.additive import certify
from dpaudit.engine.additive.candidates import screen
from dpaudit.engine.additive.events import Candidate, LikelihoodRatio, RatioEvent, RegionEvent
from dpaudit.engine.additive.plan import Budget, Centers, Plan, Question
from dpaudit.engine.additive.values import CentreValues
from dpaudit.engine.counts import ByCounts
from dpaudit.engine.driver import drive
from dpaudit.engine.task import Run
from dpaudit.errors import MechanismError
from dpaudit.mechanisms.additive import AdditiveNoise
from dpaudit.mechanisms.sampler import PROBE_SIZE
from dpaudit.stats import HalfSpace, PairedBet, Target, oracles
from dpaudit.stats.noise import Noise
from tests.mechanisms.test_additive_noise import (
    CLAIM,
    around,
    coins,
    gaussian_cloud,
    look,
    mixture_epsilon,
    pair,
    prepared,
    sampled_user,
    signs,
    true_epsilon,
    uniform,
)
from tests.statistical import FALSE_ALARM

# --- (c) no ball, compared with plain counts ---

COMPARED = {
    "subsampled": (AdditiveNoise(sampled_user, scale=1.0), pair(1, 0), ApproxDP(0.5, 1e-3), 3.0),
    "uniform": (AdditiveNoise(uniform, scale=1.0), pair(0.5, -0.5), CLAIM, 1.2),
    "wide": (AdditiveNoise(uniform, scale=0.05), pair(0.5, -0.5), ApproxDP(0.5, 0.1), 0.95),
    "cloud": (
        AdditiveNoise(gaussian_cloud, scale=1.0),
        pair(np.full(9, 0.5), np.zeros(9)),
        CLAIM,
        1.05,
    ),
    "signs": (AdditiveNoise(signs, scale=1.0), pair(1, -1), CLAIM, 1.0),
    "laplace": (AdditiveNoise(coins, "laplace", 1.0), pair([1, 0], [0, 1]), PureDP(1.0), 1.1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPARED)
def test_smoothing_certifies_what_plain_counts_do_and_more(name):
    mechanism, at, claim, gain = COMPARED[name]
    integrated, _ = look(mechanism, claim, at, draws=20_000)
    task = prepared(claim, at, draws=20_000)
    plain = drive(ByCounts(), Run(task, mechanism, "mechanism"))
    assert integrated.epsilon.lower >= gain * plain.epsilon.lower
    assert integrated.epsilon.lower > 0


@pytest.mark.slow
def test_centres_that_happen_to_be_equal_are_data_like_any_other():
    constant = AdditiveNoise(lambda data, size, *, rng: np.ones((size, 2)) * data, scale=1.0)
    finding, _ = look(constant, CLAIM, pair([1, 0], [0, 0]))
    truth = oracles.gaussian(1.0, 1.0)
    assert 1.0 < finding.epsilon.lower < truth.epsilon(1e-6)
    known = AdditiveNoise(constant.centers, scale=1.0, ball=lambda data: (data, 0.0))
    finding, _ = look(known, CLAIM, pair([1, 0], [0, 0]))
    assert 0.99 * truth.epsilon(1e-6) < finding.epsilon.lower <= truth.epsilon(1e-6)


@pytest.mark.sampled
@pytest.mark.parametrize("distance", [0.0, 1e3, 1e9])
def test_events_that_are_impossible_or_sure_do_no_harm(distance):
    for ball in (None, lambda data: (data, 1.0)):
        finding, long = look(
            AdditiveNoise(uniform, scale=1.0, ball=ball), CLAIM, pair(distance, 0), draws=5000
        )
        if distance == 0:
            assert finding.epsilon.lower == 0
            assert finding.delta.lower == 0
            assert not any(finding.profile.certified_delta)
        else:
            assert finding.epsilon.lower > 5
            assert finding.delta.lower > 0.99
        assert np.isfinite(long.estimated_delta).all()


def test_the_floor_without_a_ball_is_that_of_an_unseen_centre():
    """Check the epsilon that AdditiveNoise certifies without a ball.

    Even for smooth centres, n draws certify at most log(2 n / log(1 / failure_prob)).
    """
    finding, _ = look(AdditiveNoise(uniform, scale=1.0), CLAIM, pair(30, 0), draws=10_000)
    floor = math.log(2 * 7000 / -math.log(0.8e-5))
    assert math.log(7000 / -math.log(0.8e-5)) < finding.epsilon.lower < floor


@pytest.mark.sampled
@pytest.mark.parametrize("claim", [GaussianDP(0.5), PureDP(0.5), ApproxDP(0.5, 0.0)], ids=str)
def test_every_kind_of_claim(claim):
    mechanism = AdditiveNoise(uniform, scale=1.0, ball=around)
    finding, _ = look(mechanism, claim, pair(0.5, -0.5), draws=2000)
    assert finding.refuted
    assert finding.epsilon.lower > finding.point[0]
    kept, _ = look(mechanism, claim, pair(0.05, -0.05), draws=2000)
    assert not kept.refuted


@pytest.mark.slow
def test_the_best_of_several_pairs_is_certified():
    pairs = [pair(0.1, 0), pair(1.0, 0), pair(0.3, 0)]
    finding, _ = look(AdditiveNoise(uniform, scale=1.0, ball=around), CLAIM, pairs, draws=6000)
    assert finding.pair.left.tolist() == [1.0]
    assert finding.draws["explore"] + finding.draws["certify"] == 6000


@pytest.mark.slow
def test_results_are_functions_of_seed_name_and_role():
    mechanism = AdditiveNoise(signs, scale=1.0)
    first, _ = look(mechanism, CLAIM, pair(1, -1), draws=1000)
    again, _ = look(mechanism, CLAIM, pair(1, -1), draws=1000)
    other, _ = look(mechanism, CLAIM, pair(1, -1), draws=1000, seed=2)
    mutant, _ = look(mechanism, CLAIM, pair(1, -1), "mutant", draws=1000)
    assert first.profile == again.profile
    assert first.epsilon == again.epsilon
    assert first.histogram == again.histogram
    assert len({first.epsilon.lower, other.epsilon.lower, mutant.epsilon.lower}) == 3
    assert sum(first.histogram.left) == sum(first.histogram.right) == first.draws["certify"]


@pytest.mark.parametrize("draws", [20, 100])
def test_tiny_budgets_give_tiny_answers(draws):
    finding, _ = look(AdditiveNoise(uniform, scale=1.0), CLAIM, pair(0.5, -0.5), draws=draws)
    assert 0 <= finding.epsilon.lower < 2


def test_likelihood_ratios_are_those_of_the_mixtures():
    rng = np.random.default_rng(7)
    left, right, points = (rng.normal(size=(n, 3)) + 100 for n in (5, 8, 40))
    for noise in (Noise("gaussian", 0.7), Noise("laplace", 0.7)):

        def density(at, centers, noise=noise):
            z = (at - centers) / noise.scale
            logs = -np.abs(z) if noise.kind == "laplace" else -(z**2) / 2
            return np.exp(logs.sum(axis=1)).mean()

        ratio = LikelihoodRatio(noise, left, right)
        expected = [math.log(density(x, left) / density(x, right)) for x in points]
        found, room = ratio(points)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
        assert (np.abs(found - expected) <= room).all()
        assert room.max() < 1e-9
        event = RatioEvent(ratio, -1.0, 0.3)
        shares = event.values(noise, points, np.zeros((2, 40, 3)))
        np.testing.assert_array_equal(shares, -np.array(expected) > 0.3)


def test_screened_moments_are_those_of_the_events():
    rng = np.random.default_rng(8)
    for noise in (Noise("gaussian", 0.7), Noise("laplace", 0.7)):
        learn, judge = (
            {"left": rng.normal(size=(50, 2)) + 1, "right": rng.normal(size=(50, 2))}
            for _ in range(2)
        )
        auxiliary = noise.sample((2, 50, 2), rng=rng)
        balls = {"left": (np.ones(2), 9.0), "right": (np.zeros(2), 9.0)}
        found = screen(noise, learn, judge, balls, auxiliary, 40)
        assert len(found.makers) == len(found.mean["left"]) == len(found.largest["right"])
        for index in range(0, len(found.makers), 37):
            event = found.candidate("left", index).event
            for side in ("left", "right"):
                values = event.values(noise, judge[side], auxiliary)
                near = {"rel": 0.02, "abs": 1e-5} if "distance" in event.words else {"rel": 1e-9}
                assert found.mean[side][index] == pytest.approx(values.mean(), **near)
                assert values.max() <= event.largest(noise, balls[side])
            assert event.words
            assert event.label
            assert event.inside(event.axis(judge["left"])).shape == (50,)


# --- soundness, exactly ---


def right_of(threshold):
    return RegionEvent(HalfSpace(np.ones(1), threshold), "coordinate 0")


def left_of(threshold):
    return RegionEvent(HalfSpace(-np.ones(1), -threshold), "minus coordinate 0")


masses = st.lists(st.integers(0, 8), min_size=4, max_size=4).filter(sum)


def least_epsilon(values, chances, delta):
    """Return the least epsilon at which both events obey both inequalities."""
    mean = {side: [chance @ v for v in values] for side, chance in chances.items()}
    likely = np.array([mean["left"][0], mean["right"][1]]) - delta
    rare = np.array([mean["right"][0], mean["left"][1]])
    return max(float(np.log(np.maximum(likely, 1e-300) / rare).max()), 0.0)


@settings(deadline=None, max_examples=60)
@given(
    masses,
    masses,
    st.floats(-3, 3),
    st.floats(-3, 3),
    st.sampled_from([0.0, 1e-3, 0.2]),
    st.floats(0.01, 1.0),
)
def test_two_events_at_once_are_a_fair_bet(left, right, upper, lower, delta, stake):
    """Check that a bet on two events is fair.

    Averaged over every pair of centres, a bet at the true epsilon has expected wealth of at most 1.
    """
    noise, centers = Noise("gaussian", 1.0), np.array([[-1.0], [0.0], [0.5], [2.0]])
    chances = {"left": np.array(left) / sum(left), "right": np.array(right) / sum(right)}
    candidate = Candidate(right_of(upper), "left", left_of(lower))
    values = [event.values(noise, centers, np.empty(0)) for event in candidate.events]
    epsilon = least_epsilon(values, chances, delta)
    largest = candidate.largest(noise, dict.fromkeys(chances, (np.array([0.5]), 1.5)))
    bet = PairedBet((stake / (math.exp(epsilon) * largest + delta),), (1.0,), largest)
    expected = 0.0
    for i, p in enumerate(chances["left"]):
        for j, q in enumerate(chances["right"]):
            at = {"left": centers[[i]], "right": centers[[j]]}
            x, y = candidate.pairs(lambda event, side, _, at=at: event.values(noise, at[side], at))
            assert len(x) == len(y) == 2
            expected += p * q * math.exp(bet.log_wealth(x, y, epsilon, delta))
    assert expected <= 1 + 1e-9


def test_two_events_ask_of_each_what_it_is_for():
    """Check the rounding of the two events of a bet.

    Values are rounded down if the event should be likely, and up if the event should be rare.
    """
    asked = []

    def value(event, side, rounded):
        asked.append((event, side, rounded))
        return np.arange(2.0) + 10 * len(asked)

    for likelier, other in (("left", "right"), ("right", "left")):
        asked.clear()
        candidate = Candidate("A", likelier, "B")
        x, y = candidate.pairs(value)
        assert asked == [
            ("A", likelier, -1.0),
            ("A", other, 1.0),
            ("B", other, -1.0),
            ("B", likelier, 1.0),
        ]
        assert x.tolist() == [10, 30, 11, 31]
        assert y.tolist() == [40, 20, 41, 21]


@pytest.mark.parametrize("two", [False, True])
def test_two_ratios_do_not_share_their_noise_across_sides(two):
    """Check that two ratios do not share their noise across sides.

    Shared noise would make the left and the right factor of a bet depend on each other.
    """
    rng = np.random.default_rng(3)
    noise = Noise("gaussian", 1.0)
    ratio = LikelihoodRatio(noise, rng.normal(size=(5, 1)), rng.normal(size=(5, 1)))
    one, other = RatioEvent(ratio, 1.0, 0.0), RatioEvent(ratio, -1.0, 0.0)
    candidate = Candidate(one, "left", other if two else None)
    bet = PairedBet((0.1,), (1.0,))
    exploration = Centers(np.zeros((9, 1)), np.zeros((9, 1)), {"left": None, "right": None})
    plan = Plan(
        noise,
        exploration,
        Budget(400, 5, 1),
        (Question(candidate, Target(delta=0.0), bet),),
        [1.0],
        (),
        (1.0, 0.0),
        np.zeros(1),
        0.0,
    )
    values = CentreValues(plan)
    same = np.zeros((400, 1))
    values.add({"left": same, "right": same}, rng=rng)
    x, y = values.pair(0)
    if not two:  # with equal noise, x and y are equal
        np.testing.assert_array_equal(x, y)
        return
    a_left, a_right = x[::2], y[1::2]
    assert 0.2 < np.mean(a_left != a_right) < 0.8  # independent, with equal odds, so about a half
    np.testing.assert_array_equal(a_left, 1 - y[::2])  # on one side, the two events do share it


@pytest.mark.slow
def test_failure_prob_is_divided_over_all_questions(monkeypatch):
    given = []
    original = certify.RateBounds.from_excess

    def recording(epsilon, delta, failure_prob):
        given.append(failure_prob)
        return original(epsilon, delta, failure_prob)

    monkeypatch.setattr(certify.RateBounds, "from_excess", recording)
    for ball in (None, around):
        given.clear()
        mechanism = AdditiveNoise(uniform, scale=1.0, ball=ball)
        look(mechanism, CLAIM, pair(0.5, -0.5), draws=2000, failure_prob=0.01)
        assert len(given) > 2
        assert sum(given) <= 0.01 * (1 + 1e-12)


def test_no_centre_is_explored_and_certified_with():
    seen = []

    def recorded(data, size, *, rng):
        drawn = data[0] + rng.normal(size=size)
        if size != PROBE_SIZE:
            seen.extend(drawn.tolist())
        return drawn

    pairs = [pair(0.5, 0.0), pair(1.0, 0.0)]
    finding, _ = look(AdditiveNoise(recorded, scale=1.0), CLAIM, pairs, draws=1500)
    assert len(seen) == 2 * sum(finding.draws.values())
    assert len(set(seen)) == len(seen)


# --- soundness, counted over whole audits ---

TIGHT = {
    "ball": (
        AdditiveNoise(uniform, scale=1.0, ball=around),
        pair(0.5, -0.5),
        lambda: true_epsilon(1.0, 1.0, 0.01),
    ),
    "no ball": (
        AdditiveNoise(uniform, scale=1.0),
        pair(0.5, -0.5),
        lambda: true_epsilon(1.0, 1.0, 0.01),
    ),
    "subsampled": (
        AdditiveNoise(sampled_user, scale=1.0),
        pair(1, 0),
        lambda: mixture_epsilon(0.1, 0.01),
    ),
}


AUDITS = 60
"""Number of audits. An engine that lies in 15 of 60 audits is refused.

An engine that lies in half of its audits is refused with probability 1 - 1e-5. The engine of the
understated ball lies in more audits. benchmarks/soundness.py counts 2,000 audits.
"""


def refused(wrong):
    return binom.sf(wrong - 1, AUDITS, 0.05) < FALSE_ALARM


def lies(mechanism, at, truth, audits, **budget):
    claim = ApproxDP(max(truth, 0.1), 0.01)
    found = 0
    for seed in range(audits):
        finding, _ = look(mechanism, claim, at, failure_prob=0.05, seed=seed, **budget)
        found += finding.epsilon.lower > truth + 1e-9
    return found


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", TIGHT)
def test_audits_are_wrong_no_more_often_than_they_say(name):
    mechanism, at, truth = TIGHT[name]
    assert not refused(lies(mechanism, at, truth(), AUDITS, draws=200))


def rarely_far(data, size, *, rng):
    """Return centres that are 8 with probability data[0], else 0.

    On the right, the centre 8 is too rare to be observed.
    """
    return 8.0 * (rng.random(size) < data[0])


def too_small(data):
    """Return a ball that omits the centres that were never observed on the right."""
    return ([4.0], 4.0) if data[0] > 0.01 else ([0.0], 4.0)


@pytest.mark.nightly
@pytest.mark.statistical
def test_an_understated_ball_is_found_out(monkeypatch):
    at, truth = pair(0.3, 0.002), math.log(0.3 / 0.002)  # no output has a larger loss
    honest = AdditiveNoise(rarely_far, scale=1.0, ball=([4.0], 4.0))
    broken = AdditiveNoise(rarely_far, scale=1.0, ball=too_small)
    assert not refused(lies(honest, at, truth, AUDITS, draws=300))
    with pytest.raises(MechanismError, match="must return centres inside its declared ball"):
        lies(broken, at, truth, AUDITS, draws=4000)
    monkeypatch.setattr("dpaudit.mechanisms.additive.slack", lambda *_: math.inf)
    monkeypatch.setattr(
        "dpaudit.stats.paired.bounded_draws", lambda largest, **named: next(iter(named.values()))
    )
    assert refused(lies(broken, at, truth, AUDITS, draws=300))
