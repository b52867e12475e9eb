"""The pytest plugin: audits are tests with a verdict.

Thin on purpose: pytest collects, selects, parametrizes and runs; the engine audits; this module
hands over results and chooses words. Nothing heavy is imported before an audit runs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dpaudit.results import AuditResult
    from dpaudit.runner import Auditor, Settings

RESULTS_PROPERTY = "dpaudit_results"
OUTCOME_PROPERTY = "dpaudit_outcome"
_auditors = pytest.StashKey["Auditor"]()
_fingerprint = pytest.StashKey[str]()

# outcome of an audit function -> (category in pytest's summary line, letter, word)
OUTCOMES = {
    "refuted": ("refuted", "R", "REFUTED"),
    "lost": ("lost violations", "L", "VIOLATION NOT FOUND AGAIN"),
    "no_power": ("without power", "P", "NO POWER"),
    "known": ("known violations", "k", "REFUTED (known)"),
    "powerless": ("no verdict", "p", "NO POWER (no twin)"),
    "open": ("open", "o", "OPEN (needs a larger profile)"),
    "not_refuted": ("not refuted", ".", "NOT REFUTED"),
}


class UnexpectedVerdict(Exception):
    """An audit ended otherwise than declared; carries the sentence to print."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options; `dpaudit run` has the same without the prefix."""
    group = parser.getgroup("dpaudit", "auditing of differential privacy")
    group.addoption("--dpaudit", action="store_true", help="collect audit_*.py as well")
    group.addoption(
        "--dpaudit-profile", default="quick", metavar="NAME", help="quick, full or release"
    )
    group.addoption("--dpaudit-seed", default="0", metavar="SEED", help="root seed, default 0")
    group.addoption(
        "--dpaudit-failure-prob", default="1e-5", metavar="P", help="of each audit, default 1e-5"
    )
    group.addoption("--dpaudit-out", metavar="DIR", help="write results and the report there")
    group.addoption(
        "--dpaudit-resume", action="store_true", help="take over what an interrupted run left"
    )
    parser.addini(
        "dpaudit_collect", "collect audit_*.py files and audit_* functions", "bool", default=False
    )


def pytest_configure(config: pytest.Config) -> None:
    """Switch on collection where the project or the command line asks for it."""
    config.addinivalue_line(
        "markers",
        "known_violation(reason, profile='quick'): the audit refutes the claim, as it should; "
        "strict from `profile` upwards: the run fails if it stops being refuted",
    )
    if config.getini("dpaudit_collect") or config.getoption("--dpaudit"):
        config.addinivalue_line("python_files", "audit_*.py")
        config.addinivalue_line("python_functions", "audit_*")
    _settings(config)  # refuse bad options before anything runs
    out = config.getoption("--dpaudit-out")
    if out is not None and not hasattr(config, "workerinput"):
        from dpaudit.errors import StoreError
        from dpaudit.session import AuditSession
        from dpaudit.store import check_writable

        try:
            check_writable(Path(out))
        except StoreError as error:
            raise pytest.UsageError(str(error)) from None
        config.pluginmanager.register(AuditSession(config, Path(out)), "dpaudit-session")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse two audits of one id, and note the code that is about to be audited."""
    audits = [item for item in items if "auditor" in getattr(item, "fixturenames", ())]
    seen: dict[str, pytest.Item] = {}
    for item in audits:
        other = seen.setdefault(audit_id(item), item)
        if other is not item:
            raise pytest.UsageError(
                f"two audits have the id {audit_id(item)}: {other.nodeid} and {item.nodeid}; "
                "rename one of the files"
            )
    if audits:
        from dpaudit.runner import fingerprint

        config.stash[_fingerprint] = fingerprint(config.rootpath, _settings(config))


def _settings(config: pytest.Config) -> Settings:
    from dpaudit.runner import Settings

    try:
        seed = int(config.getoption("--dpaudit-seed"))
        failure_prob = float(config.getoption("--dpaudit-failure-prob"))
    except ValueError as error:
        raise pytest.UsageError(f"--dpaudit-seed and --dpaudit-failure-prob: {error}") from None
    try:
        return Settings(config.getoption("--dpaudit-profile"), seed, failure_prob)
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None


def audit_id(item: pytest.Item) -> str:
    """Name of an audit function, independent of the directory that pytest runs in."""
    inside = item.nodeid.partition("::")[2]
    return f"{item.path.stem}::{inside}"


@pytest.fixture
def auditor(request: pytest.FixtureRequest) -> Auditor:
    """Check mechanisms against claims: ``auditor.check(mechanism, claim, pairs, twin=...)``."""
    from dpaudit.runner import Auditor

    item = request.node
    settings = _settings(request.config)
    expected: str | None = "not_refuted"
    for mark in item.iter_markers("known_violation"):
        _, profile = _known_violation(*mark.args, **mark.kwargs)
        expected = "refuted" if settings.reaches(profile) else None
    origin = {
        "kind": "file",
        "path": Path(os.path.relpath(item.path)).as_posix(),
        "item": item.nodeid.partition("::")[2],
        "profile": settings.profile,
        "failure_prob": settings.failure_prob,
        "fingerprint": item.config.stash[_fingerprint],
    }
    found = Auditor(audit_id(item), settings, origin, expected)
    if request.config.getoption("--dpaudit-resume"):
        found.take_over(Path(request.config.getoption("--dpaudit-out") or "reports"))
    item.stash[_auditors] = found
    return found


def _known_violation(reason: str, profile: str = "quick") -> tuple[str, str]:
    """Read the arguments of the mark, refusing unknown ones by name."""
    from dpaudit.runner import PROFILES

    if profile not in PROFILES:
        raise pytest.UsageError(f"known_violation: profile must be one of {', '.join(PROFILES)}")
    return reason, profile


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
        from dpaudit.runner import surprise

        surprises = [(r, s) for r in found.results if (s := surprise(r)) is not None]
        if surprises:
            raise UnexpectedVerdict("\n".join(f"{r.id}: {s}" for r, s in surprises))
    return outcome


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach results to the report, and say a fault of the mechanism in one sentence."""
    report = yield
    found = item.stash.get(_auditors, None)
    if call.when == "call" and found is not None:
        from dpaudit.errors import DpauditError

        error = call.excinfo.value if call.excinfo is not None else None
        if isinstance(error, (UnexpectedVerdict, DpauditError)):
            report.longrepr = str(error)
        if error is None or isinstance(error, UnexpectedVerdict):
            records = [json.dumps(r.to_json(), allow_nan=False) for r in found.finished_results()]
            report.user_properties += [(RESULTS_PROPERTY, records)]
            if found.results:
                report.user_properties += [(OUTCOME_PROPERTY, outcome_of(found.results))]
    return report


