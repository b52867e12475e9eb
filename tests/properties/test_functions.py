"""Tests of the checks of a user's own deterministic functions."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from dpaudit import ArgumentError, MechanismError, NeighborPair, Relation
from dpaudit.properties import strategies
from dpaudit.properties.functions import (
    check_contraction,
    check_lipschitz,
    check_sensitivity,
    point_pairs,
)
from dpaudit.store.records import load_record

FIVE = strategies.neighbor_pairs(n_users=5)
FEW = 200
"""Examples for bounds that hold; only a false bound needs many examples."""


def clipped_mean(data):
    return np.clip(data, -1, 1).mean()


@pytest.mark.slow
def test_the_exact_sensitivity_stands_and_is_reached():
    check = check_sensitivity(clipped_mean, 2 / 5, pairs=FIVE)
    check.assert_not_violated()
    assert check.attempt.tightest == pytest.approx(1.0)
    assert check.attempt.examples >= 1000


@pytest.mark.slow
def test_a_wrong_sensitivity_is_broken_by_a_small_pair():
    check = check_sensitivity(clipped_mean, 1 / 5, pairs=FIVE)
    assert check.violated
    case = check.attempt.counterexample.case
    assert sum(a != b for a, b in zip(case["left"], case["right"], strict=True)) == 1
    assert "0.2 declared" in str(check)
    assert "left" in str(check)


def test_by_default_nan_and_infinities_are_tried():
    check = check_sensitivity(clipped_mean, 2.0)
    assert check.violated
    assert "nan" in str(check.attempt.counterexample.case)
    robust = check_sensitivity(lambda data: clipped_mean(np.nan_to_num(data)), 2.0, examples=FEW)
    robust.assert_not_violated()


@pytest.mark.slow
def test_an_empty_user_is_found():
    """Check that an empty user is found.

    A mean that omits empty users divides by fewer than n, although all users have equal weight.
    """
    pairs = strategies.neighbor_pairs(n_users=3, m=2, missing=True)

    def mean_of_users(data):
        return np.mean([np.nansum(user) / max(np.isfinite(user).sum(), 1) for user in data])

    def mean_of_users_with_items(data):
        means = [np.nanmean(user) for user in data if np.isfinite(user).any()]
        return np.mean(means) if means else 0.0

    assert not check_sensitivity(mean_of_users, 2 / 3, pairs=pairs, examples=FEW).violated
    check = check_sensitivity(mean_of_users_with_items, 2 / 3, pairs=pairs)
    assert check.violated
    assert check.attempt.counterexample.lhs > 0.7


@pytest.mark.slow
def test_norms_differ():
    def histogram(data):
        return np.histogram(data, bins=[-1, 0, 1])[0]

    pairs = strategies.neighbor_pairs(n_users=4, bound=0.9)
    assert not check_sensitivity(histogram, 2.0, norm="l1", pairs=pairs, examples=FEW).violated
    assert check_sensitivity(histogram, 1.9, norm="l1", pairs=pairs).violated
    assert not check_sensitivity(histogram, math.sqrt(2), pairs=pairs, examples=FEW).violated
    assert not check_sensitivity(histogram, 1.0, norm="linf", pairs=pairs, examples=FEW).violated


def test_given_pairs_are_all_tried():
    pairs = [NeighborPair([[0.0], [x]], [[0.0], [0.0]]) for x in (0.1, 5.0, 0.2)]
    check = check_sensitivity(np.sum, 1.0, pairs=pairs)
    assert check.attempt.counterexample.case["left"] == [[0.0], [5.0]]
    assert not check_sensitivity(np.sum, 1.0, pairs=pairs[0]).violated


def test_adding_and_removing_users():
    pairs = strategies.neighbor_pairs(relation=Relation.ADD_REMOVE_USER)
    assert not check_sensitivity(len, 1.0, pairs=pairs, examples=FEW).violated
    assert check_sensitivity(len, 0.5, pairs=pairs).violated


@pytest.mark.slow
def test_lipschitz_constants():
    assert not check_lipschitz(
        lambda x: np.abs(x).sum(), 1.0, norm="l1", d=3, examples=FEW
    ).violated
    check = check_lipschitz(lambda x: np.abs(x).sum(), 1.0, d=3)
    assert check.violated
    assert check.attempt.counterexample.lhs > check.attempt.counterexample.rhs
    assert not check_lipschitz(lambda x: np.abs(x).sum(), math.sqrt(3), d=3, examples=FEW).violated
    assert check_lipschitz(lambda x: np.sqrt(np.abs(x)), 10.0).violated


def toward_zero(x, step=0.3):
    """Take one step of the SGD of the geometric median, with a data point at 0."""
    length = np.linalg.norm(x)
    return x - step * x / length if length > 1e-100 else x


@pytest.mark.slow
def test_contraction_down_to_a_distance():
    check = check_contraction(toward_zero, d=2)
    assert check.violated  # two points on either side of 0
    assert not check_contraction(toward_zero, slack=0.6, d=2, examples=FEW).violated
    assert check_contraction(toward_zero, slack=0.5, d=2).violated
    assert not check_contraction(lambda x: x / 2, 0.5, d=2, examples=FEW).violated
    assert check_contraction(lambda x: x / 2, 0.4, d=2).violated


def test_points_may_be_given():
    points = [(np.zeros(1), np.ones(1))]
    assert check_contraction(lambda x: 2 * x, points=points).violated
    assert not check_contraction(lambda x: 2 * x, 2.0, points=points).violated
    assert not check_lipschitz(
        lambda x: x, 1.0, points=point_pairs(d=2, bound=100.0), examples=FEW
    ).violated


def test_exceptions_name_the_input():
    def picky(data):
        raise KeyError("oops")

    with pytest.raises(MechanismError, match=r"picky raised KeyError: 'oops' \(at test_functions"):
        check_sensitivity(picky, 1.0)


def test_the_function_cannot_change_what_it_is_given():
    def greedy(data):
        data[:] = 0
        return 0.0

    assert not check_sensitivity(greedy, 0.0, pairs=FIVE, examples=FEW).violated


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: check_sensitivity(np.sum, -1.0), ArgumentError),
        (lambda: check_sensitivity(np.sum, math.nan), ArgumentError),
        (lambda: check_sensitivity(np.sum, 1.0, norm="l3"), ArgumentError),
        (lambda: check_sensitivity(3, 1.0), TypeError),
        (lambda: check_sensitivity(np.sum, 1.0, pairs=[1, 2]), TypeError),
        (lambda: check_sensitivity(np.sum, 1.0, pairs=[]), ArgumentError),
        (lambda: check_sensitivity(np.sum, 1.0, examples=0), ArgumentError),
        (lambda: check_lipschitz(np.sum, 1.0, points=[1]), TypeError),
        (lambda: check_contraction(np.sum, slack=-1.0), ArgumentError),
        (lambda: check_lipschitz(lambda x: x[: int(x[0] > 0)], 1.0), ArgumentError),
    ],
)
def test_bad_arguments_are_refused(call, error):
    with pytest.raises(error):
        call()


# --- in audits ---

AUDITS = """
import numpy as np
from dpaudit import NeighborPair, PureDP, strategies

