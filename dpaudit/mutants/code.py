"""Mutants made by changing code: a function is removed or replaced, or a parameter is scaled.

Pass such mutants to an audit instead of hand-written mutants: ``mutants=[without("my.clip")]``.
"""

from __future__ import annotations

import difflib
import functools
import gc
import inspect
import pkgutil
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.errors import ArgumentError
from dpaudit.mechanisms import (
    AdditiveNoise,
    Composition,
    ExactMechanism,
    OneDraw,
    Outcomes,
    Scored,
    is_seeded,
    mechanism_name,
)
from dpaudit.mutants.recorder import is_own

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Change:
    """A mistake that can be made in a mechanism.

    Pass the change to an audit in ``mutants``.

    Parameters
    ----------
    name : str
        Description of the change.
    apply : callable
        ``apply(mechanism) -> mechanism``.
    """

    name: str
    apply: Callable[[Any], Any] = field(repr=False)

    def __post_init__(self) -> None:
        _validate.text(name=self.name)
        _validate.function("a function apply(mechanism)", apply=self.apply)

    def __call__(self, mechanism: Any) -> Any:
        """Return the mechanism with the mistake.

        A score or a conversion is kept around the changed mechanism.
        """
        if isinstance(mechanism, Outcomes | Scored):
            return mechanism.of(self(mechanism.mechanism))
        return self.apply(mechanism)


def without(name: str) -> Change:
    """Remove a function, which then returns its first argument while the mechanism runs.

    Use this function for clipping, projections and normalisations, whose first argument and result
    are both data. Use :func:`patch` for a test, which returns True or False.

    Parameters
    ----------
    name : str
        ``module.function`` or ``module.Class.method``. A method returns its first argument after
        ``self``.

    Raises
    ------
    ArgumentError
        For an unknown name, for a name that is not a function, or for a function that cannot be
        replaced everywhere.

    Examples
    --------
    >>> without("statistics.fmean")
    Change(name='without statistics.fmean')
    """
    target = Target.named(name)

    def apply(mechanism: Any) -> Any:
        return changed_by(Patch(target, target.first), mechanism)

    return Change(f"without {name}", apply)


def patch(name: str, replacement: Callable[..., Any]) -> Change:
    """Replace a function while the mechanism runs, in every module and under every name.

    Parameters
    ----------
    name : str
        ``module.function`` or ``module.Class.method``.
    replacement : callable
        Function that is called instead, with the same arguments.

    Raises
    ------
    ArgumentError
        As for :func:`without`.
    """
    _validate.function(replacement=replacement)
    target = Target.named(name)
    words = f"{name} replaced by {mechanism_name(replacement)}"
    return Change(words, lambda mechanism: changed_by(Patch(target, replacement), mechanism))


def quieter(name: str, factor: float = 0.0) -> Change:
    """Multiply the noise that a function adds to its first argument.

    Use this function for noise that code draws in several steps, such as by inverting a
    distribution function. In such code, no single line produces the noise. The function makes the
    same draws as before. The return value of the function is moved towards the first argument.

    Parameters
    ----------
    name : str
        ``module.function``. The function must return its first argument with noise added, or arrays
        of such noisy values.
    factor : float
        Factor, at least 0 and below 1. A factor of 0 removes the noise.

    Raises
    ------
    ArgumentError
        As for :func:`without`. Also if the factor is out of range.

    Examples
    --------
    >>> quieter("random.Random.gauss", 0.5)
    Change(name='random.Random.gauss with 0.5 of its noise')
    """
    factor = _validate.nonnegative(factor=factor)
    if factor >= 1:
        raise ArgumentError(f"factor must be at least 0 and below 1, got {factor!r}")
    target = Target.named(name)

    def moved(*args: Any, **kwargs: Any) -> Any:
        value = np.asarray(target.first(*args, **kwargs))
        return value + factor * (np.asarray(target.original(*args, **kwargs)) - value)

    words = f"{name} without its noise" if factor == 0 else f"{name} with {factor:g} of its noise"
    return Change(words, lambda mechanism: changed_by(Patch(target, moved), mechanism))


def scaled(of: Callable[..., Any] | None = None, /, **factors: float) -> Change:
    """Multiply parameters by factors, for noise that does not come from numpy.

    Parameters
    ----------
    of : functools.partial, optional
        Factory of the mechanism, which takes parameters as keywords. By default, the mechanism
        itself is the factory: a ``partial``, or `one_draw` of a ``partial``. The keywords of the
        ``partial`` are scaled.
    **factors : float
        Factor for each parameter, by name.

    Raises
    ------
    ArgumentError
        If a parameter is not a keyword of the ``partial``, or if its value is not a number.

    Examples
    --------
    >>> def noisy_sum(data, size, *, scale, rng):
    ...     return data.sum() + rng.laplace(scale=scale, size=size)
    >>> halved = scaled(scale=0.5)(functools.partial(noisy_sum, scale=2.0))
    >>> halved.keywords
    {'scale': 1.0}
    """
    if not factors:
        raise ArgumentError(
            "factors must contain at least one parameter, got none. Pass one, such as "
            "scaled(scale=0.5)"
        )
    factors = {key: _validate.finite(**{key: value}) for key, value in factors.items()}
    if of is not None:
        _keywords(of, factors, "of")
    words = ", ".join(f"{key} times {value:g}" for key, value in factors.items())

    def apply(mechanism: Any) -> Any:
        if of is not None:
            return _keywords(of, factors, "of")()
        if isinstance(mechanism, OneDraw):
            return mechanism.of(_keywords(mechanism.function, factors, "mechanism"))
        return _keywords(mechanism, factors, "mechanism")

    return Change(words, apply)


