"""Import of hypothesis, which generates cases.

The package hypothesis is an extra, because audits do not need it.
"""

from __future__ import annotations

try:
    import hypothesis
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as hnp
except ModuleNotFoundError as error:
    if error.name != "hypothesis":
        raise
    raise ModuleNotFoundError(
        "the ledger and functions such as check_sensitivity need the package hypothesis, which is "
        "not installed here. Run pip install 'dpaudit[ledger]'",
        name="hypothesis",
    ) from None

__all__ = ["hnp", "hypothesis", "st"]
