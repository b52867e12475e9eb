"""What a phase costs, with every constant, and why: what O() hides in the papers, worked out.

Both proofs end in an exact profile: Gaussian noise, and randomised responses for what tests and
filters reveal (`algorithms.common.charging`).

**The filter (v2, Algorithms 1 and 2).** Two datasets differ in a user u, of batch t of one phase.
All else of the phase depends on the data through batches that are equal, so that the two runs are
equal up to the start of batch t; earlier phases are equal, later ones post-process. Fix u's own
noise nu_u. Let K be the set of the *other* users of batch t that are kept, and imagine that runs go
on after they halt: whether a run halts depends only on its count of all filtered users, on all
steps, and where it does it answers with x_0. Take as transcript the decisions on all users but u,
up to and including the C-th that is filtered.

1. *Scores of batch t move by at most 1*: one term, in (0, 1], of the score of each other user.
2. *Who is kept lies together.* But for probability (B / 2) exp(-theta / b), no other user of K has
   a score kappa <= F - theta on D, and nu_u <= theta: at most B noises of scale b. On D' the
   scores of K then exceed F - theta - 1, and on either dataset u has a score above F - theta if it
   is kept. So kept users are pairwise within r / tau, exp(-r) = (2F - 2 theta - 1) / B - 1, on
   either dataset (`scores.disagreement_bound`).
3. *The iterate.* Unless C other users were filtered, K has at least B - C users. If u is kept on
   one dataset only, the mean gradient moves by at most min(r / tau, 2G) / (|K| + 1), and if it is
   kept on both, by min(2r / tau, 2G) / (|K| + 1): u's own two gradients are at most 2G apart. So
   the iterates after batch t are within b_x = eta min(2r / tau, 2G) / (B - C + 1) of one another.
   Later batches are equal, and where decisions are equal, steps of size eta <= 2 / beta contract
   (Facts 5 and 6), so iterates and their average stay within b_x.
4. *Scores of later batches* move by at most s = (B - 1) (1 - exp(-beta tau b_x)), for a difference
   of two gradients moves by beta b_x at most: by the difference of two Hessians between 0 and
   beta, averaged over a segment, times b_x. (Lemma 11 has 2 beta b_x.)
5. *The decisions* are epsilon0-DP each, epsilon0 = max(1, s) / b, and the transcript ends at the
   C-th filtered user: `algorithms.common.charging`, with C targets. (Given nu_u and the transcript
   so far, D and D' determine u's decision and hence the next scores: queries are adaptive.)
6. *Halting.* c_hat may be drawn at the end: it decides between x_0 and the average iterate by
   comparison with a count that the transcript determines, but for u, by which it moves by 1 at
   most: epsilon1 = 1 / (scale of c_hat's noise). If C others are filtered, both runs halt, but for
   the probability exp(-(C - c) / scale) / 2 that c_hat > C.
7. *The noise.* Given all that, the centres are within b_x, so the Gaussian has mu = b_x / sigma_s.

So delta(epsilon) is at most the sum of the tails of 2, 5 and 6 and of H(epsilon) of `charging`. The
noise on the scores must not depend on c_hat for this; as printed it does.

*Sampled scores* (footnote 3): kappa in 2 is the exact score, which one of B + 1 estimates exceeds
by t (of the others, and of u on either dataset) with probability (B + 1) exp(-2 k t**2 / B**2); F -
theta becomes F - theta - t. In 1, a decision of batch t is log(1 + p (exp(1 / (p b)) - 1))-DP with
p = k / B, by subsampling. In 4, B - 1 becomes B.

**The test (v1, Algorithms 1 to 5; v2, 5 to 8).** Without noise inside, the trajectory of a phase
is a function of the data: only AboveThreshold and the Gaussian are random. Let theta B be a score.

1. *Some dataset has a score of theta B or more in batch t.* Then a row of it sums to theta B: some
   q_i has N >= B (theta - exp(-r)) / (1 - exp(-r)) users within r / tau, in l-infinity. Take r such
   that at most h - 1 are outside, where the statistic leaves out h at either end ((B - 1) // 2 for
   the median): then on the other dataset at most h are outside of the same ball. In each coordinate
   both statistics lie in the ball, within 2r / tau of one another. The estimates, means that are
   moved to within varsigma of the statistics, are within
   Delta = min(2r / tau + 2 varsigma, max(2r / tau, 2G / B), 2G) (the second by Lemma 31), so
   iterates within b_x = eta Delta, for good (Lemma 33; eta <= 2 / beta). Scores move by at most
   2 (B - 1) / B in batch t and by (B - 1) (1 - exp(-2 beta tau b_x)) later: AboveThreshold, its
   noise scaled for the larger of the two, is epsilon1-DP, and the Gaussian has
   mu = sqrt(d) b_x / sigma_s. H(epsilon) with no calls.
2. *Neither has.* Then each passes the test of batch t with probability at most
   P[Lap(4 Delta' / epsilon1) + Lap(2 Delta' / epsilon1) >= v - theta B], and answers x_0 otherwise.

So delta(epsilon) is the larger of the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from algorithms.common import _validate, charging
from algorithms.user_level_sco.plans import Filter, Phase, Plan, Test
from algorithms.user_level_sco.scores import disagreement_bound

TAILS = tuple(10.0**-i for i in range(2, 19))
"""Tail probabilities among which a bound is made smallest."""

SHARES = 8.0
"""A tail gets this part of a plan's delta."""

