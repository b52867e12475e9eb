"""The search: a design, successive halving, local rounds, and finalists on fresh draws.

A candidate is judged only by its own draws. The judgement is the value that the candidate's best
event is expected to certify (:attr:`dpaudit.events.event.Selection.objective`). The search uses
only exploration draws. Therefore the search consumes no part of `failure_prob`, even if the search
is long. The returned pair is certified on draws that the search never used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.errors import ArgumentError, MechanismError
from dpaudit.events import Event, Goal, Guess, expectation, learn
from dpaudit.mechanisms import Sampler, is_constant, joined
from dpaudit.neighbors import NeighborPair, Portfolio, SearchSpace
from dpaudit.search.candidates import FATAL, Candidate, Candidates, best_first
from dpaudit.search.record import FINAL, SEMIFINAL, SearchRecord

Array = NDArray[Any]
Conclusive = Callable[[NeighborPair, Event | Guess, Array, Array, float], bool]

DESIGN_SHARE, LOCAL_SHARE = 0.6, 0.25
"""Shares of the budget for the design and for the local rounds; the finalists also get the rest."""

LARGE_BUDGET, SHARE_BEYOND = 15_000, 0.4
"""Draws beyond a large budget count only with this share for the design and for the local rounds.

If a leak is small, even thousands of draws hardly distinguish two candidates. So a large budget
goes to a few finalists with many draws.
"""

FIRST_DRAWS = 16
"""Draws of a candidate's first stage, if the budget allows; they decide how many there are."""

LEAST_FIRST_DRAWS = 8
LEAST_CANDIDATES, MOST_CANDIDATES = 8, 128
LEAST_LOCAL, MOST_LOCAL = 4, 16
"""Smallest and largest number of candidates of the design and of a local round.

Beyond them, a larger budget gives each candidate more draws, because candidates with few draws
differ mostly by chance.
"""

SURVIVORS = 4
LOCAL_ROUNDS = 4
FINALISTS, MOST_FINALISTS, LAST = 4, 12, 2
"""Number of the best candidates that are finalists, largest number of finalists if given pairs are
added to them, and number of finalists in the last round."""

DRAWS_PER_FINALIST = 1500
"""Draws left for the finalists, per finalist, for which given pairs are added."""

CHECKS, CHECK_DRAWS = 8, 48
"""Largest number of checks of a search that may end early, and fewest draws of a check."""

SIGNS, PROOF = 0.05, 1e-3
"""Failure probabilities at which a candidate is worth a check, and at which a check ends a search.

Both only decide on which pair the audit continues. The first is not valid, as the event was chosen
on the same draws.
"""

SUSPECTS, SUSPECT_SHARE, SUSPECT_DRAWS = 2, 3, 500
"""Largest number of suspicious pairs, the fraction of the draws left for finalists that they get
(one in `SUSPECT_SHARE`), and fewest draws of each, without which they would only cost draws."""

