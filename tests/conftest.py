"""Fixtures and hooks that apply to every test."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

# Tests are derandomised, so a failing property fails for everybody.
settings.register_profile("dpaudit", derandomize=True, deadline=None, database=None)
settings.load_profile("dpaudit")

pytest_plugins = ["pytester", "tests.browser"]

NO_SKIPS = bool(os.environ.get("DPAUDIT_NO_SKIPS"))
"""Return whether a skipped test counts as a failure, as in `make nightly`."""


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all cases of a function with the mark `sampled` as slow, except for the first case."""
    for item in items:
        case = getattr(item, "callspec", None)
        if item.get_closest_marker("sampled") and any(case.indices.values()):
            item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a skipped test if `NO_SKIPS` is set."""
    return _without_skips((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Fail a skipped file if `NO_SKIPS` is set."""
    return _without_skips((yield))


def _without_skips(report: Any) -> Any:
    if NO_SKIPS and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome, report.longrepr = "failed", f"{reason} (a skip is a failure here)"
    return report


@pytest.fixture(autouse=True)
def _global_generator_stays_untouched():
    """Fail a test that draws from numpy's global generator."""
    before = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    yield
    after = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    assert before["pos"] == after["pos"]
    assert np.array_equal(before["key"], after["key"])
