"""Portfolios: pairs and spaces of pairs that are explored together with one budget."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.claims import Relation, checked_relation
from dpaudit.data import dataset_array, is_frame
from dpaudit.errors import ArgumentError
from dpaudit.neighbors.crowds import Levels, around, crowds, holders, scalars, thinned
from dpaudit.neighbors.frames import ALONE, FEW, ONE_OTHER, FrameTables, Schema, SchemaTables
from dpaudit.neighbors.pairs import AllPairs, NeighborPair, PairFamily, family, of_one_kind
from dpaudit.neighbors.recipes import (
    Crowd,
    checked_ends,
    listed,
    query_values,
    searched,
    value_patterns,
)
from dpaudit.neighbors.spaces import Interval, Magnitude, SearchSpace, in_words

Array = NDArray[Any]

BOTH = (Relation.REPLACE_USER, Relation.ADD_REMOVE_USER)
"""Relations of the pairs that are searched if no relation is given."""

FAR, UNIT = 100.0, 1.0
"""Sizes of data in an undeclared domain; clipping maps the larger size to its boundary."""

FARTHEST = 1e6
"""Value of the farthest user in an undeclared domain."""

_BEYOND_DATA = "values outside the range of like=, if data can hold them (pass low= and high=)"
_BEYOND_NUMBER = "datasets of one or two users (omit n_users=)"
_BEYOND_COLUMNS = "numbers outside the ranges of the columns, if data can hold them (see Schema)"

_SMALLEST = 1e-5
_MOST_CELLS = 10**6
_WHOLE = 2**53  # up to this size, floats represent whole numbers exactly
_KINDS = 32
_SIZES = (20, 8)
_SMALL_SIZES: tuple[int, ...] = (1, 2, 3, 4)  # numbers of users, with the one who may leave
_DOUBLED = 2  # users of the pair in which a user who leaves halves the number


@dataclass(frozen=True, eq=False)
class Portfolio:
    """Pairs and spaces of pairs that are explored together with one budget.

    Parameters
    ----------
    name : str
        Description for reports.
    pairs : tuple of NeighborPair
        Candidate pairs. The most important pairs come first, for the case of a small budget.
    spaces : tuple of SearchSpace
        Spaces that are searched.
    ends : tuple of NeighborPair
        Members of `pairs` that are always finalists, because their user moves as far as possible.
    small : tuple of NeighborPair
        Members of `pairs` that contain only a very small number of users. If a mechanism raises an
        exception on such a pair, the pair is not covered, and the report lists it.
    variant : callable, optional
        ``variant(relation=...)`` and ``variant(items=1)`` return the same portfolio with another
        value of an argument that the caller did not set.
    items : int, optional
        Default number of items of a user; None if the caller chose the number.
    beyond : str, optional
        Values and numbers of users that no pair holds, in words for the report.
    is_bounded : bool, optional
        Whether all values of arrays lie in a declared range, or in the range of given data.
        Otherwise, users have values of many sizes.
    """

    name: str
    pairs: tuple[NeighborPair, ...]
    spaces: tuple[SearchSpace, ...] = ()
    ends: tuple[NeighborPair, ...] = ()
    small: tuple[NeighborPair, ...] = ()
    variant: Callable[..., Portfolio] | None = None
    items: int | None = None
    beyond: str = ""
    is_bounded: bool = False

    def __post_init__(self) -> None:
        _validate.text(name=self.name)
        _validate.text(empty=True, beyond=self.beyond)
        _validate.flag(is_bounded=self.is_bounded)
        kinds = {"pairs": NeighborPair, "spaces": SearchSpace}
        kinds |= {"ends": NeighborPair, "small": NeighborPair}
        for field, kind in kinds.items():
            held = tuple(getattr(self, field))
            object.__setattr__(self, field, held)
            for one in held:
                _validate.instance(kind, f"a list of {kind.__name__} objects", **{field: one})
        if not self.pairs and not self.spaces:
            raise ArgumentError(
                f"portfolio {self.name!r} must hold at least one pair or space, got none"
            )
        for pair in self.pairs:
            if pair.is_null:
                raise ArgumentError(
                    "the two sides of a pair of a portfolio must differ, got equal sides in the "
                    f"pair {pair!r}"
                )
        of_one_kind(self.pairs, "a portfolio")

    def example(self, *, rng: np.random.Generator) -> NeighborPair:
        """Return the first pair, or a pair of the first space if there are no pairs."""
        return self.pairs[0] if self.pairs else self.spaces[0].example(rng=rng)

    def under(self, relation: Relation) -> Portfolio:
        """Return the pairs of one relation, or the whole portfolio if no pair has the relation.

        A portfolio that :func:`portfolio` made for two relations is built again for `relation`. If
        `relation` is a relation of query values, the new portfolio holds query values.
        """
        checked_relation(relation)
        if self.variant is not None and len(self.relations) > 1:
            return self.variant(relation=relation)
        pairs, ends, small = (
            tuple(pair for pair in some if pair.relation == relation)
            for some in (self.pairs, self.ends, self.small)
        )
        spaces = tuple(
            s for s in self.spaces if s.example(rng=np.random.default_rng(0)).relation == relation
        )
        if not pairs and not spaces:
            return self
        return replace(self, pairs=pairs, spaces=spaces, ends=ends, small=small)

    @property
    def is_ready_made(self) -> bool:
        """Whether :func:`portfolio` made this portfolio, so that its arguments declare the data."""
        return self.name.startswith("portfolio(")

    @property
    def relations(self) -> tuple[Relation, ...]:
        """Relations of the pairs, in the order of the pairs."""
        return tuple(dict.fromkeys(pair.relation for pair in self.pairs))

    def __repr__(self) -> str:
        return f"Portfolio({self.name}: {len(self.pairs)} pairs, {len(self.spaces)} spaces)"


Change = Callable[[NeighborPair], NeighborPair]


def each(pairs: Any, change: Change) -> Any:
    """Return the same kind of pairs, of which each pair is changed.

    Parameters
    ----------
    pairs : NeighborPair, sequence of NeighborPair, PairFamily, SearchSpace, Portfolio or AllPairs
        The pairs. All pairs of some values become a family.
    change : callable
        ``change(pair) -> pair``.
    """
    if isinstance(pairs, SearchSpace):
        return replace(pairs, build=_Changed(pairs.build, change), name=pairs.name)
    if isinstance(pairs, Portfolio):
        spaces = tuple(each(space, change) for space in pairs.spaces)
        changed = {id(pair): change(pair) for pair in pairs.pairs}
        ends, small = (
            tuple(changed.get(id(pair)) or change(pair) for pair in some)
            for some in (pairs.ends, pairs.small)
        )
        held = tuple(changed[id(pair)] for pair in pairs.pairs)
        return replace(pairs, pairs=held, spaces=spaces, ends=ends, small=small, variant=None)
    if isinstance(pairs, AllPairs):
        places = itertools.combinations(range(len(pairs.values)), 2)
        return PairFamily(pairs.name, tuple(change(pairs.pair(*both)) for both in places))
    held_in = family(pairs)
    return PairFamily(held_in.name, tuple(map(change, held_in)))


class _Changed:
    """A function that builds a pair and changes it, with the arguments of the first function."""

    def __init__(self, build: Callable[..., NeighborPair], change: Change) -> None:
        functools.update_wrapper(self, build, updated=())
        self.build, self.change = build, change

    def __call__(self, **parameters: Any) -> NeighborPair:
        return self.change(self.build(**parameters))


@listed
def portfolio(
    like: Any = None,
    *,
    schema: Any = None,
    n_users: int | None = None,
    m: int | None = None,
    dim: int | None = None,
    low: float | None = None,
    high: float | None = None,
    missing: bool = False,
) -> Portfolio:
    """Return pairs and spaces of pairs that expose realistic mistakes.

    In these pairs, the user is an outlier, at the boundary, in the majority or against the
    majority. The user moves all of its items, or only one item. The other users are equal, spread
    out or in clusters. The user is first, last or in the middle. Some pairs have rare values,
    duplicates, counts at a threshold, or users without data.

    Pairs are made for both relations: replacing a user and removing a user. An audit searches only
    the pairs of its claim's relation. :meth:`Portfolio.under` returns the portfolio of one
    relation. Under ``within_sensitivity``, that portfolio holds the patterns of
    :func:`value_pattern` for `dim` queries.

    Parameters
    ----------
    like : array_like or DataFrame, optional
        A typical dataset, or a frame, that the mechanism takes. The portfolio takes the shape,
        dtype and range of this dataset. Pairs around this dataset are searched too. In these pairs,
        each user of the dataset is replaced or removed. An array is [n_users, m], [n_users, m,
        dim], or [n_users] for m = 1, and holds numbers, booleans, strings or records. A frame of
        pandas or polars needs `schema`, which gives the column of its users. A few hundred rows are
        enough, because every draw runs the mechanism on all rows.
    schema : dict or Schema, optional
        Possible values of the columns, such as ``{"age": (0, 120), "city": ["Aix", "Brest"]}``, for
        mechanisms that take tables; :class:`Schema` has more options.
    n_users, m : int, optional
        Numbers of users (at least 2) and of items per user (at least 1). The default is 20 users of
        8 items. By default, there are also datasets of 0 to 4 users, which expose a noise scale
        that depends on the number of users. Around given data, there is a pair of 2 users if one of
        them may leave. If a claim assumes more users, pass their number, which leaves such pairs
        out. With a schema, the default is 20 users of at most 4 rows.
        With a frame, only `m` may be given: invented users have `m` rows, by default as many as the
        user with the most rows.
    dim : int, optional
        Dimension of an item. By default, items are scalars. For query values, `dim` is the number
        of queries.
    low, high : float, optional
        The domain of the data. All values stay within the domain. If both ends are whole numbers
        (``int``), the data are whole numbers, too. Without a domain and without data, the portfolio
        tries values of both signs from 0.001 to 1,000,000.
    missing : bool, optional
        Whether items may be NaN. If some items of `like` are NaN, items may always be NaN.

    Returns
    -------
    Portfolio

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range, or if the data are neither a rectangular array nor a frame.

    Examples
    --------
    >>> portfolio(n_users=10, m=4, low=0.0, high=1.0).under(Relation.REPLACE_USER)
    Portfolio(portfolio(n_users=10, m=4, low=0, high=1): 19 pairs, 7 spaces)
    >>> from math import inf, nan
    >>> columns = {"age": (0, 120), "income": (0.0, 1e5), "city": ["Aix", "Brest", "Caen"]}
    >>> portfolio(schema=Schema(columns, special=(nan, inf)))
    Portfolio(rows(age, income, city): 43 pairs, 4 spaces)
    >>> import pandas as pd
    >>> visits = pd.DataFrame({"id": [1, 1, 2, 3], "paid": [3.0, 4.0, 5.0, 2.0]})
    >>> portfolio(visits, schema=Schema(user="id"))
    Portfolio(like 4 rows of 3 users: 18 pairs, 4 spaces)
    """
    _validate.flag(missing=missing)
    given = {"n_users": n_users, "m": m, "dim": dim, "low": low, "high": high}
    if schema is None and not is_frame(like):
        return _of_arrays(like, {**given, "missing": missing})
    declared = schema if isinstance(schema, Schema) else Schema(schema)
    allowed = ("n_users", "m") if like is None else ("m",)
    for name, value in given.items():
        if value is not None and name not in allowed:
            raise ArgumentError(
                f"{name} must be None for tables, got "
                f"{_validate.describe(value)}. Pass like or schema to describe the tables"
            )
    if like is not None:
        return _of_tables(lambda items: FrameTables(like, declared, missing, items), m)
    return _of_tables(lambda items: SchemaTables(declared, n_users, items, missing), m)


def _of_tables(
    make: Callable[[int | None], FrameTables | SchemaTables],
    items: int | None,
    relation: Relation | None = None,
) -> Portfolio:
    """Return the portfolio of tables in which each user has a number of rows."""
    tables, relations = make(items), BOTH if relation is None else (relation,)
    if not set(relations) <= set(BOTH):
        raise ArgumentError(f"relation must be replace_user or add_remove_user, got {relation}")
    number = _BEYOND_NUMBER * tables.has_number
    bounds = _BEYOND_COLUMNS * any(c.is_bounded for c in tables.columns)
    beyond = tables.beyond, number, bounds
    pairs = tuple(in_turn(tables.pairs(one) for one in relations))
    small = tuple(p for p in pairs if p.recipe in FEW or p.recipe.startswith(ALONE))
    return Portfolio(
        tables.name,
        pairs,
        tuple(space for one in relations for space in tables.spaces(one)),
        ends=tuple(p for p in small if p.recipe == ONE_OTHER and p.relation == BOTH[1]),
        small=small,
        variant=lambda relation=relation, items=items: _of_tables(make, items, relation),
        items=tables.default_items,
        beyond="; ".join(filter(None, beyond)),
    )


def _of_arrays(like: Any, given: dict[str, Any], relation: Relation | None = None) -> Portfolio:
    """Return the portfolio of arrays.

    `given` holds the arguments of :func:`portfolio`.
    """
    made = [_of_relation(like, one, **given) for one in (BOTH if relation is None else (relation,))]
    first, m = made[0], given["m"]
    knows_items = m is not None or like is not None or not first.pairs[0].relation.is_of_users
    return replace(
        first,
        name=f"{first.name} and removals" if relation is None else first.name,
        pairs=tuple(in_turn(one.pairs for one in made)),
        ends=tuple(end for one in made for end in one.ends),
        small=tuple(small_crowd for one in made for small_crowd in one.small),
        variant=lambda relation=relation, items=m: _of_arrays(
            like, {**given, "m": items}, relation
        ),
        items=None if knows_items else _SIZES[1],
    )


def _of_relation(
    like: Any,
    relation: Relation,
    *,
    n_users: int | None,
    m: int | None,
    dim: int | None,
    low: float | None,
    high: float | None,
    missing: bool,
) -> Portfolio:
    """Return the portfolio of one relation; parameters are those of :func:`portfolio`."""
    domain = _domain(low, high)
    data = None if like is None else dataset_array("like", like)
    if not relation.is_of_users:
        return _query_values(data, dim, domain, relation)
    may_leave, sizes, beyond = relation == Relation.ADD_REMOVE_USER, _SMALL_SIZES, []
    if n_users is not None:
        sizes = ()
        beyond += [f"other numbers of users than {n_users} (omit n_users=)"] * may_leave
    elif data is not None:  # unless a user may leave, the number of its users may be public
        sizes = (_DOUBLED,) * may_leave
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
        words = {"like": "x".join(map(str, data.shape))}
    if math.prod((n_users, *item_shape)) > _MOST_CELLS:
        raise ArgumentError(
            f"like or n_users must give a dataset of at most {_MOST_CELLS:,} values, got "
            f"n_users={n_users} with items of shape {item_shape}. Use fewer users"
        )
    if missing and dtype.kind != "f":
        raise ArgumentError(
            f"missing must be False for data of {dtype}, which cannot be NaN, got True. "
            "Pass low=0.0 and high=1.0 for data of floats; 0 and 1 make data of whole numbers"
        )
    gaps = missing or (data is not None and dtype.kind == "f" and bool(np.isnan(data).any()))
    if domain is not None:
        _check_domain(domain, data, dtype)
    crowd = Crowd(n_users, item_shape, dtype, relation)
    scales, kinds, positions = _levels(crowd, data, domain)
    pairs = crowds(crowd, scales, kinds, missing=gaps)
    ends = _farthest(crowd) if domain is None and data is None else ()
    small = tuple(_few_users(replace(crowd, n_users=n), scales[0]) for n in sizes)
    spaces = [] if data is None else around(crowd, data, scales[0], positions, gaps)
    spaces.append(holders(crowd, kinds, scales[0]))
    if positions is not None:
        wide, ends_of_all = isinstance(positions, Magnitude), (positions.at(0.0), positions.at(1.0))
        spaces += searched(replace(crowd, low=ends_of_all[0], high=ends_of_all[1], wide=wide))
    words |= {"low": domain and domain[0], "high": domain and domain[1]}
    words["missing"] = True if missing else None
    words["relation"] = None if relation == Relation.REPLACE_USER else relation
    arguments = in_words({key: value for key, value in words.items() if value is not None})
    front = len(pairs) // 2
    pairs = pairs[:front] + small + pairs[front:] + ends
    if may_leave:
        ends += tuple(pair for pair, n in zip(small, sizes, strict=True) if n == _DOUBLED)
    if domain is not None:
        beyond.append(f"values outside {domain[0]} to {domain[1]}, if data can hold them")
    elif data is not None and isinstance(positions, Interval) and np.unique(data).size > 1:
        beyond.append(_BEYOND_DATA)
    name = f"portfolio({arguments})"
    return Portfolio(
        name,
        pairs,
        tuple(spaces),
        ends,
        small,
        beyond="; ".join(beyond),
        is_bounded=domain is not None or _BEYOND_DATA in beyond,
    )


def in_turn(series: Iterable[Iterable[NeighborPair]]) -> Iterator[NeighborPair]:
    """Yield the first element of each series, then each second element, and so on."""
    rounds = zip_longest(*series)
    return (pair for each in rounds for pair in each if pair is not None)


def _domain(low: Any, high: Any) -> tuple[Any, Any] | None:
    if low is None and high is None:
        return None
    if low is None or high is None:
        raise ArgumentError(f"low and high must both be given, got low={low!r} and high={high!r}")
    ends = checked_ends(low, high)
    whole = all(isinstance(end, int | np.integer) for end in (low, high))
    return (int(low), int(high)) if whole else ends


def _check_data(data: Array, n_users: int | None, m: int | None, dim: int | None) -> None:
    if data.ndim == 0 or data.shape[0] < 2 or data.size == 0:
        raise ArgumentError(
            "like must be an array [n_users, m, ...] of at least 2 users with at least 1 item "
            f"each, got shape {data.shape}"
        )
    if data.dtype.kind not in "biufSUV" or (data.dtype.kind == "V" and not data.dtype.names):
        raise ArgumentError(
            f"like must hold numbers, booleans, strings or records, got {data.dtype}"
        )
    if data.dtype.kind == "f" and not np.isfinite(data).any():
        raise ArgumentError("like must hold at least one finite number, got none")
    if data.dtype.kind == "f" and np.isinf(data).any():
        raise ArgumentError("like must hold finite numbers, or NaN for missing ones, got inf")
    for axis, (name, value) in enumerate({"n_users": n_users, "m": m, "dim": dim}.items()):
        shape = data.shape[axis] if axis < data.ndim else None
        if value not in (None, shape):
            raise ArgumentError(
                f"{name} must agree with the data in the argument like, whose shape is "
                f"{data.shape}, got {name}={value!r}"
            )


def _check_domain(domain: tuple[Any, Any], data: Array | None, dtype: np.dtype[Any]) -> None:
    """Refuse a domain that does not contain the data, or that the dtype of the data cannot hold."""
    low, high = domain
    if dtype.kind not in "iuf":
        raise ArgumentError(f"low and high must be None unless the data are numbers, got {dtype}")
    if dtype.kind in "iu":
        least, most = max(np.iinfo(dtype).min, -_WHOLE), min(np.iinfo(dtype).max, _WHOLE)
        if not (isinstance(low, int) and least <= low and high <= most):
            raise ArgumentError(
                f"low and high must be whole numbers from {least} to {most} for data of {dtype}, "
                f"got {low!r} and {high!r}"
            )
    if data is not None and bool(((data < low) | (data > high)).any()):
        raise ArgumentError(
            f"like must lie within low = {low!r} and high = {high!r}, got values from "
            f"{np.nanmin(data)!r} to {np.nanmax(data)!r}"
        )


def _levels(
    crowd: Crowd, data: Array | None, domain: tuple[Any, Any] | None
) -> tuple[list[Levels], Array, Interval | Magnitude | None]:
    """Return levels for each size of the data, values of categories, and the users' positions."""
    seen = None
    if data is not None:
        seen = np.unique(data[np.isfinite(data)] if data.dtype.kind == "f" else data)
        # Whole numbers as large as this are identifiers, which floats could not represent.
        names = crowd.dtype.kind in "iu" and max(-int(seen[0]), int(seen[-1])) > _WHOLE
        if names or crowd.dtype.kind not in "iuf":
            return [_of_values(seen, data)], thinned(seen, _KINDS), None
        if domain is None and len(seen) > 1:
            domain = seen[0].item(), seen[-1].item()
    if domain is None:  # Data with a single value do not determine a domain.
        signed = crowd.dtype.kind != "u"
        scales = [_numbers(crowd, -size if signed else 0.0, size) for size in (FAR, UNIT)]
        kinds = scalars(crowd, *range(min(max(crowd.m, 4), int(FAR)) + 1))
        wide = Magnitude(_SMALLEST * FAR, FAR) if signed else Interval(0.0, FAR)
        return scales, kinds, wide
    low, high = domain
    levels = _numbers(crowd, low, high)
    kinds = levels.spread if seen is None or len(seen) < 2 else seen
    return [levels], thinned(kinds, _KINDS), Interval(float(low), float(high))


