"""What silence excludes: the epsilon at which an event, a guess or ranks would have refuted.

Asked of a certificate after it was made, of the counts behind its epsilon: of as many draws on
either side as they had, at the part of failure_prob that they were given. The probability is that
of their own test, computed from its binomials; what other events would have added is left out.

An event has the rate that was seen on the side where it is rare, and a rate on the other that is
looked for. Of guesses, as many are made as were seen, and the share of right ones is looked for.
What was learnt on other draws is granted fewer of these than there were: a mechanism that needs
more would have been explored too, and would not have shown its best event. Ranks learn nothing.

Asked of a claim before any draw: below how many draws nothing at all is refuted, by no test.
"""

from __future__ import annotations

import bisect
import math

import numpy as np
from scipy import optimize, special

from dpaudit.engine.certificate import Certificate
from dpaudit.engine.few import RankedTally
from dpaudit.engine.planning import LEARNING_SHARE, WITHIN_REACH
from dpaudit.engine.tally import Tally, rates_seen
from dpaudit.engine.task import EXPLORE_SHARE, Task
from dpaudit.stats import guess_refutation_prob, ranked_height, refutation_prob


def detectable(found: Certificate) -> float | None:
    """Return the epsilon at which this event would have been refuted with probability 0.9.

    None for what was computed, where nothing is left to luck.
    """
    counts, (epsilon, delta) = found.epsilon.counts, found.point
    if counts is None:
        return None
    tally, failure_prob = found.tally, found.epsilon.failure_prob * found.share
    if isinstance(tally, RankedTally):
        return _by_rank(tally, epsilon, delta, failure_prob)
    if isinstance(tally, Tally) and (guesses := tally.guesses) is not None:
        rate = (guesses.guesses + 0.5) / (guesses.draws + 1)
        return _by_guesses(rate, guesses.draws, epsilon, delta, failure_prob)
    rare = float(rates_seen(counts, found.witness.likelier).rare[0])
    if found.sequential is not None:
        path = found.sequential
        return detectable_epsilon(
            rare, path.budget, epsilon, delta, failure_prob, evidence=path.refuted_at
        )
    c = counts if found.witness.likelier == "left" else counts.swapped()
    return detectable_epsilon(
        rare, c.draws_left, epsilon, delta, failure_prob, draws_rare=c.draws_right
    )


def detectable_epsilon(
    rare: float,
    draws: int,
    epsilon: float,
    delta: float,
    failure_prob: float,
    *,
    draws_rare: int | None = None,
    evidence: float | None = None,
) -> float:
    """Return the smallest violation, in one event, that is refuted with probability 0.9.

    A statement about rates of the event: a mechanism that needs more may still show less in it.

    Parameters
    ----------
    rare : float
        Rate of the event on the side where it is rare, in (0, 1).
    draws : int
        Certifying draws on the other side, a quarter of which is set aside for the cost of
        learning.
    epsilon, delta : float
        The claim.
    failure_prob : float
        That the event's bound was given.
    draws_rare : int, optional
        Certifying draws on the side where the event is rare. Default: as many.
    evidence : float, optional
        For sequential audits: logarithm of the wealth that refutes.

    Returns
    -------
    float
        ``log((p - delta) / rare)`` for the smallest sufficient rate p of the likelier side; ``inf``
        when even p = 1 would escape.
    """
    draws_rare = draws if draws_rare is None else draws_rare
    n, m = (max(int(known * LEARNING_SHARE), 1) for known in (draws, draws_rare))

    def shortfall(p: float) -> float:
        probability = refutation_prob(
            np.array([p]),
            np.array([rare]),
            n,
            m,
            epsilon,
            delta,
            failure_prob,
            evidence=evidence,
        )
        return float(probability[0]) - WITHIN_REACH

    low = math.exp(min(epsilon, 600.0)) * rare + delta
    if low >= 1 or shortfall(1.0) < 0:
        return math.inf
    p = float(optimize.brentq(shortfall, low, 1.0, rtol=1e-4))
    return math.log((p - delta) / rare)


