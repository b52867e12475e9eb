"""What the algorithms compute before they look at the data: rounds, batches, steps and noise."""

from __future__ import annotations

from dataclasses import dataclass

from algorithms.common import _validate


@dataclass(frozen=True)
class VarianceReduced:
    """The oracle of Algorithm 4: one Grad, then Diffs, summed up under the noise of a tree.

    Attributes
    ----------
    first_batch : int
        B_1: items of the Grad that opens an epoch.
    batch : int
        B_2: items of each Diff.
    sigma : float
        Standard deviation of the noise of each node of the tree; 0 for none.
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
        """Return how many directions each item is asked in: d."""
        return dimension


@dataclass(frozen=True)
class Naive:
    """The oracle of Algorithm 6: each round an estimate of its own, with noise of its own.

    Attributes
    ----------
    batch : int
        B.
    sigma : float
        Standard deviation of the noise of each round; 0 for none.
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
        """Return how many directions each item is asked in: 1."""
        return 1


@dataclass(frozen=True)
class Plan:
    """Everything public about a run of Algorithm 3.

    Attributes
    ----------
    rounds : int
        T, of an epoch.
    epochs : int
        K.
    radius : float
        delta, of uniform smoothing.
    domain : float
        D: no step of the online learner is longer.
    step : float
        eta, of projected online subgradient descent.
    oracle : VarianceReduced or Naive
    dimension : int or None, default None
        d, for which the noise was made; data of another one are refused.
    lipschitz : float or None, default None
        L, for which the noise was made; losses with a larger one are refused.
    first_step_is_zero : bool, default True
        Whether the learner begins with Delta_1 = 0, which halves s_2; one that does not is refused.
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
        """M: items that are used, the first ones of the data."""
        return self.epochs * sum(self.oracle.batches(self.rounds))

    def evaluations(self, dimension: int) -> int:
        """Return how often a run evaluates the loss: twice for each item and direction."""
        d = _validate.integer("dimension", dimension, at_least=1)
        return 2 * self.oracle.directions(d) * self.n_points
