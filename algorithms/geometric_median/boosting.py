"""StableDPSGD and FixedOrderDPSGD, noisy SGD in phases that is stable without smoothness."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.geometric_median import _cost, _points, _sgd
from algorithms.geometric_median._sgd import fixed_rows, random_rows, run_phases
from algorithms.geometric_median.schedule import (
    Schedule,
    fixed_order_schedule,
    stable_dpsgd_schedule,
)


def sgd_trajectory(
    data: ArrayLike,
    start: ArrayLike,
    indices: ArrayLike,
    *,
    step: float,
    radius: float | None = None,
    center: ArrayLike | None = None,
) -> FloatArray:
    """Return the iterates of one phase for given sampled indices.

    The source is geometric_median, Algorithm 4, lines 11 to 14, without randomness.

    **Guarantee** Suppose that the replaced row of the data occurs m >= 1 times in `indices`. In
    this case, every iterate moves by at most (2m + 1) `step` (Corollary 1). In fact every iterate
    moves by at most 2 m `step`, because the 3 of Lemma 11 can be replaced by 2. If a + b <= eta,
    then a <= eta and b <= eta. So the new distance is at most (eta - a) + (eta - b) <= 2 eta.

    **Requires** No condition on the data.

    **Departs** At z = x_i, the step is 0, as in footnote 5.

    Parameters
    ----------
    data : array_like, [n, d]
        Finite values.
    start : array_like, [d] or [size, d]
        First iterates.
    indices : array_like of int, [T] or [size, T]
        Indices from 0 to n - 1.
    step : float
        Positive.
    radius : float, optional
        Radius of the ball to which every iterate is projected, at least 0. Default: no projection.
    center : array_like, [d], optional
        Center of this ball. The default is `start`.

    Returns
    -------
    ndarray, [T + 1, d] or [size, T + 1, d]
    """
    points = _points.cloud(data)
    first = _validate.floats("start", start, ndims=(1, 2))
    rows = _validate.integers("indices", indices, ndims=(1, 2), low=0, high=len(points) - 1)
    if first.shape[-1] != points.shape[1]:
        raise ValueError(f"start must have {points.shape[1]} coordinates, got shape {first.shape}")
    step = _validate.positive("step", step)
    reach = None if radius is None else _at_least_zero("radius", radius)
    shape = np.broadcast_shapes(first.shape[:-1], rows.shape[:-1])
    z = np.broadcast_to(first, (*shape, first.shape[-1])).copy()
    middle = z if center is None else _points.point("center", center, points.shape[1])
    iterates = [z]
    for t in range(rows.shape[-1]):
        z = _sgd.advance(z, points[rows[..., t]], step, middle, reach)
        iterates.append(z)
    return np.stack(iterates, axis=-2)


def stable_dpsgd(
    data: ArrayLike,
    size: int,
    *,
    center: ArrayLike,
    radius: float,
    rho: float,
    delta: float,
    step: float,
    n_steps: int,
    project: str = "all",
    ball: str = "printed",
    transcript: bool = False,
    noise_multiplier: float = 1.0,
    max_seconds: float = _cost.MAX_SECONDS,
    rng: np.random.Generator,
) -> FloatArray:
    """Average SGD's iterates and add noise, in phases with decreasing lengths, steps and noise.

    The source is geometric_median, Algorithm 4 (StableDPSGD).

    **Guarantee** The outputs of all phases together are (epsilon, delta)-DP for epsilon <= 1, if
    `rho` is `schedule.stable_dpsgd_rho(epsilon, delta)` (Lemma 12). Some index is drawn more than m
    times with probability at most delta / 8. If no index is drawn more than m times, the algorithm
    is rho-zCDP. The sum in the proof of Lemma 12 gives the smaller zCDP parameter 9 rho / 14.

    **Requires** that `center` and `radius` are public, or released privately on the same data at a
    separate privacy cost.

    **Departs** (1) T >= n is not required. Lemma 10 holds without T >= n. In general, m is not an
    integer, and 2m + 1 is not rounded. (2) With `project` "first", only phase 1 projects its
    iterates. With `project` "none", no phase projects its iterates. Remark 1 describes these
    variants, but can also be read as projecting to K^(1) in all phases. Privacy holds for all three
    values of `project`. (3) With `ball` "printed", the balls of phases k >= 2 have the radius 2
    sigma^(k) sqrt(d log(4K / delta)) of line 9. The proof of Lemma 13 needs these balls to contain
    xbar^(k-1), whose noise is sigma^(k-1) = 3 sigma^(k). With `ball` "repaired", the radius has
    sigma^(k-1) instead of sigma^(k). Privacy holds for both balls.
    (4) At z = x_i, the gradient is 0, as in footnote 5. (5) `noise_multiplier` is not in the paper.
    `noise_multiplier` multiplies the noise, but not the balls. If `noise_multiplier` is below 1, no
    privacy is guaranteed.

    **Symbols** xbar = `center`, r-hat = `radius`, eta = `step`, T = `n_steps` = 2**K - 1. The
    values T^(k), eta^(k) and sigma^(k) come from `schedule.stable_dpsgd_parameters`.

    Parameters
    ----------
    data : array_like, [n, d]
        Finite values.
    size : int
        Number of independent draws.
    center : array_like, [d]
        Center of the domain.
    radius : float
        Radius of the domain, at least 0.
    rho : float
        Privacy parameter, positive.
    delta : float
        In (0, 1).
    step : float
        Positive step size. Phase k takes steps of ``4**-k * step``.
    n_steps : int
        Number of steps, which is 2**K - 1 for some K >= 1.
    project : {"all", "first", "none"}, default "all"
        Which phases project their iterates.
    ball : {"printed", "repaired"}, default "printed"
        Selects the noise whose size determines the balls of later phases.
    transcript : bool, default False
        Whether to return the outputs of all phases.
    noise_multiplier : float, default 1
        Factor on the noise of all phases, positive.
    max_seconds : float, default 60
        Largest estimated time. Slower runs are refused before they start.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size, d], or [size, K, d] for the transcript
    """
    rng = _validate.generator(rng)
    points = _points.cloud(data)
    n, dimension = points.shape
    plan = stable_dpsgd_schedule(
        n, dimension, radius=radius, rho=rho, delta=delta, step=step, n_steps=n_steps, ball=ball
    )
    starts = _starts("center", center, size, dimension)
    _sgd.refuse_slow(plan, len(starts), max_seconds)
    centers, noise = run_phases(
        points, starts, plan, random_rows(n, rng), plan.n_phases, project, noise_multiplier, rng
    )
    return _released(centers, noise, transcript)


def fixed_order_dpsgd(
    data: ArrayLike,
    size: int,
    *,
    center: ArrayLike,
    radius: float,
    rho: float,
    delta: float,
    step: float,
    n_steps: int,
    order: ArrayLike | None = None,
    accesses: str = "total",
    project: str = "all",
    ball: str = "printed",
    transcript: bool = False,
    noise_multiplier: float = 1.0,
    max_seconds: float = _cost.MAX_SECONDS,
    rng: np.random.Generator,
) -> FloatArray:
    """Run StableDPSGD with the rows in a fixed order instead of a random order.

    The source is geometric_median, Remark 1 (FixedOrderDPSGD in Section 5).

    **Guarantee** The outputs of all phases together are rho-zCDP. The smaller parameter 9 rho / 14
    is also valid. The guarantee uses no delta. The outputs are the only random quantities of a run,
    so only the outputs are private.

    **Requires** that `center`, `radius` and `order` are public. The order may depend on n, on the
    positions of the rows and on coins tossed beforehand. The order must not depend on the values of
    the data. So the guarantee excludes sorted data, and data that was shuffled until some
    computation converged. The guarantee is for neighbours that differ in one row at one position.
    The guarantee holds for every such position.

    **Departs** (1) The paper does not say what happens to the order between phases. In this
    function, the order continues from phase to phase. Step s of the whole run, over all phases,
    visits row ``order[s mod n]``. So each row is visited floor(T / n) or ceil(T / n) times in
    total, as in the remark. (2) With `accesses` "total", m is the remark's ceil(T / n) in all
    phases. Given the outputs of earlier phases, the privacy proof needs only how often a row is
    visited within a phase. With `accesses` "phase", phase k has m_k = ceil(T^(k) / n). This bound
    is sharp for the order of this function. The bound "phase" would also be valid for an order that
    starts again in every phase. If `accesses` is "phase", less noise gives the same guarantee.
    (3) delta appears only in the radii of the balls. (4) Departures (2), (3), (4) and (5) of
    `stable_dpsgd` also apply to this function.

    **Symbols** As for `stable_dpsgd`. The argument `accesses` determines m.

    Parameters
    ----------
    data, size, center, radius, rho, delta, step, n_steps : as in `stable_dpsgd`
    project, ball, transcript, noise_multiplier, max_seconds, rng : as in `stable_dpsgd`
    order : array_like of int, [n], optional
        A permutation of 0 to n - 1. Default: the order of the rows.
    accesses : {"total", "phase"}, default "total"
        Bound on the visits of a row. This bound determines the noise.

    Returns
    -------
    ndarray, [size, d], or [size, K, d] for the transcript
    """
    rng = _validate.generator(rng)
    points = _points.cloud(data)
    n, dimension = points.shape
    plan = fixed_order_schedule(
        n, dimension, radius=radius, rho=rho, delta=delta, step=step, n_steps=n_steps, ball=ball,
        accesses=accesses,
    )  # fmt: skip
    starts = _starts("center", center, size, dimension)
    _sgd.refuse_slow(plan, len(starts), max_seconds)
    rows = fixed_rows(n, order)
    centers, noise = run_phases(
        points, starts, plan, rows, plan.n_phases, project, noise_multiplier, rng
    )
    return _released(centers, noise, transcript)


def stable_dpsgd_centers(
    data: ArrayLike,
    size: int,
    *,
    phase: int,
    center: ArrayLike,
    radius: float,
    rho: float,
    delta: float,
    step: float,
    n_steps: int,
    project: str = "all",
    ball: str = "printed",
    noise_multiplier: float = 1.0,
    max_seconds: float = _cost.MAX_SECONDS,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the value to which StableDPSGD adds the Gaussian noise of one phase, ``[size, d]``.

    The source is geometric_median, Algorithm 4, up to line 15 of phase `phase` (1 to K). This
    function is for audits that integrate out the last noise. The standard deviation of the last
    noise is ``noise_multiplier * parameters.sigmas[phase - 1]``.

    **Guarantee** This value alone has no guarantee. If the last noise is added to this value, the
    sum is the output of phase `phase`, which the transcript contains. So a certified bound for this
    value holds for `stable_dpsgd` too. (The last phase has one step and averages only its start. So
    the center of the last phase is the output of phase K - 1.)

    **Requires**, **Departs**, **Symbols** As for `stable_dpsgd`.
    """
    rng = _validate.generator(rng)
    points = _points.cloud(data)
    n, dimension = points.shape
    plan = stable_dpsgd_schedule(
        n, dimension, radius=radius, rho=rho, delta=delta, step=step, n_steps=n_steps, ball=ball
    )
    starts = _starts("center", center, size, dimension)
    _sgd.refuse_slow(plan, len(starts), max_seconds)
    last = _phase(phase, plan)
    rows = random_rows(n, rng)
    centers, _ = run_phases(points, starts, plan, rows, last, project, noise_multiplier, rng)
    return centers[-1]


