"""Tests for mistakes that `benchmarks.mutation` planted and no other test had found."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpaudit.ledger.rows import (
    Attempt,
    LedgerVerdict,
    Method,
    Power,
    Repair,
    StatementResult,
    ratio,
)


@given(st.floats(1e-300, 1e300))
@example(math.nextafter(2.0, 0.0))
def test_the_ratio_exceeds_1_wherever_the_claim_fails(rhs: float) -> None:
    lhs = math.nextafter(rhs, math.inf)
    assert ratio(lhs, rhs) > 1
    assert ratio(-rhs, -lhs) > 1
    assert ratio(rhs, lhs) <= 1
    assert ratio(-lhs, -rhs) <= 1


def attempt(power: Power) -> Attempt:
    return Attempt("x <= 1", Method.PROPERTY, 100, tightest=0.9, power=power)


@pytest.mark.parametrize("in_repair", [False, True])
def test_one_mutant_that_survived_fails_a_row_whatever_others_did(in_repair: bool) -> None:
    made = (attempt(Power.KILLED), attempt(Power.SURVIVED), attempt(Power.NONE))
    row = StatementResult(
        "p.a",
        "p",
        "lemma",
        "x <= 1",
        LedgerVerdict.HOLDS,
        Method.PROPERTY,
        made[:1] if in_repair else made,
        Repair("x <= 1", made[1:]) if in_repair else None,
    )
    assert row.power is Power.SURVIVED
    assert row.mismatch == "a mutant survived, so an attempt has no power"
