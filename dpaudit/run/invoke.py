"""Options of the commands that run audits, and the code that starts pytest."""

from __future__ import annotations

import functools
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dpaudit._validate import DEFAULT_FAILURE_PROB
from dpaudit.run.settings import RunSettings, selection_words, workers_of

if TYPE_CHECKING:
    from dpaudit.mechanisms import Command
    from dpaudit.run.display import RunDisplay
    from dpaudit.run.session import Asked

OK, FAILED, USAGE, NOTHING = 0, 1, 4, 5
DEFAULT_OUT = "reports"
_MAX_RESTARTS = 1000
"""Largest number of worker restarts; each restart costs one audit."""

F = TypeVar("F", bound=Callable[..., Any])


PathArgument = functools.partial(click.Path, path_type=Path)


def range_as_written(
    ctx: click.Context, param: click.Parameter, value: tuple[str, ...] | None
) -> tuple[int | float, ...] | None:
    """Convert two words to a range: to integers if written without a point, otherwise to floats."""
    if value is None:
        return None
    try:
        low, high = (int(w) if w.lstrip("+-").isdecimal() else float(w) for w in value)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None
    if not low < high:
        words = f"LOW must be below HIGH, got {' '.join(value)}"
        raise click.BadParameter(words, ctx, param)
    return low, high


