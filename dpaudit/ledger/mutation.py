"""What a ledger would not have noticed: mutants of its statements and of the tested algorithms.

Each mutant changes one place of the source code: a formula of a check in ``ledger_*.py`` (a mutant
of the statement), or a line of the paper's algorithms. The checks that run this place are executed
with the changed code. They *kill* the mutant if one of them no longer ends as declared.

A mutant of a statement is also compared with the statement, case by case. A mutant that is weaker
in every case is true if the statement is true. A mutant that is stronger, and that a search with a
larger budget does not refute, shows that the statement is loose.

Each mutant runs in a process of its own, forked from a process that has not imported the code that
is changed. So all modules see the change, and no mutant affects another mutant.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import hashlib
import importlib
import json
import math
import multiprocessing
import signal
import sys
import time
import traceback
import warnings
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from importlib.machinery import SourceFileLoader
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from dpaudit import _json
from dpaudit.errors import ArgumentError
from dpaudit.ledger.attacks import Sides, Values
from dpaudit.ledger.attempts import Ledger
from dpaudit.ledger.cases import Cases
from dpaudit.ledger.paper import algorithm_paths, ledger_files, paper_at
from dpaudit.ledger.rows import StatementResult
from dpaudit.ledger.source import SourceMutant, source_mutants
from dpaudit.ledger.statements import marked
from dpaudit.ledger.survivors import (
    MUTANTS,
    Mutants,
    Survivor,
    digest,
    kept_reasons,
    write_mutants,
)
from dpaudit.mechanisms import limit_memory
from dpaudit.properties import DEFAULT_TOLERANCE, Attempt, apart, ratio

_PATIENCE, _LEAST_SECONDS = 5.0, 20.0
_BUSY = 20.0  # times the seconds of the processor after which a process is ended anyway
_IMPORT = "import"
_ENDED = False, "the process ended"
_MOST_CASES = 400
_SMALL = 1e-6  # relative change that is attributed to an allowance for rounding
_LARGER = {"quick": "full", "full": "release", "release": "release"}


class Outcome(StrEnum):
    """What happened to a mutant."""

    KILLED = "killed"
    """A check no longer ended as declared."""
    WEAKER = "weaker"
    """A mutant of a statement that the statement implies in all cases that were judged."""
    LOOSE = "loose"
    """A stronger statement that no case refuted: the statement is not tight."""
    LATE = "late"
    """A stronger statement that only a larger profile refuted."""
    SURVIVED = "survived"
    """All checks ended as declared, although the mutant is false or makes no difference."""
    NOT_RUN = "not run"
    """No check runs the line."""
    OTHER = "no statement"
    """No mutant of the statement: it changes what is tested, or it raises an error."""


@dataclass(frozen=True)
class Fate:
    """The fate of one mutant.

    Parameters
    ----------
    mutant : SourceMutant
        The mutant.
    outcome : Outcome
        What happened to the mutant.
    by : str
        The check that killed the mutant.
    how : str
        What this check reported.
    rows : tuple of str
        Checks that run the line.
    tightest : float or None
        For a mutant of a statement that survived, its largest ratio lhs / rhs.
    key : str
        Hash of the changed file and of all files that the checks run.
    """

    mutant: SourceMutant
    outcome: Outcome
    by: str = ""
    how: str = ""
    rows: tuple[str, ...] = ()
    tightest: float | None = None
    key: str = ""


@dataclass(frozen=True)
class Run:
    """One check of a paper, as it ran without a mutant.

    Parameters
    ----------
    id : str
        Id of the statement.
    path : Path
        The ledger file.
    name : str
        Name of the check.
    seconds : float
        Seconds of the processor that the check took.
    lines : dict
        Lines of the project that the check ran, by file.
    trouble : str
        Reason why the check cannot kill a mutant; empty if it can.
    """

    id: str
    path: Path
    name: str
    seconds: float = 0.0
    lines: Mapping[str, frozenset[int]] = field(default_factory=dict)
    trouble: str = ""


@dataclass(frozen=True)
class Laboratory:
    """The checks of one paper, and how mutants of them are run.

    Parameters
    ----------
    folder : Path
        Folder with the ledger of the paper.
    root : Path
        Folder of the project, from which its modules are imported.
    most : int
        Largest number of mutants of one function.
    jobs : int
        Number of processes.
    seed, profile
        As for `dpaudit run`.
    left_out : tuple of str
        Files and functions (file::function) that are not mutated.
    cache : Path, optional
        File with the fates of earlier runs. Each fate is added as soon as it is known.
    shown : callable
        Called with each fate, as soon as it is known.
    """

    folder: Path
    root: Path
    most: int = 10
    jobs: int = 1
    seed: int = 0
    profile: str = "quick"
    left_out: tuple[str, ...] = ()
    cache: Path | None = None
    shown: Callable[[Fate], None] = lambda fate: None

    def mutate_algorithms(self, targets: Sequence[str]) -> list[Fate]:
        """Run the checks on mutants of algorithms, which are the files `targets`."""
        runs = _Child(_baseline, self).result()
        works = []
        for mutant in self._mutants(targets, checks=False):
            rows = _covering(runs, mutant)
            works.append(_Work(mutant, rows, (_tried, self, mutant, rows), self._key(mutant, rows)))
        return list(_fates(works, self))

    def mutate_statements(self, only: str = "") -> list[Fate]:
        """Run the checks on mutants of their formulas.

        `only` is a part of the names of the mutated files.
        """
        found: list[Fate] = _Child(_statements, self, only, limit=math.inf).result()
        return found

    def _mutants(self, targets: Iterable[str], *, checks: bool) -> Iterator[SourceMutant]:
        for target in targets:
            source = (self.root / target).read_text(encoding="utf-8")
            for mutant in source_mutants(source, target, most=self.most, checks=checks):
                function = mutant.id.partition(": ")[0]
                if function not in self.left_out and target not in self.left_out:
                    yield mutant

    def _key(self, mutant: SourceMutant, rows: Sequence[Run]) -> str:
        files = {mutant.file, *(file for run in rows for file in run.lines)}
        words = f"{mutant} {self.seed} {self.profile} {digest(self.root, files)}"
        return hashlib.sha256(words.encode()).hexdigest()[:24]

    def run(
        self, check: Any, path: Path, watch: _Watch | None = None, profile: str = ""
    ) -> StatementResult:
        """Run one check, and return its row."""
        mark = marked(check)
        assert mark is not None
        paper = paper_at(path)
        ledger = _Watched(
            watch, paper.rows[mark.id], paper=paper, found=mark.found,
            profile=profile or self.profile, seed=self.seed,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(ledger)
        return ledger.result().with_origin({}, mark.expected)

    def imported(self, path: Path) -> ModuleType:
        """Import a file of the project as a module."""
        if str(self.root) not in sys.path:
            sys.path.insert(0, str(self.root))
        parts = path.relative_to(self.root).with_suffix("").parts
        return importlib.import_module(".".join(parts))


# --- child processes ---


@dataclass(frozen=True)
class _Work:
    """A mutant with the checks that run it, and the call that determines its fate."""

    mutant: SourceMutant
    rows: Sequence[Run]
    call: tuple[Any, ...]
    key: str


def _covering(runs: Sequence[Run], mutant: SourceMutant) -> list[Run]:
    """Return the checks that run a line of a mutant, with the fastest first."""
    lines = set(range(mutant.first, mutant.end + 1))
    able = sorted((run for run in runs if not run.trouble), key=lambda run: run.seconds)
    return [run for run in able if lines & run.lines.get(mutant.file, frozenset())]


def _fates(works: Iterable[_Work], lab: Laboratory) -> Iterator[Fate]:
    """Determine the fates of mutants in child processes."""
    kept = _kept(lab.cache)
    waiting = deque(works)
    running: dict[Connection, tuple[_Child, _Work]] = {}
    while waiting or running:
        done = []
        while waiting and len(running) < lab.jobs:
            work = waiting.popleft()
            if not work.rows or work.key in kept:
                bare = Fate(work.mutant, Outcome.NOT_RUN, key=work.key)
                done.append(kept.get(work.key, bare))
                continue
            limit = _LEAST_SECONDS + _PATIENCE * sum(run.seconds for run in work.rows)
            child = _Child(*work.call, limit=limit)
            running[child.connection] = child, work
        soonest = min((child.deadline for child, _ in running.values()), default=0.0)
        ready = wait(list(running), max(soonest - time.monotonic(), 0.0)) if running else []
        for connection, (child, work) in list(running.items()):
            if connection in ready or time.monotonic() >= child.deadline:
                del running[connection]
                done.append(child.fate(work))
        for fate in done:
            if lab.cache is not None and fate.rows and fate.key not in kept:
                _keep(lab.cache, [fate], "a")
            lab.shown(fate)
            yield fate


class _Child:
    """A forked process that computes one result.

    The process may use `limit` seconds of its processor, so that a busy machine kills no mutant.
    Only a process that waits for something reaches the deadline.
    """

    def __init__(self, function: Callable[..., Any], *args: Any, limit: float = math.inf) -> None:
        context = multiprocessing.get_context("fork")
        self.connection, theirs = context.Pipe(duplex=False)
        self.deadline = time.monotonic() + _BUSY * limit
        self._process = context.Process(target=_send, args=(theirs, limit, function, args))
        self._process.start()
        theirs.close()

    def result(self) -> Any:
        """Wait for the result.

        Children of the process also hold its end of the pipe. So a process that was killed need not
        close it.
        """
        while not self.connection.poll(1.0):
            if not self._process.is_alive():
                break
        try:
            made, value = self.connection.recv() if self.connection.poll() else _ENDED
        except EOFError:
            made, value = _ENDED
        self._process.join()
        if not made:
            raise RuntimeError(value)
        return value

    def fate(self, work: _Work) -> Fate:
        """Return the fate of a mutant; a child that fails or does not end kills its mutant."""
        rows = tuple(run.id for run in work.rows)
        killed = Fate(work.mutant, Outcome.KILLED, rows=rows, key=work.key)
        if not self.connection.poll():
            self._process.kill()
            self._process.join()
            return replace(killed, by="time", how="the checks did not end")
        try:
            made, value = self.connection.recv()
        except EOFError:
            made, value = _ENDED
        self._process.join()
        if self._process.exitcode == -signal.SIGXCPU:
            return replace(killed, by="time", how="the checks did not end")
        if not made:
            return replace(killed, by=_IMPORT, how=value)
        return replace(killed, **value)


def _send(connection: Connection, limit: float, function: Callable[..., Any], args: Any) -> None:
    limit_memory()
    if math.isfinite(limit):
        _limit_time(math.ceil(limit))
    # pytest would import checks by a loader of its own
    sys.meta_path[:] = [
        f for f in sys.meta_path if type(f).__module__.partition(".")[0] != "_pytest"
    ]
    try:
        found = True, function(*args)
    except BaseException:
        found = False, traceback.format_exc(limit=-3)
    connection.send(found)
    connection.close()


def _limit_time(seconds: int) -> None:
    """End this process after so many seconds of its processor, where the system can do this."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    except (ImportError, OSError, ValueError):
        pass


