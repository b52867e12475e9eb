"""Reduction of a pair to the smallest pair on which a property still holds.

A pair on which a claim is refuted has parts that do not matter. Such parts are users, items of
users, columns and values. :func:`shrink` removes such parts by delta debugging (Zeller and
Hildebrandt 2002). It first removes many parts at once, then fewer and fewer. The order of the
passes follows Hypothesis (MacIver and Donaldson 2020, "Test-case reduction via test-case
generation"): first the parts that hold most data, then the values.

Every number of a smaller pair lies between the smallest and the largest number of the same column
in the pairs that were audited. So a smaller pair does not leave the domain of the data. Every text
is a text of the same column. If the original pair has other users, one of them stays. If every user
has items, every user keeps one item. Many mechanisms have a special case for data without users or
items, so a violation on such data may have another cause.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from dpaudit import _validate
from dpaudit.data import Label
from dpaudit.neighbors.pairs import NeighborPair

Part = TypeVar("Part")
Twins = tuple[Label | None, Label | None]
"""Label of a part on the left and on the right; None if a side lacks the part."""

_MOST_BYTES = 200_000
"""The values of larger datasets are not simplified."""

_MOST_CELLS = 60
"""Most cells that are simplified one by one."""

_SIMPLE: tuple[float, ...] = (0, 1, -1, 10, -10)
_DIGITS = (1, 2, 3)
_FINEST, _ROUNDS = 4, 3
_MOST_TEXTS = 3


def shrink(
    pair: NeighborPair,
    holds: Callable[[NeighborPair], bool],
    domain: Iterable[NeighborPair] | None = None,
) -> NeighborPair:
    """Return the smallest pair that was found on which a property holds.

    Parameters
    ----------
    pair : NeighborPair
        Pair on which the property holds.
    holds : callable
        ``holds(pair) -> bool``. The function raises ``StopIteration`` to end the reduction.
    domain : iterable of NeighborPair, optional
        At least one further pair, whose values belong to the domain of the data.

    Returns
    -------
    NeighborPair
        A pair of the same relation, on which `holds` returned True, or `pair` itself.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If `domain` is empty.

    Examples
    --------
    >>> left = [[3.0, 4.0], [5.0, 2.0], [0.0, 0.0]]
    >>> pair = NeighborPair(left, [left[0], [9.0, 2.0], left[2]])
    >>> found = shrink(pair, lambda pair: abs(pair.left - pair.right).max() > 3)
    >>> found.left.tolist(), found.right.tolist()
    ([[0.0], [0.0]], [[9.0], [0.0]])
    """
    _validate.instance(NeighborPair, "a NeighborPair", pair=pair)
    _validate.function("a function holds(pair) that returns a bool", holds=holds)
    pairs = "a list of NeighborPair objects"
    others = () if domain is None else _validate.items(pairs, domain=domain)
    for other in others:
        _validate.instance(NeighborPair, pairs, domain=other)
    shrinker = _Shrinker(pair, holds, _Domain([pair, *others]))
    try:
        for step in itertools.count(1):
            before, shrinker.finest = shrinker.pair, _FINEST**step
            for part in ("users", "items", "columns"):
                shrinker.remove(part)
            if step > 1:
                shrinker.confine()
            shrinker.simplify()
            if shrinker.pair is before and step > _ROUNDS:
                break
    except StopIteration:
        pass
    return shrinker.pair


class _Shrinker:
    """The smallest pair so far, and the passes that make it smaller."""

    def __init__(
        self, pair: NeighborPair, holds: Callable[[NeighborPair], bool], domain: _Domain
    ) -> None:
        self.pair = pair
        self.finest = 1
        self._holds = holds
        self._domain = domain
        self._least = [min(count, 1) for count in _counts(pair)]

    def remove(self, part: str) -> None:
        """Remove users, items or columns.

        A part is first removed on both sides, and then on one side only.
        """
        pair = self.pair
        others, own = parts_of_users(pair, part)
        keeps_own = part == "users" and len(pair.users) == 1
        may_leave = others if keeps_own else others + own
        self._reduce(may_leave, partial(_without, pair))
        for at in (0, 1) if part == "items" else ():
            pair = self.pair
            _, own = parts_of_users(pair, part)
            self._reduce(_on_side(own, at), partial(_without, pair))

    def confine(self) -> None:
        """Make cells of the differing users equal on both sides."""
        pair = self.pair
        if not _is_small(pair):
            return
        cells = _cells(pair)
        _, differ = _equal_and_different(pair, cells)

        def equal(gone: Iterable[Twins]) -> NeighborPair:
            changes: tuple[dict[Label, Any], ...] = ({}, {})
            for twins in gone:
                labels = [label for label in twins if label is not None]
                values = [cells[at][label] for at, label in enumerate(labels)]
                costs = [self._domain.cost(_column(twins), value) for value in values]
                simpler = int(costs[1] < costs[0])
                changes[1 - simpler][labels[1 - simpler]] = values[simpler]
            return _with_sides(pair, *map(pair.form.filled, (pair.left, pair.right), changes))

        self._reduce([twins for twins in differ if None not in twins], equal)

    def simplify(self) -> None:
        """Give cells simpler values: first all cells of a column and side, then single cells."""
        if not _is_small(self.pair):
            return
        others, _ = parts_of_users(self.pair, "cells")
        equal, differ = _equal_and_different(self.pair, _cells(self.pair))
        sides = others, equal, _on_side(differ, 0), _on_side(differ, 1)
        for group in itertools.chain(*map(_by_column, sides)):
            self._give(group)
        cells = list(itertools.chain(*sides))
        for cell in cells[: _MOST_CELLS if self.finest > _FINEST else 0]:
            self._give([cell])

    def _give(self, cells: Sequence[Twins]) -> None:
        """Give some cells of one column the first simpler value with which the property holds."""
        pair = self.pair
        left, right = _cells(pair)
        now = [right[b or ()] if a is None else left[a] for a, b in cells]
        column = _column(cells[0])
        costs = [self._domain.cost(column, value) for value in now]
        for value in self._domain.simpler(
            column, now[0] if len(set(map(repr, now))) == 1 else None
        ):
            cost = self._domain.cost(column, value)
            is_simpler = cost * len(cells) < sum(costs)
            if is_simpler and self._accepts(partial(_given, pair, cells, value)):
                return

    def _reduce(
        self, parts: Sequence[Part], make: Callable[[Sequence[Part]], NeighborPair]
    ) -> None:
        """Find few parts that must stay, by delta debugging.

        ``make(gone)`` returns the pair without the parts in `gone`. Chunks of parts are not smaller
        than all parts divided by `finest`.
        """
        gone: list[Part] = []
        left = list(parts)
        size = len(left)
        while size >= max(len(parts) // self.finest, 1):
            start = 0
            while start < len(left):
                chunk = left[start : start + size]
                if self._accepts(partial(make, [*gone, *chunk])):
                    gone += chunk
                    del left[start : start + size]
                else:
                    start += size
            size = min(size // 2, len(left))

    def _accepts(self, make: Callable[[], NeighborPair]) -> bool:
        """Make a pair, and keep it if the property holds on it."""
        try:
            pair = make()
        except Exception:  # no neighbours; the user's own relation may raise any exception
            return False
        too_few = any(a < b for a, b in zip(_counts(pair), self._least, strict=True))
        if too_few or pair.is_null or not self._holds(pair):
            return False
        self.pair = pair
        return True


# --- parts of a pair ----------------------------------------------------------------------------


def _with_sides(pair: NeighborPair, left: Any, right: Any) -> NeighborPair:
    return replace(pair, left=left, right=right, recipe="smallest pair")


def _given(pair: NeighborPair, cells: Iterable[Twins], value: Any) -> NeighborPair:
    sides = []
    for side, labels in zip((pair.left, pair.right), zip(*cells, strict=True), strict=True):
        changes = {label: value for label in labels if label is not None}
        sides.append(pair.form.filled(side, changes) if changes else side)
    return _with_sides(pair, *sides)


def _without(pair: NeighborPair, gone: Iterable[Twins]) -> NeighborPair:
    sides = zip(*gone, strict=True)
    left, right = (
        pair.form.without(side, {label for label in labels if label is not None})
        for side, labels in zip((pair.left, pair.right), sides, strict=True)
    )
    return _with_sides(pair, left, right)


def parts_of_users(pair: NeighborPair, part: str) -> tuple[list[Twins], list[Twins]]:
    """Return the parts of the users that do not differ, and the parts of the users that do.

    Parts of other users have equal content on both sides. Parts that belong to all users, such as
    columns, are among the parts of others.
    """
    form = pair.form
    sides = [
        list(form.cells(side)) if part == "cells" else form.labels(side, part)
        for side in (pair.left, pair.right)
    ]
    differing = [set(pair.users), set(pair.users)]
    if pair.relation.name == "add_remove_user":  # in an array, that row belongs to another user
        counts = [len(form.labels(side, "users")) for side in (pair.left, pair.right)]
        differing[counts[0] > counts[1]] = set()
    if not pair.users:  # query values, or a relation that is only checked
        return [], _union(*sides)
    is_own = [[label[0] in own for label in one] for one, own in zip(sides, differing, strict=True)]
    others, own = (
        [
            [label for label, mine in zip(one, flags, strict=True) if mine is wanted]
            for one, flags in zip(sides, is_own, strict=True)
        ]
        for wanted in (False, True)
    )
    return list(zip(*others, strict=True)), _union(*own)


def _on_side(parts: Iterable[Twins], at: int) -> list[Twins]:
    """Return the parts of one side: 0 for left, 1 for right."""
    return [
        (part[0], None) if at == 0 else (None, part[1]) for part in parts if part[at] is not None
    ]


def _counts(pair: NeighborPair) -> tuple[int, int]:
    """Return the number of other users, and the smallest number of items of a user."""
    others, _ = parts_of_users(pair, "users")
    least = []
    for side in (pair.left, pair.right):
        items = pair.form.labels(side, "items")
        of_each = Counter(label[0] for label in items)
        users = pair.form.labels(side, "users")
        common = of_each[None] if not items or None in of_each else None
        least += [of_each[user] if common is None else common for (user,) in users]
    return len(others), min(least, default=0)


def _union(left: Sequence[Label], right: Sequence[Label]) -> list[Twins]:
    both = dict.fromkeys([*left, *right])
    on_left, on_right = set(left), set(right)
    return [(at if at in on_left else None, at if at in on_right else None) for at in both]


def _equal_and_different(
    pair: NeighborPair, cells: tuple[dict[Label, Any], dict[Label, Any]]
) -> tuple[list[Twins], list[Twins]]:
    """Return the cells of the differing users that are equal on both sides, and the other cells."""
    _, own = parts_of_users(pair, "cells")
    left, right = cells
    found: tuple[list[Twins], list[Twins]] = [], []
    for a, b in own:
        differs = a is None or b is None or not _same(left[a], right[b])
        found[differs].append((a, b))
    return found


def _is_small(pair: NeighborPair) -> bool:
    return max(pair.form.size(side) for side in (pair.left, pair.right)) <= _MOST_BYTES


def _cells(pair: NeighborPair) -> tuple[dict[Label, Any], dict[Label, Any]]:
    return pair.form.cells(pair.left), pair.form.cells(pair.right)


def _column(cell: Twins) -> Label:
    """Return the column of a cell: its label without the user and the item."""
    return next(label for label in cell if label is not None)[2:]


def _by_column(cells: Sequence[Twins]) -> list[list[Twins]]:
    columns: dict[Label, list[Twins]] = {}
    for cell in cells:
        columns.setdefault(_column(cell), []).append(cell)
    return list(columns.values())


# --- values -------------------------------------------------------------------------------------


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and repr(one) == repr(other)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class _Domain:
    """The range of the numbers of each column, and the texts of each column."""

    def __init__(self, pairs: Iterable[NeighborPair]) -> None:
        self._seen: dict[Label, list[Any]] = {}
        for cells in itertools.chain(*(_cells(pair) for pair in pairs if _is_small(pair))):
            for label, value in cells.items():
                self._seen.setdefault(label[2:], []).append(value)
        self._known: dict[Label, tuple[list[Any], list[Any], bool]] = {}

    def _column(self, column: Label) -> tuple[list[Any], list[Any], bool]:
        """Return the numbers and the other values of a column, each sorted, and whether whole."""
        if column not in self._known:
            seen = self._seen.get(column, [])
            numbers = sorted({v for v in seen if _is_number(v) and math.isfinite(v)})
            others = {repr(v): v for v in seen if not _is_number(v)}
            texts = [others[key] for key in sorted(others, key=lambda key: (len(key), key))]
            self._known[column] = numbers, texts, all(isinstance(v, int) for v in numbers)
        return self._known[column]

    def simpler(self, column: Label, now: Any) -> Iterator[Any]:
        """Yield values of the column's domain, with the simplest first.

        If all cells have the value `now`, roundings of this value are among the values.
        """
        numbers, texts, whole = self._column(column)
        if numbers:
            low, high = numbers[0], numbers[-1]
            rounded: list[float] = []
            if _is_number(now) and math.isfinite(now):
                rounded = [float(f"{now:.{digits}g}") for digits in _DIGITS]
            found = [v for v in (*_SIMPLE, low, high, *rounded) if low <= v <= high]
            made = [int(v) if whole else float(v) for v in found if not whole or v == int(v)]
            yield from sorted(dict.fromkeys(made), key=lambda v: self.cost(column, v))
        yield from texts[:_MOST_TEXTS]

    def cost(self, column: Label, value: Any) -> float:
        """Return how complicated a value is."""
        if not _is_number(value):
            _, texts, _ = self._column(column)
            return next((at for at, text in enumerate(texts) if _same(text, value)), len(texts))
        if not math.isfinite(value):
            return 2.0 * len(repr(1 / 3))
        if value in _SIMPLE:
            return _SIMPLE.index(value)
        return len(_SIMPLE) + len(f"{value!r}".removesuffix(".0"))
