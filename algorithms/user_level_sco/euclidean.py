"""Algorithms 1 and 2 of user_level_sco v2: localised SGD with a sparse-vector filter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.user_level_sco import _descent
from algorithms.user_level_sco.domains import Domain
from algorithms.user_level_sco.losses import Loss
from algorithms.user_level_sco.plans import Filter, Phase, Plan
from algorithms.user_level_sco.scores import pass_filter, pass_sampled_filter


def filtered_sgd(
    data: Any,
    size: int,
    *,
    loss: Loss,
    domain: Domain,
    plan: Plan,
    start: ArrayLike,
    phase: int = 1,
    unsafe: bool = False,
    rng: np.random.Generator,
) -> FloatArray:
    """Average the iterates of SGD whose batches are filtered by concentration.

    The source is user_level_sco v2, Algorithm 2 (SGD for User-level DP-SCO). The function uses the
    first users of the data, with the sizes and the step of one phase of the plan.

    **Guarantee** This function alone is not private. Up to the plan's budget, a coupling keeps the
    runs on two neighbours close to one another (Lemma 12, with constants). The distance is at most
    `accounts.euclidean_account(...).shift`. Algorithm 1 adds the noise for this shift.

    **Requires** losses that are convex, `plan.lipschitz`-Lipschitz and `plan.smoothness`-smooth on
    the domain (Assumption 7). Gradients that are longer than `plan.lipschitz` are refused. If the
    smoothness of the loss exceeds `plan.smoothness`, the function raises an error unless `unsafe`
    is True. The order of the users is public. This order decides which users share a batch.

    **Departs** (1) The paper does not say what the algorithm returns after halting. This function
    returns `start`, because all other available values depend on the data. After a halt, the run
    continues without effect. So a halt is visible only in the returned value.
    (2) Whether the count reaches the cutoff is checked after each batch, not after each user. The
    decisions between the two checks are discarded. (3) As printed, sigma depends on the noised
    cutoff c-hat. In this function, sigma depends on c-hat only if `plan.rule.scale_follows_cutoff`
    is True. In that case, two runs with different c-hat have different noise on all scores. The
    paper's proof does not consider this difference. The printed formula takes the square root of
    c-hat. If c-hat <= 0, the run halts at once. Plans of `scaled.scaled_euclidean` use noise that
    does not depend on c-hat. (4) T = |D| / B is rounded down, and leftover users are not used. (5)
    Line 6 computes all gradients, and line 8 computes each gradient again. (6) The score may be
    estimated from `plan.rule.samples` users (footnote 3). A bound on all estimates decides about
    most users without a sample. (7) A user is "filtered out" if kappa + nu <= F.

    **Symbols** In `plan.rule`, tau = temperature, F = threshold, 2 sigma = scale, c = cutoff and 4
    / epsilon = cutoff_scale. In the phase, eta = step and T = n_steps. Also, x_0 = `start`.

    Parameters
    ----------
    data : array_like, [n, m, p]
        Users, each with m items.
    size : int
        Number of independent draws.
    loss : Loss
        A convex loss.
    domain : Ball or Box
        The domain X.
    plan : Plan
        Plan with a Filter.
    start : array_like, [d]
        Starting point x_0.
    phase : int, default 1
        Phase of the plan that gives the number of users, the number of steps and the step size.
    unsafe : bool, default False
        Whether to allow step sizes that do not contract, and losses that are less smooth than the
        plan assumes.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size, d]
    """
    rng = _validate.generator(rng)
    users = _descent.admitted(data, loss, domain, _filtering(plan), "l2", unsafe)
    chosen = plan.phases[_descent.phase_number(phase, plan) - 1]
    x = _descent.starting_point(start, loss, users, domain, plan)
    averages, _ = _run(
        users[: chosen.n_users], x, chosen, _validate.draws(size), loss, domain, plan, rng
    )
    return averages


def filter_decisions(
    data: Any,
    size: int,
    *,
    loss: Loss,
    domain: Domain,
    plan: Plan,
    start: ArrayLike,
    phase: int = 1,
    unsafe: bool = False,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the decisions a_{t,i} of the filter in Algorithm 2, which the privacy proof compares.

    **Guarantee** None. The decision on the differing user itself is not private and is not
    released.

    Parameters, **Requires**, **Departs** and **Symbols** are those of `filtered_sgd`.

    Returns
    -------
    ndarray, [size, T B]
        The value 1.0 means kept (top), and the value 0.0 means filtered (bottom). NaN marks the
        batches after the batch that halted.
    """
    rng = _validate.generator(rng)
    users = _descent.admitted(data, loss, domain, _filtering(plan), "l2", unsafe)
    chosen = plan.phases[_descent.phase_number(phase, plan) - 1]
    x = _descent.starting_point(start, loss, users, domain, plan)
    _, decisions = _run(
        users[: chosen.n_users], x, chosen, _validate.draws(size), loss, domain, plan, rng,
        decisions=True,
    )  # fmt: skip
    assert decisions is not None
    return decisions


