"""Mechanisms with more of their own noise: an exact check of each way to multiply noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

from dpaudit import AdditiveNoise
from dpaudit.mutants import ALL_NOISE, RAISED, TREATMENTS, ChangedNoise, amplifiers, record

DATA = np.array([[1.0], [2.0]])
SCALED = "scaled"


def two(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    first = rng.laplace(loc=5.0, scale=0.5, size=size)
    second = rng.normal(scale=2.0, size=size)
    return np.stack([data.sum() + first, data.sum() + second], axis=1)


def drawn(mechanism: Any, size: int = 50) -> Any:
    return mechanism(DATA, size, rng=np.random.default_rng(3))


def test_each_noise_and_all_noise_are_multiplied_about_their_centre() -> None:
    found = record(two, [DATA], seed=1)
    first, second, every = amplifiers(two, found)
    assert "laplace" in first.noise
    assert every.noise == ALL_NOISE
    centre, once = np.array([8.0, 3.0]), drawn(two)
    for noise, factors in ((first, [3, 1]), (second, [1, 3]), (every, [3, 3])):
        expected = centre + np.array(factors) * (once - centre)
        np.testing.assert_allclose(drawn(noise.scaled(3.0)), expected)


def test_a_least_scale_changes_smaller_scales_only() -> None:
    found = record(two, [DATA], seed=1)
    for key, column, factor in ((found.keys[0], 0, 2.0), (found.keys[1], 1, 1.0)):
        made = ChangedNoise(two, found, [key], RAISED, "a scale of at least 1", factor=1.0)
        once, now = drawn(two)[:, column], drawn(made)[:, column]
        centre = 8.0 if column == 0 else 3.0
        np.testing.assert_allclose(now - centre, factor * (once - centre))


def test_geometric_noise_stays_on_its_grid() -> None:
    """The tail of the noise is (1 - p)^n, so half the exponent doubles the noise."""
    made = TREATMENTS["geometric"].adapted(SCALED, {"p": 0.75, "size": None}, 2.0)
    assert made is not None
    assert made["p"] == pytest.approx(0.5)


def test_probabilities_get_a_higher_temperature() -> None:
    scores = np.array([0.0, 1.0, 3.0])
    once = special.softmax(scores)
    made = TREATMENTS["choice"].adapted(SCALED, {"a": 3, "p": once}, 2.0)
    assert made is not None
    np.testing.assert_allclose(made["p"], special.softmax(scores / 2))


def test_a_coin_of_every_bias_gets_a_higher_temperature() -> None:
    """Check that u < p holds after the change if u < sigmoid(logit(p) / factor) held before."""
    stretch = TREATMENTS["random"].stretch
    assert stretch is not None
    u = np.linspace(0.001, 0.999, 997)
    now = np.asarray(stretch({}, u, 2.0))
    for p in (0.1, 0.5, 0.731):
        np.testing.assert_array_equal(now < p, u < special.expit(special.logit(p) / 2))


def whole(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    return data.sum() + rng.poisson(3.0, size) + rng.permutation(size)


def test_noise_without_multiples_is_left_out() -> None:
    assert amplifiers(whole, record(whole, [DATA], seed=1)) == []


class Pmf:
    def pmf(self, data: Any) -> Any:
        return special.softmax(data[:, 0])


def test_a_pmf_gets_a_higher_temperature() -> None:
    (noise,) = amplifiers(Pmf(), None)
    np.testing.assert_allclose(noise.scaled(2.0).pmf(DATA), special.softmax(DATA[:, 0] / 2))


def test_declared_noise_is_multiplied() -> None:
    (noise,) = amplifiers(AdditiveNoise(np.sum, "laplace", scale=0.5), None)
    assert noise.keys == ()
    assert noise.scaled(3.0).noise.scale == 1.5
