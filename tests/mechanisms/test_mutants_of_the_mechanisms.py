"""Tests for mistakes that `benchmarks.mutation` planted and that no other test had detected."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.errors import MechanismError, MechanismTimeout
from dpaudit.mechanisms.independence import FALSE_REFUSAL, IndependenceCheck
from dpaudit.mechanisms.watch import Watch


def test_a_refusal_waits_for_the_evidence_that_its_probability_needs() -> None:
    """Check that a refusal waits for the evidence that its probability needs.

    A repeated call is one coin toss for two calls, so the evidence grows slowly.
    """
    needed = math.log(4 / FALSE_REFUSAL)
    check, calls = IndependenceCheck("copies"), np.array([0.1, 0.2, 0.3, 0.4])
    evidence: list[float] = []
    for _ in range(120):
        check.add(calls, np.zeros((1, 4), dtype=bool))
        evidence.append(check.log_evidence)
        if check.log_evidence > needed:
            break
        check.judge()
    assert sum(x > needed / 2.3 for x in evidence) > 5  # a limit to base 10 would be met here
    with pytest.raises(MechanismError, match="ignores rng"):
        check.judge()


def test_the_time_of_an_audit_runs_out() -> None:
    watch, other = Watch(time_limit=100.0), Watch(time_limit=100.0)
    watch.begun, other.begun = watch.begun - 101.0, other.begun - 1.0
    with pytest.raises(MechanismTimeout, match="more than time_limit = 100 s"), watch.call("slow"):
        pytest.fail("it was called")
    with other.call("quick"):
        pass
