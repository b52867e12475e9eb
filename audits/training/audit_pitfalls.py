"""The pitfalls that JAX Privacy's guide names, made with JAX Privacy's own parts.

The guide "Common Pitfalls in DP Training" (McKenna and McMahan, 2026) names nine critical pitfalls,
and three of floating point and randomness. Each of them but finite precision is audited twice.
The mistake is a known violation. In the audit of the correct counterpart, the mistake is the
mutant. The audits are skipped if JAX Privacy is not installed. `docs/guides/pitfalls.md` has the
table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

from audits.field.packages import needs
from dpaudit import Accounted, GaussianDP, NeighborPair, Relation, one_draw

pytestmark = [
    needs("jax_privacy", "jax-privacy"),
    pytest.mark.filterwarnings("ignore:optax.global_norm is deprecated"),
]
ADD, REPLACE = Relation.ADD_REMOVE_USER, Relation.REPLACE_USER
SIGMA, CLIP = 1.0, 1.0
FAR = np.array([9.0, 0.0])


def users(*last, others=5):
    """Return users at (0, 1), and the given users after them."""
    return np.array([[0.0, 1.0]] * others + [list(user) for user in last])


def added(user=FAR, **options):
    return NeighborPair(users(user, **options), users(**options), relation=ADD)


def replaced():
    return NeighborPair(users(FAR), users(-FAR), relation=REPLACE)


def poisson(q, sigma=SIGMA, steps=1):
    """Return the curve of dp-accounting for Poisson samples."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent

    step = PoissonSampledDpEvent(q, GaussianDpEvent(sigma))
    return Accounted(SelfComposedDpEvent(step, steps), source="dp-accounting, PLD")


# --- parts of a step, by JAX Privacy ---


def clipped(**options):
    """Return the clipped gradient of squared distances to the origin, ``f(params, users)``."""
    import jax.numpy as jnp
    from jax_privacy import clipped_grad

    def loss(params, user):
        return 0.5 * jnp.sum((user - params) ** 2)

    options = {"l2_clip_norm": CLIP, "keep_batch_dim": False, **options}
    return clipped_grad(loss, **options)


GRID = 1024
"""Sums are rounded to multiples of 1 / GRID, so that their low bits reveal nothing."""


def noisy(total, stddev, key, *, rounded=True):
    """Return a sum with the noise of JAX Privacy."""
    import jax.numpy as jnp
    from jax_privacy.noise_addition import gaussian_privatizer

    privatizer = gaussian_privatizer(stddev=stddev, prng_key=key)
    released = privatizer.update(total, privatizer.init(total))[0]
    return jnp.round(released * GRID) / GRID if rounded else released


def origin():
    import jax.numpy as jnp

    return jnp.zeros(2)


def sampled(key, data, q):
    """Return who is left out of a Poisson sample."""
    import jax

    return ~jax.random.bernoulli(key, q, data.shape[:1])


def split(key, count=2):
    import jax

    return jax.random.split(key, count)


# --- the pitfalls: each function has a mistaken and a correct version ---


def batch_size(data, *, key, wrong):
    """Calibrate the noise for a mean. The mistake adds this noise to a sum."""
    expected = 4.0
    total = clipped(normalize_by=1.0 if wrong else expected)(origin(), data)
    return noisy(total, SIGMA * CLIP / expected, key)


def drawn_batch_size(data, *, key, wrong):
    """Divide by the expected size of a Poisson sample. The mistake divides by the drawn size."""
    import jax.numpy as jnp

    one, other = split(key)
    absent, expected = sampled(one, data, 0.5), 3.0
    total = clipped()(origin(), data, is_padding_example=absent)
    drawn = jnp.maximum((~absent).sum(), 1)
    return noisy(total / (drawn if wrong else expected), SIGMA * CLIP / expected, other)


def sensitivity(data, *, key, wrong):
    """Rescale to norm 1. The mistake calibrates the noise to the clip norm, which is 1/2."""
    gradient = clipped(l2_clip_norm=0.5, rescale_to_unit_norm=True)
    return noisy(gradient(origin(), data), SIGMA * (0.5 if wrong else gradient.sensitivity()), key)


