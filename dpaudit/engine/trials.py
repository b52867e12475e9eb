"""Exploratory audits on a limited number of draws.

A trial asks whether a claim seems to be refuted on another pair, or for a changed mechanism. Trials
certify nothing. They lead to the smallest pair (:mod:`dpaudit.engine.smallest`) and to the likely
causes (:mod:`dpaudit.engine.causes`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dpaudit.claims import Claim
from dpaudit.engine.bets import LEAST_DRAWS
from dpaudit.engine.certificate import Certificate
from dpaudit.engine.mutation import Certify
from dpaudit.engine.task import Task
from dpaudit.errors import ArgumentError, MechanismError, MechanismTimeout
from dpaudit.mechanisms import Outcomes, Scored, is_computed
from dpaudit.neighbors import NeighborPair, family

PARTS = 64, 16, 4
"""A trial gets the draws divided by the first of these numbers that suffices for the first pair."""

DOUBT = 1e-4
"""Failure probability of a trial, if the audit has a smaller one."""

MOST_TRIALS = 250
"""Largest number of trials, for mechanisms whose calls are expensive or need no draws."""


class OutOfDraws(Exception):
    """Draws, trials or time are used up."""


@dataclass(eq=False)
class Trials:
    """Exploratory audits that share some draws.

    Parameters
    ----------
    task : Task
        The task of the audit.
    mechanism : callable, AdditiveNoise or ExactMechanism
        The audited mechanism.
    certify : callable
        ``certify(task, mechanism, role) -> Certificate``.
    role : str
        Role of the trials, which determines the streams of random numbers.
    most : int
        Draws per dataset that all trials may spend. If it is 0, the mechanism needs no draws.
    """

    task: Task
    mechanism: Any
    certify: Certify
    role: str
    most: int
    each: int = 0
    spent: int = 0
    tried: int = 0

    def __post_init__(self) -> None:
        doubt = max(self.task.failure_prob, DOUBT)
        self.task = replace(self.task, is_brief=True, is_trial=True, failure_prob=doubt)

    def start(self, *pairs: NeighborPair, draws: int) -> NeighborPair | None:
        """Find the number of draws of one trial; return a pair on which it refutes the claim.

        Parameters
        ----------
        *pairs : NeighborPair
            Pairs on which the claim is refuted, with the preferred pair first.
        draws : int
            Draws per dataset that refuted the claim.

        Raises
        ------
        OutOfDraws
            If draws, trials or time are used up.
        """
        for part in PARTS if self.most else (1,):
            self.each = max(draws // part, 2 * LEAST_DRAWS) if self.most else 0
            for pair in pairs:
                if self.refutes(pair):
                    return pair
        return None

    def refutes(self, pair: NeighborPair, mechanism: Any = None, **arguments: Any) -> bool:
        """Return whether the claim seems to be refuted on a pair, with arguments of :meth:`audit`.

        A mechanism that fails on the pair refutes nothing.
        """
        found = self.audit(pair, mechanism, **arguments)
        return found is not None and found.refuted

    def audit(
        self,
        pair: NeighborPair,
        mechanism: Any = None,
        *,
        claim: Claim | None = None,
        draws: int | None = None,
        sequential: bool = True,
        failure_prob: float | None = None,
    ) -> Certificate | None:
        """Return the certificate of one trial, or None if the mechanism fails on the pair.

        Parameters
        ----------
        pair : NeighborPair
            The pair.
        mechanism : callable, AdditiveNoise or ExactMechanism, optional
            A changed mechanism; by default, the audited one.
        claim : Claim, optional
            Another claim.
        draws : int, optional
            Draws per dataset; by default, those of :meth:`start`.
        sequential : bool, optional
            Whether the trial stops as soon as the claim is refuted.
        failure_prob : float, optional
            Failure probability of the trial; by default, `DOUBT` or that of the audit.

        Raises
        ------
        OutOfDraws
            If draws, trials or time are used up.
        """
        draws = self.each if draws is None or not self.most else draws
        is_over = self.task.watch.is_spent()
        if self.spent + draws > self.most or self.tried >= MOST_TRIALS or is_over:
            raise OutOfDraws
        self.tried += 1
        mechanism = self.mechanism if mechanism is None else mechanism
        task = replace(
            self.task,
            claim=self.task.claim if claim is None else claim,
            pairs=family(pair),
            space=None,
            draws=draws or self.task.draws,
            failure_prob=failure_prob or self.task.failure_prob,
            sequential=sequential and not is_computed(mechanism),
        )
        try:
            found = self.certify(task, fresh(mechanism), f"{self.role} {self.tried}")
        except MechanismTimeout:
            raise OutOfDraws from None
        except (MechanismError, ArgumentError):  # also of a metric that fails on another pair
            self.spent += draws
            return None
        self.spent += sum(found.draws.values())
        return found


def fresh(mechanism: Any) -> Any:
    """Return a copy that does not remember on which data calls failed."""
    if isinstance(mechanism, Scored):
        return mechanism.of(fresh(mechanism.mechanism))
    return mechanism.of(mechanism.mechanism) if isinstance(mechanism, Outcomes) else mechanism
