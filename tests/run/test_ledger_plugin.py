"""Checks of statements under pytest, from the outside: what is collected, said and stored."""

from __future__ import annotations

import json

import pytest

TABLE = """
# Statements of a paper

| id | kind | statement | hidden |
|---|---|---|---|
| p.first | lemma | x <= x + 1 | none |
| p.wrong | lemma | 2 x <= x | none |
| p.vague | claim | it is small | O(1) |
| p.later | theorem | the rest \\| the end | none |
"""

HEAD = """
import pytest
from dpaudit import statement
from dpaudit.ledger import LedgerVerdict

CASES = [{"x": 1.0}, {"x": 2.0}]
"""

FIRST = """
@statement("p.first")
def anything(ledger):
    ledger.sweep(CASES, lambda x: (x, x + 1))
"""

WRONG = """
@statement("p.wrong", expected="refuted")
def doubling(ledger):
    ledger.sweep(CASES, lambda x: (2 * x, x))
    with ledger.repair("2 x <= 2 x"):
        ledger.sweep(CASES, lambda x: (2 * x, 2 * x))
"""

VAGUE = """
@statement("p.vague", expected=LedgerVerdict.NOT_EXECUTABLE)
def small(ledger):
    ledger.conclude("not_executable", "It has no meaning.")
"""

OWN = """
@statement("p.own", "a statement of our own", kind="remark")
def own(ledger):
    ledger.argue("It is clear.")
"""


@pytest.fixture
def project(pytester):
    """A project of its own, whose checks are made by the caller."""

    def make(*parts, name="ledger_paper", table=TABLE):
        pytester.makefile(".ini", pytest="[pytest]\ndpaudit_collect = true\n")
        (pytester.path / "statements").mkdir(exist_ok=True)
        if table is not None:
            (pytester.path / "statements" / "paper.md").write_text(table)
        pytester.makepyfile(**{name: HEAD + "".join(parts)})
        return pytester

    return make


def run(project, *args):
    return project.runpytest_subprocess("-p", "no:cacheprovider", *args)


def rows(project, out="out"):
    return json.loads((project.path / out / "results.json").read_text())["statements"]


def problems(project, out="out"):
    return json.loads((project.path / out / "results.json").read_text())["run"]["problems"]


# --- verdicts ---


def test_verdicts_have_their_own_words(project):
    here = project(FIRST, WRONG, VAGUE, OWN)
    result = run(here, "-v", "--dpaudit-out=out")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "*anything HOLDS*",
            "*doubling REFUTED*",
            "*small NOT EXECUTABLE*",
            "*own HOLDS*",
            "*= ledger =*",
            "4 statements: 1 refuted, 2 hold, 1 not executable",
            "of these 1 by argument only",
            "*2 holds, 1 refuted, 1 not executable*",
        ]
    )
    assert "FAIL" not in result.stdout.str()
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
        "case": {"x": 1.0}, "lhs": 2.0, "rhs": 1.0, "exact": False, "nan": False
    }  # fmt: skip
    assert found[1]["repair_verdict"] == "holds"
    assert found[3]["note"] == "No check was written yet."
    assert found[3]["statement"] == "the rest | the end"
    stored = sorted(path.name for path in (here.path / "out/statements").iterdir())
    assert stored == ["p.first.json", "p.own.json", "p.vague.json", "p.wrong.json"]
    origin = json.loads((here.path / "out/statements/p.wrong.json").read_text())["origin"]
    assert origin["kind"] == "statement"
    assert (origin["path"], origin["item"]) == ("ledger_paper.py", "doubling")
    assert origin["profile"] == "quick"
    assert "hypothesis" in origin["versions"]


def test_a_verdict_that_was_not_declared_fails_the_run_and_is_told(project):
    here = project(WRONG.replace(', expected="refuted"', ""))
    result = run(here, "--dpaudit-out=out")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "REFUTED (holds was declared)  p.wrong",
            "  statement  2 x <= x",
            "  attacked   exact, ratio 2, 1 example, *",
            "  repair     holds: 2 x <= 2 x",
            "  found      lhs = 2 > rhs = 1",
            "  where      x = 1",
            "  replay     pytest --dpaudit ledger_paper.py::doubling --dpaudit-profile=quick *",
            "*1 not as declared*",
        ]
    )
    assert rows(here)[1]["verdict"] == "refuted"
    assert problems(here) == []


