"""Tests of counterexamples that can be pasted.

A counterexample that can be pasted is a short program that gives the same two sides.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

from algorithms.common.noise import bounded_laplace_delta
from dpaudit.ledger.snippets import LINES, snippet_of

LIMIT = 3.0


def ran(function, case):
    text = snippet_of(function, case)
    assert text
    assert len(text.splitlines()) <= LINES
    assert "dpaudit" not in text
    scope = {}
    exec(text, scope)  # what a reader would paste
    return scope["lhs"], scope["rhs"]


def helper(x, scale=2.0):
    """Say nothing about this."""
    return scale * math.sqrt(x)


def with_helper(x, y):
    """Return the sides.

    The snippet must not contain this line.
    """
    # but comments stay
    return helper(x), LIMIT * y


@pytest.mark.parametrize(
    ("function", "case"),
    [
        (with_helper, {"x": 4.0, "y": 1.0}),
        (partial(with_helper, y=2.0), {"x": 4.0}),
    ],
)
def test_helpers_constants_and_modules_come_along(function, case):
    assert ran(function, case) == function(**case)


def test_arrays_are_arrays_and_infinities_are_known():
    def sides(points, bound):
        return float(np.abs(points).max()), bound

    assert ran(sides, {"points": [[1.0, -2.0], [0.5, 0.0]], "bound": math.inf}) == (2.0, math.inf)


def test_names_of_scipy_are_imported_from_where_they_live():
    def sides(n, p):
        return float(binom.sf(1, n, p)), Fraction(1, 2)

    assert ran(sides, {"n": 4, "p": 0.5}) == sides(4, 0.5)
    text = snippet_of(sides, {"n": 4, "p": 0.5})
    assert "from scipy.stats import binom" in text
    assert "from fractions import Fraction" in text


def test_what_the_function_does_not_take_is_left_out():
    def sides(x):
        return x, 1.0

    assert ran(sides, {"x": 2.0, "axis": 5}) == (2.0, 1.0)


def test_decorators_are_left_out():
    def attempt(function):
        return function

    @attempt
    def sides(x):
        return x, 1.0

    assert "attempt" not in snippet_of(sides, {"x": 2.0})


def test_what_pytest_makes_of_an_assert_is_not_asked_for():
    def sides(x):
        assert x > 1
        return x, 1.0

    assert ran(sides, {"x": 2.0}) == (2.0, 1.0)


def test_values_around_a_function_come_along():
    factor, words = 2.5, "unused"

    def sides(x):
        return factor * x, 1.0

    del words
    assert ran(sides, {"x": 2.0}) == (5.0, 1.0)


def long(x):
    a = x + 1
    b = a + 1
    c = b + 1
    d = c + 1
    e = d + 1
    f = e + 1
    g = f + 1
    h = g + 1
    i = h + 1
    j = i + 1
    k = j + 1
    m = k + 1
    n = m + 1
    return n, 0.0


def of_ours(x):
    return bounded_laplace_delta(1.0, x), 0.0


@pytest.mark.parametrize(
    ("function", "case"),
    [
        (long, {"x": 1.0}),
        (of_ours, {"x": 1.0}),
        (lambda x: (x, 0.0), {"x": 1.0}),
        (partial(lambda x, y: (x, y), 1.0), {"y": 1.0}),
        (with_helper, {"x": {"a": 1}, "y": 1.0}),
        (math.dist, {}),
    ],
)
def test_what_needs_more_or_is_too_long_has_none(function, case):
    assert snippet_of(function, case) == ""
