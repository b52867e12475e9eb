"""Parameters that are fixed before the algorithms use the data: phases, filter, test and noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from algorithms.common import _validate

STATISTICS = ("median", "trimmed_mean")


class PlanWarning(UserWarning):
    """A plan that a function returns although a part of the algorithm or of a proof cannot work.

    Use ``warnings.simplefilter("error", PlanWarning)`` to refuse such plans.
    """


@dataclass(frozen=True)
class Phase:
    """One phase of a localisation.

    Attributes
    ----------
    n_users : int
        Number n_s of users that the phase takes from the data, rounded down to whole batches.
    n_steps : int
        Number of steps T.
    step : float
        Step size eta_s.
    sigma : float
        Standard deviation of the noise on the average iterate.
    """

    n_users: int
    n_steps: int
    step: float
    sigma: float

    def __post_init__(self) -> None:
        _validate.integer("n_users", self.n_users, at_least=1)
        _validate.integer("n_steps", self.n_steps, at_least=1)
        _validate.positive("step", self.step)
        _validate.positive("sigma", self.sigma)


@dataclass(frozen=True)
class Filter:
    """The sparse-vector filter of Algorithm 2 (v2).

    Attributes
    ----------
    temperature : float
        Temperature tau of the concentration scores.
    threshold : float
        F. A user is kept if the noisy score exceeds F.
    scale : float
        Scale of the Laplace noise on a score, which is 2 sigma for a cutoff without noise.
    cutoff : float
        c, the number of users that may be filtered, before noise is added.
    cutoff_scale : float
        Scale of the Laplace noise on the cutoff.
    scale_follows_cutoff : bool, default False
        Whether the noise on the scores is multiplied by sqrt(c_hat / c), as the paper prints.
    samples : int or None, default None
        Number of users from which a score is estimated. By default, all users are used.
    """

    temperature: float
    threshold: float
    scale: float
    cutoff: float
    cutoff_scale: float
    scale_follows_cutoff: bool = False
    samples: int | None = None

    def __post_init__(self) -> None:
        for name in ("temperature", "threshold", "scale", "cutoff", "cutoff_scale"):
            _validate.positive(name, getattr(self, name))
        if self.samples is not None:
            _validate.integer("samples", self.samples, at_least=1)


@dataclass(frozen=True)
class Test:
    """The robust estimate and the concentration test of Algorithms 6 to 8 (v2; 1 to 3 of v1).

    Attributes
    ----------
    temperature : float
        Temperature tau of the concentration score.
    threshold : float
        v. A batch passes the test if the noisy score is at or above the noisy v.
    epsilon : float
        Parameter of AboveThreshold.
    sensitivity : float
        Sensitivity of the score for which AboveThreshold's noise is scaled.
    clip : float
        Clipping distance varsigma. In each coordinate, the mean is moved to within this distance of
        the robust statistic.
    statistic : {"median", "trimmed_mean"}
        Robust statistic in each coordinate.
    trim : int
        Number of values that the trimmed mean ignores at either end.
    per_step : bool, default False
        Whether every step has its own AboveThreshold. The line "Return AboveThreshold(...)" inside
        the loop of Algorithm 8 can be read as one AboveThreshold per step. In this reading, all T
        AboveThresholds contribute to the privacy loss.
    """

    temperature: float
    threshold: float
    epsilon: float
    sensitivity: float
    clip: float
    statistic: str = "median"
    trim: int = 0
    per_step: bool = False

    __test__ = False  # tells pytest that this is not a test class

    def __post_init__(self) -> None:
        for name in ("temperature", "threshold", "epsilon", "sensitivity"):
            _validate.positive(name, getattr(self, name))
        _validate.nonnegative("clip", self.clip)
        if self.statistic not in STATISTICS:
            raise ValueError(
                f"statistic must be one of {', '.join(STATISTICS)}, got {self.statistic!r}"
            )
        _validate.integer("trim", self.trim, at_least=0)


@dataclass(frozen=True)
class Plan:
    """All public parameters of a run.

    Attributes
    ----------
    batch_size : int
        The batch size B.
    phases : tuple of Phase
        The phases in order. Each phase takes its users where the previous phase stopped.
    rule : Filter or Test
        The rule that turns a batch of users into a gradient.
    lipschitz, smoothness : float
        G and beta of the losses for which the plan was made. The norm is Euclidean for a Filter,
        and l-infinity for a Test.
    epsilon, delta : float
        Guarantee that is claimed or derived.
    dimension : int or None, default None
        The dimension d for which the noise was chosen, or None if the noise does not depend on d.
        Data of another dimension are refused.
    warnings : tuple of str, default ()
        Messages of the `PlanWarning` that apply to the parameters, from the function that made the
        plan.
    """

    batch_size: int
    phases: tuple[Phase, ...]
    rule: Filter | Test
    lipschitz: float
    smoothness: float
    epsilon: float
    delta: float
    dimension: int | None = None
    warnings: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.rule, Filter | Test):
            raise TypeError(f"rule must be a Filter or a Test, got {self.rule!r}")
        _validate.positive("epsilon", self.epsilon)
        _validate.probability("delta", self.delta)
        if self.dimension is not None:
            _validate.integer("dimension", self.dimension, at_least=1)
        batch = _validate.integer("batch_size", self.batch_size, at_least=2)
        if not self.phases:
            raise ValueError("phases must hold at least one phase, got none")
        for phase in self.phases:
            if phase.n_users != phase.n_steps * batch:
                raise ValueError(
                    f"each phase must have n_steps * {batch} users, got {phase.n_users} users for "
                    f"{phase.n_steps} steps"
                )
        if isinstance(self.rule, Filter) and self.rule.samples and batch % self.rule.samples:
            raise ValueError(f"samples must divide batch_size = {batch}, got {self.rule.samples}")
        if isinstance(self.rule, Test) and 2 * self.rule.trim >= batch:
            raise ValueError(
                f"trim must be below batch_size / 2, got trim = {self.rule.trim} for "
                f"batch_size = {batch}"
            )
        _validate.positive("lipschitz", self.lipschitz)
        _validate.nonnegative("smoothness", self.smoothness)

    @property
    def n_users(self) -> int:
        """Number of users that the plan uses, which are the first users of the data."""
        return sum(phase.n_users for phase in self.phases)

    @property
    def least_score(self) -> float:
        """The smallest concentration score of a user that `lipschitz` allows.

        Mean gradients are at most 2 G apart. So a score is at least 1 + (B - 1) exp(-2 G tau).
        """
        apart = 2 * self.lipschitz * self.rule.temperature
        return 1 + (self.batch_size - 1) * math.exp(-apart)

    @property
    def steps_are_stable(self) -> bool:
        """Whether every step size is at most 2 / beta."""
        return max(phase.step for phase in self.phases) * self.smoothness <= 2


def halving_phases(
    n_users: int, batch_size: int, n_phases: int, *, steps: list[float], sigmas: list[float]
) -> tuple[Phase, ...]:
    """Return phases of n / 2, n / 4, ... users, each rounded down to whole batches.

    The first phase with fewer users than a batch is omitted, and so are all later phases.
    """
    phases = []
    for s in range(1, n_phases + 1):
        n_steps = n_users // 2**s // batch_size
        if n_steps < 1:
            break
        phases.append(Phase(n_steps * batch_size, n_steps, steps[s - 1], sigmas[s - 1]))
    if not phases:
        raise ValueError(
            f"n_users must be at least 2 * batch_size = {2 * batch_size}, got {n_users}"
        )
    return tuple(phases)


def natural_log(name: str, value: float) -> float:
    """Return the logarithm of a number, or 1 if the logarithm is below 1.

    Error messages contain `name`.
    """
    if not value > 0 or not math.isfinite(value):
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    return max(1.0, math.log(value))
