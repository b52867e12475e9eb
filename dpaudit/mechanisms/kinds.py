"""Of what kind the draws of a mechanism are: of one, whatever a single call happens to hold.

A call may hold only None, only exceptions, or only the texts of a mechanism that returns numbers
too. What becomes of a draw must not depend on those beside it, or draws of one call would go
together. So the calls that check the contract settle the kind, and what later calls hold is brought
into it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.data import words_of_shape
from dpaudit.errors import MechanismError
from dpaudit.mechanisms.hints import keys_differ
from dpaudit.mechanisms.outcomes import NONE, value_or_text
from dpaudit.mechanisms.rows import kind_of, kind_of_dtype, to_rows, words_of

Array = NDArray[Any]
Shape = tuple[int, ...] | None

_MIXED = value_or_text(np.zeros(1), np.array([""])).dtype


class Kinds:
    """The kind of the draws of one mechanism, and on each side of a pair their shape.

    Parameters
    ----------
    name : str
        Of the mechanism, for messages.
    finite : bool
        Whether draws are outcomes, whose shapes may differ between the sides.

    Attributes
    ----------
    width : int
        Cells of one draw.
    is_probing : bool
        Whether calls are only looked at, so that another kind may still turn out.
    is_bound : bool
        Whether draws have one shape on purpose, as arrays have; lists may happen to have one.
    """

    def __init__(self, name: str, *, finite: bool) -> None:
        self.name, self.width = name, 1
        self.is_probing, self.is_bound = False, True
        self._finite = finite
        self._dtype: np.dtype[Any] | None = None
        self._elsewhere: np.dtype[Any] | None = None  # on another pair
        self._shapes: dict[str, Shape] = {}  # of each side; None for rows
        self._only_missing = self._only_scalars = True

    def turn(self) -> None:
        """Turn to another pair; its draws may have another shape."""
        if self._dtype is not None and kind_of_dtype(self._dtype) != "number":
            self._elsewhere = self._dtype
        self._dtype, self._shapes = None, {}
        self._only_missing = self._only_scalars = True

    @property
    def has_fields(self) -> bool:
        """Whether draws are records."""
        return self._dtype is not None and self._dtype.names is not None

    def admit(self, array: Array, side: str, *, bound: bool) -> Array:
        """Hold draws against those before: one kind on both sides, and on each one shape, or rows.

        An array that is `bound` has one shape on purpose. Rows of a list may happen to have one.
        """
        self.is_bound &= bound
        array = self._brought_in(array)
        kind, known_kind = kind_of(array), kind_of_dtype(self._dtype)
        shape = None if array.dtype == object else array.shape[1:]
        known = self._shapes.setdefault(side if self._finite else "", shape)
        missing = _is_missing(array)
        ragged = kind == "number" and self._finite
        ragged &= None in (known, shape) or missing or self._only_missing
        if kind != known_kind or (known != shape and bound and not ragged):
            raise MechanismError(
                f"{self.name} must return draws of one shape and kind, got "
                f"{words_of(kind, shape, ' each')} on the {side} dataset after "
                f"{words_of(known_kind, known, ' each')}"
                + keys_differ(self._dtype.names if self._dtype else None, array.dtype.names)
            )
        self._only_missing &= missing
        if self.is_probing:
            self._only_scalars &= _texts_in(array) is not None
        if known != shape:
            self._shapes[side] = None
            array = to_rows(array)
        self.width = max(self.width, _cells(array), 1)
        return array

    def note(self, other: Kinds) -> None:
        """Take over what a worker saw of other draws of the same pair."""
        self.width = max(self.width, other.width)
        self.is_bound &= other.is_bound
        self._only_missing &= other._only_missing
        for side, shape in other._shapes.items():
            if self._shapes.setdefault(side, shape) != shape:
                self._shapes[side] = None

    def _brought_in(self, array: Array) -> Array:
        """Return draws in the kind of those before, or as they are where that cannot be."""
        if self._dtype is None:
            fit = None if self._elsewhere is None else fitted(array, self._elsewhere)
            array = array if fit is None else fit
            self._dtype, self.width = array.dtype, 1
            return array
        if kind_of(array) == kind_of_dtype(self._dtype):
            return array
        fit = fitted(array, self._dtype)
        if fit is None and self.is_probing:
            wider = self._wider(array)
            fit = None if wider is None else fitted(array, wider)
            if fit is not None:
                self._dtype, self._shapes = wider, {}
        return array if fit is None else fit

    def _wider(self, array: Array) -> np.dtype[Any] | None:
        """Return the kind of which these draws and those before are; None where there is none."""
        assert self._dtype is not None
        kinds = {kind_of(array), kind_of_dtype(self._dtype)}
        if kinds == {"number", "text"} and self._only_missing:
            return array.dtype
        if self._only_scalars and kinds <= {"number", "text", kind_of_dtype(_MIXED)}:
            return _MIXED
        names = self._dtype.names
        if names is None or names != array.dtype.names:
            return None
        fields = [(name, _wider_field(self._dtype[name], array.dtype[name])) for name in names]
        return np.dtype(fields)


def fitted(draws: Array, like: np.dtype[Any]) -> Array | None:
    """Return draws as other calls have them; None where they cannot be.

    Examples
    --------
    >>> fitted(np.array([np.nan, np.nan]), np.dtype("U3")).tolist()  # a call of two None
    ['<None>', '<None>']
    >>> fitted(np.array([1.0, np.nan]), np.dtype("U3")) is None
    True
    """
    kind = kind_of_dtype(like)
    if kind_of(draws) == kind:
        return draws
    if kind in ("text", kind_of_dtype(_MIXED)):
        values, texts = _values_in(draws), _texts_in(draws)
        if texts is None or (kind == "text" and not np.isnan(values).all()):
            return None
        return texts if kind == "text" else value_or_text(values, texts)
    if like.names is None or like.names != draws.dtype.names:
        return None
    columns = {name: _fitted_field(draws[name], like[name]) for name in like.names}
    if any(column is None for column in columns.values()):
        return None
    made = np.zeros(
        len(draws), dtype=[(n, c.dtype, c.shape[1:]) for n, c in columns.items() if c is not None]
    )
    for name, column in columns.items():
        made[name] = column
    return made


def _values_in(draws: Array) -> Array:
    """Return the number that each draw is, or NaN."""
    if draws.dtype.names == _MIXED.names:
        return np.asarray(draws["value"])
    if draws.dtype.kind in "US" or draws.dtype.names:
        return np.full(len(draws), math.nan)
    return np.array([float(row) if row.shape == () else math.nan for row in to_rows(draws)])


def _texts_in(draws: Array) -> Array | None:
    """Return the text that each draw is, or none; None where one is neither a number nor a text."""
    if draws.dtype.kind == "S":
        return np.asarray(np.strings.decode(draws, "latin-1"))
    if draws.dtype.kind == "U" or draws.dtype.names == _MIXED.names:
        return draws if draws.dtype.names is None else draws["text"]
    texts = [] if draws.dtype.names else [_text_of(row) for row in to_rows(draws)]
    return None if None in texts or draws.dtype.names else np.array(texts)


def _text_of(row: Array) -> str | None:
    words = words_of_shape(row.shape)
    if words.startswith("raised "):
        return f"<{words}>"
    if row.shape == ():
        return NONE if np.isnan(row) else ""
    return "" if row.shape == (0,) else None  # an empty list, which may be one of texts


def _fitted_field(column: Array, like: np.dtype[Any]) -> Array | None:
    """Return one column of records as in other calls, of None where it holds nothing."""
    if kind_of(column) == kind_of_dtype(like.base) and column.shape[1:] == like.shape:
        return column
    if column.shape[1:] != () or not _is_missing(column):
        return None
    if like.base.kind == "U":
        return np.full((len(column), *like.shape), "", dtype=like.base)
    return np.full((len(column), *like.shape), math.nan)


def _wider_field(one: np.dtype[Any], other: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the field that is more than a number, which may have stood for None."""
    return other if one.base.kind != "U" and one.shape == () else one


def _is_missing(draws: Array) -> bool:
    """Whether all draws are None, NaN or exceptions among numbers."""
    if draws.dtype == object:
        return all(
            math.isnan(row) if row.shape == () else words_of_shape(row.shape).startswith("raised ")
            for row in draws
        )
    if draws.dtype.kind != "f" or draws.ndim != 1:
        return False
    return bool(np.isnan(draws[:1]).all() and np.isnan(draws).all())  # most end at the first


def _cells(array: Array) -> int:
    """Return how many cells a draw has."""
    fields = [array.dtype[name].shape for name in array.dtype.names or ()] or [()]
    cells = max((row.size for row in array), default=1) if array.dtype == object else 1
    return int(cells * math.prod(array.shape[1:]) * sum(map(math.prod, fields)))
