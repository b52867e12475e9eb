"""Real mechanisms of OpenDP and diffprivlib, through adapters of a few lines each.

Install with ``pip install '.[third-party]'``. Their noise is not numpy's, so that no mutants are
made from it: a parameter is scaled instead, to half of the noise or twice the epsilon (to a third
for the Gaussians, whose small delta needs many draws).
Budgets differ, because most of these libraries draw one at a time.

OpenDP draws from the operating system and cannot be seeded: `dpaudit replay` compares verdicts.
"""

from __future__ import annotations

import importlib
from functools import cache, partial

import numpy as np
import pytest

from dpaudit import ApproxDP, NeighborPair, PureDP, Relation, mutants, within_sensitivity
from dpaudit import neighbors as nb
from dpaudit.mechanisms import unseeded

EPSILON, DELTA = 1.0, 1e-5
ONE_VALUE = nb.value_pattern("one_above", 1)
ONE_COUNT = NeighborPair(np.array([1]), np.array([0]), relation=Relation.WITHIN_SENSITIVITY)
SCORES = nb.value_patterns(5)
USERS = nb.clip_boundary_user(n_users=20, radius=1.0)


def installed(library):
    try:
        importlib.import_module(library)
    except ImportError as error:  # also diffprivlib beside a scikit-learn that it does not know
        reason = f"{library}: {error}; pip install '.[third-party]'"
        return pytest.mark.skip(reason=reason)
    return lambda audit: audit


# --- OpenDP ---


def opendp():
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious", "idealized-numerics")
    return dp


@cache
def opendp_vector(make, kind, distance, scale):
    """Noise on a whole vector: `size` independent draws in one call."""
    dp = opendp()
    atoms = dp.atom_domain(T=float, nan=False) if kind is float else dp.atom_domain(T=int)
    space = dp.vector_domain(atoms), getattr(dp, distance)(T=kind)
    return getattr(dp.m, make)(*space, scale=scale)


@unseeded
def opendp_noise(values, size, *, make, kind, distance, scale, rng):
    (value,) = values.tolist()
    return np.array(opendp_vector(make, kind, distance, scale)([kind(value)] * size))


@cache
def opendp_selector(scale):
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    return dp.m.make_noisy_max(*space, dp.max_divergence(), scale=scale)


@unseeded
def opendp_noisy_max(scores, size, *, scale, rng):
    select, values = opendp_selector(scale), scores.tolist()
    return np.array([select(values) for _ in range(size)])


@cache
def opendp_averager(n_users, scale):
    """Mean of `n_users` values in [-1, 1], clamped, with Laplace noise."""
    dp = opendp()
    bounded = dp.atom_domain(bounds=(-1.0, 1.0), nan=False)
    users = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=n_users)
    clamp = dp.t.make_clamp(users, dp.symmetric_distance(), (-1.0, 1.0))
    mean = dp.t.make_mean(dp.vector_domain(bounded, size=n_users), dp.symmetric_distance())
    return clamp >> mean >> dp.m.then_laplace(scale=scale)


@unseeded
def opendp_mean(data, size, *, scale, rng):
    release, values = opendp_averager(len(data), scale), data.ravel().tolist()
    return np.array([release(values) for _ in range(size)])


@installed("opendp")
def audit_opendp_laplace(auditor):
    noise = partial(opendp_noise, make="make_laplace", kind=float, distance="l1_distance")
    auditor.check(
        partial(noise, scale=1 / EPSILON),
        PureDP(EPSILON, source="OpenDP make_laplace"),
        ONE_VALUE,
        mutants=[mutants.scaled(scale=1 / 2)],
        draws_factor=0.4,
    )


@installed("opendp")
def audit_opendp_gaussian(auditor):
    from algorithms.common.noise import analytic_gaussian_sigma

    sigma = analytic_gaussian_sigma(1.0, EPSILON, DELTA)
    noise = partial(opendp_noise, make="make_gaussian", kind=float, distance="l2_distance")
    auditor.check(
        partial(noise, scale=sigma),
        ApproxDP(EPSILON, DELTA, source="OpenDP make_gaussian, sigma by Balle and Wang 2018"),
        ONE_VALUE,
        mutants=[mutants.scaled(scale=1 / 3)],
        draws_factor=0.4,
    )


@installed("opendp")
def audit_opendp_geometric(auditor):
    noise = partial(opendp_noise, make="make_laplace", kind=int, distance="l1_distance")
    auditor.check(
        partial(noise, scale=1 / EPSILON),
        PureDP(EPSILON, source="OpenDP make_laplace on integers"),
        ONE_COUNT,
        mutants=[mutants.scaled(scale=1 / 2)],
    )