PAIRS = strategies.neighbor_pairs(n_users=5)


def mean(data):
    return np.clip(data, -1, 1).mean()


def audit_good(auditor):
    auditor.check_sensitivity(mean, 2 / 5, pairs=PAIRS).assert_not_violated()


def audit_bad(auditor):
    auditor.check_sensitivity(mean, 1 / 5, pairs=PAIRS)
    auditor.check_lipschitz(np.sin, 1.0)


def noisy(data, size, *, rng):
    return data.sum() + rng.laplace(size=size)


def loud(data, size, *, rng):
    return data.sum() + 0.3 * rng.laplace(size=size)


def audit_both(auditor):
    auditor.check_contraction(lambda x: x / 2, 0.5)
    auditor.check(noisy, PureDP(1.0), NeighborPair([[0.0]], [[1.0]]), mutants=[loud], draws=20_000)
"""


@pytest.mark.slow
def test_functions_are_checked_in_audits(pytester):
    pytester.makepyfile(audit_functions=AUDITS)
    run = pytester.runpytest("--dpaudit", "--dpaudit-out=out", "-p", "no:cacheprovider")
    assert run.ret == 1
    text = run.stdout.str()
    assert "1 holds, 1 not as declared, 1 not refuted" in text
    assert "found      lhs = 0.4 > rhs = 0.2" in text
    rows = json.loads((pytester.path / "out" / "results.json").read_text())["statements"]
    assert {row["id"].partition("::")[2]: row["verdict"] for row in rows} == {
        "audit_good": "holds",
        "audit_bad": "refuted",
        "audit_both": "holds",
    }
    (stored,) = (pytester.path / "out" / "statements").glob("audit_functions.audit_bad-*.json")
    assert load_record(stored)[0].counterexample.rhs == 0.2


BOTH = (
    AUDITS[: AUDITS.index("def audit_good")]
    + """
