"""Cut every score at many thresholds, judge each cut, and choose the events to certify.

Every cut is judged by what it is *expected to certify*: its rates are first moved against us by
their selection uncertainty (the winner of thousands of cuts looks better than it is), then the
joint bound is approximated at the number of certifying draws and at the failure probability that it
will be given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.events.encoding import Encoder
from dpaudit.events.event import Event, Goal, Selection, trivial_event
from dpaudit.events.expected import ExpectedBounds, approximate_lower, approximate_upper
from dpaudit.events.scores import FeatureScore, Score
from dpaudit.stats import Target, excess_of_rates

Floats = NDArray[np.float64]

SELECTION_LEVEL = 0.1
"""One-sided level of the bounds by which cuts are judged before they are certified."""

_TRIFLE = 0.003
MAX_CUTS = 240


@dataclass(frozen=True)
class Cuts:
    """All cuts of one score: rates moved against us, for either likelier side."""

    score: Score
    thresholds: Floats
    rates: dict[str, tuple[Floats, Floats]]


def is_plain(score: Score) -> bool:
    """Tell whether no draw had a part in choosing a score."""
    return isinstance(score, FeatureScore) and not score.feature.learnt


def cut(score: Score, left: Floats, right: Floats) -> Cuts | None:
    """Count the event "score >= threshold" at well-spread thresholds on either side."""
    left, right = np.sort(left), np.sort(right)
    values = np.unique(np.concatenate([left, right]))
    if len(values) < 2:
        return None
    index = _spread_indices(len(values))
    below, at = values[index - 1], values[index]
    with np.errstate(over="ignore", invalid="ignore"):
        middle = below / 2 + at / 2
    thresholds = np.where((middle > below) & (middle <= at), middle, at)
    a = len(left) - np.searchsorted(left, thresholds, side="left")
    b = len(right) - np.searchsorted(right, thresholds, side="left")
    rates = {
        "left": (lower(a, len(left)), upper(b, len(right))),
        "right": (lower(b, len(right)), upper(a, len(left))),
    }
    return Cuts(score, thresholds, rates)


def lower(hits: NDArray[np.intp], draws: int) -> Floats:
    """Rates, moved down by their selection uncertainty."""
    return approximate_lower(hits, draws, SELECTION_LEVEL)


def upper(hits: NDArray[np.intp], draws: int) -> Floats:
    """Rates, moved up by their selection uncertainty."""
    return approximate_upper(hits, draws, SELECTION_LEVEL)


def _spread_indices(n: int) -> NDArray[np.intp]:
    """Return 1..n-1: all if few, else some even in rank and geometric towards both ends."""
    if n - 1 <= MAX_CUTS:
        return np.arange(1, n)
    tail = np.geomspace(1, n / 20, MAX_CUTS // 3).astype(np.intp)
    even = np.linspace(1, n - 1, MAX_CUTS // 3).astype(np.intp)
    return np.unique(np.clip(np.concatenate([tail, even, n - tail]), 1, n - 1))


def choose(encoder: Encoder, cuts: Sequence[Cuts], goal: Goal) -> Selection:
    """Pick the primary event and one event for each epsilon of the grid."""
    best: tuple[float, float] = (-np.inf, -np.inf)
    primary, point = trivial_event(encoder), None
    best_delta = np.zeros(len(goal.epsilons))
    chosen: list[Event | None] = [None] * len(goal.epsilons)
    for c in cuts:
        for side, (likely, rare) in c.rates.items():
            # Selection already moved the rates; now what certifying them will cost.
            sure = ExpectedBounds.of(likely, rare, goal.draws, goal.primary_failure_prob)
            (direct, mirrored), where = primary_values(sure, goal)
            value = np.maximum(direct, mirrored)
            separation = excess_of_rates(likely, rare, 0.0)
            top = int(np.lexsort((-np.arange(len(value)), separation, value))[-1])
            # Scores come simplest first; a later one must be better by more than a trifle.
            if (value[top] - _TRIFLE * abs(best[0]), separation[top]) > best:
                best = (float(value[top]), float(separation[top]))
                if goal.delta is None:
                    point = int(where[top])
                    target = Target(epsilon=float(goal.epsilons[point]))
                else:
                    target = Target(delta=goal.delta)
                as_is = bool(direct[top] >= mirrored[top])
                primary = _event(encoder, c, top, side, as_is, target, goal.learn_share)
            if not goal.wants_profile:
                continue
            sure = ExpectedBounds.of(likely, rare, goal.draws, goal.profile_failure_prob)
            for i, epsilon in enumerate(goal.epsilons):
                direct, mirrored = sure.excesses(epsilon)
                value = np.maximum(direct, mirrored)
                top = int(value.argmax())
                if value[top] > best_delta[i] * (1 + _TRIFLE):
                    best_delta[i] = value[top]
                    as_is = bool(direct[top] >= mirrored[top])
                    target = Target(epsilon=float(epsilon))
                    chosen[i] = _event(encoder, c, top, side, as_is, target, goal.learn_share)
    profile: list[Event] = []
    for event in chosen:
        if event is not None and not any(_same_cut(event, e) for e in [primary, *profile]):
            profile.append(event)
    index = point if point is not None else len(goal.epsilons) // 2
    at = (float(goal.epsilons[index]), float(goal.claimed_deltas[index]))
    return Selection(primary, tuple(profile), best, at)


def primary_values(
    sure: ExpectedBounds, goal: Goal
) -> tuple[tuple[Floats, Floats], NDArray[np.intp]]:
    """Worth of each cut, as it is and mirrored; for curves also where it challenges best."""
    if goal.delta is not None:
        direct, mirrored = (np.maximum(loss, 0.0) for loss in sure.losses(goal.delta))
        return (direct, mirrored), np.zeros(len(direct), np.intp)
    allowed = np.maximum(goal.claimed_deltas, 1e-300)[:, None]
    both = np.stack([sure.excesses(e) for e in goal.epsilons], axis=1) / allowed  # [2, e, cuts]
    both[:, 0] = -1.0  # at epsilon = 0 the comparison says little; challenge the curve elsewhere
    where = both.max(axis=0).argmax(axis=0)
    direct, mirrored = both[:, where, np.arange(both.shape[2])]
    return (direct, mirrored), where


def _event(
    encoder: Encoder,
    cuts: Cuts,
    at: int,
    side: str,
    as_is: bool,
    target: Target,
    learn_share: float,
) -> Event:
    """Freeze a cut as the event, or as the complement where its swapped use is the stronger."""
    other = "right" if side == "left" else "left"
    return Event(
        cuts.score,
        float(cuts.thresholds[at]),
        above=as_is,
        likelier=side if as_is else other,
        encoder=encoder,
        target=target,
        learnt_share=0.0 if is_plain(cuts.score) else learn_share,
    )


def _same_cut(a: Event, b: Event) -> bool:
    """Whether two events rest on the same counts and the same pair of bounds."""
    same_bounds = (a.above == b.above) == (a.likelier == b.likelier)
    return a.score is b.score and a.threshold == b.threshold and same_bounds
