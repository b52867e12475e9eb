"""Mutants of source code: one number, operator, call or line of a function is changed.

A mutant of a formula is a formula that an author could have printed by mistake. Numbers are doubled
and halved, exponents move by 1/2, a term or a factor is missing, min stands for max, a direction is
reversed. A mutant of an algorithm is made in the same way. Checks of arguments are not changed,
because tests cover these checks.
"""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dpaudit.ledger.sources import nodes_of_sides

MOST = 10
"""Default number of mutants of a function."""

_SWAPPED = {
    "min": "max", "minimum": "maximum", "amin": "amax", "nanmin": "nanmax", "ceil": "floor",
    "argmin": "argmax", "any": "all", "cumsum": "cumprod", "log2": "log", "log10": "log",
    "sum": "max", "mean": "max", "fsum": "max", "median": "max", "union": "intersection",
}  # fmt: skip
_SWAPPED |= {
    "max": "min", "maximum": "minimum", "amax": "amin", "nanmax": "nanmin", "floor": "ceil",
    "argmax": "argmin", "all": "any", "cumprod": "cumsum", "log": "log2",
    "intersection": "union",
}  # fmt: skip
_REMOVED = ("sqrt", "abs", "fabs", "project", "clip", "ceil", "floor", "cumsum", "sorted", "sort")
"""Functions whose call is replaced by its first argument, or by the object of a method."""
_METHODS = ("project",)
"""Methods whose call is replaced by the argument all the same."""
_KEYWORDS = {
    "axis", "dtype", "strict", "keepdims", "copy", "ndmin", "rtol", "atol", "xtol", "maxiter",
    "stacklevel", "initial", "where", "out", "method", "casting", "order", "name", "maxsize",
    "epsabs", "epsrel", "limit", "points", "full_output", "bounds", "width", "key",
}  # fmt: skip
"""Keyword arguments that set how a library computes, not what."""
_UNTOUCHED = {
    "reshape",
    "isinstance",
    "getattr",
    "hasattr",
    "errstate",
    "TypeVar",
    "cast",
    "warn",
    "field",
}
_ROUNDING = 1e-7  # positive numbers below are allowances for rounding


_ATTEMPT = frozenset({
    "extremal", "examples", "draws", "mutant", "mutants", "tolerance", "floor", "survivors",
    "snippet", "cases", "exact", "Interval", "Integer", "Choice", "Array", "note", "consequence",
    "conclude", "argue", "audit", "array", "default_rng", "linspace", "arange", "geomspace",
    "logspace", "range", "seed",
})  # fmt: skip
"""What says where and how an attempt searches, and not what it claims."""


@dataclass(frozen=True)
class SourceMutant:
    """One change of a source file.

    Parameters
    ----------
    file : str
        Path of the file, relative to the project.
    function : str
        Qualified name of the function.
    line, last : int
        First and last line of the code that is changed.
    kind : str
        Kind of change, for example "constant" or "term".
    old, new : str
        The code that is changed, and its replacement.
    column : int
        Byte at which the changed code begins in its line.
    first, end : int
        Lines that are executed if the changed code is used. These are the lines of the changed
        code itself, or of the body of the function for a default value.
    side : str
        For a formula in a check: "right" for the printed side of the inequality, "left" for the
        other side, and "" if the code belongs to no side alone. A value that is assigned to a name
        belongs to the sides that use the name.
    number : int
        Number of the place among all places of the function where this code gets this replacement.
    """

    file: str
    function: str
    line: int
    last: int
    kind: str
    old: str
    new: str
    column: int
    first: int = 0
    end: int = 0
    side: str = ""
    number: int = 1

    @property
    def id(self) -> str:
        """Short name, which does not contain the number of the line."""
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        again = f" (number {self.number})" if self.number > 1 else ""
        return f"{self.file}::{self.function}: {old} -> {new or '(deleted)'}{again}"

    def applied(self, source: str) -> str:
        """Return the source with this change."""
        lines = source.encode().splitlines(keepends=True)
        start = sum(map(len, lines[: self.line - 1])) + self.column
        code, old = source.encode(), self.old.encode()
        if code[start : start + len(old)] != old:
            raise ValueError(f"{self.file}:{self.line} must contain {self.old!r}")
        return (code[:start] + self.new.encode() + code[start + len(old) :]).decode()


