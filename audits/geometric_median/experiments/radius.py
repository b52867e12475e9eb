"""Figure 1 and Table 1: estimates of the radius by two methods, and their times."""

from __future__ import annotations

import math
import time

import numpy as np
import pandas as pd

from algorithms.geometric_median import _points, baselines
from algorithms.geometric_median.radius import fast_radius
from audits.geometric_median.experiments import setup
from dpaudit.mechanisms import generator


def radius_ratios(
    family: str, scale: float, n: int, d: int, *, trials: int, seed: int,
    beta: float = setup.FAILURE_PROB,
) -> pd.DataFrame:  # fmt: skip
    """Run both methods on `trials` data sets and return r_hat / r_true, one row for each run."""
    rng = generator(seed, "radius", family, f"{scale:.1f}", n, d)
    true, rows = setup.true_radius(family, scale, d), []
    for trial in range(trials):
        points = setup.cloud(family, scale, n, d, rng)
        search = {
            "min_radius": float(rng.uniform(0.005, 0.02)),
            "max_radius": setup.search_radius(family, scale, points),
            "epsilon": setup.EPSILON,
            "rng": rng,
        }
        fast = fast_radius(points, 1, **search, delta=setup.DELTA)
        finder = baselines.radius_finder(points, 1, **search, failure_prob=beta, gamma=setup.GAMMA)
        for method, found in ((setup.FAST, fast), (setup.FINDER, finder)):
            rows.append((family, scale, n, d, beta, method, trial, float(found[0]) / true))
    names = ["family", "scale", "n", "d", "beta", "method", "trial", "ratio"]
    return pd.DataFrame(rows, columns=names)


# --- Table 1: the time ---


def rows_in_python(points: np.ndarray, radius: float) -> np.ndarray:
    """Count the neighbours point by point, as a simple implementation does."""
    counts = [np.count_nonzero(np.linalg.norm(points - x, axis=1) <= radius) for x in points]
    return np.array(counts)


def once_for_each_radius(points: np.ndarray, radius: float) -> np.ndarray:
    """Count the neighbours of blocks of points, without storing the distances."""
    return _points.neighbour_counts(points, np.array([radius]))[:, 0]


PLAIN, AGAIN, ONCE = "row by row", "distances again for each radius", "distances once for all"
SAMPLES, COUNTS = "FastRadius, sampled", "FastRadius, exact counts"
WAYS = (PLAIN, AGAIN, ONCE)


def finder_queries(points: np.ndarray, radii: np.ndarray, way: str) -> None:
    """Answer RadiusFinder's queries until a query exceeds the threshold without noise."""
    if way == ONCE:
        baselines.radius_finder_queries(points, radii, setup.GAMMA)
        return
    kept = math.ceil(setup.GAMMA * len(points))
    needed = kept + 18 / setup.EPSILON * math.log(2 * len(radii) / setup.FAILURE_PROB)
    count = rows_in_python if way == PLAIN else once_for_each_radius
    for radius in radii:
        if np.sort(count(points, radius))[-kept:].mean() >= needed:
            break


def seconds(
    family: str, scale: float, n: int, d: int, *, repeats: int, seed: int
) -> list[dict[str, object]]:
    """Time each way to estimate the radius on one data set and return the least times.

    The ways are timed in turns.
    """
    rng = generator(seed, "time", family, f"{scale:.1f}", n, d)
    points = setup.cloud(family, scale, n, d, rng)
    bounds = {"min_radius": 0.01, "max_radius": setup.search_radius(family, scale, points)}
    radii = baselines.radius_finder_radii(**bounds)
    search = {**bounds, "epsilon": setup.EPSILON, "delta": setup.DELTA, "rng": rng}
    took = dict.fromkeys((SAMPLES, COUNTS, *WAYS), math.inf)
    for way in list(took) * repeats:
        began = time.perf_counter()
        if way in WAYS:
            finder_queries(points, radii, way)
        else:
            fast_radius(points, 1, route="samples" if way == SAMPLES else "counts", **search)
        took[way] = min(took[way], time.perf_counter() - began)
    where = {"family": family, "scale": scale, "n": n}
    return [{**where, "way": way, "seconds": least} for way, least in took.items()]
