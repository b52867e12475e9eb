"""How probable it is that guesses refute a claim: learnt ones, and those by rank, of known rates.

Beside :mod:`dpaudit.engine.planning`, which knows the same of events. Draws go to either side by
fair coins; what is given are the rates of the events by which a side is guessed, so that nothing is
simulated. Of ranks, guesses between two looks are taken to be right at the mean rate of that
stretch, independently; what this leaves out, that ranks depend on each other, is of order
1 / draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.stats import (
    crossing_prob,
    guess_refutation_prob,
    ranked_heights,
    ranked_looks,
)

Floats = NDArray[np.float64]

BY_EVENT, BY_GUESS, BY_RANK = "counts of one event", "guesses in two tails", "guesses by rank"
"""Instruments, as a plan names them."""

_TRIED = 3  # of the guesses that stand out most


@dataclass(frozen=True)
class Chance:
    """How probable a refutation is.

    Parameters
    ----------
    power : float
        Probability of a refutation.
    likely, rare : float
        Rates of the event; of guesses, the probabilities of a right one and of a wrong one.
    instrument : str
        `BY_EVENT`, `BY_GUESS` or `BY_RANK`.
    """

    power: float
    likely: float
    rare: float
    instrument: str


def guesses_of(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    """Rates of right and wrong guesses in two tails, along the curve of a distribution.

    Parameters
    ----------
    p, q : ndarray, shape (points,)
        The curve of an oracle, from (0, 0) to (1, 1).

    Returns
    -------
    right, wrong : ndarray
        Left is guessed in the likeliest event of a mass, right outside of another, of the same
        mass at most.
    """
    mass = (p + q) / 2
    top = np.flatnonzero((mass > 0) & (mass <= 0.5 + 1e-12))
    rest = np.searchsorted(mass, 1 - mass[top] - 1e-12)
    return (p[top] + 1 - q[rest]) / 2, (q[top] + 1 - p[rest]) / 2


def by_guess(
    right: Floats, wrong: Floats, draws: int, epsilon: float, delta: float, failure_prob: float
) -> Chance:
    """Return the chance of the best of some guesses.

    Parameters
    ----------
    right, wrong : ndarray, shape (guesses,)
        Their rates.
    draws : int
        That certify, on both sides together.
    epsilon, delta, failure_prob : float
        The claim, and how often it may be refuted where it is kept.
    """
    factor = math.exp(min(epsilon, 600.0))
    # Half a guess keeps the noise of rates near 0 from vanishing.
    noise = np.sqrt(right + factor**2 * (wrong + 0.5 / draws) + 0.5 / draws)
    best = Chance(0.0, 0.0, 0.0, BY_GUESS)
    standing_out = np.argsort(-(right - factor * wrong - delta) / noise, kind="stable")
    for at in standing_out[:_TRIED].tolist():
        c, w = float(right[at]), float(wrong[at])
        power = guess_refutation_prob(
            c / (c + w),
            min(c + w, 1.0),
            draws,
            epsilon=epsilon,
            delta=delta,
            failure_prob=failure_prob,
        )
        if power > best.power:
            best = Chance(power, c, w, BY_GUESS)
    return best


def by_rank(
    p: Floats, q: Floats, draws: int, epsilon: float, delta: float, failure_prob: float
) -> Chance:
    """Return the chance of guesses by rank.

    Parameters
    ----------
    p, q : ndarray, shape (points,)
        The curve of an oracle of one number whose likelihood ratio rises with it.
    draws : int
        All of them, on both sides together.
    epsilon, delta, failure_prob : float
        The claim, and what guesses in this direction are given.
    """
    looks = ranked_looks(draws)
    heights = ranked_heights(
        looks, draws, epsilon=epsilon, delta=delta, failure_prob=failure_prob
    ).tolist()
    shares = np.array(looks.guesses) / draws
    mass = (p + q) / 2
    right = np.interp(shares / 2, mass, p / 2) + 0.5 - np.interp(1 - shares / 2, mass, q / 2)
    rates = np.clip(np.diff(right, prepend=0.0) / np.diff(shares, prepend=0.0), 0.0, 1.0)
    # The rates that are told are those of the look that stands out most.
    excess = (right - math.exp(min(epsilon, 600.0)) * (shares - right) - delta) / np.sqrt(shares)
    at = int(excess.argmax())
    power = crossing_prob(heights, looks.guesses, rates)
    return Chance(power, float(right[at]), float(shares[at] - right[at]), BY_RANK)
