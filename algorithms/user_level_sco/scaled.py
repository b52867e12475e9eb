"""Explicit constants, and why they are private: what O() hides in the papers, worked out.

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

*Sampled scores* (footnote 3): kappa in 2 is the exact score, which the estimate exceeds by t in one
of B users with probability B exp(-2 k t**2 / B**2); F - theta becomes F - theta - t. In 1, a
decision of batch t is log(1 + p (exp(1 / (p b)) - 1))-DP with p = k / B, by subsampling. In 4,
B - 1 becomes B.

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
from dataclasses import dataclass, replace

from algorithms.common import _validate, charging
from algorithms.user_level_sco.plans import Filter, Phase, Plan, Test, halving_phases
from algorithms.user_level_sco.scores import disagreement_bound

TAILS = tuple(10.0**-i for i in range(2, 19))
"""Tail probabilities among which a bound is made smallest."""

_SHARES = 8.0
_LOUDEST = 8.0  # epsilon0 from which nothing is computed: a target in thousands of calls
_LEAST_EXCESS = 0.2  # exp(-r), of kept users: they are within 1.6 / tau


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
    return batch_size * math.sqrt(math.log(batch_size / failure) / (2 * samples))


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
    chosen = plan.phases[_validate.integer("phase", phase, at_least=1) - 1]
    tails = (*TAILS, plan.delta / _SHARES)
    if tail is not None:
        tails = (_validate.probability("tail", tail),)
    found = [_filter_account(plan, rule, chosen, epsilon, x) for x in tails]
    return min(found, key=lambda account: account.delta)


def _filter_account(plan: Plan, rule: Filter, phase: Phase, epsilon: float, tail: float) -> Account:
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
    if not stable or epsilon0 > _LOUDEST:
        return Account(1.0, tails, shift, spread, mu, later, targets, 0, epsilon0, 0.0)
    calls = charging.calls_for(targets, epsilon0, tail)
    epsilon1 = 1 / rule.cutoff_scale
    spent = charging.composed_profile(
        epsilon, calls=calls, epsilon0=epsilon0, epsilon1=epsilon1, mu=mu
    )
    delta = min(1.0, spent + tails)
    return Account(delta, tails, shift, spread, mu, later, targets, calls, epsilon0, epsilon1)


def scaled_euclidean(
    n_users: int,
    m: int,
    dimension: int,
    *,
    epsilon: float,
    delta: float,
    lipschitz: float,
    radius: float,
    smoothness: float = 0.0,
    batch_size: int | None = None,
    step: float | None = None,
    spread: float | None = None,
    keep: float = 0.8,
    filter_share: float = 0.5,
    cutoff_share: float = 0.1,
    decay: float = 4.0,
    sensitivity: float = 1.0,
    samples: int | None = None,
) -> Plan:
    """Return parameters of v2's Algorithm 1 at which the proof above gives (epsilon, delta).

    The filter's noise b is the smallest at which C filtered users cost `filter_share` epsilon,
    sigma_s the smallest for what is left. Each tail is delta / 8. For utility, not for privacy, the
    batch is so large that of honest users a quarter of the cutoff is filtered in a phase, expected.

    **Departs** from Section 3 in every constant; in the noise on scores, which does not depend on
    the noised cutoff; and in step sizes, which shrink by `decay` from phase to phase whatever m is
    (4 in Feldman, Koren & Talwar 2020, on which the localisation rests; log(m) as printed).

    Parameters
    ----------
    n_users, m, dimension : int
        n, m, d: m = 1 is allowed.
    epsilon : float
        Positive; above 1 too.
    delta : float
        In (0, 1).
    lipschitz, radius : float
        G and D, positive.
    smoothness : float, default 0
        beta, at least 0.
    batch_size : int, optional
        B; by default the smallest at which the proof works.
    step : float, optional
        eta_1. By default the smallest of: (D / G) sqrt(B m / T), which balances the errors of SGD;
        what makes the noise of the first phase D long; 1 / beta; and the largest at which scores
        of later batches move by no more than `sensitivity`.
    spread : float, optional
        A public guess of how far apart the mean gradients of two honest users are; 4 G / sqrt(m) by
        default. It sets the temperature: that far apart, they still count
        (1 + `keep`) / 2.
    keep : float, default 0.8
        F / B.
    filter_share, cutoff_share : float
        Of epsilon, for the decisions and for halting.
    decay : float, default 4
        Of step sizes, at least 1.
    sensitivity : float, default 1
        How far scores of later batches may move, at least 1; those of the first move by 1. More
        allows for larger steps on rough losses, and needs larger batches.
    samples : int, optional
        Users from which a score is estimated; a divisor of B.

    Raises
    ------
    ValueError
        Where the batch is too small for the proof, with the smallest that is enough; step sizes
        above 2 / beta; fewer than 2 B users.
    """
    n = _validate.integer("n_users", n_users, at_least=1)
    m = _validate.integer("m", m, at_least=1)
    d = _validate.integer("dimension", dimension, at_least=1)
    epsilon = _validate.positive("epsilon", epsilon)
    delta = _validate.probability("delta", delta)
    lipschitz = _validate.positive("lipschitz", lipschitz)
    radius = _validate.positive("radius", radius)
    smoothness = _validate.real("smoothness", smoothness)
    if _validate.real("decay", decay) < 1:
        raise ValueError(f"decay must be at least 1, got {decay!r}")
    for name, share in (("filter_share", filter_share), ("cutoff_share", cutoff_share)):
        _validate.probability(name, share)
    if not 0.6 < _validate.real("keep", keep) < 1:
        raise ValueError(f"keep must be above 0.6 and below 1, got {keep!r}")
    distance = 4 * lipschitz / math.sqrt(m) if spread is None else spread
    temperature = -math.log((1 + keep) / 2) / _validate.positive("spread", distance)
    if _validate.real("sensitivity", sensitivity) < 1:
        raise ValueError(f"sensitivity must be at least 1, got {sensitivity!r}")
    tail = delta / _SHARES
    budget = (
        keep,
        epsilon * filter_share,
        epsilon * cutoff_share,
        tail,
        sensitivity,
        samples,
        n // 2,
    )
    least = _least_batch(budget)
    batch = least if batch_size is None else _validate.integer("batch_size", batch_size, at_least=2)
    rule = _affordable(batch, temperature, *budget)
    if rule is None:
        raise ValueError(
            f"batch_size must be at least {least} at epsilon = {epsilon!r} and delta = {delta!r}, "
            f"got {batch}"
        )
    if n < 2 * batch:
        raise ValueError(f"n_users must be at least 2 batch_size = {2 * batch}, got {n}")
    first = Phase(batch * (n // 2 // batch), n // 2 // batch, 1.0, 1.0)
    draft = Plan(batch, (first,), rule, lipschitz, 0.0, epsilon, delta)
    unit = _filter_account(draft, rule, first, epsilon, tail)
    epsilon0 = max(unit.epsilon0, sensitivity / rule.scale)
    mu = charging.largest_mu(
        epsilon, delta - unit.tails, calls=charging.calls_for(unit.targets, epsilon0, tail),
        epsilon0=epsilon0, epsilon1=unit.epsilon1,
    )  # fmt: skip
    others = batch if samples else batch - 1
    largest = math.inf  # step at which scores of later batches move by `sensitivity`
    if smoothness > 0 and sensitivity < others:
        largest = -math.log1p(-sensitivity / others)
        largest /= smoothness * temperature * unit.shift
    if step is None:
        choices = [
            radius / lipschitz * math.sqrt(batch * m / first.n_steps),
            radius * mu / (unit.shift * math.sqrt(d)),
            largest,
        ]
        step = min(choices) if smoothness == 0 else min(1 / smoothness, *choices)
    step = _validate.positive("step", step)
    if step * smoothness > 2:
        raise ValueError(
            f"step must be at most 2 / smoothness = {2 / smoothness!r}, where gradient steps "
            f"contract, got {step!r}"
        )
    if step > largest * (1 + 1e-9):
        raise ValueError(
            f"step must be at most {largest!r} at smoothness = {smoothness!r}, where scores of "
            f"later batches move by no more than sensitivity = {sensitivity!r}, got {step!r}"
        )
    n_phases = max(1, math.floor(math.log2(n / batch)))
    steps = [step / decay**s for s in range(n_phases)]
    sigmas = [unit.shift * x / mu for x in steps]
    phases = halving_phases(n, batch, n_phases, steps=steps, sigmas=sigmas)
    return Plan(batch, phases, rule, lipschitz, smoothness, epsilon, delta)


def _affordable(
    batch: int, temperature: float, keep: float, epsilon: float, epsilon1: float, tail: float,
    sensitivity: float, samples: int | None, honest: int,
) -> Filter | None:  # fmt: skip
    """Return the filter with the least noise that a budget allows; None where B is too small."""
    cutoff_scale = 1 / epsilon1
    room = math.ceil(cutoff_scale * math.log(1 / (2 * tail)))
    cutoff, targets = float(room), 2 * room
    if targets > batch / 2:
        return None
    amplified = 1.0 if samples is None else samples / batch

    def cost(scale: float) -> float:
        epsilon0 = math.log1p(amplified * math.expm1(min(700.0, 1 / (scale * amplified))))
        epsilon0 = max(epsilon0, sensitivity / scale)
        if epsilon0 > _LOUDEST:
            return 1.0
        calls = charging.calls_for(targets, epsilon0, tail)
        return charging.composed_profile(epsilon, calls=calls, epsilon0=epsilon0)

    low, high = 0.05, 1.0
    while cost(high) > 2 * tail:
        low, high = high, 2 * high
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if cost(middle) <= 2 * tail else (middle, high)
    margin = high * math.log(batch / (2 * tail)) + sampling_margin(batch, samples, tail)
    if 2 * keep * batch - 2 * margin - 1 < (1 + _LEAST_EXCESS) * batch:
        return None
    if honest * laplace_tail((1 - keep) / 2 * batch / high) > cutoff / 4:
        return None
    return Filter(temperature, keep * batch, high, cutoff, cutoff_scale, samples=samples)


def _least_batch(budget: tuple[float, float, float, float, float, int | None, int]) -> int:
    """Return the smallest B at which a filter is affordable."""
    low, high = 1, 2

    def affordable(batch: int) -> bool:
        return _affordable(batch, 1.0, *budget) is not None

    while not affordable(high):
        low, high = high, 2 * high
        if high > 2**40:
            raise ValueError("epsilon must be larger: no batch size is enough")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if affordable(middle) else (middle, high)
    return high


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
    chosen = plan.phases[_validate.integer("phase", phase, at_least=1) - 1]
    levels = [i / 64 for i in range(33, 64)]
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


def scaled_coordinatewise(
    n_users: int,
    m: int,
    dimension: int,
    *,
    epsilon: float,
    delta: float,
    lipschitz: float,
    radius: float,
    smoothness: float = 0.0,
    batch_size: int | None = None,
    step: float | None = None,
    spread: float | None = None,
    theta: float = 0.75,
    margin: float = 0.1,
    clip: float | None = None,
    test_share: float = 0.3,
    decay: float = 4.0,
    statistic: str = "median",
) -> Plan:
    """Return parameters of Algorithm 5 (v1 and v2's appendix) at which the proof above works.

    The batch is the smallest at which a score of `theta` B is found out but with probability delta,
    at a threshold v that lies by `margin` B below the largest score B.

    **Departs** from Theorem 3.1 in every constant, and in AboveThreshold, whose noise is scaled for
    the sensitivity that scores have.

    Parameters
    ----------
    n_users, m, dimension, epsilon, delta, lipschitz, radius, smoothness, batch_size, decay
        As for `scaled_euclidean`, in l-infinity.
    step : float, optional
        eta_1. By default the smallest of (D / G) sqrt(B m / T), of what makes the noise of the
        first phase sqrt(d) D long, of 1 / beta, and of the largest at which scores of later batches
        move by no more than those of the first.
    spread : float, optional
        A public guess of how far apart the mean gradients of two honest users are in any
        coordinate; 4 G sqrt(log(2 d) / m) by default. That far apart they still count
        1 - `margin` / 2.
    theta : float, default 0.75
        Score, in units of B, from which batches are taken for aligned; in (1/2, 1 - margin).
    margin : float, default 0.1
        1 - v / B.
    clip : float, optional
        varsigma; half of `spread` by default.
    test_share : float, default 0.3
        Of epsilon, for the test.
    statistic : {"median", "trimmed_mean"}
        The trimmed mean leaves out what the proof needs: as much as is outside.
    """
    n = _validate.integer("n_users", n_users, at_least=1)
    m = _validate.integer("m", m, at_least=1)
    d = _validate.integer("dimension", dimension, at_least=1)
    epsilon = _validate.positive("epsilon", epsilon)
    delta = _validate.probability("delta", delta)
    lipschitz = _validate.positive("lipschitz", lipschitz)
    radius = _validate.positive("radius", radius)
    smoothness = _validate.real("smoothness", smoothness)
    margin = _validate.probability("margin", margin)
    if not 0.5 < _validate.real("theta", theta) < 1 - margin:
        raise ValueError(f"theta must be above 1/2 and below 1 - margin, got {theta!r}")
    if _validate.real("decay", decay) < 1:
        raise ValueError(f"decay must be at least 1, got {decay!r}")
    distance = 4 * lipschitz * math.sqrt(math.log(2 * d) / m) if spread is None else spread
    temperature = -math.log(1 - margin / 2) / _validate.positive("spread", distance)
    epsilon1 = epsilon * _validate.probability("test_share", test_share)
    sensitivity = 2.0
    # The smallest B with P[...] <= delta: x solves the tail for sensitivity 1 and epsilon 1.
    low, high = 0.0, 10_000.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if two_laplace_tail(middle, 4, 2) <= delta else (middle, high)
    least = max(8, math.ceil(high * sensitivity / epsilon1 / (1 - margin - theta)))
    batch = least if batch_size is None else _validate.integer("batch_size", batch_size, at_least=2)
    if batch < least:
        raise ValueError(
            f"batch_size must be at least {least} at epsilon = {epsilon!r} and delta = {delta!r}, "
            f"got {batch}"
        )
    if n < 2 * batch:
        raise ValueError(f"n_users must be at least 2 batch_size = {2 * batch}, got {n}")
    clip = distance / 2 if clip is None else _validate.real("clip", clip)
    trim = (batch - 1) * 2 // 5 if statistic == "trimmed_mean" else 0
    rule = Test(temperature, (1 - margin) * batch, epsilon1, sensitivity, clip, statistic, trim)
    reach = aligned_spread(batch, theta, most_trimmed(batch, rule)) / temperature
    move = estimate_move(batch, lipschitz, reach, clip)
    mu = charging.largest_mu(epsilon, delta, calls=0, epsilon0=0.0, epsilon1=epsilon1)
    n_steps = n // 2 // batch
    if step is None:
        choices = [
            radius / lipschitz * math.sqrt(batch * m / n_steps),
            radius * mu / (move * math.sqrt(d)),
        ]
        if smoothness > 0:
            largest = -math.log1p(-sensitivity / (batch - 1)) / (2 * smoothness * temperature)
            choices += [1 / smoothness, largest / move]
        step = min(choices)
    step = _validate.positive("step", step)
    if step * smoothness > 2:
        raise ValueError(
            f"step must be at most 2 / smoothness = {2 / smoothness!r}, where gradient steps "
            f"contract, got {step!r}"
        )
    later = -(batch - 1) * math.expm1(-2 * smoothness * temperature * step * move)
    if later > sensitivity:
        rule = replace(rule, sensitivity=later)
        missed = two_laplace_tail((rule.threshold - theta * batch) * epsilon1 / later, 4.0, 2.0)
        if missed > delta:
            raise ValueError(
                f"step must be smaller at smoothness = {smoothness!r}, got {step!r}: scores of "
                f"later batches would move by {later:.3g}"
            )
    n_phases = max(1, math.floor(math.log2(n / batch)))
    steps = [step / decay**s for s in range(n_phases)]
    sigmas = [math.sqrt(d) * x * move / mu for x in steps]
    phases = halving_phases(n, batch, n_phases, steps=steps, sigmas=sigmas)
    return Plan(batch, phases, rule, lipschitz, smoothness, epsilon, delta)
