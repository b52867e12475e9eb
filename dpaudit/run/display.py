"""Output of a run: a live line on a terminal, and plain lines elsewhere."""

from __future__ import annotations

import io
import os
import shlex
import sys
import time
import warnings
from typing import IO, Any

import pytest
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from dpaudit.errors import SlowAuditWarning
from dpaudit.report import in_order, run_lines, section_of
from dpaudit.run.carry import cargo_of, reason_of, skip_reason, took_process_down
from dpaudit.run.progress import Progress, ProgressPoll
from dpaudit.run.session import AuditSession
from dpaudit.run.settings import selected_by
from dpaudit.store import Record, StoredRun

_WIDTH = 18
"""Width of the column of verdicts, in characters."""

_LIVE_EVERY, _PLAIN_EVERY = 0.5, 30.0
"""Seconds between two updates of the progress, on a terminal and elsewhere."""


class RunDisplay:
    """Prints one line for each record when it arrives, and all findings at the end.

    The output goes to a copy of standard output, which pytest does not capture.

    Parameters
    ----------
    verbose : bool, optional
        Whether findings include the evidence. The default is False.
    """

    nothing = "no audit was collected: audits are functions audit_* in files audit_*.py"
    """Message of a run without any audit."""

    def __init__(self, *, verbose: bool = False) -> None:
        self._verbose = verbose
        self._copied = True
        try:
            self._file: IO[str] = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
        except (io.UnsupportedOperation, AttributeError):  # this happens in a notebook or in a test
            self._file, self._copied = sys.stdout, False
        self._console = Console(file=self._file, highlight=False, soft_wrap=True)
        self._bar: Bar | None = None
        self._task: Any = None
        self._poll: ProgressPoll | None = None
        self._shown: list[Record] = []
        self._unchanged = 0

    # --- while it runs ---

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Start to report the progress of the audits."""
        if (found := _session_of(session.config)) is not None:
            every = _LIVE_EVERY if self._console.is_terminal else _PLAIN_EVERY
            self._poll = ProgressPoll(found.out, self.show_progress, every)
            self._poll.start()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Start the live line when the number of audits is known."""
        self._start(len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """Start the live line when workers have collected their audits."""
        self._start(len(ids))

    def _start(self, total: int) -> None:
        if self._bar is not None or total == 0 or not self._console.is_terminal:
            return
        self._bar = Bar(
            TextColumn("[bold]auditing"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[now]}", style="dim"),
            console=self._console,
            transient=True,
        )
        self._task = self._bar.add_task("", total=total, now="")
        self._bar.start()

    def show_progress(self, found: list[Progress]) -> None:
        """Show the progress of the audits, in the live line or on a new line."""
        words = "; ".join(progress.words(time.time()) for progress in found)
        if self._bar is not None:
            self._bar.update(self._task, now=escape(words))
        elif not self._console.is_terminal:
            self._print(escape(words))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print the lines of a function that ended, failed or was skipped."""
        cargo = cargo_of(report)
        judged = [record for record in cargo.records if section_of(record).is_judged(record)]
        self._unchanged += len(judged) * cargo.taken
        for record in judged:
            self._print_result(record, taken=cargo.taken)
            if section_of(record).is_shown(record, verbose=self._verbose):
                self._shown.append(record)
        if report.failed and (cargo.status is None or not judged):
            self._print_error(report)
        elif report.skipped:
            self._print_skip(report)
        if self._bar is not None and (report.when == "teardown" or took_process_down(report)):
            self._bar.update(self._task, advance=1, now=report.nodeid.rpartition("::")[2])

    def _print_result(self, record: Record, *, taken: bool = False) -> None:
        status, facts = record.status, section_of(record).facts(record)
        facts += ["unchanged"] * taken
        self._print(
            f"[{status.style}]{status.word:<{_WIDTH}}[/] {escape(record.id)}  "
            f"[dim]{escape('  '.join(facts))}[/]"
        )

    def _print_error(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        gone = took_process_down(report)
        word = "BROKEN OFF" if gone else "ERROR"
        self._print(f"[bold red]{word:<{_WIDTH}}[/] {escape(report.nodeid)}")
        collects = isinstance(report, pytest.CollectReport)
        if gone or collects:
            self._print(f"  {escape(reason_of(report))}")
        if not gone:
            self._print(f"  {escape(str(report.longrepr).strip())}")

    def _print_skip(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        words = f"{escape(report.nodeid)}  {escape(skip_reason(report))}"
        self._print(f"[dim]{'SKIPPED':<{_WIDTH}} {words}[/]")

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """Print the warning about a slow audit."""
        if issubclass(warning_message.category, SlowAuditWarning):
            self._print(f"[yellow]{'SLOW':<{_WIDTH}}[/] {escape(str(warning_message.message))}")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Print why a file cannot be collected."""
        if report.failed:
            self._print_error(report)
        elif report.skipped:
            self._print_skip(report)

    # --- when it has ended ---

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Print a message if no audit was collected."""
        self._stop()
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            selection = selected_by(session.config)
            self._print(f"nothing matches {shlex.join(selection)}" if selection else self.nothing)

    def _stop(self) -> None:
        if self._poll is not None:
            self._poll.stop()
        if self._bar is not None:
            self._bar.stop()

    @pytest.hookimpl(tryfirst=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Print the findings and the closing lines."""
        self._stop()
        session = _session_of(config)
        for record in in_order(self._shown):
            out = None if session is None else session.out
            found = section_of(record).finding(record, out, verbose=self._verbose)
            self._print("\n" + escape(found))
        if session is not None and session.run is not None:
            self._print("")
            self._close(session, session.run)
        if self._copied:
            self._file.close()

    def _close(self, session: AuditSession, run: StoredRun) -> None:
        """Print the closing lines."""
        if self._unchanged:
            words = f"{self._unchanged} unchanged result{'s' * (self._unchanged != 1)} kept"
            self._print(f"{words}: settings, files, imports and versions are the same")
        if run.kept:
            old = sum(not kept.current for kept in run.kept)
            words = f"includes {len(run.kept)} result{'s' * (len(run.kept) != 1)} of earlier runs"
            outdated = f", {old} of them from other code or settings: run all audits to renew them"
            self._print(words + outdated * (old > 0))
        for line in run_lines(run, session.records, session.report):
            self._print(escape(line))
        for name in ("junit", "sarif"):
            if (path := getattr(session.asked, name)) is not None:
                self._print(escape(f"{name}: {path}"))

    def _print(self, text: str) -> None:
        self._console.print(text)


def _session_of(config: pytest.Config) -> AuditSession | None:
    plugin = config.pluginmanager.get_plugin("dpaudit-session")
    return plugin if isinstance(plugin, AuditSession) else None
