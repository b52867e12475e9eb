"""hypothesis, by which cases are generated: an extra, as audits do without."""

from __future__ import annotations

try:
    import hypothesis
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as hnp
except ModuleNotFoundError as error:
    if error.name != "hypothesis":
        raise
    raise ModuleNotFoundError(
        "the ledger, check_sensitivity and its like need the package hypothesis, which is not "
        "installed here: pip install hypothesis latex2mathml, or dpaudit with its extra ledger",
        name="hypothesis",
    ) from None

__all__ = ["hnp", "hypothesis", "st"]
