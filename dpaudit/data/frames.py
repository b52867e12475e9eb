"""Frames of pandas or polars, in which a column identifies the user of each row."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import warnings
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw

from dpaudit import _validate
from dpaudit.data.forms import Census, Form, Label, Packed, counted, is_frame
from dpaudit.data.sequences import content
from dpaudit.errors import ArgumentError, PairError


class FrameForm(Form):
    """A pandas or polars DataFrame.

    Parameters
    ----------
    by : str
        Name of the column that identifies users.
    """

    def __init__(self, by: str) -> None:
        self.by = by

    def frozen(self, value: Any, name: str) -> Any:
        return frame_of(value, self.by, name)

    def handed(self, value: Any) -> Any:
        return nw.from_native(value).clone().to_native()

    def digest(self, value: Any) -> bytes:
        frame = nw.from_native(value)
        identity = [_schema(frame), [content(frame[c].to_list()) for c in frame.columns]]
        return hashlib.sha256(repr(identity).encode()).digest()

    def census(self, value: Any, label: Hashable = None) -> Census:
        frame = nw.from_native(value)
        columns = [name for name in frame.columns if name != label]
        if label is not None and (label not in frame.columns or label == self.by):
            raise PairError(
                f"label must be a column of the frame other than {self.by!r}, one of "
                f"{', '.join(name for name in frame.columns if name != self.by)}, got {label!r}"
            )
        users = tuple(frame[self.by].to_list())
        held: dict[Hashable, Any] = {}
        for user, row in zip(users, frame.select(columns).iter_rows(), strict=True):
            held.setdefault(user, []).append(tuple(content(cell) for cell in row))
        rows = {user: tuple(items) for user, items in held.items()}
        return Census(rows, is_named=True, order=users, public=_schema(frame))

    def words(self, value: Any) -> str:
        frame = nw.from_native(value)
        users = len(set(frame[self.by].to_list()))
        rows = f"{counted(len(frame), 'row')} of {counted(users, 'user')}"
        return f"{rows} (by {self.by}), {counted(len(frame.columns), 'column')}"

    def items(self, value: Any, user: Any) -> list[Any] | None:
        frame = nw.from_native(value)
        mine = [one == user for one in frame[self.by].to_list()]
        rows = [row for row, is_mine in zip(frame.rows(named=True), mine, strict=True) if is_mine]
        return rows or None

    def rows_of(self, value: Any, users: Collection[Any]) -> tuple[list[int], int] | None:
        owners = users_in(value, self.by)
        return [at for at, owner in enumerate(owners) if owner in users], len(owners)

    def reordered(self, value: Any, order: list[int]) -> Any:
        return taken(value, order)

    def labels(self, value: Any, part: str) -> list[Label]:
        if part == "columns":
            columns = nw.from_native(value).columns
            return [(None, name) for name in columns if name != self.by]
        rows = self._rows(value)
        return (
            rows if part == "items" else [(user,) for user in dict.fromkeys(row[0] for row in rows)]
        )

    def without(self, value: Any, labels: Collection[Label]) -> Any:
        columns = [label[-1] for label in labels if label[0] is None]
        gone = set(labels)
        keep = [row not in gone and row[:1] not in gone for row in self._rows(value)]
        rest = nw.from_native(select(value, keep), eager_only=True)
        return rest.drop(columns).to_native() if columns else rest.to_native()

    def cells(self, value: Any) -> dict[Label, Any]:
        frame, rows = nw.from_native(value, eager_only=True), self._rows(value)
        names = [name for name in frame.columns if name != self.by]
        columns = {name: frame[name].to_list() for name in names}
        return {(*row, name): columns[name][at] for at, row in enumerate(rows) for name in names}

    def filled(self, value: Any, cells: Mapping[Label, Any]) -> Any:
        held = self.cells(value) | dict(cells)
        frame, rows = nw.from_native(value, eager_only=True), self._rows(value)
        columns = {
            name: users_in(value, name) if name == self.by else [held[*row, name] for row in rows]
            for name in frame.columns
        }
        return rows_like(value, columns, "a dataset")

    def _rows(self, value: Any) -> list[Label]:
        """Return the label of each row: the user, and the number among the rows of the user."""
        seen: dict[Any, int] = {}
        rows = []
        for user in users_in(value, self.by):
            seen[user] = seen.get(user, -1) + 1
            rows.append((user, seen[user]))
        return rows

    def packed(self, value: Any) -> Packed | None:
        frame = nw.from_native(value)
        columns = {name: frame[name].to_list() for name in frame.columns}
        facts = {
            "form": "frame",
            "by": self.by,
            "library": frame.implementation.value,
            "dtypes": {name: str(dtype) for name, dtype in frame.schema.items()},
            "columns": columns,
            "objects": [name for name, dtype in _schema(frame) if dtype == "object"],
        }
        if not all(_is_plain(dtype) for dtype in frame.schema.values()):
            return None
        try:
            json.dumps(facts)
        except (TypeError, ValueError):
            return None
        return Packed({}, facts)


def unpacked(packed: Packed) -> Any:
    """Return the frame that was packed.

    The library of the frame must be installed.
    """
    facts = packed.facts
    columns, library = facts["columns"], facts["library"]
    if library not in _LIBRARIES:  # narwhals would import any library that it supports
        raise ValueError(f"library must be one of {', '.join(_LIBRARIES)}, got {library!r}")
    schema = {name: getattr(nw, dtype) for name, dtype in facts["dtypes"].items()}
    # In pandas 2, a cast to text would turn missing values into texts. So a first row, which is
    # dropped afterwards, holds a text, and the dtype follows from it.
    texts = {name: ["", *held] for name, held in columns.items() if schema[name] == nw.String}
    rest = {name: held for name, held in columns.items() if name not in texts}
    parts = []
    if rest:
        parts.append(nw.from_dict(rest, {name: schema[name] for name in rest}, backend=library))
    if texts:
        made = nw.from_dict(texts, backend=library)
        parts.append(nw.maybe_reset_index(made[1:]))
    made = nw.concat(parts, how="horizontal").select(*columns).to_native()
    if library == "pandas" and (names := facts.get("objects")):
        series: Any = importlib.import_module(library).Series
        made = made.assign(**{name: series(columns[name], dtype=object) for name in names})
    return made


def frame_of_rows(
    rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, type], library: str
) -> Any:
    """Return a native frame with these rows.

    Parameters
    ----------
    rows : sequence of mapping
        The value of each column, which may be None.
    kinds : mapping
        Type of each column: str, float or int.
    library : {"pandas", "polars", "pyarrow"}
        Library of the frame.
    """
    backend: Any = _validate.choice(NEW_FRAMES, library=library)
    if importlib.util.find_spec(backend) is None:
        raise ArgumentError(
            f"library must be installed, got {backend!r}. Run pip install {backend}"
        )
    dtypes: dict[type, Any] = {str: nw.String, float: nw.Float64, int: nw.Int64}
    columns = [
        nw.new_series(name, [row[name] for row in rows], dtypes[kind], backend=backend).to_frame()
        for name, kind in kinds.items()
    ]
    return nw.concat(columns, how="horizontal").to_native()


def frame_of(value: Any, by: Any, name: str) -> Any:
    """Return a checked copy of a frame, with a new index.

    Raises
    ------
    PairError
        If the frame has no such column, or has rows that belong to no user.
    """
    if not is_frame(value):
        raise TypeError(
            f"{name} must be a DataFrame of pandas or polars, got {type(value).__name__}"
        )
    frame = nw.from_native(value, eager_only=True)
    if not all(isinstance(column, str) for column in frame.columns):
        raise PairError(f"{name} must have column names that are texts, got {frame.columns}")
    if len(set(frame.columns)) < len(frame.columns):
        raise PairError(f"{name} must not repeat a column name, got {', '.join(frame.columns)}")
    if _validate.text(by=by) not in frame.columns:
        raise PairError(
            f"{name} must have a column {by!r} that identifies the users, got the columns "
            f"{', '.join(frame.columns)}"
        )
    users = frame[by].to_list()
    nobody = sum(is_missing(user) for user in users)
    if nobody:
        raise PairError(
            f"the column {by!r} of {name} must identify the user of every row, got "
            f"{nobody} rows without a user (NaN or null) among {len(users)} rows. Drop "
            "these rows, or give each row a user"
        )
    return nw.maybe_reset_index(frame).clone().to_native()


def columns_of(value: Any) -> dict[str, list[Any]]:
    """Return the cells of a frame by column; a missing cell is None."""
    frame = nw.from_native(value, eager_only=True)
    return {
        name: [None if is_missing(cell) else cell for cell in frame[name].to_list()]
        for name in frame.columns
    }


def as_arrow(value: Any) -> Any:
    """Return a frame as a table of pyarrow, which must be installed."""
    return nw.from_native(value, eager_only=True).to_arrow()


def is_missing(value: Any) -> bool:
    """Return whether a cell is missing: null, NaN, NaT or NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA
        return True


