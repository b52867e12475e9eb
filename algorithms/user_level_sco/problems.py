"""Populations with a known objective and a known minimiser, and data drawn from them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.user_level_sco.domains import Ball, Box, Domain
from algorithms.user_level_sco.losses import Huber, Linear, Logistic, Loss, MatrixQuadratic


@dataclass(frozen=True)
class Problem:
    """A finite population P, a loss and a domain. F(x) = E f(x; z) is a finite sum.

    Parameters
    ----------
    loss : Loss
    domain : Ball or Box
    items : ndarray, [K, p]
        The support of P.
    probabilities : ndarray, [K]
    minimiser : ndarray, [d]
        Minimiser x* in the domain.
    """

    loss: Loss
    domain: Domain
    items: FloatArray
    probabilities: FloatArray
    minimiser: FloatArray

    def __post_init__(self) -> None:
        if abs(self.probabilities.sum() - 1) > 1e-9 or (self.probabilities < 0).any():
            raise ValueError(
                f"probabilities must sum to 1, got a sum of {self.probabilities.sum()}"
            )

    def objective(self, x: ArrayLike) -> FloatArray:
        """Return F(x) for points ``[S, d]``."""
        points = _validate.floats("x", x, ndims=(2,))
        return np.asarray(self.loss.values(points, self.items) @ self.probabilities)

    def excess(self, x: ArrayLike) -> FloatArray:
        """Return F(x) - F(x*) for points ``[S, d]``.

        The excess can be negative outside of the domain.
        """
        return np.asarray(self.objective(x) - self.objective(self.minimiser[None]))

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return the gradient of F at one point ``[d]``."""
        each = self.loss.gradients(x[None], self.items[:, None])[0]
        return np.asarray(self.probabilities @ each)

    def sample(
        self, n_users: int, m: int, *, heterogeneity: float = 0.0, rng: np.random.Generator
    ) -> FloatArray:
        """Draw users ``[n_users, m, p]``.

        Parameters
        ----------
        n_users, m : int
            At least 1.
        heterogeneity : float, default 0
            If 0, all items are drawn independently from P, as the papers assume. Otherwise, each
            user has its own distribution. Each user's distribution is drawn from the Dirichlet
            distribution around P with concentration 1 / heterogeneity. The users' distributions
            have the average P, but the items of one user are similar.
        rng : numpy.random.Generator
            Source of randomness.
        """
        rng = _validate.generator(rng)
        n_users = _validate.integer("n_users", n_users, at_least=1)
        m = _validate.integer("m", m, at_least=1)
        spread = _validate.nonnegative("heterogeneity", heterogeneity)
        if spread == 0:
            chosen = rng.choice(len(self.items), size=(n_users, m), p=self.probabilities)
            return np.asarray(self.items[chosen])
        shape = np.maximum(self.probabilities / spread, 1e-12)
        weights = rng.gamma(shape, size=(n_users, len(shape)))
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        levels = np.cumsum(weights, axis=1)
        drawn = rng.random((n_users, m, 1)) * levels[:, None, -1:]
        chosen = np.minimum((drawn > levels[:, None]).sum(axis=2), len(shape) - 1)
        return np.asarray(self.items[chosen])

    def with_outliers(
        self, data: FloatArray, fraction: float, item: ArrayLike, *, rng: np.random.Generator
    ) -> FloatArray:
        """Return data in which a random fraction of the users holds only the given item."""
        rng = _validate.generator(rng)
        fraction = _validate.real("fraction", fraction)
        if not 0 <= fraction <= 1:
            raise ValueError(f"fraction must be from 0 to 1, got {fraction!r}")
        bad = rng.choice(len(data), size=round(fraction * len(data)), replace=False)
        moved = data.copy()
        moved[bad] = _validate.floats("item", item, ndims=(1,))
        return moved


