"""Results on disk: atomic, versioned, and set aside when damaged."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, NeighborPair, PureDP, StoreError, audit
from dpaudit.ledger.coverage import open_row
from dpaudit.ledger.rows import (
    Attempt,
    Counterexample,
    LedgerVerdict,
    Method,
    Power,
    Repair,
    StatementResult,
)
from dpaudit.ledger.statements import Statement
from dpaudit.store.files import (
    Run,
    check_writable,
    family_wise_error,
    file_name,
    is_statement,
    load_finished,
    load_finished_statement,
    load_result,
    load_run,
    load_statement,
    save_result,
    save_run,
    save_statement,
    statement_file,
    write_atomic,
)

PAIR = NeighborPair([[0.0], [1.0]], [[0.0], [0.0]])


def laplace(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    return data.sum() + rng.laplace(size=size)


class Exact:
    def pmf(self, data: Any) -> Any:
        return [0.5, 0.5]


RESULT = audit(laplace, PureDP(1.0), PAIR, draws=100, seed=1, mutant=laplace, id="audit_x::one")
RUN = Run(
    profile="quick",
    seed=1,
    failure_prob=1e-5,
    command="dpaudit run",
    versions={"numpy": "2"},
    family_wise_error=2e-5,
    started="2025-01-01T00:00:00+00:00",
    seconds=1.5,
    problems=("one problem",),
)


def _named(name: str, fingerprint: str = "f") -> AuditResult:
    return replace(RESULT, id=name, origin={"fingerprint": fingerprint})


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
        save_result(tmp_path / "file", RESULT)
    (tmp_path / "results.json").mkdir()
    with pytest.raises(StoreError, match="cannot write"):
        save_run(tmp_path, RUN, [])
    assert _files(tmp_path) == ["file"]


# --- reading ----------------------------------------------------------------------------------


def test_results_come_back_as_they_were(tmp_path: Path) -> None:
    path = save_result(tmp_path, RESULT)
    assert path == tmp_path / "audits" / "audit_x.one.json"
    assert load_result(path) == RESULT
    named = _named("prüfung::δ [漢字]")
    assert load_result(save_result(tmp_path, named)) == named


def test_runs_come_back_as_they_were(tmp_path: Path) -> None:
    results = [_named("b"), _named("a")]
    for result in results:
        save_result(tmp_path, result)
    save_run(tmp_path, RUN, results)
    run, loaded, statements = load_run(tmp_path)
    assert loaded == results
    assert statements == []
    assert run == replace(RUN, audits=("b.json", "a.json"))
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
    "nothing inside": (b'{"schema": 4}', "not a|does not hold a run"),
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
    path = save_result(tmp_path, RESULT)
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
    path = save_result(tmp_path, RESULT)
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
    path = save_result(tmp_path, RESULT)
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(StoreError):
        load_result(path)


def test_a_run_sets_damaged_results_aside_and_says_so(tmp_path: Path) -> None:
    results = [_named(name) for name in ("a", "b", "c")]
    for result in results:
        save_result(tmp_path, result)
    save_run(tmp_path, RUN, results)
    broken = tmp_path / "audits" / "b.json"
    broken.write_text("{")
    (tmp_path / "audits" / "c.json").unlink()
    run, loaded, _ = load_run(tmp_path)
    assert loaded == results[:1]
    assert len(run.problems) == 3
    assert run.problems[0] == "one problem"
    assert "damaged or cut off" in run.problems[1]
    assert run.problems[1].endswith("set aside as b.corrupt")
    assert "cannot read" in run.problems[2]
    assert _files(tmp_path / "audits") == ["a.json", "b.corrupt"]


def test_results_are_only_read_from_their_own_directory(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("{}")
    save_run(tmp_path, RUN, [])
    path = tmp_path / "results.json"
    data = json.loads(path.read_text())
    data["run"]["audits"] = ["../secret.json"]
    path.write_text(json.dumps(data))
    _, loaded, _ = load_run(tmp_path)
    assert loaded == []
    assert (tmp_path / "secret.json").exists()


# --- statements ---

BREACH = Counterexample({"points": [[0.5, math.inf]], "n": 3}, math.inf, 2.0, exact=True)
ATTACK = Attempt("a claim", Method.PROPERTY, 300, 12, math.inf, {"n": 3}, BREACH)
STOOD = Attempt("repaired", Method.EXACT, 9, 0, 0.5, {"n": 1}, None, Power.KILLED, "halved")
ROW = StatementResult(
    "p.lemma1",
    "paper",
    "lemma",
    "x <= y",
    LedgerVerdict.REFUTED,
    Method.PROPERTY,
    (ATTACK,),
    Repair("x <= 2 y", (STOOD,)),
    "a note",
    1.5,
    3,
    LedgerVerdict.REFUTED,
    {"kind": "statement", "fingerprint": "f"},
)
OPEN = open_row(Statement("p.lemma2", "paper", "lemma", "y <= z"), "No check was written yet.")


def _checked(name: str, fingerprint: str = "f") -> StatementResult:
    return replace(ROW, id=name, origin={"kind": "statement", "fingerprint": fingerprint})


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    path = save_statement(tmp_path, ROW)
    assert path == tmp_path / "statements" / "p.lemma1.json"
    assert load_statement(path) == ROW
    assert is_statement(path)
    assert not is_statement(save_result(tmp_path, RESULT))


@pytest.mark.parametrize("name", IDS)
def test_files_of_statements_are_safe_anywhere(name: str) -> None:
    found = statement_file(name)
    assert Path(found).name == found
    assert found.isascii()
    assert not set(found) & set('/\\:*?"<>| \n')
    assert len(found) < 150


def test_plain_ids_are_the_names_of_their_files() -> None:
    assert statement_file("gm.lemma14.xiK") == "gm.lemma14.xiK.json"
    assert statement_file("gm.é") != statement_file("gm.è")


def test_a_run_holds_a_row_for_each_statement_in_the_order_of_the_paper(tmp_path: Path) -> None:
    rows = [OPEN, _checked("p.b"), replace(OPEN, id="p.c"), _checked("p.a")]
    for row in rows:
        if row.origin:
            save_statement(tmp_path, row)
    save_run(tmp_path, RUN, [], rows)
    run, _, loaded = load_run(tmp_path)
    assert loaded == rows
    assert run.statements == ("p.b.json", "p.a.json")
    document = json.loads((tmp_path / "results.json").read_text())
    assert [row["id"] for row in document["statements"]] == ["p.lemma2", "p.b", "p.c", "p.a"]
    assert set(document["statements"][1]) == {
        "id", "paper", "kind", "statement", "verdict", "method", "examples", "tightest",
        "counterexample", "repair", "repair_verdict", "note", "seconds", "power", "weak",
    }  # fmt: skip
    assert document["statements"][1]["counterexample"]["lhs"] == "inf"


def test_a_row_whose_file_is_damaged_stays_and_is_open(tmp_path: Path) -> None:
    rows = [_checked("p.a"), _checked("p.b"), OPEN]
    for row in rows[:2]:
        save_statement(tmp_path, row)
    save_run(tmp_path, RUN, [], rows)
    damaged = tmp_path / "statements" / "p.b.json"
    damaged.write_text(damaged.read_text()[:-30])
    run, _, loaded = load_run(tmp_path)
    assert [row.verdict for row in loaded] == ["refuted", "open", "open"]
    assert loaded[1].note == "not run: what was found is lost"
    assert loaded[1].statement == "x <= y"
    assert run.problems[-1].endswith("set aside as p.b.corrupt")
    assert damaged.with_suffix(".corrupt").exists()


def test_a_run_without_statements_is_of_an_earlier_version(tmp_path: Path) -> None:
    save_run(tmp_path, RUN, [])
    path = tmp_path / "results.json"
    document = json.loads(path.read_text())
    del document["statements"], document["run"]["statements"]
    path.write_text(json.dumps(document))
    with pytest.raises(StoreError, match="does not hold a run"):
        load_run(tmp_path)
    path.write_text(json.dumps({**document, "schema": 2}))
    with pytest.raises(StoreError, match="has schema 2, .* run `dpaudit run` again"):
        load_run(tmp_path)


@pytest.mark.parametrize("row", [3, {}, {"id": 3}, {**OPEN.row(), "note": None}])
def test_odd_rows_are_not_trusted(tmp_path: Path, row: Any) -> None:
    save_run(tmp_path, RUN, [])
    path = tmp_path / "results.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "statements": [row]}))
    with pytest.raises(StoreError, match="does not hold a run"):
        load_run(tmp_path)


def test_a_finished_row_is_taken_over_with_its_fingerprint_only(tmp_path: Path) -> None:
    save_statement(tmp_path, ROW)
    assert load_finished_statement(tmp_path, "p.lemma1", "f") == (ROW, [])
    assert load_finished_statement(tmp_path, "p.lemma1", "other") == (None, [])
    assert load_finished_statement(tmp_path, "p.lemma9", "f") == (None, [])
    save_statement(tmp_path, replace(ROW, verdict=LedgerVerdict.OPEN))
    assert load_finished_statement(tmp_path, "p.lemma1", "f") == (None, [])
    path = tmp_path / "statements" / "p.lemma1.json"
    path.write_text("{")
    found, lost = load_finished_statement(tmp_path, "p.lemma1", "f")
    assert found is None
    assert lost[0].endswith("set aside as p.lemma1.corrupt")


def test_a_statement_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    check_writable(tmp_path)
    assert not (tmp_path / "statements").exists()
    (tmp_path / "statements").write_text("in the way")
    with pytest.raises(StoreError, match="statements: it is a file"):
        check_writable(tmp_path)


# --- resuming ---------------------------------------------------------------------------------


def test_finished_checks_are_found_in_order(tmp_path: Path) -> None:
    checks = [
        _named(name).with_origin({"fingerprint": "f", "checks": 3}, None)
        for name in ("m::f", "m::f#2", "m::f#3")
    ]
    for result in [*checks, _named("m::f#5"), _named("m::g")]:
        save_result(tmp_path, result)
    assert load_finished(tmp_path, "m::f", "f") == (checks, [])
    assert load_finished(tmp_path, "m::f", "other") == ([], [])
    assert load_finished(tmp_path, "m::h", "f") == ([], [])


def test_a_function_that_was_cut_off_between_its_checks_is_not_taken_over(tmp_path: Path) -> None:
    save_result(tmp_path, _named("m::f").with_origin({"fingerprint": "f", "checks": 2}, None))
    assert load_finished(tmp_path, "m::f", "f") == ([], [])


def test_a_damaged_check_undoes_the_whole_function(tmp_path: Path) -> None:
    for name in ("m::f", "m::f#2"):
        save_result(tmp_path, _named(name))
    damaged = tmp_path / "audits" / file_name("m::f#2")
    damaged.write_text("")
    results, lost = load_finished(tmp_path, "m::f", "f")
    assert results == []
    assert len(lost) == 1
    assert not damaged.exists()
    assert damaged.with_suffix(".corrupt").exists()


# --- the error of a run -----------------------------------------------------------------------


def test_the_family_wise_error_counts_every_audit_and_every_mutant() -> None:
    alone = replace(RESULT, mutant=None)
    assert family_wise_error([]) == 0.0
    assert family_wise_error([alone]) == 1e-6
    assert family_wise_error([RESULT, alone]) == pytest.approx(3e-6)
    assert family_wise_error([alone] * 2_000_000) == 1.0


def test_power_of_a_computed_mechanism_is_not_shown_by_a_sampled_mutant() -> None:
    with pytest.raises(TypeError, match="must be of one kind"):
        audit(Exact(), PureDP(1.0), PAIR, draws=100, seed=1, mutant=laplace)
