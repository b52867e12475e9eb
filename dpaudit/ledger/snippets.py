"""Counterexamples for pasting.

Each counterexample is a self-contained program that computes both sides. A check computes the sides
of an inequality in a function. The function may need only Python, numpy and scipy. The function may
also use functions of its module that need only Python, numpy and scipy. In these cases, the source
of the function and the case form a program of a few lines. If the function needs more, the check
supplies its own snippet.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import math
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any

LINES = 15
"""Largest number of lines of a snippet."""

_WIDTH = 100
_FOREIGN = ("numpy", "scipy")


class _NotAlone(Exception):
    """Raised if a function needs more than Python, numpy and scipy."""


def snippet_of(function: Callable[..., Any], case: Mapping[str, Any]) -> str:
    """Return a program that prints both sides of a case.

    Empty if all such programs are too long.

    Parameters
    ----------
    function : callable
        ``function(**case) -> (lhs, rhs)``.
    case : mapping
        Plain data of a counterexample. Keys that the function does not take are omitted.
    """
    program = _Program()
    try:
        name, bound = program.function(function)
    except (_NotAlone, OSError, TypeError):
        return ""
    taken = inspect.signature(function).parameters
    every = any(p.kind is p.VAR_KEYWORD for p in taken.values())
    inputs = {key: value for key, value in case.items() if every or key in taken}
    try:
        handed = ", ".join(f"{k}={program.literal(v)}" for k, v in {**bound, **inputs}.items())
    except _NotAlone:
        return ""
    call = textwrap.fill(
        f"lhs, rhs = {name}({handed})",
        _WIDTH,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    lines = [*program.imports(), *program.definitions, *call.splitlines(), 'print(lhs, ">", rhs)']
    lines = [line for part in lines for line in part.splitlines()]
    if len(lines) > LINES or any(len(line) > _WIDTH + 20 for line in lines):
        return ""
    return "\n".join(lines)


class _Program:
    """Collects imports, constants and functions, each only once."""

    def __init__(self) -> None:
        self._modules: dict[str, str] = {}
        self._names: dict[str, dict[str, str]] = {}
        self.definitions: list[str] = []
        self._known: dict[str, Any] = {}

    def imports(self) -> list[str]:
        """Return the import lines: first modules, then names."""
        modules = [
            f"import {module}" + f" as {name}" * (name != module)
            for name, module in sorted(self._modules.items(), key=lambda item: item[1])
        ]
        names = [
            f"from {module} import {', '.join(sorted(found))}"
            for module, found in sorted(self._names.items())
        ]
        return modules + names

    def function(self, function: Callable[..., Any]) -> tuple[str, dict[str, Any]]:
        """Add a function and everything that it needs; return the name and the bound keywords."""
        bound: dict[str, Any] = {}
        while isinstance(function, functools.partial):
            if function.args:
                raise _NotAlone
            bound = {**function.keywords, **bound}
            function = function.func
        if not isinstance(function, FunctionType) or function.__name__ == "<lambda>":
            raise _NotAlone
        if self._known.get(function.__name__) is function:
            return function.__name__, bound
        if function.__name__ in self._known:
            raise _NotAlone  # another function has the same name
        self._known[function.__name__] = function
        source = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(source).body[0]
        if not isinstance(tree, ast.FunctionDef):
            raise _NotAlone
        text = _bare(source, tree)
        for name, value in _needs(function, tree).items():
            if isinstance(value, ModuleType) and not _is_foreign(value.__name__):
                # A function of a module beside the row is copied into the program.
                for attribute in sorted(_attributes(name, tree)):
                    self._need(attribute, getattr(value, attribute))
                text = re.sub(rf"\b{name}\.(?=\w)", "", text)
            else:
                self._need(name, value)
        self.definitions.append(text)
        return function.__name__, bound

    def literal(self, value: Any) -> str:
        """Return plain data as Python source, with lists of numbers as arrays."""
        if isinstance(value, float) and not math.isfinite(value):
            self._names.setdefault("math", {})["inf" if value == value else "nan"] = ""
            return repr(value)
        if isinstance(value, list):
            self._modules["np"] = "numpy"
            return f"np.array({value!r})"
        if value is None or isinstance(value, bool | int | float | str):
            return repr(value)
        raise _NotAlone

    def _need(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType):
            self._modules[name] = value.__name__
        elif isinstance(value, FunctionType) and not _is_foreign(value.__module__):
            if value.__module__.partition(".")[0] in ("dpaudit", "algorithms"):
                raise _NotAlone
            self.function(value)
        elif isinstance(value, bool | int | float | str):
            if self._known.get(name, value) != value:
                raise _NotAlone
            if name not in self._known:
                self._known[name] = value
                self.definitions.append(f"{name} = {value!r}")
        else:
            module = _home(name, value)
            self._names.setdefault(module, {})[name] = ""


def _home(name: str, value: Any) -> str:
    """Return the public module from which a name can be imported."""
    candidates = ["math", "fractions", "itertools", "functools", "statistics", "mpmath"]
    candidates += ["numpy", "scipy.stats", "scipy.special", "scipy.optimize", "scipy.integrate"]
    candidates += ["scipy.linalg"]
    for module in candidates:
        if module in sys.modules and getattr(sys.modules[module], name, None) is value:
            return module
    raise _NotAlone


def _is_foreign(module: str) -> bool:
    top = module.partition(".")[0]
    return top in _FOREIGN or top in sys.stdlib_module_names or top == "mpmath"


def _needs(function: FunctionType, tree: ast.FunctionDef) -> dict[str, Any]:
    """Return the outside names that a function uses, with their values."""
    body = ast.Module(body=tree.body, type_ignores=[])
    used = {node.id for node in ast.walk(body) if isinstance(node, ast.Name)}
    for default in [*tree.args.defaults, *(d for d in tree.args.kw_defaults if d is not None)]:
        used |= {node.id for node in ast.walk(default) if isinstance(node, ast.Name)}
    closure = inspect.getclosurevars(function)
    # pytest rewrites an assert to code that needs more than its source shows.
    found = {k: v for k, v in {**closure.globals, **closure.nonlocals}.items() if k in used}
    # getclosurevars does not examine nested functions or default values.
    around = {**function.__globals__, **closure.nonlocals}
    local = {n.id for n in ast.walk(body) if isinstance(n, ast.Name) and _is_stored(n)}
    local |= {
        arg.arg
        for node in ast.walk(tree)
        if isinstance(node, ast.arguments)
        for arg in _all_of(node)
    }
    local |= {node.name for node in ast.walk(body) if isinstance(node, ast.FunctionDef)}
    for name in sorted(used - local - set(found)):
        if name in around:
            found[name] = around[name]
        elif not hasattr(builtins, name):
            raise _NotAlone
    return found


def _attributes(module: str, tree: ast.FunctionDef) -> set[str]:
    """Return the names that a function reads from a module."""
    reads = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return {r.attr for r in reads if isinstance(r.value, ast.Name) and r.value.id == module}


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _all_of(arguments: ast.arguments) -> list[ast.arg]:
    some = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return some + [arg for arg in (arguments.vararg, arguments.kwarg) if arg is not None]


def _bare(source: str, tree: ast.FunctionDef) -> str:
    """Return the source lines of a function without decorators, docstring and empty lines."""
    lines = source.splitlines()
    first = tree.lineno - 1
    skipped: range = range(0)
    if ast.get_docstring(tree) is not None:
        doc = tree.body[0]
        skipped = range(doc.lineno - 1, doc.end_lineno or doc.lineno)
    end = tree.end_lineno or len(lines)
    kept = [line for at, line in enumerate(lines[:end]) if at >= first and at not in skipped]
    return "\n".join(line for line in kept if line.strip())
