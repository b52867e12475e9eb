"""Audits of interactive mechanisms: the strategies of the adversary, and mutants of the budget.

A strategy is part of the pair. So the search for the worst pair also finds the worst strategy, the
mutants face every strategy, and the certificate uses fresh draws, as in every other audit.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from dpaudit.data import handed, words_of_data
from dpaudit.errors import ArgumentError, MechanismError, place
from dpaudit.mechanisms import LEVELS, Interactive, Scored, mechanism_name
from dpaudit.mutants import Mutant
from dpaudit.neighbors import (
    AllPairs,
    Choice,
    NeighborPair,
    PairFamily,
    Portfolio,
    SearchSpace,
    family,
)

_MOST_PAIRS, _FEW_PAIRS, _OF_PORTFOLIO = 64, 4, 4


def interactive(mechanism: Any) -> Interactive | None:
    """Return the interactive mechanism, which a score may follow; None for another mechanism."""
    inner = mechanism.mechanism if isinstance(mechanism, Scored) else mechanism
    return inner if isinstance(inner, Interactive) else None


def facing_strategies(
    mechanism: Interactive, pairs: Any, *, rng: np.random.Generator
) -> Portfolio | PairFamily:
    """Return each pair with each strategy of the adversary, and spaces of adaptive strategies.

    Only the most important pairs of a portfolio are used.

    Raises
    ------
    ArgumentError
        For a search space of pairs, and for too many pairs.
    """
    strategies = mechanism.strategies()
    held = _named_pairs(pairs, max(_MOST_PAIRS // len(strategies), 1))
    faced = tuple(pair.facing(strategy) for strategy in strategies for pair in held)
    spaces: tuple[SearchSpace, ...] = ()
    if len(mechanism.queries) > 1 and mechanism.rounds > 1:
        cuts = _quantiles(mechanism, held[0], rng)
        asked = Choice(tuple(mechanism.queries))
        ranges = dict.fromkeys(("first", "low", "high", "refused"), asked)
        spaces = tuple(
            SearchSpace(
                functools.partial(_adaptive, mechanism, pair, cuts),
                {**ranges, "level": Choice(tuple(range(len(LEVELS))))},
                name="adaptive strategies",
            )
            for pair in held[:1]
        )
    if not spaces and len(faced) <= _FEW_PAIRS:
        return family(faced if len(faced) > 1 else faced[0])
    ends = faced[: len(mechanism.own) * len(held)]  # the user's own strategies are finalists
    return Portfolio(f"{len(strategies)} strategies", faced, spaces, ends)


def _quantiles(mechanism: Interactive, pair: NeighborPair, rng: np.random.Generator) -> Any:
    """Return the quantiles of answers, at which adaptive strategies change their query."""
    try:
        return mechanism.quantiles([handed(pair.left), handed(pair.right)], rng=rng)
    except (MechanismError, KeyboardInterrupt):
        raise
    except BaseException as error:  # a session may raise any exception when it starts
        raise MechanismError(
            f"{mechanism_name(mechanism)} raised {type(error).__name__}: {error} "
            f"({place(error)}called with {words_of_data(pair.left)})"
        ) from error


def _named_pairs(pairs: Any, most: int) -> tuple[NeighborPair, ...]:
    """Return the pairs that all strategies are tried on, at most so many."""
    if isinstance(pairs, SearchSpace):
        raise ArgumentError(
            "pairs must be a pair, a list of pairs or a portfolio for an Interactive mechanism, "
            f"because the audit searches for the strategy, got {pairs.name}"
        )
    if isinstance(pairs, Portfolio):
        return pairs.pairs[: min(most, _OF_PORTFOLIO)] or _named_pairs(pairs.spaces[0], most)
    if isinstance(pairs, AllPairs):
        places = itertools.combinations(range(len(pairs.values)), 2)
        held = tuple(pairs.pair(*both) for both in places)
    else:
        held = tuple(family(pairs))
    if len(held) > most:
        raise ArgumentError(
            f"pairs must be at most {most} for this number of strategies, got {len(held)}. Pass "
            "fewer pairs or fewer queries"
        )
    return held


def _adaptive(
    mechanism: Interactive,
    pair: NeighborPair,
    cuts: Any,
    first: str,
    low: str,
    high: str,
    refused: str,
    level: int,
) -> NeighborPair:
    return pair.facing(mechanism.adaptive(first, low, high, refused, level, cuts))


def budget_mutants(
    mechanism: Any, datasets: Iterable[Any], *, rng: np.random.Generator
) -> Iterator[Mutant]:
    """Yield mutants of the state that sessions keep, such as a budget that is not spent."""
    inner = interactive(mechanism)
    if inner is None:
        return
    plain = [data.data for data in datasets]
    for fault in inner.faults(plain, rng=rng):
        made: Any = inner.with_fault(fault)
        if isinstance(mechanism, Scored):
            made = mechanism.of(made)
        state = f"the state {'.'.join(fault.path)}"
        yield Mutant(f"{state}: {fault.kind}", made, noise=state, change=fault.kind)
