"""The words of a record wherever a run speaks of it, whatever its kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from dpaudit.ledger import LedgerVerdict, StatementResult
from dpaudit.report import (
    draws_used,
    finding,
    statement_facts,
    statement_finding,
    statement_lines,
    summary,
)
from dpaudit.results import (
    STATUSES,
    AuditResult,
    Verdict,
    beside,
    score_words,
    unnoticed_words,
)
from dpaudit.store import Record


def is_told(record: Record) -> bool:
    """Whether a reader should see more of a record than its line."""
    if isinstance(record, AuditResult):
        return record.status.key != "not_refuted"
    return record.mismatch is not None


def is_judged(record: Record) -> bool:
    """Whether a record holds a verdict; the row of a check that broke off does not."""
    return not (isinstance(record, StatementResult) and record.verdict is LedgerVerdict.OPEN)


def in_order(records: Iterable[Record]) -> list[Record]:
    """Return records as a reader should look at them: audits, the worst first, then statements."""
    order = {key: rank for rank, key in enumerate(STATUSES)}

    def rank(record: Record) -> int:
        return order[record.status.key] if isinstance(record, AuditResult) else len(order)

    return sorted(records, key=rank)


def finding_of(record: Record, out: Path | None = None) -> str:
    """Return what was found in a few lines, with the line that replays it.

    Parameters
    ----------
    record : Record
        Any record.
    out : Path, optional
        Directory where it is stored.
    """
    if isinstance(record, StatementResult):
        return statement_finding(record, out)
    assert isinstance(record, AuditResult)
    lines = finding(record, out).splitlines()
    if reason := record.origin.get("reason"):
        lines.insert(1, f"  known      {reason}")
    return "\n".join(lines)


def facts_of(record: Record) -> list[str]:
    """Return what a line says of a record beside its status and its id."""
    if isinstance(record, StatementResult):
        return statement_facts(record)
    assert isinstance(record, AuditResult)
    claimed = record.claimed_epsilon
    certified = beside(record.certified_epsilon, claimed, 3, ">= ")
    words = [f"epsilon {certified} of {claimed:.3g} claimed"]
    if record.mutants:
        silent = record.verdict is Verdict.NOT_REFUTED and unnoticed_words(record.mutants)
        words.append(
            f"mutants {score_words(record.mutants)}" + ", some noise unnoticed" * bool(silent)
        )
    if record.sequential is not None:
        words.append(draws_used(record))
    return [*words, f"{record.seconds:.1f} s"]


def numbers_of(record: Record) -> str:
    """Return verdict and certified numbers, to their last digit, in one line."""
    if isinstance(record, StatementResult):
        return summary(record)
    assert isinstance(record, AuditResult)
    counts, right = record.witness.counts, record.witness.right
    hits = "" if counts is None else f", {counts.hits_left} and {counts.hits_right} hits"
    if right is not None:
        hits += f" guessing left, {right.hits_left} and {right.hits_right} hits guessing right"
    return (
        f"{record.verdict.words}: epsilon >= {record.certified_epsilon!r}, "
        f"delta >= {record.certified_delta!r}{hits}"
    )


def summary_sections(records: Sequence[Record]) -> Iterator[tuple[str, str]]:
    """Yield title and text of the sections that pytest's own summary gets."""
    told = [r for r in in_order(records) if isinstance(r, AuditResult) and is_told(r)]
    if told:
        yield "privacy", "\n\n".join(map(finding_of, told))
    rows = [record for record in records if isinstance(record, StatementResult)]
    if rows:
        mismatches = [finding_of(row) + "\n" for row in rows if row.mismatch is not None]
        yield "ledger", "\n".join([*mismatches, *statement_lines(rows)])