@installed("opendp")
def audit_opendp_noisy_max(auditor):
    auditor.check(
        partial(opendp_noisy_max, scale=2 / EPSILON),
        PureDP(EPSILON, source="OpenDP make_noisy_max, permute and flip"),
        SCORES,
        mutants=[mutants.scaled(scale=1 / 2)],
        draws_factor=0.2,
    )


@installed("opendp")
def audit_opendp_bounded_mean(auditor):
    scale = 2 / len(USERS.left) / EPSILON
    auditor.check(
        partial(opendp_mean, scale=scale),
        PureDP(EPSILON, Relation.REPLACE_USER, "OpenDP make_mean and make_laplace"),
        [USERS, nb.far_user(n_users=20, distance=1e6)],
        mutants=[mutants.scaled(scale=1 / 2)],
        draws_factor=0.1,
    )


# --- diffprivlib ---


def diffprivlib_mechanism(name, rng, **arguments):
    from diffprivlib import mechanisms

    return getattr(mechanisms, name)(random_state=legacy(rng), **arguments)


def legacy(rng):
    """Seed the older kind of generator, which diffprivlib takes, from ours."""
    return np.random.RandomState(rng.integers(2**32, size=8, dtype=np.uint32))


def diffprivlib_noise(values, size, *, name, rng, **arguments):
    mechanism, (value,) = diffprivlib_mechanism(name, rng, **arguments), values.tolist()
    return np.array([mechanism.randomise(value) for _ in range(size)])


def diffprivlib_selection(scores, size, *, name, rng, **arguments):
    mechanism = diffprivlib_mechanism(name, rng, utility=scores.tolist(), **arguments)
    return np.array([mechanism.randomise() for _ in range(size)])


def diffprivlib_mean(data, size, *, epsilon, rng):
    from diffprivlib import BudgetAccountant, tools

    values, state, accountant = data.ravel(), legacy(rng), BudgetAccountant()
    release = partial(
        tools.mean, values, epsilon, bounds=(-1, 1), random_state=state, accountant=accountant
    )
    return np.array([release() for _ in range(size)])


@installed("diffprivlib")
@pytest.mark.parametrize("name", ["Laplace", "Geometric", "Staircase", "Snapping"])
def audit_diffprivlib_noise(auditor, name):
    arguments = {"gamma": 0.5} if name == "Staircase" else {}
    if name == "Snapping":
        arguments = {"lower": -20.0, "upper": 20.0}
    noise = partial(diffprivlib_noise, name=name, epsilon=EPSILON, **arguments)
    auditor.check(
        partial(noise, sensitivity=1),
        PureDP(EPSILON, source=f"diffprivlib {name}"),
        ONE_COUNT if name == "Geometric" else ONE_VALUE,
        mutants=[mutants.scaled(epsilon=2)],
        draws_factor=0.5,
    )


@installed("diffprivlib")
@pytest.mark.parametrize("name", ["Gaussian", "GaussianAnalytic"])
def audit_diffprivlib_gaussian(auditor, name):
    noise = partial(diffprivlib_noise, name=name, delta=DELTA, sensitivity=1.0)
    auditor.check(
        partial(noise, epsilon=EPSILON),
        ApproxDP(EPSILON, DELTA, source=f"diffprivlib {name}"),
        ONE_VALUE,
        mutants=[mutants.scaled(sensitivity=1 / 3)],
        draws_factor=5,  # at delta = 1e-5 the mutant, whose epsilon is 2.5 or more, needs as many
    )


@installed("diffprivlib")
@pytest.mark.parametrize("name", ["Exponential", "PermuteAndFlip"])
def audit_diffprivlib_selection(auditor, name):
    select = partial(diffprivlib_selection, name=name, epsilon=EPSILON)
    auditor.check(
        partial(select, sensitivity=1.0),
        PureDP(EPSILON, within_sensitivity(1.0), f"diffprivlib {name}"),
        SCORES,
        mutants=[mutants.scaled(sensitivity=1 / 2)],
        draws_factor=0.5,
    )


@installed("diffprivlib")
def audit_diffprivlib_bounded_mean(auditor):
    auditor.check(
        partial(diffprivlib_mean, epsilon=EPSILON),
        PureDP(EPSILON, Relation.REPLACE_USER, "diffprivlib tools.mean"),
        [USERS, nb.far_user(n_users=20, distance=1e6)],
        mutants=[mutants.scaled(epsilon=2)],
        draws_factor=0.1,
    )
