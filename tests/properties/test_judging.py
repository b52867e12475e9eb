"""Tests that rounding, infinities, NaN or odd types do not mislead a judge of ``lhs <= rhs``."""

from __future__ import annotations

import math
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import strategies as st

from dpaudit import ArgumentError, check_contraction, check_lipschitz, check_sensitivity
from dpaudit.errors import MechanismError
from dpaudit.ledger.attempts import Ledger
from dpaudit.ledger.paper import Statement
from dpaudit.ledger.rows import LedgerVerdict
from dpaudit.ledger.words import counterexample_words
from dpaudit.neighbors import Interval
from dpaudit.neighbors.pairs import NeighborPair
from dpaudit.properties import strategies
from dpaudit.properties.attempt import Method, Power
from dpaudit.properties.domains import Domain
from dpaudit.properties.falsifying import falsify, sweep
from dpaudit.properties.judging import Judge

ROW = Statement("toy.lemma1", "toy", "lemma", "x <= y")
ONE = [{"n": 1}]


def judged(*inequality, **options):
    judge = Judge(lambda n: inequality, **options)
    judge({"n": 1})
    return judge


# --- rounding ---


@pytest.mark.parametrize(
    ("lhs", "rhs"),
    [
        (10**20 + 1, 10**20),
        (2**53 + 1, 2**53),
        (Fraction(10**20 + 1, 10**20), 1),
        (np.int64(2**53 + 1), np.int64(2**53)),
        (10**400 + 1, 10**400),
        (1 - 10**400, -(10**400)),
    ],
)
def test_whole_numbers_and_fractions_are_compared_as_they_are(lhs, rhs):
    assert judged(lhs, rhs).counterexample is not None
    assert judged(lhs, rhs).tightest > 1
    assert judged(rhs, lhs).counterexample is None
    assert judged(rhs, rhs).counterexample is None


def test_exact_arithmetic_sees_what_floats_hide():
    """Check that exact arithmetic finds a violation that floats hide.

    As floats, both sides are equal or in the wrong order, but the claim is false.
    """
    third = Fraction(1, 10**17)
    for floats in ((1.0, 1.0), (1.0, 1.0 + 1e-9)):
        judge = judged(*floats, exact=lambda n: (1 + third, Fraction(1)))
        assert judge.counterexample is not None
        assert judge.counterexample.exact
        assert judge.tightest > 1
    assert (
        judged(1.0, 1.0, exact=lambda n: (Decimal(1), Decimal("1.0000000001"))).counterexample
        is None
    )


def test_exact_arithmetic_acquits_only_by_comparing():
    assert judged(1.1, 1.0, exact=lambda n: (math.nan, 1.0)).counterexample is not None
    outside = judged(5.0, 1.0, exact=lambda n: None)
    assert (outside.counterexample, outside.judged, outside.rejected) == (None, 0, 1)
    stood = judged(1.0 + 1e-12, 1.0, exact=lambda n: (1.0, 1.0))
    assert (stood.counterexample, stood.tightest) == (None, 1.0)


def test_far_below_exact_arithmetic_is_not_asked():
    def exact(n):
        raise AssertionError

    assert judged(0.5, 1.0, exact=exact).tightest == 0.5


# --- comparisons of nothing ---


@pytest.mark.parametrize("side", [math.inf, -math.inf])
def test_two_infinities_compare_nothing(side):
    assert judged(side, side).judged == 0
    attempt = falsify(
        Domain(x=Interval(800, 900)), lambda x: (np.exp(3 * x), np.exp(x)), seed=1, examples=20
    )
    assert attempt.examples == 0
    assert attempt.power is Power.SURVIVED


def test_one_infinity_compares():
    assert judged(math.inf, 1.0).counterexample is not None
    assert judged(1.0, math.inf).counterexample is None
    assert judged(-math.inf, 1.0).counterexample is None
    assert judged(1.0, -math.inf).counterexample is not None


def test_a_nan_breaks_a_claim_but_no_mutant():
    assert sweep(ONE, lambda n: (math.nan, 1.0)).violated
    attempt = sweep(ONE, lambda n: (0.4, 1.0), mutant=lambda n: (math.nan, 1.0))
    assert attempt.power is Power.SURVIVED


