"""Mistakes planted in the representation of datasets."""

from __future__ import annotations

from benchmarks.planted.mutant import Mutant

DATA = ("tests/data/test_data.py",)

MUTANTS = (
    Mutant(
        "data/sides.py",
        "the rows of a replaced user go to the end of the frame",
        "places += common + [len(users)] * (len(rows) - len(common))",
        "places += [len(users)] * len(rows)",
        ("tests/neighbors/test_order.py", "tests/data"),
    ),
    Mutant(
        "data/sides.py",
        "more users may differ than the relation allows",
        "    check_count(count, most, [*changed, *gone, *come])\n",
        "",
        DATA,
    ),
    Mutant(
        "data/sides.py",
        "the rows of the other users may be shuffled",
        "if a.order != b.order:",
        "if False:",
        DATA,
    ),
    Mutant(
        "data/sides.py",
        "columns and dtypes may differ",
        "if left.public != right.public:",
        "if False:",
        DATA,
    ),
    Mutant(
        "data/frames.py",
        "rows without a user are accepted",
        "    if nobody:\n",
        "    if False:\n",
        DATA,
    ),
    Mutant(
        "data/sequences.py",
        "a mechanism receives the stored list instead of a copy",
        "[u if isinstance(u, np.ndarray) else copy.deepcopy(u) for u in value]",
        "value",
        DATA,
    ),
    Mutant(
        "data/interaction.py",
        "data without a digest have one",
        "return known and known + repr(value.strategy).encode()",
        "return known + repr(value.strategy).encode()",
        ("tests/data/test_interaction.py",),
    ),
)