def _keywords(made: Any, factors: dict[str, float], name: str) -> functools.partial[Any]:
    """Return a partial with some of its keywords multiplied by factors."""
    if not isinstance(made, functools.partial):
        raise ArgumentError(
            f"{name} must be a functools.partial whose keywords are scaled, got "
            f"{_validate.describe(made)}. For a mechanism made by a factory, pass "
            "scaled(partial(factory, parameter=...), ...)"
        )
    scaled = {}
    for key, factor in factors.items():
        if key not in made.keywords:
            known = ", ".join(made.keywords) or "none"
            raise ArgumentError(f"{key} must be a keyword of {name}, whose keywords are {known}")
        try:
            scaled[key] = made.keywords[key] * factor
        except TypeError:
            raise ArgumentError(f"{key} must be a number, got {made.keywords[key]!r}") from None
    return functools.partial(made, **scaled)


# --- replacing functions ---


_HEAP_TYPE = 1 << 9  # flag of classes written in Python, in `type.__flags__`


@dataclass(frozen=True, eq=False)
class Target:
    """A function that can be replaced, and all places that refer to it.

    Parameters
    ----------
    name : str
        Name that the user gave.
    original : callable
        The function.
    skipped : int
        Number of arguments before the first argument that a caller writes; 1 for a method.
    """

    name: str
    original: Any
    skipped: int

    @classmethod
    def named(cls, name: str) -> Target:
        """Return the target with a name; refuse a name that is unknown or is not a function."""
        if not isinstance(name, str) or "." not in name:
            raise ArgumentError(f"name must be module.function, got {name!r}")
        owner, found = _resolve(name)
        original = inspect.getattr_static(owner, name.rpartition(".")[2])
        if not callable(found):
            raise ArgumentError(
                f"name must be the name of a function, got {name!r}, which is {found!r}"
            )
        if isinstance(owner, type) and not owner.__flags__ & _HEAP_TYPE:
            raise ArgumentError(
                f"name must be the name of a function in Python code, got {name!r}, a method "
                "of a built-in type, which cannot be replaced"
            )
        with_self = (types.FunctionType, classmethod)
        is_method = isinstance(owner, type) and isinstance(original, with_self)
        return cls(name, original, int(is_method))

    def first(self, *args: Any, **kwargs: Any) -> Any:
        """Return the first argument of a call."""
        found = [*args[self.skipped :], *kwargs.values()]
        if not found:
            raise ArgumentError(
                f"{self.name} must take at least one argument, because the mutant returns the "
                "first argument, got no argument"
            )
        return found[0]

    def holders(self) -> list[tuple[Any, str]]:
        """Return (module or class, name) for every place that refers to the function.

        Raises
        ------
        ArgumentError
            If something else also refers to the function, such as a closure or a ``partial``. That
            reference would still call the original function.
        """
        found = [
            (owner, key)
            for owner in _owners()
            for key, value in list(vars(owner).items())
            if value is self.original
        ]
        elsewhere = _held_elsewhere(self.original, found)
        if elsewhere:
            raise ArgumentError(
                f"{self.name} cannot be replaced everywhere: {elsewhere} also refers to this "
                "function and would still call the original. Pass the name of the function that "
                "calls it"
            )
        return found


@dataclass(eq=False)
class Patch:
    """A replacement that is active during calls and is always undone after each call."""

    target: Target
    replacement: Callable[..., Any]
    calls: int = 0

    def __post_init__(self) -> None:
        self.holders = self.target.holders()

        @functools.wraps(self.replacement)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            return self.replacement(*args, **kwargs)

        kind = type(self.target.original)
        self.put_in = kind(counted) if kind in (staticmethod, classmethod) else counted

    def __reduce__(self) -> Any:
        raise TypeError(
            "a replacement must not be pickled, because it changes the modules of this process"
        )

    @property
    def words(self) -> str:
        """The change in words."""
        return f"with {self.target.name} replaced"

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Replace the function everywhere, and restore it at the end."""
        known = set(sys.modules)
        done = []
        try:
            for owner, key in self.holders:
                done.append((owner, key))  # set first, because an alarm may interrupt at any time
                setattr(owner, key, self.put_in)
            yield
        finally:
            for owner, key in done:
                setattr(owner, key, self.target.original)
            # A module that was imported while the function was replaced may hold the replacement.
            for name in set(sys.modules) - known:
                for key, value in list(vars(sys.modules[name]).items()):
                    if value is self.put_in:
                        setattr(sys.modules[name], key, self.target.original)


class Patched:
    """A mechanism that replaces code during its calls."""

    def __init__(self, mechanism: Any, patch: Any) -> None:
        self.mechanism, self.patch = mechanism, patch
        self.__name__ = f"{mechanism_name(mechanism)}, {patch.words}"
        self.dpaudit_unseeded = not is_seeded(mechanism)

    @property
    def changed(self) -> int:
        """Number of calls of the replacement."""
        return int(self.patch.calls)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the mechanism while the code is replaced."""
        with self.patch.in_force():
            return self.mechanism(*args, **kwargs)


