"""Recipes for adversarial pairs and for spaces of pairs, and the table that lists them.

A recipe of users is a function of a :class:`Crowd`. The docstring of a recipe says which weakness
the recipe targets. :data:`RECIPES` holds one row for each recipe. The rows define the public
functions with their signatures and documentation, the syntax on the command line, and the spaces of
a portfolio.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import _validate
from dpaudit.claims import Relation, checked_relation
from dpaudit.errors import ArgumentError
from dpaudit.neighbors.pairs import NORMS, NeighborPair, PairFamily
from dpaudit.neighbors.spaces import (
    Choice,
    Integer,
    Interval,
    Magnitude,
    Range,
    SearchSpace,
    in_words,
)

Array = NDArray[Any]

MAX_CELLS = 10**9
"""Largest number of values in a dataset of a recipe."""

_SMALLEST, _SMALLEST_WIDE = 1e-3, 1e-5
"""Smallest size or separation in a search, as a share of the domain: if declared, and if not."""


@dataclass(frozen=True)
class Crowd:
    """Builds pairs of one shape, one dtype and one relation.

    Parameters
    ----------
    n_users : int
        Number of users, at least 2.
    item_shape : tuple of int
        Shape of one user's data: ``(m,)``, ``(m, dim)``, or ``()``.
    dtype : numpy.dtype
        Dtype of the data.
    relation : Relation
        Relation of datasets. Under add/remove, the user is present on the left and absent on the
        right.
    low, high : float
        Domain of the data.
    wide : bool
        Whether positions and sizes are spread over many magnitudes. The value is True if no domain
        was declared.
    name : str
        Description of a pair that has no description of its own.
    """

    n_users: int
    item_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    relation: Relation
    low: float = 0.0
    high: float = 1.0
    wide: bool = False
    name: str = ""

    @property
    def m(self) -> int:
        """Number of items of a user."""
        return self.item_shape[0] if self.item_shape else 1

    @property
    def is_replaced(self) -> bool:
        """Whether the user is replaced and not removed."""
        return self.relation.name == "replace_user"

    # --- ranges of the searches ---

    @property
    def positions(self) -> Interval | Magnitude:
        """Range of the positions of users."""
        most = max(abs(self.low), abs(self.high))
        if self.wide:
            return Magnitude(_SMALLEST_WIDE * most, most)
        return Interval(float(self.low), float(self.high))

    @property
    def sizes(self) -> Interval:
        """Range of the distances between users.

        Whole numbers have distances of at least 1.
        """
        width = float(self.high) - float(self.low)
        least = width * (_SMALLEST_WIDE if self.wide else _SMALLEST)
        return Interval(
            1.0 if self.dtype.kind in "iu" and least < 1 < width else least, width, True
        )

    def places(self, count: int) -> Range:
        """Return the range of the user's places: any of `count` places, or only the last place."""
        return counted(count) if self.is_replaced else Choice((count - 1,))

    # --- data ---

    def row(self, value: ArrayLike) -> Array:
        """Return a user whose items all hold one `value`, or hold one given value each."""
        values = self.cast(value)
        row = np.empty(self.item_shape, dtype=self.dtype)
        if values.ndim == 1:
            values = values.reshape(-1, *[1] * (len(self.item_shape) - 1))
        row[...] = values
        return row

    def rows(self, values: ArrayLike) -> Array:
        """Return the other users, from one value for each user or from one common value."""
        rows = np.empty((self.n_users - 1, *self.item_shape), dtype=self.dtype)
        rows[...] = self.cast(values).reshape(-1, *[1] * len(self.item_shape))
        return rows

    def some(self, value: Any, rest: Any, items: slice) -> Array:
        """Return a user with `value` in some items and `rest` in the other items."""
        row = self.row(rest)
        row[items] = self.cast(value)
        return row

    def along(self, values: ArrayLike) -> Array:
        """Return users who each hold one number, as the first coordinate of all their items.

        A number outside the domain moves to the nearest end of the domain. If a coordinate of 0 is
        outside the domain, this coordinate also moves to the nearest end.
        """
        inside = np.clip(np.atleast_1d(np.asarray(values)), self.low, self.high)
        shape = len(inside), self.m, math.prod(self.item_shape[1:])
        made = np.full(shape, min(max(0.0, self.low), self.high))
        made[:, :, 0] = inside[:, None]
        return self.cast(made.reshape(len(inside), *self.item_shape))

    def cast(self, value: ArrayLike) -> Array:
        """Return values in the dtype of the data.

        The values are rounded if the data are whole numbers.
        """
        array = np.asarray(value)
        if self.dtype.kind in "iu" and array.dtype.kind == "f":
            array = np.rint(array)
        return array.astype(self.dtype)

    # --- pairs ---

    def pair(
        self, others: Array, left: Array, right: Array, words: str, at: int | None = None
    ) -> NeighborPair:
        """Insert a user who holds `left` or `right` among the other users, by default at the end.

        A user who is removed is always last, so that no other user changes places.
        """
        at = len(others) if at is None or not self.is_replaced else at
        # A row of a one-dimensional array of texts is a scalar and cannot be indexed.
        sides = [
            np.concatenate([others[:at], np.asarray(row)[None], others[at:]])
            for row in ((left, right) if self.is_replaced else (left,))
        ]
        words = words if self.is_replaced else f"{words}, who leaves"
        return NeighborPair(*[*sides, others][:2], relation=self.relation, recipe=words)

    def moved(
        self,
        others: ArrayLike,
        left: float,
        right: float,
        words: str | None = None,
        at: int | None = None,
    ) -> NeighborPair:
        """Return the pair of a user who moves along the first coordinate."""
        rest = self.along(np.broadcast_to(others, self.n_users - 1))
        top, bottom = self.along([left, right])
        return self.pair(rest, top, bottom, words or self.name, at)


