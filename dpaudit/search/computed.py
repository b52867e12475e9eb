"""The search for the worst pair of a mechanism whose distribution is computed: without draws."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpaudit.errors import MechanismError
from dpaudit.neighbors import NeighborPair, Portfolio, SearchSpace, in_words
from dpaudit.search.candidates import Candidate, Candidates, best_first
from dpaudit.search.record import FINAL, SearchRecord

DESIGN = 256
"""Candidates of the design, and a quarter more."""

ROUNDS, EACH = 8, 32
"""Local rounds, and the candidates of each."""


def search_computed(
    where: SearchSpace | Portfolio,
    judge: Callable[[NeighborPair], tuple[float, float]],
    *,
    rng: np.random.Generator,
) -> tuple[NeighborPair, SearchRecord]:
    """Return the pair that is judged worst, and all trials.

    Parameters
    ----------
    where : SearchSpace or Portfolio
        Where to look; a space that holds no more parameters than the design is tried completely.
    judge : callable
        Computes what is compared: (expected_epsilon, separation) of a trial.
    rng : numpy.random.Generator
        Fixes all trials.

    Raises
    ------
    ArgumentError
        For a space without valid pairs.
    """
    candidates = Candidates(where, rng)

    def judged(new: list[Candidate]) -> list[Candidate]:
        answered = []
        for candidate in new:
            try:
                candidate.score = judge(candidate.pair)
                answered.append(candidate)
            except MechanismError as error:
                if candidates.needs_no_answer(candidate):
                    candidates.leave_out(candidate, str(error))
                    continue
                at = candidate.name or where.name
                at += f", {in_words(candidate.parameters)}" if candidate.parameters else ""
                raise type(error)(f"{error}; found by the search at {at}") from error
        return answered

    known = judged(candidates.design(DESIGN, ROUNDS))
    for done in range(ROUNDS):
        known += judged(candidates.proposals(known, EACH, done, "local"))
    if not known:
        raise candidates.none_valid()
    best = best_first(known)[0]
    best.stage = FINAL
    return best.pair, candidates.record(0)
