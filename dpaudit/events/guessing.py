"""Choose a guess: two cuts of one score, by what both tails together are expected to certify."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.events.encoding import Encoder
from dpaudit.events.expected import approximate_lower, approximate_upper
from dpaudit.events.features import Feature
from dpaudit.events.scores import FeatureScore, Score
from dpaudit.stats import SHARE_OF_GUESSING

Floats = NDArray[np.float64]
Counts = NDArray[np.intp]

_COARSE = 24  # cuts that are paired with one another at first
_FINE = 12  # and around the best pair of these


def scalar_score(encoder: Encoder, encoded: Floats) -> Score:
    """Return the score of outputs that are one number each: the number itself.

    The encoded outputs only tell its words whether numbers are whole, and whether some are missing.
    """
    (column,) = encoder.columns
    feature = Feature(column, lambda x: x[:, 0], coordinate=True)
    return FeatureScore.learn(feature, encoded[:, 0])[0]


@dataclass(frozen=True)
class ExpectedGuess:
    """Rates of right and wrong guesses, and what fresh draws at fair coins are expected to show.

    Parameters
    ----------
    correct, wrong : ndarray, shape (k,)
        Probabilities of a right and of a wrong guess.
    share_low, rate_low : ndarray, shape (k,)
        Expected limits of the share of right ones among guesses, and of the rate of guessing.
    """

    correct: Floats
    wrong: Floats
    share_low: Floats
    rate_low: Floats

    @classmethod
    def of(cls, correct: Floats, wrong: Floats, draws: int, failure_prob: float) -> ExpectedGuess:
        """Look ahead to `draws` draws in all that show exactly these rates."""
        rate = np.minimum(correct + wrong, 1.0)
        guesses = np.maximum(rate * draws, 1e-9)
        main, little = failure_prob * (1 - SHARE_OF_GUESSING), failure_prob * SHARE_OF_GUESSING
        share_low = approximate_lower(np.minimum(correct * draws, guesses), guesses, main)
        return cls(correct, wrong, share_low, approximate_lower(guesses, draws, little))

    def loss(self, delta: float) -> Floats:
        """Return the epsilon expected at `delta`; not positive where nothing is expected."""
        top = self.rate_low * self.share_low - delta
        bottom = self.rate_low * (1 - self.share_low)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(top > 0, np.log(np.maximum(top, 1e-300) / bottom), -np.inf)

    def excess(self, epsilon: float) -> Floats:
        """Return the delta expected at `epsilon`."""
        factor = np.exp(min(epsilon, 700.0))
        return np.asarray(self.rate_low * (self.share_low * (1 + factor) - factor))


@dataclass(frozen=True)
class TwoCuts:
    """Pairs of cuts of one score: left is guessed from the upper on, right below the lower.

    Parameters
    ----------
    upper, lower : ndarray of int, shape (k,)
        Places of the thresholds, ``upper >= lower``; the guess abstains in between.
    correct, wrong : ndarray, shape (k,)
        Rates, moved against us by their selection uncertainty.
    """

    upper: NDArray[np.intp]
    lower: NDArray[np.intp]
    correct: Floats
    wrong: Floats


def pairs_of_cuts(
    likely: Counts, rare: Counts, draws: tuple[int, int], level: float, near: tuple[int, int] | None
) -> TwoCuts:
    """Pair cuts of one score with one another.

    Parameters
    ----------
    likely, rare : ndarray of int, shape (k,)
        Draws at or above each of k rising thresholds, on the side that is guessed there and on the
        other one.
    draws : (int, int)
        On these sides.
    level : float
        One-sided level of the limits by which rates are moved.
    near : (int, int) or None
        Pair around which to look; everywhere, coarsely, when there is none.
    """
    k = len(likely)
    if near is None:
        some = np.unique(np.linspace(0, k - 1, min(k, _COARSE)).astype(np.intp))
        upper, lower = (side.ravel() for side in np.meshgrid(some, some))
    else:
        step = max(k // _COARSE, 1)
        around = np.unique(np.linspace(-step, step, _FINE).astype(np.intp))
        upper, lower = (
            np.clip(side.ravel(), 0, k - 1)
            for side in np.meshgrid(near[0] + around, near[1] + around)
        )
    keep = upper >= lower
    upper, lower = upper[keep], lower[keep]
    n, m = draws
    # One side has n draws and the other m, where coins would give both the same.
    correct = (likely[upper] / n + 1 - rare[lower] / m) / 2
    wrong = (rare[upper] / m + 1 - likely[lower] / n) / 2
    both = n + m
    return TwoCuts(
        upper,
        lower,
        approximate_lower(correct * both, both, level),
        approximate_upper(wrong * both, both, level),
    )
