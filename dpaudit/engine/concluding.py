"""Determine the verdict from a certificate and its mutants, and build the result of an audit."""

from __future__ import annotations

import functools
import math
import platform
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any

import numpy as np

from dpaudit.claims import Relation
from dpaudit.data import counted, is_frame
from dpaudit.engine.certificate import Certificate
from dpaudit.engine.chances import USUAL_POWER, Chances
from dpaudit.engine.families import Added, Family
from dpaudit.engine.mutation import ITSELF, TOO_FEW_DRAWS, CodeRuns, MutantRuns
from dpaudit.engine.notes import NO_ANSWERS, notes_on, notes_on_task, other_relations
from dpaudit.engine.reach import cannot_refute, detectable, draws_to_begin_with, rarest_leak
from dpaudit.engine.task import Task
from dpaudit.engine.views import side_channel
from dpaudit.errors import ArgumentError
from dpaudit.events import Guess, approximate_lower, approximate_upper, explanation
from dpaudit.mechanisms import STATE_FAULTS, TIME_IS_OVER, mechanism_name
from dpaudit.mutants import ALL_NOISE, BUDGET, CLIPPING, KINDS, NO_CHANGE
from dpaudit.neighbors import Portfolio
from dpaudit.results import (
    AuditResult,
    Diagnostics,
    MutantResult,
    MutantStatus,
    Verdict,
    at_least,
    beyond,
    mutation_score,
    weakness,
)
from dpaudit.stats import curves_of

# --- versions of the software that the numbers depend on -------------------------------


def versions() -> dict[str, str]:
    """Return the versions of all software that the numbers of an audit depend on."""
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
    """Return the name, version and kernels of the library that multiplies matrices for numpy.

    The kernels depend on the processor, and different kernels add numbers in different orders.
    """
    from threadpoolctl import threadpool_info

    found = [one for one in threadpool_info() if one["user_api"] == "blas"]
    found.sort(key=lambda one: "numpy" not in str(one["filepath"]))  # scipy may bring its own
    names = ("internal_api", "version", "architecture")
    return " ".join(str(found[0].get(name) or "unknown") for name in names) if found else "unknown"


# --- verdict, reason and advice ------------------------


_MANY = 10**9  # more draws than anybody makes; another pair is the better advice
# Recommend at most this many times the draws of the audit. An apparent violation that needs more
# draws may be chance. The first number is for a mutant, and the second for the mechanism itself,
# which may well satisfy its claim.
_BY_LUCK, _BY_RARE_LUCK = 30, 10
_ROUNDING = 1e-6
_CAREFUL = 0.05  # one-sided level of the rates for which a number of draws is recommended
_ADVICE_ON_MUTANTS = (
    'Keep mutants="all", the default. It makes mutants from the noise and from other code. Killing '
    "mutants of the noise shows that the audit has power."
)
_ADVICE_ON_LITTLE_POWER = (
    "Use more draws, or a pair whose datasets differ more. Of the mutants, the audit detected only "
    "the removal of all noise."
)


def judge(task: Task, found: Certificate, mutant_runs: MutantRuns) -> tuple[Verdict, str]:
    """Return the verdict and its reason.

    Parameters
    ----------
    task : Task
        The task of the audit.
    found : Certificate
        The certificate of the mechanism.
    mutant_runs : MutantRuns
        The audits of its mutants.
    """
    epsilon, delta = found.point
    if found.refuted:
        return Verdict.REFUTED, found.reason or (
            f"epsilon is {beyond(found.epsilon.lower, epsilon, ('at least', 'more than'))} at "
            f"delta = {delta:g}, but {epsilon:g} is claimed"
        )
    nothing = "no violation found"
    weakness = _powerless(found, mutant_runs)
    if weakness:
        return Verdict.NO_POWER, f"{nothing}, {weakness}{_beyond_words(task, found, mutant_runs)}"
    killed, judged = mutation_score(mutant_runs.results)
    every = f"all {judged}" if killed == judged > 1 else f"{killed} of {judged}"
    were = "was" if judged == 1 else "were"
    many = "" if judged == 1 else "s"
    return Verdict.NOT_REFUTED, (
        f"{nothing}, and {every} mutant{many} {were} killed{_weak_words(mutant_runs.results)}"
    )


