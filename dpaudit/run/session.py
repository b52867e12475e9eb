"""What the controlling process of a run does: store records as they come, then report."""

from __future__ import annotations

import contextlib
import datetime
import json
import shlex
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from dpaudit.engine import versions
from dpaudit.errors import StoreError
from dpaudit.ledger import (
    LedgerFile,
    Paper,
    StatementResult,
    account,
    copies_of,
    paper_at,
    paper_of,
    summaries,
)
from dpaudit.results import AuditResult
from dpaudit.run.carry import LEDGERS, Cargo, cargo_of, ledgers, reason_of, skip_reason
from dpaudit.run.exports import Exports
from dpaudit.run.progress import clear_progress
from dpaudit.run.provenance import is_current
from dpaudit.run.settings import RunSettings
from dpaudit.store import (
    RESULTS,
    Kept,
    Record,
    Run,
    append,
    check_writable,
    family_wise_error,
    hold,
    kind_of,
    load_run,
    save_packed,
    save_record,
    save_run,
    without,
)

FILES = ("audit_*.py", "ledger_*.py")
"""What audits and ledgers are called."""

_Key = tuple[str, str]
"""Kind and id of a record."""


@dataclass(frozen=True)
class Asked:
    """What a command asked for, handed to pytest as a plugin.

    Parameters
    ----------
    command : str
        What repeats the run.
    whole : bool
        Whether it asked for everything: no paths, no selection.
    files : tuple of str
        Patterns of the files that it looks at.
    exports : Exports
        What it writes for CI systems.
    """

    command: str
    whole: bool
    files: tuple[str, ...] = FILES
    exports: Exports = field(default_factory=Exports)


