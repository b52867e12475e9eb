"""diffprivlib 0.6.6: nanmean, nanvar and nansum, for data in which most values are NaN.

The script needs numpy and diffprivlib (with scikit-learn 1.5). One number is replaced. In `nansum`,
the new value is NaN. In all examples epsilon is 1, so each probability may differ by a factor of
2.72.
"""

import numpy as np
from diffprivlib import BudgetAccountant, tools

RUNS = 4000
STATE = np.random.RandomState(0)


def share(function, data, bounds, above):
    """Return the share of runs in which the release is above a value."""
    runs = [
        function(
            data, epsilon=1.0, bounds=bounds, random_state=STATE, accountant=BudgetAccountant()
        )
        for _ in range(RUNS)
    ]
    return np.mean(np.array(runs) > above)


if __name__ == "__main__":
    zeros = np.array([np.nan] * 18 + [0.0, 0.0])
    one = np.array([np.nan] * 18 + [0.0, 1.0])
    nines = np.full(10, 9.0)
    missing = np.append(nines[:-1], np.nan)
    for name, function, left, right, bounds, above in (
        ("nanmean", tools.nanmean, one, zeros, (0, 1), 0.25),
        ("nanvar", tools.nanvar, one, zeros, (0, 1), 0.125),
        ("nansum", tools.nansum, nines, missing, (9, 10), 90),
    ):
        p, q = (share(function, data, bounds, above) for data in (left, right))
        print(
            f"{name:8} above {above}: with probability {p:.4f} or {q:.4f}, a factor of {p / q:.1f}"
        )
