"""Kinds of dataset: arrays, lists of users, frames, dicts of these kinds, and other objects.

A mechanism receives a dataset in its original kind. :func:`form_of` returns the form of a dataset,
which knows how to handle that kind. The form can copy the dataset, protect it from changes by a
mechanism, list its users, and store it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit import _validate
from dpaudit.data.forms import (
    ArrayForm,
    Census,
    Failure,
    Form,
    Label,
    Packed,
    ValueForm,
    counted,
    dataset_array,
    is_frame,
    locked,
    words_of_shape,
)
from dpaudit.data.frames import NEW_FRAMES, FrameForm, as_arrow, columns_of, frame_of_rows
from dpaudit.data.frames import unpacked as _frame
from dpaudit.data.interaction import Interaction, InteractionForm
from dpaudit.data.sequences import SequenceForm, content, object_array
from dpaudit.data.sequences import unpacked as _sequence
from dpaudit.data.sides import added, check_count, frame_sides, replaced
from dpaudit.data.tables import TablesForm, is_constant, parts_of
from dpaudit.data.users import UserTable
from dpaudit.errors import PairError

__all__ = [
    "NEW_FRAMES",
    "ArrayForm",
    "Census",
    "Failure",
    "Form",
    "Interaction",
    "InteractionForm",
    "Label",
    "Packed",
    "SequenceForm",
    "UserTable",
    "ValueForm",
    "added",
    "as_arrow",
    "check_count",
    "columns_of",
    "common",
    "content",
    "counted",
    "dataset_array",
    "digest",
    "form_of",
    "frame_of_rows",
    "frame_sides",
    "handed",
    "is_frame",
    "locked",
    "object_array",
    "replaced",
    "unpacked",
    "without_strategy",
    "words_of_data",
    "words_of_shape",
]

Differ = Callable[[Any, Any], Any]


def form_of(value: Any, *, by: str | None = None, differ: Differ | None = None) -> Form:
    """Return the form of a dataset.

    Parameters
    ----------
    value : object
        The dataset.
    by : str, optional
        Column that identifies the user of each row, if the dataset is a frame or a dict with
        frames.
    differ : callable, optional
        Function that returns the differing users. If `differ` is given, the data are treated as an
        object.

    Raises
    ------
    PairError
        For an object of another kind without `differ`, and for a frame without `by`.
    """
    if differ is not None:
        return Form()
    if is_frame(value):
        if by is None:
            raise PairError(
                f"by must be given for data of type {type(value).__name__}: the column that "
                "identifies the user of each row. Add such a column if every row is a "
                "separate user"
            )
        return FrameForm(by)
    if isinstance(value, dict):
        if not value or not all(isinstance(key, str) for key in value):
            raise PairError(
                "left and right must be dicts whose keys are texts, with at least one dataset, got "
                f"{_validate.describe(value)}"
            )
        parts = {
            key: None if is_constant(one) else form_of(one, by=by if is_frame(one) else None)
            for key, one in value.items()
        }
        return TablesForm(parts)
    if not isinstance(value, np.ndarray | list | tuple) and not hasattr(value, "__array__"):
        if is_constant(value):
            return ArrayForm()  # the dataset is a query value
        raise PairError(
            f"dpaudit cannot identify the users in data of type {type(value).__name__}. "
            "Pass differ=function(left, right), which returns the users that differ"
        )
    try:
        array = np.array(value)
    except ValueError:
        return SequenceForm()
    return SequenceForm() if array.dtype == object else ArrayForm()


def common(left: Form, right: Form) -> Form:
    """Return the common form of both sides of a pair; an array and a list become lists."""
    kinds = {type(left), type(right)}
    if len(kinds) == 1:
        return left
    if kinds == {ArrayForm, SequenceForm}:
        return SequenceForm()
    names = [type(form).__name__.removesuffix("Form").lower() for form in (left, right)]
    raise PairError(
        "left and right must be datasets of one kind, got "
        f"{'a frame' if names[0] == 'frame' else names[0]} and {names[1]}"
    )


def handed(value: Any) -> Any:
    """Return the copy or read-only view of a dataset that a mechanism receives.

    Examples
    --------
    >>> data = {"x": [1, 2]}
    >>> given = handed(data)
    >>> given["x"].append(3)
    >>> data
    {'x': [1, 2]}
    """
    return _form_of_kept(value).handed(value)


def digest(value: Any) -> bytes:
    """Return a digest of the content of a dataset of a pair."""
    return _form_of_kept(value).digest(value)


def _form_of_kept(value: Any) -> Form:
    """Return the form of a dataset of an existing pair, which needs no declarations."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return ArrayForm()
    if isinstance(value, Interaction):
        return InteractionForm(_form_of_kept(value.data))
    if is_frame(value):
        return FrameForm("")
    if isinstance(value, dict):
        parts = {k: None if is_constant(v) else _form_of_kept(v) for k, v in value.items()}
        return TablesForm(parts)
    return SequenceForm() if isinstance(value, list | tuple | np.ndarray) else Form()


def without_strategy(value: Any) -> Any:
    """Return the dataset of an interaction; any other value is returned unchanged."""
    return value.data if isinstance(value, Interaction) else value


def words_of_data(value: Any) -> str:
    """Return a short description of a dataset of a pair, for messages.

    Examples
    --------
    >>> words_of_data(np.zeros((20, 8))), words_of_data([[1, 2], [3]])
    ('data of shape (20, 8)', 'a list of 2 users')
    """
    if isinstance(value, Interaction):
        return words_of_data(value.data)
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"data of shape {value.shape}"
    kind = {"ndarray": "array", "dict": "dict"}.get(type(value).__name__, type(value).__name__)
    if isinstance(value, list | tuple | np.ndarray):
        return f"{'an' if kind == 'array' else 'a'} {kind} of {len(value)} users"
    if isinstance(value, dict):
        return f"a dict of {', '.join(value)}"
    return f"a {kind} of {len(value)} rows" if is_frame(value) else f"a {kind}"


def unpacked(packed: Packed) -> Any:
    """Return the dataset that :meth:`Form.packed` packed."""
    kind = packed.facts["form"]
    if kind == "array":
        return packed.arrays[""]
    if kind == "sequence":
        return _sequence(packed)
    if kind in ("constant", "tuple"):
        value = packed.facts["value"]
        return tuple(value) if kind == "tuple" else value
    if kind == "tables":
        return {key: unpacked(part) for key, part in parts_of(packed).items()}
    return _frame(packed)
