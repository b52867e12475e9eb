"""privateAB 0.0.2: integer noise on sqrt(k), and float32 noise, reveal the category.

The script needs numpy, torch and privateAB.
"""

import numpy as np
import torch
from privateAB.client import client

RUNS, EPSILON = 100_000, 1.0


def reports(kind, category, k):
    data = torch.full((RUNS,), category, dtype=torch.long)
    return client().release_private(kind, data, k, EPSILON, "cpu").numpy().astype(float)


if __name__ == "__main__":
    torch.manual_seed(0)
    for category in range(3):
        fractions = np.abs(x := reports("disclapu", category, 3)) - np.floor(np.abs(x))
        irrational = np.argmax(np.minimum(fractions, 1 - fractions) > 1e-3, axis=1)
        print(
            f"disclapu, k = 3, category {category}: the coordinate that is no integer gives it in "
            f"{np.sum(irrational == category)} of {RUNS} reports"
        )
    for category in (0, 1):
        first = reports("lapu", category, 4)[:, 0] / 2
        scaled = first[(first > 0) & (first < 0.25)] * 2.0**24
        print(
            f"lapu, k = 4, category {category}: first coordinate off the lattice 2^-24 in "
            f"{np.sum(scaled != np.round(scaled))} of {RUNS} reports"
        )
