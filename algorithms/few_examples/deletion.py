"""DelStab (Algorithm 1), user-level DP by deletion for algorithms with a known distribution."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from algorithms.common import _validate
from algorithms.common._validate import FloatArray, IntArray
from algorithms.common.truncated_laplace import (
    truncated_laplace,
    truncated_laplace_pmf,
    truncation,
)
from algorithms.few_examples.items import ItemAlgorithm, Symmetric, known_pmf
from algorithms.few_examples.populations import (
    MOST_VECTORS,
    compositions,
    items_of,
    log_ways,
    user_kinds,
)

MOST_ENUMERATED = 23
"""Largest number of users for which all subsets are enumerated, if `algorithm` is not symmetric."""

MOST_SUBSETS = 2000
"""Largest number of sets of users on which an algorithm that is not symmetric may finally run."""

MOST_TOTALS = 4000
"""Largest number of vectors of item counts on which a symmetric algorithm may finally run."""

MOST_RESTS = 30_000
"""Largest number of ways in which these vectors of counts can arise."""

_CELLS = 2**22

BoolArray = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class Budget:
    """Split of (epsilon, delta) in DelStab, line 3 of Algorithm 1.

    **Departs** The argument `sharp` is not in the paper. The paper prints exp(epsilon) in
    delta-bar, but the proof needs only exp(epsilon-bar). So if `sharp` is True, every outcome has a
    slightly smaller privacy loss.

    **Symbols** epsilon-bar = `part_epsilon`, delta-bar = `part_delta`, kappa = `kappa`.

    Attributes
    ----------
    epsilon : float
        Parameter of the whole mechanism, positive.
    delta : float
        Parameter of the whole mechanism, in (0, 1).
    sharp : bool, default False
        Whether to take delta-bar = delta / (exp(2 epsilon-bar) + exp(epsilon-bar) + 2).
    """

    epsilon: float
    delta: float
    sharp: bool = False
    part_epsilon: float = field(init=False)
    part_delta: float = field(init=False)
    kappa: int = field(init=False)

    def __post_init__(self) -> None:
        epsilon = _validate.positive("epsilon", self.epsilon)
        delta = _validate.probability("delta", self.delta)
        if epsilon > 300 or delta < 1e-100:
            raise ValueError(
                "epsilon must be at most 300 and delta must be at least 1e-100, got epsilon "
                f"= {epsilon!r} and delta = {delta!r}"
            )
        if not isinstance(self.sharp, bool):
            raise TypeError(f"sharp must be True or False, got {self.sharp!r}")
        part = epsilon / 3
        third = part if self.sharp else epsilon
        share = delta / (math.exp(2 * part) + math.exp(third) + 2)
        _validate.keep(self, epsilon=epsilon, delta=delta, part_epsilon=part, part_delta=share)
        _validate.keep(self, kappa=truncation(part, share))

    @property
    def deleted(self) -> int:
        """Number 4 kappa of users that are deleted, which is also the least number of users."""
        return 4 * self.kappa

    @property
    def noise(self) -> FloatArray:
        """Return the distribution of R_1 over 0, ..., 2 kappa."""
        return truncated_laplace_pmf(self.part_epsilon, self.part_delta)


def delstab_pmf(
    data: Any, *, algorithm: ItemAlgorithm, epsilon: float, delta: float, sharp: bool = False
) -> FloatArray:
    """Return the exact distribution of DelStab's output.

    The source is few_examples, Algorithm 1.

    **Guarantee** (epsilon, delta)-user-level DP (Lemma 18), for every `algorithm`.

    **Requires** for privacy that the answer of `algorithm` depends only on the items. Privacy needs
    no other condition. See `Symmetric` about rounding. Whether an input is refused depends only on
    n, m, the universe and the budget. The guarantee does not cover time and memory. To give an
    answer, `algorithm` must be stable (Lemma 19). A stable algorithm is item-level DP with a small
    epsilon. A stable algorithm is also symmetric, because deletion moves all later users.

    **Departs** (1) Line 6 prints abs(X_stable) = {} for X_stable = {}. (2) The sequence x_{-S}
    keeps the order of the remaining users. Algorithm 1 does not specify an order. (3) For a
    symmetric algorithm, users are counted by their kinds. For any other algorithm, all subsets of
    at most `MOST_ENUMERATED` users are enumerated.

    **Symbols** A = `algorithm`, bottom = the last outcome.

    Parameters
    ----------
    data : array_like of int, [n, m]
        Items of n >= 4 kappa users, in 0, ..., universe - 1.
    algorithm : ItemAlgorithm
        Algorithm that receives the items of n - 4 kappa users.
    epsilon, delta : float
        Parameters of the whole mechanism. Epsilon is positive, and delta is in (0, 1).
    sharp : bool, default False
        See `Budget`.

    Returns
    -------
    ndarray, [algorithm.n_outcomes + 1]
        Probabilities. The last probability is the probability that there is no answer.
    """
    budget = Budget(epsilon, delta, sharp)
    deletions = Deletions.of(data, algorithm, budget)
    outputs = np.array([deletions.output(r) for r in range(2 * budget.kappa + 1)])
    return np.asarray(budget.noise @ outputs)


def delstab(
    data: Any,
    size: int,
    *,
    algorithm: ItemAlgorithm,
    epsilon: float,
    delta: float,
    sharp: bool = False,
    rng: np.random.Generator,
) -> IntArray:
    """Run DelStab (few_examples, Algorithm 1) step by step.

    **Guarantee**, **Requires**, **Departs**, **Symbols** See `delstab_pmf`. This function draws
    from the distribution that `delstab_pmf` returns.

    Parameters
    ----------
    data : array_like of int, [n, m]
        Items of n >= 4 kappa users, in 0, ..., universe - 1.
    size : int
        Number of independent draws.
    algorithm : ItemAlgorithm
        Algorithm that receives the items of n - 4 kappa users.
    epsilon, delta : float
        Parameters of the whole mechanism. Epsilon is positive, and delta is in (0, 1).
    sharp : bool, default False
        See `Budget`.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of int64, [size]
        Outcomes. The outcome `algorithm.n_outcomes` stands for no answer.
    """
    rng, size = _validate.generator(rng), _validate.draws(size)
    budget = Budget(epsilon, delta, sharp)
    deletions = Deletions.of(data, algorithm, budget)
    targets = truncated_laplace(  # line 4
        size, epsilon=budget.part_epsilon, delta=budget.part_delta, rng=rng
    )
    outputs = np.full(size, algorithm.n_outcomes, dtype=np.int64)
    for target in np.unique(targets):
        if deletions.answers(int(target)):  # lines 6 and 7
            drawn = np.flatnonzero(targets == target)
            kept = deletions.draw(int(target), drawn.size, rng=rng)
            outputs[drawn] = _inverse(np.cumsum(deletions.pmfs[kept], axis=1), rng)  # line 10
    return outputs


def is_locally_private(
    data: Any, *, algorithm: ItemAlgorithm, removed: int, epsilon: float, delta: float
) -> bool:
    """Return whether an algorithm is (r, epsilon, delta)-local-deletion DP at a dataset.

    The function tests few_examples, Definition 16, exactly.

    **Departs** Nothing. If r is 0, the result is always True.

    **Symbols** r = `removed`, x = `data`.

    Parameters
    ----------
    data : array_like of int, [n, m]
        Items, in 0, ..., universe - 1.
    algorithm : ItemAlgorithm
        Algorithm that receives the items of n - r users.
    removed : int
        From 0 to n.
    epsilon, delta : float
        Parameters of the comparison, at least 0.

    Returns
    -------
    bool
    """
    items = items_of(data, algorithm.universe)
    removed = _validate.integer("removed", removed, at_least=0)
    if removed > len(items):
        raise ValueError(f"removed must be at most n = {len(items)}, got {removed}")
    epsilon, delta = (
        _validate.nonnegative("epsilon", epsilon),
        _validate.nonnegative("delta", delta),
    )
    found = deletions_of(items, algorithm, len(items) - removed, epsilon, delta)
    return found.answers(0)


class Deletions(ABC):
    """Sets of users that remain after deletion, and the pairs of sets with close distributions.

    A *rest* is a set of `keep` users on which the algorithm may run at the end. Given a deleted
    set, consider the rests within the remaining users. The deleted set is stable if the algorithm's
    distributions on every two of these rests are close.
    """

    pmfs: FloatArray
    """The algorithm's distribution on each rest, [rests, n_outcomes]."""

    @staticmethod
    def of(data: Any, algorithm: ItemAlgorithm, budget: Budget) -> Deletions:
        """Return the deletions of a dataset of at least 4 kappa users."""
        items = items_of(data, algorithm.universe)
        if len(items) < budget.deleted:
            raise ValueError(
                f"data must have at least 4 kappa = {budget.deleted} users for epsilon = "
                f"{budget.epsilon:g} and delta = {budget.delta:g}, got {len(items)} users"
            )
        keep = len(items) - budget.deleted
        return deletions_of(items, algorithm, keep, budget.part_epsilon, budget.part_delta)

    @abstractmethod
    def answers(self, r: int) -> bool:
        """Return whether some set of r users is stable.

        If no such set is stable, X_stable is empty.
        """

    @abstractmethod
    def output(self, r: int) -> FloatArray:
        """Return the distribution of the output given R_1 = r.

        The last outcome stands for no answer.
        """

    @abstractmethod
    def draw(self, r: int, size: int, *, rng: np.random.Generator) -> IntArray:
        """Draw a stable set of r users, delete more users at random, and return the rest."""

    def _answer(self, rests: FloatArray | None) -> FloatArray:
        if rests is None:
            return np.append(np.zeros(self.pmfs.shape[1]), 1.0)
        return np.append(rests @ self.pmfs, 0.0)


