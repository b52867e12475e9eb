"""Change the fields of a result, wherever they stand."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from dpaudit.results import AuditResult, Diagnostics

DIAGNOSTICS = frozenset(field.name for field in fields(Diagnostics))


def changed(result: AuditResult, **changes: Any) -> AuditResult:
    """Return a result with other fields, those of its diagnostics among them."""
    inner = {name: changes.pop(name) for name in DIAGNOSTICS & changes.keys()}
    return replace(result, diagnostics=replace(result.diagnostics, **inner), **changes)
