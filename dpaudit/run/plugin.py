"""The pytest plugin: audits are tests with a verdict.

Thin on purpose: pytest collects, selects, parametrizes and runs; the engine audits; this module
hands over results and chooses words. Nothing heavy is imported before an audit runs. Its second
half, :mod:`dpaudit.run.ledger_plugin`, does the same for checks of statements.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dpaudit._validate import DEFAULT_FAILURE_PROB

if TYPE_CHECKING:
    from dpaudit.results import AuditResult, Status
    from dpaudit.run.auditor import Auditor, Settings

pytest_plugins = ["dpaudit.run.ledger_plugin"]

RESULTS, OUTCOME, PROBLEMS = "dpaudit_results", "dpaudit_outcome", "dpaudit_problems"
"""Properties of a test report: workers hand results over as plain text."""

STATEMENT = "dpaudit_statement"
"""Property of a test report: the row that checks of a statement or of functions led to."""

_ASKS = (
    "--dpaudit-profile",
    "--dpaudit-seed",
    "--dpaudit-failure-prob",
    "--dpaudit-sequential",
    "--dpaudit-resume",
)
"""Options by which a session shows that it audits."""

_auditors = pytest.StashKey["Auditor"]()
_fingerprint = pytest.StashKey[str]()
_clashes = pytest.StashKey[str]()


class UnexpectedVerdict(Exception):
    """An audit ended otherwise than declared; carries the sentence to print."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options; `dpaudit run` has the same without the prefix."""
    group = parser.getgroup("dpaudit", "auditing of differential privacy")
    group.addoption(
        "--dpaudit", action="store_true", help="collect audit_*.py and ledger_*.py as well"
    )
    group.addoption(
        "--dpaudit-profile", metavar="NAME", help="quick, full or release, default quick"
    )
    group.addoption("--dpaudit-seed", metavar="SEED", help="root seed, default 0")
    group.addoption(
        "--dpaudit-failure-prob",
        metavar="P",
        help=f"of each audit, default {DEFAULT_FAILURE_PROB:g}",
    )
    group.addoption(
        "--dpaudit-sequential",
        action="store_true",
        help="stop each audit as soon as the evidence is in",
    )
    group.addoption("--dpaudit-out", metavar="DIR", help="write results and the report there")
    group.addoption(
        "--dpaudit-resume",
        action="store_true",
        help="take over what an interrupted run left in --dpaudit-out",
    )
    parser.addini(
        "dpaudit_collect",
        "collect audit_*.py and ledger_*.py files, and audit_* functions",
        "bool",
        default=False,
    )


def pytest_configure(config: pytest.Config) -> None:
    """Switch on collection where the project or the command line asks for it."""
    config.addinivalue_line(
        "markers",
        "known_violation(reason, profile='quick'): the audit refutes the claim, as it should; "
        "strict from `profile` upwards: the run fails if it stops being refuted",
    )
    collects = config.getini("dpaudit_collect") or config.getoption("--dpaudit")
    if collects:
        config.addinivalue_line("python_files", "audit_*.py")
        config.addinivalue_line("python_files", "ledger_*.py")
        config.addinivalue_line("python_functions", "audit_*")
    out = config.getoption("--dpaudit-out")
    asked = any(config.getoption(name) not in (None, False) for name in _ASKS)
    if not (collects or asked or out is not None):
        return  # idle: nothing of the engine is imported
    settings = settings_of(config)  # refuse bad options before anything runs
    if out is None and config.getoption("--dpaudit-resume"):
        raise pytest.UsageError("--dpaudit-resume needs --dpaudit-out, where the results are")
    if out is not None and not hasattr(config, "workerinput"):
        from dpaudit.errors import StoreError
        from dpaudit.run.session import AuditSession
        from dpaudit.store import check_writable

        try:
            check_writable(Path(out))
        except StoreError as error:
            raise pytest.UsageError(str(error)) from None
        config.pluginmanager.register(AuditSession(config, Path(out), settings), "dpaudit-session")


