"""The audit of the mutants, on the claim and the pairs of the audit.

Bets on the pair of the certificate kill a large mistake within a few hundred draws. The other
mutants are audited again, by counts, on all pairs and with more draws. The largest mistakes are
audited first. The audits end when the mutants of the noise have together spent as many draws as the
audit itself. If no mutant was killed by then, the mutant that came closest to a refutation gets the
whole budget. Each mutant that the user gave gets the whole budget, too. Mutants of the code are
audited by :mod:`dpaudit.engine.code_mutants`.

The number of audits of each mutant is fixed in advance, and all audits of mutants share one
`failure_prob`. So the mutants of an audit add at most `failure_prob` to the family-wise error of a
run, and the audit itself adds at most the same amount.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from types import MethodType
from typing import Any

import numpy as np

from dpaudit.engine.bets import LEAST_DRAWS as LEAST_BET
from dpaudit.engine.certificate import Certificate
from dpaudit.engine.explore import least_draws
from dpaudit.engine.sessions import budget_mutants
from dpaudit.engine.task import Task, divide
from dpaudit.engine.views import inner_of, side_channel, side_channel_mutants
from dpaudit.errors import MechanismError, MechanismTimeout
from dpaudit.mechanisms import TIME_IS_OVER, may_be_sequential, mechanism_name
from dpaudit.mutants import (
    ALL,
    ALL_NOISE,
    CERTAIN,
    HALVED,
    REMOVED,
    TREATMENTS,
    Change,
    Mutant,
    NoiseMutants,
    are_apart,
    of_noise,
    range_words,
)
from dpaudit.neighbors import NeighborPair, Portfolio, family
from dpaudit.results import MutantResult, MutantStatus, short

ROUNDS = 3
"""Largest number of audits of a mutant: a brief one, a longer one, one more if none was killed."""

LEAST_ROUND, FIRST_ROUND = 4 * LEAST_BET, 2_000
"""Smallest and largest number of draws per dataset of a first audit."""

_FIRST_PARTS = 4  # first audits get the pool divided by this number
_SHARE = 0.5  # share of the rest of the pool, for second audits of changes of all calls

_AGAIN = 8  # least number of second audits that share a small budget

_RECORDED_PAIRS = 3
_NOTE = 200
_LEAST_PATIENCE = 10.0
TOO_FEW_DRAWS = "draws were too few"
ITSELF = "it is the audited mechanism itself"
_PLAIN = (bool, int, float, str, bytes, np.generic)
"""Bound arguments that are compared by value."""

_SKIPPED = "the same change of all calls survived"


Certify = Callable[[Task, Any, str], Certificate]


@dataclass(frozen=True)
class CodeRuns:
    """The results of the mutants of the code.

    Parameters
    ----------
    results : tuple of MutantResult
        The results.
    unseen : str
        Why some code gave no mutants; empty if all of it was read.
    left_out : int
        Number of mistakes that were not tried.
    seconds : float
        Seconds spent in the code of the mutants.
    """

    results: tuple[MutantResult, ...] = ()
    unseen: str = ""
    left_out: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class MutantRuns:
    """The results of all mutants.

    Parameters
    ----------
    results : tuple of MutantResult
        The results, in the order in which the mutants were made. The mutants that the user gave
        come first.
    unseen : str
        Why some randomness of the mechanism gave no mutants; empty if all of it gave mutants.
    likeliest : Certificate or None
        The surviving mutant that came closest to a refutation. If any given mutant survived, this
        mutant is one of the given mutants.
    seconds : float
        Seconds spent in the code of the mutants.
    failure_prob : float
        Failure probability of one audit of one mutant.
    wanted : bool
        Whether the user wanted mutants.
    private_amount : str
        Advice if private data determine the amount of some noise; otherwise empty.
    code : CodeRuns or None
        The results of the mutants of the code; None if none were wanted.
    """

    results: tuple[MutantResult, ...] = ()
    unseen: str = ""
    likeliest: Certificate | None = None
    seconds: float = 0.0
    failure_prob: float = 0.0
    wanted: bool = True
    code: CodeRuns | None = None
    private_amount: str = ""


def mutants_of(
    task: Task, mechanism: Any, found: Certificate, given: Sequence[Any]
) -> tuple[NoiseMutants, str]:
    """Return the mutants of an audit, and advice if private data determine the amount of noise.

    The given mutants come first, and the mutants of the noise follow. The advice is empty if the
    amounts of noise are equal on both sides of the recorded pairs.

    Parameters
    ----------
    task : Task
        The task of the audit.
    mechanism : callable, AdditiveNoise or ExactMechanism
        The audited mechanism.
    found : Certificate
        Certificate of the mechanism. The noise is recorded on the pair of this certificate and on a
        few other pairs.
    given : sequence
        Mutants that the user gave: mechanisms, and changes such as ``without("my_module.clip")``.
    """
    observed = side_channel(mechanism)
    if observed is not None:
        mutants = (*named(given, mechanism), *side_channel_mutants(observed))
        return NoiseMutants((), mutants), ""
    made, pairs = NoiseMutants((), ()), [found.pair]
    # The search may not have tried the other pairs, and the mechanism may fail on them.
    for pairs in (_recorded_pairs(task, found), [found.pair]):
        datasets = [data for pair in pairs for data in (pair.left, pair.right)]
        try:
            with task.watch.calls_within(patience(found)):
                made = of_noise(mechanism, datasets, seed=task.seed, watch=task.watch)
            break
        except MechanismError as error:
            if task.watch.is_over:
                raise
            words = f"its noise could not be recorded: {short(str(error), _NOTE)}"
            made = replace(made, unseen=words)
    try:
        with task.watch.calls_within(patience(found)), task.watch.call(mechanism_name(mechanism)):
            states = list(budget_mutants(mechanism, datasets, rng=task.rng("states")))
    except Exception as error:
        if task.watch.is_over:
            raise
        words = f"its state could not be read: {short(str(error), _NOTE)}"
        states, made = [], replace(made, unseen=made.unseen or words)
    mutants = (*named(given, mechanism), *made.mutants, *states)
    return replace(made, mutants=mutants), _private_amount(made, pairs)


def _recorded_pairs(task: Task, found: Certificate) -> list[NeighborPair]:
    """Return the pairs on which the noise is recorded: pairs of each relation come first."""
    pairs = task.space.pairs if isinstance(task.space, Portfolio) else tuple(task.pairs)
    firsts = {pair.relation: pair for pair in reversed((found.pair, *pairs))}
    chosen = {id(pair): pair for pair in (found.pair, *firsts.values(), *pairs)}
    return list(chosen.values())[:_RECORDED_PAIRS]


def _private_amount(made: NoiseMutants, pairs: Sequence[NeighborPair]) -> str:
    """Return advice if some noise has another amount on the two sides of a pair, or ""."""
    if made.recording is None:
        return ""
    for at, pair in enumerate(pairs):
        for key, left, right in made.recording.amounts_of_noise(2 * at, 2 * at + 1):
            if are_apart(left, right):
                asked = f"the pair {pair.recipe!r}" if at else "this pair"
                where = made.recording.sites[made.recording.keys.index(key)].where
                amount = TREATMENTS[key[0]].amount
                return (
                    f"Check the noise of {where}. Its {amount} depends on private data: on "
                    f"{asked}, it is {range_words(left)} on the left and {range_words(right)} on "
                    f"the right. Such a {amount} may reveal a user, unless the proof of the "
                    "mechanism allows it, as smooth sensitivity does."
                )
    return ""


def patience(found: Certificate) -> float:
    """Return the number of seconds after which a call of a mutant counts as never ending."""
    return _LEAST_PATIENCE + 2 * found.mechanism_seconds


def named(given: Iterable[Any], mechanism: Any) -> list[Mutant]:
    """Return the given mutants, each with a different name."""
    mutants: list[Mutant] = []
    for one in given:
        name = one.name if isinstance(one, Change) else mechanism_name(one)
        made = one(mechanism) if isinstance(one, Change) else one
        count = sum(mutant.name.partition(" #")[0] == name for mutant in mutants)
        mutants.append(Mutant(f"{name} #{count + 1}" if count else name, made))
    return mutants


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two mechanisms are one function with equal arguments bound to it."""
    (function, bound), (other_function, other_bound) = _bound(one), _bound(other)
    are_methods = isinstance(function, MethodType) and isinstance(other_function, MethodType)
    if not (function is other_function or (are_methods and function == other_function)):
        return False
    return bound.keys() == other_bound.keys() and all(
        a is b or (type(a) is type(b) and isinstance(a, _PLAIN) and bool(a == b))
        for a, b in ((value, other_bound[key]) for key, value in bound.items())
    )


