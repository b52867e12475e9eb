"""dwork 0.0.13: integer noise is a multiple of the sensitivity, and a sum of sums has too little.

The script needs numpy, pandas and dwork. The schema is the example of the README.
"""

import numpy as np
import pandas as pd
from dwork.dataschema import DataSchema
from dwork.dataset.pandas import PandasDataset
from dwork.language.types import Float, Integer


class People(DataSchema):
    Weight = Integer(min=0, max=200)
    Height = Integer(min=0, max=200)
    x = Float(min=0.0, max=1.0)
    y = Float(min=0.0, max=1.0)


def dataset(last_weight, last):
    rows = [(70, 170, 0.0, 0.0), (80, 180, 0.0, 0.0), (last_weight, 160, last, last)]
    return PandasDataset(People, pd.DataFrame(rows, columns=["Weight", "Height", "x", "y"]))


if __name__ == "__main__":
    for weight in (60, 61):
        people = dataset(weight, 0.0)
        remainders = {int(people["Weight"].sum().dp(0.5)) % 200 for _ in range(1000)}
        print(f"weight {weight}: the releases modulo 200 are {remainders}")
        means = {(people["Weight"].sum() / people.len()).dp(0.5) for _ in range(1000)}
        print(
            f"    the exact mean {(150 + weight) / 3:.3f} is among {len(means)} different means: "
            f"{any(abs(m - (150 + weight) / 3) < 1e-9 for m in means)}"
        )
    shares = []
    for last in (1.0, 0.0):
        people = dataset(60, last)
        draws = [(people["x"].sum() + people["y"].sum()).dp(0.5) for _ in range(20_000)]
        shares.append(np.mean(np.array(draws) > 2))
    print(
        f"sum of two sums above 2: probability {shares[0]:.3f} or {shares[1]:.3f}, a factor of "
        f"{shares[0] / shares[1]:.2f}. Epsilon = 0.5 allows 1.65"
    )
