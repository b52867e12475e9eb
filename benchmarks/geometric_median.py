"""Measure the running time of FastRadius as n grows, and the gain of a vectorised FastCenter.

    python -m benchmarks.geometric_median

All times are measured within this process, while other processes may run. Only the exponent and the
ratio are meaningful.
"""

from __future__ import annotations

import time
import tracemalloc

import numpy as np

from algorithms.geometric_median.center import fast_center
from algorithms.geometric_median.datasets import gaussian_cluster
from algorithms.geometric_median.radius import fast_radius
from audits.common.intervals import growth, power

SIZES = (10_000, 20_000, 30_000, 50_000, 100_000, 200_000, 300_000, 500_000, 1_000_000)
SEARCH = {"min_radius": 0.01, "max_radius": 1.0, "epsilon": 1.0, "delta": 1e-6}
CENTER = {"radius": 0.5, "epsilon": 20.0, "delta": 1e-6}
DRAWS, SINGLES = 10_000, 200


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


def main() -> None:
    """Print both tables."""
    radius_table()
    center_ratio()


if __name__ == "__main__":
    main()