def fewest_draws(epsilon: float, delta: float, failure_prob: float) -> float:
    """Return how many draws it takes to refute anything at all with probability 0.9.

    Of both sides together; by any test, of any mechanism, one that tells the two datasets apart in
    every draw among them.

    Parameters
    ----------
    epsilon, delta : float
        The claim.
    failure_prob : float
        How often it may be refuted where it is kept.

    Notes
    -----
    Let outputs have distributions P and Q on the two sides, and s = delta + (1 - delta) pi with
    pi = e^eps / (1 + e^eps). What outputs s P + (1 - s) Q on the one and s Q + (1 - s) P on the
    other is (epsilon, delta)-DP, as s - e^eps (1 - s) = delta. Any outcome of N draws has at least
    s^N times the probability that it has under P and Q. So a test that refutes that with
    probability at most failure_prob refutes P and Q with probability at most failure_prob / s^N.

    Examples
    --------
    >>> round(fewest_draws(8.0, 0.0, 1e-6))
    40876
    """
    wrong = (1 - delta) * float(special.expit(-epsilon))
    each = -math.log1p(-wrong)
    return math.log(WITHIN_REACH / failure_prob) / each if each > 0 else math.inf


def is_beyond_reach(task: Task) -> bool:
    """Whether no draws of this number refute anything; False for a claim that is a curve."""
    if task.claim.point is None:
        return False
    draws = 2 * task.draws if task.stored is None else sum(task.stored.values())
    return draws < fewest_draws(*task.claim.point, task.failure_prob)


def draws_to_begin_with(task: Task, failure_prob: float) -> float:
    """Return about how many draws per dataset refute what tells the two datasets apart every time.

    Exploration and what learning costs included, rounded up to two digits; 0 for a curve.
    """
    if task.claim.point is None:
        return 0.0
    draws = fewest_draws(*task.claim.point, failure_prob) / 2
    draws /= (1 - EXPLORE_SHARE) * LEARNING_SHARE
    if not math.isfinite(draws):
        return math.inf
    digits = 10.0 ** max(math.floor(math.log10(draws)) - 1, 0)
    return math.ceil(draws / digits) * digits


def _by_guesses(
    rate: float, draws: int, epsilon: float, delta: float, failure_prob: float
) -> float:
    """Return the same of guesses that are made at a rate, in so many draws at fair coins in all."""
    draws = max(int(draws * LEARNING_SHARE), 1)

    def shortfall(share: float) -> float:
        found = guess_refutation_prob(
            share, rate, draws, epsilon=epsilon, delta=delta, failure_prob=failure_prob
        )
        return found - WITHIN_REACH

    low, high = _share_at(epsilon, delta / rate), 1 - 1e-12
    if low >= high or shortfall(high) < 0:
        return math.inf
    return _epsilon_of(float(optimize.brentq(shortfall, low, high, xtol=1e-9)), delta / rate)


def _by_rank(tally: RankedTally, epsilon: float, delta: float, failure_prob: float) -> float:
    """Return the same of the first guesses by rank, at the look that showed most."""
    seen = tally.pair_counts
    guesses = seen.hits_left + seen.hits_right
    if not guesses:
        return math.inf
    height = ranked_height(
        # Guesses may end between two looks, where the rest of the outputs are equal.
        bisect.bisect_left(tally.looks.guesses, guesses),
        tally.looks,
        tally.draws,
        epsilon=epsilon,
        delta=delta,
        failure_prob=failure_prob,
    )
    if height > guesses:
        return math.inf
    share = float(special.betaincinv(height, guesses - height + 1, WITHIN_REACH))
    return _epsilon_of(share, delta * tally.draws / guesses)


def _share_at(epsilon: float, excess: float) -> float:
    """Share of right guesses that just needs epsilon; `excess` is delta for each guess."""
    return float(special.expit(epsilon) + excess * special.expit(-epsilon))


def _epsilon_of(share: float, excess: float) -> float:
    """Epsilon that a share of right guesses needs."""
    return math.log((share - excess) / (1 - share)) if share < 1 else math.inf
