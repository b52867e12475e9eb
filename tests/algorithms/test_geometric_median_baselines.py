"""Tests of RadiusFinder, DPGD and the synthetic data.

The tests cover sensitivities, distributions and mutants.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import chi2, norm, uniform
from scipy.stats import f as fisher

from algorithms.geometric_median import baselines, datasets, reference
from mutants import geometric_median as mutants
from tests.algorithms import distributions
from tests.statistical import assert_distribution, assert_frequencies

FOUR = np.array([[0.0], [0.5], [1.5], [4.0]])
BALANCED = np.array([[1e6], [-1e6], [1e6], [-1e6], [1e6]])
TIPPED = np.array([[1e6], [-1e6], [1e6], [-1e6], [-1e6]])
DESCENT = {"center": [0.0], "radius": 1e5, "rho": 0.1, "step": 1.0, "n_steps": 100}
CROWD = {"min_radius": 1.0, "max_radius": 10.0, "epsilon": 1.0, "failure_prob": 0.5}


def crowd(near: int) -> np.ndarray:
    return np.array([[0.0]] * near + [[10.0]] * (400 - near))


def yes_probability(query: float, threshold: float, scale: float) -> float:
    return distributions.pattern_probability(
        [query], (1,), threshold=threshold, threshold_scale=2 * scale, query_scale=4 * scale
    )


@pytest.mark.parametrize("d", [1, 3, 1000])
def test_gradients_are_bounded_where_squares_underflow(d: int) -> None:
    tiny = np.full(d, 1.57e-162)
    tiny[0] = 2.7e-162
    here, there = (baselines._gradients(np.stack([x, x]), np.zeros((1, d))) for x in (tiny, -tiny))
    assert math.dist(here[0], there[0]) == pytest.approx(2.0)


@given(small=st.floats(0.01, 1), ratio=st.floats(1, 1000))
def test_radii_of_the_published_grid(small: float, ratio: float) -> None:
    """Check that the grid of radii is r 2**i for i = 0 to floor(log2(2R / r)).

    The grid contains every radius of this form up to 2R.
    """
    large = small * ratio
    radii = baselines.radius_finder_radii(small, max(small, large))
    assert radii[0] == small
    assert radii[-1] <= 2 * max(small, large) < 2 * radii[-1]


def test_queries_by_hand() -> None:
    found = baselines.radius_finder_queries(FOUR, [0.5, 1.0, 8.0], gamma=0.75)
    np.testing.assert_allclose(found, [(2 + 2 + 1) / 3, (2 + 3 + 2) / 3, 4.0])
    assert baselines.radius_finder_queries(FOUR, [0.5], gamma=1.0)[0] == (2 + 2 + 1 + 1) / 4


@given(
    data=arrays(float, (6, 2), elements=st.integers(-2, 2)),
    other=arrays(float, 2, elements=st.integers(-2, 2)),
    gamma=st.sampled_from([0.55, 0.75, 1.0]),
)
def test_sensitivity_of_the_queries(data, other, gamma) -> None:
    moved = np.concatenate([data[:-1], other[None]])
    here, there = (
        baselines.radius_finder_queries(d, [0.5, 1.0, 2.0, 3.0], gamma) for d in (data, moved)
    )
    bound = 1 + (6 - 2) / math.ceil(gamma * 6)
    assert np.abs(here - there).max() <= bound + 1e-12
    assert bound < 1 + 1 / gamma < 3


@pytest.mark.parametrize("n", [5, 8, 21])
def test_a_star_reaches_the_sensitivity(n: int) -> None:
    """Check that a star of points reaches the sensitivity of the query.

    All other points are within 1 of the leaving point, and no two other points are within 1 of each
    other.
    """
    rays = np.eye(n - 1)
    star, without = np.vstack([rays, np.zeros(n - 1)]), np.vstack([rays, np.full(n - 1, 9.0)])
    here, there = (baselines.radius_finder_queries(d, [1.0])[0] for d in (star, without))
    assert here - there == pytest.approx(1 + (n - 2) / math.ceil(0.75 * n))


@pytest.mark.statistical
def test_radius_finder_follows_its_distribution() -> None:
    search = {"min_radius": 0.5, "max_radius": 4.0, "epsilon": 40.0, "failure_prob": 0.9}
    draws = baselines.radius_finder(FOUR, 100_000, **search, rng=np.random.default_rng(31))
    radii = [0.5, 1.0, 2.0, 4.0, 8.0]
    queries = baselines.radius_finder_queries(FOUR, radii)
    noise = {
        "threshold": 3 + 18 / 40 * math.log(10 / 0.9), "threshold_scale": 6 / 40,
        "query_scale": 12 / 40,
    }  # fmt: skip
    distribution = [
        distributions.pattern_probability(queries, (0,) * t + (1,), **noise) for t in range(5)
    ]
    distribution[3] += distributions.pattern_probability(
        queries, (0,) * 5, **noise
    )  # R, which the grid contains too
    counts = [int((draws == value).sum()) for value in radii]
    assert sum(counts) == draws.size
    assert_frequencies(counts, distribution)
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies(
            counts,
            [distribution[0], distribution[1], distribution[2], distribution[4], distribution[3]],
        )


def test_the_radius_finder_mutant_breaks_where_it_says() -> None:
    threshold = 300 + 18 * math.log(10 / 0.5)
    for near in (354, 353):
        found = baselines.radius_finder_queries(crowd(near), [1.0])[0]
        assert found == near
    probabilities = [1 - yes_probability(q, threshold, 1 / 300) for q in (354, 353)]
    assert probabilities[0] == pytest.approx(0.0021, abs=1e-4)
    assert probabilities[1] > 1 - 1e-6
    assert math.log(probabilities[1] / probabilities[0]) == pytest.approx(6.2, abs=0.05)
    honest = [1 - yes_probability(q, threshold, 3.0) for q in (354, 353)]
    assert honest == pytest.approx([0.498, 0.526], abs=1e-3)


@pytest.mark.statistical
def test_the_radius_finder_mutant_follows_its_broken_distribution() -> None:
    draws = mutants.radius_finder_one_count(
        crowd(354), 50_000, **CROWD, rng=np.random.default_rng(32)
    )
    no = 1 - yes_probability(354, 300 + 18 * math.log(20), 1 / 300)
    later = int((draws > 1).sum())
    assert_frequencies([later, draws.size - later], [no, 1 - no])


def test_gradients() -> None:
    rng = np.random.default_rng(1)
    data, where = rng.normal(size=(7, 3)), rng.normal(size=(4, 3))
    found = baselines._gradients(data, where)
    step = 1e-6
    for axis in range(3):
        shift = np.eye(3)[axis] * step
        slope = reference.objective(data, where + shift) - reference.objective(data, where - shift)
        np.testing.assert_allclose(found[:, axis], slope / (2 * step), atol=1e-7)
    np.testing.assert_allclose(
        baselines._gradients(data, data[:1])[0],
        sum((data[0] - x) / math.dist(data[0], x) for x in data[1:]) / 7,
    )


def test_gradients_in_blocks(monkeypatch) -> None:
    rng = np.random.default_rng(1)
    data, where = rng.normal(size=(7, 3)), rng.normal(size=(4, 3))
    whole = baselines._gradients(data, where)
    monkeypatch.setattr(baselines, "_CELLS", 24)
    np.testing.assert_allclose(baselines._gradients(data, where), whole, atol=1e-15)


@pytest.mark.parametrize(("n", "rho", "n_steps"), [(5, 0.1, 100), (1000, 0.5, 1), (7, 2.0, 13)])
def test_noise_of_dpgd_adds_up_to_rho(n: int, rho: float, n_steps: int) -> None:
    sigma = baselines.dpgd_sigma(n, rho, n_steps)
    assert n_steps * (2 / n) ** 2 / (2 * sigma**2) == pytest.approx(rho)


def test_dpgd_parameters() -> None:
    found = baselines.dpgd_parameters(1000, 10, radius=2.0, rho=0.5)
    assert found.n_steps == int(1e6 * 0.5 / 2560) == 195
    assert found.step == pytest.approx(2 / math.sqrt(195))
    hsu = baselines.dpgd_parameters(1000, 10, radius=2.0, rho=0.5, step_rule="hsu")
    assert hsu.step == pytest.approx(4 * math.sqrt(10 / (6 * 0.5 * 1e6)))
    assert baselines.dpgd_parameters(10, 10, radius=2.0, rho=0.5).n_steps == 1
    with pytest.raises(ValueError, match="step_rule must be one of hsu, best"):
        baselines.dpgd_parameters(10, 10, radius=2.0, rho=0.5, step_rule="other")


def test_dpgd_without_noise_descends() -> None:
    data = np.random.default_rng(2).normal(size=(50, 2))
    quiet = {"noise_multiplier": 1e-12, "rng": np.random.default_rng(0)}
    found = baselines.dpgd(
        data, 1, center=[0.0, 0.0], radius=2.0, rho=1.0, step=0.05, n_steps=400,
        start=[1.5, 0.0], **quiet,
    )  # fmt: skip
    median = reference.geometric_median(data)
    assert float(reference.objective(data, found[0])) - median.objective < 0.02
    edge = baselines.dpgd(
        [[100.0, 0.0]], 1, center=[0.0, 0.0], radius=2.0, rho=1.0, step=1.0, n_steps=4, **quiet
    )
    np.testing.assert_allclose(edge, [[(1 + 2 + 2 + 2) / 4, 0.0]], atol=1e-9)


@pytest.mark.statistical
def test_dpgd_and_its_mutant_follow_their_distributions() -> None:
    """Compare draws of DPGD and of its mutant with their normal distributions.

    On far data, every step is -1/5 plus noise. The average of theta_1 to theta_T is therefore
    normal.
    """
    weights = np.arange(100, 0, -1) / 100
    center = weights.sum() / 5
    spread = math.sqrt((weights**2).sum())
    draws = baselines.dpgd(BALANCED, 5000, **DESCENT, rng=np.random.default_rng(33))[:, 0]
    sigma = spread * baselines.dpgd_sigma(5, 0.1, 100)
    assert_distribution(draws, norm(center, sigma).cdf)
    with pytest.raises(AssertionError, match="rejected"):
        assert_distribution(draws, norm(center, 1.2 * sigma).cdf)
    mutant = mutants.dpgd_one_step(BALANCED, 5000, **DESCENT, rng=np.random.default_rng(34))[:, 0]
    assert_distribution(mutant, norm(center, sigma / 20).cdf)
    shift = 2 * center / (sigma / 20)
    assert shift == pytest.approx(7.77, abs=0.01)
    assert shift**2 / 2 == pytest.approx(30.1, abs=0.1)
    assert (2 * center / sigma) ** 2 / 2 < 0.1


@pytest.mark.statistical
def test_gaussian_cluster() -> None:
    data = datasets.gaussian_cluster(
        20_000, 4, max_radius=8.0, sigma=0.5, inlier_fraction=0.6, rng=np.random.default_rng(35)
    )
    inliers, outliers = data[:12_000], data[12_000:]
    middle = inliers.mean(axis=0)
    assert np.linalg.norm(middle) == pytest.approx(4.0, abs=0.05)
    center = 4 * middle / np.linalg.norm(middle)
    across = inliers - center
    lengths = (np.linalg.norm(outliers, axis=1) / 8) ** 4
    assert_distribution(lengths, uniform.cdf)
    assert_distribution((across[:, 0] - across[:, 0].mean()) / 0.5, norm.cdf)
    with pytest.raises(AssertionError, match="rejected"):
        assert_distribution(np.sqrt(lengths), uniform.cdf)
    assert datasets.gaussian_cluster_radius(0.5, 4) == 1.0


def test_sizes_of_the_cluster() -> None:
    for fraction, n_inliers in [(0.0, 0), (1.0, 11), (0.9, 10)]:
        data = datasets.gaussian_cluster(
            11, 2, max_radius=1e6, sigma=1e-6, inlier_fraction=fraction,
            rng=np.random.default_rng(0),
        )  # fmt: skip
        assert data.shape == (11, 2)
        near = np.linalg.norm(data - data[0], axis=1) < 1
        assert near.sum() == max(1, n_inliers)


@pytest.mark.statistical
def test_heavy_tailed() -> None:
    data = datasets.heavy_tailed(20_000, 3, degrees=2.5, rng=np.random.default_rng(36))
    squares = (data**2).sum(axis=1) / 3
    assert_distribution(squares, fisher(3, 2.5).cdf)
    with pytest.raises(AssertionError, match="rejected"):
        assert_distribution(squares, fisher(3, 4.0).cdf)
    reach = datasets.heavy_tailed_radius(3, 2.5, 0.75)
    inside = int((squares <= reach**2 / 3).sum())
    assert_frequencies([inside, 20_000 - inside], [0.75, 0.25])


def test_the_true_radii_of_the_paper_are_not_the_quantile_radii() -> None:
    """A counterexample: in Figure 1, the radius sigma sqrt(d) contains half of the data.

    The quantile radius contains three quarters of the data.
    """
    assert 0.9 * chi2.cdf(10, 10) == pytest.approx(0.504, abs=1e-3)
    # The printed radius sqrt(d F(0.75)) uses the CDF F and contains about a twentieth of the data.
    printed = math.sqrt(10 * fisher.cdf(0.75, 10, 4))
    assert fisher.cdf(printed**2 / 10, 10, 4) < 0.1


def test_bad_arguments() -> None:
    rng = np.random.default_rng(0)
    cluster = {"max_radius": 1.0, "sigma": 0.1, "inlier_fraction": 0.5}
    for change in ({"max_radius": 0.0}, {"sigma": -1.0}, {"inlier_fraction": 1.1}):
        with pytest.raises(ValueError, match=f"{next(iter(change))} must be"):
            datasets.gaussian_cluster(5, 2, **(cluster | change), rng=rng)
    with pytest.raises(ValueError, match="degrees must be positive"):
        datasets.heavy_tailed(5, 2, degrees=0.0, rng=rng)
    with pytest.raises(TypeError, match="rng must be"):
        datasets.heavy_tailed(5, 2, degrees=1.0, rng=0)
    with pytest.raises(ValueError, match="gamma must be strictly between"):
        datasets.heavy_tailed_radius(2, 1.0, 1.0)
