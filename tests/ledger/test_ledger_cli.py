"""Tests of `dpaudit ledger`, and of `run`, `report` and `replay` for statements."""

from __future__ import annotations

import json

import pytest

TABLE = """
## p.second

x <= 2 x

- kind: lemma

## p.first

x <= x + 0.1

- kind: lemma

## p.wrong

2 x <= x

- kind: lemma

## p.later

the rest

- kind: theorem
"""

UNCHECKED = 1
"""Exit code if nothing fails, but p.later has no check."""

CHECKS = """
from dpaudit import statement
from dpaudit.neighbors import Interval

@statement("p.first")
def anything(ledger):
    '''x <= x + 0.1

    It is never [bold]tight.
    '''
    ledger.falsify(x=Interval(0.0, 1.0), examples=20)(lambda x: (x, x + 0.1))

@statement("p.second")
def twice(ledger):
    '''x <= 2 x'''
    ledger.sweep(x=[1.0, 2.0], mutant=None)(lambda x: (x, 2 * x))

@statement("p.wrong", expected="refuted")
def doubling(ledger):
    '''2 x <= x'''
    ledger.sweep(x=[1.0, 2.0])(lambda x: (2 * x, x))
"""

OTHER = """
from dpaudit import statement

@statement("q.only")
def only(ledger):
    '''nothing is more than itself'''
    ledger.sweep(x=1.0)(lambda x: (x, x))
"""

SURPRISE = """
@statement("q.bad")
def bad(ledger):
    '''twice is no more than once'''
    ledger.sweep(x=1.0)(lambda x: (2 * x, x))
"""

AUDIT = """
from dpaudit import NeighborPair, PureDP

def noisy(data, size, *, rng):
    return data.sum() + rng.laplace(size=size)

def louder(data, size, *, rng):
    return data.sum() + rng.laplace(scale=0.1, size=size)

def audit_noisy(auditor):
    auditor.check(noisy, PureDP(1.0), NeighborPair([[0.0]], [[1.0]]), mutants=[louder], draws=800)
"""


PART, OTHERS = "audits/paper/ledger_part.py", "audits/other/ledger_other.py"


@pytest.fixture
def home(home):
    home.put("audits/paper/statements.md", TABLE)
    home.put(PART, CHECKS)
    home.put(OTHERS, OTHER)
    home.put("audits/audit_mine.py", AUDIT)
    home.put(".hidden/ledger_hidden.py", "1 / 0")
    return home


def dpaudit(home, *args):
    return home.dpaudit(*args)


def add(home, text):
    home.put(OTHERS, (home.path / OTHERS).read_text() + text)


def table(stdout: str) -> dict[str, list[str]]:
    """Return the rows of the printed table, by id."""
    rows = [line.split("  ") for line in stdout.splitlines() if line.startswith((" p.", " q."))]
    return {row[0].strip(): [cell.strip() for cell in row[1:] if cell.strip()] for row in rows}


# --- run ---


def test_ledger_of_a_paper_prints_its_table_in_the_order_of_the_paper(home):
    result = dpaudit(home, "ledger", "paper", "--jobs", "0")
    assert result.code == UNCHECKED, result.out + result.err
    rows = table(result.out)
    assert list(rows) == ["p.second", "p.first", "p.wrong", "p.later"]
    assert rows["p.second"] == ["holds", "exact", "0.5", "2", "no mutant"]
    assert rows["p.first"][:2] == ["holds", "property"]
    assert rows["p.first"][-1] == "It is never [bold]tight."
    assert rows["p.wrong"][:4] == ["refuted", "exact", "2", "1"]
    assert rows["p.later"] == ["open", "–", "–", "–", "–", "No check was written yet."]
    lines = result.out.splitlines()
    assert "4 statements: 1 refuted, 1 open, 2 hold" in lines
    assert "of these 1 that held without a mutant" in lines
    assert lines[-4].startswith("4 statements in ")
    assert lines[-3:] == [
        "report: reports/index.html",
        "ledger: reports/ledger.html",
        "erratum: reports/erratum-paper.md",
    ]
    assert "\x1b" not in result.out
    document = home.json("reports/results.json")
    assert document["run"]["command"] == "dpaudit ledger paper --profile quick --seed 0"
    assert document["audits"] == []


