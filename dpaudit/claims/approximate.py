"""Concentrated differential privacy but for events of small probability."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from dpaudit import _validate
from dpaudit.claims.notions import ZeroConcentratedDP, _Claim
from dpaudit.claims.relations import Relation


@dataclass(frozen=True, init=False)
class ApproxZCDP(_Claim):
    """delta-approximate rho-zero-concentrated differential privacy.

    On either of two neighbours there is an event of probability at least ``1 - delta``, and given
    these events the Renyi divergence of every order alpha > 1 is at most ``rho * alpha``, in both
    directions (Bun and Steinke 2016, Definition 8.1).

    Parameters
    ----------
    rho : float
        Finite, > 0.
    delta : float
        In [0, 1]: what may lie outside the events.
    relation, source
        As in :class:`ApproxDP`.

    Notes
    -----
    ``delta(e) = d + (1 - d) z(e)`` where z is the curve of rho-zCDP (lossless, see
    :mod:`dpaudit.claims._renyi`). No more is possible: outside the events, with probability at most
    d, any output tells all. No less is implied: a mechanism that does so with probability d, and
    else attains z at e, keeps the claim.

    Examples
    --------
    >>> claim = ApproxZCDP(rho=0.5, delta=1e-6)
    >>> exact = ZeroConcentratedDP(rho=0.5)
    >>> claim.epsilon(1e-5) > exact.epsilon(1e-5)
    True
    >>> claim.epsilon(1e-7)
    inf
    """

    notion: ClassVar[str] = "approx_zcdp"
    rho: float
    claimed_delta: float

    def __init__(
        self, rho: float, delta: float, relation: Relation | None = None, source: str = ""
    ) -> None:
        rho, delta = _validate.positive(rho=rho), _validate.delta(delta=delta)
        self._set(relation, source, rho=rho, claimed_delta=delta)

    @property
    def point(self) -> None:
        """None: the claim is a curve."""
        return

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta that the claim implies at `epsilon`."""
        inside = ZeroConcentratedDP(self.rho).delta(epsilon)
        return self.claimed_delta + (1 - self.claimed_delta) * inside

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon that the claim implies at `delta`."""
        delta = _validate.delta(delta=delta)
        if delta < self.claimed_delta:
            return math.inf
        if self.claimed_delta == 1.0:
            return 0.0
        spare = (delta - self.claimed_delta) / (1 - self.claimed_delta)
        return ZeroConcentratedDP(self.rho).epsilon(spare)

    def to_json(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return {"rho": self.rho, "delta": self.claimed_delta}

    def __str__(self) -> str:
        return f"{self.claimed_delta:g}-approximate {self.rho:g}-zCDP"
