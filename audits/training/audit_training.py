"""Mistakes of private training, each next to a correct version that no audit refutes.

The claims come from dp-accounting. The mistakes are kept as demonstrations. The file
`tests/test_training_mistakes.py` computes the true epsilon of each mistake. The audits use only
facts that the person who trains the model knows. The person who trains the model knows the correct
mechanism and chooses the canary. The likelihood ratio of the correct mechanism is the score.
"""

from __future__ import annotations

import math
from functools import cache

import pytest

from audits.training.tasks import DELTA, SIGMA, loud_user, poisson, train
from dpaudit import Accounted, GaussianDP, Relation
from mutants import training as mutants

accounting = pytest.importorskip("dp_accounting", reason="pip install dp-accounting")

REPLACE = Relation.REPLACE_USER
EPOCHS, BATCHES, EPOCH_SIGMA = 4, 4, 0.8
FULL_SIGMA, FULL_STEPS = 4.0, 4
EIGHT = {"others": 7, "relation": REPLACE}


# --- clipping: per user, per example, not at all ---


@pytest.mark.nightly
def audit_white_box(auditor):
    """Audit all noisy sums against the whole curve of the accountant.

    This curve has no slack.
    """
    pair = loud_user(m=4)
    auditor.check(
        train(),
        Accounted(poisson(), source="dp-accounting, PLD"),
        pair,
        score=train().likelihood_ratio(pair),
        mutants=[train(clip="example"), train(mutants.GhostClippingOfColumns)],
        draws_factor=0.2,
    )


@pytest.mark.nightly
@pytest.mark.known_violation("clips each of a user's examples, but the claim is per user")
def audit_clipping_per_example(auditor):
    pair = loud_user(m=4)
    auditor.check(
        train(clip="example"),
        Accounted(poisson()).at(DELTA),
        pair,
        score=train().likelihood_ratio(pair),
        draws_factor=0.2,
    )


@pytest.mark.nightly
@pytest.mark.known_violation("losses [n, 1] weighted by factors [n]: nothing is clipped")
def audit_ghost_clipping_of_columns(auditor):
    pair = loud_user()
    auditor.check(
        train(mutants.GhostClippingOfColumns),
        Accounted(poisson()).at(DELTA),
        pair,
        score=train().likelihood_ratio(pair),
        draws_factor=0.2,
    )


# --- noise ---


def audit_one_step_in_many_dimensions(auditor):
    auditor.check(
        train(d=32, q=0.5, steps=1),
        Accounted(poisson(q=0.5, steps=1)).at(DELTA),
        loud_user(others=2, d=32),
        mutants=[train(mutants.NoiseOverDrawnBatch, d=32, q=0.5, steps=1)],
        draws_factor=0.1,
    )


@pytest.mark.nightly
@pytest.mark.known_violation("noise scaled by the size of the batch that was drawn")
def audit_noise_over_the_drawn_batch(auditor):
    """Audit without a score.

    The audit finds that the length of the noise is the best event.
    """
    auditor.check(
        train(mutants.NoiseOverDrawnBatch, d=32, q=0.5, steps=1),
        Accounted(poisson(q=0.5, steps=1)).at(DELTA),
        loud_user(others=2, d=32),
        draws_factor=0.3,
    )


@pytest.mark.nightly
def audit_last_iterate(auditor):
    auditor.check(
        train(release="last"),
        Accounted(poisson()),
        loud_user(),
        mutants=[train(mutants.AccumulationWithoutNoise, microbatches=6, release="last")],
        draws_factor=0.2,
    )


@pytest.mark.nightly
@pytest.mark.known_violation("moves at every microbatch, but adds noise only at every sixth")
def audit_accumulation_without_noise(auditor):
    auditor.check(
        train(mutants.AccumulationWithoutNoise, microbatches=6, release="last"),
        Accounted(poisson(), source="dp-accounting, PLD"),
        loud_user(),
        draws_factor=0.3,
    )


# --- sampling: the real samples must be Poisson if the accountant assumes it ---


def in_epochs(sampling="poisson", **options):
    options = {"sigma": EPOCH_SIGMA, "steps": EPOCHS * BATCHES, **options}
    return train(sampling=sampling, **options)


