"""Two sources for the two sides of a claim.

A check compares a printed formula with an algorithm. The formula is transcribed from the paper, and
the algorithm is run. If both sides call the same function of the algorithms, a mistake in this
function changes both sides, and the check cannot notice it.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_CALLS = 3
"""Number of cases in which calls are traced."""

Function = tuple[str, str]
"""File and qualified name of a function."""


class Tracer:
    """Records which functions of the algorithms each side of a claim calls.

    Parameters
    ----------
    folders : sequence of Path
        Files and folders with the algorithms.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(str(folder) for folder in folders)
        self._left = _CALLS
        self.entered: dict[str, set[Function]] = {"left": set(), "right": set()}
        self.called: dict[str, set[Function]] = {"left": set(), "right": set()}

    def traced(self, values: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function of a claim, whose first cases are traced."""
        if not self._folders:
            return values

        def noted(**case: Any) -> Any:
            if self._left <= 0 or sys.getprofile() is not None:
                return values(**case)
            sys.setprofile(self._note)
            try:
                found = values(**case)
            finally:
                sys.setprofile(None)
            self._left -= found is not None
            return found

        return noted

    def shared(self) -> list[str]:
        """Return the names of functions that one side calls in the check and the other anywhere."""
        left, right = self.entered["left"], self.entered["right"]
        both = (left & self.called["right"]) | (right & self.called["left"])
        return sorted(f"{Path(file).stem}.{name}" for file, name in both)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or not self._is_algorithm(frame.f_code):
            return
        if "." in frame.f_code.co_qualname or frame.f_code.co_name.startswith("<"):
            return  # methods of inputs, such as the gradient of a loss, belong to no side
        side, outer = "", frame.f_back
        entered = outer is not None and not self._is_algorithm(outer.f_code)
        while outer is not None and outer.f_code is not _NOTED:
            side = _side_of_call(outer) or side
            outer = outer.f_back
        if side:
            function = frame.f_code.co_filename, frame.f_code.co_qualname
            self.called[side].add(function)
            if entered:
                self.entered[side].add(function)

    def _is_algorithm(self, code: CodeType) -> bool:
        return code.co_filename.startswith(self._folders)


_NOTED = next(
    code
    for code in Tracer.traced.__code__.co_consts
    if isinstance(code, CodeType) and code.co_name == "noted"
)


def _side_of_call(frame: FrameType) -> str:
    """Return the side of the inequality to which the call that a frame makes belongs."""
    sides = _sides(frame.f_code)
    if not sides:
        return ""
    return sides.get(_positions(frame.f_code)[frame.f_lasti // 2], "")


@functools.cache
def _positions(code: CodeType) -> list[Any]:
    return list(code.co_positions())


@functools.cache
def _sides(code: CodeType) -> dict[Any, str]:
    """Return the side of each call in a function that returns two sides, by position."""
    function = _tree(code.co_filename).get((code.co_name, code.co_firstlineno))
    if function is None:
        return {}
    return {
        (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset): side
        for side, nodes in zip(("left", "right"), nodes_of_sides(function), strict=True)
        for node in nodes
        if isinstance(node, ast.Call)
    }


def nodes_of_sides(function: ast.FunctionDef) -> tuple[set[ast.AST], set[ast.AST]]:
    """Return the expressions on which only the left, or only the right returned side depends."""
    left: set[ast.AST] = set()
    right: set[ast.AST] = set()
    for node in ast.walk(function):
        pair = node.value if isinstance(node, ast.Return) else None
        if isinstance(pair, ast.Tuple) and len(pair.elts) == 2:
            _follow(pair.elts[0], function, left)
            _follow(pair.elts[1], function, right)
    return left - right, right - left


def _follow(part: ast.AST, function: ast.AST, found: set[ast.AST]) -> None:
    """Add an expression, and the expressions from which its names get their values."""
    for node in ast.walk(part):
        if node in found:
            continue
        found.add(node)
        if isinstance(node, ast.Name):
            for value in _values_of(node.id, function):
                if value not in found:
                    _follow(value, function, found)


def _values_of(name: str, function: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(function):
        targets: Iterable[ast.AST] = ()
        value: ast.AST = node
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.NamedExpr):
            targets, value = (node.target,), node.value or node
        elif isinstance(node, ast.For | ast.comprehension):
            targets, value = (node.target,), node.iter
        for target in targets:
            if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(target)):
                yield value


@functools.cache
def _tree(file: str) -> dict[tuple[str, int], ast.FunctionDef]:
    """Return the functions of a file, by name and first line."""
    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError):
        return {}
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {
        (node.name, min([node.lineno, *(d.lineno for d in node.decorator_list)])): node
        for node in functions
    }
