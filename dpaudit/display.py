"""What `dpaudit run` shows: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import pytest
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dpaudit.plugin import OUTCOMES, reported
from dpaudit.report.terminal import finding_lines, run_lines
from dpaudit.results import AuditResult
from dpaudit.session import AuditSession

_STYLES = {
    "refuted": "bold red",
    "lost": "bold red",
    "no_power": "bold yellow",
    "known": "magenta",
    "powerless": "yellow",
    "open": "yellow",
    "not_refuted": "green",
}


class RunDisplay:
    """Prints one line for each audit as it ends, and the findings at the end.

    Writes to a copy of standard output, which pytest's capturing leaves alone.
    """

    def __init__(self) -> None:
        self._file = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
        self._console = Console(file=self._file, highlight=False, soft_wrap=True)
        self._progress: Progress | None = None
        self._bar: Any = None
        self._findings: list[tuple[AuditResult, str]] = []
        self._begun = time.perf_counter()

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
        if outcome is not None:
            style, word = _STYLES[outcome], OUTCOMES[outcome][2]
            for result in results:
                self._print_result(result, word, style)
                if outcome != "not_refuted":
                    self._findings.append((result, word))
        elif report.failed:
            self._print(f"[bold red]{'ERROR':<16}[/] {_escape(report.nodeid)}")
            self._print(f"  {_escape(str(report.longrepr).strip())}")
        elif report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self._print(f"[dim]{'SKIPPED':<16} {_escape(report.nodeid)}  {_escape(reason)}[/]")
        if self._progress is not None and report.when == "teardown":
            self._progress.update(self._bar, advance=1, last=report.nodeid.rpartition("::")[2])

    def _print_result(self, result: AuditResult, word: str, style: str) -> None:
        twin = "" if result.twin is None else f"  twin >= {result.twin.certified_epsilon:.3g}"
        self._print(
            f"[{style}]{word:<16}[/] {_escape(result.id)}  "
            f"[dim]epsilon >= {result.certified_epsilon:.3g} of {result.claimed_epsilon:.3g} "
            f"claimed{twin}  {result.seconds:.1f} s[/]"
        )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Say which file cannot be collected, and why."""
        if report.failed:
            self._print(f"[bold red]{'ERROR':<16}[/] {_escape(report.nodeid)}")
            self._print(_escape(str(report.longrepr).strip()))
        elif report.skipped and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ")
            self._print(f"[dim]{'SKIPPED':<16} {_escape(report.nodeid)}  {_escape(reason)}[/]")

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Say so when there was nothing to do."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            self._print("no audit was collected: audits are functions audit_* in files audit_*.py")

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Print the findings and the closing lines."""
        if self._progress is not None:
            self._progress.stop()
        session = config.pluginmanager.get_plugin("dpaudit-session")
        out = str(session.out) if isinstance(session, AuditSession) else None
        for result, word in self._findings:
            self._print("")
            for line in finding_lines(result, word, out):
                self._print(_escape(line))
        if isinstance(session, AuditSession) and session.run is not None:
            self._print("")
            report = None if session.report is None else str(session.report)
            for line in run_lines(session.run, session.results, report):
                self._print(_escape(line))
        self._file.close()

    def _print(self, text: str) -> None:
        self._console.print(text)


def _escape(text: str) -> str:
    return text.replace("[", "\\[")
