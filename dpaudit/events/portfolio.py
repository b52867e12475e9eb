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
from dpaudit.events.cuts import choose, cut, is_plain
from dpaudit.events.encoding import Encoder
from dpaudit.events.event import Goal, Selection
from dpaudit.events.expectation import with_examples
from dpaudit.events.learning import all_scores

Floats = NDArray[np.float64]


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
    primary, profile = with_examples(chosen.primary, chosen.profile, *rest)
    return replace(chosen, primary=primary, profile=profile)
