"""Values that a mechanism keeps between calls, such as a cache in a dict.

A kept value would hide what changed code returns. An audit of changed code would then see a mixture
of the changed and the unchanged mechanism.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import itertools
import sys
import types
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from dpaudit.mechanisms import code_digest, source_bytes
from dpaudit.mutants.recorder import is_own, is_own_file

_MOST_OBJECTS, _MOST_ENTRIES = 2000, 1000


class Memory:
    """Every dict and set in which a mechanism's own code could keep values.

    The search starts at the mechanism. From there, it follows own functions, their variables and
    defaults, own modules, and the attributes of objects and classes. The first 1,000
    entries of each container are remembered.

    Parameters
    ----------
    mechanism : object
        The mechanism, before the calls to watch.

    Examples
    --------
    >>> known = {}
    >>> def squared(x):
    ...     return known.setdefault(x, x * x)
    >>> memory = Memory(squared)
    >>> _ = squared(3)
    >>> memory.changed()
    'known'
    """

    def __init__(self, mechanism: Any) -> None:
        self._mechanism = mechanism
        self._before = _containers(mechanism)

    def changed(self) -> str:
        """Return the name of the first container that is new or has other entries, or ""."""
        now = _containers(self._mechanism)
        return next((name for name, mark in now.items() if self._before.get(name) != mark), "")


def _containers(mechanism: Any) -> dict[str, tuple[int, ...]]:
    held = _reached(mechanism)
    return {name: _mark(one) for name, one in held if isinstance(one, dict | set)}


def _reached(mechanism: Any) -> Iterator[tuple[str, Any]]:
    """Yield the objects that a mechanism's own code refers to, directly or not, with names."""
    seen: dict[int, Any] = {}  # the objects stay alive, so that no id is used twice
    queue: deque[tuple[str, Any]] = deque([("", mechanism)])
    while queue and len(seen) < _MOST_OBJECTS:
        name, held = queue.popleft()
        if id(held) in seen:
            continue
        seen[id(held)] = held
        yield name, held
        if not isinstance(held, dict | set):
            queue.extend(_inside(name, held))


def code_hash(mechanism: Any) -> str:
    """Return a hash of a mechanism's own code, and of the values that are bound in it.

    The hash covers the complete source file of each own function, class and module that the
    mechanism refers to, directly or not. It covers the modules of the project that its files
    import. It also covers the values in closures, the arguments bound by ``partial`` and the
    attributes of objects. It does not cover code of libraries, programs that a command runs, and
    data that are read from files.

    Parameters
    ----------
    mechanism : object
        The mechanism, before it is called.

    Returns
    -------
    str
        A hash of 16 hexadecimal digits, or "" if a bound value has no hash.

    Examples
    --------
    >>> from functools import partial
    >>> def scaled(data, size, *, rng, scale):
    ...     return rng.laplace(data.sum(), scale, size)
    >>> code_hash(partial(scaled, scale=1.0)) == code_hash(partial(scaled, scale=2.0))
    False
    """
    try:
        digests = {code_digest(mechanism)}
        for _, held in _reached(mechanism):
            is_code = isinstance(held, types.FunctionType | types.ModuleType | type)
            if is_code and _is_own_code(held):
                digests.add(hashlib.sha256(source_bytes(held)).hexdigest())
    except Exception:  # a strange object may raise anything
        return ""
    return hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()[:16]


def _is_own_code(held: types.FunctionType | types.ModuleType | type) -> bool:
    """Return whether a function, a module or a class is not part of a library."""
    return is_own(held.__code__) if isinstance(held, types.FunctionType) else _is_own(held)


def _mark(held: dict[Any, Any] | set[Any]) -> tuple[int, ...]:
    entries = held.items() if isinstance(held, dict) else zip(held)
    some = itertools.islice(itertools.chain.from_iterable(entries), _MOST_ENTRIES)
    return (len(held), *map(id, some))


def _inside(name: str, held: Any) -> Iterator[tuple[str, Any]]:
    """Yield the objects that an object refers to, with names, as far as they belong to own code."""
    if isinstance(held, types.FunctionType):
        if is_own(held.__code__):
            yield from _of_function(held)
    elif isinstance(held, types.MethodType):
        yield from ((name, held.__self__), (name, held.__func__))
    elif isinstance(held, functools.partial):
        yield from ((name, one) for one in (held.func, *held.args, *held.keywords.values()))
    elif isinstance(held, types.ModuleType | type):
        if _is_own(held):
            yield from _named(vars(held))
    elif isinstance(state := getattr(held, "__dict__", None), dict):
        is_own_object = _is_own(type(held))
        if is_own_object:
            words = f"the attributes of {type(held).__name__}"
            yield from ((words, state), (type(held).__name__, type(held)))
        # A wrapper of dpaudit may remember what it saw, and the mechanism inside may not.
        containers = () if is_own_object else (dict, set)
        yield from ((name, one) for name, one in _named(state) if not isinstance(one, containers))


def _of_function(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    yield from _named(vars(function))
    for variable, cell in zip(
        function.__code__.co_freevars, function.__closure__ or (), strict=True
    ):
        try:
            yield variable, cell.cell_contents
        except ValueError:  # the variable has no value yet
            continue
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    yield from ((f"a default of {function.__name__}", one) for one in defaults)
    codes, kept = [function.__code__], function.__globals__
    for code in codes:
        codes += [one for one in code.co_consts if isinstance(one, types.CodeType)]
        for step in dis.get_instructions(code):
            if step.opname == "STORE_GLOBAL":  # the variable itself is the container
                yield step.argval, {step.argval: kept.get(step.argval)}
            elif isinstance(step.argval, str) and step.argval in kept:
                yield step.argval, kept[step.argval]


def _named(held: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the variables of a module, a class or an object, except those that Python makes."""
    yield from ((name, one) for name, one in list(held.items()) if not name.startswith("__"))


def _is_own(held: types.ModuleType | type) -> bool:
    """Return whether a module or a class is not part of a library."""
    name = held.__module__ if isinstance(held, type) else held.__name__
    file = getattr(sys.modules.get(name), "__file__", None)
    return name not in sys.builtin_module_names if file is None else is_own_file(file)
