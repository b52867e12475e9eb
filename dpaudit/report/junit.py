"""A run as JUnit XML, which CI systems show: a test case for each record."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from dpaudit.report.cases import cases_of
from dpaudit.report.sections import ERROR, FAILURE, PASSED, SKIPPED, Case
from dpaudit.store import Record, Run

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 has no way to write."""


def junit(run: Run, records: Sequence[Record]) -> bytes:
    """Return the XML of a run, in UTF-8.

    Parameters
    ----------
    run : Run
        What was asked for.
    records : sequence of Record
        What was found.
    """
    cases = cases_of(run, records)
    root = ElementTree.Element("testsuites", _counts(cases, "dpaudit", run.seconds))
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        {**_counts(cases, "dpaudit", run.seconds), "timestamp": run.started.partition("+")[0]},
    )
    facts = {
        "command": run.command,
        "profile": run.profile,
        "seed": str(run.seed),
        "failure_prob": repr(run.failure_prob),
        "family_wise_error": repr(run.family_wise_error),
        "complete": str(run.complete).lower(),
        **{f"version.{name}": version for name, version in run.versions.items()},
    }
    _properties(suite, facts)
    for case in cases:
        _add(suite, case)
    ElementTree.indent(root, " ")
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _counts(cases: Sequence[Case], name: str, seconds: float) -> dict[str, str]:
    outcomes = [case.outcome for case in cases]
    return {
        "name": name,
        "tests": str(len(cases)),
        "failures": str(outcomes.count(FAILURE)),
        "errors": str(outcomes.count(ERROR)),
        "skipped": str(outcomes.count(SKIPPED)),
        "time": f"{seconds:.3f}",
    }


def _add(suite: ElementTree.Element, case: Case) -> None:
    facts = {"classname": case.group, "name": case.name, "time": f"{case.seconds:.3f}"}
    facts |= {"file": case.path} if case.path else {}
    facts |= {"line": str(case.line)} if case.line is not None else {}
    made = ElementTree.SubElement(suite, "testcase", _clean(facts))
    _properties(made, case.facts)
    if case.outcome == PASSED:
        return
    why = {"message": " ".join(case.message.split())}
    if case.outcome != SKIPPED:
        why["type"] = f"dpaudit.{case.type}"
    ElementTree.SubElement(made, case.outcome, _clean(why)).text = _plain(case.text) or None


def _properties(above: ElementTree.Element, facts: Mapping[str, Any]) -> None:
    """Add properties, if there are any: the element that holds them must not be empty."""
    if facts:
        holder = ElementTree.SubElement(above, "properties")
        for name, value in facts.items():
            ElementTree.SubElement(holder, "property", _clean({"name": name, "value": str(value)}))


def _clean(facts: dict[str, str]) -> dict[str, str]:
    return {name: _plain(value) for name, value in facts.items()}


def _plain(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
