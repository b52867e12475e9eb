"""Tests that the search of the ledger refutes false statements and never a true statement."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit import ArgumentError
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties.attempt import Method, Power, plain_case, ratio
from dpaudit.properties.domains import Array, Domain
from dpaudit.properties.falsifying import falsify, sweep

SQUARE = Domain(x=Interval(-2.0, 2.0), y=Interval(-2.0, 2.0))


# --- ratio ---


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_the_ratio_is_above_one_exactly_where_the_claim_fails(lhs, rhs):
    assert (ratio(lhs, rhs) > 1) == (lhs > rhs)


@pytest.mark.parametrize("inequality", [(math.nan, 1.0), (1.0, math.nan)])
def test_nan_breaks_any_claim(inequality):
    assert ratio(*inequality) == math.inf


def test_plain_data_survive_json():
    case = {"a": np.arange(2), "b": np.float64(1.5), "c": (1, None, "x"), "d": math.nan}
    assert plain_case(case) == {"a": [0, 1], "b": 1.5, "c": [1, None, "x"], "d": "nan"}


# --- domains ---


def test_a_box_maps_the_unit_cube_onto_its_parts():
    domain = Domain(
        a=Interval(0.0, 2.0),
        n=Integer(1, 3),
        c=Choice(("p", "q")),
        x=Array(Interval(0, 1), (2,)),
        k=7,
    )
    assert domain.dimension == 5
    case = domain.at(np.array([0.5, 0.0, 1.0, 0.0, 1.0]))
    assert case["x"].tolist() == [0.0, 1.0]
    assert {key: case[key] for key in "anck"} == {"a": 1.0, "n": 1, "c": "q", "k": 7}


@given(
    Domain(
        a=Interval(1e-6, 1.0, log=True), n=Integer(2, 5), x=Array(Interval(-1, 1), (3, 2))
    ).strategy()
)
def test_hypothesis_stays_inside_the_box(case):
    assert 1e-6 <= case["a"] <= 1
    assert 2 <= case["n"] <= 5
    assert case["x"].shape == (3, 2)
    assert np.abs(case["x"]).max() <= 1


def test_a_box_knows_its_own():
    domain = Domain(
        a=Interval(0.0, 1.0),
        n=Integer(1, 3),
        c=Choice((None, "q")),
        x=Array(Interval(0, 1), (2,)),
        k=7,
    )
    inside = {"a": 0.5, "n": 2, "c": None, "x": np.array([0.0, 1.0]), "k": 7}
    assert inside in domain
    outside = {"a": 1.5, "n": 2.0, "c": "z", "x": np.zeros(3), "k": 8}
    for key, value in outside.items():
        assert {**inside, key: value} not in domain
    assert {"a": 0.5} not in domain
    assert 3 not in domain


def test_a_counterexample_is_not_rounded_out_of_its_own_box():
    """Check that a counterexample is not rounded out of its own box.

    At n = 1, the value 0.96 must not become 1, because the box ends at 0.97. At n = 2, the value 1
    is allowed.
    """
    domains = [Domain(x=Interval(0.0, 0.97), n=1), Domain(x=Interval(0.0, 5.0), n=2)]
    attempt = falsify(domains, lambda x, n: (x, 0.95 if n == 1 else 10.0), seed=1)
    assert attempt.counterexample.case["n"] == 1
    assert 0.95 < attempt.counterexample.case["x"] <= 0.97


@pytest.mark.parametrize("make", [lambda: Domain(), lambda: Domain(a=1.0)])
def test_a_box_without_ranges_is_refused(make):
    with pytest.raises(ArgumentError, match="at least one Interval"):
        make()


@pytest.mark.parametrize("shape", [(), (0,), (2.0,)])
def test_bad_shapes_are_refused(shape):
    with pytest.raises(ArgumentError, match="shape must hold integers >= 1"):
        Array(Interval(0, 1), shape)


def test_axes_have_names_and_lengths_of_other_parts():
    domain = Domain(x=Array(Interval(0, 1), ("n", "d")), n=Integer(1, 3), d=Choice((1, 4)))
    sized = domain.sized()
    assert [(part.parts["n"], part.parts["d"]) for part in sized] == [
        (1, 1), (1, 4), (3, 1), (3, 4), (2, 1), (2, 4)
    ]  # fmt: skip
    assert sized[3].parts["x"].shape == (3, 4)
    assert Domain(x=Interval(0, 1)).sized()[0].dimension == 1


def test_in_the_first_corners_all_numbers_of_a_part_are_equal():
    unit = Interval(0, 1)
    domain = Domain(data=Array(unit, (2, 2)), user=Array(unit, (2,)), epsilon=Interval(1, 3), d=5)
    corners = [u.tolist() for u in domain.corners()]
    low, high = [0.0], [1.0]
    assert corners[:5] == [
        [0.5] * 7,
        low * 7,
        high * 7,
        high * 4 + low * 3,
        low * 4 + high * 3,
    ]
    assert sorted(corners[1:9]) == [
        data * 4 + user * 2 + epsilon
        for data, user, epsilon in itertools.product((low, high), repeat=3)
    ]
    assert corners[9:] == [
        [other if i == j else end for i in range(7)]
        for end, other in ((0.0, 1.0), (1.0, 0.0))
        for j in range(6)
    ]


def test_of_a_long_axis_some_lengths_are_tried_its_ends_among_them():
    sized = Domain(x=Array(Interval(0, 1), ("n",)), n=Integer(2, 500)).sized()
    lengths = [part.parts["n"] for part in sized]
    assert lengths[:2] == [2, 500]
    assert 5 <= len(lengths) <= 8


@pytest.mark.parametrize("axis", [None, 0, 2.0, Interval(1, 2), Choice((1, "a")), Integer(0, 3)])
def test_an_axis_without_a_length_is_refused(axis):
    parts = {} if axis is None else {"n": axis}
    with pytest.raises(
        ArgumentError, match="axis .n. of x must be an integer >= 1, or another part"
    ):
        Domain(x=Array(Interval(0, 1), ("n",)), **parts)


# --- falsifying ---


def test_a_true_claim_stands_and_its_mutant_falls():
    attempt = falsify(SQUARE, lambda x, y: (abs(x + y), abs(x) + abs(y)), seed=1)
    assert not attempt.violated
    assert attempt.tightest == pytest.approx(1.0)
    assert attempt.power is Power.KILLED
    assert attempt.examples >= 300
    assert attempt.weak == ()


def test_a_loose_claim_says_that_the_search_had_no_power():
    attempt = falsify(SQUARE, lambda x, y: (abs(x * y), 100.0), seed=1)
    assert attempt.tightest == pytest.approx(0.04, rel=0.05)
    assert attempt.power is Power.SURVIVED
    assert attempt.mutant == "the constant halved"


def test_a_false_claim_is_broken_by_a_readable_case():
    attempt = falsify(SQUARE, lambda x, y: (abs(x - y), max(abs(x), abs(y))), seed=1)
    assert attempt.violated
    assert attempt.counterexample.lhs > attempt.counterexample.rhs
    assert all(value == round(value, 1) for value in attempt.counterexample.case.values())


@pytest.mark.parametrize("seed", range(5))
def test_a_narrow_peak_is_climbed(seed):
    """Check that the search climbs a narrow peak.

    A ratio above 1 occurs only within 0.101 of one point of a square of width 4.
    """

    def inequality(x, y):
        return 1.0101, 1.0 + ((x - 1.234) ** 2 + (y + 0.777) ** 2)

    attempt = falsify(SQUARE, inequality, seed=seed, examples=1000)
    assert attempt.violated
    assert attempt.counterexample.case["x"] == pytest.approx(1.234, abs=0.11)


def test_both_searches_follow_the_seed():
    def run(seed):
        return falsify(SQUARE, lambda x, y: (math.cos(x) * math.sin(y + 1), 4.0), seed=seed)

    assert run(3) == run(3)
    assert run(3).where != run(4).where


def test_extremal_cases_are_judged_first():
    seen = []

    def inequality(x, y):
        seen.append((x, y))
        return 0.0, 1.0

    falsify(SQUARE, inequality, seed=1, extremal=[{"x": 1.0, "y": 2.0}], examples=5)
    assert seen[0] == (1.0, 2.0)


def test_rounding_is_no_violation():
    thirds = Domain(n=Integer(1, 60))
    float_sum = lambda n: (reduce(add, [0.1] * n), 0.1 * n)  # noqa: E731  # sum() is too good
    exact = lambda n: (Fraction(1, 10) * n, Fraction(1, 10) * n)  # noqa: E731
    assert falsify(thirds, float_sum, seed=1, examples=50, tolerance=0.0).violated
    assert not falsify(thirds, float_sum, seed=1, examples=50).violated
    assert not falsify(thirds, float_sum, seed=1, examples=50, tolerance=0.0, exact=exact).violated


def test_exact_arithmetic_has_the_last_word_both_ways():
    """Check that exact arithmetic overrules floating-point arithmetic.

    A violation of one part in 1e18 is invisible in doubles and visible in fractions.
    """

    def inequality(n):
        return 1.0 + 1e-15, 1.0

    def exact(n):
        return Fraction(10**18 + 1, 10**18), Fraction(1)

    assert not falsify(Domain(n=Integer(1, 9)), inequality, seed=1, examples=5).violated
    attempt = falsify(Domain(n=Integer(1, 9)), inequality, seed=1, examples=5, exact=exact)
    assert attempt.violated
    assert attempt.counterexample.exact


def test_cases_outside_the_hypotheses_are_not_judged():
    attempt = falsify(SQUARE, lambda x, y: (1.0, 2.0) if x > 0 else None, seed=1)
    assert attempt.rejected > 0
    assert attempt.where["x"] > 0
    assert attempt.weak == ()


def test_a_check_that_rejects_almost_everything_is_weak():
    attempt = falsify(SQUARE, lambda x, y: (1.0, 2.0) if 0.4999 < x < 0.5 else None, seed=1)
    assert any("outside the hypotheses" in reason for reason in attempt.weak)
    assert any("examples were judged" in reason for reason in attempt.weak)


def test_nothing_judged_has_no_ratio():
    attempt = falsify(SQUARE, lambda x, y: None, seed=1)
    assert attempt.tightest is None
    assert attempt.weak


def test_a_plain_strategy_is_drawn_and_shrunk_by_hypothesis():
    pairs = st.tuples(st.integers(0, 10_000), st.integers(0, 10_000))
    attempt = falsify(pairs, lambda case: (case[0] + case[1], 15_000), seed=1)
    assert attempt.violated
    assert sum(attempt.counterexample.case["case"]) == 15_001


def test_a_domain_is_searched_without_hypothesis():
    """Check that a domain is searched without Hypothesis.

    A case in a corner is found and simplified without leaving the domain.
    """
    cube = Domain(x=Array(Interval(-3.0, 5.0), (4,)), n=Integer(2, 9), word=Choice(("a", "b")))
    found = falsify(cube, lambda x, n, word: (float(x.sum()), 19.9), seed=1).counterexample
    assert found.case == {"x": [5.0, 5.0, 5.0, 5.0], "n": 2, "word": "a"}
    found = falsify(cube, lambda x, n, word: (float(x.max() + n), 8.5), seed=1).counterexample
    assert max(found.case["x"]) + found.case["n"] > 8.5
    assert found.case["word"] == "a"
    assert found.case["x"].count(0.0) >= 3


def test_several_boxes_are_all_searched():
    domains = [Domain(x=Interval(0.0, 1.0), n=n) for n in (1, 2, 3)]
    attempt = falsify(domains, lambda x, n: (x * (n == 3), 0.999), seed=1)
    assert attempt.violated
    assert attempt.counterexample.case["n"] == 3


def test_a_mutant_of_its_own_must_be_caught_by_the_same_search():
    def inequality(x, y, factor=1.0):
        return abs(x + y), factor * (abs(x) + abs(y))

    attempt = falsify(SQUARE, inequality, seed=1, mutant=lambda x, y: inequality(x, y, 0.99))
    assert attempt.power is Power.KILLED
    attempt = falsify(SQUARE, inequality, seed=1, mutant=lambda x, y: inequality(x, y, 1.01))
    assert attempt.power is Power.SURVIVED
    assert falsify(SQUARE, inequality, seed=1, mutant=None).power is Power.NONE


@pytest.mark.parametrize("mutant", [0.0, 1.0, -1.0, 2.0])
def test_a_mutant_is_a_factor_below_one(mutant):
    with pytest.raises(ArgumentError, match="strictly between 0 and 1"):
        falsify(SQUARE, lambda x, y: (1.0, 2.0), seed=1, mutant=mutant)


@pytest.mark.parametrize("cases", [None, [], [1], {"x": 1}])
def test_bad_cases_are_refused(cases):
    with pytest.raises(TypeError, match="cases must be"):
        falsify(cases, lambda x: (0, 1), seed=1)


def test_a_plateau_does_not_hang():
    """Check that a search on a plateau ends quickly.

    Hypothesis alone searches this plateau for minutes.
    """
    domain = Domain(x=Array(Interval(0.0, 1.0), (15,)), y=Array(Interval(-1.0, 1.0), (4, 2)))
    attempt = falsify(domain, lambda x, y: (min(x.max(), 0.6), 1.0), seed=1)
    assert attempt.tightest == 0.6


# --- sweeps ---


def test_a_sweep_stops_at_the_first_counterexample():
    cases = [{"n": n} for n in range(1, 10)]
    attempt = sweep(cases, lambda n: (n * n, 10 * n - 20))
    assert attempt.counterexample.case == {"n": 1}
    assert attempt.method is Method.EXACT


def test_a_sweep_without_cases_is_refused():
    with pytest.raises(ArgumentError, match="at least one case"):
        sweep([], lambda n: (1, 1))
