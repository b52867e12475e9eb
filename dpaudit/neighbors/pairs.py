"""Pairs of neighbouring inputs, and families of pairs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.claims import Relation, checked_relation
from dpaudit.data import (
    ArrayForm,
    Census,
    Form,
    Interaction,
    InteractionForm,
    SequenceForm,
    ValueForm,
    added,
    check_count,
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

NORMS = {"l1": 1, "l2": 2, "linf": np.inf}
"""Orders of the norms of :func:`~dpaudit.within_sensitivity` in numpy."""

_SIDES = "left", "right"
_PAIRS = "a list of NeighborPair objects, such as NeighborPair(left, right)"


@dataclass(frozen=True, eq=False)
class NeighborPair:
    """Two inputs that differ in one user, or two query values within a declared sensitivity.

    Parameters
    ----------
    left, right : object
        Two datasets of one kind. The datasets may be arrays ``[n_users, ...]``, lists of users
        (each with any number of items), or frames of pandas or polars with a column of users. Dicts
        of these kinds are allowed. If `differ` is given, any objects are allowed. For
        ``within_sensitivity``, the two sides are query values of one shape. For
        ``Relation.LOCAL``, they are any two values of one client. The datasets are copied, so a
        mechanism that changes its input does not change the pair.
    relation : Relation, optional
        The default is ``Relation.REPLACE_USER``. With ``Relation.ADD_REMOVE_USER``, one of the
        datasets lacks one user.
    recipe : str, optional
        Description of how the pair was made.
    by : str, optional
        Column of a frame that identifies the user of each row.
    differ : callable, optional
        ``differ(left, right)`` returns the users that differ, as a list. `differ` is needed for
        objects that dpaudit cannot compare; the answer of `differ` is trusted.

    Attributes
    ----------
    users : tuple
        All differing users. A pair of groups may have several differing users; any other pair has
        one differing user. The tuple is empty for equal sides and for query values.
    user : hashable
        The first differing user: the index of its row, or its name if a column identifies users.
        None if no user differs.

    Raises
    ------
    PairError
        If the datasets differ in anything but users, or by more than the relation allows.

    Examples
    --------
    >>> pair = NeighborPair([[0.0], [1.0]], [[0.0], [5.0]])
    >>> pair.user
    1
    >>> NeighborPair([[1, 2], [3]], [[1, 2], [4]]).describe()  # any number of items for each user
    'custom: replace_user, 2 users of 1 to 2 items, user 1 differs'
    """

    left: Any
    right: Any
    _: KW_ONLY
    relation: Relation = field(default_factory=lambda: Relation.REPLACE_USER)
    recipe: str = "custom"
    by: str | None = None
    differ: Callable[[Any, Any], Any] | None = None
    users: tuple[Any, ...] = field(default=(), init=False)
    form: Form = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.left, Interaction):
            self._take(self.left, self.right)
            return
        checked_relation(self.relation)
        _validate.text(recipe=self.recipe)
        if self.by is not None:
            _validate.text(by=self.by)
        if self.differ is not None:
            _validate.function("a function differ(left, right)", differ=self.differ)
        sides = (self.left, self.right)
        form: Form = ArrayForm()
        if self.relation.is_of_users:
            form = common(*(form_of(side, by=self.by, differ=self.differ) for side in sides))
        elif self.relation == Relation.LOCAL:
            form = ValueForm()
        parts = [p for s in sides for p in (s.values() if isinstance(s, dict) else (s,))]
        if self.by is not None and not any(map(is_frame, parts)):
            raise ArgumentError(f"by must not be given for data without a frame, got {self.by!r}")
        left, right = (form.frozen(s, n) for s, n in zip(sides, ("left", "right"), strict=True))
        if isinstance(form, ArrayForm):
            left, right = _alike(left, right)
        for name, value in (("left", left), ("right", right), ("form", form)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "users", self._differing())

    def _take(self, left: Interaction, right: Any) -> None:
        """Check the datasets of two interactions, and keep the strategy on both sides."""
        if not isinstance(right, Interaction) or left.strategy is not right.strategy:
            raise PairError("left and right must be interactions with the same strategy")
        plain = replace(self, left=left.data, right=right.data)
        kept = {side: Interaction(getattr(plain, side), left.strategy) for side in _SIDES}
        facts = kept | {"form": InteractionForm(plain.form), "users": plain.users}
        for name, value in facts.items():
            object.__setattr__(self, name, value)

    def facing(self, strategy: Any) -> NeighborPair:
        """Return this pair, on which an adversary with a strategy interacts with a session.

        A strategy whose text is empty does not change the recipe.
        """
        left, right = (Interaction(side, strategy) for side in (self.left, self.right))
        words = f"{strategy} ({self.recipe})" if str(strategy) else self.recipe
        return replace(self, left=left, right=right, recipe=words)

    def _differing(self) -> tuple[Any, ...]:
        """Return the users that differ; refuse differences that the relation does not allow."""
        left, right, relation, form = self.left, self.right, self.relation, self.form
        if not relation.is_of_users:
            if relation.name == "within_sensitivity":
                _check_values(left, right, relation)
            return ()
        if relation.check is not None:
            answer = relation.check(left, right)
            if isinstance(answer, str) or not answer:
                reason = f": {answer}" if answer else ""
                raise PairError(f"the two datasets are not neighbours by {relation}{reason}")
        if self.differ is not None:
            return _users_of(self.differ, left, right, relation)
        if relation.name == "custom":
            return ()
        start = 0
        if isinstance(form, ArrayForm):
            start, left, right = _unequal_rows(left, right, relation)
            if not len(left) and not len(right) and len(self.left):
                return ()

        def census(side: Any, label: Any = None) -> Census:
            """Return the users of a side.

            Each row keeps the number that it has in the whole side.
            """
            made = form.census(side, label)
            if not start:
                return made
            return replace(made, held=dict(enumerate(made.held.values(), start)))

        find = added if relation.name == "add_remove_user" else replaced
        users = find(census(left), census(right), relation.users)
        if relation.name == "replace_window":
            _check_window(users, relation, form)
        if relation.name == "replace_label" and replaced(
            census(left, relation.label), census(right, relation.label), relation.users
        ):
            raise PairError(
                f"the datasets must differ only in the label {relation.label!r}, got user "
                f"{users[0]!r}, who also differs in something else"
            )
        return users

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        user: str,
        drop: Any = None,
        replace: Mapping[Any, Any] | None = None,
    ) -> NeighborPair:
        """Return a pair of a frame and the same frame in which a user is removed or replaced.

        The rows of all other users have the same positions on both sides. Therefore a mechanism
        that depends on the order of rows is not refuted only because rows shift. If only one side
        has some of the user's rows, these rows come last. If the pair moves rows, the text `recipe`
        mentions the move.

        Parameters
        ----------
        frame : pandas.DataFrame or polars.DataFrame
            The frame, whose rows are items. Both sides keep the dtypes of this frame.
        user : str
            Column that identifies the user of each row.
        drop : hashable or list, optional
            The user that the right side lacks. A list of users gives a pair of groups. The relation
            of the pair is ``ADD_REMOVE_USER``.
        replace : dict, optional
            Mapping from a user to the user's rows on the right side. The rows are a frame, or a
            dict from columns to a value or a list of values. These rows take the places of the
            user's rows. Additional rows come last. If the rows lack the column of users, the user
            keeps its name. The relation of the pair is ``REPLACE_USER``. If `drop` holds the same
            user, the left side has these rows, and the right side has no rows of that user.

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
        relation = Relation.REPLACE_USER if drop is None else Relation.ADD_REMOVE_USER
        relation = relation.of_group(len(users)) if len(users) > 1 else relation
        return cls(left, right, relation=relation, recipe=words, by=user)

    @property
    def user(self) -> Any:
        """The first differing user; None if no user differs."""
        return self.users[0] if self.users else None

    @property
    def is_null(self) -> bool:
        """Whether both sides are equal, so that no mechanism can reveal a difference."""
        if isinstance(self.form, ArrayForm):
            return self.left.shape == self.right.shape and bool(_same(self.left, self.right).all())
        known = digest(self.left)
        return known == digest(self.right) and known != b""

    @property
    def shifts_others(self) -> bool:
        """Whether other users change places between the sides, so order may reveal the user."""
        others = [[at for at in range(n) if at not in own] for own, n in self._rows()]
        return bool(others) and others[0] != others[1]

    def _rows(self) -> list[tuple[set[int], int]]:
        """Return the rows of the differing users and the total number of rows, for each side.

        The list is empty if no user differs, or the data have no single sequence of rows.
        """
        if not self.users:
            return []
        left, right = (self.form.rows_of(side, self.users) for side in (self.left, self.right))
        if left is None or right is None:
            return []
        sides = [(set(own), n) for own, n in (left, right)]
        if self.relation.name == "add_remove_user":  # in an array, that row belongs to another user
            smaller = int(left[1] > right[1])
            sides[smaller] = set(), sides[smaller][1]
        return sides

    def places(self) -> Iterator[NeighborPair]:
        """Yield the pairs that have the differing rows elsewhere, if both sides allow this."""
        rows = self._rows()
        if not rows or rows[0] != rows[1] or not rows[0][0]:
            return
        own, n = sorted(rows[0][0]), rows[0][1]
        for start in (*range(0, n - len(own), len(own)), n - len(own)):
            order = list(range(n))
            for a, b in zip(own, range(start, start + len(own)), strict=True):
                order[a], order[b] = order[b], order[a]
            if order != list(range(n)):
                sides = (self.form.reordered(side, order) for side in (self.left, self.right))
                words = f"{self.recipe}, at row {start}"
                yield replace(self, left=next(sides), right=next(sides), recipe=words)

    def swapped(self) -> NeighborPair:
        """Return the pair with its two sides exchanged."""
        return replace(self, left=self.right, right=self.left)

    def describe(self) -> str:
        """Return one line: recipe, relation, shapes and the differing user."""
        words, other = self.form.words(self.left), self.form.words(self.right)
        if self.relation == Relation.LOCAL:
            return f"{self.recipe}: {words} against {other}"
        both = words if words == other else f"{words} against {other}"
        form = self.form.inner if isinstance(self.form, InteractionForm) else self.form
        shapes = f"shape {both}" if isinstance(form, ArrayForm) else both
        who = f", user {self.user} differs" if self.users else ""
        if len(self.users) > 1:
            who = f", users {', '.join(map(str, self.users[:5]))} differ"
        return f"{self.recipe}: {self.relation}, {shapes}{who}"

    def __repr__(self) -> str:
        return f"NeighborPair({self.describe()})"


