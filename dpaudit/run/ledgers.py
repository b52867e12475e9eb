"""What `dpaudit ledger` runs, prints and writes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpaudit.run.invoke import FAILED, NOTHING, OK

if TYPE_CHECKING:
    from dpaudit.ledger import StatementResult

_FOREIGN = {"site-packages", "node_modules", "build", "dist", "__pycache__", "venv"}


def default_paths() -> list[str]:
    """Return what is run where no path is given."""
    return ["audits"] if Path("audits").is_dir() else ["."]


def write_rows(path: Path, rows: Sequence[StatementResult]) -> None:
    """Write the rows of a ledger as JSON."""
    from dpaudit.ledger import summaries
    from dpaudit.store import write_atomic

    text = json.dumps(summaries(rows), indent=1, allow_nan=False)
    write_atomic(path, text + "\n")


def ledgers_of(words: Sequence[str]) -> list[str]:
    """Return the ledger files to run; the first word may name a paper."""
    from dpaudit.ledger import paper_of

    paper, paths = None, list(words) or default_paths()
    if words:
        known = {paper_of(path_of(target)) for target in _found(words[1:] or default_paths())}
        if words[0] in known:
            paper, paths = words[0], list(words[1:]) or default_paths()
        elif not path_of(words[0]).exists():
            there = ", ".join(sorted(known)) or "none"
            raise click.UsageError(
                f"PAPER: {words[0]!r} is neither a paper with a ledger nor a path; "
                f"papers here: {there}"
            )
    targets = [target for target in _found(paths) if paper in (None, paper_of(path_of(target)))]
    return list(dict.fromkeys(targets))


def path_of(target: str) -> Path:
    """Return the file of a target such as ledger_x.py::check."""
    return Path(target.partition("::")[0])


def _found(paths: Sequence[str]) -> Iterator[str]:
    """Yield the ledger files in some paths."""
    for path in paths:
        file = path_of(path)
        if not file.exists():
            raise click.UsageError(f"PATHS: {path!r} does not exist")
        if file.is_dir():
            for found in sorted(file.rglob("ledger_*.py")):
                inside = found.relative_to(file).parts[:-1]
                if not any(part in _FOREIGN or part.startswith(".") for part in inside):
                    yield str(found)
        elif file.match("ledger_*.py"):
            yield path
        else:
            raise click.UsageError(f"PATHS: {path!r} is no ledger: its name is not ledger_*.py")


def print_stored(out: Path, paper: str | None, json_file: Path | None) -> int:
    """Print the rows of the last run in `out`."""
    from dpaudit.report import statement_lines
    from dpaudit.run.display import print_ledger
    from dpaudit.store import load_run

    run_record, _, rows = load_run(out)
    papers = sorted({row.paper for row in rows})
    if paper is not None:
        if rows and paper not in papers:
            raise click.UsageError(
                f"PAPER: the last run in {out} has no {paper!r}; papers there: {', '.join(papers)}"
            )
        rows = [row for row in rows if row.paper == paper]
    for problem in run_record.problems:
        click.echo(f"problem: {problem}", err=True)
    if not rows:
        click.echo(f"the last run in {out} checked no statement", err=True)
        return NOTHING
    print_ledger(rows)
    for line in statement_lines(rows):
        click.echo(line)
    if not run_record.complete:
        click.echo("the run was interrupted")
    if json_file is not None:
        write_rows(json_file, rows)
    lost = sum(bool(row.origin) for row in rows) < len(run_record.statements) and paper is None
    failed = lost or not run_record.complete or any(row.mismatch for row in rows)
    return FAILED if failed else OK
