"""Tests of runs that keep a history: exit codes, sentences, files for CI systems, and traps."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from dpaudit.store import add_to_history, load_result, read_history

MODULE = """
import numpy as np

KEEPS = 0.74

def response(data, size, *, rng):
    keeps = rng.random(size) < KEEPS
    return np.where(keeps, data[0], 1 - data[0])
"""

AUDIT = """
import numpy as np
import pytest
from dpaudit import NeighborPair, PureDP
from mine import response

PAIR = NeighborPair(np.array([1]), np.array([0]))

def audit_response(auditor):
    auditor.check(response, PureDP(1.0), PAIR, draws=600)
"""

KNOWN = AUDIT.replace(
    "def audit", "@pytest.mark.known_violation('small', profile='full')\ndef audit"
)

FILE = "history.jsonl"


@pytest.fixture
def home(home: Any) -> Any:
    home.write(mine=MODULE)
    home.put("audits/audit_mine.py", AUDIT)
    return home


def run(home: Any, *args: str) -> Any:
    return home.dpaudit("run", "--history", FILE, "--jobs", "0", *args)


def lines_of(home: Any) -> Any:
    return read_history(home.path / FILE)[0].lines


def with_evidence(home: Any, log: float) -> None:
    """Add an earlier run with another seed and this evidence to the history."""
    line = lines_of(home)[0]
    logs = (log,) * len(line.log_e_values)
    add_to_history(home.path / FILE, [replace(line, seed=10**6, log_e_values=logs)])


def test_a_run_adds_a_line_for_each_audit(home: Any) -> None:
    done = run(home)
    assert done.code == 0
    done.matches("*history: history.jsonl has 1 line of 1 run, and its last checksum is*")
    (line,) = lines_of(home)
    assert (line.audit, line.seed, line.words) == ("audit_mine::audit_response", 0, "epsilon = 1")
    result = load_result(home.path / "reports/audits/audit_mine.audit_response.json")
    assert line.log_e_values == result.log_e_values
    assert result.accumulated is not None
    assert (result.accumulated.runs, result.accumulated.counts) == (1, True)
    assert "history: " in done.out
    assert "last checksum" in (home.path / "reports/index.html").read_text()


@pytest.mark.slow
def test_accumulated_evidence_fails_the_run_like_a_refutation(home: Any) -> None:
    assert run(home).code == 0
    with_evidence(home, 40.0)
    done = run(home, "--seed", "1", "--junit", "junit.xml", "--sarif", "sarif.json")
    assert done.code == 1
    done.matches(
        "REFUTED (history)*audit_mine::audit_response*",
        "*history * 3 runs of this claim and code have the e-value 10^*, which is enough",
        "*next * Fix the mechanism, or claim a larger epsilon.",
        "*history: refuted by all runs together, but not by this run: audit_mine::audit_response",
    )
    assert "the claim is refuted by all runs together" in (home.path / "junit.xml").read_text()
    (alert,) = json.loads((home.path / "sarif.json").read_text())["runs"][0]["results"]
    assert (alert["ruleId"], alert["level"]) == ("dpaudit/refuted", "error")
    page = (home.path / "reports/index.html").read_text()
    assert "All runs of the history together refute it." in page
    assert "<dt>History</dt><dd>3 runs of this claim and code have the e-value" in page


@pytest.mark.slow
def test_a_known_violation_does_not_fail_the_run(home: Any) -> None:
    home.put("audits/audit_mine.py", KNOWN)
    run(home)
    with_evidence(home, 40.0)
    assert run(home, "--seed", "1").code == 0


@pytest.mark.slow
def test_the_same_seed_adds_nothing_and_the_run_says_what_to_do(home: Any) -> None:
    run(home)
    before = read_history(home.path / FILE)[0]
    done = run(home)
    done.matches(
        "*history: 1 of 1 audits add no evidence, because an earlier run had seed 0. Pass another "
        "--seed to each run*"
    )
    first, second = lines_of(home)
    assert first == before.lines[0]
    assert second.log_e_values == first.log_e_values
    assert read_history(home.path / FILE)[0].individual_error == before.individual_error


def test_a_mechanism_that_ignores_its_generator_is_not_combined(home: Any) -> None:
    """Its draws may repeat in each process, although the seeds differ."""
    own = "from dpaudit import unseeded\nOWN = np.random.default_rng(0)\n"
    module = MODULE.replace("KEEPS =", own + "KEEPS =").replace("rng.random", "OWN.random")
    home.write(mine=module.replace("def response", "@unseeded\ndef response"))
    done = run(home)
    done.matches("*history: not combined, because the draws do not follow the seed*audit_mine::*")
    assert not lines_of(home)[0].has_evidence


@pytest.mark.slow
def test_changed_code_starts_anew(home: Any) -> None:
    run(home)
    with_evidence(home, 40.0)
    home.write(mine=MODULE.replace("0.74", "0.739"))
    done = home.dpaudit_process("run", "--history", FILE, "--jobs", "0", "--seed", "1")
    assert done.code == 0
    codes = {line.code for line in lines_of(home)}
    assert len(codes) == 2
    assert "" not in codes


def test_audits_without_a_verdict_leave_no_line(home: Any) -> None:
    home.put("audits/audit_bad.py", "def audit_bad(auditor):\n    raise ValueError('no')\n")
    assert run(home).code == 1
    assert [line.audit for line in lines_of(home)] == ["audit_mine::audit_response"]


def test_a_damaged_history_is_refused_before_the_run(home: Any) -> None:
    home.put(FILE, '{"audit": 1}\n')
    done = run(home)
    assert done.code == 4
    assert "history.jsonl, line 1, is damaged" in done.err + done.out
    assert not (home.path / "reports/results.json").exists()
    (home.path / FILE).unlink()
    assert run(home).code == 0  # no lock was left


@pytest.mark.parametrize("name", ["reports/results.json", "reports/results.jsonl", "x.sarif", "."])
def test_a_history_needs_a_file_of_its_own(home: Any, name: str) -> None:
    done = home.dpaudit("run", "--jobs", "0", "--sarif", "x.sarif", "--history", name)
    assert done.code == 4
    assert "istory" in done.err + done.out
    assert not (home.path / "reports/results.json").exists()


@pytest.mark.slow
def test_workers_read_the_history(home: Any) -> None:
    run(home)
    with_evidence(home, 40.0)
    done = home.dpaudit_process("run", "--history", FILE, "--jobs", "2", "--seed", "1")
    assert done.code == 1
    done.matches("REFUTED (history)*")


def test_a_resumed_run_counts_its_audits_once(home: Any) -> None:
    run(home)
    data = home.json("reports/results.json")
    home.reseal("reports/results.json", run={**data["run"], "complete": False})
    assert run(home, "--resume").code == 0
    first, second = lines_of(home)
    assert replace(second, made=first.made) == first
    result = load_result(home.path / "reports/audits/audit_mine.audit_response.json")
    assert result.accumulated is not None
    assert (result.accumulated.runs, result.accumulated.counts) == (1, False)


def test_the_plugin_needs_a_directory_for_its_results(home: Any) -> None:
    done = home.pytest("audits", "--dpaudit", f"--dpaudit-history={FILE}")
    assert done.code == 4
    assert "--dpaudit-history must be given with --dpaudit-out" in done.err + done.out
