"""The pairs of a portfolio: many ordinary users, and one user with a large influence.

Datasets have any shape ``[n_users, ...]`` and any dtype. The values of users are *levels*: the
lowest, a middle and the highest possible value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import PairError
from dpaudit.neighbors.pairs import NeighborPair
from dpaudit.neighbors.recipes import Crowd, counted
from dpaudit.neighbors.spaces import Choice, Interval, Magnitude, Range, SearchSpace, in_words

Array = NDArray[Any]
Draft = tuple[Array, Array, Array, str, int | None]
"""The others, the user on the left and on the right, a description, and the user's place."""

_CATEGORIES = 3
"""Number of values that all others share in the pairs with rare values."""

_SEEN = 64
"""Largest number of values of given data among which a search chooses."""


@dataclass(frozen=True, eq=False)
class Levels:
    """Values that represent all values that a user may hold.

    Parameters
    ----------
    low, mid, high : object
        Scalars of the data's dtype.
    spread : ndarray, shape (k,)
        Many different values in order, from `low` to `high`; at least two.
    """

    low: Any
    mid: Any
    high: Any
    spread: Array


# --- pairs ------------------------------------------------------------------------------------


def crowds(
    crowd: Crowd, scales: Sequence[Levels], kinds: Array, *, missing: bool
) -> tuple[NeighborPair, ...]:
    """Return the pairs of a portfolio.

    Pairs that expose many mistakes come before other pairs.

    Parameters
    ----------
    crowd : Crowd
        Builder of the pairs.
    scales : sequence of Levels
        Levels for each possible size of the data, from the largest size to the smallest.
    kinds : ndarray, shape (k,)
        Different values in order, used as the values of a category; at least two.
    missing : bool
        Whether items may be NaN.
    """
    found: dict[tuple[bytes, bytes], NeighborPair] = {}
    drafts = [_majorities(crowd, levels) for levels in scales]
    drafts += [_items(crowd, scales[0]), _places(crowd, scales[0])]
    drafts += [_kinds(crowd, kinds), _opposite(crowd, scales[0])]
    if missing:
        drafts.append(_empty(crowd, scales[0]))
    if len(crowd.item_shape) > 1:
        drafts.append(_axes(crowd, scales[0]))
    drafts += [_spreads(crowd, levels) for levels in scales]
    for draft in drafts:
        for others, left, right, words, at in draft:
            try:
                pair = crowd.pair(others, left, right, words, at)
            except PairError:  # data with so few users or values give no such pair
                continue
            if not pair.is_null:
                found.setdefault((pair.left.tobytes(), pair.right.tobytes()), pair)
    return tuple(found.values())


