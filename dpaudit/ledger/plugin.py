"""The pytest plugin of the ledger.

The plugin runs checks of statements as tests with a verdict. Expensive modules are imported only in
sessions that have a check.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Generator, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dpaudit import _json
from dpaudit.errors import StoreError
from dpaudit.run import collected, job_of

if TYPE_CHECKING:
    from dpaudit.ledger import Ledger
    from dpaudit.properties import FunctionCheck
    from dpaudit.run import AuditJob, AuditSession, Job
    from dpaudit.store import Record

_FILES = "ledger_*.py"
_HANDED = "dpaudit_ledgers"
"""Data that a worker sends after collection: the ledger files and their checks."""


def pytest_configure(config: pytest.Config) -> None:
    """Collect ledger files in every session that collects audits."""
    if config.getini("dpaudit_collect") or config.getoption("--dpaudit"):
        config.addinivalue_line("python_files", _FILES)


# --- collection -------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Remember ledger files and all their checks, whether selected or not."""
    report = yield
    if not isinstance(collector, pytest.Module) or not fnmatch(collector.path.name, _FILES):
        return report
    from dpaudit.ledger import LedgerFile, marked
    from dpaudit.ledger.jobs import own_row

    config = collector.config
    chosen = (arg.partition("::")[0] for arg in config.args if "::" in arg)
    here = config.invocation_params.dir
    file = LedgerFile(is_part=any((here / arg).absolute() == collector.path for arg in chosen))
    if not report.passed:
        file.problem = report.outcome
    else:
        for name, value in vars(collector.obj).items():
            if (mark := marked(value)) is not None:
                file.checks.setdefault(mark.id, name)
                if (own := own_row(mark, collector.path)) is not None:
                    file.own[mark.id] = own
    config.stash.setdefault(collected, {})[collector.path] = file
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_dpaudit_job(item: pytest.Item) -> type[Job] | None:
    """Return the job of a check.

    If the ledger was not imported, no function can be a check.
    """
    home = sys.modules.get("dpaudit.ledger.statements")
    if home is None or home.marked(getattr(item, "function", None)) is None:
        return None
    from dpaudit.ledger.jobs import CheckJob

    return CheckJob


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let -k select statements by id."""
    files = config.stash.get(collected, {})
    for item in items:
        job = pytest_dpaudit_job(item)
        if job is not None and not hasattr(item, "callspec"):
            id = job.id_of(item)
            item.extra_keyword_matches.add(id)
            if item.path in files:
                files[item.path].checks[id] = item.nodeid.partition("::")[2]


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Remember the ledger files of which a run leaves out checks."""
    for item in items:
        if (file := item.config.stash.get(collected, {}).get(item.path)) is not None:
            file.is_part = True


def pytest_collection_finish(session: pytest.Session) -> None:
    """Send the ledger files to the controlling process."""
    if hasattr(session.config, "workeroutput"):
        found = session.config.stash.get(collected, {})
        session.config.workeroutput[_HANDED] = json.dumps(_json.encode(found))


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_testnodedown(node: Any) -> None:
    """Receive the ledger files from a worker."""
    if found := json.loads(getattr(node, "workeroutput", {}).get(_HANDED, "{}")):
        from dpaudit.ledger import LedgerFile

        files = {Path(path): _json.decode(LedgerFile, file) for path, file in found.items()}
        node.config.stash.setdefault(collected, {}).update(files)


@pytest.fixture
def ledger(request: pytest.FixtureRequest) -> Ledger:
    """Return the object that tests the statement of a check.

    An example of its use is ``ledger.falsify(**domain)``.
    """
    found: Ledger | None = getattr(job_of(request.node), "ledger", None)
    if found is None:
        pytest.fail(
            f"the fixture `ledger` is for checks of statements. Mark {request.node.name} with "
            '@statement("paper.name")',
            pytrace=False,
        )
    return found


# --- stored rows ------------------------------------------------------------------------------


@pytest.hookimpl(optionalhook=True)
def pytest_dpaudit_functions(job: AuditJob, checks: Sequence[FunctionCheck]) -> Record:
    """Return one row for the deterministic functions that an audit function checked."""
    from dpaudit.ledger import LedgerVerdict, Statement, StatementResult

    broken = any(check.violated for check in checks)
    text = "; ".join(f"{check.function}: {check.claim}" for check in checks)
    return StatementResult(
        Statement(job.id, Path(job.origin["path"]).stem, "function", text),
        LedgerVerdict.REFUTED if broken else LedgerVerdict.HOLDS,
        checks[0].attempt.method,
        tuple(check.attempt for check in checks),
        seed=job.settings.seed,
        needs_power=False,
    )


@pytest.hookimpl(optionalhook=True)
def pytest_dpaudit_complete(
    session: AuditSession, records: list[Record]
) -> tuple[dict[str, Any], Sequence[str]]:
    """Add the rows of statements without a check, in the order of their papers."""
    from dpaudit.ledger.coverage import STATEMENT, account, papers_of
    from dpaudit.ledger.paper import paper_at, paper_of
    from dpaudit.ledger.rows import StatementResult

    files, before = session.config.stash.get(collected, {}), session.before
    found = [record for record in records if isinstance(record, StatementResult)]
    rows, problems = account(files, found, session.lost)
    titles = {}
    if before.run is not None:
        titles = {paper.name: paper for paper in papers_of(before.run)}
        if not session.asked.whole:  # other papers keep their rows without a check
            known = {row.id for row in rows}
            papers = {paper_of(path) for path in files}
            bare = [record for record in before.bare if isinstance(record, StatementResult)]
            rows += [row for row in bare if row.paper not in papers and row.id not in known]
            rows.sort(key=lambda row: row.paper)
    records[:] = [record for record in records if not isinstance(record, StatementResult)]
    records += rows
    for path in files:
        with contextlib.suppress(StoreError):  # the problems of the session report this
            paper = paper_at(path)
            titles[paper.name] = replace(paper, statements=())
    names = dict.fromkeys(row.paper for row in rows)
    return {STATEMENT.name: tuple(titles[n] for n in names if n in titles)}, problems
