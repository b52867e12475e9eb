"""What became of a statement beside what was declared, in the words of a run."""

from __future__ import annotations

from dpaudit.ledger.rows import LedgerVerdict, StatementResult
from dpaudit.results import Status

_LETTERS = {
    LedgerVerdict.REFUTED: ("r", "magenta"),
    LedgerVerdict.AMBIGUOUS: ("a", "yellow"),
    LedgerVerdict.VACUOUS: ("v", "yellow"),
    LedgerVerdict.OPEN: ("o", "yellow"),
    LedgerVerdict.HOLDS: (".", "green"),
    LedgerVerdict.NOT_EXECUTABLE: ("n", "dim"),
}


def statement_status(result: StatementResult) -> Status:
    """Return what became of a statement, beside what was declared; its key is the verdict's."""
    verdict = result.verdict
    letter, style = _LETTERS[verdict]
    word, category = verdict.words.upper(), verdict.words
    if result.mismatch is not None:
        if verdict is not result.expected:
            word += f" ({result.expected.words} was declared)"
        elif result.repair_verdict in (LedgerVerdict.REFUTED, LedgerVerdict.OPEN):
            word += f" (the repair is {result.repair_verdict.words})"
        else:
            word += " (a mutant survived)"
        category, letter, style = "not as declared", "S", "bold red"
    return Status(verdict.value, word, category, letter, style, verdict.meaning)
