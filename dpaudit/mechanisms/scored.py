"""A mechanism followed by a fixed score of its outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import MechanismError
from dpaudit.mechanisms.protocols import is_seeded, mechanism_name

Array = NDArray[Any]

_LOOKED_AT = 64
"""Calls of at most so many draws, those that probe the contract among them, are scored twice."""


class Scored:
    """``score(mechanism(data, size, rng=rng))``: post-processing, so as private as the mechanism.

    Parameters
    ----------
    mechanism : callable
        ``f(data, size, *, rng) -> [size, ...]``.
    score : callable
        ``score(outputs) -> [size]``: one number for each draw, from that draw alone.
    """

    def __init__(self, mechanism: Callable[..., Any], score: Callable[[Any], Any]) -> None:
        self.mechanism, self.score = mechanism, score
        self.__name__ = f"{mechanism_name(mechanism)}, scored by {mechanism_name(score)}"
        self.dpaudit_unseeded = not is_seeded(mechanism)

    def of(self, mechanism: Callable[..., Any]) -> Scored:
        """Return another mechanism with the same score."""
        return Scored(mechanism, self.score)

    @property
    def changed(self) -> Any:
        """How often a mutant changed anything, where the mechanism is one that knows."""
        return getattr(self.mechanism, "changed", 1)

    def __call__(self, data: Array, size: int, *, rng: np.random.Generator) -> Array:
        """Return the scores of `size` draws, shape (size,).

        Raises
        ------
        MechanismError
            When the score is not one number for each draw, or depends on other draws.
        """
        outputs = self.mechanism(data, size, rng=rng)
        scores = self._scores(outputs, size)
        if 2 <= size <= _LOOKED_AT:
            half = size // 2
            alone = self._scores(outputs[:half], half)
            if not np.allclose(alone, scores[:half], rtol=1e-6, atol=1e-9, equal_nan=True):
                raise MechanismError(
                    f"score {mechanism_name(self.score)} must judge each draw by itself and always "
                    "alike, but gave the same draws other scores beside fewer others"
                )
        return scores

    def _scores(self, outputs: Any, size: int) -> Array:
        scores = np.asarray(self.score(outputs))
        if scores.shape != (size,) or scores.dtype.kind not in "biuf":
            raise MechanismError(
                f"score {mechanism_name(self.score)} must return one number for each of {size} "
                f"draws, got {scores.dtype} of shape {scores.shape}"
            )
        return scores
