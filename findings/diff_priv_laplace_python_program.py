"""diff-priv-laplace-python 1.0.5: sensitivities come from the data, or are 1 for any data.

The script needs numpy and diff-priv-laplace-python. One of three users is replaced. Epsilon is 1.
"""

import numpy as np
from diffpriv_laplace.statistics import DiffPrivStatistics as Statistics

RUNS = 2000

if __name__ == "__main__":
    for values in ([5.0, 5.0, 5.0], [5.0, 5.0, 6.0]):
        draws = [Statistics.mean(values, 1.0) for _ in range(RUNS)]
        print(f"mean of {values}: exactly 5 in {draws.count(5.0)} of {RUNS} runs")
    for values in ([0.0, 100.0, 100.0], [0.0, 0.0, 100.0]):
        draws = [Statistics.median(values, 1.0) for _ in range(RUNS)]
        print(f"median of {values}: above 50 in {np.sum(np.array(draws) > 50)} of {RUNS} runs")
