"""The tree mechanism, which releases all running sums of a stream with little noise.

The sources are Dwork, Naor, Pitassi & Rothblum (2010), Chan, Shi & Song (2011), and zeroth_order,
Algorithm 5.

The times 1, ..., t are split into nodes (a, b), one for each binary digit 1 of t, from the largest
to the smallest. The sum up to t is the sum of the noisy sums of these nodes. The end b alone
identifies a node, because the only nodes that are ever used contain ``b & -b`` times. The used
nodes are the nodes of a Fenwick tree.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._validate import FloatArray


def node(t: int) -> list[tuple[int, int]]:
    """Return the nodes whose sums add up to the sum of times 1 to t.

    The source is zeroth_order, Algorithm 5, function Node(t), line by line.

    **Guarantee** The nodes are disjoint and cover 1 to t. The number of nodes is the number of
    binary digits 1 of t. Remark 4.2 bounds this number by ceil(log2(t)) and by 2 ln(t). These two
    bounds are correct for t >= 2. At t = 1, both bounds are 0.

    **Departs** Line 8 writes {(k + 1), k'} for the node (k + 1, k').

    Parameters
    ----------
    t : int
        At least 1.

    Returns
    -------
    list of (int, int)
        First and last time of each node, the largest node first.

    Examples
    --------
    >>> node(7), node(8)
    ([(1, 4), (5, 6), (7, 7)], [(1, 8)])
    """
    t = _validate.integer("t", t, at_least=1)
    depth = (t - 1).bit_length()  # ceil(log2(t)), without floats
    k, nodes = 0, []  # line 6
    for i in range(depth + 1):  # line 7
        end = k + 2 ** (depth - i)  # line 8
        if k < t and end <= t:
            nodes.append((k + 1, end))
            k = end
    return nodes


def nodes_of(position: int, n: int) -> list[tuple[int, int]]:
    """Return the nodes that contain a time, among the nodes of the sums up to n.

    An item at the time `position` can change exactly the returned nodes. The first node ends at
    `position`. After a node that ends at b, the next node ends at b + (b & -b), as long as this end
    is at most n. There are at most floor(log2(n)) + 1 such nodes, and position 1 attains this
    number.

    Parameters
    ----------
    position : int
        From 1 to n.
    n : int
        At least 1.

    Returns
    -------
    list of (int, int)

    Examples
    --------
    >>> nodes_of(3, 8)
    [(3, 3), (1, 4), (1, 8)]
    """
    n = _validate.integer("n", n, at_least=1)
    end = _validate.integer("position", position, at_least=1)
    if end > n:
        raise ValueError(f"position must be at most n = {n}, got {position!r}")
    nodes = []
    while end <= n:
        low = end & -end
        nodes.append((end - low + 1, end))
        end += low
    return nodes


def tree_gdp(sensitivities: ArrayLike, sigmas: ArrayLike) -> float:
    """Return mu such that all releases of the tree mechanism together are exactly mu-Gaussian-DP.

    The result is the parameter of Theorem 4.3 of zeroth_order with the smallest mu. The n noisy
    sums are an invertible image of the n noisy nodes, whose noises are independent. An item at time
    q moves its term by s_q. The item affects the release like one Gaussian with shift mu_q. The
    shift is ``mu_q = s_q sqrt(sum over nodes b that contain q of 1 / sigma_b**2)``. The result mu
    is the largest mu_q.

    **Guarantee** mu-GDP, hence (alpha, alpha mu**2 / 2)-RDP for all alpha > 1. The guarantee also
    holds for terms that are chosen adaptively, because a node depends only on nodes that end
    earlier. The adaptive case follows from the composition of Gaussian DP (Dong, Roth & Su 2022,
    Corollary 3.3). If s_q is attained, no smaller mu holds.

    **Requires** that neighbours differ at one time q. Given the earlier releases, the term at time
    q moves by at most s_q in L2 norm.

    **Departs** Theorem 4.3 prints sqrt(2 ln n) max s_i / sigma_b. At n = 1, 2 and 4, this value is
    below mu, and therefore too small.

    **Symbols** s_i = `sensitivities`, sigma_b = `sigmas`, rho = mu.

    Parameters
    ----------
    sensitivities : array_like, [n]
        At least 0.
    sigmas : array_like, scalar or [n]
        Standard deviation of the noise of the node that ends at b, positive.

    Returns
    -------
    float

    Examples
    --------
    >>> round(tree_gdp([1.0, 1.0], 1.0) ** 2, 12)
    2.0
    """
    s = _validate.floats("sensitivities", sensitivities, ndims=(1,))
    if (s < 0).any():
        raise ValueError(f"sensitivities must all be at least 0, got {float(s.min())!r}")
    n = s.size
    noises = _positive_sigmas(sigmas, n)
    unit = float(noises.min())  # squares of unit / sigma do not overflow
    weights = (unit / noises) ** 2
    precision = np.zeros(n)
    for length in 2 ** np.arange(n.bit_length()):  # used nodes of one length end at odd multiples
        ends = np.arange(length, n + 1, 2 * length)
        inside = ends[:, None] - np.arange(length)
        precision[inside - 1] += weights[ends - 1][:, None]
    with np.errstate(over="ignore"):
        mu = float(np.max(s / unit * np.sqrt(precision)))
    if not math.isfinite(mu):
        raise ValueError(
            f"sensitivities / sigmas must be finite numbers, got {float(s.max())!r} / {unit!r}"
        )
    return mu


def tree_sigma(n: int, sensitivity: float, rho: float) -> float:
    """Return the sigma of every node at which n running sums are rho-Gaussian-DP.

    The result is ``sensitivity sqrt(floor(log2(n)) + 1) / rho``. No smaller sigma is enough
    (`tree_gdp`).

    zeroth_order, Theorem 4.3, prints ``sensitivity sqrt(2 ln n) / rho``, which is 0 at n = 1.

    Parameters
    ----------
    n : int
        Number of times, at least 1.
    sensitivity : float
        Positive sensitivity of each term, in L2 norm.
    rho : float
        Parameter of Gaussian DP, positive.

    Returns
    -------
    float
    """
    n = _validate.integer("n", n, at_least=1)
    sensitivity = _validate.positive("sensitivity", sensitivity)
    return _validate.scale(sensitivity * math.sqrt(n.bit_length()), _validate.positive("rho", rho))


class TreeNoise:
    """Noise Tree(t) of Algorithm 5 for t = 1, 2, ... in turn, in many simultaneous runs.

    The source is zeroth_order, Algorithm 5 (Tree).

    **Guarantee** The sums to which the noise is added are Gaussian DP with the parameter of
    `tree_gdp`.

    **Departs** (1) The printed Noise keeps all xi_1, ..., xi_t. A node that has ended is never used
    again unless it belongs to Node(t). So only the nodes of Node(t) are kept. There are at most
    floor(log2(t)) + 1 such nodes. (2) Line 2 discards all noise when the algorithm is called with t
    = 1. In this class, a new tree requires a new object. (3) The proof of Theorem 4.3 gives the
    same xi_b to all nodes with end b. For each end, the released sums use only one node. So no two
    of these nodes share noise. If all nodes were released, the differences of the released sums
    would have no noise.

    **Symbols** xi_t ~ N(0, sigma_t**2 I), in `shape` dimensions, for each of `size` runs.

    Parameters
    ----------
    size : int
        Number of runs.
    shape : tuple of int
        Shape of one term.
    sigmas : array_like, [n]
        Standard deviations of the nodes that end at 1, ..., n, at least 0.
    rng : numpy.random.Generator
        Source of randomness.
    """

    def __init__(
        self, size: int, shape: tuple[int, ...], *, sigmas: ArrayLike, rng: np.random.Generator
    ) -> None:
        self._rng = _validate.generator(rng)
        self._shape = (_validate.draws(size), *shape)
        self._sigmas = _validate.floats("sigmas", sigmas, ndims=(1,))
        if (self._sigmas < 0).any():
            raise ValueError(f"sigmas must be at least 0, got {float(self._sigmas.min())!r}")
        self._time = 0
        self._kept: list[FloatArray] = []  # Tree(b) for each end b of the nodes of Node(t)

    def next(self) -> FloatArray:
        """Return Tree(t) ``[size, *shape]`` for the next t."""
        if self._time == self._sigmas.size:
            raise ValueError(f"t must be at most {self._sigmas.size}, the number of sigmas")
        self._time += 1
        sigma = self._sigmas[self._time - 1]
        # line 3
        xi = self._rng.normal(scale=sigma, size=self._shape) if sigma else np.zeros(self._shape)
        ones = (self._time & (self._time - 1)).bit_count()  # nodes of Node(t) before the last node
        del self._kept[ones:]
        self._kept.append(self._kept[-1] + xi if ones else xi)  # line 4
        return self._kept[-1].copy()


def tree_sums(values: Any, size: int, *, sigmas: ArrayLike, rng: np.random.Generator) -> FloatArray:
    """Release all running sums of a stream, with the noise of a tree.

    The source is zeroth_order, Theorem 4.3 and Algorithm 5, for given terms that are not chosen
    adaptively.

    **Guarantee** mu-Gaussian DP, with mu = ``tree_gdp(sensitivities, sigmas)``.

    **Requires** that neighbours differ in one term. The term moves by at most the sensitivity of
    the term, in L2 norm.

    **Departs** Theorem 4.3 prints M^(j)(..., Z_i) for the j-th term, which depends on Z_j.

    **Symbols** M^(j)(x, Z_j) = `values` [j - 1], and x_i = the i-th sum.

    Parameters
    ----------
    values : array_like, [n] or [n, d]
        The terms, finite.
    size : int
        Number of independent draws.
    sigmas : array_like, scalar or [n]
        Positive standard deviation of the noise of the node that ends at b.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size, n] or [size, n, d]
    """
    rng = _validate.generator(rng)
    terms = _validate.floats("values", values, ndims=(1, 2))
    n = len(terms)
    noise = TreeNoise(size, terms.shape[1:], sigmas=_positive_sigmas(sigmas, n), rng=rng)
    found = np.empty((_validate.draws(size), *terms.shape))
    for t, total in enumerate(np.cumsum(terms, axis=0)):
        found[:, t] = total + noise.next()
    return found


def node_sums(values: Any) -> FloatArray:
    """Return the sum of each node that ends at 1, ..., n, before noise is added.

    The noisy running sums of `tree_sums` are an invertible image of the noisy node sums. Each node
    sum has its own Gaussian noise. So an audit can integrate out the noise.

    Parameters
    ----------
    values : array_like, [..., n, d]
        The terms. Additional leading axes stand for several runs.

    Returns
    -------
    ndarray, [..., n, d]
    """
    terms = np.asarray(values, dtype=np.float64)
    if terms.ndim < 2:
        raise ValueError(f"values must have at least 2 dimensions, got shape {terms.shape}")
    totals = np.cumsum(terms, axis=-2)
    sums = totals.copy()
    for end in range(1, terms.shape[-2] + 1):
        before = end & (end - 1)
        if before:
            sums[..., end - 1, :] -= totals[..., before - 1, :]
    return sums


def _positive_sigmas(sigmas: ArrayLike, n: int) -> FloatArray:
    """Return one positive sigma for each of n nodes."""
    array = _validate.per_query("sigmas", sigmas, n)
    if not (array > 0).all():
        raise ValueError(f"sigmas must all be positive, got {float(array.min())!r}")
    return np.broadcast_to(array, n)
