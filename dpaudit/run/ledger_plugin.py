"""The second half of the pytest plugin: checks of statements are tests with a verdict too.

Loaded by :mod:`dpaudit.run.plugin`. Nothing of the ledger is imported before a check was.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dpaudit.run.plugin import (
    OUTCOME,
    PROBLEMS,
    STATEMENT,
    UnexpectedVerdict,
    reason_of,
    settings_of,
    skip_reason,
    stored_fingerprint,
)

if TYPE_CHECKING:
    from dpaudit.ledger import Ledger, Mark, Statement, StatementResult

LEDGERS = "dpaudit_ledgers"
"""What a worker hands over when it has collected: the ledger files and their checks."""

ledgers = pytest.StashKey[dict[Path, Any]]()
"""Ledger files that this process has collected."""


@dataclass
class Check:
    """One check of one statement, from its setup to its report."""

    row: Statement
    origin: dict[str, Any]
    ledger: Ledger | None = None
    result: StatementResult | None = None
    record: str | None = None
    problems: list[str] = field(default_factory=list)


_checks = pytest.StashKey[Check]()
_clashes = pytest.StashKey[str]()


def is_ledger(path: Path) -> bool:
    """Whether a file belongs to the ledger of a paper."""
    return path.name.startswith("ledger_") and path.suffix == ".py"


def mark_of(item: pytest.Item) -> Mark | None:
    """Return what an item checks; where nobody imported the ledger, no item checks anything."""
    home = sys.modules.get("dpaudit.ledger.statements")
    return None if home is None else home.marked(getattr(item, "function", None))


# --- collection ---


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Remember ledger files and their checks, selected or not."""
    report = yield
    if not isinstance(collector, pytest.Module) or not is_ledger(collector.path):
        return report
    from dpaudit.ledger import LedgerFile, marked, paper_of

    file = LedgerFile()
    if not report.passed:
        file.problem = report.outcome
    else:
        for name, value in vars(collector.obj).items():
            if (mark := marked(value)) is not None:
                file.checks.setdefault(mark.row.id, name)
                if mark.row.text:
                    file.own[mark.row.id] = _own_row(mark, paper_of(collector.path))
    collector.config.stash.setdefault(ledgers, {})[collector.path] = file
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let -k select by id, and refuse two checks of one statement."""
    seen: dict[str, pytest.Item] = {}
    for item in items:
        if (mark := mark_of(item)) is None or hasattr(item, "callspec"):
            continue
        item.extra_keyword_matches.add(mark.row.id)
        if item.path in (files := config.stash.get(ledgers, {})):
            files[item.path].checks[mark.row.id] = item.nodeid.partition("::")[2]
        other = seen.setdefault(mark.row.id, item)
        if other is not item:
            sentence = (
                f"two checks have the id {mark.row.id}: {other.nodeid} and {item.nodeid}; "
                "one statement, one check"
            )
            if not hasattr(config, "workerinput"):
                raise pytest.UsageError(sentence)
            item.stash[_clashes] = sentence  # a worker that dies here takes the run with it


def pytest_collection_finish(session: pytest.Session) -> None:
    """Hand over to the controlling process which ledger files there are."""
    if hasattr(session.config, "workeroutput"):
        found = session.config.stash.get(ledgers, {})
        plain = {str(path): file.plain() for path, file in found.items()}
        session.config.workeroutput[LEDGERS] = json.dumps(plain)


# --- running ---


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Find the row of a check, or say in one sentence what is wrong with it."""
    mark = mark_of(item)
    if mark is None:
        return
    if _clashes in item.stash:
        pytest.fail(item.stash[_clashes], pytrace=False)
    if hasattr(item, "callspec"):
        pytest.fail(
            f"a check of a statement cannot be parametrised: {mark.row.id} has one verdict; "
            "make several attacks in one check",
            pytrace=False,
        )
    row = _row_of(item, mark)
    if isinstance(row, str):
        pytest.fail(row, pytrace=False)
    item.stash[_checks] = check = Check(row, _origin(item, row, mark))
    if "ledger" not in getattr(item, "fixturenames", ()):
        pytest.fail(
            f"the check of {row.id} does not take the fixture `ledger`, with which it attacks: "
            f"write def {item.name}(ledger)",
            pytrace=False,
        )
    out = item.config.getoption("--dpaudit-out")
    if item.config.getoption("--dpaudit-resume"):
        from dpaudit.store import load_finished_statement

        found, lost = load_finished_statement(Path(out), row.id, check.origin["fingerprint"])
        check.problems += [f"{problem}; checked again" for problem in lost]
        if found is not None:
            check.result = replace(found, expected=mark.expected, origin=check.origin)
            check.record = json.dumps(check.result.to_json(), allow_nan=False)