@dataclass(frozen=True, eq=False)
class PairFamily:
    """Several pairs for one audit.

    The audit explores all pairs and certifies on one of them.

    Parameters
    ----------
    name : str
        Description for reports.
    pairs : sequence of NeighborPair
        At least one pair.
    """

    name: str
    pairs: tuple[NeighborPair, ...]

    def __post_init__(self) -> None:
        _validate.text(name=self.name)
        held = _validate.items(
            "a list of NeighborPair objects, such as NeighborPair(left, right)", pairs=self.pairs
        )
        object.__setattr__(self, "pairs", held)
        for pair in self.pairs:
            _validate.instance(
                NeighborPair,
                "a list of NeighborPair objects, such as NeighborPair(left, right)",
                pairs=pair,
            )
            if len(self.pairs) > 1 and pair.is_null:
                raise ArgumentError(
                    f"pairs of a family must differ, got one whose sides are equal: {pair!r}"
                )
        of_one_kind(self.pairs, "a family")

    def __iter__(self) -> Iterator[NeighborPair]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)


@dataclass(frozen=True, eq=False)
class AllPairs:
    """All pairs of some values of one client, as neighbours of a local mechanism.

    An audit explores all values together, and continues on the most promising pair.

    Parameters
    ----------
    values : sequence
        At least two different values.
    """

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        held = _validate.items("a list of at least two different values", values=self.values)
        seen: dict[bytes, Any] = {}
        for value in held:
            key = digest(value)
            if key and key in seen:
                raise ArgumentError(
                    f"values must be different from each other, got {_validate.describe(value)} "
                    "twice"
                )
            seen[key] = value
        if len(held) < 2:
            raise ArgumentError(
                f"values must be a list of at least two different values, got {held!r}"
            )
        object.__setattr__(self, "values", held)

    @property
    def name(self) -> str:
        """Description for reports."""
        n = len(self.values)
        return f"{n * (n - 1) // 2:,} pairs of {n:,} values"

    def words(self, at: int) -> str:
        """Return a short description of the value at a place."""
        return ValueForm().words(self.values[at])

    def pair(self, left: int, right: int) -> NeighborPair:
        """Return the pair of two values, by their positions."""
        recipe = self.name if len(self.values) > 2 else "values"
        return NeighborPair(
            self.values[left], self.values[right], relation=Relation.LOCAL, recipe=recipe
        )

    def of_pairs(self, number: Callable[[Any, Any], float]) -> NDArray[np.float64]:
        """Return a symmetric number for every pair, shape (k, k), with 1 on the diagonal.

        Raises
        ------
        ArgumentError
            If all numbers are infinite, so that nothing is claimed about any pair.
        """
        found = np.ones((len(self.values),) * 2)
        for i, j in itertools.combinations(range(len(self.values)), 2):
            found[i, j] = found[j, i] = number(self.values[i], self.values[j])
        if not np.isfinite(found[np.triu_indices(len(found), 1)]).any():
            raise ArgumentError(
                f"domain must hold two values about which something is claimed, got {self.name}"
            )
        return found

    @staticmethod
    def ranked(
        numbers: NDArray[np.float64], allowed: NDArray[np.float64] | float = 1.0
    ) -> list[tuple[int, int]]:
        """Return the places (i, j), i < j, of a square array, those with the largest ratio first.

        The larger of two opposite entries of `numbers` counts. Entries for which infinity is
        `allowed` are left out.
        """
        rows, columns = np.triu_indices(len(numbers), 1)
        bound = np.broadcast_to(allowed, numbers.shape)[rows, columns]
        ratios = np.maximum(numbers, numbers.T)[rows, columns] / np.where(bound < np.inf, bound, 1)
        order = np.argsort(-ratios, kind="stable")
        order = order[bound[order] < np.inf]
        return list(zip(rows[order].tolist(), columns[order].tolist(), strict=True))

    def example(self, *, rng: np.random.Generator) -> NeighborPair:
        """Return the pair of the first two values."""
        return self.pair(0, 1)


