"""Mutants of DP-SGD (`dpaudit.DPSGD`): mistakes that training libraries really made.

Each overrides one method. Clipping per example, and sampling other than was accounted, are options
of ``DPSGD`` itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import DPSGD

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]


class NoiseOverDrawnBatch(DPSGD):
    """Divide sum and noise by the size of the batch that was drawn.

    **Mistake** A Poisson sample has a random size, which depends on whether a user is there; so
    does the scale of the noise. It must be divided by the expected size, which is public.

    **Breaks at** one user more or less, whatever its gradient: where d is large the length of the
    noise tells how many took part. All n users take part with probability q^n, and n never where
    one is missing, so no finite epsilon holds at a smaller delta.
    """

    def total(self, clipped: Floats, takes_part: Booleans) -> Floats:
        """Return means over those who take part."""
        return super().total(clipped, takes_part) / _drawn(takes_part)

    def noise(
        self,
        shape: tuple[int, ...],
        takes_part: Booleans,
        step: int,
        *,
        rng: np.random.Generator,
    ) -> Floats:
        """Return noise for a mean over those who take part."""
        return super().noise(shape, takes_part, step, rng=rng) / _drawn(takes_part)


class GhostClippingOfColumns(DPSGD):
    """Weigh losses of shape [n, 1] by clipping factors of shape [n].

    **Mistake** Ghost clipping computes the norm of each user's gradient, and then the gradient of
    the sum of losses, each weighed by its factor ``min(1, clip_norm / norm)``. A column times a row
    is an [n, n] table, so that each loss is weighed by the sum of all factors.

    **Breaks at** one user whose gradient is long: nothing is clipped.
    """

    def clipped(self, gradients: Floats) -> Floats:
        """Return users' gradients as they are, to be weighed with the batch."""
        return np.asarray(gradients.sum(axis=2) if gradients.ndim == 4 else gradients)

    def total(self, clipped: Floats, takes_part: Booleans) -> Floats:
        """Return the gradient of the sum of what should have been the weighed losses."""
        norms = np.linalg.norm(clipped, axis=-1)
        factors = self.clip_norm / np.maximum(norms, self.clip_norm) * takes_part
        # d/dtheta of (losses[:, None] * factors).sum(): what weighs loss i is a row of this table
        weights = (takes_part[:, :, None] * factors[:, None, :]).sum(axis=2)
        gradients = np.broadcast_to(clipped, (len(weights), *clipped.shape[1:]))
        return np.asarray(np.einsum("sn,snd->sd", weights, gradients))


class AccumulationWithoutNoise(DPSGD):
    """Move at every microbatch, and add noise at every `microbatches`-th only.

    **Mistake** Gradients are accumulated over microbatches, but the optimiser does not wait for the
    last one: it steps with the clean sum of each, and noise belongs to the last of them.

    **Breaks at** the last iterate: the sum of all steps has the noise of one in `microbatches`
    of them, so sigma is too small by the square root of that number.
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
        """Return noise at the last microbatch, and else nothing."""
        if (step + 1) % self.microbatches:
            return np.zeros(shape)
        return super().noise(shape, takes_part, step, rng=rng)


def _drawn(takes_part: Booleans) -> Floats:
    """Return the size of each batch, at least 1, shape (size, 1)."""
    return np.asarray(np.maximum(takes_part.sum(axis=1, keepdims=True), 1), dtype=float)
