"""The two datasets of a pair, as a reader can take them in: who differs, and who else is there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.data import ArrayForm
from dpaudit.neighbors import NeighborPair
from dpaudit.results.words import number, short

Array = NDArray[Any]

ITEMS = 8
"""Items of the differing user that are shown, those first in which the sides differ."""
OTHERS = 4
"""Rows of other users that are shown."""
_NAMED = 2  # of them, in one line
_ABSENT = "absent"
_VALUES = 12  # of an item
_LETTERS = 160
_LOOKED_AT = 10_000  # users in whom distinct rows are counted


@dataclass(frozen=True)
class ItemRow:
    """One item of the differing user, on both sides; an absent user has none."""

    name: str
    left: str
    right: str
    differs: bool


@dataclass(frozen=True)
class Datasets:
    """What the page shows of a pair.

    Parameters
    ----------
    title : str
        Who differs.
    items : tuple of ItemRow
        The differing user, or query values, side by side.
    left_out : str
        What of them is not shown; may be empty.
    others : str
        How many others there are, and what their values are like; empty for query values.
    sample : tuple of (str, str)
        Some of them: how many users or which one, and their row.
    who : str
        Who differs, and on which side it is absent, to begin a line with.
    """

    title: str
    items: tuple[ItemRow, ...]
    left_out: str
    others: str
    sample: tuple[tuple[str, str], ...]
    who: str = ""


def datasets(pair: NeighborPair) -> Datasets:
    """Return what the page shows of a pair; texts of users are as they are, to be escaped there."""
    if not isinstance(pair.form, ArrayForm):
        return _of_any_form(pair)
    if pair.user is None and pair.relation.name == "within_sensitivity":
        items, left_out = _side_by_side(np.ravel(pair.left), np.ravel(pair.right), "value")
        return Datasets("Query values on both sides", items, left_out, "", (), "query values")
    if pair.user is None:
        others, sample = _others(pair.left, "user")
        return Datasets("The two datasets are equal", (), "", others, sample)
    if len(pair.users) > 1 or pair.relation.name == "custom":
        return _of_any_form(pair)
    longer = pair.left if len(pair.left) >= len(pair.right) else pair.right
    rows = [
        side[pair.user] if len(side) == len(longer) else None for side in (pair.left, pair.right)
    ]
    known = rows[0] if rows[0] is not None else rows[1]
    assert known is not None  # one of the sides holds every user
    left, right = (None if row is None else np.atleast_1d(row) for row in rows)
    items, left_out = _side_by_side(left, right, "item" if np.ndim(known) else "value")
    others, sample = _others(np.delete(longer, pair.user, axis=0), "other user")
    sides = zip(("left", "right"), rows, strict=True)
    absent = [f", absent on the {name}" for name, row in sides if row is None]
    title, gone = f"User {pair.user} differs", "".join(absent)
    who = f"user {pair.user}{gone}"
    return Datasets(f"{title}{gone}", items, left_out, others, sample, who)


def who_differs(pair: NeighborPair) -> str:
    """Return in one line what the differing user holds on either side; empty where nobody differs.

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
    said = []
    for words, names in of_items.items():
        every = len(names) == len(shown.items) and not shown.left_out
        where = f" in all {len(names)} items" * (len(names) > 1) if every else f" in {names[0]}"
        more = f" and {len(names) - 1} more" * (len(names) > 1 and not every)
        more = " and others" if more and shown.left_out else more
        said.append(words + where + more)
    if len(said) > _NAMED:
        said = [*said[:_NAMED], "..."]
    return f"{shown.who}: {short('; '.join(said), _LETTERS)}"


def _of_any_form(pair: NeighborPair) -> Datasets:
    """Return what the page shows of lists, frames, dicts and groups: the items of the first."""
    words = " against ".join(
        dict.fromkeys(pair.form.words(side) for side in (pair.left, pair.right))
    )
    if not pair.users:
        return Datasets("The two datasets", (), "", f"Both hold {words}.", ())
    first = pair.users[0]
    held = [pair.form.items(side, first) for side in (pair.left, pair.right)]
    who = f"User {first}" if len(pair.users) == 1 else f"User {first}, of {len(pair.users)} that"
    absent = [
        f", absent on the {name}"
        for name, items in zip(("left", "right"), held, strict=True)
        if items is None
    ]
    count = max(len(items or ()) for items in held)
    rows = []
    for index in range(min(count, ITEMS)):
        left, right = (
            _ABSENT if items is None or index >= len(items) else words_of(items[index])
            for items in held
        )
        name = f"item {index}" if count > 1 else "item"
        rows.append(ItemRow(name, left, right, left != right))
    left_out = f"and {count - ITEMS:,} more items" if count > ITEMS else ""
    others = f"The datasets hold {words}; all other users are the same."
    gone = "".join(absent)
    one = f"user {first}" + f", one of {len(pair.users)}" * (len(pair.users) > 1)
    return Datasets(f"{who} differs{gone}", tuple(rows), left_out, others, (), f"{one}{gone}")


