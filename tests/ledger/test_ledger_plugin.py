"""Tests of statement checks under pytest, from the outside.

The tests cover collection, output and storage.
"""

from __future__ import annotations

from fnmatch import fnmatch

import pytest

TABLE = """
# Statements of a paper

## p.first: Lemma 1

x <= x + 1

- kind: lemma

## p.wrong: Lemma 2

2 x <= x

- kind: lemma

## p.vague

it is small

- kind: claim
- hides: O(1)

## p.later

the rest | the end

- kind: theorem
- rests on: p.wrong

## p.own

a statement of our own

- kind: remark
"""

HEAD = """
import pytest
from dpaudit import statement
from dpaudit.ledger import LedgerVerdict

"""

FIRST = """
@statement("p.first")
def anything(ledger):
    '''x <= x + 1'''
    ledger.sweep(x=[1.0, 2.0])(lambda x: (x, x + 1))
"""

WRONG = """
@statement("p.wrong", expected="refuted")
def doubling(ledger):
    '''2 x <= x'''
    ledger.sweep(x=[1.0, 2.0])(lambda x: (2 * x, x))
    ledger.repair("2 x <= 2 x").sweep(x=[1.0, 2.0])(lambda x: (2 * x, 2 * x))
"""

VAGUE = """
@statement("p.vague", expected=LedgerVerdict.NOT_EXECUTABLE)
def small(ledger):
    '''it is small'''
    ledger.conclude("not_executable", "It has no meaning.")
"""

OWN = """
@statement("p.own", kind="remark")
def own(ledger):
    '''a statement of our own'''
    ledger.argue("It is clear.")
"""


LEDGER = "paper/ledger_paper.py"


@pytest.fixture
def project(home):
    """Return a function that makes a project whose checks the caller writes."""

    def make(*parts, table=TABLE):
        home.put("pytest.ini", "[pytest]\ndpaudit_collect = true\n")
        if table is not None:
            home.put("paper/statements.md", table)
        home.put(LEDGER, HEAD + "".join(parts))
        return home

    return make


def run(home, *args):
    return home.pytest("--import-mode=importlib", *args)


def workers(home, *args):
    """Run with two workers, in separate processes."""
    return home.process("-m", "pytest", "-p", "no:cacheprovider", "-n2", *args)


def rows(home, out="out"):
    return home.json(f"{out}/results.json")["statements"]


def problems(home, out="out"):
    """Return the problems of a run, without those of statements without a check."""
    found = home.json(f"{out}/results.json")["run"]["problems"]
    return [problem for problem in found if "has no check" not in problem]


UNCHECKED = 1
"""Exit code if nothing fails, but statements of the table have no check."""


# --- verdicts ---


def test_verdicts_have_their_own_words(project):
    here = project(FIRST, WRONG, VAGUE, OWN)
    result = run(here, "-v", "--dpaudit-out=out")
    assert result.code == UNCHECKED
    result.matches(
        "*anything HOLDS*",
        "*doubling REFUTED*",
        "*small NOT EXECUTABLE*",
        "*own HOLDS*",
        "*= ledger =*",
        "4 statements: 1 refuted, 2 hold, 1 not executable",
        "of these 1 by argument only",
        "*2 holds, 1 refuted, 1 not executable*",
    )
    assert "FAIL" not in result.out
    found = rows(here)
    assert [(row["id"], row["verdict"]) for row in found] == [
        ("p.first", "holds"),
        ("p.wrong", "refuted"),
        ("p.vague", "not_executable"),
        ("p.later", "open"),
        ("p.own", "holds"),
    ]
    assert [row["kind"] for row in found] == ["lemma", "lemma", "claim", "theorem", "remark"]
    assert {row["paper"] for row in found} == {"paper"}
    assert found[1]["counterexample"] == {
        "case": {"x": 1.0}, "lhs": 2.0, "rhs": 1.0, "exact": False, "nan": False, "snippet": ""
    }  # fmt: skip
    assert found[1]["repair_verdict"] == "holds"
    assert found[3]["note"] == "No check was written yet."
    assert found[3]["statement"] == "the rest | the end"
    stored = sorted(path.name for path in (here.path / "out/statements").iterdir())
    assert stored == ["p.first.json", "p.own.json", "p.vague.json", "p.wrong.json"]
    origin = here.json("out/statements/p.wrong.json")["origin"]
    assert origin["kind"] == "file"
    assert (origin["path"], origin["item"]) == ("paper/ledger_paper.py", "doubling")
    assert origin["profile"] == "quick"
    assert "hypothesis" in origin["versions"]


