"""Tests of printed parameters and of derived parameters.

Printed parameters are compared with their formulas, and derived parameters with their promises.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from algorithms.common.tree import tree_gdp
from algorithms.zeroth_order import accounts, bounds, printed, scaled
from algorithms.zeroth_order.plans import Naive, Plan, VarianceReduced

PROBLEM = {"radius": 0.5, "rho": 0.7, "lipschitz": 2.0, "gap": 3.0}


def plan(rounds, first=None, batch=2, sigma=0.3):
    return Plan(
        rounds, 2, 0.5, 0.5 / rounds, 0.1, VarianceReduced(first or rounds + 1, batch, sigma)
    )


# --- accounts ---


@pytest.mark.parametrize("rounds", [1, 2, 3, 4, 5, 8, 9, 31, 64, 100])
@pytest.mark.parametrize("zero", [True, False])
def test_the_account_of_a_run_is_that_of_its_tree(rounds, zero):
    for first in (1, rounds, 10 * rounds):
        made = replace(plan(rounds, first), first_step_is_zero=zero)
        s = accounts.epoch_sensitivities(made, 3, 2.0)
        assert s[0] == pytest.approx(2 * 3 * 2.0 / first)
        assert s[3:] == pytest.approx(2 * 3 * 2.0 * 2 / rounds / 2)
        if rounds > 1:
            assert s[1] == pytest.approx(2 * 3 * 2.0 * (2 - zero) / rounds / 2)
        found = accounts.transcript_gdp(made, 3, 2.0)
        assert found == pytest.approx(tree_gdp(s, 0.3))
        found = accounts.output_gdp(made, 3, 2.0)
        assert found == pytest.approx(tree_gdp(s[:-1], 0.3) if rounds > 1 else 0.0)


def test_the_account_of_a_path():
    w = np.array([[0.0, 0.0], [0.3, 0.4], [0.3, 0.4]])
    made = VarianceReduced(4, 2, 0.5)
    found = accounts.path_gdp(made, points=w, radius=2.0, lipschitz=3.0)
    assert found == pytest.approx(tree_gdp([2 * 2 * 3 / 4, 2 * 2 * 3 * 0.5 / (2 * 2.0), 0.0], 0.5))
    assert accounts.path_gdp(Naive(4, 0.5), points=w, radius=2.0, lipschitz=3.0) == pytest.approx(6)
    silent = Naive(4, 0.0)
    assert accounts.path_gdp(silent, points=w, radius=2.0, lipschitz=3.0) == math.inf
    assert accounts.output_gdp(plan(3, sigma=0.0), 3, 2.0) == math.inf


@pytest.mark.parametrize("rounds", [2, 3, 4, 5, 17, 100])
@pytest.mark.parametrize("covers", ["output", "transcript"])
def test_calibrated_noise_is_exactly_enough(rounds, covers):
    for made in (plan(rounds), replace(plan(rounds), oracle=Naive(3, 1.0))):
        found = scaled.calibrated(made, 3, rho=0.7, lipschitz=2.0, covers=covers)
        account = accounts.output_gdp if covers == "output" else accounts.transcript_gdp
        assert account(found, 3, 2.0) == pytest.approx(0.7)
        assert (found.dimension, found.lipschitz) == (3, 2.0)


def test_plans_hold_plain_numbers():
    """Check that a plan stores plain Python numbers.

    A numpy integer has no bit_length method.
    """
    made = replace(plan(16), rounds=np.int64(16))
    assert type(made.rounds) is int
    assert bounds.stationarity_bound(made, 2, lipschitz=1.0, gap=1.0).total > 0


def test_covers_is_what_is_covered():
    given = {"radius": 0.5, "rho": 0.7, "lipschitz": 2.0, "gap": 3.0, "rounds": 4}
    for covers, account in (
        ("output", accounts.output_gdp), ("transcript", accounts.transcript_gdp),
    ):  # fmt: skip
        made = scaled.variance_reduced(1000, 3, covers=covers, **given)
        assert account(made, 3, 2.0) == pytest.approx(0.7)


def test_noise_of_a_sum_is_bounded_by_the_digits_of_all_times():
    """Check that the noise of sums is bounded by the largest number of binary digits 1.

    At T = 7, the sum at time 7 has three noises. At T = 6, no sum has more than two noises.
    """
    for rounds, digits in ((6, 2), (7, 3), (8, 3)):
        made = replace(plan(rounds), oracle=VarianceReduced(10**9, 10**9, 1.0))
        found = bounds.gradient_moment(made, 1, lipschitz=1e-6, constants="sharp")
        assert found == pytest.approx(digits, rel=1e-3)


# --- printed ---


def test_corollary_4_4():
    sigma = printed.corollary_4_4_sigma(10, 3, 5, rho=0.7, lipschitz=2.0)
    assert sigma == pytest.approx(math.sqrt(2 * math.log(10)) * 4 * 5 * 2 / (3 * 10 * 0.7))


@pytest.mark.parametrize("rounds", [2, 3, 4, 5, 8, 64, 1000])
def test_the_printed_noise_covers_the_output(rounds):
    sigma = printed.corollary_4_4_sigma(rounds, 1, 1, rho=0.7, lipschitz=2.0)
    made = replace(plan(rounds, math.ceil(rounds / 2), 1, sigma), first_step_is_zero=False)
    assert accounts.output_gdp(made, 1, 2.0) <= 0.7
    covered = accounts.transcript_gdp(made, 1, 2.0) <= 0.7
    assert covered == (rounds not in {2, 4})


def test_theorem_4_9():
    M, d = 10**6, 5
    made = printed.theorem_4_9(M, d, **PROBLEM)
    unit = 2.0 * 0.5 * M / (3 + 2 * 0.5)
    T = min((math.sqrt(d) * unit) ** (2 / 3), math.sqrt(d**1.5 * unit / 0.7))
    assert made.rounds == math.floor(T)
    assert made.epochs == M // (2 * made.rounds)
    assert made.oracle.first_batch == made.rounds + 1
    assert made.oracle.batch == 1
    assert made.domain == 0.5 / made.rounds
    assert made.n_points == made.epochs * 2 * made.rounds <= M
    assert made.oracle.sigma == printed.corollary_4_4_sigma(
        made.rounds, 1, d, rho=0.7, lipschitz=2.0
    )


def test_appendix_e():
    M, d = 10**6, 5
    made = printed.appendix_e(M, d, **PROBLEM)
    unit = 2.0 * 0.5 * M / (3 + 2 * 0.5)
    T = min((math.sqrt(d) * unit) ** (2 / 3), (d**1.5 * unit / 0.7) ** (2 / 3))
    assert made.rounds == math.floor(T)
    assert made.oracle == Naive(1, d * 2.0 / 0.7)
    assert accounts.output_gdp(made, d, 2.0) == pytest.approx(1.4)  # twice the required value


# --- bounds ---


def test_the_bound_is_the_sum_of_its_lines():
    """Compare each term of the bound with its printed line.

    The test uses the printed constants and the eta that the moment bound requires.
    """
    T, d, L, delta, gap, sigma = 16, 3, 2.0, 0.5, 3.0, 0.3
    made = Plan(T, 7, delta, delta / T, 1.0, VarianceReduced(T + 1, 1, sigma))
    made = printed.with_learning_step(made, d, lipschitz=L, constants="printed")
    error = 16 * d * L**2 / (T + 1) + 64 * d * L**2 * (T - 1) / T**2
    noise = 4 * d * sigma**2  # no time up to 16 has more than 4 digits 1
    moment = 3 * error + 3 * L**2 + 3 * noise
    found = bounds.stationarity_bound(made, d, lipschitz=L, gap=gap, constants="printed")
    assert found.optimality == pytest.approx((gap + 2 * L * delta) / (delta / T * 7 * T))
    assert found.regret == pytest.approx(math.sqrt(moment / T))
    assert found.error == pytest.approx(2 * math.sqrt(error))
    assert found.noise == pytest.approx(2 * math.sqrt(noise))
    sharp = bounds.stationarity_bound(
        printed.with_learning_step(made, d, lipschitz=L, constants="sharp"),
        d, lipschitz=L, gap=gap,
    )  # fmt: skip
    assert sharp.total < found.total
    worse = replace(made, step=2 * made.step)
    assert bounds.stationarity_bound(
        worse, d, lipschitz=L, gap=gap, constants="printed"
    ).regret == pytest.approx(1.25 * found.regret)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_sharp_errors_are_what_linear_losses_and_kinks_attain(d):
    """Compare the sharp errors with the constants that linear losses and kinks attain.

    The test uses Lemma 3.1 with Poincare's constant, Lemma 3.2 with the Hessian's constant, and 7/6
    D^2 per move.
    """
    T, L, delta = 4, 2.0, 0.5
    made = Plan(T, 1, delta, delta / T, 1.0, VarianceReduced(3, 2, 0.0))
    found = bounds.squared_error(made, d, lipschitz=L)
    poincare = d / (d - 1) if d > 1 else 1.0
    hessian = {1: 1.0, 2: 4 / math.pi, 5: 15 / 8}[d]
    grad = (poincare + 1 - 1 / d) * L**2 / 3
    diff = (d + (1 - 1 / d) * hessian**2) * L**2 / 2 * (T - 1) * 7 / 6 / T**2
    assert found == pytest.approx(grad + diff)
    assert bounds.squared_error(made, d, lipschitz=L, constants="printed") == pytest.approx(
        16 * d * L**2 / 3 + 16 * d * L**2 / 2 * (T - 1) * 4 / T**2
    )
    moment = bounds.gradient_moment(made, d, lipschitz=L)
    assert moment == pytest.approx((math.sqrt(found) + L) ** 2)
    bound = bounds.stationarity_bound(made, d, lipschitz=L, gap=1.0)
    assert bound.optimality == pytest.approx((1 + L * delta * d / (d + 1)) / delta)


def test_the_naive_bound():
    T, d, L, delta, gap = 16, 3, 2.0, 0.5, 3.0
    made = Plan(T, 7, delta, delta / T, 1.0, Naive(4, 0.3))
    made = printed.with_learning_step(made, d, lipschitz=L, constants="sharp")
    error, noise = d * d / (d - 1) * L**2 / 4, d * 0.3**2
    found = bounds.stationarity_bound(made, d, lipschitz=L, gap=gap)
    assert found.regret == pytest.approx(math.sqrt((error + L**2 + noise) / T))
    assert found.error == pytest.approx(math.sqrt(error / T))
    assert found.noise == pytest.approx(math.sqrt(noise / T))


@pytest.mark.parametrize("d", [1, 5])
def test_rounds_are_the_best_ones(d):
    given = {"radius": 0.5, "rho": 2.0, "lipschitz": 1.0, "gap": 1.0}
    best = scaled.variance_reduced(40_000, d, **given)
    total = bounds.stationarity_bound(best, d, lipschitz=1.0, gap=1.0).total
    for rounds in (2, 10, 100, 1000, 10_000, best.rounds - 1, best.rounds + 1):
        other = scaled.variance_reduced(40_000, d, rounds=rounds, **given)
        assert total <= bounds.stationarity_bound(other, d, lipschitz=1.0, gap=1.0).total * 1.03
    assert accounts.output_gdp(best, d, 1.0) == pytest.approx(2.0)
    naive = scaled.naive(40_000, d, **given)
    total = bounds.stationarity_bound(naive, d, lipschitz=1.0, gap=1.0).total
    for batch in (1, 3, 30, 300):
        other = scaled.naive(40_000, d, batch=batch, **given)
        assert total <= bounds.stationarity_bound(other, d, lipschitz=1.0, gap=1.0).total * 1.03
    assert naive.n_points <= 40_000
    assert accounts.output_gdp(naive, d, 1.0) == pytest.approx(2.0)


@pytest.mark.parametrize("constants", ["sharp", "printed"])
def test_below_the_threshold_the_bound_says_nothing(constants):
    given = {"radius": 1.0, "rho": 1.0, "lipschitz": 1.0, "gap": 1.0}
    M = scaled.vacuity_threshold(5, constants=constants, **given)
    if constants == "sharp":
        above = scaled.variance_reduced(int(1.05 * M), 5, **given)
        assert bounds.stationarity_bound(above, 5, lipschitz=1.0, gap=1.0).total < 1
        below = scaled.variance_reduced(int(0.9 * M), 5, **given)
        assert bounds.stationarity_bound(below, 5, lipschitz=1.0, gap=1.0).total > 1
    else:
        assert scaled.vacuity_threshold(5, **given) < M


# --- refusals ---


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: replace(plan(2), rounds=0), "rounds must be at least 1, got 0"),
        (lambda: replace(plan(2), epochs=0), "epochs must be at least 1"),
        (lambda: replace(plan(2), radius=0.0), "radius must be positive"),
        (lambda: replace(plan(2), domain=math.nan), "domain must be finite"),
        (lambda: replace(plan(2), step=-1.0), "step must be positive"),
        (lambda: replace(plan(2), oracle="tree"), "oracle must be a VarianceReduced or a Naive"),
        (lambda: replace(plan(2), dimension=0), "dimension must be at least 1"),
        (lambda: VarianceReduced(0, 1, 1.0), "first_batch must be at least 1"),
        (lambda: VarianceReduced(1, 1.5, 1.0), "batch must be an integer"),
        (lambda: Naive(1, -1.0), "sigma must be at least 0"),
        (
            lambda: scaled.naive(100, 5, batch=1000, **PROBLEM),
            "batch must be at most 100, the number of items",
        ),
        (
            lambda: scaled.variance_reduced(100, 5, rounds=60, **PROBLEM),
            "rounds must be at most 50, the number of items",
        ),
        (
            lambda: scaled.variance_reduced(100, 5, rounds=6, **(PROBLEM | {"gap": math.nan})),
            "gap must be finite",
        ),
        (
            lambda: scaled.vacuity_threshold(5, constants="printed", **(PROBLEM | {"rho": 0.0})),
            "rho must be positive",
        ),
        (
            lambda: scaled.vacuity_threshold(1000, **(PROBLEM | {"rho": 1e-7})),
            "rho must be larger",
        ),
        (
            lambda: bounds.squared_error(plan(2), 2, lipschitz=1.0, constants="Printed"),
            "constants must be one of printed, sharp, got 'Printed'",
        ),
        (
            lambda: accounts.output_gdp(replace(plan(2), lipschitz=1.0), 2, 3.0),
            "lipschitz must be at most 1.0, the value in the plan, got 3.0",
        ),
        (lambda: accounts.output_gdp(plan(1), 2, math.nan), "lipschitz must be finite"),
        (lambda: plan(2).evaluations(0), "dimension must be at least 1, got 0"),
        (
            lambda: printed.corollary_4_4_sigma(1, 1, 1, rho=1.0, lipschitz=1.0),
            "rounds must be at least 2, got 1",
        ),
        (lambda: printed.theorem_4_9(3, 5, **PROBLEM), "n_points must be larger"),
        (lambda: printed.theorem_4_9(0, 5, **PROBLEM), "n_points must be at least 1"),
        (lambda: printed.theorem_4_9(9999, 0, **PROBLEM), "dimension must be at least 1, got 0"),
        (
            lambda: printed.theorem_4_9(9999, 5, **(PROBLEM | {"radius": 0.0})),
            "radius must be positive",
        ),
        (
            lambda: printed.appendix_e(9999, 5, **(PROBLEM | {"rho": math.inf})),
            "rho must be finite",
        ),
        (lambda: scaled.variance_reduced(3, 5, **PROBLEM), "n_points must be at least 4"),
        (lambda: scaled.naive(1, 5, **PROBLEM), "n_points must be at least 2"),
        (
            lambda: scaled.calibrated(plan(2), 1, rho=1.0, lipschitz=1.0, covers="all"),
            "covers must be one of output, transcript, got 'all'",
        ),
        (
            lambda: bounds.stationarity_bound(
                replace(plan(4), domain=1.0), 2, lipschitz=1.0, gap=1.0
            ),
            "domain \\* rounds must be at most radius",
        ),
        (
            lambda: bounds.stationarity_bound(plan(4), 2, lipschitz=1.0, gap=1.0, constants="best"),
            "constants must be one of printed, sharp",
        ),
        (
            lambda: bounds.stationarity_bound(plan(4), 2, lipschitz=1.0, gap=-1.0),
            "gap must be at least 0",
        ),
    ],
)
def test_bad_input(call, said):
    with pytest.raises((ValueError, TypeError), match=said):
        call()
