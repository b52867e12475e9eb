"""Learn many scores, then choose the events that will be certified.

The exploration draws of each side are split in two. Scores are learnt on one part; on the other
every score is cut at many thresholds, of which the best is chosen (:mod:`dpaudit.events.cuts`).

Where draws are few, scores are crossed instead: each is learnt on all draws, and cut by the values
that its likes, learnt on two thirds, give to the draws of the last third.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.events.bits import FloatAttack
from dpaudit.events.cuts import choose, cut, is_plain
from dpaudit.events.encoding import Encoder
from dpaudit.events.event import Goal, Selection
from dpaudit.events.expectation import with_example
from dpaudit.events.learning import all_scores
from dpaudit.events.scores import FeatureScore, Score, TableScore

Floats = NDArray[np.float64]

_FOLDS = 3


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
    if goal.learn_share == 1:
        return _crossed(left, right, goal, rng, float_attack)
    halves = [max(int(len(x) * goal.learn_share), 1) for x in (left, right)]
    first = left[: halves[0]], right[: halves[1]]
    encoder = Encoder.learn(left, right, sides=first)
    encoded = [encoder(left), encoder(right)]
    learn_left, learn_right = (x[:h] for x, h in zip(encoded, halves, strict=True))
    rest = tuple(x[h:] for x, h in zip(encoded, halves, strict=True))
    cuts = []
    for score in all_scores(encoder, learn_left, learn_right, rng, float_attack):
        # A feature that no draw had a part in choosing may be cut with the help of all of them.
        cuts.append(cut(score, *(score(x) for x in (encoded if is_plain(score) else rest))))
    chosen = choose(encoder, [c for c in cuts if c is not None], goal)
    return replace(chosen, primary=with_example(chosen.primary, *rest))


def _crossed(
    left: NDArray[Any],
    right: NDArray[Any],
    goal: Goal,
    rng: np.random.Generator,
    float_attack: FloatAttack | None,
) -> Selection:
    """Learn on all draws, and choose by scores that were learnt without the draws they judge."""
    encoder = Encoder.learn(left, right, sides=(left, right))
    sides = encoder(left), encoder(right)
    # Whole stretches: neighbours that share their noise must not judge what the others taught.
    folds = [np.arange(len(side)) * _FOLDS // len(side) for side in sides]
    learnt: list[dict[Hashable, Score]] = []
    for k in range(_FOLDS):
        part = [x[of != k] for x, of in zip(sides, folds, strict=True)]
        scores = all_scores(encoder, part[0], part[1], rng, float_attack)
        learnt.append({_kind(score): score for score in scores})
    cuts = []
    for score in all_scores(encoder, *sides, rng, float_attack):
        if is_plain(score):
            cuts.append(cut(score, *(score(x) for x in sides)))
            continue
        kind = _kind(score)
        if all(kind in known for known in learnt):  # else it is too rare a find to be judged
            likes = [known[kind] for known in learnt]
            values = [_held_out(likes, x, of) for x, of in zip(sides, folds, strict=True)]
            cuts.append(cut(score, *values))
    chosen = choose(encoder, [c for c in cuts if c is not None], goal)
    return replace(chosen, primary=with_example(chosen.primary, *sides))


def _held_out(scores: Sequence[Score], encoded: Floats, folds: NDArray[np.intp]) -> Floats:
    """Values of draws under the score of which they were no part."""
    values = np.empty(len(encoded))
    for k, score in enumerate(scores):
        values[folds == k] = score(encoded[folds == k])
    return values


def _kind(score: Score) -> Hashable:
    """Tell scores of different draws that are the same one, but for what was learnt.

    Names are of what a score reads, not of what it learnt.
    """
    falling = isinstance(score, FeatureScore) and score.falling
    atoms = isinstance(score, TableScore) and score.atoms
    return type(score), score.name, falling, atoms
