"""The order of steps in every audit: explore, freeze, certify, test mutants, judge, report.

1. **Explore.** An instrument chooses a pair, events, sides and thresholds. The instrument may use
   the exploration draws any number of times, because they certify nothing.

2. **Freeze.** The instrument returns its choices, with a weight for each bound that it will
   compute. Before the first certifying draw, the driver divides `failure_prob` by these weights
   (:func:`dpaudit.engine.task.divide`).

3. **Certify.** The instrument computes each bound on fresh draws, with its share of `failure_prob`.
   The fresh draws are independent of the frozen choices. So, by its theorem in
   :mod:`dpaudit.stats`, each bound is wrong with probability at most its share. By the union bound,
   all certified numbers of the mechanism hold together, except with probability `failure_prob`.
   Therefore the witness, and the point of a curve, may be chosen afterwards.

4. **Test mutants, or shrink.** If the claim is not refuted, mutants of the mechanism pass through
   the same three steps. Mutants of the noise and given mutants share a second `failure_prob`, and
   mutants of the code share a third. If the claim is refuted, a smaller pair passes through these
   steps instead (:mod:`dpaudit.engine.smallest`), and gets the second `failure_prob`.

5. **Judge and report.** :func:`dpaudit.engine.concluding.conclude` compares the certificate with
   the claim and builds the result. This step computes no bound.

An instrument is a class with two methods. The methods of an instrument neither draw nor divide by
themselves. The :class:`Run` provides samplers (:class:`dpaudit.mechanisms.Sampler`), generators
(:meth:`Run.rng`) and shares. These samplers raise an error if an instrument draws in the wrong
stage.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar, runtime_checkable

from dpaudit.engine.additive.certify import ByCentres
from dpaudit.engine.additive.exact import ByClosedForm
from dpaudit.engine.bets import ByBets
from dpaudit.engine.causes import causes_of
from dpaudit.engine.certificate import Certificate
from dpaudit.engine.code_mutants import run_code_mutants
from dpaudit.engine.composed import BySteps
from dpaudit.engine.concluding import conclude
from dpaudit.engine.counts import ByCounts
from dpaudit.engine.exact import ByComputation
from dpaudit.engine.explore import least_draws
from dpaudit.engine.families import family_of
from dpaudit.engine.mutation import CodeRuns, MutantRuns, mutants_of, run_mutants
from dpaudit.engine.reproducer import reproducer_of
from dpaudit.engine.smallest import smallest_of
from dpaudit.engine.task import Run, Task
from dpaudit.errors import MechanismError
from dpaudit.mechanisms import AdditiveNoise, Composition, ExactMechanism, Sampler, mechanism_name
from dpaudit.mutants import Memory
from dpaudit.neighbors import Portfolio, family
from dpaudit.results import AuditResult, Cause, Reproducer, SmallestPair, short

_PART_ON_ITEMS = 4
"""A search for users with one item each gets this fraction of the draws (one in four) if this part
would have refuted the claim with the same events."""

_REASON = 200


class Frozen(Protocol):
    """The choices of the exploration.

    The choices do not change after the first certifying draw.
    """

    @property
    def weights(self) -> Sequence[float]:
        """Weight of each bound in `failure_prob`.

        The weights sum to at most 1.
        """


Settled = TypeVar("Settled", bound=Frozen)


@runtime_checkable
class Instrument(Protocol[Settled]):
    """A method that certifies how much privacy a mechanism loses."""

    def explore(self, run: Run) -> Settled:
        """Choose what to certify, on exploration draws of the run."""

    def certify(self, frozen: Settled, run: Run) -> Certificate:
        """Compute bounds on fresh draws; bound i has failure probability ``failure_probs[i]``."""


def drive(instrument: Instrument[Any], run: Run) -> Certificate:
    """Explore, freeze and certify; return the certificate."""
    frozen = instrument.explore(run)
    run.settle(frozen.weights)
    if run.role == "mechanism":
        run.task.watch.begin("certifying")
    return instrument.certify(frozen, run)


def instrument_of(task: Task, mechanism: Any) -> Instrument[Any]:
    """Return the instrument that suits a kind of mechanism."""
    if isinstance(mechanism, ExactMechanism):
        return ByComputation()
    if isinstance(mechanism, Composition):
        return BySteps()
    if isinstance(mechanism, AdditiveNoise):
        return ByCentres() if mechanism.is_random else ByClosedForm()
    if task.instrument is not None:
        chosen: Instrument[Any] = task.instrument
        return chosen
    return ByBets() if task.sequential else ByCounts()


def certificate_of(task: Task, mechanism: Any, role: str) -> Certificate:
    """Certify one mechanism.

    Parameters
    ----------
    task : Task
        The claim, the pairs, the budget and the seed.
    mechanism : callable, AdditiveNoise or ExactMechanism
        The mechanism, a mutant of it, or a variant with less noise.
    role : str
        Role of the mechanism, which determines the streams of random numbers.

    Raises
    ------
    MechanismError
        If the mechanism violates its contract, for example by changing the datasets.
    """
    with task.data_unchanged(mechanism_name(mechanism)):
        return drive(instrument_of(task, mechanism), Run(task, mechanism, role))


def certificate_of_stored(task: Task, sampler: Sampler, role: str) -> Certificate:
    """Certify stored outputs of a mechanism.

    `sampler` returns each output once.
    """
    return drive(ByCounts(), Run(task, None, role, stored=sampler))


def run_audit(task: Task, mechanism: Any, given: tuple[Any, ...] | None) -> AuditResult:
    """Audit a mechanism and, if its claim is not refuted, its mutants.

    Parameters
    ----------
    task : Task
        The claim, the pairs, the budget and the seed.
    mechanism : callable, AdditiveNoise or ExactMechanism
        The audited mechanism.
    given : tuple or None
        Mutants in addition to those of the mechanism's noise and code. With None, there are no
        mutants at all.
    """
    planned = 2 * task.draws * (1 if given is None else 2 + len(given))
    task.watch.total = task.watch.done + planned  # an attempt that failed late has already drawn
    start, memory = time.perf_counter(), Memory(mechanism)
    task.watch.begin("exploring")
    certificate = certificate_of(task, mechanism, "mechanism")
    seconds, here = time.perf_counter() - start, task.at(certificate.pair)
    mutant_runs, model = MutantRuns(wanted=given is not None), None
    if given is not None and not certificate.refuted:  # a refuted claim needs no proof of power
        task.watch.begin("testing mutants of the noise")
        made, private_amount = mutants_of(task, mechanism, certificate, given)
        mutant_runs = replace(
            run_mutants(task, mechanism, made, certificate, certify=certificate_of),
            private_amount=private_amount,
        )
        if any(mutant.killed for mutant in mutant_runs.results):  # else there is no power anyway
            task.watch.begin("testing mutants of the code")
            try:
                code = run_code_mutants(
                    task,
                    mechanism,
                    certificate,
                    certify=certificate_of,
                    seconds=seconds,
                    memory=memory,
                )
            except Exception as error:  # a change of strange code must not cost the user the audit
                code = CodeRuns(unseen=short(f"{type(error).__name__}: {error}", _REASON))
            mutant_runs = replace(mutant_runs, code=code)
        if task.instrument is None:
            model = family_of(here, mechanism, certificate, made)
    notes = _note_on_items(task, mechanism, certificate) if certificate.refuted else ()
    smallest: SmallestPair | None = None
    causes: tuple[Cause, ...] = ()
    again: Reproducer | None = None
    if certificate.refuted and task.shrinks and task.instrument is None:
        task.watch.begin("looking for the smallest pair")
        found = smallest_of(here, mechanism, certificate, certify=certificate_of)
        smallest, least = (None, None) if found is None else (found[0], found[0].pair)
        task.watch.begin("writing the program that reproduces the violation")
        again = reproducer_of(here, mechanism, certificate if found is None else found[1])
        task.watch.begin("looking for likely causes")
        try:
            causes = causes_of(here, mechanism, certificate, least, certify=certificate_of)
        except Exception as error:  # a hint must not cost the user a certified refutation
            reason = short(f"{type(error).__name__}: {error}", _REASON)
            notes += (f"Likely causes could not be found, because of {reason}.",)
    task.watch.finish()
    result = conclude(
        task,
        certificate,
        mutant_runs,
        mechanism=mechanism,
        family=model,
        notes=notes,
        has_cause=bool(causes),
    )
    return replace(result, smallest=smallest, causes=causes, again=again)


def _note_on_items(task: Task, mechanism: Any, found: Certificate) -> tuple[str, ...]:
    """Return a note that the claim may hold for single items, if the search chose the items.

    A second search gives each user one item. If it finds no violation, the note says so. This
    search certifies nothing, so it gets only a part of the draws. The logarithm of a p-value is
    about proportional to the draws, so it shows whether a part of them refutes an equal violation.
    """
    space = task.space
    if not isinstance(space, Portfolio) or not space.items or space.variant is None:
        return ()
    single = space.variant(items=1)
    example = single.example(rng=task.rng("one item", "example"))
    try:
        part = _PART_ON_ITEMS if found.p_value ** (1 / _PART_ON_ITEMS) <= task.failure_prob else 1
        draws = max(task.draws // part, least_draws(single, 1))
        alone = replace(task, space=single, pairs=family(example), draws=draws, is_brief=True)
        if certificate_of(alone, mechanism, "one item").refuted:
            return ()
    except MechanismError:
        return ()
    return (
        f"The claim is refuted for users with {space.items} items. For users with one item each, "
        f"a search with {draws:,} draws found no violation. If the claim protects one item, or if "
        "each user has only one, pass neighbors.portfolio(m=1).",
    )
