"""Bugs of released statistics libraries, each with the correct algorithm.

Each bug is written again from its issue or pull request, in a small form, with noise from numpy. No
code is copied. Each row of the data belongs to one user. No audit names a pair of datasets. An
audit gives at most the shape or the domain of the data.

A mechanism that is marked as a known violation must be refuted. If a known violation is not
refuted, the run fails.
"""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit import ApproxDP, PureDP, Relation, neighbors

EPSILON, DELTA = 1.0, 1e-5
REPLACE, ADD_REMOVE = Relation.REPLACE_USER, Relation.ADD_REMOVE_USER

SHARE = 0.05
"""Share of the default draws. With all draws, the verdicts are the same."""


def first_item(data):
    """Return the first item of each user, clipped to [0, 1]."""
    return np.clip(data[:, 0], 0.0, 1.0)


# --- smartnoise-synth #622: the clipped data are not used ----------------------------------------


def covariances(columns):
    """Return the lower triangle of the covariance matrix of columns [n, 2]."""
    return np.cov(columns.T)[np.tril_indices(2)]


def covariance_of_the_raw_data(data, size, *, rng):
    """Clip to the bounds, but then use the unclipped data.

    The bug is in smartnoise-sdk, synth/snsynth/models/dp_covariance.py, release; issue #622, fixed
    by PR #624 (2026). If a user in [0, 1]^2 is replaced, each of the three entries moves by at most
    1 / n.
    """
    np.clip(data, 0.0, 1.0)  # as in the original, the result is not used
    scale = 3 / (len(data) * EPSILON)
    return covariances(data[:, :2]) + rng.laplace(scale=scale, size=(size, 3))


def covariance_of_the_clipped_data(data, size, *, rng):
    scale = 3 / (len(data) * EPSILON)
    return covariances(np.clip(data[:, :2], 0.0, 1.0)) + rng.laplace(scale=scale, size=(size, 3))


@pytest.mark.known_violation("smartnoise-synth #622: the covariance of data that are not clipped")
def audit_smartnoise_synth_622(auditor):
    auditor.check(
        covariance_of_the_raw_data, PureDP(EPSILON, REPLACE, "DPcovariance"), draws_factor=SHARE
    )


def audit_smartnoise_synth_622_mended(auditor):
    auditor.check(
        covariance_of_the_clipped_data,
        PureDP(EPSILON, REPLACE, "Laplace mechanism"),
        mutants=[covariance_of_the_raw_data],
        draws_factor=SHARE,
    )


# --- smartnoise-core #316: the scale of the noise is squared -------------------------------------

SIGMA = np.sqrt(2 * np.log(1.25 / DELTA)) / EPSILON
"""Standard deviation of the classic Gaussian mechanism, for sensitivity 1."""


def gaussian_mean_scale_squared(data, size, *, rng):
    """Square the standard deviation before it reaches the sampler.

    The bug was in smartnoise-core, PR #315, fixed as of issue #316 (2020). The issue says that
    "noise scale in the gaussian mechanism should not be squared".
    """
    return first_item(data).mean() + rng.normal(scale=(SIGMA / len(data)) ** 2, size=size)


def gaussian_mean(data, size, *, rng):
    return first_item(data).mean() + rng.normal(scale=SIGMA / len(data), size=size)


@pytest.mark.known_violation("smartnoise-core #316: the variance is used as standard deviation")
def audit_smartnoise_core_316(auditor):
    auditor.check(
        gaussian_mean_scale_squared,
        ApproxDP(EPSILON, DELTA, REPLACE, "Gaussian mechanism"),
        draws_factor=SHARE,
    )


def audit_smartnoise_core_316_mended(auditor):
    auditor.check(
        gaussian_mean,
        ApproxDP(EPSILON, DELTA, REPLACE, "Dwork and Roth 2014, Theorem A.1"),
        mutants=[gaussian_mean_scale_squared],
        draws_factor=SHARE,
    )


# --- smartnoise-core #356: the sensitivity of a mean under add/remove ----------------------------

TWO = neighbors.portfolio(n_users=2).under(ADD_REMOVE)


def mean_with_the_private_size(data, size, *, rng):
    """Use sensitivity 1 / n under add/remove, where n is the size of the private data.

    The bug is in smartnoise-core, whitepapers/sensitivities/mean, Section 2.1; issue #356 (2021).
    The scale of the noise reveals n. In addition, the mean of one user may differ by more than 1 /
    2 from the mean of two users.
    """
    return first_item(data).mean() + rng.laplace(scale=1 / (len(data) * EPSILON), size=size)


def sum_over_noisy_count(data, size, *, rng):
    """Divide a noisy numerator by a noisy denominator, as the issue proposes."""
    total = first_item(data).sum() + rng.laplace(scale=2 / EPSILON, size=size)
    return total / np.maximum(len(data) + rng.laplace(scale=2 / EPSILON, size=size), 1.0)


@pytest.mark.known_violation("smartnoise-core #356: a sensitivity that holds for one size only")
def audit_smartnoise_core_356(auditor):
    auditor.check(
        mean_with_the_private_size,
        PureDP(EPSILON, ADD_REMOVE, "whitepaper, Section 2.1"),
        TWO,
        draws_factor=SHARE,
    )


def audit_smartnoise_core_356_mended(auditor):
    auditor.check(
        sum_over_noisy_count,
        PureDP(EPSILON, ADD_REMOVE, "Laplace mechanism, composed"),
        TWO,
        mutants=[mean_with_the_private_size],
        draws_factor=SHARE,
    )


# --- PipelineDP #551: the sum is clipped, not each user's contribution ---------------------------


