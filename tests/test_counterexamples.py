"""Tests that every counterexample of the stored run can be pasted into a Python prompt."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from dpaudit.ledger.snippets import LINES
from dpaudit.properties import Attempt, Method
from dpaudit.store import load_record
from tests.records import STORED_RUN, needs_a_run

FILES = [] if STORED_RUN is None else sorted((STORED_RUN / "statements").glob("*.json"))
BROKEN = [
    pytest.param(path, id=path.stem)
    for path in FILES
    if '"counterexample": {' in path.read_text(encoding="utf-8")
]
"""Rows with a counterexample. Only the test decodes the row, because that takes longer."""


@pytest.mark.slow
@needs_a_run
@pytest.mark.parametrize("path", BROKEN or [None])
def test_counterexamples_come_as_programs_with_the_same_sides(path: Path) -> None:
    """Check that each counterexample of a row is a program that prints the same two sides."""
    attempts = [attempt for attempt in load_record(path)[0].attempts if attempt.violated]
    assert attempts
    for attempt in attempts:
        check(attempt)


def check(attempt: Attempt) -> None:
    """Check that a counterexample is a program that prints the same two sides.

    For checks by draws, the values of the two sides differ, but their order is the same.
    """
    found = attempt.counterexample
    assert found is not None
    assert attempt.lhs, "what the left side means"
    assert attempt.rhs, "what the right side means"
    assert found.snippet, "no program"
    assert len(found.snippet.splitlines()) <= LINES
    assert "dpaudit" not in found.snippet
    assert "algorithms" not in found.snippet
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(found.snippet, "snippet", "exec"), {})
    lhs, rhs = (float(side) for side in printed.getvalue().splitlines()[-1].split(" > "))
    assert lhs > rhs
    if attempt.method is not Method.MONTE_CARLO:
        assert lhs == pytest.approx(found.lhs, rel=1e-6)
        assert rhs == pytest.approx(found.rhs, rel=1e-6)
