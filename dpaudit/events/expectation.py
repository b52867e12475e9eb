"""What is said of a frozen event or guess: what it is expected to certify, and an example of it."""

from __future__ import annotations

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


def with_example(chosen: Event | Guess, left: Floats, right: Floats) -> Event | Guess:
    """Add a typical output, from encoded draws, where the score says nothing to a person."""
    if not isinstance(chosen.score, ModelScore):
        return chosen
    if isinstance(chosen, Guess):
        ends = (_with_example(event, left, right) for event in (chosen.left, chosen.right))
        return Guess(*ends)
    return _with_example(chosen, left, right)


def _with_example(event: Event, left: Floats, right: Floats) -> Event:
    """Add the output in the middle of those inside; nothing when none is."""
    encoded = left if event.likelier == "left" else right
    scores = event.score(encoded)
    inside = np.flatnonzero(event.fires(scores))
    if len(inside) == 0:
        return event
    middle = inside[np.argsort(scores[inside], kind="stable")[len(inside) // 2]]
    return replace(event, example=row_words(event.encoder, encoded[middle]))
