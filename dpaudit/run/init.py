"""The command ``dpaudit init``, which writes a first audit and a CI job."""

from __future__ import annotations

import os
import re
import shlex
from importlib import metadata
from pathlib import Path

import click

from dpaudit.run.invoke import OK, PathArgument
from dpaudit.store import write_atomic

_TEMPLATES = Path(__file__).parent / "templates"
_FILES = {
    "audits/audit_noisy_mean.py": "audit.txt",
    "audits/requirements.txt": "requirements.txt",
    ".gitignore": "gitignore.txt",
}
_JOBS = {
    "github": {".github/workflows/audits.yml": "github.yml"},
    "gitlab": {".gitlab-ci.yml": "gitlab.yml"},
    "none": {},
}


_SHARED = (".gitignore", ".gitlab-ci.yml")
"""Files that other tools use, too, so that a project may need more lines in them."""


@click.command("init")
@click.argument("directory", default=".", type=PathArgument(file_okay=False))
@click.option(
    "--ci",
    type=click.Choice(list(_JOBS)),
    default="github",
    show_default=True,
    help="CI system for which a job is written.",
)
def init(directory: Path, ci: str) -> int:
    """Write a first audit and a CI job into DIRECTORY (default: the working directory).

    Files that exist already are kept as they are.
    """
    for name, template in {**_FILES, **_JOBS[ci]}.items():
        path = directory / name
        if os.path.lexists(path):
            hint = f" (add to it what {_TEMPLATES / template} holds)" * (name in _SHARED)
            click.echo(f"kept: {path}{hint}")
            continue
        text = (_TEMPLATES / template).read_text(encoding="utf-8")
        text = re.sub(
            r"([\w-]+)==VERSION", lambda line: f"{line[1]}=={metadata.version(line[1])}", text
        )
        write_atomic(path, text.replace("VERSION", metadata.version("dpaudit")))
        click.echo(f"written: {path}")
    there = "" if directory == Path() else f"cd {shlex.quote(str(directory))} && "
    click.echo(f"next: {there}dpaudit run")
    return OK
