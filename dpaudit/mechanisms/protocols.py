"""The possible forms of a mechanism, and the name that messages give a mechanism.

A *sampled* mechanism is ``f(data, size, *, rng) -> array [size, ...]``. One call returns `size`
independent draws. An *exact* mechanism has a finite range and a method ``pmf(data) -> [k]``. The
divergences of an exact mechanism are computed and need no estimation.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import inspect
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.errors import MechanismError

Array = NDArray[Any]


@runtime_checkable
class SampledMechanism(Protocol):
    """A function that returns independent draws.

    ``f(data, size, *, rng)`` returns `size` independent draws along the first axis. Draws are
    numbers, booleans, strings or records. NaN stands for "no answer"; inf is refused.
    """

    def __call__(self, data: Array, size: int, *, rng: np.random.Generator) -> Array:
        """Return `size` independent draws."""


@runtime_checkable
class ExactMechanism(Protocol):
    """A mechanism with a finite range and known probabilities."""

    def pmf(self, data: Array) -> NDArray[np.float64]:
        """Return the probability of each of the k outcomes, in a fixed order, shape (k,)."""


def unseeded(mechanism: Callable[..., Array]) -> Callable[..., Array]:
    """Mark a mechanism that uses an entropy source of its own and cannot be seeded.

    Audits of such a mechanism are as sound as audits of any other mechanism. However, `dpaudit
    replay` compares only the verdicts, not the counts.

    Examples
    --------
    >>> import secrets
    >>> @unseeded
    ... def coin(data, size, *, rng):
    ...     return np.array([secrets.randbelow(2) for _ in range(size)])
    >>> is_seeded(coin)
    False
    """
    _validate.function("a function f(data, size, *, rng)", mechanism=mechanism)

    @functools.wraps(mechanism)
    def marked(data: Array, size: int, **arguments: Any) -> Array:
        return mechanism(data, size, **arguments)

    marked.__dict__["dpaudit_unseeded"] = True
    marked.__name__ = mechanism_name(mechanism)
    return marked


def is_seeded(mechanism: Any) -> bool:
    """Return whether the generator argument determines the mechanism's draws."""
    while isinstance(mechanism, functools.partial):
        mechanism = mechanism.func
    return not getattr(mechanism, "dpaudit_unseeded", False)


def counts_changes(mechanism: Any) -> Any:
    """Return the part of a mutant that counts changes in ``changed``, or None."""
    return getattr(mechanism, "centers", mechanism)


def mechanism_name(mechanism: Any) -> str:
    """Return the name of a mechanism: the function's name, and the keywords bound by ``partial``.

    Examples
    --------
    >>> mechanism_name(functools.partial(sorted, reverse=True))
    'sorted(reverse=True)'
    """
    bound: dict[str, Any] = {}
    while isinstance(mechanism, functools.partial):
        bound = {**mechanism.keywords, **bound}
        mechanism = mechanism.func
    name = getattr(mechanism, "__name__", None) or type(mechanism).__name__
    if not bound:
        return str(name)
    words = ", ".join(f"{key}={_short(value)}" for key, value in bound.items())
    return f"{name}({words})"


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = " ".join(str(value).split()) if isinstance(value, np.ndarray) else repr(value)
    if " at 0x" in text:  # An address differs between processes, so the seed would differ.
        text = getattr(value, "__qualname__", type(value).__qualname__)
    return text if len(text) <= 60 else text[:57] + "..."


# --- random numbers: one root seed, and a separate stream for every purpose --------------------


def generator(seed: int, *labels: str | int) -> np.random.Generator:
    """Return the generator of one role in one audit, determined by the root seed and labels.

    Examples
    --------
    >>> a = generator(1, "audit_laplace", "certify", "left", 0).integers(100, size=3)
    >>> b = generator(1, "audit_laplace", "certify", "left", 0).integers(100, size=3)
    >>> bool((a == b).all())
    True
    """
    digest = hashlib.sha256("\x1f".join(map(str, labels)).encode()).digest()
    words = np.frombuffer(digest, dtype=np.uint32).tolist()
    return np.random.default_rng(np.random.SeedSequence([seed, *words]))