def _side_by_side(
    left: Array | None, right: Array | None, name: str
) -> tuple[tuple[ItemRow, ...], str]:
    """Return the items of both sides, and what is left out of them."""
    some = left if left is not None else right
    assert some is not None
    count = len(some)
    if left is None or right is None:
        differs = [True] * count
    else:
        differs = [not _equal(a, b) for a, b in zip(left, right, strict=True)]
    order = sorted(range(count), key=lambda index: not differs[index])[:ITEMS]
    rows = tuple(
        ItemRow(
            name if count == 1 else f"{name} {index}",
            _ABSENT if left is None else words_of(left[index]),
            _ABSENT if right is None else words_of(right[index]),
            differs[index],
        )
        for index in sorted(order)
    )
    hidden = count - len(rows)
    if not hidden:
        return rows, ""
    hidden_differ = sum(differs) - sum(row.differs for row in rows)
    return rows, f"and {hidden:,} more {name}s, of which {hidden_differ:,} differ"


def _equal(a: Any, b: Any) -> bool:
    """Whether two items are equal, NaN and NaN too, bit for bit where they are numbers."""
    a, b = np.asarray(a), np.asarray(b)
    return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())


def _others(rows: Array, who: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return what the users who do not differ are like: the commonest rows, else ranges."""
    count = len(rows)
    if count == 0:
        return f"There is no {who}.", ()
    some = rows[:_LOOKED_AT]
    seen: dict[bytes, list[int]] = {}
    for index, row in enumerate(some):
        seen.setdefault(np.ascontiguousarray(row).tobytes(), []).append(index)
        if len(seen) > OTHERS:
            break
    said = f"{count:,} {who}{'s' * (count != 1)}, the same on both sides"
    if len(seen) <= OTHERS:
        ranked = sorted(seen.values(), key=len, reverse=True)
        among = "" if count <= _LOOKED_AT else f" among the first {_LOOKED_AT:,}"
        kinds = "" if count == 1 else f": {len(seen)} distinct row{'s' * (len(seen) > 1)}{among}"
        return f"{said}{kinds}.", tuple((_times(len(s)), words_of(some[s[0]], 4)) for s in ranked)
    sample = tuple((f"no. {index + 1}", words_of(some[index], 4)) for index in range(OTHERS - 1))
    return f"{said}{_range(rows)}. The first of them:", sample


def _times(count: int) -> str:
    return "1 user" if count == 1 else f"{count:,} users"


def _range(rows: Array) -> str:
    """Return smallest, mean and largest value, of each field where there are fields."""
    if rows.dtype.names:
        fields = [f"{name}{_range(rows[name])}" for name in rows.dtype.names[:4]]
        return f" ({'; '.join(fields)})"
    if rows.dtype.kind not in "biuf":
        return f", {len(np.unique(rows.ravel()[:_LOOKED_AT])):,} distinct values"
    values = rows[np.isfinite(rows)] if rows.dtype.kind == "f" else rows.ravel()
    if values.size == 0:
        return ", no finite value"
    low, mean, high = (float(f(values)) for f in (np.min, np.mean, np.max))
    return f", values from {number(low)} to {number(high)}, {number(mean)} on average"


def words_of(value: Any, digits: int | None = None) -> str:
    """Return one item in few words, long ones cut in the middle.

    Numbers are written to the last digit where `digits` is None.

    Examples
    --------
    >>> words_of(np.array([0.5, 1.0])), words_of(np.arange(100)), words_of(np.str_("a b"))
    ('(0.5, 1)', '(0, 1, 2, 3, 4, 5, …, 99), 100 values', "'a b'")
    """
    if isinstance(value, np.void) and value.dtype.names:
        pairs = (f"{name}={words_of(value[name], digits)}" for name in value.dtype.names)
        return short(f"({', '.join(pairs)})", _LETTERS)
    if isinstance(value, dict):
        pairs = (f"{key}={words_of(one, digits)}" for key, one in value.items())
        return short(f"({', '.join(pairs)})", _LETTERS)
    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        return short(repr(value), _LETTERS)
    if array.dtype == object:
        return short(repr(value), _LETTERS)
    if array.ndim == 0:
        return short(_scalar(array[()], digits), _LETTERS)
    flat = array.reshape(-1)
    texts = [words_of(item, digits) for item in flat[: _VALUES if flat.size <= _VALUES else 6]]
    more = ""
    if flat.size > _VALUES:
        texts += ["…", words_of(flat[-1], digits)]
        shape = "×".join(map(str, array.shape))
        more = f", {shape} values" if array.ndim > 1 else f", {flat.size:,} values"
    elif array.ndim > 1:
        more = f", {'×'.join(map(str, array.shape))}"
    return short(f"({', '.join(texts)})", _LETTERS) + more


def _scalar(value: Any, digits: int | None) -> str:
    """Return a value as Python writes it; whole numbers without a point."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and plain.is_integer() and abs(plain) < 1e15:
        return "-0.0" if plain == 0 and math.copysign(1.0, plain) < 0 else str(int(plain))
    return f"{plain:.{digits}g}" if digits and isinstance(plain, float) else repr(plain)
