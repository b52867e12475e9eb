"""Audits of OpenDP, dp-accounting, PyDP and SmartNoise SQL on data of users.

OpenDP and dp-accounting come with ``pip install '.[third-party]'``. The audits of PyDP and
SmartNoise SQL are skipped if these packages are not installed. Mutants have more epsilon or less
noise, because all these packages draw from their own entropy.
"""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from audits.field.packages import needs
from dpaudit import (
    AdditiveNoise,
    ApproxDP,
    NeighborPair,
    PureDP,
    Relation,
    adapters,
    from_opendp,
    mutants,
    neighbors,
)

EPSILON, DELTA = 1.0, 1e-5
ADD_REMOVE, REPLACE = Relation.ADD_REMOVE_USER, Relation.REPLACE_USER
ITEMS = 4
"""Number of items of a user, which the sensitivities count."""

USERS = neighbors.portfolio(m=ITEMS, low=0.0, high=1.0).under(ADD_REMOVE)
ONE_ITEM = neighbors.portfolio(m=1, low=0.0, high=1.0).under(ADD_REMOVE)
FEW, FEWER = 0.05, 0.0015
"""Shares of the draws for releases under a millisecond, and for much slower releases."""


# --- OpenDP ---


def opendp():
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")
    return dp


def bounded_sum(scale):
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    return dp.t.make_clamp(*space, (0.0, 1.0)) >> dp.t.then_sum() >> dp.m.then_laplace(scale=scale)


def count_by_category(scale):
    """Count each of the whole numbers 0 to 3, and count all other values in a fifth category."""
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    counts = dp.t.make_count_by_categories(*space, categories=[0, 1, 2, 3], TOA=int)
    return counts >> dp.m.then_laplace(scale=scale)


def answer_kept(prob):
    dp = opendp()
    return dp.m.make_randomized_response_bool(prob=prob)


@needs("opendp", "opendp")
def audit_opendp_sum_of_users(auditor):
    """Audit at user level.

    An added user with four rows counts as a distance of four.
    """
    auditor.check(
        adapters.opendp(bounded_sum, scale=ITEMS / EPSILON),
        from_opendp(bounded_sum(ITEMS / EPSILON), ITEMS, relation=ADD_REMOVE),
        USERS,
        mutants=[mutants.scaled(scale=1 / ITEMS)],
        draws_factor=FEW,
    )


@needs("opendp", "opendp")
def audit_opendp_histogram_of_users(auditor):
    auditor.check(
        adapters.opendp(count_by_category, scale=ITEMS / EPSILON),
        from_opendp(count_by_category(ITEMS / EPSILON), ITEMS, relation=ADD_REMOVE),
        neighbors.portfolio(m=ITEMS, low=0, high=5).under(ADD_REMOVE),
        mutants=[mutants.scaled(scale=1 / ITEMS)],
        draws_factor=FEW,
    )


@needs("opendp", "opendp")
def audit_opendp_randomized_response(auditor):
    prob = float(np.exp(EPSILON) / (1 + np.exp(EPSILON)))
    auditor.check(
        adapters.opendp(answer_kept, prob=prob),
        PureDP(EPSILON, REPLACE, "OpenDP make_randomized_response_bool"),
        NeighborPair(np.array([True]), np.array([False])),
        mutants=[adapters.opendp(answer_kept, prob=0.9)],
        draws_factor=FEW,
    )


@needs("polars", "'opendp[polars]'")
@needs("opendp", "opendp")
def audit_opendp_query_of_users(auditor):
    """Audit a query of an OpenDP context, on a frame in which a user has four rows."""
    import polars

    dp, known = opendp(), importlib.import_module("opendp.mod")._EXPECTED_POLARS_VERSION
    if polars.__version__ != known:
        pytest.skip(f"polars must be {known} for OpenDP, got {polars.__version__}")
    visits = polars.DataFrame({"user": np.repeat(np.arange(20), ITEMS), "paid": 1.0})
    auditor.check(
        adapters.opendp_query(
            lambda context: context.query().select(dp.len(signed=True)),
            contributions=ITEMS,
            epsilon=EPSILON,
        ),
        PureDP(EPSILON, ADD_REMOVE, "OpenDP, a query of a context"),
        NeighborPair.from_frame(visits, user="user", drop=19),
        mutants=[mutants.scaled(epsilon=8)],
        draws_factor=FEWER,
    )


