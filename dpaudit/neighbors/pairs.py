"""Pairs of neighbouring inputs, and families of pairs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.claims import Relation, checked_relation
from dpaudit.data import (
    ArrayForm,
    Form,
    added,
    common,
    digest,
    form_of,
    frame_sides,
    is_frame,
    locked,
    replaced,
)
from dpaudit.errors import ArgumentError, PairError

Array = NDArray[Any]
Differ = Callable[[Any, Any], Any]


@dataclass(frozen=True, eq=False)
class NeighborPair:
    """Two inputs that differ in one user, or query values within a declared sensitivity.

    Parameters
    ----------
    left, right : object
        Two datasets of one kind: arrays ``[n_users, ...]``; lists of users, each with as many items
        as it likes; frames of pandas or polars with a column of users; dicts of those; or any
        objects with `differ`. For ``within_sensitivity`` query values of one shape. Copied, and
        what a mechanism does to its input does not reach them.
    user : hashable, optional
        The differing user: its row, or its name where a column names users. Found when omitted;
        None for query values.
    relation : Relation, optional
        Default ``Relation.REPLACE_USER``. For ``Relation.ADD_REMOVE_USER`` one of the datasets
        lacks one user.
    recipe : str, optional
        Words that tell how the pair was made.
    by : str, optional
        Column of a frame that names the user of each row.
    differ : callable, optional
        ``differ(left, right)`` returns the users that differ, as a list. For objects that dpaudit
        does not understand; it is trusted.

    Attributes
    ----------
    users : tuple
        All users that differ; one but for groups.

    Raises
    ------
    PairError
        When the two differ anywhere else, or by more than the relation allows.

    Examples
    --------
    >>> pair = NeighborPair([[0.0], [1.0]], [[0.0], [5.0]])
    >>> pair.user
    1
    >>> NeighborPair([[1, 2], [3]], [[1, 2], [4]]).describe()  # users hold as much as they like
    'custom: replace_user, 2 users of 1 to 2 items, user 1 differs'
    """

    left: Any
    right: Any
    user: Any = None
    relation: Relation = field(default_factory=lambda: Relation.REPLACE_USER)
    recipe: str = "custom"
    by: str | None = field(default=None, kw_only=True)
    differ: Differ | None = field(default=None, kw_only=True)
    users: tuple[Any, ...] = field(default=(), init=False)
    form: Form = field(init=False, repr=False)

    def __post_init__(self) -> None:
        checked_relation(self.relation)
        _validate.text(recipe=self.recipe)
        if self.by is not None:
            _validate.text(by=self.by)
        if self.differ is not None:
            _validate.function("a function differ(left, right)", differ=self.differ)
        sides = (self.left, self.right)
        if self.relation.name == "within_sensitivity":
            form: Form = ArrayForm()
        else:
            form = common(*(form_of(side, by=self.by, differ=self.differ) for side in sides))
        parts = [p for s in sides for p in (s.values() if isinstance(s, dict) else (s,))]
        if self.by is not None and not any(map(is_frame, parts)):
            raise ArgumentError(f"by must be left out for data without a frame, got {self.by!r}")
        left, right = (form.frozen(s, n) for s, n in zip(sides, ("left", "right"), strict=True))
        if isinstance(form, ArrayForm):
            left, right = _alike(left, right)
        for name, value in (("left", left), ("right", right), ("form", form)):
            object.__setattr__(self, name, value)
        users = self._differing()
        object.__setattr__(self, "users", users)
        object.__setattr__(self, "user", users[0] if users else self.user)

    def _differing(self) -> tuple[Any, ...]:
        """Return the users that differ; refuse what the relation does not allow."""
        left, right, relation, form = self.left, self.right, self.relation, self.form
        if relation.name == "within_sensitivity":
            _check_values(left, right, relation, self.user)
            return ()
        if relation.name == "custom" and relation.check is not None:
            said = relation.check(left, right)
            if isinstance(said, str) or not said:
                reason = f": {said}" if said else ""
                raise PairError(f"the two datasets are no neighbours by {relation}{reason}")
        if self.differ is not None:
            return self._told()
        if isinstance(form, ArrayForm) and relation in _OF_ONE_USER:
            found = _find_user(left, right, relation, self.user)
            return () if found is None else (found,)
        if relation.name == "custom":
            return () if self.user is None else (self.user,)
        if isinstance(form, ArrayForm) and 0 in (left.ndim, right.ndim):
            raise PairError("left and right must be datasets [n_users, ...], got a scalar")
        before, after = form.census(left), form.census(right)
        if relation.name == "add_remove_user":
            users = added(before, after, relation.users)
        else:
            users = replaced(before, after, relation.users)
        if relation.name == "replace_label":
            ends = form.census(left, relation.label), form.census(right, relation.label)
            if replaced(*ends, relation.users):
                raise PairError(
                    f"the datasets may differ in the label {relation.label!r} only, but user "
                    f"{users[0]!r} differs elsewhere too"
                )
        if self.user is not None and users and self.user not in users:
            raise PairError(f"user is {self.user!r}, but the datasets differ in {users[0]!r}")
        return users

    def _told(self) -> tuple[Any, ...]:
        """Return what `differ` says, checked against the relation."""
        assert self.differ is not None
        said = self.differ(self.left, self.right)
        if isinstance(said, str) or not isinstance(said, Iterable):
            raise TypeError(f"differ must return a list of the users that differ, got {said!r}")
        users = tuple(said)
        if len(users) > self.relation.users:
            raise PairError(
                f"the datasets of a pair may differ in {self.relation.users} "
                f"user{'s' * (self.relation.users > 1)}, got differences in {len(users)}: "
                f"{', '.join(map(repr, users[:5]))}"
            )
        if self.user is not None and users and self.user not in users:
            raise PairError(f"user is {self.user!r}, but the datasets differ in {users[0]!r}")
        return users

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        user: str,
        drop: Any = None,
        replace: Mapping[Any, Any] | None = None,
        relation: Relation | None = None,
        recipe: str | None = None,
    ) -> NeighborPair:
        """Return a pair of a frame and the same frame without a user, or with another in its place.

        The rows of all other users stand at the same places on both sides, so that a mechanism
        that depends on the order of rows is not blamed for a shift. Rows of the user that only one
        side has therefore come last; the recipe of the pair says so where this moves rows.

        Parameters
        ----------
        frame : pandas.DataFrame or polars.DataFrame
            Rows are items; dtypes are kept on both sides.
        user : str
            Column that names the user of each row.
        drop : hashable or list, optional
            The user that the right side lacks; a list for a group.
        replace : dict, optional
            From a user to its rows on the right side: a frame or a dict of columns, each a value
            or a list of them. They take the places of the user's rows, and further rows come last.
            Where the column of the users is left out, the user keeps its name. Together with
            `drop` of the same user, the left side has these rows and the right side has none.
        relation : Relation, optional
            Default: ``ADD_REMOVE_USER`` for `drop`, ``REPLACE_USER`` for `replace`.

        Returns
        -------
        NeighborPair

        Examples
        --------
        >>> import pandas as pd
        >>> visits = pd.DataFrame({"id": [7, 7, 8], "paid": [1.5, 2.0, 9.0]})
        >>> NeighborPair.from_frame(visits, user="id", drop=7).user
        7
        >>> pair = NeighborPair.from_frame(visits, user="id", replace={7: {"paid": [1e6]}})
        >>> pair.left["paid"].tolist(), pair.right["paid"].tolist()
        ([1.5, 9.0, 2.0], [1000000.0, 9.0])
        >>> rich = NeighborPair.from_frame(visits, user="id", drop=7, replace={7: {"paid": [1e6]}})
        >>> rich.left["paid"].tolist(), rich.right["paid"].tolist()
        ([9.0, 1000000.0], [9.0])
        """
        left, right, users, words = frame_sides(frame, _validate.text(user=user), drop, replace)
        if relation is None:
            relation = Relation.REPLACE_USER if drop is None else Relation.ADD_REMOVE_USER
            relation = relation.of_group(len(users)) if len(users) > 1 else relation
        return cls(left, right, None, relation, recipe or words, by=user)

    @property
    def is_null(self) -> bool:
        """Whether both sides are the same, so that no mechanism shows anything on them."""
        if isinstance(self.form, ArrayForm):
            return self.left.shape == self.right.shape and bool(_same(self.left, self.right).all())
        return self.has_equal_sides

    @property
    def has_equal_sides(self) -> bool:
        """Whether both sides are the same to the last bit."""
        return digest(self.left) == digest(self.right)

    @property
    def shifts_others(self) -> bool:
        """Whether other users stand at other places on the two sides: the order alone may show."""
        rows = self._rows() or ()
        others = [[at for at in range(n) if at not in own] for own, n in rows]
        return bool(others) and others[0] != others[1]

    def _rows(self) -> list[tuple[set[int], int]] | None:
        """Return the rows of the users that differ, and the number of all rows, of each side."""
        if not self.relation.is_of_users or not self.users:
            return None
        left, right = (self.form.rows_of(side, self.users) for side in (self.left, self.right))
        if left is None or right is None:
            return None
        sides = [(set(own), n) for own, n in (left, right)]
        if self.relation.name == "add_remove_user":  # an array has another user in that row
            smaller = int(left[1] > right[1])
            sides[smaller] = set(), sides[smaller][1]
        return sides

    def places(self) -> Iterator[NeighborPair]:
        """Yield the pair with the rows that differ at every other place, if both sides allow it."""
        rows = self._rows()
        if rows is None or rows[0] != rows[1] or not rows[0][0]:
            return
        own, n = sorted(rows[0][0]), rows[0][1]
        for start in (*range(0, n - len(own), len(own)), n - len(own)):
            order = list(range(n))
            for a, b in zip(own, range(start, start + len(own)), strict=True):
                order[a], order[b] = order[b], order[a]
            if order != list(range(n)):
                sides = (self.form.reordered(side, order) for side in (self.left, self.right))
                words = f"{self.recipe}, at row {start}"
                yield replace(self, left=next(sides), right=next(sides), user=None, recipe=words)

    def swapped(self) -> NeighborPair:
        """Return the pair with its two sides exchanged."""
        return replace(self, left=self.right, right=self.left)

    def describe(self) -> str:
        """Return one line: recipe, relation, shapes and the differing user."""
        words, other = self.form.words(self.left), self.form.words(self.right)
        both = words if words == other else f"{words} against {other}"
        shapes = f"shape {both}" if isinstance(self.form, ArrayForm) else both
        if len(self.users) > 1:
            who = f", users {', '.join(map(str, self.users[:5]))} differ"
        else:
            who = "" if self.user is None else f", user {self.user} differs"
        return f"{self.recipe}: {self.relation}, {shapes}{who}"

    def __repr__(self) -> str:
        return f"NeighborPair({self.describe()})"


_OF_ONE_USER = (Relation.REPLACE_USER, Relation.ADD_REMOVE_USER)


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
        _validate.text(name=self.name)
        held = _validate.items("a list of NeighborPair objects", pairs=self.pairs)
        object.__setattr__(self, "pairs", held)
        for pair in self.pairs:
            if not isinstance(pair, NeighborPair):
                raise TypeError(f"pairs must hold NeighborPair objects, got {type(pair).__name__}")
            if len(self.pairs) > 1 and pair.is_null:
                raise ArgumentError(
                    f"pairs of a family must differ, got one whose sides are equal: {pair!r}"
                )
        of_one_kind(self.pairs, "a family")

    def __iter__(self) -> Iterator[NeighborPair]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)


def of_one_kind(pairs: Sequence[NeighborPair], where: str) -> None:
    """Refuse query values of another relation than all other pairs have."""
    names = sorted({str(pair.relation) for pair in pairs})
    if len(names) > 1 and not all(pair.relation.is_of_users for pair in pairs):
        raise ArgumentError(
            f"the pairs of {where} share one relation where they are query values, got {names}"
        )


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
        both.append(side if side.dtype == common else locked(side.astype(common)))
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
