"""Pairs and spaces of pairs of tables: frames of pandas or polars, and lists of rows.

These pairs probe extreme but possible rows. Values may be missing, infinite or huge. Only one user
may have a category, users may have many rows, or there may be no other users at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import chain, zip_longest
from math import isfinite, isnan, nan
from typing import Any

from dpaudit import _validate
from dpaudit.claims import Relation
from dpaudit.data import UserTable, counted, digest
from dpaudit.errors import ArgumentError
from dpaudit.neighbors.pairs import NeighborPair
from dpaudit.neighbors.spaces import Choice, Integer, Interval, Range, SearchSpace, in_words

FRAMES = ("pandas", "polars", "dicts")

MAX_ROWS = 10**6
"""Largest number of rows in a table of a schema."""

DIFFERENT = "all rows different"
FEW = NO_OTHERS, ONE_OTHER = "no other users", "one other user"
ALONE = "only "
"""Recipes of the pairs of very few users, and how more of them begin."""

_N_USERS, _ITEMS = 20, 4
_CATEGORIES = 6  # Categories of a schema's column that are tried.
_FRAME_CATEGORIES = 4  # Categories of a frame's column: the most common ones, and the rarest.
_USERS = 64  # Users from whom a search chooses.
_NAMED = 6  # Users who are tried with their own rows.

Row = dict[str, Any]


@dataclass(frozen=True)
class Schema:
    """Description of the tables that a mechanism takes.

    Parameters
    ----------
    columns : dict, optional
        Possible values of each column. ``(low, high)`` is a range of numbers. The numbers are whole
        if both ends are whole. A list gives the categories. An :class:`Interval`, :class:`Integer`
        or :class:`Choice` is also allowed. If a frame is given, list only the columns that may hold
        values beyond the values in the frame.
    user : str, optional
        Name of the column that identifies users.
    special : sequence, optional
        Further values of columns of real numbers, such as ``(nan, inf, 1e300)``.
    frame : {"pandas", "polars", "dicts"}, optional
        Form of a dataset: a frame, or a list of users, each a list of dicts. A given frame
        determines the form.

    Raises
    ------
    ValueError, TypeError
        If columns cannot be read, or if special values are not numbers.
    """

    columns: Mapping[str, Any] | None = None
    user: str = "user"
    special: Sequence[Any] = ()
    frame: str = "pandas"

    def __post_init__(self) -> None:
        if self.columns is not None and (not isinstance(self.columns, Mapping) or not self.columns):
            raise TypeError(
                "columns must be a dict from names to (low, high) or categories, got "
                f"{_validate.describe(self.columns)}"
            )
        held = {name: _range_of(name, holds) for name, holds in (self.columns or {}).items()}
        object.__setattr__(self, "columns", held)
        if _validate.text(user=self.user) in held:
            raise ArgumentError(f"user must be a column that is not in columns, got {self.user!r}")
        if isinstance(self.special, str | bytes | Mapping) or not isinstance(
            self.special, Iterable
        ):
            raise TypeError(
                f"special must be a list of values, got {_validate.describe(self.special)}"
            )
        values = tuple(self.special)
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TypeError(
                    f"special must hold only numbers such as nan or 1e300, got {value!r}"
                )
        object.__setattr__(self, "special", tuple(map(float, values)))
        _validate.choice(FRAMES, frame=self.frame)

    def specials(self, missing: bool) -> tuple[float, ...]:
        """Return the special values, and also NaN if items may be missing."""
        values = tuple(self.special)
        return (*values, nan) if missing and not any(map(isnan, values)) else values


def _range_of(name: Any, holds: Any) -> Range:
    """Return the possible values of a column as a range."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"columns must have keys that are texts, got {name!r}")
    if isinstance(holds, Interval | Integer):
        return holds
    values: Any = holds.values if isinstance(holds, Choice) else holds
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(
            f"columns[{name!r}] must be (low, high) or a list of categories, got {values!r}"
        )
    if isinstance(holds, tuple) and len(holds) == 2 and all(map(_is_number, holds)):
        low, high = holds
        if not low < high:
            raise ArgumentError(
                f"columns[{name!r}] must be (low, high) with low < high, got {holds}"
            )
        whole = isinstance(low, int) and isinstance(high, int)
        return Integer(low, high) if whole else Interval(float(low), float(high))
    categories = tuple(values)
    if len(categories) < 2:
        raise ArgumentError(
            f"columns[{name!r}] must have at least two categories, got {list(categories)!r}"
        )
    return Choice(categories)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


