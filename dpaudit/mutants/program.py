"""Programs that stand alone: the source of functions, with everything that the functions need."""

from __future__ import annotations

import ast
import builtins
import functools
import importlib.util
import inspect
import itertools
import math
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

_INSTALLED = ("site-packages", "dist-packages")
_FOREIGN = ("numpy", "scipy")
_PLAIN = (bool, int, float, str)


class NotAlone(Exception):
    """Raised if a function or a value cannot be written into a program; the message says why."""


class Program:
    """Collects imports, constants and functions, each only once.

    Parameters
    ----------
    refused : sequence of str
        Packages whose functions the program must not contain.
    imports_modules : bool, optional
        Whether the program may import modules of any installed or importable package. By default,
        it imports only Python, numpy, scipy and mpmath, and contains the source of all other
        functions.
    reserved : sequence of str, optional
        Names that the program uses itself, so that no function or constant may have them.
    """

    def __init__(
        self,
        refused: Sequence[str],
        *,
        imports_modules: bool = False,
        reserved: Sequence[str] = (),
    ) -> None:
        self.refused, self._imports_modules = refused, imports_modules
        self._reserved = reserved
        self._modules: dict[str, str] = {}
        self._names: dict[str, dict[str, str]] = {}
        self.definitions: list[str] = []
        self.folders: list[str] = []
        """Folders of modules that are not installed, which `sys.path` must contain."""
        self._known: dict[str, Any] = {}
        self._has_annotations = False

    def imports(self) -> list[str]:
        """Return the import lines: first modules, then names."""
        future = ["from __future__ import annotations"] * self._has_annotations
        modules = [
            f"import {module}" + f" as {name}" * (name != module)
            for name, module in sorted(self._modules.items(), key=lambda item: item[1])
        ]
        names = [
            f"from {module} import {', '.join(sorted(found))}"
            for module, found in sorted(self._names.items())
        ]
        return future + modules + names

    def module(self, module: str, name: str = "") -> None:
        """Import a module, with another name if `name` is given."""
        name = name or module
        self._claim(name, sys.modules.get(module, module))
        self._modules[name] = module

    def _claim(self, name: str, value: Any) -> bool:
        """Give a name to a value; return False if it has the name already."""
        if name in self._reserved:
            raise NotAlone(f"the program itself uses the name {name}")
        if name in self._known:
            known = self._known[name]
            if known is value or (type(known) is type(value) in _PLAIN and known == value):
                return False
            raise NotAlone(f"two objects are called {name}")
        self._known[name] = value
        return True

    def function(self, function: Callable[..., Any]) -> tuple[str, dict[str, Any]]:
        """Add a function and everything that it needs; return the name and the bound keywords."""
        bound: dict[str, Any] = {}
        while isinstance(function, functools.partial):
            if function.args:
                raise NotAlone("a partial has positional arguments")
            bound = {**function.keywords, **bound}
            function = function.func
        if self._imports_modules and self._imported(function, getattr(function, "__name__", "")):
            return function.__name__, bound
        if not isinstance(function, FunctionType):
            raise NotAlone(f"{_called(function)} is no function that a module defines")
        if function.__name__ == "<lambda>":
            raise NotAlone("a lambda has no name")
        self._define(function)
        return function.__name__, bound

    def _define(self, function: FunctionType) -> None:
        """Add the source of a function."""
        if hasattr(function, "__wrapped__"):
            raise NotAlone(f"{function.__name__} is decorated")
        if not self._claim(function.__name__, function):
            return
        try:
            source = textwrap.dedent(inspect.getsource(function))
            tree = ast.parse(source).body[0]
        except (OSError, TypeError, SyntaxError) as error:
            raise NotAlone(f"the source of {function.__name__} is unknown") from error
        if not isinstance(tree, ast.FunctionDef) or tree.name != function.__name__:
            raise NotAlone(f"the source of {function.__name__} is no plain function")
        self._has_annotations |= _annotated(tree)
        text = _bare(source, tree)
        for name, value in _needs(function, tree).items():
            if not isinstance(value, ModuleType) or _is_foreign(value.__name__):
                self._need(name, value)
            elif self._imports_modules and self._is_importable(value):
                self.module(value.__name__, name)
            else:
                # A function of a module beside the row is copied into the program.
                for attribute in sorted(_attributes(name, tree)):
                    self._need(attribute, getattr(value, attribute))
                text = re.sub(rf"\b{name}\.(?=\w)", "", text)
        self.definitions.append(text)

    def _imported(self, value: Any, called: str) -> bool:
        """Import a function or class as `called`, and return whether that is possible."""
        module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
        found = sys.modules.get(module or "")
        if found is None or getattr(found, name, None) is not value:
            return False
        if not _is_foreign(found.__name__) and not self._is_importable(found):
            return False
        *above, _ = itertools.accumulate(found.__name__.split("."), "{}.{}".format)
        public = (m for m in above if getattr(sys.modules.get(m), name, None) is value)
        self._claim(called, value)
        words = name if called == name else f"{name} as {called}"
        self._names.setdefault(next(public, found.__name__), {})[words] = ""
        return True

    def _is_importable(self, module: ModuleType) -> bool:
        """Return whether a program can import a module without the refused packages."""
        file = getattr(module, "__file__", None)
        if module.__name__.partition(".")[0] in (*self.refused, "__main__"):
            return False
        if not all(part.isidentifier() for part in module.__name__.split(".")):
            return False
        try:
            spec = importlib.util.find_spec(module.__name__)
        except (ImportError, ValueError):
            return False
        if spec is None or spec.origin != file:
            return False
        if file is None or any(part in Path(file).parts for part in _INSTALLED):
            return True
        if self._needs_refused(Path(file)):
            return False
        folder = Path(file).parents[module.__name__.count(".") + (Path(file).stem == "__init__")]
        if str(folder) not in self.folders:
            self.folders.append(str(folder))
        return True

    def _needs_refused(self, file: Path) -> bool:
        try:
            tree = ast.parse(file.read_bytes())
        except (OSError, SyntaxError, ValueError):
            return False
        modules = [
            name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in [getattr(node, "module", None) or "", *(a.name for a in node.names)]
        ]
        return any(name.partition(".")[0] in self.refused for name in modules)

    def literal(self, value: Any) -> str:
        """Return plain data as Python source, with lists of numbers as arrays."""
        if isinstance(value, list):
            self._modules["np"] = "numpy"
            return f"np.array({value!r})"
        if value is None or isinstance(value, bool | int | float | str):
            return self.source(value)
        raise NotAlone(f"a value of type {type(value).__name__} is no case of a row")

    def source(self, value: Any) -> str:
        """Return the source of a value: plain data, arrays, and containers of both."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            self._names.setdefault("math", {})["inf" if value == value else "nan"] = ""
            return repr(value)
        if value is None or type(value) in (*_PLAIN, bytes):
            return repr(value)
        if type(value) is np.ndarray:
            return self._array(value)
        if type(value) in (list, tuple, set):
            parts = ", ".join(map(self.source, value))
            if type(value) is list:
                return f"[{parts}]"
            if type(value) is tuple:
                return f"({parts}{',' * (len(value) == 1)})"
            return f"{{{parts}}}" if value else "set()"
        if type(value) is dict:
            pairs = (f"{self.source(key)}: {self.source(each)}" for key, each in value.items())
            return "{" + ", ".join(pairs) + "}"
        raise NotAlone(f"an object of type {type(value).__name__} is no plain data")

    def _array(self, value: NDArray[Any]) -> str:
        if value.dtype.kind not in "biufUS":
            raise NotAlone(f"an array of dtype {value.dtype} is no plain data")
        self._modules["np"] = "numpy"
        plain = np.array(value.tolist()).dtype if value.size else np.dtype(float)
        words = value.dtype.str[1:] if value.dtype.kind in "US" else value.dtype.name
        dtype = f", dtype={words!r}" if value.dtype != plain else ""
        if not value.size:
            return f"np.zeros({value.shape}{dtype})"
        return f"np.array({self.source(value.tolist())}{dtype})"

    def _need(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType):
            self.module(value.__name__, name)
        elif isinstance(value, FunctionType) and not _is_foreign(value.__module__):
            if value.__module__.partition(".")[0] in self.refused:
                raise NotAlone(f"{name} belongs to {value.__module__}")
            if self._imports_modules and self._imported(value, name):
                return
            if value.__name__ != name:
                raise NotAlone(f"{value.__name__} is called {name}")
            self.function(value)
        elif type(value) in _PLAIN or (
            self._imports_modules
            and (type(value) in (np.ndarray, list, tuple, dict) or isinstance(value, np.generic))
        ):
            if self._claim(name, value):
                self.definitions.append(f"{name} = {self.source(value)}")
        elif not (self._imports_modules and self._imported(value, name)):
            self._claim(name, value)
            self._names.setdefault(_home(name, value), {})[name] = ""


def _called(value: Any) -> str:
    return str(getattr(value, "__name__", None) or f"an object of class {type(value).__name__}")


def _annotated(tree: ast.FunctionDef) -> bool:
    """Return whether a function has annotations, whose names a program does not define."""
    arguments = [
        arg for node in ast.walk(tree) if isinstance(node, ast.arguments) for arg in _all_of(node)
    ]
    hints = [tree.returns, *(arg.annotation for arg in arguments)]
    names = {
        n.id
        for hint in hints
        if hint is not None
        for n in ast.walk(hint)
        if isinstance(n, ast.Name)
    }
    return any(not hasattr(builtins, name) for name in names)


def _home(name: str, value: Any) -> str:
    """Return the public module from which a name can be imported."""
    candidates = ["math", "fractions", "itertools", "functools", "statistics", "mpmath"]
    candidates += ["numpy", "scipy.stats", "scipy.special", "scipy.optimize", "scipy.integrate"]
    candidates += ["scipy.linalg"]
    for module in candidates:
        if module in sys.modules and getattr(sys.modules[module], name, None) is value:
            return module
    raise NotAlone(f"{name} of type {type(value).__name__} has no public module")


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
    inner = [node for node in ast.walk(body) if isinstance(node, ast.Import | ast.ImportFrom)]
    local |= {(a.asname or a.name).partition(".")[0] for node in inner for a in node.names}
    local |= {n.name for n in ast.walk(body) if isinstance(n, ast.ExceptHandler) and n.name}
    for name in sorted(used - local - set(found)):
        if name in around:
            found[name] = around[name]
        elif not hasattr(builtins, name):
            raise NotAlone(f"{function.__name__} needs {name}, which is undefined")
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
