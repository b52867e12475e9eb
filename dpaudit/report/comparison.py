"""What changed between two runs: lines of text, the comment of a pull request, plain data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from dpaudit import _json
from dpaudit.report.changes import Comparison, Moved, Side
from dpaudit.report.verdict_changes import VerdictChange
from dpaudit.results import Movement, RegionShown, at_least, at_most, beyond, number, short
from dpaudit.store import kinds

COMPARISON_SCHEMA = 1
LARGEST_COMMENT = 60_000
"""Characters of a comment; GitHub takes 65,536."""

_LONGEST = 300
_SECTIONS = (
    ("epsilon moved beyond chance", (Movement.ROSE, Movement.FELL, Movement.BOTH_WAYS)),
    ("epsilon not comparable, so only estimates stand here", (Movement.NOT_COMPARABLE,)),
    ("epsilon did not move with the verdict", (Movement.NOT_WITH_VERDICT,)),
    ("epsilon within chance", (Movement.WITHIN_CHANCE,)),
)
_FREE = re.compile(r"[^A-Za-z0-9 .,:;=%+/'>-]|:(?=//)|(?<=www)\.")


# --- words --------------------------------------------------------------------------------------


def headline(found: Comparison) -> str:
    """Return what changed in one line."""
    moved = sum(one.shift.is_beyond_chance for one in found.moved)
    parts = [f"{len(found.worse)} worse", _many(len(found.others), "other change")]
    parts += [f"{_many(moved, 'epsilon')} moved beyond chance", f"{found.same} the same"]
    return ", ".join(parts)


def method(found: Comparison) -> str:
    """Return how it was told that an epsilon moved, and how often that is wrong."""
    if not found.moved and not found.same:
        return "no epsilon could be compared: no audit is in both runs"
    if not found.moved:
        return "no epsilon had to be compared: all audits of both runs are the same to the last bit"
    return (
        "an epsilon moved where bounds exclude one another: a lower bound and a known upper one, "
        "or the intervals of what one region of outputs shows; that any of "
        f"{found.compared} is told to have moved that has not has probability <= "
        f"{found.false_alarm:g}, each {number(found.false_alarm / max(found.compared, 1))}"
    )


def moved_words(one: Moved) -> str:
    """Return what became of the epsilon of one audit."""
    old, new = one.old, one.new
    lines = [
        f"estimated {number(old.estimated_epsilon)} before, {number(new.estimated_epsilon)} now",
        f"certified {beyond(old.certified_epsilon, old.claimed_epsilon)} before, "
        f"{beyond(new.certified_epsilon, new.claimed_epsilon)} now",
    ]
    if old.claimed_delta != new.claimed_delta:
        lines.append(f"at delta = {number(old.claimed_delta)} and {number(new.claimed_delta)}")
    lines += map(_region_words, one.shift.shown)
    return f"{one.shift.movement.value}: {'; '.join(lines)} ({one.shift.reason})"


def _region_words(shown: RegionShown) -> str:
    before, now = (f"{at_least(low)} to {at_most(high)}" for low, high in (shown.old, shown.new))
    return f"{shown.region} shows {before} before, {now} now"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _of(found: Comparison, movements: Iterable[Movement]) -> list[Moved]:
    return [one for one in found.moved if one.shift.movement in movements]


# --- a terminal ---------------------------------------------------------------------------------


def comparison_lines(found: Comparison) -> list[str]:
    """Return what changed, a line each: what is worse first."""
    lines = [f"note: {note}" for note in found.notes]
    for title, changes in (("WORSE", found.worse), ("changed", found.others)):
        lines += [
            f"{title:<8} {change.what.value}: {change.id}  {change.before or 'none'} -> "
            f"{change.now or 'none'}  {short(' '.join(change.reason.split()), _LONGEST)}"
            for change in changes
        ]
    for _, movements in _SECTIONS:
        told = _of(found, movements)
        if Movement.WITHIN_CHANCE in movements:
            lines += [f"epsilon  within chance: {_many(len(told), 'audit')}"] * bool(told)
        else:
            lines += [f"epsilon  {one.new.id}  {moved_words(one)}" for one in told]
    return [*lines, method(found), headline(found)]


# --- the comment of a pull request --------------------------------------------------------------


def comparison_markdown(found: Comparison, limit: int = LARGEST_COMMENT) -> str:
    """Return a comment: a table of what is worse, the rest folded.

    Parameters
    ----------
    found : Comparison
    limit : int
        Most characters; rows that have no room are counted instead.
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
        told = _of(found, movements)
        rows = [[_code(one.new.id), _plain(moved_words(one))] for one in told]
        parts.append((f"{title}: {len(told)}", ("audit", "what is known"), rows))
    room = limit - sum(len(line) + 1 for line in [*head, *foot])
    body: list[str] = []
    for title, names, rows in parts:
        if rows:
            made = _table(title, names, rows, room)
            room -= sum(len(line) + 1 for line in made)
            body += made
    return "\n".join([*head, *body, *foot])