@dataclass(frozen=True)
class Column:
    """Possible values of one column.

    Parameters
    ----------
    name : str
        Name of the column.
    range : Interval, Integer or Choice
        Range of a search. The range of a category is a choice.
    mid : object
        A typical value.
    special : tuple
        Values at the edges of the column's type.
    """

    name: str
    range: Any
    mid: Any
    special: tuple[Any, ...] = ()

    @property
    def categories(self) -> tuple[Any, ...]:
        """All categories; the list is empty for numbers."""
        return self.range.values if isinstance(self.range, Choice) else ()

    @property
    def is_bounded(self) -> bool:
        """Whether the column holds numbers, and no finite number outside its range."""
        return not self.categories and not any(map(isfinite, self.special))

    @property
    def low(self) -> Any:
        """The lowest value, or the first category."""
        return self.categories[0] if self.categories else self.range.low

    @property
    def high(self) -> Any:
        """The highest value, or the last category.

        The last category stays rare.
        """
        return self.categories[-1] if self.categories else self.range.high

    def at(self, index: int, count: int) -> Any:
        """Return one of `count` values that differ as far as possible, within the range."""
        if self.categories:
            return self.categories[index % len(self.categories)]
        steps = max(count - 1, 1)
        if isinstance(self.range, Integer):
            return self.low + (2 * index * (self.high - self.low) + steps) // (2 * steps)
        share = index / steps
        return min(max((1 - share) * self.low + share * self.high, self.low), self.high)

    @property
    def common(self) -> tuple[Any, ...]:
        """Values of the other users: all categories except the last, or else the middle value."""
        return self.categories[:-1] if len(self.categories) > 1 else (self.mid,)