def _only_all_noise(mutants: Sequence[MutantResult]) -> bool:
    """Return whether the audit detected no smaller change than the removal of all noise."""
    killed = [m for m in mutants if m.killed]
    tried = any(m.status is not MutantStatus.NOT_RUN for m in mutants if not m.killed)
    return tried and all(m.noise == ALL_NOISE and m.certain for m in killed)


def _weak_words(mutants: Sequence[MutantResult]) -> str:
    """Return a clause on the weakest change that the audit detects, or ""."""
    if all(m.noise == ALL_NOISE and m.certain for m in mutants if m.killed):
        seen = "detected" if _only_all_noise(mutants) else "tried"
        return f"; no change smaller than removing all noise was {seen}"
    words = weakness(mutants)
    return f"; {words}" * bool(words)


def _not_run(mutants: Sequence[MutantResult]) -> tuple[str, ...]:
    """Return in words how many mutants were not run because draws were too few."""
    count = sum(mutant.note == TOO_FEW_DRAWS for mutant in mutants)
    return (f"{count} mutant{'s' * (count > 1)} for which draws were too few",) * (count > 0)


def _rare_leaks(task: Task, found: Certificate) -> tuple[str, ...]:
    """Return in words which leaks exceed the claimed delta and are too rare to be detected."""
    point = task.claim.point  # a curve claims no certain delta
    if found.refuted or point is None or not point[1] > 0:
        return ()
    if (least := rarest_leak(task, found)) is None:
        return ()
    return (
        f"leaks in fewer than about {least:.2g} of all outputs (more draws show rarer leaks; delta "
        f"= {point[1]:g} is claimed)",
    )


def _no_code(mutant_runs: MutantRuns) -> tuple[str, ...]:
    """Return the mistakes in code that were not tried, by reason."""
    code = mutant_runs.code
    if code is None:
        return ()
    found = (f"mistakes in the code ({code.unseen})",) * bool(code.unseen)
    if code.unseen and not code.results:
        return found
    both = (*mutant_runs.results, *code.results)
    tried = [m for m in both if m.status is not MutantStatus.NOT_RUN]
    run = {BUDGET if m.change in STATE_FAULTS else m.kind for m in tried}
    notes = {m.kind: m.note for m in code.results}
    reasons: dict[str, list[str]] = {}
    for kind in KINDS:
        if kind not in run:
            reason = notes.get(kind, "no such line was found")
            reason = "no output changed in trial draws" if reason == NO_CHANGE else reason
            reasons.setdefault(reason, []).append(kind)
    found += tuple(f"mistakes in {', '.join(kinds)} ({why})" for why, kinds in reasons.items())
    return found + (f"{counted(code.left_out, 'more mistake')} in the code",) * bool(code.left_out)


def _powerless(found: Certificate, mutant_runs: MutantRuns) -> str:
    """Return why the audit has no power, or "" if its mutants show that it has power."""
    if not mutant_runs.results:
        if not mutant_runs.wanted:
            return "and no mutant was requested to show power"
        why = mutant_runs.unseen or "the mechanism draws no noise"
        return f"and there is no mutant to show power: {why}"
    if NO_ANSWERS in found.notes:
        return "and every output on both datasets is NaN"
    if found.constant == "scores" and not found.pair.is_null:
        return "and the score gave all outputs on both datasets the same number"
    if found.constant and not found.pair.is_null:
        return (
            "and all outputs on both datasets were equal, so the audit saw no noise that could "
            "hide a difference"
        )
    given = [m for m in mutant_runs.results if m.is_given and not m.killed]
    if given:
        status = "could not be run" if given[0].note else "survived too"
        status = "was not run" if given[0].note == ITSELF else status
        return f"but the given mutant {given[0].name} {status} ({_why(given[0], found)})"
    killed, judged = mutation_score(mutant_runs.results)
    if killed:
        return ""
    every = {0: "no mutant could be run", 1: "the one mutant that was run survived"}
    unseen = f": {mutant_runs.unseen}" if mutant_runs.unseen else ""
    return f"but {every.get(judged, f'all {judged} mutants survived')}{unseen}"