@pytest.mark.parametrize("side", [1 + 5j, np.complex128(1 + 5j), np.array([1j])])
def test_complex_sides_are_refused(side):
    with pytest.raises(TypeError, match="must be one real number"):
        sweep(ONE, lambda n: (side, 2.0))


# --- mutants ---


def test_a_factor_shrinks_positive_sides_only():
    """Check that a factor shrinks positive sides only.

    For example, -3 <= -2 still holds if -2 is halved, and a right side of 0 cannot shrink.
    """
    assert sweep(ONE, lambda n: (-3.0, -2.0)).power is Power.SURVIVED
    assert sweep(ONE, lambda n: (0.0, 0.0)).power is Power.SURVIVED
    assert sweep(ONE, lambda n: (3.0, math.inf)).power is Power.SURVIVED
    assert sweep(ONE, lambda n: (0.6, 1.0)).power is Power.KILLED


@pytest.mark.parametrize("mutant", [0, 0.0, -1.0, 2, math.nan])
def test_bad_factors_are_refused(mutant):
    event = lambda size, *, rng: np.zeros(size, dtype=bool)  # noqa: E731
    with pytest.raises(ArgumentError, match="mutant must be a number strictly between 0 and 1"):
        sweep(ONE, lambda n: (1.0, 2.0), mutant=mutant)
    with pytest.raises(ArgumentError, match="mutant must be a number strictly between 0 and 1"):
        Ledger(ROW).monte_carlo(allowed=0.5, draws=10, mutant=mutant)(event)


@pytest.mark.parametrize("tolerance", [math.nan, math.inf, -1.0])
def test_bad_tolerances_are_refused(tolerance):
    inequality = lambda n: (5.0, 1.0)  # noqa: E731
    with pytest.raises(ArgumentError, match="tolerance must be a finite number >= 0"):
        sweep(ONE, inequality, tolerance=tolerance)
    with pytest.raises(ArgumentError, match="tolerance must be a finite number >= 0"):
        Ledger(ROW).identity(n=1, tolerance=tolerance)(inequality)


# --- identities ---


def identity(a, b, **options):
    book = Ledger(ROW)
    book.identity(cases=ONE, **options)(lambda n: (a, b))
    (attempt,) = book.result().attempts
    return attempt


def test_identities_compare_entry_by_entry():
    assert identity(np.array([1e10, 1.0]), np.array([1e10, 2.0])).violated
    assert identity(1.0, math.nan).violated
    assert identity(np.array([math.nan, 1.0]), np.array([math.nan, 1.0])).violated
    assert identity(1.0, math.inf).violated
    assert not identity(np.array([math.inf, 1.0]), np.array([math.inf, 1.0])).violated
    assert identity(1e-8, 0.0).violated
    assert not identity(1e-17, 0.0, floor=1.0).violated
    assert identity(1.1, 1.0, floor=1.0).violated


@pytest.mark.parametrize("sides", [(-8.9e-16, 0.0), (0.0, 1e-10)])
def test_a_rounding_error_beside_0_refutes_nothing(sides):
    with pytest.raises(ArgumentError, match="floor must be given to compare"):
        identity(*sides)
    with pytest.raises(ArgumentError, match="floor must be given to compare"):
        identity(np.array([1.0, sides[0]]), np.array([1.1, sides[1]]))
    assert not identity(*sides, floor=1.0).violated
    large, small = max(sides), min(sides)
    assert not sweep(ONE, lambda n: (small, large)).violated
    with pytest.raises(ArgumentError, match="inequality must not compare"):
        sweep(ONE, lambda n: (large, small))
    later = [{"n": 1}, {"n": 2}]  # a case that is certainly broken decides
    for cases in (later, later[::-1]):
        assert sweep(cases, lambda n: (large, small) if n == 1 else (1.0, 0.0)).violated
    assert sweep(ONE, lambda n: (Fraction(large), Fraction(small))).violated
    assert sweep(ONE, lambda n: (large, small), exact=lambda n: (1, 0)).violated


def test_an_identity_of_zeros_has_no_power():
    assert identity(0.0, 0.0).power is Power.SURVIVED


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (np.ones(3), 1.0, "equal shapes"),
        (np.ones((3, 1)), np.ones(3), "equal shapes"),
        (np.array([]), np.array([]), "at least one"),
        (1 + 1j, 1 - 1j, "real numbers"),
    ],
)
def test_identities_refuse_what_cannot_be_compared(a, b, words):
    with pytest.raises(ArgumentError, match=words):
        identity(a, b)


