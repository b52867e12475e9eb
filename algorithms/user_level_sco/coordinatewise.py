"""Algorithms 5 to 8 of user_level_sco v2 (1, 2, 3 and 5 of v1): robust statistics in l-infinity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.user_level_sco import _descent
from algorithms.user_level_sco.domains import Box
from algorithms.user_level_sco.losses import Loss
from algorithms.user_level_sco.plans import STATISTICS, Phase, Plan, Test
from algorithms.user_level_sco.scores import concentration_scores


def robust_statistic(values: ArrayLike, *, statistic: str = "median", trim: int = 0) -> FloatArray:
    """Return the median, or a trimmed mean, of each coordinate.

    **Guarantee** The median and the trimmed mean are 1-Lipschitz in l-infinity. The median and the
    trimmed mean are also equivariant under shifts, and under scaling by positive or negative
    numbers. These properties are (ii) and (iii) of user_level_sco v2, Assumption 28. (The median of
    an even number of values is the mean of the two middle values. The lower median is not
    equivariant under -1.)

    By part (i) of Assumption 28, an interval that contains more than half of the values also
    contains the statistic. The median satisfies part (i). A trimmed mean satisfies part (i) only if
    it ignores (B - 1) // 2 values at either end. Such a trimmed mean is the median. Let a trimmed
    mean ignore h values at either end. If at most h values lie outside of an interval, the trimmed
    mean lies in the interval.

    Parameters
    ----------
    values : array_like, [..., B, d]
    statistic : {"median", "trimmed_mean"}
    trim : int, default 0
        Number of values that the trimmed mean ignores at either end, below B / 2.

    Returns
    -------
    ndarray, [..., d]
    """
    x = _validate.floats("values", values, ndims=(2, 3))
    if statistic not in STATISTICS:
        raise ValueError(f"statistic must be one of {', '.join(STATISTICS)}, got {statistic!r}")
    batch = x.shape[-2]
    if statistic == "median":
        return np.asarray(np.median(x, axis=-2))
    trim = _validate.integer("trim", trim, at_least=0)
    if 2 * trim >= batch:
        raise ValueError(f"trim must be below half of the number of values, {batch}, got {trim}")
    ordered = np.partition(x, (trim, batch - 1 - trim), axis=-2)
    return np.asarray(ordered[..., trim : batch - trim, :].mean(axis=-2))


def robust_gradient(
    gradients: ArrayLike, *, clip: float, statistic: str = "median", trim: int = 0
) -> FloatArray:
    """Return the mean, moved to within `clip` of a robust statistic in each coordinate.

    The source is user_level_sco v2, Algorithm 7 (Gradient Estimation based on Robust Statistics;
    v1, Algorithm 2).

    **Departs** Line 4 prints Pi_{B(Y_j, varsigma)}, where Y_j is not defined. The paper must intend
    X_rs[j].

    **Symbols** X_i = `gradients[i]`, varsigma = `clip`, X_rs = the statistic.

    Parameters
    ----------
    gradients : array_like, [..., B, d]
    clip : float
        Clipping distance varsigma, at least 0. At `clip` = 0, the estimate is the statistic.
    statistic, trim
        As for `robust_statistic`.

    Returns
    -------
    ndarray, [..., d]
    """
    x = _validate.floats("gradients", gradients, ndims=(2, 3))
    clip = _validate.nonnegative("clip", clip)
    middle = robust_statistic(x, statistic=statistic, trim=trim)
    return np.asarray(np.clip(x.mean(axis=-2), middle - clip, middle + clip))


def concentration_score(gradients: ArrayLike, *, temperature: float) -> FloatArray:
    """Return s = (1 / B) sum_{i, j} exp(-temperature norm(q_i - q_j)_inf), from 1 to B.

    The score is (15) in Algorithm 8 of user_level_sco v2 ((3) in Algorithm 3 of v1). Replacing one
    user moves s by at most 2 (B - 1) / B.

    Parameters
    ----------
    gradients : array_like, [..., B, d]
    temperature : float
        Positive temperature tau.

    Returns
    -------
    ndarray, [...]
    """
    scores = concentration_scores(gradients, temperature=temperature, norm="linf")
    return np.asarray(scores.mean(axis=-1))


def robust_sgd(
    data: Any,
    size: int,
    *,
    loss: Loss,
    domain: Box,
    plan: Plan,
    start: ArrayLike,
    phase: int = 1,
    unsafe: bool = False,
    rng: np.random.Generator,
) -> FloatArray:
    """Average the iterates of SGD on robust estimates, if all batches pass a concentration test.

    The function implements Algorithm 6 of user_level_sco v2 (SGD for User-level DP-SCO; v1,
    Algorithm 1). This algorithm contains Algorithm 8 (Concentration Test; v1, Algorithm 3) and
    AboveThreshold.

    **Guarantee** This function alone is not private (see `user_level_sco_linf`).

    **Requires** convex losses with diagonally dominant Hessians. In l-infinity, the losses must be
    `plan.lipschitz`-Lipschitz and `plan.smoothness`-smooth (Assumptions 21 and 22). Other losses
    are refused. If `unsafe` is True, diagonal dominance and smoothness are not required.

    **Departs** (1) Line 8 of Algorithm 8 returns AboveThreshold(s_t, epsilon / 2, v) in a loop over
    t. The paper must intend one AboveThreshold over the stream of all s_t. The reason is Lemma 36,
    which assumes that this AboveThreshold costs epsilon / 2 in total. If `plan.rule.per_step` is
    True, the function runs one AboveThreshold for each step.
    (2) AboveThreshold's noise is scaled for the sensitivity in the plan. The printed sensitivity is
    1, but the sensitivity of the scores can be up to 2. (3) Algorithm 6 passes delta / (2 T m n d)
    to Algorithm 8, but Algorithm 8 does not use this value. (4) The printed order is kept, so all
    steps run before the tests. The test only decides what is returned. (5) The printed batches
    Z_{1,t}, ..., Z_{B,t} contain one user of each of B subsets. In this function, a batch consists
    of the next B users.
    (6) T = |D| / B is rounded down.

    **Symbols** In `plan.rule`, tau = temperature, v = threshold and varsigma = clip. The other
    symbols are those of `filtered_sgd`.

    Parameters
    ----------
    data, size, loss, plan, start, phase, unsafe, rng
        As for `euclidean.filtered_sgd`, but the plan must have a Test.
    domain : Box
        The domain X. Projections to other domains do not contract in l-infinity.

    Returns
    -------
    ndarray, [size, d]
        Equal to `start` in the draws in which a test failed.
    """
    rng = _validate.generator(rng)
    users = _admitted(data, loss, domain, plan, unsafe)
    chosen = plan.phases[_descent.phase_number(phase, plan) - 1]
    x = _descent.starting_point(start, loss, users, domain, plan)
    return _run(users[: chosen.n_users], x, chosen, _validate.draws(size), loss, domain, plan, rng)


def concentration_profile(
    data: Any,
    *,
    loss: Loss,
    domain: Box,
    plan: Plan,
    start: ArrayLike,
    phase: int = 1,
    unsafe: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """Return what `robust_sgd` computes from the data before noise is added.

    Returns
    -------
    scores : ndarray, [T]
        The queries s_t of AboveThreshold.
    iterates : ndarray, [T, d]
        The iterates x_1 to x_T.
    """
    users = _admitted(data, loss, domain, plan, unsafe)
    chosen = plan.phases[_descent.phase_number(phase, plan) - 1]
    x = _descent.starting_point(start, loss, users, domain, plan)
    steps = list(_trajectory(users[: chosen.n_users], x, chosen, loss, domain, plan))
    return np.array([s[0] for s, _ in steps]), np.array([x[0] for _, x in steps])


def user_level_sco_linf(
    data: Any,
    size: int,
    *,
    loss: Loss,
    domain: Box,
    plan: Plan,
    start: ArrayLike,
    project: bool = True,
    noise_multiplier: float = 1.0,
    transcript: bool = False,
    unsafe: bool = False,
    rng: np.random.Generator,
) -> FloatArray:
    """Minimise the population loss on a box, by phases of robust SGD with Gaussian noise.

    The source is user_level_sco v2, Algorithm 5 (Localization for user-level DP-SCO; v1, Algorithm
    5).

    **Guarantee** (plan.epsilon, plan.delta)-user-level DP for plans of
    `scaled.scaled_coordinatewise`. The proof is in `accounts`. For `printed.coordinatewise`,
    Theorem 3.1 of v1 (Theorem C.2 of v2) claims this guarantee. But this guarantee does not hold
    (audits/user_level_sco).

    **Requires** the same as `robust_sgd`.

    **Departs** in the same way as `euclidean.user_level_sco`. Without projection, several phases
    have no guarantee. The printed "Return the final solution x_s" should contain x_S.

    **Symbols** as in `euclidean.user_level_sco`.

    Parameters
    ----------
    data, size, loss, domain, plan, start, unsafe, rng
        As for `robust_sgd`.
    project, noise_multiplier, transcript
        As for `euclidean.user_level_sco`.

    Returns
    -------
    ndarray, [size, d], or [size, S, d] with `transcript`
    """
    released = list(
        _phases(data, size, loss=loss, domain=domain, plan=plan, start=start, project=project,
                last=len(plan.phases), noise_multiplier=noise_multiplier, unsafe=unsafe, rng=rng)
    )  # fmt: skip
    if transcript:
        return np.stack([x for _, x in released], axis=1)
    return released[-1][1]


def user_level_sco_linf_centers(
    data: Any,
    size: int,
    *,
    loss: Loss,
    domain: Box,
    plan: Plan,
    start: ArrayLike,
    phase: int,
    project: bool = True,
    noise_multiplier: float = 1.0,
    unsafe: bool = False,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the average iterate of one phase of `user_level_sco_linf`, before its noise.

    Parameters, **Guarantee**, **Requires**, **Departs** and **Symbols** are those of
    `user_level_sco_linf`. The result is a part of the transcript of `user_level_sco_linf`. `phase`
    counts from 1.

    Returns
    -------
    ndarray, [size, d]
    """
    last = _descent.phase_number(phase, _testing(plan))
    *_, (centers, _) = _phases(
        data, size, loss=loss, domain=domain, plan=plan, start=start, project=project, last=last,
        noise_multiplier=noise_multiplier, unsafe=unsafe, rng=rng,
    )  # fmt: skip
    return centers


