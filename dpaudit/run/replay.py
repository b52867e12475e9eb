"""Replay of stored records: a record is made again and compared with the stored record."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from dpaudit.errors import ArgumentError, DpauditError, StoreError
from dpaudit.mechanisms import is_installed
from dpaudit.report import differences, section_of
from dpaudit.results import AuditResult
from dpaudit.run.auditor import ended_by_clock
from dpaudit.run.direct import audit_function, file_of
from dpaudit.run.invoke import FAILED, OK, run_pytest
from dpaudit.run.provenance import changed_sources, changed_versions
from dpaudit.run.settings import RunSettings
from dpaudit.store import Record, load_record, place_of

_LISTED = 20  # number of differences that are shown


def replay_record(path: Path, *, trust: bool) -> int:
    """Make a stored record again, compare the two, and print the outcome."""
    stored, problems = load_record(path)
    for problem in problems:
        click.echo(f"problem: {problem}", err=True)
    if not trust:
        check_inside(stored)
    if changed := changed_sources(stored.origin):
        click.echo(f"the code changed since, or is not here: {', '.join(changed)}")
    if other := changed_versions(stored.origin):
        click.echo(f"the versions changed since: {'; '.join(other)}")
    try:
        again = make_again(stored, trust=trust)
    except KeyError as error:
        raise StoreError(f"{path} does not say how it was made: origin lacks {error}") from None
    except TypeError as error:  # of an argument; a TypeError of a mechanism is a MechanismError
        raise click.UsageError(f"{path} cannot be made again: {error}") from None
    found = compare(stored, again)
    section = section_of(stored)
    click.echo(f"stored    {section.numbers(stored)}\nreplayed  {section.numbers(again)}")
    for difference in found[:_LISTED]:
        click.echo(f"differs   {difference}")
    if isinstance(stored, AuditResult) and ended_by_clock(stored):
        click.echo(
            "the clock ended the stored audit; its replay has no max_seconds and may know more"
        )
        return OK
    if not found:
        exact = replays(stored)
        click.echo("the same" if exact else "the same verdict; its numbers need not come again")
        return OK
    count = "1 value differs" if len(found) == 1 else f"{len(found)} values differ"
    click.echo(f"NOT the same: {count}")
    return FAILED


def check_inside(record: Record) -> None:
    """Raise an error if a stored record would run code outside of the project."""
    origin, here = record.origin, Path.cwd().resolve()
    if origin.get("command") is not None:
        raise click.UsageError(
            f"a replay would run the command {origin.get('target')}. Pass --trust if you trust the "
            "authors of the result and of that program"
        )
    places: dict[str, Path | None] = {}
    if "path" in origin:
        places[str(origin["path"])] = Path(str(origin["path"])).resolve()
    if isinstance(like := origin.get("like"), str):
        places[like] = Path(like).resolve()
    named = [origin.get("target"), origin.get("score"), *(origin.get("mutants") or ())]
    places |= {str(name): file_of(str(name)) for name in named if name is not None}
    for name, place in places.items():
        if place is None:
            continue  # the module does not exist, so no code would be run
        if not place.is_relative_to(here) or is_installed(place):
            raise click.UsageError(
                f"{name} lies in {place}, outside of this directory, and a replay would run "
                "it. Pass --trust if you trust the authors of the result and of that code"
            )


def make_again(stored: Record, *, trust: bool = False) -> Record:
    """Make a record again in the same way.

    Unless `trust` is set, run only code inside the working directory.
    """
    origin = stored.origin
    if isinstance(stored, AuditResult) and origin.get("kind") == "function":
        return audit_function(origin, stored.seed, root=None if trust else Path.cwd())
    if origin.get("kind") != "file":
        raise click.UsageError(
            "this result was made by a direct call of dpaudit.audit. "
            f"Make the same call again with seed={stored.seed} and id={stored.id!r}"
        )
    path = Path(origin["path"])
    if not path.is_file():
        raise click.UsageError(f"the file {path} is not here. Replay from the directory of the run")
    try:
        settings = RunSettings(
            origin["profile"], stored.seed, origin["failure_prob"], origin["sequential"]
        )
    except (ArgumentError, TypeError) as error:
        raise StoreError(f"{stored.id} does not say how it was made: {error}") from None
    with tempfile.TemporaryDirectory() as scratch:
        arguments = [f"{path.absolute()}::{origin['item']}", "-p", "no:xdist", "-p", "no:terminal"]
        arguments += ["--dpaudit", f"--dpaudit-out={scratch}", *settings.pytest_options()]
        run_pytest(arguments, [])
        fresh = Path(scratch) / place_of(stored)
        if not fresh.exists():
            raise DpauditError(
                f"the replay of {stored.id} produced no result. Run {path} to see why"
            )
        return load_record(fresh)[0]


def replays(record: Record) -> bool:
    """Return whether every number must be reproduced, and not only the verdict.

    Some numbers cannot be reproduced: the numbers of a mechanism with its own source of entropy,
    and the numbers of a check that measures seconds.
    """
    return bool(record.origin.get("replays", True))


def compare(stored: Record, again: Record) -> list[str]:
    """Return the differences between a stored record and its replay, except times and versions."""
    a, b = stored.to_json(), again.to_json()
    if not replays(stored):
        a, b = ({key: data.get(key) for key in ("verdict", "method")} for data in (a, b))
    return list(differences("", a, b))
