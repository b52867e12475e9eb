"""Privacy cost of one phase with all constants, and the proof.

The papers hide these constants in O().

The two proofs below end with an exact privacy profile. This profile combines the Gaussian noise and
the randomised responses that tests and filters reveal (`algorithms.common.charging`).

**The filter (v2, Algorithms 1 and 2).** Two datasets differ in a user u, who is in batch t of one
phase. All other parts of the phase depend on the data only through batches that are equal on both
datasets. So the two runs are equal up to the start of batch t. Earlier phases are equal on both
datasets, and later phases are post-processing. Fix u's own noise nu_u. Let K be the set of the
*other* users of batch t that are kept.

Imagine that every run continues after halting. Whether a run halts depends only on the run's count
of filtered users over all steps. A run that halts returns x_0. The transcript consists of the
decisions on all users except u, up to and including the C-th filtered user.

1. *Scores of batch t move by at most 1*. The score of each other user changes in one term, and this
   term is in (0, 1].

2. *Kept users are close.* Let nu_u <= theta, and let every other user of K have a score kappa > F -
   theta on D. These two conditions hold except with probability (B / 2) exp(-theta / b), because
   there are at most B noises of scale b. On D', the scores of K then exceed F - theta - 1. On
   either dataset, if u is kept, u has a score above F - theta. So on either dataset, kept users are
   pairwise within r / tau, where exp(-r) = (2F - 2 theta - 1) / B - 1
   (`scores.disagreement_bound`).

3. *The iterate.* Unless C other users were filtered, K has at least B - C users. If u is kept on
   one dataset only, the mean gradient moves by at most min(r / tau, 2G) / (|K| + 1). If u is kept
   on both datasets, the mean gradient moves by at most min(2r / tau, 2G) / (|K| + 1). The reason is
   that u's own two gradients are at most 2G apart. So the iterates after batch t are within b_x =
   eta min(2r / tau, 2G) / (B - C + 1) of one another. Later batches are equal. As long as the
   decisions on both datasets are equal, steps of size eta <= 2 / beta contract (Facts 5 and 6). So
   the iterates on both datasets, and their averages, stay within b_x of each other.

4. *Scores of later batches* move by at most s = (B - 1) (1 - exp(-beta tau b_x)). The reason is
   that a difference of two gradients moves by at most beta b_x. This change is b_x times a
   difference of two Hessians between 0 and beta, averaged over a segment. (Lemma 11 has the weaker
   bound 2 beta b_x.)

5. *Each decision* is epsilon0-DP with epsilon0 = max(1, s) / b, and the transcript ends at the C-th
   filtered user. So `algorithms.common.charging` applies with C targets. (Given nu_u and the
   transcript so far, D and D' determine u's decision and hence the next scores. So the queries are
   adaptive.)

6. *Halting.* c_hat may be drawn at the end of the phase. The value c_hat decides between x_0 and
   the average iterate by a comparison with a count. The transcript determines this count up to the
   contribution of u, which is at most 1. So halting is epsilon1-DP for epsilon1 = 1 / (scale of
   c_hat's noise). If C other users are filtered, both runs halt, unless c_hat > C. The probability
   of c_hat > C is exp(-(C - c) / scale) / 2.

7. *The noise.* Given all these events, the centres are within b_x, so the Gaussian has mu = b_x /
   sigma_s.

So delta(epsilon) is at most H(epsilon) of `charging`, plus the tails of steps 2, 5 and 6. This
proof requires noise on the scores that does not depend on c_hat. The printed noise does depend on
c_hat.

*Sampled scores* (footnote 3). The kappa in step 2 is the exact score. There are B + 1 estimates:
one estimate for each other user, and one estimate for u on either dataset. The probability that one
of these estimates exceeds the exact score by t is at most (B + 1) exp(-2 k t**2 / B**2). So F -
theta becomes F - theta - t. In step 1, subsampling makes a decision of batch t log(1 + p (exp(1 /
(p b)) - 1))-DP, where p = k / B. In step 4, B - 1 becomes B.

**The test (v1, Algorithms 1 to 5; v2, 5 to 8).** The trajectory of a phase contains no noise. So
the trajectory is a function of the data. Only AboveThreshold and the Gaussian are random. Let theta
B be a value of the score.

1. *Some dataset has a score of theta B or more in batch t.* In this case, one row of the score sums
   to at least theta B. So in l-infinity, N >= B (theta - exp(-r)) / (1 - exp(-r)) users are within
   r / tau of some q_i. The statistic ignores the h largest and the h smallest values (h = (B - 1)
   // 2 for the median). Choose r such that at most h - 1 users are outside of this ball. On the
   other dataset, at most h users are then outside of the same ball. In each coordinate, both
   statistics lie in the ball, so the two statistics are within 2r / tau of one another. The
   estimates are means that are moved to within varsigma of the statistics. The estimates are within
   Delta = min(2r / tau + 2 varsigma, max(2r / tau, 2G / B), 2G) of one another. The second term
   follows from Lemma
   31. So the iterates are within b_x = eta Delta of one another. The iterates stay within b_x by
   Lemma 33, because eta <= 2 / beta. Scores move by at most 2 (B - 1) / B in batch t. In later
   batches, scores move by at most (B - 1) (1 - exp(-2 beta tau b_x)). AboveThreshold is epsilon1-DP
   if its noise is scaled for the larger of these two bounds. The Gaussian has mu = sqrt(d) b_x /
   sigma_s. The bound is H(epsilon) with no calls.

2. *Neither dataset has such a score.* Let p = P[Lap(4 Delta' / epsilon1) + Lap(2 Delta' / epsilon1)
   >= v - theta B]. Each run passes the test of batch t with probability at most p. Otherwise, the
   run returns x_0.

So delta(epsilon) is the larger of the two bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from algorithms.common import _validate, charging
from algorithms.user_level_sco.plans import Filter, Phase, Plan, Test
from algorithms.user_level_sco.scores import disagreement_bound

TAILS = tuple(10.0**-i for i in range(2, 19))
"""Tail probabilities among which a bound is minimised."""

SHARES = 8.0
"""A tail probability gets this fraction of a plan's delta, as a divisor: delta / SHARES."""

