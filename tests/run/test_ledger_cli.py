"""`dpaudit ledger`, and what `run`, `report` and `replay` do with statements."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TABLE = """
| id | kind | statement |
|---|---|---|
| p.second | lemma | x <= 2 x |
| p.first | lemma | x <= x + 0.1 |
| p.wrong | lemma | 2 x <= x |
| p.later | theorem | the rest |
"""

CHECKS = """
from dpaudit import statement
from dpaudit.ledger import Domain
from dpaudit.search import Interval

@statement("p.first")
def anything(ledger):
    ledger.falsify(Domain(x=Interval(0.0, 1.0)), lambda x: (x, x + 0.1), examples=20)
    ledger.note("It is never [bold]tight.")

@statement("p.second")
def twice(ledger):
    ledger.sweep([1.0, 2.0], lambda x: (x, 2 * x), mutant=None)

@statement("p.wrong", expected="refuted")
def doubling(ledger):
    ledger.sweep([1.0, 2.0], lambda x: (2 * x, x))
"""

OTHER = """
from dpaudit import statement

@statement("q.only", "nothing is more than itself")
def only(ledger):
    ledger.sweep([1.0], lambda x: (x, x))
"""

SURPRISE = """
@statement("q.bad", "twice is no more than once")
def bad(ledger):
    ledger.sweep([1.0], lambda x: (2 * x, x))
"""

AUDIT = """
from dpaudit import NeighborPair, PureDP

def noisy(data, size, *, rng):
    return data.sum() + rng.laplace(size=size)

def louder(data, size, *, rng):
    return data.sum() + rng.laplace(scale=0.25, size=size)

def audit_noisy(auditor):
    auditor.check(noisy, PureDP(1.0), NeighborPair([[0.0]], [[1.0]]), mutant=louder, draws=4000)
