"""Learn many scores, then choose the events that will be certified.

The exploration draws of each side are split in two. Scores are learnt on one part; on the other
every score is cut at many thresholds, and each cut is judged by what it is *expected to certify*:
its rates are first moved against us by their selection uncertainty (the winner of thousands of
cuts looks better than it is), then the joint bound is approximated at the number of certifying
draws and at the failure probability that it will be given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.events.bits import FloatAttack
from dpaudit.events.encoding import Encoder, row_words
from dpaudit.events.expected import ExpectedBounds, approximate_lower, approximate_upper
from dpaudit.events.features import all_features
from dpaudit.events.scores import (
    FeatureScore,
    ModelScore,
    OutcomeScore,
    Score,
    TableScore,
    additive_score,
    boosted_score,
    logistic_score,
)
from dpaudit.stats import Target, excess_of_rates

Floats = NDArray[np.float64]

LEARN_SHARE = 0.5
"""Part of the exploration draws on which scores are learnt, unless the goal says otherwise;
thresholds are chosen on the rest."""

SELECTION_LEVEL = 0.1
"""One-sided level of the bounds by which cuts are judged before they are certified."""

_TRIFLE = 0.003
MAX_CUTS = 240
_LEAST_LOGISTIC, _LOGISTIC_DRAWS = 200, 40_000
_LEAST_BOOSTED, _BOOSTED_DRAWS = 1_000, 25_000


@dataclass(frozen=True, eq=False)
class Event:
    """A set of outputs, fixed before the draws that certify it.

    Call it with outputs of the mechanism: ``event(outputs) -> bool [size]``.

    Parameters
    ----------
    score : Score
        Number of each output.
    threshold : float
        Where the score is cut.
    above : bool
        Whether the event fires at and above the threshold, or below it.
    likelier : {"left", "right"}
        The side on which it is declared to be likelier.
    encoder : Encoder
        Turns outputs into the matrix that the score reads.
    target : Target
        What it was chosen for, where the bound on its counts will be sharpest.
    example : str
        A typical output inside, where the score says nothing to a person.
    learnt_share : float
        Part of the draws, from the first, on which the score was learnt; 0 for a plain feature.
        The event's rates are told better by the others, which only chose its threshold.
    """

    score: Score = field(repr=False)
    threshold: float
    above: bool
    likelier: str
    encoder: Encoder = field(repr=False)
    target: Target
    example: str = ""
    learnt_share: float = 0.0

    @property
    def description(self) -> str:
        """The event in words; for learnt scores, with an output that lies in it."""
        words = self.score.words(self.threshold, self.above)
        return f"{words}, such as {self.example}" if self.example else words

    def fires(self, scores: Floats) -> NDArray[np.bool_]:
        """Return whether the event fires, from scores already computed."""
        above = scores >= self.threshold
        return above if self.above else ~above

    def __call__(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return whether each output lies in the event, shape ``[size]``."""
        return self.fires(self.score(self.encoder(np.asarray(outputs))))


@dataclass(frozen=True)
class Goal:
    """What the events are chosen for.

    Parameters
    ----------
    delta : float or None
        Claimed delta at which epsilon is to be certified; None when the claim is a curve.
    epsilons : ndarray, shape (e,)
        Grid over which the profile is certified; one event at most for each.
    claimed_deltas : ndarray, shape (e,)
        The claim on that grid.
    draws : int
        Certifying draws per dataset.
    primary_failure_prob, profile_failure_prob : float
        Given to the primary event, and to each event of the profile.
    learn_share : float
        Part of the exploration draws on which scores are learnt.
    wants_profile : bool
        Whether events are chosen for the profile too, or the primary one alone.
    """

    delta: float | None
    epsilons: Floats
    claimed_deltas: Floats
    draws: int
    primary_failure_prob: float
    profile_failure_prob: float
    learn_share: float = LEARN_SHARE
    wants_profile: bool = True


