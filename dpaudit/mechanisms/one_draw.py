"""Conversion of functions that return one draw to mechanisms that return many draws."""

from __future__ import annotations

import functools
import importlib
import random
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np

from dpaudit import _validate
from dpaudit.data import handed
from dpaudit.errors import ArgumentError, MechanismError
from dpaudit.mechanisms.outcomes import (
    Array,
    Outcomes,
    Then,
    applied,
    as_array,
    attempt,
    unbound,
)
from dpaudit.mechanisms.protocols import (
    Watched,
    by_its_seed,
    global_generators_kept,
    is_seeded,
    lacks,
    mechanism_name,
    needed,
    recorded_generators,
    seed_of,
)
from dpaudit.mechanisms.workers import travels_by_value

# --- code that draws from the global generators of numpy and Python, driven by a given generator


_SHARED = tuple(
    name
    for name in dir(np.random)
    if not name.startswith("_") and callable(getattr(np.random.Generator, name, None))
)
"""Functions of ``numpy.random`` that a Generator has as methods, with the same arguments."""


@contextmanager
def global_functions_of(rng: np.random.Generator) -> Iterator[None]:
    """Let the functions of ``numpy.random`` and ``random`` draw from a given generator.

    Mutants can then change the noise of code that draws from global generators, because a mutant
    passes a recording generator. Only the names in the two modules are replaced. Therefore a
    function that was imported by its name still draws from its own source. A RandomState also draws
    from its own source.
    """

    def randint(low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64) -> Any:
        return rng.integers(low, high, size, dtype)

    def normal(mu: float = 0.0, sigma: float = 1.0) -> float:
        return rng.normal(mu, sigma)

    def randrange(start: int, stop: int | None = None, step: int = 1) -> int:
        numbers = range(start) if stop is None else range(start, stop, step)
        return numbers[rng.integers(len(numbers))]

    of_numpy: dict[str, Any] = {
        **{name: getattr(rng, name) for name in _SHARED},
        "rand": lambda *shape: rng.random(shape or None),
        "randn": lambda *shape: rng.standard_normal(shape or None),
        "randint": randint,
        **dict.fromkeys(("random_sample", "ranf", "sample"), rng.random),
    }
    of_python: dict[str, Any] = {
        "random": rng.random,
        "uniform": rng.uniform,
        "gauss": normal,
        "normalvariate": normal,
        "expovariate": lambda lambd=1.0: rng.exponential(1 / lambd),
        "randint": lambda a, b: int(rng.integers(a, b, endpoint=True)),
        "randrange": randrange,
        "choice": lambda seq: seq[rng.integers(len(seq))],
        "shuffle": rng.shuffle,
    }
    with patch.multiple(np.random, **of_numpy), patch.multiple(random, **of_python):
        yield


RANDOMNESS = {"rng": "rng", "integer": "seed", "legacy": "", "torch": "", "jax": "key"}
"""Where a function gets its randomness, and the name of the argument that receives it, if any."""

_OTHERS = (
    'Use randomness="legacy" for noise of numpy\'s global generator, "integer" for a function that '
    'takes seed, "torch" and "jax" for their generators, None for noise that cannot be seeded'
)

_TWO_FROM_ONE = (
    "{name} builds two generators from one seed in one draw. From a number, both would draw the "
    "same noise; from a generator, they do not, because default_rng returns it unchanged. Pass a "
    'number instead: one_draw(f, randomness="integer") for f(data, seed=...)'
)

_ONE_AT_A_TIME = threading.RLock()  # because threads share the global generators
_PLAIN = bool, int, float, str, type(None)  # types of arguments that differ if their repr differs
_PADDED_TO = 4  # sizes are padded to powers of 4: few compilations, little waste


