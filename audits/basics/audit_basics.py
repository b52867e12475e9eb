"""Mechanisms that every library has.

Each mechanism has an exact claim and mutants. The claims are tight on purpose, but no number of
draws may refute the claims. The noise mutants are made automatically. The hand-written mutants
contain other kinds of mistakes that people make.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from algorithms.common import histogram, means, noise, selection
from dpaudit import (
    ApproxDP,
    GaussianDP,
    NeighborPair,
    PureDP,
    Relation,
    mutants,
    within_sensitivity,
)
from dpaudit import neighbors as nb
from dpaudit.claims import ZeroConcentratedDP
from mutants import histogram as histogram_mutants
from mutants import means as means_mutants
from mutants import noise as noise_mutants
from mutants import selection as selection_mutants

EPSILON, DELTA = 1.0, 1e-5
ONE_VALUE = nb.value_pattern("one_above", 1)


def audit_laplace(auditor):
    claim = PureDP(EPSILON, Relation.WITHIN_SENSITIVITY, "Dwork and Roth 2014, Theorem 3.6")
    auditor.check(
        partial(noise.laplace_mechanism, sensitivity=1.0, epsilon=EPSILON),
        claim,
        ONE_VALUE,
    )


def audit_laplace_vector(auditor):
    relation = within_sensitivity(1.0, norm="l1")
    auditor.check(
        partial(noise.laplace_mechanism, sensitivity=1.0, epsilon=EPSILON),
        PureDP(EPSILON, relation, "Dwork and Roth 2014, Theorem 3.6"),
        nb.value_patterns(5, relation=relation),
    )


def audit_gaussian_classic(auditor):
    sigma = noise.classic_gaussian_sigma(1.0, EPSILON, DELTA)
    auditor.check(
        partial(noise.gaussian_mechanism, sigma=sigma),
        ApproxDP(EPSILON, DELTA, source="Dwork and Roth 2014, Theorem A.1"),
        ONE_VALUE,
        mutants=[
            partial(
                noise.gaussian_mechanism,
                sigma=noise_mutants.classic_gaussian_sigma_no_log(1.0, EPSILON, DELTA),
            )
        ],
    )


def audit_gaussian_analytic(auditor):
    sigma = noise.analytic_gaussian_sigma(1.0, EPSILON, DELTA)
    auditor.check(
        partial(noise.gaussian_mechanism, sigma=sigma),
        ApproxDP(EPSILON, DELTA, source="Balle and Wang 2018, Theorem 8"),
        ONE_VALUE,
        mutants=[partial(noise_mutants.gaussian_variance_as_deviation, sigma=sigma)],
        draws_factor=5,  # the mutant has epsilon 2.07 at delta = 1e-5 and needs these draws
    )


def audit_gaussian_gdp(auditor):
    auditor.check(
        partial(noise.gaussian_mechanism, sigma=1.0),
        GaussianDP(1.0, source="Dong, Roth and Su 2022, Theorem 2.7"),
        ONE_VALUE,
    )


def audit_gaussian_zcdp(auditor):
    auditor.check(
        partial(noise.gaussian_mechanism, sigma=1.0),
        ZeroConcentratedDP(0.5, source="Bun and Steinke 2016, Proposition 1.6"),
        ONE_VALUE,
    )


def audit_gaussian_10d(auditor):
    relation = within_sensitivity(1.0, norm="l2")
    sigma = noise.analytic_gaussian_sigma(1.0, EPSILON, DELTA)
    auditor.check(
        partial(noise.gaussian_mechanism, sigma=sigma),
        ApproxDP(EPSILON, DELTA, relation, "Balle and Wang 2018, Theorem 8"),
        nb.value_pattern("all_above", 10, relation=relation),
        # calibrated to the change of one coordinate instead of the L2 norm of the whole change
        mutants=[partial(noise.gaussian_mechanism, sigma=sigma / np.sqrt(10))],
    )


def audit_discrete_laplace(auditor):
    auditor.check(
        partial(noise.discrete_laplace_mechanism, sensitivity=1, epsilon=EPSILON),
        PureDP(EPSILON, source="Ghosh, Roughgarden and Sundararajan 2009"),
        NeighborPair(np.array(11), np.array(10), relation=Relation.WITHIN_SENSITIVITY),
    )


def audit_randomized_response(auditor):
    auditor.check(
        partial(noise.randomized_response, epsilon=EPSILON),
        PureDP(EPSILON, source="Warner 1965"),
        NeighborPair(np.array([1]), np.array([0])),
        mutants=[partial(noise_mutants.randomized_response_doubled, epsilon=EPSILON)],
    )


def audit_exponential_mechanism(auditor):
    auditor.check(
        partial(selection.exponential_mechanism, sensitivity=1.0, epsilon=EPSILON),
        PureDP(EPSILON, source="McSherry and Talwar 2007, Theorem 6"),
        nb.value_patterns(5),
        mutants=[
            partial(
                selection_mutants.exponential_mechanism_monotone, sensitivity=1.0, epsilon=EPSILON
            )
        ],
    )


def audit_report_noisy_max(auditor):
    auditor.check(
        partial(selection.report_noisy_max, sensitivity=1.0, epsilon=EPSILON),
        PureDP(EPSILON, source="Dwork and Roth 2014, Claim 3.9, general queries"),
        nb.value_patterns(5),
        mutants=[
            partial(selection_mutants.report_noisy_max_monotone, sensitivity=1.0, epsilon=EPSILON)
        ],
    )


def audit_noisy_histogram(auditor):
    items = np.repeat(np.arange(4), 5)[:, None]
    moved = items.copy()
    moved[-1] = 0
    auditor.check(
        partial(histogram.noisy_histogram, n_bins=4, epsilon=EPSILON),
        PureDP(EPSILON, Relation.REPLACE_USER, "Dwork and Roth 2014, Example 3.2"),
        NeighborPair(items, moved, recipe="a user moves to another bin"),
        mutants=[partial(histogram_mutants.noisy_histogram_add_remove, n_bins=4, epsilon=EPSILON)],
    )


# --- user level: n users hold m items each ---


def audit_user_mean(auditor):
    auditor.check(
        partial(means.clipped_user_mean, clip_norm=1.0, epsilon=EPSILON),
        PureDP(EPSILON, Relation.REPLACE_USER, "Laplace mechanism at user-level sensitivity"),
        [
            nb.clip_boundary_user(n_users=20, m=8, low=-1.0, high=1.0),
            nb.far_user(n_users=20, m=8, high=100.0),
            nb.two_clusters(n_users=21, m=8, high=1.0),
        ],
        mutants=[
            partial(means_mutants.clipped_user_mean_add_remove, clip_norm=1.0, epsilon=EPSILON)
        ],
    )


def audit_user_mean_without_clipping(auditor):
    """Detect the mutant without clipping, because a user who is far away is visible in the mean."""
    auditor.check(
        partial(means.clipped_user_mean, clip_norm=1.0, epsilon=EPSILON),
        PureDP(EPSILON, Relation.REPLACE_USER, "Laplace mechanism at user-level sensitivity"),
        nb.far_user(n_users=20, m=8, high=5.0),
        mutants=[mutants.without("algorithms.common.means.clip_to_ball")],
    )


@pytest.mark.nightly
def audit_user_mean_gaussian(auditor):
    # The user moves from one corner of the cube to the opposite corner. The clipping ball cuts off
    # both corners.
    corner = np.ones((8, 10))
    others = np.zeros((19, 8, 10))
    pair = NeighborPair(
        np.concatenate([others, corner[None]]),
        np.concatenate([others, -corner[None]]),
        recipe="opposite corners, outside the clipping ball",
    )
    auditor.check(
        partial(means.clipped_user_mean_gaussian, clip_norm=1.0, epsilon=EPSILON, delta=DELTA),
        ApproxDP(EPSILON, DELTA, Relation.REPLACE_USER, "analytic Gaussian at user level"),
        pair,
        mutants=[
            partial(
                means_mutants.clipped_user_mean_gaussian_by_coordinate,
                clip_norm=1.0,
                epsilon=EPSILON,
                delta=DELTA,
            )
        ],
    )
