"""Comparison of the users of two datasets, and pairs of frames that are made from one frame."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from dpaudit.data import frames
from dpaudit.data.forms import Census
from dpaudit.errors import ArgumentError, PairError

# --- users that differ between two datasets, checked against a relation ------------------------


def replaced(left: Census, right: Census, most: int) -> tuple[Hashable, ...]:
    """Return the replaced users; at most `most` users may be replaced.

    A user with a name may be replaced by a user with another name. In this case, both users are
    returned.

    Raises
    ------
    PairError
        If the datasets also differ in anything else.
    """
    if len(left.held) != len(right.held):
        raise PairError(
            "the two datasets must have equally many users for replace_user, got "
            f"{len(left.held)} on the left and {len(right.held)} on the right. Use "
            "relation=Relation.ADD_REMOVE_USER if one side lacks a user"
        )
    if not left.held:
        raise PairError(
            "the datasets must have at least one user for replace_user, got empty datasets"
        )
    gone = [user for user in left.held if user not in right.held]
    come = [user for user in right.held if user not in left.held]
    changed = [u for u in left.held if u in right.held and left.held[u] != right.held[u]]
    count = len(changed) + max(len(gone), len(come))
    check_count(count, most, [*changed, *gone, *come])
    found = (*changed, *gone, *come)
    _same_rest(left, right, set(found))
    return found


def added(left: Census, right: Census, most: int) -> tuple[Hashable, ...]:
    """Return the users whom one side lacks; their number must be between 1 and `most`.

    Raises
    ------
    PairError
        If the datasets also differ in anything else.
    """
    large, small = (left, right) if len(left.held) > len(right.held) else (right, left)
    count = len(large.held) - len(small.held)
    if not 1 <= count <= most:
        raise PairError(
            f"the two datasets must differ by {_count(most)} for add_remove_user, got "
            f"{len(left.held)} users on the left and {len(right.held)} on the right"
        )
    found = _extra(large, small)
    if large.is_named:
        strange = [user for user in small.held if user not in large.held]
        if strange:
            raise PairError(
                "the larger dataset must hold all users of the smaller dataset for "
                f"add_remove_user, got {strange[0]!r} only in the smaller dataset"
            )
        _same_rest(large, small, set(found))
    elif len(found) != count or large.public != small.public:
        raise PairError(
            f"the two datasets must be equal apart from {_count(count)} of the larger "
            "one, got other differences"
        )
    return found


def _extra(large: Census, small: Census) -> tuple[Hashable, ...]:
    """Return the users of the larger side that the smaller side lacks."""
    if large.is_named:
        return tuple(user for user in large.held if user not in small.held)
    # If users have no names, removing some rows of the larger side must give the smaller side.
    # Matching each row of the smaller side with the first equal row never misses a possible match.
    rest = iter(small.held.values())
    wanted = next(rest, None)
    found = []
    for user, held in large.held.items():
        if wanted is not None and held == wanted:
            wanted = next(rest, None)
        else:
            found.append(user)
    return tuple(found)


def _same_rest(left: Census, right: Census, users: set[Hashable]) -> None:
    if left.public != right.public:
        raise PairError(
            "left and right must have the same columns, dtypes and constants, because a mechanism "
            f"can distinguish the two by these, got {left.public} and {right.public}"
        )
    a, b = left.without(users), right.without(users)
    if a.held != b.held:
        odd = next(user for user, held in a.held.items() if b.held.get(user) != held)
        raise PairError(
            "the datasets of a pair must not differ in anything else, got different "
            f"values of {odd!r}"
        )
    if a.order != b.order:
        raise PairError(
            "the rows of all other users must be in the same order on both sides. Sort both "
            "sides, or make the pair from one frame by NeighborPair.from_frame"
        )


def check_count(count: int, most: int, users: Sequence[Any]) -> None:
    """Raise an error if more users differ than a relation allows."""
    if count > most:
        listed = ", ".join(repr(user) for user in users[:5]) + (" ..." if len(users) > 5 else "")
        raise PairError(
            f"the datasets of a pair must differ in {_count(most)} only, got "
            f"differences in {count}: {listed}. Use Relation.REPLACE_USER.of_group(k) for "
            "a group"
        )


def _count(most: int) -> str:
    return "one user" if most == 1 else f"up to {most} users"


def frame_sides(
    frame: Any, by: str, drop: Any, replace: Mapping[Any, Any] | None
) -> tuple[Any, Any, tuple[Any, ...], str]:
    """Return the two sides of a pair, the users who differ, and a description.

    If both `drop` and `replace` are given, the user has other rows on the left and is absent on the
    right.

    The parameters are those of :meth:`NeighborPair.from_frame`.
    """
    if drop is None and replace is None:
        raise ArgumentError(
            f"drop or replace must be given, got drop={drop!r} and replace={replace!r}"
        )
    left = frames.frame_of(frame, by, "frame")
    users = frames.users_in(left, by)
    dropped = tuple(drop) if isinstance(drop, list | tuple | set) else (drop,)
    if replace is None:
        gone = dropped
    elif not isinstance(replace, Mapping) or not replace:
        raise TypeError(
            f"replace must be a dict from a user to the user's new rows, got {replace!r}"
        )
    else:
        gone = tuple(replace)
        if drop is not None and set(dropped) != set(gone):
            raise ArgumentError(
                "drop and replace must hold the same users if both are given, got "
                f"drop={drop!r} and replace={replace!r}"
            )
    known = set(users)
    for user in gone:
        if user not in known:
            some = ", ".join(map(repr, list(dict.fromkeys(users))[:5]))
            raise PairError(
                f"drop and replace must hold users of the frame, got {user!r}. The users in the "
                f"column {by!r} are {some}" + (", ..." if len(known) > 5 else "")
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
    """Return two frames in which some users have other rows, and all other rows keep their places.

    If a row of such a user has a counterpart on the other side, both rows stand where the frame has
    a row of that user. Rows that exist on only one side come last, so that no other row shifts.

    Parameters
    ----------
    frame : DataFrame
        The rows of all users.
    users : list
        The user of each row.
    left, right : dict
        Map from a user to the frame of the user's rows on that side.
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
