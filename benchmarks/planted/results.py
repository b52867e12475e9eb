"""Mistakes planted in what an audit reports."""

from __future__ import annotations

from benchmarks.planted.mutant import Mutant

MUTANTS = (
    Mutant(
        "results/mutants.py",
        "a noise is noticed where any of its mutants was killed",
        "judged = [m for m in mutants if m.certain and m.status is not MutantStatus.NOT_RUN]",
        "judged = [m for m in mutants if m.status is not MutantStatus.NOT_RUN]",
        ("tests/results/test_mutants.py",),
    ),
)
