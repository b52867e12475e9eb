"""Tests that the ledger finds typical mistakes of papers, in the benchmark with one seed."""

from __future__ import annotations

from benchmarks.falsifiers import PLANTED, evolution
from dpaudit.ledger.attempts import EXAMPLES
from dpaudit.neighbors import Integer, Interval
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
