"""Results on disk: versioned, atomic, and never silently trusted.

A run writes into one directory::

    OUT/results.json        the run, and one summary row for each audit and each statement
    OUT/audits/NAME.json    one whole result each, written as soon as it is known
    OUT/statements/ID.json  the same, of the statements that were checked
    OUT/index.html          the report (made by dpaudit.report)
    OUT/ledger.html         the page of the statements, where there are any

Files are written beside their target and moved into place, so that a reader sees the old file or
the new one and never half of either.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dpaudit.errors import StoreError
from dpaudit.ledger import NOT_RUN, LedgerVerdict, Statement, StatementResult, open_row
from dpaudit.results import SCHEMA_VERSION, AuditResult

RESULTS = "results.json"
REPORT = "index.html"
LEDGER = "ledger.html"
AUDITS = "audits"
STATEMENTS = "statements"


@dataclass(frozen=True)
class Run:
    """One run of many audits: what was asked for, and what became of it.

    Parameters
    ----------
    profile : str
        Name of the budget profile.
    seed : int
        Root seed.
    failure_prob : float
        Of each audit.
    command : str
        The command that repeats the run.
    versions : dict
        Of what the numbers depend on.
    family_wise_error : float
        Upper bound of the probability that any certified number of the run is wrong, mutants
        included.
    started : str
        ISO 8601, UTC.
    seconds : float
        Wall time.
    problems : tuple of str
        Audits that ended in an error, and stored files that were set aside, a sentence each.
    skipped : tuple of str
        Audits that were not made, each with the reason.
    audits : tuple of str
        File names of the results, in the order in which they ran.
    statements : tuple of str
        File names of the statements that were checked, in the order of their papers.
    complete : bool
        False while the run goes on, and for ever when it was interrupted.
    """

    profile: str
    seed: int
    failure_prob: float
    command: str
    versions: Mapping[str, str]
    family_wise_error: float
    started: str
    seconds: float
    problems: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    audits: tuple[str, ...] = field(default=(), repr=False)
    statements: tuple[str, ...] = field(default=(), repr=False)
    complete: bool = False


def family_wise_error(
    results: Sequence[AuditResult], statements: Sequence[StatementResult] = ()
) -> float:
    """Union bound over all that rests on draws: audits, mutants, slack, and rows of the ledger."""
    spent = [result.total_failure_prob for result in results]
    spent += [row.failure_prob for row in statements]
    return min(math.fsum(spent), 1.0)


def file_name(audit_id: str) -> str:
    """File name of an audit's result; different ids get different names.

    Examples
    --------
    >>> file_name("audit_basics::audit_laplace")
    'audit_basics.audit_laplace.json'
    """
    words = audit_id.replace("::", ".")
    clean = re.sub(r"[^A-Za-z0-9._-]+", "-", words).strip("-.")[:120]
    if clean == words and "." not in audit_id:
        return f"{clean}.json"
    return f"{clean}-{hashlib.sha256(audit_id.encode()).hexdigest()[:8]}.json"


def statement_file(statement_id: str) -> str:
    """File name of a statement's row.

    Examples
    --------
    >>> statement_file("gm.lemma11")
    'gm.lemma11.json'
    """
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]{,118}", statement_id):
        return f"{statement_id}.json"
    return file_name(statement_id)


def write_atomic(path: Path, text: str) -> None:
    """Write a whole file or nothing; raise :class:`StoreError` with the reason."""
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def check_writable(out: Path) -> None:
    """Raise :class:`StoreError` now, before hours of work, if `out` cannot be written."""
    for folder in (out, out / AUDITS, out / STATEMENTS):
        if folder.exists() and not folder.is_dir():
            raise StoreError(f"cannot write {folder}: it is a file, not a directory")
    folders = [out, out / AUDITS] + [out / STATEMENTS] * (out / STATEMENTS).exists()
    for probe in (folder / ".dpaudit-probe" for folder in folders):
        write_atomic(probe, "")
        probe.unlink(missing_ok=True)
    for target in (out / RESULTS, out / REPORT, out / LEDGER):
        if target.is_dir():
            raise StoreError(f"cannot write {target}: it is a directory")


def save_result(out: Path, result: AuditResult) -> Path:
    """Write one whole result; returns its path."""
    path = out / AUDITS / file_name(result.id)
    write_atomic(path, json.dumps(result.to_json(), indent=1, allow_nan=False) + "\n")
    return path


def load_result(path: Path) -> AuditResult:
    """Read one whole result; raise :class:`StoreError` naming the file and what is wrong."""
    data = _read_json(path)
    try:
        return AuditResult.from_json(data)
    except ValueError as error:
        raise StoreError(f"{path} is not a whole audit result: {error}") from error


def save_statement(out: Path, result: StatementResult) -> Path:
    """Write the row of a statement that was checked; returns its path."""
    path = out / STATEMENTS / statement_file(result.id)
    write_atomic(path, json.dumps(result.to_json(), indent=1, allow_nan=False) + "\n")
    return path


def load_statement(path: Path) -> StatementResult:
    """Read the row of a statement; raise :class:`StoreError` with the file and what is wrong."""
    data = _read_json(path)
    try:
        return StatementResult.from_json(data)
    except ValueError as error:
        raise StoreError(f"{path} is not a whole row of a ledger: {error}") from error


def is_statement(path: Path) -> bool:
    """Whether a stored result is the row of a statement, and not of an audit."""
    return "attempts" in _read_json(path)


def save_run(
    out: Path,
    run: Run,
    results: Sequence[AuditResult],
    statements: Sequence[StatementResult] = (),
) -> Path:
    """Write ``results.json``: the run, and a summary row for each audit and each statement.

    Statements without an origin were not checked; they have no file but this one.
    """
    path = out / RESULTS
    checked = [statement_file(row.id) for row in statements if row.origin]
    audits = [file_name(result.id) for result in results]
    document = {
        "schema": SCHEMA_VERSION,
        "run": {**asdict(run), "audits": audits, "statements": checked},
        "audits": [result.row() for result in results],
        "statements": [row.row() for row in statements],
    }
    write_atomic(path, json.dumps(document, indent=1, allow_nan=False) + "\n")
    return path


def load_run(out: Path) -> tuple[Run, list[AuditResult], list[StatementResult]]:
    """Read a run and its results; a result that cannot be read is set aside and reported.

    The row of a statement stays where its file was lost: it is open then.

    Raises
    ------
    StoreError
        When ``results.json`` is missing, cut off or of another version.
    """
    path = out / RESULTS
    data = _read_json(path)
    if data.get("schema") != SCHEMA_VERSION:
        raise StoreError(
            f"{path} has schema {data.get('schema')!r}, this version of dpaudit reads "
            f"{SCHEMA_VERSION}: run `dpaudit run` again"
        )
    try:
        record = dict(data["run"])
        for name in ("problems", "skipped", "audits", "statements"):
            record[name] = tuple(record[name])
        run = Run(**record)
        rows = [_bare_row(row) for row in data["statements"]]
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path} does not hold a run: {error}") from error
    results, lost = [], []
    for name in run.audits:
        try:
            results.append(load_result(out / AUDITS / Path(name).name))
        except StoreError as error:
            lost.append(_set_aside(out / AUDITS / Path(name).name, error))
    for index, row in enumerate(rows):
        file = out / STATEMENTS / statement_file(row.id)
        if file.name in run.statements:
            try:
                rows[index] = load_statement(file)
            except StoreError as error:
                lost.append(_set_aside(file, error))
                rows[index] = replace(row, note=f"{NOT_RUN}what was found is lost")
    return Run(**{**record, "problems": (*run.problems, *lost)}), results, rows


def _bare_row(row: Mapping[str, Any]) -> StatementResult:
    """Rebuild an open row from its summary."""
    known = {name: row[name] for name in ("id", "paper", "kind", "statement", "note")}
    if not all(isinstance(value, str) for value in known.values()):
        raise TypeError(f"the row of {row['id']!r} holds something else than texts")
    note = known.pop("note")
    return open_row(Statement(known["id"], known["paper"], known["kind"], known["statement"]), note)


def load_finished(
    out: Path, audit_id: str, fingerprint: str
) -> tuple[list[AuditResult], list[str]]:
    """Read what an interrupted run left of one audit function.

    Returns the whole results of all its checks whose fingerprint matches, in order, and sentences
    about files that were set aside.
    """
    results: list[AuditResult] = []
    lost: list[str] = []
    while True:
        number = len(results) + 1
        path = out / AUDITS / file_name(audit_id if number == 1 else f"{audit_id}#{number}")
        if not path.exists():
            whole = all(r.origin.get("checks") == len(results) for r in results)
            return (results if whole else []), lost
        try:
            result = load_result(path)
        except StoreError as error:
            return [], [*lost, _set_aside(path, error)]
        if result.origin.get("fingerprint") != fingerprint:
            return [], lost
        results.append(result)


def load_finished_statement(
    out: Path, statement_id: str, fingerprint: str
) -> tuple[StatementResult | None, list[str]]:
    """Read what an interrupted run left of one statement; as :func:`load_finished`.

    A row that is open was never finished.
    """
    path = out / STATEMENTS / statement_file(statement_id)
    if not path.exists():
        return None, []
    try:
        result = load_statement(path)
    except StoreError as error:
        return None, [_set_aside(path, error)]
    same = result.origin.get("fingerprint") == fingerprint
    return (result if same and result.verdict is not LedgerVerdict.OPEN else None), []


def _set_aside(path: Path, error: StoreError) -> str:
    aside = path.with_suffix(".corrupt")
    try:
        os.replace(path, aside)
    except OSError:
        return str(error)
    return f"{error}; set aside as {aside.name}"


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is no number")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:  # of the decoder, of the encoding, or ours
        raise StoreError(f"{path} is damaged or cut off: {error}") from error
    if not isinstance(data, dict):
        raise StoreError(f"{path} must hold a JSON object, got {type(data).__name__}")
    return data
