"""Records are the results of a run in one common form.

Each record has a file and datasets.
"""

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

_SMALLEST = "smallest "  # start of the names of the arrays of the smallest pair


class Record(Protocol):
    """One result of a run, such as the result of an audit."""

    @property
    def id(self) -> str:
        """Name of the record, unique in a run."""

    @property
    def seed(self) -> int:
        """Root seed, which together with the id determines every random number."""

    @property
    def seconds(self) -> float:
        """Time spent on the record, in seconds."""

    @property
    def expected(self) -> Any:
        """Expected result that was declared."""

    @property
    def status(self) -> Status:
        """Outcome of the record, compared with the expected result."""

    @property
    def mismatch(self) -> str | None:
        """Reason, in one sentence, why the record makes a run fail, or None."""

    @property
    def total_failure_prob(self) -> float:
        """Largest probability that any certified number in the record is wrong."""

    @property
    def origin(self) -> dict[str, Any]:
        """How the record was made, as data for a replay.

        Empty for a direct call.
        """

    def with_origin(self, origin: Mapping[str, Any], expected: Any) -> Self:
        """Return a copy of the record with facts that only a run knows."""

    def row(self) -> dict[str, Any]:
        """Return the flat row of ``results.json``."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data, including the schema."""


class Row(TypedDict):
    """The fields of a record's row in ``results.json`` that are read again, for every kind."""

    id: str
    stored: bool


@dataclass(frozen=True)
class Kind:
    """A kind of record, with the place of its files.

    Packages register instances under the entry-point group ``dpaudit.kinds``. Packages register the
    report sections of these kinds under the same name in ``dpaudit.sections``.

    Parameters
    ----------
    name : str
        Name in files and reports.
    folder : str
        Folder inside the directory of a run.
    type : type
        Class with a method ``from_json``, which raises ``ValueError`` for data that are no such
        record.
    schema : int
        Version of the JSON of a record.
    dotted : bool
        Whether simple ids have the form "paper.name". If not, the ids have the form "module::name".
    files : str
        Pattern of the files whose functions make such records.
    page : str
        File of the page of this kind inside the directory of a run.
    facts : type
        Type of the data that a run stores next to the records, in :attr:`StoredRun.facts`.
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
        """Return the file name of a record.

        Different ids get different names.

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
        """Return the record of a row whose file is missing or lost, or None.

        Raises
        ------
        ValueError
            If the row does not hold the necessary fields.
        """

    def copies(self, record: Any) -> list[Any]:
        """Return the other records with the same content that are stored with this record."""
        return []

    def is_current(self, record: Any) -> bool:
        """Return whether the inputs of a record, except code and settings, are unchanged."""
        return True


AUDIT = Kind("audit", "audits", AuditResult, SCHEMA_VERSION, False, "audit_*.py", "index.html")


@functools.cache
def extensions(group: str) -> dict[str, Any]:
    """Return the objects that installed packages register under ``dpaudit.GROUP``, by name."""
    found = sorted(metadata.entry_points(group=f"dpaudit.{group}"), key=lambda entry: entry.name)
    return {entry.name: entry.load() for entry in found}


def kinds() -> dict[str, Kind]:
    """Return every kind of record, by name."""
    return extensions("kinds")


def kind_of_record(record: Record) -> Kind:
    """Return the kind of a record."""
    return next(kind for kind in kinds().values() if isinstance(record, kind.type))


def by_kind(records: Iterable[Record]) -> dict[str, list[Any]]:
    """Return the records of each kind, by the name of the kind."""
    found: dict[str, list[Any]] = {name: [] for name in kinds()}
    for record in records:
        found[kind_of_record(record).name].append(record)
    return found


