"""Search spaces.

Each search space has a function that builds pairs, and ranges of the function's arguments. Every
range is a map from the unit interval. Therefore a search makes its designs and steps in the unit
cube.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.data import digest
from dpaudit.errors import ArgumentError, PairError, RecipeError, place
from dpaudit.neighbors.pairs import NeighborPair

Point = NDArray[np.float64]
"""A point of the unit cube."""

_EXAMPLES = 64
_REASONS = 3


@dataclass(frozen=True)
class Interval:
    """Numbers from `low` to `high`, spread evenly on a linear or logarithmic scale.

    Examples
    --------
    >>> round(Interval(0.01, 100.0, log=True).at(0.5), 6)
    1.0
    """

    low: float
    high: float
    log: bool = False
    steps: ClassVar[None] = None  # infinitely many values

    def __post_init__(self) -> None:
        _validate.finite(low=self.low)
        _validate.finite(high=self.high)
        _validate.flag(log=self.log)
        if not self.low < self.high:
            raise ArgumentError(f"low must be below high = {self.high!r}, got {self.low!r}")
        if self.log and self.low <= 0:
            raise ArgumentError(f"low must be > 0 on a logarithmic scale, got {self.low!r}")

    def at(self, u: float) -> float:
        """Return the number at `u` in [0, 1]."""
        if not self.log:
            return float((1 - u) * self.low + u * self.high)
        value = math.exp((1 - u) * math.log(self.low) + u * math.log(self.high))
        return float(min(max(value, self.low), self.high))


@dataclass(frozen=True)
class Integer:
    """Whole numbers from `low` to `high`, both ends included.

    Examples
    --------
    >>> [Integer(3, 5).at(u) for u in (0.0, 0.5, 1.0)]
    [3, 4, 5]
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        _validate.integer(-_validate.LARGEST_INTEGER, low=self.low)
        _validate.integer(-_validate.LARGEST_INTEGER, high=self.high)
        if not self.low < self.high:
            raise ArgumentError(
                f"low must be below high = {self.high!r}, got {self.low!r}"
                + ". Use Choice((value,)) for a single value" * (self.low == self.high)
            )

    @property
    def steps(self) -> int:
        """Number of values."""
        return int(self.high) - int(self.low) + 1

    def at(self, u: float) -> int:
        """Return the number at `u` in [0, 1]."""
        return int(self.low) + _cell(u, self.steps)


@dataclass(frozen=True)
class Choice:
    """One of several values that have no order."""

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        held = _validate.items("a sequence of values", values=self.values)
        object.__setattr__(self, "values", held)

    @property
    def steps(self) -> int:
        """Number of values."""
        return len(self.values)

    def at(self, u: float) -> Any:
        """Return the value at `u` in [0, 1]."""
        return self.values[_cell(u, self.steps)]


@dataclass(frozen=True)
class Magnitude:
    """Numbers of either sign from `least` to `most` in size, evenly spread in the logarithm.

    This range suits data of unknown size. Half of the unit interval holds numbers below
    ``sqrt(least * most)``.

    Examples
    --------
    >>> [round(Magnitude(0.01, 100.0).at(u), 2) for u in (0.0, 0.25, 0.5, 0.75, 1.0)]
    [-100.0, -0.99, 0.0, 0.99, 100.0]
    """

    least: float
    most: float
    steps: ClassVar[None] = None  # infinitely many values

    def __post_init__(self) -> None:
        _validate.positive(least=self.least)
        _validate.positive(most=self.most)
        if not self.least < self.most:
            raise ArgumentError(f"least must be below most = {self.most!r}, got {self.least!r}")

    def at(self, u: float) -> float:
        """Return the number at `u` in [0, 1]."""
        v = 2 * u - 1
        grown = math.expm1(abs(v) * math.log(self.most / self.least))
        return math.copysign(min(grown / (self.most / self.least - 1), 1.0) * self.most, v)


Range = Interval | Integer | Choice | Magnitude