@dataclass(frozen=True)
class Selection:
    """The frozen events: the primary first, then those of the profile.

    Parameters
    ----------
    primary : Event
        The event on which most is staked.
    profile : tuple of Event
        One for each epsilon of the grid, where it is another one.
    objective : (float, float)
        For comparing pairs: the epsilon (of a curve, the excess over the claim as a ratio) that the
        primary event is expected to certify, and the separation of the two sides, its difference of
        rates, which orders pairs of equal expectation.
    point : (float, float)
        Of the claim's curve, where the primary event challenges it best.
    """

    primary: Event
    profile: tuple[Event, ...]
    objective: tuple[float, float]
    point: tuple[float, float]


@dataclass(frozen=True)
class _Cuts:
    """All cuts of one score: rates moved against us, for either likelier side."""

    score: Score
    thresholds: Floats
    rates: dict[str, tuple[Floats, Floats]]


def learn(
    left: NDArray[Any],
    right: NDArray[Any],
    goal: Goal,
    *,
    rng: np.random.Generator,
    float_attack: FloatAttack | None = None,
) -> Selection:
    """Learn scores on one part of the exploration draws and choose events on the other.

    Parameters
    ----------
    left, right : ndarray, shape [size, ...]
        Exploration draws, at least 2 a side.
    goal : Goal
        What to certify.
    rng : numpy.random.Generator
        For the tree learner.
    float_attack : FloatAttack, optional
        Also look at the low bits of the outputs.
    """
    encoder = Encoder.learn(np.concatenate([left, right]))
    encoded = [encoder(left), encoder(right)]
    halves = [max(int(len(x) * goal.learn_share), 1) for x in encoded]
    learn_left, learn_right = (x[:h] for x, h in zip(encoded, halves, strict=True))
    rest = tuple(x[h:] for x, h in zip(encoded, halves, strict=True))
    cuts = []
    for score in _scores(encoder, learn_left, learn_right, rng, float_attack):
        # A feature that no draw had a part in choosing may be cut with the help of all of them.
        cuts.append(_cut(score, *(score(x) for x in (encoded if _plain(score) else rest))))
    chosen = _choose(encoder, [c for c in cuts if c is not None], goal)
    primary = chosen.primary
    if isinstance(primary.score, ModelScore):
        side = rest[0] if primary.likelier == "left" else rest[1]
        chosen = replace(chosen, primary=replace(primary, example=_typical(primary, side)))
    return chosen


def expectation(
    event: Event, left: NDArray[Any], right: NDArray[Any], goal: Goal
) -> tuple[float, float]:
    """Judge a frozen event on draws that had no part in it, as :attr:`Selection.objective` does.

    Nothing was chosen on these draws, so that no luck is taken for a find.
    """
    hits = {"left": int(event(left).sum()), "right": int(event(right).sum())}
    draws = {"left": len(left), "right": len(right)}
    other = "right" if event.likelier == "left" else "left"
    likely = _lower(np.array([hits[event.likelier]]), draws[event.likelier])
    rare = _upper(np.array([hits[other]]), draws[other])
    sure = ExpectedBounds.of(likely, rare, goal.draws, goal.primary_failure_prob)
    (direct, mirrored), _ = _primary_values(sure, goal)
    value = float(np.maximum(direct, mirrored)[0])
    return value, float(excess_of_rates(likely, rare, 0.0)[0])


def _plain(score: Score) -> bool:
    return isinstance(score, FeatureScore) and not score.feature.learnt


