"""Phases, steps, noise and balls of StableDPSGD and FixedOrderDPSGD."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from algorithms.common import _validate

BALLS = ("printed", "repaired")
ACCESSES = ("total", "phase")

TUNED_MULTIPLIER = 8.0
"""Default step size of `tuned_step`, as a multiple of the minimiser of the error bound."""


@dataclass(frozen=True)
class Schedule:
    """Parameters of geometric_median, Algorithm 4, that do not depend on the data.

    Attributes
    ----------
    n_users, dimension : int
        The numbers n and d.
    radius, rho, delta, step : float
        The values r-hat, rho, delta and eta.
    n_steps, n_phases : int
        T = 2**K - 1, and K.
    lengths : tuple of int
        T^(k) = 2**-k (T + 1), which sum to T.
    steps : tuple of float
        eta^(k) = 4**-k eta.
    accesses : tuple of float
        m for each phase, the largest number of visits of one row.
    sigmas : tuple of float
        sigma^(k) = 3**-k (2m + 1) eta / sqrt(rho).
    radii : tuple of float
        Radius of the ball K^(k).
    """

    n_users: int
    dimension: int
    radius: float
    rho: float
    delta: float
    step: float
    n_steps: int
    n_phases: int
    lengths: tuple[int, ...]
    steps: tuple[float, ...]
    accesses: tuple[float, ...]
    sigmas: tuple[float, ...]
    radii: tuple[float, ...]

    def scaled(self, unit: float) -> Schedule:
        """Return the schedule for data, radius and step size that are multiplied by `unit`."""
        return replace(
            self,
            radius=self.radius * unit,
            step=self.step * unit,
            steps=tuple(step * unit for step in self.steps),
            sigmas=tuple(sigma * unit for sigma in self.sigmas),
            radii=tuple(radius * unit for radius in self.radii),
        )

    @property
    def total_rho(self) -> float:
        """The zCDP parameter of all phases together, which is at most 9 rho / 14 by Corollary 1."""
        return sum(
            ((2 * m + 1) * step / sigma) ** 2 / 2
            for m, step, sigma in zip(self.accesses, self.steps, self.sigmas, strict=True)
        )

    @property
    def error_terms(self) -> tuple[float, float, float]:
        """Three terms of `error_bound`: one in 1 / eta, one in eta, and one without eta."""
        confidence = math.log(4 * self.n_phases / self.delta)
        inverse = self.radius**2 / (2 * self.steps[0] * self.lengths[0])
        constant = 4 * self.radius * math.sqrt(2 * confidence / self.lengths[0])
        linear = sum(self.steps) / 2
        for before, step, length in zip(
            self.sigmas, self.steps[1:], self.lengths[1:], strict=False
        ):
            linear += 2 * before**2 * self.dimension * confidence / (step * length)
            linear += 8 * before * confidence * math.sqrt(2 * self.dimension / length)
        linear += 2 * self.sigmas[-1] * math.sqrt(self.dimension * math.log(2 / self.delta))
        return inverse, linear, constant

    @property
    def error_bound(self) -> float:
        """The bound on f(xhat) - f(x_star) that holds with probability 1 - delta.

        The bound is the sum of Lemma 13 over the phases and of the last noise, as in the proof of
        Lemma 14. Three corrections are made. (1) sigma^(k-1) replaces sigma^(k), because the noise
        of the previous phase matters. (2) r-hat**2 / (2 eta^(1) T^(1)) is 4 r-hat**2 / (eta (T +
        1)), not r-hat**2 / (16 eta T). (3) No constant is rounded. The bound is valid for
        `ball="repaired"` and for a minimiser within r-hat of the center.
        """
        return sum(self.error_terms)


def bound_step(plan: Schedule) -> float:
    """Return the step size that minimises `Schedule.error_bound`, for any step size of `plan`.

    The source is the choice "optimizing in eta" in the proof of Theorem 4. The sigmas and all radii
    except the first are multiples of eta, so the bound is a / eta + b eta + c.
    """
    inverse, linear, _ = plan.error_terms
    return plan.step * math.sqrt(inverse / linear)


def tuned_step(plan: Schedule, *, multiplier: float = TUNED_MULTIPLIER) -> float:
    """Return the step size that the experiments use, a multiple of `bound_step`.

    **Guarantee** Privacy does not depend on the step size, because sigma^(k) is proportional to eta
    (Algorithm 4, line 3). The multiplier must be public. The default is a constant. A multiplier
    that was chosen on other data is public too. A choice on the private data costs privacy that no
    account in this package includes.

    **Departs** Theorem 4 takes the minimiser of a bound that holds with probability 1 - delta. In
    this bound, the noise of a phase enters with the factor 4 log(4K / delta) that its expectation
    does not have. If the noise dominates, the step size that is best on average is larger by
    sqrt(4 log(4K / delta)). This factor is 7.8 to 8.0 for delta = 1e-5 and K = 10 to 20.

    The experiments of Section 5 try the multipliers 1/4, 1, 4, 8, 16, 32 and 64. For n = 100 to
    10,000, d = 50 and rho = 0.5, the best multiplier is 4, 8 or 16. With the multiplier 8, the
    error is at most 2.1 times the smallest error. It is up to 32 times smaller than with the
    multiplier 1. At n = 100,000 and 2**17 - 1 steps, the fixed order has so little noise that the
    multiplier 1 is the best.

    Parameters
    ----------
    plan : Schedule
        The schedule. Its step size has no influence on the result.
    multiplier : float, default 8
        Positive.

    Returns
    -------
    float
        A step size for `stable_dpsgd` or `fixed_order_dpsgd`. If `plan` has the radius
        `radius_factor` (`composed.boosting_schedule`), the result is a `step_factor` for
        `private_geometric_median`.

    Examples
    --------
    >>> plan = stable_dpsgd_schedule(
    ...     1000, 50, radius=1.0, rho=0.5, delta=1e-5, step=1.0, n_steps=2**14 - 1
    ... )
    >>> round(bound_step(plan), 6), round(tuned_step(plan), 6)
    (2.8e-05, 0.000223)
    """
    return _validate.positive("multiplier", multiplier) * bound_step(plan)


def stable_dpsgd_rho(epsilon: float, delta: float) -> float:
    """Return the largest rho for which Lemma 12 makes StableDPSGD (epsilon, delta)-DP.

    The result satisfies 1 / rho = 4 log(2 / delta) / epsilon**2 + 2 / epsilon. The argument epsilon
    is at most 1.

    Examples
    --------
    >>> round(stable_dpsgd_rho(1.0, 1e-6), 5)
    0.01666
    """
    epsilon = _validate.positive("epsilon", epsilon)
    delta = _validate.probability("delta", delta)
    if epsilon > 1:
        raise ValueError(f"epsilon must be at most 1 for Lemma 12, got {epsilon!r}")
    return epsilon**2 / (4 * math.log(2 / delta) + 2 * epsilon)


def stable_dpsgd_schedule(
    n_users: int,
    dimension: int,
    *,
    radius: float,
    rho: float,
    delta: float,
    step: float,
    n_steps: int,
    ball: str = "printed",
) -> Schedule:
    """Return the schedule of StableDPSGD, for any number of steps T = 2**K - 1.

    The source is geometric_median, Algorithm 4, lines 1, 3, 6 and 9. One row is drawn at most m = 3
    (T / n + log(8 / delta)) times, except with probability delta / 8. This bound is Lemma 10, which
    also holds for T < n.
    """
    n_users = _validate.integer("n_users", n_users, at_least=1)
    delta = _validate.probability("delta", delta)
    n_phases = _phases(n_steps)
    bound = 3 * (n_steps / n_users + math.log(8 / delta))  # line 1
    accesses = (bound,) * n_phases
    return _schedule(n_users, dimension, radius, rho, delta, step, n_steps, accesses, ball)


def fixed_order_schedule(
    n_users: int,
    dimension: int,
    *,
    radius: float,
    rho: float,
    delta: float,
    step: float,
    n_steps: int,
    accesses: str = "total",
    ball: str = "printed",
) -> Schedule:
    """Return the schedule of FixedOrderDPSGD, for any number of steps T = 2**K - 1.

    The source is geometric_median, Remark 1. With `accesses` "total", m = ceil(T / n). With
    `accesses` "phase", m = ceil(T^(k) / n) in phase k. The privacy proof needs only this smaller m.
    """
    n_users = _validate.integer("n_users", n_users, at_least=1)
    n_phases = _phases(n_steps)
    if accesses not in ACCESSES:
        raise ValueError(f"accesses must be one of {', '.join(ACCESSES)}, got {accesses!r}")
    visits = [float(-(-n_steps // n_users))] * n_phases
    if accesses == "phase":
        visits = [float(-(-length // n_users)) for length in _lengths(n_phases)]
    return _schedule(n_users, dimension, radius, rho, delta, step, n_steps, tuple(visits), ball)


def stable_dpsgd_parameters(
    n_users: int,
    dimension: int,
    *,
    radius: float,
    rho: float,
    delta: float,
    step: float,
    n_steps: int,
    ball: str = "printed",
) -> Schedule:
    """Return the schedule of StableDPSGD, and refuse T < n, which Algorithm 4 excludes."""
    plan = stable_dpsgd_schedule(
        n_users, dimension, radius=radius, rho=rho, delta=delta, step=step, n_steps=n_steps,
        ball=ball,
    )  # fmt: skip
    return _long_enough(plan)


def fixed_order_dpsgd_parameters(
    n_users: int,
    dimension: int,
    *,
    radius: float,
    rho: float,
    delta: float,
    step: float,
    n_steps: int,
    accesses: str = "total",
    ball: str = "printed",
) -> Schedule:
    """Return the schedule of FixedOrderDPSGD, and refuse T < n, which Algorithm 4 excludes."""
    plan = fixed_order_schedule(
        n_users, dimension, radius=radius, rho=rho, delta=delta, step=step, n_steps=n_steps,
        accesses=accesses, ball=ball,
    )  # fmt: skip
    return _long_enough(plan)


def _long_enough(plan: Schedule) -> Schedule:
    if plan.n_steps < plan.n_users:
        raise ValueError(
            f"n_steps must be at least n_users = {plan.n_users}, got {plan.n_steps}. The "
            "paper states Algorithm 4 and its utility only for T >= n."
        )
    return plan


def _phases(n_steps: int) -> int:
    """Return K, where n_steps = 2**K - 1."""
    n_steps = _validate.integer("n_steps", n_steps, at_least=1)
    n_phases = n_steps.bit_length()
    if n_steps != 2**n_phases - 1:
        raise ValueError(
            f"n_steps must be 2**K - 1 for an integer K, got {n_steps}. The closest values are "
            f"{2 ** (n_phases - 1) - 1} and {2**n_phases - 1}."
        )
    return n_phases


def _lengths(n_phases: int) -> tuple[int, ...]:
    return tuple(2 ** (n_phases - k) for k in range(1, n_phases + 1))


def _schedule(
    n_users: int,
    dimension: int,
    radius: float,
    rho: float,
    delta: float,
    step: float,
    n_steps: int,
    accesses: tuple[float, ...],
    ball: str,
) -> Schedule:
    dimension = _validate.integer("dimension", dimension, at_least=1)
    radius = _validate.real("radius", radius)
    if radius < 0:
        raise ValueError(f"radius must be at least 0, got {radius!r}")
    rho = _validate.positive("rho", rho)
    delta = _validate.probability("delta", delta)
    step = _validate.positive("step", step)
    if ball not in BALLS:
        raise ValueError(f"ball must be one of {', '.join(BALLS)}, got {ball!r}")
    n_phases = len(accesses)
    phases = range(1, n_phases + 1)
    # line 3: T^(k) = 2**-k (T + 1), eta^(k) = 4**-k eta, sigma^(k) = 3**-k (2m + 1) eta / sqrt(rho)
    sigmas = tuple(
        _validate.scale(3.0**-k * (2 * m + 1) * step, math.sqrt(rho))
        for k, m in zip(phases, accesses, strict=True)
    )
    # line 6: K^(1) has radius r-hat; line 9: K^(k) has radius 2 sigma^(k) sqrt(d log(4K / delta))
    room = 2 * math.sqrt(dimension * math.log(4 * n_phases / delta))
    later = sigmas[1:] if ball == "printed" else sigmas[:-1]
    return Schedule(
        n_users=n_users,
        dimension=dimension,
        radius=radius,
        rho=rho,
        delta=delta,
        step=step,
        n_steps=int(n_steps),
        n_phases=n_phases,
        lengths=_lengths(n_phases),
        steps=tuple(4.0**-k * step for k in phases),
        accesses=accesses,
        sigmas=sigmas,
        radii=(radius, *(room * sigma for sigma in later)),
    )
