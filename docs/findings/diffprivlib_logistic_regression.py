"""diffprivlib 0.6.6: LogisticRegression with rows of norm up to 100.

The script needs numpy and diffprivlib (with scikit-learn 1.5). One of three rows is replaced. Since
epsilon is 1, each probability may differ by a factor of 2.72.
"""

import numpy as np
from diffprivlib import BudgetAccountant
from diffprivlib.models import LogisticRegression

NORM, RUNS = 100.0, 4000
STATE = np.random.RandomState(0)


def coefficient(row):
    """Return the only coefficient, for a private row of class 1 and two rows that stay."""
    model = LogisticRegression(
        epsilon=1.0,
        data_norm=NORM,
        fit_intercept=False,
        random_state=STATE,
        accountant=BudgetAccountant(),
    )
    return model.fit([[row], [0.0], [0.0]], [1, 0, 1]).coef_[0, 0]


if __name__ == "__main__":
    far = np.array([coefficient(NORM) for _ in range(RUNS)])
    zero = np.array([coefficient(0.0) for _ in range(RUNS)])
    for width in (0.005, 0.02, 0.1):
        p, q = np.mean(abs(far) < width), np.mean(abs(zero) < width)
        print(f"|coefficient| < {width}: probability {p:.4f} or {q:.4f}, a factor of {p / q:.1f}")
    # Where the coefficient is 0, the density is that of the noise, times the curvature there.
    epsilon, factor = 1.0, 0.25 * NORM
    curvature = factor / np.expm1(epsilon / 4)  # of the regularisation that the code adds to
    ratio = (curvature + 0.25 * NORM**2) / curvature
    shift = (NORM / 2) / (2 * NORM / (epsilon / 2))  # gradient at 0, over the scale of the noise
    print(f"densities at 0, computed: a factor of {ratio * np.exp(-shift):.1f}")
