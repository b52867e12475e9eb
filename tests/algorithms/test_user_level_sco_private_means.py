"""Tests of the rules for private means: small cases by hand, proofs case by case, bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.common import charging
from algorithms.user_level_sco import baselines
from algorithms.user_level_sco.domains import Ball
from algorithms.user_level_sco.losses import Quadratic
from algorithms.user_level_sco.private_means import ClippedMean, ConcentratedMean, WinsorizedMean

BATCH = 40
QUIET = ConcentratedMean(1.0, 1e9, 0.1, 0.2)


def generator(seed=0):
    return np.random.default_rng(seed)


def test_clipped_gradients_have_a_mean():
    gradients = np.array([[[3.0, 4.0], [0.3, 0.0]]])
    found = ClippedMean(1.0).means(gradients, 1, rng=generator())
    np.testing.assert_allclose(found, [[(0.6 + 0.3) / 2, 0.8 / 2]])


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8])
def test_a_winsorized_mean_of_close_gradients_is_their_mean(d):
    rule = WinsorizedMean(0.2, 3.0, 1e6, miss=1e-9)  # always the interval of the median
    center = generator(d).uniform(-1, 1, size=d)
    offsets = generator(1).normal(size=(2, BATCH, d))
    gradients = center + 0.19 * offsets / np.linalg.norm(offsets, axis=2, keepdims=True)
    found = rule.means(gradients, 2, rng=generator())
    np.testing.assert_allclose(found, gradients.mean(axis=1), atol=1e-12)


def test_a_winsorized_mean_ignores_how_far_a_user_is():
    rule = WinsorizedMean(0.2, 3.0, 1e6)
    gradients = np.zeros((1, BATCH, 2))
    ends = []
    for far in (1e3, 1e9):
        gradients[0, 0] = far, -far / 2
        ends.append(rule.means(gradients, 1, rng=generator())[0])
    np.testing.assert_allclose(*ends, atol=1e-12)
    assert 0 < np.linalg.norm(ends[0]) <= rule.sensitivity(BATCH, 2)


def test_the_choice_of_an_interval_has_the_exponential_distribution():
    rule = WinsorizedMean(1.0, 1.0, 2.0)  # in one dimension, two intervals that a sign exchanges
    gradients = np.repeat([-9.0, 9.0], [3, 1]).reshape(1, 4, 1)
    draws = 4000
    found = rule.means(gradients, draws, rng=generator())[:, 0]
    below = (np.clip([-9.0, 9.0], -3.0, 2.0) * [3, 1]).sum() / 4
    above = (np.clip([-9.0, 9.0], -2.0, 3.0) * [3, 1]).sum() / 4
    chosen = np.isclose(found, below).sum()
    assert chosen + np.isclose(found, above).sum() == draws
    odds = math.exp(rule.epsilon0 / 2 * (3 - 1))  # 1 and 3 users are on the wrong side
    share = odds / (1 + odds)
    # false-alarm rate 1e-6: 4.9 standard deviations
    assert abs(chosen - draws * share) < 4.9 * math.sqrt(draws * share * (1 - share))


def test_a_concentrated_mean_of_close_gradients_is_their_mean():
    gradients = generator(2).uniform(-0.7, 0.7, size=(2, BATCH, 2))
    found = QUIET.means(gradients, 2, rng=generator())
    np.testing.assert_allclose(found, gradients.mean(axis=1))


def test_far_users_have_no_weight():
    gradients = np.zeros((1, BATCH, 1))
    gradients[0, :4] = 1e6
    assert QUIET.means(gradients, 1, rng=generator())[0, 0] == 0
    expected = [0.0] * 4 + [(36 - 21) / 19] * 36  # far users are not neighbours of the others
    np.testing.assert_allclose(QUIET.weights(gradients[0]), expected)


@pytest.mark.parametrize(("d", "tau"), [(1, 1 / 64), (512, 1 / 128), (2048, 1 / 256)])
def test_a_long_gradient_does_not_change_who_is_near_whom(d, tau):
    rule = ConcentratedMean(tau, 1.0, 0.1)
    for seed in range(20):
        rng = generator(seed)
        crowds = np.tile(rng.normal(scale=tau, size=d), (BATCH, 1))
        way = rng.normal(size=d)
        crowds[::2] += 2 * tau * way / np.linalg.norm(way)  # up to rounding, 2 tau apart
        there = crowds.copy()
        there[0] = 50 * way
        change = abs(rule.weights(crowds).sum() - rule.weights(there).sum())
        assert change <= 3 + 2 / (BATCH - 2) + 1e-9


@pytest.mark.parametrize("size", [1e120, 1.7e308])
@pytest.mark.parametrize("rule", [WinsorizedMean(0.5, 1.0, 1.0), QUIET, ClippedMean(1.0)])
def test_a_gradient_near_overflow_is_an_outlier(rule, size):
    gradients = generator().uniform(-0.3, 0.3, size=(2, BATCH, 3))
    gradients[:, 0] = size, -size, size
    found = rule.means(gradients, 2, rng=generator())
    assert np.abs(found - gradients[:, 1:].mean(axis=1)).max() < 0.5


def test_gradients_of_each_draw_have_weights_and_signs_of_their_own():
    gradients = np.zeros((2, BATCH, 2))
    gradients[0, :4] = gradients[1, -4:] = 50.0
    gradients[1, :4] = 0.5
    found = QUIET.means(gradients, 2, rng=generator())
    np.testing.assert_allclose(found, [[0.0, 0.0], [2.0 / 36, 2.0 / 36]])
    rule = WinsorizedMean(0.3, 1.0, 1e6)  # intervals end at -1 and at 1.1, so signs matter
    draws = rule.means(np.full((1, BATCH, 1), 9.0), 60, rng=generator())
    assert set(draws.round(9).ravel()) == {1.6, 1.7}  # the false-alarm rate is below 1e-17


@pytest.mark.parametrize("far", [10.0, 1e12])
def test_two_crowds_release_no_mean(far):
    gradients = np.zeros((1, BATCH, 3))
    gradients[0, : BATCH // 2] = far
    assert np.isnan(QUIET.means(gradients, 3, rng=generator())).all()


def test_a_batch_without_a_mean_leaves_the_iterate():
    users = np.repeat([-9.0, 9.0], BATCH // 2).reshape(BATCH, 1, 1)
    found = baselines.user_level_dp_sgd(
        users, 5, loss=Quadratic(), domain=Ball(9.0), start=[0.25], batch_size=BATCH, n_steps=2,
        step=0.5, mean=ConcentratedMean(1.0, 5.0, 0.001), epsilon=20.0, delta=0.1, rng=generator(),
    )  # fmt: skip
    assert (found == 0.25).all()


def test_distances_are_exact_if_the_squares_are_large():
    far = 1e9
    gradients = np.full((1, BATCH, 2), far)
    gradients[0, ::2, 0] += 1.9  # rounding of the squares is about 100
    found = QUIET.means(gradients, 1, rng=generator())[0]
    np.testing.assert_allclose(found, gradients[0].mean(axis=0), rtol=1e-15)
    gradients[0, ::2, 0] += 0.2
    assert np.isnan(QUIET.means(gradients, 1, rng=generator())).all()


places = st.lists(st.floats(-5.0, 5.0), min_size=BATCH, max_size=BATCH)


@given(places, st.floats(-5.0, 5.0))
def test_one_user_moves_a_concentrated_mean_by_at_most_its_sensitivity(points, other):
    left = np.array(points)[None, :, None]
    right = left.copy()
    right[0, 0] = other
    means = [QUIET.means(x, 1, rng=generator())[0, 0] for x in (left, right)]
    if not np.isnan(means).any():
        assert abs(means[0] - means[1]) <= QUIET.sensitivity(BATCH, 1)


def test_the_noise_pays_for_what_a_rule_reveals():
    sizes = {"batch_size": 40, "n_steps": 6, "epsilon": 4.0, "delta": 0.01}
    for rule, calls, failures in (
        (ClippedMean(0.5), 0, 0.0),
        (WinsorizedMean(0.5, 1.0, 0.1), 3 * 4, 0.0),
        (ConcentratedMean(0.5, 0.6, 1e-3), 3, 3e-3),
    ):
        sigma = baselines.dp_sgd_sigma(80, 3, mean=rule, **sizes)
        spent = charging.composed_profile(
            4.0, calls=calls, epsilon0=rule.selection(3).epsilon0,
            mu=math.sqrt(3) * rule.sensitivity(40, 3) / sigma,
        )  # fmt: skip
        assert spent + failures == pytest.approx(0.01, rel=1e-5)


@pytest.mark.parametrize("calls", [1, 7, 2048])
def test_answers_spend_the_budget(calls):
    epsilon0 = charging.largest_epsilon0(2.0, 1e-3, calls=calls)
    for factor, low, high in ((1.0, 0.99e-3, 1e-3), (1.01, 1e-3, 1.0)):
        delta = charging.composed_profile(2.0, calls=calls, epsilon0=factor * epsilon0)
        assert low <= delta <= high


@pytest.mark.parametrize("name", ["spread", "bound", "epsilon0"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_bad_numbers_of_a_winsorized_mean_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        WinsorizedMean(**{"spread": 1.0, "bound": 1.0, "epsilon0": 1.0} | {name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [("spread", 0.0), ("epsilon0", math.nan), ("failure", 0.5), ("failure", 0.0), ("share", 1.0)],
)
def test_bad_numbers_of_a_concentrated_mean_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        ConcentratedMean(**{"spread": 1.0, "epsilon0": 1.0, "failure": 0.1} | {name: value})


def test_bad_numbers_of_the_other_rules_are_refused():
    with pytest.raises(ValueError, match="clip_norm must be"):
        ClippedMean(0.0)
    with pytest.raises(ValueError, match="miss must be"):
        WinsorizedMean(1.0, 1.0, 1.0, miss=0.0)


@pytest.mark.parametrize("batch", [1, 2, 30])
def test_a_batch_that_is_too_small_for_the_test_is_refused(batch):
    rule = ConcentratedMean(1.0, 0.5, 1e-3)
    with pytest.raises(ValueError, match=f"batch_size must be larger .* got {batch}"):
        rule.sensitivity(batch, 1)
    with pytest.raises(ValueError, match="batch_size must be larger"):
        rule.means(np.zeros((1, batch, 1)), 1, rng=generator())


def test_the_least_weight_must_exceed_the_change_of_one_user():
    assert ConcentratedMean(1.0, 1.0, 0.038, 0.3).least(BATCH) == pytest.approx(4.13, abs=0.01)
    rule = ConcentratedMean(1.0, 1.0, 0.036, 0.3)  # its least weight would be 3.97
    with pytest.raises(ValueError, match="batch_size must be larger"):
        rule.least(BATCH)


def test_a_rule_that_spends_the_budget_is_refused():
    options = {"batch_size": 40, "n_steps": 2, "epsilon": 1.0}
    with pytest.raises(ValueError, match=r"mean must leave a part of epsilon = 1\.0"):
        baselines.dp_sgd_sigma(80, 4, mean=WinsorizedMean(1.0, 1.0, 2.0), delta=1e-3, **options)
    with pytest.raises(ValueError, match="mean must leave"):
        baselines.dp_sgd_sigma(80, 4, mean=ConcentratedMean(1.0, 0.5, 0.01), delta=1e-3, **options)
