"""A run on disk: what was asked for, what was found, and what earlier runs had found.

A run writes into one directory::

    OUT/results.json        the run, and one summary row for each audit and each statement
    OUT/results.jsonl       while it runs: what was found since results.json was written
    OUT/audits/NAME.json    one whole result each, written as soon as it is known
    OUT/audits/NAME.npz     the pair of neighbouring datasets that it speaks of
    OUT/statements/ID.json  the same, of the statements that were checked
    OUT/index.html          the report (made by dpaudit.report)
    OUT/ledger.html         the page of the statements, where there are any
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict

from dpaudit import _json, _validate
from dpaudit._files import inside, write_atomic
from dpaudit.errors import StoreError
from dpaudit.ledger import NOT_RUN, Paper, StatementResult, open_row, summaries
from dpaudit.results import AuditResult
from dpaudit.store import journal
from dpaudit.store.files import read_sealed, set_aside, write_sealed
from dpaudit.store.journal import AuditRow, StatementRow
from dpaudit.store.records import KINDS, Record, kind_of, load_record

RUN_SCHEMA = 6
RESULTS = "results.json"
REPORT = "index.html"
LEDGER = "ledger.html"


@dataclass(frozen=True)
class Kept:
    """A record that an earlier run made, and that the last one, of a selection, left as it was.

    Parameters
    ----------
    kind : str
        "audit" or "statement".
    id : str
        Of the record.
    made : str
        When the run that made it began: ISO 8601, UTC.
    command : str
        What repeats that run.
    current : bool
        Whether settings, versions and sources were still the same when the last run ended.
    """

    kind: str
    id: str
    made: str
    command: str
    current: bool


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
        Upper bound of the probability that any certified number on the page is wrong, mutants
        included.
    started : str
        ISO 8601, UTC.
    seconds : float
        Wall time.
    problems : tuple of str
        Audits that ended in an error, and stored files that were set aside, a sentence each.
    skipped : tuple of str
        Audits that were not made, each with the reason.
    kept : tuple of Kept
        What earlier runs found, and this one did not look at.
    audits : tuple of str
        File names of the results, in the order of the page.
    statements : tuple of str
        File names of the statements that were checked, in the order of their papers.
    papers : tuple of Paper
        Whose statements they are: titles and conventions.
    complete : bool
        False while the run goes on, and for ever when it was interrupted.
    """

    profile: str
    seed: int
    failure_prob: _json.Probability
    command: str
    versions: dict[str, str]
    family_wise_error: _json.Probability
    started: str
    seconds: _json.Seconds
    problems: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    kept: tuple[Kept, ...] = field(default=(), repr=False)
    audits: tuple[str, ...] = field(default=(), repr=False)
    statements: tuple[str, ...] = field(default=(), repr=False)
    papers: tuple[Paper, ...] = field(default=(), repr=False)
    complete: bool = False


def family_wise_error(records: Iterable[Record]) -> float:
    """Union bound over all that rests on draws: audits, mutants, slack, and rows of the ledger."""
    return min(math.fsum(record.total_failure_prob for record in records), 1.0)


def check_writable(out: Path) -> None:
    """Make a directory; raise :class:`StoreError` now, before hours of work, if it cannot be."""
    try:
        str(out).encode("utf-8")
    except UnicodeEncodeError:
        raise StoreError(
            f"cannot write {str(out)!r}: its name is no text in UTF-8; choose another directory"
        ) from None
    folders = [out / kind.folder for kind in KINDS.values()]
    for folder in folders:
        inside(out, folder.name, RESULTS)  # a link would lead elsewhere
    for folder in (out, *folders):
        if folder.exists() and not folder.is_dir():
            raise StoreError(f"cannot write {folder}: it is a file, not a directory")
    for folder in (out, *(folder for folder in folders if folder.is_dir())):
        probe = folder / ".dpaudit-probe"
        write_atomic(probe, "")
        probe.unlink(missing_ok=True)
    for target in (out / RESULTS, out / REPORT, out / LEDGER):
        if target.is_dir():
            raise StoreError(f"cannot write {target}: it is a directory")


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
    checked = [row for row in statements if row.origin]
    names = {
        "audits": [KINDS["audit"].file_name(result.id) for result in results],
        "statements": [KINDS["statement"].file_name(row.id) for row in checked],
    }
    document = {
        "schema": RUN_SCHEMA,
        "run": {**asdict(run), **names},
        "audits": [result.row() for result in results],
        "statements": summaries(statements),
    }
    write_sealed(path, document)
    journal.clear(out)
    return path


def load_run(out: str | os.PathLike[str]) -> tuple[Run, list[AuditResult], list[StatementResult]]:
    """Read a run and its results; a result that cannot be trusted is set aside and reported.

    The row of a statement stays where its file was lost: it is open then.

    Raises
    ------
    StoreError
        When ``results.json`` is missing, cut off, changed by hand or of another version.
    """
    out = _validate.path(out=out)
    run, rows, _ = _read(out)
    lost: list[str] = []
    results = []
    for name in run.audits:
        found = _load(out, name, AuditResult, lost)
        results += [found] * (found is not None)
    for index, row in enumerate(rows):
        name = KINDS["statement"].file_name(row.id)
        if name in run.statements:
            checked = _load(out, name, StatementResult, lost)
            rows[index] = checked or replace(row, note=f"{NOT_RUN}what was found is lost")
    return _with_lost(out, run, lost, [*results, *rows]), results, rows


