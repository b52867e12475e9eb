"""Algorithm 3: conversion of online learning into nonsmooth, nonconvex optimisation."""

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
    """An online learner for many simultaneous runs, which plays steps of length at most D.

    After each step, the learner receives a linear loss. The learner's first step must not depend on
    the data.
    """

    @abstractmethod
    def play(self) -> FloatArray:
        """Return the next steps ``[size, d]``."""

    @abstractmethod
    def receive(self, gradients: FloatArray) -> None:
        """Receive the losses <g, .> ``[size, d]`` of the steps that were played."""


class ProjectedSubgradient(OnlineLearner):
    """Projected online subgradient descent.

    The learner starts at Delta_1 = 0, and then plays Pi_D(Delta - eta g). The source is
    zeroth_order, Algorithm 3, line 4.

    **Guarantee** sum_t <v_t, Delta_t - u> <= norm(u)**2 / (2 eta) + (eta / 2) sum_t norm(v_t)**2
    for every norm(u) <= D. The right side is at most D sqrt(sum_t norm(v_t)**2) if eta = D /
    sqrt(sum_t norm(v_t)**2), but not for other values of eta. Section 2 states this bound for the
    expectation.

    Parameters
    ----------
    size, dimension : int
    domain : float
        Positive radius D.
    step : float
        Positive step size eta.
    """

    def __init__(self, size: int, dimension: int, *, domain: float, step: float) -> None:
        self._domain = _validate.positive("domain", domain)
        self._step = _validate.positive("step", step)
        self._delta = np.zeros((_validate.draws(size), dimension))

    def play(self) -> FloatArray:
        """Return Delta_t."""
        return self._delta

    def receive(self, gradients: FloatArray) -> None:
        """Step against the gradient, and project back into the ball."""
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
    """Find a point near which a population loss is almost stationary, using only noisy values.

    The source is zeroth_order, Algorithm 3 (Online-to-Nonconvex Conversion) with the oracle of the
    plan, Algorithm 4 or 6.

    **Guarantee** mu-Gaussian DP with mu = `accounts.output_gdp`. For plans of `scaled`, and for
    plans of Theorem 4.9 and Corollary 4.4 (`printed`), the algorithm is rho-RDP. The proof of the
    printed noise fails at T = 2 and at T = 4. At these T, the guarantee still holds, because the
    last gradient of an epoch is computed and never used. The private values are the output and
    everything else that is computed from noisy gradients (all x, w, Delta). The guarantee holds for
    every behaviour of the loss on a user's item. The expected stationarity at 2 delta is at most
    `bounds.stationarity_bound`.

    **Requires** that the order of the items does not depend on the items. Stationarity needs i.i.d.
    items.

    **Departs** (1) eta, which the paper describes as "tuned by OSD", is part of the plan. The paper
    does not print eta. In the plans of `printed` and `scaled`, eta is D / sqrt(T) divided by a
    bound on the noisy gradients. (2) Line 7 is omitted in round T. No value can depend on g~_T,
    even if a learner keeps a memory. (3) The other departures are those of
    `oracles.oracle_gradients`. (4) `noise_multiplier` is not in the paper.

    **Symbols** In `plan`, K = epochs, T = rounds, D = domain, delta = radius and eta = step. Also,
    x_1 = `start`, A = `learner`, and w-bar is the returned value.

    Parameters
    ----------
    data : array_like, [M, p] or [M, 1, p]
        Items. The first `plan.n_points` are used.
    size : int
        Number of independent draws.
    loss : Loss
    plan : Plan
    start : array_like, [d]
    learner : callable, optional
        ``learner(size, d)`` makes the online learner of an epoch. The default is
        `ProjectedSubgradient` with `plan.domain` and `plan.step`. Steps longer than `plan.domain`
        are refused. A first step that is not 0 is refused unless `plan.first_step_is_zero` is
        False.
    noise_multiplier : float, default 1
        Factor on sigma, at least 0. If the factor is below 1, no privacy is guaranteed.
    transcript : bool, default False
        Whether to return the averages of all epochs, w-bar^1 to w-bar^K. All these averages
        together have the same privacy as the output.
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
            f"dimension must be {plan.dimension}, because the plan's noise was made for "
            f"it, got a loss of dimension {dimension}"
        )
    if plan.lipschitz is not None and loss.lipschitz > plan.lipschitz * _ROUNDING:
        raise ValueError(
            f"the lipschitz constant of the loss must be at most {plan.lipschitz!r}, "
            f"because the plan's noise was made for it, got {loss.lipschitz!r}"
        )
    point = _validate.floats("start", start, ndims=(1,))
    if point.size != dimension:
        raise ValueError(f"start must have {dimension} coordinates, got {point.size}")
    # No later point is farther out, so no error can depend on the data.
    smoothing_radius(plan.radius, np.abs(point) + plan.epochs * plan.rounds * plan.domain)
    return np.tile(point, (size, 1))


def _inside(steps: Any, shape: tuple[int, ...], plan: Plan, *, first: bool) -> FloatArray:
    """Return the learner's steps if they satisfy the conditions that the sensitivities assume."""
    found = np.asarray(steps)
    if found.shape != shape or found.dtype.kind not in "iuf":
        raise ValueError(
            f"learner must return real numbers of shape {shape}, got {found.dtype} of "
            f"shape {found.shape}"
        )
    longest = float(np.linalg.norm(found, axis=1).max(initial=0.0))
    if not longest <= plan.domain * _ROUNDING:
        raise ValueError(
            f"learner must return steps of length at most {plan.domain!r}, got {longest!r}"
        )
    if first and plan.first_step_is_zero and found.any():
        raise ValueError(
            "learner must return Delta_1 = 0 in its first step, because the plan's noise "
            f"assumes this, got steps of length up to {longest!r}. Use Plan(..., "
            "first_step_is_zero=False) for other learners."
        )
    return found.astype(np.float64, copy=False)
