"""Forms of datasets: how datasets of each kind are copied, compared and stored.

A *form* handles one kind of dataset. The kinds are an array, a list of users, a frame with a column
of users, a dict of these, and an object of unknown structure. The rest of dpaudit accesses datasets
only through forms.

This module also represents draws that are exceptions instead of outputs. Among draws of numbers, an
exception is an empty array of a reserved shape. This representation works because the shape of an
array is part of the outcome. Among draws of texts, an exception is a text in angle brackets.
"""

from __future__ import annotations

import copy
import hashlib
import pickle
import zlib
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.errors import PairError

# --- draws that are exceptions: each is an outcome, distinguished by its type ------------------


_FIRST = 10**9  # more columns than any output has
_NAMES: dict[int, str] = {}


@dataclass(frozen=True)
class Failure:
    """Representation of a draw that raised an exception.

    Parameters
    ----------
    name : str
        Type of the exception.
    """

    name: str

    @property
    def words(self) -> str:
        """Description of the failure in reports."""
        return f"raised {self.name}"

    def as_row(self) -> NDArray[np.float64]:
        """Return the failure as an empty array, for use among draws of numbers."""
        code = _FIRST + zlib.crc32(self.name.encode()) % _FIRST
        _NAMES[code] = self.words
        return np.empty((0, code))


def words_of_shape(shape: tuple[int, ...]) -> str:
    """Describe a shape, or the type of the exception that the shape represents.

    Examples
    --------
    >>> words_of_shape((3, 2)), words_of_shape(Failure("KeyError").as_row().shape)
    ('(3, 2)', 'raised KeyError')
    """
    if len(shape) == 2 and shape[0] == 0 and shape[1] >= _FIRST:
        return _NAMES.get(shape[1], "raised an exception")
    return str(shape)


Array = NDArray[Any]

Label = tuple[Any, ...]
"""Label of a part of a dataset: first the user, or None if the part belongs to all users."""


@dataclass(frozen=True)
class Census:
    """The users of a dataset, and the content of each user.

    Parameters
    ----------
    held : mapping of user to content
        Users in the order of the data. If users have no names, they are row numbers.
    is_named : bool
        Whether users have names, so that a user is recognised at any position.
    order : tuple
        User of each row, if users have names. A mechanism can see the order of the rows.
    public : hashable
        Parts of the data that belong to no user, such as columns, kinds and constants.
    """

    held: Mapping[Hashable, Hashable]
    is_named: bool = False
    order: tuple[Hashable, ...] = ()
    public: Hashable = ()

    def without(self, users: set[Hashable]) -> Census:
        """Return the census without the content of some users."""
        held = {user: content for user, content in self.held.items() if user not in users}
        order = tuple(user for user in self.order if user not in users)
        return Census(held, self.is_named, order, self.public)


@dataclass(frozen=True)
class Packed:
    """A dataset as arrays and plain data.

    Reading a packed dataset executes no code.
    """

    arrays: dict[str, Array]
    facts: dict[str, Any]


