"""Descriptions of the rows of a ledger, for the terminal, tables and the page."""

from __future__ import annotations

import math
import pprint
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit.ledger.coverage import NOT_RUN
from dpaudit.ledger.rows import LedgerVerdict, StatementResult
from dpaudit.properties import Attempt, Method, Power
from dpaudit.report import replay_command
from dpaudit.results import LARGEST_RATIO, number

_IN_COUNTS = {LedgerVerdict.HOLDS_PROOF_BROKEN: "holds with a broken proof"}
_EQUAL = 1e-9
_CLOSE = 1e-4
_PASTED = 20_000


def ratio_words(ratio: float | None) -> str:
    """Return a ratio lhs / rhs as text that shows whether the ratio exceeds 1.

    Examples
    --------
    >>> ratio_words(0.5), ratio_words(0.999999), ratio_words(1 + 1e-15), ratio_words(1.000003)
    ('0.5', '0.9999', '1', '1 + 3e-6')
    >>> ratio_words(20.0), ratio_words(1e9), ratio_words(math.inf)
    ('20', '> 1,000', 'unbounded')
    """
    if ratio is None:
        return "–"
    if ratio == math.inf:
        return "unbounded"
    if ratio > LARGEST_RATIO:
        return f"> {LARGEST_RATIO:,.0f}"
    if abs(ratio - 1) <= _EQUAL:
        return "1"
    if 1 - _CLOSE < ratio < 1:
        return "0.9999"
    if 1 < ratio < 1 + _CLOSE:
        return f"1 + {ratio - 1:.0e}".replace("e-0", "e-")
    return number(ratio, 4)


def method_words(result: StatementResult) -> str:
    """Return the method of a row, or a dash if there is none."""
    return "–" if result.method is None else result.method.words


def examples_words(attempt: StatementResult | Attempt) -> str:
    """Return the number of judged cases, or a dash if there are none."""
    return f"{attempt.examples:,}" if attempt.examples else "–"


def cases_words(result: StatementResult) -> str:
    """Return the number of judged cases, as a phrase."""
    return f"{result.examples:,} example{'s' * (result.examples != 1)}"


def is_powerless(result: StatementResult) -> bool:
    """Return whether a statement held although none of its attempts has a mutant."""
    tried = any(attempt.method is not Method.ARGUMENT for attempt in result.attempts)
    return result.verdict is LedgerVerdict.HOLDS and tried and result.power is Power.NONE


def power_words(result: StatementResult) -> str:
    """Return whether the mutant was killed, if this matters, and whether the check is weak."""
    word = "–"
    if result.power is not Power.NONE:
        word = result.power.value
    elif is_powerless(result):
        word = "no mutant"
    return f"{word}, weak" if result.weak else word


def remark(result: StatementResult) -> str:
    """Return the most important remark on a row: a mismatch, a repair or a note."""
    if result.mismatch is not None:
        return result.mismatch
    if result.repair_verdict is None:
        return result.note
    return f"repair {result.repair_verdict.words}: {result.repair}"


def is_left_out(result: StatementResult) -> bool:
    """Return whether a statement has a check that was not run."""
    return result.note.startswith(NOT_RUN) and not result.origin


@dataclass(frozen=True)
class VerdictCounts:
    """Numbers of rows of each kind."""

    verdicts: Mapping[LedgerVerdict, int]
    not_run: int
    argued: int
    survived: int
    powerless: int
    weak: int
    mismatches: int

    @property
    def total(self) -> int:
        """Number of all rows."""
        return sum(self.verdicts.values())


def tally(rows: Sequence[StatementResult]) -> VerdictCounts:
    """Count rows by verdict, and rows whose verdict has weaknesses."""
    verdicts = [row.verdict for row in rows]
    counts = {verdict: verdicts.count(verdict) for verdict in LedgerVerdict}
    argued = [row for row in rows if row.method is Method.ARGUMENT]
    return VerdictCounts(
        {verdict: count for verdict, count in counts.items() if count},
        sum(is_left_out(row) for row in rows),
        sum(row.verdict is not LedgerVerdict.NOT_EXECUTABLE for row in argued),
        sum(row.power is Power.SURVIVED for row in rows),
        sum(map(is_powerless, rows)),
        sum(bool(row.weak) for row in rows),
        sum(row.mismatch is not None for row in rows),
    )


def tally_lines(rows: Sequence[StatementResult]) -> list[str]:
    """Return the counts of a ledger in one or two lines."""
    found = tally(rows)
    parts = []
    for verdict, count in found.verdicts.items():
        word = _IN_COUNTS.get(verdict, verdict.words)
        word = word.replace("holds", "hold") if count != 1 else word
        left_out = verdict is LedgerVerdict.OPEN and found.not_run > 0
        parts.append(f"{count} {word}" + f" ({found.not_run} not run, and not listed)" * left_out)
    rest = {
        "not as declared": found.mismatches,
        "by argument only": found.argued,
        "whose mutant survived": found.survived,
        "that held without a mutant": found.powerless,
        "with a weak attempt": found.weak,
    }
    lines = [f"{_count(found.total)}: {', '.join(parts)}"]
    if any(rest.values()):
        words = (f"{count} {what}" for what, count in rest.items() if count)
        lines.append(f"of these {', '.join(words)}")
    return lines


def _count(rows: int) -> str:
    return "1 statement" if rows == 1 else f"{rows} statements"


# --- cases as text ---


def parts_of(case: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each part of a case.

    An array gets a line for each row.
    """
    for name, value in case.items():
        yield name, _value(value)


def _value(value: Any) -> str:
    if isinstance(value, float):
        return exact(value)
    if isinstance(value, list):
        if value and all(isinstance(row, list) for row in value):
            return "[" + "\n ".join(_value(row).replace("\n", "\n ") for row in value) + "]"
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        return "\n".join(f"{key} = {_value(item)}" for key, item in value.items())
    return str(value)


def exact(value: float) -> str:
    """Return a number with all digits, and an integer without a decimal point."""
    value = float(value)
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞"
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def as_python(case: Mapping[str, Any]) -> str:
    """Return a case as lines that can be pasted into Python, with all digits.

    Cases of more than twenty thousand characters are replaced by a remark.

    Examples
    --------
    >>> print(as_python({"points": [[0.5, float("inf")]], "n": 3}))
    from math import inf
    case = {'points': [[0.5, inf]], 'n': 3}
    """
    text = f"case = {pprint.pformat(dict(case), width=96, sort_dicts=False, compact=True)}"
    if len(text) > _PASTED:
        return "# too long for this page: see the raw result"
    names = [name for name in ("inf", "nan") if re.search(rf"(?<![\w'\"]){name}\b", text)]
    head = f"from math import {', '.join(names)}\n" if names else ""
    return head + text.replace("\n", "\n       ")


def counterexample_words(attempt: Attempt) -> str:
    """Return both sides of a claim at its counterexample, or "" if there is none."""
    found = attempt.counterexample
    if found is None:
        return ""
    if found.nan:
        return "a side is NaN"
    return f"lhs = {exact(found.lhs)} {attempt.sign} rhs = {exact(found.rhs)}"


def case_line(case: Mapping[str, Any]) -> str:
    """Return a case in one line."""
    return ", ".join(f"{name} = {' '.join(text.split())}" for name, text in parts_of(case))


def replay_words(result: StatementResult, out: Path | None = None) -> str:
    """Return the command that repeats a check, or "" if the row was not checked."""
    return replay_command(result, out) if {"path", "item", "profile"} <= set(result.origin) else ""
