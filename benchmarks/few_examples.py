"""Measure the time that counting users by kinds saves, and the exact privacy of DelStab.

    python -m benchmarks.few_examples

The benchmark computes the exact (epsilon, delta) of DelStab, and how much of epsilon DelStab uses.
The maximum is over all pairs of users with one bit each. The two instances are the smallest
instance (21 users, one of whom is kept) and n = 256. The benchmark compares counting users by kinds
with enumerating all sets of 22 users. The benchmark also compares 10,000 draws in one call with
single draws. All times are measured within this process, and only the ratios are meaningful.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.few_examples import learning
from algorithms.few_examples.deletion import delstab, delstab_pmf
from algorithms.few_examples.items import FunctionAlgorithm, noisy_majority
from algorithms.few_examples.representations import Representation, thresholds
from dpaudit.stats import hockey_stick, hockey_stick_inverse

DRAWS, SINGLES = 10_000, 100


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a call, and its seconds."""
    start = time.perf_counter()
    found = call()
    return found, time.perf_counter() - start


def users(ones: int, n: int) -> NDArray[np.int64]:
    """Return users with one bit each."""
    return (np.arange(n) < ones).astype(np.int64)[:, None]


def exact(n: int, epsilon: float, delta: float, item_epsilon: float) -> tuple[float, float]:
    """Return epsilon at delta and delta at epsilon, maximised over all neighbouring pairs."""
    pmfs = [
        delstab_pmf(users(k, n), algorithm=noisy_majority(item_epsilon), epsilon=epsilon,
                    delta=delta)
        for k in range(n + 1)
    ]  # fmt: skip
    pairs = [(p, q) for a, b in itertools.pairwise(pmfs) for p, q in ((a, b), (b, a))]
    return (
        max(hockey_stick_inverse(p, q, delta) for p, q in pairs),
        max(hockey_stick(p, q, epsilon) for p, q in pairs),
    )


def main() -> None:
    """Print one line for each measurement."""
    for n, epsilon, delta, item_epsilon in [(21, 9.0, 0.4, 200.0), (256, 1.0, 1e-6, 0.05)]:
        (used, left), seconds = timed(lambda given=(n, epsilon, delta, item_epsilon): exact(*given))
        words = f"n = {n}, ({epsilon:g}, {delta:g})-DP: epsilon = {used:.4f} exactly at delta, "
        print(words + f"delta = {left:.2g} at epsilon; {n} pairs, {seconds:.1f} s")
    learner = noisy_majority(4.0)
    every = FunctionAlgorithm(learner.pmf, 2, 2)
    small = {"epsilon": 9.0, "delta": 0.4}
    _, counted = timed(lambda: delstab_pmf(users(4, 22), algorithm=learner, **small))
    _, enumerated = timed(lambda: delstab_pmf(users(4, 22), algorithm=every, **small))
    print(f"22 users: counted {counted * 1e3:.1f} ms, all sets of users {enumerated / counted:.0f} "
          "times that")  # fmt: skip
    rng = np.random.default_rng(0)
    labelled = np.stack([rng.integers(0, 64, (200, 8)), rng.integers(0, 2, (200, 8))], axis=-1)
    for name, draw in {
        "DelStab, n = 80": lambda size: delstab(
            users(9, 80), size, algorithm=learner, epsilon=1.5, delta=0.01, rng=rng
        ),
        "PAC learner, 64 points": lambda size: learning.pac_learner(
            labelled, size, representation=Representation((thresholds(64),)), epsilon=1.0, rng=rng
        ),
    }.items():
        _, together = timed(lambda draw=draw: draw(DRAWS))
        _, alone = timed(lambda draw=draw: [draw(1) for _ in range(SINGLES)])
        alone *= DRAWS / SINGLES
        print(f"{name}: {DRAWS:,} draws in one call {together:.3f} s, one by one "
              f"{alone / together:.0f} times that")  # fmt: skip


if __name__ == "__main__":
    main()
