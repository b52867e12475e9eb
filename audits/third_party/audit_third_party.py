"""Audits of real mechanisms of OpenDP and diffprivlib through `dpaudit.adapters`.

Install both packages with ``pip install '.[third-party]'``. These packages do not use numpy's
noise, so dpaudit cannot make noise mutants. Instead, a mutant scales a parameter to get half of the
noise or twice the epsilon. The Gaussian mechanisms have a small delta, which needs many draws. So
the mutants of the Gaussian mechanisms have a third of the noise. The numbers of draws differ,
because most of these libraries draw one output at a time.

OpenDP draws from the operating system and cannot be seeded. So `dpaudit replay` compares only the
verdicts.
"""

from __future__ import annotations

import importlib
from functools import partial

import numpy as np
import pytest

from dpaudit import ApproxDP, NeighborPair, PureDP, Relation, adapters, mutants, within_sensitivity
from dpaudit import neighbors as nb

EPSILON, DELTA = 1.0, 1e-5
ONE_VALUE = nb.value_pattern("one_above", 1)
ONE_COUNT = NeighborPair(np.array([1]), np.array([0]), relation=Relation.WITHIN_SENSITIVITY)
SCORES = nb.value_patterns(5)
USERS = nb.clip_boundary_user(n_users=20, low=-1.0, high=1.0)


def installed(library):
    try:
        importlib.import_module(library)
    except ImportError as error:  # diffprivlib may also fail if the scikit-learn version is unknown
        reason = f"{library}: {error}; pip install '.[third-party]'"
        return pytest.mark.skip(reason=reason)
    return lambda audit: audit


# --- OpenDP ---


def opendp():
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious", "idealized-numerics")
    return dp


def vector_noise(make, kind, distance, scale):
    dp = opendp()
    atoms = dp.atom_domain(T=float, nan=False) if kind is float else dp.atom_domain(T=int)
    space = dp.vector_domain(atoms), getattr(dp, distance)(T=kind)
    return getattr(dp.m, make)(*space, scale=scale)


opendp_noise = partial(adapters.opendp, vector_noise, at_once=True)


def selector(scale):
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    return dp.m.make_noisy_max(*space, dp.max_divergence(), scale=scale)


def averager(n_users, scale):
    """Return the mean of `n_users` values, clamped to [-1, 1], with Laplace noise."""
    dp = opendp()
    bounded = dp.atom_domain(bounds=(-1.0, 1.0), nan=False)
    users = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=n_users)
    clamp = dp.t.make_clamp(users, dp.symmetric_distance(), (-1.0, 1.0))
    mean = dp.t.make_mean(dp.vector_domain(bounded, size=n_users), dp.symmetric_distance())
    return clamp >> mean >> dp.m.then_laplace(scale=scale)


@installed("opendp")
def audit_opendp_laplace(auditor):
    auditor.check(
        opendp_noise(make="make_laplace", kind=float, distance="l1_distance", scale=1 / EPSILON),
        PureDP(EPSILON, source="OpenDP make_laplace"),
        ONE_VALUE,
        mutants=[mutants.scaled(scale=1 / 2)],
        draws_factor=0.4,
    )


@pytest.mark.nightly
@installed("opendp")
def audit_opendp_gaussian(auditor):
    from algorithms.common.noise import analytic_gaussian_sigma

    sigma = analytic_gaussian_sigma(1.0, EPSILON, DELTA)
    auditor.check(
        opendp_noise(make="make_gaussian", kind=float, distance="l2_distance", scale=sigma),
        ApproxDP(EPSILON, DELTA, source="OpenDP make_gaussian, sigma by Balle and Wang 2018"),
        ONE_VALUE,
        mutants=[mutants.scaled(scale=1 / 3)],
        draws_factor=0.4,
    )


@installed("opendp")
def audit_opendp_geometric(auditor):
    auditor.check(
        opendp_noise(make="make_laplace", kind=int, distance="l1_distance", scale=1 / EPSILON),
        PureDP(EPSILON, source="OpenDP make_laplace on integers"),
        ONE_COUNT,
        mutants=[mutants.scaled(scale=1 / 2)],
    )


@pytest.mark.nightly
@installed("opendp")
def audit_opendp_noisy_max(auditor):
    auditor.check(
        adapters.opendp(selector, scale=2 / EPSILON),
        PureDP(EPSILON, source="OpenDP make_noisy_max, permute and flip"),
        SCORES,
        mutants=[mutants.scaled(scale=1 / 2)],
        draws_factor=0.2,
    )


@installed("opendp")
def audit_opendp_bounded_mean(auditor):
    n_users = len(USERS.left)
    auditor.check(
        adapters.opendp(averager, n_users=n_users, scale=2 / n_users / EPSILON),
        PureDP(EPSILON, Relation.REPLACE_USER, "OpenDP make_mean and make_laplace"),
        [USERS, nb.far_user(n_users=20, high=1e6)],
        mutants=[mutants.scaled(scale=1 / 2)],
        draws_factor=0.1,
    )


# --- diffprivlib ---


def diffprivlib_noise(name, **options):
    from diffprivlib import mechanisms

    return adapters.diffprivlib_mechanism(getattr(mechanisms, name), **options)


@pytest.mark.nightly
@installed("diffprivlib")
@pytest.mark.parametrize("name", ["Laplace", "Geometric", "Staircase", "Snapping"])
def audit_diffprivlib_noise(auditor, name):
    arguments = {"gamma": 0.5} if name == "Staircase" else {}
    if name == "Snapping":
        arguments = {"lower": -20.0, "upper": 20.0}
    auditor.check(
        diffprivlib_noise(name, epsilon=EPSILON, sensitivity=1, **arguments),
        PureDP(EPSILON, source=f"diffprivlib {name}"),
        ONE_COUNT if name == "Geometric" else ONE_VALUE,
        mutants=[mutants.scaled(epsilon=2)],
        draws_factor=0.2,
    )


@pytest.mark.nightly
@installed("diffprivlib")
@pytest.mark.parametrize("name", ["Gaussian", "GaussianAnalytic"])
def audit_diffprivlib_gaussian(auditor, name):
    auditor.check(
        diffprivlib_noise(name, epsilon=EPSILON, delta=DELTA, sensitivity=1.0),
        ApproxDP(EPSILON, DELTA, source=f"diffprivlib {name}"),
        ONE_VALUE,
        mutants=[mutants.scaled(sensitivity=1 / 4)],  # a third would need ten times the draws
        draws_factor=0.5,
    )


@pytest.mark.nightly
@installed("diffprivlib")
@pytest.mark.parametrize("name", ["Exponential", "PermuteAndFlip"])
def audit_diffprivlib_selection(auditor, name):
    auditor.check(
        diffprivlib_noise(name, epsilon=EPSILON, sensitivity=1.0, utility=True),
        PureDP(EPSILON, within_sensitivity(1.0), f"diffprivlib {name}"),
        SCORES,
        mutants=[mutants.scaled(sensitivity=1 / 2)],
        draws_factor=0.5,
    )


@pytest.mark.nightly
@installed("diffprivlib")
def audit_diffprivlib_bounded_mean(auditor):
    from diffprivlib import tools

    auditor.check(
        adapters.diffprivlib_tool(tools.mean, epsilon=EPSILON, bounds=(-1, 1)),
        PureDP(EPSILON, Relation.REPLACE_USER, "diffprivlib tools.mean"),
        [USERS, nb.far_user(n_users=20, high=1e6)],
        mutants=[mutants.scaled(epsilon=2)],
        draws_factor=0.1,
    )
