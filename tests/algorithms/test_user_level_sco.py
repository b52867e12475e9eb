"""The algorithms of both versions, compared line by line with their pseudocode.

Each algorithm and its pseudocode use equal noise.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from algorithms.common import sparse_vector
from algorithms.user_level_sco import coordinatewise, euclidean, problems
from algorithms.user_level_sco.domains import Ball, Box
from algorithms.user_level_sco.losses import Huber, Linear, Logistic, Quadratic, VaryingQuadratic
from algorithms.user_level_sco.plans import Filter, Phase, Plan, Test, halving_phases
from tests.algorithms.test_user_level_sco_scores import summed

BATCH = 6
RULE = Filter(temperature=0.8, threshold=4.0, scale=0.7, cutoff=9.0, cutoff_scale=2.0)
CHECK = Test(temperature=0.3, threshold=4.8, epsilon=4.0, sensitivity=2.0, clip=0.2)


def plan_of(rule, steps=(3, 2), step=0.4, smoothness=1.0, **changes):
    phases = tuple(Phase(T * BATCH, T, step / 2**s, 0.5 / (s + 1)) for s, T in enumerate(steps))
    settings = {"lipschitz": 9.0, "epsilon": 1.0, "delta": 0.1} | changes
    return Plan(BATCH, phases, rule, smoothness=smoothness, **settings)


def users(n=30, m=2, d=2, seed=1):
    return np.random.default_rng(seed).normal(size=(n, m, d))


EUCLIDEAN = {"loss": Huber(1.0), "domain": Ball(1.5), "start": [0.1, -0.2]}
BOXED = {"loss": Huber(1.0, separable=True), "domain": Box(1.5), "start": [0.1, -0.2]}


# --- Algorithm 2, as printed ----------------------------------------------------------------------


def algorithm_2(data, phase, loss, domain, x0, rule, rng):
    """Run Algorithm 2 once, user by user, and return xbar and the decisions.

    Decisions after the halt are NaN.
    """
    c_hat = rule.cutoff + rng.laplace(scale=rule.cutoff_scale, size=1)[0]
    scale = rule.scale
    if rule.scale_follows_cutoff:
        scale *= math.sqrt(max(c_hat, 0.0) / rule.cutoff)
    x, total, count = np.asarray(x0), np.zeros(len(x0)), 0
    decisions = np.full(phase.n_users, np.nan)
    halted = count >= c_hat
    for t in range(phase.n_steps):
        nu = scale * rng.laplace(size=(1, BATCH))[0]
        if halted:  # draws after the halt are discarded
            continue
        batch = data[t * BATCH : (t + 1) * BATCH]
        q = np.array([loss.gradients(x[None], z[None])[0, 0] for z in batch])
        kept = []
        for i in range(BATCH):
            kappa = sum(math.exp(-rule.temperature * np.linalg.norm(q[i] - other)) for other in q)
            if kappa + nu[i] <= rule.threshold:
                count += 1
                decisions[t * BATCH + i] = 0.0
            else:
                kept.append(i)
                decisions[t * BATCH + i] = 1.0
        halted = count >= c_hat or not kept
        if halted:
            continue
        x = domain.project((x - phase.step * q[kept].mean(axis=0))[None])[0]
        total += x
    return (np.asarray(x0) if halted else total / phase.n_steps), decisions


@pytest.mark.parametrize("follows", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_filtered_sgd_is_algorithm_2(follows, seed):
    rule = replace(RULE, scale_follows_cutoff=follows, cutoff=6.0)
    plan, data = plan_of(rule), users()
    expected, decisions = algorithm_2(
        data, plan.phases[0], EUCLIDEAN["loss"], EUCLIDEAN["domain"], EUCLIDEAN["start"], rule,
        np.random.default_rng(seed),
    )  # fmt: skip
    found = euclidean.filtered_sgd(data, 1, plan=plan, **EUCLIDEAN, rng=np.random.default_rng(seed))
    np.testing.assert_allclose(found[0], expected, rtol=1e-12)
    made = euclidean.filter_decisions(
        data, 1, plan=plan, **EUCLIDEAN, rng=np.random.default_rng(seed)
    )
    np.testing.assert_array_equal(made[0], decisions)


def test_some_of_those_runs_halt_and_some_do_not():
    plan = plan_of(replace(RULE, cutoff=6.0))
    found = euclidean.filtered_sgd(
        users(), 400, plan=plan, **EUCLIDEAN, rng=np.random.default_rng(0)
    )
    halted = (found == EUCLIDEAN["start"]).all(axis=1).mean()
    assert 0.1 < halted < 0.9


def test_a_cutoff_below_0_halts_before_anything_is_released():
    plan = plan_of(replace(RULE, cutoff=1e-9, cutoff_scale=1e3, scale_follows_cutoff=True))
    found = euclidean.filter_decisions(
        users(), 200, plan=plan, **EUCLIDEAN, rng=np.random.default_rng(0)
    )
    assert 0.3 < np.isnan(found).all(axis=1).mean() < 0.7


def test_a_batch_that_is_filtered_whole_halts():
    rule = replace(RULE, threshold=100.0, cutoff=1e6)
    found = euclidean.filtered_sgd(
        users(), 5, plan=plan_of(rule), **EUCLIDEAN, rng=np.random.default_rng(0)
    )
    np.testing.assert_array_equal(found, np.tile(EUCLIDEAN["start"], (5, 1)))


def test_algorithm_1_runs_its_phases_on_users_of_their_own():
    """Check that each phase of Algorithm 1 uses its own users.

    The output of phase s is x_s = xbar_s + N(0, sigma_s^2). Each phase starts at the output of the
    previous phase.
    """
    plan, data = plan_of(RULE), users()
    rng = np.random.default_rng(3)
    x, used, expected = EUCLIDEAN["start"], 0, []
    for phase in plan.phases:
        own = data[used : used + phase.n_users]
        used += phase.n_users
        average, _ = algorithm_2(own, phase, EUCLIDEAN["loss"], EUCLIDEAN["domain"], x, RULE, rng)
        noisy = average + rng.normal(scale=phase.sigma, size=(1, 2))
        x = EUCLIDEAN["domain"].project(noisy)[0]
        expected.append(x)
    found = euclidean.user_level_sco(
        data, 1, plan=plan, transcript=True, **EUCLIDEAN, rng=np.random.default_rng(3)
    )
    np.testing.assert_allclose(found[0], expected, rtol=1e-12)
    last = euclidean.user_level_sco(data, 1, plan=plan, **EUCLIDEAN, rng=np.random.default_rng(3))
    np.testing.assert_allclose(last[0], expected[-1], rtol=1e-12)


@pytest.mark.parametrize("phase", [1, 2])
def test_centers_and_noise_make_the_released_iterate(phase):
    plan, data = plan_of(RULE), users()
    options = {"plan": plan, "project": False, "unsafe": True, **EUCLIDEAN}
    released = euclidean.user_level_sco(
        data, 50, transcript=True, **options, rng=np.random.default_rng(5)
    )[:, phase - 1]
    centers = euclidean.user_level_sco_centers(
        data, 50, phase=phase, **options, rng=np.random.default_rng(5)
    )
    noise = (released - centers) / plan.phases[phase - 1].sigma
    assert 0.8 < noise.std() < 1.2
    quiet = euclidean.user_level_sco(
        data, 50, transcript=True, noise_multiplier=1e-9, **options, rng=np.random.default_rng(5)
    )[:, 0]
    first = euclidean.user_level_sco_centers(
        data, 50, phase=1, **options, rng=np.random.default_rng(5)
    )
    np.testing.assert_allclose(quiet, first, atol=1e-7)


@pytest.mark.statistical
def test_draws_in_blocks_are_the_same_mechanism():
    """Check that draws in several blocks follow one distribution and halt separately."""
    plan = plan_of(replace(RULE, cutoff=6.0))
    many = euclidean.filtered_sgd(
        users(), 9000, plan=plan, **EUCLIDEAN, rng=np.random.default_rng(0)
    )
    halted = (many == EUCLIDEAN["start"]).all(axis=1)
    # The difference of two halves of 4,500 draws has a standard deviation of at most 0.0106. The
    # limit is 5.6 standard deviations, so a false alarm has probability below 1e-6.
    assert abs(halted[:4500].mean() - halted[4500:].mean()) < 0.06
    assert len(np.unique(many[~halted], axis=0)) > 100


@pytest.mark.statistical
def test_sampled_scores_of_all_users_decide_as_exact_ones():
    plan = plan_of(RULE)
    exact = euclidean.filter_decisions(
        users(), 300, plan=plan, **EUCLIDEAN, rng=np.random.default_rng(0)
    )
    all_of_them = plan_of(replace(RULE, samples=BATCH))
    sampled = euclidean.filter_decisions(
        users(), 300, plan=all_of_them, **EUCLIDEAN, rng=np.random.default_rng(0)
    )
    kept = [np.nanmean(x, axis=0) for x in (exact, sampled)]
    # The test compares 18 frequencies of 300 runs. The limit of 0.25 is 6 standard deviations, so a
    # false alarm in any frequency has probability below 1e-6.
    assert np.abs(kept[0] - kept[1]).max() < 0.25
    with pytest.raises(ValueError, match="samples must divide batch_size = 6, got 4"):
        plan_of(replace(RULE, samples=4))


# --- Algorithms 5 to 8, as printed ----------------------------------------------------------------


def algorithm_6(data, phase, loss, domain, x0, rule):
    """Return the scores and iterates of Algorithm 6, coordinate by coordinate."""
    x, scores, iterates = np.asarray(x0), [], []
    for t in range(phase.n_steps):
        q = loss.gradients(x[None], data[t * BATCH : (t + 1) * BATCH])[0]
        g = np.empty(len(x))
        for j in range(len(x)):  # Algorithm 7
            values = np.sort(q[:, j])
            middle = (values[(BATCH - 1) // 2] + values[BATCH // 2]) / 2
            if rule.statistic == "trimmed_mean":
                middle = values[rule.trim : BATCH - rule.trim].mean()
            mean = values.mean()
            if abs(middle - mean) >= rule.clip:
                mean = middle + math.copysign(rule.clip, mean - middle)
            g[j] = mean
        x = domain.project((x - phase.step * g)[None])[0]
        scores.append(summed(q, rule.temperature, "linf").sum() / BATCH)  # equation (15)
        iterates.append(x)
    return np.array(scores), np.array(iterates)


@pytest.mark.parametrize("statistic", ["median", "trimmed_mean"])
@pytest.mark.parametrize("clip", [0.0, 0.1, 5.0])
def test_robust_sgd_is_algorithm_6(statistic, clip):
    rule = replace(CHECK, statistic=statistic, trim=1, clip=clip)
    plan, data = plan_of(rule), users()
    expected = algorithm_6(
        data, plan.phases[0], BOXED["loss"], BOXED["domain"], BOXED["start"], rule
    )
    found = coordinatewise.concentration_profile(data, plan=plan, **BOXED)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-12, atol=1e-15)


@pytest.mark.statistical
def test_robust_sgd_returns_the_average_or_the_start_as_above_threshold_says():
    """Check that RobustSGD returns the average or the start, as AboveThreshold decides.

    The halting probabilities agree with AboveThreshold (Algorithm 3) on the scores.
    """
    plan, data = plan_of(CHECK), users()
    scores, iterates = coordinatewise.concentration_profile(data, plan=plan, **BOXED)
    found = coordinatewise.robust_sgd(
        data, 20_000, plan=plan, **BOXED, rng=np.random.default_rng(0)
    )
    average, start = iterates.mean(axis=0), np.asarray(BOXED["start"])
    passed = np.isclose(found, average).all(axis=1)
    assert (passed | (found == start).all(axis=1)).all()
    answers = sparse_vector.above_threshold(
        scores, 20_000, threshold=CHECK.threshold, epsilon=CHECK.epsilon,
        sensitivity=CHECK.sensitivity, rng=np.random.default_rng(1),
    )  # fmt: skip
    expected = (answers[:, -1] == 1.0).mean()
    assert 0.05 < expected < 0.95
    # The limit is 7 standard deviations of the difference of two frequencies.
    assert abs(passed.mean() - expected) < 7 * math.sqrt(2 * 0.25 / 20_000)


def test_a_test_of_its_own_for_every_step_is_another_mechanism():
    plan, data = plan_of(CHECK, steps=(5, 1)), users(40)
    once = coordinatewise.robust_sgd(data, 9000, plan=plan, **BOXED, rng=np.random.default_rng(0))
    each = plan_of(replace(CHECK, per_step=True), steps=(5, 1))
    often = coordinatewise.robust_sgd(data, 9000, plan=each, **BOXED, rng=np.random.default_rng(0))
    start = np.asarray(BOXED["start"])
    halted = [(x == start).all(axis=1).mean() for x in (once, often)]
    assert halted[1] > halted[0] + 0.02


def test_phases_of_algorithm_5_start_where_each_run_is():
    plan, data = plan_of(replace(CHECK, epsilon=1e6)), users()  # almost no noise in the test
    found = coordinatewise.user_level_sco_linf(
        data, 4, plan=replace(plan, rule=replace(plan.rule, threshold=1.0)), transcript=True,
        **BOXED, rng=np.random.default_rng(0),
    )  # fmt: skip
    own = data[plan.phases[0].n_users :]
    centers = coordinatewise.user_level_sco_linf_centers(
        data, 4, plan=replace(plan, rule=replace(plan.rule, threshold=1.0)), phase=2,
        **BOXED, rng=np.random.default_rng(0),
    )  # fmt: skip
    for first, center in zip(found[:, 0], centers, strict=True):
        _, iterates = algorithm_6(
            own, plan.phases[1], BOXED["loss"], BOXED["domain"], first, plan.rule
        )
        np.testing.assert_allclose(center, iterates.mean(axis=0), rtol=1e-10)


values = st.integers(3, 7).flatmap(
    lambda n: arrays(float, (n, 2), elements=st.floats(-5, 5).map(lambda x: round(x, 3)))
)


@given(values, st.floats(-3, 3), st.floats(-3, 3), st.sampled_from(["median", "trimmed_mean"]))
def test_statistics_are_equivariant_and_lipschitz(x, a, b, statistic):
    options = {"statistic": statistic, "trim": 1}
    middle = coordinatewise.robust_statistic(x, **options)
    np.testing.assert_allclose(
        coordinatewise.robust_statistic(a * x + b, **options), a * middle + b, atol=1e-12
    )
    moved = x + np.linspace(-0.5, 0.5, len(x))[:, None]
    other = coordinatewise.robust_statistic(moved, **options)
    assert np.abs(other - middle).max() <= 0.5 + 1e-12


def test_a_trimmed_mean_leaves_the_majority_unless_it_is_the_median():
    x = np.array([[0.0]] * 6 + [[10.0]] * 5)
    assert coordinatewise.robust_statistic(x)[0] == 0.0
    assert coordinatewise.robust_statistic(x, statistic="trimmed_mean", trim=5)[0] == 0.0
    for trim in range(5):
        assert coordinatewise.robust_statistic(x, statistic="trimmed_mean", trim=trim)[0] > 0


# --- refusals -------------------------------------------------------------------------------------

SGD = {**EUCLIDEAN, "plan": plan_of(RULE)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"data": users(20)}, "data must hold at least 30 users, the number in the plan, got 20"),
        ({"data": users(5)}, "batch_size must be at most n_users = 5, got 6"),
        ({"data": [[[1.0, 2.0]], [[1.0, 2.0], [0.0, 1.0]]]}, "items of different lengths"),
        ({"data": np.full((30, 2, 2), np.nan)}, "data must hold only finite"),
        ({"plan": plan_of(RULE, lipschitz=0.9)}, "lipschitz must be at least 1.0, .*, got 0.9"),
        ({"plan": plan_of(RULE, smoothness=0.5)}, "smoothness must be at least 1.0, got 0.5"),
        ({"plan": plan_of(RULE, step=2.5)}, "step must be at most 2 / smoothness = 2.0"),
        ({"start": [2.0, 0.0]}, "start must be in the domain"),
        ({"start": [0.0]}, "start must have 2 coordinates, got 1"),
        ({"start": [math.nan, 0.0]}, "start must hold only finite"),
        ({"phase": 3}, "phase must be at most 2, got 3"),
        ({"phase": 0}, "phase must be at least 1, got 0"),
    ],
)
def test_what_the_proof_does_not_cover_is_refused(change, words):
    arguments = {"data": users(), **SGD} | change
    with pytest.raises(ValueError, match=words):
        euclidean.filtered_sgd(arguments.pop("data"), 2, **arguments, rng=np.random.default_rng(0))


@pytest.mark.parametrize("version", ["euclidean", "linf"])
def test_more_than_one_phase_without_projection_is_unsafe(version):
    """Check that several phases without projection are refused.

    Outside of the domain, a gradient may be longer than G, but the noise is scaled for G.
    """
    run = {"euclidean": euclidean.user_level_sco, "linf": coordinatewise.user_level_sco_linf}
    options = EUCLIDEAN | {"plan": plan_of(RULE)}
    if version == "linf":
        options = BOXED | {"plan": plan_of(CHECK)}
    with pytest.raises(ValueError, match="project must be True if there are several phases"):
        run[version](users(), 2, project=False, **options, rng=np.random.default_rng(0))


def test_unsafe_runs_what_is_rough():
    for plan in (plan_of(RULE, step=2.5), plan_of(RULE, smoothness=0.5)):
        arguments = SGD | {"plan": plan, "unsafe": True}
        found = euclidean.filtered_sgd(users(), 2, **arguments, rng=np.random.default_rng(0))
        assert np.isfinite(found).all()
    with pytest.raises(ValueError, match="lipschitz must be at least"):
        euclidean.filtered_sgd(
            users(), 2, **{**SGD, "plan": plan_of(RULE, lipschitz=0.5)}, unsafe=True,
            rng=np.random.default_rng(0),
        )  # fmt: skip


class NotANumber(Linear):
    """A loss with a bug that makes gradients NaN."""

    def parts(self, x, users):
        shared, own = super().parts(x, users)
        return shared, own * np.nan


@pytest.mark.parametrize("domain", [Ball(1.5), Box(1.5)])
def test_gradients_that_are_no_numbers_are_refused(domain):
    run = euclidean.filtered_sgd if isinstance(domain, Ball) else coordinatewise.robust_sgd
    rule = RULE if isinstance(domain, Ball) else CHECK
    with pytest.raises(ValueError, match="gradients must be finite, got NaN or inf from the loss"):
        run(
            users(), 2, loss=NotANumber(), domain=domain, plan=plan_of(rule), start=[0.0, 0.0],
            rng=np.random.default_rng(0),
        )  # fmt: skip


def test_rules_and_domains_belong_to_their_algorithms():
    rng = np.random.default_rng(0)
    with pytest.raises(TypeError, match="plan must have a Filter"):
        euclidean.filtered_sgd(users(), 2, plan=plan_of(CHECK), **EUCLIDEAN, rng=rng)
    with pytest.raises(TypeError, match="plan must have a Test"):
        coordinatewise.robust_sgd(users(), 2, plan=plan_of(RULE), **BOXED, rng=rng)
    with pytest.raises(TypeError, match="domain must be a Box"):
        coordinatewise.robust_sgd(
            users(), 2, plan=plan_of(CHECK), **(BOXED | {"domain": Ball(1.0)}), rng=rng
        )
    features = np.concatenate([users(d=2) / 9, np.ones((30, 2, 1))], axis=2)
    with pytest.raises(ValueError, match="diagonally dominant"):
        coordinatewise.robust_sgd(
            features, 2, plan=plan_of(CHECK), loss=Logistic(1.0), domain=Box(1.0),
            start=[0.0, 0.0], rng=rng,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Phase(6, 0, 0.1, 0.1), "n_steps must be at least 1"),
        (lambda: Phase(6, 1, math.nan, 0.1), "step must be finite"),
        (lambda: replace(RULE, scale=0.0), "scale must be positive"),
        (lambda: replace(CHECK, clip=-1.0), "clip must be at least 0"),
        (lambda: replace(CHECK, statistic="mode"), "statistic must be one of median"),
        (
            lambda: plan_of(replace(CHECK, trim=3)),
            "trim must be below batch_size / 2, got trim = 3 for batch_size = 6",
        ),
        (lambda: replace(plan_of(RULE), batch_size=1), "batch_size must be at least 2"),
        (lambda: replace(plan_of(RULE), batch_size=5), "n_steps \\* 5 users, got 18"),
        (lambda: replace(plan_of(RULE), phases=()), "phases must hold at least one"),
        (lambda: replace(plan_of(RULE), smoothness=-1.0), "smoothness must be at least 0"),
        (lambda: replace(plan_of(RULE), epsilon=-1.0), "epsilon must be positive"),
        (lambda: replace(plan_of(RULE), delta=math.nan), "delta must be finite"),
        (lambda: replace(plan_of(RULE), dimension=0), "dimension must be at least 1"),
        (
            lambda: halving_phases(11, 6, 2, steps=[1.0] * 2, sigmas=[1.0] * 2),
            "n_users must be at least 2 \\* batch_size = 12, got 11",
        ),
    ],
)
def test_bad_plans_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_phases_halve_and_lose_what_is_left():
    phases = halving_phases(100, 6, 9, steps=[1.0] * 9, sigmas=[1.0] * 9)
    assert [phase.n_users for phase in phases] == [48, 24, 12, 6]
    assert [phase.n_steps for phase in phases] == [8, 4, 2, 1]


def test_a_whole_run_comes_near_the_minimiser():
    problem = problems.cube(Quadratic(), Ball(1.0), center=[0.5, -0.5], half_width=0.2)
    data = problem.sample(600, 4, rng=np.random.default_rng(1))
    rule = Filter(temperature=0.1, threshold=24.0, scale=0.5, cutoff=20.0, cutoff_scale=1.0)
    phases = halving_phases(
        600, 30, 4, steps=[0.5, 0.25, 0.1, 0.05], sigmas=[0.1, 0.05, 0.02, 0.01]
    )
    plan = Plan(30, phases, rule, 3.0, 1.0, 1.0, 0.1)
    found = euclidean.user_level_sco(
        data, 200, loss=problem.loss, domain=problem.domain, plan=plan, start=[-0.5, 0.5],
        rng=np.random.default_rng(2),
    )  # fmt: skip
    assert problem.excess(found).mean() < 0.05 * problem.excess([[-0.5, 0.5]])[0]


def test_scores_follow_the_iterate_where_curvatures_differ():
    items = np.concatenate([users(d=1), np.tile([[0.2], [1.0]], (30, 1, 1))], axis=2)
    options = {"loss": VaryingQuadratic(1.0), "domain": Ball(2.0), "plan": plan_of(RULE)}
    rng = np.random.default_rng(0)
    found = euclidean.filtered_sgd(items, 50, start=[1.0], **options, rng=rng)
    assert np.isfinite(found).all()