"""


@pytest.fixture
def home(tmp_path):
    audits = tmp_path / "audits"
    (audits / "statements").mkdir(parents=True)
    (audits / "statements" / "paper.md").write_text(TABLE)
    (audits / "ledger_paper__part.py").write_text(CHECKS)
    (audits / "ledger_other.py").write_text(OTHER)
    (audits / "audit_mine.py").write_text(AUDIT)
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "ledger_hidden.py").write_text("1 / 0")
    return tmp_path


def dpaudit(home: Path, *args: str) -> subprocess.CompletedProcess[str]:
    code = "from dpaudit.cli import main; main()"
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "PYTHONPATH"))}
    return subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", code, *args],
        cwd=home, capture_output=True, text=True, env=clean, check=False,
    )  # fmt: skip


def table(stdout: str) -> dict[str, list[str]]:
    """Rows of the printed table, by id."""
    rows = [line.split("  ") for line in stdout.splitlines() if line.startswith((" p.", " q."))]
    return {row[0].strip(): [cell.strip() for cell in row[1:] if cell.strip()] for row in rows}


# --- run ---


def test_ledger_of_a_paper_prints_its_table_in_the_order_of_the_paper(home):
    result = dpaudit(home, "ledger", "paper", "--jobs", "1")
    assert result.returncode == 0, result.stdout + result.stderr
    rows = table(result.stdout)
    assert list(rows) == ["p.second", "p.first", "p.wrong", "p.later"]
    assert rows["p.second"] == ["holds", "exact", "0.5", "2", "no mutant"]
    assert rows["p.first"][:2] == ["holds", "property"]
    assert rows["p.first"][-1] == "It is never [bold]tight."
    assert rows["p.wrong"][:4] == ["refuted", "exact", "2", "1"]
    assert rows["p.later"] == ["open", "–", "–", "–", "–", "No check was written yet."]
    lines = result.stdout.splitlines()
    assert "4 statements: 1 refuted, 1 open, 2 hold" in lines
    assert "of these 1 that held without a mutant" in lines
    assert lines[-3].startswith("the ledger in ")
    assert lines[-2:] == ["report: reports/index.html", "ledger: reports/ledger.html"]
    assert "\x1b" not in result.stdout
    document = json.loads((home / "reports" / "results.json").read_text())
    assert document["run"]["command"] == "dpaudit ledger paper --profile quick --seed 0"
    assert document["audits"] == []


def test_ledger_runs_all_papers_and_writes_their_rows(home):
    result = dpaudit(home, "ledger", "--jobs", "2", "--json", "rows.json", "--out", "here")
    assert result.returncode == 0, result.stdout + result.stderr
    written = json.loads((home / "rows.json").read_text(), parse_constant=pytest.fail)
    assert [row["id"] for row in written] == [
        "q.only",
        "p.second",
        "p.first",
        "p.wrong",
        "p.later",
    ]
    assert written == json.loads((home / "here" / "results.json").read_text())["statements"]
    assert [row["paper"] for row in written] == ["other"] + ["paper"] * 4


def test_ledger_of_a_surprise_is_exit_1(home):
    with (home / "audits" / "ledger_other.py").open("a") as file:
        file.write(SURPRISE)
    result = dpaudit(home, "ledger", "other", "audits", "--jobs", "1")
    assert result.returncode == 1
    assert table(result.stdout)["q.bad"][:2] == ["refuted !", "exact"]
    assert "REFUTED (holds was declared)  q.bad" in result.stdout
    assert "dpaudit replay reports/statements/q.bad.json" in result.stdout
    assert dpaudit(home, "ledger", "--stored").returncode == 1


def test_selected_statements_are_shown_and_the_rest_counted(home):
    result = dpaudit(home, "ledger", "paper", "-k", "p.wrong", "--jobs", "1", "--json", "a.json")
    assert result.returncode == 0
    assert list(table(result.stdout)) == ["p.wrong", "p.later"]
    assert "4 statements: 1 refuted, 3 open (2 not run)" in result.stdout
    rows = json.loads((home / "a.json").read_text())
    assert [row["verdict"] for row in rows] == ["open", "open", "refuted", "open"]
    assert rows[0]["note"].startswith("not run: its check is audits/ledger_paper__part.py::twice")
    one = dpaudit(home, "ledger", "audits/ledger_paper__part.py::doubling", "--jobs", "1")
    assert list(table(one.stdout)) == ["p.wrong", "p.later"]


def test_what_is_stored_is_printed_without_running(home):
    ran = dpaudit(home, "ledger", "--jobs", "1")
    (home / "audits" / "ledger_paper__part.py").unlink()
    stored = dpaudit(home, "ledger", "paper", "--stored", "--json", "rows.json")
    assert stored.returncode == 0, stored.stderr
    assert table(stored.stdout) == {k: v for k, v in table(ran.stdout).items() if k != "q.only"}
    assert "4 statements: 1 refuted, 1 open, 2 hold" in stored.stdout
    assert len(json.loads((home / "rows.json").read_text())) == 4
    (home / "reports" / "statements" / "p.wrong.json").write_text("{")
    damaged = dpaudit(home, "ledger", "--stored")
    assert damaged.returncode == 1
    assert "set aside as p.wrong.corrupt" in damaged.stderr


def test_a_broken_check_is_printed_and_open(home):
    path = home / "audits" / "ledger_paper__part.py"
    path.write_text(CHECKS.replace("lambda x: (x, 2 * x), mutant=None", "lambda x: (x, 1 / 0)"))
    result = dpaudit(home, "ledger", "paper", "--jobs", "1")
    assert result.returncode == 1
    assert "ERROR" in result.stdout
    assert "ZeroDivisionError: division by zero" in result.stdout
    row = table(result.stdout)["p.second"]
    assert row[0] == "open !"
    assert row[-1] == "the verdict is open, holds was declared"


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (
            ["nobody"],
            4,
            "'nobody' is neither a paper with a ledger nor a path; papers here: other,",
        ),
        (["paper", "nowhere"], 4, "PATHS: 'nowhere' does not exist"),
        (["audits/audit_mine.py"], 4, "is no ledger: its name is not ledger_*.py"),
        (["--profile", "fast"], 4, "profile must be one of quick, full, release; got 'fast'"),
        (["--jobs", "many"], 4, "--jobs must be auto or an integer >= 1, got 'many'"),
        (["--stored"], 4, "cannot read reports/results.json"),
        (["--stored", "-k", "x"], 4, "--stored takes a PAPER and nothing that would be run"),
        (["-k", "nothing", "--jobs", "1"], 5, "no check was collected"),
        (["audits/statements"], 5, "no check was collected: checks are functions with @statement"),
    ],
)
def test_wrong_usage_is_told_in_one_line(home, args, code, words):
    result = dpaudit(home, "ledger", *args)
    assert result.returncode == code, result.stdout + result.stderr
    assert words in " ".join((result.stdout + result.stderr).split())
    assert "Traceback" not in result.stdout + result.stderr


def test_stored_knows_its_papers(home):
    dpaudit(home, "run", "audits/audit_mine.py", "--jobs", "1")
    nothing = dpaudit(home, "ledger", "--stored")
    assert nothing.returncode == 5
    assert "the last run in reports checked no statement" in nothing.stderr
    dpaudit(home, "ledger", "other", "--jobs", "1")
    unknown = dpaudit(home, "ledger", "paper", "--stored")
    assert unknown.returncode == 4
    assert "has no 'paper'; papers there: other" in unknown.stderr


def test_without_hypothesis_one_sentence_says_what_to_install(home):
    code = "import sys; sys.modules['hypothesis'] = None; from dpaudit.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", code, "ledger"],
        cwd=home, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 4
    assert "need hypothesis: pip install 'dpaudit[ledger]'" in result.stderr


# --- the other commands ---


def test_run_makes_audits_and_checks_with_a_line_each(home):
    result = dpaudit(home, "run", "--jobs", "2")
    assert result.returncode == 0, result.stdout + result.stderr
    lines = sorted(result.stdout.splitlines())
    begun = [
        "HOLDS              p.second  exact  ratio 0.5  2 examples  no mutant",
        "NOT REFUTED        audit_mine::audit_noisy",
        "REFUTED            p.wrong  exact  ratio 2",
    ]
    for begin in begun:
        assert any(line.startswith(begin) for line in lines), begin
    assert "5 statements: 1 refuted, 1 open, 3 hold" in result.stdout
    assert "1 audit and the ledger in " in result.stdout
    document = json.loads((home / "reports" / "results.json").read_text())
    assert (len(document["audits"]), len(document["statements"])) == (1, 5)
    assert 'href="ledger.html"' in (home / "reports" / "index.html").read_text()
    resumed = dpaudit(home, "run", "--jobs", "1", "--resume")
    assert resumed.returncode == 0
    again = json.loads((home / "reports" / "results.json").read_text())
    assert again["statements"] == document["statements"]
    alone = dpaudit(home, "run", "audits/audit_mine.py", "--jobs", "1")
    assert "ledger" not in alone.stdout
    assert not (home / "reports" / "ledger.html").exists()


def test_report_renders_both_pages_again(home):
    dpaudit(home, "ledger", "--jobs", "1")
    page = home / "reports" / "ledger.html"
    before = page.read_text()
    page.unlink()
    assert dpaudit(home, "report").returncode == 0
    assert page.read_text() == before
    (home / "reports" / "statements" / "p.first.json").unlink()
    assert dpaudit(home, "report").returncode == 1
    assert "what was found is lost" in page.read_text()


def test_replay_makes_a_check_again(home):
    dpaudit(home, "ledger", "paper", "--jobs", "1", "--seed", "3")
    for name in ("p.first", "p.wrong"):
        stored = home / "reports" / "statements" / f"{name}.json"
        result = dpaudit(home, "replay", str(stored.relative_to(home)))
        assert result.returncode == 0, result.stdout + result.stderr
        assert result.stdout.splitlines()[-1] == "the same"
    assert "refuted: ratio 2.0, 1 example, lhs = 2 > rhs = 1" in result.stdout
    record = json.loads(stored.read_text())
    record["attempts"][0]["counterexample"]["lhs"] = 7.0
    record["origin"]["versions"]["numpy"] = "1.0"
    stored.write_text(json.dumps(record))
    changed = dpaudit(home, "replay", str(stored))
    assert changed.returncode == 1
    assert "attempts[0].counterexample.lhs: 7.0 against 2.0" in changed.stdout
    assert "versions: " in changed.stdout
    assert changed.stdout.splitlines()[-1] == "NOT the same"
    (home / "audits" / "ledger_paper__part.py").unlink()
    gone = dpaudit(home, "replay", str(stored))
    assert gone.returncode == 4
    assert "the ledger file audits/ledger_paper__part.py is not here" in gone.stderr


TIMED = """
import time

