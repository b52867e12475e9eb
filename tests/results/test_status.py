"""Tests that compare a verdict with the expected verdict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpaudit import NeighborPair, PureDP, Verdict, audit
from dpaudit.results import Accumulated
from dpaudit.results.verdicts import STATUSES, Expectation, worst


def noisy(data, size, *, rng):
    return data.sum() + rng.laplace(size=size)


RESULT = audit(
    noisy, PureDP(1.0), NeighborPair([[0.0]], [[1.0]]), draws=200, seed=1, mutants=[noisy]
)
FAILING = {"refuted", "no_power", "lost"}


@pytest.mark.parametrize(
    ("verdict", "expected", "mutants", "key"),
    [
        (Verdict.REFUTED, Expectation.NOT_REFUTED, True, "refuted"),
        (Verdict.REFUTED, None, False, "refuted"),
        (Verdict.REFUTED, Expectation.REFUTED, True, "known"),
        (Verdict.REFUTED, Expectation.EITHER, True, "known"),
        (Verdict.NOT_REFUTED, Expectation.REFUTED, True, "lost"),
        (Verdict.NO_POWER, Expectation.REFUTED, False, "lost"),
        (Verdict.NOT_REFUTED, Expectation.EITHER, True, "open"),
        (Verdict.NO_POWER, Expectation.EITHER, True, "open"),
        (Verdict.NO_POWER, Expectation.NOT_REFUTED, True, "no_power"),
        (Verdict.NO_POWER, None, False, "powerless"),
        (Verdict.NOT_REFUTED, Expectation.NOT_REFUTED, True, "not_refuted"),
    ],
)
def test_outcome_of_an_audit(verdict, expected, mutants, key):
    assert RESULT.mutants
    result = replace(
        RESULT, verdict=verdict, expected=expected, mutants=RESULT.mutants if mutants else ()
    )
    assert result.status is STATUSES[key]
    assert (result.mismatch is not None) == (key in FAILING)


def test_the_worst_outcome_comes_first():
    fine = replace(RESULT, verdict=Verdict.NOT_REFUTED)
    bad = replace(RESULT, verdict=Verdict.REFUTED)
    assert worst(r.status for r in (fine, bad, fine)).key == "refuted"
    assert next(iter(STATUSES)) == "refuted"
    assert not any("passed" in o.word.lower() for o in STATUSES.values())
    assert np.all([len(o.meaning) > 20 for o in STATUSES.values()])


def test_the_evidence_of_all_runs_fails_an_audit_that_is_no_known_violation():
    kept = replace(RESULT, verdict=Verdict.NOT_REFUTED, expected=None)
    for log, key in ((14.4, "not_refuted"), (14.5, "history")):
        found = replace(kept, accumulated=Accumulated(5, 1, log, 14.5, True))
        assert found.status.key == key
        assert (found.mismatch is None) is (key == "not_refuted")
    with pytest.raises(AssertionError, match="REFUTED \\(history\\)"):
        found.assert_not_refuted()
    assert replace(found, expected=Expectation.REFUTED).status.key != "history"
