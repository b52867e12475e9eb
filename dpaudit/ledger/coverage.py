"""Every row of a paper with its outcome.

A statement without a check has a row, too. Rows are a kind of record. A run stores the papers of
its rows next to the rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict

from dpaudit import _json
from dpaudit.errors import StoreError
from dpaudit.ledger.paper import ERRATUM, Paper, Statement, ledger_files, paper_at, paper_of
from dpaudit.ledger.rows import LEDGER_SCHEMA, LedgerVerdict, StatementResult, shaken
from dpaudit.store import Kind, StoredRun

NOT_RUN = "not run: "
"""Beginning of the note of a row whose check was not run."""

BROKE_OFF = "The check broke off: "
"""Beginning of the note of a row whose check reached no verdict."""

_UNCHECKED = (
    "{id} has no check. Write one, or one that says why there is no verdict: "
    'ledger.conclude("open", why)'
)


@dataclass
class LedgerFile:
    """A ledger file that a run has read.

    Parameters
    ----------
    checks : dict
        Name of the check of each statement, keyed by the statement's id.
    own : dict
        Rows whose text comes from their checks, by id.
    problem : str
        Reason why the file could not be collected.
    is_part : bool
        Whether the run is only of some checks of the file.
    """

    checks: dict[str, str] = field(default_factory=dict)
    own: dict[str, Statement] = field(default_factory=dict)
    problem: str = ""
    is_part: bool = False


def open_row(row: Statement, note: str) -> StatementResult:
    """Return the row of a statement without a check.

    The row is open, as expected.
    """
    return StatementResult(row, LedgerVerdict.OPEN, note=note, expected=LedgerVerdict.OPEN)


def account(
    files: Mapping[Path, LedgerFile],
    results: Iterable[StatementResult],
    lost: Mapping[str, str] | None = None,
) -> tuple[list[StatementResult], list[str]]:
    """Return a row for each statement of the papers that have a file, in the order of each paper.

    Parameters
    ----------
    files : mapping
        The ledger files of the run, by absolute path.
    results : iterable of StatementResult
        The rows of the statements that have been checked.
    lost : mapping, optional
        Reasons why tests produced no row, by their pytest ids. For example, a check may end its
        worker process and produce no row.

    Returns
    -------
    rows : list of StatementResult
        Rows by paper name. Rows whose text comes from a check come after the rows of the table.
    problems : list of str
        Messages about tables that cannot be read, statements without a check, and errata that
        disagree with the rows.
    """
    made = {(result.paper, result.id): result for result in results if not _is_gone(result, files)}
    left = dict(made)
    collected = files
    known = {Path(result.origin["path"]).absolute() for result in left.values() if result.origin}
    files = {**{path: LedgerFile() for path in known}, **files}
    papers: dict[tuple[str, Path], dict[Path, LedgerFile]] = {}
    for path in sorted(files):
        papers.setdefault((paper_of(path), path.parent), {})[path] = files[path]
    rows: list[StatementResult] = []
    problems: list[str] = []
    for (paper, _), parts in sorted(papers.items(), key=lambda item: item[0]):
        try:
            stated = paper_at(next(iter(parts)))
        except StoreError as error:
            stated = Paper(paper)
            problems.append(str(error))
        table, first = stated.rows, len(rows)
        own = {id: row for part in parts.values() for id, row in part.own.items()}
        partly = bool(set(ledger_files(next(iter(parts)))) - set(parts))
        is_whole = all(
            path in collected and not collected[path].problem and not collected[path].is_part
            for path in ledger_files(next(iter(parts)))
        )
        for id, row in {**table, **own}.items():
            found = left.pop((paper, id), None)
            if row.same_as and not any(id in part.checks for part in parts.values()):
                # the row that an earlier run stored for the statement is replaced
                found = _taken_over(row, made.get((paper, row.same_as)))
            if found is None:
                found = open_row(row, _why_open(id, parts, lost or {}, partly=partly))
                checked = {row.same_as, id} & {id for part in parts.values() for id in part.checks}
                if is_whole and not checked:
                    problems.append(_UNCHECKED.format(id=id))
            rows.append(found)
        problems += erratum_problems(stated, rows[first:])
    return rows + list(left.values()), problems


def _is_gone(result: StatementResult, files: Mapping[Path, LedgerFile]) -> bool:
    """Return whether a ledger file of the run no longer has the check of a stored row.

    The run may be of some checks only, so the methods of a class are not known.
    """
    if not result.origin or "::" in result.origin["item"]:
        return False
    file = files.get(Path(result.origin["path"]).absolute())
    return file is not None and not file.problem and result.id not in file.checks


def erratum_problems(paper: Paper, rows: Iterable[StatementResult]) -> list[str]:
    """Return how a written erratum disagrees with the rows of its paper.

    An entry must explain each mistake that a row found, and must explain nothing else.
    """
    explained, problems = paper.erratum.rows, []
    if not paper.erratum.text:
        return []
    name = f"{paper.name}/{ERRATUM}"
    for id in explained:
        if id not in paper.rows:
            problems.append(f"{name} must name statements of the paper, got {id}")
    for row in rows:
        if row.verdict is LedgerVerdict.OPEN or row.stated.same_as:
            continue
        if row.is_mistake and row.id not in explained:
            problems.append(f"{name} must explain {row.id}, which {_found(row)}, but does not")
        unclear = row.verdict is LedgerVerdict.AMBIGUOUS or row.edges
        if row.id in explained and not (row.is_mistake or unclear):
            problems.append(f"{name} must not explain {row.id}, which {_found(row)}")
    return problems


def _found(row: StatementResult) -> str:
    if row.verdict is LedgerVerdict.REFUTED:
        return "is refuted"
    return "has a misprint" if row.misprints else row.verdict.words


def _taken_over(row: Statement, found: StatementResult | None) -> StatementResult | None:
    """Return the row of the equal statement for this statement, or None."""
    if found is None or found.verdict is LedgerVerdict.OPEN:
        return None
    note = f"Checked as {row.same_as}, which says the same. {found.note}".strip()
    return replace(found, stated=row, note=note, seconds=0.0)


def _why_open(
    id: str, parts: Mapping[Path, LedgerFile], lost: Mapping[str, str], *, partly: bool
) -> str:
    """Return why a statement has no verdict.

    `partly` says that some files were not run.
    """
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


# --- stored rows ------------------------------------------------------------------------------


class _Row(TypedDict):
    """The fields of a statement's row that are read again."""

    stated: Statement
    note: str