def source_mutants(
    source: str, file: str = "", *, most: int = MOST, checks: bool = False
) -> list[SourceMutant]:
    """Return mutants of every function and method of a module, in the order of the lines.

    Parameters
    ----------
    source : str
        Source of the module.
    file : str
        Path of the module, for the mutants.
    most : int
        Largest number of mutants of one function. No line gets a second mutant before all lines
        have one.
    checks : bool
        Whether the module holds checks of statements. Then only functions, and numbers that an
        attempt passes to a function, are changed. Budgets of searches, domains, definitions of
        mutants, and code that only the left side uses are not changed. The attempts of a check
        share its mutants in turns, and the right side of each attempt is chosen first. A check with
        more than `most` attempts gets one mutant for each attempt.
    """
    tree = ast.parse(source)
    guards = {node.name for node, _ in _functions(tree, "") if _is_guard(node)}
    options = _ATTEMPT | _only_in_mutants(tree) if checks else frozenset()
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    found = _Finder(source, file, parents, options | guards, checks)
    functions: dict[str, list[SourceMutant]] = {}
    for node, name in _functions(tree, ""):
        if node.name in guards or node.name in options:
            continue
        own = list(found.of(node, name))
        functions[name] = _chosen(own, node, most) if checks else _spread(own, most)
    return sorted(itertools.chain(*functions.values()), key=lambda m: (m.line, m.column, m.new))


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[ast.FunctionDef, str]]:
    """Yield outermost functions and methods with their qualified names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield child, f"{prefix}{child.name}"
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        elif not isinstance(child, ast.expr):
            yield from _functions(child, prefix)


def _only_in_mutants(tree: ast.Module) -> frozenset[str]:
    """Return the functions that only define the mutants of attempts."""
    inside: set[ast.AST] = set()
    for node in ast.walk(tree):
        values = []
        if isinstance(node, ast.keyword) and node.arg in ("mutant", "exact"):
            values = [node.value]
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            values = [v for k, v in pairs if isinstance(k, ast.Constant) and k.value == "mutant"]
        inside |= {n for value in values for n in ast.walk(value)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    used = {node.id for node in names if node not in inside}
    return frozenset({node.id for node in names if node in inside} - used)


def _formulas(parts: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the functions in a check, and the numbers that its attempts pass to functions."""
    for node in parts:
        if isinstance(node, ast.FunctionDef) or _is_number(node):
            yield node
        elif isinstance(node, ast.keyword):
            if node.arg not in _ATTEMPT:
                yield from _formulas([node.value])
        elif isinstance(node, ast.Call):
            function = node.func
            name = function.id if isinstance(function, ast.Name) else ""
            name = function.attr if isinstance(function, ast.Attribute) else name
            if name not in _ATTEMPT:
                yield from _formulas([function, *node.keywords])
        elif isinstance(node, ast.Dict):
            names = [key.value for key in node.keys if isinstance(key, ast.Constant)]
            if not _ATTEMPT.intersection(names):
                yield from _formulas(node.values)
        elif not isinstance(node, ast.List | ast.Tuple | ast.Subscript):
            yield from _formulas(ast.iter_child_nodes(node))


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _is_guard(function: ast.FunctionDef) -> bool:
    """Return whether a function only refuses bad arguments: it raises, and returns nothing."""
    nodes = list(ast.walk(function))
    returns = any(isinstance(node, ast.Return) and node.value is not None for node in nodes)
    return any(isinstance(node, ast.Raise) for node in nodes) and not returns


def _chosen(
    mutants: Sequence[SourceMutant], function: ast.FunctionDef, most: int
) -> list[SourceMutant]:
    """Choose mutants of formulas in turns over the attempts of a check, right sides first."""
    inner = [node for node in function.body if isinstance(node, ast.FunctionDef)]
    attempts: dict[int, list[SourceMutant]] = {}
    for mutant in mutants:
        if mutant.side != "left":
            place = sum(mutant.line > (node.end_lineno or 0) for node in inner)
            attempts.setdefault(place, []).append(mutant)
    turns = itertools.zip_longest(
        *(
            _spread([m for m in own if m.side == "right"], most)
            + _spread([m for m in own if m.side != "right"], most)
            for own in attempts.values()
        )
    )
    chosen = [mutant for turn in turns for mutant in turn if mutant is not None]
    return chosen[: max(most, len(attempts))]