LOUDEST = 8.0
"""epsilon0 from which nothing is computed: a target in thousands of calls."""


@dataclass(frozen=True)
class Account:
    """What one phase costs, by the proofs of this module.

    Attributes
    ----------
    delta : float
        At the epsilon that was asked for.
    tails : float
        Its part that is due to events of small probability.
    shift : float
        b_x: how far iterates move, in Euclidean norm.
    spread : float
        Distance within which kept users lie, or r / tau of the test.
    mu : float
        Shift over the Gaussian noise.
    later_sensitivity : float
        How far scores of later batches move.
    targets, calls : int
        C and k of the filter; 0 of a test.
    epsilon0, epsilon1 : float
        Of one decision, and of halting or of the test.
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
    """Return t: no score of a batch is overestimated by more, but with probability `failure`."""
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
        With a Filter whose noise does not follow the cutoff.
    epsilon : float
        At least 0.
    phase : int, default 1
        Which one. Each user is in one phase only, so that the whole costs what the dearest does.
    tail : float, optional
        Probability of each of the three tails (four with sampled scores); by default that of
        `TAILS`, or an eighth of the plan's delta, at which delta is smallest.
    """
    rule = plan.rule
    if not isinstance(rule, Filter):
        raise TypeError(f"plan must have a Filter, got {rule!r}")
    if rule.scale_follows_cutoff:
        raise ValueError("plan must have noise that does not follow the cutoff: the proof needs it")
    chosen = _phase_of(plan, phase)
    epsilon = _validate.nonnegative("epsilon", epsilon)
    tails = (*TAILS, plan.delta / SHARES)
    if tail is not None:
        tails = (_validate.probability("tail", tail),)
    found = [filter_account(plan, rule, chosen, epsilon, x) for x in tails]
    return min(found, key=lambda account: account.delta)


def filter_account(plan: Plan, rule: Filter, phase: Phase, epsilon: float, tail: float) -> Account:
    """Return the account of a phase, each of whose tails has a given probability."""
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
    """Return h: how many values the statistic leaves out at either end."""
    return (batch_size - 1) // 2 if rule.statistic == "median" else rule.trim


def coordinatewise_account(
    plan: Plan, dimension: int, epsilon: float, *, phase: int = 1
) -> Account:
    """Return an upper bound for the delta of one phase of Algorithm 5 (v1 and v2's appendix).

    Parameters
    ----------
    plan : Plan
        With a Test, one for all steps.
    dimension : int
        d.
    epsilon : float
        At least 0.
    phase : int, default 1
        Which one. Each user is in one phase only.
    """
    rule = plan.rule
    if not isinstance(rule, Test):
        raise TypeError(f"plan must have a Test, got {rule!r}")
    if rule.per_step:
        raise ValueError("plan must have one test for all steps: the proof needs it")
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
    """Return r: a score of theta B leaves at most `trimmed` - 1 users outside of a ball of r / tau.

    inf where it does not.
    """
    inside = (batch - trimmed + 1) / batch  # N / B
    if theta <= inside or inside >= 1:
        return math.inf
    return -math.log((theta - inside) / (1 - inside))


def estimate_move(batch: int, lipschitz: float, spread: float, clip: float) -> float:
    """Return Delta of the proof: how far the robust estimate moves in a coordinate."""
    return min(2 * spread + 2 * clip, max(2 * spread, 2 * lipschitz / batch), 2 * lipschitz)


def two_laplace_tail(x: float, a: float, b: float) -> float:
    """Return P[a X + b Y >= x] for two independent Laplace variables of scale 1, a != b."""
    if x < 0:
        return 1 - two_laplace_tail(-x, a, b)
    return (a * a * math.exp(-x / a) - b * b * math.exp(-x / b)) / (2 * (a * a - b * b))