LOUDEST = 8.0
"""Largest epsilon0 for which a bound is computed: only one call in thousands is a target there."""


@dataclass(frozen=True)
class Account:
    """Privacy cost of one phase, computed by the proofs of this module.

    Attributes
    ----------
    delta : float
        Bound for delta at the given epsilon.
    tails : float
        Part of delta that is due to events of small probability.
    shift : float
        b_x, the largest move of the iterates in Euclidean norm.
    spread : float
        Largest distance between kept users. For the test, the distance is r / tau.
    mu : float
        `shift` divided by the standard deviation of the Gaussian noise.
    later_sensitivity : float
        Largest change of the scores of later batches.
    targets, calls : int
        C and k of the filter. For the test, both values are 0.
    epsilon0, epsilon1 : float
        Privacy parameter of one decision, and privacy parameter of halting or of the test.
    """

    delta: float
    tails: float
    shift: float
    spread: float
    mu: float
    later_sensitivity: float
    targets: int
    calls: int
    epsilon0: float
    epsilon1: float


def laplace_tail(x: float) -> float:
    """Return P[Lap(1) > x]."""
    return 0.5 * math.exp(-x) if x >= 0 else 1 - 0.5 * math.exp(x)


def sampling_margin(batch_size: int, samples: int | None, failure: float) -> float:
    """Return a bound t for the overestimates of all scores of a batch.

    The bound fails with probability at most `failure`.
    """
    if samples is None:
        return 0.0
    return batch_size * math.sqrt(math.log((batch_size + 1) / failure) / (2 * samples))


def euclidean_account(
    plan: Plan, epsilon: float, *, phase: int = 1, tail: float | None = None
) -> Account:
    """Return an upper bound for the delta of one phase of v2's Algorithm 1, by the proof above.

    Parameters
    ----------
    plan : Plan
        Plan with a Filter whose noise does not depend on the cutoff.
    epsilon : float
        At least 0.
    phase : int, default 1
        Number of the phase. Each user is in one phase only. So the privacy cost of the whole
        algorithm is the cost of its most expensive phase.
    tail : float, optional
        Probability of each tail. There are three tails, and a fourth tail with sampled scores. By
        default, the value with the smallest delta is chosen among `TAILS` and an eighth of the
        plan's delta.
    """
    rule = plan.rule
    if not isinstance(rule, Filter):
        raise TypeError(f"plan must have a Filter, got {rule!r}")
    if rule.scale_follows_cutoff:
        raise ValueError(
            "plan must have noise that does not depend on the cutoff, got noise that depends on it"
        )
    chosen = _phase_of(plan, phase)
    epsilon = _validate.nonnegative("epsilon", epsilon)
    tails = (*TAILS, plan.delta / SHARES)
    if tail is not None:
        tails = (_validate.probability("tail", tail),)
    found = [filter_account(plan, rule, chosen, epsilon, x) for x in tails]
    return min(found, key=lambda account: account.delta)


