"""Mistakes planted in the verdicts on statements."""

from __future__ import annotations

from benchmarks.planted.mutant import Mutant

ROWS = "tests/ledger/test_mutants_of_the_ledger.py"
JUDGING = (ROWS, "tests/properties/test_judging.py", "tests/ledger/test_ledger.py")
LEDGER = (
    ROWS,
    "tests/ledger/test_attempts.py",
    "tests/ledger/test_ledger.py",
    "tests/properties/test_judging.py",
    "tests/ledger/test_paper.py",
)

MUTANTS = (
    Mutant(
        "ledger/rows.py",
        "a mutant that survived one attempt of several counts as killed",
        "if Power.SURVIVED in powers:",
        "if powers == {Power.SURVIVED}:",
        LEDGER,
    ),
    Mutant(
        "ledger/rows.py",
        "a claim holds although an attempt judged nothing",
        "if not on_it + readings or any(attempt.empty for attempt in on_it + readings):",
        "if not on_it + readings:",
        LEDGER,
    ),
    Mutant(
        "ledger/rows.py",
        "a broken step of a proof refutes the statement",
        "return LedgerVerdict.HOLDS_PROOF_BROKEN",
        "return LedgerVerdict.REFUTED",
        LEDGER,
    ),
    Mutant(
        "ledger/rows.py",
        "edge cases count as attempts on the statement",
        "on_it = [attempt for attempt in attempts if attempt.role is Role.STATEMENT]",
        "on_it = [a for a in attempts if a.role in (Role.STATEMENT, Role.EDGE)]",
        LEDGER,
    ),
    Mutant(
        "ledger/rows.py",
        "an edge case that does not fail is ignored",
        "if attempt.role is Role.EDGE and not attempt.violated:",
        "if attempt.role is Role.EDGE and attempt.empty:",
        LEDGER,
    ),
    Mutant(
        "ledger/rows.py",
        "the premises of a premise do not matter",
        "for deeper in of(premise):",
        "for deeper in ():",
        LEDGER,
    ),
    Mutant(
        "ledger/cases.py",
        "a mutant changes nothing",
        "return self.of(lambda **case: function(**{**case, **known}))",
        "return self.of(lambda **case: function(**{**known, **case}))",
        LEDGER,
    ),
    Mutant(
        "ledger/attacks.py",
        "a frequency above the allowed one refutes, without a bound",
        "Counterexample(case, bound, allowed) if bound > allowed else None",
        "Counterexample(case, bound, allowed) if hits > allowed * draws else None",
        LEDGER,
    ),
    Mutant(
        "ledger/erratum.py",
        "the least harmful error comes first",
        "harm = len(order) if row.harm is None else order.index(row.harm)",
        "harm = -1 if row.harm is None else -order.index(row.harm)",
        ("tests/ledger/test_ledger_page.py",),
    ),
)
