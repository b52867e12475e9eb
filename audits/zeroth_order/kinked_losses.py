"""Losses with kinks, and directions of a quadrature."""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy.special import roots_legendre

from algorithms.zeroth_order.losses import FunctionLoss
from audits.zeroth_order.conventions import FEW, UNIT
from audits.zeroth_order.ledger_smoothing import lipschitz
from dpaudit.neighbors import Interval
from dpaudit.properties import Array

ROUNDING = 1e-9
COARSE = 1 + 1e-3
"""Tolerance of quadrature over directions in d = 3. The error is 1e-4 in d = 2, 0 in d = 1."""
RADII = Interval(0.05, 5.0, log=True)
APART = Interval(1e-3, 5.0, log=True)
"""norm(x - y) / delta."""
TWO = {"slopes": Array(UNIT, (2, 3, "d")), "kinks": Array(UNIT, (2, 3)), "d": FEW}
TWO |= {"at": Array(UNIT, ("d",)), "radius": RADII}
"""Two items, +-(sum of three kinked ridges), and a population in which each has probability 1/2."""
MOVED = {**TWO, "move": Array(UNIT, ("d",))}


def kinked(slopes, kinks, points):
    return np.abs(points @ slopes.T - kinks).sum(axis=-1)


def constant_of(slopes):
    """Return the Lipschitz constant L."""
    return max(lipschitz(each) for each in slopes) + 1e-300


def as_loss(slopes, kinks):
    """Return a loss for two items: the first sum of ridges, and the negative of the second."""
    d = slopes.shape[-1]

    def function(points, items):
        both = [kinked(slopes[0], kinks[0], points), -kinked(slopes[1], kinks[1], points)]
        return np.where(items[..., 0] == 0, *both)

    return FunctionLoss(function, lipschitz=constant_of(slopes), n_dimensions=d)


def opposite(d, kink, **more):
    """Return the losses +-abs(x_1 - kink).

    The losses are straight near 0 for kink = 9, and have a kink at 0 for kink = 0.
    """
    slopes, kinks = np.zeros((2, 3, d)), np.zeros((2, 3))
    slopes[:, 0, 0], kinks[:, 0] = 1.0, kink
    return {"slopes": slopes, "kinks": kinks, "at": np.zeros(d), "radius": 1.0, **more}


@functools.cache
def sphere(d, n=256):
    """Return directions and weights, exact for d = 1 and by quadrature for d = 2 and 3."""
    if d == 1:
        return np.array([[1.0], [-1.0]]), np.full(2, 0.5)
    angles = 2 * math.pi * (np.arange(n) + 0.5) / n
    if d == 2:
        return np.stack([np.cos(angles), np.sin(angles)], axis=1), np.full(n, 1 / n)
    cosines, weights = roots_legendre(16)
    angles = 2 * math.pi * (np.arange(32) + 0.5) / 32
    c, a = (m.ravel() for m in np.meshgrid(cosines, angles, indexing="ij"))
    u = np.stack([c, np.sqrt(1 - c**2) * np.cos(a), np.sqrt(1 - c**2) * np.sin(a)], axis=1)
    return u, np.repeat(weights / 2, 32) / 32


def single(f, radius, u, x, y=None):
    """Return g_ij, or d_ij if y is given, as numbers for many directions u."""
    d = u.shape[-1]
    if y is None:
        return d / (2 * radius) * (f(x + radius * u) - f(x - radius * u))
    return d / radius * (f(x + radius * u) - f(y + radius * u))


def moments(slopes, kinks, u, w, radius, x, y=None):
    """Return E norm(g_ij)^2 [2] and E g_ij [2, d] of one direction, for each item."""
    signs = (1, -1)
    c = np.array([
        sign * single(lambda p, i=i: kinked(slopes[i], kinks[i], p), radius, u, x, y)
        for i, sign in enumerate(signs)
    ])  # fmt: skip
    return c**2 @ w, (c * w) @ u


def variance(slopes, kinks, u, w, radius, x, y=None):
    """Return b times the estimator's variance, with d directions for each of b random items."""
    d = u.shape[-1]
    second, means = moments(slopes, kinks, u, w, radius, x, y)
    own = second.mean() / d + (1 - 1 / d) * (means**2).sum(axis=1).mean()
    return own - (means.mean(axis=0) ** 2).sum()


def unit(directions):
    """Scale directions to length 1, or return None if a length is almost 0."""
    lengths = np.linalg.norm(directions, axis=-1, keepdims=True)
    return None if lengths.min() < 1e-6 else directions / lengths


def wave(points, items):
    return np.sin((points * items).sum(axis=-1)) + np.cos(3 * points[..., 0] + items[..., -1])
