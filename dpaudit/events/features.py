"""One-dimensional views of an output, each with words: the raw material of events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpaudit.events.encoding import Column, Encoder

Floats = NDArray[np.float64]

_HUGE = 1e100
"""Outputs beyond it are moved there while directions are learnt, so that squares stay finite."""

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

    Coordinates first (all, or the ones whose means or answer rates differ most), then, for
    vectors: mean, norms, extremes, order statistics, the direction of the difference of means,
    number of missing answers, and for streams of yes and no the first and last of each.
    """
    k = len(encoder.columns)
    chosen = np.arange(k) if k <= MAX_COORDINATES else _most_different(left, right)
    left, right = (np.clip(x, -_HUGE, _HUGE) for x in (left, right))
    features = [
        Feature(encoder.columns[j], _coordinate(j), True, encoder.columns[j].labels is None)
        for j in chosen.tolist()
    ]
    numeric = np.array([c.labels is None for c in encoder.columns])
    if numeric.sum() < 2:
        return features
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
    direction = _difference_of_means(left, right, numeric)
    if direction is not None:
        name = "difference-of-means direction"
        features.append(Feature(Column(name), direction, learnt=True))
    if missing.any():
        features.append(
            _summary("number of missing answers", lambda x: np.isnan(x).sum(axis=1).astype(float))
        )
    return features


def _summary(name: str, read: Callable[[Floats], Floats]) -> Feature:
    return Feature(Column(name), read)


def _coordinate(j: int) -> Callable[[Floats], Floats]:
    return lambda x: x[:, j]


def _most_different(left: Floats, right: Floats) -> NDArray[np.intp]:
    gap = np.abs(_filled(left).mean(axis=0) - _filled(right).mean(axis=0))
    spread = np.sqrt(_filled(left).var(axis=0) + _filled(right).var(axis=0)) + 1e-300
    answers = np.abs(np.isnan(left).mean(axis=0) - np.isnan(right).mean(axis=0))
    best = np.argsort(-(gap / spread + answers), kind="stable")[:MAX_COORDINATES]
    return np.sort(best)


def _filled(x: Floats) -> Floats:
    return np.where(np.isnan(x), 0.0, x)


def _difference_of_means(
    left: Floats, right: Floats, numeric: NDArray[np.bool_]
) -> Callable[[Floats], Floats] | None:
    """Projection on the difference of means, each coordinate in units of its spread."""
    spread = np.concatenate([_filled(left), _filled(right)]).std(axis=0)
    gap = _filled(left).mean(axis=0) - _filled(right).mean(axis=0)
    use = numeric & (spread > 0)
    weights = np.zeros(len(spread))
    weights[use] = gap[use] / spread[use] ** 2
    size = np.linalg.norm(weights)
    if not size > 0:
        return None
    weights /= size
    # Not a matrix product, whose last digits depend on the number of rows.
    return lambda x: np.asarray((_filled(x) * weights).sum(axis=1))


def _vector_features(columns: NDArray[np.intp]) -> list[Feature]:
    def of(reduce: Callable[[Floats], Floats], empty: float = 0.0) -> Callable[[Floats], Floats]:
        def read(x: Floats) -> Floats:
            part = x[:, columns]
            return reduce(np.where(np.isnan(part), empty, part))

        return read

    def order_statistic(rank: int) -> Callable[[Floats], Floats]:
        def read(x: Floats) -> Floats:
            ordered = np.partition(x[:, columns], rank, axis=1)  # NaN sorts last
            return np.asarray(ordered[:, rank])

        return read

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
