"""Helpers that change fields of a stored result at any depth, and find the last stored run."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from dpaudit.results import AuditResult, Diagnostics

DIAGNOSTICS = frozenset(field.name for field in fields(Diagnostics))


def changed(result: AuditResult, **changes: Any) -> AuditResult:
    """Return a result with changed fields, including fields of its diagnostics."""
    inner = {name: changes.pop(name) for name in DIAGNOSTICS & changes.keys()}
    return replace(result, diagnostics=replace(result.diagnostics, **inner), **changes)


ROOT = Path(__file__).parents[1]
RUNS = ROOT / "reports" / "reference", ROOT / "reports"
STORED_RUN = next((run for run in RUNS if (run / "statements").is_dir()), None)
"""A complete run of `make reference`, or else of `make audit`; git keeps only a summary."""

needs_a_run = pytest.mark.skipif(
    STORED_RUN is None, reason="needs a stored run: `make audit` or `make reference` makes one"
)


def plain(result: AuditResult) -> dict[str, Any]:
    """Return the content of a result without times."""
    said = without_seconds(result.to_json())
    return {**said, "diagnostics": without_seconds(said["diagnostics"])}


def without_seconds(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record without its times."""
    return {key: value for key, value in record.items() if "second" not in key}
