"""Tests of changes between two runs, with one hand-made case for each kind of change."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit import ArgumentError
from dpaudit.ledger.coverage import BROKE_OFF, NOT_RUN, open_row
from dpaudit.ledger.rows import LedgerVerdict
from dpaudit.ledger.section import STATEMENTS as SECTION
from dpaudit.report.changes import (
    EpsilonChange,
    Movement,
    What,
    audit_changes,
    epsilon_change,
    less_than_before,
)
from dpaudit.report.comparison import (
    LARGEST_COMMENT,
    Comparison,
    Side,
    compare,
    comparison_lines,
    comparison_markdown,
)
from dpaudit.results import (
    Accumulated,
    AuditResult,
    Expectation,
    MutantStatus,
    SequentialPath,
    Verdict,
)
from tests.records import changed
from tests.report.hand_made import (
    INF,
    OTHER_PAIR,
    claim,
    estimate,
    mutant,
    result,
    row,
    run,
)

REFUTED = result(verdict=Verdict.REFUTED, epsilon=estimate(1.8), mutants=())
KNOWN = replace(REFUTED, expected=Expectation.REFUTED)
FINE = result()
SILENT = result(verdict=Verdict.NO_POWER, mutants=(mutant("halved", MutantStatus.SURVIVED),))
BLUNT = replace(SILENT, mutants=(mutant("mine", MutantStatus.SURVIVED, given=True),))
TOGETHER = replace(FINE, accumulated=Accumulated(5, 1, 30.0, 14.5, True))
FEWER = {"draws": {"explore": 300, "certify": 700}}
HOLDS, BROKEN = row(), row(LedgerVerdict.REFUTED)

AUDITS: dict[str, tuple[Any, Any, What | None]] = {
    "newly refuted": (FINE, REFUTED, What.REFUTED),
    "refuted where silence meant nothing": (SILENT, REFUTED, What.REFUTED),
    "refuted with fewer draws": (FINE, replace(REFUTED, **FEWER), What.REFUTED),
    "refuted, of another claim": (FINE, replace(REFUTED, claim=claim(0.5)), What.REFUTED),
    "newly refuted by all runs together": (FINE, TOGETHER, What.REFUTED),
    "refuted by all runs together, then not": (TOGETHER, FINE, What.OTHER),
    "no longer declared": (KNOWN, REFUTED, What.REFUTED),
    "known violation lost": (KNOWN, replace(FINE, expected=Expectation.REFUTED), What.LOST),
    "lost, with fewer draws": (
        KNOWN,
        replace(FINE, expected=Expectation.REFUTED, **FEWER),
        What.LOST,
    ),
    "less power": (FINE, SILENT, What.POWER),
    "refuted, then a given mutant survives": (REFUTED, BLUNT, What.POWER),
    "refuted, then silent": (REFUTED, SILENT, What.OTHER),
    "computed to be within the claim": (
        REFUTED,
        replace(SILENT, epsilon=estimate(1.0, 1.0), draws={"explore": 0, "certify": 0}),
        What.FIXED,
    ),
    "a given mutant survives": (SILENT, BLUNT, What.POWER),
    "less power, with fewer draws": (FINE, replace(SILENT, **FEWER), What.OTHER),
    "less power, of another claim": (FINE, replace(SILENT, claim=claim(2.0)), What.OTHER),
    "fixed": (REFUTED, FINE, What.FIXED),
    "fixed, no mark any more": (KNOWN, FINE, What.FIXED),
    "not refuted, with fewer draws": (REFUTED, replace(FINE, **FEWER), What.OTHER),
    "not refuted, of another claim": (REFUTED, replace(FINE, claim=claim(2.0)), What.OTHER),
    "not refuted, at another level": (REFUTED, replace(FINE, failure_prob=1e-9), What.OTHER),
    "power again": (SILENT, replace(FINE, mutants=()), What.FIXED),
    "power, of another claim": (SILENT, replace(FINE, claim=claim(2.0), mutants=()), What.OTHER),
    "declared now": (REFUTED, KNOWN, What.OTHER),
    "found now, as declared": (replace(FINE, expected=Expectation.EITHER), KNOWN, What.OTHER),
    "still fine": (FINE, replace(FINE, seed=3), None),
    "still refuted": (REFUTED, replace(REFUTED, seed=3), None),
    "still known": (KNOWN, replace(KNOWN, seed=3), None),
    "still silent": (SILENT, replace(SILENT, seed=3), None),
}


@pytest.mark.parametrize("name", AUDITS)
def test_what_became_of_an_audit(name):
    old, new, what = AUDITS[name]
    found = [c for c in audit_changes(old, new) if c.what not in (What.SURVIVED, What.KILLED)]
    found = [
        change for change in found if change.before not in [status.value for status in MutantStatus]
    ]
    assert [change.what for change in found] == [what] * (what is not None)
    for change in found:
        assert (change.before, change.now) == (old.status.word, new.status.word)
        assert change.reason


@pytest.mark.parametrize(
    ("changes", "what"), [({}, What.SURVIVED), (FEWER, What.OTHER), ({"claim": claim(2)}, None)]
)
def test_mutants_that_survive_now_are_told_and_why_where_there_was_more_to_kill_them_with(
    changes, what
):
    after = (mutant("halved", MutantStatus.KILLED), mutant("removed", MutantStatus.SURVIVED))
    (change,) = audit_changes(FINE, replace(FINE, mutants=after, **changes))
    assert change.what is (what or What.OTHER)
    assert change.reason.startswith("removed")
    assert ("(" in change.reason) == (what is not What.SURVIVED)
    (back,) = audit_changes(replace(FINE, mutants=after), FINE)
    assert back.what is What.KILLED


def test_mutants_of_one_name_are_told_apart_by_their_order():
    twice = (mutant("halved", MutantStatus.KILLED), mutant("halved", MutantStatus.SURVIVED))
    old, new = (replace(FINE, mutants=mutants) for mutants in (twice, (twice[0], twice[0])))
    assert [change.what for change in audit_changes(old, new)] == [What.KILLED]
    assert [change.what for change in audit_changes(new, old)] == [What.SURVIVED]


def test_mutants_that_were_not_run_or_are_gone_are_no_survivors():
    gone = replace(FINE, mutants=(mutant("halved", MutantStatus.KILLED),))
    unrun = replace(FINE, mutants=(*gone.mutants, mutant("removed", MutantStatus.NOT_RUN)))
    assert list(audit_changes(FINE, gone)) == list(audit_changes(FINE, unrun)) == []


def test_less_to_find_a_violation_with():
    assert (
        less_than_before(FINE, replace(FINE, seed=9, draws={"explore": 0, "certify": 10**6})) == ""
    )
    assert less_than_before(FINE, replace(FINE, failure_prob=1e-3)) == ""
    computed = result(epsilon=estimate(1.0, 1.0), draws={"explore": 0, "certify": 0})
    assert "computed exactly before, 100,000 draws now" in less_than_before(computed, FINE)
    assert less_than_before(FINE, computed) == ""
    bets = SequentialPath("refuted", 100_000, 10.0, (64,), (11.0,))
    assert (
        less_than_before(FINE, changed(FINE, sequential=bets, draws={"explore": 0, "certify": 64}))
        == ""
    )
    point = {**claim(), "epsilon": 7.0}  # the point of a curve at which the claim was compared
    assert less_than_before(FINE, replace(FINE, claim=point)) == ""


STATEMENTS: dict[str, tuple[Any, Any, What | None]] = {
    "refuted": (HOLDS, replace(BROKEN, expected=LedgerVerdict.HOLDS), What.STATEMENT),
    "refuted, as declared": (HOLDS, BROKEN, What.STATEMENT),
    "holds now": (BROKEN, HOLDS, What.STATEMENT),
    "broke off": (
        HOLDS,
        row(LedgerVerdict.OPEN, note=f"{BROKE_OFF}boom", expected=LedgerVerdict.HOLDS),
        What.STATEMENT,
    ),
    "holds in a smaller profile": (
        replace(BROKEN, origin={"profile": "full"}),
        replace(HOLDS, origin={"profile": "quick"}),
        What.OTHER,
    ),
    "checked now": (row(LedgerVerdict.OPEN), HOLDS, What.NEW),
    "declared otherwise": (
        HOLDS,
        replace(HOLDS, expected=LedgerVerdict.REFUTED),
        What.UNDECLARED,
    ),
    "as declared": (replace(HOLDS, expected=LedgerVerdict.REFUTED), HOLDS, What.FIXED),
    "other words": (HOLDS, replace(HOLDS, stated=replace(HOLDS.stated, text="x")), What.OTHER),
    "the same": (HOLDS, replace(HOLDS, seconds=9.0), None),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_what_became_of_a_statement(name):
    old, new, what = STATEMENTS[name]
    assert [change.what for change in SECTION.changes(old, new)] == [what] * (what is not None)


# --- runs -----------------------------------------------------------------------------------------


def both(old: Any, new: Any, **asked: Any) -> Comparison:
    sides = (
        Side.of(name, run(), [*records]) for name, records in (("before", old), ("after", new))
    )
    return compare(*sides, **asked)


def test_every_kind_of_change_is_told_with_its_name_and_what_is_worse_comes_first():
    """Check that every kind of change is named, and that worse changes come first.

    One comparison holds all kinds of changes. A comparison that ignores one kind of change fails
    this test.
    """
    survivor = (mutant("halved", MutantStatus.KILLED), mutant("removed", MutantStatus.SURVIVED))
    pairs = {
        What.REFUTED: (FINE, REFUTED),
        What.LOST: (KNOWN, replace(FINE, expected=Expectation.REFUTED)),
        What.STATEMENT: (HOLDS, BROKEN),
        What.UNDECLARED: (HOLDS, replace(HOLDS, expected=LedgerVerdict.REFUTED)),
        What.GONE: (FINE, None),
        What.POWER: (FINE, replace(SILENT, mutants=())),
        What.SURVIVED: (FINE, replace(FINE, mutants=survivor)),
        What.FIXED: (REFUTED, FINE),
        What.KILLED: (replace(FINE, mutants=survivor), FINE),
        What.NEW: (None, FINE),
        What.OTHER: (REFUTED, KNOWN),
    }
    assert list(pairs) == list(What)

    def named(record: Any, name: str) -> Any:
        if hasattr(record, "stated"):
            return replace(record, stated=replace(record.stated, id=name))
        return replace(record, id=name)

    sides = [
        [named(pair[at], what.value) for what, pair in pairs.items() if pair[at] is not None]
        for at in (0, 1)
    ]
    found = both(*sides)
    assert [change.what for change in found.changes] == list(What)
    assert [change.id for change in found.changes] == [what.value for what in What]
    assert [change.what for change in found.worse] == list(What)[:5]
    assert [change.what for change in found.others] == list(What)[5:]
    tolerant = both(*sides, may_be_missing=True)
    assert [change.what for change in tolerant.worse] == list(What)[:4]
    assert set(tolerant.worse) | set(tolerant.others) == set(found.changes)
    text = "\n".join(comparison_lines(found)) + comparison_markdown(found)
    for what in What:
        assert text.count(what.value) >= 2


def test_less_power_by_new_draws_fails_nothing_unless_asked():
    found = both([FINE], [replace(SILENT, seed=3)])
    (changed,) = (change for change in found.others if change.what.value == "less power")
    assert found.worse == ()
    strict = both([FINE], [replace(SILENT, seed=3)], power_counts=True)
    assert strict.worse == (changed,)


def test_the_same_code_and_seed_are_the_same():
    again = changed(FINE, seconds=9.0, mechanism_seconds=8.0, versions={"numpy": "9"})
    found = both([FINE, HOLDS], [again, replace(HOLDS, seconds=3.0)])
    assert found.same == 2
    assert found.changes == found.epsilons == ()
    assert both([FINE], [replace(FINE, log_e_values=(0.5, -0.5))]).same == 1  # older: none
    assert comparison_lines(found)[-1] == ("0 worse, 0 other changes, 0 epsilons moved, 2 the same")
    other = replace(FINE, epsilon=estimate(0.9000000000000001))
    assert both([FINE], [other]).same == 0


def test_an_epsilon_that_moved_is_counted_and_is_not_worse():
    names = [f"audit_x::a{i}" for i in range(4)]
    old = [computed(1.0, id=name) for name in names]
    new = [computed(0.5, id=names[0]), drawn(0.7, id=names[1]), drawn(1.2, id=names[2]), old[3]]
    found = both(old, new)
    moves = [one.movement for one in found.epsilons]
    assert moves == [Movement.FELL, Movement.OVERLAP, Movement.ROSE]
    assert found.worse == ()
    assert comparison_lines(found)[-1].endswith("2 epsilons moved, 1 the same")


def test_statements_that_nobody_looked_at_are_gone_and_not_changed():
    unread = open_row(HOLDS.stated, f"{NOT_RUN}its check is elsewhere")
    (change,) = both([HOLDS], [unread]).changes
    assert change.what is What.GONE
    assert both([unread], [unread]).changes == ()


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"problems": ("audits/audit_x.py::audit_one: boom",)}, "it failed: boom"),
        ({"skipped": ("audits/audit_x.py::audit_one: no polars",)}, "it was skipped: no polars"),
        ({"complete": False}, "in a run that was interrupted"),
        ({}, "it is not there"),
    ],
)
def test_why_an_audit_is_gone(facts, words):
    found = compare(Side.of("a", run(), [FINE]), Side.of("b", run(**facts), []))
    assert found.changes[0].reason.endswith(words)


def test_a_new_audit_that_fails_is_worse():
    assert [change.what for change in both([], [REFUTED]).worse] == [What.REFUTED]
    assert [change.what for change in both([], [BLUNT]).worse] == [What.UNDECLARED]
    assert both([], [KNOWN]).worse == ()


def test_how_the_runs_differ_is_said():
    facts = {"profile": "full", "seed": 7, "failure_prob": 1e-5, "problems": ("boom",)}
    old = replace(FINE, origin={**FINE.origin, "sources": {"x.py": "a"}, "versions": {"n": "1"}})
    new = replace(FINE, origin={**FINE.origin, "sources": {"x.py": "b"}, "versions": {"n": "2"}})
    found = compare(Side.of("a", run(), [old]), Side.of("b", run(complete=False, **facts), [new]))
    assert found.notes == (
        "profile quick before, full now",
        "seed 0 before, 7 now",
        "failure_prob 1e-06 before, 1e-05 now",
        "the run now was interrupted, so some records are missing",
        "a problem of the run now: boom",
        "versions that differ: n 1 before, 2 now",
        "files that differ: x.py",
    )


def test_one_record_is_compared_with_its_like_alone():
    whole = Side.of("runs", run(), [FINE, replace(REFUTED, id="other"), HOLDS])
    for old, new in ((Side.of("f", None, [FINE]), whole), (whole, Side.of("f", None, [FINE]))):
        assert compare(old, new).changes == ()
        assert compare(old, new).same == 1
    with pytest.raises(ArgumentError, match="OLD and NEW must hold the same audit or statement"):
        compare(Side.of("f", None, [FINE]), Side.of("g", None, [HOLDS]))


RECORDS = st.sampled_from([FINE, REFUTED, KNOWN, SILENT, BLUNT, HOLDS, BROKEN])
SIDES = st.lists(RECORDS, max_size=7)


@given(SIDES, SIDES)
def test_a_comparison_is_whole(old, new):
    """Check that every record is the same, changed, gone or new.

    A record compared with itself is the same.
    """
    found = both(old, new)
    assert both(new, new).changes == both(new, new).epsilons == ()
    assert set(found.worse).isdisjoint(found.others)
    assert len(found.worse) + len(found.others) == len(found.changes)
    for side, other, what in ((found.old, found.new, What.GONE), (found.new, found.old, "")):
        alone = {id for _, id in {*side.records} - {*other.records}}
        if what is What.GONE:
            assert {change.id for change in found.changes if change.what is what} == alone
        else:
            assert {change.id for change in found.changes if not change.before} == alone
    order = [list(What).index(change.what) for change in found.changes]
    assert order == sorted(order)


# --- words ----------------------------------------------------------------------------------------


def many(count: int) -> Comparison:
    old = [replace(FINE, id=f"audit_x::a{i}[{'y' * 300}]") for i in range(count)]
    new = [replace(REFUTED, id=one.id, reason="because " * 99) for one in old]
    return both(old, new)


def test_a_comment_has_room_for_all_or_says_how_many_more():
    found = many(120)
    text = comparison_markdown(found)
    assert 0.9 * LARGEST_COMMENT < len(text) <= LARGEST_COMMENT
    shown = text.count("| newly refuted |")
    assert f"| {120 - shown} more |" in text
    assert text.count("<details>") == text.count("</details>")
    for limit in (2_000, 10_000):
        small = comparison_markdown(found, limit)
        assert len(small) <= limit
        assert small.startswith("### dpaudit: 120 worse")
        assert "an epsilon moved if" in small
    assert " more |" not in comparison_markdown(many(3))


def test_nothing_in_a_comment_is_markup_of_somebody_else():
    evil = "<img src=x> @everyone `a|b` [x](http://y) **b** __c__ #1 \n| x |\\"
    old, new = (replace(r, id=f"audit_x::{evil}", reason=evil) for r in (FINE, REFUTED))
    text = comparison_markdown(both([old], [new]))
    rows = [line for line in text.splitlines() if line.startswith("| newly refuted")]
    assert len(rows) == 1
    assert rows[0].count("|") == 6
    cells = re.sub(r"</?code>|&#\d+;", "", rows[0])
    assert not set("<@`[]*_#\\(!") & set(cells)


def test_lines_call_an_estimate_an_estimate_and_give_the_chance_of_an_error():
    lines = comparison_lines(both([FINE], [replace(FINE, seed=1, epsilon=estimate(0.7))]))
    (line,) = [line for line in lines if FINE.id in line]
    assert "estimate only: estimated 0.9 before, 0.7 now; certified >= 0.9 before, >= 0.7" in line
    assert "no change is certified" in line
    text = "\n".join(comparison_lines(both([computed(0.5)], [FINE])))
    assert "rose: " in text
    assert ">= 0.5 and <= 0.5 before, >= 0.9 now" in text
    assert "wrong with probability <= 1e-6" in text


def test_lines_name_the_largest_estimates_and_count_the_others():
    names = [f"audit_x::a{i}" for i in range(11)]
    old = [replace(FINE, id=name) for name in names]
    new = [replace(FINE, id=n, epsilon=estimate(1 + i / 10)) for i, n in enumerate(names)]
    lines = [line for line in comparison_lines(both(old, new)) if line.startswith("epsilon")]
    assert [line.split()[1] for line in lines[:-1]] == names[:2:-1]
    assert lines[-1] == "epsilon  estimate only: 3 more audits"


# --- epsilons -------------------------------------------------------------------------------------


def computed(epsilon: float, **changes: Any) -> AuditResult:
    return result(epsilon=estimate(epsilon, epsilon), **changes)


def drawn(epsilon: float, upper: float = INF, **changes: Any) -> AuditResult:
    return result(epsilon=estimate(epsilon, upper), **changes)


@pytest.mark.parametrize(
    ("old", "new", "movement"),
    [
        (computed(1.0), computed(1.1), Movement.ROSE),
        (computed(1.0), computed(1.0 + 1e-12), Movement.OVERLAP),
        (computed(1.0), computed(INF), Movement.ROSE),
        (computed(INF), computed(INF), Movement.OVERLAP),
        (computed(INF), drawn(2.0), Movement.OVERLAP),
        (computed(1.0), drawn(1.1), Movement.ROSE),
        (computed(1.0), drawn(0.2), Movement.OVERLAP),  # a lower bound shows no decrease
        (drawn(0.2, 0.9), drawn(1.0, 1.5), Movement.ROSE),
        (drawn(0.2, 1.1), drawn(1.0, 1.5), Movement.OVERLAP),
        (drawn(0.2), drawn(5.0), Movement.ESTIMATE),
    ],
)
def test_an_epsilon_moved_only_where_the_intervals_exclude_each_other(old, new, movement):
    back = Movement.FELL if movement is Movement.ROSE else movement
    assert epsilon_change(old, new).movement is movement
    assert epsilon_change(new, old).movement is back


def test_a_number_that_is_not_certified_moves_nothing():
    new = result(epsilon=estimate(5.0, certified=False))
    assert epsilon_change(computed(1.0), new).movement is Movement.NOT_COMPARABLE


def test_datasets_and_deltas_that_differ_are_not_compared():
    old = computed(1.0)
    for pair in (OTHER_PAIR, None):
        found = epsilon_change(old, computed(2.0, pair=pair))
        assert found.movement is Movement.NOT_COMPARABLE
        assert "pairs" in found.reason
    found = epsilon_change(old, computed(2.0, claim=claim(1.0, 1e-5)))
    assert found.movement is Movement.NOT_COMPARABLE
    assert "at delta = 0 before and at 1e-05 now" in found.reason


ENDS = st.tuples(st.floats(0, 10), st.floats(0, 10) | st.just(INF)).map(sorted)


@given(ENDS, ENDS)
def test_intervals_that_share_a_number_never_move(before, now):
    """Check that intervals that share a number never count as a move.

    A true epsilon that lies in both intervals explains both results.
    """
    found: EpsilonChange = epsilon_change(drawn(*before), drawn(*now))
    if max(before[0], now[0]) <= min(before[1], now[1]):
        assert not found.has_moved
    elif found.movement is not Movement.OVERLAP:  # the two values differ only by rounding
        assert found.movement is (Movement.ROSE if now[0] > before[1] else Movement.FELL)
