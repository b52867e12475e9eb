"""The two datasets of a pair in readable form: the differing user and the other users' data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.data import ArrayForm, counted
from dpaudit.neighbors import NeighborPair
from dpaudit.results.words import number, short

Array = NDArray[Any]

ITEMS = 8
"""Number of items of the differing user that are shown: first items in which the sides differ, and
among these, first items with new values."""
_NAMED = 2  # number of items that one line shows
_ABSENT = "absent"
_VALUES = 12  # Number of values of an item that are shown.
_LETTERS = 160
_COUNTED_VALUES = 10_000  # Number of values among which different values are counted.


@dataclass(frozen=True)
class ItemRow:
    """One item of the differing user on both sides.

    An absent user has no items.
    """

    name: str
    left: str
    right: str
    differs: bool


@dataclass(frozen=True)
class Datasets:
    """The text about a pair on a page.

    Parameters
    ----------
    title : str
        Description of the differing user.
    items : tuple of ItemRow
        The items of the differing user on both sides, or the query values.
    left_out : str
        Description of the items that are not shown, or "".
    others : str
        Values of the other users. Empty for query values.
    who : str
        Start of a line: the differing user, and the side on which the user is absent.
    """

    title: str
    items: tuple[ItemRow, ...]
    left_out: str
    others: str
    who: str = ""


def datasets(pair: NeighborPair) -> Datasets:
    """Return the text about a pair on a page.

    Texts of users are not escaped here. If the users of a group differ, the first of these users is
    shown.
    """
    sides, is_array = (pair.left, pair.right), isinstance(pair.form, ArrayForm)
    if pair.relation.name == "within_sensitivity":
        left, right = (list(np.ravel(side)) for side in sides)
        items, left_out = _side_by_side(left, right, "value")
        return Datasets("Query values on both sides", items, left_out, "", "query values")
    if pair.relation.name == "replace_value":
        both = " on the left and ".join(pair.form.words(side) for side in sides)
        return Datasets("The two values", (), "", f"The client holds {both} on the right.")
    words = " against ".join(dict.fromkeys(pair.form.words(side) for side in sides))
    if not pair.users:
        return Datasets("The two datasets", (), "", f"Both hold {words}.")
    first, longest = pair.users[0], max(map(len, sides)) if is_array else 0
    one, two = [  # in arrays, the users behind an absent user move up by one
        None if is_array and len(side) < longest else pair.form.items(side, first) for side in sides
    ]
    who = f"user {first}" + f", one of {len(pair.users)}" * (len(pair.users) > 1)
    gone = ""
    for name, held in (("left", one), ("right", two)):
        gone += f", absent on the {name}" * (held is None)
    rest = "all other users are the same"
    if is_array:
        larger = max(sides, key=len)
        rest += _range(np.delete(larger, list(pair.users), axis=0))
    items, left_out = _side_by_side(one, two, "item")
    others = f"The datasets hold {words}; {rest}."
    return Datasets(f"U{who[1:]} differs{gone}", items, left_out, others, who + gone)


def differing_values(pair: NeighborPair) -> list[NDArray[np.float64] | None]:
    """Return all numbers of the differing user on both sides; None for an absent user.

    If the datasets are no arrays of numbers, or no user differs, both entries are None.
    """
    sides, is_array = (pair.left, pair.right), isinstance(pair.form, ArrayForm)
    if not is_array or any(np.asarray(side).dtype.kind not in "biuf" for side in sides):
        return [None, None]
    if pair.relation.name == "within_sensitivity":
        return [np.ravel(side).astype(float) for side in sides]
    if not pair.users:
        return [None, None]
    first, longest = pair.users[0], max(map(len, sides))
    return [None if len(side) < longest else np.ravel(side[first]).astype(float) for side in sides]


def who_differs(pair: NeighborPair) -> str:
    """Return what the differing user holds on both sides, on one line; "" if no user differs.

    Examples
    --------
    >>> who_differs(NeighborPair([[0.0, 1.0], [1.0, 1.0]], [[0.0, 1.0], [5.0, 5.0]]))
    'user 1: left 1, right 5 in all 2 items'
    """
    shown = datasets(pair)
    of_items: dict[str, list[str]] = {}
    for row in shown.items:
        if row.differs:
            sides = {"left": row.left, "right": row.right}
            words = ", ".join(f"{k} {v}" for k, v in sides.items() if v != _ABSENT)
            of_items.setdefault(words, []).append(row.name)
    if not of_items:
        return ""
    parts = []
    for words, names in of_items.items():
        where = f" in {names[0]}"
        if len(names) == len(shown.items) and not shown.left_out:
            where = f" in all {len(names)} items" * (len(names) > 1)
        elif len(names) > 1:
            where += " and others" if shown.left_out else f" and {len(names) - 1} more"
        parts.append(words + where)
    if len(parts) > _NAMED:
        parts = [*parts[:_NAMED], "..."]
    return f"{shown.who}: {short('; '.join(parts), _LETTERS)}"


def sizes_and_difference(pair: NeighborPair) -> str:
    """Return a small pair on one line: its size, both sides of the user, and the other users.

    Examples
    --------
    >>> sizes_and_difference(NeighborPair([[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [5.0, 5.0]]))
    '2 users of 2 items; user 1: left 1, right 5 in all 2 items; all other values are 0'
    """
    words = []
    for side in (pair.left, pair.right):
        if isinstance(pair.form, ArrayForm):
            words.append(
                _of_users(side) if pair.relation.is_of_users else counted(side.size, "value")
            )
        else:
            words.append(pair.form.words(side))
    parts = [" against ".join(dict.fromkeys(words)), who_differs(pair)]
    if isinstance(pair.form, ArrayForm) and pair.users:
        larger = max(pair.left, pair.right, key=len)
        rest = np.delete(larger, list(pair.users), axis=0)
        values = list(dict.fromkeys(words_of(one) for one in rest.ravel()[:_COUNTED_VALUES]))
        if 0 < len(values) <= _NAMED:
            parts.append(f"all other values are {' or '.join(values)}")
    return "; ".join(filter(None, parts))


def _of_users(side: Array) -> str:
    """Return the numbers of users and items of an array, and the shape of an item."""
    users = counted(len(side), "user")
    if side.ndim < 2:
        return users
    items = f"{users} of {counted(side.shape[1], 'item')}"
    shape = "x".join(map(str, side.shape[2:]))
    return items + f" of {shape} value{'s' * (shape != '1')}" * (side.ndim > 2)


def _side_by_side(
    left: list[Any] | None, right: list[Any] | None, name: str
) -> tuple[tuple[ItemRow, ...], str]:
    """Return the items of both sides, and a description of the items that are not shown."""
    count = max(len(left or ()), len(right or ()))
    rows: list[ItemRow] = []
    ranks = []  # items in which the sides differ come first, and among them each new value
    known: set[tuple[str, str]] = set()
    for index in range(count):
        one, two = (side[index] if side and index < len(side) else None for side in (left, right))
        texts = [_ABSENT if item is None else words_of(item) for item in (one, two)]
        label = name if count == 1 else f"{name} {index}"
        differs, is_known = _key(one) != _key(two), (texts[0], texts[1]) in known
        known.add((texts[0], texts[1]))
        rows.append(ItemRow(label, texts[0], texts[1], differs))
        ranks.append((not differs, is_known))
    hidden = sorted(range(count), key=ranks.__getitem__)[ITEMS:]
    shown = tuple(row for index, row in enumerate(rows) if index not in hidden)
    differ = sum(rows[index].differs for index in hidden)
    left_out = f"and {len(hidden):,} more {name}s, of which {differ:,} differ" if hidden else ""
    return shown, left_out


def _key(item: Any) -> bytes | str:
    """Return a key that differs if two items differ.

    Numbers are compared bit for bit.
    """
    is_plain = isinstance(item, np.generic | np.ndarray) and not item.dtype.hasobject
    return item.tobytes() if is_plain else words_of(item)


def _range(rows: Array) -> str:
    """Return the smallest, mean and largest value; if there are fields, for each field."""
    if rows.dtype.names:
        fields = [f"{name}{_range(rows[name])}" for name in rows.dtype.names[:4]]
        return f" ({'; '.join(fields)})"
    if rows.dtype.kind not in "biuf":
        return f", {len(np.unique(rows.ravel()[:_COUNTED_VALUES])):,} distinct values"
    values = rows[np.isfinite(rows)] if rows.dtype.kind == "f" else rows.ravel()
    if values.size == 0:
        return ""
    low, mean, high = (float(f(values)) for f in (np.min, np.mean, np.max))
    return f", values from {number(low)} to {number(high)}, {number(mean)} on average"


def words_of(value: Any) -> str:
    """Return one item as a short text.

    Long items are cut in the middle, and numbers are complete.

    Examples
    --------
    >>> words_of(np.array([0.5, 1.0])), words_of(np.arange(100)), words_of(np.str_("a b"))
    ('(0.5, 1)', '(0, 1, 2, 3, 4, 5, …, 99), 100 values', "'a b'")
    """
    if isinstance(value, np.void) and value.dtype.names:
        value = {name: value[name] for name in value.dtype.names}
    if isinstance(value, dict):
        pairs = (f"{key}={words_of(one)}" for key, one in value.items())
        return short(f"({', '.join(pairs)})", _LETTERS)
    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        return short(repr(value), _LETTERS)
    if array.dtype == object:
        return short(repr(value), _LETTERS)
    if array.ndim == 0:
        plain = array[()].item() if isinstance(array[()], np.generic) else array[()]
        if isinstance(plain, float) and plain.is_integer() and abs(plain) < 1e15:
            return "-0.0" if plain == 0 and math.copysign(1.0, plain) < 0 else str(int(plain))
        return short(repr(plain), _LETTERS)
    flat, shape = array.reshape(-1), "×".join(map(str, array.shape))
    texts = [words_of(item) for item in flat[: _VALUES if flat.size <= _VALUES else 6]]
    more = f", {shape}" * (array.ndim > 1)
    if flat.size > _VALUES:
        texts += ["…", words_of(flat[-1])]
        more = f", {shape if array.ndim > 1 else f'{flat.size:,}'} values"
    return short(f"({', '.join(texts)})", _LETTERS) + more
