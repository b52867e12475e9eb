"""From a certificate and the fates of its mutants to the result of an audit."""

from __future__ import annotations

from dpaudit.engine.certificate import Certificate
from dpaudit.engine.mutation import Fates
from dpaudit.engine.notes import notes_on
from dpaudit.engine.provenance import versions
from dpaudit.engine.task import Task
from dpaudit.results import AuditResult, Slack, Verdict
from dpaudit.stats import curves_of


def result_of(
    task: Task,
    found: Certificate,
    fates: Fates,
    judged: tuple[Verdict, str],
    *,
    mechanism: str,
    reach: float | None,
    seconds: float,
    advice: str,
    pair_words: str = "",
    slack: Slack | None = None,
    more_notes: tuple[str, ...] = (),
) -> AuditResult:
    """Put a result together.

    Parameters
    ----------
    task : Task
        What was asked.
    found : Certificate
        What was found.
    fates : Fates
        What became of the mutants.
    judged : (Verdict, str)
        The verdict and the sentence behind it.
    mechanism : str
        Its name.
    reach : float or None
        Epsilon that would have been refuted.
    seconds : float
        That the audit took.
    advice : str
        What to try next; empty where nothing is.
    pair_words : str, optional
        Instead of a pair: where there is none, because the datasets are elsewhere.
    slack : Slack, optional
        By how much the noise could shrink.
    more_notes : tuple of str, optional
        Besides those of the certificate.
    """
    claim = task.claim
    verdict, reason = judged
    epsilon, delta = found.point
    return AuditResult(
        id=task.name,
        mechanism=mechanism,
        claim={
            "notion": claim.notion,
            "epsilon": epsilon,
            "delta": delta,
            "relation": str(claim.relation or found.pair.relation),
            "source": claim.source,
            "words": str(claim),
            "parameters": claim.to_json(),
        },
        pair_words=pair_words or found.pair.describe(),
        verdict=verdict,
        reason=reason,
        epsilon=found.epsilon,
        delta=found.delta,
        profile=found.profile,
        witness=found.witness,
        histogram=found.histogram,
        failure_prob=found.epsilon.failure_prob,
        p_value=found.p_value,
        draws=found.draws,
        mutants=fates.results,
        expected=None,
        seed=task.seed,
        seconds=seconds,
        mechanism_seconds=found.mechanism_seconds + fates.seconds,
        versions=versions(),
        curves=curves_of(found.bounds, task.grid, task.claimed, delta, found.epsilon.lower)
        if found.bounds
        else None,
        detectable_epsilon=reach,
        sequential=found.sequential,
        long_profile=found.long_profile,
        search=found.search,
        slack=slack,
        notes=notes_on(found, fates.unseen if fates.results else "") + more_notes,
        left_out=found.left_out,
        advice=advice,
        pair=None if pair_words else found.pair,
        event=found.event,
    )
