"""Lists of users.

Each user has any number of items of any kind.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.data.forms import Array, Census, Form, Label, Packed, counted, locked, plain
from dpaudit.errors import PairError


class SequenceForm(Form):
    """A list, a tuple or an array of objects with one entry for each user."""

    def frozen(self, value: Any, name: str) -> Any:
        try:
            users = [_frozen(user) for user in value]
        except TypeError as error:
            raise PairError(f"{name} must be a list of users, got {value!r} ({error})") from None
        return _like(value, users)

    def handed(self, value: Any) -> Any:
        return _like(value, [u if isinstance(u, np.ndarray) else copy.deepcopy(u) for u in value])

    def digest(self, value: Any) -> bytes:
        try:
            text = repr([content(user) for user in value]).encode()
        except PairError:  # users that cannot be compared with each other
            return super().digest(list(value))
        return hashlib.sha256(text).digest()

    def census(self, value: Any, label: Hashable = None) -> Census:
        if label is not None:
            raise PairError(
                "label must be None for a list of users. Use a frame, a dict or an array"
            )
        return Census({index: content(user) for index, user in enumerate(value)})

    def words(self, value: Any) -> str:
        counts = [len(user) for user in value if hasattr(user, "__len__")]
        if len(counts) < len(value) or not counts:
            return counted(len(value), "user")
        low, high = min(counts), max(counts)
        items = counted(low, "item") if low == high else f"{low} to {high} items"
        return f"{counted(len(value), 'user')} of {items}"

    def items(self, value: Any, user: Any) -> list[Any] | None:
        if not user < len(value):
            return None
        held = value[user]
        return list(held) if isinstance(held, np.ndarray | list | tuple) else [held]

    def rows_of(self, value: Any, users: Collection[Any]) -> tuple[list[int], int] | None:
        return [user for user in users if user < len(value)], len(value)

    def reordered(self, value: Any, order: list[int]) -> Any:
        return _like(value, [value[at] for at in order])

    def labels(self, value: Any, part: str) -> list[Label]:
        if part == "users":
            return [(user,) for user in range(len(value))]
        items = [at for user, held in enumerate(value) for at in _inside(held, (user,))]
        if part == "items":
            return items
        entries = [{at[-1] for at in _inside(_at(value, item), item)} for item in items]
        common = set.intersection(*entries) if entries else set()
        return [(None, key) for key in sorted(common, key=repr)]

    def without(self, value: Any, labels: Collection[Label]) -> Any:
        gone = {label for label in labels if label[0] is not None}
        columns = {label[-1] for label in labels if label[0] is None}
        if columns:
            items = self.labels(value, "items")
            gone |= {(*item, key) for item in items for key in columns}
        return _like(value, [
            _without(held, (user,), gone)
            for user, held in enumerate(value) if (user,) not in gone
        ])  # fmt: skip

    def cells(self, value: Any) -> dict[Label, Any]:
        return {at: one for user, held in enumerate(value) for at, one in _leaves(held, (user,))}

    def filled(self, value: Any, cells: Mapping[Label, Any]) -> Any:
        changed = {at[0] for at in cells}
        return _like(value, [
            _filled(held, (user,), cells) if user in changed else held
            for user, held in enumerate(value)
        ])  # fmt: skip

    def packed(self, value: Any) -> Packed | None:
        users = list(value)
        if not users or not all(isinstance(user, np.ndarray) and user.ndim for user in users):
            return None
        try:
            whole = np.concatenate(users)
        except ValueError:  # items of several shapes
            return None
        kind = type(value).__name__
        return Packed(
            {"": whole, "counts": np.array([len(user) for user in users])},
            {"form": "sequence", "kind": kind, "dtypes": [user.dtype.str for user in users]},
        )

    def size(self, value: Any) -> int:
        return sum(u.nbytes if isinstance(u, np.ndarray) else 64 for u in value)


def _inside(held: Any, at: Label) -> list[Label]:
    """Return the labels of the entries of a container; a number or a text has none."""
    if isinstance(held, Mapping):
        return [(*at, key) for key in held]
    is_container = isinstance(held, list | tuple) or (isinstance(held, np.ndarray) and held.ndim)
    return [(*at, index) for index in range(len(held))] if is_container else []


def _at(value: Any, label: Label) -> Any:
    for key in label:
        value = value[key]
    return value


def _leaves(held: Any, at: Label) -> Iterator[tuple[Label, Any]]:
    """Yield the numbers and texts in nested containers, with their labels."""
    if isinstance(held, np.generic):
        held = held.item()
    if held is None or isinstance(held, str | bool | int | float):
        yield at, held
    for label in _inside(held, at):
        yield from _leaves(held[label[-1]], label)


def _rebuilt(held: Any, entries: dict[Any, Any]) -> Any:
    """Return a container of the same kind with other entries."""
    if isinstance(held, Mapping):
        return entries
    if isinstance(held, np.ndarray):
        made = list(entries.values())
        return locked(np.array(made, held.dtype).reshape((len(made), *np.shape(made)[1:])))
    return type(held)(entries.values())


def _without(held: Any, at: Label, gone: set[Label]) -> Any:
    inside = _inside(held, at)
    if not any(label[: len(at)] == at for label in gone):
        return held
    if isinstance(held, np.ndarray):
        left = [label[-1] for label in inside if label not in gone]
        rest = held[left] if inside else held
        deeper = {label[-1] for label in gone if len(label) == len(at) + 2}
        return locked(np.delete(rest, list(deeper), 1) if deeper and rest.ndim > 1 else rest.copy())
    kept = {la[-1]: _without(held[la[-1]], la, gone) for la in inside if la not in gone}
    return _rebuilt(held, kept) if inside else held


def _filled(held: Any, at: Label, cells: Mapping[Label, Any]) -> Any:
    inside = _inside(held, at)
    if not inside:
        return cells.get(at, held)
    return _rebuilt(held, {la[-1]: _filled(held[la[-1]], la, cells) for la in inside})


def unpacked(packed: Packed) -> Any:
    """Return the users that were packed."""
    whole, counts = packed.arrays[""], packed.arrays["counts"]
    parts = np.split(whole, np.cumsum(counts)[:-1])
    dtypes = [np.dtype(dtype) for dtype in packed.facts["dtypes"]]
    if any(dtype.hasobject or dtype.itemsize > whole.dtype.itemsize for dtype in dtypes):
        raise ValueError(
            f"the items of all users must fit into the dtype {whole.dtype}, got larger "
            "items or objects"
        )
    users = [part.astype(dtype) for part, dtype in zip(parts, dtypes, strict=True)]
    if packed.facts["kind"] == "ndarray":
        return object_array(users)
    return tuple(users) if packed.facts["kind"] == "tuple" else users


def object_array(users: Sequence[Any]) -> Array:
    """Return users as an array of objects ``[n_users]``, even if all users have the same shape."""
    array = np.empty(len(users), dtype=object)
    for at, user in enumerate(users):
        array[at] = user
    return array


def _frozen(user: Any) -> Any:
    """Return the items of a user as a read-only array if possible, otherwise as a copy."""
    if isinstance(user, np.ndarray | list | tuple):
        try:
            array = np.array(user)
        except ValueError:
            return copy.deepcopy(user)
        if array.dtype != object and (isinstance(user, np.ndarray) or array.dtype.kind in "biufc"):
            return locked(array)
    return copy.deepcopy(user)


def _like(value: Any, users: list[Any]) -> Any:
    if isinstance(value, np.ndarray):
        return object_array(users)
    return tuple(users) if isinstance(value, tuple) else users


def content(value: Any) -> Hashable:
    """Return a hashable value that is equal for objects with equal content.

    Examples
    --------
    >>> content([1.0, float("nan")]) == content([1.0, float("nan")])
    True
    >>> content({"a": [1, 2]}) == content({"a": [1, 3]})
    False
    """
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return ("array", value.shape, tuple(content(one) for one in value.ravel()))
        return ("array", value.dtype.str, value.shape, plain(value).tobytes())
    if isinstance(value, dict):
        return ("dict", tuple((content(key), content(one)) for key, one in value.items()))
    if isinstance(value, list | tuple):
        return (type(value).__name__, tuple(content(one) for one in value))
    if isinstance(value, set | frozenset):
        return ("set", frozenset(content(one) for one in value))
    if isinstance(value, float | np.floating) and value != value:
        return ("nan",)
    if value is None or isinstance(value, str | bytes | bool | int | float | np.generic):
        return (type(value).__name__, value)
    try:
        if value != value:  # NaT, NA
            return (type(value).__name__, "missing")
    except TypeError:
        return (type(value).__name__, "missing")
    try:
        hash(value)
    except TypeError:
        raise PairError(
            f"dpaudit cannot compare objects of type {type(value).__name__}. Pass "
            "differ=function(left, right), which returns the users that differ"
        ) from None
    return (type(value).__name__, value)
