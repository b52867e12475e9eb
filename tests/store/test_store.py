"""Tests that results on disk are atomic, versioned, and moved aside if they are damaged."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import (
    AuditResult,
    NeighborPair,
    PureDP,
    Relation,
    StoreError,
    audit,
    within_sensitivity,
)
from dpaudit.ledger.coverage import open_row
from dpaudit.ledger.paper import Statement
from dpaudit.ledger.rows import LedgerVerdict, StatementResult
from dpaudit.properties.attempt import Attempt, Counterexample, Method, Power, Role
from dpaudit.results import MutantStatus
from dpaudit.store import records
from dpaudit.store.files import CHECKSUM, write_atomic, write_sealed
from dpaudit.store.lock import HOLDER, LOCK, hold
from dpaudit.store.records import (
    is_same_pair,
    kind_of_record,
    kinds,
    load_finished,
    load_record,
    load_result,
    pack,
    place_of,
    save_record,
    unpack,
)
from dpaudit.store.runs import (
    KeptRecord,
    StoredRun,
    check_writable,
    family_wise_error,
    load_run,
    read_whole_run,
    save_run,
)

PAIR = NeighborPair([[0.0], [1.0]], [[0.0], [0.0]])


def laplace(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    return data.sum() + rng.laplace(size=size)


class Exact:
    def pmf(self, data: Any) -> Any:
        return [0.5, 0.5]


def louder(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    return data.sum() + rng.laplace(scale=2.0, size=size)


RESULT = audit(laplace, PureDP(1.0), PAIR, draws=100, seed=1, mutants=[louder], id="audit_x::one")
RUN = StoredRun(
    profile="quick",
    seed=1,
    failure_prob=1e-5,
    command="dpaudit run",
    versions={"numpy": "2"},
    family_wise_error=2e-5,
    started="2025-01-01T00:00:00+00:00",
    seconds=1.5,
    problems=("one problem",),
    kept=(
        KeptRecord("audit", "a", "2024-01-01T00:00:00+00:00", "dpaudit run -k a", current=False),
    ),
)


def _named(name: str, fingerprint: str = "f") -> AuditResult:
    return replace(RESULT, id=name, origin={"fingerprint": fingerprint})


def reseal(path: Path, **changes: Any) -> None:
    """Change a file and update its checksum, as the writer of the file could."""
    data = {**json.loads(path.read_text()), **changes}
    data.pop(CHECKSUM, None)
    write_sealed(path, data)


def file_name(id: str) -> str:
    return kinds()["audit"].file_name(id)


def accept(record: Any) -> bool:
    return bool(record.origin.get("fingerprint") == "f")


def _files(out: Path) -> list[str]:
    return sorted(p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file())


# --- names ------------------------------------------------------------------------------------

IDS = [
    "audit_x::one", "audit_x.one", "audit_x::one#2", "audit_x::one-2", "audit_x::one[1]",
    "audit_x::one[2]", "audit_x::one(1)", "a/b", "a\\b", "a-b", "a b", "..", ".", "", "é", "è",
    "x" * 500, "x" * 501, "a::b::c", "a.b.c", "a::b.c", "a:b", "-a", "a-", "a.", "a\n", "漢", "δ",
]  # fmt: skip


def test_different_ids_have_different_file_names() -> None:
    names = {i: file_name(i) for i in IDS}
    clashes = [i for i in IDS if list(names.values()).count(names[i]) > 1]
    assert clashes == []


@pytest.mark.parametrize("audit_id", IDS)
def test_file_names_are_safe_anywhere(audit_id: str) -> None:
    name = file_name(audit_id)
    assert Path(name).name == name
    assert name.endswith(".json")
    assert name.isascii()
    assert len(name) < 150
    assert not set(name) & set('/\\:*?"<>| \n')


# --- writing ----------------------------------------------------------------------------------


def test_a_write_makes_its_directories_and_leaves_nothing_beside(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "file.json"
    write_atomic(target, "δ\n")
    write_atomic(target, "second\n")
    assert target.read_text(encoding="utf-8") == "second\n"
    assert _files(tmp_path) == ["a/b/file.json"]
    umask = os.umask(0)
    os.umask(umask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~umask


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "file.json"
    write_atomic(target, "old")

    def full_disk(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, full_disk)
            with pytest.raises(StoreError, match=r"cannot write .*file\.json: No space left"):
                write_atomic(target, "new")
    with pytest.raises(UnicodeEncodeError):
        write_atomic(target, "\ud800")
    assert target.read_text() == "old"
    assert _files(tmp_path) == ["file.json"]


def test_an_interrupted_write_leaves_nothing_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(tmp_path / "file.json", "x")
    assert _files(tmp_path) == []


def test_a_directory_that_cannot_be_written_is_told_before_the_work(tmp_path: Path) -> None:
    check_writable(tmp_path / "new")
    assert _files(tmp_path) == []
    (tmp_path / "file").write_text("in the way")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StoreError, match="cannot write .*file"):
            check_writable(out)
    with pytest.raises(StoreError, match="cannot write"):
        save_record(tmp_path / "file", RESULT)
    (tmp_path / "results.json").mkdir()
    with pytest.raises(StoreError, match="cannot write"):
        save_run(tmp_path, RUN, [])
    assert _files(tmp_path) == ["file"]


# --- reading ----------------------------------------------------------------------------------


def test_results_come_back_as_they_were(tmp_path: Path) -> None:
    path = save_record(tmp_path, RESULT)
    assert path == tmp_path / "audits" / "audit_x.one.json"
    assert load_result(path) == RESULT
    named = _named("prüfung::δ [漢字]")
    assert load_result(save_record(tmp_path, named)) == named


def test_mutants_come_back_as_they_were(tmp_path: Path) -> None:
    given = RESULT.mutants[0]
    mutant_runs = (
        given,
        replace(given, name="certain", status=MutantStatus.KILLED, certified_epsilon=math.inf),
        replace(
            given, name='prüfung "δ"\n', status=MutantStatus.NOT_RUN, note="raised KeyError: 'x'"
        ),
        *RESULT.mutants[1:],
    )
    assert {mutant.status for mutant in mutant_runs} == set(MutantStatus)
    result = replace(RESULT, mutants=mutant_runs)
    back = load_result(save_record(tmp_path, result))
    assert back == result
    assert back.mutants == mutant_runs
    assert back.mutation_score == result.mutation_score


def test_a_result_with_a_single_mutant_is_of_an_earlier_version(tmp_path: Path) -> None:
    path = save_record(tmp_path, RESULT)
    reseal(path, schema=4)
    with pytest.raises(
        StoreError, match="has schema 4, .* reads schema 7. Run `dpaudit run` again"
    ):
        load_result(path)


def test_runs_come_back_as_they_were(tmp_path: Path) -> None:
    results = [_named("b"), _named("a")]
    for result in results:
        save_record(tmp_path, result)
    save_run(tmp_path, RUN, results)
    assert load_run(tmp_path) == (RUN, results, [])
    document = json.loads((tmp_path / "results.json").read_text())
    assert [row["id"] for row in document["audits"]] == ["b", "a"]


DAMAGE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "damaged or cut off"),
    "cut off": (b'{"schema": 1, "id": "x', "damaged or cut off"),
    "not text": (b"\xff\xfe\x00", "damaged or cut off"),
    "a list": (b"[]", "must hold a JSON object, got list"),
    "a number": (b"1", "must hold a JSON object"),
    "another schema": (b'{"schema": 1}', "schema"),
    "empty object": (b"{}", "schema"),
    "nested deeply": (b'{"a":' * 100_000, "nested too deeply|damaged or cut off"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_files_are_refused_with_their_path(tmp_path: Path, name: str) -> None:
    content, words = DAMAGE[name]
    path = tmp_path / "results.json"
    path.write_bytes(content)
    for load in (lambda: load_result(path), lambda: load_run(tmp_path)):
        with pytest.raises(StoreError, match=words) as caught:
            load()
        assert str(path) in str(caught.value)


def test_every_cut_of_a_file_is_refused(tmp_path: Path) -> None:
    path = save_record(tmp_path, RESULT)
    whole = path.read_bytes().rstrip()
    for length in range(0, len(whole), max(len(whole) // 60, 1)):
        path.write_bytes(whole[:length])
        with pytest.raises(StoreError):
            load_result(path)


def test_missing_files_are_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot read .*results\.json: No such file"):
        load_run(tmp_path)
    with pytest.raises(StoreError, match="cannot read"):
        load_result(tmp_path)


def test_not_a_number_in_a_file_is_not_trusted(tmp_path: Path) -> None:
    path = save_record(tmp_path, RESULT)
    data = json.loads(path.read_text())
    data["epsilon"]["lower"] = float("nan")
    path.write_text(json.dumps(data))
    with pytest.raises(StoreError):
        load_result(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [("id", 5), ("seconds", "long"), ("failure_prob", None), ("draws", 3), ("seed", "x")],
)
def test_values_of_another_type_are_not_trusted(tmp_path: Path, field: str, value: Any) -> None:
    path = save_record(tmp_path, RESULT)
    reseal(path, **{field: value})
    with pytest.raises(StoreError, match=f"is not a complete audit: {field}: the type must be"):
        load_result(path)


def test_a_run_sets_damaged_results_aside_and_says_so(tmp_path: Path) -> None:
    results = [_named(name) for name in ("a", "b", "c")]
    for result in results:
        save_record(tmp_path, result)
    save_run(tmp_path, RUN, results)
    broken = tmp_path / "audits" / "b.json"
    broken.write_text("{")
    (tmp_path / "audits" / "c.json").unlink()
    run, loaded, lost = load_run(tmp_path)
    assert loaded == results[:1]
    assert lost == ["audit", "audit"]
    assert len(run.problems) == 3
    assert run.problems[0] == "one problem"
    assert "damaged or cut off" in run.problems[1]
    assert run.problems[1].endswith("set aside as b.corrupt")
    assert "cannot read" in run.problems[2]
    assert _files(tmp_path / "audits") == [
        "a.json", "a.npz", "b.corrupt", "b.npz", "c.npz",
    ]  # fmt: skip


def test_results_are_only_read_from_their_own_directory(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("{}")
    save_run(tmp_path, RUN, [])
    path = tmp_path / "results.json"
    reseal(path, audits=[{"id": "../secret", "stored": True}])
    _, loaded, _ = load_run(tmp_path)
    assert loaded == []
    assert (tmp_path / "secret.json").exists()


# --- statements ---

BROKEN = Counterexample({"points": [[0.5, math.inf]], "n": 3}, math.inf, 2.0, exact=True)
ATTEMPT = Attempt(
    "a claim", Method.PROPERTY, 300, 12, math.inf, where={"n": 3}, counterexample=BROKEN
)
STOOD = Attempt(
    "repaired",
    Method.EXACT,
    9,
    tightest=0.5,
    where={"n": 1},
    power=Power.KILLED,
    mutant="halved",
    role=Role.REPAIR,
    subject="x <= 2 y",
)
ROW = StatementResult(
    Statement("p.lemma1", "paper", "lemma", "x <= y", premises=("p.lemma0",)),
    LedgerVerdict.REFUTED,
    Method.PROPERTY,
    (ATTEMPT, STOOD),
    "a note",
    seconds=1.5,
    seed=3,
    expected=LedgerVerdict.REFUTED,
    origin={"kind": "statement", "fingerprint": "f"},
)
OPEN = open_row(Statement("p.lemma2", "paper", "lemma", "y <= z"), "No check was written yet.")


def _checked(name: str, fingerprint: str = "f") -> StatementResult:
    origin = {"kind": "statement", "fingerprint": fingerprint}
    return replace(ROW, stated=replace(ROW.stated, id=name), origin=origin)


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    path = save_record(tmp_path, ROW)
    assert path == tmp_path / "statements" / "p.lemma1.json"
    assert load_record(path) == (ROW, [])
    assert kind_of_record(ROW).name == "statement"
    assert place_of(RESULT) == "audits/audit_x.one.json"
    with pytest.raises(StoreError, match="must hold an audit result, got a statement"):
        load_result(path)


@pytest.mark.parametrize("name", IDS)
def test_files_of_statements_are_safe_anywhere(name: str) -> None:
    found = kinds()["statement"].file_name(name)
    assert Path(found).name == found
    assert found.isascii()
    assert not set(found) & set('/\\:*?"<>| \n')
    assert len(found) < 150


def test_plain_ids_are_the_names_of_their_files() -> None:
    assert kinds()["statement"].file_name("gm.lemma14.xiK") == "gm.lemma14.xiK.json"
    assert kinds()["statement"].file_name("gm.é") != kinds()["statement"].file_name("gm.è")


def test_a_run_holds_a_row_for_each_statement_in_the_order_of_the_paper(tmp_path: Path) -> None:
    rows = [
        OPEN,
        _checked("p.b"),
        replace(OPEN, stated=replace(OPEN.stated, id="p.c")),
        _checked("p.a"),
    ]
    for row in rows:
        if row.origin:
            save_record(tmp_path, row)
    save_run(tmp_path, RUN, rows)
    assert load_run(tmp_path) == (RUN, rows, [])
    document = json.loads((tmp_path / "results.json").read_text())
    assert [row["id"] for row in document["statements"]] == ["p.lemma2", "p.b", "p.c", "p.a"]
    assert [row["stored"] for row in document["statements"]] == [False, True, False, True]
    assert set(document["statements"][1]) == {
        "id", "paper", "kind", "statement", "stated", "verdict", "method", "examples", "tightest",
        "counterexample", "repair", "repair_verdict", "note", "harm", "consequence", "seconds",
        "power", "weak", "edges", "broken_steps", "shaken", "stored",
    }  # fmt: skip
    assert document["statements"][1]["counterexample"]["lhs"] == "inf"


def test_a_row_whose_file_is_damaged_stays_and_is_open(tmp_path: Path) -> None:
    rows = [_checked("p.a"), _checked("p.b"), OPEN]
    for row in rows[:2]:
        save_record(tmp_path, row)
    save_run(tmp_path, RUN, rows)
    damaged = tmp_path / "statements" / "p.b.json"
    damaged.write_text(damaged.read_text()[:-30])
    run, loaded, lost = load_run(tmp_path)
    assert lost == ["statement"]
    assert [row.verdict for row in loaded] == ["refuted", "open", "open"]
    assert loaded[1].note == "not run: the results are lost"
    assert loaded[1].statement == "x <= y"
    assert run.problems[-1].endswith("set aside as p.b.corrupt")
    assert damaged.with_suffix(".corrupt").exists()


def test_a_run_without_statements_is_of_an_earlier_version(tmp_path: Path) -> None:
    save_run(tmp_path, RUN, [])
    path = tmp_path / "results.json"
    document = json.loads(path.read_text())
    del document["statements"], document[CHECKSUM]
    write_sealed(path, document)
    with pytest.raises(StoreError, match="does not hold a run"):
        load_run(tmp_path)
    reseal(path, schema=2)
    with pytest.raises(StoreError, match="has schema 2, .* Run `dpaudit run` again"):
        load_run(tmp_path)


@pytest.mark.parametrize(
    "row", [3, {}, {"id": 3}, OPEN.row(), {**OPEN.row(), "stored": False, "note": None}]
)
def test_odd_rows_are_not_trusted(tmp_path: Path, row: Any) -> None:
    save_run(tmp_path, RUN, [])
    path = tmp_path / "results.json"
    reseal(path, statements=[row])
    with pytest.raises(StoreError, match="does not hold a run"):
        load_run(tmp_path)


def test_a_finished_row_is_taken_over_if_it_is_accepted(tmp_path: Path) -> None:
    row = ROW.with_origin({**ROW.origin, "records": 1}, ROW.expected)
    save_record(tmp_path, row)
    assert load_finished(tmp_path, "p.lemma1", accept) == ([row], [])
    assert load_finished(tmp_path, "p.lemma1", lambda record: False) == ([], [])
    assert load_finished(tmp_path, "p.lemma9", accept) == ([], [])
    save_record(tmp_path, ROW)  # a check that failed in the middle
    assert load_finished(tmp_path, "p.lemma1", accept) == ([], [])
    (tmp_path / "statements" / "p.lemma1.json").write_text("{")
    found, lost = load_finished(tmp_path, "p.lemma1", accept)
    assert found == []
    assert lost[0].endswith("set aside as p.lemma1.corrupt")


def test_a_statement_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    check_writable(tmp_path)
    assert not (tmp_path / "statements").exists()
    (tmp_path / "statements").write_text("in the way")
    with pytest.raises(StoreError, match="statements: it is a file"):
        check_writable(tmp_path)


# --- resuming ---------------------------------------------------------------------------------


def test_finished_checks_are_found_in_order(tmp_path: Path) -> None:
    origin = {"fingerprint": "f", "records": 4}
    checks = [_named(name).with_origin(origin, None) for name in ("m::f", "m::f#2", "m::f#3")]
    stated = replace(ROW.stated, id="m::f", kind="function")
    row = replace(ROW, stated=stated).with_origin(origin, ROW.expected)
    for result in [*checks, row, _named("m::f#5"), _named("m::g")]:
        save_record(tmp_path, result)
    assert load_finished(tmp_path, "m::f", accept) == ([*checks, row], [])
    assert load_finished(tmp_path, "m::f", lambda record: record.id != "m::f#2") == ([], [])
    assert load_finished(tmp_path, "m::h", accept) == ([], [])


def test_a_function_that_was_cut_off_between_its_checks_is_not_taken_over(tmp_path: Path) -> None:
    save_record(tmp_path, _named("m::f").with_origin({"fingerprint": "f", "records": 2}, None))
    assert load_finished(tmp_path, "m::f", accept) == ([], [])


def test_a_damaged_check_undoes_the_whole_function(tmp_path: Path) -> None:
    for name in ("m::f", "m::f#2"):
        save_record(tmp_path, _named(name))
    damaged = tmp_path / "audits" / file_name("m::f#2")
    damaged.write_text("")
    results, lost = load_finished(tmp_path, "m::f", accept)
    assert results == []
    assert len(lost) == 1
    assert not damaged.exists()
    assert damaged.with_suffix(".corrupt").exists()


# --- seals ------------------------------------------------------------------------------------


def test_words_that_were_changed_by_hand_are_not_trusted(tmp_path: Path) -> None:
    path = save_record(tmp_path, RESULT)
    save_run(tmp_path, RUN, [RESULT, OPEN])
    words = path.read_text()
    for old, new in [("audit_x::one", "audit_x::two"), ('"seed": 1', '"seed": 2')]:
        path.write_text(words.replace(old, new))
        with pytest.raises(StoreError, match="does not match its checksum, because it was changed"):
            load_record(path)
    run, records, _ = load_run(tmp_path)
    assert records == [OPEN]
    assert run.problems[-1].endswith("set aside as audit_x.one.corrupt")
    document = json.loads(words)
    del document[CHECKSUM]
    path.write_text(json.dumps(document))
    with pytest.raises(StoreError, match="does not match its checksum"):
        load_record(path)
    path.write_text(json.dumps(json.loads(words)))  # the white space differs, the content does not
    assert load_record(path) == (RESULT, [])
    index = tmp_path / "results.json"
    index.write_text(index.read_text().replace("y <= z", "y >= z"))
    with pytest.raises(StoreError, match=r"results\.json does not match its checksum"):
        load_run(tmp_path)


# --- pairs ------------------------------------------------------------------------------------


def _pairs() -> list[NeighborPair]:
    users = np.array([(0.5, b"x"), (np.nan, b"y")], dtype=[("value", "<f4"), ("word", "S3")])
    others = users.copy()
    others[1] = (np.inf, b"z")
    return [
        PAIR,
        NeighborPair([[1], [2]], [[1]], relation=Relation.ADD_REMOVE_USER, recipe="δ"),
        NeighborPair(1.0, 1.5, relation=within_sensitivity(2.0, norm="l1")),
        NeighborPair([["a"], ["b"]], [["a"], ["c"]]),
        NeighborPair(users, others),
    ]


@pytest.mark.parametrize("index", range(5))
def test_the_pair_comes_back_as_it_was(tmp_path: Path, index: int) -> None:
    pair = _pairs()[index]
    path = save_record(tmp_path, replace(RESULT, pair=pair))
    assert _files(tmp_path) == ["audits/audit_x.one.json", "audits/audit_x.one.npz"]
    found = load_result(path).pair
    assert found is not None
    for name in ("left", "right"):
        ours, theirs = getattr(found, name), getattr(pair, name)
        assert ours.dtype == theirs.dtype
        assert ours.tobytes() == theirs.tobytes()
        assert not ours.flags.writeable
    assert (found.user, found.relation, found.recipe) == (pair.user, pair.relation, pair.recipe)
    handed, content = pack(replace(RESULT, pair=pair))
    again = unpack(json.loads(json.dumps(handed)), content)
    assert isinstance(again, AuditResult)
    assert again.pair is not None
    assert again.pair.left.tobytes() == pair.left.tobytes()


def test_a_pair_that_would_not_be_read_again_costs_no_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(content: bytes) -> Any:
        raise ValueError("it holds no pair")

    monkeypatch.setattr(records, "_pairs_from", fails)
    document, content = pack(RESULT)
    assert RESULT.pair is not None
    assert content is None
    assert unpack(document) == RESULT


def test_a_pair_that_is_lost_is_told_and_costs_no_result(tmp_path: Path) -> None:
    path = save_record(tmp_path, RESULT)
    save_run(tmp_path, RUN, [RESULT])
    beside = path.with_suffix(".npz")
    whole = beside.read_bytes()
    other = save_record(tmp_path / "other", replace(RESULT, pair=_pairs()[1])).with_suffix(".npz")
    for content in (whole[:-20], b"", other.read_bytes()):
        beside.write_bytes(content)
        record, problems = load_record(path)
        assert isinstance(record, AuditResult)
        assert record == RESULT
        assert record.pair is None
        assert problems[0].startswith(f"the datasets of audit_x::one in {beside} are lost: it is ")
    beside.unlink()
    run, results, _ = load_run(tmp_path)
    assert results == [RESULT]
    assert run.problems[-1].endswith("are lost: No such file or directory")
    save_record(tmp_path, replace(RESULT, pair=None))
    assert load_record(path) == (RESULT, [])


# --- locks ------------------------------------------------------------------------------------


def test_one_run_at_a_time_writes_into_a_directory(tmp_path: Path) -> None:
    lock = hold(tmp_path, "dpaudit run audits")
    with pytest.raises(StoreError, match="is in use by `dpaudit run audits`, process") as caught:
        hold(tmp_path, "dpaudit run")
    assert f"delete {tmp_path / LOCK}" in str(caught.value)
    assert "since 20" in str(caught.value)
    lock.release()
    hold(tmp_path, "dpaudit run").release()
    assert _files(tmp_path) == []


HOLDS = """
import sys, time; from pathlib import Path; from dpaudit.store import hold
lock = hold(Path({out!r}), "dpaudit run others"); print("held", flush=True); time.sleep(60)
"""


def test_the_lock_of_a_process_that_has_ended_is_free(tmp_path: Path) -> None:
    code = HOLDS.format(out=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(StoreError, match=rf"`dpaudit run others`, process {other.pid} on "):
            hold(tmp_path, "dpaudit run")
        other.kill()
    assert {path.name for path in tmp_path.iterdir()} == {LOCK, HOLDER}
    lock = hold(tmp_path, "dpaudit run")
    assert lock.is_held()
    lock.release()
    assert _files(tmp_path) == []


def test_a_lock_is_lost_with_its_directory(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    first = hold(out, "dpaudit run")
    shutil.rmtree(out)
    assert not first.is_held()
    out.mkdir()
    second = hold(out, "dpaudit run")
    assert not first.is_held()
    first.release()  # this leaves the files of the second run alone
    assert second.is_held()
    with pytest.raises(StoreError, match="in use"):
        hold(out, "dpaudit run")


@pytest.mark.parametrize("words", ["", "[]", "{}", "\xff"])
def test_a_holder_whose_name_is_damaged_holds_all_the_same(tmp_path: Path, words: str) -> None:
    lock = hold(tmp_path, "dpaudit run")
    (tmp_path / HOLDER).write_text(words, encoding="latin-1")
    with pytest.raises(StoreError, match="is in use by a run that left no name"):
        hold(tmp_path, "dpaudit run")
    lock.release()
    hold(tmp_path, "dpaudit run").release()


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not valid UTF-8"):
        check_writable(tmp_path / os.fsdecode(b"\xff"))
    assert _files(tmp_path) == []


# --- the error of a run -----------------------------------------------------------------------


def test_the_family_wise_error_counts_every_audit_and_every_mutant() -> None:
    alone = replace(RESULT, mutants=())
    assert family_wise_error([]) == 0.0
    assert family_wise_error([alone]) == 1e-6
    assert len(RESULT.mutants) > 1  # together, the mutants cost as much as the audit
    spent = sum(mutant.failure_prob for mutant in RESULT.mutants)
    assert 0 < spent <= 1e-6 * (1 + 1e-9)
    assert family_wise_error([RESULT, alone]) == pytest.approx(2e-6 + spent)
    assert family_wise_error([alone] * 2_000_000) == 1.0


def test_power_of_a_computed_mechanism_is_not_shown_by_a_sampled_mutant() -> None:
    with pytest.raises(TypeError, match="must hold mechanisms of"):
        audit(Exact(), PureDP(1.0), PAIR, draws=100, seed=1, mutants=[laplace])


# --- a complete and consistent run ----------------------------------------------------------------


def _stored(out: Path, *results: AuditResult) -> Path:
    for result in results:
        save_record(out, result)
    save_run(out, RUN, results)
    return out


def test_a_whole_run_is_read_like_any_other(tmp_path: Path) -> None:
    _stored(tmp_path, _named("audit_x::a"), _named("audit_x::b"))
    run, results = read_whole_run(tmp_path)
    assert (run, results, []) == load_run(tmp_path)
    assert [result.id for result in results] == ["audit_x::a", "audit_x::b"]


def test_a_run_with_a_file_of_another_run_is_refused_and_nothing_is_moved(tmp_path: Path) -> None:
    _stored(tmp_path, _named("audit_x::a"), _named("audit_x::b"))
    save_record(tmp_path, replace(_named("audit_x::a"), epsilon=replace(RESULT.epsilon, lower=9.0)))
    before = _files(tmp_path)
    with pytest.raises(StoreError, match=r"audit_x\.a\.json does not match results\.json"):
        read_whole_run(tmp_path)
    assert _files(tmp_path) == before
    assert len(load_run(tmp_path)[1]) == 2  # each file by itself is valid


def test_a_whole_run_whose_file_is_cut_off_is_refused_and_nothing_is_set_aside(
    tmp_path: Path,
) -> None:
    path = _stored(tmp_path, _named("audit_x::a")) / "audits" / file_name("audit_x::a")
    path.write_text(path.read_text()[:80])
    before = _files(tmp_path)
    with pytest.raises(StoreError, match="is damaged or cut off"):
        read_whole_run(tmp_path)
    assert _files(tmp_path) == before


def test_pairs_are_the_same_by_what_they_hold() -> None:
    same = NeighborPair([[0.0], [1.0]], [[0.0], [0.0]])
    assert is_same_pair(PAIR, same)
    assert not is_same_pair(PAIR, NeighborPair([[0.0], [1.5]], [[0.0], [0.0]]))
    assert not is_same_pair(PAIR, None)
    assert not is_same_pair(None, None)
