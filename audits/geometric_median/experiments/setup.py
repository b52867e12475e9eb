"""The protocol of geometric_median, Section 5, the open choices of the protocol, and run sizes."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

from algorithms.geometric_median import datasets
from algorithms.geometric_median.reference import geometric_median, objective
from dpaudit.mechanisms import generator

CLUSTER, HEAVY = "GaussianCluster", "HeavyTailed"
FAST, FINDER = "FastRadius", "RadiusFinder"
DPGD, STABLE, FIXED = "DPGD", "StableDPSGD", "FixedOrderDPSGD"

# --- the protocol of the paper, and the open choices ---

SIGMA, GAMMA, EPSILON, DELTA, RHO = 0.1, 0.75, 1.0, 1e-5, 0.5
INLIERS, FAILURE_PROB, BETAS = 0.9, 0.05, (0.001, 0.5, 0.999)
FIGURE_1 = {CLUSTER: (0.5, 1.0, 2.0, 4.0, 8.0, 10.0), HEAVY: tuple(range(2, 21, 2))}  # R, nu
SCALES = {CLUSTER: (25.0, 50.0, 100.0), HEAVY: (2.5, 5.0, 10.0)}  # Figures 4 and 5
MIDDLE = {CLUSTER: 50.0, HEAVY: 5.0}  # Figures 2 and 3
NAME = {CLUSTER: "R", HEAVY: "nu"}  # name of the scale
DIMENSION = 50  # Section 5.2
BOUNDS = (1.2, 3.0)  # the range of r_hat / r_true, "roughly"

ROUGHLY = 1.25  # largest factor that "roughly" and "similar" allow
SIGNIFICANT = 2.0  # factor in error that is "a significant margin"
MULTIPLIERS = (0.25, 1.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # on the minimiser of the error bound
TUNED, OF_BOUND = "tuned", "1"

OF_DPGD = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75)  # the paper's multipliers of DPGD's step size
BEST, HSU24 = "r_hat / sqrt(T)", "2 r_hat sqrt(d / (6 rho n^2))"  # what they multiply
ABLATION_STEPS = (4, 16, 64)  # T in the ablation of DPGD's step size
FEW = ABLATION_STEPS[0]

RULES = (  # parameter, the paper's value, the value used, and other values that are tried
    ("trials", "100; 20 for Figures 2 to 5",
     "--full: 100; --quick: 60. For Figures 2 to 5: 40 at n <= 1000, but 200 for HeavyTailed at "
     "n = 1000, because 20 trials leave Figure 5 undecided; at n = 10000, 20 and 5", "-"),
    ("data", "fresh for every experiment", "fresh for every trial", "-"),
    ("r_true, GaussianCluster", "sigma sqrt(d), for gamma = .75",
     "as printed; it contains half of the data",
     "the radius around the mean that contains .75 of the data"),
    ("r_true, HeavyTailed", "sqrt(d F(gamma)), F the CDF",
     "sqrt(d F^-1(gamma)), the quantile function", "as printed: it contains 7 % at nu = 4"),
    ("R of the radius search", "R of the data; none for HeavyTailed",
     "the largest norm, rounded up to an integer, or R if R is larger (not private)", "-"),
    ("gamma in FastRadius", "gamma = .75",
     "Algorithm 2 has no gamma, and its threshold is .775 n", "-"),
    ("beta of RadiusFinder", "-", ".05, as in the code of HSU24", ".001, .5 and .999"),
    ("time of RadiusFinder", "wall-clock, code not available",
     "three ways to count the neighbours, each up to the radius at which it halts", "-"),
    ("frac_in, Section 5.2", "-", ".9, as in Section 5.1", ".5"),
    ("order of the rows", "-", "shuffled once, before anything else", "inliers first"),
    ("centre of the start", "a random point of the sphere of B(.75 r_hat)",
     "the sphere around x_star", "around 0"),
    ("domain", "K^(1) = B(start, r_hat) in Algorithm 4", "that ball for all three methods", "-"),
    ("delta, in m and in the balls", "-", "1e-5, as in Section 5.1", "1e-2 in StableDPSGD"),
    ("eta of the SGD methods", "-",
     "the minimiser of Schedule.error_bound times a multiplier from {1/4, 1, 4, 8, 16, 32, 64}. "
     "The best multiplier is chosen for each method, n, T, family and centre, on separate data "
     "(not private; the paper tuned DPGD only)",
     "each multiplier alone; the multiplier 1 is the minimiser itself"),
    ("eta of DPGD", "r_hat / sqrt(T), multiplier 1", "the same",
     "multiplier 1.5; in the ablation all 7 multipliers of the paper, on both bases"),
    ("T in the ablation of DPGD", "-", "4, 16 and 64; all multipliers use the same data and noise",
     "-"),
    ("points of a curve", "passes over the data",
     "each number of passes is a separate run that spends all of rho; T = 2^K - 1 >= n for the "
     "SGD methods", "-"),
    ("visits in FixedOrderDPSGD", "m = ceil(T / n)", "the same",
     "ceil(T^(k) / n) in phase k, as private and less noisy"),
    ("error", "(f(xhat) - f(xhat)) / r_hat", "(f(xhat) - f(x_star)) / r_hat", "-"),
)  # fmt: skip


@dataclass(frozen=True)
class Size:
    """The size of a run. SGD runs have T = 2**K - 1 >= n steps, for K up to longest[n]."""

    name: str
    ratio_trials: int
    trend_trials: int
    trend_scales: dict[str, tuple[float, ...]]
    timed: tuple[int, ...]
    trials: int
    tuning: int
    longest: dict[int, int]
    passes: dict[int, int]
    """For each n, the largest number of passes of DPGD. DPGD has 1, 2, 4, ... passes."""
    more_trials: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """For some families and n, the number of trials of Figures 2 to 5, if it is not `trials`."""
    ablation: Mapping[int, int] = field(default_factory=dict)
    """For each n, the number of trials of the ablation of DPGD's step size."""

    def trials_of(self, family: str, n: int) -> int:
        """Return the number of trials of Figures 2 to 5 for data sets of `n` points."""
        return self.more_trials.get(family, {}).get(n, self.trials)


