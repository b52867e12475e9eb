"""Hooks of pytest by which a package adds its kind of records to a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dpaudit.properties import FunctionCheck
    from dpaudit.run.jobs import Job
    from dpaudit.run.session import AuditSession
    from dpaudit.store import Record


@pytest.hookspec(firstresult=True)
def pytest_dpaudit_job(item: pytest.Item) -> type[Job] | None:
    """Return the job of a function whose records a run stores, or None for any other test."""


@pytest.hookspec(firstresult=True)
def pytest_dpaudit_functions(job: Job, checks: Sequence[FunctionCheck]) -> Record | None:
    """Return the record about the deterministic functions that one audit function checked."""


@pytest.hookspec
def pytest_dpaudit_complete(
    session: AuditSession, records: list[Record]
) -> tuple[dict[str, Any], Sequence[str]] | None:
    """Return what must be added to a run.

    Also add, in order, records that no function made.

    Returns
    -------
    facts : dict
        Facts that a run stores in addition to its records, by the kind of record.
    problems : sequence of str
        Problems of the run.
    """
