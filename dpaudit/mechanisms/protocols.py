"""The shapes that a mechanism may have, and what it is called.

A *sampled* mechanism is ``f(data, size, *, rng) -> array [size, ...]``: `size` independent draws
in one call. An *exact* mechanism has a method ``pmf(data) -> [k]`` over a finite range, so that
its divergences are computed instead of estimated.
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
    """A function that draws.

    ``f(data, size, *, rng)`` returns `size` independent draws, first axis the draw; numbers,
    booleans, strings or records; NaN marks "no answer", inf is refused.
    """

    def __call__(self, data: Array, size: int, *, rng: np.random.Generator) -> Array:
        """Return `size` independent draws."""


@runtime_checkable
class ExactMechanism(Protocol):
    """A mechanism over a finite range whose probabilities are known."""

    def pmf(self, data: Array) -> NDArray[np.float64]:
        """Return the probability of each of the k outcomes, in a fixed order, shape (k,)."""


def unseeded(mechanism: Callable[..., Array]) -> Callable[..., Array]:
    """Mark a mechanism that draws from an entropy source of its own and cannot be seeded.

    Its audits are as sound as any other, but `dpaudit replay` compares verdicts and not counts.

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
    """Whether the mechanism's draws are determined by the generator that it is handed."""
    while isinstance(mechanism, functools.partial):
        mechanism = mechanism.func
    return not getattr(mechanism, "dpaudit_unseeded", False)


def counts_changes(mechanism: Any) -> Any:
    """Return the part of a mechanism that counts its changes in ``changed``, if it is a mutant."""
    return getattr(mechanism, "centers", mechanism)


