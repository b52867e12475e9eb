"""Functions that return one draw, as most code does, made mechanisms that return many."""

from __future__ import annotations

import functools
import importlib
import random
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from dpaudit import _validate
from dpaudit.data import handed
from dpaudit.errors import ArgumentError, MechanismError
from dpaudit.mechanisms.hints import by_its_seed, lacks
from dpaudit.mechanisms.legacy import global_functions_of
from dpaudit.mechanisms.outcomes import (
    ERRORS,
    Array,
    Then,
    as_array,
    attempt,
    checked_keys,
    checked_then,
    unbound,
)
from dpaudit.mechanisms.protocols import mechanism_name
from dpaudit.mechanisms.shipping import travels_by_value
from dpaudit.mechanisms.streams import (
    Watched,
    global_generators_kept,
    recorded_generators,
    seed_of,
)

SEEDS = ("numpy", "integer", "legacy", "torch", "jax")

_OTHER_SEEDS = (
    'seed="legacy" is for noise of numpy\'s global generator, "integer" for a function that takes '
    'seed, "torch" and "jax" for theirs, None for noise that cannot be seeded'
)

_TWO_FROM_ONE = (
    "{name} builds two generators from one seed in one draw. From a number, both draw the same "
    "noise; from a generator, which default_rng returns as it is, they do not. Hand it a number: "
    'one_draw(f, seed="integer") for f(data, seed=...)'
)

_ONE_AT_A_TIME = threading.RLock()  # threads that draw share the global generators
_PADDED_TO = 4  # sizes are padded to powers of this: few compilations, little waste


