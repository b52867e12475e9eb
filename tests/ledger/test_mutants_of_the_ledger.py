"""Tests for mistakes that `benchmarks.mutation` planted and that no other test had detected."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpaudit.ledger.paper import Statement
from dpaudit.ledger.rows import LedgerVerdict, StatementResult
from dpaudit.properties.attempt import Attempt, Method, Power, Role, ratio


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


@pytest.mark.parametrize("role", [Role.STATEMENT, Role.REPAIR, Role.STEP])
def test_one_mutant_that_survived_fails_a_row_whatever_others_did(role: Role) -> None:
    killed, survived, none = map(attempt, (Power.KILLED, Power.SURVIVED, Power.NONE))
    made = (killed, replace(survived, role=role), replace(none, role=role))
    stated = Statement("p.a", "p", "lemma", "x <= 1")
    row = StatementResult(stated, LedgerVerdict.HOLDS, Method.PROPERTY, made)
    assert row.power is Power.SURVIVED
    assert row.mismatch == "a mutant survived, so an attempt has no power"


def test_a_row_is_no_truth_value_because_a_refuted_one_would_be_true() -> None:
    stated = Statement("p.a", "p", "lemma", "x <= 1")
    with pytest.raises(TypeError, match="a StatementResult has no truth value"):
        bool(StatementResult(stated, LedgerVerdict.REFUTED))
