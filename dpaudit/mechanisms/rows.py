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


def _of(rows: Sequence[Any]) -> Array:
    array = np.empty(len(rows), dtype=object)
    for at, row in enumerate(rows):  # assigned one by one: equal shapes would become an axis
        array[at] = np.asarray(row)
    return array
