"""Mutants of the code of a mechanism: one expression is changed while the mechanism runs.

No file changes. The changed definition is compiled, and the functions get its code for the duration
of each call. Only the mechanism's own functions are changed, and not those of libraries. All other
callers of these functions in this process see the change, too, as long as the call lasts. So
:func:`of_code` runs each mutant in a forked process, and so does an audit.
"""

from __future__ import annotations
import __future__

import ast
import functools
import gc
import itertools
import linecache
import math
import sys
import types
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit._files import code_name
from dpaudit.data import handed
from dpaudit.errors import MechanismError
from dpaudit.mechanisms import (
    AdditiveNoise,
    ChildError,
    Composition,
    ExactMechanism,
    Watch,
    as_array,
    generator,
    in_child,
    is_seeded,
    mechanism_name,
    same_draws,
)
from dpaudit.mutants.code import Change, changed_by
from dpaudit.mutants.mistakes import Mistake, mistakes
from dpaudit.mutants.noise import Mutant
from dpaudit.mutants.recorder import is_own
from dpaudit.mutants.source import code_of, package_of
from dpaudit.neighbors import NeighborPair

Array = NDArray[Any]

NO_CHANGE = "it changed no output of the trial draws"

_MADE_BY_DATACLASS, _MADE_BY_NAMEDTUPLE = "__create_fn__", "namedtuple_"

_FUTURE = functools.reduce(
    int.__or__, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)


