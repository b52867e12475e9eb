"""Tests that compare all kinds of audit.

The tests check refusals, and that verdicts agree with the numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit import (
    AdditiveNoise,
    ApproxDP,
    ApproxZCDP,
    ArgumentError,
    FloatAttack,
    GaussianDP,
    NeighborPair,
    PureDP,
    RenyiDP,
    Verdict,
    ZeroConcentratedDP,
    audit,
)
from dpaudit import neighbors as nb
from dpaudit.engine.task import Task

Array = NDArray[Any]
ONE = NeighborPair([[1.0]], [[0.0]])


def total(data: Array) -> Array:
    return np.asarray(data.sum(axis=0))


def drawn_total(data: Array, size: int, *, rng: np.random.Generator) -> Array:
    return data.sum() + rng.uniform(-0.1, 0.1, size=size)


def noisy(data: Array, size: int, *, rng: np.random.Generator) -> Array:
    return data.sum() + rng.laplace(size=size)


class Flip:
    def pmf(self, data: Array) -> Array:
        return np.array([0.75, 0.25] if data.sum() > 0 else [0.25, 0.75])


# --- a computed result decides about a computed claim ---


@pytest.mark.parametrize("mu", [1e-3, 1.0, 20.0, 38.0, 100.0])
def test_exact_curves_stay_below_the_truth_however_private(mu: float) -> None:
    result = audit(
        AdditiveNoise(total, scale=1 / mu), ApproxDP(1.0, 1e-6), ONE, seed=1, mutants=None
    )
    if result.diagnostics.curves is None:
        assert mu == 1e-3
        return
    assert result.diagnostics.curves.certified_mu <= mu * (1 + 1e-9)
    for order, renyi in zip(
        result.diagnostics.curves.order, result.diagnostics.curves.certified_renyi, strict=True
    ):
        assert renyi <= order * mu**2 / 2 * (1 + 1e-9)
    if mu == 1.0:
        assert result.diagnostics.curves.certified_mu == pytest.approx(mu, rel=1e-6)


@pytest.mark.parametrize("epsilon", [1.0, 10.0, 20.0])
def test_a_gaussian_keeps_no_pure_claim(epsilon: float) -> None:
    result = audit(AdditiveNoise(total, scale=1.0), PureDP(epsilon), ONE, seed=1, mutants=None)
    assert result.verdict is Verdict.REFUTED
    assert result.certified_epsilon == math.inf


@pytest.mark.parametrize("mu", [1e-4, 0.01, 1.0, 6.0, 20.0])
@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_a_gaussian_claim_is_kept_exactly(mu: float, factor: float) -> None:
    result = audit(
        AdditiveNoise(total, scale=1 / mu), GaussianDP(factor * mu), ONE, seed=1, mutants=None
    )
    assert (result.verdict is Verdict.REFUTED) == (factor < 1)
    assert result.claimed_epsilon > 0 or factor < 1 or mu < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("claim", [ZeroConcentratedDP(0.5), RenyiDP([2.0], [1.0])], ids=str)
def test_an_exact_profile_is_compared_away_from_epsilon_zero(claim: Any) -> None:
    result = audit(AdditiveNoise(total, scale=1.0), claim, ONE, seed=1, mutants=None)
    assert result.verdict is Verdict.NO_POWER
    assert result.claimed_epsilon > 0


def test_a_far_user_is_not_too_far_for_laplace_noise() -> None:
    far = NeighborPair([[1e6]], [[0.0]])
    result = audit(
        AdditiveNoise(total, "laplace", scale=1.0), PureDP(1.0), far, seed=1, mutants=None
    )
    assert result.verdict is Verdict.REFUTED
    assert 100 < result.certified_epsilon <= 1e6
    assert "computed exactly" not in str(result)


# --- one kind compared with another ---


@pytest.mark.parametrize(
    ("mechanism", "mutant"),
    [
        (noisy, AdditiveNoise(total, scale=0.1)),
        (AdditiveNoise(drawn_total, scale=1.0), AdditiveNoise(total, scale=0.1)),
        (Flip(), AdditiveNoise(total, scale=0.1)),
        (AdditiveNoise(total, scale=1.0), noisy),
    ],
)
def test_a_mutant_of_another_kind_shows_no_power(mechanism: Any, mutant: Any) -> None:
    with pytest.raises(TypeError, match="^mutants must hold mechanisms of"):
        audit(mechanism, PureDP(1.0), ONE, seed=1, draws=1000, mutants=[mutant])


@pytest.mark.parametrize("option", [{"method": "sequential"}, {"float_attack": True}], ids=str)
@pytest.mark.parametrize(
    "mechanism", [Flip(), AdditiveNoise(total, scale=1.0)], ids=["pmf", "exact"]
)
def test_options_that_would_do_nothing_are_refused(option: dict[str, Any], mechanism: Any) -> None:
    with pytest.raises(TypeError, match="mechanism must draw its outputs for"):
        audit(mechanism, PureDP(1.0), ONE, seed=1, **option)


@pytest.mark.parametrize("value", [1, "yes", [True]])
def test_a_float_attack_is_a_flag_or_a_float_attack(value: Any) -> None:
    with pytest.raises(TypeError, match="^float_attack must be True or False or a FloatAttack"):
        audit(noisy, PureDP(1.0), ONE, seed=1, float_attack=value)


def test_a_mechanism_of_additive_noise_may_be_searched() -> None:
    def clipped(data: Array) -> Array:
        return np.asarray(np.clip(data, 0, 0.5).mean(axis=(0, 1)))

    mechanism = AdditiveNoise(clipped, scale=0.05)
    result = audit(
        mechanism,
        ApproxDP(1.0, 1e-9),
        nb.outlier(n_users=5),
        seed=1,
        draws=20_000,
        mutants=None,
    )
    assert result.diagnostics.search is not None
    assert result.verdict is Verdict.REFUTED
    assert result.epsilon.method.startswith("computed")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"scales": (0.0,)}, ArgumentError),
        ({"scales": (math.nan,)}, ArgumentError),
        ({"references": (math.inf,)}, ArgumentError),
        ({"references": tuple(range(1000))}, ArgumentError),
        ({"references": 5}, TypeError),
        ({"references": "ab"}, TypeError),
        ({"references": (None,)}, TypeError),
    ],
)
def test_guesses_of_a_float_attack_are_checked(arguments: Any, error: Any) -> None:
    with pytest.raises(error, match=next(iter(arguments))):
        FloatAttack(**arguments)


@pytest.mark.parametrize("words", ["high=a|", "high=a|b..c", "high=log:1|2"])
def test_odd_words_of_a_search_are_refused(words: str) -> None:
    with pytest.raises(ArgumentError, match="high must be words or numbers separated by"):
        nb.pairs_from_words(f"far_user:n_users=5,{words}", rng=np.random.default_rng(0))


# --- sequential, after a search ---


def test_a_sequential_audit_takes_small_steps_after_a_long_search() -> None:
    def sensitive(data: Array, size: int, *, rng: np.random.Generator) -> Array:
        return data.sum() + rng.laplace(scale=0.2, size=size)

    space = nb.outlier(n_users=5)
    result = audit(
        sensitive, PureDP(1.0), space, seed=1, draws=50_000, method="sequential", mutants=None
    )
    assert result.verdict is Verdict.REFUTED
    assert result.draws["certify"] < 3000


def test_a_buffer_that_is_used_again_does_no_harm() -> None:
    buffer = np.zeros(10**6)

    def reuses(data: Array, size: int, *, rng: np.random.Generator) -> Array:
        buffer[:size] = data.sum() + rng.laplace(size=size)
        return buffer[:size]

    pair = nb.value_pattern("one_above", 1)
    result = audit(reuses, PureDP(1.0), pair, seed=1, draws=5000, mutants=None)
    assert 0.5 < result.certified_epsilon < 1.0


# --- curves that stay above a delta -------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("delta", [1e-6, 1e-7, 1e-5, 1e-2])
def test_a_curve_with_a_limit_is_tested_where_it_falls(delta: float) -> None:
    """Check that a claimed curve with a limit is tested where the curve falls.

    In the past, the grid ended at epsilon = 600 if the curve never fell below 1e-6. A grid that
    ends at epsilon = 600 misses the leak.
    """

    def leaks(data, size, *, rng):
        shown = rng.random(size) < 0.05
        return np.where(shown, 100.0 * data.sum(), 0.0) + rng.standard_normal(size)

    pair = NeighborPair([[0.0], [1.0]], [[0.0], [0.0]])
    claim = ApproxZCDP(0.5, delta)
    task = Task(claim, nb.family(pair), 1000, 1e-6, 0, "leaks")
    assert task.grid[-1] < 10
    found = audit(leaks, claim, pair, draws=20_000, seed=1)
    assert found.verdict is Verdict.REFUTED
