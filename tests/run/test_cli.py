"""Tests of the output, the exit codes and the files of the command line."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

MODULE = """
import numpy as np

def honest(data, size, *, rng):
    return np.clip(data, 0, 1).sum() + rng.laplace(size=size)

def unclipped(data, size, *, rng):
    return data.sum() + rng.laplace(size=size)

def half(data, size, *, rng):
    return np.clip(data, 0, 1).sum() + rng.laplace(scale=0.1, size=size)

def wrong(data, size, *, rng):
    return np.array([{"a": 1}] * size)

def crash(data, size, *, rng):
    raise RuntimeError("disk on fire")

def certain(data, size, *, rng):
    return np.full(size, data.sum())
"""

AUDIT = """
from dpaudit import NeighborPair, PureDP
from mine import half, honest, unclipped

PAIR = NeighborPair([[1.0]], [[0.0]])

def audit_honest(auditor):
    auditor.check(honest, PureDP(1.0), PAIR, mutants=[half], draws=600)
"""

BROKEN = """
def audit_broken(auditor):
    auditor.check(half, PureDP(1.0), PAIR, draws=1000)
"""


@pytest.fixture
def home(home):
    home.write(mine=MODULE)
    home.put("audits/audit_mine.py", AUDIT)
    return home


def dpaudit(home, *args):
    return home.dpaudit(*args)


def test_help_lists_the_commands(home):
    result = dpaudit(home, "--help")
    assert result.code == 0
    for command in ("run", "audit", "report", "replay"):
        assert f"  {command} " in result.out


def test_run_prints_a_line_for_each_audit_and_writes_the_report(home):
    result = dpaudit(home, "run", "--jobs", "0")
    assert result.code == 0, result.out + result.err
    lines = result.out.splitlines()
    assert lines[0].startswith("NOT REFUTED        audit_mine::audit_honest  epsilon >= 0.")
    assert lines[-2].startswith("1 audit in ")
    assert "is wrong: at most 2e-06" in lines[-2]
    assert lines[-1] == "report: reports/index.html"
    assert (home.path / "reports" / "index.html").exists()
    assert home.json("reports/results.json")["run"]["profile"] == "quick"
    assert not list((home.path / "reports").rglob(".*"))


@pytest.mark.slow
def test_run_exits_1_on_a_refutation_and_names_the_witness(home):
    with (home.path / "audits" / "audit_mine.py").open("a") as file:
        file.write(BROKEN)
    result = home.dpaudit_process("run", "audits", "--jobs", "1", "--out", "elsewhere", "-v")
    assert result.code == 1
    assert "witness             guess left where output " in result.out
    assert "dpaudit replay elsewhere/audits/audit_mine.audit_broken.json" in result.out
    only = dpaudit(home, "run", "audits", "-k", "honest", "--jobs", "0")
    assert only.code == 0


def test_marks_select_audits_and_the_page_repeats_them(home):
    with (home.path / "audits" / "audit_mine.py").open("a") as file:
        file.write("\nimport pytest\n\n@pytest.mark.long" + BROKEN)
    home.put("pyproject.toml", '[tool.pytest.ini_options]\nmarkers = ["long"]\n')
    assert dpaudit(home, "run", "-m", "not long", "--jobs", "0").code == 0
    run = home.json("reports/results.json")["run"]
    assert run["command"].endswith(" -m 'not long'")
    assert [path.name for path in (home.path / "reports" / "audits").glob("*.json")] == [
        "audit_mine.audit_honest.json"
    ]


@pytest.mark.slow
def test_run_shows_live_progress_on_a_terminal_only(home):
    plain = dpaudit(home, "run", "--jobs", "0").out
    assert "\x1b" not in plain
    master, slave = pty.openpty()
    code = "from dpaudit.run.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "run", "--jobs", "0"],
        cwd=home.path, stdout=slave, stderr=slave, env={**os.environ, "TERM": "xterm-256color"},
    )  # fmt: skip
    os.close(slave)
    seen = b""
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:
            break
        if not chunk:
            break
        seen += chunk
    os.close(master)
    assert process.wait() == 0
    assert b"auditing" in seen
    assert b"\x1b[" in seen


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["run", "nowhere"], "PATHS: 'nowhere' does not exist"),
        (["run", "--profile", "fast"], "profile must be one of quick, full, release, got 'fast'"),
        (["run", "--failure-prob", "0"], "failure_prob must be a number strictly between 0 and 1"),
        (["run", "--seed", "-3"], "-3"),
        (["run", "--jobs", "many"], "--jobs must be auto or an integer >= 0, got 'many'"),
        (["run", "--out", "mine.py"], "cannot write mine.py: it is a file, not a directory"),
        (["run", "--bogus"], "No such option"),
        (["nonsense"], "No such command"),
        (["audit", "mine:honest"], "--mu and --rho must be given, got none of them"),
        (["audit", "mine", "--epsilon", "1"], "must be MODULE:FUNCTION, got 'mine'"),
        (["audit", "mine:none", "--epsilon", "1"], "module mine has no function 'none'"),
        (["audit", "absent:f", "--epsilon", "1"], "cannot import absent: ModuleNotFoundError"),
        (["audit", "absent.py:f", "--epsilon", "1"], "must be an existing file, got absent.py"),
        (["audit", "mine:honest", "--epsilon", "-1"], "epsilon must be a finite number >= 0"),
        (["audit", "mine:honest", "--epsilon", "nan"], "epsilon must be a finite number >= 0"),
        (["audit", "mine:honest", "--epsilon", "1", "--delta", "2"], "delta must be a number in"),
        (["audit", "mine:honest", "--epsilon", "1", "--delta", "-0.1"], "delta must be a number"),
        (["audit", "mine:honest", "--epsilon", "1", "--delta", "nan"], "delta must be a number in"),
        (["audit", "mine:honest", "--epsilon", "1", "--draws", "0"], "draws must be an integer >="),
        (
            ["audit", "mine:honest", "--epsilon", "1", "--pair", "far_usr"],
            "got 'far_usr'. Did you mean far_user?",
        ),
        (
            ["audit", "mine:honest", "--epsilon", "1", "--pair", "far_user:size=3"],
            "the recipe far_user takes name=value, where name is one of n_users",
        ),
        (
            ["audit", "mine:honest", "--epsilon", "1", "--pair", "far_user:n_users=x,m=1..2"],
            "raised TypeError: n_users must be an integer >= 2, got 'x'",
        ),
        (["report", "nowhere"], "cannot read nowhere/results.json"),
        (["replay", "nowhere.json"], "cannot read nowhere.json"),
    ],
)  # fmt: skip
def test_wrong_usage_is_exit_4_with_one_clear_line(home, args, words):
    result = dpaudit(home, *args)
    assert result.code == 4, result.out + result.err
    assert words in result.err.replace("\n", " ")
    assert "Traceback" not in result.err + result.out


def test_nothing_collected_is_exit_5(home):
    assert dpaudit(home, "run", "-k", "nothing", "--jobs", "0").code == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        (
            "audits/audit_bad.py",
            "import nonexistent_thing\n",
            "ModuleNotFoundError: No module named 'nonexistent_thing' "
            "(audits/audit_bad.py, line 1)",
        ),
        (
            "audits/ledger_bad.py",
            "x = 1\ndef (:\n",
            "SyntaxError: invalid syntax (audits/ledger_bad.py, line 2)",
        ),
    ],
)
def test_file_that_cannot_be_collected_is_a_failure_and_costs_the_others_nothing(
    home, name, code, words
):
    home.put(name, code)
    result = dpaudit(home, "run", "--jobs", "0")
    assert result.code == 1
    assert f"  {words}" in result.out.splitlines()
    assert f"problem: {name}: {words}" in result.out
    assert "NOT REFUTED        audit_mine::audit_honest" in result.out
    assert "interrupted" not in result.out


@pytest.mark.slow
def test_audit_of_one_function(home):
    honest = dpaudit(
        home, "audit", "mine:honest", "--epsilon", "1", "--m", "1",
        "--mutant", "mine:half", "--draws", "2000",
    )  # fmt: skip
    assert honest.code == 0
    assert honest.out.startswith("NOT REFUTED  mine:honest")
    assert "  mutants             given 1 of 1, noise 2 of 2, " in honest.out
    assert len(honest.out.splitlines()) <= 12
    assert "\n  witness " not in honest.out
    args = "--epsilon", "1", "--m", "1", "--draws", "2000", "-v"
    alone = dpaudit(home, "audit", "mine:honest", *args)
    assert alone.code == 0
    assert alone.out.startswith("NOT REFUTED  mine:honest")
    assert "  mutants             noise 2 of 2" in alone.out
    assert "\n  every mutant        killed: epsilon >" in alone.out
    assert "\n  witness             " in alone.out
    blunt = dpaudit(
        home, "audit", "mine:honest", "--epsilon", "1", "--m", "1",
        "--mutant", "mine:honest", "--draws", "2000",
    )  # fmt: skip
    assert blunt.out.startswith("NO POWER  mine:honest")
    caught = dpaudit(
        home, "audit", "mine.py:unclipped", "--epsilon", "1", "--out", "found", "--draws", "2000"
    )
    assert caught.code == 1
    assert caught.out.startswith("REFUTED  mine.py:unclipped")
    assert list((home.path / "found" / "audits").glob("*.json"))


@pytest.mark.slow
def test_deterministic_function_gets_a_large_finite_epsilon(home):
    result = dpaudit(home, "audit", "mine:certain", "--epsilon", "1")
    assert result.code == 1
    assert "at least epsilon = 9." in result.out
    assert "Warning" not in result.err


@pytest.mark.parametrize(("function", "words"), [("wrong", "(objects)"), ("crash", "disk on fire")])
def test_fault_of_the_mechanism_is_exit_1_with_one_line(home, function, words):
    result = dpaudit(
        home, "audit", f"mine:{function}", "--epsilon", "1", "--out", "found", "--draws", "2000"
    )
    assert result.code == 1
    assert words in result.err
    assert "Traceback" not in result.err
    assert not list((home.path / "found").rglob("*.*"))


@pytest.mark.slow
def test_replay_gives_the_same_numbers(home):
    dpaudit(home, "run", "--jobs", "0", "--seed", "3")
    stored = "reports/audits/audit_mine.audit_honest.json"
    result = dpaudit(home, "replay", stored)
    assert result.code == 0, result.out + result.err
    assert [line.split()[0] for line in result.out.splitlines()] == ["stored", "replayed", "the"]
    assert result.out.splitlines()[-1] == "the same"
    witness = home.json(stored)["witness"]
    witness["counts"]["hits_left"] -= 1
    home.reseal(stored, witness=witness)
    wrong = dpaudit(home, "replay", stored)
    assert wrong.code == 1
    named = wrong.out.splitlines()
    assert named[-2].startswith("differs   witness.counts.hits_left: ")
    assert named[-1] == "NOT the same: 1 value differs"


@pytest.mark.slow
def test_replay_names_the_kernels_that_changed(home):
    dpaudit(home, "run", "--jobs", "0")
    name = "reports/audits/audit_mine.audit_honest.json"
    record = home.json(name)
    now = record["origin"]["versions"]["blas"]
    assert record["diagnostics"]["versions"]["blas"] == now
    record["origin"]["versions"]["blas"] = "openblas 0.3 Other"
    home.reseal(name, **record)
    same = dpaudit(home, "replay", name)  # other BLAS kernels need not change the result
    assert same.code == 0
    assert f"versions changed since: blas openblas 0.3 Other then, {now} now" in same.out


@pytest.mark.slow
def test_replay_makes_the_mutants_again(home):
    dpaudit(home, "run", "--jobs", "0")
    stored = "reports/audits/audit_mine.audit_honest.json"
    mutants = home.json(stored)["mutants"]
    assert [mutant["status"] for mutant in mutants if not mutant["kind"]] == ["killed"] * 3
    mutants[1]["status"] = "survived"
    home.reseal(stored, mutants=mutants)
    wrong = dpaudit(home, "replay", stored)
    assert wrong.code == 1
    assert wrong.out.splitlines()[-2].startswith("differs   mutants[1].status: ")


@pytest.mark.slow
def test_replay_of_a_single_function(home):
    dpaudit(
        home,
        "audit",
        "mine:unclipped",
        "--epsilon",
        "1",
        "--out",
        "found",
        "--seed",
        "7",
        "--draws",
        "2000",
    )
    (stored,) = (home.path / "found" / "audits").glob("*.json")
    assert dpaudit(home, "replay", str(stored)).code == 0


def test_half_a_results_file_is_refused(home):
    dpaudit(home, "run", "--jobs", "0")
    path = home.path / "reports" / "results.json"
    path.write_text(path.read_text()[:100])
    result = dpaudit(home, "report")
    assert result.code == 4
    assert "is damaged or cut off" in result.err


def test_half_an_audit_file_is_set_aside_and_reported(home):
    dpaudit(home, "run", "--jobs", "0")
    stored = home.path / "reports" / "audits" / "audit_mine.audit_honest.json"
    stored.write_text(stored.read_text()[:100])
    result = dpaudit(home, "report")
    assert result.code == 1
    assert "set aside as audit_mine.audit_honest.corrupt" in result.err
    assert stored.with_suffix(".corrupt").exists()
    assert dpaudit(home, "replay", str(stored)).code == 4
