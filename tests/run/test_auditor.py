"""Tests of the fixture of an audit function.

The tests cover settings of the run, and margins stored with the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit import NeighborPair, PureDP, Settings, noise_margin
from dpaudit.run.auditor import Auditor
from dpaudit.run.settings import RunSettings

PAIR = NeighborPair([[0.0]], [[1.0]])


def laplace_with(scale: float) -> Any:
    def mechanism(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return data.sum() + rng.laplace(scale=scale, size=size)

    return mechanism


def test_a_margin_is_stored_with_the_check_that_it_is_of() -> None:
    auditor = Auditor("audit_x::one", RunSettings())
    first = auditor.check(laplace_with(2.0), PureDP(1.0), PAIR, draws=2000, mutants=None)
    second = auditor.check(laplace_with(4.0), PureDP(0.5), PAIR, draws=2000, mutants=None)
    less = {0.1: laplace_with(0.2)}
    found = auditor.noise_margin(first, less)
    assert found.diagnostics.noise_margin == noise_margin(first, PureDP(1.0), less)
    assert auditor.results == [found, second]
    assert found.total_failure_prob == pytest.approx(2e-6)  # the check and its margin


def test_what_is_no_result_of_this_auditor_is_refused() -> None:
    auditor, other = (Auditor("audit_x::one", RunSettings()) for _ in "12")
    theirs = other.check(laplace_with(2.0), PureDP(1.0), PAIR, draws=200, mutants=None)
    for result in (theirs, None, 3):
        with pytest.raises(ValueError, match="^result must be a result that check"):
            auditor.noise_margin(result, {0.5: laplace_with(1.0)})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="^settings must be dpaudit.Settings"):
        auditor.check(laplace_with(2.0), PureDP(1.0), PAIR, settings=5)  # type: ignore[arg-type]
    assert auditor.results == []


def test_the_run_decides_what_the_settings_of_a_check_leave_open() -> None:
    seen: list[int] = []

    class Writer:
        def begin(self, id: str, time_limit: float | None = None) -> None:
            assert time_limit == 30.0

        def report_progress(self, done: int, total: int) -> None:
            raise AssertionError("the check has a progress of its own")

        def end(self) -> None:
            seen.append(-1)

    auditor = Auditor("audit_x::one", RunSettings(time_limit=30.0), progress=Writer())  # type: ignore[arg-type]
    own = Settings(progress=lambda done, total, stage: seen.append(done))
    auditor.check(laplace_with(2.0), PureDP(1.0), PAIR, draws=200, mutants=None, settings=own)
    assert seen[-1] == -1
    assert max(seen) == 400
