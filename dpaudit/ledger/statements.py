"""The rows that a ledger must account for, and the mark that ties a check to its row."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dpaudit import _validate
from dpaudit.errors import ArgumentError, StoreError
from dpaudit.ledger.rows import LedgerVerdict

TABLE = "statements.md"
"""File beside the ledger files of a paper that holds its rows."""

_MARK = "__dpaudit_statement__"
_ID = re.compile(r"[A-Za-z][\w-]*(\.[\w-]+)+")
_Check = TypeVar("_Check", bound=Callable[..., Any])


@dataclass(frozen=True)
class Statement:
    """One numbered statement of a paper.

    Parameters
    ----------
    id : str
        Short name of the paper, a dot, and a name within it: "gm.lemma11".
    paper : str
        Name of the paper: of the folder of its ledger files.
    kind : str
        Such as lemma, definition, runtime claim.
    text : str
        The statement.
    hidden : str
        The constants that the paper hides.
    """

    id: str
    paper: str
    kind: str = "statement"
    text: str = ""
    hidden: str = ""


@dataclass(frozen=True)
class Mark:
    """What :func:`statement` leaves on a check: its row, what it declares, whether it replays."""

    row: Statement
    expected: LedgerVerdict
    replays: bool = True


def statement(
    id: str,
    text: str = "",
    *,
    kind: str = "",
    expected: LedgerVerdict | str = LedgerVerdict.HOLDS,
    replays: bool = True,
) -> Callable[[_Check], _Check]:
    """Mark a function as the check of one statement: ``@statement("gm.lemma11")``.

    pytest collects it from ``ledger_*.py`` files, whatever its name. It takes the fixture
    ``ledger``, a :class:`dpaudit.ledger.Ledger`, and attacks the statement with it.

    Parameters
    ----------
    id : str
        Short name of the paper, a dot, and a name within it.
    text, kind : str, optional
        For a statement that has no row in ``statements.md``.
    expected : LedgerVerdict
        What the check is known to find; a run fails when it finds otherwise.
    replays : bool
        False for a check that measures seconds: a replay must reach its verdict, not its numbers.

    Raises
    ------
    ArgumentError
        When the id has no dot or holds other characters than letters, digits, - and _, or when
        `expected` is no verdict.
    """
    if not isinstance(id, str):
        raise TypeError(f'id must be a text such as "gm.lemma11", got {id!r}')
    if not _ID.fullmatch(id):
        raise ArgumentError(f'id must be of the form "paper.name", got {id!r}')
    _validate.choice(tuple(LedgerVerdict), expected=expected)

    def mark(check: _Check) -> _Check:
        setattr(check, _MARK, Mark(Statement(id, "", kind, text), LedgerVerdict(expected), replays))
        check.__test__ = True  # type: ignore[attr-defined]  # what pytest collects by any name
        return check

    return mark


def marked(function: Any) -> Mark | None:
    """Return what a function checks; None when it checks no statement."""
    found = getattr(function, _MARK, None)
    return found if isinstance(found, Mark) else None


def paper_of(path: Path) -> str:
    """Name of the paper that a ledger file belongs to: its folder.

    Examples
    --------
    >>> paper_of(Path("audits/geometric_median/ledger_privacy.py"))
    'geometric_median'
    """
    return path.absolute().parent.name


def ledger_files(path: Path) -> list[Path]:
    """Return all ledger files of the paper of a ledger file, itself included."""
    return sorted(path.parent.glob("ledger_*.py"))


def rows_of(path: Path) -> dict[str, Statement]:
    """Return the rows of the paper of a ledger file, by id; empty where there are none."""
    table = path.parent / TABLE
    return read_statements(table, paper_of(path)) if table.is_file() else {}


def read_statements(path: Path, paper: str) -> dict[str, Statement]:
    """Read the table of a Markdown file with the columns id, kind, statement and, maybe, hidden.

    Raises
    ------
    StoreError
        Naming the file and the line that is no row, or whose id is none or occurs twice.
    """
    try:
        stat = path.stat()
        return dict(_parse(path, paper, stat.st_mtime_ns, stat.st_size))
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"cannot read {path}: {error}") from error


@functools.lru_cache(maxsize=64)
def _parse(path: Path, paper: str, mtime: int, size: int) -> dict[str, Statement]:
    """Parse a table, once for each of its versions: every check of a paper asks for its row."""
    lines = path.read_text(encoding="utf-8").splitlines()
    rows: dict[str, Statement] = {}
    columns: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.startswith("|"):
            columns = []
            continue
        cells = [c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", line.strip()[1:-1])]
        if not columns:
            columns = cells
            continue
        if all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            continue
        if "id" not in columns or len(cells) != len(columns):
            raise StoreError(f"{path}:{number} is no row of the columns {', '.join(columns)}")
        cell = dict(zip(columns, cells, strict=True))
        if not _ID.fullmatch(cell["id"]):
            raise StoreError(f"{path}:{number} needs an id of the form paper.name: {cell['id']!r}")
        if cell["id"] in rows:
            raise StoreError(f"{path}:{number} repeats the id {cell['id']}")
        hidden = cell.get("hidden", "")
        rows[cell["id"]] = Statement(
            cell["id"],
            paper,
            cell.get("kind", ""),
            cell.get("statement", ""),
            "" if hidden in ("-", "none") else hidden,
        )
    if not rows:
        raise StoreError(f"{path} holds no table of statements")
    return rows