class Form:
    """Handling of one kind of dataset.

    The base class handles an object of unknown structure.
    """

    def frozen(self, value: Any, name: str) -> Any:
        """Return a private copy of a dataset, in the type that other methods of the form expect.

        Raises
        ------
        PairError
            If the value is not a dataset of this form. The message uses `name`, the name of the
            argument.
        """
        try:
            return copy.deepcopy(value)
        except Exception as error:
            raise PairError(
                f"{name} must be a dataset that can be copied, because a mechanism might "
                f"change it, but copying raised {type(error).__name__}: {error}"
            ) from error

    def handed(self, value: Any) -> Any:
        """Return a version of `value` for a mechanism; changes to it do not reach `value`."""
        return copy.deepcopy(value)

    def digest(self, value: Any) -> bytes:
        """Return a digest of the content, which shows whether a call changed the dataset."""
        try:
            return hashlib.sha256(pickle.dumps(value)).digest()
        except Exception:  # pickling may raise any type of exception
            return b""

    def census(self, value: Any, label: Hashable = None) -> Census:
        """Return the users of the data; if `label` is given, omit the values at `label`."""
        raise TypeError("the users of data must be known, got an object of unknown structure")

    def words(self, value: Any) -> str:
        """Return a short description of the size of the dataset."""
        kind = type(value).__name__
        return f"{kind} of {len(value)}" if hasattr(value, "__len__") else kind

    def items(self, value: Any, user: Any) -> list[Any] | None:
        """Return the items of a user, or None if the user is absent."""
        return None

    def rows_of(self, value: Any, users: Collection[Any]) -> tuple[list[int], int] | None:
        """Return the rows of some users and the number of all rows.

        None if the dataset has no single sequence of rows.
        """
        return None

    def reordered(self, value: Any, order: list[int]) -> Any:
        """Return the dataset with its rows in another order."""
        raise TypeError("data must have rows to be reordered, got an object of unknown structure")

    def labels(self, value: Any, part: str) -> list[Label]:
        """Return the labels of all parts of one kind, in a fixed order.

        Parameters
        ----------
        value : object
            The dataset.
        part : {"users", "items", "columns"}
            Kind of part. A column is an entry that every item has.
        """
        return []

    def without(self, value: Any, labels: Collection[Label]) -> Any:
        """Return the dataset without the parts that have these labels."""
        raise TypeError("the parts of data must be known, got an object of unknown structure")

    def cells(self, value: Any) -> dict[Label, Any]:
        """Return every number and text of the dataset, by label.

        The label begins with the user and the number of the item.
        """
        return {}

    def filled(self, value: Any, cells: Mapping[Label, Any]) -> Any:
        """Return the dataset with other values in some cells."""
        raise TypeError("the cells of data must be known, got an object of unknown structure")

    def packed(self, value: Any) -> Packed | None:
        """Return the dataset as arrays and plain data, or None if the conversion is impossible."""
        return None

    def size(self, value: Any) -> int:
        """Return the approximate size of the dataset in bytes."""
        try:
            return len(pickle.dumps(value))
        except Exception:
            return 0


class ArrayForm(Form):
    """A rectangular array whose axis 0 is the user.

    Query values may have any shape.
    """

    def frozen(self, value: Any, name: str) -> Array:
        return dataset_array(name, value)

    def handed(self, value: Array) -> Array:
        return locked(value.copy()) if value.flags.writeable else value

    def digest(self, value: Array) -> bytes:
        head = f"{value.dtype.str} {value.shape}".encode()
        return hashlib.sha256(head + value.tobytes()).digest()

    def census(self, value: Array, label: Hashable = None) -> Census:
        rows = plain(value)
        if label is not None:
            rows = _without_label(rows, label)
        held: dict[Hashable, Hashable] = {index: row.tobytes() for index, row in enumerate(rows)}
        return Census(held, public=(value.dtype.str, value.shape[1:]))

    def words(self, value: Array) -> str:
        return "x".join(map(str, value.shape)) or "scalar"

    def items(self, value: Array, user: Any) -> list[Any] | None:
        return list(np.atleast_1d(value[user])) if user < len(value) else None

    def rows_of(self, value: Array, users: Collection[Any]) -> tuple[list[int], int] | None:
        return [user for user in users if user < len(value)], len(value)

    def reordered(self, value: Array, order: list[int]) -> Array:
        return value[order]

    def labels(self, value: Array, part: str) -> list[Label]:
        if part == "users":
            return [(user,) for user in range(len(value))] if value.ndim else []
        axes = range(1, min(value.ndim, 2)) if part == "items" else range(2, value.ndim)
        return [(None, axis, index) for axis in axes for index in range(value.shape[axis])]

    def without(self, value: Array, labels: Collection[Label]) -> Array:
        for axis in range(value.ndim):
            gone = [one[-1] for one in labels if (one[1] if one[0] is None else 0) == axis]
            value = np.delete(value, gone, axis)
        return locked(value)

    def cells(self, value: Array) -> dict[Label, Any]:
        if value.dtype.names:
            parts = {name: self.cells(value[name]) for name in value.dtype.names}
            return {(*at, name): one for name, held in parts.items() for at, one in held.items()}
        return {at: value[at].item() for at in np.ndindex(value.shape)}

    def filled(self, value: Array, cells: Mapping[Label, Any]) -> Array:
        value = value.copy()
        for at, one in cells.items():
            if value.dtype.names:
                value[at[-1]][at[:-1]] = one
            else:
                value[at] = one
        return locked(value)

    def packed(self, value: Array) -> Packed:
        return Packed({"": value}, {"form": "array"})

    def size(self, value: Array) -> int:
        return int(value.nbytes)


