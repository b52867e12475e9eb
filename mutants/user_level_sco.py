"""Mutants of `algorithms.user_level_sco` with mistakes that concern more than noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.user_level_sco import baselines, coordinatewise, euclidean
from algorithms.user_level_sco.plans import Plan
from algorithms.user_level_sco.private_means import (
    ClippedMean,
    ConcentratedMean,
    PrivateMean,
    Selection,
    WinsorizedMean,
)

Floats = NDArray[np.float64]


def without_filter(
    data: ArrayLike, size: int, *, mechanism: Any = euclidean.user_level_sco, plan: Plan,
    **options: Any,
) -> Floats:  # fmt: skip
    """Average all gradients of a batch, with noise for gradients that are close to one another.

    **Mistake** The filter never removes any user, because the comparison kappa + nu <= F uses F =
    0.

    **Breaks at** linear losses, with one user at G or at -G and all other users at 0. The average
    moves by eta 2 G / B in every iterate. The result is a Gaussian with shift 2 eta G / B over
    sigma_1.
    """
    rule = replace(plan.rule, threshold=1e-300, scale=1e-300)
    return mechanism(data, size, plan=replace(plan, rule=rule), **options)


def without_test(
    data: ArrayLike, size: int, *, mechanism: Any = coordinatewise.user_level_sco_linf,
    plan: Plan, **options: Any,
) -> Floats:  # fmt: skip
    """Return the average iterate, whatever the result of the concentration test is.

    **Mistake** The threshold v is so low that all tests are passed.

    **Breaks at** linear losses, with half of a batch at each of two points far apart, and one user
    who decides the majority. The median moves from one point to the other.
    """
    rule = replace(plan.rule, threshold=1e-300, epsilon=1e300)
    return mechanism(data, size, plan=replace(plan, rule=rule), **options)


def dp_sgd_items(data: ArrayLike, size: int, **options: Any) -> Floats:
    """Clip items instead of users' means, and forget that a user has m items.

    **Mistake** The noise is for one item, whose share of a user's mean is clip_norm / m.

    **Breaks at** one user at clip_norm or at -clip_norm, and all other users at 0. The shift of
    this pair is m times too large.
    """
    m = np.asarray(data).shape[1]
    return baselines.user_level_dp_sgd(data, size, noise_multiplier=1 / m, **options)


@dataclass(frozen=True)
class _Replaced:
    """A rule with the account of one rule and the means of another."""

    account: PrivateMean
    used: PrivateMean

    def selection(self, dimension: int) -> Selection:
        return self.account.selection(dimension)

    def sensitivity(self, batch_size: int, dimension: int) -> float:
        return self.account.sensitivity(batch_size, dimension)

    def means(self, gradients: Floats, size: int, *, rng: np.random.Generator) -> Floats:
        return self.used.means(gradients, size, rng=rng)


def exact_median(data: ArrayLike, size: int, *, mean: WinsorizedMean, **options: Any) -> Floats:
    """Choose the intervals of a winsorized mean without privacy.

    **Mistake** The choice is the best interval, as with epsilon0 = infinity.

    **Breaks at** half of the users at one point, half of them at another, and one user who decides
    which of them is the median. All clipped values move from one point to the other.
    """
    exact = _Replaced(mean, replace(mean, epsilon0=1e9))
    return baselines.user_level_dp_sgd(data, size, mean=exact, **options)


def without_weights(
    data: ArrayLike, size: int, *, mean: ConcentratedMean, **options: Any
) -> Floats:
    """Average all gradients, with noise for gradients that are concentrated.

    **Mistake** Neither the test nor the weights of the concentrated mean exist.

    **Breaks at** one user at G or at -G, and all other users at 0. The mean moves by 2 G / B.
    """
    plain = _Replaced(mean, ClippedMean(1e300))
    return baselines.user_level_dp_sgd(data, size, mean=plain, **options)


def output_perturbation_of_one_item(data: ArrayLike, size: int, **options: Any) -> Floats:
    """Use the sensitivity of one item as the sensitivity of a user.

    **Mistake** There is no group privacy, so the noise is m times too small.

    **Breaks at** a user whose items pull by G in one direction or the other. The scaled shift is 2
    m step G divided by the noise.
    """
    m = np.asarray(data).shape[1]
    return baselines.output_perturbation(data, size, noise_multiplier=1 / m, **options)