def mechanism_name(mechanism: Any) -> str:
    """Words for a mechanism: its function's name and the keywords bound by ``partial``.

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
    if " at 0x" in text:  # an address would give every process another name, and another seed
        text = getattr(value, "__qualname__", type(value).__qualname__)
    return text if len(text) <= 60 else text[:57] + "..."


# --- where random numbers come from: one root seed, and a stream of its own for every purpose ---


def generator(seed: int, *labels: str | int) -> np.random.Generator:
    """Return the generator of one role in one audit: a pure function of root seed and labels.

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

    One that begins a whole call, of many draws, must be of more bits: two calls with one seed would
    be the same.

    Unseen by what records the noise of a mechanism: a seed is no noise.
    """
    bits = np.random.Generator.bit_generator.__get__(rng)
    return int(np.random.Generator(bits).integers(below))


class Watched(np.random.Generator):
    """The generator of one call, which counts how often it is taken for a seed.

    ``default_rng(seed)`` returns a generator as it is. So code that builds two generators from one
    seed draws the same noise twice from a number, and fresh noise from a generator: to hand it a
    generator would hide the mistake. Only variables named like a seed count: code that takes `rng`
    may pass it on as often as it likes.
    """

    def __init__(self, bits: np.random.BitGenerator) -> None:
        super().__init__(bits)
        self.seeded = 0

    @property
    def capsule(self) -> Any:
        """Raise AttributeError, as any generator does; ``default_rng`` asks for it first."""
        caller = sys._getframe(1)
        names = [name for name, value in caller.f_locals.items() if value is self]
        if any("seed" in name or "random_state" in name for name in names):
            self.seeded += 1
        raise AttributeError("capsule")


@contextmanager
def recorded_generators(rng: np.random.Generator) -> Iterator[None]:
    """Let ``numpy.random.default_rng`` make generators that record what they draw, for mutants.

    The bits are those of the seed. A function imported by its name is not reached.
    """
    made, beside = np.random.default_rng, getattr(rng, "beside", None)

    def recorded(seed: Any = None) -> np.random.Generator:
        built = made(seed)
        return built if beside is None or built is seed else beside(built)

    with patch.object(np.random, "default_rng", recorded):
        yield


@contextmanager
def global_generators_kept() -> Iterator[None]:
    """Leave numpy's global generator and that of ``random`` as they were found.

    For code that draws from them and is not ours; whoever uses this must seed them inside.
    """
    ours, python = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(ours)  # noqa: NPY002
        random.setstate(python)


# --- what else may have been meant by something that is no mechanism, or returns no draws ------


_SHOWN_KEYS = 40


def keys_differ(*names: tuple[str, ...] | None) -> str:
    """Return what to declare where draws hold different keys; empty where they hold the same."""
    if None in names or len(set(names)) < 2:
        return ""
    known = dict.fromkeys(name for some in names for name in some or ())
    shown = ", ".join(map(_as_code, list(known)[:_SHOWN_KEYS])) + ", ..." * (
        len(known) > _SHOWN_KEYS
    )
    return (
        "; the presence of a key is an outcome. Declare every key that there may be: "
        f"Outcomes(f, keys=[{shown}])"
    )


def _as_code(name: str) -> str:
    """Return a key as it is written in code; numbers and (row, column) pairs are no texts."""
    try:
        ast.literal_eval(name)
    except (SyntaxError, ValueError):
        return repr(name)
    return name


def needs_care(draw: Any) -> bool:
    """Whether a draw is nothing that numpy makes a number or a text of."""
    return draw is None or isinstance(draw, Mapping) or hasattr(draw, "columns")


def no_array(outputs: Any) -> str | None:
    """Say what was returned instead of an array, and what to do about it; None for an array."""
    if outputs is None:
        return "None: is there a return missing?"
    if inspect.iscoroutine(outputs):
        outputs.close()  # nobody will await it
        return "a coroutine: a mechanism must be an ordinary function, not async"
    if inspect.isgenerator(outputs):
        return "a generator: return np.array([...]) of all draws instead of yielding them"
    if isinstance(outputs, Mapping):
        return (
            f"a dict with the keys {', '.join(map(repr, list(outputs)[:5]))}: its values must be "
            "arrays [size, ...], or return a list of dicts, one for each draw"
        )
    if hasattr(outputs, "columns"):
        return (
            f"a {type(outputs).__name__} of {len(outputs)} rows: return one row for each draw, or "
            "a list of frames"
        )
    if not isinstance(outputs, np.ndarray | list | tuple) and np.ndim(outputs) == 0:
        return f"one value, {outputs!r}: draw noise of shape [size, ...], one draw for each row"
    return None


def hint(mechanism: Any) -> str:
    """Say what else may have been meant by a function with other parameters than a mechanism."""
    if _takes(mechanism, None, 1, rng=None):
        return ""
    if _takes(mechanism, None, rng=None):
        return "; a function that returns one draw becomes a mechanism by one_draw(f)"
    if seeded := by_its_seed(mechanism):
        return f"; a mechanism is f(data, size, *, rng), and {seeded}"
    if _takes(mechanism, None, size=1):
        return (
            "; it takes no rng: a mechanism is f(data, size, *, rng), and draws from that generator"
        )
    if _takes(mechanism, None):
        return (
            "; a mechanism is f(data, size, *, rng). A function that returns one draw, with noise "
            'of global generators, becomes one by one_draw(f, randomness="legacy"); one of the '
            'data alone, before its noise, is audited with AdditiveNoise(f, "gaussian", scale=...)'
        )
    return ""


def by_its_seed(function: Any) -> str:
    """Return how a function that takes a seed becomes a mechanism; empty where it takes none."""
    if lacks(function, "seed") or not lacks(function, "rng") or not _takes(function, None):
        return ""
    called = getattr(function, "__name__", "f")
    called = called if called.isidentifier() else "f"
    return f'a function that takes seed becomes one by one_draw({called}, randomness="integer")'


def takes_another(mechanism: Any) -> str:
    """Say what `size` was given to, where a second parameter has a default and another name."""
    try:
        _, second, *_ = inspect.signature(mechanism).parameters.values()
    except (TypeError, ValueError):
        return ""
    if (
        second.name == "size"
        or second.kind is second.KEYWORD_ONLY
        or second.default is second.empty
    ):
        return ""
    return (
        f"; its second parameter is {second.name}={second.default!r}, which was given size: a "
        "function that returns one draw becomes a mechanism by one_draw(f)"
    )


def needed(module: str, what: str = "this adapter", package: str = "") -> Any:
    """Import a module of another package, or say what needs it and how to install it.

    Raises
    ------
    MechanismError
        Where it cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MechanismError(
            f"{what} needs the package {module}, which cannot be imported here ({error}): "
            f"pip install {package or module}"
        ) from error


def _takes(function: Any, *arguments: Any, **named: Any) -> bool:
    """Whether a function may be called so; False for one that does not tell."""
    try:
        inspect.signature(function).bind(*arguments, **named)
    except (TypeError, ValueError):
        return False
    return True


def lacks(function: Any, name: str) -> bool:
    """Whether a function is known not to take an argument by name."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    takes_all = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    return name not in parameters and not takes_all


def slow_words(name: str, each: float, size: int, total: int, seconds: float) -> str:
    """Say that an audit will take long, and what would be faster."""
    draws = "a draw" if size == 1 else f"{size} draws"
    return (
        f"{name} takes {each:.2g} s for {draws}: this audit of {total:,} would take up to "
        f'{seconds / 60:.0f} minutes. method="sequential" (dpaudit run --sequential) stops as soon '
        "as the evidence is in; draws= and Settings(max_seconds=...) bound the time; "
        "Settings(cache_dir=...) lets an interrupted audit resume"
    )
