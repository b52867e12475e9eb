"""diffprivlib 0.6.6: GaussianNB, with a class that is absent, and with bounds far from 0.

The script needs numpy and diffprivlib (with scikit-learn 1.5). One row is replaced, and its label
changes. Epsilon is 1. The classes are public, because `partial_fit(..., classes=...)` receives
them.
"""

import numpy as np
from diffprivlib import BudgetAccountant
from diffprivlib.models import GaussianNB

RUNS = 2000
STATE = np.random.RandomState(0)


def fitted(x, y, low, classes):
    """A model of one feature in [low, low + 1]."""
    model = GaussianNB(
        epsilon=1.0, bounds=(low, low + 1), random_state=STATE, accountant=BudgetAccountant()
    )
    return model.partial_fit(x, y, classes=classes)


if __name__ == "__main__":
    x = np.zeros((8, 1))
    for name, labels in (("one row", [0] * 5 + [1, 1, 2]), ("no row", [0] * 5 + [1, 1, 1])):
        models = [fitted(x, np.array(labels), 0.0, [0, 1, 2]) for _ in range(RUNS)]
        counts = np.array([model.class_count_[2] for model in models])
        means = np.array([model.theta_[2, 0] for model in models])
        print(
            f"{name:7} of class 2: its noisy count is 0 in {np.sum(counts == 0):4} of {RUNS} runs, "
            f"its mean is 0.0 in {np.sum(means == 0)}"
        )
    x = np.full((8, 1), 100.0)
    for first in (5, 4):
        labels = np.array([0] * first + [1] * (8 - first))
        models = [fitted(x, labels, 100.0, [0, 1]) for _ in range(RUNS)]
        found = [model.class_count_[0] == 4 and model.theta_[0, 0] == 100.0 for model in models]
        print(
            f"{first} rows of class 0, bounds (100, 101): count 4 and mean 100 in "
            f"{np.sum(found):4} of {RUNS} runs"
        )
