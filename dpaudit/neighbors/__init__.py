"""Neighbouring pairs, recipes that build adversarial ones, and families of pairs.

Datasets are arrays ``[n_users, m, ...]``: axis 0 is the user, axis 1 that user's items. A recipe
returns one :class:`NeighborPair` and documents the weakness that it aims at; ``RECIPES`` lists
them by name for the command line.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit import _validate
from dpaudit.claims import Relation
from dpaudit.errors import ArgumentError
from dpaudit.neighbors.datasets import (
    all_others_equal,
    clip_boundary_user,
    constant_against_random,
    far_user,
    majority_flip,
    threshold_decider,
    two_clusters,
)
from dpaudit.neighbors.pairs import NeighborPair, PairFamily, family
from dpaudit.neighbors.values import PATTERNS, value_pattern, value_patterns

__all__ = [
    "PATTERNS",
    "RECIPES",
    "NeighborPair",
    "PairFamily",
    "all_others_equal",
    "clip_boundary_user",
    "constant_against_random",
    "family",
    "far_user",
    "from_recipe",
    "majority_flip",
    "parse_value",
    "threshold_decider",
    "two_clusters",
    "value_pattern",
    "value_patterns",
]

RECIPES: dict[str, Callable[..., NeighborPair | PairFamily]] = {
    recipe.__name__: recipe
    for recipe in (
        far_user,
        clip_boundary_user,
        all_others_equal,
        two_clusters,
        majority_flip,
        constant_against_random,
        threshold_decider,
        value_pattern,
        value_patterns,
    )
}


def from_recipe(text: str, *, rng: np.random.Generator) -> NeighborPair | PairFamily:
    """Build a pair from words such as ``far_user:n_users=50,distance=10``.

    Parameters
    ----------
    text : str
        Name of a recipe in ``RECIPES``, then optional ``:name=value,...``. Values are numbers,
        words, or ``relation=add_remove_user``.
    rng : numpy.random.Generator
        Used by the recipes that draw.

    Raises
    ------
    ValueError
        For an unknown recipe or argument, naming the ones that exist.
    """
    name, _, rest = text.partition(":")
    if name not in RECIPES:
        close = difflib.get_close_matches(name, RECIPES, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ArgumentError(f"pair must name a recipe ({', '.join(RECIPES)}), got {name!r}{hint}")
    recipe = RECIPES[name]
    parameters = inspect.signature(recipe).parameters
    arguments: dict[str, Any] = {"rng": rng} if "rng" in parameters else {}
    for item in filter(None, rest.split(",")):
        key, equals, value = item.partition("=")
        if not equals or key not in parameters or key == "rng":
            allowed = ", ".join(p for p in parameters if p != "rng")
            raise ArgumentError(f"the recipe {name} takes name=value of {allowed}; got {item!r}")
        if key in arguments:
            raise ArgumentError(f"{key} must be given once, got {item!r} as well")
        arguments[key] = parse_value(key, value)
    missing = [
        p.name
        for p in parameters.values()
        if p.default is inspect.Parameter.empty and p.name not in arguments
    ]
    if missing:
        raise ArgumentError(
            f"the recipe {name} also needs {', '.join(missing)}: {name}:{missing[0]}="
        )
    return recipe(**arguments)


def parse_value(key: str, value: str) -> Any:
    """Read one value of a recipe's words: a number, a relation, or the word itself."""
    if key == "relation":
        relations = {
            "replace_user": Relation.REPLACE_USER,
            "add_remove_user": Relation.ADD_REMOVE_USER,
        }
        _validate.choice(tuple(relations), relation=value)
        return relations[value]
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value
