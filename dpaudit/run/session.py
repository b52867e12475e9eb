"""The controlling process of a run.

This process stores records as they arrive and writes the report.
"""

from __future__ import annotations

import datetime
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from dpaudit.engine import versions
from dpaudit.errors import StoreError
from dpaudit.results import AuditResult
from dpaudit.run.carry import Cargo, cargo_of, collected, reason_of, skip_reason
from dpaudit.run.progress import clear_progress
from dpaudit.run.provenance import is_current, root_of
from dpaudit.run.settings import RunSettings, selected_by
from dpaudit.store import (
    EARLIER,
    JOURNAL,
    RESULTS,
    History,
    HistoryLine,
    KeptRecord,
    Lock,
    Record,
    StoredRun,
    add_to_history,
    append,
    check_writable,
    drop_rerun,
    family_wise_error,
    hold,
    kind_of_record,
    kinds,
    load_run,
    read_history,
    rows_of,
    save_packed,
    save_record,
    save_run,
    write_atomic,
)

_Key = tuple[str, str]
"""Kind and id of a record."""


def all_files() -> tuple[str, ...]:
    """Return the patterns of the files that make records of any kind."""
    return tuple(kind.files for kind in kinds().values())


@dataclass(frozen=True)
class Asked:
    """The request of a command, passed to pytest as a plugin.

    Parameters
    ----------
    command : str
        Command that repeats the run.
    whole : bool
        Whether the command requested everything, without paths and without a selection.
    files : tuple of str
        Patterns of the files that the command collects. The default is the patterns of all kinds of
        records.
    junit, sarif : Path, optional
        Files that the command writes for CI systems, with their paths.
    """

    command: str
    whole: bool
    files: tuple[str, ...] = field(default_factory=all_files)
    junit: Path | None = None
    sarif: Path | None = None

    def clear_exports(self) -> None:
        """Remove files of earlier runs, so that nobody takes them for results of this run.

        Raises
        ------
        StoreError
            If a file cannot be written. Such an error is detected before hours of work.
        """
        for path in filter(None, (self.junit, self.sarif)):
            if path.is_dir():
                raise StoreError(f"cannot write {path}: it is a directory")
            write_atomic(path, "")
            path.unlink()


