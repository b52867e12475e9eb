"""Pairs and spaces of pairs from words, as the command line has them."""

from __future__ import annotations

import difflib
import functools
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
from dpaudit.neighbors.members import Portfolio
from dpaudit.neighbors.pairs import NeighborPair, PairFamily
from dpaudit.neighbors.portfolio import portfolio
from dpaudit.neighbors.presets import clusters, edge, outlier, query_values, which_batch, which_user
from dpaudit.neighbors.spaces import Choice, Integer, Interval, Range, SearchSpace
from dpaudit.neighbors.values import value_pattern, value_patterns

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

SPACES: dict[str, Callable[..., SearchSpace | Portfolio]] = {
    recipe.__name__: recipe
    for recipe in (outlier, clusters, edge, which_user, which_batch, query_values, portfolio)
}


def pairs_from_words(
    text: str, *, rng: np.random.Generator
) -> NeighborPair | PairFamily | SearchSpace | Portfolio:
    """Build what an audit looks at from the words of the command line.

    Parameters
    ----------
    text : str
        Words of :func:`from_recipe`, of :func:`space_from_words`, or a ready space by its name in
        ``SPACES``, such as ``outlier:n_users=20,m=8`` or ``portfolio:m=4``.
    rng : numpy.random.Generator
        Used by the recipes that draw.
    """
    if not isinstance(text, str):
        raise TypeError(f"pair must be words such as far_user:n_users=20, got {text!r}")
    name, _, rest = text.partition(":")
    if name in SPACES:
        return SPACES[name](**_arguments(name, SPACES[name], rest, {"data_like", "rng"}))
    if ".." in text or "|" in text:
        return space_from_words(text)
    return from_recipe(text, rng=rng)


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
        known = [*RECIPES, *SPACES]
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ArgumentError(f"pair must name a recipe ({', '.join(known)}), got {name!r}{hint}")
    recipe = RECIPES[name]
    drawn = {"rng": rng} if "rng" in inspect.signature(recipe).parameters else {}
    return recipe(**_arguments(name, recipe, rest, {"rng"}), **drawn)


def _arguments(name: str, recipe: Any, words: str, hidden: set[str]) -> dict[str, Any]:
    """Read name=value,... for a recipe; refuse what it does not take, and what is missing."""
    parameters = {
        key: p for key, p in inspect.signature(recipe).parameters.items() if key not in hidden
    }
    arguments: dict[str, Any] = {}
    for item in filter(None, words.split(",")):
        key, equals, value = item.partition("=")
        if not equals or key not in parameters:
            allowed = ", ".join(parameters)
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
    return arguments


def parse_value(key: str, value: str) -> Any:
    """Read one value of a recipe's words: a number, a relation, or the word itself."""
    if key == "relation":
        relations = {
            "replace_user": Relation.REPLACE_USER,
            "add_remove_user": Relation.ADD_REMOVE_USER,
        }
        _validate.choice(tuple(relations), relation=value)
        return relations[value]
    if value in ("True", "False"):
        return value == "True"
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def space_from_words(text: str) -> SearchSpace:
    """Build a space from words such as ``far_user:n_users=20,distance=0.1..10``.

    Parameters
    ----------
    text : str
        Name of a recipe in ``dpaudit.neighbors.RECIPES``, a colon, and ``name=value`` separated by
        commas. A value may be a range ``lo..hi``, of whole numbers if both ends are written as
        such; ``log:lo..hi``, evenly spread in the logarithm; or a choice ``a|b|c``.

    Raises
    ------
    ValueError
        For an unknown recipe or argument, a bad range, or words without any range.

    Examples
    --------
    >>> space_from_words("far_user:n_users=20..40,distance=log:0.1..10").parameters
    {'n_users': Integer(low=20, high=40), 'distance': Interval(low=0.1, high=10.0, log=True)}
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be words such as far_user:distance=0.1..10, got {text!r}")
    name, _, rest = text.partition(":")
    _validate.choice(tuple(RECIPES), recipe=name)
    recipe = RECIPES[name]
    fixed: dict[str, Any] = {}
    ranges: dict[str, Range] = {}
    known = [key for key in inspect.signature(recipe).parameters if key != "rng"]
    for item in filter(None, rest.split(",")):
        key, equals, value = item.partition("=")
        if not equals or not value or key not in known:
            raise ArgumentError(
                f"the recipe {name} takes name=value of {', '.join(known)}; got {item!r}"
            )
        if key in fixed or key in ranges:
            raise ArgumentError(f"{key} must be given once, got {item!r} as well")
        if "|" in value:
            if not all(value.split("|")) or ".." in value or value.startswith("log:"):
                raise ArgumentError(
                    f"{key} must be a choice a|b of words or numbers, got {value!r}"
                )
            ranges[key] = Choice(tuple(parse_value(key, word) for word in value.split("|")))
        elif ".." in value:
            ranges[key] = _range(key, value)
        else:
            fixed[key] = parse_value(key, value)
    if not ranges:
        raise ArgumentError(
            f"a search needs a range lo..hi or a choice a|b for some of {', '.join(known)}; "
            f"got {text!r}"
        )
    return SearchSpace(_one_pair(functools.partial(recipe, **fixed), name), ranges, name=text)


def _one_pair(build: Callable[..., Any], name: str) -> Callable[..., NeighborPair]:
    if name == "value_patterns":
        raise ArgumentError(
            "recipe must give one pair, got value_patterns, which gives several; "
            "search value_pattern with pattern=a|b|c instead"
        )
    return build


def _range(key: str, words: str) -> Range:
    log = words.startswith("log:")
    low, _, high = words.removeprefix("log:").partition("..")
    ends = [parse_value("", low), parse_value("", high)]
    if not all(isinstance(end, int | float) for end in ends):
        raise ArgumentError(f"{key} must be a range lo..hi of numbers, got {words!r}")
    try:
        if not log and all(isinstance(end, int) for end in ends):
            return Integer(*ends)
        return Interval(float(ends[0]), float(ends[1]), log)
    except ArgumentError as error:
        raise ArgumentError(f"{key}={words}: {error}") from None
