"""Power of an audit, computed before or after the audit.

`detectable` computes the smallest epsilon that an audit would have refuted with probability 0.9.
The computation uses the mechanism's family of distributions, and the instrument and the draws of
the audit. `fewest_draws` computes, before any draw, how many draws any test needs to refute a
claim.
"""

from __future__ import annotations

import math

import scipy
from scipy import special

from dpaudit.engine.certificate import Certificate
from dpaudit.engine.chances import USUAL_POWER, Chances, learning_share
from dpaudit.engine.families import Family
from dpaudit.engine.task import EXPLORE_SHARE, Task
from dpaudit.errors import ArgumentError

_UNEVEN = 1.2  # From this ratio of the side sizes on, the power for equal sides does not apply.
_STEP = 1.25  # Factor by which a strength is raised in the search.
_LARGEST, _STRONGEST = 50.0, 1e6  # Largest epsilon and largest strength that are searched.


def detectable(task: Task, found: Certificate, family: Family) -> float | None:
    """Return the epsilon on this pair at which the claim would be refuted with power about 0.9.

    The result holds for an audit with the same draws, of a mechanism in the same family.

    Parameters
    ----------
    task : Task
        The task of the audit.
    found : Certificate
        The certificate of the mechanism.
    family : Family
        The family of the mechanism with more or less noise.

    Returns
    -------
    float or None
        Epsilon at the claimed delta. The result is ``inf`` if no violation is refuted with this
        power. The result is None if the epsilon is unknown. The epsilon is unknown for computed
        results, and for stored outputs with many more outputs on one side than on the other.
    """
    draws = _draws_of(task, found)
    if draws is None:
        return None
    epsilon, delta = found.point

    def shortfall(strength: float) -> float:
        return family.chances(strength, task, found, draws).best(draws).power - USUAL_POWER

    try:
        low = family.strength_at(epsilon, delta)
        if low is None:
            return None
        high = low * _STEP
        while shortfall(high) < 0:
            if family.epsilon(high, delta) > _LARGEST or high > _STRONGEST:
                return math.inf
            low, high = high, high * _STEP
        strength = float(scipy.optimize.brentq(shortfall, low, high, rtol=1e-3))
        return family.epsilon(strength, delta)
    except ArgumentError:  # beyond the range of the oracles
        return None


def rarest_leak(task: Task, found: Certificate) -> float | None:
    """Return how often a mechanism must reveal its dataset to be refuted with power about 0.9.

    All other outputs of this mechanism are equally likely on both sides, so that its delta is the
    returned probability. A mechanism that reveals its dataset less often is likely to pass.

    Parameters
    ----------
    task : Task
        The task of the audit.
    found : Certificate
        The certificate of the mechanism.

    Returns
    -------
    float or None
        Probability of an output that reveals the dataset. None if no leak is refuted with this
        power, or if the power is unknown as for :func:`detectable`.
    """
    draws = _draws_of(task, found)
    if draws is None:
        return None
    is_sequential = found.sequential is not None

    def shortfall(log: float) -> float:
        rates = (math.exp(log), 0.0)
        chances = Chances.of_rates(
            rates, found.point, task.failure_prob, is_sequential=is_sequential
        )
        return chances.best(draws).power - USUAL_POWER

    if shortfall(0.0) < 0:
        return None
    return math.exp(scipy.optimize.brentq(shortfall, math.log(1 / draws), 0.0, rtol=1e-3))


def _draws_of(task: Task, found: Certificate) -> int | None:
    """Return the draws per dataset on the pair; None if the power of the audit is unknown."""
    if found.epsilon.counts is None:
        return None
    sides = () if task.stored is None else task.stored.values()
    if sides and max(sides) > _UNEVEN * min(sides):
        return None
    certify = found.draws["certify"] / (1 - EXPLORE_SHARE)
    return round(certify) if found.sequential is None else found.sequential.budget


def fewest_draws(epsilon: float, delta: float, failure_prob: float) -> float:
    """Return how many draws any test needs to refute any mechanism with probability 0.9.

    The result counts the draws of both sides together. The result holds even for a mechanism whose
    every draw identifies its dataset.

    Parameters
    ----------
    epsilon, delta : float
        The claim.
    failure_prob : float
        The largest allowed probability of refuting a mechanism that keeps the claim.

    Notes
    -----
    Let outputs have the distributions P and Q on the two sides. Let s = delta + (1 - delta) pi with
    pi = e^eps / (1 + e^eps). Consider a second mechanism with output distributions s P + (1 - s) Q
    and s Q + (1 - s) P on the two sides. The second mechanism is (epsilon, delta)-DP, because s -
    e^eps (1 - s) = delta. Under the second mechanism, any outcome of N draws has at least s^N times
    its probability under P and Q. So a test that refutes the second mechanism with probability at
    most failure_prob refutes P and Q with probability at most failure_prob / s^N.

    Examples
    --------
    >>> round(fewest_draws(8.0, 0.0, 1e-6))
    40876
    """
    wrong = (1 - delta) * float(special.expit(-epsilon))
    each = -math.log1p(-wrong)
    return math.log(USUAL_POWER / failure_prob) / each if each > 0 else math.inf


def cannot_refute(task: Task) -> bool:
    """Return whether this number of draws cannot refute any mechanism; False for a curve."""
    if task.claim.point is None:
        return False
    draws = 2 * task.draws if task.stored is None else sum(task.stored.values())
    return draws < fewest_draws(*task.claim.point, task.failure_prob)


def draws_to_begin_with(task: Task, failure_prob: float) -> float:
    """Return roughly how many draws per dataset refute a mechanism that reveals its dataset.

    The number includes exploration and the cost of learning. The number is rounded up to two
    digits. The number is 0 for a curve.
    """
    if task.claim.point is None:
        return 0.0
    draws = fewest_draws(*task.claim.point, failure_prob) / 2
    draws /= (1 - EXPLORE_SHARE) * learning_share(failure_prob)
    if not math.isfinite(draws):
        return math.inf
    digits = 10.0 ** max(math.floor(math.log10(draws)) - 1, 0)
    return math.ceil(draws / digits) * digits
