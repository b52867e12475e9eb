"""The command `dpaudit ledger`, with what it executes, prints and writes."""

from __future__ import annotations

import json
import multiprocessing
import os
import shlex
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dpaudit.ledger import words
from dpaudit.ledger.coverage import STATEMENT
from dpaudit.ledger.paper import HEADING, TABLE, ledger_files, paper_of
from dpaudit.ledger.rows import StatementResult
from dpaudit.results import short
from dpaudit.run import (
    FAILED,
    NOTHING,
    OK,
    AuditSession,
    PathArgument,
    RunDisplay,
    RunSelection,
    RunSettings,
    default_paths,
    path_of,
    run_options,
)
from dpaudit.store import Record, StoredRun, by_kind

if TYPE_CHECKING:
    from dpaudit.ledger import StatementResult


# --- output of `dpaudit ledger`: the rows of a ledger as a table --------------------------------


_FILE_WIDTH = 160
"""Width of tables that are not printed to a terminal."""

_LEAST_NOTE = 20
"""Least width for a column with remarks."""

_HEADINGS = ("statement", "verdict", "method", "LHS/RHS", "examples", "power")


class LedgerDisplay(RunDisplay):
    """Prints only faults during the run, and a table of the statements at the end."""

    nothing = "no check was collected: checks are functions with @statement in files ledger_*.py"

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[StatementResult] = []

    def _print_result(self, record: Record, *, taken: bool = False) -> None:
        """Print everything except statements, which are in the table."""
        if not isinstance(record, StatementResult):
            super()._print_result(record, taken=taken)

    def _close(self, session: AuditSession, run: StoredRun) -> None:
        self.rows = by_kind(session.records)[STATEMENT.name]
        if self.rows:
            print_ledger(self.rows, self._file, old=_out_of_date(run))
        super()._close(session, run)


def _out_of_date(run: StoredRun) -> set[str]:
    """Return the ids of rows of earlier runs with other code or settings."""
    return {kept.id for kept in run.kept if not kept.current and kept.kind == STATEMENT.name}


def print_ledger(
    rows: Sequence[StatementResult], file: IO[str] | None = None, *, old: Container[str] = ()
) -> None:
    """Print the rows of a ledger as a table, without rows that were not run.

    Parameters
    ----------
    rows : sequence of StatementResult
        Rows in the order of their papers.
    file : file, optional
        Output file. The default is standard output.
    old : container of str, optional
        Ids of rows that come from an earlier run with other code or settings.
    """
    console = Console(file=file, highlight=False)
    if not console.is_terminal:
        console = Console(file=file, highlight=False, width=_FILE_WIDTH)
    listed = [row for row in rows if not words.is_left_out(row)]
    cells = [_cells(row, is_old=row.id in old) for row in listed]
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *cells, strict=True)]
    note_width = console.width - sum(widths) - 3 * len(widths) - 2
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in _HEADINGS:
        numbers = name in ("LHS/RHS", "examples")
        table.add_column(name, no_wrap=True, justify="right" if numbers else "left")
    if note_width >= _LEAST_NOTE:
        table.add_column("note", no_wrap=True, style="dim")
    for row, (name, verdict, *rest) in zip(listed, cells, strict=True):
        line = [escape(name), f"[{row.status.style}]{verdict}[/]", *rest]
        if note_width >= _LEAST_NOTE:
            line.append(escape(short(" ".join(words.remark(row).split()), note_width)))
        table.add_row(*line)
    if listed:
        console.print(table)


def _cells(row: StatementResult, *, is_old: bool) -> list[str]:
    """Return the cells of the table, without the headings."""
    return [
        row.id,
        row.verdict.words + " (out of date)" * is_old + " !" * (row.mismatch is not None),
        words.method_words(row),
        words.ratio_words(row.tightest),
        words.examples_words(row),
        words.power_words(row),
    ]


_FOREIGN = {"site-packages", "node_modules", "build", "dist", "__pycache__", "venv"}


