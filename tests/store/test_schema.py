"""Tests of the published JSON Schema of ``results.json``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import dpaudit.store
from dpaudit import ApproxDP, AuditResult, GaussianDP, NeighborPair, PureDP, Verdict, audit
from dpaudit.claims import Claim
from dpaudit.results import Expectation, MutantStatus
from dpaudit.store import RESULTS, StoredRun, save_record
from dpaudit.store.runs import RUN_SCHEMA, save_run

SCHEMA = json.loads(
    (Path(dpaudit.store.__file__).parent / "results.schema.json").read_text(encoding="utf-8")
)
REFERENCE = Path(__file__).parents[2] / "reports" / "reference" / RESULTS
AUDIT = SCHEMA["properties"]["audits"]["items"]
PAIR = NeighborPair(np.array([[1.0]]), np.array([[0.0]]))


def faults(data: Any) -> list[str]:
    return [fault.json_path for fault in Draft202012Validator(SCHEMA).iter_errors(data)]


def noisy(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    return data.sum() + rng.laplace(size=size)


def leaking(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    return np.full(size, data.sum())


@pytest.fixture(scope="module")
def results() -> list[AuditResult]:
    claims: Iterator[tuple[Any, Claim]] = iter(
        [(noisy, PureDP(1.0)), (noisy, GaussianDP(1.0)), (leaking, ApproxDP(0.5, 0.1))]
    )
    return [
        audit(mechanism, claim, PAIR, draws=1000, seed=0, id=f"audit {n}")
        for n, (mechanism, claim) in enumerate(claims)
    ]


@pytest.fixture(scope="module")
def stored(results: list[AuditResult], tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("run")
    for result in results:
        save_record(out, result)
    run = StoredRun("quick", 0, 1e-6, "dpaudit run", {"numpy": "2"}, 1e-5, "2026-01-01", 1.0)
    save_run(out, run, results)
    return json.loads((out / RESULTS).read_text(encoding="utf-8"))


def test_the_schema_is_valid() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.slow
def test_a_run_follows_the_schema(stored: Any) -> None:
    assert [row["verdict"] for row in stored["audits"]][2] == "refuted"
    assert faults(stored) == []


def test_the_reference_run_follows_the_schema() -> None:
    reference = json.loads(REFERENCE.read_text(encoding="utf-8"))
    assert reference["audits"]
    assert reference["statements"]
    assert faults(reference) == []


def test_the_schema_names_every_field(results: list[AuditResult], stored: Any) -> None:
    assert SCHEMA["properties"]["schema"] == {"const": RUN_SCHEMA}
    assert set(SCHEMA["properties"]) == set(stored)
    assert list(AUDIT["properties"]) == [*results[0].row(), "stored"]
    run = SCHEMA["properties"]["run"]["properties"]
    assert set(run) == {field.name for field in fields(StoredRun)}
    assert set(AUDIT["properties"]["verdict"]["enum"]) == set(Verdict)
    assert set(AUDIT["properties"]["expected"]["enum"]) == {*Expectation, None}
    status = AUDIT["properties"]["mutants"]["items"]["properties"]["status"]
    assert set(status["enum"]) == set(MutantStatus)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("verdict", "passed"),
        ("certified_epsilon", "nan"),
        ("certified_epsilon", None),
        ("p_value", 1.5),
        ("seed", -1),
        ("draws", {"certify": 0.5}),
        ("claim", {}),
        ("extra", 1),
    ],
)
def test_a_wrong_row_is_a_fault(stored: Any, name: str, value: Any) -> None:
    row = {**stored["audits"][0], name: value}
    assert len(faults({**stored, "audits": [row]})) >= 1


def test_a_missing_field_is_a_fault(stored: Any) -> None:
    for name in AUDIT["properties"]:
        row = {key: value for key, value in stored["audits"][0].items() if key != name}
        assert faults({**stored, "audits": [row]}) == ["$.audits[0]"], name
