"""Packages that need PyTorch: privateAB and PRESTO.

The target `test-adapters-hunt-torch` of the Makefile installs both packages. The audits are skipped
if a package is not installed. Both packages take a tensor of all users.
"""

from __future__ import annotations

import functools
import importlib
from functools import partial
from hashlib import sha256

import numpy as np
import pytest

from audits.field.packages import needs
from dpaudit import (
    AdditiveNoise,
    ApproxDP,
    LocalDP,
    NeighborPair,
    PureDP,
    Relation,
    mutants,
    one_draw,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
EPSILON = 1.0
REPLACE = Relation.REPLACE_USER
DRAWS, FEW = 0.1, 0.05
"""Shares of the profile's draws. A release takes about 0.1 ms."""

# --- privateAB ---

PRIVATE_AB = needs("privateAB", "--no-deps privateAB==0.0.2")


def private_ab(value, size, *, rng, kind, k, epsilon):
    """Return reports of `size` clients with the same value, one row each."""
    torch = importlib.import_module("torch")
    client = importlib.import_module("privateAB.client").client()
    torch.manual_seed(int(rng.integers(2**62)))
    data = torch.full((size,), int(value), dtype=torch.long)
    return client.release_private(kind, data, k, epsilon, "cpu").numpy().astype(float)


@PRIVATE_AB
@pytest.mark.parametrize(
    ("kind", "k"),
    [
        ("genrr", 3),
        ("bitflip", 3),
        ("lapu", 3),
        ("disclapu", 4),
        pytest.param(
            "disclapu",
            3,
            marks=pytest.mark.known_violation("integer noise is added to sqrt(3) times a bit"),
        ),
    ],
)
def audit_private_ab(auditor, kind, k):
    """Audit "releases its locally differentially private representation"."""
    auditor.check(
        partial(private_ab, kind=kind, k=k, epsilon=EPSILON),
        LocalDP(EPSILON, domain=range(k), source=f"privateAB {kind}"),
        mutants=[mutants.scaled(epsilon=3)],
        draws_factor=DRAWS if kind != "lapu" else 5 * DRAWS,
    )


def off_lattice(value, size, *, rng):
    """Return whether the first coordinate, in [0, 1/4], is no multiple of 2^-24."""
    first = private_ab(value, size, rng=rng, kind="lapu", k=4, epsilon=EPSILON)[:, 0] / 2
    scaled = first * 2.0**24
    return ((first > 0) & (first < 0.25) & (scaled != np.round(scaled))).astype(int)


@PRIVATE_AB
@pytest.mark.known_violation("float32: one plus noise lies on a coarser lattice than noise")
def audit_private_ab_low_bits(auditor):
    auditor.check(
        off_lattice,
        LocalDP(EPSILON, domain=range(4), source="privateAB lapu"),
        draws_factor=DRAWS,
    )


# --- PRESTO (ornl-presto) ---

PRESTO = needs("ornl_presto", "--no-deps ornl-presto==0.1.29")


def presto(name):
    return getattr(importlib.import_module("ornl_presto.privacy_mechanisms"), name)


def data(left, right):
    """Return a pair of arrays, one number for each user."""
    return NeighborPair(np.array(left), np.array(right), relation=REPLACE)


UNIT = data([0.0, 0.5, 1.0, 0.0], [0.0, 0.5, 1.0, 1.0])


def gaussian_scale(sensitivity):
    """Return the standard deviation that `applyDPGaussian` gives to the noise."""
    with_one = partial(presto("applyDPGaussian"), np.zeros(1), sensitivity, 1e-5, EPSILON)
    drawn = []

    def normal(mean, sigma, size):
        drawn.append(sigma)
        return np.zeros(size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.random, "normal", normal)
        with_one()
    return drawn[0]


@PRESTO
@pytest.mark.known_violation("the scale has the square root of the sensitivity, and no factor 2")
@pytest.mark.parametrize("sensitivity", [1.0, 10.0])
def audit_presto_gaussian(auditor, sensitivity):
    """Audit "delta: Target delta for (epsilon, delta)-DP"."""
    auditor.check(
        AdditiveNoise(np.sum, "gaussian", scale=gaussian_scale(sensitivity)),
        ApproxDP(EPSILON, 1e-5, REPLACE, "PRESTO applyDPGaussian"),
        data([0.0, 0.0], [0.0, sensitivity]),
    )


def presto_release(values, size, *, rng, name, epsilon):
    """Return `size` releases of PRESTO, one after another."""
    torch = importlib.import_module("torch")
    torch.manual_seed(int(rng.integers(2**62)))
    release = functools.partial(presto(name), epsilon=epsilon)
    tensor = torch.tensor(values, dtype=torch.float64)
    return np.stack([np.asarray(release(tensor), dtype=float) for _ in range(size)])


@PRESTO
@pytest.mark.parametrize(
    "name",
    [
        "hadamard_mechanism",
        pytest.param(
            "count_mean_sketch",
            marks=pytest.mark.known_violation("the bins end at the extremes of the data"),
        ),
    ],
)
def audit_presto_of_users(auditor, name):
    """Audit "epsilon: Privacy parameter" for numbers in [0, 1]."""
    auditor.check(
        partial(presto_release, name=name, epsilon=EPSILON),
        PureDP(EPSILON, REPLACE, f"PRESTO {name}"),
        UNIT if name == "hadamard_mechanism" else data([0.0] * 8, [0.0] * 7 + [1.0]),
        mutants=[mutants.scaled(epsilon=16)],
        draws_factor=FEW,
    )


@PRESTO
@pytest.mark.parametrize("name", ["applyDPLaplace", "applyDPExponential"])
def audit_presto_noise(auditor, name):
    @one_draw(randomness="legacy")
    def release(values):
        return presto(name)(values, sensitivity=1.0, epsilon=EPSILON)

    auditor.check(release, PureDP(EPSILON, REPLACE, f"PRESTO {name}"), UNIT, draws_factor=DRAWS)


@PRESTO
@pytest.mark.known_violation("a value above the threshold is returned without noise")
def audit_presto_sparse_vector(auditor):
    """Audit "Apply the full SVT to privatize data"."""

    @one_draw(randomness="legacy")
    def release(values):
        return presto("applySVTAboveThreshold_full")(values, EPSILON)

    auditor.check(
        release,
        PureDP(EPSILON, REPLACE, "PRESTO applySVTAboveThreshold_full"),
        data([0.0, 0.5, 1.0, 0.25], [0.0, 0.5, 1.0, 0.75]),
        draws_factor=DRAWS,
    )


def presto_report(value, size, *, rng, name, epsilon, others=()):
    """Return the report of one user, for `size` users with the same value in one call."""
    torch = importlib.import_module("torch")
    torch.manual_seed(int(rng.integers(2**62)))
    values = torch.tensor([float(value)] * size + list(others))
    return presto(name)(values, epsilon=epsilon).numpy()[:size]


def bits(value):
    """Return the number of bits that PRESTO sets for a value."""
    hashes = (sha256(f"{value}_{k}".encode()).hexdigest() for k in range(2))
    return len({int(digest, 16) % 16 for digest in hashes})


@PRESTO
@pytest.mark.parametrize(
    "name",
    [
        "rappor",
        pytest.param(
            "hadamard_response",
            marks=pytest.mark.known_violation("a lie may also be the true value, among d values"),
        ),
    ],
)
def audit_presto_local(auditor, name):
    """Audit "Local-DP via randomized response in the Hadamard domain", and "Basic RAPPOR".

    A user with the largest value makes the number of values public. RAPPOR returns the number of
    bits, which differs only for a value whose two hashes are equal.
    """
    values = [0, 1, 2, 3]
    if name == "rappor":
        values = [0, next(v for v in range(1000) if bits(v) != bits(0))]
    others = (3.0,) if name == "hadamard_response" else ()
    auditor.check(
        partial(presto_report, name=name, epsilon=EPSILON, others=others),
        LocalDP(EPSILON, domain=values, source=f"PRESTO {name}"),
        mutants=[mutants.scaled(epsilon=8)],
        draws_factor=DRAWS,
    )
