"""Measure the gain of a vectorised private oracle, and the time of exact tree parameters.

    python -m benchmarks.zeroth_order

The first part compares 10,000 draws of all noisy gradients of an epoch (d = 10, T = 32) in one call
with single draws. The first part also times the directions alone, which every implementation needs.
The directions belong to T + B_1 - 1 items, with d directions of d normal variates each. The second
part computes the exact Gaussian DP parameter of the tree for n = 1 to 256 and every position. The
second part computes the parameter by the path of nodes and by linear algebra. All times are
measured within this process, and only the ratios are meaningful.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from algorithms.common.tree import node, tree_gdp
from algorithms.zeroth_order import oracles
from algorithms.zeroth_order.losses import Linear, PhaseRetrieval
from algorithms.zeroth_order.plans import VarianceReduced

DRAWS, SINGLES, DIMENSION, ROUNDS = 10_000, 300, 10, 32


def seconds(call: Callable[[], Any]) -> float:
    """Return the time of the faster of two runs."""
    found = []
    for _ in range(2):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def by_linear_algebra(n: int) -> float:
    """Return mu for equal sensitivities and noises, from the covariance of all n sums."""
    noises = np.zeros((n, n))
    for t in range(1, n + 1):
        noises[t - 1, [last - 1 for _, last in node(t)]] = 1
    shift = np.linalg.solve(noises, np.tril(np.ones((n, n))))
    return float(np.sqrt((shift**2).sum(axis=0).max()))


def main() -> None:
    """Print one line for each loss and size of the first batch, and one line for the trees."""
    rng = np.random.default_rng(0)
    points = 0.01 * rng.normal(size=(ROUNDS, DIMENSION))
    words = f"{'loss':<32}{'B_1':>5}{'one call, s':>13}{'one by one, s':>15}{'ratio':>7}"
    print(words + f"{'directions alone, s':>21}")
    for loss in (Linear(), PhaseRetrieval()):
        for first in (ROUNDS // 2, ROUNDS + 1):
            n = first + ROUNDS - 1
            options = {
                "loss": loss, "oracle": VarianceReduced(first, 1, 0.5), "radius": 1.0,
                "points": points, "rng": rng,
            }  # fmt: skip
            data = rng.normal(size=(n, DIMENSION + (not isinstance(loss, Linear))))

            def draw(size: int, data: Any = data, options: Any = options) -> None:
                oracles.oracle_gradients(data, size, **options)

            together = seconds(lambda draw=draw: draw(DRAWS))
            alone = seconds(lambda draw=draw: [draw(1) for _ in range(SINGLES)])
            alone *= DRAWS / SINGLES
            block = np.empty(2**16)
            times = DRAWS * n * DIMENSION**2 // len(block)
            bare = seconds(
                lambda times=times, block=block: [
                    rng.standard_normal(out=block) for _ in range(times)
                ]
            )
            print(
                f"{loss!s:<32}{first:>5}{together:>13.2f}{alone:>15.1f}{alone / together:>7.0f}"
                f"{bare:>21.2f}"
            )
    sizes = range(1, 257)
    path = seconds(lambda: [tree_gdp(np.ones(n), 1.0) for n in sizes])
    algebra = seconds(lambda: [by_linear_algebra(n) for n in sizes])
    print(f"exact trees, n = 1 to 256: {path:.3f} s by paths, {algebra:.2f} s by linear algebra")


if __name__ == "__main__":
    main()