_LEAST_FINAL = 32
_BASES = 8  # number of pairs whose differing rows are moved to other places


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The most promising pair, the record of the search, and the exploration draws on this pair.

    Parameters
    ----------
    pair : NeighborPair
        The chosen pair.
    record : SearchRecord
        All trials, as plain data.
    drawn : tuple of two arrays, shape [draws, ...]
        Draws of the chosen pair, on left and right. These draws are exploration draws, which no
        bound may use.
    is_early : bool
        Whether the search ended because a pair was conclusive.
    """

    pair: NeighborPair
    record: SearchRecord
    drawn: tuple[Array, Array]
    is_early: bool = False


def halvings(candidates: int, keep: int) -> Iterator[tuple[int, int]]:
    """Yield the number of candidates of each round, and the number of new draws of each candidate.

    The number of draws is in units of the first draws.

    Every round halves the candidates and doubles the draws of the remaining candidates. The rounds
    stop at `keep` candidates, or at a few more candidates if a number is odd.

    Examples
    --------
    >>> list(halvings(17, keep=4))
    [(17, 1), (8, 1), (4, 2)]
    """
    yield candidates, 1
    samples = 1
    while candidates >= 2 * keep:
        candidates //= 2
        yield candidates, samples
        samples *= 2


def halving_cost(candidates: int, keep: int) -> int:
    """Return the cost of halving a number of candidates, in units of the first draws."""
    return sum(alive * samples for alive, samples in halvings(candidates, keep))


def _affordable(budget: int, keep: int, least: int, most: int) -> int:
    """Return how many candidates can be halved within a budget: `least` times a power of 2."""
    count = least
    while 2 * count <= most and halving_cost(2 * count, keep) * FIRST_DRAWS <= budget:
        count *= 2
    return count


def _spent(budget: int, share: float) -> int:
    """Return how many draws a stage with this share gets."""
    return int(share * (min(budget, LARGE_BUDGET) + SHARE_BEYOND * max(budget - LARGE_BUDGET, 0)))


LEAST_BUDGET = math.ceil(
    halving_cost(LEAST_CANDIDATES + LEAST_CANDIDATES // 4, SURVIVORS)
    * LEAST_FIRST_DRAWS
    / DESIGN_SHARE
)
"""Number of draws per dataset of the smallest search."""


def search(
    where: SearchSpace | Portfolio,
    sampler: Sampler,
    budget: int,
    goal: Goal,
    *,
    finals: int = 0,
    conclusive: Conclusive | None = None,
    suspicious: Callable[[NeighborPair], bool] | None = None,
    rng: np.random.Generator,
) -> SearchResult:
    """Search for the pair on which most can be certified.

    Parameters
    ----------
    where : SearchSpace or Portfolio
        Pairs and spaces to search. If a space has fewer parameters than places in its design, all
        parameters are tried. The pairs and spaces of a portfolio compete for one budget.
    sampler : Sampler
        Source of draws. For example, trial 17 draws under the roles "search 17 look 0", ...
    budget : int
        Draws per dataset, at least ``LEAST_BUDGET``. The search spends them all, unless it ends
        early.
    goal : Goal
        Goal of the audit: what the audit will certify.
    finals : int, optional
        Additional draws per dataset, made only for the finalists.
    conclusive : callable, optional
        ``conclusive(pair, event, left, right, failure_prob)`` returns whether these draws refute
        the claim. If given, the search ends at the first pair for which this is so on fresh draws.
    suspicious : callable, optional
        ``suspicious(pair)`` returns whether the code treats the sides differently. Such given pairs
        get more draws, unless more than a quarter of them are suspicious.
    rng : numpy.random.Generator
        Seed that determines all trials.

    Raises
    ------
    ArgumentError
        If the budget is too small, or a space has no valid pairs.

    Notes
    -----
    1. The design consists of a shifted Sobol design of each space, with its centre and some
       corners, and of the given pairs of a portfolio. Each candidate gets `FIRST_DRAWS` draws or
       more; in the smallest searches, it gets half of them. Then the better half of the candidates
       gets twice as many draws in total, and so on.
    2. Local rounds make steps in some of the parameters around the best few distinct candidates.
       The radius of the steps shrinks. A quarter of the new candidates extend the design instead.
       Each local round is halved like the design.
    3. The best candidates are finalists. The pairs at the ends of a portfolio's domain are
       finalists, too, even if their earlier values were small. The reason is that a small number of
       draws cannot distinguish 1.2 times the claim from the claim, and that the search can miss the
       ends. If the budget is large, given pairs that lost the design are also finalists. Each round
       judges the finalists on fresh draws, because the winner of hundreds of comparisons looks
       better than it is. The better half continues, until two are left.
    """
    if _validate.integer(1, budget=budget) < LEAST_BUDGET:
        raise ArgumentError(
            f"budget must be an integer >= {LEAST_BUDGET} draws per dataset, for one round of the "
            f"smallest search, got {budget}"
        )
    goal = replace(goal, careful=True)
    if goal.delta is not None:  # the objective does not need the profile, which is most of the work
        goal = replace(goal, epsilons=goal.epsilons[:1], claimed_deltas=goal.claimed_deltas[:1])
    return _Search(where, sampler, budget, finals, goal, conclusive, suspicious, rng).run()


def _learn(candidate: Candidate, goal: Goal, rng: np.random.Generator) -> Event | Guess:
    """Set the score of a candidate to what it is expected to certify, and return its event."""
    found = learn(*candidate.drawn(), goal, rng=rng)
    expected, separation = found.objective
    candidate.score = max(expected, 0.0), max(separation, -1.0)
    return found.primary


def judged(candidate: Candidate, goal: Goal, rng: np.random.Generator) -> tuple[float, float]:
    """Judge a finalist on each half of its last draws, by an event learnt on all its other draws.

    The best of thousands of events looks good on the draws that selected it, especially if outputs
    have many coordinates. If the same draws also judged the event, a pair without any difference
    could win.
    """
    left, right = candidate.drawn()
    draws, last = candidate.draws, len(candidate.samples[-1][0])
    middle = draws - last // 2
    values = []
    for start, stop in ((draws - last, middle), (middle, draws)):
        others = (joined([drawn[:start], drawn[stop:]]) for drawn in (left, right))
        event = learn(next(others), next(others), goal, rng=rng).primary
        values.append(expectation(event, left[start:stop], right[start:stop], goal))
    expected, separation = np.mean(values, axis=0).tolist()
    return max(expected, 0.0), max(separation, -1.0)


class _Search:
    """State of one search."""

    def __init__(
        self,
        where: SearchSpace | Portfolio,
        sampler: Sampler,
        budget: int,
        finals: int,
        goal: Goal,
        conclusive: Conclusive | None,
        suspicious: Callable[[NeighborPair], bool] | None,
        rng: np.random.Generator,
    ) -> None:
        self.sampler, self.goal, self.rng = sampler, goal, rng
        self.left_over = self.whole = budget + finals
        self.conclusive, self.suspicious = conclusive, suspicious
        self.checks_left = CHECKS
        # Half of what the design and the local rounds leave, so that finalists get their draws.
        self.room_for_checks = (self.whole - _spent(budget, DESIGN_SHARE + LOCAL_SHARE)) // 2
        self.winner: Candidate | None = None  # the conclusive candidate, which ends the search
        self.budget = budget
        self.candidates = Candidates(where, rng)
        example = self.candidates.example
        sampler.begin(example.left, example.right)

    def run(self) -> SearchResult:
        self._compare_keys()
        design_budget = _spent(self.budget, DESIGN_SHARE)
        count = _affordable(design_budget, SURVIVORS, LEAST_CANDIDATES, MOST_CANDIDATES)
        designed = self.candidates.design(count, LOCAL_ROUNDS)
        survivors = self._halve(designed, design_budget, SURVIVORS, "design")
        if self.winner is None:
            survivors += self._local(survivors, designed, count)
        if not survivors:
            raise self.candidates.none_left()
        best = self.winner or self._final_or_suspect(self._at_other_places(survivors))
        pair = best.make()
        self.sampler.begin(pair.left, pair.right)
        record = self.candidates.record(self.whole - self.left_over)
        return SearchResult(pair, record, best.drawn(), self.winner is not None)

    def _compare_keys(self) -> None:
        """Draw once on each given pair if draws have keys, because keys may differ by pair."""
        where = self.candidates.where
        if not isinstance(where, Portfolio) or not self.sampler.kinds.has_fields:
            return
        for index, pair in enumerate(where.pairs):
            try:
                self.sampler.turn()
                for side, data in (("left", pair.left), ("right", pair.right)):
                    self.sampler.draw(data, 1, f"keys {index}", side)
            except MechanismError as error:
                if isinstance(error, FATAL) or not any(
                    pair is small_pair for small_pair in where.small
                ):
                    raise type(error)(f"{error}; found on {pair.recipe}") from error

    # --- stages ---

    def _halve(
        self, candidates: list[Candidate], budget: int, keep: int, stage: str
    ) -> list[Candidate]:
        """Draw, judge, drop the worse half, and repeat with twice as many draws."""
        if not candidates:
            return []
        first = budget // halving_cost(len(candidates), keep)
        for alive, samples in halvings(len(candidates), keep):
            drawn: list[Candidate] = []
            for candidate in best_first(candidates)[:alive]:
                if not self._sample(candidate, first * samples, stage):
                    continue
                event = _learn(candidate, self.goal, self.rng)
                if self._is_conclusive(candidate, event):
                    candidate.stage, self.winner = FINAL, candidate
                    return [*drawn, candidate]
                if not self.candidates.is_left_out(candidate):
                    drawn.append(candidate)
            candidates = drawn
        return best_first(candidates)

    def _is_conclusive(self, candidate: Candidate, event: Event | Guess) -> bool:
        """Return whether fresh draws of a promising candidate refute the claim."""
        if self.conclusive is None or not self.checks_left:
            return False
        pair = candidate.make()
        if not self.conclusive(pair, event, *candidate.drawn(), SIGNS):
            return False
        draws = max(CHECK_DRAWS, candidate.draws)
        if draws > self.room_for_checks:
            return False
        self.checks_left -= 1
        self.room_for_checks -= draws
        if not self._sample(candidate, draws, candidate.stage):
            return False
        left, right = candidate.samples[-1]
        return self.conclusive(pair, event, left, right, PROOF)

    def _local(
        self, survivors: list[Candidate], designed: list[Candidate], count: int
    ) -> list[Candidate]:
        budget = _spent(self.budget, LOCAL_SHARE)
        least = halving_cost(LEAST_LOCAL, 1) * LEAST_FIRST_DRAWS
        rounds = min(LOCAL_ROUNDS, budget // least)
        # If all survivors are given pairs, steps are made around the best points of the design.
        known = survivors if any(len(c.point) for c in survivors) else designed
        most = min(count, MOST_LOCAL)
        found: list[Candidate] = []
        for done in range(rounds):
            new = _affordable(budget // rounds, 1, LEAST_LOCAL, most)
            candidates = self.candidates.proposals(known + found, new, done, "local")
            found += self._halve(candidates, budget // rounds, 1, "local")
            if self.winner is not None:
                break
        return found

    def _at_other_places(self, survivors: list[Candidate]) -> list[Candidate]:
        """Add a pair on which outputs differ, if all outputs so far were equal.

        Noise that is fixed by position may hide a user at some places and not at others. So the
        differing rows are moved to every place, with one draw for each place.
        """
        best = best_first(survivors)[0]
        if not is_constant(joined(best.drawn())):
            return survivors
        # The mechanism must answer on all these pairs, so none has only a few users.
        moved = [
            [c for c in some if not self.candidates.needs_no_answer(c)][:_BASES]
            for some in (self.candidates.all_given(), survivors)
        ]
        pairs = [candidate.make() for candidate in itertools.chain(*moved)]
        places = itertools.chain.from_iterable(pair.places() for pair in pairs)
        for index, pair in enumerate(itertools.islice(places, self.left_over // 4)):
            role = f"place {index}"
            self.sampler.turn()
            drawn = [self.sampler.draw(pair.left, 1, role, "left")]
            drawn.append(self.sampler.draw(pair.right, 1, role, "right"))
            self.left_over -= 1
            if not is_constant(joined(drawn)):
                found = self.candidates.given(pair)
                self._sample(found, FIRST_DRAWS, "design")
                _learn(found, self.goal, self.rng)
                return [found, *survivors]
        return survivors

    def _final(self, survivors: list[Candidate]) -> Candidate:
        """Spend the remaining draws on the finalists, and drop the worse half in each round."""
        capacity = max(self.left_over // _LEAST_FINAL, 1)
        ends = self.candidates.ends(capacity // 2)
        best = [c for c in best_first(survivors) if c not in ends]
        finalists = best[: min(FINALISTS, capacity - len(ends))] + ends
        given = [c for c in self.candidates.all_given() if c not in finalists]
        room = min(self.left_over // DRAWS_PER_FINALIST, MOST_FINALISTS) - len(finalists)
        finalists += given[: max(room, 0)]
        rounds = [len(finalists)]
        while rounds[-1] > LAST:
            rounds.append(max(rounds[-1] // 2, LAST))
        if self.left_over < _LEAST_FINAL * sum(rounds):
            rounds = rounds[:1]
        others: list[Candidate] = []  # those that lost, the best first
        for done, count in enumerate(rounds):
            ranked = best_first(finalists)
            finalists, others = ranked[:count], ranked[count:] + others
            for candidate in others:
                candidate.stage = SEMIFINAL
            finalists = self._judge(finalists, self.left_over // (len(rounds) - done))
            if not finalists:  # the mechanism failed on all of them
                finalists, others = others[:LAST], others[LAST:]
            if not finalists:
                raise self.candidates.none_left()
        return best_first(finalists)[0]

    def _final_or_suspect(self, survivors: list[Candidate]) -> Candidate:
        """Return the best finalist, or a suspicious pair that is expected to certify more.

        A rare output that only one side can give is missed with few draws, so suspicious pairs get
        a share of the draws. They are few, so they need no careful judgement.
        """
        suspects = self._suspects()
        share = self.left_over // SUSPECT_SHARE if suspects else 0
        self.left_over -= share
        candidates = [self._final(survivors)]
        self.left_over += share
        for suspect in suspects:
            if self._sample(suspect, share // len(suspects), FINAL):
                _learn(suspect, replace(self.goal, careful=False), self.rng)
                candidates.append(suspect)
        return best_first(candidates)[0]

    def _suspects(self) -> list[Candidate]:
        """Return the given pairs whose sides the code treats differently, the best first."""
        most = min(self.left_over // SUSPECT_SHARE // SUSPECT_DRAWS, SUSPECTS)
        if self.suspicious is None or not most:
            return []
        given = best_first(self.candidates.all_given())
        found = [c for c in given if self.suspicious(c.make())]
        return found[:most] if len(found) <= len(given) // 4 else []

    def _judge(self, finalists: list[Candidate], draws: int) -> list[Candidate]:
        """Draw until all candidates have about equally many draws, and judge each candidate.

        Return the candidates on which the mechanism gives an answer.
        """
        had = np.array([candidate.draws for candidate in finalists])
        least = min(_LEAST_FINAL, draws // len(finalists))
        spare = draws - least * len(finalists)
        whole = (spare + had.sum()) // len(finalists)
        more = np.maximum(whole - had, 0)
        more = least + (more * spare // max(int(more.sum()), 1))
        more[0] += draws - more.sum()
        answered = []
        for candidate, new in zip(finalists, more.tolist(), strict=True):
            if self._sample(candidate, new, FINAL):
                candidate.score = judged(candidate, self.goal, self.rng)
                answered.append(candidate)
        return answered

    def _sample(self, candidate: Candidate, draws: int, stage: str) -> bool:
        """Draw on a candidate.

        Return False if the mechanism fails on the candidate and is allowed to fail.
        """
        role, pair = f"search {candidate.index} look {len(candidate.samples)}", candidate.make()
        self.sampler.turn()
        try:
            left = self.sampler.draw(pair.left, draws, role, "left")
            right = self.sampler.draw(pair.right, draws, role, "right")
        except MechanismError as error:
            self.candidates.leave_out(candidate, error)
            return False
        if self.candidates.needs_no_answer(candidate) and (_is_nan(left) or _is_nan(right)):
            self.candidates.leave_out(candidate, MechanismError("all outputs are NaN"))
            return False
        samples = (left, *(one for one, _ in candidate.samples))
        shapes = {drawn.shape[1:] for drawn in samples if drawn.dtype != object}
        if len(shapes) > 1 and self.sampler.kinds.is_bound:
            raise MechanismError(
                f"{self.sampler.name} must return draws of equal shape for the same data, got "
                f"shape {left.shape[1:]} after shape {candidate.samples[0][0].shape[1:]}"
            )
        candidate.samples.append((left, right))
        candidate.stage = stage
        self.left_over -= draws
        return True


def _is_nan(draws: Array) -> bool:
    return draws.dtype.kind == "f" and bool(np.isnan(draws).all())


# --- without draws -----------------------------------------------------------------------------

COMPUTED_DESIGN = 256
"""Number of candidates of the design of a computed search; a quarter more are made."""

COMPUTED_ROUNDS, COMPUTED_EACH = 8, 32
"""Number of local rounds of a computed search, and of the candidates of each."""


def search_computed(
    where: SearchSpace | Portfolio,
    judge: Callable[[NeighborPair], tuple[float, float]],
    *,
    rng: np.random.Generator,
) -> tuple[NeighborPair, SearchRecord]:
    """Return the pair whose judgement is worst for privacy, and all trials.

    Parameters
    ----------
    where : SearchSpace or Portfolio
        Pairs and spaces to search. If the design has at least as many points as a space has
        parameters, all parameters are tried.
    judge : callable
        Function that computes the (expected_epsilon, separation) of a pair.
    rng : numpy.random.Generator
        Seed that determines all trials.

    Raises
    ------
    ArgumentError
        If a space has no valid pairs.
    """
    candidates = Candidates(where, rng)

    def answering(new: list[Candidate]) -> list[Candidate]:
        answered = []
        for candidate in new:
            try:
                candidate.score = judge(candidate.make())
                answered.append(candidate)
            except MechanismError as error:
                candidates.leave_out(candidate, error)
        return answered

    known = answering(candidates.design(COMPUTED_DESIGN, COMPUTED_ROUNDS))
    for done in range(COMPUTED_ROUNDS):
        known += answering(candidates.proposals(known, COMPUTED_EACH, done, "local"))
    if not known:
        raise candidates.none_left()
    best = best_first(known)[0]
    best.stage = FINAL
    return best.make(), candidates.record(0)
