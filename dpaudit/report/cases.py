"""What became of each record of a run, one case each, for files that CI systems read.

A case passes, fails, is in error or is skipped. It fails where it fails the run: an unexpected
refutation, a mutant that was given and survived, a known violation that was not found again, a
statement that is not as declared. It is in error where no verdict was reached. What a run of a
selection kept of earlier runs was not run, and is skipped, whatever it says.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dpaudit._files import inside, read_regular
from dpaudit.errors import StoreError
from dpaudit.report.page import kept
from dpaudit.report.sections import ERROR, SKIPPED, Case, sections
from dpaudit.store import Kept, Record, Run, by_kind, kinds

_LARGEST = 2**24  # bytes of a file with audits

_NODE = re.compile(r"(?P<node>.+?\.py(?:::[^:\[]+(?:\[.*?\])?)*): (?P<reason>.*)", re.DOTALL)


def cases_of(run: Run, records: Sequence[Record]) -> list[Case]:
    """Return the cases of a run: of its records, kind by kind, then of what left no record."""
    cases: list[Case] = []
    said: set[tuple[str, str, str]] = set()
    for name, own in by_kind(records).items():
        older = kept(run, name)
        made = [_placed(record, sections()[name].case(record), older) for record in own]
        said |= {(kinds()[name].files, case.outcome, case.message) for case in made}
        cases += made
    sentences = [(ERROR, problem) for problem in run.problems]
    for outcome, sentence in [*sentences, *((SKIPPED, reason) for reason in run.skipped)]:
        node, reason = node_and_reason(sentence)
        path, _, item = node.partition("::")
        files = (kind.files for kind in kinds().values() if Path(path).match(kind.files))
        if item and any((pattern, outcome, reason) in said for pattern in files):
            continue  # the row of a record says so
        where = Path(path).stem if path else "dpaudit", item or path or "run"
        line = line_of(path, item)
        cases.append(Case(*where, outcome, outcome, reason, sentence, 0.0, path, line))
    if not run.complete:
        words = "the run was interrupted: what it did not reach is not here"
        cases.append(Case("dpaudit", "run", ERROR, "interrupted", words, words))
    return cases


def _placed(record: Record, case: Case, older: Mapping[str, Kept]) -> Case:
    """Add to a case what it has whatever its kind."""
    path, item = (str(record.origin.get(name, "")) for name in ("path", "item"))
    if record.id in older:
        words = f"not run now; an earlier run found: {record.status.word}"
        facts = {**case.facts, "made": older[record.id].made}
        case = Case(case.group, case.name, SKIPPED, "kept", words, facts=facts)
    group = case.group or Path(path or "dpaudit").stem
    line = line_of(path, item)
    return replace(case, group=group, seconds=record.seconds, path=path, line=line)


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
