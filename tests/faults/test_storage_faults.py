"""Tests of runs whose storage fails.

The results are kept, the run reports why it ended, and the run can be resumed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dpaudit import StoreError
from dpaudit.store import JOURNAL, load_run, read_whole_run

AUDITS = """
import os, pathlib, shutil, time
import numpy as np, pytest
from dpaudit import NeighborPair, PureDP, Settings

PAIR = NeighborPair([[1.0]], [[0.0]])

def noisy(data, size, *, rng):
    return data.sum() + rng.laplace(size=size)

@pytest.mark.parametrize("number", range(6))
def audit_noisy(auditor, number):
    fault = os.environ.get("FAULT", "")
    if number == 4:
        exec(fault)
    auditor.check(noisy, PureDP(1.0), PAIR, draws=200, mutants=None)
"""
LEDGER = '''"""A paper."""
import os
from dpaudit.ledger import statement

@statement("p.first")
def first(ledger):
    """Squares are at least 0."""
    exec(os.environ.get("FIRST", ""))
    ledger.sweep([{"x": 1.0}], lambda x: (0.0, x * x))

@statement("p.second")
def second(ledger):
    """Halves are at most wholes."""
    exec(os.environ.get("SECOND", ""))
    ledger.sweep([{"x": 1.0}], lambda x: (x / 2, x))
'''
LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))"


class Home:
    """A project with six audits."""

    def __init__(self, path: Path) -> None:
        self.path, self.out = path, path / "reports"
        (path / "audit_x.py").write_text(AUDITS)

    def start(self, *more: str, fault: str = "", jobs: int = 0, **env: str) -> Any:
        command = [sys.executable, "-c", "from dpaudit.run.cli import main; main()", "run"]
        command += ["--jobs", str(jobs), *more]
        return subprocess.Popen(
            command,
            cwd=self.path,
            env={**os.environ, "FAULT": fault, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *more: str, fault: str = "", jobs: int = 0, **env: str) -> tuple[int, str]:
        process = self.start(*more, fault=fault, jobs=jobs, **env)
        words, _ = process.communicate(timeout=120)
        return process.returncode, words

    def ids(self) -> list[str]:
        return [record.id for record in read_whole_run(self.out)[1] if record.origin]

    def leftovers(self) -> list[str]:
        """Return the files that only a fault leaves."""
        found = [str(p) for p in self.path.rglob("*") if p.name.startswith(".") and p.is_file()]
        return found + [str(p) for p in self.path.rglob("*.tmp")]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def ids(*numbers: int) -> list[str]:
    return [f"audit_x::audit_noisy[{number}]" for number in numbers]


def resumes(home: Home, taken: int) -> None:
    """Check that the next run takes over the stored results and ends without a fault."""
    before = {path: path.stat().st_mtime_ns for path in home.out.glob("audits/*.json")}
    code, words = home.run("--resume")
    assert code == 0, words
    run, _ = read_whole_run(home.out)
    assert run.complete
    assert run.problems == ()
    assert home.ids() == ids(0, 1, 2, 3, 4, 5)
    assert len(before) == taken
    assert not (home.out / JOURNAL).exists()


@pytest.mark.parametrize("jobs", [0, 2])
def test_nothing_is_lost_at_kill_9(home: Home, jobs: int) -> None:
    process = home.start(fault="time.sleep(20)", jobs=jobs)
    deadline = time.monotonic() + 60
    while len(list(home.out.glob("audits/*.json"))) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)  # the line of the journal is written after the file
    process.send_signal(signal.SIGKILL)
    process.communicate()
    found = home.ids()
    assert len(found) == len(list(home.out.glob("audits/*.json"))) >= 4
    run, results, _ = load_run(home.out)
    assert not run.complete
    assert run.family_wise_error == pytest.approx(sum(r.total_failure_prob for r in results))
    resumes(home, len(found))


def test_a_journal_whose_last_line_is_cut_off_is_read_up_to_there(home: Home) -> None:
    process = home.start(fault="os.kill(os.getpid(), 9)")
    process.communicate()
    journal = home.out / JOURNAL
    content = journal.read_bytes()
    assert content.count(b"\n") == 3  # the first record is in results.json
    for cut in [*range(0, len(content), 499), *range(len(content) - 3, len(content))]:
        journal.write_bytes(content[:cut])
        assert home.ids() == ids(*range(1 + content[:cut].count(b"\n")))
    journal.write_bytes(
        content.replace(b"laplace", b"gauss", 1).replace(b'"seed": 0', b'"seed": 1', 1)
    )
    with pytest.raises(StoreError, match=r"results.jsonl, line 1, is damaged"):
        load_run(home.out)


def test_a_journal_holds_statements_too(home: Home) -> None:
    folder = home.path / "paper"
    folder.mkdir()
    (folder / "ledger_p.py").write_text(LEDGER)
    kill = "os.kill(os.getpid(), 9)"
    home.start(fault=kill, SECOND="").communicate()  # the audits run first
    assert home.ids() == ids(0, 1, 2, 3)
    home.start("--resume", SECOND=kill).communicate()
    run, records = read_whole_run(home.out)
    assert [r.id for r in records if r.origin] == [*ids(0, 1, 2, 3, 4, 5), "p.first"]
    assert not run.complete
    assert home.run("--resume")[0] in (0, 1)
    run, records = read_whole_run(home.out)
    assert run.complete
    assert [r.id for r in records if r.origin][-2:] == ["p.first", "p.second"]


def test_a_kept_record_that_was_made_again_is_kept_no_more(home: Home) -> None:
    assert home.run()[0] == 0
    (home.path / "audit_y.py").write_text(AUDITS)
    home.start("audit_y.py", fault="os.kill(os.getpid(), 9)").communicate()
    run, results = read_whole_run(home.out)
    assert {kept.id for kept in run.kept} == {*ids(0, 1, 2, 3, 4, 5)}
    assert len(results) == 10
    home.start("audit_x.py", fault="os.kill(os.getpid(), 9)").communicate()
    run, results = read_whole_run(home.out)
    assert sorted({kept.id for kept in run.kept} & {*ids(0, 1, 2, 3, 4, 5)}) == []


@pytest.mark.parametrize("jobs", [0, 2])
def test_a_directory_that_is_removed_ends_the_run_and_costs_nothing(home: Home, jobs: int) -> None:
    code, words = home.run(fault=f"shutil.rmtree({str(home.out)!r})", jobs=jobs)
    assert code == 2, words
    assert "reports was removed or replaced during the run" in words
    run, results = read_whole_run(home.out)
    assert not run.complete
    assert any("was removed or replaced" in problem for problem in run.problems)
    found = [result.id for result in results]
    printed = {*re.findall(r"^NO POWER .*(audit_x::\S+)", words, re.MULTILINE)}
    assert printed <= {*found}
    assert printed or jobs > 1  # two processes may see the fault before one of them reports
    resumes(home, len(found))


def test_a_directory_that_is_removed_at_the_very_end_is_noticed(home: Home) -> None:
    file = home.path / "audit_x.py"
    file.write_text(AUDITS + "\n\nimport atexit\n")
    conftest = home.path / "conftest.py"
    conftest.write_text(
        "import os, pytest, shutil\n\n@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_sessionfinish():\n    if os.environ['FAULT']:\n"
        f"        shutil.rmtree({str(home.out)!r})\n"
    )
    code, words = home.run(fault="'at the end'")
    assert code == 2, words
    assert home.ids() == ids(0, 1, 2, 3, 4, 5)
    assert not load_run(home.out)[0].complete
    resumes(home, 6)


@pytest.mark.parametrize("limit", [0, 300, 4_000])
def test_a_full_disk_under_the_results_ends_the_run(home: Home, limit: int) -> None:
    code, words = home.run(fault=LIMITED.format(limit))
    assert code == 2, words
    assert "the run ended early: cannot write" in words
    assert "Traceback" not in words
    assert home.leftovers() == []
    run, _, _ = load_run(home.out)
    assert not run.complete
    assert home.ids() == ids(0, 1, 2, 3)
    resumes(home, 4)


def test_a_full_disk_under_kept_calls_ends_the_run(home: Home) -> None:
    cached = "mutants=None, settings=Settings(cache_dir=f'kept/{number}'))"
    text = AUDITS.replace("mutants=None)", cached)
    text = text.replace("size=size)", "size=(size, 2_000), scale=1e4)")
    (home.path / "audit_x.py").write_text(text)
    code, words = home.run(fault=LIMITED.format(400_000))
    assert code == 2, words
    assert "audit_x.py::audit_noisy[4]: cannot write kept" in words
    assert "File too large" in words
    assert "Traceback" not in words
    assert home.leftovers() == []
    run, _, _ = load_run(home.out)
    assert not run.complete
    assert any("the run ended early" in problem for problem in run.problems)
    assert home.ids() == ids(0, 1, 2, 3)
    resumes(home, 4)
