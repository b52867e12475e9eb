"""The smallest pair on which a claim is refuted, after the audit refuted the claim on another pair.

The reduction is a second exploration, with its own draws. Each smaller pair is audited on these
draws, and nothing of this is reported. The smallest pair is then frozen, and certified on fresh
draws like any other pair. The reduction happens only if the claim is refuted. In this case, no
mutants are audited, so the certificate of the smallest pair gets the second `failure_prob` that the
mutants would get.

The reduction and the certificate together make at most as many draws as the audit of the claim.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from dpaudit.engine.bets import LEAST_DRAWS
from dpaudit.engine.certificate import Certificate
from dpaudit.engine.mutation import Certify, patience
from dpaudit.engine.task import Task
from dpaudit.errors import MechanismError, MechanismTimeout
from dpaudit.mechanisms import AdditiveNoise, ExactMechanism, Outcomes, Scored
from dpaudit.neighbors import NeighborPair, Portfolio, family, shrink
from dpaudit.results import SmallestPair

SEARCH_SHARE = 0.6
"""Share of the draws that the reduction may spend; the certificate gets the rest."""

PARTS = 64, 16, 4
"""A smaller pair gets the draws divided by the first of these numbers that suffices for the pair of
the audit."""

CERTIFIED = 16
"""The certificate gets at most this many times the draws of one smaller pair."""

DOUBT = 1e-4
"""Failure probability of the exploratory audits, if the audit has a smaller one. A pair that is
accepted by mistake is not certified afterwards."""

MOST_PAIRS = 250
"""Largest number of pairs that are tried, for mechanisms whose calls are expensive or need no
draws."""


@dataclass(eq=False)
class _Reduction:
    """The draws that are left, and the test of one pair."""

    task: Task
    mechanism: Any
    certify: Certify
    left: int
    each: int = 0
    spent: int = 0
    tried: int = 0
    answers: dict[bytes, bool] = field(default_factory=dict)

    def is_refuted(self, pair: NeighborPair) -> bool:
        """Return whether the claim seems to be refuted on a pair.

        Raises
        ------
        StopIteration
            If draws, pairs or time are used up.
        """
        key = pair.form.digest(pair.left) + pair.form.digest(pair.right)
        if key not in self.answers:
            self.answers[key] = self._audit(pair)
        return self.answers[key]

    def _audit(self, pair: NeighborPair) -> bool:
        if self.spent + self.each > self.left or self.tried >= MOST_PAIRS:
            raise StopIteration
        if self.task.watch.is_spent():
            raise StopIteration
        self.tried += 1
        task = replace(
            self.task,
            pairs=family(pair),
            space=None,
            draws=self.each or self.task.draws,
            sequential=not isinstance(self.mechanism, ExactMechanism | AdditiveNoise),
        )
        try:
            found = self.certify(task, _unused(self.mechanism), f"smaller pair {self.tried}")
        except MechanismTimeout:
            raise StopIteration from None
        except MechanismError:
            self.spent += self.each
            return False
        self.spent += sum(found.draws.values())
        return found.refuted


def _unused(mechanism: Any) -> Any:
    """Return a copy that does not remember on which data calls failed."""
    if isinstance(mechanism, Scored):
        return mechanism.of(_unused(mechanism.mechanism))
    return mechanism.of(mechanism.mechanism) if isinstance(mechanism, Outcomes) else mechanism


def smallest_of(
    task: Task, mechanism: Any, found: Certificate, *, certify: Certify
) -> SmallestPair | None:
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
    SmallestPair or None
        None if no smaller pair was found, for example with few draws, or if the claim is not
        refuted on fresh draws.
    """
    draws = sum(found.draws.values())
    trial = replace(task, is_brief=True, is_trial=True, failure_prob=max(task.failure_prob, DOUBT))
    reduction = _Reduction(trial, mechanism, certify, int(SEARCH_SHARE * draws))
    with task.watch.calls_within(patience(found)):
        try:
            for part in PARTS if draws else (1,):
                reduction.each = max(draws // part, 2 * LEAST_DRAWS) if draws else 0
                if reduction._audit(found.pair):
                    break
            else:
                return None
        except StopIteration:
            return None
        space = task.space.pairs if isinstance(task.space, Portfolio) else ()
        pair = shrink(found.pair, reduction.is_refuted, [*task.pairs, *space])
        if pair is found.pair:
            return None
        rest = min(draws - reduction.spent, CERTIFIED * reduction.each) if draws else task.draws
        final = replace(
            task, is_brief=True, pairs=family(pair), space=None, draws=rest, wants_simple=True
        )
        try:
            certified = certify(final, _unused(mechanism), "smallest pair")
        except MechanismError:
            return None
    if not certified.refuted:
        return None
    return SmallestPair(
        pair_words=pair.describe(),
        epsilon=certified.epsilon,
        delta=certified.delta,
        witness=certified.witness,
        histogram=certified.histogram,
        draws={
            "explore": reduction.spent + certified.draws["explore"],
            "certify": certified.draws["certify"],
        },
        tried=reduction.tried,
        pair=pair,
        event=certified.event,
    )
