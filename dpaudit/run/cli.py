"""The command line: ``dpaudit init | run | audit | check-command | plan | compare | ...``.

A package can add commands with the entry-point group ``dpaudit.commands``. The ledger adds its
command in this way.

The exit codes are those of pytest: 0 no unexpected refutation, 1 refutation or failure, 2
interrupted, 3 internal error, 4 wrong usage, 5 nothing collected.
"""

from __future__ import annotations

import shlex
import signal
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from dpaudit.errors import ArgumentError, DpauditError, RecipeError, ReproducerError, StoreError
from dpaudit.run.checking import check_command
from dpaudit.run.init import init
from dpaudit.run.invoke import (
    DEFAULT_OUT,
    FAILED,
    OK,
    USAGE,
    PathArgument,
    RunSelection,
    command_options,
    default_paths,
    failure_prob_option,
    options_of_command,
    path_of,
    range_as_written,
    run_options,
    sarif_option,
    seed_option,
    verbose_option,
    workers_option,
)
from dpaudit.run.settings import RunSettings


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dpaudit")
def cli() -> None:
    """Audit differential privacy: certify lower bounds with a stated probability of error."""


def main() -> None:
    """Execute the command line and exit with an exit code of pytest."""
    ends = signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up, as after Ctrl-C
    try:
        code = cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        code = 2
    except click.ClickException as error:
        error.show()
        code = USAGE
    except (StoreError, ReproducerError, ArgumentError, RecipeError) as error:
        click.echo(f"dpaudit: {error}", err=True)
        code = USAGE
    except (DpauditError, MemoryError) as error:
        words = "out of memory: " * isinstance(error, MemoryError)
        click.echo(f"dpaudit: {words}{error}", err=True)
        code = FAILED
    finally:
        signal.signal(signal.SIGTERM, ends)
    sys.exit(code or OK)


# --- run --------------------------------------------------------------------------------------


@cli.command()
@click.argument("paths", nargs=-1, type=PathArgument())
@run_options
@failure_prob_option("Failure probability of each audit, in (0, 1).")
@click.option(
    "--sequential",
    is_flag=True,
    help="Audit in batches and stop as soon as the verdict is certain.",
)
@click.option(
    "--strict", is_flag=True, help="Let NO POWER fail the run, even without given mutants."
)
@click.option(
    "--time-limit",
    type=float,
    help="Stop an audit after this many seconds; kill its process ten seconds later.",
)
@click.option(
    "--history",
    type=PathArgument(dir_okay=False),
    help="Keep the evidence of all runs in this file, and combine it.",
)
@workers_option
@verbose_option
def run(
    paths: tuple[Path, ...],
    profile: str,
    seed: int,
    failure_prob: float,
    sequential: bool,
    strict: bool,
    time_limit: float | None,
    workers: int | str,
    verbose: bool,
    **selection: Any,
) -> int:
    """Run the audits and ledgers in PATHS (default: audits/) and write a report.

    If PATHS, -k or -m is given, OUT keeps the results of earlier runs for all other audits.
    """
    from dpaudit.run.display import RunDisplay
    from dpaudit.run.session import Asked

    settings = RunSettings(profile, seed, failure_prob, sequential, strict, time_limit, workers)
    chosen = RunSelection(**selection)
    given = [str(path) for path in paths]
    for path in given:
        if not path_of(path).exists():
            raise click.UsageError(f"PATHS: {path!r} does not exist")
    if isinstance(workers, str):  # this is checked before any result of an earlier run is changed
        from dpaudit.mechanisms import check_scheduler

        check_scheduler(workers)
    repeat = shlex.join(["dpaudit", "run", *given, *settings.words(), *chosen.words()])
    whole = not given and not chosen.words()
    asked = Asked(repeat, whole, junit=chosen.junit, sarif=chosen.sarif)
    # Only audits and checks are collected, because the tests of a project have their own runner.
    return chosen.collect(given or default_paths(), settings, asked, RunDisplay(verbose=verbose))


# --- audit, plan ------------------------------------------------------------------------------


