"""Conversions between item-level and user-level DP, by Observation 28 and by group privacy.

A user-level algorithm should be better than these conversions, so the conversions are also
baselines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.few_examples.items import ItemAlgorithm, known_pmf
from algorithms.few_examples.populations import items_of


class UserMechanism(Protocol):
    """A user-level algorithm whose distribution is known."""

    def pmf(self, data: Any) -> FloatArray:
        """Return the distribution of the output on users' items, [n, m]."""


@dataclass(frozen=True)
class OneExample:
    """A user-level algorithm that keeps the first item of each user.

    The source is few_examples, Observation 28.1.

    **Guarantee** Between users, the result has the same DP that `algorithm` has between items.

    **Departs** The paper discards "all-but-one example". This class keeps the first example.

    Attributes
    ----------
    algorithm : ItemAlgorithm
    """

    algorithm: ItemAlgorithm

    def pmf(self, data: Any) -> FloatArray:
        """Return the distribution of the output on users' items, [n, m]."""
        items = items_of(data, self.algorithm.universe)
        return known_pmf(self.algorithm, self.algorithm.pmf(items[:, 0]))


@dataclass(frozen=True)
class AllExamples:
    """A user-level algorithm that applies the item-level algorithm to all items, by group privacy.

    The source is few_examples, Lemma 6 with k = m.

    **Guarantee** (m epsilon, (exp(m epsilon) - 1) / (exp(epsilon) - 1) delta)-user-level DP if
    `algorithm` is (epsilon, delta)-item-level DP.

    Attributes
    ----------
    algorithm : ItemAlgorithm
    """

    algorithm: ItemAlgorithm

    def pmf(self, data: Any) -> FloatArray:
        """Return the distribution of the output on users' items, [n, m]."""
        items = items_of(data, self.algorithm.universe)
        return known_pmf(self.algorithm, self.algorithm.pmf(items.reshape(-1)))


@dataclass(frozen=True)
class SuperUsers:
    """An item-level algorithm that groups m successive items into a user.

    The source is few_examples, Observation 28.2.

    **Guarantee** Between items, the result has the same DP that `mechanism` has between users.

    **Departs** The number of items must be a multiple of m, as in the paper.

    Attributes
    ----------
    mechanism : UserMechanism
    m : int
        At least 1.
    """

    mechanism: UserMechanism
    m: int

    def __post_init__(self) -> None:
        _validate.keep(self, m=_validate.integer("m", self.m, at_least=1))

    def pmf(self, data: Any) -> FloatArray:
        """Return the distribution of the output on items, [N] or [N, 1]."""
        items = _validate.integers("data", data, ndims=(1, 2), low=0).reshape(-1)
        if items.size % self.m:
            raise ValueError(
                f"the number of items in data must be a multiple of m = {self.m}, got "
                f"{items.size} items"
            )
        return self.mechanism.pmf(items.reshape(-1, self.m))
