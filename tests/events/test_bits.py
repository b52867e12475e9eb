"""Tests of the floating-point attack.

The tests check exact bits, what the attack certifies, and what the attack must not certify.
Statistical tests have literal seeds. Results that must be certified are certified at `FAILURE`, the
engine's default. Results that must not be certified are judged by the same exact joint bound at
`ALARM`. `ALARM` is the rate at which a true claim is refuted in these tests. Events are frozen
before the draws that are counted.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpaudit import ApproxDP, GaussianDP, NeighborPair, PureDP, Relation, within_sensitivity
from dpaudit.events.bits import (
    GRANULARITY_OF_ZERO,
    MAX_COLUMNS,
    MAX_REFERENCES,
    MAX_SCALES,
    BitCode,
    FloatAttack,
    bit_features,
    explanation,
    granularity,
    reachable,
    trailing_zeros,
)
from dpaudit.events.encoding import Encoder
from dpaudit.events.features import Feature
from dpaudit.events.scores import MAX_ATOMS, TableScore

Floats = NDArray[np.float64]
Mechanism = Callable[[Floats, int, np.random.Generator], NDArray[np.floating]]

ALARM = 1e-6
FAILURE = 1e-5
DRAWS, EXPLORE = 100_000, 30_000
NAN, INF = math.nan, math.inf


# --- bits, exactly ---


def _granularity(y: float) -> int:
    top, bottom = y.as_integer_ratio()
    return ((top & -top).bit_length() - 1) - (bottom.bit_length() - 1)


@given(st.floats(allow_nan=False, allow_infinity=False).filter(bool))
@example(5e-324)
@example(-2.2250738585072014e-308)
@example(2.2250738585072009e-308)
@example(1.7976931348623157e308)
@example(2.0**-1074 * 12)
def test_granularity_is_the_last_set_bit(y: float) -> None:
    g = _granularity(y)
    assert granularity(np.array([y])).tolist() == [g]
    assert trailing_zeros(np.array([y])).tolist() == [g - (math.frexp(math.ulp(y))[1] - 1)]


def test_zeros_and_gaps_have_a_place() -> None:
    odd = np.array([0.0, -0.0, NAN, INF, -INF])
    zero = GRANULARITY_OF_ZERO
    np.testing.assert_array_equal(granularity(odd), [zero, zero, NAN, NAN, NAN])
    np.testing.assert_array_equal(trailing_zeros(odd), [53, 53, NAN, NAN, NAN])
    np.testing.assert_array_equal(BitCode("y").read(odd), [0, -1, NAN, NAN, NAN])


def test_float32_values_end_in_zeros() -> None:
    y = np.random.default_rng(0).normal(size=1000).astype(np.float32).astype(float)
    assert trailing_zeros(y).min() == 29


def test_bit_codes_are_few_and_tell_sign_size_and_last_bit() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=50_000) * 2.0 ** rng.integers(-40, 40, size=50_000)
    y[::3] = np.round(y[::3] * 2**10) / 2**10
    code = BitCode.learn("y", y)
    read = code.read(y)
    assert len(np.unique(read)) <= MAX_ATOMS
    assert np.abs(read).max() <= 476
    units = [1.0 + 2.0**-52, 1.0 + 2.0**-51, 1.0 + 2.0**-50]
    apart = np.array([*units, *np.negative(units), *np.multiply(units, 2), 0.0, -0.0])
    assert len(np.unique(code.read(apart))) == len(apart)
    learnt = BitCode.learn("y", np.array([1.1, 1.3, -1.7]))
    words = [learnt.words(v) for v in learnt.read(np.array([1.0 + 2.0**-52, -0.3, 0.0, NAN]))]
    assert words == ["+2^0.. with last bit 2^-52", "-2^-2.. with last bit 2^-54", "+0", "no answer"]


# --- reachable doubles, exactly ---

PLACES = [(0.0, 1.0), (1.0, 1.0), (0.3, 0.7), (-17.25, 0.1), (1e6, 3.0), (0.1, 20.0), (1.0, 1e-9)]


def _bit_generators() -> Iterator[np.random.Generator]:
    for bits in (np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64):
        yield np.random.Generator(bits(3))


@pytest.mark.parametrize(("value", "scale"), PLACES)
def test_every_draw_of_numpy_is_reachable(value: float, scale: float) -> None:
    for rng in _bit_generators():
        y = value + rng.laplace(scale=scale, size=50_000)
        assert reachable(y, value, scale).all()
        assert reachable(value + scale * rng.laplace(size=50_000), value, scale).all()
    y = value + np.random.RandomState(1).laplace(scale=scale, size=50_000)
    assert reachable(y, value, scale).all()


@pytest.mark.skipif(
    platform.machine() not in {"x86_64", "AMD64"}, reason="compilers may fuse loc - scale * log"
)
@pytest.mark.parametrize(("value", "scale"), PLACES)
def test_every_draw_around_a_location_is_reachable(value: float, scale: float) -> None:
    y = np.random.default_rng(2).laplace(value, scale, size=50_000)
    assert reachable(y, value, scale).all()


@pytest.mark.parametrize("log", [np.log, np.frompyfunc(math.log, 1, 1)], ids=["np.log", "math.log"])
@pytest.mark.parametrize(("value", "scale"), PLACES)
def test_every_draw_of_the_textbook_is_reachable(
    value: float, scale: float, log: Callable[[Floats], Floats]
) -> None:
    u = np.random.default_rng(4).random(50_000) - 0.5
    noise = scale * np.sign(u) * np.asarray(log(1 - 2 * np.abs(u)), dtype=float)
    assert reachable(value - noise, value, scale, textbook=True).all()


def _numpy_laplace(k: int, value: float, scale: float) -> float:
    """Return the value of `random_laplace` in numpy's distributions.c for U = k 2^-53."""
    u = k * 2.0**-53
    if u >= 0.5:
        return value + (0.0 - scale * math.log(2.0 - u - u))
    return value + (0.0 + scale * math.log(u + u))


