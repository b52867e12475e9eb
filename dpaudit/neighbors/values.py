"""Recipes for pairs of query values within a declared sensitivity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.claims import Relation, checked_relation
from dpaudit.errors import ArgumentError
from dpaudit.neighbors.datasets import MAX_CELLS
from dpaudit.neighbors.pairs import NeighborPair, PairFamily

Array = NDArray[Any]

# Ding, Wang, Wang, Zhang and Kifer (2018), Table 1: how each query moves from right to left.
PATTERNS: dict[str, Callable[[int], Array]] = {
    "one_above": lambda k: np.eye(1, k)[0],
    "one_below": lambda k: -np.eye(1, k)[0],
    "one_above_rest_below": lambda k: 2 * np.eye(1, k)[0] - 1,
    "one_below_rest_above": lambda k: 1 - 2 * np.eye(1, k)[0],
    "half_half": lambda k: np.where(np.arange(k) < k // 2, -1.0, 1.0),
    "all_above": lambda k: np.ones(k),
    "all_below": lambda k: -np.ones(k),
    "crossing": lambda k: np.where(np.arange(k) < k // 2, 1.0, -1.0),
}


def value_pattern(
    pattern: str,
    k: int,
    *,
    relation: Relation = Relation.WITHIN_SENSITIVITY,
    center: float = 0.0,
) -> NeighborPair:
    """Two vectors of `k` query values at the declared distance, in a pattern of the literature.

    Aims at mechanisms that take query values: each pattern favours another way in which answers
    can add up (all queries moving together is the worst case of an unlimited budget, crossing
    that of a threshold shared by all).

    Parameters
    ----------
    pattern : {"one_above", "one_below", "one_above_rest_below", "one_below_rest_above", \
"half_half", "all_above", "all_below", "crossing"}
        How the left values stand to the right ones. "crossing" moves both sides: the first half
        is high on the left, the second half high on the right.
    k : int
        Number of queries, at least 1.
    relation : Relation, optional
        A :func:`~dpaudit.relations.within_sensitivity` relation; its radius is used up.
    center : float, optional
        Value of the queries that do not move.

    Examples
    --------
    >>> pair = value_pattern("crossing", 4)
    >>> pair.left.tolist(), pair.right.tolist()
    ([1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0])
    """
    _validate.choice(tuple(PATTERNS), pattern=pattern)
    _validate.integer(1, MAX_CELLS, k=k)
    center = _validate.finite(center=center)
    if checked_relation(relation).name != "within_sensitivity":
        raise ArgumentError(f"a value pattern needs a within_sensitivity relation, got {relation}")
    step = PATTERNS[pattern](k)
    order = {"l1": 1, "l2": 2, "linf": np.inf}[str(relation.norm)]
    step = step * (float(relation.radius or 0.0) / np.linalg.norm(step, ord=order))
    right = np.full(k, float(center))
    left = right + step
    if pattern == "crossing":
        left, right = right + np.maximum(step, 0), right + np.maximum(-step, 0)
    if np.array_equal(left, right):
        raise ArgumentError(
            f"center must be a number that the radius of {relation} moves, got {center!r}"
        )
    return NeighborPair(left, right, None, relation, f"value_pattern({pattern}, k={k})")


def value_patterns(
    k: int, *, relation: Relation = Relation.WITHIN_SENSITIVITY, center: float = 0.0
) -> PairFamily:
    """Return the family of all :func:`value_pattern` pairs of `k` query values.

    Examples
    --------
    >>> len(value_patterns(3))
    8
    """
    pairs = [value_pattern(name, k, relation=relation, center=center) for name in PATTERNS]
    return PairFamily(f"value_patterns(k={k})", tuple(pairs))
