"""The life of an audit function or of a check, from its setup to its report: one shape for both.

The plugin makes a job for each, and asks it what it found. Nothing of this is imported where no
test of a session is one.
"""

from __future__ import annotations

import abc
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dpaudit.errors import StoreError
from dpaudit.ledger import (
    BROKE_OFF,
    NOT_RUN,
    TABLE,
    Mark,
    Statement,
    StatementResult,
    open_row,
    paper_at,
    paper_of,
)
from dpaudit.results import Expectation, short
from dpaudit.run.auditor import Auditor
from dpaudit.run.carry import reason_of, skip_reason
from dpaudit.run.damage import Condition
from dpaudit.run.progress import ProgressWriter
from dpaudit.run.provenance import is_current, sources, versions
from dpaudit.run.settings import PROFILES, RunSettings, settings_of
from dpaudit.store import Record, load_finished

if TYPE_CHECKING:
    from dpaudit.ledger import Ledger

_QUOTED = 60  # letters

_sources = pytest.StashKey[dict[str, str]]()


class UnexpectedVerdict(Exception):
    """A function ended otherwise than declared; carries the sentences to print."""


def audit_id(item: pytest.Item) -> str:
    """Name of an audit function, independent of the directory that pytest runs in."""
    return f"{item.path.stem}::{item.nodeid.partition('::')[2]}"


class Job(abc.ABC):
    """One audit function or one check.

    Parameters
    ----------
    item : pytest.Item
        What pytest collected.
    id : str
        Of the first record that it makes.
    """

    no_xfail: str
    """Why the mark xfail does not apply, in one sentence."""

    def __init__(self, item: pytest.Item, id: str) -> None:
        config = item.config
        self.id = id
        self.root: Path = config.rootpath
        self.settings: RunSettings = settings_of(config)
        self.fault: str | None = None
        """Why the function cannot be run, in one sentence."""
        self.skipped = ""
        """Why it is not run in this profile; empty where it is."""
        self.taken = False
        """Whether its records were taken over from an interrupted run."""
        self.damage = ""
        """What the function left behind that later ones would suffer from; empty for nothing."""
        self._condition = Condition()
        self.records: list[Record] = []
        self.problems: list[str] = []
        self.origin: dict[str, Any] = {
            "kind": "file",
            "path": Path(os.path.relpath(item.path)).as_posix(),
            "item": item.nodeid.partition("::")[2],
            **self.settings.origin(),
            "versions": versions(),
            "sources": _sources_of(config),
        }

    def take_over(self, out: Path) -> None:
        """Take over what an interrupted run of the same left in `out`: all of it, or nothing."""
        found, lost = load_finished(out, self.id, self.accepts)
        self.problems += [f"{problem}; made again" for problem in lost]
        self.records = [self._with_origin(r, r.origin) for r in found]
        self.taken = bool(found)

    def accepts(self, record: Record) -> bool:
        """Whether a stored record is what this job would find."""
        return is_current(record, self.settings, self.root)

    def end(self, seconds: float) -> None:
        """Reach the verdict when the function has ended; raise where it is not as declared."""
        if not self.taken:
            made = self.made(seconds)
            self.records = [self._with_origin(r, {**r.origin, "records": len(made)}) for r in made]
        if sentences := list(self.mismatches()):
            raise UnexpectedVerdict("\n".join(sentences))

    def find_damage(self) -> str:
        """Return what the function and its fixtures left behind in the process, in words."""
        self.damage = self._condition.damage()
        return self.damage

    def mismatches(self) -> Iterable[str]:
        """Say what is not as declared, a sentence each."""
        return (f"{r.id}: {sentence}" for r in self.records if (sentence := r.mismatch) is not None)

    def _with_origin(self, record: Record, origin: dict[str, Any]) -> Record:
        return record.with_origin({**origin, **self.origin}, self.declared(record))

    @abc.abstractmethod
    def declared(self, record: Record) -> Any:
        """Return what was declared about a record."""

    @abc.abstractmethod
    def made(self, seconds: float) -> list[Record]:
        """Return what a function found that ended by itself."""

    @abc.abstractmethod
    def broken_off(self, report: pytest.TestReport) -> list[Record]:
        """Return what is known of a function that did not end by itself."""


def _sources_of(config: pytest.Config) -> dict[str, str]:
    """Return the hashes of the sources, taken once, when everything is collected."""
    if _sources not in config.stash:
        config.stash[_sources] = sources(config.rootpath)
    return config.stash[_sources]