# --- dp-accounting: it calibrates the noise ---


def sum_of_users(data):
    """Return the sum over all users.

    A user's four items in [0, 1] add at most 2.
    """
    return np.minimum(data.clip(0, 1).sum(axis=1), 2.0).sum()


def calibrated(sensitivity):
    """Return a noisy sum for (EPSILON, DELTA).

    The noise multiplier comes from dp-accounting.
    """
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    multiplier = dp_accounting.calibrate_dp_mechanism(
        PLDAccountant, dp_accounting.GaussianDpEvent, EPSILON, DELTA
    )
    return AdditiveNoise(sum_of_users, "gaussian", scale=multiplier * sensitivity)


@needs("dp_accounting", "dp-accounting")
def audit_dp_accounting_calibrated_sum_of_users(auditor):
    """Audit the calibrated noise.

    The mutant uses the bound for an item as the bound for a user.
    """
    auditor.check(
        calibrated(sensitivity=2.0),
        ApproxDP(EPSILON, DELTA, ADD_REMOVE, "dp-accounting calibrate_dp_mechanism"),
        USERS,
        mutants=[calibrated(sensitivity=1.0)],
    )


# --- PyDP ---

PYDP = needs("pydp", "python-dp")
BOUNDS = {"lower_bound": 0.0, "upper_bound": 1.0, "dtype": "float"}


def pydp(name, **options):
    laplacian = importlib.import_module("pydp.algorithms.laplacian")
    return adapters.pydp(getattr(laplacian, name), epsilon=EPSILON, **options)


@PYDP
@pytest.mark.parametrize("name", ["BoundedSum", "BoundedMean", "BoundedVariance", "Median"])
def audit_pydp_statistic(auditor, name):
    auditor.check(
        pydp(name, **BOUNDS),
        PureDP(EPSILON, ADD_REMOVE, f"PyDP {name}"),
        ONE_ITEM,
        mutants=[mutants.scaled(epsilon=12)],  # the median's tree gets most of epsilon
        draws_factor=2 * FEW,
    )


@PYDP
def audit_pydp_count_of_users(auditor):
    """Audit at user level.

    The argument `linf_sensitivity` states that a user has four rows.
    """
    auditor.check(
        pydp("Count", linf_sensitivity=ITEMS, dtype="float"),
        PureDP(EPSILON, ADD_REMOVE, "PyDP Count, user-level"),
        USERS,
        mutants=[mutants.scaled(epsilon=ITEMS)],
        draws_factor=FEW,
    )


# --- SmartNoise SQL ---

AGE = {"type": "float", "lower": 0.0, "upper": 100.0}
TABLE = {"max_ids": 1, "rows": 20, "censor_dims": False, "age": AGE}
METADATA = {"": {"s": {"t": {**TABLE, "user": {"type": "int", "private_id": True}}}}}


def people():
    """Return a pair in which nineteen users have one row each.

    The left dataset contains one more user, who has five rows.
    """
    import pandas

    users = [*range(19), *[19] * 5]
    frame = pandas.DataFrame({"user": users, "age": 100.0})
    return NeighborPair.from_frame(frame, user="user", drop=19)


@needs("snsql", "smartnoise-sql")
@pytest.mark.parametrize("what", ["COUNT(*)", "SUM(age)"])
def audit_smartnoise_query_of_users(auditor, what):
    """Audit a query that takes 0.07 s.

    The claim is the value of `get_privacy_cost`.
    """
    auditor.check(
        adapters.smartnoise_sql(f"SELECT {what} AS a FROM s.t", METADATA, epsilon=1.0, delta=0.01),
        ApproxDP(1.0, 0.005, ADD_REMOVE, "SmartNoise SQL get_privacy_cost"),
        people(),
        mutants=[mutants.scaled(epsilon=8)],
        draws_factor=FEWER,
    )
