"""Private gradient oracles, Algorithm 4 (variance-reduced) and Algorithm 6 (naive)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.common.tree import TreeNoise, node_sums
from algorithms.zeroth_order.estimators import (
    difference_estimate,
    gradient_estimate,
    items_of,
    points_of,
    unit_vectors,
)
from algorithms.zeroth_order.losses import Loss
from algorithms.zeroth_order.plans import Naive, VarianceReduced


def oracle_gradients(
    data: Any,
    size: int,
    *,
    loss: Loss,
    oracle: VarianceReduced | Naive,
    radius: float,
    points: ArrayLike,
    directions: ArrayLike | None = None,
    noise_multiplier: float = 1.0,
    rng: np.random.Generator,
) -> FloatArray:
    """Release the noisy gradients of one epoch along a given path.

    The source is zeroth_order, Algorithm 4 (Private variance-reduced gradient oracle) with
    Algorithm 5 (Tree), or Algorithm 6 (Naive private gradient oracle).

    **Guarantee** mu-Gaussian DP, hence (alpha, alpha mu**2 / 2)-RDP, with mu = `accounts.path_gdp`.
    The directions are hidden, and their distribution does not depend on the data. Given the
    directions, the outputs are Gaussian.

    **Requires** that the path depends on the epoch's items only through released gradients.

    **Departs** (1) Line 9 of Algorithm 4 defines g~_t and adds Tree(t) to g~_t itself. This
    function adds Tree(t) to g_t, the sum without noise. (2) Line 2 of Algorithm 4 prints t = [2,
    K], which should be t in [2, T]. (3) The state of the oracle is private. The state consists of
    g_{t-1} without noise, the nodes of Node(t), and w_{t-1}. (4) `noise_multiplier` is not in the
    paper.

    **Symbols** g~_1, ..., g~_T are the returned value, and w_1, ..., w_T are `points`. B_1, B_2 and
    sigma are parameters of `oracle`. Z_1, ..., Z_T are batches of `data`, in the order of the data.

    Parameters
    ----------
    data : array_like, [n, p] or [n, 1, p]
        Items of the epoch. The function uses the first items.
    size : int
        Number of independent draws.
    loss : Loss
    oracle : VarianceReduced or Naive
    radius : float
        Positive smoothing radius delta.
    points : array_like, [T, d]
    directions : array_like, [n, j, d], optional
        Directions of each item. By default, new directions are drawn for each draw.
    noise_multiplier : float, default 1
        Factor on sigma, at least 0.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size, T, d]
    """
    rng = _validate.generator(rng)
    path = _path(points)
    items = epoch_items(data, loss, oracle, len(path))
    asked = EpochOracle(
        items, size, loss=loss, oracle=oracle, radius=radius, rounds=len(path),
        directions=directions, noise_multiplier=noise_multiplier, rng=rng,
    )  # fmt: skip
    found = np.empty((asked.size, *path.shape))
    for t, w in enumerate(path):
        found[:, t] = asked.query(w)
    return found


def oracle_centers(
    data: Any,
    size: int,
    *,
    loss: Loss,
    oracle: VarianceReduced | Naive,
    radius: float,
    points: ArrayLike,
    directions: ArrayLike | None = None,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the value to which `oracle_gradients` adds noise, in coordinates with white noise.

    For Algorithm 4, this value consists of the sums of the nodes of the tree. The noisy gradients
    are the image of the noisy sums under an invertible map. For Algorithm 6, this value consists of
    the gradients. Each sum or gradient has independent noise N(0, sigma**2 I), so an audit can
    integrate the noise out.

    Parameters, **Guarantee** (with the noise added), **Requires**, **Departs** and **Symbols** are
    those of `oracle_gradients`.

    Returns
    -------
    ndarray, [size, T d]
    """
    quiet = (
        VarianceReduced(oracle.first_batch, oracle.batch, 0.0)
        if isinstance(oracle, VarianceReduced)
        else Naive(oracle.batch, 0.0)
    )
    sums = oracle_gradients(
        data, size, loss=loss, oracle=quiet, radius=radius, points=points, directions=directions,
        rng=rng,
    )  # fmt: skip
    if isinstance(oracle, VarianceReduced):
        sums = node_sums(np.diff(sums, axis=1, prepend=0.0))
    return sums.reshape(len(sums), sums.shape[1] * sums.shape[2])


