"""Datasets as bytes, for programs in other languages: JSON, CSV, Arrow and Parquet."""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpaudit._validate import describe
from dpaudit.data import as_arrow, columns_of, is_frame
from dpaudit.errors import MechanismError
from dpaudit.mechanisms.protocols import needed

TABLES = ("csv", "arrow", "parquet")
"""Kinds that hold one table."""

KINDS = ("json", *TABLES)
BINARY = ("arrow", "parquet")
"""Kinds that a program reads from a file, and not from a pipe."""


def written(data: Any, kind: str) -> bytes:
    r"""Return a dataset as the content of a file.

    JSON has one line for each user, or for each row of a frame. A table has one row for each item,
    and its column ``user`` holds the number of the user.

    Parameters
    ----------
    data : object
        An array, a list of users, a frame, or a single value; for JSON also a dict of these.
    kind : {"json", "csv", "arrow", "parquet"}
        Kind of the file. Arrow files have the IPC file format, which is also called Feather.

    Raises
    ------
    MechanismError
        If the dataset cannot be written in this kind.

    Examples
    --------
    >>> written(np.array([[0.5, 1.0], [2.0, np.nan]]), "json")
    b'[0.5, 1.0]\n[2.0, null]\n'
    >>> written([[1], [2, 3]], "csv")
    b'user,value\n0,1\n1,2\n1,3\n'
    """
    if kind == "json":
        value = plain(data)
        lines = value if isinstance(value, list) else [value]
        return "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    if kind in BINARY:
        return _arrow(data, kind)
    table = table_of(data, kind)
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*map(_csv_cells, table.values()), strict=True))
    return file.getvalue().encode(errors="backslashreplace")


def plain(value: Any) -> Any:
    """Return a value in the types of JSON; NaN and missing cells become None.

    Raises
    ------
    MechanismError
        If the value contains an infinite number or an object of another type.
    """
    if is_frame(value):
        columns = {name: plain(cells) for name, cells in columns_of(value).items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if isinstance(value, np.ndarray) and not value.dtype.names:
        number = value.dtype.kind in "biu" or (value.dtype.kind == "f" and np.isfinite(value).all())
        return value.tolist() if number else plain(value.tolist())
    if isinstance(value, np.void) and value.dtype.names:
        return {name: plain(value[name]) for name in value.dtype.names}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and not math.isinf(value):
        return None if math.isnan(value) else value
    if isinstance(value, Mapping):
        return {str(key): plain(held) for key, held in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(held) for held in value]
    if isinstance(value, datetime.date):
        return value.isoformat()
    raise MechanismError(
        "data must hold finite numbers, texts, dates, and lists or dicts of these, got "
        f"{describe(value)} of type {type(value).__name__}"
    )


def table_of(data: Any, kind: str, user: str = "user") -> dict[str, list[Any]]:
    """Return a dataset as columns, with one row for each item.

    Parameters
    ----------
    data : object
        An array, a list of users, a frame, or a single value.
    kind : str
        Kind of the file or table, which messages name.
    user : str
        Name of the column with the number of the user, if the data are not a frame.
    """
    rows = plain(data)
    if isinstance(rows, dict):
        raise MechanismError(
            f"data must be one table to be written as {kind}, got a dict of "
            f'{", ".join(map(str, rows))}. Pass input="json"'
        )
    if not isinstance(rows, list):
        return {"value": [rows]}
    if is_frame(data):
        records, names = rows, dict.fromkeys(columns_of(data))
    else:
        records = [
            {user: number, **_record(item)}
            for number, held in enumerate(rows)
            for item in (held if isinstance(held, list) else [held])
        ]
        names = dict.fromkeys(name for record in records for name in record)
        names = names or dict.fromkeys([user, *_columns_without_items(data)])
    for name in names:
        for record in records:
            if isinstance(record.get(name), list | dict):
                raise MechanismError(
                    f"data must hold single values to be written as {kind}, got "
                    f'{describe(record[name])} in the column {name}. Pass input="json"'
                )
    return {name: [record.get(name) for record in records] for name in names}


def _columns_without_items(data: Any) -> list[str]:
    """Return the columns of a dataset without any item."""
    if not isinstance(data, np.ndarray) or data.ndim < 3:
        return list(getattr(data, "dtype", np.dtype(float)).names or ["value"])
    return list(_record([0] * data.shape[2]))


def _record(item: Any) -> dict[str, Any]:
    if isinstance(item, list):
        return {f"x{at}": cell for at, cell in enumerate(item, 1)}
    return item if isinstance(item, dict) else {"value": item}


def _csv_cells(cells: list[Any]) -> list[Any]:
    """Return cells for a CSV file; a missing value is an empty cell."""
    return [str(cell).lower() if isinstance(cell, bool) else cell for cell in cells]


def _arrow(data: Any, kind: str) -> bytes:
    arrow = needed("pyarrow", f'input="{kind}"')
    file = io.BytesIO()
    try:
        table = as_arrow(data) if is_frame(data) else arrow.table(table_of(data, kind))
        if kind == "parquet":
            needed("pyarrow.parquet", 'input="parquet"', "pyarrow").write_table(table, file)
        else:
            with arrow.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
    except (arrow.ArrowException, TypeError, OverflowError) as error:
        raise MechanismError(
            f"data must be a table that can be written as {kind}, got columns that cannot: {error}"
        ) from error
    return file.getvalue()