class AuditSession:
    """Collects records from all workers and writes them.

    A single writer prevents damaged files. A run of a selection keeps the results of earlier runs
    and reports this, as described in :class:`~store.KeptRecord`.

    Parameters
    ----------
    config : pytest.Config
        Configuration of the controlling process.
    out : Path
        Directory of the results.
    settings : RunSettings
        Settings of the run.

    Raises
    ------
    StoreError
        If the directory cannot be written, or if another run writes into it.
    """

    def __init__(self, config: pytest.Config, out: Path, settings: RunSettings) -> None:
        self.config, self.out, self.settings = config, out, settings
        self.records: list[Record] = []
        self.run: StoredRun | None = None
        self.report: Path | None = None
        self.asked = asked_of(config, settings)
        check_writable(out)
        self._lock = hold(out, self.asked.command)
        self._history: tuple[Path, Lock] | None = None
        self._of_history: tuple[str, ...] = ()
        self._made: dict[_Key, Record] = {}
        self.problems: list[str] = []
        self._missing: list[str] = []
        """What the records lack, such as the check of a statement; it fails the run."""
        self._skipped: list[str] = []
        self.lost: dict[str, str] = {}
        """Reasons why functions left no record, by the ids that pytest gives them."""
        self._ran: set[str] = set()
        self._homes: set[tuple[Path, str]] = set()
        self._workers: set[Any] = set()
        self._saved: set[str] | None = None
        self._begun = time.perf_counter()
        self._started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        try:
            clear_progress(out)
            self.asked.clear_exports()
            if (path := config.getoption("--dpaudit-history")) is not None:
                self._history = Path(path), self._hold_history(Path(path))
            self.before = Before(self)
        except BaseException:
            self._release()
            raise

    def _release(self) -> None:
        """Allow the next run to start."""
        self._lock.release()
        if self._history is not None:
            self._history[1].release()

    def _hold_history(self, path: Path) -> Lock:
        """Take the lock of the history, and check the history before hours of work."""
        if path.is_dir():
            raise StoreError(f"cannot write {path}: it is a directory")
        files = (self.out / RESULTS, self.out / JOURNAL, self.asked.junit, self.asked.sarif)
        if path.resolve() in [file.resolve() for file in files if file is not None]:
            raise StoreError(f"the history must be a file of its own, got {path}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot write {path}: {error.strerror or error}") from error
        lock = hold(path, self.asked.command)
        try:
            read_history(path)
        except BaseException:
            lock.release()
            raise
        return lock

    # --- events of the run ---

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store the results of a function as soon as it has ended."""
        cargo = cargo_of(report)
        self._ran.add(report.nodeid)
        file, _, item = report.nodeid.partition("::")
        self._homes.add(((self.config.rootpath / file).resolve(), item))
        problems, skipped = list(cargo.problems), []
        if report.failed and cargo.status is None:
            problems.append(f"{report.nodeid}: {reason_of(report)}")
            self.lost[report.nodeid] = reason_of(report)
        if report.skipped:
            skipped.append(f"{report.nodeid}: {skip_reason(report)}")
        self.problems += problems
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
        """Write the files of records and of rows with the same content, and yield them all."""
        for record, packed in zip(cargo.records, cargo.packed, strict=True):
            if record.origin:
                save_packed(self.out, record, *packed)
                for copy in kind_of_record(record).copies(record):
                    save_record(self.out, copy)
                    yield copy
            self._made[kind_of_record(record).name, record.id] = record
            yield record

    def _note(self, ran: str, made: list[Record], problems: list[str], skipped: list[str]) -> None:
        """Append the content of a report; write the whole run if a new file is involved."""
        homes = {record.origin["path"] for record in made if record.origin}
        if self._saved is None or homes - self._saved:
            self._saved = (self._saved or set()) | homes
            self._save(complete=False)
            return
        before = {(facts.kind, facts.id) for _, facts in self.before.records}
        now = {(f.kind, f.id) for _, f in self.before.kept(self._made, self._homes)}
        entry = {
            "run": self._started,
            "ran": [ran],
            "rows": rows_of(made),
            "problems": problems,
            "skipped": skipped,
            "dropped": sorted(before - now),
            "seconds": round(time.perf_counter() - self._begun, 2),
        }
        append(self.out, entry)

    def _check_directory(self) -> None:
        """Write everything again if the directory was removed, and end the run."""
        if self._lock.is_held():
            return
        check_writable(self.out)
        self._lock = hold(self.out, self.asked.command)
        for record in (*self._made.values(), *(record for record, _ in self.before.records)):
            if record.origin:
                save_record(self.out, record)
        raise StoreError(f"{self.out} was removed or replaced during the run")

    def _give_up(self, reason: str) -> None:
        """End the run like an interruption: keep the results, so that --resume continues it."""
        self.problems.append(f"the run ended early: {reason}")
        pytest.exit(reason, returncode=int(pytest.ExitCode.INTERRUPTED))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that cannot be collected, or that skips itself."""
        if report.failed:
            self.problems.append(f"{report.nodeid}: {reason_of(report)}")
        elif report.skipped:
            self._skipped.append(f"{report.nodeid}: {skip_reason(report)}")

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """Remember which workers have collected their tests."""
        self._workers.add(node)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """End a run whose workers cannot collect."""
        if error is not None and node not in self._workers:
            # A new worker would import the same file and end in the same way, so the run ends.
            sentence = "a process ended while it collected: one of the files ends it when imported"
            self.problems.append(sentence)
            pytest.exit(sentence, returncode=int(pytest.ExitCode.TESTS_FAILED))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Any:
        """Write the run and the report."""
        outcome = yield
        files = self.config.stash.get(collected, {})
        if not (self._made or files or self.problems or self._skipped):
            return outcome
        from dpaudit.report import sarif, write_report

        try:
            try:
                self._check_directory()
            except StoreError as error:
                session.exitstatus = pytest.ExitCode.INTERRUPTED
                self.problems.append(f"the run ended early: {error}")
            self._add_to_history()
            self.run = self._save(complete=session.exitstatus in (0, 1, 5))
            if self.asked.sarif is not None:
                write_atomic(self.asked.sarif, sarif(self.run, self.records))
            self.report = write_report(self.out, self.run, self.records)
            is_ok = session.exitstatus == pytest.ExitCode.OK
            if self._missing and is_ok and not self.config.option.collectonly:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
            if (terminal := self.config.pluginmanager.get_plugin("terminalreporter")) is not None:
                for sentence in self._missing:
                    terminal.write_line(f"problem: {sentence}")
        except StoreError as error:
            session.exitstatus = pytest.ExitCode.INTERRUPTED
            self.problems.append(f"the run ended early: {error}")
            self.run = self._as_run(complete=False)
        return outcome

    def pytest_unconfigure(self) -> None:
        """Allow the next run to start."""
        clear_progress(self.out)
        self._release()

    # --- stored data ---

    def _add_to_history(self) -> None:
        """Add a line to the history for each audit that reached a verdict."""
        if self._history is None:
            return
        made = [record for record in self._made.values() if isinstance(record, AuditResult)]
        failure_prob, start = self.settings.failure_prob, self._started
        lines = [HistoryLine.of(one, failure_prob=failure_prob, made=start) for one in made]
        path, _ = self._history
        history, seal = add_to_history(path, lines)
        self._of_history = history_words(path, history, seal, made)

    def _save(self, *, complete: bool) -> StoredRun:
        run = self._as_run(complete=complete)
        save_run(self.out, run, self.records)
        return run

    def _as_run(self, *, complete: bool) -> StoredRun:
        """Return the run as it is now, with its records sorted."""
        before, kept = self.before.run, self.before.kept(self._made, self._homes)
        records = [*self._made.values(), *(record for record, _ in kept)]
        self.records = sorted(records, key=lambda record: record.id)
        facts: dict[str, Any] = {}
        self._missing = []
        hook = self.config.hook.pytest_dpaudit_complete
        for more, missing in hook(session=self, records=self.records):
            facts |= more
            self._missing += missing
        problems = [*self.problems, *self._missing]
        known = self.before.problems(self._ran)
        known = [problem for problem in known if problem.removeprefix(EARLIER) not in problems]
        return StoredRun(
            profile=self.settings.profile,
            seed=self.settings.seed,
            failure_prob=self.settings.failure_prob,
            command=self.asked.command,
            versions=versions(),
            family_wise_error=family_wise_error(self.records),
            started=self._started,
            seconds=round(time.perf_counter() - self._begun, 2),
            problems=tuple(dict.fromkeys([*problems, *known])),
            skipped=tuple(dict.fromkeys([*self._skipped, *self.before.skipped(self._ran)])),
            kept=tuple(older for _, older in kept),
            facts=facts,
            history=self._of_history,
            complete=complete and (not kept or (before is not None and before.complete)),
        )

    # --- records that this run replaces ---

    def covers(self, record: Record) -> bool:
        """Return whether this run replaces a stored record, even if it makes no new record."""
        config, path = self.config, Path(record.origin["path"])
        if any(
            config.getoption(name, default=None) for name in ("keyword", "markexpr", "deselect")
        ):
            return False
        if not any(fnmatch(path.name, pattern) for pattern in self.asked.files):
            return False
        given = [Path(words) for words in config.args if "::" not in words]
        inside = any(path.resolve().is_relative_to(folder.resolve()) for folder in given)
        return self.asked.whole or inside


