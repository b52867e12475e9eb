"""A run on disk: its settings, its records, and the records that were kept from earlier runs.

A run writes into one directory::

    OUT/results.json        data on the run, and one summary row for each record.
    OUT/results.jsonl       during the run: records since results.json was written.
    OUT/audits/NAME.json    one complete result each, written as soon as it is known.
    OUT/audits/NAME.npz     the pair of neighbouring datasets of that result.
    OUT/index.html          the report (made by dpaudit.report).

Other kinds of records, such as the statements of a ledger, have their own folders and pages.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dpaudit import _json, _validate
from dpaudit._files import inside, write_atomic
from dpaudit.data import NEW_FRAMES
from dpaudit.errors import StoreError
from dpaudit.results import AuditResult, frame_of_results
from dpaudit.store import journal
from dpaudit.store.files import read_json, set_aside, unsealed, write_sealed
from dpaudit.store.records import Kind, Record, Row, kinds, load_record, read_rows, rows_of

RUN_SCHEMA = 7
RESULTS = "results.json"


@dataclass(frozen=True)
class KeptRecord:
    """A record of an earlier run that the last run, which ran a selection, did not change.

    Parameters
    ----------
    kind : str
        Name of the kind of the record.
    id : str
        Id of the record.
    made : str
        Start of the run that made the record: ISO 8601, UTC.
    command : str
        Command that repeats the run that made the record.
    current : bool
        Whether settings, versions and sources were still the same when the last run ended.
    """

    kind: str
    id: str
    made: str
    command: str
    current: bool


@dataclass(frozen=True)
class StoredRun:
    """One run of many audits, with its settings and its outcome.

    Parameters
    ----------
    profile : str
        Name of the budget profile.
    seed : int
        Root seed.
    failure_prob : float
        Failure probability of each audit.
    command : str
        The command that repeats the run.
    versions : dict
        Versions of the software that the numbers depend on.
    family_wise_error : float
        Upper bound of the probability that any certified number on the page is wrong, including
        mutants.
    started : str
        ISO 8601, UTC.
    seconds : float
        Wall time.
    problems : tuple of str
        Sentences about audits that ended in an error, and about stored files that were set aside.
    skipped : tuple of str
        Audits that were not made, each with the reason.
    kept : tuple of KeptRecord
        Records of earlier runs that this run did not renew.
    history : tuple of str
        Sentences about the history of the project, if the run keeps one.
    facts : dict
        Data that kinds of records store next to the records, by the name of the kind.
    complete : bool
        False while the run goes on, and permanently if it was interrupted.
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
    kept: tuple[KeptRecord, ...] = field(default=(), repr=False)
    facts: dict[str, Any] = field(default_factory=dict, repr=False)
    history: tuple[str, ...] = field(default=(), metadata=_json.LATER)
    complete: bool = False


def family_wise_error(records: Iterable[Record]) -> float:
    """Return the union bound over all results from draws: audits, mutants, slack, statements."""
    return min(math.fsum(record.total_failure_prob for record in records), 1.0)


def check_writable(out: Path) -> None:
    """Make a directory.

    If that is impossible, raise :class:`StoreError` before hours of work.
    """
    try:
        str(out).encode("utf-8")
    except UnicodeEncodeError:
        raise StoreError(
            f"cannot write {str(out)!r}: its name is not valid UTF-8. Choose another directory"
        ) from None
    folders = [out / kind.folder for kind in kinds().values()]
    for folder in folders:
        inside(out, folder.name, RESULTS)  # this refuses a link, which would lead elsewhere
    for folder in (out, *folders):
        if folder.exists() and not folder.is_dir():
            raise StoreError(f"cannot write {folder}: it is a file, not a directory")
    for folder in (out, *(folder for folder in folders if folder.is_dir())):
        probe = folder / ".dpaudit-probe"
        write_atomic(probe, "")
        probe.unlink(missing_ok=True)
    for target in (out / RESULTS, *(out / kind.page for kind in kinds().values())):
        if target.is_dir():
            raise StoreError(f"cannot write {target}: it is a directory")


def save_run(out: Path, run: StoredRun, records: Iterable[Record]) -> Path:
    """Write ``results.json``: data on the run, and a summary row for each record."""
    path = out / RESULTS
    write_sealed(path, {"schema": RUN_SCHEMA, "run": asdict(run), **rows_of(records)})
    journal.clear(out)
    return path


def load_run(out: str | os.PathLike[str]) -> tuple[StoredRun, list[Record], list[str]]:
    """Read a run and its records.

    Records that cannot be trusted are set aside and reported.

    Returns
    -------
    run : StoredRun
        The problems of the returned run include lost files and datasets.
    records : list of Record
        The records of one kind are consecutive, in the order in which they were stored.
    lost : list of str
        Names of the kinds of the lost records, whose files are missing. If such records have a
        complete row, as statements have, they stay among the records.

    Raises
    ------
    StoreError
        If ``results.json`` is missing, cut off, changed by hand, or of another version.
    """
    return _load(_validate.path(out=out), whole=False)


