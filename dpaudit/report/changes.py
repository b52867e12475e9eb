"""What changed between two stored runs, and which of it is worse.

Verdicts are compared in :mod:`dpaudit.report.verdict_changes`. What epsilons do is told by
:func:`dpaudit.results.shift_of`, whose false-alarm rate is divided over all audits that both runs
hold; it is neither worse nor better by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpaudit import _validate
from dpaudit.errors import ArgumentError, StoreError
from dpaudit.report.sections import section_of, sections
from dpaudit.report.verdict_changes import VerdictChange, What
from dpaudit.results import AuditResult, Movement, Shift, shift_of, words
from dpaudit.store import (
    AUDIT,
    RESULTS,
    Record,
    Run,
    by_kind,
    is_same_pair,
    load_record,
    read_whole_run,
)

FALSE_ALARM = 1e-3
"""Probability, at most, that any epsilon is said to have moved that has not, of one comparison."""

_UNLIKE = {
    What.REFUTED: (Movement.WITHIN_CHANCE, Movement.FELL),
    What.LOST: (Movement.WITHIN_CHANCE, Movement.ROSE),
    What.MENDED: (Movement.WITHIN_CHANCE, Movement.ROSE),
}
"""Movements of an epsilon that would contradict what is said of the verdict."""

_UNTOLD = {"seconds", "mechanism_seconds", "versions", "origin", "expected"}
"""What differs between two runs of the same code."""


@dataclass(frozen=True)
class Moved:
    """An audit whose numbers are not the same, and whether its epsilon moved."""

    old: AuditResult
    new: AuditResult
    shift: Shift


_Key = tuple[str, str]
"""Kind and id of a record."""


@dataclass(frozen=True)
class Side:
    """One of the two runs.

    Parameters
    ----------
    name : str
        As it was given.
    run : Run or None
        None for the file of one record.
    records : dict
        By kind and id; without those of which a comparison does not speak.
    """

    name: str
    run: Run | None
    records: dict[_Key, Record]

    @classmethod
    def of(cls, name: str, run: Run | None, records: Sequence[Record]) -> Side:
        """Sort records by what they are."""
        return cls(
            name,
            run,
            {
                (kind, record.id): record
                for kind, own in by_kind(records).items()
                for record in own
                if sections()[kind].is_compared(record)
            },
        )

    def only(self, other: Side) -> Side:
        """Return what is in the other one, which holds a single record, too."""
        both = {key: found for key, found in self.records.items() if key in other.records}
        return replace(self, records=both)


@dataclass(frozen=True)
class Comparison:
    """What changed between two runs.

    Parameters
    ----------
    old, new : Side
    changes : tuple of VerdictChange
        What is worse first.
    moved : tuple of Moved
        Audits whose numbers are not the same, as they were told by `shift_of`.
    same : int
        Audits and statements that are the same to the last bit.
    notes : tuple of str
        How the two runs differ, a sentence each.
    false_alarm : float
        Of all comparisons of epsilons together.
    compared : int
        Audits over which that is divided.
    may_be_missing : bool
        Whether what is gone is not worse.
    power_counts : bool
        Whether less power is worse.
    """

    old: Side
    new: Side
    changes: tuple[VerdictChange, ...]
    moved: tuple[Moved, ...]
    same: int
    notes: tuple[str, ...]
    false_alarm: float
    compared: int
    may_be_missing: bool
    power_counts: bool

    @property
    def worse(self) -> tuple[VerdictChange, ...]:
        """What fails the comparison."""
        return tuple(change for change in self.changes if self._is_worse(change))

    @property
    def others(self) -> tuple[VerdictChange, ...]:
        """All other changes."""
        return tuple(change for change in self.changes if not self._is_worse(change))

    def _is_worse(self, change: VerdictChange) -> bool:
        if change.what is What.POWER:
            return self.power_counts
        return change.what.is_worse and not (self.may_be_missing and change.what is What.GONE)


def read_side(path: Path) -> Side:
    """Read a directory of a run, its ``results.json``, or the file of one record.

    Raises
    ------
    StoreError
        When anything in it is missing, damaged or was changed after it was written; nothing is
        compared then, and nothing is set aside.
    """
    if path.is_dir() or path.name == RESULTS:
        run, records = read_whole_run(path if path.is_dir() else path.parent)
        return Side.of(str(path), run, records)
    record, problems = load_record(path)
    if problems:
        raise StoreError(problems[0])
    return Side.of(str(path), None, [record])


def compare(
    old: Side,
    new: Side,
    *,
    false_alarm: float = FALSE_ALARM,
    may_be_missing: bool = False,
    power_counts: bool = False,
) -> Comparison:
    """Say what changed.

    Parameters
    ----------
    old, new : Side
        Where either is the file of one record, that one alone is compared.
    false_alarm : float
        Probability, at most, that any epsilon is said to have moved that has not; in (0, 1).
    may_be_missing : bool
        Whether what is gone is not worse.
    power_counts : bool
        Whether less power is worse.
    """
    _validate.failure_prob(false_alarm=false_alarm)
    if new.run is None:
        old = old.only(new)
    elif old.run is None:
        new = new.only(old)
    both = _in_both(old, new)
    if (old.run is None or new.run is None) and not both:
        raise ArgumentError(
            f"OLD and NEW must hold the same audit or statement, got {old.name} and {new.name}"
        )
    changes: list[VerdictChange] = []
    for before, now in both:
        changes += section_of(now).changes(before, now)
    changes += _gone_and_new(old, new)
    order = list(What)
    audits = [(a, b) for a, b in both if isinstance(a, AuditResult) and isinstance(b, AuditResult)]
    share = false_alarm / max(len(audits), 1)
    unlike = [pair for pair in audits if not is_same(*pair)]
    return Comparison(
        old,
        new,
        tuple(sorted(changes, key=lambda change: (order.index(change.what), change.id))),
        tuple(_moved(a, b, share, changes) for a, b in unlike),
        sum(is_same(*pair) for pair in both),
        tuple(_notes(old, new)),
        false_alarm,
        len(audits),
        may_be_missing,
        power_counts,
    )


def _moved(
    old: AuditResult, new: AuditResult, share: float, changes: Sequence[VerdictChange]
) -> Moved:
    """Say what became of an epsilon, in words that do not contradict those of the verdict."""
    shift = shift_of(old, new, share, same_pair=is_same_pair(old.pair, new.pair))
    verdicts = {
        change.what for change in changes if (change.kind, change.id) == (AUDIT.name, new.id)
    }
    if any(shift.movement in _UNLIKE.get(what, ()) for what in verdicts):
        reason = f"the verdict changed, but epsilon: {shift.movement.value}; {shift.reason}"
        shift = replace(shift, movement=Movement.NOT_WITH_VERDICT, reason=reason)
    return Moved(old, new, shift)


def _in_both(old: Side, new: Side) -> list[tuple[Record, Record]]:
    """Return the records that both hold."""
    return [(old.records[key], new.records[key]) for key in old.records if key in new.records]


# --- the same -----------------------------------------------------------------------------------


def is_same(old: Record, new: Record) -> bool:
    """Whether two records are the same to the last bit, but for times and where they were made."""

    def told(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: told(item) for key, item in value.items() if key not in _UNTOLD}
        return [told(item) for item in value] if isinstance(value, list) else value

    return bool(told(old.to_json()) == told(new.to_json()))


# --- what one of them lacks ---------------------------------------------------------------------


def _gone_and_new(old: Side, new: Side) -> Iterator[VerdictChange]:
    """Yield what only one of the runs holds."""
    for (kind, id), record in old.records.items():
        if (kind, id) not in new.records:
            reason = _why_gone(record, new.run)
            yield VerdictChange(kind, id, What.GONE, record.status.word, "", reason)
    for (kind, id), record in new.records.items():
        if (kind, id) not in old.records:
            what, reason = What.NEW, "it was not there before"
            if record.mismatch is not None:
                what, reason = section_of(record).fault(record), f"it is new; {record.mismatch}"
            yield VerdictChange(kind, id, what, "", record.status.word, reason)


def _why_gone(record: Record, run: Run | None) -> str:
    """Say what the later run tells of the function that made a record."""
    node = f"{record.origin.get('path')}::{record.origin.get('item')}: "
    if run is None:
        return "it is not there"
    for word, sentences in (("it failed", run.problems), ("it was skipped", run.skipped)):
        for sentence in sentences:
            if sentence.startswith(node):
                return f"{word}: {sentence.removeprefix(node)}"
    if not run.complete:
        return "it is not there, in a run that was interrupted"
    return "it is not there"


# --- the runs -----------------------------------------------------------------------------------


def _notes(old: Side, new: Side) -> Iterator[str]:
    """Yield how the two runs differ as wholes."""
    if old.run is None or new.run is None:
        yield from _settings(old, new)
        return
    asked: tuple[tuple[str, Callable[[Run], Any]], ...] = (
        ("profile", lambda run: run.profile),
        ("seed", lambda run: run.seed),
        ("failure_prob", lambda run: run.failure_prob),
    )
    for name, read in asked:
        if (before := read(old.run)) != (now := read(new.run)):
            yield f"{name} {before} before, {now} now"
    for side, when in ((old, "before"), (new, "now")):
        assert side.run is not None
        if not side.run.complete:
            yield f"the run {when} was interrupted: it does not hold all"
        if side.run.kept:
            yield f"the run {when} kept {len(side.run.kept)} records of earlier runs"
    fresh = [problem for problem in new.run.problems if problem not in old.run.problems]
    yield from (f"a problem of the run now: {words.short(problem, 200)}" for problem in fresh)
    yield from _settings(old, new)


def _settings(old: Side, new: Side) -> Iterator[str]:
    """Yield which versions and files the records of both were not made with alike."""
    origins = [(a.origin, b.origin) for a, b in _in_both(old, new)]
    for name, title in (("versions", "versions"), ("sources", "files")):
        unlike: dict[str, None] = {}
        for a, b in origins:
            before, now = a.get(name) or {}, b.get(name) or {}
            for key in sorted({*before, *now}):
                if before.get(key) != now.get(key):
                    told = f"{key} {before.get(key, 'none')} before, {now.get(key, 'none')} now"
                    unlike[told if name == "versions" else key] = None
        if unlike:
            rest = f", and {len(unlike) - _SHOWN} more" if len(unlike) > _SHOWN else ""
            yield f"{title} that differ: {', '.join(list(unlike)[:_SHOWN])}{rest}"


_SHOWN = 8
