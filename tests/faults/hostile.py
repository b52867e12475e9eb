"""Stored files as an attacker might change them, and every function that reads them."""

from __future__ import annotations

import contextlib
import copy
import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from click import UsageError

from dpaudit.errors import StoreError
from dpaudit.ledger.command import print_stored
from dpaudit.report import (
    compare,
    comparison_lines,
    comparison_markdown,
    read_side,
    run_lines,
    sarif,
    section_of,
    write_report,
)
from dpaudit.run.export import export_test
from dpaudit.run.replay import check_inside
from dpaudit.store import Record, load_record, load_run
from dpaudit.store.files import CHECKSUM, write_sealed
from tests.records import RUNS, STORED_RUN

REFERENCE = STORED_RUN or RUNS[0]
BAD: tuple[Any, ...] = (
    None, True, -1, 0, 1, 7, 10**60, 1e-300, -0.5, 0.5, 1.0, 1e300, "inf", "-inf", "", "x",
    "../../x", "a\nb\x00\x1b[31m", [], [1], ["x"], [[]], {}, {"x": 1}, {"float": "inf"}, [None],
)  # fmt: skip
"""Values of every type, at the ends of their ranges."""


def nodes(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values in plain data.

    For a long list, only the values at both ends are included.
    """
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from nodes(value[key], (*path, key))
    elif isinstance(value, list):
        for index in sorted({0, len(value) - 1} & set(range(len(value)))):
            yield from nodes(value[index], (*path, index))


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a copy of plain data with another value at one place."""
    made = copy.deepcopy(document)
    *way, last = path
    functools.reduce(lambda held, key: held[key], way, made)[last] = value
    return made


def document_of(path: Path) -> dict[str, Any]:
    """Return a stored document without its checksum."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    del found[CHECKSUM]
    return found


def _sections(document: dict[str, Any], at: str = "") -> set[str]:
    """Return names for the contents of a document.

    The names help to choose a small set of documents that holds all contents.
    """
    found = set()
    for key, value in document.items():
        name = f"{at}.{key}"
        kind = type(value).__name__ + ("" if value or not isinstance(value, list | dict) else "0")
        found.add(f"{name}:{kind}")
        if isinstance(value, dict) and value:
            found |= _sections(value, name)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            found |= _sections(value[0], name)
        elif name in (".verdict", ".expected"):
            found.add(f"{name}={value}")
    return found


@functools.cache
def samples(folder: str) -> tuple[dict[str, Any], ...]:
    """Return a few documents of the reference run that together hold every field and verdict."""
    known = [document_of(path) for path in sorted((REFERENCE / folder).glob("*.json"))]
    for document in known:
        document["origin"]["sources"] = dict(list(document["origin"]["sources"].items())[:2])
    known.sort(key=lambda document: len(json.dumps(document)))
    chosen, seen = [], set()
    for document in known:
        free = (".case.", ".where.", ".trials.", ".origin.", ".versions")
        keep = {name for name in _sections(document) if not any(words in name for words in free)}
        if keep - seen:
            seen |= keep
            chosen.append(document)
    return tuple(chosen)


def write_run(out: Path, files: dict[str, dict[str, Any]], document: dict[str, Any]) -> None:
    """Write a run of any contents with valid checksums."""
    for name, record in files.items():
        write_sealed(out / name, record)
    write_sealed(out / "results.json", document)


def open_doors(out: Path) -> None:
    """Read a run through every reader of runs.

    Errors other than :class:`StoreError` are raised.
    """
    with contextlib.suppress(StoreError):
        found = compare(read_side(out), read_side(out))
        comparison_lines(found), comparison_markdown(found)
    with contextlib.suppress(StoreError):
        print_stored(out, None, out / "rows.json")
        run, records, _ = load_run(out)  # `dpaudit report` and `dpaudit run` use this reader
        write_report(out, run, records)
        sarif(run, records)
        run_lines(run, records, None)
        for record in records:
            section = section_of(record)
            section.finding(record, out), section.finding(record), repr(record)


def numbers_of(record: Record) -> str:
    return section_of(record).numbers(record)


def open_record(path: Path) -> None:
    """Read a record through every reader of single records that does not run code."""
    test = path.with_name("test_x.py")
    doors = (
        lambda: check_inside(load_record(path)[0]),
        lambda: numbers_of(load_record(path)[0]),
        lambda: export_test(path, test),
    )
    for door in doors:
        with contextlib.suppress(StoreError, UsageError):
            door()
