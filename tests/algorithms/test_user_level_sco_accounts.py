"""Tests of the derived constants, one for each step of their proof.

Each step of the proof is tested against all values that the step bounds.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad
from scipy.stats import laplace

from algorithms.common import charging
from algorithms.user_level_sco import (
    accounts,
    baselines,
    coordinatewise,
    euclidean,
    printed,
    scaled,
)
from algorithms.user_level_sco.domains import Ball, Box
from algorithms.user_level_sco.losses import Linear
from algorithms.user_level_sco.plans import Test
from algorithms.user_level_sco.private_means import ClippedMean
from algorithms.user_level_sco.scores import concentration_scores, disagreement_bound
from dpaudit.stats import oracles
from mutants import user_level_sco as mutants

SIZES = {"lipschitz": 1.0, "radius": 1.0, "smoothness": 0.5}
BUDGETS = [(1.0, 1e-6), (4.0, 1e-3), (8.0, 1e-2), (16.0, 0.05)]


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("samples", [None, 1024])
def test_every_phase_of_a_plan_keeps_its_promise(epsilon, delta, samples):
    plan = scaled.scaled_euclidean(
        10**6, 4, 3, epsilon=epsilon, delta=delta, samples=samples, **SIZES
    )
    assert plan.batch_size % (samples or 1) == 0
    for phase in range(1, len(plan.phases) + 1):
        account = accounts.euclidean_account(plan, epsilon, phase=phase)
        assert account.delta <= delta * (1 + 1e-9)
    less = replace(plan, phases=tuple(replace(p, sigma=p.sigma / 2) for p in plan.phases))
    assert accounts.euclidean_account(less, epsilon).delta > delta
    quiet = replace(plan, rule=replace(plan.rule, scale=plan.rule.scale / 2))
    assert accounts.euclidean_account(quiet, epsilon).delta > delta


@pytest.mark.sampled
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("statistic", ["median", "trimmed_mean"])
def test_every_phase_of_the_other_version_keeps_its_promise(epsilon, delta, statistic):
    plan = scaled.scaled_coordinatewise(
        10**6, 4, 3, epsilon=epsilon, delta=delta, statistic=statistic, **SIZES
    )
    for phase in range(1, len(plan.phases) + 1):
        account = accounts.coordinatewise_account(plan, 3, epsilon, phase=phase)
        assert account.delta <= delta * (1 + 1e-9)
    less = replace(plan, phases=tuple(replace(p, sigma=p.sigma / 2) for p in plan.phases))
    assert accounts.coordinatewise_account(less, 3, epsilon).delta > delta
    low = replace(plan, rule=replace(plan.rule, threshold=0.5 * plan.batch_size))
    assert accounts.coordinatewise_account(low, 3, epsilon).delta > delta


@pytest.mark.slow
def test_larger_steps_on_rough_losses_need_larger_batches():
    options = {"epsilon": 8.0, "delta": 1e-2, "lipschitz": 1.0, "radius": 1.0, "spread": 0.05}
    free = scaled.scaled_euclidean(40_000, 4, 1, step=1.0, **options)
    with pytest.raises(ValueError, match=r"step must be at most 0\.\d+ for smoothness = 2.0"):
        scaled.scaled_euclidean(40_000, 4, 1, smoothness=2.0, step=1.0, **options)
    paid = scaled.scaled_euclidean(
        40_000, 4, 1, smoothness=2.0, step=1.0, sensitivity=6.5, **options
    )
    assert paid.batch_size > free.batch_size
    account = accounts.euclidean_account(paid, 8.0)
    assert 3 < account.later_sensitivity < 6.5
    assert account.delta <= 1e-2


# --- the filter -----------------------------------------------------------------------------------

batches = arrays(float, (8, 2), elements=st.floats(-3, 3))


@given(batches, arrays(float, 2, elements=st.floats(-3, 3)), st.floats(0.05, 1.5),
       st.sets(st.integers(1, 7), min_size=2), st.booleans(), st.booleans())  # fmt: skip
def test_the_mean_moves_by_no_more_than_the_proof_says(q, other, tau, kept, first, second):
    """Check step 3 of the proof, in which user 0 differs.

    The kept users are any set of other users whose scores reach some level.
    """
    moved = q.copy()
    moved[0] = other
    score = concentration_scores(q, temperature=tau)
    theirs = concentration_scores(moved, temperature=tau)
    assert np.abs(score[1:] - theirs[1:]).max() <= 1  # step 1
    level = min(score[i] for i in kept)  # F - theta
    assume(not first or score[0] >= level)
    assume(not second or theirs[0] >= level)
    spread = disagreement_bound(8, (2 * level - 1) * (1 - 1e-12)) / tau
    means = []
    for rows, own in ((q, first), (moved, second)):
        chosen = sorted(kept | ({0} if own else set()))
        means.append(rows[chosen].mean(axis=0))
    shift = 2 * min(spread, np.inf) / (len(kept) + 1)
    assert np.linalg.norm(means[0] - means[1]) <= shift * (1 + 1e-9)


def test_the_mean_can_move_half_as_far():
    """Check that the mean can move by more than 0.3 times the bound.

    All other users are at 0, and the differing user is at -r or at r.
    """
    tau, r = 1.0, 0.4
    base = np.zeros((9, 1))
    left, right = base.copy(), base.copy()
    left[0], right[0] = -r, r
    score = concentration_scores(left, temperature=tau)
    level = min(score)
    bound = 2 * disagreement_bound(9, 2 * level - 1) / tau / 9
    assert abs(left.mean() - right.mean()) == pytest.approx(2 * r / 9)
    assert 0.3 * bound < 2 * r / 9 < bound


@given(batches, st.floats(0.05, 2), st.floats(0, 0.3), arrays(float, 8, elements=st.floats(0, 1)))
def test_later_scores_move_by_no_more_than_the_proof_says(q, tau, moved, curvatures):
    """Check step 4 of the proof for gradients h_i (x - z_i) with h_i <= beta = 1.

    The two points are at distance `moved`.
    """
    other = q + curvatures[:, None] * np.array([moved, 0.0])
    change = concentration_scores(q, temperature=tau) - concentration_scores(other, temperature=tau)
    assert np.abs(change).max() <= -7 * math.expm1(-tau * moved) + 1e-9


# --- the test -------------------------------------------------------------------------------------


@given(
    arrays(float, (11, 1), elements=st.floats(-4, 4)),
    st.floats(-4, 4),
    st.sampled_from([0.0, 0.3, 2.0]),
    st.sampled_from([("median", 0), ("trimmed_mean", 3), ("trimmed_mean", 4)]),
)
def test_the_estimate_moves_by_no_more_than_the_proof_says(q, other, clip, how):
    statistic, trim = how
    rule = Test(1.0, 5.0, 1.0, 2.0, clip, statistic, trim)
    moved = q.copy()
    moved[0] = other
    theta = max(coordinatewise.concentration_score(x, temperature=1.0) for x in (q, moved)) / 11
    spread = accounts.aligned_spread(11, theta * (1 - 1e-12), accounts.most_trimmed(11, rule))
    bound = accounts.estimate_move(11, 4.0, spread, clip)
    found = [
        coordinatewise.robust_gradient(x, clip=clip, statistic=statistic, trim=trim)
        for x in (q, moved)
    ]
    assert abs(found[0] - found[1]).max() <= bound * (1 + 1e-9) + 1e-12
    score = [coordinatewise.concentration_score(x, temperature=1.0) for x in (q, moved)]
    assert abs(score[0] - score[1]) <= 2 * 10 / 11


def test_a_score_that_leaves_too_many_outside_bounds_nothing():
    assert accounts.aligned_spread(12, 0.5, 5) == math.inf
    assert accounts.aligned_spread(12, 0.9, 5) == pytest.approx(
        -math.log((0.9 - 8 / 12) / (4 / 12))
    )


@pytest.mark.parametrize("x", [-3.0, 0.0, 0.7, 5.0, 30.0])
def test_the_tail_of_two_laplaces(x):
    expected = quad(
        lambda y: laplace.pdf(y) * laplace.sf((x - 2 * y) / 4), -60, 60, points=[0, x / 2]
    )[0]
    assert accounts.two_laplace_tail(x, 4, 2) == pytest.approx(expected, rel=1e-6)


def test_tails():
    assert accounts.laplace_tail(1.3) == pytest.approx(laplace.sf(1.3))
    assert accounts.laplace_tail(-1.3) == pytest.approx(laplace.sf(-1.3))
    assert accounts.sampling_margin(100, None, 1e-3) == 0.0
    margin = accounts.sampling_margin(100, 50, 1e-3)
    assert 101 * math.exp(-2 * 50 * (margin / 100) ** 2) == pytest.approx(1e-3)


# --- refusals -------------------------------------------------------------------------------------

EUCLIDEAN = {"epsilon": 8.0, "delta": 1e-2, **SIZES}


@pytest.mark.parametrize("make", [scaled.scaled_euclidean, scaled.scaled_coordinatewise])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"batch_size": 8}, r"batch_size must be at least \d+ for epsilon = 8.0 and delta = 0.01"),
        ({"n_users": 100}, "n_users must be at least 2 \\* batch_size = "),
        ({"step": 5.0}, "step must be at most 2 / smoothness = 4.0"),
        ({"step": -1.0}, "step must be positive"),
        ({"epsilon": 0.0}, "epsilon must be positive"),
        ({"epsilon": math.nan}, "epsilon must be finite"),
        ({"delta": 1.0}, "delta must be strictly between 0 and 1"),
        ({"lipschitz": 0.0}, "lipschitz must be positive"),
        ({"radius": math.inf}, "radius must be finite"),
        ({"decay": 0.5}, "decay must be at least 1"),
        ({"m": 0}, "m must be at least 1"),
        ({"dimension": 0}, "dimension must be at least 1"),
        ({"spread": 0.0}, "spread must be positive"),
        ({"smoothness": -1.0}, "smoothness must be at least 0, got -1.0"),
    ],
)
def test_bad_sizes_are_refused(make, change, words):
    arguments = {"n_users": 10**5, "m": 4, "dimension": 2, **EUCLIDEAN} | change
    with pytest.raises(ValueError, match=words):
        make(**arguments)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("make", "change", "words"),
    [
        (scaled.scaled_euclidean, {"keep": 0.5}, "keep must be above 0.6 and below 1"),
        (scaled.scaled_euclidean, {"filter_share": 1.0}, "filter_share must be strictly between"),
        (scaled.scaled_coordinatewise, {"theta": 0.95}, "theta must be above 1/2 and below"),
        (scaled.scaled_coordinatewise, {"margin": 0.0}, "margin must be strictly between"),
        (scaled.scaled_coordinatewise, {"statistic": "mode"}, "statistic must be one of"),
        (
            scaled.scaled_euclidean, {"step": 3.9, "spread": 1e-3},
            r"step must be at most \S+ for smoothness = 0.5, so that scores of later",
        ),
        (scaled.scaled_euclidean, {"sensitivity": 0.5}, "sensitivity must be at least 1"),
        (scaled.scaled_euclidean, {"samples": 0}, "samples must be at least 1, got 0"),
        (scaled.scaled_euclidean, {"samples": 3}, "epsilon or samples must be larger"),
        (scaled.scaled_euclidean, {"epsilon": 1e-9}, "epsilon or samples must be larger"),
        (
            scaled.scaled_euclidean, {"filter_share": 0.9, "cutoff_share": 0.9},
            r"filter_share \+ cutoff_share must be below 1",
        ),
        (
            scaled.scaled_coordinatewise, {"step": 3.9, "spread": 1e-3},
            "step must be smaller for smoothness = 0.5, got 3.9. The scores of later",
        ),
    ],
)  # fmt: skip
def test_bad_choices_are_refused(make, change, words):
    arguments = {"n_users": 10**5, "m": 4, "dimension": 2, **EUCLIDEAN} | change
    with pytest.raises(ValueError, match=words):
        make(**arguments)


def test_accounts_of_nothing_are_refused():
    plan = scaled.scaled_euclidean(10**5, 4, 2, **EUCLIDEAN)
    with pytest.raises(ValueError, match="phase must be at most"):
        accounts.euclidean_account(plan, 1.0, phase=99)
    with pytest.raises(ValueError, match="epsilon must be at least 0, got -1.0"):
        accounts.euclidean_account(plan, -1.0)
    with pytest.raises(ValueError, match="epsilon must be finite"):
        accounts.euclidean_account(plan, math.nan)
    tested = scaled.scaled_coordinatewise(10**5, 4, 2, **EUCLIDEAN)
    with pytest.raises(ValueError, match="dimension must be at least 1"):
        accounts.coordinatewise_account(tested, 0, 1.0)


@pytest.mark.parametrize("theta", [0.6, 0.7, 0.8])
def test_the_account_finds_the_theta_of_the_plan(theta):
    plan = scaled.scaled_coordinatewise(
        10**6, 4, 3, epsilon=4.0, delta=1e-3, theta=theta, margin=0.19, **SIZES
    )
    assert accounts.coordinatewise_account(plan, 3, 4.0).delta <= 1.1e-3


def test_a_plan_is_for_one_dimension():
    """Check that a plan for one dimension refuses data of more dimensions.

    The noise contains sqrt(d), so the noise would be too small for these data.
    """
    plan = scaled.scaled_coordinatewise(2000, 2, 1, **EUCLIDEAN)
    data = np.zeros((plan.n_users, 2, 3))
    with pytest.raises(ValueError, match="dimension must be 1, got 3"):
        coordinatewise.user_level_sco_linf(
            data, 1, loss=Linear(), domain=Box(1.0), plan=plan, start=np.zeros(3),
            rng=np.random.default_rng(0),
        )  # fmt: skip


@pytest.mark.filterwarnings("ignore:The filter of this plan cannot act:UserWarning")
def test_the_proof_does_not_cover_what_is_printed():
    options = {"epsilon": 1.0, "delta": 1e-6, "lipschitz": 1.0, "radius": 1.0}
    plan = printed.euclidean(12_000_000, 10, 2, **options)
    with pytest.raises(ValueError, match="noise that does not depend on the cutoff"):
        accounts.euclidean_account(plan, 1.0)
    other = printed.coordinatewise(10**6, 10, 2, **options)
    with pytest.raises(ValueError, match="one test for all steps"):
        accounts.coordinatewise_account(
            replace(other, rule=replace(other.rule, per_step=True)), 2, 1.0
        )
    with pytest.raises(TypeError, match="plan must have a Filter"):
        accounts.euclidean_account(other, 1.0)
    with pytest.raises(TypeError, match="plan must have a Test"):
        accounts.coordinatewise_account(plan, 2, 1.0)


# --- the stated failures of the mutants -----------------------------------------------------------


def needed(shift, sigma, delta):
    """Return the epsilon of a Gaussian with this shift at this delta."""
    return float(oracles.gaussian(shift, sigma).epsilon(delta))


def moved(n, m, left, right):
    one, other = np.zeros((n, m, 1)), np.zeros((n, m, 1))
    one[0], other[0] = left, right
    return one, other


def test_without_its_filter_the_first_version_breaks():
    plan = scaled.scaled_euclidean(
        8000, 2, 1, epsilon=2.0, delta=0.02, lipschitz=1.0, radius=100.0, step=1.0, spread=0.01
    )
    options = {"loss": Linear(), "domain": Ball(100.0), "plan": plan, "start": [0.0], "phase": 1}
    centers = [
        mutants.without_filter(
            data, 3, mechanism=euclidean.user_level_sco_centers, **options,
            rng=np.random.default_rng(0),
        )
        for data in moved(plan.n_users, 2, 1.0, -1.0)
    ]  # fmt: skip
    # In the average of T iterates, all iterates move: x_t = sum of t gradients, and the first
    # gradient moves.
    shift = 2.0 / plan.batch_size
    np.testing.assert_allclose(np.ptp(np.concatenate(centers)), shift)
    assert needed(shift, plan.phases[0].sigma, 0.02) > 2.0
    assert needed(shift / 6, plan.phases[0].sigma, 0.02) < 2.0  # the shift that the filter admits


def test_without_its_test_the_second_version_breaks():
    plan = scaled.scaled_coordinatewise(
        1600, 2, 1, epsilon=2.0, delta=0.02, lipschitz=1.0, radius=100.0, step=1.0, spread=0.01
    )
    options = {"loss": Linear(), "domain": Box(100.0), "plan": plan, "start": [0.0]}
    data = np.zeros((plan.n_users, 2, 1))
    data[: plan.batch_size // 2] = 1.0
    other = data.copy()
    other[plan.batch_size // 2] = 1.0
    centers = [
        mutants.without_test(
            x, 3, mechanism=coordinatewise.user_level_sco_linf_centers, phase=1, **options,
            rng=np.random.default_rng(0),
        )
        for x in (data, other)
    ]  # fmt: skip
    shift = np.ptp(np.concatenate(centers))
    assert shift > 0.4  # the median of an even batch leaves the middle
    assert needed(shift, plan.phases[0].sigma, 0.02) > 2.0


def test_the_mutants_of_the_baselines_break():
    left, right = moved(40, 4, 1.0, -1.0)
    options = {"loss": Linear(), "domain": Ball(100.0), "start": [0.0], "step": 0.1}
    budget = {"epsilon": 1.0, "delta": 0.01}
    sizes = {"batch_size": 10, "n_steps": 4, "mean": ClippedMean(0.5)}
    sigma = baselines.dp_sgd_sigma(40, 1, **sizes, **budget)
    assert needed(2 * 0.5 / 10, sigma, 0.01) == pytest.approx(1.0, rel=1e-6)
    assert needed(2 * 0.5 / 10, sigma / 4, 0.01) > 4
    draws = [
        mutants.dp_sgd_items(x, 4000, **options, **sizes, **budget, rng=np.random.default_rng(1))
        for x in (left, right)
    ]
    assert draws[0].mean() - draws[1].mean() == pytest.approx(0.1 * 2 * 0.5 / 10, rel=0.1)
    mu = 2 * 4 * 0.1 * 1.0  # the group sensitivity is 2 m step G
    quiet = [
        mutants.output_perturbation_of_one_item(
            x, 4000, lipschitz=1.0, **options, **budget, rng=np.random.default_rng(2)
        )
        for x in (left, right)
    ]
    sound = baselines.output_perturbation(
        left, 4000, lipschitz=1.0, **options, **budget, rng=np.random.default_rng(3)
    )
    assert quiet[0].std() == pytest.approx(sound.std() / 4, rel=0.1)
    assert needed(mu, sound.std() / 4, 0.01) > 3.5


# --- tuned parameters of the baselines ---

TUNED = {"epsilon": 4.0, "delta": 1e-3, "lipschitz": 2.0, "radius": 3.0}


def test_tuned_parameters_of_dp_sgd_minimise_their_bound():
    n, m, d = 3300, 9, 5
    chosen = baselines.dp_sgd_parameters(n, m, d, **TUNED)
    assert (chosen.batch_size, chosen.n_steps) == (103, 32)
    assert chosen.mean.clip_norm == pytest.approx(2 * 2 / 3)
    assert baselines.dp_sgd_parameters(n, 1, d, **TUNED).mean.clip_norm == 2.0
    sigma = baselines.dp_sgd_sigma(
        n, d, batch_size=103, n_steps=32, mean=chosen.mean, epsilon=4.0, delta=1e-3
    )
    variance = 2.0**2 / (103 * m) + d * sigma**2
    errors = [
        3.0**2 / (2 * 32 * step) + step * variance / 2
        for step in (0.99 * chosen.step, chosen.step, 1.01 * chosen.step)
    ]
    assert errors[1] < min(errors[0], errors[2])
    with pytest.raises(ValueError, match="n_users must be at least 32, got 31"):
        baselines.dp_sgd_parameters(31, m, d, **TUNED)
    with pytest.raises(ValueError, match="mean must be clipped, winsorized or concentrated"):
        baselines.dp_sgd_parameters(n, m, d, mean="median", **TUNED)


def test_tuned_parameters_of_output_perturbation_minimise_their_bound():
    n, m, d = 5000, 4, 6
    chosen = baselines.output_perturbation_parameters(n, m, d, **TUNED)
    assert chosen.batch_size == 20
    mu = charging.largest_mu(4.0, 1e-3, calls=0, epsilon0=0.0, epsilon1=0.0)

    def bound(step):
        noise = 2 * m * step * 2.0 / (20 * mu)
        return 9 / (2 * step * 1000) + step * 4 / (2 * 20) + 2.0 * noise * math.sqrt(d)

    assert bound(chosen.step) < min(bound(0.99 * chosen.step), bound(1.01 * chosen.step))
    assert baselines.output_perturbation_parameters(3, 1, d, **TUNED).batch_size == 1


def test_the_step_size_of_sgd_has_the_rate_of_single_items():
    step = baselines.sgd_step(4, batch_size=25, n_steps=16, lipschitz=2.0, radius=3.0)
    assert step == 1.5 * math.sqrt(25 * 4 / 16)
    variance = 2.0**2 / (25 * 4)  # of a mean gradient
    assert 9 / (2 * step * 16) == pytest.approx(step * variance / 2)
    with pytest.raises(ValueError, match="n_steps must be at least 1, got 0"):
        baselines.sgd_step(4, batch_size=25, n_steps=0, lipschitz=2.0, radius=3.0)