def counted(count: int, first: int = 0) -> Range:
    """Return the range of `count` whole numbers."""
    return Integer(first, first + count - 1) if count > 1 else Choice((first,))


# --- the table --------------------------------------------------------------------------------

T = TypeVar("T")
Searched = Callable[[Crowd], dict[str, Any] | None]


@dataclass(frozen=True)
class Recipe:
    """A row of the table of recipes.

    Parameters
    ----------
    function : callable
        The function that users call.
    build : callable, optional
        ``build(crowd, **own)`` makes the pair or the space of a recipe of users.
    searched : callable, optional
        ``searched(crowd)`` returns the arguments of `build` for the search of a portfolio. The
        function returns None if portfolios do not search the recipe.
    """

    function: Callable[..., Any]
    build: Callable[..., Any] | None = None
    searched: Searched = lambda crowd: None

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """Parameters of the function that may be given on the command line."""
        hidden = ("rng", "like", "schema")
        parameters = inspect.signature(self.function).parameters
        return {name: one for name, one in parameters.items() if name not in hidden}


RECIPES: dict[str, Recipe] = {}
"""All recipes by name; a portfolio searches spaces in this order."""

_COMMON = """

Parameters
----------
n_users : int
    At least 2.
m : int, optional
    Items of each user, default 1.
dim : int, optional
    Dimension of an item, whose first coordinate varies; by default items are scalars.
low, high : {kind}, optional
    Lowest and highest value of the data; defaults {low:g} and {high:g}.
relation : Relation, optional
    Replace a user (default), or add/remove one.
"""


def listed(function: Callable[..., T]) -> Callable[..., T]:
    """Enter a function into the table unchanged."""
    RECIPES[function.__name__] = Recipe(function)
    return function


