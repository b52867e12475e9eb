"""Lossless conversion of Renyi-type claims into (epsilon, delta).

By data processing, a mechanism that keeps a bound on Renyi divergences and has an event with
probabilities p and q on neighbouring inputs exists exactly when the two-point distributions with
probabilities p and q keep the bound themselves (Asoodeh, Liao, Calmon, Kosut and Sankar 2021,
"Three variants of differential privacy: lossless conversion and applications"). So
``delta(epsilon)`` is the maximum of ``p - e^epsilon q`` over a convex region of the plane, and
``epsilon(delta)`` that of ``log((p - delta) / q)``. This is sharper than the textbook conversions
and than Canonne, Kamath and Steinke (2020), Proposition 12.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit import _validate

Floats = NDArray[np.float64]


class RenyiConversions:
    """Lossless (epsilon, delta) of constraints "Renyi divergence of order alpha <= budget"."""

    def renyi_orders(self, focus: Floats | None, spread: float) -> Floats:
        """Orders to impose at each of v points of the boundary, shape (a, 1) or (a, v).

        `focus` holds orders found to bind, shape (f, v), None at first; return orders that are
        dense within a factor `spread` of them, or the same orders always.
        """
        raise NotImplementedError

    def renyi_budget(self, orders: Floats) -> Floats:
        """Largest Renyi divergence that the claim allows at each order."""
        raise NotImplementedError

    def _edge(self, logit_q: Floats, focus: Floats | None, spread: float) -> _Edge:
        orders = self.renyi_orders(focus, spread)
        logit_p, binding = _largest_p(logit_q, orders, self.renyi_budget(orders))
        return _Edge(logit_q, logit_p, binding)

    def _maximise(self, value: Callable[[Floats, Floats], Floats]) -> float:
        """Maximise ``value(logit_p, logit_q)`` over the event rates that the claim allows.

        Along the boundary, p as a function of q is concave, and the functions that we maximise
        have one hump, so zooming into the best cells of a grid finds the top, be it smooth or the
        kink where two orders cross. Leaving an order out only weakens the claim, so a missed one
        errs on the side that the claim can defend.
        """
        edge = _whole_boundary(self)
        for spread in (1.1, 1.05, 1.02, 1.01, 1.005, 1.002, 1.001):
            values = value(edge.logit_p, edge.logit_q)
            # Near delta = 1 the top is flat up to rounding and ends at a cliff: stay in its middle.
            tops = np.flatnonzero(values >= values.max() - 1e-15 * abs(values.max()))
            top = int(tops[len(tops) // 2])
            low = edge.logit_q[max(top - 2, 0)]
            high = edge.logit_q[min(top + 2, len(edge.logit_q) - 1)]
            grid = np.linspace(low, high, 61)
            edge = self._edge(grid, edge.orders_at(grid), spread)
        return float(value(edge.logit_p, edge.logit_q).max())

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta that the claim implies at `epsilon`."""
        epsilon = _validate.nonnegative(epsilon=epsilon)

        def excess(logit_p: Floats, logit_q: Floats) -> Floats:
            scaled_q = np.exp(np.minimum(special.log_expit(logit_q) + epsilon, 700.0))
            return np.asarray(special.expit(logit_p) - scaled_q)

        return min(max(self._maximise(excess), 0.0), 1.0)

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon that the claim implies at `delta`."""
        delta = _validate.delta(delta=delta)
        if delta == 0.0:
            return math.inf
        if delta == 1.0:
            return 0.0
        log_delta = math.log(delta)

        def loss(logit_p: Floats, logit_q: Floats) -> Floats:
            # log((p - delta) / q), and -inf where p does not reach delta
            log_p = special.log_expit(logit_p)
            log_spare = np.full(log_p.shape, -np.inf)
            use = log_p > log_delta
            log_spare[use] = log_p[use] + np.log(-np.expm1(log_delta - log_p[use]))
            return np.asarray(log_spare - special.log_expit(logit_q))

        return max(self._maximise(loss), 0.0)


@dataclass(frozen=True)
class _Edge:
    """Part of the boundary of a claim's event rates, and the orders that bind there.

    Logits of q (increasing) and of the largest p beside it, shape (v,), and the order that binds
    in either direction, shape (2, v).
    """

    logit_q: Floats
    logit_p: Floats
    binding: Floats

    def orders_at(self, logit_q: Floats) -> Floats:
        """Interpolate the orders that bind, shape (2, v)."""
        logs = [np.interp(logit_q, self.logit_q, np.log(row - 1)) for row in self.binding]
        return np.asarray(1 + np.exp(np.stack(logs)))


@functools.lru_cache(maxsize=64)
def _whole_boundary(claim: RenyiConversions) -> _Edge:
    """Return the whole boundary on a coarse grid, its orders settled: the start of every zoom."""
    grid = np.concatenate([-np.geomspace(1e6, 60.0, 140), np.arange(-59.5, 36.5, 0.5)])
    edge = claim._edge(grid, None, 1.0)
    for spread in (1.3, 1.05):
        edge = claim._edge(grid, edge.binding, spread)
    return edge


def _largest_p(logit_q: Floats, orders: Floats, budgets: Floats) -> tuple[Floats, Floats]:
    """Return the largest p (as a logit) that the claim allows beside each q, by bisection.

    And the order that binds in each direction, shape (2, v). Logits keep full relative precision
    for p and q near 0 and near 1.
    """
    log_q, log_not_q = special.log_expit(logit_q), special.log_expit(-logit_q)

    def excess(logit_p: Floats) -> tuple[Floats, Floats]:
        log_p, log_not_p = special.log_expit(logit_p), special.log_expit(-logit_p)
        forward = np.logaddexp(
            orders * log_p + (1 - orders) * log_q, orders * log_not_p + (1 - orders) * log_not_q
        )
        backward = np.logaddexp(
            orders * log_q + (1 - orders) * log_p, orders * log_not_q + (1 - orders) * log_not_p
        )
        scale = orders - 1
        return forward / scale - budgets, backward / scale - budgets

    low, high = logit_q.copy(), np.full_like(logit_q, 745.0)
    for _ in range(50):
        middle = (low + high) / 2
        forward, backward = excess(middle)
        allowed = np.maximum(forward.max(axis=0), backward.max(axis=0)) <= 0
        low, high = np.where(allowed, middle, low), np.where(allowed, high, middle)
    everywhere = np.broadcast_to(orders, (len(orders), len(logit_q)))
    binding = [
        np.take_along_axis(everywhere, side.argmax(axis=0)[None], axis=0)[0]
        for side in excess(high)
    ]
    return high, np.stack(binding)  # rounding errs on the side that the claim can defend
