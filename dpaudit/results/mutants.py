"""How the mutants of an audit fared, and what they say of its power."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from dpaudit._json import LATER, Count, Nonnegative, Probability
from dpaudit.results.words import beyond


class Fate(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    """The audit refuted it."""

    SURVIVED = "survived"
    """The audit did not notice it."""

    NOT_RUN = "not run"
    """It could not be audited: it raised, its draws are dependent, its code was never reached."""


@dataclass(frozen=True)
class MutantResult:
    """How one mutant fared on the same claim and pairs.

    Parameters
    ----------
    name : str
        What the mistake is, in words.
    fate : Fate
        Whether the audit noticed.
    certified_epsilon : float
        Certified of the mutant at the claimed delta; 0 where nothing is.
    failure_prob : float
        Probability that this number is wrong.
    draws : int
        Draws per dataset that it was given in all.
    pair_words : str
        The pair on which it was killed, or looked at last; empty where it was not run.
    event : str
        The event that killed it; empty for others.
    noise : str
        The noise that was changed, in words; empty for a mutant that was given.
    certain : bool
        Whether that noise was gone altogether.
    calls : {"all", "first", "last"}
        Which of its calls were changed.
    note : str
        Why it was not run, or not looked at; empty where it was.
    change : str
        What was done to that noise, such as "removed" or "halved"; empty for a mutant that was
        given.
    """

    name: str
    fate: Fate
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

    @property
    def is_given(self) -> bool:
        """Whether it was given to the audit, not made by it."""
        return not self.noise

    @property
    def killed(self) -> bool:
        """Whether the audit noticed."""
        return self.fate is Fate.KILLED

    def words(self, claimed_epsilon: float) -> str:
        """Return its fate and what is behind it, in one line."""
        if self.note:
            return f"{self.fate}: {self.note}"
        bound = beyond(self.certified_epsilon, claimed_epsilon)
        drawn = f", {self.draws:,} draws" if self.draws else ", computed"
        return f"{self.fate}: epsilon {bound}{drawn}"


def mutation_score(mutants: Sequence[MutantResult]) -> tuple[int, int]:
    """Return how many mutants were killed, of how many that were run."""
    fates = [mutant.fate for mutant in mutants]
    return fates.count(Fate.KILLED), len(fates) - fates.count(Fate.NOT_RUN)


def score_words(mutants: Sequence[MutantResult]) -> str:
    """Return the mutation score in words."""
    killed, judged = mutation_score(mutants)
    left = len(mutants) - judged
    return f"{killed} of {judged} killed" + (f", {left} not run" if left else "")


def mutant_lines(mutants: Sequence[MutantResult], claimed_epsilon: float) -> list[str]:
    """Return one line for each mutant; those that were not run for one reason share one."""
    reasons = Counter(m.note for m in mutants if m.note)
    told = [m for m in mutants if reasons[m.note] < _SHARED]
    lines = [f"    {m.words(claimed_epsilon)}  {m.name}" for m in told]
    return lines + [
        f"    not run: {count} mutants, {note}"
        for note, count in reasons.items()
        if count >= _SHARED
    ]


_SHARED = 3


def unnoticed(mutants: Sequence[MutantResult]) -> dict[str, int]:
    """Return which noises can be removed without being noticed, and in how many draws.

    Those of all calls come first. A noise is noticed when one of the mutants in which it is gone
    was killed: of a selection, at either end. What was not run tells nothing and is left out.
    """
    judged = [m for m in mutants if m.certain and m.fate is not Fate.NOT_RUN]
    noticed = {(m.noise, m.calls) for m in judged if m.killed}
    missed: dict[str, int] = {}
    for m in sorted(judged, key=lambda m: m.calls != "all"):
        if (m.noise, m.calls) in noticed or (m.calls != "all" and m.noise in missed):
            continue
        name = m.noise if m.calls == "all" else f"the {m.calls} call of {m.noise}"
        missed[name] = max(missed.get(name, 0), m.draws)
    return missed


def half_noticed(mutants: Sequence[MutantResult]) -> dict[str, int]:
    """Return which noises can be halved unnoticed, though not removed, and in how many draws.

    Only changes of all calls: one call of many may well be halved.
    """
    gone = unnoticed(mutants)
    return {
        m.noise: m.draws
        for m in mutants
        if m.change == "halved" and m.calls == "all" and m.fate is Fate.SURVIVED
        if m.noise not in gone
    }


def unnoticed_words(mutants: Sequence[MutantResult]) -> list[str]:
    """Return a few words on each change of the noise that survived, the gravest first."""
    found = [
        f"{noise} {change}" + f", in {draws:,} draws" * bool(draws)
        for change, noises in (("removed", unnoticed(mutants)), ("halved", half_noticed(mutants)))
        for noise, draws in noises.items()
    ]
    more = len(found) - _NAMED
    return found[:_NAMED] + [f"and {more} other{'s' if more > 1 else ''}"] * (more > 0)


_NAMED = 3
