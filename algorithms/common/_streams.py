"""The streams of answers that the sparse vector family gives."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from algorithms.common._validate import FloatArray


def halted_after(positives: NDArray[np.bool_], cutoff: int | None) -> FloatArray:
    """Return answers ``[size, T]``: 1.0 and 0.0, and NaN after the cutoff-th positive of a row.

    The cutoff-th positive itself is still answered; no cutoff means that all are answered.
    """
    answers = positives.astype(np.float64)
    if cutoff is not None:
        positives_before: NDArray[np.int64] = np.cumsum(positives, axis=1) - positives
        answers[positives_before >= cutoff] = np.nan
    return answers
