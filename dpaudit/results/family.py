"""The refutations of a whole run, judged together."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpaudit.results.result import AuditResult
from dpaudit.results.verdicts import Verdict


def step_down(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values by Holm's step-down, in the order given.

    Four lines here, because statsmodels, which has them, brings pandas along: 150 MB of an install.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return [float(value) for value in np.minimum(adjusted, 1.0)]


def holm(results: Sequence[AuditResult]) -> dict[str, float]:
    """Return adjusted p-values of the refuted claims of a run, by Holm's step-down.

    Where all claims with an adjusted p-value of at most alpha are called violated, some call is
    wrong with probability at most alpha, whatever depends on what. It takes into account by how
    wide a margin claims are refuted; where the union bound over the failure probabilities of the
    run, which were settled before the draws, is smaller, that is returned. Claims that were not
    refuted count with a p-value of 1, mutants not at all.

    Parameters
    ----------
    results : sequence of AuditResult
        All audits of the run.

    Returns
    -------
    dict
        By id, of the refuted claims.

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
