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

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit import _validate

Floats = NDArray[np.float64]

_Edge = tuple[Floats, Floats, Floats, Floats]
"""Logits of q, logits of the largest p beside it, and the orders that bind in each direction."""


class RenyiConversions:
    """Lossless (epsilon, delta) of constraints "Renyi divergence of order alpha <= budget"."""

    def renyi_orders(self, focus: tuple[float, float] | None, spread: float) -> Floats:
        """Orders to impose, dense within a factor `spread` of the two in `focus`.

        `focus` holds the orders found to bind in the forward and the backward direction.
        """
        raise NotImplementedError

    def renyi_budget(self, orders: Floats) -> Floats:
        """Largest Renyi divergence that the claim allows at each order."""
        raise NotImplementedError

    def _boundary(self, logit_q: Floats, focus: tuple[float, float] | None, spread: float) -> _Edge:
        orders = self.renyi_orders(focus, spread)
        logit_p, forward, backward = _largest_p(logit_q, orders, self.renyi_budget(orders))
        return logit_q, logit_p, orders[forward], orders[backward]

    def _maximise(self, value: Callable[[Floats, Floats], Floats]) -> float:
        """Maximise ``value(p, q)`` over the event rates that the claim allows, p >= q.

        Along the boundary the functions that we maximise have one hump, so a few rounds of
        zooming into the best cells of a grid find the top; orders are refined along with it.
        Leaving an order out only weakens the claim, so the answer errs on the side that the
        claim can defend.
        """
        edge = _whole_boundary(self)
        # The top may be a kink where two orders cross, so the last rounds only narrow the grid.
        for spread in (1.5, 1.1, 1.02, 1.004, 1.001, 1.001, 1.001, None):
            logit_q, logit_p, forward, backward = edge
            values = value(logit_p, logit_q)
            top = int(np.argmax(values))
            if spread is None:
                break
            step = logit_q[1] - logit_q[0]
            grid = np.linspace(logit_q[top] - 5 * step, logit_q[top] + 5 * step, 101)
            edge = self._boundary(grid, (float(forward[top]), float(backward[top])), spread)
        return float(values[top])

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


@functools.lru_cache(maxsize=64)
def _whole_boundary(claim: RenyiConversions) -> _Edge:
    """Return the boundary of a claim's event rates on a coarse grid, to start from."""
    return claim._boundary(np.linspace(-3000.0, 36.0, 1239), None, 1.0)


def _largest_p(
    logit_q: Floats, orders: Floats, budgets: Floats
) -> tuple[Floats, NDArray[np.intp], NDArray[np.intp]]:
    """Return the largest p (as a logit) that the claim allows beside each q, by bisection.

    Returns the logits, and the index of the order that binds in each direction. Logits keep full
    relative precision for p and q near 0 and near 1.
    """

    def slack(logit_p: Floats) -> tuple[Floats, NDArray[np.intp], NDArray[np.intp]]:
        log_p, log_not_p = -np.logaddexp(0, -logit_p), -np.logaddexp(0, logit_p)
        log_q, log_not_q = -np.logaddexp(0, -logit_q), -np.logaddexp(0, logit_q)

        def excess(a: Floats, not_a: Floats, b: Floats, not_b: Floats) -> Floats:
            terms = np.logaddexp(
                np.outer(orders, a) + np.outer(1 - orders, b),
                np.outer(orders, not_a) + np.outer(1 - orders, not_b),
            )
            return np.asarray(terms / (orders - 1)[:, None] - budgets[:, None])

        forward = excess(log_p, log_not_p, log_q, log_not_q)
        backward = excess(log_q, log_not_q, log_p, log_not_p)
        worst = np.maximum(forward.max(axis=0), backward.max(axis=0))
        return worst, forward.argmax(axis=0), backward.argmax(axis=0)

    low, high = logit_q.copy(), np.full_like(logit_q, 745.0)
    for _ in range(48):
        middle = (low + high) / 2
        allowed = slack(middle)[0] <= 0
        low, high = np.where(allowed, middle, low), np.where(allowed, high, middle)
    _, forward, backward = slack(high)
    return high, forward, backward  # rounding errs on the side that the claim can defend