def test_ledger_runs_all_papers_and_writes_their_rows(home):
    result = dpaudit(home, "ledger", "--jobs", "0", "--json", "rows.json", "--out", "here")
    assert result.code == UNCHECKED, result.out + result.err
    written = json.loads((home.path / "rows.json").read_text(), parse_constant=pytest.fail)
    assert [row["id"] for row in written] == [
        "q.only",
        "p.second",
        "p.first",
        "p.wrong",
        "p.later",
    ]
    assert written == json.loads((home.path / "here" / "results.json").read_text())["statements"]
    assert [row["paper"] for row in written] == ["other"] + ["paper"] * 4


def test_ledger_of_a_surprise_is_exit_1(home):
    add(home, SURPRISE)
    result = dpaudit(home, "ledger", "other", "audits", "--jobs", "0")
    assert result.code == 1
    assert table(result.out)["q.bad"][:2] == ["refuted !", "exact"]
    assert "REFUTED (holds was declared)  q.bad" in result.out
    assert "dpaudit replay reports/statements/q.bad.json" in result.out
    assert dpaudit(home, "ledger", "--stored").code == 1


def test_selected_statements_are_shown_and_the_rest_counted(home):
    result = dpaudit(home, "ledger", "paper", "-k", "p.wrong", "--jobs", "0", "--json", "a.json")
    assert result.code == 0
    assert list(table(result.out)) == ["p.wrong", "p.later"]
    assert "4 statements: 1 refuted, 3 open (2 not run, and not listed)" in result.out
    rows = json.loads((home.path / "a.json").read_text())
    assert [row["verdict"] for row in rows] == ["open", "open", "refuted", "open"]
    assert rows[0]["note"].startswith("not run: its check is audits/paper/ledger_part.py::twice")
    one = dpaudit(home, "ledger", "audits/paper/ledger_part.py::doubling", "--jobs", "0")
    assert list(table(one.out)) == ["p.wrong", "p.later"]


def test_a_stored_row_whose_check_and_statement_are_gone_is_dropped(home):
    dpaudit(home, "ledger", "paper", "--jobs", "0")
    path, stated = home.path / PART, home.path / "audits" / "paper" / "statements.md"
    path.write_text(CHECKS.partition('@statement("p.wrong"')[0])  # the last check
    parts = stated.read_text().split("\n## ")
    stated.write_text("\n## ".join(part for part in parts if not part.startswith("p.wrong")))
    result = dpaudit(home, "ledger", "paper", "-k", "p.first", "--jobs", "0")
    assert "p.wrong" not in table(result.out)
    assert "3 statements" in result.out


def test_what_is_stored_is_printed_without_running(home):
    ran = dpaudit(home, "ledger", "--jobs", "0")
    (home.path / PART).unlink()
    stored = dpaudit(home, "ledger", "paper", "--stored", "--json", "rows.json")
    assert stored.code == 0, stored.err
    assert table(stored.out) == {k: v for k, v in table(ran.out).items() if k != "q.only"}
    assert "4 statements: 1 refuted, 1 open, 2 hold" in stored.out
    assert len(json.loads((home.path / "rows.json").read_text())) == 4
    (home.path / "reports" / "statements" / "p.wrong.json").write_text("{")
    damaged = dpaudit(home, "ledger", "--stored")
    assert damaged.code == 1
    assert "set aside as p.wrong.corrupt" in damaged.err