def rows_of(records: Iterable[Record]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of records in their stored form, by the folder of each kind."""
    return {kinds()[n].folder: kinds()[n].rows(own) for n, own in by_kind(records).items()}


def read_rows(document: Mapping[str, Any]) -> dict[str, tuple[Row, ...]]:
    """Return the rows that :func:`rows_of` put into a document, by the name of each kind.

    Raises
    ------
    ValueError
        If the document holds anything else in the place of the rows.
    """
    return {
        name: _json.decode(tuple[Row, ...], document.get(kind.folder))
        for name, kind in kinds().items()
    }


def place_of(record: Record) -> str:
    """Return the path of a record's file inside the directory of its run.

    Examples
    --------
    ``audits/audit_basics.audit_laplace.json``
    """
    kind = kind_of_record(record)
    return f"{kind.folder}/{kind.file_name(record.id)}"


# --- transport between processes ---


def pack(record: Record) -> tuple[dict[str, Any], bytes | None]:
    """Return a record as plain data, and its datasets as a file in memory.

    Raises
    ------
    StoreError
        If the packed result could not be read again.
    """
    document = {_KIND: kind_of_record(record).name, **record.to_json()}
    try:
        unpack(_json.loads(json.dumps(document, allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise StoreError(f"{record.id}: the record cannot be stored: {error}") from error
    pair, smallest = getattr(record, "pair", None), getattr(record, "smallest", None)
    if pair is None:
        return document, None
    try:
        content = pair_bytes(pair, smallest and smallest.pair)
        _pairs_from(content)
    # The result describes the pair, and the audit file can make the pair again.
    except (StoreError, ValueError):
        return document, None
    return document, content


def unpack(document: Mapping[str, Any], pair: bytes | None = None) -> Record:
    """Return the record that :func:`pack` packed.

    Raise ``ValueError`` for any other data.
    """
    data = dict(document)
    name = data.pop(_KIND, None)
    if not isinstance(name, str) or name not in kinds():
        raise ValueError(f"the kind of a record must be known, got {name!r}")
    return _with_pair(kinds()[name].type.from_json(data), pair)


def _with_pair(record: Any, pair: bytes | None) -> Record:
    """Return a record with its datasets."""
    if pair is not None:
        found, smallest = _pairs_from(pair)
        record = replace(record, pair=found)
        if smallest is not None and record.smallest is not None:
            record = replace(record, smallest=replace(record.smallest, pair=smallest))
    whole: Record = record
    return whole


def pair_bytes(pair: NeighborPair, smallest: NeighborPair | None = None) -> bytes:
    """Return a pair, and the smallest pair of the same audit, as the content of a ``.npz`` file."""
    arrays: dict[str, NDArray[Any]] = {}
    facts = _facts(pair, "", arrays)
    if smallest is not None:
        facts["smallest"] = _facts(smallest, _SMALLEST, arrays)
    if sum(array.nbytes for array in arrays.values()) > LARGEST_ARRAYS // 2:
        raise StoreError(f"datasets of more than {LARGEST_ARRAYS // 2:,} bytes cannot be stored")
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays, facts=np.array(json.dumps(facts)))
    return file.getvalue()


def _facts(pair: NeighborPair, start: str, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the facts of a pair, and add its arrays, whose names begin with `start`."""
    facts: dict[str, Any] = {
        "user": pair.user if isinstance(pair.user, str | int | None) else None,  # recomputed later
        "relation": pair.relation.to_json(),
        "recipe": pair.recipe,
    }
    if not isinstance(pair.form, ArrayForm):
        facts["by"] = pair.by
    for side in ("left", "right"):
        held = getattr(pair, side)
        if isinstance(pair.form, ArrayForm):
            arrays[f"{start}{side}"] = held
            continue
        packed = pair.form.packed(held)
        if packed is None:
            raise StoreError(
                f"datasets of this kind cannot be stored, got {pair.form.words(pair.left)}"
            )
        facts[side] = packed.facts
        arrays |= {f"{start}{side}/{name}": array for name, array in packed.arrays.items()}
    return facts


def _pairs_from(content: bytes) -> tuple[NeighborPair, NeighborPair | None]:
    """Return the pair in a ``.npz`` file, and the smallest pair if the file holds one.

    Raise ``ValueError`` if the file holds no pair.
    """
    try:
        arrays = read_arrays(content)
        facts = _json.loads(str(arrays["facts"]), finite=False)
        smallest = facts.get("smallest")
        return _pair_from(arrays, facts, ""), smallest and _pair_from(arrays, smallest, _SMALLEST)
    except Exception as error:  # a damaged archive may raise anything
        raise ValueError(f"it holds no pair: {type(error).__name__}: {error}") from error


def _pair_from(
    arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any], start: str
) -> NeighborPair:
    sides = []
    for side in ("left", "right"):
        if side in facts:
            begin = f"{start}{side}/"
            held = {k.removeprefix(begin): one for k, one in arrays.items() if k.startswith(begin)}
            sides.append(unpacked(Packed(held, facts[side])))
        else:
            sides.append(arrays[f"{start}{side}"])
    return NeighborPair(
        *sides,
        relation=Relation(**facts["relation"]),
        recipe=facts["recipe"],
        by=facts.get("by"),
    )


