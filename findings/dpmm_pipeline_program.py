"""dpmm 0.1.9: constant columns and missing values are released, with every category declared.

The script needs dpmm and its pinned dependencies. One of 20 rows is replaced. The domain lists
every category of each column.
"""

import contextlib
import io
import warnings

import pandas as pd
from dpmm.pipelines import PrivBayesPipeline

RUNS, KINDS = 10, ["0", "1"]


def released(last):
    """Return 20 released rows."""
    columns = {"a": ["0", "1"] * 10, "b": ["0"] * 19 + [last]}
    frame = pd.DataFrame({k: pd.Categorical(v, categories=KINDS) for k, v in columns.items()})
    pipeline = PrivBayesPipeline(
        epsilon=1.0, delta=1e-5, proc_epsilon=0.1, n_jobs=1, gen_kwargs={"n_iters": 50}
    )
    with contextlib.redirect_stdout(io.StringIO()):
        pipeline.fit(frame, {k: {"categories": KINDS} for k in columns})
        return pipeline.generate(n_records=20)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for last in ("0", "1", None):
        runs = [released(last)["b"] for _ in range(RUNS)]
        other = sum((b == "1").any() for b in runs)
        missing = sum(b.isna().any() for b in runs)
        print(f"19 rows '0', one row {last!s:4}: '1' in {other} of {RUNS} runs, NaN in {missing}")
