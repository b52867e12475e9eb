"""Measure FastRadius as n grows, the gain of a vectorised FastCenter, and n = 100,000 points.

    python -m benchmarks.geometric_median

All times are measured within this process, while other processes may run. Only the exponent and the
ratio are meaningful.
"""

from __future__ import annotations

import time
import tracemalloc

import numpy as np

from algorithms.geometric_median import baselines, boosting, composed
from algorithms.geometric_median.center import fast_center
from algorithms.geometric_median.datasets import gaussian_cluster
from algorithms.geometric_median.radius import fast_radius
from audits.common.intervals import growth, power

SIZES = (10_000, 20_000, 30_000, 50_000, 100_000, 200_000, 300_000, 500_000, 1_000_000)
SEARCH = {"min_radius": 0.01, "max_radius": 1.0, "epsilon": 1.0, "delta": 1e-6}
CENTER = {"radius": 0.5, "epsilon": 20.0, "delta": 1e-6}
DRAWS, SINGLES = 10_000, 200
LARGE, DIMENSION = 100_000, 50


def radius_once(data: np.ndarray) -> tuple[float, float]:
    """Return the seconds of one draw, and its output."""
    rng = np.random.default_rng(1)
    start = time.perf_counter()
    found = fast_radius(data, 1, **SEARCH, rng=rng)
    return time.perf_counter() - start, float(found[0])


def radius_table() -> None:
    print("FastRadius, one draw, d = 10, r = 0.01, R = 1, epsilon = 1, delta = 1e-6")
    print(f"{'n':>10}{'seconds':>10}{'us / point':>12}{'peak MiB':>10}{'output':>8}")
    seconds = []
    for n in SIZES:
        data = gaussian_cluster(
            n, 10, max_radius=1.0, sigma=0.05, inlier_fraction=0.9, rng=np.random.default_rng(n)
        )
        repeats = 5 if n <= 100_000 else 2
        timed, found = min(radius_once(data) for _ in range(repeats))
        tracemalloc.start()
        radius_once(data)
        peak = (tracemalloc.get_traced_memory()[1] + data.nbytes) / 2**20
        tracemalloc.stop()
        seconds.append(timed)
        print(f"{n:>10,}{timed:>10.3f}{1e6 * timed / n:>12.2f}{peak:>10.0f}{found:>8.3g}")
    print(f"{power(growth(SIZES, seconds))}; best of 5 (of 2 beyond 100,000); peak with the data")


def center_ratio() -> None:
    data = np.random.default_rng(2).normal(scale=1 / 3, size=(400, 2))
    rng = np.random.default_rng(3)
    fast_center(data, 10, **CENTER, rng=rng)
    start = time.perf_counter()
    fast_center(data, DRAWS, **CENTER, rng=rng)
    together = time.perf_counter() - start
    start = time.perf_counter()
    for _ in range(SINGLES):
        fast_center(data, 1, **CENTER, rng=rng)
    alone = (time.perf_counter() - start) * DRAWS / SINGLES
    print(f"\nFastCenter, n = 400, d = 2: {DRAWS:,} draws")
    print(f"  in one call {together:.2f} s, one by one {alone:.1f} s ({SINGLES} calls, scaled up)")
    print(f"  ratio {alone / together:.0f}")


def large_table() -> None:
    """Time one draw of each algorithm.

    At the radius 0.5, all points are close to each other. At 0.13, about half of the pairs are
    neighbours, and bounds from a center decide few pairs.
    """
    rng = np.random.default_rng(0)
    data = gaussian_cluster(
        LARGE, DIMENSION, max_radius=0.5, sigma=0.025, inlier_fraction=0.9, rng=rng
    )
    center = {"epsilon": 1.0, "delta": 1e-6}
    descent = {"center": np.zeros(DIMENSION), "radius": 1.0, "rho": 0.5, "step": 0.1}
    steps = 2**17 - 1
    finder = {"min_radius": 0.01, "max_radius": 1.0, "epsilon": 1.0}
    tasks = {
        "fast_center, radius 0.5": lambda: fast_center(data, 1, radius=0.5, **center, rng=rng),
        "fast_center, radius 0.13": lambda: fast_center(data, 1, radius=0.13, **center, rng=rng),
        "fast_radius": lambda: fast_radius(data, 1, **SEARCH, rng=rng),
        "radius_finder": lambda: baselines.radius_finder(data, 1, **finder, rng=rng),
        "private_geometric_median, 2^17 - 1 steps": lambda: composed.private_geometric_median(
            data, 1, **SEARCH, n_steps=steps, step_factor=0.1, rng=rng
        ),
        "stable_dpsgd, 2^17 - 1 steps": lambda: boosting.stable_dpsgd(
            data, 1, **descent, delta=1e-5, n_steps=steps, rng=rng
        ),
        "dpgd, 100 steps": lambda: baselines.dpgd(data, 1, **descent, n_steps=100, rng=rng),
        "dpgd, 390,625 steps": lambda: baselines.dpgd(data, 1, **descent, n_steps=390_625, rng=rng),
        "private_geometric_median, 2^30 - 1 steps": lambda: composed.private_geometric_median(
            data, 1, **SEARCH, n_steps=2**30 - 1, step_factor=0.1, rng=rng
        ),
    }
    print(f"\nOne draw at n = {LARGE:,}, d = {DIMENSION}, in seconds")
    for name, task in tasks.items():
        start = time.perf_counter()
        try:
            task()
            refused = ""
        except ValueError as refusal:
            refused = f"  {refusal}"
        print(f"  {name:<42}{time.perf_counter() - start:>8.2f}{refused}")


def main() -> None:
    """Print all tables."""
    radius_table()
    center_ratio()
    large_table()


if __name__ == "__main__":
    main()
