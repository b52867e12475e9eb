"""Bugs in how released software computes its own privacy, in stability maps.

OpenDP #2924 is a bug in the package itself. The audits of this bug ask the package for the
sensitivity that the package claims. The noise comes from numpy. Bugs of accountants are in
`audits/third_party/audit_accountants.py`. A mechanism that is marked as a known violation must be
refuted. If a known violation is not refuted, the run fails.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from audits.third_party.audit_third_party import installed
from dpaudit import (
    AdditiveNoise,
    GaussianDP,
    NeighborPair,
    PureDP,
    Relation,
    ZeroConcentratedDP,
    neighbors,
    within_sensitivity,
)

EPSILON = 1.0
ADD_REMOVE = Relation.ADD_REMOVE_USER

SHARE = 0.05
"""Share of the default draws. With all draws, the verdicts are the same."""


# --- OpenDP #2924: the sums of a tree, under the l2 metric ---------------------------------------

LEAVES = 16
HELD = np.random.default_rng(0).integers(LEAVES, size=(20, LEAVES))


@cache
def opendp_tree():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp.t.make_b_ary_tree(
        dp.vector_domain(dp.atom_domain(T=int), size=LEAVES),
        dp.l2_distance(T=int),
        leaf_count=LEAVES,
        branching_factor=LEAVES,
    )


def holders_in_a_tree(data):
    """Return the number of users who hold each leaf, and the sum of these numbers.

    One user moves the leaves by at most 4 in the l2 norm.
    """
    leaves = [int((data == leaf).any(axis=1).sum()) for leaf in range(LEAVES)]
    return np.array(opendp_tree()(leaves), dtype=float)


def tree_with_noise(sensitivity):
    return AdditiveNoise(holders_in_a_tree, "gaussian", scale=sensitivity)


def tree_by_the_stability_map():
    """Return the tree with noise for the stability map's bound.

    The bound is height times distance, which is 8. The bug is in OpenDP 0.16, make_b_ary_tree with
    l2_distance; issue #2924 (2026, open). A user who holds all leaves moves the tree by sqrt(16^2 +
    16) = 16.5.
    """
    return tree_with_noise(float(opendp_tree().map(4)))


@installed("opendp")
@pytest.mark.known_violation("OpenDP #2924: a user in every leaf counts LEAVES times at the root")
def audit_opendp_2924(auditor):
    """Audit with data like the mechanism's data, because whole numbers alone miss the bug."""
    auditor.check(
        tree_by_the_stability_map(),
        GaussianDP(1.0, ADD_REMOVE, "OpenDP's stability map"),
        neighbors.portfolio(HELD).under(ADD_REMOVE),
        draws_factor=SHARE,
    )


@installed("opendp")
def audit_opendp_2924_mended(auditor):
    auditor.check(
        tree_with_noise(np.sqrt(LEAVES**2 + LEAVES)),
        GaussianDP(1.0, ADD_REMOVE, "Gaussian mechanism"),
        neighbors.portfolio(HELD).under(ADD_REMOVE),
        mutants=[tree_by_the_stability_map()],
        draws_factor=SHARE,
    )


# --- OpenDP #2950: an even number of rows --------------------------------------------------------

CUT = 25.0


