from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpaudit.stats.noise import Ball, Box, HalfSpace, Noise, Slab
from tests.statistical import assert_distribution, assert_frequencies

GAUSSIAN, LAPLACE = Noise("gaussian", 0.7), Noise("laplace", 0.7)


def exact_tail(noise, z):
    """Return P(noise > z), to 40 digits."""
    with mp.workdps(40):
        z = mp.mpf(z) / mp.mpf(noise.scale)
        if noise.kind == "gaussian":
            return mp.erfc(z / mp.sqrt(2)) / 2
        return mp.exp(-z) / 2 if z > 0 else 1 - mp.exp(z) / 2


def exact_between(noise, location, low, high):
    with mp.workdps(60):
        a, b = mp.mpf(low) - mp.mpf(location), mp.mpf(high) - mp.mpf(location)
        if a > 0:
            return exact_tail(noise, a) - exact_tail(noise, b)
        if b < 0:
            return exact_tail(noise, -b) - exact_tail(noise, -a)
        return 1 - exact_tail(noise, b) - exact_tail(noise, -a)


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
@pytest.mark.parametrize("threshold", [-20.0, -1.0, 0.0, 0.5, 3.0, 9.0, 25.0])
def test_tails_keep_their_relative_accuracy(noise, threshold):
    expected = float(exact_tail(noise, threshold - 0.25))
    assert noise.above(0.25, threshold) == pytest.approx(expected, rel=1e-12)
    space = HalfSpace([0.0, -1.0], -threshold)
    mirrored = float(exact_tail(noise, -threshold + 0.25))
    found = noise.probability(space, [[5.0, 0.25]])[0]
    assert found == pytest.approx(float(exact_tail(noise, 0.25 - threshold)), rel=1e-12)
    assert mirrored == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
@pytest.mark.parametrize("low", [-12.0, -3.0, -0.1, 0.0, 0.25, 4.0, 11.0])
@pytest.mark.parametrize("width", [1e-12, 1e-7, 1e-5, 1e-3, 0.3, 5.0, 40.0])
def test_slabs_keep_their_relative_accuracy(noise, low, width):
    high = low + width
    expected = float(exact_between(noise, 0.25, low, high))
    assert noise.between(0.25, low, high) == pytest.approx(expected, rel=2e-10)


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
def test_infinite_ends(noise):
    assert noise.between(0.3, -np.inf, np.inf) == 1.0
    assert noise.between(0.3, -np.inf, 2.0) == pytest.approx(1 - noise.above(0.3, 2.0))
    assert noise.between(0.3, 8.0, np.inf) == pytest.approx(noise.above(0.3, 8.0), rel=1e-13)
    assert noise.between(0.3, -np.inf, -8.0) == pytest.approx(noise.above(8.0, -0.3), rel=1)


def noncentral_chi_square(x, d, nc, upper):
    with mp.workdps(40):
        total, x, nc = mp.mpf(0), mp.mpf(x), mp.mpf(nc)
        for j in range(int(nc + x) + 200):
            weight = mp.exp(-nc / 2 + j * mp.log(nc / 2) - mp.loggamma(j + 1))
            ends = (x / 2, mp.inf) if upper else (0, x / 2)
            total += weight * mp.gammainc(mp.mpf(d) / 2 + j, *ends, regularized=True)
        return float(total)


@pytest.mark.parametrize("d", [1, 2, 40])
@pytest.mark.parametrize(("radius", "away"), [(0.5, 4.0), (3.0, 3.0), (8.0, 1.0), (2.0, 9.0)])
@pytest.mark.parametrize("outside", [False, True])
def test_balls_agree_with_the_noncentral_chi_square_series(d, radius, away, outside):
    region = Ball(np.ones(d), radius, outside)
    center = np.ones((1, d))
    center[0, -1] += away
    scale = GAUSSIAN.scale
    expected = noncentral_chi_square((radius / scale) ** 2, d, (away / scale) ** 2, outside)
    assert GAUSSIAN.probability(region, center)[0] == pytest.approx(expected, rel=1e-9)


def test_balls_at_the_edge():
    middle = np.zeros(2)
    # Around the centre of the noise, the squared distance is exponential.
    inside = GAUSSIAN.probability(Ball(middle, 1.0), [[0.0, 0.0]])[0]
    assert inside == pytest.approx(-math.expm1(-1 / (2 * 0.49)), rel=1e-13)
    far = [[1e8, 0.0]]
    assert GAUSSIAN.probability(Ball(middle, 1.0), far)[0] == 0.0
    assert GAUSSIAN.probability(Ball(middle, 1.0, outside=True), far)[0] == 1.0
    with pytest.raises(ValueError, match="radius must be .* noise scales"):
        GAUSSIAN.probability(Ball(middle, 1e5), far)


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
def test_a_box_is_a_product(noise):
    box = Box([-1.0, -np.inf, 2.0], [0.5, np.inf, np.inf])
    centers = np.array([[0.0, 3.0, 1.0], [4.0, -2.0, 2.5]])
    expected = noise.between(centers[:, 0], -1.0, 0.5) * noise.above(centers[:, 2], 2.0)
    np.testing.assert_allclose(noise.probability(box, centers), expected, rtol=1e-13)


