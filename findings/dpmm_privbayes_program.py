"""dpmm 0.1.9: PrivBayes selects cliques by scores that one row moves from 0 to 1.

The script needs numpy, pandas and dpmm. One of 1,000 rows is replaced. Epsilon is 1 for the model.
"""

import numpy as np
import pandas as pd
from dpmm.models.base.mbi import Dataset, Domain
from dpmm.models.priv_bayes import MI, ExponentialMechanism, PrivBayes

NAMES, RUNS = ["a", "b", "c"], 2000


def dataset(last):
    rows = np.zeros((1000, 3), dtype=int)
    rows[-1] = last
    return Dataset(pd.DataFrame(rows, columns=NAMES), Domain(NAMES, np.array([2, 2, 2])))


if __name__ == "__main__":
    for last in ((0, 0, 0), (1, 1, 0)):
        data = dataset(last)
        mechanism = ExponentialMechanism(data, epsilon=0.5)
        used = mechanism.delta * mechanism.epsilon / len(NAMES)
        model = PrivBayes(epsilon=1.0, delta=1e-5, n_jobs=1, prng=np.random.RandomState(0))
        cliques = [model.select(data) for _ in range(RUNS)]
        after_a = [c[1][-1] for c in cliques if c[0] == ("a",)]
        print(
            f"last row {last}: score of (a, b) {MI(data)(('a',), 'b'):.3f}, sensitivity used "
            f"{used:.4f}, 'c' follows 'a' in {after_a.count('c')} of {len(after_a)} networks"
        )