def history_words(
    path: Path, history: History, seal: str, made: Sequence[AuditResult]
) -> tuple[str, ...]:
    """Return what a run reports of its history, in sentences."""
    count, runs = len(history.lines), len({(line.made, line.seed) for line in history.lines})
    if not count:
        return (f"{path} has no line yet, because no audit reached a verdict",)
    words = [
        f"{path} has {count:,} {'line' if count == 1 else 'lines'} of {runs:,} "
        f"{'run' if runs == 1 else 'runs'}, and its last checksum is {seal[:12]}",
        "probability that any certified number of these runs is wrong: at most "
        f"{history.individual_error:.2g}; that the history ever refutes a claim that holds: at "
        f"most {history.error:.2g}, for any number of runs",
    ]
    known = [one for one in made if one.accumulated is not None]
    if only := [one.id for one in known if one.status.key == "history"]:
        words.append(f"refuted by all runs together, but not by this run: {', '.join(only)}")
    if same := [one for one in known if one.accumulated and not one.accumulated.counts]:
        words.append(
            f"{len(same)} of {len(made)} audits add no evidence, because an earlier run had seed "
            f"{same[0].seed}. Pass another --seed to each run, such as the number of the CI run"
        )
    if strange := [one.id for one in made if one.log_e_values and not one.origin.get("code")]:
        words.append(
            "not combined, because the draws do not follow the seed or the code has no hash: "
            f"{', '.join(strange)}. If you can, draw from the rng that is passed in, and bind only "
            "plain values to the mechanism"
        )
    return tuple(words)


