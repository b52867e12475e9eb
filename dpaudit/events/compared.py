"""Compare the draws of many inputs at once, to find the two inputs that are easiest to tell apart.

The events are read from the pooled draws. For each event, the rates of all inputs are counted once.
So hundreds of inputs need no more draws than the sum over the inputs, and not over their pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.events.cuts import lower, upper
from dpaudit.events.encoding import Encoder
from dpaudit.events.features import all_features

Floats = NDArray[np.float64]

_CELLS = 4096  # Values of a feature beyond this number are put into bins.
_BINS = 64
_WORK = 2e8  # Largest number of comparisons of two inputs at one event.


def separations(draws: Sequence[NDArray[Any]], delta: float | None) -> Floats:
    """Return how far apart the draws of each pair of inputs are, as an estimate.

    Parameters
    ----------
    draws : sequence of ndarray, shape [size, ...]
        Draws of each of K inputs.
    delta : float or None
        Delta at which epsilons are compared. With None, total variation distances are compared.

    Returns
    -------
    ndarray, shape (K, K)
        Entry ``[i, j]`` is the epsilon of the best event that is likelier at input i than at input
        j. The rates are moved towards each other by their uncertainty. The values are estimates,
        and only rank pairs.
    """
    encoder = Encoder.learn(*draws)
    encoded = [encoder(one) for one in draws]
    sizes = np.array([len(one) for one in encoded])
    best = np.full((len(draws), len(draws)), -np.inf)
    found = list(_hits(encoder, encoded, sizes))
    if not found:  # all draws are equal
        return best
    hits = np.concatenate(found)
    low = np.stack([lower(column, n) for column, n in zip(hits.T, sizes, strict=True)])
    high = np.stack([upper(column, n) for column, n in zip(hits.T, sizes, strict=True)])
    if delta is None:
        tops, bottoms = low, high
    else:
        with np.errstate(divide="ignore"):
            tops, bottoms = np.log(np.maximum(low - delta, 0.0)), np.log(high)
    promise = tops.max(axis=0) - bottoms.min(axis=0)
    most = max(int(_WORK / len(draws) ** 2), 1)
    for event in np.argsort(-promise, kind="stable")[:most]:
        np.maximum(best, tops[:, event, None] - bottoms[None, :, event], out=best)
    np.fill_diagonal(best, -np.inf)
    return best


def _hits(
    encoder: Encoder, encoded: Sequence[Floats], sizes: NDArray[np.intp]
) -> Iterator[NDArray[np.intp]]:
    """Yield the number of draws of each input in some events, shape (events, K)."""
    owner = np.repeat(np.arange(len(encoded)), sizes)
    pooled = np.concatenate(list(encoded))
    halves = (np.concatenate(list(encoded[start::2])) for start in (0, 1))
    columns = [(feature(pooled), feature.ordered) for feature in all_features(encoder, *halves)]
    if len(encoder.own) > 1:
        _, rows = np.unique(pooled, axis=0, return_inverse=True, equal_nan=True)
        columns.append((np.ravel(rows).astype(float), False))
    for values, ordered in columns:
        seen, cells = np.unique(values, return_inverse=True)  # NaN is one value, and the last
        if len(seen) < 2:
            continue
        if len(seen) > (_BINS if ordered else _CELLS):
            if not ordered:  # hardly any value occurs twice
                continue
            edges = np.unique(np.nanquantile(values, np.linspace(0, 1, _BINS + 1)[1:-1]))
            cells = np.searchsorted(edges, values, side="right")  # NaN is beyond all edges
            cells = np.where(np.isnan(values), len(edges) + 1, cells)
        counts = np.zeros((int(cells.max()) + 1, len(encoded)), dtype=np.intp)
        np.add.at(counts, (cells, owner), 1)
        counts = counts[counts.any(axis=1)]
        yield counts
        yield sizes - counts
        if ordered:
            above = np.cumsum(counts[::-1], axis=0)[::-1][1:]
            yield above
            yield sizes - above