def test_a_refutation_that_is_gone_and_a_broken_repair_fail_the_run(project):
    gone = FIRST.replace('"p.first"', '"p.first", expected="refuted"')
    broken = WRONG.replace("lambda x: (2 * x, 2 * x)", "lambda x: (3 * x, 2 * x)")
    result = run(project(gone, broken))
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "HOLDS (refuted was declared)  p.first",
            "REFUTED (the repair is refuted)  p.wrong",
            "  found      lhs = 3 > rhs = 2",
            "*2 not as declared*",
        ]
    )


def test_nothing_is_collected_unless_the_project_asks(pytester):
    pytester.makepyfile(ledger_paper=HEAD + OWN)
    assert run(pytester).ret == 5
    assert run(pytester, "--dpaudit").ret == 0


def test_functions_without_a_mark_keep_their_meaning(project):
    result = run(
        project("\ndef test_plain():\n    assert CASES\n\ndef helper(ledger):\n    1 / 0\n")
    )
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*1 passed*"])
    assert "ledger =" not in result.stdout.str()


# --- what is wrong with a check ---


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            FIRST.replace("p.first", "p.frist"),
            "p.frist is no row of statements/paper.md; add the row, or give the text*",
        ),
        (OWN.replace("p.own", "p.first"), "p.first has a row in statements/paper.md: take its*"),
        (
            FIRST.replace("(ledger)", "()").replace("    ledger.", "    print"),
            "the check of p.first does not take the fixture `ledger`, with which it attempts: write "
            "def anything(ledger)",
        ),
        (
            "\ndef test_plain(ledger):\n    pass\n",
            "the fixture `ledger` is for checks of statements: mark test_plain with @statement*",
        ),
        (
            FIRST.replace("\n@", '\n@pytest.mark.parametrize("n", [1, 2])\n@').replace(
                "(ledger)", "(ledger, n)"
            ),
            "a check of a statement cannot be parametrised: p.first has one verdict; make several*",
        ),
    ],
    ids=["unknown id", "two texts", "no fixture", "no mark", "parametrised"],
)
def test_a_wrong_check_ends_in_one_sentence(project, code, words):
    result = run(project(code))
    assert result.ret == 1
    result.stdout.fnmatch_lines([words])
    assert "Traceback" not in result.stdout.str()
    assert "INTERNALERROR" not in result.stdout.str()


def test_an_id_without_a_table_is_told_where_it_would_be(project):
    result = run(project(FIRST, table=None))
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["p.first has no row: there is no statements/paper.md beside ledger_paper.py; add *"]
    )


def test_a_table_that_cannot_be_read_is_a_problem_and_no_crash(project):
    here = project(FIRST, OWN, table="| id | statement |\n|---|---|\n| p.first |\n")
    result = run(here, "--dpaudit-out=out")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*paper.md:3 is no row of the columns id, statement"])
    assert any("paper.md:3 is no row" in problem for problem in problems(here))


def test_a_check_outside_a_ledger_is_refused(project):
    here = project(FIRST)
    here.makepyfile(test_other=HEAD + OWN)
    result = run(here, "test_other.py")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["the check of p.own must lie in a file ledger_<paper>.py, got test_other.py"]
    )


def test_two_checks_of_one_statement_are_refused(project):
    here = project(FIRST)
    here.makepyfile(ledger_paper__more=HEAD + FIRST)
    result = run(here)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*two checks have the id p.first: *anything and *anything; one*"])
    assert run(here, "-n2").ret == 1


def test_a_check_that_does_nothing_is_told_and_stays_open(project):
    here = project('\n@statement("p.first")\ndef nothing(ledger):\n    pass\n')
    result = run(here, "--dpaudit-out=out")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["p.first was checked by nothing: call a method of ledger"])
    assert rows(here)[0]["verdict"] == "open"
    assert rows(here)[0]["note"] == (
        "The check broke off: p.first was checked by nothing: call a method of ledger"
    )


def test_a_bug_in_a_check_stays_a_failure_and_the_row_open(project):
    bug = FIRST + "    raise RuntimeError('oops')\n"
    here = project(bug, WRONG)
    result = run(here, "--dpaudit-out=out")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*RuntimeError: oops*", "*1 failed, 1 refuted*"])
    first, wrong, *_ = rows(here)
    assert (first["verdict"], first["note"]) == ("open", "The check broke off: RuntimeError: oops")
    assert wrong["verdict"] == "refuted"
    assert problems(here) == ["ledger_paper.py::anything: RuntimeError: oops"]


