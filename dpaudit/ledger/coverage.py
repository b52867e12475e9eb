"""Every row of a paper, with what became of it: no row goes missing because nobody looked.

The rows are a kind of record, and a run stores their papers beside them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict

from dpaudit import _json
from dpaudit.errors import StoreError
from dpaudit.ledger.paper import Paper, Statement, ledger_files, paper_at, paper_of
from dpaudit.ledger.rows import LEDGER_SCHEMA, LedgerVerdict, StatementResult, shaken
from dpaudit.store import Kind, StoredRun

NOT_RUN = "not run: "
"""How the note of a row begins whose check was not run."""

BROKE_OFF = "The check broke off: "
"""How the note of a row begins whose check reached no verdict."""


@dataclass
class LedgerFile:
    """A ledger file that a run has looked into.

    Parameters
    ----------
    checks : dict
        Name of the check of each statement, by id.
    own : dict
        Rows that checks bring along, by id.
    problem : str
        Why the file could not be collected.
    """

    checks: dict[str, str] = field(default_factory=dict)
    own: dict[str, Statement] = field(default_factory=dict)
    problem: str = ""


def open_row(row: Statement, note: str) -> StatementResult:
    """Return the row of a statement that no check looked at: open, and expected to be."""
    return StatementResult(row, LedgerVerdict.OPEN, note=note, expected=LedgerVerdict.OPEN)


def account(
    files: Mapping[Path, LedgerFile],
    results: Iterable[StatementResult],
    lost: Mapping[str, str] | None = None,
) -> tuple[list[StatementResult], list[str]]:
    """Return a row for each statement of every paper that has a file, in the order of the paper.

    Parameters
    ----------
    files : mapping
        The ledger files of the run, by absolute path.
    results : iterable of StatementResult
        The certificate of the mechanism.
    lost : mapping, optional
        Reasons why tests left no row, by the ids that pytest gives them: a check may take its
        worker down with it.

    Returns
    -------
    rows : list of StatementResult
        Papers by name; rows that brought their text along come after those of the table.
    problems : list of str
        Tables that cannot be read, a sentence each.
    """
    made = {(result.paper, result.id): result for result in results}
    left = dict(made)
    known = {Path(result.origin["path"]).absolute() for result in left.values() if result.origin}
    files = {**{path: LedgerFile() for path in known}, **files}
    papers: dict[tuple[str, Path], dict[Path, LedgerFile]] = {}
    for path in sorted(files):
        papers.setdefault((paper_of(path), path.parent), {})[path] = files[path]
    rows, problems = [], []
    for (paper, _), parts in sorted(papers.items(), key=lambda item: item[0]):
        try:
            table = paper_at(next(iter(parts))).rows
        except StoreError as error:
            table = {}
            problems.append(str(error))
        own = {id: row for part in parts.values() for id, row in part.own.items()}
        partly = bool(set(ledger_files(next(iter(parts)))) - set(parts))
        for id, row in {**table, **own}.items():
            found = left.pop((paper, id), None)
            if row.same_as and not any(id in part.checks for part in parts.values()):
                # whatever an earlier run stored of it
                found = _taken_over(row, made.get((paper, row.same_as)))
            rows.append(
                found
                if found is not None
                else open_row(row, _why_open(id, parts, lost or {}, partly=partly))
            )
    return rows + list(left.values()), problems


def _taken_over(row: Statement, found: StatementResult | None) -> StatementResult | None:
    """Return what was found of the statement that says the same; None where nothing was."""
    if found is None or found.verdict is LedgerVerdict.OPEN:
        return None
    note = f"Attacked as {row.same_as}, which says the same. {found.note}".strip()
    return replace(found, stated=row, note=note, seconds=0.0)


def _why_open(
    id: str, parts: Mapping[Path, LedgerFile], lost: Mapping[str, str], *, partly: bool
) -> str:
    """Say why a statement has no verdict; `partly` if the paper has files that were not run."""
    for path, part in parts.items():
        if id in part.checks:
            own = f"{path.name}::{part.checks[id]}"
            for node, reason in lost.items():
                if f"/{node}".endswith(f"/{own}"):
                    return f"{BROKE_OFF}{reason}"
            return f"{NOT_RUN}its check is {os.path.relpath(path)}::{part.checks[id]}"
    broken = [path.name for path, part in parts.items() if part.problem]
    if broken:
        return f"{NOT_RUN}{', '.join(broken)} could not be collected"
    if partly:
        return f"{NOT_RUN}no check of it is in the ledger files of this run"
    return "No check was written yet."


# --- what is stored ---------------------------------------------------------------------------


class _Row(TypedDict):
    """What is read again of the row of a statement."""

    stated: Statement
    note: str


class StatementKind(Kind):
    """Rows of a ledger; those that were not checked have no file."""

    def rows(self, records: Sequence[StatementResult]) -> list[dict[str, Any]]:
        """Return the rows, each with the premises that do not stand."""
        shaky = shaken(records)
        return [
            {**row.row(), "shaken": [s.words for s in shaky[row.id]], "stored": bool(row.origin)}
            for row in records
        ]

    def bare(self, row: Mapping[str, Any], *, lost: bool = False) -> StatementResult:
        """Return an open row."""
        known: _Row = _json.decode(_Row, dict(row))
        note = f"{NOT_RUN}what was found is lost" if lost else known["note"]
        return open_row(known["stated"], note)

    def copies(self, record: StatementResult) -> list[StatementResult]:
        """Return the rows of statements that say the same in another version of the paper."""
        stated = paper_at(Path(record.origin["path"])).statements
        found = (_taken_over(row, record) for row in stated if row.same_as == record.id)
        return [copy for copy in found if copy is not None]

    def is_current(self, record: StatementResult) -> bool:
        """Whether the table still has the statement in the same words."""
        if record.kind == "function":
            return True
        try:
            row = paper_at(Path(record.origin["path"])).rows.get(record.id)
        except StoreError:
            return False
        return row is None or record.stated == row


STATEMENT = StatementKind(
    "statement",
    "statements",
    StatementResult,
    LEDGER_SCHEMA,
    dotted=True,
    files="ledger_*.py",
    page="ledger.html",
    facts=tuple[Paper, ...],
)


def papers_of(run: StoredRun) -> tuple[Paper, ...]:
    """Return the papers whose statements a run shows: titles and conventions."""
    papers: tuple[Paper, ...] = run.facts.get(STATEMENT.name, ())
    return papers
