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
    names = ", ".join(map(str, gone))
    own = {user: frames.select(left, [one == user for one in users]) for user in gone}
    nothing = {user: frames.select(rows, [False] * len(rows)) for user, rows in own.items()}
    fresh = {}
    for user, rows in (replace or {}).items():
        if isinstance(rows, Mapping) and by not in rows:
            rows = {by: user, **rows}
        fresh[user] = frames.rows_like(left, rows, f"replace[{user!r}]")
    words = f"frame without {names}"
    if replace is not None:
        words = f"frame with {names} replaced" + ", and without" * (drop is not None)
    before = own if drop is None or replace is None else fresh
    after = fresh if drop is None else nothing
    arranged, right = _arranged(left, users, before, after)
    moved = before is own and frames.users_in(arranged, by) != users
    return arranged, right, gone, words + ", rows without a counterpart last" * moved


def _arranged(
    frame: Any, users: list[Any], left: Mapping[Any, Any], right: Mapping[Any, Any]
) -> tuple[Any, Any]:
    """Return two frames in which some users hold other rows, and nobody else changes places.

    A row of such a user that has a counterpart on the other side stands where the frame has a row
    of that user. Rows that only one side has come last, so that no other row shifts.

    Parameters
    ----------
    frame : DataFrame
        The rows of all users.
    users : list
        The user of each row.
    left, right : dict
        From a user to its rows on that side, a frame.
    """
    made = []
    for held, counterpart in ((left, right), (right, left)):
        places = [at for at, user in enumerate(users) if user not in held]
        for user, rows in held.items():
            own = [at for at, one in enumerate(users) if one == user]
            common = own[: min(len(rows), len(counterpart[user]))]
            places += common + [len(users)] * (len(rows) - len(common))
        others = frames.select(frame, [user not in held for user in users])
        order = sorted(range(len(places)), key=places.__getitem__)
        made.append(frames.taken(frames.stacked([others, *held.values()]), order))
    return made[0], made[1]