@statement("q.timed", "a moment has passed", replays=False)
def timed(ledger):
    ledger.sweep([1.0], lambda x: (time.perf_counter(), time.perf_counter() * 1.5))
"""


def test_a_check_of_seconds_replays_by_its_verdict(home):
    with (home / "audits" / "ledger_other.py").open("a") as file:
        file.write(TIMED)
    dpaudit(home, "ledger", "other", "--jobs", "1")
    stored = home / "reports" / "statements" / "q.timed.json"
    again = dpaudit(home, "replay", str(stored))
    assert (again.returncode, again.stdout.splitlines()[-1]) == (0, "the same")
    record = json.loads(stored.read_text())
    stored.write_text(json.dumps({**record, "verdict": "refuted"}))
    assert dpaudit(home, "replay", str(stored)).returncode == 1
    stored.write_text(json.dumps({**record, "origin": {**record["origin"], "replays": True}}))
    assert dpaudit(home, "replay", str(stored)).returncode == 1


def test_what_an_interrupted_run_stored_is_no_success(home):
    assert dpaudit(home, "ledger", "paper", "--jobs", "1").returncode == 0
    index = home / "reports" / "results.json"
    document = json.loads(index.read_text())
    assert document["run"]["complete"]
    index.write_text(json.dumps({**document, "run": {**document["run"], "complete": False}}))
    result = dpaudit(home, "ledger", "--stored")
    assert result.returncode == 1
    assert "the run was interrupted" in result.stdout


def test_an_escaped_mutant_fails_the_run_and_is_called_so(home):
    path = home / "audits" / "ledger_paper__part.py"
    path.write_text(CHECKS.replace("(x, 2 * x), mutant=None", "(x, 2 * x), mutant=0.9"))
    result = dpaudit(home, "run", "--jobs", "1", "-k", "p.second")
    assert result.returncode == 1
    assert "HOLDS (a mutant survived)" in result.stdout
    assert "interrupted" not in dpaudit(home, "ledger", "-k", "nosuch").stdout