def count_of_high_predictions(data, size, rng, scale):
    """Pair rows (x, y) at random, and count the pairs whose line is above 50 at CUT.

    If the number of rows is odd, the last row is omitted. A noisy count replaces OpenDP's noisy
    median, so the audit tests only the pairing.
    """
    rows, half = data[: len(data) // 2 * 2], len(data) // 2
    order = rng.permuted(np.tile(np.arange(len(rows)), (size, 1)), axis=1)
    first, second = rows[order[:, :half]], rows[order[:, half:]]
    dx, dy = np.moveaxis(second - first, -1, 0)
    x, y = np.moveaxis((first + second) / 2, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        at_the_cut = dy / dx * (CUT - x) + y
    high = ((dx != 0) & (at_the_cut > 50)).sum(axis=1)
    return high + rng.laplace(scale=scale, size=size)


def pairs_of_an_even_number(data, size, *, rng):
    """Add noise for the stability map's claim that a row changes only one pair.

    The bug is in OpenDP 0.16, opendp/extras/sklearn/linear_model/_make_private_theil_sen,
    pairwise_predict; issue #2950 (2026, open).
    """
    return count_of_high_predictions(data, size, rng, 1 / EPSILON)


def pairs_with_stability_of_two(data, size, *, rng):
    """Add noise for the true effect of a row.

    An added row enters a pair with the last row, or takes the place of the last row in a pair. Join
    the partners of the added row and of the last row. Then all remaining pairs are a random pairing
    of the other rows. So at most two pairs are removed and one pair is added.
    """
    return count_of_high_predictions(data, size, rng, 2 / EPSILON)


def two_far_rows():
    """Return rows on the line y = 0, except the user's row and the last row, which are high."""
    rows = np.stack([np.linspace(0.0, 20.0, 19), np.zeros(19)], axis=1)
    rows[-1] = 24.0, 1000.0
    return NeighborPair(
        np.insert(rows, 9, [23.0, 1000.0], axis=0),
        rows,
        relation=ADD_REMOVE,
        recipe="two rows are high, one of them is the last",
    )


@pytest.mark.nightly
@pytest.mark.known_violation("OpenDP #2950: an added row makes another row count, or not count")
def audit_opendp_2950(auditor):
    """Audit a named pair.

    The bug needs two special users, but the portfolio has only one special user.
    """
    auditor.check(
        pairs_of_an_even_number,
        PureDP(EPSILON, ADD_REMOVE, "OpenDP's stability map"),
        two_far_rows(),
        draws_factor=0.2,
    )


def audit_opendp_2950_mended(auditor):
    auditor.check(
        pairs_with_stability_of_two,
        PureDP(EPSILON, ADD_REMOVE, "Laplace mechanism"),
        [two_far_rows(), neighbors.far_user(n_users=20, m=2, relation=ADD_REMOVE)],
        mutants=[pairs_of_an_even_number],
        draws_factor=0.2,
    )


# --- OpenDP #2911: permute and flip is not an exponential mechanism ------------------------------

SCORES = neighbors.portfolio(dim=2).under(within_sensitivity())
NOISY_MAX_EPSILON = 2.0
NOISY_MAX_RHO = NOISY_MAX_EPSILON**2 / 8


def permute_and_flip(scores, size, *, rng):
    """Report noisy max with exponential noise of scale 2 / epsilon.

    The bug is in OpenDP up to 0.15.1, make_noisy_max with zero_concentrated_divergence; issue #2911
    (2026). The mechanism is epsilon-DP and claims rho = epsilon^2 / 8. The claimed rho needs the
    bounded range of Gumbel noise.
    """
    noise = rng.exponential(scale=2 / NOISY_MAX_EPSILON, size=(size, len(scores)))
    return (scores + noise).argmax(axis=1)


def exponential_mechanism(scores, size, *, rng):
    noise = rng.gumbel(scale=2 / NOISY_MAX_EPSILON, size=(size, len(scores)))
    return (scores + noise).argmax(axis=1)


@pytest.mark.known_violation("OpenDP #2911: a budget for Gumbel noise, with exponential noise")
def audit_opendp_2911(auditor):
    auditor.check(
        permute_and_flip,
        ZeroConcentratedDP(NOISY_MAX_RHO, within_sensitivity(), "make_noisy_max"),
        SCORES,
        draws_factor=SHARE,
    )


@pytest.mark.nightly
def audit_opendp_2911_mended(auditor):
    auditor.check(
        exponential_mechanism,
        ZeroConcentratedDP(NOISY_MAX_RHO, within_sensitivity(), "Cesar and Rogers 2021, Lemma 3.2"),
        SCORES,
        draws_factor=SHARE,
    )