def _baseline(lab: Laboratory, seen: dict[str, list[_Cases]] | None = None) -> list[Run]:
    """Run all checks of a paper, and record what each of them runs.

    The cases of each check are added to `seen`.
    """
    import coverage

    cover = coverage.Coverage(
        data_file=None, config_file=False, include=[str(lab.root / "*")], omit=["*/.venv*/*"]
    )
    if sys.version_info >= (3, 14):  # whose default core knows no contexts
        cover.set_option("run:core", "ctrace")
    cover.start()
    cover.switch_context(_IMPORT)
    runs = []
    for path, name, check in list(_checks(lab)):
        mark = marked(check)
        assert mark is not None
        _forget()
        cover.switch_context(mark.id)
        start = time.process_time()
        trouble = "" if mark.replays else "its numbers change from run to run"
        watch = _Recording()
        try:
            trouble = lab.run(check, path, watch).mismatch or trouble
        except BaseException as error:
            trouble = f"{type(error).__name__}: {error}"
        if seen is not None:
            seen[mark.id] = watch.attempts
        runs.append(Run(mark.id, path, name, time.process_time() - start, {}, trouble))
        cover.switch_context(_IMPORT)
    cover.stop()
    lines = _lines(cover.get_data(), lab.root)
    found = []
    for run in runs:
        files = _imported_files(run.path, lab.root)
        of_import = {file: own for file, own in lines[_IMPORT].items() if file in files}
        found.append(replace(run, lines=_joined(lines[run.id], of_import)))
    return found


