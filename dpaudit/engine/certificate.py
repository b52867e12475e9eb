"""What one look at one mechanism found, before it is judged."""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit.events import Event
from dpaudit.neighbors import NeighborPair
from dpaudit.results import Estimate, Histogram, LongProfile, Profile, SequentialPath, Witness
from dpaudit.search import SearchRecord
from dpaudit.stats import RateBounds


@dataclass(frozen=True)
class Certificate:
    """A certified look at one mechanism on one pair, by draws or by computation.

    `bounds` hold together, except with the failure probability of `epsilon`: what is certified of
    whole curves follows from them.
    """

    pair: NeighborPair
    point: tuple[float, float]
    refuted: bool
    epsilon: Estimate
    delta: Estimate
    profile: Profile
    witness: Witness
    histogram: Histogram
    draws: dict[str, int]
    mechanism_seconds: float
    event: Event | None
    bounds: tuple[RateBounds, ...] = ()
    sequential: SequentialPath | None = None
    long_profile: LongProfile | None = None
    search: SearchRecord | None = None
    notes: tuple[str, ...] = ()
