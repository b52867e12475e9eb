"""Audits of random centres without a ball, and soundness over whole audits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import ApproxDP, GaussianDP, PureDP
from dpaudit.engine import counts
from dpaudit.engine.additive import certify
from dpaudit.engine.additive.candidates import screen
from dpaudit.engine.additive.events import LikelihoodRatio, RatioEvent
from dpaudit.errors import MechanismError
from dpaudit.mechanisms.additive import AdditiveNoise
from dpaudit.mechanisms.sampler import PROBE_SIZE
from dpaudit.stats import oracles
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

# --- (c) no ball: compared with plain counts ---

COMPARED = {
    "subsampled": (AdditiveNoise(sampled_user, scale=1.0), pair(1, 0), ApproxDP(0.5, 1e-3), 3.0),
    "uniform": (AdditiveNoise(uniform, scale=1.0), pair(0.5, -0.5), CLAIM, 1.1),
    "wide": (AdditiveNoise(uniform, scale=0.05), pair(0.5, -0.5), ApproxDP(0.5, 0.1), 0.93),
    "cloud": (
        AdditiveNoise(gaussian_cloud, scale=1.0),
        pair(np.full(9, 0.5), np.zeros(9)),
        CLAIM,
        1.0,
    ),
    "signs": (AdditiveNoise(signs, scale=1.0), pair(1, -1), CLAIM, 1.0),
    "laplace": (AdditiveNoise(coins, "laplace", 1.0), pair([1, 0], [0, 1]), PureDP(1.0), 1.05),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPARED)
def test_smoothing_certifies_what_plain_counts_do_and_more(name):
    mechanism, at, claim, gain = COMPARED[name]
    integrated, _ = look(mechanism, claim, at, draws=20_000)
    plain = counts.look(prepared(claim, at, draws=20_000), mechanism, "mechanism")
    assert integrated.epsilon.lower >= gain * plain.epsilon.lower
    assert integrated.epsilon.lower > 0


def test_centres_that_happen_to_be_equal_are_data_like_any_other():
    constant = AdditiveNoise(lambda data, size, *, rng: np.ones((size, 2)) * data, scale=1.0)
    finding, _ = look(constant, CLAIM, pair([1, 0], [0, 0]))
    truth = oracles.gaussian(1.0, 1.0)
    assert 1.0 < finding.epsilon.lower < truth.epsilon(1e-6)
    known = AdditiveNoise(constant.centers, scale=1.0, ball=lambda data: (data, 0.0))
    finding, _ = look(known, CLAIM, pair([1, 0], [0, 0]))
    assert 0.99 * truth.epsilon(1e-6) < finding.epsilon.lower <= truth.epsilon(1e-6)


@pytest.mark.parametrize("distance", [0.0, 1e3, 1e9])
def test_events_that_are_impossible_or_sure_do_no_harm(distance):
    for ball in (None, lambda data: (data, 1.0)):
        finding, long = look(AdditiveNoise(uniform, scale=1.0, ball=ball), CLAIM, pair(distance, 0))
        if distance == 0:
            assert finding.epsilon.lower == 0
            assert finding.delta.lower == 0
            assert not any(finding.profile.certified_delta)
        else:
            assert finding.epsilon.lower > 5
            assert finding.delta.lower > 0.99
        assert np.isfinite(long.estimated_delta).all()


def test_the_floor_without_a_ball_is_that_of_an_unseen_centre():
    """However smooth, n draws certify no more than log(n / log(1 / failure_prob))."""
    finding, _ = look(AdditiveNoise(uniform, scale=1.0), CLAIM, pair(30, 0), draws=10_000)
    assert finding.epsilon.lower < math.log(7000 / -math.log(0.8e-5))


@pytest.mark.parametrize("claim", [GaussianDP(0.5), PureDP(0.5), ApproxDP(0.5, 0.0)], ids=str)
def test_every_kind_of_claim(claim):
    mechanism = AdditiveNoise(uniform, scale=1.0, ball=around)
    finding, _ = look(mechanism, claim, pair(0.5, -0.5), draws=4000)
    assert finding.refuted
    assert finding.epsilon.lower > finding.point[0]
    kept, _ = look(mechanism, claim, pair(0.05, -0.05), draws=4000)
    assert not kept.refuted


def test_the_best_of_several_pairs_is_certified():
    pairs = [pair(0.1, 0), pair(1.0, 0), pair(0.3, 0)]
    finding, _ = look(AdditiveNoise(uniform, scale=1.0, ball=around), CLAIM, pairs, draws=6000)
    assert finding.pair.left.tolist() == [1.0]
    assert finding.draws["explore"] + finding.draws["certify"] == 6000


def test_results_are_functions_of_seed_name_and_role():
    mechanism = AdditiveNoise(signs, scale=1.0)
    first, _ = look(mechanism, CLAIM, pair(1, -1), draws=3000)
    again, _ = look(mechanism, CLAIM, pair(1, -1), draws=3000)
    other, _ = look(mechanism, CLAIM, pair(1, -1), draws=3000, seed=2)
    mutant, _ = look(mechanism, CLAIM, pair(1, -1), "mutant", draws=3000)
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
"""Refused are 15 lies of 60: an engine that lies in half of its audits, with probability 1 - 1e-5;
that of the understated ball lies in more. 2,000 audits are counted in benchmarks/soundness.py."""


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
    """Centres that are far out rarely: too rarely on the right to be seen."""
    return 8.0 * (rng.random(size) < data[0])


def too_small(data):
    """On the right, the centres that were never seen are forgotten."""
    return ([4.0], 4.0) if data[0] > 0.01 else ([0.0], 4.0)


@pytest.mark.slow
@pytest.mark.statistical
def test_an_understated_ball_is_found_out(monkeypatch):
    at, truth = pair(0.3, 0.002), math.log(0.3 / 0.002)  # no output has a larger loss
    honest = AdditiveNoise(rarely_far, scale=1.0, ball=([4.0], 4.0))
    broken = AdditiveNoise(rarely_far, scale=1.0, ball=too_small)
    assert not refused(lies(honest, at, truth, AUDITS, draws=300))
    with pytest.raises(MechanismError, match="left its declared ball"):
        lies(broken, at, truth, AUDITS, draws=4000)
    monkeypatch.setattr(AdditiveNoise, "_check_inside", lambda *_: None)
    monkeypatch.setattr(
        "dpaudit.stats.paired.bounded_draws", lambda largest, **named: next(iter(named.values()))
    )
    assert refused(lies(broken, at, truth, AUDITS, draws=300))