def test_a_verdict_that_was_not_declared_fails_the_run_and_is_told(project):
    here = project(WRONG.replace(', expected="refuted"', ""))
    result = run(here, "--dpaudit-out=out")
    assert result.code == 1
    result.matches(
        "REFUTED (holds was declared)  p.wrong",
        "  statement  2 x <= x",
        "  attacked   exact, ratio 2, 1 example, *",
        "  repair     holds: 2 x <= 2 x",
        "  found      lhs = 2 > rhs = 1",
        "  where      x = 1",
        "  replay     python -m pytest --dpaudit paper/ledger_paper.py::doubling --dpaudit-prof*",
        "*1 not as declared*",
    )
    assert rows(here)[1]["verdict"] == "refuted"
    assert problems(here) == []


def test_a_refutation_that_is_gone_and_a_broken_repair_fail_the_run(project):
    gone = FIRST.replace('"p.first"', '"p.first", expected="refuted"')
    broken = WRONG.replace("lambda x: (2 * x, 2 * x)", "lambda x: (3 * x, 2 * x)")
    result = run(project(gone, broken))
    assert result.code == 1
    result.matches(
        "HOLDS (refuted was declared)  p.first",
        "REFUTED (the repair is refuted)  p.wrong",
        "  found      lhs = 3 > rhs = 2",
        "*2 not as declared*",
    )


def test_nothing_is_collected_unless_the_project_asks(home):
    home.put("pytest.ini", "[pytest]")
    home.put(LEDGER, HEAD + OWN)
    assert run(home).code == 5
    assert run(home, "--dpaudit").code == 0


def test_functions_without_a_mark_keep_their_meaning(project):
    result = run(
        project("\ndef test_plain():\n    assert pytest\n\ndef helper(ledger):\n    1 / 0\n")
    )
    assert result.code == 0
    result.matches("*1 passed*")
    assert "ledger =" not in result.out


# --- faults of a check ---


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            FIRST.replace("p.first", "p.frist"),
            "p.frist must be a statement of paper/statements.md. Add it there",
        ),
        (
            OWN.replace("p.own", "p.first"),
            "the docstring of the check of p.first begins with 'a statement of our own'. It must "
            "begin with the statement in the words of paper/statements.md: x <= x + 1",
        ),
        (
            FIRST.replace("'''x <= x + 1'''", "pass"),
            "the docstring of the check of p.first is missing. It must begin with the statement*",
        ),
        (
            FIRST.replace("(ledger)", "()").replace("    ledger.", "    print"),
            "the check of p.first must take the fixture `ledger`, with which it makes attempts. "
            "Write def anything(ledger)",
        ),
        (
            "\ndef test_plain(ledger):\n    pass\n",
            "the fixture `ledger` is for checks of statements. Mark test_plain with @statement*",
        ),
        (
            FIRST.replace("(ledger)", "(ledger, auditor)"),
            "the fixture `auditor` is for audits: in a check of a statement call ledger.audit",
        ),
        (
            FIRST.replace("\n@", '\n@pytest.mark.parametrize("n", [1, 2])\n@').replace(
                "(ledger)", "(ledger, n)"
            ),
            "a check of a statement must not be parametrised, because p.first has one verdict. *",
        ),
    ],
    ids=[
        "unknown id",
        "other words",
        "no words",
        "no fixture",
        "no mark",
        "another fixture",
        "parametrised",
    ],
)
def test_a_wrong_check_ends_in_one_sentence(project, code, words):
    result = run(project(code))
    assert result.code == 1
    result.matches(words)
    assert "Traceback" not in result.out
    assert "INTERNALERROR" not in result.out


def test_an_id_without_a_table_is_told_where_it_would_be(project):
    silent = FIRST.replace("'''x <= x + 1'''", "pass")
    result = run(project(silent, table=None))
    assert result.code == 1
    result.matches(
        "p.first must have a text, got neither a statements.md next to ledger_paper.py nor *"
    )


def test_a_table_that_cannot_be_read_is_a_problem_and_no_crash(project):
    here = project(FIRST, OWN, table="| id | statement |\n|---|---|\n| p.first |\n")
    result = run(here, "--dpaudit-out=out")
    assert result.code == 1
    result.matches(
        "*statements.md must hold at least one statement. Add headings such as ## paper.name: *"
    )
    assert any(
        "statements.md must hold at least one statement" in problem for problem in problems(here)
    )


