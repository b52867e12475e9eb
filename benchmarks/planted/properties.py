"""Mistakes planted in the search for counterexamples."""

from __future__ import annotations

from benchmarks.planted.mutant import Mutant

JUDGING = (
    "tests/ledger/test_mutants_of_the_ledger.py",
    "tests/properties/test_judging.py",
    "tests/ledger/test_ledger.py",
)
SEARCHES = (*JUDGING, "tests/ledger/test_attempts.py")

MUTANTS = (
    Mutant(
        "properties/judging.py",
        "NaN does not violate an exact claim",
        "broken = not lhs <= rhs",
        "broken = lhs > rhs",
        JUDGING,
    ),
    Mutant(
        "properties/judging.py",
        "rounding violates a claim",
        "return tight, left, right, tight > 1.0 + self.tolerance",
        "return tight, left, right, tight > 1.0",
        JUDGING,
    ),
    Mutant(
        "properties/judging.py",
        "NaN is ignored",
        "return inequality if self.nan_breaks else None",
        "return None",
        JUDGING,
    ),
    Mutant(
        "properties/falsifying.py",
        "a mutant that survives its own search is killed",
        "again(other).counterexample is not None",
        "again(other).judged > 0",
        SEARCHES,
    ),
    Mutant(
        "properties/falsifying.py",
        "the search leaves the unit cube",
        "return np.clip(there, 0.0, 1.0)",
        "return there",
        SEARCHES,
    ),
    Mutant(
        "properties/falsifying.py",
        "a simplified case need not violate the claim",
        "if scratch.breaking is trial:",
        "if scratch.breaking is not None or trial:",
        SEARCHES,
    ),
    Mutant(
        "properties/domains.py",
        "in the first corners, all parts lie at one end",
        "moved = range(len(spans) // 2 + 1)",
        "moved = range(1)",
        ("tests/properties/test_falsifiers.py", "tests/ledger/test_ledger.py"),
    ),
    Mutant(
        "properties/attempt.py",
        "neighbouring doubles have the ratio 1",
        "return max(found, math.nextafter(1.0, 2.0)) if lhs > rhs else found",
        "return found",
        JUDGING,
    ),
)