def fixed_order_dpsgd_centers(
    data: ArrayLike,
    size: int,
    *,
    phase: int,
    center: ArrayLike,
    radius: float,
    rho: float,
    delta: float,
    step: float,
    n_steps: int,
    order: ArrayLike | None = None,
    accesses: str = "total",
    project: str = "all",
    ball: str = "printed",
    noise_multiplier: float = 1.0,
    max_seconds: float = _cost.MAX_SECONDS,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the value to which FixedOrderDPSGD adds the noise of one phase, ``[size, d]``.

    The function is like `stable_dpsgd_centers`. For phase 1, all rows of the result are the same,
    because this value is a function of the data alone.

    **Guarantee**, **Requires**, **Departs**, **Symbols** As for `stable_dpsgd_centers` and
    `fixed_order_dpsgd`.
    """
    rng = _validate.generator(rng)
    points = _points.cloud(data)
    n, dimension = points.shape
    plan = fixed_order_schedule(
        n, dimension, radius=radius, rho=rho, delta=delta, step=step, n_steps=n_steps, ball=ball,
        accesses=accesses,
    )  # fmt: skip
    starts = _starts("center", center, size, dimension)
    _sgd.refuse_slow(plan, len(starts), max_seconds)
    last = _phase(phase, plan)
    rows = fixed_rows(n, order)
    centers, _ = run_phases(points, starts, plan, rows, last, project, noise_multiplier, rng)
    return centers[-1]


def _released(centers: list[FloatArray], noise: list[FloatArray], transcript: bool) -> FloatArray:
    """Return the output of the last phase (line 19), or the outputs of all phases."""
    if transcript:
        return np.stack([a + b for a, b in zip(centers, noise, strict=True)], axis=1)
    return centers[-1] + noise[-1]


def _starts(name: str, center: ArrayLike, size: int, dimension: int) -> FloatArray:
    middle = _points.point(name, center, dimension)
    return np.broadcast_to(middle, (_validate.draws(size), dimension)).copy()


def _phase(phase: int, plan: Schedule) -> int:
    phase = _validate.integer("phase", phase, at_least=1)
    if phase > plan.n_phases:
        raise ValueError(
            f"phase must be at most {plan.n_phases}, the number of phases of the plan, got {phase}"
        )
    return phase


def _at_least_zero(name: str, value: float) -> float:
    number = _validate.real(name, value)
    if number < 0:
        raise ValueError(f"{name} must be at least 0, got {value!r}")
    return number