def with_options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that adds options to a command in the given order."""
    return lambda command: functools.reduce(lambda made, add: add(made), options[::-1], command)


seed_option = click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0), help="Root seed."
)
verbose_option = click.option(
    "-v", "--verbose", is_flag=True, help="Show the evidence: witness, every mutant, notes."
)
sarif_option = click.option(
    "--sarif", type=PathArgument(dir_okay=False), help="Also write SARIF 2.1.0 to this file."
)
workers_option = click.option(
    "--workers",
    default="1",
    show_default=True,
    callback=lambda ctx, param, value: workers_of(value),
    metavar="N|ADDRESS",
    help="Worker processes for the draws of one audit, or the address of a Dask scheduler.",
)

command_options = with_options(
    click.option(
        "--input",
        "kind",
        type=click.Choice(["json", "csv", "arrow", "parquet"]),
        default="json",
        show_default=True,
        help="How a command reads the dataset. Arrow and Parquet need {data} among the arguments.",
    ),
    click.option(
        "--server", is_flag=True, help="The command is a server, which answers many requests."
    ),
    click.option("--text", is_flag=True, help="Each line of a command is a text, and not JSON."),
    click.option(
        "--unseeded", is_flag=True, help="The draws of the command do not follow the seed."
    ),
    click.option(
        "--timeout",
        type=float,
        default=60.0,
        show_default=True,
        help="Seconds in which a command must end, or a server must answer.",
    ),
)
"""Options of the commands that run a program of another language."""


def options_of_command(
    *, kind: str, server: bool, text: bool, unseeded: bool, timeout: float
) -> dict[str, Any]:
    """Return the arguments of `Command` for these options."""
    return {
        "input": kind,
        "output": "text" if text else "json",
        "mode": "server" if server else "once",
        "timeout": timeout,
        "seeded": False if unseeded else None,
    }


def command_of(text: str, options: Mapping[str, Any]) -> Command:
    """Return the mechanism of a command line, which no shell reads."""
    from dpaudit.mechanisms import Command

    try:
        words = shlex.split(text)
    except ValueError as error:
        raise click.UsageError(f"COMMAND must be a command line, got {text!r}: {error}") from None
    return Command(words, **options)


run_options = with_options(
    click.option("--profile", default="quick", show_default=True, help="quick, full or release."),
    seed_option,
    click.option(
        "-k", "keyword", default="", help="Run only audits or statements that match, as in pytest."
    ),
    click.option(
        "-m",
        "marks",
        default="",
        help="Run only audits or statements with these marks, as in pytest: -m 'not slow'.",
    ),
    click.option(
        "--jobs",
        default="auto",
        show_default=True,
        help="Audits that run in parallel; auto means one per core. With 0, audits run in this "
        "process, for a debugger.",
    ),
    click.option(
        "--out",
        default=DEFAULT_OUT,
        show_default=True,
        type=PathArgument(),
        help="Directory for results and report.",
    ),
    click.option(
        "--changed",
        "--resume",
        "resume",
        is_flag=True,
        help="Keep the results in OUT whose files and imports did not change, and run the rest.",
    ),
    click.option(
        "--junit",
        type=PathArgument(dir_okay=False),
        help="Also write JUnit XML to this file.",
    ),
    sarif_option,
)
"""Options of every command that runs audits or checks."""


def failure_prob_option(meaning: str) -> Callable[[F], F]:
    """Return the option --failure-prob with the given help text."""
    return click.option(
        "--failure-prob", default=DEFAULT_FAILURE_PROB, show_default=True, type=float, help=meaning
    )


@dataclass(frozen=True)
class RunSelection:
    """Options in `run_options`: what is run, by how many workers, and the output files."""

    keyword: str
    marks: str
    jobs: str
    out: Path
    resume: bool
    junit: Path | None = None
    sarif: Path | None = None
    history: Path | None = None

    def __post_init__(self) -> None:
        # Pytest has no public check of this, and a worker would find the fault only during
        # collection.
        from _pytest.mark.expression import Expression

        for option, expression in (("-k", self.keyword), ("-m", self.marks)):
            try:
                Expression.compile(expression)
            except Exception as error:  # an exception of a class that differs between versions
                words = getattr(error, "msg", None) or error
                raise click.UsageError(
                    f"{option} must be an expression, got {expression!r}: {words}"
                ) from None

    def words(self) -> list[str]:
        """Return the options -k and -m that repeat the selection; without them, return []."""
        return selection_words(self.keyword, self.marks)

    def collect(
        self, targets: Sequence[str], settings: RunSettings, asked: Asked, display: RunDisplay
    ) -> int:
        """Collect these targets from files of the requested kinds only; return the exit code."""
        arguments = ["-o", f"python_files={' '.join(asked.files)}"]
        arguments += ["-o", "python_functions=audit_*", *targets]
        arguments += ["--dpaudit", f"--dpaudit-out={self.out}", "-p", "no:terminal"]
        # A file that cannot be collected is reported but does not stop the other files.
        arguments.append("--continue-on-collection-errors")
        arguments += [*settings.pytest_options(), *jobs_arguments(self.jobs), *self.words()]
        if self.junit is not None:
            # A restarted process reports its last function again, and this second report takes no
            # time. If only the time of the call is recorded, pytest makes no second test case from
            # that report.
            arguments += [f"--junitxml={self.junit}", "-o", "junit_suite_name=dpaudit"]
            arguments += ["-o", "junit_duration_report=call"]
        if self.history is not None:
            arguments.append(f"--dpaudit-history={self.history}")
        if self.resume:
            arguments.append("--dpaudit-resume")
        return run_pytest(arguments, [asked, display])


def jobs_arguments(jobs: str) -> list[str]:
    """Return the options of pytest-xdist for a number of workers, or auto."""
    if jobs == "auto":
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        workers = int(cores or 1)
    elif jobs.isdecimal():
        workers = int(jobs)
    else:
        raise click.UsageError(f"--jobs must be auto or an integer >= 0, got {jobs!r}")
    if workers == 0:
        return ["-p", "no:xdist"]
    # A worker is used even if there is only one, because the code under audit may end its process.
    restarts = f"--max-worker-restart={_MAX_RESTARTS}"
    return ["-n", str(workers), "--dist", "worksteal", restarts]


def run_pytest(arguments: list[str], plugins: list[Any]) -> int:
    """Run pytest in this process, with an importable working directory as in `pytest` itself."""
    import pytest

    import_from_here()
    # The addopts of a project are meant for its tests, for example coverage, -x or a terminal
    # style.
    arguments = [*arguments, "-p", "no:cacheprovider", "-o", "addopts="]
    # Otherwise, pytest would warn that dpaudit is already loaded. dpaudit contains no assertions to
    # rewrite.
    arguments += ["--import-mode=importlib", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main(arguments, plugins=plugins))


def default_paths() -> list[str]:
    """Return the paths that are run if no path is given."""
    return ["audits"] if Path("audits").is_dir() else ["."]


def path_of(target: str) -> Path:
    """Return the file of a target such as ledger_x.py::check."""
    return Path(target.partition("::")[0])


def import_from_here() -> None:
    """Make the working directory importable, also in workers."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    # workers of xdist are separate processes
    known = os.environ.get("PYTHONPATH", "")
    if here not in known.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [here, known]))
