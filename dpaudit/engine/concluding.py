"""Judge a certificate beside its mutants, and put the result of an audit together."""

from __future__ import annotations

from typing import Any

from dpaudit.engine.certificate import Certificate
from dpaudit.engine.families import Family, family_of_mutant
from dpaudit.engine.judging import advice, judge
from dpaudit.engine.mutation import Fates
from dpaudit.engine.notes import notes_on, notes_on_task
from dpaudit.engine.provenance import versions
from dpaudit.engine.reach import detectable
from dpaudit.engine.task import Task
from dpaudit.mechanisms import mechanism_name
from dpaudit.results import AuditResult, Verdict
from dpaudit.stats import curves_of


def conclude(
    task: Task,
    found: Certificate,
    fates: Fates,
    *,
    mechanism: Any,
    family: Family | None = None,
    pair_words: str = "",
    notes: tuple[str, ...] = (),
) -> AuditResult:
    """Judge what was found, and return the result.

    Parameters
    ----------
    task : Task
        What was asked.
    found : Certificate
        What was found of the mechanism.
    fates : Fates
        What became of the mutants.
    mechanism : callable, AdditiveNoise, ExactMechanism or str
        What was audited, or its name.
    family : Family, optional
        The distributions of the mechanism with less noise, where they are known.
    pair_words : str, optional
        Instead of a pair: where there is none, because the datasets are elsewhere.
    notes : tuple of str, optional
        Besides those of the certificate.
    """
    claim = task.claim
    epsilon, delta = found.point
    verdict, reason = judge(task, found, fates)
    of_mutant = None
    if verdict is Verdict.NO_POWER and fates.survivor is not None:
        of_mutant = family_of_mutant(task, fates)
    next_step = advice(task, found, verdict, fates, family=family, of_mutant=of_mutant)
    return AuditResult(
        id=task.name,
        mechanism=mechanism if isinstance(mechanism, str) else mechanism_name(mechanism),
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
        seconds=0.0,
        mechanism_seconds=found.mechanism_seconds + fates.seconds,
        versions=versions(),
        curves=curves_of(
            found.bounds, task.grid, task.claimed, delta, found.epsilon.lower, least_mu=found.mu
        )
        if found.bounds
        else None,
        detectable_epsilon=detectable(task, found, family),
        sequential=found.sequential,
        canaries=found.canaries,
        long_profile=found.long_profile,
        search=found.search,
        notes=notes_on(found, fates.unseen if fates.results else "")
        + notes
        + notes_on_task(task, found),
        left_out=found.left_out,
        advice=next_step,
        pair=None if pair_words else found.pair,
        event=found.event,
    )
