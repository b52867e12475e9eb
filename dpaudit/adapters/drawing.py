"""Parts that all adapters share.

Each draw is one release, with its own input and result.
"""

from __future__ import annotations

import functools
import random
import warnings
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dpaudit import _validate
from dpaudit.data import handed, is_frame
from dpaudit.errors import ArgumentError, MechanismError
from dpaudit.mechanisms import global_generators_kept, seed_of

Given = Callable[[Any], Any] | str | int
Release = Callable[[Any, np.random.Generator], Any]

_OURS = ("data", "size", "rng")


class Drawn:
    """A mechanism that makes one release for each draw.

    Parameters
    ----------
    name : str
        Name in reports.
    prepare : callable
        ``prepare(**options)`` returns a function ``release(given, rng)``, which makes one draw.
        ``prepare`` is called once for each call of the mechanism.
    given : callable, str or int, optional
        Input of a release. The input may be a function of the data. The input may also be a column
        of a frame or a key of a dict, which is passed as an array. By default, the input is the
        data. The input is made again for each draw, so that changes made by one release do not
        reach the next.
    then : callable, optional
        A fixed function of a release. The value of this function is the draw. By default, the draw
        is the release itself.
    seeded : bool
        Whether `rng` determines the release.
    quiet : str, optional
        Regular expression of expected warnings, which are suppressed.
    called : callable, optional
        Function whose call ``called(items, random_state=..., **options)`` is a release. A program
        without dpaudit calls it directly.
    """

    def __init__(
        self,
        name: str,
        prepare: Callable[..., Release],
        *,
        given: Given | None = None,
        then: Callable[[Any], Any] | None = None,
        seeded: bool,
        quiet: str | None = None,
        called: Callable[..., Any] | None = None,
    ) -> None:
        self.__name__ = _validate.text(name=name)
        self.prepare = _validate.function("a function prepare(**options)", prepare=prepare)
        if isinstance(given, str):
            _validate.text(empty=True, given=given)
        elif given is not None and not callable(given):
            _validate.integer(-_validate.LARGEST_INTEGER, given=given)
        if then is not None:
            _validate.function("a function of one release", then=then)
        if called is not None:
            _validate.function("a function that makes one release", called=called)
        self.given, self.then, self.called = given, then, called
        self.dpaudit_unseeded = not _validate.flag(seeded=seeded)
        self.quiet = None if quiet is None else _validate.text(quiet=quiet)

    def __repr__(self) -> str:
        return self.__name__

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator, **options: Any) -> Any:
        """Return a list of `size` independent draws."""
        with warnings.catch_warnings(), apart(rng):
            if self.quiet is not None:
                warnings.filterwarnings("ignore", self.quiet)
            release = self.prepare(**options)
            draws = (release(self._given(handed(data)), rng) for _ in range(size))
            return [draw if self.then is None else self.then(draw) for draw in draws]

    def _given(self, data: Any) -> Any:
        if self.given is None:
            return data
        return self.given(data) if callable(self.given) else column(data, self.given)


def with_options(mechanism: Drawn, options: dict[str, Any]) -> functools.partial[Any]:
    """Return a mechanism whose options are keywords, which ``mutants.scaled`` can multiply.

    Raises
    ------
    ArgumentError
        If the options contain an option that dpaudit itself passes to a mechanism.
    """
    for name in _OURS:
        if name in options:
            raise ArgumentError(
                f"options must not contain {name}, because dpaudit itself passes this option"
            )
    return functools.partial(mechanism, **options)


def column(data: Any, name: Hashable) -> Any:
    """Return a column of a frame, or the value of a key of a dict, as an array."""
    if not (is_frame(data) or isinstance(data, dict)):
        raise MechanismError(
            f"given={name!r} must be a column of a frame or a key of a dict, got data of "
            f"type {type(data).__name__}. Pass a function of the data instead"
        )
    return np.asarray(data[name])


def flat(given: Any) -> Any:
    """Return all items of all users one after the other, if the data are an array or a list."""
    if isinstance(given, list | tuple):
        return np.concatenate([np.ravel(user) for user in given]) if given else np.empty(0)
    return given.ravel() if isinstance(given, np.ndarray) else given


@contextmanager
def apart(rng: np.random.Generator) -> Iterator[None]:
    """Seed the global generators of numpy and of ``random``; restore both states afterwards.

    Some packages draw from these generators. If the states were restored without a new seed, every
    call would draw the same numbers.
    """
    words = [seed_of(rng) for _ in range(8)]
    with global_generators_kept():
        np.random.seed(words)  # noqa: NPY002
        random.seed(repr(words))
        yield


def legacy(rng: np.random.Generator) -> np.random.RandomState:
    """Return a ``numpy.random.RandomState``, seeded from `rng` with 256 bits."""
    return np.random.RandomState([seed_of(rng) for _ in range(8)])