def _bound(mechanism: Any) -> tuple[Any, dict[Any, Any]]:
    """Return the function of a mechanism, and the arguments that are bound to it."""
    mechanism = inner_of(mechanism)
    if not isinstance(mechanism, functools.partial):
        return mechanism, {}
    return mechanism.func, {**dict(enumerate(mechanism.args)), **mechanism.keywords}


@dataclass(eq=False)
class _Contender:
    """A mutant that is being audited."""

    mutant: Mutant
    index: int
    rounds: int = 0
    draws: int = 0
    found: Certificate | None = None
    note: str = ""
    is_skipped: bool = False
    seconds: float = 0.0

    @property
    def is_killed(self) -> bool:
        """Whether the audit killed the mutant."""
        return self.found is not None and self.found.refuted and not self.note

    @property
    def is_removal(self) -> bool:
        """Whether the mutant removes noise, or makes a choice certain."""
        return self.mutant.change in CERTAIN

    @property
    def draws_outputs(self) -> bool:
        """Whether the mutant can be audited sequentially."""
        return may_be_sequential(self.mutant.mechanism)

    @property
    def certified(self) -> float:
        """Certified epsilon."""
        return 0.0 if self.found is None else self.found.epsilon.lower

    @property
    def is_alive(self) -> bool:
        """Whether another audit could kill the mutant."""
        return not (self.note or self.is_killed or self.is_skipped)

    def audit_once(self, task: Task, certify: Certify) -> None:
        """Audit the mutant once more.

        A mutant that cannot run says nothing about the mechanism.
        """
        if task.watch.is_spent():
            self.note = TIME_IS_OVER
            return
        self.rounds += 1
        role = f"mutant {self.index} round {self.rounds}"
        try:
            found = certify(task, self.mutant.mechanism, role)
        except MechanismError as error:
            if isinstance(error, MechanismTimeout) and task.watch.is_over:
                raise
            own = f"{mechanism_name(self.mutant.mechanism)} "
            self.note = short(str(error).removeprefix(own), _NOTE)
            return
        self.draws += sum(found.draws.values())
        self.seconds += found.mechanism_seconds
        self.found = found  # each audit uses more draws than those before

    def result(self, failure_prob: float) -> MutantResult:
        """Return the result of the mutant."""
        mutant, found = self.mutant, self.found
        if found is not None and not found.refuted and not mutant.has_effect:
            self.note = "its code was never executed on these data"
        status = MutantStatus.SURVIVED
        if self.is_killed:
            status = MutantStatus.KILLED
        elif self.note or found is None or self.is_skipped:
            status = MutantStatus.NOT_RUN
        return MutantResult(
            mutant.name,
            status,
            self.certified,
            failure_prob if self.draws else 0.0,
            self.draws,
            "" if found is None else found.pair.describe(),
            found.witness.event if found is not None and found.refuted else "",
            mutant.noise,
            mutant.change in CERTAIN,
            mutant.calls,
            self.note or (_SKIPPED if self.is_skipped else TOO_FEW_DRAWS * (found is None)),
            mutant.change,
        )


