"""Tests that records and runs with any type in any place are read or refused with a message."""

from __future__ import annotations

import contextlib
import io
import itertools
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpaudit.store import KeptRecord, load_run, read_whole_run
from dpaudit.store.records import kinds
from tests.faults.hostile import (
    BAD,
    REFERENCE,
    changed,
    document_of,
    nodes,
    open_doors,
    open_record,
    samples,
    write_run,
)
from tests.records import needs_a_run

MANY = settings(
    max_examples=200,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
VALUES = st.sampled_from(BAD) | st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=3)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=4,
)  # fmt: skip


pytestmark = needs_a_run


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("builtins.breakpoint", lambda: None)
    with contextlib.redirect_stdout(io.StringIO()):
        yield tmp_path


def run_of(*records: dict[str, Any]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the records by file path, and the reference run reduced to these records."""
    files: dict[str, dict[str, Any]] = {}
    whole = document_of(REFERENCE / "results.json")
    for record in records:
        kind = kinds()[record["record"]]
        files[f"{kind.folder}/{kind.file_name(id_of(record))}"] = record
    for kind in kinds().values():
        whole[kind.folder] = [r for r in whole[kind.folder] if r["id"] in map(id_of, records)]
    run = {**whole["run"], "problems": ["one problem"]}
    run["facts"] = {name: held[:1] for name, held in run["facts"].items()}
    run["kept"] = [asdict(KeptRecord("audit", "x", run["started"], "dpaudit run", current=True))]
    return files, {**whole, "run": run}


def id_of(record: dict[str, Any]) -> str:
    return str(record["id"] if record["record"] == "audit" else record["stated"]["id"])


def hostile(data: st.DataObject, document: dict[str, Any]) -> dict[str, Any]:
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(list(nodes(document))))
        document = changed(document, path, data.draw(VALUES))
    return document


def open_all(out: Path, files: dict[str, dict[str, Any]], document: dict[str, Any]) -> None:
    shutil.rmtree(out, ignore_errors=True)
    write_run(out, files, document)
    open_doors(out)
    for name in files:
        open_record(out / name)


@pytest.mark.parametrize("folder", ["audits", "statements"])
@MANY
@given(data=st.data())
def test_a_changed_record_is_read_or_refused(here: Path, folder: str, data: st.DataObject) -> None:
    record = data.draw(st.sampled_from(samples(folder)))
    other = samples("statements" if folder == "audits" else "audits")[0]
    files, document = run_of(record, other)
    files[next(iter(files))] = hostile(data, record)
    open_all(here / "out", files, document)


@MANY
@given(data=st.data())
def test_a_changed_run_is_read_or_refused(here: Path, data: st.DataObject) -> None:
    files, document = run_of(samples("audits")[0], samples("statements")[0])
    open_all(here / "out", files, hostile(data, document))


def test_what_nobody_changed_is_read_through_every_door(here: Path) -> None:
    """Check that every reader accepts an unchanged run.

    The unchanged run is the control.
    """
    for audit, row in itertools.zip_longest(samples("audits"), samples("statements")):
        files, document = run_of(*filter(None, (audit, row)))
        open_all(here / "out", files, document)
        run, records, lost = load_run(here / "out")
        assert (len(records), lost) == (len(files), [])
        assert [problem for problem in run.problems if "datasets" not in problem] == ["one problem"]
        read_whole_run(here / "out")
