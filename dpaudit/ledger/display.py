"""What `dpaudit ledger` shows: the rows of a ledger as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dpaudit.ledger import words
from dpaudit.ledger.coverage import STATEMENT
from dpaudit.ledger.rows import StatementResult
from dpaudit.results import short
from dpaudit.run import AuditSession, RunDisplay
from dpaudit.store import Record, Run, by_kind

_FILE_WIDTH = 160
"""Of tables that go to no terminal."""

_LEAST_NOTE = 20
"""Width from which the remarks of a table get a column."""

_HEADINGS = ("statement", "verdict", "method", "LHS/RHS", "examples", "power")


class LedgerDisplay(RunDisplay):
    """Prints a table of the statements at the end, and before it only what went wrong."""

    nothing = "no check was collected: checks are functions with @statement in files ledger_*.py"

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[StatementResult] = []

    def _print_result(self, record: Record) -> None:
        """Leave statements to the table."""
        if not isinstance(record, StatementResult):
            super()._print_result(record)

    def _close(self, session: AuditSession, run: Run) -> None:
        self.rows = by_kind(session.records)[STATEMENT.name]
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
    shown = [row for row in rows if not words.is_left_out(row)]
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
        line = [escape(name), f"[{row.status.style}]{verdict}[/]", *rest]
        if room >= _LEAST_NOTE:
            line.append(escape(short(" ".join(words.remark(row).split()), room)))
        table.add_row(*line)
    if shown:
        console.print(table)


def _cells(row: StatementResult) -> list[str]:
    """Return what stands below the headings."""
    return [
        row.id,
        row.verdict.words + " !" * (row.mismatch is not None),
        words.method_words(row),
        words.ratio_words(row.tightest),
        words.examples_words(row),
        words.power_words(row),
    ]