def seed_of(rng: np.random.Generator, below: int = 2**32) -> int:
    """Draw a seed, by default below 2**32, for a generator of another kind.

    If a seed begins a whole call of many draws, it must have more than 32 bits. With too few bits,
    two calls could get the same seed and so the same draws.

    A mutant's recorder does not see this draw, because a seed is not noise.
    """
    bits = np.random.Generator.bit_generator.__get__(rng)
    return int(np.random.Generator(bits).integers(below))


class Watched(np.random.Generator):
    """The generator of one call.

    The generator counts how often code passes this generator as a seed. ``default_rng(seed)``
    returns its argument unchanged if the argument is a generator. Code may build two generators
    from one seed. If the seed is a number, both generators draw the same noise. If the seed is a
    generator, both noises are independent. So the generator would hide this mistake if its use as a
    seed were not counted. Only variables whose names suggest a seed count, because code that takes
    `rng` may pass `rng` any number of times.
    """

    def __init__(self, bits: np.random.BitGenerator) -> None:
        super().__init__(bits)
        self.seeded = 0

    @property
    def capsule(self) -> Any:
        """Raise AttributeError, as every generator does, when ``default_rng`` reads this name."""
        caller = sys._getframe(1)
        names = [name for name, value in caller.f_locals.items() if value is self]
        if any("seed" in name or "random_state" in name for name in names):
            self.seeded += 1
        raise AttributeError("capsule")


@contextmanager
def recorded_generators(rng: np.random.Generator) -> Iterator[None]:
    """Make ``numpy.random.default_rng`` return generators that record their draws, for mutants.

    The seed still determines the bits of these generators. Code that imported ``default_rng`` by
    its name is not affected.
    """
    made, beside = np.random.default_rng, getattr(rng, "beside", None)

    def recorded(seed: Any = None) -> np.random.Generator:
        built = made(seed)
        return built if beside is None or built is seed else beside(built)

    with patch.object(np.random, "default_rng", recorded):
        yield


@contextmanager
def global_generators_kept() -> Iterator[None]:
    """Restore the states of numpy's global generator and of ``random`` after a code block.

    Use this context for code of other authors that draws from these generators. The caller must
    seed the generators inside the block.
    """
    ours, python = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(ours)  # noqa: NPY002
        random.setstate(python)


# --- advice for a callable that is not a mechanism, or that does not return draws --------------


_LISTED_KEYS = 40


def keys_differ(*names: tuple[str, ...] | None) -> str:
    """Return advice to declare the keys if draws hold different keys; otherwise return ""."""
    if None in names or len(set(names)) < 2:
        return ""
    known = dict.fromkeys(name for some in names for name in some or ())
    listed = ", ".join(map(_as_code, list(known)[:_LISTED_KEYS])) + ", ..." * (
        len(known) > _LISTED_KEYS
    )
    return (
        ". The presence of a key is an outcome. Declare every possible key: "
        f"Outcomes(f, keys=[{listed}])"
    )


def _as_code(name: str) -> str:
    """Return a key as code.

    Numbers and (row, column) pairs have no quotes.
    """
    try:
        ast.literal_eval(name)
    except (SyntaxError, ValueError):
        return repr(name)
    return name


def needs_care(draw: Any) -> bool:
    """Return whether numpy can convert a draw neither to numbers nor to a text."""
    return draw is None or isinstance(draw, Mapping) or hasattr(draw, "columns")


def no_array(outputs: Any) -> str | None:
    """Return what was returned instead of an array, and advice; None for an array."""
    if outputs is None:
        return "None. Add the missing return statement"
    if inspect.iscoroutine(outputs):
        outputs.close()  # the coroutine will never be awaited
        return "a coroutine. Use an ordinary function instead of an async one"
    if inspect.isgenerator(outputs):
        return "a generator. Return np.array([...]) of all draws instead of yielding them"
    if isinstance(outputs, Mapping):
        return (
            f"a dict with the keys {', '.join(map(repr, list(outputs)[:5]))}. Make its values "
            "arrays [size, ...], or return a list of dicts, one for each draw"
        )
    if hasattr(outputs, "columns"):
        return (
            f"a {type(outputs).__name__} of {len(outputs)} rows. Return one row for each draw, or "
            "a list of frames"
        )
    if not isinstance(outputs, np.ndarray | list | tuple) and np.ndim(outputs) == 0:
        return f"one value, {outputs!r}. Draw noise of shape [size, ...], one draw for each row"
    return None


