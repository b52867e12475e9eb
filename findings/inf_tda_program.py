"""inf-tda 0.1: the sensitivities of distinct and of equal tuples are swapped.

The script needs numpy, pandas and inf-tda (with opendp 0.12). One user moves 25 equal tuples.
"""

import numpy as np
import pandas as pd
from InfTDA import inf_tda
from InfTDA.mechanism import get_sensitivity

PLACES = pd.MultiIndex.from_tuples([("A", "a"), ("A", "b"), ("B", "a"), ("B", "b")])
RUNS, DELTA = 1500, 0.01

if __name__ == "__main__":
    for m in (1, 25):
        print(
            f"m = {m}, equal tuples: get_sensitivity {get_sensitivity(m, 'bounded', False):.2f}, "
            f"the table of the README: sqrt(2) m = {2**0.5 * m:.2f}"
        )
    shares = []
    for counts in ([75, 50, 50, 50], [50, 50, 75, 50]):
        data = pd.Series(counts, index=PLACES)
        draws = [
            inf_tda(data, (1.0, DELTA), contribution=25, distinct_tuples=False) for _ in range(RUNS)
        ]
        shares.append(
            np.mean([draw.get(("A", "a"), 0) - draw.get(("B", "a"), 0) > 30 for draw in draws])
        )
    print(
        f"(A, a) more than 30 above (B, a): probability {shares[0]:.3f} or {shares[1]:.3f}. "
        f"Epsilon = 1 and delta = {DELTA} allow {np.e * shares[1] + DELTA:.3f} for the first"
    )
