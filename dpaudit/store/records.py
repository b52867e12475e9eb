"""What a run finds, one shape for all of it: a record, its file, and its datasets beside it."""

from __future__ import annotations

import functools
import hashlib
import io
import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol, Self, TypedDict

import numpy as np
from numpy.typing import NDArray

from dpaudit import _json, _validate
from dpaudit._files import (
    LARGEST_ARRAYS,
    file_stem,
    inside,
    read_arrays,
    read_regular,
    write_atomic,
)
from dpaudit.claims import Relation
from dpaudit.data import ArrayForm, Packed, unpacked
from dpaudit.errors import StoreError
from dpaudit.neighbors import NeighborPair
from dpaudit.results import SCHEMA_VERSION, AuditResult, Status
from dpaudit.store.files import read_json, set_aside, unsealed, write_sealed

_KIND, _PAIR = "record", "pair_sha256"


class Record(Protocol):
    """One thing that a run found out, such as the result of an audit."""

    @property
    def id(self) -> str:
        """Its name, of which a run has one."""

    @property
    def seed(self) -> int:
        """Root seed: with the id it fixes every random number."""

    @property
    def seconds(self) -> float:
        """Time spent."""

    @property
    def expected(self) -> Any:
        """What was declared about it."""

    @property
    def status(self) -> Status:
        """What became of it, beside what was declared."""

    @property
    def mismatch(self) -> str | None:
        """Why it fails a run, in one sentence; None when it does not."""

    @property
    def total_failure_prob(self) -> float:
        """Probability, at most, that anything certified in it is wrong."""

    @property
    def origin(self) -> dict[str, Any]:
        """How it was made, which a replay needs; empty where nobody made it."""

    def with_origin(self, origin: Mapping[str, Any], expected: Any) -> Self:
        """Return the same with what only a run knows."""

    def row(self) -> dict[str, Any]:
        """Return the flat row of ``results.json``."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data, schema included."""


class Row(TypedDict):
    """What is read again of a record's row in ``results.json``, whatever its kind."""

    id: str
    stored: bool