def test_a_check_outside_a_ledger_is_refused(project):
    here = project(FIRST)
    here.put("test_other.py", HEAD + OWN)
    result = run(here, "test_other.py")
    assert result.code == 1
    result.matches("the check of p.own must lie in a file ledger_?.py, got test_other.py")


def test_two_checks_of_one_statement_are_refused(project):
    here = project(FIRST)
    here.put("paper/ledger_more.py", HEAD + FIRST)
    result = run(here)
    assert result.code == 4
    assert fnmatch(result.err, "*two checks have the id p.first: *anything and *anything; one*")


def test_a_check_that_does_nothing_is_told_and_stays_open(project):
    here = project("\n@statement(\"p.first\")\ndef nothing(ledger):\n    'x <= x + 1'\n")
    result = run(here, "--dpaudit-out=out")
    assert result.code == 1
    result.matches("p.first must have at least one attempt, got none. Call ledger.falsify")
    assert rows(here)[0]["verdict"] == "open"
    assert rows(here)[0]["note"] == (
        "The check broke off: p.first must have at least one attempt, got none. Call ledger.falsify"
    )


def test_a_bug_in_a_check_stays_a_failure_and_the_row_open(project):
    bug = FIRST + "    raise RuntimeError('oops')\n"
    here = project(bug, WRONG)
    result = run(here, "--dpaudit-out=out")
    assert result.code == 1
    result.matches("*RuntimeError: oops*", "*1 failed, 1 refuted*")
    first, wrong, *_ = rows(here)
    assert (first["verdict"], first["note"]) == ("open", "The check broke off: RuntimeError: oops")
    assert wrong["verdict"] == "refuted"
    assert problems(here) == ["paper/ledger_paper.py::anything: RuntimeError: oops"]


def test_a_fixture_that_breaks_leaves_the_row_open(project):
    broken = "\n@pytest.fixture\ndef data():\n    raise OSError('no data')\n"
    here = project(broken, FIRST.replace("(ledger)", "(ledger, data)"))
    result = run(here, "--dpaudit-out=out")
    assert result.code == 1
    assert rows(here)[0]["note"] == "The check broke off: OSError: no data"


def test_what_is_no_plain_data_is_stored_as_words(project):
    odd = """
@statement("p.first")
def odd(ledger):
    '''x <= x + 1'''
    ledger.monte_carlo(allowed=0.15, draws=9000, x={1, 2}, f=len)(
        lambda size, *, rng, x, f: rng.random(size) < 0.1
    )
"""
    here = project(odd)
    assert run(here, "--dpaudit-out=out").code == UNCHECKED
    assert rows(here)[0]["verdict"] == "holds"


def test_a_claim_that_is_not_a_number_is_refuted_and_stored(project):
    nan = FIRST.replace("(x, x + 1)", "(x, float('nan'))").replace(
        '"p.first"', '"p.first", expected="refuted"'
    )
    here = project(nan)
    assert run(here, "--dpaudit-out=out").code == UNCHECKED
    assert rows(here)[0]["counterexample"]["rhs"] == "-inf"


def test_xfail_does_not_swallow_a_verdict(project):
    marked = WRONG.replace(', expected="refuted"', "").replace("\n@", "\n@pytest.mark.xfail\n@", 1)
    result = run(project(marked))
    assert result.code == 1
    result.matches("xfail must not be used for checks of statements. Write @statement*")


# --- no row goes missing ---


def test_rows_that_were_not_run_are_open_and_say_so(project):
    here = project(FIRST, WRONG, OWN)
    assert run(here, "-k", "p.wrong", "--dpaudit-out=out").code == 0
    found = {row["id"]: row for row in rows(here)}
    assert [row["verdict"] for row in found.values()] == ["open", "refuted", "open", "open", "open"]
    assert found["p.first"]["note"] == "not run: its check is paper/ledger_paper.py::anything"
    assert found["p.own"]["note"] == "not run: its check is paper/ledger_paper.py::own"
    assert found["p.own"]["statement"] == "a statement of our own"
    assert found["p.later"]["note"] == "No check was written yet."
    assert run(here, "-k", "anything", "--dpaudit-out=out").code == 0
    assert rows(here)[0]["verdict"] == "holds"
    assert run(here, "paper/ledger_paper.py::doubling", "--dpaudit-out=other").code == 0
    assert [row["verdict"] for row in rows(here, "other")] == [
        "open", "refuted", "open", "open", "open",
    ]  # fmt: skip


