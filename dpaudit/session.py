"""What the controlling process of a run does: store results as they come, then report."""

from __future__ import annotations

import datetime
import shlex
import time
from pathlib import Path
from typing import Any

import pytest

from dpaudit.engine import versions
from dpaudit.errors import StoreError
from dpaudit.plugin import PROBLEMS, reported
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
    settings : Settings
        Of the run.
    """

    def __init__(self, config: pytest.Config, out: Path, settings: Settings) -> None:
        self.config = config
        self.out = out
        self.settings = settings
        self.results: list[AuditResult] = []
        self.run: Run | None = None
        self.report: Path | None = None
        self._problems: list[str] = []
        self._skipped: list[str] = []
        self._begun = time.perf_counter()
        self._started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store the results of an audit as soon as it has ended."""
        results, outcome = reported(report)
        self._problems += dict(report.user_properties).get(PROBLEMS, [])  # type: ignore[arg-type]
        try:
            for result in results:
                save_result(self.out, result)
                self.results.append(result)
            if report.failed and outcome is None:
                self._problems.append(f"{report.nodeid}: {_reason(report)}")
            if report.skipped:
                self._skipped.append(f"{report.nodeid}: {skip_reason(report)}")
            if results or report.failed or report.skipped:
                self._save(complete=False)
        except StoreError as error:
            pytest.exit(str(error), returncode=int(pytest.ExitCode.USAGE_ERROR))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note files that cannot be collected, or skip themselves."""
        if report.failed:
            self._problems.append(f"{report.nodeid}: {_reason(report)}")
        elif report.skipped:
            self._skipped.append(f"{report.nodeid}: {skip_reason(report)}")

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
            problems=tuple(self._problems),
            skipped=tuple(self._skipped),
            complete=complete,
        )
        save_run(self.out, run, sorted(self.results, key=lambda r: r.id))
        return run

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Any:
        """Write the run and the report."""
        outcome = yield
        if self.results or self._problems or self._skipped:
            from dpaudit.report import write_report

            self.run = self._save(complete=exitstatus in (0, 1))
            ordered = sorted(self.results, key=lambda r: r.id)
            self.report = write_report(self.out, self.run, ordered)
        return outcome


def skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return why a test or a file was skipped."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return one line that says why a test or a file failed."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = str(report.longrepr if crash is None else crash.message).strip().splitlines()
    return lines[0 if crash is not None else -1].removeprefix("E ").strip() if lines else "failed"


def command(config: pytest.Config, settings: Settings) -> str:
    """Return the command that repeats the run, quoted for a shell."""
    words = ["dpaudit", "run", *config.args, *settings.options().split()]
    keyword = config.getoption("keyword", default="")
    return shlex.join([*words, "-k", keyword] if keyword else words)
