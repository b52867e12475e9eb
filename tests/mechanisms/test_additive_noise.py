from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from scipy import integrate, special

from dpaudit import ApproxDP, NeighborPair, PureDP, within_sensitivity
from dpaudit.engine.driver import certificate_of
from dpaudit.engine.task import Task
from dpaudit.errors import MechanismError
from dpaudit.mechanisms.additive import AdditiveNoise
from dpaudit.neighbors.pairs import family
from dpaudit.results.estimates import LongProfile
from dpaudit.stats import oracles

CLAIM = ApproxDP(1.0, 1e-6)


def pair(left, right):
    left, right = np.atleast_1d(left).astype(float), np.atleast_1d(right).astype(float)
    return NeighborPair(left, right, relation=within_sensitivity(1e10, norm="l2"))


def prepared(claim, pairs, *, draws=10_000, failure_prob=1e-5, seed=1, name="audit_it"):
    return Task(claim, family(pairs), draws, failure_prob, seed, name)


def look(mechanism, claim, pairs, role="mechanism", **budget):
    found = certificate_of(prepared(claim, pairs, **budget), mechanism, role)
    return found, found.long_profile


def uniform(data, size, *, rng, radius=1.0):
    return data[0] + rng.uniform(-radius, radius, size=size)


def around(data, *, radius=1.0):
    return data, radius


def sampled_user(data, size, *, rng):
    """Return centres that move in only one run of ten."""
    return (rng.random(size) < 0.1) * data[0]


def gaussian_cloud(data, size, *, rng):
    return data + 0.3 * rng.normal(size=(size, len(data)))


def signs(data, size, *, rng):
    s = rng.choice([-2.0, 2.0], size=size)
    return np.stack([s, s * data[0]], axis=1)


def coins(data, size, *, rng):
    return data + rng.integers(0, 2, size=(size, len(data)))


def shifted_data(data):
    return 2 * data


# --- the class ---


def test_it_is_a_sampled_mechanism_too():
    mechanism = AdditiveNoise(functools.partial(uniform, radius=0.5), "laplace", 2.0)
    assert mechanism.__name__ == "uniform(radius=0.5) + laplace noise of scale 2"
    assert repr(mechanism) == "AdditiveNoise(uniform(radius=0.5), laplace noise of scale 2)"
    data = np.zeros(1)
    draws = mechanism(data, 1000, rng=np.random.default_rng(0))
    again = mechanism(data, 1000, rng=np.random.default_rng(0))
    assert draws.shape == (1000,)
    np.testing.assert_array_equal(draws, again)
    assert mechanism.is_random
    fixed = AdditiveNoise(shifted_data, scale=1e-9)
    assert not fixed.is_random
    assert fixed(np.ones(3), 5, rng=np.random.default_rng(0)) == pytest.approx(np.full((5, 3), 2.0))
    assert fixed(np.ones(3), 0, rng=np.random.default_rng(0)).shape == (0, 3)
    assert AdditiveNoise(np.sum, scale=1.0)(np.ones(3), 5, rng=np.random.default_rng(0)).shape == (
        5,
    )


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"scale": 0}, ValueError, "scale must be a finite number > 0.*sampled mechanism"),
        ({"scale": -1.0}, ValueError, "scale must be"),
        ({"scale": math.nan}, ValueError, "scale must be"),
        ({}, ValueError, "scale must be"),
        ({"scale": 1.0, "noise": "cauchy"}, ValueError, "noise must be one of"),
        ({"scale": 1.0, "ball": 3.0}, TypeError, "ball must be a pair"),
        ({"scale": 1.0, "ball": ([0.0], -1.0)}, ValueError, "radius must be"),
        ({"scale": 1.0, "ball": ([math.nan], 1.0)}, ValueError, "ball must have a centre"),
        ({"scale": 1.0, "centers": 3}, TypeError, "centers must be a function"),
        ({"scale": 1e300}, ValueError, r"scale must be a number from 1e-50 to 1e\+50, got 1e\+300"),
        ({"scale": 1e-300}, ValueError, r"scale must be a number from 1e-50 .*, got 1e-300"),
        (
            {"scale": 2.0, "ball": ([0.0], 1e308)},
            ValueError,
            r"at most 2e\+50 \(1e\+50 noise scales\), got",
        ),
        (
            {"scale": 2.0, "ball": ([1e308], 1.0)},
            ValueError,
            r"at most 2e\+50 \(1e\+50 noise scales\)",
        ),
    ],
)
def test_bad_descriptions_are_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        AdditiveNoise(**{"centers": uniform, **arguments})