def _phases(
    data: Any, size: int, *, loss: Loss, domain: Box, plan: Plan, start: ArrayLike, last: int,
    project: bool, noise_multiplier: float, unsafe: bool, rng: np.random.Generator,
) -> Iterator[tuple[FloatArray, FloatArray]]:  # fmt: skip
    rng = _validate.generator(rng)
    multiplier = _validate.positive("noise_multiplier", noise_multiplier)
    size = _validate.draws(size)
    users = _admitted(data, loss, domain, plan, unsafe)
    x = _descent.starting_point(start, loss, users, domain, plan)

    def averages(own: FloatArray, x: FloatArray, phase: Phase, size: int) -> FloatArray:
        return _run(own, x, phase, size, loss, domain, plan, rng)

    return _descent.localised(
        users, x, plan, domain, averages, last=last, size=size, project=project,
        unsafe=unsafe, noise_multiplier=multiplier, rng=rng,
    )  # fmt: skip


def _run(
    users: FloatArray, start: FloatArray, phase: Phase, size: int, loss: Loss, domain: Box,
    plan: Plan, rng: np.random.Generator,
) -> FloatArray:  # fmt: skip
    """Run Algorithm 6 from ``[1, d]`` or ``[size, d]``.

    The function returns average iterates ``[size, d]``.
    """
    dimension = start.shape[1]
    averages = np.empty((size, dimension))
    if len(start) == 1:  # the trajectory has no noise, so all draws share one trajectory
        passed, average = _tested(users, start, phase, size, loss, domain, plan, rng)
        return np.where(passed[:, None], average, start)
    for some in _descent.chunks(size, plan.batch_size * dimension):
        x0, drawn = start[some], some.stop - some.start
        passed, average = _tested(users, x0, phase, drawn, loss, domain, plan, rng)
        averages[some] = np.where(passed[:, None], average, x0)
    return averages


