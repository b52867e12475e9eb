"""The section of audits in reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from dpaudit._json import encode
from dpaudit.report.changes import VerdictChange, What, audit_changes
from dpaudit.report.sections import Alert, Section, replay_command
from dpaudit.results import (
    STATUSES,
    AuditResult,
    Verdict,
    score_words,
    short,
    undetected_words,
)

_LEVELS = {
    "refuted": ("dpaudit/refuted", "error"),
    "history": ("dpaudit/refuted", "error"),
    "known": ("dpaudit/refuted", "note"),
    "no_power": ("dpaudit/no-power", "error"),
    "powerless": ("dpaudit/no-power", "warning"),
    "lost": ("dpaudit/violation-lost", "error"),
}
"""Rule and level of an audit by the key of its status; other statuses give no alert."""


_REASON = 80
"""Largest length of the reason of a known violation in a line, in characters."""


class AuditSection(Section[AuditResult]):
    """Section of audits, which are on the first page of a run."""

    noun = "audit"
    rules: ClassVar = {
        "dpaudit/refuted": ("Refuted", "A violation of the claimed privacy is certified."),
        "dpaudit/no-power": (
            "NoPower",
            "The audit found no violation and has no power, so it says nothing.",
        ),
        "dpaudit/violation-lost": ("ViolationLost", "A known violation was not found again."),
    }

    def facts(self, record: AuditResult) -> list[str]:
        """Return certified epsilon, killed mutants and seconds."""
        words = [f"epsilon {record.certified_text()} of {record.claimed_epsilon:.3g} claimed"]
        if record.mutants:
            missed = record.verdict is Verdict.NOT_REFUTED and undetected_words(record.mutants)
            words.append(
                f"mutants {score_words(record.mutants, by_kind=False)}"
                + ", some undetected" * bool(missed)
            )
        if reason := record.origin.get("reason"):
            words.append(f"known: {short(str(reason), _REASON)}")
        if record.diagnostics.sequential is not None:
            spent = sum(record.draws.values())
            words.append(f"{spent:,} of {record.diagnostics.sequential.budget:,} draws")
        return [*words, f"{record.seconds:.1f} s"]

    def finding(
        self, record: AuditResult, out: Path | None = None, *, verbose: bool = False
    ) -> str:
        """Return the summary of an audit."""
        word, replay = record.status.word, replay_command(record, out)
        return record.summary(verbose=verbose, word=word, replay=replay)

    def numbers(self, record: AuditResult) -> str:
        """Return the verdict, the certified numbers and the number of hits."""
        counts, right = record.witness.counts, record.witness.right
        hits = "" if counts is None else f", {counts.hits_left} and {counts.hits_right} hits"
        if right is not None:
            hits += f" guessing left, {right.hits_left} and {right.hits_right} hits guessing right"
        return (
            f"{record.verdict.words}: epsilon >= {record.certified_epsilon!r}, "
            f"delta >= {record.certified_delta!r}{hits}"
        )

    def is_shown(self, record: AuditResult, *, verbose: bool = False) -> bool:
        """Whether the audit needs attention; with `verbose`, every audit is shown.

        An audit that passed needs attention if it knows a next step, such as the number of draws
        that would refute the claim.
        """
        if verbose or record.status.key not in ("not_refuted", "known"):
            return True
        return bool(record.advice) and record.status.key == "not_refuted"

    def rank(self, record: AuditResult) -> int:
        """Return the rank of the audit's status."""
        return list(STATUSES).index(record.status.key)

    def tally(self, records: Sequence[AuditResult]) -> list[str]:
        """Count the statuses in one line."""
        keys = [result.status.key for result in records]
        counts = [f"{keys.count(k)} {status.word}" for k, status in STATUSES.items() if k in keys]
        return [", ".join(counts)]

    def summary(
        self, records: Sequence[AuditResult], *, verbose: bool = False
    ) -> tuple[str, str] | None:
        """Return the summaries of the audits that need attention."""
        found = [
            self.finding(record, verbose=verbose)
            for record in sorted(records, key=self.rank)
            if self.is_shown(record, verbose=verbose)
        ]
        return ("privacy", "\n\n".join(found)) if found else None

    def alert(self, record: AuditResult) -> Alert | None:
        """Return an alert for a refuted claim, for no power, or for a known bug not found again."""
        key = record.status.key
        if key not in _LEVELS:
            return None
        facts = {
            "verdict": record.verdict.value,
            "claimedEpsilon": encode(record.claimed_epsilon),
            "claimedDelta": record.claimed_delta,
            "certifiedEpsilon": encode(record.certified_epsilon),
            "failureProb": record.failure_prob,
        }
        reason = str(record.origin.get("reason") or "marked as a known violation")
        return Alert(
            *_LEVELS[key],
            self.finding(record, verbose=True),
            facts,
            reason if key == "known" else "",
        )

    def changes(self, old: AuditResult, new: AuditResult) -> Iterator[VerdictChange]:
        """Yield the changes of the verdict and of the mutants."""
        return audit_changes(old, new)

    def fault(self, record: AuditResult) -> What:
        """Return the change "the claim is refuted", or None if the claim is not refuted."""
        return What.REFUTED if record.status.key in ("refuted", "history") else What.UNDECLARED


AUDITS = AuditSection()
