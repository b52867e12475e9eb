"""From a certificate to a verdict: what it says, what it would have seen, what to try next."""

from __future__ import annotations

import math

import numpy as np

from dpaudit.engine.certificate import Certificate
from dpaudit.engine.counts import rates_seen
from dpaudit.engine.planning import detectable_epsilon, draws_for
from dpaudit.engine.task import PRIMARY_SHARE, Task
from dpaudit.events import explanation
from dpaudit.mechanisms import mechanism_name
from dpaudit.results import MutantResult, Verdict, at_least, at_most, beyond

_MANY = 10**9  # draws that nobody makes: then another pair is the better advice


def fate_of(mutant: object, found: Certificate, seconds: float) -> MutantResult:
    """Return how a mutant fared."""
    return MutantResult(
        name=mechanism_name(mutant),
        verdict=Verdict.REFUTED if found.refuted else Verdict.NO_POWER,
        certified_epsilon=found.epsilon.lower,
        failure_prob=found.epsilon.failure_prob,
        pair_words=found.pair.describe(),
        witness=found.witness,
        seconds=seconds,
    )


def detectable(found: Certificate) -> float | None:
    """Return the epsilon at which this event would have been refuted with probability 0.9.

    None for what was computed, where nothing is left to luck.
    """
    counts, (epsilon, delta) = found.epsilon.counts, found.point
    if counts is None:
        return None
    rare = float(rates_seen(counts, found.witness.likelier).rare[0])
    failure_prob = found.epsilon.failure_prob
    if found.sequential is not None:
        path = found.sequential
        return detectable_epsilon(
            rare, path.budget, epsilon, delta, failure_prob, evidence=path.refuted_at
        )
    share = failure_prob * PRIMARY_SHARE
    return detectable_epsilon(rare, found.draws["certify"], epsilon, delta, share)


def judge(
    found: Certificate, mutant: MutantResult | None, reach: float | None
) -> tuple[Verdict, str]:
    """Return the verdict and the sentence behind it."""
    epsilon, delta = found.point
    if found.refuted:
        return Verdict.REFUTED, (
            f"epsilon is {beyond(found.epsilon.lower, epsilon, ('at least', 'more than'))} at "
            f"delta = {delta:g}, where {epsilon:.4g} was claimed"
        )
    if mutant is None:
        return Verdict.NO_POWER, "no violation found, and no mutant was given to show power"
    same = mutant.pair_words == found.pair.describe()
    where = "" if same else f" on the pair {mutant.pair_words}"
    if mutant.verdict is Verdict.REFUTED:
        return Verdict.NOT_REFUTED, (
            f"no violation found; the mutant {mutant.name} was killed with "
            f"epsilon {beyond(mutant.certified_epsilon, epsilon)}{where}{_reach_words(reach)}"
        )
    return Verdict.NO_POWER, (
        f"no violation found, but the mutant {mutant.name} survived too "
        f"(epsilon >= {at_least(mutant.certified_epsilon)}{where})"
    )


def _reach_words(reach: float | None) -> str:
    if reach is None:
        return ""
    if math.isinf(reach):
        return "; no rates of this event would have been refuted within the budget"
    return (
        f"; had this event needed epsilon = {at_most(reach)}, it would have been refuted with "
        "probability about 0.9"
    )


def advice(task: Task, verdict: Verdict, mutant: Certificate | None) -> str:
    """Say what to try next where silence means nothing: the one thing that is likeliest to help.

    Parameters
    ----------
    task : Task
        What was asked.
    verdict : Verdict
        What was concluded.
    mutant : Certificate or None
        What was found of the mutant.
    """
    if verdict is not Verdict.NO_POWER:
        return ""
    if task.space is None and all(pair.is_null for pair in task.pairs):
        return "another pair: the two datasets of this one are equal"
    if mutant is None:
        return (
            "give a mutant, the same mechanism with one realistic mistake such as half of its "
            "noise (mutant=...): an audit that refutes it has shown that it would notice"
        )
    draws = _draws_that_would_do(task, mutant)
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
    return "a larger mistake in the mutant: what this one does is not seen on any pair tried"


def _draws_that_would_do(task: Task, mutant: Certificate) -> int | None:
    """Return draws per dataset that would refute a mutant, by what was seen of it; or None."""
    counts, (epsilon, delta) = mutant.epsilon.counts, mutant.point
    if counts is None or mutant.epsilon.value <= epsilon:
        return None
    seen = rates_seen(counts, mutant.witness.likelier)
    likely, rare = float(seen.likely[0]), float(seen.rare[0])
    if likely <= math.exp(min(epsilon, 600.0)) * rare + delta:
        return None
    draws = draws_for(likely, rare, epsilon, delta, task.failure_prob * PRIMARY_SHARE)
    if draws is None or not task.draws < draws <= _MANY:
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
