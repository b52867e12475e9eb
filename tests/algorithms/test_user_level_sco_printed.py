"""The parameters that the theorems print, tested against their formulas."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import pytest

from algorithms.user_level_sco import printed, scaled
from algorithms.user_level_sco.plans import PlanWarning

idle = pytest.mark.filterwarnings("ignore:The filter of this plan cannot act:UserWarning")


def test_the_least_number_of_users_of_section_3():
    for m, epsilon in ((1, 1.0), (10, 0.1), (100, 0.5)):
        n = printed.euclidean_least_users(m, epsilon, 1e-6)

        def needed(n, m=m, epsilon=epsilon):
            return 300 * math.log(m * n / 1e-6) ** 3 / epsilon**1.5

        assert n >= needed(n)
        assert n - 1 < needed(n - 1)


@idle
def test_printed_parameters_are_the_formulas():
    n, m, d, delta = 12_000_000, 10, 4, 1e-6
    plan = printed.euclidean(
        n, m, d, epsilon=0.9, delta=delta, lipschitz=2.0, radius=3.0, noise_constant=5.0
    )
    size, rest, loud = math.log(n * m * d), math.log(1 / delta), math.log(m * n / delta)
    batch = math.ceil(300 * loud**2 / 0.9**1.5)
    assert plan.batch_size == batch
    eta = 3 / 2 * batch * math.sqrt(m) * min(1 / math.sqrt(n), 0.9 / math.sqrt(d * rest * size))
    for s, phase in enumerate(plan.phases, 1):
        assert phase.step == pytest.approx(eta / math.log(m) ** s)
        assert phase.n_steps == n // 2**s // batch
        assert phase.sigma == pytest.approx(
            5 * phase.step * 2 * math.sqrt(rest * size) / (batch * math.sqrt(m) * 0.9)
        )
    assert plan.rule.temperature == pytest.approx(math.sqrt(m) / (20 * 2 * size))
    assert plan.rule.threshold == 0.75 * batch
    assert plan.rule.cutoff == pytest.approx(10 * loud / 0.9)
    assert plan.rule.cutoff_scale == pytest.approx(4 / 0.9)
    assert plan.rule.scale == pytest.approx(2 * 4 * math.sqrt(32 * plan.rule.cutoff * rest) / 0.9)
    assert plan.rule.scale_follows_cutoff


def test_printed_parameters_of_the_other_version_are_the_formulas():
    n, m, d, delta = 200_000, 20, 3, 1e-5
    plan = printed.coordinatewise(n, m, d, epsilon=2.0, delta=delta, lipschitz=2.0, radius=3.0)
    size, rest = math.log(n * m * d), math.log(1 / delta)
    batch = math.ceil(100 * math.log(m * n * d / delta) / 2)
    tau = math.sqrt(m) / (2 * size)
    eta = 3 / 2 * min(
        batch * math.sqrt(m / n), math.sqrt(m) * 2 / math.sqrt(d * rest * size)
    )  # fmt: skip
    first = plan.phases[0]
    assert plan.batch_size == batch
    assert first.step == pytest.approx(eta / math.log(m))
    assert first.sigma == pytest.approx(
        first.step * 2 * math.sqrt(d * (2 + rest) * size) / (math.sqrt(m) * 2)
    )
    assert plan.rule.temperature == pytest.approx(tau)
    assert plan.rule.clip == pytest.approx(1 / tau)
    assert plan.rule.epsilon == 1.0
    assert plan.rule.threshold == pytest.approx(
        0.9 * batch + 2 * math.log(first.n_steps / delta) / 2
    )
    other = printed.coordinatewise(
        n, m, d, epsilon=2.0, delta=delta, lipschitz=2.0, radius=3.0, temperature="printed"
    )
    assert other.rule.temperature == pytest.approx(1 / tau)


SIZES = {"epsilon": 1.0, "delta": 1e-6, "lipschitz": 1.0, "radius": 1.0}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: printed.euclidean(10**8, 1, 2, **SIZES), "m must be at least 2, got 1"),
        (lambda: printed.euclidean(10**6, 2, 2, **SIZES), "n_users must be at least 8"),
        (
            lambda: printed.euclidean(10**8, 2, 2, **(SIZES | {"epsilon": 1.5})),
            "epsilon must be at most 1",
        ),
        (
            lambda: printed.euclidean(10**8, 9, 2, **SIZES, smoothness=1.0),
            "smoothness must be at most 2 / eta",
        ),
        (lambda: printed.coordinatewise(10**6, 1, 2, **SIZES), "m must be at least 2"),
        (lambda: printed.coordinatewise(200, 3, 2, **SIZES), "n_users must be at least log"),
        (lambda: printed.coordinatewise(1000, 3, 2, **SIZES), "at least 2 \\* batch_size = "),
        (
            lambda: printed.coordinatewise(10**6, 3, 2, **SIZES, smoothness=100.0),
            "smoothness must be at most 2 / eta",
        ),
        (
            lambda: printed.coordinatewise(10**6, 3, 2, **SIZES, temperature="cold"),
            "temperature must be 'inverse' or 'printed'",
        ),
    ],
)
def test_parameters_are_refused_where_the_theorems_are_not_defined(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@idle
def test_unsafe_returns_steps_that_do_not_contract():
    plan = printed.euclidean(10**8, 9, 2, **SIZES, smoothness=1.0, unsafe=True)
    assert not plan.steps_are_stable


# --- warnings ---


def test_a_filter_that_cannot_act_is_reported():
    """Check the numbers of v2 at n = 12,000,000 and m = 4, by hand."""
    n, m = 12_000_000, 4
    with pytest.warns(PlanWarning, match="The filter of this plan cannot act") as issued:
        plan = printed.euclidean(n, m, 1, **SIZES)
    assert issued[0].filename == __file__
    batch = math.ceil(300 * math.log(m * n / 1e-6) ** 2)
    least = 1 + (batch - 1) * math.exp(-2 * math.sqrt(m) / (20 * math.log(n * m)))
    assert plan.least_score == pytest.approx(least, rel=1e-12)
    assert 0.988 < least / batch < 0.99
    assert plan.warnings == (str(issued[0].message),)
    assert f"at least 0.989 B = {least:.6g}, and the threshold F is 0.75 B" in plan.warnings[0]
    chance = math.exp((0.75 * batch - least) / plan.rule.scale) / 2
    assert f"with probability at most {chance:.2g}." in plan.warnings[0]
    assert issubclass(PlanWarning, UserWarning)


def test_a_plan_warning_can_be_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error", PlanWarning)
        with pytest.raises(PlanWarning, match="cannot act"):
            printed.euclidean(12_000_000, 4, 1, **SIZES)


def test_the_filter_can_act_from_some_m_on():
    """Check both sides of 2 G tau = log(4 / 3), where the least score crosses F."""
    n = 10**10

    def apart(m):
        return 2 * math.sqrt(m) / (20 * math.log(n * m))

    m = next(m for m in range(5000, 20_000) if apart(m) > math.log(4 / 3) + 1e-5)
    plan = printed.euclidean(n, m, 1, **SIZES)
    assert plan.warnings == ()
    assert plan.least_score < plan.rule.threshold
    with pytest.warns(PlanWarning, match="cannot act"):
        printed.euclidean(n, m - 20, 1, **SIZES)


def test_the_smoothness_of_lemma_35_is_reported():
    options = {**SIZES, "statistic": "median"}
    plan = printed.coordinatewise(10**6, 3, 2, **options)
    largest = 1 / (6 * plan.phases[0].step * plan.batch_size)
    allowed = 2 / plan.phases[0].step
    assert allowed / largest == pytest.approx(12 * plan.batch_size)
    assert printed.coordinatewise(10**6, 3, 2, **options, smoothness=0.999 * largest).warnings == ()
    words = f"smoothness should be at most 1 / \\(6 eta B\\) = {largest:.3g} for Lemma 35"
    for smoothness in (1.001 * largest, 0.999 * allowed):
        with pytest.warns(PlanWarning, match=words) as issued:
            plan = printed.coordinatewise(10**6, 3, 2, **options, smoothness=smoothness)
        assert plan.warnings == (str(issued[0].message),)
    unsafe = printed.coordinatewise(10**6, 3, 2, **options, smoothness=1.0, unsafe=True)
    assert unsafe.warnings  # recorded, but not issued


@pytest.mark.slow
def test_warnings_are_no_part_of_the_parameters():
    plan = scaled.scaled_euclidean(10**6, 4, 2, **SIZES)
    assert plan.warnings == ()
    other = replace(plan, warnings=("a message",))
    assert other == plan
    assert "a message" not in repr(other)