def hint(mechanism: Any) -> str:
    """Return advice for a function whose parameters are not those of a mechanism, or ""."""
    whole = mechanism.func if isinstance(mechanism, functools.partial) else mechanism
    if type(whole).__module__.startswith("dpaudit."):  # it calls the user's function as it should
        return _unbound(getattr(whole, "function", None))
    if _takes(mechanism, None, 1, rng=None):
        return ""
    if _takes(mechanism, None, rng=None):
        return ". Use one_draw(f) to make a mechanism of a function that returns one draw"
    if seeded := by_its_seed(mechanism):
        return f". A mechanism is f(data, size, *, rng). {seeded}"
    if _takes(mechanism, None, size=1):
        return (
            ". It takes no rng. A mechanism is f(data, size, *, rng) and draws from that generator"
        )
    if _takes(mechanism, None):
        return (
            ". A mechanism is f(data, size, *, rng). If the function returns one draw with noise "
            'of global generators, use one_draw(f, randomness="legacy"). If it returns the value '
            'before the noise is added, use AdditiveNoise(f, "gaussian", scale=...)'
        )
    return _unbound(mechanism)


def _unbound(function: Any) -> str:
    """Return how to bind the own parameters of a function, which have no default; or ""."""
    try:
        taken = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ""
    several = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    needed = [p.name for p in taken if p.default is p.empty and p.kind not in several]
    own = [name for name in needed[1:] if name not in ("size", "rng")]
    if not own:
        return ""
    bound = functools.partial(function, **dict.fromkeys(own))
    if not (_takes(bound, None, rng=None) or _takes(bound, None, 1, rng=None)):
        return ""
    return f". Bind its parameters: functools.partial(f, {', '.join(f'{n}=...' for n in own)})"


def by_its_seed(function: Any) -> str:
    """Return how to make a mechanism from a function that takes a seed; "" if it takes no seed."""
    if lacks(function, "seed") or not lacks(function, "rng") or not _takes(function, None):
        return ""
    called = getattr(function, "__name__", "f")
    called = called if called.isidentifier() else "f"
    return f'Use one_draw({called}, randomness="integer") for a function that takes seed'


def takes_another(mechanism: Any) -> str:
    """Return the parameter that received `size` if it has another name, or ""."""
    try:
        _, second, *_ = inspect.signature(mechanism).parameters.values()
    except (TypeError, ValueError):
        return ""
    if second.name == "size" or second.kind is not second.POSITIONAL_OR_KEYWORD:
        return ""
    has_default = second.default is not second.empty
    if not has_default and not _unbound(mechanism):  # it may be size under another name
        return ""
    stated = f"={second.default!r}" if has_default else ""
    function = "f" if has_default else f"functools.partial(f, {second.name}=...)"
    return (
        f". Its second parameter is {second.name}{stated}, which received size. Use "
        f"one_draw({function}) to make a mechanism of a function that returns one draw"
    )


def needed(module: str, what: str = "this adapter", package: str = "") -> Any:
    """Import a module of another package.

    The error says how to install a missing package.

    Raises
    ------
    MechanismError
        If the module cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MechanismError(
            f"{what} needs the package {module}, which cannot be imported here ({error}). "
            f"Run pip install {package or module}"
        ) from error


def _takes(function: Any, *arguments: Any, **named: Any) -> bool:
    """Return whether a function accepts these arguments; False if it has no signature."""
    try:
        inspect.signature(function).bind(*arguments, **named)
    except (TypeError, ValueError):
        return False
    return True


def lacks(function: Any, name: str) -> bool:
    """Return whether a function certainly takes no argument of this name."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    takes_all = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    return name not in parameters and not takes_all


def slow_words(name: str, each: float, size: int, total: int, seconds: float) -> str:
    """Return the warning that an audit will take long, with a faster setting."""
    draws = "a draw" if size == 1 else f"{size} draws"
    return (
        f"{name} takes {each:.2g} s for {draws}: this audit of {total:,} (of both "
        f"datasets, and of any mutants) would take up to {seconds / 60:.0f} minutes. "
        'Use fewer draws=, or method="sequential" (dpaudit run --sequential), which stops as soon '
        "as the evidence suffices. With it, Settings(max_seconds=...) limits the time. "
        "Settings(cache_dir=...) lets an interrupted audit resume"
    )