def of_one_kind(pairs: Sequence[NeighborPair], where: str) -> None:
    """Refuse pairs of different relations if any of the pairs are query values."""
    names = sorted({str(pair.relation) for pair in pairs})
    if len(names) > 1 and not all(pair.relation.is_of_users for pair in pairs):
        raise ArgumentError(
            f"the pairs of {where} must have one relation if they are query values, got {names}"
        )


def family(pairs: NeighborPair | PairFamily | Sequence[NeighborPair]) -> PairFamily:
    """Return `pairs` as a family: one pair, a sequence of pairs or a family."""
    if isinstance(pairs, PairFamily):
        return pairs
    if isinstance(pairs, NeighborPair):
        return PairFamily(pairs.recipe, (pairs,))
    if is_frame(pairs) or isinstance(pairs, np.ndarray):
        raise TypeError(
            "pairs must hold two datasets that differ in one user, got one dataset: "
            f"{_validate.describe(pairs)}. neighbors.portfolio(data) searches pairs near it (for "
            "a frame with schema=Schema(user=...)), and NeighborPair(left, right) is one pair"
        )
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise TypeError(
            f"pairs must be a NeighborPair, a sequence of them or a PairFamily, got {pairs!r}"
        )
    members = tuple(pairs)
    return PairFamily(f"{len(members)} pairs", members)


