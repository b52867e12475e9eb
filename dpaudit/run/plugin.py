"""The pytest plugin, which runs audits as tests with a verdict.

This module is thin on purpose. Pytest collects, selects, parametrizes and runs functions. A
:mod:`job <dpaudit.run.jobs>` makes the audits. The plugin itself passes results on and chooses the
words. Other kinds of records, such as the statements of a ledger, use :mod:`hooks
<dpaudit.run.hooks>`. No expensive module is imported before a session has an audit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dpaudit._validate import DEFAULT_FAILURE_PROB
from dpaudit.run import hooks
from dpaudit.run.carry import DAMAGED, ENDS_RUN, cargo_of, load_cargo, shortened
from dpaudit.run.settings import settings_of

if TYPE_CHECKING:
    from dpaudit.run.auditor import Auditor
    from dpaudit.run.jobs import Job

_FILES = "audit_*.py"
_FUNCTIONS = "audit_*"

_jobs = pytest.StashKey["Job"]()
_clashes = pytest.StashKey[str]()


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks of other kinds of records."""
    pluginmanager.add_hookspecs(hooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options; `dpaudit run` has the same options without the prefix."""
    group = parser.getgroup("dpaudit", "auditing of differential privacy")

    def option(name: str, help: str, **more: Any) -> None:
        group.addoption(f"--dpaudit{name}", help=help, **more)

    option("", "collect audit_*.py and ledger_*.py as well", action="store_true")
    option("-profile", "quick, full or release, default quick", metavar="NAME")
    option("-seed", "root seed, default 0", metavar="SEED")
    option("-failure-prob", f"of each audit, default {DEFAULT_FAILURE_PROB:g}", metavar="P")
    option("-sequential", "stop each audit as soon as the evidence suffices", action="store_true")
    option("-strict", "audits without power fail, whatever the reason", action="store_true")
    option("-time-limit", "stop an audit after this many seconds", metavar="SECONDS")
    workers = "processes that draw for one audit, default 1; or the address of a Dask scheduler"
    option("-workers", workers, metavar="N")
    option("-out", "write results and the report there", metavar="DIR")
    kept = "keep the results in --dpaudit-out whose files and imports did not change"
    names = ("--dpaudit-changed", "--dpaudit-resume")
    group.addoption(*names, dest="dpaudit_resume", help=kept, action="store_true")
    option("-history", "keep the evidence of all runs in this file", metavar="FILE")
    collect = "collect audit_*.py and ledger_*.py files, and audit_* functions"
    parser.addini("dpaudit_collect", collect, "bool", default=False)
    parser.addini("dpaudit_strict", "as --dpaudit-strict, for every run", "bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Switch on collection if the project or the command line requests it."""
    config.addinivalue_line(
        "markers",
        "known_violation(reason, profile='quick'): the audit refutes the claim, as it should; "
        "strict from `profile` upwards: the run fails if it stops being refuted",
    )
    config.addinivalue_line(
        "markers", "from_profile(profile): the audit needs many draws, and smaller runs skip it"
    )
    collects = config.getini("dpaudit_collect") or config.getoption("--dpaudit")
    if collects:
        config.addinivalue_line("python_files", _FILES)
        config.addinivalue_line("python_functions", _FUNCTIONS)
    out = config.getoption("--dpaudit-out")
    asked = any(
        value not in (None, False)
        for name, value in vars(config.option).items()
        if name.startswith("dpaudit_")
    )
    if not (collects or asked):
        return  # If collection is off, no module of the engine is imported.
    # A slow audit gives a warning. This warning never becomes a failure, even if warnings are
    # errors.
    config.addinivalue_line("filterwarnings", "default::dpaudit.errors.SlowAuditWarning")
    settings = settings_of(config)  # bad options are refused before anything is run
    for name in ("resume", "history"):
        if out is None and config.getoption(f"--dpaudit-{name}"):
            raise pytest.UsageError(f"--dpaudit-{name} must be given with --dpaudit-out")
    if out is not None and not hasattr(config, "workerinput"):
        from dpaudit.errors import StoreError
        from dpaudit.run.session import AuditSession

        try:
            session = AuditSession(config, Path(out), settings)
        except StoreError as error:
            raise pytest.UsageError(str(error)) from None
        from dpaudit.run.supervision import Supervisor

        config.pluginmanager.register(session, "dpaudit-session")
        config.pluginmanager.register(Supervisor(session), "dpaudit-supervisor")


# --- collection -------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(name: str, obj: object) -> list[pytest.Item] | None:
    """Ignore functions that a file imported from dpaudit, for example `audit_outputs`."""
    ours = str(getattr(obj, "__module__", "")).partition(".")[0] == "dpaudit"
    return [] if ours and fnmatch(name, _FUNCTIONS) else None


@pytest.hookimpl(trylast=True)
def pytest_dpaudit_job(item: pytest.Item) -> type[Job] | None:
    """Return the job of an audit, or of a function that looks like an audit without fixture."""
    name = getattr(item, "originalname", None) or item.name
    is_audit = fnmatch(item.path.name, _FILES) and fnmatch(name, _FUNCTIONS)
    if not is_audit and "auditor" not in getattr(item, "fixturenames", ()):
        return None
    from dpaudit.run.jobs import AuditJob

    return AuditJob


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Raise an error if two functions have one id, because they would share files and seeds."""
    seen: dict[str, pytest.Item] = {}
    for item in items:
        job = config.hook.pytest_dpaudit_job(item=item)
        if job is None:
            continue
        id = job.id_of(item)
        other = seen.setdefault(id, item)
        if other is not item:
            places = f"{other.nodeid} and {item.nodeid}"
            sentence = f"two {job.noun} have the id {id}: {places}; {job.fix}"
            if not hasattr(config, "workerinput"):
                raise pytest.UsageError(sentence)
            item.stash[_clashes] = sentence  # an error here would end the worker and the run


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note the code of all collected audits and checks, before any of them is run."""
    config, job_of = session.config, session.config.hook.pytest_dpaudit_job
    if paths := {item.path for item in session.items if job_of(item=item) is not None}:
        from dpaudit.run.jobs import note_provenance

        note_provenance(config, paths)


# --- running ----------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Make the job of a function, or report in one sentence what is wrong with the function."""
    made = item.config.hook.pytest_dpaudit_job(item=item)
    if made is None:
        return
    job = item.stash[_jobs] = made(item)
    fault = item.stash.get(_clashes, None) or job.fault
    if fault is not None:
        pytest.fail(fault, pytrace=False)
    if job.skipped:
        pytest.skip(job.skipped)
    if item.config.getoption("--dpaudit-resume"):
        job.take_over(Path(item.config.getoption("--dpaudit-out")))


def job_of(item: pytest.Item) -> Job | None:
    """Return the job of a function; None for any other test."""
    return item.stash.get(_jobs, None)


@pytest.fixture
def auditor(request: pytest.FixtureRequest) -> Auditor:
    """Check mechanisms against claims by ``auditor.check(mechanism, claim, pairs)``."""
    found: Auditor | None = getattr(job_of(request.node), "auditor", None)
    if found is None:
        pytest.fail(
            "the fixture `auditor` is for audits: in a check of a statement call ledger.audit",
            pytrace=False,
        )
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Skip the body of a function whose records were taken over from an earlier run."""
    job = job_of(pyfuncitem)
    return True if job is not None and job.taken else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """End a process that an audit has damaged before another audit is affected."""
    outcome = yield
    job = job_of(item)
    if job is not None and job.damage:
        if hasattr(item.config, "workerinput"):
            os._exit(1)  # pytest-xdist starts another worker
        item.session.shouldstop = f"{job.id} left its process damaged: {job.damage}"
    return outcome


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Determine the verdicts of the ended function, and compare them with the declared verdicts."""
    if (job := job_of(item)) is None:
        return (yield)
    from dpaudit.errors import MechanismError
    from dpaudit.mechanisms import Watch

    begun, watch = time.perf_counter(), Watch()
    try:
        with watch.signals():
            outcome = yield
    except KeyboardInterrupt as error:
        if watch.interrupted:
            raise
        raise MechanismError(f"{job.id} raised KeyboardInterrupt itself") from error
    job.end(time.perf_counter() - begun)
    return outcome


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the results to the report, and report a fault of the mechanism in one sentence."""
    if call.excinfo is not None and not item.config.getoption("fulltrace", False):
        call.excinfo = _without_own_frames(call.excinfo)
    report = yield
    job = job_of(item)
    if job is None:
        return report
    report.sections = [(name, shortened(text)) for name, text in report.sections]
    if call.when == "teardown" and (damage := job.find_damage()):
        words = f"{job.id} left its process damaged: {damage}; the process is not used again"
        report.outcome, report.longrepr = "failed", words
        setattr(report, DAMAGED, True)
    if call.when == "teardown" or (call.when == "setup" and report.passed):
        return report
    from dpaudit.errors import DpauditError, StoreError, WorkersLost
    from dpaudit.run.jobs import UnexpectedVerdict

    error = call.excinfo.value if call.excinfo is not None else None
    whole = call.when == "call" and (error is None or isinstance(error, UnexpectedVerdict))
    if isinstance(error, (UnexpectedVerdict, DpauditError)):
        report.longrepr = str(error)
    if isinstance(error, WorkersLost):
        setattr(report, ENDS_RUN, str(error))
    if hasattr(report, "wasxfail"):  # xfail would hide every verdict
        del report.wasxfail
        report.outcome, report.longrepr, whole = "failed", job.no_xfail, False
    whole = whole and bool(job.records)
    records = job.records if whole else job.broken_off(report)
    full = isinstance(error, StoreError) and isinstance(error.__cause__, OSError)
    disk = str(error) if full else ""
    load_cargo(report, records, job.problems, whole=whole, taken=job.taken, disk=disk)
    from dpaudit.report import section_of

    for record in records:  # pytest writes these facts as test-case properties into JUnit files
        facts = ", ".join(section_of(record).facts(record))
        item.user_properties.append((record.id, f"{record.status.word}: {facts}"))
    return report


def _without_own_frames(excinfo: pytest.ExceptionInfo[Any]) -> pytest.ExceptionInfo[Any]:
    """Leave out dpaudit's functions from the traceback of an error that blames other code."""
    from dpaudit.errors import DpauditError, drop_own_frames

    if not isinstance(excinfo.value, DpauditError):
        return excinfo
    return pytest.ExceptionInfo.from_exception(drop_own_frames(excinfo.value))


# --- words ------------------------------------------------------------------------------------


def pytest_report_teststatus(
    report: pytest.TestReport | pytest.CollectReport, config: pytest.Config
) -> tuple[str, str, str] | None:
    """Choose the words for a function that reached a verdict.

    Any other outcome stays a failure.
    """
    status = cargo_of(report).status
    return None if status is None else (status.category, status.letter, status.word)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the sections of all kinds of records."""
    reports = [report for group in terminalreporter.stats.values() for report in group]
    records = [record for report in reports for record in cargo_of(report).records]
    if records:
        from dpaudit.report import by_section

        for section, own in by_section(records):
            if (found := section.summary(own, verbose=config.option.verbose > 0)) is not None:
                terminalreporter.section(found[0])
                terminalreporter.line(found[1])
