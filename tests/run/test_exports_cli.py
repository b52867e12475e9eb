"""Tests of `--junit` and `--sarif` for CI systems."""

from __future__ import annotations

import json
import os
from xml.etree import ElementTree

import pytest

MINE = """
import numpy as np

def honest(data, size, *, rng):
    return np.clip(data, 0, 1).sum() + rng.laplace(size=size)

def wrong(data, size, *, rng):
    return np.clip(data, 0, 1).sum() + rng.laplace(scale=0.1, size=size)
"""

AUDIT = """
import pytest
from dpaudit import NeighborPair, PureDP
from mine import honest, wrong

PAIR = NeighborPair([[1.0]], [[0.0]])

def audit_honest(auditor):
    auditor.check(honest, PureDP(1.0), PAIR, mutants=[wrong], draws=300)

def audit_blunt(auditor):
    auditor.check(honest, PureDP(3.0), PAIR, mutants=[honest], draws=300)

@pytest.mark.known_violation("a tenth of the noise")
def audit_known(auditor):
    auditor.check(wrong, PureDP(1.0), PAIR, draws=300)

@pytest.mark.parametrize("scale", [1, 2])
def audit_wrong(auditor, scale):
    auditor.check(wrong, PureDP(scale), PAIR, draws=300)

def audit_broken(auditor):
    raise RuntimeError("disk on fire")

def audit_far(auditor):
    pytest.skip("no such package")
"""

LEDGER = """
from dpaudit import statement

@statement("p.one")
def one(ledger):
    '''Squares are at least 0.'''
    ledger.argue("by sight")

@statement("p.two", expected="refuted")
def two(ledger):
    '''Squares are positive.'''
    ledger.argue("by sight")
"""

FILES = ("--junit", "ci/junit.xml", "--sarif", "ci/dpaudit.sarif")


@pytest.fixture
def home(home):
    home.write(mine=MINE)
    home.put("audits/audit_mine.py", AUDIT)
    home.put("audits/ledger_p.py", LEDGER)
    return home


def parsed(home):
    """Return the only suite of the JUnit file.

    The counts of the suite must match its cases.
    """
    (suite,) = ElementTree.parse(home.path / "ci" / "junit.xml").getroot()
    names = [(case.get("classname"), case.get("name")) for case in suite]
    assert len(set(names)) == len(names) == int(suite.get("tests"))
    for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.get(count)) == len(suite.findall(f"testcase/{tag}"))
    return suite


def cases(home):
    """Return the tag of each case in the JUnit file.

    The tag of a passed case is empty.
    """
    root = parsed(home)
    made = {}
    for case in root.iter("testcase"):
        tags = [child.tag for child in case if child.tag != "properties"]
        made[case.get("name")] = tags[0] if tags else ""
    return made


def results(home, name="ci/dpaudit.sarif"):
    """Return the rule, the file and the line of each result."""
    text = (home.path / name).read_text()
    (only,) = json.loads(text, parse_constant=pytest.fail)["runs"]
    found = []
    for result in only["results"]:
        place = result["locations"][0]["physicalLocation"]
        line = place["region"]["startLine"]
        found.append((result["ruleId"], place["artifactLocation"]["uri"], line))
    return found


AUDITS = {
    "audit_honest": "",
    "audit_blunt": "failure",
    "audit_known": "",
    "audit_wrong[1]": "failure",
    "audit_wrong[2]": "failure",
    "audit_broken": "failure",
    "audit_far": "skipped",
}
ROWS = {"one": "", "two": "failure"}


def line(file, text):
    return file.splitlines().index(text) + 1


@pytest.mark.slow
def test_run_writes_both_files_and_report_writes_sarif_again(home):
    done = home.dpaudit("run", "--jobs", "0", *FILES)
    assert done.code == 1, done.out + done.err
    assert done.out.splitlines()[-2:] == ["junit: ci/junit.xml", "sarif: ci/dpaudit.sarif"]
    assert cases(home) == {**AUDITS, **ROWS}
    file, ledger = "audits/audit_mine.py", "audits/ledger_p.py"
    wrong = line(AUDIT, "def audit_wrong(auditor, scale):")
    assert sorted(results(home)) == [
        ("dpaudit/no-power", file, line(AUDIT, "def audit_blunt(auditor):")),
        ("dpaudit/refuted", file, line(AUDIT, "def audit_known(auditor):")),
        ("dpaudit/refuted", file, wrong),
        ("dpaudit/refuted", file, wrong),
        ("dpaudit/statement", ledger, line(LEDGER, "def two(ledger):")),
    ]
    again = home.dpaudit("report", "--sarif", "later.sarif", "--badge", "later.svg")
    assert again.out.splitlines()[-2:] == ["sarif: later.sarif", "badge: later.svg"]
    assert "<title>dpaudit: 2 refuted</title>" in (home.path / "later.svg").read_text()
    assert (home.path / "ci/dpaudit.sarif").read_bytes() == (home.path / "later.sarif").read_bytes()
    assert not list((home.path / "ci").glob(".*"))
    assert home.dpaudit("report", "--junit", "later.xml").code == 4