def linear(domain: Domain, *, bias: float = 0.3, size: float = 1.0, dimension: int = 1) -> Problem:
    """Return the problem f(x; z) = -<x, z>, where every z is one of +-size e_k.

    Each coordinate of the mean of z is `bias` times `size` / d. In both norms, G is `size`. In a
    ball, all coordinates of the minimiser x* are D / sqrt(d). In a box, all coordinates of x* are
    D.
    """
    d = _validate.integer("dimension", dimension, at_least=1)
    size = _validate.positive("size", size)
    bias = _validate.probability("bias", bias)
    items = np.concatenate([np.eye(d), -np.eye(d)]) * size
    probabilities = np.repeat([(1 + bias) / 2, (1 - bias) / 2], d) / d
    corner = np.full(d, domain.radius)
    best = corner if isinstance(domain, Box) else corner / math.sqrt(d)
    return Problem(Linear(), domain, items, probabilities, best)


def pulled(domain: Domain, *, share: float, dimension: int) -> Problem:
    """Return linear losses -<x, z>, where a share of the items pulls in one direction.

    With probability `share`, z is (1, ..., 1) / sqrt(d), and otherwise one of +-e_k. So the
    gradient of F has the length `share` in every dimension, and G is 1 in the l_2-norm. If `share`
    is of the order of the error of a mean, the problem is as hard as in the papers' lower bounds.
    """
    d = _validate.integer("dimension", dimension, at_least=1)
    share = _validate.probability("share", share)
    pull = np.full((1, d), d**-0.5)
    items = np.concatenate([pull, np.eye(d), -np.eye(d)])
    probabilities = np.concatenate([[share], np.full(2 * d, (1 - share) / (2 * d))])
    best = np.full(d, domain.radius) * (1.0 if isinstance(domain, Box) else d**-0.5)
    return Problem(Linear(), domain, items, probabilities, best)


def cube(loss: Loss, domain: Domain, *, center: ArrayLike, half_width: float) -> Problem:
    """Return a problem with z uniform on the 2^d corners of a cube whose center is x*.

    The losses must be even functions of x - z, such as quadratics and Huber losses. The dimension d
    is at most 12.
    """
    middle = _validate.floats("center", center, ndims=(1,))
    width = _validate.positive("half_width", half_width)
    if middle.size > 12:
        raise ValueError(f"center must have at most 12 coordinates, got {middle.size}")
    if not np.array_equal(domain.project(middle[None])[0], middle):
        raise ValueError(f"center must be in the domain {domain!r}, got {center!r}")
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * middle.size)).reshape(middle.size, -1).T
    items = middle + width * signs
    return Problem(loss, domain, items, np.full(len(items), 1 / len(items)), middle)


def logistic(domain: Ball, *, weights: ArrayLike, feature_norm: float = 1.0) -> Problem:
    """Return labels from the logistic model at x* = weights, with features +-feature_norm e_k.

    The gradient of F at `weights` is 0 because the labels follow this model.
    """
    best = _validate.floats("weights", weights, ndims=(1,))
    if not np.array_equal(domain.project(best[None])[0], best):
        raise ValueError(f"weights must be in the domain {domain!r}, got {weights!r}")
    loss = Logistic(feature_norm)
    d = best.size
    rows = np.repeat(np.eye(d) * feature_norm, 2, axis=0)
    labels = np.tile([1.0, -1.0], d)
    items = np.column_stack([rows, labels])
    probabilities = np.exp(-np.logaddexp(0.0, -labels * (rows @ best))) / d
    return Problem(loss, domain, items, probabilities, best)


def chain(domain: Box, *, center: ArrayLike, half_width: float, coupling: float = 0.5) -> Problem:
    """Return quadratics with one Hessian, which is tridiagonal and diagonally dominant.

    The items z are at corners of a cube. The Hessian has 1 on the diagonal, and -coupling / 2 next
    to the diagonal. The coupling is in [0, 1].
    """
    middle = _validate.floats("center", center, ndims=(1,))
    coupling = _validate.real("coupling", coupling)
    if not 0 <= coupling <= 1:
        raise ValueError(f"coupling must be from 0 to 1, got {coupling!r}")
    d = middle.size
    h = np.eye(d) - coupling / 2 * (np.eye(d, k=1) + np.eye(d, k=-1))
    return cube(MatrixQuadratic(h), domain, center=middle, half_width=half_width)


def huber(domain: Domain, *, center: ArrayLike, half_width: float, threshold: float) -> Problem:
    """Return Huber losses, where z is at the corners of a cube around x*.

    On a box, the losses are separable.
    """
    loss = Huber(threshold, separable=isinstance(domain, Box))
    return cube(loss, domain, center=center, half_width=half_width)
