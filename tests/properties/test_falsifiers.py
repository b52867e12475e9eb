"""Tests that the ledger finds typical mistakes of papers, in the benchmark with one seed."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.falsifiers import PLANTED, evolution
from dpaudit.ledger.attempts import EXAMPLES
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array, Domain, falsify


def test_a_sensitivity_that_is_too_small_is_refuted_with_every_seed():
    (planted,) = [one for one in PLANTED if one.name.startswith("mean of means")]
    assert all(evolution(planted, seed, EXAMPLES["quick"]) for seed in range(10))


def test_all_sizes_of_arrays_are_tried():
    sizes, user = Integer(1, 8), Array(Interval(0, 1), ("n", "m"))
    tried = set()

    def sides(user, n, m):
        tried.add((n, m))
        return 0.0, 1.0

    falsify(Domain(user=user, n=sizes, m=sizes), sides, seed=0)
    assert len(tried) == 64


def test_one_number_at_the_other_end_is_tried_also_among_many_parts():
    parts = {f"p{i}": Interval(0, 1) for i in range(6)}
    cube = Domain(x=Array(Interval(0, 1), (10,)), **parts)
    found = falsify(
        cube, lambda x, **_: (float(x.max() == 1 == x.sum()), 0.5), seed=0, examples=100
    )
    assert found.violated


@pytest.mark.parametrize("is_strategy", [False, True])
def test_arrays_of_whole_numbers_are_searched_and_simplified(is_strategy):
    domain = Domain(x=Array(Integer(0, 1), (8,)))
    kinds = set()

    def sides(x):
        kinds.add((x.dtype.kind, *np.unique(x)))
        return int(x[::2].sum() - x[1::2].sum()), 2

    cases = domain.strategy() if is_strategy else domain
    found = falsify(cases, sides, seed=0)
    assert found.violated
    assert kinds <= {("i", 0), ("i", 1), ("i", 0, 1)}
    assert found.counterexample is not None
    bits = found.counterexample.case["x"]
    # No bit is superfluous. Cases of a strategy are simplified by Hypothesis, as far as it can.
    assert sum(bits) == 3 or (is_strategy and sum(bits[::2]) - sum(bits[1::2]) > 2)
    whole = Domain(x=Array(Integer(0, 1), (2,)))
    assert {"x": np.array([0, 1])} in whole
    assert {"x": np.array([0.0, 1.0])} not in whole
    assert {"x": np.array([0, 2])} not in whole


def test_entries_are_numbers_of_one_range():
    with pytest.raises(TypeError, match="an Interval or an Integer, such as Integer"):
        Array(Choice((0, 1)), (2,))


def test_few_examples_and_many_sizes_cost_few_calls():
    calls = []
    sizes, user = Integer(1, 8), Array(Interval(0, 1), ("n", "m"))
    cube = Domain(user=user, n=sizes, m=sizes)
    falsify(
        cube, lambda user, n, m: (calls.append(n) or 0.0, 1.0), seed=0, examples=20, mutant=None
    )
    assert len(calls) <= 40  # some cases are judged twice, because sides must not change


def test_at_least_23_of_24_planted_mistakes_are_found_within_the_quick_budget():
    assert len(PLANTED) == 24
    found = [planted.name for planted in PLANTED if evolution(planted, 0, EXAMPLES["quick"])]
    assert len(found) >= 23