def _numbers(crowd: Crowd, low: Any, high: Any) -> Levels:
    """Return levels of numbers.

    The levels are whole numbers if the data are whole numbers.
    """
    mid = low / 2 + high / 2
    spread = np.unique(scalars(crowd, *np.linspace(low, high, max(crowd.n_users, _KINDS))))
    ends = scalars(crowd, low, mid, high)
    return Levels(ends[0], ends[1], ends[2], spread)


def _of_values(seen: Array, data: Array) -> Levels:
    """Return levels of data that are not numbers: the first value, the last value, and the mode."""
    if len(seen) < 2:
        raise ArgumentError(f"like must hold at least two different values, got {seen[0]!r} only")
    _, counts = np.unique(data, return_counts=True)
    return Levels(seen[0], seen[int(counts.argmax())], seen[-1], seen)


def _farthest(crowd: Crowd) -> tuple[NeighborPair, ...]:
    """Return pairs whose user is so far away that any clipping has an effect."""
    others, middle = crowd.rows(0.0), crowd.row(0.0)
    top, bottom = crowd.row(FARTHEST), crowd.row(-FARTHEST)
    lone = crowd.pair(others, top, middle, f"lone_user(others=0, {FARTHEST:g} to 0)")
    if crowd.relation != Relation.REPLACE_USER:
        return (lone,)
    words = f"across(others=0, {FARTHEST:g} to {-FARTHEST:g})"
    return lone, crowd.pair(others, top, bottom, words)


