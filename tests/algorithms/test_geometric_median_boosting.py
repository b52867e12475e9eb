"""Tests of StableDPSGD and FixedOrderDPSGD.

The tests cover schedules, trajectories, sensitivity, noise and mutants.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binom, norm

from algorithms.geometric_median import boosting, schedule
from algorithms.geometric_median.boosting import sgd_trajectory
from mutants import geometric_median as mutants
from tests.statistical import assert_distribution, assert_frequencies

CLOUD = np.array([[0.0, 0.0], [1.0, 0.5], [-0.5, 2.0], [0.25, -1.0], [3.0, 3.0]])
RUN = {
    "center": [0.5, 0.5], "radius": 1.0, "rho": 0.5, "delta": 0.1, "step": 0.8, "n_steps": 15,
}  # fmt: skip
SILENT = 1e-9
BALANCED = np.array([[1e6], [-1e6], [1e6], [-1e6], [1e6]])
TIPPED = np.array([[1e6], [-1e6], [1e6], [-1e6], [-1e6]])
FAR = {"center": [0.0], "radius": 1e5, "delta": 1e-6, "step": 1.0, "n_steps": 1023}


def walk(data, start, rows, step, center=None, radius=None) -> np.ndarray:
    """Return the iterates of lines 11 to 14, which process one point at a time."""
    z = np.array(start, dtype=float)
    iterates = [z]
    for row in rows:
        pull = z - data[row]
        length = math.hypot(*pull)
        z = z - step * pull / length if length > 0 else z
        if radius is not None and math.dist(z, center) > radius:
            z = center + (z - center) * radius / math.dist(z, center)
        iterates.append(z)
    return np.array(iterates)


def silent_phases(data, rows, plan, center, project) -> list[np.ndarray]:
    """Return the averages xbar^(k) of Algorithm 4 without noise.

    Each phase starts at the average of the previous phase.
    """
    z, first, averages = np.array(center), 0, []
    for k in range(plan.n_phases):
        radius = plan.radii[k] if project == "all" or (project, k) == ("first", 0) else None
        part = rows[first : first + plan.lengths[k]]
        first += plan.lengths[k]
        iterates = walk(data, z, part, plan.steps[k], z, radius)
        z = iterates[:-1].mean(axis=0)
        averages.append(z)
    return averages


def sign_walk_distribution(length: int, up: float) -> np.ndarray:
    """Return the distribution of the sum of (length - 1 - t) s_t.

    Each s_t is 1 with probability `up`, else -1.
    """
    reach = length * (length - 1) // 2
    distribution = np.zeros(2 * reach + 1)
    distribution[reach] = 1.0
    for weight in range(1, length):
        distribution = up * np.roll(distribution, weight) + (1 - up) * np.roll(
            distribution, -weight
        )
    return distribution


@pytest.mark.parametrize("n_phases", [1, 2, 5, 20])
@pytest.mark.parametrize("n", [1, 7, 1000])
def test_schedule(n: int, n_phases: int) -> None:
    n_steps = 2**n_phases - 1
    plan = schedule.stable_dpsgd_schedule(
        n, 3, radius=2.0, rho=0.25, delta=0.01, step=0.5, n_steps=n_steps
    )
    assert sum(plan.lengths) == n_steps
    assert plan.lengths[0] == 2 ** (n_phases - 1)
    assert plan.lengths[-1] == 1
    m = 3 * (n_steps / n + math.log(800))
    room = 2 * math.sqrt(3 * math.log(400 * n_phases))
    for k in range(1, n_phases + 1):
        sigma = 3.0**-k * (2 * m + 1) * 0.5 / 0.5
        assert plan.steps[k - 1] == pytest.approx(4.0**-k * 0.5)
        assert plan.sigmas[k - 1] == pytest.approx(sigma)
        assert plan.radii[k - 1] == pytest.approx(2.0 if k == 1 else room * sigma)
        assert plan.accesses[k - 1] == m
    assert plan.total_rho == pytest.approx(9 / 14 * (1 - (9 / 16) ** n_phases) * 0.25)
    repaired = schedule.stable_dpsgd_schedule(
        n, 3, radius=2.0, rho=0.25, delta=0.01, step=0.5, n_steps=n_steps, ball="repaired"
    )
    np.testing.assert_allclose(repaired.radii[1:], 3 * np.array(plan.radii[1:]))


def test_fixed_order_schedule() -> None:
    kwargs = {"radius": 2.0, "rho": 0.25, "delta": 0.01, "step": 0.5, "n_steps": 63}
    total = schedule.fixed_order_schedule(10, 3, **kwargs)
    assert total.accesses == (7.0,) * 6  # ceil(63 / 10)
    phase = schedule.fixed_order_schedule(10, 3, accesses="phase", **kwargs)
    assert phase.accesses == (4.0, 2.0, 1.0, 1.0, 1.0, 1.0)  # the phases have 32, 16, 8, ... steps
    assert phase.total_rho == pytest.approx(total.total_rho)
    assert all(a < b for a, b in zip(phase.sigmas, total.sigmas, strict=True))
    assert total.sigmas[0] == pytest.approx(15 * 0.5 / 0.5 / 3)


def test_parameters_refuse_too_few_steps() -> None:
    kwargs = {"radius": 1.0, "rho": 0.5, "delta": 0.1, "step": 0.1, "n_steps": 15}
    assert schedule.stable_dpsgd_parameters(15, 2, **kwargs).n_phases == 4
    assert schedule.fixed_order_dpsgd_parameters(15, 2, **kwargs).accesses[0] == 1
    for parameters in (schedule.stable_dpsgd_parameters, schedule.fixed_order_dpsgd_parameters):
        with pytest.raises(ValueError, match="n_steps must be at least n_users = 16, got 15"):
            parameters(16, 2, **kwargs)
    with pytest.raises(ValueError, match=r"n_steps must be 2\*\*K - 1 .* got 16\. .* 15 and 31"):
        schedule.stable_dpsgd_schedule(3, 2, **(kwargs | {"n_steps": 16}))


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize("delta", [1e-9, 0.1, 0.9])
def test_rho_of_lemma_12(epsilon: float, delta: float) -> None:
    """Check that the rho of Lemma 12 gives epsilon at delta / 2.

    The order alpha is 2 log(2 / delta) / epsilon + 1.
    """
    rho = schedule.stable_dpsgd_rho(epsilon, delta)
    assert 1 / rho == pytest.approx(4 * math.log(2 / delta) / epsilon**2 + 2 / epsilon)
    alpha = 2 * math.log(2 / delta) / epsilon + 1
    assert alpha * rho + math.log(2 / delta) / (alpha - 1) == pytest.approx(epsilon)
    with pytest.raises(ValueError, match="epsilon must be at most 1"):
        schedule.stable_dpsgd_rho(1.5, delta)


@pytest.mark.parametrize("n", [1, 2, 10, 1000])
@pytest.mark.parametrize("n_steps", [1, 3, 1023, 2**20 - 1])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.9])
def test_no_index_is_drawn_more_than_m_times(n: int, n_steps: int, delta: float) -> None:
    """Check that Lemma 10 holds exactly, without the assumption T >= n."""
    m = 3 * (n_steps / n + math.log(8 / delta))
    assert binom.sf(math.floor(m), n_steps, 1 / n) <= delta / 8


@settings(max_examples=50)
@given(
    data=arrays(float, (4, 2), elements=st.integers(-2, 2)),
    start=arrays(float, 2, elements=st.integers(-2, 2)),
    rows=st.lists(st.integers(0, 3), min_size=1, max_size=12),
    step=st.sampled_from([0.1, 0.5, 1.0, 3.0]),
    radius=st.sampled_from([None, 0.0, 0.7, 2.0]),
)
def test_the_trajectory_by_hand(data, start, rows, step, radius) -> None:
    found = sgd_trajectory(data, start, rows, step=step, radius=radius)
    np.testing.assert_allclose(found, walk(data, start, rows, step, start, radius), atol=1e-12)


def test_trajectories_of_many_starts() -> None:
    rng = np.random.default_rng(0)
    starts, rows = rng.normal(size=(6, 2)), rng.integers(5, size=(6, 9))
    together = sgd_trajectory(CLOUD, starts, rows, step=0.3, radius=1.0, center=[0.0, 0.0])
    assert together.shape == (6, 10, 2)
    for i in range(6):
        alone = sgd_trajectory(CLOUD, starts[i], rows[i], step=0.3, radius=1.0, center=[0.0, 0.0])
        np.testing.assert_array_equal(together[i], alone)
    assert sgd_trajectory(CLOUD, starts, rows[0], step=0.3).shape == (6, 10, 2)
    assert sgd_trajectory(CLOUD, starts[0], rows, step=0.3).shape == (6, 10, 2)


def test_at_a_data_point_nothing_moves() -> None:
    path = sgd_trajectory(CLOUD, CLOUD[2], [2, 2, 0], step=0.5)
    np.testing.assert_array_equal(path[:3], np.tile(CLOUD[2], (3, 1)))
    assert np.linalg.norm(path[3] - path[2]) == pytest.approx(0.5)


def test_bad_trajectories() -> None:
    for change, said in [
        ({"start": [0.0]}, "start must have 2 coordinates"),
        ({"indices": [5]}, "indices must hold only values from 0 to 4"),
        ({"step": 0.0}, "step must be positive"),
        ({"radius": -1.0}, "radius must be at least 0"),
        ({"center": [1.0]}, "center must have 2 coordinates"),
    ]:
        arguments = {"start": [0.0, 0.0], "indices": [0], "step": 1.0} | change
        with pytest.raises(ValueError, match=said):
            sgd_trajectory(CLOUD, **arguments)


@settings(max_examples=300)
@given(a=st.floats(0, 3), b=st.floats(0, 3), angle=st.floats(0, math.pi), step=st.floats(0.01, 3))
def test_lemma_11_holds_with_two_instead_of_three(a, b, angle, step) -> None:
    x, y = np.array([a, 0.0]), b * np.array([math.cos(angle), math.sin(angle)])
    data = np.zeros((1, 2))
    moved = [sgd_trajectory(data, point, [0], step=step)[1] for point in (x, y)]
    before, after = math.dist(x, y), math.dist(*moved)
    assert after <= max(before, 2 * step) * (1 + 1e-9)


def test_two_is_sharp() -> None:
    tiny = 1e-9
    moved = [sgd_trajectory([[0.0]], [side * tiny], [0], step=1.0)[1, 0] for side in (1, -1)]
    assert abs(moved[0] - moved[1]) == pytest.approx(2.0, abs=1e-8)


@pytest.mark.slow
@settings(max_examples=200)
@given(
    data=arrays(float, (4, 2), elements=st.integers(-2, 2)),
    other=arrays(float, 2, elements=st.floats(-3, 3)),
    start=arrays(float, 2, elements=st.floats(-2, 2)),
    rows=st.lists(st.integers(0, 3), min_size=1, max_size=15),
    radius=st.sampled_from([None, 0.7, 2.0]),
)
def test_corollary_1_holds_with_2m(data, other, start, rows, radius) -> None:
    """Check that an iterate moves by at most 2 m_t steps after m_t visits of the moved row.

    Corollary 1 allows 2m + 1 steps.
    """
    moved = np.concatenate([data[:-1], other[None]])
    here, there = (sgd_trajectory(d, start, rows, step=0.5, radius=radius) for d in (data, moved))
    visits = np.concatenate([[0], np.cumsum(np.array(rows) == 3)])
    distances = np.linalg.norm(here - there, axis=1)
    assert (distances <= 2 * visits * 0.5 + 1e-9).all()


@pytest.mark.parametrize("d", [1, 3, 1000])
def test_corollary_1_holds_where_squares_underflow(d: int) -> None:
    """Check Corollary 1 for data whose squares underflow.

    Division by a norm that underflowed would give "unit" vectors of length 44.7 at d = 1000.
    """
    tiny = np.full(d, 1.57e-162)
    tiny[0] = 2.7e-162
    here, there = (sgd_trajectory([x], np.zeros(d), [0], step=1.0)[1] for x in (tiny, -tiny))
    assert math.dist(here, there) == pytest.approx(2.0)


def test_corollary_1_is_reached_but_for_the_one() -> None:
    rows = [4, 4, 0, 1, 4]
    here, there = (sgd_trajectory(d, [0.0], rows, step=1.0) for d in (BALANCED, TIPPED))
    assert np.abs(here - there).max() == 6.0  # 2m at m = 3, where the corollary allows 7


@pytest.mark.parametrize("project", ["all", "first", "none"])
@pytest.mark.parametrize("order", [None, [3, 1, 4, 0, 2]])
def test_fixed_order_by_hand(project: str, order: list[int] | None) -> None:
    """Compare FixedOrderDPSGD with a written-out version.

    The order continues from phase to phase, and each average omits the last iterate of its phase.
    """
    kwargs = RUN | {"project": project, "noise_multiplier": SILENT}
    found = boosting.fixed_order_dpsgd(
        CLOUD, 2, **kwargs, order=order, transcript=True, rng=np.random.default_rng(0)
    )
    plan = schedule.fixed_order_schedule(5, 2, radius=1.0, rho=0.5, delta=0.1, step=0.8, n_steps=15)
    rows = (order or [0, 1, 2, 3, 4]) * 3
    expected = silent_phases(CLOUD, rows, plan, RUN["center"], project)
    assert found.shape == (2, 4, 2)
    for k in range(4):
        np.testing.assert_allclose(found[0, k], expected[k], atol=1e-6)
    final = boosting.fixed_order_dpsgd(
        CLOUD, 2, **kwargs, order=order, rng=np.random.default_rng(0)
    )
    np.testing.assert_array_equal(final, found[:, -1])


def test_projection_keeps_the_iterates_in_their_ball() -> None:
    """Check that the projection keeps the iterates in their ball.

    Distant data pull the iterate to the edge of the ball. Without projection, the iterate leaves
    the ball.
    """
    data = np.array([[100.0, 0.0]])
    run = RUN | {"center": [0.0, 0.0], "radius": 0.25, "noise_multiplier": SILENT, "phase": 1}
    averages = {
        project: boosting.stable_dpsgd_centers(
            data, 1, **run, project=project, rng=np.random.default_rng(0)
        )[0, 0]
        for project in ("all", "first", "none")
    }
    # With projection, the iterates are 0, 0.2, 0.25, 0.25, ... Without projection, the iterates are
    # 0, 0.2, 0.4, ...
    assert averages["all"] == pytest.approx((0.2 + 6 * 0.25) / 8)
    assert averages["first"] == averages["all"]
    assert averages["none"] == pytest.approx(0.2 * 28 / 8)


def test_a_domain_of_radius_zero_stays_where_it_is() -> None:
    found = boosting.stable_dpsgd_centers(
        CLOUD, 3, **(RUN | {"radius": 0.0}), phase=1, rng=np.random.default_rng(0)
    )
    np.testing.assert_array_equal(found, np.tile(RUN["center"], (3, 1)))


def test_the_last_phase_averages_nothing() -> None:
    """Check that the center of the last phase is the noisy output of phase K - 1.

    The last phase has length T^(K) = 1, so the phase averages nothing.
    """
    seed = np.random.default_rng(3)
    transcript = boosting.stable_dpsgd(CLOUD, 4, **RUN, transcript=True, rng=seed)
    last = boosting.stable_dpsgd_centers(CLOUD, 4, **RUN, phase=4, rng=np.random.default_rng(3))
    np.testing.assert_allclose(last, transcript[:, 2], rtol=1e-12)


def test_blocks_of_steps_change_nothing(monkeypatch) -> None:
    run = RUN | {"project": "none"}
    whole = boosting.fixed_order_dpsgd(CLOUD, 4, **run, rng=np.random.default_rng(4))
    monkeypatch.setattr(boosting._sgd, "_DRAWN", 9)
    blocks = boosting.fixed_order_dpsgd(CLOUD, 4, **run, rng=np.random.default_rng(4))
    np.testing.assert_array_equal(whole, blocks)


@pytest.mark.statistical
def test_random_rows_follow_their_distribution() -> None:
    """Check the distribution of the random rows in phase 1, for T = 7 and two points.

    The test enumerates the three rows that matter.
    """
    data, n_steps = np.array([[-1.0], [2.0]]), 7
    run = {"center": [0.25], "radius": 5.0, "rho": 1.0, "delta": 0.5, "step": 1.2}
    centers = boosting.stable_dpsgd_centers(
        data, 40_000, **run, n_steps=n_steps, phase=1, rng=np.random.default_rng(61)
    )[:, 0]
    distribution: dict[float, float] = {}
    for rows in itertools.product([0, 1], repeat=3):
        value = walk(data, [0.25], rows, 0.3)[:, 0].mean().round(9)
        distribution[value] = distribution.get(value, 0.0) + 1 / 8
    values, counts = np.unique(centers.round(9), return_counts=True)
    assert values.tolist() == sorted(distribution)
    assert_frequencies(counts, [distribution[v] for v in sorted(distribution)])
    skew = np.array([distribution[v] for v in sorted(distribution)])
    skew[0], skew[-1] = 0.5 * skew[0], skew[-1] + 0.5 * skew[0]
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies(counts, skew)


@pytest.mark.statistical
def test_noise_of_the_phases() -> None:
    run = RUN | {"noise_multiplier": 2.0, "project": "none", "radius": 9.0}
    outputs = boosting.fixed_order_dpsgd(
        BALANCED[:1] * [[1.0, 1.0]], 20_000, **run, transcript=True, rng=np.random.default_rng(62)
    )
    plan = schedule.fixed_order_schedule(1, 2, radius=9.0, rho=0.5, delta=0.1, step=0.8, n_steps=15)
    pull = np.sqrt(0.5) * 0.8  # every step goes towards (1e6, 1e6)
    before = np.full((20_000, 2), 0.5)
    for k in range(4):
        steps = pull * 4.0 ** -(k + 1) * (plan.lengths[k] - 1) / 2
        noise = outputs[:, k] - before - steps
        sigma = 2 * plan.sigmas[k]
        assert_distribution(noise[:, 0], norm(0, sigma).cdf)
        assert_distribution(noise.sum(axis=1), norm(0, math.sqrt(2) * sigma).cdf)
        with pytest.raises(AssertionError, match="rejected"):
            assert_distribution(noise[:, 0], norm(0, 1.1 * sigma).cdf)
        before = outputs[:, k]


def test_fixed_order_centers_are_a_function_of_the_data() -> None:
    found = boosting.fixed_order_dpsgd_centers(
        CLOUD, 50, **RUN, phase=1, rng=np.random.default_rng(0)
    )
    assert (found == found[0]).all()
    later = boosting.fixed_order_dpsgd_centers(
        CLOUD, 50, **RUN, phase=2, rng=np.random.default_rng(0)
    )
    assert len(np.unique(later, axis=0)) == 50


# For the mutants, points are so far away that every step is 1 up or 1 down.


@pytest.mark.slow
def test_the_stable_mutant_breaks_where_it_says() -> None:
    rho = schedule.stable_dpsgd_rho(1.0, 1e-6)
    plan = schedule.stable_dpsgd_schedule(5, 1, rho=rho, **_plan(FAR))
    length, step = plan.lengths[0], plan.steps[0]
    distributions = [sign_walk_distribution(length, up) for up in (0.6, 0.4)]
    support = (np.arange(distributions[0].size) - distributions[0].size // 2) * step / length

    def excess(sigma: float, cut: float) -> float:
        above = norm.sf((cut - support) / sigma)
        return float((distributions[0] * above).sum() - math.e * (distributions[1] * above).sum())

    mutant = plan.sigmas[0] * 3 / (2 * plan.accesses[0] + 1)
    assert excess(mutant, 5.0) == pytest.approx(0.777, abs=1e-3)
    assert max(excess(plan.sigmas[0], cut) for cut in np.linspace(-2e4, 2e4, 101)) < 1e-6


@pytest.mark.statistical
def test_the_stable_mutant_follows_its_broken_distribution() -> None:
    rho = schedule.stable_dpsgd_rho(1.0, 1e-6)
    run = FAR | {"n_steps": 63, "rho": rho}
    outputs = mutants.stable_dpsgd_forgetting_m(
        BALANCED, 5000, **run, transcript=True, rng=np.random.default_rng(63)
    )[:, 0, 0]
    plan = schedule.stable_dpsgd_schedule(5, 1, rho=rho, **_plan(run))
    distribution = sign_walk_distribution(32, 0.6)
    support = (np.arange(distribution.size) - distribution.size // 2) * plan.steps[0] / 32
    sigma = plan.sigmas[0] * 3 / (2 * plan.accesses[0] + 1)
    cuts = np.linspace(-4 * sigma, 4 * sigma, 200)
    cdf = np.array([(distribution * norm.cdf((cut - support) / sigma)).sum() for cut in cuts])
    assert_distribution(outputs, lambda x: np.interp(x, cuts, cdf))


def test_the_fixed_order_mutant_breaks_where_it_says() -> None:
    centers = [
        boosting.fixed_order_dpsgd_centers(
            data, 1, **FAR, rho=0.5, phase=1, rng=np.random.default_rng(0)
        )[0, 0]
        for data in (BALANCED, TIPPED)
    ]
    plan = schedule.fixed_order_schedule(5, 1, rho=0.5, **_plan(FAR))
    mutant = plan.sigmas[0] * 3 / (2 * 205 + 1)
    shift = centers[0] - centers[1]
    assert shift / mutant == pytest.approx(17.93, abs=0.01)
    assert (shift / mutant) ** 2 / 2 == pytest.approx(161, abs=1)
    assert (shift / plan.sigmas[0]) ** 2 / 2 < 0.5


@pytest.mark.statistical
def test_the_fixed_order_mutant_follows_its_broken_distribution() -> None:
    outputs = mutants.fixed_order_dpsgd_one_access(
        BALANCED, 5000, **FAR, rho=0.5, transcript=True, rng=np.random.default_rng(64)
    )[:, 0, 0]
    center = boosting.fixed_order_dpsgd_centers(
        BALANCED, 1, **FAR, rho=0.5, phase=1, rng=np.random.default_rng(0)
    )[0, 0]
    assert_distribution(outputs, norm(center, math.sqrt(2)).cdf)  # sigma is 3 eta / (3 sqrt(rho))


def _plan(run: dict) -> dict:
    return {name: run[name] for name in ("radius", "delta", "step", "n_steps")}
