"""Exploration, which chooses the pair and the events on draws that certify nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.data import is_frame
from dpaudit.engine.certificate import tally_on
from dpaudit.engine.task import EXPLORE_SHARE, Run, Task, check_relation
from dpaudit.errors import ArgumentError, MechanismError, MechanismTimeout, is_last_frame_own
from dpaudit.events import LEARN_SHARE, Event, Guess, Selection, learn
from dpaudit.mechanisms import LateFailure, Sampler, joined
from dpaudit.mutants import uneven_noise
from dpaudit.neighbors import AllPairs, NeighborPair, PairFamily, Portfolio, SearchSpace
from dpaudit.search import LEAST_BUDGET, SearchRecord, least_budget, search, search_values

Draws = tuple[NDArray[Any], NDArray[Any]]
"""Draws on both datasets, left and right."""

Drawn = TypeVar("Drawn")

MIN_PILOT = 8
"""Least number of draws per dataset on each pair of a family."""

MAX_EXPLORE_CELLS, MAX_EXPLORE_DRAWS = 2e7, 3e6
"""Limits for one dataset; more exploration costs memory and time, and gains nothing."""

FINALS = 3
"""The finalists of a search get this fraction of the exploration draws: one in `FINALS`."""


@dataclass(frozen=True)
class Exploration:
    """The choices of the exploration.

    Parameters
    ----------
    pair : NeighborPair
        The pair on which the audit continues.
    selection : Selection
        The frozen events.
    draws : (ndarray, ndarray)
        The draws on the chosen pair from which the events were learnt.
    explored : int
        Total number of draws per dataset spent on exploration.
    search : SearchRecord, optional
        Record of the search for the pair.
    """

    pair: NeighborPair
    selection: Selection
    draws: Draws
    explored: int
    search: SearchRecord | None = None


def explore(
    run: Run,
    sampler: Sampler,
    *,
    share: float,
    learn_share: float = LEARN_SHARE,
    coins: NDArray[np.bool_] | None = None,
) -> Exploration:
    """Choose the pair and the events of a mechanism that draws its outputs.

    Afterwards, the claim of the run is the claim at the chosen pair.

    Parameters
    ----------
    run : Run
        The claim, the pairs and the budget.
    sampler : Sampler
        Sampler that makes the exploration draws of the mechanism.
    share : float
        Share of the draws that the exploration spends.
    learn_share : float, optional
        Share of these draws from which scores are learnt. Events are chosen on the rest of the
        exploration draws.
    coins : ndarray of bool, optional
        One flag for each draw: whether the draw is from the left side. Without this argument, both
        sides get equally many draws.
    """
    task, role = run.task, run.role

    def objective(pair: NeighborPair, draws: Draws) -> tuple[float, float]:
        expected, separation = learnt(pair, draws, budget, f"{role} pilot").objective
        return expected / task.allowed(pair.left, pair.right), separation

    def learnt(pair: NeighborPair, draws: Draws, explored: int, role: str) -> Selection:
        here, rng = task.at(pair), task.rng(role, "learn")
        goal = here.goal(task.draws - explored, learn_share)
        return learn(*draws, goal, rng=rng, float_attack=here.attack_on(pair))

    record = None
    if task.space is not None:
        pair, draws, explored, record = _searched(task, task.space, sampler, role, share)
    else:
        first = next(iter(task.pairs))
        sampler.begin(first.left, first.right)
        budget = explore_budget(task, sampler, share)
        pair, draws, explored = most_promising(
            task.pairs,
            sampler,
            budget,
            draw=lambda pair, draws, role: _draw(sampler, pair, draws, role, coins),
            join=all_draws,
            objective=objective,
        )
    run.task = task.at(pair)
    return Exploration(pair, learnt(pair, draws, explored, role), draws, explored, record)


def least_draws(space: SearchSpace | Portfolio | AllPairs | None, pairs: int) -> int:
    """Return the smallest number of draws per dataset that explores a space or this many pairs."""
    if space is not None:
        return math.ceil((2 * _least_search(space) + 1) / EXPLORE_SHARE)
    return math.ceil(2 * MIN_PILOT * pairs / EXPLORE_SHARE) if pairs > 1 else 0


def _least_search(space: SearchSpace | Portfolio | AllPairs) -> int:
    return least_budget(len(space.values)) if isinstance(space, AllPairs) else LEAST_BUDGET


def explore_budget(
    task: Task, sampler: Sampler, share: float = EXPLORE_SHARE, most: float = math.inf
) -> int:
    """Return the number of exploration draws per dataset.

    Some draws always remain to certify.
    """
    cells = MAX_EXPLORE_CELLS / sampler.kinds.width
    budget = int(min(task.draws * share, cells, MAX_EXPLORE_DRAWS, most))
    return min(max(budget, MIN_PILOT), task.draws - 1)


def most_promising(
    pairs: PairFamily,
    sampler: Sampler,
    budget: int,
    *,
    draw: Callable[[NeighborPair, int, str], Drawn],
    join: Callable[[Drawn, Drawn], Drawn],
    objective: Callable[[NeighborPair, Drawn], Any],
) -> tuple[NeighborPair, Drawn, int]:
    """Spend half of the budget equally on all pairs, and the rest on the best pair.

    Returns
    -------
    pair : NeighborPair
        The best pair, or the first of several equal pairs.
    drawn
        All draws on this pair.
    explored : int
        Number of draws per dataset spent on all pairs together.
    """
    first, *others = pairs
    if not others:
        return first, draw(first, budget, "explore"), budget
    pilot = max(budget // 2 // len(pairs), MIN_PILOT)
    drawn = [draw(first, pilot, "pilot 0")]
    for index, pair in enumerate(others, 1):
        sampler.begin(pair.left, pair.right)
        drawn.append(draw(pair, pilot, f"pilot {index}"))
    values = [objective(pair, seen) for pair, seen in zip(pairs, drawn, strict=True)]
    best = max(range(len(pairs)), key=lambda index: (values[index], -index))
    pair = pairs.pairs[best]
    sampler.turn()
    more = max(budget - pilot * len(pairs), MIN_PILOT)
    return pair, join(drawn[best], draw(pair, more, "explore")), pilot * len(pairs) + more


def _searched(
    task: Task, space: SearchSpace | Portfolio | AllPairs, sampler: Sampler, role: str, share: float
) -> tuple[NeighborPair, Draws, int, SearchRecord]:
    """Search with most of the exploration draws, and spend the rest on the best pair."""
    check_draws(task.draws, space)
    example = next(iter(task.pairs))
    with asking_for_data(space):
        sampler.begin(example.left, example.right)
        budget = explore_budget(task, sampler)
        goal = task.goal(task.draws - budget)
        finals = budget // FINALS
        rng = task.rng(role, "search")
        if budget // 2 < _least_search(space):
            raise ArgumentError(
                f"outputs of {sampler.kinds.width:,} numbers are too wide for a search: it needs "
                f"{_least_search(space)} draws per dataset, and {budget // 2} fit into memory. "
                "Name a pair, or pass score= to audit a short function of the outputs"
            )
        if isinstance(space, AllPairs):
            found = search_values(
                space,
                sampler,
                budget // 2,
                lambda pair: task.at(pair).goal(task.draws - budget),
                task.allowed,
                delta=None if task.claim.point is None else task.claim.point[1],
                rng=rng,
            )
        else:
            conclusive = conclusive_for(task) if task.sequential else None
            found = search(
                space,
                sampler,
                budget // 2,
                goal,
                finals=finals,
                conclusive=conclusive,
                suspicious=suspicious_for(task, sampler.mechanism),
                rng=rng,
            )
            if found.is_early:
                more = explore_budget(task, sampler, share)
                budget = min(found.record.draws_spent + more, budget)
    check_relation(task.claim, found.pair)
    sampler.turn()
    fresh = _draw(sampler, found.pair, budget - found.record.draws_spent, "explore")
    return found.pair, all_draws(found.drawn, fresh), budget, found.record


def conclusive_for(task: Task) -> Callable[..., bool]:
    """Return the function that says whether draws that did not choose an event refute the claim."""

    def conclusive(
        pair: NeighborPair,
        chosen: Event | Guess,
        left: NDArray[Any],
        right: NDArray[Any],
        failure_prob: float,
    ) -> bool:
        point = task.at(pair).claim.point
        if point is None:  # a curve
            return False
        epsilon, delta = point
        bounds = tally_on(chosen, left, right).bounds(failure_prob)
        return bounds.lower_epsilon(delta) > epsilon

    return conclusive


def suspicious_for(task: Task, mechanism: Any) -> Callable[[NeighborPair], bool]:
    """Return the function that says whether the code draws more noise on one side of a pair."""

    def suspicious(pair: NeighborPair) -> bool:
        with suppress(MechanismError):
            return bool(uneven_noise(mechanism, pair, seed=task.seed, watch=task.watch))
        return False

    return suspicious


def check_draws(draws: int, space: SearchSpace | Portfolio | AllPairs) -> None:
    """Raise an error if there are too few draws per dataset to search a space."""
    least = least_draws(space, 0)
    if draws < least:
        raise ArgumentError(
            f"draws must be an integer >= {least} to search {space.name}, got {draws}. Name a "
            "pair, which needs fewer draws"
        )


@contextmanager
def asking_for_data(space: SearchSpace | Portfolio | AllPairs) -> Iterator[None]:
    """Add advice to declare the data if a mechanism fails on data that dpaudit chose."""
    try:
        yield
    except (MechanismTimeout, LateFailure):
        raise
    except MechanismError as error:
        # The advice helps for an exception or for inf. Other violations do not depend on the data.
        if isinstance(space, Portfolio) and (_raised(error) or " returned inf " in str(error)):
            raise MechanismError(f"{error}. {_data_words(space)}") from error
        raise


def _raised(error: BaseException) -> bool:
    """Return whether the mechanism raised the first error, and took the arguments of dpaudit."""
    seen: set[int] = set()  # an exception may be its own cause
    while error.__cause__ is not None and id(error) not in seen:
        seen.add(id(error))
        error = error.__cause__
    is_of_call = isinstance(error, TypeError) and is_last_frame_own(error)
    return not isinstance(error, MechanismError) and not is_of_call


def _data_words(space: Portfolio) -> str:
    """Return which data a portfolio chose, and how to choose other data."""
    example = space.pairs[0].left if space.pairs else None
    if is_frame(example):
        return _FRAMES
    words = "The data are those of a portfolio"
    if isinstance(example, np.ndarray):
        words += f": arrays of shape {example.shape}"
        if space.items and example.ndim == 2:
            words += (
                f", {space.items} items of each of {len(example)} users. If each user of your data "
                f"has one number, pass neighbors.portfolio(numpy.zeros({len(example)}))"
            )
    return f"{words}. {_ARRAYS}"


_ARRAYS = (
    "Describe the data if the mechanism needs other data: neighbors.portfolio(like) or its low=, "
    "high=, m=, dim=, n_users= (--like, --range, --m, --dim, --users)"
)
_FRAMES = (
    "The frame is one of many that are tried. Describe the data if the mechanism needs other data, "
    "by Schema(columns, special=...). If an exception is an answer, declare it by "
    'Outcomes(f, errors="outcome")'
)


def _draw(
    sampler: Sampler,
    pair: NeighborPair,
    draws: int,
    role: str,
    coins: NDArray[np.bool_] | None = None,
) -> Draws:
    of_left = draws if coins is None else int(coins[: 2 * draws].sum())
    left = sampler.draw(pair.left, of_left, role, "left")
    return left, sampler.draw(pair.right, 2 * draws - of_left, role, "right")


def all_draws(some: Draws, more: Draws) -> Draws:
    """Return the draws of both arguments, concatenated for each side."""
    left, right = (joined(both) for both in zip(some, more, strict=True))
    return left, right
