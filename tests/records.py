"""Change fields of a result wherever they stand; find the last run that is stored."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from dpaudit.results import AuditResult, Diagnostics

DIAGNOSTICS = frozenset(field.name for field in fields(Diagnostics))


def changed(result: AuditResult, **changes: Any) -> AuditResult:
    """Return a result with other fields, those of its diagnostics among them."""
    inner = {name: changes.pop(name) for name in DIAGNOSTICS & changes.keys()}
    return replace(result, diagnostics=replace(result.diagnostics, **inner), **changes)


ROOT = Path(__file__).parents[1]
RUNS = ROOT / "reports" / "reference", ROOT / "reports"
STORED_RUN = next((run for run in RUNS if (run / "statements").is_dir()), None)
"""A whole run: of `make reference`, or else of `make audit`. Git keeps only a summary."""

needs_a_run = pytest.mark.skipif(
    STORED_RUN is None, reason="needs a stored run: `make audit` or `make reference` makes one"
)


def plain(result: AuditResult) -> dict[str, Any]:
    """Return everything that a result says but for seconds."""
    said = without_seconds(result.to_json())
    return {**said, "diagnostics": without_seconds(said["diagnostics"])}


def without_seconds(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record without the times that it took."""
    return {key: value for key, value in record.items() if "second" not in key}
