"""Judge a certificate beside its mutants, and put the result of an audit together."""

from __future__ import annotations

import functools
import math
import platform
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any

import numpy as np

from dpaudit.data import is_frame
from dpaudit.engine.certificate import Certificate
from dpaudit.engine.chances import WITHIN_REACH, Chances
from dpaudit.engine.families import Added, Family
from dpaudit.engine.mutation import Fates
from dpaudit.engine.notes import notes_on, notes_on_task
from dpaudit.engine.reach import detectable, draws_to_begin_with, is_beyond_reach
from dpaudit.engine.task import Task
from dpaudit.errors import ArgumentError
from dpaudit.events import Guess, approximate_lower, approximate_upper
from dpaudit.mechanisms import mechanism_name
from dpaudit.mutants import ALL_NOISE
from dpaudit.results import (
    AuditResult,
    Diagnostics,
    Fate,
    MutantResult,
    Verdict,
    at_least,
    beyond,
    half_noticed,
    mutation_score,
    unnoticed,
)
from dpaudit.stats import curves_of

# --- what the numbers of an audit depend on besides its arguments -------------------------------


def versions() -> dict[str, str]:
    """Versions of everything that the numbers of an audit depend on."""
    packages = ("dpaudit", "numpy", "scipy", "scikit-learn")
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found | {"blas": _blas()}


@functools.cache
def _blas() -> str:
    """Name the library, version and kernels by which numpy multiplies matrices.

    Kernels are chosen by the processor, and sum in different orders.
    """
    from threadpoolctl import threadpool_info

    found = [one for one in threadpool_info() if one["user_api"] == "blas"]
    found.sort(key=lambda one: "numpy" not in str(one["filepath"]))  # scipy may bring its own
    names = ("internal_api", "version", "architecture")
    return " ".join(str(found[0].get(name) or "unknown") for name in names) if found else "unknown"


# --- from a certificate to a verdict: what it says, and what to try next ------------------------


_MANY = 10**9  # draws that nobody makes: then another pair is the better advice
# Times the draws; what would take more is within the luck of those that were made: of a mutant, and
# of what may well keep its claim, where an estimate so high is rare.
_BY_LUCK, _BY_RARE_LUCK = 30, 10
_ROUNDING = 1e-6
_CAREFUL = 0.05  # one-sided level at which rates are moved before draws are named for them
_ADVICE_ON_MUTANTS = 'mutants="noise", the default: mutants made from the noise show power'


def judge(task: Task, found: Certificate, fates: Fates) -> tuple[Verdict, str]:
    """Return the verdict and the sentence behind it.

    Parameters
    ----------
    task : Task
        The task of the audit.
    found : Certificate
        The certificate of the mechanism.
    fates : Fates
        The fates of its mutants.
    """
    epsilon, delta = found.point
    if found.refuted:
        return Verdict.REFUTED, found.reason or (
            f"epsilon is {beyond(found.epsilon.lower, epsilon, ('at least', 'more than'))} at "
            f"delta = {delta:g}, where {epsilon:.4g} was claimed"
        )
    nothing = "no violation found"
    silent = _powerless(found, fates)
    if silent:
        return Verdict.NO_POWER, f"{nothing}, {silent}{_beyond_words(task, found, fates)}"
    killed, judged = mutation_score(fates.results)
    every = f"all {judged}" if killed == judged > 1 else f"{killed} of {judged}"
    were = "was" if judged == 1 else "were"
    many = "" if judged == 1 else "s"
    return Verdict.NOT_REFUTED, (
        f"{nothing}, and {every} mutant{many} {were} killed{_weak_words(fates.results)}"
    )


def _weak_words(mutants: Sequence[MutantResult]) -> str:
    """Say in few words how weak this silence is; the result names the noises."""
    killed = [m for m in mutants if m.killed]
    if all(m.noise == ALL_NOISE and m.certain for m in killed):
        less = any(m.fate is not Fate.NOT_RUN for m in mutants if m not in killed)
        seen = "noticed" if less else "tried"
        return f": nothing less than taking all of its noise away was {seen}"
    if unnoticed(mutants):
        return "; some of its noise can be removed without notice"
    return "; some of its noise can be halved without notice" * bool(half_noticed(mutants))


def _powerless(found: Certificate, fates: Fates) -> str:
    """Return why no violation found means nothing; empty where mutants show that it does."""
    if not fates.results:
        if not fates.wanted:
            return "and no mutant was wanted to show power"
        return f"and there is no mutant to show power: {fates.unseen or 'it draws no noise'}"
    if found.is_constant and not found.pair.is_null:
        return (
            "and all outputs on both datasets were equal: the audit saw no noise that could hide "
            "anything"
        )
    given = [m for m in fates.results if m.is_given and not m.killed]
    if given:
        fate = "could not be run" if given[0].note else "survived too"
        return f"but the mutant {given[0].name} {fate} ({_why(given[0], found)})"
    killed, judged = mutation_score(fates.results)
    if killed:
        return ""
    every = {0: "no mutant could be run", 1: "the one mutant that was run survived"}
    unseen = f": {fates.unseen}" if fates.unseen else ""
    return f"but {every.get(judged, f'all {judged} mutants survived')}{unseen}"


