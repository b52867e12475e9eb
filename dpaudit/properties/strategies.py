"""hypothesis strategies for datasets, neighbours and vectors, which shrink towards simple cases.

Examples
--------
::

    @given(strategies.neighbor_pairs(n_users=4, d=2, bound=1.0))
    def test_sensitivity(pair):
        assert np.linalg.norm(mean(pair.left) - mean(pair.right)) <= 2 / 4
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.claims import Relation, checked_relation
from dpaudit.errors import ArgumentError
from dpaudit.neighbors import NeighborPair
from dpaudit.properties.generating import hnp, st

Floats = NDArray[np.float64]
Strategy = st.SearchStrategy
Sizes = int | tuple[int, int]
"""A number, or a pair of bounds."""


def _sizes(sizes: Sizes, name: str, least: int = 1) -> Strategy[int]:
    low, high = sizes if isinstance(sizes, tuple) else (sizes, sizes)
    low = _validate.integer(least, **{name: low})
    high = _validate.integer(low, **{name: high})
    return st.integers(low, high)


def _entries(bound: float, *, special: bool = False) -> Strategy[float]:
    """Return numbers with absolute value up to `bound`, with ties at the bounds and at 0."""
    bound = _validate.positive(bound=bound)
    numbers = st.sampled_from([0.0, bound, -bound]) | st.floats(-bound, bound)
    return numbers | st.sampled_from([math.nan, math.inf, -math.inf]) if special else numbers


@st.composite
def user_data(
    draw: Callable[[Strategy[Any]], Any],
    *,
    n_users: Sizes = (1, 6),
    m: Sizes = 1,
    d: Sizes | None = None,
    bound: float = 1.0,
    special: bool = False,
    missing: bool = False,
) -> Floats:
    """Datasets of users, with ties, outliers at the bounds and repeated users.

    Parameters
    ----------
    n_users, m, d : int or (int, int)
        Numbers of users, of items per user (default 1), and of coordinates per item. Each number
        may also be a pair of bounds. If `d` is not given, items are numbers.
    bound : float
        Largest absolute value of a coordinate.
    special : bool
        Whether NaN and infinities also occur.
    missing : bool
        Whether users have different numbers of items, from 0 to m. All coordinates of a missing
        item are NaN, and missing items come last.

    Returns
    -------
    strategy of ndarray, ``[n_users, m]``, or ``[n_users, m, d]`` if `d` is given
    """
    _validate.flag(special=special)
    _validate.flag(missing=missing)
    shape = [draw(_sizes(n_users, "n_users")), draw(_sizes(m, "m"))]
    if d is not None:
        shape.append(draw(_sizes(d, "d")))
    data = draw(hnp.arrays(np.float64, tuple(shape), elements=_entries(bound, special=special)))
    for user in data if missing else ():  # a user lacks no items, all items, or the last items
        lost = draw(st.sampled_from([0, len(user)]) | st.integers(0, len(user)))
        user[len(user) - lost :] = math.nan
    if shape[0] > 1 and draw(st.booleans()):  # a repeated user
        data[draw(st.integers(1, shape[0] - 1))] = data[0]
    return np.asarray(data)


@st.composite
def neighbor_pairs(
    draw: Callable[[Strategy[Any]], Any],
    *,
    n_users: Sizes = (1, 6),
    m: Sizes = 1,
    d: Sizes | None = None,
    bound: float = 1.0,
    special: bool = False,
    missing: bool = False,
    relation: Relation = Relation.REPLACE_USER,
) -> NeighborPair:
    """Pairs of datasets that differ in one user, who is replaced or is absent on one side.

    Parameters
    ----------
    n_users, m, d, bound, special, missing
        As for :func:`user_data`. For ADD_REMOVE_USER, `n_users` is the number of users of the
        larger dataset. This number is at least 2, because a dataset is never empty.
    relation : Relation
        REPLACE_USER or ADD_REMOVE_USER.
    """
    name = checked_relation(relation).name
    if name not in ("replace_user", "add_remove_user"):
        raise ArgumentError(f"relation must be REPLACE_USER or ADD_REMOVE_USER, got {relation}")
    if name == "add_remove_user":
        low, high = n_users if isinstance(n_users, tuple) else (n_users, n_users)
        n_users = (max(low, 2), max(high, 2))
    kind: dict[str, Any] = {"bound": bound, "special": special, "missing": missing}
    left = draw(user_data(n_users=n_users, m=m, d=d, **kind))
    user = draw(st.integers(0, len(left) - 1))
    if name == "add_remove_user":
        right = np.delete(left, user, axis=0)
        pair = (left, right) if draw(st.booleans()) else (right, left)
        return NeighborPair(*pair, relation=relation, recipe="drawn by hypothesis")
    right = left.copy()
    m, d = left.shape[1], None if d is None else left.shape[2]
    right[user] = draw(user_data(n_users=1, m=m, d=d, **kind))[0]
    return NeighborPair(left, right, relation=relation, recipe="drawn by hypothesis")


def vectors(*, d: Sizes = (1, 4), bound: float = 1.0) -> Strategy[Floats]:
    """Return vectors ``[d]`` with entries up to `bound` in size, often 0 or at the bounds."""
    entries = _entries(bound)
    return _sizes(d, "d").flatmap(lambda size: hnp.arrays(np.float64, size, elements=entries))
