"""Conversion of any item-level algorithm into a user-level algorithm (Theorems 10 and 11)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms.common import _validate
from algorithms.common._validate import FloatArray, IntArray
from algorithms.common.subsampling import amplified_epsilon, population_for
from algorithms.few_examples.deletion import Budget, delstab, delstab_pmf
from algorithms.few_examples.items import Subsampled, Symmetric
from algorithms.few_examples.populations import items_of


@dataclass(frozen=True)
class Pipeline:
    """Number of users that DelStab needs to run an item-level algorithm on a subsample.

    The source is few_examples, proof of Theorem 10. N is the least multiple of m for which the
    algorithm on a subsample of `sample` items is private enough for Lemma 19. The number of users
    is n = N / m + 4 kappa.

    **Guarantee** The output of `delstab` on `n_users` is (epsilon, delta)-user-level DP, for every
    `constant`. If Lemma 19 holds with this `constant`, the pipeline gives an answer with
    probability 1 - o(1). This answer has the distribution of the base on `sample` i.i.d. items.

    **Departs** (1) N is at least `sample`. The paper does not state this condition. (2) kappa is
    the kappa of Algorithm 1. (3) ln(1/delta) and the other logarithms are natural.

    (4) Lemma 19 also requires that the base has delta' = Theta(delta / (kappa m)). The caller has
    to ensure this condition.

    Attributes
    ----------
    budget : Budget
        Budget of the whole mechanism.
    m : int
        Items of each user.
    sample : int
        Number of items on which the base runs.
    base_epsilon : float
        Epsilon of the base.
    n_items : int
        Number of items that are left after deletion.
    constant : float
        Constant of Theta in Lemma 19.
    """

    budget: Budget
    m: int
    sample: int
    base_epsilon: float
    n_items: int
    constant: float

    @property
    def n_users(self) -> int:
        """Number of users in total."""
        return self.n_items // self.m + self.budget.deleted

    @property
    def item_epsilon(self) -> float:
        """Epsilon of the subsampled algorithm, by Theorem 7."""
        return amplified_epsilon(self.base_epsilon, self.n_items, self.sample)


def stable_epsilon(budget: Budget, n_users: int, m: int, *, constant: float = 1.0) -> float:
    """Return the epsilon' of Lemma 19, at which an item-level algorithm is stable.

    The source is few_examples, Lemma 19. The paper prints Theta(epsilon / (kappa sqrt(m log(n m /
    delta)))).

    **Departs** The constant of Theta is an argument. Privacy does not depend on this constant.

    Parameters
    ----------
    budget : Budget
    n_users : int
        Number of users n, at least 1.
    m : int
        At least 1.
    constant : float, default 1
        Positive.

    Returns
    -------
    float
    """
    n_users = _validate.integer("n_users", n_users, at_least=1)
    m = _validate.integer("m", m, at_least=1)
    constant = _validate.positive("constant", constant)
    log = math.log(n_users * m / budget.delta)
    return constant * budget.epsilon / (budget.kappa * math.sqrt(m * log))


def theorem_10_epsilon(budget: Budget, m: int) -> float:
    """Return epsilon^2 / (ln(1/delta) sqrt(m ln(m/delta))), few_examples, Theorem 10."""
    m, log = _validate.integer("m", m, at_least=1), -math.log(budget.delta)
    return budget.epsilon**2 / (log * math.sqrt(m * math.log(m / budget.delta)))


def pipeline(
    budget: Budget, m: int, *, sample: int, base_epsilon: float, constant: float = 1.0
) -> Pipeline:
    """Return the plan with the fewest users for an item-level algorithm on `sample` items.

    For Theorem 10 of few_examples, base_epsilon is `theorem_10_epsilon`. For Theorem 11,
    base_epsilon is epsilon. The two subsamples of Theorem 11 are merged into one subsample.

    Parameters
    ----------
    budget : Budget
    m : int
        Items of each user, at least 1.
    sample : int
        n_1, the number of items on which the base runs, at least 1.
    base_epsilon : float
        Epsilon of the base, in (0, 700].
    constant : float, default 1
        Constant of Theta in Lemma 19, positive.

    Returns
    -------
    Pipeline
    """
    m = _validate.integer("m", m, at_least=1)
    n_items = m * -(-_validate.integer("sample", sample, at_least=1) // m)
    while True:  # epsilon' decreases with n, so find the least fixed point from below
        target = stable_epsilon(budget, n_items // m + budget.deleted, m, constant=constant)
        needed = m * -(-population_for(base_epsilon, target, sample) // m)
        if needed <= n_items:
            return Pipeline(budget, m, sample, float(base_epsilon), n_items, float(constant))
        n_items = needed


def pipeline_pmf(data: Any, *, base: Symmetric, plan: Pipeline) -> FloatArray:
    """Return the distribution of the pipeline's output.

    The pipeline is DelStab around a subsampled base. The source is few_examples, Theorems 10 and
    11.

    **Guarantee** (epsilon, delta)-user-level DP (Lemma 18).

    **Requires** nothing for privacy.

    **Departs** See `Pipeline`, `deletion.delstab_pmf` and `items.Subsampled`.

    **Symbols** A_0 = `base`, A = `Subsampled(base)`.

    Parameters
    ----------
    data : array_like of int, [n, m]
        The number n of users must be at least `plan.n_users`. Users beyond this number are used
        too.
    base : Symmetric
        Item-level algorithm with a known distribution.
    plan : Pipeline

    Returns
    -------
    ndarray, [base.n_outcomes + 1]
        The last outcome means that there is no answer.
    """
    items, algorithm = _planned(data, base, plan)
    return delstab_pmf(items, algorithm=algorithm, **_spent(plan))


def run_pipeline(
    data: Any, size: int, *, base: Symmetric, plan: Pipeline, rng: np.random.Generator
) -> IntArray:
    """Draw from the pipeline (few_examples, Theorems 10 and 11).

    **Guarantee**, **Requires**, **Departs**, **Symbols** See `pipeline_pmf`. This function draws
    from the distribution that `pipeline_pmf` returns.

    Parameters
    ----------
    data : array_like of int, [n, m]
        The number n of users must be at least `plan.n_users`.
    size : int
        Number of independent draws.
    base : Symmetric
        Item-level algorithm with a known distribution.
    plan : Pipeline
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of int64, [size]
        Outcomes. The outcome `base.n_outcomes` stands for no answer.
    """
    items, algorithm = _planned(data, base, plan)
    return delstab(items, size, algorithm=algorithm, **_spent(plan), rng=rng)


def _planned(data: Any, base: Symmetric, plan: Pipeline) -> tuple[IntArray, Subsampled]:
    algorithm = Subsampled(base, plan.sample)
    items = items_of(data, algorithm.universe)
    if items.shape[1] != plan.m or len(items) < plan.n_users:
        raise ValueError(
            f"data must have at least {plan.n_users} users of {plan.m} items, "
            f"got shape {items.shape}"
        )
    return items, algorithm


def _spent(plan: Pipeline) -> dict[str, Any]:
    budget = plan.budget
    return {"epsilon": budget.epsilon, "delta": budget.delta, "sharp": budget.sharp}
