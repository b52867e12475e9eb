"""eeprivacy 0.0.5: a mean that does not clamp, equal noise, and scores that are not monotone.

The script needs numpy and eeprivacy. One of the users is replaced. Epsilon is 1.
"""

import numpy as np
from eeprivacy.operations import (
    PrivateClampedMean,
    PrivateQuantile,
    PrivateVectorClampedMeanLaplace,
)

RUNS = 5000

if __name__ == "__main__":
    mean = PrivateClampedMean(lower_bound=0.0, upper_bound=1.0)
    for last in (100.0, 0.0):
        values = [0.0] * 9 + [last]
        ones = sum(mean.execute(values=values, epsilon=1.0) == 1.0 for _ in range(RUNS))
        print(f"mean, a user at {last:5}: the release is 1.0 in {ones} of {RUNS} runs")
    vector = PrivateVectorClampedMeanLaplace(lower_bound=0.0, upper_bound=1.0, k=2, N=3)
    for last in ([1.0, 0.0], [0.0, 1.0]):
        draws = [
            vector.execute(vectors=[[0.0, 0.0], [0.0, 0.0], last], epsilon=1.0, delta=0.0)
            for _ in range(RUNS)
        ]
        print(
            f"vector mean, a user at {last}: first minus second {np.ptp(draws, axis=1).max():.4f},"
            f" first is larger in {sum(d[0] > d[1] for d in draws)} of {RUNS} runs"
        )
    options = [*np.linspace(0.3, 0.5, 15), 0.8]
    quantile = PrivateQuantile(options=options)
    shares = []
    for values in ([0.0] * 4 + [0.6] * 2 + [1.0] * 4, [0.0] * 3 + [0.6] * 2 + [1.0] * 5):
        draws = [
            quantile.execute(values=np.array(values), epsilon=1.0, quantile=0.5)
            for _ in range(4 * RUNS)
        ]
        shares.append(np.mean(np.array(draws) == 0.8))
    print(
        f"median 0.8: probability {shares[0]:.3f} or {shares[1]:.3f}, a factor of "
        f"{shares[1] / shares[0]:.2f}. Epsilon = 1 allows 2.72"
    )
