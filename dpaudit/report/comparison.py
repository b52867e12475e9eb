"""Changes between two stored runs: lines of text, and the comment of a pull request."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpaudit.errors import ArgumentError, StoreError
from dpaudit.report.changes import EpsilonChange, Movement, VerdictChange, What, epsilon_change
from dpaudit.report.sections import section_of, sections
from dpaudit.results import AuditResult, at_most, number, short
from dpaudit.store import RESULTS, Record, StoredRun, by_kind, load_record, read_whole_run

LARGEST_COMMENT = 60_000
"""Largest number of characters of a comment; GitHub accepts 65,536."""

_LONGEST = 300
_LISTED = 8
_MOVED = (Movement.ROSE, Movement.FELL)
_SECTIONS = (
    ("epsilon moved", _MOVED),
    ("epsilon not comparable", (Movement.NOT_COMPARABLE,)),
    ("no move of epsilon certified: the intervals overlap", (Movement.OVERLAP,)),
    ("estimated epsilon differs, which certifies no change", (Movement.ESTIMATE,)),
)
_FREE = re.compile(r"[^A-Za-z0-9 .,:;=%+/'>-]|:(?=//)|(?<=www)\.")

MAY_DIFFER = {"seconds", "mechanism_seconds", "versions", "origin", "expected"} | {
    "accumulated",
    "log_e_values",  # results of earlier versions have none
}
"""Fields that differ between two runs of the same code, at any place of a record."""


_Key = tuple[str, str]
"""Kind and id of a record."""


@dataclass(frozen=True)
class Side:
    """One of the two runs.

    Parameters
    ----------
    name : str
        Name of the run, as it was given.
    run : StoredRun or None
        The run, or None if the side is the file of one record.
    records : dict
        Records by kind and id, without records that a comparison does not include.
    """

    name: str
    run: StoredRun | None
    records: dict[_Key, Record]

    @classmethod
    def of(cls, name: str, run: StoredRun | None, records: Sequence[Record]) -> Side:
        """Sort records by their kind and id."""
        compared = {
            (kind, record.id): record
            for kind, own in by_kind(records).items()
            for record in own
            if sections()[kind].is_compared(record)
        }
        return cls(name, run, compared)


@dataclass(frozen=True)
class Comparison:
    """The changes between two runs.

    Parameters
    ----------
    old, new : Side
    changes : tuple of VerdictChange
        Changes for the worse come first.
    epsilons : tuple of EpsilonChange
        Changes of epsilon, for audits that are not identical to the last bit.
    same : int
        Number of audits and statements that are identical to the last bit.
    notes : tuple of str
        Differences of the two runs as a whole, in one sentence each.
    may_be_missing : bool
        Whether missing records are ignored when changes for the worse are counted.
    power_counts : bool
        Whether less power counts as a change for the worse.
    """

    old: Side
    new: Side
    changes: tuple[VerdictChange, ...]
    epsilons: tuple[EpsilonChange, ...]
    same: int
    notes: tuple[str, ...]
    may_be_missing: bool
    power_counts: bool

    @property
    def worse(self) -> tuple[VerdictChange, ...]:
        """Changes that fail the comparison."""
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
    """Read the directory of a run, its ``results.json``, or the file of one record.

    Raises
    ------
    StoreError
        If any part is missing, damaged, or changed after it was written. In this case, nothing is
        compared, and all files stay where they are.
    """
    if path.is_dir() or path.name == RESULTS:
        run, records = read_whole_run(path if path.is_dir() else path.parent)
        return Side.of(str(path), run, records)
    record, problems = load_record(path)
    if problems:
        raise StoreError(problems[0])
    return Side.of(str(path), None, [record])


def compare(
    old: Side, new: Side, *, may_be_missing: bool = False, power_counts: bool = False
) -> Comparison:
    """Return the changes between two sides.

    Parameters
    ----------
    old, new : Side
        If either side is the file of one record, only this record is compared.
    may_be_missing : bool
        Whether missing records are ignored when changes for the worse are counted.
    power_counts : bool
        Whether less power counts as a change for the worse.
    """
    both = _in_both(old, new)
    if old.run is None or new.run is None:
        if not both:
            raise ArgumentError(
                f"OLD and NEW must hold the same audit or statement, got {old.name} and {new.name}"
            )
        keys = old.records.keys() & new.records.keys()
        old, new = (replace(s, records={key: s.records[key] for key in keys}) for s in (old, new))
    changes: list[VerdictChange] = []
    for before, now in both:
        changes += section_of(now).changes(before, now)
    changes += _gone_and_new(old, new)
    order = list(What)
    audits = [(a, b) for a, b in both if isinstance(a, AuditResult) and isinstance(b, AuditResult)]
    unlike = [pair for pair in audits if not is_same(*pair)]
    return Comparison(
        old,
        new,
        tuple(sorted(changes, key=lambda change: (order.index(change.what), change.id))),
        tuple(epsilon_change(a, b) for a, b in unlike),
        sum(is_same(*pair) for pair in both),
        tuple(_notes(old, new)),
        may_be_missing,
        power_counts,
    )


def _in_both(old: Side, new: Side) -> list[tuple[Record, Record]]:
    """Return the records that both sides hold."""
    return [(old.records[key], new.records[key]) for key in old.records if key in new.records]


# --- the same -----------------------------------------------------------------------------------


def is_same(old: Record, new: Record) -> bool:
    """Return whether two records are identical to the last bit, except for times and origin."""
    return not any(differences("", old.to_json(), new.to_json()))


def differences(name: str, old: Any, new: Any) -> Iterator[str]:
    """Yield each value that differs between two pieces of plain data, except `MAY_DIFFER`."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new} - MAY_DIFFER):
            yield from differences(f"{name}.{key}".lstrip("."), old.get(key), new.get(key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, pair in enumerate(zip(old, new, strict=True)):
            yield from differences(f"{name}[{index}]", *pair)
    elif old != new:
        yield short(f"{name}: {old!r} against {new!r}", _LONGEST)


# --- records of only one run --------------------------------------------------------------------


def _gone_and_new(old: Side, new: Side) -> Iterator[VerdictChange]:
    """Yield the records that only one of the runs holds."""
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


def _why_gone(record: Record, run: StoredRun | None) -> str:
    """Return what the later run reports about the function that made a record."""
    node = f"{record.origin.get('path')}::{record.origin.get('item')}: "
    if run is None:
        return "it is not there"
    for word, sentences in (("it failed", run.problems), ("it was skipped", run.skipped)):
        for sentence in sentences:
            if sentence.startswith(node):
                return f"{word}: {sentence.removeprefix(node)}"
    return "it is not there" + ", in a run that was interrupted" * (not run.complete)


# --- the runs -----------------------------------------------------------------------------------


def _notes(old: Side, new: Side) -> Iterator[str]:
    """Yield the differences between the two runs as a whole."""
    if old.run is None or new.run is None:
        yield from _settings(old, new)
        return
    for name in ("profile", "seed", "failure_prob"):
        if (before := getattr(old.run, name)) != (now := getattr(new.run, name)):
            yield f"{name} {before} before, {now} now"
    for side, when in ((old, "before"), (new, "now")):
        assert side.run is not None
        if not side.run.complete:
            yield f"the run {when} was interrupted, so some records are missing"
        if side.run.kept:
            yield f"the run {when} kept {len(side.run.kept)} records of earlier runs"
    fresh = [problem for problem in new.run.problems if problem not in old.run.problems]
    yield from (f"a problem of the run now: {short(problem, 200)}" for problem in fresh)
    yield from _settings(old, new)


def _settings(old: Side, new: Side) -> Iterator[str]:
    """Yield the versions and files that differ between the records of both runs."""
    origins = [(a.origin, b.origin) for a, b in _in_both(old, new)]
    for name, title in (("versions", "versions"), ("sources", "files")):
        unlike: dict[str, None] = {}
        for a, b in origins:
            before, now = a.get(name) or {}, b.get(name) or {}
            for key in sorted({*before, *now}):
                if before.get(key) != now.get(key):
                    change = f"{key} {before.get(key, 'none')} before, {now.get(key, 'none')} now"
                    unlike[change if name == "versions" else key] = None
        if unlike:
            rest = f", and {len(unlike) - _LISTED} more" if len(unlike) > _LISTED else ""
            yield f"{title} that differ: {', '.join(list(unlike)[:_LISTED])}{rest}"


# --- words --------------------------------------------------------------------------------------


def headline(found: Comparison) -> str:
    """Return the changes in one line."""
    moved = sum(one.has_moved for one in found.epsilons)
    parts = [f"{len(found.worse)} worse", _many(len(found.others), "other change")]
    parts += [f"{_many(moved, 'epsilon')} moved", f"{found.same} the same"]
    return ", ".join(parts)


def method(found: Comparison) -> str:
    """Return the method by which epsilons were compared."""
    if not found.epsilons and not found.same:
        return "no epsilon could be compared: no audit is in both runs"
    if not found.epsilons:
        return "no epsilon had to be compared: all audits of both runs are the same to the last bit"
    return (
        "an epsilon moved if the certified interval of one run excludes that of the other, on "
        "the same pair; audits by draws know no upper bound, so their estimates certify no change"
    )


def epsilon_words(one: EpsilonChange) -> str:
    """Return the change of the epsilon of one audit in words."""
    old, new = one.old, one.new
    parts = [
        f"estimated {number(old.estimated_epsilon)} before, {number(new.estimated_epsilon)} now",
        f"certified {_interval(old)} before, {_interval(new)} now",
    ]
    chance = f"; wrong with probability <= {number(one.failure_prob)}"
    reason = one.reason + chance * (one.has_moved and one.failure_prob > 0)
    return f"{one.movement.value}: {'; '.join(parts)} ({reason})"


def _interval(result: AuditResult) -> str:
    lower = result.certified_text()
    upper = result.epsilon.upper
    return lower if math.isinf(upper) else f"{lower} and <= {at_most(upper)}"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _of(found: Comparison, movements: Sequence[Movement]) -> list[EpsilonChange]:
    """Return the changes of these kinds, with the largest changes of estimates first."""

    def size(one: EpsilonChange) -> float:
        before, now = one.old.estimated_epsilon, one.new.estimated_epsilon
        return 0.0 if before == now else abs(now - before)

    return sorted((one for one in found.epsilons if one.movement in movements), key=size)[::-1]


# --- a terminal ---------------------------------------------------------------------------------


def comparison_lines(found: Comparison) -> list[str]:
    """Return the changes in one line each, with changes for the worse first."""
    lines = [f"note: {note}" for note in found.notes]
    for title, changes in (("WORSE", found.worse), ("changed", found.others)):
        lines += [
            f"{title:<8} {change.what.value}: {change.id}  {change.before or 'none'} -> "
            f"{change.now or 'none'}  {short(' '.join(change.reason.split()), _LONGEST)}"
            for change in changes
        ]
    for _, movements in _SECTIONS:
        own = _of(found, movements)
        listed = own if movements == _MOVED else own[:_LISTED]
        lines += [f"epsilon  {one.new.id}  {epsilon_words(one)}" for one in listed]
        if rest := len(own) - len(listed):
            lines.append(f"epsilon  {movements[0].value}: {_many(rest, 'more audit')}")
    return [*lines, method(found), headline(found)]


# --- the comment of a pull request --------------------------------------------------------------


def comparison_markdown(found: Comparison, limit: int = LARGEST_COMMENT) -> str:
    """Return a comment with a table of the changes for the worse.

    Other changes are folded.

    Parameters
    ----------
    found : Comparison
    limit : int
        Largest number of characters. Rows that do not fit are counted but not shown.
    """
    head = [f"### dpaudit: {headline(found)}", ""]
    head += [f"- {_plain(note)}" for note in found.notes]
    foot = ["", f"<sub>{_plain(method(found))}</sub>", ""]
    columns = ("what", "audit or statement", "before", "now", "reason")
    parts: list[tuple[str, tuple[str, ...], list[list[str]]]] = [
        ("", columns, [_row(change) for change in found.worse]),
        (_many(len(found.others), "other change"), columns, [_row(c) for c in found.others]),
    ]
    for title, movements in _SECTIONS:
        own = _of(found, movements)
        rows = [[_code(one.new.id), _plain(epsilon_words(one))] for one in own]
        parts.append((f"{title}: {len(own)}", ("audit", "what is known"), rows))
    space = limit - sum(len(line) + 1 for line in [*head, *foot])
    body: list[str] = []
    for title, names, rows in parts:
        if rows:
            made = _table(title, names, rows, space)
            space -= sum(len(line) + 1 for line in made)
            body += made
    return "\n".join([*head, *body, *foot])


def _row(change: VerdictChange) -> list[str]:
    reason = short(" ".join(change.reason.split()), _LONGEST)
    words = (change.before or "none", change.now or "none", reason)
    return [change.what.value, _code(change.id), *map(_plain, words)]


def _table(title: str, names: Sequence[str], rows: list[list[str]], space: int) -> list[str]:
    """Return a table, folded if it has a title, with as many rows as fit."""
    top = [f"<details><summary>{title}</summary>", ""] if title else [""]
    top += [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    end = ["", "</details>", ""] if title else [""]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    left = space - sum(len(line) + 1 for line in [*top, *end]) - 40
    fits = 0
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            break
        fits += 1
    rest = [f"| {len(lines) - fits} more |{' |' * (len(names) - 1)}"] * (fits < len(lines))
    return [*top, *lines[:fits], *rest, *end] if space > 200 else []


def _plain(text: str) -> str:
    """Return a text whose markup, links and user names are not interpreted."""
    return _FREE.sub(lambda found: f"&#{ord(found.group())};", " ".join(text.split()))


def _code(id: str) -> str:
    return f"<code>{_plain(id)}</code>"
