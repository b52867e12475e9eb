"""Results of the mutants of an audit, and the power that they show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from dpaudit._json import LATER, Count, Nonnegative, Probability
from dpaudit.results.words import beyond


class MutantStatus(StrEnum):
    """Whether the audit killed a mutant."""

    KILLED = "killed"
    """The audit refuted the claim for the mutant."""

    SURVIVED = "survived"
    """The audit did not refute the claim for the mutant."""

    NOT_RUN = "not run"
    """The mutant could not be audited: it raised an exception, its draws are dependent, or the code
    that it changes was never executed."""


@dataclass(frozen=True)
class MutantResult:
    """Result of one mutant, which is audited on the same claim and pairs as the mechanism.

    Parameters
    ----------
    name : str
        The mistake in words.
    status : MutantStatus
        Whether the audit killed the mutant.
    certified_epsilon : float
        Certified lower bound of the mutant's epsilon at the claimed delta. The bound is 0 if
        nothing is certified.
    failure_prob : float
        Probability that this bound is wrong.
    draws : int
        Total number of draws of the mutant per dataset.
    pair_words : str
        The pair on which the mutant was killed, or else the pair that was audited last. Empty if
        the mutant was not run.
    event : str
        The event that killed the mutant. Empty if the mutant was not killed.
    noise : str
        The changed noise in words. Empty for a mutant given by the user.
    certain : bool
        Whether the noise was removed completely.
    calls : {"all", "first", "last"}
        Description of the calls whose noise was changed.
    note : str
        Why the mutant was not audited. Empty if the mutant was audited.
    change : str
        Change of the noise, such as "removed" or "halved". Empty for a mutant given by the user.
    kind : str
        Kind of a mistake in the code, such as "clipping". Empty for a changed noise, and for a
        mutant given by the user.
    """

    name: str
    status: MutantStatus
    certified_epsilon: Nonnegative
    failure_prob: Probability
    draws: Count
    pair_words: str = ""
    event: str = ""
    noise: str = ""
    certain: bool = False
    calls: str = "all"
    note: str = ""
    change: str = field(default="", metadata=LATER)
    kind: str = field(default="", metadata=LATER)

    @property
    def is_given(self) -> bool:
        """Whether the user gave the mutant.

        If False, dpaudit made the mutant.
        """
        return not (self.noise or self.kind)

    @property
    def is_order(self) -> bool:
        """Whether the changed noise only puts something into a random order."""
        return self.noise.endswith(("(permutation)", "(permuted)", "(shuffle)"))

    @property
    def killed(self) -> bool:
        """Whether the audit killed the mutant."""
        return self.status is MutantStatus.KILLED

    def words(self, claimed_epsilon: float) -> str:
        """Return the status of the mutant and the evidence for it, in one line."""
        if self.note:
            return f"{self.status}: {self.note}"
        bound = beyond(self.certified_epsilon, claimed_epsilon)
        drawn = f", {self.draws:,} draws" if self.draws else ", computed"
        return f"{self.status}: epsilon {bound}{drawn}"


def mutation_score(mutants: Sequence[MutantResult]) -> tuple[int, int]:
    """Return the number of killed mutants and the number of mutants that were run.

    Mutants of the code do not count, because some of them satisfy the claim.
    """
    judged = [m for m in mutants if m.status is not MutantStatus.NOT_RUN and not m.kind]
    return sum(mutant.killed for mutant in judged), len(judged)


def code_scores(mutants: Sequence[MutantResult]) -> dict[str, tuple[int, int]]:
    """Return the number of killed mutants and of mutants that were run, by kind of mistake."""
    of_code = [m for m in mutants if m.kind and m.status is not MutantStatus.NOT_RUN]
    return {
        kind: (sum(m.killed for m in of_code if m.kind == kind), count)
        for kind, count in sorted(Counter(m.kind for m in of_code).items())
    }


def score_words(mutants: Sequence[MutantResult], *, by_kind: bool = True) -> str:
    """Return the mutation score in words, by kind if mutants of the code were run."""
    killed, judged = mutation_score(mutants)
    left = sum(not m.kind for m in mutants) - judged
    more = f" ({left} more not run)" if left else ""
    of_code = code_scores(mutants)
    if not of_code:
        return f"{killed} of {judged} killed{more}"
    if not by_kind:
        both = [sum(counts) for counts in zip(*of_code.values(), strict=True)]
        return f"{killed} of {judged} killed, {both[0]} of {both[1]} of the code{more}"
    given = mutation_score([m for m in mutants if m.is_given])
    noise = mutation_score([m for m in mutants if m.noise])
    scores = {"given": given, "noise": noise} | of_code
    words = [f"{kind} {k} of {n}" for kind, (k, n) in scores.items() if n]
    return f"{', '.join(words)} killed{more}"


def surviving_code(mutants: Sequence[MutantResult], *, brief: bool = True) -> list[str]:
    """Return the surviving mutants of the code in words, or only their kinds and lines.

    Some of them may satisfy the claim. So may mechanisms without a random order, for example of
    rows of which the first are kept.
    """
    noticed = {m.noise for m in mutants if m.killed}.union(undetected(mutants))
    survivors = [
        m
        for m in mutants
        if m.status is MutantStatus.SURVIVED
        if m.kind or (m.is_order and m.noise not in noticed)
    ]
    if brief:
        places = (
            f"random order on {m.noise.removeprefix('the noise of ').rpartition(' (')[0]}"
            if m.is_order
            else f"{m.kind} on {m.name.rpartition(', ')[2]}"
            for m in survivors
        )
        return list(dict.fromkeys(places))
    return [f"{m.name}, in {m.draws:,} draws" for m in survivors]


def mutant_lines(mutants: Sequence[MutantResult], claimed_epsilon: float) -> list[str]:
    """Return one line per mutant.

    Mutants that were not run for the same reason share a line.
    """
    reasons = Counter(m.note for m in mutants if m.note)
    single = [m for m in mutants if reasons[m.note] < _SHARED]
    lines = [f"    {m.words(claimed_epsilon)}  {m.name}" for m in single]
    return lines + [
        f"    not run: {count} mutants, {note}"
        for note, count in reasons.items()
        if count >= _SHARED
    ]


_SHARED = 3


def undetected(mutants: Sequence[MutantResult]) -> dict[str, int]:
    """Return each noise whose removal the audit did not detect, with the number of draws used.

    A removal counts as detected if at least one mutant without this noise was killed. A noisy
    selection has two such mutants, one for each extreme answer. Mutants that were not run are
    ignored. A random order is ignored unless there is no other noise. Removals in all calls come
    first.
    """
    judged = [m for m in mutants if m.certain and m.status is not MutantStatus.NOT_RUN]
    judged = [m for m in judged if not m.is_order] or judged
    detected = {(m.noise, m.calls) for m in judged if m.killed}
    missed: dict[str, int] = {}
    for m in sorted(judged, key=lambda m: m.calls != "all"):
        if (m.noise, m.calls) in detected or (m.calls != "all" and m.noise in missed):
            continue
        name = m.noise if m.calls == "all" else f"the {m.calls} call of {m.noise}"
        missed[name] = max(missed.get(name, 0), m.draws)
    return missed


def undetected_halvings(mutants: Sequence[MutantResult]) -> dict[str, int]:
    """Return noises whose removal was detected but whose halving was not, with the draws used.

    Only halvings of all calls count, because halving one of many calls may be harmless.
    """
    gone = undetected(mutants)
    return {
        m.noise: m.draws
        for m in mutants
        if m.change == "halved" and m.calls == "all" and m.status is MutantStatus.SURVIVED
        if m.noise not in gone
    }


def weakness(mutants: Sequence[MutantResult]) -> str:
    """Return the most serious change of noise that was not detected, in a few words, or ""."""
    if undetected(mutants):
        return "the removal of some noise was not detected"
    return "the halving of some noise was not detected" * bool(undetected_halvings(mutants))


def undetected_words(mutants: Sequence[MutantResult]) -> list[str]:
    """Return each undetected change of a noise in a few words, most serious first."""
    noises, missed = {m.noise for m in mutants}, undetected(mutants)
    found = [
        f"{noise} {change}" + f", in {draws:,} draws" * bool(draws)
        for change, undetected_noises in (
            ("removed", {name: n for name, n in missed.items() if name in noises}),
            ("halved", undetected_halvings(mutants)),
            ("removed", {name: n for name, n in missed.items() if name not in noises}),
        )
        for noise, draws in undetected_noises.items()
    ]
    more = len(found) - _NAMED
    return found[:_NAMED] + [f"and {more} other{'s' if more > 1 else ''}"] * (more > 0)


_NAMED = 3