def _beyond_words(task: Task, found: Certificate, mutant_runs: MutantRuns) -> str:
    """Return a clause with the needed draws if these draws could not have refuted anything."""
    if task.instrument is not None or found.epsilon.counts is None or found.pair.is_null:
        return ""
    if not cannot_refute(task):
        return ""
    draws = draws_to_begin_with(task, mutant_runs.failure_prob or task.failure_prob)
    return (
        f"; {task.draws:,} draws per dataset cannot refute epsilon = {found.point[0]:g}, which "
        f"needs {_about(draws)} even if every draw reveals its dataset"
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
    task: Task,
    found: Certificate,
    verdict: Verdict,
    mutant_runs: MutantRuns,
    family: Family | None = None,
    has_cause: bool = False,
) -> str:
    """Return the next step that is most likely to help, or "".

    Parameters
    ----------
    task : Task
        The task of the audit.
    found : Certificate
        The certificate of the mechanism.
    verdict : Verdict
        The verdict.
    mutant_runs : MutantRuns
        The audits of the mutants.
    family : Family, optional
        The mechanism with more or less noise.
    has_cause : bool, optional
        Whether a likely cause of the violation was found.
    """
    if verdict is Verdict.REFUTED:
        return _advice_on_a_violation(task, found, has_cause)
    if found.advice:
        return found.advice
    if task.stored is not None:
        return _advice_on_outputs(verdict, mutant_runs)
    if task.instrument is not None:
        return "" if mutant_runs.wanted else _ADVICE_ON_MUTANTS
    known = family if isinstance(family, Added) and family.strength is not None else None
    draws = _draws_that_would_do(task, found, task.failure_prob, _BY_RARE_LUCK)
    if mutant_runs.wanted and known is not None:
        more = _by_known_noise(task, found, mutant_runs, known)
        if more:
            return more
    elif mutant_runs.wanted and draws is not None:
        return (
            f"Use about {draws:,} draws per dataset (draws={draws}). The estimate "
            f"{found.epsilon.value:.3g} exceeds the claim {found.point[0]:g}, which may be chance; "
            "if it is not, this number of draws would refute the claim."
        )
    if verdict is Verdict.NOT_REFUTED:
        little = _ADVICE_ON_LITTLE_POWER * _only_all_noise(mutant_runs.results)
        clips = _advice_on_clips(task, mutant_runs.code)
        return " ".join(filter(None, (mutant_runs.private_amount or clips, little)))
    if task.space is None and all(pair.is_null for pair in task.pairs):
        return "Use another pair. The two datasets of this pair are equal."
    if NO_ANSWERS in found.notes:
        return "Use data on which the mechanism has an answer, or check why it returns only NaN."
    if found.constant == "scores":
        return (
            "Check the score and the code: does the score depend on the differing user (whose "
            "gradient in a training must not be zero), or does the code fix a seed?"
        )
    if found.constant:
        return (
            "Check the code: does it fix a seed, or ignore these data? If its output depends on "
            "other data, name a pair of such datasets."
        )
    for broken in mutant_runs.results:
        if broken.is_given and broken.note == ITSELF:
            return f"Plant a mistake in the mutant {broken.name}, or leave it out."
        if broken.is_given and broken.note not in ("", TOO_FEW_DRAWS, TIME_IS_OVER):
            return f"Correct the mutant {broken.name}, which could not be run, or leave it out."
    if found.epsilon.counts is not None:
        least = draws_to_begin_with(task, mutant_runs.failure_prob or task.failure_prob)
        if task.draws < least <= _MANY:
            return (
                f"Use at least {int(least):,} draws per dataset (draws={int(least)}). Fewer hardly "
                "refute even a mechanism whose every output reveals its dataset."
            )
    if not mutant_runs.wanted:
        return _ADVICE_ON_MUTANTS
    mutant = mutant_runs.likeliest
    if mutant is None:
        return (
            "Give a mutant: the same mechanism with one realistic mistake. If numpy does not draw "
            "the noise, bind its parameter with mechanism = functools.partial(f, scale=2.0) and "
            "call audit(mechanism, ..., mutants=[mutants.scaled(scale=0.5)]). You can also pass "
            "mutants.without('my_module.clip') or a function of your own."
        )
    given = any(m.is_given and not m.killed for m in mutant_runs.results)
    draws = _draws_that_would_do(task, mutant, mutant_runs.failure_prob, _BY_LUCK)
    if draws is not None:
        return (
            f"Use about {draws:,} draws per dataset (draws={draws}). By its estimate, the mutant "
            "violates the claim, and this number of draws would refute the claim for it."
        )
    if mutant.epsilon.value > mutant.point[0]:
        return (
            f"Use more draws. The estimate of the mutant, {mutant.epsilon.value:.3g}, exceeds the "
            f"claim {mutant.point[0]:g}, but with so few draws this may be chance."
        )
    data = mutant.pair.left
    if mutant.pair.user is not None and getattr(data, "ndim", 0) >= 2 and data.shape[1] == 1:
        return (
            "Use more items per user (m=8 in the recipe of the pair). With one item each, a bound "
            "per item and a bound per user are the same."
        )
    if task.space is None and is_frame(task.pairs.pairs[0].left):
        return (
            "Search for the worst pair with "
            f"neighbors.portfolio(frame, schema=neighbors.Schema(user={task.pairs.pairs[0].by!r})),"
            " or use more draws."
        )
    is_array = isinstance(task.pairs.pairs[0].left, np.ndarray)
    if task.space is None and is_array and task.pairs.pairs[0].user is not None:
        return (
            "Search for the worst pair, for example with "
            "neighbors.outlier(n_users=50, low=..., high=...), or move the differing user of this "
            "pair further away."
        )
    if given:
        return (
            "Use another pair or more draws. If no pair shows this mistake, plant a larger one in "
            "the mutant; the audit then shows power only for mistakes of that size."
        )
    return (
        "Use another pair or more draws. On the pairs tried, no change of the noise was detected."
    )


