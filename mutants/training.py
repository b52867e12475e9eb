"""Mutants of DP-SGD (`dpaudit.DPSGD`) with mistakes that training libraries have made.

Each mutant overrides one or more methods. Clipping per example, and sampling that differs from the
account, are options of ``DPSGD`` itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import DPSGD

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]


class NoiseOverDrawnBatch(DPSGD):
    """Divide the sum and the noise by the size of the drawn batch.

    **Mistake** A Poisson sample has a random size, which depends on whether a user is present. The
    scale of the noise therefore depends on the presence of a user too. The sum must be divided by
    the expected size, which is public.

    **Breaks at** adding or removing one user, with any gradient. If d is large, the length of the
    noise reveals how many users took part. All n users take part with probability q^n. If one user
    is missing, this event has probability 0. Therefore, no finite epsilon holds at a delta smaller
    than q^n.
    """

    def total(self, clipped: Floats, takes_part: Booleans) -> Floats:
        """Return the means over the users who take part."""
        return super().total(clipped, takes_part) / _drawn(takes_part)

    def noise(
        self,
        shape: tuple[int, ...],
        takes_part: Booleans,
        step: int,
        *,
        rng: np.random.Generator,
    ) -> Floats:
        """Return noise for a mean over the users who take part."""
        return super().noise(shape, takes_part, step, rng=rng) / _drawn(takes_part)


class GhostClippingOfColumns(DPSGD):
    """Weight losses of shape [n, 1] by clipping factors of shape [n].

    **Mistake** Ghost clipping computes the norm of each user's gradient. After that, ghost clipping
    computes the gradient of the sum of losses. Each loss is weighted by its factor ``min(1,
    clip_norm / norm)``. A column times a row is an [n, n] table, so each loss is weighted by the
    sum of all factors.

    **Breaks at** one user whose gradient is long, because nothing is clipped.
    """

    def clipped(self, gradients: Floats) -> Floats:
        """Return users' gradients unchanged, because `total` weights them with the batch."""
        return np.asarray(gradients.sum(axis=2) if gradients.ndim == 4 else gradients)

    def total(self, clipped: Floats, takes_part: Booleans) -> Floats:
        """Return the gradient of the sum of the losses, weighted by the table of shape [n, n]."""
        norms = np.linalg.norm(clipped, axis=-1)
        factors = self.clip_norm / np.maximum(norms, self.clip_norm) * takes_part
        # In the gradient of (losses[:, None] * factors).sum(), the weight of loss i is the sum over
        # a row of this table.
        weights = (takes_part[:, :, None] * factors[:, None, :]).sum(axis=2)
        gradients = np.broadcast_to(clipped, (len(weights), *clipped.shape[1:]))
        return np.asarray(np.einsum("sn,snd->sd", weights, gradients))


class AccumulationWithoutNoise(DPSGD):
    """Move at every microbatch, but add noise only at every `microbatches`-th microbatch.

    **Mistake** Gradients are accumulated over microbatches, but the optimiser does not wait for the
    last microbatch. The optimiser steps with the clean sum of each microbatch, and adds noise only
    at the last microbatch.

    **Breaks at** the last iterate. The sum of all steps has the noise of only one in `microbatches`
    steps. Therefore, sigma is too small by the square root of `microbatches`.
    """

    def __init__(self, *args: Any, microbatches: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self.microbatches = microbatches

    def noise(
        self,
        shape: tuple[int, ...],
        takes_part: Booleans,
        step: int,
        *,
        rng: np.random.Generator,
    ) -> Floats:
        """Return noise at the last microbatch, and zeros otherwise."""
        if (step + 1) % self.microbatches:
            return np.zeros(shape)
        return super().noise(shape, takes_part, step, rng=rng)


def _drawn(takes_part: Booleans) -> Floats:
    """Return the size of each batch, at least 1, with shape (size, 1)."""
    return np.asarray(np.maximum(takes_part.sum(axis=1, keepdims=True), 1), dtype=float)
