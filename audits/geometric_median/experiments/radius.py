"""Figure 1 and Table 1: the radius, estimated by two methods, and their times."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from statsmodels.api import OLS, add_constant

from algorithms.geometric_median import _points, baselines
from algorithms.geometric_median.radius import fast_radius
from audits.geometric_median.experiments.setup import (
    DELTA,
    EPSILON,
    FAILURE_PROB,
    FAST,
    FINDER,
    GAMMA,
    cloud,
    search_radius,
    true_radii,
)
from dpaudit.mechanisms import generator


@dataclass(frozen=True, eq=False)
class Ratios:
    """Estimated over true radii, one for each trial."""

    family: str
    scale: float
    n: int
    d: int
    method: str
    values: np.ndarray

    @property
    def mean(self) -> float:
        """Their average."""
        return float(self.values.mean())

    @property
    def std(self) -> float:
        """Their standard deviation."""
        return float(self.values.std())


def radius_ratios(
    family: str, scale: float, n: int, d: int, *, trials: int, seed: int,
    failure_prob: float = FAILURE_PROB,
) -> list[Ratios]:  # fmt: skip
    """Run both methods on `trials` data sets; return r_hat / r_true of each."""
    rng = generator(seed, "radius", family, str(scale), n, d)
    found: dict[str, list[float]] = {FAST: [], FINDER: []}
    for _ in range(trials):
        points = cloud(family, scale, n, d, rng)
        bounds = {
            "min_radius": float(rng.uniform(0.005, 0.02)),
            "max_radius": search_radius(family, scale, points),
        }
        fast = fast_radius(points, 1, **bounds, epsilon=EPSILON, delta=DELTA, rng=rng)
        found[FAST].append(float(fast[0]))
        finder = baselines.radius_finder(
            points, 1, **bounds, epsilon=EPSILON, failure_prob=failure_prob, gamma=GAMMA, rng=rng
        )
        found[FINDER].append(float(finder[0]))
    true = true_radii(family, scale, d)["taken"]
    return [Ratios(family, scale, n, d, m, np.array(values) / true) for m, values in found.items()]


# --- Table 1: the time ---


def rows_in_python(points: np.ndarray, radius: float) -> np.ndarray:
    """Count the neighbours of one point after the other, as a plain implementation would."""
    counts = [np.count_nonzero(np.linalg.norm(points - x, axis=1) <= radius) for x in points]
    return np.array(counts)


def once_for_each_radius(points: np.ndarray, radius: float) -> np.ndarray:
    """Count the neighbours of blocks of points; the distances are not kept."""
    return _points.neighbour_counts(points, np.array([radius]))[:, 0]


ONCE, AGAIN, PLAIN = "distances once for all radii", "distances again for each", "row by row"
SAMPLES, COUNTS = "FastRadius, sampled", "FastRadius, exact counts"
WAYS = (PLAIN, AGAIN, ONCE)


def finder_seconds(points: np.ndarray, radii: np.ndarray, way: str) -> float:
    """Time RadiusFinder's queries, up to the first that passes its threshold without noise."""
    kept = math.ceil(GAMMA * len(points))
    needed = kept + 18 / EPSILON * math.log(2 * len(radii) / FAILURE_PROB)
    began = time.perf_counter()
    if way == ONCE:
        baselines.radius_finder_queries(points, radii, GAMMA)
        return time.perf_counter() - began
    count = rows_in_python if way == PLAIN else once_for_each_radius
    for radius in radii:
        if np.sort(count(points, radius))[-kept:].mean() >= needed:
            break
    return time.perf_counter() - began


def seconds(family: str, scale: float, n: int, d: int, *, repeats: int, seed: int) -> dict:
    """Return the least seconds of each way to estimate the radius, in turns, on one data set."""
    rng = generator(seed, "time", family, str(scale), n, d)
    points = cloud(family, scale, n, d, rng)
    smallest, largest = 0.01, search_radius(family, scale, points)
    radii = baselines.radius_finder_radii(smallest, largest)
    search = {"min_radius": smallest, "max_radius": largest, "epsilon": EPSILON, "delta": DELTA}
    took: dict[str, list[float]] = {way: [] for way in (SAMPLES, COUNTS, *WAYS)}
    for _ in range(repeats):
        for name, route in ((SAMPLES, "samples"), (COUNTS, "counts")):
            began = time.perf_counter()
            fast_radius(points, 1, **search, route=route, rng=rng)
            took[name].append(time.perf_counter() - began)
        for way in WAYS:
            took[way].append(finder_seconds(points, radii, way))
    return {way: min(values) for way, values in took.items()}


class Growth(NamedTuple):
    """The exponent of a power of n, and its 95% confidence interval."""

    exponent: float
    low: float
    high: float

    def __str__(self) -> str:
        sure = "" if math.isinf(self.low) else f" ({self.low:.2f} to {self.high:.2f})"
        return f"n^{self.exponent:.2f}{sure}"


def growth(sizes: Sequence[float], times: Sequence[float]) -> Growth:
    """Fit log time over log size by least squares.

    Examples
    --------
    >>> found = growth([1, 10, 100, 1000], [3, 290, 31_000, 3_000_000])
    >>> round(found.exponent, 2), found.low < 2 < found.high
    (2.0, True)
    """
    fit = OLS(np.log(times), add_constant(np.log(sizes))).fit()
    if len(sizes) < 3:  # two points say nothing of their error
        return Growth(float(fit.params[1]), -math.inf, math.inf)
    return Growth(float(fit.params[1]), *map(float, fit.conf_int(0.05)[1]))