class AuditSession:
    """Collects records from all workers and writes them; one writer, so no file is torn.

    A run of a selection leaves what earlier runs found, and says so: see :class:`~store.Kept`.

    Parameters
    ----------
    config : pytest.Config
        Of the controlling process.
    out : Path
        Directory of the results.
    settings : RunSettings
        Of the run.

    Raises
    ------
    StoreError
        When the directory cannot be written, or another run writes into it.
    """

    def __init__(self, config: pytest.Config, out: Path, settings: RunSettings) -> None:
        self.config, self.out, self.settings = config, out, settings
        self.results: list[AuditResult] = []
        self.statements: list[StatementResult] = []
        self.run: Run | None = None
        self.report: Path | None = None
        self._asked = asked_of(config, settings)
        check_writable(out)
        self._lock = hold(out, self._asked.command)
        self._made: dict[_Key, Record] = {}
        self._problems: list[str] = []
        self._skipped: list[str] = []
        self._lost: dict[str, str] = {}
        self._ran: set[str] = set()
        self._homes: set[tuple[Path, str]] = set()
        self._workers: set[Any] = set()
        self._saved: set[str] | None = None
        self._ledgers: dict[Path, LedgerFile] = config.stash.setdefault(ledgers, {})
        self._begun = time.perf_counter()
        self._started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        try:
            clear_progress(out)
            self._asked.exports.clear()
            self._before = _Before(self)
        except BaseException:
            self._lock.release()
            raise

    # --- what happens ---

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store what a function found as soon as it has ended."""
        cargo = cargo_of(report)
        self._ran.add(report.nodeid)
        file, _, item = report.nodeid.partition("::")
        self._homes.add(((self.config.rootpath / file).resolve(), item))
        problems, skipped = list(cargo.problems), []
        if report.failed and cargo.status is None:
            problems.append(f"{report.nodeid}: {reason_of(report)}")
            self._lost[report.nodeid] = reason_of(report)
        if report.skipped:
            skipped.append(f"{report.nodeid}: {skip_reason(report)}")
        self._problems += problems
        self._skipped += skipped
        try:
            made = list(self._store(cargo))
            self._check_directory()
            if cargo.records or report.failed or report.skipped:
                self._note(report.nodeid, made, problems, skipped)
        except StoreError as error:
            self._give_up(str(error))
        if cargo.disk:
            self._give_up(f"{report.nodeid}: {cargo.disk}")

    def _store(self, cargo: Cargo) -> Iterator[Record]:
        """Write the files of records and of the rows that say the same; yield them all."""
        for record, packed in zip(cargo.records, cargo.packed, strict=True):
            if record.origin:
                save_packed(self.out, record, *packed)
            if isinstance(record, StatementResult) and record.origin:
                for copy in copies_of(record, Path(record.origin["path"])):
                    save_record(self.out, copy)
                    yield copy
            self._made[kind_of(record).name, record.id] = record
            yield record

    def _note(self, ran: str, made: list[Record], problems: list[str], skipped: list[str]) -> None:
        """Append what a report added; write the whole run where another ledger file came in."""
        homes = {r.origin["path"] for r in made if isinstance(r, StatementResult) and r.origin}
        if self._saved is None or homes - self._saved:
            self._saved = (self._saved or set()) | homes
            self._save(complete=False)
            return
        before = {(facts.kind, facts.id) for _, facts in self._before.records}
        now = {(f.kind, f.id) for _, f in self._before.kept(self._made, self._homes)}
        entry = {
            "run": self._started,
            "ran": [ran],
            "audits": [r.row() for r in made if isinstance(r, AuditResult)],
            "statements": summaries([r for r in made if isinstance(r, StatementResult)]),
            "problems": problems,
            "skipped": skipped,
            "dropped": sorted(before - now),
            "seconds": round(time.perf_counter() - self._begun, 2),
        }
        append(self.out, entry)

    def _check_directory(self) -> None:
        """Write everything again where the directory was removed, and end the run."""
        if self._lock.is_held():
            return
        check_writable(self.out)
        self._lock = hold(self.out, self._asked.command)
        for record in (*self._made.values(), *(record for record, _ in self._before.records)):
            if record.origin:
                save_record(self.out, record)
        raise StoreError(f"{self.out} was removed or replaced while the run went on")

    def _give_up(self, reason: str) -> None:
        """End the run as an interruption does: what it found stands, and --resume goes on."""
        self._problems.append(f"the run ended early: {reason}")
        pytest.exit(reason, returncode=int(pytest.ExitCode.INTERRUPTED))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note files that cannot be collected, or skip themselves."""
        if report.failed:
            self._problems.append(f"{report.nodeid}: {reason_of(report)}")
        elif report.skipped:
            self._skipped.append(f"{report.nodeid}: {skip_reason(report)}")

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """Remember which workers got so far as to run anything."""
        self._workers.add(node)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Learn from a worker which ledger files there are; end a run that cannot collect."""
        found = json.loads(getattr(node, "workeroutput", {}).get(LEDGERS, "{}"))
        self._ledgers.update({Path(p): LedgerFile.from_plain(file) for p, file in found.items()})
        if error is not None and node not in self._workers:
            # Its successor would import the same file, and so on.
            sentence = "a process ended while it collected: one of the files ends it when imported"
            self._problems.append(sentence)
            pytest.exit(sentence, returncode=int(pytest.ExitCode.TESTS_FAILED))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Any:
        """Write the run and the report."""
        outcome = yield
        if not (self._made or self._ledgers or self._problems or self._skipped):
            return outcome
        from dpaudit.report import write_report

        try:
            try:
                self._check_directory()
            except StoreError as error:
                session.exitstatus = pytest.ExitCode.INTERRUPTED
                self._problems.append(f"the run ended early: {error}")
            self.run = self._save(complete=session.exitstatus in (0, 1, 5))
            self._asked.exports.write(self.run, self.results, self.statements)
            self.report = write_report(self.out, self.run, self.results, self.statements)
        except StoreError as error:
            session.exitstatus = pytest.ExitCode.INTERRUPTED
            self._problems.append(f"the run ended early: {error}")
            self.run = self._as_run(complete=False)
        return outcome

    def pytest_unconfigure(self) -> None:
        """Let the next run in."""
        clear_progress(self.out)
        self._lock.release()

    def add_problem(self, sentence: str) -> None:
        """Put a problem of the run on record."""
        self._problems.append(sentence)

    # --- what is stored ---

    def _save(self, *, complete: bool) -> Run:
        run = self._as_run(complete=complete)
        save_run(self.out, run, self.results, self.statements)
        return run

    def _as_run(self, *, complete: bool) -> Run:
        """Return the run as it is now, and sort what it found."""
        kept = self._before.kept(self._made, self._homes)
        records = [*self._made.values(), *(record for record, _ in kept)]
        audits = [record for record in records if isinstance(record, AuditResult)]
        self.results = sorted(audits, key=lambda result: result.id)
        rows = [record for record in records if isinstance(record, StatementResult)]
        self.statements, unread = account(self._ledgers, rows, self._lost)
        self.statements = self._before.with_open_rows(self.statements)
        return Run(
            profile=self.settings.profile,
            seed=self.settings.seed,
            failure_prob=self.settings.failure_prob,
            command=self._asked.command,
            versions=versions(),
            family_wise_error=family_wise_error([*self.results, *self.statements]),
            started=self._started,
            seconds=round(time.perf_counter() - self._begun, 2),
            problems=_once([*self._problems, *unread, *self._before.problems(self._ran)]),
            skipped=_once([*self._skipped, *self._before.skipped(self._ran)]),
            kept=tuple(facts for _, facts in kept),
            papers=self._papers(),
            complete=complete and (self._before.complete or not kept),
        )

    # --- what this run covers ---

    @property
    def is_whole(self) -> bool:
        """Whether nothing was selected."""
        return self._asked.whole

    @property
    def replaces_all(self) -> bool:
        """Whether nothing that was stored before stays."""
        return self.is_whole and set(self._asked.files) == set(FILES)

    @property
    def exports(self) -> Exports:
        """What is written for CI systems."""
        return self._asked.exports

    @property
    def papers(self) -> set[str]:
        """Papers whose ledgers this run looks at."""
        return {paper_of(path) for path in self._ledgers}

    def covers(self, record: Record) -> bool:
        """Whether this run replaces a stored record, even where it finds nothing in its place."""
        config, path = self.config, Path(record.origin["path"])
        if any(
            config.getoption(name, default=None) for name in ("keyword", "markexpr", "deselect")
        ):
            return False
        if not any(fnmatch(path.name, pattern) for pattern in self._asked.files):
            return False
        given = [Path(words) for words in config.args if "::" not in words]
        inside = any(path.resolve().is_relative_to(folder.resolve()) for folder in given)
        return self._asked.whole or inside

    def _papers(self) -> tuple[Paper, ...]:
        """Return titles and conventions of the papers whose statements are shown."""
        known = {paper.name: paper for paper in self._before.papers}
        for path in self._ledgers:
            with contextlib.suppress(StoreError):  # which the problems of the run tell
                paper = paper_at(path)
                known[paper.name] = replace(paper, statements=())
        names = dict.fromkeys(row.paper for row in self.statements)
        return tuple(known[name] for name in names if name in known)

    def is_current(self, record: Record) -> bool:
        """Whether this run would find a stored record again."""
        if isinstance(record, StatementResult) and record.kind != "function":
            try:
                row = paper_at(Path(record.origin["path"])).rows.get(record.id)
            except StoreError:
                return False
            if row is not None and record.stated != row:
                return False
        return is_current(record, self.settings, self.config.rootpath)


class _Before:
    """What earlier runs left in the directory, as far as this run does not replace it."""

    def __init__(self, session: AuditSession) -> None:
        self._session = session
        self._records: list[tuple[Record, Kept]] = []
        self._homes: dict[_Key, tuple[Path, str]] = {}
        self._open: list[StatementResult] = []
        self._run: Run | None = None
        self._lost: list[str] = []
        if session.replaces_all or not (session.out / RESULTS).exists():
            return
        try:
            run, results, rows = load_run(session.out)
        except StoreError as error:
            self._lost = [f"what an earlier run found is not shown: {error}"]
            return
        known = {(kept.kind, kept.id): kept for kept in run.kept}
        stored: list[Record] = [*results, *rows]
        for record in stored:
            if not {"path", "item"} <= set(record.origin):
                self._open += [record] if isinstance(record, StatementResult) else []
            elif not session.covers(record):
                kind = kind_of(record).name
                made = known.get((kind, record.id))
                facts = Kept(
                    kind,
                    record.id,
                    run.started if made is None else made.made,
                    run.command if made is None else made.command,
                    session.is_current(record),
                )
                home = (Path(record.origin["path"]).resolve(), record.origin["item"])
                self._homes[kind, record.id] = home
                self._records.append((record, facts))
        if self._records:
            self._run = run

    @property
    def papers(self) -> tuple[Paper, ...]:
        """The papers whose statements that run showed."""
        return () if self._run is None else self._run.papers

    @property
    def complete(self) -> bool:
        """Whether the run that left the records had come to its end."""
        return self._run is not None and self._run.complete

    @property
    def records(self) -> list[tuple[Record, Kept]]:
        """Records that are kept as far as is known, and what is to be reported of each."""
        return self._records

    def kept(
        self, made: dict[_Key, Record], homes: set[tuple[Path, str]]
    ) -> list[tuple[Record, Kept]]:
        """Return the records whose functions were not run, and what is to be told of each."""
        self._records = [
            (record, facts)
            for record, facts in self._records
            if (key := (facts.kind, facts.id)) not in made and self._homes[key] not in homes
        ]
        return self._records

    def with_open_rows(self, rows: list[StatementResult]) -> list[StatementResult]:
        """Add the open rows of papers that this run does not look at."""
        if self._run is None or self._session.is_whole:
            return rows
        known = {(row.paper, row.id) for row in rows}
        papers = self._session.papers
        missing = [r for r in self._open if r.paper not in papers and (r.paper, r.id) not in known]
        return sorted([*rows, *missing], key=lambda row: row.paper)

    def problems(self, ran: set[str]) -> list[str]:
        """Return what went wrong in earlier runs with functions that were not run again."""
        return self._lost + without(() if self._run is None else self._run.problems, ran)

    def skipped(self, ran: set[str]) -> list[str]:
        """Return what earlier runs skipped."""
        return without(() if self._run is None else self._run.skipped, ran)


def _once(sentences: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sentences))


def asked_of(config: pytest.Config, settings: RunSettings) -> Asked:
    """Return what a command asked for; of pytest itself, what its arguments say."""
    for plugin in config.pluginmanager.get_plugins():
        if isinstance(plugin, Asked):
            return plugin
    keyword = config.getoption("keyword", default="")
    words = ["dpaudit", "run", *config.args, *settings.words()]
    given = config.args_source is pytest.Config.ArgsSource.ARGS
    return Asked(shlex.join([*words, "-k", keyword] if keyword else words), not given)