def write_rows(path: Path, rows: Sequence[StatementResult]) -> None:
    """Write the rows of a ledger as JSON."""
    from dpaudit.ledger.coverage import STATEMENT
    from dpaudit.store import write_atomic

    text = json.dumps(STATEMENT.rows(rows), indent=1, allow_nan=False)
    write_atomic(path, text + "\n")


def ledgers_of(words: Sequence[str]) -> list[str]:
    """Return the ledger files to run.

    The first argument may be the name of a paper.
    """
    paper, paths = None, list(words) or default_paths()
    if words:
        known = {paper_of(path_of(target)) for target in _found(words[1:] or default_paths())}
        if words[0] in known:
            paper, paths = words[0], list(words[1:]) or default_paths()
        elif not path_of(words[0]).exists():
            there = ", ".join(sorted(known)) or "none"
            raise click.UsageError(
                f"PAPER must be a paper with a ledger, or a path, got {words[0]!r}. The papers "
                f"here are: {there}"
            )
    targets = [target for target in _found(paths) if paper in (None, paper_of(path_of(target)))]
    for table in [] if paper else _tables(paths):
        if not ledger_files(table) and HEADING.search(table.read_text("utf-8", "replace")):
            raise click.UsageError(
                f"{TABLE} must be in one folder with files ledger_*.py, which check its "
                f"statements. There is none next to {str(table)!r}. To check another paper, name it"
            )
    return list(dict.fromkeys(targets))


def _found(paths: Sequence[str]) -> Iterator[str]:
    """Yield the ledger files in some paths."""
    for path in paths:
        file = path_of(path)
        if not file.exists():
            raise click.UsageError(f"PATHS must exist, got {path!r}")
        if file.is_dir():
            for found in _own(file, "ledger_*.py"):
                yield str(found)
        elif file.match("ledger_*.py"):
            yield path
        else:
            raise click.UsageError(
                f"PATHS must be directories or files named ledger_*.py, got {path!r}"
            )


def _tables(paths: Sequence[str]) -> Iterator[Path]:
    """Yield the tables of statements in some paths."""
    for folder in filter(Path.is_dir, map(path_of, paths)):
        yield from _own(folder, TABLE)


def _own(folder: Path, pattern: str) -> Iterator[Path]:
    """Yield files in a folder, without those of other projects and of hidden folders."""
    for found in sorted(folder.rglob(pattern)):
        inside = found.relative_to(folder).parts[:-1]
        if not any(part in _FOREIGN or part.startswith(".") for part in inside):
            yield found


def print_stored(out: Path, paper: str | None, json_file: Path | None) -> int:
    """Print the rows of the last run in `out`."""
    from dpaudit.ledger.coverage import STATEMENT
    from dpaudit.ledger.words import tally_lines
    from dpaudit.store import by_kind, load_run

    run_record, records, lost = load_run(out)
    rows = by_kind(records)[STATEMENT.name]
    papers = sorted({row.paper for row in rows})
    if paper is not None:
        if rows and paper not in papers:
            raise click.UsageError(
                f"PAPER must be in the last run in {out}, got {paper!r}. The papers of this run "
                "are: "
                f"{', '.join(papers)}"
            )
        rows = [row for row in rows if row.paper == paper]
    for problem in run_record.problems:
        click.echo(f"problem: {problem}", err=True)
    if not rows:
        click.echo(f"the last run in {out} checked no statement", err=True)
        return NOTHING
    print_ledger(rows, old=_out_of_date(run_record))
    for line in tally_lines(rows):
        click.echo(line)
    if not run_record.complete:
        click.echo("the run was interrupted")
    if json_file is not None:
        write_rows(json_file, rows)
    failed = not run_record.complete or any(row.mismatch for row in rows)
    failed |= STATEMENT.name in lost and paper is None
    return FAILED if failed else OK