def _beyond_words(task: Task, found: Certificate, fates: Fates) -> str:
    """Say where nothing at all could have been refuted, and how many draws it takes."""
    if task.instrument is not None or found.epsilon.counts is None or found.pair.is_null:
        return ""
    if not is_beyond_reach(task):
        return ""
    draws = draws_to_begin_with(task, fates.failure_prob or task.failure_prob)
    return (
        f"; {task.draws:,} draws per dataset could not have refuted anything: against epsilon = "
        f"{found.point[0]:.4g} it takes {_about(draws)}, even where every draw tells the two "
        "datasets apart"
    )


def _about(draws: float) -> str:
    return f"about {int(draws):,}" if draws <= _MANY else f"more than {_MANY:,}"


def _why(mutant: MutantResult, found: Certificate) -> str:
    if mutant.note:
        return mutant.note
    where = (
        "" if mutant.pair_words == found.pair.describe() else f" on the pair {mutant.pair_words}"
    )
    return f"epsilon >= {at_least(mutant.certified_epsilon)}{where}"


def advice(
    task: Task, found: Certificate, verdict: Verdict, fates: Fates, family: Family | None = None
) -> str:
    """Say what to try next where nothing was refuted: the one thing that is likeliest to help.

    Parameters
    ----------
    task : Task
        The task of the audit.
    found : Certificate
        The certificate of the mechanism.
    verdict : Verdict
        The verdict.
    fates : Fates
        The fates of the mutants.
    family : Family, optional
        The mechanism with more or less noise.
    """
    if verdict is Verdict.REFUTED:
        return ""
    if found.advice:
        return found.advice
    if task.stored is not None:
        return _advice_on_outputs(verdict, fates)
    if task.instrument is not None:
        return "" if fates.wanted else _ADVICE_ON_MUTANTS
    known = family if isinstance(family, Added) and family.strength is not None else None
    draws = _draws_that_would_do(task, found, task.failure_prob, _BY_RARE_LUCK)
    if fates.wanted and known is not None:
        more = _by_known_noise(task, found, fates, known)
        if more:
            return more
    elif fates.wanted and draws is not None:
        return (
            f"more draws: what was seen violates the claim (estimated {found.epsilon.value:.4g} of "
            f"{found.point[0]:.4g}), which may be luck; if it is none, about {draws:,} draws per "
            f"dataset refute it (draws={draws})"
        )
    if verdict is Verdict.NOT_REFUTED:
        return ""
    if task.space is None and all(pair.is_null for pair in task.pairs):
        return "another pair: the two datasets of this one are equal"
    if found.is_constant:
        return (
            "a look at the code: is a seed fixed inside it, or does it ignore these data? If it "
            "answers more on other data, name a pair of them"
        )
    if found.epsilon.counts is not None:
        least = draws_to_begin_with(task, fates.failure_prob or task.failure_prob)
        if task.draws < least <= _MANY:
            return (
                f"more draws: about {int(least):,} per dataset (draws={int(least)}) refute a "
                "mechanism that tells the two datasets apart every time; fewer hardly refute any"
            )
    if not fates.wanted:
        return _ADVICE_ON_MUTANTS
    mutant = fates.likeliest
    if mutant is None:
        return (
            "give a mutant, the same mechanism with one realistic mistake. Two lines do for noise "
            "that numpy does not draw: mechanism = functools.partial(f, scale=2.0), which binds "
            "the parameter of the noise, and audit(mechanism, ..., "
            "mutants=[mutants.scaled(scale=0.5)]). mutants.without('my_module.clip') and functions "
            "of your own are mutants too"
        )
    given = any(m.is_given and not m.killed for m in fates.results)
    draws = _draws_that_would_do(task, mutant, fates.failure_prob, _BY_LUCK)
    if draws is not None:
        return (
            "more draws: the mutant violates the claim by what was seen of it, and about "
            f"{draws:,} draws per dataset would refute it (draws={draws})"
        )
    if mutant.epsilon.value > mutant.point[0]:
        return (
            "more draws: what was seen of the mutant violates the claim (estimated "
            f"{mutant.epsilon.value:.4g} of {mutant.point[0]:.4g}), but with so few that may be "
            "luck"
        )
    data = mutant.pair.left
    if mutant.pair.user is not None and getattr(data, "ndim", 0) >= 2 and data.shape[1] == 1:
        return (
            "more items per user (m=8 in the recipe of the pair): with one item each, a bound on "
            "items cannot be told from a bound on users"
        )
    if task.space is None and is_frame(task.pairs.pairs[0].left):
        return (
            "another pair: search for the worst one, as in "
            f"neighbors.portfolio(frame, schema=Schema(user={task.pairs.pairs[0].by!r})); "
            "or more draws"
        )
    is_array = isinstance(task.pairs.pairs[0].left, np.ndarray)
    if task.space is None and is_array and task.pairs.pairs[0].user is not None:
        return (
            "another pair: search for the worst one, as in "
            "neighbors.outlier(n_users=50, low=..., high=...), or stretch this one"
        )
    if given:
        return (
            "another pair, or more draws; if this mistake cannot be seen on any, a larger one in "
            "the mutant, and then only so much is known"
        )
    return "another pair, or more draws: no change of its noise was seen on the pairs tried"


