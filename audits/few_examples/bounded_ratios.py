"""Numerical tests of Lemma 33, and the worst martingale of Lemma 35."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import binom

from dpaudit.neighbors import Interval

ROUNDING = 1e-9
SHARE = Interval(0.0, 1.0)
WEIGHT = Interval(1e-6, 1.0, log=True)
"""Weights of outcomes, which are normalised to probabilities."""
VALUE = Interval(1e-6, 1e6, log=True)
EPSILON = Interval(1e-3, 3.0, log=True)
SMALL = Interval(1e-3, 1.0, log=True)
"""Values of eps sqrt(n log(1/delta)), which has to be sufficiently small."""
DELTA = Interval(1e-12, 0.2, log=True)


def excess(law, z, epsilon):
    """Return E[Z - e^eps Z~]_+ for an independent copy Z~."""
    return law @ np.maximum(z[:, None] - math.exp(epsilon) * z[None], 0) @ law


def worst(n, epsilon, larger):
    """Return the largest E[Y_n - e^larger]_+ + E[1 - e^larger Y_n]_+ over all martingales.

    All martingales start at Y_0 = 1. The mean of a convex function is largest if each step
    multiplies Y by e^epsilon or by e^(-epsilon). The claim follows by induction, because the
    remaining mean is again convex in Y_i.
    """
    k = np.arange(n + 1)
    y, law = np.exp(epsilon * (2 * k - n)), binom.pmf(k, n, 1 / (1 + math.exp(epsilon)))
    e = math.exp(larger)
    return law @ np.maximum(y - e, 0) + law @ np.maximum(1 - e * y, 0)
