"""Exact audits, without draws, of DelStab (Algorithm 1) and of the pipeline of Theorems 10 and 11.

The output distribution of DelStab can be computed for every dataset. Therefore, the divergence can
be computed for every pair of neighbours. Some audited pairs consist of users with one bit each, in
all combinations. Other pairs consist of users of three kinds. The slack shows which share of the
budget DelStab uses. DelStab with a larger epsilon still satisfies the claim.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from algorithms.common.subsampling import amplified_epsilon
from algorithms.few_examples.deletion import Budget, delstab, delstab_pmf
from algorithms.few_examples.items import (
    AlternatingMajority,
    ExponentialLearner,
    FunctionAlgorithm,
    HeavyItems,
    NoisyArgmax,
    Subsampled,
    Symmetric,
    TruncatedMajority,
    noisy_majority,
)
from algorithms.few_examples.pipeline import pipeline, pipeline_pmf
from algorithms.few_examples.reductions import AllExamples, OneExample
from audits.few_examples.exact import Exact, all_pairs, moved
from dpaudit import ApproxDP, NeighborPair, PureDP, Relation
from mutants import few_examples as mutants

SOURCE = "few_examples Lemma 18"
REPLACE = Relation.REPLACE_USER
BITS = np.array([[0], [1]])
TWO_BITS = np.array([[0, 0], [0, 1], [1, 1]])

SMALL = {"epsilon": 9.0, "delta": 0.4}
"""The budget with the smallest kappa, which is 5, so that 20 users are deleted."""

REAL = {"epsilon": 1.0, "delta": 1e-6}
"""A budget with kappa = 49, so that 196 users are deleted."""

MAJORITY = noisy_majority(0.05)
ANY_ONE = ExponentialLearner([[0.0, 0.0], [-1.0, 300.0]], 1e5)
"""An algorithm that reports whether any item is 1, so that a single user decides."""


def delstabs(algorithm, budget, factors):
    """Return one DelStab per factor, where the noise is `factor` times the required noise."""
    return {
        x: Exact(delstab_pmf, algorithm=algorithm, epsilon=budget["epsilon"] / x,
                 delta=budget["delta"])
        for x in factors
    }  # fmt: skip


@pytest.mark.parametrize("algorithm", [
    noisy_majority(4.0), ANY_ONE, TruncatedMajority(2.0, 0.01),
], ids=["majority", "any-one", "truncated-majority"])  # fmt: skip
def audit_smallest_instance(auditor, algorithm):
    """Audit 21 users with one bit each, on all pairs of neighbours."""
    auditor.check(
        Exact(delstab_pmf, algorithm=algorithm, **SMALL),
        ApproxDP(**SMALL, relation=REPLACE, source=SOURCE),
        all_pairs(21, BITS),
    )


@pytest.mark.nightly
def audit_256_users(auditor):
    """Audit 256 users at epsilon = 1 and delta = 1e-6."""
    result = auditor.check(
        Exact(delstab_pmf, algorithm=MAJORITY, **REAL),
        ApproxDP(**REAL, relation=REPLACE, source=SOURCE),
        [moved([256 - ones, ones], BITS, 0, 1) for ones in (0, 8, 16, 24, 32, 48, 64, 90)],
        mutants=[Exact(mutants.delstab_short_noise_pmf, algorithm=MAJORITY, **REAL)],
    )
    auditor.noise_margin(result, delstabs(MAJORITY, REAL, (0.6, 0.34, 0.32)))


@pytest.mark.nightly
def audit_256_users_and_one_decides(auditor):
    """Audit an algorithm that is not private, so only the test of DelStab protects the users."""
    result = auditor.check(
        Exact(delstab_pmf, algorithm=ANY_ONE, **REAL),
        ApproxDP(**REAL, relation=REPLACE, source=SOURCE),
        [moved([256 - ones, ones], BITS, 0, 1) for ones in (0, 1, 2, 20, 48, 49, 50, 97, 98)],
        mutants=[
            Exact(mutants.delstab_untested_pmf, algorithm=ANY_ONE, **REAL),
            Exact(mutants.delstab_short_noise_pmf, algorithm=ANY_ONE, **REAL),
            Exact(mutants.delstab_all_data_pmf, algorithm=ANY_ONE, **REAL),
        ],
    )
    auditor.noise_margin(result, delstabs(ANY_ONE, REAL, (0.6, 0.34, 0.32)))


def first_bit(items):
    """Return the first remaining item."""
    return [1.0 - items[0], float(items[0])]


def in_order(ones, place):
    """Return a pair of 22 users, in which user `place` differs.

    The first `ones` users have a 1.
    """
    left = np.zeros((22, 1), dtype=int)
    left[:ones] = 1
    right = left.copy()
    right[place] = 1 - right[place]
    return NeighborPair(left, right, recipe=f"{ones} ones, then user {place} changes")


@pytest.mark.nightly
@pytest.mark.parametrize("algorithm", [
    FunctionAlgorithm(first_bit, 2, 2),
    AlternatingMajority(3.0),
], ids=["first-bit", "alternating"])  # fmt: skip
def audit_order_dependent(auditor, algorithm):
    """Audit algorithms that depend on the order of 22 users."""
    auditor.check(
        Exact(delstab_pmf, algorithm=algorithm, **SMALL),
        ApproxDP(**SMALL, relation=REPLACE, source=SOURCE),
        [in_order(ones, place) for ones in (0, 1, 5, 6) for place in (0, 5, 21)],
    )


@pytest.mark.nightly
@pytest.mark.parametrize(("algorithm", "kinds"), [
    (noisy_majority(1.5), TWO_BITS),
    (NoisyArgmax(3, 3.0), np.array([[0], [1], [2]])),
    (HeavyItems(2, 3.0, 0.4), TWO_BITS),
], ids=["two-bits", "argmax", "heavy"])  # fmt: skip
def audit_three_kinds(auditor, algorithm, kinds):
    """Audit users of three kinds, with two bits each or with one of three items."""
    auditor.check(
        Exact(delstab_pmf, algorithm=algorithm, **SMALL),
        ApproxDP(**SMALL, relation=REPLACE, source=SOURCE),
        all_pairs(22, kinds)[::12],
    )


class Ladder(Symmetric):
    """Algorithm with a rare answer, whose probability decreases from each kind to the next kind.

    The answers of neighbouring kinds are close, but the answers of the first and the last kind are
    not close. For several items, the algorithm takes the mean of the probabilities.
    """

    universe, n_outcomes = 3, 2

    def __init__(self, step):
        self.step = step

    def __repr__(self):
        return f"Ladder({self.step:g})"

    def pmf_of_counts(self, counts):
        """Return the probabilities."""
        counts = np.asarray(counts, dtype=float)
        rare = 0.3 * np.exp(-self.step * np.arange(3))
        one = counts @ rare / np.maximum(counts.sum(axis=-1), 1)
        return np.stack([one, 1 - one], axis=-1)


def audit_conflicting_users(auditor):
    """Audit the known pairs that use the largest part of epsilon.

    There are 57 users, and DelStab keeps one user. The remaining users are either of the first two
    kinds or of the last kind. Both R_1 and the algorithm's own answer reveal the user.
    """
    budget = {"epsilon": 3.0, "delta": 1e-4}
    kappa = Budget(**budget).kappa
    pairs = [
        moved([r + 2, 4 * kappa - 2 * r - 1, r], [[0], [1], [2]], 0, 2)
        for r in (kappa - 2, kappa + 1, 2 * kappa - 1)
    ]
    pairs.append(moved([4 * kappa + 1, 0, 0], [[0], [1], [2]], 0, 2))
    ladder = Ladder(budget["epsilon"] / 3)
    auditor.check(
        Exact(delstab_pmf, algorithm=ladder, **budget),
        ApproxDP(**budget, relation=REPLACE, source=SOURCE),
        pairs,
        mutants=[Exact(mutants.delstab_short_noise_pmf, algorithm=ladder, **budget)],
    )


@pytest.mark.nightly
def audit_pipeline(auditor):
    """Audit DelStab with a majority of three items on a subsample (Theorems 10 and 11)."""
    plan = pipeline(Budget(**SMALL), 2, sample=3, base_epsilon=4.0, constant=5.0)
    auditor.check(
        Exact(pipeline_pmf, base=noisy_majority(4.0), plan=plan),
        ApproxDP(**SMALL, relation=REPLACE, source="few_examples Theorem 10"),
        all_pairs(plan.n_users, TWO_BITS)[::12],
    )


@pytest.mark.nightly
@pytest.mark.parametrize("ones", ["none", "as many as R_1 can be"])
def audit_draws_of_delstab(auditor, ones):
    """Audit the draws of DelStab for 80 users with three items each, and mutate the noise.

    Because one user decides the answer of the algorithm, only the noise R_1 hides that user.
    DelStab gives an answer only if all users with a 1 are among the R_1 deleted users.
    """
    budget = {"epsilon": 1.5, "delta": 0.01}
    number = 0 if ones == "none" else 2 * Budget(**budget).kappa
    auditor.check(
        partial(delstab, algorithm=ANY_ONE, **budget),
        ApproxDP(**budget, relation=REPLACE, source=SOURCE),
        moved([80 - number, number], np.array([[0, 0, 0], [0, 1, 0]]), 0, 1),
        draws_factor=0.3,
    )


# --- components and baselines ---------------------------------------------------------------------


class Rare(Symmetric):
    """Algorithm with a rare outcome, whose probability is at most 1/1000.

    Each 1 among the items makes the rare outcome exp(epsilon) times as likely.
    """

    universe, n_outcomes = 2, 2

    def __init__(self, epsilon, most):
        self.epsilon, self.most = epsilon, most

    def __repr__(self):
        return f"Rare({self.epsilon:g}, {self.most})"

    def pmf_of_counts(self, counts):
        """Return the probabilities."""
        one = np.exp(self.epsilon * (np.asarray(counts)[..., 1] - self.most)) / 1000
        return np.stack([1 - one, one], axis=-1)


def subsampled_pmf(data, *, algorithm, sample):
    return Subsampled(algorithm, sample).pmf(np.asarray(data).reshape(-1))


def audit_subsample(auditor):
    """Audit Theorem 7 for subsamples of two of three items, on all pairs of neighbours.

    A rare outcome attains the bound.
    """
    rare = Rare(1.0, 2)
    result = auditor.check(
        Exact(subsampled_pmf, algorithm=rare, sample=2),
        PureDP(amplified_epsilon(1.0, 3, 2), REPLACE, "few_examples Theorem 7"),
        all_pairs(3, BITS),
        mutants=[Exact(mutants.subsampled_with_replacement_pmf, algorithm=rare, sample=2)],
    )
    auditor.noise_margin(
        result,
        {x: Exact(subsampled_pmf, algorithm=Rare(1.0 / x, 2), sample=2) for x in (0.99, 0.9)},
    )


@pytest.mark.parametrize(("reduced", "epsilon", "source"), [
    (OneExample(NoisyArgmax(2, 1.0)), 1.0, "few_examples Observation 28"),
    (AllExamples(NoisyArgmax(2, 0.5)), 1.0, "few_examples Lemma 6"),
], ids=["one-example", "group-privacy"])  # fmt: skip
def audit_baselines(auditor, reduced, epsilon, source):
    """Audit two baselines for m = 2: one example per user, and all examples with group privacy."""
    auditor.check(reduced, PureDP(epsilon, REPLACE, source), all_pairs(9, TWO_BITS))
