"""Draws whose shapes differ, from draw to draw or between two datasets, as rows.

Rows are an array of objects ``[size]``, each an array of float64. Draws of one shape stay what they
are; they become rows only beside others of another shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Unbound(np.ndarray[Any, Any]):
    """Draws that are lists, whose common shape may be that of one call; an array to everybody else.

    Draws of an array have one shape on purpose, and another one is refused.
    """


def as_rows(outputs: Any) -> Array | None:
    """Return a sequence of arrays, lists or numbers as rows; None where it holds anything else.

    Examples
    --------
    >>> [row.tolist() for row in as_rows([[1, 2], [3], []])]
    [[1.0, 2.0], [3.0], []]
    >>> as_rows([[1, 2], "text"]) is None
    True
    """
    rows = []
    for output in outputs:
        try:
            row = np.array(output)
        except ValueError:  # ragged itself
            return None
        if row.dtype.kind not in "biuf":
            return None
        rows.append(row.astype(np.float64))
    return _of(rows)


def as_made(outputs: Array) -> Any:
    """Return what was kept as it was returned: rows are a list of arrays."""
    return list(outputs) if outputs.dtype == object else outputs


def to_rows(draws: Array) -> Array:
    """Return draws of one shape, or rows, as rows."""
    return draws if draws.dtype == object else _of(list(draws.astype(np.float64)))


def joined(parts: Sequence[Array]) -> Array:
    """Return draws one after the other: as one array, or as rows where shapes differ.

    Examples
    --------
    >>> joined([np.zeros((2, 3)), np.ones((1, 3))]).shape
    (3, 3)
    >>> [row.shape for row in joined([np.zeros((1, 3)), np.ones((1, 4))])]
    [(3,), (4,)]
    """
    first = parts[0]
    if all(p.dtype != object and p.shape[1:] == first.shape[1:] for p in parts):
        return np.concatenate(parts)
    return np.concatenate([to_rows(part) for part in parts])


def kind_of(draws: Array) -> str:
    """Kind of draws, as a word; numbers are one kind, widths of texts may vary.

    Examples
    --------
    >>> kind_of(np.array([1.0, 2.0])), kind_of(np.array(["yes", "no"]))
    ('number', 'text')
    """
    return kind_of_dtype(draws.dtype)


def kind_of_dtype(dtype: np.dtype[Any] | None) -> str:
    """Kind of draws of a dtype, as a word; rows of objects are numbers."""
    if dtype is None or dtype.hasobject:
        return "number"
    if dtype.names:
        fields = (
            f"{name}: {words_of(kind_of_dtype(dtype[name].base), dtype[name].shape)}"
            for name in dtype.names
        )
        return f"record ({', '.join(fields)})"
    return "number" if dtype.kind in "biuf" else "text"


def words_of_draws(draws: Array) -> str:
    """Say of what kind and shape each draw is.

    Examples
    --------
    >>> words_of_draws(np.zeros((9, 3))), words_of_draws(np.array(["a", "b"]))
    ('arrays of numbers of shape (3,)', 'one text each')
    """
    return words_of(kind_of(draws), None if draws.dtype == object else draws.shape[1:], " each")


def words_of(kind: str, shape: tuple[int, ...] | None, each: str = "") -> str:
    """Say of what kind a draw is, and of what shape; None where shapes vary."""
    if shape == ():
        return f"one {kind}{each}"
    if shape is None:
        return f"arrays of {kind}s of varying shape"
    return f"arrays of {kind}s of shape {shape}"


def _of(rows: Sequence[Any]) -> Array:
    array = np.empty(len(rows), dtype=object)
    for at, row in enumerate(rows):  # assigned one by one: equal shapes would become an axis
        array[at] = np.asarray(row)
    return array
