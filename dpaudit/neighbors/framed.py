"""Pairs and spaces of pairs around a frame that is there: its users, ranges and categories.

One user of given data is seldom one that a mistake shows on. So users are put into their place who
hold what the data make possible: as many rows as anybody, all of them at an end, in one category.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from dpaudit import _validate
from dpaudit.claims import Relation
from dpaudit.data import digest, user_table
from dpaudit.errors import ArgumentError
from dpaudit.neighbors.members import Portfolio, in_turn
from dpaudit.neighbors.pairs import NeighborPair
from dpaudit.neighbors.schema import Column, column_of, relations_of, specials_of
from dpaudit.neighbors.spaces import Choice, Range, SearchSpace

if TYPE_CHECKING:
    from dpaudit.data import UserTable

_CATEGORIES = 4
"""Categories of a column, at most, that are tried: the most common ones, and the rarest."""

_USERS = 64
"""Users, at most, among whom a search chooses."""

_NAMED = 6
"""Users, at most, who are tried with the rows that they have."""


def like(
    frame: Any,
    *,
    user: str,
    columns: Mapping[str, Any] | None = None,
    special: Sequence[Any] = (),
    relation: Relation | str = "both",
) -> Portfolio:
    """Return pairs around a frame, and spaces of them, that realistic mistakes fall for.

    All others stay as they are. The user who differs holds as many rows as anybody does, at the
    ends of what columns hold, in one category, or alone in it; or is one of the frame, with its own
    rows.

    Parameters
    ----------
    frame : pandas.DataFrame or polars.DataFrame
        Data such as the mechanism is made for, of at least two users. Some hundred rows do: the
        mechanism runs on all of them, in every draw.
    user : str
        Column that names the user of each row.
    columns : dict, optional
        What columns may hold, as in :func:`rows`. Of others it is read from the frame: from the
        least to the largest number, the categories seen, nothing where cells are missing.
    special : sequence, optional
        What columns of real numbers may hold besides, such as ``(nan, inf, 1e300)``.
    relation : {"both"} or Relation, optional
        Add/remove and replace a user; by default pairs of either, and the report says under which
        the claim fails.

    Returns
    -------
    Portfolio

    Raises
    ------
    PairError
        For a frame with rows of nobody, or without such a column.
    ValueError, TypeError
        For a frame of one user or without other columns, or columns that it has not.

    Examples
    --------
    >>> import pandas as pd
    >>> visits = pd.DataFrame({"id": [1, 1, 2, 3], "paid": [3.0, 4.0, 5.0, 2.0]})
    >>> like(visits, user="id")
    Portfolio(like 4 rows of 3 users: 16 pairs, 4 spaces)
    """
    table = user_table(frame, _validate.text(user=user))
    declared = {} if columns is None else columns
    if not isinstance(declared, Mapping) or not set(declared) <= set(table.cells):
        raise ArgumentError(
            f"columns must be a dict of some of {', '.join(table.cells)}, got {declared!r}"
        )
    values = specials_of(special)
    known = tuple(
        _declared(table, name, declared[name], values)
        if name in declared
        else _seen(table, name, values)
        for name in table.cells
    )
    builder, relations = _Builder(table, known), relations_of(relation)
    return Portfolio(
        f"like {len(table.owners)} rows of {len(table.sizes)} users",
        tuple(in_turn(builder.pairs(one) for one in relations)),
        tuple(space for one in relations for space in builder.spaces(one)),
    )


def _declared(table: UserTable, name: str, holds: Any, special: tuple[Any, ...]) -> Column:
    """Return what a column may hold; refuse categories that leave out some that are there."""
    column = column_of(name, holds, special)
    values, _ = table.seen(name)
    others = [value for value in dict.fromkeys(values) if value not in column.categories]
    if column.categories and others:
        raise ArgumentError(
            f"columns[{name!r}] must name all categories of the frame, {holds!r} lacks "
            f"{', '.join(map(repr, others[:5]))}"
        )
    return column


def _seen(table: UserTable, name: str, special: tuple[Any, ...]) -> Column:
    """Return what a column holds, by its kind and the values in it."""
    kind = table.kind(name)
    values, missing = table.seen(name)
    special = (*special, *missing) if kind == "real" else missing
    if kind != "other" and len(set(values)) > 1:
        ordered = sorted(values)
        return Column(name, ordered[0], ordered[len(ordered) // 2], ordered[-1], special)
    try:
        common = [value for value, _ in Counter(values).most_common()]
    except TypeError:
        raise ArgumentError(
            f"the column {name!r} holds lists or other objects: name some that it may hold by "
            f"columns={{{name!r}: [...]}}, or leave it out of the frame"
        ) from None
    if len(common) > _CATEGORIES:
        common = [*common[: _CATEGORIES - 1], common[-1]]
    common = common or [None]
    middle = common[min(1, len(common) - 1)]
    return Column(name, common[0], middle, common[-1], special, tuple(common))


@dataclass(frozen=True)
class _Builder:
    """Builds pairs around one frame; the user with most rows differs where no other is named."""

    table: UserTable
    columns: tuple[Column, ...]

    @property
    def who(self) -> Any:
        """The user with most rows."""
        return next(iter(self.table.sizes))

    @property
    def items(self) -> int:
        """Rows of that user."""
        return self.table.sizes[self.who]

    def held(self, count: int | None = None, **values: Any) -> Any:
        """Return rows of the user, all with the same values, typical but for those named."""
        return self.rows(self.who, count, **values)

    def rows(self, who: Any, count: int | None = None, **values: Any) -> Any:
        """Return rows of some user, all with the same values."""
        typical = {c.name: c.categories[0] if c.categories else c.mid for c in self.columns}
        return self.table.filled(who, typical | values, self.items if count is None else count)

    # --- pairs ---

    def pairs(self, relation: Relation) -> Iterator[NeighborPair]:
        """Yield pairs that differ, those first that matter most."""
        met = set()
        for pair in self._pairs(relation):
            sides = digest(pair.left), digest(pair.right)
            if sides[0] != sides[1] and sides not in met:
                met.add(sides)
                yield pair

    def _pairs(self, relation: Relation) -> Iterator[NeighborPair]:
        make, held = partial(self.pair, relation), self.held
        others, one = self.table.without(self.who), self.table.rows_of(list(self.table.sizes)[-1])
        numbers = [c for c in self.columns if not c.categories]
        kinds = [c for c in self.columns if len(c.categories) > 1]
        high, low = {c.name: c.high for c in numbers}, {c.name: c.low for c in numbers}

        def at_ends() -> Iterator[NeighborPair]:
            yield make(others, held(**high), held(**low), "high against low")
            for name, value in [(c.name, value) for c in kinds for value in _rarest_first(c)]:
                sides = held(**high, **{name: value}), held(**low, **{name: value})
                yield make(others, *sides, f"high against low, {name} = {value}")

        def alone() -> Iterator[NeighborPair]:
            for c in kinds:
                rare, words = {c.name: c.high}, f"{c.name} = {c.high}"
                rest = self.table.without(self.who, c.name, c.high)
                yield make(rest, held(**rare), held(), f"alone with {words}")
                # With another, so that counts are 1 and 2, and noise by them has another scale.
                rest = self.table.without(self.who, c.name, c.high, but=1)
                yield make(rest, held(1, **rare, **high), held(1, **high), f"one of two, {words}")

        def special() -> Iterator[NeighborPair]:
            for c in self.columns:
                for value in c.special:
                    yield make(others, held(**{c.name: value}), held(), f"{c.name} = {value}")

        def real() -> Iterator[NeighborPair]:
            for who in self._named(numbers):
                rest, own = self.table.without(who), self.table.rows_of(who)
                yield make(rest, own, self.rows(who, **high), f"user {who} against high")
                yield make(rest, own, self.rows(who, **low), f"user {who} against low")

        yield from in_turn([at_ends(), alone(), special(), real()])
        for c in kinds:
            for value in c.categories[:-1]:
                sides = held(**{c.name: value}), held(**{c.name: c.high})
                yield make(others, *sides, f"{c.name} = {value}")
        if self.items > 1:
            yield make(others, held(**high), held(1, **low), f"{self.items} rows against 1")
            yield make(others, held(1, **high), held(1), "one row high")
        for c in numbers if len(numbers) > 1 else ():
            sides = held(**{c.name: c.high}), held(**{c.name: c.low})
            yield make(others, *sides, f"{c.name} high against low")
        yield make(one, held(**high), held(**low), "one other user")

    def _named(self, numbers: Sequence[Column]) -> list[Any]:
        """Return users who stand out: with most rows, with least, with an end of a column."""
        sizes, owners = list(self.table.sizes), self.table.owners
        found = [sizes[0], sizes[-1]]
        for c in numbers:
            for end in (c.high, c.low):
                cells = zip(owners, self.table.cells[c.name], strict=True)
                found += [owner for owner, cell in cells if cell == end][:1]
        return list(dict.fromkeys(found))[:_NAMED]

    def pair(
        self, relation: Relation, others: Any, left: Any, right: Any, words: str
    ) -> NeighborPair:
        """Put a user behind the others, who holds `left` or `right`, or is gone."""
        stacked = partial(self.table.stacked, others)
        sides = stacked(left), stacked(right) if relation == Relation.REPLACE_USER else others
        return NeighborPair(*sides, None, relation, words, by=self.table.by)

    # --- spaces ---

    def spaces(self, relation: Relation) -> Iterator[SearchSpace]:
        """Yield spaces: what a user holds on either side, and who of the frame differs."""
        both = relation == Relation.REPLACE_USER
        ranges: dict[str, Range] = {c.name: c.range for c in self.columns}
        apart: dict[str, Range] = {f"{name} right": one for name, one in ranges.items()}
        made: dict[str, Range] = {**ranges, **(apart if both else {})}
        yield SearchSpace(partial(self._made, relation), made, name=f"like, {relation}")
        real: dict[str, Range] = {self.table.by: Choice(tuple(self.table.sizes)[:_USERS])}
        real |= ranges if both else {}
        yield SearchSpace(partial(self._real, relation), real, name=f"users, {relation}")

    def _made(self, relation: Relation, **parameters: Any) -> NeighborPair:
        left = self.held(**{c.name: parameters[c.name] for c in self.columns})
        apart = {c.name: parameters.get(f"{c.name} right", c.mid) for c in self.columns}
        others = self.table.without(self.who)
        return self.pair(relation, others, left, self.held(**apart), _words("like", parameters))

    def _real(self, relation: Relation, **parameters: Any) -> NeighborPair:
        values = dict(parameters)
        who = values.pop(self.table.by)
        sides = self.table.rows_of(who), self.rows(who, **values)
        words = _words("users", parameters)
        return self.pair(relation, self.table.without(who), *sides, words)


def _rarest_first(column: Column) -> tuple[Any, ...]:
    return (column.categories[-1], *column.categories[:-1])


def _words(name: str, parameters: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value}' for key, value in parameters.items())})"