def _own_row(mark: Mark, paper: str) -> Statement:
    """Return the row that a mark brings along."""
    return replace(mark.row, paper=paper, kind=mark.row.kind or "statement")


def _row_of(item: pytest.Item, mark: Mark) -> Statement | str:
    """Return the row of a check, or a sentence that says why there is none."""
    from dpaudit.errors import StoreError
    from dpaudit.ledger import TABLE, paper_of, rows_of

    id, paper = mark.row.id, paper_of(item.path)
    if not is_ledger(item.path):
        return f"the check of {id} must lie in a file ledger_*.py, got {item.path.name}"
    try:
        rows = rows_of(item.path)
    except StoreError as error:
        return str(error)
    if mark.row.text and id in rows:
        return f"{id} has a row in {paper}/{TABLE}: take its text out of the mark"
    if mark.row.text:
        return _own_row(mark, paper)
    if id not in rows:
        there = f"is no row of {paper}/{TABLE}" if rows else f"there is no {TABLE}"
        which = f"{id} {there}" if rows else f"{id} has no row: {there} beside {item.path.name}"
        return f"{which}; add the row, or give the text: @statement({id!r}, 'the statement')"
    return rows[id]


def _origin(item: pytest.Item, row: Statement, mark: Mark) -> dict[str, Any]:
    """Return what a replay needs, and what a stored row must share with it to be taken over."""
    import hashlib
    from importlib import metadata

    from dpaudit.engine import versions

    try:
        hypothesis = metadata.version("hypothesis")
    except metadata.PackageNotFoundError:
        hypothesis = "not installed"
    words = f"{stored_fingerprint(item.config)} {hypothesis} {row!r}"
    return {
        "kind": "statement",
        "path": Path(os.path.relpath(item.path)).as_posix(),
        "item": item.nodeid.partition("::")[2],
        "profile": settings_of(item.config).profile,
        "replays": mark.replays,
        "versions": {**versions(), "hypothesis": hypothesis},
        "fingerprint": hashlib.sha256(words.encode()).hexdigest()[:16],
    }


@pytest.fixture
def ledger(request: pytest.FixtureRequest) -> Ledger:
    """Attack the statement of a check: ``ledger.falsify(cases, sides)`` and its like."""
    check = request.node.stash.get(_checks, None)
    if check is None:
        pytest.fail(
            f"the fixture `ledger` is for checks of statements: mark {request.node.name} with "
            '@statement("paper.name")',
            pytrace=False,
        )
    from dpaudit.ledger import Ledger

    settings = settings_of(request.config)
    found: Ledger = Ledger(check.row, profile=settings.profile, seed=settings.seed)
    check.ledger = found
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Skip the body of a check whose row was taken over from an interrupted run."""
    check = pyfuncitem.stash.get(_checks, None)
    return True if check is not None and check.result is not None else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Reach the verdict when the check has ended, and compare it with the declared one."""
    begun = time.perf_counter()
    outcome = yield
    check, mark = item.stash.get(_checks, None), mark_of(item)
    if check is None or mark is None:
        return outcome
    if check.result is None:
        assert check.ledger is not None
        result = check.ledger.result(seconds=time.perf_counter() - begun)
        result = replace(result, expected=mark.expected, origin=check.origin)
        check.record = _record(result)
        check.result = result
    sentence = check.result.mismatch
    if sentence is not None:
        raise UnexpectedVerdict(f"{check.row.id}: {sentence}")
    return outcome