class AuditJob(Job):
    """An audit function: any number of audits, and of checks of deterministic functions."""

    no_xfail = "xfail does not apply to audits: mark it known_violation(reason)"

    def __init__(self, item: pytest.Item) -> None:
        super().__init__(item, audit_id(item))
        expected = Expectation.POWER if self.settings.strict else Expectation.NOT_REFUTED
        for mark in item.iter_markers("known_violation"):
            try:
                reason, profile = _known_violation(*mark.args, **mark.kwargs)
            except (TypeError, ValueError) as error:
                self.fault = f"known_violation(reason, profile='quick'): {error}"
                continue
            self.origin["reason"] = reason
            known = self.settings.reaches(profile)
            expected = Expectation.REFUTED if known else Expectation.EITHER
        for mark in item.iter_markers("from_profile"):
            try:
                profile = _profile(*mark.args, **mark.kwargs)
            except (TypeError, ValueError) as error:
                self.fault = f"from_profile(profile): {error}"
                continue
            if not self.settings.reaches(profile):
                self.skipped = f"it takes long: --profile {profile} runs it"
        if "auditor" not in getattr(item, "fixturenames", ()):
            self.fault = (
                f"{self.id} made no check: it does not take the fixture `auditor`; "
                f"write def {item.name}(auditor)"
            )
        out = item.config.getoption("--dpaudit-out")
        worker = getattr(item.config, "workerinput", {}).get("workerid", "main")
        progress = None if out is None else ProgressWriter(Path(out), worker)
        self.auditor = Auditor(self.id, self.settings, expected, progress)
        self.paper = item.path.stem

    def declared(self, record: Record) -> Any:
        """Return the expectation of an audit; a row of functions keeps its own."""
        if isinstance(record, StatementResult):
            return record.expected
        return self.auditor.expected

    def made(self, seconds: float) -> list[Record]:
        """Return the results of all checks, and the row of those of functions."""
        found = self._found()
        if not found:
            raise UnexpectedVerdict(
                f"{self.id} made no check: call auditor.check at least once, or skip the audit"
            )
        return found

    def _found(self) -> list[Record]:
        row = self.auditor.function_row(self.paper)
        return [*self.auditor.results, *([] if row is None else [row])]

    def mismatches(self) -> Iterable[str]:
        """Say what is not as declared; of functions, which pair breaks the bound."""
        broken = [str(check) for check in self.auditor.functions if check.violated]
        for record in self.records:
            if isinstance(record, StatementResult) and broken:
                yield from broken
            elif record.mismatch is not None:
                yield f"{record.id}: {record.mismatch}"

    def broken_off(self, report: pytest.TestReport) -> list[Record]:
        """Return the checks that were finished: whatever came after them, they are certified."""
        return self.records or [self._with_origin(r, r.origin) for r in self._found()]


def _known_violation(reason: str, profile: str = "quick") -> tuple[str, str]:
    """Read the arguments of the mark, refusing unknown ones by name."""
    if not isinstance(reason, str):
        raise TypeError(f"reason must be a text, got {reason!r}")
    return reason, _profile(profile)


def _profile(profile: str) -> str:
    """Return the name of a profile, refusing others."""
    if profile not in PROFILES:
        raise ValueError(f"profile must be one of {', '.join(PROFILES)}; got {profile!r}")
    return profile


class CheckJob(Job):
    """The check of one statement."""

    def __init__(self, item: pytest.Item, mark: Mark) -> None:
        super().__init__(item, mark.id)
        self.mark = mark
        self.no_xfail = (
            f"xfail does not apply to checks of statements: write @statement({self.id!r}, "
            'expected="refuted"), or what else it finds'
        )
        self.origin["replays"] = mark.replays
        row = _row_of(item.path, mark)
        self.row = None if isinstance(row, str) else row
        self.ledger: Ledger | None = None
        if self.row is not None:
            from dpaudit.ledger import Ledger  # with hypothesis, which audits do not need

            self.ledger = Ledger(
                self.row,
                paper=paper_at(item.path),
                found=mark.found,
                profile=self.settings.profile,
                seed=self.settings.seed,
            )
        if isinstance(row, str):
            self.fault = row
        elif "ledger" not in getattr(item, "fixturenames", ()):
            self.fault = (
                f"the check of {self.id} does not take the fixture `ledger`, with which it "
                f"attacks: write def {item.name}(ledger)"
            )
        if hasattr(item, "callspec"):
            self.fault = (
                f"a check of a statement cannot be parametrised: {self.id} has one verdict; "
                "make several attempts in one check"
            )

    def accepts(self, record: Record) -> bool:
        """Whether a stored row has this text, and is what this check would find."""
        if not isinstance(record, StatementResult) or self.row is None:
            return False
        return record.stated == self.row and super().accepts(record)

    def declared(self, record: Record) -> Any:
        """Return what the mark declares."""
        return self.mark.expected

    def made(self, seconds: float) -> list[Record]:
        """Return the row."""
        assert self.ledger is not None
        return [self.ledger.result(seconds=seconds)]

    def broken_off(self, report: pytest.TestReport) -> list[Record]:
        """Return the row of a check that reached no verdict: open, with the reason."""
        if self.row is None:
            return []
        if report.skipped:
            return [open_row(self.row, NOT_RUN + skip_reason(report))]
        found = open_row(self.row, BROKE_OFF + reason_of(report))
        return [self._with_origin(found, {})]


def own_row(mark: Mark, path: Path) -> Statement | None:
    """Return the row of a statement that stands in no table: its check brings the words along."""
    if not mark.text:
        return None
    try:
        known = paper_at(path).rows
    except StoreError:
        return None
    if known:
        return None
    return Statement(mark.id, paper_of(path), mark.kind or "statement", mark.text)


def _row_of(path: Path, mark: Mark) -> Statement | str:
    """Return the row of a check, or a sentence that says why there is none."""
    id, paper = mark.id, paper_of(path)
    if not path.match("ledger_*.py"):
        return f"the check of {id} must lie in a file ledger_*.py, got {path.name}"
    try:
        rows = paper_at(path).rows
    except StoreError as error:
        return str(error)
    if not rows:
        return own_row(mark, path) or (
            f"{id} has no words: there is no {TABLE} beside {path.name}, and its check has no "
            "docstring that begins with the statement"
        )
    if id not in rows:
        return f"{id} is no statement of {paper}/{TABLE}: add it there"
    if mark.text != rows[id].text:
        said = f"begins with {short(mark.text, _QUOTED)!r}" if mark.text else "is missing"
        return (
            f"the docstring of the check of {id} {said}; it must begin with the statement in the "
            f"words of {paper}/{TABLE}: {rows[id].text}"
        )
    return rows[id]
