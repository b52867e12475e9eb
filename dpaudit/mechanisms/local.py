"""What an adversary sees of clients that apply a local randomiser, or of one client over time.

A local randomiser is a mechanism ``f(value, size, *, rng)`` of one client's value. In the shuffle
model, the adversary sees the reports of all clients without their order. With secure aggregation,
the adversary sees only their sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.data import content, is_frame
from dpaudit.errors import ArgumentError, MechanismError
from dpaudit.mechanisms.outcomes import as_array
from dpaudit.mechanisms.protocols import mechanism_name

Array = NDArray[Any]

_ALL = "all"


def _drawn(draws: Any) -> Array:
    if isinstance(draws, Mapping):
        raise MechanismError("a randomiser must return an array or a list of reports, got a dict")
    return draws if isinstance(draws, np.ndarray) else as_array(draws)


class _Clients:
    """A mechanism on a dataset of clients, each of which applies the same local randomiser."""

    _words = ""

    def __init__(self, randomizer: Any) -> None:
        _validate.function("a function f(value, size, *, rng)", randomizer=randomizer)
        self.function = randomizer
        self.__name__ = f"{self._words} {mechanism_name(randomizer)}"

    def _reports(self, data: Any, size: int, rng: np.random.Generator) -> Array:
        """Return the reports of all clients, shape [size, clients, ...].

        The randomiser is called once for each different value.
        """
        if is_frame(data) or isinstance(data, Mapping):
            raise MechanismError(
                f"{self.__name__} must get an array or a list with one value for each client, got "
                f"a {type(data).__name__}"
            )
        values = list(data)
        if not values:
            raise MechanismError(f"{self.__name__} must get at least one client, got none")
        places: dict[Any, list[int]] = {}
        for at, value in enumerate(values):
            places.setdefault(content(value), []).append(at)
        found: list[Any] = [None] * len(values)
        for held in places.values():
            drawn = _drawn(self.function(values[held[0]], size * len(held), rng=rng))
            if len(drawn) != size * len(held):
                raise MechanismError(
                    f"{mechanism_name(self.function)} must return one report for each draw, got "
                    f"{len(drawn)} for {size * len(held)}"
                )
            for at, part in zip(held, np.split(drawn, len(held)), strict=True):
                found[at] = part
        if len({(part.shape, part.dtype.kind == "O") for part in found}) > 1 or any(
            part.dtype.kind not in "biufcUS" for part in found
        ):
            raise MechanismError(
                f"{mechanism_name(self.function)} must return reports of one shape, numbers or "
                "texts, for all values"
            )
        return np.stack(found, axis=1)


class Shuffled(_Clients):
    """The shuffle model: the adversary sees the reports of all clients, without their order.

    Parameters
    ----------
    randomizer : callable
        Local randomiser ``f(value, size, *, rng)`` that returns `size` independent reports, each a
        number, a text, or an array of numbers. The data of the mechanism are an array or a list
        with one value for each client.
    outcomes : sequence, optional
        All reports that are possible. If given, the output is the number of reports of each kind,
        which is smaller than the sorted list of all reports.

    Examples
    --------
    >>> def report(value, size, *, rng):
    ...     return np.where(rng.random(size) < 0.75, value, 1 - value)
    >>> counts = Shuffled(report, outcomes=[0, 1])
    >>> counts(np.array([0, 1, 1]), 2, rng=np.random.default_rng(0)).sum(axis=1)
    array([3, 3])
    """

    _words = "shuffled"

    def __init__(self, randomizer: Any, outcomes: Sequence[Any] | None = None) -> None:
        super().__init__(randomizer)
        self.outcomes = outcomes
        if outcomes is not None:
            held = _validate.items("a list of all possible reports", outcomes=outcomes)
            if len({content(one) for one in held}) < len(held):
                raise ArgumentError(f"outcomes must be different from each other, got {held!r}")
            self.outcomes = held

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return the sorted reports of all clients, or the number of reports of each kind."""
        reports = self._reports(data, size, rng)
        if self.outcomes is None:
            if reports.ndim == 2:
                return np.sort(reports, axis=1)
            flat = reports.reshape(*reports.shape[:2], -1)
            order = np.lexsort(np.moveaxis(flat, -1, 0)[::-1], axis=-1)
            return np.take_along_axis(
                reports, order.reshape(*order.shape, *(1,) * (reports.ndim - 2)), axis=1
            )
        if reports.ndim != 2:
            raise MechanismError(
                "outcomes must be None unless a report is one number or text, got reports of shape "
                f"{reports.shape[2:]}"
            )
        counts = np.stack([(reports == one).sum(axis=1) for one in self.outcomes], axis=1)
        if (counts.sum(axis=1) != reports.shape[1]).any():
            strange = reports[~np.isin(reports, np.array(self.outcomes))][0]
            raise MechanismError(
                f"outcomes must hold all possible reports, got the report {strange!r}"
            )
        return counts


class Summed(_Clients):
    """Secure aggregation: the adversary sees only the sum of the reports of all clients.

    Parameters
    ----------
    randomizer : callable
        Local randomiser ``f(value, size, *, rng)`` that returns `size` independent reports, each a
        number or an array of numbers.

    Examples
    --------
    >>> def noisy(value, size, *, rng):
    ...     return value + rng.normal(size=size)
    >>> Summed(noisy)(np.zeros(5), 3, rng=np.random.default_rng(0)).shape
    (3,)
    """

    _words = "sum of"

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return the sum of the reports of all clients."""
        return np.asarray(self._reports(data, size, rng).sum(axis=1))


class Longitudinal:
    """All reports that one client sends over time, of which all or one are visible.

    Use it with the claim :class:`dpaudit.LongitudinalDP`, which says what is visible.

    Parameters
    ----------
    mechanism : callable
        ``f(value, size, *, rng)`` returns `size` independent sequences of reports, an array [size,
        reports, ...].

    Examples
    --------
    >>> def walk(value, size, *, rng):
    ...     return value + rng.normal(size=(size, 3))
    >>> Longitudinal(walk)((1, 5.0, 3), 2, rng=np.random.default_rng(0)).round(1)
    array([[0. , 4.9, 0. ],
           [0. , 4.5, 0. ]])
    """

    def __init__(self, mechanism: Any) -> None:
        _validate.function("a function f(value, size, *, rng)", mechanism=mechanism)
        self.function = mechanism
        self.__name__ = mechanism_name(mechanism)

    def __call__(self, data: tuple[Any, Any, int], size: int, *, rng: np.random.Generator) -> Array:
        """Return the reports; those that are not visible are 0 or an empty text."""
        visible, value, count = data
        reports = np.array(_drawn(self.function(value, size, rng=rng)))
        if reports.ndim < 2:
            raise MechanismError(
                f"{self.__name__} must return an array [size, reports, ...], got shape "
                f"{reports.shape}"
            )
        if reports.shape[1] != count:
            raise MechanismError(
                f"{self.__name__} must return the {count} claimed reports, got {reports.shape[1]}"
            )
        if visible != _ALL:
            hidden = np.arange(reports.shape[1]) != visible
            reports[:, hidden] = np.zeros(1, reports.dtype)[0]
        return reports