def _record(result: StatementResult) -> str:
    """Return a row as JSON that can be read again."""
    from dpaudit.errors import StoreError
    from dpaudit.ledger import StatementResult

    try:
        record = json.dumps(result.to_json(), allow_nan=False)
        StatementResult.from_json(json.loads(record))
    except (TypeError, ValueError) as error:
        raise StoreError(f"{result.id}: what was found cannot be stored: {error}") from error
    return record


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the row to the report; one that broke off is open, and says why."""
    report = yield
    mark = mark_of(item)
    if mark is None or call.when == "teardown" or (call.when == "setup" and report.passed):
        return report
    from dpaudit.errors import DpauditError

    check = item.stash.get(_checks, None)
    error = call.excinfo.value if call.excinfo is not None else None
    record = None if check is None else check.record
    if hasattr(report, "wasxfail"):  # it would swallow any verdict
        del report.wasxfail
        report.outcome = "failed"
        report.longrepr = (
            f"xfail does not apply to checks of statements: write @statement({mark.row.id!r}, "
            'expected="refuted"), or what else it finds'
        )
        record = None
    elif isinstance(error, (UnexpectedVerdict, DpauditError)):
        report.longrepr = str(error)
    record = record or _open_record(item, mark, check, report)
    if record is not None:
        report.user_properties.append((STATEMENT, record))
    if check is not None:
        report.user_properties.append((PROBLEMS, check.problems))
    return report


def _open_record(
    item: pytest.Item, mark: Mark, check: Check | None, report: pytest.TestReport
) -> str | None:
    """Return the row of a check that reached no verdict; None where it has no row."""
    from dpaudit.ledger import BROKE_OFF, NOT_RUN, open_row

    row = _row_of(item, mark) if check is None else check.row
    if isinstance(row, str):
        return None
    if report.skipped:
        result = open_row(row, NOT_RUN + skip_reason(report))
    else:
        result = open_row(row, BROKE_OFF + reason_of(report))
        result = replace(result, expected=mark.expected)
        if check is not None:
            result = result.with_origin(check.origin)
    return json.dumps(result.to_json(), allow_nan=False)


# --- reports ---


def reported_statement(report: pytest.TestReport) -> StatementResult | None:
    """Return the row that a report carries; None for a test that checks no statement."""
    record = dict(report.user_properties).get(STATEMENT)
    if not isinstance(record, str):
        return None
    from dpaudit.ledger import StatementResult

    return StatementResult.from_json(json.loads(record))


def pytest_report_teststatus(
    report: pytest.TestReport | pytest.CollectReport, config: pytest.Config
) -> tuple[str, str, str] | None:
    """Choose the words of a check that reached a verdict; anything else is a failure as ever."""
    if getattr(report, "when", None) != "call" or not isinstance(report, pytest.TestReport):
        return None
    result = reported_statement(report)
    if OUTCOME in dict(report.user_properties):  # an audit that checks functions besides
        return None
    if result is None or report.failed is not (result.mismatch is not None):
        return None
    from dpaudit.ledger import statement_status

    outcome = statement_status(result)
    return None if outcome.key == "open" else (outcome.category, outcome.letter, outcome.word)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print every row that is not as declared, and count the verdicts."""
    reports = [r for group in terminalreporter.stats.values() for r in group]
    rows = [
        row
        for report in reports
        if isinstance(report, pytest.TestReport) and (row := reported_statement(report)) is not None
    ]
    if not rows:
        return
    from dpaudit.report import statement_finding, statement_lines

    terminalreporter.section("ledger")
    for row in rows:
        if row.mismatch is not None:
            terminalreporter.line(statement_finding(row) + "\n")
    for line in statement_lines(rows):
        terminalreporter.line(line)
