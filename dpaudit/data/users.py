"""A frame as the rows of its users.

The class makes frames in which one user is changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw

from dpaudit.data import frames
from dpaudit.errors import ArgumentError


class UserTable:
    """A frame of pandas or polars, whose rows belong to at least two users.

    Parameters
    ----------
    frame : pandas.DataFrame or polars.DataFrame
        The frame, which is copied.
    by : str
        Column that identifies the user of each row.

    Raises
    ------
    TypeError, PairError
        For a value that is not a frame, that lacks the column, or that has rows without a user.
    """

    def __init__(self, frame: Any, by: str) -> None:
        self.frame = frames.frame_of(frame, by, "frame")
        self.by = by
        if len(self.sizes) < 2 or not self.cells:
            raise ArgumentError(
                f"frame must have at least two users and a column in addition to {by!r}, got "
                f"{len(self.sizes)} users and the columns {', '.join([by, *self.cells])}"
            )

    @cached_property
    def owners(self) -> list[Any]:
        """The user of every row."""
        return frames.users_in(self.frame, self.by)

    @cached_property
    def sizes(self) -> dict[Any, int]:
        """Number of rows of each user, in decreasing order."""
        return dict(Counter(self.owners).most_common())

    @cached_property
    def cells(self) -> dict[str, list[Any]]:
        """Cells of each column except the column of users, row by row."""
        frame = nw.from_native(self.frame, eager_only=True)
        return {name: frame[name].to_list() for name in frame.columns if name != self.by}

    def seen(self, column: str) -> tuple[list[Any], tuple[Any, ...]]:
        """Return the values in a column; if any cell is missing, include the first missing cell."""
        cells = self.cells[column]
        missing = [cell for cell in cells if frames.is_missing(cell)]
        return [cell for cell in cells if not frames.is_missing(cell)], tuple(missing[:1])

    def kind(self, column: str) -> str:
        """Return "real", "whole" or "other"."""
        dtype = nw.from_native(self.frame, eager_only=True).schema[column]
        return "real" if dtype.is_float() else "whole" if dtype.is_integer() else "other"

    def rows_of(self, user: Any) -> Any:
        """Return the rows of a user as a frame."""
        return frames.select(self.frame, [one == user for one in self.owners])

    def without(
        self, user: Any, column: str | None = None, value: Any = None, *, but: int = 0
    ) -> Any:
        """Return the frame without a user, and with at most `but` rows with a value in a column."""
        keep = [owner != user for owner in self.owners]
        if column is not None:
            found = [at for at, cell in enumerate(self.cells[column]) if keep[at] and cell == value]
            for at in found[but:]:
                keep[at] = False
        return frames.select(self.frame, keep)

    def filled(self, user: Any, rows: Sequence[Mapping[str, Any]]) -> Any:
        """Return rows of one user, with the dtypes of the frame."""
        cells = {name: [row[name] for row in rows] for name in self.cells}
        cells = {self.by: [user] * len(rows), **cells}
        return frames.rows_like(self.frame, cells, "a user")

    def stacked(self, others: Any, rows: Any) -> Any:
        """Append rows to the rows of other users."""
        return frames.stacked([others, rows])
