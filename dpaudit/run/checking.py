"""The command ``dpaudit check-command``, which tests whether a program can be audited."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from dpaudit import _json
from dpaudit.errors import MechanismError
from dpaudit.run.invoke import FAILED, OK, command_of, command_options, options_of_command

if TYPE_CHECKING:
    from dpaudit.mechanisms import Command

_MANY, _FEW = 64, 8
"""Draws of a check, if one process makes all draws of a call, and if each draw needs a process."""

_NO_REQUEST = b"this line is no request\n"

Check = tuple[str, Callable[[], str]]
"""What is checked, and a function that returns the fault in words, or ""."""


@click.command("check-command")
@click.argument("command", metavar="COMMAND")
@command_options
@click.option(
    "--data",
    default="[[0.0], [1.0]]",
    show_default=True,
    help="The dataset of the checks, in JSON: a list with one entry for each user.",
)
def check_command(command: str, data: str, **asked: Any) -> int:
    """Check that the program COMMAND follows the protocol of programs.

    Each check prints one line. The exit code is 1 if a check fails.
    """
    try:
        dataset = _json.loads(data)
    except ValueError as error:
        raise click.UsageError(f"--data must be JSON, got {data!r}: {error}") from None
    program = command_of(command, options_of_command(**asked))
    failed = 0
    for words, check in checks(program, dataset):
        try:
            fault = check()
        except MechanismError as error:
            fault = str(error)
        click.echo(f"FAILED  {words}: {fault}" if fault else f"ok      {words}")
        failed += bool(fault)
        if fault and words.startswith("a call for"):
            break  # the program makes no draws, so all other checks would fail in the same way
    program.close()
    return FAILED if failed else OK


def checks(program: Command, data: Any) -> Iterator[Check]:
    """Yield the checks of a program, in the order in which they must be made."""
    is_server = program.mode == "server"
    size = _MANY if is_server or any("{draws}" in one for one in program.arguments) else _FEW

    def drawn(seed: int, count: int = size) -> list[Any]:
        rng = np.random.default_rng(seed)
        return program.draws_one_by_one(data, count, rng=rng)

    yield "a call for 1 draw gets 1 draw", lambda: "" if drawn(1, 1) else "no draw"
    yield f"a call for {size} draws gets {size} draws", lambda: "" if drawn(1) else "no draws"
    yield (
        "the draws of a call differ",
        lambda: "all draws are equal" if _are_equal(drawn(1)) else "",
    )
    if program.seeded:
        yield (
            "equal seeds give equal draws",
            lambda: "" if drawn(1) == drawn(1) else "the draws differ",
        )
    yield (
        "different seeds give different draws" if program.seeded else "two calls differ",
        lambda: "" if drawn(1) != drawn(2) else "the draws are equal",
    )
    if is_server:
        yield "a line that is no request gets an error", lambda: _fault_of_answer(program)
        yield "a call after an error gets its draws", lambda: "" if drawn(1) else "no draws"
        yield "the server ends when its input is closed", program.finish


def _are_equal(draws: list[Any]) -> bool:
    return all(draw == draws[0] for draw in draws)


def _fault_of_answer(program: Command) -> str:
    answer = program.request(_NO_REQUEST)
    return "" if isinstance(answer, str) else f"got {len(answer)} draws"
