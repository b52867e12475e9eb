"""Tests of user mistakes that once gave no message, a traceback or a wrong message."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from dpaudit.report import differences
from dpaudit.store import hold

MODULE = """
import os
import numpy as np

def honest(data, size, *, rng):
    return np.clip(data, 0, 1).sum() + rng.laplace(size=size)

def half(data, size, *, rng):
    return np.clip(data, 0, 1).sum() + rng.laplace(scale=0.1, size=size)

def unclipped(data, size, *, rng):
    return data.sum() + rng.laplace(size=size)

def ending(data, size, *, rng):
    os._exit(3)

class Coin:
    # Computed, which takes no time: for tests of runs and not of audits.

    def __init__(self, heads):
        self.heads = heads

    def pmf(self, data):
        return [self.heads, 1 - self.heads] if data.sum() > 0 else [0.5, 0.5]
"""

HEAD = """
import pytest
from dpaudit import NeighborPair, PureDP, Settings
from mine import Coin, ending, half, honest

PAIR = NeighborPair([[1.0]], [[0.0]])
"""

ONE = """
def audit_one(auditor):
    auditor.check(honest, PureDP(1.0), PAIR, mutants=[half], draws=600)
"""

TWO = ONE.replace("audit_one", "audit_two")

COMPUTED = """
def audit_one(auditor):
    auditor.check(Coin(0.6), PureDP(1.0), PAIR, mutants=[Coin(0.9)])
"""

COMPUTED_TWO = COMPUTED.replace("audit_one", "audit_two")

BARE = """
def audit_bare(auditor):
    auditor.check(honest, PureDP(1.0), PAIR, mutants=None, draws=600)
"""

BROKEN = """
def audit_broken(auditor):
    auditor.check(half, PureDP(1.0), PAIR, draws=600)
"""

ENDING = """
def audit_ending(auditor):
    auditor.check(ending, PureDP(1.0), PAIR, draws=600)
