"""From whatever a mechanism returns to a matrix of numbers, by a rule learnt and then frozen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.events.shapes import Form
from dpaudit.events.texts import Texts, views, whole

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
    view : callable, optional
        For what is read off texts: ``Texts -> [size]``.
    derived : bool
        Whether it says again what another column says, as the suffix of a text does.
    """

    name: str
    labels: tuple[str, ...] | None = None
    view: Callable[[Texts], Floats] | None = field(
        default=None, repr=False, compare=False, kw_only=True
    )
    derived: bool = field(default=False, kw_only=True)

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
    cells = [
        c.words(v) for c, v in zip(encoder.columns, row.tolist(), strict=True) if not c.derived
    ]
    shown = ["-" if cell == "no answer" else cell for cell in cells[:24]]
    return "(" + ", ".join(shown + ["..."] * (len(cells) > 24)) + ")"


@dataclass(frozen=True)
class Encoder:
    """Turns outputs ``[size, ...]`` into ``[size, k]`` floats; frozen once learnt.

    Numbers and booleans stay what they are, categories become codes, the fields of records and
    the axes of arrays become columns. A text may have more columns, which follow its own: its
    length, its ends, what it contains.

    Where shapes or lengths differ, from side to side or from draw to draw, the cells of a draw are
    taken one after the other, NaN stands for those that it lacks, and columns before them tell how
    many cells it has and, for arrays of several axes, its shape. What lies beyond the longest draw
    that was explored is left out.

    Parameters
    ----------
    columns : tuple of Column
        What the floats mean.
    groups : tuple of int
        How many columns each coordinate of the output has.
    form : Form
        How many coordinates an output has.
    """

    columns: tuple[Column, ...]
    groups: tuple[int, ...]
    form: Form

    @classmethod
    def learn(
        cls, *outputs: NDArray[Any], sides: tuple[NDArray[Any], NDArray[Any]] | None = None
    ) -> Encoder:
        """Learn columns and labels from exploration outputs of both sides.

        With `sides`, outputs of the left and of the right, it is learnt what else to read off
        texts because it tells the sides apart.
        """
        form = Form.of(outputs)
        columns: list[Column] = []
        groups = []
        told = [list(form.coordinates(side)) for side in sides or ()]
        for at, seen in enumerate(zip(*map(form.coordinates, outputs), strict=True)):
            name, derived = seen[0].name, seen[0].derived
            before = len(columns)
            if seen[0].values.dtype.kind in "US":
                texts = Texts.of(np.concatenate([c.values for c in seen]))
                labels, read = whole(texts)
                columns.append(Column(name, labels, view=read, derived=derived))
                if told and not derived:
                    apart = (Texts.of(side[at].values) for side in told)
                    columns += [
                        Column(words, named, view=read, derived=True)
                        for words, named, read in views(name, texts, *apart)
                    ]
            else:
                columns.append(Column(name, derived=derived))
            groups.append(len(columns) - before)
        return cls(tuple(columns), tuple(groups), form)

    @property
    def own(self) -> NDArray[np.intp]:
        """Places of the columns that are not derived from others."""
        return np.flatnonzero([not column.derived for column in self.columns])

    @property
    def form_columns(self) -> range:
        """Places of the columns that tell length and shape, where these differ."""
        return range(self.form.derived)

    def __call__(self, outputs: NDArray[Any]) -> Floats:
        """Encode outputs, shape ``[size, k]``."""
        cells = int(np.prod(outputs.shape[1:], dtype=int))
        if self.form.width is None and outputs.dtype.kind in "biuf" and cells == len(self.columns):
            return outputs.reshape(len(outputs), cells).astype(np.float64)
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