def _check_window(users: tuple[Any, ...], relation: Relation, form: Form) -> None:
    """Refuse differing rows that do not lie within a window."""
    if not isinstance(form, ArrayForm | SequenceForm):
        raise PairError(
            f"the data must be an array or a list with one row for each time under {relation}, "
            f"got users {users[:5]!r}"
        )
    if users and max(users) - min(users) >= relation.users:
        raise PairError(
            f"the datasets of a pair must differ within {relation.users} consecutive rows, got "
            f"differences from row {min(users)} to row {max(users)}"
        )


def _users_of(differ: Any, left: Any, right: Any, relation: Relation) -> tuple[Any, ...]:
    """Return the users that `differ` returns, after a check against the relation."""
    answer = differ(left, right)
    if isinstance(answer, str) or not isinstance(answer, Iterable):
        raise TypeError(f"differ must return a list of the users that differ, got {answer!r}")
    users = tuple(answer)
    check_count(len(users), relation.users, users)
    return users


def _alike(left: Array, right: Array) -> tuple[Array, Array]:
    """Convert both sides to one dtype, so that the dtype does not reveal the side."""
    try:
        if left.dtype.names != right.dtype.names:
            raise TypeError
        dtype = np.result_type(left, right)
    except TypeError:
        raise PairError(
            "left and right must hold values of one kind, or records of the same fields, got "
            f"{left.dtype} and {right.dtype}"
        ) from None
    a, b = (s if s.dtype == dtype else locked(s.astype(dtype)) for s in (left, right))
    return a, b


