"""What was counted of an event or a guess, and what the counts bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.events import Event, Guess
from dpaudit.stats import LEFT, RIGHT, Counts, GuessCounts, RateBounds, guess_bounds

_METHODS = (
    "exact joint bound of two binomials, on fresh draws",
    "exact bound of right guesses among all guesses, on fresh draws at fair coins",
)


@dataclass(frozen=True)
class Tally:
    """How often a frozen event fired, or where a guess was made, in the certifying draws.

    Parameters
    ----------
    chosen : Event or Guess
        What was counted.
    counts : Counts
        Of the event; of a guess, where left is guessed.
    right : Counts, optional
        Of a guess, where right is guessed.
    """

    chosen: Event | Guess
    counts: Counts
    right: Counts | None = None

    @property
    def likelier(self) -> str:
        """The side on which `pair_counts` calls it likelier."""
        return "left" if isinstance(self.chosen, Guess) else self.chosen.likelier

    @property
    def guesses(self) -> GuessCounts | None:
        """Right and wrong guesses, of a guess."""
        if self.right is None:
            return None
        c, d = self.counts, self.right
        return GuessCounts(
            c.hits_left + d.hits_right, c.hits_right + d.hits_left, c.draws_left + c.draws_right
        )

    @property
    def pair_counts(self) -> Counts:
        """Two counts whose rates bound privacy: of the event, or of right and wrong guesses."""
        seen = self.guesses
        return self.counts if seen is None else seen.as_counts()

    def bounds(self, failure_prob: float) -> RateBounds:
        """Bound the rates, except with probability `failure_prob`."""
        seen = self.guesses
        if seen is not None:
            return guess_bounds(seen, failure_prob)
        assert isinstance(self.chosen, Event)
        return RateBounds.from_counts(
            self.counts, self.chosen.likelier, failure_prob, self.chosen.target
        )

    def seen(self) -> RateBounds:
        """Rates as observed; no guarantee."""
        return rates_seen(self.pair_counts, self.likelier)

    @property
    def method(self) -> str:
        """How the bounds are obtained."""
        return _METHODS[isinstance(self.chosen, Guess)]


def tally_of(chosen: Event | Guess, left: NDArray[np.int64], right: NDArray[np.int64]) -> Tally:
    """Return the tally of how often left, right and neither was guessed on either side.

    Of an event, the guess is its likelier side where it fires, and the other one elsewhere.
    """
    n, m = int(left.sum()), int(right.sum())
    guessed = [Counts(int(left[at]), n, int(right[at]), m) for at in (LEFT, RIGHT)]
    if isinstance(chosen, Guess):
        return Tally(chosen, *guessed)
    return Tally(chosen, guessed[0 if chosen.likelier == "left" else 1])


def parts_of(chosen: Event | Guess) -> tuple[Event, ...]:
    """Return the events whose counts tell what there is to know."""
    return (chosen.left, chosen.right) if isinstance(chosen, Guess) else (chosen,)


def rates_seen(counts: Counts, likelier: str) -> RateBounds:
    """Rates as observed, half a draw away from 0 and 1 so that estimates stay finite."""
    c = counts if likelier == "left" else counts.swapped()
    likely = np.array([(c.hits_left + 0.5) / (c.draws_left + 1)])
    rare = np.array([(c.hits_right + 0.5) / (c.draws_right + 1)])
    return RateBounds(likely, rare, 1.0)
