"""All scores are learnt on one part of the exploration draws, and the other part chooses events.

The simplest scores come first. Scores without any effect are dropped early. The reason is that
every score costs time and makes the chosen score look better than it is. Tables are dropped if they
separate the sides no better than chance does. Trees are dropped if the logistic score explains all
differences.

The exploration draws of each side are split in two. Scores are learnt on the first part. On the
second part, every score is cut at many thresholds, and the best cuts are chosen
(:mod:`dpaudit.events.cuts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.events.bits import FloatAttack, bit_features
from dpaudit.events.cuts import choose, cut, is_plain, with_examples
from dpaudit.events.encoding import Encoder
from dpaudit.events.event import Goal, Selection
from dpaudit.events.features import all_features
from dpaudit.events.scores import (
    FeatureScore,
    ModelScore,
    OutcomeScore,
    Score,
    TableScore,
    additive_score,
    boosted_score,
    estimated_score,
    logistic_score,
)
from dpaudit.events.screening import SCREENED, left_over

Floats = NDArray[np.float64]

_LEAST_LOGISTIC, _LOGISTIC_DRAWS = 200, 40_000
_LEAST_BOOSTED, _BOOSTED_DRAWS = 1_000, 25_000
_LEAST_SCREENED = 500  # from this number of draws on, a table that separates nothing is dropped


def all_scores(
    encoder: Encoder,
    left: Floats,
    right: Floats,
    rng: np.random.Generator,
    float_attack: FloatAttack | None,
    estimator: Any = None,
) -> list[Score]:
    """Return all scores that are worth cutting.

    Parameters
    ----------
    encoder : Encoder
        The encoder of the outputs.
    left, right : ndarray, shape [size, k]
        Encoded draws from which to learn.
    rng : numpy.random.Generator
        Generator for the tree learner.
    float_attack : FloatAttack, optional
        If given, also use the low bits of the outputs.
    estimator : object, optional
        Classifier of scikit-learn that gives one more score.
    """
    seen = all_features(encoder, left, right)
    if float_attack is not None:
        seen += bit_features(encoder, left, right, float_attack)
    least = min(len(left), len(right))
    tables = []
    plain: list[Score] = []
    fine: list[Score] = []
    for feature in seen:
        a, b = feature(left), feature(right)
        both = np.concatenate([a, b])
        if not _varies(both):
            continue
        if not feature.ordered:
            tables.append(TableScore.learn(feature, a, b))
            continue
        table, exact = TableScore.learn_ordered(feature, a, b)
        tables.append(table)
        plain += FeatureScore.learn(feature, both)
        if exact is not None and exact.significance > 0:
            fine.append(exact)
    telling = [
        t for t in tables if t.significance > 0 or not t.feature.ordered or least < _LEAST_SCREENED
    ]
    scores: list[Score] = [*plain, *telling, *fine]
    if tables and len(encoder.own) > 1:
        scores += _of_many(encoder, tables, left, right, rng)
    ordered = [table.feature for table in tables if table.feature.ordered]
    if estimator is not None and ordered:
        scores.append(estimated_score(estimator, ordered, left, right, rng))
    return scores


def _of_many(
    encoder: Encoder,
    tables: Sequence[TableScore],
    left: Floats,
    right: Floats,
    rng: np.random.Generator,
) -> list[Score]:
    """Return the scores that combine several numbers."""
    models: list[Score | None] = [
        OutcomeScore.learn(encoder, left, right),
        additive_score(tables),
    ]
    least = min(len(left), len(right))
    linear: ModelScore | None = None
    head = slice(None, _LOGISTIC_DRAWS)
    shifted = [
        t.feature for t in tables if t.feature.ordered and _shifts(t, left[head], right[head])
    ]
    if least >= _LEAST_LOGISTIC and shifted:
        linear = logistic_score(shifted, left[head], right[head])
        models.append(linear)
    if least >= _LEAST_BOOSTED:
        sides = left[:SCREENED], right[:SCREENED]
        scores = [np.zeros(len(x)) if linear is None else linear(x) for x in sides]
        showing = left_over(scores, [tuple(t.cells(x) for x in sides) for t in tables])
        if showing:
            telling = [
                t.feature for i, t in enumerate(tables) if t.significance > 0 or i in showing
            ]
            head = slice(None, _BOOSTED_DRAWS)
            models.append(boosted_score(telling, left[head], right[head], rng))
    return [model for model in models if model is not None]


def _shifts(table: TableScore, left: Floats, right: Floats) -> bool:
    """Return whether a feature may help a linear score, because its means are not nearly equal.

    If the two sides do not differ, chance keeps one feature in three.
    """
    a, b = (np.clip(np.nan_to_num(table.feature(x)), -1e30, 1e30) for x in (left, right))
    error = np.sqrt(a.var() / len(a) + b.var() / len(b))
    return table.gaps or bool(abs(a.mean() - b.mean()) > error)


def _varies(values: Floats) -> bool:
    return not np.array_equal(values, np.broadcast_to(values[:1], values.shape), equal_nan=True)


# --- learn many scores, then choose the events that will be certified --------------------------


def learn(
    left: NDArray[Any],
    right: NDArray[Any],
    goal: Goal,
    *,
    rng: np.random.Generator,
    float_attack: FloatAttack | None = None,
) -> Selection:
    """Learn scores on one part of the exploration draws, and choose events on the other part.

    Parameters
    ----------
    left, right : ndarray, shape [size, ...]
        Exploration draws, at least 2 for each side.
    goal : Goal
        Goal for which events are chosen.
    rng : numpy.random.Generator
        Generator for the tree learner.
    float_attack : FloatAttack, optional
        If given, also use the low bits of the outputs.
    """
    halves = [max(int(len(x) * goal.learn_share), 1) for x in (left, right)]
    first = left[: halves[0]], right[: halves[1]]
    encoder = Encoder.learn(left, right, sides=first)
    encoded = [encoder(left), encoder(right)]
    learn_left, learn_right = (x[:h] for x, h in zip(encoded, halves, strict=True))
    rest = tuple(x[h:] for x, h in zip(encoded, halves, strict=True))
    cuts = []
    for score in all_scores(encoder, learn_left, learn_right, rng, float_attack, goal.estimator):
        # If no draw was used to choose a feature, all draws may be used to cut the feature.
        cuts.append(cut(score, *(score(x) for x in (encoded if is_plain(score) else rest))))
    chosen = choose(encoder, [c for c in cuts if c is not None], goal)
    primary, profile = with_examples(chosen.primary, chosen.profile, *rest)
    return replace(chosen, primary=primary, profile=profile)
