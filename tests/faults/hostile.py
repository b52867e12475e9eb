"""Stored files as a stranger might change them, and every door through which they are read."""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpaudit.errors import StoreError
from dpaudit.report import (
    compare,
    comparison_json,
    comparison_lines,
    comparison_markdown,
    finding,
    junit,
    read_side,
    run_lines,
    sarif,
    statement_finding,
    statement_lines,
    write_report,
)
from dpaudit.results import AuditResult
from dpaudit.run.display import print_ledger
from dpaudit.run.export import export_test
from dpaudit.run.replay import check_inside
from dpaudit.run.words import numbers_of
from dpaudit.store import load_record, load_run
from dpaudit.store.files import CHECKSUM, write_sealed
from dpaudit.store.records import KINDS

REFERENCE = Path(__file__).parents[2] / "reports" / "reference"
BAD: tuple[Any, ...] = (
    None, True, -1, 0, 1, 7, 10**60, 1e-300, -0.5, 0.5, 1.0, 1e300, "inf", "-inf", "", "x",
    "../../x", "a\nb\x00\x1b[31m", [], [1], ["x"], [[]], {}, {"x": 1}, {"float": "inf"}, [None],
)  # fmt: skip
"""Values of every type, at the ends of their ranges."""


def nodes(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values in plain data; of a long list, its ends alone."""
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from nodes(value[key], (*path, key))
    elif isinstance(value, list):
        for index in sorted({0, len(value) - 1} & set(range(len(value)))):
            yield from nodes(value[index], (*path, index))


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a copy of plain data with another value in one place."""
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
    """Name what a document holds, so that a few documents can be chosen that hold everything."""
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
    """Return few documents of the reference run that hold every field and every verdict."""
    known = [document_of(path) for path in sorted((REFERENCE / folder).glob("*.json"))]
    known.sort(key=lambda document: len(json.dumps(document)))
    chosen, seen = [], set()
    for document in known:
        keep = {s for s in _sections(document) if ".case." not in s and ".where." not in s
                and ".trials." not in s and ".origin." not in s and ".versions" not in s}  # fmt: skip
        if keep - seen:
            seen |= keep
            chosen.append(document)
    return tuple(chosen)


def write_run(out: Path, records: list[dict[str, Any]], document: dict[str, Any]) -> None:
    """Write a run whose checksums are right, whatever it says."""
    for record in records:
        kind = KINDS[record["record"]]
        folder = out / kind.folder
        write_sealed(folder / f"{len(list(folder.glob('*'))) if folder.is_dir() else 0}.json", record)
    write_sealed(out / "results.json", document)


def open_doors(out: Path, echo: Any = None) -> None:
    """Read a run through everything that reads runs; raise whatever they raise but StoreError."""
    try:
        run, results, rows = load_run(out)
    except StoreError:
        return
    for result in results:
        finding(result, out)
        repr(result), result._repr_html_()
    for row in rows:
        statement_finding(row, out)
    run_lines(run, results, None, rows)
    statement_lines(rows)
    print_ledger(rows)
    sarif(run, results, rows)
    junit(run, results, rows)
    write_report(out, run, results, rows)
    try:
        side = read_side(out)
    except StoreError:
        return
    found = compare(side, side)
    comparison_lines(found), comparison_markdown(found), json.dumps(comparison_json(found))


def open_record(path: Path) -> None:
    """Read a record through everything that reads single records."""
    from click import UsageError

    try:
        record, _ = load_record(path)
    except StoreError:
        return
    numbers_of(record)
    for door in (lambda: check_inside(record), lambda: export_test(path, path.with_name("test_x.py"))):
        try:
            door()
        except (StoreError, UsageError):
            continue
    if isinstance(record, AuditResult) and record.pair is not None:
        record.pair.describe()
