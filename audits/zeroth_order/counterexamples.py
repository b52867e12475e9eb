"""Counterexamples of `erratum.md`: python counterexamples.py prints both sides of each.

The program needs only numpy. Each function returns a description, the side that the paper says is
smaller, and the side that it says is larger.
"""

import math

import numpy as np


def theorem_4_9_minimum():
    """Evaluate the last display of the proof at the printed T, for d = F* = L = delta = rho = 1."""
    M = 1e60
    a, b, c = 2 / M, 1.0, 1.0
    T = min((M / 2) ** (2 / 3), (M / 2) ** (1 / 2))
    left = a * T + b / math.sqrt(T) + c / T
    right = 2 * (1 / M) ** (1 / 3) + 2 * (1 / M) ** (1 / 2)
    return "aT + b/sqrt(T) + c/T against 100 times the right side", left, 100 * right


def theorem_4_3_small_n():
    """Compute the exact rho of x_1, x_2 for one item at time 1, from the noise's covariance."""
    # x_1 = M_1 + xi_1 and x_2 = M_1 + M_2 + xi_2; the item moves M_1 by 1
    shift, covariance = np.array([1.0, 1.0]), np.eye(2)
    rho = math.sqrt(shift @ np.linalg.solve(covariance, shift))
    return "exact rho at n = 2 against sqrt(2 ln 2)", rho, math.sqrt(2 * math.log(2))


def section_2_conversion():
    """Integrate the hockey-stick divergence of N(rho, 1) and N(0, 1)."""
    rho, delta = 20.0, 1e-6
    epsilon = 2 * rho * math.sqrt(math.log(1 / delta))
    x = np.linspace(-15, 45, 600_001)
    privacy_loss = rho * x - rho**2 / 2
    density = np.exp(-((x - rho) ** 2) / 2) / math.sqrt(2 * math.pi)
    excess = density * np.maximum(0, 1 - np.exp(np.minimum(0, epsilon - privacy_loss)))
    words = "delta of Gaussian noise at the promised epsilon, against the promised delta"
    return words, float(excess.sum() * (x[1] - x[0])), delta


def appendix_e_rate():
    """Search the least bound of Appendix E with B = 1 over T, for F* + L delta = L = delta = 1."""
    M, d, rho = 1e100, 1e8, 1.0
    T = np.logspace(0, 100, 100_001)
    left = T / M + math.sqrt(d) / np.sqrt(T) + 1 / np.sqrt(T) + d**1.5 / (np.sqrt(T) * rho)
    right = (d / M) ** (1 / 3) + (d**1.5 / (rho * M)) ** (1 / 3)
    return "least bound over T against 1000 times the rate", float(left.min()), 1000 * right


def orthonormal_directions():
    """Compute the sensitivity of Grad for one item with an orthonormal basis, L = delta = 1."""
    d = 400
    slopes = np.full(d, 1 / math.sqrt(2))  # the largest (f(u_j) - f(-u_j))/2 at once, by distances
    largest = np.linalg.norm(2 * slopes)
    return "2 d L against ten times the largest sensitivity with a basis", 2.0 * d, 10 * largest


def stationary_points():
    """Compare |grad| of the smoothing of |y - 1.9| near 0 with the norm for F, delta = 1."""
    near = np.linspace(-0.99, 0.99, 199)  # the ball of radius delta around 0
    slopes = np.array([np.mean(np.sign(y + np.linspace(-1, 1, 2001) - 1.9)) for y in near])
    words = "stationarity of the smoothing at 0 against that of F"
    return words, float(np.abs(slopes).min()), 0.0


def lemma_a_1_factor():
    """Compare the relative volume of the symmetric difference of two discs with the 2nd display."""
    move = 0.01
    grid = np.linspace(-1.01, 1.02, 2001)
    x, y = np.meshgrid(grid, grid)
    difference = (x**2 + y**2 <= 1) != ((x - move) ** 2 + y**2 <= 1)
    volume = difference.mean() * (grid[-1] - grid[0]) ** 2 / math.pi
    # (d/delta) vol of the unit ball below, over vol of the unit ball: 2/pi in the plane, times 2
    printed = 2 / math.pi * move
    return "vol(S)/vol(B) in the plane against the second display", float(volume), printed


def votes():
    """Evaluate Diff on a line for a user's vote 1{x >= z}, and for a user who always votes 0."""
    x, y, u, delta = 0.01, 0.0, 1.0, 1.0
    moved = abs((x + delta * u >= 1.005) - (y + delta * u >= 1.005)) / delta
    return "how much Diff moves, against 2 d L norm(x - y)/(b delta), L = 1", moved, 2 * abs(x - y)


def unit_of_complexity():
    """Compare d/(delta epsilon^3) with the data of fresh estimates with d directions each."""
    rng = np.random.default_rng(0)
    d = 10_000
    seconds = []
    for _ in range(20):  # E norm(Grad)^2 for f = <e, x>: Grad is the sum of <e, u_j> u_j
        small = rng.standard_normal((200, 200))
        small /= np.linalg.norm(small, axis=1, keepdims=True)
        seconds.append(np.sum((small[:, 0] @ small) ** 2))
    moment = float(np.mean(seconds))  # 2 - 1/d, at every d
    return "d against ten times 27 E norm(Grad)^2", float(d), 10 * 27 * moment


COUNTEREXAMPLES = [
    theorem_4_9_minimum, theorem_4_3_small_n, section_2_conversion, appendix_e_rate,
    orthonormal_directions, stationary_points, lemma_a_1_factor, votes, unit_of_complexity,
]  # fmt: skip


if __name__ == "__main__":
    for program in COUNTEREXAMPLES:
        words, smaller, larger = program()
        print(f"{program.__name__}: {words}")
        print(f"  {smaller:.3g} should be at most {larger:.3g}\n")
