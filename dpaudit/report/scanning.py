"""A run as SARIF 2.1.0, which code scanning displays next to the lines of the audits.

There is a result for each refuted audit, for each audit without power, and for each statement whose
verdict is not as declared. A known violation is also a result, but it is marked as suppressed. A
failure is a notification of the tool, because it is not a finding.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dpaudit._files import inside, read_regular
from dpaudit.errors import StoreError
from dpaudit.report.page import kept
from dpaudit.report.sections import Alert, sections
from dpaudit.store import Record, StoredRun, by_kind

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_ROOT = "%SRCROOT%"
_LARGEST = 2**24  # largest size of a file with audits, in bytes
_NODE = re.compile(r"(?P<node>.+?\.py(?:::[^:\[]+(?:\[.*?\])?)*): (?P<reason>.*)", re.DOTALL)


def sarif(run: StoredRun, records: Sequence[Record]) -> str:
    """Return the SARIF log of a run, as JSON.

    Parameters
    ----------
    run : StoredRun
        The run and its settings.
    records : sequence of Record
        The records of the run.
    """
    notifications = [_problem(sentence) for sentence in run.problems]
    if not run.complete:
        words = "the run was interrupted, so further results are missing"
        notifications.append(_notification("error", words, "", None))
    failed = bool(notifications)
    notifications += [_problem(sentence, "note", "skipped: ") for sentence in run.skipped]
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
                "results": list(_results(run, records)),
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
        for id, (name, words) in _rules().items()
    ]
    version = metadata.version("dpaudit")
    return {"name": "dpaudit", "version": version, "rules": rules}


def _rules() -> dict[str, tuple[str, str]]:
    return {id: rule for section in sections().values() for id, rule in section.rules.items()}


def _results(run: StoredRun, records: Sequence[Record]) -> Iterator[dict[str, Any]]:
    for name, own in by_kind(records).items():
        older = kept(run, name)
        for record in own:
            if (alert := sections()[name].alert(record)) is not None:
                made = older.get(record.id)
                yield _result(record, alert, {} if made is None else {"keptFrom": made.made})


def _result(record: Record, alert: Alert, more: dict[str, Any]) -> dict[str, Any]:
    path, item = str(record.origin.get("path", "")), str(record.origin.get("item", ""))
    place: dict[str, Any] = {
        "logicalLocations": [{"fullyQualifiedName": record.id, "kind": "function"}]
    }
    place |= _physical(path, line_of(path, item))
    fingerprint = hashlib.sha256(f"{alert.rule}\n{record.id}".encode()).hexdigest()
    made = {
        "ruleId": alert.rule,
        "ruleIndex": list(_rules()).index(alert.rule),
        "kind": "fail",
        "level": alert.level,
        "message": _message(alert.text),
        "locations": [place],
        "partialFingerprints": {"dpauditId/v1": fingerprint},
        "properties": {**alert.facts, **more},
    }
    if alert.accepted:
        made["suppressions"] = [{"kind": "inSource", "justification": alert.accepted}]
    return made


def _physical(path: str, line: int | None) -> dict[str, Any]:
    """Return the location of a file inside the directory of the run, or nothing for other files."""
    try:
        inside(Path.cwd(), path)
    except StoreError:
        return {}
    made: dict[str, Any] = {"artifactLocation": {"uri": quote(path), "uriBaseId": _ROOT}}
    if line is not None:
        made["region"] = {"startLine": line}
    return {"physicalLocation": made}


def _problem(sentence: str, level: str = "error", word: str = "") -> dict[str, Any]:
    path, _, item = node_and_reason(sentence)[0].partition("::")
    return _notification(level, word + sentence, path, line_of(path, item))


def _notification(level: str, text: str, path: str, line: int | None) -> dict[str, Any]:
    made: dict[str, Any] = {"level": level, "message": _message(text)}
    place = _physical(path, line)
    return made | ({"locations": [place]} if place else {})


def _message(text: str) -> dict[str, str]:
    """Return a message as plain text, without placeholders (3.11.5) and links (3.11.6)."""
    escaped = re.sub(r"[\\\[\]]", r"\\\g<0>", text)
    return {"text": escaped.replace("{", "{{").replace("}", "}}")}


# --- places of functions ---


def node_and_reason(sentence: str) -> tuple[str, str]:
    """Split a sentence of a run into pytest's name of a function or file, and the rest.

    Examples
    --------
    >>> node_and_reason("audits/audit_x.py::audit_y[a: b]: it is not installed")
    ('audits/audit_x.py::audit_y[a: b]', 'it is not installed')
    >>> node_and_reason("what an earlier run found is not shown")
    ('', 'what an earlier run found is not shown')
    """
    found = _NODE.fullmatch(sentence)
    return (found["node"], found["reason"]) if found else ("", sentence)


def line_of(path: str, item: str) -> int | None:
    """Return the current line of a function, from 1; None if the function does not exist."""
    if not path or not item:
        return None
    try:
        tree = ast.parse(read_regular(inside(Path.cwd(), path), _LARGEST))
    except (OSError, StoreError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    name = item.partition("[")[0].split("::")[-1]
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    lines = [n.lineno for n in ast.walk(tree) if isinstance(n, kinds) and n.name == name]
    return lines[-1] if lines else None