def test_a_fixture_that_breaks_leaves_the_row_open(project):
    broken = "\n@pytest.fixture\ndef data():\n    raise OSError('no data')\n"
    here = project(broken, FIRST.replace("(ledger)", "(ledger, data)"))
    result = run(here, "--dpaudit-out=out")
    assert result.ret == 1
    assert rows(here)[0]["note"] == "The check broke off: OSError: no data"


def test_what_is_no_plain_data_is_stored_as_words(project):
    odd = """
@statement("p.first")
def odd(ledger):
    ledger.monte_carlo(
        lambda size, *, rng: rng.random(size) < 0.1, 0.15, draws=9000, where={"x": {1, 2}, "f": len}
    )
"""
    here = project(odd)
    assert run(here, "--dpaudit-out=out").ret == 0
    assert rows(here)[0]["verdict"] == "holds"


def test_a_claim_that_is_not_a_number_is_refuted_and_stored(project):
    nan = FIRST.replace("(x, x + 1)", "(x, float('nan'))").replace(
        '"p.first"', '"p.first", expected="refuted"'
    )
    here = project(nan)
    assert run(here, "--dpaudit-out=out").ret == 0
    assert rows(here)[0]["counterexample"]["rhs"] == "-inf"


def test_xfail_does_not_swallow_a_verdict(project):
    marked = WRONG.replace(', expected="refuted"', "").replace("\n@", "\n@pytest.mark.xfail\n@", 1)
    result = run(project(marked))
    assert result.ret == 1
    result.stdout.fnmatch_lines(["xfail does not apply to checks of statements: write @statement*"])


# --- no row goes missing ---


def test_rows_that_were_not_run_are_open_and_say_so(project):
    here = project(FIRST, WRONG, OWN)
    assert run(here, "-k", "p.wrong", "--dpaudit-out=out").ret == 0
    found = {row["id"]: row for row in rows(here)}
    assert [row["verdict"] for row in found.values()] == ["open", "refuted", "open", "open", "open"]
    assert found["p.first"]["note"] == "not run: its check is ledger_paper.py::anything"
    assert found["p.own"]["note"] == "not run: its check is ledger_paper.py::own"
    assert found["p.own"]["statement"] == "a statement of our own"
    assert found["p.later"]["note"] == "No check was written yet."
    assert run(here, "-k", "anything", "--dpaudit-out=out").ret == 0
    assert rows(here)[0]["verdict"] == "holds"
    assert run(here, "ledger_paper.py::doubling", "--dpaudit-out=out", "-n2").ret == 0
    assert [row["verdict"] for row in rows(here)] == ["open", "refuted", "open", "open", "open"]


def test_rows_of_files_that_were_not_run_are_not_said_to_have_no_check(project):
    here = project(FIRST)
    here.makepyfile(ledger_paper__more=HEAD + WRONG)
    run(here, "ledger_paper.py", "--dpaudit-out=out")
    assert rows(here)[1]["note"] == "not run: no check of it is in the ledger files of this run"
    run(here, "--dpaudit-out=out")
    assert [row["verdict"] for row in rows(here)] == ["holds", "refuted", "open", "open"]


def test_a_ledger_that_does_not_import_leaves_its_rows_open(project):
    here = project(FIRST)
    here.makepyfile(ledger_paper__bad="import nonexistent_thing\n")
    result = run(here, "--dpaudit-out=out")
    assert result.ret == 2
    assert [row["verdict"] for row in rows(here)] == ["open"] * 4
    assert rows(here)[0]["note"] == "not run: its check is ledger_paper.py::anything"
    assert rows(here)[1]["note"] == "not run: ledger_paper__bad.py could not be collected"


def test_skipped_checks_are_open_and_say_why(project):
    here = project(FIRST.replace("\n@", "\n@pytest.mark.skip(reason='no time')\n@", 1))
    assert run(here, "--dpaudit-out=out").ret == 0
    assert rows(here)[0]["note"] == "not run: no time"
    assert not list((here.path / "out").glob("statements/*"))


def test_checks_in_a_class_are_found(project):
    inside = "\nclass TestPart:\n" + "".join(
        f"    {line}\n" for line in FIRST.replace("(ledger)", "(self, ledger)").splitlines()
    )
    here = project(inside)
    run(here, "--dpaudit-out=out", "-k", "nothing")
    assert rows(here)[0]["note"] == "not run: its check is ledger_paper.py::TestPart::anything"
    assert run(here, "--dpaudit-out=out").ret == 0
    assert rows(here)[0]["verdict"] == "holds"