def test_what_another_version_says_again_takes_over_what_was_found(project):
    table = TABLE + "\n## p.again: Lemma 7\n\ntwice x is at most x\n\n- same as: p.wrong\n"
    here = project(FIRST, WRONG, table=table)
    assert run(here, "--dpaudit-out=out").code == UNCHECKED
    again = {row["id"]: row for row in rows(here)}["p.again"]
    assert (again["verdict"], again["statement"]) == ("refuted", "twice x is at most x")
    assert again["note"] == "Checked as p.wrong, which says the same."
    assert run(here, "-k", "p.first", "--dpaudit-out=other").code == 0
    assert {row["id"]: row["verdict"] for row in rows(here, "other")}["p.again"] == "open"
    assert run(here, "--dpaudit-out=out").code == UNCHECKED
    assert problems(here) == []
    # A resumed run keeps the stored result, although the check now finds something else.
    project(FIRST, WRONG.replace("(2 * x, x)", "(x, x)").replace(', expected="refuted"', ""),
            table=table)  # fmt: skip
    run(here, "--dpaudit-out=out", "--dpaudit-resume", "paper/ledger_paper.py::doubling")
    found = {row["id"]: row["verdict"] for row in rows(here)}
    assert found["p.again"] == found["p.wrong"]


LATER = """
@statement("p.later", expected="open")
def later(ledger):
    '''the rest | the end'''
    ledger.conclude("open", "Nobody knows.")
"""


def test_a_statement_without_a_check_fails_the_run(project):
    here = project(FIRST, WRONG, VAGUE, OWN)
    result = run(here, "--dpaudit-out=out")
    assert result.code == UNCHECKED
    problem = (
        "p.later has no check. Write one, or one that says why there is no verdict: "
        'ledger.conclude("open", why)'
    )
    result.matches(f"problem: {problem}")
    assert here.json("out/results.json")["run"]["problems"] == [problem]
    # A run of selected statements ignores the others.
    assert run(here, "-k", "p.first", "--dpaudit-out=out").code == 0
    assert run(here, f"{LEDGER}::anything", "--dpaudit-out=out").code == 0
    assert run(project(FIRST, WRONG, VAGUE, OWN, LATER), "--dpaudit-out=out").code == 0


def test_a_gap_of_one_paper_is_none_of_another(project):
    here = project(FIRST, WRONG, VAGUE, OWN, LATER)
    here.put("other/statements.md", "# Other\n\n## q.a\n\nx <= x\n\n## q.b\n\nx <= x + 1\n")
    same = "    ledger.sweep(x=[1.0, 2.0])(lambda x: (x, x))\n"
    checks = "".join(
        f"\n@statement('q.{name}')\ndef {name}(ledger):\n    '''{text}'''\n{same}"
        for name, text in (("a", "x <= x"), ("b", "x <= x + 1"))
    )
    here.put("other/ledger_other.py", HEAD + checks)
    assert run(here, "other", "-k", "q.a", "--dpaudit-out=out").code == 0
    assert run(here, "paper", "--dpaudit-out=out").code == 0  # the row q.a is kept
    assert here.json("out/results.json")["run"]["problems"] == []
    # The deselected check of one paper does not hide the gap of the other.
    project(FIRST, WRONG, VAGUE, OWN)
    assert run(here, "--deselect=other/ledger_other.py::a", "--dpaudit-out=out").code == UNCHECKED
    assert run(here, "--collect-only", "--dpaudit-out=new").code == 0


def test_a_statement_that_is_open_elsewhere_needs_no_check_of_its_own(project):
    table = TABLE + "\n## p.again\n\nthe rest, again\n\n- same as: p.later\n"
    here = project(FIRST, WRONG, VAGUE, OWN, LATER, table=table)
    assert run(here, "--dpaudit-out=out").code == 0
    assert here.json("out/results.json")["run"]["problems"] == []


def test_algorithms_that_do_not_exist_fail_each_check(project):
    table = TABLE.replace("\n## p.first", "\n- algorithms: algorithms/nope.py\n\n## p.first", 1)
    here = project(FIRST, table=table)
    result = run(here, "--dpaudit-out=out")
    assert result.code == 1
    result.matches("*algorithms of paper/statements.md must be files and folders of *nope.py'*")
    assert rows(here)[0]["verdict"] == "open"


def test_rows_of_files_that_were_not_run_are_not_said_to_have_no_check(project):
    here = project(FIRST)
    here.put("paper/ledger_more.py", HEAD + WRONG)
    run(here, "paper/ledger_paper.py", "--dpaudit-out=out")
    assert rows(here)[1]["note"] == "not run: no check of it is in the ledger files of this run"
    run(here, "--dpaudit-out=out")
    assert [row["verdict"] for row in rows(here)] == ["holds", "refuted", "open", "open", "open"]


