"""Which users take part in which step of a training run, and how probable that is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.errors import ArgumentError, MechanismError

Floats = NDArray[np.float64]

SAMPLINGS = ("poisson", "fixed", "shuffle", "balls_in_bins")


@dataclass(frozen=True)
class Participation:
    """How one user takes part.

    Parameters
    ----------
    rate : float
        Probability in each step, independent of other steps; where `slots` is empty.
    slots : tuple of float
        Probabilities of the steps of an epoch, in exactly one of which the user takes part; a last
        epoch may end early.
    """

    rate: float
    slots: tuple[float, ...] = ()

    def counts(self, steps: int) -> Floats:
        """Return the probability of each number of participations in all, shape (steps + 1,)."""
        epochs, rest = divmod(steps, len(self.slots)) if self.slots else (0, 0)
        each = [sum(self.slots[:rest])] if self.slots else [self.rate] * steps
        counts = np.ones(1)
        for rate in each:
            counts = np.convolve(counts, [1 - rate, rate])
        counts = np.concatenate([np.zeros(epochs), counts])
        return np.concatenate([counts, np.zeros(steps + 1 - len(counts))])


@dataclass(frozen=True)
class Sampling:
    """How the users of each step are chosen.

    Parameters
    ----------
    kind : {"poisson", "fixed", "shuffle", "balls_in_bins"}
        Each user by a coin of its own in each step; `batch_size` users without replacement, anew in
        each step; all users in a random order, `batch_size` after `batch_size`, anew in each epoch;
        or each user in one of ``1 / q`` steps of an epoch, independently (Chua et al. 2024,
        "Balls-and-Bins Sampling for DP-SGD").
    steps : int
        In all.
    q : float, optional
        Of "poisson" and "balls_in_bins", in (0, 1].
    batch_size : int, optional
        Of "fixed" and "shuffle", at least 1.
    """

    kind: str
    steps: int
    q: float | None = None
    batch_size: int | None = None

    def __post_init__(self) -> None:
        wanted, other = ("q", "batch_size")
        if self.kind in ("fixed", "shuffle"):
            wanted, other = other, wanted
        if getattr(self, wanted) is None or getattr(self, other) is not None:
            raise ArgumentError(
                f"{wanted} must be given for {self.kind} sampling, and {other} must not; got "
                f"q={self.q!r} and batch_size={self.batch_size!r}"
            )
        if wanted == "batch_size":
            _validate.integer(1, batch_size=self.batch_size)
            return
        q = _validate.positive(q=self.q)
        if q > 1 or (self.kind == "balls_in_bins" and abs(1 / q - round(1 / q)) > 1e-9):
            allowed = "one in a whole number" if self.kind == "balls_in_bins" else "in (0, 1]"
            raise ArgumentError(f"q must be {allowed}, got {self.q!r}")

    def __str__(self) -> str:
        one = f"q={self.q:g}" if self.q is not None else f"batch_size={self.batch_size}"
        return f"{self.kind} {one}"

    def batches(
        self, n_users: int, size: int, *, rng: np.random.Generator
    ) -> Iterator[NDArray[np.bool_]]:
        """Yield, for each step, who takes part in each of `size` runs, ``[size, n_users]``."""
        q, batch = self.q or 0.0, self.batch_size or 0
        if self.kind == "fixed" and n_users < batch:
            raise MechanismError(
                f"batch_size must be at most the number of users, {n_users}, got {batch}"
            )
        slot = np.zeros((size, n_users), dtype=np.int64)
        for step in range(self.steps):
            if self.kind == "poisson":
                yield rng.random((size, n_users)) < q
                continue
            if self.kind == "fixed":
                yield _ranks(size, n_users, rng) < batch
                continue
            epoch = self._epoch(n_users)
            if step % epoch == 0 and self.kind == "shuffle":
                slot = _ranks(size, n_users, rng) // batch
            elif step % epoch == 0:
                slot = rng.integers(0, epoch, size=(size, n_users))
            yield slot == step % epoch

    def participation(self, n_users: int) -> Participation:
        """Return how one of so many users takes part."""
        if self.kind == "poisson":
            return Participation(self.q or 0.0)
        if self.kind == "fixed":
            return Participation(min((self.batch_size or 0) / max(n_users, 1), 1.0))
        epoch, batch = self._epoch(n_users), self.batch_size or 0
        if self.kind == "balls_in_bins":
            return Participation(0.0, (1 / epoch,) * epoch)
        sizes = [min(batch, n_users - step * batch) for step in range(epoch)]
        return Participation(0.0, tuple(one / max(n_users, 1) for one in sizes))

    def _epoch(self, n_users: int) -> int:
        """Return the steps of an epoch."""
        if self.kind == "balls_in_bins":
            return round(1 / (self.q or 1.0))
        return max(math.ceil(n_users / (self.batch_size or 1)), 1)


def _ranks(size: int, n_users: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return random orders of the users, shape (size, n_users)."""
    return np.asarray(rng.random((size, n_users)).argsort(axis=1), dtype=np.int64)
