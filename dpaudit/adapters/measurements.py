"""OpenDP and PyDP: measurements, queries and algorithms as mechanisms."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit import _validate
from dpaudit.adapters.drawing import Drawn, Given, Release, flat, with_options
from dpaudit.data import is_frame
from dpaudit.errors import MechanismError
from dpaudit.mechanisms import mechanism_name, needed

Then = Callable[[Any], Any]

_KINDS: dict[str, type] = {"f": float, "i": int, "u": int, "b": bool, "S": str}


# --- OpenDP ---


def opendp(
    measurement: Any,
    *,
    given: Given | None = None,
    then: Then | None = None,
    at_once: bool = False,
    **parameters: Any,
) -> Callable[..., Any]:
    """Make a measurement of OpenDP a mechanism.

    Parameters
    ----------
    measurement : opendp.Measurement or callable
        Or a function that makes it, ``make(**parameters)``, which is called once. Measurements
        cannot be sent to other processes, functions can.
    given, then : optional
        What it is handed of the data, and what is kept of a release; see :class:`Drawn`. Arrays
        and lists are handed over in the kind that the measurement takes: one number, or a list of
        all items of all users.
    at_once : bool, optional
        Draw all draws of a call by one release of a vector that holds the value `size` times. This
        is many times as fast. It needs a measurement that adds independent noise to each entry of
        a vector, and data of one number. Default False.
    **parameters
        Of the function that makes it, such as ``scale``, for ``mutants.scaled(scale=0.5)``.

    Returns
    -------
    callable
        ``f(data, size, *, rng)``. OpenDP draws from the operating system and cannot be seeded.

    Raises
    ------
    TypeError
        For what is neither a measurement nor a function; for parameters of a measurement.

    Examples
    --------
    >>> class Laplace:  # as OpenDP's
    ...     input_carrier_type = "f64"
    ...     def map(self, d_in): return d_in
    ...     def __call__(self, value): return value + 1.0
    >>> opendp(Laplace())(np.array([2.0]), 2, rng=np.random.default_rng(0))
    [3.0, 3.0]
    """
    _validate.function("one of OpenDP, or a function that makes one", measurement=measurement)
    _validate.flag(at_once=at_once)
    is_made = hasattr(measurement, "map")
    if is_made and parameters:
        raise TypeError(
            f"parameters are those of a function that makes the measurement, got "
            f"{', '.join(parameters)} with a measurement"
        )
    name = "opendp" if is_made else f"opendp {mechanism_name(measurement)}"
    measured = _Measured(measurement, is_made)
    kind = _AtOnce if at_once else Drawn
    return with_options(kind(name, measured, given=given, then=then, seeded=False), parameters)


class _Measured:
    """Makes a measurement for each set of parameters once."""

    def __init__(self, make: Any, is_made: bool) -> None:
        self.make, self.is_made = make, is_made
        self.made: dict[str, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "made": {}}  # pointers into OpenDP stay behind

    def of(self, parameters: dict[str, Any]) -> Any:
        """Return the measurement of some parameters."""
        if self.is_made:
            return self.make
        key = repr(sorted(parameters.items()))
        if key not in self.made:
            self.made[key] = self.make(**parameters)
        return self.made[key]

    def __call__(self, **parameters: Any) -> Release:
        measurement = self.of(parameters)
        carrier = str(measurement.input_carrier_type)

        def release(given: Any, rng: np.random.Generator) -> Any:
            return measurement(_carried(given, carrier))

        return release


class _AtOnce(Drawn):
    """All draws of a call are one release of a vector."""

    prepare: _Measured

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator, **options: Any) -> Any:
        measurement = self.prepare.of(options)
        carrier = str(measurement.input_carrier_type)
        inner = re.fullmatch(r"Vec<(.*)>", carrier)
        values = np.ravel(self._given(data))
        if inner is None or len(values) != 1:
            raise MechanismError(
                "at_once needs a measurement of vectors and data of one number, got "
                f"{carrier} and {len(values)} numbers"
            )
        draws = measurement([_carried(values, inner[1])] * size)  # OpenDP cannot be seeded
        return [draw if self.then is None else self.then(draw) for draw in draws]


def _carried(data: Any, carrier: str) -> Any:
    """Return data in the kind that a measurement takes; as they are, where it is none of these."""
    inner = re.fullmatch(r"Vec<(.*)>", carrier)
    kind = _KINDS.get((inner[1] if inner else carrier)[:1])
    if kind is None or is_frame(data) or isinstance(data, dict):
        return data
    values = [kind(value) for value in np.ravel(flat(data)).tolist()]
    if inner:
        return values
    if len(values) != 1:
        raise MechanismError(
            f"the measurement takes one {carrier}, and the data hold {len(values)} values: give "
            "given=function of the data"
        )
    return values[0]


def opendp_query(
    query: Callable[[Any], Any],
    *,
    contributions: int,
    given: Given | None = None,
    then: Then | None = None,
    **loss: float,
) -> Callable[..., Any]:
    """Make a query of OpenDP's context on a frame a mechanism.

    Parameters
    ----------
    query : callable
        ``query(context)``, such as ``lambda c: c.query().select(dp.len())``.
    contributions : int
        Rows that a user has at most.
    given, then : optional
        See :class:`Drawn`. By default a frame of polars is what it is, one of pandas is made one;
        of a release of one cell the number is kept.
    **loss : float
        ``epsilon``, ``delta``, ``rho``: as ``dp.loss_of`` takes them.

    Returns
    -------
    callable
        ``f(data, size, *, rng)``; see :func:`opendp`. Each draw is the same resolved measurement
        on the same data, which is what one release of a new context is.

    Raises
    ------
    MechanismError
        By a call, where OpenDP or the version of polars that it needs is not installed:
        ``pip install 'opendp[polars]'``.
    """
    _validate.function("a function query(context)", query=query)
    _validate.integer(1, contributions=contributions)
    for name, value in loss.items():
        _validate.nonnegative(**{name: value})
    prepare = functools.partial(_prepared_query, query=query, contributions=contributions)
    kept = _cell if then is None else then
    return with_options(
        Drawn("opendp_query", prepare, given=given, then=kept, seeded=False), dict(loss)
    )


def _prepared_query(query: Callable[[Any], Any], contributions: int, **loss: float) -> Release:
    dp = needed("opendp.prelude", package="'opendp[polars]'")
    polars = needed("polars", package="'opendp[polars]'")
    dp.enable_features("contrib")
    made: list[Any] = []

    def release(given: Any, rng: np.random.Generator) -> Any:
        frame = given if isinstance(given, polars.DataFrame) else polars.from_pandas(given)
        lazy = frame.lazy()
        if not made:  # settled by the schema, not by what users hold
            context = dp.Context.compositor(
                data=lazy,
                privacy_unit=dp.unit_of(contributions=contributions),
                privacy_loss=dp.loss_of(**loss),
                split_evenly_over=1,
            )
            made.append(query(context).resolve())
        return made[0](lazy).collect()

    return release


def _cell(release: Any) -> Any:
    return release.item() if release.shape == (1, 1) else release


# --- PyDP ---


def pydp(
    algorithm: Callable[..., Any],
    *,
    release: Callable[[Any, Any], Any] | None = None,
    given: Given | None = None,
    then: Then | None = None,
    **options: Any,
) -> Callable[..., Any]:
    """Make an algorithm of PyDP, which is ``python-dp`` on PyPI, a mechanism.

    Parameters
    ----------
    algorithm : callable
        ``algorithm(**options)`` makes it, such as ``laplacian.BoundedMean``; made anew for each
        draw, as its budget is spent once.
    release : callable, optional
        ``release(made, values)``; by default ``made.quick_result(values)``.
    given, then : optional
        See :class:`Drawn`. By default a list of all items of all users.
    **options
        Of the algorithm, such as ``epsilon``, ``lower_bound`` and ``dtype``.

    Returns
    -------
    callable
        ``f(data, size, *, rng)``. PyDP has an entropy source of its own and cannot be seeded.
    """
    _validate.function("a function that makes an algorithm", algorithm=algorithm)
    if release is not None:
        _validate.function("a function release(made, values)", release=release)
    prepare = functools.partial(_prepared_pydp, algorithm, release)
    name = f"pydp {mechanism_name(algorithm)}"
    return with_options(Drawn(name, prepare, given=given, then=then, seeded=False), options)


def _prepared_pydp(
    algorithm: Callable[..., Any], release: Callable[[Any, Any], Any] | None, **options: Any
) -> Release:
    def released(given: Any, rng: np.random.Generator) -> Any:
        values = np.ravel(flat(given)).tolist()
        made = algorithm(**options)
        return made.quick_result(values) if release is None else release(made, values)

    return released
