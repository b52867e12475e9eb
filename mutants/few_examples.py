"""Mutants of `algorithms.few_examples` with mistakes that concern more than noise.

Mutants named `..._pmf` return the distribution of the output, like the originals.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.common.selection import exponential_mechanism, exponential_pmf
from algorithms.few_examples.deletion import Budget, Deletions, deletions_of, delstab_pmf
from algorithms.few_examples.items import ItemAlgorithm, Symmetric
from algorithms.few_examples.learning import clipped_errors
from algorithms.few_examples.pairwise import Comparison, clipped_scores
from algorithms.few_examples.populations import compositions

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def delstab_untested_pmf(
    data: ArrayLike, *, algorithm: ItemAlgorithm, epsilon: float, delta: float
) -> Floats:
    """Run on the remaining users after any deletion, because line 5 treats all sets as stable.

    **Mistake** The test of local-deletion DP is skipped. The mutant is A_0 in the proof of Lemma
    19.

    **Breaks at** an algorithm that is not private enough, on datasets that differ in one user.
    """
    items, budget = np.asarray(data), Budget(epsilon, delta)
    keep = len(items) - budget.deleted
    return _released(deletions_of(items, algorithm, keep, 0.0, 2.0), budget.noise)  # all are close


def delstab_short_noise_pmf(
    data: ArrayLike, *, algorithm: ItemAlgorithm, epsilon: float, delta: float
) -> Floats:
    """Truncate the noise of line 4 after a few steps.

    **Mistake** kappa is 1 + ceil(1 / epsilon-bar), the scale of the noise, instead of 1 + ceil(ln(1
    / delta-bar) / epsilon-bar).

    **Breaks at** data in which no user has to be deleted, compared with data in which one user has
    to be deleted. In the former data, R_1 is 0.
    """
    budget = Budget(epsilon, delta)
    reach = 1 + math.ceil(1 / budget.part_epsilon)
    weights = np.exp(-budget.part_epsilon * np.abs(np.arange(-reach, reach + 1)))
    return _released(Deletions.of(data, algorithm, budget), weights / weights.sum())


def delstab_all_data_pmf(
    data: ArrayLike, *, algorithm: ItemAlgorithm, epsilon: float, delta: float
) -> Floats:
    """Run on all users if the test is passed.

    **Mistake** Line 10 returns A(x) instead of A(x_{-T}). The algorithm tested nothing about A(x).

    **Breaks at** an algorithm whose answer on all users depends on one user.
    """
    found = delstab_pmf(data, algorithm=algorithm, epsilon=epsilon, delta=delta)
    whole = algorithm.pmf(np.asarray(data).reshape(-1))
    return np.append((1 - found[-1]) * whole, found[-1])


def pac_unclipped_pmf(data: ArrayLike, *, hypotheses: Integers, epsilon: float) -> Floats:
    """Count the errors on all examples, with noise for a sensitivity of one.

    **Mistake** The score is not clipped. A user moves the score by m.

    **Breaks at** a user whose examples all contradict a hypothesis, compared with a user whose
    examples do not contradict it.
    """
    scores = clipped_errors(data, hypotheses, cap=float(np.shape(data)[1]))
    return exponential_pmf(-scores, sensitivity=1.0, epsilon=epsilon)


def pac_unclipped(
    data: ArrayLike, size: int, *, hypotheses: Integers, epsilon: float, rng: np.random.Generator
) -> Integers:
    """Draw from `pac_unclipped_pmf`.

    **Mistake** and **Breaks at** are those of `pac_unclipped_pmf`.
    """
    scores = clipped_errors(data, hypotheses, cap=float(np.shape(data)[1]))
    return exponential_mechanism(-scores, size, sensitivity=1.0, epsilon=epsilon, rng=rng)


def pairwise_unclipped_pmf(
    data: Any, *, comparison: Comparison, threshold: float, epsilon: float
) -> Floats:
    """Add up all of a user's comparisons, with noise for clipped comparisons.

    **Mistake** The score pscr of each user is not clipped to [-tau, tau].

    **Breaks at** a user whose m items all favour one candidate, or all favour another.
    """
    scores = clipped_scores(data, comparison=comparison, threshold=float(np.shape(data)[1]))
    return exponential_pmf(-scores, sensitivity=2 * threshold, epsilon=epsilon)


def pairwise_insensitive_pmf(
    data: Any, *, comparison: Comparison, threshold: float, epsilon: float
) -> Floats:
    """Choose with weights exp(-epsilon scr / 2).

    **Mistake** The sensitivity 2 tau is missing in the exponent.

    **Breaks at** a threshold above 1/2, and a user who moves the scores by the threshold.
    """
    scores = clipped_scores(data, comparison=comparison, threshold=threshold)
    return exponential_pmf(-scores, sensitivity=1.0, epsilon=epsilon)


def pairwise_insensitive(
    data: Any, size: int, *, comparison: Comparison, threshold: float, epsilon: float,
    rng: np.random.Generator,
) -> Integers:  # fmt: skip
    """Draw from `pairwise_insensitive_pmf`.

    **Mistake** and **Breaks at** are those of `pairwise_insensitive_pmf`.
    """
    scores = clipped_scores(data, comparison=comparison, threshold=threshold)
    return exponential_mechanism(-scores, size, sensitivity=1.0, epsilon=epsilon, rng=rng)


def subsampled_with_replacement_pmf(
    data: ArrayLike, *, algorithm: Symmetric, sample: int
) -> Floats:
    """Draw the subsample with replacement.

    **Mistake** An item may be drawn twice, which Theorem 7 excludes.

    **Breaks at** one item replaced by another item, if this item may be half of the sample or the
    whole sample.

    Returns
    -------
    ndarray, [n_outcomes]
    """
    counts = np.bincount(np.asarray(data).reshape(-1), minlength=algorithm.universe)
    parts = compositions(sample, np.full(algorithm.universe, sample))
    chances = np.array([_multinomial(part, counts / counts.sum()) for part in parts])
    return np.asarray(chances @ algorithm.pmf_of_counts(parts))


def _multinomial(part: Integers, shares: Floats) -> float:
    ways = math.factorial(int(part.sum())) / math.prod(math.factorial(int(c)) for c in part)
    return float(ways * np.prod(shares**part))


def _released(deletions: Deletions, noise: Floats) -> Floats:
    return np.asarray(noise @ np.array([deletions.output(r) for r in range(noise.size)]))
