"""Lines of a mechanism's code: what each side executes, and what a value is computed from.

Nothing here is exact. A name may be assigned in several places, and code may be generated. So the
lines are hints for a reader. No certified number depends on them.
"""

from __future__ import annotations

import ast
import dis
import functools
import linecache
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from dpaudit.mutants.recorder import Key, Line, is_own

Function = ast.FunctionDef | ast.AsyncFunctionDef

_DEPTH = 2
_UNIFORM = ("random", "uniform")


@dataclass(frozen=True)
class Trace:
    """The code that some calls executed.

    Parameters
    ----------
    always, ever : frozenset of (code, int)
        Instructions that all calls executed, and instructions that some call executed.
    returns : tuple of Line
        Line at which the mechanism's own code returned, for each way in which it returned.
    """

    always: frozenset[tuple[CodeType, int]]
    ever: frozenset[tuple[CodeType, int]]
    returns: tuple[Line, ...]


def traced(mechanism: Any, calls: Iterable[Callable[[], Any]]) -> Trace:
    """Make some calls, and return the instructions that the mechanism's own code executed.

    Code of installed packages counts only if the mechanism belongs to the same package. The first
    call is not recorded, because Python 3.12 starts to report instructions only after it.
    """
    always: frozenset[tuple[CodeType, int]] | None = None
    package = package_of(code) if (code := code_of(mechanism)) is not None else "own"
    ever: set[tuple[CodeType, int]] = set()
    returns: dict[Line, None] = {}
    for at, call in enumerate(calls):
        seen: set[tuple[CodeType, int]] = set()
        last: list[Line] = []

        def local(frame: FrameType, event: str, _: Any, seen: Any = seen, last: Any = last) -> Any:
            if event == "opcode":
                seen.add((frame.f_code, frame.f_lasti))
            elif event == "return":
                last.append((frame.f_code.co_filename, frame.f_code.co_qualname, frame.f_lineno))
            return local

        def enter(frame: FrameType, *_: Any, local: Any = local) -> Any:
            if not is_own(frame.f_code) or package_of(frame.f_code) != package:
                return None
            frame.f_trace_opcodes = True
            return local

        before = sys.gettrace()
        try:
            sys.settrace(enter)
            call()
        finally:
            sys.settrace(before)
        if at == 0:
            continue
        always = frozenset(seen) if always is None else always & seen
        ever |= seen
        if last:
            returns[last[-1]] = None
    return Trace(always or frozenset(), frozenset(ever), tuple(returns))


def code_of(mechanism: Any) -> CodeType | None:
    """Return the code of the function inside a mechanism, or None."""
    inner = ("mechanism", "function", "func", "centers", "__wrapped__", "__call__")
    for _ in inner:
        code = getattr(mechanism, "__code__", None)
        if isinstance(code, CodeType):
            return code
        mechanism = next((getattr(mechanism, n) for n in inner if hasattr(mechanism, n)), None)
    return None


def package_of(code: CodeType) -> str:
    """Return the package of installed code, or "own" for all code that is not installed."""
    _, installed, inside = code.co_filename.rpartition("-packages")
    return inside.strip("\\/").partition("/")[0] if installed else "own"


def branch(left: Trace, right: Trace) -> tuple[Line, ...]:
    """Return the lines at which two sides part: the decision, and code that one side executes.

    The result is empty if every instruction that one side always executes is executed on the other
    side at least once.
    """
    for one, other in ((left, right), (right, left)):
        alone = one.always - other.ever
        for code in dict.fromkeys(code for code, _ in alone):
            # A function that only one side calls is not a decision.
            if not any(seen is code for seen, _ in other.ever):
                continue
            first = min(offset for owner, offset in alone if owner is code)
            decision = None
            for step in dis.get_instructions(code):
                if step.offset >= first:
                    break
                is_decision = "JUMP" in step.opname and "IF_" in step.opname
                if is_decision and (code, step.offset) in other.ever:
                    decision = step
            offsets = [first] if decision is None else [decision.offset, first]
            lines = [_line_of(code, offset) for offset in offsets]
            return tuple(dict.fromkeys(line for line in lines if line is not None))
    return ()


def _line_of(code: CodeType, offset: int) -> Line | None:
    positions = list(code.co_positions())
    number = positions[offset // 2][0] if offset // 2 < len(positions) else None
    return None if number is None else (code.co_filename, code.co_qualname, number)


def amount_lines(key: Key) -> tuple[Line, ...]:
    """Return the line that draws a noise, and lines that compute the amount of the noise."""
    method, lines = key
    draw = lines[0]
    function = _function_at(draw)
    call = None if function is None else _call_in(function, draw, method)
    if function is None or call is None:
        return (draw,)
    values = [*call.args, *(word.value for word in call.keywords if word.arg != "size")]
    if method in _UNIFORM:  # the bias of a coin is what the number is compared with
        compared = [node for node in ast.walk(function) if isinstance(node, ast.Compare)]
        values += [node for node in compared if any(one is call for one in ast.walk(node))]
    return (draw, *_sources(function, values, lines))


def value_lines(returned: Line) -> tuple[Line, ...]:
    """Return a line that returns a value, and lines that compute the value."""
    function = _function_at(returned)
    if function is None:
        return (returned,)
    values = [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Return) and node.value is not None and _holds(node, returned[2])
    ]
    return (returned, *_sources(function, values, (returned,)))


def text_of(line: Line) -> str:
    """Return the code of a line."""
    return linecache.getline(line[0], line[2]).strip()


def _sources(function: Function, values: Iterable[ast.AST], lines: tuple[Line, ...]) -> list[Line]:
    """Return the lines that compute some values: calls that pass them, then the assignments."""
    file, name, _ = lines[0]
    parameters = [one.arg for one in (*function.args.args, *function.args.kwonlyargs)]
    found: dict[Line, None] = {}
    passed: dict[Line, None] = {}
    names = list(_names(values))
    for _ in range(_DEPTH):
        further: list[str] = []
        for one in names:
            assigned = list(_assigned(function, one))
            for at, value in assigned[-1:]:
                found[file, name, at] = None
                further += _names([value])
            if not assigned and one in parameters[1:] and one not in _OWN and len(lines) > 1:
                passed[lines[1]] = None
        names = further
    return [line for line in passed | found if line != lines[0]]


_OWN = ("size", "rng")


def _names(values: Iterable[ast.AST]) -> Iterator[str]:
    for value in values:
        yield from (node.id for node in ast.walk(value) if isinstance(node, ast.Name))


def _assigned(function: Function, name: str) -> Iterator[tuple[int, ast.AST]]:
    for node in ast.walk(function):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None) or getattr(node, "iter", None)
        held = {one.id for t in targets if t for one in ast.walk(t) if isinstance(one, ast.Name)}
        if name in held and value is not None and isinstance(node, ast.stmt):
            yield node.lineno, value


def _holds(node: ast.AST, number: int) -> bool:
    return bool(node.lineno <= number <= (node.end_lineno or node.lineno))  # type: ignore[attr-defined]


def _call_in(function: Function, line: Line, method: str) -> ast.Call | None:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and _holds(node, line[2]):
            called = node.func
            if isinstance(called, ast.Attribute) and called.attr == method:
                return node
    return None


def _function_at(line: Line) -> Function | None:
    """Return the innermost function around a line."""
    linecache.checkcache(line[0])
    tree = _parsed("".join(linecache.getlines(line[0])))
    around = [
        node for node in ast.walk(tree) if isinstance(node, Function) and _holds(node, line[2])
    ]
    return max(around, key=lambda node: node.lineno, default=None)


@functools.lru_cache(maxsize=32)
def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])
