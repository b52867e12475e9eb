"""Certifying calls that cannot be independent are refused; honest ones hardly ever are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import MechanismError, NeighborPair, PureDP, audit
from dpaudit.mechanisms import sampler as mechanisms
from dpaudit.mechanisms.independence import IndependenceCheck
from dpaudit.mechanisms.sampler import CALLS

PAIR = NeighborPair(np.zeros((20, 1)), np.r_[np.zeros((19, 1)), [[1.0]]])


def refused(hits: Any, draws: int) -> bool:
    """Whether the counts of one event, one call each, are refused."""
    check = IndependenceCheck("f")
    for call, fired in enumerate(hits):
        check.add(np.full(draws, float(call)), [int(fired)])  # copies are another matter
    try:
        check.judge()
    except MechanismError:
        return True
    return False


@pytest.mark.statistical
@pytest.mark.parametrize("rate", [0.5, 0.1, 0.003])
@pytest.mark.parametrize("calls", [4, 16, 64])
def test_honest_calls_are_refused_no_more_often_than_said(
    monkeypatch: pytest.MonkeyPatch, calls: int, rate: float
) -> None:
    """At a level of 0.2, where refusals could be counted; false-alarm rate of this test 1e-6."""
    monkeypatch.setattr(mechanisms, "_FALSE_REFUSAL", 0.2)
    counts = np.random.default_rng(1).binomial(200, rate, size=(1000, calls))
    alarms = sum(refused(hits, 200) for hits in counts)
    assert binom.sf(alarms - 1, 1000, 0.2) > 1e-6


def test_overdispersed_calls_are_refused() -> None:
    rng = np.random.default_rng(2)
    rates = rng.beta(2, 2, size=CALLS)
    assert refused(rng.binomial(1000, rates), 1000)
    assert not refused(rng.binomial(1000, 0.5, size=CALLS), 1000)


def test_the_bound_is_the_one_that_is_proved() -> None:
    """2 exp(-t) bounds the tail of n KL(share, rate), by enumeration."""
    for n, rate in ((5, 0.5), (30, 0.1), (60, 0.9), (200, 0.01)):
        k = np.arange(n + 1)
        share = k / n
        with np.errstate(divide="ignore", invalid="ignore"):
            kl = np.where(share > 0, share * np.log(share / rate), 0.0)
            kl += np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - rate)), 0.0)
        for t in np.linspace(0.01, 20, 80):
            assert binom.pmf(k, n, rate)[n * kl >= t].sum() <= 2 * math.exp(-t) * (1 + 1e-12)


def repeated(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    return data.sum() + np.repeat(rng.laplace(size=(size + 9) // 10), 10)[:size]


def sticky(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    fresh = rng.random(size) >= 0.9
    fresh[0] = True
    return data.sum() + rng.laplace(size=size)[np.maximum.accumulate(fresh * np.arange(size))]


def subsampled_once(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    """Subsample the users once for all draws: everybody's first vectorised version."""
    kept = data[:, 0] * (rng.random(len(data)) < 0.5)
    return kept.sum() + rng.laplace(size=size) / 4


@pytest.mark.parametrize("mechanism", [repeated, sticky, subsampled_once])
def test_dependent_draws_are_refused(mechanism: Any) -> None:
    with pytest.raises(MechanismError, match=r"shares its noise.*Draw noise of shape \[size"):
        audit(mechanism, PureDP(1.0), PAIR, draws=100_000, seed=1)


def test_rare_answers_from_a_generator_of_its_own_are_refused_as_copies() -> None:
    def own(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return (np.random.default_rng(0).random(size) < 0.004 * (size > 64)).astype(int)

    with pytest.raises(MechanismError, match=r"ignores rng: all \d+ calls"):
        audit(own, PureDP(1.0), PAIR, draws=100_000, seed=1)
