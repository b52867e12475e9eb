"""Recipes for adversarial pairs of user datasets; each documents the weakness that it aims at."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import _validate
from dpaudit.claims import Relation, checked_relation
from dpaudit.errors import ArgumentError
from dpaudit.neighbors.pairs import NeighborPair

Array = NDArray[Any]

MAX_CELLS = 10**9
"""Numbers in a dataset of a recipe, at most."""


def _dataset_pair(
    others: Array, left: ArrayLike, right: ArrayLike, relation: Relation, recipe: str
) -> NeighborPair:
    """Put the differing user last; under add/remove the right side lacks that user."""
    if checked_relation(relation).name == "within_sensitivity":
        raise ArgumentError(
            f"the recipe {recipe} builds datasets, not query values; got {relation}"
        )
    shape = others.shape[1:]

    def with_user(value: ArrayLike) -> Array:
        row = np.broadcast_to(np.asarray(value, dtype=others.dtype), shape)
        return np.concatenate([others, row[None]])

    right_data = with_user(right) if relation == Relation.REPLACE_USER else others
    return NeighborPair(with_user(left), right_data, others.shape[0], relation, recipe)


def checked_shape(n_users: int, m: int, d: int | None) -> tuple[int, ...]:
    """Return the shape of the data of all users but one; refuse sizes out of range."""
    _validate.integer(2, n_users=n_users)
    _validate.integer(1, m=m)
    shape = (n_users - 1, m) if d is None else (n_users - 1, m, _validate.integer(1, d=d))
    if math.prod(shape) > MAX_CELLS:
        raise ArgumentError(
            f"n_users, m and d must give at most {MAX_CELLS:,} numbers, got n_users={n_users}, "
            f"m={m}" + (f", d={d}" if d is not None else "")
        )
    return shape


def _first_axis(value: float, d: int | None) -> Array:
    """`value` as a scalar item, or as a d-dimensional item along the first axis."""
    if d is None:
        return np.array(value)
    item = np.zeros(d)
    item[0] = value
    return item


def far_user(
    *,
    n_users: int,
    m: int = 1,
    d: int | None = None,
    distance: float = 100.0,
    relation: Relation = Relation.REPLACE_USER,
) -> NeighborPair:
    """One user far away from all others, who sit at the origin.

    Aims at influence that is not bounded: missing or wrong clipping, means in place of robust
    means, noise scaled to the data that the author had in mind.

    Parameters
    ----------
    n_users : int
        At least 2.
    m : int, optional
        Items of each user, default 1.
    d : int, optional
        Dimension of an item; scalar items ``[n_users, m]`` when omitted.
    distance : float, optional
        How far the user stands, finite and > 0.
    relation : Relation, optional
        Replace (the user returns to the origin) or add/remove (the user leaves).
    """
    distance = _validate.positive(distance=distance)
    others = np.zeros(checked_shape(n_users, m, d))
    left, right = _first_axis(distance, d), _first_axis(0.0, d)
    return _dataset_pair(others, left, right, relation, f"far_user(distance={distance:g})")


def clip_boundary_user(
    *,
    n_users: int,
    m: int = 1,
    d: int | None = None,
    radius: float = 1.0,
    relation: Relation = Relation.REPLACE_USER,
) -> NeighborPair:
    """User at the clipping boundary who moves to the opposite end of the ball.

    Aims at sensitivities that forget the factor 2 of replacement, or count items for users.
    Parameters as in :func:`far_user`; `radius` is the clipping radius, > 0.
    """
    radius = _validate.positive(radius=radius)
    others = np.zeros(checked_shape(n_users, m, d))
    left, right = _first_axis(radius, d), _first_axis(-radius, d)
    return _dataset_pair(others, left, right, relation, f"clip_boundary_user(radius={radius:g})")


def all_others_equal(
    *,
    n_users: int,
    m: int = 1,
    d: int | None = None,
    value: float = 1.0,
    spread: float = 1.0,
    relation: Relation = Relation.REPLACE_USER,
) -> NeighborPair:
    """All others share one value; the user joins them on the right and stands apart on the left.

    Aims at noise whose scale is estimated from the data (standard deviation, quartiles, MAD):
    without the user the estimate is 0. Parameters as in :func:`far_user`; `spread` > 0 is how far
    the user stands apart from `value`.
    """
    value, spread = _validate.finite(value=value), _validate.positive(spread=spread)
    others = np.zeros(checked_shape(n_users, m, d)) + _first_axis(value, d)
    left, right = _first_axis(value + spread, d), _first_axis(value, d)
    recipe = f"all_others_equal(value={value:g}, spread={spread:g})"
    return _dataset_pair(others, left, right, relation, recipe)


def two_clusters(
    *,
    n_users: int,
    m: int = 1,
    d: int | None = None,
    distance: float = 2.0,
    relation: Relation = Relation.REPLACE_USER,
) -> NeighborPair:
    """Two clusters of one size; the user moves from one to the other.

    Aims at medians, modes, cluster centres and every statistic that jumps when the balance tips.
    Parameters as in :func:`far_user`; the clusters sit at 0 and at `distance` > 0, and an odd
    `n_users` leaves them balanced without the user.
    """
    distance = _validate.positive(distance=distance)
    others = np.zeros(checked_shape(n_users, m, d))
    others[others.shape[0] // 2 :] = _first_axis(distance, d)
    left, right = _first_axis(distance, d), _first_axis(0.0, d)
    return _dataset_pair(others, left, right, relation, f"two_clusters(distance={distance:g})")


def majority_flip(
    *, n_users: int, m: int = 1, relation: Relation = Relation.REPLACE_USER
) -> NeighborPair:
    """Votes 0 and 1 in balance but for one user, who decides the majority.

    Aims at votes, modes and argmax steps released without noise, or with the noise of an average.
    `n_users` must be odd, >= 3; items are integers.
    """
    _validate.integer(3, n_users=n_users)
    if n_users % 2 == 0:
        raise ArgumentError(f"n_users must be odd, so that one user decides, got {n_users}")
    others = np.zeros(checked_shape(n_users, m, None), dtype=np.int64)
    others[others.shape[0] // 2 :] = 1
    return _dataset_pair(others, 1, 0, relation, f"majority_flip(n_users={n_users})")


def constant_against_random(
    *,
    n_users: int,
    m: int,
    d: int | None = None,
    scale: float = 1.0,
    value: float = 0.0,
    relation: Relation = Relation.REPLACE_USER,
    rng: np.random.Generator,
) -> NeighborPair:
    """Random users, and one whose items are constant on the left and random on the right.

    Aims at per-user statistics that assume items of one user to be independent: concentration
    scores, within-user variances, outlier tests. Parameters as in :func:`far_user`; items are
    N(0, `scale`^2), and the constant user holds `value` m times.
    """
    scale, value = _validate.positive(scale=scale), _validate.finite(value=value)
    shape = checked_shape(n_users, m, d)
    _validate.generator(rng=rng)
    draws = rng.normal(scale=scale, size=(shape[0] + 1, *shape[1:]))
    recipe = f"constant_against_random(scale={scale:g}, value={value:g})"
    return _dataset_pair(draws[:-1], _first_axis(value, d), draws[-1], relation, recipe)


def threshold_decider(
    *, n_users: int, m: int = 1, threshold: int, relation: Relation = Relation.REPLACE_USER
) -> NeighborPair:
    """Exactly `threshold` users say 1 with this user and one fewer without.

    Aims at tests of a count against a threshold that forget their noise: propose-test-release,
    stability-based histograms, "enough users" checks. `threshold` from 1 to `n_users`; items are
    integers 0 and 1.
    """
    threshold = _validate.integer(1, threshold=threshold)
    others = np.zeros(checked_shape(n_users, m, None), dtype=np.int64)
    if threshold > n_users:
        raise ArgumentError(f"threshold must be at most n_users = {n_users}, got {threshold}")
    others[: threshold - 1] = 1
    return _dataset_pair(others, 1, 0, relation, f"threshold_decider(threshold={threshold})")