class OneDraw:
    """A function that returns one draw, as a mechanism; see :func:`one_draw`."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        seed: str | None = "numpy",
        keys: Sequence[Hashable] | None = None,
        errors: str = "raise",
        then: Then | None = None,
        vmap: bool = False,
    ) -> None:
        _validate.function("a function that returns one draw, f(data)", function=function)
        if seed is not None and not (isinstance(seed, str) and seed in SEEDS):
            raise ArgumentError(
                f"seed must be one of {', '.join(map(repr, SEEDS))} or None, got "
                f"{_validate.shown(seed)}"
            )
        if _validate.flag(vmap=vmap) and seed != "jax":
            raise ArgumentError(f'vmap goes with seed="jax", got seed={seed!r}')
        self.function, self.seed = function, seed
        self.keys, self.then = checked_keys(keys), checked_then(then)
        self.errors = _validate.choice(ERRORS, errors=errors)
        wanted = {"numpy": "rng", "integer": "seed", "jax": "key"}.get(seed or "")
        if wanted and lacks(function, wanted):
            raise TypeError(
                f"{mechanism_name(function)} takes no {wanted}, which seed={seed!r} hands to it: "
                f"{by_its_seed(function) or _OTHER_SEEDS}"
            )
        self.vmap = vmap
        self.dpaudit_unseeded = seed is None
        functools.update_wrapper(self, function, updated=())
        self.__name__ = mechanism_name(function)
        self._many: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        return f"one_draw({self.__name__}, seed={self.seed!r})"

    def __reduce__(self) -> Any:
        # What jax compiled stays behind. The name in its module is that of the mechanism, not of
        # the function, so the function is found through the mechanism.
        found = _find(self)
        if found is not None:
            return found
        return functools.partial(OneDraw, **self._options), (self.function,)

    @property
    def _options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("seed", "keys", "errors", "then", "vmap")}

    def declaring(self, keys: Sequence[Hashable]) -> OneDraw:
        """Return the same mechanism with the keys that its draws may have."""
        return OneDraw(self.function, **{**self._options, "keys": keys})

    def of(self, function: Callable[..., Any]) -> OneDraw:
        """Return another function, made a mechanism in the same way."""
        return OneDraw(function, **self._options)

    def __call__(
        self, data: Any, size: int, *, rng: np.random.Generator, **arguments: Any
    ) -> Array:
        """Return `size` independent draws; other arguments are those of the function."""
        if arguments:  # of a partial around this mechanism
            bound = self.of(functools.partial(self.function, **arguments))
            return bound(data, size, rng=rng)
        if self.vmap:
            return self._mapped(data, size, rng)
        if self.seed == "numpy" and type(rng) is np.random.Generator:
            rng = Watched(rng.bit_generator)
        with _seeding(self.seed) as draw:
            run = functools.partial(draw, self.function)
            draws = [self._one(run, data, rng) for _ in range(size)]
        return unbound(draws, as_array(draws, self.keys, catches=self.errors == "outcome"))

    def _one(self, run: Callable[..., Any], data: Any, rng: np.random.Generator) -> Any:
        given = handed(data)  # what one draw does to the data, the next must not see

        def finished() -> Any:
            draw = run(given, rng)
            return draw if self.then is None else self.then(draw)

        found = attempt(finished) if self.errors == "outcome" else finished()
        if isinstance(rng, Watched):
            if rng.seeded > 1:
                raise MechanismError(_TWO_FROM_ONE.format(name=self.__name__))
            rng.seeded = 0
        return found

    def _mapped(self, data: Any, size: int, rng: np.random.Generator) -> Array:
        """Draw by one compiled call; sizes are padded to few, each of which compiles once."""
        jax = _imported("jax")
        if self._many is None:
            many = jax.vmap(lambda data, key: self.function(data, key=key), in_axes=(None, 0))
            self._many = jax.jit(many)
        padded = 1
        while padded < size:
            padded *= _PADDED_TO
        key = jax.random.fold_in(jax.random.PRNGKey(seed_of(rng)), seed_of(rng))
        keys = jax.random.split(key, padded)
        drawn = self._many(np.asarray(data), keys)
        if isinstance(drawn, dict):
            columns = {key: np.asarray(values)[:size] for key, values in drawn.items()}
            draws = [{key: values[at] for key, values in columns.items()} for at in range(size)]
            return as_array(draws, self.keys, catches=self.errors == "outcome")
        array = np.asarray(drawn)[:size]
        if self.then is not None:
            return as_array([self.then(draw) for draw in array], self.keys)
        return array


def one_draw(
    function: Callable[..., Any] | None = None,
    *,
    seed: str | None = "numpy",
    keys: Sequence[Hashable] | None = None,
    errors: str = "raise",
    then: Then | None = None,
    vmap: bool = False,
) -> Any:
    """Make a function that returns one draw a mechanism that returns many.

    Parameters
    ----------
    function : callable
        ``f(data, ...)`` returns one draw: a number, a text, an array, a list, a dict, a frame or
        None.
    seed : {"numpy", "integer", "legacy", "torch", "jax", None}, optional
        Where its randomness comes from:

        "numpy"
            It takes ``rng``, a :class:`numpy.random.Generator`.
        "integer"
            It takes ``seed``, a whole number below 2**32. Mutants are made of the noise that it
            draws from generators of ``numpy.random.default_rng(seed)``, called by that name.
        "legacy"
            The global generators of numpy and of ``random``, which are seeded for each draw and
            left as they were. Mutants are made of the noise that ``np.random.laplace()`` and the
            like draw, called by these names.
        "torch"
            PyTorch's global generators, seeded for each draw, and those of "legacy".
        "jax"
            It takes ``key``, a JAX key.
        None
            An entropy source of its own, which cannot be seeded: `dpaudit replay` then compares
            verdicts and not counts.
    keys, errors, then : optional
        See :class:`Outcomes`.
    vmap : bool, optional
        With "jax": draw many at once by ``jax.jit(jax.vmap(f))``, for few sizes only, so that
        little is compiled.

    Returns
    -------
    callable
        ``f(data, size, *, rng)``; a decorator, where no function is given.

    Examples
    --------
    >>> @one_draw(seed="legacy")
    ... def noisy_count(data):
    ...     return len(data) + np.random.laplace()
    >>> noisy_count([[1.0], [2.0]], 3, rng=np.random.default_rng(1)).shape
    (3,)
    """
    options: dict[str, Any] = {
        "seed": seed,
        "keys": keys,
        "errors": errors,
        "then": then,
        "vmap": vmap,
    }
    if function is None:
        return functools.partial(OneDraw, **options)
    return OneDraw(function, **options)


@contextmanager
def _seeding(seed: str | None) -> Iterator[Callable[..., Any]]:
    """Yield what calls a function once; global generators are left as they were found."""
    if seed == "numpy":
        yield lambda function, data, rng: function(data, rng=rng)
    elif seed == "integer":

        def by_number(function: Callable[..., Any], data: Any, rng: np.random.Generator) -> Any:
            number = seed_of(rng)
            if type(rng) is np.random.Generator:
                return function(data, seed=number)
            with _ONE_AT_A_TIME, recorded_generators(rng):
                return function(data, seed=number)

        yield by_number
    elif seed is None:
        yield lambda function, data, rng: function(data)
    elif seed == "jax":
        jax = _imported("jax")
        yield lambda function, data, rng: function(data, key=jax.random.PRNGKey(seed_of(rng)))
    else:
        torch = _imported("torch") if seed == "torch" else None
        theirs = None if torch is None else torch.random.get_rng_state()

        def seeded(function: Callable[..., Any], data: Any, rng: np.random.Generator) -> Any:
            number = seed_of(rng)
            np.random.seed(number)  # noqa: NPY002
            random.seed(number)
            if torch is not None:  # a seed of its own: it has numpy's generator, and so its numbers
                torch.manual_seed(seed_of(rng))
            if type(rng) is np.random.Generator:
                return function(data)
            with global_functions_of(rng):  # it records what is drawn, for mutants
                return function(data)

        try:
            with _ONE_AT_A_TIME, global_generators_kept():
                yield seeded
        finally:
            if torch is not None:
                torch.random.set_rng_state(theirs)


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MechanismError(
            f'seed="{name}" needs the package {name}, which is not installed here: '
            f"pip install {name}"
        ) from error


def _find(mechanism: OneDraw) -> str | None:
    """Return the global name under which a decorated function is found; None where it is not."""
    home = mechanism.function.__module__
    if home == "__main__" or travels_by_value(home):
        return None  # another process does not know its names
    module = importlib.import_module(home)
    name = getattr(mechanism.function, "__qualname__", "")
    return name if getattr(module, name, None) is mechanism else None
