"""ornl-presto 0.1.29: four mechanisms need more noise.

The script needs numpy, torch and ornl-presto. Epsilon is 1.
"""

import math

import numpy as np
import torch
from ornl_presto.privacy_mechanisms import (
    applyDPGaussian,
    applySVTAboveThreshold_full,
    count_mean_sketch,
    hadamard_response,
)

RUNS = 20_000


def normal_cdf(x):
    return math.erfc(-x / math.sqrt(2)) / 2


if __name__ == "__main__":
    for sensitivity in (1, 10):
        noise = applyDPGaussian(np.zeros(10 * RUNS), sensitivity, 1e-5, 1.0)
        mu = sensitivity / noise.std()
        needed = normal_cdf(mu / 2 - 1 / mu) - math.e * normal_cdf(-mu / 2 - 1 / mu)
        print(
            f"applyDPGaussian, sensitivity {sensitivity}: noise {noise.std():.2f}, "
            f"so delta is {needed:.1e} instead of 1e-5"
        )
    for last in (0.25, 0.75):
        values = [0.0, 0.5, 1.0, last]
        exact = sum(applySVTAboveThreshold_full(values, 1.0)[3] == last for _ in range(2000))
        print(f"SVT, a user at {last}: the exact value is returned in {exact} of 2000 runs")
    for last in (0.0, 1.0):
        draws = [
            float(count_mean_sketch(np.array([0.0] * 7 + [last]), 1.0)[0]) for _ in range(2000)
        ]
        print(
            f"count_mean_sketch, a user at {last}: the release is 0 in {draws.count(0.0)} of 2000"
        )
    shares = []
    for value in (1.0, 2.0):
        report = hadamard_response(torch.tensor([value] * RUNS + [3.0]), 1.0)[:RUNS]
        shares.append(float((report == 1).double().mean()))
    print(
        f"hadamard_response, 4 values: probability of 1 is {shares[0]:.3f} or {shares[1]:.3f}, "
        f"a factor of {shares[0] / shares[1]:.1f}. Epsilon = 1 allows 2.7"
    )
