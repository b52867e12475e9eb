"""Audits that are computed: a known pmf needs no draws and leaves no chance of error."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.claims import Claim
from dpaudit.divergence import hockey_stick, hockey_stick_inverse
from dpaudit.errors import MechanismError
from dpaudit.events import Event
from dpaudit.mechanisms import ExactMechanism, mechanism_name
from dpaudit.neighbors import NeighborPair, PairFamily
from dpaudit.results import Estimate, Histogram, Profile, Witness


@dataclass(frozen=True)
class Finding:
    """What one look at one mechanism found, sampled or computed."""

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


def compute(
    mechanism: ExactMechanism,
    claim: Claim,
    pairs: PairFamily,
    grid: NDArray[np.float64],
    claimed: NDArray[np.float64],
) -> Finding:
    """Look at every pair in both directions; nothing is left to chance."""
    start = time.perf_counter()
    best: Finding | None = None
    for pair in pairs:
        laws = {side: _pmf(mechanism, getattr(pair, side)) for side in ("left", "right")}
        for likelier in ("left", "right"):
            rare = "right" if likelier == "left" else "left"
            context = _Context(mechanism, claim, pair, grid, claimed, start)
            found = context.compare(laws[likelier], laws[rare], likelier)
            if best is None or _worth(found) > _worth(best):
                best = found
    assert best is not None  # a family holds at least one pair
    return best


@dataclass(frozen=True)
class _Context:
    """One pair of one computed audit."""

    mechanism: ExactMechanism
    claim: Claim
    pair: NeighborPair
    grid: NDArray[np.float64]
    claimed: NDArray[np.float64]
    start: float

    def compare(self, p: NDArray[np.float64], q: NDArray[np.float64], likelier: str) -> Finding:
        """Compare two pmfs, the likelier side first."""
        try:
            deltas = np.array([hockey_stick(p, q, float(e)) for e in self.grid])
        except ValueError as error:
            raise MechanismError(f"{mechanism_name(self.mechanism)}.pmf: {error}") from None
        point = self.claim.point
        if point is None:
            ratio = deltas / np.maximum(self.claimed, 1e-300)
            at = int(ratio.argmax())
            point = (float(self.grid[at]), float(self.claimed[at]))
        epsilon = hockey_stick_inverse(p, q, point[1])
        delta = hockey_stick(p, q, point[0])
        # Computed in floating point: a difference within rounding is no violation.
        refuted = delta > point[1] * (1 + 1e-9) + 1e-15 and epsilon > point[0] * (1 + 1e-9) + 1e-12
        inside = p > np.exp(min(point[0], 700.0)) * q
        outcomes = [str(i) for i in np.flatnonzero(inside)]
        words = "outcome in {" + ", ".join(outcomes[:8]) + (", ..." if outcomes[8:] else "") + "}"
        left, right = (p, q) if likelier == "left" else (q, p)
        scale = 10**6
        return Finding(
            pair=self.pair,
            point=point,
            refuted=bool(refuted),
            epsilon=Estimate(epsilon, epsilon, epsilon, 0.0, "computed from the pmf", None, True),
            delta=Estimate(delta, delta, delta, 0.0, "computed from the pmf", None, True),
            profile=Profile(
                tuple(self.grid.tolist()),
                tuple(deltas.tolist()),
                tuple(deltas.tolist()),
                tuple(self.claimed.tolist()),
            ),
            witness=Witness(
                words if outcomes else "any outcome",
                likelier,
                None,
                float(p[inside].sum()) if outcomes else 1.0,
                float(q[inside].sum()) if outcomes else 1.0,
            ),
            histogram=Histogram(
                "outcome (expected counts of 1,000,000 draws)",
                tuple(str(i) for i in range(len(p))),
                None,
                tuple(round(x * scale) for x in left),
                tuple(round(x * scale) for x in right),
                tuple(inside.tolist()),
            ),
            draws={"explore": 0, "certify": 0},
            mechanism_seconds=time.perf_counter() - self.start,
            event=None,
        )


def _worth(found: Finding) -> tuple[bool, float, float]:
    """Violations first; on a curve epsilons at different deltas do not compare, excesses do."""
    claimed_epsilon, claimed_delta = found.point
    ratio = found.delta.lower / max(claimed_delta, 1e-300)
    return found.refuted, found.epsilon.lower - claimed_epsilon, ratio


def _pmf(mechanism: ExactMechanism, data: NDArray[Any]) -> NDArray[np.float64]:
    try:
        return np.asarray(mechanism.pmf(data), dtype=float)
    except Exception as error:
        raise MechanismError(
            f"{mechanism_name(mechanism)}.pmf raised {type(error).__name__}: {error}"
        ) from error