def user_level_sco(
    data: Any,
    size: int,
    *,
    loss: Loss,
    domain: Domain,
    plan: Plan,
    start: ArrayLike,
    project: bool = True,
    noise_multiplier: float = 1.0,
    transcript: bool = False,
    unsafe: bool = False,
    rng: np.random.Generator,
) -> FloatArray:
    """Minimise the population loss in phases of filtered SGD, each released with Gaussian noise.

    The source is user_level_sco v2, Algorithm 1 (User-level DP-SCO).

    **Guarantee** (plan.epsilon, plan.delta)-user-level DP for plans of `scaled.scaled_euclidean`.
    The proof is in `accounts`. For `printed.euclidean` (the printed constants), Theorem 8 claims
    this guarantee up to a hidden constant in sigma_s. No such constant is enough
    (audits/user_level_sco).

    **Requires** the same as `filtered_sgd`.

    **Departs** (1) n_s = n / 2^s is rounded down to whole batches. Phases with fewer than B users
    are omitted. The number of phases agrees with the printed S = ceil(log(n / B)) if the logarithm
    is binary. (2) The users of a phase are the next users in the order of the data. (3) The printed
    noisy iterate may leave the domain, but losses are known to be Lipschitz and smooth only on the
    domain. This function projects the iterate, which is post-processing. Without projection
    (`project` False), the gradients of the next phase are not bounded, and only one phase has a
    guarantee. In that case, several phases need `unsafe`. (4) eta_s = eta / log^s m is part of the
    plan. (5) sigma_s is printed with sqrt(m epsilon) under one square root. Section 3.3.2 and v1
    contain the intended formula sqrt(m) epsilon. (6) c contains log(n m / delta), although
    Algorithm 2 receives only D_s. In this function, n is the number of all users. (7)
    `noise_multiplier` is not in the paper. `noise_multiplier` multiplies all sigma_s. If
    `noise_multiplier` is below 1, no privacy is guaranteed.

    **Symbols** In `plan.phases[s - 1]`, eta_s = step, sigma_s = sigma and n_s = n_users. S is the
    number of phases.

    Parameters
    ----------
    data, size, loss, domain, plan, start, unsafe, rng
        As for `filtered_sgd`.
    project : bool, default True
        Whether the noisy iterates are projected to the domain.
    noise_multiplier : float, default 1
        Factor on the Gaussian noise, positive.
    transcript : bool, default False
        Whether to return the released iterates of all phases.

    Returns
    -------
    ndarray, [size, d], or [size, S, d] with `transcript`
        The iterate x_S, or x_1 to x_S if `transcript` is True.
    """
    released = list(
        _phases(data, size, loss=loss, domain=domain, plan=plan, start=start, project=project,
                last=len(plan.phases), noise_multiplier=noise_multiplier, unsafe=unsafe, rng=rng)
    )  # fmt: skip
    if transcript:
        return np.stack([x for _, x in released], axis=1)
    return released[-1][1]