def metadata(data, *, key, wrong):
    """Release a gradient with a public constant. The mistake releases the number of users."""
    gradient = noisy(clipped()(origin(), data), SIGMA * CLIP, key)
    return {"gradient": gradient[0], "num_examples": len(data) if wrong else 1}


def relation(data, *, key, wrong):
    """Calibrate for replaced users. The mistake takes the sensitivity of added users."""
    from dp_accounting import NeighboringRelation as Library

    gradient = clipped()
    taken = Library.ADD_OR_REMOVE_ONE if wrong else Library.REPLACE_ONE
    return noisy(gradient(origin(), data), SIGMA * gradient.sensitivity(taken), key)


def empty_batch(data, *, key, wrong):
    """Add noise to every sum. The mistake skips a step whose sample is empty."""
    import jax.numpy as jnp

    one, other = split(key)
    absent = sampled(one, data, 0.5)
    total = clipped()(origin(), data, is_padding_example=absent)
    released = noisy(total, 4 * SIGMA * CLIP, other)
    return jnp.where(absent.all(), 0.0, released) if wrong else released


def non_finite(data, *, key, wrong):
    """Sum gradients without those that overflow in single precision. The mistake keeps them."""
    import jax.numpy as jnp

    features = jnp.exp(10 * data)  # exp(90) is more than float32 can hold
    return noisy(clipped(nan_safe=not wrong)(origin(), features), SIGMA * CLIP, key)


def accumulation(data, *, key, wrong):
    """Accumulate two chunks, then add noise. The mistake gives each chunk half of the noise."""
    chunks = [clipped()(origin(), chunk) for chunk in (data[:2], data[2:])]
    if not wrong:
        return noisy(sum(chunks), SIGMA * CLIP, key)
    parts = zip(chunks, split(key), strict=True)
    return sum(noisy(chunk, SIGMA * CLIP / 2, one) for chunk, one in parts)


def across_examples(data, *, key, wrong):
    """Centre the data by a public constant. The mistake centres them by the mean of the batch."""
    centre = data.mean(axis=0) if wrong else 0.0
    return noisy(clipped()(origin(), data - centre), SIGMA * CLIP, key)


def auxiliary(data, *, key, wrong):
    """Release a loss beside the gradient. The mistake releases the exact mean of the losses."""
    import jax
    import jax.numpy as jnp

    one, other = split(key)
    gradient, aux = clipped(return_values=True)(origin(), data)
    loss = aux.values.mean()
    if not wrong:  # clipped losses, and as much noise as for the gradient
        loss = jnp.clip(aux.values, 0, CLIP).sum() + SIGMA * CLIP * jax.random.normal(other)
    return {"gradient": noisy(gradient, SIGMA * CLIP, one)[0], "loss": jnp.round(loss * GRID)}


def reused_key(data, *, key, wrong):
    """Take two steps on Poisson samples. The mistake starts the noise of both with one key."""
    import jax.numpy as jnp

    one, two, *keys = split(key, 4)
    sums = [
        noisy(
            clipped()(origin(), data, is_padding_example=sampled(sample, data, 0.5)),
            SIGMA * CLIP,
            keys[0] if wrong else own,
        )
        for sample, own in zip((one, two), keys, strict=True)
    ]
    return jnp.concatenate(sums)


def low_bits(data, *, key, wrong):
    """Round the noisy mean of a Poisson sample to a grid. The mistake releases all its bits."""
    one, other = split(key)
    total = clipped(normalize_by=3.0)(origin(), data, is_padding_example=sampled(one, data, 0.5))
    return noisy(total, SIGMA * CLIP / 3, other, rounded=not wrong)


@dataclass(frozen=True)
class Pitfall:
    """A step of training with a mistake and without it, and what is claimed of it."""

    step: Any
    claim: Any
    pair: NeighborPair
    reason: str

    def mechanism(self, *, wrong):
        """Return the step as a mechanism, with the mistake or without it."""
        mechanism = one_draw(self.step, randomness="jax", vmap=True)
        return partial(mechanism, wrong=wrong)


def gaussian(relation=ADD, mu=CLIP / SIGMA):
    return lambda: GaussianDP(mu, relation, "a full batch")


