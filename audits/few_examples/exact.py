"""Code that the audits share, for mechanisms with known distribution and users of two kinds."""

from __future__ import annotations

import itertools
from functools import lru_cache, partial

import numpy as np

from dpaudit import NeighborPair
from dpaudit.mechanisms import mechanism_name


class Exact:
    """Mechanism that wraps a function `..._pmf` with its parameters.

    The mechanism computes each dataset only once.
    """

    def __init__(self, pmf, **parameters):
        self._pmf, self._parameters = pmf, parameters
        self._once = lru_cache(maxsize=None)(self._compute)
        self.__name__ = mechanism_name(partial(pmf, **parameters))

    def _compute(self, shape, dtype, raw):
        return self._pmf(np.frombuffer(raw, dtype).reshape(shape), **self._parameters)

    def pmf(self, data):
        """Return the distribution of the output."""
        data = np.ascontiguousarray(data)
        return self._once(data.shape, data.dtype.str, data.tobytes())


def users(counts, kinds):
    """Return an array of users, [n, m].

    In this array, `counts[i]` users have the items `kinds[i]`.
    """
    return np.repeat(np.asarray(kinds), counts, axis=0)


def moved(counts, kinds, source, target):
    """Return a pair in which a user of one kind becomes a user of another kind."""
    left = users(counts, kinds)
    right = left.copy()
    right[sum(counts[:source])] = kinds[target]
    return NeighborPair(left, right, recipe=f"{counts} users; one of kind {source} for {target}")


def all_pairs(n, kinds):
    """Return every pair of n users of these kinds, up to the order of the users."""
    return [
        moved(counts, kinds, source, target)
        for counts in itertools.product(range(n + 1), repeat=len(kinds))
        if sum(counts) == n
        for source, target in itertools.combinations(range(len(kinds)), 2)
        if counts[source]
    ]
