"""Tests of the floating-point attack in whole audits.

The tests check what the attack certifies and what the attack must not certify.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit import ApproxDP, NeighborPair, PureDP, Relation, within_sensitivity
from dpaudit.events.bits import FloatAttack, bit_features
from dpaudit.events.encoding import Encoder
from dpaudit.events.features import Feature
from dpaudit.events.scores import FeatureScore, Score, TableScore
from dpaudit.stats.joint import Counts, Target
from dpaudit.stats.rates import RateBounds
from tests.events.test_bits import (
    ALARM,
    DRAWS,
    EXPLORE,
    FAILURE,
    ODD,
    ONE,
    Floats,
    Mechanism,
)

# --- what it certifies: draws ---


@dataclass(frozen=True)
class Status:
    """The best event of the features on fresh draws, with its rates and the certified epsilon."""

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
    """Yield the worth, the threshold, the direction and the likelier side of the best cuts.

    The worth is computed from rates that are made worse by two standard errors.
    """
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
    mutant: Callable[[Feature], Feature] = lambda feature: feature,
) -> Status:
    """Explore, freeze, draw anew and certify, as a small engine with bit features only."""
    rng = np.random.default_rng(seed)
    delta = claim.claimed_delta
    explored = [mechanism(data, EXPLORE, rng) for data in (pair.left, pair.right)]
    encoder = Encoder.learn(np.concatenate(explored))
    left, right = (encoder(x) for x in explored)
    half = EXPLORE // 2
    guesses = FloatAttack.for_pair(pair, claim)
    features = [mutant(f) for f in bit_features(encoder, left[:half], right[:half], guesses)]
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
        return Status("", 0.0, 0, 0.0)
    _, threshold, above, likelier, score = best
    fresh = DRAWS - EXPLORE
    hits = [
        int(((score(encoder(mechanism(data, fresh, rng))) >= threshold) == above).sum())
        for data in (pair.left, pair.right)
    ]
    counts = Counts(hits[0], fresh, hits[1], fresh)
    bounds = RateBounds.from_counts(counts, likelier, failure_prob, Target(delta=delta))
    likely, rare = hits if likelier == "left" else hits[::-1]
    words = score.words(threshold, above)
    return Status(words, likely / fresh, rare, bounds.lower_epsilon(delta))


def naive(scale: float) -> Mechanism:
    return lambda x, size, rng: np.squeeze(x + rng.laplace(scale=scale, size=(size, *x.shape)))


@pytest.mark.sampled
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("scale", "claimed"),
    [(10.0, 0.1), (1.0, 1.0), (0.5, 2.0), (0.25, 4.0), (0.125, 8.0), (1.0, 8.0), (1.37, 8.0)],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_naive_laplace_is_refuted_whatever_it_claims(
    scale: float, claimed: float, seed: int
) -> None:
    """Check that naive Laplace noise is refuted whatever its claim is.

    The attack also works if the claim does not reveal the scale. The test is about power, not about
    level, because q is 0 by construction.
    """
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
    """Add discrete Laplace noise that is first multiplied by 0.01."""
    return np.asarray(x[0] + 0.01 * _geometric(0.01, size, rng))


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("mechanism", "least", "claim"),
    [
        (_textbook, 8.0, PureDP(1.0)),
        (naive(1.2345678), 7.0, PureDP(1.0)),  # a scale that cannot be guessed
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
    """Return integer Laplace noise whose scale is 1 / step."""
    q = -math.expm1(-step)
    return np.asarray(rng.geometric(q, size) - rng.geometric(q, size))


def lattice(step: float) -> Mechanism:
    """Return a mechanism with Laplace noise of scale 1 on multiples of a power of two.

    The noise is computed in exact integers.
    """

    def mechanism(x: Floats, size: int, rng: np.random.Generator) -> Floats:
        return np.asarray((round(float(x[0]) / step) + _geometric(step, size, rng)) * step)

    return mechanism


def snapping(x: Floats, size: int, rng: np.random.Generator) -> Floats:
    """Apply Mironov's snapping mechanism.

    The uniforms have all bits. The output is rounded to multiples of a power of two and clamped.
    """
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
    """Check that honest mechanisms keep their claim.

    The false-alarm probability of each audit is ALARM = 1e-6.
    """
    assert (
        attack(mechanism, pair, PureDP(epsilon), seed=seed, failure_prob=ALARM).epsilon <= epsilon
    )


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", [naive(1.0), _gaussian, _single])
def test_equal_inputs_are_not_told_apart(mechanism: Mechanism) -> None:
    """Check that naive noise on two equal inputs certifies nothing.

    The false-alarm probability of each audit is 1e-6.
    """
    same = replace(ONE, left=np.array([0.3]), right=np.array([0.3]))
    assert attack(mechanism, same, PureDP(1.0), seed=1, failure_prob=ALARM).epsilon == 0.0


@pytest.mark.statistical
def test_constant_features_cannot_separate() -> None:
    """Check that the attack certifies nothing if its features are constant.

    The mutant of the attack is the same pipeline with uninformative features.
    """

    def blind(feature: Feature) -> Feature:
        return replace(feature, read=lambda x: np.zeros(len(x)))

    assert attack(naive(1.0), ONE, PureDP(1.0), seed=1, mutant=blind).epsilon == 0.0


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize(("pair", "epsilon"), [(ONE, 1.0), (ODD, 0.4)], ids=["0, 1", "0.3, 0.7"])
def test_opendp_laplace_keeps_its_claim(pair: NeighborPair, epsilon: float) -> None:
    """Check that the Laplace noise of OpenDP keeps its claim.

    OpenDP draws from the operating system. The false-alarm probability of each audit is 1e-6.
    """
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
    """A counterexample: the Laplace noise of diffprivlib leaks through rounding.

    The sampler (Holohan and Braghin 2021) hides the noise, but the sum is still rounded.
    """
    mechanisms = pytest.importorskip("diffprivlib.mechanisms", exc_type=ImportError)

    def mechanism(x: Floats, size: int, rng: np.random.Generator) -> Floats:
        state = np.random.RandomState(rng.integers(2**32))
        noisy = mechanisms.Laplace(epsilon=1.0, sensitivity=1.0, random_state=state)
        return np.array([noisy.randomise(float(x[0])) for _ in range(size)])

    outcome = attack(mechanism, ONE, PureDP(1.0), seed=1)
    assert outcome.epsilon > 7.0
    assert outcome.likely > 0.3
    assert "bits of output" in outcome.words