class StatementKind(Kind):
    """Rows of a ledger.

    A row that was not checked has no file.
    """

    def rows(self, records: Sequence[StatementResult]) -> list[dict[str, Any]]:
        """Return the rows.

        Each row lists its premises that do not hold.
        """
        shaky = shaken(records)
        return [
            {**row.row(), "shaken": [s.words for s in shaky[row.id]], "stored": bool(row.origin)}
            for row in records
        ]

    def bare(self, row: Mapping[str, Any], *, lost: bool = False) -> StatementResult:
        """Return an open row."""
        known: _Row = _json.decode(_Row, dict(row))
        note = f"{NOT_RUN}the results are lost" if lost else known["note"]
        return open_row(known["stated"], note)

    def copies(self, record: StatementResult) -> list[StatementResult]:
        """Return the rows of equal statements in another version of the paper."""
        stated = paper_at(Path(record.origin["path"])).statements
        found = (_taken_over(row, record) for row in stated if row.same_as == record.id)
        return [copy for copy in found if copy is not None]

    def is_current(self, record: StatementResult) -> bool:
        """Return whether the table still contains the statement in the same words."""
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
    """Return the papers whose statements are in a run, with their titles and conventions."""
    papers: tuple[Paper, ...] = run.facts.get(STATEMENT.name, ())
    return papers