@dataclass(frozen=True)
class Kind:
    """A kind of record, and where its files are.

    Packages register instances under the entry-point group ``dpaudit.kinds``, and in
    ``dpaudit.sections`` what reports say of them, by the same name.

    Parameters
    ----------
    name : str
        In files and reports.
    folder : str
        Inside the directory of a run.
    type : type
        With ``from_json``, which raises ``ValueError`` for what is no such record.
    schema : int
        Version of its JSON.
    dotted : bool
        Whether plain ids are of the form "paper.name"; otherwise they are "module::name".
    files : str
        Pattern of the files whose functions make such records.
    page : str
        File of its page inside the directory of a run.
    facts : type
        Of what a run stores beside the records, in :attr:`StoredRun.facts`.
    """

    name: str
    folder: str
    type: type[Any]
    schema: int
    dotted: bool
    files: str
    page: str
    facts: Any = Any

    def file_name(self, id: str) -> str:
        """File name of a record; different ids get different names.

        Examples
        --------
        >>> kinds()["audit"].file_name("audit_basics::audit_laplace")
        'audit_basics.audit_laplace.json'
        >>> kinds()["statement"].file_name("gm.lemma11")
        'gm.lemma11.json'
        """
        plain = ("." in id) == self.dotted
        return f"{file_stem(id.replace('::', '.'), id, plain=plain)}.json"

    def rows(self, records: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the rows of all records of this kind in ``results.json``."""
        return [{**record.row(), "stored": True} for record in records]

    def bare(self, row: Mapping[str, Any], *, lost: bool = False) -> Any:
        """Return the record of a row that has no file, or whose file is lost; None for nothing.

        Raises
        ------
        ValueError
            When the row does not hold what it takes.
        """

    def copies(self, record: Any) -> list[Any]:
        """Return records that say the same of something else, and are stored with this one."""
        return []

    def is_current(self, record: Any) -> bool:
        """Whether what a stored record was made of, beside code and settings, is unchanged."""
        return True


AUDIT = Kind("audit", "audits", AuditResult, SCHEMA_VERSION, False, "audit_*.py", "index.html")


@functools.cache
def extensions(group: str) -> dict[str, Any]:
    """Return what installed packages register under ``dpaudit.GROUP``, by name."""
    found = sorted(metadata.entry_points(group=f"dpaudit.{group}"), key=lambda entry: entry.name)
    return {entry.name: entry.load() for entry in found}


def kinds() -> dict[str, Kind]:
    """Return every kind of record, by name."""
    return extensions("kinds")


def kind_of_record(record: Record) -> Kind:
    """Return the kind of a record."""
    return next(kind for kind in kinds().values() if isinstance(record, kind.type))


def by_kind(records: Iterable[Record]) -> dict[str, list[Any]]:
    """Return the records of each kind, by its name."""
    found: dict[str, list[Any]] = {name: [] for name in kinds()}
    for record in records:
        found[kind_of_record(record).name].append(record)
    return found


def rows_of(records: Iterable[Record]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of records, as they are stored: by the folder of each kind."""
    return {kinds()[n].folder: kinds()[n].rows(own) for n, own in by_kind(records).items()}


def read_rows(document: Mapping[str, Any]) -> dict[str, tuple[Row, ...]]:
    """Return the rows that :func:`rows_of` put into a document, by the name of each kind.

    Raises
    ------
    ValueError
        When anything else is in their place.
    """
    return {
        name: _json.decode(tuple[Row, ...], document.get(kind.folder))
        for name, kind in kinds().items()
    }


def place_of(record: Record) -> str:
    """Where the file of a record lies inside the directory of its run.

    Examples
    --------
    ``audits/audit_basics.audit_laplace.json``
    """
    kind = kind_of_record(record)
    return f"{kind.folder}/{kind.file_name(record.id)}"


# --- transport: what one process hands to another ---


def pack(record: Record) -> tuple[dict[str, Any], bytes | None]:
    """Return a record as plain data, and its datasets as a file in memory.

    Raises
    ------
    StoreError
        When it could not be read again.
    """
    document = {_KIND: kind_of_record(record).name, **record.to_json()}
    try:
        unpack(_json.loads(json.dumps(document, allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise StoreError(f"{record.id}: what was found cannot be stored: {error}") from error
    pair = getattr(record, "pair", None)
    try:
        return document, None if pair is None else pair_bytes(pair)
    except StoreError:  # the pair is in the words of the result, and the audit file makes it
        return document, None


def unpack(document: Mapping[str, Any], pair: bytes | None = None) -> Record:
    """Return what :func:`pack` packed; raise ``ValueError`` for anything else."""
    data = dict(document)
    name = data.pop(_KIND, None)
    if not isinstance(name, str) or name not in kinds():
        raise ValueError(f"it is a record of an unknown kind, {name!r}")
    return _with_pair(kinds()[name].type.from_json(data), pair)


def _with_pair(record: Any, pair: bytes | None) -> Record:
    """Return a record that was read, with its datasets."""
    found: Record = record if pair is None else replace(record, pair=_pair_from(pair))
    return found


def pair_bytes(pair: NeighborPair) -> bytes:
    """Return a pair as the content of a ``.npz`` file."""
    facts: dict[str, Any] = {
        "user": pair.user if isinstance(pair.user, str | int | None) else None,  # found again
        "relation": pair.relation.to_json(),
        "recipe": pair.recipe,
    }
    arrays: dict[str, NDArray[Any]] = {}
    if isinstance(pair.form, ArrayForm):
        arrays = {"left": pair.left, "right": pair.right}
    else:
        facts["by"] = pair.by
        for side in ("left", "right"):
            packed = pair.form.packed(getattr(pair, side))
            if packed is None:
                raise StoreError(
                    f"a dataset of this kind cannot be kept: {pair.form.words(pair.left)}"
                )
            facts[side] = packed.facts
            arrays |= {f"{side}/{name}": array for name, array in packed.arrays.items()}
    if sum(array.nbytes for array in arrays.values()) > LARGEST_ARRAYS // 2:
        raise StoreError(f"datasets of more than {LARGEST_ARRAYS // 2:,} bytes are not kept")
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays, facts=np.array(json.dumps(facts)))
    return file.getvalue()


def _pair_from(content: bytes) -> NeighborPair:
    """Return the pair in a ``.npz`` file; raise ``ValueError`` where there is none."""
    try:
        arrays = read_arrays(content)
        facts = _json.loads(str(arrays["facts"]), finite=False)
        return NeighborPair(
            _side(arrays, facts, "left"),
            _side(arrays, facts, "right"),
            relation=Relation(**facts["relation"]),
            recipe=facts["recipe"],
            by=facts.get("by"),
        )
    except Exception as error:  # a damaged archive raises whatever it runs into
        raise ValueError(f"it holds no pair: {type(error).__name__}: {error}") from error


def _side(arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any], side: str) -> Any:
    """Return one dataset of a stored pair."""
    if side not in facts:
        return arrays[side]
    names = [name for name in arrays if name.startswith(f"{side}/")]
    held = {name.removeprefix(f"{side}/"): arrays[name] for name in names}
    return unpacked(Packed(held, facts[side]))


def is_same_pair(one: NeighborPair | None, other: NeighborPair | None) -> bool:
    """Whether both pairs hold the same datasets; of one that is lost or cannot be kept, no."""
    if one is None or other is None:
        return False
    try:
        return pair_bytes(one) == pair_bytes(other)
    except StoreError:
        return False


# --- files ---


def save_record(out: Path, record: Record) -> Path:
    """Write one whole record, and its datasets beside it; returns the path of the record."""
    return save_packed(out, record, *pack(record))


def save_packed(out: Path, record: Record, document: dict[str, Any], pair: bytes | None) -> Path:
    """Write a record that :func:`pack` packed; see :func:`save_record`."""
    path = inside(out, place_of(record))
    beside = path.with_suffix(".npz")
    digest = None if pair is None else hashlib.sha256(pair).hexdigest()
    # Each file has a checksum, so that one that a loss of power cut off is made again.
    if pair is None:
        beside.unlink(missing_ok=True)
    else:
        write_atomic(beside, pair, durable=False)
    write_sealed(path, {**document, _PAIR: digest}, durable=False)
    return path


def load_record(path: Path) -> tuple[Record, list[str]]:
    """Read one whole record.

    Returns
    -------
    record : Record
    problems : list of str
        Sentences about datasets that are missing or damaged; the record is whole without them.

    Raises
    ------
    StoreError
        Naming the file and what is wrong with it.
    """
    whole = read_json(path)
    name = whole.get(_KIND)
    kind = kinds().get(name) if isinstance(name, str) else None
    document = unsealed(path, whole, schema=SCHEMA_VERSION if kind is None else kind.schema)
    try:
        digest = document.pop(_PAIR)
        record = unpack(document)
    except KeyError:
        raise StoreError(f"{path} is no whole record: it lacks {_PAIR}") from None
    except ValueError as error:
        raise StoreError(f"{path} is not a whole {name or 'record'}: {error}") from error
    if digest is None:
        return record, []
    beside = path.with_suffix(".npz")
    try:
        content = read_regular(inside(path.parent, beside.name), LARGEST_ARRAYS)
        if hashlib.sha256(content).hexdigest() != digest:
            raise ValueError(f"it is not the one that {path.name} was stored with")
        return _with_pair(record, content), []
    except OSError as error:
        reason = error.strerror or str(error)
    except (StoreError, ValueError) as error:
        reason = str(error)
    return record, [f"the datasets of {record.id} in {beside} are lost: {reason}"]


def load_result(path: str | os.PathLike[str]) -> AuditResult:
    """Read the result of an audit; one whose datasets are lost has the pair None.

    Raises
    ------
    StoreError
        When the file is damaged, was changed by hand, or holds another kind of record.
    """
    record, _ = load_record(_validate.path(path=path))
    if not isinstance(record, AuditResult):
        raise StoreError(f"{path} holds a {kind_of_record(record).name}, and no result of an audit")
    return record


def load_finished(
    out: Path, id: str, accept: Callable[[Record], bool]
) -> tuple[list[Record], list[str]]:
    """Read what an interrupted run left of one audit function or check: all of it, or nothing.

    Parameters
    ----------
    out : Path
        Directory of the run.
    id : str
        Of the function; its second check of a kind has the suffix ``#2``.
    accept : callable
        Whether a record may be taken over.

    Returns
    -------
    records : list
        In order; empty unless every record that the function made is there and accepted.
    lost : list of str
        Sentences about files that were set aside.
    """
    found: list[Record] = []
    lost: list[str] = []
    for kind in kinds().values():
        for number in itertools.count(1):
            name = id if number == 1 else f"{id}#{number}"
            try:
                path = inside(out, kind.folder, kind.file_name(name))
            except StoreError as error:
                return [], [*lost, str(error)]
            if not path.exists():
                break
            try:
                record, problems = load_record(path)
            except StoreError as error:
                return [], [*lost, set_aside(path, error)]
            found.append(record)
            lost += problems
    whole = all(r.origin.get("records") == len(found) and accept(r) for r in found)
    return (found if whole else []), lost
