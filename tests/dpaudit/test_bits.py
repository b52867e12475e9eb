"""The floating-point attack: exact bits first, then what it certifies, then what it must not.

Statistical tests have literal seeds. What must be certified is certified at `FAILURE`, the engine's
default. What must not be is judged by the same exact joint bound at `ALARM`, the rate at which a
true claim is refuted here; events are frozen before the draws that are counted.
"""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpaudit import ApproxDP, GaussianDP, NeighborPair, PureDP, Relation, within_sensitivity
from dpaudit.bounds import Aim, Counts
from dpaudit.divergence import RateBounds
from dpaudit.events.bits import (
    MAX_COLUMNS,
    MAX_REFERENCES,
    MAX_SCALES,
    FloatAttack,
    bit_features,
    explanation,
)
from dpaudit.events.doubles import (
    GRANULARITY_OF_ZERO,
    BitCode,
    granularity,
    reachable,
    trailing_zeros,
)
from dpaudit.events.encoding import Encoder
from dpaudit.events.features import Feature, all_features
from dpaudit.events.scores import MAX_ATOMS, FeatureScore, Score, TableScore

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
    """`random_laplace` of numpy's distributions.c, for U = k 2^-53."""
    u = k * 2.0**-53
    if u >= 0.5:
        return value + (0.0 - scale * math.log(2.0 - u - u))
    return value + (0.0 + scale * math.log(u + u))


@pytest.mark.parametrize("share", [0.02, 0.2, 0.4999, 0.5, 0.51, 0.75, 0.99])
@pytest.mark.parametrize(("value", "scale"), [(0.0, 1.0), (1.0, 1.0), (0.3, 0.7), (0.0, 10.0)])
def test_reachable_doubles_are_those_of_consecutive_uniforms(
    share: float, value: float, scale: float
) -> None:
    """All doubles between the images of 200 neighbouring U, against going through those U."""
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
    assert attack.references == (0.0, 1.0, 5.0, 6.0, 2.0, 3.0)  # those of one side come first
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
    return bit_features(encoder, encoder(left), encoder(right), (0.0, 1.0, 0.3), (1.0,))


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
    """A feature of an output depends on that output alone, so chunks change nothing."""
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


def test_a_hundred_thousand_outputs_take_about_a_second() -> None:
    rng = np.random.default_rng(0)
    left, right = (v + rng.laplace(size=(100_000, 3)) for v in (0.0, 1.0))
    start = time.process_time()
    for feature in _features(left[:15_000], right[:15_000]):
        feature(left)
    assert time.process_time() - start < 4.0  # 0.3 s where this was written


def test_the_hook_appends_bits_to_the_other_features() -> None:
    rng = np.random.default_rng(0)
    left, right = (v + rng.laplace(size=(1000, 1)) for v in (0.0, 1.0))
    encoder = Encoder.learn(left)
    plain = [f.name for f in all_features(encoder, left, right)]
    attack = FloatAttack((0.0, 1.0), (1.0,))
    more = [f.name for f in all_features(encoder, left, right, attack)]
    assert more[: len(plain)] == plain == ["coordinate 0"]
    assert more[len(plain) :] == [f.name for f in attack.features(encoder, left, right)]


def test_words_and_explanations() -> None:
    rng = np.random.default_rng(0)
    left, right = (v + rng.laplace(size=(2000, 2)) for v in (0.0, 1.0))
    features = _features(left, right)
    for feature in features:
        text = explanation(feature.name)
        assert "never add a float noise sample to a float" in text
        assert text.count(". ") == 1
    found = next(f for f in features if f.name.startswith("coordinate 0 can come from 0 "))
    assert found.name == "coordinate 0 can come from 0 + numpy's Laplace(1) noise"
    table = TableScore.learn(found, found(left), found(right))
    assert table.words(table.log_ratios[1], True) == f"{found.name} = yes"
    assert table.words(0.0, False) == f"{found.name} = no"
    assert explanation(table.words(0.0, False)) == explanation(found.name)
    assert explanation("coordinate 0 > 0.5") == ""


# --- what it certifies: draws ---


@dataclass(frozen=True)
class Outcome:
    """Best event of the features on fresh draws: rates, and the certified epsilon."""

    words: str
    likely: float
    rare_hits: int
    epsilon: float


def _scores(features: list[Feature], left: Floats, right: Floats) -> Iterator[Score]:
    for feature in features:
        a, b = feature(left), feature(right)
        if feature.ordered:
            yield from FeatureScore.learn(feature, np.concatenate([a, b]))
        yield TableScore.learn(feature, a, b)