def _row(change: VerdictChange) -> list[str]:
    reason = short(" ".join(change.reason.split()), _LONGEST)
    words = (change.before or "none", change.now or "none", reason)
    return [change.what.value, _code(change.id), *map(_plain, words)]


def _table(title: str, names: Sequence[str], rows: list[list[str]], room: int) -> list[str]:
    """Return a table, folded where it has a title, with the rows that there is room for."""
    top = [f"<details><summary>{title}</summary>", ""] if title else [""]
    top += [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    end = ["", "</details>", ""] if title else [""]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    left = room - sum(len(line) + 1 for line in [*top, *end]) - 40
    fits = 0
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            break
        fits += 1
    rest = [f"| {len(lines) - fits} more |{' |' * (len(names) - 1)}"] * (fits < len(lines))
    return [*top, *lines[:fits], *rest, *end] if room > 200 else []


def _plain(text: str) -> str:
    """Return a text in which nothing is markup, a link or the name of a user."""
    return _FREE.sub(lambda found: f"&#{ord(found.group())};", " ".join(text.split()))


def _code(id: str) -> str:
    return f"<code>{_plain(id)}</code>"


# --- JSON ---------------------------------------------------------------------------------------


def comparison_json(found: Comparison) -> dict[str, Any]:
    """Return plain data for other programs; infinities are the word."""
    data = {
        "schema": COMPARISON_SCHEMA,
        "old": _side(found.old),
        "new": _side(found.new),
        "is_worse": bool(found.worse),
        "same": found.same,
        "notes": found.notes,
        "worse": [_change(change) for change in found.worse],
        "others": [_change(change) for change in found.others],
        "epsilons": {
            "false_alarm": found.false_alarm,
            "compared": found.compared,
            "method": method(found),
            "audits": [_moved(one) for one in found.moved],
        },
    }
    return {key: _strict(value) for key, value in data.items()}


def _strict(value: Any) -> Any:
    """Return plain data with the word for an infinity, which JSON has no number for."""
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    return _json.encode(value)


def _side(side: Side) -> dict[str, Any]:
    run = side.run
    facts: dict[str, Any] = {"name": side.name}
    for name, kind in kinds().items():
        facts[kind.folder] = sum(key[0] == name for key in side.records)
    if run is None:
        return facts
    names = ("profile", "seed", "failure_prob", "started", "complete")
    return facts | {name: getattr(run, name) for name in names}


def _change(change: VerdictChange) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "id": change.id,
        "what": change.what.value,
        "before": change.before or None,
        "now": change.now or None,
        "reason": change.reason,
    }


def _moved(one: Moved) -> dict[str, Any]:
    return {
        "id": one.new.id,
        "movement": one.shift.movement.value,
        "is_beyond_chance": one.shift.is_beyond_chance,
        "reason": one.shift.reason,
        "false_alarm": one.shift.false_alarm,
        "delta": one.shift.delta,
        "before": _numbers(one.old),
        "now": _numbers(one.new),
        "regions": [
            {"region": shown.region, "before": list(shown.old), "now": list(shown.new)}
            for shown in one.shift.shown
        ],
    }


def _numbers(result: Any) -> dict[str, Any]:
    names = ("certified_epsilon", "estimated_epsilon", "claimed_epsilon", "claimed_delta", "seed")
    upper = result.epsilon.upper
    return {name: getattr(result, name) for name in names} | {"upper_epsilon": upper}
