"""Privacy cost of a sparse vector with fixed thresholds, with explicit constants.

Cohen & Lyu (2023) introduced the target-charging technique. Lemma 18 of user_level_sco v2 uses this
technique, but its constants are hidden. This module states a version with explicit constants, and
proves this version.

**Statement.** Adaptive queries are answered yes or no. Each answer is epsilon0-DP. The stream ends
after `targets` answers of one kind (the target). Two mechanisms follow the stream. The first
mechanism has the privacy profile of a Gaussian with shift / sigma = mu. The second mechanism is
epsilon1-DP. For any k, the composition has

    delta(epsilon) <= P[Bin(k, q) < targets] + H(epsilon),   q = 1 / (1 + e^epsilon0),

In this bound, H is the profile of k randomised responses at epsilon0, one randomised response at
epsilon1 and the Gaussian.

**Proof.** (1) One answer. Let p <= p' be the probabilities of the target on two neighbours (or the
other way round). Let p' = e^a p, where a <= epsilon0. Flip a coin that shows heads with the same
probability r on both neighbours. If the coin shows heads, answer with the other kind. Otherwise,
give the target with probability p / (1 - r) or p' / (1 - r).

For r = 0, the answers given after tails are epsilon0-DP. The ratio of the probabilities of the
other kind is (1 - p / (1 - r)) / (1 - p' / (1 - r)). As r grows, this ratio grows without bound.
Take the r at which this ratio is e^epsilon0. (If p = p' = 0, or the ratio of the targets is 1, take
any r, because there is no privacy loss.) Then

    p / (1 - r) = (e^epsilon0 - 1) / (e^(epsilon0 + a) - 1) >= 1 / (1 + e^epsilon0) = q.

So an answer is a public coin, followed by a *call* only if the coin shows tails. A call is
epsilon0-DP, and a call gives a target with probability at least q on either neighbour.

(2) The stream. Show the coins to the adversary. The coins have the same distribution on both
neighbours. Up to the k-th call, the transcript is an adaptive composition of k epsilon0-DP
mechanisms, of the epsilon1-DP mechanism and of the Gaussian. Each of these mechanisms is dominated
by its randomised response pair or its Gaussian pair. Dominating pairs compose adaptively (Zhu, Dong
& Wang 2022).

(3) There are more than k calls only if the first k calls hit the target less than `targets` times.
Given any previous answers, each call hits the target with probability at least q. So more than k
calls have probability at most P[Bin(k, q) < targets]. To complete the proof, add this probability
one time to the bound for P[M(D) in S].
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import log_ndtr
from scipy.stats import binom

from algorithms.common import _validate
from algorithms.common._validate import FloatArray

_MOST_CALLS = 10**7


def gaussian_profile(epsilon: ArrayLike, mu: float) -> FloatArray:
    """Return the hockey-stick divergence of N(mu, 1) from N(0, 1).

    The argument epsilon may be negative. Balle & Wang (2018): Phi(mu/2 - epsilon/mu) - e^epsilon
    Phi(-mu/2 - epsilon/mu).
    """
    eps = np.asarray(epsilon, dtype=np.float64)
    if mu == 0:
        return np.maximum(0.0, -np.expm1(np.minimum(eps, 0.0)))
    first = log_ndtr(mu / 2 - eps / mu)
    second = eps + log_ndtr(-mu / 2 - eps / mu)
    return np.asarray(np.maximum(0.0, -np.exp(first) * np.expm1(np.minimum(second - first, 0.0))))


def composed_profile(
    epsilon: float, *, calls: int, epsilon0: float, epsilon1: float = 0.0, mu: float = 0.0
) -> float:
    """Return H(epsilon) for `calls` responses at epsilon0, one response at epsilon1 and a Gaussian.

    The Gaussian has the parameter mu. The loss of k responses is (2j - k) epsilon0 with j ~ Bin(k,
    e^epsilon0 / (1 + e^epsilon0)). The hockey-stick divergence of the product is a mean over these
    losses. For each loss, the term is the Gaussian's divergence at epsilon minus the loss.

    Parameters
    ----------
    epsilon : float
        Epsilon at which delta is computed.
    calls : int
        k >= 0.
    epsilon0, epsilon1, mu : float
        At least 0.

    Returns
    -------
    float
        delta, from 0 to 1.
    """
    if calls > _MOST_CALLS:
        return 1.0  # a valid upper bound, because the exact number would take too long
    p = 1 / (1 + math.exp(-epsilon0))
    j = np.arange(calls + 1)
    weights = binom.pmf(j, calls, p)
    losses = (2 * j - calls) * epsilon0
    p1 = 1 / (1 + math.exp(-epsilon1))
    found = sum(
        weight * float(weights @ gaussian_profile(epsilon - losses - loss, mu))
        for weight, loss in ((p1, epsilon1), (1 - p1, -epsilon1))
    )
    return min(1.0, found)


def calls_for(targets: int, epsilon0: float, failure: float) -> int:
    """Return the smallest k with P[Bin(k, q) < targets] <= failure, q = 1 / (1 + e^epsilon0)."""
    targets = _validate.integer("targets", targets, at_least=1)
    failure = _validate.probability("failure", failure)
    q = 1 / (1 + math.exp(epsilon0))
    low, high = targets - 1, 2 * targets
    while binom.cdf(targets - 1, high, q) > failure:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if binom.cdf(targets - 1, middle, q) > failure:
            low = middle
        else:
            high = middle
    return high


def stream_profile(epsilon: float, *, targets: int, epsilon0: float) -> float:
    """Return an upper bound for the delta of a stream that ends at the targets-th target.

    The bound is an explicit form of Lemma 18 of user_level_sco v2, with all constants. The bound is
    the statement of this module without the Gaussian. The first part of the bound is set to 1e-2,
    1e-3, ..., 1e-15 in turn. Each value determines a number of calls k. The smallest of the
    resulting bounds is returned.

    Parameters
    ----------
    epsilon : float
        At least 0.
    targets : int
        c >= 1.
    epsilon0 : float
        Parameter of one answer, positive.
    """
    epsilon = _validate.nonnegative("epsilon", epsilon)
    epsilon0 = _validate.positive("epsilon0", epsilon0)
    bounds = [
        part
        + composed_profile(epsilon, calls=calls_for(targets, epsilon0, part), epsilon0=epsilon0)
        for part in (10.0**-i for i in range(2, 16))
    ]
    return min(1.0, *bounds)


def largest_mu(
    epsilon: float, delta: float, *, calls: int, epsilon0: float, epsilon1: float
) -> float:
    """Return the largest mu with H(epsilon) <= delta, rounded down, or 0 if no such mu exists."""

    def excess(log_mu: float) -> float:
        return (
            composed_profile(
                epsilon, calls=calls, epsilon0=epsilon0, epsilon1=epsilon1, mu=math.exp(log_mu)
            )
            - delta
        )

    low, high = -20.0, 10.0
    if excess(low) >= 0:
        return 0.0
    return math.exp(brentq(excess, low, high, xtol=1e-10)) * (1 - 1e-9)


def largest_epsilon0(epsilon: float, delta: float, *, calls: int) -> float:
    """Return the largest epsilon0 at which `calls` answers are (epsilon, delta)-DP, rounded down.

    Every epsilon0 up to epsilon / calls suffices for any delta, by basic composition.
    """
    epsilon = _validate.positive("epsilon", epsilon)
    delta = _validate.probability("delta", delta)
    calls = _validate.integer("calls", calls, at_least=1)

    def excess(epsilon0: float) -> float:
        return composed_profile(epsilon, calls=calls, epsilon0=epsilon0) - delta

    high = epsilon / calls
    while excess(2 * high) <= 0:
        high *= 2
    return float(brentq(excess, high, 2 * high, xtol=1e-13 * high)) * (1 - 1e-9)
