"""smartnoise-synth 1.0.8: categories, ranges and the number of rows are read from private rows.

The script needs numpy, pandas and smartnoise-synth with mbi 1.1. One of 20 rows is replaced or
added. Epsilon is 1.
"""

import contextlib
import io
import itertools
import warnings

import numpy as np
import pandas as pd
from snsynth import Synthesizer
from snsynth.mst import MSTSynthesizer
from snsynth.transform import LabelTransformer, TableTransformer

RUNS = 40
ROWS = pd.DataFrame({"a": ["0", "1"] * 10, "b": ["0", "1"] * 10})
CANARY = pd.concat([ROWS[:-1], pd.DataFrame({"a": ["2"], "b": ["2"]})], ignore_index=True)
PUBLIC = pd.DataFrame({"a": ["0", "1", "2"], "b": ["0", "1", "2"]})


def released(frame, name, public, **options):
    """Return 20 released rows."""
    domain = {"categorical_columns": ["a", "b"]}
    if public:
        domain["transformer"] = TableTransformer([LabelTransformer(nullable=False) for _ in "ab"])
        domain["transformer"].fit(PUBLIC)
    with contextlib.redirect_stdout(io.StringIO()):
        made = Synthesizer.create(name, epsilon=1.0, **options)
        made.fit(frame, **domain)
    return made.sample(20)


def selection():
    """Return the scores of MST.select for the counts of a pair of columns, and its sensitivity."""
    diagonal = np.array([[i, j] for i, j in itertools.product(range(5), repeat=2)])
    diagonal = np.vstack([diagonal, np.repeat(diagonal[::6], 4, axis=0)])
    scores = []
    for rows in (diagonal, np.vstack([diagonal, [0, 0]])):
        counts = np.zeros((5, 5))
        np.add.at(counts, tuple(rows.T), 1)
        scores.append(np.abs(counts - len(rows) / 25).sum())
    return scores[1] - scores[0]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name, public in (("mwem", False), ("mwem", True), ("mst", False), ("aim", False)):
        for which, frame in (("with", CANARY), ("without", ROWS)):
            runs = [released(frame, name, public) for _ in range(RUNS if name == "mwem" else 5)]
            found = sum((rows == "2").to_numpy().any() for rows in runs)
            domain = "public categories" if public else "categories of the rows"
            print(f"{name:4}, {domain:22} {which:7} a row '2': '2' in {found} of {len(runs)} runs")
    for frame in (ROWS, CANARY[:-1]):
        made = Synthesizer.create("mwem", epsilon=1.0)
        rows = made.fit_sample(frame, categorical_columns=["a", "b"])
        print(f"fit_sample of {len(frame)} rows: {len(rows)} rows")
    print(
        f"{MSTSynthesizer.__name__}.select: one more row moves a score by {selection():.2f}, not 1"
    )