def nan_centers(data, size, *, rng):
    return np.where(rng.random(size) < 0.5, np.nan, 1.0)


def infinite_centers(data, size, *, rng):
    return rng.normal(size=size) / (rng.random(size) > 0.5)


def huge_centers(data, size, *, rng):
    return rng.choice([-1e308, 1e308], size=size)


def failing_centers(data, size, *, rng):
    return rng.normal(scale=-1.0, size=size)


def unequal_centers(data, size, *, rng):
    return rng.normal(size=(size, 1 + int(data[0])))


def words_for_centers(data, size, *, rng):
    return rng.choice(["a", "b"], size=size)


def matrices(data, size, *, rng):
    return rng.normal(size=(size, 2, 2))


def shared(data, size, *, rng):
    return np.full(size, rng.normal())


def half_shared(data, size, *, rng):
    return rng.normal() + rng.normal(size=size)


def unruly(data, size, *, rng):
    return np.random.default_rng(3).normal(size=size)


def meddling(data, size, *, rng):
    data += 1
    return rng.normal(size=size)


@pytest.mark.parametrize(
    ("centers", "words"),
    [
        (nan_centers, "finite centres, got NaN or inf in .* of .* draws"),
        (infinite_centers, r"finite centres, got NaN or inf .* first of them is \[-?inf\]"),
        (
            huge_centers,
            r"centres of size at most 1e\+50 \(1e\+50 noise scales\), got .* 1e\+308",
        ),
        (failing_centers, r"raised ValueError: scale < 0 \(at test_additive_noise.py:\d+, size=64"),
        (unequal_centers, "draws of one shape"),
        (words_for_centers, "centres that are numbers"),
        (matrices, r"centres \[size, d\] or \[size\]"),
        (shared, "shares its noise"),
        (half_shared, "shares its noise"),
        (unruly, "ignores rng"),
        (meddling, "must not change its input"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_broken_centres_are_refused(centers, words):
    with pytest.raises(MechanismError, match=words):
        look(AdditiveNoise(centers, scale=1.0), CLAIM, pair(1, 0), draws=2000)


def test_centres_outside_the_declared_ball_are_refused():
    mechanism = AdditiveNoise(uniform, scale=1.0, ball=([0.5], 0.9))
    with pytest.raises(MechanismError, match="inside its declared ball, .* exceeds the radius"):
        look(mechanism, CLAIM, pair(1, 0), draws=2000)
    longer = AdditiveNoise(uniform, scale=1.0, ball=([0.5, 0.0], 9.0))
    with pytest.raises(MechanismError, match="the declared ball's centre, got length 1"):
        look(longer, CLAIM, pair(1, 0), draws=2000)

    def one_stray(data, size, *, rng):
        centers = rng.uniform(-1, 1, size=size)
        if size not in (64, 300):
            centers[0] = 1.5
        return centers

    # Exploration detected nothing (300 draws in 5 calls), but the certifying draws are checked too.
    with pytest.raises(MechanismError, match="inside its declared ball"):
        look(AdditiveNoise(one_stray, scale=1.0, ball=([0.0], 1.0)), CLAIM, pair(1, 0), draws=1000)


@pytest.mark.parametrize(
    ("centers", "words"),
    [
        (lambda data: np.full(2, np.nan), "NaN or inf"),
        (lambda data: np.zeros((2, 2)), "must return one centre"),
        (lambda data: np.zeros(0), "must return one centre"),
        (lambda data: data[: 1 + int(data[0])], "centres of equal length, got 2 .* and 1"),
        (lambda data: "many", "centres that are numbers"),
        (lambda data, size: data, "Add an argument rng"),
        (
            lambda data: data.none,
            r"raised AttributeError: .* \(at test_additive_noise.py:\d+, called with",
        ),
        (
            lambda data: data * 1e308,
            r"centres of size at most 1e\+50 \(1e\+50 noise scales\), got a centre",
        ),
        (
            lambda data: data * 1e-300,
            "equal or at least 1e-99 noise scales apart, got a distance of 1e-300",
        ),
        (
            lambda data: np.random.default_rng().normal(size=1),
            "calls without rng returned different centres",
        ),
    ],
)
def test_broken_deterministic_centres_are_refused(centers, words):
    with pytest.raises(MechanismError, match=words):
        look(AdditiveNoise(centers, scale=1.0), CLAIM, pair([1, 0], [0, 0]))


def test_a_ball_that_raises_is_a_fault_of_the_mechanism():
    def ball(data):
        raise KeyError("oops")

    words = (
        r"^ball of uniform raised KeyError: 'oops' \(at test_additive_noise.py:\d+, "
        r"called with data of shape \(1,\)\)$"
    )
    for centers in (uniform, lambda data: data):
        with pytest.raises(MechanismError, match=words.replace("uniform", r"\S+")) as caught:
            look(AdditiveNoise(centers, scale=1.0, ball=ball), CLAIM, pair(1, 0), draws=2000)
        assert isinstance(caught.value.__cause__, KeyError)


def together(data, size, *, rng):
    return np.outer(rng.random(size), np.ones(3)) + data


@pytest.mark.sampled
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("scale", [1e-40, 1e-17, 1e-9])
def test_centres_that_move_together_by_more_than_the_noise_are_audited(kind, scale):
    moved = AdditiveNoise(together, kind, scale)
    finding, _ = look(moved, CLAIM, pair([1, 0, 1], [0, 0, 0]), draws=2000)
    assert finding.refuted


@pytest.mark.sampled
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("scale", [1e-50, 1.0, 1e50])
@pytest.mark.parametrize("size", [1e-50, 1e49])
@pytest.mark.parametrize("d", [1, 3])
def test_the_ends_of_what_is_allowed_are_audited_without_a_warning(kind, scale, size, d):
    left, right = np.full(d, size * scale), np.zeros(d)
    far = pair(left, right) if size < 1 else NeighborPair(left[None], right[None])

    def moved(data):
        return data.reshape(-1)

    def moving(data, size, *, rng):
        return data.reshape(-1) * rng.uniform(0.9, 1.0, size=(size, d))

    for centers, ball in ((moved, None), (moving, None), (moving, (np.zeros(d), 2 * size * scale))):
        finding, _ = look(AdditiveNoise(centers, kind, scale, ball=ball), CLAIM, far, draws=300)
        assert finding.refuted == (size > 1)


@pytest.mark.sampled
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("far", [1e17, 1e40])
def test_centres_beside_which_the_noise_vanishes_are_audited(kind, far):
    def moving(data, size, *, rng):
        return far * (1 + 0.1 * data[0]) * (1 + 1e-15 * rng.integers(2, size=size))

    finding, _ = look(AdditiveNoise(moving, kind, 1.0), CLAIM, pair(1, 0), draws=2000)
    assert finding.refuted
    same, _ = look(AdditiveNoise(moving, kind, 1.0), CLAIM, pair(1, 1), draws=2000)
    assert not same.refuted


@pytest.mark.sampled
@pytest.mark.parametrize("claim", [PureDP(800.0), ApproxDP(800.0, 1e-6), PureDP(1e100)], ids=str)
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("ball", [None, around])
def test_large_claims_are_audited_without_a_warning(claim, kind, ball):
    finding, _ = look(AdditiveNoise(uniform, kind, 0.01, ball=ball), claim, pair(1, 0), draws=500)
    assert not finding.refuted


def test_gaussian_noise_keeps_no_pure_claim():
    # The delta at epsilon = 4 is less than any double, but epsilon is known to be infinite.
    finding, _ = look(AdditiveNoise(shifted_data, scale=20.0), PureDP(4.0), pair(1, 0))
    assert finding.epsilon.lower == math.inf
    assert finding.refuted
    assert not look(AdditiveNoise(shifted_data, scale=20.0), PureDP(4.0), pair(1, 1))[0].refuted
    laplace = AdditiveNoise(shifted_data, "laplace", 0.5)
    assert not look(laplace, PureDP(4.0), pair(1, 0))[0].refuted
    assert look(laplace, PureDP(3.9), pair(1, 0))[0].refuted


# --- (a) deterministic centres ---


def test_deterministic_centres_have_the_gaussian_profile():
    finding, long = look(
        AdditiveNoise(shifted_data, scale=4.0), CLAIM, [pair([1, 1], [1, 2]), pair([1, 3], [0, 2])]
    )
    oracle = oracles.gaussian(2 * math.sqrt(2), 4.0)
    assert finding.epsilon.lower == finding.epsilon.upper == oracle.epsilon(1e-6)
    assert finding.epsilon.failure_prob == 0
    assert finding.delta.lower == oracle.delta(1.0)
    np.testing.assert_array_equal(
        finding.profile.certified_delta, oracle.delta(np.array(finding.profile.epsilon))
    )
    assert finding.refuted
    np.testing.assert_array_equal(finding.pair.left, [1.0, 3.0])
    assert long.estimated_delta[-1] < 1e-9 < long.estimated_delta[-3]
    np.testing.assert_array_equal(long.estimated_delta, oracle.delta(long.epsilon))
    assert set(long.standard_error) == {0.0}
    assert math.log(finding.witness.likely / finding.witness.rare) > oracle.epsilon(1e-6)


def test_deterministic_centres_have_the_laplace_profile():
    mechanism = AdditiveNoise(shifted_data, "laplace", 4.0, ball=([0.0, 0.0], 10.0))
    finding, _ = look(mechanism, PureDP(1.0), pair([1, 0], [0, 1]))
    assert finding.epsilon.lower == pytest.approx(1.0, rel=1e-15)
    assert not finding.refuted  # the claim is kept exactly
    broken, _ = look(mechanism, PureDP(0.9), pair([1, 0], [0, 1]))
    assert broken.refuted
    assert broken.delta.lower == oracles.laplace_vector([2.0, -2.0], 4.0).delta(0.9)


def test_many_unlike_laplace_shifts_still_give_a_lower_bound():
    shifts = np.sqrt(np.arange(1, 41) / 100)
    finding, _ = look(
        AdditiveNoise(lambda data: data, "laplace", 1.0), PureDP(1.0), pair(shifts, 0 * shifts)
    )
    assert finding.epsilon.lower == pytest.approx(np.sort(shifts)[-12:].sum())
    assert finding.epsilon.upper == math.inf
    assert "12 coordinates" in finding.epsilon.method


def test_equal_centres_need_no_epsilon():
    finding, long = look(AdditiveNoise(lambda data: 1.0, scale=1.0), CLAIM, pair([1, 0], [0, 1]))
    assert finding.epsilon.lower == finding.delta.lower == 0
    assert not finding.refuted
    assert max(long.estimated_delta) == 0
    assert "equal" in finding.witness.event


# --- (b) centres in a declared ball ---


def true_epsilon(shift, radius, delta):
    """Return epsilon for centres that are uniform on intervals with this radius.

    The two intervals are at distance `shift`. Half-spaces are the optimal events.
    """

    def rate(middle, t):
        z, w = (middle + radius - t), (middle - radius - t)
        mean = z * special.ndtr(z) - w * special.ndtr(w)
        return (mean + (math.exp(-z * z / 2) - math.exp(-w * w / 2)) / math.sqrt(2 * math.pi)) / (
            2 * radius
        )

    def by_quadrature(middle, t):
        value = integrate.quad(
            lambda c: special.ndtr(c - t), middle - radius, middle + radius, epsabs=0, epsrel=1e-11
        )[0]
        return value / (2 * radius)

    assert rate(0.3, 1.0) == pytest.approx(by_quadrature(0.3, 1.0), rel=1e-9)
    best = 0.0
    for t in np.linspace(0, 10, 401):
        p, q = by_quadrature(shift / 2, t), by_quadrature(-shift / 2, t)
        if p > delta:
            best = max(best, math.log((p - delta) / q))
    return best


@pytest.mark.sampled
@pytest.mark.parametrize(("shift", "radius"), [(1.0, 1.0), (1.0, 0.5), (0.5, 1.0), (2.0, 0.5)])
def test_a_small_budget_comes_within_a_tenth_of_the_truth(shift, radius):
    truth = true_epsilon(shift, radius, 1e-6)
    centers = functools.partial(uniform, radius=radius)
    mechanism = AdditiveNoise(centers, scale=1.0, ball=functools.partial(around, radius=radius))
    claim = ApproxDP(0.85 * truth, 1e-6)
    finding, _ = look(mechanism, claim, pair(shift / 2, -shift / 2), draws=10_000)
    assert 0.9 * truth < finding.epsilon.lower <= truth
    assert finding.refuted
    assert finding.delta.lower > 1e-6
    assert "averaged over the noise" in finding.witness.event
    assert finding.witness.counts is None
    assert finding.draws == {"explore": 3000, "certify": 7000}


@pytest.mark.slow
def test_a_common_ball_suffices_for_a_small_shift_and_no_ball_does_not():
    truth = true_epsilon(0.5, 1.0, 1e-6)
    results = {}
    for name, ball in (("common", ([0.0], 1.25)), ("none", None)):
        mechanism = AdditiveNoise(uniform, scale=1.0, ball=ball)
        results[name], _ = look(mechanism, CLAIM, pair(0.25, -0.25))
    assert results["common"].epsilon.lower > 0.87 * truth
    assert 0.3 * truth < results["none"].epsilon.lower < 0.6 * truth


def mixture_epsilon(share, delta):
    """Return epsilon of one Gaussian against a mixture.

    The mixture moves by 1 with probability `share`.
    """
    t = np.linspace(-3, 9, 20_001)
    p = (1 - share) * special.ndtr(-t) + share * special.ndtr(1 - t)
    ok = p > delta
    return float(np.log((p[ok] - delta) / special.ndtr(-t[ok])).max())


def test_a_subsampled_gaussian_is_certified_far_below_one_in_draws():
    mechanism = AdditiveNoise(
        sampled_user, scale=1.0, ball=lambda data: ([data[0] / 2], abs(data[0]) / 2)
    )
    finding, long = look(mechanism, CLAIM, pair(1, 0), draws=20_000)
    assert 0.9 * mixture_epsilon(0.1, 1e-6) < finding.epsilon.lower < mixture_epsilon(0.1, 1e-6)
    profile = finding.profile
    certified = [d for d in profile.certified_delta if d > 0]
    assert min(certified) < 1e-4  # certifying 1 of 14,000 draws would give 7e-5
    assert all(c <= e for c, e in zip(certified, profile.estimated_delta, strict=False))
    assert isinstance(long, LongProfile)
    assert long.epsilon[: len(profile.epsilon)] == profile.epsilon
    assert long.epsilon[-1] > profile.epsilon[-1]
    assert long.estimated_delta[-1] < 1e-8


@pytest.mark.slow
def test_the_estimated_profile_agrees_with_the_truth_within_its_errors():
    mechanism = AdditiveNoise(sampled_user, scale=1.0)
    _, long = look(mechanism, CLAIM, pair(1, 0), draws=50_000)
    t = np.linspace(-4, 10, 20_001)
    p = 0.9 * special.ndtr(-t) + 0.1 * special.ndtr(1 - t)
    for epsilon, estimate, error in zip(
        long.epsilon, long.estimated_delta, long.standard_error, strict=True
    ):
        # The left side is the mixture. For small epsilon, the other direction is not larger.
        truth = max(float((p - math.exp(epsilon) * special.ndtr(-t)).max()), 0.0)
        assert estimate <= truth + 5 * error + 1e-12
        assert estimate >= 0.9 * truth - 5 * error - 1e-10