def load_frame(out: str | os.PathLike[str], *, library: str = "pandas") -> Any:
    """Read the audits of a run as a DataFrame with a row for each audit.

    The columns are those of :meth:`dpaudit.AuditResult.to_frame`.

    Parameters
    ----------
    out : path
        Directory of the run.
    library : {"pandas", "polars", "pyarrow"}, optional
        Library of the frame, which must be installed. The default is pandas.

    Raises
    ------
    StoreError
        If a file is missing, damaged, of another version, or was changed by hand.
    """
    _validate.choice(NEW_FRAMES, library=library)
    records = read_whole_run(_validate.path(out=out))[1]
    audits = [record for record in records if isinstance(record, AuditResult)]
    return frame_of_results(audits, library)


def read_whole_run(out: Path) -> tuple[StoredRun, list[Record]]:
    """Read a run if all its files can be trusted.

    No file on disk is changed. Lost datasets are problems of the run, as in :func:`load_run`.

    Raises
    ------
    StoreError
        If a file is missing, damaged, of another version, or was changed by hand. Also if a file
        does not agree with ``results.json`` because it belongs to another run.
    """
    run, records, _ = _load(out, whole=True)
    return run, records


def _load(out: Path, *, whole: bool) -> tuple[StoredRun, list[Record], list[str]]:
    run, rows = _read(out)
    problems: list[str] = []
    records: list[Record] = []
    lost = []
    for kind, row, record in rows:
        if row["stored"]:
            path = None
            try:
                path = inside(out, kind.folder, kind.file_name(row["id"]))
                record, more = load_record(path)
                if not isinstance(record, kind.type):
                    raise StoreError(f"{path} holds another kind of record")
                if whole:
                    _check_agreement(path, record, row)
                problems += more
            except StoreError as error:
                if whole:
                    raise
                lost.append(kind.name)
                record = kind.bare(row, lost=True)
                # a file outside the directory is not set aside
                problems.append(str(error) if path is None else set_aside(path, error))
        records += [] if record is None else [record]
    # A run that was killed could not add up its failure probabilities.
    killed = not run.complete and inside(out, journal.JOURNAL).exists()
    chance = family_wise_error(records) if killed else run.family_wise_error
    run = replace(run, problems=(*run.problems, *problems), family_wise_error=chance)
    return run, records, lost


_COMPARED = ("id", "verdict", "certified_epsilon", "certified_delta", "examples", "tightest")
"""Fields in which the summary of a record must agree with its file."""


def _check_agreement(path: Path, record: Record, row: Mapping[str, Any]) -> None:
    """Refuse a complete and sealed file that its run did not write."""
    own = _json.decode(Any, record.row())  # in the form in which the row was read
    if any(key in own and row.get(key) != own[key] for key in _COMPARED):
        raise StoreError(
            f"{path} does not match {RESULTS} next to it, because another run wrote it"
        )


def _read(out: Path) -> tuple[StoredRun, list[tuple[Kind, Row, Record | None]]]:
    """Read ``results.json`` and the journal.

    Return the run, and each row with its bare record.
    """
    path = inside(out, RESULTS)
    data = unsealed(path, read_json(path), schema=RUN_SCHEMA)
    try:
        run: StoredRun = _json.decode(StoredRun, data.get("run"))
        rows = read_rows(data)
        if not run.complete and (more := journal.entries(out, run.started)):
            run, rows = _together(run, rows, more)
        facts = {
            name: _json.decode(kind.facts, run.facts[name])
            for name, kind in kinds().items()
            if name in run.facts
        }
        found = [
            (kind, row, kind.bare(row)) for name, kind in kinds().items() for row in rows[name]
        ]
    except ValueError as error:
        raise StoreError(f"{path} does not hold a run: {error}") from error
    return replace(run, facts=facts), found


def _together(
    run: StoredRun, rows: Mapping[str, Sequence[Row]], more: Sequence[journal.Entry]
) -> tuple[StoredRun, dict[str, tuple[Row, ...]]]:
    """Add the entries of the journal to a run that was interrupted."""
    found = {name: {row["id"]: row for row in own} for name, own in rows.items()}
    problems, skipped = list(run.problems), list(run.skipped)
    renewed: set[tuple[str, ...]] = set()
    for entry in more:
        for name, own in found.items():
            for id in own:
                if (name, id) in entry["dropped"]:
                    own[id] = {**own[id], "stored": False}
        for name, new in read_rows(entry["rows"]).items():
            found[name] |= {row["id"]: row for row in new}
            renewed |= {(name, row["id"]) for row in new}
        renewed |= {*entry["dropped"]}
        problems = [*journal.drop_rerun(problems, entry["ran"]), *entry["problems"]]
        skipped = [*journal.drop_rerun(skipped, entry["ran"]), *entry["skipped"]]
    run = replace(
        run,
        seconds=more[-1]["seconds"],
        problems=tuple(dict.fromkeys(problems)),
        skipped=tuple(dict.fromkeys(skipped)),
        kept=tuple(kept for kept in run.kept if (kept.kind, kept.id) not in renewed),
    )
    return run, {name: tuple(own.values()) for name, own in found.items()}
