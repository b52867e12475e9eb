"""Format of the answers that the sparse vector algorithms return."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from algorithms.common._validate import FloatArray


def halted_after(positives: NDArray[np.bool_], cutoff: int | None) -> FloatArray:
    """Return answers ``[size, T]``, where 1.0 means yes and 0.0 means no.

    After the cutoff-th yes of a row, the answers are NaN. The answer at which the cutoff is reached
    is still yes. If `cutoff` is None, every query is answered.
    """
    answers = positives.astype(np.float64)
    if cutoff is not None:
        positives_before: NDArray[np.int64] = np.cumsum(positives, axis=1) - positives
        answers[positives_before >= cutoff] = np.nan
    return answers