"""

FILE = "audits/audit_mine.py"


@pytest.fixture
def make(home):
    """Return a function that makes a project with these audits."""

    def made(*parts):
        home.put("mine.py", MODULE)
        home.put(FILE, HEAD + "".join(parts))
        return home

    return made


def run(home, *args):
    return home.dpaudit("run", "--jobs", "0", *args)


def stored(home):
    """Return the ids of the results on the page, the old results, and the stored run."""
    document = home.json("reports/results.json")
    kept = {entry["id"]: entry for entry in document["run"]["kept"]}
    return [row["id"] for row in document["audits"]], kept, document["run"]


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer_costs_an_earlier_run_nothing(make):
    pytest.importorskip("distributed")
    home = make(COMPUTED)
    run(home)
    before = home.json("reports/results.json")
    result = run(home, "--workers", "nowhere")
    assert result.code == 4
    assert 'dpaudit: dask must be "local" or the address of a scheduler' in result.err
    assert home.json("reports/results.json") == before


# --- 2, 3: audits that show nothing ---------------------------------------------------------------


def test_an_audit_that_forgot_its_fixture_fails(make):
    home = make(COMPUTED, "\ndef audit_forgotten():\n    pass\n")
    result = run(home)
    assert result.code == 1
    words = "audit_mine::audit_forgotten made no check: it does not take the fixture `auditor`; "
    assert words + "write def audit_forgotten(auditor)" in result.out
    assert words in home.json("reports/results.json")["run"]["problems"][0]


@pytest.mark.parametrize("way", ["option", "ini"])
@pytest.mark.slow
def test_a_strict_run_fails_without_power(make, way):
    home = make(ONE, BARE)
    assert run(home).code == 0
    home.put("pytest.ini", "[pytest]\ndpaudit_strict = true\n" if way == "ini" else "[pytest]\n")
    result = run(home, *["--strict"] * (way == "option"))
    assert result.code == 1
    assert "NO POWER           audit_mine::audit_bare" in result.out
    assert "NOT REFUTED        audit_mine::audit_one" in result.out
    same = home.pytest(FILE, "--dpaudit", "-o", "addopts=", *["--dpaudit-strict"] * (way != "ini"))
    assert same.code == 1
    assert "1 without power" in same.out
    assert run(home, "-k", "one", *["--strict"] * (way == "option")).code == 0


def test_a_strict_run_is_content_with_mutants_of_the_noise(make):
    home = make(BARE.replace("mutants=None, draws=600", "draws=3000"))
    result = run(home, "--strict")
    assert result.code == 0
    assert "NOT REFUTED        audit_mine::audit_bare" in result.out
    assert "  mutants 2 of 2 killed  " in result.out


def test_strict_spares_a_known_violation_of_a_larger_profile(make):
    mark = '\n@pytest.mark.known_violation("needs draws", profile="full")\ndef'
    assert run(make(BARE.replace("\ndef", mark)), "--strict").code == 0


def test_silence_says_what_to_try_next(make):
    lines = run(make(BARE)).out.splitlines()
    (advice,) = [line for line in lines if line.startswith("  next                ")]
    assert "mutant" in advice


# --- 6: mechanisms that end the process -------------------------------------------------------


@pytest.mark.slow
def test_a_mechanism_that_ends_its_process_is_told_and_gone_past(make):
    home = make(ENDING, ENDING.replace("audit_", "audit_again_"), ONE)
    for resume in ([], ["--resume"]):
        result = home.dpaudit_process("run", "--jobs", "1", *resume)
        assert result.code == 1, result.out + result.err
        for name in ("audit_ending", "audit_again_ending"):
            assert f"BROKEN OFF         {FILE}::{name}" in result.out
        assert (
            "its process ended: the code under audit crashed it, or called os._exit" in result.out
        )
        assert "NOT REFUTED        audit_mine::audit_one" in result.out
        ids, _, facts = stored(home)
        assert ids == ["audit_mine::audit_one"]
        assert [line.partition(": ")[0] for line in facts["problems"]] == [
            f"{FILE}::audit_ending",
            f"{FILE}::audit_again_ending",
        ]


@pytest.mark.slow
def test_a_file_that_ends_its_process_when_imported_does_not_go_on_for_ever(make):
    result = make("\nimport os\nos._exit(3)\n").dpaudit_process("run", "--jobs", "1")
    assert result.code == 1
    assert "one of the files ends it when imported" in result.out + result.err


# --- 7: selections, and two runs at a time ----------------------------------------------------


@pytest.mark.slow
def test_a_selected_run_leaves_the_others_and_says_so(make):
    home = make(ONE, TWO, ENDING.replace("ending", "skipped").replace("\ndef", SKIP))
    run(home)
    before = home.json("reports/results.json")["run"]
    assert before["kept"] == []
    result = run(home, "-k", "one")
    assert "includes 1 result of earlier runs" in result.out.splitlines()
    ids, kept, facts = stored(home)
    assert ids == ["audit_mine::audit_one", "audit_mine::audit_two"]
    assert kept == {
        "audit_mine::audit_two": {
            "kind": "audit",
            "id": "audit_mine::audit_two",
            "made": before["started"],
            "command": before["command"],
            "current": True,
        }
    }
    assert facts["complete"]
    assert facts["skipped"] == [f"{FILE}::audit_skipped: not now"]
    assert facts["family_wise_error"] == pytest.approx(4e-6)
    other = run(home, f"{FILE}::audit_two", "--seed", "5")
    assert "includes 1 result of earlier runs, 1 of them from other code or settings" in other.out
    ids, kept, _ = stored(home)
    assert list(kept) == ["audit_mine::audit_one"]
    assert not kept["audit_mine::audit_one"]["current"]
    run(home)
    assert stored(home)[1] == {}


SKIP = "\n@pytest.mark.skip(reason='not now')\ndef"


@pytest.mark.slow
def test_what_broke_off_now_is_not_shown_as_it_was(make):
    home = make(ONE, TWO)
    run(home)
    home.put("mine.py", MODULE.replace("def honest(data, size, *, rng):", BREAKING))
    result = run(home, "-k", "one")
    assert result.code == 1
    ids, kept, facts = stored(home)
    assert ids == ["audit_mine::audit_two"]
    assert not kept["audit_mine::audit_two"]["current"]
    assert "disk on fire" in facts["problems"][0]
    run(home, "-k", "two")
    now, earlier = stored(home)[2]["problems"]
    assert now.startswith(f"{FILE}::audit_two: ")
    assert earlier.startswith(f"in an earlier run, {FILE}::audit_one: ")
    assert "disk on fire" in earlier
    home.put("mine.py", MODULE)
    assert run(home, "-k", "one").code == 0
    assert stored(home)[2]["problems"] == []


BREAKING = 'def honest(data, size, *, rng):\n    raise RuntimeError("disk on fire")'


def test_a_run_of_a_file_replaces_what_it_no_longer_holds(make):
    home = make(COMPUTED, COMPUTED_TWO)
    home.put("audits/audit_other.py", HEAD + COMPUTED)
    run(home)
    home.put(FILE, HEAD + COMPUTED)
    run(home, FILE)
    ids, kept, _ = stored(home)
    assert ids == ["audit_mine::audit_one", "audit_other::audit_one"]
    assert list(kept) == ["audit_other::audit_one"]


def test_an_interrupted_run_is_not_made_complete_by_a_selection(make):
    home = make(COMPUTED, COMPUTED_TWO)
    run(home)
    facts = home.json("reports/results.json")["run"]
    home.reseal("reports/results.json", run={**facts, "complete": False})
    run(home, "-k", "one")
    assert not stored(home)[2]["complete"]


CHECKS = """
from dpaudit import statement