def test_a_ledger_that_does_not_import_leaves_its_rows_open(project):
    here = project(FIRST)
    here.put("paper/ledger_bad.py", "import nonexistent_thing\n")
    result = run(here, "--dpaudit-out=out")
    assert result.code == 2
    assert [row["verdict"] for row in rows(here)] == ["open"] * 5
    assert rows(here)[0]["note"] == "not run: its check is paper/ledger_paper.py::anything"
    assert rows(here)[1]["note"] == "not run: ledger_bad.py could not be collected"


def test_skipped_checks_are_open_and_say_why(project):
    here = project(FIRST.replace("\n@", "\n@pytest.mark.skip(reason='no time')\n@", 1))
    assert run(here, "--dpaudit-out=out").code == UNCHECKED
    assert rows(here)[0]["note"] == "not run: no time"
    assert not list((here.path / "out").glob("statements/*"))


def test_checks_in_a_class_are_found(project):
    inside = "\nclass TestPart:\n" + "".join(
        f"    {line}\n" for line in FIRST.replace("(ledger)", "(self, ledger)").splitlines()
    )
    here = project(inside)
    run(here, "--dpaudit-out=out", "-k", "nothing")
    assert (
        rows(here)[0]["note"] == "not run: its check is paper/ledger_paper.py::TestPart::anything"
    )
    assert run(here, "--dpaudit-out=out").code == UNCHECKED
    assert rows(here)[0]["verdict"] == "holds"


CRASH = """
@statement("p.vague")
def crashing(ledger):
    '''it is small'''
    import os
    os.abort()
"""

SEARCHED = """
@statement("p.later")
def searched(ledger):
    '''the rest | the end'''
    from dpaudit.neighbors import Interval
    ledger.falsify(x=Interval(0.0, 1.0), examples=50)(lambda x: (x, 1.0))
"""


@pytest.mark.slow
def test_rows_are_the_same_with_any_number_of_workers_even_if_one_is_taken_down(project):
    here = project(FIRST, WRONG, SEARCHED, OWN)
    assert run(here, "--dpaudit-out=one").code == UNCHECKED
    project(FIRST, WRONG, SEARCHED, OWN, CRASH)
    assert workers(here, "--dpaudit-out=two", "--import-mode=importlib").code == 1
    one, two = (
        {row["id"]: {k: v for k, v in row.items() if k != "seconds"} for row in rows(here, out)}
        for out in ("one", "two")
    )
    crashed = two.pop("p.vague")
    assert one.pop("p.vague")["note"] == "No check was written yet."
    assert one == two
    assert [row["verdict"] for row in one.values()] == ["holds", "refuted", "holds", "holds"]
    assert crashed["verdict"] == "open"
    assert crashed["note"].startswith("The check broke off: its process ended: ")


def test_a_run_without_ledgers_knows_no_statements(project):
    here = project(FIRST)
    here.put("test_other.py", "def test_other():\n    assert False\n")
    run(here, "test_other.py", "--dpaudit-out=out")
    assert rows(here) == []
    assert not (here.path / "out" / "ledger.html").exists()


# --- resuming ---


def test_resume_takes_over_whole_rows_and_redoes_the_rest(project):
    here = project(FIRST, WRONG, VAGUE)
    run(here, "--dpaudit-out=out")
    stored = here.path / "out" / "statements"
    here.reseal("out/statements/p.first.json", seconds=123.0)
    (stored / "p.wrong.json").write_text("{")
    for _ in range(2):
        result = run(here, "--dpaudit-out=out", "--dpaudit-resume")
        assert result.code == UNCHECKED
        assert [row["verdict"] for row in rows(here)[:3]] == ["holds", "refuted", "not_executable"]
        assert rows(here)[0]["seconds"] == 123.0
    assert (stored / "p.wrong.corrupt").exists()
    run(here, "--dpaudit-out=out", "--dpaudit-resume", "--dpaudit-seed=5")
    assert rows(here)[0]["seconds"] < 100


def test_resume_judges_anew_and_does_not_trust_a_row_of_another_text(project):
    here = project(FIRST)
    run(here, "--dpaudit-out=out")
    here.reseal("out/statements/p.first.json", seconds=123.0)
    project(FIRST, table=TABLE.replace("x <= x + 1", "x <= x + 2"))
    run(here, "--dpaudit-out=out", "--dpaudit-resume")
    assert rows(here)[0]["seconds"] < 100
