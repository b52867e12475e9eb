"""Explicit parameters at which `accounts` proves privacy.

The papers hide these parameters in O().
"""

from __future__ import annotations

import math
from dataclasses import replace

from algorithms.common import _validate, charging
from algorithms.user_level_sco.accounts import (
    LOUDEST,
    SHARES,
    aligned_spread,
    estimate_move,
    filter_account,
    laplace_tail,
    most_trimmed,
    sampling_margin,
    two_laplace_tail,
)
from algorithms.user_level_sco.plans import Filter, Phase, Plan, Test, halving_phases

_LEAST_EXCESS = 0.2  # exp(-r) for kept users, who are then within 1.6 / tau


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
    """Return parameters of v2's Algorithm 1 at which `accounts` proves (epsilon, delta).

    The filter's noise b is the smallest b for which C filtered users have a privacy loss of at most
    `filter_share` times epsilon. The value sigma_s is the smallest sigma for the remaining budget.
    Each tail has probability delta / 8. The size of the batch is also chosen for utility. Privacy
    does not need this choice. In a batch of this size, the expected number of honest users filtered
    in a phase is at most a quarter of the cutoff.

    **Departs** from Section 3 in every constant, and in three other points. (1) The number of
    phases is floor(log2(n / B)), so that the last phase has at least one batch. (2) The noise on
    the scores does not depend on the noised cutoff. (3) Step sizes shrink by `decay` from phase to
    phase for every m. `decay` is 4 in Feldman, Koren & Talwar (2020), on which the localisation is
    based. The printed value is log(m).

    Parameters
    ----------
    n_users, m, dimension : int
        The numbers n, m and d. The value m = 1 is allowed.
    epsilon : float
        Positive. A value above 1 is allowed.
    delta : float
        In (0, 1).
    lipschitz, radius : float
        G and D, positive.
    smoothness : float, default 0
        Smoothness constant beta, at least 0.
    batch_size : int, optional
        B. The default is the smallest batch for which the proof works, rounded up to a multiple of
        `samples`.
    step : float, optional
        Step size eta_1 of the first phase. The default is the smallest of four values. (1) (D / G)
        sqrt(B m / T), which balances the errors of SGD. (2) The step at which the noise of the
        first phase has length D. (3) 1 / beta. (4) The largest step at which scores of later
        batches move by at most `sensitivity`.
    spread : float, optional
        A public guess of the distance between the mean gradients of two honest users. The default
        is 4 G / sqrt(m). The guess determines the temperature. A user at this distance still
        contributes (1 + `keep`) / 2 to a score.
    keep : float, default 0.8
        F / B, the threshold divided by the batch size.
    filter_share, cutoff_share : float
        Fractions of epsilon for the decisions and for halting.
    decay : float, default 4
        Factor by which step sizes shrink, at least 1.
    sensitivity : float, default 1
        Largest allowed move of the scores of later batches, at least 1. Scores of the first batch
        move by 1. A larger value allows larger steps if the smoothness is large, but needs larger
        batches.
    samples : int, optional
        Number of users from which a score is estimated. This number must divide B.

    Raises
    ------
    ValueError
        If the batch is too small for the proof, if step sizes are above 2 / beta, or if there are
        fewer than 2 B users. The message names the smallest batch that is enough.
    """
    n = _validate.integer("n_users", n_users, at_least=1)
    m = _validate.integer("m", m, at_least=1)
    d = _validate.integer("dimension", dimension, at_least=1)
    epsilon = _validate.positive("epsilon", epsilon)
    delta = _validate.probability("delta", delta)
    lipschitz = _validate.positive("lipschitz", lipschitz)
    radius = _validate.positive("radius", radius)
    smoothness = _validate.nonnegative("smoothness", smoothness)
    if _validate.real("decay", decay) < 1:
        raise ValueError(f"decay must be at least 1, got {decay!r}")
    if samples is not None:
        samples = _validate.integer("samples", samples, at_least=1)
    for name, share in (("filter_share", filter_share), ("cutoff_share", cutoff_share)):
        _validate.probability(name, share)
    if filter_share + cutoff_share >= 1:
        raise ValueError(
            f"filter_share + cutoff_share must be below 1, got {filter_share} + {cutoff_share}"
        )
    if not 0.6 < _validate.real("keep", keep) < 1:
        raise ValueError(f"keep must be above 0.6 and below 1, got {keep!r}")
    distance = 4 * lipschitz / math.sqrt(m) if spread is None else spread
    temperature = -math.log((1 + keep) / 2) / _validate.positive("spread", distance)
    if _validate.real("sensitivity", sensitivity) < 1:
        raise ValueError(f"sensitivity must be at least 1, got {sensitivity!r}")
    tail = delta / SHARES
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
    if samples is not None:
        least = samples * math.ceil(least / samples)
    batch = least if batch_size is None else _validate.integer("batch_size", batch_size, at_least=2)
    rule = _affordable(batch, temperature, *budget)
    if rule is None:
        raise ValueError(
            f"batch_size must be at least {least} for epsilon = {epsilon!r} and delta = "
            f"{delta!r}, got {batch}"
        )
    if n < 2 * batch:
        raise ValueError(f"n_users must be at least 2 * batch_size = {2 * batch}, got {n}")
    first = Phase(batch * (n // 2 // batch), n // 2 // batch, 1.0, 1.0)
    draft = Plan(batch, (first,), rule, lipschitz, 0.0, epsilon, delta)
    unit = filter_account(draft, rule, first, epsilon, tail)
    epsilon0 = max(unit.epsilon0, sensitivity / rule.scale)
    mu = charging.largest_mu(
        epsilon, delta - unit.tails, calls=charging.calls_for(unit.targets, epsilon0, tail),
        epsilon0=epsilon0, epsilon1=unit.epsilon1,
    )  # fmt: skip
    others = batch if samples else batch - 1
    largest = math.inf  # the step at which scores of later batches move by `sensitivity`
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
            f"step must be at most 2 / smoothness = {2 / smoothness!r}, so that gradient "
            f"steps contract, got {step!r}"
        )
    if step > largest * (1 + 1e-9):
        raise ValueError(
            f"step must be at most {largest!r} for smoothness = {smoothness!r}, so that "
            f"scores of later batches move by at most sensitivity = {sensitivity!r}, got "
            f"{step!r}"
        )
    n_phases = max(1, math.floor(math.log2(n / batch)))
    steps = [step / decay**s for s in range(n_phases)]
    sigmas = [unit.shift * x / mu for x in steps]
    phases = halving_phases(n, batch, n_phases, steps=steps, sigmas=sigmas)
    return Plan(batch, phases, rule, lipschitz, smoothness, epsilon, delta, d)


def _affordable(
    batch: int, temperature: float, keep: float, epsilon: float, epsilon1: float, tail: float,
    sensitivity: float, samples: int | None, honest: int,
) -> Filter | None:  # fmt: skip
    """Return the filter with the least noise that a budget allows, or None if B is too small."""
    cutoff_scale = 1 / epsilon1
    room = math.ceil(cutoff_scale * math.log(1 / (2 * tail)))
    cutoff, targets = float(room), 2 * room
    if targets > batch / 2:
        return None
    amplified = 1.0 if samples is None else samples / batch

    def cost(scale: float) -> float:
        epsilon0 = math.log1p(amplified * math.expm1(min(700.0, 1 / (scale * amplified))))
        epsilon0 = max(epsilon0, sensitivity / scale)
        if epsilon0 > LOUDEST:
            return 1.0
        calls = charging.calls_for(targets, epsilon0, tail)
        return charging.composed_profile(epsilon, calls=calls, epsilon0=epsilon0)

    low, high = 0.05, 1.0
    while cost(high) > 2 * tail:
        low, high = high, 2 * high
        if high > batch:  # the noise would exceed the largest score
            return None
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
    """Return the smallest B for which the budget allows a filter."""
    low, high = 1, 2

    def affordable(batch: int) -> bool:
        return _affordable(batch, 1.0, *budget) is not None

    while not affordable(high):
        low, high = high, 2 * high
        if high > 2**40:
            raise ValueError(
                "epsilon or samples must be larger, because no batch size is large enough "
                "for these values"
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if affordable(middle) else (middle, high)
    return high


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
    """Return parameters of Algorithm 5 (v1, v2's appendix) at which `accounts` proves privacy.

    The batch is the smallest batch in which a score of `theta` B is detected except with
    probability delta. The threshold v is (1 - `margin`) B, where B is the largest score.

    **Departs** from Theorem 3.1 in every constant. AboveThreshold's noise is scaled for the true
    sensitivity of the scores.

    Parameters
    ----------
    n_users, m, dimension, epsilon, delta, lipschitz, radius, smoothness, batch_size, decay
        As for `scaled_euclidean`, but in l-infinity.
    step : float, optional
        Step size eta_1 of the first phase. The default is the smallest of four values. (1) (D / G)
        sqrt(B m / T). (2) The step at which the noise of the first phase has length sqrt(d) D. (3)
        1 / beta. (4) The largest step at which scores of later batches move by no more than the
        scores of the first batch.
    spread : float, optional
        A public guess of the distance between the mean gradients of two honest users in any
        coordinate. The default is 4 G sqrt(log(2 d) / m). A user at this distance still contributes
        1 - `margin` / 2 to a score.
    theta : float, default 0.75
        Score, as a fraction of B, at which batches begin to be treated as aligned. The value is in
        (1/2, 1 - margin).
    margin : float, default 0.1
        1 - v / B, where v is the threshold.
    clip : float, optional
        Clipping distance varsigma. The default is half of `spread`.
    test_share : float, default 0.3
        Fraction of epsilon for the test.
    statistic : {"median", "trimmed_mean"}
        The trimmed mean ignores as many values as the proof needs, which is the number of values
        outside of the ball.
    """
    n = _validate.integer("n_users", n_users, at_least=1)
    m = _validate.integer("m", m, at_least=1)
    d = _validate.integer("dimension", dimension, at_least=1)
    epsilon = _validate.positive("epsilon", epsilon)
    delta = _validate.probability("delta", delta)
    lipschitz = _validate.positive("lipschitz", lipschitz)
    radius = _validate.positive("radius", radius)
    smoothness = _validate.nonnegative("smoothness", smoothness)
    margin = _validate.probability("margin", margin)
    if not 0.5 < _validate.real("theta", theta) < 1 - margin:
        raise ValueError(f"theta must be above 1/2 and below 1 - margin, got {theta!r}")
    if _validate.real("decay", decay) < 1:
        raise ValueError(f"decay must be at least 1, got {decay!r}")
    distance = 4 * lipschitz * math.sqrt(math.log(2 * d) / m) if spread is None else spread
    temperature = -math.log(1 - margin / 2) / _validate.positive("spread", distance)
    epsilon1 = epsilon * _validate.probability("test_share", test_share)
    sensitivity = 2.0
    # Find the smallest B with P[...] <= delta, where x solves the tail for sensitivity 1 and
    # epsilon 1.
    low, high = 0.0, 10_000.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if two_laplace_tail(middle, 4, 2) <= delta else (middle, high)
    least = max(8, math.ceil(high * sensitivity / epsilon1 / (1 - margin - theta)))
    batch = least if batch_size is None else _validate.integer("batch_size", batch_size, at_least=2)
    if batch < least:
        raise ValueError(
            f"batch_size must be at least {least} for epsilon = {epsilon!r} and delta = "
            f"{delta!r}, got {batch}"
        )
    if n < 2 * batch:
        raise ValueError(f"n_users must be at least 2 * batch_size = {2 * batch}, got {n}")
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
            f"step must be at most 2 / smoothness = {2 / smoothness!r}, so that gradient "
            f"steps contract, got {step!r}"
        )
    later = -(batch - 1) * math.expm1(-2 * smoothness * temperature * step * move)
    if later > sensitivity:
        rule = replace(rule, sensitivity=later)
        missed = two_laplace_tail((rule.threshold - theta * batch) * epsilon1 / later, 4.0, 2.0)
        if missed > delta:
            raise ValueError(
                f"step must be smaller for smoothness = {smoothness!r}, got {step!r}. The "
                f"scores of later batches would move by {later:.3g}."
            )
    n_phases = max(1, math.floor(math.log2(n / batch)))
    steps = [step / decay**s for s in range(n_phases)]
    sigmas = [math.sqrt(d) * x * move / mu for x in steps]
    phases = halving_phases(n, batch, n_phases, steps=steps, sigmas=sigmas)
    return Plan(batch, phases, rule, lipschitz, smoothness, epsilon, delta, d)
