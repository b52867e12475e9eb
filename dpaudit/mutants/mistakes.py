"""Mistakes that can be made in the code of a mechanism, apart from its noise.

Each mistake replaces one expression. A bound is not applied, or a limit of a user's contribution is
skipped. A scale forgets a factor, a sample or a selection keeps everything, or each query spends
the whole budget. The expressions are found by their form and by the names of the functions, as a
reviewer would find them. So some mistakes are harmless. Only the audit of a mutant says whether the
mutant violates the claim.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpaudit.mutants.treatments import TREATMENTS

CLIPPING, CONTRIBUTION, SENSITIVITY = "clipping", "contribution", "sensitivity"
SAMPLING, SELECTION, BUDGET = "sampling", "selection", "budget"

KINDS = (CLIPPING, CONTRIBUTION, SENSITIVITY, SAMPLING, SELECTION, BUDGET)
"""Kinds of mistakes in code."""

_CLIPS = ("clip", "clamp", "winsor", "project")
_ENDS = ("minimum", "maximum", "fmin", "fmax", "min", "max")
_SUBJECTS = ("a", "x", "arr", "ar", "input", "data", "values", "value")
_DISTINCT = ("unique", "drop_duplicates", "distinct", "set", "frozenset")
_REDUCES = ("sum", "mean", "median", "min", "max", "nansum", "nanmean", "nanmedian", "prod")
_FIRST = ("head", "tail", "limit", "nlargest", "nsmallest")
_GROUPS = ("groupby", "group_by")
_COUNTS_IN_ORDER = ("cumcount", "cum_count", "rank", "row_number", "int_range")
_ALL = 2**31 - 1  # more rows than any data have
_EXPONENTIALS = ("exp", "expm1", "exp2", "softmax", "expit")
_UNIFORM = ("random", "uniform")
_SUBSETS = ("choice", "permutation", "permuted")
_SCALES = ("scale", "sigma")
_BUDGETS = ("epsilon", "eps", "budget", "rho", "mu")
_DEPTH = 3
_LONGEST = 48

_SIGNATURES = {
    name: list(inspect.signature(getattr(np.random.Generator, name)).parameters)[1:]
    for name in TREATMENTS
}


@dataclass(frozen=True, eq=False)
class Mistake:
    """One expression that is replaced.

    Parameters
    ----------
    kind : str
        Kind of mistake, one of `KINDS`.
    line : int
        First line of the expression.
    words : str
        The change in words.
    place : (node, field, index)
        The parent of the expression, the field of the parent, and the index in a list of nodes.
    new : ast.expr
        The replacement.
    """

    kind: str
    line: int
    words: str
    place: tuple[ast.AST, str, int | None] = field(repr=False)
    new: ast.expr = field(repr=False)

    def put(self) -> Callable[[], None]:
        """Replace the expression in its tree, and return a function that restores it."""
        parent, name, index = self.place
        held = getattr(parent, name)
        old = held if index is None else held[index]

        def set_to(node: Any) -> None:
            if index is None:
                setattr(parent, name, node)
            else:
                held[index] = node

        new = self.new if hasattr(self.new, "lineno") else ast.copy_location(self.new, old)
        set_to(ast.fix_missing_locations(new))
        return lambda: set_to(old)


def mistakes(
    functions: Iterable[tuple[ast.AST, types.FunctionType]], *, items: int, user: Any = None
) -> list[Mistake]:
    """Return the mistakes that can be made in some functions, in the order of their lines.

    Parameters
    ----------
    functions : iterable of (node, function)
        Definitions of functions, and the functions themselves.
    items : int
        Number of items of a user. A scale that forgets this number is a mistake if it exceeds 2.
    user : object, optional
        Name of the column that names the user, for tables.
    """
    finders = [_Finder(node, function, items, user) for node, function in functions]
    asked = dict.fromkeys((one.function.__name__, name) for one in finders for name in one.passed)
    known = dict.fromkeys(wanted for one in finders for wanted in one.take_passed(asked))
    for one in finders:
        one.leave({name for function, name in known if function == one.function.__name__})
    found: dict[tuple[str, int, str], Mistake] = {}
    for one in finders:
        for mistake in one.all():
            parent, name, index = mistake.place
            new = ast.unparse(mistake.new)
            found.setdefault((f"{id(parent)} {name} {index}", mistake.line, new), mistake)
    return sorted(found.values(), key=lambda mistake: (mistake.line, mistake.kind, mistake.words))


class _Finder:
    """The mistakes of one function."""

    def __init__(self, node: ast.AST, function: Any, items: int, user: Any) -> None:
        self.node, self.function, self.items, self.user = node, function, items, user
        self.places: dict[ast.AST, tuple[ast.AST, str, int | None]] = {}
        self.nodes: list[ast.AST] = []
        self._enter(node, ["body"])  # defaults and annotations are evaluated before any call
        self.assigned: dict[str, list[ast.expr]] = {}
        for one in self.nodes:
            for target, value in _assignments(one):
                for name in _names([target]):
                    self.assigned.setdefault(name, []).append(value)
        code = function.__code__
        self.locals = {*code.co_varnames, *code.co_cellvars, *self.assigned}
        self.arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self.noisy: set[str] = set()
        for _ in range(_DEPTH):
            self.noisy |= {
                name
                for name, values in self.assigned.items()
                if any(map(self.is_noisy, values)) and name not in self.noisy
            }
        self.amounts = list(self._amounts())
        self.passed = [
            one.id for one in self.amounts if isinstance(one, ast.Name) and one.id in self.arguments
        ]

    def _enter(self, node: ast.AST, fields: Iterable[str] | None = None) -> None:
        self.nodes.append(node)
        for name in node._fields if fields is None else fields:
            value = getattr(node, name, None)
            for index, child in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(child, ast.AST):
                    self.places[child] = node, name, index if isinstance(value, list) else None
                    self._enter(child)

    # --- what is known about an expression ---

    def value_of(self, node: ast.AST) -> Any:
        """Return the module, class or function that a name refers to, or None for other values."""
        if isinstance(node, ast.Attribute):
            owner = self.value_of(node.value)
            found = _attribute(owner, node.attr) if _is_space(owner) else None
        elif isinstance(node, ast.Name) and node.id not in self.locals:
            free = zip(
                self.function.__code__.co_freevars, self.function.__closure__ or (), strict=True
            )
            closed = dict(free)
            try:
                found = closed[node.id].cell_contents
            except (KeyError, ValueError):
                space = self.function.__globals__
                found = space.get(node.id, getattr(builtins, node.id, None))
        else:
            return None
        return found if _is_space(found) or callable(found) else None

    def is_draw(self, node: ast.AST, methods: Iterable[str] = TREATMENTS) -> bool:
        """Whether an expression calls a method of a generator."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return False
        owner = self.value_of(node.func.value)
        if owner is not None and "random" not in str(_attribute(owner, "__name__")):
            return False
        return node.func.attr in methods

    def is_noisy(self, node: ast.AST) -> bool:
        """Whether an expression is computed from random draws, as far as its names tell."""
        return any(
            self.is_draw(one)
            or (isinstance(one, ast.Name) and (one.id in self.noisy or one.id == "rng"))
            for one in ast.walk(node)
        )

    def is_number(self, node: ast.AST) -> bool:
        """Whether an expression is a number that does not depend on local values."""
        return _is_constant(node) or (
            isinstance(node, ast.Name)
            and node.id not in self.locals
            and isinstance(self.function.__globals__.get(node.id), int | float)
        )

    def source_of(self, node: ast.expr) -> ast.expr:
        """Return the expression that a local name stands for, if it is assigned once."""
        for _ in range(_DEPTH):
            values = self.assigned.get(node.id, []) if isinstance(node, ast.Name) else []
            if len(values) != 1 or values[0] not in self.places:
                break
            node = values[0]
        return node

    def sources_of(self, node: ast.expr) -> list[ast.AST]:
        """Return all parts of an expression and of the expressions that its names stand for."""
        parts = dict.fromkeys(ast.walk(node))
        for _ in range(_DEPTH):
            names = dict.fromkeys(one.id for one in parts if isinstance(one, ast.Name))
            for name in names:
                for value in self.assigned.get(name, []):
                    parts |= dict.fromkeys(ast.walk(value))
        return list(parts)

    def _amounts(self) -> Iterator[ast.expr]:
        """Yield the expressions that set the scale of a noise."""
        for node in self.nodes:
            if not isinstance(node, ast.Call) or not self.is_draw(node):
                continue
            method = node.func.attr  # type: ignore[attr-defined]
            name = TREATMENTS[method].amount
            if name in _SCALES:
                found = _argument(node, name, _SIGNATURES[method].index(name))
                if found is not None:
                    yield self.source_of(found)
                    continue
            parent = self.places[node][0]
            if TREATMENTS[method].is_noise and isinstance(parent, ast.BinOp):
                other = parent.right if parent.left is node else parent.left
                if isinstance(parent.op, ast.Mult):
                    yield self.source_of(other)

    def take_passed(self, asked: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Take over scales that are passed to parameters of other functions; yield these."""
        for node in self.nodes:
            if not isinstance(node, ast.Call):
                continue
            called = self.value_of(node.func)
            if not isinstance(called, types.FunctionType):
                continue
            names = called.__code__.co_varnames
            for name, parameter in asked:
                if called.__name__ == name and parameter in names:
                    amount = _argument(node, parameter, names.index(parameter))
                    if amount is not None:
                        self.amounts.append(self.source_of(amount))
                        yield name, parameter

    def leave(self, parameters: set[str]) -> None:
        """Leave the scales in parameters to the functions that pass them."""
        self.amounts = [
            one
            for one in self.amounts
            if not (isinstance(one, ast.Name) and one.id in self.passed and one.id in parameters)
        ]

    # --- mistakes ---

    def all(self) -> Iterator[Mistake]:
        """Yield the mistakes of this function."""
        for amount in dict.fromkeys(self.amounts):
            yield from self._less(amount)
        inside = {part for amount in self.amounts for part in ast.walk(amount)}
        loops = [one.test for one in self.nodes if isinstance(one, ast.While)]
        endless = {part for test in loops for part in ast.walk(test)}  # a loop might never end
        for node in self.nodes:
            if node in endless or (node in inside and not isinstance(node, ast.Call)):
                continue
            yield from self._clipping(node)
            yield from self._contribution(node)
            yield from self._sampling(node)
            yield from self._selection(node)
            yield from self._divisor(node)
            yield from self._exponential(node)
        for node in self.nodes:
            is_budget = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
            if is_budget and _last(node.left).lower().startswith(_BUDGETS):  # type: ignore[attr-defined]
                yield self._made(BUDGET, node, node.left, f"{_text(node)} is not divided")  # type: ignore[attr-defined]

    def _made(self, kind: str, node: ast.AST, new: ast.expr, words: str) -> Mistake:
        return Mistake(kind, node.lineno, words, self.places[node], new)  # type: ignore[attr-defined]

    def _less(self, amount: ast.expr) -> Iterator[Mistake]:
        """Divide a scale, and leave out each factor that is no small number."""
        if amount not in self.places:
            return
        for factor, said in self._factors():
            new = ast.BinOp(amount, ast.Div(), factor)
            words = f"{_text(amount)} divided by {said}"
            yield self._made(SENSITIVITY, amount, new, words)
        factors = list(_factors(amount))
        for factor in factors if len(factors) > 1 else ():
            if self._is_count(factor) and factor in self.places:
                words = f"{_text(factor)} left out of {_text(amount)}"
                yield self._made(SENSITIVITY, factor, ast.Constant(1.0), words)

    def _is_count(self, factor: ast.expr) -> bool:
        """Whether a factor may be a number of items, queries or steps."""
        if _is_constant(factor):
            value = ast.literal_eval(factor)
        elif isinstance(factor, ast.Name) and self.is_number(factor):
            value = self.function.__globals__[factor.id]
        else:
            return True
        return bool(value % 1 == 0 and value > 0 and value not in (1, 2, self.items))

    def _factors(self) -> list[tuple[ast.expr, str]]:
        """Return the factors of a mistake: 2, and the number of items of a user."""
        found: list[tuple[ast.expr, str]] = [(ast.Constant(2), "2")]
        if self.items > 2:
            found.append((ast.Constant(self.items), f"{self.items}, the items of a user"))
        return found

    def _clipping(self, node: ast.AST) -> Iterator[Mistake]:
        if isinstance(node, ast.IfExp) or _is_call(node, "where"):
            yield from self._chosen_end(node)
        if not isinstance(node, ast.Call):
            return
        name = _last(node.func).lower()
        if any(word in name for word in _CLIPS):
            subject = self._subject(node)
            if subject is not None:
                yield self._made(
                    CLIPPING, node, _first_of(node, subject), f"{_text(node)} returns its argument"
                )
        elif name in _ENDS and len(node.args) == 2 and not node.keywords:
            for index, other in (0, 1), (1, 0):
                if not self.is_number(node.args[index]) or not self.is_number(node.args[other]):
                    kept = node.args[index]
                    new = _first_of(node, kept)
                    words = f"{_text(node)} is always {_text(kept)}"
                    yield self._made(CLIPPING, node, new, words)

    def _chosen_end(self, node: ast.AST) -> Iterator[Mistake]:
        """Keep one end of a choice that clips, such as ``np.where(x > c, c, x)``."""
        if isinstance(node, ast.IfExp):
            test, ends = node.test, [node.body, node.orelse]
        else:
            args = node.args  # type: ignore[attr-defined]
            if len(args) != 3:
                return
            test, ends = args[0], args[1:]
        if not isinstance(test, ast.Compare) or len(test.comparators) != 1:
            return
        compared = {ast.dump(test.left), ast.dump(test.comparators[0])}
        if compared == {ast.dump(end) for end in ends}:
            for end in ends:
                if not self.is_number(end):
                    words = f"{_text(node)} is always {_text(end)}"
                    yield self._made(CLIPPING, node, end, words)

    def _subject(self, call: ast.Call) -> ast.expr | None:
        """Return the value that a call changes: its first argument, or the object of a method."""
        if isinstance(call.func, ast.Attribute):
            owner = call.func.value
            is_method = self.value_of(owner) is None
            if is_method and not (isinstance(owner, ast.Name) and owner.id in ("self", "cls")):
                return owner
        if call.args:
            return None if isinstance(call.args[0], ast.Starred) else call.args[0]
        return next((k.value for k in call.keywords if k.arg in _SUBJECTS), None)

    def _contribution(self, node: ast.AST) -> Iterator[Mistake]:
        def made(new: ast.expr, words: str, at: ast.AST = node) -> Mistake:
            return self._made(CONTRIBUTION, at, new, words)

        if isinstance(node, ast.For) and not node.orelse:
            for one in ast.walk(node):
                if isinstance(one, ast.If) and _only_leaves(one.body) and not one.orelse:
                    never = ast.BoolOp(ast.And(), [one.test, ast.Constant(False)])
                    yield made(never, f"the condition {_text(one.test)} never holds", one.test)
        if isinstance(node, ast.SetComp):
            yield made(ast.ListComp(node.elt, node.generators), f"{_text(node)} keeps repetitions")
        if isinstance(node, ast.Subscript):
            yield from self._whole_slice(node)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
            if any(_last(one.func) in _COUNTS_IN_ORDER for one in calls):
                yield made(_always(node), f"{_text(node)} always holds")
        if not isinstance(node, ast.Call):
            return
        name, subject = _last(node.func), self._subject(node)
        if subject is None or self.is_noisy(subject):
            return
        if name in _DISTINCT and not any("return" in (k.arg or "") for k in node.keywords):
            new: ast.expr = subject
            if name in ("set", "frozenset"):
                new = ast.Call(ast.Name("list", ast.Load()), [subject], [])
            elif self.value_of(node.func) is np.unique and not node.keywords:
                raveled = ast.Attribute(node.func.value, "ravel", ast.Load())  # type: ignore[attr-defined]
                new = ast.Call(raveled, [subject], [])
            yield made(new, f"{_text(node)} keeps repetitions")
        elif name in _FIRST:
            yield made(_all_of(node, subject), f"{_text(node)} keeps everything")
        elif name in _GROUPS and self._names_the_user(node):
            yield made(_by_rows(node, subject, name), f"{_text(node)} takes each row for a user")
        elif _axis(node) in (1, -1):
            if name == "any" and isinstance(node.func, ast.Attribute):
                counts = ast.Attribute(node.func.value, "sum", ast.Load())
                new = ast.Call(counts, node.args, node.keywords)
                yield made(new, f"{_text(node)} counts every item")
            elif name in _REDUCES and not any(k.arg == "keepdims" for k in node.keywords):
                yield made(subject, f"{_text(node)} takes each item for a user")

    def _whole_slice(self, node: ast.Subscript) -> Iterator[Mistake]:
        """Leave out the limit of a slice, such as ``[:3]``."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for part in parts:
            is_limit = isinstance(part, ast.Slice) and part.lower is part.step is None
            if not is_limit or part.upper is None or isinstance(part.upper, ast.UnaryOp):  # type: ignore[attr-defined]
                continue
            if not isinstance(node.ctx, ast.Load) or _last(node.value) == "shape":
                continue
            drawn = any(self.is_draw(one) for one in self.sources_of(node.value))
            kind = SAMPLING if drawn else CONTRIBUTION
            words = f"{_text(node)} keeps everything"
            yield self._made(kind, part, ast.Slice(None, None, None), words)

    def _names_the_user(self, call: ast.Call) -> bool:
        keys = [*call.args, *(k.value for k in call.keywords)]
        words = [
            one.value for key in keys for one in ast.walk(key) if isinstance(one, ast.Constant)
        ]
        return self.user in words or not any(isinstance(word, str) for word in words)

    def _sampling(self, node: ast.AST) -> Iterator[Mistake]:
        if isinstance(node, ast.Compare) and self._is_coin(node):
            yield self._made(SAMPLING, node, _always(node), f"{_text(node)} always holds")
        if not isinstance(node, ast.Call):
            return
        subject = self._subject(node)
        if _last(node.func) == "sample" and subject is not None:
            yield self._made(SAMPLING, node, subject, f"{_text(node)} keeps everything")
        if self.is_draw(node, ("choice",)) and node.args:
            size, p = _argument(node, "size", 1), _argument(node, "p", 3)
            if size is not None and p is None and _argument(node, "replace", 2) is not None:
                whole = ast.Call(
                    ast.Attribute(node.func.value, "permutation", ast.Load()),  # type: ignore[attr-defined]
                    [node.args[0]],
                    [],
                )
                yield self._made(SAMPLING, node, whole, f"{_text(node)} keeps everything")

    def _is_coin(self, node: ast.Compare) -> bool:
        """Whether a comparison is a coin whose bias does not come from an exponential."""
        sides = [node.left, *node.comparators]
        if len(sides) != 2 or isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn):
            return False
        coins = [self.is_draw(self.source_of(side), _UNIFORM) for side in sides]
        if not any(coins):
            return False
        parts = self.sources_of(sides[1 - coins.index(True)])
        calls = [one for one in parts if isinstance(one, ast.Call)]
        return not any(_last(one.func) in _EXPONENTIALS for one in calls)

    def _selection(self, node: ast.AST) -> Iterator[Mistake]:
        orders = ast.Lt | ast.LtE | ast.Gt | ast.GtE
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            return
        if isinstance(node.ops[0], orders) and self.is_noisy(node):
            sides = (node.left, node.comparators[0])
            if not any(self.is_draw(self.source_of(side), _UNIFORM) for side in sides):
                yield self._made(SELECTION, node, _always(node), f"{_text(node)} always holds")

    def _divisor(self, node: ast.AST) -> Iterator[Mistake]:
        if not isinstance(node, ast.BinOp | ast.AugAssign) or not isinstance(node.op, ast.Div):
            return
        value, divisor = (
            (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        )
        if self.is_noisy(value) or divisor not in self.places:
            return
        for factor, said in self._factors():
            new = ast.BinOp(divisor, ast.Div(), factor)
            words = f"the divisor {_text(divisor)} divided by {said}"
            yield self._made(SENSITIVITY, divisor, new, words)

    def _exponential(self, node: ast.AST) -> Iterator[Mistake]:
        """Multiply the exponent of probabilities that a selection uses."""
        if not isinstance(node, ast.Call) or not self.is_draw(node):
            return
        name = next((n for n in ("p", "pvals") if n in _SIGNATURES[_last(node.func)]), None)
        if name is None:
            return
        chances = _argument(node, name, _SIGNATURES[_last(node.func)].index(name))
        for part in self.sources_of(chances) if chances is not None else ():
            if isinstance(part, ast.Call) and _last(part.func) in _EXPONENTIALS and part.args:
                power = part.args[0]
                if power in self.places:
                    for factor, said in self._factors():
                        new = ast.BinOp(power, ast.Mult(), factor)
                        words = f"the exponent {_text(power)} times {said}"
                        yield self._made(SENSITIVITY, power, new, words)


# --- expressions ---


def _attribute(owner: Any, name: str) -> Any:
    """Return an attribute, or None if it is missing or cannot be computed."""
    try:
        return getattr(owner, name, None)
    except Exception:  # a module may import others when an attribute is read
        return None


def _is_space(value: Any) -> bool:
    return isinstance(value, types.ModuleType | type)


def _is_constant(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_constant(node.operand)
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _is_call(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and _last(node.func) == name


def _last(node: ast.AST) -> str:
    """Return the last part of a dotted name, or ""."""
    return getattr(node, "attr", None) or getattr(node, "id", None) or ""


def _assignments(node: ast.AST) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Yield the targets of a statement with their values."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            both = (target, node.value)
            if all(isinstance(one, ast.Tuple | ast.List) for one in both):
                parts = list(zip(*(one.elts for one in both), strict=False))  # type: ignore[attr-defined]
                if not any(isinstance(one, ast.Starred) for pair in parts for one in pair):
                    yield from parts
                    continue
            yield both
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value:
        yield node.target, node.value


def _names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        yield from (one.id for one in ast.walk(node) if isinstance(one, ast.Name))


def _text(node: ast.AST) -> str:
    """Return the code of an expression, shortened."""
    words = ast.unparse(node)
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 3]}..."


def _argument(call: ast.Call, name: str, at: int) -> ast.expr | None:
    """Return an argument of a call by name or position; None if it is missing or unpacked."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if at < len(call.args) and not any(isinstance(one, ast.Starred) for one in call.args):
        return call.args[at]
    return None


def _axis(call: ast.Call) -> int | None:
    """Return the axis of a reduction, if it is a number."""
    axis = next((k.value for k in call.keywords if k.arg == "axis"), None)
    if axis is None and call.args:
        axis = call.args[-1]
    if isinstance(axis, ast.UnaryOp) and isinstance(axis.op, ast.USub):
        held = getattr(axis.operand, "value", None)
        return -held if type(held) is int else None
    held = getattr(axis, "value", None)
    return held if type(held) is int else None


def _factors(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the factors of a product, without its divisors."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from _factors(node.left)
        yield from _factors(node.right)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        yield from _factors(node.left)
    else:
        yield node


def _first_of(call: ast.Call, kept: ast.expr) -> ast.expr:
    """Return one argument, after all arguments were evaluated in order, because they may draw."""
    parts = [*call.args, *(k.value for k in call.keywords)]
    parts = [one.value if isinstance(one, ast.Starred) else one for one in parts]
    if kept not in parts:  # the object of a method comes before the arguments
        parts = [kept, *parts]
    at = ast.Constant(parts.index(kept))
    return ast.Subscript(ast.Tuple(parts, ast.Load()), at, ast.Load())


def _all_of(call: ast.Call, subject: ast.expr) -> ast.expr:
    """Return a call such as ``rows.head(3)`` without its limit, also for groups of rows."""
    if not isinstance(call.func, ast.Attribute) or call.func.value is not subject:
        return _first_of(call, subject)

    def unlimited(limit: ast.expr) -> ast.expr:
        both = ast.Tuple([limit, ast.Constant(_ALL)], ast.Load())  # the limit may draw
        return ast.Subscript(both, ast.Constant(1), ast.Load())

    args, keywords = list(call.args), list(call.keywords)
    if args:
        args[0] = unlimited(args[0])
    elif keywords:
        keywords[0] = ast.keyword(keywords[0].arg, unlimited(keywords[0].value))
    else:
        args = [ast.Constant(_ALL)]
    return ast.Call(call.func, args, keywords)


def _always(test: ast.expr) -> ast.expr:
    """Return a condition that holds in the same shape as a test."""
    return ast.BinOp(test, ast.BitOr(), ast.Constant(True))


def _only_leaves(body: list[ast.stmt]) -> bool:
    return len(body) == 1 and isinstance(body[0], ast.Continue | ast.Break)


def _by_rows(call: ast.Call, table: ast.expr, name: str) -> ast.expr:
    """Return a group-by call in which each row is a group."""
    if name == "group_by":
        index = "dpaudit row"
        numbered = ast.Attribute(table, "with_row_index", ast.Load())
        table = ast.Call(numbered, [ast.Constant(index)], [])
        return ast.Call(ast.Attribute(table, name, ast.Load()), [ast.Constant(index)], [])
    length = ast.Call(ast.Name("len", ast.Load()), [table], [])
    rows = ast.Call(ast.Name("range", ast.Load()), [length], [])
    keys = ast.Call(ast.Name("list", ast.Load()), [rows], [])
    kept = [k for k in call.keywords if k.arg not in ("by", "level")]
    return ast.Call(ast.Attribute(table, name, ast.Load()), [keys], kept)
