"""``dpaudit ledger``: run the checks of papers, or print what the last run of them found."""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpaudit.errors import DpauditError, StoreError
from dpaudit.run.invoke import (
    FAILED,
    NOTHING,
    OK,
    Selection,
    differences,
    run_options,
    run_pytest,
    settings_arguments,
)

if TYPE_CHECKING:
    from dpaudit.ledger import StatementResult

_FOREIGN = {"site-packages", "node_modules", "build", "dist", "__pycache__", "venv"}


@click.command()
@click.argument("words", nargs=-1, metavar="[PAPER] [PATHS]...")
@run_options
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the rows into this file.",
)
@click.option("--stored", is_flag=True, help="Run nothing: print what the last run in OUT found.")
def ledger(
    words: tuple[str, ...],
    profile: str,
    seed: int,
    json_file: Path | None,
    stored: bool,
    **selection: Any,
) -> int:
    """Check the statements of PAPER, or of every ledger in PATHS (default: audits/).

    Prints a table of the verdicts. The ledger of a paper is a folder of its name, with files
    ledger_*.py and, where the paper has a table of its statements, statements.md.
    """
    chosen = Selection(**selection)
    if stored:
        if chosen.keyword or chosen.resume or len(words) > 1:
            raise click.UsageError("--stored takes a PAPER and nothing that would be run")
        return _print_stored(chosen.out, words[0] if words else None, json_file)
    from dpaudit.run.auditor import Settings
    from dpaudit.run.display import LedgerDisplay

    settings = Settings(profile, seed)
    targets = _targets(words)
    if not targets:
        click.echo(LedgerDisplay.nothing, err=True)
        return NOTHING
    repeat = ["dpaudit", "ledger", *words, "--profile", profile, "--seed", str(seed)]
    repeat += ["-k", chosen.keyword] * bool(chosen.keyword)
    display = LedgerDisplay(shlex.join(repeat))
    code = chosen.collect("ledger_*.py", targets, settings, display)
    if json_file is not None:
        _write_rows(json_file, display.rows)
    return code


def _write_rows(path: Path, rows: Sequence[StatementResult]) -> None:
    from dpaudit.store import write_atomic

    text = json.dumps([row.row() for row in rows], indent=1, allow_nan=False)
    write_atomic(path, text + "\n")


# --- what to run ---


def _targets(words: Sequence[str]) -> list[str]:
    """Return the ledger files to run; the first word may name a paper."""
    from dpaudit.ledger import paper_of

    default = ["audits"] if Path("audits").is_dir() else ["."]
    paper, paths = None, list(words) or default
    if words:
        known = {paper_of(_file(target)) for target in _found(words[1:] or default)}
        if words[0] in known:
            paper, paths = words[0], list(words[1:]) or default
        elif not _file(words[0]).exists():
            there = ", ".join(sorted(known)) or "none"
            raise click.UsageError(
                f"PAPER: {words[0]!r} is neither a paper with a ledger nor a path; "
                f"papers here: {there}"
            )
    targets = [target for target in _found(paths) if paper in (None, paper_of(_file(target)))]
    return list(dict.fromkeys(targets))


def _file(target: str) -> Path:
    """Return the file of a target such as ledger_x.py::check."""
    return Path(target.partition("::")[0])


def _found(paths: Sequence[str]) -> Iterator[str]:
    """Yield the ledger files in some paths."""
    from dpaudit.run.ledger_plugin import is_ledger

    for path in paths:
        file = _file(path)
        if not file.exists():
            raise click.UsageError(f"PATHS: {path!r} does not exist")
        if file.is_dir():
            for found in sorted(file.rglob("ledger_*.py")):
                inside = found.relative_to(file).parts[:-1]
                if not any(part in _FOREIGN or part.startswith(".") for part in inside):
                    yield str(found)
        elif is_ledger(file):
            yield path
        else:
            raise click.UsageError(f"PATHS: {path!r} is no ledger: its name is not ledger_*.py")


# --- what was found ---


def _print_stored(out: Path, paper: str | None, json_file: Path | None) -> int:
    """Print the rows of the last run in `out`."""
    from dpaudit.report import statement_lines
    from dpaudit.run.display import print_ledger
    from dpaudit.store import load_run

    run, _, rows = load_run(out)
    papers = sorted({row.paper for row in rows})
    if paper is not None:
        if rows and paper not in papers:
            raise click.UsageError(
                f"PAPER: the last run in {out} has no {paper!r}; papers there: {', '.join(papers)}"
            )
        rows = [row for row in rows if row.paper == paper]
    for problem in run.problems:
        click.echo(f"problem: {problem}", err=True)
    if not rows:
        click.echo(f"the last run in {out} checked no statement", err=True)
        return NOTHING
    print_ledger(rows)
    for line in statement_lines(rows):
        click.echo(line)
    if not run.complete:
        click.echo("the run was interrupted")
    if json_file is not None:
        _write_rows(json_file, rows)
    lost = sum(bool(row.origin) for row in rows) < len(run.statements) and paper is None
    failed = lost or not run.complete or any(row.mismatch for row in rows)
    return FAILED if failed else OK


# --- once more ---


def replay_statement(path: Path) -> int:
    """Make a stored check again and compare everything but times and versions."""
    from dpaudit.report import summary
    from dpaudit.store import load_statement

    stored = load_statement(path)
    try:
        again = _again(stored)
    except KeyError as error:
        raise StoreError(f"{path} does not say how it was made: origin lacks {error}") from None
    found = compare(stored, again)
    click.echo(f"stored    {summary(stored)}\nreplayed  {summary(again)}")
    for difference in found:
        click.echo(f"differs   {difference}")
    click.echo("NOT the same" if found else "the same")
    return FAILED if found else OK


def compare(stored: StatementResult, again: StatementResult) -> list[str]:
    """Say what differs between a stored row and its replay, but for times and versions.

    Of a check that measures seconds only the verdict and the method must be the same.
    """
    a, b = stored.to_json(), again.to_json()
    ignored = {"seconds", "origin", "expected", "schema"}
    replays = stored.origin.get("replays", True)
    keys = [key for key in a if key not in ignored] if replays else ["verdict", "method"]
    found = [line for key in keys for line in differences(key, a[key], b[key])]
    versions = [row.origin.get("versions") for row in (stored, again)]
    if found and versions[0] != versions[1]:
        found.append(f"versions: {versions[0]} against {versions[1]}")
    return found


def _again(stored: StatementResult) -> StatementResult:
    """Make a stored check again, the way it was made."""
    from dpaudit.run.auditor import Settings
    from dpaudit.store import STATEMENTS, load_statement, statement_file

    path = Path(stored.origin["path"])
    if not path.is_file():
        raise click.UsageError(
            f"the ledger file {path} is not here; replay from the directory of the run"
        )
    settings = Settings(stored.origin["profile"], stored.seed)
    with tempfile.TemporaryDirectory() as scratch:
        arguments = [f"{path}::{stored.origin['item']}", "-p", "no:xdist", "-p", "no:terminal"]
        arguments += ["--dpaudit", f"--dpaudit-out={scratch}", *settings_arguments(settings)]
        run_pytest(arguments, [])
        fresh = Path(scratch) / STATEMENTS / statement_file(stored.id)
        if not fresh.exists():
            raise DpauditError(f"the replay of {stored.id} produced no row")
        return load_statement(fresh)
