"""The command line: ``dpaudit run | ledger | audit | plan | report | replay``.

Exit codes: 0 no unexpected refutation; 1 something refuted or failed; 2 interrupted, 3 internal
error, 4 wrong usage, 5 nothing collected, as in pytest.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpaudit.errors import ArgumentError, DpauditError, RecipeError, StoreError
from dpaudit.run.invoke import (
    DEFAULT_OUT,
    FAILED,
    OK,
    USAGE,
    Selection,
    differences,
    failure_prob_option,
    import_from_here,
    run_options,
    run_pytest,
    settings_arguments,
)
from dpaudit.run.ledger_cli import ledger, replay_statement

if TYPE_CHECKING:
    from dpaudit.neighbors import NeighborPair, PairFamily
    from dpaudit.results import AuditResult


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dpaudit")
def cli() -> None:
    """Audit differential privacy: certified lower bounds, with a stated probability of error."""


cli.add_command(ledger)


def main() -> None:
    """Run the command line, with the exit codes of pytest."""
    try:
        code = cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        code = 2
    except click.ClickException as error:
        error.show()
        code = USAGE
    except (StoreError, ArgumentError, RecipeError) as error:
        click.echo(f"dpaudit: {error}", err=True)
        code = USAGE
    except DpauditError as error:
        click.echo(f"dpaudit: {error}", err=True)
        code = FAILED
    sys.exit(code or OK)


# --- run --------------------------------------------------------------------------------------


@cli.command()
@click.argument("paths", nargs=-1)
@run_options
@failure_prob_option("Of each audit, in (0, 1).")
@click.option("--sequential", is_flag=True, help="Stop each audit as soon as the evidence is in.")
def run(
    paths: tuple[str, ...],
    profile: str,
    seed: int,
    failure_prob: float,
    sequential: bool,
    **selection: Any,
) -> int:
    """Run the audits and ledgers in PATHS (default: audits/) and write a report."""
    from dpaudit.run.auditor import Settings
    from dpaudit.run.display import RunDisplay

    settings = Settings(profile, seed, failure_prob, sequential)
    chosen = list(paths) or (["audits"] if Path("audits").is_dir() else ["."])
    for path in chosen:
        if not Path(path.partition("::")[0]).exists():
            raise click.UsageError(f"PATHS: {path!r} does not exist")
    # Only audits and checks: a project's tests have a runner of their own.
    return Selection(**selection).collect("audit_*.py ledger_*.py", chosen, settings, RunDisplay())


# --- audit ------------------------------------------------------------------------------------


@cli.command()
@click.argument("target", metavar="MODULE:FUNCTION")
@click.option("--epsilon", required=True, type=float, help="Claimed epsilon, >= 0.")
@click.option("--delta", default=0.0, show_default=True, type=float, help="Claimed, in [0, 1].")
@click.option(
    "--pair",
    default="far_user:n_users=20",
    show_default=True,
    help="Recipe of the neighbouring pair, as NAME:argument=value,...; NAME from far_user, "
    "clip_boundary_user, all_others_equal, two_clusters, majority_flip, constant_against_random, "
    "threshold_decider, value_pattern, value_patterns. A range LOW..HIGH or log:LOW..HIGH, or a "
    "choice A|B, is searched for the worst pair.",
)
@click.option("--mutant", metavar="MODULE:FUNCTION", help="Mutant, to show power.")
@click.option("--draws", default=100_000, show_default=True, type=int, help="Draws per dataset.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Root seed.")
@failure_prob_option("In (0, 1).")
@click.option("--sequential", is_flag=True, help="Stop as soon as the evidence is in.")
@click.option("--float-attack", is_flag=True, help="Also look at the low bits of the outputs.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Also write the result into this directory."
)
def audit(
    target: str,
    epsilon: float,
    delta: float,
    pair: str,
    mutant: str | None,
    draws: int,
    seed: int,
    failure_prob: float,
    sequential: bool,
    float_attack: bool,
    out: Path | None,
) -> int:
    """Audit one function f(data, size, *, rng) -> [size, ...], without writing a file.

    MODULE is a module or a path to a .py file.
    """
    from dpaudit.report import replay_command
    from dpaudit.store import check_writable, save_result

    if out is not None:
        check_writable(out)
    origin = {
        "kind": "function",
        "target": target,
        "epsilon": epsilon,
        "delta": delta,
        "pair": pair,
        "mutant": mutant,
        "draws": draws,
        "failure_prob": failure_prob,
        "sequential": sequential,
        "float_attack": float_attack,
    }
    try:
        result = _audit_function(origin, seed)
    except TypeError as error:  # of an argument; a mechanism's own is a MechanismError
        raise click.UsageError(str(error)) from None
    if out is not None:
        save_result(out, result)
    click.echo(result.summary(replay=replay_command(result, out) if out is not None else None))
    return FAILED if result.mismatch else OK


def _audit_function(origin: dict[str, Any], seed: int) -> AuditResult:
    """Make the audit that an ``origin`` of kind "function" describes."""
    from dpaudit.claims import ApproxDP, PureDP
    from dpaudit.engine import audit as audit_mechanism
    from dpaudit.mechanisms import generator
    from dpaudit.neighbors import from_recipe
    from dpaudit.results import Expectation
    from dpaudit.run.auditor import seeded
    from dpaudit.search import SearchSpace, space_from_words

    mechanism = _load(origin["target"])
    mutant = None if origin["mutant"] is None else _load(origin["mutant"])
    pairs: NeighborPair | PairFamily | SearchSpace
    if ".." in origin["pair"] or "|" in origin["pair"]:
        pairs = space_from_words(origin["pair"])
    else:
        pairs = from_recipe(origin["pair"], rng=generator(seed, origin["target"], "pair"))
    claim: PureDP | ApproxDP = PureDP(origin["epsilon"])
    if origin["delta"] != 0:
        claim = ApproxDP(origin["epsilon"], origin["delta"])
    result = audit_mechanism(
        mechanism,
        claim,
        pairs,
        draws=origin["draws"],
        failure_prob=origin["failure_prob"],
        seed=seed,
        mutant=mutant,
        sequential=origin["sequential"],
        float_attack=origin["float_attack"],
        id=origin["target"],
    )
    origin = {**origin, "seeded": seeded(mechanism, mutant)}
    return result.with_origin(origin, Expectation.NOT_REFUTED)


def _load(target: str) -> Any:
    """Import MODULE:FUNCTION; MODULE is dotted or a path to a .py file."""
    module_name, colon, function = target.rpartition(":")
    if not colon or not module_name or not function:
        raise click.UsageError(f"the target must read MODULE:FUNCTION, got {target!r}")
    import_from_here()
    try:
        if module_name.endswith(".py"):
            path = Path(module_name)
            if not path.is_file():
                raise click.UsageError(f"there is no file {module_name}")
            spec = importlib.util.spec_from_file_location(path.stem, path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module  # where dataclasses and pickle look
            sys.path.insert(0, str(path.parent.resolve()))
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(module_name)
    except click.UsageError:
        raise
    except Exception as error:
        raise click.UsageError(
            f"cannot import {module_name}: {type(error).__name__}: {error}"
        ) from error
    found: Any = module
    for part in function.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise click.UsageError(f"module {module_name} has no function {function!r}")
    return found


# --- plan --------------------------------------------------------------------------------------


@cli.command()
@click.option("--epsilon", required=True, type=float, help="Claimed epsilon, >= 0.")
@click.option("--delta", default=0.0, show_default=True, type=float, help="Claimed, in [0, 1].")
@click.option("--true-epsilon", required=True, type=float, help="What the mechanism really needs.")
@click.option("--power", default=0.9, show_default=True, type=float, help="Wanted, in (0, 1).")
@failure_prob_option("In (0, 1).")
@click.option(
    "--rates",
    nargs=2,
    type=float,
    metavar="P Q",
    help="Rates of the event, on the likelier side and on the other. Default: the best event of "
    "Laplace noise (delta = 0) or Gaussian noise that just needs the true epsilon.",
)
def plan(
    epsilon: float,
    delta: float,
    true_epsilon: float,
    power: float,
    failure_prob: float,
    rates: tuple[float, float] | None,
) -> int:
    """Say how many draws refute a claim that is violated by a given amount."""
    from dpaudit.engine import plan as plan_draws

    found = plan_draws(
        epsilon=epsilon,
        delta=delta,
        true_epsilon=true_epsilon,
        power=power,
        failure_prob=failure_prob,
        rates=rates,
    )
    click.echo(str(found))
    return OK


# --- report, replay ---------------------------------------------------------------------------


@cli.command()
@click.argument("out", default=DEFAULT_OUT, type=click.Path(path_type=Path))
def report(out: Path) -> int:
    """Render the report of the run in OUT (default: reports) again."""
    from dpaudit.report import write_report
    from dpaudit.store import load_run

    run_record, results, statements = load_run(out)
    for problem in run_record.problems:
        click.echo(f"problem: {problem}", err=True)
    click.echo(f"report: {write_report(out, run_record, results, statements)}")
    lost = len(results) < len(run_record.audits)
    lost |= sum(bool(row.origin) for row in statements) < len(run_record.statements)
    return FAILED if lost else OK


@cli.command()
@click.argument("result", type=click.Path(path_type=Path))
def replay(result: Path) -> int:
    """Make the audit or check stored in RESULT again and compare every count and number."""
    from dpaudit.store import is_statement, load_result

    if is_statement(result):
        return replay_statement(result)
    stored = load_result(result)
    try:
        again = _again(stored)
    except KeyError as error:
        raise StoreError(f"{result} does not say how it was made: origin lacks {error}") from None
    differing = compare(stored, again)
    click.echo(f"stored    {_line(stored)}\nreplayed  {_line(again)}")
    for difference in differing:
        click.echo(f"differs   {difference}")
    same = "the same" if _is_seeded(stored) else "the same verdict; unseeded, so counts differ"
    click.echo("NOT the same" if differing else same)
    return FAILED if differing else OK


def _line(result: AuditResult) -> str:
    counts = result.witness.counts
    hits = "" if counts is None else f", {counts.hits_left} and {counts.hits_right} hits"
    return (
        f"{result.verdict.words}: epsilon >= {result.certified_epsilon!r}, "
        f"delta >= {result.certified_delta!r}{hits}"
    )


def compare(stored: AuditResult, again: AuditResult) -> list[str]:
    """Say what differs between a stored result and its replay, but for times and versions.

    A mechanism that draws from an entropy source of its own is compared by its verdict only.
    """
    a, b = stored.to_json(), again.to_json()
    ignored = {"seconds", "mechanism_seconds", "versions", "origin", "expected", "schema"}
    keys = [key for key in a if key not in ignored] if _is_seeded(stored) else ["verdict"]
    for record in (a, b):
        if record["mutant"] is not None:
            record["mutant"] = {k: v for k, v in record["mutant"].items() if k != "seconds"}
    found = [line for key in keys for line in differences(key, a[key], b[key])]
    if found and stored.versions != again.versions:
        found.append(f"versions: {dict(stored.versions)} against {dict(again.versions)}")
    return found


def _is_seeded(stored: AuditResult) -> bool:
    return bool(stored.origin.get("seeded", True))


def _again(stored: AuditResult) -> AuditResult:
    """Make a stored audit again, the way it was made."""
    kind = stored.origin.get("kind")
    if kind == "function":
        return _audit_function(stored.origin, stored.seed)
    if kind != "file":
        raise click.UsageError(
            "this result was made by a direct call of dpaudit.audit; "
            f"make the same call again with seed={stored.seed} and id={stored.id!r}"
        )
    path = Path(stored.origin["path"])
    if not path.is_file():
        raise click.UsageError(
            f"the audit file {path} is not here; replay from the directory of the run"
        )
    from dpaudit.run.auditor import Settings
    from dpaudit.store import AUDITS, file_name, load_result

    settings = Settings(
        stored.origin["profile"],
        stored.seed,
        stored.origin["failure_prob"],
        stored.origin["sequential"],
    )
    with tempfile.TemporaryDirectory() as scratch:
        arguments = [f"{path}::{stored.origin['item']}", "-p", "no:xdist", "-p", "no:terminal"]
        arguments += ["--dpaudit", f"--dpaudit-out={scratch}", *settings_arguments(settings)]
        run_pytest(arguments, [])
        fresh = Path(scratch) / AUDITS / file_name(stored.id)
        if not fresh.exists():
            raise DpauditError(f"the replay of {stored.id} produced no result")
        return load_result(fresh)
