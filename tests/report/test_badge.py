"""Tests of the badge of a run."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from dpaudit import AuditResult, NeighborPair, PureDP, Verdict, audit
from dpaudit.report import badge
from dpaudit.results import Expectation
from dpaudit.store import StoredRun

RUN = StoredRun(
    "quick", 0, 1e-6, "dpaudit run", {}, 1e-6, "2026-01-01T00:00:00", 1.0, complete=True
)
RED, YELLOW, GREEN, GREY = "#b3261e", "#7a5c00", "#1e6e3a", "#555555"
KNOWN = {"verdict": Verdict.REFUTED, "expected": Expectation.REFUTED}
OPEN = {"verdict": Verdict.NOT_REFUTED, "expected": Expectation.EITHER}
LOST = {"verdict": Verdict.NOT_REFUTED, "expected": Expectation.REFUTED}
FINE, BAD = {"verdict": Verdict.NOT_REFUTED}, {"verdict": Verdict.REFUTED}
POWERLESS = {"verdict": Verdict.NO_POWER}


@pytest.fixture(scope="module")
def result() -> AuditResult:
    pair = NeighborPair(np.array([[1.0]]), np.array([[0.0]]))
    return audit(
        lambda data, size, *, rng: rng.random(size),
        PureDP(1.0),
        pair,
        draws=100,
        seed=0,
        mutants=None,
    )


def seen(run: StoredRun, records: list[AuditResult]) -> tuple[str, str]:
    """Return the message and the colour of a badge."""
    root = ElementTree.fromstring(badge(run, records))
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "dpaudit"
    assert root.get("aria-label") == f"dpaudit: {texts[1]}"
    (part,) = root.iter("{http://www.w3.org/2000/svg}path")
    return str(texts[1]), str(part.get("fill"))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([], ("no audits", GREY)),
        ([FINE, FINE, KNOWN], ("2 not refuted", GREEN)),
        ([KNOWN], ("1 known", GREY)),
        ([FINE, OPEN], ("1 open", YELLOW)),
        ([FINE, POWERLESS, POWERLESS, OPEN], ("2 without power", YELLOW)),
        ([FINE, LOST, POWERLESS], ("1 not found again", RED)),
        ([FINE, BAD, LOST, BAD], ("2 refuted", RED)),
    ],
)
def test_the_most_urgent_status_is_shown(
    result: AuditResult, changes: list[dict[str, object]], expected: tuple[str, str]
) -> None:
    assert seen(RUN, [replace(result, **change) for change in changes]) == expected  # type: ignore[arg-type]


def test_equal_words_are_counted_together(result: AuditResult) -> None:
    lazy = replace(result, verdict=Verdict.NO_POWER)
    strict = replace(lazy, expected=Expectation.POWER)
    assert {lazy.status.key, strict.status.key} == {"powerless", "no_power"}
    assert seen(RUN, [lazy, strict, lazy]) == ("3 without power", RED)


def test_a_statement_can_make_a_run_fail(result: AuditResult) -> None:
    fine = replace(result, verdict=Verdict.NOT_REFUTED)
    statement = SimpleNamespace(mismatch="it holds, and refuted was declared")
    assert seen(RUN, [fine, statement]) == ("failed", RED)  # type: ignore[list-item]


def test_a_run_that_is_not_whole_is_never_green(result: AuditResult) -> None:
    fine, bad = (
        replace(result, verdict=Verdict.NOT_REFUTED),
        replace(result, verdict=Verdict.REFUTED),
    )
    stopped = replace(RUN, complete=False)
    assert seen(stopped, [fine]) == ("interrupted", RED)
    assert seen(replace(RUN, problems=("audit_x.py: no",)), [fine]) == ("failed", RED)
    assert seen(stopped, [bad]) == ("1 refuted", RED)
