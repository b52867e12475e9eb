"""The search spaces of a portfolio beyond the ready-made ones: counts of users, and given data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.claims import Relation
from dpaudit.neighbors.crowds import Crowd, Levels
from dpaudit.neighbors.pairs import NeighborPair
from dpaudit.neighbors.spaces import (
    Choice,
    Integer,
    Interval,
    Magnitude,
    Range,
    SearchSpace,
    in_words,
)

Array = NDArray[Any]

_SHOWN = 64
"""Values seen in given data, at most, among which a search chooses."""


def holders(crowd: Crowd, kinds: Array, levels: Levels) -> SearchSpace:
    """Return the space of pairs in which `count` users hold a value, or one fewer.

    Aims at counts that are compared with a threshold, and at quantiles: rare categories,
    propose-test-release, "enough users" checks, bounds estimated from the data. Searches the
    `count`, and what is `held`: a category, of which all others hold another; or the highest value,
    where all others hold the lowest.
    """
    values = {
        f"{held} against {rest}": crowd.values(rest, held)
        for held, rest in ((kinds[1], kinds[0]), (levels.high, levels.low))
    }

    def build(*, count: int, held: str) -> NeighborPair:
        rest, mine = values[held]
        others = values[held][(np.arange(crowd.n_users - 1) < count - 1).astype(int)]
        words = f"holders({count}: {held})"
        return crowd.pair(crowd.rows(others), crowd.row(mine), crowd.row(rest), words)

    ranges: dict[str, Range] = {"count": _range(crowd.n_users, 1), "held": Choice(tuple(values))}
    return SearchSpace(build, ranges, name="holders")


def some_items(crowd: Crowd, levels: Levels, positions: Interval | Magnitude) -> SearchSpace:
    """Return the space of pairs in which a user moves `count` items across the domain.

    Aims at limits on items that should be limits on users, and at users with unlike items.
    Searches the `count`, the position of all `others`, and that of the user's `own` other items.
    """

    def build(*, count: int, others: float, own: float) -> NeighborPair:
        moved = slice(0, count)
        top, bottom = (crowd.some(value, own, moved) for value in (levels.high, levels.low))
        words = in_words({"count": count, "others": others, "own": own})
        return crowd.pair(crowd.rows(others), top, bottom, f"some_items({words})")

    ranges: dict[str, Range] = {
        "count": _range(crowd.m, 1),
        "others": positions,
        "own": positions,
    }
    return SearchSpace(build, ranges, name="some_items")


def around(
    crowd: Crowd,
    data: Array,
    levels: Levels,
    positions: Interval | Magnitude | None,
    *,
    missing: bool,
) -> tuple[SearchSpace, ...]:
    """Return the spaces of pairs around given data: each user replaced, or removed.

    Parameters
    ----------
    crowd : Crowd
        Of the data's shape and dtype.
    data : ndarray, shape [n_users, ...]
        One side of the pairs under replacement; under removal both sides, but for the user.
    levels : Levels
        The extremes.
    positions : Interval or Magnitude or None
        Where a user may be put; None for data that are no numbers.
    missing : bool
        Whether items may be NaN.
    """
    remove = crowd.relation == Relation.ADD_REMOVE_USER
    users = _range(len(data))
    offsets = users if remove else _range(len(data) - 1, 1)

    def pair(user: int, left: Array, right: Array | None, words: str) -> NeighborPair:
        others = np.delete(data, user, axis=0)
        right = data[user] if right is None else right
        return crowd.pair(others, left, right, words, user)

    ends = {"high": levels.high, "low": levels.low}
    if missing:
        ends["empty"] = np.nan

    def copied(*, user: int, offset: int) -> NeighborPair:
        other = (user + offset) % len(data)
        return pair(user, data[other], None, f"copied(user={user}, of={other})")

    def extreme(*, user: int, moves: str) -> NeighborPair:
        part, _, against = moves.partition(" against ")
        rows = {name: crowd.row(value) for name, value in ends.items()}
        if part.startswith("one item "):
            left = data[user].copy()
            left[:1] = rows[part.removeprefix("one item ")][:1]
        else:
            left = rows[part]
        return pair(user, left, rows.get(against), f"extreme(user={user}, {moves})")

    def placed(*, user: int, value: float, against: str) -> NeighborPair:
        right = crowd.row(ends[against]) if against in ends else None
        words = in_words({"user": user, "value": value, "against": against})
        return pair(user, crowd.row(value), right, f"placed({words})")

    moves = ["high against low", "high against itself", "low against itself"]
    if crowd.item_shape and crowd.m > 1:
        moves += ["one item high against itself", "one item low against itself"]
    if missing:
        moves.append("empty against itself")
    spaces = [
        SearchSpace(extreme, {"user": users, "moves": Choice(tuple(moves))}, name="extreme"),
        # Under removal 0 leaves the data as they are.
        SearchSpace(copied, {"user": users, "offset": offsets}, name="copied"),
    ]
    if positions is not None:
        against = Choice(("itself",) if remove else ("itself", "high", "low"))
        ranges = {"user": users, "value": positions, "against": against}
        spaces.append(SearchSpace(placed, ranges, name="placed"))
    else:
        spaces.append(_seen(crowd, data, pair, users))
    return tuple(spaces)


def _seen(
    crowd: Crowd,
    data: Array,
    pair: Callable[[int, Array, Array | None, str], NeighborPair],
    users: Range,
) -> SearchSpace:
    """Return the space of pairs in which all items of a user, or one, take a value of the data."""
    values = thinned(np.unique(data), _SHOWN)

    def seen(*, user: int, value: int, items: str) -> NeighborPair:
        left = crowd.row(values[value])
        if items == "one":
            left = data[user].copy()
            left[:1] = values[value]
        words = in_words({"user": user, "value": values[value], "items": items})
        return pair(user, left, None, f"seen({words})")

    items = Choice(("all", "one") if crowd.item_shape and crowd.m > 1 else ("all",))
    return SearchSpace(
        seen, {"user": users, "value": _range(len(values)), "items": items}, name="seen"
    )


def thinned(values: Array, most: int) -> Array:
    """Return at most `most` of some values, evenly chosen, both ends included."""
    if len(values) <= most:
        return values
    return np.asarray(values[np.linspace(0, len(values) - 1, most).round().astype(int)])


def _range(count: int, first: int = 0) -> Range:
    """Return the range of `count` whole numbers."""
    return Integer(first, first + count - 1) if count > 1 else Choice((first,))