_ADVICE_ON_SIDE_CHANNELS = (
    "Let every call do the same work, whatever the data are: fixed numbers of iterations and sizes "
    "of arrays. Or release the answer only after a fixed time."
)


def _advice_on_clips(task: Task, code: CodeRuns | None) -> str:
    """Return advice to widen a portfolio if no clip of the code clipped anything, or ""."""
    if not isinstance(task.space, Portfolio):
        return ""
    clips = [m for m in ([] if code is None else code.results) if m.kind == CLIPPING]
    if not clips or any(clip.note != NO_CHANGE for clip in clips):
        return ""
    where = clips[0].name.rpartition(", ")[2]
    is_table = any(is_frame(pair.left) for pair in task.space.pairs[:1])
    wider = "Schema(columns={...})" if is_table else "neighbors.portfolio(low=, high=)"
    return (
        f"Test the clipping, too: in trial draws, no value was clipped on {where}. So a "
        "limit that is missing or wrong would not be noticed. Pass "
        f"{wider} with ranges that exceed the limits in your code on both sides."
    )


def _advice_on_a_violation(task: Task, found: Certificate, has_cause: bool) -> str:
    lower = found.epsilon.lower
    if task.float_attack and (bits := explanation(found.witness.event)):
        return bits
    if lower == math.inf:
        return (
            "Look for a value that is returned without noise: some outputs of one dataset cannot "
            "come from the other."
        )
    if not lower > found.point[0]:
        return ""
    what = "value" if found.pair.relation == Relation.LOCAL else "differing user"
    where = "the training run" if found.canaries else f"the code that reads the {what}"
    words = ""
    items = task.space.items if isinstance(task.space, Portfolio) else None
    if items and isinstance(found.pair.left, np.ndarray):
        words = (
            f"If your users have another number of items, or columns, than the {items} that the "
            "audit chose, pass neighbors.portfolio(m=...) and audit again. "
        )
    words += "Correct the likely cause." if has_cause else f"Check clipping and noise in {where}."
    words += (
        f" Do not only raise the claim: the true epsilon is at least {at_least(lower)} and may be "
        "larger."
    )
    if others := " or ".join(map(str, other_relations(task, found))):
        words += (
            f" This pair has relation {found.pair.relation}. If the claim is only meant for "
            f"{others}, give this relation to the claim."
        )
    return words


def _advice_on_outputs(verdict: Verdict, mutant_runs: MutantRuns) -> str:
    if verdict is not Verdict.NO_POWER:
        return ""
    if mutant_runs.results:
        return (
            "Give more outputs, or plant a larger mistake in the mutant; this one was not detected."
        )
    return (
        "Give outputs of a mutant, which is the mechanism with a realistic mistake: "
        'mutants={"half the noise": (left, right)}. If the audit refutes them, it has shown that '
        "it has power."
    )


