"""Audits that search a space of pairs for the worst pair."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from algorithms.common import means
from dpaudit import PureDP, Relation, neighbors
from mutants import means as means_mutants

EPSILON = 1.0


def audit_user_mean_anywhere(auditor):
    """Search for the worst user and the worst spread of the other users.

    The claim is tight in the worst case.
    """
    auditor.check(
        partial(means.clipped_user_mean, clip_norm=1.0, epsilon=EPSILON),
        PureDP(EPSILON, Relation.REPLACE_USER, "Laplace mechanism at user-level sensitivity"),
        neighbors.outlier(n_users=20, low=-3.0, high=3.0),
        mutants=[partial(means_mutants.user_mean_unclipped, clip_norm=1.0, epsilon=EPSILON)],
    )


THRESHOLD = 0.3712


def mean_that_answers_by_halves(data, size, *, rng):
    """Release a noisy mean of 27 values in [0, 1].

    If the mean exceeds a threshold, shift the mean.
    """
    average = np.clip(data, 0.0, 1.0).mean()
    shift = 0.08 if average > THRESHOLD else 0.0
    return average + shift + rng.laplace(scale=1 / (len(data) * EPSILON), size=size)


@pytest.mark.nightly
@pytest.mark.known_violation("branches on the data: only pairs across a threshold reveal it")
def audit_hidden_threshold(auditor):
    auditor.check(
        mean_that_answers_by_halves,
        PureDP(EPSILON, Relation.REPLACE_USER, "sensitivity 1 / n of a mean"),
        neighbors.edge(n_users=27),
    )
