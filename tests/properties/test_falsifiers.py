"""Tests that the ledger finds typical mistakes of papers, in the benchmark with one seed."""

from __future__ import annotations

from benchmarks.falsifiers import PLANTED, evolution
from dpaudit.ledger.attempts import EXAMPLES


def test_at_least_23_of_24_planted_mistakes_are_found_within_the_quick_budget():
    assert len(PLANTED) == 24
    found = [planted.name for planted in PLANTED if evolution(planted, 0, EXAMPLES["quick"])]
    assert len(found) >= 23
