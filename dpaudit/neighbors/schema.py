"""Pairs and spaces of pairs for data that are rows: columns with ranges and categories.

A schema says what a row may hold. Mistakes sit at its edges: values that are missing, infinite or
huge, a class or a key that one user alone has, users with many items, no other users at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from dpaudit import _validate
from dpaudit.claims import Relation
from dpaudit.errors import ArgumentError, PairError
from dpaudit.neighbors.members import BOTH, Portfolio, in_turn
from dpaudit.neighbors.pairs import NeighborPair
from dpaudit.neighbors.spaces import Choice, Integer, Interval, Range, SearchSpace

FRAMES = ("pandas", "polars", "dicts", "array")

_ITEMS = 4
"""Rows of a user, unless somebody says how many."""

_CATEGORIES = 6
"""Categories of a column of which each is tried."""

Row = dict[str, Any]
User = list[Row]


@dataclass(frozen=True)
class Column:
    """What one column may hold.

    Parameters
    ----------
    name : str
        Its name.
    low, mid, high : object
        Values that stand for all that there may be; of categories the first, the second, the last.
    special : tuple
        Values at the edges of the column's type.
    categories : tuple
        All categories; empty for numbers.
    """

    name: str
    low: Any
    mid: Any
    high: Any
    special: tuple[Any, ...] = ()
    categories: tuple[Any, ...] = ()

    @property
    def common(self) -> tuple[Any, ...]:
        """Values that the other users hold: of categories all but the last, which stays rare."""
        return self.categories[:-1] if len(self.categories) > 1 else (self.mid,)

    @property
    def range(self) -> Range:
        """Where a search moves it."""
        if self.categories:
            return Choice(self.categories)
        if isinstance(self.low, int):
            return Integer(self.low, self.high)
        return Interval(self.low, self.high)


MAX_ROWS = 10**6
"""Rows of a table that :func:`rows` builds, at most."""


def rows(
    columns: Mapping[str, Any],
    *,
    special: Sequence[Any] = (),
    relation: Relation | str = "both",
    n_users: int = 20,
    items: int | None = None,
    user: str = "user",
    frame: str = "pandas",
) -> Portfolio:
    """Return pairs of tables, and spaces of them, that realistic mistakes fall for.

    Parameters
    ----------
    columns : dict
        What each column may hold: ``(low, high)`` for numbers, whole ones if both are whole; a list
        of categories; or an :class:`Interval`, :class:`Integer` or :class:`Choice`.
    special : sequence, optional
        What columns of real numbers may hold besides, such as ``(nan, inf, 1e300)``. Only what is
        named is tried.
    relation : {"both"} or Relation, optional
        Add/remove and replace a user; by default pairs of either, and the report says under which
        the claim fails.
    n_users, items : int, optional
        At least 2 and 1: users of a dataset, and rows that a user has at most; 20 and 4 by default.
    user : str, optional
        Name of the column of users.
    frame : {"pandas", "polars", "dicts", "array"}, optional
        What a dataset is: a frame; a list of users, each a list of dicts; or, of columns of
        numbers, an array ``[n_users, items, columns]``.

    Returns
    -------
    Portfolio

    Raises
    ------
    ValueError, TypeError
        For a schema that says nothing, or specials that no column can hold.

    Examples
    --------
    >>> from math import inf, nan
    >>> schema = {"age": (0, 120), "income": (0.0, 1e5), "city": ["Aix", "Brest", "Caen"]}
    >>> rows(schema, special=(nan, inf))
    Portfolio(rows(age, income, city): 42 pairs, 4 spaces)
    """
    known = _columns(columns, special, user)
    _validate.integer(2, n_users=n_users)
    held = _ITEMS if items is None else _validate.integer(1, items=items)
    if n_users * held > MAX_ROWS:
        raise ArgumentError(
            f"n_users and items must give at most {MAX_ROWS:,} rows, got n_users={n_users} and "
            f"items={held}"
        )
    _validate.choice(FRAMES, frame=frame)
    if frame in ("pandas", "polars") and not _is_installed(frame):
        raise ArgumentError(
            f"frame={frame!r} needs the package {frame}, which is not installed here: "
            f"pip install {frame}; frame='dicts' and 'array' need none"
        )
    if frame == "array" and any(column.categories for column in known):
        raise ArgumentError("an array needs columns of numbers; give frame='pandas' or 'dicts'")
    builder = _Builder(known, n_users, held, user, frame)
    relations = relations_of(relation)
    pairs = [p for p in in_turn(builder.pairs(one) for one in relations) if not p.is_null]
    spaces = [space for one in relations for space in builder.spaces(one)]
    options: dict[str, Any] = {"special": special, "n_users": n_users, "user": user, "frame": frame}
    return Portfolio(
        f"rows({', '.join(columns)}{'' if items is None else f'; items={items}'})",
        tuple(pairs),
        tuple(spaces),
        variant=partial(_variant, columns, {**options, "relation": relation, "items": items}),
        items=_ITEMS if items is None else None,
    )


def _variant(columns: Mapping[str, Any], options: dict[str, Any], **changed: Any) -> Portfolio:
    """Return the portfolio of a schema with another relation, or another number of items."""
    return rows(columns, **options | changed)


def relations_of(relation: Any) -> tuple[Relation, ...]:
    """Return the relations that are meant; refuse what is neither of the two."""
    if isinstance(relation, str) and relation == "both":
        return BOTH
    if isinstance(relation, Relation) and relation in BOTH:
        return (relation,)
    raise ArgumentError(
        f'relation must be "both", add_remove_user or replace_user, got {_validate.shown(relation)}'
    )


def _columns(columns: Any, special: Any, user: Any) -> tuple[Column, ...]:
    if not isinstance(columns, Mapping) or not columns:
        raise TypeError(
            f"columns must be a dict from names to (low, high) or categories, got {columns!r}"
        )
    if _validate.text(user=user) in columns:
        raise ArgumentError(f"user must name a column of its own, got {user!r}")
    values = specials_of(special)
    known = tuple(column_of(name, holds, values) for name, holds in columns.items())
    if values and not any(column.special for column in known):
        raise ArgumentError(
            f"special values {', '.join(map(str, values))} need a column of real numbers, such as "
            "(0.0, 1.0)"
        )
    return known


def specials_of(special: Any) -> tuple[float, ...]:
    """Return values at the edges of real numbers; refuse what are no numbers."""
    if isinstance(special, str | bytes | Mapping) or not isinstance(special, Iterable):
        raise TypeError(f"special must be a list of values, got {_validate.shown(special)}")
    values = tuple(special)
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"special must hold numbers such as nan, inf or 1e300, got {value!r}")
    return tuple(map(float, values))


def column_of(name: Any, holds: Any, special: tuple[Any, ...]) -> Column:
    """Return what a column may hold, as :func:`rows` is told."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"columns must have names that are texts, got {name!r}")
    if isinstance(holds, Interval):
        return Column(name, holds.low, (holds.low + holds.high) / 2, holds.high, special)
    if isinstance(holds, Integer):
        return Column(name, holds.low, (holds.low + holds.high) // 2, holds.high)
    if isinstance(holds, Choice):
        holds = list(holds.values)
    if isinstance(holds, tuple) and len(holds) == 2 and all(_is_number(end) for end in holds):
        low, high = holds
        if not low < high:
            raise ArgumentError(
                f"columns[{name!r}] must be (low, high) with low < high, got {holds}"
            )
        if isinstance(low, int) and isinstance(high, int):
            return Column(name, low, (low + high) // 2, high)
        return Column(name, float(low), (low + high) / 2, float(high), special)
    if isinstance(holds, str) or not isinstance(holds, Iterable):
        raise TypeError(
            f"columns[{name!r}] must be (low, high) or a list of categories, got {holds!r}"
        )
    categories = tuple(holds)
    if len(categories) < 2:
        raise ArgumentError(
            f"columns[{name!r}] must have at least two categories, got {list(categories)!r}"
        )
    return Column(name, categories[0], categories[1], categories[-1], (), categories)


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # None among the modules, which forbids an import
        return False


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@dataclass(frozen=True)
class _Builder:
    """Builds pairs of tables of one schema."""

    columns: tuple[Column, ...]
    n_users: int
    items: int
    user: str
    frame: str

    # --- what users hold ---

    def typical(self, place: int = 0) -> Row:
        """Return a row as most users have it."""
        return {c.name: c.common[place % len(c.common)] for c in self.columns}

    def held(self, count: int | None = None, **values: Any) -> User:
        """Return the rows of a user, all with the same values."""
        count = self.items if count is None else count
        return [{**self.typical(), **values} for _ in range(count)]

    def others(self, level: str = "typical") -> list[User]:
        """Return the users who are on both sides."""
        found = []
        for index in range(self.n_users - 1):
            row = self.typical(index)
            for c in self.columns:
                if level == "spread" and not c.categories:
                    share = index / max(self.n_users - 2, 1)
                    row[c.name] = type(c.low)(c.low + share * (c.high - c.low))
                elif level != "typical" and not c.categories:
                    row[c.name] = getattr(c, level)
            found.append([dict(row) for _ in range(self.items)])
        return found

    # --- pairs ---

    def pairs(self, relation: Relation) -> Iterator[NeighborPair]:
        """Yield pairs, those first that matter most."""
        others, make = self.others(), partial(self.pair, relation)
        extremes = {c.name: c.high for c in self.columns}, {c.name: c.low for c in self.columns}
        yield make(others, self.held(**extremes[0]), self.held(**extremes[1]), "high against low")
        for c in self.columns:
            for value in c.special:
                row = self.held(**{c.name: value})
                yield make(others, row, self.held(), f"{c.name} = {value}")
        for c in self.columns:
            rare = c.categories[-1:] if c.categories else (c.high, c.low)
            for value in rare:
                other = c.low if value == c.high else c.high
                held = self.held(**{c.name: value}), self.held(**{c.name: other})
                words = "alone with" if c.categories else "all items at"
                yield make(others, *held, f"{words} {c.name} = {value}")
        if self.items > 1:
            if self.frame != "array":  # there all users have as many
                many = self.held(**extremes[0])
                few = self.held(1, **extremes[1])
                yield make(others, many, few, f"{self.items} items against 1")
            some = [*self.held(1, **extremes[0]), *self.held(self.items - 1)]
            yield make(others, some, self.held(), "one item high")
        yield make([], self.held(**extremes[0]), self.held(**extremes[1]), "no other users")
        for level in ("low", "high", "spread"):
            if all(c.categories for c in self.columns):
                break
            held = self.held(**extremes[0]), self.held(**extremes[1])
            yield make(self.others(level), *held, f"others {level}")
        yield make(others, self.held(), self.held(**extremes[0]), "like all others, or high")
        for c in self.columns:
            for value in c.categories[:-1][:_CATEGORIES]:
                held = self.held(**{c.name: value}), self.held(**{c.name: c.high})
                yield make(others, *held, f"{c.name} = {value}")
        for c in self.columns:
            for value in c.special:
                yield make(
                    [], self.held(**{c.name: value}), self.held(), f"only {c.name} = {value}"
                )
                some = [*self.held(1, **{c.name: value}), *self.held(self.items - 1)]
                yield make(others, some, self.held(), f"{c.name} = {value} once")

    def pair(
        self, relation: Relation, others: list[User], left: User, right: User, words: str
    ) -> NeighborPair:
        """Put a user behind the others, who holds `left` or `right`, or is gone."""
        name = len(others)
        with_left = [*others, left]
        with_right = [*others, right] if relation == Relation.REPLACE_USER else others
        if self.frame == "array":
            sides = self._arrays(with_left), self._arrays(with_right)
            return NeighborPair(*sides, None, relation, words)
        if self.frame == "dicts":
            return NeighborPair(with_left, with_right, None, relation, words)
        return NeighborPair(
            self._table(with_left), self._table(with_right), name, relation, words, by=self.user
        )

    def _arrays(self, users: list[User]) -> Any:
        for held in users:
            if len(held) != self.items:
                raise PairError("an array has as many items for every user")
        values = [[[row[c.name] for c in self.columns] for row in held] for held in users]
        shape = (len(users), self.items, len(self.columns))
        return np.array(values, dtype=np.float64).reshape(shape)

    def _table(self, users: list[User]) -> Any:
        data: dict[str, list[Any]] = {self.user: [i for i, held in enumerate(users) for _ in held]}
        for c in self.columns:
            data[c.name] = [row[c.name] for held in users for row in held]
        if self.frame == "polars":
            import polars

            kinds = {str: polars.String, float: polars.Float64, int: polars.Int64}
            schema = {self.user: polars.Int64} | {
                c.name: kinds.get(type(c.low), polars.Boolean) for c in self.columns
            }
            return polars.DataFrame(data, schema=schema)
        import pandas

        table = pandas.DataFrame(data)
        if not users:  # dtypes of columns without a row are the same as of others
            table = table.astype({self.user: "int64"})
            like = pandas.DataFrame({c.name: [c.low] for c in self.columns})
            table = table.astype(dict(like.dtypes))
        return table

    # --- spaces ---

    def spaces(self, relation: Relation) -> Iterator[SearchSpace]:
        """Yield spaces: what the user holds, on either side, and what the others do."""
        ranges: dict[str, Range] = {c.name: c.range for c in self.columns}
        both = relation == Relation.REPLACE_USER
        apart: dict[str, Range] = {f"{name} right": values for name, values in ranges.items()}
        levels = Choice(("typical", "low", "high", "spread"))
        build = partial(self._searched, relation)
        yield SearchSpace(
            build,
            {**ranges, **(apart if both else {}), "others": levels},
            name=f"rows, {relation}",
        )
        if self.items > 1 and self.frame != "array":
            counts: dict[str, Range] = {"count": Integer(1, self.items), **ranges}
            yield SearchSpace(build, counts, name=f"rows of few items, {relation}")

    def _searched(self, relation: Relation, **parameters: Any) -> NeighborPair:
        names = [c.name for c in self.columns]
        left = {name: parameters[name] for name in names}
        right = {name: parameters.get(f"{name} right", self.typical()[name]) for name in names}
        count = parameters.get("count", self.items)
        others = self.others(parameters.get("others", "typical"))
        words = ", ".join(f"{name}={value}" for name, value in parameters.items())
        return self.pair(
            relation, others, self.held(count, **left), self.held(count, **right), f"rows({words})"
        )