def noisy(data, size, *, rng):
    return data.sum() + rng.laplace(size=size)


def audit_bad_function_of_a_good_mechanism(auditor):
    print("audited")
    auditor.check_sensitivity(mean, 1 / 5, pairs=PAIRS)
    auditor.check(noisy, PureDP(1.0), NeighborPair([[0.0]], [[1.0]]), draws=1000)
"""
)


@pytest.mark.parametrize("row", ["whole", "gone", "torn"])
@pytest.mark.slow
def test_resume_takes_over_checks_of_functions_with_the_results(pytester, row):
    pytester.makepyfile(audit_both=BOTH)
    options = ("--dpaudit", "--dpaudit-out=out", "-p", "no:cacheprovider", "-s")
    first = pytester.runpytest_subprocess(*options)
    (file,) = (pytester.path / "out" / "statements").glob("audit_both.audit_bad*.json")
    stored = json.loads(file.read_text())
    if row != "whole":
        file.unlink() if row == "gone" else file.write_text("{")
    again = pytester.runpytest_subprocess(*options, "--dpaudit-resume")
    assert first.ret == again.ret == 1
    assert ("audited" in again.stdout.str()) is (row != "whole")
    assert "audited" in first.stdout.str()
    kept = json.loads(file.read_text())
    assert {**kept, "seconds": 0, "origin": 0} == {**stored, "seconds": 0, "origin": 0}
    rows = json.loads((pytester.path / "out" / "results.json").read_text())["statements"]
    assert [row["verdict"] for row in rows] == ["refuted"]


def test_rounding_among_the_smallest_doubles_is_no_expansion():
    """Check that rounding among the smallest doubles is not reported as an expansion.

    Half of three units in the last place rounds to two units. The distance is then 1e-323, but only
    7e-324 is allowed.
    """
    zero = np.zeros(2)
    for size in (1.5e-323, 2.3030012943022205e-161, 1e-300, 1e200):
        assert not check_contraction(
            lambda x: x / 2, 0.5, points=[(np.array([size, 0.0]), zero)]
        ).violated
    for size in (1e-161, 1e-300, 1e200):
        apart = [(np.array([size, size]), zero)]
        assert not check_contraction(lambda x: 0.999 * x, 1.0, points=apart).violated
        assert check_contraction(lambda x: x, 0.999, points=apart).violated


@pytest.mark.slow
def test_a_check_has_no_truth_value_and_raises_where_it_is_asked_to():
    holds = check_sensitivity(clipped_mean, 2 / 5, pairs=FIVE, examples=FEW)
    broken = check_sensitivity(clipped_mean, 1 / 5, pairs=FIVE)
    for check in (holds, broken):
        with pytest.raises(TypeError, match="has no truth value"):
            bool(check)
    holds.assert_not_violated()
    with pytest.raises(AssertionError, match="clipped_mean"):
        broken.assert_not_violated()
