"""Conversion of outputs of any kind to a matrix of numbers, by a learnt and frozen rule.

Outputs are an array ``[size, ...]``. If each draw has its own length, outputs are an array
``[size]`` of objects. Each object is an array of floats for one draw.

Texts are identified by 64-bit hashes of their characters. A hash is the sum over positions of the
character times a fixed odd number. Therefore the hash depends neither on the width of the array nor
on other texts in the array. Two texts with the same hash share one code.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpaudit.data import words_of_shape
from dpaudit.events.screening import SCREENED, atoms_excess, share_gap

# --- the coordinates of an output, also if outputs differ in shape or length -------------------


Floats = NDArray[np.float64]


class Coordinate(NamedTuple):
    """One number or text of each output, with a name.

    If `derived`, this coordinate repeats other coordinates. `code` is numpy source that reads the
    values from outputs `x`; empty if the source would be long.
    """

    name: str
    values: NDArray[Any]
    derived: bool = False
    code: str = ""


@dataclass(frozen=True)
class Form:
    """The number of coordinates of an output, which is frozen after learning.

    Parameters
    ----------
    width : int, optional
        Number of cells of the longest output, if shapes or lengths differ; None if all outputs have
        one shape.
    shapes : bool
        Whether the shape contains more information than the number of cells.
    plain : tuple of int
        Shape of every output that was seen, if all outputs had one shape. If a later output has
        another shape, only its first cells are read.
    lengths : bool
        Whether the number of cells is a coordinate. The number of cells is not a coordinate if
        draws differ only by exceptions.
    """

    width: int | None = None
    shapes: bool = False
    plain: tuple[int, ...] = ()
    lengths: bool = True

    @property
    def derived(self) -> int:
        """Number of leading coordinates that repeat information of other coordinates."""
        return 0 if self.width is None else self.shapes + self.lengths

    @classmethod
    def of(cls, parts: Sequence[NDArray[Any]]) -> Form:
        """Learn the form from some arrays of outputs."""
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
            code = "np.array([np.size(row) for row in x])"
            yield Coordinate("length", np.broadcast_to(cells, len(outputs)), True, code)
        if self.shapes:
            names = np.array([words_of_shape(shape) for shape in shapes])
            yield Coordinate("shape", np.broadcast_to(names, len(outputs)), derived=True)
        for j, values in enumerate(_padded(outputs, self.width).T):
            code = f"np.array([row[{j}] if len(row) > {j} else np.nan for row in x])"
            is_row = not self.shapes and values.dtype.kind == "f"
            yield Coordinate(f"coordinate {j}", values, code=code * is_row)


def _plain(outputs: NDArray[Any]) -> Iterator[Coordinate]:
    for part in outputs.dtype.names or (None,):
        values = outputs if part is None else outputs[part]
        code = "x" if part is None else f"x[{part!r}]"
        if values.ndim == 1:
            yield Coordinate(part or "output", values, code=code)
            continue
        for index in np.ndindex(values.shape[1:]):
            place = str(index[0]) if len(index) == 1 else f"({', '.join(map(str, index))})"
            code_of_cell = f"{code}[:, {', '.join(map(str, index))}]"
            cell = values[(slice(None), *index)]
            yield Coordinate(f"{part or 'coordinate'} {place}", cell, code=code_of_cell)


def _shapes(outputs: NDArray[Any]) -> list[tuple[int, ...]]:
    """Return the shape of each output, or one shape if the outputs are one array."""
    if outputs.dtype != object:
        return [outputs.shape[1:]]
    return [row.shape for row in outputs]


def _padded(outputs: NDArray[Any], width: int) -> NDArray[Any]:
    """Return the first cells of each output, ``[size, width]``; missing cells are NaN or ""."""
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


# --- features of a text: its length, its ends, and the parts that it contains -------------------


Hashes = NDArray[np.uint64]

ENDS = (1, 2, 3, 4, 6, 8)
"""Lengths of the prefixes and suffixes that are examined."""

MAX_LABELS = 2**16
LABELS_ALWAYS_KEPT = 1024
"""Number of labels that are always kept, even if they were seen in few draws."""

PLAIN_LABELS = 64
"""Largest number of different texts for which only the texts themselves are examined."""

_BEST_ENDS = 2  # Number of prefixes, and of suffixes, that are used.
_PARTS = (1, 2, 3, 4)  # Lengths of the parts that a text may contain.
_PART_CELLS = 2**18  # Characters that are searched for parts that differ between the sides.
_TELLING = 6.0  # Standard errors by which the share of texts with a part must differ.
_MAX_PARTS = 3
_AT_ONCE = 1024  # Characters of each text that are hashed together.


@dataclass(frozen=True)
class Texts:
    """Texts as character codes ``[size, width]``, which are zero after the end, and lengths."""

    codes: NDArray[np.uint32]
    lengths: NDArray[np.intp]

    @classmethod
    def of(cls, values: NDArray[Any]) -> Texts:
        """Split an array of str or bytes into codes; every byte string is valid latin-1."""
        native = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
        size, wide = len(native), native.dtype.kind == "U"
        width = native.dtype.itemsize // (4 if wide else 1)
        if width == 0:
            return cls(np.zeros((size, 1), np.uint32), np.zeros(size, np.intp))
        view = native.view(np.uint32 if wide else np.uint8).reshape(size, width)
        codes = view.astype(np.uint32, copy=False)
        lengths = width - (codes[:, ::-1] != 0).argmax(axis=1)
        return cls(codes, np.where(codes.any(axis=1), lengths, 0).astype(np.intp))

    def first(self, count: int | None = None) -> Hashes:
        """Hash the first `count` characters of each text, or all characters."""
        return _hash(self.codes if count is None else self.codes[:, :count])

    def last(self, count: int) -> Hashes:
        """Hash the last characters of each text.

        A shorter text is hashed completely.
        """
        at = np.maximum(self.lengths - count, 0)[:, None] + np.arange(count)
        inside = at < self.lengths[:, None]
        taken = np.take_along_axis(self.codes, np.minimum(at, self.codes.shape[1] - 1), axis=1)
        return _hash(np.where(inside, taken, np.uint32(0)))

    def parts(self, count: int) -> tuple[Hashes, NDArray[np.bool_]]:
        """Hash all runs of `count` characters, ``[size, places]``; flag runs inside the text."""
        places = self.codes.shape[1] - count + 1
        if places < 1:
            return np.zeros((len(self.codes), 1), np.uint64), np.zeros((len(self.codes), 1), bool)
        windows = np.lib.stride_tricks.sliding_window_view(self.codes, count, axis=1)
        return _hash(windows), np.arange(places) + count <= self.lengths[:, None]

    def words(self, row: int, start: int, count: int) -> str:
        """Return some characters of one text."""
        end = min(start + count, int(self.lengths[row]))
        return "".join(map(chr, self.codes[row, max(start, 0) : end].tolist()))


@functools.lru_cache(maxsize=4)  # a larger cache could fill the memory if texts are long
def _multipliers(width: int) -> Hashes:
    """Return one odd number for each position (splitmix64)."""
    with np.errstate(over="ignore"):
        z = np.arange(1, width + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return (z ^ (z >> np.uint64(31))) | np.uint64(1)


def _hash(codes: NDArray[np.uint32]) -> Hashes:
    """Return the sum over the last axis of code times multiplier, modulo 2^64."""
    total = np.zeros(codes.shape[:-1], dtype=np.uint64)
    odd = _multipliers(codes.shape[-1])
    for start in range(0, len(odd), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        total += codes[..., some].astype(np.uint64) @ odd[some]
    return total


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels that were seen, with their hashes.

    The code of a text is the index of its label.

    Parameters
    ----------
    names : tuple of str
        Labels in sorted order. Each label has one code.
    hashes : ndarray, shape (k,)
        Sorted hashes.
    codes : ndarray, shape (k,)
        Code of each hash.
    """

    names: tuple[str, ...]
    hashes: Hashes = field(repr=False)
    codes: Floats = field(repr=False)

    @classmethod
    def learn(cls, hashes: Hashes, name: Callable[[int], str]) -> Labels:
        """Store the labels seen, or only the repeated labels if there are very many.

        `name` is the function that returns the label of a row.
        """
        kept, first, counts = np.unique(hashes, return_index=True, return_counts=True)
        if len(kept) > max(LABELS_ALWAYS_KEPT, len(hashes) // 2):
            repeated = counts > 1
            kept, first, counts = kept[repeated], first[repeated], counts[repeated]
        if len(kept) > MAX_LABELS:
            common = np.sort(np.argsort(-counts, kind="stable")[:MAX_LABELS])
            kept, first = kept[common], first[common]
        names = [name(int(row)) for row in first]
        order = sorted(range(len(names)), key=names.__getitem__)
        codes = np.empty(len(names))
        codes[order] = np.arange(len(names))
        return cls(tuple(names[i] for i in order), kept, codes)

    def __call__(self, hashes: Hashes) -> Floats:
        """Return the code of each text, which is -1 for an unknown text."""
        if len(self.hashes) == 0:
            return np.full(len(hashes), -1.0)
        at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where(self.hashes[at] == hashes, self.codes[at], -1.0)


View = tuple[str, tuple[str, ...] | None, Callable[[Texts], Floats]]
"""Name, labels if the values are categories, and the function that reads them."""


def whole(texts: Texts) -> tuple[tuple[str, ...], Callable[[Texts], Floats]]:
    """Return the labels of whole texts, and a function that returns the codes of texts."""
    labels = Labels.learn(texts.first(), lambda row: texts.words(row, 0, texts.codes.shape[1]))
    return labels.names, lambda t: labels(t.first())


def views(name: str, texts: Texts, left: Texts, right: Texts) -> Iterator[View]:
    """Yield the features of texts that differ between the sides, except the texts themselves.

    Parameters
    ----------
    name : str
        Name of the column.
    texts : Texts
        Texts of both sides, from which labels are learnt.
    left, right : Texts
        Texts of each side, which are compared to choose useful features.
    """
    if len(np.unique(texts.first())) <= PLAIN_LABELS:
        return  # a table of so few texts contains all information about these texts
    if atoms_excess(left.lengths, right.lengths) > 0:
        yield f"length of {name}", None, lambda t: t.lengths.astype(np.float64)
    for at_end, word in ((False, "prefix"), (True, "suffix")):
        excess = {
            count: atoms_excess(_end(left, at_end, count), _end(right, at_end, count))
            for count in ENDS
            if count < int(texts.lengths.max())
        }
        for count in sorted(excess, key=lambda count: -excess[count])[:_BEST_ENDS]:
            if excess[count] > 0:
                labels = _end_labels(texts, at_end, count)
                yield f"{word} {count} of {name}", labels.names, _end_code(at_end, count, labels)
    for part, hashed in _telling_parts(left, right):
        yield f"number of {part!r} in {name}", None, functools.partial(_occurrences, part=hashed)


def _end(texts: Texts, at_end: bool, count: int) -> Hashes:
    return texts.last(count) if at_end else texts.first(count)


def _end_labels(texts: Texts, at_end: bool, count: int) -> Labels:
    def name(row: int) -> str:
        return texts.words(row, int(texts.lengths[row]) - count if at_end else 0, count)

    return Labels.learn(_end(texts, at_end, count), name)


def _end_code(at_end: bool, count: int, labels: Labels) -> Callable[[Texts], Floats]:
    return lambda texts: labels(_end(texts, at_end, count))


def _occurrences(texts: Texts, part: tuple[int, int]) -> Floats:
    count, hashed = part
    hashes, inside = texts.parts(count)
    hits = (hashes == np.uint64(hashed)) & inside
    return np.asarray(hits.sum(axis=1), dtype=np.float64)


def _telling_parts(left: Texts, right: Texts) -> list[tuple[str, tuple[int, int]]]:
    """Return substrings whose frequency differs most between the sides, best first."""
    found: list[tuple[float, int, str, tuple[int, int]]] = []
    for count in _PARTS:
        samples, seen = [], []
        for side in (left, right):
            rows = max(min(len(side.codes), SCREENED, _PART_CELLS // side.codes.shape[1]), 1)
            samples.append(Texts(side.codes[:rows], side.lengths[:rows]))
            hashes, inside = samples[-1].parts(count)
            # Each text counts once for each part, even if the text contains the part repeatedly.
            hashes = np.sort(np.where(inside, hashes, np.uint64(0)), axis=1)
            fresh = np.ones(hashes.shape, dtype=bool)
            fresh[:, 1:] = hashes[:, 1:] != hashes[:, :-1]
            seen.append(hashes[fresh & (hashes != 0)])
        parts, inverse = np.unique(np.concatenate(seen), return_inverse=True)
        a, b = (np.bincount(at, minlength=len(parts)) for at in np.split(inverse, [len(seen[0])]))
        gaps = np.abs(share_gap(a, b, *(len(x.codes) for x in samples)))
        for best in np.argsort(-gaps, kind="stable")[:_MAX_PARTS].tolist():
            if gaps[best] > _TELLING:
                hashed = int(parts[best])
                found.append((-gaps[best], -count, _spelt(samples, count, hashed), (count, hashed)))
    return [(part, hashed) for _, _, part, hashed in sorted(found)[:_MAX_PARTS]]


def _spelt(sides: list[Texts], count: int, hashed: int) -> str:
    """Return the characters of a part, taken from a text that contains the part."""
    for texts in sides:
        hashes, inside = texts.parts(count)
        rows, places = np.nonzero((hashes == np.uint64(hashed)) & inside)
        if len(rows):
            return texts.words(int(rows[0]), int(places[0]), count)
    return ""


@dataclass(frozen=True)
class Column:
    """One coordinate of an output.

    Parameters
    ----------
    name : str
        Name in reports, such as "coordinate 3".
    labels : tuple of str, optional
        For categories, the labels of the codes 0, 1, ..., which were seen during exploration. Every
        other label has the code -1.
    view : callable, optional
        For features of texts, a function ``Texts -> [size]``.
    derived : bool
        Whether the column repeats information of another column, like the suffix of a text.
    code : str
        Source of a numpy expression that computes the column from outputs `x`; empty if unknown.
    """

    name: str
    labels: tuple[str, ...] | None = None
    view: Callable[[Texts], Floats] | None = field(
        default=None, repr=False, compare=False, kw_only=True
    )
    derived: bool = field(default=False, kw_only=True)
    code: str = field(default="", compare=False, kw_only=True)

    def words(self, value: float) -> str:
        """Return a value of this column as text."""
        if np.isnan(value):
            return "no answer"
        if self.labels is not None:
            code = int(value)
            return repr(self.labels[code]) if 0 <= code < len(self.labels) else "any other label"
        return number_words(value)


def number_words(value: float) -> str:
    """Return a number with three significant digits, but an integer with all digits."""
    return str(int(value)) if abs(value) < 1e15 and value == int(value) else f"{value:.3g}"


def row_words(encoder: Encoder, row: Floats) -> str:
    """Return one encoded output as text of at most 24 cells, in which "-" means no answer."""
    cells = [
        c.words(v) for c, v in zip(encoder.columns, row.tolist(), strict=True) if not c.derived
    ]
    listed = ["-" if cell == "no answer" else cell for cell in cells[:24]]
    return "(" + ", ".join(listed + ["..."] * (len(cells) > 24)) + ")"


@dataclass(frozen=True)
class Encoder:
    """Converter of outputs ``[size, ...]`` to floats ``[size, k]``, which is frozen after learning.

    Numbers and booleans are kept. Categories become codes. The fields of records and the axes of
    arrays become columns. A text may have further columns, which follow the column of the text
    itself. These columns are the length of the text, its ends, and the parts that it contains.

    Shapes or lengths may differ between sides or draws. In this case, the cells of a draw follow
    one after the other, and missing cells are NaN. The columns before the cells hold the number of
    cells. For arrays of several axes, these columns also hold the shape. Cells beyond the longest
    explored draw are not used.

    Parameters
    ----------
    columns : tuple of Column
        Description of each float.
    groups : tuple of int
        Number of columns of each coordinate of the output.
    form : Form
        Form of an output, with its number of coordinates.
    """

    columns: tuple[Column, ...]
    groups: tuple[int, ...]
    form: Form

    @classmethod
    def learn(
        cls, *outputs: NDArray[Any], sides: tuple[NDArray[Any], NDArray[Any]] | None = None
    ) -> Encoder:
        """Learn columns and labels from exploration outputs of both sides.

        If `sides` (the outputs of the left and of the right side) is given, features of texts that
        differ between the sides are also learnt.
        """
        form = Form.of(outputs)
        columns: list[Column] = []
        groups = []
        by_side = [list(form.coordinates(side)) for side in sides or ()]
        for at, seen in enumerate(zip(*map(form.coordinates, outputs), strict=True)):
            name, derived, code = seen[0].name, seen[0].derived, seen[0].code
            before = len(columns)
            if seen[0].values.dtype.kind in "US":
                texts = Texts.of(np.concatenate([c.values for c in seen]))
                labels, read = whole(texts)
                columns.append(Column(name, labels, view=read, derived=derived, code=code))
                if by_side and not derived:
                    apart = (Texts.of(side[at].values) for side in by_side)
                    columns += [
                        Column(words, named, view=read, derived=True)
                        for words, named, read in views(name, texts, *apart)
                    ]
            else:
                columns.append(Column(name, derived=derived, code=code))
            groups.append(len(columns) - before)
        return cls(tuple(columns), tuple(groups), form)

    @property
    def own(self) -> NDArray[np.intp]:
        """Indices of the columns that are not derived from other columns."""
        return np.flatnonzero([not column.derived for column in self.columns])

    @property
    def is_matrix(self) -> bool:
        """Whether the encoded outputs are the outputs themselves, which are vectors of numbers."""
        codes = [column.code for column in self.columns if column.labels is None]
        return codes == [f"x[:, {j}]" for j in range(len(self.columns))]

    @property
    def form_columns(self) -> range:
        """Indices of the columns that hold length and shape, if length or shape differs."""
        return range(self.form.derived)

    def __call__(self, outputs: NDArray[Any]) -> Floats:
        """Encode outputs, shape ``[size, k]``."""
        cells = int(np.prod(outputs.shape[1:], dtype=int))
        if self.form.width is None and outputs.dtype.kind in "biuf" and cells == len(self.columns):
            return outputs.reshape(len(outputs), cells).astype(np.float64, copy=False)
        encoded = np.empty((outputs.shape[0], len(self.columns)))
        start = 0
        for coordinate, count in zip(self.form.coordinates(outputs), self.groups, strict=True):
            of = self.columns[start : start + count]
            texts = None if of[0].view is None else Texts.of(coordinate.values)
            for j, column in enumerate(of, start):
                if texts is None or column.view is None:
                    encoded[:, j] = coordinate.values
                else:
                    encoded[:, j] = column.view(texts)
            start += count
        return encoded
