"""Two frames that differ in one user, made of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpaudit.data import frames
from dpaudit.errors import ArgumentError, PairError


def sides(
    frame: Any, by: str, drop: Any, replace: Mapping[Any, Any] | None
) -> tuple[Any, Any, tuple[Any, ...], str]:
    """Return the frame, the frame with another user or without one, who differs, and words.

    With both, the user holds other rows on the left, and is gone on the right.

    Parameters are those of :meth:`NeighborPair.from_frame`.
    """
    if not frames.is_frame(frame):
        raise TypeError(
            f"frame must be a DataFrame of pandas or polars, got {type(frame).__name__}"
        )
    if drop is None and replace is None:
        raise ArgumentError(f"give drop or replace, got drop={drop!r} and replace={replace!r}")
    left = frames.frame_of(frame, by, "frame")
    users = frames.users_in(left, by)
    dropped = tuple(drop) if isinstance(drop, list | tuple | set) else (drop,)
    if replace is None:
        gone = dropped
    elif not isinstance(replace, Mapping) or not replace:
        raise TypeError(
            f"replace must be a dict from a user to the rows in its place, got {replace!r}"
        )
    else:
        gone = tuple(replace)
        if drop is not None and set(dropped) != set(gone):
            raise ArgumentError(
                "of drop and replace together, both must name the same users, got "
                f"drop={drop!r} and replace={replace!r}"
            )
    known = set(users)
    for user in gone:
        if user not in known:
            some = ", ".join(map(repr, list(dict.fromkeys(users))[:5]))
            raise PairError(
                f"user {user!r} is not in the column {by!r}, whose users are {some}"
                + (", ..." if len(known) > 5 else "")
            )
    rest = frames.select(left, [user not in gone for user in users])
    names = ", ".join(map(str, gone))
    if replace is None:
        return left, rest, gone, f"frame without {names}"
    fresh = []
    for user, rows in replace.items():
        if isinstance(rows, Mapping) and by not in rows:
            rows = {by: user, **rows}
        fresh.append(frames.rows_like(left, rows, f"replace[{user!r}]"))
    changed = frames.stacked([rest, *fresh])
    if drop is not None:
        return changed, rest, gone, f"frame with {names} replaced, and without"
    return left, changed, gone, f"frame with {names} replaced"
