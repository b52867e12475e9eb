"""Sampling of the users of each training step, and the probability that a user takes part."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit import _validate
from dpaudit.errors import ArgumentError, MechanismError

Floats = NDArray[np.float64]

SAMPLINGS = ("poisson", "fixed", "shuffle", "balls_in_bins")


@dataclass(frozen=True)
class Participation:
    """The participation of one user in the steps.

    Parameters
    ----------
    rate : float
        Probability of participation in each step, independently of other steps. This probability is
        used only if `slots` is empty.
    slots : tuple of float
        Probability of participation in each step of an epoch. The user takes part in exactly one
        step of an epoch. The last epoch may be incomplete.
    """

    rate: float
    slots: tuple[float, ...] = ()

    def rates(self, steps: int) -> list[float]:
        """Return the probability of participation in each step."""
        if not self.slots:
            return [self.rate] * steps
        return [self.slots[step % len(self.slots)] for step in range(steps)]

    def log_ratio(self, each: Floats) -> Floats:
        """Return the log-density ratio of whole runs, with the user to without, ``[size]``.

        Parameters
        ----------
        each : ndarray
            The log-density ratio of each step, if the user takes part in it, ``[size, steps]``.
        """
        if not self.slots:
            with np.errstate(divide="ignore"):
                absent, present = np.log1p(-self.rate), np.log(self.rate)
            return np.asarray(np.logaddexp(absent, present + each).sum(axis=1))
        total = np.zeros(len(each))
        for start in range(0, each.shape[1], len(self.slots)):
            epoch = each[:, start : start + len(self.slots)]
            weights = np.array(self.slots[: epoch.shape[1]])
            whole = epoch.shape[1] == len(self.slots)
            later = 0.0 if whole else max(1.0 - weights.sum(), 0.0)
            padded = np.concatenate([epoch, np.zeros((len(epoch), 1))], axis=1)
            total += special.logsumexp(padded, axis=1, b=np.append(weights, later))
        return total

    def counts(self, steps: int) -> Floats:
        """Return the probability of each total number of participations, shape (steps + 1,)."""
        epochs, rest = divmod(steps, len(self.slots)) if self.slots else (0, 0)
        each = [sum(self.slots[:rest])] if self.slots else [self.rate] * steps
        counts = np.ones(1)
        for rate in each:
            counts = np.convolve(counts, [1 - rate, rate])
        counts = np.concatenate([np.zeros(epochs), counts])
        return np.concatenate([counts, np.zeros(steps + 1 - len(counts))])


@dataclass(frozen=True)
class Sampling:
    """The choice of the users that take part in each step.

    Parameters
    ----------
    kind : {"poisson", "fixed", "shuffle", "balls_in_bins"}
        With "poisson", a separate coin flip decides for each user in each step. With "fixed",
        `batch_size` users are drawn without replacement, independently in each step. With
        "shuffle", each epoch puts all users in a new random order. Each step takes the next
        `batch_size` users. With "balls_in_bins", each user is in one of the ``1 / q`` steps of an
        epoch, independently of other users (Chua et al. 2024, "Balls-and-Bins Sampling for
        DP-SGD").
    steps : int
        Total number of steps.
    q : float, optional
        Sampling probability in (0, 1], for "poisson" and "balls_in_bins".
    batch_size : int, optional
        Number of users in a batch, at least 1, for "fixed" and "shuffle".
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
                f"{wanted} must be given for {self.kind} sampling, and {other} must not be "
                f"given, got q={self.q!r} and batch_size={self.batch_size!r}"
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
        """For each step, yield an array ``[size, n_users]``: who takes part in each run."""
        q, batch = self.q or 0.0, self.batch_size or 0
        if self.kind == "fixed" and n_users < batch:
            raise MechanismError(
                f"batch_size must be at most {n_users}, the number of users, got {batch}"
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
        """Return the participation of one user for a given number of users."""
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
        """Return the number of steps of an epoch."""
        if self.kind == "balls_in_bins":
            return round(1 / (self.q or 1.0))
        return max(math.ceil(n_users / (self.batch_size or 1)), 1)


def _ranks(size: int, n_users: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return random orders of the users, shape (size, n_users)."""
    return np.asarray(rng.random((size, n_users)).argsort(axis=1), dtype=np.int64)
