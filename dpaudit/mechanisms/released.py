"""Releases that are tables, such as synthetic data, seen by an adversary who knows one user.

The adversary knows both datasets of a pair, so it knows the rows that only one of them holds. The
features of a released table say what the table tells about these rows.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.data import Failure, Interaction, columns_of, content, is_frame
from dpaudit.errors import MechanismError
from dpaudit.mechanisms.outcomes import Array, Then, applied, as_array, attempt, one_by_one_of
from dpaudit.mechanisms.protocols import is_seeded, mechanism_name

Floats = NDArray[np.float64]
Columns = dict[str, list[Any]]

MAX_COLUMNS, MAX_PAIRED = 32, 8
"""Columns whose cells are counted, and columns whose pairs of cells are counted."""

_SIDES = ("left", "right")
_EXCEPTION = "exception"
_FEW = 12  # different whole numbers up to which the values of a column are compared exactly
_NEAR = 1 / 20  # of the range of a column, the distance within which two real numbers agree


def columns_in(table: Any) -> Columns:
    """Return the columns of a table, as lists of cells.

    Parameters
    ----------
    table : DataFrame, ndarray or list
        A frame of pandas or polars, a list of dicts, a list of users who each hold a list of dicts,
        or an array. The last axis of an array of several axes holds the columns.

    Examples
    --------
    >>> columns_in([{"age": 31}, {"age": 44}])
    {'age': [31, 44]}
    >>> columns_in(np.zeros((3, 2)))
    {'column 0': [0.0, 0.0, 0.0], 'column 1': [0.0, 0.0, 0.0]}
    """
    if is_frame(table):
        return columns_of(table)
    if isinstance(table, np.ndarray) and table.dtype != object:
        if table.dtype.names:
            return {name: table[name].ravel().tolist() for name in table.dtype.names}
        if table.ndim < 2:
            return {"value": np.atleast_1d(table).tolist()}
        flat = table.reshape(-1, table.shape[-1])
        return {f"column {j}": flat[:, j].tolist() for j in range(flat.shape[1])}
    if isinstance(table, str | Mapping) or not isinstance(table, Sequence | np.ndarray):
        raise MechanismError(
            "a released table must be a frame, an array or a list of rows, got a "
            f"{type(table).__name__}. Convert it in the mechanism"
        )
    rows: list[Any] = []
    for one in table:
        is_user = not isinstance(one, str | Mapping) and isinstance(one, Sequence | np.ndarray)
        rows += list(one) if is_user else [one]
    if not all(isinstance(row, Mapping) for row in rows):
        return {"value": rows}
    names = dict.fromkeys(name for row in rows for name in row)
    return {str(name): [row.get(name) for row in rows] for name in names}


class View:
    """What an adversary looks for in a released table.

    Parameters
    ----------
    left, right : Columns
        The columns of both datasets.
    """

    def __init__(self, left: Columns, right: Columns) -> None:
        self.names = [name for name in left if name in right][:MAX_COLUMNS]
        rows = [_rows(side, self.names) for side in (left, right)]
        counts = [Counter(map(content, side)) for side in rows]
        self.cells = {
            name: [*left[name], *right[name]] for name in self.names
        }  # of both datasets, from which ranges are read
        self.columns = [_Column.of(name, self.cells[name]) for name in self.names]
        self.watched: dict[str, list[Any]] = {}
        for place, side in enumerate(_SIDES):
            extra = counts[place] - counts[1 - place]
            own = next((row for row in rows[place] if content(row) in extra), None)
            if own is not None:
                self.watched[side] = list(own)
        common = [row for row in rows[0] if content(row) in counts[1]]
        self.others = {name: {_key(row[j]) for row in common} for j, name in enumerate(self.names)}
        held = {
            side: [sum(_key(row[j]) == _key(cell) for row in common) for j, cell in enumerate(own)]
            for side, own in self.watched.items()
        }
        # Cells that few other users hold tell most.
        self.paired = {
            side: sorted(range(len(often)), key=often.__getitem__)[:MAX_PAIRED]
            for side, often in held.items()
        }

    def __str__(self) -> str:
        return ""

    def __repr__(self) -> str:
        known = [(c.name, c.width, c.is_number) for c in self.columns]
        return f"View({self.watched!r}, {known!r}, {self.paired!r}, {self._others!r})"

    @cached_property
    def _others(self) -> list[list[str]]:
        return [sorted(map(repr, self.others[name])) for name in self.names]

    def features(self, table: Any) -> dict[str, float]:
        """Return the features of one released table, by their names."""
        columns = columns_in(table)
        size = max(map(len, columns.values()), default=0)
        found: dict[str, float] = {"rows": size}
        missing = [c.name for c in self.columns if c.name not in columns]
        found["missing columns"] = len(missing)
        cells = [c.read(columns.get(c.name, [None] * size)) for c in self.columns]
        for column, read in zip(self.columns, cells, strict=True):
            found.update(column.extremes(read))
            if not column.is_number:
                new = sum(key not in self.others[column.name] for key in read.tolist())
                found[f"cells of {column.name} that no other row holds"] = new
        for side, row in self.watched.items():
            found.update(self._near(side, row, cells, size))
        return found

    def _near(
        self, side: str, row: list[Any], cells: list[NDArray[Any]], size: int
    ) -> dict[str, float]:
        """Return how often cells of the user's row occur, alone, in pairs and all together."""
        columns = self.columns
        agree = [c.agrees(read, cell) for c, read, cell in zip(columns, cells, row, strict=True)]
        words = [f"{c.name} = {c.words(cell)}" for c, cell in zip(columns, row, strict=True)]
        found = {f"rows with {words[j]}": float(one.sum()) for j, one in enumerate(agree)}
        for i, j in itertools.combinations(sorted(self.paired[side]), 2):
            found[f"rows with {words[i]} and {words[j]}"] = float((agree[i] & agree[j]).sum())
        both = np.all(agree, axis=0) if agree else np.zeros(size, dtype=bool)
        found[f"rows that agree with the {side} user's row"] = float(both.sum())
        apart = sum(
            (c.distance(read, cell) for c, read, cell in zip(columns, cells, row, strict=True)),
            start=np.zeros(size),
        )
        least = float(apart.min()) if size else math.nan
        found[f"distance from the {side} user's row to the nearest row"] = least
        return found


