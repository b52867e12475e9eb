"""Smaller steps between the two datasets of a pair: item by item, or by way of an absent user."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

from dpaudit import _validate
from dpaudit.claims import Relation
from dpaudit.data import ArrayForm, Label
from dpaudit.errors import PairError
from dpaudit.neighbors.pairs import NeighborPair
from dpaudit.neighbors.shrinking import parts_of_users


def item_steps(pair: NeighborPair) -> list[NeighborPair]:
    """Return pairs that lead from the left to the right, each of which changes one item.

    In an array, all users have equally many items. So the items of a user who is absent on one side
    become 0 one by one, and then the user is removed. The list is empty if the sides differ in at
    most one item, or if the data have no items.

    Raises
    ------
    TypeError
        If `pair` is no :class:`NeighborPair`.
    """
    _validate.instance(NeighborPair, "a NeighborPair", pair=pair)
    if not pair.users:
        return []
    _, own = parts_of_users(pair, "cells")
    left, right = pair.form.cells(pair.left), pair.form.cells(pair.right)
    gone = list(dict.fromkeys(a[:2] for a, b in own if a is not None and b is None))
    come = list(dict.fromkeys(b[:2] for a, b in own if a is None and b is not None))
    if isinstance(pair.form, ArrayForm) and (gone or come):
        return _zeroed(pair, gone or come)
    changes: dict[Label, dict[Label, Any]] = {}
    for a, b in own:
        if a is not None and b is not None and repr(left[a]) != repr(right[b]):
            changes.setdefault(a[:2], {})[a] = right[b]
    sides = [pair.left]
    sides += [pair.form.without(pair.left, set(gone[: at + 1])) for at in range(len(gone))]
    for change in changes.values():
        sides.append(pair.form.filled(sides[-1], change))
    sides += [pair.form.without(pair.right, set(come[at + 1 :])) for at in range(len(come))]
    return _path(pair, sides) if len(sides) > 2 else []


def _zeroed(pair: NeighborPair, items: list[Label]) -> list[NeighborPair]:
    present, absent = pair.left, pair.right
    if len(pair.right) > len(pair.left):
        present, absent = absent, present
    sides = [present]
    for item in items:
        cells = pair.form.cells(sides[-1])
        zeros = {k: type(v)(0) for k, v in cells.items() if k[:2] == item and _is_number(v)}
        sides.append(pair.form.filled(sides[-1], zeros))
    steps = [*sides, absent] if present is pair.left else [absent, *reversed(sides)]
    return _path(pair, steps) if len(items) > 1 else []


def removal_steps(pair: NeighborPair) -> list[list[NeighborPair]]:
    """Return two ways from the left to the right, each of two steps.

    On the first way, the user is absent in between. On the second way, all numbers of the user are
    0 in between, which keeps the number of users. A way is empty if its data are no neighbours.
    There is no way unless one user is replaced.

    Raises
    ------
    TypeError
        If `pair` is no :class:`NeighborPair`.
    """
    _validate.instance(NeighborPair, "a NeighborPair", pair=pair)
    if len(pair.users) != 1 or pair.relation is not Relation.REPLACE_USER:
        return []
    _, users = parts_of_users(pair, "users")
    labels = {label for label, _ in users if label is not None}
    cells = pair.form.cells(pair.left)
    zeros = {
        label: type(value)(0)
        for label, value in cells.items()
        if label[:1] in labels and _is_number(value)
    }
    both = pair.form.without(pair.left, labels), pair.form.filled(pair.left, zeros)
    return [_path(pair, [pair.left, between, pair.right]) for between in both]


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)  # no flags, and no members of an enumeration


def _path(pair: NeighborPair, sides: list[Any]) -> list[NeighborPair]:
    """Return the pairs of consecutive datasets, or an empty list if they are no neighbours."""
    steps = []
    for left, right in itertools.pairwise(sides):
        for relation in Relation.REPLACE_USER, Relation.ADD_REMOVE_USER:
            try:
                steps.append(replace(pair, left=left, right=right, relation=relation))
                break
            except PairError:
                continue
        else:
            return []
    return [step for step in steps if not step.is_null]
