"""Tests that results do not depend on the process that draws.

The tests use workers, Dask and xdist, for all kinds of outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpaudit import PureDP, Settings, audit
from dpaudit.mechanisms import Cluster, Processes, Workers
from dpaudit.store import load_run
from tests.mechanisms.catalogue import KINDS, Case
from tests.records import plain
from tests.run.conftest import Home

CLAIM = PureDP(0.5)
FEW = (
    "scalar",
    "text",
    "list of texts",
    "matrix",
    "dict",
    "of a frame",
    "integer seed",
    "errors",
    "exact",
    "additive noise",
    "sequential",
)
"""One case of each form of output, data and audit, for tests that apply to all kinds."""
SETTINGS: dict[str, Any] = {"draws": 300, "seed": 1}


@pytest.fixture(scope="module")
def processes() -> Iterator[Workers]:
    workers = Processes(2)
    yield workers
    workers.close()


@pytest.fixture(scope="module")
def others() -> Iterator[dict[str, Workers]]:
    pytest.importorskip("distributed")
    made: dict[str, Workers] = {
        "4 workers": Processes(4),
        "Dask": Cluster("local", timeout=60),
    }
    yield made
    for workers in made.values():
        workers.close()


@pytest.mark.sampled
@pytest.mark.parametrize("kind", KINDS)
def test_two_processes_draw_what_one_draws(processes: Workers, kind: str) -> None:
    """Check that two processes draw the same as one process.

    Some kinds of outputs have mutants, which are sent like their mechanism.
    """
    options = {} if kind in FEW else {"mutants": None}
    alone = _audit(KINDS[kind], kind, **options)
    shared = _audit(KINDS[kind], kind, **options, settings=Settings(workers=processes))
    assert plain(shared) == plain(alone)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_who_draws_changes_nothing(others: dict[str, Workers], kind: str) -> None:
    case = KINDS[kind]
    alone = _audit(case, kind)
    for name, workers in others.items():
        assert plain(_audit(case, kind, settings=Settings(workers=workers))) == plain(alone), name


def _audit(case: Case, kind: str, **options: Any) -> Any:
    asked = {**SETTINGS, **case.options, **options}
    return audit(case.mechanism, CLAIM, case.pair, id=kind, **asked)


AUDITS = """
import pytest
from dpaudit import PureDP
from tests.mechanisms.catalogue import KINDS
from tests.mechanisms.test_parity import FEW

@pytest.mark.known_violation("which verdict it has is not asked here", profile="release")
@pytest.mark.parametrize("kind", FEW)
def audit_kind(auditor, kind):
    case = KINDS[kind]
    auditor.check(case.mechanism, PureDP(0.5), case.pair, **{"draws": 300, **case.options})
"""


@pytest.mark.slow
def test_processes_of_a_run_change_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path).write(audit_kinds=AUDITS)
    here, shared = (
        _stored(home, name, *options)
        for name, options in {
            "here": ("--jobs", "0"),
            "shared": ("--jobs", "2", "--workers", "2"),
        }.items()
    )
    assert len(here) == len(FEW)
    assert shared == here


def _stored(home: Home, out: str, *options: str) -> dict[str, dict[str, Any]]:
    done = home.dpaudit_process("run", "audit_kinds.py", "--out", out, *options)
    assert done.code == 0, done.out + done.err
    return {result.id: plain(result) for result in load_run(home.path / out)[1]}
