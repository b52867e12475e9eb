"""The parameters that the theorems print, for all inputs at which the parameters are defined.

Logarithms are natural, because the logarithms of Laplace tails are natural. In every parameter, a
logarithm below 1 is replaced by 1. A constant that a theorem hides in O() is an argument.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

from algorithms.common import _validate
from algorithms.user_level_sco.plans import (
    Filter,
    Plan,
    PlanWarning,
    Test,
    halving_phases,
    natural_log,
)


def euclidean_least_users(m: int, epsilon: float, delta: float) -> int:
    """Return the smallest n with n >= 300 log(m n / delta)**3 / epsilon**1.5 (v2, Section 3).

    Examples
    --------
    >>> euclidean_least_users(1, 1.0, 1e-6)
    7853008
    """
    m = _validate.integer("m", m, at_least=1)
    epsilon = _validate.positive("epsilon", epsilon)
    delta = _validate.probability("delta", delta)

    def short(n: int) -> bool:
        needed: float = 300 * natural_log("m n / delta", m * n / delta) ** 3 / epsilon**1.5
        return n < needed

    low, high = 1, 2
    while short(high):  # from some n on, the right side grows more slowly than n
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if short(middle) else (low, middle)
    return high


def euclidean(
    n_users: int,
    m: int,
    dimension: int,
    *,
    epsilon: float,
    delta: float,
    lipschitz: float,
    radius: float,
    smoothness: float = 0.0,
    noise_constant: float = 1.0,
    unsafe: bool = False,
) -> Plan:
    """Return the parameters of user_level_sco v2, Section 3.

    With L = log(m n / delta):

    | B = 300 L**2 / epsilon**1.5,
    | eta = (D / G) B sqrt(m) min(1 / sqrt(n), epsilon / sqrt(d log(1 / delta) log(n m d))),
    | tau = sqrt(m) / (20 G log(n m d)), F = 3 B / 4, c = 10 log(n m / delta) / epsilon,
    | 2 sigma = 8 sqrt(32 c_hat log(1 / delta)) / epsilon, eta_s = eta / log(m)**s,
    | sigma_s = `noise_constant` eta_s G sqrt(log(1 / delta) log(n m d)) / (B sqrt(m) epsilon).

    **Guarantee** We prove no guarantee. Theorem 8 claims (epsilon, delta)-user-level DP for some
    `noise_constant`. But the sensitivity that Lemmas 10 to 12 prove is of order eta log(n m d) G /
    (B sqrt(m)). The reason is that 1 / tau contains log(n m d). In contrast, sigma_s contains only
    the square root of log(n m d).

    **Departs** (1) B and T are rounded to integers, B upwards. (2) log(m) is printed. At m = 1,
    log(m) is 0, so the parameters are not defined, and m = 1 is refused. At m = 2, step sizes would
    grow from phase to phase. So 1 replaces log(m) if log(m) is below 1. (3) Phases with fewer than
    B users are omitted (see `plans.halving_phases`). (4) epsilon = 1 is allowed, although Section 3
    requires epsilon in (0, 1). (5) m <= n^{O(log log n)} is not checked, because the constant of
    this bound is hidden.

    Parameters
    ----------
    n_users, m, dimension : int
        The numbers n, m (at least 2) and d.
    epsilon : float
        In (0, 1].
    delta : float
        In (0, 1).
    lipschitz, radius : float
        G and D, positive.
    smoothness : float, default 0
        Smoothness constant beta. The theorem's condition beta <= O~((G / D) sqrt(epsilon / m)
        (epsilon sqrt(n) + sqrt(d))) on this parameter hides logarithms. Instead, the function
        checks eta beta <= 2.
    noise_constant : float, default 1
        The constant that O() hides in sigma_s.
    unsafe : bool, default False
        Whether to return plans with step sizes above 2 / beta.

    Warns
    -----
    PlanWarning
        If the filter cannot act. Every score is at least `Plan.least_score`. If this value is at
        least F, the filter keeps every user, except by noise. For example, this happens for n =
        12,000,000 and m = 4. The message is also in `Plan.warnings`.

    Raises
    ------
    ValueError
        If Section 3 is not defined, or if step sizes are above 2 / beta. Section 3 is not defined
        if n is below `euclidean_least_users`, m is 1, or epsilon is above 1.
    """
    n = _validate.integer("n_users", n_users, at_least=1)
    m = _validate.integer("m", m, at_least=1)
    if m == 1:
        raise ValueError(
            "m must be at least 2, got 1. For m = 1, eta_s = eta / log(m)**s is undefined."
        )
    d = _validate.integer("dimension", dimension, at_least=1)
    epsilon = _validate.positive("epsilon", epsilon)
    if epsilon > 1:
        raise ValueError(f"epsilon must be at most 1, as in the paper, got {epsilon!r}")
    delta = _validate.probability("delta", delta)
    lipschitz = _validate.positive("lipschitz", lipschitz)
    radius = _validate.positive("radius", radius)
    constant = _validate.positive("noise_constant", noise_constant)
    least = euclidean_least_users(m, epsilon, delta)
    if n < least:
        raise ValueError(
            f"n_users must be at least {least}, because n >= 300 log(m n / delta)^3 / "
            f"epsilon^1.5 must hold, got {n}"
        )
    batch = math.ceil(300 * natural_log("m n / delta", m * n / delta) ** 2 / epsilon**1.5)
    size_log = natural_log("n m d", n * m * d)
    delta_log = natural_log("1 / delta", 1 / delta)
    eta = radius / lipschitz * batch * math.sqrt(m)
    eta *= min(1 / math.sqrt(n), epsilon / math.sqrt(d * delta_log * size_log))
    n_phases = math.ceil(math.log(n / batch))
    steps = [eta / natural_log("m", m) ** s for s in range(1, n_phases + 1)]
    unit = constant * lipschitz / (batch * math.sqrt(m) * epsilon)
    unit *= math.sqrt(delta_log * size_log)
    cutoff = 10 * natural_log("n m / delta", n * m / delta) / epsilon
    plan = Plan(
        batch,
        halving_phases(n, batch, n_phases, steps=steps, sigmas=[unit * x for x in steps]),
        Filter(
            temperature=math.sqrt(m) / (20 * lipschitz * size_log),
            threshold=0.75 * batch,
            scale=8 * math.sqrt(32 * cutoff * delta_log) / epsilon,
            cutoff=cutoff,
            cutoff_scale=4 / epsilon,
            scale_follows_cutoff=True,
        ),
        lipschitz,
        _validate.real("smoothness", smoothness),
        epsilon,
        delta,
        d,
    )
    return _warned(_stable(plan, unsafe), _idle_filter(plan))


def coordinatewise(
    n_users: int,
    m: int,
    dimension: int,
    *,
    epsilon: float,
    delta: float,
    lipschitz: float,
    radius: float,
    smoothness: float = 0.0,
    noise_constant: float = 1.0,
    deviation_constant: float = 1.0,
    temperature: str = "inverse",
    statistic: str = "median",
    unsafe: bool = False,
) -> Plan:
    """Return the parameters of user_level_sco v1, Theorem 3.1 (v2, Appendices C.2 and D).

    | B = 100 log(m n d / delta) / epsilon, v = 0.9 B + 2 log(T / delta) / epsilon,
    | eta = (D / G) min(B sqrt(m) / sqrt(n), sqrt(m) epsilon / sqrt(d log(1 / delta) log(n m d))),
    | eta_s = eta / log(m)**s, varsigma = 1 / tau, AboveThreshold at epsilon / 2,
    | sigma_s = `noise_constant` eta_s G sqrt(d log(e^epsilon / delta) log(n m d))
    |     / (sqrt(m) epsilon).

    **Guarantee** We prove no guarantee. Theorem 3.1 claims (epsilon, delta)-user-level DP. At the
    largest allowed beta, the step size eta may be fifty times as large as 2 / beta. Lemma 35 needs
    6 beta eta B <= 1, which is not a condition of the theorem.

    **Departs** (1) The paper prints tau = O(G log(n m d) / sqrt(m)), but every use of tau needs the
    inverse of this value. The scores are exp(-tau dist), the radii are 1 / tau, and gradients are
    said to lie within tau of their mean. `temperature` "inverse" takes tau = sqrt(m) / (C G log(n m
    d)), as in Section 3 of v2. `temperature` "printed" takes the printed tau. C is
    `deviation_constant`.
    (2) As in `euclidean`, B and T are rounded, m = 1 is refused and log(m) is at least 1. (3) The T
    in v is the T of the first phase. (4) We read the printed "S = ceil(log n / B)" as S =
    ceil(log(n / B)). (5) The sensitivity of the scores is taken as 1, as in Lemma 36, although (17)
    and Lemma 35 give 2.

    Parameters
    ----------
    n_users, m, dimension, epsilon, delta, lipschitz, radius, smoothness, noise_constant, unsafe
        As for `euclidean`, but in l-infinity. G bounds each coordinate of the gradients, and the
        domain is [-D, D]^d. The theorem only says that epsilon is O(1). Any positive epsilon is
        accepted.
    deviation_constant : float, default 1
        The constant that O() hides in tau.
    temperature : {"inverse", "printed"}
        Choice of tau.
    statistic : {"median", "trimmed_mean"}
        The trimmed mean ignores the largest third and the smallest third.

    Warns
    -----
    PlanWarning
        If 6 beta eta B > 1, where eta is the step size of the first phase. Lemma 35 of v2 needs 6
        beta eta B <= 1, but the theorem does not. The message is also in `Plan.warnings`. If
        `unsafe` is True, no warning is issued, and the message is only in `Plan.warnings`.

    Raises
    ------
    ValueError
        If there are fewer than 2 B users, if m = 1, or if step sizes are above 2 / beta. The
        theorem itself requires only n >= log(n d / delta)**2 / epsilon users.
    """
    n = _validate.integer("n_users", n_users, at_least=1)
    m = _validate.integer("m", m, at_least=1)
    if m == 1:
        raise ValueError(
            "m must be at least 2, got 1. For m = 1, eta_s = eta / log(m)**s is undefined."
        )
    d = _validate.integer("dimension", dimension, at_least=1)
    epsilon = _validate.positive("epsilon", epsilon)
    delta = _validate.probability("delta", delta)
    lipschitz = _validate.positive("lipschitz", lipschitz)
    radius = _validate.positive("radius", radius)
    if temperature not in ("inverse", "printed"):
        raise ValueError(f"temperature must be 'inverse' or 'printed', got {temperature!r}")
    least = natural_log("n d / delta", n * d / delta) ** 2 / epsilon
    if n < least:
        raise ValueError(
            f"n_users must be at least log(n d / delta)^2 / epsilon = {least}, got {n}"
        )
    batch = math.ceil(100 * natural_log("m n d / delta", m * n * d / delta) / epsilon)
    size_log = natural_log("n m d", n * m * d)
    delta_log = natural_log("1 / delta", 1 / delta)
    deviation = _validate.positive("deviation_constant", deviation_constant)
    deviation *= lipschitz * size_log / math.sqrt(m)
    tau = deviation if temperature == "printed" else 1 / deviation
    eta = batch * math.sqrt(m) / math.sqrt(n)
    eta = min(eta, math.sqrt(m) * epsilon / math.sqrt(d * delta_log * size_log))
    eta *= radius / lipschitz
    n_phases = max(1, math.ceil(math.log(n / batch)))
    steps = [eta / natural_log("m", m) ** s for s in range(1, n_phases + 1)]
    unit = lipschitz * math.sqrt(d * (epsilon + math.log(1 / delta)) * size_log / m) / epsilon
    unit *= _validate.positive("noise_constant", noise_constant)
    phases = halving_phases(n, batch, n_phases, steps=steps, sigmas=[unit * x for x in steps])
    plan = Plan(
        batch,
        phases,
        Test(
            temperature=tau,
            threshold=0.9 * batch
            + 2 * natural_log("T / delta", phases[0].n_steps / delta) / epsilon,
            epsilon=epsilon / 2,
            sensitivity=1.0,
            clip=1 / tau,
            statistic=statistic,
            trim=batch // 3 if statistic == "trimmed_mean" else 0,
        ),
        lipschitz,
        _validate.real("smoothness", smoothness),
        epsilon,
        delta,
        d,
    )
    return _warned(_stable(plan, unsafe), _moving_scores(plan), issue=not unsafe)


def _stable(plan: Plan, unsafe: bool) -> Plan:
    if not plan.steps_are_stable and not unsafe:
        raise ValueError(
            f"smoothness must be at most 2 / eta = {2 / plan.phases[0].step!r}, so that "
            f"gradient steps contract, got {plan.smoothness!r}. Pass unsafe=True to "
            "return the plan anyway."
        )
    return plan


def _idle_filter(plan: Plan) -> str | None:
    """Return a message if no score can be below the threshold of the filter."""
    rule, batch = plan.rule, plan.batch_size
    assert isinstance(rule, Filter)
    least = plan.least_score
    if least < rule.threshold:
        return None
    chance = math.exp((rule.threshold - least) / rule.scale) / 2
    apart = 2 * plan.lipschitz * rule.temperature
    return (
        f"The filter of this plan cannot act. Every score is at least {least / batch:.3g} B = "
        f"{least:.6g}, and the threshold F is {rule.threshold / batch:.3g} B = "
        f"{rule.threshold:.6g}. Only noise can filter a user, with probability at most "
        f"{chance:.2g}. A larger m helps: 2 G tau is {apart:.3g} and must be above "
        f"{-math.log(rule.threshold / batch):.3g}."
    )


def _moving_scores(plan: Plan) -> str | None:
    """Return a message if Lemma 35 does not bound the scores of later batches."""
    step, batch, smoothness = plan.phases[0].step, plan.batch_size, plan.smoothness
    if 6 * smoothness * step * batch <= 1:
        return None
    return (
        f"smoothness should be at most 1 / (6 eta B) = {1 / (6 * step * batch):.3g} for Lemma 35 "
        f"of v2, got {smoothness:.3g} (eta = {step:.3g}, B = {batch}). Without Lemma 35, the "
        "scores of later batches may move by more than the noise of the test covers, so the "
        "paper's privacy proof does not apply."
    )


def _warned(plan: Plan, message: str | None, *, issue: bool = True) -> Plan:
    """Return the plan with its message, and issue the message as a `PlanWarning`."""
    if message is None:
        return plan
    if issue:
        warnings.warn(message, PlanWarning, stacklevel=3)
    return replace(plan, warnings=(message,))