class EpochOracle:
    """One epoch of an oracle, in many simultaneous runs (see `oracle_gradients`).

    Parameters
    ----------
    items : ndarray, [n, p]
        Items of the epoch.
    size : int
        Number of runs.
    loss, oracle, radius, directions, noise_multiplier, rng
        As for `oracle_gradients`.
    rounds : int
        Number of rounds T.
    """

    def __init__(
        self, items: FloatArray, size: int, *, loss: Loss, oracle: VarianceReduced | Naive,
        radius: float, rounds: int, directions: ArrayLike | None = None, noise_multiplier: float,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self.size = _validate.draws(size)
        self._loss, self._oracle, self._rng = loss, oracle, rng
        self._radius = radius
        self._dimension = loss.dimension(items.shape[1])
        sizes = oracle.batches(rounds)
        ends = np.cumsum(sizes)
        self._batches = [slice(end - n, end) for end, n in zip(ends, sizes, strict=True)]
        self._items = items[: ends[-1]]
        self._directions = (
            None
            if directions is None
            else unit_vectors(directions, len(items), self._dimension)[: ends[-1]]
        )
        self._time = 0
        self._sigma = _validate.nonnegative("noise_multiplier", noise_multiplier) * oracle.sigma
        self._previous = np.empty(0)
        self._sum = np.empty(0)
        if isinstance(oracle, VarianceReduced):
            self._tree = TreeNoise(
                self.size, (self._dimension,), sigmas=np.full(rounds, self._sigma), rng=rng
            )

    def query(self, points: FloatArray) -> FloatArray:
        """Return the noisy gradients ``[size, d]`` at the next points, ``[d]`` or ``[size, d]``."""
        if self._time == len(self._batches):
            raise ValueError(
                f"t must be at most {len(self._batches)}, the number of rounds of an epoch"
            )
        batch = self._batches[self._time]
        self._time += 1
        w = points_of("points", points, self.size, self._dimension)
        given: dict[str, Any] = {
            "loss": self._loss,
            "radius": self._radius,
            "point": w,
            "directions": None if self._directions is None else self._directions[batch],
            "rng": self._rng,
        }
        items = self._items[batch]
        if isinstance(self._oracle, Naive):  # Algorithm 6
            if self._directions is None:
                given["n_directions"] = self._oracle.directions(self._dimension)
            estimate = gradient_estimate(items, self.size, **given)  # lines 4 and 5
            if self._sigma:
                estimate += self._rng.normal(scale=self._sigma, size=estimate.shape)  # line 6
            return estimate
        if self._time == 1:
            self._sum = gradient_estimate(items, self.size, **given)  # line 5 of Algorithm 4
        else:
            self._sum = self._sum + difference_estimate(  # line 7
                items, self.size, previous=self._previous, **given
            )
        self._previous = w
        return self._sum + self._tree.next()  # line 9


def epoch_items(
    data: Any, loss: Loss, oracle: VarianceReduced | Naive, rounds: int, epochs: int = 1
) -> FloatArray:
    """Return the items that the given number of epochs uses, and refuse data with too few items."""
    items = items_of(data, loss)
    needed = epochs * sum(oracle.batches(rounds))
    if len(items) < needed:
        raise ValueError(f"data must hold at least {needed} items, got {len(items)}")
    return items[:needed]


def _path(points: ArrayLike) -> FloatArray:
    return _validate.floats("points", points, ndims=(2,))