def filter_account(plan: Plan, rule: Filter, phase: Phase, epsilon: float, tail: float) -> Account:
    """Return the account of a phase in which each tail has the given probability."""
    batch = plan.batch_size
    margin = rule.scale * math.log(batch / (2 * tail))
    margin += sampling_margin(batch, rule.samples, tail)
    targets = math.ceil(rule.cutoff + rule.cutoff_scale * max(0.0, math.log(1 / (2 * tail))))
    spread = disagreement_bound(batch, 2 * rule.threshold - 2 * margin - 1) / rule.temperature
    kept = max(1, batch - targets + 1)
    shift = phase.step * min(2 * spread, 2 * plan.lipschitz) / kept
    others = batch if rule.samples else batch - 1
    later = -others * math.expm1(-plan.smoothness * rule.temperature * shift)
    first = 1 / rule.scale
    if rule.samples:
        p = rule.samples / batch
        first = math.log1p(p * math.expm1(min(700.0, first / p)))
    epsilon0 = max(first, later / rule.scale)
    tails = tail * (4 if rule.samples else 3)
    mu = shift / phase.sigma
    stable = phase.step * plan.smoothness <= 2 and targets < batch
    if not stable or epsilon0 > LOUDEST:
        return Account(1.0, tails, shift, spread, mu, later, targets, 0, epsilon0, 0.0)
    calls = charging.calls_for(targets, epsilon0, tail)
    epsilon1 = 1 / rule.cutoff_scale
    spent = charging.composed_profile(
        epsilon, calls=calls, epsilon0=epsilon0, epsilon1=epsilon1, mu=mu
    )
    delta = min(1.0, spent + tails)
    return Account(delta, tails, shift, spread, mu, later, targets, calls, epsilon0, epsilon1)


def _phase_of(plan: Plan, phase: int) -> Phase:
    number = _validate.integer("phase", phase, at_least=1)
    if number > len(plan.phases):
        raise ValueError(f"phase must be at most {len(plan.phases)}, got {phase!r}")
    return plan.phases[number - 1]


# --- the test -------------------------------------------------------------------------------------


def most_trimmed(batch_size: int, rule: Test) -> int:
    """Return h, the number of values that the statistic ignores at either end."""
    return (batch_size - 1) // 2 if rule.statistic == "median" else rule.trim


def coordinatewise_account(
    plan: Plan, dimension: int, epsilon: float, *, phase: int = 1
) -> Account:
    """Return an upper bound for the delta of one phase of Algorithm 5 (v1 and v2's appendix).

    Parameters
    ----------
    plan : Plan
        Plan with one Test for all steps.
    dimension : int
        Dimension d.
    epsilon : float
        At least 0.
    phase : int, default 1
        Number of the phase. Each user is in one phase only.
    """
    rule = plan.rule
    if not isinstance(rule, Test):
        raise TypeError(f"plan must have a Test, got {rule!r}")
    if rule.per_step:
        raise ValueError("plan must have one test for all steps, got a separate test for each step")
    dimension = _validate.integer("dimension", dimension, at_least=1)
    chosen = _phase_of(plan, phase)
    epsilon = _validate.nonnegative("epsilon", epsilon)
    levels = [i / 512 for i in range(257, 512)]
    found = [
        _coordinatewise_account(plan, rule, chosen, dimension, epsilon, theta) for theta in levels
    ]
    return min(found, key=lambda account: account.delta)


def _coordinatewise_account(
    plan: Plan, rule: Test, phase: Phase, dimension: int, epsilon: float, theta: float
) -> Account:
    batch = plan.batch_size
    spread = aligned_spread(batch, theta, most_trimmed(batch, rule)) / rule.temperature
    move = estimate_move(batch, plan.lipschitz, spread, rule.clip)
    shift = phase.step * move
    later = -(batch - 1) * math.expm1(-2 * plan.smoothness * rule.temperature * shift)
    needed = max(2 * (batch - 1) / batch, later)
    epsilon1 = rule.epsilon * needed / rule.sensitivity
    missed = two_laplace_tail(
        (rule.threshold - theta * batch) * rule.epsilon / rule.sensitivity, 4.0, 2.0
    )
    mu = math.sqrt(dimension) * shift / phase.sigma
    delta = 1.0
    if phase.step * plan.smoothness <= 2 and math.isfinite(mu):
        spent = charging.composed_profile(epsilon, calls=0, epsilon0=0.0, epsilon1=epsilon1, mu=mu)
        delta = min(1.0, max(spent, missed))
    return Account(
        delta, missed, math.sqrt(dimension) * shift, spread, mu, later, 0, 0, 0.0, epsilon1
    )


def aligned_spread(batch: int, theta: float, trimmed: int) -> float:
    """Return r such that a score of theta B puts most users into a ball of radius r / tau.

    At most `trimmed` - 1 users are outside of this ball. The value is inf if no r has this
    property.
    """
    inside = (batch - trimmed + 1) / batch  # N / B
    if theta <= inside or inside >= 1:
        return math.inf
    return -math.log((theta - inside) / (1 - inside))


def estimate_move(batch: int, lipschitz: float, spread: float, clip: float) -> float:
    """Return Delta of the proof, the largest move of the robust estimate in each coordinate."""
    return min(2 * spread + 2 * clip, max(2 * spread, 2 * lipschitz / batch), 2 * lipschitz)


def two_laplace_tail(x: float, a: float, b: float) -> float:
    """Return P[a X + b Y >= x] for two independent Laplace variables of scale 1, where a != b."""
    if x < 0:
        return 1 - two_laplace_tail(-x, a, b)
    return (a * a * math.exp(-x / a) - b * b * math.exp(-x / b)) / (2 * (a * a - b * b))