def _cuts(
    score: Score, left: Floats, right: Floats, delta: float
) -> Iterator[tuple[float, float, bool, str]]:
    """Worth, threshold, above, likelier: rates moved against us by two standard errors."""
    a, b = np.sort(score(left)), np.sort(score(right))
    thresholds = np.unique(np.concatenate([a, b]))[1:]
    hits = {
        "left": len(a) - np.searchsorted(a, thresholds),
        "right": len(b) - np.searchsorted(b, thresholds),
    }
    sizes = {"left": len(a), "right": len(b)}
    for likelier, rarer in (("left", "right"), ("right", "left")):
        for above in (True, False):
            p, q = (hits[side] if above else sizes[side] - hits[side] for side in (likelier, rarer))
            low = (p - 2 * np.sqrt(p)) / sizes[likelier]
            high = (q + 3 + 2 * np.sqrt(q)) / sizes[rarer]
            worth = np.log(np.maximum(low - delta, 1e-12) / high)
            if len(worth):
                at = int(worth.argmax())
                yield float(worth[at]), float(thresholds[at]), above, likelier


def attack(
    mechanism: Mechanism,
    pair: NeighborPair,
    claim: ApproxDP,
    *,
    seed: int,
    failure_prob: float = FAILURE,
    twin: Callable[[Feature], Feature] = lambda feature: feature,
) -> Outcome:
    """Explore, freeze, draw afresh, certify: the engine in small, with bit features only."""
    rng = np.random.default_rng(seed)
    delta = claim.claimed_delta
    explored = [mechanism(data, EXPLORE, rng) for data in (pair.left, pair.right)]
    encoder = Encoder.learn(np.concatenate(explored))
    left, right = (encoder(x) for x in explored)
    half = EXPLORE // 2
    guesses = FloatAttack.for_pair(pair, claim)
    features = [twin(f) for f in guesses.features(encoder, left[:half], right[:half])]
    best = max(
        (
            (*cut, score)
            for score in _scores(features, left[:half], right[:half])
            for cut in _cuts(score, left[half:], right[half:], delta)
        ),
        key=lambda cut: cut[0],
        default=None,
    )
    if best is None:
        return Outcome("", 0.0, 0, 0.0)
    _, threshold, above, likelier, score = best
    fresh = DRAWS - EXPLORE
    hits = [
        int(((score(encoder(mechanism(data, fresh, rng))) >= threshold) == above).sum())
        for data in (pair.left, pair.right)
    ]
    counts = Counts(hits[0], fresh, hits[1], fresh)
    bounds = RateBounds.from_counts(counts, likelier, failure_prob, Aim(delta=delta))
    likely, rare = hits if likelier == "left" else hits[::-1]
    words = score.words(threshold, above)
    return Outcome(words, likely / fresh, rare, bounds.lower_epsilon(delta))


def naive(scale: float) -> Mechanism:
    return lambda x, size, rng: np.squeeze(x + rng.laplace(scale=scale, size=(size, *x.shape)))


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("scale", "claimed"),
    [(10.0, 0.1), (1.0, 1.0), (0.5, 2.0), (0.25, 4.0), (0.125, 8.0), (1.0, 8.0), (1.37, 8.0)],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_naive_laplace_is_refuted_whatever_it_claims(
    scale: float, claimed: float, seed: int
) -> None:
    """Also when the claim does not tell the scale. Power, not level: q is 0 by construction."""
    outcome = attack(naive(scale), ONE, PureDP(claimed), seed=seed)
    assert outcome.likely > 0.75
    assert outcome.rare_hits == 0
    assert outcome.epsilon > max(claimed, 8.0)
    assert "can come from" in outcome.words


@pytest.mark.statistical
def test_values_of_one_binade_and_means_are_refuted() -> None:
    outcome = attack(naive(0.4), ODD, PureDP(1.0), seed=1)
    assert outcome.rare_hits == 0
    assert outcome.epsilon > 8.0
    users = np.linspace(0.0, 1.0, 20)[:, None]
    other = users.copy()
    other[-1] = 0.0

    def mean(x: Floats, size: int, rng: np.random.Generator) -> Floats:
        return np.asarray(x.mean() + rng.laplace(scale=1 / 20, size=size))

    assert attack(mean, NeighborPair(users, other), PureDP(1.0), seed=1).epsilon > 6.0


@pytest.mark.statistical
def test_a_vector_is_refuted_by_all_coordinates_together() -> None:
    pair = NeighborPair(np.ones(5), np.zeros(5), relation=Relation.WITHIN_SENSITIVITY)
    outcome = attack(naive(5.0), pair, PureDP(1.0), seed=1)
    assert outcome.likely > 0.99
    assert outcome.rare_hits == 0
    assert outcome.epsilon > 8.0
    assert "coordinates" in outcome.words


def _textbook(x: Floats, size: int, rng: np.random.Generator) -> Floats:
    u = rng.random(size) - 0.5
    return np.asarray(x[0] - np.sign(u) * np.log(1 - 2 * np.abs(u)))


def _gaussian(x: Floats, size: int, rng: np.random.Generator) -> Floats:
    return np.asarray(x[0] + rng.normal(size=size))


def _single(x: Floats, size: int, rng: np.random.Generator) -> NDArray[np.float32]:
    return x.astype(np.float32)[0] + rng.laplace(size=size).astype(np.float32)


