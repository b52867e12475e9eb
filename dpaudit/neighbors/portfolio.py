"""The pairs and spaces of pairs that an audit looks at when nobody names a pair."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import _validate
from dpaudit.claims import Relation, checked_relation
from dpaudit.data import as_array
from dpaudit.errors import ArgumentError
from dpaudit.neighbors import presets
from dpaudit.neighbors.around import around, holders, some_items, thinned
from dpaudit.neighbors.crowds import Crowd, Levels, crowds
from dpaudit.neighbors.members import BOTH, Portfolio, in_turn
from dpaudit.neighbors.pairs import NeighborPair
from dpaudit.neighbors.spaces import Interval, Magnitude, Range, SearchSpace
from dpaudit.neighbors.values import value_patterns

Array = NDArray[Any]

FAR, UNIT = 100.0, 1.0
"""Sizes of data in a domain that nobody declared: clipping maps the larger to its boundary."""

FARTHEST = 1e6
"""Where one user of such data goes."""

_SMALLEST = 1e-5
_MOST_CELLS = 10**6
_WHOLE = 2**53  # whole numbers that a float holds
_KINDS = 32
_SIZES = (20, 8)
_FEW = (1, 2, 3, 4)  # users of small datasets; one who leaves leaves none to three
_SCALE_DOUBLES = slice(1, 2)  # where the number of users is halved


def portfolio(
    data_like: ArrayLike | None = None,
    *,
    n_users: int | None = None,
    m: int | None = None,
    dim: int | None = None,
    low: float | None = None,
    high: float | None = None,
    relation: Relation | None = None,
    missing: bool | None = None,
) -> Portfolio:
    """Return pairs and spaces of pairs that realistic mistakes fall for.

    One user far out, at the boundary, in the majority or against it; all items of a user or one
    item; everybody equal, spread out or in clusters; the user first, last or in the middle; rare
    values, duplicates, counts at a threshold, and users without data.

    Parameters
    ----------
    data_like : array_like, shape [n_users, m] or [n_users, m, dim], optional
        A dataset such as the mechanism is made for. Shape, dtype and range are taken from it, and
        pairs around it are searched too: each of its users replaced, or removed. It may hold
        numbers, booleans, strings or records. An array [n_users] means m = 1.
    n_users, m : int, optional
        At least 2 and 1. Default: 20 users of 8 items, and besides datasets of 0 to 4 users, where
        a noise scale that depends on the number of users shows.
    dim : int, optional
        Dimension of an item; scalar items when omitted. For query values how many there are.
    low, high : float, optional
        The domain of the data: all values stay within it. If both are whole numbers (``int``), so
        are the data. Without them, nor data, values from 0.001 to 1,000,000 of both signs are
        tried.
    relation : Relation, optional
        Replace or add/remove a user; for ``within_sensitivity`` the portfolio is made of the
        patterns of :func:`value_pattern`. Default: the relation of the audited claim. Where the
        claim names none, pairs of both kinds are searched.
    missing : bool, optional
        Whether items may be NaN. Default: whether they are in `data_like`.

    Returns
    -------
    Portfolio

    Raises
    ------
    ValueError, TypeError
        For an argument out of range, or data that are no rectangular array.

    Examples
    --------
    >>> portfolio(n_users=10, m=4, low=0.0, high=1.0, relation=Relation.REPLACE_USER)
    Portfolio(portfolio(n_users=10, m=4, low=0, high=1): 17 pairs, 7 spaces)
    """
    given: dict[str, Any] = {
        "n_users": n_users,
        "m": m,
        "dim": dim,
        "low": low,
        "high": high,
        "missing": missing,
    }
    again = partial(_variant, data_like, {**given, "relation": relation})
    made = [
        _of_relation(data_like, one, **given)
        for one in (BOTH if relation is None else (checked_relation(relation),))
    ]
    first = made[0]
    if relation is None:
        first = replace(first, name=f"{first.name} and removals")
    knows_items = m is not None or data_like is not None
    return replace(
        first,
        pairs=tuple(in_turn(one.pairs for one in made)),
        ends=tuple(end for one in made for end in one.ends),
        small=tuple(few for one in made for few in one.small),
        variant=again,
        items=None if knows_items or not first.pairs[0].relation.is_of_users else _SIZES[1],
    )


def _variant(
    data_like: Any,
    given: dict[str, Any],
    *,
    relation: Relation | None = None,
    items: int | None = None,
) -> Portfolio:
    """Return a portfolio with another relation, or another number of items of a user."""
    changed = {"relation": relation, "m": items}
    return portfolio(data_like, **given | {k: v for k, v in changed.items() if v is not None})


def _of_relation(
    data_like: ArrayLike | None,
    relation: Relation,
    *,
    n_users: int | None,
    m: int | None,
    dim: int | None,
    low: float | None,
    high: float | None,
    missing: bool | None,
) -> Portfolio:
    """Return the portfolio of one relation; parameters are those of :func:`portfolio`."""
    if missing is not None and not isinstance(missing, bool):
        raise TypeError(f"missing must be True, False or None, got {_validate.shown(missing)}")
    domain = _domain(low, high)
    data = None if data_like is None else as_array("data_like", data_like)
    if relation.name == "within_sensitivity":
        return _query_values(data, dim, domain, relation)
    knows_size = n_users is not None or data is not None
    if data is None:
        n_users, m = (d if v is None else v for v, d in zip((n_users, m), _SIZES, strict=True))
        _validate.integer(2, n_users=n_users)
        item_shape: tuple[int, ...] = (_validate.integer(1, m=m),)
        if dim is not None:
            item_shape += (_validate.integer(1, dim=dim),)
        whole = domain is not None and isinstance(domain[0], int)
        dtype = np.dtype(np.int64 if whole else np.float64)
        words: dict[str, Any] = {"n_users": n_users, "m": m, "dim": dim}
    else:
        _check_data(data, n_users, m, dim)
        n_users, item_shape, dtype = data.shape[0], data.shape[1:], data.dtype
        words = {"data_like": "x".join(map(str, data.shape))}
    if math.prod((n_users, *item_shape)) > _MOST_CELLS:
        raise ArgumentError(
            f"a dataset of a portfolio may hold {_MOST_CELLS:,} values, got n_users={n_users} "
            f"with items of shape {item_shape}; some of the users will do"
        )
    empty = _missing(missing, data, dtype)
    crowd = Crowd(n_users, item_shape, dtype, relation)
    if domain is not None:
        _check_domain(domain, data, dtype)
    scales, kinds, positions = _levels(crowd, data, domain)
    pairs = crowds(crowd, scales, kinds, missing=empty)
    ends = _farthest(crowd) if domain is None and data is None else ()
    small = () if knows_size else _few_users(crowd, scales[0])
    spaces = _spaces(crowd, scales, kinds, positions)
    if data is not None:
        spaces = around(crowd, data, scales[0], positions, missing=empty) + spaces
    words |= {"low": domain and domain[0], "high": domain and domain[1]}
    words |= {
        "missing": missing,
        "relation": None if relation == Relation.REPLACE_USER else relation,
    }
    shown = ", ".join(
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in words.items()
        if value is not None
    )
    front = len(pairs) // 2
    pairs = pairs[:front] + small + pairs[front:] + ends
    if relation != Relation.REPLACE_USER:
        ends += small[_SCALE_DOUBLES]
    return Portfolio(f"portfolio({shown})", pairs, spaces, ends, small)


# --- arguments --------------------------------------------------------------------------------


def _domain(low: Any, high: Any) -> tuple[Any, Any] | None:
    if low is None and high is None:
        return None
    if low is None or high is None:
        raise ArgumentError(f"give low and high or neither, got low={low!r} and high={high!r}")
    ends = _validate.finite(low=low), _validate.finite(high=high)
    if not ends[0] < ends[1]:
        raise ArgumentError(f"low must be below high = {high!r}, got {low!r}")
    if not math.isfinite(ends[1] - ends[0]):
        raise ArgumentError(
            f"high - low must be a finite number, got low = {low!r} and high = {high!r}"
        )
    whole = all(isinstance(end, int | np.integer) for end in (low, high))
    return (int(low), int(high)) if whole else ends


def _check_data(data: Array, n_users: int | None, m: int | None, dim: int | None) -> None:
    if data.ndim == 0 or data.shape[0] < 2 or data.size == 0:
        raise ArgumentError(
            "data_like must hold at least 2 users [n_users, m, ...] with at least one item each, "
            f"got shape {data.shape}"
        )
    if data.dtype.kind not in "biufSUV" or (data.dtype.kind == "V" and not data.dtype.names):
        raise ArgumentError(
            f"data_like must hold numbers, booleans, strings or records, got {data.dtype}"
        )
    if data.dtype.kind == "f" and not np.isfinite(data).any():
        raise ArgumentError("data_like must hold at least one finite number, got none")
    if data.dtype.kind == "f" and np.isinf(data).any():
        raise ArgumentError("data_like must hold finite numbers, and NaN for missing ones, got inf")
    for axis, (name, value) in enumerate({"n_users": n_users, "m": m, "dim": dim}.items()):
        shape = data.shape[axis] if axis < data.ndim else None
        if value not in (None, shape):
            raise ArgumentError(
                f"{name} is taken from data_like, of shape {data.shape}; got {name}={value!r}"
            )


def _check_domain(domain: tuple[Any, Any], data: Array | None, dtype: np.dtype[Any]) -> None:
    """Refuse a domain that the data leave, or that their dtype cannot hold."""
    low, high = domain
    if dtype.kind not in "iuf":
        raise ArgumentError(f"low and high need data that are numbers, got {dtype}")
    if dtype.kind in "iu":
        least, most = max(np.iinfo(dtype).min, -_WHOLE), min(np.iinfo(dtype).max, _WHOLE)
        if not (isinstance(low, int) and least <= low and high <= most):
            raise ArgumentError(
                f"low and high must be whole numbers from {least} to {most} for data of {dtype}, "
                f"got {low!r} and {high!r}"
            )
    if data is not None and bool(((data < low) | (data > high)).any()):
        raise ArgumentError(
            f"data_like must lie within low = {low!r} and high = {high!r}, got values from "
            f"{np.nanmin(data)!r} to {np.nanmax(data)!r}"
        )


def _missing(missing: bool | None, data: Array | None, dtype: np.dtype[Any]) -> bool:
    if missing and dtype.kind != "f":
        floats = "; low=0.0 and high=1.0 are of floats, 0 and 1 of whole numbers"
        raise ArgumentError(
            f"missing items are NaN, which data of {dtype} do not have"
            + floats * (data is None and dtype.kind in "iu")
        )
    if missing is None:
        return data is not None and dtype.kind == "f" and bool(np.isnan(data).any())
    return missing


# --- levels -----------------------------------------------------------------------------------


def _levels(
    crowd: Crowd, data: Array | None, domain: tuple[Any, Any] | None
) -> tuple[list[Levels], Array, Interval | Magnitude | None]:
    """Return levels for each size of the data, values of categories, and where users may be."""
    seen = None
    if data is not None:
        seen = np.unique(data[np.isfinite(data)] if data.dtype.kind == "f" else data)
        # Whole numbers so large are names of something, and no float could hold them.
        names = crowd.dtype.kind in "iu" and max(-int(seen[0]), int(seen[-1])) > _WHOLE
        if names or crowd.dtype.kind not in "iuf":
            return [_of_values(seen, data)], thinned(seen, _KINDS), None
        if domain is None and len(seen) > 1:
            domain = seen[0].item(), seen[-1].item()
    if domain is None:  # nothing is known, or the data hold one value only, which tells no range
        signed = crowd.dtype.kind != "u"
        scales = [_numbers(crowd, -size if signed else 0.0, size) for size in (FAR, UNIT)]
        kinds = crowd.values(*range(min(max(crowd.m, 4), int(FAR)) + 1))
        wide = Magnitude(_SMALLEST * FAR, FAR) if signed else Interval(0.0, FAR)
        return scales, kinds, wide
    low, high = domain
    levels = _numbers(crowd, low, high)
    kinds = levels.spread if seen is None or len(seen) < 2 else seen
    return [levels], thinned(kinds, _KINDS), Interval(float(low), float(high))


def _numbers(crowd: Crowd, low: Any, high: Any) -> Levels:
    """Return levels of numbers; whole ones where the data are."""
    mid = low / 2 + high / 2
    spread = np.unique(crowd.values(*np.linspace(low, high, max(crowd.n_users, _KINDS))))
    ends = crowd.values(low, mid, high)
    return Levels(ends[0], ends[1], ends[2], spread)


def _of_values(seen: Array, data: Array) -> Levels:
    """Return levels of data that are no numbers: first and last in their order, and the mode."""
    if len(seen) < 2:
        raise ArgumentError(
            f"data_like must hold at least two different values, got {seen[0]!r} only"
        )
    _, counts = np.unique(data, return_counts=True)
    return Levels(seen[0], seen[int(counts.argmax())], seen[-1], seen)


def _farthest(crowd: Crowd) -> tuple[NeighborPair, ...]:
    """Return a user so far out that any clipping shows, on one side and across."""
    others, middle = crowd.rows(0.0), crowd.row(0.0)
    top, bottom = crowd.row(FARTHEST), crowd.row(-FARTHEST)
    lone = crowd.pair(others, top, middle, f"lone_user(others=0, {FARTHEST:g} to 0)")
    if crowd.relation != Relation.REPLACE_USER:
        return (lone,)
    words = f"across(others=0, {FARTHEST:g} to {-FARTHEST:g})"
    return lone, crowd.pair(others, top, bottom, words)


def _few_users(crowd: Crowd, levels: Levels) -> tuple[NeighborPair, ...]:
    """Return pairs of very few users, where a noise scale that depends on their number shows."""
    low, high = crowd.row(levels.low), crowd.row(levels.high)
    return tuple(
        few.pair(
            few.rows(levels.low),
            high,
            low,
            f"few_users({few.n_users}, others={levels.low}, {levels.high} to {levels.low})",
        )
        for few in (replace(crowd, n_users=n_users) for n_users in _FEW)
    )


# --- spaces -----------------------------------------------------------------------------------


def _spaces(
    crowd: Crowd, scales: list[Levels], kinds: Array, positions: Interval | Magnitude | None
) -> tuple[SearchSpace, ...]:
    spaces = [holders(crowd, kinds, scales[0])]
    if positions is None:
        return tuple(spaces)
    n_users, levels = crowd.n_users, scales[0]
    wide = isinstance(positions, Magnitude)
    low = -positions.most if isinstance(positions, Magnitude) else positions.low
    high = positions.most if isinstance(positions, Magnitude) else positions.high
    domain = {"low": low, "high": high, "relation": crowd.relation, "wide": wide, "m": crowd.m}
    cells = math.prod(crowd.item_shape[1:]) if len(crowd.item_shape) > 1 else None
    ready = partial(_fitted, crowd, {**domain, "d": cells})
    spaces += [ready(presets.edge), ready(presets.outlier)]
    if n_users > 2:
        spaces.append(ready(partial(presets.clusters, most=min(5, n_users - 1))))
    if crowd.m > 1:
        spaces.append(some_items(crowd, levels, positions))
    spaces.append(ready(presets.which_user))
    if n_users > 3:
        spaces.append(ready(partial(presets.which_batch, batch_size=n_users // 4)))
    return tuple(spaces)


def _fitted(
    crowd: Crowd, arguments: dict[str, Any], preset: Callable[..., SearchSpace]
) -> SearchSpace:
    """Return a ready-made space with pairs of the crowd's shape and dtype."""
    space = preset(crowd.n_users, **arguments)
    if crowd.dtype == np.float64 and len(crowd.item_shape) in (1, 2):
        return space
    whole = crowd.dtype.kind in "iu"

    def side(data: Array) -> Array:
        data = np.rint(data) if whole else data
        return data.reshape(len(data), *crowd.item_shape).astype(crowd.dtype)

    def build(**parameters: Any) -> NeighborPair:
        pair = space.build(**parameters)
        left, right = side(pair.left), side(pair.right)
        return NeighborPair(left, right, pair.user, pair.relation, pair.recipe)

    def reaching(values: Range) -> Range:
        """Leave out sizes that would be rounded away."""
        if whole and isinstance(values, Interval) and values.log and values.low < 1 < values.high:
            return Interval(1.0, values.high, log=True)
        return values

    ranges = {name: reaching(values) for name, values in space.parameters.items()}
    return SearchSpace(build, ranges, name=space.name)


def _query_values(
    data: Array | None, dim: int | None, domain: tuple[Any, Any] | None, relation: Relation
) -> Portfolio:
    """Return the patterns of query values: around the given ones, and at any centre."""
    if data is None and dim is None:
        raise ArgumentError(
            "dim must be given for query values, as the number of queries, or data_like, as an "
            f"example of them: nothing tells how many there are under {relation}"
        )
    if data is not None and (data.ndim != 1 or data.dtype.kind not in "iuf" or not len(data)):
        raise ArgumentError(
            f"data_like must be query values [k] under {relation}, got {data.dtype} of shape "
            f"{data.shape}"
        )
    k = len(data) if data is not None else _validate.integer(1, dim=dim)
    pairs = {(p.left.tobytes(), p.right.tobytes()): p for p in value_patterns(k, relation=relation)}
    known = tuple(pairs.values())
    if data is not None:
        known = (
            tuple(
                NeighborPair(
                    data + p.left, data + p.right, None, relation, f"{p.recipe} + data_like"
                )
                for p in known
            )
            + known
        )
    low, high = domain or (-10.0, 10.0)
    space = presets.query_values(k, low=float(low), high=float(high), relation=relation)
    return Portfolio(f"portfolio(k={k}, relation={relation})", known, (space,))