class OneDraw:
    """A mechanism that makes many draws by calling a function that makes one draw."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        randomness: str | None = "rng",
        vmap: bool = False,
    ) -> None:
        _validate.function("a function that returns one draw, f(data)", function=function)
        known = isinstance(randomness, str) and randomness in RANDOMNESS
        if randomness is not None and not known:
            raise ArgumentError(
                f"randomness must be one of {', '.join(map(repr, RANDOMNESS))} or None, got "
                f"{_validate.describe(randomness)}"
            )
        if _validate.flag(vmap=vmap) and randomness != "jax":
            raise ArgumentError(
                f'vmap must be False unless randomness="jax", got randomness={randomness!r}'
            )
        if isinstance(function, Outcomes):
            raise TypeError(
                "one_draw takes a function that makes one draw, got an Outcomes, which makes many: "
                f"write Outcomes(one_draw({mechanism_name(function)}))"
            )
        self.function, self.randomness = function, randomness
        argument = RANDOMNESS.get(randomness or "")
        if argument and lacks(function, argument):
            raise TypeError(
                f"{mechanism_name(function)} must take the argument {argument}, because "
                f"randomness={randomness!r} passes it. {by_its_seed(function) or _OTHERS}"
            )
        self.vmap = vmap
        self.dpaudit_unseeded = randomness is None
        functools.update_wrapper(self, function, updated=())
        self.__name__ = mechanism_name(function)
        self._many: dict[str, Callable[..., Any]] = {}

    def __repr__(self) -> str:
        return f"one_draw({self.__name__}, randomness={self.randomness!r})"

    def __reduce__(self) -> Any:
        # Functions compiled by jax are not pickled. The name in the module belongs to the mechanism
        # and not to the function. So the function is reached through the mechanism.
        found = _find(self)
        if found is not None:
            return found
        make = functools.partial(OneDraw, randomness=self.randomness, vmap=self.vmap)
        return make, (self.function,)

    def of(self, function: Callable[..., Any]) -> OneDraw:
        """Return a mechanism of the same kind for another function."""
        return OneDraw(function, randomness=self.randomness, vmap=self.vmap)

    def __call__(
        self, data: Any, size: int, *, rng: np.random.Generator, **arguments: Any
    ) -> Array:
        """Return `size` independent draws; other arguments are passed to the function."""
        draws = self.draws_one_by_one(data, size, rng=rng, **arguments)
        return unbound(draws, as_array(draws))

    def draws_one_by_one(
        self,
        data: Any,
        size: int,
        *,
        rng: np.random.Generator,
        then: Then | None = None,
        catches: bool = False,
        **arguments: Any,
    ) -> Sequence[Any]:
        """Return `size` independent draws as the function returns them."""
        function = functools.partial(self.function, **arguments) if arguments else self.function
        if self.vmap:
            drawn = self._mapped(function, arguments, data, size, rng)
            return applied(then, drawn, catches=catches)
        if self.randomness == "rng" and type(rng) is np.random.Generator:
            rng = Watched(rng.bit_generator)
        with _global_state_kept(self.randomness):
            return [self._one(function, data, rng, then, catches) for _ in range(size)]

    def _one(
        self,
        function: Callable[..., Any],
        data: Any,
        rng: np.random.Generator,
        then: Then | None,
        catches: bool,
    ) -> Any:
        given = handed(data)  # a draw must not change the data of the next draw

        def finished() -> Any:
            draw = _drawn(self.randomness, function, given, rng)
            return draw if then is None else then(draw)

        drawn = attempt(finished) if catches else finished()
        if isinstance(rng, Watched):
            if rng.seeded > 1:
                raise MechanismError(_TWO_FROM_ONE.format(name=self.__name__))
            rng.seeded = 0
        return drawn

    def _mapped(
        self,
        function: Callable[..., Any],
        arguments: dict[str, Any],
        data: Any,
        size: int,
        rng: np.random.Generator,
    ) -> Sequence[Any]:
        """Draw by one compiled call.

        Sizes are rounded up, so that few sizes are compiled.
        """
        jax = needed("jax", 'randomness="jax"')
        words = repr(sorted(arguments.items()))
        many = self._many.get(words)
        if many is None:
            many = jax.jit(jax.vmap(lambda data, key: function(data, key=key), in_axes=(None, 0)))
            # The repr of an array omits values, and these values may change.
            if all(type(value) in _PLAIN for value in arguments.values()):
                self._many[words] = many
        padded = 1
        while padded < size:
            padded *= _PADDED_TO
        key = jax.random.fold_in(jax.random.PRNGKey(seed_of(rng)), seed_of(rng))
        keys = jax.random.split(key, padded)
        given = data if isinstance(data, dict) else np.asarray(data)
        drawn = many(given, keys)
        if isinstance(drawn, dict):
            columns = {key: np.asarray(values)[:size] for key, values in drawn.items()}
            return [{key: values[at] for key, values in columns.items()} for at in range(size)]
        return list(np.asarray(drawn)[:size])


def one_draw(
    function: Callable[..., Any] | None = None,
    *,
    randomness: str | None = "rng",
    vmap: bool = False,
) -> Any:
    """Turn a function that returns one draw into a mechanism that returns many.

    Wrap the result in :class:`Outcomes` to declare the keys of dicts, to count exceptions as
    outcomes, or to convert each draw.

    Parameters
    ----------
    function : callable
        ``f(data, ...)`` returns one draw, which is a number, a text, an array, a list, a dict, a
        frame or None.
    randomness : {"rng", "integer", "legacy", "torch", "jax", None}, optional
        Source of the function's randomness:

        "rng"
            The function takes ``rng``, a :class:`numpy.random.Generator`. This is the default.
        "integer"
            The function takes ``seed``, a whole number below 2**32. Mutants can change noise from
            generators that the function makes by ``numpy.random.default_rng(seed)``, if the call
            uses this name.
        "legacy"
            The function draws from the global generators of numpy and of ``random``. The generators
            are seeded for each draw, and their states are restored afterwards. Mutants can change
            the noise of functions such as ``np.random.laplace()``, if the call uses such a name.
        "torch"
            The function draws from PyTorch's global generators, which are seeded for each draw, and
            also from the generators of "legacy".
        "jax"
            The function takes ``key``, a JAX key.
        None
            The function draws from its own source of entropy, which cannot be seeded. `dpaudit
            replay` then compares only the verdicts, not the counts.
    vmap : bool, optional
        For "jax": whether many draws are made at once by ``jax.jit(jax.vmap(f))``. Only a small
        number of sizes is used, so that compilation is rare.

    Returns
    -------
    callable
        A mechanism ``f(data, size, *, rng)``; a decorator if no function is given.

    Raises
    ------
    TypeError
        If the function does not take the argument that `randomness` requires, or is an `Outcomes`.

    Examples
    --------
    >>> @one_draw(randomness="legacy")
    ... def noisy_count(data):
    ...     return len(data) + np.random.laplace()
    >>> noisy_count([[1.0], [2.0]], 3, rng=np.random.default_rng(1)).shape
    (3,)
    """
    make = functools.partial(OneDraw, randomness=randomness, vmap=vmap)
    return make if function is None else make(function)


def _drawn(
    randomness: str | None, function: Callable[..., Any], data: Any, rng: np.random.Generator
) -> Any:
    """Return one draw, and pass the randomness that the function takes."""
    records = type(rng) is not np.random.Generator  # whether draws are recorded, for mutants
    if randomness == "rng":
        return function(data, rng=rng)
    if randomness is None:
        return function(data)
    number = seed_of(rng)
    if randomness == "jax":
        return function(data, key=needed("jax", 'randomness="jax"').random.PRNGKey(number))
    if randomness == "integer":
        if not records:
            return function(data, seed=number)
        with _ONE_AT_A_TIME, recorded_generators(rng):
            return function(data, seed=number)
    np.random.seed(number)  # noqa: NPY002
    random.seed(number)
    if randomness == "torch":  # another seed, because the same seed would repeat numpy's numbers
        sys.modules["torch"].manual_seed(seed_of(rng))
    with global_functions_of(rng) if records else nullcontext():
        return function(data)


@contextmanager
def _global_state_kept(randomness: str | None) -> Iterator[None]:
    """Restore the global generators afterwards if draws seed these generators."""
    if randomness not in ("legacy", "torch"):
        yield
        return
    torch = needed("torch", 'randomness="torch"') if randomness == "torch" else None
    theirs = None if torch is None else torch.random.get_rng_state()
    try:
        with _ONE_AT_A_TIME, global_generators_kept():
            yield
    finally:
        if torch is not None:
            torch.random.set_rng_state(theirs)


def _find(mechanism: OneDraw) -> str | None:
    """Return the global name of a decorated function, or None if it has no such name."""
    home = mechanism.function.__module__
    if home == "__main__" or travels_by_value(home):
        return None  # another process does not know the names of this module
    module = importlib.import_module(home)
    name = getattr(mechanism.function, "__qualname__", "")
    return name if getattr(module, name, None) is mechanism else None


# --- a mechanism followed by a fixed score of its outputs --------------------------------------


_CHECKED_SIZE = 64
"""Largest size of calls that are scored twice; the calls that check the contract are among them."""


class Scored:
    """``score(mechanism(data, size, rng=rng))``.

    By post-processing, the scores are at least as private as the outputs.

    Parameters
    ----------
    mechanism : callable
        ``f(data, size, *, rng) -> [size, ...]``.
    score : callable
        ``score(outputs) -> [size]`` returns one number for each draw, which depends only on that
        draw.
    """

    def __init__(self, mechanism: Callable[..., Any], score: Callable[[Any], Any]) -> None:
        self.mechanism, self.score = mechanism, score
        self.__name__ = f"{mechanism_name(mechanism)}, scored by {mechanism_name(score)}"
        self.dpaudit_unseeded = not is_seeded(mechanism)

    def of(self, mechanism: Callable[..., Any]) -> Scored:
        """Return another mechanism that is followed by the same score."""
        return Scored(mechanism, self.score)

    @property
    def changed(self) -> Any:
        """Number of values that a mutant changed, if the mechanism counts such changes."""
        return getattr(self.mechanism, "changed", 1)

    def __call__(self, data: Array, size: int, *, rng: np.random.Generator) -> Array:
        """Return the scores of `size` draws, shape (size,).

        Raises
        ------
        MechanismError
            If the score is not one number for each draw, or depends on other draws. Also if the
            score is NaN because an output is infinite.
        """
        outputs = self.mechanism(data, size, rng=rng)
        scores = self._scores(outputs, size)
        is_array = isinstance(outputs, np.ndarray) and outputs.dtype.kind == "f"
        if is_array and len(outputs) == size:
            infinite = np.isinf(outputs).any(axis=tuple(range(1, outputs.ndim)))
            if count := int((infinite & np.isnan(scores)).sum()):
                raise MechanismError(
                    f"{mechanism_name(self.mechanism)} returned inf in {count} of {size} draws, "
                    "and their score is NaN. Return finite numbers"
                )
        if 2 <= size <= _CHECKED_SIZE:
            half = size // 2
            alone = self._scores(outputs[:half], half)
            if not np.allclose(alone, scores[:half], rtol=1e-6, atol=1e-9, equal_nan=True):
                raise MechanismError(
                    f"score {mechanism_name(self.score)} must score each draw by itself, got "
                    "other scores for the same draws when fewer draws were passed"
                )
        return scores

    def _scores(self, outputs: Any, size: int) -> Array:
        scores = np.asarray(self.score(outputs))
        if scores.shape != (size,) or scores.dtype.kind not in "biuf":
            raise MechanismError(
                f"score {mechanism_name(self.score)} must return one number for each of {size} "
                f"draws, got {scores.dtype} of shape {scores.shape}"
            )
        return scores
