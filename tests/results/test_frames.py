"""Tests of results as rows of a DataFrame."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pytest

from dpaudit import (
    AdditiveNoise,
    ApproxDP,
    ArgumentError,
    AuditResult,
    GaussianDP,
    NeighborPair,
    PureDP,
    StoreError,
    audit,
    audit_one_run,
    audit_outputs,
)
from dpaudit.results import Expectation
from dpaudit.store import StoredRun, load_frame, save_record
from dpaudit.store.runs import save_run

PAIR = NeighborPair(np.array([[1.0]]), np.array([[0.0]]))


def noisy(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    return data.sum() + rng.laplace(size=size)


def total(data: Any) -> Any:
    return data.sum()


def words(data: Any, size: int, *, rng: np.random.Generator) -> list[str]:
    return ["yes" if coin else "no" for coin in rng.random(size) < 0.5]


@pytest.fixture(scope="module")
def results() -> list[AuditResult]:
    refuted = audit(noisy, PureDP(0.1), PAIR, draws=2000, seed=2**70, id="refuted")
    holds = audit(noisy, ApproxDP(1.0, 0.1), PAIR, draws=1000, seed=3, mutants=None, id="holds")
    holds = replace(holds, expected=Expectation.EITHER, detectable_epsilon=math.inf)
    return [refuted, holds]


@pytest.fixture
def run(results: list[AuditResult], tmp_path: Path) -> Path:
    for result in results:
        save_record(tmp_path, result)
    stored = StoredRun("quick", 0, 1e-6, "dpaudit run", {}, 4e-6, "2026-01-01T00:00:00", 1.0)
    save_run(tmp_path, stored, results)
    return tmp_path


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_each_library_holds_the_same_numbers(
    results: list[AuditResult], run: Path, library: str
) -> None:
    frame = nw.from_native(load_frame(run, library=library))
    assert frame.implementation.value == library
    assert frame["id"].to_list() == ["refuted", "holds"]
    assert frame["verdict"].to_list() == [result.verdict.value for result in results]
    assert frame["claim"].to_list()[0] == "epsilon = 0.1"
    assert frame["certified_epsilon"].to_list() == [r.certified_epsilon for r in results]
    assert frame["claimed_delta"].to_list() == [0.0, 0.1]
    assert frame["draws"].to_list() == [2000, 1000]
    assert frame["seed"].to_list() == [str(2**70), "3"]
    assert frame["detectable_epsilon"].to_list()[1] == math.inf
    killed = sum(m.status.value == "killed" for m in results[0].mutants)
    assert frame["mutants_killed"].to_list() == [killed, 0]
    assert frame["expected"].is_null().to_list() == [True, False]
    assert frame["mutation_score"].is_null().to_list()[1]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_types_do_not_depend_on_missing_values(results: list[AuditResult], library: str) -> None:
    first, last = (nw.from_native(r.to_frame(library=library)) for r in results)
    assert first.shape == last.shape == (1, len(first.columns))
    for name, kind in last.schema.items():
        assert kind.is_numeric() == first.schema[name].is_numeric(), name


@pytest.mark.slow
def test_every_kind_of_result_has_a_row() -> None:
    rng = np.random.default_rng(0)
    included = rng.random(60) < 0.5
    kinds = [
        audit_one_run(included + rng.normal(size=60), included, GaussianDP(1.0), failure_prob=0.05),
        audit_outputs(rng.normal(1, 1, 500), rng.normal(0, 1, 800), PureDP(1.0), seed=0),
        audit(
            AdditiveNoise(total, noise="laplace", scale=1.0), PureDP(1.0), PAIR, draws=200, seed=0
        ),
        audit(words, PureDP(1.0), PAIR, draws=200, seed=0, mutants=None),
    ]
    for result in kinds:
        (row,) = nw.from_native(result.to_frame(library="polars")).rows(named=True)
        assert row["certified_epsilon"] == result.certified_epsilon
        assert row["draws"] == sum(result.draws.values())


def test_another_library_is_an_error(results: list[AuditResult]) -> None:
    with pytest.raises(ArgumentError, match="library must be .*pandas.*got 'os'"):
        results[0].to_frame(library="os")


def test_a_library_that_is_missing_is_an_error(
    results: list[AuditResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ArgumentError, match=r"got 'polars'\. Run pip install polars"):
        results[0].to_frame(library="polars")


def test_a_lost_audit_is_an_error_and_changes_no_file(run: Path) -> None:
    (stored, *_) = sorted(run.glob("audits/*.json"))
    stored.write_text("{", encoding="utf-8")
    before = sorted(run.rglob("*"))
    with pytest.raises(StoreError, match=stored.name):
        load_frame(run)
    assert sorted(run.rglob("*")) == before


def test_a_run_without_audits_has_all_columns(results: list[AuditResult], tmp_path: Path) -> None:
    stored = StoredRun("quick", 0, 1e-6, "dpaudit run", {}, 0.0, "2026-01-01T00:00:00", 1.0)
    save_run(tmp_path, stored, [])
    frame = load_frame(tmp_path)
    assert len(frame) == 0
    assert list(frame.columns) == list(results[0].to_frame().columns)
