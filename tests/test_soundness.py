"""Certified numbers are wrong at most as often as they say, counted over whole audits.

The mechanisms are tight: there is no room between what is certified and the truth but the one
that the bounds leave. A mutant of the engine, which certifies on the draws on which it chose
its events, must fail the same test.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

import dpaudit.engine.counts
from dpaudit import ApproxDP, NeighborPair, PureDP, audit, within_sensitivity
from dpaudit.claims.notions import Claim
from dpaudit.mechanisms.sampler import Sampler
from dpaudit.stats import oracles
from dpaudit.stats.oracles._core import Oracle
from tests.statistical import FALSE_ALARM

pytestmark = pytest.mark.statistical

Array = NDArray[Any]
Generator = np.random.Generator

FAILURE_PROB = 0.05
DRAWS = 2000


def laplace(values: Array, size: int, *, rng: Generator) -> Array:
    return values[0] + rng.laplace(size=size)


def randomized_response(values: Array, size: int, *, rng: Generator) -> Array:
    return rng.random(size) < 1 / (1 + math.exp(1 - 2 * values[0]))


def gaussian(values: Array, size: int, *, rng: Generator) -> Array:
    return values[0] + rng.normal(size=size)


def histogram(values: Array, size: int, *, rng: Generator) -> Array:
    return values + rng.laplace(scale=2.0, size=(size, 3))


@dataclass(frozen=True)
class Case:
    """A mechanism on its worst pair, a claim that it only just keeps, and the exact truth."""

    mechanism: Callable[..., Array]
    left: list[float]
    right: list[float]
    oracle: Oracle
    claim: Claim

    def lies(self, audits: int) -> int:
        """How many of so many audits certify anything that is not true."""
        pair = NeighborPair(self.left, self.right, relation=within_sensitivity())
        delta = self.claim.point[1] if self.claim.point else 0.0
        truth = self.oracle.epsilon(delta) + 1e-12
        wrong = 0
        for seed in range(audits):
            result = audit(
                self.mechanism, self.claim, pair, draws=DRAWS, failure_prob=FAILURE_PROB, seed=seed
            )
            exact = self.oracle.delta(result.profile.epsilon) + 1e-12
            above = np.array(result.profile.certified_delta) > exact
            wrong += bool(result.certified_epsilon > truth or above.any())
        return wrong


_GAUSSIAN = oracles.gaussian(1.0, 1.0)
CASES = {
    "laplace": Case(laplace, [1.0], [0.0], oracles.laplace(1.0, 1.0), PureDP(1.0)),
    "randomised response": Case(
        randomized_response, [1.0], [0.0], oracles.randomized_response(1.0), PureDP(1.0)
    ),
    "gaussian": Case(gaussian, [1.0], [0.0], _GAUSSIAN, ApproxDP(_GAUSSIAN.epsilon(0.01), 0.01)),
    "histogram": Case(
        histogram,
        [1.0, 0.0, 0.0],
        [0.0, 1.0, 0.0],
        oracles.laplace_vector([1.0, -1.0, 0.0], 2.0),
        PureDP(1.0),
    ),
}


def _chance_of_so_many(lies: int, audits: int) -> float:
    """Exact probability of at least so many lies from an engine that keeps its failure_prob."""
    return float(binom.sf(lies - 1, audits, FAILURE_PROB))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_audits_are_wrong_no_more_often_than_they_say(name: str) -> None:
    audits = 200
    assert _chance_of_so_many(CASES[name].lies(audits), audits) >= FALSE_ALARM


@pytest.mark.slow
def test_an_engine_that_certifies_on_its_exploration_draws_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fresh = Sampler.chunks

    def reused(self: Sampler, data: Array, draws: int, role: str, side: str) -> Any:
        return fresh(self, data, draws, "explore" if role == "certify" else role, side)

    monkeypatch.setattr(Sampler, "chunks", reused)
    monkeypatch.setattr(dpaudit.engine.counts, "EXPLORE_SHARE", 0.5)
    audits = 150
    assert _chance_of_so_many(CASES["histogram"].lies(audits), audits) < FALSE_ALARM
