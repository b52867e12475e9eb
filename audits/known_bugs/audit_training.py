"""Bugs of released training software, each with the correct algorithm.

Each bug is written again from its issue, pull request or paper, in a small form, with noise from
numpy. No code is copied. Each row of the data is the gradient of one example or of one user. No
audit names a pair of datasets. An audit gives at most the shape of the data.

A mechanism that is marked as a known violation must be refuted. If a known violation is not
refuted, the run fails.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from algorithms.common.noise import analytic_gaussian_sigma
from dpaudit import ApproxDP, PureDP, Relation, neighbors, within_sensitivity

EPSILON, DELTA, CLIP = 1.0, 1e-5, 1.0
NOISE = analytic_gaussian_sigma(1.0, EPSILON, DELTA)
"""Noise multiplier of one step on the whole batch, under add/remove."""

ADD_REMOVE = Relation.ADD_REMOVE_USER

SHARE = 0.05
"""Share of the default draws. With all draws, the verdicts are the same."""


SMALL = neighbors.portfolio(m=2).under(ADD_REMOVE)
"""Gradients in two dimensions, because they are fast. The default portfolio has eight."""


def clipped(gradients, norm=CLIP):
    """Clip each row to the ball of radius `norm`."""
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return gradients * np.minimum(1.0, norm / np.maximum(norms, 1e-300))


def promise(source):
    return ApproxDP(EPSILON, DELTA, ADD_REMOVE, source)


# --- Opacus #571: the gradient is divided by the private number of examples ---------------------


def step_divided_by_the_data(data, size, *, rng):
    """Divide one full batch by `expected_batch_size = int(len(dataset) * sample_rate)`.

    The bug is in Opacus, opacus/privacy_engine.py, make_private, all versions up to 1.6.0; issue
    #571 (2023, open), "Privacy Leakage at low sample size".
    """
    noise = rng.normal(scale=NOISE * CLIP, size=(size, data.shape[1]))
    return (clipped(data).sum(axis=0) + noise) / len(data)


def step_divided_by_a_constant(data, size, *, rng):
    noise = rng.normal(scale=NOISE * CLIP, size=(size, data.shape[1]))
    return (clipped(data).sum(axis=0) + noise) / 3


FEW = neighbors.portfolio(n_users=3).under(ADD_REMOVE)


@pytest.mark.nightly
@pytest.mark.known_violation("Opacus #571: divides by the number of examples, which is private")
def audit_opacus_571(auditor):
    auditor.check(
        step_divided_by_the_data, promise("Opacus 1.6.0 accountant"), FEW, draws_factor=SHARE
    )


@pytest.mark.nightly
def audit_opacus_571_mended(auditor):
    auditor.check(
        step_divided_by_a_constant,
        promise("Gaussian mechanism"),
        FEW,
        mutants=[step_divided_by_the_data],
        draws_factor=SHARE,
    )


# --- Opacus #819: the same line in many dimensions, with sampled batches -------------------------

BATCH = 10
WIDE = neighbors.portfolio(m=64).under(ADD_REMOVE)


def sampled_sum(data, size, rng, rate):
    """Return the noisy sum of clipped gradients over a Poisson sample."""
    taken = (rng.random((size, len(data))) < rate).astype(float)
    return taken @ clipped(data) + rng.normal(scale=NOISE * CLIP, size=(size, data.shape[1]))


def sampled_step_divided_by_the_data(data, size, *, rng):
    """Derive the rate and the batch size from `len(dataset)`.

    The batch size is rounded down. With 20 examples, the noisy sum is divided by 10. With 19
    examples, the sum is divided by 9. No clipped gradient reveals this difference. But the length
    of the noise reveals the difference. The length of the noise reveals the difference more clearly
    in higher dimensions. The bug is Opacus #819 (2026, open) in versions 1.0.0 to 1.6.0. A dpaudit
    audit found the bug.
    """
    rate = 1 / math.ceil(len(data) / BATCH)
    return sampled_sum(data, size, rng, rate) / int(len(data) * rate)


def sampled_step_divided_by_a_constant(data, size, *, rng):
    return sampled_sum(data, size, rng, 0.5) / BATCH


@pytest.mark.nightly
@pytest.mark.known_violation("Opacus #819: the length of the noise reveals the number of examples")
def audit_opacus_819(auditor):
    auditor.check(
        sampled_step_divided_by_the_data,
        promise("Opacus 1.6.0 accountant"),
        WIDE,
        draws_factor=0.5 * SHARE,
    )


@pytest.mark.nightly
def audit_opacus_819_mended(auditor):
    auditor.check(
        sampled_step_divided_by_a_constant,
        promise("Gaussian mechanism"),
        WIDE,
        mutants=[sampled_step_divided_by_the_data],
        draws_factor=0.5 * SHARE,
    )


# --- Opacus #664: the requested clipping norm does not reach the module --------------------------

SMALL_CLIP = 0.1


def clips_to_the_default(data, size, *, rng):
    """Clip to 1 by ghost clipping, although the noise is scaled for `max_grad_norm` = 0.1.

    The bug is in Opacus before 1.5.2, where `_prepare_model` did not pass on `max_grad_norm`; PR
    #664 (2024).
    """
    noise = rng.normal(scale=NOISE * SMALL_CLIP, size=(size, data.shape[1]))
    return clipped(data, 1.0).sum(axis=0) + noise


def clips_to_what_was_asked(data, size, *, rng):
    noise = rng.normal(scale=NOISE * SMALL_CLIP, size=(size, data.shape[1]))
    return clipped(data, SMALL_CLIP).sum(axis=0) + noise


@pytest.mark.known_violation("Opacus #664: clips to 1, but the noise is for 0.1")
def audit_opacus_664(auditor):
    auditor.check(clips_to_the_default, promise("Opacus 1.5 accountant"), SMALL, draws_factor=SHARE)


def audit_opacus_664_mended(auditor):
    auditor.check(
        clips_to_what_was_asked,
        promise("Gaussian mechanism"),
        SMALL,
        mutants=[clips_to_the_default],
        draws_factor=SHARE,
    )


# --- JAX #3646: one key for the noise of all parameters ------------------------------------------


def one_key_for_all_leaves(data, size, *, rng):
    """Add the same noise to both leaves of the gradient, which have the same shape.

    The bug is in JAX, examples/differentially_private_sgd.py, private_grad, before PR #3646 (2020).
    The difference of the two leaves has no noise.
    """
    leaf = rng.normal(scale=NOISE * CLIP, size=(size, data.shape[1] // 2))
    return clipped(data).sum(axis=0) + np.concatenate([leaf, leaf], axis=1)


def a_key_for_each_leaf(data, size, *, rng):
    return clipped(data).sum(axis=0) + rng.normal(scale=NOISE * CLIP, size=(size, data.shape[1]))


@pytest.mark.known_violation("JAX #3646: leaves of equal shape get the same noise")
def audit_jax_3646(auditor):
    auditor.check(one_key_for_all_leaves, promise("DP-SGD"), SMALL, draws_factor=4 * SHARE)


@pytest.mark.nightly
def audit_jax_3646_mended(auditor):
    auditor.check(
        a_key_for_each_leaf,
        promise("Gaussian mechanism"),
        SMALL,
        mutants=[one_key_for_all_leaves],
        draws_factor=4 * SHARE,
    )


# --- Tramer et al. 2022: a factor of the batch size ----------------------------------------------

BATCH_SIZE = 20


def noise_divided_by_the_batch(data, size, *, rng):
    """Clip gradients of the mean loss, but divide the noise by the batch size another time.

    The bug is described in Section 4 of Tramer, Terzis, Steinke, Song, Jagielski and Carlini
    (2022), "Debugging Differential Privacy: A Case Study for Privacy Auditing". The paper audits an
    implementation of backpropagation clipping. The implementation claimed epsilon = 0.21, but the
    paper found an epsilon of at least 2.79. This re-creation omits networks and layers. This
    re-creation has the same wrong factor as the implementation.
    """
    noise = rng.normal(scale=NOISE * CLIP / BATCH_SIZE, size=(size, data.shape[1]))
    return clipped(data / BATCH_SIZE).sum(axis=0) + noise


def noise_for_the_clipping_norm(data, size, *, rng):
    noise = rng.normal(scale=NOISE * CLIP, size=(size, data.shape[1]))
    return clipped(data / BATCH_SIZE).sum(axis=0) + noise


@pytest.mark.known_violation("Tramer et al. 2022: the noise is too small by the batch size")
def audit_backpropagation_clipping(auditor):
    auditor.check(
        noise_divided_by_the_batch,
        promise("Stevens et al. 2022, implementation"),
        draws_factor=SHARE,
    )


def audit_backpropagation_clipping_mended(auditor):
    auditor.check(
        noise_for_the_clipping_norm,
        promise("Gaussian mechanism"),
        SMALL,
        mutants=[noise_divided_by_the_batch],
        draws_factor=SHARE,
    )


# --- NVFlare #343: accepted weights that are not drawn are sent without noise ---------------------

UPLOADED, GAMMA, TAU = 2, 1.0, 0.5
SHARES = 0.5, 1.0, 1.5
"""Shares of epsilon for the threshold, for the comparisons and for the released values."""

WEIGHTS = neighbors.portfolio(dim=4).under(within_sensitivity())


def update_with_leftovers(weights, size, *, rng):
    """Filter a model's update by a sparse vector technique.

    The update is changed in place. The bug is in NVFlare,
    nvflare/app_common/filters/svt_privacy.py, before PR #348 (2022); issue #343. Accepted weights
    are drawn with replacement. An accepted weight that is not drawn keeps its value without noise.
    """
    first, second, third = SHARES
    threshold = TAU + rng.laplace(scale=2 * GAMMA / first, size=(size, 1))
    values = np.abs(np.clip(weights, -GAMMA, GAMMA))
    accepted = np.zeros((size, len(weights)), dtype=bool)
    while (short := accepted.sum(axis=1) < UPLOADED).any():
        nu = rng.laplace(scale=4 * GAMMA * UPLOADED / second, size=(int(short.sum()), len(weights)))
        accepted[short] |= values + nu >= threshold[short]
    sent = np.where(accepted, weights, 0.0)
    order = np.argsort(~accepted + rng.random(accepted.shape), axis=1)  # accepted weights first
    pick = rng.integers(accepted.sum(axis=1, keepdims=True), size=(size, UPLOADED))
    drawn = np.take_along_axis(order, pick, axis=1)
    noise = rng.laplace(scale=2 * GAMMA * UPLOADED / third, size=(size, UPLOADED))
    noisy = np.clip(weights[drawn] + noise, -GAMMA, GAMMA)
    np.put_along_axis(sent, drawn, noisy, axis=1)
    return sent


def update_of_the_first_accepted(weights, size, *, rng):
    """Halt after enough accepted weights, and send the accepted weights with noise.

    The fix of PR #348 sends zeros for weights that are not drawn. In addition, this function halts
    after `UPLOADED` weights, because the proof of the technique needs this halt (Lyu, Su and Li
    2017).
    """
    first, second, third = SHARES
    threshold = TAU + rng.laplace(scale=2 * GAMMA / first, size=(size, 1))
    nu = rng.laplace(scale=4 * GAMMA * UPLOADED / second, size=(size, len(weights)))
    above = np.abs(np.clip(weights, -GAMMA, GAMMA)) + nu >= threshold
    accepted = above & (above.cumsum(axis=1) <= UPLOADED)
    noise = rng.laplace(scale=2 * GAMMA * UPLOADED / third, size=above.shape)
    return np.where(accepted, np.clip(weights + noise, -GAMMA, GAMMA), 0.0)


@pytest.mark.nightly
@pytest.mark.known_violation("NVFlare #343: some accepted weights are sent without noise")
def audit_nvflare_343(auditor):
    auditor.check(
        update_with_leftovers,
        PureDP(sum(SHARES), within_sensitivity(), "sum of the shares"),
        WEIGHTS,
        draws_factor=SHARE,
    )


@pytest.mark.nightly
def audit_nvflare_343_mended(auditor):
    auditor.check(
        update_of_the_first_accepted,
        PureDP(sum(SHARES), within_sensitivity(), "Lyu, Su and Li 2017, Theorem 2"),
        WEIGHTS,
        mutants=[update_with_leftovers],
        draws_factor=SHARE,
    )
