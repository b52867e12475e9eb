"""Baselines: user-level DP-SGD, output perturbation, and SGD without privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.common.charging import largest_epsilon0, largest_mu
from algorithms.user_level_sco import _descent
from algorithms.user_level_sco.domains import Domain
from algorithms.user_level_sco.losses import Loss, users_of
from algorithms.user_level_sco.private_means import (
    ClippedMean,
    ConcentratedMean,
    PrivateMean,
    WinsorizedMean,
)


@dataclass(frozen=True)
class DPSGDParameters:
    """Batches, steps, step size and rule for the mean of `user_level_dp_sgd`."""

    batch_size: int
    n_steps: int
    step: float
    mean: PrivateMean


def dp_sgd_parameters(
    n_users: int,
    m: int,
    dimension: int,
    *,
    epsilon: float,
    delta: float,
    lipschitz: float,
    radius: float,
    n_batches: int = 32,
    mean: str = "clipped",
) -> DPSGDParameters:
    """Return the tuned parameters of `user_level_dp_sgd` that the experiments use.

    The users form `n_batches` batches, and each batch is visited once. Mean gradients are assumed
    to be within C = min(G, 2 G / sqrt(m)) of a common point, or are clipped to C. The step size
    is (D / V) / sqrt(T), where V**2 = G**2 / (B m) + d sigma**2 is the variance of a noisy
    gradient.

    **Guarantee** Privacy does not depend on these choices, because `dp_sgd_sigma` scales the noise
    for the rule and for the number of visits. All choices depend on public values only.

    **Departs** The papers print no parameters of DP-SGD. (1) Lipschitz losses bound mean gradients
    by G only. If items are drawn independently, mean gradients are within about G / sqrt(m) of the
    population gradient. So a user with m items needs less noise. If the population gradient is
    longer than C, clipping shortens it. (2) The step size balances D**2 / (eta T) and eta V**2 over
    T steps. The step (D / G) / sqrt(T) ignores the noise, and is larger. (3) The choices of
    intervals get epsilon / 2 and delta / 2, and the test gets 0.3 epsilon and delta / 10.

    Parameters
    ----------
    n_users, m, dimension : int
        The numbers n, m and d.
    epsilon, delta : float
        Budget of `user_level_dp_sgd`.
    lipschitz, radius : float
        G and D, positive.
    n_batches : int, default 32
        Number of batches, which is the number T of steps. At most n.
    mean : {"clipped", "winsorized", "concentrated"}
        Rule for the mean of a batch. See `private_means`.

    Raises
    ------
    ValueError
        Also if the batches are too small for the test of a concentrated mean.
    """
    n_batches = _validate.integer("n_batches", n_batches, at_least=1)
    batch = _validate.integer("n_users", n_users, at_least=n_batches) // n_batches
    m = _validate.integer("m", m, at_least=1)
    d = _validate.integer("dimension", dimension, at_least=1)
    lipschitz = _validate.positive("lipschitz", lipschitz)
    radius = _validate.positive("radius", radius)
    budget = {
        "epsilon": _validate.positive("epsilon", epsilon),
        "delta": _validate.probability("delta", delta),
    }
    rule = _rule(mean, min(lipschitz, 2 * lipschitz / math.sqrt(m)), lipschitz, d, **budget)
    sigma = dp_sgd_sigma(n_users, d, batch_size=batch, n_steps=n_batches, mean=rule, **budget)
    noise = math.sqrt(lipschitz**2 / (batch * m) + d * sigma**2)
    return DPSGDParameters(batch, n_batches, radius / (noise * math.sqrt(n_batches)), rule)


def _rule(
    mean: str, spread: float, bound: float, dimension: int, *, epsilon: float, delta: float
) -> PrivateMean:
    """Return a rule that spends a part of the budget next to the noise."""
    if mean == "clipped":
        return ClippedMean(spread)
    if mean == "concentrated":
        return ConcentratedMean(spread, 0.3 * epsilon, delta / 10)
    if mean != "winsorized":
        raise ValueError(f"mean must be clipped, winsorized or concentrated, got {mean!r}")
    calls = WinsorizedMean(spread, bound, 1.0).selection(dimension).calls
    epsilon0 = largest_epsilon0(epsilon / 2, delta / 2, calls=calls)
    return WinsorizedMean(spread, bound, epsilon0)


def dp_sgd_sigma(
    n_users: int,
    dimension: int,
    *,
    batch_size: int,
    n_steps: int,
    mean: PrivateMean,
    epsilon: float,
    delta: float,
) -> float:
    """Return the standard deviation of the noise of each step of `user_level_dp_sgd`.

    A user is in at most k = ceil(n_steps / (n / B)) batches. In each of these batches, the user
    moves the mean by at most its sensitivity Delta. Together, these k steps are a Gaussian
    mechanism with mu = sqrt(k) Delta / sigma. The same mu holds for adaptive steps (Dong, Roth & Su
    2022, Corollary 3.3). The rule may also reveal epsilon0-DP answers, and its failures add k
    `failure` to delta. Proof: if both neighbours fail in a visit, change the run on one of them so
    that it releases what the other one releases. This changes its distribution by at most `failure`
    in total variation. The changed run is dominated by the answers and the noise. The sigma for
    (epsilon, delta) follows from the exact profile of the composition of answers and noise
    (`charging.composed_profile`).

    Raises
    ------
    ValueError
        If the answers and failures of the rule alone spend the whole budget.
    """
    n_batches = _batches(n_users, batch_size)
    visits = math.ceil(_validate.integer("n_steps", n_steps, at_least=1) / n_batches)
    dimension = _validate.integer("dimension", dimension, at_least=1)
    spent = mean.selection(dimension)
    epsilon = _validate.positive("epsilon", epsilon)
    left = _validate.probability("delta", delta) - visits * spent.failure
    mu = largest_mu(
        epsilon, left, calls=visits * spent.calls, epsilon0=spent.epsilon0, epsilon1=0.0
    )  # 0 if nothing is left of delta
    if mu == 0:
        raise ValueError(
            f"mean must leave a part of epsilon = {epsilon!r} and delta = {delta!r} for the noise "
            f"in {visits} visits, got {mean!r}"
        )
    return math.sqrt(visits) * mean.sensitivity(batch_size, dimension) / mu


def user_level_dp_sgd(
    data: Any,
    size: int,
    *,
    loss: Loss,
    domain: Domain,
    start: ArrayLike,
    batch_size: int,
    n_steps: int,
    step: float,
    mean: PrivateMean,
    epsilon: float,
    delta: float,
    noise_multiplier: float = 1.0,
    rng: np.random.Generator,
) -> FloatArray:
    """Run projected SGD on private means of the users' gradients, and return the average iterate.

    With `ClippedMean`, the algorithm is DP-SGD (Abadi et al. 2016), with users as examples. At
    every step, Gaussian noise is added to the mean of a batch, as the rule `mean` computes it. The
    batches are visited cyclically in the order of the data, without sampling. If the rule releases
    no mean, the iterate stays where it is.

    **Guarantee** All iterates together are (epsilon, delta)-user-level DP (see `dp_sgd_sigma`).

    **Requires** only that the gradients are finite.

    **Departs** (1) Abadi et al. sample batches at random, which amplifies privacy. This function
    uses fixed batches, so the account does not need secret batches. It is exact for `ClippedMean`.
    (2) The function returns the average iterate. The guarantee covers all iterates. (3) Levy et
    al., Asi & Liu and Lowy et al. also differ in the outer loop (phases, regularisation). Only
    their means are here.

    **Symbols** B = `batch_size`, T = `n_steps`, eta = `step`.

    Parameters
    ----------
    data : array_like, [n, m, p]
    size : int
        Number of independent draws.
    loss, domain, start
        As for `euclidean.filtered_sgd`.
    batch_size, n_steps : int
        B is at most n, and T is at least 1.
    step : float
        Positive.
    mean : PrivateMean
        `ClippedMean`, `WinsorizedMean` or `ConcentratedMean` of `private_means`.
    epsilon, delta : float
        Epsilon is positive, and delta is in (0, 1).
    noise_multiplier : float, default 1
        Positive factor on the noise. If the factor is below 1, no privacy is guaranteed.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size, d]
    """
    rng = _validate.generator(rng)
    users = users_of(data, loss)
    n_batches = _batches(len(users), batch_size)
    step = _validate.positive("step", step)
    x0 = _descent.starting_point(start, loss, users, domain)
    sigma = _validate.positive("noise_multiplier", noise_multiplier) * dp_sgd_sigma(
        len(users), x0.shape[1], batch_size=batch_size, n_steps=n_steps, mean=mean,
        epsilon=epsilon, delta=delta,
    )  # fmt: skip
    averages = np.empty((_validate.draws(size), x0.shape[1]))
    for some in _descent.chunks(size, batch_size * (x0.shape[1] + 1)):
        x, total = x0, np.zeros((some.stop - some.start, x0.shape[1]))
        for t in range(n_steps):
            first = t % n_batches * batch_size
            q = _descent.finite_gradients(loss, x, users[first : first + batch_size])
            g = mean.means(q, len(total), rng=rng) + rng.normal(scale=sigma, size=total.shape)
            x = domain.project(x - step * np.nan_to_num(g))
            total += x
        averages[some] = total / n_steps
    return averages


def output_perturbation(
    data: Any,
    size: int,
    *,
    loss: Loss,
    domain: Domain,
    start: ArrayLike,
    step: float,
    lipschitz: float,
    batch_size: int = 1,
    n_phases: int = 1,
    epsilon: float,
    delta: float,
    noise_multiplier: float = 1.0,
    rng: np.random.Generator,
) -> FloatArray:
    """Run one pass of SGD over the items in phases, with Gaussian noise for a group of m items.

    The algorithm combines Feldman, Koren & Talwar (2020), Section 4, with group privacy. Phase s
    takes n / 2^s users and steps of size step / 4^(s - 1), and begins at the noisy average of the
    phase before. With one phase, it takes all users. Steps of size at most 2 / beta do not increase
    distances. So one item moves all later iterates of its phase by at most 2 step G divided by the
    batch size. The m items of a user move them by at most m times this amount.

    **Guarantee** (epsilon, delta)-user-level DP. The noise of a phase is exact for the Gaussian
    mechanism with its sensitivity 2 m step G / batch_size, and each user is in one phase only.

    **Requires** convex losses that are `lipschitz`-Lipschitz on the domain, and step <= 2 / beta.
    The Lipschitz constant and the step are checked.

    **Departs** (1) Feldman, Koren & Talwar take ceil(log_2 n) phases. This function takes
    `n_phases`, and the last phase need not be of one user. (2) They have no batches. (3) A noisy
    average is projected on the domain before the next phase. Only the last one may lie outside.

    **Symbols** eta = `step`, G = `lipschitz`.

    Parameters
    ----------
    data, size, loss, domain, start, epsilon, delta, noise_multiplier, rng
        As for `user_level_dp_sgd`.
    step, lipschitz : float
        Positive.
    batch_size : int, default 1
        Number of items in a step. Leftover items of a phase are not used.
    n_phases : int, default 1
        Number of phases, such that each phase has at least `batch_size` items.

    Returns
    -------
    ndarray, [size, d]
    """
    rng = _validate.generator(rng)
    users = users_of(data, loss)
    step = _validate.positive("step", step)
    size = _validate.draws(size)
    x = _descent.starting_point(start, loss, users, domain)
    parts = _phases(users, _validate.integer("n_phases", n_phases, at_least=1))
    longest = loss.longest_gradient(users, domain, "l2")
    if not longest <= _validate.positive("lipschitz", lipschitz) * (1 + 1e-12):
        raise ValueError(f"lipschitz must be at least {longest!r}, got {lipschitz!r}")
    if step * loss.smoothness("l2") > 2:
        raise ValueError(
            f"step must be at most 2 / smoothness = {2 / loss.smoothness('l2')!r}, got {step!r}"
        )
    mu = largest_mu(
        _validate.positive("epsilon", epsilon), _validate.probability("delta", delta),
        calls=0, epsilon0=0.0, epsilon1=0.0,
    )  # fmt: skip
    sigma = 2 * users.shape[1] * step * lipschitz / (batch_size * mu)
    sigma *= _validate.positive("noise_multiplier", noise_multiplier)
    for s, part in enumerate(parts):
        average = _one_pass(part, domain.project(x), loss, domain, step / 4**s, batch_size)
        x = average + rng.normal(scale=sigma / 4**s, size=(size, x.shape[1]))
    return np.asarray(x)


def _phases(users: FloatArray, n_phases: int) -> list[FloatArray]:
    """Return n / 2^s users for each phase s, or all users for a single phase."""
    if n_phases == 1:
        return [users]
    ends = np.cumsum([len(users) // 2**s for s in range(1, n_phases + 1)])
    if len(users) < 2**n_phases:
        raise ValueError(
            f"n_phases must be at most {int(math.log2(len(users)))} for {len(users)} users, got "
            f"{n_phases}"
        )
    return np.split(users[: ends[-1]], ends[:-1])


@dataclass(frozen=True)
class OutputPerturbationParameters:
    """Batch size and step size of `output_perturbation`."""

    batch_size: int
    step: float


def output_perturbation_parameters(
    n_users: int,
    m: int,
    dimension: int,
    *,
    epsilon: float,
    delta: float,
    lipschitz: float,
    radius: float,
    n_steps: int = 1000,
) -> OutputPerturbationParameters:
    """Return the tuned parameters of `output_perturbation` that the experiments use.

    The items form about `n_steps` batches of B items. The step size minimises a bound of the
    expected error for linear losses. SGD adds D**2 / (2 eta T) + eta G**2 / (2 B), because the
    variance of a mean over B independent items is at most G**2 / B. The noise of length sigma
    sqrt(d) adds at most G sigma sqrt(d) = 2 m eta G**2 sqrt(d) / (B mu). In this term, mu is the
    parameter of the Gaussian mechanism for (epsilon, delta).

    **Guarantee** Privacy does not depend on the step size, because the noise is proportional to it.
    All choices depend on public values only.

    **Departs** Feldman, Koren & Talwar (2020) take single items and the smaller of D / (G sqrt(n))
    and D epsilon / (G sqrt(d log(1 / delta))) as the step size. (1) Batches make a run faster, and
    the noise for one item is divided by B. (2) The printed step sizes are for private items. For
    private users, the noise is m times as large, so the best step is smaller.

    Parameters
    ----------
    n_users, m, dimension, epsilon, delta, lipschitz, radius
        As for `dp_sgd_parameters`.
    n_steps : int, default 1000
        Number T of batches.
    """
    n = _validate.integer("n_users", n_users, at_least=1)
    m = _validate.integer("m", m, at_least=1)
    d = _validate.integer("dimension", dimension, at_least=1)
    n_steps = _validate.integer("n_steps", n_steps, at_least=1)
    lipschitz = _validate.positive("lipschitz", lipschitz)
    radius = _validate.positive("radius", radius)
    mu = largest_mu(
        _validate.positive("epsilon", epsilon), _validate.probability("delta", delta),
        calls=0, epsilon0=0.0, epsilon1=0.0,
    )  # fmt: skip
    batch = max(1, n * m // n_steps)
    step = math.sqrt(batch / (n_steps * (1 + 4 * m * math.sqrt(d) / mu)))
    return OutputPerturbationParameters(batch, radius / lipschitz * step)


def sgd_step(m: int, *, batch_size: int, n_steps: int, lipschitz: float, radius: float) -> float:
    """Return the step size (D / G) sqrt(B m / T) of SGD on batches of B users with m items each.

    The variance of a mean gradient over B m independent items is at most G**2 / (B m). So this step
    size gives the error D G / sqrt(B m T), which is the rate of single items. The step size D / (G
    sqrt(T)) gives the rate of T items. This step size uses no private data.
    """
    m = _validate.integer("m", m, at_least=1)
    batch_size = _validate.integer("batch_size", batch_size, at_least=1)
    n_steps = _validate.integer("n_steps", n_steps, at_least=1)
    lipschitz = _validate.positive("lipschitz", lipschitz)
    radius = _validate.positive("radius", radius)
    return radius / lipschitz * math.sqrt(batch_size * m / n_steps)


def sgd(
    data: Any,
    *,
    loss: Loss,
    domain: Domain,
    start: ArrayLike,
    step: float,
    batch_size: int = 1,
) -> FloatArray:
    """Return the average iterate of one pass of projected SGD over all items, without privacy.

    Parameters
    ----------
    data, loss, domain, start
        As for `user_level_dp_sgd`.
    step : float
        Positive.
    batch_size : int, default 1
        Number of items in a step. Leftover items are not used.

    Returns
    -------
    ndarray, [d]
    """
    users = users_of(data, loss)
    step = _validate.positive("step", step)
    x = _descent.starting_point(start, loss, users, domain)
    return np.asarray(_one_pass(users, x, loss, domain, step, batch_size)[0])


def _one_pass(
    users: FloatArray, x: FloatArray, loss: Loss, domain: Domain, step: float, batch_size: int
) -> FloatArray:
    """Return the average iterates ``[S, d]`` of one pass over all items, from points ``[S, d]``."""
    items = users.reshape(-1, 1, users.shape[-1])
    n_steps = _batches(len(items), batch_size)
    averages = np.empty_like(x)
    for some in _descent.chunks(len(x), batch_size * (x.shape[1] + 1)):
        z, total = x[some], np.zeros_like(x[some])
        for t in range(n_steps):
            q = _descent.finite_gradients(loss, z, items[t * batch_size : (t + 1) * batch_size])
            z = domain.project(z - step * q.mean(axis=1))
            total += z
        averages[some] = total / n_steps
    return averages


def _batches(n_users: int, batch_size: int) -> int:
    n_users = _validate.integer("n_users", n_users, at_least=1)
    batch_size = _validate.integer("batch_size", batch_size, at_least=1)
    if batch_size > n_users:
        raise ValueError(f"batch_size must be at most n_users = {n_users}, got {batch_size}")
    return n_users // batch_size
