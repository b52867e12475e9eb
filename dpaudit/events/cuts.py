"""Cut every score at many thresholds, judge each cut, and choose the events to certify.

Every cut is judged by what it is *expected to certify*: its rates are first moved against us by
their selection uncertainty (the winner of thousands of cuts looks better than it is), then the
joint bound is approximated at the number of certifying draws and at the failure probability that it
will be given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.events.encoding import Encoder
from dpaudit.events.event import Event, Goal, Guess, Selection, trivial_event
from dpaudit.events.expected import ExpectedBounds, approximate_lower, approximate_upper
from dpaudit.events.guessing import ExpectedGuess, pairs_of_cuts
from dpaudit.events.scores import FeatureScore, Score
from dpaudit.stats import Target, excess_of_rates

Floats = NDArray[np.float64]

SELECTION_LEVEL = 0.1
"""One-sided level of the bounds by which cuts are judged before they are certified."""

_TRIFLE = 0.003
MAX_CUTS = 240

_GUESSED = 4  # scores whose cuts are paired

OTHER = {"left": "right", "right": "left"}


@dataclass(frozen=True)
class Cuts:
    """All cuts of one score: draws at or above each threshold, and their rates moved against us.

    Parameters
    ----------
    score : Score
        What is cut.
    thresholds : ndarray, shape (k,)
        Rising.
    hits : dict of str to ndarray of int, shape (k,)
        Draws of each side at or above the thresholds.
    draws : dict of str to int
        Of each side.
    """

    score: Score
    thresholds: Floats
    hits: dict[str, NDArray[np.intp]]
    draws: dict[str, int]

    def rates(self, likelier: str) -> tuple[Floats, Floats]:
        """Return rates moved against us, on the likelier side and on the other."""
        other = OTHER[likelier]
        return (
            lower(self.hits[likelier], self.draws[likelier]),
            upper(self.hits[other], self.draws[other]),
        )


def is_plain(score: Score) -> bool:
    """Tell whether no draw had a part in choosing a score."""
    return isinstance(score, FeatureScore) and not score.feature.learnt


def cut(score: Score, left: Floats, right: Floats) -> Cuts | None:
    """Count the event "score >= threshold" at well-spread thresholds on either side."""
    left, right = np.sort(left), np.sort(right)
    both = np.sort(np.concatenate([left, right]), kind="stable")  # merges what is sorted
    values = both[np.concatenate([[True], both[1:] != both[:-1]])]
    if len(values) < 2:
        return None
    index = _spread_indices(len(values))
    # "No answer" lies below everything: the threshold above it must be a number.
    below, at = np.maximum(values[index - 1], -np.finfo(np.float64).max), values[index]
    with np.errstate(over="ignore", invalid="ignore"):
        middle = below / 2 + at / 2
    thresholds = np.where((middle > below) & (middle <= at), middle, at)
    sides = {"left": left, "right": right}
    hits = {
        side: len(drawn) - np.searchsorted(drawn, thresholds, side="left")
        for side, drawn in sides.items()
    }
    return Cuts(score, thresholds, hits, {side: len(drawn) for side, drawn in sides.items()})


def lower(hits: NDArray[Any], draws: int) -> Floats:
    """Rates, moved down by their selection uncertainty."""
    return approximate_lower(hits, draws, SELECTION_LEVEL)


def upper(hits: NDArray[Any], draws: int) -> Floats:
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
    """Pick the primary event, or a guess, and one event for each epsilon of the grid."""
    best: tuple[float, float] = (-np.inf, -np.inf)
    primary: Event | Guess = trivial_event(encoder)
    point = None
    worth: list[tuple[float, float, int, str]] = []
    best_delta = np.zeros(len(goal.epsilons))
    chosen: list[Event | None] = [None] * len(goal.epsilons)
    for order, c in enumerate(cuts):
        for side in OTHER:
            likely, rare = c.rates(side)
            # Selection already moved the rates; now what certifying them will cost.
            sure = ExpectedBounds.of(likely, rare, goal.draws, goal.primary_failure_prob)
            (direct, mirrored), where = primary_values(sure, goal)
            value = np.maximum(direct, mirrored)
            separation = excess_of_rates(likely, rare, 0.0)
            top = int(np.lexsort((-np.arange(len(value)), separation, value))[-1])
            worth.append((float(value[top]), float(separation[top]), -order, side))
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
    guess = _best_guess(encoder, cuts, sorted(worth, reverse=True)[:_GUESSED], goal)
    if guess is not None and guess.value > max(best[0], 0.0) * (1 + _TRIFLE):
        best = (guess.value, max(guess.separation, best[1]))
        primary, point = guess.guess, guess.point
    profile: list[Event] = []
    for event in chosen:
        known = [e for e in (primary, *profile) if isinstance(e, Event)]
        if event is not None and not any(_same_cut(event, e) for e in known):
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


@dataclass(frozen=True)
class _ChosenGuess:
    value: float
    separation: float
    guess: Guess
    point: int | None


def _best_guess(
    encoder: Encoder,
    cuts: Sequence[Cuts],
    worth: Sequence[tuple[float, float, int, str]],
    goal: Goal,
) -> _ChosenGuess | None:
    """Pair cuts of the scores that are worth most, and return the pair that is worth most."""
    best: _ChosenGuess | None = None
    for _, _, order, side in worth:
        c = cuts[-order]
        other = OTHER[side]
        near: tuple[int, int] | None = None
        for _ in ("coarsely", "around the best"):
            pairs = pairs_of_cuts(
                c.hits[side], c.hits[other], (c.draws[side], c.draws[other]), SELECTION_LEVEL, near
            )
            sure = ExpectedGuess.of(
                pairs.correct, pairs.wrong, 2 * goal.draws, goal.primary_failure_prob
            )
            values, where = guess_values(sure, goal)
            top = int(values.argmax())
            near = (int(pairs.upper[top]), int(pairs.lower[top]))
        assert near is not None
        if best is not None and values[top] <= best.value * (1 + _TRIFLE):
            continue
        point = None if goal.delta is not None else int(where[top])
        target = (
            Target(delta=goal.delta)
            if point is None
            else Target(epsilon=float(goal.epsilons[point]))
        )
        above, below = (
            replace(
                _event(encoder, c, at, side, True, target, goal.learn_share),
                above=is_above,
                likelier=likelier,
            )
            for at, is_above, likelier in ((near[0], True, side), (near[1], False, other))
        )
        left, right = (above, below) if side == "left" else (below, above)
        separation = float(pairs.correct[top] - pairs.wrong[top])
        best = _ChosenGuess(float(values[top]), separation, Guess(left, right), point)
    return best


def guess_values(sure: ExpectedGuess, goal: Goal) -> tuple[Floats, NDArray[np.intp]]:
    """Worth of each pair of cuts; for curves also where it challenges best."""
    if goal.delta is not None:
        values = np.maximum(sure.loss(goal.delta), 0.0)
        return values, np.zeros(len(values), np.intp)
    allowed = np.maximum(goal.claimed_deltas, 1e-300)[:, None]
    ratios = np.stack([sure.excess(e) for e in goal.epsilons]) / allowed
    ratios[0] = -1.0
    where = ratios.argmax(axis=0)
    return ratios[where, np.arange(ratios.shape[1])], where


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
    return Event(
        cuts.score,
        float(cuts.thresholds[at]),
        above=as_is,
        likelier=side if as_is else OTHER[side],
        encoder=encoder,
        target=target,
        learnt_share=0.0 if is_plain(cuts.score) else learn_share,
    )


def _same_cut(a: Event, b: Event) -> bool:
    """Whether two events rest on the same counts and the same pair of bounds."""
    same_bounds = (a.above == b.above) == (a.likelier == b.likelier)
    return a.score is b.score and a.threshold == b.threshold and same_bounds
