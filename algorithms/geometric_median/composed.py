"""The complete algorithm: a warm start (Theorem 3), followed by boosting (Theorem 4)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.geometric_median import _cost, _points, _sgd
from algorithms.geometric_median.center import (
    fast_center,
    fast_center_samples,
    fast_center_sigma,
    refuse_slow,
)
from algorithms.geometric_median.radius import fast_radius, fast_radius_samples, radius_grid
from algorithms.geometric_median.schedule import (
    ACCESSES,
    Schedule,
    fixed_order_schedule,
    stable_dpsgd_schedule,
)

ORDERS = ("random", "fixed")

RADIUS_FACTOR = 10.0
"""Default radius of the boosting domain, as a multiple of r-hat."""


@dataclass(frozen=True)
class WarmStartParameters:
    """Parameters of Theorem 3, and the accuracy that the theorem guarantees.

    Attributes
    ----------
    n_radii, radius_samples, center_samples : int
        T and k of FastRadius, and k of FastCenter.
    sigma : float
        Standard deviation of FastCenter's noise, as a multiple of r-hat.
    radius_factor : float
        The factor C'. With probability 1 - delta, the point is within C' r-hat of the geometric
        median.
    """

    n_radii: int
    radius_samples: int
    center_samples: int
    sigma: float
    radius_factor: float


@dataclass(frozen=True)
class MedianParameters:
    """Arguments of `private_geometric_median` by Theorem 4, and the promised accuracy.

    Attributes
    ----------
    warm_start : WarmStartParameters
        Parameters of the warm start, at (epsilon / 2, delta / 2).
    n_steps : int
        Number of steps T = 2**K - 1.
    step_factor, radius_factor : float
        Step size and radius of the domain, as multiples of r-hat.
    error_factor : float
        With probability 1 - delta, f(xhat) - f(x_star) is at most `error_factor` times r-hat.
    """

    warm_start: WarmStartParameters
    n_steps: int
    step_factor: float
    radius_factor: float
    error_factor: float


def warm_start(
    data: ArrayLike,
    size: int,
    *,
    min_radius: float,
    max_radius: float,
    epsilon: float,
    delta: float,
    noise_multiplier: float = 1.0,
    route: str = "auto",
    max_seconds: float = _cost.MAX_SECONDS,
    rng: np.random.Generator,
) -> FloatArray:
    """Release a point, and a radius that bounds its distance from the geometric median.

    The source is geometric_median, Theorem 3. FastRadius runs first. FastCenter then uses the
    radius that FastRadius returned. Each of the two algorithms has the budget (epsilon / 2, delta /
    2).

    **Guarantee** (epsilon, delta)-DP for epsilon <= 2 and n >= 20, by basic composition of Lemmas 5
    and 9. The utility is described in `warm_start_parameters`.

    **Requires** that all points lie in the ball of radius `max_radius` around 0. Only the utility
    needs this condition, but points outside are refused.

    **Departs** As for `fast_radius` and `fast_center`, whose noise is multiplied by
    `noise_multiplier`. Draws that have the same radius are completed together. In the paper's
    proof, FastCenter needs r-hat >= r^(.75). FastCenter receives a radius that is only known to be
    at least r^(.75) / 4. The proof is still valid (see `warm_start_parameters`).

    **Symbols** r = `min_radius`, R = `max_radius`, (xhat, r-hat) = a row of the returned array.

    Parameters
    ----------
    data : array_like, [n, d]
        Finite values.
    size : int
        Number of independent draws.
    min_radius, max_radius : float
        Bounds of the search, positive, public.
    epsilon : float
        Total privacy parameter, positive.
    delta : float
        In (0, 1).
    noise_multiplier : float, default 1
        Factor on all noise scales, positive.
    route : {"auto", "counts", "samples"}, default "auto"
        How the subsampling is drawn.
    max_seconds : float, default 60
        Largest estimated time of each part. Slower runs are refused before they start.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size, d + 1]
        The point, and then the radius. If FastCenter failed, the point is exactly 0.
    """
    rng = _validate.generator(rng)
    points = _points.cloud(data)
    half = _validate.positive("epsilon", epsilon) / 2
    half_delta = _validate.probability("delta", delta) / 2
    refuse_slow(points, size, half_delta, route, max_seconds)
    radii = fast_radius(
        points, size, min_radius=min_radius, max_radius=max_radius, epsilon=half,
        delta=half_delta, noise_multiplier=noise_multiplier, route=route,
        max_seconds=max_seconds, rng=rng,
    )  # fmt: skip
    released = np.empty((len(radii), points.shape[1] + 1))
    released[:, -1] = radii
    for radius in np.unique(radii):
        same = np.flatnonzero(radii == radius)
        released[same, :-1] = fast_center(
            points, same.size, radius=float(radius), epsilon=half, delta=half_delta,
            noise_multiplier=noise_multiplier, route=route, max_seconds=math.inf, rng=rng,
        )  # fmt: skip
    return released


def warm_start_parameters(
    n_users: int,
    dimension: int,
    *,
    min_radius: float,
    max_radius: float,
    epsilon: float,
    delta: float,
) -> WarmStartParameters:
    """Return what Theorem 3 promises at these parameters.

    If the theorem promises nothing, the function raises an error. The constants of Theorem 3 are
    hidden. This function uses the constants of the theorem's lemmas, at epsilon' = epsilon / 2 and
    delta' = delta / 2. There are three conditions. (1) n >= (2400 / epsilon') log(4T / delta')
    (Lemma 6). (2) n >= 20 (Lemma 9). (3) 0.05 n > 2 (24 / epsilon') log(24 / delta'). With this
    condition, weights of 0.6 n (Lemma 7) pass line 9 for every value of the noise. Up to constants,
    the second and the third condition follow from the first condition. The third condition is not
    in the paper.

    The guarantee is for r <= 4 r^(.9). With probability 1 - delta, r^(.75) / 4 <= r-hat <= 4
    r^(.9), and the point is within ``radius_factor * r-hat`` of the geometric median. The factor
    `radius_factor` is 6 + 3 sqrt(d log(8 / delta)) sigma / r-hat. The paper's factor 3 needs r-hat
    >= r^(.75). Lemma 6 does not give this bound.

    But when FastRadius halts, the proof of Lemma 6 shows that some data point has 0.75 n points
    within r-hat. These points are within 2 r-hat of one another. So Lemma 7 holds around that data
    point. By Lemma 4, that data point is within 3 r-hat of the median.
    """
    n_users = _validate.integer("n_users", n_users, at_least=1)
    dimension = _validate.integer("dimension", dimension, at_least=1)
    half = _at_most_one(epsilon) / 2
    half_delta = _validate.probability("delta", delta) / 2
    n_radii = max(1, radius_grid(min_radius, max_radius).size)
    needed = max(
        math.ceil(2400 / half * math.log(4 * n_radii / half_delta)),
        20,
        math.floor(960 / half * math.log(24 / half_delta)) + 1,
    )
    if n_users < needed:
        raise ValueError(f"n_users must be at least {needed} for Theorem 3, got {n_users}")
    sigma = fast_center_sigma(n_users, 1.0, half, half_delta)
    return WarmStartParameters(
        n_radii=n_radii,
        radius_samples=fast_radius_samples(n_radii, half_delta),
        center_samples=fast_center_samples(n_users, half_delta),
        sigma=sigma,
        radius_factor=6 + 3 * sigma * math.sqrt(dimension * math.log(8 / delta)),
    )


def private_geometric_median(
    data: ArrayLike,
    size: int,
    *,
    min_radius: float,
    max_radius: float,
    epsilon: float,
    delta: float,
    n_steps: int,
    step_factor: float,
    radius_factor: float = RADIUS_FACTOR,
    order: str = "random",
    accesses: str = "total",
    project: str = "all",
    ball: str = "printed",
    noise_multiplier: float = 1.0,
    route: str = "auto",
    max_seconds: float = _cost.MAX_SECONDS,
    rng: np.random.Generator,
) -> FloatArray:
    """Minimise the average distance to the data, from a private warm start.

    The source is geometric_median, Theorem 4. First, the warm start of Theorem 3 runs at (epsilon /
    2, delta / 2). Then StableDPSGD runs with rho = epsilon**2 / (32 log(4 / delta)) and delta / 2,
    in the ball that the warm start released.

    **Guarantee** (epsilon, delta)-DP for epsilon <= 2 and n >= 20, by Theorem 3 and by Lemma 12 at
    (epsilon / 2, delta / 2). The condition of Lemma 12 on rho holds with a margin for epsilon <= 4
    log(4 / delta).

    **Requires** that all points lie in the ball of radius `max_radius` around 0. Only the utility
    needs this condition, but points outside are refused.

    **Departs** (1) The theorem says only that a suitable step size and a suitable radius of the
    domain exist. In this function, the step size and the radius are `step_factor` and
    `radius_factor` times the released r-hat. The paper's proof takes the radius to be r-hat itself,
    after an unstated rescaling by C'. (2) If `order` is "fixed", FixedOrderDPSGD runs at the same
    rho. FixedOrderDPSGD needs no delta. (3) The departures of `warm_start` and `stable_dpsgd` also
    apply to this function.

    **Symbols** eta = `step_factor` r-hat, T = `n_steps`.

    Parameters
    ----------
    data : array_like, [n, d]
        Finite values.
    size : int
        Number of independent draws.
    min_radius, max_radius : float
        Bounds of the search, positive, public.
    epsilon : float
        Total privacy parameter, positive.
    delta : float
        In (0, 1).
    n_steps : int
        Number of steps, which is 2**K - 1 for some K >= 1.
    step_factor, radius_factor : float
        Step size and radius of the domain, in units of the released radius. Both values are
        positive.
    order : {"random", "fixed"}, default "random"
        "random" runs StableDPSGD. "fixed" runs FixedOrderDPSGD on the rows in their given order.
    accesses, project, ball, noise_multiplier, route, max_seconds
        As in `fixed_order_dpsgd`, `stable_dpsgd` and `warm_start`.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size, d]
    """
    rng = _validate.generator(rng)
    points = _points.cloud(data)
    n, dimension = points.shape
    half = _validate.positive("epsilon", epsilon) / 2
    half_delta = _validate.probability("delta", delta) / 2
    step_factor = _validate.positive("step_factor", step_factor)
    radius_factor = _validate.positive("radius_factor", radius_factor)
    project = _sgd.projection(project)
    unit = boosting_schedule(
        n, dimension, epsilon=epsilon, delta=delta, radius=radius_factor, step=step_factor,
        n_steps=n_steps, order=order, accesses=accesses, ball=ball,
    )  # fmt: skip
    _sgd.refuse_slow(unit, _validate.draws(size), max_seconds)
    started = warm_start(
        points, size, min_radius=min_radius, max_radius=max_radius, epsilon=half,
        delta=half_delta, noise_multiplier=noise_multiplier, route=route,
        max_seconds=max_seconds, rng=rng,
    )  # fmt: skip
    answers = np.empty((len(started), dimension))
    for radius in np.unique(started[:, -1]):
        same = np.flatnonzero(started[:, -1] == radius)
        rows = _sgd.fixed_rows(n, None) if order == "fixed" else _sgd.random_rows(n, rng)
        centers, noise = _sgd.run_phases(
            points, started[same, :-1], unit.scaled(float(radius)), rows, unit.n_phases, project,
            noise_multiplier, rng,
        )  # fmt: skip
        answers[same] = centers[-1] + noise[-1]
    return answers


def boosting_schedule(
    n_users: int,
    dimension: int,
    *,
    epsilon: float,
    delta: float,
    radius: float,
    step: float,
    n_steps: int,
    order: str = "random",
    accesses: str = "total",
    ball: str = "printed",
) -> Schedule:
    """Return the schedule of the boosting in Theorem 4, for a total budget of (epsilon, delta)."""
    rho = _validate.positive("epsilon", epsilon) ** 2 / (32 * math.log(4 / delta))
    if rho <= 0:
        raise ValueError(f"epsilon must be larger, because rho must be positive, got {epsilon!r}")
    if order not in ORDERS:
        raise ValueError(f"order must be one of {', '.join(ORDERS)}, got {order!r}")
    if accesses not in ACCESSES:
        raise ValueError(f"accesses must be one of {', '.join(ACCESSES)}, got {accesses!r}")
    if order == "fixed":
        return fixed_order_schedule(
            n_users, dimension, radius=radius, rho=rho, delta=delta / 2, step=step,
            n_steps=n_steps, accesses=accesses, ball=ball,
        )  # fmt: skip
    return stable_dpsgd_schedule(
        n_users, dimension, radius=radius, rho=rho, delta=delta / 2, step=step, n_steps=n_steps,
        ball=ball,
    )  # fmt: skip


def private_geometric_median_parameters(
    n_users: int,
    dimension: int,
    *,
    alpha: float,
    min_radius: float,
    max_radius: float,
    epsilon: float,
    delta: float,
) -> MedianParameters:
    """Return parameters at which Theorem 4 promises a (1 + alpha)-approximation, or raise an error.

    The theorem hides its constant C. This function checks two kinds of conditions. The conditions
    of the first kind are those of `warm_start_parameters` at half the budget. These conditions
    contain log log (R / r), which the theorem omits. The second kind is a single condition, for T =
    2**K - 1 >= n. The condition says that `Schedule.error_bound` with the best step size is at most
    alpha f(x_star). This condition holds if the error is at most alpha r-hat / 40, because r-hat <=
    4 r^(.9) <= 40 f(x_star) by Lemma 3.

    T is the smallest number that satisfies the second condition. The function raises an error if no
    such T exists. If the noise is too large, no such T exists, because the noise grows with T / n.
    The bound is valid for `ball="repaired"`.
    """
    alpha = _validate.positive("alpha", alpha)
    if alpha > 1:
        raise ValueError(f"alpha must be at most 1, got {alpha!r}")
    half = _at_most_one(epsilon) / 2
    start = warm_start_parameters(
        n_users, dimension, min_radius=min_radius, max_radius=max_radius, epsilon=half,
        delta=_validate.probability("delta", delta) / 2,
    )  # fmt: skip
    best = math.inf
    for n_phases in range(n_users.bit_length(), 64):
        plan = boosting_schedule(
            n_users, dimension, epsilon=epsilon, delta=delta, radius=start.radius_factor,
            step=1.0, n_steps=2**n_phases - 1, ball="repaired",
        )  # fmt: skip
        inverse, linear, constant = plan.error_terms  # inverse / eta + linear * eta + constant
        error = 2 * math.sqrt(inverse * linear) + constant
        best = min(best, error)
        if error <= alpha / 40:
            step = math.sqrt(inverse / linear)
            return MedianParameters(start, plan.n_steps, step, start.radius_factor, error)
    raise ValueError(
        f"n_users must be larger for alpha = {alpha!r}, got {n_users}. For every "
        f"number of steps, the error bound is at least {40 * best:.3g} times the "
        "objective."
    )


def _at_most_one(epsilon: float) -> float:
    if _validate.positive("epsilon", epsilon) > 1:
        raise ValueError(f"epsilon must be at most 1, as in the paper, got {epsilon!r}")
    return float(epsilon)