@cache
def as_poisson():
    event = poisson(EPOCH_SIGMA, q=1 / BATCHES, steps=EPOCHS * BATCHES)
    return Accounted(event, REPLACE, "dp-accounting, PLD")


@pytest.mark.nightly
def audit_poisson_replacing_users(auditor):
    pair = loud_user(**EIGHT)
    auditor.check(
        in_epochs(),
        as_poisson(),
        pair,
        score=in_epochs().likelihood_ratio(pair),
        mutants=[in_epochs("shuffle", batch_size=2), in_epochs("balls_in_bins")],
        draws_factor=0.3,
    )


@pytest.mark.nightly
@pytest.mark.known_violation("shuffled batches, accounted as Poisson samples")
def audit_shuffle_as_poisson(auditor):
    pair = loud_user(**EIGHT)
    mechanism = in_epochs("shuffle", batch_size=2)
    auditor.check(
        mechanism, as_poisson(), pair, score=mechanism.likelihood_ratio(pair), draws_factor=0.3
    )


@pytest.mark.nightly
@pytest.mark.known_violation("balls in bins, accounted as Poisson samples")
def audit_balls_in_bins_as_poisson(auditor):
    pair = loud_user(**EIGHT)
    mechanism = in_epochs("balls_in_bins")
    auditor.check(
        mechanism, as_poisson(), pair, score=mechanism.likelihood_ratio(pair), draws_factor=0.3
    )


@pytest.mark.nightly
@pytest.mark.parametrize(
    "sampling",
    [{"sampling": "shuffle", "batch_size": 2}, {"sampling": "balls_in_bins"}],
    ids=["shuffle", "balls_in_bins"],
)
def audit_once_in_an_epoch(auditor, sampling):
    """Audit epochs in which a user takes part once.

    Each epoch is one Gaussian without amplification.
    """
    pair = loud_user(m=4, **EIGHT)
    epoch = {"steps": BATCHES, "sigma": SIGMA, **sampling}
    mechanism = train(**epoch)
    auditor.check(
        mechanism,
        GaussianDP(2 / SIGMA, REPLACE, "given its batch, a user moves one sum by 2 clip_norm"),
        pair,
        score=mechanism.likelihood_ratio(pair),
        mutants=[train(clip="example", **epoch)],
        draws_factor=0.2,
    )


# --- accounting under another relation ---


def full_batches():
    return train(q=1.0, sigma=FULL_SIGMA, steps=FULL_STEPS)


@pytest.mark.nightly
def audit_full_batches_by_pld(auditor):
    """Audit the PLD accountant, which doubles the move of one user under REPLACE_ONE."""
    pair = loud_user(relation=REPLACE)
    event = poisson(FULL_SIGMA, q=1.0, steps=FULL_STEPS)
    auditor.check(
        full_batches(),
        Accounted(event, REPLACE, "dp-accounting, PLD"),
        pair,
        score=full_batches().likelihood_ratio(pair),
        mutants=[train(q=1.0, sigma=FULL_SIGMA / math.sqrt(2), steps=FULL_STEPS)],
        draws_factor=0.2,
    )


@pytest.mark.nightly
@pytest.mark.known_violation("an RDP accountant under REPLACE_ONE, given sigma over clip_norm")
def audit_full_batches_by_rdp(auditor):
    """Audit the RDP accountant with a multiplier relative to the clip norm.

    The accountant expects a multiplier relative to a replaced user's move, which is twice the clip
    norm.
    """
    from dp_accounting.rdp.rdp_privacy_accountant import RdpAccountant

    accountant = RdpAccountant(neighboring_relation=accounting.NeighboringRelation.REPLACE_ONE)
    accountant.compose(accounting.GaussianDpEvent(FULL_SIGMA), FULL_STEPS)
    pair = loud_user(relation=REPLACE)
    auditor.check(
        full_batches(),
        Accounted(accountant, source="dp-accounting, RDP"),
        pair,
        score=full_batches().likelihood_ratio(pair),
        draws_factor=0.5,
    )