# --- rows that tried nothing ---


def equal(n):
    return 1.0, 1.0


def test_a_row_whose_attack_judged_nothing_is_open():
    book = Ledger(ROW)
    book.sweep(n=1)(equal)
    assert book.result().verdict is LedgerVerdict.HOLDS
    book.sweep(n=1)(lambda n: None)
    found = book.result()
    assert found.verdict is LedgerVerdict.OPEN
    assert any("lie outside the hypotheses" in reason for reason in found.weak)
    assert found.mismatch == "an attempt judged no case: all lie outside the hypotheses"


def test_a_sweep_of_which_little_was_judged_is_weak():
    cases = [{"n": n} for n in range(100)]
    attempt = sweep(cases, lambda n: (1.0, 1.0) if n == 3 else None)
    assert attempt.weak == ("99 of 100 cases lie outside the hypotheses",)


def test_a_repair_counts_for_power_and_health():
    def refuted(repaired):
        book = Ledger(ROW)
        book.sweep(n=1)(lambda n: (2.0, 1.0))
        book.repair("x <= 3 y").sweep(n=1)(repaired)
        return book.result()

    assert refuted(lambda n: (2.0, 3.0)).power is Power.KILLED
    survived = refuted(lambda n: (1.0, 3.0))
    assert survived.power is Power.SURVIVED
    nothing = refuted(lambda n: None)
    assert nothing.repair_verdict is LedgerVerdict.OPEN
    assert nothing.weak


def test_an_escaped_mutant_is_a_surprise():
    book = Ledger(ROW)
    book.sweep(n=1)(lambda n: (0.1, 1.0))
    assert book.result().mismatch == "a mutant survived, so an attempt has no power"


def test_mutants_of_some_attacks_only():
    book = Ledger(ROW)
    book.sweep(n=1)(equal)
    book.sweep(n=1, mutant=None)(equal)
    assert book.result().power is Power.PARTLY
    book.argue("the rest is clear")
    assert book.result().power is Power.PARTLY
    assert book.result().method is Method.ARGUMENT


def test_draws_that_could_refute_nothing_are_weak():
    always = lambda size, *, rng: np.ones(size, dtype=bool)  # noqa: E731
    book = Ledger(ROW)
    book.monte_carlo(allowed=0.2, draws=8, mutant=None)(always)
    book.monte_carlo(allowed=0.2, draws=9, mutant=None)(always)
    weak, strong = book.result().attempts
    assert not weak.violated
    assert weak.weak
    assert strong.violated


# --- functions ---


@pytest.mark.slow
def test_rounding_of_large_values_hides_no_slope():
    assert check_lipschitz(lambda x: 1e10 + 2 * x, 1.0).violated
    assert not check_lipschitz(lambda x: 1e10 + x, 1.001).violated


@pytest.mark.slow
def test_rounding_is_no_expansion():
    assert not check_contraction(lambda x: x + 0.1, 1.0).violated
    assert not check_contraction(lambda x: x + 1e8, 1.0).violated
    assert check_contraction(lambda x: 1.001 * x, 1.0).violated


def test_rounding_is_no_sensitivity():
    pair = NeighborPair([[1e10 / 3], [0.1]], [[1e10 / 3], [0.0]])
    total = lambda data: data.sum() - 1e10 / 3 + 1e10 / 3  # noqa: E731
    assert not check_sensitivity(total, 0.1, pairs=pair).violated
    assert check_sensitivity(total, 0.09, pairs=pair).violated


def test_pairs_that_tell_nothing_are_refused():
    for points in ([([0.0], [0.0])], [([0.0], [math.inf])]):
        with pytest.raises(ArgumentError, match="pairs must allow a test"):
            check_lipschitz(np.sin, 1.0, points=points)


@pytest.mark.parametrize("value", [None, "x", 1j, np.array([1j]), [None, 1.0]])
def test_values_that_are_no_real_numbers_are_refused(value):
    with pytest.raises(MechanismError, match="must return real numbers"):
        check_sensitivity(lambda data: value, 1.0)


@pytest.mark.slow
def test_a_function_that_is_never_a_number_is_refused():
    pairs = strategies.neighbor_pairs(n_users=5)
    for value in (math.nan, math.inf):
        with pytest.raises(ArgumentError, match="all values are NaN or infinite"):
            check_sensitivity(lambda data, v=value: v, 1.0, pairs=pairs, examples=50)


