"""The engine's own share of the time, and its memory.

    python -m benchmarks.speed

Everything but calling the mechanism; ratios are taken within this process.
"""

from __future__ import annotations

import tracemalloc

from dpaudit import ApproxDP, PureDP, audit, within_sensitivity
from dpaudit import neighbors as nb


def gaussian(data, size, *, rng):
    """Add Gaussian noise of scale 3.73 to every coordinate."""
    return data + 3.73 * rng.standard_normal((size, data.size))


def laplace(data, size, *, rng):
    """Add Laplace noise to one number."""
    return data + rng.laplace(size=(size, data.size))


def main():
    """Print the table."""
    one = nb.value_pattern("one_above", 1)
    relation = within_sensitivity(1.0, norm="l2")
    ten = nb.value_pattern("all_above", 10, relation=relation)
    audit(
        gaussian, ApproxDP(1.0, 1e-5), ten, draws=1000, seed=0, mutants=None
    )  # imports and caches
    cases = [
        ("scalar Laplace", laplace, PureDP(1.0), one, 100_000),
        ("scalar Laplace", laplace, PureDP(1.0), one, 1_000_000),
        ("scalar Laplace", laplace, PureDP(1.0), one, 10_000_000),
        ("10-dimensional Gaussian", gaussian, ApproxDP(1.0, 1e-5), ten, 100_000),
        ("10-dimensional Gaussian", gaussian, ApproxDP(1.0, 1e-5), ten, 1_000_000),
    ]
    print(f"{'mechanism':<26}{'draws per dataset':>14}{'engine s':>10}{'ratio':>8}{'peak MiB':>10}")
    for name, mechanism, claim, pair, draws in cases:
        result = audit(mechanism, claim, pair, draws=draws, seed=1, mutants=None)
        engine = result.seconds - result.mechanism_seconds
        tracemalloc.start()
        audit(mechanism, claim, pair, draws=draws, seed=1, mutants=None)
        peak = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        ratio = engine / max(result.mechanism_seconds, 1e-9)
        print(f"{name:<26}{draws:>14,}{engine:>10.2f}{ratio:>8.1f}{peak:>10.0f}")


if __name__ == "__main__":
    main()
