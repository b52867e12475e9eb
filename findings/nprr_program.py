"""nprr 0.1.4: the two ends of the grid have half of the probability that epsilon needs.

The script needs numpy 1 and nprr. The domain is [0, 1].
"""

import numpy as np
from nprr.mechanisms import nprr, r_from_G_eps

RUNS, BINS, EPSILON = 400_000, 20, 1.0

if __name__ == "__main__":
    r = r_from_G_eps(BINS, EPSILON)
    shares = [np.mean(nprr(np.full(RUNS, value), r, BINS) == 0.0) for value in (0.0, 0.5)]
    print(
        f"report 0: probability {shares[0]:.4f} or {shares[1]:.4f}, so epsilon is at least about "
        f"{np.log(shares[0] / shares[1]):.2f} instead of {EPSILON}"
    )
    print(f"computed: {np.log(1 + 2 * BINS * r / (1 - r)):.3f}")