@statement("p.first")
def first(ledger):
    '''one is one'''
    ledger.sweep(x=1.0)(lambda x: (x, x))

@statement("p.second")
def second(ledger):
    '''two is two'''
    ledger.sweep(x=2.0)(lambda x: (x, x))
"""


@pytest.mark.slow
def test_ledger_keeps_audits_and_other_statements(make):
    home = make(COMPUTED)
    home.put("audits/p/ledger_part.py", CHECKS)
    home.put("audits/q/ledger_part.py", CHECKS.replace("p.", "q."))
    run(home)
    assert home.dpaudit("ledger", "p", "-k", "p.first", "--jobs", "0").code == 0
    ids, kept, _ = stored(home)
    assert ids == ["audit_mine::audit_one"]
    assert set(kept) == {"audit_mine::audit_one", "p.second", "q.first", "q.second"}
    assert all(entry["current"] for entry in kept.values())
    rows = home.json("reports/results.json")["statements"]
    assert [row["verdict"] for row in rows] == ["holds"] * 4
    home.put("audits/p/ledger_part.py", CHECKS.replace("two is two", "two is 2"))
    home.dpaudit("ledger", "q", "--jobs", "0")
    kept = stored(home)[1]
    assert set(kept) == {"audit_mine::audit_one", "p.first", "p.second"}
    assert home.dpaudit("ledger", "--jobs", "0").code == 0
    assert set(stored(home)[1]) == {"audit_mine::audit_one"}


def test_two_runs_do_not_write_into_one_directory(make):
    home = make(COMPUTED)
    (home.path / "reports").mkdir()
    lock = hold(home.path / "reports", "another")
    result = run(home)
    assert result.code == 4
    assert f"reports is in use by `another`, process {os.getpid()} on" in result.err
    assert "delete reports/.lock" in result.err
    lock.release()
    assert run(home).code == 0
    assert not list((home.path / "reports").glob(".*"))
    assert run(home, "--seed", "x").code == 4
    assert run(home, "-k", "nothing").code == 5
    assert not list((home.path / "reports").glob(".*"))


# --- 9, 11: replays ---------------------------------------------------------------------------

RESULT = "reports/audits/audit_mine.audit_one.json"


@pytest.mark.slow
def test_replay_of_changed_code_says_so_first_and_in_few_lines(make):
    home = make(ONE)
    run(home)
    home.put("mine.py", MODULE.replace("rng.laplace(size=size)", "rng.laplace(scale=2, size=size)"))
    result = home.dpaudit("replay", RESULT)
    assert result.code == 1
    lines = result.out.splitlines()
    assert lines[0] == "the code changed since, or is not here: mine.py"
    assert lines[1].startswith("stored    NOT REFUTED: epsilon >= 0.")
    assert "hits" in lines[1]
    assert lines[2].startswith("replayed  ")
    assert len(lines) == 24
    assert all(line.startswith("differs   result.") or "differs" in line for line in lines[3:23])
    assert lines[23].startswith("NOT the same: ")
    assert lines[23].endswith(" values differ")
    (home.path / "mine.py").unlink()
    gone = home.dpaudit("replay", RESULT)
    assert gone.out.startswith("the code changed since, or is not here: mine.py\n")
    assert "produced no result" in gone.err


def test_times_are_no_difference():
    old = {"mutants": [{"seconds": 1.0, "x": [1, 2]}], "seconds": 7.0}
    new = {"mutants": [{"seconds": 2.0, "x": [1, 3]}], "seconds": 8.0}
    assert list(differences("result", old, new)) == ["result.mutants[0].x[1]: 2 against 3"]


@pytest.mark.slow
def test_replay_runs_nothing_outside_of_its_project_without_trust(make):
    home = make(ONE)
    run(home)
    home.dpaudit("audit", "mine:unclipped", "--epsilon", "1", "--out", "found", "--draws", "1500")
    (found,) = (home.path / "found" / "audits").glob("*.json")
    assert home.dpaudit("replay", str(found)).code == 0
    (home.path / "inside").mkdir()
    inside = type(home)(home.path / "inside")
    for target, words in [
        ("os:system", "os:system lies in "),
        ("../mine.py:unclipped", "../mine.py:unclipped lies in "),
    ]:
        origin = {**json.loads(found.read_text())["origin"], "target": target}
        home.reseal(str(found.relative_to(home.path)), origin=origin)
        refused = inside.dpaudit("replay", str(found))
        assert refused.code == 4
        assert words in refused.err
        assert "Pass --trust if you trust the authors" in " ".join(refused.err.split())
    # The id is different, so the draws are different.
    assert inside.dpaudit("replay", str(found), "--trust").code == 1
    origin = {**home.json(RESULT)["origin"], "path": f"../{FILE}"}
    home.reseal(RESULT, origin=origin)
    refused = inside.dpaudit("replay", f"../{RESULT}")
    assert refused.code == 4
    assert f"../{FILE} lies in" in refused.err
    trusted = inside.dpaudit("replay", f"../{RESULT}", "--trust")
    assert (
        "the replay of audit_mine::audit_one produced no result" in trusted.err
    )  # because the module mine is missing


# --- 10: tests of refuted claims ------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("target", ["mine:unclipped", "mine.py:unclipped"])
@pytest.mark.parametrize("users", [5, 500])
def test_a_refuted_function_is_exported_as_a_test(make, target, users):
    home = make(ONE)
    command = ["audit", target, "--epsilon", "1", "--out", "found", "--draws", "600"]
    assert home.dpaudit(*command, "--pair", f"far_user:n_users={users}").code == 1
    (found,) = (home.path / "found" / "audits").glob("*.json")
    name = "tests/test_found.py"
    assert home.dpaudit("replay", str(found), "--export-test", name).out == f"test: {name}\n"
    assert (home.path / "tests" / "test_found.npz").exists() == (users == 500)
    assert str(home.path) not in (home.path / name).read_text()
    failing = home.pytest(name)
    assert failing.code == 1
    assert "1 failed" in failing.out
    assert "REFUTED  " + target in failing.out
    home.put("mine.py", MODULE.replace("return data.sum()", "return np.clip(data, 0, 1).sum()"))
    assert home.pytest(name).code == 0
    again = home.dpaudit("replay", str(found), "--export-test", name)
    assert again.code == 4
    assert "which exists" in again.err


def test_an_exported_test_keeps_the_score_and_what_errors_are(make):
    home = make(ONE)
    home.put(
        "odd.py",
        "import numpy as np\n\n"
        "def odd(data, size, *, rng):\n"
        "    if data.max() > 2:\n"
        "        raise ValueError('too large')\n"
        "    return rng.normal(size=(size, 2))\n\n"
        "def first(outputs):\n"
        "    return np.array([float(one.size == 0) for one in outputs])\n",
    )
    command = ["audit", "odd.py:odd", "--epsilon", "1", "--out", "found", "--draws", "600"]
    command += ["--errors", "outcome", "--score", "odd.py:first", "--pair", "far_user:n_users=5"]
    assert home.dpaudit(*command).code == 1
    (found,) = (home.path / "found" / "audits").glob("*.json")
    home.dpaudit("replay", str(found), "--export-test", "tests/test_found.py")
    text = (home.path / "tests" / "test_found.py").read_text()
    assert "Outcomes(load_target('odd.py:odd'), errors='outcome')" in text
    assert "score=load_target('odd.py:first')" in text
    failing = home.pytest("tests/test_found.py")
    assert failing.code == 1
    assert "REFUTED  odd.py:odd" in failing.out


@pytest.mark.slow
def test_a_refuted_audit_of_a_file_is_exported_as_a_test(make):
    home = make(BROKEN)
    run(home)
    found = "reports/audits/audit_mine.audit_broken.json"
    assert home.dpaudit("replay", found, "--export-test", "test_found.py").code == 0
    failing = home.pytest("test_found.py")
    assert failing.code == 1
    assert "REFUTED  audit_mine::audit_broken" in failing.out
    home.put("mine.py", MODULE.replace("scale=0.1, ", ""))
    assert home.pytest("test_found.py").code == 0


@pytest.mark.slow
def test_a_refuted_audit_is_written_as_a_program_and_as_an_issue(make):
    home = make(BROKEN)
    run(home)
    found = "reports/audits/audit_mine.audit_broken.json"
    printed = home.dpaudit("reproduce", found)
    assert printed.code == 0
    assert home.dpaudit("reproduce", found, "--out", "bug.py").out == "program: bug.py\n"
    written = (home.path / "bug.py").read_text()
    assert printed.out.rstrip() == written.rstrip()
    assert str(home.path) not in written
    bug = subprocess.run(
        [sys.executable, "bug.py"], cwd=home.path, capture_output=True, text=True, check=False
    )
    assert bug.returncode == 0, bug.stderr
    assert "epsilon at least" in bug.stdout
    issue = home.dpaudit("reproduce", found, "--markdown")
    assert issue.out.startswith("# ")
    assert "```python" in issue.out
    again = home.dpaudit("reproduce", found, "--out", "bug.py")
    assert again.code == 4
    assert "which exists" in again.err


def test_only_what_is_refuted_is_exported(make):
    home = make(ONE)
    home.put("audits/p/ledger_part.py", CHECKS)
    run(home)
    for name, words in [
        (RESULT, "audit_one must be REFUTED to make a failing test, got NOT REFUTED"),
        ("reports/statements/p.first.json", "must hold the result of an audit"),
    ]:
        refused = home.dpaudit("replay", name, "--export-test", "test_found.py")
        assert refused.code == 4
        assert words in refused.err
    assert not (home.path / "test_found.py").exists()
    for name, words in [
        (RESULT, "audit_one is not refuted, so there is nothing to reproduce"),
        ("reports/statements/p.first.json", "must hold the result of an audit"),
    ]:
        refused = home.dpaudit("reproduce", name, "--out", "bug.py")
        assert refused.code == 4
        assert words in refused.err
    assert not (home.path / "bug.py").exists()


# --- 13: tracebacks ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["run", "-k", "(("], "-k must be an expression, got '((': "),
        (["run", "-m", "not"], "-m must be an expression, got 'not': "),
        (["ledger", "-k", "a b"], "-k must be an expression, got 'a b': "),
        (["run", "--out", os.fsdecode(b"out\xff")], "is not valid UTF-8. Choose another"),
        (["report", os.fsdecode(b"\xff")], "without surrogate characters"),
        (
            ["audit", "mine:honest", "--epsilon", "1", "--pair", "far_user:n_users=99999999999999"],
            "n_users, m and dim must give at most 1,000,000,000 numbers, got n_users=9999",
        ),
        (["replay", "deep.json"], "deep.json is damaged"),
        (["run", "--time-limit", "0"], "time_limit must be a finite number > 0, got 0.0"),
    ],
)  # fmt: skip
def test_what_once_was_a_traceback_is_one_sentence(make, args, words):
    home = make(COMPUTED)
    home.put("deep.json", '{"a":' * 100_000)
    result = home.dpaudit(*args)
    assert result.code == 4, result.out + result.err
    assert words in " ".join(result.err.split())
    assert "Traceback" not in result.out + result.err


def test_the_reason_of_a_known_violation_is_told_and_stored(make):
    home = make(BROKEN.replace("\ndef", '\n@pytest.mark.known_violation("half the noise")\ndef'))
    result = run(home)
    assert result.code == 0
    assert "  known: half the noise  " in result.out
    found = home.json("reports/audits/audit_mine.audit_broken.json")
    assert found["origin"]["reason"] == "half the noise"
    verbose = home.pytest(FILE, "--dpaudit", "-v")
    assert "  known because       half the noise" in verbose.out.splitlines()


@pytest.mark.slow
def test_verbose_runs_show_the_evidence_of_every_audit(make):
    home = make(ONE)
    assert "every mutant" not in run(home).out
    verbose = home.pytest(FILE, "--dpaudit", "-v").out
    assert "  every mutant" in verbose
    assert "  witness" in verbose


@pytest.mark.parametrize("words", ["", "(1)", '("why", profile="fast")', '("why", because=1)'])
def test_a_wrong_mark_is_told_in_one_line(make, words):
    home = make(BROKEN.replace("\ndef", f"\n@pytest.mark.known_violation{words}\ndef"))
    result = run(home)
    assert result.code == 1
    assert "  known_violation(reason, profile='quick'): " in result.out
    assert "Traceback" not in result.out


# --- 15: audits that take long ----------------------------------------------------------------

SLOW = """
import time

def slow(data, size, *, rng):
    time.sleep(0.3)
    return honest(data, size, rng=rng)

def audit_slow(auditor):
    auditor.check(slow, PureDP(1.0), PAIR, draws=600)

def audit_patient(auditor):
    patient = Settings(time_limit=1000)
    auditor.check(honest, PureDP(1.0), PAIR, mutants=None, draws=600, settings=patient)
"""


WARNING = """
def audit_warning(auditor):
    import warnings
    from dpaudit.errors import SlowAuditWarning
    warnings.warn("this takes [an hour]", SlowAuditWarning)
    warnings.warn("that is nobody's business")
    auditor.check(honest, PureDP(1.0), PAIR, draws=3000)
"""


def test_an_audit_that_will_take_long_is_told(make):
    result = run(make(WARNING))
    assert "SLOW               this takes [an hour]" in result.out.splitlines()
    assert "business" not in result.out


def test_an_audit_that_takes_too_long_is_broken_off(make):
    result = run(make(SLOW), "--time-limit", "0.2")
    assert result.code == 1
    assert "time_limit = 0.2 s" in result.out
    assert "NO POWER (allowed) audit_mine::audit_patient" in result.out