def outcome_of(results: list[AuditResult]) -> str:
    """Return the worst outcome among the checks of one audit function; a key of `OUTCOMES`."""
    kinds = {_kind(result) for result in results}
    return next(kind for kind in OUTCOMES if kind in kinds)


def _kind(result: AuditResult) -> str:
    refuted = result.verdict.value == "refuted"
    if result.expected == "refuted":
        return "known" if refuted else "lost"
    if result.expected is None:
        return "known" if refuted else "open"
    if refuted:
        return "refuted"
    if result.verdict.value == "no_power":
        return "no_power" if result.twin is not None else "powerless"
    return "not_refuted"


def reported(report: pytest.TestReport) -> tuple[list[AuditResult], str | None]:
    """Return the results and the outcome that a report carries."""
    from dpaudit.results import AuditResult

    properties = dict(report.user_properties)
    records = properties.get(RESULTS_PROPERTY, [])
    results = [AuditResult.from_json(json.loads(str(r))) for r in records]  # type: ignore[attr-defined]
    outcome = properties.get(OUTCOME_PROPERTY)
    return results, None if outcome is None else str(outcome)


def pytest_report_teststatus(
    report: pytest.TestReport | pytest.CollectReport, config: pytest.Config
) -> tuple[str, str, str] | None:
    """Choose the words of an audit; keyed on our own outcome, so that a bug stays a failure."""
    if getattr(report, "when", None) != "call" or not isinstance(report, pytest.TestReport):
        return None
    outcome = dict(report.user_properties).get(OUTCOME_PROPERTY)
    return None if outcome is None else OUTCOMES[str(outcome)]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print every refutation with its witness, and every audit without power."""
    shown = [key for key in OUTCOMES if key != "not_refuted"]
    lines: list[str] = []
    for key in shown:
        for report in terminalreporter.stats.get(OUTCOMES[key][0], []):
            from dpaudit.report.terminal import finding_lines

            results, _ = reported(report)
            for result in results:
                if _kind(result) == key:
                    lines += [*finding_lines(result, OUTCOMES[key][2]), ""]
    if lines:
        terminalreporter.section("privacy")
        for line in lines[:-1]:
            terminalreporter.line(line)