def _same(a: Array, b: Array) -> NDArray[np.bool_]:
    """Return elementwise equality, where NaN equals NaN (also inside records)."""
    if a.dtype.names:
        fields = [_same(a[name], b[name]).reshape(*a.shape, -1) for name in a.dtype.names]
        return np.asarray(np.concatenate(fields, axis=-1).all(axis=-1))
    equal = np.asarray(a == b)
    return equal | (np.isnan(a) & np.isnan(b)) if a.dtype.kind in "fc" else equal


def _unequal_rows(left: Array, right: Array, relation: Relation) -> tuple[int, Array, Array]:
    """Remove the equal rows at the beginning and the end of two arrays; also return an offset.

    The offset is the number of equal rows at the beginning. If no change of so few users makes the
    arrays equal, the whole arrays are returned.
    """
    if not left.ndim or not right.ndim:
        side = "right" if left.ndim else "left"
        raise PairError(f"{side} must be a dataset [n_users, ...], got a scalar")
    if left.shape[1:] != right.shape[1:]:
        raise PairError(
            "all users of left and right must hold items of equal shape, got shape "
            f"{left.shape} on the left and {right.shape} on the right"
        )
    gap, shorter = abs(len(left) - len(right)), min(len(left), len(right))
    if not (0 < gap <= relation.users if relation.name == "add_remove_user" else gap == 0):
        return 0, left, right

    def alike(a: Array, b: Array) -> int:
        """Return the number of equal rows before the first unequal row."""
        equal = _same(a, b).reshape(len(a), -1).all(axis=1) if a.size else np.ones(len(a), bool)
        return len(a) if equal.all() else int(equal.argmin())

    start = alike(left[:shorter], right[:shorter])
    end = alike(left[start:][::-1][: shorter - start], right[start:][::-1][: shorter - start])
    return start, left[start : len(left) - end], right[start : len(right) - end]


def _check_values(left: Array, right: Array, relation: Relation) -> None:
    """Refuse anything but query values within the distance that a relation allows."""
    if left.shape != right.shape or left.size == 0:
        raise PairError(
            "query values must be two nonempty arrays of equal shape, got shape "
            f"{left.shape} on the left and {right.shape} on the right"
        )
    if left.dtype.kind not in "biuf" or right.dtype.kind not in "biuf":
        raise PairError(f"query values must be numbers, got {left.dtype} and {right.dtype}")
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise PairError("query values must be finite, got NaN or inf")
    # Integers are subtracted before any rounding.
    gap = left - right if left.dtype.kind == "f" else left.astype(object) - right.astype(object)
    distance = float(np.linalg.norm(np.ravel(gap).astype(float), ord=NORMS[str(relation.norm)]))
    radius = float(relation.radius or 0.0)
    if distance > radius * (1 + 1e-9):
        raise PairError(
            f"the {relation.norm} distance of the query values must be at most {radius:g}, "
            f"got {distance:g}"
        )
