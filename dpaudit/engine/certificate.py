"""What one look at one mechanism certifies, before it is judged."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpaudit.engine.tally import RankedTally, Tally
from dpaudit.engine.task import Task
from dpaudit.events import Event
from dpaudit.neighbors import NeighborPair
from dpaudit.results import (
    CanaryGuesses,
    Estimate,
    Histogram,
    LongProfile,
    Profile,
    SequentialPath,
    Witness,
)
from dpaudit.search import SearchRecord
from dpaudit.stats import Counts, RateBounds


class Bound(NamedTuple):
    """A number that the mechanism needs: as estimated, as certified, and the counts behind it."""

    estimated: float
    lower: float
    counts: Counts | None = None


@dataclass(frozen=True)
class Certificate:
    """A certified look at one mechanism on one pair, by draws or by computation.

    `p_value` is that of the claim, and 1 where it was not refuted. `bounds` hold together, except
    with the failure probability of `epsilon`: what is certified of whole curves follows from them.
    `is_constant` says that all outputs on both datasets were one and the same.
    `tally` has the counts behind `epsilon`, of fresh draws, and `share` is the part of its failure
    probability that they were given. `reason` and `advice` replace the sentences that would be
    made from the other fields. `mu` is a certified mu of Gaussian DP, where the bounds give less.
    Other fields as of :class:`dpaudit.results.AuditResult`.
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
    p_value: float = 1.0
    event: Event | None = None
    bounds: tuple[RateBounds, ...] = ()
    tally: Tally | RankedTally | None = None
    share: float = 1.0
    sequential: SequentialPath | None = None
    long_profile: LongProfile | None = None
    search: SearchRecord | None = None
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    is_constant: bool = False
    reason: str = ""
    advice: str = ""
    mu: float = 0.0
    canaries: CanaryGuesses | None = None

    @classmethod
    def of(
        cls,
        task: Task,
        pair: NeighborPair,
        point: tuple[float, float],
        *,
        epsilon: Bound,
        delta: Bound,
        certified: Iterable[float],
        estimated: Iterable[float],
        method: str,
        refuted: bool | None = None,
        explored: int = 0,
        certifying: int = 0,
        computed: bool = False,
        whole: bool = False,
        **rest: Any,
    ) -> Certificate:
        """Put together what every kind of look finds.

        Parameters
        ----------
        task : Task
            What was asked.
        pair, point
            Where the look ended: the pair, and (epsilon, delta) of the claim that it challenged.
        epsilon, delta : Bound
            Epsilon needed at the claimed delta, and delta at the claimed epsilon.
        certified, estimated : iterable of float
            Deltas over the grid of the task.
        method : str
            How the bounds were obtained.
        refuted : bool, optional
            Whether the claim falls; by default whether a bound exceeds it.
        explored, certifying : int
            Draws per dataset.
        computed : bool
            Whether nothing was left to draws, so that no bound can be wrong.
        whole : bool
            Whether the computed bounds are the truth, and not only below it.
        **rest
            Other fields.
        """
        if refuted is None:
            refuted = epsilon.lower > point[0] or delta.lower > point[1]

        def estimate(bound: Bound, most: float) -> Estimate:
            return Estimate(
                value=bound.estimated,
                lower=bound.lower,
                upper=bound.lower if whole else most,
                failure_prob=0.0 if computed else task.failure_prob,
                method=method,
                counts=bound.counts,
                certified=True,
            )

        return cls(
            pair=pair,
            point=point,
            refuted=bool(refuted),
            epsilon=estimate(epsilon, math.inf),
            delta=estimate(delta, 1.0),
            profile=Profile(
                tuple(task.grid.tolist()),
                tuple(map(float, certified)),
                tuple(map(float, estimated)),
                tuple(task.claimed.tolist()),
            ),
            draws={"explore": explored, "certify": certifying},
            **rest,
        )


def severity(found: Certificate) -> tuple[bool, float, float]:
    """Order of certificates: violations first; then by epsilon, and by the excess of delta.

    On a curve, epsilons at different deltas do not compare, excesses do.
    """
    claimed_epsilon, claimed_delta = found.point
    ratio = found.delta.lower / max(claimed_delta, 1e-300)
    return found.refuted, found.epsilon.lower - claimed_epsilon, ratio
