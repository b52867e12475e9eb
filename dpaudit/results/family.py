"""The refutations of a whole run, judged together."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpaudit.results.result import AuditResult
from dpaudit.results.verdicts import Verdict


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
    from statsmodels.stats.multitest import multipletests  # late: slow to import

    adjusted = multipletests([result.p_value for result in results], method="holm")[1]
    union = math.fsum(result.failure_prob for result in results)
    return {
        result.id: min(float(p), union)
        for result, p in zip(results, adjusted, strict=True)
        if result.verdict is Verdict.REFUTED
    }
