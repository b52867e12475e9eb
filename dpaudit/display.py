"""What `dpaudit run` shows: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dpaudit.outcomes import OUTCOMES, outcome_of
from dpaudit.plugin import reported
from dpaudit.report.terminal import draws_used, finding, run_lines
from dpaudit.report.words import beside
from dpaudit.results import AuditResult
from dpaudit.session import AuditSession, skip_reason

_WIDTH = 18
"""Of the column of verdicts; longer ones push their line to the right."""


class RunDisplay:
    """Prints one line for each audit as it ends, and the findings at the end.

    Writes to a copy of standard output, which pytest's capturing leaves alone.
    """

    def __init__(self) -> None:
        self._file = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
        self._console = Console(file=self._file, highlight=False, soft_wrap=True)
        self._progress: Progress | None = None
        self._bar: Any = None
        self._findings: list[AuditResult] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Start the live line once the number of audits is known."""
        self._start(len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """Start the live line when workers collect."""
        self._start(len(ids))

    def _start(self, total: int) -> None:
        if self._progress is not None or total == 0 or not self._console.is_terminal:
            return
        self._progress = Progress(
            TextColumn("[bold]auditing"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[last]}", style="dim"),
            console=self._console,
            transient=True,
        )
        self._bar = self._progress.add_task("", total=total, last="")
        self._progress.start()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print the line of an audit that ended, or of a test that failed or was skipped."""
        results, outcome = reported(report)
        for result in results:
            self._print_result(result)
            if outcome_of(result).key != "not_refuted":
                self._findings.append(result)
        if report.failed and outcome is None:
            self._print_error(report)
        elif report.skipped:
            self._print_skip(report)
        if self._progress is not None and report.when == "teardown":
            self._progress.update(self._bar, advance=1, last=report.nodeid.rpartition("::")[2])

    def _print_result(self, result: AuditResult) -> None:
        outcome, claimed = outcome_of(result), result.claimed_epsilon
        words = [
            f"epsilon {beside(result.certified_epsilon, claimed, 3, '>= ')} of {claimed:.3g} "
            "claimed"
        ]
        if result.twin is not None:
            words.append(f"twin {beside(result.twin.certified_epsilon, claimed, 3, '>= ')}")
        if result.sequential is not None:
            words.append(draws_used(result))
        words.append(f"{result.seconds:.1f} s")
        self._print(
            f"[{outcome.style}]{outcome.word:<{_WIDTH}}[/] {escape(result.id)}  "
            f"[dim]{'  '.join(words)}[/]"
        )

    def _print_error(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        self._print(f"[bold red]{'ERROR':<{_WIDTH}}[/] {escape(report.nodeid)}")
        self._print(f"  {escape(str(report.longrepr).strip())}")

    def _print_skip(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        words = f"{escape(report.nodeid)}  {escape(skip_reason(report))}"
        self._print(f"[dim]{'SKIPPED':<{_WIDTH}} {words}[/]")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Say which file cannot be collected, and why."""
        if report.failed:
            self._print_error(report)
        elif report.skipped:
            self._print_skip(report)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Say so when there was nothing to do."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            self._print("no audit was collected: audits are functions audit_* in files audit_*.py")

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Print the findings and the closing lines."""
        if self._progress is not None:
            self._progress.stop()
        plugin = config.pluginmanager.get_plugin("dpaudit-session")
        session = plugin if isinstance(plugin, AuditSession) else None
        order = list(OUTCOMES)
        for result in sorted(self._findings, key=lambda r: order.index(outcome_of(r).key)):
            self._print(
                "\n" + escape(finding(result, session.out if session is not None else None))
            )
        if session is not None and session.run is not None:
            self._print("")
            for line in run_lines(session.run, session.results, session.report):
                self._print(escape(line))
        self._file.close()

    def _print(self, text: str) -> None:
        self._console.print(text)