def test_a_function_that_breaks_its_contract_is_refused():
    calls = iter(range(10**9))
    with pytest.raises(
        MechanismError, match="must be deterministic, got [0-9.]+ and [0-9.]+ for one"
    ):
        check_sensitivity(lambda data: next(calls), 5.0)


def test_what_is_measured_is_the_declared_constant():
    words = str(check_lipschitz(lambda x: 2 * x, 1.9, points=[([0.0], [0.5])]))
    assert "values are 1 apart, 0.95 allowed: 2 measured, 1.9 declared" in words
    words = str(check_contraction(lambda x: 2 * x, 1.0, points=[([0.0], [0.5])]))
    assert "values are 1 apart, 0.5 allowed: 2 measured, 1 declared" in words


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: check_contraction(np.sin, d=0), "d must be an integer >= 1, got 0"),
        (lambda: check_sensitivity(np.sum, 1.0, pairs=3), "must be a strategy or a list of pairs"),
    ],
)
def test_bad_places_to_look_are_refused(call, words):
    with pytest.raises((ArgumentError, TypeError), match=words):
        call()


# --- the words of a case ---


@pytest.mark.parametrize("found", [1.0, (1.0,), (1.0, 2.0, 3.0), np.zeros(2)])
def test_sides_are_two_numbers(found):
    with pytest.raises(TypeError, match=r"inequality must return \(lhs, rhs\) or None, got"):
        sweep(ONE, lambda n: found)
    with pytest.raises(TypeError, match="must be one real number"):
        sweep(ONE, lambda n: (np.zeros(2), 1.0))


def test_the_case_in_which_sides_raise_is_told():
    with pytest.raises(ZeroDivisionError) as raised:
        sweep([{"n": 3}, {"n": 0}], lambda n: (1 / n, 1.0))
    assert raised.value.__notes__ == ["in the case {'n': 0}"]


def test_a_nan_is_called_a_nan():
    attempt = sweep(ONE, lambda n: (math.nan, 1.0))
    assert attempt.counterexample.nan
    assert counterexample_words(attempt) == "a side is NaN"


def test_a_factor_without_a_positive_side_says_what_to_do():
    attempt = sweep(ONE, lambda n: (-3.0, -2.0))
    assert attempt.weak == (
        "no right side was positive and finite. Pass a mutant inequality instead",
    )


# --- an endless climb ---


def test_a_climb_that_takes_its_budget_leaves_no_example_out():
    """Check that a climb that uses its whole budget omits no example.

    The examples are lists of changing length on a plateau, where each part is tried against every
    other part.
    """
    lists = st.lists(st.lists(st.integers(0, 9), max_size=9), max_size=9)
    attempt = falsify(lists, lambda case: (float(len(case) > 3), 1.0), seed=1, examples=400)
    assert attempt.examples >= 400
    assert attempt.weak == ()


# --- the same cases in every process ---

SEEN = """
import sys
sys.path.insert(0, sys.argv[1])
if sys.argv[2] == "with":
    import odd_numbers
from dpaudit.properties import falsify
from hypothesis import strategies as st
seen = []
options = {"seed": 1, "examples": 500, "mutant": None}
falsify(st.floats(0, 1e9), lambda x: (seen.append(x) or 0.0, 1.0), **options)
print(seen)
"""


@pytest.mark.slow
def test_other_modules_that_are_loaded_change_no_case(tmp_path):
    (tmp_path / "odd_numbers.py").write_text("NUMBERS = [123456.789, 987.654321, 31415.92]\n")
    seen = [
        subprocess.run(
            [sys.executable, "-c", SEEN, str(tmp_path), which],
            cwd=tmp_path, capture_output=True, text=True, check=True,
        ).stdout
        for which in ("with", "without")
    ]  # fmt: skip
    assert seen[0] == seen[1]
    assert len(seen[0]) > 1000


def test_a_random_inequality_is_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(TypeError, match="the same sides for the same case.*Fix the random"):
        sweep([{"n": 1}], lambda n: (rng.random(), 2.0))


def test_one_that_always_gives_nan_is_not_called_random():
    assert sweep([{"n": 1}], lambda n: (math.nan, 2.0)).violated