def _few_users(crowd: Crowd, levels: Levels) -> NeighborPair:
    """Return a pair of very few users, which exposes noise scaled by the number of users."""
    low, high = levels.low, levels.high
    words = f"few_users({crowd.n_users}, others={low}, {high} to {low})"
    return crowd.pair(crowd.rows(low), crowd.row(high), crowd.row(low), words)


def _query_values(
    data: Array | None, dim: int | None, domain: tuple[Any, Any] | None, relation: Relation
) -> Portfolio:
    """Return the patterns of query values, both around the given values and at any centre."""
    if data is None and dim is None:
        raise ArgumentError(
            "dim must be the number of queries, or like must be an example of the query "
            f"values, because the relation is {relation}, got neither"
        )
    if data is not None and (data.ndim != 1 or data.dtype.kind not in "iuf" or not len(data)):
        raise ArgumentError(
            f"like must be query values [dim] under {relation}, got {data.dtype} of shape "
            f"{data.shape}"
        )
    k = len(data) if data is not None else _validate.integer(1, dim=dim)
    pairs = {(p.left.tobytes(), p.right.tobytes()): p for p in value_patterns(k, relation=relation)}
    known = tuple(pairs.values())
    if data is not None:
        near = [
            replace(p, left=data + p.left, right=data + p.right, recipe=f"{p.recipe} + like")
            for p in known
        ]
        known = (*near, *known)
    low, high = domain or (-10.0, 10.0)
    space = query_values(k, low=float(low), high=float(high), relation=relation)
    return Portfolio(f"portfolio(dim={k}, relation={relation})", known, (space,))
