"""Adapters of diffprivlib.

The tools, mechanisms and models of diffprivlib become mechanisms.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import _validate
from dpaudit.adapters.drawing import Drawn, Given, Release, column, flat, legacy, with_options
from dpaudit.errors import ArgumentError
from dpaudit.mechanisms import mechanism_name, needed

Then = Callable[[Any], Any]

_EMPTY = "Mean of empty slice|Degrees of freedom|invalid value|divide by zero"
"""Warnings of numpy about empty data. The warning about missing bounds is not suppressed."""


def diffprivlib_tool(
    function: Callable[..., Any],
    *,
    given: Given | None = None,
    then: Then | None = None,
    **options: Any,
) -> Callable[..., Any]:
    """Return a mechanism that runs a function of ``diffprivlib.tools``.

    Parameters
    ----------
    function : callable
        A function such as ``tools.mean``.
    given, then : optional
        See :class:`Drawn`. By default, an array is passed as one list of all items. The array is
        passed unchanged if ``axis`` is among the options. If the release is a tuple, such as a
        histogram and its edges, the draw is its first entry.
    **options
        Arguments of the function, such as ``epsilon=1.0, bounds=(0, 1)``.
        ``mutants.scaled(epsilon=2)`` can multiply these arguments.

    Returns
    -------
    callable
        A mechanism ``f(data, size, *, rng)``, seeded by `rng`. Each draw has its own budget.

    Examples
    --------
    >>> from dpaudit.adapters import diffprivlib_tool
    >>> def mean(values, *, epsilon, random_state, accountant=None):  # as diffprivlib's
    ...     return float(random_state.random() < 2)
    >>> diffprivlib_tool(mean, epsilon=1.0)  # doctest: +ELLIPSIS
    functools.partial(diffprivlib mean, epsilon=1.0)
    """
    _refuse(options, "random_state", "accountant")
    _validate.function(function=function)
    prepare = functools.partial(_prepared_tool, function)
    kept = _first if then is None else then
    mechanism = Drawn(
        f"diffprivlib {mechanism_name(function)}",
        prepare,
        given=given,
        then=kept,
        seeded=True,
        quiet=_EMPTY,
        called=function if given is None and then is None else None,
    )
    return with_options(mechanism, options)


def _prepared_tool(function: Callable[..., Any], **options: Any) -> Release:
    library = needed("diffprivlib", package="'diffprivlib' 'scikit-learn<1.6'")

    def release(given: Any, rng: np.random.Generator) -> Any:
        values = given if "axis" in options else flat(given)
        accountant = library.BudgetAccountant()
        return function(values, random_state=legacy(rng), accountant=accountant, **options)

    return release


def _first(release: Any) -> Any:
    return release[0] if isinstance(release, tuple) else release


def diffprivlib_mechanism(
    mechanism: Callable[..., Any],
    *,
    utility: bool = False,
    given: Given | None = None,
    then: Then | None = None,
    **options: Any,
) -> Callable[..., Any]:
    """Return a mechanism that runs a class of ``diffprivlib.mechanisms``.

    Parameters
    ----------
    mechanism : callable
        A class such as ``mechanisms.Laplace``.
    utility : bool, optional
        Whether the data are the utilities of a selection, for example for
        ``mechanisms.Exponential``. By default, the data are the one value that is randomised.
    given, then : optional
        See :class:`Drawn`.
    **options
        Arguments of the class, such as ``epsilon`` and ``sensitivity``.

    Returns
    -------
    callable
        A mechanism ``f(data, size, *, rng)``, seeded by `rng`.
    """
    _refuse(options, "random_state")
    _validate.function("a class of mechanisms", mechanism=mechanism)
    _validate.flag(utility=utility)
    prepare = functools.partial(_prepared_mechanism, mechanism, utility)
    drawn = Drawn(
        f"diffprivlib {mechanism_name(mechanism)}", prepare, given=given, then=then, seeded=True
    )
    return with_options(drawn, options)


def _prepared_mechanism(mechanism: Callable[..., Any], utility: bool, **options: Any) -> Release:
    def release(given: Any, rng: np.random.Generator) -> Any:
        values = np.ravel(given).tolist()
        if utility:
            return mechanism(random_state=legacy(rng), utility=values, **options).randomise()
        return mechanism(random_state=legacy(rng), **options).randomise(*values)

    return release


def diffprivlib_model(
    model: Callable[..., Any],
    *,
    probe: ArrayLike | None = None,
    method: str = "predict",
    parameters: str | Sequence[str] | None = None,
    given: Callable[[Any], tuple[Any, ...]] | None = None,
    then: Then | None = None,
    **options: Any,
) -> Callable[..., Any]:
    """Return a mechanism that fits a model of ``diffprivlib.models`` for each draw.

    Parameters
    ----------
    model : callable
        A class such as ``models.GaussianNB``.
    probe : array_like, shape (k, d), optional
        Fixed points; the draw consists of the predictions on these points.
    method : str, optional
        Method that predicts, such as ``"predict_proba"`` or ``"transform"``.
    parameters : str or sequence of str, optional
        Attributes that together form the draw, one after the other, such as ``"coef_"``. List only
        attributes that are released, because other attributes may be computed without noise.
    given : callable, optional
        Function of the data that returns the arguments of ``fit`` as a tuple. By default, the data
        are a dict. The arguments are then the entries ``"X"``, with a row for each user, and
        ``"y"`` of this dict. For an array, the only argument is the array, with a row for each
        user.
    then : callable, optional
        Function of a fitted model, whose value is the draw. Exactly one of `probe`, `parameters`
        and `then` must be given.
    **options
        Arguments of the model, such as ``epsilon`` and ``bounds``.

    Returns
    -------
    callable
        A mechanism ``f(data, size, *, rng)``, seeded by `rng`. Each draw has its own budget.

    Raises
    ------
    ArgumentError
        If none, or more than one, of `probe`, `parameters` and `then` is given.
    """
    _refuse(options, "random_state", "accountant")
    _validate.function("a class of models", model=model)
    _validate.text(method=method)
    if given is not None:
        _validate.function("a function of the data", given=given)
    if sum(one is not None for one in (probe, parameters, then)) != 1:
        raise ArgumentError(
            "exactly one of probe, parameters and then must be given, because it defines "
            "the draw, got "
            f"{', '.join(map(_validate.describe, (probe, parameters, then)))}"
        )
    if probe is not None:
        then = functools.partial(_predicted, np.array(probe), method)
    elif parameters is not None:
        single = (parameters,) if isinstance(parameters, str) else parameters
        names = tuple(
            _validate.text(parameters=name)
            for name in _validate.items("names of attributes", parameters=single)
        )
        then = functools.partial(_attributes, names)
    prepare = functools.partial(_prepared_model, model)
    fitted = _features if given is None else given
    mechanism = Drawn(
        f"diffprivlib {mechanism_name(model)}",
        prepare,
        given=fitted,
        then=then,
        seeded=True,
        quiet=_EMPTY,
    )
    return with_options(mechanism, options)


def _prepared_model(model: Callable[..., Any], **options: Any) -> Release:
    library = needed("diffprivlib", package="'diffprivlib' 'scikit-learn<1.6'")

    def release(given: Any, rng: np.random.Generator) -> Any:
        accountant = library.BudgetAccountant()
        made = model(random_state=legacy(rng), accountant=accountant, **options)
        return made.fit(*given)

    return release


def _features(data: Any) -> tuple[Any, ...]:
    """Return copies of the arguments of ``fit``, because some models write into their arguments."""
    if isinstance(data, dict):
        return _rows(column(data, "X")), np.array(data["y"]).ravel()
    return (_rows(np.asarray(data)),)


def _rows(values: Any) -> Any:
    return np.array(values).reshape(len(values), -1)


def _predicted(probe: Any, method: str, fitted: Any) -> Any:
    return getattr(fitted, method)(probe)


def _attributes(names: tuple[str, ...], fitted: Any) -> Any:
    return np.concatenate([np.ravel(getattr(fitted, name)) for name in names])


def _refuse(options: dict[str, Any], *names: str) -> None:
    for name in names:
        if name in options:
            raise ArgumentError(
                f"{name} must not be given, because the adapter sets it, got {options[name]!r}"
            )