def test_a_broken_check_is_printed_and_open(home):
    path = home.path / PART
    path.write_text(CHECKS.replace("lambda x: (x, 2 * x)", "lambda x: (x, 1 / 0)"))
    result = dpaudit(home, "ledger", "paper", "--jobs", "0")
    assert result.code == 1
    assert "ERROR" in result.out
    assert "ZeroDivisionError: division by zero" in result.out
    row = table(result.out)["p.second"]
    assert row[0] == "open !"
    assert row[-1] == "the verdict is open, holds was declared"


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (
            ["nobody"],
            4,
            "PAPER must be a paper with a ledger, or a path, got 'nobody'. The papers here are:",
        ),
        (["paper", "nowhere"], 4, "PATHS must exist, got 'nowhere'"),
        (["audits/audit_mine.py"], 4, "PATHS must be directories or files named ledger_*.py, got"),
        (["--profile", "fast"], 4, "profile must be one of quick, full, release, got 'fast'"),
        (["--jobs", "many"], 4, "--jobs must be auto or an integer >= 0, got 'many'"),
        (["--stored"], 4, "cannot read reports/results.json"),
        (["--stored", "-k", "x"], 4, "--stored runs nothing, so it takes only a PAPER"),
        (["-k", "nothing", "--jobs", "0"], 5, "nothing matches -k nothing"),
        (["empty"], 5, "no check was collected: checks are functions with @statement"),
    ],
)
def test_wrong_usage_is_told_in_one_line(home, args, code, words):
    (home.path / "empty").mkdir()
    result = dpaudit(home, "ledger", *args)
    assert result.code == code, result.out + result.err
    assert words in " ".join((result.out + result.err).split())
    assert "Traceback" not in result.out + result.err


def test_a_table_without_checks_is_told_except_beside_a_named_paper(home):
    (home.path / "audits/notes").mkdir()
    (home.path / "audits/notes/statements.md").write_bytes(b"## \xff no table of a paper")
    assert "p.first" in table(dpaudit(home, "ledger", "--jobs", "0").out)
    home.put("audits/new/statements.md", TABLE)
    result = dpaudit(home, "ledger")
    assert result.code == 4
    told = " ".join(result.err.split())
    assert "There is none next to 'audits/new/statements.md'" in told
    assert "p.first" in table(dpaudit(home, "ledger", "paper", "--jobs", "0").out)


def test_rows_of_other_code_are_marked_in_the_table(home):
    dpaudit(home, "ledger", "paper", "--jobs", "0")
    file = home.path / PART
    file.write_text(file.read_text().replace("x + 0.1", "x + 0.2", 1))
    result = dpaudit(home, "ledger", "paper", "-k", "p.wrong", "--jobs", "0")
    rows = table(result.out)
    assert rows["p.first"][0] == "holds (out of date)"
    assert rows["p.wrong"][0] == "refuted"
    assert table(dpaudit(home, "ledger", "paper", "--stored").out) == rows


def test_stored_knows_its_papers(home):
    dpaudit(home, "run", "audits/audit_mine.py", "--jobs", "0")
    nothing = dpaudit(home, "ledger", "--stored")
    assert nothing.code == 5
    assert "the last run in reports checked no statement" in nothing.err
    dpaudit(home, "ledger", "other", "--jobs", "0")
    unknown = dpaudit(home, "ledger", "paper", "--stored")
    assert unknown.code == 4
    assert "got 'paper'. The papers of this run are: other" in unknown.err


# --- the other commands ---


@pytest.mark.slow
def test_run_makes_audits_and_checks_with_a_line_each(home):
    result = dpaudit(home, "run", "--jobs", "0")
    assert result.code == UNCHECKED, result.out + result.err
    lines = sorted(result.out.splitlines())
    begun = [
        "HOLDS              p.second  exact  ratio 0.5  2 examples  no mutant",
        "NOT REFUTED        audit_mine::audit_noisy",
        "REFUTED            p.wrong  exact  ratio 2",
    ]
    for begin in begun:
        assert any(line.startswith(begin) for line in lines), begin
    assert "5 statements: 1 refuted, 1 open, 3 hold" in result.out
    assert "1 audit and 5 statements in " in result.out
    document = home.json("reports/results.json")
    assert (len(document["audits"]), len(document["statements"])) == (1, 5)
    assert 'href="ledger.html"' in (home.path / "reports" / "index.html").read_text()
    resumed = dpaudit(home, "run", "--jobs", "0", "--resume")
    assert resumed.code == UNCHECKED
    again = home.json("reports/results.json")
    assert again["statements"] == document["statements"]
    alone = dpaudit(home, "run", "audits/audit_mine.py", "--jobs", "0", "--out", "alone")
    assert "ledger" not in alone.out
    assert not (home.path / "alone" / "ledger.html").exists()


