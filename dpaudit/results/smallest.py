"""The smallest pair on which a claim is refuted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dpaudit._json import Count
from dpaudit._validate import exact_keys
from dpaudit.neighbors import NeighborPair
from dpaudit.results.datasets import sizes_and_difference
from dpaudit.results.estimates import Estimate, Histogram, Witness


@dataclass(frozen=True)
class SmallestPair:
    """The smallest pair that was found on which the claim is refuted, with its own certificate.

    The pair was found on other draws than those that certify it.

    Attributes
    ----------
    pair_words : str
        The pair, in words.
    epsilon, delta : Estimate
        Epsilon that the mechanism needs at the claimed delta on this pair, and delta that it needs
        at the claimed epsilon.
    witness : Witness
        The simplest event that was expected to refute the claim.
    histogram : Histogram
        Outputs of both sides along the score of the witness.
    draws : dict
        Number of draws per dataset: ``explore`` draws found the pair and the event, and ``certify``
        draws tested the event.
    tried : int
        Number of pairs that were tried.
    pair : NeighborPair or None
        The two datasets. The pair is stored in a separate file, and is None if that file is
        missing.
    event : Event or None
        The event as a function ``event(outputs) -> bool [size]``. This function is not stored.
    """

    pair_words: str
    epsilon: Estimate
    delta: Estimate
    witness: Witness
    histogram: Histogram
    draws: dict[str, Count]
    tried: Count
    pair: NeighborPair | None = field(default=None, repr=False, compare=False)
    event: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        exact_keys(self, "draws", "explore", "certify")

    @property
    def words(self) -> str:
        """The size and the values of the pair on one line."""
        return self.pair_words if self.pair is None else sizes_and_difference(self.pair)