@pytest.mark.slow
def test_a_case_says_why_it_fails_and_what_was_found(home):
    home.dpaudit("run", "--jobs", "0", *FILES)
    suite = parsed(home)
    assert suite.get("name") == "dpaudit"
    made = {case.get("name"): case for case in suite}
    assert made["audit_wrong[1]"].get("classname") == "audits.audit_mine"
    failure = made["audit_wrong[1]"].find("failure")
    assert "audit_mine::audit_wrong[1]: the claim is refuted: " in failure.get("message")
    assert "the given mutant honest was not run" in made["audit_blunt"].find("failure").get(
        "message"
    )
    assert "disk on fire" in made["audit_broken"].find("failure").text
    assert made["audit_far"].find("skipped").get("message") == "no such package"
    found = {p.get("name"): p.get("value") for p in suite.iter("property")}
    assert found["audit_mine::audit_known"].startswith("REFUTED (known): epsilon >= ")
    assert found["p.two"].startswith("HOLDS (refuted was declared)")


@pytest.mark.slow
def test_a_file_that_cannot_be_collected_is_in_error(home):
    home.put("audits/audit_torn.py", "def audit_x(")
    home.dpaudit("run", "--jobs", "0", *FILES)
    assert [name for name, word in cases(home).items() if word == "error"] == ["audits.audit_torn"]


@pytest.mark.slow
def test_a_process_that_dies_or_is_restarted_is_one_case(home):
    damage = """
import os

def audit_dies(auditor):
    os._exit(3)

def audit_moves(auditor):
    auditor.check(honest, PureDP(1.0), PAIR, mutants=[wrong], draws=2000)
    os.chdir("/")

def audit_more(auditor):
    auditor.check(honest, PureDP(1.0), PAIR, mutants=[wrong], draws=2000)
"""
    home.put("audits/audit_mine.py", AUDIT[: AUDIT.index("def audit_blunt")] + damage)
    done = home.dpaudit_process("run", "--jobs", "1", *FILES)
    assert done.code == 1, done.out + done.err
    assert cases(home) == {
        "audit_honest": "", "audit_dies": "error", "audit_moves": "error", "audit_more": "", **ROWS,
    }  # fmt: skip


@pytest.mark.slow
def test_workers_write_both_files(home):
    audit = AUDIT[: AUDIT.index("def audit_blunt")] + AUDIT[AUDIT.index("def audit_broken") :]
    home.put("audits/audit_mine.py", audit)
    done = home.dpaudit_process("run", "--jobs", "1", *FILES)
    assert done.code == 1, done.out + done.err
    left = {name: AUDITS[name] for name in ("audit_honest", "audit_broken", "audit_far")}
    assert cases(home) == {**left, **ROWS}
    assert [rule for rule, _, _ in results(home)] == ["dpaudit/statement"]


def test_ledger_writes_both_files(home):
    done = home.dpaudit("ledger", "--jobs", "0", "--out", "l", *FILES)
    assert done.code == 1, done.out + done.err
    assert cases(home) == ROWS
    assert [rule for rule, _, _ in results(home)] == ["dpaudit/statement"]
    stored = home.dpaudit("ledger", "--stored", "--out", "l", "--junit", "x.xml")
    assert stored.code == 4
    assert "`dpaudit report DIR --sarif FILE`" in stored.err


@pytest.mark.slow
def test_a_selection_has_its_own_cases_and_all_findings(home):
    home.dpaudit("run", "--jobs", "0")
    done = home.dpaudit("run", "--jobs", "0", "-k", "honest", *FILES)
    assert done.code == 0, done.out
    assert cases(home) == {"audit_honest": ""}
    assert len(results(home)) == 5


@pytest.mark.slow
def test_an_interrupted_run_writes_what_it_has(home):
    stop = AUDIT.replace('raise RuntimeError("disk on fire")', "signal.raise_signal(signal.SIGINT)")
    stop = f"import signal\n{stop}"
    home.put("audits/audit_mine.py", stop)
    (home.path / "ci").mkdir()
    (home.path / "ci" / "junit.xml").write_text("of an earlier run")
    done = home.dpaudit("run", "--jobs", "0", *FILES)
    assert done.code == 2, done.out + done.err
    found = cases(home)
    assert found["audit_honest"] == ""
    assert found["audit_wrong[2]"] == "failure"
    assert "audit_far" not in found
    (only,) = home.json("ci/dpaudit.sarif")["runs"]
    assert only["invocations"][0]["executionSuccessful"] is False


def test_files_of_an_earlier_run_do_not_pass_for_those_of_this_one(home):
    (home.path / "audits" / "ledger_p.py").unlink()
    for name in ("junit.xml", "dpaudit.sarif"):
        home.put(f"ci/{name}", "of an earlier run")
    assert home.dpaudit("run", "--jobs", "0", "-k", "nothing", *FILES).code == 5
    assert os.listdir(home.path / "ci") == ["junit.xml"]
    assert cases(home) == {}


@pytest.mark.parametrize("option", ["--junit", "--sarif"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(home, option):
    for name in ("audits", "mine.py/x.xml"):
        done = home.dpaudit("run", "--jobs", "0", option, name)
        assert done.code == 4
        assert name in done.err
        assert "audit_honest" not in done.out
        assert not (home.path / "reports" / ".lock").exists()
