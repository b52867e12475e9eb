"""The audit of mutants of the mechanism's code.

Each mutant first makes a few trial draws on both sides of the pairs of the audit. A mutant whose
draws equal those of the mechanism is not audited. Bets audit each of the others on the pair whose
sides differ most in the trial draws. The surviving mutants are audited again, by counts, on this
pair and on the pair of the certificate. All audits together make half as many draws as the audit of
the mechanism, and they share one further `failure_prob`.

Every run of a mutant is in a forked process. So changed code, values that the mutant keeps, and
calls that never end have no effect on the audit or on later audits. A process inherits what the
mechanism kept, which would hide what changed code returns. Therefore each process first clears the
caches of functools. A mechanism that keeps values in another way has no mutants of its code.

A mutant of the code may satisfy the claim. So a survivor says nothing about the power of the audit,
and no mutant of the code shows this power.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpaudit.engine.bets import LEAST_DRAWS as LEAST_BET
from dpaudit.engine.certificate import Certificate
from dpaudit.engine.mutation import (
    FIRST_ROUND,
    LEAST_ROUND,
    TOO_FEW_DRAWS,
    Certify,
    CodeRuns,
    patience,
)
from dpaudit.engine.task import Task, divide
from dpaudit.mechanisms import TIME_IS_OVER, ChildError, in_child, is_computed
from dpaudit.mutants import Memory, Mutant, forget, of_code
from dpaudit.neighbors import NeighborPair, Portfolio, family
from dpaudit.results import MutantResult, MutantStatus, short

_ROUNDS = 2
_MOST = 4  # mutants of each kind
_SHARE = 0.5  # draws of all mutants, as a share of the draws of the audit
_FIRST_PARTS = 4  # the first audits get the pool divided by this number
_DRAWS_FOR_A_PAIR, _MOST_PAIRS = 3000, 32
_TRIAL_DRAWS = 4, 32
_PATIENCE = 20.0  # times the seconds of the mechanism's audit after which a process is killed
_LEAST_SECONDS = 20.0
_NOTE = 200

_NO_ALARM = "no time limit works in a thread or on this system, and a mutant may never end"
_LIMIT_IS_OVER = "the time limit of the audit is over"
_KEPT = "the mechanism keeps values between calls ({}), which would hide what changed code returns"
_THREADED = "{} does not work in a forked process"


@dataclass(frozen=True)
class _Brief:
    """What a process reports of the certificate of a mutant."""

    refuted: bool
    lower: float
    value: float
    draws: int
    seconds: float
    pair_words: str
    event: str

    @classmethod
    def of(cls, found: Certificate) -> _Brief:
        return cls(
            found.refuted,
            found.epsilon.lower,
            found.epsilon.value,
            sum(found.draws.values()),
            found.mechanism_seconds,
            found.pair.describe(),
            found.witness.event if found.refuted else "",
        )


@dataclass(eq=False)
class _Contender:
    """A mutant that is being audited."""

    mutant: Mutant
    index: int
    note: str
    rounds: int = 0
    draws: int = 0
    seconds: float = 0.0
    found: _Brief | None = None

    @property
    def is_alive(self) -> bool:
        """Whether another audit could kill the mutant."""
        return not self.note and not (self.found is not None and self.found.refuted)

    @property
    def pair(self) -> NeighborPair:
        """The pair on which the mutant differs most."""
        assert self.mutant.pair is not None
        return self.mutant.pair

    def audit(self, task: Task, certify: Certify, limit: float, caches: Sequence[Any]) -> None:
        """Audit the mutant once more, in a process of its own, after it cleared the caches."""
        self.rounds += 1
        role = f"code mutant {self.index} round {self.rounds}"

        def compute() -> _Brief:
            forget(caches)  # the original filled them
            task.watch.progress, task.watch.is_warned = None, True
            return _Brief.of(certify(task, self.mutant.mechanism, role))

        task.watch.begin(task.watch.stage)  # show the time: a child process reports no draws
        try:
            self.found = in_child(compute, limit=limit)
        except ChildError as error:
            self.note = short(str(error), _NOTE)
            return
        self.draws += self.found.draws
        self.seconds += self.found.seconds

    def result(self, failure_prob: float) -> MutantResult:
        """Return the result of the mutant."""
        found, note = self.found, self.note or TOO_FEW_DRAWS * (self.found is None)
        status = MutantStatus.NOT_RUN
        if not note and found is not None:
            status = MutantStatus.KILLED if found.refuted else MutantStatus.SURVIVED
        return MutantResult(
            self.mutant.name,
            status,
            0.0 if found is None else found.lower,
            failure_prob if self.draws else 0.0,
            self.draws,
            "" if found is None else found.pair_words,
            "" if found is None else found.event,
            note=note,
            kind=self.mutant.kind,
        )


def run_code_mutants(
    task: Task,
    mechanism: Any,
    found: Certificate,
    *,
    certify: Certify,
    seconds: float,
    memory: Memory,
) -> CodeRuns | None:
    """Audit the mutants of a mechanism's code; return None if the task wants none.

    Parameters
    ----------
    task : Task
        The task of the audit.
    mechanism : callable, AdditiveNoise or ExactMechanism
        The audited mechanism.
    found : Certificate
        The certificate of the mechanism.
    certify : callable
        The function that certified it: ``certify(task, mechanism, role) -> Certificate``.
    seconds : float
        Seconds that the certificate took. A process that takes much longer is killed.
    memory : Memory
        What the mechanism kept before the audit.
    """
    if not task.edits or task.instrument is not None:
        return None
    if unseen := _why_not(task, found):
        return CodeRuns(unseen=unseen)
    if kept := memory.changed():
        return CodeRuns(unseen=_KEPT.format(kept))
    limit = max(_LEAST_SECONDS + _PATIENCE * seconds, 2 * patience(found))
    known = list(task.space.pairs if isinstance(task.space, Portfolio) else task.pairs)
    count = min(max(task.draws // _DRAWS_FOR_A_PAIR, 1), _MOST_PAIRS, len(known))
    pairs = [found.pair, *(known[at * len(known) // count] for at in range(count))]
    with task.watch.calls_within(patience(found)):
        made = of_code(
            mechanism,
            list(dict.fromkeys(pairs)),
            seed=task.seed,
            size=min(max(task.draws // 100, _TRIAL_DRAWS[0]), _TRIAL_DRAWS[1]),
            most=_MOST,
            watch=task.watch,
            limit=limit,
        )
    if not made.mutants:
        return CodeRuns(unseen=made.unseen)
    each = divide(task.failure_prob, len(made.mutants))[0]
    contenders = [_Contender(mutant, at, mutant.note) for at, mutant in enumerate(made.mutants)]
    asked = replace(
        task,
        failure_prob=divide(each, _ROUNDS)[0],
        is_brief=True,
        sequential=False,
        space=None,
        workers=None,
        cache_dir=None,
    )
    with task.watch.calls_within(patience(found)):
        _audit_all(
            asked, contenders, found.pair, lambda c, t: c.audit(t, certify, limit, made.caches)
        )
    return CodeRuns(
        tuple(contender.result(each) for contender in contenders),
        made.unseen,
        made.left_out,
        sum(contender.seconds for contender in contenders),
    )


def _why_not(task: Task, found: Certificate) -> str:
    """Return why no mutant of the code can be run, or ""."""
    if task.watch.is_spent():
        return TIME_IS_OVER
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not hasattr(signal, "setitimer"):
        return _NO_ALARM
    sides = (found.pair.left, found.pair.right)
    if any(type(side).__module__.partition(".")[0] == "polars" for side in sides):
        return _THREADED.format("polars")
    return _THREADED.format("JAX") if "jax" in sys.modules else ""


def _audit_all(
    task: Task,
    contenders: list[_Contender],
    pair: NeighborPair,
    audit: Callable[[_Contender, Task], None],
) -> None:
    """Audit all mutants by bets, and the survivors by counts, as long as there are draws."""
    pool = int(_SHARE * task.draws)

    def spend(contender: _Contender, asked: Task) -> None:
        nonlocal pool
        if task.watch.is_spent() or task.watch.is_over:
            contender.note = TIME_IS_OVER if task.watch.is_spent() else _LIMIT_IS_OVER
            return
        before = contender.draws
        audit(contender, asked)
        pool -= contender.draws - before

    alive = [c for c in contenders if c.is_alive][: pool // LEAST_ROUND]
    draws = min(max(pool // (_FIRST_PARTS * max(len(alive), 1)), LEAST_ROUND), FIRST_ROUND)
    for contender in alive:
        asked = replace(task, draws=draws, pairs=family(contender.pair))
        computes = is_computed(contender.mutant.mechanism)
        bets = draws >= 2 * LEAST_BET and not computes
        spend(contender, replace(asked, sequential=bets))
    alive = [c for c in alive if c.is_alive and c.found is not None]
    alive.sort(key=lambda c: (-c.found.lower, -c.found.value))  # type: ignore[union-attr]
    alive = alive[: max(pool, 0) // (2 * LEAST_ROUND)]
    for at, contender in enumerate(alive):
        pairs = list(dict.fromkeys((contender.pair, pair)))
        draws = min(pool // (len(alive) - at), task.draws)
        spend(contender, replace(task, draws=draws, pairs=family(pairs)))
