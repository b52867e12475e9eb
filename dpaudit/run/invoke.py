"""How the command line starts pytest, and the options of the commands that do."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from dpaudit._validate import DEFAULT_FAILURE_PROB

OK, FAILED, USAGE, NOTHING = 0, 1, 4, 5
DEFAULT_OUT = "reports"

F = TypeVar("F", bound=Callable[..., Any])


def run_options(command: F) -> F:
    """Add the options that every command has which runs audits or checks."""
    options = (
        click.option(
            "--profile", default="quick", show_default=True, help="quick, full or release."
        ),
        click.option(
            "--seed", default=0, show_default=True, type=click.IntRange(0), help="Root seed."
        ),
        click.option(
            "-k", "keyword", default="", help="Only what matches, as in pytest: audits, statements."
        ),
        click.option(
            "--jobs",
            default="auto",
            show_default=True,
            help="Worker processes, or auto: one a core.",
        ),
        click.option(
            "--out",
            default=DEFAULT_OUT,
            show_default=True,
            type=click.Path(path_type=Path),
            help="Directory of results and report.",
        ),
        click.option(
            "--resume", is_flag=True, help="Take over what an interrupted run left in OUT."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def failure_prob_option(meaning: str) -> Callable[[F], F]:
    """Return the option --failure-prob, with what the probability is of."""
    return click.option(
        "--failure-prob", default=DEFAULT_FAILURE_PROB, show_default=True, type=float, help=meaning
    )


@dataclass(frozen=True)
class Selection:
    """What `run_options` say beside the settings: what is run, by how many, and where to."""

    keyword: str
    jobs: str
    out: Path
    resume: bool

    def collect(self, files: str, targets: Sequence[str], settings: Any, display: Any) -> int:
        """Collect these targets, from files that match, and nothing else; return the exit code."""
        arguments = ["-o", f"python_files={files}", "-o", "python_functions=audit_*", *targets]
        arguments += ["--dpaudit", f"--dpaudit-out={self.out}", "-p", "no:terminal"]
        arguments += [*settings_arguments(settings), *jobs_arguments(self.jobs)]
        if self.keyword:
            arguments += ["-k", self.keyword]
        if self.resume:
            arguments.append("--dpaudit-resume")
        return run_pytest(arguments, [display])


def settings_arguments(settings: Any) -> list[str]:
    """Return the options of the plugin that stand for the settings of a run."""
    arguments = [
        f"--dpaudit-profile={settings.profile}",
        f"--dpaudit-seed={settings.seed}",
        f"--dpaudit-failure-prob={settings.failure_prob!r}",
    ]
    return arguments + ["--dpaudit-sequential"] * settings.sequential


def jobs_arguments(jobs: str) -> list[str]:
    """Return the options of pytest-xdist for a number of workers, or auto."""
    if jobs == "auto":
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        workers = int(cores or 1)
    elif jobs.isdecimal() and int(jobs) >= 1:
        workers = int(jobs)
    else:
        raise click.UsageError(f"--jobs must be auto or an integer >= 1, got {jobs!r}")
    if workers == 1:
        return ["-p", "no:xdist"]
    return ["-n", str(workers), "--dist", "worksteal"]


def run_pytest(arguments: list[str], plugins: list[Any]) -> int:
    """Run pytest in this process, with the working directory importable, as `pytest` itself."""
    import pytest

    import_from_here()
    # The project's own addopts are meant for its tests: coverage, -x, a terminal style.
    arguments = [*arguments, "-p", "no:cacheprovider", "-o", "addopts="]
    # dpaudit is loaded already, which pytest would warn about; it holds no assertions to rewrite.
    arguments += ["--import-mode=importlib", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main(arguments, plugins=plugins))


def import_from_here() -> None:
    """Make the working directory importable, in workers too."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    # Workers of xdist are processes of their own.
    known = os.environ.get("PYTHONPATH", "")
    if here not in known.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [here, known]))


def differences(name: str, a: Any, b: Any) -> list[str]:
    """Name every number that differs between two records."""
    if isinstance(a, dict) and isinstance(b, dict):
        return [
            line
            for key in sorted({*a, *b})
            for line in differences(f"{name}.{key}", a.get(key), b.get(key))
        ]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        pairs = enumerate(zip(a, b, strict=True))
        return [line for i, (x, y) in pairs for line in differences(f"{name}[{i}]", x, y)]
    line = f"{name}: {a!r} against {b!r}"
    return [] if a == b else [line if len(line) <= 300 else line[:297] + "..."]
