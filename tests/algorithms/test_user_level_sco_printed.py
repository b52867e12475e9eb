"""The parameters that the theorems print, tested against their formulas."""

from __future__ import annotations

import math

import pytest

from algorithms.user_level_sco import printed


def test_the_least_number_of_users_of_section_3():
    for m, epsilon in ((1, 1.0), (10, 0.1), (100, 0.5)):
        n = printed.euclidean_least_users(m, epsilon, 1e-6)

        def needed(n, m=m, epsilon=epsilon):
            return 300 * math.log(m * n / 1e-6) ** 3 / epsilon**1.5

        assert n >= needed(n)
        assert n - 1 < needed(n - 1)


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


def test_unsafe_returns_steps_that_do_not_contract():
    plan = printed.euclidean(10**8, 9, 2, **SIZES, smoothness=1.0, unsafe=True)
    assert not plan.steps_are_stable
