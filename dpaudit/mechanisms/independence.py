"""Whether draws are independent, as far as draws can tell."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit.errors import MechanismError

Array = NDArray[Any]
_FALSE_REFUSAL = 1e-9


class IndependenceCheck:
    """Watches the certifying calls of one side for draws that are not independent.

    Two faults would make counts lie: calls that repeat each other, and noise that is shared by the
    draws of one call, which shows as events whose rates differ between calls.

    Notes
    -----
    With K calls of n_k draws, the statistic ``sum n_k KL(share_k, pooled share)`` is at most the
    same with the true rate, and Chernoff's bound gives ``P(n_k KL(share_k, rate) >= t) <= 2
    exp(-t)`` for independent draws. So it is at most ``K log 2`` plus a Gamma(K) variable in distribution,
    and an honest mechanism is refused with probability at most 1e-9, over all events together.
    Weak dependence may pass: that draws are independent stays the promise of the mechanism.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._hits: list[list[int]] = []
        self._draws: list[int] = []
        self._first: Array | None = None
        self._copies = True

    def add(self, outputs: Array, hits: list[int]) -> None:
        """Note one call: its draws, and how many of them lay in each event."""
        self._hits.append(hits)
        self._draws.append(len(outputs))
        if self._first is None:
            self._first = outputs.copy()
        elif self._copies and len(outputs) == len(self._first):
            self._copies = same_draws(outputs, self._first)

    def judge(self) -> None:
        """Raise :class:`MechanismError` when the calls cannot be independent."""
        calls = len(self._hits)
        if self._first is None or calls < 4:
            return
        if self._copies and not is_constant(self._first):
            raise MechanismError(
                f"{self._name} ignores rng: all {calls} calls with different generators gave the "
                "same draws; draw from rng only"
            )
        draws = np.array(self._draws, dtype=float)
        shares = np.array(self._hits, dtype=float).T / draws  # [events, calls]
        for share in shares:
            rate = float(share @ draws / draws.sum())
            if not 0 < rate < 1:
                continue
            information = special.xlogy(share, share / rate)
            information += special.xlogy(1 - share, (1 - share) / (1 - rate))
            probability = _FALSE_REFUSAL / len(shares)
            allowed = calls * math.log(2) + special.gammainccinv(calls, probability)
            if float(draws @ information) <= allowed:
                continue
            raise MechanismError(
                f"{self._name} shares its noise: the draws of one call are not independent (the "
                f"same event fired in {share.min():.2g} to {share.max():.2g} of the draws of a "
                "call). Draw noise of shape [size, ...]"
            )


def same_draws(a: Array, b: Array) -> bool:
    """Equality in which NaN equals NaN, for records too."""
    if a.dtype.names:
        return all(same_draws(a[name], b[name]) for name in a.dtype.names)
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


def is_constant(draws: Array) -> bool:
    """Whether all draws are the same one."""
    return same_draws(draws, np.broadcast_to(draws[:1], draws.shape))
