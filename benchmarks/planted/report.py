"""Mistakes planted in the pages."""

from __future__ import annotations

from benchmarks.planted.mutant import Mutant

PAGE = ("tests/report/test_ledger_page.py",)

MUTANTS = (
    Mutant(
        "report/erratum.py",
        "the least harmful comes first",
        "harm = len(order) if row.harm is None else order.index(row.harm)",
        "harm = -1 if row.harm is None else -order.index(row.harm)",
        PAGE,
    ),
)
