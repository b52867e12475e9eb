"""Populations of items for experiments and audits, each with the gap F* of a starting point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.zeroth_order.losses import CappedAbsolute, Loss, PhaseRetrieval, ReluNetwork


@dataclass(frozen=True, eq=False)
class Problem:
    """Population of items, with a loss and a starting point.

    Attributes
    ----------
    name : str
    loss : Loss
        A 1-Lipschitz loss.
    start : ndarray, [d]
    truth : ndarray, [k]
        The parameter from which the items are generated.
    gap : float
        A bound on F(start) - inf F.
    """

    name: str
    loss: Loss
    start: NDArray[np.float64]
    truth: NDArray[np.float64]
    gap: float

    def items(self, n: int, *, rng: np.random.Generator) -> FloatArray:
        """Draw n i.i.d. items ``[n, k + 1]``: features uniform on the sphere, and a response."""
        n = _validate.integer("n", n, at_least=1)
        rng = _validate.generator(rng)
        a = rng.standard_normal((n, self.truth.size))
        a /= np.linalg.norm(a, axis=1, keepdims=True)
        seen = a @ self.truth
        if isinstance(self.loss, CappedAbsolute):  # a tenth of the responses is random
            wrong = rng.random(n) < 0.1
            seen = np.where(wrong, rng.uniform(-5, 5, size=n), seen)
        elif isinstance(self.loss, PhaseRetrieval):
            seen = np.abs(seen)
        else:
            seen = np.abs(seen) - np.abs(a[:, 0])
        return np.column_stack([a, seen])


def robust_regression(dimension: int) -> Problem:
    """Return robust regression with capped absolute errors.

    A tenth of the responses are random. The objective F is at least 0, and at most the cap 1.
    """
    return _problem("robust regression", CappedAbsolute(), dimension, dimension, 1.0)


def phase_retrieval(dimension: int) -> Problem:
    """Return a problem with amplitudes of linear measurements and a nearly symmetric start."""
    return _problem("phase retrieval", PhaseRetrieval(), dimension, dimension, 3.0)


def relu_network(dimension: int, hidden: int = 5) -> Problem:
    """Return a problem in which a layer of ReLUs learns a difference of two absolute values.

    Parameters
    ----------
    dimension : int
        Dimension d, a multiple of `hidden`.
    hidden : int, default 5
        Number of units.
    """
    d = _validate.integer("dimension", dimension, at_least=1)
    hidden = _validate.integer("hidden", hidden, at_least=1)
    if d % hidden:
        raise ValueError(f"dimension must be a multiple of hidden = {hidden}, got {dimension}")
    return _problem("ReLU network", ReluNetwork(hidden), d // hidden, d, 3.0)


def _problem(name: str, loss: Loss, n_features: int, dimension: int, gap: float) -> Problem:
    d = _validate.integer("dimension", dimension, at_least=1)
    truth = 2.0 * (-1.0) ** np.arange(n_features) / np.sqrt(n_features)
    start = 0.1 * np.cos(np.arange(d) + 1.0)
    return Problem(name, loss, start, truth, gap)