@pytest.mark.parametrize("share", [0.02, 0.2, 0.4999, 0.5, 0.51, 0.75, 0.99])
@pytest.mark.parametrize(("value", "scale"), [(0.0, 1.0), (1.0, 1.0), (0.3, 0.7), (0.0, 10.0)])
def test_reachable_doubles_are_those_of_consecutive_uniforms(
    share: float, value: float, scale: float
) -> None:
    """Compare the reachable doubles with the images of 200 neighbouring uniforms.

    The test checks every double between these images.
    """
    middle = int(share * 2**53)
    images = [_numpy_laplace(k, value, scale) for k in range(middle - 100, middle + 100)]
    inner = sorted(images[20:-20])
    doubles = [inner[0]]
    while doubles[-1] < inner[-1] and len(doubles) < 20_000:
        doubles.append(math.nextafter(doubles[-1], INF))
    expected = np.isin(doubles, images)
    np.testing.assert_array_equal(reachable(np.array(doubles), value, scale), expected)
    if share in (0.2, 0.75) and value == 0.0:
        assert not expected.all()


def test_odd_outputs_are_never_reachable() -> None:
    y = np.array([NAN, INF, -INF, 1e300, -1e300])
    assert not reachable(y, 0.0, 1.0).any()
    assert reachable(np.array([0.0, -0.0]), 0.0, 1.0).all()  # U = 1/2 gives no noise


# --- references and scales ---

ONE = NeighborPair(np.array([1.0]), np.array([0.0]), relation=Relation.WITHIN_SENSITIVITY)
ODD = NeighborPair(np.array([0.3]), np.array([0.7]), relation=Relation.WITHIN_SENSITIVITY)


def test_guesses_for_query_values() -> None:
    attack = FloatAttack.for_pair(ONE, PureDP(4.0))
    assert attack == FloatAttack((0.0, 1.0), (0.25, 1.0))
    pair = NeighborPair(np.arange(5.0), np.arange(5.0) + 2, relation=within_sensitivity(2.0))
    attack = FloatAttack.for_pair(pair, PureDP(4.0))
    assert attack.references == (0.0, 1.0, 5.0, 6.0, 2.0, 3.0)  # values of one side come first
    assert attack.scales == (0.5, 2.5, 2.0, 10.0)


def test_guesses_for_datasets_are_sums_and_means() -> None:
    pair = NeighborPair([[0.0], [4.0]], [[0.0], [1.0]])
    attack = FloatAttack.for_pair(pair, PureDP(2.0))
    assert attack.references[:4] == (4.0, 1.0, 2.0, 0.5)
    assert {1.5, 0.75, 0.5} <= set(attack.scales)
    add = NeighborPair([[0.5], [0.25]], [[0.5]], relation=Relation.ADD_REMOVE_USER)
    assert FloatAttack.for_pair(add, PureDP(1.0)).references == (0.75, 0.5, 0.375, 0.25)


