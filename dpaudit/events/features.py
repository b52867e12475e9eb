"""One-dimensional views of an output, each with words: the raw material of events."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpaudit.events.directions import difference_of_means, filled, spreads
from dpaudit.events.encoding import Column, Encoder
from dpaudit.events.periods import periodic
from dpaudit.events.relations import relations
from dpaudit.events.screening import SCREENED

Floats = NDArray[np.float64]

_HUGE = 1e100
"""Outputs beyond it are moved there while directions are learnt, so that squares stay finite."""

_PERIODIC = 16  # coordinates in which periods are looked for

MAX_COORDINATES = 48
"""Coordinates that are looked at one by one; the rest still count in norms and directions."""


@dataclass(frozen=True, eq=False)
class Feature:
    """A number read off each encoded output; NaN where there is no answer.

    Parameters
    ----------
    column : Column
        Its name and, for categories, its labels.
    read : callable
        ``[size, k] -> [size]``.
    coordinate : bool
        Whether it is one coordinate of the output rather than a summary of many.
    ordered : bool
        Whether larger and smaller mean something.
    learnt : bool
        Whether draws had a part in choosing it.
    """

    column: Column
    read: Callable[[Floats], Floats] = field(repr=False)
    coordinate: bool = False
    ordered: bool = True
    learnt: bool = False

    @property
    def name(self) -> str:
        """Words for people."""
        return self.column.name

    def __call__(self, encoded: Floats) -> Floats:
        """Return the feature of each output, shape ``[size]``."""
        with np.errstate(over="ignore", invalid="ignore"):  # sums of huge outputs are inf or NaN
            return self.read(encoded)


def all_features(encoder: Encoder, left: Floats, right: Floats) -> list[Feature]:
    """Return the features worth looking at, simplest first, learnt on encoded draws.

    Coordinates first (all, or the ones whose means or answer rates differ most), and what is read
    off texts. For vectors: mean, norms, extremes, order statistics, the direction of the difference
    of means, number of missing answers, and for streams of yes and no the first and last of each.
    Then what is looked for and only kept where it tells the sides apart: directions of different
    spread, relations between coordinates, residues and fractional parts.
    """
    own = encoder.own
    chosen = (
        own if len(own) <= MAX_COORDINATES else own[_most_different(left[:, own], right[:, own])]
    )
    left, right = (np.clip(x, -_HUGE, _HUGE) for x in (left, right))
    features = [
        Feature(encoder.columns[j], _coordinate(j), j in own, encoder.columns[j].labels is None)
        for j in [*encoder.form_columns, *chosen.tolist()]
    ]
    features += _text_features(encoder)
    numeric = np.array([c.labels is None and not c.derived for c in encoder.columns])
    if numeric.sum() >= 2:
        features += _many(encoder, numeric, left, right)
    for j in [j for j in chosen.tolist() if numeric[j]][:_PERIODIC]:
        found = periodic(encoder.columns[j].name, left[:, j], right[:, j])
        features += [Feature(c, _after(_coordinate(j), read), learnt=True) for c, read in found]
    return features


def _many(
    encoder: Encoder, numeric: NDArray[np.bool_], left: Floats, right: Floats
) -> list[Feature]:
    """Return the features of several numbers together."""
    features: list[Feature] = []
    with np.errstate(invalid="ignore"):
        both = np.concatenate([left, right])
        missing = np.isnan(both).any(axis=0)
        binary = numeric & (np.isnan(both) | (both == 0) | (both == 1)).all(axis=0)
    values = numeric & ~binary
    if binary.sum() >= 2:
        features += _stream_features(np.flatnonzero(binary))
    if values.sum() >= 2:
        features += _vector_features(np.flatnonzero(values))
        if missing[values].any():
            features += _answer_features(np.flatnonzero(values))
    direction = difference_of_means(left, right, numeric)
    if direction is not None:
        name = "difference-of-means direction"
        features.append(Feature(Column(name), direction, learnt=True))
    if missing.any():
        features.append(
            _summary("number of missing answers", lambda x: np.isnan(x).sum(axis=1).astype(float))
        )
    if values.sum() >= 2:
        columns = np.flatnonzero(values)
        for column, read in spreads(columns, left, right):
            features.append(Feature(column, read, learnt=True))
        names = [c.name for c in encoder.columns]
        few = (x[:SCREENED] for x in (left, right))
        for column, read, ordered in relations(names, columns, *few):
            features.append(Feature(column, read, ordered=ordered, learnt=True))
        total = _of(columns, lambda x: x.sum(axis=1))
        for column, read in periodic("sum of coordinates", total(left), total(right)):
            features.append(Feature(column, _after(total, read), learnt=True))
    return features


def _after(
    first: Callable[[Floats], Floats], read: Callable[[Floats], Floats]
) -> Callable[[Floats], Floats]:
    return lambda x: read(first(x))


def _text_features(encoder: Encoder) -> list[Feature]:
    """Return what is read off texts beside themselves."""
    return [
        Feature(column, _coordinate(j), False, column.labels is None, learnt=True)
        for j, column in enumerate(encoder.columns)
        if column.derived and j not in encoder.form_columns
    ]


def _summary(name: str, read: Callable[[Floats], Floats]) -> Feature:
    return Feature(Column(name), read)


def _coordinate(j: int) -> Callable[[Floats], Floats]:
    return lambda x: x[:, j]


def _most_different(left: Floats, right: Floats) -> NDArray[np.intp]:
    gap = np.abs(filled(left).mean(axis=0) - filled(right).mean(axis=0))
    spread = np.sqrt(filled(left).var(axis=0) + filled(right).var(axis=0)) + 1e-300
    answers = np.abs(np.isnan(left).mean(axis=0) - np.isnan(right).mean(axis=0))
    best = np.argsort(-(gap / spread + answers), kind="stable")[:MAX_COORDINATES]
    return np.sort(best)


def _of(
    columns: NDArray[np.intp], reduce: Callable[[Floats], Floats], empty: float = 0.0
) -> Callable[[Floats], Floats]:
    def read(x: Floats) -> Floats:
        # Rows that lie one behind the other in memory add up the same however many there are.
        part = np.take(x, columns, axis=1)
        return reduce(np.where(np.isnan(part), empty, part))

    return read


class _Sorted:
    """Rows in order, NaN last; the latest outputs of either side are cached.

    The cache stays behind where the object is pickled, as it must be to reach a worker.
    """

    def __init__(self, columns: NDArray[np.intp]) -> None:
        self._columns = columns
        self._known: list[tuple[weakref.ref[Floats], Floats]] = []

    def __reduce__(self) -> tuple[type[_Sorted], tuple[NDArray[np.intp]]]:
        return _Sorted, (self._columns,)

    def __call__(self, x: Floats) -> Floats:
        for of, rows in self._known:
            if of() is x:
                return rows
        rows = np.sort(np.take(x, self._columns, axis=1), axis=1)
        self._known = [*self._known[-1:], (weakref.ref(x), rows)]
        return rows


def _vector_features(columns: NDArray[np.intp]) -> list[Feature]:
    in_order = _Sorted(columns)

    def of(reduce: Callable[[Floats], Floats], empty: float = 0.0) -> Callable[[Floats], Floats]:
        return _of(columns, reduce, empty)

    def order_statistic(rank: int) -> Callable[[Floats], Floats]:
        return lambda x: np.ascontiguousarray(in_order(x)[:, rank])

    k = len(columns)
    features = [
        _summary("mean of coordinates", of(lambda x: x.mean(axis=1))),
        _summary("L1 norm", of(lambda x: np.abs(x).sum(axis=1))),
        _summary("L2 norm", of(lambda x: np.sqrt((x * x).sum(axis=1)))),
        _summary("largest absolute coordinate", of(lambda x: np.abs(x).max(axis=1))),
        _summary(
            "position of the largest coordinate", of(lambda x: x.argmax(axis=1) * 1.0, -1e300)
        ),
    ]
    ranks = range(k) if k <= 10 else sorted({0, 1, k // 4, k // 2, 3 * k // 4, k - 2, k - 1})
    features += [
        _summary(f"order statistic {rank + 1} of {k}", order_statistic(rank)) for rank in ranks
    ]
    return features


def _first(hit: NDArray[np.bool_]) -> Floats:
    """Position of the first True in each row, NaN where there is none."""
    return np.where(hit.any(axis=1), hit.argmax(axis=1), np.nan)


def _last(hit: NDArray[np.bool_]) -> Floats:
    return np.asarray(hit.shape[1] - 1 - _first(hit[:, ::-1]))


def _stream_features(columns: NDArray[np.intp]) -> list[Feature]:
    readers: dict[str, Callable[[Floats], Floats]] = {
        "number of yes": lambda x: (x == 1).sum(axis=1) * 1.0,
        "position of the first yes": lambda x: _first(x == 1),
        "position of the last yes": lambda x: _last(x == 1),
        "position of the first no": lambda x: _first(x == 0),
        "position of the last no": lambda x: _last(x == 0),
    }

    def of(read: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
        return lambda x: read(x[:, columns])

    return [_summary(name, of(read)) for name, read in readers.items()]


def _answer_features(columns: NDArray[np.intp]) -> list[Feature]:
    """For vectors with gaps: which coordinate answers first, and what it says."""

    def position(x: Floats) -> Floats:
        return _first(~np.isnan(x[:, columns]))

    def value(x: Floats) -> Floats:
        part = x[:, columns]
        at = (~np.isnan(part)).argmax(axis=1)
        return np.asarray(part[np.arange(part.shape[0]), at])

    return [_summary("position of the first value", position), _summary("first value", value)]