def _typical(event: Event, encoded: Floats) -> str:
    """Words of the output in the middle of those inside; nothing when none is."""
    scores = event.score(encoded)
    inside = np.flatnonzero(event.fires(scores))
    if len(inside) == 0:
        return ""
    middle = inside[np.argsort(scores[inside], kind="stable")[len(inside) // 2]]
    return row_words(event.encoder, encoded[middle])


def _scores(
    encoder: Encoder,
    left: Floats,
    right: Floats,
    rng: np.random.Generator,
    float_attack: FloatAttack | None,
) -> list[Score]:
    both = np.concatenate([left, right])
    seen = all_features(encoder, left, right)
    if float_attack is not None:
        seen += float_attack.features(encoder, left, right)
    features = [f for f in seen if _varies(f(both))]
    tables = [TableScore.learn(f, f(left), f(right)) for f in features]
    plain = [score for f in features if f.ordered for score in FeatureScore.learn(f, f(both))]
    scores: list[Score] = [*plain, *tables]
    if features and len(encoder.columns) > 1:
        whole = OutcomeScore.learn(encoder, left, right)
        models: list[Score | None] = [whole, additive_score(tables)]
        least = min(len(left), len(right))
        if least >= _LEAST_LOGISTIC and any(f.ordered for f in features):
            few = slice(None, _LOGISTIC_DRAWS)
            models.append(logistic_score(features, left[few], right[few]))
        if least >= _LEAST_BOOSTED:
            few = slice(None, _BOOSTED_DRAWS)
            models.append(boosted_score(features, left[few], right[few], rng))
        scores += [model for model in models if model is not None]
    return scores


def _varies(values: Floats) -> bool:
    return not np.array_equal(values, np.broadcast_to(values[:1], values.shape), equal_nan=True)


def _cut(score: Score, left: Floats, right: Floats) -> _Cuts | None:
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
        "left": (_lower(a, len(left)), _upper(b, len(right))),
        "right": (_lower(b, len(right)), _upper(a, len(left))),
    }
    return _Cuts(score, thresholds, rates)


def _lower(hits: NDArray[np.intp], draws: int) -> Floats:
    return approximate_lower(hits, draws, SELECTION_LEVEL)


def _upper(hits: NDArray[np.intp], draws: int) -> Floats:
    return approximate_upper(hits, draws, SELECTION_LEVEL)


def _spread_indices(n: int) -> NDArray[np.intp]:
    """Return 1..n-1: all if few, else some even in rank and geometric towards both ends."""
    if n - 1 <= MAX_CUTS:
        return np.arange(1, n)
    tail = np.geomspace(1, n / 20, MAX_CUTS // 3).astype(np.intp)
    even = np.linspace(1, n - 1, MAX_CUTS // 3).astype(np.intp)
    return np.unique(np.clip(np.concatenate([tail, even, n - tail]), 1, n - 1))


def _choose(encoder: Encoder, cuts: Sequence[_Cuts], goal: Goal) -> Selection:
    """Pick the primary event and one event for each epsilon of the grid."""
    best: tuple[float, float] = (-np.inf, -np.inf)
    primary, point = _trivial_event(encoder), None
    best_delta = np.zeros(len(goal.epsilons))
    chosen: list[Event | None] = [None] * len(goal.epsilons)
    for c in cuts:
        for side, (likely, rare) in c.rates.items():
            # Selection already moved the rates; now what certifying them will cost.
            sure = ExpectedBounds.of(likely, rare, goal.draws, goal.primary_failure_prob)
            (direct, mirrored), where = _primary_values(sure, goal)
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


def _primary_values(
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
    cuts: _Cuts,
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
        learnt_share=0.0 if _plain(cuts.score) else learn_share,
    )


def _same_cut(a: Event, b: Event) -> bool:
    """Whether two events rest on the same counts and the same pair of bounds."""
    same_bounds = (a.above == b.above) == (a.likelier == b.likelier)
    return a.score is b.score and a.threshold == b.threshold and same_bounds


def _trivial_event(encoder: Encoder) -> Event:
    """Return the sure event, for outputs that never vary: it certifies nothing, soundly."""
    return Event(_SureScore(), 0.0, True, "left", encoder, Target(delta=0.0))


@dataclass(frozen=True, eq=False)
class _SureScore:
    name: str = "any output"
    axis: None = None

    def __call__(self, encoded: Floats) -> Floats:
        return np.zeros(encoded.shape[0])

    def words(self, threshold: float, above: bool) -> str:
        return "any value"