def test_report_renders_both_pages_again(home):
    dpaudit(home, "ledger", "--jobs", "0")
    page = home.path / "reports" / "ledger.html"
    before = page.read_text()
    page.unlink()
    assert dpaudit(home, "report").code == 0
    assert page.read_text() == before
    (home.path / "reports" / "statements" / "p.first.json").unlink()
    assert dpaudit(home, "report").code == 1
    assert "the results are lost" in page.read_text()


def test_replay_makes_a_check_again(home):
    dpaudit(home, "ledger", "paper", "--jobs", "0", "--seed", "3")
    for name in ("p.first", "p.wrong"):
        stored = home.path / "reports" / "statements" / f"{name}.json"
        result = dpaudit(home, "replay", str(stored.relative_to(home.path)))
        assert result.code == 0, result.out + result.err
        assert result.out.splitlines()[-1] == "the same"
    assert "refuted: ratio 2.0, 1 example, lhs = 2 > rhs = 1" in result.out
    name = "reports/statements/p.wrong.json"
    record = home.json(name)
    record["attempts"][0]["counterexample"]["lhs"] = 7.0
    record["origin"]["versions"]["numpy"] = "1.0"
    home.reseal(name, **record)
    changed = dpaudit(home, "replay", str(stored))
    assert changed.code == 1
    assert "attempts[0].counterexample.lhs: 7.0 against 2.0" in changed.out
    assert changed.out.startswith("the versions changed since: numpy 1.0 then, ")
    assert changed.out.splitlines()[-1] == "NOT the same: 1 value differs"
    (home.path / PART).unlink()
    gone = dpaudit(home, "replay", str(stored))
    assert gone.code == 4
    assert "the file audits/paper/ledger_part.py is not here" in gone.err


TIMED = """
import time

@statement("q.timed", replays=False)
def timed(ledger):
    '''a moment has passed'''
    ledger.sweep(x=1.0)(lambda x: (time.perf_counter(), time.perf_counter() * 1.5))
"""


def test_a_check_of_seconds_replays_by_its_verdict(home):
    add(home, TIMED)
    dpaudit(home, "ledger", "other", "--jobs", "0")
    stored = "reports/statements/q.timed.json"
    again = dpaudit(home, "replay", stored)
    assert again.code == 0
    assert again.out.splitlines()[-1] == "the same verdict; its numbers need not come again"
    home.reseal(stored, verdict="refuted")
    assert dpaudit(home, "replay", stored).code == 1
    home.reseal(stored, verdict="holds", origin={**home.json(stored)["origin"], "replays": True})
    assert dpaudit(home, "replay", stored).code == 1


def test_what_an_interrupted_run_stored_is_no_success(home):
    assert dpaudit(home, "ledger", "paper", "--jobs", "0").code == UNCHECKED
    run = home.json("reports/results.json")["run"]
    assert run["complete"]
    home.reseal("reports/results.json", run={**run, "complete": False})
    result = dpaudit(home, "ledger", "--stored")
    assert result.code == 1
    assert "the run was interrupted" in result.out


def test_a_mutant_that_survives_fails_the_run_and_is_called_so(home):
    path = home.path / PART
    path.write_text(CHECKS.replace("mutant=None", "mutant=0.9"))
    result = dpaudit(home, "run", "--jobs", "0", "-k", "p.second")
    assert result.code == 1
    assert "HOLDS (a mutant survived)" in result.out
    assert "interrupted" not in dpaudit(home, "ledger", "-k", "nosuch", "--jobs", "0").out