def user_level_sco_centers(
    data: Any,
    size: int,
    *,
    loss: Loss,
    domain: Domain,
    plan: Plan,
    start: ArrayLike,
    phase: int,
    project: bool = True,
    noise_multiplier: float = 1.0,
    unsafe: bool = False,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the average iterate of one phase of `user_level_sco`, before its Gaussian noise.

    Adding N(0, sigma_s**2 I) to this value gives x_s. So an audit can integrate the Gaussian noise
    out.

    Parameters, **Guarantee**, **Requires**, **Departs** and **Symbols** are those of
    `user_level_sco`. `phase` counts from 1.

    Returns
    -------
    ndarray, [size, d]
    """
    last = _descent.phase_number(phase, _filtering(plan))
    *_, (centers, _) = _phases(
        data, size, loss=loss, domain=domain, plan=plan, start=start, project=project, last=last,
        noise_multiplier=noise_multiplier, unsafe=unsafe, rng=rng,
    )  # fmt: skip
    return centers


def _phases(
    data: Any, size: int, *, loss: Loss, domain: Domain, plan: Plan, start: ArrayLike, last: int,
    project: bool, noise_multiplier: float, unsafe: bool, rng: np.random.Generator,
) -> Iterator[tuple[FloatArray, FloatArray]]:  # fmt: skip
    rng = _validate.generator(rng)
    multiplier = _validate.positive("noise_multiplier", noise_multiplier)
    size = _validate.draws(size)
    users = _descent.admitted(data, loss, domain, _filtering(plan), "l2", unsafe)
    x = _descent.starting_point(start, loss, users, domain, plan)

    def averages(own: FloatArray, x: FloatArray, phase: Phase, size: int) -> FloatArray:
        return _run(own, x, phase, size, loss, domain, plan, rng)[0]

    return _descent.localised(
        users, x, plan, domain, averages, last=last, size=size, project=project,
        unsafe=unsafe, noise_multiplier=multiplier, rng=rng,
    )  # fmt: skip


def _run(
    users: FloatArray,
    start: FloatArray,
    phase: Phase,
    size: int,
    loss: Loss,
    domain: Domain,
    plan: Plan,
    rng: np.random.Generator,
    *,
    decisions: bool = False,
) -> tuple[FloatArray, FloatArray | None]:
    """Run Algorithm 2 from ``[1, d]`` or ``[size, d]``.

    The function returns average iterates and decisions.
    """
    dimension, batch = start.shape[1], plan.batch_size
    averages = np.empty((size, dimension))
    made = np.empty((size, phase.n_users)) if decisions else None
    for some in _descent.chunks(size, batch * (dimension + 2)):
        x0 = start if len(start) == 1 else start[some]
        averages[some] = _run_some(
            users, x0, phase, some.stop - some.start, loss, domain, plan, rng,
            None if made is None else made[some],
        )  # fmt: skip
    return averages, made


def _run_some(
    users: FloatArray, start: FloatArray, phase: Phase, size: int, loss: Loss, domain: Domain,
    plan: Plan, rng: np.random.Generator, decisions: FloatArray | None,
) -> FloatArray:  # fmt: skip
    rule, batch = plan.rule, plan.batch_size
    assert isinstance(rule, Filter)
    # line 1: c-hat = c + Lap(4 / epsilon), sigma, count = 0
    cutoff = rule.cutoff + rng.laplace(scale=rule.cutoff_scale, size=size)
    scale = np.full((size, 1), rule.scale)
    if rule.scale_follows_cutoff:
        scale *= np.sqrt(np.maximum(cutoff, 0.0) / rule.cutoff)[:, None]
    count = np.zeros(size)
    halted: NDArray[np.bool_] = count >= cutoff
    x = start
    total = np.zeros((size, start.shape[1]))
    for t in range(phase.n_steps):  # line 4
        own = slice(t * batch, (t + 1) * batch)
        # lines 5-8: D-hat = D_t, q_t(Z) for Z in D_t
        shared, q = _descent.finite_parts(loss, x, users[own])
        # lines 9-18: kappa, nu ~ Lap(2 sigma), who is kept
        nu = scale * rng.laplace(size=(size, batch))
        kept = _kept(q, nu, rule, size, rng)
        if decisions is not None:
            decisions[:, own] = np.where(halted[:, None], np.nan, kept)
        n_kept = kept.sum(axis=1)
        count += batch - n_kept
        halted |= (count >= cutoff) | (n_kept == 0)  # lines 19-21
        # line 23: the mean gradient of the kept users
        weights = kept.astype(np.float64)
        g = weights @ q[0] if len(q) == 1 else np.matmul(weights[:, None], q)[:, 0]
        g = shared[:, 0] + g / np.maximum(n_kept, 1)[:, None]
        x = domain.project(x - phase.step * g)  # line 24
        total += x
    average = total / phase.n_steps  # line 26
    return np.where(halted[:, None], start, average)


def _kept(
    q: FloatArray, nu: FloatArray, rule: Filter, size: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    if rule.samples is None:
        return pass_filter(q, nu, temperature=rule.temperature, threshold=rule.threshold)
    return pass_sampled_filter(
        q, nu, temperature=rule.temperature, threshold=rule.threshold, samples=rule.samples, rng=rng
    )


def _filtering(plan: Plan) -> Plan:
    if not isinstance(plan.rule, Filter):
        raise TypeError(f"plan must have a Filter, got {plan.rule!r}")
    return plan
