"""The life of a check, from its setup to its report."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dpaudit.errors import StoreError
from dpaudit.ledger.coverage import BROKE_OFF, NOT_RUN, open_row
from dpaudit.ledger.paper import TABLE, Statement, algorithm_paths, paper_at, paper_of
from dpaudit.ledger.rows import StatementResult
from dpaudit.ledger.statements import Mark, marked
from dpaudit.results import short
from dpaudit.run import Job, reason_of, skip_reason
from dpaudit.store import Record

if TYPE_CHECKING:
    from dpaudit.ledger.attempts import Ledger

_QUOTED = 60  # characters


def mark_of(item: pytest.Item) -> Mark:
    """Return the mark on a check's function."""
    mark = marked(getattr(item, "function", None))
    assert mark is not None
    return mark


class CheckJob(Job):
    """The check of one statement."""

    noun, fix = "checks", "one statement, one check"

    @staticmethod
    def id_of(item: pytest.Item) -> str:
        """Return the id of the statement; the setup refuses a parametrised check."""
        return item.nodeid if hasattr(item, "callspec") else mark_of(item).id

    def __init__(self, item: pytest.Item) -> None:
        super().__init__(item)
        self.mark = mark = mark_of(item)
        self.id = mark.id
        self.no_xfail = (
            f"xfail must not be used for checks of statements. Write @statement({self.id!r}, "
            'expected="refuted"), or another verdict'
        )
        self.origin["replays"] = mark.replays
        row = _row_of(item.path, mark)
        self.row = None if isinstance(row, str) else row
        self.ledger: Ledger | None = None
        if isinstance(row, str):
            self.fault = row
        else:
            # imported here, because reading results must not need hypothesis
            from dpaudit.ledger.attempts import Ledger

            paper = paper_at(item.path)
            algorithms: list[Path] = []
            try:
                algorithms = algorithm_paths(paper, self.root)
            except StoreError as error:
                self.fault = str(error)
            self.ledger = Ledger(
                row,
                paper=paper,
                found=mark.found,
                profile=self.settings.profile,
                seed=self.settings.seed,
                algorithms=algorithms,
            )
        if not self.fault and "ledger" not in getattr(item, "fixturenames", ()):
            self.fault = (
                f"the check of {self.id} must take the fixture `ledger`, with which it makes "
                f"attempts. Write def {item.name}(ledger)"
            )
        if hasattr(item, "callspec"):
            self.fault = (
                f"a check of a statement must not be parametrised, because {self.id} has one "
                "verdict. Make several attempts in one check"
            )

    def accepts(self, record: Record) -> bool:
        """Return whether a stored row has the text and the findings of this check."""
        if not isinstance(record, StatementResult) or self.row is None:
            return False
        return record.stated == self.row and super().accepts(record)

    def declared(self, record: Record) -> Any:
        """Return the verdict that the mark declares."""
        return self.mark.expected

    def made(self, seconds: float) -> list[Record]:
        """Return the row."""
        assert self.ledger is not None
        return [self.ledger.result(seconds=seconds)]

    def broken_off(self, report: pytest.TestReport) -> list[Record]:
        """Return the row of a check that ended without a verdict.

        The row is open, with the reason.
        """
        if self.row is None:
            return []
        if report.skipped:
            return [open_row(self.row, NOT_RUN + skip_reason(report))]
        found = open_row(self.row, BROKE_OFF + reason_of(report))
        return [self._with_origin(found, {})]


def own_row(mark: Mark, path: Path) -> Statement | None:
    """Return the row of a statement that is in no table.

    The text of the row comes from the check.
    """
    with contextlib.suppress(StoreError):
        if mark.text and not paper_at(path).rows:
            return Statement(mark.id, paper_of(path), mark.kind or "statement", mark.text)
    return None


def _row_of(path: Path, mark: Mark) -> Statement | str:
    """Return the row of a check, or a sentence that explains why there is no row."""
    id, paper = mark.id, paper_of(path)
    if not path.match("ledger_*.py"):
        return f"the check of {id} must lie in a file ledger_*.py, got {path.name}"
    try:
        rows = paper_at(path).rows
    except StoreError as error:
        return str(error)
    if not rows:
        return own_row(mark, path) or (
            f"{id} must have a text, got neither a {TABLE} next to {path.name} nor a docstring of "
            "its check that begins with the statement"
        )
    if id not in rows:
        return f"{id} must be a statement of {paper}/{TABLE}. Add it there"
    if mark.text != rows[id].text:
        start = f"begins with {short(mark.text, _QUOTED)!r}" if mark.text else "is missing"
        return (
            f"the docstring of the check of {id} {start}. It must begin with the statement in the "
            f"words of {paper}/{TABLE}: {rows[id].text}"
        )
    return rows[id]
