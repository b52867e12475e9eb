"""Tests of SARIF output.

The tests check results, notifications, and the locations of functions.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.ledger.coverage import BROKE_OFF, NOT_RUN, open_row
from dpaudit.ledger.rows import LedgerVerdict
from dpaudit.report.scanning import line_of, node_and_reason, sarif
from dpaudit.results import Expectation, MutantStatus, Verdict
from dpaudit.store import KeptRecord
from tests.report.hand_made import estimate, mutant, result, row, run

REFUTED = result(verdict=Verdict.REFUTED, epsilon=estimate(1.8), mutants=(), id="x::refuted")
WHY = {**REFUTED.origin, "reason": "it forgets to clip"}
KNOWN = replace(REFUTED, expected=Expectation.REFUTED, origin=WHY, id="x::known")
LOST = result(expected=Expectation.REFUTED, id="x::lost")
OPEN = result(expected=Expectation.EITHER, id="x::open")
FINE = result(id="x::fine")
POWERLESS = result(verdict=Verdict.NO_POWER, mutants=(), id="x::powerless")
BLUNT = replace(POWERLESS, mutants=(mutant("m", MutantStatus.SURVIVED, given=True),), id="x::blunt")
STRICT = replace(POWERLESS, expected=Expectation.POWER, id="x::strict")
AUDITS = [REFUTED, KNOWN, LOST, OPEN, FINE, POWERLESS, BLUNT, STRICT]

HOLDS, FAILS = row(), row(id="p.fails", expected=LedgerVerdict.REFUTED)
UNREAD = open_row(row(id="p.unread").stated, f"{NOT_RUN}its check is elsewhere")
UNWRITTEN = open_row(row(id="p.unwritten").stated, "No check was written yet.")
BROKE = row(LedgerVerdict.OPEN, "p.broke", note=f"{BROKE_OFF}boom", expected=LedgerVerdict.HOLDS)
ROWS = [HOLDS, FAILS, UNREAD, UNWRITTEN, BROKE]


def test_what_left_no_record_is_a_notification():
    asked = run(
        problems=(
            "audits/audit_x.py::audit_boom[a: b]: RuntimeError: boom",
            "audits/audit_y.py: SyntaxError: invalid syntax",
            "what an earlier run found is not shown",
        ),
        skipped=("audits/audit_x.py::audit_far: no polars",),
    )
    (invocation,) = json.loads(sarif(asked, []))["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    notes = invocation["toolExecutionNotifications"]
    assert [(note["level"], note["message"]["text"]) for note in notes] == [
        ("error", r"audits/audit_x.py::audit_boom\[a: b\]: RuntimeError: boom"),
        ("error", "audits/audit_y.py: SyntaxError: invalid syntax"),
        ("error", "what an earlier run found is not shown"),
        ("note", "skipped: audits/audit_x.py::audit_far: no polars"),
    ]
    places = [note.get("locations") for note in notes]
    uris = [place and place[0]["physicalLocation"]["artifactLocation"]["uri"] for place in places]
    assert uris == ["audits/audit_x.py", "audits/audit_y.py", None, "audits/audit_x.py"]


def test_an_interrupted_run_is_in_error():
    (invocation,) = json.loads(sarif(run(complete=False), []))["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    (note,) = invocation["toolExecutionNotifications"]
    assert note["message"]["text"].startswith("the run was interrupted")
    assert json.loads(sarif(run(), []))["runs"][0]["invocations"][0]["executionSuccessful"]


def test_findings_of_earlier_runs_say_when_they_were_made():
    kept = (KeptRecord("audit", "x::refuted", "2025-01-01", "dpaudit run", current=True),)
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
    assert line_of(str(file.resolve()), "audit_y") is None  # only files below the folder are read


# --- SARIF ----------------------------------------------------------------------------------------


@given(st.text(), st.text(), st.text())
def test_sarif_is_whole_whatever_the_texts(id, reason, sentence):
    record = replace(REFUTED, id=f"x::{id}", reason=reason, pair_words=reason)
    asked = run(problems=(sentence,), skipped=(f"audits/audit_x.py::f: {reason}",))
    data = json.loads(sarif(asked, [record, replace(FAILS, note=reason)]))
    assert data["runs"][0]["results"][0]["message"]["text"].startswith("REFUTED")


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
    assert invocation["toolExecutionNotifications"] == []
    assert invocation["executionSuccessful"] is True


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
"""The properties of SARIF 2.1.0 that are used.

OASIS, sections 3.13, 3.14, 3.27, 3.49, 3.20, 3.28.
"""


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
