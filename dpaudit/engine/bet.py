"""One bet on a guess: which rates are bet on, and how they follow the draws that come in.

And the stakes, by which several bets share one wealth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit.events import Event, Guess, approximate_lower, approximate_upper
from dpaudit.stats import LEFT, NEITHER, RIGHT, Wager, wager

Floats = NDArray[np.float64]

Answers = NDArray[np.int64]
"""How often left, right and neither was guessed, shape (3,)."""

Limit = Callable[[float, int, float], Any]

CAREFUL = 0.15
"""One-sided level of the limits on which a careful bet is laid."""

_CHOSEN, _FEW = 0.4, 150


class Stake(NamedTuple):
    """How a bet is laid.

    Parameters
    ----------
    rank : int
        On which guess: 0 is the one that promised most before the batch, 1 the next.
    bold : float
        How far it goes from the null to the rates.
    share : float
        Of the wealth, at first.
    careful : bool
        Whether the rates are moved against us first.
    """

    rank: int
    bold: float
    share: float
    careful: bool


STAKES = (
    Stake(rank=0, bold=0.9, share=0.5, careful=False),
    Stake(rank=0, bold=1.0, share=0.25, careful=True),
    Stake(rank=1, bold=0.9, share=0.25, careful=False),
)
"""Bets on the rates as they look grow fastest where the guess is a true find; the careful one keeps
its wealth where it was a lucky one."""

_SHARES = np.array([[stake.share] for stake in STAKES])
_RESHARED = 0.1  # of the wealth: what lost so far may yet win


def first_wealths(levels: int) -> Floats:
    """Return logarithms, shape (stakes, levels), of wealths that are 1 together at each level."""
    return np.asarray(np.log(_SHARES) + np.zeros(levels))


def shared_again(wealths: Floats) -> Floats:
    """Hand a part of the wealth back to the stakes by their first shares.

    Nothing is made or lost, so that the sum over the stakes stays a supermartingale.

    Parameters
    ----------
    wealths : ndarray, shape (stakes, levels)
        Logarithms.
    """
    back = np.log(_RESHARED) + np.log(_SHARES) + special.logsumexp(wealths, axis=0)
    return np.asarray(np.logaddexp(np.log1p(-_RESHARED) + wealths, back))


@dataclass(frozen=True)
class Bet:
    """A guess, frozen before the draws of its batch, and what its answers win.

    Parameters
    ----------
    chosen : Event or Guess
        As it was learnt; an event is bet on together with its complement.
    guess : Guess
        What is bet on.
    seen : (ndarray of int, ndarray of int), shapes (3,)
        Answers to earlier draws of either side, none of which taught the guess its score.
    stake : Stake
        How boldly, and with which share of the wealth.
    wager : Wager
        One null for each level of epsilon.
    """

    chosen: Event | Guess
    guess: Guess
    seen: tuple[Answers, Answers]
    stake: Stake
    wager: Wager

    @classmethod
    def lay(
        cls,
        chosen: Event | Guess,
        seen: tuple[Answers, Answers],
        stake: Stake,
        levels: Floats,
        delta: float,
    ) -> Bet:
        """Bet on the rates that earlier draws suggest, moved against us where it is careful."""
        guess = Guess.of(chosen)
        rates = rates_of(guess, *seen)
        if stake.careful:
            rates = moved(*rates, int(seen[0].sum()), CAREFUL)
        return cls(chosen, guess, seen, stake, wager(*rates, levels, delta, stake.bold))

    def after(self, left: Answers, right: Answers, levels: Floats, delta: float) -> Bet:
        """Return the bet on the draws to come, when these were seen too."""
        seen = self.seen[0] + left, self.seen[1] + right
        return self.lay(self.chosen, seen, self.stake, levels, delta)


def answers_of(said: NDArray[np.int8]) -> Answers:
    """How often left, right and neither was guessed."""
    left, right = int((said == 1).sum()), int((said == -1).sum())
    return np.array([left, right, len(said) - left - right])


def rates_of(guess: Guess, left: Answers, right: Answers) -> tuple[Floats, Floats]:
    """Rates of the answers on either side, half a draw away from 0 and 1."""
    answers = np.array([1.0, 1.0, 0.0 if guess.is_complete else 1.0])
    both = (counts + answers / 2 for counts in (left, right))
    p, q = (counts / counts.sum() for counts in both)
    return p, q


def chosen_at(draws: int) -> float:
    """Level of the limits by which guesses are compared that were tried on so many draws.

    With few of them, more care would leave nothing to choose by; with many it is cheap, and the
    best of fine scores is mostly a lucky one. It falls from 0.4 to that of a careful bet.
    """
    return max(_CHOSEN * math.sqrt(min(_FEW / max(draws, 1), 1.0)), CAREFUL)


def moved(left: Floats, right: Floats, draws: int, level: float) -> tuple[Floats, Floats]:
    """Rates moved towards each other by their one-sided limits at `level`.

    What is taken from an answer goes to the one that is wrong on that side.
    """
    return (
        _shifted(left, LEFT, draws, level, approximate_lower, approximate_upper),
        _shifted(right, RIGHT, draws, level, approximate_lower, approximate_upper),
    )


def spread(left: Floats, right: Floats, draws: int, level: float) -> tuple[Floats, Floats]:
    """Rates moved apart by their one-sided limits at `level`."""
    return (
        _shifted(left, LEFT, draws, level, approximate_upper, approximate_lower),
        _shifted(right, RIGHT, draws, level, approximate_upper, approximate_lower),
    )


def _shifted(
    rates: Floats, good: int, draws: int, level: float, of_good: Limit, of_bad: Limit
) -> Floats:
    """Rates of one side, its right answer moved by one limit, the wrong one by another."""
    bad = RIGHT if good == LEFT else LEFT
    moved = rates.copy()
    moved[good] = float(of_good(rates[good] * draws, draws, level))
    moved[bad] = min(float(of_bad(rates[bad] * draws, draws, level)), 1 - moved[good])
    moved[NEITHER] = max(1 - moved[good] - moved[bad], 0.0) if rates[NEITHER] > 0 else 0.0
    if rates[NEITHER] == 0:
        moved[bad] = 1 - moved[good]
    inside = np.maximum(moved, np.where(rates > 0, 1e-9, 0.0))
    return np.asarray(inside / inside.sum())