@click.command()
@click.argument("words", nargs=-1, metavar="[PAPER] [PATHS]...")
@run_options
@click.option(
    "--json",
    "json_file",
    type=PathArgument(dir_okay=False),
    help="Also write the rows into this file.",
)
@click.option(
    "--mutants",
    is_flag=True,
    help="Then make mutants of the statements and algorithms, which takes hours, and write "
    "mutants.md.",
)
@click.option(
    "--stored", is_flag=True, help="Run nothing: print the results of the last run in OUT."
)
def ledger(
    words: tuple[str, ...],
    profile: str,
    seed: int,
    json_file: Path | None,
    mutants: bool,
    stored: bool,
    **selection: Any,
) -> int:
    """Check the statements of PAPER, or of every ledger in PATHS (default: audits/).

    Prints a table of the verdicts. The ledger of a paper is a folder named after the paper. The
    folder holds files ledger_*.py. It also holds statements.md, if there is a table of the paper's
    statements.
    """
    chosen = RunSelection(**selection)
    if stored:
        if chosen.words() or chosen.resume or mutants or len(words) > 1:
            raise click.UsageError("--stored runs nothing, so it takes only a PAPER")
        if chosen.junit or chosen.sarif:
            raise click.UsageError(
                "--stored runs nothing. Use `dpaudit report DIR --sarif FILE` instead"
            )
        return print_stored(chosen.out, words[0] if words else None, json_file)
    from dpaudit.run import Asked

    settings = RunSettings(profile, seed)
    targets = ledgers_of(words)
    if not targets:
        click.echo(LedgerDisplay.nothing, err=True)
        return NOTHING
    repeat = ["dpaudit", "ledger", *words, "--profile", profile, "--seed", str(seed)]
    whole = not words and not chosen.words()
    command = shlex.join([*repeat, *chosen.words()])
    asked = Asked(command, whole, ("ledger_*.py",), chosen.junit, chosen.sarif)
    display = LedgerDisplay()
    code = chosen.collect(targets, settings, asked, display)
    if json_file is not None:
        write_rows(json_file, display.rows)
    if mutants and code == OK:
        folders = dict.fromkeys(path_of(target).absolute().parent for target in targets)
        # The run has imported the code that is to be changed, so a new process makes the mutants.
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            made = partial(mutate_paper, settings=settings, out=chosen.out, jobs=chosen.jobs)
            code = max(pool.map(made, folders))
    return code


def mutate_paper(folder: Path, settings: RunSettings, out: Path, jobs: str) -> int:
    """Run the mutants of one paper, and print those that no check noticed for the first time."""
    from dpaudit.ledger.mutation import Fate, Laboratory, Outcome, mutate

    console = Console(highlight=False)
    counts: Counter[str] = Counter()

    def shown(fate: Fate) -> None:
        counts[fate.outcome.value] += 1
        if sum(counts.values()) % _PROGRESS == 0:
            console.print(f"{folder.name}: {_counted(counts)}")
        if fate.outcome in (Outcome.SURVIVED, Outcome.NOT_RUN):
            console.print(f"  {fate.outcome}: {escape(fate.mutant.id)}")

    here = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if here else os.cpu_count() or 1
    lab = Laboratory(
        folder, Path.cwd(), jobs=max(int(jobs), 1) if jobs.isdecimal() else cores,
        seed=settings.seed, profile=settings.profile, shown=shown,
    )  # fmt: skip
    found, new = mutate(lab, out / f"mutants-{folder.name}.jsonl")
    console.print(f"{folder.name}: mutants of statements: {_counted(found.statements)}")
    console.print(f"{folder.name}: mutants of algorithms: {_counted(found.algorithms)}")
    console.print(f"{folder.name}: {len(found.holes)} would not be noticed, {len(new)} are new")
    for hole in new:
        console.print(f"  {escape(hole.id)}")
    return FAILED if new else OK


_PROGRESS = 100  # mutants between two lines


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {outcome}" for outcome, number in counts.items()) or "none"
