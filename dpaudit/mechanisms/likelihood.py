"""The likelihood ratio of training runs whose one differing user moves each sum by one vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit.mechanisms.sampling import Participation

Array = NDArray[Any]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Side:
    """The differing user in one of two datasets.

    Parameters
    ----------
    gradient : ndarray
        Clipped, shape (d,); zero where the user is missing.
    participation : Participation
        How the user takes part.
    """

    gradient: Floats
    participation: Participation


@dataclass(frozen=True, eq=False)
class LikelihoodRatio:
    """Logarithm of the ratio of densities, left over right, as a score of outputs.

    Parameters
    ----------
    left, right : Side
        The differing user on either side.
    scale : float
        Standard deviation of the noise on each coordinate of a sum, > 0.
    steps : int
        Of a run.
    last : (ndarray, float), optional
        Start and learning rate, where the last iterate is seen instead of all sums.
    """

    left: Side
    right: Side
    scale: float
    steps: int
    last: tuple[Floats, float] | None = None

    @property
    def __name__(self) -> str:
        return "likelihood_ratio"

    def __call__(self, outputs: Array) -> Floats:
        """Return the scores of sums ``[size, steps, d]``, or of last iterates ``[size, d]``."""
        seen = np.asarray(outputs, dtype=float)
        density = self._of_all if self.last is None else self._of_last
        return density(seen, self.left) - density(seen, self.right)

    def _of_all(self, sums: Floats, side: Side) -> Floats:
        """Log-density of all sums over that without the user; of a mixture over where it is in."""
        variance = self.scale**2
        each = (sums @ side.gradient - side.gradient @ side.gradient / 2) / variance
        slots = side.participation.slots
        if not slots:
            rate = side.participation.rate
            with np.errstate(divide="ignore"):
                absent, present = np.log1p(-rate), np.log(rate)
            return np.asarray(np.logaddexp(absent, present + each).sum(axis=1))
        found = np.zeros(len(sums))
        for start in range(0, self.steps, len(slots)):
            epoch = each[:, start : start + len(slots)]
            weights = np.array(slots[: epoch.shape[1]])
            later = max(1.0 - weights.sum(), 0.0) if epoch.shape[1] < len(slots) else 0.0
            padded = np.concatenate([epoch, np.zeros((len(epoch), 1))], axis=1)
            found += special.logsumexp(padded, axis=1, b=np.append(weights, later))
        return found

    def _of_last(self, params: Floats, side: Side) -> Floats:
        """Log-density of the sum of all steps, over that without the user."""
        assert self.last is not None
        start, learning_rate = self.last
        total = (start - params) / learning_rate
        variance = self.steps * self.scale**2
        counts = side.participation.counts(self.steps)
        times = np.flatnonzero(counts)
        along = (total @ side.gradient)[:, None] * times
        away = times**2 * (side.gradient @ side.gradient) / 2
        return np.asarray(special.logsumexp((along - away) / variance, axis=1, b=counts[times]))