def is_same_pair(one: NeighborPair | None, other: NeighborPair | None) -> bool:
    """Return whether two pairs hold the same datasets; False if a dataset is not available."""
    if one is None or other is None:
        return False
    try:
        return pair_bytes(one) == pair_bytes(other)
    except StoreError:
        return False


# --- files ---


def save_record(out: Path, record: Record) -> Path:
    """Write one complete record with its datasets next to it, and return the record's path."""
    return save_packed(out, record, *pack(record))


def save_packed(out: Path, record: Record, document: dict[str, Any], pair: bytes | None) -> Path:
    """Write a record that :func:`pack` packed, as :func:`save_record` does."""
    path = inside(out, place_of(record))
    beside = path.with_suffix(".npz")
    digest = None if pair is None else hashlib.sha256(pair).hexdigest()
    # Each file has a checksum. So a file that a power failure cut off is detected and made again.
    if pair is None:
        beside.unlink(missing_ok=True)
    else:
        write_atomic(beside, pair, durable=False)
    write_sealed(path, {**document, _PAIR: digest}, durable=False)
    return path


def load_record(path: Path) -> tuple[Record, list[str]]:
    """Read one complete record.

    Returns
    -------
    record : Record
    problems : list of str
        Messages about datasets that are missing or damaged. The record is valid without its
        datasets.

    Raises
    ------
    StoreError
        If the file is damaged. The message gives the file and the fault.
    """
    whole = read_json(path)
    name = whole.get(_KIND)
    kind = kinds().get(name) if isinstance(name, str) else None
    document = unsealed(path, whole, schema=SCHEMA_VERSION if kind is None else kind.schema)
    try:
        digest = document.pop(_PAIR)
        record = unpack(document)
    except KeyError:
        raise StoreError(f"{path} is not a complete record: it lacks {_PAIR}") from None
    except ValueError as error:
        raise StoreError(f"{path} is not a complete {name or 'record'}: {error}") from error
    if digest is None:
        return record, []
    beside = path.with_suffix(".npz")
    try:
        content = read_regular(inside(path.parent, beside.name), LARGEST_ARRAYS)
        if hashlib.sha256(content).hexdigest() != digest:
            raise ValueError(f"it is not the file that was stored with {path.name}")
        return _with_pair(record, content), []
    except OSError as error:
        reason = error.strerror or str(error)
    except (StoreError, ValueError) as error:
        reason = str(error)
    return record, [f"the datasets of {record.id} in {beside} are lost: {reason}"]


def load_result(path: str | os.PathLike[str]) -> AuditResult:
    """Read the result of an audit.

    If the datasets of the result are lost, the pair of the result is None.

    Raises
    ------
    StoreError
        If the file is damaged, was changed by hand, or holds another kind of record.
    """
    record, _ = load_record(_validate.path(path=path))
    if not isinstance(record, AuditResult):
        raise StoreError(f"{path} must hold an audit result, got a {kind_of_record(record).name}")
    return record


def load_finished(
    out: Path, id: str, accept: Callable[[Record], bool]
) -> tuple[list[Record], list[str]]:
    """Read all records that an earlier run made for one function, or none of them.

    Parameters
    ----------
    out : Path
        Directory of the run.
    id : str
        Id of the function. A second check of the same kind has the suffix ``#2``.
    accept : callable
        Function that returns whether a record may be reused.

    Returns
    -------
    records : list
        Records in order. Empty unless every record that the function made exists and is accepted.
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