def _with_lost(out: Path, run: Run, lost: list[str], records: list[Record]) -> Run:
    """Add what is lost to a run; sum up the errors of one that was killed before it could."""
    killed = not run.complete and inside(out, journal.JOURNAL).exists()
    error = family_wise_error(records) if killed else run.family_wise_error
    return replace(run, problems=(*run.problems, *lost), family_wise_error=error)


def read_whole_run(out: Path) -> tuple[Run, list[AuditResult], list[StatementResult]]:
    """Read a run all of which can be trusted; change nothing on disk.

    Datasets that are lost are problems of the run, as of :func:`load_run`.

    Raises
    ------
    StoreError
        When a file is missing, damaged, of another version, was changed by hand, or does not
        agree with ``results.json``: a file of another run lies in its place.
    """
    run, rows, summary = _read(out)
    said: dict[str, Any] = {row["id"]: row for row in summary["audits"]}
    lost: list[str] = []
    results: list[AuditResult] = []
    for name in run.audits:
        path = inside(out, KINDS["audit"].folder, name)
        found = _trusted(path, AuditResult, lost)
        _check_agreement(path, found, said.get(found.id))
        results.append(found)
    for index, row in enumerate(rows):
        path = inside(out, KINDS["statement"].folder, KINDS["statement"].file_name(row.id))
        if path.name in run.statements:
            rows[index] = _trusted(path, StatementResult, lost)
            _check_agreement(path, rows[index], dict(summary["statements"][index]))
    return _with_lost(out, run, lost, [*results, *rows]), results, rows


_SAID = ("id", "verdict", "certified_epsilon", "certified_delta", "examples", "tightest")
"""What the summary of a record and its file must agree in."""


def _check_agreement(path: Path, record: Record, said: Mapping[str, Any] | None) -> None:
    """Refuse a whole and sealed file that is not the one that its run wrote."""
    own = _json.decode(Any, record.row())  # as the summary was read
    name = kind_of(record).file_name(record.id)
    unlike = said is None or any(key in own and said.get(key) != own[key] for key in _SAID)
    if unlike or path.name != name:
        raise StoreError(
            f"{path} does not agree with {RESULTS} beside it: it was written by another run"
        )


class _Document(TypedDict):
    """The content of ``results.json``."""

    run: Run
    audits: tuple[AuditRow, ...]
    statements: tuple[StatementRow, ...]


def _read(out: Path) -> tuple[Run, list[StatementResult], _Document]:
    """Read ``results.json`` and the journal: the run, the bare rows of statements, and the rows."""
    path = inside(out, RESULTS)
    data = read_sealed(path, schema=RUN_SCHEMA)
    try:
        found: _Document = _json.decode(_Document, data)
    except ValueError as error:
        raise StoreError(f"{path} does not hold a run: {error}") from error
    if not found["run"].complete and (more := journal.entries(out, found["run"].started)):
        found = _together(found, more)
    rows = [open_row(row["stated"], row["note"]) for row in found["statements"]]
    return found["run"], rows, found


def _together(found: _Document, more: Sequence[journal.Entry]) -> _Document:
    """Add to a run that was interrupted what its journal holds."""
    run = found["run"]
    audits = {row["id"]: row for row in found["audits"]}
    rows = {(row["stated"].paper, row["stated"].id): row for row in found["statements"]}
    checked = dict.fromkeys(run.statements)
    problems, skipped = list(run.problems), list(run.skipped)
    renewed: set[tuple[str, ...]] = set()
    for entry in more:
        for kind, id in (dropped for dropped in entry["dropped"] if len(dropped) == _KEY):
            audits.pop(id if kind == "audit" else "", None)
            checked.pop(KINDS["statement"].file_name(id) if kind == "statement" else "", None)
        audits |= {row["id"]: row for row in entry["audits"]}
        rows |= {(row["stated"].paper, row["stated"].id): row for row in entry["statements"]}
        checked |= dict.fromkeys(
            KINDS["statement"].file_name(row["stated"].id) for row in entry["statements"]
        )
        renewed |= {*entry["dropped"]}
        renewed |= {("audit", row["id"]) for row in entry["audits"]}
        renewed |= {("statement", row["stated"].id) for row in entry["statements"]}
        problems = [*journal.without(problems, entry["ran"]), *entry["problems"]]
        skipped = [*journal.without(skipped, entry["ran"]), *entry["skipped"]]
    run = replace(
        run,
        seconds=more[-1]["seconds"],
        problems=tuple(dict.fromkeys(problems)),
        skipped=tuple(dict.fromkeys(skipped)),
        kept=tuple(kept for kept in run.kept if (kept.kind, kept.id) not in renewed),
        audits=tuple(KINDS["audit"].file_name(id) for id in sorted(audits)),
        statements=tuple(checked),
    )
    return {"run": run, "audits": tuple(audits.values()), "statements": tuple(rows.values())}


_KEY = 2  # kind and id


def _load(out: Path, name: str, type: type[Any], lost: list[str]) -> Any:
    """Return a record of a run, or None, with a sentence in `lost`."""
    folder = next(kind.folder for kind in KINDS.values() if kind.type is type)
    try:
        path = inside(out, folder, name)
    except StoreError as error:  # nothing that lies elsewhere is set aside
        lost.append(str(error))
        return None
    try:
        return _trusted(path, type, lost)
    except StoreError as error:
        lost.append(set_aside(path, error))
        return None


def _trusted(path: Path, type: type[Any], lost: list[str]) -> Any:
    """Return a record of a run, with a sentence in `lost` for datasets that are lost."""
    record, problems = load_record(path)
    if not isinstance(record, type):
        raise StoreError(f"{path} holds another kind of record")
    lost += problems
    return record
