"""diffprivlib 0.6.6: KMeans does not move the centre of an empty cluster.

The script needs numpy and diffprivlib (with scikit-learn 1.5). One of twenty points is replaced.
The centres begin in [1/8, 7/8], at a distance of at least 1/4. If all points are 0, the nearer
centre gets all points. The other centre, which is at 3/8 or above, does not move.
"""

import numpy as np
from diffprivlib import BudgetAccountant
from diffprivlib.models import KMeans

EPSILON, RUNS = 1.0, 2000
STATE = np.random.RandomState(0)


def both_below(points):
    """Return whether both centres end below 3/8."""
    model = KMeans(
        2, epsilon=EPSILON, bounds=(0, 1), random_state=STATE, accountant=BudgetAccountant()
    )
    return bool(np.all(model.fit(points).cluster_centers_ < 3 / 8))


if __name__ == "__main__":
    equal = np.zeros((20, 1))
    other = np.append(np.zeros((19, 1)), [[1.0]], axis=0)
    for name, points in (("20 points at 0", equal), ("19 points at 0, one at 1", other)):
        count = sum(both_below(points) for _ in range(RUNS))
        print(f"{name:24} both centres below 3/8 in {count:3} of {RUNS} runs")
    counts, sums = KMeans(2, epsilon=1.0)._split_epsilon(dims=100, total_iters=2)
    print(f"spent with 100 dimensions and epsilon = 1: {2 * (counts + 100 * sums):.3f}")