@cli.command()
@click.argument("target", metavar="[MODULE:FUNCTION]", required=False)
@click.option(
    "--command",
    metavar="COMMAND",
    help="Audit a program in any language instead of a function. Then each --mutant is a command, "
    "too. {seed}, {draws} and {data} are replaced, and no shell reads the command.",
)
@command_options
@click.option("--epsilon", type=float, help="Claimed epsilon, >= 0. Alternatives: --mu, --rho.")
@click.option(
    "--delta",
    type=float,
    help="Claimed delta, together with --epsilon or --rho, in [0, 1]. Default: 0.",
)
@click.option("--mu", type=float, help="Claimed mu of Gaussian DP, > 0.")
@click.option("--rho", type=float, help="Claimed rho of zero-concentrated DP, > 0.")
@click.option(
    "--relation",
    type=click.Choice(["replace_user", "add_remove_user"]),
    help="Neighbouring relation. By default, a search without --pair tries both relations.",
)
@click.option(
    "--pair",
    help="Pair of datasets, or a space of pairs to search, as NAME:argument=value,.... NAME is a "
    "recipe (far_user, clip_boundary_user, two_clusters, majority_flip, "
    "constant_against_random, threshold_decider, value_pattern, value_patterns), a search space "
    "(outlier, clusters, edge, which_user, which_batch, query_values) or portfolio. A range "
    "LOW..HIGH or log:LOW..HIGH, or a choice A|B, as a value searches for the worst pair. "
    "Default: portfolio.",
)
@click.option(
    "--local",
    metavar="VALUES",
    help="Audit a local mechanism f(value, size, *, rng) on all pairs of these values of one "
    "client: LOW..HIGH for whole numbers, words or numbers A,B,C, or a list in JSON.",
)
@click.option(
    "--like",
    metavar="DATA",
    help="A .npy file with an example dataset, [n_users, m, ...]. The portfolio takes shape and "
    "range from it, and also tries pairs near it.",
)
@click.option("--users", type=int, help="Number of users in the portfolio. Default: 20.")
@click.option("--m", type=int, help="Items per user. Default: 8.")
@click.option("--dim", type=int, help="Dimension of an item. Default: items are numbers.")
@click.option(
    "--range",
    nargs=2,
    callback=range_as_written,
    metavar="LOW HIGH",
    help="Range of the data; integers if both ends are. Default: unbounded.",
)
@click.option(
    "--mutant",
    "mutants",
    multiple=True,
    metavar="MODULE:FUNCTION|COMMAND",
    help="A custom mutant, in addition to those made from the noise. May be repeated.",
)
@click.option(
    "--no-mutants",
    is_flag=True,
    help="Make no mutants. The verdict is then NO POWER if no violation is found.",
)
@click.option("--draws", default=100_000, show_default=True, type=int, help="Draws per dataset.")
@seed_option
@failure_prob_option("Failure probability, in (0, 1).")
@click.option(
    "--method",
    type=click.Choice(["fixed", "sequential"]),
    default="fixed",
    show_default=True,
    help="Method; sequential stops as soon as the verdict is certain.",
)
@click.option(
    "--float-attack", is_flag=True, help="Also test the low bits of floating-point outputs."
)
@click.option(
    "--score",
    metavar="MODULE:FUNCTION",
    help="A fixed score of the outputs, [size, ...] -> [size]. Only this score is tested.",
)
@click.option(
    "--errors",
    type=click.Choice(["raise", "outcome"]),
    default="raise",
    show_default=True,
    help="Treat an exception as an error, or as one more outcome of the mechanism.",
)
@click.option(
    "--cache-dir",
    type=PathArgument(),
    help="Store the draws of every call in this directory and reuse them.",
)
@click.option(
    "--max-seconds", type=float, help="Stop after this many seconds with what is certified by then."
)
@workers_option
@click.option("--out", type=PathArgument(), help="Also write the result to this directory.")
@verbose_option
def audit(
    target: str | None,
    command: str | None,
    kind: str,
    server: bool,
    text: bool,
    unseeded: bool,
    timeout: float,
    seed: int,
    out: Path | None,
    mutants: tuple[str, ...],
    no_mutants: bool,
    cache_dir: Path | None,
    max_seconds: float | None,
    workers: int | str,
    verbose: bool,
    **asked: Any,
) -> int:
    """Audit one function f(data, size, *, rng) -> [size, ...] or one program, without a file.

    MODULE is a module or the path of a .py file. Without --pair, the audit searches a portfolio of
    pairs that expose realistic mistakes.
    """
    from dpaudit.engine import Settings
    from dpaudit.report import replay_command
    from dpaudit.run.auditor import drawn_by
    from dpaudit.run.direct import audit_function
    from dpaudit.store import check_writable, save_record

    if no_mutants and mutants:
        raise click.UsageError("--mutant and --no-mutants must not be given together")
    if (target is None) == (command is None):
        given = "none" if target is None else "both"
        raise click.UsageError(f"MODULE:FUNCTION or --command must be given, got {given}")
    asked["mutants"] = None if no_mutants else list(mutants)
    if command is not None:
        asked["command"] = options_of_command(
            kind=kind, server=server, text=text, unseeded=unseeded, timeout=timeout
        )
    if out is not None:
        check_writable(out)
    try:
        settings = Settings(workers=drawn_by(workers), max_seconds=max_seconds, cache_dir=cache_dir)
        origin = {"kind": "function", "target": target or command, **asked}
        result = audit_function(origin, seed, settings=settings)
    except TypeError as error:  # of an argument; a TypeError of a mechanism is a MechanismError
        raise click.UsageError(str(error)) from None
    if out is not None:
        save_record(out, result)
    again = f"repeat the same command with --seed {seed}"
    replay = again if out is None else replay_command(result, out)
    click.echo(result.summary(verbose=verbose, replay=replay))
    return FAILED if result.mismatch else OK


