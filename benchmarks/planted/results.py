"""Mistakes planted in the results of an audit."""

from __future__ import annotations

from benchmarks.planted.mutant import Mutant

MUTANTS = (
    Mutant(
        "results/mutants.py",
        "mutants of the code show power",
        "if m.status is not MutantStatus.NOT_RUN and not m.kind]",
        "if m.status is not MutantStatus.NOT_RUN]",
        ("tests/engine/test_mutation.py",),
    ),
    Mutant(
        "results/mutants.py",
        "a noise source counts as detected if any of its mutants was refuted",
        "judged = [m for m in mutants if m.certain and m.status is not MutantStatus.NOT_RUN]",
        "judged = [m for m in mutants if m.status is not MutantStatus.NOT_RUN]",
        ("tests/results/test_mutants.py",),
    ),
)