@pytest.mark.parametrize("claim", [PureDP(0.0), ApproxDP(1e-3, 0.1), GaussianDP(1.0)])
def test_guesses_are_few_finite_and_never_fail(claim: PureDP) -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(40, 3))
    other = data.copy()
    other[3] = [NAN, 1e308, 1e308]
    words = np.array([["a"], ["b"]])
    empty = NeighborPair(np.ones((1, 1)), np.ones((0, 1)), relation=Relation.ADD_REMOVE_USER)
    for pair in (NeighborPair(data, other), NeighborPair(words, words), empty, ODD):
        attack = FloatAttack.for_pair(pair, claim)
        assert len(attack.references) <= MAX_REFERENCES
        assert len(attack.scales) <= MAX_SCALES
        assert np.isfinite([*attack.references, *attack.scales]).all()
        assert all(s > 0 for s in attack.scales)


# --- features ---


def _features(left: NDArray[np.floating], right: NDArray[np.floating]) -> list[Feature]:
    encoder = Encoder.learn(np.concatenate([left, right]))
    return bit_features(
        encoder, encoder(left), encoder(right), FloatAttack((0.0, 1.0, 0.3), (1.0,))
    )


def test_integers_and_categories_have_no_low_bits() -> None:
    whole = np.arange(100.0).reshape(-1, 1)
    assert _features(whole, np.where(whole > 50, NAN, whole)) == []
    assert _features(np.array(["a", "b"] * 50), np.array(["a", "b"] * 50)) == []


ODDITIES = {
    "constant": np.full(100, 0.1),
    "zeros": np.array([0.0, -0.0] * 50),
    "subnormal": np.arange(100) * 5e-324,
    "huge": 1.7e308 * np.linspace(-1, 1, 100),
    "gaps": np.where(np.arange(100) % 3, 0.1 * np.arange(100), NAN),
    "nothing but gaps": np.full(100, NAN),
    "mixed": np.array([1e-300, 1e300, -1e-300, 0.5, NAN] * 20),
    "few": np.array([0.5, 0.25]),
}


@pytest.mark.parametrize("left", ODDITIES.values(), ids=ODDITIES)
@pytest.mark.parametrize("right", ODDITIES.values(), ids=ODDITIES)
def test_odd_outputs_give_features_without_warnings(left: Floats, right: Floats) -> None:
    for feature in _features(left, right):
        values = feature(np.array([[0.1], [NAN], [1e308], [-1e308], [5e-324], [-0.0]]))
        assert values.shape == (6,)
        assert np.isnan(values[1])
        TableScore.learn(feature, feature(left[:, None]), feature(right[:, None])).words(0.0, True)


def test_features_are_read_row_by_row() -> None:
    """Check that a feature of an output depends only on that output.

    Reading outputs in chunks therefore changes nothing.
    """
    rng = np.random.default_rng(0)
    left, right = (v + rng.laplace(size=(3000, 3)) for v in (0.0, 1.0))
    for feature in _features(left, right):
        np.testing.assert_array_equal(feature(left)[7:9], feature(left[7:9]))


def test_wide_outputs_keep_the_coordinates_whose_bits_differ() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(8000, 60)), rng.normal(size=(8000, 60))
    right[:, 41] = np.round(right[:, 41] * 1024) / 1024
    names = [f.name for f in _features(left, right) if f.name.startswith("trailing zero")]
    assert len(names) == MAX_COLUMNS
    assert "trailing zero bits of coordinate 41" in names


def test_words_and_explanations() -> None:
    rng = np.random.default_rng(0)
    left, right = (v + rng.laplace(size=(2000, 2)) for v in (0.0, 1.0))
    features = _features(left, right)
    for feature in features:
        text = explanation(feature.name)
        assert "Never add a float noise sample to a float" in text
        assert 2 <= text.count(". ") <= 4
    found = next(f for f in features if f.name.startswith("coordinate 0 can come from 0 "))
    assert found.name == "coordinate 0 can come from 0 + numpy's Laplace(1) noise"
    table = TableScore.learn(found, found(left), found(right))
    assert table.words(table.log_ratios[1], True) == f"{found.name} = yes"
    assert table.words(0.0, False) == f"{found.name} = no"
    assert explanation(table.words(0.0, False)) == explanation(found.name)
    assert explanation("coordinate 0 > 0.5") == ""


def test_a_value_that_explains_both_sides_explains_nothing() -> None:
    rng = np.random.default_rng(4)
    left, right = (rng.laplace(size=(2000, 1)) for _ in range(2))
    names = [
        feature.name
        for feature in bit_features(Encoder.learn(left), left, right, FloatAttack((0.0,), (1.0,)))
        if "can come from" in feature.name
    ]
    assert names == []
    moved = bit_features(Encoder.learn(left), left, right + 0.3, FloatAttack((0.0,), (1.0,)))
    assert any("can come from 0 + numpy's" in feature.name for feature in moved)