def _tested(
    users: FloatArray, start: FloatArray, phase: Phase, size: int, loss: Loss, domain: Box,
    plan: Plan, rng: np.random.Generator,
) -> tuple[NDArray[np.bool_], FloatArray]:  # fmt: skip
    """Return whether each draw passed all tests ``[size]``, and the average iterates."""
    rule = plan.rule
    assert isinstance(rule, Test)
    unit = rule.sensitivity / rule.epsilon
    # Algorithm 3, line 1: the threshold v - Lap(2 / epsilon)
    level = rule.threshold - rng.laplace(scale=2 * unit, size=size)
    passed = np.ones(size, dtype=bool)
    total = np.zeros_like(start)
    for score, x in _trajectory(users, start, phase, loss, domain, plan):
        # lines 4-6: nu ~ Lap(4 / epsilon), halt below
        passed &= ~(score + rng.laplace(scale=4 * unit, size=size) < level)
        if rule.per_step:
            level = rule.threshold - rng.laplace(scale=2 * unit, size=size)
        total += x
    return passed, total / phase.n_steps


def _trajectory(
    users: FloatArray, start: FloatArray, phase: Phase, loss: Loss, domain: Box, plan: Plan
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield the scores s_t ``[S]`` and the iterates x_t ``[S, d]``."""
    rule, batch = plan.rule, plan.batch_size
    assert isinstance(rule, Test)
    x = start
    for t in range(phase.n_steps):  # Algorithm 6, lines 3-7
        shared, q = _descent.finite_parts(loss, x, users[t * batch : (t + 1) * batch])
        # By Assumption 28 (iii), adding the part that all gradients share shifts the estimate by
        # this part.
        g = robust_gradient(q, clip=rule.clip, statistic=rule.statistic, trim=rule.trim)
        x = domain.project(x - phase.step * (shared[:, 0] + g))
        yield concentration_score(q, temperature=rule.temperature), x


def _admitted(data: Any, loss: Loss, domain: Box, plan: Plan, unsafe: bool) -> FloatArray:
    if not isinstance(domain, Box):
        raise TypeError(f"domain must be a Box, got {domain!r}")
    if not unsafe and not loss.diagonally_dominant:
        raise ValueError(
            f"loss must have diagonally dominant Hessians (Assumption 22), got {loss!r}. "
            "Pass unsafe=True to run it anyway."
        )
    return _descent.admitted(data, loss, domain, _testing(plan), "linf", unsafe)


def _testing(plan: Plan) -> Plan:
    if not isinstance(plan.rule, Test):
        raise TypeError(f"plan must have a Test, got {plan.rule!r}")
    return plan
