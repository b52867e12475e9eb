"""The life of a function whose records a run stores, from the setup to the report.

The plugin makes a job for each such function, and asks the job for its results. This module is
imported only if a session has such a function.
"""

from __future__ import annotations

import abc
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpaudit.results import AuditResult, Expectation
from dpaudit.run.auditor import Auditor
from dpaudit.run.damage import Condition
from dpaudit.run.progress import ProgressWriter
from dpaudit.run.provenance import changed_sources, is_current, provenance, root_of
from dpaudit.run.settings import RunSettings, settings_of
from dpaudit.store import History, HistoryLine, Record, load_finished, read_history

_of_files = pytest.StashKey[dict[Path, dict[str, Any]]]()
_history = pytest.StashKey[History | None]()


def note_provenance(config: pytest.Config, paths: Iterable[Path]) -> None:
    """Note what the results of each collected file depend on, before any of them is run."""
    known, root = config.stash.setdefault(_of_files, {}), root_of(config)
    for path in set(paths) - set(known):
        files = [path] if config.inipath is None else [path, config.inipath]
        for plugin in config.pluginmanager.get_plugins():
            file = Path(getattr(plugin, "__file__", None) or "")
            if file.name != "conftest.py" or path.is_relative_to(file.parent):
                files.append(file)
        known[path] = provenance(files, root)
        if Path(os.path.relpath(path.resolve())).as_posix() not in known[path]["sources"]:
            known[path]["unseen"] = f"{path.name} is outside of the project"


class UnexpectedVerdict(Exception):
    """Raised if a function did not end as declared, with the sentences to print."""


class Job(abc.ABC):
    """One function whose records a run stores, such as an audit function.

    Parameters
    ----------
    item : pytest.Item
        The item that pytest collected.
    """

    noun: str
    """Name of several functions of this kind."""
    fix: str
    """Advice if two of them have one id."""
    no_xfail: str
    """Reason why the mark xfail does not apply, in one sentence."""

    def __init__(self, item: pytest.Item) -> None:
        config = item.config
        self.id = self.id_of(item)
        self.root: Path = root_of(config)
        self.settings: RunSettings = settings_of(config)
        self.fault: str | None = None
        """Reason why the function cannot be run, in one sentence."""
        self.skipped = ""
        """Reason why it is not run in this profile; empty if it is run."""
        self.taken = False
        """Whether its records were taken over from an earlier run."""
        self.damage = ""
        """Damage by the function that would affect later functions; empty if there is none."""
        self._condition = Condition()
        self.records: list[Record] = []
        self.problems: list[str] = []
        self.origin: dict[str, Any] = {
            "kind": "file",
            "path": Path(os.path.relpath(item.path)).as_posix(),
            "item": item.nodeid.partition("::")[2],
            **self.settings.origin(),
            **self._provenance(item),
        }

    @staticmethod
    def _provenance(item: pytest.Item) -> dict[str, Any]:
        note_provenance(item.config, [item.path])  # if nobody did so after the collection
        return dict(item.config.stash[_of_files][item.path])

    @staticmethod
    @abc.abstractmethod
    def id_of(item: pytest.Item) -> str:
        """Return the id of the first record that a function makes."""

    def take_over(self, out: Path) -> None:
        """Reuse either all results that an earlier run of the same function left, or none."""
        found, lost = load_finished(out, self.id, self.accepts)
        self.problems += [f"{problem}; made again" for problem in lost]
        self.records = [self._with_origin(r, r.origin) for r in found]
        self.taken = bool(found)

    def accepts(self, record: Record) -> bool:
        """Return whether a stored record equals the record that this job would produce."""
        now = {name: self.origin[name] for name in ("versions", "sources")}
        known = {name: record.origin.get(name) for name in now}
        is_known = "unseen" not in record.origin  # else it may depend on more
        return is_known and is_current(record, self.settings, self.root) and known == now

    def end(self, seconds: float) -> None:
        """Determine the verdict when the function has ended; raise if it is not as declared."""
        if not self.taken:
            made = self.made(seconds)
            if changed := changed_sources(self.origin, self.root):  # which code ran is not known
                self.origin["unseen"] = f"{changed[0]} changed while the audit ran"
            self.records = [self._with_origin(r, {**r.origin, "records": len(made)}) for r in made]
        if sentences := list(self.mismatches()):
            raise UnexpectedVerdict("\n".join(sentences))

    def find_damage(self) -> str:
        """Return the damage of the function and its fixtures to the process, in words."""
        self.damage = self._condition.damage()
        return self.damage

    def mismatches(self) -> Iterable[str]:
        """Return what is not as declared, in one sentence for each record."""
        return (f"{r.id}: {sentence}" for r in self.records if (sentence := r.mismatch) is not None)

    def _with_origin(self, record: Record, origin: dict[str, Any]) -> Record:
        return record.with_origin({**origin, **self.origin}, self.declared(record))

    @abc.abstractmethod
    def declared(self, record: Record) -> Any:
        """Return what was declared about a record."""

    @abc.abstractmethod
    def made(self, seconds: float) -> list[Record]:
        """Return the records of a function that ended by itself."""

    @abc.abstractmethod
    def broken_off(self, report: pytest.TestReport) -> list[Record]:
        """Return the known records of a function that did not end by itself."""


