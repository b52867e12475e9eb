"""ClippedPairwiseEM, the exponential mechanism on comparisons that are clipped for each user."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._validate import FloatArray, IntArray
from algorithms.common.selection import exponential_mechanism, exponential_pmf
from algorithms.few_examples.populations import items_of
from algorithms.few_examples.representations import hypotheses_of

_CELLS = 2**22


class Comparison(Protocol):
    """Comparison psi_{H, H'} of two candidates, between -1 and 1.

    The value says how much worse H is than H'.
    """

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""

    def users_of(self, data: Any) -> Any:
        """Return the validated data, with one row for each user."""

    def of_users(self, users: Any) -> FloatArray:
        """Return pscr_{H, H'} of each user, [n, H, H'].

        This value is the sum of psi over the user's items.
        """


@dataclass(frozen=True, eq=False)
class TableComparison:
    """Any comparison of items of a finite universe.

    Attributes
    ----------
    psi : ndarray, [H, H, universe]
        Values between -1 and 1. The diagonal is not used.
    """

    psi: ArrayLike

    def __post_init__(self) -> None:
        psi = _validate.floats("psi", self.psi, ndims=(3,))
        if psi.shape[0] != psi.shape[1]:
            raise ValueError(f"psi must have shape [H, H, universe], got shape {psi.shape}")
        if abs(psi).max() > 1:
            raise ValueError(f"psi must lie between -1 and 1, got {psi.flat[abs(psi).argmax()]}")
        _validate.keep(self, psi=psi)

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return int(np.shape(self.psi)[0])

    def users_of(self, data: Any) -> IntArray:
        """Return how often each user has each item, [n, universe]."""
        universe = np.shape(self.psi)[2]
        items = items_of(data, universe)
        return np.asarray((items[:, :, None] == np.arange(universe)).sum(axis=1))

    def of_users(self, users: IntArray) -> FloatArray:
        """Return pscr_{H, H'} of each user, [n, H, H']."""
        psi: FloatArray = np.asarray(self.psi)
        table = psi.reshape(-1, psi.shape[2])
        return np.asarray(users.astype(np.float64) @ table.T).reshape(-1, *psi.shape[:2])


@dataclass(frozen=True, eq=False)
class ErrorComparison:
    """Comparison of the errors of two hypotheses: psi_{c, c'} = 1[c(x) != y] - 1[c'(x) != y].

    The source is few_examples, proof of Theorem 40.

    **Departs** The paper prints 1[c(x) = y] - 1[c'(x) = y], which has the other sign. With the
    printed sign, the mechanism chooses the hypothesis with the most errors. Equation (14) uses the
    sign of this class.

    Attributes
    ----------
    hypotheses : ndarray of int, [H, n_points]
        Labels 0 and 1.
    """

    hypotheses: ArrayLike

    def __post_init__(self) -> None:
        _validate.keep(self, hypotheses=hypotheses_of("hypotheses", self.hypotheses))

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return int(np.shape(self.hypotheses)[0])

    def users_of(self, data: Any) -> IntArray:
        """Return how often each hypothesis errs on each user, [n, H]."""
        return errors_of_users(data, np.asarray(self.hypotheses))

    def of_users(self, users: IntArray) -> FloatArray:
        """Return pscr_{c, c'} of each user, [n, H, H]."""
        return (users[:, :, None] - users[:, None, :]).astype(np.float64)


def errors_of_users(data: Any, hypotheses: ArrayLike) -> IntArray:
    """Return how often each hypothesis errs on each user's examples, [n, H].

    Parameters
    ----------
    data : array_like of int, [n, m, 2]
        Examples (x, y) of n users, where x is a point and y is its label.
    hypotheses : array_like of int, [H, n_points]
        Labels 0 and 1.
    """
    examples = _validate.integers("data", data, ndims=(3,), low=0)
    if examples.shape[2] != 2:
        raise ValueError(f"data must have shape [n, m, 2], got shape {examples.shape}")
    hypotheses = hypotheses_of("hypotheses", hypotheses)
    points = _validate.integers(
        "points in data", examples[:, :, 0], ndims=(2,), low=0, high=hypotheses.shape[1] - 1
    )
    labels = _validate.integers("labels in data", examples[:, :, 1], ndims=(2,), low=0, high=1)
    return np.stack([(one[points] != labels).sum(axis=1) for one in hypotheses], axis=1)


def clipped_scores(data: Any, *, comparison: Comparison, threshold: float) -> FloatArray:
    """Return scr_H, the loss of each candidate in the worst comparison of clipped sums.

    The source is few_examples, Appendix E.1.

    **Guarantee** One user moves each score by at most 2 * threshold.

    **Departs** If there is a single candidate, no comparison is possible, and the score is 0.

    **Symbols** tau = `threshold`.

    Parameters
    ----------
    data : array_like
        Users' items, in the form that `comparison` accepts.
    comparison : Comparison
    threshold : float
        Positive. If the threshold is at least m, nothing is clipped.

    Returns
    -------
    ndarray, [H]
    """
    threshold = _validate.positive("threshold", threshold)
    users, candidates = comparison.users_of(data), comparison.n_candidates
    rows = max(1, _CELLS // candidates**2)
    total = np.zeros((candidates, candidates))
    for first in range(0, len(users), rows):
        compared = comparison.of_users(users[first : first + rows])
        total += np.clip(compared, -threshold, threshold).sum(axis=0)
    if candidates == 1:
        return np.zeros(1)
    np.fill_diagonal(total, -np.inf)
    return np.asarray(total.max(axis=1))


def clipped_pairwise_pmf(
    data: Any, *, comparison: Comparison, threshold: float, epsilon: float
) -> FloatArray:
    """Return the distribution of ClippedPairwiseEM, [H].

    The source is few_examples, Appendix E.1. The algorithm is the exponential mechanism on
    `clipped_scores`, where Delta = 2 tau.

    **Guarantee** epsilon-user-level DP (Theorem 37).

    **Requires** that `comparison` processes users one by one and returns numbers. The sums are
    clipped whatever values `comparison` returns.

    **Departs** See `clipped_scores`. In floating point, a probability below 5e-324 is 0. Such small
    probabilities can occur only for epsilon n above 1,400.

    **Symbols** tau = `threshold`, psi = `comparison`, H = the candidates of `comparison`.

    Parameters
    ----------
    data : array_like
        Users' items, in the form that `comparison` accepts.
    comparison : Comparison
    threshold : float
        Positive clipping threshold tau.
    epsilon : float
        Positive.

    Returns
    -------
    ndarray, [H]
    """
    scores = clipped_scores(data, comparison=comparison, threshold=threshold)
    return exponential_pmf(-scores, sensitivity=2 * threshold, epsilon=epsilon)


def clipped_pairwise_em(
    data: Any,
    size: int,
    *,
    comparison: Comparison,
    threshold: float,
    epsilon: float,
    rng: np.random.Generator,
) -> IntArray:
    """Run ClippedPairwiseEM (few_examples, Appendix E.1).

    **Guarantee**, **Requires**, **Departs**, **Symbols** See `clipped_pairwise_pmf`. This function
    draws from the distribution that `clipped_pairwise_pmf` returns.

    Parameters
    ----------
    data : array_like
        Users' items, in the form that `comparison` accepts.
    size : int
        Number of independent draws.
    comparison : Comparison
    threshold : float
        Positive clipping threshold tau.
    epsilon : float
        Positive.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of int64, [size]
        Indices of candidates.
    """
    scores = clipped_scores(data, comparison=comparison, threshold=threshold)
    return exponential_mechanism(-scores, size, sensitivity=2 * threshold, epsilon=epsilon, rng=rng)


def pairwise_threshold(alpha: float, m: int, *, constant: float = 5.71) -> float:
    """Return tau = C (alpha m + sqrt(m ln(1/alpha))) (few_examples, proof of Theorem 37).

    **Departs** The paper hides the constant. With the constant 5.71, (12) holds for all alpha up to
    1/2, even without the term alpha m. With the term alpha m, the constant 3.76 is enough. If tau
    is below m, the constant 2.89 is enough. In this function, tau is also at most m, because
    nothing is clipped above m. With the constant 5.71, tau is m for all m up to 32 ln(1/alpha). If
    alpha > 0.175, tau is m for all m.

    Parameters
    ----------
    alpha : float
        In (0, 1/2].
    m : int
        Items of each user, at least 1.
    constant : float, default 5.71
        Positive constant C.

    Returns
    -------
    float
    """
    alpha, m = _accuracy(alpha), _validate.integer("m", m, at_least=1)
    constant = _validate.positive("constant", constant)
    return min(float(m), constant * (alpha * m + math.sqrt(-m * math.log(alpha))))


def pairwise_users(
    n_candidates: int, *, alpha: float, beta: float, epsilon: float, m: int, threshold: float
) -> int:
    """Return a number of users that is enough for Theorem 37, with all constants explicit.

    The source is few_examples, proof of Theorem 37, with the constants that the steps of the proof
    need. The exponential mechanism needs 40 tau ln(3 abs(H) / beta) / (epsilon alpha m). Equation
    (10) needs 800 ln(6 abs(H)^2 / beta) / (alpha^2 m), because the exponent in (10) is 0.00125 and
    not 0.025.

    Parameters
    ----------
    n_candidates : int
        At least 1.
    alpha, beta : float
        Accuracy in (0, 1/2] and probability of failure in (0, 1).
    epsilon : float
        Positive.
    m : int
        Items of each user, at least 1.
    threshold : float
        tau, such that (12) holds (see `pairwise_threshold`).

    Returns
    -------
    int
    """
    n_candidates = _validate.integer("n_candidates", n_candidates, at_least=1)
    alpha, beta = _accuracy(alpha), _validate.probability("beta", beta)
    epsilon, m = _validate.positive("epsilon", epsilon), _validate.integer("m", m, at_least=1)
    threshold = _validate.positive("threshold", threshold)
    private = 40 * threshold * math.log(3 * n_candidates / beta) / (epsilon * alpha * m)
    sampled = 800 * math.log(6 * n_candidates**2 / beta) / (alpha**2 * m)
    return math.ceil(max(private, sampled))


def _accuracy(alpha: float) -> float:
    alpha = _validate.probability("alpha", alpha)
    if alpha > 0.5:
        raise ValueError(f"alpha must be at most 1/2, got {alpha!r}")
    return alpha