def select(value: Any, keep: list[bool]) -> Any:
    """Return some rows of a frame, with a new index."""
    frame = nw.from_native(value, eager_only=True)
    return nw.maybe_reset_index(frame.filter(keep)).to_native()


def taken(value: Any, order: list[int]) -> Any:
    """Return the rows of a frame in another order, with a new index."""
    frame = nw.from_native(value, eager_only=True)
    return nw.maybe_reset_index(frame[order]).to_native()


def stacked(parts: list[Any]) -> Any:
    """Return frames of one schema, stacked vertically, with a new index."""
    frames = [nw.from_native(part, eager_only=True) for part in parts]
    return nw.maybe_reset_index(nw.concat(frames, how="vertical")).to_native()


def users_in(value: Any, by: str) -> list[Any]:
    """Return the user of every row."""
    return list(nw.from_native(value, eager_only=True)[by].to_list())


def rows_like(value: Any, rows: Any, name: str) -> Any:
    """Convert a frame or a dict of columns to the columns and dtypes of another frame.

    Raises
    ------
    PairError
        If columns are missing or superfluous, or if values do not fit.
    """
    frame = nw.from_native(value, eager_only=True)
    if isinstance(rows, dict):
        lengths = {len(cells) for cells in rows.values() if isinstance(cells, list)} or {1}
        if len(lengths) > 1:
            raise PairError(
                f"{name} must have columns of equal lengths, got lengths {sorted(lengths)}"
            )
        (length,) = lengths
        cells = {key: one if isinstance(one, list) else [one] * length for key, one in rows.items()}
    else:
        cells = nw.from_native(rows, eager_only=True).to_dict(as_series=False)
    if set(cells) != set(frame.columns):
        raise PairError(
            f"{name} must have the columns {', '.join(frame.columns)}, got {', '.join(cells)}"
        )
    try:
        made = nw.from_dict(
            {column: cells[column] for column in frame.columns}, backend=frame.implementation
        )
        cast = [nw.col(column).cast(dtype) for column, dtype in frame.schema.items()]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about values that are refused below
            held = made.select(cast).to_native()
            if hasattr(held, "astype") and hasattr(value, "dtypes"):
                held = held.astype(dict(value.dtypes))  # narwhals merges some dtypes
    except Exception as error:  # each library has its own exceptions
        raise PairError(
            f"{name} must hold values of the columns' dtypes, "
            f"{', '.join(f'{name}: {dtype}' for name, dtype in frame.schema.items())}, got "
            f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        ) from error
    _refuse_lost(name, cells, nw.from_native(held, eager_only=True))
    return held


def _refuse_lost(name: str, cells: Mapping[str, list[Any]], held: Any) -> None:
    """Refuse values that became missing; pandas drops categories that a column lacks."""
    for column, values in cells.items():
        for before, after in zip(values, held[column].to_list(), strict=True):
            if is_missing(after) and not is_missing(before):
                raise PairError(
                    f"{name} must hold categories of the column, got {before!r} in {column!r}, "
                    f"whose dtype is {held.schema[column]}"
                )


def _schema(frame: Any) -> tuple[tuple[str, str], ...]:
    """Return the columns and their dtypes, in the notation of the frame's library."""
    native = frame.to_native()
    dtypes = [str(dtype) for dtype in native.dtypes]
    return tuple(zip(frame.columns, dtypes, strict=True))


NEW_FRAMES = ("pandas", "polars", "pyarrow")
_LIBRARIES = ("pandas", "polars", "pyarrow", "modin", "cudf")
_PLAIN = (nw.String, nw.Boolean, nw.Categorical)


def _is_plain(dtype: Any) -> bool:
    """Return whether JSON can store a column, and whether the dtype's name restores its type."""
    return bool(dtype.is_numeric()) or isinstance(dtype, _PLAIN)
