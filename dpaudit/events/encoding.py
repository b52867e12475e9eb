"""From whatever a mechanism returns to a matrix of numbers, by a rule learnt and then frozen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Column:
    """One coordinate of an output.

    Parameters
    ----------
    name : str
        Words for people, such as "coordinate 3".
    labels : tuple of str, optional
        For categories: label of each code 0, 1, ... seen while exploring. Any other label gets
        the code -1.
    """

    name: str
    labels: tuple[str, ...] | None = None

    def words(self, value: float) -> str:
        """Return a value of this column as people write it."""
        if np.isnan(value):
            return "no answer"
        if self.labels is not None:
            code = int(value)
            return repr(self.labels[code]) if 0 <= code < len(self.labels) else "any other label"
        return number_words(value)


def number_words(value: float) -> str:
    """Return a number with four digits, or all of them when it is an integer."""
    return str(int(value)) if abs(value) < 1e15 and value == int(value) else f"{value:.4g}"


def row_words(encoder: Encoder, row: Floats) -> str:
    """Return one encoded output as people write it, "-" for no answer, cut at 24 cells."""
    cells = [c.words(v) for c, v in zip(encoder.columns, row.tolist(), strict=True)]
    shown = ["-" if cell == "no answer" else cell for cell in cells[:24]]
    return "(" + ", ".join(shown + ["..."] * (len(cells) > 24)) + ")"


@dataclass(frozen=True)
class Encoder:
    """Turns outputs ``[size, ...]`` into ``[size, k]`` floats; frozen once learnt.

    Numbers and booleans stay what they are, categories become codes, the fields of records and
    the axes of arrays become columns.
    """

    columns: tuple[Column, ...]

    @classmethod
    def learn(cls, outputs: NDArray[Any]) -> Encoder:
        """Learn columns and labels from exploration outputs of both sides together."""
        columns = []
        for name, values in _flat_columns(outputs):
            labels = None
            if values.dtype.kind in "US":
                labels = tuple(str(label) for label in np.unique(_text(values)))
            columns.append(Column(name, labels))
        return cls(tuple(columns))

    def __call__(self, outputs: NDArray[Any]) -> Floats:
        """Encode outputs, shape ``[size, k]``."""
        encoded = np.empty((outputs.shape[0], len(self.columns)))
        flat = _flat_columns(outputs)
        for j, ((_, values), column) in enumerate(zip(flat, self.columns, strict=True)):
            if column.labels is None:
                encoded[:, j] = values
            else:
                labels, text = np.array(column.labels), _text(values)
                codes = np.minimum(np.searchsorted(labels, text), len(labels) - 1)
                encoded[:, j] = np.where(labels[codes] == text, codes, -1)
        return encoded


def _text(values: NDArray[Any]) -> NDArray[np.str_]:
    """Return labels as text; bytes may be any, and latin-1 tells all of them apart."""
    if values.dtype.kind == "S":
        return np.asarray(np.char.decode(values, "latin-1"))
    return np.asarray(values, dtype=str)


def _flat_columns(outputs: NDArray[Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    for field in outputs.dtype.names or (None,):
        values = outputs if field is None else outputs[field]
        if values.ndim == 1:
            yield field or "output", values
            continue
        for index in np.ndindex(values.shape[1:]):
            place = str(index[0]) if len(index) == 1 else f"({', '.join(map(str, index))})"
            yield f"{field or 'coordinate'} {place}", values[(slice(None), *index)]
