"""Tests that certified numbers are wrong at most as often as promised.

Wrong numbers are counted over whole audits. The mechanisms are tight, so only the bounds themselves
separate the certified number from the truth. A mutant of the engine certifies on the draws on which
it chose its events. The mutant must fail the same test.

Each test counts the audits that certify something untrue. `CRITICAL` is the limit of this count. An
engine that keeps its failure_prob exceeds the limit with probability at most 1e-6. An engine that
lies in 30% of its audits fails the test with probability 0.999. An engine that lies in 60% of its
audits fails the test with probability 1 - 1e-11. The mutant lies in 85% of its audits.

Audits are small, for two reasons. The bounds are exact at every number of draws, and overfitting is
easier on a small number of draws. `benchmarks/soundness.py` makes the same count over 2,000 larger
audits of every kind.
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

from dpaudit import ApproxDP, NeighborPair, PureDP, within_sensitivity
from dpaudit.claims.notions import Claim
from dpaudit.engine import counts
from dpaudit.engine.driver import certificate_of
from dpaudit.engine.task import Task
from dpaudit.mechanisms.sampler import Sampler
from dpaudit.neighbors import family
from dpaudit.stats import oracles
from dpaudit.stats.oracles._core import Oracle
from tests.statistical import FALSE_ALARM

pytestmark = pytest.mark.statistical

Array = NDArray[Any]
Generator = np.random.Generator

FAILURE_PROB = 0.05
DRAWS = 300
AUDITS = 120
CRITICAL = 21  # limit of wrong audits among 120; at most 6 are expected


def laplace(values: Array, size: int, *, rng: Generator) -> Array:
    return values[0] + rng.laplace(size=size)


def randomized_response(values: Array, size: int, *, rng: Generator) -> Array:
    return rng.random(size) < 1 / (1 + math.exp(1 - 2 * values[0]))


def gaussian(values: Array, size: int, *, rng: Generator) -> Array:
    return values[0] + rng.normal(size=size)


def histogram(values: Array, size: int, *, rng: Generator) -> Array:
    return values + rng.laplace(scale=2.0, size=(size, 3))


def crowd(values: Array, size: int, *, rng: Generator) -> Array:
    """Return pure noise, in which some event looks significant by chance."""
    return rng.normal(size=(size, 12))


@dataclass(frozen=True)
class Case:
    """A mechanism on its worst pair, with a claim that it satisfies and the exact truth.

    If `oracle` is None, all true values are 0.
    """

    mechanism: Callable[..., Array]
    left: list[float]
    right: list[float]
    oracle: Oracle | None
    claim: Claim
    draws: int = DRAWS

    def lies(self, audits: int) -> int:
        """Return the number of audits, among the given number, that certify something untrue."""
        pair = NeighborPair(self.left, self.right, relation=within_sensitivity())
        delta = self.claim.point[1] if self.claim.point else 0.0
        truth = 1e-12 + (self.oracle.epsilon(delta) if self.oracle else 0.0)
        wrong = 0
        for seed in range(audits):
            task = Task(self.claim, family(pair), self.draws, FAILURE_PROB, seed, "lies")
            found = certificate_of(task, self.mechanism, "mechanism")
            exact = 1e-12 + (self.oracle.delta(task.grid) if self.oracle else 0.0 * task.grid)
            above = np.array(found.profile.certified_delta) > exact
            wrong += bool(found.epsilon.lower > truth or above.any())
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
    "equal data": Case(crowd, [1.0], [1.0], None, PureDP(1.0)),
}


def test_the_critical_number_has_the_error_rates_that_are_said_of_it() -> None:
    assert binom.sf(CRITICAL - 1, AUDITS, FAILURE_PROB) < FALSE_ALARM
    assert binom.sf(CRITICAL - 2, AUDITS, FAILURE_PROB) >= FALSE_ALARM
    assert binom.sf(CRITICAL - 1, AUDITS, 0.3) > 0.999
    assert binom.cdf(CRITICAL - 1, AUDITS, 0.6) < 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_audits_are_wrong_no_more_often_than_they_say(name: str) -> None:
    assert CASES[name].lies(AUDITS) < CRITICAL


@pytest.mark.slow
def test_audits_with_learnt_models_are_wrong_no_more_often_than_they_say() -> None:
    """Check that audits with learnt models are wrong at most as often as promised.

    Trees and regressions are trained on 200 draws per side. The test fails at 12 wrong audits of
    40.
    """
    models = Case(crowd, [1.0], [1.0], None, PureDP(1.0), draws=1400)
    assert binom.sf(models.lies(40) - 1, 40, FAILURE_PROB) >= FALSE_ALARM


@pytest.mark.slow
def test_an_engine_that_certifies_on_its_exploration_draws_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Check that an engine that certifies on its exploration draws fails the test.

    The engine is wrong in about 85% of the audits of equal data. The engine is therefore almost
    surely wrong in more than 11 of 40 audits.
    """
    fresh = Sampler._chunks

    def reused(
        self: Sampler, data: Array, draws: int, role: str, side: str, step: int, function: Any
    ) -> Any:
        if role != "certify":
            return fresh(self, data, draws, role, side, step, function)
        self.certifies = False  # otherwise the sampler refuses to explore now
        outputs = self.draw(data, draws, "explore", side)
        self.certifies = True
        return iter([function(outputs, 0)])

    monkeypatch.setattr(Sampler, "_chunks", reused)
    monkeypatch.setattr(counts, "EXPLORE_SHARE", 0.5)
    assert binom.sf(CASES["equal data"].lies(40) - 1, 40, FAILURE_PROB) < FALSE_ALARM
