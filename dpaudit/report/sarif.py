"""A run as SARIF 2.1.0, which code scanning shows beside the lines of the audits.

A result for each refuted audit, for each audit without power, and for each statement that is not
as declared. A known violation is a result too, suppressed in the source by its mark. What failed
is a notification of the tool, for it is no finding.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dpaudit._files import inside
from dpaudit.errors import StoreError
from dpaudit.ledger import BROKE_OFF, StatementResult
from dpaudit.report.cases import ERROR, cases_of, line_of, node_and_reason
from dpaudit.report.page import kept
from dpaudit.report.terminal import finding, statement_finding
from dpaudit.results import AuditResult
from dpaudit.store import Kept, Record, Run

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_ROOT = "%SRCROOT%"
_RULES = {
    "dpaudit/refuted": ("Refuted", "A violation of the claimed privacy is certified."),
    "dpaudit/no-power": ("NoPower", "Nothing was found, and silence means nothing."),
    "dpaudit/violation-lost": ("ViolationLost", "A known violation was not found again."),
    "dpaudit/statement": ("Statement", "A statement of the ledger is not as declared."),
}
_AUDITS = {
    "refuted": ("dpaudit/refuted", "error"),
    "known": ("dpaudit/refuted", "note"),
    "no_power": ("dpaudit/no-power", "error"),
    "powerless": ("dpaudit/no-power", "warning"),
    "lost": ("dpaudit/violation-lost", "error"),
}
"""Rule and level of an audit, by the key of its status; others are no finding."""


def sarif(run: Run, results: Sequence[AuditResult], statements: Sequence[StatementResult]) -> str:
    """Return the SARIF log of a run, as JSON.

    Parameters
    ----------
    run : Run
        What was asked for.
    results, statements : sequence
        What was found.
    """
    failed = [case for case in cases_of(run, results, statements) if case.outcome == ERROR]
    notifications = [
        _notification("error", f"{case.name}: {case.message}", case.path, case.line)
        for case in failed
    ]
    for sentence in run.skipped:
        path = node_and_reason(sentence)[0].partition("::")[0]
        notifications.append(_notification("note", f"skipped: {sentence}", path, None))
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": _driver()},
                "invocations": [
                    {
                        "commandLine": run.command,
                        "executionSuccessful": not failed,
                        "startTimeUtc": run.started.replace("+00:00", "Z"),
                        "toolExecutionNotifications": notifications,
                    }
                ],
                "originalUriBaseIds": {
                    _ROOT: {"description": {"text": "The directory in which dpaudit was run."}}
                },
                "columnKind": "unicodeCodePoints",
                "results": list(_results(run, results, statements)),
                "properties": {
                    "profile": run.profile,
                    "seed": run.seed,
                    "failureProb": run.failure_prob,
                    "familyWiseError": run.family_wise_error,
                    "versions": run.versions,
                },
            }
        ],
    }
    return json.dumps(log, indent=1, allow_nan=False) + "\n"


def _driver() -> dict[str, Any]:
    rules = [
        {
            "id": id,
            "name": name,
            "shortDescription": {"text": words},
            "fullDescription": {"text": words},
            "defaultConfiguration": {"level": "error"},
        }
        for id, (name, words) in _RULES.items()
    ]
    version = metadata.version("dpaudit")
    return {"name": "dpaudit", "version": version, "rules": rules}


def _results(
    run: Run, results: Sequence[AuditResult], statements: Sequence[StatementResult]
) -> Iterator[dict[str, Any]]:
    older = {kind: kept(run, kind) for kind in ("audit", "statement")}
    for result in results:
        if result.status.key not in _AUDITS:
            continue
        rule, level = _AUDITS[result.status.key]
        facts = {
            "verdict": result.verdict.value,
            "claimedEpsilon": _number(result.claimed_epsilon),
            "claimedDelta": result.claimed_delta,
            "certifiedEpsilon": _number(result.certified_epsilon),
            "failureProb": result.failure_prob,
        }
        made = _result(result, rule, level, finding(result), facts, older["audit"])
        if result.status.key == "known":
            why = str(result.origin.get("reason") or "marked as a known violation")
            made["suppressions"] = [{"kind": "inSource", "justification": why}]
        yield made
    for row in statements:
        if row.mismatch is not None and not row.note.startswith(BROKE_OFF):
            facts = {"verdict": row.verdict.value, "declared": row.expected.value}
            text = f"{row.mismatch}\n{statement_finding(row)}"
            yield _result(row, "dpaudit/statement", "error", text, facts, older["statement"])


def _result(
    record: Record,
    rule: str,
    level: str,
    text: str,
    facts: dict[str, Any],
    older: Mapping[str, Kept],
) -> dict[str, Any]:
    origin = record.origin
    path, item = str(origin.get("path", "")), str(origin.get("item", ""))
    place: dict[str, Any] = {
        "logicalLocations": [{"fullyQualifiedName": record.id, "kind": "function"}]
    }
    place |= _physical(path, line_of(path, item))
    fingerprint = hashlib.sha256(f"{rule}\n{record.id}".encode()).hexdigest()
    if record.id in older:
        facts["keptFrom"] = older[record.id].made
    return {
        "ruleId": rule,
        "ruleIndex": list(_RULES).index(rule),
        "kind": "fail",
        "level": level,
        "message": _message(text),
        "locations": [place],
        "partialFingerprints": {"dpauditId/v1": fingerprint},
        "properties": facts,
    }


def _physical(path: str, line: int | None) -> dict[str, Any]:
    """Return the place of a file inside the directory of the run; nothing of any other."""
    try:
        inside(Path.cwd(), path)
    except StoreError:
        return {}
    made: dict[str, Any] = {"artifactLocation": {"uri": quote(path), "uriBaseId": _ROOT}}
    if line is not None:
        made["region"] = {"startLine": line}
    return {"physicalLocation": made}


def _notification(level: str, text: str, path: str, line: int | None) -> dict[str, Any]:
    made: dict[str, Any] = {"level": level, "message": _message(text)}
    place = _physical(path, line)
    return made | ({"locations": [place]} if place else {})


def _message(text: str) -> dict[str, str]:
    """Return a message that is plain text: no placeholder (3.11.5) and no link (3.11.6)."""
    escaped = re.sub(r"[\\\[\]]", r"\\\g<0>", text)
    return {"text": escaped.replace("{", "{{").replace("}", "}}")}


def _number(value: float) -> float | str:
    """Return a number as strict JSON has it."""
    return value if abs(value) < float("inf") else "inf"
