"""diffpriv-pure 0.1.0: count noise is never negative, and two formulas give too little noise.

The script needs only diffpriv-pure.
"""

import math

from diffpriv_pure import PrivacyBudget, gaussian_sigma, private_count

RUNS = 2000


def normal_cdf(x):
    return math.erfc(-x / math.sqrt(2)) / 2


if __name__ == "__main__":
    for count in (3, 2):
        low = sum(private_count(count, 1.0) == 2 for _ in range(RUNS))
        print(f"count {count}, epsilon 1: the release is 2 in {low:4} of {RUNS} runs")
    epsilon, delta = 10.0, 0.01
    mu = 1 / gaussian_sigma(1.0, epsilon, delta)
    needed = normal_cdf(mu / 2 - epsilon / mu)
    needed -= math.exp(epsilon) * normal_cdf(-mu / 2 - epsilon / mu)
    print(f"gaussian_sigma(1, {epsilon:g}, {delta}): the exact delta is {needed:.4f}")
    epsilon, delta = PrivacyBudget(1000.0, 0.5).advanced_composition(100, 1.0, 0.001)
    p = 1 / (1 + math.exp(-1.0))  # 100 randomised responses of epsilon = 1 on one bit
    excess = 0.0
    for k in range(101):
        ways = math.comb(100, k)
        truth, lie = p**k * (1 - p) ** (100 - k), (1 - p) ** k * p ** (100 - k)
        excess += ways * max(truth - math.exp(epsilon) * lie, 0.0)
    print(f"advanced_composition: ({epsilon:.1f}, {delta:.2f}), the exact delta is {excess:.3f}")