class Before:
    """Results of earlier runs in the directory that this run does not replace."""

    def __init__(self, session: AuditSession) -> None:
        self.records: list[tuple[Record, KeptRecord]] = []
        """Records that are kept as far as is known, and what to report of each."""
        self._homes: dict[_Key, tuple[Path, str]] = {}
        self.bare: list[Record] = []
        """Records that no function made."""
        self.run: StoredRun | None = None
        """The run that left the records; None if no records are kept."""
        self._lost: list[str] = []
        asked = session.asked
        replaces_all = asked.whole and set(asked.files) == set(all_files())
        if replaces_all or not (session.out / RESULTS).exists():
            return
        try:
            run, stored, _ = load_run(session.out)
        except StoreError as error:
            self._lost = [f"what an earlier run found is not shown: {error}"]
            return
        known = {(kept.kind, kept.id): kept for kept in run.kept}
        for record in stored:
            if not {"path", "item"} <= set(record.origin):
                self.bare.append(record)
            elif not session.covers(record):
                kind = kind_of_record(record).name
                made = known.get((kind, record.id))
                facts = KeptRecord(
                    kind,
                    record.id,
                    run.started if made is None else made.made,
                    run.command if made is None else made.command,
                    kind_of_record(record).is_current(record)
                    and is_current(record, session.settings, root_of(session.config)),
                )
                home = (Path(record.origin["path"]).resolve(), record.origin["item"])
                self._homes[kind, record.id] = home
                self.records.append((record, facts))
        if self.records:
            self.run = run

    def kept(
        self, made: dict[_Key, Record], homes: set[tuple[Path, str]]
    ) -> list[tuple[Record, KeptRecord]]:
        """Return the records of functions that were not run, with messages about these records."""
        self.records = [
            (record, facts)
            for record, facts in self.records
            if (key := (facts.kind, facts.id)) not in made and self._homes[key] not in homes
        ]
        return self.records

    def problems(self, ran: set[str]) -> list[str]:
        """Return problems of earlier runs, except those of functions and files that ran again."""
        known = drop_rerun(() if self.run is None else self.run.problems, ran)
        return self._lost + [EARLIER + problem.removeprefix(EARLIER) for problem in known]

    def skipped(self, ran: set[str]) -> list[str]:
        """Return what earlier runs skipped."""
        return drop_rerun(() if self.run is None else self.run.skipped, ran)


def asked_of(config: pytest.Config, settings: RunSettings) -> Asked:
    """Return what a command requested.

    For pytest itself, return what its arguments request.
    """
    for plugin in config.pluginmanager.get_plugins():
        if isinstance(plugin, Asked):
            return plugin
    selection = selected_by(config)
    words = ["dpaudit", "run", *config.args, *settings.words(), *selection]
    given = config.args_source is pytest.Config.ArgsSource.ARGS
    return Asked(shlex.join(words), not given and not selection)
