"""Mistakes planted in the pairs of datasets."""

from __future__ import annotations

from benchmarks.planted.mutant import Mutant

PORTFOLIOS = ("tests/neighbors/test_portfolio.py", "tests/engine/test_default_pairs.py")

DATA = ("tests/data/test_data.py",)
SCHEMA = ("tests/neighbors/test_schema.py",)

MUTANTS = (
    Mutant(
        "neighbors/recipes.py",
        "a removed user may be in the middle and shift the others",
        "at = len(others) if at is None or not self.is_replaced else at",
        "at = len(others) if at is None else at",
        ("tests/neighbors/test_order.py",),
    ),
    Mutant(
        "neighbors/portfolio.py",
        "a portfolio keeps its default relation",
        "return self.variant(relation=relation)",
        "return self.variant(relation=self.relations[0])",
        ("tests/engine/test_misleading.py",),
    ),
    Mutant(
        "neighbors/crowds.py",
        "halves of one parity only: the user is never the median of an even number",
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
        "neighbors/crowds.py",
        "two users, not one, are needed to cross a threshold",
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
    Mutant(
        "neighbors/pairs.py",
        "if a label differs, other values may differ too",
        "            census(left, relation.label), census(right, relation.label), relation.users\n",
        "            census(left, relation.label), census(left, relation.label), relation.users\n",
        DATA,
    ),
    Mutant(
        "neighbors/frames.py",
        "special values are never tried",
        "special = [(c.name, value) for c in self.columns for value in c.special]",
        "special: list[Any] = []",
        SCHEMA,
    ),
    Mutant(
        "neighbors/pairs.py",
        "a window may be one row longer",
        "max(users) - min(users) >= relation.users",
        "max(users) - min(users) > relation.users",
        ("tests/neighbors/test_streams.py",),
    ),
)
