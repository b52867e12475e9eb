"""Counterexamples of `erratum.md`: python counterexamples.py prints both sides of each.

The program needs only numpy. Each function returns a description, the side that the paper says is
smaller, and the side that it says is larger.
"""

import math

import numpy as np


def lemma_14_first_term():
    """Run Algorithm 4 on a line, with all data at 1 and the start at 0."""
    rng = np.random.default_rng(0)
    K, rho, delta = 20, 1.0, 1e-6
    T = n = 2**K - 1
    eta, m = 3.5 / T, 3 * (T / n + math.log(8 / delta))
    center, log = 0.0, math.log(4 * K / delta)
    for k in range(1, K + 1):
        length, step = (T + 1) // 2**k, eta / 4**k
        sigma = 3.0**-k * (2 * m + 1) * eta / math.sqrt(rho)
        reach = 1.0 if k == 1 else 2 * sigma * math.sqrt(log)
        z = np.minimum(center + step * np.arange(length), min(1.0, center + reach))
        center = float(z.mean() + rng.normal(scale=sigma))
    bound = 1 / (16 * eta * T) + 19 * eta + 8 * math.sqrt(log / T)
    bound += 1314 * T * eta * math.log(8 * K / delta) ** 4 / (rho * n**2)
    return "error of Algorithm 4 against the bound of Lemma 14", abs(1 - center), bound


def lemma_13_balls():
    """Compute how often some center misses its ball, for d = 1."""
    delta, K = 0.01, 20
    radius = 2 * math.sqrt(math.log(4 * K / delta)) / 3  # in units of sigma^(k-1)
    inside = math.erf(radius / math.sqrt(2))
    words = "probability that some xbar^(k-1) is not in K^(k), against delta/4"
    return words, 1 - inside ** (K - 1), delta / 4


def theorem_4_users():
    """Compute how often noise alone makes FastRadius halt, where every query is at most 1."""
    n, T, epsilon = 932, 5e8, 1.0 / 4  # Theorem 4 runs FastRadius with epsilon/4
    nu = np.linspace(-600, 600, 200_001)  # noise of the threshold
    density = np.exp(-np.abs(nu) * epsilon / 6) * epsilon / 12
    needed = (0.775 * n - 1 + nu) * epsilon / 12
    above = np.where(needed > 0, 0.5 * np.exp(-np.abs(needed)), 1 - 0.5 * np.exp(-np.abs(needed)))
    halts = -np.expm1(T * np.log1p(-np.minimum(above, 1 - 1e-12)))
    words = "probability of a radius that is too small, against delta"
    return words, float((halts * density).sum() * (nu[1] - nu[0])), 0.01


def quantile_above_one_half():
    """Count pairs of 1,000 points on a line, within a radius of 1."""

    def query(points):
        return np.mean([np.sum(np.abs(points - x) <= 1) for x in points]) / len(points)

    apart = 1e3 * np.arange(1, 401)
    two = np.concatenate([np.zeros(480), np.full(480, 1e7), apart[:40]])
    one = np.concatenate([np.zeros(600), apart])
    words = "query (per n) at a radius that is too small, against one that is large enough"
    return words, float(query(two)), float(query(one))


def footnote_4():
    """Compare the users of Algorithm 4 for (1, delta)-DP and for (100, delta)-DP."""
    log = math.log(1e6)  # epsilon = rho + 2 sqrt(rho log(1/delta)), and n ~ 1/sqrt(rho)
    roots = [math.sqrt(log + epsilon) - math.sqrt(log) for epsilon in (1.0, 100.0)]
    return "users at epsilon = 1 against ten times those at 100", 1 / roots[0], 10 / roots[1]


def footnote_3():
    """Check the excess of f at a distance of d^(1/4) of the mean, for Gaussian data."""
    rng, d = np.random.default_rng(0), 10**5
    s = d**0.25
    first, rest = rng.standard_normal(200_000), rng.chisquare(d - 1, 200_000)
    at, center = np.sqrt((first - s) ** 2 + rest).mean(), np.sqrt(first**2 + rest).mean()
    distance = s if at <= (1 + d**-0.5) * center else 0.0
    return "a distance that alpha = d^(-1/2) allows, against 10", distance, 10.0


def heavy_tailed_radius():
    """Draw from HeavyTailed and count points within the printed radius."""
    rng, d, nu = np.random.default_rng(0), 10, 4
    ratio = rng.f(d, nu, 400_000)  # the squared norm over d
    printed = np.mean(ratio <= 0.75)  # the CDF F at 0.75
    return "0.75 against the share of data within r_true", 0.75, float(np.mean(ratio <= printed))


def mean_distance():
    """Compare r_hat of HeavyTailed with the mean distance to the center, d = 50 and nu = 5."""
    ratio = np.random.default_rng(0).f(50, 5, 400_000)
    r_hat = 20 * math.sqrt(50 * np.quantile(ratio, 0.75))
    return "r_hat against f at the center", r_hat, float(np.sqrt(50 * ratio).mean())


def outside_the_ball():
    """Draw the inliers of GaussianCluster at R = 0.5, and count those outside of B(R)."""
    rng = np.random.default_rng(0)
    mean = np.zeros(10)
    mean[0] = 0.25
    points = mean + 0.1 * rng.standard_normal((400_000, 10))
    share = np.mean(np.linalg.norm(points, axis=1) > 0.5)
    return "inliers outside of B(R), of 900, against 1", float(900 * share), 1.0


def median_outside():
    """Place k + 1 points on a unit circle and k far to the left, and find their median."""
    k = 200

    def slope(x):
        """Return the slope of f along the axis, for k + 1 points on the tangents from x."""
        return k - (k + 1) * math.sqrt(1 - 1 / x**2)

    low, high = 1.0 + 1e-12, 1e6
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return "distance of the median to the center of the unit ball, against 10", low, 10.0


COUNTEREXAMPLES = [
    lemma_14_first_term, lemma_13_balls, theorem_4_users, quantile_above_one_half, footnote_4,
    footnote_3, heavy_tailed_radius, mean_distance, outside_the_ball, median_outside,
]  # fmt: skip


if __name__ == "__main__":
    for program in COUNTEREXAMPLES:
        words, smaller, larger = program()
        print(f"{program.__name__}: {words}")
        print(f"  {smaller:.3g} should be at most {larger:.3g}\n")