def _by_known_noise(task: Task, found: Certificate, mutant_runs: MutantRuns, family: Added) -> str:
    """Return how many draws refute the mechanism, or the mechanism with half of its noise.

    The text is empty if neither mechanism violates the claim on this pair, or if more draws would
    not help.
    """
    assert family.strength is not None
    epsilon, delta = found.point
    words = "With the noise that the audit observed, this pair needs"
    cases = [(1, words, task.failure_prob)]
    if mutant_runs.results and not any(mutant.killed for mutant in mutant_runs.results):
        words = "With half of the noise, this pair would need"
        cases.append((2, words, mutant_runs.failure_prob or task.failure_prob))
    for times, words, failure_prob in cases:
        strength = times * family.strength
        try:
            needed = family.epsilon(strength, delta)
            # An infinite epsilon depends on tails that no draw reached.
            if needed <= epsilon * (1 + _ROUNDING) or math.isinf(needed):
                continue
            asked = replace(task, failure_prob=failure_prob)
            draws = _worth_saying(task, family.draws_for(strength, asked, found), _MANY)
        except ArgumentError:  # beyond the range of the oracles
            continue
        if draws is not None:
            return (
                f"Use about {draws:,} draws per dataset (draws={draws}). {words} epsilon = "
                f"{needed:.3g}, but {epsilon:g} is claimed, and this number of draws would "
                "refute it with probability about 0.9. Or write the mechanism as AdditiveNoise, "
                "whose epsilon is computed from its noise."
            )
    return ""


def _draws_that_would_do(
    task: Task, found: Certificate, failure_prob: float, most: int
) -> int | None:
    """Return how many draws per dataset would refute the claim if the observed rates were true.

    The rates are first moved towards the claim, because the event was chosen among many events.
    Return None if the rates do not violate the claim, or if more than `most` times the draws of the
    audit are needed.
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
    return _worth_saying(task, chances.draws_for(USUAL_POWER), most)


def _worth_saying(task: Task, draws: int | None, most: int) -> int | None:
    """Return draws, rounded up to two digits; None if there are too few or too many to advise."""
    if draws is None or not task.draws < draws <= min(most * task.draws, _MANY):
        return None
    digits = 10 ** max(math.floor(math.log10(draws)) - 1, 0)
    return int(np.ceil(draws / digits) * digits)


def conclude(
    task: Task,
    found: Certificate,
    mutant_runs: MutantRuns,
    *,
    mechanism: Any,
    family: Family | None = None,
    pair_words: str = "",
    notes: tuple[str, ...] = (),
    has_cause: bool = False,
) -> AuditResult:
    """Reach the verdict and return the result of an audit.

    Parameters
    ----------
    task : Task
        The task of the audit.
    found : Certificate
        The certificate of the mechanism.
    mutant_runs : MutantRuns
        The audits of the mutants.
    mechanism : callable, AdditiveNoise, ExactMechanism or str
        The audited mechanism, or its name.
    family : Family, optional
        The distributions of the mechanism with less noise, if these are known.
    pair_words : str, optional
        Description of the datasets, if they are not available as a pair.
    notes : tuple of str, optional
        Notes in addition to those of the certificate.
    has_cause : bool, optional
        Whether a likely cause of the violation was found.
    """
    task = task.at(found.pair)
    claim = task.claim
    epsilon, delta = found.point
    verdict, reason = judge(task, found, mutant_runs)
    code = mutant_runs.code or CodeRuns()
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
        mutants=mutant_runs.results + code.results,
        expected=None,
        seed=task.seed,
        seconds=0.0,
        diagnostics=Diagnostics(
            found.histogram,
            versions(),
            found.mechanism_seconds + mutant_runs.seconds + code.seconds,
            curves,
            found.sequential,
            found.canaries,
            found.long_profile,
            found.search,
        ),
        detectable_epsilon=None if family is None else detectable(task, found, family),
        notes=notes_on(found, mutant_runs.unseen if mutant_runs.results else "")
        + notes
        + notes_on_task(task, found),
        not_covered=found.not_covered
        + _rare_leaks(task, found)
        + _not_run(mutant_runs.results)
        + _no_code(mutant_runs),
        advice=_ADVICE_ON_SIDE_CHANNELS
        if verdict is Verdict.REFUTED and side_channel(mechanism) is not None
        else advice(task, found, verdict, mutant_runs, family, has_cause),
        log_e_values=found.log_e_values,
        pair=None if pair_words else found.pair,
        event=found.event,
    )