def test_rows_are_the_same_with_any_number_of_workers(project):
    searched = """
@statement("p.later")
def searched(ledger):
    from dpaudit.ledger import Domain
    from dpaudit.search import Interval
    ledger.falsify(Domain(x=Interval(0.0, 1.0)), lambda x: (x, 1.0), examples=50)
"""
    here = project(FIRST, WRONG, VAGUE, searched, OWN)
    found = {}
    for out, args in {"one": ["-p", "no:xdist"], "two": ["-n2"]}.items():
        assert run(here, f"--dpaudit-out={out}", *args).ret == 0
        found[out] = [{k: v for k, v in row.items() if k != "seconds"} for row in rows(here, out)]
    assert found["one"] == found["two"]
    assert [row["verdict"] for row in found["one"]] == [
        "holds", "refuted", "not_executable", "holds", "holds"
    ]  # fmt: skip


def test_a_run_without_ledgers_knows_no_statements(project):
    here = project(FIRST)
    here.makepyfile(test_other="def test_other():\n    assert False\n")
    run(here, "test_other.py", "--dpaudit-out=out")
    assert rows(here) == []
    assert not (here.path / "out" / "ledger.html").exists()


CRASH = """
@statement("p.vague")
def crashing(ledger):
    import os
    os.abort()
"""


def test_a_check_that_takes_its_worker_down_is_no_check_that_was_not_run(project):
    here = project(FIRST, CRASH)
    assert run(here, "--dpaudit-out=out", "-n2").ret == 1
    found = {row["id"]: row for row in rows(here)}
    assert found["p.first"]["verdict"] == "holds"
    assert found["p.vague"]["verdict"] == "open"
    assert found["p.vague"]["note"].startswith("The check broke off: worker 'gw")


# --- resuming ---


def test_resume_takes_over_whole_rows_and_redoes_the_rest(project):
    here = project(FIRST, WRONG, VAGUE)
    run(here, "--dpaudit-out=out")
    stored = here.path / "out" / "statements"
    first = json.loads((stored / "p.first.json").read_text())
    (stored / "p.first.json").write_text(json.dumps({**first, "seconds": 123.0}))
    (stored / "p.wrong.json").write_text("{")
    vague = json.loads((stored / "p.vague.json").read_text())
    (stored / "p.vague.json").write_text(json.dumps({**vague, "verdict": "open"}))
    for workers in (["-p", "no:xdist"], ["-n2"]):
        result = run(here, "--dpaudit-out=out", "--dpaudit-resume", *workers)
        assert result.ret == 0
        assert [row["verdict"] for row in rows(here)[:3]] == ["holds", "refuted", "not_executable"]
        assert rows(here)[0]["seconds"] == 123.0
    assert (stored / "p.wrong.corrupt").exists()
    run(here, "--dpaudit-out=out", "--dpaudit-resume", "--dpaudit-seed=5")
    assert rows(here)[0]["seconds"] < 100


def test_resume_judges_anew_and_does_not_trust_a_row_of_another_text(project):
    here = project(FIRST)
    run(here, "--dpaudit-out=out")
    stored = here.path / "out" / "statements" / "p.first.json"
    stored.write_text(json.dumps({**json.loads(stored.read_text()), "seconds": 123.0}))
    project(FIRST, table=TABLE.replace("x <= x + 1", "x <= x + 2"))
    run(here, "--dpaudit-out=out", "--dpaudit-resume")
    assert rows(here)[0]["seconds"] < 100


# --- without hypothesis ---

BLOCKED = """
import sys
sys.modules["hypothesis"] = None
"""


def test_without_hypothesis_ledgers_are_skipped_and_audits_run(project):
    here = project("from dpaudit.ledger import Domain\n", FIRST)
    here.makepyfile(ledger_paper__light=HEAD + WRONG)
    here.makeconftest(BLOCKED)
    here.makepyfile(
        audit_x="""
        from dpaudit import NeighborPair, PureDP
        def noisy(data, size, *, rng):
            return data.sum() + rng.laplace(size=size)
        def audit_noisy(auditor):
            auditor.check(noisy, PureDP(1.0), NeighborPair([[0.0]], [[1.0]]), draws=500)
        """
    )
    result = run(here, "--dpaudit-out=out", "-rs", "-p", "no:hypothesispytest")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["*checks of statements need hypothesis: pip install 'dpaudit?ledger?'*"]
    )
    document = json.loads((here.path / "out" / "results.json").read_text())
    assert len(document["audits"]) == 1
    assert [row["verdict"] for row in document["statements"]] == ["open"] * 4
    assert "pip install 'dpaudit[ledger]'" in document["statements"][1]["note"]
