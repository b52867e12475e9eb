"""What a joint bound is aimed at."""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit import _validate
from dpaudit.errors import ArgumentError


@dataclass(frozen=True)
class Target:
    """Where a joint bound is sharpest: an epsilon at a given delta, or a delta at an epsilon.

    Exactly one of the two is given. The region holds for every epsilon and delta whatever the
    target, which must be settled before the counts are known.

    Examples
    --------
    >>> Target(delta=1e-6)
    Target(epsilon=None, delta=1e-06)
    """

    epsilon: float | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.delta is None):
            raise ArgumentError(
                f"a target needs epsilon or delta, got epsilon={self.epsilon!r} and "
                f"delta={self.delta!r}"
            )
        if self.epsilon is not None:
            _validate.nonnegative(epsilon=self.epsilon)
        if self.delta is not None:
            _validate.delta(delta=self.delta)
