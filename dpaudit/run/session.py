"""What the controlling process of a run does: store results as they come, then report."""

from __future__ import annotations

import datetime
import json
import shlex
import time
from pathlib import Path
from typing import Any

import pytest

from dpaudit.engine import versions
from dpaudit.errors import StoreError
from dpaudit.ledger import LedgerFile, LedgerVerdict, StatementResult, account
from dpaudit.results import AuditResult
from dpaudit.run.auditor import Settings
from dpaudit.run.ledger_plugin import LEDGERS, ledgers, reported_statement
from dpaudit.run.plugin import PROBLEMS, reason_of, reported, skip_reason
from dpaudit.store import Run, family_wise_error, save_result, save_run, save_statement

repeated_by = pytest.StashKey[str]()
"""The command that repeats the run, where it is not ``dpaudit run``."""


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
        self.statements: list[StatementResult] = []
        self.run: Run | None = None
        self.report: Path | None = None
        self._problems: list[str] = []
        self._skipped: list[str] = []
        self._found: dict[str, StatementResult] = {}
        self._lost: dict[str, str] = {}
        self._ledgers: dict[Path, LedgerFile] = config.stash.setdefault(ledgers, {})
        self._begun = time.perf_counter()
        self._started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store the results of an audit as soon as it has ended."""
        results, outcome = reported(report)
        row = reported_statement(report)
        judged = outcome is not None or (row is not None and row.verdict is not LedgerVerdict.OPEN)
        self._problems += dict(report.user_properties).get(PROBLEMS, [])  # type: ignore[arg-type]
        try:
            for result in results:
                save_result(self.out, result)
                self.results.append(result)
            if row is not None:
                if row.origin:
                    save_statement(self.out, row)
                self._found[row.id] = row
            if report.failed and not judged:
                self._problems.append(f"{report.nodeid}: {reason_of(report)}")
                self._lost[report.nodeid] = reason_of(report)
            if report.skipped:
                self._skipped.append(f"{report.nodeid}: {skip_reason(report)}")
            if results or row is not None or report.failed or report.skipped:
                self._save(complete=False)
        except StoreError as error:
            pytest.exit(str(error), returncode=int(pytest.ExitCode.USAGE_ERROR))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note files that cannot be collected, or skip themselves."""
        if report.failed:
            self._problems.append(f"{report.nodeid}: {reason_of(report)}")
        elif report.skipped:
            self._skipped.append(f"{report.nodeid}: {skip_reason(report)}")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Learn from a worker which ledger files there are."""
        found = json.loads(getattr(node, "workeroutput", {}).get(LEDGERS, "{}"))
        self._ledgers.update({Path(p): LedgerFile.from_plain(file) for p, file in found.items()})

    def _save(self, *, complete: bool) -> Run:
        self.statements, unread = account(self._ledgers, self._found.values(), self._lost)
        run = Run(
            profile=self.settings.profile,
            seed=self.settings.seed,
            failure_prob=self.settings.failure_prob,
            command=command(self.config, self.settings),
            versions=versions(),
            family_wise_error=family_wise_error(self.results, self.statements),
            started=self._started,
            seconds=round(time.perf_counter() - self._begun, 2),
            problems=(*self._problems, *unread),
            skipped=tuple(self._skipped),
            complete=complete,
        )
        save_run(self.out, run, sorted(self.results, key=lambda r: r.id), self.statements)
        return run

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Any:
        """Write the run and the report."""
        outcome = yield
        if self.results or self._ledgers or self._found or self._problems or self._skipped:
            from dpaudit.report import write_report

            self.run = self._save(complete=exitstatus in (0, 1, 5))
            ordered = sorted(self.results, key=lambda r: r.id)
            self.report = write_report(self.out, self.run, ordered, self.statements)
        return outcome


def command(config: pytest.Config, settings: Settings) -> str:
    """Return the command that repeats the run, quoted for a shell."""
    if repeated_by in config.stash:
        return config.stash[repeated_by]
    words = ["dpaudit", "run", *config.args, *settings.options().split()]
    keyword = config.getoption("keyword", default="")
    return shlex.join([*words, "-k", keyword] if keyword else words)
