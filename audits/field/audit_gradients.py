"""Audits of JAX Privacy gradients and of Opacus training, at user level.

The audits are skipped if these packages are not installed. Both packages accept a seed, but both
packages draw from their own generators. So dpaudit cannot make noise mutants, and the mutants scale
the noise down instead.
"""

from __future__ import annotations

import numpy as np
import pytest

from audits.field.packages import needs
from dpaudit import GaussianDP, NeighborPair, Relation, adapters, mutants

SIGMA = 2.0
JAX_PRIVACY, OPACUS = needs("jax_privacy", "jax-privacy"), needs("opacus", "opacus")
OTHERS = np.zeros((7, 4, 2))


def loud_user(relation):
    """Return a pair of datasets whose users have four items each.

    In the left dataset, the last of eight users is far away. In the right dataset, the last user is
    removed or moves to the opposite place.
    """
    loud = np.full((1, 4, 2), [9.0, 0.0])
    left = np.concatenate([OTHERS, loud])
    replaced = relation is Relation.REPLACE_USER
    right = np.concatenate([OTHERS, -loud]) if replaced else OTHERS
    return NeighborPair(left, right, relation=relation)


def clipped_by(whose):
    """Return gradients of squared distances, clipped to 1 for each user.

    If `whose` is "item", each item is clipped by mistake.
    """
    import jax.numpy as jnp
    from jax_privacy import clipped_grad

    def loss(params, items):
        return 0.5 * jnp.sum((items - params) ** 2)

    gradient = clipped_grad(loss, l2_clip_norm=1.0, keep_batch_dim=False)
    if whose == "item":
        return lambda params, data: gradient(params, data.reshape(-1, data.shape[-1]))
    return gradient


def descent(whose="user", **settings):
    import jax.numpy as jnp

    return adapters.jax_privacy(clipped_by(whose), jnp.zeros(2), stddev=SIGMA, **settings)


@JAX_PRIVACY
@pytest.mark.filterwarnings("ignore:optax.global_norm is deprecated")
@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE_USER, Relation.REPLACE_USER], ids=str)
def audit_jax_privacy_gradient_of_users(auditor, relation):
    """Audit at user level.

    The second mutant clips each item.
    """
    moved = 2 if relation is Relation.REPLACE_USER else 1
    auditor.check(
        descent(),
        GaussianDP(moved / SIGMA, relation, "JAX Privacy clipped_grad and gaussian_privatizer"),
        loud_user(relation),
        mutants=[mutants.scaled(stddev=1 / 2), descent("item")],
        draws_factor=0.5,
    )


@JAX_PRIVACY
@pytest.mark.filterwarnings("ignore:optax.global_norm is deprecated")
def audit_jax_privacy_two_steps_of_users(auditor):
    auditor.check(
        descent(steps=2, learning_rate=0.1),
        GaussianDP(2**0.5 / SIGMA, Relation.ADD_REMOVE_USER, "JAX Privacy, two full batches"),
        loud_user(Relation.ADD_REMOVE_USER),
        mutants=[mutants.scaled(stddev=1 / 2)],
        draws_factor=0.5,
    )


def zero_model():
    import torch

    module = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(module.weight)
    return module


def linear_loss(outputs):
    return outputs.mean()


@OPACUS
def audit_opacus_step(auditor):
    """Audit one step on all users, who have one item each.

    A replaced user moves the sum by 2.
    """
    items = np.concatenate([OTHERS[:, 0, :1], [[9.0]]])
    auditor.check(
        adapters.opacus(zero_model, linear_loss, noise_multiplier=SIGMA, poisson_sampling=False),
        GaussianDP(2 / SIGMA, Relation.REPLACE_USER, "Opacus, one full batch"),
        NeighborPair(items, items * np.append(np.ones(7), -1.0)[:, None]),
        mutants=[mutants.scaled(noise_multiplier=1 / 3)],
        draws_factor=0.05,
    )


def labelled(last):
    """Return features [8, 1] and targets [8, 1].

    The argument `last` is the last feature.
    """
    features = np.append(np.full(7, 0.1), last)[:, None]
    return {"X": features, "y": np.ones((8, 1))}


@OPACUS
@pytest.mark.parametrize(
    "mode",
    [
        "hooks",
        pytest.param(
            "ghost",
            marks=pytest.mark.known_violation("losses of shape [n, 1]: nothing is clipped"),
        ),
    ],
)
def audit_opacus_regression(auditor, mode):
    """Audit mean squared error on a column of targets, the usual loss (see `docs/findings.md`).

    In the mode `ghost`, one user with the feature 1000 moves the gradient by 18 million times the
    clipping norm.
    """
    import torch

    auditor.check(
        adapters.opacus(
            zero_model,
            torch.nn.MSELoss(),
            noise_multiplier=SIGMA,
            poisson_sampling=False,
            grad_sample_mode=mode,
        ),
        GaussianDP(2 / SIGMA, Relation.REPLACE_USER, "Opacus, one full batch"),
        NeighborPair(labelled(1000.0), labelled(0.0)),
        mutants=[mutants.scaled(noise_multiplier=1 / 6)],
        draws_factor=0.02,
    )