MORE_TRIALS = {CLUSTER: {100: 40, 1000: 40}, HEAVY: {100: 40, 1000: 200}}

QUICK = Size(
    "quick", 60, 12, {CLUSTER: (4.0,), HEAVY: (8,)},
    (250, 350, 500, 700, 1000, 1400, 2000, 2800), 5, 4,
    {100: 10, 1000: 12, 10_000: 15}, {100: 16, 1000: 16, 10_000: 64},
    MORE_TRIALS, {100: 40, 1000: 12, 10_000: 5},
)  # fmt: skip
FULL = Size(
    "full", 100, 50, {CLUSTER: (1.0, 4.0, 10.0), HEAVY: (4, 8, 20)},
    (500, 700, 1000, 1400, 2000, 2800, 4000, 5600, 8000, 11_000, 16_000), 20, 5,
    {100: 12, 1000: 15, 10_000: 17}, {100: 64, 1000: 256, 10_000: 512},
    MORE_TRIALS, {100: 100, 1000: 40, 10_000: 20},
)  # fmt: skip


# --- data, true radii, starts and errors ---


def cloud(family: str, scale: float, n: int, d: int, rng, fraction: float = INLIERS) -> np.ndarray:
    """Draw GaussianCluster with R = `scale`, or HeavyTailed with nu = `scale`."""
    if family == HEAVY:
        return datasets.heavy_tailed(n, d, degrees=scale, rng=rng)
    return datasets.gaussian_cluster(
        n, d, max_radius=scale, sigma=SIGMA, inlier_fraction=fraction, rng=rng
    )


def true_radius(family: str, scale: float, d: int) -> float:
    """Return r_true as printed, but with the quantile function instead of the CDF."""
    if family == HEAVY:
        return datasets.heavy_tailed_radius(d, scale, GAMMA)
    return datasets.gaussian_cluster_radius(SIGMA, d)


def other_radius(family: str, scale: float, d: int) -> float:
    """Return r_true of HeavyTailed as printed, or the .75 quantile radius of GaussianCluster."""
    if family == HEAVY:
        return math.sqrt(d * float(stats.f.cdf(GAMMA, d, scale)))
    return SIGMA * math.sqrt(float(stats.chi2.ppf(GAMMA / INLIERS, d)))


def effective_radius(family: str, scale: float = 5.0) -> float:
    """Return r_hat of Section 5.2."""
    return 20 * true_radius(family, scale, DIMENSION)


def search_radius(family: str, scale: float, points: np.ndarray) -> float:
    """Return the R of the radius search: the largest norm rounded up, but at least the data's R."""
    farthest = math.ceil(float(np.linalg.norm(points, axis=1).max()))
    return float(farthest if family == HEAVY else max(farthest, scale))


@dataclass(frozen=True)
class Setting:
    """Parameters of a data set of Section 5.2 and of its starting point."""

    family: str
    scale: float
    n: int
    around: str = "x_star"
    fraction: float = INLIERS
    shuffled: bool = True


@dataclass(frozen=True, eq=False)
class Problem:
    """One trial, in units of r_hat."""

    points: np.ndarray
    start: np.ndarray
    least: float

    def error(self, found: np.ndarray) -> np.ndarray:
        """Return (f(xhat) - f(x_star)) / r_hat, ``[size]``."""
        return objective(self.points, found) - self.least


def problem(setting: Setting, rng: np.random.Generator) -> Problem:
    """Draw data and a start."""
    points = cloud(setting.family, setting.scale, setting.n, DIMENSION, rng, setting.fraction)
    if setting.shuffled:
        points = rng.permutation(points)
    points = points / effective_radius(setting.family, setting.scale)
    median = geometric_median(points, tolerance=1e-6)
    direction = rng.normal(size=DIMENSION)
    middle = median.point if setting.around == "x_star" else np.zeros(DIMENSION)
    start = middle + 0.75 * direction / np.linalg.norm(direction)
    return Problem(points, start, median.objective)


@functools.lru_cache(maxsize=4)  # three scales and the tuning, which every method uses
def problems(setting: Setting, size: int, *, seed: int, role: str) -> tuple[Problem, ...]:
    """Draw the trials of a setting.

    For each `role`, the data are drawn separately. Settings that differ only in a choice use the
    same random numbers.
    """
    words = (role, setting.family, str(setting.scale), setting.n)
    return tuple(problem(setting, generator(seed, *words, trial)) for trial in range(size))