def _decimal_lattice(x: Floats, size: int, rng: np.random.Generator) -> Floats:
    """Geometric noise, yet multiplied by 0.01 before it is added."""
    return np.asarray(x[0] + 0.01 * _geometric(0.01, size, rng))


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("mechanism", "least", "claim"),
    [
        (_textbook, 8.0, PureDP(1.0)),
        (naive(1.2345678), 7.0, PureDP(1.0)),  # a scale that nobody guesses
        (_gaussian, 7.0, ApproxDP(4.5, 1e-5)),
        (_single, 7.0, PureDP(1.0)),
        (_decimal_lattice, 6.0, PureDP(1.0)),
    ],
)
def test_other_float_noise_is_refuted(mechanism: Mechanism, least: float, claim: ApproxDP) -> None:
    outcome = attack(mechanism, ONE, claim, seed=1)
    assert outcome.epsilon > least > claim.claimed_epsilon
    assert outcome.rare_hits <= 5


# --- what it must not certify ---


def _geometric(step: float, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Discrete Laplace noise whose unit is `step` of its scale."""
    q = -math.expm1(-step)
    return np.asarray(rng.geometric(q, size) - rng.geometric(q, size))


def lattice(step: float) -> Mechanism:
    """Discrete Laplace of scale 1 on a lattice of powers of two, in exact integers."""

    def mechanism(x: Floats, size: int, rng: np.random.Generator) -> Floats:
        return np.asarray((round(float(x[0]) / step) + _geometric(step, size, rng)) * step)

    return mechanism


def snapping(x: Floats, size: int, rng: np.random.Generator) -> Floats:
    """Mironov's: uniforms with all their bits, rounded to a power of two, clamped."""
    u = np.ldexp(1 + rng.random(size), -rng.geometric(0.5, size).astype(np.int32))
    noise = 0.1 * rng.choice([-1.0, 1.0], size) * np.log(u)
    return np.asarray(np.clip(np.round((x[0] + noise) / 0.125) * 0.125, -8.0, 8.0))


CLOSE = NeighborPair(np.array([0.1]), np.array([0.0]), relation=within_sensitivity(0.1))
HALF = NeighborPair(np.array([0.5]), np.array([0.0]), relation=within_sensitivity(0.5))


@pytest.mark.statistical
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    ("mechanism", "pair", "epsilon"),
    [
        (lattice(2.0**-10), ONE, 1.0),
        (lattice(2.0**-40), ONE, 1.0),
        (lattice(2.0**-40), HALF, 0.5),
        (snapping, CLOSE, 1.0),
    ],
    ids=["lattice 2^-10", "lattice 2^-40", "lattice 2^-40, values at 1/2", "snapping"],
)
def test_honest_mechanisms_keep_their_claim(
    mechanism: Mechanism, pair: NeighborPair, epsilon: float, seed: int
) -> None:
    """False alarm ALARM = 1e-6 each."""
    assert (
        attack(mechanism, pair, PureDP(epsilon), seed=seed, failure_prob=ALARM).epsilon <= epsilon
    )


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", [naive(1.0), _gaussian, _single])
def test_equal_inputs_are_not_told_apart(mechanism: Mechanism) -> None:
    """Naive noise on one value, twice: nothing may be certified. False alarm 1e-6 each."""
    same = replace(ONE, left=np.array([0.3]), right=np.array([0.3]))
    assert attack(mechanism, same, PureDP(1.0), seed=1, failure_prob=ALARM).epsilon == 0.0


@pytest.mark.statistical
def test_constant_features_cannot_separate() -> None:
    """The broken twin of the attack: the same pipeline, its features blind."""

    def blind(feature: Feature) -> Feature:
        return replace(feature, read=lambda x: np.zeros(len(x)))

    assert attack(naive(1.0), ONE, PureDP(1.0), seed=1, twin=blind).epsilon == 0.0


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize(("pair", "epsilon"), [(ONE, 1.0), (ODD, 0.4)], ids=["0, 1", "0.3, 0.7"])
def test_opendp_laplace_keeps_its_claim(pair: NeighborPair, epsilon: float) -> None:
    """OpenDP draws from the operating system. False alarm 1e-6 each."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib", "honest-but-curious", "idealized-numerics")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    noise = dp.m.make_laplace(*space, scale=1.0)

    def mechanism(x: Floats, size: int, rng: np.random.Generator) -> Floats:
        return np.array(noise(x.tolist() * size))

    assert attack(mechanism, pair, PureDP(epsilon), seed=1, failure_prob=ALARM).epsilon <= epsilon


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_diffprivlib_laplace_leaks_through_rounding() -> None:
    """Its sampler (Holohan and Braghin 2021) hides what was drawn, but the sum is still rounded."""
    mechanisms = pytest.importorskip("diffprivlib.mechanisms", exc_type=ImportError)

    def mechanism(x: Floats, size: int, rng: np.random.Generator) -> Floats:
        state = np.random.RandomState(rng.integers(2**32))
        noisy = mechanisms.Laplace(epsilon=1.0, sensitivity=1.0, random_state=state)
        return np.array([noisy.randomise(float(x[0])) for _ in range(size)])

    outcome = attack(mechanism, ONE, PureDP(1.0), seed=1)
    assert outcome.epsilon > 7.0
    assert outcome.likely > 0.3
    assert "bits of output" in outcome.words
