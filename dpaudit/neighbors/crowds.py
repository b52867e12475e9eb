"""The pairs of a portfolio: crowds of users, and one user who does what hurts most.

Datasets have any shape ``[n_users, ...]`` and any dtype: what users hold are *levels*, values that
stand for the lowest, a middle and the highest that there may be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.claims import Relation
from dpaudit.errors import PairError
from dpaudit.neighbors.pairs import NeighborPair

Array = NDArray[Any]

_CATEGORIES = 3
"""Values that all others share in the pairs about rare ones."""


@dataclass(frozen=True, eq=False)
class Levels:
    """Values that stand for all that a user may hold.

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


@dataclass(frozen=True)
class Crowd:
    """Builds pairs of one shape, one dtype and one relation.

    Parameters
    ----------
    n_users : int
        At least 2.
    item_shape : tuple of int
        What one user holds: ``(m,)``, ``(m, dim)``, or ``()``.
    dtype : numpy.dtype
        Of the data.
    relation : Relation
        Of datasets. Under add/remove the user is there on the left, and gone on the right.
    """

    n_users: int
    item_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    relation: Relation

    @property
    def m(self) -> int:
        """Items of a user."""
        return self.item_shape[0] if self.item_shape else 1

    def row(self, value: ArrayLike) -> Array:
        """Return a user all of whose items hold `value`; or one value for each item."""
        values = self._cast(value)
        row = np.empty(self.item_shape, dtype=self.dtype)
        if values.ndim == 1:
            values = values.reshape(-1, *[1] * (len(self.item_shape) - 1))
        row[...] = values
        return row

    def values(self, *values: Any) -> Array:
        """Return scalars as an array of the data's dtype."""
        array = np.empty(len(values), dtype=self.dtype)
        for i, value in enumerate(values):
            array[i] = self._cast(value)
        return array

    def rows(self, values: ArrayLike) -> Array:
        """Return the others, from one value for each of them, or one for all."""
        cast = self._cast(values)
        rows = np.empty((self.n_users - 1, *self.item_shape), dtype=self.dtype)
        rows[...] = cast.reshape(-1, *[1] * len(self.item_shape))
        return rows

    def some(self, value: Any, rest: Any, items: slice) -> Array:
        """Return a user some of whose items hold `value`, the others `rest`."""
        row = self.row(rest)
        row[items] = self._cast(value)
        return row

    def pair(
        self, others: Array, left: Array, right: Array, words: str, at: int | None = None
    ) -> NeighborPair:
        """Put a user among the others, by default last, who holds `left` or `right`.

        A user who leaves is always last: nobody else changes places.
        """
        replaced = self.relation == Relation.REPLACE_USER
        at = len(others) if at is None or not replaced else at
        return NeighborPair(
            _insert(others, at, left),
            _insert(others, at, right) if replaced else others,
            at,
            self.relation,
            words if replaced else f"{words}, who leaves",
        )

    def _cast(self, value: ArrayLike) -> Array:
        array = np.asarray(value)
        if self.dtype.kind in "iu" and array.dtype.kind == "f":
            array = np.rint(array)
        return array.astype(self.dtype)


def _insert(others: Array, at: int, row: Array) -> Array:
    # A row of a one-dimensional array of texts is a scalar that cannot be indexed.
    return np.concatenate([others[:at], np.asarray(row)[None], others[at:]])


def crowds(
    crowd: Crowd, scales: Sequence[Levels], kinds: Array, *, missing: bool
) -> tuple[NeighborPair, ...]:
    """Return the pairs of a portfolio, those first that most mistakes fall for.

    Parameters
    ----------
    crowd : Crowd
        Builds them.
    scales : sequence of Levels
        For each size that the data may have, the largest first.
    kinds : ndarray, shape (k,)
        Different values, in order, as a category takes them; at least two.
    missing : bool
        Whether items may be NaN.
    """
    found: dict[tuple[bytes, bytes], NeighborPair] = {}
    drafts = [_majorities(crowd, levels) for levels in scales]
    drafts += [_items(crowd, scales[0]), _places(crowd, scales[0])]
    drafts += [_kinds(crowd, kinds)]
    if missing:
        drafts.append(_empty(crowd, scales[0]))
    if len(crowd.item_shape) > 1:
        drafts.append(_axes(crowd, scales[0]))
    drafts += [_spreads(crowd, levels) for levels in scales]
    for draft in drafts:
        for others, left, right, words, at in draft:
            try:
                pair = crowd.pair(others, left, right, words, at)
            except PairError:  # for data so few or so small, this is no pair
                continue
            if not pair.is_null:
                found.setdefault((pair.left.tobytes(), pair.right.tobytes()), pair)
    return tuple(found.values())


