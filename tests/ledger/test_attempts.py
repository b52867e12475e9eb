"""Tests of the fixture of a check.

The tests cover attempts on a statement, attempts around a statement, and the verdict.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

from dpaudit import ArgumentError, NeighborPair, PureDP
from dpaudit.ledger.attempts import Ledger
from dpaudit.ledger.paper import Convention, Paper, Statement
from dpaudit.ledger.rows import Harm, LedgerVerdict, StatementResult
from dpaudit.ledger.words import counterexample_words
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties.attempt import Method, Power, Role
from dpaudit.properties.domains import Array

ROW = Statement("toy.lemma1", "toy", "lemma", "x <= y")
PAPER = Paper("toy", conventions=(Convention("n >= 2", "one point has no neighbour"),))
SQUARE = {"x": Interval(-2.0, 2.0), "y": Interval(-2.0, 2.0)}


def ledger(**options):
    return Ledger(ROW, paper=PAPER, **options)


def only(book):
    (attempt,) = book.result().attempts
    return attempt


def equal(n):
    return n, n


def double(n, factor=2.0):
    return factor * n, n


# --- the statement ---


def test_a_statement_that_stands_everything_holds():
    book = ledger()
    book.sweep(n=1)(equal)

    @book.falsify(**SQUARE)
    def below(x, y):
        return abs(x), 2.0

    result = book.result()
    assert result.verdict is LedgerVerdict.HOLDS
    assert result.method is Method.PROPERTY  # the method of the weakest attempt
    assert result.tightest == pytest.approx(1.0)
    assert result.mismatch is None
    assert below(1.0, 0.0) == (1.0, 2.0)  # returned unchanged


def test_one_breach_refutes():
    book = ledger()
    book.falsify(**SQUARE)(lambda x, y: (abs(x), 2.0))
    book.sweep(n=2)(double)
    result = book.result()
    assert result.verdict is LedgerVerdict.REFUTED
    assert result.method is Method.EXACT  # the method of the attempt that refuted the statement
    assert result.counterexample.case == {"n": 2}
    assert result.mismatch == "the verdict is refuted, holds was declared"


def test_attempts_are_stacked_on_one_function():
    book = ledger()

    @book.falsify("as it is", factor=1.0, **SQUARE)
    @book.sharper().falsify("half of it", factor=0.5, **SQUARE)
    def sides(x, y, factor):
        return abs(x), 4 * factor

    half, whole = book.result().attempts
    assert (half.role, whole.role) == (Role.SHARPER, Role.STATEMENT)
    assert half.tightest == pytest.approx(1.0)
    assert book.result().tightest == pytest.approx(0.5)


# --- domains, grids, mutants ---


def test_constants_are_keywords_and_a_mutant_changes_them():
    book = ledger()
    book.falsify(factor=1.0, mutant={"factor": 0.9}, **SQUARE)(
        lambda x, y, factor: (abs(x + y), factor * (abs(x) + abs(y)))
    )
    attempt = only(book)
    assert (attempt.power, attempt.mutant) == (Power.KILLED, "factor = 0.9")


def test_axes_are_searched_and_not_handed_over_where_nobody_asks():
    shapes = set()

    def sides(points):
        shapes.add(points.shape)
        return float(points.max()), 1.0

    def with_axis(points, n):
        assert len(points) == n
        return float(points.max()), 1.0

    domain = {"points": Array(Interval(0.0, 1.0), ("n", 2)), "n": Integer(1, 3)}
    book = ledger()
    book.falsify(extremal=[{"points": np.ones((5, 2))}], **domain)(sides)
    book.falsify(**domain)(with_axis)
    assert shapes == {(1, 2), (2, 2), (3, 2), (5, 2)}


def test_an_extremal_case_says_all_that_is_searched():
    with pytest.raises(TypeError, match="extremal cases must give y"):
        ledger().falsify(extremal=[{"x": 1.0}], **SQUARE)(lambda x, y: (x, y))


def test_keywords_are_those_of_the_function():
    with pytest.raises(TypeError, match="<lambda> has no parameter y"):
        ledger().falsify(**SQUARE)(lambda x: (x, x))
    with pytest.raises(TypeError, match="the function has no parameter bound"):
        ledger().falsify(mutant={"bound": 1}, **SQUARE)(lambda x, y: (x, x))


def test_strategies_of_hypothesis_are_domains_too():
    book = ledger()
    book.falsify(x=st.integers(0, 100), y=3)(lambda x, y: (x, 50 + y))
    assert only(book).counterexample.case == {"x": 54, "y": 3}
    with pytest.raises(
        TypeError, match="all strategies or all ranges, got both, with the ranges y"
    ):
        ledger().falsify(x=st.integers(), y=Integer(1, 2))(lambda x, y: (x, y))


def test_exact_arithmetic_is_another_keyword():
    from fractions import Fraction

    book = ledger()

    @book.falsify(n=Integer(1, 60), one=0.1, exact={"one": Fraction(1, 10)}, tolerance=0.0)
    def sum_of_tenths(n, one):
        return sum([one] * n), one * n

    assert not only(book).violated


def test_a_grid_is_every_combination():
    seen = []
    book = ledger()
    book.sweep(a=range(2), b=[5, 6], c="x")(lambda a, b, c: (seen.append((a, b, c)) or 1.0, 1.0))
    assert set(seen) == {(0, 5, "x"), (0, 6, "x"), (1, 5, "x"), (1, 6, "x")}
    assert only(book).examples == 4


def test_cases_of_a_sweep_share_what_the_grid_says():
    book = ledger()
    book.sweep(cases=[{"n": 1}, {"n": 3}], factor=1.0, mutant={"factor": 1.1})(double)
    attempt = only(book)
    assert (attempt.examples, attempt.power) == (2, Power.KILLED)


# --- identities ---


def test_identities_are_told_from_near_misses():
    book = ledger()
    book.identity(x=Interval(0.0, 3.0))(lambda x: (math.sin(2 * x), 2 * math.sin(x) * math.cos(x)))
    book.identity(x=Interval(0.0, 3.0))(lambda x: (math.sin(x), x - x**3 / 6))
    book.identity(x=[1.0, 2.0])(lambda x: (np.array([x, 2 * x]), np.array([x, x + x])))
    same, off, swept = book.result().attempts
    assert not same.violated
    assert same.power is Power.KILLED
    assert same.tightest is None
    assert 0 <= same.error < 1e-9
    assert off.violated
    assert off.error > 0.01
    assert not swept.violated
    assert book.result().tightest is None


def test_an_identity_takes_no_method_for_a_domain():
    with pytest.raises(ArgumentError, match=r"^method must be left out .* domain.*got 'numeric'$"):
        ledger().identity(x=Interval(1.0, 3.0), method="numeric")


def test_other_values_of_an_identity_are_its_mutant():
    book = ledger()
    book.identity(x=Interval(1.0, 3.0), power=2, mutant={"power": 3})(
        lambda x, power: (x * x, x**power)
    )
    book.identity(x=Interval(1.0, 3.0), mutant=lambda x: (x, x))(lambda x: (x, x))
    killed, survived = book.result().attempts
    assert (killed.power, survived.power) == (Power.KILLED, Power.SURVIVED)


def quarter(x):
    return x / 4, x


def test_a_broken_identity_shows_its_own_sides_and_not_their_difference():
    book = ledger()
    book.identity(x=[2.0])(quarter)
    found = only(book)
    assert (found.counterexample.lhs, found.sign, found.counterexample.rhs) == (0.5, "≠", 2.0)
    assert counterexample_words(found) == "lhs = 0.5 ≠ rhs = 2"
    assert found.error == pytest.approx(0.75)
    assert found.counterexample.snippet.endswith('print(lhs, "!=", rhs)')


@pytest.mark.parametrize(
    ("values", "sides"),
    [
        (([1.0, 5.0, -3.0], [1.0, 4.0, 3.0]), (-3.0, 3.0)),
        (([1.0, math.inf], [2.0, math.inf]), (1.0, 2.0)),
        (([[1.0], [-0.0]], [[1.1], [0.0]]), (1.0, 1.1)),
    ],
)
def test_of_arrays_the_two_entries_that_differ_most_are_shown(values, sides):
    book = ledger()
    book.identity(x=[1.0])(lambda x: tuple(map(np.array, values)))
    found = only(book).counterexample
    assert (found.lhs, found.rhs) == sides


@pytest.mark.parametrize("tolerance", [1e-9, 0.02, 0.6, 0.999])
@pytest.mark.parametrize("end", [-0.999, 0.0, 0.999])
def test_a_tolerance_never_hides_the_mutant_of_an_identity(tolerance, end):
    book = ledger()
    factor = 1 - end * tolerance if end > 0 else 1 / (1 + end * tolerance)
    book.identity(x=[1.0, 2.0], tolerance=tolerance)(lambda x: (x, factor * x))
    found = only(book)
    assert not found.violated
    assert found.power is Power.KILLED
    assert found.mutant.startswith("the second value times 1.0" if tolerance < 0.1 else "the")


def test_a_tolerance_of_1_would_allow_everything():
    with pytest.raises(ArgumentError, match=r"^tolerance must be in \[0, 1\), got 1"):
        ledger().identity(x=[1.0], tolerance=1)


@pytest.mark.parametrize("method", [Method.NUMERIC, "numeric"])
def test_a_method_may_be_given_by_its_name(method):
    book = ledger()
    book.sweep(n=[1, 2], method=method)(equal)
    book.identity(n=[1, 2], method=method)(equal)
    assert [attempt.method for attempt in book.result().attempts] == [Method.NUMERIC] * 2


@pytest.mark.parametrize(
    ("attempt", "method"),
    [
        *itertools.product(["sweep", "identity"], ["monte carlo", "argument", 1]),
        ("sweep", None),
    ],
)
def test_an_unknown_method_is_refused_at_once(attempt, method):
    names = "exact, numeric, property, monte_carlo"
    with pytest.raises(ArgumentError, match=f"method must be one of {names}, got"):
        getattr(ledger(), attempt)(n=[1, 2], method=method)


def test_identity_of_a_number_and_nan_fails():
    book = ledger()
    book.identity(x=1.0)(lambda x: (x, math.nan))
    assert only(book).violated


# --- around the statement ---


def test_a_step_that_fails_breaks_the_proof_alone():
    book = ledger()
    book.sweep(n=1)(equal)
    book.step("line 2", fix="take 2 n").sweep(n=1)(double)
    result = book.result()
    assert result.verdict is LedgerVerdict.HOLDS_PROOF_BROKEN
    assert result.verdict.words == "holds, proof broken"
    assert result.broken_steps[0].fix == "take 2 n"
    assert result.counterexample.case == {"n": 1}
    assert result.tightest == 1.0
    assert result.method is Method.EXACT


def test_a_step_that_stands_says_nothing_of_the_ratio():
    book = ledger()
    book.sweep(n=1, mutant=None)(lambda n: (0.5, 1.0))
    book.step("line 2").sweep(n=1)(equal)
    assert book.result().verdict is LedgerVerdict.HOLDS
    assert book.result().tightest == 0.5


def test_steps_alone_leave_the_statement_open():
    book = ledger()
    book.step("line 2").sweep(n=1)(equal)
    assert book.result().verdict is LedgerVerdict.OPEN


def test_a_broken_step_needs_what_mends_it():
    book = ledger()
    book.sweep(n=1)(equal)
    book.step("line 2").sweep(n=1)(double)
    with pytest.raises(ArgumentError, match="line 2 fails. State how the proof can be repaired"):
        book.result()


def test_a_refuted_statement_stays_refuted_whatever_its_proof():
    book = ledger()
    book.sweep(n=1)(double)
    book.step("line 2", fix="nothing").sweep(n=1)(double)
    assert book.result().verdict is LedgerVerdict.REFUTED


def test_an_edge_outside_the_conventions_refutes_nothing():
    book = ledger()
    book.sweep(n=2)(equal)
    book.edge("n >= 2").sweep(n=1)(double)
    result = book.result()
    assert result.verdict is LedgerVerdict.HOLDS
    assert [edge.subject for edge in result.edges] == ["n >= 2"]
    assert result.mismatch is None
    assert result.row()["edges"] == ["n >= 2"]


def test_an_edge_that_does_not_fail_is_a_surprise():
    book = ledger()
    book.sweep(n=2)(equal)
    book.edge("n >= 2").sweep("one point", n=1)(equal)
    assert book.result().mismatch == "nothing fails outside n >= 2: one point"


def test_an_edge_names_a_convention_of_the_paper():
    with pytest.raises(
        ArgumentError, match=r"one of the conventions in statements\.md \(n >= 2\), got 'n'"
    ):
        ledger().edge("n")


@pytest.mark.parametrize(
    ("sides", "verdict"),
    [
        ((equal, equal), LedgerVerdict.HOLDS),
        ((equal, double), LedgerVerdict.AMBIGUOUS),
        ((double, double), LedgerVerdict.AMBIGUOUS),
    ],
)
def test_readings_make_a_statement_ambiguous_and_never_refute_it(sides, verdict):
    book = ledger()
    for number, side in enumerate(sides):
        book.reading(f"reading {number}").sweep(n=1)(side)
    assert book.result().verdict is verdict


def test_a_sharper_claim_must_stand():
    book = ledger()
    book.sweep(n=1)(equal)
    book.sharper("twice").sweep("twice", n=1)(double)
    assert book.result().verdict is LedgerVerdict.HOLDS
    assert book.result().mismatch == "the sharper claim fails: twice"


# --- repairs ---


def test_attacks_on_a_repair_do_not_touch_the_verdict():
    book = ledger()
    book.sweep(n=2)(double)
    book.repair("n <= 2").sweep(n=2)(equal)
    result = book.result()
    assert result.verdict is LedgerVerdict.REFUTED
    assert result.repair_verdict is LedgerVerdict.HOLDS
    assert result.row()["repair"] == result.repair == "n <= 2"


def test_a_refuted_repair_is_a_surprise():
    book = ledger()
    book.sweep(n=1)(equal)
    book.repair("n <= 0").sweep(n=2)(double)
    assert book.result().mismatch == "the repair is refuted, too"


def test_there_is_one_repair():
    book = ledger()
    book.repair("a")
    book.repair("a")
    with pytest.raises(
        ArgumentError, match="must have at most one repair, got a second repair after 'a'"
    ):
        book.repair("b")


# --- words ---


def test_verdicts_that_need_a_reader_are_declared_with_a_reason():
    book = ledger(found="What was found.")
    book.sweep(n=1)(equal)
    book.conclude(LedgerVerdict.AMBIGUOUS, "two readings")
    book.note("And more.")
    result = book.result()
    assert result.verdict is LedgerVerdict.AMBIGUOUS
    assert result.note == "two readings What was found. And more."


@pytest.mark.parametrize(("fails", "side"), [(True, equal), (False, double)])
def test_a_reading_that_does_not_end_as_declared_fails_the_run(fails, side):
    book = ledger()
    book.reading("as declared").sweep(n=1)(equal)
    book.reading("declared to fail", fails=True).sweep(n=1)(double)
    assert book.result().with_origin({}, LedgerVerdict.AMBIGUOUS).mismatch is None
    book.reading("the other", fails=fails).sweep(n=1)(side)
    result = book.result().with_origin({}, LedgerVerdict.AMBIGUOUS)
    how = "did not fail" if fails else "failed"
    assert result.mismatch == f"a reading {how}, unlike declared: the other"


def test_the_counterexample_of_a_row_is_that_of_the_reading_that_fails_unlike_declared():
    book = ledger()
    book.reading("declared to fail", fails=True).sweep(n=1)(double)
    book.reading("declared to hold").sweep(n=3)(double)
    counterexample = book.result().counterexample
    assert counterexample is not None
    assert counterexample.case == {"n": 3}


def test_the_ratio_of_a_refuted_row_is_that_of_the_attempts_that_broke_it():
    book = ledger()
    book.sweep(n=1)(lambda n: (0.98 * n, n))
    assert book.result().tightest == pytest.approx(0.98)
    book.identity(n=1)(lambda n: (n, 2 * n))  # an equation has no ratio
    assert book.result().verdict is LedgerVerdict.REFUTED
    assert book.result().tightest is None
    book.sweep(n=1)(double)
    assert book.result().tightest == 2.0


@pytest.mark.parametrize("verdict", ["holds", "refuted", "holds_proof_broken", "wrong", "", None])
def test_what_can_be_tried_must_be_earned(verdict):
    with pytest.raises(ArgumentError, match="one of 'ambiguous', 'vacuous', 'not executable', 'o"):
        ledger().conclude(verdict, "because")


@pytest.mark.parametrize("words", ["not executable", "not_executable"])
def test_a_verdict_may_be_named_by_its_words(words):
    book = ledger()
    book.conclude(words, "it names a bound of another paper")
    assert book.result().verdict is LedgerVerdict.NOT_EXECUTABLE


def test_undecided_is_a_verdict():
    book = ledger()
    book.sweep(n=1)(equal)
    book.conclude("open", "neither a proof nor a counterexample is known")
    result = book.result().with_origin({}, LedgerVerdict.OPEN)
    assert result.verdict is LedgerVerdict.OPEN
    assert result.mismatch is None


def test_every_attempt_on_a_refuted_statement_is_violated_or_on_a_part_of_it():
    book = ledger()
    book.sweep(n=1)(double)
    book.part("the other half").sweep(n=1)(equal)
    assert book.result().with_origin({}, LedgerVerdict.REFUTED).mismatch is None
    book.sweep("once more", n=1)(equal)
    result = book.result().with_origin({}, LedgerVerdict.REFUTED)
    assert result.mismatch.startswith(
        "an attempt on the refuted statement found no violation: once more"
    )
    book = ledger()
    book.part("a part").sweep(n=1)(double)
    result = book.result().with_origin({}, LedgerVerdict.REFUTED)
    assert result.mismatch == "a part of the statement fails: a part"


def test_a_declared_verdict_excuses_no_violation():
    book = ledger()
    book.conclude("vacuous", "at no size that anybody uses")
    book.sweep(n=1)(equal)
    assert book.result().with_origin({}, LedgerVerdict.VACUOUS).mismatch is None
    book.sweep("twice", n=1)(double)
    result = book.result().with_origin({}, LedgerVerdict.VACUOUS)
    assert result.mismatch == "an attempt on the statement found a violation: twice"


def test_a_misprint_is_listed_and_must_fail_as_printed():
    book = ledger()
    book.sweep(n=1)(equal)
    book.misprint("2 n", "n").sweep(n=1)(double)
    book.misprint("i = 0", "i = 1")
    result = book.result()
    assert result.verdict is LedgerVerdict.HOLDS
    assert result.misprints == (("2 n", "n"), ("i = 0", "i = 1"))
    assert result.mismatch is None
    book.misprint("n", "m").sweep(n=1)(equal)
    assert book.result().mismatch == "the statement does not fail as printed: n, read as m"


@pytest.mark.parametrize(("factor", "narrow"), [(1.005, True), (1.02, False)])
def test_a_refutation_by_less_than_one_percent_says_so(factor, narrow):
    book = ledger()
    book.sweep(n=1)(lambda n: (factor * n, n))
    assert book.result().verdict is LedgerVerdict.REFUTED
    assert book.result().is_narrow is narrow


@pytest.mark.parametrize(
    ("domain", "words"),
    [
        ({"n": range(2, 100), "x": [0.5, 1.5]}, "n from 2 to 99, x = 0.5, 1.5"),
        ({"n": Integer(2, 9), "x": Interval(0.0, 1.0)}, "n from 2 to 9, x from 0 to 1"),
        ({"n": 3, "x": Array(Interval(0.0, 1.0), ("n",))}, "n = 3, x of shape n"),
        ({"n": Choice((1, 2)), "x": "words"}, "n = 1, 2"),
        ({"n": "a", "x": "b"}, "the inputs of the check"),
    ],
)
def test_a_row_says_for_what_it_was_tested_without_its_premises(domain, words):
    book = ledger()
    attempt = (
        book.sweep
        if all(isinstance(d, (range, list, str)) for d in domain.values())
        else (book.falsify)
    )
    attempt(end_to_end=True, mutant=None, **domain)(lambda n, x=0: (0.0, 1.0))
    assert book.result().covered == (words,)
    attempt(mutant=None, **domain)(lambda n, x=0: (0.0, 1.0))
    assert book.result().covered == (words,)


def test_a_consequence_has_a_harm():
    book = ledger()
    book.sweep(n=1)(double)
    book.consequence("a factor of two", harm="a constant")
    assert book.result().harm is Harm.CONSTANT
    with pytest.raises(ArgumentError, match="harm must be one of"):
        book.consequence("x", harm="pain")


def test_a_check_that_attacks_nothing_is_refused():
    with pytest.raises(ArgumentError, match=r"toy\.lemma1 must have at least one attempt"):
        ledger().result()


def test_an_argument_is_the_weakest_method():
    book = ledger()
    book.sweep(n=1)(equal)
    book.argue("the rest is an asymptotic claim")
    assert book.result().method is Method.ARGUMENT


# --- counterexamples ---


def test_a_counterexample_comes_with_words_and_a_program():
    book = ledger()
    book.sweep(n=3, lhs="twice the users", rhs="the users")(double)
    attempt = only(book)
    assert (attempt.lhs, attempt.rhs) == ("twice the users", "the users")
    scope = {}
    exec(attempt.counterexample.snippet, scope)  # what a reader would paste
    assert (scope["lhs"], scope["rhs"]) == (6.0, 3)


def test_a_snippet_may_be_given():
    book = ledger()
    book.sweep(
        n=3,
        snippet="""
            lhs, rhs = 6, 3
            print(lhs, ">", rhs)
        """,
    )(double)
    assert only(book).counterexample.snippet == 'lhs, rhs = 6, 3\nprint(lhs, ">", rhs)'


# --- draws ---


def rare(size, *, rng, p=0.1):
    return rng.random(size) < p


def test_monte_carlo_refutes_only_what_it_can_prove():
    book = ledger()
    for allowed, draws in ((0.05, 20_000), (0.11, 20_000), (0.5, 20_000), (0.0999, 2_000)):
        book.monte_carlo(allowed=allowed, draws=draws)(rare)
    too_often, rightly, loose, close = book.result().attempts
    assert too_often.violated
    assert not rightly.violated
    assert (
        0.75 < rightly.tightest < 0.1 / 0.11
    )  # compared with a lower bound, not with the frequency
    assert rightly.power is Power.KILLED
    assert loose.power is Power.SURVIVED
    assert not close.violated


def test_inputs_of_the_draws_are_keywords_and_a_mutant_changes_them():
    book = ledger()
    book.monte_carlo(allowed=0.2, draws=2_000, p=0.1, mutant={"p": 0.5})(rare)
    attempt = only(book)
    assert attempt.power is Power.KILLED
    assert attempt.where["p"] == 0.1
    assert attempt.failure_prob == 2e-6
    assert attempt.covered


def test_monte_carlo_refuses_what_is_no_event():
    with pytest.raises(ArgumentError, match="boolean array of shape"):
        ledger().monte_carlo(allowed=0.5, draws=10)(lambda size, *, rng: rng.random(size))


def noisy(data, size, *, rng):
    return data.sum() + rng.laplace(size=size)


def louder(data, size, *, rng):
    return data.sum() + rng.laplace(scale=2.0, size=size)


def quiet(data, size, *, rng):
    return data.sum() + 0.3 * rng.laplace(size=size)


def test_a_privacy_guarantee_is_attacked_with_an_audit():
    pair = NeighborPair([[0.0]], [[1.0]])
    book = ledger()
    result = book.audit(noisy, PureDP(1.0), pair, mutants=[quiet], draws=20_000)
    assert book.result().power is Power.KILLED
    assert 0.8 < book.result().tightest <= 1
    attempt = only(book)
    assert attempt.mutant == "3 of 3"
    assert attempt.mutants == result.mutants
    assert attempt.covered == result.pair_words
    assert attempt.failure_prob == result.total_failure_prob == pytest.approx(2e-6)
    book.audit(noisy, PureDP(0.5), pair, mutants=[quiet], draws=20_000)
    assert book.result().verdict is LedgerVerdict.REFUTED
    refuted = book.result().attempts[1]
    assert refuted.mutant == ""
    case = refuted.counterexample.case
    assert (case["left"], case["right"]) == ([[0.0]], [[1.0]])
    assert "is too small" in case["likely cause"]
    assert "def noisy(" in refuted.counterexample.snippet
    large = NeighborPair(np.zeros((31, 2)), np.r_[np.zeros((30, 2)), [[1.0, 1.0]]])
    book.audit(noisy, PureDP(0.5), large, draws=20_000)
    assert "left" not in book.result().attempts[2].counterexample.case


def test_an_audit_of_a_part_says_which_part():
    book = ledger()
    pair = NeighborPair([[0.0]], [[1.0]])
    book.part("privacy of an item").audit(noisy, PureDP(1.0), pair, draws=4_000)
    assert only(book).claim == "privacy of an item: the claim epsilon = 1 for noisy"


@pytest.mark.slow
def test_mutants_that_survive_an_audit_are_explained():
    pair = NeighborPair([[0.0]], [[1.0]])
    book = ledger()
    for mutant in (louder, noisy):  # the second is the mechanism itself, so it is not run
        book = ledger()
        book.audit(noisy, PureDP(1.0), pair, draws=4_000, mutants=[mutant])
        assert book.result().power is Power.KILLED
        told = f"{mutant.__name__} was not killed, and the row does not say why"
        assert book.result().mismatch == told
        book = ledger()
        why = {"survivors": "it has no mistake"}
        book.audit(noisy, PureDP(1.0), pair, draws=4_000, mutants=[mutant], **why)
        assert book.result().mismatch is None


def test_an_audit_of_which_no_mutant_is_killed_has_no_power():
    book = ledger()
    pair = NeighborPair([[0.0]], [[1e-9]])
    book.audit(noisy, PureDP(1.0), pair, draws=2_000, survivors="the data hardly differ")
    assert book.result().mismatch == "a mutant survived, so an attempt has no power" or (
        book.result().power is Power.KILLED  # without noise, any difference shows
    )


# --- seeds, storage ---


def test_attacks_do_not_depend_on_each_other():
    def second(first):
        book = ledger()
        if first:
            book.falsify(**SQUARE)(lambda x, y: (abs(x), 2.0))
        else:
            book.sweep(n=1)(equal)
            book.next_seed()
        book.falsify(**SQUARE)(lambda x, y: (abs(x * y), 5.0))
        return book.result().attempts[1]

    assert second(True) == second(False)


@pytest.mark.parametrize("options", [{"profile": "fast"}, {"seed": -1}])
def test_bad_settings_are_refused(options):
    with pytest.raises(ArgumentError):
        ledger(**options)


def test_rows_survive_storage():
    book = ledger(found="found")
    book.falsify(**SQUARE)(lambda x, y: (abs(x - y), 1.0))
    book.sweep(n=math.inf)(lambda n: (1.0, n))
    book.step("a line", fix="another").sweep(n=1)(double)
    book.edge("n >= 2").sweep(n=1)(double)
    book.repair("<= 4").falsify(**SQUARE)(lambda x, y: (abs(x - y), 4.0))
    book.audit(noisy, PureDP(1.0), NeighborPair([[0.0]], [[1.0]]), draws=1_000, survivors="few")
    book.consequence("nobody", harm=Harm.WORDS)
    result = book.result(seconds=1.5).with_origin({"path": "a.py"}, LedgerVerdict.REFUTED)
    assert StatementResult.from_json(result.to_json()) == result
    with pytest.raises(ValueError, match="must be 6, got 99"):
        StatementResult.from_json({**result.to_json(), "schema": 99})


def test_a_search_leaves_a_picture_of_the_ratio():
    book = ledger()
    book.falsify(x=Interval(1e-6, 1.0, log=True), y=Interval(0.0, 1.0), k=3)(
        lambda x, y, k: (x * y, 1.0)
    )
    trace = only(book).trace
    assert trace.names == ("x", "y")
    assert trace.log == (True, False)
    assert 100 <= len(trace.points) <= 400
    assert all(ratio == pytest.approx(x * y) for x, y, ratio in trace.points)
    assert replace(trace, points=()).points == ()


def test_a_picture_shows_the_counterexample():
    book = ledger()
    book.falsify(x=Interval(0.0, 2.0))(lambda x: (x * x, 1.0 + (x < 1.9)))
    attempt = only(book)
    assert attempt.violated
    if attempt.trace is not None:
        assert attempt.trace.points[-1][0] == attempt.counterexample.case["x"]


def test_a_repair_is_no_decorator_by_itself() -> None:
    from dpaudit.ledger.attacks import Attack
    from dpaudit.properties.attempt import Role

    with pytest.raises(TypeError, match=r"such as @ledger.repair\(...\).falsify"):
        Attack(None, Role.REPAIR)(lambda x: x)  # type: ignore[arg-type]