def _majorities(crowd: Crowd, levels: Levels) -> Iterator[Draft]:
    """Yield pairs of a user against all others, across the domain, and between two halves."""
    low, mid, high = levels.low, levels.mid, levels.high
    top, middle, bottom = crowd.row(high), crowd.row(mid), crowd.row(low)
    others = crowd.n_users - 1
    yield crowd.rows(mid), top, bottom, f"across(others={mid}, {high} to {low})", None
    yield crowd.rows(mid), top, middle, f"lone_user(others={mid}, {high} to {mid})", None
    for below in sorted({others // 2, (others + 1) // 2}):
        halves = scalars(crowd, low, high)[(np.arange(others) >= below).astype(int)]
        words = f"halves({below} at {low}, {others - below} at {high})"
        yield crowd.rows(halves), top, bottom, words, None
    yield crowd.rows(high), bottom, top, f"leaves_crowd(others={high}, {low} to {high})", None
    yield crowd.rows(low), top, bottom, f"leaves_crowd(others={low}, {high} to {low})", None


def _spreads(crowd: Crowd, levels: Levels) -> Iterator[Draft]:
    """Yield pairs in which the others are spread out, and the user is at an end or a duplicate."""
    low, high, values = levels.low, levels.high, levels.spread
    others = values[np.linspace(0, len(values) - 1, crowd.n_users - 1).round().astype(int)]
    words = f"spread({low} to {high}"
    yield crowd.rows(others), crowd.row(high), crowd.row(low), f"{words}, to the ends)", None
    inner = others[len(others) // 2]
    yield crowd.rows(others), crowd.row(high), crowd.row(inner), f"{words}, a duplicate)", None
    below = crowd.rows(others)
    yield below, crowd.row(low), crowd.row(inner), f"{words}, a duplicate at the end)", None


def _items(crowd: Crowd, levels: Levels) -> Iterator[Draft]:
    """Yield pairs in which the user moves only some items, or moves items to both ends."""
    low, mid, high, m = levels.low, levels.mid, levels.high, crowd.m
    if m < 2:
        return
    others = crowd.rows(mid)
    for name, items in (("first", slice(0, 1)), ("last", slice(m - 1, m))):
        top, bottom = crowd.some(high, mid, items), crowd.some(low, mid, items)
        yield others, top, bottom, f"one_item(the {name}, {high} to {low})", None
    mixed = crowd.some(high, low, slice(0, m // 2))
    yield others, mixed, crowd.row(mid), f"mixed_items(half {high}, half {low})", None


def _opposite(crowd: Crowd, levels: Levels) -> Iterator[Draft]:
    """Yield pairs in which some items of the user move up, and the rest of its items move down.

    Under removal nothing moves, and the pairs would be those of mixed items.
    """
    low, mid, high, m = levels.low, levels.mid, levels.high, crowd.m
    for name, count in (("half", m // 2), ("one", 1)) if crowd.is_replaced and m > 1 else ():
        up, down = (crowd.some(*ends, slice(0, count)) for ends in ((high, low), (low, high)))
        words = f"opposite_items({name} from {high} to {low}, the rest from {low} to {high})"
        yield crowd.rows(mid), up, down, words, None


def _places(crowd: Crowd, levels: Levels) -> Iterator[Draft]:
    """Yield pairs whose user is first or in the middle; in all other pairs, the user is last."""
    low, mid, high = levels.low, levels.mid, levels.high
    for at in sorted({0, crowd.n_users // 2}):
        words = f"place(user {at}, others={mid}, {high} to {low})"
        yield crowd.rows(mid), crowd.row(high), crowd.row(low), words, at


def _kinds(crowd: Crowd, values: Array) -> Iterator[Draft]:
    """Yield pairs with a value that no other user has, or a user with many different values."""
    known = values[:_CATEGORIES] if len(values) > _CATEGORIES else values[:-1]
    others = crowd.rows(np.resize(known, crowd.n_users - 1))
    new, old = values[-1], values[0]
    yield others, crowd.row(new), crowd.row(old), f"rare_value({new} of one user)", None
    if crowd.m > 1 and len(values) > 1:
        many = crowd.row(np.resize(values, crowd.m))
        alone = crowd.rows(old)
        yield others, many, crowd.row(old), "many_values(some shared)", None
        yield alone, many, crowd.row(old), "many_values(of one user)", None


def _empty(crowd: Crowd, levels: Levels) -> Iterator[Draft]:
    """Yield pairs with missing data: one item or all items of a user are NaN."""
    if not crowd.item_shape:
        return
    others, middle, nan = crowd.rows(levels.mid), crowd.row(levels.mid), np.nan
    yield others, crowd.row(nan), middle, "empty_user(no item)", None
    yield others, crowd.row(nan), crowd.row(levels.high), "empty_user(no item, or high)", None
    one = crowd.some(nan, levels.mid, slice(0, 1))
    yield others, one, middle, "missing_item(the first)", None
    high = crowd.row(levels.high)
    yield crowd.rows(nan), high, crowd.row(levels.low), "only_user(all others empty)", None
    yield crowd.rows(nan), high, crowd.row(nan), "only_user(all empty without it)", None


def _axes(crowd: Crowd, levels: Levels) -> Iterator[Draft]:
    """Yield pairs in which the user moves along one coordinate, or in opposite directions."""
    low, mid, high = levels.low, levels.mid, levels.high
    others = crowd.rows(mid)
    for name, index in (("first", 0), ("last", -1)):
        top, bottom = crowd.row(mid), crowd.row(mid)
        top[..., index], bottom[..., index] = high, low
        yield others, top, bottom, f"one_axis(the {name}, {high} to {low})", None
    top, bottom = crowd.row(high), crowd.row(low)
    top[..., 1::2], bottom[..., 1::2] = low, high
    yield others, top, bottom, f"opposite_axes({high} and {low})", None


# --- spaces -----------------------------------------------------------------------------------


def holders(crowd: Crowd, kinds: Array, levels: Levels) -> SearchSpace:
    """Return the pairs with `count` holders of a value on one side, and `count` - 1 on the other.

    The space targets counts that are compared with a threshold, and quantiles. Examples are rare
    categories, propose-test-release, "enough users" checks, and bounds estimated from the data. The
    search chooses `count` and the value `held`. Either `held` is a category and all other users
    hold another category, or `held` is the highest value and all other users hold the lowest value.
    """
    ends = ((kinds[1], kinds[0]), (levels.high, levels.low))
    values = {f"{held} against {rest}": scalars(crowd, rest, held) for held, rest in ends}

    def build(*, count: int, held: str) -> NeighborPair:
        rest, mine = values[held]
        others = values[held][(np.arange(crowd.n_users - 1) < count - 1).astype(int)]
        words = f"holders({count}: {held})"
        return crowd.pair(crowd.rows(others), crowd.row(mine), crowd.row(rest), words)

    ranges: dict[str, Range] = {"count": counted(crowd.n_users, 1), "held": Choice(tuple(values))}
    return SearchSpace(build, ranges, name="holders")


def scalars(crowd: Crowd, *values: Any) -> Array:
    """Return values as an array of the data's dtype."""
    array = np.empty(len(values), dtype=crowd.dtype)
    for i, value in enumerate(values):
        array[i] = crowd.cast(value)
    return array


def around(
    crowd: Crowd, data: Array, levels: Levels, positions: Interval | Magnitude | None, missing: bool
) -> list[SearchSpace]:
    """Return the spaces of pairs around given data, in which each user is replaced or removed.

    Parameters
    ----------
    crowd : Crowd
        Builder of pairs that have the shape and dtype of the data.
    data : ndarray, shape [n_users, ...]
        One side of the pairs if users are replaced. If users are removed, both sides, except for
        the removed user.
    levels : Levels
        Extreme values.
    positions : Interval or Magnitude or None
        Range of values of a moved user; None for data that are not numbers.
    missing : bool
        Whether items may be NaN.
    """
    users, several = counted(len(data)), bool(crowd.item_shape) and crowd.m > 1
    ends = {"high": levels.high, "low": levels.low}
    if missing:
        ends["empty"] = np.nan

    def pair(user: int, left: Array, right: Array | None, words: str) -> NeighborPair:
        others = np.delete(data, user, axis=0)
        return crowd.pair(others, left, data[user] if right is None else right, words, user)

    def first_item(user: int, value: Any) -> Array:
        """Return a user whose first item holds a value."""
        row: Array = data[user].copy()
        row[:1] = crowd.row(value)[:1]
        return row

    def copied(*, user: int, offset: int) -> NeighborPair:
        other = (user + offset) % len(data)
        return pair(user, data[other], None, f"copied(user={user}, of={other})")

    def extreme(*, user: int, moves: str) -> NeighborPair:
        part, _, against = moves.partition(" against ")
        name = part.removeprefix("one item ")
        left = crowd.row(ends[name]) if name == part else first_item(user, ends[name])
        right = crowd.row(ends[against]) if against in ends else None
        return pair(user, left, right, f"extreme(user={user}, {moves})")

    def placed(*, user: int, value: float, against: str) -> NeighborPair:
        right = crowd.row(ends[against]) if against in ends else None
        words = in_words({"user": user, "value": value, "against": against})
        return pair(user, crowd.row(value), right, f"placed({words})")

    values = thinned(np.unique(data), _SEEN)

    def seen(*, user: int, value: int, items: str) -> NeighborPair:
        left = crowd.row(values[value]) if items == "all" else first_item(user, values[value])
        words = in_words({"user": user, "value": values[value], "items": items})
        return pair(user, left, None, f"seen({words})")

    moves = ["high against low", "high against itself", "low against itself"]
    moves += ["one item high against itself", "one item low against itself"] if several else []
    moves += ["empty against itself"] if missing else []
    # If users are removed, an offset of 0 leaves the data unchanged.
    offsets = counted(len(data) - 1, 1) if crowd.is_replaced else users
    searched: list[tuple[Callable[..., NeighborPair], dict[str, Range]]] = [
        (extreme, {"user": users, "moves": Choice(tuple(moves))}),
        (copied, {"user": users, "offset": offsets}),
    ]
    if positions is not None:
        against = Choice(("itself", "high", "low") if crowd.is_replaced else ("itself",))
        searched.append((placed, {"user": users, "value": positions, "against": against}))
    else:
        items = Choice(("all", "one") if several else ("all",))
        searched.append((seen, {"user": users, "value": counted(len(values)), "items": items}))
    return [SearchSpace(build, ranges) for build, ranges in searched]


def thinned(values: Array, most: int) -> Array:
    """Return at most `most` of the values, evenly chosen; both ends are among them."""
    if len(values) <= most:
        return values
    return np.asarray(values[np.linspace(0, len(values) - 1, most).round().astype(int)])