def _option(config: pytest.Config, name: str, default: str) -> str:
    """Return an option as it was written; ours have no default, so that one sees if any is set."""
    value = config.getoption(name)
    return default if value is None else str(value)


def settings_of(config: pytest.Config) -> Settings:
    """Return the settings that the options ask for; refuse bad ones as wrong usage."""
    from dpaudit.run.auditor import Settings

    try:
        seed = int(_option(config, "--dpaudit-seed", "0"))
        failure_prob = float(_option(config, "--dpaudit-failure-prob", repr(DEFAULT_FAILURE_PROB)))
    except ValueError as error:
        raise pytest.UsageError(f"--dpaudit-seed and --dpaudit-failure-prob: {error}") from None
    try:
        return Settings(
            _option(config, "--dpaudit-profile", "quick"),
            seed,
            failure_prob,
            bool(config.getoption("--dpaudit-sequential")),
        )
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None


def stored_fingerprint(config: pytest.Config) -> str:
    """Return the fingerprint of the run, taken once, when everything is collected."""
    if _fingerprint not in config.stash:
        from dpaudit.run.auditor import fingerprint

        config.stash[_fingerprint] = fingerprint(config.rootpath, settings_of(config))
    return config.stash[_fingerprint]


def audit_id(item: pytest.Item) -> str:
    """Name of an audit function, independent of the directory that pytest runs in."""
    inside = item.nodeid.partition("::")[2]
    return f"{item.path.stem}::{inside}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse two audits of one id: they would share their seeds and their files."""
    seen: dict[str, pytest.Item] = {}
    for item in items:
        if "auditor" not in getattr(item, "fixturenames", ()):
            continue
        other = seen.setdefault(audit_id(item), item)
        if other is not item:
            sentence = (
                f"two audits have the id {audit_id(item)}: {other.nodeid} and {item.nodeid}; "
                "rename one of the files"
            )
            if not hasattr(config, "workerinput"):
                raise pytest.UsageError(sentence)
            item.stash[_clashes] = sentence  # a worker that dies here takes the run with it


@pytest.fixture
def auditor(request: pytest.FixtureRequest) -> Auditor:
    """Check mechanisms against claims: ``auditor.check(mechanism, claim, pairs, mutant=...)``."""
    from dpaudit.results import Expectation
    from dpaudit.run.auditor import Auditor

    item, config = request.node, request.config
    if _clashes in item.stash:
        pytest.fail(item.stash[_clashes], pytrace=False)
    settings = settings_of(config)
    expected = Expectation.NOT_REFUTED
    for mark in item.iter_markers("known_violation"):
        try:
            profile = _known_violation_profile(*mark.args, **mark.kwargs)
        except TypeError as error:
            pytest.fail(f"known_violation(reason, profile='quick'): {error}", pytrace=False)
        known = settings.reaches(profile)
        expected = Expectation.REFUTED if known else Expectation.EITHER
    origin = {
        "kind": "file",
        "path": Path(os.path.relpath(item.path)).as_posix(),
        "item": item.nodeid.partition("::")[2],
        "profile": settings.profile,
        "failure_prob": settings.failure_prob,
        "sequential": settings.sequential,
        "fingerprint": stored_fingerprint(config),
    }
    found = Auditor(audit_id(item), settings, origin, expected)
    if config.getoption("--dpaudit-resume"):
        found.take_over(Path(config.getoption("--dpaudit-out")))
    item.stash[_auditors] = found
    return found


