"""Distributions that a mechanism would have on a pair if it had less noise.

The distributions are known in closed form if the mechanism adds Laplace or Gaussian noise, which
dpaudit detects by running it. If the mechanism has only a few outcomes, its observed frequencies
are sharpened. To sharpen the frequencies, the log-likelihood ratio of each outcome is multiplied by
a factor, and the geometric mean over both datasets is kept. Sharpening is exact for randomised
response. For all other mechanisms, the distributions are unknown, and no number is reported.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.engine.certificate import Certificate, parts_of
from dpaudit.engine.chances import USUAL_POWER, Chances, smallest
from dpaudit.engine.mutation import patience
from dpaudit.engine.task import EXPLORE_SHARE, Task
from dpaudit.events import LEARN_SHARE, OutcomeScore
from dpaudit.mutants import LAPLACE, AddedNoise, NoiseMutants, added_noise
from dpaudit.stats import oracles
from dpaudit.stats.oracles import Oracle

Floats = NDArray[np.float64]

_LEAST_SEEN = 30  # Least number of draws in a group of outcomes.
_BY_CHANCE = 1e-3  # Largest p-value at which the outcomes of the two sides count as different.
_BEYOND_LUCK = 2.0  # A larger difference of ratio sizes, in standard deviations, counts as real.
_MOST_NUMBERS = 20  # Numbers per output up to which the learning of directions was measured.
_MOST_SUMS = 200  # Largest number of sums of shifts for Laplace noise; more are slow.
_EDGES = 1e-6, 1e6  # Smallest and largest strength that is searched.


@dataclass(frozen=True)
class Family:
    """The distributions of one mechanism on one pair, indexed by a strength.

    Parameters
    ----------
    strength : float or None
        Strength of the mechanism itself, if it is known.
    """

    strength: float | None

    is_number = False
    """Whether an output is one number, with a monotone likelihood ratio."""

    is_even = False
    """Whether all numbers of an output shift by the same amount."""

    def at(self, strength: float) -> Oracle:
        """Return the distribution on both sides at a strength."""
        raise NotImplementedError

    def learnt(self, strength: float, draws: int) -> Oracle:
        """Return the distribution of a score that is learnt from `draws` draws per side."""
        return self.at(strength)

    def epsilon(self, strength: float, delta: float) -> float:
        """Return the epsilon that is needed at `delta`."""
        return self.at(strength).epsilon(delta)

    def strength_at(self, epsilon: float, delta: float) -> float | None:
        """Return the strength that needs exactly `epsilon` at `delta`, or None."""

        def excess(log_strength: float) -> float:
            needed = min(self.epsilon(math.exp(log_strength), delta), 1e3)
            return needed - epsilon

        low = high = 0.0
        while excess(low) > 0:
            low -= 1.0
            if math.exp(low) < _EDGES[0]:
                return None
        while excess(high) < 0:
            high += 1.0
            if math.exp(high) > _EDGES[1]:
                return None
        return math.exp(float(scipy.optimize.brentq(excess, low, high, xtol=1e-6)))

    def draws_for(self, strength: float, task: Task, found: Certificate) -> int | None:
        """Return how many draws per dataset refute a strength with power 0.9, or None."""

        def enough(draws: int) -> bool:
            return self.chances(strength, task, found, draws).best(draws).power >= USUAL_POWER

        return smallest(enough, least=task.draws)

    def chances(self, strength: float, task: Task, found: Certificate, draws: int) -> Chances:
        """Return the chances against the claim at a strength, for the instrument of the audit."""
        learnt = int(draws * EXPLORE_SHARE * LEARN_SHARE)
        return Chances.of(
            self.learnt(strength, learnt),
            found.point,
            task.failure_prob,
            is_number=self.is_number and task.is_small,
            is_even=self.is_even,
            is_sequential=found.sequential is not None,
        )


@dataclass(frozen=True)
class Added(Family):
    """Family of a mechanism that adds Laplace or Gaussian noise to each number.

    Parameters
    ----------
    shifts : ndarray, shape (d,)
        Absolute shifts of the numbers in a common unit. The strength multiplies the shifts.
    kind : str
        Kind of the noise.
    is_even : bool
        Whether all numbers shift by the same amount in the same direction.
    """

    shifts: Floats
    kind: str
    is_even: bool = False

    @classmethod
    def of(cls, noise: AddedNoise) -> Added:
        """Return the family of a mechanism whose added noise was detected."""
        shifts = np.abs(noise.shifts)
        largest = float(shifts.max())  # finite and positive, as added_noise ensures
        relative = shifts / largest  # squares of the shifts themselves may be zero or infinite
        size = float(np.linalg.norm(relative))
        strength = None if noise.scale is None else size * (largest / noise.scale)
        is_even = bool(np.allclose(noise.shifts, noise.shifts[0], rtol=1e-6, atol=0.0))
        return cls(strength, relative / size, noise.kind, is_even)

    @property
    def is_number(self) -> bool:  # type: ignore[override]
        """Whether an output is one number."""
        return len(self.shifts) == 1

    def at(self, strength: float) -> Oracle:
        """Return the distribution at a Euclidean distance in noise scales."""
        moved = self.shifts[self.shifts > 0] * strength
        if self.kind != LAPLACE:
            return oracles.gaussian(strength, 1.0)
        if len(moved) == 1:
            return oracles.laplace(float(moved[0]), 1.0)
        return oracles.laplace_vector(moved, 1.0)

    def epsilon(self, strength: float, delta: float) -> float:
        """Return the epsilon that is needed at `delta`."""
        if self.kind == LAPLACE and delta == 0:
            return float(self.shifts.sum()) * strength
        return super().epsilon(strength, delta)

    def learnt(self, strength: float, draws: int) -> Oracle:
        """Return the distribution along a learnt direction, which is slightly inaccurate."""
        moved = int((self.shifts > 0).sum())
        # The learner drops two out of three numbers that do not change.
        numbers = moved + (len(self.shifts) - moved) / 3
        if len(self.shifts) == 1:
            return self.at(strength)
        lost = 4 * numbers / (max(draws, 1) * strength**2)
        return self.at(strength / math.sqrt(1 + lost))


@dataclass(frozen=True)
class Outcomes(Family):
    """Family of a mechanism with a few outcomes, whose observed frequencies are sharpened.

    Parameters
    ----------
    middle, ratios : ndarray, shape (outcomes,)
        Logarithms of the geometric means over both sides, and log-likelihood ratios at strength 1.
    """

    middle: Floats
    ratios: Floats

    @classmethod
    def of(cls, found: Certificate) -> Outcomes | None:
        """Return the family of the observed outcomes, or None if both sides may be equal."""
        seen = found.histogram
        if found.event is None:
            return None
        event = parts_of(found.event)[0]
        # A picture of outputs with several columns shows only a part of each output, unless it
        # shows whole outcomes.
        if len(event.encoder.columns) > 1 and not isinstance(event.score, OutcomeScore):
            return None
        if seen.edges is not None or len(seen.bins) < 2:
            return None
        counts = np.array([seen.left, seen.right], dtype=float)
        counts = counts[:, counts.sum(axis=0) > 0]
        grouped = _grouped(counts)
        if grouped.shape[1] < 2:
            return None
        if scipy.stats.chi2_contingency(grouped, correction=False).pvalue > _BY_CHANCE:
            return None
        left, right = _by_ratio(grouped + 0.5)
        return cls(1.0, np.log(left * right) / 2, np.log(left / right))

    def at(self, strength: float) -> Oracle:
        """Return the outcomes with multiplied log-likelihood ratios."""
        sides = []
        for half in (strength / 2, -strength / 2):
            logs = self.middle + half * self.ratios
            weights = np.exp(logs - logs.max())
            sides.append(weights / weights.sum())
        return oracles.discrete(*sides)


def _grouped(counts: Floats) -> Floats:
    """Join outcomes with similar ratios until each group has enough draws, shape (2, groups)."""
    order = np.argsort(np.log((counts[0] + 0.5) / (counts[1] + 0.5)), kind="stable")
    groups: list[Floats] = []
    open_group = np.zeros(2)
    for column in counts[:, order].T:
        open_group = open_group + column
        if open_group.sum() >= _LEAST_SEEN:
            groups.append(open_group)
            open_group = np.zeros(2)
    if groups:
        groups[-1] = groups[-1] + open_group
    return np.array(groups).reshape(-1, 2).T


def _by_ratio(counts: Floats) -> tuple[Floats, Floats]:
    """Return the frequencies of each likelihood ratio.

    Outcomes with the same likelihood ratio are equivalent. The largest observed ratio is partly due
    to chance. Therefore ratios of similar size are joined, beginning with the most similar ratios,
    until all ratios differ by more than chance. If the two sides differ from mirror images only by
    chance, they are treated as mirror images.

    Parameters
    ----------
    counts : ndarray, shape (2, outcomes)
        Positive numbers.
    """
    frequencies = counts / counts.sum(axis=1, keepdims=True)
    ratios, weights = np.log(frequencies[0] / frequencies[1]), 1 / (1 / counts).sum(axis=0)
    groups = [[at] for at in np.argsort(np.abs(ratios), kind="stable").tolist()]
    while len(groups) > 1:
        total = np.array([weights[group].sum() for group in groups])
        sizes = np.array([(np.abs(ratios) * weights)[group].sum() for group in groups]) / total
        gaps = np.diff(sizes) / np.sqrt(1 / total[1:] + 1 / total[:-1])
        at = int(gaps.argmin())
        if gaps[at] > _BEYOND_LUCK:
            break
        groups[at : at + 2] = [groups[at] + groups[at + 1]]
    # Shape (2, groups, 2). The axes are the side, the size of the ratio, and whether left or right
    # is likelier.
    joined = np.zeros((2, len(groups), 2))
    for place, group in enumerate(groups):
        for at in group:
            joined[:, place, int(ratios[at] < 0)] += counts[:, at]
    totals = joined.sum(axis=(1, 2), keepdims=True)
    mirrored = joined[::-1, :, ::-1]
    shares, mirror_shares = joined / totals, mirrored / totals[::-1]
    spread = np.sqrt(
        shares * (1 - shares) / totals + mirror_shares * (1 - mirror_shares) / totals[::-1]
    )
    if np.all(np.abs(shares - mirror_shares) <= _BEYOND_LUCK * spread):
        shares = (joined + mirrored) / (totals + totals[::-1])
    left, right = shares.reshape(2, -1)
    seen = left + right > 0
    return left[seen], right[seen]


def family_of(
    task: Task, mechanism: Any, found: Certificate, made: NoiseMutants | None
) -> Family | None:
    """Return the family of a mechanism on its certificate's pair, or None if it is unknown.

    Parameters
    ----------
    task : Task
        The task of the audit.
    mechanism : callable
        The audited mechanism.
    found : Certificate
        The certificate of the mechanism.
    made : NoiseMutants or None
        The mutants of the mechanism, with the recording of its noise.
    """
    if found.epsilon.counts is None or found.constant:
        return None
    if made is not None and made.recording is not None and not task.watch.is_spent():
        pair = found.pair
        with task.watch.calls_within(patience(found)):  # some mechanisms without noise never end
            added = added_noise(
                mechanism, (pair.left, pair.right), made.recording, seed=task.seed, watch=task.watch
            )
        if added is not None:
            return _usable(Added.of(added))
    return Outcomes.of(found)


def _usable(family: Added) -> Added | None:
    """Return a family, or None if it is slow to compute or was never measured."""
    numbers = len(family.shifts)
    if not family.shifts.size or not np.isfinite(family.shifts).all() or numbers > _MOST_NUMBERS:
        return None
    if family.kind == LAPLACE:
        sums = {0.0}
        for shift in family.shifts[family.shifts > 0].tolist():
            sums |= {round(known + shift, 9) for known in sums}
            if len(sums) > _MOST_SUMS:
                return None
        return family
    # The quality of a learnt direction depends on the scale of the noise, which is unknown here.
    return None if numbers > 1 and family.strength is None else family
