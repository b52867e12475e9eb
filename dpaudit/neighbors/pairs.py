"""Pairs of neighbouring inputs, and families of pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import _validate
from dpaudit.claims import Relation, checked_relation
from dpaudit.errors import ArgumentError, PairError

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class NeighborPair:
    """Two inputs that differ in one user, or query values within a declared sensitivity.

    Parameters
    ----------
    left, right : array_like
        For ``Relation.REPLACE_USER`` both ``[n_users, ...]``; for ``Relation.ADD_REMOVE_USER``
        one of them lacks one user; for ``within_sensitivity`` query values of one shape. Copied,
        and read-only from then on.
    user : int, optional
        Row of the differing user, in the larger of the two datasets. Found when omitted; None for
        query values.
    relation : Relation, optional
        Default ``Relation.REPLACE_USER``.
    recipe : str, optional
        Words that tell how the pair was made.

    Raises
    ------
    PairError
        When the two differ anywhere else, or by more than the declared sensitivity.

    Examples
    --------
    >>> pair = NeighborPair([[0.0], [1.0]], [[0.0], [5.0]])
    >>> pair.user
    1
    """

    left: Array
    right: Array
    user: int | None = None
    relation: Relation = field(default_factory=lambda: Relation.REPLACE_USER)
    recipe: str = "custom"

    def __post_init__(self) -> None:
        checked_relation(self.relation)
        left, right = _alike(as_data("left", self.left), as_data("right", self.right))
        object.__setattr__(self, "left", left)
        object.__setattr__(self, "right", right)
        if self.relation.name == "within_sensitivity":
            _check_values(left, right, self.relation, self.user)
        else:
            object.__setattr__(self, "user", _find_user(left, right, self.relation, self.user))

    @property
    def is_null(self) -> bool:
        """Whether both sides are the same, so that no mechanism shows anything on them."""
        return self.left.shape == self.right.shape and bool(_same(self.left, self.right).all())

    def swapped(self) -> NeighborPair:
        """Return the pair with its two sides exchanged."""
        return NeighborPair(self.right, self.left, self.user, self.relation, self.recipe)

    def describe(self) -> str:
        """Return one line: recipe, relation, shapes and the differing user."""
        shape = "x".join(map(str, self.left.shape)) or "scalar"
        other = "x".join(map(str, self.right.shape)) or "scalar"
        shapes = shape if shape == other else f"{shape} against {other}"
        who = "" if self.user is None else f", user {self.user} differs"
        return f"{self.recipe}: {self.relation}, shape {shapes}{who}"

    def __repr__(self) -> str:
        return f"NeighborPair({self.describe()})"


@dataclass(frozen=True, eq=False)
class PairFamily:
    """Several pairs that an audit may choose from; it explores all and certifies on one.

    Parameters
    ----------
    name : str
        Words for reports.
    pairs : sequence of NeighborPair
        At least one.
    """

    name: str
    pairs: tuple[NeighborPair, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", tuple(self.pairs))
        if not self.pairs:
            raise ArgumentError(f"the family {self.name!r} holds no pair; at least one is needed")
        for pair in self.pairs:
            if not isinstance(pair, NeighborPair):
                raise TypeError(
                    f"pairs holds NeighborPair objects, got {type(pair).__name__}; "
                    "two datasets make one with NeighborPair(left, right)"
                )
            if len(self.pairs) > 1 and pair.is_null:
                raise ArgumentError(
                    f"a pair of a family must differ, got one whose sides are equal: {pair!r}"
                )
        relations = {str(pair.relation) for pair in self.pairs}
        if len(relations) > 1:
            raise ArgumentError(
                f"the pairs of a family share one relation, got {sorted(relations)}"
            )

    def __iter__(self) -> Iterator[NeighborPair]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)


def family(pairs: NeighborPair | PairFamily | Sequence[NeighborPair]) -> PairFamily:
    """Return `pairs` as a family: one pair, a sequence of pairs or a family itself."""
    if isinstance(pairs, PairFamily):
        return pairs
    if isinstance(pairs, NeighborPair):
        return PairFamily(pairs.recipe, (pairs,))
    try:
        members = tuple(pairs)
    except TypeError:
        raise TypeError(
            f"pairs must be a NeighborPair, a sequence of them or a PairFamily, got {pairs!r}"
        ) from None
    return PairFamily(f"{len(members)} pairs", members)


def as_data(name: str, value: ArrayLike) -> Array:
    """Return a read-only copy of a dataset; refuse tables, ragged arrays and objects."""
    if hasattr(value, "columns") or hasattr(value, "iloc"):
        raise PairError(
            f"{name} must be an array [n_users, m, ...], got a {type(value).__name__}, whose rows "
            "may be several items of one user: group them by user, and hand over an array in which "
            "row i holds the m items of user i, such as "
            "np.stack(list(frame.groupby('user')['value'].apply(np.array)))"
        )
    try:
        array = np.array(value)
    except ValueError as error:  # ragged: users with different numbers of items
        raise PairError(
            f"{name} must be a rectangular array [n_users, m, ...]: every user holds the same "
            f"number m of items ({error})"
        ) from None
    if array.dtype == object:
        raise PairError(f"{name} must be an array of numbers, strings or records, got objects")
    return _locked(array)


def _locked(array: Array) -> Array:
    """Return a view of a read-only array, which nobody can make writable again."""
    array.setflags(write=False)
    return array.view()


def _alike(left: Array, right: Array) -> tuple[Array, Array]:
    """Give both sides one dtype, so that a mechanism cannot tell them apart by it."""
    if left.dtype.names != right.dtype.names:
        raise PairError(
            f"left and right must hold records of the same fields, got {left.dtype} and "
            f"{right.dtype}"
        )
    try:
        common = np.result_type(left, right)
    except TypeError:
        raise PairError(
            f"left and right must be of one kind, got {left.dtype} and {right.dtype}"
        ) from None
    both = []
    for side in (left, right):
        both.append(side if side.dtype == common else _locked(side.astype(common)))
    return both[0], both[1]


def _same(a: Array, b: Array) -> NDArray[np.bool_]:
    """Elementwise equality in which NaN equals NaN, also inside records."""
    if a.dtype.names:
        fields = [_same(a[name], b[name]).reshape(*a.shape, -1) for name in a.dtype.names]
        return np.asarray(np.concatenate(fields, axis=-1).all(axis=-1))
    equal = np.asarray(a == b)
    if a.dtype.kind in "fc":
        equal = equal | (np.isnan(a) & np.isnan(b))
    return equal


def _find_user(left: Array, right: Array, relation: Relation, user: int | None) -> int | None:
    for name, data in (("left", left), ("right", right)):
        if data.ndim == 0:
            raise PairError(f"{name} must be a dataset [n_users, ...], got a scalar")
    if user is not None:
        _validate.integer(0, user=user)
    if relation.name == "replace_user":
        if left.shape != right.shape:
            raise PairError(
                "replace_user needs two datasets of one shape, "
                f"got left {left.shape} and right {right.shape}"
            )
        if left.shape[0] == 0:
            raise PairError("replace_user needs at least one user, got empty datasets")
        differs = ~_same(left, right)
        rows = np.flatnonzero(differs.reshape(left.shape[0], -1).any(axis=1))
        if len(rows) > 1:
            raise PairError(
                f"the datasets of a pair may differ in one user, got differences in {len(rows)} "
                f"users: rows {', '.join(map(str, rows[:5]))}{' ...' if len(rows) > 5 else ''}"
            )
        found = int(rows[0]) if len(rows) else None
        if user is not None and user >= left.shape[0]:
            raise PairError(f"user must be a row below {left.shape[0]}, got {user}")
        if user is not None and found is not None and user != found:
            raise PairError(f"user is {user}, but the datasets differ in row {found}")
        return user if found is None else found
    large, small = (left, right) if left.shape[0] > right.shape[0] else (right, left)
    if large.shape[0] != small.shape[0] + 1 or large.shape[1:] != small.shape[1:]:
        raise PairError(
            "add_remove_user needs datasets that differ by exactly one user, "
            f"got left {left.shape} and right {right.shape}"
        )
    if user is not None and user >= large.shape[0]:
        raise PairError(f"user must be a row below {large.shape[0]}, got {user}")
    if user is None:
        same = _same(large[: small.shape[0]], small).reshape(
            small.shape[0], math.prod(small.shape[1:])
        )
        rows = np.flatnonzero(~same.all(axis=1))
        user = int(rows[0]) if len(rows) else large.shape[0] - 1
    if not _same(np.delete(large, user, axis=0), small).all():
        raise PairError(
            f"without user {user} the larger dataset must equal the smaller one, but they differ"
        )
    return user


def _check_values(left: Array, right: Array, relation: Relation, user: int | None) -> None:
    if user is not None:
        raise PairError(f"user must be None for query values, got {user}")
    if left.shape != right.shape or left.size == 0:
        raise PairError(
            "query values must be two arrays of one shape, not empty, "
            f"got left {left.shape} and right {right.shape}"
        )
    if left.dtype.kind not in "biuf" or right.dtype.kind not in "biuf":
        raise PairError(f"query values must be numbers, got {left.dtype} and {right.dtype}")
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise PairError("query values must be finite, got NaN or inf")
    # Differences of integers are taken before anything is rounded.
    exact = left.dtype.kind in "biu"
    gap = left.astype(object) - right.astype(object) if exact else left - right
    order = {"l1": 1, "l2": 2, "linf": np.inf}[str(relation.norm)]
    distance = float(np.linalg.norm(np.ravel(gap).astype(float), ord=order))
    radius = float(relation.radius or 0.0)
    if distance > radius * (1 + 1e-9):
        raise PairError(
            f"the {relation.norm} distance of the query values must be at most {radius:g}, "
            f"got {distance:g}"
        )