@dataclass(frozen=True)
class _Column:
    """How the cells of a column are compared.

    Parameters
    ----------
    name : str
        Name of the column.
    is_number : bool
        Whether all cells of both datasets are numbers or missing.
    width : float
        Largest minus smallest number, 0 for texts.
    near : float
        Distance within which two numbers agree.
    """

    name: str
    is_number: bool
    width: float = 0.0
    near: float = 0.0

    @classmethod
    def of(cls, name: str, cells: list[Any]) -> _Column:
        known = [cell for cell in cells if not _is_missing(cell)]
        if not known or not all(map(_is_number, known)):
            return cls(name, is_number=False)
        numbers = np.array(known, dtype=np.float64)
        numbers = numbers[np.isfinite(numbers)]
        if not numbers.size:
            return cls(name, is_number=True)
        width = min(float(numbers.max()) - float(numbers.min()), 1e300)
        exact = len(np.unique(numbers)) <= _FEW and bool((numbers == np.rint(numbers)).all())
        return cls(name, True, width, 0.0 if exact else width * _NEAR)

    def read(self, cells: list[Any]) -> NDArray[Any]:
        """Return cells as numbers, with NaN for anything else, or as texts."""
        if not self.is_number:
            return np.array([_key(cell) for cell in cells], dtype=object)
        return np.array([float(c) if _is_number(c) else math.nan for c in cells], dtype=np.float64)

    def agrees(self, read: NDArray[Any], cell: Any) -> NDArray[np.bool_]:
        """Return which cells agree with the user's cell."""
        if not self.is_number:
            return np.array([key == _key(cell) for key in read.tolist()], dtype=bool)
        if _is_missing(cell):
            return np.asarray(np.isnan(read))
        if self.near == 0 or not math.isfinite(cell):
            return np.asarray(read == cell)
        return np.asarray(np.abs(read - cell) <= self.near)

    def distance(self, read: NDArray[Any], cell: Any) -> Floats:
        """Return distances from 0 to 1."""
        if not self.is_number or self.width == 0 or _is_missing(cell) or not math.isfinite(cell):
            return np.where(self.agrees(read, cell), 0.0, 1.0)
        apart = np.minimum(np.abs(read - cell) / self.width, 1.0)
        return np.where(np.isnan(apart), 1.0, apart)

    def extremes(self, read: NDArray[Any]) -> dict[str, float]:
        """Return the mean and both ends of a column of numbers."""
        if not self.is_number:
            return {}
        known = np.clip(read[~np.isnan(read)], -1e300, 1e300)
        return {
            f"{what} {self.name}": float(of(known)) if known.size else math.nan
            for what, of in (("mean", np.mean), ("smallest", np.min), ("largest", np.max))
        }

    def words(self, cell: Any) -> str:
        if not self.is_number or _is_missing(cell):
            return _key(cell)
        return f"{cell:.6g}" + f" within {self.near:.3g}" * (self.near > 0)