@cli.command()
@click.option("--epsilon", type=float, required=True, help="Claimed epsilon, >= 0.")
@click.option("--delta", default=0.0, type=float, help="Claimed delta. Default: 0.")
@click.option(
    "--true-epsilon", type=float, required=True, help="Epsilon that the mechanism really has."
)
@click.option(
    "--power", default=0.9, show_default=True, type=float, help="Required power, in (0, 1)."
)
@failure_prob_option("Failure probability, in (0, 1).")
def plan(epsilon: float, delta: float, **asked: Any) -> int:
    """Print how many draws refute a claim if the mechanism has a given larger epsilon."""
    from dpaudit.claims import ApproxDP, PureDP
    from dpaudit.engine import plan as plan_draws

    claim = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
    click.echo(str(plan_draws(claim, **asked)))
    return OK


# --- compare, report, replay -------------------------------------------------------------------


@cli.command()
@click.argument("old", type=PathArgument())
@click.argument("new", type=PathArgument())
@click.option(
    "--markdown",
    type=PathArgument(dir_okay=False),
    help="Also write a comment for a pull request to this file.",
)
@click.option(
    "--allow-missing",
    "may_be_missing",
    is_flag=True,
    help="Do not fail if results are missing in NEW.",
)
@click.option(
    "--fail-on-less-power",
    "power_counts",
    is_flag=True,
    help="Fail if an audit has less power than before.",
)
def compare(old: Path, new: Path, markdown: Path | None, **asked: Any) -> int:
    """Compare the stored runs OLD and NEW; exit with 1 if anything is worse.

    OLD and NEW are directories written by `dpaudit run --out`, or files of single results.
    """
    from dpaudit import report
    from dpaudit.store import write_atomic

    found = report.compare(report.read_side(old), report.read_side(new), **asked)
    for line in report.comparison_lines(found):
        click.echo(line)
    if markdown is not None:
        write_atomic(markdown, report.comparison_markdown(found))
    return FAILED if found.worse else OK


@cli.command()
@click.argument("out", default=DEFAULT_OUT, type=PathArgument())
@sarif_option
@click.option(
    "--badge",
    type=PathArgument(dir_okay=False),
    help="Also write a badge with the most urgent status to this SVG file.",
)
def report(out: Path, sarif: Path | None, badge: Path | None) -> int:
    """Rewrite the report of the run in OUT (default: reports), its SARIF file and its badge."""
    from dpaudit.report import badge as badge_of
    from dpaudit.report import sarif as sarif_of
    from dpaudit.report import write_report
    from dpaudit.store import load_run, write_atomic

    run_record, records, lost = load_run(out)
    for problem in run_record.problems:
        click.echo(f"problem: {problem}", err=True)
    click.echo(f"report: {write_report(out, run_record, records)}")
    if sarif is not None:
        write_atomic(sarif, sarif_of(run_record, records))
        click.echo(f"sarif: {sarif}")
    if badge is not None:
        write_atomic(badge, badge_of(run_record, records))
        click.echo(f"badge: {badge}")
    return FAILED if lost else OK


@cli.command()
@click.argument("result", type=PathArgument())
@click.option("--trust", is_flag=True, help="Also run code outside this directory.")
@click.option(
    "--export-test",
    "test",
    type=PathArgument(dir_okay=False),
    help="Do not run the audit; write a pytest file that fails until the bug is fixed.",
)
def replay(result: Path, trust: bool, test: Path | None) -> int:
    """Repeat the audit or check stored in RESULT and compare every count and number."""
    from dpaudit.run.export import export_test
    from dpaudit.run.replay import replay_record

    if test is None:
        return replay_record(result, trust=trust)
    export_test(result, test)
    click.echo(f"test: {test}")
    return OK


@cli.command()
@click.argument("result", type=PathArgument())
@click.option("--markdown", is_flag=True, help="Write the text of an issue instead.")
@click.option("--out", type=PathArgument(dir_okay=False), help="New file; by default, print.")
def reproduce(result: Path, markdown: bool, out: Path | None) -> int:
    """Write the refutation stored in RESULT as a program that needs no dpaudit.

    Read the program before you run it: it is as trustworthy as the file RESULT.
    """
    from dpaudit.run.export import export_reproducer

    text = export_reproducer(result, out, markdown=markdown)
    click.echo(text if out is None else f"{'issue' if markdown else 'program'}: {out}")
    return OK


cli.add_command(check_command)
cli.add_command(init)
for entry in metadata.entry_points(group="dpaudit.commands"):
    cli.add_command(entry.load())
