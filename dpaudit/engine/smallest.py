"""The smallest pair on which a claim is refuted, after the audit refuted the claim on another pair.

The reduction is a second exploration, with its own draws. Each smaller pair is audited on these
draws, and nothing of this is reported. The smallest pair is then frozen, and certified on fresh
draws like any other pair. The reduction happens only if the claim is refuted. In this case, no
mutants are audited, so the certificate of the smallest pair gets the second `failure_prob` that the
mutants would get.

The reduction and the certificate together make at most as many draws as the audit of the claim.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpaudit.engine.certificate import Certificate
from dpaudit.engine.mutation import Certify, patience
from dpaudit.engine.task import Task
from dpaudit.engine.trials import OutOfDraws, Trials, fresh
from dpaudit.errors import MechanismError
from dpaudit.neighbors import NeighborPair, Portfolio, family, shrink
from dpaudit.results import SmallestPair

SEARCH_SHARE = 0.6
"""Share of the draws that the reduction may spend; the certificate gets the rest."""

CERTIFIED = 16
"""The certificate gets at most this many times the draws of one smaller pair."""


def smallest_of(
    task: Task, mechanism: Any, found: Certificate, *, certify: Certify
) -> tuple[SmallestPair, Certificate] | None:
    """Return the smallest pair on which a claim is refuted, with its certificate.

    Parameters
    ----------
    task : Task
        The task of the audit.
    mechanism : callable, AdditiveNoise or ExactMechanism
        The audited mechanism.
    found : Certificate
        Certificate that refutes the claim.
    certify : callable
        The function that certified it: ``certify(task, mechanism, role) -> Certificate``.

    Returns
    -------
    tuple of SmallestPair and Certificate, or None
        None if no smaller pair was found, for example with few draws, or if the claim is not
        refuted on fresh draws.
    """
    if task.claim.depends_on_pair:  # a smaller pair would be judged by another claim
        return None
    draws = sum(found.draws.values())
    trials = Trials(task, mechanism, certify, "smaller pair", int(SEARCH_SHARE * draws))
    answers: dict[bytes, bool] = {}

    def is_refuted(pair: NeighborPair) -> bool:
        key = pair.form.digest(pair.left) + pair.form.digest(pair.right)
        if key not in answers:
            try:
                answers[key] = trials.refutes(pair)
            except OutOfDraws:
                raise StopIteration from None
        return answers[key]

    with task.watch.calls_within(patience(found)):
        try:
            if trials.start(found.pair, draws=draws) is None:
                return None
        except OutOfDraws:
            return None
        space = task.space.pairs if isinstance(task.space, Portfolio) else ()
        pair = shrink(found.pair, is_refuted, [*task.pairs, *space])
        if pair is found.pair:
            return None
        rest = min(draws - trials.spent, CERTIFIED * trials.each) if draws else task.draws
        final = replace(
            task, is_brief=True, pairs=family(pair), space=None, draws=rest, wants_simple=True
        )
        try:
            certified = certify(final, fresh(mechanism), "smallest pair")
        except MechanismError:
            return None
    if not certified.refuted:
        return None
    smallest = SmallestPair(
        pair_words=pair.describe(),
        epsilon=certified.epsilon,
        delta=certified.delta,
        witness=certified.witness,
        histogram=certified.histogram,
        draws={
            "explore": trials.spent + certified.draws["explore"],
            "certify": certified.draws["certify"],
        },
        tried=trials.tried,
        pair=pair,
        event=certified.event,
    )
    return smallest, certified