class Released:
    """A mechanism whose release is a table, such as synthetic data, as numbers about one user.

    Parameters
    ----------
    mechanism : callable
        ``f(data, size, *, rng)`` that returns `size` tables, or a result of :func:`one_draw` whose
        function returns one table. A table is a frame of pandas or polars, a list of dicts, or an
        array whose last axis holds the columns.

    Notes
    -----
    The features depend on the pair, both of whose datasets the adversary knows, and on nothing
    else. So they are post-processing of the release. Some count the rows, cells and pairs of cells
    that agree with a row that only one dataset holds. Others count cells that no other user holds.
    There are also the distance to the nearest released row, and the mean and the ends of columns of
    numbers. Numbers agree if they are equal, or within 1/20 of the range of their column if the
    column holds real numbers or more than 12 different whole numbers.

    At most 32 columns are used, and pairs among the 8 columns of the user's rarest cells.

    Examples
    --------
    >>> from dpaudit import NeighborPair, PureDP, audit
    >>> def rows(data, size, *, rng):  # a bootstrap sample is not private
    ...     return [data[rng.integers(len(data), size=len(data))] for _ in range(size)]
    >>> people = np.array([[30.0, 0.0], [30.0, 0.0], [40.0, 1.0], [40.0, 1.0]])
    >>> canary = people.copy()
    >>> canary[3] = 40.0, 0.0
    >>> result = audit(Released(rows), PureDP(1.0), NeighborPair(canary, people), draws=400)
    >>> result.verdict.words
    'REFUTED'
    """

    def __init__(self, mechanism: Callable[..., Any]) -> None:
        self.mechanism = _validate.function("a function f(data, size, *, rng)", mechanism=mechanism)
        self.__name__ = mechanism_name(mechanism)
        self.dpaudit_unseeded = not is_seeded(mechanism)

    def __repr__(self) -> str:
        return f"Released({mechanism_name(self.mechanism)})"

    @property
    def changed(self) -> Any:
        """Number of values that a mutant changed, if the mechanism counts such changes."""
        return getattr(self.mechanism, "changed", 1)

    def of(self, mechanism: Callable[..., Any]) -> Released:
        """Return another mechanism whose tables are read in the same way."""
        return Released(mechanism)

    @staticmethod
    def view(left: Any, right: Any, by: str | None) -> View:
        """Return what is looked for in the releases on a pair.

        The column `by`, which identifies users, is not looked for.
        """
        sides = []
        for side in (left, right):
            columns = columns_in(side)
            columns.pop(by or "", None)
            sides.append(columns)
        return View(*sides)

    def __call__(self, data: Interaction, size: int, *, rng: np.random.Generator) -> Array:
        """Return the features of `size` releases, as records."""
        return as_array(self.draws_one_by_one(data, size, rng=rng))

    def draws_one_by_one(
        self,
        data: Interaction,
        size: int,
        *,
        rng: np.random.Generator,
        then: Then | None = None,
        catches: bool = False,
    ) -> list[Any]:
        """Return the features of `size` releases, as dicts.

        If exceptions are caught, one more key holds the type of an exception.
        """
        if not isinstance(data, Interaction) or not isinstance(data.strategy, View):
            raise MechanismError(
                f"{self!r} must get both datasets of a pair. Pass it to dpaudit.audit"
            )
        features, inner = data.strategy.features, self.mechanism
        draw, bound = one_by_one_of(inner)
        if draw is not None:
            made = list(draw(data.data, size, rng=rng, catches=catches, **bound))
        elif catches:
            made = [attempt(lambda: next(iter(inner(data.data, 1, rng=rng)))) for _ in range(size)]
        else:
            made = list(inner(data.data, size, rng=rng))
        if len(made) != size:
            raise MechanismError(f"{self.__name__} must return size={size} tables, got {len(made)}")
        if not catches:
            return applied(then, map(features, made), catches=False)
        none = dict.fromkeys(features([]), math.nan)
        read = [
            {**none, _EXCEPTION: one.words}
            if isinstance(one, Failure)
            else {**features(one), _EXCEPTION: ""}
            for one in made
        ]
        return applied(then, read, catches=True)


def _rows(columns: Columns, names: Sequence[str]) -> list[list[Any]]:
    return [list(row) for row in zip(*(columns[name] for name in names), strict=True)]


def _is_number(cell: Any) -> bool:
    return isinstance(cell, int | float | np.integer | np.floating) and not isinstance(cell, bool)


def _is_missing(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float | np.floating) and math.isnan(cell))


def _key(cell: Any) -> str:
    """Return a cell as a text; missing cells are equal to each other."""
    return "missing" if _is_missing(cell) else str(cell)
