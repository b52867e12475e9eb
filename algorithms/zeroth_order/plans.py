"""Parameters that are fixed before the algorithms use the data: rounds, batches, steps, noise."""

from __future__ import annotations

from dataclasses import dataclass

from algorithms.common import _validate


@dataclass(frozen=True)
class VarianceReduced:
    """Oracle of Algorithm 4, which sums one Grad and several Diffs with the noise of a tree.

    Attributes
    ----------
    first_batch : int
        B_1, the number of items of the Grad that begins an epoch.
    batch : int
        B_2, the number of items of each Diff.
    sigma : float
        Standard deviation of the noise of each node of the tree. The value 0 means no noise.
    """

    first_batch: int
    batch: int
    sigma: float

    def __post_init__(self) -> None:
        _validate.keep(
            self, first_batch=_validate.integer("first_batch", self.first_batch, at_least=1)
        )
        _validate.keep(self, batch=_validate.integer("batch", self.batch, at_least=1))
        _validate.keep(self, sigma=_validate.nonnegative("sigma", self.sigma))

    def batches(self, rounds: int) -> list[int]:
        """Return the number of items of each of `rounds` rounds."""
        return [self.first_batch, *[self.batch] * (rounds - 1)]

    def directions(self, dimension: int) -> int:
        """Return the number of directions for each item, which is d."""
        return dimension


@dataclass(frozen=True)
class Naive:
    """Oracle of Algorithm 6, where each round has its own estimate and its own noise.

    Attributes
    ----------
    batch : int
        Batch size B.
    sigma : float
        Standard deviation of the noise of each round. The value 0 means no noise.
    """

    batch: int
    sigma: float

    def __post_init__(self) -> None:
        _validate.keep(self, batch=_validate.integer("batch", self.batch, at_least=1))
        _validate.keep(self, sigma=_validate.nonnegative("sigma", self.sigma))

    def batches(self, rounds: int) -> list[int]:
        """Return the number of items of each of `rounds` rounds."""
        return [self.batch] * rounds

    def directions(self, dimension: int) -> int:
        """Return the number of directions for each item, which is 1."""
        return 1


@dataclass(frozen=True)
class Plan:
    """All public parameters of a run of Algorithm 3.

    Attributes
    ----------
    rounds : int
        T, the number of rounds of an epoch.
    epochs : int
        Number of epochs K.
    radius : float
        delta, the radius of uniform smoothing.
    domain : float
        D, the largest length of a step of the online learner.
    step : float
        eta, the step size of projected online subgradient descent.
    oracle : VarianceReduced or Naive
    dimension : int or None, default None
        Dimension d for which the noise was chosen. Data of another dimension are refused.
    lipschitz : float or None, default None
        Lipschitz constant L for which the noise was chosen. Losses with a larger constant are
        refused.
    first_step_is_zero : bool, default True
        Whether the learner begins with Delta_1 = 0, which halves s_2. If True, other learners are
        refused.
    """

    rounds: int
    epochs: int
    radius: float
    domain: float
    step: float
    oracle: VarianceReduced | Naive
    dimension: int | None = None
    lipschitz: float | None = None
    first_step_is_zero: bool = True

    def __post_init__(self) -> None:
        for name in ("rounds", "epochs"):
            _validate.keep(self, **{name: _validate.integer(name, getattr(self, name), at_least=1)})
        for name in ("radius", "domain", "step"):
            _validate.keep(self, **{name: _validate.positive(name, getattr(self, name))})
        if not isinstance(self.oracle, VarianceReduced | Naive):
            raise TypeError(f"oracle must be a VarianceReduced or a Naive, got {self.oracle!r}")
        if self.dimension is not None:
            _validate.keep(
                self, dimension=_validate.integer("dimension", self.dimension, at_least=1)
            )
        if self.lipschitz is not None:
            _validate.keep(self, lipschitz=_validate.positive("lipschitz", self.lipschitz))

    @property
    def n_points(self) -> int:
        """M, the number of used items, which are the first items of the data."""
        return self.epochs * sum(self.oracle.batches(self.rounds))

    def evaluations(self, dimension: int) -> int:
        """Return the number of evaluations of the loss in a run.

        Each pair of an item and a direction needs two evaluations.
        """
        d = _validate.integer("dimension", dimension, at_least=1)
        return 2 * self.oracle.directions(d) * self.n_points