@functools.cache
def _imported_files(path: Path, root: Path) -> frozenset[str]:
    """Return a file of a project, and all files of this project that it imports."""
    found: set[Path] = set()
    left = [path]
    while left:
        file = left.pop()
        if file not in found:
            found.add(file)
            left += _imports(file, root)
    return frozenset(file.relative_to(root).as_posix() for file in found)


def _imports(path: Path, root: Path) -> Iterator[Path]:
    """Yield the files of a project that a file imports by name, and their packages."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            places = [(root, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            home = path.parents[node.level - 1] if node.level else root
            start = [node.module] if node.module else []
            places = [(home, ".".join([*start, alias.name])) for alias in node.names]
        else:
            continue
        for home, name in places:
            parts = name.split(".")
            for end in range(len(parts) + 1):
                part = home.joinpath(*parts[:end])
                yield from filter(Path.is_file, (part / "__init__.py", part.with_suffix(".py")))


def _lines(data: Any, root: Path) -> Mapping[str, Mapping[str, set[int]]]:
    """Return the lines of each file that ran in each context."""
    found: dict[str, dict[str, set[int]]] = defaultdict(dict)
    for file in data.measured_files():
        short = Path(file).relative_to(root).as_posix()
        for line, contexts in data.contexts_by_lineno(file).items():
            for context in contexts:
                found[context].setdefault(short, set()).add(line)
    return found


def _joined(*parts: Mapping[str, set[int]]) -> dict[str, frozenset[int]]:
    files = {file for part in parts for file in part}
    return {file: frozenset().union(*(p.get(file, ()) for p in parts)) for file in files}


def _checks(lab: Laboratory) -> Iterator[tuple[Path, str, Any]]:
    """Yield the file, the name and the function of each check."""
    for path in ledger_files(lab.folder / "ledger_.py"):
        module = lab.imported(path)
        for name, value in vars(module).items():
            if marked(value) is not None and value.__module__ == module.__name__:
                yield path, name, value


def _plant(path: Path, change: Callable[[str], str]) -> None:
    """Let the next import of a file execute its changed source."""
    code = SourceFileLoader.get_code

    def get_code(self: Any, name: str) -> Any:
        if Path(self.path) != path:
            return code(self, name)
        return compile(change(path.read_text(encoding="utf-8")), str(path), "exec")

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]


def _forget() -> None:
    """Clear the caches of all functions outside of libraries, so that each check runs its code."""
    for thing in gc.get_objects():
        if isinstance(thing, functools._lru_cache_wrapper):
            module = sys.modules.get(getattr(thing, "__module__", None) or "")
            file = getattr(module, "__file__", None) or "site-packages"
            if "site-packages" not in file and not file.startswith(_DPAUDIT):
                thing.cache_clear()


_DPAUDIT = str(Path(__file__).parent.parent)


# --- mutants of algorithms ---


def _tried(lab: Laboratory, mutant: SourceMutant, rows: Sequence[Run]) -> dict[str, Any]:
    """Run checks on a mutant until one of them kills it."""
    _plant(lab.root / mutant.file, mutant.applied)
    for run in rows:
        try:
            trouble, _ = _trouble(lab, run)
        except BaseException as error:
            trouble = f"{type(error).__name__}: {error}"
        if trouble:
            return {"by": run.id, "how": trouble}
    return {"outcome": Outcome.SURVIVED}


def _trouble(
    lab: Laboratory, run: Run, watch: _Watch | None = None, profile: str = ""
) -> tuple[str, float | None]:
    """Return why a check does not end as declared, or "", and its tightest ratio."""
    check = getattr(lab.imported(run.path), run.name)
    row = lab.run(check, run.path, watch, profile)
    return row.mismatch or "", row.tightest


# --- mutants of statements, compared case by case ---


@dataclass
class _Cases:
    """The cases of one attempt, with what the function returned for each of them."""

    judged: list[tuple[dict[str, Any], Any]] = field(default_factory=list)
    every: int = 1
    count: int = 0

    def add(self, case: dict[str, Any], found: Any) -> None:
        """Keep a case, or every second, fourth, ... case if there are many."""
        self.count += 1
        if self.count % self.every == 0:
            self.judged.append((case, found))
        if len(self.judged) >= _MOST_CASES:
            self.judged, self.every = self.judged[1::2], 2 * self.every


class _Watch(Protocol):
    """What sees the functions of all attempts of one check, in turn."""

    def begin(self, cases: Cases, values: Values, sides: Sides) -> Values:
        """Return the function that the attempt uses."""


class _Watched(Ledger):
    """A ledger whose attempts are watched."""

    explains = False

    def __init__(self, watch: _Watch | None, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._watch = watch

    def searched(
        self, cases: Cases, values: Values, sides: Sides, shared: str, **options: Any
    ) -> Attempt:
        seen = self._seen(cases, values, sides)
        return super().searched(cases, seen, sides, shared, **options)

    def swept(
        self, cases: Cases, values: Values, sides: Sides, shared: str, **options: Any
    ) -> Attempt:
        seen = self._seen(cases, values, sides)
        return super().swept(cases, seen, sides, shared, **options)

    def _seen(self, cases: Cases, values: Values, sides: Sides) -> Values:
        return values if self._watch is None else self._watch.begin(cases, values, sides)


class _Recording:
    """Keeps the cases of all attempts."""

    def __init__(self) -> None:
        self.attempts: list[_Cases] = []

    def begin(self, cases: Cases, values: Values, sides: Sides) -> Values:
        """Return the function, which records its cases."""
        kept = _Cases()
        self.attempts.append(kept)

        def noted(**case: Any) -> Any:
            found = values(**case)
            kept.add(dict(case), found)
            return found

        return noted


class NoStatement(Exception):
    """A mutant changes what is tested, so the rest of its check need not run."""


class _Comparison:
    """Compares a mutated check with the cases of the check."""

    def __init__(self, attempts: Sequence[_Cases]) -> None:
        self._attempts, self._next = attempts, 0
        self.left = self.right = self.hypothesis = self.stronger = False

    def begin(self, cases: Cases, values: Values, sides: Sides) -> Values:
        """Judge the known cases by the mutated function."""
        known = self._attempts[self._next].judged if self._next < len(self._attempts) else []
        self._next += 1
        constants = cases.constants
        fails = any(_ratio(found, sides) > 1 + DEFAULT_TOLERANCE for _, found in known)
        for case, before in known:
            given = {k: constants.get(k, v) for k, v in case.items()}
            with np.errstate(all="ignore"):
                try:
                    after = values(**given)
                except Exception:  # the run of the check kills the mutant if this matters
                    self.hypothesis = True
                    continue
            self._compare(before, after, sides, fails)
            if self.left:
                raise NoStatement
        return values

    def _compare(self, before: Any, after: Any, sides: Sides, fails: bool) -> None:
        """Compare one case; a claim that `fails` cannot become more wrong."""
        if before is None or after is None:
            self.hypothesis |= (before is None) != (after is None)
            self.stronger |= before is None and after is not None and not fails
            return
        left, right = (_change(x, y) for x, y in zip(before, after, strict=True))
        self.left |= left > _SMALL
        self.right |= right > 0
        was, now = _ratio(before, sides), _ratio(after, sides)
        self.stronger |= now > was + _SMALL * abs(was) and not fails


def _ratio(found: Any, sides: Sides) -> float:
    """Return lhs / rhs of a case; minus infinity for a case outside of the hypotheses."""
    both = None if found is None else sides(found)
    return -math.inf if both is None else ratio(*(float(side) for side in both))


def _change(before: Any, after: Any) -> float:
    """Return the relative change of one side."""
    try:
        return float(apart(before, after, 0.0))
    except (ArgumentError, TypeError, ValueError):
        return math.inf


def _statements(lab: Laboratory, only: str) -> list[Fate]:
    """Run all checks once, and then fork a process for each mutant."""
    seen: dict[str, list[_Cases]] = {}
    runs = _baseline(lab, seen)
    paths = sorted(path for path in lab.folder.glob("*.py") if only in path.name)
    works = []
    for mutant in lab._mutants((p.relative_to(lab.root).as_posix() for p in paths), checks=True):
        if rows := _covering(runs, mutant):  # other functions belong to audits and experiments
            call = _compared, lab, mutant, rows, seen
            works.append(_Work(mutant, rows, call, lab._key(mutant, rows)))
    return list(_fates(works, lab))


def _compared(
    lab: Laboratory, mutant: SourceMutant, rows: Sequence[Run], seen: Mapping[str, list[_Cases]]
) -> dict[str, Any]:
    """Run checks on a mutant of a check, and compare the mutant with the statement."""
    home = Path(mutant.file).parent.as_posix().replace("/", ".")
    for name in [name for name in sys.modules if name.startswith(f"{home}.")]:
        del sys.modules[name]
    _plant(lab.root / mutant.file, mutant.applied)
    found: list[_Comparison] = []
    killed, tightest = {}, -math.inf
    for run in rows:
        found.append(_Comparison(seen[run.id]))
        try:
            trouble, tight = _trouble(lab, run, found[-1])
        except AssertionError as error:  # a check of its own
            trouble, tight = f"AssertionError: {error}", None
        except Exception:  # also NoStatement; no author prints what cannot be computed
            return {"outcome": Outcome.OTHER}
        tightest = max(tightest, -math.inf if tight is None else tight)
        if trouble:
            killed = {"by": run.id, "how": trouble}
            break
    if not any(one.right or one.hypothesis for one in found) and mutant.side != "right":
        return {"outcome": Outcome.OTHER}
    if killed:
        return killed
    survivor = {"tightest": tightest if math.isfinite(tightest) else None}
    if not any(one.right or one.hypothesis for one in found):
        return {**survivor, "outcome": Outcome.SURVIVED}
    if not any(one.stronger for one in found):
        return {**survivor, "outcome": Outcome.WEAKER}
    for run in rows:  # a stronger statement is attacked with a larger budget
        try:
            trouble, _ = _trouble(lab, run, profile=_LARGER[lab.profile])
        except Exception as error:
            trouble = f"{type(error).__name__}: {error}"
        if trouble:
            return {**survivor, "outcome": Outcome.LATE, "by": run.id, "how": trouble}
    return {**survivor, "outcome": Outcome.LOOSE}


# --- all mutants of a paper ---


def mutate(lab: Laboratory, cache: Path) -> tuple[Mutants, tuple[Survivor, ...]]:
    """Run all mutants of a paper, and write the results to the paper's file.

    Parameters
    ----------
    lab : Laboratory
        The checks of the paper.
    cache : Path
        File with the fates of an earlier run, which is read and written.

    Returns
    -------
    Mutants
        The results.
    tuple of Survivor
        Mutants that the checks would not notice, and that were not in the file before.
    """
    paper = paper_at(lab.folder / "ledger_.py")
    before = paper.mutants
    targets = [file for path in algorithm_paths(paper, lab.root) for file in _files(lab.root, path)]
    lab = replace(lab, left_out=tuple(before.left_out), cache=cache)
    cache.parent.mkdir(parents=True, exist_ok=True)
    statements, algorithms = lab.mutate_statements(), lab.mutate_algorithms(targets)
    _keep(cache, [*statements, *algorithms], "w")  # without the fates of older code
    survivors = [_survivor(fate, fate.rows) for fate in statements if fate.outcome in _LISTED]
    survivors += [_survivor(fate, ()) for fate in algorithms if fate.outcome in _LISTED]
    files = [*targets, *(path.relative_to(lab.root).as_posix() for path in lab.folder.glob("*.py"))]
    found = Mutants(
        digest(lab.root, files),
        dict(Counter(fate.outcome.value for fate in statements).most_common()),
        dict(Counter(fate.outcome.value for fate in algorithms).most_common()),
        kept_reasons(before, {one.id: one for one in sorted(survivors, key=_place)}.values()),
        before.left_out,
    )
    write_mutants(lab.folder / MUTANTS, paper.title, found)
    known = {survivor.id for survivor in before.survivors}
    return found, tuple(hole for hole in found.holes if hole.id not in known)


_LISTED = (Outcome.LOOSE, Outcome.LATE, Outcome.SURVIVED, Outcome.NOT_RUN)


def _survivor(fate: Fate, rows: tuple[str, ...]) -> Survivor:
    tightest = None if fate.tightest is None else float(f"{fate.tightest:.3g}")
    return Survivor(fate.mutant.id, fate.outcome.value, rows, tightest)


def _place(survivor: Survivor) -> tuple[int, str]:
    return _LISTED.index(Outcome(survivor.outcome)), survivor.id


def _files(root: Path, path: Path) -> list[str]:
    """Return the Python files of a file or folder, relative to the project."""
    found = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [file.relative_to(root).as_posix() for file in found]


def _keep(cache: Path, fates: Iterable[Fate], mode: str) -> None:
    """Write fates, one in a line."""
    with cache.open(mode, encoding="utf-8") as file:
        file.writelines(f"{json.dumps(_json.encode(fate))}\n" for fate in fates)


def _kept(cache: Path | None) -> dict[str, Fate]:
    """Return the fates of earlier runs by key, without lines that cannot be read."""
    kept = {}
    if cache is not None and cache.is_file():
        for line in cache.read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                fate = _json.decode(Fate, json.loads(line))
                kept[fate.key] = fate
    return kept
