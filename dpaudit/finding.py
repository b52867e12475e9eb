"""What one look at one mechanism found, before it is judged."""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit.events import Event
from dpaudit.neighbors import NeighborPair
from dpaudit.results import Estimate, Histogram, Profile, Witness


@dataclass(frozen=True)
class Finding:
    """A certified look at one mechanism on one pair, by draws or by computation."""

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
