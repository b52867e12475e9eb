"""Counterexamples for pasting.

Each counterexample is a self-contained program that computes both sides. A check computes the sides
of an inequality in a function. The function may need only Python, numpy and scipy. The function may
also use functions of its module that need only Python, numpy and scipy. In these cases, the source
of the function and the case form a program of a few lines. If the function needs more, the check
supplies its own snippet.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from dpaudit.mutants import NotAlone, Program

LINES = 15
"""Largest number of lines of a snippet."""

_WIDTH = 100
_OURS = ("dpaudit", "algorithms")


def snippet_of(function: Callable[..., Any], case: Mapping[str, Any], *, sign: str = ">") -> str:
    """Return a program that prints both sides of a case.

    Empty if all such programs are too long.

    Parameters
    ----------
    function : callable
        ``function(**case) -> (lhs, rhs)``.
    case : mapping
        Plain data of a counterexample. Keys that the function does not take are omitted.
    sign : str
        Printed between the two sides.
    """
    program = Program(refused=_OURS)
    try:
        name, bound = program.function(function)
    except (NotAlone, OSError, TypeError):
        return ""
    taken = inspect.signature(function).parameters
    every = any(p.kind is p.VAR_KEYWORD for p in taken.values())
    inputs = {key: value for key, value in case.items() if every or key in taken}
    try:
        handed = ", ".join(f"{k}={program.literal(v)}" for k, v in {**bound, **inputs}.items())
    except NotAlone:
        return ""
    call = textwrap.fill(
        f"lhs, rhs = {name}({handed})",
        _WIDTH,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    lines = [
        *program.imports(),
        *program.definitions,
        *call.splitlines(),
        f'print(lhs, "{sign}", rhs)',
    ]
    lines = [line for part in lines for line in part.splitlines()]
    if len(lines) > LINES or any(len(line) > _WIDTH + 20 for line in lines):
        return ""
    return "\n".join(lines)