def _spread(mutants: Sequence[SourceMutant], most: int) -> list[SourceMutant]:
    """Choose mutants in turns over the lines, and over the kinds within a line."""
    lines: dict[int, list[SourceMutant]] = {}
    for mutant in mutants:
        lines.setdefault(mutant.line, []).append(mutant)
    turns = itertools.zip_longest(*(_by_kind(own) for own in lines.values()))
    chosen = [mutant for turn in turns for mutant in turn if mutant is not None]
    if len(lines) > most:  # evenly spaced lines, so that no part of the function is left out
        first = [mutants[0] for mutants in map(_by_kind, lines.values())]
        return [first[i * len(first) // most] for i in range(most)]
    return chosen[:most]


def _by_kind(mutants: Sequence[SourceMutant]) -> list[SourceMutant]:
    kinds: dict[str, list[SourceMutant]] = {}
    for mutant in mutants:
        kinds.setdefault(mutant.kind, []).append(mutant)
    turns = itertools.zip_longest(*kinds.values())
    return [mutant for turn in turns for mutant in turn if mutant is not None]


class _Finder:
    """Finds the changes of one module."""

    def __init__(
        self,
        source: str,
        file: str,
        parents: dict[ast.AST, ast.AST],
        options: frozenset[str],
        checks: bool,
    ) -> None:
        imports = [node for node in parents if isinstance(node, ast.Import | ast.ImportFrom)]
        names = [alias.asname or alias.name for node in imports for alias in node.names]
        self._modules = {name.partition(".")[0] for name in names} | {"self", "cls"}
        self._lines = [line.encode() for line in source.splitlines(keepends=True)]
        self._file, self._parents, self._options, self._checks = file, parents, options, checks
        self._sides: dict[ast.FunctionDef, tuple[set[ast.AST], set[ast.AST]]] = {}
        self._known: set[tuple[int, int, str, str]] = set()
        self._numbers: Counter[tuple[str, str, str]] = Counter()

    def of(self, function: ast.FunctionDef, name: str) -> Iterator[SourceMutant]:
        """Yield all mutants of a function."""
        arguments = function.args
        defaults = [*arguments.defaults, *filter(None, arguments.kw_defaults)]
        body = _without_doc(function.body)
        parts: list[ast.AST] = [*defaults, *body]
        if self._checks and any("statement" in ast.unparse(d) for d in function.decorator_list):
            parts = list(_formulas(parts))
        for part in parts:
            for node, kind, new in self._changes(part):
                old = self._text(node)
                key = (node.lineno, node.col_offset, old, new)
                if old != new and key not in self._known:
                    self._known.add(key)
                    self._numbers[name, old, new] += 1
                    last = node.end_lineno or node.lineno
                    run = (body[0], body[-1]) if part in defaults else (node, node)
                    yield SourceMutant(
                        self._file, name, node.lineno, last, kind, old, new, node.col_offset,
                        run[0].lineno, run[1].end_lineno or last, self._side(node),
                        self._numbers[name, old, new],
                    )  # fmt: skip

    def _side(self, node: ast.AST) -> str:
        """Return to which side of an inequality an expression belongs."""
        inside: ast.AST | None = node
        while inside is not None and not isinstance(inside, ast.FunctionDef):
            inside = self._parents.get(inside)
        if inside is None:
            return ""
        if inside not in self._sides:
            self._sides[inside] = nodes_of_sides(inside)
        left, right = self._sides[inside]
        return "left" if node in left else "right" if node in right else ""

    def _text(self, node: Any) -> str:
        first, last = int(node.lineno) - 1, int(node.end_lineno) - 1
        if first == last:
            return self._lines[first][node.col_offset : node.end_col_offset].decode()
        parts = [self._lines[first][node.col_offset :], *self._lines[first + 1 : last]]
        return b"".join([*parts, self._lines[last][: node.end_col_offset]]).decode()

    def _in(self, node: ast.AST) -> str:
        """Return the text of an expression that can stand in for a larger expression."""
        text = self._text(node)
        simple = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.List)
        return text if isinstance(node, simple) else f"({text})"

    def _changes(self, node: ast.AST) -> Iterator[tuple[Any, str, str]]:
        if self._is_left_out(node):
            return
        yield from self._own(node)
        for child in _inside(node):
            yield from self._changes(child)

    def _is_left_out(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
            return True
        if isinstance(node, ast.Expr):
            return self._is_left_out(node.value)
        if isinstance(node, ast.If) and _only_refuses(node.body) and not node.orelse:
            return True
        if isinstance(node, ast.Call):
            root = self._text(node.func)
            last = root.rpartition(".")[2]
            return last in _UNTOUCHED or last in self._options or "_validate." in root
        if isinstance(node, ast.Dict) and self._checks:
            names = {k.value for k in node.keys if isinstance(k, ast.Constant)}
            return bool(names & self._options)
        return isinstance(node, ast.keyword) and (
            node.arg in _KEYWORDS or node.arg in self._options
        )

    def _own(self, node: ast.AST) -> Iterator[tuple[Any, str, str]]:
        change = getattr(self, f"_{type(node).__name__}", None)
        if change is not None:
            yield from change(node)

    # --- numbers ---

    def _Constant(self, node: ast.Constant) -> Iterator[tuple[Any, str, str]]:
        value, parent = node.value, self._parents[node]
        if isinstance(value, bool):
            if isinstance(parent, ast.keyword | ast.Return | ast.Assign):
                yield node, "switch", str(not value)
            return
        if not isinstance(value, int | float) or 0 < value < _ROUNDING or value > 1e100:
            return
        if _is_power(parent) and node is not next(ast.iter_child_nodes(parent)):
            for exponent in (value + 0.5, value - 0.5):
                yield node, "exponent", f"{exponent:g}"
        elif value == 0 or self._is_index(node):
            yield node, "index" if self._is_index(node) else "constant", f"{value + 1!r}"
        elif isinstance(value, int) and value == 1:
            yield node, "constant", "2"
            yield node, "constant", "0" if self._counts(node) else "0.5"
        else:
            yield node, "constant", repr(2 * value)
            half = value // 2 if isinstance(value, int) and value % 2 == 0 else value / 2
            yield node, "constant", f"{value - 1}" if self._counts(node) else repr(half)

    def _is_index(self, node: ast.AST) -> bool:
        parent = self._parents[node]
        while isinstance(parent, ast.UnaryOp | ast.Tuple | ast.Slice):
            node, parent = parent, self._parents[parent]
        return isinstance(parent, ast.Subscript) and parent.slice is node

    def _counts(self, node: ast.AST) -> bool:
        """Return whether a number counts something, so that it must be an integer."""
        while not isinstance(node, ast.stmt):
            node = self._parents[node]
            if isinstance(node, ast.Call) and self._text(node.func) == "range":
                return True
            if isinstance(node, ast.Call | ast.Subscript):
                return isinstance(node, ast.Subscript)
        return False

    # --- operators ---

    def _BinOp(self, node: ast.BinOp) -> Iterator[tuple[Any, str, str]]:
        left, right = self._in(node.left), self._in(node.right)
        texts = isinstance(node.left, ast.JoinedStr) or isinstance(node.right, ast.JoinedStr)
        if texts or any(isinstance(n, ast.Constant) and isinstance(n.value, str)
                        for n in (node.left, node.right)):  # fmt: skip
            return
        match node.op:
            case ast.Add():
                if not isinstance(node.left, ast.List) and not isinstance(node.right, ast.List):
                    yield node, "term", left
                    yield node, "term", right
            case ast.Sub():
                yield node, "term", left
                yield node, "sign", f"({left} + {right})"
            case ast.Mult():
                yield node, "factor", left
                yield node, "factor", right
            case ast.Div() | ast.FloorDiv() | ast.Mod():
                yield node, "factor", left
            case ast.Pow():
                if not isinstance(node.right, ast.Constant):
                    yield node, "exponent", left
            case ast.BitAnd():
                yield node, "logic", f"({left} | {right})"
            case ast.BitOr():
                yield node, "logic", f"({left} & {right})"

    def _AugAssign(self, node: ast.AugAssign) -> Iterator[tuple[Any, str, str]]:
        yield node, "statement", "pass"
        signs = {ast.Add: "-=", ast.Sub: "+=", ast.Mult: "/="}
        if type(node.op) in signs:
            target, value = self._text(node.target), self._text(node.value)
            yield node, "sign", f"{target} {signs[type(node.op)]} ({value})"

    def _UnaryOp(self, node: ast.UnaryOp) -> Iterator[tuple[Any, str, str]]:
        if isinstance(node.op, ast.USub):
            if not self._is_index(node):
                yield node, "sign", self._in(node.operand)
        elif isinstance(node.op, ast.Not | ast.Invert):
            yield node, "logic", self._in(node.operand)

    def _Compare(self, node: ast.Compare) -> Iterator[tuple[Any, str, str]]:
        reverse = {ast.Lt: ">", ast.LtE: ">=", ast.Gt: "<", ast.GtE: "<=", ast.Eq: "!=",
                   ast.NotEq: "==", ast.In: "not in", ast.NotIn: "in"}  # fmt: skip
        edge = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
        if len(node.ops) != 1 or type(node.ops[0]) not in reverse:
            return
        left, right = self._text(node.left), self._text(node.comparators[0])
        kind = type(node.ops[0])
        yield node, "direction", f"({left} {reverse[kind]} {right})"
        if kind in edge:
            yield node, "edge", f"({left} {edge[kind]} {right})"

    def _BoolOp(self, node: ast.BoolOp) -> Iterator[tuple[Any, str, str]]:
        word = " or " if isinstance(node.op, ast.And) else " and "
        parts = [self._in(value) for value in node.values]
        yield node, "logic", f"({word.join(parts)})"
        for i in range(len(parts)):
            rest = (" or " if word == " and " else " and ").join(parts[:i] + parts[i + 1 :])
            yield node, "hypothesis", f"({rest})"

    # --- calls, branches and statements ---

    def _Call(self, node: ast.Call) -> Iterator[tuple[Any, str, str]]:
        function, text = node.func, self._text(node.func)
        start, dot, name = text.rpartition(".")
        inputs = ", ".join(self._text(part) for part in [*node.args, *node.keywords])
        if name in _SWAPPED and (dot or isinstance(function, ast.Name)):
            other = _SWAPPED[name]
            if start == "math" and other in ("max", "min"):
                start, dot = "", ""
            if not (name in ("log2", "log") and len(node.args) > 1):
                yield node, "function", f"{start}{dot}{other}({inputs})"
        if name in _REMOVED and isinstance(function, ast.Attribute) and self._is_method(function):
            yield node, "call", self._in(function.value)
        elif name in _REMOVED and len(node.args) >= 1:
            yield node, "call", self._in(node.args[0])
        starred = any(isinstance(argument, ast.Starred) for argument in node.args)
        if name in ("max", "min", "maximum", "minimum") and len(node.args) == 2 and not starred:
            for argument in node.args:
                yield node, "clamp", self._in(argument)
        if text == "range":
            first = "" if len(node.args) == 1 else f"{self._text(node.args[0])}, "
            end = node.args[min(1, len(node.args) - 1)]
            yield node, "range", f"range({first}{self._in(end)} - 1)"

    def _is_method(self, function: ast.Attribute) -> bool:
        """Return whether a call is of a method of data, and not of a module or of this object."""
        root: ast.AST = function.value
        while isinstance(root, ast.Attribute):
            root = root.value
        is_module = isinstance(root, ast.Name) and root.id in self._modules
        return not is_module and function.attr not in _METHODS

    def _IfExp(self, node: ast.IfExp) -> Iterator[tuple[Any, str, str]]:
        yield node, "branch", self._in(node.body)
        yield node, "branch", self._in(node.orelse)

    def _If(self, node: ast.If) -> Iterator[tuple[Any, str, str]]:
        yield node.test, "branch", "True"
        yield node.test, "branch", "False"

    def _Subscript(self, node: ast.Subscript) -> Iterator[tuple[Any, str, str]]:
        if isinstance(node.slice, ast.Slice) and isinstance(node.ctx, ast.Load):
            yield node, "slice", self._in(node.value)

    def _Assign(self, node: ast.Assign) -> Iterator[tuple[Any, str, str]]:
        """Delete an assignment that changes an old value."""
        targets = {n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        used = {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
        if "_validate." in self._text(node.value):
            return
        if targets & used or not all(isinstance(t, ast.Name | ast.Tuple) for t in node.targets):
            yield node, "statement", "pass"

    def _Expr(self, node: ast.Expr) -> Iterator[tuple[Any, str, str]]:
        if isinstance(node.value, ast.Call) and not self._checks:
            yield node, "statement", "pass"

    def _Continue(self, node: ast.Continue) -> Iterator[tuple[Any, str, str]]:
        yield node, "statement", "pass"

    def _Break(self, node: ast.Break) -> Iterator[tuple[Any, str, str]]:
        yield node, "statement", "pass"


def _is_power(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node, without annotations, decorators and docstrings."""
    if isinstance(node, ast.FunctionDef):
        yield from [*node.args.defaults, *filter(None, node.args.kw_defaults)]
        yield from _without_doc(node.body)
        for decorator in node.decorator_list:  # constants of an attempt on a nested function
            yield from decorator.keywords if isinstance(decorator, ast.Call) else ()
    elif isinstance(node, ast.AnnAssign):
        yield from filter(None, [node.value])
    elif isinstance(node, ast.Slice):
        yield from filter(None, [node.lower, node.upper])
    elif isinstance(node, ast.Dict):
        yield from node.values
    else:
        yield from ast.iter_child_nodes(node)


def _without_doc(body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    first = body[0]
    is_doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if is_doc else body


def _only_refuses(body: Sequence[ast.stmt]) -> bool:
    """Return whether a branch only raises an error or warns."""
    last = body[-1]
    warns = isinstance(last, ast.Expr) and "warn" in ast.unparse(last)
    return isinstance(last, ast.Raise) or warns
