"""Audits of compositions: verdicts, mutants, claims and searches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit import (
    AdditiveNoise,
    ApproxDP,
    Composition,
    GaussianDP,
    NeighborPair,
    PureDP,
    Relation,
    RenyiDP,
    Verdict,
    ZeroConcentratedDP,
    audit,
)
from dpaudit.claims import Claim

ADD = Relation.ADD_REMOVE_USER
USERS = np.array([[1.0], [0.0]])
PAIR = NeighborPair(USERS, USERS[1:], relation=ADD)


def clipped_sum(data: Any) -> float:
    return float(np.clip(data, -1, 1).sum())


def steps(kind: str = "gaussian", scale: float = 4.0, times: int = 16, **options: Any) -> Any:
    return Composition(AdditiveNoise(clipped_sum, kind, scale=scale), times, **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "true", "false"),
    [
        (steps(), GaussianDP(1.001, ADD), GaussianDP(0.98, ADD)),
        (steps(), ZeroConcentratedDP(0.501, ADD), ZeroConcentratedDP(0.4, ADD)),
        (steps(), RenyiDP(4.0, 2.001, ADD), RenyiDP(4.0, 1.0, ADD)),
        (steps(), ApproxDP(4.38, 1e-5, ADD), ApproxDP(4.37, 1e-5, ADD)),
        (steps("laplace"), PureDP(4.0, ADD), PureDP(3.99, ADD)),
    ],
)
def test_true_claims_stand_and_false_claims_fall(mechanism: Any, true: Claim, false: Claim) -> None:
    stands = audit(mechanism, true, PAIR)
    assert stands.verdict is Verdict.NOT_REFUTED
    assert {mutant.name: mutant.killed for mutant in stands.mutants} == {
        "the noise of each step halved": True,
        "the number of steps doubled": True,
    }
    falls = audit(mechanism, false, PAIR)
    assert falls.verdict is Verdict.REFUTED
    assert falls.failure_prob == 0 or falls.epsilon.failure_prob == 0


@pytest.mark.slow
def test_a_wrong_sampling_rate_is_a_mutant() -> None:
    result = audit(steps(times=100, scale=1.0, q=0.01), ApproxDP(0.75, 1e-5, ADD), PAIR)
    assert result.verdict is Verdict.NOT_REFUTED
    assert {mutant.name for mutant in result.mutants if mutant.killed} == {
        "the subsampling removed",
        "the subsampling of twice as many rows",
        "the noise of each step halved",
        "the number of steps doubled",
    }


@pytest.mark.slow
def test_without_a_killed_mutant_there_is_no_power() -> None:
    assert audit(steps(), ApproxDP(50.0, 1e-5, ADD), PAIR).verdict is Verdict.NO_POWER
    assert audit(steps(), ApproxDP(4.38, 1e-5, ADD), PAIR, mutants=None).verdict is Verdict.NO_POWER


@pytest.mark.slow
def test_given_mutants_are_audited_and_other_kinds_are_refused() -> None:
    claim = ApproxDP(4.38, 1e-5, ADD)
    result = audit(steps(), claim, PAIR, mutants=[steps(times=17)])
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.mutants[0].killed
    with pytest.raises(TypeError, match="^mutants must hold mechanisms of the same kind as"):
        audit(steps(), claim, PAIR, mutants=[AdditiveNoise(clipped_sum, scale=1.0)])
    with pytest.raises(TypeError, match="^mechanism must draw its outputs for"):
        audit(steps(), claim, PAIR, method="sequential")
    with pytest.raises(TypeError, match="^mechanism must draw its outputs if score"):
        audit(steps(), claim, PAIR, score=lambda outputs: outputs)


@pytest.mark.slow
def test_the_default_pairs_are_searched() -> None:
    mechanism = steps("laplace", 1.0, 2)
    result = audit(mechanism, PureDP(1.0, ADD))
    assert result.verdict is Verdict.REFUTED
    assert result.certified_epsilon == pytest.approx(2.0, rel=1e-6)


def test_equal_sides_are_not_refuted() -> None:
    pair = NeighborPair(np.array([[0.0]]), np.array([[0.0]])[:0], relation=ADD)
    result = audit(steps(), PureDP(0.0, ADD), pair)
    assert result.verdict is Verdict.NO_POWER


@pytest.mark.slow
def test_without_a_pair_small_datasets_are_searched() -> None:
    """The datasets include one without rows, which has one subsample."""
    training = Composition(AdditiveNoise(clipped_sum, "gaussian", scale=1.0), 3, q=0.1)
    claim = ApproxDP(0.3, 1e-5, Relation.ADD_REMOVE_USER)
    result = audit(training, claim, mutants=None)
    assert result.verdict.words == "REFUTED"
    assert training.pairs(np.zeros((0, 1)), np.ones((1, 1)))
