"""What `dpaudit run` shows: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import IO, Any

import pytest
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from dpaudit.ledger import LedgerVerdict, StatementResult, statement_status
from dpaudit.report import (
    draws_used,
    examples_words,
    finding,
    is_left_out,
    method_words,
    power_words,
    ratio_words,
    remark,
    run_lines,
    statement_facts,
    statement_finding,
)
from dpaudit.results import STATUSES, AuditResult, beside, short
from dpaudit.run.ledger_plugin import reported_statement
from dpaudit.run.plugin import reported, skip_reason
from dpaudit.run.session import AuditSession, repeated_by
from dpaudit.store import Run

_WIDTH = 18
"""Of the column of verdicts; longer ones push their line to the right."""

_FILE_WIDTH = 160
"""Of tables that go to no terminal."""

_LEAST_NOTE = 20
"""Width from which the remarks of a table get a column."""

_HEADINGS = ("statement", "verdict", "method", "LHS/RHS", "examples", "power")


class RunDisplay:
    """Prints one line for each audit and each statement as it ends, and the findings at the end.

    Writes to a copy of standard output, which pytest's capturing leaves alone.
    """

    nothing = "no audit was collected: audits are functions audit_* in files audit_*.py"
    """What to say when there was nothing to do."""

    def __init__(self) -> None:
        self._file = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
        self._console = Console(file=self._file, highlight=False, soft_wrap=True)
        self._progress: Progress | None = None
        self._bar: Any = None
        self._findings: list[AuditResult] = []
        self._surprises: list[StatementResult] = []

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
            if result.status.key != "not_refuted":
                self._findings.append(result)
        row = reported_statement(report)
        judged = row is not None and row.verdict is not LedgerVerdict.OPEN
        if row is not None and judged:
            self._print_statement(row)
            if row.mismatch is not None:
                self._surprises.append(row)
        if report.failed and outcome is None and not judged:
            self._print_error(report)
        elif report.skipped:
            self._print_skip(report)
        if self._progress is not None and report.when == "teardown":
            self._progress.update(self._bar, advance=1, last=report.nodeid.rpartition("::")[2])

    def _print_result(self, result: AuditResult) -> None:
        outcome, claimed = result.status, result.claimed_epsilon
        words = [
            f"epsilon {beside(result.certified_epsilon, claimed, 3, '>= ')} of {claimed:.3g} "
            "claimed"
        ]
        if result.mutant is not None:
            words.append(f"mutant {beside(result.mutant.certified_epsilon, claimed, 3, '>= ')}")
        if result.sequential is not None:
            words.append(draws_used(result))
        words.append(f"{result.seconds:.1f} s")
        self._print(
            f"[{outcome.style}]{outcome.word:<{_WIDTH}}[/] {escape(result.id)}  "
            f"[dim]{'  '.join(words)}[/]"
        )

    def _print_statement(self, row: StatementResult) -> None:
        outcome = statement_status(row)
        self._print(
            f"[{outcome.style}]{outcome.word:<{_WIDTH}}[/] {escape(row.id)}  "
            f"[dim]{escape('  '.join(statement_facts(row)))}[/]"
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
            self._print(self.nothing)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Print the findings and the closing lines."""
        if self._progress is not None:
            self._progress.stop()
        plugin = config.pluginmanager.get_plugin("dpaudit-session")
        session = plugin if isinstance(plugin, AuditSession) else None
        order = list(STATUSES)
        for result in sorted(self._findings, key=lambda r: order.index(r.status.key)):
            self._print(
                "\n" + escape(finding(result, session.out if session is not None else None))
            )
        for row in self._surprises:
            out = session.out if session is not None else None
            self._print("\n" + escape(statement_finding(row, out)))
        if session is not None and session.run is not None:
            self._print("")
            self._close(session, session.run)
        self._file.close()

    def _close(self, session: AuditSession, run: Run) -> None:
        """Print the closing lines."""
        for line in run_lines(run, session.results, session.report, session.statements):
            self._print(escape(line))

    def _print(self, text: str) -> None:
        self._console.print(text)


class LedgerDisplay(RunDisplay):
    """Prints a table of the statements at the end, and before it only what went wrong.

    Parameters
    ----------
    command : str
        What repeats the run.
    """

    nothing = "no check was collected: checks are functions with @statement in files ledger_*.py"

    def __init__(self, command: str) -> None:
        super().__init__()
        self.rows: list[StatementResult] = []
        self._command = command

    def pytest_configure(self, config: pytest.Config) -> None:
        """Say how the run is repeated."""
        config.stash[repeated_by] = self._command

    def _print_statement(self, row: StatementResult) -> None:
        """Leave it to the table."""

    def _close(self, session: AuditSession, run: Run) -> None:
        self.rows = session.statements
        if self.rows:
            print_ledger(self.rows, self._file)
        super()._close(session, run)


def print_ledger(rows: Sequence[StatementResult], file: IO[str] | None = None) -> None:
    """Print the rows of a ledger as a table, but for those that were not run.

    Parameters
    ----------
    rows : sequence of StatementResult
        In the order of their papers.
    file : file, optional
        Where to; by default standard output.
    """
    console = Console(file=file, highlight=False)
    if not console.is_terminal:
        console = Console(file=file, highlight=False, width=_FILE_WIDTH)
    shown = [row for row in rows if not is_left_out(row)]
    cells = [_cells(row) for row in shown]
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *cells, strict=True)]
    room = console.width - sum(widths) - 3 * len(widths) - 2
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in _HEADINGS:
        numbers = name in ("LHS/RHS", "examples")
        table.add_column(name, no_wrap=True, justify="right" if numbers else "left")
    if room >= _LEAST_NOTE:
        table.add_column("note", no_wrap=True, style="dim")
    for row, (name, verdict, *rest) in zip(shown, cells, strict=True):
        line = [escape(name), f"[{statement_status(row).style}]{verdict}[/]", *rest]
        if room >= _LEAST_NOTE:
            line.append(escape(short(" ".join(remark(row).split()), room)))
        table.add_row(*line)
    if shown:
        console.print(table)


def _cells(row: StatementResult) -> list[str]:
    """Return what stands below the headings."""
    return [
        row.id,
        row.verdict.words + " !" * (row.mismatch is not None),
        method_words(row),
        ratio_words(row.tightest),
        examples_words(row),
        power_words(row),
    ]
