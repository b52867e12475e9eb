"""Files for CI systems: what passes, fails, is in error and is skipped; JUnit XML and SARIF."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.ledger.coverage import BROKE_OFF, NOT_RUN, open_row
from dpaudit.ledger.rows import LedgerVerdict
from dpaudit.report import Case
from dpaudit.report.cases import cases_of, line_of, node_and_reason
from dpaudit.report.junit import junit
from dpaudit.report.sarif import sarif
from dpaudit.results import Expectation, Fate, Verdict
from dpaudit.store import Kept
from tests.report.hand_made import estimate, mutant, result, row, run

REFUTED = result(verdict=Verdict.REFUTED, epsilon=estimate(1.8), mutants=(), id="x::refuted")
WHY = {**REFUTED.origin, "reason": "it forgets to clip"}
KNOWN = replace(REFUTED, expected=Expectation.REFUTED, origin=WHY, id="x::known")
LOST = result(expected=Expectation.REFUTED, id="x::lost")
OPEN = result(expected=Expectation.EITHER, id="x::open")
FINE = result(id="x::fine")
POWERLESS = result(verdict=Verdict.NO_POWER, mutants=(), id="x::powerless")
BLUNT = replace(POWERLESS, mutants=(mutant("m", Fate.SURVIVED, given=True),), id="x::blunt")
STRICT = replace(POWERLESS, expected=Expectation.POWER, id="x::strict")
AUDITS = [REFUTED, KNOWN, LOST, OPEN, FINE, POWERLESS, BLUNT, STRICT]

HOLDS, FAILS = row(), row(id="p.fails", expected=LedgerVerdict.REFUTED)
UNREAD = open_row(row(id="p.unread").stated, f"{NOT_RUN}its check is elsewhere")
UNWRITTEN = open_row(row(id="p.unwritten").stated, "No check was written yet.")
BROKE = row(LedgerVerdict.OPEN, "p.broke", note=f"{BROKE_OFF}boom", expected=LedgerVerdict.HOLDS)
ROWS = [HOLDS, FAILS, UNREAD, UNWRITTEN, BROKE]

OUTCOMES = {
    "x::refuted": ("failure", "refuted"),
    "x::known": ("passed", ""),
    "x::lost": ("failure", "lost"),
    "x::open": ("passed", ""),
    "x::fine": ("passed", ""),
    "x::powerless": ("passed", ""),
    "x::blunt": ("failure", "no_power"),
    "x::strict": ("failure", "no_power"),
    "p.one": ("passed", ""),
    "p.fails": ("failure", "statement"),
    "p.unread": ("skipped", "open"),
    "p.unwritten": ("skipped", "open"),
    "p.broke": ("error", "broke_off"),
}


def found(cases: list[Case]) -> dict[str, tuple[str, str]]:
    return {case.name: (case.outcome, case.type) for case in cases}


def test_what_passes_fails_is_in_error_and_is_skipped():
    cases = cases_of(run(), [*AUDITS, *ROWS])
    assert found(cases) == OUTCOMES
    by_name = {case.name: case for case in cases}
    for record in [*AUDITS, *ROWS]:
        is_error = record is BROKE
        outcome = by_name[record.id].outcome
        assert (outcome in ("failure", "error")) == (record.mismatch is not None), record.id
        assert is_error == (outcome == "error")
    assert by_name["x::known"].facts["known_violation"] == "it forgets to clip"
    assert by_name["p.unread"].message == "its check is elsewhere"
    assert by_name["p.broke"].message == "boom"


def test_functions_that_left_no_record_have_a_case_of_their_own():
    asked = run(
        problems=(
            "audits/audit_x.py::audit_boom[a: b]: RuntimeError: boom",
            "audits/audit_y.py: SyntaxError: invalid syntax",
            "what an earlier run found is not shown",
            "audits/ledger_p.py::broke: boom",
            "audits/audit_x.py::audit_too: boom",
        ),
        skipped=("audits/audit_x.py::audit_far: no polars", "audits/ledger_p.py::unread: far"),
    )
    skipped = open_row(row(id="p.far").stated, f"{NOT_RUN}far")
    cases = cases_of(asked, [BROKE, skipped])
    assert [(case.group, case.name, case.outcome, case.message) for case in cases] == [
        ("p", "p.broke", "error", "boom"),
        ("p", "p.far", "skipped", "far"),
        ("audit_x", "audit_boom[a: b]", "error", "RuntimeError: boom"),
        ("audit_y", "audits/audit_y.py", "error", "SyntaxError: invalid syntax"),
        ("dpaudit", "run", "error", "what an earlier run found is not shown"),
        ("audit_x", "audit_too", "error", "boom"),
        ("audit_x", "audit_far", "skipped", "no polars"),
    ]


def test_an_interrupted_run_is_in_error():
    (case,) = cases_of(run(complete=False), [])
    assert (case.outcome, case.type) == ("error", "interrupted")
    log = json.loads(sarif(run(complete=False), []))["runs"][0]
    assert log["invocations"][0]["executionSuccessful"] is False
    assert json.loads(sarif(run(), []))["runs"][0]["invocations"][0]["executionSuccessful"]


def test_what_earlier_runs_found_was_not_run():
    kept = (
        Kept("audit", "x::refuted", "2025-01-01", "dpaudit run", current=True),
        Kept("statement", "p.fails", "2025-01-01", "dpaudit run", current=True),
        Kept("statement", "x::lost", "2025-01-01", "dpaudit run", current=True),
    )
    cases = {case.name: case for case in cases_of(run(kept=kept), [*AUDITS, *ROWS])}
    for name, word in (("x::refuted", "REFUTED"), ("p.fails", "HOLDS (refuted was declared)")):
        assert cases[name].outcome == "skipped"
        assert cases[name].message == f"not run now; an earlier run found: {word}"
    assert cases["x::lost"].outcome == "failure"  # what was kept of that name is no audit
    results = json.loads(sarif(run(kept=kept), [*AUDITS, *ROWS]))["runs"][0]["results"]
    made = {r["properties"].get("keptFrom") for r in results if name_of(r) == "x::refuted"}
    assert made == {"2025-01-01"}


@pytest.mark.parametrize(
    ("sentence", "node", "reason"),
    [
        ("a/audit_x.py::audit_y: boom: bang", "a/audit_x.py::audit_y", "boom: bang"),
        ("a/audit_x.py::T::audit_y[1]: boom", "a/audit_x.py::T::audit_y[1]", "boom"),
        ("a/audit_x.py::audit_y[a.py: b]: c", "a/audit_x.py::audit_y[a.py: b]", "c"),
        ("a b/audit_x.py: two\nlines", "a b/audit_x.py", "two\nlines"),
        ("nothing: of that kind", "", "nothing: of that kind"),
        ("", "", ""),
    ],
)
def test_sentences_of_a_run_are_split(sentence, node, reason):
    assert node_and_reason(sentence) == (node, reason)


def test_lines_are_those_of_the_function_as_it_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = Path("audit_x.py")
    assert line_of(str(file), "audit_y") is None
    file.write_text("import pytest\n\n@pytest.mark.slow\ndef audit_y(auditor):\n    pass\n")
    assert line_of(str(file), "audit_y") == line_of(str(file), "audit_y[1::2]") == 4
    assert line_of(str(file), "audit_z") is None
    assert line_of("", "audit_y") is None
    file.write_text("class T:\n    def audit_y(self): pass\n")
    assert line_of(str(file), "T::audit_y") == 2
    file.write_text("def (")
    assert line_of(str(file), "audit_y") is None
    file.write_text("def audit_y(auditor): pass\n")
    assert line_of(str(file.resolve()), "audit_y") is None  # only what lies below is read


# --- JUnit ----------------------------------------------------------------------------------------


def parsed(*args: Any) -> ElementTree.Element:
    return ElementTree.fromstring(junit(*args))


def test_junit_counts_what_it_holds_and_says_why():
    asked = run(skipped=("audits/audit_x.py::audit_far: no polars",), problems=("boom",))
    root = parsed(asked, [*AUDITS, *ROWS])
    (suite,) = root
    cases = suite.findall("testcase")
    for element in (root, suite):
        assert int(element.get("tests")) == len(cases) == 15
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(element.get(name)) == len(suite.findall(f"testcase/{tag}"))
    assert [root.get(name) for name in ("failures", "errors", "skipped")] == ["5", "2", "3"]
    by_name = {case.get("name"): case for case in cases}
    failure = by_name["x::refuted"].find("failure")
    assert failure.get("type") == "dpaudit.refuted"
    assert failure.get("message").startswith("the claim is refuted: ")
    assert failure.text.startswith("REFUTED  x::refuted\n  mechanism  one\n")
    facts = {p.get("name"): p.get("value") for p in by_name["x::known"].findall(".//property")}
    assert facts["status"] == "REFUTED (known)"
    assert facts["known_violation"] == "it forgets to clip"
    assert facts["certified_epsilon"] == "1.8"
    assert by_name["x::known"].find("failure") is None
    assert by_name["x::fine"].get("file") == "audits/audit_x.py"
    settings = {p.get("name"): p.get("value") for p in suite.find("properties")}
    assert (settings["profile"], settings["complete"]) == ("quick", "true")
    assert suite.get("timestamp") == "2026-01-01T00:00:00"


@given(st.text(), st.text(), st.text())
def test_junit_and_sarif_are_whole_whatever_the_texts(id, reason, sentence):
    record = replace(REFUTED, id=f"x::{id}", reason=reason, pair_words=reason)
    asked = run(problems=(sentence,), skipped=(f"audits/audit_x.py::f: {reason}",))
    root = parsed(asked, [record, replace(FAILS, note=reason)])
    assert len(root.findall("testsuite/testcase")) == 4
    data = json.loads(sarif(asked, [record, replace(FAILS, note=reason)]))
    assert data["runs"][0]["results"][0]["message"]["text"].startswith("REFUTED")


# --- SARIF ----------------------------------------------------------------------------------------


def name_of(found: dict[str, Any]) -> str:
    (place,) = found["locations"]
    return place["logicalLocations"][0]["fullyQualifiedName"]


def test_sarif_has_a_result_for_what_is_refuted_powerless_lost_or_not_as_declared():
    log = json.loads(sarif(run(), [*AUDITS, *ROWS]))
    (only,) = log["runs"]
    results = {name_of(r): (r["ruleId"], r["level"]) for r in only["results"]}
    assert results == {
        "x::refuted": ("dpaudit/refuted", "error"),
        "x::known": ("dpaudit/refuted", "note"),
        "x::lost": ("dpaudit/violation-lost", "error"),
        "x::powerless": ("dpaudit/no-power", "warning"),
        "x::blunt": ("dpaudit/no-power", "error"),
        "x::strict": ("dpaudit/no-power", "error"),
        "p.fails": ("dpaudit/statement", "error"),
    }
    suppressed = {name_of(r): r.get("suppressions") for r in only["results"]}
    why = [{"kind": "inSource", "justification": "it forgets to clip"}]
    assert [name for name, found in suppressed.items() if found] == ["x::known"]
    assert suppressed["x::known"] == why
    (invocation,) = only["invocations"]
    (failed,) = invocation["toolExecutionNotifications"]
    assert failed["message"]["text"] == "p.broke: boom"
    assert invocation["executionSuccessful"] is False


ALLOWED = {
    "log": {"$schema", "version", "runs"},
    "run": {
        "tool", "invocations", "originalUriBaseIds", "columnKind", "results", "properties",
    },
    "result": {
        "ruleId", "ruleIndex", "kind", "level", "message", "locations", "partialFingerprints",
        "properties", "suppressions",
    },
    "rule": {"id", "name", "shortDescription", "fullDescription", "defaultConfiguration"},
    "invocation": {
        "commandLine", "executionSuccessful", "startTimeUtc", "toolExecutionNotifications",
    },
    "location": {"physicalLocation", "logicalLocations"},
}  # fmt: skip
"""Properties of SARIF 2.1.0 (OASIS, sections 3.13, 3.14, 3.27, 3.49, 3.20, 3.28) that are used."""


def test_sarif_keeps_to_the_specification(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "audits").mkdir()
    (tmp_path / "audits" / "audit x.py").write_text("\ndef audit_one(auditor): pass\n")
    origin = {"path": "audits/audit x.py", "item": "audit_one[2]"}
    event = replace(REFUTED.witness, event="output in {1, 2}")
    records = [replace(REFUTED, origin=origin, witness=event), *AUDITS[1:]]
    outside = [{"path": "../audit_x.py", "item": "f"}, {"path": "/audit_x.py", "item": "f"}, {}]
    records += [replace(REFUTED, id=f"x::{i}", origin=made) for i, made in enumerate(outside)]
    log = json.loads(sarif(run(skipped=("audits/audit x.py::g: far",)), [*records, *ROWS]))
    assert set(log) <= ALLOWED["log"]
    assert log["version"] == "2.1.0"
    (only,) = log["runs"]
    assert set(only) <= ALLOWED["run"]
    driver = only["tool"]["driver"]
    rules = [rule["id"] for rule in driver["rules"]]
    assert driver["name"] == "dpaudit"
    assert all(set(rule) <= ALLOWED["rule"] for rule in driver["rules"])
    assert only["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    assert set(only["invocations"][0]) <= ALLOWED["invocation"]
    assert only["invocations"][0]["startTimeUtc"] == "2026-01-01T00:00:00Z"
    for made in only["results"]:
        assert set(made) <= ALLOWED["result"]
        assert rules[made["ruleIndex"]] == made["ruleId"]
        assert made["level"] in ("none", "note", "warning", "error")
        assert made["kind"] == "fail"
        for place in made["locations"]:
            assert set(place) <= ALLOWED["location"]
            physical = place.get("physicalLocation", {}).get("artifactLocation", {})
            assert physical.get("uriBaseId", "%SRCROOT%") in only["originalUriBaseIds"]
    first = only["results"][0]
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "audits/audit%20x.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 2},
    }
    assert "output in {{1, 2}}" in first["message"]["text"]
    for made in only["results"]:
        if name_of(made) in ("x::0", "x::1", "x::2"):
            assert "physicalLocation" not in made["locations"][0]
    prints = [made["partialFingerprints"]["dpauditId/v1"] for made in only["results"]]
    assert len(set(prints)) == len(prints)
