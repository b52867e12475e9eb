"""What the controlling process of a run does: store results as they come, then report."""

from __future__ import annotations

import datetime
import time
from pathlib import Path
from typing import Any

import pytest

from dpaudit import plugin
from dpaudit.engine import versions
from dpaudit.results import AuditResult
from dpaudit.runner import Settings
from dpaudit.store import Run, family_wise_error, save_result, save_run


class AuditSession:
    """Collects results from all workers and writes them; one writer, so no file is torn.

    Parameters
    ----------
    config : pytest.Config
        Of the controlling process.
    out : Path
        Directory of the results, known to be writable.
    """

    def __init__(self, config: pytest.Config, out: Path) -> None:
        self.config = config
        self.out = out
        self.settings: Settings = plugin._settings(config)
        self.results: list[AuditResult] = []
        self.problems: list[str] = []
        self.run: Run | None = None
        self.report: Path | None = None
        self._begun = time.perf_counter()
        self._started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store the results of an audit as soon as it has ended."""
        results, _ = plugin.reported(report)
        for result in results:
            save_result(self.out, result)
            self.results.append(result)
        if report.failed and not results:
            reason = str(report.longrepr).strip().splitlines()
            self.problems.append(f"{report.nodeid}: {reason[-1] if reason else 'failed'}")
        if results or report.failed:
            self._save(complete=False)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note files that cannot be collected."""
        if report.failed:
            reason = str(report.longrepr).strip().splitlines()
            self.problems.append(f"{report.nodeid}: {reason[-1] if reason else 'not collected'}")

    def _save(self, *, complete: bool) -> Run:
        run = Run(
            profile=self.settings.profile,
            seed=self.settings.seed,
            failure_prob=self.settings.failure_prob,
            command=command(self.config, self.settings),
            versions=versions(),
            family_wise_error=family_wise_error(self.results),
            started=self._started,
            seconds=round(time.perf_counter() - self._begun, 2),
            problems=tuple(self.problems),
            complete=complete,
        )
        save_run(self.out, run, sorted(self.results, key=lambda r: r.id))
        return run

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Any:
        """Write the run and the report."""
        outcome = yield
        if self.results or self.problems:
            from dpaudit.report import write_report

            self.run = self._save(complete=exitstatus in (0, 1))
            ordered = sorted(self.results, key=lambda r: r.id)
            self.report = write_report(self.out, self.run, ordered)
        return outcome


def command(config: pytest.Config, settings: Settings) -> str:
    """Return the command that repeats the run."""
    paths = " ".join(a for a in config.args if "::" not in a and not a.startswith("-"))
    keyword = config.getoption("keyword", default="")
    choice = f' -k "{keyword}"' if keyword else ""
    return f"dpaudit run {paths} {settings.options()}{choice}".replace("  ", " ")
