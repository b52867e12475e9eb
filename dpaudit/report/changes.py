"""Changes between two results of one audit: its verdict, its mutants and its epsilon.

**Verdicts.** REFUTED is certified, and the other verdicts are weaker. A violation that is no longer
found may indicate a fixed mechanism or a smaller budget. So a change from REFUTED to another
verdict counts as better or worse only under two conditions. The later audit must have the same
claim, and at least the same budget. In all other cases, the change is reported as not comparable.

Mutants that are barely killed may survive other draws by chance. So an audit that has less power
than before, or whose mutant now survives, is reported but does not fail the comparison by default.
However, a run fails if a mutant that the user gave survives.

**Epsilons.** Certified epsilons are lower bounds. If one lower bound is larger than another, the
epsilons that the mechanisms need may still be equal. So an epsilon counts as changed only if the
certified intervals of the two results are disjoint, on the same pair and at the same delta. The
interval ends at the upper bound of the result, if there is an upper bound. Computed audits have an
upper bound. Audits by draws have no upper bound. For two such audits, only the estimates are
compared.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dpaudit.results import AuditResult, MutantStatus, Verdict
from dpaudit.store import is_same_pair

_ROUNDING = 1e-9
"""Relative error of a computed epsilon."""


class What(StrEnum):
    """Kinds of change of an audit or a statement, in the order of importance for a reader."""

    REFUTED = "newly refuted"
    LOST = "known violation lost"
    STATEMENT = "statement changed"
    UNDECLARED = "not as declared"
    GONE = "gone"
    POWER = "less power"
    SURVIVED = "mutant survives"
    FIXED = "fixed"
    KILLED = "mutant killed"
    NEW = "new"
    OTHER = "changed"

    @property
    def is_worse(self) -> bool:
        """Whether the change fails the comparison by default."""
        return self not in _NOT_WORSE


_NOT_WORSE = {What.POWER, What.SURVIVED, What.FIXED, What.KILLED, What.NEW, What.OTHER}


@dataclass(frozen=True)
class VerdictChange:
    """One change.

    Parameters
    ----------
    kind : str
        Name of the kind of the record.
    id : str
    what : What
    before, now : str
        The verdicts in words. Empty if there is no verdict.
    reason : str
        Reason for the change, in one sentence.
    """

    kind: str
    id: str
    what: What
    before: str
    now: str
    reason: str


def audit_changes(old: AuditResult, new: AuditResult) -> Iterator[VerdictChange]:
    """Yield the changes of an audit's verdict and of its mutants."""
    found = _verdict_change(old, new)
    if found is not None:
        what, reason = found
        yield VerdictChange("audit", new.id, what, old.status.word, new.status.word, reason)
    before, now = _statuses(old), _statuses(new)
    less = less_than_before(old, new)
    for was, is_, what in (
        (MutantStatus.KILLED, MutantStatus.SURVIVED, What.OTHER if less else What.SURVIVED),
        (MutantStatus.SURVIVED, MutantStatus.KILLED, What.KILLED),
    ):
        names = [key[0] for key in before if (before[key], now.get(key)) == (was, is_)]
        if names:
            reason = f"{', '.join(names)}" + f" ({less})" * (what is What.OTHER)
            yield VerdictChange("audit", new.id, what, was.value, is_.value, reason)


def _statuses(result: AuditResult) -> dict[tuple[str, int], MutantStatus]:
    """Return the status of each mutant by its name and its number among equal names."""
    seen: Counter[str] = Counter()
    found = {}
    for mutant in result.mutants:
        seen[mutant.name] += 1
        found[mutant.name, seen[mutant.name]] = mutant.status
    return found


def _verdict_change(old: AuditResult, new: AuditResult) -> tuple[What, str] | None:
    """Return the change of the verdict, or None if the verdict and its meaning are the same."""
    if Verdict.REFUTED in (old.verdict, new.verdict):
        return _refutation_change(old, new)
    less = less_than_before(old, new)
    if old.verdict is not new.verdict:
        if new.verdict is Verdict.NO_POWER:
            return (What.OTHER, less) if less else (What.POWER, new.reason)
        if _claim(old) != _claim(new):
            return What.OTHER, "another claim is audited"
        return What.FIXED, "mutants are killed now, so the audit has power again"
    return _declaration_change(old, new)


def _refutation_change(old: AuditResult, new: AuditResult) -> tuple[What, str] | None:
    """Return the change for a claim that is refuted before, now, or both times."""
    if old.verdict is new.verdict:
        return _declaration_change(old, new)
    if new.verdict is Verdict.REFUTED:
        if new.mismatch is None:
            return What.OTHER, "a known violation is found now, as declared"
        other = "; another claim was audited before" * (_claim(old) != _claim(new))
        return What.REFUTED, new.reason + other
    if new.mismatch is not None and new.status.key == "lost":
        return What.LOST, new.mismatch
    if less := less_than_before(old, new):
        return What.OTHER, f"the claim is not refuted now: {less}"
    if new.epsilon.upper <= new.claimed_epsilon:
        return What.FIXED, "the mechanism was computed to need no more than is claimed"
    if new.verdict is Verdict.NO_POWER:
        words = f"the claim is not refuted now, and the audit has no power: {new.reason}"
        return (What.OTHER if new.mismatch is None else What.POWER), words
    return What.FIXED, "the claim is not refuted now, by an audit that kills mutants"


