"""Audits of the algorithms of both versions of the paper, at constants that `scaled` derives.

Each phase adds Gaussian noise at its end, and the audits integrate out this noise. Each user takes
part in one phase only. On linear losses, a shift of one iterate persists in all later iterates. If
users have different curvatures, the scores change with the iterate.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pytest

from algorithms.user_level_sco import baselines, coordinatewise, euclidean, scaled
from algorithms.user_level_sco.domains import Ball, Box
from algorithms.user_level_sco.losses import Linear, VaryingQuadratic
from algorithms.user_level_sco.private_means import ClippedMean, ConcentratedMean, WinsorizedMean
from dpaudit import AdditiveNoise, ApproxDP, NeighborPair, Relation
from dpaudit.neighbors import Choice, Interval, SearchSpace
from mutants import user_level_sco as mutants

PAPER = "user_level_sco"
EPSILON, DELTA = 2.0, 0.02
REPLACE = Relation.REPLACE_USER
CLAIM = ApproxDP(EPSILON, DELTA, REPLACE, f"{PAPER} v2 Theorem 8, derived constants")
SLACK = (0.3, 0.1, 0.03, 0.01, 0.003)
SIZES = {"epsilon": EPSILON, "delta": DELTA, "lipschitz": 1.0, "radius": 100.0, "step": 1.0}
SHARES = {"filter_share": 0.7, "cutoff_share": 0.2, "spread": 0.01}


def less_smoothing(centers, sigma):
    return {x: AdditiveNoise(centers, "gaussian", x * sigma) for x in SLACK}


def less_noise(mechanism, **options):
    return {x: partial(mechanism, noise_multiplier=x, **options) for x in SLACK}


# --- v2: Algorithms 1 and 2 ---------------------------------------------------------------------


@cache
def filtered_plan():
    """Return phases of 4, 2 and 1 batches of 935 users, with honest gradients 0.01 apart."""
    return scaled.scaled_euclidean(8000, 2, 1, **SIZES, **SHARES)


def euclidean_run():
    return {"loss": Linear(), "domain": Ball(100.0), "plan": filtered_plan(), "start": [0.0]}


FIRST_BATCH = 0


def crowd(place, other, share, gap, user=FIRST_BATCH):
    """Return a pair in which one user differs.

    A share of all other users is at `gap`, and the rest is at 0.
    """
    data = np.zeros((filtered_plan().n_users, 2, 1))
    data[np.arange(len(data)) % 20 < 20 * share] = gap
    left, right = data.copy(), data.copy()
    left[user], right[user] = place, other
    return NeighborPair(left, right, recipe=f"a user at {place:.3g} or {other:.3g}")


def crowds(user=FIRST_BATCH):
    """Return a space of pairs: the differing user is inside the filter, on its edge, or far out."""
    return SearchSpace(
        partial(crowd, user=user),
        {
            "place": Interval(0.01, 1.0, log=True),
            "other": Interval(-1.0, 0.0),
            "share": Choice((0.0, 0.05, 0.1, 0.25, 0.5)),
            "gap": Interval(-1.0, 1.0),
        },
    )


def edge_crowd():
    """Return a pair with scores of 0.81 B, where F = 0.8 B: a user is kept in 3/4 of runs."""
    return crowd(0.02, -0.02, 0.0, 0.0)


@pytest.mark.nightly
def audit_filtered_phase(auditor):
    centers = partial(euclidean.user_level_sco_centers, phase=1, **euclidean_run())
    sigma = filtered_plan().phases[0].sigma
    result = auditor.check(
        AdditiveNoise(centers, "gaussian", sigma),
        CLAIM,
        crowds(),
        mutants=[
            AdditiveNoise(
                partial(mutants.without_filter, mechanism=centers.func, phase=1, **euclidean_run()),
                "gaussian",
                sigma,
            )
        ],
        draws_factor=0.1,
    )
    auditor.noise_margin(result, less_smoothing(centers, sigma))


@pytest.mark.nightly
def audit_filtered_phase_in_its_last_batch(auditor):
    centers = partial(euclidean.user_level_sco_centers, phase=1, **euclidean_run())
    last_batch = filtered_plan().phases[0].n_users - 1
    auditor.check(
        AdditiveNoise(centers, "gaussian", filtered_plan().phases[0].sigma),
        CLAIM,
        [crowd(0.02, -0.02, 0.0, 0.0, last_batch), crowd(1.0, 0.0, 0.1, 0.2, last_batch)],
        draws_factor=0.1,
    )


@pytest.mark.nightly
def audit_user_level_sco(auditor):
    """Audit all released values, for a user of the first phase."""

    def transcript(data, size, *, rng):
        found = euclidean.user_level_sco(data, size, transcript=True, **euclidean_run(), rng=rng)
        return found[:, :, 0]

    result = auditor.check(
        transcript,
        CLAIM,
        [edge_crowd(), crowd(1.0, -1.0, 0.0, 0.0), crowd(1.0, 0.0, 0.1, 0.2)],
        draws_factor=0.1,
    )
    auditor.noise_margin(
        result,
        {
            x: partial(euclidean.user_level_sco, noise_multiplier=x, **euclidean_run())
            for x in (0.1, 0.01, 0.001)
        },
    )


@pytest.mark.nightly
def audit_second_phase(auditor):
    """Audit a user of the second phase.

    The second phase starts at a released output of the first phase.
    """
    options = {**euclidean_run(), "start": [0.5], "phase": 2}
    centers = partial(euclidean.filtered_sgd, **options)
    auditor.check(
        AdditiveNoise(centers, "gaussian", filtered_plan().phases[1].sigma),
        CLAIM,
        [edge_crowd(), crowd(1.0, 0.0, 0.1, 0.02)],
        draws_factor=0.1,
    )


@cache
def curved_plan():
    """Return step sizes eta = 2 / beta, at which steps neither shrink nor increase distances."""
    return scaled.scaled_euclidean(
        9_200, 1, 1, smoothness=2.0, sensitivity=3.1, keep=0.85,
        **{**SIZES, **SHARES, "epsilon": 3.0, "delta": 0.1},
    )  # fmt: skip


def bent(place, other, gap, share):
    """Return a pair in which the first user differs.

    Some later users have the largest curvature and scores near the threshold.
    """
    data = np.zeros((curved_plan().n_users, 1, 2))
    data[np.arange(len(data)) % 20 < 20 * share] = [-gap / 2, 2.0]
    left, right = data.copy(), data.copy()
    left[0], right[0] = [-place / 2, 2.0], [-other / 2, 2.0]
    return NeighborPair(left, right, recipe=f"a user at {place:.3g} or {other:.3g}")


@pytest.mark.nightly
def audit_contraction_edge(auditor):
    """Audit step sizes 2 / beta and differing curvatures.

    With these curvatures, the scores change with the iterates.
    """
    options = {
        "loss": VaryingQuadratic(2.0), "domain": Ball(0.4), "plan": curved_plan(), "start": [0.0],
    }  # fmt: skip
    centers = partial(euclidean.user_level_sco_centers, phase=1, **options)
    sigma = curved_plan().phases[0].sigma
    result = auditor.check(
        AdditiveNoise(centers, "gaussian", sigma),
        ApproxDP(3.0, 0.1, REPLACE, CLAIM.source),
        [bent(0.02, -0.02, 0.0, 0.0), bent(0.02, -0.02, 0.02, 0.05)],
        draws_factor=0.015,
    )
    auditor.noise_margin(result, less_smoothing(centers, sigma))


# --- v1: Algorithms 1, 2, 3 and 5 (v2: 5 to 8) ----------------------------------------------------


@cache
def robust_plan(statistic="median"):
    return scaled.scaled_coordinatewise(1600, 2, 1, spread=0.01, statistic=statistic, **SIZES)


LINF_CLAIM = ApproxDP(EPSILON, DELTA, REPLACE, f"{PAPER} v1 Theorem 3.1, derived constants")


def robust_run():
    return {"loss": Linear(), "domain": Box(100.0), "plan": robust_plan(), "start": [0.0]}


def halves(place, other, share, gap):
    """Return a pair in which one user differs.

    The batches pass the test, fail the test, or are on the edge of the test.
    """
    data = np.zeros((robust_plan().n_users, 2, 1))
    data[: round(share * robust_plan().batch_size)] = gap
    left, right = data.copy(), data.copy()
    left[0], right[0] = place, other
    return NeighborPair(left, right, recipe=f"a user at {place:.3g} or {other:.3g}")


def even_halves():
    return halves(1.0, 0.0, 0.5, 1.0)


def audit_robust_phase(auditor):
    centers = partial(coordinatewise.user_level_sco_linf_centers, phase=1, **robust_run())
    sigma = robust_plan().phases[0].sigma
    result = auditor.check(
        AdditiveNoise(centers, "gaussian", sigma),
        LINF_CLAIM,
        [even_halves(), halves(1.0, -1.0, 0.0, 0.0), halves(1.0, -1.0, 0.1, 0.05)],
        mutants=[
            AdditiveNoise(
                partial(mutants.without_test, mechanism=centers.func, phase=1, **robust_run()),
                "gaussian",
                sigma,
            )
        ],
        draws_factor=0.1,
    )
    auditor.noise_margin(result, less_smoothing(centers, sigma))


def audit_trimmed_mean(auditor):
    """Audit a mean that trims two fifths of the values at either end, by a search over pairs."""
    plan = robust_plan("trimmed_mean")
    options = {**robust_run(), "plan": plan}
    centers = partial(coordinatewise.user_level_sco_linf_centers, phase=1, **options)
    sigma = plan.phases[0].sigma
    result = auditor.check(
        AdditiveNoise(centers, "gaussian", sigma),
        LINF_CLAIM,
        SearchSpace(
            halves,
            {
                "place": Interval(-1.0, 1.0),
                "other": Interval(-1.0, 1.0),
                "share": Interval(0.0, 0.5),
                "gap": Interval(-0.2, 0.2),
            },
        ),
        draws_factor=0.1,
    )
    auditor.noise_margin(result, less_smoothing(centers, sigma))


@pytest.mark.nightly
def audit_user_level_sco_linf(auditor):
    def transcript(data, size, *, rng):
        found = coordinatewise.user_level_sco_linf(
            data, size, transcript=True, **robust_run(), rng=rng
        )
        return found[:, :, 0]

    result = auditor.check(
        transcript,
        LINF_CLAIM,
        [even_halves(), halves(1.0, -1.0, 0.0, 0.0)],
        mutants=[partial(mutants.without_test, **robust_run())],
        draws_factor=0.1,
    )
    auditor.noise_margin(result, less_noise(coordinatewise.user_level_sco_linf, **robust_run()))


# --- baselines ------------------------------------------------------------------------------------

LOUD = {"epsilon": 1.0, "delta": DELTA}


def pulled(n=40):
    left = np.zeros((n, 4, 1))
    right = left.copy()
    left[0], right[0] = 1.0, -1.0
    return NeighborPair(left, right, recipe="a user at 1 or -1")


@pytest.mark.nightly
def audit_user_level_dp_sgd(auditor):
    options = {
        "loss": Linear(), "domain": Ball(100.0), "start": [0.0], "batch_size": 10, "n_steps": 8,
        "step": 1.0, "mean": ClippedMean(0.5), **LOUD,
    }  # fmt: skip
    result = auditor.check(
        partial(baselines.user_level_dp_sgd, **options),
        ApproxDP(1.0, DELTA, REPLACE, "Gaussian noise on clipped means"),
        pulled(),
        mutants=[partial(mutants.dp_sgd_items, **options)],
    )
    auditor.noise_margin(result, less_noise(baselines.user_level_dp_sgd, **options))


def crowds_apart(size, gap):
    """Return a pair in which one user decides which of two crowds of a batch is larger."""
    data = np.zeros((size, 4, 1))
    data[::2] = gap
    other = data.copy()
    data[0], other[0] = gap, -gap
    return NeighborPair(data, other, recipe=f"crowds at 0 and {gap:g}")


@pytest.mark.nightly
def audit_winsorized_sgd(auditor):
    options = {
        "loss": Linear(), "domain": Ball(100.0), "start": [0.0], "batch_size": 41, "n_steps": 2,
        "step": 1.0, "mean": WinsorizedMean(0.01, 1.0, 0.2), **LOUD,
    }  # fmt: skip
    result = auditor.check(
        partial(baselines.user_level_dp_sgd, **options),
        ApproxDP(1.0, DELTA, REPLACE, "private medians, and Gaussian noise"),
        [crowds_apart(82, 0.5), pulled(82)],
        mutants=[partial(mutants.exact_median, **options)],
    )
    auditor.noise_margin(result, less_noise(baselines.user_level_dp_sgd, **options))


@pytest.mark.nightly
def audit_concentrated_sgd(auditor):
    options = {
        "loss": Linear(), "domain": Ball(100.0), "start": [0.0], "batch_size": 200, "n_steps": 2,
        "step": 1.0, "mean": ConcentratedMean(0.01, 0.2, 1e-3), **LOUD,
    }  # fmt: skip
    inside = np.zeros((400, 4, 1))
    inside[194:200] = np.linspace(0.1, 0.6, 6)[:, None, None]
    outside = inside.copy()
    outside[0] = -1.0  # without this user, the total weight is below the threshold
    crowds = pulled(400).left.copy()
    crowds[:10], crowds[10:20] = 0.0195, -0.0195
    moved = crowds.copy()
    crowds[0], moved[0] = 0.02, -0.02
    result = auditor.check(
        partial(baselines.user_level_dp_sgd, **options),
        ApproxDP(1.0, DELTA, REPLACE, "a private test, and Gaussian noise on weighted means"),
        [
            pulled(400),
            NeighborPair(inside, outside, recipe="194 of 200 users are close, or 193"),
            NeighborPair(crowds, moved, recipe="two crowds, and users between them"),
        ],
        mutants=[partial(mutants.without_weights, **options)],
    )
    auditor.noise_margin(result, less_noise(baselines.user_level_dp_sgd, **options))


@pytest.mark.nightly
@pytest.mark.parametrize("n_phases", [1, 3])
def audit_output_perturbation(auditor, n_phases):
    options = {
        "loss": Linear(), "domain": Ball(100.0), "start": [0.0], "step": 0.1, "lipschitz": 1.0,
        "n_phases": n_phases, **LOUD,
    }  # fmt: skip
    result = auditor.check(
        partial(baselines.output_perturbation, **options),
        ApproxDP(1.0, DELTA, REPLACE, "Gaussian noise for a group"),
        pulled(),
        mutants=[partial(mutants.output_perturbation_of_one_item, **options)],
    )
    auditor.noise_margin(result, less_noise(baselines.output_perturbation, **options))
