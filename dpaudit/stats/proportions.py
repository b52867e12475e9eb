"""Clopper-Pearson bounds of one proportion, and the counts of one event on two sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from dpaudit import _validate
from dpaudit.errors import ArgumentError


@dataclass(frozen=True)
class Counts:
    """How often one event fired on either side.

    Parameters
    ----------
    hits_left, hits_right : int
        Draws in which the event fired, from 0 to the draws of that side.
    draws_left, draws_right : int
        Draws taken on that side, at least 1.

    Raises
    ------
    TypeError
        When a count is not an integer.
    ValueError
        When a count is out of range.
    """

    hits_left: int
    draws_left: int
    hits_right: int
    draws_right: int

    def __post_init__(self) -> None:
        for side in ("left", "right"):
            hits, draws = getattr(self, f"hits_{side}"), getattr(self, f"draws_{side}")
            _check_counts(hits, draws, f"hits_{side}", f"draws_{side}")

    def swapped(self) -> Counts:
        """Return the counts with the two sides exchanged."""
        return Counts(self.hits_right, self.draws_right, self.hits_left, self.draws_left)

    def complement(self) -> Counts:
        """Return the counts of the complementary event."""
        return Counts(
            self.draws_left - self.hits_left,
            self.draws_left,
            self.draws_right - self.hits_right,
            self.draws_right,
        )


def lower_proportion(successes: int, trials: int, failure_prob: float) -> float:
    """Lower Clopper-Pearson bound of a success probability.

    The true probability lies below the bound with probability at most `failure_prob`, for every
    true value and every number of trials.

    Parameters
    ----------
    successes : int
        Number of successes, 0 <= successes <= trials.
    trials : int
        Number of independent trials, >= 1.
    failure_prob : float
        Probability of error, strictly between 0 and 1.

    Returns
    -------
    float
        In [0, 1]; 0 exactly when there is no success.

    References
    ----------
    Clopper and Pearson (1934), "The use of confidence or fiducial limits".

    Examples
    --------
    >>> round(lower_proportion(10, 10, 0.05), 6)  # 0.05 ** (1 / 10)
    0.741134
    """
    _check_counts(successes, trials, "successes", "trials")
    alpha = _validate.failure_prob(failure_prob=failure_prob)
    return float(lower_rates(successes, trials, alpha))


def lower_rates(successes: Any, trials: Any, failure_prob: float) -> Any:
    """Clopper-Pearson lower bounds of whole arrays, unchecked.

    Planning evaluates it at expected, hence fractional, counts; certification comes through the
    checked functions above.
    """
    a = np.asarray(successes, dtype=float)
    b = np.asarray(trials, dtype=float) - a + 1.0
    bound = special.betaincinv(np.maximum(a, 1e-300), b, failure_prob)
    return np.where(a > 0, bound, 0.0)


def upper_rates(successes: Any, trials: Any, failure_prob: float) -> Any:
    """Clopper-Pearson upper bounds of whole arrays, unchecked; see :func:`lower_rates`."""
    a = np.asarray(successes, dtype=float) + 1.0
    b = np.asarray(trials, dtype=float) - a + 1.0
    bound = special.betainccinv(a, np.maximum(b, 1e-300), failure_prob)
    return np.where(b > 0, bound, 1.0)


def _check_counts(successes: Any, trials: Any, name: str, trials_name: str) -> None:
    _validate.integer(1, **{trials_name: trials})
    _validate.integer(0, **{name: successes})
    if successes > trials:
        raise ArgumentError(
            f"{name} must be an integer from 0 to {trials_name} = {trials}, got {successes!r}"
        )
