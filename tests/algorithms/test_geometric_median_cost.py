"""Fast counts and steps, which equal slow references, and the refusal of slow runs."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from algorithms.geometric_median import (
    _cost,
    _pairs,
    _points,
    _sgd,
    baselines,
    boosting,
    center,
    composed,
    radius,
    schedule,
)


def lattice(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(-2, 3, size=(n, d)).astype(float)


def scattered(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Return a cluster, points at larger and larger distances, and copies of one point."""
    sizes = 10.0 ** rng.choice([0, 0, 0, 2, 6, 12, 150], size=n)
    points = rng.uniform(-1, 1, size=(n, d)) * sizes[:, None]
    points[: n // 5] = points[0]
    return points


CLOUDS = {
    "lattice": (lambda n, d, rng: lattice(n, d, rng), (1.0, math.sqrt(2), 2.0, 5.0)),
    "lattice far from 0": (lambda n, d, rng: lattice(n, d, rng) / 10 + 1e8, (0.1, 0.2)),
    "tiny": (lambda n, d, rng: rng.normal(size=(n, d)) * 1e-170, (1e-170, 3e-170)),
    "many scales": (scattered, (1e-300, 0.5, 1.0, 3.0, 1e6, 1e200)),
    "one place": (lambda n, d, rng: np.full((n, d), 0.1), (1e-9, 1.0)),
    "doubled radii": (
        lambda n, d, rng: rng.normal(size=(n, d)), tuple(0.01 * 2.0**k for k in range(12)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize(("n", "d"), [(1, 1), (9, 3), (249, 1), (500, 2), (700, 10), (520, 60)])
def test_counts_by_products_equal_the_direct_counts(monkeypatch, name, n, d) -> None:
    """Check equality, also for pairs whose distance is exactly a radius."""
    draw, radii = CLOUDS[name]
    points = np.ascontiguousarray(draw(n, d, np.random.default_rng(n + d)))
    expected = _points.neighbour_counts(points, np.array(radii))
    monkeypatch.setattr(_pairs, "SMALL", 0)
    np.testing.assert_array_equal(_pairs.neighbour_counts(points, np.array(radii)), expected)


def test_products_decide_most_pairs_and_norms_decide_the_rest(monkeypatch) -> None:
    """Check that a wrong exact distance changes counts only if pairs are at the radius."""
    monkeypatch.setattr(_pairs, "SMALL", 0)
    rng = np.random.default_rng(1)
    seen = []

    def counting(vectors, exact=_points.norms):
        seen.append(vectors.size // vectors.shape[-1])
        return exact(vectors)

    monkeypatch.setattr(_points, "norms", counting)
    _pairs.neighbour_counts(rng.normal(size=(2000, 20)), np.array([6.0]))
    assert sum(seen) - 2000 < 1e-3 * 2000**2  # all except the distances from the center
    seen.clear()
    points = lattice(2000, 2, rng)
    _pairs.neighbour_counts(points, np.array([1.0]))
    ties = (np.linalg.norm(points[:, None] - points, axis=2) == 1.0).sum()
    assert ties / 2 <= sum(seen) - 2000 <= 2000**2


def test_large_and_small_clouds_take_different_ways(monkeypatch) -> None:
    points = np.random.default_rng(2).normal(size=(_pairs.SMALL, 2))
    large = _pairs.neighbour_counts(points, np.array([1.0]))
    np.testing.assert_array_equal(large, _points.neighbour_counts(points, np.array([1.0])))
    asked = []
    monkeypatch.setattr(_points, "neighbour_counts", lambda *given: asked.append(given))
    _pairs.neighbour_counts(points, np.array([1.0]))
    assert not asked
    _pairs.neighbour_counts(points[1:], np.array([1.0]))
    assert len(asked) == 1


def test_fast_center_draws_what_it_drew_with_direct_counts(monkeypatch) -> None:
    data = np.random.default_rng(3).normal(size=(600, 4))
    given = {"radius": 1.8, "epsilon": 200.0, "delta": 0.1, "failed_at": np.full(4, 9.0)}
    runs = []
    for small in (4096, 0):
        monkeypatch.setattr(_pairs, "SMALL", small)
        runs.append(center.fast_center_centers(data, 40, **given, rng=np.random.default_rng(4)))
    np.testing.assert_array_equal(*runs)
    assert len(np.unique(runs[0], axis=0)) == 40  # all runs pass, and weights are partial


def slow_advance(z, x, step, middle, reach):
    """Return the next iterate, computed without shortcuts."""
    pull, lengths = _points.directed(z - x)
    rates = np.divide(step, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    moved = z - rates[..., None] * pull
    if reach is None:
        return moved
    offset = moved - middle
    distances = _points.norms(offset)
    shrink = np.divide(reach, distances, out=np.ones_like(distances), where=distances > reach)
    inside = middle + shrink[..., None] * offset
    return np.where((distances > reach)[..., None], inside, moved)


@pytest.mark.parametrize("reach", [None, 0.0, 0.8, 1e9])
@pytest.mark.parametrize("size", [1, 5])
def test_steps_equal_steps_without_shortcuts(size: int, reach: float | None) -> None:
    rng = np.random.default_rng(5)
    middle = rng.normal(size=(size, 3))
    z = middle.copy()
    steps = np.linspace(0.1, 0.5, size)
    for t in range(50):
        x = z.copy() if t % 7 == 0 else rng.normal(size=(size, 3))  # sometimes z = x_i
        x[1:] = rng.normal(size=(size - 1, 3))
        expected = slow_advance(z, x, steps, middle, reach)
        z = _sgd.advance(z, x, steps, middle, reach)
        np.testing.assert_array_equal(z, expected)


# --- the refusal of slow runs ---

POINTS = np.random.default_rng(6).uniform(-0.5, 0.5, size=(50, 2))
SEARCH = {"min_radius": 0.1, "max_radius": 1.0, "epsilon": 1.0, "delta": 0.1}
RUN = {"center": [0.0, 0.0], "radius": 1.0, "rho": 0.5, "step": 0.1}
LONG = 2**30 - 1


@pytest.mark.parametrize(
    "run",
    [
        lambda **given: boosting.stable_dpsgd(POINTS, 1, **RUN, delta=0.1, n_steps=LONG, **given),
        lambda **given: boosting.fixed_order_dpsgd(
            POINTS, 1, **RUN, delta=0.1, n_steps=LONG, **given
        ),
        lambda **given: boosting.stable_dpsgd_centers(
            POINTS, 1, **RUN, delta=0.1, n_steps=LONG, phase=1, **given
        ),
        lambda **given: baselines.dpgd(POINTS, 1, **RUN, n_steps=LONG, **given),
        lambda **given: composed.private_geometric_median(
            POINTS, 1, **SEARCH, n_steps=LONG, step_factor=0.1, **given
        ),
    ],
)
def test_long_runs_are_refused_at_once(run) -> None:
    began = time.perf_counter()
    with pytest.raises(ValueError, match=r"n_steps must be at most \d+ for max_seconds = 60, got"):
        run(rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"take about [\d.]+ (hours|days)\. Pass a larger max_sec"):
        run(rng=np.random.default_rng(0), max_seconds=7)
    assert time.perf_counter() - began < 5


def test_the_named_number_of_steps_is_accepted_and_the_next_is_not() -> None:
    plan = schedule.stable_dpsgd_schedule(50, 2, **_plan(2**25 - 1))
    with pytest.raises(ValueError, match="n_steps must be at most 262143 for max_seconds = 5, got"):
        _sgd.refuse_slow(plan, 1, 5.0)
    for n_steps, accepted in ((2**18 - 1, True), (2**19 - 1, False)):
        plan = schedule.stable_dpsgd_schedule(50, 2, **_plan(n_steps))
        assert (_cost.sgd_seconds(n_steps, 2, 1) <= 5.0) == accepted
        if accepted:
            _sgd.refuse_slow(plan, 1, 5.0)
    _sgd.refuse_slow(plan, 10**9, math.inf)  # any run is allowed


def _plan(n_steps: int) -> dict:
    return {"radius": 1.0, "rho": 0.5, "delta": 0.1, "step": 0.1, "n_steps": n_steps}


@pytest.mark.parametrize(
    "run",
    [
        lambda **given: radius.fast_radius(POINTS, 3, **SEARCH, **given),
        lambda **given: center.fast_center(POINTS, 3, radius=1.0, epsilon=1.0, delta=0.1, **given),
        lambda **given: center.fast_center_centers(
            POINTS, 3, radius=1.0, epsilon=1.0, delta=0.1, failed_at=[0.0, 0.0], **given
        ),
        lambda **given: baselines.radius_finder(
            POINTS, 3, min_radius=0.1, max_radius=1.0, epsilon=1.0, **given
        ),
        lambda **given: composed.warm_start(POINTS, 3, **SEARCH, **given),
    ],
)
def test_large_clouds_are_refused_at_once(run) -> None:
    words = r"the number of points of data must be at most \d+ for max_seconds = 1e-08, got 50"
    with pytest.raises(ValueError, match=words):
        run(max_seconds=1e-8, rng=np.random.default_rng(0))
    assert np.isfinite(run(max_seconds=math.inf, rng=np.random.default_rng(0))).all()


def test_a_refusal_does_not_depend_on_the_values_of_the_data() -> None:
    messages = set()
    for points in (np.zeros((5000, 2)), np.random.default_rng(7).uniform(-0.5, 0.5, (5000, 2))):
        with pytest.raises(ValueError, match="number of points") as refusal:
            composed.warm_start(points, 1, **SEARCH, max_seconds=1e-3, rng=np.random.default_rng(0))
        messages.add(str(refusal.value))
    assert len(messages) == 1


def test_a_hundred_thousand_points_are_accepted_and_a_billion_steps_are_not() -> None:
    """Check the default limit at sizes that people run, d = 50, by the estimates alone."""
    n, d, k = 100_000, 50, center.fast_center_samples(100_000, 1e-6)
    assert _points.route_of("auto", n, 1, k, sample_cost=center._SAMPLE_COST) == "counts"
    assert _cost.count_seconds(n, d, 1) < 10
    assert _cost.count_seconds(n, d, 7) < _cost.MAX_SECONDS
    assert _cost.sgd_seconds(2**20 - 1, d, 1) < _cost.MAX_SECONDS < _cost.sgd_seconds(2**30, d, 1)
    chosen = baselines.dpgd_parameters(n, d, radius=1.0, rho=0.5)
    assert chosen.n_steps * _cost.gradient_seconds(n, d, 1) > _cost.MAX_SECONDS


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.5, "0.5 seconds"), (61.0, "61 seconds"), (119.9, "120 seconds"), (180, "3 minutes"),
        (6000.0, "100 minutes"), (4.8 * 3600, "4.8 hours"), (1e8, "1157 days"),
    ],
)  # fmt: skip
def test_durations(seconds: float, words: str) -> None:
    assert _cost.duration(seconds) == words


# --- step sizes ---


def test_the_bound_step_minimises_the_bound_from_every_step_size() -> None:
    given = {"radius": 3.0, "rho": 0.5, "delta": 0.01, "n_steps": 1023}
    plans = [
        schedule.stable_dpsgd_schedule(500, 4, **given, step=step) for step in (1e-3, 1.0, 50.0)
    ]
    steps = [schedule.bound_step(plan) for plan in plans]
    assert steps == pytest.approx([steps[0]] * 3, rel=1e-12)
    errors = [
        schedule.stable_dpsgd_schedule(500, 4, **given, step=steps[0] * factor).error_bound
        for factor in (0.9, 1.0, 1.1)
    ]
    assert errors[1] < min(errors[0], errors[2])
    assert schedule.tuned_step(plans[1]) == 8 * steps[1]
    assert schedule.tuned_step(plans[1], multiplier=0.5) == 0.5 * steps[1]
    with pytest.raises(ValueError, match="multiplier must be positive, got 0"):
        schedule.tuned_step(plans[1], multiplier=0)


def test_the_multiplier_is_the_factor_of_the_expected_noise() -> None:
    """Check that the minimiser of the expected error is about 8 times `bound_step`.

    The expected error has the terms of the bound, but without the logarithms of its confidence.
    """
    for n_phases in (11, 14, 17):
        plan = schedule.stable_dpsgd_schedule(
            1000, 50, radius=1.0, rho=0.5, delta=1e-5, step=1.0, n_steps=2**n_phases - 1
        )
        linear = sum(plan.steps) / 2 + plan.sigmas[-1] * math.sqrt(50)
        for sigma, step, length in zip(
            plan.sigmas[:-1], plan.steps[1:], plan.lengths[1:], strict=True
        ):
            linear += sigma**2 * 50 / (2 * step * length)
        expected = math.sqrt(plan.error_terms[0] / linear)
        factor = math.sqrt(4 * math.log(4 * n_phases / 1e-5))
        assert expected / schedule.bound_step(plan) == pytest.approx(factor, rel=0.03)
        assert factor == pytest.approx(schedule.TUNED_MULTIPLIER, rel=0.03)


def test_no_step_size_changes_the_privacy() -> None:
    base = _plan(1023)
    plans = [schedule.stable_dpsgd_schedule(500, 4, **base)]
    for multiplier in (0.25, 8.0, 64.0):
        step = schedule.tuned_step(plans[0], multiplier=multiplier)
        plans.append(schedule.stable_dpsgd_schedule(500, 4, **(base | {"step": step})))
    assert [plan.total_rho for plan in plans] == pytest.approx([plans[0].total_rho] * 4, rel=1e-12)


def test_steps_of_dpgd() -> None:
    assert baselines.dpgd_step(16, radius=2.0) == 0.5
    assert baselines.dpgd_step(16, radius=2.0, multiplier=1.5) == 0.75
    chosen = baselines.dpgd_parameters(1000, 4, radius=2.0, rho=0.5)
    assert chosen.step == baselines.dpgd_step(chosen.n_steps, radius=2.0)
    with pytest.raises(ValueError, match="multiplier must be positive, got -1"):
        baselines.dpgd_step(16, radius=2.0, multiplier=-1)