REGIONS = {
    "half-space": HalfSpace([1.0, 0.0], 1.1),
    "slab": Slab([0.0, 1.0], -0.4, 0.9),
    "outside a slab": Slab([0.0, 1.0], -0.4, 0.9, outside=True),
    "box": Box([-0.5, -np.inf], [1.0, 0.3]),
}
ROUND = {
    "slanted half-space": HalfSpace([0.6, -0.8], 1.1),
    "slanted slab": Slab([0.6, -0.8], 0.4, 0.9),
    "ball": Ball([0.3, -0.4], 1.2),
    "outside a ball": Ball([0.3, -0.4], 1.2, outside=True),
}
CASES = [(GAUSSIAN, r) for r in [*REGIONS.values(), *ROUND.values()]]
CASES += [(LAPLACE, r) for r in REGIONS.values()]


@pytest.mark.statistical
def test_probabilities_are_those_of_the_noise():
    rng = np.random.default_rng(11)
    center = np.array([[0.5, 0.2]])
    for noise, region in CASES:
        points = center + noise.sample((20_000, 2), rng=rng)
        if isinstance(region, Ball):
            hit = (
                np.linalg.norm(points - region.center, axis=1) <= region.radius
            ) != region.outside
        elif isinstance(region, Box):
            hit = ((points > region.low) & (points <= region.high)).all(axis=1)
        elif isinstance(region, HalfSpace):
            hit = points @ region.direction > region.threshold
        else:
            along = points @ region.direction
            hit = ((along > region.low) & (along <= region.high)) != region.outside
        p = float(noise.probability(region, center)[0])
        hits = int(hit.sum())
        assert_frequencies([hits, 20_000 - hits], [p, 1 - p])
        with pytest.raises(AssertionError):
            assert_frequencies([hits, 20_000 - hits], [p * 1.15, 1 - p * 1.15])


@pytest.mark.statistical
def test_samples_have_the_law_of_their_name():
    rng = np.random.default_rng(12)
    assert_distribution(GAUSSIAN.sample(20_000, rng=rng), stats.norm(scale=0.7).cdf)
    assert_distribution(LAPLACE.sample(20_000, rng=rng), stats.laplace(scale=0.7).cdf)
    with pytest.raises(AssertionError):
        assert_distribution(LAPLACE.sample(20_000, rng=rng), stats.norm(scale=0.7).cdf)
    assert LAPLACE.sample((3, 2), rng=rng).shape == (3, 2)


@given(
    st.sampled_from(range(len(CASES))),
    st.floats(0, 3),
    st.floats(-2, 2),
    st.floats(-2, 2),
    st.floats(0, 6.3),
    st.floats(0, 1),
)
def test_no_centre_in_the_ball_exceeds_the_largest(case, radius, x, y, angle, share):
    noise, region = CASES[case]
    middle = np.array([x, y])
    center = middle + radius * share * np.array([math.cos(angle), math.sin(angle)])
    largest = noise.largest(region, middle, radius)
    assert noise.probability(region, [center])[0] <= largest * (1 + 1e-9) <= 1 + 1e-8


@pytest.mark.parametrize(("noise", "region"), CASES)
def test_the_largest_is_attained(noise, region):
    """Check that the largest probability is attained.

    Boxes are an exception, because their bound is a product over a cube.
    """
    middle, radius = np.array([1.0, -0.5]), 0.8
    angles = np.linspace(0, 2 * np.pi, 721)
    rim = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    centers = np.concatenate([middle + radius * s * rim for s in np.linspace(0, 1, 81)])
    best = noise.probability(region, centers).max()
    largest = noise.largest(region, middle, radius)
    if isinstance(region, Box):
        assert best <= largest < 2 * best
    else:
        assert best == pytest.approx(largest, rel=1e-3)
    assert noise.largest(region, middle, 0.0) == noise.probability(region, [middle])[0]


@pytest.mark.parametrize("scale", [0, 0.0, -1.0, math.nan, math.inf])
def test_scales_that_are_none_are_refused(scale):
    with pytest.raises(ValueError, match="scale must be a finite number > 0"):
        Noise("gaussian", scale)


def test_other_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="noise must be one of gaussian, laplace"):
        Noise("cauchy", 1.0)
    with pytest.raises(TypeError, match="scale"):
        Noise("gaussian", "1")
    with pytest.raises(ValueError, match="direction must have length 1"):
        HalfSpace([1.0, 1.0], 0.0)
    with pytest.raises(ValueError, match="high must be a number > low"):
        Slab([1.0], 2.0, 1.0)
    with pytest.raises(ValueError, match="radius must be"):
        Ball([0.0], 0.0)
    with pytest.raises(ValueError, match="high must exceed low"):
        Box([0.0], [0.0])
    with pytest.raises(ValueError, match="of equal length"):
        Box([0.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="closed form"):
        LAPLACE.probability(ROUND["slanted half-space"], [[0.0, 0.0]])
    with pytest.raises(ValueError, match="closed form"):
        LAPLACE.largest(ROUND["ball"], [0.0, 0.0], 1.0)
    with pytest.raises(ValueError, match=r"centers must be \[size, 2\], got shape \(2,\)"):
        GAUSSIAN.probability(ROUND["ball"], [0.0, 0.0])
    with pytest.raises(ValueError, match="center must have 2 coordinates"):
        GAUSSIAN.largest(ROUND["ball"], [0.0], 1.0)
    with pytest.raises(TypeError, match="region must be"):
        GAUSSIAN.probability("ball", [[0.0]])


@pytest.mark.parametrize("scale", [1e-300, 9e-51, 2e50, 1e300])
def test_scales_whose_squares_are_no_doubles_are_refused(scale):
    with pytest.raises(ValueError, match=r"scale must be a number from 1e-50 to 1e\+50, got "):
        Noise("gaussian", scale)
    assert Noise("laplace", 1e50).scale * Noise("laplace", 1e-50).scale == 1.0
