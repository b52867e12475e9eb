"""What became of each audit and statement of a run, one case each, for files that CI systems read.

A case passes, fails, is in error or is skipped. It fails where it fails the run: an unexpected
refutation, a mutant that was given and survived, a known violation that was not found again, a
statement that is not as declared. It is in error where no verdict was reached. What a run of a
selection kept of earlier runs was not run, and is skipped, whatever it says.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit._files import inside, read_regular
from dpaudit.errors import StoreError
from dpaudit.ledger import BROKE_OFF, NOT_RUN, LedgerVerdict, StatementResult
from dpaudit.report.page import kept
from dpaudit.report.terminal import finding, statement_finding
from dpaudit.results import AuditResult, mutation_score
from dpaudit.store import Run

_LARGEST = 2**24  # bytes of a file with audits
PASSED, FAILED, ERROR, SKIPPED = "passed", "failure", "error", "skipped"

_NODE = re.compile(r"(?P<node>.+?\.py(?:::[^:\[]+(?:\[.*?\])?)*): (?P<reason>.*)", re.DOTALL)


@dataclass(frozen=True)
class Case:
    """What became of one audit, one statement, or of a function that left neither.

    Parameters
    ----------
    group, name : str
        Of the file or the paper; of the record in it.
    outcome : {"passed", "failure", "error", "skipped"}
    type : str
        Of a failure: a key of a status, such as "refuted".
    message, text : str
        Why it did not pass, in one sentence and in some lines.
    seconds : float
    path, line : str, int or None
        Where its function stands, as far as that is known.
    facts : tuple of (str, str)
        What else there is to say.
    """

    group: str
    name: str
    outcome: str
    type: str = ""
    message: str = ""
    text: str = ""
    seconds: float = 0.0
    path: str = ""
    line: int | None = None
    facts: tuple[tuple[str, str], ...] = ()


def cases_of(
    run: Run, results: Sequence[AuditResult], statements: Sequence[StatementResult]
) -> list[Case]:
    """Return the cases of a run: audits, then statements, then what left no record."""
    older = {kind: kept(run, kind) for kind in ("audit", "statement")}
    cases = [_audit(result, older["audit"].get(result.id)) for result in results]
    cases += [_statement(row, older["statement"].get(row.id)) for row in statements]
    notes = {row.note for row in statements if row.verdict is LedgerVerdict.OPEN}
    cases += _without_record(run.problems, ERROR, BROKE_OFF, notes)
    cases += _without_record(run.skipped, SKIPPED, NOT_RUN, notes)
    if not run.complete:
        words = "the run was interrupted: what it did not reach is not here"
        cases.append(Case("dpaudit", "run", ERROR, "interrupted", words, words))
    return cases


def _audit(result: AuditResult, older: Any) -> Case:
    killed, judged = mutation_score(result.mutants)
    facts: dict[str, Any] = {
        "verdict": result.verdict.value,
        "status": result.status.word,
        "claimed_epsilon": repr(result.claimed_epsilon),
        "claimed_delta": repr(result.claimed_delta),
        "certified_epsilon": repr(result.certified_epsilon),
        "estimated_epsilon": repr(result.estimated_epsilon),
        "failure_prob": repr(result.failure_prob),
        "mutants_killed": f"{killed} of {judged}",
        "seed": result.seed,
    }
    if reason := result.origin.get("reason"):
        facts["known_violation"] = reason
    failed = result.mismatch
    return _case(
        result,
        Path(str(result.origin.get("path", "dpaudit"))).stem,
        (FAILED, result.status.key, failed, finding(result)) if failed else None,
        facts,
        older,
    )


def _statement(row: StatementResult, older: Any) -> Case:
    facts = {"verdict": row.verdict.value, "declared": row.expected.value, "kind": row.kind}
    bad: tuple[str, str, str, str] | None = None
    if row.note.startswith(BROKE_OFF):
        bad = (ERROR, "broke_off", row.note.removeprefix(BROKE_OFF), statement_finding(row))
    elif row.mismatch is not None:
        bad = (FAILED, "statement", row.mismatch, statement_finding(row))
    elif row.verdict is LedgerVerdict.OPEN:
        bad = (SKIPPED, "open", row.note.removeprefix(NOT_RUN), "")
    return _case(row, row.paper, bad, facts, older)


def _case(
    record: AuditResult | StatementResult,
    group: str,
    bad: tuple[str, str, str, str] | None,
    facts: dict[str, Any],
    older: Any,
) -> Case:
    """Put together the case of a record; `bad` is outcome, type, message and text."""
    if older is not None:
        facts["made"] = older.made
        words = f"not run now; an earlier run found: {record.status.word}"
        bad = (SKIPPED, "kept", words, "")
    path = str(record.origin.get("path", ""))
    return Case(
        group,
        record.id,
        *(bad or (PASSED, "", "", "")),
        seconds=record.seconds,
        path=path,
        line=line_of(path, str(record.origin.get("item", ""))),
        facts=tuple((name, str(value)) for name, value in facts.items()),
    )


def _without_record(
    sentences: Sequence[str], outcome: str, begin: str, notes: set[str]
) -> Iterator[Case]:
    """Yield cases of functions and files that left no record; rows that say the same do."""
    for sentence in sentences:
        node, reason = node_and_reason(sentence)
        path, _, item = node.partition("::")
        if item and Path(path).match("ledger_*.py") and begin + reason in notes:
            continue
        group = Path(path).stem if path else "dpaudit"
        line = line_of(path, item)
        yield Case(
            group, item or path or "run", outcome, outcome, reason, sentence, 0.0, path, line
        )


def node_and_reason(sentence: str) -> tuple[str, str]:
    """Split a sentence of a run into what pytest calls the function or file, and the rest.

    Examples
    --------
    >>> node_and_reason("audits/audit_x.py::audit_y[a: b]: it is not installed")
    ('audits/audit_x.py::audit_y[a: b]', 'it is not installed')
    >>> node_and_reason("what an earlier run found is not shown")
    ('', 'what an earlier run found is not shown')
    """
    found = _NODE.fullmatch(sentence)
    return (found["node"], found["reason"]) if found else ("", sentence)


def line_of(path: str, item: str) -> int | None:
    """Return the line on which a function stands now, from 1; None where it is not there."""
    if not path or not item:
        return None
    try:
        file = inside(Path.cwd(), path)
        changed = file.stat().st_mtime_ns
    except (StoreError, OSError):
        return None
    return _functions(file, changed).get(item.partition("[")[0].split("::")[-1])


@functools.lru_cache(maxsize=64)
def _functions(file: Path, changed: int) -> dict[str, int]:
    """Return the lines of all functions of a file, by name; none of a file that cannot be read."""
    try:
        tree = ast.parse(read_regular(file, _LARGEST))
    except (OSError, StoreError, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name: node.lineno for node in ast.walk(tree) if isinstance(node, kinds)}
