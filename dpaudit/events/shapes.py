"""Which coordinates an output has, where outputs may differ in shape or length.

Outputs are an array ``[size, ...]``, or, where each draw has a length of its own, an array of
objects ``[size]`` that holds one array of floats for each draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpaudit.data import words_of_shape

Floats = NDArray[np.float64]


class Coordinate(NamedTuple):
    """One number or text of each output, with its name; derived where others say the same."""

    name: str
    values: NDArray[Any]
    derived: bool = False


@dataclass(frozen=True)
class Form:
    """How many coordinates an output has; frozen once learnt.

    Parameters
    ----------
    width : int, optional
        Cells of the longest output, where shapes or lengths differ; None where all outputs have
        one shape.
    shapes : bool
        Whether the shape says more than the number of cells.
    plain : tuple of int
        Shape of every output that was seen, where all had one. Of an output that turns up later
        with another shape, the first cells are read.
    lengths : bool
        Whether the number of cells is told: not of draws that differ by exceptions alone.
    """

    width: int | None = None
    shapes: bool = False
    plain: tuple[int, ...] = ()
    lengths: bool = True

    @property
    def derived(self) -> int:
        """How many coordinates come first that others tell too."""
        return 0 if self.width is None else self.shapes + self.lengths

    @classmethod
    def of(cls, parts: Sequence[NDArray[Any]]) -> Form:
        """Learn from some arrays of outputs what differs."""
        first, *others = parts
        if first.dtype != object and all(
            part.dtype != object and part.shape[1:] == first.shape[1:] for part in others
        ):
            return cls(plain=first.shape[1:])
        shapes = {shape for part in parts for shape in _shapes(part)}
        width = max(int(np.prod(shape, dtype=int)) for shape in shapes)
        values = {shape for shape in shapes if words_of_shape(shape) == str(shape)}
        return cls(
            max(width, 1),
            any(len(shape) != 1 for shape in shapes),
            lengths=len(values) > 1 or values == shapes,
        )

    def coordinates(self, outputs: NDArray[Any]) -> Iterator[Coordinate]:
        """Yield the coordinates of outputs."""
        if self.width is None:
            if outputs.dtype == object:
                first = max(int(np.prod(self.plain, dtype=int)), 1)
                outputs = _padded(outputs, first).reshape(len(outputs), *self.plain)
            yield from _plain(outputs)
            return
        shapes = _shapes(outputs)
        cells = np.array([int(np.prod(shape, dtype=int)) for shape in shapes], dtype=np.float64)
        if self.lengths:
            yield Coordinate("length", np.broadcast_to(cells, len(outputs)), derived=True)
        if self.shapes:
            names = np.array([words_of_shape(shape) for shape in shapes])
            yield Coordinate("shape", np.broadcast_to(names, len(outputs)), derived=True)
        for j, values in enumerate(_padded(outputs, self.width).T):
            yield Coordinate(f"coordinate {j}", values)


def _plain(outputs: NDArray[Any]) -> Iterator[Coordinate]:
    for part in outputs.dtype.names or (None,):
        values = outputs if part is None else outputs[part]
        if values.ndim == 1:
            yield Coordinate(part or "output", values)
            continue
        for index in np.ndindex(values.shape[1:]):
            place = str(index[0]) if len(index) == 1 else f"({', '.join(map(str, index))})"
            yield Coordinate(f"{part or 'coordinate'} {place}", values[(slice(None), *index)])


def _shapes(outputs: NDArray[Any]) -> list[tuple[int, ...]]:
    """Return the shape of each output, or of all where these are one array."""
    if outputs.dtype != object:
        return [outputs.shape[1:]]
    return [row.shape for row in outputs]


def _padded(outputs: NDArray[Any], width: int) -> NDArray[Any]:
    """Return the first cells of each output, ``[size, width]``; NaN, or no text, beyond its end."""
    if outputs.dtype != object:
        flat = outputs.reshape(len(outputs), -1)[:, :width]
        if flat.dtype.kind in "US":
            filled = np.zeros((len(outputs), width), dtype=flat.dtype)
        else:
            filled = np.full((len(outputs), width), np.nan)
        filled[:, : flat.shape[1]] = flat
        return filled
    lengths = np.array([min(row.size, width) for row in outputs], dtype=np.intp)
    padded = np.full((len(outputs), width), np.nan)
    inside = np.arange(width) < lengths[:, None]
    if inside.any():
        padded[inside] = np.concatenate([row.ravel()[:width] for row in outputs])
    return padded