class AuditJob(Job):
    """An audit function, with any number of audits and of checks of deterministic functions."""

    noun, fix = "audits", "rename one of the files"
    no_xfail = "xfail does not apply to audits: mark it known_violation(reason)"

    @staticmethod
    def id_of(item: pytest.Item) -> str:
        """Return a name that does not depend on the directory in which pytest runs."""
        return f"{item.path.stem}::{item.nodeid.partition('::')[2]}"

    def __init__(self, item: pytest.Item) -> None:
        super().__init__(item)
        self._hook = item.ihook
        strict = self.settings.strict
        self._expected = Expectation.POWER if strict else Expectation.NOT_REFUTED
        for read, form in (
            (self._known_violation, "known_violation(reason, profile='quick')"),
            (self._from_profile, "from_profile(profile)"),
        ):
            for mark in item.iter_markers(form.partition("(")[0]):
                try:
                    read(*mark.args, **mark.kwargs)
                except (TypeError, ValueError) as error:
                    self.fault = f"{form}: {error}"
        if "auditor" not in getattr(item, "fixturenames", ()):
            self.fault = (
                f"{self.id} made no check: it does not take the fixture `auditor`; "
                f"write def {item.name}(auditor)"
            )
        out = item.config.getoption("--dpaudit-out")
        worker = getattr(item.config, "workerinput", {}).get("workerid", "main")
        progress = None if out is None else ProgressWriter(Path(out), worker)
        self.auditor = Auditor(self.id, self.settings, self._expected, progress)
        if _history not in item.config.stash:  # the history of earlier runs, read once
            path = item.config.getoption("--dpaudit-history")
            item.config.stash[_history] = None if path is None else read_history(Path(path))[0]
        self._earlier = item.config.stash[_history]

    def _known_violation(self, reason: str = "", profile: str = "quick") -> None:
        """Expect a refutation in the given profile and in larger profiles."""
        if not (isinstance(reason, str) and reason):
            raise TypeError(f"reason must be a text that is not empty, got {reason!r}")
        known = self.settings.reaches(profile)
        self._expected = Expectation.REFUTED if known else Expectation.EITHER
        self.origin["reason"] = reason

    def _from_profile(self, profile: str) -> None:
        """Skip the audit in smaller profiles."""
        if not self.settings.reaches(profile):
            self.skipped = f"it needs many draws: --profile {profile} runs it"

    def declared(self, record: Record) -> Any:
        """Return the expectation of an audit; a record of functions keeps its own expectation."""
        return self.auditor.expected if isinstance(record, AuditResult) else record.expected

    def _with_origin(self, record: Record, origin: dict[str, Any]) -> Record:
        """Add the evidence of earlier runs to a result."""
        record = super()._with_origin(record, origin)
        if not isinstance(record, AuditResult):
            return record
        found = None
        if self._earlier is not None:
            line = HistoryLine.of(record, failure_prob=self.settings.failure_prob)
            found = self._earlier.accumulated(line)
        return replace(record, accumulated=found)

    def made(self, seconds: float) -> list[Record]:
        """Return the results of all checks, and the record of the checks of functions."""
        found = self._found()
        if not found:
            raise UnexpectedVerdict(
                f"{self.id} must call auditor.check at least once, got no call. Add a call, "
                "or skip the audit"
            )
        return found

    def _found(self) -> list[Record]:
        checks = self.auditor.functions
        found = self._hook.pytest_dpaudit_functions(job=self, checks=checks) if checks else None
        return [*self.auditor.results, *([] if found is None else [found])]

    def mismatches(self) -> Iterable[str]:
        """Return what is not as declared; for functions, return the violating pair."""
        broken = [str(check) for check in self.auditor.functions if check.violated]
        for record in self.records:
            if broken and not isinstance(record, AuditResult):
                yield from broken
            elif record.mismatch is not None:
                yield f"{record.id}: {record.mismatch}"

    def broken_off(self, report: pytest.TestReport) -> list[Record]:
        """Return the checks that were finished; later errors do not invalidate them."""
        return self.records or [self._with_origin(r, r.origin) for r in self._found()]
