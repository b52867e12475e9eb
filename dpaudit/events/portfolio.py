"""Learn many scores, then choose the events that will be certified.

The exploration draws of each side are split in two. Scores are learnt on one part; on the other
every score is cut at many thresholds, of which the best is chosen (:mod:`dpaudit.events.cuts`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.events.bits import FloatAttack
from dpaudit.events.cuts import choose, cut, is_plain, lower, primary_values, upper
from dpaudit.events.encoding import Encoder, row_words
from dpaudit.events.event import Event, Goal, Selection
from dpaudit.events.expected import ExpectedBounds
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
from dpaudit.stats import excess_of_rates

Floats = NDArray[np.float64]

_LEAST_LOGISTIC, _LOGISTIC_DRAWS = 200, 40_000
_LEAST_BOOSTED, _BOOSTED_DRAWS = 1_000, 25_000


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
        cuts.append(cut(score, *(score(x) for x in (encoded if is_plain(score) else rest))))
    chosen = choose(encoder, [c for c in cuts if c is not None], goal)
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
    likely = lower(np.array([hits[event.likelier]]), draws[event.likelier])
    rare = upper(np.array([hits[other]]), draws[other])
    sure = ExpectedBounds.of(likely, rare, goal.draws, goal.primary_failure_prob)
    (direct, mirrored), _ = primary_values(sure, goal)
    value = float(np.maximum(direct, mirrored)[0])
    return value, float(excess_of_rates(likely, rare, 0.0)[0])


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
