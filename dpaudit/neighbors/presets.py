"""Ready-made search spaces; each documents the weakness that it aims at.

Datasets are ``[n_users, m]``, or ``[n_users, m, d]`` when `d` is given, and vary along the first
axis only. All values stay within [`low`, `high`], the domain of the data: give the domain that the
mechanism accepts, which may be wider than the one that its author had in mind.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.claims import Relation, checked_relation
from dpaudit.errors import ArgumentError
from dpaudit.neighbors.datasets import checked_shape
from dpaudit.neighbors.pairs import NeighborPair
from dpaudit.neighbors.spaces import (
    Choice,
    Integer,
    Interval,
    Magnitude,
    Range,
    SearchSpace,
    dataset_relation,
    in_words,
)
from dpaudit.neighbors.values import PATTERNS, value_pattern

Floats = NDArray[np.float64]

_SMALLEST = 1e-3
"""Smallest size or separation that is searched, as a part of the domain."""

_SMALLEST_WIDE = 1e-5
"""The same where the size of the data is not known."""


class _Users:
    """Builds pairs of datasets from one number for each user."""

    def __init__(
        self,
        n_users: int,
        m: int,
        d: int | None,
        low: float,
        high: float,
        relation: Relation,
        wide: bool,
    ) -> None:
        checked_shape(n_users, m, d)
        self.n_users, self.m, self.d = int(n_users), int(m), d
        domain = Interval(low, high)
        self.low, self.high = float(domain.low), float(domain.high)
        if not math.isfinite(self.high - self.low):
            raise ArgumentError(
                f"high - low must be a finite number, got low = {low!r} and high = {high!r}"
            )
        self.relation = dataset_relation(relation)
        self.wide = _validate.flag(wide=wide)

    @property
    def positions(self) -> Interval | Magnitude:
        if not self.wide:
            return Interval(self.low, self.high)
        most = max(abs(self.low), abs(self.high))
        return Magnitude(_SMALLEST_WIDE * most, most)

    @property
    def sizes(self) -> Interval:
        width = self.high - self.low
        smallest = _SMALLEST_WIDE if self.wide else _SMALLEST
        return Interval(smallest * width, width, log=True)

    @property
    def is_replaced(self) -> bool:
        return self.relation == Relation.REPLACE_USER

    def places(self, count: int) -> Range:
        """Return where the user may be: at one of `count` places, or at the last."""
        return Integer(0, count - 1) if self.is_replaced else Choice((count - 1,))

    def pair(
        self, others: Floats, left: float, right: float, words: str, user: int | None = None
    ) -> NeighborPair:
        """Put the user among the `others`, last by default, or take the last user away."""
        at = len(others) if user is None or not self.is_replaced else user
        data_left = self._items(np.insert(others, at, left))
        data_right = self._items(np.insert(others, at, right) if self.is_replaced else others)
        return NeighborPair(data_left, data_right, at, self.relation, words)

    def _items(self, values: Floats) -> Floats:
        values = np.clip(values, self.low, self.high)
        if self.d is None:
            return np.repeat(values[:, None], self.m, axis=1)
        data = np.full((len(values), self.m, self.d), min(max(0.0, self.low), self.high))
        data[:, :, 0] = values[:, None]
        return data


def outlier(
    n_users: int,
    *,
    m: int = 1,
    d: int | None = None,
    low: float = 0.0,
    high: float = 1.0,
    relation: Relation = Relation.REPLACE_USER,
    wide: bool = False,
) -> SearchSpace:
    """One user who stands apart from others who lie close together.

    Aims at influence that is bounded for data of the right size only, and at scales estimated
    from the data. Searches `others`, where the others lie; `spread`, how wide; `size`, how far the
    user stands from their middle; `direction`, to which side. On the right the user returns to the
    middle, or leaves.

    Parameters
    ----------
    n_users : int
        At least 2.
    m : int, optional
        Items of each user, default 1.
    d : int, optional
        Dimension of an item; scalar items when omitted.
    low, high : float, optional
        Domain of the data, default [0, 1].
    relation : Relation, optional
        Replace or add/remove a user.
    wide : bool, optional
        Whether positions and sizes are spread over many magnitudes, for data of which nobody said
        how large they are. Default False.
    """
    users = _Users(n_users, m, d, low, high, relation, wide)

    def build(*, others: float, spread: float, size: float, direction: int) -> NeighborPair:
        words = in_words({"others": others, "spread": spread, "size": direction * size})
        crowd = np.asarray(others + spread * np.linspace(-0.5, 0.5, users.n_users - 1), float)
        return users.pair(crowd, others + direction * size, others, f"outlier({words})")

    ranges: dict[str, Range] = {
        "others": users.positions,
        "spread": Interval(0.0, users.high - users.low),
        "size": users.sizes,
        "direction": Choice((1, -1)),
    }
    return SearchSpace(build, ranges, name=f"outlier(n_users={n_users})")


def clusters(
    n_users: int,
    *,
    most: int = 5,
    m: int = 1,
    d: int | None = None,
    low: float = 0.0,
    high: float = 1.0,
    relation: Relation = Relation.REPLACE_USER,
    wide: bool = False,
) -> SearchSpace:
    """Clusters of about one size; the user leaves the first one for another.

    Aims at medians, modes, cluster centres and histograms, which jump when a balance tips.
    Searches `count`, from 2 to `most` clusters; their `separation`; where their `middle` lies; and
    which one the user `joins`: the next, the middle or the last one. Other parameters as in
    :func:`outlier`.
    """
    users = _Users(n_users, m, d, low, high, relation, wide)
    most = _validate.integer(2, most=most)
    if most >= n_users:
        raise ArgumentError(f"most must be below n_users = {n_users}, got {most}")

    def build(*, count: int, separation: float, middle: float, joins: str) -> NeighborPair:
        centres = middle + separation * (np.arange(count) - (count - 1) / 2)
        joined = {"next": 1, "middle": count // 2, "last": count - 1}[joins]
        crowd = np.asarray(centres[np.arange(users.n_users - 1) % count], float)
        words = in_words(
            {"count": count, "separation": separation, "middle": middle, "joins": joins}
        )
        return users.pair(crowd, centres[joined], centres[0], f"clusters({words})")

    counts: Range = Integer(2, most) if most > 2 else Choice((2,))
    ranges: dict[str, Range] = {
        "count": counts,
        "separation": users.sizes,
        "middle": users.positions,
        "joins": Choice(("next", "middle", "last")),
    }
    return SearchSpace(build, ranges, name=f"clusters(n_users={n_users})")


def which_user(
    n_users: int,
    *,
    m: int = 1,
    d: int | None = None,
    low: float = 0.0,
    high: float = 1.0,
    relation: Relation = Relation.REPLACE_USER,
    wide: bool = False,
) -> SearchSpace:
    """One user, anywhere in the order of the data, who goes from `high` to `low`.

    Aims at algorithms that take users in order: streams, early stopping, trees of partial sums,
    the first or last user forgotten. Searches the index of the `user` and the value of all
    `others`. Under add/remove the user is last, so that nobody else changes places. Other
    parameters as in :func:`outlier`.
    """
    users = _Users(n_users, m, d, low, high, relation, wide)

    def build(*, user: int, others: float) -> NeighborPair:
        crowd = np.full(users.n_users - 1, others)
        words = in_words({"user": user, "others": others})
        return users.pair(crowd, users.high, users.low, f"which_user({words})", user)

    ranges: dict[str, Range] = {"user": users.places(n_users), "others": users.positions}
    return SearchSpace(build, ranges, name=f"which_user(n_users={n_users})")


def which_batch(
    n_users: int,
    batch_size: int,
    *,
    m: int = 1,
    d: int | None = None,
    low: float = 0.0,
    high: float = 1.0,
    relation: Relation = Relation.REPLACE_USER,
    wide: bool = False,
) -> SearchSpace:
    """One user, in any of the batches of an algorithm, who goes from `high` to `low`.

    Aims at clipping, normalising or stopping by batch, and at a last batch that is smaller than
    the noise allows for. Searches the `batch`, the user's `place` in it (first or last), the value
    of the `mates` in the batch and that of all `others`. Under add/remove the user is the last of
    the last batch, so that nobody else changes places. `batch_size` must be below `n_users`; other
    parameters as in :func:`outlier`.
    """
    users = _Users(n_users, m, d, low, high, relation, wide)
    batch_size = _validate.integer(1, batch_size=batch_size)
    if batch_size >= n_users:
        raise ArgumentError(f"batch_size must be below n_users = {n_users}, got {batch_size}")

    def build(*, batch: int, place: str, mates: float, others: float) -> NeighborPair:
        start = batch * batch_size
        stop = min(start + batch_size, users.n_users)
        everybody = np.full(users.n_users, others)
        everybody[start:stop] = mates
        user = start if place == "first" else stop - 1
        words = in_words({"batch": batch, "place": place, "mates": mates, "others": others})
        crowd = np.delete(everybody, user)
        return users.pair(crowd, users.high, users.low, f"which_batch({words})", user)

    ranges: dict[str, Range] = {
        "batch": users.places(math.ceil(n_users / batch_size)),
        "place": Choice(("first", "last") if users.is_replaced else ("last",)),
        "mates": users.positions,
        "others": users.positions,
    }
    return SearchSpace(build, ranges, name=f"which_batch(n_users={n_users}, size={batch_size})")


def edge(
    n_users: int,
    *,
    m: int = 1,
    d: int | None = None,
    low: float = 0.0,
    high: float = 1.0,
    relation: Relation = Relation.REPLACE_USER,
    wide: bool = False,
) -> SearchSpace:
    """All others at one place, which may be just beside a threshold that the user tips.

    Aims at branches that depend on the data without noise: propose-test-release, clipping at an
    estimated bound, "if the mean is large". Searches the `position` of the others and the user's
    `step`: "across" from `high` on the left to `low` on the right, "up" from `high` to the others,
    "down" from the others to `low`. Other parameters as in :func:`outlier`.
    """
    users = _Users(n_users, m, d, low, high, relation, wide)

    def build(*, position: float, step: str) -> NeighborPair:
        crowd = np.full(users.n_users - 1, position)
        words = in_words({"position": position, "step": step})
        left = position if step == "down" else users.high
        right = position if step == "up" else users.low
        return users.pair(crowd, left, right, f"edge({words})")

    ranges: dict[str, Range] = {
        "position": users.positions,
        "step": Choice(("across", "up", "down")),
    }
    return SearchSpace(build, ranges, name=f"edge(n_users={n_users})")


def query_values(
    k: int,
    *,
    low: float = -10.0,
    high: float = 10.0,
    relation: Relation = Relation.WITHIN_SENSITIVITY,
) -> SearchSpace:
    """Vectors of `k` query values at the declared distance, in all patterns of the literature.

    Aims at mechanisms that take query values and treat them differently by their size: thresholds,
    clipping, relative errors. Searches the `pattern` of
    :func:`~dpaudit.neighbors.value_pattern` and the `center` of the values that do not move, in
    [`low`, `high`].
    """
    if checked_relation(relation).name != "within_sensitivity":
        raise ArgumentError(f"relation must be within_sensitivity, got {relation}")
    build: Any = functools.partial(value_pattern, k=_validate.integer(1, k=k), relation=relation)
    ranges: dict[str, Range] = {
        "pattern": Choice(tuple(PATTERNS)),
        "center": Interval(low, high),
    }
    return SearchSpace(build, ranges, name=f"query_values(k={k})")
