"""Mistakes planted in the verdicts on statements."""

from __future__ import annotations

from benchmarks.planted.mutant import Mutant

ROWS = "tests/ledger/test_mutants_of_the_ledger.py"
JUDGING = (ROWS, "tests/ledger/test_judging.py", "tests/ledger/test_ledger.py")
LEDGER = (
    ROWS,
    "tests/ledger/test_attempts.py",
    "tests/ledger/test_ledger.py",
    "tests/ledger/test_judging.py",
    "tests/ledger/test_paper.py",
)

MUTANTS = (
    Mutant(
        "ledger/judging.py",
        "NaN breaks no exact claim",
        "broken = not lhs <= rhs",
        "broken = lhs > rhs",
        JUDGING,
    ),
    Mutant(
        "ledger/judging.py",
        "rounding breaks a claim",
        "return tight, left, right, tight > 1.0 + self.tolerance",
        "return tight, left, right, tight > 1.0",
        JUDGING,
    ),
    Mutant(
        "ledger/judging.py",
        "NaN is set aside",
        "return inequality if self.nan_breaks else None",
        "return None",
        JUDGING,
    ),
    Mutant(
        "ledger/falsifying.py",
        "a mutant that survives its own search is killed",
        "nan_breaks=False)).counterexample is not None",
        "nan_breaks=False)).judged > 0",
        LEDGER,
    ),
    Mutant(
        "ledger/falsifying.py",
        "the search leaves the unit cube",
        "return np.clip(there, 0.0, 1.0)",
        "return there",
        LEDGER,
    ),
    Mutant(
        "ledger/simplifying.py",
        "a simpler case need not break the claim",
        "if scratch.breaking is trial:",
        "if scratch.breaking is not None or trial:",
        LEDGER,
    ),
    Mutant(
        "ledger/rows.py",
        "a mutant that survived one attempt of several counts as killed",
        "if Power.SURVIVED in powers:",
        "if powers == {Power.SURVIVED}:",
        LEDGER,
    ),
    Mutant(
        "ledger/rows.py",
        "a claim holds though an attempt judged nothing",
        "if not on_it + readings or any(attempt.empty for attempt in on_it + readings):",
        "if not on_it + readings:",
        LEDGER,
    ),
    Mutant(
        "ledger/attempt.py",
        "neighbouring doubles have the ratio 1",
        "return max(found, math.nextafter(1.0, 2.0)) if lhs > rhs else found",
        "return found",
        JUDGING,
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
        "edges count as attempts on the statement",
        "on_it = [attempt for attempt in attempts if attempt.role is Role.STATEMENT]",
        "on_it = [a for a in attempts if a.role in (Role.STATEMENT, Role.EDGE)]",
        LEDGER,
    ),
    Mutant(
        "ledger/rows.py",
        "an edge that does not fail is passed over",
        "if attempt.role is Role.EDGE and not attempt.violated:",
        "if attempt.role is Role.EDGE and attempt.empty:",
        LEDGER,
    ),
    Mutant(
        "ledger/premises.py",
        "what was attacked end to end rests on its premises",
        "for id in () if row.stands_alone else row.stated.premises:",
        "for id in row.stated.premises:",
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
        "a frequency above what is allowed refutes, without a bound",
        "Counterexample(case, bound, allowed) if bound > allowed else None",
        "Counterexample(case, bound, allowed) if hits > allowed * draws else None",
        LEDGER,
    ),
)