@dataclass(eq=False)
class _Contest:
    """All mutants of one audit, and the remaining draws per dataset for mutants of the noise.

    If a change of all calls survived, the same change of a single call is not audited.
    """

    task: Task
    certify: Certify
    pair: NeighborPair
    contenders: list[_Contender]
    pool: int = field(init=False)

    def __post_init__(self) -> None:
        self.pool = self.task.draws

    def play(self) -> None:
        """Audit all mutants that matter, and audit the surviving mutants again."""
        of_noise = [c for c in self.contenders if c.mutant.noise]
        gone = [c for c in of_noise if c.mutant.rank == 0]
        everything = [c for c in gone if c.mutant.noise == ALL_NOISE]
        self._first(everything)
        self._first([c for c in gone if c not in everything])
        # Another mutant may have shown that the same removal is detected.
        noticed = {(c.mutant.noise, c.mutant.calls) for c in gone if c.is_killed and c.is_removal}
        unsettled = [
            c for c in gone if not (c.is_removal and (c.mutant.noise, c.mutant.calls) in noticed)
        ]
        self._again(unsettled, _SHARE)
        milder = [c for c in of_noise if c.mutant.calls == ALL and c not in gone]
        self._first(milder)
        self._again(milder, _SHARE)
        # Only at this point is it known which changes of all calls survive.
        single = [c for c in of_noise if c.mutant.calls != ALL]
        survived = {
            (c.mutant.noise, c.mutant.change)
            for c in of_noise
            if c.mutant.calls == ALL and c.found is not None and not c.is_killed and not c.note
        }
        for contender in single:
            contender.is_skipped = (contender.mutant.noise, contender.mutant.change) in survived
        self._first(single)
        self._again(single, 1.0)
        given = [c for c in self.contenders if not c.mutant.noise]
        self._first(given)
        self._audit_each(given, self.task, self.task.draws)
        if not any(c.is_killed for c in self.contenders):
            self._last_resort([c for c in of_noise if c.mutant.calls == ALL])

    def _first(self, contenders: list[_Contender]) -> None:
        """Bet on the pair of the audit, with only a few draws."""
        alive = [c for c in contenders if c.is_alive]
        if alive and alive[0].mutant.noise and alive[0].mutant.rank:
            # Audit the smaller mistakes only as long as there are draws for them.
            alive = alive[: max(self.pool, 0) // LEAST_ROUND]
        if alive:
            task = replace(self.task, pairs=family(self.pair), space=None)
            each = self.pool // (_FIRST_PARTS * len(alive))
            self._audit_each(alive, task, min(max(each, LEAST_ROUND), FIRST_ROUND), bet=True)

    def _again(self, contenders: list[_Contender], share: float) -> None:
        """Audit some mutants on all pairs, by counts, until a share of the draws is used up."""
        pool = int(share * self.pool)
        alive = [c for c in contenders if c.is_alive]
        alive.sort(  # grossest change first; among equals, the closest mutant
            key=lambda c: (c.mutant.rank, c.mutant.change != REMOVED, -c.certified, -_estimated(c))
        )
        least = min(2 * FIRST_ROUND, max(self.task.draws // _AGAIN, 2 * LEAST_ROUND))
        alive = alive[: max(pool, 0) // least]
        if alive:
            self._audit_each(alive, self.task, pool // len(alive))

    def _last_resort(self, whole: list[_Contender]) -> None:
        """Spend the budget of the audit on one mutant, because without a kill there is no power.

        A mutant with less noise is preferred to a selection that is made certain. The certain
        selection may be the same on both sides. Among these mutants, the one with the largest
        certified epsilon is preferred, and then the one with the largest mistake. Estimates from so
        few draws are too inaccurate for this choice.
        """
        alive = [c for c in whole if c.is_alive]
        alive.sort(key=lambda c: (c.mutant.change not in (REMOVED, HALVED), -c.certified))
        self._audit_each(alive[:1], self.task, self.task.draws)

    def _audit_each(
        self, contenders: list[_Contender], task: Task, draws: int, *, bet: bool = False
    ) -> None:
        task = replace(task, draws=min(draws, self.task.draws), sequential=False)
        if task.draws < least_draws(task.space, len(task.pairs)):
            task = replace(task, pairs=family(self.pair), space=None)
        betting = replace(task, sequential=bet and task.draws >= 2 * LEAST_BET)
        for contender in filter(lambda c: c.is_alive, contenders):
            before = contender.draws
            contender.audit_once(betting if contender.draws_outputs else task, self.certify)
            self.pool -= (contender.draws - before) * bool(contender.mutant.noise)


def _estimated(contender: _Contender) -> float:
    return 0.0 if contender.found is None else contender.found.epsilon.value


def run_mutants(
    task: Task, mechanism: Any, made: NoiseMutants, found: Certificate, *, certify: Certify
) -> MutantRuns:
    """Audit the mutants of a mechanism.

    Parameters
    ----------
    task : Task
        The task of the audit.
    mechanism : callable, AdditiveNoise or ExactMechanism
        The audited mechanism. A given mutant that is this mechanism is not run. It would be killed
        only by chance.
    made : NoiseMutants
        Mutants of the mechanism, as returned by :func:`mutants_of`.
    found : Certificate
        The certificate of the mechanism.
    certify : callable
        The function that certified it: ``certify(task, mechanism, role) -> Certificate``.
    """
    if not made.mutants:
        return MutantRuns(unseen=made.unseen)
    each = divide(task.failure_prob, len(made.mutants))[0]
    contest = _Contest(
        replace(task, failure_prob=divide(each, ROUNDS)[0], is_brief=True),
        certify,
        found.pair,
        [
            _Contender(mutant, index, note=ITSELF * _is_same(mutant.mechanism, mechanism))
            for index, mutant in enumerate(made.mutants)
        ],
    )
    with task.watch.calls_within(patience(found)):
        contest.play()
    seen = [c for c in contest.contenders if c.found is not None and not c.note]
    survivors = [c for c in seen if not c.is_killed]
    given = [c for c in survivors if not c.mutant.noise]
    likeliest = max(given or survivors, key=_estimated, default=None)
    return MutantRuns(
        tuple(contender.result(each) for contender in contest.contenders),
        made.unseen,
        None if likeliest is None else likeliest.found,
        sum(c.seconds for c in contest.contenders),
        contest.task.failure_prob,
    )
