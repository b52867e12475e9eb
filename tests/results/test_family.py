"""Tests of the refutations of a run, which are judged together by Holm's step-down procedure."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit import AdditiveNoise, ApproxDP, NeighborPair, PureDP, audit
from dpaudit.engine.certificate import Tally
from dpaudit.results import holm
from dpaudit.results.family import step_down

ONE = NeighborPair([[0.0]], [[1.0]])


def laplace(data, size, *, rng, scale=1.0):
    return data.sum() + rng.laplace(scale=scale, size=size)


@functools.cache
def result(scale, *, sequential=False):
    noisy = functools.partial(laplace, scale=scale)
    return audit(
        noisy,
        PureDP(1.0),
        ONE,
        draws=3000,
        seed=1,
        method="sequential" if sequential else "fixed",
        id=f"{scale}",
        mutants=None,
    )


def test_without_a_refutation_there_is_nothing_to_adjust():
    assert holm([]) == {}
    assert holm([result(1.0)]) == {}
    assert result(1.0).p_value == 1.0


def test_by_hand():
    """Compare adjusted p-values with values computed by hand.

    The smallest p-value is multiplied by m, and the next p-value by m - 1. Adjusted p-values never
    decrease.
    """
    results = [result(scale) for scale in (0.3, 0.7, 1.0)]
    p = [r.p_value for r in results]
    assert p[0] < p[1] < p[2] == 1.0
    union = sum(r.failure_prob for r in results)
    adjusted = holm(results)
    stepped = {"0.3": 3 * p[0], "0.7": max(3 * p[0], 2 * p[1])}
    assert adjusted == pytest.approx({name: min(q, union) for name, q in stepped.items()})


@pytest.mark.parametrize("sequential", [False, True])
def test_a_refuted_claim_has_a_p_value_within_its_failure_probability(sequential):
    found = result(0.4, sequential=sequential)
    assert found.verdict == "refuted"
    assert 0 < found.p_value <= found.failure_prob


def test_the_event_refutes_at_its_p_value_and_hardly_below():
    found = result(0.7)
    assert found.event is not None
    tally = Tally(found.event, found.witness.counts, found.witness.right)

    def falls(failure_prob):
        return tally.bounds(failure_prob).lower_epsilon(0.0) > 1.0

    assert falls(found.p_value)  # the share is at most 0.9, so this is certain
    assert not falls(math.exp(1.3 * math.log(found.p_value)))


def test_what_is_computed_has_no_p_value_to_speak_of():
    noise = AdditiveNoise(lambda data: data.sum(axis=0), "laplace", 0.5)
    assert audit(noise, PureDP(1.0), ONE, seed=1, mutants=None).p_value == 0.0


def test_bets_on_probabilities_have_one_too():
    def centres(data, size, *, rng):
        return (rng.random(size) < 0.5) * data.sum()

    noise = AdditiveNoise(centres, "gaussian", 0.5, ball=([0.5], 0.6))
    found = audit(noise, ApproxDP(1.0, 1e-5), ONE, draws=5000, seed=1, mutants=None)
    assert found.verdict == "refuted"
    assert found.p_value <= found.failure_prob


def test_order_does_not_matter():
    results = [result(scale) for scale in (0.3, 0.7, 1.0)]
    every = [holm(list(order)) for order in itertools.permutations(results)]
    assert all(adjusted == every[0] for adjusted in every)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_p_values_are_adjusted_by_closed_testing(p_values: list[float]) -> None:
    """Check that p-values are adjusted by closed testing.

    Holm rejects a hypothesis if Bonferroni rejects each intersection that contains the hypothesis.
    """
    members = range(len(p_values))
    intersections = [
        chosen for size in members for chosen in itertools.combinations(members, size + 1)
    ]
    expected = [
        min(max(len(c) * min(p_values[k] for k in c) for c in intersections if i in c), 1.0)
        for i in members
    ]
    np.testing.assert_allclose(step_down(p_values), expected, rtol=1e-12, atol=0)
