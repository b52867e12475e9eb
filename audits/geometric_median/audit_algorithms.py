"""The algorithms of the geometric median paper, and two algorithms that the paper compares with."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from algorithms.common import noise, sparse_vector
from algorithms.geometric_median import baselines, boosting, center, composed, radius, schedule
from dpaudit import (
    AdditiveNoise,
    ApproxDP,
    NeighborPair,
    PureDP,
    Relation,
    ZeroConcentratedDP,
    within_sensitivity,
)
from dpaudit.neighbors import Integer, Interval, SearchSpace
from mutants import geometric_median as mutants

PAPER = "geometric_median"
SLACK = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
REPLACE = Relation.REPLACE_USER
EPSILON = 1.0


def less_noise(mechanism, multipliers=SLACK, **options):
    """Return the mechanism with decreasing noise, to measure how loose its constants are."""
    return {x: partial(mechanism, noise_multiplier=x, **options) for x in multipliers}


def less_smoothing(centers, sigma):
    return {x: AdditiveNoise(centers, "gaussian", x * sigma) for x in SLACK}


def groups(*counts_and_places, d=1):
    """Return points on the first axis, with the given number of points at each place."""
    rows = [np.full(count, place, dtype=float) for count, place in counts_and_places]
    points = np.zeros((sum(len(row) for row in rows), d))
    points[:, 0] = np.concatenate(rows)
    return points


def moved(points, place, words):
    """Return a pair in which the last point moves to another place on the first axis."""
    other = points.copy()
    other[-1, 0] = place
    return NeighborPair(points, other, recipe=words)


# --- the tools of Section 2 ---


@pytest.mark.nightly
def audit_first_above_threshold(auditor):
    options = {"threshold": 0.0, "epsilon": EPSILON}
    result = auditor.check(
        partial(sparse_vector.first_above_threshold, **options),
        PureDP(EPSILON, Relation.WITHIN_SENSITIVITY, f"{PAPER} Lemma 2"),
        [
            NeighborPair(
                np.zeros(8), np.ones(8), relation=Relation.WITHIN_SENSITIVITY, recipe="all rise"
            ),
            NeighborPair(
                np.r_[np.zeros(7), 0.0],
                np.r_[np.ones(7), -1.0],
                relation=Relation.WITHIN_SENSITIVITY,
                recipe="7 rise, the last falls",
            ),
        ],
        mutants=[partial(mutants.first_above_threshold_exact_threshold, **options)],
        draws_factor=4,  # the mutant is visible in rare runs whose answers are all no
    )
    auditor.noise_margin(result, less_noise(sparse_vector.first_above_threshold, **options))


def audit_bounded_laplace(auditor):
    options = {"sensitivity": 1.0, "epsilon": EPSILON, "delta": 0.01}
    relation = within_sensitivity(1.0, norm="l1")
    result = auditor.check(
        partial(noise.bounded_laplace_mechanism, **options),
        ApproxDP(EPSILON, 0.01, relation, f"{PAPER} Fact 3"),
        NeighborPair(np.array(1.0), np.array(0.0), relation=relation, recipe="0 and 1"),
        mutants=[partial(mutants.bounded_laplace_one_scale, **options)],
    )
    auditor.noise_margin(result, less_noise(noise.bounded_laplace_mechanism, **options))


# --- radius ---

RADIUS_DELTA = 1e-6
CROWD = moved(groups((35, 0.0), (5, 2.0)), 0.0, "36 or 35 of 40 in one place")


def edge_of_the_crowd(inside, place):
    """Return a pair of 40 points.

    In the first dataset, `inside` points lie at 0, and all other points lie at `place`. In the
    second dataset, the last point moves to 0.
    """
    return moved(groups((inside, 0.0), (40 - inside, place)), 0.0, f"{inside} of 40 together")


@pytest.mark.nightly
def audit_fast_radius(auditor):
    options = {"min_radius": 1.0, "max_radius": 2.0, "epsilon": EPSILON, "delta": RADIUS_DELTA}
    result = auditor.check(
        partial(radius.fast_radius, **options),
        ApproxDP(EPSILON, RADIUS_DELTA, REPLACE, f"{PAPER} Lemma 5"),
        SearchSpace(edge_of_the_crowd, {"inside": Integer(20, 39), "place": Interval(0.5, 2.0)}),
        mutants=[partial(mutants.fast_radius_of_a_fraction, **options)],
    )
    auditor.noise_margin(result, less_noise(radius.fast_radius, **options))


@pytest.mark.nightly
def audit_radius_finder(auditor):
    options = {"min_radius": 1.0, "max_radius": 10.0, "epsilon": EPSILON, "failure_prob": 0.5}
    result = auditor.check(
        partial(baselines.radius_finder, **options),
        ApproxDP(EPSILON, 0.0, REPLACE, "Haghifam, Steinke and Ullman 2024, Algorithm 1"),
        moved(groups((353, 0.0), (47, 10.0)), 0.0, "354 or 353 of 400 in one place"),
        mutants=[partial(mutants.radius_finder_one_count, **options)],
        draws_factor=0.3,
    )
    auditor.noise_margin(result, less_noise(baselines.radius_finder, **options))


# --- center ---

CENTER_DELTA = 0.01
CENTER = {"radius": 1.0, "epsilon": EPSILON, "delta": CENTER_DELTA}
FAR = np.array([1e6, 0.0])  # public value for runs that fail the test of line 9


def center_pairs():
    """Return pairs.

    If all 400 points lie together, line 9 passes in about 40 % of the runs.
    """
    together = groups((400, 0.0), d=2)
    together[-1, 0] = 2.0
    return [
        moved(together, -2.0, "a survivor on the edge of the ball"),
        moved(together, 1e3, "a survivor, or an outlier pulled in by sampled copies"),
        moved(groups((221, 0.0), (179, 4.0), d=2), 0.0, "a cluster of 0.55 n"),
        moved(groups((300, 0.0), (100, 2.0), d=2), 0.0, "survivors at both ends"),
    ]


@pytest.mark.nightly
def audit_fast_center(auditor):
    auditor.check(
        partial(center.fast_center, **CENTER),
        ApproxDP(EPSILON, CENTER_DELTA, REPLACE, f"{PAPER} Lemma 9"),
        [*center_pairs(), moved(groups((10, 1e5), (11, 0.0), d=2), 1e5, "two halves far apart")],
        mutants=[partial(mutants.fast_center_untested, **CENTER)],
        draws_factor=0.1,
    )


@pytest.mark.nightly
def audit_fast_center_centers(auditor):
    """Audit with the noise of line 13 integrated out.

    Runs that fail line 9 have a separate value.
    """
    centers = partial(center.fast_center_centers, **CENTER, failed_at=FAR)
    sigma = center.fast_center_sigma(400, 1.0, EPSILON, CENTER_DELTA)
    result = auditor.check(
        AdditiveNoise(centers, "gaussian", sigma),
        ApproxDP(EPSILON, CENTER_DELTA, REPLACE, f"{PAPER} Lemma 9"),
        center_pairs(),
        mutants=[
            AdditiveNoise(centers, "gaussian", 2.0 / (400 * EPSILON))
        ],  # the noise that is enough if one point moves the center
        draws_factor=0.1,
    )
    auditor.noise_margin(result, less_smoothing(centers, sigma))


# --- boosting ---

USERS, STEPS, BOOST_DELTA = 5, 255, 1e-3
RHO = schedule.stable_dpsgd_rho(EPSILON, BOOST_DELTA)
BOOST = {"center": [0.0], "radius": 10.0, "rho": RHO, "step": 1.0, "n_steps": STEPS}


def tug_of_war(left, place, other):
    """Return a pair of datasets with 5 users.

    In the first dataset, `left` users lie at -`place`, and all other users lie at `place`. In the
    second dataset, the last user moves to `other` times `place`.
    """
    return moved(
        groups((left, -place), (USERS - left, place)),
        other * place,
        f"{left} against {USERS - left}",
    )


WARS = SearchSpace(
    tug_of_war,
    {"left": Integer(0, 4), "place": Interval(1.0, 1e6, log=True), "other": Interval(-1.0, 0.9)},
)
EVEN = tug_of_war(2, 1e6, -1.0)


def phases(mechanism, **options):
    """Return a mechanism whose rows hold the outputs of all phases.

    The privacy proof covers all these outputs.
    """

    def transcript(data, size, *, rng):
        return mechanism(data, size, transcript=True, **options, rng=rng)[:, :, 0]

    transcript.__name__ = mechanism.__name__
    return transcript


@pytest.mark.nightly
def audit_stable_dpsgd(auditor):
    options = {**BOOST, "delta": BOOST_DELTA}
    auditor.check(
        phases(boosting.stable_dpsgd, **options),
        ApproxDP(EPSILON, BOOST_DELTA, REPLACE, f"{PAPER} Lemma 12"),
        WARS,
        mutants=[phases(mutants.stable_dpsgd_forgetting_m, **options)],
        draws_factor=0.1,
    )


@pytest.mark.nightly
def audit_stable_dpsgd_centers(auditor):
    """Audit the first phase at its exact worst pair.

    The first phase costs 9/16 of the whole budget.
    """
    options = {**BOOST, "delta": BOOST_DELTA}
    plan = schedule.stable_dpsgd_schedule(
        USERS, 1, **{k: v for k, v in options.items() if k != "center"}
    )
    centers = partial(boosting.stable_dpsgd_centers, phase=1, **options)
    result = auditor.check(
        AdditiveNoise(centers, "gaussian", plan.sigmas[0]),
        ApproxDP(EPSILON, BOOST_DELTA, REPLACE, f"{PAPER} Lemma 12"),
        EVEN,
        mutants=[
            AdditiveNoise(centers, "gaussian", plan.sigmas[0] * 3 / (2 * plan.accesses[0] + 1))
        ],
        draws_factor=0.1,
    )
    auditor.noise_margin(result, less_smoothing(centers, plan.sigmas[0]))


@pytest.mark.nightly
def audit_fixed_order_dpsgd(auditor):
    options = {**BOOST, "rho": 0.5, "delta": BOOST_DELTA}
    auditor.check(
        phases(boosting.fixed_order_dpsgd, **options),
        ZeroConcentratedDP(0.5, REPLACE, f"{PAPER} Remark 1"),
        WARS,
        mutants=[phases(mutants.fixed_order_dpsgd_one_access, **options)],
        draws_factor=0.1,
    )


@pytest.mark.nightly
def audit_fixed_order_dpsgd_centers(auditor):
    """Audit the first phase.

    The data determine the first phase, so the profile of the first phase is exact.
    """
    options = {**BOOST, "rho": 0.5, "delta": BOOST_DELTA}
    plan = schedule.fixed_order_schedule(
        USERS, 1, **{k: v for k, v in options.items() if k != "center"}
    )

    def first_center(data):
        drawn = boosting.fixed_order_dpsgd_centers(
            data, 1, phase=1, **options, rng=np.random.default_rng(0)
        )
        return drawn[0]

    result = auditor.check(
        AdditiveNoise(first_center, "gaussian", plan.sigmas[0]),
        ZeroConcentratedDP(0.5, REPLACE, f"{PAPER} Remark 1"),
        EVEN,
        mutants=[
            AdditiveNoise(first_center, "gaussian", plan.sigmas[0] * 3 / (2 * plan.accesses[0] + 1))
        ],
    )
    auditor.noise_margin(result, less_smoothing(first_center, plan.sigmas[0]))


@pytest.mark.nightly
def audit_dpgd(auditor):
    options = {"center": [0.0], "radius": 10.0, "rho": 0.1, "step": 1.0, "n_steps": 100}

    def run(mechanism):
        def scalar(data, size, *, rng):
            return mechanism(data, size, **options, rng=rng)[:, 0]

        scalar.__name__ = getattr(mechanism, "__name__", "dpgd")
        return scalar

    result = auditor.check(
        run(baselines.dpgd),
        ZeroConcentratedDP(0.1, REPLACE, "Haghifam, Steinke and Ullman 2024, Algorithm 3"),
        WARS,
        mutants=[run(mutants.dpgd_one_step)],
        draws_factor=0.1,
    )
    auditor.noise_margin(
        result, {x: run(partial(baselines.dpgd, noise_multiplier=x)) for x in SLACK}
    )


# --- composed ---


@pytest.mark.nightly
def audit_warm_start(auditor):
    options = {"min_radius": 1.0, "max_radius": 2.0, "epsilon": EPSILON, "delta": RADIUS_DELTA}
    result = auditor.check(
        partial(composed.warm_start, **options),
        ApproxDP(EPSILON, RADIUS_DELTA, REPLACE, f"{PAPER} Theorem 3"),
        CROWD,
        mutants=[partial(mutants.warm_start_subsampling_is_noise, **options)],
        draws_factor=0.2,
    )
    auditor.noise_margin(result, less_noise(composed.warm_start, **options))


@pytest.mark.nightly
def audit_private_geometric_median(auditor):
    options = {
        "min_radius": 0.1,
        "max_radius": 1.0,
        "epsilon": EPSILON,
        "delta": RADIUS_DELTA,
        "n_steps": 7,
        "step_factor": 1e-4,
    }
    result = auditor.check(
        partial(composed.private_geometric_median, **options),
        ApproxDP(EPSILON, RADIUS_DELTA, REPLACE, f"{PAPER} Theorem 4"),
        moved(groups((2, -1.0), (3, 1.0)), -1.0, "the majority flips"),
        mutants=[partial(mutants.private_geometric_median_exact_start, **options)],
        draws_factor=0.2,
    )
    auditor.noise_margin(
        result,
        less_noise(composed.private_geometric_median, (0.1, 0.01, 1e-3, 1e-4, 1e-5), **options),
    )
