"""Oracles of sparse vector and AboveThreshold: the exact distribution of the answer pattern."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import _validate
from dpaudit.errors import ArgumentError
from dpaudit.stats.oracles._core import DiscreteOracle, Floats, same_length, vector
from dpaudit.stats.oracles._quadrature import STEEPNESS, graded_edges, on_panels

Answer = Literal["yes", "no"]
Walked: TypeAlias = tuple[list[tuple[int, ...]], list[float]]

_MAX_PATTERNS = 65_536
_MAX_NODES = 4_000_000
_CHUNK = 4_000_000  # Largest number of queries times nodes that is in memory at a time.
_WIDTH = 760.0  # A double cannot represent e^-760.
_NEGLIGIBLE = 45.0  # e^-45 of what is kept is far below rounding.


class PatternDistribution(NamedTuple):
    """Answer patterns of a run of sparse vector, and the probabilities of the patterns.

    Attributes
    ----------
    patterns : tuple of tuple of int
        One entry per query: 1 for yes, 0 for no, and -1 if the query was never asked. The patterns
        include all patterns that the halting rule permits, even those of probability 0, in
        lexicographic order (no before yes).
    probabilities : ndarray, shape (len(patterns),)
        Probabilities of the patterns, which sum to 1 within 1e-10.
    """

    patterns: tuple[tuple[int, ...], ...]
    probabilities: Floats


def sparse_vector_patterns(
    queries: ArrayLike,
    *,
    thresholds: ArrayLike,
    threshold_scale: float,
    query_scale: float,
    cutoff: int | None = None,
    halt_on: Answer = "yes",
) -> PatternDistribution:
    """Return the exact distribution of the answers of a sparse vector algorithm with Laplace noise.

    The answer to query i is yes if ``q_i + nu_i >= T_i + rho``. The whole run has one ``rho ~
    Laplace(threshold_scale)``, and each query has a new ``nu_i ~ Laplace(query_scale)``. Given rho,
    the answers are independent, so a pattern has probability ``integral f(r) prod_i P(answer_i |
    rho = r) dr``. The integral uses Gauss-Legendre panels between the kinks 0 and ``q_i - T_i``.
    Every term of the quadrature is positive. The relative error is below 1e-10 for every pattern
    whose probability a double can hold, and usually below 1e-12. If one of the two noises is
    missing, the distribution has a closed form.

    Parameters
    ----------
    queries : array_like, shape (T,)
        Query values.
    thresholds : float or array_like, shape (T,)
        One threshold for all queries, or one threshold for each query.
    threshold_scale, query_scale : float
        Laplace scales, >= 0. A scale of 0 means no noise.
    cutoff : int, optional
        The run stops after this many answers that equal `halt_on`. By default, the run never stops
        early.
    halt_on : {"yes", "no"}
        The answer that is counted.

    Returns
    -------
    PatternDistribution
        The result has at most 65,536 patterns. More patterns raise an error.

    References
    ----------
    .. [1] M. Lyu, D. Su, N. Li, "Understanding the sparse vector technique for differential
       privacy", PVLDB 10 (2017), proof of Theorem 2.

    Examples
    --------
    >>> distribution = sparse_vector_patterns(
    ...     [0.0, 0.0], thresholds=0.0, threshold_scale=1.0, query_scale=1.0, cutoff=1
    ... )
    >>> distribution.patterns, [round(float(p), 12) for p in distribution.probabilities]
    (((0, 0), (0, 1), (1, -1)), [0.333333333333, 0.166666666667, 0.5])
    """
    q = vector("queries", queries)
    if np.ndim(thresholds) == 0:
        thresholds = np.full(q.size, _validate.finite(thresholds=thresholds))
    t = vector("thresholds", thresholds)
    same_length("thresholds", t, "queries", q)
    a = _validate.nonnegative(threshold_scale=threshold_scale)
    b = _validate.nonnegative(query_scale=query_scale)
    counted = 1 if _validate.choice(("yes", "no"), halt_on=halt_on) == "yes" else 0
    limit = q.size + 1 if cutoff is None else _validate.integer(1, cutoff=cutoff)
    count = _count_patterns(q.size, limit)
    if count > _MAX_PATTERNS:
        raise ArgumentError(
            f"queries must allow at most {_MAX_PATTERNS} answer patterns, got "
            f"{q.size} queries with cutoff={cutoff!r}, which allow {count}"
        )
    nodes, weights = _threshold_noise(q - t, a, b, q.size)
    distribution, step = np.zeros(count), max(1, _CHUNK // q.size)
    for start in range(0, nodes.size, step):
        part = slice(start, start + step)
        yes, no = _answer_probabilities(q - t, nodes[part], b)
        patterns, probabilities = _walk(yes, no, weights[part], limit, counted)
        distribution += probabilities
    distribution.setflags(write=False)
    return PatternDistribution(tuple(patterns), distribution)


def above_threshold(
    queries_left: ArrayLike,
    queries_right: ArrayLike,
    *,
    threshold: float,
    epsilon: float,
    sensitivity: float = 1.0,
) -> DiscreteOracle:
    """Return the oracle of AboveThreshold that continues after yes and halts at the first no.

    The threshold noise is ``Laplace(2 * sensitivity / epsilon)``, and the query noise is
    ``Laplace(4 * sensitivity / epsilon)``. The algorithm is (epsilon, 0)-DP if each query value
    moves by at most `sensitivity`, which the caller promises.

    Parameters
    ----------
    queries_left, queries_right : array_like, shape (T,)
        Query values on either input.
    threshold : float
        Query values are finite.
    epsilon, sensitivity : float
        Epsilon and sensitivity, finite and > 0.

    Returns
    -------
    DiscreteOracle
        The ``outcomes`` of the oracle are the T + 1 answer patterns, as described in
        `PatternDistribution`.

    References
    ----------
    .. [1] The user-level SCO paper, Algorithm 3 and Lemma 17.
    .. [2] C. Dwork, A. Roth, "The algorithmic foundations of differential privacy", 2014,
       Algorithm 1 and Theorem 3.23.

    Examples
    --------
    >>> oracle = above_threshold([0.0, 0.0], [1.0, -1.0], threshold=0.0, epsilon=1.0)
    >>> oracle.outcomes
    ((0, -1), (1, 0), (1, 1))
    >>> 0.0 < oracle.epsilon(0.0) <= 1.0
    True
    """
    unit = _validate.positive(sensitivity=sensitivity) / _validate.positive(epsilon=epsilon)
    level = _validate.finite(threshold=threshold)
    return _pair(
        ("queries_left", queries_left),
        ("queries_right", queries_right),
        thresholds=level,
        threshold_scale=2.0 * unit,
        query_scale=4.0 * unit,
        cutoff=1,
        halt_on="no",
    )


def fixed_threshold_sparse_vector(
    queries_left: ArrayLike,
    queries_right: ArrayLike,
    *,
    thresholds: ArrayLike,
    cutoff: int,
    epsilon: float,
) -> DiscreteOracle:
    """Return the oracle of sparse vector without threshold noise that stops after `cutoff` yes.

    The query noise is ``Laplace(1 / epsilon)``. Until the stop, the answers are independent, so the
    distribution of the pattern is a product in closed form.

    Parameters
    ----------
    queries_left, queries_right : array_like, shape (T,)
        Query values on either input.
    thresholds : float or array_like, shape (T,)
        One threshold for all queries, or one threshold for each query.
    cutoff : int
        Number of yes answers after which the algorithm stops, >= 1.
    epsilon : float
        Epsilon, finite and > 0.

    Returns
    -------
    DiscreteOracle
        The ``outcomes`` of the oracle are the answer patterns, as described in
        `PatternDistribution`.

    Examples
    --------
    >>> oracle = fixed_threshold_sparse_vector([0.0], [1.0], thresholds=1.0, cutoff=1, epsilon=2.0)
    >>> [round(float(p), 12) for p in oracle.pmf_left], round(oracle.epsilon(0.0), 12)
    ([0.932332358382, 0.067667641618], 2.0)
    """
    return _pair(
        ("queries_left", queries_left),
        ("queries_right", queries_right),
        thresholds=thresholds,
        threshold_scale=0.0,
        query_scale=1.0 / _validate.positive(epsilon=epsilon),
        cutoff=_validate.integer(1, cutoff=cutoff),
        halt_on="yes",
    )


def _pair(
    left: tuple[str, ArrayLike],
    right: tuple[str, ArrayLike],
    *,
    thresholds: ArrayLike,
    threshold_scale: float,
    query_scale: float,
    cutoff: int,
    halt_on: Answer,
) -> DiscreteOracle:
    values = [vector(*left), vector(*right)]
    same_length(right[0], values[1], left[0], values[0])
    distributions = [
        sparse_vector_patterns(
            value,
            thresholds=thresholds,
            threshold_scale=threshold_scale,
            query_scale=query_scale,
            cutoff=cutoff,
            halt_on=halt_on,
        )
        for value in values
    ]
    return DiscreteOracle(
        distributions[0].probabilities, distributions[1].probabilities, distributions[0].patterns
    )


def _count_patterns(length: int, limit: int) -> int:
    """Count patterns of `length` binary answers that stop at the `limit`-th counted answer."""
    if limit > length:
        return 1 << length
    alive, halted = [1] + [0] * (limit - 1), 0  # alive: by number of counted answers so far
    for _ in range(length):
        halted += alive[-1]
        alive = [alive[0], *(alive[i] + alive[i - 1] for i in range(1, limit))]
        if halted > _MAX_PATTERNS:
            break
    return halted + sum(alive)


def _threshold_noise(gaps: Floats, a: float, b: float, size: int) -> tuple[Floats, Floats]:
    """Return nodes for rho and their weights, which include f(rho).

    `gaps` are the kinks q_i - T_i.
    """
    if a == 0.0:
        return np.zeros(1), np.ones(1)
    if b == 0.0:  # the answers are constant between the kinks: one node each, exact weight
        kinks = np.unique(gaps)
        edges = np.concatenate(([-np.inf], kinks, [np.inf]))
        inner = kinks[:-1] + np.diff(kinks) / 2.0
        nodes = np.concatenate(([kinks[0] - 1.0 - abs(kinks[0])], inner, [np.inf]))
        return nodes, _laplace_masses(edges / a)
    kinks = np.append(gaps, 0.0)
    reach = a * min(_WIDTH, _NEGLIGIBLE + size)
    fine = STEEPNESS / (1.0 / a + size / b)
    edges = graded_edges(
        kinks,
        max(float(kinks.min()) - reach, -_WIDTH * a),
        min(float(kinks.max()) + reach, _WIDTH * a),
        fine=fine,
        near=_NEGLIGIBLE * b,
        coarse=max(fine, 20.0 * a),
    )
    nodes, weights = on_panels(edges)
    if nodes.size > _MAX_NODES:
        raise ArgumentError(
            f"queries must need at most {_MAX_NODES:,} quadrature nodes, got {size} queries that "
            f"need {nodes.size:,}. Use fewer queries, or a smaller spread"
        )
    with np.errstate(under="ignore"):
        weights = weights * np.exp(-np.abs(nodes) / a) * (0.5 / a)
        kept = weights > 0
    return nodes[kept], weights[kept]


def _laplace_masses(edges: Floats) -> Floats:
    """Return probabilities of intervals under standard Laplace noise, accurate in the tails."""
    low, high = edges[:-1], edges[1:]
    with np.errstate(under="ignore", invalid="ignore", over="ignore"):
        near = np.minimum(np.abs(low), np.abs(high))
        one_side = 0.5 * np.exp(-near) * -np.expm1(-(high - low))
        both = -0.5 * (np.expm1(-np.abs(low)) + np.expm1(-np.abs(high)))
    return np.where((low < 0) & (high > 0), both, one_side)


def _answer_probabilities(gaps: Floats, nodes: Floats, b: float) -> tuple[Floats, Floats]:
    """Return P(yes) and P(no), shape (queries, nodes), where yes means q + nu >= T + rho."""
    if b == 0.0:
        answer = (gaps[:, None] >= nodes).astype(np.float64)
        return answer, 1.0 - answer
    with np.errstate(under="ignore"):
        z = (nodes - gaps[:, None]) / b
        tail = 0.5 * np.exp(-np.abs(z))
    return np.where(z > 0, tail, 1.0 - tail), np.where(z > 0, 1.0 - tail, tail)


def _walk(yes: Floats, no: Floats, weights: Floats, limit: int, counted: int) -> Walked:
    """Enumerate the answers depth-first.

    Each path has its own weight at every node.
    """
    length = len(yes)
    patterns: list[tuple[int, ...]] = []
    probabilities: list[float] = []
    stack: list[tuple[tuple[int, ...], int, Floats]] = [((), 0, weights)]
    with np.errstate(under="ignore"):
        while stack:
            answers, hits, mass = stack.pop()
            if len(answers) == length or hits == limit:
                patterns.append(answers + (-1,) * (length - len(answers)))
                probabilities.append(float(mass.sum()))
                continue
            here = len(answers)
            for answer, factor in ((1, yes), (0, no)):  # the stack yields no first
                hit = hits + (answer == counted)
                stack.append(((*answers, answer), hit, mass * factor[here]))
    return patterns, probabilities
