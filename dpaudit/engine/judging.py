"""From a certificate to a verdict: what it says, and what to try next."""

from __future__ import annotations

import math

import numpy as np

from dpaudit.engine.certificate import Certificate
from dpaudit.engine.mutation import Fates
from dpaudit.engine.planning import draws_for
from dpaudit.engine.tally import rates_seen
from dpaudit.engine.task import PRIMARY_SHARE, Task
from dpaudit.events import explanation
from dpaudit.results import (
    MutantResult,
    Verdict,
    at_least,
    at_most,
    beyond,
    mutation_score,
    strongest,
    unnoticed,
)

_NAMED = 3  # noises in a reason
_MANY = 10**9  # draws that nobody makes: then another pair is the better advice
_BY_LUCK = 30  # times the draws; what would take more is within the luck of those that were made


def judge(
    found: Certificate, fates: Fates, reach: float | None, *, wanted: bool = True
) -> tuple[Verdict, str]:
    """Return the verdict and the sentence behind it.

    Parameters
    ----------
    found : Certificate
        What was found of the mechanism.
    fates : Fates
        What became of its mutants.
    reach : float or None
        Epsilon that its event would have shown; see :mod:`dpaudit.engine.reach`.
    wanted : bool, optional
        Whether mutants were asked for.
    """
    epsilon, delta = found.point
    if found.refuted:
        return Verdict.REFUTED, (
            f"epsilon is {beyond(found.epsilon.lower, epsilon, ('at least', 'more than'))} at "
            f"delta = {delta:g}, where {epsilon:.4g} was claimed"
        )
    nothing = "no violation found"
    if not fates.results:
        why = "no mutant was wanted to show power"
        if wanted:
            why = f"there is no mutant to show power: {fates.unseen or 'it draws no noise'}"
        return Verdict.NO_POWER, f"{nothing}, and {why}"
    given = [m for m in fates.results if m.is_given and not m.killed]
    if given:
        fate = "could not be run" if given[0].note else "survived too"
        return Verdict.NO_POWER, (
            f"{nothing}, but the mutant {given[0].name} {fate} ({_why(given[0], found)})"
        )
    killed, judged = mutation_score(fates.results)
    if not killed:
        every = "no mutant could be run" if not judged else f"all {judged} mutants survived"
        unseen = f": {fates.unseen}" if fates.unseen else ""
        return Verdict.NO_POWER, f"{nothing}, but {every}{unseen}"
    shown = strongest(fates.results)
    assert shown is not None
    return Verdict.NOT_REFUTED, (
        f"{nothing}; {killed} of {judged} mutants were killed, {shown.name} with epsilon "
        f"{beyond(shown.certified_epsilon, epsilon)}{_reach_words(reach)}{_unnoticed_words(fates)}"
    )


def _why(mutant: MutantResult, found: Certificate) -> str:
    if mutant.note:
        return mutant.note
    where = (
        "" if mutant.pair_words == found.pair.describe() else f" on the pair {mutant.pair_words}"
    )
    return f"epsilon >= {at_least(mutant.certified_epsilon)}{where}"


def _unnoticed_words(fates: Fates) -> str:
    """Name what of the noise could be removed, and what was not looked at."""
    noises = unnoticed(fates.results)
    said = [
        f"{noise} can be removed and this audit does not notice"
        + (f" in {draws:,} draws" if draws else "")
        for noise, draws in list(noises.items())[:_NAMED]
    ]
    if len(noises) > _NAMED:
        said.append(f"nor would it miss {len(noises) - _NAMED} others")
    said += [f"not all of its randomness gave mutants: {fates.unseen}"] * bool(fates.unseen)
    return "".join(f"; {words}" for words in said)


def _reach_words(reach: float | None) -> str:
    if reach is None:
        return ""
    if math.isinf(reach):
        return "; no rates of this event would have been refuted within the budget"
    return (
        f"; had this event needed epsilon = {at_most(reach)}, it would have been refuted with "
        "probability about 0.9"
    )


def advice(task: Task, verdict: Verdict, fates: Fates, *, wanted: bool = True) -> str:
    """Say what to try next where silence means nothing: the one thing that is likeliest to help.

    Parameters
    ----------
    task : Task
        What was asked.
    verdict : Verdict
        What was concluded.
    fates : Fates
        What became of the mutants.
    wanted : bool, optional
        Whether mutants were asked for.
    """
    if verdict is not Verdict.NO_POWER:
        return ""
    if task.space is None and all(pair.is_null for pair in task.pairs):
        return "another pair: the two datasets of this one are equal"
    if not wanted:
        return "leave mutants=None out: mutants are then made from the noise, and show power"
    mutant = fates.likeliest
    if mutant is None:
        return (
            "give a mutant, the same mechanism with one realistic mistake: "
            "mutants=[mutants.scaled(scale=0.5)] for a partial with a keyword scale, "
            "mutants.without('my_module.clip'), or a function of your own; an audit that refutes "
            "it has shown that it would notice"
        )
    draws = _draws_that_would_do(task, mutant, fates.failure_prob)
    if draws is not None:
        return (
            f"more draws: the mutant violates the claim by what was seen of it, and about "
            f"{draws:,} draws per dataset would refute it (draws={draws})"
        )
    data = mutant.pair.left
    if mutant.pair.user is not None and data.ndim >= 2 and data.shape[1] == 1:
        return (
            "more items per user (m=8 in the recipe of the pair): with one item each, a bound on "
            "items cannot be told from a bound on users"
        )
    if task.space is None and task.pairs.pairs[0].user is not None:
        return (
            "another pair: search for the worst one, as in "
            "search.outlier(n_users=50, low=..., high=...), or stretch this one"
        )
    return "a larger mistake in the mutant: what is changed is not seen on any pair tried"


def _draws_that_would_do(task: Task, mutant: Certificate, failure_prob: float) -> int | None:
    """Return draws per dataset that would refute a mutant, by what was seen of it; or None."""
    counts, (epsilon, delta) = mutant.epsilon.counts, mutant.point
    if counts is None or mutant.epsilon.value <= epsilon:
        return None
    seen = rates_seen(counts, mutant.witness.likelier)
    likely, rare = float(seen.likely[0]), float(seen.rare[0])
    if likely <= math.exp(min(epsilon, 600.0)) * rare + delta:
        return None
    draws = draws_for(likely, rare, epsilon, delta, failure_prob * PRIMARY_SHARE)
    if draws is None or not task.draws < draws <= min(_BY_LUCK * task.draws, _MANY):
        return None
    digits = 10 ** max(math.floor(math.log10(draws)) - 1, 0)
    return int(np.ceil(draws / digits) * digits)


def notes(found: Certificate) -> tuple[str, ...]:
    """Sentences that a reader of the certificate should have beside it."""
    told = explanation(found.witness.event)
    said: tuple[str, ...] = (told,) if told and found.refuted else ()
    if found.pair.is_null:
        said += ("The two datasets of the pair are equal: no mechanism shows anything on them.",)
    return said + found.notes