def _column(name: str, values: Range, special: tuple[Any, ...]) -> Column:
    """Return a declared column."""
    if isinstance(values, Choice):
        return Column(name, values, values.values[1])
    assert isinstance(values, Interval | Integer)
    middle = values.low + values.high
    if isinstance(values, Integer):
        return Column(name, values, middle // 2)
    return Column(name, values, middle / 2, special)


class _Tables:
    """Builder of pairs of tables whose last user differs."""

    columns: tuple[Column, ...]
    by: str | None
    items: int
    name: str
    space: str
    default_items: int | None = None
    has_number = False  # whether the caller gave the number of users
    beyond = ""

    def held(self, count: int | None = None, **values: Any) -> Any:
        """Return identical rows for one user.

        Columns that are not given hold typical values.
        """
        raise NotImplementedError

    def pair(
        self, relation: Relation, others: Any, left: Any, right: Any, words: str
    ) -> NeighborPair:
        """Append a user who holds `left` and `right`, or who is absent on the right."""
        replaced = relation == Relation.REPLACE_USER
        sides = self.stacked(others, left), self.stacked(others, right if replaced else None)
        return NeighborPair(*sides, relation=relation, recipe=words, by=self.by)

    def stacked(self, others: Any, rows: Any) -> Any:
        """Return the dataset with the user, or the dataset of the others alone."""
        raise NotImplementedError

    def pairs(self, relation: Relation) -> Iterator[NeighborPair]:
        """Yield pairs whose sides differ, with the most important pairs first."""
        met = set()
        for pair in self._pairs(relation):
            sides = digest(pair.left), digest(pair.right)
            if sides[0] != sides[1] and sides not in met:
                met.add(sides)
                yield pair

    def _pairs(self, relation: Relation) -> Iterator[NeighborPair]:
        raise NotImplementedError

    def ends(self, columns: Iterable[Column]) -> tuple[Row, Row]:
        """Return the highest and the lowest values of columns."""
        columns = list(columns)
        return {c.name: c.high for c in columns}, {c.name: c.low for c in columns}

    def varied(self) -> list[Row]:
        """Return rows of one user with as many different values as possible."""
        return [
            {c.name: c.at(index, self.items) for c in self.columns} for index in range(self.items)
        ]

    def made(
        self, relation: Relation, others: Any, parameters: Mapping[str, Any], usual: Row
    ) -> NeighborPair:
        """Return the pair for the user's values that a search chose for each side."""
        names = [c.name for c in self.columns]
        left = {name: parameters[name] for name in names}
        right = {name: parameters.get(f"{name} right", usual[name]) for name in names}
        count = parameters.get("count")
        sides = self.held(count, **left), self.held(count, **right)
        return self.pair(relation, others, *sides, f"{self.space}({in_words(parameters)})")

    def ranges(self, relation: Relation) -> dict[str, Range]:
        """Return ranges of the user's values on the left, and on the right if the user stays."""
        left: dict[str, Range] = {c.name: c.range for c in self.columns}
        right = {f"{name} right": values for name, values in left.items()}
        return {**left, **(right if relation == Relation.REPLACE_USER else {})}


def new_together(rows: Sequence[Row], columns: Iterable[Column]) -> Row | None:
    """Return categories that all occur in some rows, but in no row together.

    Pairs of these categories are as rare as possible, so counts of single columns look usual. The
    result is None if there are no such categories.
    """
    found: Row = {}
    agree = [0] * len(rows)  # number of chosen cells that each row holds
    for column in columns:
        cells = [row[column.name] for row in rows]
        often, shared = Counter(cells), Counter[Any]()
        for cell, count in zip(cells, agree, strict=True):
            shared[cell] += count
        known = [value for value in column.categories if often[value]]
        if len(known) > 1:
            order = {value: (shared[value], -often[value]) for value in known}
            found[column.name] = chosen = min(known, key=order.__getitem__)
            agree = [count + (cell == chosen) for cell, count in zip(cells, agree, strict=True)]
    return found if found and max(agree) < len(found) else None


def _in_one_row(values: Row) -> str:
    return " and ".join(f"{name} = {value}" for name, value in values.items())


class SchemaTables(_Tables):
    """Builder of pairs of small tables of a schema."""

    space = "rows"

    def __init__(
        self, schema: Schema, n_users: int | None, items: int | None, missing: bool
    ) -> None:
        if not schema.columns:
            raise TypeError(
                "columns must be a dict from names to possible values, got an empty one"
            )
        special = schema.specials(missing)
        self.columns = tuple(_column(*one, special) for one in schema.columns.items())
        if special and not any(c.special for c in self.columns):
            raise ArgumentError(
                f"the special values {', '.join(map(str, special))} need a column of real "
                "numbers. Declare one, such as (0.0, 1.0)"
            )
        self.has_number = n_users is not None
        self.n_users = _N_USERS if n_users is None else _validate.integer(2, n_users=n_users)
        self.items = _ITEMS if items is None else _validate.integer(1, m=items)
        self.default_items = _ITEMS if items is None else None
        if self.n_users * self.items > MAX_ROWS:
            raise ArgumentError(
                f"n_users and m must give at most {MAX_ROWS:,} rows, got n_users={n_users} and "
                f"m={items}"
            )
        self.frame, self.user = schema.frame, schema.user
        self.by = None if self.frame == "dicts" else self.user
        try:
            self.library: Any = import_module(self.frame) if self.by else None
        except ImportError:
            raise ArgumentError(
                f"frame={self.frame!r} needs the package {self.frame}, which is not installed "
                f"here. Run pip install {self.frame}, or pass frame='dicts', which needs no package"
            ) from None
        rows = "" if items is None else f"; items={items}"
        self.name = f"rows({', '.join(schema.columns)}{rows})"

    def typical(self, place: int = 0) -> Row:
        """Return a row of values that most users have."""
        return {c.name: c.common[place % len(c.common)] for c in self.columns}

    def held(self, count: int | None = None, **values: Any) -> list[Row]:  # noqa: D102
        count = self.items if count is None else count
        return [{**self.typical(), **values} for _ in range(count)]

    def others(self, level: str = "typical") -> list[list[Row]]:
        """Return the users who are on both sides."""
        found = []
        for index in range(self.n_users - 1):
            row = self.typical(index)
            for c in self.columns if level != "typical" else ():
                if level == "spread" and not c.categories:
                    row[c.name] = c.at(index, self.n_users - 1)
                elif not c.categories:
                    row[c.name] = getattr(c, level)
            found.append([dict(row) for _ in range(self.items)])
        return found

    def stacked(self, others: list[list[Row]], rows: list[Row] | None) -> Any:  # noqa: D102
        users = others if rows is None else [*others, rows]
        if self.frame == "dicts":
            return users
        lows = [0, *(c.low for c in self.columns)]
        data: dict[str, list[Any]] = {self.user: [i for i, held in enumerate(users) for _ in held]}
        for c in self.columns:
            data[c.name] = [row[c.name] for held in users for row in held]
        # One extra row fixes the dtypes, so that columns without a row have the same dtype on both
        # sides.
        data = {name: [*cells, low] for (name, cells), low in zip(data.items(), lows, strict=True)}
        return self.library.DataFrame(data)[:-1]

    def _pairs(self, relation: Relation) -> Iterator[NeighborPair]:
        others, make, held = self.others(), partial(self.pair, relation), self.held
        high, low = self.ends(self.columns)
        special = [(c.name, value) for c in self.columns for value in c.special]
        once = [] if self.items == 1 else held(self.items - 1)
        yield make(others, held(**high), held(**low), "high against low")
        for name, value in special:
            yield make(others, held(**{name: value}), held(), f"{name} = {value}")
        for c in self.columns:
            for value in c.categories[-1:] or (c.high, c.low):
                sides = (
                    held(**{c.name: value}),
                    held(**{c.name: c.low if value == c.high else c.high}),
                )
                words = "alone with" if c.categories else "all items at"
                yield make(others, *sides, f"{words} {c.name} = {value}")
        if self.items > 1:
            yield make(others, self.varied(), held(), DIFFERENT)
            yield make(others, held(**high), held(1, **low), f"{self.items} items against 1")
            yield make(others, [*held(1, **high), *once], held(), "one item high")
        if not self.has_number:
            yield make([], held(**high), held(**low), NO_OTHERS)
            if relation == Relation.ADD_REMOVE_USER:
                yield make(self.others("low")[:1], held(**high), held(**low), ONE_OTHER)
        for level in ("low", "high", "spread"):
            if not all(c.categories for c in self.columns):
                yield make(self.others(level), held(**high), held(**low), f"others {level}")
        yield make(others, held(), held(**high), "like all others, or high")
        for c in self.columns:
            for value in c.categories[:-1][:_CATEGORIES]:
                sides = held(**{c.name: value}), held(**{c.name: c.high})
                yield make(others, *sides, f"{c.name} = {value}")
        together = new_together(list(chain.from_iterable(others)), self.columns)
        if together:
            yield make(others, held(**together), held(), f"alone with {_in_one_row(together)}")
        for name, value in special:
            if not self.has_number:
                yield make([], held(**{name: value}), held(), f"{ALONE}{name} = {value}")
            some = [*held(1, **{name: value}), *once]
            yield make(others, some, held(), f"{name} = {value} once")

    def spaces(self, relation: Relation) -> Iterator[SearchSpace]:
        """Yield search spaces: the user's values on both sides and the other users' values vary."""

        def build(**parameters: Any) -> NeighborPair:
            others = self.others(parameters.get("others", "typical"))
            return self.made(relation, others, parameters, self.typical())

        levels = Choice(("typical", "low", "high", "spread"))
        ranges = {**self.ranges(relation), "others": levels}
        yield SearchSpace(build, ranges, name=f"rows, {relation}")
        if self.items > 1:
            counts = {"count": Integer(1, self.items), **{c.name: c.range for c in self.columns}}
            yield SearchSpace(build, counts, name=f"rows of few items, {relation}")


class FrameTables(_Tables):
    """Builder of pairs around one frame.

    By default, the user with the most rows differs. All other users keep their data. Changing one
    user's real data seldom exposes a mistake. So the user is replaced by users with extreme but
    possible data. For example, such a user has as many rows as the largest user (or `items` rows),
    and all these rows hold an extreme value or one category.
    """

    space = "like"

    def __init__(self, frame: Any, schema: Schema, missing: bool, items: int | None) -> None:
        self.table = UserTable(frame, schema.user)
        self.by = schema.user
        declared = schema.columns or {}
        if not set(declared) <= set(self.table.cells):
            raise ArgumentError(
                f"columns must be a dict whose keys are among {', '.join(self.table.cells)}, "
                f"got {', '.join(declared)}"
            )
        special = schema.specials(missing)
        self.columns = tuple(
            self._declared(name, declared[name], special)
            if name in declared
            else self._seen(name, special)
            for name in self.table.cells
        )
        self.who, most = next(iter(self.table.sizes.items()))
        self.items = most if items is None else _validate.integer(1, MAX_ROWS, m=items)
        largest = counted(max(most, self.items), "row")
        self.beyond = f"users with more than {largest}, if data can hold them (pass m=)"
        self.name = f"like {len(self.table.owners)} rows of {len(self.table.sizes)} users"

    def _declared(self, name: str, holds: Range, special: tuple[Any, ...]) -> Column:
        """Return a declared column; refuse categories that omit a category of the frame."""
        column, (values, _) = _column(name, holds, special), self.table.seen(name)
        others = [value for value in dict.fromkeys(values) if value not in column.categories]
        if column.categories and others:
            raise ArgumentError(
                f"columns[{name!r}] must list all categories of the frame, got "
                f"{list(column.categories)!r}, which lacks {', '.join(map(repr, others[:5]))}"
            )
        return column

    def _seen(self, name: str, special: tuple[Any, ...]) -> Column:
        """Return a column with the kind and the range that the frame's column suggests."""
        kind, (values, gaps) = self.table.kind(name), self.table.seen(name)
        special = (*special, *gaps) if kind == "real" else gaps
        if kind != "other" and len(set(values)) > 1:
            ordered = sorted(values)
            make = Integer if isinstance(ordered[0], int) else Interval
            return Column(name, make(ordered[0], ordered[-1]), ordered[len(ordered) // 2], special)
        try:
            common = [value for value, _ in Counter(values).most_common()]
        except TypeError:
            raise ArgumentError(
                f"the column {name!r} holds lists or other objects. Declare its values by "
                f"columns={{{name!r}: [...]}}, or leave it out of the frame"
            ) from None
        if len(common) > _FRAME_CATEGORIES:
            common = [*common[: _FRAME_CATEGORIES - 1], common[-1]]
        common = common or [None]
        return Column(name, Choice(tuple(common)), common[min(1, len(common) - 1)], special)

    def held(self, count: int | None = None, **values: Any) -> Any:  # noqa: D102
        return self.rows(self.who, count, **values)

    def rows(self, who: Any, count: int | None = None, **values: Any) -> Any:
        """Return identical rows for one user.

        Columns that are not given hold typical values.
        """
        typical = {c.name: c.categories[0] if c.categories else c.mid for c in self.columns}
        return self.table.filled(who, [typical | values] * (self.items if count is None else count))

    def stacked(self, others: Any, rows: Any) -> Any:  # noqa: D102
        return others if rows is None else self.table.stacked(others, rows)

    def _pairs(self, relation: Relation) -> Iterator[NeighborPair]:
        make, held = partial(self.pair, relation), self.held
        others, one = self.table.without(self.who), self.table.rows_of(list(self.table.sizes)[-1])
        numbers = [c for c in self.columns if not c.categories]
        kinds = [c for c in self.columns if len(c.categories) > 1]
        high, low = self.ends(numbers)

        def at_ends() -> Iterator[NeighborPair]:
            yield make(others, held(**high), held(**low), "high against low")
            for c in kinds:
                for value in (c.high, *c.common):  # the rarest category first
                    sides = held(**high, **{c.name: value}), held(**low, **{c.name: value})
                    yield make(others, *sides, f"high against low, {c.name} = {value}")

        def alone() -> Iterator[NeighborPair]:
            for c in kinds:
                rare, words = {c.name: c.high}, f"{c.name} = {c.high}"
                rest = self.table.without(self.who, c.name, c.high)
                yield make(rest, held(**rare), held(), f"alone with {words}")
                # With one other holder, the counts are 1 and 2, so noise scaled by counts has
                # different scales.
                rest = self.table.without(self.who, c.name, c.high, but=1)
                yield make(rest, held(1, **rare, **high), held(1, **high), f"one of two, {words}")
            together = new_together(self._rows_of_others(), kinds)
            if together:
                yield make(others, held(**together), held(), f"alone with {_in_one_row(together)}")

        def special() -> Iterator[NeighborPair]:
            for c in self.columns:
                for value in c.special:
                    yield make(others, held(**{c.name: value}), held(), f"{c.name} = {value}")

        def real() -> Iterator[NeighborPair]:
            for who in self._named(numbers):
                rest, own = self.table.without(who), self.table.rows_of(who)
                yield make(rest, own, self.rows(who, **high), f"user {who} against high")
                yield make(rest, own, self.rows(who, **low), f"user {who} against low")

        rounds = zip_longest(at_ends(), alone(), special(), real())
        yield from (pair for pair in chain.from_iterable(rounds) if pair is not None)
        for c in kinds:
            for value in c.categories[:-1]:
                sides = held(**{c.name: value}), held(**{c.name: c.high})
                yield make(others, *sides, f"{c.name} = {value}")
        if self.items > 1:
            different = self.table.filled(self.who, self.varied())
            yield make(others, different, held(), DIFFERENT)
            yield make(others, held(**high), held(1, **low), f"{self.items} rows against 1")
            yield make(others, held(1, **high), held(1), "one row high")
        for c in numbers if len(numbers) > 1 else ():
            sides = held(**{c.name: c.high}), held(**{c.name: c.low})
            yield make(others, *sides, f"{c.name} high against low")
        yield make(one, held(**high), held(**low), ONE_OTHER)

    def _rows_of_others(self) -> list[Row]:
        names = list(self.table.cells)
        rows = zip(*self.table.cells.values(), strict=True)
        both = zip(self.table.owners, rows, strict=True)
        return [dict(zip(names, row, strict=True)) for who, row in both if who != self.who]

    def _named(self, numbers: Sequence[Column]) -> list[Any]:
        """Return distinctive users: with most rows, fewest rows or an extreme value of a column."""
        sizes, owners = list(self.table.sizes), self.table.owners
        found = [sizes[0], sizes[-1]]
        for c in numbers:
            for end in (c.high, c.low):
                cells = zip(owners, self.table.cells[c.name], strict=True)
                found += [owner for owner, cell in cells if cell == end][:1]
        return list(dict.fromkeys(found))[:_NAMED]

    def spaces(self, relation: Relation) -> Iterator[SearchSpace]:
        """Yield search spaces: the user's values on both sides and the choice of the user vary."""

        def made(**parameters: Any) -> NeighborPair:
            others, usual = self.table.without(self.who), {c.name: c.mid for c in self.columns}
            return self.made(relation, others, parameters, usual)

        def real(**parameters: Any) -> NeighborPair:
            values = dict(parameters)
            who = values.pop(self.table.by)
            sides = self.table.rows_of(who), self.rows(who, **values)
            return self.pair(
                relation, self.table.without(who), *sides, f"users({in_words(parameters)})"
            )

        yield SearchSpace(made, self.ranges(relation), name=f"like, {relation}")
        users: dict[str, Range] = {self.table.by: Choice(tuple(self.table.sizes)[:_USERS])}
        if relation == Relation.REPLACE_USER:
            users |= {c.name: c.range for c in self.columns}
        yield SearchSpace(real, users, name=f"users, {relation}")
