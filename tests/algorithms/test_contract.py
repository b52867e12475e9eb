"""The contract that every mechanism satisfies, tested by one suite with one row per mechanism."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from algorithms.common import (
    histogram,
    means,
    noise,
    selection,
    sparse_vector,
    sparse_vector_variants,
    subsampling,
    tree,
)
from algorithms.few_examples import deletion, learning, pairwise, pipeline
from algorithms.few_examples.hypotheses import scheffe_comparison
from algorithms.few_examples.items import AlternatingMajority, noisy_majority
from algorithms.few_examples.representations import Representation, thresholds
from algorithms.geometric_median import baselines, boosting, center, composed, radius
from algorithms.user_level_sco import baselines as sco_baselines
from algorithms.user_level_sco import coordinatewise, euclidean
from algorithms.user_level_sco.domains import Ball, Box
from algorithms.user_level_sco.losses import Quadratic
from algorithms.user_level_sco.plans import Filter, Phase, Plan, Test
from algorithms.user_level_sco.private_means import ClippedMean, ConcentratedMean, WinsorizedMean
from algorithms.zeroth_order import baselines as zeroth_baselines
from algorithms.zeroth_order import conversion, estimators, oracles, smoothing, stationarity
from algorithms.zeroth_order import plans as zeroth_plans
from algorithms.zeroth_order.losses import CappedAbsolute
from mutants import few_examples as few_mutants
from mutants import geometric_median as median_mutants
from mutants import histogram as histogram_mutants
from mutants import means as means_mutants
from mutants import noise as noise_mutants
from mutants import selection as selection_mutants
from mutants import sparse_vector as sparse_vector_mutants
from mutants import user_level_sco as sco_mutants
from mutants import zeroth_order as zeroth_mutants


@dataclass(frozen=True)
class Row:
    """A mechanism with an input, parameters and the form of one draw."""

    mechanism: Callable[..., np.ndarray]
    data: Any
    kwargs: dict[str, Any]
    shape: tuple[int, ...]
    dtype: type = np.float64
    data_name: str = "values"
    integer_data: bool = False
    bad: dict[str, list[Any]] = field(default_factory=dict)

    def __call__(self, size: int = 3, seed: int = 1, **changes: Any) -> np.ndarray:
        data = changes.pop("data", self.data)
        rng = changes.pop("rng", np.random.default_rng(seed))
        return self.mechanism(data, size, **(self.kwargs | changes), rng=rng)


EPS = {"sensitivity": 1.0, "epsilon": 0.5}
VECTOR = np.array([0.5, -1.0, 2.0])
INTEGERS = np.array([1, 0, 1])
TABLE = np.array([[0, 1], [2, 2], [1, 1]])
SV = {"thresholds": 0.0, "epsilon": 0.5, "sensitivity": 1.0}
CUT = SV | {"cutoff": 2}
SCALAR_MEAN = {"clip_norm": 1.0, "epsilon": 0.5}
VECTOR_MEAN = SCALAR_MEAN | {"delta": 1e-5}
CUBE = np.arange(24.0).reshape(3, 2, 4)
CLOUD = np.array([[0.5 * (i % 5), 0.25 * (i % 3)] for i in range(20)])
LOUD = {"epsilon": 100.0, "delta": 0.5}  # at 20 points, FastCenter fails below this epsilon
DEGREES = {"delta": [0.0, 1.0, math.nan], "noise_multiplier": [0.0, -1.0, math.nan]}
SLOW = {"max_seconds": [0.0, -1.0, math.nan, "1", True]}
ROUTED = DEGREES | SLOW | {"route": ["count"]}
SEARCH = {"min_radius": 0.25, "max_radius": 4.0}
RANGES = {
    "min_radius": [0.0, 5.0, math.nan, 1e-150], "max_radius": [-1.0, math.inf],
    "data": [[[9.0, 0.0]], [[1e200, 0.0]]],
}  # fmt: skip
DESCENT = {"center": [0.0, 1.0], "radius": 3.0, "rho": 0.5, "step": 0.5, "n_steps": 15}
PHASES = DESCENT | {"delta": 0.1}
BAD_DESCENT = SLOW | {
    "center": [[0.0], [0.0, math.nan], [[0.0, 0.0]]], "radius": [-1.0, math.inf], "rho": [0.0],
    "step": [0.0, math.nan], "n_steps": [0, 1.5], "noise_multiplier": [0.0],
}  # fmt: skip
BAD_PHASES = BAD_DESCENT | DEGREES | {
    "n_steps": [0, 16, 1.5], "project": ["last"], "ball": ["small"],
}  # fmt: skip
BAD_ORDER = BAD_PHASES | {"order": [[0] * 20, [0, 1], [0.5] * 20], "accesses": ["none"]}
MEDIAN = SEARCH | LOUD | {"n_steps": 15, "step_factor": 0.5}
BAD_MEDIAN = RANGES | ROUTED | {
    "n_steps": [0, 14], "step_factor": [0.0], "radius_factor": [-1.0], "order": ["sorted"],
    "accesses": ["none"], "project": ["last"], "ball": ["small"],
}  # fmt: skip
BOUNDED = EPS | {"delta": 0.1}
USERS = np.array([[[0.25 * (i % 5), 0.5 * (j - i % 2)] for j in range(3)] for i in range(9)])
PHASE_TUPLE = (Phase(6, 2, 0.5, 0.5), Phase(3, 1, 0.25, 0.25))
FILTERED = Plan(3, PHASE_TUPLE, Filter(0.5, 1.5, 1.0, 5.0, 2.0), 9.0, 1.0, 1.0, 0.1)
CHECKED = Plan(3, PHASE_TUPLE, Test(0.5, 1.5, 1.0, 2.0, 0.1), 9.0, 1.0, 1.0, 0.1)
SAMPLED = replace(FILTERED, rule=replace(FILTERED.rule, samples=3))
TESTED_OFTEN = replace(CHECKED, rule=replace(CHECKED.rule, per_step=True))
SCO = {"loss": Quadratic(), "domain": Ball(2.0), "plan": FILTERED, "start": [0.0, 0.5]}
LINF = SCO | {"domain": Box(2.0), "plan": CHECKED}
BAD_SCO = {
    "start": [[0.0], [0.0, math.nan], [9.0, 0.0]], "noise_multiplier": [0.0, math.nan],
    "data": [USERS[:4], USERS[:, 0]],
}  # fmt: skip
BAD_PHASE = BAD_SCO | {"phase": [0, 3, 1.0]}
SGD = {
    "loss": Quadratic(), "domain": Ball(2.0), "start": [0.0, 0.5], "step": 0.5, "epsilon": 0.5,
    "delta": 0.1,
}  # fmt: skip
BAD_SGD = DEGREES | {"step": [0.0, math.nan], "start": [[0.0], [0.0, math.nan]]}

BITS = np.array([[int(i in (3, 5, 8))] for i in range(22)])
STABLE = {"algorithm": noisy_majority(6.0), "epsilon": 9.0, "delta": 0.9}
BAD_STABLE = {"delta": [0.0, 1.0, math.nan], "data": [BITS[:19], BITS + 1, BITS - 1]}
PIPED = {
    "base": noisy_majority(1.0),
    "plan": pipeline.pipeline(deletion.Budget(9.0, 0.9), 1, sample=2, base_epsilon=1.0),
}
LABELLED = np.array([[[i % 3, int(i % 3 > 0)], [(i + j) % 3, j]] for i in range(4) for j in (0, 1)])
CLASSES = Representation((thresholds(3)[:2], thresholds(3)[1:]))
LEARNER = {"representation": CLASSES, "epsilon": 0.5}
BAD_LABELLED = {"data": [LABELLED + 2, LABELLED - 1, LABELLED[:, :, :1]]}
PAIRWISE = {
    "comparison": scheffe_comparison([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]), "threshold": 1.0,
    "epsilon": 0.5,
}  # fmt: skip
BAD_THRESHOLD = {"threshold": [0.0, -1.0, math.nan, math.inf]}

REGRESSION = np.array([[0.5, -0.25, 1.0], [1.0, 0.5, 0.0], [0.25, 0.25, -0.5]] * 4)
VALUES = {"loss": CappedAbsolute(), "radius": 0.5}
AT = VALUES | {"point": [0.0, 0.5]}
BAD_VALUES = {
    "radius": [0.0, -1.0, math.nan, math.inf],
    "data": [np.ones((3, 1)), np.ones((3, 2, 2))],
}
BAD_AT = BAD_VALUES | {
    "point": [[0.0], [0.0, math.nan], [[0.0, 0.0]]], "n_directions": [0, 1.5],
    "directions": [np.ones((12, 2, 2)), np.ones((1, 2, 2)), [0.0]],
}  # fmt: skip
REDUCED = zeroth_plans.VarianceReduced(3, 2, 0.5)
ORACLE = VALUES | {"oracle": REDUCED, "points": [[0.0, 0.5], [0.1, 0.5], [0.1, 0.4]]}
BAD_PATH = BAD_VALUES | {"points": [[0.0, 0.5], [[0.0, math.nan]]], "data": [REGRESSION[:6]]}
CONVERSION = zeroth_plans.Plan(3, 2, 0.5, 0.125, 0.05, zeroth_plans.VarianceReduced(2, 2, 0.5))
ONLINE = {"loss": CappedAbsolute(), "plan": CONVERSION, "start": [0.0, 0.5]}
BAD_ONLINE = {
    "start": [[0.0], [0.0, math.nan]], "noise_multiplier": [-1.0, math.nan],
    "data": [REGRESSION[:11], np.ones((12, 1))],
}  # fmt: skip
RECURSIVE = VALUES | {
    "start": [0.0, 0.5], "step": 0.25, "period": 3, "large_batch": 3, "small_batch": 2,
}  # fmt: skip
BAD_RECURSIVE = {
    "radius": [0.0, -1.0, math.nan, math.inf, 1e-200], "step": [0.0, -1.0, math.nan],
    "period": [0, 1.5], "large_batch": [0, 1.5, 13], "small_batch": [0, 1.5],
    "start": [[0.0], [0.0, math.nan], [[0.0, 0.5], [1.0, 0.5]]],
    "loss": [abs], "data": [np.ones((12, 1)), np.ones((12, 2, 3))],
}  # fmt: skip

ROWS = [
    Row(noise.laplace_mechanism, VECTOR, EPS, (3,)),
    Row(noise.laplace_mechanism, 0.5, EPS, ()),
    Row(noise.gaussian_mechanism, VECTOR, {"sigma": 2.0}, (3,)),
    Row(noise.gaussian_mechanism, 0.5, {"sigma": 2.0}, ()),
    Row(
        noise.discrete_laplace_mechanism, INTEGERS, {"sensitivity": 1, "epsilon": 0.5}, (3,),
        np.int64, integer_data=True, bad={"sensitivity": [1.5, 0]},
    ),
    Row(
        noise.discrete_laplace_mechanism, 4, {"sensitivity": 2, "epsilon": 0.5}, (), np.int64,
        integer_data=True,
    ),
    Row(
        noise.randomized_response, INTEGERS, {"epsilon": 0.5}, (3,), np.int64,
        data_name="bits", integer_data=True, bad={"data": [[0, 2], [-1]]},
    ),
    Row(
        noise.randomized_response, 1, {"epsilon": 0.5}, (), np.int64,
        data_name="bits", integer_data=True,
    ),
    Row(selection.exponential_mechanism, VECTOR, EPS, (), np.int64, data_name="scores"),
    Row(selection.report_noisy_max, VECTOR, EPS, (), np.int64, data_name="scores"),
    Row(
        histogram.noisy_histogram, TABLE, {"n_bins": 3, "epsilon": 0.5}, (3,),
        data_name="data", integer_data=True,
        bad={"n_bins": [0, 2.0, True], "data": [[[0, 3]], [[-1, 0]]]},
    ),
    Row(
        means.clipped_user_mean, np.arange(6.0).reshape(3, 2), SCALAR_MEAN, (), data_name="data",
        bad={"clip_norm": [0.0, math.nan]},
    ),
    Row(
        means.clipped_user_mean_gaussian, CUBE, VECTOR_MEAN, (4,), data_name="data",
        bad={"clip_norm": [-1.0], "delta": [0.0, 1.0, math.nan]},
    ),
    Row(
        sparse_vector.above_threshold, VECTOR, {"threshold": 0.0, "epsilon": 0.5}, (3,),
        data_name="queries", bad={"threshold": [math.nan, "0", [0.0]], "sensitivity": [0.0]},
    ),
    Row(
        sparse_vector.fixed_threshold_sparse_vector, VECTOR, CUT, (3,), data_name="queries",
        bad={"cutoff": [0, 1.5], "thresholds": [[0.0, 1.0], math.inf, [[0.0]]]},
    ),
    *[
        Row(
            mechanism, VECTOR, CUT, shape, data_name="queries",
            bad={"cutoff": [0, 1.5, True], "thresholds": [[0.0, 1.0], math.nan]},
        )
        for mechanism, shape in [
            (sparse_vector_variants.svt1, (3,)),
            (sparse_vector_variants.svt2, (3,)),
            (sparse_vector_variants.svt3, (3, 2)),
            (sparse_vector_variants.svt4, (3,)),
        ]
    ],
    Row(sparse_vector_variants.svt5, VECTOR, SV, (3,), data_name="queries"),
    Row(sparse_vector_variants.svt6, VECTOR, SV, (3,), data_name="queries"),
    Row(
        sparse_vector.first_above_threshold, VECTOR, {"threshold": 0.0, "epsilon": 0.5}, (3,),
        data_name="queries",
        bad={"threshold": [math.nan], "sensitivity": [0.0], "noise_multiplier": [0.0, "1"]},
    ),
    Row(noise.bounded_laplace_mechanism, VECTOR, BOUNDED, (3,), bad=DEGREES),
    Row(noise.bounded_laplace_mechanism, 0.5, BOUNDED, (), bad=DEGREES),
    Row(
        radius.fast_radius, CLOUD, SEARCH | {"epsilon": 0.5, "delta": 0.1}, (), data_name="data",
        bad=RANGES | ROUTED,
    ),
    Row(
        center.fast_center, CLOUD, LOUD | {"radius": 2.0}, (2,), data_name="data",
        bad=ROUTED | {"radius": [0.0, -1.0, math.inf], "data": [[[1e200, 0.0]]]},
    ),
    Row(
        center.fast_center_centers, CLOUD, LOUD | {"radius": 0.75, "failed_at": [9.0, 9.0]}, (2,),
        data_name="data", bad=ROUTED | {"radius": [0.0], "failed_at": [[0.0], [1e200, 0.0]]},
    ),
    Row(boosting.stable_dpsgd, CLOUD, PHASES, (2,), data_name="data", bad=BAD_PHASES),
    Row(
        boosting.stable_dpsgd, CLOUD, PHASES | {"transcript": True}, (4, 2), data_name="data",
        bad=BAD_PHASES,
    ),
    Row(
        boosting.stable_dpsgd_centers, CLOUD, PHASES | {"phase": 1}, (2,), data_name="data",
        bad=BAD_PHASES | {"phase": [0, 5, 1.0]},
    ),
    Row(boosting.fixed_order_dpsgd, CLOUD, PHASES, (2,), data_name="data", bad=BAD_ORDER),
    Row(
        boosting.fixed_order_dpsgd, CLOUD, PHASES | {"transcript": True, "accesses": "phase"},
        (4, 2), data_name="data", bad=BAD_ORDER,
    ),
    Row(
        boosting.fixed_order_dpsgd_centers, CLOUD, PHASES | {"phase": 2}, (2,), data_name="data",
        bad=BAD_ORDER | {"phase": [0, 5, 1.0]},
    ),
    Row(
        composed.warm_start, CLOUD, SEARCH | LOUD, (3,), data_name="data", bad=RANGES | ROUTED,
    ),
    Row(composed.private_geometric_median, CLOUD, MEDIAN, (2,), data_name="data", bad=BAD_MEDIAN),
    Row(
        composed.private_geometric_median, CLOUD, MEDIAN | {"order": "fixed"}, (2,),
        data_name="data", bad=BAD_MEDIAN,
    ),
    Row(
        baselines.radius_finder, CLOUD, SEARCH | {"epsilon": 20.0}, (), data_name="data",
        bad=RANGES | SLOW | {
            "failure_prob": [0.0, 1.0], "gamma": [0.5, 1.1, math.nan], "noise_multiplier": [0.0],
        },
    ),
    Row(
        baselines.dpgd, CLOUD, DESCENT, (2,), data_name="data",
        bad=BAD_DESCENT | {"radius": [0.0], "start": [[0.0]]},
    ),
    *[
        Row(mechanism, USERS, given | {"transcript": transcript}, shape, data_name="data",
            bad=BAD_SCO)
        for mechanism, given in [
            (euclidean.user_level_sco, SCO), (coordinatewise.user_level_sco_linf, LINF)
        ]
        for transcript, shape in [(False, (2,)), (True, (2, 2))]
    ],
    Row(euclidean.filtered_sgd, USERS, SCO, (2,), data_name="data",
        bad={**BAD_PHASE, "noise_multiplier": []}),
    Row(euclidean.filtered_sgd, USERS, SCO | {"plan": SAMPLED}, (2,), data_name="data"),
    Row(coordinatewise.robust_sgd, USERS, LINF | {"plan": TESTED_OFTEN}, (2,), data_name="data"),
    Row(euclidean.filter_decisions, USERS, SCO, (6,), data_name="data",
        bad={**BAD_PHASE, "noise_multiplier": []}),
    Row(coordinatewise.robust_sgd, USERS, LINF, (2,), data_name="data",
        bad={**BAD_PHASE, "noise_multiplier": []}),
    Row(euclidean.user_level_sco_centers, USERS, SCO | {"phase": 1}, (2,), data_name="data",
        bad=BAD_PHASE),
    Row(coordinatewise.user_level_sco_linf_centers, USERS, LINF | {"phase": 2}, (2,),
        data_name="data", bad=BAD_PHASE),
    Row(sco_baselines.user_level_dp_sgd, USERS,
        SGD | {"batch_size": 3, "n_steps": 4, "mean": ClippedMean(1.0)}, (2,), data_name="data",
        bad=BAD_SGD | {"batch_size": [0, 10, 1.5], "n_steps": [0]}),
    *[
        Row(sco_baselines.user_level_dp_sgd, USERS,
            SGD | {"batch_size": 9, "n_steps": 2, "mean": rule, "epsilon": 9.0}, (2,),
            data_name="data", bad=BAD_SGD | {"batch_size": [0, 10, 1.5], "n_steps": [0]})
        for rule in (WinsorizedMean(1.0, 2.0, 0.5), ConcentratedMean(1.0, 3.0, 0.02))
    ],
    Row(sco_baselines.output_perturbation, USERS, SGD | {"lipschitz": 9.0}, (2,), data_name="data",
        bad=BAD_SGD | {"lipschitz": [0.1, math.nan], "step": [0.0, 3.0]}),
    *[
        Row(tree.tree_sums, data, {"sigmas": 0.5}, np.shape(data),
            bad={"sigmas": [0.0, -1.0, math.nan, [1.0, 2.0], [[1.0]]]})
        for data in (VECTOR, TABLE.astype(float))
    ],
    Row(estimators.gradient_estimate, REGRESSION, AT, (2,), data_name="data", bad=BAD_AT),
    Row(estimators.difference_estimate, REGRESSION, AT | {"previous": [0.25, 0.0]}, (2,),
        data_name="data", bad=BAD_AT | {"previous": [[0.0], [math.inf, 0.0]]}),
    *[
        Row(oracles.oracle_gradients, REGRESSION, ORACLE | {"oracle": oracle}, (3, 2),
            data_name="data", bad=BAD_PATH | {"noise_multiplier": [-1.0, math.nan]})
        for oracle in (REDUCED, zeroth_plans.Naive(3, 0.5))
    ],
    Row(smoothing.estimated_smoothing, REGRESSION, AT, (), data_name="data",
        bad=BAD_VALUES | {"point": [[0.0], [0.0, math.nan]]}),
    Row(stationarity.stationarity_estimate, REGRESSION, AT, (), data_name="data",
        bad=BAD_VALUES | {"point": [[0.0], [0.0, math.nan]], "n_gradients": [0, 1.5]}),
    Row(oracles.oracle_centers, REGRESSION, ORACLE, (6,), data_name="data", bad=BAD_PATH),
    *[
        Row(conversion.private_zeroth_order, REGRESSION, ONLINE | {"plan": plan}, (2,),
            data_name="data", bad=BAD_ONLINE)
        for plan in (CONVERSION, replace(CONVERSION, oracle=zeroth_plans.Naive(2, 0.5)))
    ],
    Row(zeroth_baselines.gradient_free_descent, REGRESSION, RECURSIVE, (2,), data_name="data",
        bad=BAD_RECURSIVE),
    Row(subsampling.on_subsample, INTEGERS, {"pmf": lambda items: [0.5, 0.5], "sample": 2}, (),
        np.int64, data_name="data", integer_data=True, bad={"sample": [0, 4, 1.5]}),
    *[
        Row(deletion.delstab, BITS, STABLE | {"algorithm": algorithm}, (), np.int64,
            data_name="data", integer_data=True, bad=BAD_STABLE)
        for algorithm in (noisy_majority(6.0), AlternatingMajority(2.0))
    ],
    Row(pipeline.run_pipeline, BITS, PIPED, (), np.int64, data_name="data", integer_data=True,
        bad={"data": [BITS[:20], np.repeat(BITS, 2, axis=1)]}),
    Row(learning.pac_learner, LABELLED, LEARNER, (), np.int64, data_name="data",
        integer_data=True, bad=BAD_LABELLED | {"cap": [0.0, math.nan]}),
    Row(learning.agnostic_learner, LABELLED, LEARNER | {"threshold": 1.0}, (), np.int64,
        data_name="data", integer_data=True, bad=BAD_LABELLED | BAD_THRESHOLD),
    Row(pairwise.clipped_pairwise_em, TABLE, PAIRWISE, (), np.int64, data_name="data",
        integer_data=True, bad=BAD_THRESHOLD | {"data": [TABLE + 1, TABLE[0]]}),
]  # fmt: skip

MUTANTS = [
    Row(noise_mutants.laplace_half_scale, VECTOR, EPS, (3,)),
    Row(noise_mutants.laplace_reused_noise, VECTOR, EPS, (3,)),
    Row(noise_mutants.gaussian_variance_as_deviation, VECTOR, {"sigma": 2.0}, (3,)),
    Row(
        noise_mutants.discrete_laplace_half_scale, INTEGERS, {"sensitivity": 1, "epsilon": 0.5},
        (3,), np.int64,
    ),
    Row(noise_mutants.randomized_response_doubled, INTEGERS, {"epsilon": 0.5}, (3,), np.int64),
    Row(selection_mutants.exponential_mechanism_monotone, VECTOR, EPS, (), np.int64),
    Row(selection_mutants.report_noisy_max_monotone, VECTOR, EPS, (), np.int64),
    Row(selection_mutants.report_noisy_max_shared_noise, VECTOR, EPS, (), np.int64),
    Row(histogram_mutants.noisy_histogram_add_remove, TABLE, {"n_bins": 3, "epsilon": 1.0}, (3,)),
    Row(histogram_mutants.noisy_histogram_item_level, TABLE, {"n_bins": 3, "epsilon": 1.0}, (3,)),
    Row(means_mutants.clipped_user_mean_item_level, CUBE[0], SCALAR_MEAN, ()),
    Row(means_mutants.clipped_user_mean_add_remove, CUBE[0], SCALAR_MEAN, ()),
    Row(means_mutants.user_mean_unclipped, CUBE[0], SCALAR_MEAN, ()),
    Row(means_mutants.clipped_user_mean_gaussian_by_coordinate, CUBE, VECTOR_MEAN, (4,)),
    *[
        Row(mutant, VECTOR, {"threshold": 0.0, "epsilon": 0.5}, (3,))
        for mutant in [
            sparse_vector_mutants.above_threshold_exact_threshold,
            sparse_vector_mutants.above_threshold_shared_query_noise,
            sparse_vector_mutants.above_threshold_never_halts,
        ]
    ],
    Row(sparse_vector_mutants.fixed_threshold_sparse_vector_without_cutoff, VECTOR, CUT, (3,)),
    Row(sparse_vector_mutants.svt1_cutoff_not_in_noise, VECTOR, CUT, (3,)),
    Row(sparse_vector_mutants.svt2_cutoff_not_in_noise, VECTOR, CUT, (3,)),
    Row(
        median_mutants.first_above_threshold_exact_threshold, VECTOR,
        {"threshold": 0.0, "epsilon": 0.5}, (3,),
    ),
    Row(median_mutants.bounded_laplace_one_scale, VECTOR, BOUNDED, (3,)),
    Row(
        median_mutants.fast_radius_of_a_fraction, CLOUD, SEARCH | {"epsilon": 0.1, "delta": 0.1}, ()
    ),
    Row(median_mutants.fast_center_untested, CLOUD, LOUD | {"radius": 2.0}, (2,)),
    Row(median_mutants.fast_center_one_point, CLOUD, LOUD | {"radius": 2.0}, (2,)),
    Row(median_mutants.stable_dpsgd_forgetting_m, CLOUD, PHASES, (2,)),
    Row(median_mutants.fixed_order_dpsgd_one_access, CLOUD, PHASES, (2,)),
    Row(median_mutants.warm_start_subsampling_is_noise, CLOUD, SEARCH | LOUD, (3,)),
    Row(median_mutants.private_geometric_median_exact_start, CLOUD, MEDIAN, (2,)),
    Row(
        median_mutants.radius_finder_one_count, CLOUD,
        SEARCH | {"epsilon": 11.44, "failure_prob": 0.5}, (),
    ),
    Row(median_mutants.dpgd_one_step, CLOUD, DESCENT, (2,)),
    Row(sco_mutants.without_filter, USERS, SCO, (2,)),
    Row(sco_mutants.without_test, USERS, LINF, (2,)),
    Row(sco_mutants.dp_sgd_items, USERS,
        SGD | {"batch_size": 3, "n_steps": 4, "mean": ClippedMean(1.0)}, (2,)),
    *[
        Row(mutant, USERS,
            SGD | {"batch_size": 9, "n_steps": 2, "mean": rule, "epsilon": 9.0}, (2,))
        for mutant, rule in (
            (sco_mutants.exact_median, WinsorizedMean(1.0, 2.0, 0.5)),
            (sco_mutants.without_weights, ConcentratedMean(1.0, 3.0, 0.02)),
        )
    ],
    Row(sco_mutants.output_perturbation_of_one_item, USERS, SGD | {"lipschitz": 9.0}, (2,)),
    Row(zeroth_mutants.same_items_in_all_epochs, REGRESSION, ONLINE, (2,)),
    Row(few_mutants.pac_unclipped, LABELLED, {"hypotheses": thresholds(3), "epsilon": 0.5}, (),
        np.int64),
    Row(few_mutants.pairwise_insensitive, TABLE, PAIRWISE, (), np.int64),
]  # fmt: skip


def label(row: Row) -> str:
    return (
        f"{row.mechanism.__module__.split('.')[-2]}-{row.mechanism.__name__}-{np.ndim(row.data)}d"
    )


every_row = pytest.mark.parametrize("row", ROWS + MUTANTS, ids=label)
every_algorithm = pytest.mark.parametrize("row", ROWS, ids=label)


def assert_refused(
    row: Row, words: str, errors: Any = (ValueError, TypeError), **changes: Any
) -> None:
    """Fail unless a call with these changes raises one of `errors` whose message has `words`."""
    try:
        row(**changes)
    except errors as error:
        assert re.search(words, str(error)), f"{changes}: {error}"  # noqa: PT017
    else:
        pytest.fail(f"{changes} was accepted")


@every_row
def test_draws_have_the_shape_and_dtype_and_follow_the_seed_alone(row: Row) -> None:
    for size in (0, 1, 7, np.int64(2)):
        draws = row(size)
        assert draws.shape == (size, *row.shape), size
        assert draws.dtype == row.dtype, size
    before = np.random.get_state()  # noqa: NPY002
    first = row(50, seed=3)
    np.testing.assert_array_equal(row(50, seed=3), first)
    if row.mechanism is not selection_mutants.report_noisy_max_shared_noise:
        other = row(50, seed=4)
        assert not np.array_equal(other, first, equal_nan=first.dtype == np.float64)
        assert len(np.unique(first, axis=0)) > 1
    after = np.random.get_state()  # noqa: NPY002
    np.testing.assert_array_equal(after[1], before[1])
    assert after[2:] == before[2:]


@every_row
def test_input_is_not_modified_nor_returned(row: Row) -> None:
    data = np.array(row.data)
    data.flags.writeable = False
    draws = row(4, data=data)
    np.testing.assert_array_equal(data, row.data)
    assert not np.shares_memory(draws, data)
    assert draws.flags.writeable


@every_algorithm
def test_lists_and_other_number_types_are_welcome(row: Row) -> None:
    expected = row(5)
    np.testing.assert_array_equal(row(5, data=np.asarray(row.data).tolist()), expected)
    small = np.int8 if row.integer_data else np.float32
    np.testing.assert_array_equal(row(5, data=np.asarray(row.data, dtype=small)), expected)


@every_algorithm
def test_only_a_generator_and_a_size_will_do(row: Row) -> None:
    for rng in (None, 0, np.random, np.random.RandomState(0)):
        assert_refused(row, r"rng must be a numpy.random.Generator, got", TypeError, rng=rng)
    with pytest.raises(TypeError, match="rng"):  # rng has no default
        row.mechanism(row.data, 3, **row.kwargs)
    assert_refused(row, "size must be", ValueError, size=-1)
    for size in (1.5, True, "3"):
        assert_refused(row, "size must be", TypeError, size=size)


@every_algorithm
def test_bad_parameters_are_refused_by_name(row: Row) -> None:
    for name in {"epsilon", "sensitivity", "sigma", "clip_norm"} & set(row.kwargs):
        for value in (0.0, -1.0, math.nan, math.inf, "1", True, None):
            assert_refused(row, f"{name} must be", **{name: value})
    for name, values in row.bad.items():
        for value in values:
            assert_refused(
                row, f"{row.data_name if name == 'data' else name} must", **{name: value}
            )


@every_algorithm
def test_bad_data_are_refused_by_name(row: Row) -> None:
    data, name = np.asarray(row.data), row.data_name
    empty = np.zeros((0,) * max(1, data.ndim), dtype=data.dtype)
    assert_refused(row, f"{name} must not be empty", ValueError, data=empty)
    deep = np.ones((1, 1, 1, 1), dtype=data.dtype)
    assert_refused(row, f"{name} must have .* dimensions", ValueError, data=deep)
    for value in (math.nan, math.inf, -math.inf):
        broken = np.array(row.data, dtype=float)
        broken.flat[0] = value
        assert_refused(row, f"{name} must", data=broken)
    for dtype in (bool, complex, object, str):
        assert_refused(row, f"{name} must hold", TypeError, data=data.astype(dtype))


@every_algorithm
def test_an_epsilon_next_to_zero_is_refused_or_finite(row: Row) -> None:
    """Check that epsilon = 5e-324 raises an error or gives finite draws.

    Randomised response and the Gaussian at a fixed delta are well defined at this epsilon.
    """
    if "epsilon" not in row.kwargs:
        return
    try:
        draws = row(epsilon=5e-324)
    except ValueError as refusal:
        assert "epsilon" in str(refusal)  # noqa: PT017
    else:
        assert np.isfinite(draws).all()


def test_docstrings_have_their_paragraphs() -> None:
    for row in ROWS:
        for paragraph in ("**Guarantee**", "**Requires**", "**Departs**", "**Symbols**"):
            assert paragraph in (row.mechanism.__doc__ or ""), label(row)
    for row in MUTANTS:
        for paragraph in ("**Mistake**", "**Breaks at**"):
            assert paragraph in (row.mechanism.__doc__ or ""), label(row)