def _known_violation_profile(reason: str, profile: str = "quick") -> str:
    """Read the arguments of the mark, refusing unknown ones by name."""
    from dpaudit.run.auditor import PROFILES

    if profile not in PROFILES:
        raise pytest.UsageError(
            f"known_violation: profile must be one of {', '.join(PROFILES)}; got {profile!r}"
        )
    return profile


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Skip the body of an audit whose results were taken over from an interrupted run."""
    found = pyfuncitem.stash.get(_auditors, None)
    return True if found is not None and found.results else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Judge the results when the audit function has ended."""
    outcome = yield
    found = item.stash.get(_auditors, None)
    if found is not None:
        if not found.results and not found.functions:
            raise UnexpectedVerdict(
                f"{found.item} made no check: call auditor.check at least once, or skip the audit"
            )
        mismatches = [f"{r.id}: {s}" for r in found.results if (s := r.mismatch) is not None]
        mismatches += [str(check) for check in found.functions if check.violated]
        if found.taken is not None and found.taken.mismatch is not None:
            mismatches.append(f"{found.taken.statement}: {found.taken.mismatch}")
        if mismatches:
            raise UnexpectedVerdict("\n".join(mismatches))
    return outcome


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach results to the report, and say a fault of the mechanism in one sentence."""
    report = yield
    found = item.stash.get(_auditors, None)
    if call.when == "call" and found is not None:
        if hasattr(report, "wasxfail"):  # it would swallow any verdict
            del report.wasxfail
            report.outcome = "failed"
            report.longrepr = "xfail does not apply to audits: mark it known_violation(reason)"
            return report
        from dpaudit.errors import DpauditError
        from dpaudit.results import worst

        error = call.excinfo.value if call.excinfo is not None else None
        if isinstance(error, (UnexpectedVerdict, DpauditError)):
            report.longrepr = str(error)
        # Whatever ended the function, the checks that it finished are certified.
        whole = error is None or isinstance(error, UnexpectedVerdict)
        records = [
            json.dumps(r.to_json(), allow_nan=False) for r in found.finished_results(whole=whole)
        ]
        report.user_properties += [(RESULTS, records), (PROBLEMS, found.problems)]
        if whole and found.results:
            report.user_properties += [(OUTCOME, worst(r.status for r in found.results).key)]
        if (row := found.function_row()) is not None:
            report.user_properties += [(STATEMENT, json.dumps(row.to_json(), allow_nan=False))]
    return report


def reported(report: pytest.TestReport) -> tuple[list[AuditResult], Status | None]:
    """Return the results that a report carries, and the outcome of the whole audit function.

    The outcome is None for a test that is no audit, and for an audit that broke off.
    """
    properties: dict[str, Any] = dict(report.user_properties)
    if not properties.get(RESULTS):
        return [], None
    from dpaudit.results import STATUSES, AuditResult

    results = [AuditResult.from_json(json.loads(record)) for record in properties[RESULTS]]
    key = properties.get(OUTCOME)
    return results, None if key is None else STATUSES[key]


def skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return why a test or a file was skipped."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return one line that says why a test or a file failed."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = str(report.longrepr if crash is None else crash.message).strip().splitlines()
    return lines[0 if crash is not None else -1].removeprefix("E ").strip() if lines else "failed"


def pytest_report_teststatus(
    report: pytest.TestReport | pytest.CollectReport, config: pytest.Config
) -> tuple[str, str, str] | None:
    """Choose the words of an audit; keyed on our own outcome, so that a bug stays a failure."""
    if getattr(report, "when", None) != "call" or not isinstance(report, pytest.TestReport):
        return None
    _, outcome = reported(report)
    return None if outcome is None else (outcome.category, outcome.letter, outcome.word)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print every refutation with its witness, and every audit without power."""
    reports = [r for group in terminalreporter.stats.values() for r in group]
    results = [
        result
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
        for result in reported(report)[0]
    ]
    if not results:
        return
    from dpaudit.report import finding
    from dpaudit.results import STATUSES

    order = list(STATUSES)
    told = [r for r in results if r.status.key != "not_refuted"]
    told.sort(key=lambda result: order.index(result.status.key))
    if told:
        terminalreporter.section("privacy")
        terminalreporter.line("\n\n".join(finding(result) for result in told))
