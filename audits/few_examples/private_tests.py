"""Private algorithms that are as far from constant as possible, and their divergences."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import binom

from dpaudit.neighbors import Integer, Interval
from dpaudit.properties import Array

ROUNDING = 1e-12
SHARE = Interval(0.0, 1.0)
WEIGHT = Interval(1e-6, 1.0)
"""Weights of outcomes, which are normalised to probabilities."""
SMALL = Interval(1e-3, 1.0, log=True)
"""Values that a statement calls sufficiently small, such as eps sqrt(n log(1/delta))."""
DELTA = Interval(1e-9, 0.1, log=True)


def steepest_test(n, epsilon, delta, at, value):
    """Return Pr[A = 1] for the sums 0, ..., n, as steep as (eps, delta)-DP allows."""
    e, f = math.exp(epsilon), np.full(n + 1, float(value))
    for k in range(at, n):
        f[k + 1] = min(e * f[k] + delta, 1 - (1 - f[k] - delta) / e, 1)
    for k in range(at, 0, -1):
        f[k - 1] = max((f[k] - delta) / e, 1 - e * (1 - f[k]) - delta, 0)
    return f


def sums(n, p, signs):
    """Return the distribution of a sum of n bits, where some bits count -1 and some do not count.

    If some bits count -1, the order matters.
    """
    plus = round(n * signs[0])
    minus = round((n - plus) * signs[1])
    up, down = (binom.pmf(np.arange(m + 1), m, q) for m, q in ((plus, p), (minus, 1 - p)))
    law = np.zeros(n + 1)
    law[: plus + minus + 1] = np.convolve(up, down)
    return law


def sticks(p, q, epsilon):
    """Return hockey-stick divergences of distributions on {0, 1}, given their Pr[1]."""
    e = math.exp(epsilon)
    return np.maximum(p - e * q, 0) + np.maximum(1 - p - e * (1 - q), 0)


def laplace(x, epsilon):
    """Return the cumulative distribution of discrete Laplace noise."""
    a = math.exp(-epsilon)
    return np.where(x < 0, a ** np.abs(x), 1 + a - a ** (np.abs(x) + 1)) / (1 + a)


def moved_laplace(shift, epsilon, larger):
    """Return the hockey-stick divergence, at `larger`, of discrete Laplace noise and its shift."""
    last = np.ceil((shift - larger / epsilon) / 2) - 1
    found = laplace(last, epsilon) - math.exp(larger) * laplace(last - shift, epsilon)
    return np.maximum(found, 0)


def least(holds, most):
    """Return the least epsilon' up to `most` at which a monotone condition holds."""
    low, high = 0.0, most
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


SUMS = {"n": Integer(1, 60), "p": SHARE, "signs": Array(SHARE, (2,)), "delta": DELTA,
        "small": SMALL, "at": SHARE, "value": SHARE}  # fmt: skip
HALF = {"p": 0.5, "signs": np.array([1.0, 0.0]), "at": 0.5, "value": 0.5}


def not_close(law, laws, epsilon, delta):
    """Return the probability that two random rows are not (eps, delta)-close."""
    d = np.maximum(laws[:, None] - math.exp(epsilon) * laws[None], 0).sum(axis=-1)
    return law @ (np.maximum(d, d.T) > delta) @ law