def _declaration_change(old: AuditResult, new: AuditResult) -> tuple[What, str] | None:
    """Return the change of declaration of an audit with an unchanged verdict, or None."""
    if old.mismatch is None and new.mismatch is not None:
        worse = {
            "refuted": What.REFUTED,
            "history": What.REFUTED,
            "lost": What.LOST,
            "no_power": What.POWER,
        }
        sentence = f"{new.mismatch} (before, as declared: {old.status.word})"
        return worse.get(new.status.key, What.UNDECLARED), sentence
    if old.mismatch is not None and new.mismatch is None:
        return What.OTHER, "the verdict is as declared now"
    return None


def less_than_before(old: AuditResult, new: AuditResult) -> str:
    """Return why "no violation found" is weaker evidence in the later audit, or ""."""
    if _claim(old) != _claim(new):
        return f"another claim is audited: {old.claim['words']} before, {new.claim['words']} now"
    budgets = budget(old), budget(new)
    if budgets[1] > 0 and (budgets[0] == 0 or budgets[1] < budgets[0]):
        counted = [f"{count:,} draws" if count else "computed exactly" for count in budgets]
        return f"the earlier audit had a larger budget: {counted[0]} before, {counted[1]} now"
    if 0 < new.failure_prob < old.failure_prob:
        return f"failure_prob was {old.failure_prob:g} before, and is {new.failure_prob:g} now"
    return ""


def budget(result: AuditResult) -> int:
    """Return the largest number of draws per dataset that an audit could make; 0 if computed."""
    path = result.diagnostics.sequential
    return sum(result.draws.values()) if path is None else path.budget


def _claim(result: AuditResult) -> dict[str, Any]:
    """Return the claim.

    For a curve, omit the point at which it was compared.
    """
    names = ["parameters"] if "parameters" in result.claim else ["epsilon", "delta"]
    return {name: result.claim[name] for name in ["notion", "relation", *names]}


# --- the epsilon of one audit -------------------------------------------------------------------


class Movement(StrEnum):
    """Kinds of change of an audit's epsilon between two results."""

    ROSE = "rose"
    FELL = "fell"
    NOT_COMPARABLE = "not comparable"
    ESTIMATE = "estimate only"
    """No upper bound is known on either side."""

    OVERLAP = "no move certified"
    """An upper bound is known, and the intervals overlap."""


@dataclass(frozen=True)
class EpsilonChange:
    """The change of one audit's epsilon.

    Parameters
    ----------
    old, new : AuditResult
    movement : Movement
    reason : str
        Reason for the change, in one sentence.
    """

    old: AuditResult
    new: AuditResult
    movement: Movement
    reason: str

    @property
    def has_moved(self) -> bool:
        """Whether the certified intervals are disjoint."""
        return self.movement in (Movement.ROSE, Movement.FELL)

    @property
    def failure_prob(self) -> float:
        """Largest probability that one of the two intervals is wrong."""
        return self.old.epsilon.failure_prob + self.new.epsilon.failure_prob


def epsilon_change(old: AuditResult, new: AuditResult) -> EpsilonChange:
    """Compare the certified intervals of epsilon in two results of one audit."""

    def change(movement: Movement, reason: str) -> EpsilonChange:
        return EpsilonChange(old, new, movement, reason)

    if not is_same_pair(old.pair, new.pair):
        return change(Movement.NOT_COMPARABLE, "the pairs differ, or were not stored")
    if old.claimed_delta != new.claimed_delta:
        words = f"epsilon at delta = {old.claimed_delta:g} before and at {new.claimed_delta:g} now"
        return change(Movement.NOT_COMPARABLE, words)
    before, now = old.epsilon, new.epsilon
    known = [  # the upper bound, because a computed epsilon may be infinite
        epsilon.upper < math.inf or (epsilon.failure_prob == 0 and epsilon.lower == epsilon.upper)
        for epsilon in (before, now)
    ]
    if not any(known):
        return change(Movement.ESTIMATE, "no upper bound is known, so no change is certified")
    if not before.certified or not now.certified:
        return change(Movement.NOT_COMPARABLE, "one of the bounds is not certified")
    if _exceeds(now.lower, before.upper):
        return change(Movement.ROSE, "the lower bound now lies above the upper bound before")
    if _exceeds(before.lower, now.upper):
        return change(Movement.FELL, "the upper bound now lies below the lower bound before")
    rest = "" if all(known) else f"; no upper bound is known {'now' if known[0] else 'before'}"
    return change(Movement.OVERLAP, f"the certified intervals overlap{rest}")


def _exceeds(low: float, high: float) -> bool:
    return low > high * (1 + _ROUNDING) + 1e-12
