"""Reading of outputs that were drawn elsewhere, with checks that an audit can use them.

Each error message names the invalid side. All checks are made before the audit.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit._files import read_array
from dpaudit.engine.auditing import MIN_DRAWS
from dpaudit.errors import ArgumentError
from dpaudit.mechanisms import as_rows, kind_of, words_of_draws

Outputs = Any
"""An array ``[draws, ...]``, or the path of a .npy or .parquet file."""

_NESTED = (list, tuple, np.ndarray)


def read(name: str, outputs: Outputs) -> NDArray[Any]:
    """Return outputs as an array.

    If a path is given, the file is read.

    Parameters
    ----------
    name : str
        Name of this side for messages.
    outputs : Outputs
        Outputs in a form that :func:`dpaudit.audit_outputs` accepts.

    Raises
    ------
    ValueError
        If outputs cannot be audited: no sequence, too few outputs, infinite values, or objects.
    """
    if isinstance(outputs, str | Path):
        outputs = _from_file(name, Path(outputs))
    if hasattr(outputs, "to_records"):
        outputs = _from_frame(name, outputs)
    if isinstance(outputs, np.ma.MaskedArray):
        raise ArgumentError(
            f"{name} must be a plain array, with NaN for no answer, got a masked array, whose "
            "hidden values would be read"
        )
    try:
        array = np.asarray(outputs)
    except ValueError:  # lists of different lengths
        array = _rows(name, outputs)
    if array.ndim == 0:
        raise ArgumentError(
            f"{name} must be an array, a list, a data frame, or the path of a .npy or .parquet "
            f"file, got {_words_of_scalar(outputs)}"
        )
    if array.dtype == object:
        nested = any(isinstance(output, _NESTED) for output in array.flat)
        array = _rows(name, outputs) if nested else _plain(name, array)
    if len(array) < MIN_DRAWS:
        raise ArgumentError(
            f"{name} must hold at least {MIN_DRAWS} outputs along its first axis, got {len(array)}"
        )
    _refuse_numbers_as_texts(name, outputs, array)
    _refuse_content(name, array)
    return array


def refuse_other_kinds(
    name: str, left: NDArray[Any], right: NDArray[Any], *, lengths_vary: bool
) -> None:
    """Raise an error unless both sides hold outputs of one kind, and arrays have equal shapes.

    Parameters
    ----------
    name : str
        Name of the audit for messages.
    left, right : ndarray
        The outputs that were read, for each side.
    lengths_vary : bool
        Whether the shape is part of the outcome, as it is for lists.
    """
    if kind_of(left) != kind_of(right):
        raise ArgumentError(
            f"{name}: left and right must hold outputs of one kind, got {words_of_draws(left)} on "
            f"the left and {words_of_draws(right)} on the right"
        )
    if left.shape[1:] != right.shape[1:] and not lengths_vary:
        raise ArgumentError(
            f"{name}: left and right must hold outputs of one shape, got {words_of_draws(left)} on "
            f"the left and {words_of_draws(right)} on the right. Pass lists if the length of an "
            "output depends on the data"
        )


def _words_of_scalar(outputs: Any) -> str:
    if isinstance(outputs, np.ndarray) and outputs.dtype != object:
        return f"one value without an axis, {outputs.item()!r}"
    kind = "None" if outputs is None else type(outputs).__name__
    return f"a {kind}. Pass list(...) of it" if hasattr(outputs, "__next__") else kind


def _rows(name: str, outputs: Any) -> NDArray[Any]:
    rows = as_rows(outputs)
    if rows is None:
        raise ArgumentError(
            f"{name} must hold a number or an array of numbers for each output if lengths differ, "
            "got texts or lists of different lengths"
        )
    return rows


def _refuse_numbers_as_texts(name: str, outputs: Any, array: NDArray[Any]) -> None:
    """Raise an error if a list mixes numbers and texts, because numbers would become texts."""
    if array.dtype.kind != "U" or not isinstance(outputs, list | tuple):
        return
    flat = list(outputs)
    for _ in range(array.ndim - 1):
        flat = [x for part in flat for x in part]
    wrong = next((x for x in flat if not isinstance(x, str)), None)
    if wrong is not None:
        raise ArgumentError(
            f"{name} must hold numbers, or texts, got both, such as {wrong!r} and "
            f"{next(x for x in flat if isinstance(x, str))!r}. Pass records of both as a "
            "structured array or a data frame"
        )


def _refuse_content(name: str, array: NDArray[Any]) -> None:
    """Raise an error for infinite values, and for types of which events cannot be made."""
    if array.dtype == object:
        columns = [np.concatenate([np.zeros(0), *(row.ravel() for row in array)])]
        rows = np.repeat(np.arange(len(array)), [row.size for row in array])
        infinite = np.unique(rows[np.isinf(columns[0])])
        _refuse_infinite(name, infinite, len(array))
        return
    if array.size == 0:
        raise ArgumentError(f"{name} must hold outputs with content, got shape {array.shape[1:]}")
    for field in array.dtype.names or (None,):
        column = array if field is None else array[field]
        words = name if field is None else f"{name}, field {field!r},"
        if column.dtype.kind not in "biufUS":
            raise ArgumentError(
                f"{words} must hold numbers, booleans, texts or records of them, got {column.dtype}"
            )
        if column.dtype.kind == "f":
            per_row = np.isinf(column).reshape(len(column), -1).any(axis=1)
            _refuse_infinite(words, np.flatnonzero(per_row), len(column))


def _refuse_infinite(name: str, rows: NDArray[np.intp], draws: int) -> None:
    if len(rows):
        raise ArgumentError(
            f"{name} must hold finite numbers, or NaN for no answer, got infinite values in "
            f"{len(rows)} of {draws} outputs, first in row {rows[0]}"
        )


def _from_file(name: str, path: Path) -> Any:
    if path.suffix not in (".npy", ".parquet"):
        raise ArgumentError(f"{name} must be an array, a .npy file or a .parquet file, got {path}")
    if not path.is_file():
        raise ArgumentError(f"{name} must be an existing file, got {path}")
    if path.suffix == ".npy":
        try:
            return read_array(path)
        except (ValueError, EOFError):
            raise ArgumentError(
                f"{name} must be a file of an array of numbers, texts or records, as "
                f"numpy.save writes it, got {path}. Arrays of objects are not read"
            ) from None
    try:
        import pyarrow.parquet
    except ImportError:
        raise ArgumentError(
            "pyarrow must be installed to read .parquet files, got a .parquet file as "
            f"{name}. Run pip install pyarrow"
        ) from None
    try:
        table = pyarrow.parquet.read_table(path)
    except pyarrow.ArrowException:
        raise ArgumentError(f"{name} must be a parquet file, got another file, {path}") from None
    columns = {
        column: table[column].to_numpy(zero_copy_only=False) for column in table.column_names
    }
    return _from_columns(name, columns)


def _from_frame(name: str, frame: Any) -> Any:
    return _from_columns(name, {str(column): frame[column].to_numpy() for column in frame.columns})


def _from_columns(name: str, columns: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Return a single column as an array, or several columns as records with one field each."""
    if not columns:
        raise ArgumentError(f"{name} must have a column, got none")
    known = {column: _plain(f"{name}, column {column!r},", x) for column, x in columns.items()}
    if len(known) == 1:
        return next(iter(known.values()))
    for column, values in known.items():
        if values.ndim > 1:
            raise ArgumentError(
                f"{name}, column {column!r}, must hold one number or text in a row next to other "
                f"columns, got shape {values.shape[1:]}"
            )
    dtype = [(column, values.dtype) for column, values in known.items()]
    records = np.empty(len(next(iter(known.values()))), dtype=dtype)
    for column, values in known.items():
        records[column] = values
    return records


def _plain(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Return a column of objects as texts, or as numbers with NaN for missing values."""
    if values.dtype != object:
        return values
    if all(isinstance(value, str) for value in values.flat):
        return values.astype(str)
    try:
        known = [np.nan if value is None else value for value in values.flat]
        found = np.array(known, dtype=float)  # a column of vectors has one more axis
        return found.reshape(values.shape) if values.ndim > 1 else found
    except (TypeError, ValueError):
        at = next(i for i, value in enumerate(values.flat) if not isinstance(value, str))
        raise ArgumentError(
            f"{name} must hold numbers, or a text in every row (any word for no answer), "
            f"got {values.flat[at]!r} in row {at * len(values) // values.size}"
        ) from None
