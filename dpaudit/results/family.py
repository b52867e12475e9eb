"""Joint evaluation of all refuted claims of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpaudit.results.result import AuditResult
from dpaudit.results.verdicts import Verdict


def step_down(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values by Holm's step-down, and return them in the given order.

    Using statsmodels instead would need pandas (150 MB installed).
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return [float(value) for value in np.minimum(adjusted, 1.0)]


def holm(results: Sequence[AuditResult]) -> dict[str, float]:
    """Return adjusted p-values of the refuted claims of a run, by Holm's step-down.

    If all claims with an adjusted p-value of at most alpha are called violated, the probability of
    any wrong call is at most alpha. No assumption about dependence is needed. Holm's method uses
    how strongly each claim is refuted. The union bound is the sum of the failure probabilities of
    the run, which were fixed before all draws. If the union bound is smaller than the adjusted
    p-value, the union bound is returned instead. Claims that were not refuted count with a p-value
    of 1, and mutants do not count.

    Parameters
    ----------
    results : sequence of AuditResult
        All audits of the run.

    Returns
    -------
    dict
        Adjusted p-value of each refuted claim, by its id.

    References
    ----------
    Holm (1979), "A simple sequentially rejective multiple test procedure".
    """
    if not any(result.verdict is Verdict.REFUTED for result in results):
        return {}
    adjusted = step_down([result.p_value for result in results])
    union = math.fsum(result.failure_prob for result in results)
    return {
        result.id: min(float(p), union)
        for result, p in zip(results, adjusted, strict=True)
        if result.verdict is Verdict.REFUTED
    }