SHORT = neighbors.portfolio(m=1).under(ADD_REMOVE)
"""Vectors of one coordinate, because such vectors are fast. The default portfolio has eight."""


def in_the_l1_ball(vectors):
    """Clip each vector along the last axis to the unit ball of the l1 norm."""
    norms = np.abs(vectors).sum(axis=-1, keepdims=True)
    return vectors / np.maximum(norms, 1.0)


def vector_sum_clipped_at_the_end(data, size, *, rng):
    """Clip the sum of a partition instead of each user's vector, as VECTOR_SUM does.

    The bug is in PipelineDP, pipeline_dp/combiners.py, VectorSumCombiner.compute_metrics; issue
    #551 (2025, open).
    """
    total = in_the_l1_ball(data.sum(axis=0))
    return total + rng.laplace(scale=1 / EPSILON, size=(size, data.shape[1]))


def vector_sum_clipped_by_user(data, size, *, rng):
    total = in_the_l1_ball(data).sum(axis=0)
    return total + rng.laplace(scale=1 / EPSILON, size=(size, data.shape[1]))


@pytest.mark.known_violation("PipelineDP #551: one user reverses the direction of the sum")
def audit_pipelinedp_551(auditor):
    auditor.check(
        vector_sum_clipped_at_the_end,
        PureDP(EPSILON, ADD_REMOVE, "VECTOR_SUM"),
        SHORT,
        draws_factor=4 * SHARE,
    )


def audit_pipelinedp_551_mended(auditor):
    auditor.check(
        vector_sum_clipped_by_user,
        PureDP(EPSILON, ADD_REMOVE, "Laplace mechanism"),
        SHORT,
        mutants=[vector_sum_clipped_at_the_end],
        draws_factor=4 * SHARE,
    )


# --- diffprivlib #105: the lower bound is used twice ---------------------------------------------

LOWER, UPPER = 0.25, 1.0


def sum_of_squares(data, size, rng, sensitivity):
    """Return the noisy second moment of a feature in [LOWER, UPPER], folded at 0.

    LaplaceFolded of diffprivlib folds in the same way.
    """
    x = np.clip(data[:, 0], LOWER, UPPER)
    return np.abs((x**2).sum() + rng.laplace(scale=sensitivity / EPSILON, size=size))


def moment_by_the_lower_bound(data, size, *, rng):
    """Use a sensitivity that contains the lower bound twice.

    The code is `np.max(np.abs([bounds_X[0][i], bounds_X[0][i]])) ** 2`. The bug is in diffprivlib
    up to 0.6.6, models/linear_regression.py, line 144; issues #104 (2025, item 1) and #105 (2026),
    PR #110 (open).
    """
    return sum_of_squares(data, size, rng, max(abs(LOWER), abs(LOWER)) ** 2)


def moment_by_both_bounds(data, size, *, rng):
    return sum_of_squares(data, size, rng, max(abs(LOWER), abs(UPPER)) ** 2)


@pytest.mark.known_violation("diffprivlib #105: a sensitivity that uses the lower bound only")
def audit_diffprivlib_105(auditor):
    auditor.check(
        moment_by_the_lower_bound, PureDP(EPSILON, REPLACE, "LinearRegression"), draws_factor=SHARE
    )


def audit_diffprivlib_105_mended(auditor):
    auditor.check(
        moment_by_both_bounds,
        PureDP(EPSILON, REPLACE, "Laplace mechanism, folded"),
        mutants=[moment_by_the_lower_bound],
        draws_factor=SHARE,
    )


# --- diffprivlib #23: the Wishart mechanism ------------------------------------------------------

DIM = 2


def in_the_l2_ball(data):
    norms = np.linalg.norm(data[:, :DIM], axis=1, keepdims=True)
    return data[:, :DIM] / np.maximum(norms, 1.0)


def second_moments_with_wishart_noise(data, size, *, rng):
    """Return X^T X plus a random positive definite matrix.

    The bug is in diffprivlib up to 0.4, mechanisms/wishart.py; issues #23 (2020) and #42 (2021), PR
    #25. After Imtiaz and Sarwate (2016), the noise is Wishart with d + 1 degrees of freedom and
    covariance 1 / (2 epsilon) I. The smallest eigenvalue of the output reveals which data were
    impossible.
    """
    moments = in_the_l2_ball(data).T @ in_the_l2_ball(data)
    root = rng.normal(scale=np.sqrt(1 / (2 * EPSILON)), size=(size, DIM + 1, DIM))
    noisy = moments + np.swapaxes(root, 1, 2) @ root
    return noisy[:, *np.tril_indices(DIM)]


def second_moments_with_laplace_noise(data, size, *, rng):
    """Return X^T X with Laplace noise. The lower triangle of x x^T has l1 norm at most 1.5."""
    moments = (in_the_l2_ball(data).T @ in_the_l2_ball(data))[np.tril_indices(DIM)]
    return moments + rng.laplace(scale=2 * 1.5 / EPSILON, size=(size, len(moments)))


@pytest.mark.nightly
@pytest.mark.known_violation("diffprivlib #23: noise that is only positive excludes smaller data")
def audit_diffprivlib_23(auditor):
    auditor.check(
        second_moments_with_wishart_noise,
        PureDP(EPSILON, REPLACE, "Imtiaz and Sarwate 2016, as in diffprivlib's Wishart"),
        draws_factor=SHARE,
    )


@pytest.mark.nightly
def audit_diffprivlib_23_mended(auditor):
    auditor.check(
        second_moments_with_laplace_noise,
        PureDP(EPSILON, REPLACE, "Laplace mechanism"),
        mutants=[second_moments_with_wishart_noise],
        draws_factor=SHARE,
    )
