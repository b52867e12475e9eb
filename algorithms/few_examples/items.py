"""Item-level algorithms with a known distribution.

DelStab and the reductions call these algorithms.

An item is an element of a finite universe, ``0, ..., universe - 1``. A *symmetric* algorithm
depends only on how often each item occurs, and has the method `pmf_of_counts`. Any other algorithm
has the method `pmf`, which takes the items in their order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, softmax

from algorithms.common import _validate
from algorithms.common._validate import FloatArray, IntArray
from algorithms.common.truncated_laplace import truncated_laplace_pmf
from algorithms.few_examples.populations import compositions, log_ways

SUMS_TO_ONE = 1e-9


class ItemAlgorithm(Protocol):
    """Algorithm with finitely many outcomes, 0, ..., n_outcomes - 1."""

    @property
    def universe(self) -> int:
        """Number of possible items."""

    @property
    def n_outcomes(self) -> int:
        """Number of possible outputs."""

    def pmf(self, items: IntArray) -> FloatArray:
        """Return the distribution of the output on the sequence `items`, [n], where n >= 0."""


class Symmetric(ABC):
    """An algorithm that depends only on how often each item occurs.

    The result of `pmf_of_counts` for one row of counts must be a function of this row alone, to the
    last digit. Otherwise, the calls for two datasets could disagree about which distributions are
    close.
    """

    universe: int
    n_outcomes: int

    @abstractmethod
    def pmf_of_counts(self, counts: ArrayLike) -> FloatArray:
        """Return the distributions, [..., n_outcomes], of the output on counts [..., universe]."""

    def pmf(self, items: IntArray) -> FloatArray:
        """Return the distribution of the output on `items`, [n], where n >= 0."""
        return self.pmf_of_counts(np.bincount(items, minlength=self.universe))


def known_pmf(algorithm: ItemAlgorithm, pmf: ArrayLike) -> FloatArray:
    """Return distributions of `algorithm`, [..., n_outcomes], scaled to sum to one.

    Raises
    ------
    ValueError
        If a distribution has a wrong length, has a negative or infinite entry, or does not sum to
        one.
    """
    found = np.asarray(pmf, dtype=np.float64)
    if found.shape[-1:] != (algorithm.n_outcomes,):
        raise ValueError(
            f"the pmf of {algorithm!r} must have {algorithm.n_outcomes} entries, got an "
            f"array of shape {found.shape}"
        )
    if not np.isfinite(found).all() or (found < 0).any():
        raise ValueError(f"the pmf of {algorithm!r} must be finite and at least 0, got {found}")
    sums = found.sum(axis=-1)
    if (abs(sums - 1) > SUMS_TO_ONE).any():
        raise ValueError(
            f"the pmf of {algorithm!r} must sum to one, got a sum of "
            f"{sums.flat[abs(sums - 1).argmax()]!r}"
        )
    return np.asarray(found / sums[..., None])


@dataclass(frozen=True, eq=False)
class ExponentialLearner(Symmetric):
    """The exponential mechanism over a finite class, with a score that is a sum over the items.

    The source is few_examples, Section 1.1.1 and Theorem 9 (McSherry & Talwar, 2007).

    **Guarantee** epsilon-item-level DP.

    **Departs** Scores are maximised. The paper minimises losses.

    Attributes
    ----------
    scores : ndarray, [H, universe]
        The amount that one item adds to the score of each hypothesis.
    epsilon : float
        Positive.
    """

    scores: ArrayLike
    epsilon: float
    universe: int = field(init=False)
    n_outcomes: int = field(init=False)

    def __post_init__(self) -> None:
        scores = _validate.floats("scores", self.scores, ndims=(2,)).copy()
        scores.flags.writeable = False
        _validate.keep(self, scores=scores, epsilon=_validate.positive("epsilon", self.epsilon))
        _validate.keep(self, n_outcomes=scores.shape[0], universe=scores.shape[1])

    @property
    def sensitivity(self) -> float:
        """Largest change of a score if one item is replaced."""
        return float(np.ptp(np.asarray(self.scores), axis=1).max())

    def pmf_of_counts(self, counts: ArrayLike) -> FloatArray:
        """Return probabilities proportional to exp(epsilon * score / (2 * sensitivity))."""
        totals = np.asarray(counts) @ np.asarray(self.scores).T
        rate = self.epsilon / (2 * self.sensitivity) if self.sensitivity > 0 else 0.0
        return np.asarray(softmax(rate * totals, axis=-1))


def noisy_majority(epsilon: float) -> ExponentialLearner:
    """Return the majority of bits by the exponential mechanism, which is epsilon-item-level DP.

    The probability of 1 is logistic(epsilon / 2 * lead), where the lead is the number of ones minus
    the number of zeros.
    """
    return ExponentialLearner(np.eye(2), epsilon)


@dataclass(frozen=True)
class NoisyArgmax(Symmetric):
    """Permute-and-flip for the most frequent item, which is noisy max with exponential noise.

    The source is McKenna & Sheldon (2020), Algorithm 1, and Ding et al. (2021), Theorem 1, for the
    noise.

    **Guarantee** epsilon-item-level DP.

    Attributes
    ----------
    universe : int
        At least 1.
    epsilon : float
        Positive.
    """

    universe: int
    epsilon: float
    n_outcomes: int = field(init=False)

    def __post_init__(self) -> None:
        _validate.keep(self, universe=_validate.integer("universe", self.universe, at_least=1))
        _validate.keep(self, epsilon=_validate.positive("epsilon", self.epsilon))
        _validate.keep(self, n_outcomes=self.universe)

    def pmf_of_counts(self, counts: ArrayLike) -> FloatArray:
        """Return the probability that an item is the first item whose coin is heads.

        The coins are tossed in random order. Suppose that the coins have probabilities q. Item r
        has probability q_r times the integral over u in (0, 1) of prod_(s != r) (1 - u q_s). The
        integrand is a polynomial, which a Gauss rule integrates exactly.
        """
        totals = np.asarray(counts, dtype=np.float64)
        coins = np.exp(self.epsilon / 2 * (totals - totals.max(axis=-1, keepdims=True)))
        nodes, weights = np.polynomial.legendre.leggauss(self.universe // 2 + 1)
        tails = 1 - (nodes[:, None] + 1) / 2 * coins[..., None, :]  # [..., node, item]
        others = np.stack(
            [np.delete(tails, r, axis=-1).prod(axis=-1) for r in range(self.universe)], axis=-1
        )
        found = coins * np.einsum("i,...ir->...r", weights / 2, others)
        return np.asarray(found / found.sum(axis=-1, keepdims=True))


@dataclass(frozen=True)
class HeavyItems(Symmetric):
    """Set of items whose noisy count reaches a share of all items.

    The outcome is the sum of 2**item over the set. The mechanism compares a noisy histogram with a
    threshold. The noise is two-sided geometric noise (Ghosh, Roughgarden & Sundararajan, 2009).

    **Guarantee** epsilon-item-level DP. Replacing an item moves two counts by 1, and each count has
    noise for epsilon / 2.

    Attributes
    ----------
    universe : int
        At least 1, at most 16.
    epsilon : float
        Positive.
    share : float
        Share of all items that makes an item heavy, in (0, 1).
    """

    universe: int
    epsilon: float
    share: float
    n_outcomes: int = field(init=False)

    def __post_init__(self) -> None:
        _validate.keep(self, universe=_validate.integer("universe", self.universe, at_least=1))
        if self.universe > 16:
            raise ValueError(f"universe must be at most 16, got {self.universe!r}")
        _validate.keep(self, epsilon=_validate.positive("epsilon", self.epsilon))
        _validate.keep(self, share=_validate.probability("share", self.share))
        _validate.keep(self, n_outcomes=2**self.universe)

    def pmf_of_counts(self, counts: ArrayLike) -> FloatArray:
        """Return the probability of each set, a product of tails of the noise of the counts."""
        totals = np.asarray(counts)
        reached = self.share * totals.sum(axis=-1, keepdims=True)
        needed = (
            np.ceil(reached * (1 - 1e-12)) - totals
        )  # a product that rounds up must not raise the bound
        ratio = np.exp(-self.epsilon / 2)
        over = np.where(
            needed > 0,
            ratio ** np.maximum(needed, 0) / (1 + ratio),
            1 - ratio ** np.maximum(1 - needed, 0) / (1 + ratio),
        )
        found = np.ones((*totals.shape[:-1], 1))
        for item in range(self.universe):
            heavy = over[..., item, None]
            found = np.concatenate([found * (1 - heavy), found * heavy], axis=-1)
        return found


@dataclass(frozen=True)
class TruncatedMajority(Symmetric):
    """Majority of bits, by a count with truncated discrete Laplace noise.

    **Guarantee** (epsilon, delta)-item-level DP (few_examples, Definition 8).

    Attributes
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1).
    """

    epsilon: float
    delta: float
    universe: int = field(init=False, default=2)
    n_outcomes: int = field(init=False, default=2)

    def __post_init__(self) -> None:
        truncated_laplace_pmf(self.epsilon, self.delta)  # refuses values out of range

    def pmf_of_counts(self, counts: ArrayLike) -> FloatArray:
        """Return the probabilities of 0 and 1, from the tail of the noise."""
        totals = np.asarray(counts)
        noise = truncated_laplace_pmf(self.epsilon, self.delta)
        kappa = noise.size // 2
        tails = np.append(np.cumsum(noise[::-1])[::-1], 0.0)  # probabilities of noise >= index
        needed = totals.sum(axis=-1) // 2 + 1 - totals[..., 1] + kappa
        one = np.minimum(tails[np.clip(needed, 0, noise.size)], 1.0)
        return np.stack([1 - one, one], axis=-1)


@dataclass(frozen=True)
class AlternatingMajority:
    """Comparison of the numbers of ones at even positions and at odd positions.

    **Guarantee** epsilon-item-level DP. The algorithm is the exponential mechanism with scores s
    and -s, where s is half of the alternating sum.

    Attributes
    ----------
    epsilon : float
        Positive.
    """

    epsilon: float
    universe: int = field(init=False, default=2)
    n_outcomes: int = field(init=False, default=2)

    def __post_init__(self) -> None:
        _validate.keep(self, epsilon=_validate.positive("epsilon", self.epsilon))

    def pmf(self, items: IntArray) -> FloatArray:
        """Return the distribution, which is logistic in epsilon times the alternating sum."""
        one = float(expit(self.epsilon * (items[::2].sum() - items[1::2].sum())))
        return np.array([1 - one, one])


@dataclass(frozen=True)
class FunctionAlgorithm:
    """Function that returns a distribution, which may depend on the order of the items.

    Attributes
    ----------
    function : callable
        Function that maps items [n] to probabilities [n_outcomes].
    universe : int
        At least 1.
    n_outcomes : int
        At least 1.
    """

    function: Callable[[IntArray], ArrayLike]
    universe: int
    n_outcomes: int

    def __post_init__(self) -> None:
        _validate.keep(self, universe=_validate.integer("universe", self.universe, at_least=1))
        _validate.keep(
            self, n_outcomes=_validate.integer("n_outcomes", self.n_outcomes, at_least=1)
        )

    def pmf(self, items: IntArray) -> FloatArray:
        """Return the checked result of the function."""
        return known_pmf(self, self.function(items))


@dataclass(frozen=True)
class Subsampled(Symmetric):
    """A symmetric algorithm on a subsample without replacement.

    The source is few_examples, Theorem 7 and Appendix C.2.

    **Guarantee** Epsilon is `subsampling.amplified_epsilon`. Delta is sample / population times the
    delta of the base.

    **Departs** The subsample has no order (see `subsampling.on_subsample`).

    Attributes
    ----------
    base : Symmetric
        The algorithm that runs on the subsample.
    sample : int
        Size of the subsample, at least 0. Least number of items of an input.
    """

    base: Symmetric
    sample: int
    universe: int = field(init=False)
    n_outcomes: int = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.base, Symmetric):
            raise TypeError(f"base must be a symmetric algorithm, got {self.base!r}")
        _validate.keep(self, sample=_validate.integer("sample", self.sample, at_least=0))
        _validate.keep(self, universe=self.base.universe, n_outcomes=self.base.n_outcomes)

    def pmf_of_counts(self, counts: ArrayLike) -> FloatArray:
        """Return the mixture over all subsamples, weighted by how often their counts occur."""
        totals = np.asarray(counts)
        rows = totals.reshape(-1, self.universe)
        if (rows.sum(axis=1) < self.sample).any():
            raise ValueError(
                f"sample must be at most {rows.sum(axis=1).min()}, the number of items, got "
                f"{self.sample}"
            )
        mixed = np.empty((len(rows), self.n_outcomes))
        for place, row in enumerate(rows):
            parts = compositions(self.sample, row)
            chances = softmax(log_ways(row, parts))  # all ways are equally likely
            mixed[place] = chances @ known_pmf(self.base, self.base.pmf_of_counts(parts))
        return mixed.reshape(*totals.shape[:-1], self.n_outcomes)
