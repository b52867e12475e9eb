"""Mistakes planted in the pairs of datasets."""

from __future__ import annotations

from benchmarks.planted.mutant import Mutant

PORTFOLIOS = ("tests/neighbors/test_portfolio.py", "tests/engine/test_default_pairs.py")

MUTANTS = (
    Mutant(
        "neighbors/crowds.py",
        "halves of one parity only: the user never takes the median of an even number",
        "for below in sorted({others // 2, (others + 1) // 2}):",
        "for below in sorted({others // 2}):",
        PORTFOLIOS,
    ),
    Mutant(
        "neighbors/crowds.py",
        "users without data are forgotten",
        "    if missing:\n        drafts.append(_empty(crowd, scales[0]))\n",
        "",
        PORTFOLIOS,
    ),
    Mutant(
        "neighbors/around.py",
        "thresholds are tipped by two users",
        "(np.arange(crowd.n_users - 1) < count - 1)",
        "(np.arange(crowd.n_users - 1) < count - 2)",
        PORTFOLIOS,
    ),
    Mutant(
        "neighbors/portfolio.py",
        "data may leave the declared domain",
        "if data is not None and bool(((data < low) | (data > high)).any()):",
        "if data is None and bool(((data < low) | (data > high)).any()):",
        PORTFOLIOS,
    ),
)
