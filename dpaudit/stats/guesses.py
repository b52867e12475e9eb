"""Guesses of the side that an output was drawn from, made at fair coins: one binomial, both tails.

Toss a fair coin for each of N draws, draw from the left dataset or from the right accordingly, and
let a rule that was fixed before look at the output and guess the side, or abstain. Let
``c = (p_L + q_R) / 2`` be the probability of a right guess and ``w = (q_L + p_R) / 2`` that of a
wrong one, where p and q are the probabilities of guessing left (L) and right (R) on the two sides.

**What privacy says.** For every (epsilon, delta) that the mechanism satisfies, ``p_L <= e^epsilon
q_L + delta`` and ``q_R <= e^epsilon p_R + delta``, and so ``c <= e^epsilon w + delta``. More is
true: c and w are the probabilities of one event, "the guess is right", under a pair of
distributions P*, Q*, those of (coin, output) and of (turned coin, output). Their hockey-stick
divergences are the averages of the mechanism's in both directions, and so are the functionals that
Renyi divergences are logarithms of, and a trade-off curve that lies below both directions lies
below theirs, being convex. So everything that :class:`~dpaudit.stats.RateBounds` reads off the
rates of an event may be read off (c, w).

**The bound.** Of N draws, r = C + W are guessed and C of them rightly: r ~ Bin(N, s) with
``s = c + w``, and given r, C ~ Bin(r, rho) with ``rho = c / s``. At delta = 0 nothing else matters:
``rho <= e^epsilon / (1 + e^epsilon)``, one Clopper-Pearson bound serves, and both tails of the
outputs count in it. For delta > 0, ``c - e^epsilon w = s (rho (1 + e^epsilon) - e^epsilon)``, and a
lower bound of s is needed too, which gets a hundredth of the failure probability.

References
----------
Steinke, Nasr and Jagielski (2023), "Privacy auditing with one (1) training run", for guesses and
abstention; here every draw is a run of its own, so that delta costs next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from dpaudit import _validate
from dpaudit.errors import ArgumentError
from dpaudit.stats.proportions import Counts, lower_rates
from dpaudit.stats.rates import RateBounds

SHARE_OF_GUESSING = 0.01
"""Part of the failure probability that the rate of guessing gets, for delta > 0."""

_QUANTILES = 64  # of the number of guesses, when planning


@dataclass(frozen=True)
class GuessCounts:
    """How many of N draws at fair coins were guessed rightly, and wrongly.

    Parameters
    ----------
    correct, wrong : int
        At least 0, and together at most `draws`.
    draws : int
        On both sides together, at least 1; on each as the coins fell.

    Raises
    ------
    TypeError
        When a count is not an integer.
    ValueError
        When a count is out of range.
    """

    correct: int
    wrong: int
    draws: int

    def __post_init__(self) -> None:
        _validate.integer(1, draws=self.draws)
        _validate.integer(0, correct=self.correct)
        _validate.integer(0, wrong=self.wrong)
        if self.correct + self.wrong > self.draws:
            raise ArgumentError(
                f"correct and wrong must be at most draws = {self.draws} together, got "
                f"{self.correct!r} and {self.wrong!r}"
            )

    @property
    def guesses(self) -> int:
        """Draws in which a side was guessed."""
        return self.correct + self.wrong

    def as_counts(self) -> Counts:
        """Return right and wrong guesses, each of all draws, as counts of an event on two sides."""
        return Counts(self.correct, self.draws, self.wrong, self.draws)


def guess_bounds(counts: GuessCounts, failure_prob: float) -> RateBounds:
    """Bound the probabilities of right and wrong guesses.

    Parameters
    ----------
    counts : GuessCounts
        Of independent draws at fair coins, by a rule that they had no part in choosing.
    failure_prob : float
        Strictly between 0 and 1.

    Returns
    -------
    RateBounds
        Of c, the likelier one, and w: everything read off it holds together, except with
        probability `failure_prob`. The target needs not be declared.

    Examples
    --------
    >>> seen = GuessCounts(1462, 538, 2000)  # randomised response with epsilon = 1
    >>> round(guess_bounds(seen, 0.05).lower_epsilon(0.0), 3)
    0.916
    """
    alpha = _validate.failure_prob(failure_prob=failure_prob)
    rho = float(lower_rates(counts.correct, counts.guesses, alpha * (1 - SHARE_OF_GUESSING)))
    s = float(lower_rates(counts.guesses, counts.draws, alpha * SHARE_OF_GUESSING))
    # Known: c >= rho s' and w <= (1 - rho) s' for the true s', somewhere in [s, 1].
    ends = np.array([s, 1.0])
    return RateBounds(rho * ends, (1 - rho) * ends, failure_prob, lines=True)


def guess_refutation_prob(
    share: float, rate: float, draws: int, *, epsilon: float, delta: float, failure_prob: float
) -> float:
    """Probability that guesses are found beyond (epsilon, delta), for planning.

    The mean over quantiles of the number of guesses; given that number, the critical number of
    right ones is that of :func:`guess_bounds`, and exact.

    Parameters
    ----------
    share : float
        Of right guesses among all, in [0, 1].
    rate : float
        Probability that a side is guessed, in (0, 1].
    draws : int
        On both sides together.
    epsilon, delta : float
        The claim.
    failure_prob : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> round(guess_refutation_prob(0.8, 1.0, 500, epsilon=1.0, delta=0.0, failure_prob=0.05), 3)
    0.973
    """
    alpha = _validate.failure_prob(failure_prob=failure_prob)
    guesses = stats.binom.ppf((np.arange(_QUANTILES) + 0.5) / _QUANTILES, draws, rate)
    s = lower_rates(guesses, draws, alpha * SHARE_OF_GUESSING)
    with np.errstate(divide="ignore"):
        excess = delta / s if delta > 0 else np.zeros_like(s)
    # What c - e^epsilon w = delta asks of rho.
    rho = special.expit(epsilon) + excess * special.expit(-epsilon)
    can = rho < 1
    critical = stats.binom.isf(alpha * (1 - SHARE_OF_GUESSING), guesses, np.where(can, rho, 0.5))
    reach = stats.binom.sf(critical, guesses, share)
    return float(np.where(can & (guesses > 0), reach, 0.0).mean())
