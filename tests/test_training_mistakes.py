"""Tests of the true epsilon of training mistakes, in closed form and without draws.

Each mistake of `audits/training` violates its claim, and the correct version satisfies the claim.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation
from dp_accounting.rdp.rdp_privacy_accountant import RdpAccountant
from scipy import special, stats

from audits.training import audit_training as audits
from audits.training.tasks import DELTA, SIGMA, STEPS, Q, loud_user, poisson, train
from dpaudit import DPSGD, Accounted, GaussianDP, Relation
from dpaudit.stats import hockey_stick_density
from mutants import training as mutants

REPLACE = Relation.REPLACE_USER
CLAIM = Accounted(poisson())


def last_iterate_delta(epsilon: float, sigma: float) -> float:
    """Return the exact delta of the sum of all steps.

    On one side, the sum is noise. On the other side, the sum also has a binomial number of ones.
    """
    times, counts = np.arange(STEPS + 1), stats.binom.pmf(np.arange(STEPS + 1), STEPS, Q)

    def alone(x: np.ndarray) -> np.ndarray:
        return np.asarray(stats.norm.pdf(x, 0, sigma))

    def mixed(x: np.ndarray) -> np.ndarray:
        return np.asarray((counts * stats.norm.pdf(np.asarray(x)[..., None], times, sigma)).sum(-1))

    points = [-8 * sigma, *times.tolist(), STEPS + 8 * sigma]
    sides = ((mixed, alone), (alone, mixed))
    return max(hockey_stick_density(*one, epsilon, breakpoints=points) for one in sides)


@pytest.mark.slow
def test_clipping_per_example_multiplies_the_sensitivity_by_the_items() -> None:
    pair = loud_user(m=4)
    gradients = train()._gradients(np.zeros((1, 3)), pair.left)
    by_user, by_example = (train(clip=clip).clipped(gradients)[0] for clip in ("user", "example"))
    np.testing.assert_allclose(np.linalg.norm(by_user[-1]), 1.0)
    np.testing.assert_allclose(np.linalg.norm(by_example[-1]), 4.0)
    assert (np.linalg.norm(by_user, axis=1) <= 1 + 1e-12).all()
    claimed, true = CLAIM.epsilon(DELTA), Accounted(poisson(SIGMA / 4)).epsilon(DELTA)
    assert (round(claimed, 2), round(true, 1)) == (3.35, 38.9)


def test_the_loud_user_stays_loud_and_alone() -> None:
    """Check that the canary user keeps its own gradient and that no other user has this gradient.

    The likelihood ratio of the audits is therefore exact at all reachable iterates.
    """
    for relation in (Relation.ADD_REMOVE_USER, REPLACE):
        data = loud_user(relation=relation).left
        run = train(release="last", steps=STEPS, q=1.0)
        reached = run(data, 2000, rng=np.random.default_rng(0))
        clipped = run.clipped(run._gradients(reached, data))
        np.testing.assert_allclose(clipped[:, -1], np.tile([0, 0, -1.0], (2000, 1)), atol=1e-12)
        np.testing.assert_array_equal(clipped[:, :-1, 2], 0.0)


def test_ghost_clipping_of_columns_clips_nothing() -> None:
    run, right = train(mutants.GhostClippingOfColumns), train()
    gradients = np.array([[[0.0, 0.0, 300.0], [0.5, 0.0, 0.0]]])
    both = np.array([[True, True]])
    wrong = run.total(run.clipped(gradients), both)
    np.testing.assert_allclose(wrong, (1 / 300 + 1) * gradients.sum(axis=1))
    np.testing.assert_allclose(right.total(right.clipped(gradients), both), [[0.5, 0.0, 1.0]])
    # A user who does not take part has weight 0, and a user who is alone is clipped as always.
    alone = np.array([[True, False]])
    np.testing.assert_allclose(run.total(run.clipped(gradients), alone), [[0, 0, 1.0]])


def test_noise_over_the_drawn_batch_tells_its_size() -> None:
    """Check that noise divided by the size of the drawn batch reveals this size.

    Given the batch size, squared lengths are chi-squared, with or without the canary user.
    """
    d, sigma, q = 32, SIGMA, 0.5

    def below(threshold: float, n_users: int, loud: bool) -> float:
        """Bound P(length <= threshold) from below with the canary user, else from above.

        Shifts only increase lengths. With the canary user, the largest shift occurs if all users
        move in one direction. Without the canary user, the lengths come from noise alone.
        """
        total = 0.0
        for b in range(n_users + 1):
            scaled, size = (threshold * max(b, 1) / sigma) ** 2, max(b, 1)
            shift = (size / sigma) ** 2 if loud else 0.0
            total += stats.binom.pmf(b, n_users, q) * (
                stats.ncx2.cdf(scaled, d, shift) if shift else stats.chi2.cdf(scaled, d)
            )
        return float(total)

    claimed = Accounted(poisson(q=q, steps=1)).epsilon(DELTA)
    true = max(
        math.log((below(t, 3, True) - DELTA) / below(t, 2, False))
        for t in np.linspace(1.5, 3.5, 81)
        if below(t, 3, True) > 2 * DELTA
    )
    assert round(claimed, 2) == 2.02
    assert true > 3 * claimed
    run = train(mutants.NoiseOverDrawnBatch, d=32, q=0.5, steps=1)
    few, many = np.array([[True, False, False]]), np.array([[True, True, True]])
    noise = [run.noise((1, 32), chosen, 0, rng=np.random.default_rng(0)) for chosen in (few, many)]
    np.testing.assert_allclose(noise[0], 3 * noise[1])


def test_accumulation_without_noise_has_the_noise_of_few_steps() -> None:
    kept, broken = (
        last_iterate_delta(CLAIM.epsilon(DELTA), SIGMA * (STEPS / parts) ** 0.5) for parts in (1, 6)
    )
    assert kept < DELTA
    assert broken > 1000 * DELTA
    run = train(mutants.AccumulationWithoutNoise, microbatches=6, release="last")
    nobody = loud_user().right[:0]
    total = (run.start - run(nobody, 4000, rng=np.random.default_rng(0))) / run.learning_rate
    assert total.std() == pytest.approx(SIGMA * 2**0.5, rel=0.03)


@pytest.mark.slow
def test_taking_part_once_in_an_epoch_is_no_poisson_sampling() -> None:
    """Check that taking part once in each epoch is not Poisson sampling.

    The mistake shows even in the sum of all steps, which is a Gaussian that one user certainly
    moves. If a user is replaced by the opposite user, the sum moves by two in each epoch.
    """
    sigma, epochs, batches = audits.EPOCH_SIGMA, audits.EPOCHS, audits.BATCHES
    claim = audits.as_poisson()
    once = GaussianDP(2 * epochs / (sigma * math.sqrt(epochs * batches)))
    assert once.delta(2.6) > 1.2 * claim.delta(2.6)
    assert once.delta(1.0) > 1.1 * claim.delta(1.0)
    # If all batches are known, a run is a Gaussian that moves by this amount and no more in each
    # epoch.
    given = GaussianDP(2 * math.sqrt(epochs) / sigma)
    assert all(given.delta(epsilon) > once.delta(epsilon) for epsilon in (0.0, 1.0, 4.0))


def test_an_rdp_accountant_that_is_told_sigma_over_clip_norm_claims_too_little() -> None:
    sigma, steps = audits.FULL_SIGMA, audits.FULL_STEPS
    exact = GaussianDP(2 * math.sqrt(steps) / sigma)
    accountants = [
        RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE).compose(
            GaussianDpEvent(multiplier), steps
        )
        for multiplier in (sigma, sigma / 2)
    ]
    wrong, right = map(Accounted, accountants)
    by_pld = Accounted(poisson(sigma, q=1.0, steps=steps), REPLACE)
    assert by_pld.epsilon(DELTA) == pytest.approx(exact.epsilon(DELTA), abs=1e-3)
    assert right.epsilon(DELTA) > exact.epsilon(DELTA)
    assert wrong.epsilon(DELTA) < 0.55 * exact.epsilon(DELTA)
    assert wrong.delta(2.0) < 0.05 * exact.delta(2.0)


def test_a_poisson_sampled_run_is_what_the_accountant_says() -> None:
    """Compare one step of a Poisson sampled run with the accountant.

    One step of a canary user attains the claim, because its curve is the curve of the dominating
    pair.
    """
    sigma, q = SIGMA, Q
    claim = Accounted(poisson(steps=1))
    for epsilon in (0.1, 0.5, 1.0):
        crossing = sigma**2 * math.log((math.exp(epsilon) - 1 + q) / q) + 0.5
        mixed = q * special.ndtr((1 - crossing) / sigma) + (1 - q) * special.ndtr(-crossing / sigma)
        exact = mixed - math.exp(epsilon) * special.ndtr(-crossing / sigma)
        assert claim.delta(epsilon) == pytest.approx(float(exact), rel=1e-3)


def test_mutants_of_training_are_runs() -> None:
    for mutant in (mutants.NoiseOverDrawnBatch, mutants.GhostClippingOfColumns):
        assert issubclass(mutant, DPSGD)
        assert train(mutant)(loud_user().left, 3, rng=np.random.default_rng(0)).shape == (3, 12, 3)
