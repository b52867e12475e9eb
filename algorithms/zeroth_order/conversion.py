"""Algorithm 3: online learning turned into nonsmooth, nonconvex optimisation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.zeroth_order.estimators import smoothing_radius
from algorithms.zeroth_order.losses import Loss
from algorithms.zeroth_order.oracles import EpochOracle, epoch_items
from algorithms.zeroth_order.plans import Plan

_ROUNDING = 1 + 1e-9


class OnlineLearner(ABC):
    """Plays steps no longer than D, and is told linear losses, of many runs at once.

    What it plays first must not depend on data.
    """

    @abstractmethod
    def play(self) -> FloatArray:
        """Return the next steps ``[size, d]``."""

    @abstractmethod
    def receive(self, gradients: FloatArray) -> None:
        """Learn the losses <g, .> ``[size, d]`` of the steps that were played."""


class ProjectedSubgradient(OnlineLearner):
    """Projected online subgradient descent: Delta_1 = 0, then Pi_D(Delta - eta g).

    zeroth_order, Algorithm 3, line 4.

    **Guarantee** sum_t <v_t, Delta_t - u> <= norm(u)**2 / (2 eta) + (eta / 2) sum_t norm(v_t)**2
    for every norm(u) <= D: at most D sqrt(sum_t norm(v_t)**2), as Section 2 says of its
    expectation, if eta = D / sqrt(sum_t norm(v_t)**2), and not for other eta.

    Parameters
    ----------
    size, dimension : int
    domain : float
        D, positive.
    step : float
        eta, positive.
    """

    def __init__(self, size: int, dimension: int, *, domain: float, step: float) -> None:
        self._domain = _validate.positive("domain", domain)
        self._step = _validate.positive("step", step)
        self._delta = np.zeros((_validate.draws(size), dimension))

    def play(self) -> FloatArray:
        """Return Delta_t."""
        return self._delta

    def receive(self, gradients: FloatArray) -> None:
        """Move against the gradient, and back into the ball."""
        moved = self._delta - self._step * gradients
        largest = np.maximum(np.abs(moved).max(axis=1, keepdims=True), 1e-300)
        moved /= largest  # so that no square overflows
        lengths = np.linalg.norm(moved, axis=1, keepdims=True)
        self._delta = moved * np.minimum(largest, self._domain / np.maximum(lengths, 1e-300))


def private_zeroth_order(
    data: Any,
    size: int,
    *,
    loss: Loss,
    plan: Plan,
    start: ArrayLike,
    learner: Callable[[int, int], OnlineLearner] | None = None,
    noise_multiplier: float = 1.0,
    transcript: bool = False,
    rng: np.random.Generator,
) -> FloatArray:
    """Find a point near which a population loss is almost stationary, from noisy values only.

    zeroth_order, Algorithm 3 (Online-to-Nonconvex Conversion) with the oracle of the plan,
    Algorithm 4 or 6.

    **Guarantee** mu-Gaussian DP with mu = `accounts.output_gdp`; rho-RDP for plans of `scaled`, and
    for those of Theorem 4.9 and Corollary 4.4 (`printed`), although the proof of their noise fails
    at T = 2 and 4: the last gradient of an epoch is asked for, and never used. What is private is
    the output, and everything else that is computed from noisy gradients (all x, w, Delta);
    whatever the loss does on somebody's item. The expectation of the stationarity at 2 delta is at
    most `bounds.stationarity_bound`.

    **Requires** items in an order that does not depend on them; for stationarity, that they are
    i.i.d.

    **Departs** (1) eta, "tuned by OSD", is the plan's: printed nowhere, and D / sqrt(T) over a
    bound on the noisy gradients where `printed` and `scaled` make the plan. (2) Line 7 is left out
    in round T: nothing can depend on g~_T, not even in a learner that remembers. (3) The other open
    points are those of `oracles.oracle_gradients`. (4) `noise_multiplier` is not the paper's.

    **Symbols** K, T, D, delta, eta = `plan`'s epochs, rounds, domain, radius, step; x_1 = `start`;
    A = `learner`; w-bar = what is returned.

    Parameters
    ----------
    data : array_like, [M, p] or [M, 1, p]
        Items; the first `plan.n_points` are used.
    size : int
        Number of independent draws.
    loss : Loss
    plan : Plan
    start : array_like, [d]
    learner : callable, optional
        ``learner(size, d)`` makes the online learner of an epoch; `ProjectedSubgradient` with
        `plan.domain` and `plan.step` by default. Steps longer than `plan.domain` are refused, and
        a first step that is not 0 unless `plan.first_step_is_zero` is False.
    noise_multiplier : float, default 1
        Factor on sigma, at least 0; below 1 nothing is guaranteed.
    transcript : bool, default False
        Whether to return the averages of all epochs, w-bar^1 to w-bar^K; they are as private.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size, d], or [size, K, d] with `transcript`
    """
    rng = _validate.generator(rng)
    size = _validate.draws(size)
    if not isinstance(plan, Plan):
        raise TypeError(f"plan must be a Plan, got {plan!r}")
    items = epoch_items(data, loss, plan.oracle, plan.rounds, plan.epochs)
    d = loss.dimension(items.shape[1])
    x = _starting_points(start, size, d, loss, plan)
    averages = np.zeros((size, plan.epochs, d))
    for k, own in enumerate(np.split(items, plan.epochs)):
        if learner is None:
            online: OnlineLearner = ProjectedSubgradient(
                size, d, domain=plan.domain, step=plan.step
            )
        else:
            online = learner(size, d)  # line 10
        oracle = EpochOracle(
            own, size, loss=loss, oracle=plan.oracle, radius=plan.radius, rounds=plan.rounds,
            noise_multiplier=noise_multiplier, rng=rng,
        )  # fmt: skip
        for t in range(plan.rounds):
            delta = _inside(online.play(), x.shape, plan, first=t == 0)  # line 4
            w = x + rng.random((size, 1)) * delta  # line 5
            x = x + delta
            averages[:, k] += w / plan.rounds  # line 9
            gradients = oracle.query(w)  # line 6
            if t < plan.rounds - 1:
                online.receive(gradients)  # line 7
    if transcript:
        return averages
    return np.asarray(averages[np.arange(size), rng.integers(plan.epochs, size=size)])  # line 12


def _starting_points(
    start: ArrayLike, size: int, dimension: int, loss: Loss, plan: Plan
) -> FloatArray:
    if plan.dimension not in (None, dimension):
        raise ValueError(
            f"dimension must be {plan.dimension}, for which the plan's noise was made, got a loss "
            f"of {dimension}"
        )
    if plan.lipschitz is not None and loss.lipschitz > plan.lipschitz * _ROUNDING:
        raise ValueError(
            f"lipschitz of the loss must be at most {plan.lipschitz!r}, for which the plan's noise "
            f"was made, got {loss.lipschitz!r}"
        )
    point = _validate.floats("start", start, ndims=(1,))
    if point.size != dimension:
        raise ValueError(f"start must have {dimension} coordinates, got {point.size}")
    # no later point is farther out, so that no error can depend on data
    smoothing_radius(plan.radius, np.abs(point) + plan.epochs * plan.rounds * plan.domain)
    return np.tile(point, (size, 1))


def _inside(steps: Any, shape: tuple[int, ...], plan: Plan, *, first: bool) -> FloatArray:
    """Return the learner's steps, if they are what sensitivities rely on."""
    found = np.asarray(steps)
    if found.shape != shape or found.dtype.kind not in "iuf":
        raise ValueError(
            f"learner must play real numbers of shape {shape}, got {found.dtype} of {found.shape}"
        )
    longest = float(np.linalg.norm(found, axis=1).max(initial=0.0))
    if not longest <= plan.domain * _ROUNDING:
        raise ValueError(f"learner must play steps no longer than {plan.domain!r}, got {longest!r}")
    if first and plan.first_step_is_zero and found.any():
        raise ValueError(
            "learner must begin with Delta_1 = 0, which the plan's noise relies on, got steps of "
            f"up to {longest!r}; Plan(..., first_step_is_zero=False) has noise for others"
        )
    return found.astype(np.float64, copy=False)
