"""Audits of the exponential mechanisms of Sections 4 and E.

Small data are audited exactly, and larger data by draws.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from algorithms.few_examples import covers, learning, pairwise
from algorithms.few_examples.hypotheses import GaussianComparison, scheffe_comparison
from algorithms.few_examples.representations import Representation, thresholds
from audits.few_examples.exact import Exact, all_pairs
from dpaudit import NeighborPair, PureDP, Relation
from mutants import few_examples as mutants

PAPER = "few_examples"
REPLACE = Relation.REPLACE_USER
EPSILON = 1.0
SLACK = (0.9, 0.7, 0.5)

CLASS = thresholds(3)
CLASSES = Representation((CLASS[:3], CLASS[1:]), (0.25, 0.75))


def contradicts(n_users, m, right, wrong):
    """Return a pair of neighbours that differ in all examples of the first user.

    On the left, the examples of the first user fit a hypothesis. On the right, these examples
    contradict the hypothesis. Half of the other users fit the hypothesis.
    """
    left = np.array([right if i % 2 else wrong for i in range(n_users)])[:, None]
    left = np.repeat(left, m, axis=1)
    left[0] = right
    changed = left.copy()
    changed[0] = wrong
    return NeighborPair(left, changed, recipe=f"a user with {m} times {right} or {wrong}")


LABELLED = [
    contradicts(n, 3, right, wrong)
    for n in (1, 2, 5)
    for right, wrong in [((0, 0), (0, 1)), ((2, 1), (2, 0)), ((1, 1), (0, 1)), ((2, 0), (0, 1))]
]


def pac_of_one_class(data, *, epsilon, cap=1.0):
    return learning.pac_pmf(data, representation=Representation((CLASS,)), epsilon=epsilon, cap=cap)


def audit_pac_learner(auditor):
    """Audit Theorem 4 exactly, for thresholds on three points and three examples per user."""
    result = auditor.check(
        Exact(pac_of_one_class, epsilon=EPSILON),
        PureDP(EPSILON, REPLACE, f"{PAPER} Theorem 4"),
        LABELLED,
        mutants=[Exact(mutants.pac_unclipped_pmf, hypotheses=CLASS, epsilon=EPSILON)],
    )
    auditor.noise_margin(result, {x: Exact(pac_of_one_class, epsilon=EPSILON / x) for x in SLACK})


def audit_pac_learner_of_random_classes(auditor):
    """Audit Theorem 4 with a random class, for which the mixture keeps the same epsilon."""
    result = auditor.check(
        Exact(learning.pac_pmf, representation=CLASSES, epsilon=EPSILON),
        PureDP(EPSILON, REPLACE, f"{PAPER} Theorem 4"),
        LABELLED,
    )
    auditor.noise_margin(
        result,
        {x: Exact(learning.pac_pmf, representation=CLASSES, epsilon=EPSILON / x) for x in SLACK},
    )


def audit_group_privacy(auditor):
    """Audit the baseline of Theorem 4, which counts all examples and has noise for m examples."""
    auditor.check(
        Exact(pac_of_one_class, epsilon=EPSILON, cap=3.0),
        PureDP(EPSILON, REPLACE, f"{PAPER} Lemma 6"),
        LABELLED,
        mutants=[Exact(mutants.pac_unclipped_pmf, hypotheses=CLASS, epsilon=EPSILON)],
    )


@pytest.mark.parametrize("threshold", [1.0, 2.5])
def audit_agnostic_learner(auditor, threshold):
    """Audit Theorem 40 with comparisons of errors, which are clipped except in the mutant."""
    given = {
        "comparison": pairwise.ErrorComparison(CLASS), "threshold": threshold, "epsilon": EPSILON
    }  # fmt: skip
    result = auditor.check(
        Exact(pairwise.clipped_pairwise_pmf, **given),
        PureDP(EPSILON, REPLACE, f"{PAPER} Theorem 40"),
        LABELLED,
        mutants=[
            Exact(mutants.pairwise_unclipped_pmf, **given)
            if threshold == 1.0
            else Exact(mutants.pairwise_insensitive_pmf, **given)
        ],
    )
    auditor.noise_margin(
        result,
        {
            x: Exact(pairwise.clipped_pairwise_pmf, **given | {"epsilon": EPSILON / x})
            for x in SLACK
        },
    )


KINDS = np.array([[0, 0, 0], [0, 1, 2], [1, 1, 2], [2, 2, 2]])


def audit_hypothesis_selection(auditor):
    """Audit Theorem 41 for three distributions far apart, on all pairs of four users of 4 kinds."""
    far = scheffe_comparison(np.eye(3) * 0.94 + 0.02)
    given = {"comparison": far, "threshold": 1.5, "epsilon": EPSILON}
    result = auditor.check(
        Exact(pairwise.clipped_pairwise_pmf, **given),
        PureDP(EPSILON, REPLACE, f"{PAPER} Theorem 41"),
        all_pairs(4, KINDS),
        mutants=[
            Exact(mutants.pairwise_unclipped_pmf, **given | {"threshold": 0.75}),
            Exact(mutants.pairwise_insensitive_pmf, **given),
        ],
    )
    auditor.noise_margin(
        result,
        {
            x: Exact(pairwise.clipped_pairwise_pmf, **given | {"epsilon": EPSILON / x})
            for x in SLACK
        },
    )


@pytest.mark.parametrize("cover", [covers.simplex_grid(3, 6), covers.product_cover(2, 2, 5)],
                         ids=["discrete", "product"])  # fmt: skip
def audit_distribution_learning(auditor, cover):
    """Audit Theorems 43 and 44, which select from a cover of all distributions or all products."""
    given = {"comparison": scheffe_comparison(cover), "threshold": 1.5}
    auditor.check(
        Exact(pairwise.clipped_pairwise_pmf, **given, epsilon=EPSILON),
        PureDP(EPSILON, REPLACE, f"{PAPER} Theorems 43 and 44"),
        all_pairs(3, KINDS),
        mutants=[Exact(mutants.pairwise_insensitive_pmf, **given, epsilon=EPSILON)],
    )


# --- larger data, by draws ------------------------------------------------------------------------


def undecided(n_users, m, n_points):
    """Return users who contradict every threshold, with one user on each side of each threshold."""
    x = np.random.default_rng(3).integers(0, n_points, (n_users, m))
    left = np.stack([x, np.arange(m) % 2 + 0 * x], axis=-1)
    left[:, 0], left[:, 1] = (n_points - 1, 0), (0, 1)
    left[0] = n_points // 2, 1
    right = left.copy()
    right[0] = n_points // 2, 0
    return NeighborPair(left, right, recipe="a user on either side of the threshold")


def audit_draws_of_pac_learner(auditor):
    """Audit Theorem 4 by draws, for thresholds on 64 points and 200 users with eight examples."""
    pair, hypotheses = undecided(200, 8, 64), thresholds(64)
    auditor.check(
        partial(
            learning.pac_learner, representation=Representation((hypotheses,)), epsilon=EPSILON
        ),
        PureDP(EPSILON, REPLACE, f"{PAPER} Theorem 4"),
        pair,
        mutants=[partial(mutants.pac_unclipped, hypotheses=hypotheses, epsilon=EPSILON)],
        draws_factor=0.3,
    )


def audit_draws_of_gaussian_selection(auditor):
    """Audit Theorem 46 with means and variances on a line, and one user far out on either side."""
    comparison = GaussianComparison(*covers.bounded_gaussian_cover(1.0, 1, 2.0, 0.2))
    left = np.random.default_rng(5).normal(size=(12, 6, 1))
    right = left.copy()
    left[0], right[0] = -9.0, 9.0
    given = {"comparison": comparison, "threshold": 2.0, "epsilon": 2.0}
    auditor.check(
        partial(pairwise.clipped_pairwise_em, **given),
        PureDP(2.0, REPLACE, f"{PAPER} Theorem 46"),
        NeighborPair(left, right, recipe="a user far to the left or to the right"),
        mutants=[partial(mutants.pairwise_insensitive, **given)],
        draws_factor=0.3,
    )