@dataclass(frozen=True, eq=False)
class CodeMutants:
    """The mutants of a mechanism's code.

    Parameters
    ----------
    mutants : tuple of Mutant
        The mutants. Mutants of all kinds come first, before the second mutant of any kind.
    unseen : str
        Why some code has no mutants; empty if all of it was read.
    left_out : int
        Number of further mistakes, which `most` left out.
    caches : tuple, optional
        Caches that the mechanism may have filled. They hide what a mutant returns: `forget` them.
    """

    mutants: tuple[Mutant, ...]
    unseen: str = ""
    left_out: int = 0
    caches: tuple[Any, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        """Return one line for each mutant."""
        lines = [f"  {m.name}" + f" ({m.note})" * bool(m.note) for m in self.mutants]
        if self.left_out:
            lines.append(f"  and {self.left_out} more")
        if self.unseen:
            lines.append(f"  not all of its code gives mutants: {self.unseen}")
        return "\n".join(lines) or "  no line of its code gives a mutant"


def of_code(
    mechanism: Any,
    pairs: Iterable[NeighborPair],
    *,
    seed: int,
    size: int = 32,
    most: int | None = None,
    watch: Watch | None = None,
    limit: float = 60.0,
) -> CodeMutants:
    """Return the mutants of a mechanism's code.

    A mutant changes the functions of this process while it is called. Do not call it while another
    thread calls the same functions. Functions that keep values between calls may keep a value of
    the mutant.

    Parameters
    ----------
    mechanism : callable, AdditiveNoise or ExactMechanism
        Mechanism that is run to find the functions that it executes.
    pairs : iterable of NeighborPair
        Pairs on which the mechanism and its mutants are run. A mutant whose draws equal the draws
        of the mechanism on all of them has a note, and need not be audited.
    seed : int
        Seed of the generators of these runs.
    size : int, optional
        Number of draws of each run. The default is 32.
    most : int, optional
        Largest number of mutants of each kind, chosen evenly from all lines. The default is all.
    watch : Watch, optional
        Time limits of the calls.
    limit : float, optional
        Seconds after which the process that runs a mutant is killed. The default is 60.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import NeighborPair
    >>> def noisy_sum(data, size, *, rng):
    ...     return np.clip(data, 0, 1).sum() + rng.laplace(scale=1.0, size=size)
    >>> pair = NeighborPair(np.array([[0.0], [5.0]]), np.array([[0.0], [-5.0]]))
    >>> print(of_code(noisy_sum, [pair], seed=0))  # doctest: +ELLIPSIS
      clipping: np.clip(data, 0, 1) returns its argument, line 2 of ...
      sensitivity: 1.0 divided by 2, line 2 of ...
    """
    if not isinstance(mechanism, ExactMechanism):
        _validate.function("a function f(data, size, *, rng)", mechanism=mechanism)
    held = _validate.items("a list of pairs, at least one", pairs=pairs)
    for pair in held:
        _validate.instance(NeighborPair, "a NeighborPair", pairs=pair)
    seed = _validate.seed(seed=seed)
    size = _validate.integer(1, size=size)
    most = None if most is None else _validate.integer(1, most=most)
    limit = _validate.positive(limit=limit)
    if watch is not None:
        _validate.instance(Watch, "a Watch or None", watch=watch)
    code = code_of(mechanism)
    if not is_seeded(mechanism):
        return CodeMutants((), "it does not draw from rng")
    if code is not None and not is_own(code):
        return CodeMutants((), "it is code of a library")
    functions, caches = _functions_and_caches()
    trial = _Trial(mechanism, held, seed, size, watch or Watch(), caches)
    try:
        before, ids, repeats = in_child(trial.of_mechanism, limit=limit)
    except ChildError as error:
        return CodeMutants((), f"the mechanism could not be run in another process: {error}")
    if all(draws is None for draws in before):
        return CodeMutants((), "the mechanism failed on all of these data")
    source = _Source(_with_codes(functions, ids))
    found = mistakes(source.definitions, items=max(map(_items, held)), user=held[0].by)
    chosen = _chosen(found, most)
    edits = [(mistake, source.edit(mistake)) for mistake in chosen]
    made = [
        _mutant(mechanism, mistake.kind, edit, trial, (before, repeats), limit)
        for mistake, edit in edits
        if edit is not None
    ]
    mutants = tuple(_numbered(_by_turns(made)))
    return CodeMutants(mutants, source.unseen, len(found) - len(chosen), tuple(caches))


def _chosen(found: Sequence[Mistake], most: int | None) -> list[Mistake]:
    """Return at most so many mistakes of each kind, spread evenly, in order."""
    if most is None:
        return list(found)
    chosen: set[int] = set()
    for kind in dict.fromkeys(mistake.kind for mistake in found):
        places = [at for at, mistake in enumerate(found) if mistake.kind == kind]
        count = min(most, len(places))
        chosen |= {places[at * len(places) // count] for at in range(count)}
    return [mistake for at, mistake in enumerate(found) if at in chosen]


def _numbered(mutants: Iterable[Mutant]) -> Iterator[Mutant]:
    """Give each mutant another name."""
    seen: Counter[str] = Counter()
    for mutant in mutants:
        seen[mutant.name] += 1
        count = seen[mutant.name]
        yield mutant if count == 1 else replace(mutant, name=f"{mutant.name} #{count}")


def _items(pair: NeighborPair) -> int:
    """Return the largest number of items of the differing user; 1 if that is unknown."""
    if not pair.relation.is_of_users or pair.user is None:
        return 1
    found = [pair.form.items(side, pair.user) for side in (pair.left, pair.right)]
    return max([1, *(len(items) for items in found if items)])


def _by_turns(made: Sequence[Mutant]) -> Iterator[Mutant]:
    """Yield the first mutant of each kind, then the second of each kind, and so on."""
    kinds = dict.fromkeys(mutant.kind for mutant in made)
    by_kind = [[mutant for mutant in made if mutant.kind == kind] for kind in kinds]
    for round_ in itertools.zip_longest(*by_kind):
        yield from (mutant for mutant in round_ if mutant is not None)


def _mutant(
    mechanism: Any,
    kind: str,
    edit: Edit,
    trial: _Trial,
    known: tuple[list[Any], bool],
    limit: float,
) -> Mutant:
    changed = Change(edit.words, lambda inner: changed_by(edit, inner))(mechanism)
    try:
        note, best = in_child(lambda: trial.compared(changed, *known), limit=limit)
    except ChildError as error:
        note, best = f"it could not be run: {error}", 0
    return Mutant(edit.words, changed, kind=kind, note=note, pair=trial.pairs[best])


def _distance(left: Any, right: Any) -> float:
    """Return how far apart the draws of two sides are, in units of their spread."""
    if left is None or right is None or left.shape != right.shape or not left.size:
        return 0.0
    if left.dtype.kind not in "biuf":
        return 0.0
    sides = [np.nan_to_num(side.reshape(len(side), -1).astype(float)) for side in (left, right)]
    spread = np.std(sides[0], axis=0) + np.std(sides[1], axis=0) + 1e-9
    moved = (np.mean(sides[0], axis=0) - np.mean(sides[1], axis=0)) / spread
    # Chance alone moves each coordinate by 1 / (2 n) on average, squared.
    return float(np.sum(moved**2 - 1 / (2 * len(left))))


@dataclass(frozen=True, eq=False)
class _Trial:
    """A few draws on the left and the right side of each pair, always with the same seeds."""

    mechanism: Any
    pairs: Sequence[NeighborPair]
    seed: int
    size: int
    watch: Watch
    caches: Sequence[Any]

    def call(self, mechanism: Any, at: int) -> Any:
        """Return the draws on one side of a pair, or its probabilities or centres."""
        pair, rng = self.pairs[at // 2], generator(self.seed, "code", at)
        data = handed(pair.right if at % 2 else pair.left)
        name = mechanism_name(mechanism)
        try:
            with self.watch.call(name):
                if isinstance(mechanism, ExactMechanism):
                    return np.asarray(mechanism.pmf(data))[None]
                if isinstance(mechanism, Composition):
                    return mechanism.values(data)[None]
                if isinstance(mechanism, AdditiveNoise):
                    if not mechanism.is_random:
                        return np.asarray(mechanism.centers(data))[None]
                    return np.asarray(mechanism.centers(data, self.size, rng=rng))
                made = mechanism(data, self.size, rng=rng)
                return made if isinstance(made, np.ndarray) else as_array(made)
        except MechanismError:
            raise
        except BaseException as error:
            if self.watch.interrupted or not isinstance(error, Exception):
                raise
            raise MechanismError(f"{name} raised {type(error).__name__}: {error}") from error

    def draws(self, mechanism: Any, known: Sequence[Any]) -> list[Any]:
        """Return the draws on all sides on which the draws of the mechanism are known."""
        return [None if d is None else self.call(mechanism, at) for at, d in enumerate(known)]

    def of_mechanism(self) -> tuple[list[Any], list[int], bool]:
        """Return the draws of the mechanism, None where it fails, and the code it executes.

        Code of installed packages counts only if the mechanism belongs to the same package. Codes
        are given by their identity, which a forked process shares with its parent. The last value
        says whether the mechanism draws the same again.
        """
        forget(self.caches)  # the code behind a filled cache would not be executed
        code = code_of(self.mechanism)
        package = "own" if code is None else package_of(code)
        found: dict[int, None] = {}

        def enter(frame: types.FrameType, event: str, _: Any) -> None:
            if event == "call" and is_own(frame.f_code) and package_of(frame.f_code) == package:
                found[id(frame.f_code)] = None

        drawn: list[Any] = []
        sys.setprofile(enter)
        for at in range(2 * len(self.pairs)):
            try:
                drawn.append(self.call(self.mechanism, at))
            except MechanismError:
                drawn.append(None)
        sys.setprofile(None)
        repeats = is_seeded(self.mechanism) and _same(drawn, self.draws(self.mechanism, drawn))
        return drawn, list(found), repeats

    def compared(self, mutant: Any, before: list[Any], repeats: bool) -> tuple[str, int]:
        """Return why a mutant need not be audited, or "", and the pair where it differs most."""
        forget(self.caches)
        try:
            after = self.draws(mutant, before)
        except MechanismError as error:
            return f"the changed code raises {type(error.__cause__ or error).__name__}", 0
        scores = []
        for at in range(0, len(before), 2):
            both = slice(at, at + 2)
            is_same = repeats and _same(before[both], after[both])
            scores.append(-math.inf if is_same else _distance(*after[both]))
        best = max(range(len(scores)), key=scores.__getitem__)
        return NO_CHANGE if scores[best] == -math.inf else "", best


_CACHE = type(functools.lru_cache(maxsize=1)(lambda: None))


def _functions_and_caches() -> tuple[list[types.FunctionType], list[Any]]:
    """Return all functions and all caches of results of this process.

    Only the parent searches. A search in a forked process writes to every object, which copies the
    memory of the parent.
    """
    kinds = (types.FunctionType, _CACHE)
    found = [one for one in gc.get_objects() if type(one) in kinds]
    functions = [one for one in found if type(one) is types.FunctionType]
    return functions, [one for one in found if type(one) is _CACHE]


def forget(caches: Iterable[Any]) -> None:
    """Clear caches of results, which would hide what changed code returns."""
    for one in caches:
        one.cache_clear()


def _same(before: list[Any], after: list[Any]) -> bool:
    return all(
        (a is None and b is None)
        or (a is not None and b is not None and a.shape == b.shape and same_draws(a, b))
        for a, b in zip(before, after, strict=True)
    )


def _with_codes(
    functions: Iterable[types.FunctionType], ids: Sequence[int]
) -> list[types.FunctionType]:
    """Return the functions with some codes, in the order of the codes."""
    order = {one: at for at, one in enumerate(ids)}
    found = [one for one in functions if id(one.__code__) in order]
    return sorted(found, key=lambda one: order[id(one.__code__)])


# --- change code ---


@dataclass(eq=False)
class Edit:
    """Code that some functions get during calls, which is undone after each call.

    Parameters
    ----------
    words : str
        The change in words.
    codes : list of (function, code)
        The functions and their changed code.
    """

    words: str
    codes: list[tuple[types.FunctionType, types.CodeType]]
    calls: int = 0

    def __post_init__(self) -> None:
        self.originals = [(function, function.__code__) for function, _ in self.codes]

    def __reduce__(self) -> Any:
        raise TypeError(
            "changed code must not be pickled, because it changes the modules of this process"
        )

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Change the code of the functions, and restore it at the end."""
        self.calls += 1
        try:
            for function, code in self.codes:
                function.__code__ = code
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # warnings of a mutant do not help its user
                yield
        finally:
            for function, code in self.originals:
                function.__code__ = code


def _name(code: types.CodeType) -> str:
    """Return the name of a function; for a lambda, also where it is."""
    if code.co_name != "<lambda>":
        return code.co_qualname
    return f"a lambda in line {code.co_firstlineno} of {Path(code.co_filename).name}"


def _is_generated(function: types.FunctionType) -> bool:
    """Return whether the standard library made a function that has no source."""
    module = str(function.__globals__.get("__name__"))
    return function.__code__.co_qualname.startswith(_MADE_BY_DATACLASS) or module.startswith(
        _MADE_BY_NAMEDTUPLE
    )


class _Source:
    """The definitions of some functions in their files."""

    def __init__(self, functions: Sequence[types.FunctionType]) -> None:
        self.trees: dict[str, ast.Module] = {}
        self.definitions: list[tuple[ast.AST, types.FunctionType]] = []
        self.modules: dict[types.FunctionType, ast.Module] = {}
        unread: dict[str, None] = {}
        for function in functions:
            found = self._definition(function)
            if found is None:
                if not _is_generated(function):
                    unread[_name(function.__code__)] = None
            else:
                node, self.modules[function] = found
                self.definitions.append((node, function))
        names = list(unread)
        self.unseen = f"the source of {', '.join(names[:3])} could not be read" * bool(names)

    def _definition(self, function: types.FunctionType) -> tuple[ast.AST, ast.Module] | None:
        """Return the definition of a function, and the smallest module that gives its code.

        The compiler treats names that a module imports in another way, so the module holds all
        imports. A cell of a notebook may use imports of another cell, and then it holds none.
        """
        code = function.__code__
        file = code.co_filename
        if file not in self.trees:
            linecache.checkcache(file)
            try:
                self.trees[file] = ast.parse("".join(linecache.getlines(file)))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                self.trees[file] = ast.Module([], [])
        kinds = ast.Lambda if code.co_name == "<lambda>" else ast.FunctionDef
        for top in self.trees[file].body:
            if not _first_line(top) <= code.co_firstlineno <= (top.end_lineno or top.lineno):
                continue
            nodes = [
                node
                for node in ast.walk(top)
                if isinstance(node, kinds) and _first_line(node) == code.co_firstlineno
            ]
            for imports in (self._imports(file), []):
                module = ast.Module([*imports, top], [])
                if len(nodes) == 1 and _is_same(_compiled(module, code), code):
                    return nodes[0], module
        return None

    def _imports(self, file: str) -> list[ast.stmt]:
        return [
            one for one in self.trees[file].body if isinstance(one, ast.Import | ast.ImportFrom)
        ]

    def edit(self, mistake: Mistake) -> Edit | None:
        """Return a mistake as changed code, or None if it cannot be made in a running program."""
        inside = [
            function
            for node, function in self.definitions
            if any(one is mistake.place[0] for one in ast.walk(node))
        ]
        undo = mistake.put()
        try:
            codes = [(one, _compiled(self.modules[one], one.__code__)) for one in inside]
        finally:
            undo()
        fits = [
            (function, code)
            for function, code in codes
            if code is not None and code.co_freevars == function.__code__.co_freevars
        ]
        if len(fits) < len(codes) or not fits:
            return None
        file = code_name(inside[0].__code__.co_filename)
        words = f"{mistake.kind}: {mistake.words}, line {mistake.line} of {file}"
        return Edit(words, fits)


def _first_line(node: Any) -> int:
    return min(int(one.lineno) for one in (node, *getattr(node, "decorator_list", ())))


def _compiled(module: ast.Module, code: types.CodeType) -> types.CodeType | None:
    """Compile a module, and return the code in it that stands for other code."""
    try:
        made = compile(module, code.co_filename, "exec", code.co_flags & _FUTURE, True)
    except (SyntaxError, ValueError, RecursionError, TypeError):
        return None
    found = [
        one
        for one in _codes(made)
        if (one.co_qualname, one.co_firstlineno) == (code.co_qualname, code.co_firstlineno)
    ]
    return found[0] if len(found) == 1 else None


def _is_same(a: Any, b: Any) -> bool:
    """Return whether two codes, or two constants of codes, are the same.

    Codes that ran are compared by their parts, because Python 3.11 changes them while they run.
    """
    if not isinstance(a, types.CodeType) or not isinstance(b, types.CodeType):
        if isinstance(a, frozenset) and isinstance(b, frozenset):  # whose order may differ
            return sorted(map(repr, a)) == sorted(map(repr, b))
        return type(a) is type(b) and repr(a) == repr(b)
    parts = ("co_name", "co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars")
    return (
        all(getattr(a, name) == getattr(b, name) for name in parts)
        and len(a.co_consts) == len(b.co_consts)
        and all(map(_is_same, a.co_consts, b.co_consts))
    )


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)
