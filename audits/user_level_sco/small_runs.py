"""Small runs of the algorithms, and printed plans, that the checks share."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from unittest import mock

import numpy as np

from algorithms.user_level_sco import _descent, printed, scores
from algorithms.user_level_sco.losses import Quadratic
from algorithms.user_level_sco.plans import Filter, Phase, Plan, PlanWarning
from audits.user_level_sco import transcribed
from dpaudit.neighbors import Integer, Interval

DRAWS = 3
"""Number of draws of each run, which have noise of their own."""

SIZES = {"n": Integer(10**7, 10**12), "m": Integer(2, 10**5), "d": Integer(1, 1000)}
SIZES |= {"epsilon": Interval(0.2, 1.0), "delta": Interval(1e-6, 0.5, log=True)}
SIZES |= {"lipschitz": Interval(0.1, 9.0), "radius": Interval(0.1, 9.0)}
RARE = {"n": 10**9, "m": 2, "d": 7, "epsilon": 0.3, "delta": 0.5, "lipschitz": 2.0, "radius": 3.0}


def printed_plan(n, m, d, epsilon, delta, lipschitz, radius, **options):
    """Return the plan of `printed`, or None if there are too few users."""
    if n < transcribed.fewest_users(m, epsilon, delta):
        return None
    options |= {"epsilon": epsilon, "delta": delta, "lipschitz": lipschitz, "radius": radius}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlanWarning)
        return printed.euclidean(n, m, d, **options)


def small_plan(steps, cutoff, follows, threshold=4.0):
    """Return phases of 6 users in each step; the scores are compared with about 4."""
    rule = Filter(0.8, threshold, 0.7, cutoff, 2.0, scale_follows_cutoff=follows)
    phases = tuple(Phase(6 * t, t, 0.5 / 2**s, 0.3 / (s + 1)) for s, t in enumerate(steps))
    return Plan(6, phases, rule, 99.0, 1.0, 1.0, 0.1)


def laplace_units(rng, draws, sizes, alone=False):
    """Draw standard noise in the order of the implementation, one row for each draw."""
    groups = [1] * draws if alone else [draws]
    parts = [[rng.laplace(size=(group, size)) for size in sizes] for group in groups]
    return np.vstack([np.hstack(part) for part in parts])


def in_parts(size):
    """Let `scores` handle at most `size` distances at once; None keeps the default."""
    sizes = {} if size is None else {"_AT_ONCE": size, "_COORDINATES": size}
    return mock.patch.multiple(scores, **sizes) if sizes else nullcontext()


def draws_alone(alone, numbers):
    """Let algorithms run one draw at a time, as if memory had room for `numbers` coordinates."""
    return mock.patch.object(_descent, "BLOCK", numbers) if alone else nullcontext()


class Silent(np.random.Generator):
    """A generator whose Laplace noise is 0, so that scores and counts can equal their bounds."""

    def __init__(self):
        super().__init__(np.random.PCG64(0))

    def laplace(self, loc=0.0, scale=1.0, size=None):
        """Return zeros."""
        return np.zeros(size)


def gradient_of(loss):
    """Return the gradient of an item, transcribed, for Huber losses and quadratic losses."""
    return (lambda x, z: x - z) if loss == Quadratic() else transcribed.huber_gradient


def users_from(seed, d):
    """Return 30 users with two items each; some users are far from the others."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(30, 2, d)) * np.where(rng.random((30, 1, 1)) < 0.2, 3.0, 0.5)


START = np.array([0.3, -0.2])
