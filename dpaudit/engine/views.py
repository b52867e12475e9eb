"""Mechanisms whose outcome depends on both datasets of a pair, and their mutants.

An adversary knows both datasets. What the adversary measures is part of the pair, as the strategy
of an interactive adversary is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dpaudit.data import Interaction
from dpaudit.mechanisms import Observed, Outcomes, Scored
from dpaudit.mutants import Mutant
from dpaudit.neighbors import NeighborPair, each

EXTRA = (1.0, 0.1, 0.01)
"""Shares of the usual time or memory that mutants add on the left dataset."""


def inner_of(mechanism: Any) -> Any:
    """Return the mechanism inside scores and conversions."""
    while isinstance(mechanism, Outcomes | Scored):
        mechanism = mechanism.mechanism
    return mechanism


def seen_with_both_sides(mechanism: Any, pairs: Any) -> Any:
    """Return the pairs with what the mechanism shows of them; most mechanisms need nothing."""
    view = getattr(inner_of(mechanism), "view", None)
    if view is None:
        return pairs

    def change(pair: NeighborPair) -> NeighborPair:
        plain = pair  # the pair of an earlier result already has what was shown of it
        if isinstance(pair.left, Interaction):
            plain = replace(pair, left=pair.left.data, right=pair.right.data)
        return plain.facing(view(plain.left, plain.right, plain.by))

    return each(pairs, change)


def side_channel(mechanism: Any) -> Observed | None:
    """Return the mechanism whose time or memory is observed; None for another mechanism."""
    return mechanism if isinstance(mechanism, Observed) else None


def side_channel_mutants(observed: Observed) -> Iterator[Mutant]:
    """Yield mutants whose calls need more time or memory on the left dataset."""
    for extra in EXTRA:
        made = observed.with_extra(extra)
        what = f"the {observed.observe} of a call"
        change = f"{100 * extra:g}% of {observed.usual[1]} more on the left dataset"
        yield Mutant(f"{what}: {change}", made, noise=what, change=change)
