"""What an event may be expected to certify: approximations, for choosing and planning only.

The joint bound of :mod:`dpaudit.stats.joint` is approximated by recovering variances from
one-sided limits (Zou and Donner 2008, "MOVER"): with limits p' of p and q' of q at the full failure
probability, the loss ``log((p - delta) / q)`` is expected to be certified up to the root of the sum
of the squares of its two declines, and the excess ``p - e^epsilon q`` likewise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ExpectedBounds:
    """Rates of many events, and the limits that `draws` fresh draws are expected to set them.

    Parameters
    ----------
    p, q : ndarray, shape (k,)
        Rates on the likelier side and on the other, as they are taken to be.
    p_low, q_high : ndarray, shape (k,)
        One-sided limits, each at the full failure probability.
    """

    p: Floats
    q: Floats
    p_low: Floats
    q_high: Floats

    @classmethod
    def of(cls, p: Floats, q: Floats, draws: int, failure_prob: float) -> ExpectedBounds:
        """Look ahead to `draws` draws per dataset that show exactly the rates p and q."""
        return cls(
            p,
            q,
            approximate_lower(p * draws, draws, failure_prob),
            approximate_upper(q * draws, draws, failure_prob),
        )

    def losses(self, delta: float) -> tuple[Floats, Floats]:
        """Return the epsilons expected at `delta`: of events, and of their swapped complements.

        Not positive where nothing is expected.
        """
        return (
            _loss(self.p, self.q, self.p_low, self.q_high, delta),
            _loss(1 - self.q, 1 - self.p, 1 - self.q_high, 1 - self.p_low, delta),
        )

    def excesses(self, epsilon: float) -> tuple[Floats, Floats]:
        """Return the deltas expected at `epsilon`: of events, and of their swapped complements."""
        factor = np.exp(min(epsilon, 700.0))
        decline_p, decline_q = self.p - self.p_low, self.q_high - self.q
        direct = self.p - factor * self.q - np.hypot(decline_p, factor * decline_q)
        mirrored = (1 - self.q) - factor * (1 - self.p)
        return direct, mirrored - np.hypot(decline_q, factor * decline_p)


def _loss(p: Floats, q: Floats, p_low: Floats, q_high: Floats, delta: float) -> Floats:
    known = (p_low > delta) & (q_high > 0)
    tiny = 1e-300
    with np.errstate(divide="ignore", invalid="ignore"):
        top, low = np.log(np.maximum(p - delta, tiny)), np.log(np.maximum(p_low - delta, tiny))
        # A rate of exactly 0 has no logarithm; its limit stands in for it.
        bottom, high = np.log(np.where(q > 0, q, q_high)), np.log(np.maximum(q_high, tiny))
        loss = top - bottom - np.hypot(top - low, high - bottom)
    return np.where(known, loss, -np.inf)


def approximate_upper(hits: Any, draws: Any, failure_prob: float) -> Floats:
    """Clopper-Pearson upper bound by Pratt's formula: fractional counts, 30 times faster.

    Within about 15% of the exact bound even for no hits and tiny failure probabilities (Blyth
    1986, "Approximate binomial confidence limits", after Pratt 1968). For planning only; nothing
    is certified with it.
    """
    x = np.minimum(np.asarray(hits, dtype=float), draws * (1 - 1e-14))
    z = float(-special.ndtri(failure_prob))
    a = ((x + 1) / (draws - x)) ** 2
    b = 81 * (x + 1) * (draws - x) - 9 * draws - 8
    # Negative beyond every use of the formula: with fewer draws than z^2 / 9, nothing is known.
    root = np.maximum(9 * (x + 1) * (draws - x) * (9 * draws + 5 - z * z) + draws + 1, 0.0)
    c = -3 * z * np.sqrt(root)
    d = 81 * (x + 1) ** 2 - 9 * (x + 1) * (2 + z * z) + 1
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        bound = 1 / (1 + a * ((b + c) / d) ** 3)
    sensible = np.isfinite(bound) & (bound >= x / draws) & (bound <= 1)
    return np.where(sensible, bound, 1.0)


def approximate_lower(hits: Any, draws: Any, failure_prob: float) -> Floats:
    """Clopper-Pearson lower bound by Pratt's formula; see :func:`approximate_upper`."""
    x = np.asarray(hits, dtype=float)
    bound = 1 - approximate_upper(draws - x, draws, failure_prob)
    return np.where(x > 0, bound, 0.0)
