"""Portfolios: pairs and spaces of pairs that are explored together with one budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np

from dpaudit.claims import Relation
from dpaudit.errors import ArgumentError
from dpaudit.neighbors.pairs import NeighborPair, of_one_kind
from dpaudit.neighbors.spaces import SearchSpace

BOTH = (Relation.REPLACE_USER, Relation.ADD_REMOVE_USER)
"""Relations of the pairs that are searched where nobody names one."""


@dataclass(frozen=True, eq=False)
class Portfolio:
    """Pairs and spaces of pairs that are explored together with one budget.

    Parameters
    ----------
    name : str
        Words for reports.
    pairs : tuple of NeighborPair
        Each a candidate, those first that matter most where the budget is small.
    spaces : tuple of SearchSpace
        Each searched.
    ends : tuple of NeighborPair
        Those of `pairs` that are judged in the end whatever they showed in few draws: where a user
        goes as far as may be.
    small : tuple of NeighborPair
        Those of `pairs` that hold very few users. A mechanism need not answer on them: a pair on
        which it raises an exception is left out, and the report says so.
    variant : callable, optional
        ``variant(relation=...)`` and ``variant(items=1)`` return the same portfolio with an
        argument that its author left open.
    items : int, optional
        How many items a user holds because nobody said how many; None where somebody did.
    """

    name: str
    pairs: tuple[NeighborPair, ...]
    spaces: tuple[SearchSpace, ...] = ()
    ends: tuple[NeighborPair, ...] = ()
    small: tuple[NeighborPair, ...] = ()
    variant: Callable[..., Portfolio] | None = None
    items: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"name must be a text that is not empty, got {self.name!r}")
        kinds = {"pairs": NeighborPair, "spaces": SearchSpace}
        kinds |= {"ends": NeighborPair, "small": NeighborPair}
        for field, kind in kinds.items():
            held = tuple(getattr(self, field))
            object.__setattr__(self, field, held)
            for one in held:
                if not isinstance(one, kind):
                    raise TypeError(f"{field} must hold {kind.__name__} objects, got {one!r}")
        if not self.pairs and not self.spaces:
            raise ArgumentError(f"the portfolio {self.name!r} holds no pair and no space")
        for pair in self.pairs:
            if pair.is_null:
                raise ArgumentError(
                    f"a pair of a portfolio must differ, got one whose sides are equal: {pair!r}"
                )
        of_one_kind(self.pairs, "a portfolio")
        for name, some in (("ends", self.ends), ("small", self.small)):
            for one in some:
                if not any(one is pair for pair in self.pairs):
                    raise ArgumentError(f"{name} must be some of the pairs, got another: {one!r}")

    def example(self, *, rng: np.random.Generator) -> NeighborPair:
        """Return the first pair, or else one of the first space."""
        return self.pairs[0] if self.pairs else self.spaces[0].example(rng=rng)

    def under(self, relation: Relation, *, rng: np.random.Generator) -> Portfolio:
        """Return the portfolio of one relation; all of it where it holds nothing of that relation.

        Where the author of the portfolio named no relation, the portfolio is made anew.
        """
        if self.variant is not None and len(self.relations) > 1:
            return self.variant(relation=relation)
        pairs, ends, small = (
            tuple(pair for pair in some if pair.relation == relation)
            for some in (self.pairs, self.ends, self.small)
        )
        spaces = tuple(s for s in self.spaces if s.example(rng=rng).relation == relation)
        if not pairs and not spaces:
            return self
        return replace(self, pairs=pairs, spaces=spaces, ends=ends, small=small)

    @property
    def is_ready_made(self) -> bool:
        """Whether it was made by :func:`portfolio`, whose arguments declare the data."""
        return self.name.startswith("portfolio(")

    @property
    def relations(self) -> tuple[Relation, ...]:
        """Relations of the pairs, in their order."""
        return tuple(dict.fromkeys(pair.relation for pair in self.pairs))

    def __repr__(self) -> str:
        return f"Portfolio({self.name}: {len(self.pairs)} pairs, {len(self.spaces)} spaces)"


def in_turn(series: Iterable[Iterable[NeighborPair]]) -> Iterator[NeighborPair]:
    """Yield the first of each series, the second of each, and so on: a small budget sees them."""
    rounds = zip_longest(*series)
    return (pair for each in rounds for pair in each if pair is not None)
