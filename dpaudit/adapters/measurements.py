"""Adapters of OpenDP and PyDP.

Measurements, queries and algorithms of these packages become mechanisms.
"""

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
    """Return a mechanism that runs a measurement of OpenDP.

    Parameters
    ----------
    measurement : opendp.Measurement or callable
        The measurement, or a function ``make(**parameters)`` that makes the measurement and is
        called once. Measurements cannot be sent to other processes, but functions can be sent.
    given, then : optional
        Input of the measurement and function of a release, as described in :class:`Drawn`. Arrays
        and lists are converted to the type that the measurement takes. This type is one number, or
        a list of all items of all users.
    at_once : bool, optional
        Whether one release makes all draws of a call, which is much faster than one release for
        each draw. This release is a vector that holds the value `size` times. This option needs a
        measurement that adds independent noise to each entry of a vector, and data of one number.
        Default False.
    **parameters
        Arguments of the function that makes the measurement, such as ``scale``.
        ``mutants.scaled(scale=0.5)`` can multiply these arguments.

    Returns
    -------
    callable
        A mechanism ``f(data, size, *, rng)``. OpenDP draws from the operating system and cannot be
        seeded.

    Raises
    ------
    TypeError
        If `measurement` is neither a measurement nor a function, or if parameters are given with a
        measurement.

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
            "parameters must not be given with a measurement, got "
            f"{', '.join(parameters)}. Pass a function that makes the measurement instead"
        )
    name = "opendp" if is_made else f"opendp {mechanism_name(measurement)}"
    measured = _Measured(measurement, is_made)
    kind = _AtOnce if at_once else Drawn
    return with_options(kind(name, measured, given=given, then=then, seeded=False), parameters)


class _Measured:
    """Factory that makes one measurement for each set of parameters."""

    def __init__(self, make: Any, is_made: bool) -> None:
        self.make, self.is_made = make, is_made
        self.made: dict[str, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "made": {}}  # pointers into OpenDP cannot be pickled

    def of(self, parameters: dict[str, Any]) -> Any:
        """Return the measurement for the given parameters."""
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
    """A mechanism that makes all draws of a call by one release of a vector."""

    prepare: _Measured

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator, **options: Any) -> Any:
        measurement = self.prepare.of(options)
        carrier = str(measurement.input_carrier_type)
        inner = re.fullmatch(r"Vec<(.*)>", carrier)
        values = np.ravel(self._given(data))
        if inner is None or len(values) != 1:
            raise MechanismError(
                "at_once requires a measurement of vectors and data of one number, got "
                f"{carrier} and data of {len(values)} numbers"
            )
        draws = measurement([_carried(values, inner[1])] * size)  # OpenDP cannot be seeded
        return [draw if self.then is None else self.then(draw) for draw in draws]


def _carried(data: Any, carrier: str) -> Any:
    """Return data in the type that a measurement takes; return data of any other type unchanged."""
    inner = re.fullmatch(r"Vec<(.*)>", carrier)
    kind = _KINDS.get((inner[1] if inner else carrier)[:1])
    if kind is None or is_frame(data) or isinstance(data, dict):
        return data
    values = [kind(value) for value in np.ravel(flat(data)).tolist()]
    if inner:
        return values
    if len(values) != 1:
        raise MechanismError(
            f"the measurement takes one {carrier}, got data with {len(values)} values. Pass "
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
    """Return a mechanism that runs a query of OpenDP's context on a frame.

    Parameters
    ----------
    query : callable
        ``query(context)``, such as ``lambda c: c.query().select(dp.len())``.
    contributions : int
        Largest number of rows that one user has.
    given, then : optional
        See :class:`Drawn`. By default, a frame of polars is passed unchanged, and a frame of pandas
        is converted to polars. If a release has only one cell, the draw is the number in that cell.
    **loss : float
        ``epsilon``, ``delta``, ``rho``: arguments of ``dp.loss_of``.

    Returns
    -------
    callable
        A mechanism ``f(data, size, *, rng)``, as described in :func:`opendp`. All draws use the
        same resolved measurement on the same data. This reuse is equivalent to a new context for
        each release.

    Raises
    ------
    MechanismError
        If OpenDP, or the version of polars that OpenDP needs, is not installed when the mechanism
        is called. Install OpenDP and polars with ``pip install 'opendp[polars]'``.
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
        if not made:  # depends on the schema, not on the users' values
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
    """Return a mechanism that runs an algorithm of PyDP, which is ``python-dp`` on PyPI.

    Parameters
    ----------
    algorithm : callable
        ``algorithm(**options)`` makes the algorithm, such as ``laplacian.BoundedMean``. The
        algorithm is made again for each draw, because its budget can be spent only once.
    release : callable, optional
        ``release(made, values)``. The default is ``made.quick_result(values)``.
    given, then : optional
        See :class:`Drawn`. By default, the input is a list of all items of all users.
    **options
        Arguments of the algorithm, such as ``epsilon``, ``lower_bound`` and ``dtype``.

    Returns
    -------
    callable
        A mechanism ``f(data, size, *, rng)``. PyDP has an entropy source of its own and cannot be
        seeded.
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
