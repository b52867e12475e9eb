"""Concentration scores and the cost of a sparse vector, tested against complete sums."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binom

from algorithms.common import charging
from algorithms.user_level_sco import scores as scores_module
from algorithms.user_level_sco.scores import (
    concentration_scores,
    disagreement_bound,
    pass_filter,
    pass_sampled_filter,
    sampled_scores,
)
from dpaudit.stats import oracles
from tests.statistical import assert_frequencies


def summed(gradients, temperature, norm="l2"):
    order = 2 if norm == "l2" else np.inf
    apart = np.linalg.norm(gradients[..., :, None, :] - gradients[..., None, :, :], order, axis=-1)
    return np.exp(-temperature * apart).sum(axis=-1)


gradients = st.integers(1, 4).flatmap(
    lambda d: arrays(float, (3, 6, d), elements=st.floats(-30, 30))
)


@given(gradients, st.floats(0.01, 20), st.sampled_from(["l2", "linf"]))
def test_scores_are_sums_over_the_batch(q, temperature, norm):
    found = concentration_scores(q, temperature=temperature, norm=norm)
    np.testing.assert_allclose(found, summed(q, temperature, norm), rtol=1e-9)
    assert found.min() >= 1 - 1e-12
    assert found.max() <= 6 + 1e-12


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1.0, 1e9, 1e200])
def test_sorted_scores_hold_at_every_scale(scale):
    q = scale * np.random.default_rng(3).normal(size=(2, 50, 1))
    np.testing.assert_allclose(
        concentration_scores(q, temperature=2 / scale), summed(q / scale, 2.0), rtol=1e-9
    )


@pytest.mark.parametrize("temperature", [1e11, 1e13, 1e16, 1e300, 1.7e308])
def test_one_user_far_away_moves_no_score_by_more_than_1(temperature):
    """Check that one distant user moves no score by more than 1.

    Small differences between close users are not lost next to a large difference.
    """
    q = np.zeros((1000, 1))
    q[0] = 1.0
    near = concentration_scores(q, temperature=temperature)
    q[0] = -100.0
    np.testing.assert_allclose(near, concentration_scores(q, temperature=temperature))
    assert near[1:] == pytest.approx(999.0)


def test_large_batches_are_compared_in_parts():
    q = np.random.default_rng(4).normal(size=(1200, 2))
    found = concentration_scores(q, temperature=0.5)
    np.testing.assert_allclose(found[::100], summed(q, 0.5)[::100])
    noise = np.random.default_rng(5).laplace(scale=50.0, size=(3, 1200))
    np.testing.assert_array_equal(
        pass_filter(q[None], noise, temperature=0.5, threshold=700.0), found + noise > 700.0
    )


@pytest.mark.parametrize("mirrored", [4096, 0])
@pytest.mark.parametrize("batch", [64, 129, 700])
@pytest.mark.parametrize("d", [2, 3, 20])
def test_scores_in_tiles_equal_the_kernel(monkeypatch, batch, d, mirrored):
    """Check that the scores in l-infinity are equal bit by bit, also in stripes."""
    monkeypatch.setattr(scores_module, "_MIRRORED", mirrored)
    monkeypatch.setattr(scores_module, "_AT_ONCE", 20_000)
    q = np.random.default_rng(batch + d).normal(size=(2, batch, d))
    q[:, : batch // 3] = np.round(q[:, : batch // 3])  # with equal distances and equal users
    expected = scores_module._kernel(q[:, :, None], q[:, None], 0.3, "linf")
    found = concentration_scores(q, temperature=0.3, norm="linf")
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(
        concentration_scores(q[1], temperature=0.3, norm="linf"), expected[1]
    )


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_scores_do_not_depend_on_the_memory(monkeypatch, norm):
    q = np.random.default_rng(6).normal(size=(3, 50, 7))
    expected = concentration_scores(q, temperature=0.3, norm=norm)
    noise = np.random.default_rng(7).laplace(scale=9.0, size=(3, 50))
    passed = pass_filter(q, noise, temperature=0.3, threshold=20.0)
    assert 0 < passed.sum() < passed.size
    monkeypatch.setattr(scores_module, "_COORDINATES", 500)
    np.testing.assert_array_equal(concentration_scores(q, temperature=0.3, norm=norm), expected)
    np.testing.assert_array_equal(pass_filter(q, noise, temperature=0.3, threshold=20.0), passed)


@given(
    gradients,
    arrays(float, (3, 6), elements=st.floats(-8, 8)),
    st.floats(0.01, 3),
    st.floats(0.5, 6),
)
def test_the_filter_decides_as_the_scores_do(q, noise, temperature, threshold):
    score = summed(q, temperature)
    clear = np.abs(score + noise - threshold) > 1e-7
    passed = pass_filter(q, noise, temperature=temperature, threshold=threshold)
    np.testing.assert_array_equal(passed[clear], (score + noise > threshold)[clear])


def test_gradients_that_all_draws_share_are_compared_once():
    rng = np.random.default_rng(1)
    q, noise = rng.normal(size=(1, 8, 3)), rng.laplace(size=(20, 8), scale=3)
    np.testing.assert_array_equal(
        pass_filter(q, noise, temperature=0.3, threshold=5.0),
        pass_filter(np.repeat(q, 20, axis=0), noise, temperature=0.3, threshold=5.0),
    )


@pytest.mark.statistical
def test_sampled_scores_take_one_of_each_stratum_evenly():
    q = np.random.default_rng(2).normal(size=(6, 2))
    kernel = np.exp(-0.7 * np.linalg.norm(q[:, None] - q[None], axis=2))
    choices = list(itertools.product([0, 1, 2], [3, 4, 5]))
    possible = np.array([3 * (kernel[0, i] + kernel[0, j]) for i, j in choices])
    assert possible.mean() == pytest.approx(summed(q, 0.7)[0])
    many = np.repeat(q[None], 20_000, axis=0)
    found = sampled_scores(many, temperature=0.7, samples=2, rng=np.random.default_rng(3))
    which = np.abs(found[:, :1] - possible).argmin(axis=1)
    np.testing.assert_allclose(found[:, 0], possible[which])
    assert_frequencies(np.bincount(which, minlength=9), np.full(9, 1 / 9))


def possible_scores(q, temperature):
    """Return every estimated score of each of six users with two strata of three, [..., 6, 9]."""
    kernel = np.exp(-temperature * np.linalg.norm(q[..., :, None, :] - q[..., None, :, :], axis=-1))
    choices = itertools.product([0, 1, 2], [3, 4, 5])
    return np.stack([3 * (kernel[..., i] + kernel[..., j]) for i, j in choices], axis=-1)


@given(
    gradients,
    arrays(float, (3, 6), elements=st.floats(-8, 8)),
    st.floats(0.01, 3),
    st.floats(0.5, 6),
    st.integers(0, 9),
)
def test_the_sampled_filter_makes_only_decisions_that_samples_make(
    q, noise, temperature, threshold, seed
):
    over = possible_scores(q, temperature) + noise[..., None] - threshold
    passed = pass_sampled_filter(
        q, noise, temperature=temperature, threshold=threshold, samples=2,
        rng=np.random.default_rng(seed),
    )  # fmt: skip
    assert passed[(over > 1e-7).all(axis=-1)].all()
    assert not passed[(over < -1e-7).all(axis=-1)].any()


@pytest.mark.statistical
def test_the_sampled_filter_decides_as_often_as_samples_do():
    """Check the frequency of a decision, at a false-alarm rate of 1e-6."""
    q = np.random.default_rng(2).normal(size=(1, 6, 2))
    over = possible_scores(q[0], 0.7)[0] > 3.2
    assert 0 < over.mean() < 1
    passed = pass_sampled_filter(
        q, np.zeros((20_000, 6)), temperature=0.7, threshold=3.2, samples=2,
        rng=np.random.default_rng(3),
    )  # fmt: skip
    counts = np.bincount(passed[:, 0].astype(int), minlength=2)
    assert_frequencies(counts, np.array([1 - over.mean(), over.mean()]))


def test_users_who_agree_are_not_sampled():
    q = np.random.default_rng(2).normal(size=(2, 6, 3)) / 10
    rng = np.random.default_rng(3)
    state = rng.bit_generator.state
    passed = pass_sampled_filter(
        q, np.zeros((2, 6)), temperature=0.1, threshold=4.0, samples=2, rng=rng
    )
    assert passed.all()
    assert rng.bit_generator.state == state


def test_strata_of_one_user_give_the_score():
    q = np.random.default_rng(2).normal(size=(8, 2))
    whole = sampled_scores(q, temperature=0.7, samples=8, rng=np.random.default_rng(3))
    np.testing.assert_allclose(whole, summed(q, 0.7))


@given(arrays(float, (7, 2), elements=st.floats(-3, 3)), st.floats(0.1, 5))
def test_two_scores_bound_a_distance(q, temperature):
    score = summed(q, temperature)
    for i, j in itertools.combinations(range(7), 2):
        bound = disagreement_bound(7, (score[i] + score[j]) * (1 - 1e-12))
        assert temperature * np.linalg.norm(q[i] - q[j]) <= bound * (1 + 1e-9) + 1e-9


def test_the_bound_on_a_distance_is_attained():
    q = np.repeat([0.0, 1.3], 5)[:, None]
    score = summed(q, 1.0)
    assert disagreement_bound(10, score[0] + score[-1]) == pytest.approx(1.3)
    assert disagreement_bound(10, 10.0) == math.inf
    assert disagreement_bound(10, 20.5) == 0.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"temperature": 0.0}, "temperature must be positive, got 0.0"),
        ({"norm": "l1"}, "norm must be one of l2, linf, got 'l1'"),
        ({"gradients": [[[math.nan]]]}, "gradients must hold only finite"),
        ({"gradients": [1.0, 2.0]}, "gradients must have 2 or 3 dimensions"),
    ],
)
def test_bad_scores_are_refused(change, words):
    arguments = {"gradients": np.zeros((4, 1)), "temperature": 1.0} | change
    with pytest.raises(ValueError, match=words):
        concentration_scores(arguments.pop("gradients"), **arguments)


def test_samples_divide_the_batch():
    with pytest.raises(
        ValueError, match="samples must divide 6, the number of users in the batch, got 4"
    ):
        sampled_scores(np.zeros((6, 1)), temperature=1.0, samples=4, rng=np.random.default_rng(0))


# --- cost of a stream -----------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [-1.0, -0.1, 0.0, 0.3, 2.0])
def test_the_profile_of_a_gaussian(epsilon):
    exact = float(oracles.gaussian(0.8, 1.0).delta(abs(epsilon)))
    # For a negative epsilon, the identity is H_eps(P || Q) = 1 - e^eps + e^eps H_-eps(Q || P).
    expected = exact if epsilon >= 0 else -math.expm1(epsilon) + math.exp(epsilon) * exact
    assert charging.gaussian_profile(epsilon, 0.8) == pytest.approx(expected, rel=1e-9)
    assert charging.gaussian_profile(epsilon, 0.0) == pytest.approx(max(0, -math.expm1(epsilon)))


def test_a_composition_is_the_hockey_stick_of_a_product():
    p = 1 / (1 + math.exp(-0.4))
    p1 = 1 / (1 + math.exp(-0.7))
    left = [math.prod(x) for x in itertools.product([p, 1 - p], repeat=3)]
    right = [math.prod(x) for x in itertools.product([1 - p, p], repeat=3)]
    left, right = np.outer(left, [p1, 1 - p1]), np.outer(right, [1 - p1, p1])
    expected = np.maximum(left - math.exp(0.5) * right, 0).sum()
    found = charging.composed_profile(0.5, calls=3, epsilon0=0.4, epsilon1=0.7)
    assert found == pytest.approx(expected, rel=1e-12)
    alone = charging.composed_profile(0.5, calls=0, epsilon0=0.4, mu=1.2)
    assert alone == pytest.approx(float(oracles.gaussian(1.2, 1.0).delta(0.5)))


def test_calls_are_as_few_as_may_be():
    calls = charging.calls_for(10, 0.3, 1e-3)
    q = 1 / (1 + math.exp(0.3))
    assert binom.cdf(9, calls, q) <= 1e-3 < binom.cdf(9, calls - 1, q)


@pytest.mark.parametrize(("targets", "epsilon0"), [(1, 0.5), (3, 0.3), (20, 0.1)])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.0])
def test_no_stream_of_equal_answers_costs_more_than_the_bound(targets, epsilon0, epsilon):
    """Check that no stream of equal answers costs more than the bound.

    The test computes the number of answers until the last target exactly, in both directions.
    """
    bound = charging.stream_profile(epsilon, targets=targets, epsilon0=epsilon0)
    for p in (0.05, 0.3, 0.5, 0.5 * math.exp(-epsilon0), 1 - 0.5 * math.exp(-epsilon0)):
        other = min(p * math.exp(epsilon0), 1 - (1 - p) * math.exp(-epsilon0))
        n = np.arange(targets, 4000)
        for a, b in ((p, other), (other, p)):
            left = binom.pmf(targets - 1, n - 1, a) * a
            right = binom.pmf(targets - 1, n - 1, b) * b
            assert np.maximum(left - math.exp(epsilon) * right, 0).sum() <= bound + 1e-12


def test_the_largest_mu_spends_the_budget():
    given = {"calls": 40, "epsilon0": 0.02, "epsilon1": 0.1}
    mu = charging.largest_mu(1.0, 1e-5, **given)
    assert charging.composed_profile(1.0, mu=mu, **given) == pytest.approx(1e-5, rel=1e-6)
    assert charging.composed_profile(1.0, mu=mu, **given) <= 1e-5
    assert charging.largest_mu(0.1, 1e-9, calls=400, epsilon0=0.5, epsilon1=0.0) == 0.0
