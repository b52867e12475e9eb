"""What is said of a frozen event or guess: what it is expected to certify, and an example of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.events.cuts import OTHER, guess_values, lower, primary_values, upper
from dpaudit.events.encoding import row_words
from dpaudit.events.event import Event, Goal, Guess
from dpaudit.events.expected import ExpectedBounds
from dpaudit.events.guessing import ExpectedGuess
from dpaudit.events.scores import ModelScore
from dpaudit.stats import excess_of_rates

Floats = NDArray[np.float64]


def expectation(
    chosen: Event | Guess, left: NDArray[Any], right: NDArray[Any], goal: Goal
) -> tuple[float, float]:
    """Judge what is frozen on draws that had no part in it, as :attr:`Selection.objective` does.

    Nothing was chosen on these draws, so that no luck is taken for a find.
    """
    draws = {"left": len(left), "right": len(right)}
    if isinstance(chosen, Guess):
        seen = {"left": chosen(left), "right": chosen(right)}
        share = {
            (side, guess): np.array([(seen[side] == sign).mean()])
            for side in OTHER
            for guess, sign in (("left", 1), ("right", -1))
        }
        both = draws["left"] + draws["right"]
        correct = (share["left", "left"] + share["right", "right"]) / 2
        wrong = (share["left", "right"] + share["right", "left"]) / 2
        correct, wrong = lower(correct * both, both), upper(wrong * both, both)
        sure_guess = ExpectedGuess.of(correct, wrong, 2 * goal.draws, goal.primary_failure_prob)
        return float(guess_values(sure_guess, goal)[0][0]), float((correct - wrong)[0])
    hits = {"left": int(chosen(left).sum()), "right": int(chosen(right).sum())}
    other = OTHER[chosen.likelier]
    likely = lower(np.array([hits[chosen.likelier]]), draws[chosen.likelier])
    rare = upper(np.array([hits[other]]), draws[other])
    sure = ExpectedBounds.of(likely, rare, goal.draws, goal.primary_failure_prob)
    (direct, mirrored), _ = primary_values(sure, goal)
    value = float(np.maximum(direct, mirrored)[0])
    return value, float(excess_of_rates(likely, rare, 0.0)[0])


def with_examples(
    primary: Event | Guess, profile: Sequence[Event], left: Floats, right: Floats
) -> tuple[Event | Guess, tuple[Event, ...]]:
    """Add typical outputs, from encoded draws, where a score says nothing to a person."""
    known: dict[tuple[int, str], Floats] = {}  # events of a profile share few scores

    def told(event: Event) -> Event:
        if not isinstance(event.score, ModelScore):
            return event
        encoded = left if event.likelier == "left" else right
        key = id(event.score), event.likelier
        if key not in known:
            known[key] = event.score(encoded)
        return _with_example(event, encoded, known[key])

    if isinstance(primary, Guess):
        primary = Guess(told(primary.left), told(primary.right))
    else:
        primary = told(primary)
    return primary, tuple(told(event) for event in profile)


def _with_example(event: Event, encoded: Floats, scores: Floats) -> Event:
    """Add the output in the middle of those inside; nothing when none is."""
    inside = np.flatnonzero(event.fires(scores))
    if len(inside) == 0:
        return event
    middle = inside[np.argsort(scores[inside], kind="stable")[len(inside) // 2]]
    return replace(event, example=row_words(event.encoder, encoded[middle]))
