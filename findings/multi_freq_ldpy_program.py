"""multi-freq-ldpy 0.2.5: the subset of SS_Client has the true value in the first place.

The script needs numpy and multi-freq-ldpy. Epsilon is 1 and the domain has 8 values.
"""

import numpy as np
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client

RUNS = 10_000

if __name__ == "__main__":
    for value in (0, 1):
        reports = np.array([SS_Client(value, 8, 1.0) for _ in range(RUNS)])
        print(
            f"value {value}: 0 is in first place in {np.sum(reports[:, 0] == 0):4} reports, "
            f"in second place in {np.sum(reports[:, 1] == 0):4} of {RUNS}"
        )
