"""How the command line starts pytest."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

OK, FAILED, USAGE, NOTHING = 0, 1, 4, 5
DEFAULT_OUT = "reports"


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
