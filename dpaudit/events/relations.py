"""What coordinates say about each other: equality, order, small gaps, differences of pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from dpaudit.events.encoding import Column
from dpaudit.events.screening import binned_excess, share_gap

Floats = NDArray[np.float64]
Read = Callable[[Floats], Floats]

MAX_PAIRED = 48
"""Coordinates of which all pairs are looked at."""

_PAIRED_DRAWS = 2000
_TELLING = 6.0  # standard errors by which a pair must differ
_MAX_PAIRS = 3
_LEAST = 100  # draws from which relations are looked for


class YesNo(Column):
    """A column of 1 and 0."""

    def words(self, value: float) -> str:
        """Return yes or no."""
        return {1.0: "yes", 0.0: "no"}.get(value, "no answer")


def relations(
    names: list[str], columns: NDArray[np.intp], left: Floats, right: Floats
) -> Iterator[tuple[Column, Read, bool]]:
    """Yield relations between the coordinates of a vector that tell the sides apart.

    Parameters
    ----------
    names : list of str
        Of all columns.
    columns : ndarray of int
        Those that hold numbers, at least two.
    left, right : ndarray, shape (n, k)
        Encoded draws from which to learn.

    Yields
    ------
    Column
        Words.
    callable
        ``[size, k] -> [size]``.
    bool
        Whether more and less mean something.
    """
    if min(len(left), len(right)) < _LEAST:
        return
    for name, read in (
        ("number of coordinates equal to another", _repeats),
        ("smallest gap between two coordinates", _smallest_gap),
        ("number of coordinates above the one before", _ascents),
        ("position of the smallest coordinate", _smallest),
    ):
        of = _on(columns, read)
        if binned_excess(of(left), of(right)) > 0:
            yield Column(name), of, True
    few = columns[:MAX_PAIRED]
    for i, j in _equal_pairs(left[:_PAIRED_DRAWS, few], right[:_PAIRED_DRAWS, few]):
        pair = f"{names[few[i]]} equals {names[few[j]]}"
        yield YesNo(pair), _equality(int(few[i]), int(few[j])), False
    for i, j in _related_pairs(left[:, few], right[:, few]):
        a, b = int(few[i]), int(few[j])
        yield Column(f"{names[a]} - {names[b]}"), _combination(a, b, -1.0), True
        yield Column(f"{names[a]} + {names[b]}"), _combination(a, b, 1.0), True


def _on(columns: NDArray[np.intp], read: Read) -> Read:
    return lambda x: read(np.take(x, columns, axis=1))


def _repeats(x: Floats) -> Floats:
    """Count coordinates less the different ones; a gap equals nothing."""
    return np.asarray((np.diff(np.sort(x, axis=1), axis=1) == 0).sum(axis=1), dtype=np.float64)


def _smallest_gap(x: Floats) -> Floats:
    gaps = np.diff(np.sort(x, axis=1), axis=1)  # NaN is sorted last
    least = np.fmin.reduce(gaps, axis=1)
    return np.asarray(least)


def _ascents(x: Floats) -> Floats:
    return np.asarray((x[:, 1:] > x[:, :-1]).sum(axis=1), dtype=np.float64)


def _smallest(x: Floats) -> Floats:
    return np.asarray(np.where(np.isnan(x), np.inf, x).argmin(axis=1), dtype=np.float64)


def _equality(a: int, b: int) -> Read:
    return lambda x: (x[:, a] == x[:, b]).astype(np.float64)


def _combination(a: int, b: int, sign: float) -> Read:
    return lambda x: np.asarray(x[:, a] + sign * x[:, b])


def _equal_pairs(left: Floats, right: Floats) -> list[tuple[int, int]]:
    """Return the pairs whose probability of being equal differs most."""
    if not any(_repeats(x).any() for x in (left, right)):
        return []
    i, j = np.triu_indices(left.shape[1], 1)
    a, b = (
        np.array([(x[:, p] == x[:, q]).sum() for p, q in zip(i, j, strict=True)])
        for x in (left, right)
    )
    gaps = np.abs(share_gap(a, b, len(left), len(right)))
    return _best(i, j, gaps)


def _best(i: NDArray[np.intp], j: NDArray[np.intp], gaps: Floats) -> list[tuple[int, int]]:
    best = np.argsort(-gaps, kind="stable")[:_MAX_PAIRS]
    return [(int(i[at]), int(j[at])) for at in best if gaps[at] > _TELLING]


def _related_pairs(left: Floats, right: Floats) -> list[tuple[int, int]]:
    """Return the pairs whose correlation differs most."""
    a, b = _correlation(left), _correlation(right)
    i, j = np.triu_indices(len(a), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Fisher's transformation has variance 1 / (n - 3), nearly, for any correlation.
        z = np.arctanh(np.clip(a, -1 + 1e-9, 1 - 1e-9)) - np.arctanh(
            np.clip(b, -1 + 1e-9, 1 - 1e-9)
        )
        gaps = np.abs(z[i, j]) / np.sqrt(1 / max(len(left) - 3, 1) + 1 / max(len(right) - 3, 1))
    return _best(i, j, gaps)


def _correlation(x: Floats) -> Floats:
    """Return correlations, of values moved in to six quartile ranges from the median."""
    x = np.where(np.isnan(x), 0.0, x)
    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75], axis=0)
    reach = 6 * (high - low)
    z = np.clip(x, middle - reach, middle + reach) - middle
    spread = z.std(axis=0)
    z = np.where(spread > 0, (z - z.mean(axis=0)) / np.where(spread > 0, spread, 1.0), 0.0)
    return np.asarray(z.T @ z / len(z))
