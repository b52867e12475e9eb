"""Pairs of streams: one row for each time, and neighbours that differ in a short window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.claims import Relation
from dpaudit.errors import ArgumentError
from dpaudit.neighbors.pairs import NeighborPair
from dpaudit.neighbors.portfolio import Portfolio
from dpaudit.neighbors.recipes import checked_ends, listed
from dpaudit.neighbors.spaces import Choice, Integer, Range, SearchSpace

Array = NDArray[Any]

_MOST_STEPS = 10**6


@listed
def streams(
    steps: int, *, window: int = 1, dim: int | None = None, low: float = 0.0, high: float = 1.0
) -> Portfolio:
    """Streams of `steps` rows that differ in one event, or in `window` consecutive events.

    The recipe targets mechanisms under continual observation. A tree may forget a level, noise may
    be drawn again or shared between times, and a budget may be spent once instead of once for each
    window. The windows begin at both ends, in the middle, and around powers of 2, where the blocks
    of a tree begin.

    Parameters
    ----------
    steps : int
        Number of rows, from 2 to 1,000,000.
    window : int, optional
        Number of consecutive rows that may differ, from 1 to `steps`. With 1, the relation is
        ``Relation.REPLACE_USER``; otherwise it is ``Relation.REPLACE_USER.of_window(window)``.
    dim : int, optional
        Number of values of a row. By default, a row is one number.
    low, high : float, optional
        Range of the values. If both are integers, the values are integers.

    Examples
    --------
    >>> streams(8, window=2)
    Portfolio(streams(steps=8, window=2): 36 pairs, 1 spaces)
    """
    _validate.integer(2, _MOST_STEPS, steps=steps)
    _validate.integer(1, window=window)
    if window > steps:
        raise ArgumentError(f"window must be an integer from 1 to steps = {steps}, got {window}")
    shape: tuple[int, ...] = () if dim is None else (_validate.integer(1, dim=dim),)
    ends = checked_ends(low, high)
    whole = isinstance(low, int) and isinstance(high, int)
    numbers = np.array([int(low), int(high)] if whole else ends)
    replaced = Relation.REPLACE_USER
    relation = replaced if window == 1 else replaced.of_window(window)

    def build(*, start: int, others: str, moves: str) -> NeighborPair:
        row = np.arange(steps)
        base = {"low": 0 * row, "high": 0 * row + 1, "alternating": row % 2}[others]
        left, right = base.copy(), base.copy()
        inside = slice(start, start + window)
        left[inside] = 1
        right[inside] = 0
        if moves == "the ends":  # the rows between the ends of the window stay
            left[start + 1 : start + window - 1] = base[start + 1 : start + window - 1]
            right[start + 1 : start + window - 1] = base[start + 1 : start + window - 1]
        elif moves == "in turn":
            left[inside], right[inside] = row[inside] % 2, 1 - row[inside] % 2
        sides = (
            np.broadcast_to(numbers[side].reshape(-1, *(1,) * len(shape)), (steps, *shape)).copy()
            for side in (left, right)
        )
        words = f"stream(row {start}, others {others}, {moves})"
        return NeighborPair(*sides, relation=relation, recipe=words)

    moves = ("all rows", "in turn", "the ends")[: 3 if window > 2 else 2 if window > 1 else 1]
    others = ("low", "high", "alternating")
    last = steps - window
    pairs: dict[tuple[bytes, bytes], NeighborPair] = {}
    for start in _starts(steps, last):
        for one in others:
            for move in moves:
                pair = build(start=start, others=one, moves=move)
                pairs.setdefault((pair.left.tobytes(), pair.right.tobytes()), pair)
    ranges: dict[str, Range] = {"others": Choice(others), "moves": Choice(moves)}
    ranges["start"] = Integer(0, last) if last else Choice((0,))
    space = SearchSpace(build, ranges, name="start of the window")
    return Portfolio(f"streams(steps={steps}, window={window})", tuple(pairs.values()), (space,))


def _starts(steps: int, last: int) -> Iterator[int]:
    """Yield starts of windows: the ends, the middle, and places around powers of 2."""
    found = [0, last, steps // 2, steps // 2 - 1]
    power = 1
    while power < steps:
        found += [power - 1, power]
        power *= 2
    return iter(dict.fromkeys(min(max(start, 0), last) for start in found))
