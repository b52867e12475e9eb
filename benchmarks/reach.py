"""Measure how often an audit refutes a mechanism whose true epsilon is the detectable epsilon.

    python -m benchmarks.reach [--audits 400] [NAME ...]

An audit reports its detectable epsilon E. On the audited pair, the audit would refute a mechanism
that needs E or more with probability about 0.9. For each setting, 40 audits of a mechanism that
just satisfies its claim report E. With other seeds, 400 audits test the mechanism with less noise,
so that it needs exactly E at the claimed delta. The table shows the median of E and the share of
the 400 audits that refute. The share should be between 0.85 and 0.97. If no E is reported for a
setting, the table says so. For `plan` settings, the number of draws is the number that `plan`
returns for power 0.9.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import optimize

from dpaudit import ApproxDP, NeighborPair, PureDP, oracles, plan
from dpaudit.engine.driver import certificate_of, certificate_of_stored
from dpaudit.engine.families import Outcomes, family_of
from dpaudit.engine.outputs import _prepared
from dpaudit.engine.planning import needing
from dpaudit.engine.reach import detectable
from dpaudit.engine.task import Task
from dpaudit.mutants import of_noise
from dpaudit.neighbors import family

PAIR = NeighborPair(np.array([[1.0]]), np.array([[0.0]]))
CLAIMED, PLANNED = 1.0, 1.5
NAMING = 40
"""Number of audits of a mechanism that satisfies its claim. Each audit reports an epsilon."""


def laplace(data, size, *, rng, epsilon, delta, d=1):
    """Release a sum with Laplace noise. In a vector, each number has a part of the shift."""
    noise = rng.laplace(scale=1 / epsilon, size=(size, d) if d > 1 else size)
    return data.sum() / d + noise


def gaussian(data, size, *, rng, epsilon, delta, d=1, shape=None):
    """Release a sum with Gaussian noise."""
    shift = _distance(epsilon, delta)
    noise = rng.normal(size=(size, d) if d > 1 else size)
    return shift * data.sum() / math.sqrt(d) + noise


def one_number_moves(data, size, *, rng, epsilon, delta, d=20):
    """Release a histogram with Gaussian noise, in which one bin differs."""
    shift = _distance(epsilon, delta)
    outputs = rng.normal(size=(size, d))
    outputs[:, 0] += shift * data.sum()
    return outputs


def histogram(data, size, *, rng, epsilon, delta, bins=4):
    """Release a histogram with Laplace noise, in which a user moves from one bin to another."""
    outputs = rng.laplace(scale=2 / epsilon, size=(size, bins))
    outputs[:, 0] += data.sum()
    outputs[:, 1] -= data.sum()
    return outputs


def training(data, size, *, rng, epsilon, delta, steps=16):
    """Return the training score of a canary.

    The score is the sum of the canary's noisy gradients in all batches.
    """
    noise = rng.normal(size=(size, steps))
    shift = _distance(epsilon, delta) / math.sqrt(steps)
    return (shift * data.sum() + noise).sum(axis=1)


def sampled_training(data, size, *, rng, epsilon, delta, steps=16):
    """Return the score if the canary is in half of the batches.

    The distribution of the score is a mixture without a closed form.
    """
    sampled = rng.random((size, steps)) < 0.5
    return (2 * data.sum() * sampled + rng.normal(size=(size, steps))).sum(axis=1)


def coin(data, size, *, rng, epsilon, delta):
    """Answer by randomised response."""
    honest = rng.random(size) < 1 / (1 + math.exp(-epsilon))
    return np.where(honest, data.sum(), 1 - data.sum())


def geometric(data, size, *, rng, epsilon, delta):
    """Release a count with two-sided geometric noise."""
    p = 1 - math.exp(-epsilon)
    return data.sum() + rng.geometric(p, size) - rng.geometric(p, size)


def _choice(data, size, *, rng, scores, scale):
    weights = np.exp(scale * np.asarray(scores[int(data.sum())]))
    return rng.choice(len(weights), p=weights / weights.sum(), size=size)


def one_of_four(data, size, *, rng, epsilon, delta):
    """Answer by randomised response among four."""
    return _choice(data, size, rng=rng, scores=([1, 0, 0, 0], [0, 1, 0, 0]), scale=epsilon)


UTILITIES = [0.0, 1.0, 2.0, 2.0, 3.0], [1.0, 1.0, 1.0, 2.0, 2.0]


def exponential(data, size, *, rng, epsilon, delta):
    """Choose by the exponential mechanism, on utilities that rise and fall by 1."""
    return _choice(data, size, rng=rng, scores=UTILITIES, scale=_scale_of_choice(epsilon))


def _scale_of_choice(epsilon):
    def excess(scale):
        p, q = (np.exp(scale * np.array(u)) for u in UTILITIES)
        return oracles.discrete(p / p.sum(), q / q.sum()).epsilon(0.0) - epsilon

    return optimize.brentq(excess, 1e-6, 50.0)


def _distance(epsilon, delta):
    """Return the distance of the means, in standard deviations, at which delta needs epsilon."""
    known = needing(epsilon, delta)
    return known.mu


@dataclass(frozen=True)
class Setting:
    """One kind of audit.

    Parameters
    ----------
    mechanism : callable
        ``f(data, size, *, rng, epsilon, delta)``.
    draws : int
        Draws per dataset.
    delta, failure_prob : float
        Delta of the claim, and failure probability of the audit.
    sequential, is_stored, is_planned : bool
        The kind of audit.
    """

    mechanism: Callable[..., Any]
    draws: int
    delta: float = 0.0
    failure_prob: float = 0.05
    sequential: bool = False
    is_stored: bool = False
    is_planned: bool = False

    def drawing(self, epsilon: float) -> Callable[..., Any]:
        """Return the mechanism that needs epsilon at the claimed delta."""
        return partial(self.mechanism, epsilon=epsilon, delta=self.delta)

    def look(self, epsilon: float, seed: int) -> tuple[Task, Any]:
        """Audit a mechanism that needs `epsilon`."""
        claim = ApproxDP(CLAIMED, self.delta) if self.delta else PureDP(CLAIMED)
        mechanism = self.drawing(epsilon)
        if self.is_stored:
            rng = np.random.default_rng(seed)
            left, right = (mechanism(x, self.draws, rng=rng) for x in (PAIR.left, PAIR.right))
            task, sampler = _prepared(claim, self.failure_prob, seed, "a", "a", left, right)
            return task, certificate_of_stored(task, sampler, "outputs")
        task = Task(
            claim, family(PAIR), self.draws, self.failure_prob, seed, "reach",
            sequential=self.sequential,
        )  # fmt: skip
        return task, certificate_of(task, mechanism, "mechanism")

    def named(self, seed: int) -> float | None:
        """Return the detectable epsilon of an audit whose mechanism satisfies its claim."""
        task, found = self.look(CLAIMED, seed)
        if self.is_stored:
            family = Outcomes.of(found)
        else:
            mechanism = self.drawing(CLAIMED)
            made = of_noise(mechanism, [PAIR.left, PAIR.right], seed=seed)
            family = family_of(task, mechanism, found, made)
        return None if family is None else detectable(task, found, family)


def refuted(setting: Setting, named: Sequence[float], seed: int) -> bool:
    """Return whether an audit refutes a mechanism that needs one of the reported epsilons."""
    return setting.look(named[seed % len(named)], seed + 1_000_000)[1].refuted


SETTINGS = {
    "randomised response": Setting(coin, 2000),
    "randomised response, 1e-6": Setting(coin, 10_000, failure_prob=1e-6),
    "Laplace, 200 draws": Setting(laplace, 200),
    "Laplace, 1,000 draws": Setting(laplace, 1000),
    "Laplace, 4,000 draws": Setting(laplace, 4000),
    "Laplace, 20,000 draws, 1e-6": Setting(laplace, 20_000, failure_prob=1e-6),
    "Gaussian, delta = 0.01": Setting(gaussian, 4000, 0.01),
    "Gaussian, delta = 1e-5": Setting(gaussian, 4000, 1e-5),
    "Gaussian, delta = 1e-5, 1e-6": Setting(gaussian, 20_000, 1e-5, 1e-6),
    "sequential, randomised response": Setting(coin, 2000, sequential=True),
    "sequential, Laplace": Setting(laplace, 2000, sequential=True),
    "sequential, Gaussian, delta = 1e-5": Setting(gaussian, 4000, 1e-5, sequential=True),
    "vectors of 10, Gaussian, delta = 1e-5": Setting(partial(gaussian, d=10), 4000, 1e-5),
    "vectors of 20, one number moves": Setting(one_number_moves, 4000, 1e-5),
    "vectors of 2, Laplace": Setting(partial(laplace, d=2), 4000),
    "vectors of 3, Laplace": Setting(partial(laplace, d=3), 4000),
    "vectors of 10, Laplace": Setting(partial(laplace, d=10), 20_000),
    "histogram of 2 bins, Laplace": Setting(partial(histogram, bins=2), 4000),
    "histogram of 4 bins, Laplace": Setting(histogram, 4000),
    "histogram of 4 bins, Laplace, 1e-6": Setting(histogram, 20_000, failure_prob=1e-6),
    "sequential, vectors of 3, Laplace": Setting(partial(laplace, d=3), 4000, sequential=True),
    "sequential, histogram of 4 bins, Laplace": Setting(histogram, 4000, sequential=True),
    "outcomes, geometric noise": Setting(geometric, 4000),
    "outcomes, one of four": Setting(one_of_four, 4000),
    "outcomes, exponential mechanism": Setting(exponential, 4000),
    "outcomes, stored": Setting(coin, 2000, is_stored=True),
    "training scores, all batches": Setting(training, 300, 1e-5),
    "training scores, sampled batches": Setting(sampled_training, 300, 1e-5),
    "plan, guesses by rank": Setting(laplace, 0, is_planned=True),
    "plan, guesses in two tails": Setting(laplace, 0, failure_prob=1e-6, is_planned=True),
    "plan, Gaussian, delta = 1e-5": Setting(gaussian, 0, 1e-5, is_planned=True),
}


def sized(setting: Setting) -> Setting:
    """Return the setting with the planned number of draws, if it uses a plan."""
    if not setting.is_planned:
        return setting
    claim = ApproxDP(CLAIMED, setting.delta)
    found = plan(claim, PLANNED, failure_prob=setting.failure_prob)
    return replace(setting, draws=found.draws)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--audits", type=int, default=400)
    args = parser.parse_args()
    unknown = set(args.names) - set(SETTINGS)
    if unknown:
        sys.exit(f"NAME must be a setting, got {sorted(unknown)[0]!r}. Use: {', '.join(SETTINGS)}")
    print("| setting | failure_prob | draws | detectable | refuted |\n|---|---|---|---|---|")
    with ProcessPoolExecutor() as executor:
        for name in args.names or SETTINGS:
            setting = sized(SETTINGS[name])
            named: list[float | None] = [PLANNED]
            if not setting.is_planned:
                named = list(executor.map(setting.named, range(NAMING)))
            known = [seen for seen in named if seen is not None and seen < math.inf]
            seen, share = "none reported", ""
            if known:
                look = partial(refuted, setting, known)
                fell = list(executor.map(look, range(args.audits), chunksize=10))
                seen, share = f"{np.median(known):.3f}", f"{np.mean(fell):.1%}"
            row = name, f"{setting.failure_prob:g}", f"{setting.draws:,}", seen, share
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