def _of_users(
    low: float, high: float, searched: Searched = lambda crowd: None
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Enter a recipe of users into the table, and return the function that users call.

    The function takes the shared arguments of all recipes, with defaults for `low` and `high`, and
    the other arguments of `build`. If `low` is an integer, the data are whole numbers.
    """
    whole = isinstance(low, int)
    dtype = np.dtype(np.int64 if whole else np.float64)

    def enter(build: Callable[..., T]) -> Callable[..., T]:
        name = build.__name__

        @functools.wraps(build)
        def function(
            *,
            n_users: int,
            m: int = 1,
            dim: int | None = None,
            low: float = low,
            high: float = high,
            relation: Relation = Relation.REPLACE_USER,
            **own: Any,
        ) -> T:
            shape = _checked_shape(n_users, m, dim)
            for key, end in {"low": low, "high": high}.items() if whole else ():
                _validate.integer(-_validate.LARGEST_INTEGER, **{key: end})
            ends = checked_ends(low, high)
            if checked_relation(relation).name not in ("replace_user", "add_remove_user"):
                raise ArgumentError(
                    f"relation must be replace_user or add_remove_user, got {relation}"
                )
            arguments = {k: v for k, v in {"low": low, "high": high, **own}.items() if k != "rng"}
            words = f"{name}({in_words(arguments)})"
            return build(Crowd(int(n_users), shape, dtype, relation, *ends, name=words), **own)

        shared = inspect.signature(function, follow_wrapped=False).parameters.values()
        own = inspect.signature(build).parameters.values()
        parameters = [*list(shared)[:-1], *list(own)[1:]]
        signature = inspect.signature(build).replace(parameters=parameters)
        function.__dict__["__signature__"] = signature
        common = _COMMON.format(kind="int" if whole else "float", low=low, high=high)
        function.__doc__ = inspect.cleandoc(build.__doc__ or "") + common
        RECIPES[name] = Recipe(function, build, searched)
        return function

    return enter


def _checked_shape(n_users: int, m: int, dim: int | None) -> tuple[int, ...]:
    """Return the shape of one user's data; refuse sizes out of range."""
    sizes = [_validate.integer(2, n_users=n_users), _validate.integer(1, m=m)]
    if dim is not None:
        sizes.append(_validate.integer(1, dim=dim))
    if math.prod(sizes) > MAX_CELLS:
        raise ArgumentError(
            f"n_users, m and dim must give at most {MAX_CELLS:,} numbers, got n_users={n_users}, "
            f"m={m}" + (f", dim={dim}" if dim is not None else "")
        )
    return tuple(sizes[1:])


def checked_ends(low: Any, high: Any) -> tuple[float, float]:
    """Return the ends of a domain; refuse anything but two finite numbers in increasing order."""
    ends = _validate.finite(low=low), _validate.finite(high=high)
    if not ends[0] < ends[1]:
        raise ArgumentError(f"low must be below high = {high!r}, got {low!r}")
    if not math.isfinite(ends[1] - ends[0]):
        raise ArgumentError(
            f"high - low must be a finite number, got low = {low!r} and high = {high!r}"
        )
    return ends


# --- pairs of users ---------------------------------------------------------------------------


@_of_users(0.0, 100.0)
def far_user(crowd: Crowd) -> NeighborPair:
    """One user at `high` who moves to `low`, where all other users are.

    The recipe targets unbounded influence, for example missing or wrong clipping, or a mean where a
    robust mean is needed. The recipe also targets noise whose scale is estimated from the data, for
    example by the standard deviation, quartiles or the MAD. If the user moves to `low`, this
    estimate is 0.
    """
    return crowd.moved(crowd.low, crowd.high, crowd.low)


@_of_users(-1.0, 1.0)
def clip_boundary_user(crowd: Crowd) -> NeighborPair:
    """User at the clipping boundary `high` who moves to `low`; all other users are in the middle.

    The recipe targets sensitivities that omit the factor 2 of replacement, and sensitivities that
    count items instead of users.
    """
    return crowd.moved((crowd.low + crowd.high) / 2, crowd.high, crowd.low)


@_of_users(0.0, 2.0)
def two_clusters(crowd: Crowd) -> NeighborPair:
    """Two clusters of equal size, at `low` and at `high`.

    The user moves from `high` to `low`. The recipe targets medians, modes, cluster centres and all
    statistics that jump when the balance changes. If `n_users` is odd, the two clusters have equal
    size without the user.
    """
    others = np.arange(crowd.n_users - 1) >= (crowd.n_users - 1) // 2
    return crowd.moved(np.where(others, crowd.high, crowd.low), crowd.high, crowd.low)


@_of_users(0, 1)
def majority_flip(crowd: Crowd) -> NeighborPair:
    """Balanced votes `low` and `high`, and one user who decides the majority.

    The recipe targets votes, modes and argmax steps that are released without noise, or with the
    noise of an average. `n_users` must be odd.
    """
    if crowd.n_users % 2 == 0:
        raise ArgumentError(f"n_users must be odd, so that one user decides, got {crowd.n_users}")
    others = np.arange(crowd.n_users - 1) >= crowd.n_users // 2
    return crowd.moved(np.where(others, crowd.high, crowd.low), crowd.high, crowd.low)


@_of_users(0, 1)
def threshold_decider(crowd: Crowd, *, threshold: int) -> NeighborPair:
    """Exactly `threshold` users hold `high` if the user is counted, and `threshold` - 1 if not.

    The recipe targets noiseless comparisons of a count with a threshold, such as
    propose-test-release, stability-based histograms and "enough users" checks. `threshold` must be
    from 1 to `n_users`.
    """
    if _validate.integer(1, threshold=threshold) > crowd.n_users:
        raise ArgumentError(f"threshold must be at most n_users = {crowd.n_users}, got {threshold}")
    others = np.where(np.arange(crowd.n_users - 1) < threshold - 1, crowd.high, crowd.low)
    return crowd.moved(others, crowd.high, crowd.low)


@_of_users(-1.0, 1.0)
def constant_against_random(crowd: Crowd, *, rng: np.random.Generator) -> NeighborPair:
    """Random users, and one user whose items are constant on the left and random on the right.

    The recipe targets per-user statistics that assume independent items of one user, such as
    concentration scores, within-user variances and outlier tests. Random items are normal, drawn
    from `rng`. The mean of the items is the middle of the domain, and the ends of the domain are
    one standard deviation away from this mean.
    """
    _validate.generator(rng=rng)
    middle, scale = (crowd.low + crowd.high) / 2, (crowd.high - crowd.low) / 2
    draws = rng.normal(middle, scale, size=(crowd.n_users, *crowd.item_shape))
    return crowd.pair(draws[:-1], crowd.along(middle)[0], draws[-1], crowd.name)


# --- spaces of pairs of users -----------------------------------------------------------------


@_of_users(0.0, 1.0, lambda crowd: {})
def edge(crowd: Crowd) -> SearchSpace:
    """All other users at one position, which may be next to a threshold that the user crosses.

    The recipe targets data-dependent branches without noise, such as propose-test-release, clipping
    at an estimated bound, and "if the mean is large". The search chooses the `position` of the
    others and the user's `step`. A `step` of "across" goes from `high` on the left to `low` on the
    right. A step "up" goes from `high` to the others. A step "down" goes from the others to `low`.
    """

    def build(*, position: float, step: str) -> NeighborPair:
        left = position if step == "down" else crowd.high
        right = position if step == "up" else crowd.low
        words = in_words({"position": position, "step": step})
        return crowd.moved(position, left, right, f"edge({words})")

    ranges: dict[str, Range] = {
        "position": crowd.positions,
        "step": Choice(("across", "up", "down")),
    }
    return SearchSpace(build, ranges, name=f"edge(n_users={crowd.n_users})")


@_of_users(0.0, 1.0, lambda crowd: {})
def outlier(crowd: Crowd) -> SearchSpace:
    """One user who is far from all other users, while the other users lie close together.

    The recipe targets influence that is bounded only for data of the expected size, and scales that
    are estimated from the data. The search chooses the position of the `others` and their `spread`.
    The search also chooses the distance (`size`) and the `direction` of the user from the middle of
    the others. On the right side, the user returns to the middle or is absent.
    """

    def build(*, others: float, spread: float, size: float, direction: int) -> NeighborPair:
        words = in_words({"others": others, "spread": spread, "size": direction * size})
        rest = others + spread * np.linspace(-0.5, 0.5, crowd.n_users - 1)
        return crowd.moved(rest, others + direction * size, others, f"outlier({words})")

    ranges: dict[str, Range] = {
        "others": crowd.positions,
        "spread": Interval(0.0, crowd.high - crowd.low),
        "size": crowd.sizes,
        "direction": Choice((1, -1)),
    }
    return SearchSpace(build, ranges, name=f"outlier(n_users={crowd.n_users})")


@_of_users(
    0.0, 1.0, lambda crowd: {"most": min(5, crowd.n_users - 1)} if crowd.n_users > 2 else None
)
def clusters(crowd: Crowd, *, most: int = 5) -> SearchSpace:
    """Clusters of about equal size.

    The user leaves the first cluster for another cluster. The recipe targets medians, modes,
    cluster centres and histograms, which jump when a balance changes. The search chooses the
    `count` of clusters from 2 to `most`, the `separation` of the clusters, and the position of
    their `middle`. The search also chooses the cluster that the user `joins`. The user joins the
    next, the middle or the last cluster.
    """
    if _validate.integer(2, most=most) >= crowd.n_users:
        raise ArgumentError(f"most must be below n_users = {crowd.n_users}, got {most}")

    def build(*, count: int, separation: float, middle: float, joins: str) -> NeighborPair:
        centres = middle + separation * (np.arange(count) - (count - 1) / 2)
        joined = {"next": 1, "middle": count // 2, "last": count - 1}[joins]
        words = in_words(
            {"count": count, "separation": separation, "middle": middle, "joins": joins}
        )
        rest = centres[np.arange(crowd.n_users - 1) % count]
        return crowd.moved(rest, centres[joined], centres[0], f"clusters({words})")

    ranges: dict[str, Range] = {
        "count": counted(most - 1, 2),
        "separation": crowd.sizes,
        "middle": crowd.positions,
        "joins": Choice(("next", "middle", "last")),
    }
    return SearchSpace(build, ranges, name=f"clusters(n_users={crowd.n_users})")


@_of_users(0.0, 1.0, lambda crowd: {} if crowd.m > 1 else None)
def some_items(crowd: Crowd) -> SearchSpace:
    """One user who moves some items from `high` to `low`, in all coordinates of these items.

    The recipe targets limits on items that should be limits on users. The recipe also targets
    mistakes with users whose items differ. The search chooses the `count` of items, the position of
    all `others`, and the position of the user's `own` other items.
    """

    def build(*, count: int, others: float, own: float) -> NeighborPair:
        top, bottom = (crowd.some(v, own, slice(0, count)) for v in (crowd.high, crowd.low))
        words = in_words({"count": count, "others": others, "own": own})
        return crowd.pair(crowd.rows(others), top, bottom, f"some_items({words})")

    ranges = {"count": counted(crowd.m, 1), "others": crowd.positions, "own": crowd.positions}
    return SearchSpace(build, ranges, name="some_items")


@_of_users(0.0, 1.0, lambda crowd: {})
def which_user(crowd: Crowd) -> SearchSpace:
    """One user, at any place in the order of the data, who moves from `high` to `low`.

    The recipe targets algorithms that process users in order, such as streams, early stopping,
    trees of partial sums, and loops that forget the first or last user. The search chooses the
    index of the `user` and the value of all `others`. Under add/remove, the user is last, so that
    no other user changes places.
    """

    def build(*, user: int, others: float) -> NeighborPair:
        words = in_words({"user": user, "others": others})
        return crowd.moved(others, crowd.high, crowd.low, f"which_user({words})", user)

    ranges: dict[str, Range] = {"user": crowd.places(crowd.n_users), "others": crowd.positions}
    return SearchSpace(build, ranges, name=f"which_user(n_users={crowd.n_users})")


@_of_users(
    0.0, 1.0, lambda crowd: {"batch_size": crowd.n_users // 4} if crowd.n_users > 3 else None
)
def which_batch(crowd: Crowd, *, batch_size: int) -> SearchSpace:
    """One user, in any batch of an algorithm, who moves from `high` to `low`.

    The recipe targets clipping, normalising or stopping by batch. The recipe also targets a last
    batch that is too small for its noise. The search chooses the `batch`, and the user's `place` in
    the batch (first or last). The search also chooses the value of the other users in the batch
    (`mates`), and the value of all `others`. Under add/remove, the user is the last user of the
    last batch, so that no other user changes places. `batch_size` must be below `n_users`.
    """
    n_users = crowd.n_users
    if _validate.integer(1, batch_size=batch_size) >= n_users:
        raise ArgumentError(f"batch_size must be below n_users = {n_users}, got {batch_size}")

    def build(*, batch: int, place: str, mates: float, others: float) -> NeighborPair:
        start, stop = batch * batch_size, min((batch + 1) * batch_size, n_users)
        everybody = np.full(n_users, others)
        everybody[start:stop] = mates
        user = start if place == "first" else stop - 1
        words = in_words({"batch": batch, "place": place, "mates": mates, "others": others})
        rest = np.delete(everybody, user)
        return crowd.moved(rest, crowd.high, crowd.low, f"which_batch({words})", user)

    ranges: dict[str, Range] = {
        "batch": crowd.places(math.ceil(n_users / batch_size)),
        "place": Choice(("first", "last") if crowd.is_replaced else ("last",)),
        "mates": crowd.positions,
        "others": crowd.positions,
    }
    return SearchSpace(build, ranges, name=f"which_batch(n_users={n_users}, size={batch_size})")


def searched(crowd: Crowd) -> list[SearchSpace]:
    """Return the spaces of the table that a portfolio searches."""
    return [
        row.build(crowd, **own)
        for row in RECIPES.values()
        if row.build is not None and (own := row.searched(crowd)) is not None
    ]


# --- query values -----------------------------------------------------------------------------

# Ding, Wang, Wang, Zhang and Kifer (2018), Table 1. Each row is the move of the queries from right
# to left.
_PATTERNS: dict[str, Callable[[int], Array]] = {
    "one_above": lambda k: np.eye(1, k)[0],
    "one_below": lambda k: -np.eye(1, k)[0],
    "one_above_rest_below": lambda k: 2 * np.eye(1, k)[0] - 1,
    "one_below_rest_above": lambda k: 1 - 2 * np.eye(1, k)[0],
    "half_half": lambda k: np.where(np.arange(k) < k // 2, -1.0, 1.0),
    "all_above": lambda k: np.ones(k),
    "all_below": lambda k: -np.ones(k),
    "crossing": lambda k: np.where(np.arange(k) < k // 2, 1.0, -1.0),
}


@listed
def value_pattern(
    pattern: str,
    dim: int,
    *,
    relation: Relation = Relation.WITHIN_SENSITIVITY,
    center: float = 0.0,
) -> NeighborPair:
    """Two vectors of `dim` query values at the declared distance, in a known pattern.

    The recipe targets mechanisms that take query values. Each pattern makes answers add up in a
    different way. Moving all queries together is the worst case of an unlimited budget. Crossing is
    the worst case of one threshold for all queries.

    Parameters
    ----------
    pattern : {"one_above", "one_below", "one_above_rest_below", "one_below_rest_above", \
"half_half", "all_above", "all_below", "crossing"}
        Position of the left values relative to the right values. The pattern "crossing" moves both
        sides. The first half of the values is high on the left, and the second half is high on the
        right.
    dim : int
        Number of queries, at least 1.
    relation : Relation, optional
        A :func:`~dpaudit.within_sensitivity` relation; the distance between the vectors equals its
        radius.
    center : float, optional
        Value of the queries that are equal on both sides.

    Examples
    --------
    >>> pair = value_pattern("crossing", 4)
    >>> pair.left.tolist(), pair.right.tolist()
    ([1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0])
    """
    _validate.choice(tuple(_PATTERNS), pattern=pattern)
    _validate.integer(1, MAX_CELLS, dim=dim)
    center = _validate.finite(center=center)
    if checked_relation(relation).is_of_users:
        raise ArgumentError(f"relation must be within_sensitivity, got {relation}")
    step = _PATTERNS[pattern](dim)
    step = step * (float(relation.radius or 0.0) / np.linalg.norm(step, NORMS[str(relation.norm)]))
    right = np.full(dim, center)
    left = right + step
    if pattern == "crossing":
        left, right = right + np.maximum(step, 0), right + np.maximum(-step, 0)
    if np.array_equal(left, right):
        raise ArgumentError(
            f"center must be small enough that the radius of {relation} changes it, got {center!r}"
        )
    words = f"value_pattern({pattern}, dim={dim})"
    return NeighborPair(left, right, relation=relation, recipe=words)


@listed
def value_patterns(
    dim: int, *, relation: Relation = Relation.WITHIN_SENSITIVITY, center: float = 0.0
) -> PairFamily:
    """Return the family of all :func:`value_pattern` pairs of `dim` query values.

    Examples
    --------
    >>> len(value_patterns(3))
    8
    """
    pairs = [value_pattern(name, dim, relation=relation, center=center) for name in _PATTERNS]
    return PairFamily(f"value_patterns(dim={dim})", tuple(pairs))


@listed
def query_values(
    dim: int,
    *,
    low: float = -10.0,
    high: float = 10.0,
    relation: Relation = Relation.WITHIN_SENSITIVITY,
) -> SearchSpace:
    """Vectors of `dim` query values at the declared distance, in all known patterns.

    The recipe targets mechanisms that treat query values differently by size, for example by
    thresholds, clipping or relative errors. The search chooses the `pattern` of
    :func:`~dpaudit.neighbors.value_pattern` and the `center` of the values that are equal on both
    sides, in [`low`, `high`].
    """
    value_pattern("one_above", dim, relation=relation)  # this call checks the arguments
    build: Any = functools.partial(value_pattern, dim=dim, relation=relation)
    ranges: dict[str, Range] = {"pattern": Choice(tuple(_PATTERNS)), "center": Interval(low, high)}
    return SearchSpace(build, ranges, name=f"query_values(dim={dim})")


# --- words ------------------------------------------------------------------------------------


def pairs_from_words(text: str, *, rng: np.random.Generator) -> Any:
    """Return the pair, family, space or portfolio that a text of the command line describes.

    Parameters
    ----------
    text : str
        Name of a recipe, optionally followed by ``:name=value,...``. Values are numbers, words, or
        ``relation=add_remove_user``. A recipe of one pair also accepts ranges, and the audit
        searches these ranges. ``lo..hi`` is a range of whole numbers if both ends are written as
        whole numbers. ``log:lo..hi`` is a range with evenly spaced logarithms. ``a|b|c`` is a
        choice between values.
    rng : numpy.random.Generator
        Generator for recipes that draw random numbers.

    Returns
    -------
    NeighborPair, PairFamily, SearchSpace or Portfolio

    Raises
    ------
    ValueError, TypeError
        For an unknown recipe or argument, or a bad range. The message lists the existing names.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> pairs_from_words("far_user:n_users=5,high=3", rng=rng)
    NeighborPair(far_user(low=0, high=3): replace_user, shape 5x1, user 4 differs)
    >>> pairs_from_words("far_user:n_users=20..40,high=log:0.1..10", rng=rng).parameters
    {'n_users': Integer(low=20, high=40), 'high': Interval(low=0.1, high=10.0, log=True)}
    """
    if not isinstance(text, str):
        raise TypeError(f"pair must be a text such as far_user:n_users=20, got {text!r}")
    name, _, rest = text.partition(":")
    if name not in RECIPES:
        close = difflib.get_close_matches(name, RECIPES, n=1)
        hint = f". Did you mean {close[0]}?" if close else ""
        raise ArgumentError(
            f"pair must begin with a recipe ({', '.join(RECIPES)}), got {name!r}{hint}"
        )
    recipe, known = RECIPES[name].function, RECIPES[name].parameters
    given: dict[str, Any] = {}
    for item in filter(None, rest.split(",")):
        key, _, words = item.partition("=")
        if not words or key not in known:
            raise ArgumentError(
                f"the recipe {name} takes name=value, where name is one of "
                f"{', '.join(known)}, got {item!r}"
            )
        if key in given:
            raise ArgumentError(f"{key} must be given only once, got a second value {item!r}")
        given[key] = _value(key, words)
    missing = [key for key, p in known.items() if p.default is p.empty and key not in given]
    if missing:
        raise ArgumentError(
            f"the recipe {name} also needs {', '.join(missing)}. Pass {name}:{missing[0]}="
        )
    signature = inspect.signature(recipe)
    ranges = {key: value for key, value in given.items() if isinstance(value, Range)}
    if ranges and signature.return_annotation != "NeighborPair":
        raise ArgumentError(
            f"{next(iter(ranges))} must be one value for {name}, which gives several pairs, got a "
            "range. Search value_pattern with pattern=a|b|c, or another recipe of one pair"
        )
    fixed = {key: value for key, value in given.items() if key not in ranges}
    if ranges:
        return SearchSpace(functools.partial(recipe, **fixed), ranges, name=text)
    return recipe(**fixed, **({"rng": rng} if "rng" in signature.parameters else {}))


def _value(key: str, words: str) -> Any:
    """Return a value of a recipe: a number, a relation, a word, or a range or choice of these."""
    if "|" in words:
        if not all(words.split("|")) or ".." in words or words.startswith("log:"):
            raise ArgumentError(
                f"{key} must be words or numbers separated by |, such as a|b, got {words!r}"
            )
        return Choice(tuple(_value(key, word) for word in words.split("|")))
    if ".." in words:
        low, _, high = words.removeprefix("log:").partition("..")
        ends = _value("", low), _value("", high)
        if not all(isinstance(end, int | float) for end in ends):
            raise ArgumentError(f"{key} must be a range lo..hi of numbers, got {words!r}")
        try:
            if words.startswith("log:") or not all(isinstance(end, int) for end in ends):
                return Interval(float(ends[0]), float(ends[1]), words.startswith("log:"))
            return Integer(*ends)
        except ArgumentError as error:
            raise ArgumentError(f"{key}={words}: {error}") from None
    if key == "relation":
        return Relation(_validate.choice(("replace_user", "add_remove_user"), relation=words))
    if words in ("True", "False"):
        return words == "True"
    for kind in (int, float):
        try:
            return kind(words)
        except ValueError:
            continue
    return words
