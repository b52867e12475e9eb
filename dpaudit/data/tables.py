"""Dicts of datasets, for example features and labels, or several tables with the same users."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Hashable, Mapping
from typing import Any

import numpy as np

from dpaudit.data.forms import ArrayForm, Census, Form, Label, Packed
from dpaudit.data.sequences import content
from dpaudit.errors import PairError


class TablesForm(Form):
    """A dict of datasets, and of constants that belong to no user.

    Parameters
    ----------
    parts : dict of str to Form
        The form of each dataset. A constant has no form.
    """

    def __init__(self, parts: Mapping[str, Form | None]) -> None:
        self.parts = dict(parts)

    def frozen(self, value: Any, name: str) -> Any:
        if list(value) != list(self.parts):
            raise PairError(
                f"left and right must hold the same tables in the same order, got "
                f"{', '.join(map(str, self.parts))} and {', '.join(map(str, value))}"
            )
        return {
            key: value[key] if form is None else form.frozen(value[key], f"{name}[{key!r}]")
            for key, form in self.parts.items()
        }

    def handed(self, value: Any) -> Any:
        return {
            key: value[key] if form is None else form.handed(value[key])
            for key, form in self.parts.items()
        }

    def digest(self, value: Any) -> bytes:
        summary = [
            (key, repr(value.get(key)) if form is None else form.digest(value[key]))
            for key, form in self.parts.items()
        ]
        return hashlib.sha256(repr((summary, list(value))).encode()).digest()

    def census(self, value: Any, label: Hashable = None) -> Census:
        if label is not None and self.parts.get(str(label)) is None:
            raise PairError(f"label must be one of {', '.join(self.parts)}, got {label!r}")
        counts = {
            key: form.census(value[key])
            for key, form in self.parts.items()
            if form is not None and key != label
        }
        public: list[Hashable] = [
            (key, content(value[key])) for key, form in self.parts.items() if form is None
        ]
        public += [(key, one.public) for key, one in counts.items()]
        if len({one.is_named for one in counts.values()}) > 1:
            raise PairError(
                "all tables of a dict must have a column of users, or none of them. Pass "
                "differ=function(left, right) for other dicts"
            )
        named = any(one.is_named for one in counts.values())
        lengths = {key: len(one.held) for key, one in counts.items()}
        if not named and len(set(lengths.values())) > 1:
            summary = ", ".join(f"{key}: {length}" for key, length in lengths.items())
            raise PairError(
                "the arrays of a dict must have one row for each user, got different numbers "
                f"of rows: {summary}. Pass differ=function(left, right) for other dicts"
            )
        users = dict.fromkeys(user for one in counts.values() for user in one.held)
        held: dict[Hashable, Hashable] = {
            user: tuple((key, one.held.get(user)) for key, one in counts.items()) for user in users
        }
        order = tuple((key, one.order) for key, one in counts.items())
        flat = tuple(user for _, rows in order for user in rows)
        return Census(held, is_named=named, order=flat, public=tuple(public))

    def words(self, value: Any) -> str:
        summary = (
            f"{key} {form.words(value[key])}"
            for key, form in self.parts.items()
            if form is not None
        )
        return "; ".join(summary)

    def items(self, value: Any, user: Any) -> list[Any] | None:
        held = {
            key: form.items(value[key], user) or []
            for key, form in self.parts.items() if form is not None
        }  # fmt: skip
        shared = self._shared_items(value)
        together = {key: held.pop(key) for key in shared if held[key]}
        found = [
            dict(zip(together, row, strict=True)) for row in zip(*together.values(), strict=True)
        ]
        return found + [{key: one} for key, items in held.items() for one in items] or None

    def _shared_items(self, value: Any) -> list[str]:
        """Return the names of the arrays, as X and y, whose axis 1 is the same items of a user."""
        shapes = {
            key: value[key].shape[:2]
            for key, form in self.parts.items()
            if isinstance(form, ArrayForm) and value[key].ndim > 1
        }
        others = any(
            form is not None and not isinstance(form, ArrayForm) for form in self.parts.values()
        )
        return [] if others or len(set(shapes.values())) != 1 else [*shapes]

    def rows_of(self, value: Any, users: Collection[Any]) -> tuple[list[int], int] | None:
        parts = [f.rows_of(value[key], users) for key, f in self.parts.items() if f is not None]
        return parts[0] if parts and all(part == parts[0] for part in parts) else None

    def reordered(self, value: Any, order: list[int]) -> Any:
        return {
            key: value[key] if form is None else form.reordered(value[key], order)
            for key, form in self.parts.items()
        }

    def labels(self, value: Any, part: str) -> list[Label]:
        found = [
            (label, key)
            for key, form in self.parts.items() if form is not None
            for label in form.labels(value[key], part)
        ]  # fmt: skip
        if part == "users":
            return list(dict.fromkeys(label for label, _ in found))
        if part == "items" and (shared := self._shared_items(value)):
            return [_in_table(label, None) for label, key in found if key == shared[0]]
        return [_in_table(label, key) for label, key in found]

    def without(self, value: Any, labels: Collection[Label]) -> Any:
        users = [label for label in labels if len(label) == 1]
        made = {}
        for key, form in self.parts.items():
            made[key] = value[key]
            if form is not None:
                present = set(form.labels(value[key], "users"))
                gone = [label for label in users if label in present]
                made[key] = form.without(value[key], [*gone, *_of_table(labels, key)])
        return made

    def cells(self, value: Any) -> dict[Label, Any]:
        return {
            _in_table(label, key): one
            for key, form in self.parts.items() if form is not None
            for label, one in form.cells(value[key]).items()
        }  # fmt: skip

    def filled(self, value: Any, cells: Mapping[Label, Any]) -> Any:
        made = {}
        for key, form in self.parts.items():
            own = _of_table(cells, key)
            changes = {label: cells[_in_table(label, key)] for label in own}
            made[key] = value[key] if form is None else form.filled(value[key], changes)
        return made

    def packed(self, value: Any) -> Packed | None:
        arrays: dict[str, Any] = {}
        facts: dict[str, Any] = {"form": "tables", "parts": {}}
        for key, form in self.parts.items():
            if form is None:
                one = value[key]
                if not (one is None or isinstance(one, str | bool | int | float)):
                    return None
                facts["parts"][key] = {"form": "constant", "value": one}
                continue
            part = form.packed(value[key])
            if part is None:
                return None
            facts["parts"][key] = part.facts
            arrays |= {f"{key}/{name}": array for name, array in part.arrays.items()}
        return Packed(arrays, facts)


def _in_table(label: Label, key: str | None) -> Label:
    """Return the label in the dict: the user, the number of the item, the table and the rest.

    The table is None if all arrays of the dict share the item.
    """
    return (*label[:2], *(None,) * (2 - len(label)), key, *label[2:])


def _of_table(labels: Collection[Label], key: str) -> list[Label]:
    """Return the labels in one table of the dict."""
    own = [label for label in labels if len(label) > 2 and label[2] in (key, None)]
    return [(*(label[:1] if label[1] is None else label[:2]), *label[3:]) for label in own]


def parts_of(packed: Packed) -> dict[str, Packed]:
    """Return the parts of a packed dict."""
    return {
        key: Packed(
            {
                name.removeprefix(f"{key}/"): array
                for name, array in packed.arrays.items()
                if name.startswith(f"{key}/")
            },
            facts,
        )
        for key, facts in packed.facts["parts"].items()
    }


def is_constant(value: Any) -> bool:
    """Return whether a value of a dict belongs to no user, such as a number, a text or None."""
    return value is None or isinstance(value, str | bytes | bool | int | float | np.generic)
