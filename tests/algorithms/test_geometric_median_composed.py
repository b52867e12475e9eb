"""Tests of Theorems 3 and 4.

The tests cover budgets, distributions, parameters, the whole chain and the mutants.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from algorithms.geometric_median import boosting, composed, radius, reference, schedule
from algorithms.geometric_median.center import fast_center_sigma
from mutants import geometric_median as mutants
from tests.algorithms.test_geometric_median_center import pass_probability
from tests.algorithms.test_geometric_median_radius import TWO_PLACES, yes_probability
from tests.statistical import assert_distribution, assert_frequencies

SEARCH = {"min_radius": 1.0, "max_radius": 2.0}
COIN = {"min_radius": 0.1, "max_radius": 1.0, "epsilon": 1.0, "delta": 1e-6}
LEFT = np.array([[-1.0]] * 3 + [[1.0]] * 2)


@pytest.mark.statistical
def test_warm_start_follows_its_distribution() -> None:
    """Check that the warm start follows its exact distribution.

    The search for the radius and the search for the center each use half of the budget. The radius,
    the failure and the noise have exact distributions.
    """
    draws = composed.warm_start(
        TWO_PLACES, 20_000, **SEARCH, epsilon=24.0, delta=0.2, rng=np.random.default_rng(41)
    )
    assert draws.shape == (20_000, 2)
    k = math.ceil(3 * math.log(4 / 0.1))
    yes = yes_probability(TWO_PLACES, 1.0, k, 3 / 12)
    small = draws[:, 1] == 1.0
    assert set(draws[:, 1]) == {1.0, 2.0}
    assert_frequencies([small.sum(), (~small).sum()], [yes, 1 - yes])
    whole = yes_probability(TWO_PLACES, 1.0, k, 3 / 24)
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies([small.sum(), (~small).sum()], [whole, 1 - whole])
    for reach in (1.0, 2.0):  # 0 and 2 are within 2 r-hat of each other at both radii
        points = draws[draws[:, 1] == reach, 0]
        passed = points[points != 0]
        probability = pass_probability(40, 40.0, 12.0, 0.1)
        assert_frequencies([passed.size, points.size - passed.size], [probability, 1 - probability])
        assert_distribution(passed, norm(0.2, fast_center_sigma(40, reach, 12.0, 0.1)).cdf)


def test_the_budget_is_halved_twice(monkeypatch) -> None:
    spent: list[tuple[str, float, float]] = []

    def spy(name):
        honest = getattr(composed, name)

        def called(*arguments, **keywords):
            spent.append((name, keywords["epsilon"], keywords["delta"]))
            return honest(*arguments, **keywords)

        return called

    for name in ("fast_radius", "fast_center"):
        monkeypatch.setattr(composed, name, spy(name))
    rng = np.random.default_rng(0)
    composed.warm_start(TWO_PLACES, 1, **SEARCH, epsilon=1.0, delta=0.1, rng=rng)
    assert spent == [("fast_radius", 0.5, 0.05), ("fast_center", 0.5, 0.05)]
    spent.clear()
    composed.private_geometric_median(
        TWO_PLACES, 1, **SEARCH, epsilon=1.0, delta=0.1, n_steps=7, step_factor=0.1, rng=rng
    )
    assert spent == [("fast_radius", 0.25, 0.025), ("fast_center", 0.25, 0.025)]


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("delta", [1e-9, 0.1, 0.9])
def test_boosting_has_half_of_the_budget(epsilon: float, delta: float) -> None:
    """Check that the rho of Theorem 4 satisfies Lemma 12 at (epsilon / 2, delta / 2)."""
    plan = composed.boosting_schedule(
        10, 2, epsilon=epsilon, delta=delta, radius=1.0, step=0.1, n_steps=15
    )
    assert plan.rho == pytest.approx(epsilon**2 / (32 * math.log(4 / delta)))
    half, half_delta = epsilon / 2, delta / 2
    assert 1 / plan.rho >= 4 * math.log(2 / half_delta) / half**2 + 2 / half
    assert plan.delta == half_delta
    assert plan.accesses[0] == pytest.approx(3 * (1.5 + math.log(16 / delta)))


def test_the_whole_chain_finds_the_median() -> None:
    """Check that the whole chain finds the median if the noise is almost 0.

    Draws with different radii are completed separately.
    """
    rng = np.random.default_rng(7)
    data = np.concatenate([0.3 + 0.1 * rng.normal(size=(180, 3)), rng.uniform(-1, 1, (20, 3))])
    median = reference.geometric_median(data)
    for order in ("random", "fixed"):
        found = composed.private_geometric_median(
            data, 20, min_radius=0.01, max_radius=2.0, epsilon=1.0, delta=1e-3, n_steps=2**12 - 1,
            step_factor=0.2, radius_factor=6.0, order=order, noise_multiplier=1e-6,
            rng=np.random.default_rng(8),
        )  # fmt: skip
        gaps = reference.objective(data, found) - median.objective
        assert gaps.max() < 0.02 * median.objective
        assert gaps.min() >= -1e-9


def test_radii_that_differ_scale_step_and_domain(monkeypatch) -> None:
    """Check that each draw is boosted with its own radius, from its own point, in its own ball."""
    started = np.array([[0.0, 1.0], [0.25, 2.0], [0.5, 1.0]])
    monkeypatch.setattr(composed, "warm_start", lambda *arguments, **keywords: started)
    far = np.array([[1e6]])
    found = composed.private_geometric_median(
        np.repeat(far, 20, axis=0), 3, min_radius=1.0, max_radius=2e6, epsilon=1.0, delta=0.1,
        n_steps=3, step_factor=0.4, radius_factor=100.0, project="none", noise_multiplier=1e-9,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    # two steps of 0.1 r-hat, where the average of 0 and 0.1 r-hat is 0.05 r-hat; one more adds
    # nothing
    np.testing.assert_allclose(found[:, 0], [0.05, 0.35, 0.55], atol=1e-6)


def test_schedules_scale() -> None:
    kwargs = {"epsilon": 1.0, "delta": 0.1, "n_steps": 7}
    unit = composed.boosting_schedule(10, 2, radius=3.0, step=0.5, **kwargs)
    scaled = composed.boosting_schedule(10, 2, radius=6.0, step=1.0, **kwargs)
    assert unit.scaled(2.0) == scaled
    assert scaled.error_bound == pytest.approx(2 * unit.error_bound)


def test_warm_start_parameters() -> None:
    kwargs = {"min_radius": 0.01, "max_radius": 1.0, "epsilon": 1.0, "delta": 1e-6}
    needed = math.ceil(4800 * math.log(4 * 7 / 5e-7))
    with pytest.raises(ValueError, match=f"n_users must be at least {needed} for Theorem 3"):
        composed.warm_start_parameters(needed - 1, 10, **kwargs)
    found = composed.warm_start_parameters(needed, 10, **kwargs)
    assert (found.n_radii, found.radius_samples) == (7, math.ceil(3 * math.log(28 / 5e-7)))
    assert found.sigma == pytest.approx(3200 / needed * math.sqrt(math.log(24e6)))
    assert found.radius_factor == pytest.approx(6 + 3 * found.sigma * math.sqrt(10 * math.log(8e6)))
    with pytest.raises(ValueError, match="epsilon must be at most 1"):
        composed.warm_start_parameters(10**9, 10, **(kwargs | {"epsilon": 1.1}))


def test_the_sample_size_does_depend_on_the_ratio_of_radii() -> None:
    """Check that the sample size depends on R / r, although the paper says otherwise.

    Section 1.1 says that the sample size does not depend on R / r. Lemma 6 has T = log2(R / r) in
    its logarithm.
    """
    kwargs = {"max_radius": 1.0, "epsilon": 1.0, "delta": 0.5}
    composed.warm_start_parameters(24_000, 1, min_radius=0.5, **kwargs)
    with pytest.raises(ValueError, match="n_users must be at least"):
        composed.warm_start_parameters(24_000, 1, min_radius=2.0**-60, **kwargs)


def test_private_geometric_median_parameters() -> None:
    kwargs = {"min_radius": 0.01, "max_radius": 1.0, "epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(ValueError, match=r"n_users must be larger for alpha = 1.0, got 10000000"):
        composed.private_geometric_median_parameters(10**7, 10, alpha=1.0, **kwargs)
    found = composed.private_geometric_median_parameters(10**8, 10, alpha=1.0, **kwargs)
    assert found.n_steps == 2**30 - 1 >= 10**8
    assert found.error_factor <= 1 / 40
    common = {"epsilon": 1.0, "delta": 1e-6, "radius": found.radius_factor, "ball": "repaired"}

    def error(step: float, n_steps: int) -> float:
        return composed.boosting_schedule(
            10**8, 10, step=step, n_steps=n_steps, **common
        ).error_bound

    assert error(found.step_factor, found.n_steps) == pytest.approx(found.error_factor)
    for factor in (0.9, 1.1):
        assert error(factor * found.step_factor, found.n_steps) > found.error_factor
    assert error(math.sqrt(2) * found.step_factor, 2**29 - 1) > 1 / 40
    for alpha in (0.0, 1.5):
        with pytest.raises(ValueError, match="alpha must be"):
            composed.private_geometric_median_parameters(10**8, 10, alpha=alpha, **kwargs)


# Mutants.


def test_the_warm_start_mutant_breaks_where_it_says() -> None:
    right = TWO_PLACES.copy()
    right[0] = 2.0
    k = radius.fast_radius_samples(1, 1e-6)
    probabilities = [1 - yes_probability(d, 1.0, k, 3e-9) for d in (TWO_PLACES, right)]
    assert probabilities[0] < 1e-9
    assert probabilities[1] == pytest.approx(0.208, abs=1e-3)
    assert math.log((probabilities[1] - 1e-6) / probabilities[0]) == pytest.approx(20, abs=0.1)


@pytest.mark.statistical
def test_the_warm_start_mutant_follows_its_broken_distribution() -> None:
    right = TWO_PLACES.copy()
    right[0] = 2.0
    draws = mutants.warm_start_subsampling_is_noise(
        right, 5000, **SEARCH, epsilon=1.0, delta=1e-6, rng=np.random.default_rng(42)
    )
    hits = int((draws[:, 1] == 1.0).sum())
    yes = yes_probability(right, 1.0, 46, 3e-9)
    assert_frequencies([hits, 5000 - hits], [yes, 1 - yes])


@pytest.mark.statistical
def test_the_exact_start_mutant_breaks_where_it_says() -> None:
    """Check that the mutant with the exact start violates its claim.

    From -1 or 1, the output moves by at most 7 eta and the noise of three phases. The step eta is
    1e-4.
    """
    run = COIN | {"n_steps": 7, "step_factor": 1e-4}
    reach = 1.0  # the quantile radius 2 is clipped to R
    plan = composed.boosting_schedule(
        5, 1, epsilon=1.0, delta=1e-6, radius=10.0 * reach, step=1e-4 * reach, n_steps=7
    )
    sigma = math.sqrt(sum(s**2 for s in plan.sigmas))
    assert norm.sf((1 - 7 * plan.step) / sigma) < 1e-8
    low = mutants.private_geometric_median_exact_start(
        LEFT, 4000, **run, rng=np.random.default_rng(43)
    )[:, 0]
    high = mutants.private_geometric_median_exact_start(
        -LEFT, 1000, **run, rng=np.random.default_rng(44)
    )[:, 0]
    assert low.max() < 0 < high.min()
    assert_distribution(low, norm(-1, sigma).cdf)
    honest = composed.private_geometric_median(LEFT, 200, **run, rng=np.random.default_rng(45))
    assert (honest > 0).any()
    assert (honest < 0).any()


def test_nothing_is_drawn_before_all_arguments_are_checked() -> None:
    """Check that invalid arguments raise an error before anything is drawn.

    The arguments of the last step are checked too.
    """
    run = COIN | {"n_steps": 7, "step_factor": 1e-4}
    for change in (
        {"project": "last"}, {"order": "sorted"}, {"ball": "small"}, {"route": "count"},
        {"n_steps": 6}, {"noise_multiplier": 0.0}, {"radius_factor": -1.0}, {"size": -1},
    ):  # fmt: skip
        rng = np.random.default_rng(0)
        before = rng.bit_generator.state
        arguments = {"size": 3} | run | change
        with pytest.raises(ValueError, match="must"):
            composed.private_geometric_median(LEFT, **arguments, rng=rng)
        assert rng.bit_generator.state == before


def test_the_bound_of_lemma_14_fails_as_printed() -> None:
    """A counterexample: the bound of Lemma 14 fails as printed.

    All points are at 0, the start is at distance r-hat, n = T = 511, and there is almost no noise.
    The output is at distance 0.875, and the printed bound is below 0.84. The term r-hat**2 / (2
    eta^(1) T^(1)) equals 4 r-hat**2 / (eta (T + 1)). The printed term is r-hat**2 / (16 eta T).
    """
    n_steps, delta, rho = 511, 0.5, 1e8
    step, confidence = 2 / n_steps, math.log(4 * 9 / delta)
    printed = (
        1 / (16 * step * n_steps)
        + 19 * step
        + 8 * math.sqrt(confidence / n_steps)
        + 1314 * n_steps * step * math.log(8 * 9 / delta) ** 4 / (rho * n_steps**2)
    )
    run = {"radius": 1.0, "rho": rho, "delta": delta, "step": step, "n_steps": n_steps}
    found = boosting.stable_dpsgd(
        np.zeros((n_steps, 1)), 50, center=[1.0], **run, rng=np.random.default_rng(46)
    )
    assert found.min() > 0.87 > 0.84 > printed
    repaired = schedule.stable_dpsgd_schedule(n_steps, 1, **run, ball="repaired")
    assert found.max() < repaired.error_bound
