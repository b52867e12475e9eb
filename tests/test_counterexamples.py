"""Tests that every counterexample of the stored run can be pasted into a Python prompt."""

from __future__ import annotations

import contextlib
import io

import pytest

from dpaudit.ledger.snippets import LINES
from dpaudit.properties import Attempt, Method
from dpaudit.store import load_record
from tests.records import STORED_RUN, needs_a_run

FILES = [] if STORED_RUN is None else sorted((STORED_RUN / "statements").glob("*.json"))
ROWS = [load_record(path)[0] for path in FILES]
BROKEN = [
    pytest.param(attempt, id=f"{row.id}-{number}")
    for row in ROWS
    for number, attempt in enumerate(row.attempts)
    if attempt.violated
]


@needs_a_run
@pytest.mark.parametrize("attempt", BROKEN or [None])
def test_a_counterexample_comes_as_a_program_with_the_same_sides(attempt: Attempt) -> None:
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