def _advice_on_outputs(verdict: Verdict, fates: Fates) -> str:
    if verdict is not Verdict.NO_POWER:
        return ""
    if fates.results:
        return "more outputs, or a larger mistake in the mutant: what it changes is not seen"
    return (
        "outputs of a mutant, of the mechanism with a realistic mistake: "
        'mutants={"half the noise": (left, right)}; an audit that refutes them has shown that it '
        "would notice"
    )


def _by_known_noise(task: Task, found: Certificate, fates: Fates, family: Added) -> str:
    """Name the draws that refute what the noise says: of the mechanism, or with half of its noise.

    Empty where neither violates the claim on this pair, or more draws are no advice.
    """
    assert family.strength is not None
    epsilon, delta = found.point
    words = "by the noise that it was seen to add, this pair needs"
    cases = [(1, words, task.failure_prob)]
    if fates.results and not any(mutant.killed for mutant in fates.results):
        words = "with half of its noise, this pair would need"
        cases.append((2, words, fates.failure_prob or task.failure_prob))
    for times, words, failure_prob in cases:
        strength = times * family.strength
        try:
            needed = family.epsilon(strength, delta)
            # What is infinite rests on tails that nobody saw.
            if needed <= epsilon * (1 + _ROUNDING) or math.isinf(needed):
                continue
            asked = replace(task, failure_prob=failure_prob)
            draws = _worth_saying(task, family.draws_for(strength, asked, found), _MANY)
        except ArgumentError:  # beyond what the oracles compute
            continue
        if draws is not None:
            return (
                f"more draws: {words} epsilon = {needed:.4g} where {epsilon:.4g} is claimed, and "
                f"about {draws:,} draws per dataset refute that (draws={draws})"
            )
    return ""


def _draws_that_would_do(
    task: Task, found: Certificate, failure_prob: float, most: int
) -> int | None:
    """Return how many draws per dataset would refute what was seen; None where no number helps.

    The rates are first moved against the violation, because the event was chosen among many. None
    too where the number is more than `most` times the draws that were made: that is luck.
    """
    counts, point = found.epsilon.counts, found.point
    if counts is None:
        return None
    c = counts if found.witness.likelier == "left" else counts.swapped()
    likely = float(approximate_lower(c.hits_left, c.draws_left, _CAREFUL))
    rare = float(approximate_upper(c.hits_right, c.draws_right, _CAREFUL))
    if likely <= math.exp(min(point[0], 600.0)) * rare + point[1]:
        return None
    chances = Chances.of_rates(
        (likely, rare),
        point,
        failure_prob,
        is_guess=isinstance(found.event, Guess),
        is_sequential=found.sequential is not None,
    )
    return _worth_saying(task, chances.draws_for(WITHIN_REACH), most)


def _worth_saying(task: Task, draws: int | None, most: int) -> int | None:
    """Return draws, rounded up to two digits; None where they are no more than there were."""
    if draws is None or not task.draws < draws <= min(most * task.draws, _MANY):
        return None
    digits = 10 ** max(math.floor(math.log10(draws)) - 1, 0)
    return int(np.ceil(draws / digits) * digits)


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
        The task of the audit.
    found : Certificate
        The certificate of the mechanism.
    fates : Fates
        The fates of the mutants.
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
    curves = None
    if found.bounds:
        grid, lower = (task.grid, task.claimed, delta), found.epsilon.lower
        curves = curves_of(found.bounds, *grid, lower, least_mu=found.mu)
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
        failure_prob=found.epsilon.failure_prob,
        p_value=found.p_value,
        draws=found.draws,
        mutants=fates.results,
        expected=None,
        seed=task.seed,
        seconds=0.0,
        diagnostics=Diagnostics(
            found.histogram,
            versions(),
            found.mechanism_seconds + fates.seconds,
            curves,
            found.sequential,
            found.canaries,
            found.long_profile,
            found.search,
        ),
        detectable_epsilon=None if family is None else detectable(task, found, family),
        notes=notes_on(found, fates.unseen if fates.results else "")
        + notes
        + notes_on_task(task, found),
        left_out=found.left_out,
        advice=advice(task, found, verdict, fates, family),
        pair=None if pair_words else found.pair,
        event=found.event,
    )