PITFALLS = [
    Pitfall(batch_size, gaussian(), added(), "noise for a mean, added to a sum"),
    Pitfall(
        drawn_batch_size,
        lambda: poisson(0.5),
        added(),
        "a sum divided by the size of the drawn batch",
    ),
    Pitfall(sensitivity, gaussian(), added(), "unit norm, but noise for the clip norm 1/2"),
    Pitfall(metadata, gaussian(), added(), "the number of users, released as configuration"),
    Pitfall(
        relation,
        gaussian(REPLACE),
        replaced(),
        "the sensitivity of added users, claimed for replaced users",
    ),
    Pitfall(
        empty_batch,
        lambda: poisson(0.5, 4 * SIGMA),
        added(others=1),
        "no noise if the sample is empty",
    ),
    Pitfall(
        non_finite,
        gaussian(REPLACE, 2 * CLIP / SIGMA),
        NeighborPair(users(FAR), users((0.5, 0.0))),
        "one user's gradient overflows to NaN",
    ),
    Pitfall(accumulation, gaussian(), added(), "noise of scale sigma / 2 for each of two chunks"),
    Pitfall(across_examples, gaussian(), added(9 * FAR), "features centred by the batch"),
    Pitfall(auxiliary, gaussian(mu=2**0.5), added(), "the exact mean loss beside the gradient"),
    Pitfall(reused_key, lambda: poisson(0.5, steps=2), added(), "one key for two steps"),
    Pitfall(low_bits, lambda: poisson(0.5), added(), "float32 noise on a float32 mean"),
]
RIGHT = [pytest.param(one, id=one.step.__name__) for one in PITFALLS]
WRONG = [
    pytest.param(one, id=one.step.__name__, marks=pytest.mark.known_violation(one.reason))
    for one in PITFALLS
]


@pytest.mark.parametrize("pitfall", RIGHT)
def audit_pitfall_avoided(auditor, pitfall):
    auditor.check(
        pitfall.mechanism(wrong=False),
        pitfall.claim(),
        pitfall.pair,
        mutants=[pitfall.mechanism(wrong=True)],
    )


@pytest.mark.parametrize("pitfall", WRONG)
def audit_pitfall(auditor, pitfall):
    auditor.check(pitfall.mechanism(wrong=True), pitfall.claim(), pitfall.pair)


# --- batch selection: the accountant assumes Poisson samples ---


Q, STEPS = 0.5, 8


def train(data, size, *, rng, cycle_length):
    """Return all noisy sums ``[size, steps, 2]`` of training on the batches of JAX Privacy."""
    import jax
    from jax_privacy.batch_selection import CyclicPoissonSampling

    strategy = CyclicPoissonSampling(
        sampling_prob=Q * cycle_length, iterations=STEPS, cycle_length=cycle_length
    )
    rng = np.random.Generator(np.random.PCG64(int(rng.integers(2**63))))
    taken = np.zeros((size, STEPS, len(data)), dtype=bool)
    for run in taken:
        for step, batch in enumerate(strategy.batch_iterator(len(data), rng=rng)):
            run[step, batch] = True
    gradient = clipped()

    def step(key, absent):
        total = gradient(origin(), data, is_padding_example=absent)
        return noisy(total, SIGMA * CLIP, key)

    keys = split(jax.random.key(rng.integers(2**32)), size * STEPS).reshape(size, STEPS)
    return np.asarray(jax.vmap(jax.vmap(step))(keys, ~taken))


def cyclic_score(sums):
    """Return the log-likelihood ratio of a user who takes part in every second step, ``[size]``."""
    along = (-sums[:, :, 0] - CLIP / 2) * CLIP / (SIGMA * CLIP) ** 2
    return np.logaddexp(along[:, ::2].sum(axis=1), along[:, 1::2].sum(axis=1))


def audit_poisson_batches(auditor):
    auditor.check(
        partial(train, cycle_length=1),
        poisson(Q, steps=STEPS),
        added(),
        score=cyclic_score,
        mutants=[partial(train, cycle_length=2)],
        draws_factor=0.1,
    )


@pytest.mark.known_violation("cyclic batches, accounted as Poisson samples")
def audit_cyclic_batches(auditor):
    auditor.check(
        partial(train, cycle_length=2),
        poisson(Q, steps=STEPS),
        added(),
        score=cyclic_score,
        draws_factor=0.1,
    )
