"""E-values against a claim from the counts of a fixed number of draws.

An e-value is a number >= 0 that is at most 1 on average if the claim holds. E-values of independent
runs may be multiplied, so evidence accumulates over runs (:mod:`dpaudit.store.history`). A p-value
of a single run cannot be used in this way.

The bets are frozen before the first certifying draw. They use the rates that the exploration draws
suggest, and a fixed list of epsilons above the claim. So the e-value of each bet is valid given the
exploration, for any pair and event that the exploration chose (:mod:`dpaudit.stats.wagers`).

A run returns the e-value of each bet, and not only their mean. A history multiplies the e-values of
each bet over all runs, and takes the mean afterwards. So the choice among the bets costs a factor
of at most the number of bets once, and not again in each run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.bets import rates_of
from dpaudit.engine.certificate import Answers, Tally, answers_of
from dpaudit.engine.explore import Exploration
from dpaudit.engine.task import Run
from dpaudit.events import Guess
from dpaudit.stats import Wager, rates_at, wager

Floats = NDArray[np.float64]

EXCESSES = (0.0012, 0.003, 0.008, 0.02, 0.05, 0.125, 0.3, 0.8, 2.0)
"""Each bet is on an epsilon that exceeds the claim by this fraction. The true excess usually lies
between two neighbours. For randomised response that claims epsilon = 1, the better bet then grows
at 0.78 times the largest possible speed or faster, for the excesses that the tests try."""

_LEAST_CLAIM = 0.1
"""Excesses are fractions of the claimed epsilon, or of this number if the claim is smaller. Without
it, all bets against epsilon = 0 would be equal."""

_SEEN = 20_000
"""Largest number of exploration draws per dataset from which the rates are computed."""


@dataclass(frozen=True)
class Evidence:
    """Bets on the frozen primary event, against the claim.

    Parameters
    ----------
    wager : Wager
        The bets, with one row for each of `EXCESSES`.
    """

    wager: Wager

    @classmethod
    def of(cls, run: Run, exploration: Exploration) -> Evidence | None:
        """Choose the bets on exploration draws; None for mutants, whose evidence nobody needs."""
        if run.task.is_brief:
            return None
        chosen = exploration.selection.primary
        epsilon, delta = run.task.claim.point or exploration.selection.point
        guess = Guess.of(chosen)
        start = int(len(exploration.draws[0]) * chosen.learnt_share)
        seen = [answers_of(guess(side[start:][-_SEEN:])) for side in exploration.draws]
        return cls.against(*rates_of(guess, *seen), epsilon, delta)

    @classmethod
    def against(cls, left: Floats, right: Floats, epsilon: float, delta: float) -> Evidence:
        """Choose the bets against (epsilon, delta), near to rates that earlier draws suggest."""
        proposed = epsilon + max(epsilon, _LEAST_CLAIM) * np.array(EXCESSES)
        rates = rates_at(left, right, proposed, delta)
        return cls(wager(*rates, np.full(len(EXCESSES), epsilon), delta))

    def log_e_values(
        self, tally: Tally, run: Run, *, coins: bool, fit: float = 1.0
    ) -> tuple[float, ...]:
        """Return the logarithm of the e-value of each bet.

        Parameters
        ----------
        tally : Tally
            Counts of the primary event or guess in the certifying draws.
        run : Run
            The run, which provides random numbers.
        coins : bool
            Whether fair coins chose the side of each draw. Without coins, a larger side is reduced
            to a random subset of its draws. An event counts each draw of a subset with the same
            probability, so the counts of the subset are hypergeometric.
        fit : float
            Probability of the coins that need not be tossed again. Given such coins, the mean of an
            e-value is at most ``1 / fit``, so each e-value is multiplied by `fit`.
        """
        left, right = tally.answers
        if not coins:
            size, rng = min(left.sum(), right.sum()), run.rng("evidence")
            left, right = (_subset(side, size, rng) for side in (left, right))
        logs = self.wager.log_growth(left, right, coins=coins)
        return tuple((logs + (math.log(fit) if coins else 0.0)).tolist())


def _subset(answers: Answers, size: int, rng: np.random.Generator) -> Answers:
    """Return the answers of a random subset of the draws."""
    if answers.sum() == size:
        return answers
    return rng.multivariate_hypergeometric(answers, size, method="marginals")