def _cell(u: float, steps: int) -> int:
    return min(int(u * steps), steps - 1)


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """A set of pairs in which a search looks for the worst pair.

    Parameters
    ----------
    build : callable
        Function ``build(**parameters) -> NeighborPair``. The function is a recipe of
        :mod:`dpaudit.neighbors` with some arguments bound, or your own function. `build` may take
        an argument `rng`. If `build` takes `rng`, every trial gets a generator in the same state,
        so that trials differ only by their parameters. `build` may raise ``PairError`` or
        ``ArgumentError`` for parameters that give no pair.
    parameters : dict
        The ranges of the arguments to search, each an :class:`Interval`, :class:`Magnitude`,
        :class:`Integer` or :class:`Choice`.
    name : str, optional
        Name in reports. The default is the name of `build`.

    Examples
    --------
    >>> from functools import partial
    >>> import numpy as np
    >>> from dpaudit.neighbors import far_user
    >>> ranges = {"high": Interval(0.1, 10, log=True)}
    >>> space = SearchSpace(partial(far_user, n_users=20), ranges)
    >>> space.pair({"high": 2.0}, rng=np.random.default_rng(1)).recipe
    'far_user(low=0, high=2)'
    """

    build: Callable[..., NeighborPair]
    parameters: Mapping[str, Range]
    name: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        _validate.function("a function that returns a pair", build=self.build)
        words = "a dict from names of arguments to an Interval, Integer or Choice"
        _validate.instance(Mapping, words, parameters=self.parameters)  # type: ignore[type-abstract]
        _validate.text(empty=True, name=self.name)
        object.__setattr__(self, "parameters", dict(self.parameters))
        object.__setattr__(self, "name", self.name or _name_of(self.build))
        if not self.parameters:
            raise ArgumentError(f"parameters of {self.name} must hold at least one range, got none")
        for key, values in self.parameters.items():
            if not isinstance(values, Range):
                raise TypeError(f"{key} must be an Interval, Integer or Choice, got {values!r}")
        if "rng" in self.parameters:
            raise ArgumentError(
                "parameters must not contain rng. Every call of build gets rng anyway"
            )
        try:
            known = inspect.signature(self.build)
            known.bind(**self.parameters, **self._generator(None))
        except ValueError:  # some built-in functions have no signature
            return
        except TypeError as error:
            raise ArgumentError(
                f"parameters must be all arguments of {self.name} "
                f"({', '.join(known.parameters)}) that are not bound with partial, but the "
                f"call fails: {error}"
            ) from None

    def _generator(self, rng: np.random.Generator | None) -> dict[str, Any]:
        """Return a dict with the generator as `rng` if `build` takes `rng`, else an empty dict."""
        try:
            return {"rng": rng} if "rng" in inspect.signature(self.build).parameters else {}
        except ValueError:
            return {}

    @property
    def ranges(self) -> tuple[Range, ...]:
        """The ranges, in the alphabetical order of their names."""
        return tuple(self.parameters.values())

    @property
    def size(self) -> float:
        """Number of different parameters; infinite if a range is continuous."""
        return math.prod(math.inf if r.steps is None else r.steps for r in self.ranges)

    def snapped(self, point: Point) -> Point:
        """Return a point of the unit cube, after moving discrete coordinates to cell centres."""
        return np.array(
            [
                float(u) if r.steps is None else (_cell(float(u), r.steps) + 0.5) / r.steps
                for u, r in zip(point, self.ranges, strict=True)
            ]
        )

    def at(self, point: Point) -> dict[str, Any]:
        """Return the parameters at a point of the unit cube."""
        both = zip(point, self.parameters.items(), strict=True)
        return {key: values.at(float(u)) for u, (key, values) in both}

    def pair(self, parameters: Mapping[str, Any], *, rng: np.random.Generator) -> NeighborPair:
        """Return the pair.

        Raise ``ArgumentError`` if the parameters give no pair. Any other exception of `build` is a
        mistake in `build` and becomes a :class:`~dpaudit.RecipeError`.
        """
        try:
            pair = self.build(**parameters, **self._generator(rng))
        except ArgumentError:
            raise
        except (Exception, SystemExit) as error:
            raise RecipeError(
                f"{self.name} raised {type(error).__name__}: {error} "
                f"({place(error)}built with {in_words(parameters)})"
            ) from error
        if not isinstance(pair, NeighborPair):
            raise TypeError(f"build must return a NeighborPair, got {type(pair).__name__}")
        if digest(pair.left) == digest(pair.right):
            raise PairError("the two sides of a pair must differ, got equal sides")
        return pair

    def example(self, *, rng: np.random.Generator) -> NeighborPair:
        """Return some valid pair of the space, which is the centre if the centre is valid.

        Raises
        ------
        ArgumentError
            If none of the tried parameters gives a valid pair. The message gives the reasons.
        """
        entropy = int(rng.integers(2**63))
        reasons = []
        design = design_points(len(self.ranges), _EXAMPLES, rng=rng)
        for point in itertools.chain([np.full(len(self.ranges), 0.5)], design):
            parameters = self.at(point)
            try:
                return self.pair(parameters, rng=np.random.default_rng(entropy))
            except ArgumentError as error:
                reasons.append(f"{in_words(parameters)}: {error}")
        raise no_valid_pair(self.name, reasons)


def no_valid_pair(name: str, reasons: list[str]) -> ArgumentError:
    """Return the error for a search space in which no tried parameters gave a valid pair."""
    return ArgumentError(
        f"no parameters of the search space {name} give a valid pair, of {len(reasons)} "
        f"that were tried. The first reasons are: {'; '.join(reasons[:_REASONS])}"
    )


def in_words(parameters: Mapping[str, Any]) -> str:
    """Return parameters as ``name=value, ...``."""
    return ", ".join(
        f"{key}={value:.6g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in parameters.items()
    )


def design_points(dimension: int, count: int, *, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a space-filling design in the unit cube, shape (count, dimension).

    The design is a Sobol sequence, shifted by one random vector modulo 1 (Cranley and Patterson
    1976). If `count` is a power of two, every coordinate takes equally spaced values, 1/count
    apart. So every interval of length 1/count for one parameter contains a point.
    """
    from scipy.stats import qmc  # imported late, because it is slow and only searches need it

    whole = 2 ** max(count - 1, 0).bit_length()
    points = qmc.Sobol(dimension, scramble=False).random(whole)[:count]
    return np.asarray((points + rng.random(dimension)) % 1.0)


def _name_of(build: Callable[..., Any]) -> str:
    """Return the name of a function, and the keywords that a ``partial`` bound."""
    bound: dict[str, Any] = {}
    while isinstance(build, functools.partial):
        bound = {**build.keywords, **bound}
        build = build.func
    name = str(getattr(build, "__name__", type(build).__name__))
    return f"{name}({in_words(bound)})" if bound else name
