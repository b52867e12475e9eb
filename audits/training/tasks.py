"""Training runs for audits: logistic regression on a small number of users with one canary."""

from __future__ import annotations

import numpy as np
from scipy import special

from dpaudit import DPSGD, NeighborPair, Relation

Q, SIGMA, STEPS = 0.25, 1.5, 12
DELTA = 1e-5
LOUD = 20.0


def logistic(params, data):
    """Return gradients of log(1 + exp(-x params)), [n, m, d].

    The data are x times a label, which is -1 or 1.
    """
    margins = np.einsum("sd,nmd->snm", params, data)
    return -special.expit(-margins)[..., None] * data[None]


def loud_user(*, others=5, m=1, d=3, relation=Relation.ADD_REMOVE_USER):
    """Return a pair with a canary, which is a user with a large feature that no other user has.

    The canary's gradient is clipped at all iterates that training reaches. The canary's gradient is
    orthogonal to the gradients of all other users. If users are replaced, the right dataset has a
    user with the opposite feature.
    """
    users = np.zeros((others, m, d))
    users[:, :, : d - 1] = np.random.default_rng(0).normal(size=(others, 1, d - 1)) / m
    loud = np.zeros((1, m, d))
    loud[..., -1] = LOUD
    left = np.concatenate([users, loud])
    right = users if relation == Relation.ADD_REMOVE_USER else np.concatenate([users, -loud])
    return NeighborPair(left, right, relation=relation, recipe=f"a canary with {m} items")


def poisson(sigma=SIGMA, *, q=Q, steps=STEPS):
    """Return the dp-accounting event of DP-SGD.

    The event composes Poisson-sampled Gaussians.
    """
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent

    return SelfComposedDpEvent(PoissonSampledDpEvent(q, GaussianDpEvent(sigma)), steps)


def train(kind=DPSGD, *, d=3, **options):
    """Return a training run with short steps, so the canary keeps its large gradient."""
    options = {"sigma": SIGMA, "steps": STEPS, **options}
    if "batch_size" not in options:
        options = {"q": Q, **options}
    return kind(logistic, start=np.zeros(d), clip_norm=1.0, learning_rate=1e-3, **options)