_PLAIN = bool | int | float | str | None
_LETTERS = 60


class ValueForm(Form):
    """Handling of a single value of one client: a text, a number, an array, or any other object."""

    def frozen(self, value: Any, name: str) -> Any:
        kept = super().frozen(value, name)
        return locked(kept) if isinstance(kept, np.ndarray) else kept

    def words(self, value: Any) -> str:
        words = " ".join(repr(value).split())
        return words if len(words) <= _LETTERS else f"{words[: _LETTERS - 3]}..."

    def packed(self, value: Any) -> Packed | None:
        if isinstance(value, np.ndarray) and value.dtype != object:
            return Packed({"": value}, {"form": "array"})
        if isinstance(value, tuple) and all(isinstance(one, _PLAIN) for one in value):
            return Packed({}, {"form": "tuple", "value": list(value)})
        return Packed({}, {"form": "constant", "value": value}) if _is_plain(value) else None


def _is_plain(value: Any) -> bool:
    """Return whether a value is a number, a text or None, or a list of these."""
    parts = value if isinstance(value, list) else [value]
    return all(isinstance(one, _PLAIN) for one in parts)


def counted(count: int, noun: str) -> str:
    """Return a count with its noun.

    Examples
    --------
    >>> counted(1, "user"), counted(2, "user")
    ('1 user', '2 users')
    """
    return f"{count} {noun}{'s' * (count != 1)}"


def is_frame(value: Any) -> bool:
    """Return whether a value is a DataFrame of pandas or polars.

    A lazy frame is not a DataFrame.
    """
    return hasattr(value, "columns") and bool(nw.dependencies.is_into_dataframe(value))


def dataset_array(name: str, value: ArrayLike) -> Array:
    """Return a read-only copy of a dataset; refuse tables, ragged arrays and objects."""
    if hasattr(value, "columns") or hasattr(value, "iloc"):
        raise PairError(
            f"{name} must be an array [n_users, m, ...], got a {type(value).__name__}, whose rows "
            "may be several items of one user. Use NeighborPair.from_frame, or group the items by "
            "user, for example by np.stack(list(frame.groupby('user')['value'].apply(np.array)))"
        )
    try:
        array = np.array(value)
    except ValueError as error:  # ragged, because users have different numbers of items
        raise PairError(
            f"{name} must be a rectangular array [n_users, m, ...], in which every user holds the "
            f"same number m of items ({error})"
        ) from None
    if array.dtype == object:
        raise PairError(f"{name} must be an array of numbers, strings or records, got objects")
    return locked(array)


def locked(array: Array) -> Array:
    """Return a read-only view of an array; nobody can make the view writable again."""
    array.setflags(write=False)
    return array.view()


def plain(array: Array) -> Array:
    """Return an array in which equal values have equal bytes: -0 becomes 0, and NaN is unique."""
    if array.dtype.names:
        fields = [(name, plain(array[name])) for name in array.dtype.names]
        made = np.empty(array.shape, dtype=array.dtype)
        for name, field in fields:
            made[name] = field
        return made
    if array.dtype.kind in "fc":
        return np.ascontiguousarray(np.where(np.isnan(array), np.nan, array + 0.0))
    return np.ascontiguousarray(array)


def _without_label(rows: Array, label: Hashable) -> Array:
    """Blank the label, which is a field of a record or a column of an item."""
    made = rows.copy()
    if rows.dtype.names:
        if label not in rows.dtype.names:
            raise PairError(
                f"label must be one of the fields {', '.join(rows.dtype.names)}, got {label!r}"
            )
        made[label] = np.zeros((), dtype=rows.dtype[label])
        return made
    width = rows.shape[-1] if rows.ndim > 1 else 0
    if isinstance(label, bool) or not isinstance(label, int) or not -width <= label < width:
        raise PairError(
            f"label must be the index of a value of an item, from {-width} to {width - 1} for "
            f"data of shape {rows.shape}, got {label!r}"
        )
    made[..., label] = np.zeros((), dtype=rows.dtype)
    return made