Draft = tuple[Array, Array, Array, str, int | None]


def _majorities(crowd: Crowd, levels: Levels) -> Iterator[Draft]:
    """Yield one user against all others, across the domain, and between two halves."""
    low, mid, high = levels.low, levels.mid, levels.high
    top, middle, bottom = crowd.row(high), crowd.row(mid), crowd.row(low)
    others = crowd.n_users - 1
    yield crowd.rows(mid), top, bottom, f"across(others={mid}, {high} to {low})", None
    yield crowd.rows(mid), top, middle, f"lone_user(others={mid}, {high} to {mid})", None
    for below in sorted({others // 2, (others + 1) // 2}):
        halves = crowd.values(low, high)[(np.arange(others) >= below).astype(int)]
        words = f"halves({below} at {low}, {others - below} at {high})"
        yield crowd.rows(halves), top, bottom, words, None
    yield crowd.rows(high), bottom, top, f"leaves_crowd(others={high}, {low} to {high})", None
    yield crowd.rows(low), top, bottom, f"leaves_crowd(others={low}, {high} to {low})", None


def _spreads(crowd: Crowd, levels: Levels) -> Iterator[Draft]:
    """Yield others who lie apart, and a user at either end, or where another one stands."""
    low, high, values = levels.low, levels.high, levels.spread
    others = values[np.linspace(0, len(values) - 1, crowd.n_users - 1).round().astype(int)]
    words = f"spread({low} to {high}"
    yield crowd.rows(others), crowd.row(high), crowd.row(low), f"{words}, to the ends)", None
    inner = others[len(others) // 2]
    yield crowd.rows(others), crowd.row(high), crowd.row(inner), f"{words}, a duplicate)", None
    below = crowd.rows(others)
    yield below, crowd.row(low), crowd.row(inner), f"{words}, a duplicate at the end)", None


def _items(crowd: Crowd, levels: Levels) -> Iterator[Draft]:
    """Yield a user who moves some items only, or in both directions."""
    low, mid, high, m = levels.low, levels.mid, levels.high, crowd.m
    if m < 2:
        return
    others = crowd.rows(mid)
    for name, items in (("first", slice(0, 1)), ("last", slice(m - 1, m))):
        top, bottom = crowd.some(high, mid, items), crowd.some(low, mid, items)
        yield others, top, bottom, f"one_item(the {name}, {high} to {low})", None
    mixed = crowd.some(high, low, slice(0, m // 2))
    yield others, mixed, crowd.row(mid), f"mixed_items(half {high}, half {low})", None


def _places(crowd: Crowd, levels: Levels) -> Iterator[Draft]:
    """Yield the user first, and in the middle, of the order; it is last everywhere else."""
    low, mid, high = levels.low, levels.mid, levels.high
    for at in sorted({0, crowd.n_users // 2}):
        words = f"place(user {at}, others={mid}, {high} to {low})"
        yield crowd.rows(mid), crowd.row(high), crowd.row(low), words, at


def _kinds(crowd: Crowd, values: Array) -> Iterator[Draft]:
    """Yield a value that nobody else has, and as many different values as a user can hold."""
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
    """Yield users without data: all items NaN, or one of them."""
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
    """Yield a user who moves along one coordinate, or in opposite directions along them."""
    low, mid, high = levels.low, levels.mid, levels.high
    others = crowd.rows(mid)
    for name, index in (("first", 0), ("last", -1)):
        top, bottom = crowd.row(mid), crowd.row(mid)
        top[..., index], bottom[..., index] = high, low
        yield others, top, bottom, f"one_axis(the {name}, {high} to {low})", None
    top, bottom = crowd.row(high), crowd.row(low)
    top[..., 1::2], bottom[..., 1::2] = low, high
    yield others, top, bottom, f"opposite_axes({high} and {low})", None
