"""Statistics of diffprivlib and PipelineDP on data of users, with typical bounds.

Each row is a user. The package diffprivlib comes with ``pip install '.[third-party]'``. PipelineDP
must be installed separately. If PipelineDP is not installed, the audits of PipelineDP are skipped.
Known violations are described in `docs/findings.md`. One release takes from 0.1 to 1 ms, so the
audits use only a small number of draws.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from audits.field.packages import needs
from audits.third_party.audit_third_party import installed
from dpaudit import ApproxDP, NeighborPair, Outcomes, PureDP, Relation, adapters, mutants, neighbors

pytestmark = pytest.mark.nightly
EPSILON = 1.0
REPLACE, ADD_REMOVE = Relation.REPLACE_USER, Relation.ADD_REMOVE_USER
DRAWS, ENOUGH = 0.05, 0.2
"""Shares of the draws: the usual share, and the share for pairs of users without data."""

ONE_ITEM = neighbors.portfolio(m=1, low=0.0, high=1.0)
MISSING = neighbors.portfolio(m=1, low=0.0, high=1.0, missing=True)


def pair(left, right):
    """Return a pair of users with one item each.

    Only the last user's item differs.
    """
    return NeighborPair(np.array(left)[:, None], np.array(right)[:, None])


TWO_PRESENT = pair([np.nan] * 18 + [0.0, 0.0], [np.nan] * 18 + [0.0, 1.0])
NOW_MISSING = pair([9.0] * 10, [9.0] * 9 + [np.nan])


def tool(name, *, epsilon=EPSILON, **options):
    """Return a release of `diffprivlib.tools` that uses one item of each user."""
    from diffprivlib import tools

    if name != "count_nonzero":
        options = {"bounds": (0.0, 1.0), **options}
    return adapters.diffprivlib_tool(getattr(tools, name), epsilon=epsilon, **options)


@installed("diffprivlib")
@pytest.mark.parametrize("name", ["sum", "var", "std", "count_nonzero"])
def audit_diffprivlib_statistic(auditor, name):
    auditor.check(
        tool(name),
        PureDP(EPSILON, REPLACE, f"diffprivlib tools.{name}"),
        ONE_ITEM,
        mutants=[mutants.scaled(epsilon=4)],
        draws_factor=DRAWS,
    )


@installed("diffprivlib")
def audit_diffprivlib_median(auditor):
    auditor.check(
        tool("quantile", quant=0.5),
        PureDP(EPSILON, REPLACE, "diffprivlib tools.quantile"),
        ONE_ITEM,
        mutants=[mutants.scaled(epsilon=4)],
        draws_factor=DRAWS,
    )


@installed("diffprivlib")
@pytest.mark.known_violation("the sensitivity counts the items that are missing")
def audit_diffprivlib_nanmean(auditor):
    """Audit without a named pair.

    The portfolio knows only that items may be missing.
    """
    auditor.check(
        tool("nanmean"),
        PureDP(EPSILON, REPLACE, "diffprivlib tools.nanmean"),
        MISSING,
        draws_factor=ENOUGH,
    )


@installed("diffprivlib")
@pytest.mark.known_violation("the sensitivity counts the items that are missing")
def audit_diffprivlib_nanvar(auditor):
    """Audit a named pair.

    A release takes 0.4 ms, and a search needs more releases.
    """
    auditor.check(
        tool("nanvar"),
        PureDP(EPSILON, REPLACE, "diffprivlib tools.nanvar"),
        TWO_PRESENT,
        draws_factor=DRAWS,
    )


@installed("diffprivlib")
@pytest.mark.known_violation("a sum loses more than high - low if an item goes missing")
def audit_diffprivlib_nansum(auditor):
    """Audit a named pair.

    All other users must be at the lower bound, because diffprivlib cuts off sums below this bound.
    """
    auditor.check(
        tool("nansum", bounds=(9.0, 10.0)),
        PureDP(EPSILON, REPLACE, "diffprivlib tools.nansum"),
        NOW_MISSING,
        draws_factor=DRAWS,
    )


@installed("diffprivlib")
def audit_diffprivlib_standard_scaler(auditor):
    """Audit a model that consists of means and variances of two features of each user."""
    from diffprivlib.models import StandardScaler

    auditor.check(
        adapters.diffprivlib_model(
            partial(StandardScaler, bounds=(0.0, 1.0)),
            parameters=("mean_", "var_"),
            epsilon=EPSILON,
        ),
        PureDP(EPSILON, REPLACE, "diffprivlib StandardScaler"),
        neighbors.portfolio(m=2, low=0.0, high=1.0),
        mutants=[mutants.scaled(epsilon=6)],
        draws_factor=DRAWS,
    )


# --- PipelineDP: a user has several values, of which at most two are used ------------------------

PIPELINE_DP = needs("pipeline_dp", "pipeline-dp")
TAKEN = 2
VALUES = neighbors.portfolio(m=4, low=0.0, high=1.0).under(ADD_REMOVE)


def aggregated(metric, **options):
    """Return a metric of one public partition, or of private partitions."""
    import pipeline_dp

    params = pipeline_dp.AggregateParams(
        metrics=[getattr(pipeline_dp.Metrics, metric)],
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        max_partitions_contributed=1,
        max_contributions_per_partition=TAKEN,
        min_value=0.0,
        max_value=1.0,
    )
    return adapters.pipeline_dp(params, epsilon=EPSILON, **{"delta": 1e-12, **options})


@PIPELINE_DP
@pytest.mark.parametrize("metric", ["COUNT", "PRIVACY_ID_COUNT", "SUM", "MEAN"])
def audit_pipelinedp_metric(auditor, metric):
    auditor.check(
        aggregated(metric),
        PureDP(EPSILON, ADD_REMOVE, f"PipelineDP {metric}, user-level"),
        VALUES,
        mutants=[mutants.scaled(epsilon=4)],
        draws_factor=DRAWS,
    )


@PIPELINE_DP
@pytest.mark.known_violation("a NaN is not clipped, and makes the sum NaN")
def audit_pipelinedp_sum_with_nan(auditor):
    auditor.check(
        aggregated("SUM"),
        PureDP(2 * EPSILON, REPLACE, "PipelineDP SUM, a user removed and one added"),
        MISSING,
        draws_factor=ENOUGH,
    )


def counts_of_partitions(delta):
    """Return the count of each selected partition.

    The set of selected partitions is part of the outcome.
    """
    private = aggregated("COUNT", delta=delta, partitions=None, partition="city")
    return Outcomes(private, keys=["Aix", "Brest"])


@PIPELINE_DP
def audit_pipelinedp_private_partitions_of_users(auditor):
    """Audit at user level.

    One city has only one user.
    """
    frames = pytest.importorskip("pandas", reason="pip install pandas")
    users = np.repeat(np.arange(13), TAKEN)
    visits = frames.DataFrame({"user": users, "city": np.where(users == 12, "Brest", "Aix")})
    auditor.check(
        counts_of_partitions(delta=0.05),
        ApproxDP(EPSILON, 0.05, ADD_REMOVE, "PipelineDP COUNT, private partitions"),
        NeighborPair.from_frame(visits, user="user", drop=12),
        mutants=[counts_of_partitions(delta=0.9)],
        draws_factor=DRAWS,
    )