class PatchedPmf(Patched):
    """A mechanism with a pmf that replaces code during its calls."""

    def pmf(self, data: Array) -> Any:
        """Return the pmf, computed while the code is replaced."""
        with self.patch.in_force():
            return self.mechanism.pmf(data)


def changed_by(patch: Any, mechanism: Any) -> Any:
    """Return the mechanism with code replaced by a patch, or by an edit, during its calls."""
    if isinstance(mechanism, ExactMechanism):
        return PatchedPmf(mechanism, patch)
    if isinstance(mechanism, Composition):
        return mechanism.with_steps(
            lambda step: replace(step, mechanism=changed_by(patch, step.mechanism))
        )
    if not isinstance(mechanism, AdditiveNoise):
        return Patched(mechanism, patch)
    # The replaced code may be the code that keeps the centres inside their ball.
    centers = Patched(mechanism.centers, patch)
    return mechanism.with_centers(functools.wraps(mechanism.centers)(centers), ball=None)


def _owners() -> Iterator[Any]:
    """Yield all modules and the classes that they define."""
    for module in list(sys.modules.values()):
        if isinstance(module, types.ModuleType):
            yield module
            for value in list(vars(module).values()):
                if isinstance(value, type) and value.__module__ == module.__name__:
                    yield value


def _held_elsewhere(original: Any, holders: list[tuple[Any, str]]) -> str:
    """Return what else refers to a function and may call it; empty if nothing else does."""
    spaces = set()
    for owner, _ in holders:
        space = vars(owner)
        inner = gc.get_referents(space) if isinstance(owner, type) else [space]
        spaces |= {id(one) for one in inner}
    itself = id(original)  # a closure over the function would be among its referrers
    for referrer in gc.get_referrers(original):
        if type(referrer).__module__.startswith("numpy.ma"):
            continue  # older numpy's np.ma.clip and similar functions, which are separate functions
        if isinstance(referrer, types.CellType) and _is_closed_over(referrer):
            return "a closure or a decorator"
        if isinstance(referrer, functools.partial):
            return "a functools.partial"
        if isinstance(referrer, types.MethodType):
            return "a bound method that was kept"
        if isinstance(referrer, tuple) and any(
            isinstance(user, types.FunctionType) and user.__defaults__ is referrer
            for user in gc.get_referrers(referrer)
        ):
            return "a default argument"
        if isinstance(referrer, dict) and id(referrer) not in spaces:
            key = next((k for k, value in referrer.items() if id(value) == itself), None)
            if key != "original":  # attribute of a target
                return f"a dict or an object, as {key!r},"
        if isinstance(referrer, list | tuple | deque):
            return f"a {type(referrer).__name__}"
        if type(referrer).__flags__ & _HEAP_TYPE and not isinstance(referrer, type | Target):
            return f"an object of the class {type(referrer).__name__}"
    return ""


def _is_closed_over(cell: Any) -> bool:
    """Return whether a function that may belong to a mechanism has a closure over a cell."""
    closures = [one for one in gc.get_referrers(cell) if isinstance(one, tuple)]
    functions = [one for closure in closures for one in gc.get_referrers(closure)]
    return any(isinstance(one, types.FunctionType) and is_own(one.__code__) for one in functions)


def _resolve(name: str) -> tuple[Any, Any]:
    """Return the owner of a dotted name, and the object that the name refers to."""
    parent, _, last = name.rpartition(".")
    try:
        owner = pkgutil.resolve_name(parent)
    except (ImportError, ValueError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == parent.partition(".")[0]:
            raise ArgumentError(
                f"name must begin with the name of a module that can be imported, got {name!r}"
            ) from None
        raise ArgumentError(
            f"name must be the name of a function, but importing {parent} failed: {error}"
        ) from error
    except AttributeError as error:
        raise ArgumentError(f"name must be the name of a function: {error}") from None
    if last in dir(owner):
        return owner, getattr(owner, last)
    close = difflib.get_close_matches(last, dir(owner), n=1)
    hint = f". Did you mean {close[0]}?" if close else ""
    raise ArgumentError(f"name must be the name of a function, but {parent} has no {last}{hint}")
