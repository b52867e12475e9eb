"""Mechanisms that return their centres, so that audits can integrate out the final noise.

With the noise integrated out, an audit can test a delta far below 1 / draws. If the data determine
the centres, the audit is exact. If the centres are random but known to lie in a ball, the audit
bets on probabilities.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from algorithms.common.noise import analytic_gaussian_sigma
from dpaudit import AdditiveNoise, ApproxDP, NeighborPair, Relation
from dpaudit import neighbors as nb
from dpaudit.stats import hockey_stick_density

EPSILON, TINY_DELTA = 1.0, 1e-9
USERS = nb.clip_boundary_user(n_users=20, m=8, low=-1.0, high=1.0)


def clipped_mean(data, *, radius=1.0):
    """Return the mean of the user means.

    Each user mean is clipped to [-radius, radius].
    """
    return np.clip(data.mean(axis=1), -radius, radius).mean(axis=0)


def audit_deterministic_centers(auditor):
    """Compute the exact profile for a delta that is too small for any number of draws."""
    sigma = analytic_gaussian_sigma(2 / 20, EPSILON, TINY_DELTA)
    auditor.check(
        AdditiveNoise(clipped_mean, scale=sigma),
        ApproxDP(EPSILON, TINY_DELTA, Relation.REPLACE_USER, "Balle and Wang 2018, Theorem 8"),
        USERS,
        mutants=[
            AdditiveNoise(clipped_mean, scale=sigma / 2)
        ],  # calibrated to an added user instead of a replaced user
    )


# --- random centres ---

RATE, SIGMA = 0.2, 1.0
WITH_AND_WITHOUT = NeighborPair([[0.0], [1.0]], [[0.0]], relation=Relation.ADD_REMOVE_USER)


def sampled_sum(data, size, *, rng, rate=RATE):
    """Return the sum of the users who take part.

    Each user takes part with probability `rate`.
    """
    takes_part = rng.random((size, len(data))) < rate
    return takes_part @ data[:, 0]


def subsampled_delta(epsilon):
    """Return the exact delta for one user with value 1 who takes part with probability RATE."""

    def gaussian(x, shift):
        return np.exp(-((x - shift) ** 2) / 2) / np.sqrt(2 * np.pi)

    def alone(x):
        return gaussian(x, 0.0)

    def mixed(x):
        return RATE * gaussian(x, 1.0) + (1 - RATE) * alone(x)

    points = [-9.0, -3.0, 0.0, 0.5, 1.0, 3.0, 6.0, 10.0]
    both = ((mixed, alone), (alone, mixed))
    return max(hockey_stick_density(*sides, epsilon, breakpoints=points) for sides in both)


def ball(data):
    """Return a ball that contains all partial sums of nonnegative user values.

    The center and the radius of the ball are half of the total sum.
    """
    half = data[:, 0].sum() / 2
    return [half], half + 1e-9


def audit_subsampled_gaussian(auditor):
    epsilon = 2.0
    noisy = partial(AdditiveNoise, noise="gaussian", scale=SIGMA, ball=ball)
    auditor.check(
        noisy(sampled_sum),
        ApproxDP(
            epsilon,
            subsampled_delta(epsilon),
            Relation.ADD_REMOVE_USER,
            "hockey-stick divergence of the mixture, by quadrature",
        ),
        WITH_AND_WITHOUT,
        mutants=[noisy(partial(sampled_sum, rate=1.0))],  # the mutant forgets to sample
        draws_factor=0.3,
    )