class _Counted(Deletions):
    """Deletions for a symmetric algorithm, where sets of users are counted by their kinds."""

    def __init__(
        self, items: IntArray, algorithm: Symmetric, keep: int, epsilon: float, delta: float
    ) -> None:
        _refuse_many(len(items), items.shape[1], algorithm.universe, keep)
        kinds, self.numbers = user_kinds(items, algorithm.universe)
        self.rests = compositions(keep, self.numbers)
        totals, self.places = np.unique(self.rests @ kinds, axis=0, return_inverse=True)
        self.places = self.places.reshape(-1)
        # The distributions are computed one by one, so that the rounding of one distribution does
        # not depend on the counts of the other distributions.
        alike = known_pmf(algorithm, np.array([algorithm.pmf_of_counts(t) for t in totals]))
        self.pmfs = alike[self.places]
        self.far = _far(alike, epsilon, delta)

    def answers(self, r: int) -> bool:
        return any(stable.any() for _, stable in self._tested(r))

    def output(self, r: int) -> FloatArray:
        total, mixed = -math.inf, np.zeros(len(self.rests))
        for removed, stable in self._tested(r):
            if stable.any():
                logs = log_ways(self.numbers, removed[stable])
                more = float(np.logaddexp(total, logsumexp(logs)))
                chances = np.exp(logs - more) @ self._chances(removed[stable])
                mixed, total = mixed * math.exp(total - more) + chances, more
        return self._answer(None if total == -math.inf else mixed)

    def draw(self, r: int, size: int, *, rng: np.random.Generator) -> IntArray:
        found = [removed[stable] for removed, stable in self._tested(r)]
        removed = np.concatenate(found)
        weights = softmax(log_ways(self.numbers, removed))
        chosen = _drawn(weights, size, rng)  # line 8
        kept = np.empty(size, dtype=np.int64)
        for one in np.unique(chosen):  # line 9
            here = np.flatnonzero(chosen == one)
            kept[here] = _drawn(self._chances(removed[one : one + 1])[0], here.size, rng)
        return kept

    def _tested(self, r: int) -> Iterator[tuple[IntArray, BoolArray]]:
        """Yield sets of r users, as numbers of each kind, and whether each set is stable."""
        sets = compositions(r, self.numbers)
        rows = max(1, _CELLS // len(self.rests))
        for first in range(0, len(sets), rows):
            removed = sets[first : first + rows]
            yield removed, self._stable(removed)

    def _stable(self, removed: IntArray) -> BoolArray:
        if not self.far.any():
            return np.ones(len(removed), dtype=np.bool_)
        left = self.numbers - removed
        fits = np.ones((len(removed), len(self.rests)), dtype=np.bool_)
        for kind, limits in enumerate(left.T):
            fits &= self.rests[:, kind] <= limits[:, None]
        reached = np.zeros((len(removed), len(self.far)), dtype=np.float32)
        rows, rests = np.nonzero(fits)
        reached[rows, self.places[rests]] = 1
        met = reached * (reached @ self.far.astype(np.float32))
        return np.asarray(met.max(axis=1) == 0)

    def _chances(self, removed: IntArray) -> FloatArray:
        """Return the probability of each rest after each set has been removed, [sets, rests]."""
        left = self.numbers - removed
        return np.asarray(softmax(log_ways(left[:, None, :], self.rests), axis=1))


class _Enumerated(Deletions):
    """Deletions for any algorithm, where sets of users are bits of an integer."""

    def __init__(
        self, items: IntArray, algorithm: ItemAlgorithm, keep: int, epsilon: float, delta: float
    ) -> None:
        self.n = len(items)
        if self.n > MOST_ENUMERATED:
            raise ValueError(
                f"data must have at most {MOST_ENUMERATED} users, because the algorithm is "
                f"not symmetric, got {self.n} users"
            )
        if math.comb(self.n, keep) > MOST_SUBSETS:
            raise ValueError(
                f"data must have at most {MOST_SUBSETS} sets of {keep} users, because the "
                f"algorithm is not symmetric, got {math.comb(self.n, keep)} sets of {self.n} "
                "users"
            )
        sizes = np.bitwise_count(np.arange(2**self.n, dtype=np.int64))
        self.rests = np.flatnonzero(sizes == keep)
        self.keep, self.sizes = keep, sizes
        members = (self.rests[:, None] >> np.arange(self.n)) & 1 == 1
        distinct, places = np.unique(
            np.array([items[rest].reshape(-1) for rest in members]), axis=0, return_inverse=True
        )
        places = places.reshape(-1)
        found = known_pmf(algorithm, np.array([algorithm.pmf(rest) for rest in distinct]))
        self.pmfs = found[places]
        self.unstable = np.zeros(2**self.n, dtype=np.bool_)  # indexed by the set that is left
        far = _far(found, epsilon, delta)
        if far.any():
            for place in range(len(found)):
                ones = self.rests[places == place]
                others = self.rests[far[place][places]]
                self.unstable[np.unique(ones[:, None] | others)] = True
            _spread(self.unstable, self.n)

    def answers(self, r: int) -> bool:
        return self._left(r).size > 0

    def output(self, r: int) -> FloatArray:
        left = self._left(r)
        if left.size == 0:
            return self._answer(None)
        ways = np.array([np.count_nonzero(left & rest == rest) for rest in self.rests])
        return self._answer(ways / ways.sum())

    def draw(self, r: int, size: int, *, rng: np.random.Generator) -> IntArray:
        left = self._left(r)
        chosen = left[rng.integers(left.size, size=size)]  # line 8
        keys = rng.random((size, self.n))  # line 9
        keys[(chosen[:, None] >> np.arange(self.n)) & 1 == 0] = 2.0
        kept = np.argsort(keys, axis=1)[:, : self.keep]
        return np.asarray(np.searchsorted(self.rests, (1 << kept).sum(axis=1)))

    def _left(self, r: int) -> IntArray:
        """Return the sets of users that are left after deleting a stable set of r users."""
        return np.flatnonzero((self.sizes == self.n - r) & ~self.unstable)


def deletions_of(
    items: IntArray, algorithm: ItemAlgorithm, keep: int, epsilon: float, delta: float
) -> Deletions:
    """Return the `Deletions` that leave `keep` users and compare rests at (epsilon, delta)."""
    if isinstance(algorithm, Symmetric):
        return _Counted(items, algorithm, keep, epsilon, delta)
    return _Enumerated(items, algorithm, keep, epsilon, delta)


def _refuse_many(n: int, m: int, universe: int, keep: int) -> None:
    """Refuse shapes that are too large for some dataset.

    So a refusal reveals only the shape.
    """
    kinds = math.comb(m + universe - 1, m)
    totals = math.comb(keep * m + universe - 1, keep * m)
    rests = min(math.comb(k + kinds - 1, k) for k in (keep, n - keep))
    most_deleted = (n - keep) // 2  # the largest R_1
    sets = math.comb(most_deleted + kinds - 1, most_deleted)
    if totals > MOST_TOTALS or rests > MOST_RESTS or sets > MOST_VECTORS:
        raise ValueError(
            f"data must be small enough to enumerate: at most {MOST_TOTALS} counts of the "
            f"{keep * m} items that are left, {MOST_RESTS} ways to get such a count, and "
            f"{MOST_VECTORS} kinds of deleted sets. Here, {n} users with {m} of "
            f"{universe} items each have {totals} such counts, {rests} such ways, and "
            f"{sets} such kinds."
        )


def _far(pmfs: FloatArray, epsilon: float, delta: float) -> BoolArray:
    """Return which pairs of distributions are not (epsilon, delta)-close.

    The sum is taken outcome by outcome, so that the rounding of a pair does not depend on other
    pairs.
    """
    grown, over = math.exp(min(epsilon, 700.0)) * pmfs, np.zeros((len(pmfs), len(pmfs)))
    for outcome in range(pmfs.shape[1]):
        over += np.maximum(pmfs[:, None, outcome] - grown[None, :, outcome], 0)
    return np.asarray(np.maximum(over, over.T) > delta)


def _spread(marked: BoolArray, n: int) -> None:
    """Mark every set that contains a marked set, in place."""
    for bit in range(n):
        halves = marked.reshape(-1, 2, 2**bit)
        halves[:, 1] |= halves[:, 0]


def _inverse(cumulative: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw one index from each row, [rows, k] of cumulative probabilities."""
    uniforms = rng.random(len(cumulative))[:, None] * cumulative[:, -1:]
    return np.asarray(np.minimum((cumulative <= uniforms).sum(axis=1), cumulative.shape[1] - 1))


def _drawn(chances: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """Draw `size` indices from one distribution, [k]."""
    cumulative = np.cumsum(chances)
    found = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
    return np.asarray(np.minimum(found, len(cumulative) - 1))
